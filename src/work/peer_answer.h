/* peer_answer.h - what people have answered to the questions of a run at a peer, from its log. */
#ifndef UAR_WORK_PEER_ANSWER_H
#define UAR_WORK_PEER_ANSWER_H

#include "work/work_int.h"

/* The kinds of questions: of the peer, and whether a message is sent again. */
#define UAR_PEER_ASK_INPUT "peer_input"
#define UAR_PEER_ASK_AUTH  "peer_auth"
#define UAR_PEER_ASK_AGAIN "peer_send_again"

struct peer_answers {
	struct uar_arena arena;
	/* The last question of the peer; number 0: there was none. */
	int64_t number;
	bool answered, auth, text; /* text: the peer had no schema: the answer is a text */
	uar_str decision, reason;  /* "submit", "decline", "allow", "deny", ... */
	uar_str values;		   /* JSON object; or empty */
	char values_blob[UAR_SHA256_TEXT + 1], sealed[UAR_SHA256_TEXT + 1];
	int64_t again_number; /* the last question about sending again */
	bool again_answered, again_allowed;
};
struct peer_answers_load;
typedef void peer_answers_fn(void *ctx, uar_err e, const struct peer_answers *a);
/* `done` fires later, unless it is cancelled first; what it is given goes with the call. */
UAR_MUST_CHECK uar_err rt_peer_answers_load(struct live_run *r, peer_answers_fn *done, void *ctx,
					    struct peer_answers_load **out);
void rt_peer_answers_cancel(struct peer_answers_load *l); /* NULL is fine */

#endif
