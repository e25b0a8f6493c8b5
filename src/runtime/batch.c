/* batch.c - the walk of commands: decide on copies, append, then move.
 *
 * A batch takes the waiting commands of one run. Until the store has made its
 * events durable nothing in memory has changed; afterwards, in this order, the
 * copies become the state, readers are told, requests are answered, effects
 * begin. If the append fails the copies are thrown away and nobody was told. */
#include "runtime/tail.h"

enum {
	BATCH_EVENTS = UAR_DECISION_EVENTS / 2, /* no further command beyond */
	SPARE_BYTES = 1 << 16,			/* of memory that a spare batch keeps */
	SPARE_LARGE = 32, /* batches; those beyond keep enough for a piece of text */
	SPARE_SMALL_BYTES = 1 << 13,
};

struct batch {
	struct uar_list node; /* among the spare ones */
	struct uar_append append;
	struct agg *agg;
	struct live_run *run;
	struct uar_session s; /* the copies */
	struct uar_run r;
	struct uar_decision d;
	struct uar_run_row row;
	struct uar_list cmds;
	struct uar_arena arena;
	struct uar_buf buf;
};

static struct batch *take_batch(struct uar_runtime *rt)
{
	struct batch *b;

	if (rt->batches.count) {
		b = UAR_OWNER(rt->batches.list.prev, struct batch, node); /* still in the cache */
		uar_list_remove(&b->node);
		rt->batches.count--;
		rt->batches.large -= rt->batches.large > 0;
		return b;
	}
	b = uar_alloc(sizeof *b);
	if (!b)
		return NULL;
	uar_run_init(&b->r);
	uar_arena_init(&b->arena, 0);
	b->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	return b;
}

static void destroy_batch(struct batch *b)
{
	uar_run_copy_fini(&b->r);
	uar_arena_fini(&b->arena);
	uar_buf_fini(&b->buf);
	uar_free(b);
}

void rt_batch_free_spare(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->batches.list) {
		uar_list_remove(it);
		destroy_batch(UAR_OWNER(it, struct batch, node));
	}
	rt->batches.count = rt->batches.large = 0;
}

/* Large ones are at the end, where they are taken from first: a crowd that is over must
 * not leave them below small ones. */
static void put_batch(struct uar_runtime *rt, struct batch *b)
{
	bool large = rt->batches.large < SPARE_LARGE;
	size_t keep = large ? SPARE_BYTES : SPARE_SMALL_BYTES;

	if (rt->batches.count < UAR_LIMIT_SPARE_BATCHES) {
		uar_run_copy_fini(&b->r);
		if (b->arena.used > keep)
			uar_arena_fini(&b->arena);
		else
			uar_arena_reset(&b->arena);
		uar_list_init(&b->node);
		uar_list_add_last(large ? &rt->batches.list : rt->batches.list.next, &b->node);
		rt->batches.count++;
		rt->batches.large += large;
		return;
	}
	destroy_batch(b);
}

void rt_batch_drop(struct agg *a)
{
	struct batch *b = a->batch;

	if (!b)
		return;
	UAR_LIST_EACH (it, &b->cmds)
		rt_cmd_free(UAR_OWNER(it, struct cmd, node));
	if (!b->run->committed)
		uar_run_fini(&b->r);
	a->batch = NULL;
	put_batch(a->rt, b);
}

static void answer(struct cmd *c, uar_err e, const struct uar_error *error)
{
	const struct uar_run *state = c->run ? &c->run->state : NULL;

	if (c->done)
		c->done(c, e, error, state);
	rt_cmd_free(c);
}

/* Takes what waits for r out of the queue before r goes away. */
static void purge(struct live_run *r, struct uar_list *out)
{
	struct agg *a = r->agg;

	UAR_LIST_EACH (it, &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		if (c->run != r)
			continue;
		uar_list_remove(&c->node);
		a->queued--;
		a->queued_bytes -= c->text.n;
		uar_list_add_last(out, &c->node);
	}
}

/* The next turn of a conversation begins when the one before it is over. */
void rt_start_next(struct agg *a, uar_str thread_id)
{
	struct live_run *next = rt_thread_active(a, thread_id);
	struct uar_command start = { .kind = UAR_CMD_START };

	if (!next || !next->committed || next->state.status != UAR_STATUS_QUEUED || a->rt->draining)
		return;
	if (next->state.what.entry != UAR_ENTRY_PLUGIN ||
	    rt_plugin_place(next, next->state.what.plugin_id, next->state.what.entry_id))
		rt_send(next, &start);
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
		answer(c, why, &error);
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
	struct uar_core_env env = {
		.now_us = now_us,
		.ids = &b->agg->rt->ids,
		.arena = &b->arena,
		.buf = &b->buf,
		.scratch = &b->agg->rt->scratch,
	};

	c->err = complete_command(b, c, &c->error);
	if (!c->err)
		c->err = uar_core_decide(&env, &b->s, &b->r, &c->c, &b->d, &c->error);
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

		uar_list_remove(&c->node);
		a->queued--;
		a->queued_bytes -= c->text.n;
		uar_list_add_last(&b->cmds, &c->node);
		e = decide_one(b, c, now_us, error);
	}
	a->careful -= a->careful > 0;
	if (a->rt->scratch.used > SPARE_BYTES)
		uar_arena_fini(&a->rt->scratch);
	return e;
}

/* --- after the commit -------------------------------------------------------- */

/* The next events in a row that are the run's; 0: there are none. Facts of the thread
 * may stand between them. */
static size_t next_of_run(const struct batch *b, size_t *from)
{
	const struct uar_event *events = b->d.events;
	size_t n = b->d.event_count, to;

	while (*from < n && !events[*from].run_sequence)
		(*from)++;
	for (to = *from; to < n && events[to].run_sequence; to++)
		;
	return to - *from;
}

static void publish(struct batch *b)
{
	struct uar_bus *bus = b->agg->rt->bus;
	const struct uar_event *events = b->d.events;
	size_t last = b->d.event_count - 1, from = 0, n;

	while ((n = next_of_run(b, &from))) {
		rt_tail_commit(b->agg->rt, b->run, events + from, n, b->append.run);
		uar_bus_publish(bus, b->run->run_key, events + from, n,
				events[from + n - 1].run_sequence);
		from += n;
	}
	uar_bus_publish(bus, b->agg->key, events, b->d.event_count, events[last].sequence);
}

static void tell_watches(struct batch *b, bool added)
{
	struct uar_commit c = {
		.owner = &b->agg->state.owner,
		.run = &b->run->state,
		.events = b->d.events,
		.event_count = b->d.event_count,
		.added = added,
		.changed = b->append.run != NULL,
	};

	UAR_LIST_EACH (it, &b->agg->rt->watches) {
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
			answer(c, c->err, &c->error);
		} else {
			answer(c, e, error);
		}
	}
}

static void end_run(struct live_run *r)
{
	struct uar_runtime *rt = r->agg->rt;

	count_end(rt, r->state.status);
	rt_log_run(r, UAR_LOG_DEBUG, "run.ended", uar_status_text(r->state.status));
	rt_retain(rt, &r->agg->state.owner);
	rt_run_over(r, UAR_ESTATE);
}

static void perform(struct batch *b)
{
	for (size_t i = 0; i < b->d.effect_count; i++)
		if (b->d.effects[i] != UAR_DO_RELEASE)
			rt_effect(b->run, b->d.effects[i]);
	if (uar_status_terminal(b->run->state.status))
		end_run(b->run);
	else if (b->run->state.status == UAR_STATUS_QUEUED)
		rt_start_next(b->agg, uar_str_c(b->run->thread_id));
}

static void move_state(struct batch *b)
{
	struct agg *a = b->agg;

	a->state.sequence = b->s.sequence;
	b->r.row_changed = false;
	uar_run_take(&b->run->state, &b->r);
	b->run->committed = true;
	a->rt->stats.events += b->d.event_count;
	a->rt->stats.batches++;
}

/* --- when it fails ----------------------------------------------------------- */

/* What the worker said after something that is lost; whoever waits for it is told. */
static void drop_output(struct live_run *r, uar_err e, const struct uar_error *error)
{
	struct agg *a = r->agg;
	struct uar_list dropped;

	uar_list_init(&dropped);
	UAR_LIST_EACH (it, &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		if (c->run != r || !c->from_worker || !rt_is_output(c->c.kind))
			continue;
		uar_list_remove(&c->node);
		a->queued--;
		a->queued_bytes -= c->text.n;
		uar_list_add_last(&dropped, &c->node);
	}
	while (!uar_list_empty(&dropped)) {
		struct cmd *c = UAR_OWNER(dropped.next, struct cmd, node);

		uar_list_remove(&c->node);
		answer(c, e, error);
	}
}

/* A worker's command that can never be appended would otherwise be lost in
 * silence: the run fails instead, and says why; in plainer words when it was the
 * failure itself that cannot be appended. */
static void fail_run(struct live_run *r, uar_err e, const struct uar_error *error, bool plain)
{
	rt_log_run(r, UAR_LOG_ERROR, "run.append_refused", uar_error_text(error));
	drop_output(r, e, error);
	if (plain && r->plain) {
		rt_run_quarantine(r, e); /* there is no way to end it: the next start tries again */
		return;
	}
	if (plain) {
		rt_owe(r, OWED(UAR_CMD_FAIL));
		r->plain = true;
		r->lost = UAR_EINTERNAL;
		return;
	}
	rt_send_fail(r, e, "execution", uar_error_text(error));
	if (!r->lost)
		r->lost = e;
}

/* The session was made in memory with a number that is no longer its last. Who
 * waits to begin here would find the same: all look it up anew. */
static void refuse_creates(struct agg *a)
{
	UAR_LIST_EACH (it, &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		if (c->c.kind == UAR_CMD_CREATE)
			rt_run_over(c->run, UAR_ECONFLICT);
	}
}

static void put_back(struct agg *a, struct uar_list *kept)
{
	UAR_LIST_EACH (it, kept) {
		a->queued++;
		a->queued_bytes += UAR_OWNER(it, struct cmd, node)->text.n;
	}
	uar_list_move_all(&a->queue, kept);
	uar_list_move_all(kept, &a->queue);
}

/* The store or the engine found fault with what one of the commands says, not with
 * the moment. */
static bool blames_content(uar_err e)
{
	return !rt_worth_retrying(e) && e != UAR_EIO && e != UAR_ESYNC && e != UAR_EDRAINING &&
	       e != UAR_ECONFLICT && e != UAR_EEXISTS;
}

/* One bad command takes no good one with it: all are decided again, one by one. */
static bool try_singly(struct batch *b, uar_err e)
{
	struct agg *a = b->agg;
	size_t n = 0;

	if (!b->run->committed || !blames_content(e))
		return false;
	UAR_LIST_EACH (it, &b->cmds)
		n++;
	if (n < 2)
		return false;
	put_back(a, &b->cmds);
	a->careful = n;
	a->batch = NULL;
	return true;
}

/* Who asked and waits behind what a full disk refuses gets the same answer: it may
 * be the wish to stop the run that fills it. */
static void refuse_askers(struct agg *a, const struct uar_error *error)
{
	struct uar_list asked;

	uar_list_init(&asked);
	UAR_LIST_EACH (it, &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		if (c->from_worker || !c->run->committed)
			continue;
		uar_list_remove(&c->node);
		a->queued--;
		a->queued_bytes -= c->text.n;
		uar_list_add_last(&asked, &c->node);
	}
	while (!uar_list_empty(&asked)) {
		struct cmd *c = UAR_OWNER(asked.next, struct cmd, node);

		uar_list_remove(&c->node);
		answer(c, UAR_EDISKFULL, error);
	}
}

static void abort_batch(struct batch *b, uar_err e, const struct uar_error *error)
{
	struct agg *a = b->agg;
	struct live_run *r = b->run;
	bool made = r->committed, lost = false, plain = false;
	struct uar_list kept;

	if (try_singly(b, e))
		return;
	uar_list_init(&kept);
	if (!made)
		uar_run_fini(&b->r);
	UAR_LIST_EACH (it, &b->cmds) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		uar_list_remove(&c->node);
		if (c->from_worker && rt_worth_retrying(e)) {
			uar_list_add_last(&kept, &c->node);
			continue;
		}
		lost |= c->from_worker && e != UAR_EDRAINING;
		plain |= c->from_worker && (c->c.kind == UAR_CMD_FAIL || c->c.kind == UAR_CMD_LOST);
		answer(c, e, error);
	}
	a->batch = NULL;
	if (!made && e == UAR_ECONFLICT)
		refuse_creates(a);
	if (!made)
		rt_run_over(r, e);
	else if (lost)
		fail_run(r, e, error, plain);
	if (uar_list_empty(&kept))
		return;
	put_back(a, &kept);
	rt_agg_later(a);
	if (e == UAR_EDISKFULL)
		refuse_askers(a, error);
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
			r->worker->ops->flow(r->worker, false);
	}
}

/* Who waits longest goes next. Called for each batch that is over, and for each
 * session that was let in and had nothing to say, so that nobody is forgotten. */
static void let_in(struct uar_runtime *rt)
{
	struct agg *a;

	if (uar_list_empty(&rt->crowd))
		return;
	a = UAR_OWNER(rt->crowd.next, struct agg, crowd);
	uar_list_remove(&a->crowd);
	uar_post(rt->o.sched, &a->task);
}

static void finish(struct batch *b)
{
	struct agg *a = b->agg;
	struct uar_runtime *rt = a->rt;

	put_batch(rt, b);
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

/* One line when space runs out and one when it is back, not one an append. */
static void note_space(struct uar_runtime *rt, uar_err e)
{
	bool full = e == UAR_EDISKFULL;

	if (full == rt->full)
		return;
	rt->full = full;
	uar_log(rt->o.log, full ? UAR_LOG_WARN : UAR_LOG_INFO, full ? "store.full" : "store.space",
		{ "detail", uar_str_c(full ? "new facts are refused until there is space"
					   : "new facts are taken again") });
}

static void appended(struct uar_append *append)
{
	struct batch *b = UAR_OWNER(append, struct batch, append);
	bool added = !b->run->committed;

	b->agg->rt->in_flight--;
	note_space(b->agg->rt, append->err);
	if (append->err) {
		pass_taken(b);
		abort_batch(b, append->err, &append->error);
	} else {
		b->agg->batch = NULL;
		move_state(b);
		publish(b);
		tell_watches(b, added);
		answer_all(b, UAR_OK, NULL);
		perform(b);
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
	return uar_error_set(error, UAR_EINTERNAL, "an event breaks its rules at %s: %s",
			     b->append.error.where, b->append.error.text);
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
	append->after = a->state.sequence;
	append->events = b->d.events;
	append->event_count = b->d.event_count;
	append->key = key_of(b);
	append->done = appended;
	if (b->r.row_changed) {
		e = uar_core_row(&b->s, &b->r, &b->arena, &b->row);
		append->run = &b->row;
	}
	if (!e)
		e = a->rt->o.store->ops->append(a->rt->o.store, append);
	if (e)
		return refused(b, e, error);
	a->batch = b;
	a->rt->in_flight++;
	return UAR_OK;
}

static struct batch *open_batch(struct agg *a)
{
	struct batch *b = take_batch(a->rt);

	if (!b)
		return NULL;
	b->agg = a;
	b->run = UAR_OWNER(a->queue.next, struct cmd, node)->run;
	if (uar_run_copy(&b->r, &b->run->state)) {
		put_batch(a->rt, b);
		return NULL;
	}
	b->s = a->state;
	b->d = (struct uar_decision){ 0 };
	uar_list_init(&b->cmds);
	return b;
}

void rt_batch_begin(struct agg *a)
{
	struct uar_error error = { 0 };
	struct batch *b;
	uar_err e;

	if (a->batch || uar_list_empty(&a->queue)) {
		let_in(a->rt);
		return;
	}
	if (a->rt->in_flight >= UAR_LIMIT_RUN_BATCHES) {
		uar_list_remove(&a->crowd);
		uar_list_add_last(&a->rt->crowd, &a->crowd);
		return;
	}
	b = open_batch(a);
	if (!b) {
		rt_agg_later(a);
		let_in(a->rt);
		return;
	}
	rt_agg_hold(a);
	e = decide_all(b, &error);
	if (!e && b->d.event_count)
		e = send_append(b, &error);
	if (!e && a->batch)
		return;
	if (e)
		abort_batch(b, e, &error);
	else
		answer_all(b, UAR_OK, NULL); /* every command was refused by the table */
	finish(b);
}
