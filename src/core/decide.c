/* decide.c - one function per command; the run table says whether it may happen. */
#include "core/budget.h"
#include "core/emit.h"

static const struct uar_failure cancelled = { UAR_STR("CANCELED"), UAR_STR("the run was cancelled"),
					      UAR_STR("cancelled"), false };
static const struct uar_failure timed_out = { UAR_STR("TIMEOUT"),
					      UAR_STR("the run took longer than its time limit"),
					      UAR_STR("timeout"), true };

/* What a call can fail of; when its run fails of something else, it is given up. */
static uar_str call_category(uar_str category)
{
	static const char *const known[] = { "provider_error", "timeout", "network", "cancelled" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(category, known[i]))
			return category;
	return UAR_STR("cancelled");
}

static const struct uar_failure was_lost = {
	UAR_STR("LOST"), UAR_STR("the server stopped while the run was at work"), UAR_STR("lost"),
	true
};

/* A call that will bring nothing more is closed before its run ends. */
static void close_call(struct emit *e, const struct uar_failure *f)
{
	struct uar_model_end m = { .code = f->code,
				   .category = call_category(f->category),
				   .message = f->message,
				   .retryable = f->retryable,
				   .input_tokens = -1,
				   .output_tokens = -1,
				   .total_tokens = -1 };

	if (e->r->call.open)
		uar_core_model_failed(e, &m);
}

void uar_core_end_by(struct emit *e, const struct uar_failure *f)
{
	struct uar_failure cause = f ? *f : (struct uar_failure){ 0 };

	if (e->move.to == UAR_STATUS_CANCELLED) {
		cause = cancelled;
		if (uar_run_rare(e->r)->cancel.reason[0])
			cause.message = uar_str_c(uar_run_rare(e->r)->cancel.reason);
	}
	uar_core_close_actions(e);
	uar_core_close_processes(e, &cause);
	uar_core_close_tools(e, &cause);
	if (e->move.to != UAR_STATUS_COMPLETED)
		close_call(e, &cause);
	uar_core_end(e, e->move.to, &cause);
}

static void do_begin(struct emit *e, const struct uar_command *c)
{
	(void)c;
	uar_core_begin(e);
}

static void do_start(struct emit *e, const struct uar_command *c)
{
	(void)c;
	uar_core_begin(e);
	uar_emit_status(e, "start", UAR_STATUS_RUNNING, "Run started");
}

static const struct uar_failure not_possible = {
	UAR_STR("ROUTING_NOT_POSSIBLE"),
	UAR_STR("no configured model can do what the run needs; routing.candidates.resolved says "
		"why each one is excluded"),
	UAR_STR("routing"), false
};

static void take_input(struct emit *e)
{
	uar_emit_status(e, "context_assembly", UAR_STATUS_RUNNING, "Taking further input");
}

static void do_steer(struct emit *e, const struct uar_command *c)
{
	uar_core_turn_input(e, "added", &c->input);
}

static void do_edit(struct emit *e, const struct uar_command *c)
{
	uar_core_turn_input(e, "replaced", &c->input);
}

static void do_prepared(struct emit *e, const struct uar_command *c)
{
	const struct uar_prepared *p = &c->prepared;
	struct uar_failure f = not_possible;

	if (uar_core_must_steer(e->r, p)) {
		take_input(e);
		return;
	}
	if (p->route.n)
		uar_core_route(e, p);
	if (!uar_status_terminal(e->move.to)) {
		uar_core_prepared(e, p);
		return;
	}
	if (!p->not_possible)
		f = uar_core_quota_blocked(e, c);
	uar_core_end_by(e, &f);
}

static void do_due(struct emit *e, const struct uar_command *c)
{
	(void)c;
	uar_core_due(e);
}

static void do_text(struct emit *e, const struct uar_command *c)
{
	uar_core_delta(e, UAR_EV_MODEL_DELTA, c->text);
}

static void do_reasoning(struct emit *e, const struct uar_command *c)
{
	uar_core_delta(e, UAR_EV_REASONING_DELTA, c->text);
}

static void do_model_done(struct emit *e, const struct uar_command *c)
{
	uar_core_model_done(e, &c->model);
	if (e->r->call.role == UAR_ROLE_RANK)
		uar_core_ranked(e, &c->model);
	if (!uar_status_terminal(e->move.to) && e->r->call.role == UAR_ROLE_EXECUTE) {
		uar_core_artifacts(e, c->model.artifacts);
		take_input(e);
		return;
	}
	if (!uar_status_terminal(e->move.to)) {
		uar_core_staged(e, &c->model);
		return;
	}
	if (e->move.to == UAR_STATUS_COMPLETED && e->r->what.entry == UAR_ENTRY_LLM) {
		uar_emit_status(e, "tool_loop", UAR_STATUS_RUNNING,
				uar_run_rare(e->r)->tools.rounds ? "No further tool was asked for"
								 : "No tool was asked for");
		uar_core_finalize(e, c->model.artifacts);
	}
	uar_core_end_by(e, NULL);
}

static void do_model_failed(struct emit *e, const struct uar_command *c)
{
	struct uar_failure f = { UAR_STR("PROVIDER_ERROR"), c->model.message, c->model.category,
				 c->model.retryable };

	uar_core_model_failed(e, &c->model);
	uar_core_rate_limit(e, &c->model);
	if (uar_status_terminal(e->move.to))
		uar_core_end_by(e, &f);
	else if (e->move.to == UAR_STATUS_RUNNING)
		uar_core_compaction_failed(e, &f);
	else
		uar_core_after_failure(e, &c->model);
}

static const struct uar_failure too_many_rounds = {
	UAR_STR("TOOL_LIMIT"), UAR_STR("the model asked for tools in more rounds than are made"),
	UAR_STR("limit"), false
};

/* The tools are executed by whoever finds in the log what was asked for. */
static void do_model_calls(struct emit *e, const struct uar_command *c)
{
	uar_core_model_done(e, &c->model);
	/* Once in a run, and not in those that use none: it is long. */
	if (!e->err && uar_run_rare(e->r)->tools.rounds == 1 && c->model.catalog.n)
		uar_core_catalog(e, &c->model);
	if (uar_status_terminal(e->move.to))
		uar_core_end_by(e, &too_many_rounds);
	else
		uar_emit_status(e, "tool_loop", UAR_STATUS_RUNNING, "Running tools");
}

static void do_replay(struct emit *e, const struct uar_command *c)
{
	e->line = c->replay.line;
	e->replay = &c->replay;
	uar_core_replay(e, c->replay.event);
}

static void do_progress(struct emit *e, const struct uar_command *c)
{
	uar_core_progress(e, &c->progress);
}

static void do_export(struct emit *e, const struct uar_command *c)
{
	uar_core_export(e, &c->export);
}

static void do_tool(struct emit *e, const struct uar_command *c)
{
	uar_core_tool(e, &c->tool);
}

static void do_tool_begin(struct emit *e, const struct uar_command *c)
{
	struct uar_failure f;

	if (!uar_status_terminal(e->move.to)) {
		uar_core_tool_begin(e, &c->begin);
		return;
	}
	f = uar_core_quota_blocked(e, c);
	uar_core_end_by(e, &f);
}

static void do_tool_news(struct emit *e, const struct uar_command *c)
{
	uar_core_tool_news(e, &c->news);
}

static void do_tool_over(struct emit *e, const struct uar_command *c)
{
	uar_core_tool_over(e, &c->over);
}

static void do_process(struct emit *e, const struct uar_command *c)
{
	uar_core_process_news(e, &c->process);
}

static void do_peer(struct emit *e, const struct uar_command *c)
{
	uar_core_peer(e, &c->peer);
}

static void do_plan(struct emit *e, const struct uar_command *c)
{
	uar_core_plan(e, &c->plan);
}

static void do_sample(struct emit *e, const struct uar_command *c)
{
	uar_core_model_requested(e, &c->prepared);
}

static void do_sampled(struct emit *e, const struct uar_command *c)
{
	if (c->model.category.n)
		uar_core_model_failed(e, &c->model);
	else
		uar_core_model_done(e, &c->model);
}

static void do_note(struct emit *e, const struct uar_command *c)
{
	uar_core_note(e, &c->note);
}

static void do_session(struct emit *e, const struct uar_command *c)
{
	uar_core_agent_session(e, c->text);
}

static void do_ask(struct emit *e, const struct uar_command *c)
{
	uar_core_ask(e, &c->ask);
}

static void do_answer(struct emit *e, const struct uar_command *c)
{
	uar_core_answer(e, &c->answer);
}

/* The result is part of the same append as the end that names it. */
static void do_finish(struct emit *e, const struct uar_command *c)
{
	if (c->export.id.n)
		uar_core_export(e, &c->export);
	e->results = c->result_refs;
	uar_core_end_by(e, NULL);
}

static void do_fail(struct emit *e, const struct uar_command *c)
{
	e->results = c->result_refs;
	e->details = c->details;
	uar_core_end_by(e, &c->fail);
}

static void cancel_requested(struct emit *e, uar_str reason)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "cancelling");
	if (reason.n)
		uar_jw_str(w, "reason", uar_str_utf8_prefix(reason, UAR_TEXT_REASON - 1));
	uar_emit_who(w, "requested_by", "user", e->s->owner.user);
	uar_jw_time(w, "requested_at", e->env->now_us);
	uar_jw_cstr(w, "propagation", "none");
	uar_jw_arr(w, "targets");
	uar_jw_close(w);
	uar_emit(e, UAR_EV_TASK_CANCEL_REQUESTED, EMIT_RUN);
}

static void do_cancel(struct emit *e, const struct uar_command *c)
{
	uar_core_close_actions(e);
	if (e->r->status == UAR_STATUS_QUEUED)
		uar_core_leave_queue(e, "removed");
	cancel_requested(e, c->text);
	if (uar_status_terminal(e->move.to))
		uar_core_end_by(e, &cancelled);
}

static void do_stopped(struct emit *e, const struct uar_command *c)
{
	(void)c;
	uar_core_end_by(e, &cancelled);
}

static void do_timeout(struct emit *e, const struct uar_command *c)
{
	(void)c;
	uar_core_end_by(e, &timed_out);
}

static void reconstructed(struct emit *e, int64_t took_us)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "source", "log");
	uar_jw_u64(w, "through_sequence", e->s->sequence);
	uar_jw_int(w, "turns", 1);
	uar_jw_bool(w, "degraded", false);
	uar_jw_arr(w, "missing");
	uar_jw_close(w);
	uar_jw_int(w, "duration_ms", took_us / 1000);
	uar_emit(e, UAR_EV_HISTORY_RECONSTRUCTED, EMIT_THREAD);
}

/* The answer that was cut off will come again from its beginning: readers are
 * told how much of the text they hold no longer counts. */
static void supersede(struct emit *e)
{
	static const struct uar_failure lost = { UAR_STR("LOST"),
						 UAR_STR("interrupted by a restart"),
						 UAR_STR("network"), true };
	char message_id[UAR_UUID_TEXT + 1];
	int64_t chars = e->r->call.chars;
	struct uar_jw *w;

	memcpy(message_id, e->r->call.message_id, sizeof message_id);
	close_call(e, &lost);
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "phase", "stream_start");
	uar_jw_cstr(w, "status", "retrying");
	uar_jw_cstr(w, "title", "Calling the model again after a restart");
	uar_jw_obj(w, "metadata");
	uar_core_put_superseded(w, uar_str_c(message_id), chars);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

/* A server that stops again and again must not call, and pay, each time. */
static const struct uar_failure too_many_restarts = {
	UAR_STR("RESTART_LIMIT"),
	UAR_STR("the server stopped too often in the middle of the same model call"),
	UAR_STR("limit"), true
};

/* Why a run ends that was found in the log. */
static const struct uar_failure *recover_cause(const struct emit *e)
{
	switch (e->move.to) {
	case UAR_STATUS_LOST: return &was_lost;
	case UAR_STATUS_FAILED: return &too_many_restarts;
	default: return &cancelled;
	}
}

static void do_recover(struct emit *e, const struct uar_command *c)
{
	reconstructed(e, c->took_us);
	uar_core_lose_processes(e);
	e->r->row_changed = true; /* a row of an older version lacks what lists need */
	if (uar_status_terminal(e->move.to))
		uar_core_end_by(e, recover_cause(e));
	else if (e->r->call.open)
		supersede(e);
	else if (e->move.to == UAR_STATUS_RETRYING && !e->r->call.due_us)
		uar_emit_status(e, "start", UAR_STATUS_RETRYING, "Going on after a restart");
}

static void do_lost(struct emit *e, const struct uar_command *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "code", "LOG_UNREADABLE");
	uar_jw_str(w, "message", c->fail.message);
	uar_jw_cstr(w, "component", "recovery");
	uar_jw_bool(w, "fatal", true); /* for the run */
	uar_emit_error(w, "error", &c->fail, UAR_STR_NONE);
	uar_emit(e, UAR_EV_RUNTIME_ERROR, EMIT_RUN);
	e->lost_by = "process_unknown"; /* the log does not say what became of it */
	uar_core_end_by(e, &c->fail);
}

typedef void handler(struct emit *e, const struct uar_command *c);

static handler *const handlers[UAR_CMD_COUNT] = {
	[UAR_CMD_START] = do_start,
	[UAR_CMD_PREPARED] = do_prepared,
	[UAR_CMD_TEXT] = do_text,
	[UAR_CMD_REASONING] = do_reasoning,
	[UAR_CMD_MODEL_DONE] = do_model_done,
	[UAR_CMD_MODEL_FAILED] = do_model_failed,
	[UAR_CMD_MODEL_CALLS] = do_model_calls,
	[UAR_CMD_REPLAY] = do_replay,
	[UAR_CMD_PROGRESS] = do_progress,
	[UAR_CMD_EXPORT] = do_export,
	[UAR_CMD_TOOL] = do_tool,
	[UAR_CMD_TOOL_BEGIN] = do_tool_begin,
	[UAR_CMD_TOOL_NEWS] = do_tool_news,
	[UAR_CMD_PROCESS] = do_process,
	[UAR_CMD_PEER] = do_peer,
	[UAR_CMD_PLAN] = do_plan,
	[UAR_CMD_SAMPLE] = do_sample,
	[UAR_CMD_SAMPLED] = do_sampled,
	[UAR_CMD_TOOL_OVER] = do_tool_over,
	[UAR_CMD_NOTE] = do_note,
	[UAR_CMD_SESSION] = do_session,
	[UAR_CMD_ASK] = do_ask,
	[UAR_CMD_ANSWER] = do_answer,
	[UAR_CMD_FINISH] = do_finish,
	[UAR_CMD_FAIL] = do_fail,
	[UAR_CMD_CANCEL] = do_cancel,
	[UAR_CMD_STEER] = do_steer,
	[UAR_CMD_EDIT] = do_edit,
	[UAR_CMD_STOPPED] = do_stopped,
	[UAR_CMD_TIMEOUT] = do_timeout,
	[UAR_CMD_DUE] = do_due,
	[UAR_CMD_RECOVER] = do_recover,
	[UAR_CMD_LOST] = do_lost,
};

/* What cannot begin passes through its start, or it would block its thread. */
static bool begins_to_end(const struct uar_run *r, const struct uar_command *c)
{
	return r->status == UAR_STATUS_QUEUED &&
	       (c->kind == UAR_CMD_FAIL || c->kind == UAR_CMD_LOST);
}

static bool allowed(const struct uar_run *r, const struct uar_command *c)
{
	if (c->kind == UAR_CMD_CREATE)
		return r->turn == UAR_TURN_NONE;
	if (c->kind == UAR_CMD_ANSWER &&
	    !uar_action_open(&uar_run_rare(r)->actions, c->answer.number))
		return false; /* it was never asked, or is answered already */
	if (c->kind == UAR_CMD_STEER && !uar_run_takes_input(r))
		return false;
	if (c->kind == UAR_CMD_DUE && !r->call.due_us)
		return false; /* nothing is waited for */
	if (c->kind == UAR_CMD_PROCESS &&
	    !uar_process_open(&uar_run_rare(r)->processes, c->process.process_id))
		return false; /* it has ended */
	return r->turn != UAR_TURN_NONE &&
	       (begins_to_end(r, c) || uar_run_move(r->status, uar_core_input(r, c)).legal);
}

static const char *tool_out_of_order(const struct uar_run *r, uar_str call_id, bool open)
{
	const struct uar_run_tools *tools = &uar_run_rare(r)->tools;
	bool is_open = uar_tool_open(tools, call_id) != NULL;

	if (!tools->rounds)
		return "no tool was asked for";
	if (!open && !is_open && tools->open_count == UAR_OPEN_TOOLS)
		return "too many tool calls are open";
	return is_open == open ? NULL : open ? "no such tool call is open" : "that call is open";
}

static const char *tool_fault(const struct uar_run *r, const struct uar_command *c)
{
	switch (c->kind) {
	case UAR_CMD_TOOL_BEGIN: return tool_out_of_order(r, c->begin.call_id, c->begin.again);
	case UAR_CMD_TOOL_NEWS: return tool_out_of_order(r, c->news.call_id, true);
	case UAR_CMD_TOOL_OVER: return tool_out_of_order(r, c->over.call_id, true);
	case UAR_CMD_SAMPLE:
		return r->call.open || !uar_run_rare(r)->tools.open_count
			       ? "no tool is at work alone"
			       : NULL;
	case UAR_CMD_SAMPLED:
		return r->call.open && r->call.role == UAR_ROLE_SAMPLE ? NULL
								       : "no tool asked the model";
	default: return NULL; /* nothing of a call */
	}
}

/* What a worker says of a call must fit those that are open. NULL: it does. */
static const char *out_of_order(const struct uar_run *r, const struct uar_command *c)
{
	switch (c->kind) {
	case UAR_CMD_PREPARED: return r->call.open ? "a model call is open already" : NULL;
	case UAR_CMD_MODEL_CALLS:
	case UAR_CMD_MODEL_DONE:
	case UAR_CMD_MODEL_FAILED: return r->call.open ? NULL : "no model call is open";
	case UAR_CMD_TEXT:
	case UAR_CMD_REASONING:
		return r->what.entry == UAR_ENTRY_LLM && !r->call.open ? "no model call is open"
								       : NULL;
	case UAR_CMD_FINISH: return r->call.open ? "a model call is still open" : NULL;
	default: return tool_fault(r, c);
	}
}

/* --- moves ----------------------------------------------------------------------- */

/* The facts of the handler must lead where the table says: it is what readers of the
 * code, and the checks before, rely on. */
static void move(struct emit *e, enum uar_run_input input, handler *fn, const struct uar_command *c)
{
	if (e->err)
		return;
	e->move = uar_run_move(e->r->status, input);
	fn(e, c);
	if (!e->err && e->r->status != e->move.to)
		e->err = uar_error_set(e->error, UAR_EINTERNAL, "the run is %s and should be %s",
				       uar_status_text(e->r->status), uar_status_text(e->move.to));
	uar_emit_effect(e, e->move.effect);
}

static void obey(struct emit *e, const struct uar_command *c)
{
	move(e, uar_core_input(e->r, c), handlers[c->kind], c);
}

/* An echo's answer follows from its input: there is nothing to perform, so all of
 * the run is one append. A text kept in a blob has to be fetched first. */
static void start(struct emit *e)
{
	struct uar_command c[] = { { .kind = UAR_CMD_START },
				   { .kind = UAR_CMD_TEXT, .text = e->r->what.message },
				   { .kind = UAR_CMD_FINISH } };
	bool echo = uar_core_input(e->r, &c[0]) == UAR_IN_BEGIN;

	for (size_t i = 0; i < (echo ? ARRAY_LEN(c) : 1); i++)
		obey(e, &c[i]);
}

static void create(struct emit *e, const struct uar_create *c)
{
	struct uar_create waiting;

	if (uar_queue_waits(e->env->queue)) {
		waiting = *c;
		waiting.wait = waiting.queued = true;
		c = &waiting;
	}
	uar_core_create(e, c);
	if (!c->wait)
		start(e);
}

static void perform(struct emit *e, const struct uar_command *c)
{
	switch (c->kind) {
	case UAR_CMD_CREATE: create(e, &c->create); break;
	case UAR_CMD_START: start(e); break;
	default:
		if (begins_to_end(e->r, c))
			move(e, UAR_IN_BEGIN, do_begin, c);
		obey(e, c);
	}
}

uar_err uar_core_decide(const struct uar_core_env *env, struct uar_session *s, struct uar_run *r,
			const struct uar_command *c, struct uar_decision *out,
			struct uar_error *error)
{
	const char *fault;
	struct emit e = {
		.env = env, .s = s, .r = r, .d = out, .error = error, .shared = c->shared
	};
	struct uar_account before = { 0 };

	if (!allowed(r, c))
		return uar_error_set(error, UAR_ESTATE, "the run is %s",
				     uar_status_text(r->status));
	if (c->kind == UAR_CMD_START && !uar_queue_may_start(env->queue))
		return uar_error_set(error, UAR_ESTATE, "the queue of the thread is held");
	fault = out_of_order(r, c);
	if (fault)
		return uar_error_set(error, UAR_EINTERNAL, "the worker is out of order: %s", fault);
	if (c->kind == UAR_CMD_SAMPLE && uar_core_over_budget(r, c))
		return uar_error_set(error, UAR_ESTATE, "the budget of the run is spent");
	if (c->shared)
		before = uar_core_account_now(r);
	perform(&e, c);
	if (c->shared)
		uar_core_account(&e, &before);
	return e.err;
}
