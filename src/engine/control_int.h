/* control_int.h - a command of the control plane on its way: what control*.c share. */
#ifndef UAR_ENGINE_CONTROL_INT_H
#define UAR_ENGINE_CONTROL_INT_H

#include "engine/batch.h"
#include "engine/control.h"

struct rt_control;

/* control_files.c: files that the parts of a turn name, while they are looked for. */
struct rt_files {
	const struct uar_turn_file *at; /* NULL: all are there */
	struct uar_blob_get look;
	struct uar_stage stage;
	uar_err (*then)(struct rt_control *c);
};

/* The runs that a command concerns. */
struct rt_control_runs {
	struct uar_queue queue;			/* facts about the thread */
	char thread_id[UAR_LIMIT_ID_BYTES + 1]; /* of a new one, or the named one; may be empty */
	bool new_thread;			/* the thread is made with the run */
	bool own_thread;			/* likewise; its id is ours */
	bool lent;				/* the creation belongs to a request for a run */
	struct uar_run_create make;		/* of a command that makes a run */
	struct creation *creation;		/* what was made ready for it */
	struct uar_create create;
	struct live_run *fresh_run; /* not committed; NULL: none yet */
	char of_row[UAR_LIMIT_ID_BYTES +
		    1];		      /* parent of the row that was found: of a process its run */
	struct live_run *target_run;  /* NULL: none */
	struct uar_run fresh, target; /* copies that are decided on */
	struct uar_run_row run_row;
	struct uar_key_row key;
	struct uar_key_query known;
	struct uar_runs_query found;
	struct uar_blob_put text; /* edit_queued_turn: the new message */
	struct rt_files files;
	struct uar_arena kept; /* what later steps need of earlier ones */
};

/* A command on its way. */
struct rt_control {
	struct rt_op under_way;
	struct uar_list node; /* in agg->controls */
	struct uar_runtime *rt;
	struct uar_control_op *op;
	struct uar_control in; /* with what the engine adds */
	struct agg *agg;       /* NULL: its session is not found yet */
	struct uar_control_update *update;
	struct uar_session s;	/* the copy that is decided on */
	struct uar_list loaded; /* of struct loading */
	size_t to_load;		/* rows that are asked for and not there yet */
	uar_err load_err;
	struct uar_error load_error;
	unsigned tries;
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_task later;
	struct rt_waker waker; /* its session waited outside of memory */
	struct uar_thread_query where;
	struct rt_looked looked; /* what it has found */
	struct uar_rows_query row;
	struct uar_append append;
	struct uar_arena arena; /* of the decision */
	struct uar_arena rows;	/* of what was loaded */
	struct uar_buf buf;
	struct rt_control_runs runs; /* control_run.c */
	struct turn_load *turn;	     /* control_history.c; NULL: none is needed */
};

/* control.c */
void rt_control_decide(struct rt_control *c);
void rt_control_finish(struct rt_control *c, uar_err e, const struct uar_error *error);
/* control_find.c: finds the session of the command and joins it. */
UAR_MUST_CHECK uar_err rt_control_locate(struct rt_control *c);

/* control_run.c */
/* The first step of a command that makes a run: it is made ready, then its session is found. */
bool rt_control_makes_run(enum uar_control_kind kind);
UAR_MUST_CHECK uar_err rt_control_prepare(struct rt_control *c);
/* control_files.c: calls `then` once every file that a part of `input` names is found. */
UAR_MUST_CHECK uar_err rt_control_check_files(struct rt_control *c, uar_str input,
					      uar_err (*then)(struct rt_control *c));
/* control_edit.c: the first step of edit_queued_turn: the new message is stored. */
UAR_MUST_CHECK uar_err rt_control_prepare_edit(struct rt_control *c);
void rt_control_stored(struct uar_blob_put *put); /* runs.text: then its session is found */
/* fanout_wait.c: the first step of create_job: what it is given is stored. */
UAR_MUST_CHECK uar_err rt_control_prepare_job(struct rt_control *c);
/* The same where a request for a run is ready already. */
UAR_MUST_CHECK uar_err rt_control_lend(struct rt_control *c);
UAR_MUST_CHECK uar_err rt_control_make_ready(struct rt_control *c);
/* attempt.c: the same for an attempt, whose agent and input its task may name. */
UAR_MUST_CHECK uar_err rt_control_prepare_attempt(struct rt_control *c);
/* Facts and copies for a decision. */
UAR_MUST_CHECK uar_err rt_control_bring(struct rt_control *c, struct uar_core_env *env);
/* The decision moved a run: adds it to the append. */
UAR_MUST_CHECK uar_err rt_control_add_run(struct rt_control *c);
/* The append is durable, or it is not. */
void rt_control_runs_told(struct rt_control *c);
/* What a process is told by the command, which is durable. */
void rt_control_runs_order(struct rt_control *c);
void rt_control_runs_perform(struct rt_control *c);
void rt_control_runs_failed(struct rt_control *c, uar_err e);
/* The id that the caller gave to the turn is taken: the answer is the turn that has it. */
void rt_control_taken(struct rt_control *c, uar_str run_id);
void rt_control_runs_free(struct rt_control *c);

/* control_history.c: facts about a turn of the thread. True: they are being loaded, and the
 * decision follows. */
bool rt_control_turn_load(struct rt_control *c);
void rt_control_turn_forget(struct rt_control *c);

#endif
