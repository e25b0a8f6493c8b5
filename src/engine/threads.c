/* threads.c - the queues of a session's threads: which are paused, what starts first.
 *
 * The queue of a thread is its queued runs, in the order of their creation. A thread whose
 * queue is paused or has another order has an open row; these rows are loaded with the
 * session, and what is here follows each commit that writes one. */
#include "engine/control_int.h"
#include "engine/limits.h"
#include "event/limits.h"

struct rt_thread {
	struct uar_list node; /* in agg->threads */
	bool paused;
	char thread_id[UAR_LIMIT_ID_BYTES + 1];
};

struct thread_load {
	struct rt_op under_way;
	struct agg *agg;		 /* held */
	struct uar_thread_query session; /* when its last sequence is not known for certain */
	struct uar_rows_query query;
	struct uar_timer again;
	char after[UAR_LIMIT_ROWS_CURSOR + 1];
};

static struct rt_thread *find_thread(const struct agg *a, uar_str thread_id)
{
	UAR_LIST_EACH (it, &a->threads) {
		struct rt_thread *t = UAR_OWNER(it, struct rt_thread, node);

		if (uar_str_is(thread_id, t->thread_id))
			return t;
	}
	return NULL;
}

void rt_threads_free(struct agg *a)
{
	while (!uar_list_empty(&a->threads)) {
		struct rt_thread *t = UAR_OWNER(a->threads.next, struct rt_thread, node);

		uar_list_remove(&t->node);
		uar_free(t);
	}
}

bool rt_queue_paused(const struct agg *a, uar_str thread_id)
{
	const struct rt_thread *t = find_thread(a, thread_id);

	return t && t->paused;
}

/* --- order ----------------------------------------------------------------------------------- */

/* Behind the runs of the thread that were moved before it. */
static void move_run(struct live_run *r, struct uar_list *to)
{
	uar_list_remove(&r->node);
	uar_list_add_last(to, &r->node);
}

static bool is_waiting(const struct live_run *r, uar_str thread_id)
{
	if (!uar_str_is(thread_id, r->thread_id))
		return false;
	return r->committed ? r->state.status == UAR_STATUS_QUEUED : !r->found.was_at_work;
}

/* Named runs first, then the others as they were; one that is at work stays before them. */
static void sort_queue(struct agg *a, uar_str thread_id, const struct uar_json *order)
{
	struct uar_list sorted;

	uar_list_init(&sorted);
	for (const struct uar_json *j = order ? order->first : NULL; j; j = j->next) {
		struct live_run *r =
			rt_run_find(a->rt, &a->state.owner, uar_json_str(j, UAR_STR("")));

		if (r && r->agg == a && is_waiting(r, thread_id))
			move_run(r, &sorted);
	}
	if (uar_list_empty(&sorted))
		return;
	UAR_LIST_EACH (it, &a->runs) {
		struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (is_waiting(r, thread_id))
			move_run(r, &sorted);
	}
	uar_list_move_all(&sorted, &a->runs);
}

/* --- what the store knows -------------------------------------------------------------------- */

static void learn_thread(struct agg *a, const struct uar_row_thread *row, struct uar_arena *arena)
{
	struct rt_thread *t = find_thread(a, row->row.id);
	const struct uar_json *order = NULL;

	if (!t && row->queue_paused && (t = uar_zalloc(sizeof *t))) {
		snprintf(t->thread_id, sizeof t->thread_id, "%.*s", UAR_FMT(row->row.id));
		uar_list_add_last(&a->threads, &t->node);
	}
	if (t)
		t->paused = row->queue_paused;
	if (t && !t->paused) {
		uar_list_remove(&t->node);
		uar_free(t);
	}
	if (row->queue_order.n && !uar_json_parse(row->queue_order, NULL, arena, &order, NULL))
		sort_queue(a, row->row.id, order);
}

void rt_threads_learn(struct agg *a, const struct uar_row *row)
{
	struct uar_row_thread typed;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_row_unpack(row, &arena, &typed, sizeof typed, NULL))
		learn_thread(a, &typed, &arena);
	uar_arena_fini(&arena);
}

static void finish_load(struct thread_load *l, bool known)
{
	struct agg *a = l->agg;

	a->threads_loading = false;
	a->threads_known = known;
	rt_op_end(&l->under_way);
	uar_free(l);
	rt_agg_kick(a);
	rt_agg_drop(a);
}

static void drop_load(struct rt_op *under_way)
{
	struct thread_load *l = UAR_OWNER(under_way, struct thread_load, under_way);

	uar_timer_stop(under_way->rt->o.sched, &l->again);
	uar_free(l);
}

static void rows_ready(struct uar_rows_query *q);

static uar_err ask_rows(struct thread_load *l)
{
	struct agg *a = l->agg;
	struct uar_store *store = a->rt->o.store;

	l->query = (struct uar_rows_query){
		.owner = a->state.owner,
		.kind = UAR_ROW_THREAD,
		.session_id = a->state.session_id,
		.open = UAR_ROWS_OPEN,
		.after = uar_str_c(l->after),
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = rows_ready,
	};
	return store->ops->rows(store, &l->query);
}

static void ask_again(struct uar_timer *t);

static void refuse(struct cmd *c, uar_err e)
{
	struct uar_error error = { .code = e };
	struct uar_list out;

	uar_list_init(&out);
	rt_cmd_move(c, &out);
	uar_list_remove(&c->node);
	rt_cmd_answer(c, e, &error);
}

/* Callers whose commands need the answer are refused; they may ask again. */
static void refuse_callers(struct agg *a, uar_err e)
{
	struct uar_list *it = a->queue.next;

	while (it != &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		it = it->next;
		if (c->c.kind == UAR_CMD_CREATE)
			rt_run_over(c->run, e); /* with all that waits for it */
		else if (c->done && !c->from_worker)
			refuse(c, e);
		else
			continue;
		it = a->queue.next;
	}
	while (!uar_list_empty(&a->controls))
		rt_control_finish(UAR_OWNER(a->controls.next, struct rt_control, node), e, NULL);
}

/* What is not known cannot be decided upon: runs that go on wait until it is known. While the
 * server stops nothing starts any more, so it need not be. */
static void ask_or_wait(struct thread_load *l, uar_err e)
{
	struct uar_sched *sched = l->agg->rt->o.sched;

	uar_runtime_note_failure(l->agg->rt, e);
	refuse_callers(l->agg, e);
	l->again.fn = ask_again;
	if (l->agg->rt->draining || uar_timer_set(sched, &l->again, UAR_RETRY_US))
		finish_load(l, false);
}

static void session_ready(struct uar_thread_query *q)
{
	struct thread_load *l = UAR_OWNER(q, struct thread_load, session);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (!e) {
		l->agg->state.sequence = q->last_sequence;
		l->agg->unsure = false;
		e = ask_rows(l);
	}
	if (e)
		ask_or_wait(l, e);
}

/* It is in memory, so nobody else moves it on from here on. */
static uar_err ask_session(struct thread_load *l)
{
	struct agg *a = l->agg;
	struct uar_store *store = a->rt->o.store;

	l->session = (struct uar_thread_query){
		.owner = a->state.owner,
		.session_id = a->state.session_id,
		.done = session_ready,
	};
	return store->ops->thread(store, &l->session);
}

static void ask_again(struct uar_timer *t)
{
	struct thread_load *l = UAR_OWNER(t, struct thread_load, again);
	uar_err e = l->agg->unsure ? ask_session(l) : ask_rows(l);

	if (e)
		ask_or_wait(l, e);
}

static void rows_ready(struct uar_rows_query *q)
{
	struct thread_load *l = UAR_OWNER(q, struct thread_load, query);
	uar_err e = q->err;
	bool more = q->more;

	for (size_t i = 0; i < q->row_count && !e; i++)
		rt_threads_learn(l->agg, &q->rows[i]);
	if (!e && more)
		snprintf(l->after, sizeof l->after, "%.*s", UAR_FMT(q->next));
	uar_store_rows_fini(q);
	if (!e && !more) {
		finish_load(l, true);
		return;
	}
	if (!e)
		e = ask_rows(l);
	if (e)
		ask_or_wait(l, e);
}

void rt_threads_need(struct agg *a)
{
	struct thread_load *l;

	if (a->threads_known || a->threads_loading)
		return;
	l = uar_zalloc(sizeof *l);
	if (!l) {
		uar_runtime_note_failure(a->rt, UAR_ENOMEM);
		return;
	}
	l->agg = a;
	a->threads_loading = true;
	rt_agg_hold(a);
	rt_op_begin(a->rt, &l->under_way, drop_load);
	ask_again(&l->again);
}

/* --- facts ----------------------------------------------------------------------------------- */

/* The state of a run that may still be at the store; NULL: nothing is decided about it. */
static const struct uar_run *decided_state(const struct live_run *r)
{
	if (r->committed)
		return &r->state;
	UAR_LIST_EACH (it, &r->agg->row.batches) {
		const struct batch *b = UAR_OWNER(it, struct batch, node);

		if (b->run == r)
			return &b->r;
	}
	return NULL;
}

static void count_run(const struct live_run *r, struct uar_queue *q)
{
	const struct uar_run *state = decided_state(r);

	if (!state && r->found.listed) { /* it is being recovered, maybe not for the first time */
		q->busy |= r->found.was_at_work;
		q->length += !r->found.was_at_work;
	}
	if (!state || uar_status_terminal(state->status))
		return;
	if (state->status != UAR_STATUS_QUEUED) {
		q->busy = true;
		return;
	}
	if (q->listed < UAR_LIMIT_QUEUE_LISTED)
		q->at[q->listed++] = (struct uar_queued){ state->id.run_id, state->id.turn_id };
	q->length++;
}

static void clear_facts(const struct agg *a, uar_str thread_id, struct uar_queue *out)
{
	out->busy = false;
	out->listed = out->length = 0;
	out->paused = rt_queue_paused(a, thread_id);
}

void rt_queue_facts(struct agg *a, uar_str thread_id, struct uar_queue *out)
{
	clear_facts(a, thread_id, out);
	UAR_LIST_EACH (it, &a->runs) {
		const struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (uar_str_is(thread_id, r->thread_id))
			count_run(r, out);
	}
}

/* Runs of the thread besides r; of one that is being made only those before it. There may be
 * thousands, so they are not counted one by one. */
static size_t others_of(const struct live_run *r)
{
	const struct live_run *last = uar_map_get(&r->agg->rt->threads, r->thread_key);
	size_t behind;

	if (!last || last->agg != r->agg)
		return 0;
	behind = r->committed ? 0 : last->place.number - r->place.number;

	return last->place.in_thread > behind + 1 ? last->place.in_thread - behind - 1 : 0;
}

static void facts_for(struct agg *a, const struct live_run *self, struct uar_queue *out)
{
	uar_str thread_id = uar_str_c(self->thread_id);
	struct uar_list *it = a->runs.next;
	size_t others;

	clear_facts(a, thread_id, out);
	for (; it != &a->runs && out->listed < UAR_LIMIT_QUEUE_LISTED; it = it->next) {
		const struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (r == self && !self->committed)
			return;
		if (r != self && uar_str_is(thread_id, r->thread_id))
			count_run(r, out);
	}
	others = others_of(self) - (out->busy && others_of(self));
	if (it != &a->runs && others > out->length)
		out->length = others;
}

static bool needs_queue(const struct agg *a, struct live_run *r, const struct uar_run *state,
			enum uar_command_kind kind)
{
	uar_str thread_id = uar_str_c(r->thread_id);

	if (kind == UAR_CMD_CREATE)
		return r->node.prev != &a->runs || rt_queue_paused(a, thread_id);
	if (state->status != UAR_STATUS_QUEUED)
		return false;
	return state->in_queue || rt_queue_paused(a, thread_id);
}

const struct uar_queue *rt_queue_of(struct agg *a, struct live_run *r, const struct uar_run *state,
				    enum uar_command_kind kind)
{
	if (!needs_queue(a, r, state, kind))
		return NULL;
	facts_for(a, r, &a->rt->queue);
	return &a->rt->queue;
}

struct live_run *rt_thread_at_work(struct agg *a, uar_str thread_id)
{
	struct live_run *r = rt_thread_active(a, thread_id);

	return r && r->committed && r->state.status != UAR_STATUS_QUEUED ? r : NULL;
}

/* The run of the thread that waits for an answer; NULL: none does. */
static const struct live_run *asking_run(struct agg *a, uar_str thread_id, struct uar_held_up *out)
{
	const struct live_run *r = rt_thread_at_work(a, thread_id);
	const struct uar_run_actions *asked = r ? &uar_run_rare(&r->state)->actions : NULL;

	if (!asked || !asked->open_count)
		return NULL;
	uar_action_id(uar_str_c(r->run_id), asked->open[0].number, out->action_id);
	snprintf(out->run_id, sizeof out->run_id, "%s", r->run_id);
	out->open = asked->open_count;
	return r;
}

uar_err rt_thread_answered(struct agg *a, uar_str thread_id, struct uar_error *error)
{
	struct uar_held_up by;

	if (!asking_run(a, thread_id, &by))
		return UAR_OK;
	return uar_error_set(error, UAR_EWAITING,
			     "run %s of this thread waits for an answer to %s (%zu open): answer "
			     "it, or cancel the run, then send the message again",
			     by.run_id, by.action_id, by.open);
}

bool uar_runtime_held_up(const struct uar_runtime *rt, const struct uar_owner *owner,
			 uar_str run_id, struct uar_held_up *out)
{
	const struct live_run *r = rt_run_find(rt, owner, run_id);

	return r && r->state.status == UAR_STATUS_QUEUED &&
	       asking_run(r->agg, uar_str_c(r->thread_id), out);
}
