/* fold.c - what each event changes. Nothing else assigns the state of a run that has
 * its events; one that lost them is given a state by from_row.c, to be ended. */
#include "core/emit.h"

struct fold {
	struct uar_run *r;
	const struct uar_event *ev;
	const struct uar_json *p; /* payload */
	struct uar_arena *scratch;
	struct uar_error *error;
};

static uar_err corrupt(const struct fold *f, const char *why)
{
	return uar_error_set(f->error, UAR_ECORRUPT, "%s cannot follow: %s",
			     uar_event_info[f->ev->cls].type, why);
}

static uar_str member(const struct fold *f, const char *key)
{
	return uar_json_str(uar_json_get(f->p, uar_str_c(key)), UAR_STR_NONE);
}

void uar_core_keep(char *out, size_t size, uar_str s)
{
	s = uar_str_utf8_prefix(s, size - 1);
	if (s.n)
		memcpy(out, s.p, s.n);
	out[s.n] = 0;
}

static uar_str text_of(const struct uar_json *j)
{
	return j ? j->text : UAR_STR_NONE;
}

/* Copies into the run's arena. */
static uar_err own_all(struct fold *f, const uar_str *from, uar_str *const *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*to[i] = from[i];
	return uar_arena_strs(&f->r->arena, to, n) ? UAR_OK : UAR_ENOMEM;
}

/* A run that is being created has them. */
static uar_err fold_ids(struct fold *f, const struct uar_json *options)
{
	struct uar_run_ids *id = &f->r->id;
	const uar_str *ids = f->ev->ids;
	uar_str trace = uar_json_str(uar_json_get(options, UAR_STR("trace_id")), ids[UAR_ID_TRACE]);
	uar_str from[] = { ids[UAR_ID_RUN], ids[UAR_ID_THREAD], ids[UAR_ID_TURN], ids[UAR_ID_TASK],
			   trace };
	uar_str *to[] = { &id->run_id, &id->thread_id, &id->turn_id, &id->task_id, &id->trace_id };

	return id->run_id.n ? UAR_OK : own_all(f, from, to, ARRAY_LEN(from));
}

/* Of inputs that are longer than their beginning: the blob. */
static uar_err fold_long_inputs(struct fold *f, const struct uar_json *part, uar_str *out_blob)
{
	int64_t bytes = uar_json_int(uar_json_get(part, UAR_STR("bytes")), 0);
	uar_str preview = uar_json_str(uar_json_get(part, UAR_STR("preview")), UAR_STR_NONE);

	if (bytes <= (int64_t)preview.n)
		return UAR_OK;
	f->r->what.inputs_bytes = bytes;
	return uar_event_blob(f->ev, "inputs_ref", f->scratch, out_blob);
}

static uar_err fold_turn_submitted(struct fold *f)
{
	struct uar_run_what *what = &f->r->what;
	uar_str blob = UAR_STR_NONE, inputs = UAR_STR_NONE;
	uar_err e = uar_event_blob(f->ev, "input_ref", f->scratch, &blob);
	const struct uar_json *parts = uar_json_get(f->p, UAR_STR("input_parts"));
	const struct uar_json *o = uar_json_get(f->p, UAR_STR("options"));

	if (!e)
		e = fold_long_inputs(f, uar_json_at(parts, 1), &inputs);
	uar_str from[] = {
		uar_json_str(uar_json_get(o, UAR_STR("provider")), UAR_STR_NONE),
		uar_json_str(uar_json_get(o, UAR_STR("model")), UAR_STR_NONE),
		uar_json_str(uar_json_get(o, UAR_STR("instructions")), UAR_STR_NONE),
		uar_json_str(uar_json_get(uar_json_at(parts, 0), UAR_STR("preview")), UAR_STR_NONE),
		uar_json_str(uar_json_get(uar_json_at(parts, 1), UAR_STR("preview")), UAR_STR_NONE),
		member(f, "idempotency_key"),
		blob,
		uar_json_str(uar_json_get(o, UAR_STR("root_run_id")), f->ev->ids[UAR_ID_RUN]),
		uar_json_str(uar_json_get(o, UAR_STR("parent_run_id")), UAR_STR_NONE),
		uar_json_str(uar_json_get(o, UAR_STR("definition")), UAR_STR_NONE),
		inputs,
		text_of(uar_json_get(o, UAR_STR("budgets"))),
	};
	uar_str *to[] = { &what->provider,     &what->model,	      &what->instructions,
			  &what->message,      &what->inputs,	      &what->idempotency_key,
			  &what->message_blob, &f->r->id.root_run_id, &f->r->id.parent_run_id,
			  &what->definition,   &what->inputs_blob,    &what->budgets };

	if (!e)
		e = fold_ids(f, o);
	what->entry =
		uar_entry_parse(uar_json_str(uar_json_get(o, UAR_STR("entry")), UAR_STR_NONE));
	if (what->entry == UAR_ENTRY_COUNT)
		return corrupt(f, "its entry is unknown");
	what->message_bytes =
		uar_json_int(uar_json_get(uar_json_at(parts, 0), UAR_STR("bytes")), 0);
	what->timeout_us = uar_json_int(uar_json_get(o, UAR_STR("timeout_ms")), 0) * 1000;
	what->attempt = uar_json_int(uar_json_get(o, UAR_STR("attempt")), 1);
	if (uar_str_is(uar_json_text(o, "restart"), "fail"))
		what->restart = UAR_RESTART_FAIL;
	what->model_chosen = uar_json_bool(uar_json_get(o, UAR_STR("model_chosen")), false);
	what->task_made = uar_json_bool(uar_json_get(o, UAR_STR("task_made")), false);
	what->permit = uar_run_permit_of(o);
	f->r->id.task_given = what->task_made;
	what->cause =
		uar_cause_parse(uar_json_str(uar_json_get(o, UAR_STR("cause")), UAR_STR("first")));
	f->r->in_queue = member(f, "queued_turn_id").n > 0;
	f->r->at.created_us = f->ev->time_us;
	return e ? e : own_all(f, from, to, ARRAY_LEN(from));
}

static uar_err fold_task_created(struct fold *f)
{
	f->r->id.task_given = !uar_json_bool(uar_json_get(f->p, UAR_STR("implicit")), true);
	return UAR_OK;
}

static uar_err fold_task_queued(struct fold *f)
{
	struct uar_run_what *what = &f->r->what;
	uar_str from[] = { member(f, "plugin_id"), member(f, "entry_id"), member(f, "agent_id") };
	uar_str *to[] = { &what->plugin_id, &what->entry_id, &what->agent_id };

	f->r->status = UAR_STATUS_QUEUED;
	f->r->row_changed = true;
	return own_all(f, from, to, ARRAY_LEN(from));
}

static uar_err fold_attempt_started(struct fold *f)
{
	f->r->status = UAR_STATUS_RUNNING;
	f->r->at.started_us = f->ev->time_us;
	f->r->row_changed = true;
	return UAR_OK;
}

/* A failed call that is made again says when. */
static void fold_wait(struct fold *f)
{
	const struct uar_json *more = uar_json_get(f->p, UAR_STR("metadata"));
	int64_t tries = uar_json_int(uar_json_get(more, UAR_STR("retry")), 0);
	int64_t wait_ms = uar_json_int(uar_json_get(more, UAR_STR("wait_ms")), 0);

	f->r->call.due_us = tries ? f->ev->time_us + wait_ms * 1000 : 0;
	if (tries)
		f->r->call.tries = (int)tries;
}

static uar_err fold_run_status(struct fold *f)
{
	enum uar_status status = uar_status_parse(member(f, "status"));

	uar_core_keep(f->r->phase, sizeof f->r->phase, member(f, "phase"));
	fold_wait(f);
	if (uar_json_get(f->p, UAR_STR("fixture_line")))
		return UAR_OK; /* it tells of the run that was recorded */
	/* While somebody is asked the run waits, whatever its worker does meanwhile. */
	if (!uar_run_rare(f->r)->actions.open_count && status < UAR_STATUS_CANCELLING &&
	    f->r->status != UAR_STATUS_CANCELLING)
		f->r->status = status;
	if (f->r->what.entry == UAR_ENTRY_WORKFLOW)
		return uar_core_fold_plan(f->r, f->p);
	return f->r->what.entry == UAR_ENTRY_PEER ? uar_core_fold_peer(f->r, f->ev, f->p) : UAR_OK;
}

static uar_err fold_model_requested(struct fold *f)
{
	struct uar_run_call *call = &f->r->call;

	uar_core_keep(call->request_id, sizeof call->request_id, f->ev->ids[UAR_ID_MODEL_REQUEST]);
	call->message_id[0] = 0;
	call->open = true;
	call->role = uar_call_role_parse(member(f, "role"));
	if ((call->role == UAR_ROLE_EXECUTE || call->role == UAR_ROLE_CANDIDATE) && f->r->rare)
		f->r->rare->later.told = f->r->rare->later.given;
	call->requested_us = f->ev->time_us;
	call->first_us = 0;
	call->index = call->chars = call->thought = 0;
	call->prompt_tokens = uar_json_int(uar_json_get(f->p, UAR_STR("input_tokens_estimate")), 0);
	if (call->role != UAR_ROLE_SAMPLE) /* then its tool is at work, and stays so */
		f->r->status = UAR_STATUS_PREPARING;
	return UAR_OK;
}

/* While somebody is asked the run waits, whatever its worker says meanwhile. */
static uar_err streaming(struct fold *f)
{
	if (!uar_run_rare(f->r)->actions.open_count)
		f->r->status = UAR_STATUS_STREAMING;
	return UAR_OK;
}

static uar_err fold_delta(struct fold *f)
{
	struct uar_run_call *call = &f->r->call;

	uar_core_keep(call->message_id, sizeof call->message_id, member(f, "message_id"));
	call->index++;
	*(f->ev->cls == UAR_EV_MODEL_DELTA ? &call->chars : &call->thought) +=
		(int64_t)member(f, "text").n;
	if (!call->first_us)
		call->first_us = f->ev->time_us;
	return streaming(f);
}

/* Cut off by a stop of the server: the same call is made again. */
static bool is_cut_off(const struct fold *f)
{
	const struct uar_json *error = uar_json_get(f->p, UAR_STR("error"));

	return uar_str_is(uar_json_text(error, "code"), "LOST");
}

const char *uar_run_finish_reason(const struct uar_run *r)
{
	const char *reason = uar_run_rare(r)->finish_reason;

	return reason[0] ? reason : "stop";
}

/* Why the answer ended, unless it was complete, as most are. */
static uar_err fold_finish(struct fold *f)
{
	uar_str reason = member(f, "stop_reason");
	bool whole = !reason.n || uar_str_is(reason, "stop") || uar_str_is(reason, "tool_calls") ||
		     uar_str_is(reason, "function_call"); /* what it was called before */
	struct uar_run_rare *rare;

	if (whole && !f->r->rare)
		return UAR_OK;
	rare = uar_core_change_rare(f->r);
	if (rare)
		uar_core_keep(rare->finish_reason, sizeof rare->finish_reason,
			      whole ? UAR_STR("") : reason);
	return rare ? UAR_OK : UAR_ENOMEM;
}

/* What helps the answer is kept beside the event: a plan, or the answer of a candidate. */
static uar_err fold_help(struct fold *f)
{
	struct uar_run_rare *rare = uar_core_change_rare(f->r);
	struct uar_run_route *route = rare ? &rare->route : NULL;
	uar_str blob = UAR_STR_NONE;
	uar_err e = rare ? uar_event_blob(f->ev, "raw_ref", f->scratch, &blob) : UAR_ENOMEM;

	if (e)
		return e;
	if (f->r->call.role == UAR_ROLE_PLAN)
		uar_core_keep(route->plan_blob, sizeof route->plan_blob, blob);
	else if (route->at < route->count)
		uar_core_keep(route->answers[route->at++], sizeof route->answers[0], blob);
	else
		return corrupt(f, "there is no such candidate");
	return UAR_OK;
}

/* The same for a call that failed or was cut off: it was paid for, too. */
static uar_err fold_model_ended(struct fold *f)
{
	const struct uar_json *usage = uar_json_get(f->p, UAR_STR("usage"));
	struct uar_run_call *call = &f->r->call;

	call->open = false;
	if (f->ev->cls == UAR_EV_MODEL_COMPLETED) {
		call->tries = 0;
		call->rejected = call->rejected && call->role != UAR_ROLE_EXECUTE;
	} else if (uar_str_is(uar_json_str(uar_json_pointer(f->p, UAR_STR("/error/code")),
					   UAR_STR("")),
			      UAR_OUTPUT_INVALID)) {
		call->rejected = true;
	}
	call->restarts = is_cut_off(f) ? call->restarts + 1 : 0;
	call->calls++;
	call->input_tokens += uar_json_int(uar_json_get(usage, UAR_STR("input_tokens")), 0);
	call->output_tokens += uar_json_int(uar_json_get(usage, UAR_STR("output_tokens")), 0);
	call->nanos += uar_core_nanos(uar_json_double(uar_json_get(f->p, UAR_STR("cost_usd")), 0));
	call->estimated |= uar_json_bool(uar_json_get(usage, UAR_STR("estimated")), false);
	if (uar_json_int(uar_json_get(f->p, UAR_STR("tool_call_count")), 0) > 0) {
		struct uar_run_rare *rare = uar_core_change_rare(f->r);

		if (!rare)
			return UAR_ENOMEM;
		rare->tools.rounds++;
	}
	if ((call->role == UAR_ROLE_PLAN || call->role == UAR_ROLE_CANDIDATE) &&
	    f->ev->cls == UAR_EV_MODEL_COMPLETED)
		return fold_help(f);
	return call->role == UAR_ROLE_SAMPLE ? UAR_OK : fold_finish(f);
}

static struct uar_open_tool *open_tool(struct fold *f)
{
	struct uar_run_tools *tools = f->r->rare ? &f->r->rare->tools : NULL;
	size_t i = tools ? uar_tool_find(tools, f->ev->ids[UAR_ID_TOOL_CALL]) : 0;

	return tools && i < tools->open_count ? &tools->open[i] : NULL;
}

static uar_err fold_tool_started(struct fold *f)
{
	struct uar_run_rare *rare = uar_core_change_rare(f->r);
	struct uar_run_tools *tools = rare ? &rare->tools : NULL;
	uar_str effect = member(f, "effect");
	struct uar_open_tool *tool;

	if (!rare)
		return UAR_ENOMEM;
	if (open_tool(f))
		return corrupt(f, "that call is open already");
	if (tools->open_count == UAR_OPEN_TOOLS)
		return corrupt(f, "too many calls are open");
	tool = &tools->open[tools->open_count];
	uar_core_keep(tool->call_id, sizeof tool->call_id, f->ev->ids[UAR_ID_TOOL_CALL]);
	uar_core_keep(tool->step_id, sizeof tool->step_id, f->ev->ids[UAR_ID_STEP]);
	uar_core_keep(tool->name, sizeof tool->name, member(f, "tool_name"));
	tool->index = 0;
	tool->started_us = f->ev->time_us;
	tool->changes = effect.n && !uar_str_is(effect, "read_only");
	tools->open_count++;
	tools->calls++;
	/* Who executes it is at work between two answers, not giving one. */
	return effect.n ? UAR_OK : streaming(f);
}

static uar_err fold_tool_goes_on(struct fold *f)
{
	struct uar_open_tool *tool = open_tool(f);

	if (!tool)
		return corrupt(f, "no such call is open");
	tool->index++;
	return UAR_OK;
}

static uar_err fold_tool_ended(struct fold *f)
{
	struct uar_open_tool *tool = open_tool(f);
	struct uar_run_tools *tools;

	if (!tool)
		return corrupt(f, "no such call is open");
	tools = &f->r->rare->tools;
	*tool = tools->open[--tools->open_count];
	return UAR_OK;
}

static uar_err fold_cancel_requested(struct fold *f)
{
	struct uar_run_rare *rare = uar_core_change_rare(f->r);

	if (!rare)
		return UAR_ENOMEM;
	rare->cancel.requested = true;
	rare->cancel.at_us = f->ev->time_us;
	uar_core_keep(rare->cancel.reason, sizeof rare->cancel.reason, member(f, "reason"));
	f->r->status = UAR_STATUS_CANCELLING;
	f->r->row_changed = true;
	return UAR_OK;
}

static uint32_t offered_by(const struct uar_json *decisions)
{
	const struct uar_json *at =
		decisions && decisions->kind == UAR_JSON_ARRAY ? decisions->first : NULL;
	uint32_t offered = 0;

	for (; at; at = at->next)
		offered |= 1u << uar_verdict_parse(uar_json_str(at, UAR_STR("")));
	return offered & ~UAR_VERDICT_BIT(ASK);
}

static void keep_action(struct fold *f, struct uar_open_action *open)
{
	const struct uar_json *scope = uar_json_get(f->p, UAR_STR("scope"));
	int64_t timeout_us = uar_json_int(uar_json_get(scope, UAR_STR("timeout_ms")), 0) * 1000;

	open->asked_us = f->ev->time_us;
	open->until_us = timeout_us ? f->ev->time_us + timeout_us : 0;
	open->type = uar_action_type_parse(member(f, "action_type"));
	if (open->type == UAR_ACTION_TYPE_COUNT)
		open->type = UAR_ACTION_PERMISSION;
	open->offered = offered_by(uar_json_get(f->p, UAR_STR("decisions")));
	uar_core_keep(open->kind, sizeof open->kind, uar_json_text(scope, "kind"));
	uar_core_keep(open->call_id, sizeof open->call_id, uar_json_text(scope, "tool_call_id"));
	uar_core_keep(open->tool_id, sizeof open->tool_id, uar_json_text(scope, "tool_id"));
	uar_core_keep(open->tool_version, sizeof open->tool_version,
		      uar_json_text(scope, "tool_version"));
	uar_core_keep(open->args_digest, sizeof open->args_digest,
		      uar_json_text(scope, "args_digest"));
	uar_core_keep(open->tool_name, sizeof open->tool_name, member(f, "tool_name"));
	uar_core_keep(open->prompt, sizeof open->prompt, member(f, "prompt"));
}

/* What is asked besides leaves the run waiting for what it was asked first. */
static void wait_for(struct fold *f, const struct uar_open_action *open)
{
	if (!uar_status_waits(f->r->status))
		f->r->status = uar_action_info[open->type].input ? UAR_STATUS_WAITING_INPUT
								 : UAR_STATUS_WAITING_PERMISSION;
	f->r->row_changed = true;
}

static uar_err fold_action_required(struct fold *f)
{
	struct uar_run_rare *rare = uar_core_change_rare(f->r);
	struct uar_run_actions *a = rare ? &rare->actions : NULL;
	struct uar_open_action *open;
	uar_str run_id;

	if (!rare)
		return UAR_ENOMEM;
	if (a->open_count == UAR_OPEN_ACTIONS)
		return corrupt(f, "too many questions are open");
	open = &a->open[a->open_count];
	*open = (struct uar_open_action){ .number = 0 };
	if (!uar_action_parse(f->ev->ids[UAR_ID_ACTION], &run_id, &open->number) ||
	    open->number != a->count + 1)
		return corrupt(f, "its number is not the next one");
	keep_action(f, open);
	a->count = open->number;
	a->open_count++;
	if (!a->parked_us)
		a->parked_us = f->ev->time_us;
	wait_for(f, open);
	return UAR_OK;
}

static uar_err fold_action_resolved(struct fold *f)
{
	struct uar_run_rare *rare = uar_core_change_rare(f->r);
	struct uar_run_actions *a = rare ? &rare->actions : NULL;
	uar_str run_id;
	int64_t number = 0;
	size_t i = 0;

	if (!rare)
		return UAR_ENOMEM;
	if (!uar_action_parse(f->ev->ids[UAR_ID_ACTION], &run_id, &number))
		return corrupt(f, "it names no question");
	while (i < a->open_count && a->open[i].number != number)
		i++;
	if (i == a->open_count)
		return corrupt(f, "that question is not open");
	a->open_count--;
	memmove(&a->open[i], &a->open[i + 1], (a->open_count - i) * sizeof a->open[0]);
	if (!a->open_count) {
		a->waited_us += f->ev->time_us - a->parked_us;
		a->parked_us = 0;
	}
	f->r->row_changed = true;
	return UAR_OK;
}

static uar_err fold_routing(struct fold *f)
{
	uar_err e = uar_core_fold_routing(f->r, f->ev->cls, f->p);

	return e == UAR_ECORRUPT ? corrupt(f, "it names no model of the run") : e;
}

static uar_err fold_compaction(struct fold *f)
{
	return uar_core_fold_compaction(f->r, f->ev->cls, f->p);
}

static uar_err fold_context(struct fold *f)
{
	uar_err e = uar_core_fold_skills(f->r, f->p);

	return e == UAR_ECORRUPT ? corrupt(f, "it names too many skills") : e;
}

static uar_err fold_artifact(struct fold *f)
{
	return uar_core_fold_artifact(f->r, f->ev, f->p);
}

static uar_err fold_process(struct fold *f)
{
	uar_err e = uar_core_fold_process(f->r, f->ev, f->p);

	return e == UAR_ECORRUPT ? corrupt(f, "no such process is open, or too many are") : e;
}

static uar_err fold_task_resumed(struct fold *f)
{
	f->r->status = UAR_STATUS_RUNNING;
	return UAR_OK;
}

/* The one fact of a thread that concerns a run: where its program's own
 * conversation goes on. */
static uar_err fold_thread_updated(struct fold *f)
{
	uar_str id = uar_json_str(
		uar_json_get(uar_json_get(f->p, UAR_STR("backend_session")), UAR_STR("id")),
		UAR_STR_NONE);
	struct uar_run_rare *rare;

	if (!id.n)
		return UAR_OK;
	rare = uar_core_change_rare(f->r);
	if (!rare)
		return UAR_ENOMEM;
	uar_core_keep(rare->agent_session, sizeof rare->agent_session, id);
	f->r->row_changed = true;
	return UAR_OK;
}

static uar_err fold_progress(struct fold *f)
{
	return uar_core_fold_progress(f->r, f->p);
}

static uar_str source_of(const struct uar_json *j, enum uar_json_kind kind)
{
	return j && j->kind == kind ? j->text : UAR_STR_NONE;
}

static uar_err fold_results(struct fold *f)
{
	struct uar_result_refs *r = &f->r->result_refs;

	r->ids = source_of(uar_json_get(f->p, UAR_STR("result_refs")), UAR_JSON_ARRAY);
	r->count = uar_json_int(uar_json_get(f->p, UAR_STR("result_ref_count")), 0);
	return uar_event_blob(f->ev, "output_ref", f->scratch, &r->blob);
}

static uar_err fold_attempt_completed(struct fold *f)
{
	f->r->status = UAR_STATUS_COMPLETED;
	f->r->at.finished_us = f->ev->time_us;
	f->r->row_changed = true;
	return fold_results(f);
}

static uar_err fold_attempt_failed(struct fold *f)
{
	const struct uar_json *error = uar_json_get(f->p, UAR_STR("error"));
	struct uar_run_rare *rare = uar_core_change_rare(f->r);
	struct uar_run_end *end = rare ? &rare->end : NULL;

	if (!rare)
		return UAR_ENOMEM;
	f->r->status = uar_status_parse(member(f, "status"));
	if (f->r->status == UAR_STATUS_COUNT || !uar_status_terminal(f->r->status))
		return corrupt(f, "its status is not one of an end");
	uar_core_keep(end->code, sizeof end->code,
		      uar_json_str(uar_json_get(error, UAR_STR("code")), UAR_STR("INTERNAL")));
	uar_core_keep(end->message, sizeof end->message, member(f, "message"));
	end->details = source_of(uar_json_get(error, UAR_STR("details")), UAR_JSON_OBJECT);
	end->retryable = uar_json_bool(uar_json_get(f->p, UAR_STR("retryable")), false);
	f->r->at.finished_us = f->ev->time_us;
	f->r->row_changed = true;
	return fold_results(f);
}

static uar_err fold_vendor(struct fold *f)
{
	return uar_event_is_turn_input(f->ev)
		       ? uar_core_fold_turn_input(f->r, f->ev, f->p, f->scratch)
		       : UAR_OK;
}

/* turn_on and task_on are inputs of their machines plus one; 0: none. */
static const struct rule {
	uar_err (*fn)(struct fold *f);
	int turn_on, task_on;
	bool after_end; /* may follow the end of its run */
} rules[UAR_EV_COUNT] = {
#define TURN(ON) (UAR_TURN_ON_##ON + 1)
#define TASK(ON) (UAR_TASK_ON_##ON + 1)
	[UAR_EV_TURN_SUBMITTED] = { fold_turn_submitted, TURN(SUBMITTED), 0, false },
	[UAR_EV_TURN_STARTED] = { NULL, TURN(STARTED), 0, false },
	[UAR_EV_TURN_COMPLETED] = { NULL, TURN(COMPLETED), 0, true },
	[UAR_EV_TURN_FAILED] = { NULL, TURN(FAILED), 0, true },
	[UAR_EV_TASK_CREATED] = { fold_task_created, 0, TASK(CREATED), false },
	[UAR_EV_TASK_QUEUED] = { fold_task_queued, 0, TASK(QUEUED), false },
	[UAR_EV_TASK_RETRYING] = { fold_task_created, 0, TASK(RETRYING), false },
	[UAR_EV_THREAD_UPDATED] = { fold_thread_updated, 0, 0, false },
	[UAR_EV_ACTION_REQUIRED] = { fold_action_required, 0, 0, false },
	[UAR_EV_ACTION_RESOLVED] = { fold_action_resolved, 0, 0, false },
	[UAR_EV_TASK_WAITING] = { NULL, 0, TASK(WAITING), false },
	[UAR_EV_TASK_RESUMED] = { fold_task_resumed, 0, TASK(RESUMED), false },
	[UAR_EV_TASK_PROGRESS] = { fold_progress, 0, TASK(PROGRESS), false },
	[UAR_EV_TASK_LOST] = { NULL, 0, TASK(LOST), true },
	[UAR_EV_TASK_ATTEMPT_STARTED] = { fold_attempt_started, 0, 0, false },
	[UAR_EV_TASK_STARTED] = { NULL, 0, TASK(STARTED), false },
	[UAR_EV_TASK_CANCEL_REQUESTED] = { fold_cancel_requested, 0, TASK(CANCEL_REQUESTED),
					   false },
	[UAR_EV_TASK_ATTEMPT_COMPLETED] = { fold_attempt_completed, 0, 0, false },
	[UAR_EV_TASK_ATTEMPT_FAILED] = { fold_attempt_failed, 0, 0, false },
	[UAR_EV_TASK_COMPLETED] = { NULL, 0, TASK(COMPLETED), true },
	[UAR_EV_TASK_FAILED] = { NULL, 0, TASK(FAILED), true },
	[UAR_EV_TASK_CANCELLED] = { NULL, 0, TASK(CANCELLED), true },
	[UAR_EV_TASK_TIMED_OUT] = { NULL, 0, TASK(TIMED_OUT), true },
	[UAR_EV_RUN_STATUS] = { fold_run_status, 0, 0, false },
	[UAR_EV_MODEL_REQUESTED] = { fold_model_requested, 0, 0, false },
	[UAR_EV_MODEL_DELTA] = { fold_delta, 0, 0, false },
	[UAR_EV_REASONING_DELTA] = { fold_delta, 0, 0, false },
	[UAR_EV_MODEL_COMPLETED] = { fold_model_ended, 0, 0, false },
	[UAR_EV_MODEL_FAILED] = { fold_model_ended, 0, 0, false },
	[UAR_EV_CONTEXT_RESOLVED] = { fold_context, 0, 0, false },
	[UAR_EV_ARTIFACT_CHANGED] = { fold_artifact, 0, 0, false },
	[UAR_EV_CONTEXT_COMPACTION_STARTED] = { fold_compaction, 0, 0, false },
	[UAR_EV_CONTEXT_COMPACTION_COMPLETED] = { fold_compaction, 0, 0, false },
	[UAR_EV_CONTEXT_COMPACTION_FAILED] = { fold_compaction, 0, 0, false },
	[UAR_EV_TASK_PROFILE_RESOLVED] = { fold_routing, 0, 0, false },
	[UAR_EV_ROUTING_CANDIDATES_RESOLVED] = { fold_routing, 0, 0, false },
	[UAR_EV_ROUTING_DECIDED] = { fold_routing, 0, 0, false },
	[UAR_EV_ROUTING_FALLBACK_APPLIED] = { fold_routing, 0, 0, false },
	[UAR_EV_COST_ESTIMATED] = { fold_routing, 0, 0, false },
	[UAR_EV_COST_RECORDED] = { fold_routing, 0, 0, false },
	[UAR_EV_QUOTA_LOW] = { fold_routing, 0, 0, false },
	[UAR_EV_TOOL_STARTED] = { fold_tool_started, 0, 0, false },
	[UAR_EV_TOOL_ARGS] = { fold_tool_goes_on, 0, 0, false },
	[UAR_EV_TOOL_PROGRESS] = { fold_tool_goes_on, 0, 0, false },
	[UAR_EV_TOOL_RESULT] = { fold_tool_ended, 0, 0, false },
	[UAR_EV_TOOL_FAILED] = { fold_tool_ended, 0, 0, false },
	[UAR_EV_PROCESS_STARTED] = { fold_process, 0, 0, false },
	[UAR_EV_PROCESS_OUTPUT] = { fold_process, 0, 0, false },
	[UAR_EV_PROCESS_COMPLETED] = { fold_process, 0, 0, false },
	[UAR_EV_PROCESS_FAILED] = { fold_process, 0, 0, false },
	[UAR_EV_PROCESS_TERMINATED] = { fold_process, 0, 0, false },
	[UAR_EV_VENDOR] = { fold_vendor, 0, 0, false },
#undef TURN
#undef TASK
};

static uar_err move_parts(struct fold *f, const struct rule *rule)
{
	struct uar_run *r = f->r;

	if (rule->turn_on && !uar_turn_move(&r->turn, (enum uar_turn_input)(rule->turn_on - 1)))
		return corrupt(f, "the turn is elsewhere");
	if (rule->task_on && !uar_task_move(&r->task, (enum uar_task_input)(rule->task_on - 1)))
		return corrupt(f, "the task is elsewhere");
	return UAR_OK;
}

/* A fixture's events name the line they come from, so that it goes on there. */
static void note_line(struct fold *f)
{
	if (f->r->what.entry == UAR_ENTRY_FIXTURE)
		f->r->replayed =
			uar_json_int(uar_json_get(f->p, UAR_STR("fixture_line")), f->r->replayed);
}

static uar_err fold_run(struct fold *f)
{
	const struct rule *rule = &rules[f->ev->cls];
	struct uar_run *r = f->r;
	uar_err e;

	if (f->ev->run_sequence != r->run_sequence + 1)
		return corrupt(f, "events of the run are missing");
	if (uar_status_terminal(r->status) && !rule->after_end)
		return corrupt(f, "the run has ended");
	if (r->turn == UAR_TURN_NONE && f->ev->cls != UAR_EV_TURN_SUBMITTED)
		return corrupt(f, "the run has not begun");
	e = uar_event_payload(f->ev, f->scratch, &f->p, f->error);
	if (!e)
		e = move_parts(f, rule);
	if (!e && rule->fn)
		e = rule->fn(f);
	if (e)
		return e;
	note_line(f);
	r->run_sequence = f->ev->run_sequence;
	r->at.updated_us = f->ev->time_us;
	return UAR_OK;
}

uar_err uar_core_fold(struct uar_session *s, struct uar_run *r, const struct uar_event *ev,
		      struct uar_arena *scratch, struct uar_error *error)
{
	struct fold f = { .r = r, .ev = ev, .scratch = scratch, .error = error };
	uar_err e = UAR_OK;

	if (ev->sequence <= s->sequence)
		return corrupt(&f, "the session is past it");
	if (ev->ids[UAR_ID_RUN].n)
		e = fold_run(&f);
	if (!e)
		s->sequence = ev->sequence;
	return e;
}
