/* core.h - the pure engine: what a command means, what an event changes.
 *
 *	decide(session, run, command) -> events + effects
 *	fold(session, run, event)     -> session, run
 *
 * No I/O, no clock, no allocation outside the arenas and buffers it is given and the
 * run: time, ids and memory come in as arguments, most in struct uar_core_env. The shell works on
 *copies and keeps them only when the events are durable; the same fold rebuilds a run from the log
 *after a restart, so there is one truth.
 *
 * An aggregate is a session. A batch of commands concerns one run of it. */
#ifndef UAR_CORE_CORE_H
#define UAR_CORE_CORE_H

#include "core/sizes.h"
#include "core/machine.h"
#include "core/peer.h"
#include "core/permission.h"
#include "core/process.h"
#include "event/agent.h"
#include "event/entry.h"
#include "event/event.h"
#include "event/sizes.h"
#include "event/record.h"
#include "event/process.h"
#include "event/row.h"

enum {
	UAR_TEXT_CODE = UAR_LIMIT_TEXT_CODE,
	UAR_TEXT_REASON = UAR_LIMIT_TEXT_REASON,
	UAR_TEXT_MESSAGE = UAR_LIMIT_TEXT_MESSAGE,
	UAR_TEXT_STAGE = UAR_LIMIT_TEXT_STAGE,
	UAR_TEXT_METRICS = UAR_LIMIT_TEXT_METRICS,
	UAR_TEXT_SESSION = UAR_LIMIT_TEXT_SESSION,
	UAR_TEXT_FINISH = UAR_LIMIT_TEXT_FINISH,
	UAR_TEXT_PROMPT = UAR_LIMIT_TEXT_PROMPT,
	UAR_DECISION_EVENTS = UAR_LIMIT_DECISION_EVENTS,
	UAR_DECISION_EFFECTS = UAR_LIMIT_DECISION_EFFECTS,
	UAR_OPEN_TOOLS = UAR_LIMIT_OPEN_TOOLS,
	UAR_OPEN_ACTIONS = UAR_LIMIT_OPEN_ACTIONS,
	UAR_ACTION_TEXT = UAR_LIMIT_ID_BYTES, /* "<run_id>.<number>" */
	UAR_ROUTE_CHAIN = UAR_LIMIT_ROUTE_CHAIN,
};

/* Money is counted in billionths of a US dollar, so that sums are exact. */
struct uar_price { /* of a million tokens; all 0: not known */
	int64_t input, cached, output;
};
static inline bool uar_price_known(const struct uar_price *p)
{
	return p->input || p->output;
}

/* What a run and everything that it starts may use; 0: no limit. */
struct uar_budget {
	int64_t nanos; /* money */
	int64_t tokens, model_calls, tool_calls;
	int64_t time_us; /* without the time in which people were asked */
};

/* What kind of worker executes a run. */
enum uar_entry {
	UAR_ENTRY_ECHO,	   /* answers with the input */
	UAR_ENTRY_FIXTURE, /* replays recorded events */
	UAR_ENTRY_LLM,	   /* llm.chat: one model conversation */
	UAR_ENTRY_PLUGIN,  /* an entry of a plugin, executed by a process of its own */
	UAR_ENTRY_CODEX,   /* backend.*: an agent that is a program of its own */
	UAR_ENTRY_CLAUDE_CODE,
	UAR_ENTRY_ACP,
	UAR_ENTRY_PEER,	    /* peer.a2a: an agent of another runtime */
	UAR_ENTRY_WORKFLOW, /* workflow.run: a graph of nodes */
	UAR_ENTRY_COUNT
};
const char *uar_entry_name(enum uar_entry e); /* "llm.chat" */
enum uar_entry uar_entry_parse(uar_str name); /* UAR_ENTRY_COUNT: unknown */
static inline bool uar_entry_is_backend(enum uar_entry e)
{
	return e == UAR_ENTRY_CODEX || e == UAR_ENTRY_CLAUDE_CODE || e == UAR_ENTRY_ACP;
}

/* Why an attempt at a task is made. */
enum uar_cause {
	UAR_CAUSE_FIRST,
	UAR_CAUSE_RETRY,
	UAR_CAUSE_RESUME,
	UAR_CAUSE_REROUTE,
	UAR_CAUSE_RERUN,
	UAR_CAUSE_COUNT
};
const char *uar_cause_name(enum uar_cause cause); /* "reroute" */
enum uar_cause uar_cause_parse(uar_str name);	  /* RETRY: it is none of them */

/* What becomes of a run whose worker was cut off by a restart. */
enum uar_restart {
	UAR_RESTART_RETRY, /* its worker begins again, in the same run */
	UAR_RESTART_FAIL,  /* it may have happened: the run is lost */
};

/* Strings of a run live in `arena`, which is written while the run is created
 * and never after. What changes later is in place, or in `rare`. */
struct uar_run_ids {
	uar_str run_id, thread_id, turn_id, task_id;
	uar_str root_run_id, parent_run_id;
	uar_str trace_id;
	bool task_given; /* the caller named the task */
};

struct uar_run_what {
	enum uar_entry entry;
	uar_str agent_id, plugin_id, entry_id;
	uar_str provider, model; /* llm.chat */
	uar_str instructions;	 /* llm.chat: system text */
	uar_str message;	 /* the user's text, or a plugin's arguments, kept inline */
	uar_str message_blob;	 /* else the sha256 of the blob that holds it */
	uar_str inputs;		 /* JSON object: all inputs but the message */
	uar_str inputs_blob; /* sha256 of the blob that holds them: then they are its beginning */
	uar_str definition;  /* sha256 of the agent's definition, a blob; empty: it has none */
	uar_str budgets;     /* JSON array: whose budgets bear the run (budget.h), or empty */
	uar_str idempotency_key;
	int64_t message_bytes; /* of the whole message */
	int64_t inputs_bytes;  /* of all of the inputs, when a blob holds them */
	int64_t timeout_us;    /* 0: none */
	int64_t attempt;
	enum uar_restart restart;
	enum uar_cause cause; /* of this attempt */
	bool model_chosen;    /* the caller named the model */
	bool task_made;	      /* the task has a row: its end is told by core/control*.c */
	struct uar_run_permit permit;
};

struct uar_run_times {
	int64_t created_us, updated_us, started_us, finished_us; /* 0: not yet */
};

/* What a model is called for. */
enum uar_call_role {
	UAR_ROLE_EXECUTE,   /* to answer */
	UAR_ROLE_PLAN,	    /* to write the plan that another model executes */
	UAR_ROLE_SUMMARIZE, /* to condense what was said before, which fills its window */
	UAR_ROLE_CANDIDATE, /* to answer beside others, of which one is used */
	UAR_ROLE_RANK,	    /* to choose that one, which is then the answer */
	UAR_ROLE_SAMPLE,    /* to answer what a tool at work asks of it */
	UAR_ROLE_COUNT
};
const char *uar_call_role_name(enum uar_call_role role); /* "execute" */

/* The model call under way or the last one. */
struct uar_run_call {
	enum uar_call_role role;
	char request_id[UAR_UUID_TEXT + 1]; /* empty: none yet */
	char message_id[UAR_UUID_TEXT + 1];
	bool open;    /* requested and not ended */
	int restarts; /* times it was cut off by a stop of the server and made again */
	int64_t requested_us, first_us;
	int64_t index;			     /* next delta's */
	int64_t chars;			     /* bytes of text so far */
	int64_t thought;		     /* bytes of reasoning so far */
	int64_t prompt_tokens;		     /* of what the model was told, estimated */
	int64_t calls;			     /* calls of this run */
	int64_t input_tokens, output_tokens; /* of all ended calls */
	int64_t nanos;			     /* what they cost, as far as prices are known */
	bool estimated;			     /* a part of them was not reported but estimated */
	bool resolved;	/* what the model is told was settled: skills are not chosen again */
	bool rejected;	/* the last answer was not what the agent must give: it is repaired */
	int tries;	/* failed calls of this model that were repeated */
	int64_t due_us; /* when it is called again; 0: nothing is waited for */
};

/* The code of an answer that does not keep to the form that the agent's definition asks for. */
#define UAR_OUTPUT_INVALID "OUTPUT_INVALID"

/* A model that a routed run may use. */
struct uar_route_model {
	char provider[UAR_LIMIT_ROUTE_PROVIDER + 1], model[UAR_LIMIT_ROUTE_MODEL + 1];
	struct uar_price price;
};

/* What the log says of the routing of a run. */
struct uar_run_route {
	struct uar_route_model chain[UAR_ROUTE_CHAIN]; /* in the order in which they are used */
	size_t count;				       /* 0: what.provider and what.model */
	size_t at;
	char decision_id[UAR_UUID_TEXT + 1];
	struct uar_price price; /* of the last call, of which a cost was estimated */
	struct uar_budget budget;
	bool low;			   /* that little of the budget is left was recorded */
	struct uar_route_model planner;	   /* of a split route; no name: there is none */
	char plan_blob[65];		   /* of what it wrote; empty: nothing yet */
	struct uar_route_model ranker;	   /* of an ensemble, whose candidates are the chain */
	char answers[UAR_ROUTE_CHAIN][65]; /* blobs of theirs; empty: none, it failed */
	size_t chosen;			   /* 1 + the place of the one that is used; 0: not yet */
};

struct uar_run_cancel {
	bool requested;
	int64_t at_us;
	char reason[UAR_TEXT_REASON];
};

/* A tool call that has started and not ended. */
struct uar_open_tool {
	char call_id[UAR_LIMIT_ID_BYTES + 1];
	char step_id[UAR_UUID_TEXT + 1];
	char name[UAR_TEXT_CODE];
	int64_t index; /* next fragment's */
	int64_t started_us;
	bool changes; /* the world: UAR executes it, and it does not only read */
};

struct uar_run_tools {
	struct uar_open_tool open[UAR_OPEN_TOOLS];
	size_t open_count;
	int64_t calls;	/* started so far */
	int64_t rounds; /* model calls that ended by asking for tools */
};

/* A question that waits for its answer. Longer texts are cut here, not in the log. */
struct uar_open_action {
	int64_t number;
	int64_t asked_us, until_us; /* until_us 0: as long as it takes */
	enum uar_action_type type;
	uint32_t offered; /* bits of the decisions that answer it */
	char kind[24], tool_name[UAR_TEXT_CODE], prompt[UAR_TEXT_PROMPT];
	char call_id[UAR_LIMIT_ID_BYTES + 1];	 /* of the tool call, or empty */
	char tool_id[UAR_LIMIT_ID_BYTES + 1];	 /* of a tool of ours, or empty */
	char tool_version[UAR_LIMIT_DIGEST + 1]; /* that a grant holds for; empty: any */
	char args_digest[UAR_LIMIT_DIGEST + 1];
};

/* What tools of the run have made, in order. */
struct uar_made_artifact {
	char id[UAR_UUID_TEXT + 1];
	int64_t version; /* the last one */
};
struct uar_run_artifacts {
	struct uar_made_artifact at[UAR_LIMIT_RUN_ARTIFACTS];
	size_t count;
};

struct uar_run_actions {
	struct uar_open_action open[UAR_OPEN_ACTIONS];
	size_t open_count;
	int64_t count;	   /* asked so far */
	int64_t parked_us; /* since when the run waits; 0: it does not */
	int64_t waited_us; /* time that counts against nobody's limit */
};
/* The id of a question, and back: false when it is none. */
void uar_action_id(uar_str run_id, int64_t number, char out[UAR_ACTION_TEXT + 1]);
bool uar_action_parse(uar_str action_id, uar_str *out_run_id, int64_t *out_number);
const struct uar_open_action *uar_action_open(const struct uar_run_actions *a, int64_t number);

/* Where the open call of that id stands, open_count: nowhere; and the call itself, or NULL. */
size_t uar_tool_find(const struct uar_run_tools *t, uar_str call_id);
const struct uar_open_tool *uar_tool_open(const struct uar_run_tools *t, uar_str call_id);

/* How far a run says it has come. Longer texts are cut here, not in the log. */
struct uar_run_progress {
	double value;		  /* 0..1; < 0: not reported, as are those below */
	double eta_seconds;	  /* < 0 */
	int64_t step, step_total; /* < 0 */
	char stage[UAR_TEXT_STAGE + 1];
	char message[UAR_TEXT_MESSAGE];
	char metrics[UAR_TEXT_METRICS + 1]; /* JSON object, or empty */
};

struct uar_run_end {
	char code[UAR_TEXT_CODE]; /* empty: no error */
	char message[UAR_TEXT_MESSAGE];
	bool retryable;
	uar_str details; /* JSON object of the failure, or empty; as result_refs below */
};

/* The items that are the final result of a run. */
struct uar_result_refs {
	uar_str ids;   /* JSON array, or empty: all of them, or the first UAR_LIMIT_RESULT_REFS */
	uar_str blob;  /* sha256 of the JSON array of all; empty: `ids` has all */
	int64_t count; /* of all, if there is a blob */
};

/* Older context of the run's thread is condensed. */
struct uar_run_compaction {
	char id[UAR_UUID_TEXT + 1];
	bool open;   /* it has started and not ended */
	bool failed; /* the run goes on without it: what does not fit is left out */
	int done;    /* times that it was completed */
};

/* The skills that the run uses, in the order of their ranks. */
struct uar_run_skills {
	size_t count;
	struct uar_run_skill {
		char skill_id[UAR_LIMIT_SKILL_NAME + 1];
		char revision[65]; /* sha256 of its text, a blob */
		double score;
	} at[UAR_LIMIT_RUN_SKILLS];
};

/* Input that came after the turn was submitted. */
struct uar_run_later {
	int64_t given, told; /* messages to a turn at work, and those that its model was told */
	/* The message that took the place of the first one while the turn was queued. */
	char blob[65]; /* empty: none did */
	char preview[UAR_LIMIT_TITLE_BYTES + 1];
	int64_t bytes;
};

/* Large, and as it was at first in most runs that are under way. */
struct uar_run_rare {
	struct uar_run_tools tools;
	struct uar_run_actions actions;
	char agent_session[UAR_TEXT_SESSION]; /* the program's own conversation; empty: unknown */
	char finish_reason[UAR_TEXT_FINISH];  /* of the last answer; empty: it was complete */
	struct uar_run_cancel cancel;
	struct uar_run_progress progress;
	struct uar_run_end end;
	struct uar_run_route route;
	struct uar_run_compaction compaction;
	struct uar_run_skills skills;
	struct uar_run_later later;
	struct uar_run_artifacts artifacts;
	struct uar_run_processes processes;
	struct uar_run_peer peer;
};
extern const struct uar_run_rare uar_run_rare_first;

struct uar_run {
	struct uar_run_ids id;
	struct uar_run_what what;
	struct uar_run_times at;
	struct uar_run_call call;
	enum uar_status status;
	enum uar_turn_state turn;
	enum uar_task_state task;
	uint64_t run_sequence;
	int64_t replayed; /* fixture lines done */
	char phase[32];	  /* last phase of run.status */
	bool row_changed; /* what the record shows has changed since the last append */
	bool in_queue;	  /* its turn was put into the queue of its thread */
	/* Its strings are inside the event that ended the run, and live as long. */
	struct uar_result_refs result_refs;
	struct uar_arena arena;
	struct uar_run_rare *rare; /* its own; NULL: as at first */
};
static inline const struct uar_run_rare *uar_run_rare(const struct uar_run *r)
{
	return r->rare ? r->rare : &uar_run_rare_first;
}
/* The last version of an artifact that a tool of the run has made; 0: there is none. */
int64_t uar_run_artifact_version(const struct uar_run *r, uar_str artifact_id);
/* The provider and the model that the run uses now. */
uar_str uar_run_provider(const struct uar_run *r);
uar_str uar_run_model(const struct uar_run *r);
/* The blob that holds the message of the turn, or none; and the beginning of the message. */
uar_str uar_run_message_blob(const struct uar_run *r);
uar_str uar_run_message_preview(const struct uar_run *r);
/* A message may join the turn of the run. */
bool uar_run_takes_input(const struct uar_run *r);
bool uar_run_must_plan(const struct uar_run *r); /* a split route, before its plan */
/* An ensemble: several models answer and one chooses; all of them have, or tried to. */
bool uar_run_is_ensemble(const struct uar_run *r);
struct uar_model_end;
struct uar_prepared;
/* Does the budget of the run bear such a call? */
bool uar_run_may_spend(const struct uar_run *r, const struct uar_prepared *p);
/* Is the model call that failed like this made again? */
bool uar_run_may_repeat(const struct uar_run *r, const struct uar_model_end *m);
bool uar_run_must_rank(const struct uar_run *r);
/* Why the last answer of the run's model ended: "stop", "length", "content_filter". */
const char *uar_run_finish_reason(const struct uar_run *r);

struct uar_session {
	struct uar_owner owner;
	uar_str runtime_id, session_id;
	uint64_t sequence; /* of the last event */
};

/* The queue of a thread: facts that the shell supplies. A decision about a run does not count
 * the run itself. */
struct uar_queued {
	uar_str run_id, turn_id;
};
struct uar_queue {
	bool busy;     /* a turn is active */
	bool paused;   /* no queued turn starts */
	size_t length; /* turns that wait, and the first of them: */
	size_t listed;
	struct uar_queued at[UAR_LIMIT_QUEUE_LISTED];
};
/* A turn that comes now waits: for the active one, for those before it, or for somebody who
 * lets the queue go on. */
bool uar_queue_waits(const struct uar_queue *q);
/* The first turn of the queue may start. */
bool uar_queue_may_start(const struct uar_queue *q);

struct uar_core_env {
	int64_t now_us;
	struct uar_uuid *ids;
	struct uar_arena *arena;       /* of the batch: events and payloads live here */
	struct uar_buf *buf;	       /* scratch for payloads */
	struct uar_arena *scratch;     /* reset for each event; NULL: the batch's does for it */
	const struct uar_queue *queue; /* of the run's thread; NULL: nothing waits there */
};

enum uar_command_kind {
#define RUN_CMD(KIND, DOC) UAR_CMD_##KIND,
#include "core/run_command.def"
	UAR_CMD_COUNT
};

struct uar_create {
	/* Set by the shell: new ids where the caller gave none. */
	uar_str run_id, turn_id, task_id;
	uar_str thread_id; /* conversation */
	bool new_session;  /* the session begins with this run */
	bool new_thread;
	bool task_given;
	bool wait;   /* the worker is busy: stay queued */
	bool queued; /* core says so: it waits in the queue of its thread */
	bool first;  /* before all others that wait there */
	struct uar_run_what what;
	uar_str root_run_id, parent_run_id; /* of a further attempt; empty: the first */
	uar_str trace_id;
	uar_str source;		  /* "api" */
	uar_str parent_thread_id; /* of the thread of a child agent; or empty */
	uar_str context;	  /* JSON object or empty */
	uar_str metadata;	  /* JSON object or empty: the caller's own members */
	uar_str reason;		  /* of a further attempt; or empty */
};

struct uar_prepared {
	int64_t message_count;
	uar_str prompt_sha256;
	int64_t prompt_bytes; /* of all messages */
	uar_str omissions;    /* JSON array: what of the past the model is not told; or empty */
	uar_str sections;     /* JSON array: the sections of the prompt, with digests; or empty */
	uar_str recalled, citations; /* JSON arrays: what knowledge brought; or empty */
	uar_str skills;		     /* JSON array: selected_skills of context.resolved; or empty */
	uar_str narrowed_by;	     /* JSON array: who took tools away; or empty */
	int64_t tool_count;	     /* that the model may ask for */
	int64_t steered;	     /* messages that joined the turn, which the model is told */
	enum uar_call_role role;
	uar_str compaction;	/* SUMMARIZE: members of context.compaction.started */
	uar_str route;		/* what is to be routed (route.h), or empty: it is, or never will */
	bool not_possible;	/* the route has no candidate */
	struct uar_price price; /* of the model of a run that is not routed */
	struct uar_budget budget; /* as above; that of a routed run is in the log */
	int64_t now_us;		  /* by which the time of the budget is counted */
};

struct uar_model_end {
	uar_str actual_model, stop_reason;
	int64_t input_tokens, output_tokens, total_tokens; /* -1: not reported */
	int64_t cached_tokens;				   /* of input_tokens; <= 0: none */
	uar_str category, message;			   /* when failed */
	uar_str code; /* when we ended it ourselves; empty: PROVIDER_ERROR */
	bool retryable;
	int http_status;
	int retries;		/* failed: so often it may be repeated with the same model */
	int64_t backoff_us;	/* the first wait before that; doubled each time */
	int64_t retry_after_us; /* the wait that the provider asks for; 0: none */
	bool has_cost;
	double cost_usd;
	/* MODEL_CALLS: a JSON array of {id, provider_id, name, arguments}, here or in a blob. */
	int64_t call_count;
	uar_str calls, calls_blob;
	struct {
		size_t place; /* RANK: of the candidate whose answer is used */
		bool named;   /* by the ranker */
		bool failed;  /* the ranker did not answer; `message` says why */
	} ranked;
	uar_str compaction; /* SUMMARIZE: members of context.compaction.completed */
	uar_str reasoning;  /* the beginning of what the model reasoned, or empty */
	uar_str raw_blob;   /* sha256 of all parts of the answer, as its provider wants them back */
	struct {
		uar_str catalog;     /* JSON array for tool.catalog.resolved, in the first round */
		uar_str narrowed_by; /* JSON array of it, or empty: nothing was */
		int64_t tool_count;
	};
	/* MODEL_DONE: a JSON array of what the answer holds to keep (finalize.c), or empty */
	uar_str artifacts;
};

/* A tool of ours, about to be executed: committed before it is. */
struct uar_tool_begin {
	uar_str call_id;
	uar_str tool_id, name, version, transport;
	const char *effect; /* "read_only", "idempotent", "once" */
	const char *policy; /* "allowed", "ask", "denied", "unavailable" */
	uar_str args;	    /* a JSON object when args_json, else text or its beginning */
	uar_str args_blob;  /* sha256 of the whole, or empty: it is whole */
	int64_t args_bytes; /* of the whole */
	bool args_json, destructive;
	bool again; /* it had begun before and is executed once more */
	struct {
		int64_t action; /* number of the question that decided; 0: nobody was asked */
		int64_t now_us; /* by which the time of the budget is counted */
	};
	uar_str permission;	 /* JSON object: the decision (permission.h), or empty */
	uar_str changed_by;	 /* the hook that changed the arguments, or empty */
	uar_str changed_blob;	 /* sha256 of what it made of them, or empty */
	uar_str wrong_at, wrong; /* what the arguments break, when they do */
	/* It is refused instead: the category of the failure and what the model is told. */
	uar_str category, message;
	/* What it runs in, and the process that it starts: members of sandbox.applied and of
	 * process.started; empty: none. */
	uar_str sandbox, process, process_id;
	uar_str schema; /* sha256 of the schema that its arguments are checked by, or empty */
};

struct uar_tool_news {
	uar_str call_id;
	uar_str partial; /* JSON */
};

struct uar_tool_over {
	uar_str call_id;
	bool ok;
	uar_str output;	      /* JSON; with `blob` or `lost` its beginning, as text; empty: none */
	uar_str blob;	      /* sha256 of the whole, or empty */
	uar_str parts_blob;   /* sha256 of the images and files that came with it, or empty */
	int64_t output_bytes; /* of the whole */
	bool lost;	      /* the whole could not be kept */
	uar_str tail;	      /* with `blob`: the end of it, as text */
	uar_str process_id;   /* of the process that it has started, or empty */
	uar_str category, message; /* of a failure */
	bool retryable;
	uar_str artifact; /* JSON of what it made, as finalize.c reads it; empty: nothing */
	/* Values that were hidden in what is told of its end. */
	struct uar_tool_hidden {
		size_t secrets, arguments;
	} hidden;
};

/* STEER, EDIT: a message, whole or its beginning, and then the blob that has all of it. */
struct uar_message_text {
	uar_str text, blob;
	int64_t bytes;
};

struct uar_failure {
	uar_str code, message, category;
	bool retryable;
};

/* One normalized event {"type","data"} of a fixture; lines count from 1. */
struct uar_replay {
	const struct uar_json *event;
	int64_t line;
	/* Its long value (content, input, delta, output) is a blob; the event holds the
	 * beginning as a string. */
	uar_str blob; /* sha256, or empty: the event holds it whole */
	uar_str tail; /* the end of the blob, as text */
	int64_t blob_bytes;
	bool blob_json; /* the blob is JSON, not text */
};

/* What a workflow has come to, and the calls that it makes next. */
struct uar_plan {
	uar_str nodes;	 /* JSON array: one object for each node that has changed */
	uar_str calls;	 /* JSON array of the calls, as rounds.c reads them; or empty */
	uar_str blob;	 /* sha256 of that array, when it is long or sealed; or empty */
	uar_str index;	 /* JSON array: of each call the node that it is for */
	int64_t made_us; /* the time that the workflow was looked at */
	int64_t due_us;	 /* nothing is done until then; 0: the calls are made */
};

struct uar_command {
	enum uar_command_kind kind;
	union {
		struct uar_create create;
		struct uar_prepared prepared;
		uar_str text; /* TEXT, REASONING; CANCEL: the reason; SESSION: its id */
		struct uar_tool_report tool;
		struct uar_tool_begin begin;
		struct uar_tool_news news;
		struct uar_tool_over over;
		struct uar_process_news process;
		struct uar_peer_news peer;
		struct uar_plan plan;
		struct uar_note note;
		struct uar_ask ask;
		struct uar_answer answer;
		struct uar_model_end model;
		struct uar_failure fail;       /* FAIL, LOST */
		struct uar_message_text input; /* STEER, EDIT */
		struct uar_replay replay;
		struct uar_progress progress;
		int64_t took_us;	  /* RECOVER: how long the run was read */
		struct uar_export export; /* EXPORT; FINISH: the result, committed with the end;
					   * no id: none */
	};
	/* FINISH, FAIL: */
	struct uar_result_refs result_refs;
	uar_str details; /* JSON object: more about the failure, or empty */
	/* A fact of the shell: of a run that shares a budget (budget.h); NULL: it shares none. */
	const struct uar_shared *shared;
};

/* Copies the strings of the command into the arena, as run_command.def names them. False: no
 * memory; some are copied, the others as they were. */
UAR_MUST_CHECK bool uar_command_own(struct uar_command *c, struct uar_arena *arena);

struct uar_decision {
	struct uar_event *events; /* in the batch's arena */
	size_t event_count, event_room;
	enum uar_effect effects[UAR_DECISION_EFFECTS];
	size_t effect_count;
	struct uar_row *rows; /* of the same append; in the batch's arena */
	size_t row_count, row_room;
};

void uar_session_init(struct uar_session *s, const struct uar_owner *owner, uar_str runtime_id,
		      uar_str session_id);
void uar_run_init(struct uar_run *r);
void uar_run_fini(struct uar_run *r); /* frees the arena and what is rare */
/* A copy to decide on: it borrows the arena and has its own of what is rare. Both
 * were initialized; `to` may be a copy already. */
UAR_MUST_CHECK uar_err uar_run_copy(struct uar_run *to, const struct uar_run *from);
/* The copy becomes the run; it stays a copy, of what the run was. */
void uar_run_take(struct uar_run *to, struct uar_run *copy);
void uar_run_copy_fini(struct uar_run *copy); /* frees what it has of its own */

/* Appends to `out` what the command means and folds it into *s and *r, which
 * are copies. UAR_ESTATE: the table refuses it; nothing was added. UAR_EINTERNAL:
 * a worker speaks of a model call that is not there, or not over. UAR_ETOOBIG: a decision is
 * full, and would be each time; fewer commands at once may do. Other errors leave the copies
 * unusable, as that does. */
UAR_MUST_CHECK uar_err uar_core_decide(const struct uar_core_env *env, struct uar_session *s,
				       struct uar_run *r, const struct uar_command *c,
				       struct uar_decision *out, struct uar_error *error);

/* What became of a message that asks for something. */
enum uar_message_effect {
	UAR_MESSAGE_EFFECT_NONE,      /* it asks for nothing */
	UAR_MESSAGE_EFFECT_REQUESTED, /* the run is asked to stop */
	UAR_MESSAGE_EFFECT_OVER,      /* the run was over before */
	UAR_MESSAGE_EFFECT_UNKNOWN,   /* that agent has no such run */
};
const char *uar_message_effect_name(enum uar_message_effect e); /* "requested" */
enum uar_message_effect uar_message_effect_parse(uar_str name); /* NONE: it is none of them */

/* A message that passes over a channel. Its session is the channel's, and has no run. */
struct uar_message {
	uar_str channel_id;
	uar_str agent_id; /* whose channel it is */
	uar_str message_id, preview;
	const char *kind;   /* "a2a", "status", "protocol" */
	const char *source; /* of the session: "a2a", "channel"; NULL: "a2a" */
	bool out;	    /* it leaves this runtime */
	uar_str native_ids; /* JSON object, or empty */
	uar_str content;    /* JSON object: the message; or empty, and then */
	uar_str blob;	    /* the sha256 of the blob that holds it; or empty */
	int64_t bytes;	    /* of the whole */
	enum uar_message_effect effect;
	uar_str run_id; /* of the run that it concerns */
};
/* Appends its facts to `out` and folds them into *s, which is a copy. */
UAR_MUST_CHECK uar_err uar_core_message(const struct uar_core_env *env, struct uar_session *s,
					const struct uar_message *m, struct uar_decision *out,
					struct uar_error *error);

/* Applies one event of the run (or of its session). UAR_ECORRUPT when the event
 * cannot follow what came before. `scratch` may be reset afterwards. */
UAR_MUST_CHECK uar_err uar_core_fold(struct uar_session *s, struct uar_run *r,
				     const struct uar_event *ev, struct uar_arena *scratch,
				     struct uar_error *error);

/* What the row tells of a run whose events cannot be folded: enough to end it, by
 * UAR_CMD_LOST alone. *r is initialised; run_sequence is that of its last event.
 * `scratch` may be reset afterwards. */
UAR_MUST_CHECK uar_err uar_core_from_row(const struct uar_run_row *row, uint64_t run_sequence,
					 struct uar_arena *scratch, struct uar_run *r);

/* 0..1, a run that reported any and completed has come to 1; < 0: not reported. */
double uar_run_progress(const struct uar_run *r);
/* The stage that the entry named; of an agent else the phase the engine knows. Empty: none. */
uar_str uar_run_stage(const struct uar_run *r);
/* What a question tells who shall answer it: members of an object that is open. */
void uar_action_write(struct uar_jw *w, const struct uar_run *r, const struct uar_open_action *a);

/* Members of an action's record: what is asked, by whom, and the answer. */
void uar_action_record(struct uar_jw *w, const struct uar_row_action *a);
/* Takes the outcome from its action.resolved, whose tree is there. Strings are borrowed. */
void uar_action_take(struct uar_row_action *a, const struct uar_event *resolved);

/* A run that waits for an answer needs nothing but its events to go on: no program. */
bool uar_run_may_leave(const struct uar_run *r);
/* And no look at its task after a start. */
bool uar_run_parks(const struct uar_run *r);

/* The row that lists and records show of the run. Strings live in the arena or the run;
 * what `buf` held is gone. */
UAR_MUST_CHECK uar_err uar_core_row(const struct uar_session *s, const struct uar_run *r,
				    struct uar_buf *buf, struct uar_arena *arena,
				    struct uar_run_row *out);

#endif
