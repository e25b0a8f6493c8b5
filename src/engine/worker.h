/* worker.h - the port between the engine and those who execute runs.
 *
 * The engine asks the workers whether a request can become a run, makes a worker when
 * a run starts, and tells it what was decided. A worker sends commands; what it sends is
 * durable before anybody sees it. */
#ifndef UAR_ENGINE_WORKER_H
#define UAR_ENGINE_WORKER_H

#include "json/sizes.h"
#include "base/sha256.h"
#include "engine/part.h"

struct live_run; /* a run in memory */
struct agg;	 /* its session */
struct worker;

/* --- what the engine calls -------------------------------------------------------- */

/* A request for a run that is looked at before it becomes one. Part of the engine's own
 * record of the request: it stays in place until the request is answered. */
struct rt_request {
	struct uar_run_create *op;
	/* Filled by `check`: what the run is to do, without its message, its key and the
	 * default time limit. Strings are op's, the workers' or in the arrays below. */
	struct uar_run_what what;
	/* The end of a look: op->error says why on an error. */
	void (*looked)(struct rt_request *q, uar_err e);
	/* A look under way, and how it is forgotten; NULL: there is none. */
	void *look;
	void (*forget)(void *look);
	char agent_id[UAR_LIMIT_ID_BYTES + 1], provider[UAR_LIMIT_ID_BYTES + 1];
	char model[UAR_LIMIT_AGENT_MODEL + 1];
	char definition[UAR_SHA256_TEXT + 1];
	struct uar_buf inputs; /* `check` may have put op->inputs here, as they are recorded */
};

struct rt_workers {
	const struct rt_workers_ops *ops;
};
/* What is asked of a process from outside of its run. */
struct rt_process_order {
	const struct uar_owner *owner;
	uar_str process_id;
	bool stop;
	uar_str input; /* bytes for its standard input, */
	bool end;      /* which ends behind them */
	uar_str by;    /* the user */
};
struct rt_workers_ops {
	/* An error, with op->error, refuses the request. */
	uar_err (*check)(struct rt_workers *w, struct rt_request *q);
	/* Looks for what a run needs where that takes time (a directory, a file); `looked`
	 * follows, never inside the call. UAR_ESKIP: there is nothing to look for. */
	uar_err (*look)(struct rt_workers *w, struct rt_request *q);
	/* The worker of the run's entry. */
	uar_err (*make)(struct rt_workers *w, struct live_run *r, struct worker **out);
	/* Asks for a place at the run's plugin. False: the run waits until there is one, or
	 * until its worker, which is there first, says that it begins. */
	bool (*may_begin)(struct rt_workers *w, struct live_run *r, uar_str plugin_id,
			  uar_str entry_id);
	void (*leave)(struct rt_workers *w, struct live_run *r); /* gives an unused place back */
	/* Input that is durable goes to a process, or it is ended; NULL: there are none. */
	void (*process)(struct rt_workers *w, const struct rt_process_order *o);
};
/* Before recovery. They stay in place as long as the engine. */
void rt_workers_set(struct uar_runtime *rt, struct rt_workers *w);
struct rt_workers *rt_workers(const struct uar_runtime *rt);

struct worker_ops {
	const char *name;
	/* Begins or goes on from where the run's state says. An error fails the run. */
	uar_err (*start)(struct worker *w, struct uar_error *error);
	void (*call_model)(struct worker *w);
	void (*flow)(struct worker *w); /* there is room again for who was held back */
	void (*stop)(struct worker *w); /* at once; frees w */
	/* Asks it to end the run by itself, soon; NULL: it is stopped instead. */
	void (*cancel)(struct worker *w);
	/* What it asked for was answered; NULL: it is stopped while it waits. */
	void (*answer)(struct worker *w, const struct uar_answer *answer);
	/* The run has begun, for which it was started before; NULL: it never is. */
	void (*begin)(struct worker *w);
	/* With `answer`: does it wait in memory now? NULL: always. */
	bool (*stays)(const struct worker *w);
};
struct worker {
	const struct worker_ops *ops;
	struct live_run *run;
};

/* --- what workers call -------------------------------------------------------------- */

struct uar_runtime *rt_engine(const struct live_run *r);
const struct uar_run *rt_state(const struct live_run *r);
/* NULL: it is not in memory. */
struct live_run *rt_live_find(struct uar_runtime *rt, const struct uar_owner *owner,
			      uar_str run_id);
const char *rt_run_id(const struct live_run *r);
const char *rt_thread_id(const struct live_run *r);
uar_str rt_thread_key(const struct live_run *r);
bool rt_is_first_of_thread(const struct live_run *r); /* there is nothing to remember */
bool rt_is_committed(const struct live_run *r);
bool rt_is_restarted(const struct live_run *r);
struct worker *rt_worker(const struct live_run *r); /* NULL: none at work */
struct uar_entry_slot *rt_slot(struct live_run *r); /* its place at a plugin */
struct live_run *rt_slot_run(struct uar_entry_slot *slot);

/* The session stays in memory, and with it its strings, until the hold is given back. */
struct agg *rt_agg(const struct live_run *r);
struct uar_runtime *rt_agg_engine(const struct agg *a);
const struct uar_session *rt_agg_session(const struct agg *a);
void rt_agg_hold(struct agg *a);
void rt_agg_drop(struct agg *a);

/* The ids of all questions of the session that wait for an answer. */
void rt_session_actions(const struct live_run *r, void (*each)(void *ctx, uar_str action_id),
			void *ctx);

/* Text is merged with what waits. False: hold the source back. */
bool rt_send_text(struct live_run *r, enum uar_command_kind kind, uar_str text);
/* One recorded event; `replay` says the rest about it. */
bool rt_send_line(struct live_run *r, uar_str json, const struct uar_replay *replay);
/* False: hold the source back until flow() says otherwise. */
bool rt_has_room(struct agg *a);

/* A command that was decided: its facts are durable, or it was refused. */
struct rt_sent {
	struct live_run *run;	     /* NULL: it is over */
	const struct uar_run *state; /* of it; NULL likewise */
	const struct uar_command *command;
	uar_err err;
	void *ctx; /* of rt_send_asked */
};
typedef void rt_sent_fn(const struct rt_sent *s);
/* False: out of memory, nothing is sent and `done` not called. */
bool rt_send_asked(struct live_run *r, const struct uar_command *c, rt_sent_fn *done, void *ctx);
/* A command without text. It is never lost: when there is no memory for it the run owes
 * it, and when its strings are gone the run fails and says so. */
void rt_send(struct live_run *r, const struct uar_command *c);
/* A part of what the worker said is gone: the run fails with `why`. */
void rt_lose(struct live_run *r, uar_err why);
/* The worker cannot go on: the run fails. */
void rt_send_fail(struct live_run *r, uar_err e, const char *category, const char *why);
/* Makes a worker before the run begins; on an error there is none. */
UAR_MUST_CHECK uar_err rt_worker_start(struct live_run *r, struct uar_error *error);
/* Stops and frees the run's worker; none is fine. */
void rt_worker_stop(struct live_run *r);
/* Starts the first queued run of r's thread, when its worker has a place for it. */
void rt_start_queued(struct live_run *r);

#endif
