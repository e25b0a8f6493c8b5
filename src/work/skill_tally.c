/* skill_tally.c - how runs ended that used skills: written one after the other, then counted.
 *
 * A run ends in a commit of its own session, with a row that says what is to be counted of it. The
 * counts are rows of the owner's registry session; the append that writes them takes that row away.
 * So a kill between the two loses nothing: rows that are left are counted at the next start. */
#include "skill/book.h"
#include "work/definition_store_int.h"
#include "work/limits.h"
#include "work/registry_append.h"

struct skill_tally {
	struct uar_list node;
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str run_id;
	bool succeeded;
	size_t count;
	uar_str skills[UAR_LIMIT_RUN_SKILLS];
};

struct tally_writer {
	struct rt_op under_way;
	struct uar_workers *w;
	struct skill_tally *t; /* ours */
	struct registry_append append;
	struct uar_row rows[UAR_LIMIT_RUN_SKILLS + 1];
};

static void free_tally(struct skill_tally *t)
{
	uar_arena_fini(&t->arena);
	uar_free(t);
}

static void free_writer(struct tally_writer *x)
{
	free_tally(x->t);
	rt_registry_append_fini(&x->append);
	uar_free(x);
}

static void drop_writer(struct rt_op *op)
{
	free_writer(UAR_OWNER(op, struct tally_writer, under_way));
}

/* What is in memory is what is written. */
static void count(const struct tally_writer *x)
{
	for (size_t i = 0; i < x->t->count; i++) {
		struct uar_skill_count *n =
			uar_skill_book_counted(x->w->o.skills, &x->t->owner, x->t->skills[i]);

		if (!n)
			continue;
		n->successes += x->t->succeeded;
		n->failures += !x->t->succeeded;
	}
}

static void tally_appended(struct registry_append *a, uar_err e)
{
	struct tally_writer *x = UAR_OWNER(a, struct tally_writer, append);
	struct uar_workers *w = x->w;

	if (e)
		uar_log(rt_log(w->rt), UAR_LOG_WARN, "skill.not_counted",
			{ "run_id", x->t->run_id }, { "reason", uar_str_c(uar_err_text(e)) });
	else
		count(x);
	rt_op_end(&x->under_way);
	w->tallies.writing = NULL;
	free_writer(x);
	rt_skill_tally_wake(w);
}

static uar_err add_skill(struct tally_writer *x, const struct uar_core_env *env,
			 struct uar_session *s, uar_str skill_id, struct uar_decision *out)
{
	const struct uar_skill_count *n =
		uar_skill_book_count(x->w->o.skills, &x->t->owner, skill_id);
	struct uar_skill_tally facts = {
		.skill_id = skill_id,
		.run_id = x->t->run_id,
		.succeeded = x->t->succeeded,
		.successes = (n ? n->successes : 0) + x->t->succeeded,
		.failures = (n ? n->failures : 0) + !x->t->succeeded,
	};
	struct uar_row_skill_metric row = {
		.row = { .kind = UAR_ROW_SKILL_METRIC,
			 .id = skill_id,
			 .status = UAR_STR("active"),
			 .created_us = env->now_us,
			 .updated_us = env->now_us },
		.successes = facts.successes,
		.failures = facts.failures,
	};
	uar_err e = uar_core_skill_tally(env, s, &facts, out, &x->append.error);

	if (!e)
		e = uar_row_pack(&row, &x->append.arena, &x->append.error);
	x->rows[x->append.row_count++] = row.row;
	return e;
}

static uar_err decide_tally(struct registry_append *a, const struct uar_core_env *env,
			    struct uar_session *s, struct uar_decision *out)
{
	struct tally_writer *x = UAR_OWNER(a, struct tally_writer, append);
	struct uar_row_skill_use use = { .row = { .kind = UAR_ROW_SKILL_USE,
						  .id = x->t->run_id,
						  .status = UAR_STR("active"),
						  .removed = true,
						  .foreign = true } };
	uar_err e = uar_row_pack(&use, &a->arena, &a->error);

	a->rows = x->rows;
	for (size_t i = 0; i < x->t->count && !e; i++)
		e = add_skill(x, env, s, x->t->skills[i], out);
	x->rows[a->row_count++] = use.row;
	return e;
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
	rt_registry_append_init(&x->append, w->rt, &t->owner);
	x->append.decide = decide_tally;
	x->append.done = tally_appended;
	e = rt_registry_append(&x->append);
	if (e)
		free_writer(x);
	else
		rt_op_begin(w->rt, &x->under_way, drop_writer);
	return e;
}

/* The first count of a start has to wait for what was counted before it. */
void rt_skill_tally_wake(struct uar_workers *w)
{
	while (!w->tallies.writing && !w->changes.loading && !uar_list_empty(&w->tallies.queue)) {
		struct skill_tally *t = UAR_OWNER(w->tallies.queue.next, struct skill_tally, node);

		uar_list_remove(&t->node);
		w->tallies.count--;
		if (!begin_writer(w, t))
			w->tallies.writing = t;
	}
}

/* --- ends of runs ----------------------------------------------------------------------------- */

static bool is_same(const struct skill_tally *t, const struct uar_owner *owner, uar_str run_id)
{
	return t && uar_str_eq(t->run_id, run_id) && uar_owner_eq(&t->owner, owner);
}

static bool is_known(const struct uar_workers *w, const struct uar_owner *owner, uar_str run_id)
{
	UAR_LIST_EACH (it, &w->tallies.queue)
		if (is_same(UAR_OWNER(it, struct skill_tally, node), owner, run_id))
			return true;
	return is_same(w->tallies.writing, owner, run_id);
}

static struct skill_tally *make_tally(const struct uar_owner *owner, uar_str run_id)
{
	struct skill_tally *t = uar_zalloc(sizeof *t);

	if (!t)
		return NULL;
	uar_arena_init(&t->arena, 0);
	t->run_id = uar_arena_str(&t->arena, run_id);
	if (t->run_id.p && uar_owner_copy(&t->arena, owner, &t->owner))
		return t;
	free_tally(t);
	return NULL;
}

static bool add_id(struct skill_tally *t, uar_str skill_id)
{
	uar_str id = uar_arena_str(&t->arena, skill_id);

	if (!id.p || t->count == ARRAY_LEN(t->skills))
		return false;
	t->skills[t->count++] = id;
	return true;
}

/* What finds no place here is counted at the next start. */
static void queue_tally(struct uar_workers *w, struct skill_tally *t)
{
	if (w->tallies.count == UAR_LIMIT_SKILL_TALLIES) {
		free_tally(t);
		return;
	}
	uar_list_add_last(&w->tallies.queue, &t->node);
	w->tallies.count++;
}

static void on_commit(void *ctx, const struct uar_commit *c)
{
	const struct uar_run_skills *used = &uar_run_rare(c->run)->skills;
	struct uar_workers *w = ctx;
	struct skill_tally *t;
	bool succeeded = false, failed = false, whole = true;

	for (size_t i = 0; used->count && i < c->event_count; i++) {
		succeeded |= c->events[i].cls == UAR_EV_TURN_COMPLETED;
		failed |= c->events[i].cls == UAR_EV_TURN_FAILED &&
			  c->run->status != UAR_STATUS_CANCELLED;
	}
	t = succeeded || failed ? make_tally(c->owner, c->run->id.run_id) : NULL;
	if (!t)
		return;
	t->succeeded = succeeded;
	for (size_t i = 0; i < used->count && whole; i++)
		whole = add_id(t, uar_str_c(used->at[i].skill_id));
	if (whole)
		queue_tally(w, t);
	else
		free_tally(t);
	rt_skill_tally_wake(w);
}

void rt_skill_load_use(struct uar_workers *w, const struct uar_owner *owner,
		       const struct uar_row *row)
{
	const struct uar_json *ids = NULL;
	struct uar_row_skill_use use;
	struct skill_tally *t = NULL;
	struct uar_error error;
	struct uar_arena arena;
	uar_err e;

	if (is_known(w, owner, row->id))
		return; /* it ended since the start */
	uar_arena_init(&arena, 0);
	e = uar_row_unpack(row, &arena, &use, sizeof use, &error);
	if (!e)
		e = uar_json_parse(use.skills, NULL, &arena, &ids, &error);
	if (!e) {
		t = make_tally(owner, row->id);
		e = t ? UAR_OK : UAR_ENOMEM;
	}
	for (const struct uar_json *i = e ? NULL : uar_json_first(ids); i && !e; i = i->next)
		e = add_id(t, i->text) ? UAR_OK : UAR_ENOMEM;
	if (!e) {
		t->succeeded = use.succeeded;
		queue_tally(w, t);
	} else {
		if (t)
			free_tally(t);
		uar_log(rt_log(w->rt), UAR_LOG_ERROR, "skill.use_unread", { "run_id", row->id });
	}
	uar_arena_fini(&arena);
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
