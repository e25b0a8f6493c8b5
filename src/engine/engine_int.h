/* engine_int.h - what the files of engine/ share. */
#ifndef UAR_ENGINE_ENGINE_INT_H
#define UAR_ENGINE_ENGINE_INT_H

#include "base/alloc.h"
#include "base/map.h"
#include "base/seal.h"
#include "bus/bus.h"
#include "engine/sizes.h"
#include "engine/part.h"
#include "engine/worker.h"
#include "store/store.h"

struct batch;
struct rt_control;

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
	bool over;		 /* what the start has found was read, as far as it can be */
	struct uar_timer reload; /* when there was no memory to read them */
	struct uar_task reload_now;
};

/* retain.c: owners whose oldest runs are looked for. */
struct rt_retention {
	struct uar_map owners; /* of struct retention */
	size_t count;
};

/* Somebody waits until nothing is under way. */
struct rt_drain {
	void (*done)(void *ctx); /* NULL: nobody */
	void *ctx;
	struct uar_task later;
};

/* due.c: what happens by time. */
struct rt_due {
	struct uar_timer timer;
	int64_t at_us; /* when it fires; 0: it is not set */
	bool looking;
};

/* agg.c: when sessions have left memory, by a part of their hash. What a look-up has found of a
 * session holds as long as none of its place has left since the look-up began. */
struct rt_left {
	uint64_t count; /* so many have left */
	uint64_t at[UAR_LIMIT_LEFT_SLOTS];
};

struct rt_shortage {
	bool of_space;		   /* storage refused the last facts for want of it */
	bool of_memory;		   /* shortage.c: */
	int64_t since_us, last_us; /* monotonic: the first and the last failure */
	struct uar_timer look;
	struct uar_task task; /* if there is no memory for the timer */
};

/* Numbers that nobody outside may guess. */
struct rt_secret {
	uint64_t hash_seed;	  /* of maps */
	struct uar_seal_key seal; /* of values that are kept and must not be readable */
};

struct uar_runtime {
	struct uar_runtime_options o;
	struct uar_uuid ids;
	struct rt_secret secret;
	struct uar_bus *bus;
	/* Keyed by owner and id, as the topics of the bus are. */
	struct uar_map sessions;  /* of struct agg */
	struct uar_map runs;	  /* of struct live_run */
	struct uar_map threads;	  /* of struct live_run, the last created one */
	struct uar_list crowd;	  /* of struct agg: they wait until a batch is back */
	struct rt_spare batches;  /* at most UAR_LIMIT_SPARE_BATCHES */
	struct rt_spare cmds;	  /* at most UAR_LIMIT_SPARE_COMMANDS */
	struct uar_arena scratch; /* of a fold */
	struct rt_recovery recovery;
	struct rt_due due;
	struct rt_retention retention;
	struct uar_queue queue;	 /* scratch: facts of one decision */
	struct uar_list watches; /* of struct uar_watch */
	struct uar_list parts;	 /* of struct rt_part */
	struct rt_workers *workers;
	struct {
		struct rt_fanout {
			struct uar_list waiters; /* of struct uar_subagents_wait */
			size_t waiting;
		} fanout;
		struct rt_numbers parked; /* park.c: runs and sessions outside of memory */
		struct rt_left left;
		struct uar_map quarantine; /* quarantine.c: runs that can neither go on nor be
					    * ended */
		struct {
			struct uar_map trees, accounts; /* account.c, by the root and by the run */
		} budgets;
	};
	struct uar_list ops; /* of struct rt_op */
	bool draining;
	struct rt_shortage shortage;
	size_t in_flight; /* batches at the store */
	struct rt_drain drain;
	struct uar_runtime_stats stats;
};

/* What a session has at the store, in order: one batch, and creates that were decided upon it. */
struct rt_row {
	struct uar_list batches;
	size_t count;
	bool broken;	       /* one has failed, so those behind it will */
	bool conflict;	       /* and it was because the session is not what it was taken for */
	struct uar_list again; /* of struct cmd: creates that have failed behind it */
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
	struct uar_list owing; /* of struct live_run: those that are owed something */
	struct rt_row row;
	struct uar_list controls;   /* of struct rt_control: they wait for their turn */
	struct rt_control *control; /* the one at work: no batch is decided meanwhile */
	size_t control_count;	    /* of both */
	struct uar_list threads; /* of struct rt_thread: those whose queue is held or reordered */
	struct uar_list crowd;	 /* in rt->crowd */
	size_t holds;		 /* reasons to stay in memory besides runs */
	bool loading;		 /* its last sequence is not known yet */
	bool threads_known;	 /* `threads` is what the store has */
	bool threads_loading;
	struct {
		size_t unread;		/* runs of it */
		struct waking *waking;	/* park.c: they are being listed or read; or NULL */
		bool unsure;		/* its sequence may be an older one: it is read again */
		size_t budgets_unknown; /* runs of it whose budgets are being added up */
	};
	bool waiting; /* for the retry timer */
	bool held;    /* a source was told to hold back */
};

/* A run among those of its thread that are in memory. */
struct rt_place {
	uint32_t number;    /* in the order in which they came */
	uint32_t in_thread; /* of the last one: how many there are */
};
/* What a start knows of a run before its events are read. */
struct rt_found {
	bool listed;	  /* the start has listed it: it exists, read or not */
	bool unread;	  /* nobody has tried to read it yet */
	bool was_at_work; /* its record says so */
	bool woken;	  /* it waited outside of memory */
};

/* A run in memory. */
struct live_run {
	struct uar_list node; /* in agg->runs, in order of creation */
	struct agg *agg;
	struct uar_run state;
	struct worker *worker; /* NULL: none at work */
	struct uar_timer deadline;
	struct uar_timer due;	    /* of a wait for its model */
	struct uar_timer reload;    /* when it could not be read at a start */
	struct uar_entry_slot slot; /* its place at a plugin */
	struct uar_list load_node;  /* in rt->recovery.to_load */
	struct uar_list owed_node;  /* in agg->owing */
	unsigned load_tries;	    /* that failed, and not for a shortage */
	bool committed;		    /* its first events are durable */
	bool first_of_thread;	    /* nothing to remember */
	bool restarted;		    /* it was at work when the server stopped */
	struct rt_place place;
	struct rt_found found;
	uint64_t owed; /* OWED_ bits: what could not be sent for lack of memory */
	uar_err lost;  /* why a part of the worker's output is gone; UAR_OK: none */
	struct {
		bool plain;		    /* its failure is told in our own words */
		bool stopping;		    /* it was told to stop before the log could be */
		struct rt_account *account; /* of a run that shares a budget; NULL: it does not */
	};
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	char thread_id[UAR_LIMIT_ID_BYTES + 1];
	uar_str run_key, thread_key;
	char keys[]; /* their text */
};

/* Commands that a run is owed, by kind, and its deadline. */
#define OWED(KIND)    ((uint64_t)1 << (KIND))
#define OWED_DEADLINE ((uint64_t)1 << UAR_CMD_COUNT)

/* What a look-up has found. */
struct rt_looked {
	uint64_t since;	   /* rt->left.count when it began */
	uint64_t sequence; /* the last one; 0: there was no such session */
};

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
	rt_sent_fn *sent;	       /* what `done` calls, of a worker's command */
	void *ctx;
	struct uar_key_row taken; /* on EEXISTS, valid inside done */
	/* What it came to; the events are valid inside done. */
	const struct uar_event *events;
	size_t first_event, event_count;
	bool from_worker;	/* kept and tried again while the disk is full */
	uar_err err;		/* what decide said; told after the commit */
	struct uar_error error; /* last, as it need not be cleared */
};

/* agg.c */
struct agg *rt_agg_find(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id);
/* A new one in memory; UAR_EEXISTS never: the caller looked first. */
uar_err rt_agg_make(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
		    uint64_t sequence, struct agg **out);
/* The same for a session that was looked up: `since` is what rt->left.count was before that. It
 * may have been in memory meanwhile and have moved on; then it is looked up once more, by
 * rt_threads_need. */
uar_err rt_agg_open(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
		    const struct rt_looked *looked, struct agg **out);
void rt_agg_kick(struct agg *a); /* there is something to decide */
void rt_agg_free(struct agg *a);
void rt_agg_later(struct agg *a); /* tries again when there may be room */
uar_err rt_run_make(struct agg *a, uar_str run_id, uar_str thread_id, struct live_run **out);
void rt_run_free(struct live_run *r); /* out of every map; ends its worker */
/* The run of its thread that was started first and is not over; NULL: none. */
struct live_run *rt_thread_active(struct agg *a, uar_str thread_id);
/* EWAITING: its run asks something, which *error names. */
uar_err rt_thread_answered(struct agg *a, uar_str thread_id, struct uar_error *error);
struct live_run *rt_run_find(const struct uar_runtime *rt, const struct uar_owner *owner,
			     uar_str run_id);

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
bool rt_is_output(enum uar_command_kind kind); /* said by a worker, in an order that counts */
void rt_owe(struct live_run *r, uint64_t owed);
void rt_pay(struct agg *a); /* sends what the session's runs are owed */
/* engine.c */
void rt_maybe_drained(struct uar_runtime *rt);
/* part.c: each attached part is told. */
void rt_parts_committed(struct uar_runtime *rt, const struct rt_commit *c);
void rt_parts_evicted(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id);
/* Events of the session are durable, `first` to `last`. */
void rt_session_advanced(struct agg *a, const struct uar_event *first,
			 const struct uar_event *last);
void rt_parts_release(struct uar_runtime *rt);
void rt_parts_stop(struct uar_runtime *rt);
void rt_parts_destroy(struct uar_runtime *rt);

/* shortage.c */
void rt_shortage_init(struct uar_runtime *rt);
void rt_shortage_fini(struct uar_runtime *rt);

/* batch.c */
void rt_batch_begin(struct agg *a);
void rt_batch_drop(struct agg *a); /* those at the store, which will never answer */
bool rt_batch_can_begin(const struct agg *a);
void rt_batch_free_spare(struct uar_runtime *rt);
/* The run is over or was never made: forget it and what still waits for it. */
void rt_run_over(struct live_run *r, uar_err why);
/* Starts the first queued run of the thread, when its worker has a place for it. */
void rt_start_next(struct agg *a, uar_str thread_id);

/* threads.c */
/* Loads what the store knows of the queues of the session's threads, unless it is known;
 * nothing is decided about the session before it is. */
void rt_threads_need(struct agg *a);
void rt_threads_free(struct agg *a);
/* A row of a thread is durable. */
void rt_threads_learn(struct agg *a, const struct uar_row *row);
bool rt_queue_paused(const struct agg *a, uar_str thread_id);
void rt_queue_facts(struct agg *a, uar_str thread_id, struct uar_queue *out);
/* The same without the run, where the decision about it needs it; else NULL. */
const struct uar_queue *rt_queue_of(struct agg *a, struct live_run *r, const struct uar_run *state,
				    enum uar_command_kind kind);
/* The turn that is at work in the thread; NULL: none. */
struct live_run *rt_thread_at_work(struct agg *a, uar_str thread_id);

/* create.c: a request for a run that was made ready (uar_run_create.ready). */
void rt_creation_adopt(struct creation *c);	/* the caller ends it */
uar_str rt_creation_run_id(struct creation *c); /* a new one, in c */
struct uar_create rt_creation_command(struct creation *c, struct live_run *r, bool new_session,
				      bool new_thread);
void rt_creation_end(struct creation *c);
/* The idempotency key of the request; NULL: it has none. */
const struct uar_key_row *rt_creation_key(struct creation *c);
void rt_creation_taken(struct creation *c, const struct uar_key_row *taken);

/* attempt.c: runs of tasks that have a row */
/* The run has ended: its task follows in an append of its own. */
void rt_attempt_ended(struct live_run *r);
/* The turn of a queued attempt has come. */
void rt_attempt_start(struct live_run *r);
/* It waits, or goes on: its task's row follows. */
void rt_attempt_follow(struct live_run *r);
/* A row of a task is durable: the attempt of a task that is cancelled is asked to stop. */
void rt_attempt_learn(struct agg *a, const struct uar_row *row);
/* An attempt goes on after a start: a cancel of its task may not have reached it. */
void rt_attempt_recovered(struct live_run *r);
/* Finds the tasks whose attempt ended before the last stop, and which do not know it. */
void rt_attempts_recover(struct uar_runtime *rt);

bool rt_same_owner(const struct uar_owner *a, const struct uar_owner *b);

/* account.c: budgets that runs share */
/* The run is in memory: it shares one if others bear it, or if it has one of its own that others
 * of its tree may use. */
void rt_account_join(struct live_run *r);
/* Something is given to a child under these budgets (core/budget.h): those that bear it. */
void rt_account_share(struct uar_runtime *rt, const struct uar_owner *owner, uar_str budgets);
void rt_account_leave(struct live_run *r);
/* What a decision about the run has to know, in *out; NULL: it shares nothing. */
const struct uar_shared *rt_account_facts(const struct live_run *r, int64_t now_us,
					  struct uar_shared *out);
/* What was decided is on its way to the store (`state` is the copy), durable, or taken back. */
void rt_account_follow(struct live_run *r, const struct uar_run *state);
void rt_account_written(struct live_run *r, bool durable);

/* fanout*.c: child agents, and items of jobs */
/* A row is durable: what it asks for is done. */
void rt_fanout_learn(struct agg *a, const struct uar_row *row);
/* A start has found an open row. */
void rt_fanout_recovered(struct uar_runtime *rt, const struct uar_owner *owner,
			 const struct uar_row *row);
bool rt_fanout_is_child(const struct live_run *r);
void rt_fanout_ended(struct live_run *r);
void rt_fanout_follow(struct live_run *r); /* it waits, or goes on */
void rt_fanout_parent_stopped(struct live_run *r);
/* The task was cancelled, with the agents and jobs that work for it. */
void rt_fanout_task_stopped(struct agg *a, uar_str task_id);
bool rt_fanout_expire(struct uar_runtime *rt, const struct uar_row *row);
void rt_fanout_drain(struct uar_runtime *rt);

/* control.c */
void rt_control_begin(struct agg *a);
/* The session cannot be read: the commands that wait for it are refused. */
void rt_control_refuse(struct agg *a, uar_err e);

/* park.c */
/* Whoever waits until a session is back in memory. */
struct rt_waker {
	struct uar_list node;
	void (*fn)(struct rt_waker *w, uar_err e); /* its runs are there and were read, or e */
};
/* Everything in the session waits for answers: it is noted, and may be freed. */
bool rt_park(struct agg *a);
/* The same for a run that a start has found. */
bool rt_park_row(struct uar_runtime *rt, const struct uar_run_row *row);
/* False: the session is not outside of memory, or *out says why it cannot be brought back; else
 * waker->fn is called later. */
bool rt_wake(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
	     struct rt_waker *waker, uar_err *out);
void rt_awake(struct agg *a, uar_err e); /* all of its runs are read, or will not be */
bool rt_run_is_parked(const struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id);
uint64_t rt_session_number(const struct uar_runtime *rt, const struct uar_owner *owner,
			   uar_str session_id);

/* recover.c */
/* A run that is not over comes into memory, to be read by the next pump. */
UAR_MUST_CHECK uar_err rt_recover_add(struct uar_runtime *rt, const struct uar_run_row *row,
				      bool woken);
void rt_recover_pump(struct uar_runtime *rt);
void rt_recover_stop(struct uar_runtime *rt); /* reads no more runs: the next start does */

/* due.c */
void rt_due_init(struct uar_runtime *rt);
void rt_due_begin(struct uar_runtime *rt);		  /* looks for what is due already */
void rt_due_note(struct uar_runtime *rt, int64_t due_us); /* a row is due then; 0: never */
void rt_due_fini(struct uar_runtime *rt);

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

/* worker.c */
bool rt_worker_may_begin(struct live_run *r, uar_str plugin_id, uar_str entry_id);
void rt_worker_leave(struct live_run *r);

/* A line about a run: with its id, and its trace's when there is one. */
void rt_log_run(const struct live_run *r, enum uar_log_level level, const char *what,
		const char *detail);

/* quota.c: UAR_EQUOTA, with the reason in op->error: the tenant has its share of runs at work. */
UAR_MUST_CHECK uar_err rt_check_quota(const struct uar_runtime *rt, struct uar_run_create *op);

#endif
