/* runtime_int.h - what the files of runtime/ share. */
#ifndef UAR_RUNTIME_RUNTIME_INT_H
#define UAR_RUNTIME_RUNTIME_INT_H

#include "base/alloc.h"
#include "base/map.h"
#include "runtime/runtime.h"

struct batch;
struct worker;

enum { UAR_RETRY_US = 500000 }; /* while storage or memory is short */

/* Something under way at the store, or a posted task of it. What is still under
 * way when the runtime is destroyed is dropped: freed without a word. */
struct rt_op {
	struct uar_list node; /* in rt->ops */
	struct uar_runtime *rt;
	void (*drop)(struct rt_op *op);
};

struct agent_list {
	struct uar_agent *at;
	size_t count;
};

/* Things kept in memory while there is room, by key; the least recently used first. */
struct rt_kept {
	struct uar_list list;
	struct uar_map map;
	size_t count, bytes;
};

/* Things kept for reuse. */
struct rt_spare {
	struct uar_list list;
	size_t count;
	size_t large; /* of batches: the last so many keep much memory */
};

/* Runs that are found at a start. */
struct rt_recovery {
	struct uar_list to_load; /* yet to be read */
	size_t reading;
	bool enumerated;
	struct uar_timer reload; /* when there was no memory to read them */
	struct uar_task reload_now;
};

/* retain.c: owners whose oldest runs are looked for. */
struct rt_retention {
	struct uar_map owners; /* of struct retention */
	size_t count;
};

/* Messages between agents: on their way into the log, and out of it. */
struct rt_boxes {
	struct uar_map in;  /* inbox.c: of struct inbox */
	struct uar_map out; /* outbox.c: of struct outbox */
};

/* Somebody waits until nothing is under way. */
struct rt_drain {
	void (*done)(void *ctx); /* NULL: nobody */
	void *ctx;
	struct uar_task later;
};

/* toolset.c: the list of the tools of a policy, as it is written for each of its runs. */
struct rt_catalog {
	const struct uar_tool_policy *policy;
	struct uar_buf text;
};

struct uar_runtime {
	struct uar_runtime_options o;
	struct uar_uuid ids;
	struct uar_bus *bus;
	/* Keyed by owner and id, as the topics of the bus are. */
	struct uar_map sessions;  /* of struct agg */
	struct uar_map runs;	  /* of struct live_run */
	struct uar_map threads;	  /* of struct live_run, the last created one */
	struct rt_kept tails;	  /* tail.c: of runs */
	struct rt_kept pasts;	  /* past.c: of threads */
	struct uar_list crowd;	  /* of struct agg: they wait until a batch is back */
	struct rt_spare batches;  /* at most UAR_LIMIT_SPARE_BATCHES */
	struct rt_spare cmds;	  /* at most UAR_LIMIT_SPARE_COMMANDS */
	struct uar_arena scratch; /* of a fold */
	struct rt_recovery recovery;
	struct rt_retention retention;
	struct rt_boxes boxes;
	struct uar_list watches;   /* of struct uar_watch */
	struct uar_map quarantine; /* quarantine.c: runs that can neither go on nor be ended */
	struct agent_list defined; /* agents of o.agents */
	struct rt_catalog catalogs[UAR_LIMIT_TOOL_POLICIES];
	struct uar_list ops; /* of struct rt_op */
	bool draining;
	bool full;	  /* storage refused the last facts for want of space */
	size_t in_flight; /* batches at the store */
	struct rt_drain drain;
	struct uar_runtime_stats stats;
};

/* An id is unique below its owner alone, so this is what things are looked up by. */
struct rt_key {
	char text[4 * (UAR_LIMIT_ID_BYTES + 1)];
	size_t n; /* 0: no such thing can exist */
};

/* A session in memory: its state, and the commands that wait for a commit. */
struct agg {
	struct uar_runtime *rt;
	struct uar_session state;
	struct uar_arena arena; /* owner, session id and key */
	uar_str key;
	struct uar_task task; /* decides the next batch */
	struct uar_timer retry;
	struct uar_list queue; /* of struct cmd */
	size_t queued, queued_bytes;
	size_t careful;	       /* so many commands are decided one by one */
	struct uar_list runs;  /* of struct live_run */
	struct batch *batch;   /* at the store; NULL: none */
	struct uar_list crowd; /* in rt->crowd */
	size_t holds;	       /* reasons to stay in memory besides runs */
	bool loading;	       /* its last sequence is not known yet */
	bool waiting;	       /* for the retry timer */
	bool held;	       /* a source was told to hold back */
};

/* A run in memory. */
struct live_run {
	struct uar_list node; /* in agg->runs, in order of creation */
	struct agg *agg;
	struct uar_run state;
	struct worker *worker; /* NULL: none at work */
	struct uar_timer deadline;
	struct uar_timer reload;    /* when it could not be read at a start */
	struct uar_entry_slot slot; /* its place at a plugin */
	struct uar_list load_node;  /* in rt->recovery.to_load */
	unsigned load_tries;	    /* that failed, and not for a shortage */
	bool committed;		    /* its first events are durable */
	bool first_of_thread;	    /* nothing to remember */
	uint32_t owed;		    /* OWED_ bits: what could not be sent for lack of memory */
	uar_err lost;		    /* why a part of the worker's output is gone; UAR_OK: none */
	bool plain;		    /* its failure is told in our own words */
	bool stopping;		    /* it was told to stop before the log could be */
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	char thread_id[UAR_LIMIT_ID_BYTES + 1];
	uar_str run_key, thread_key;
	char keys[]; /* their text */
};

/* Commands that a run is owed, by kind, and its deadline. */
#define OWED(KIND)    (1u << (KIND))
#define OWED_DEADLINE (1u << UAR_CMD_COUNT)

struct cmd;
typedef void cmd_fn(struct cmd *c, uar_err e, const struct uar_error *error,
		    const struct uar_run *run);
/* A command on its way; owns the text it carries. */
struct cmd {
	struct uar_list node;
	struct uar_runtime *rt;
	struct uar_buf text; /* TEXT, REASONING: grows while it waits; REPLAY: the line */
	struct live_run *run;
	struct uar_command c;
	struct uar_arena own;	       /* the other strings of c */
	const struct uar_key_row *key; /* CREATE */
	cmd_fn *done;		       /* NULL: nobody asks */
	void *ctx;
	struct uar_key_row taken; /* on EEXISTS, valid inside done */
	bool from_worker;	  /* kept and tried again while the disk is full */
	uar_err err;		  /* what decide said; told after the commit */
	struct uar_error error;	  /* last, as it need not be cleared */
};

/* agg.c */
/* The key, in *k. */
uar_str rt_key(struct rt_key *k, const struct uar_owner *owner, uar_str id);
struct agg *rt_agg_find(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id);
/* A new one in memory; UAR_EEXISTS never: the caller looked first. */
uar_err rt_agg_make(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
		    uint64_t sequence, struct agg **out);
void rt_agg_hold(struct agg *a);
void rt_agg_drop(struct agg *a); /* gives a hold back; frees it when nothing needs it */
void rt_agg_kick(struct agg *a); /* there is something to decide */
void rt_agg_free(struct agg *a);
void rt_agg_later(struct agg *a); /* tries again when there may be room */
uar_err rt_run_make(struct agg *a, uar_str run_id, uar_str thread_id, struct live_run **out);
void rt_run_free(struct live_run *r); /* out of every map; ends its worker */
/* The run of its thread that was started first and is not over; NULL: none. */
struct live_run *rt_thread_active(struct agg *a, uar_str thread_id);
struct live_run *rt_run_find(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id);

/* command.c */
struct cmd *rt_cmd_make(struct live_run *r, enum uar_command_kind kind);
void rt_cmd_free(struct cmd *c);
void rt_cmd_free_spare(struct uar_runtime *rt);
/* Tells whoever waits for c, and frees it. */
void rt_cmd_answer(struct cmd *c, uar_err e, const struct uar_error *error);
void rt_cmd_move(struct cmd *c, struct uar_list *to); /* out of its session's queue */
size_t rt_cmd_bytes(const struct cmd *c);	      /* that it takes while it waits */
/* Takes the command; UAR_EBUSY or UAR_EDRAINING leave it with the caller. */
uar_err rt_cmd_send(struct cmd *c);
/* From workers: text is merged with what waits. False: hold the source back. */
bool rt_send_text(struct live_run *r, enum uar_command_kind kind, uar_str text);
/* From the fixture worker: one recorded event; `replay` says the rest about it. */
bool rt_send_line(struct live_run *r, uar_str json, const struct uar_replay *replay);
/* False: hold the source back until flow() says otherwise. */
bool rt_has_room(struct agg *a);
/* A worker's command, whose end `done` is told. False: out of memory, it is not. */
bool rt_send_asked(struct live_run *r, const struct uar_command *c, cmd_fn *done, void *ctx);
/* A worker's command without text. It is never lost: when there is no memory for
 * it the run owes it, and when its strings are gone the run fails and says so. */
void rt_send(struct live_run *r, const struct uar_command *c);
bool rt_is_output(enum uar_command_kind kind); /* said by a worker, in an order that counts */
void rt_owe(struct live_run *r, uint32_t owed);
/* A part of what the worker said is gone: the run fails with `why`. */
void rt_lose(struct live_run *r, uar_err why);
void rt_pay(struct agg *a); /* sends what the session's runs are owed */
/* Its worker cannot go on: the run fails. */
void rt_send_fail(struct live_run *r, uar_err e, const char *category, const char *why);

/* toolset.c */
void rt_catalogs_fini(struct uar_runtime *rt);

/* agents.c */
uar_err rt_agents_init(struct uar_runtime *rt);

/* runtime.c */
void rt_op_begin(struct uar_runtime *rt, struct rt_op *op, void (*drop)(struct rt_op *op));
void rt_op_end(struct rt_op *op);
void rt_maybe_drained(struct uar_runtime *rt);
bool rt_worth_retrying(uar_err e); /* it may pass by itself */
/* UAR_EDRAINING, UAR_ECLOCK: whatever is asked for cannot be begun now. */
UAR_MUST_CHECK uar_err rt_takes_new(const struct uar_runtime *rt);

/* batch.c */
void rt_batch_begin(struct agg *a);
void rt_batch_drop(struct agg *a); /* the one at the store, which will never answer */
void rt_batch_free_spare(struct uar_runtime *rt);
/* The run is over or was never made: forget it and what still waits for it. */
void rt_run_over(struct live_run *r, uar_err why);
/* Starts the first queued run of the thread, when its worker has a place for it. */
void rt_start_next(struct agg *a, uar_str thread_id);

/* recover.c */
void rt_recover_stop(struct uar_runtime *rt); /* reads no more runs: the next start does */

/* quarantine.c */
/* Nothing can be appended to the run, or it cannot be read: it leaves memory, so that
 * its thread goes on, and is remembered until the next start. */
void rt_run_quarantine(struct live_run *r, uar_err why);
/* Why a run that is not over is not in memory either. */
uar_err rt_out_of_reach(const struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id,
			struct uar_error *error);
void rt_quarantine_fini(struct uar_runtime *rt);

/* retain.c */
/* A run of this owner has ended: are there more now than are kept? */
void rt_retain(struct uar_runtime *rt, const struct uar_owner *owner);
/* The same for every owner, after a start: a kill may have come between the two. */
uar_err rt_retain_all(struct uar_runtime *rt, struct uar_error *error);

/* sweep.c */
void rt_sweep(struct uar_runtime *rt);

/* effect.c */
void rt_effect(struct live_run *r, enum uar_effect effect);
void rt_deadline_arm(struct live_run *r);
/* There is no space to write why the run stops, and perhaps this very run fills the
 * disk: it must stop at once, which is recorded when there is space. false: it was told before. */
bool rt_stop_unrecorded(struct live_run *r, const struct uar_command *why);

/* worker.c and entry_*.c */
struct worker_ops {
	const char *name;
	/* Begins or goes on from where r->state says. An error fails the run. */
	uar_err (*start)(struct worker *w, struct uar_error *error);
	void (*call_model)(struct worker *w);
	void (*flow)(struct worker *w); /* there is room again for who was held back */
	void (*stop)(struct worker *w); /* at once; frees w */
	/* Asks it to end the run by itself, soon; NULL: it is stopped instead. */
	void (*cancel)(struct worker *w);
	/* Somebody decided what it asked for; NULL: it is stopped while it waits. */
	void (*answer)(struct worker *w, int64_t number, enum uar_verdict verdict);
};
struct worker {
	const struct worker_ops *ops;
	struct live_run *run;
};
uar_err rt_worker_start(struct live_run *r, struct uar_error *error);
void rt_worker_stop(struct live_run *r); /* NULL worker is fine */
uar_err rt_echo_make(struct live_run *r, struct worker **out);
uar_err rt_fixture_make(struct live_run *r, struct worker **out);
/* What a fixture run is asked to replay, and whether at the recorded pace. */
uar_err rt_fixture_inputs(const struct uar_json *inputs, uar_str *out_name, bool *out_paced,
			  struct uar_error *error);
uar_err rt_llm_make(struct live_run *r, struct worker **out);
uar_err rt_plugin_make(struct live_run *r, struct worker **out);
uar_err rt_backend_make(struct live_run *r, struct worker **out);
/* What a run of that agent may be told besides its message. */
uar_err rt_backend_check(const struct uar_agent *agent, uar_str inputs, struct uar_error *error);
struct dir_look;
/* *out NULL: there is no directory to look for. */
uar_err rt_backend_look(const struct uar_runtime *rt, uar_str inputs, struct dir_look **out);
uar_err rt_backend_looked(const struct dir_look *job, struct uar_error *error);
/* Asks for a place at the plugin. False: the run waits for it. */
bool rt_plugin_place(struct live_run *r, uar_str plugin_id, uar_str entry_id);
void rt_plugin_leave(struct live_run *r); /* gives an unused place back */

/* input.c: the user's text, also when it is a blob. `ready` fires later, unless
 * the load is cancelled first. */
struct input_load;
typedef void input_ready_fn(void *ctx, uar_err e, uar_str text);
uar_err rt_input_load(struct live_run *r, input_ready_fn *ready, void *ctx,
		      struct input_load **out);
void rt_input_cancel(struct input_load *l); /* NULL is fine */

/* A line about a run: with its id, and its trace's when there is one. */
void rt_log_run(const struct live_run *r, enum uar_log_level level, const char *what,
		const char *detail);

#endif
