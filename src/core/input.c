/* input.c - which input of the run's table a command is.
 *
 * Where a command can mean two things the state of the run tells which; the table has
 * an input for each, so that it says where every one of them leads. */
#include "core/emit.h"
#include "core/limits.h"

static enum uar_run_input start_input(const struct uar_run *r)
{
	return r->what.entry == UAR_ENTRY_ECHO && !uar_run_message_blob(r).n ? UAR_IN_BEGIN
									     : UAR_IN_START;
}

/* A model that says nothing has answered all the same. */
static enum uar_run_input text_input(const struct uar_run *r, uar_str text)
{
	return text.n || r->what.entry == UAR_ENTRY_LLM ? UAR_IN_OUTPUT : UAR_IN_STEP;
}

/* A step of a call that nobody saw begin begins it, unless there are too many. */
static enum uar_run_input tool_input(const struct uar_run *r, uar_str call_id)
{
	const struct uar_run_tools *tools = &uar_run_rare(r)->tools;

	return !uar_tool_open(tools, call_id) && tools->open_count < UAR_OPEN_TOOLS ? UAR_IN_OUTPUT
										    : UAR_IN_STEP;
}

/* One more round than is made ends the run. */
static enum uar_run_input calls_input(const struct uar_run *r, const struct uar_model_end *m)
{
	int64_t rounds = uar_run_rare(r)->tools.rounds + (m->call_count > 0);

	return rounds > UAR_LIMIT_TOOL_ROUNDS ? UAR_IN_FAILED : UAR_IN_TOOLS;
}

/* A task at a peer is cancelled there, whoever is at work here. */
static bool has_peer_task(const struct uar_run *r)
{
	return r->what.entry == UAR_ENTRY_PEER && uar_run_peer_begun(&uar_run_rare(r)->peer);
}

static enum uar_run_input cancel_input(const struct uar_run *r)
{
	return has_peer_task(r) && uar_run_move(r->status, UAR_IN_CANCEL_PEER).legal
		       ? UAR_IN_CANCEL_PEER
		       : UAR_IN_CANCEL;
}

static enum uar_run_input recover_input(const struct uar_run *r)
{
	if (r->what.restart == UAR_RESTART_FAIL && uar_run_move(r->status, UAR_IN_LOST).legal)
		return UAR_IN_LOST;
	if (r->call.due_us && r->status != UAR_STATUS_CANCELLING)
		return UAR_IN_RECOVER_WAIT;
	if (r->status == UAR_STATUS_CANCELLING && has_peer_task(r))
		return UAR_IN_RECOVER_CANCEL;
	if (!r->call.open || r->status == UAR_STATUS_CANCELLING)
		return UAR_IN_RECOVER;
	return r->call.restarts >= UAR_LIMIT_MODEL_RESTARTS ? UAR_IN_FAILED : UAR_IN_CUT_OFF;
}

static enum uar_run_input answer_input(const struct uar_run *r)
{
	return uar_run_rare(r)->actions.open_count > 1 ? UAR_IN_ANSWERED_PART : UAR_IN_ANSWERED;
}

static enum uar_run_input ask_input(const struct uar_ask *a)
{
	if (a->verdict != UAR_VERDICT_ASK)
		return UAR_IN_VERDICT;
	return uar_action_info[a->type].input ? UAR_IN_ASK_INPUT : UAR_IN_ASK_PERMISSION;
}

/* One that only helped is followed by the call that answers, and an answer that knows nothing of a
 * message which joined the turn by another one, unless the run is being cancelled. */
static enum uar_run_input done_input(const struct uar_run *r)
{
	bool answers = r->call.role == UAR_ROLE_EXECUTE || r->call.role == UAR_ROLE_RANK;
	bool goes_on = !answers || uar_core_untold(r);

	return goes_on && uar_run_move(r->status, UAR_IN_STAGED).legal ? UAR_IN_STAGED
								       : UAR_IN_FINISHED;
}

/* What no model can do, or would cost more than it may, ends the run before the call. */
static enum uar_run_input prepared_input(const struct uar_run *r, const struct uar_command *c)
{
	if (uar_core_must_steer(r, &c->prepared))
		return UAR_IN_STEERED;
	return c->prepared.not_possible || uar_core_over_budget(r, c) ? UAR_IN_FAILED
								      : UAR_IN_PREPARED;
}

static enum uar_run_input tool_begin_input(const struct uar_run *r, const struct uar_command *c)
{
	return !c->begin.again && uar_core_over_budget(r, c) ? UAR_IN_FAILED : UAR_IN_TOOL;
}

/* Of commands that mean the same always. */
static const enum uar_run_input inputs[UAR_CMD_COUNT] = {
	[UAR_CMD_PROGRESS] = UAR_IN_PROGRESS, [UAR_CMD_EXPORT] = UAR_IN_EXPORT,
	[UAR_CMD_DUE] = UAR_IN_DUE,	      [UAR_CMD_TOOL_NEWS] = UAR_IN_TOOL,
	[UAR_CMD_PROCESS] = UAR_IN_NOTE,      [UAR_CMD_SAMPLE] = UAR_IN_TOOL,
	[UAR_CMD_SAMPLED] = UAR_IN_TOOL_OVER, [UAR_CMD_TOOL_OVER] = UAR_IN_TOOL_OVER,
	[UAR_CMD_NOTE] = UAR_IN_NOTE,	      [UAR_CMD_SESSION] = UAR_IN_NOTE,
	[UAR_CMD_FINISH] = UAR_IN_FINISHED,   [UAR_CMD_FAIL] = UAR_IN_FAILED,
	[UAR_CMD_STEER] = UAR_IN_STEER,	      [UAR_CMD_EDIT] = UAR_IN_EDIT,
	[UAR_CMD_STOPPED] = UAR_IN_STOPPED,   [UAR_CMD_TIMEOUT] = UAR_IN_TIMEOUT,
	[UAR_CMD_LOST] = UAR_IN_LOST,
};

static enum uar_run_input other_input(const struct uar_run *r, const struct uar_command *c)
{
	if (c->kind == UAR_CMD_CANCEL)
		return cancel_input(r);
	if (c->kind == UAR_CMD_PLAN)
		return c->plan.due_us ? UAR_IN_PLAN_WAITS : UAR_IN_PLANNED;
	return c->kind == UAR_CMD_PEER ? uar_core_peer_input(&c->peer) : inputs[c->kind];
}

enum uar_run_input uar_core_input(const struct uar_run *r, const struct uar_command *c)
{
	switch (c->kind) {
	case UAR_CMD_START: return start_input(r);
	case UAR_CMD_TEXT:
	case UAR_CMD_REASONING: return text_input(r, c->text);
	case UAR_CMD_TOOL: return tool_input(r, c->tool.call_id);
	case UAR_CMD_REPLAY: return uar_core_replay_input(c->replay.event);
	case UAR_CMD_PREPARED: return prepared_input(r, c);
	case UAR_CMD_MODEL_DONE: return done_input(r);
	case UAR_CMD_MODEL_FAILED: return uar_core_failed_input(r, &c->model);
	case UAR_CMD_TOOL_BEGIN: return tool_begin_input(r, c);
	case UAR_CMD_MODEL_CALLS: return calls_input(r, &c->model);
	case UAR_CMD_RECOVER: return recover_input(r);
	case UAR_CMD_ASK: return ask_input(&c->ask);
	case UAR_CMD_ANSWER: return answer_input(r);
	default: return other_input(r, c);
	}
}
