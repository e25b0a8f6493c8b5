/* create_int.h - a request for a run under way; for create.c and create_attempt.c alone. */
#ifndef UAR_ENGINE_CREATE_INT_H
#define UAR_ENGINE_CREATE_INT_H

#include "engine/control.h"
#include "engine/engine_int.h"

struct creation {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_run_create *op;
	struct uar_task place_later;
	struct rt_waker waker;
	int tries;
	bool has_blob, has_inputs;     /* message, inputs: kept as blobs */
	bool task_known, answer_first; /* refused while the conversation waits for an answer */
	struct rt_looked looked;       /* of its session */
	uar_err refused;	       /* unless the key names a run */
	/* From here on it is large, and written where it is used: not cleared. */
	struct uar_blob_put put, put_inputs;
	struct uar_thread_query query;
	struct uar_runs_query row;
	struct uar_key_row key;
	struct uar_key_query known;
	struct rt_request request;
	struct uar_rows_query task; /* that the request names */
	struct uar_control in;	    /* then it is an attempt at it */
	struct uar_control_op attempt;
	char thread_id[UAR_LIMIT_ID_BYTES + 1];
	char session_id[UAR_LIMIT_ID_BYTES + 1]; /* that waits outside of memory */
	char ids[4][UAR_UUID_TEXT + 1];		 /* run, turn, task, session */
};

/* --- create.c -------------------------------------------------------------------------------- */

/* Ends the operation and calls its `done`; c is gone afterwards. */
void rt_creation_finish(struct creation *c, uar_err e, const struct uar_error *error);
/* Its key is taken: it ends as the request that took it, or is refused. */
void rt_creation_resolve(struct creation *c, const struct uar_key_row *taken);
/* It would be refused: looks whether its key names a run. An error: nothing is under way. */
UAR_MUST_CHECK uar_err rt_creation_ask_key(struct creation *c, uar_err refused);
/* Another attempt of a plugin waits for no turn: it remembers nothing that was said, so
 * attempts of one run go side by side, each in a thread of its own. */
bool rt_creation_stands_apart(const struct creation *c);
/* Finds the session for the run. */
void rt_creation_place(struct creation *c);

/* --- create_attempt.c ------------------------------------------------------------------------ */

/* A task without a row is a label, which any number of runs may share. */
void rt_creation_find_task(struct creation *c);

#endif
