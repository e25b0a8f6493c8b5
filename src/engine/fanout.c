/* fanout.c - child agents and items of jobs: their turns are submitted, and what became of them is
 * told where they were started.
 *
 * The row of a turn or an item is written before anything else: it is the intent. Whatever is done
 * here follows from such a row, and all of it may be done again: a turn that was submitted is found
 * by its id, one that was settled is no longer open. So a start does for each open row what a
 * commit does for a new one. */
#include "engine/fanout_int.h"
#include "engine/limits.h"
#include "event/limits.h"

/* --- errands --------------------------------------------------------------------------------- */

static void free_errand(struct errand *e)
{
	uar_timer_stop(e->rt->o.sched, &e->again);
	uar_store_query_fini(&e->run);
	uar_store_read_fini(&e->read);
	uar_store_rows_fini(&e->rows);
	uar_buf_fini(&e->answer);
	uar_arena_fini(&e->arena);
	uar_free(e);
}

static void drop_errand(struct rt_op *under_way)
{
	free_errand(UAR_OWNER(under_way, struct errand, under_way));
}

struct errand *rt_errand_make(struct uar_runtime *rt, const struct uar_owner *owner)
{
	struct errand *e = uar_zalloc(sizeof *e);

	if (!e)
		return NULL;
	e->rt = rt;
	e->answer = uar_buf_make(UAR_LIMIT_CHILD_ANSWER);
	uar_arena_init(&e->arena, 0);
	if (!uar_owner_copy(&e->arena, owner, &e->in.owner)) {
		uar_arena_fini(&e->arena);
		uar_free(e);
		return NULL;
	}
	rt_op_begin(rt, &e->under_way, drop_errand);
	return e;
}

void rt_errand_end(struct errand *e)
{
	rt_op_end(&e->under_way);
	free_errand(e);
}

bool rt_errand_keep(struct errand *e, uar_str *const *strings, size_t n)
{
	if (uar_arena_strs(&e->arena, strings, n))
		return true;
	rt_errand_end(e);
	return false;
}

static void do_again(struct uar_timer *t)
{
	struct errand *e = UAR_OWNER(t, struct errand, again);

	e->step(e);
}

/* What cannot be done now is done later, or found by the next start. */
void rt_errand_again(struct errand *e, uar_err why)
{
	e->again.fn = do_again;
	if (!rt_worth_retrying(why) || e->rt->draining ||
	    uar_timer_set(e->rt->o.sched, &e->again, UAR_RETRY_US))
		rt_errand_end(e);
}

static void send(struct errand *e, void (*done)(struct uar_control_op *op))
{
	uar_err err;

	e->op = (struct uar_control_op){ .in = &e->in, .done = done, .make_session = e->thread_id };
	err = uar_runtime_control(e->rt, &e->op);
	if (err)
		rt_errand_again(e, err);
}

/* The members of the command were those of another one. */
static void take_command(struct errand *e, enum uar_control_kind kind)
{
	const struct uar_owner owner = e->in.owner;

	e->in = (struct uar_control){ .kind = kind, .owner = owner };
}

/* --- the end of a turn ----------------------------------------------------------------------- */

static void settled(struct uar_control_op *op)
{
	struct errand *e = UAR_OWNER(op, struct errand, op);

	if (op->err)
		rt_errand_again(e, op->err);
	else
		rt_errand_end(e);
}

static uar_str output_ref(struct errand *e)
{
	return e->answer.n ? uar_arena_printf(&e->arena, "message://%.*s/%s", UAR_FMT(e->run_id),
					      e->message_id)
			   : UAR_STR_NONE;
}

static void send_settled(struct errand *e)
{
	const struct uar_ctl_settle_subagent end = {
		.subagent_id = e->parent_id,
		.turn_id = e->turn_id,
		.run_id = e->run_id,
		.status = e->status,
		.code = e->code,
		.message = uar_str_utf8_prefix(e->message, UAR_TEXT_MESSAGE - 1),
		.retryable = e->retryable,
		.answer = uar_buf_str(&e->answer),
		.answer_bytes = e->answer_bytes,
		.output_ref = output_ref(e),
	};

	e->step = send_settled;
	take_command(e, e->job ? UAR_CTL_SETTLE_JOB_ITEM : UAR_CTL_SETTLE_SUBAGENT);
	if (e->job)
		e->in.settle_job_item = (struct uar_ctl_settle_job_item){
			.job_id = e->parent_id,
			.turn_id = end.turn_id,
			.run_id = end.run_id,
			.status = end.status,
			.code = end.code,
			.message = end.message,
			.retryable = end.retryable,
			.answer = end.answer,
			.output_ref = end.output_ref,
		};
	else
		e->in.settle_subagent = end;
	send(e, settled);
}

/* The text of the last message of the run. A message that was begun again has another id. */
static void take_text(struct errand *e, const struct uar_event *ev)
{
	const struct uar_json *p = NULL;
	struct uar_arena scratch;
	uar_str id, text;

	uar_arena_init(&scratch, 0);
	if (!uar_event_payload(ev, &scratch, &p, NULL) &&
	    uar_str_is(uar_json_str(uar_json_get(p, UAR_STR("kind")), UAR_STR_NONE), "text")) {
		id = uar_json_str(uar_json_get(p, UAR_STR("message_id")), UAR_STR_NONE);
		text = uar_json_str(uar_json_get(p, UAR_STR("text")), UAR_STR_NONE);
		if (!uar_str_is(id, e->message_id)) {
			snprintf(e->message_id, sizeof e->message_id, "%.*s", UAR_FMT(id));
			uar_buf_clear(&e->answer);
			e->answer_bytes = 0;
		}
		e->answer_bytes += (int64_t)text.n;
		uar_buf_add_str(&e->answer,
				uar_str_utf8_prefix(text, UAR_LIMIT_CHILD_ANSWER - e->answer.n));
	}
	uar_arena_fini(&scratch);
}

static void read_on(struct errand *e);

static void page_read(struct uar_read *read)
{
	struct errand *e = UAR_OWNER(read, struct errand, read);
	uar_err err = read->err;
	bool more = !err && read->event_count;

	for (size_t i = 0; more && i < read->event_count; i++)
		if (read->events[i].cls == UAR_EV_MODEL_DELTA)
			take_text(e, &read->events[i]);
	if (more) {
		uint64_t last = read->events[read->event_count - 1].run_sequence;

		uar_store_read_fini(read);
		e->read.after = last;
		read_on(e);
		return;
	}
	uar_store_read_fini(read);
	if (err && err != UAR_ENOTFOUND)
		rt_errand_again(e, err);
	else
		send_settled(e);
}

static void read_on(struct errand *e)
{
	struct uar_store *store = e->rt->o.store;
	uar_err err;

	e->step = read_on;
	e->read = (struct uar_read){
		.owner = e->in.owner,
		.run_id = e->run_id,
		.after = e->read.after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_read,
	};
	err = store->ops->read(store, &e->read);
	if (err)
		rt_errand_again(e, err);
}

static void take_error(struct errand *e, const struct uar_run_row *row)
{
	const struct uar_json *detail = NULL, *error = NULL;

	if (!uar_json_parse(row->detail, NULL, &e->arena, &detail, NULL))
		error = uar_json_get(detail, UAR_STR("error"));
	e->status = uar_arena_str(&e->arena, row->status);
	e->code = uar_arena_str(&e->arena, uar_json_text(error, "code"));
	e->message = uar_arena_str(&e->arena, uar_json_text(error, "message"));
	e->retryable = uar_json_bool(uar_json_get(error, UAR_STR("retryable")), false);
}

/* A record shows the words of the plugin protocol. */
static uar_str status_word(uar_str record)
{
	if (uar_str_is(record, "succeeded"))
		return UAR_STR("completed");
	if (uar_str_is(record, "canceled"))
		return UAR_STR("cancelled");
	return uar_str_is(record, "timeout") ? UAR_STR("timed_out") : record;
}

static void run_found(struct uar_runs_query *q)
{
	struct errand *e = UAR_OWNER(q, struct errand, run);
	uar_err err = q->err;
	bool over = !err && q->rows[0].terminal;

	if (over)
		take_error(e, &q->rows[0]);
	uar_store_query_fini(q);
	if (err == UAR_ENOTFOUND) { /* it was evicted meanwhile */
		e->status = UAR_STR("lost");
		send_settled(e);
	} else if (err) {
		rt_errand_again(e, err);
	} else if (!over) {
		rt_errand_end(e); /* its end will be told */
	} else {
		e->status = status_word(e->status);
		e->read.after = 0;
		read_on(e);
	}
}

/* Settles the turn if its run is over. */
static void settle(struct errand *e)
{
	struct uar_store *store = e->rt->o.store;
	uar_err err;

	e->step = settle;
	e->run = (struct uar_runs_query){
		.owner = e->in.owner,
		.run_id = e->run_id,
		.limit = 1,
		.done = run_found,
	};
	err = store->ops->runs(store, &e->run);
	if (err)
		rt_errand_again(e, err);
}

/* --- a turn ---------------------------------------------------------------------------------- */

static void asked_to_stop(struct uar_run_cancel_op *op)
{
	struct errand *e = UAR_OWNER(op, struct errand, stop);

	if (op->err && rt_worth_retrying(op->err))
		rt_errand_again(e, op->err);
	else
		settle(e);
}

static void stop_run(struct errand *e)
{
	uar_err err;

	e->step = stop_run;
	e->stop = (struct uar_run_cancel_op){ .owner = e->in.owner,
					      .run_id = e->run_id,
					      .reason = UAR_STR("closed by its parent"),
					      .done = asked_to_stop };
	err = uar_runtime_cancel_run(e->rt, &e->stop);
	if (err)
		rt_errand_again(e, err);
}

/* It runs. Asked to stop it was perhaps before; and it may be over. */
static void look_after(struct errand *e)
{
	if (e->turn.cancel)
		stop_run(e);
	else if (rt_run_find(e->rt, &e->in.owner, e->run_id))
		rt_errand_end(e); /* its end will be told */
	else
		settle(e);
}

static void followed(struct uar_control_op *op)
{
	struct errand *e = UAR_OWNER(op, struct errand, op);

	if (op->err && rt_worth_retrying(op->err))
		rt_errand_again(e, op->err);
	else
		look_after(e);
}

static void follow(struct errand *e)
{
	e->step = follow;
	take_command(e, UAR_CTL_FOLLOW_SUBAGENT);
	e->in.follow_subagent = (struct uar_ctl_follow_subagent){ .subagent_id = e->parent_id,
								  .turn_id = e->turn_id,
								  .run_id = e->run_id,
								  .status = e->status };
	send(e, followed);
}

static bool is_waiting(enum uar_status s)
{
	return s == UAR_STATUS_WAITING_INPUT || s == UAR_STATUS_WAITING_PERMISSION ||
	       s == UAR_STATUS_WAITING_RESOURCE;
}

/* The run may have said that it waits before this is told, or before the last stop. */
static uar_str status_now(const struct errand *e)
{
	const struct live_run *r = rt_run_find(e->rt, &e->in.owner, e->run_id);
	bool waits =
		r ? is_waiting(r->state.status) : rt_run_is_parked(e->rt, &e->in.owner, e->run_id);

	return waits ? UAR_STR("waiting") : UAR_STR("running");
}

static uar_err read_place(struct errand *e, uar_str result)
{
	const struct uar_json *j = NULL;
	uar_err err = uar_json_parse_copy(result, NULL, &e->arena, &j, NULL);

	e->run_id = uar_json_str(uar_json_get(j, UAR_STR("run_id")), UAR_STR_NONE);
	e->status = uar_json_str(uar_json_get(j, UAR_STR("status")), UAR_STR_NONE);
	e->status = uar_str_is(e->status, "queued") ? UAR_STR("queued") : status_now(e);
	return err;
}

static void submitted(struct uar_control_op *op)
{
	struct errand *e = UAR_OWNER(op, struct errand, op);
	uar_err err = op->err ? op->err : read_place(e, op->result);

	if (err && (rt_worth_retrying(err) || err == UAR_EDRAINING)) {
		rt_errand_again(e, err);
	} else if (err) {
		e->status = UAR_STR("failed");
		e->code = uar_str_c(uar_err_token(err));
		e->message = uar_arena_str(&e->arena, uar_str_c(uar_error_text(&op->error)));
		send_settled(e);
	} else if (e->job) {
		look_after(e);
	} else {
		follow(e);
	}
}

static void submit(struct errand *e)
{
	e->step = submit;
	take_command(e, UAR_CTL_SUBMIT_TURN);
	e->in.parent_thread_id = e->turn.parent_thread_id;
	e->in.budgets = e->turn.budgets;
	e->in.submit_turn = (struct uar_ctl_submit_turn){ .thread_id = e->thread_id,
							  .turn_id = e->turn_id,
							  .agent_id = e->turn.agent_id,
							  .message = e->turn.message };
	send(e, submitted);
}

static void begin_turn(struct errand *e)
{
	uar_str *own[] = { &e->parent_id,     &e->turn_id,	&e->thread_id,
			   &e->turn.agent_id, &e->turn.message, &e->turn.parent_thread_id,
			   &e->run_id,	      &e->turn.budgets };

	rt_account_share(e->rt, &e->in.owner, e->turn.budgets);
	if (rt_errand_keep(e, own, ARRAY_LEN(own)))
		submit(e);
}

static void take_turn(struct uar_runtime *rt, const struct uar_owner *owner,
		      const struct uar_row_subagent_turn *t)
{
	struct errand *e = rt_errand_make(rt, owner);

	if (!e)
		return;
	e->parent_id = t->row.parent;
	e->turn_id = t->row.id;
	e->thread_id = t->thread_id;
	e->turn.agent_id = t->agent_id;
	e->turn.message = t->message;
	e->turn.parent_thread_id = t->parent_thread_id;
	e->turn.budgets = t->budgets;
	e->turn.cancel = t->cancel;
	begin_turn(e);
}

static void take_item(struct uar_runtime *rt, const struct uar_owner *owner,
		      const struct uar_row_job_item *i)
{
	struct errand *e = rt_errand_make(rt, owner);

	if (!e)
		return;
	e->job = true;
	e->parent_id = i->row.parent;
	e->turn_id = i->turn_id;
	e->thread_id = i->thread_id;
	e->turn.agent_id = i->agent_id;
	e->turn.message = i->message;
	e->turn.parent_thread_id = i->parent_thread_id;
	e->turn.budgets = i->budgets;
	e->turn.cancel = i->cancel;
	begin_turn(e);
}

/* --- what commits and starts find ------------------------------------------------------------ */

static void learn_turn(struct uar_runtime *rt, const struct uar_owner *owner,
		       const struct uar_row *row, bool started)
{
	struct uar_row_subagent_turn t;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (row->open && !uar_row_unpack(row, &arena, &t, sizeof t, NULL) &&
	    (started || t.cancel || uar_str_is(row->status, "pending")))
		take_turn(rt, owner, &t);
	uar_arena_fini(&arena);
}

static void learn_item(struct uar_runtime *rt, const struct uar_owner *owner,
		       const struct uar_row *row)
{
	struct uar_row_job_item i;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (row->open && !uar_row_unpack(row, &arena, &i, sizeof i, NULL))
		take_item(rt, owner, &i);
	uar_arena_fini(&arena);
}

/* An agent in a session of its own that is closed at the same moment starts no others. */
static bool may_be_late(const struct uar_row *row, const struct uar_row_subagent *s)
{
	uar_str id;

	return uar_str_is(row->status, "spawned") && s->run_id.n == 0 &&
	       (s->task_id.n || uar_thread_subagent(row->session_id, &id));
}

static void learn_subagent(struct uar_runtime *rt, const struct uar_owner *owner,
			   const struct uar_row *row, bool started)
{
	struct uar_row_subagent s;
	struct uar_arena arena;

	if (!row->open)
		rt_fanout_rested(rt, owner, row->id);
	uar_arena_init(&arena, 0);
	if (!uar_row_unpack(row, &arena, &s, sizeof s, NULL)) {
		if (uar_str_is(row->status, "closed"))
			rt_fanout_close_below(rt, owner, s.child_session_id);
		else if (started || may_be_late(row, &s))
			rt_fanout_check_child(rt, owner, row, &s);
	}
	uar_arena_fini(&arena);
}

static void learn_job(struct uar_runtime *rt, const struct uar_owner *owner,
		      const struct uar_row *row, bool started)
{
	struct uar_row_job j;
	struct uar_arena arena;

	rt_due_note(rt, row->due_us);
	uar_arena_init(&arena, 0);
	if (started && !uar_row_unpack(row, &arena, &j, sizeof j, NULL))
		rt_fanout_check_job(rt, owner, row, &j);
	uar_arena_fini(&arena);
}

void rt_fanout_learn(struct agg *a, const struct uar_row *written)
{
	struct uar_row row = *written;

	row.session_id = a->state.session_id;
	switch (row.kind) {
	case UAR_ROW_SUBAGENT_TURN: learn_turn(a->rt, &a->state.owner, &row, false); break;
	case UAR_ROW_JOB_ITEM: learn_item(a->rt, &a->state.owner, &row); break;
	case UAR_ROW_SUBAGENT: learn_subagent(a->rt, &a->state.owner, &row, false); break;
	case UAR_ROW_JOB: learn_job(a->rt, &a->state.owner, &row, false); break;
	default: break;
	}
}

void rt_fanout_recovered(struct uar_runtime *rt, const struct uar_owner *owner,
			 const struct uar_row *row)
{
	switch (row->kind) {
	case UAR_ROW_SUBAGENT_TURN: learn_turn(rt, owner, row, true); break;
	case UAR_ROW_JOB_ITEM: learn_item(rt, owner, row); break;
	case UAR_ROW_SUBAGENT: learn_subagent(rt, owner, row, true); break;
	case UAR_ROW_JOB: learn_job(rt, owner, row, true); break;
	default: break;
	}
}

/* --- what runs say --------------------------------------------------------------------------- */

static struct errand *errand_of_run(struct live_run *r)
{
	uar_str thread = uar_str_c(r->thread_id), parent = UAR_STR_NONE;
	int64_t index;
	bool job = uar_thread_job(thread, &parent, &index);
	struct errand *e;

	if (!job && !uar_thread_subagent(thread, &parent))
		return NULL;
	e = rt_errand_make(r->agg->rt, &r->agg->state.owner);
	if (!e) {
		uar_runtime_note_failure(r->agg->rt, UAR_ENOMEM);
		return NULL;
	}
	e->job = job;
	e->parent_id = parent;
	e->turn_id = r->state.id.turn_id;
	e->run_id = uar_str_c(r->run_id);
	return e;
}

bool rt_fanout_is_child(const struct live_run *r)
{
	uar_str thread = uar_str_c(r->thread_id);

	return uar_str_starts(thread, UAR_STR(UAR_SUBAGENT_THREAD)) ||
	       uar_str_starts(thread, UAR_STR(UAR_JOB_THREAD));
}

/* Its record may be evicted before it could be looked up. */
static void settle_ended(struct errand *e, const struct uar_run *run)
{
	const struct uar_run_end *end = &uar_run_rare(run)->end;
	uar_str *own[] = { &e->parent_id, &e->turn_id, &e->run_id, &e->code, &e->message };

	e->status = uar_str_c(uar_status_text(run->status));
	e->code = uar_str_c(end->code);
	e->message = uar_str_c(end->message);
	e->retryable = end->retryable;
	if (rt_errand_keep(e, own, ARRAY_LEN(own)))
		read_on(e);
}

/* Its agents are parts of it: nobody else takes what they bring. */
static bool is_workflow_that_failed(const struct uar_run *r)
{
	return r->what.entry == UAR_ENTRY_WORKFLOW && r->status == UAR_STATUS_FAILED;
}

void rt_fanout_ended(struct live_run *r)
{
	struct errand *e = errand_of_run(r);

	if (r->state.status == UAR_STATUS_CANCELLED || r->state.status == UAR_STATUS_TIMED_OUT ||
	    is_workflow_that_failed(&r->state))
		rt_fanout_parent_stopped(r);
	if (e)
		settle_ended(e, &r->state);
}

void rt_fanout_follow(struct live_run *r)
{
	struct errand *e = errand_of_run(r);
	uar_str *own[] = { e ? &e->parent_id : NULL, e ? &e->turn_id : NULL,
			   e ? &e->run_id : NULL };

	if (!e)
		return;
	e->status = is_waiting(r->state.status) ? UAR_STR("waiting") : UAR_STR("running");
	if (e->job)
		rt_errand_end(e);
	else if (rt_errand_keep(e, own, ARRAY_LEN(own)))
		follow(e);
}
