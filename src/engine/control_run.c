/* control_run.c - runs that a command of the control plane makes, stops or moves.
 *
 * Such a command is decided upon copies, like a batch, and its facts, the rows and the run's
 * record are one append. A new run is made ready first (its agent is looked for, a long text is
 * stored), before the session is found. */
#include "engine/control_int.h"
#include "engine/limits.h"

bool rt_control_makes_run(enum uar_control_kind kind)
{
	return kind == UAR_CTL_SUBMIT_TURN || kind == UAR_CTL_START_TASK ||
	       kind == UAR_CTL_RETRY_TASK;
}

/* --- made ready ------------------------------------------------------------------------------ */

static void run_ready(struct uar_run_create *make, struct creation *creation)
{
	struct rt_control *c = UAR_OWNER(make, struct rt_control, runs.make);
	uar_err e;

	c->runs.creation = creation;
	rt_creation_adopt(creation);
	e = rt_control_locate(c);
	if (e)
		rt_control_finish(c, e, NULL);
}

static void run_refused(struct uar_run_create *make)
{
	struct rt_control *c = UAR_OWNER(make, struct rt_control, runs.make);

	c->op->error = make->error;
	rt_control_finish(c, make->err, &c->op->error);
}

struct run_options {
	const struct uar_json *inputs, *context, *timeout;
	uar_str trace_id, permission_mode, model;
	bool interactive;
};

static const struct uar_json_field option_fields[] = {
	{ "inputs", UAR_FIELD_OBJECT, false, offsetof(struct run_options, inputs) },
	{ "context", UAR_FIELD_OBJECT, false, offsetof(struct run_options, context) },
	{ "timeout", UAR_FIELD_ANY, false, offsetof(struct run_options, timeout) },
	{ "trace_id", UAR_FIELD_ID, false, offsetof(struct run_options, trace_id) },
	{ "permission_mode", UAR_FIELD_STR, false, offsetof(struct run_options, permission_mode) },
	{ "interactive", UAR_FIELD_BOOL, false, offsetof(struct run_options, interactive) },
	{ "model", UAR_FIELD_STR, false, offsetof(struct run_options, model) },
};

static uar_str text_of(const struct uar_json *j)
{
	return j ? j->text : UAR_STR_NONE;
}

static uar_err read_options(struct rt_control *c, uar_str text)
{
	const struct uar_json *j = NULL;
	struct run_options o = { .interactive = true };
	struct uar_error *error = &c->op->error;
	double seconds;
	uar_err e;

	if (!text.n)
		return UAR_OK;
	e = uar_json_parse(text, NULL, &c->runs.kept, &j, error);
	if (!e)
		e = uar_json_read(j, option_fields, ARRAY_LEN(option_fields), true, &o, error);
	if (!e)
		e = uar_run_permit_read(o.permission_mode, o.interactive, &c->runs.make.permit,
					error);
	if (e) {
		char where[UAR_LIMIT_ERROR_WHERE];

		snprintf(where, sizeof where, "/options%.140s", error->where);
		uar_error_where(error, "%s", where);
		return e;
	}
	seconds = uar_json_double(o.timeout, 0);
	c->runs.make.inputs = text_of(o.inputs);
	c->runs.make.context = text_of(o.context);
	c->runs.make.trace_id = o.trace_id;
	c->runs.make.said.model = o.model;
	c->runs.make.timeout_us = seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * 1e6) : 0;
	return UAR_OK;
}

uar_err rt_control_make_ready(struct rt_control *c)
{
	uar_err e;

	c->runs.make.owner = c->in.owner;
	c->runs.make.ready = run_ready;
	c->runs.make.done = run_refused;
	e = uar_runtime_create_run(c->rt, &c->runs.make);

	if (e)
		c->op->error = c->runs.make.error;
	return e;
}

static uar_err ready_turn(struct rt_control *c)
{
	const struct uar_ctl_submit_turn *in = &c->in.submit_turn;
	uar_err e;

	c->runs.make = (struct uar_run_create){
		.owner = c->in.owner,
		.agent_id = in->agent_id,
		.turn_id = in->turn_id,
		.said = { .metadata = in->metadata },
		.conversation_id = in->thread_id,
	};
	e = uar_turn_message(in->message, in->input, &c->runs.kept, &c->runs.make.message,
			     &c->op->error);
	if (!e)
		e = read_options(c, in->options);
	return e ? e : rt_control_check_files(c, in->input, rt_control_make_ready);
}

uar_err rt_control_lend(struct rt_control *c)
{
	c->runs.creation = c->op->creation;
	c->runs.lent = true;
	c->runs.own_thread = c->op->new_thread;
	snprintf(c->runs.thread_id, sizeof c->runs.thread_id, "%s", c->op->thread_id);
	c->in.by_run = true;
	return rt_control_locate(c);
}

/* --- a turn with an id of the caller --------------------------------------------------------- */

static void tell_existing(struct rt_control *c, const struct uar_run_row *row)
{
	struct uar_turn_place place = {
		.status = uar_str_is(row->status, "queued") ? "queued" : "accepted",
		.session_id = row->session_id,
		.thread_id = row->thread_id,
		.turn_id = row->turn_id,
		.task_id = row->task_id,
		.run_id = row->run_id,
		.agent_id = row->agent_id,
		.existed = true,
	};
	struct uar_jw w;
	uar_err e;

	uar_buf_clear(&c->buf);
	w = uar_jw_begin(&c->buf);
	uar_jw_obj(&w, NULL);
	uar_turn_write(&w, &place);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	c->op->result = uar_buf_str(&c->buf);
	rt_control_finish(c, e, NULL);
}

static void existing_found(struct uar_runs_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, runs.found);

	if (q->err)
		rt_control_finish(c, q->err, &q->error);
	else
		tell_existing(c, &q->rows[0]);
}

void rt_control_taken(struct rt_control *c, uar_str run_id)
{
	struct uar_store *store = c->rt->o.store;
	uar_err e;

	rt_control_runs_failed(c, UAR_EEXISTS);
	c->update->moved = UAR_CONTROL_NO_RUN;
	c->runs.found = (struct uar_runs_query){
		.owner = c->in.owner,
		.run_id = uar_arena_str(&c->runs.kept, run_id),
		.limit = 1,
		.done = existing_found,
	};
	e = c->runs.found.run_id.p ? store->ops->runs(store, &c->runs.found) : UAR_ENOMEM;
	if (e)
		rt_control_finish(c, e, NULL);
}

static void turn_known(struct uar_key_query *q)
{
	struct rt_control *c = UAR_OWNER(q, struct rt_control, runs.known);
	uar_err e = q->err;

	if (!e) {
		rt_control_taken(c, uar_str_c(q->made));
		return;
	}
	e = e == UAR_ENOTFOUND ? ready_turn(c) : e;
	if (e)
		rt_control_finish(c, e, &c->op->error);
}

uar_err rt_control_prepare(struct rt_control *c)
{
	struct uar_store *store = c->rt->o.store;
	uar_str turn_id;

	if (c->in.kind != UAR_CTL_SUBMIT_TURN)
		return rt_control_prepare_attempt(c);
	turn_id = c->in.submit_turn.turn_id;
	if (!turn_id.n)
		return ready_turn(c);
	c->runs.known = (struct uar_key_query){
		.owner = c->in.owner,
		.scope = UAR_STR("turns"),
		.key = turn_id,
		.done = turn_known,
	};
	return store->ops->key(store, &c->runs.known);
}

/* --- what a decision sees -------------------------------------------------------------------- */

static uar_err bring_fresh(struct rt_control *c)
{
	uar_err e = UAR_OK;

	if (!c->runs.thread_id[0]) {
		uar_uuid_next(&c->rt->ids, c->runs.thread_id);
		c->runs.own_thread = true;
	}
	if (!c->runs.fresh_run) {
		e = c->rt->stats.live_runs < UAR_LIMIT_RUNS_LIVE ? UAR_OK : UAR_EBUSY;
		if (!e)
			e = rt_run_make(c->agg, rt_creation_run_id(c->runs.creation),
					uar_str_c(c->runs.thread_id), &c->runs.fresh_run);
		if (e)
			return e;
		c->runs.create = rt_creation_command(c->runs.creation, c->runs.fresh_run,
						     c->agg->state.sequence == 0,
						     c->runs.new_thread || c->runs.own_thread);
	}
	uar_run_fini(&c->runs.fresh);
	uar_run_init(&c->runs.fresh);
	c->in.fresh = &c->runs.fresh;
	c->in.create = &c->runs.create;
	return UAR_OK;
}

static bool is_at_work(const struct live_run *r)
{
	return r->committed && r->state.status != UAR_STATUS_QUEUED &&
	       r->state.status != UAR_STATUS_CANCELLING;
}

/* Without a thread or a turn every turn of the session is interrupted, one after the other. */
static struct live_run *run_to_interrupt(struct rt_control *c)
{
	uar_str turn_id = c->in.interrupt_turn.turn_id;
	struct live_run *first = NULL;

	c->in.more_targets = false;
	if (c->in.thread_id.n)
		return rt_thread_at_work(c->agg, c->in.thread_id);
	UAR_LIST_EACH (it, &c->agg->runs) {
		struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (!is_at_work(r) || (turn_id.n && !uar_str_eq(turn_id, r->state.id.turn_id)))
			continue;
		c->in.more_targets |= first != NULL;
		first = first ? first : r;
	}
	return first;
}

static struct live_run *queued_run(struct rt_control *c, uar_str turn_id)
{
	UAR_LIST_EACH (it, &c->agg->runs) {
		struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (r->committed && r->state.status == UAR_STATUS_QUEUED &&
		    uar_str_eq(r->state.id.turn_id, turn_id) &&
		    uar_str_is(c->in.thread_id, r->thread_id))
			return r;
	}
	return NULL;
}

static struct live_run *queued_attempt(struct rt_control *c)
{
	struct live_run *r = rt_run_find(c->rt, &c->in.owner, c->in.start_attempt.run_id);

	return r && r->agg == c->agg && r->committed && r->state.status == UAR_STATUS_QUEUED ? r
											     : NULL;
}

static struct live_run *run_of_process(struct rt_control *c)
{
	struct live_run *r = rt_run_find(c->rt, &c->in.owner, uar_str_c(c->runs.of_row));

	return r && r->agg == c->agg && r->committed ? r : NULL;
}

static struct live_run *target_of(struct rt_control *c)
{
	switch (c->in.kind) {
	case UAR_CTL_SUBMIT_TURN: return rt_thread_at_work(c->agg, c->in.thread_id);
	case UAR_CTL_INTERRUPT_TURN: return run_to_interrupt(c);
	case UAR_CTL_REMOVE_QUEUED_TURN:
		return queued_run(c, c->in.remove_queued_turn.queued_turn_id);
	case UAR_CTL_PROMOTE_QUEUED_TURN:
		return queued_run(c, c->in.promote_queued_turn.queued_turn_id);
	case UAR_CTL_EDIT_QUEUED_TURN: return queued_run(c, c->in.edit_queued_turn.queued_turn_id);
	case UAR_CTL_START_ATTEMPT: return queued_attempt(c);
	case UAR_CTL_WRITE_PROCESS_STDIN:
	case UAR_CTL_TERMINATE_PROCESS: return run_of_process(c);
	default: return NULL; /* it concerns none */
	}
}

static uar_err bring_target(struct rt_control *c, struct uar_core_env *env)
{
	c->runs.target_run = target_of(c);
	c->in.target = c->runs.target_run ? &c->runs.target : NULL;
	if (!c->runs.target_run)
		return UAR_OK;
	if (c->runs.target_run->state.status == UAR_STATUS_QUEUED)
		env->queue = rt_queue_of(c->agg, c->runs.target_run, &c->runs.target_run->state,
					 UAR_CMD_CANCEL);
	return uar_run_copy(&c->runs.target, &c->runs.target_run->state);
}

/* A child works for the run whose tool gives it work, for the one that is at work in the thread, or
 * for the one that has started it, while that is at work. */
static const struct live_run *giver_of(struct rt_control *c)
{
	uar_str run_id = c->in.caller_run_id.n ? c->in.caller_run_id : uar_str_c(c->runs.of_row);
	const struct live_run *r;

	if (c->in.kind == UAR_CTL_SPAWN_SUBAGENT || c->in.kind == UAR_CTL_CREATE_JOB)
		return rt_thread_at_work(c->agg, c->in.thread_id);
	if (c->in.kind != UAR_CTL_SEND_SUBAGENT_INPUT && c->in.kind != UAR_CTL_RESUME_SUBAGENT)
		return NULL;
	r = run_id.n ? rt_run_find(c->rt, &c->in.owner, run_id) : NULL;
	return r && r->committed ? r : NULL;
}

static void bring_giver(struct rt_control *c)
{
	const struct live_run *giver = giver_of(c);

	c->in.giver = giver ? &giver->state : NULL;
	c->in.giver_here = giver && giver->agg == c->agg;
}

uar_err rt_control_bring(struct rt_control *c, struct uar_core_env *env)
{
	struct live_run *active = NULL;
	uar_err e = UAR_OK;

	if (!c->runs.thread_id[0])
		snprintf(c->runs.thread_id, sizeof c->runs.thread_id, "%.*s",
			 UAR_FMT(uar_control_str(&c->in, "thread_id")));
	if (c->runs.creation)
		e = bring_fresh(c);
	c->in.thread_id = uar_str_c(c->runs.thread_id);
	if (c->runs.thread_id[0]) {
		rt_queue_facts(c->agg, c->in.thread_id, &c->runs.queue);
		active = rt_thread_at_work(c->agg, c->in.thread_id);
		c->in.queue = env->queue = &c->runs.queue;
	}
	c->in.active = active ? &active->state : NULL;
	c->in.active_turn_id = active ? active->state.id.turn_id : UAR_STR_NONE;
	bring_giver(c);
	return e ? e : bring_target(c, env);
}

/* --- what becomes of it ---------------------------------------------------------------------- */

static struct rt_moved moved_of(struct rt_control *c)
{
	bool fresh = c->update->moved == UAR_CONTROL_FRESH;

	return (struct rt_moved){
		.run = fresh ? c->runs.fresh_run : c->runs.target_run,
		.copy = fresh ? &c->runs.fresh : &c->runs.target,
		.d = &c->update->d,
		.row = c->append.run,
	};
}

/* The id that the caller gave to the turn is taken from here on: by a new one, or by the one that
 * its message has joined. */
static bool names_turn(const struct rt_control *c)
{
	return c->in.kind == UAR_CTL_SUBMIT_TURN && c->runs.make.turn_id.n && !c->update->again;
}

uar_err rt_control_add_run(struct rt_control *c)
{
	struct rt_moved m = moved_of(c);
	uar_err e = UAR_OK;

	if (!c->update->moved)
		return UAR_OK;
	if (m.copy->row_changed) {
		e = uar_core_row(&c->s, m.copy, &c->buf, &c->arena, &c->runs.run_row);
		c->append.run = &c->runs.run_row;
	}
	if (names_turn(c)) {
		c->runs.key = (struct uar_key_row){ UAR_STR("turns"), c->runs.make.turn_id,
						    UAR_STR(""), uar_str_c(m.run->run_id) };
		c->append.key = &c->runs.key;
	}
	if (c->runs.lent)
		c->append.key = rt_creation_key(c->runs.creation);
	return e;
}

static void remember_target(struct rt_control *c)
{
	uar_str text = uar_arena_printf(&c->runs.kept, "%.*s\"%.*s\",", UAR_FMT(c->in.earlier),
					UAR_FMT(c->runs.target_run->state.id.turn_id));

	if (text.p)
		c->in.earlier = text;
}

void rt_control_runs_told(struct rt_control *c)
{
	struct rt_moved m = moved_of(c);

	rt_moved_tell(&m);
	if (c->update->moved == UAR_CONTROL_FRESH) {
		c->rt->stats.created++;
		uar_run_copy_fini(&c->runs.fresh); /* the rest of it is the run's now */
		uar_run_init(&c->runs.fresh);
	} else {
		remember_target(c);
	}
}

void rt_control_runs_order(struct rt_control *c)
{
	struct rt_workers *w = rt_workers(c->rt);
	bool stop = c->in.kind == UAR_CTL_TERMINATE_PROCESS;
	const struct uar_ctl_write_process_stdin *in = &c->in.write_process_stdin;
	struct rt_process_order order = { .owner = &c->in.owner,
					  .process_id = uar_control_str(&c->in, "process_id"),
					  .stop = stop,
					  .by = c->in.owner.user };

	if (!c->update || !c->update->order_process)
		return;
	if (!stop) {
		order.input = in->input;
		order.end = in->eof;
	}
	if (w && w->ops->process)
		w->ops->process(w, &order);
}

/* A run that ended with its first append is gone afterwards. */
void rt_control_runs_perform(struct rt_control *c)
{
	struct rt_moved m = moved_of(c);

	if (c->update->moved) {
		c->update->moved = UAR_CONTROL_NO_RUN;
		if (m.run == c->runs.fresh_run)
			c->runs.fresh_run = NULL;
		c->runs.target_run = NULL;
		rt_moved_perform(&m);
	}
	if (c->in.kind == UAR_CTL_RESUME_QUEUE || c->in.kind == UAR_CTL_RESUME_THREAD ||
	    c->in.kind == UAR_CTL_PROMOTE_QUEUED_TURN) /* the first may have been held */
		rt_start_next(c->agg, c->in.thread_id);
	rt_control_runs_failed(c, UAR_ESTATE); /* a run that was made in vain */
}

void rt_control_runs_failed(struct rt_control *c, uar_err e)
{
	struct live_run *r = c->runs.fresh_run;

	c->runs.fresh_run = NULL;
	if (r)
		rt_run_over(r, e);
	uar_run_fini(&c->runs.fresh);
	uar_run_init(&c->runs.fresh);
}

void rt_control_runs_free(struct rt_control *c)
{
	if (c->runs.creation && !c->runs.lent)
		rt_creation_end(c->runs.creation);
	uar_store_query_fini(&c->runs.found);
	uar_run_fini(&c->runs.fresh);
	uar_run_copy_fini(&c->runs.target);
	uar_arena_fini(&c->runs.kept);
}
