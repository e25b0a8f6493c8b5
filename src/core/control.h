/* control.h - commands of the control plane: what they are, and what they mean.
 *
 *	read(kind, JSON)                 -> command
 *	decide(session, rows, command)   -> events + rows + result
 *
 * Tasks, threads, edges, actions and grants are rows of the store (event/row.def), the fold
 * of their session's events. A decision looks rows up by id or by a list. What it asks for and
 * was not loaded yet is a need: the shell loads it and the decision is made again from the
 * beginning. So the engine keeps none of them in memory, and core stays without I/O. The
 * shell lets nothing else be decided about the session between the load and the append. */
#ifndef UAR_CORE_CONTROL_H
#define UAR_CORE_CONTROL_H

#include "core/core.h"
#include "core/sizes.h"
#include "event/sizes.h"
#include "event/row.h"

enum uar_control_kind {
#define CMD(KIND, NAME, SCOPE, MODE, DOC) UAR_CTL_##KIND,
#include "core/command.def"
	UAR_CTL_COUNT
};
enum uar_control_scope {
	UAR_CTL_SCOPE_OWNER,
	UAR_CTL_SCOPE_SESSION,
	UAR_CTL_SCOPE_THREAD,
	UAR_CTL_SCOPE_TASK,
	UAR_CTL_SCOPE_ACTION,
	UAR_CTL_SCOPE_EDGE,
	UAR_CTL_SCOPE_GRANT,
	UAR_CTL_SCOPE_CHANNEL,
	UAR_CTL_SCOPE_SUBAGENT,
	UAR_CTL_SCOPE_JOB,
	UAR_CTL_SCOPE_PROCESS,
};
enum uar_control_mode {
	UAR_CTL_MODE_CHANGE,
	UAR_CTL_MODE_READ,
	UAR_CTL_MODE_LATER,
	UAR_CTL_MODE_INTERNAL, /* of the runtime itself: no door offers it */
};

#define CMD(KIND, NAME, SCOPE, MODE, DOC)                                                          \
	struct uar_ctl_##NAME {                                                                    \
		uint64_t given; /* bit i: member i was there */
#define O(CMD, TYPE, NAME, MAX, DOC) UAR_F_C_##TYPE NAME;
#define M(CMD, TYPE, NAME, MAX, DOC) UAR_F_C_##TYPE NAME;
#define OW(CMD, NAME, WORDS, DOC)    uar_str NAME;
#define MW(CMD, NAME, WORDS, DOC)    uar_str NAME;
#define END(KIND, NAME)                                                                            \
	}                                                                                          \
	;
#include "core/command.def"

/* What a thread says about one of its turns, and what came behind it. */
struct uar_turn_facts {
	uar_str turn_id;
	uint64_t sequence;   /* of its first event */
	bool over;	     /* it has ended */
	bool removed;	     /* a rollback took it back */
	bool condensed;	     /* behind it older turns were condensed */
	bool own_history;    /* its agent keeps a history of its own, elsewhere */
	bool thread_taken;   /* fork: there is a thread with the id of the new one */
	uar_str later_turns; /* JSON arrays: what a rollback to it takes back */
	uar_str tool_calls, artifacts;
};

struct uar_control {
	enum uar_control_kind kind;
	/* Who asks: from the credential of the call. */
	struct uar_owner owner;
	/* Facts that the shell supplies. */
	uar_str thread_id;		 /* the thread that it is about; empty: none */
	uar_str active_turn_id;		 /* the turn that is active in the thread, or none */
	const struct uar_queue *queue;	 /* of the thread; NULL: nothing waits there */
	const struct uar_run *active;	 /* the run of that turn; NULL: none */
	struct uar_run *target;		 /* a copy of the run that the command concerns; or NULL */
	bool more_targets;		 /* there is another one after it */
	uar_str earlier;		 /* JSON strings, each with a comma behind it: turns of
					  * earlier targets */
	struct uar_run *fresh;		 /* a run that is not made yet; or NULL */
	const struct uar_create *create; /* what it is to be */
	struct uar_message_text message; /* edit_queued_turn: stored */
	const struct uar_turn_facts
		*turn; /* fork, rollback: the turn that stays the last; or NULL */
	/* Of a command with a cursor: the sequence that it means, 0: it names none. */
	uint64_t cursor;
	bool cursor_lost;	     /* it is of another history of the server */
	uar_str parent_thread_id;    /* submit_turn: it is the turn of a child agent; or empty */
	uar_str budgets;	     /* likewise: whose budgets bear it (budget.h), or empty */
	uar_str caller_run_id;	     /* of the run whose tool sends the command; empty: of none */
	const struct uar_run *giver; /* the run for which a child is given work; NULL: none */
	bool giver_here;	     /* its session is that of the command */
	bool by_run; /* start_task: a run named the task, whether it is over or not */
	/* With an idempotency key: the id of its outcome's row (a digest of command and key), and
	 * the digest of the input. */
	uar_str outcome_id, fingerprint;
	union {
		uint64_t given; /* of all of them */
#define CMD(KIND, NAME, SCOPE, MODE, DOC) struct uar_ctl_##NAME NAME;
#include "core/command.def"
	};
};

struct uar_control_info {
	const char *name; /* "create_task" */
	enum uar_control_scope scope;
	enum uar_control_mode mode;
	const char *doc;
	struct uar_fields fields;
};
extern const struct uar_control_info uar_control_info[UAR_CTL_COUNT];
enum uar_control_kind uar_control_kind_of(uar_str name); /* UAR_CTL_COUNT: there is none */
/* Reads the members of an object. Strings are borrowed from the tree or live in the arena. */
UAR_MUST_CHECK uar_err uar_control_read(enum uar_control_kind kind, const struct uar_json *input,
					struct uar_arena *arena, struct uar_control *out,
					struct uar_error *error);
bool uar_control_given(const struct uar_control *c, const char *name); /* was it there? */
/* A member by its name; empty when the command has none, or it was not given. */
uar_str uar_control_str(const struct uar_control *c, const char *name);

/* --- rows that a decision sees ------------------------------------------------------------- */

/* What a decision asks for: one row, or all rows of a kind with this parent, tag or session. */
struct uar_need {
	enum uar_row_kind kind;
	uar_str id; /* set: one row; else a list: */
	uar_str parent, tag, session_id;
	bool open;	/* of a list: the open ones alone */
	uint32_t limit; /* of a list: a page of so many, by id; 0: all, or the command is refused */
	uar_str after;	/* `next` of the page before */
};
/* Its answer, by the shell. */
struct uar_loaded {
	struct uar_list node;
	struct uar_need need;
	struct uar_row *rows; /* one or none, or the list */
	size_t count;
	uar_str next; /* of a page; empty: it was the last one */
};

enum {
	UAR_CONTROL_NEEDS = UAR_LIMIT_CONTROL_NEEDS,
	UAR_CONTROL_ROWS = UAR_LIMIT_APPEND_ROWS,
};

/* What a command came to. Everything is in the arena of the environment. */
struct uar_control_update {
	struct uar_decision d; /* the events */
	struct uar_row rows[UAR_CONTROL_ROWS];
	size_t row_count;
	struct uar_need needs[UAR_CONTROL_NEEDS];
	size_t need_count;
	/* The events are of this run of the command, too, which was moved. */
	enum { UAR_CONTROL_NO_RUN, UAR_CONTROL_TARGET, UAR_CONTROL_FRESH } moved;
	bool order_process; /* its input goes to the process, or it is ended */
	bool again;	    /* decide once more when this is durable: it was a first step */
	uar_str result;	    /* JSON object: what the caller is told */
	uar_str event_ids;  /* JSON array, of the events of the first time, when it is repeated */
};

/* Does core decide it? Others are read models, or are answered elsewhere. */
bool uar_control_decided(enum uar_control_kind kind);
/* Decides. *s is a copy, whose sequence moves on. UAR_ENEEDS: load what `needs` lists, and ask
 * again with it. Other errors are the caller's (ENOTFOUND, ESTATE, EINVALID, ...): nothing is
 * to be appended. No events and no error: the command changes nothing, `result` says how
 * things are. `loaded` is a list of struct uar_loaded. */
UAR_MUST_CHECK uar_err uar_core_control(const struct uar_core_env *env, struct uar_session *s,
					const struct uar_control *c, const struct uar_list *loaded,
					struct uar_control_update *out, struct uar_error *error);

/* control_turn.c: the text of a turn, from `message` or from the parts of `input`. */
UAR_MUST_CHECK uar_err uar_turn_message(uar_str message, uar_str input, struct uar_arena *arena,
					uar_str *out, struct uar_error *error);
/* The files that parts of `input` name, which uar_turn_message has read; NULL: none. */
struct uar_turn_file {
	const struct uar_turn_file *next;
	size_t part;	/* of `input` */
	uar_str run_id; /* of an upload; empty: `id` is the sha256 of a blob */
	uar_str id;
};
/* Reads what a `ref` says; false: it names no bytes of this server. */
UAR_MUST_CHECK bool uar_turn_ref(uar_str ref, struct uar_turn_file *f);
UAR_MUST_CHECK uar_err uar_turn_files(uar_str input, struct uar_arena *arena,
				      const struct uar_turn_file **out, struct uar_error *error);
/* The members that the result of submit_turn has for a turn. */
struct uar_turn_place {
	const char *status; /* "accepted", "queued" */
	uar_str session_id, thread_id, turn_id, task_id, run_id, agent_id;
	size_t position; /* in the queue, from 1; 0: it is not queued */
	bool existed;
	bool steered; /* it is the active turn, which takes the message */
};
void uar_turn_write(struct uar_jw *w, const struct uar_turn_place *t);

/* control_subagent.c, control_job.c: a child agent's turn has a thread, and so a session, whose id
 * says whose it is. */
#define UAR_SUBAGENT_THREAD "uar-sub."
#define UAR_JOB_THREAD	    "uar-job."
/* Is it the thread of a child? Of a job: the job's id is a part of it. */
bool uar_thread_subagent(uar_str thread_id, uar_str *out_subagent_id);
bool uar_thread_job(uar_str thread_id, uar_str *out_job_id, int64_t *out_index);
/* Members of their records. */
void uar_subagent_write(struct uar_jw *w, const struct uar_row_subagent *s);
void uar_job_write(struct uar_jw *w, const struct uar_row_job *j);
void uar_job_item_write(struct uar_jw *w, const struct uar_row_job_item *i);
bool uar_subagent_at_rest(const struct uar_row_subagent *s); /* nothing of it is under way */

/* control_task.c: members of a task's record. */
void uar_task_write(struct uar_jw *w, const struct uar_row_task *t);

#endif
