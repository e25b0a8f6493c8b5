/* batch.c - the walk of commands: decide on copies, append, then move.
 *
 * A batch takes the waiting commands of one run. Until the store has made its
 * events durable nothing in memory has changed; afterwards, in this order, the
 * copies become the state, readers are told, requests are answered, effects
 * begin. If the append fails the copies are thrown away and nobody was told. */
#include "engine/batch.h"

#include "core/budget.h"
#include "engine/limits.h"

enum {
	BATCH_EVENTS = UAR_DECISION_EVENTS / 2, /* no further command beyond */
	SCRATCH_BYTES = 1 << 16,		/* that deciding keeps for the next time */
};

static void drop_batch(struct batch *b)
{
	UAR_LIST_EACH (it, &b->cmds)
		rt_cmd_free(UAR_OWNER(it, struct cmd, node));
	if (!b->run->committed)
		uar_run_fini(&b->r);
	uar_list_remove(&b->node);
	rt_batch_put(b->agg->rt, b);
}

void rt_batch_drop(struct agg *a)
{
	UAR_LIST_EACH (it, &a->row.batches)
		drop_batch(UAR_OWNER(it, struct batch, node));
	a->row.count = 0;
	UAR_LIST_EACH (it, &a->row.again)
		rt_cmd_free(UAR_OWNER(it, struct cmd, node));
}

/* Takes what waits for r out of the queue before r goes away. */
static void purge(struct live_run *r, struct uar_list *out)
{
	struct agg *a = r->agg;

	UAR_LIST_EACH (it, &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		if (c->run == r)
			rt_cmd_move(c, out);
	}
}

/* The next turn of a conversation begins when the one before it is over. */
void rt_start_next(struct agg *a, uar_str thread_id)
{
	struct live_run *next = rt_thread_active(a, thread_id);
	struct uar_command start = { .kind = UAR_CMD_START };

	if (!next || !next->committed || next->state.status != UAR_STATUS_QUEUED || a->rt->draining)
		return;
	if (rt_queue_paused(a, thread_id))
		return;
	if (next->state.what.entry != UAR_ENTRY_PLUGIN ||
	    rt_worker_may_begin(next, next->state.what.plugin_id, next->state.what.entry_id)) {
		if (next->state.what.task_made)
			rt_attempt_start(next);
		else
			rt_send(next, &start);
	}
}

void rt_run_over(struct live_run *r, uar_err why)
{
	struct agg *a = r->agg;
	struct uar_runtime *rt = a->rt;
	char thread_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_list late;

	memcpy(thread_id, r->thread_id, sizeof thread_id);
	uar_list_init(&late);
	purge(r, &late);
	rt_run_free(r);
	rt_start_next(a, uar_str_c(thread_id));
	UAR_LIST_EACH (it, &late) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);
		struct uar_error error = { .code = why };

		c->run = NULL;
		rt->stats.refused++;
		rt_cmd_answer(c, why, &error);
	}
}

/* --- decide ---------------------------------------------------------------- */

static uar_err complete_command(struct batch *b, struct cmd *c, struct uar_error *error)
{
	if (c->c.kind == UAR_CMD_TEXT || c->c.kind == UAR_CMD_REASONING) {
		c->c.text = uar_buf_str(&c->text);
		return UAR_OK;
	}
	if (c->c.kind == UAR_CMD_REPLAY)
		return uar_json_parse(uar_buf_str(&c->text), NULL, &b->arena, &c->c.replay.event,
				      error);
	return UAR_OK;
}

/* A refusal by the table concerns that command alone; anything else the batch. */
static uar_err decide_one(struct batch *b, struct cmd *c, int64_t now_us, struct uar_error *error)
{
	struct uar_shared shared;
	struct uar_core_env env = {
		.now_us = now_us,
		.ids = &b->agg->rt->ids,
		.arena = &b->arena,
		.buf = &b->buf,
		.scratch = &b->agg->rt->scratch,
		.queue = rt_queue_of(b->agg, b->run, &b->r, c->c.kind),
	};

	c->first_event = b->d.event_count;
	c->err = complete_command(b, c, &c->error);
	c->c.shared = b->run->account ? rt_account_facts(b->run, now_us, &shared) : NULL;
	if (!c->err)
		c->err = uar_core_decide(&env, &b->s, &b->r, &c->c, &b->d, &c->error);
	c->event_count = b->d.event_count - c->first_event;
	if (c->err == UAR_OK || c->err == UAR_ESTATE)
		return UAR_OK;
	*error = c->error;
	error->code = c->err;
	return c->err;
}

static bool takes_more(const struct batch *b)
{
	const struct agg *a = b->agg;

	if (!uar_list_empty(&a->queue) && uar_list_empty(&b->cmds))
		return true; /* whatever its size, or nothing would ever happen */
	return !uar_list_empty(&a->queue) && !a->careful && b->d.event_count < BATCH_EVENTS &&
	       b->arena.used < UAR_LIMIT_BATCH_BYTES &&
	       UAR_OWNER(a->queue.next, struct cmd, node)->run == b->run;
}

static uar_err decide_all(struct batch *b, struct uar_error *error)
{
	struct agg *a = b->agg;
	int64_t now_us = uar_clock_wall(a->rt->o.sched->clock);
	uar_err e = UAR_OK;

	while (!e && takes_more(b)) {
		struct cmd *c = UAR_OWNER(a->queue.next, struct cmd, node);

		rt_cmd_move(c, &b->cmds);
		e = decide_one(b, c, now_us, error);
	}
	a->careful -= a->careful > 0;
	if (a->rt->scratch.used > SCRATCH_BYTES)
		uar_arena_fini(&a->rt->scratch);
	return e;
}

/* --- after the commit -------------------------------------------------------- */

/* The next events in a row that are the run's; 0: there are none. Facts of the thread
 * may stand between them. */
static size_t next_of_run(const struct uar_decision *d, size_t *from)
{
	size_t n = d->event_count, to;

	while (*from < n && !d->events[*from].run_sequence)
		(*from)++;
	for (to = *from; to < n && d->events[to].run_sequence; to++)
		;
	return to - *from;
}

static void publish(const struct rt_moved *m)
{
	struct uar_runtime *rt = m->run->agg->rt;
	const struct uar_event *events = m->d->events;
	size_t last = m->d->event_count - 1, from = 0, n;

	while ((n = next_of_run(m->d, &from))) {
		struct rt_commit c = { m->run->run_key, events + from, n, m->row };

		rt_parts_committed(rt, &c);
		uar_bus_publish(rt->bus, m->run->run_key, events + from, n,
				events[from + n - 1].run_sequence);
		from += n;
	}
	uar_bus_publish(rt->bus, m->run->agg->key, events, m->d->event_count,
			events[last].sequence);
	rt_session_advanced(m->run->agg, &events[0], &events[last]);
}

static void tell_watches(const struct rt_moved *m, bool added)
{
	struct uar_commit c = {
		.owner = &m->run->agg->state.owner,
		.run = &m->run->state,
		.events = m->d->events,
		.event_count = m->d->event_count,
		.added = added,
		.changed = m->row != NULL,
	};

	UAR_LIST_EACH (it, &m->run->agg->rt->watches) {
		struct uar_watch *w = UAR_OWNER(it, struct uar_watch, node);

		w->fn(w->ctx, &c);
	}
}

static void count_end(struct uar_runtime *rt, enum uar_status status)
{
	uint64_t *counter = status == UAR_STATUS_COMPLETED   ? &rt->stats.completed
			    : status == UAR_STATUS_CANCELLED ? &rt->stats.cancelled
			    : status == UAR_STATUS_TIMED_OUT ? &rt->stats.timed_out
							     : &rt->stats.failed;

	(*counter)++;
}

static void answer_all(struct batch *b, uar_err e, const struct uar_error *error)
{
	UAR_LIST_EACH (it, &b->cmds) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		uar_list_remove(&c->node);
		if (c->err) {
			b->agg->rt->stats.refused++;
			rt_cmd_answer(c, c->err, &c->error);
		} else {
			c->events = b->d.events ? b->d.events + c->first_event : NULL;
			rt_cmd_answer(c, e, error);
		}
	}
}

static void end_run(struct live_run *r)
{
	struct uar_runtime *rt = r->agg->rt;

	count_end(rt, r->state.status);
	rt_log_run(r, UAR_LOG_DEBUG, "run.ended", uar_status_text(r->state.status));
	rt_retain(rt, &r->agg->state.owner);
	if (r->state.what.task_made)
		rt_attempt_ended(r);
	rt_fanout_ended(r);
	rt_run_over(r, UAR_ESTATE);
}

/* Did the run say that it waits, or that it goes on? */
static bool says_waiting(const struct uar_decision *d)
{
	for (size_t i = 0; i < d->event_count; i++)
		if (d->events[i].cls == UAR_EV_TASK_WAITING ||
		    d->events[i].cls == UAR_EV_TASK_RESUMED)
			return true;
	return false;
}

static void follow_run(struct live_run *r)
{
	if (r->state.what.task_made)
		rt_attempt_follow(r);
	if (rt_fanout_is_child(r))
		rt_fanout_follow(r);
}

void rt_moved_perform(const struct rt_moved *m)
{
	struct live_run *r = m->run;

	for (size_t i = 0; i < m->d->effect_count; i++)
		rt_effect(r, m->d->effects[i]);
	if (uar_status_terminal(r->state.status))
		end_run(r);
	else if (r->state.status == UAR_STATUS_QUEUED)
		rt_start_next(r->agg, uar_str_c(r->thread_id));
	else if ((r->state.what.task_made || rt_fanout_is_child(r)) && says_waiting(m->d))
		follow_run(r);
}

void rt_moved_tell(const struct rt_moved *m)
{
	struct agg *a = m->run->agg;
	bool added = !m->run->committed;

	a->state.sequence = m->d->events[m->d->event_count - 1].sequence;
	m->copy->row_changed = false;
	uar_run_take(&m->run->state, m->copy);
	m->run->committed = true;
	if (added && m->run->state.what.budgets.n)
		rt_account_join(m->run);
	rt_account_follow(m->run, &m->run->state);
	a->rt->stats.events += m->d->event_count;
	a->rt->stats.batches++;
	publish(m);
	tell_watches(m, added);
}

/* --- the walk ------------------------------------------------------------------ */

/* Whoever of the session was held back goes on, not only who wrote the last facts. */
static void resume_sources(struct agg *a)
{
	if (!a->held || a->queued >= UAR_LIMIT_RUN_PENDING / 8 || !rt_has_room(a))
		return;
	a->held = false;
	UAR_LIST_EACH (it, &a->runs) {
		struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (r->worker)
			r->worker->ops->flow(r->worker);
	}
}

/* Who waits longest goes next, and keeps its place until it has begun. Called for each
 * batch that is over, and for each session that was let in, so that nobody is forgotten. */
static void let_in(struct uar_runtime *rt)
{
	if (!uar_list_empty(&rt->crowd) && rt->in_flight < UAR_LIMIT_RUN_BATCHES)
		uar_post(rt->o.sched, &UAR_OWNER(rt->crowd.next, struct agg, crowd)->task);
}

static void wait_in_crowd(struct agg *a)
{
	if (uar_list_empty(&a->crowd))
		uar_list_add_last(&a->rt->crowd, &a->crowd);
}

static void finish(struct batch *b)
{
	struct agg *a = b->agg;
	struct uar_runtime *rt = a->rt;

	rt_batch_put(rt, b);
	rt_batch_mend_row(a);
	resume_sources(a);
	let_in(rt);
	rt_agg_kick(a);
	rt_agg_drop(a); /* the batch's hold */
	rt_maybe_drained(rt);
}

static void pass_taken(struct batch *b)
{
	UAR_LIST_EACH (it, &b->cmds)
		UAR_OWNER(it, struct cmd, node)->taken = b->append.taken;
}

/* One line when space runs out and one when it is back, not one an append. A refusal for
 * any other reason has written nothing, and knows nothing of space. */
static void note_space(struct uar_runtime *rt, uar_err e)
{
	bool full = e == UAR_EDISKFULL;

	if (full == rt->shortage.of_space || (e && !full))
		return;
	rt->shortage.of_space = full;
	uar_log(rt->o.log, full ? UAR_LOG_WARN : UAR_LOG_INFO, full ? "store.full" : "store.space",
		{ "detail", uar_str_c(full ? "new facts are refused until there is space"
					   : "new facts are taken again") });
}

static void note_due(const struct batch *b)
{
	for (size_t i = 0; i < b->d.row_count; i++)
		rt_due_note(b->agg->rt, b->d.rows[i].due_us);
}

static void appended(struct uar_append *append)
{
	struct batch *b = UAR_OWNER(append, struct batch, append);
	struct rt_moved moved = { b->run, &b->r, &b->d, append->run };

	note_space(b->agg->rt, append->err);
	if (append->err) {
		pass_taken(b);
		rt_batch_abort(b, append->err, &append->error);
	} else {
		rt_batch_leave(b);
		rt_moved_tell(&moved);
		note_due(b);
		answer_all(b, UAR_OK, NULL);
		rt_moved_perform(&moved);
	}
	finish(b);
}

static const struct uar_key_row *key_of(const struct batch *b)
{
	return UAR_OWNER(b->cmds.next, struct cmd, node)->key;
}

/* An event of ours that breaks its own rules is our fault, not the caller's. */
static uar_err refused(const struct batch *b, uar_err e, struct uar_error *error)
{
	if (e != UAR_EINVALID && e != UAR_ESCHEMA) {
		*error = b->append.error;
		error->code = e;
		return e;
	}
	if (!uar_time_usable(b->d.events[0].time_us)) /* it passes once the clock is set */
		return uar_error_set(error, UAR_ECLOCK, "%s", uar_err_text(UAR_ECLOCK));
	return uar_error_set(error, UAR_EINTERNAL, "an event breaks its rules at %s: %s",
			     b->append.error.where, b->append.error.text);
}

/* The number of the session's last event once all that is at the store is durable. */
static uint64_t last_decided(const struct agg *a)
{
	if (uar_list_empty(&a->row.batches))
		return a->state.sequence;
	return UAR_OWNER(a->row.batches.prev, struct batch, node)->s.sequence;
}

static uar_err send_append(struct batch *b, struct uar_error *error)
{
	struct agg *a = b->agg;
	struct uar_append *append = &b->append;
	uar_err e = UAR_OK;

	_Static_assert(offsetof(struct uar_append, error) + sizeof append->error +
				       _Alignof(struct uar_append) >
			       sizeof *append,
		       "what follows the error would not be cleared");
	memset(append, 0, offsetof(struct uar_append, error));
	uar_error_clear(&append->error);
	append->owner = a->state.owner;
	append->session_id = a->state.session_id;
	append->after = last_decided(a);
	append->events = b->d.events;
	append->event_count = b->d.event_count;
	append->rows = b->d.rows;
	append->row_count = b->d.row_count;
	append->key = key_of(b);
	append->done = appended;
	if (b->r.row_changed) {
		e = uar_core_row(&b->s, &b->r, &b->buf, &b->arena, &b->row);
		append->run = &b->row;
	}
	if (!e)
		e = a->rt->o.store->ops->append(a->rt->o.store, append);
	if (e)
		return refused(b, e, error);
	uar_list_add_last(&a->row.batches, &b->node);
	a->row.count++;
	a->rt->in_flight++;
	return UAR_OK;
}

static struct batch *open_batch(struct agg *a)
{
	struct batch *b = rt_batch_take(a->rt);

	if (!b)
		return NULL;
	b->agg = a;
	b->run = UAR_OWNER(a->queue.next, struct cmd, node)->run;
	if (uar_run_copy(&b->r, &b->run->state)) {
		rt_batch_put(a->rt, b);
		return NULL;
	}
	b->s = a->state;
	b->s.sequence = last_decided(a);
	b->d = (struct uar_decision){ 0 };
	uar_list_init(&b->cmds);
	return b;
}

/* One decision of a session waits for the commit of the one before it, but for the creation of a
 * run: that depends on nothing but the last number, so that any number of runs can be created in
 * one commit, in one conversation as in many. */
bool rt_batch_can_begin(const struct agg *a)
{
	const struct cmd *first = UAR_OWNER(a->queue.next, struct cmd, node);

	if (uar_list_empty(&a->queue))
		return false;
	return !a->row.count || (first->c.kind == UAR_CMD_CREATE && !a->row.broken && !a->careful &&
				 a->row.count < UAR_LIMIT_SESSION_BATCHES);
}

/* False: nothing was begun that is not over. */
static bool begin_batch(struct agg *a)
{
	struct uar_error error = { 0 };
	struct batch *b = open_batch(a);
	uar_err e;

	if (!b) {
		uar_runtime_note_failure(a->rt, UAR_ENOMEM);
		rt_agg_later(a);
		return false;
	}
	rt_agg_hold(a);
	e = decide_all(b, &error);
	if (!e && b->d.event_count)
		e = send_append(b, &error);
	if (!e && b->d.event_count) {
		rt_account_follow(b->run, &b->r);
		rt_account_written(b->run, true);
		return true;
	}
	if (e)
		rt_batch_abort(b, e, &error);
	else
		answer_all(b, UAR_OK, NULL); /* every command was refused by the table */
	finish(b);
	return false;
}

void rt_batch_begin(struct agg *a)
{
	struct uar_runtime *rt = a->rt;
	bool more = rt_batch_can_begin(a);

	if (!more || rt->in_flight < UAR_LIMIT_RUN_BATCHES)
		uar_list_remove(&a->crowd);
	while (more && rt->in_flight < UAR_LIMIT_RUN_BATCHES) {
		more = begin_batch(a) && rt_batch_can_begin(a);
		if (!uar_list_empty(&rt->crowd))
			break; /* others wait: this one stands behind them again */
	}
	if (more)
		wait_in_crowd(a);
	let_in(rt);
}
