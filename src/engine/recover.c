/* recover.c - after a start: every run that is not over is read and goes on.
 *
 * The list of live runs comes from the store's read model; each run is then
 * folded from its own events, a bounded number at a time. One that cannot be
 * read is tried again, later and later; when that does not help, its row is
 * enough to end it as lost, and if not even that is possible it is left alone,
 * and whoever asks for it is told so. Ending it is kept beside quarantine: without it nobody who
 * follows the run would see an end, and no runtime.error (EVT-070) would be recorded. */
#include "engine/engine_int.h"
#include "engine/limits.h"
#include "event/limits.h"

struct load {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct live_run *run;
	struct uar_thread_query session;
	struct uar_runs_query row; /* of a run that is given up */
	struct uar_read read;
	struct uar_session s; /* for the fold; its sequence is not the session's last */
	uint64_t last;	      /* given up: run_sequence of the last event found */
	int64_t begun_us;
};

static void pump(struct uar_runtime *rt);

/* Nobody knows where the session stands: whoever waits for it is told. */
static void give_up(struct agg *a, uar_err e)
{
	while (!uar_list_empty(&a->queue))
		rt_run_over(UAR_OWNER(a->queue.next, struct cmd, node)->run, e);
	rt_control_refuse(a, e);
}

/* It stays in the store as it is, and its thread goes on without it. */
static void not_recovered(struct live_run *r, uar_err e, const char *why)
{
	struct agg *a = r->agg;

	rt_log_run(r, UAR_LOG_ERROR, "run.not_recovered", why);
	rt_agg_hold(a);
	if (a->loading)
		give_up(a, e);
	rt_run_quarantine(r, e);
	rt_agg_drop(a);
}

static void free_load(struct load *l)
{
	l->rt->recovery.reading--;
	rt_op_end(&l->under_way);
	uar_free(l);
}

static void drop(struct rt_op *under_way)
{
	struct load *l = UAR_OWNER(under_way, struct load, under_way);

	if (l->row.rows)
		uar_store_query_fini(&l->row);
	uar_free(l);
}

static void reload_task(struct uar_task *t)
{
	pump(UAR_OWNER(t, struct uar_runtime, recovery.reload_now));
}

static void reload_timer(struct uar_timer *t)
{
	pump(UAR_OWNER(t, struct uar_runtime, recovery.reload));
}

/* The next process reads what is not read yet. Who waits for a session is told; nobody comes to
 * wait any more. */
void rt_recover_stop(struct uar_runtime *rt)
{
	struct agg *a;
	size_t at = 0;

	while (!uar_list_empty(&rt->recovery.to_load))
		uar_list_remove(rt->recovery.to_load.next);
	while ((a = uar_map_next(&rt->sessions, &at)))
		if (a->loading) { /* which keeps it: the run to be read is in it */
			rt_agg_hold(a);
			give_up(a, UAR_EDRAINING);
			rt_agg_drop(a);
		}
	at = 0;
	while ((a = uar_map_next(&rt->sessions, &at)))
		rt_awake(a, UAR_EDRAINING);
}

/* Read from its beginning, later: the shortage may pass. */
static void again(struct live_run *r)
{
	struct uar_runtime *rt = r->agg->rt;

	if (rt->draining)
		return;
	uar_run_fini(&r->state);
	uar_run_init(&r->state);
	uar_list_add_last(&rt->recovery.to_load, &r->load_node);
	rt->recovery.reload.fn = reload_timer;
	rt->recovery.reload_now.fn = reload_task;
	if (uar_timer_set(rt->o.sched, &rt->recovery.reload, UAR_RETRY_US))
		uar_post(rt->o.sched, &rt->recovery.reload_now);
}

static void reload_run(struct uar_timer *t)
{
	struct live_run *r = UAR_OWNER(t, struct live_run, reload);

	if (r->agg->rt->draining)
		return;
	uar_list_add_last(&r->agg->rt->recovery.to_load, &r->load_node);
	pump(r->agg->rt);
}

/* Again after a while, each time a longer one. Who waits for its session does not. */
static void try_later(struct live_run *r, uar_err e, const char *why)
{
	struct agg *a = r->agg;
	int64_t wait = (int64_t)UAR_RETRY_US << r->load_tries;

	rt_log_run(r, UAR_LOG_WARN, "run.recovery_failed", why);
	r->load_tries++;
	uar_run_fini(&r->state);
	uar_run_init(&r->state);
	r->reload.fn = reload_run;
	if (a->loading) {
		rt_agg_hold(a);
		give_up(a, e);
		rt_agg_drop(a);
	}
	if (uar_timer_set(a->rt->o.sched, &r->reload, wait))
		again(r);
}

static void refused(struct live_run *r, uar_err e, const char *why)
{
	if (r->load_tries <= UAR_LIMIT_LOAD_TRIES)
		try_later(r, e, why);
	else
		not_recovered(r, e, why);
}

/* Its session's commands wait for the first try to read each of its runs. */
static void note_read(struct live_run *r)
{
	if (!r->found.unread)
		return;
	r->found.unread = false;
	r->agg->unread--;
	rt_agg_kick(r->agg);
}

/* Who waits for the session goes on, and it may leave memory again. */
static void let_go(struct agg *a)
{
	if (!a->unread)
		rt_awake(a, UAR_OK);
	rt_agg_drop(a);
}

static void gone(struct load *l, uar_err e, const struct uar_error *error)
{
	const char *why = error->text[0] ? error->text : uar_err_text(e);
	struct uar_error copy = *error; /* it may be a part of l */
	struct uar_runtime *rt = l->rt;
	struct live_run *r = l->run;
	struct agg *a = r->agg;

	if (why == error->text)
		why = copy.text;
	free_load(l);
	rt_agg_hold(a);
	note_read(r);
	if (rt_worth_retrying(e))
		again(r);
	else
		refused(r, e, why);
	let_go(a);
	pump(rt);
}

/* It left memory and comes back as it was: nothing has happened. */
static bool goes_on_waiting(const struct live_run *r)
{
	return r->found.woken &&
	       (r->state.status == UAR_STATUS_QUEUED ||
		(uar_status_waits(r->state.status) && uar_run_may_leave(&r->state)));
}

static void loaded(struct load *l)
{
	struct uar_runtime *rt = l->rt;
	struct live_run *r = l->run;
	struct uar_command recover = { .kind = UAR_CMD_RECOVER };
	struct agg *a = r->agg;

	rt_agg_hold(a);
	recover.took_us = uar_clock_mono(rt->o.sched->clock) - l->begun_us;
	free_load(l);
	if (uar_status_terminal(r->state.status)) {
		not_recovered(r, UAR_ECORRUPT,
			      "its row says it goes on, its events that it is over");
	} else {
		r->committed = true;
		rt_account_join(r);
		r->restarted = r->state.status != UAR_STATUS_QUEUED;
		rt->stats.recovered++;
		note_read(r);
		/* A queued one starts when its turn has come, as always. Behind the first
		 * of its thread it says nothing: there may be thousands. */
		if (!rt->draining && !goes_on_waiting(r) &&
		    (r->state.status != UAR_STATUS_QUEUED ||
		     rt_thread_active(r->agg, uar_str_c(r->thread_id)) == r))
			rt_send(r, &recover);
		if (!rt->draining && !goes_on_waiting(r) && r->state.what.task_made)
			rt_attempt_recovered(r);
	}
	let_go(a);
	pump(rt);
}

static void page_ready(struct uar_read *read);

static uar_err read_page(struct load *l)
{
	struct uar_store *store = l->rt->o.store;

	l->read = (struct uar_read){
		.owner = l->s.owner,
		.run_id = uar_str_c(l->run->run_id),
		.after = l->run->state.run_sequence,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	return store->ops->read(store, &l->read);
}

static uar_err fold_page(struct load *l, struct uar_error *error)
{
	uar_err e = l->read.err;

	*error = l->read.error;
	for (size_t i = 0; i < l->read.event_count && !e; i++)
		e = uar_core_fold(&l->s, &l->run->state, &l->read.events[i], &l->read.arena, error);
	return e;
}

static void page_ready(struct uar_read *read)
{
	struct load *l = UAR_OWNER(read, struct load, read);
	struct uar_error error = { 0 };
	uar_err e = fold_page(l, &error);
	bool more = read->more;

	uar_store_read_fini(read);
	if (!e && more)
		e = read_page(l);
	if (e)
		gone(l, e, &error);
	else if (!more)
		loaded(l);
}

/* --- a run that cannot be read ---------------------------------------------------------- */

static void lose(struct load *l)
{
	struct uar_runtime *rt = l->rt;
	struct live_run *r = l->run;
	struct uar_command lost = { .kind = UAR_CMD_LOST };

	lost.fail = (struct uar_failure){ UAR_STR("LOST"),
					  UAR_STR("what the run did cannot be read any more"),
					  UAR_STR("lost"), true };
	uar_store_query_fini(&l->row);
	free_load(l);
	if (rt->draining)
		return;
	rt_log_run(r, UAR_LOG_ERROR, "run.lost", "its events cannot be read: it is ended");
	r->committed = true;
	rt_send(r, &lost);
	pump(rt);
}

static void tail_ready(struct uar_read *read);

/* Behind its row's last change a run may have said more: its end follows the last. */
static uar_err read_tail(struct load *l)
{
	struct uar_store *store = l->rt->o.store;

	l->read = (struct uar_read){
		.owner = l->s.owner,
		.run_id = uar_str_c(l->run->run_id),
		.after = l->last,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = tail_ready,
	};
	return store->ops->read(store, &l->read);
}

static void tail_ready(struct uar_read *read)
{
	struct load *l = UAR_OWNER(read, struct load, read);
	struct uar_error error = read->error;
	uar_err e = read->err;
	bool more = read->more;

	if (!e && read->event_count)
		l->last = read->events[read->event_count - 1].run_sequence;
	uar_store_read_fini(read);
	if (!e && more)
		e = read_tail(l);
	else if (!e)
		e = uar_core_from_row(&l->row.rows[0], l->last, &l->row.arena, &l->run->state);
	if (e) {
		uar_store_query_fini(&l->row);
		gone(l, e, &error);
	} else if (!more) {
		lose(l);
	}
}

static void row_ready(struct uar_runs_query *q)
{
	struct load *l = UAR_OWNER(q, struct load, row);
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e) {
		l->last = q->rows[0].last_run_sequence;
		e = read_tail(l);
	}
	if (e) {
		uar_store_query_fini(q);
		gone(l, e, &error);
	}
}

static uar_err ask_row(struct load *l)
{
	struct uar_store *store = l->rt->o.store;

	l->row = (struct uar_runs_query){
		.owner = l->s.owner,
		.run_id = uar_str_c(l->run->run_id),
		.limit = 1,
		.done = row_ready,
	};
	return store->ops->runs(store, &l->row);
}

/* --- begin ------------------------------------------------------------------------------- */

static void session_ready(struct uar_thread_query *q)
{
	struct load *l = UAR_OWNER(q, struct load, session);
	struct agg *a = l->run->agg;
	struct uar_error error = q->error; /* q goes with l */
	uar_err e = q->err;

	if (!e && a->loading) {
		a->state.sequence = q->last_sequence;
		a->loading = false;
		rt_agg_kick(a);
	}
	if (!e)
		e = l->run->load_tries > UAR_LIMIT_LOAD_TRIES ? ask_row(l) : read_page(l);
	if (e)
		gone(l, e, &error);
}

static uar_err begin(struct uar_runtime *rt, struct live_run *r)
{
	struct load *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->rt = rt;
	l->run = r;
	l->begun_us = uar_clock_mono(rt->o.sched->clock);
	l->s = r->agg->state;
	l->s.sequence = 0;
	l->session = (struct uar_thread_query){
		.owner = r->agg->state.owner,
		.session_id = r->agg->state.session_id,
		.done = session_ready,
	};
	e = rt->o.store->ops->thread(rt->o.store, &l->session);
	if (e) {
		uar_free(l);
		return e;
	}
	rt->recovery.reading++;
	rt_op_begin(rt, &l->under_way, drop);
	return UAR_OK;
}

/* From then on a run that is woken changes nothing about it, and sessions leave memory: those that
 * were ready to before, too. */
static void note_over(struct uar_runtime *rt)
{
	struct agg *a;
	size_t at = 0;

	if (rt->recovery.over || !rt->recovery.enumerated || rt->recovery.reading ||
	    !uar_list_empty(&rt->recovery.to_load))
		return;
	rt->recovery.over = true;
	while ((a = uar_map_next(&rt->sessions, &at))) {
		rt_agg_hold(a);
		rt_agg_drop(a);
	}
}

static void pump(struct uar_runtime *rt)
{
	uar_err e = UAR_OK;

	while (!e && !rt->draining && rt->recovery.reading < UAR_LIMIT_LOAD_AT_ONCE &&
	       !uar_list_empty(&rt->recovery.to_load)) {
		struct live_run *r =
			UAR_OWNER(rt->recovery.to_load.next, struct live_run, load_node);
		struct agg *a = r->agg;

		rt_agg_hold(a);
		uar_list_remove(&r->load_node);
		e = begin(rt, r);
		if (e)
			note_read(r);
		if (e && rt_worth_retrying(e)) {
			again(r);
		} else if (e) {
			refused(r, e, uar_err_text(e));
			e = UAR_OK;
		}
		if (a->unread)
			rt_agg_drop(a);
		else
			let_go(a);
	}
	note_over(rt);
}

void rt_recover_pump(struct uar_runtime *rt)
{
	pump(rt);
}

/* A run that only waits, until the rest of its session is known. */
struct listed_run {
	struct listed_run *next;
	struct uar_run_row row; /* what the store tells of one that waits */
};

struct listing {
	struct uar_runtime *rt;
	struct uar_arena arena; /* of the session that is being listed */
	struct uar_owner owner;
	uar_str session_id; /* .p NULL: none yet */
	struct listed_run *first, **last;
	bool busy; /* the session has a run that does not only wait */
	uar_err err;
	struct uar_error *error;
	bool waits; /* a run waits for an answer */
};

uar_err rt_recover_add(struct uar_runtime *rt, const struct uar_run_row *row, bool woken)
{
	struct agg *a = rt_agg_find(rt, &row->owner, row->session_id);
	struct live_run *r;
	uar_err e = UAR_OK;

	if (!a) {
		e = rt_agg_make(rt, &row->owner, row->session_id, 0, &a);
		if (e)
			return e;
		a->loading = true;
		a->threads_known = false;
	}
	e = rt_run_make(a, row->run_id, row->thread_id, &r);
	if (e)
		return e;
	r->found.was_at_work = !uar_str_is(row->status, "queued");
	r->found.listed = true;
	r->found.unread = true;
	r->found.woken = woken;
	a->unread++;
	uar_list_add_last(&rt->recovery.to_load, &r->load_node);
	return UAR_OK;
}

static bool only_waits(const struct uar_run_row *row)
{
	return uar_str_is(row->listed.waits, UAR_WAITS_PERMISSION) ||
	       uar_str_is(row->listed.waits, UAR_WAITS_INPUT);
}

static void recover_row(struct listing *l, const struct uar_run_row *row)
{
	if (l->err)
		return;
	l->err = rt_recover_add(l->rt, row, false);
	if (l->err)
		uar_error_set(l->error, l->err, "run %.*s cannot be recovered: %s",
			      UAR_FMT(row->run_id), uar_err_text(l->err));
}

/* Runs that wait are not brought into memory, unless something else of their session is. */
static void end_session(struct listing *l)
{
	for (struct listed_run *r = l->first; r; r = r->next)
		if (l->busy || !rt_park_row(l->rt, &r->row))
			recover_row(l, &r->row);
	l->first = NULL;
	l->last = &l->first;
}

static void begin_session(struct listing *l, const struct uar_run_row *row)
{
	end_session(l);
	uar_arena_reset(&l->arena);
	l->busy = false;
	l->session_id = uar_arena_str(&l->arena, row->session_id);
	if (!l->session_id.p || !uar_owner_copy(&l->arena, &row->owner, &l->owner))
		l->err = UAR_ENOMEM;
}

static void keep_row(struct listing *l, const struct uar_run_row *row)
{
	struct listed_run *r = uar_arena_alloc(&l->arena, sizeof *r);

	if (!r) {
		l->err = UAR_ENOMEM;
		return;
	}
	*r = (struct listed_run){ .row = { .owner = l->owner,
					   .session_id = l->session_id,
					   .run_id = uar_arena_str(&l->arena, row->run_id),
					   .thread_id = uar_arena_str(&l->arena, row->thread_id),
					   .status = uar_arena_str(&l->arena, row->status) } };
	if (!r->row.run_id.p || !r->row.thread_id.p || !r->row.status.p)
		l->err = UAR_ENOMEM;
	*l->last = r;
	l->last = &r->next;
}

/* Rows come session by session. */
static void each_live(void *ctx, const struct uar_run_row *row)
{
	struct listing *l = ctx;

	if (l->err)
		return;
	l->waits |= row->listed.waits.n > 0;
	if (!l->rt->o.park) {
		recover_row(l, row);
		return;
	}
	if (!uar_str_eq(row->session_id, l->session_id) || !uar_owner_eq(&row->owner, &l->owner))
		begin_session(l, row);
	if (l->err)
		return;
	if (!l->busy && only_waits(row)) {
		keep_row(l, row);
		return;
	}
	l->busy = true;
	end_session(l);
	recover_row(l, row);
}

/* A queue may be held, or have another order than that of creation. Nothing is asked of the
 * store before all runs are listed: a listing that fails leaves nothing under way. */
static void load_queues(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->recovery.to_load) {
		struct live_run *r = UAR_OWNER(it, struct live_run, load_node);

		if (!r->found.was_at_work)
			rt_threads_need(r->agg);
	}
}

uar_err uar_runtime_recover(struct uar_runtime *rt, struct uar_error *error)
{
	struct listing l = { .rt = rt, .error = error };
	struct uar_store *store = rt->o.store;
	uar_err e;

	l.last = &l.first;
	uar_arena_init(&l.arena, 0);
	e = store->ops->each_live(store, each_live, &l, error);
	if (!e && !l.err)
		end_session(&l);
	uar_arena_fini(&l.arena);
	if (!e)
		e = l.err;
	if (e)
		return e;
	rt->recovery.enumerated = true;
	load_queues(rt);
	if (l.waits) /* for an answer, which may be due */
		rt_due_begin(rt);
	pump(rt);
	rt_attempts_recover(rt);
	return rt_retain_all(rt, error);
}
