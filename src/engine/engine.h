/* engine.h - the shell around core: append, fold, publish, perform.
 *
 * Requests and workers alike send commands; a command becomes events by
 * core/decide, the store makes them durable, and only then is the state moved,
 * the bus told, the request answered and the effect started. All calls come
 * from the loop thread; callbacks never fire inside the call that asked. */
#ifndef UAR_ENGINE_ENGINE_H
#define UAR_ENGINE_ENGINE_H

#include "base/log.h"
#include "base/sched.h"
#include "base/seal.h"
#include "core/core.h"
#include "event/entry.h"

struct uar_store;
struct uar_runtime;
struct creation;

struct uar_runtime_options {
	struct uar_sched *sched;
	struct uar_store *store;
	const struct uar_rand *rand;
	const struct uar_log *log;
	int64_t run_timeout_us; /* of runs that name none; 0: no limit */
	bool park;		/* runs that wait for an answer leave memory */
	uint64_t keep_runs;	/* ended runs of an owner; older ones are evicted; 0: all */
	struct {
		struct uar_owner owner; /* who has no quota; strings outlive the engine */
		size_t live_runs; /* of a tenant, that are at work or queued in memory; 0: any */
	} quota;
	/* Under which values that must not be readable are kept; NULL: one that lives as long as
	 * the engine. Copied. */
	const struct uar_seal_key *seal;
	/* Memory was short for 15 seconds: the process should end. Called once, on the loop. */
	void (*exhausted)(void *ctx);
	void *exhausted_ctx;
};

UAR_MUST_CHECK uar_err uar_runtime_create(const struct uar_runtime_options *o,
					  struct uar_runtime **out);
/* Nothing may call back into it any more: drain has called done, or its store is
 * destroyed. What was under way then ends without an answer and leaves nothing
 * behind; runs that were at work go on after the next start. Streams are closed
 * by their owners before. NULL is fine. */
void uar_runtime_destroy(struct uar_runtime *rt);
/* A new limit for runs that begin from now on. */
void uar_runtime_reload(struct uar_runtime *rt, int64_t run_timeout_us);

/* Finds every run that is not over and lets it go on. Blocks only to list
 * them; each is then read and resumed from the loop. */
UAR_MUST_CHECK uar_err uar_runtime_recover(struct uar_runtime *rt, struct uar_error *error);
bool uar_runtime_ready(const struct uar_runtime *rt); /* recovery has tried to read all */

/* An operation ended with that error. UAR_ENOMEM begins a shortage of memory; others mean nothing
 * here. The runtime notes its own failures. */
void uar_runtime_note_failure(struct uar_runtime *rt, uar_err e);
bool uar_runtime_short_of_memory(const struct uar_runtime *rt); /* requests should go elsewhere */

/* Stops workers without ending their runs (they go on after the next start),
 * finishes commits, then calls done. Commands are refused from now on. */
void uar_runtime_drain(struct uar_runtime *rt, void (*done)(void *ctx), void *ctx);

/* Operation structs belong to the caller and stay in place until `done`. */
struct uar_run_create {
	struct uar_owner owner;	     /* strings stay in place until done */
	uar_str agent_id;	     /* either an agent */
	uar_str plugin_id, entry_id; /* or an entry of a plugin, */
	const struct uar_json *args; /* whose arguments are checked before anything begins */
	uar_str message;	     /* for a plugin: the text of `args` */
	uar_str inputs;		     /* JSON object of the other inputs, or empty */
	uar_str context;	     /* JSON object, or empty */
	uar_str conversation_id;     /* or empty */
	uar_str idempotency_key;     /* or empty */
	uar_str fingerprint;	     /* of the request's meaning, when there is a key */
	uar_str task_id, trace_id;
	uar_str turn_id; /* or empty: a new one */
	struct {
		uar_str metadata;   /* JSON object: the caller's own members; or empty */
		uar_str model;	    /* "PROVIDER/MODEL" that answers; or empty */
		const char *source; /* the door it came through; NULL: "api", or "plugin" */
	} said;
	struct {
		int64_t timeout_us; /* 0: the default */
		struct uar_run_permit permit;
	};
	void (*done)(struct uar_run_create *op);
	void *ctx; /* the caller's */
	/* out */
	uar_err err; /* EKEYREUSED: the key belongs to a different request */
	struct uar_error error;
	bool existed; /* the key named this run already */
	const char *status;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	const struct uar_run *parent; /* of a further attempt; the runtime's own */
	/* Set: it is made ready and not made; `done` follows on an error alone. The engine's own.
	 */
	void (*ready)(struct uar_run_create *op, struct creation *c);
};
UAR_MUST_CHECK uar_err uar_runtime_create_run(struct uar_runtime *rt, struct uar_run_create *op);
/* The same for clients that cannot see a queue: EWAITING while the conversation waits for an
 * answer. */
UAR_MUST_CHECK uar_err uar_runtime_create_turn(struct uar_runtime *rt, struct uar_run_create *op);

/* What a run of the queue stands behind. */
struct uar_held_up {
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	char action_id[UAR_ACTION_TEXT + 1]; /* that this one waits for, the first of them */
	size_t open;
};
/* True: the run is queued, and its thread waits for an answer. */
bool uar_runtime_held_up(const struct uar_runtime *rt, const struct uar_owner *owner,
			 uar_str run_id, struct uar_held_up *out);

/* Another attempt at the task of a run that is over. */
struct uar_run_retry_op {
	struct uar_owner owner;
	uar_str run_id;
	uar_str idempotency_key; /* or empty */
	void (*done)(struct uar_run_retry_op *op);
	void *ctx; /* the caller's */
	/* out: ENOTFOUND; ESTATE: the run is not over yet */
	uar_err err;
	struct uar_error error;
	bool existed;
	const char *status;
	char new_run_id[UAR_LIMIT_ID_BYTES + 1];
};
UAR_MUST_CHECK uar_err uar_runtime_retry_run(struct uar_runtime *rt, struct uar_run_retry_op *op);

/* What one commit brought, for those who follow all runs. Borrowed for the call. */
struct uar_commit {
	const struct uar_owner *owner;
	const struct uar_run *run;
	const struct uar_event *events;
	size_t event_count;
	bool added, changed; /* the run is new; what its record shows changed */
};
struct uar_watch {
	struct uar_list node;
	void (*fn)(void *ctx, const struct uar_commit *c);
	/* The run is evicted: no look-up finds it any more. NULL: it is of no interest. */
	void (*gone)(void *ctx, const struct uar_run_row *row);
	void *ctx;
};
void uar_runtime_watch(struct uar_runtime *rt, struct uar_watch *w);
void uar_runtime_unwatch(struct uar_watch *w);

struct uar_run_cancel_op {
	struct uar_owner owner;
	uar_str run_id, reason;
	void (*done)(struct uar_run_cancel_op *op);
	void *ctx; /* the caller's */
	/* out: ENOTFOUND, or UAR_OK also when the run was over already */
	uar_err err;
	struct uar_error error;
	bool over; /* it was: nothing is recorded */
};
UAR_MUST_CHECK uar_err uar_runtime_cancel_run(struct uar_runtime *rt, struct uar_run_cancel_op *op);

/* Answers what a run has asked for: the one way to do so, for every door. The first answer
 * counts; the same one again gets the first outcome. */
struct uar_run_answer_op {
	struct uar_owner owner;
	uar_str action_id;
	uar_str run_id;		       /* empty, or the run that must have asked (ENOTFOUND) */
	uar_str decision;	       /* one of those that the action offers */
	const struct uar_json *values; /* by the action's schema; NULL: none */
	uar_str reason;		       /* or empty */
	uar_str channel_id;	       /* over which the answer came; or empty: its user's own */
	uar_str continues_as; /* what the client calls the run from the answer on; or empty */
	bool permission; /* it answers a permission alone, and "timeout" says that nobody did */
	void (*done)(struct uar_run_answer_op *op);
	void *ctx; /* the caller's */
	/* out; strings are valid inside done. ENOTFOUND; EINVALID, ESCHEMA: error.where is
	 * "/decision", or the pointer below "/payload"; ERESOLVED: it was answered otherwise, has
	 * expired, or ended with its run, and `result` says how. */
	uar_err err;
	struct uar_error error;
	uar_str result;	   /* JSON object: the action with its answer; empty: there is none */
	uar_str event_ids; /* JSON array: of the facts of the answer that counts */
};
UAR_MUST_CHECK uar_err uar_runtime_answer(struct uar_runtime *rt, struct uar_run_answer_op *op);

/* The preview of an artifact reported an error: a fact of its run while that is at work. */
struct uar_artifact_error_op {
	struct uar_owner owner;
	uar_str run_id, artifact_id;
	uar_str message, details; /* one safe line; JSON object or empty */
	void (*done)(struct uar_artifact_error_op *op);
	void *ctx;   /* the caller's */
	uar_err err; /* out; ESTATE: the run is not at work */
	struct uar_error error;
};
/* UAR_ESTATE: the run is not at work. */
UAR_MUST_CHECK uar_err uar_runtime_artifact_error(struct uar_runtime *rt,
						  struct uar_artifact_error_op *op);

/* Asks every run to stop, whoever it belongs to; the reason stays in place. */
void uar_runtime_cancel_all(struct uar_runtime *rt, uar_str reason);

struct uar_runtime_stats {
	uint64_t created, completed, failed, cancelled, timed_out, recovered;
	uint64_t commands, refused, merged, batches, events, evicted, swept;
	size_t live_runs, sessions;
	size_t parked; /* runs that wait outside of memory, for an answer or their turn */
};
void uar_runtime_stats(const struct uar_runtime *rt, struct uar_runtime_stats *out);

/* Every run in memory. */
void uar_runtime_each_run(const struct uar_runtime *rt,
			  void (*fn)(void *ctx, const struct uar_run *run), void *ctx);

/* Every run of this owner that waits for an answer. */
void uar_runtime_each_waiting(const struct uar_runtime *rt, const struct uar_owner *owner,
			      void (*fn)(void *ctx, const struct uar_run *run), void *ctx);

#endif
