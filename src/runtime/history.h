/* history.h - the earlier messages of a conversation, read from the log. */
#ifndef UAR_RUNTIME_HISTORY_H
#define UAR_RUNTIME_HISTORY_H

#include "runtime/runtime_int.h"

/* At most so much of the past is given to a model; the oldest goes first. */
enum { HISTORY_MESSAGES = 64, HISTORY_BYTES = 131072 };

struct history_message {
	enum uar_model_role role;
	struct uar_buf text;
	char run_id[UAR_UUID_TEXT + 1]; /* whose turn it belongs to */
	char blob[65];			/* text is its beginning only; empty: it is whole */
};

struct history {
	struct history_message *messages; /* HISTORY_MESSAGES; NULL: nothing was loaded */
	size_t count, bytes;
};

struct history_load;
typedef void history_ready_fn(void *ctx, uar_err e, const struct uar_error *error);
/* Fills *h with the turns of r's thread before r's own. `ready` fires later,
 * unless cancelled; *h must stay in place until then. */
uar_err rt_history_load(struct live_run *r, struct history *h, history_ready_fn *ready, void *ctx,
			struct history_load **out);
void rt_history_cancel(struct history_load *l); /* NULL is fine */
void rt_history_fini(struct history *h);

#endif
