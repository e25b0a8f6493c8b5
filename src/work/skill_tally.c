/* skill_tally.c - how runs ended that used a skill: counted at once, written one after the other.
 *
 * A run ends in a commit of its own session; the count is a row of the owner's registry session
 * and follows it. A count that a kill cuts off between the two is missing. */
#include "skill/book.h"
#include "work/definition_store_int.h"
#include "work/limits.h"

struct skill_tally {
	struct uar_list node;
	struct uar_arena arena;
	struct uar_owner owner;
	struct uar_skill_tally facts;
};

struct tally_writer {
	struct rt_op under_way;
	struct uar_workers *w;
	struct skill_tally *t; /* ours */
	struct uar_thread_query session;
	struct uar_append append;
	struct uar_session state;
	struct uar_arena arena;
	struct uar_buf buf;
	struct uar_row row;
	unsigned tries;
};

static void free_tally(struct skill_tally *t)
{
	uar_arena_fini(&t->arena);
	uar_free(t);
}

static void free_writer(struct tally_writer *x)
{
	free_tally(x->t);
	uar_arena_fini(&x->arena);
	uar_buf_fini(&x->buf);
	uar_free(x);
}

static void drop_writer(struct rt_op *op)
{
	free_writer(UAR_OWNER(op, struct tally_writer, under_way));
}

static void end_writer(struct tally_writer *x, uar_err e)
{
	struct uar_workers *w = x->w;

	if (e)
		uar_log(rt_log(w->rt), UAR_LOG_WARN, "skill.not_counted",
			{ "skill_id", x->t->facts.skill_id },
			{ "reason", uar_str_c(uar_err_text(e)) });
	rt_op_end(&x->under_way);
	free_writer(x);
	w->tallies.busy = false;
	rt_skill_tally_wake(w);
}

static uar_err look_for_session(struct tally_writer *x);

static void tally_appended(struct uar_append *a)
{
	struct tally_writer *x = UAR_OWNER(a, struct tally_writer, append);
	uar_err e = a->err;
	struct rt_key k;

	if (e == UAR_ECONFLICT && ++x->tries < UAR_LIMIT_DEFINITION_TRIES) {
		e = look_for_session(x);
		if (!e)
			return;
	}
	if (!e)
		rt_publish(x->w->rt, rt_key(&k, &x->t->owner, UAR_STR(UAR_REGISTRY_SESSION)), a);
	end_writer(x, e);
}

static uar_err append_tally(struct tally_writer *x)
{
	struct uar_session s = x->state;
	struct uar_decision decision = { 0 };
	struct uar_error error = { 0 };
	struct uar_core_env env = {
		.now_us = uar_clock_wall(rt_sched(x->w->rt)->clock),
		.ids = rt_ids(x->w->rt),
		.arena = &x->arena,
		.buf = &x->buf,
	};
	struct uar_row_skill_metric row = {
		.row = { .kind = UAR_ROW_SKILL_METRIC,
			 .id = x->t->facts.skill_id,
			 .status = UAR_STR("active"),
			 .created_us = env.now_us,
			 .updated_us = env.now_us },
		.successes = x->t->facts.successes,
		.failures = x->t->facts.failures,
	};
	uar_err e;

	uar_arena_reset(&x->arena);
	e = uar_core_skill_tally(&env, &s, &x->t->facts, &decision, &error);
	if (!e)
		e = uar_row_pack(&row, &x->arena, &error);
	if (e)
		return e;
	x->row = row.row;
	x->append = (struct uar_append){
		.owner = x->t->owner,
		.session_id = x->state.session_id,
		.after = x->state.sequence,
		.events = decision.events,
		.event_count = decision.event_count,
		.rows = &x->row,
		.row_count = 1,
		.done = tally_appended,
	};
	return rt_append(x->w->rt, &x->append);
}

static void session_found(struct uar_thread_query *q)
{
	struct tally_writer *x = UAR_OWNER(q, struct tally_writer, session);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	x->state.sequence = q->err ? 0 : q->last_sequence;
	if (!e)
		e = append_tally(x);
	if (e)
		end_writer(x, e);
}

static uar_err look_for_session(struct tally_writer *x)
{
	struct uar_store *store = rt_store(x->w->rt);

	uar_session_init(&x->state, &x->t->owner, uar_str_c(store->runtime_id),
			 UAR_STR(UAR_REGISTRY_SESSION));
	x->session = (struct uar_thread_query){ .owner = x->t->owner,
						.session_id = UAR_STR(UAR_REGISTRY_SESSION),
						.done = session_found };
	return store->ops->thread(store, &x->session);
}

static uar_err begin_writer(struct uar_workers *w, struct skill_tally *t)
{
	struct tally_writer *x = uar_zalloc(sizeof *x);
	uar_err e;

	if (!x) {
		free_tally(t);
		return UAR_ENOMEM;
	}
	x->w = w;
	x->t = t;
	x->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_arena_init(&x->arena, 0);
	e = look_for_session(x);
	if (e)
		free_writer(x);
	else
		rt_op_begin(w->rt, &x->under_way, drop_writer);
	return e;
}

/* The first count of a start has to wait for what was counted before it. */
void rt_skill_tally_wake(struct uar_workers *w)
{
	while (!w->tallies.busy && !w->changes.loading && !uar_list_empty(&w->tallies.queue)) {
		struct skill_tally *t = UAR_OWNER(w->tallies.queue.next, struct skill_tally, node);
		struct uar_skill_count *c =
			uar_skill_book_count(w->o.skills, &t->owner, t->facts.skill_id);

		uar_list_remove(&t->node);
		w->tallies.count--;
		t->facts.successes = c ? c->successes : 0;
		t->facts.failures = c ? c->failures : 0;
		w->tallies.busy = begin_writer(w, t) == UAR_OK;
	}
}

/* --- ends of runs ----------------------------------------------------------------------------- */

/* Without memory the row is written with the skill's next run. */
static void queue_tally(struct uar_workers *w, const struct uar_commit *c, uar_str skill_id,
			bool succeeded)
{
	struct skill_tally *t =
		w->tallies.count < UAR_LIMIT_SKILL_TALLIES ? uar_zalloc(sizeof *t) : NULL;

	if (!t)
		return;
	uar_arena_init(&t->arena, 0);
	t->facts = (struct uar_skill_tally){ .skill_id = uar_arena_str(&t->arena, skill_id),
					     .run_id = uar_arena_str(&t->arena, c->run->id.run_id),
					     .succeeded = succeeded };
	if (!t->facts.skill_id.p || !t->facts.run_id.p ||
	    !uar_owner_copy(&t->arena, c->owner, &t->owner)) {
		free_tally(t);
		return;
	}
	uar_list_add_last(&w->tallies.queue, &t->node);
	w->tallies.count++;
}

/* A cancelled run says nothing of its skills. */
static void on_commit(void *ctx, const struct uar_commit *c)
{
	const struct uar_run_skills *used = &uar_run_rare(c->run)->skills;
	struct uar_workers *w = ctx;
	bool succeeded = false, failed = false;

	for (size_t i = 0; used->count && i < c->event_count; i++) {
		succeeded |= c->events[i].cls == UAR_EV_TURN_COMPLETED;
		failed |= c->events[i].cls == UAR_EV_TURN_FAILED &&
			  c->run->status != UAR_STATUS_CANCELLED;
	}
	for (size_t i = 0; (succeeded || failed) && i < used->count; i++) {
		uar_str id = uar_str_c(used->at[i].skill_id);
		struct uar_skill_count *n = uar_skill_book_counted(w->o.skills, c->owner, id);

		if (!n)
			continue;
		n->successes += succeeded;
		n->failures += failed;
		queue_tally(w, c, id, succeeded);
	}
	if (succeeded || failed)
		rt_skill_tally_wake(w);
}

void rt_skill_tally_init(struct uar_workers *w)
{
	uar_list_init(&w->tallies.queue);
	w->tallies.watch = (struct uar_watch){ .fn = on_commit, .ctx = w };
	if (w->o.skills)
		uar_runtime_watch(w->rt, &w->tallies.watch);
}

void rt_skill_tally_fini(struct uar_workers *w)
{
	if (w->o.skills)
		uar_runtime_unwatch(&w->tallies.watch);
	while (!uar_list_empty(&w->tallies.queue)) {
		struct skill_tally *t = UAR_OWNER(w->tallies.queue.next, struct skill_tally, node);

		uar_list_remove(&t->node);
		free_tally(t);
	}
}
