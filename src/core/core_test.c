/* core_test.c - decide and fold over every command in every status, and over
 * every sensible order of commands. */
#include "core/emit.h"
#include "run_rows.h"
#include "story.h"
#include "test.h"

#define SAME_STR(F) CHECK_MSG(uar_str_eq(a->F, b->F), #F " differs")
#define SAME_INT(F)                                                                                \
	CHECK_MSG(a->F == b->F, #F " differs: %lld, %lld", (long long)a->F, (long long)b->F)
#define SAME_TXT(F) CHECK_MSG(strcmp(a->F, b->F) == 0, #F " differs: %s, %s", a->F, b->F)

static void same_origin(const struct uar_run *a, const struct uar_run *b)
{
	SAME_STR(id.run_id), SAME_STR(id.thread_id), SAME_STR(id.turn_id), SAME_STR(id.task_id);
	SAME_STR(id.root_run_id), SAME_STR(id.parent_run_id), SAME_STR(id.trace_id);
	SAME_INT(id.task_given);
	SAME_INT(what.entry), SAME_STR(what.agent_id), SAME_STR(what.plugin_id);
	SAME_STR(what.entry_id), SAME_STR(what.provider), SAME_STR(what.model);
	SAME_STR(what.instructions), SAME_STR(what.message), SAME_STR(what.message_blob);
	SAME_STR(what.inputs), SAME_STR(what.idempotency_key);
	SAME_INT(what.message_bytes), SAME_INT(what.timeout_us), SAME_INT(what.attempt),
		SAME_INT(what.restart);
}

static void same_rare(const struct uar_run_rare *a, const struct uar_run_rare *b)
{
	SAME_INT(tools.open_count), SAME_INT(tools.calls), SAME_INT(tools.rounds);
	SAME_INT(cancel.requested);
	SAME_INT(cancel.at_us), SAME_TXT(cancel.reason), SAME_INT(progress.value * 100);
	SAME_INT(progress.step), SAME_INT(progress.step_total), SAME_TXT(progress.stage);
	SAME_TXT(progress.message), SAME_TXT(progress.metrics), SAME_STR(end.details);
	SAME_TXT(end.code), SAME_TXT(end.message);
	SAME_INT(end.retryable), SAME_INT(actions.open_count), SAME_INT(actions.count);
	SAME_INT(actions.parked_us), SAME_INT(actions.waited_us);
	SAME_TXT(actions.open[0].prompt), SAME_TXT(agent_session);
}

static void same_progress(const struct uar_run *a, const struct uar_run *b)
{
	SAME_INT(at.created_us), SAME_INT(at.updated_us), SAME_INT(at.started_us);
	SAME_INT(at.finished_us), SAME_TXT(call.request_id), SAME_TXT(call.message_id);
	SAME_INT(call.open), SAME_INT(call.requested_us), SAME_INT(call.first_us);
	SAME_INT(call.index), SAME_INT(call.chars), SAME_INT(call.calls);
	SAME_INT(call.input_tokens), SAME_INT(call.output_tokens), SAME_INT(call.estimated);
	SAME_INT(call.thought), SAME_INT(call.prompt_tokens), SAME_INT(status), SAME_INT(turn);
	SAME_INT(task), SAME_INT(run_sequence), SAME_INT(replayed), SAME_TXT(phase);
	SAME_STR(result_refs.ids), SAME_STR(result_refs.blob), SAME_INT(result_refs.count);
	same_rare(uar_run_rare(a), uar_run_rare(b));
}

/* The log alone gives the state that the live run has. */
static void check_replay(const struct story *t)
{
	struct uar_session s = { .owner = t->s.owner,
				 .runtime_id = t->s.runtime_id,
				 .session_id = t->s.session_id };
	struct uar_error error = { 0 };
	struct uar_arena scratch;
	struct uar_run r;
	uar_err e = UAR_OK;

	uar_run_init(&r);
	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < t->count && !e; i++)
		e = uar_core_fold(&s, &r, &t->log[i], &scratch, &error);
	uar_arena_fini(&scratch);
	CHECK_MSG(!e, "fold: %s", error.text);
	CHECK_INT(s.sequence, t->s.sequence);
	same_origin(&t->r, &r);
	same_progress(&t->r, &r);
	uar_run_fini(&r);
}

/* Events of the last command are ones that a store would take. */
static void check_events(const struct story *t)
{
	struct uar_error error = { 0 };
	struct uar_arena scratch;

	uar_arena_init(&scratch, 0);
	for (size_t i = t->last; i < t->count; i++)
		CHECK_MSG(uar_event_check(&t->log[i], &scratch, &error) == UAR_OK, "%s: %s",
			  error.where, error.text);
	uar_arena_fini(&scratch);
}

/* --- order rules ------------------------------------------------------------------ */

struct order {
	uint64_t sequence, run_sequence;
	int submitted, queued, started, ended, task_ended, turn_ended, open_calls, open_asks;
	size_t end_at; /* index of the attempt's end */
};

static bool ends_attempt(enum uar_event_class c)
{
	return c == UAR_EV_TASK_ATTEMPT_COMPLETED || c == UAR_EV_TASK_ATTEMPT_FAILED;
}

static bool ends_task(enum uar_event_class c)
{
	return c == UAR_EV_TASK_COMPLETED || c == UAR_EV_TASK_FAILED ||
	       c == UAR_EV_TASK_CANCELLED || c == UAR_EV_TASK_TIMED_OUT || c == UAR_EV_TASK_LOST;
}

static bool ends_turn(enum uar_event_class c)
{
	return c == UAR_EV_TURN_COMPLETED || c == UAR_EV_TURN_FAILED;
}

static void check_numbers(struct order *o, const struct uar_event *ev)
{
	CHECK_INT(ev->sequence, ++o->sequence);
	if (ev->ids[UAR_ID_RUN].n)
		CHECK_INT(ev->run_sequence, ++o->run_sequence);
	else
		CHECK_INT(ev->run_sequence, 0);
}

static void check_call(struct order *o, enum uar_event_class c)
{
	if (c == UAR_EV_MODEL_REQUESTED)
		CHECK_INT(++o->open_calls, 1);
	if (c == UAR_EV_MODEL_COMPLETED || c == UAR_EV_MODEL_FAILED)
		CHECK_INT(--o->open_calls, 0);
	o->open_asks += c == UAR_EV_ACTION_REQUIRED;
	if (c == UAR_EV_ACTION_RESOLVED)
		CHECK(--o->open_asks >= 0);
}

static void check_place(struct order *o, const struct uar_event *ev, size_t i)
{
	enum uar_event_class c = ev->cls;

	if (!ev->ids[UAR_ID_RUN].n)
		return;
	o->submitted += c == UAR_EV_TURN_SUBMITTED;
	CHECK_MSG(o->submitted == 1, "%s before the turn", uar_event_info[c].type);
	o->queued += c == UAR_EV_TASK_QUEUED;
	if (c == UAR_EV_TASK_ATTEMPT_STARTED)
		CHECK(o->queued == 1 && ++o->started == 1);
	if (ends_attempt(c)) {
		CHECK_INT(++o->ended, 1);
		CHECK_INT(o->open_calls, 0);
		CHECK_INT(o->open_asks, 0);
		o->end_at = i;
	} else if (ends_task(c)) {
		CHECK(o->ended == 1 && ++o->task_ended == 1);
	} else if (ends_turn(c)) {
		CHECK(o->task_ended == 1 && ++o->turn_ended == 1);
	} else {
		CHECK_MSG(!o->ended, "%s follows the end", uar_event_info[c].type);
	}
}

/* runtime-events, "Order rules": 1, 3, 4, 5 and 6, for what the engine can do today. */
static void check_order(const struct story *t)
{
	struct order o = { 0 };

	for (size_t i = 0; i < t->count; i++) {
		check_numbers(&o, &t->log[i]);
		check_place(&o, &t->log[i], i);
		check_call(&o, t->log[i].cls);
	}
	CHECK_INT(o.queued, 1);
	CHECK_INT(o.open_asks, uar_run_rare(&t->r)->actions.open_count);
	CHECK(uar_status_terminal(t->r.status) == (o.ended == 1));
	CHECK(o.ended == o.task_ended && o.ended == o.turn_ended);
	CHECK(!o.ended || o.end_at >= t->last); /* one append holds the whole end */
}

/* --- statuses ----------------------------------------------------------------------- */

static const struct {
	enum uar_status status;
	bool wait;
	enum uar_command_kind script[4];
} ways[] = {
	{ UAR_STATUS_QUEUED, true, { 0 } },
	{ UAR_STATUS_RUNNING, false, { 0 } },
	{ UAR_STATUS_PREPARING, false, { UAR_CMD_PREPARED } },
	{ UAR_STATUS_STREAMING, false, { UAR_CMD_PREPARED, UAR_CMD_TEXT } },
	{ UAR_STATUS_RETRYING, false, { UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_RECOVER } },
	{ UAR_STATUS_WAITING_PERMISSION, false, { UAR_CMD_PREPARED, UAR_CMD_TOOL, UAR_CMD_ASK } },
	{ UAR_STATUS_CANCELLING, false, { UAR_CMD_PREPARED, UAR_CMD_TEXT, UAR_CMD_CANCEL } },
	{ UAR_STATUS_COMPLETED, false, { UAR_CMD_PREPARED, UAR_CMD_MODEL_DONE } },
	{ UAR_STATUS_FAILED, false, { UAR_CMD_PREPARED, UAR_CMD_MODEL_FAILED } },
	{ UAR_STATUS_TIMED_OUT, false, { UAR_CMD_TIMEOUT } },
	{ UAR_STATUS_CANCELLED, true, { UAR_CMD_CANCEL } },
};

static void walk_to(struct story *t, size_t way)
{
	CHECK_INT(story_begin(t, UAR_ENTRY_LLM, ways[way].wait), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(ways[way].script) && ways[way].script[i]; i++)
		CHECK_INT(story_do(t, ways[way].script[i]), UAR_OK);
	CHECK_INT(t->r.status, ways[way].status);
}

/* The input of the run table that a command is; -1: none. */
static const int inputs[UAR_CMD_COUNT] = {
	[UAR_CMD_CREATE] = -1,
	[UAR_CMD_START] = UAR_IN_START,
	[UAR_CMD_PREPARED] = UAR_IN_PREPARED,
	[UAR_CMD_TEXT] = UAR_IN_OUTPUT,
	[UAR_CMD_REASONING] = UAR_IN_OUTPUT,
	[UAR_CMD_MODEL_DONE] = UAR_IN_FINISHED,
	[UAR_CMD_MODEL_FAILED] = UAR_IN_FAILED,
	[UAR_CMD_MODEL_CALLS] = UAR_IN_TOOLS,
	[UAR_CMD_TOOL_BEGIN] = UAR_IN_TOOL,
	[UAR_CMD_TOOL_NEWS] = UAR_IN_TOOL,
	[UAR_CMD_PROCESS] = UAR_IN_NOTE,
	[UAR_CMD_PEER] = UAR_IN_PEER,
	[UAR_CMD_PLAN] = UAR_IN_PLANNED,
	[UAR_CMD_SAMPLE] = UAR_IN_TOOL,
	[UAR_CMD_SAMPLED] = UAR_IN_TOOL_OVER,
	[UAR_CMD_TOOL_OVER] = UAR_IN_TOOL_OVER,
	[UAR_CMD_REPLAY] = UAR_IN_OUTPUT,
	[UAR_CMD_PROGRESS] = UAR_IN_PROGRESS,
	[UAR_CMD_EXPORT] = UAR_IN_EXPORT,
	[UAR_CMD_TOOL] = UAR_IN_OUTPUT,
	[UAR_CMD_NOTE] = UAR_IN_NOTE,
	[UAR_CMD_SESSION] = UAR_IN_NOTE,
	[UAR_CMD_ASK] = UAR_IN_ASK_PERMISSION,
	[UAR_CMD_ANSWER] = UAR_IN_ANSWERED,
	[UAR_CMD_FINISH] = UAR_IN_FINISHED,
	[UAR_CMD_FAIL] = UAR_IN_FAILED,
	[UAR_CMD_CANCEL] = UAR_IN_CANCEL,
	[UAR_CMD_STOPPED] = UAR_IN_STOPPED,
	[UAR_CMD_TIMEOUT] = UAR_IN_TIMEOUT,
	[UAR_CMD_STEER] = UAR_IN_STEER,
	[UAR_CMD_EDIT] = UAR_IN_EDIT,
	[UAR_CMD_DUE] = UAR_IN_DUE,
	[UAR_CMD_RECOVER] = UAR_IN_RECOVER,
	[UAR_CMD_LOST] = UAR_IN_LOST,
};

/* A run that waits and cannot begin fails through its start. */
static struct uar_move move_of(enum uar_status status, int kind)
{
	bool fails = kind == UAR_CMD_FAIL || kind == UAR_CMD_LOST;

	if (inputs[kind] < 0)
		return (struct uar_move){ 0 };
	return uar_run_move(fails && status == UAR_STATUS_QUEUED ? UAR_STATUS_RUNNING : status,
			    (enum uar_run_input)inputs[kind]);
}

static uar_err tell_any(struct story *t, int kind)
{
	if (kind == UAR_CMD_CREATE)
		return story_begin(t, UAR_ENTRY_LLM, false);
	if (kind == UAR_CMD_REPLAY)
		return story_replay(
			t, UAR_STR("{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"x\"}}"), 1);
	return story_do(t, (enum uar_command_kind)kind);
}

/* Padding included: nothing was written at all. */
static bool same_bytes(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

static bool of_programs(int kind)
{
	return (kind >= UAR_CMD_TOOL && kind <= UAR_CMD_ASK) || kind == UAR_CMD_ANSWER;
}

static bool of_plugins(int kind)
{
	return kind == UAR_CMD_PROGRESS || kind == UAR_CMD_EXPORT || kind == UAR_CMD_FINISH;
}

static bool program_says(const struct uar_run *r, int kind)
{
	if (kind == UAR_CMD_ANSWER)
		return true;
	if (kind == UAR_CMD_ASK)
		return r->call.open && uar_run_rare(r)->actions.open_count < 2;
	return r->call.open && (kind == UAR_CMD_TOOL ? uar_run_rare(r)->tools.calls < 2
						     : !uar_run_rare(r)->agent_session[0]);
}

static bool of_tools(int kind)
{
	return kind >= UAR_CMD_MODEL_CALLS && kind <= UAR_CMD_TOOL_OVER && kind != UAR_CMD_PEER &&
	       kind != UAR_CMD_PLAN;
}

/* One round with one call, which is over before the model is called again. */
static bool tool_says(const struct uar_run *r, int kind)
{
	const struct uar_run_tools *t = &uar_run_rare(r)->tools;

	if (kind == UAR_CMD_MODEL_CALLS)
		return r->call.open && !t->rounds;
	if (kind == UAR_CMD_SAMPLE)
		return t->open_count == 1 && !r->call.open;
	if (kind == UAR_CMD_SAMPLED)
		return r->call.open && r->call.role == UAR_ROLE_SAMPLE;
	return kind == UAR_CMD_TOOL_BEGIN ? !t->open_count && t->rounds && !t->calls
					  : t->open_count == 1;
}

static bool foreign(const struct uar_run *r, int kind)
{
	bool program = uar_entry_is_backend(r->what.entry);

	if (kind == UAR_CMD_PEER)
		return r->what.entry != UAR_ENTRY_PEER;
	if (kind == UAR_CMD_PLAN)
		return r->what.entry != UAR_ENTRY_WORKFLOW;
	if (of_tools(kind))
		return r->what.entry != UAR_ENTRY_LLM || !tool_says(r, kind);
	return of_programs(kind) ? !program || !program_says(r, kind) : program && of_plugins(kind);
}

static bool is_of_call(int kind)
{
	return kind == UAR_CMD_PREPARED || kind == UAR_CMD_MODEL_DONE || of_tools(kind) ||
	       kind == UAR_CMD_MODEL_FAILED || kind == UAR_CMD_TEXT || kind == UAR_CMD_REASONING ||
	       kind == UAR_CMD_FINISH;
}

/* What a worker may say; the table alone knows nothing of calls. */
static bool sensible(const struct uar_run *r, int kind)
{
	bool program = uar_entry_is_backend(r->what.entry);
	bool llm = r->what.entry == UAR_ENTRY_LLM || program;

	if (foreign(r, kind))
		return false;
	switch ((enum uar_command_kind)kind) {
	case UAR_CMD_CREATE:
	case UAR_CMD_REPLAY:
	case UAR_CMD_COUNT: return false;
	case UAR_CMD_PREPARED: return llm && !r->call.open;
	case UAR_CMD_MODEL_DONE:
	case UAR_CMD_MODEL_FAILED: return r->call.open;
	case UAR_CMD_TEXT:
	case UAR_CMD_REASONING: return r->call.open || !llm;
	case UAR_CMD_FINISH: return !r->call.open;
	default: return true;
	}
}

TEST(every_command_in_every_status_does_what_the_table_says, "RUN-13 RUN-16 VAL-01")
{
	for (size_t way = 0; way < ARRAY_LEN(ways); way++)
		for (int kind = 0; kind < UAR_CMD_COUNT; kind++) {
			struct uar_move move = { 0 };
			uar_err want = UAR_ESTATE;
			struct story t;

			story_init(&t, 1);
			walk_to(&t, way);
			move = move_of(t.r.status, kind);
			/* Nothing is waited for, and no process was started. */
			if (move.legal && kind != UAR_CMD_DUE && kind != UAR_CMD_PROCESS)
				want = is_of_call(kind) && !sensible(&t.r, kind) ? UAR_EINTERNAL
										 : UAR_OK;
			CHECK_MSG(tell_any(&t, kind) == want, "command %d when %s", kind,
				  uar_status_text(ways[way].status));
			CHECK_INT(t.r.status, want ? ways[way].status : move.to);
			check_events(&t);
			check_order(&t);
			check_replay(&t);
			story_fini(&t);
		}
}

/* --- every row of the table ------------------------------------------------------------ */

/* A command that is the input, and what has to be said before so that it is. */
static const struct {
	enum uar_entry entry;
	enum uar_command_kind kind;
	enum uar_command_kind before[4];
} recipes[UAR_IN_COUNT] = {
	[UAR_IN_START] = { UAR_ENTRY_LLM, UAR_CMD_START, { 0 } },
	[UAR_IN_BEGIN] = { UAR_ENTRY_LLM, UAR_CMD_FAIL, { 0 } },
	[UAR_IN_PREPARED] = { UAR_ENTRY_LLM, UAR_CMD_PREPARED, { 0 } },
	[UAR_IN_OUTPUT] = { UAR_ENTRY_LLM, UAR_CMD_TEXT, { UAR_CMD_PREPARED } },
	[UAR_IN_STEP] = { UAR_ENTRY_CODEX, UAR_CMD_TOOL, { UAR_CMD_PREPARED, UAR_CMD_TOOL } },
	[UAR_IN_PROGRESS] = { UAR_ENTRY_PLUGIN, UAR_CMD_PROGRESS, { 0 } },
	[UAR_IN_EXPORT] = { UAR_ENTRY_PLUGIN, UAR_CMD_EXPORT, { 0 } },
	[UAR_IN_NOTE] = { UAR_ENTRY_CODEX, UAR_CMD_NOTE, { UAR_CMD_PREPARED } },
	[UAR_IN_TOOLS] = { UAR_ENTRY_LLM, UAR_CMD_MODEL_CALLS, { UAR_CMD_PREPARED } },
	[UAR_IN_TOOL] = { UAR_ENTRY_LLM,
			  UAR_CMD_TOOL_BEGIN,
			  { UAR_CMD_PREPARED, UAR_CMD_MODEL_CALLS } },
	[UAR_IN_TOOL_OVER] = { UAR_ENTRY_LLM,
			       UAR_CMD_TOOL_OVER,
			       { UAR_CMD_PREPARED, UAR_CMD_MODEL_CALLS, UAR_CMD_TOOL_BEGIN } },
	[UAR_IN_FINISHED] = { UAR_ENTRY_LLM, UAR_CMD_MODEL_DONE, { UAR_CMD_PREPARED } },
	[UAR_IN_FAILED] = { UAR_ENTRY_LLM, UAR_CMD_FAIL, { UAR_CMD_PREPARED } },
	[UAR_IN_REPEAT] = { UAR_ENTRY_LLM, UAR_CMD_MODEL_FAILED, { UAR_CMD_PREPARED } },
	[UAR_IN_UNREACHED] = { UAR_ENTRY_LLM, UAR_CMD_MODEL_FAILED, { UAR_CMD_PREPARED } },
	[UAR_IN_NEXT_MODEL] = { UAR_ENTRY_LLM, UAR_CMD_MODEL_FAILED, { UAR_CMD_PREPARED } },
	[UAR_IN_DUE] = { UAR_ENTRY_LLM, UAR_CMD_DUE, { 0 } },
	[UAR_IN_STAGED] = { UAR_ENTRY_LLM, UAR_CMD_MODEL_DONE, { UAR_CMD_PREPARED } },
	[UAR_IN_STEER] = { UAR_ENTRY_LLM, UAR_CMD_STEER, { 0 } },
	[UAR_IN_STEERED] = { UAR_ENTRY_LLM, UAR_CMD_PREPARED, { UAR_CMD_STEER } },
	[UAR_IN_EDIT] = { UAR_ENTRY_LLM, UAR_CMD_EDIT, { 0 } },
	[UAR_IN_RECOVER_WAIT] = { UAR_ENTRY_LLM, UAR_CMD_RECOVER, { 0 } },
	[UAR_IN_CANCEL] = { UAR_ENTRY_LLM, UAR_CMD_CANCEL, { 0 } },
	[UAR_IN_STOPPED] = { UAR_ENTRY_LLM, UAR_CMD_STOPPED, { UAR_CMD_PREPARED } },
	[UAR_IN_TIMEOUT] = { UAR_ENTRY_LLM, UAR_CMD_TIMEOUT, { UAR_CMD_PREPARED } },
	[UAR_IN_ASK_PERMISSION] = { UAR_ENTRY_CODEX, UAR_CMD_ASK, { UAR_CMD_PREPARED } },
	[UAR_IN_ASK_INPUT] = { UAR_ENTRY_CODEX, UAR_CMD_ASK, { UAR_CMD_PREPARED } },
	[UAR_IN_VERDICT] = { UAR_ENTRY_CODEX, UAR_CMD_ASK, { UAR_CMD_PREPARED } },
	[UAR_IN_ANSWERED] = { UAR_ENTRY_CODEX, UAR_CMD_ANSWER, { UAR_CMD_PREPARED } },
	[UAR_IN_ANSWERED_PART] = { UAR_ENTRY_CODEX,
				   UAR_CMD_ANSWER,
				   { UAR_CMD_PREPARED, UAR_CMD_ASK } },
	[UAR_IN_RECOVER] = { UAR_ENTRY_PLUGIN, UAR_CMD_RECOVER, { 0 } },
	[UAR_IN_PEER] = { UAR_ENTRY_PEER, UAR_CMD_PEER, { 0 } },
	[UAR_IN_PEER_LOST] = { UAR_ENTRY_PEER, UAR_CMD_PEER, { 0 } },
	[UAR_IN_CANCEL_PEER] = { UAR_ENTRY_PEER, UAR_CMD_CANCEL, { UAR_CMD_PEER } },
	[UAR_IN_RECOVER_CANCEL] = { UAR_ENTRY_PEER, UAR_CMD_RECOVER, { UAR_CMD_PEER } },
	[UAR_IN_PLANNED] = { UAR_ENTRY_WORKFLOW, UAR_CMD_PLAN, { 0 } },
	[UAR_IN_PLAN_WAITS] = { UAR_ENTRY_WORKFLOW, UAR_CMD_PLAN, { 0 } },
	[UAR_IN_CUT_OFF] = { UAR_ENTRY_LLM, UAR_CMD_RECOVER, { UAR_CMD_PREPARED } },
	[UAR_IN_LOST] = { UAR_ENTRY_CODEX, UAR_CMD_RECOVER, { UAR_CMD_PREPARED } },
};

/* The last steps to the status. Where no command leads there alone, or to none that
 * the engine uses today, it is put there by hand. */
static void stand_at(struct story *t, enum uar_status status)
{
	if (status == UAR_STATUS_QUEUED)
		return;
	if (uar_status_waits(status))
		CHECK_INT(story_do(t, UAR_CMD_ASK), UAR_OK);
	if (status == UAR_STATUS_CANCELLING)
		CHECK_INT(story_do(t, UAR_CMD_CANCEL), UAR_OK);
	t->r.status = status;
}

/* What makes a failed call, or a wait, the input. */
static void set_failure(struct story *t, enum uar_run_input on, struct uar_model_end *m)
{
	struct uar_run_rare *rare = uar_core_change_rare(&t->r);

	REQUIRE(rare != NULL);
	if (on == UAR_IN_DUE || on == UAR_IN_RECOVER_WAIT)
		t->r.call.due_us = 1;
	if (on == UAR_IN_NEXT_MODEL)
		rare->route.count = 2;
	if (on == UAR_IN_REPEAT || on == UAR_IN_UNREACHED)
		m->retries = 1;
	if (on == UAR_IN_REPEAT)
		m->category = UAR_STR("provider_error");
}

/* What makes a command this input, and no other. */
static void set_words(struct story *t, enum uar_run_input on, struct uar_command *c)
{
	if (on == UAR_IN_ASK_INPUT)
		c->ask.type = UAR_ACTION_FORM;
	if (on == UAR_IN_PEER_LOST)
		c->peer.step = UAR_PEER_LOST;
	if (on == UAR_IN_PLAN_WAITS)
		c->plan.due_us = 1;
	if (on == UAR_IN_VERDICT)
		c->ask.verdict = UAR_VERDICT_ALLOW;
	if (c->kind == UAR_CMD_ASK)
		c->ask.number = uar_run_rare(&t->r)->actions.count + 1;
}

static void walk_row(const struct row *row)
{
	enum uar_command_kind kind = recipes[row->on].kind;
	struct uar_command c = story_command(kind);
	enum uar_status from;
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, recipes[row->on].entry, row->from == UAR_STATUS_QUEUED), UAR_OK);
	for (size_t i = 0; row->from != UAR_STATUS_QUEUED && recipes[row->on].before[i]; i++)
		CHECK_INT(story_do(&t, recipes[row->on].before[i]), UAR_OK);
	stand_at(&t, row->from);
	from = t.r.status;
	if (from == UAR_STATUS_WAITING_RESOURCE && row->on == UAR_IN_DUE)
		t.r.task = UAR_TASK_WAITING;
	if (row->on == UAR_IN_STAGED)
		t.r.call.role = UAR_ROLE_PLAN;
	if (kind == UAR_CMD_MODEL_FAILED || row->on == UAR_IN_DUE || row->on == UAR_IN_RECOVER_WAIT)
		set_failure(&t, row->on, &c.model);
	set_words(&t, row->on, &c);
	if (row->on != UAR_IN_BEGIN) /* nothing is that alone: what it begins ends, too */
		CHECK_INT(uar_core_input(&t.r, &c), row->on);
	CHECK_INT(story_tell(&t, &c), UAR_OK);
	CHECK_MSG(t.r.status == (row->on == UAR_IN_BEGIN ? UAR_STATUS_FAILED : row->to),
		  "%s on %d: %s, wanted %s", uar_status_text(from), (int)row->on,
		  uar_status_text(t.r.status), uar_status_text(row->to));
	CHECK_INT(t.d.effect_count, row->effect != UAR_DO_NONE);
	if (t.d.effect_count)
		CHECK_INT(t.d.effects[0], row->effect);
	check_events(&t);
	story_fini(&t);
}

TEST(every_row_of_the_table_is_what_happens, "")
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_MSG(recipes[rows[i].on].kind, "no command is input %d", (int)rows[i].on);
		walk_row(&rows[i]);
	}
}

/* What a recording says of the run it was made of does not move the one that replays it. */
TEST(a_line_of_a_fixture_moves_the_run_as_its_type_says, "")
{
	static const struct {
		const char *line;
		enum uar_status to;
	} lines[] = {
		{ "{\"type\":\"RunStart\",\"data\":{}}", UAR_STATUS_RUNNING },
		{ "{\"type\":\"meta\",\"data\":{\"phase\":\"x\",\"status\":\"preparing\"}}",
		  UAR_STATUS_RUNNING },
		{ "{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"\"}}", UAR_STATUS_RUNNING },
		{ "{\"type\":\"ToolStart\",\"data\":{\"tool_call_id\":\"a\"}}",
		  UAR_STATUS_STREAMING },
		{ "{\"type\":\"ToolEnd\",\"data\":{\"tool_call_id\":\"a\"}}",
		  UAR_STATUS_STREAMING },
		{ "{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"x\"}}",
		  UAR_STATUS_STREAMING },
		{ "{\"type\":\"RunDone\",\"data\":{}}", UAR_STATUS_COMPLETED },
	};
	struct story t;

	story_init(&t, 1);
	CHECK_INT(story_begin(&t, UAR_ENTRY_FIXTURE, false), UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		CHECK_INT(story_replay(&t, uar_str_c(lines[i].line), (int64_t)i + 1), UAR_OK);
		CHECK_INT(t.r.status, lines[i].to);
		check_replay(&t);
	}
	story_fini(&t);
}

/* The bytes of state and decision, before and after a refusal. */
TEST(a_refused_command_touches_nothing, "RUN-17")
{
	for (size_t way = 0; way < ARRAY_LEN(ways); way++)
		for (int kind = 0; kind < UAR_CMD_COUNT; kind++) {
			struct uar_command c = story_command((enum uar_command_kind)kind);
			struct uar_decision d = { .effect_count = 1 }, d0 = d;
			struct story t;

			story_init(&t, 1);
			walk_to(&t, way);
			if (kind != UAR_CMD_REPLAY && kind != UAR_CMD_CREATE &&
			    !move_of(t.r.status, kind).legal) {
				struct uar_core_env env = {
					9, &t.ids, &t.arena, &t.buf, NULL, NULL
				};
				struct uar_session s = t.s;
				struct uar_run r;

				memcpy(&r, &t.r, sizeof r);
				CHECK_INT(uar_core_decide(&env, &s, &r, &c, &d, NULL), UAR_ESTATE);
				CHECK(same_bytes(&r, &t.r, sizeof r));
				CHECK(same_bytes(&s, &t.s, sizeof s));
				CHECK(same_bytes(&d, &d0, sizeof d));
			}
			story_fini(&t);
		}
}

TEST(a_run_that_does_not_exist_takes_only_its_creation, "")
{
	for (int kind = 1; kind < UAR_CMD_COUNT; kind++) {
		struct story t;

		story_init(&t, 1);
		CHECK_INT(tell_any(&t, kind), UAR_ESTATE);
		CHECK_INT(t.d.event_count, 0);
		story_fini(&t);
	}
}

/* --- all sensible orders -------------------------------------------------------------- */

static size_t visited, ended;

/* A branch starts from a copy of the story and of its run; the memory the story took
 * goes back to where it came from. */
static void branch(struct story *from, int depth)
{
	for (int kind = 0; kind < UAR_CMD_COUNT; kind++) {
		struct story t = *from;

		if (!sensible(&t.r, kind))
			continue;
		uar_run_init(&t.r);
		CHECK_INT(uar_run_copy(&t.r, &from->r), UAR_OK);
		t.clock.ctx = &t;
		if (story_do(&t, (enum uar_command_kind)kind) == UAR_OK) {
			visited++;
			ended += uar_status_terminal(t.r.status);
			check_events(&t);
			check_order(&t);
			check_replay(&t);
			if (depth)
				branch(&t, depth - 1);
		}
		uar_run_copy_fini(&t.r);
		from->arena = t.arena;
		from->buf = t.buf;
	}
}

TEST(every_sensible_order_of_commands_keeps_the_order_rules, "VAL-01 RUN-13")
{
	static const enum uar_entry entries[] = { UAR_ENTRY_ECHO, UAR_ENTRY_LLM, UAR_ENTRY_PLUGIN,
						  UAR_ENTRY_CODEX };

	visited = ended = 0;
	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		for (int wait = 0; wait < 2; wait++) {
			struct story t;

			story_init(&t, 7);
			CHECK_INT(story_begin(&t, entries[i], wait), UAR_OK);
			check_events(&t);
			branch(&t, 5);
			story_fini(&t);
		}
	CHECK_MSG(visited > 2000 && ended > 500, "%zu, %zu", visited, ended);
}
