/* peer_int.h - what the files of the worker of peer.a2a share. */
#ifndef UAR_WORK_PEER_INT_H
#define UAR_WORK_PEER_INT_H

#include "tool/secret.h"
#include "work/backend_session.h"
#include "work/definitions.h"
#include "work/peer_answer.h"
#include "work/peer_artifacts.h"

/* What is under way at the peer. */
enum peer_doing {
	PEER_OPENS,   /* its card is read */
	PEER_SENDS,   /* a message */
	PEER_LOOKS,   /* at the task */
	PEER_SEEKS,   /* the task of a message whose arrival is uncertain */
	PEER_FOLLOWS, /* the stream of the task */
	PEER_CHECKS,  /* the task, once its stream has said that it is over */
	PEER_CANCELS,
	PEER_CONFIRMS, /* looks whether the task that was cancelled is over */
	PEER_RESTS,    /* nothing, until a timer */
};

enum { PEER_SAID_BEFORE = 0x7fffffff };

/* Of the text that has been told. */
struct peer_said {
	struct uar_sha256 hash;
	size_t bytes;
	unsigned made;	/* text_made of the view; of another operation: PEER_SAID_BEFORE */
	unsigned again; /* times that all of it came anew */
	bool unknown;	/* a worker before this one has told it */
};

struct peer_worker {
	struct worker base;
	struct {
		struct definition_load *definition;
		struct input_load *input;
		struct session_find *find;
		struct peer_answers_load *answers;
		struct peer_keeping *keeping;
	} load; /* what is waited for here */
	struct uar_remote *remote;
	struct uar_timer timer; /* of a poll */
	struct uar_timer limit; /* of a cancel */
	struct uar_arena arena; /* of what is sent */
	struct uar_secrets_used used;
	struct uar_buf made; /* the artifacts, as a command wants them */
	struct uar_remote_message message;
	char message_id[UAR_ACTION_TEXT + 1];
	enum peer_doing doing;
	struct peer_said said;
	struct {
		int64_t number; /* of what is to be sent */
		int64_t asked, again;
		bool answered, allowed, again_answered, again_allowed;
	} ask;
	char task_id[UAR_LIMIT_PEER_ID + 1], context_id[UAR_LIMIT_PEER_ID + 1];
	struct {
		enum uar_remote_state state;
		char native[UAR_LIMIT_PEER_STATUS + 1];
		uar_str question;	     /* what its status says; in `told` */
		const struct uar_json *data; /* likewise */
		struct uar_arena told;
		bool over;
	} seen; /* of the task */
	unsigned cuts;
	int64_t poll_us;
	struct {
		bool streams, lists, idempotent;
	} can;	       /* the peer */
	bool leaving;  /* the run is being cancelled */
	bool refused;  /* the peer does not cancel the task, unless it is over already */
	bool doubtful; /* the arrival of the last message is uncertain */
	bool kept, held, news;
};

struct peer_worker *rt_peer_of(const struct live_run *r);
const struct uar_run_peer *rt_peer_state(const struct peer_worker *w);

static inline const struct uar_remotes_ops *rt_peer_ops(const struct peer_worker *w)
{
	return rt_work(w->base.run)->o.remotes->ops;
}

static inline struct uar_sched *rt_peer_sched(const struct peer_worker *w)
{
	return rt_sched(rt_engine(w->base.run));
}

/* peer_dialogue.c: what is asked of the peer, and what follows from its answers. */
/* The operation that comes next. */
void rt_peer_decide(struct peer_worker *w);
/* Asks for the task. */
void rt_peer_look(struct peer_worker *w, enum peer_doing doing);
void rt_peer_on_update(void *ctx, const struct uar_remote_view *v);
void rt_peer_on_end(void *ctx, const struct uar_remote_end *end);
/* The peer is not read while the session has no room for what it says. */
void rt_peer_set_held(struct peer_worker *w);
/* Has a person answered the question that the task asks? */
bool rt_peer_is_answered(const struct peer_worker *w);
/* The run fails here, for a reason that is not the peer's. */
void rt_peer_give_up(struct peer_worker *w, uar_err e, const char *why);

/* peer_leave.c: the end of a run that is cancelled. */
void rt_peer_stopped(struct peer_worker *w);
/* The run is cancelled all the same: the peer may go on. */
void rt_peer_stopped_here_alone(struct peer_worker *w, const char *why);
void rt_peer_limit_passed(struct uar_timer *t);
/* What the peer said to the cancel, or of its task after that. */
void rt_peer_end_cancel(struct peer_worker *w, const struct uar_remote_end *end);

/* peer_tell.c: what the peer says, as commands of the run. False: it cannot go on. */
bool rt_peer_tell(struct peer_worker *w, const struct uar_remote_view *v);
void rt_peer_warn(struct peer_worker *w, const char *code, const char *why);
void rt_peer_step(struct peer_worker *w, enum uar_peer_step step, enum uar_peer_found found);
void rt_peer_lost(struct peer_worker *w, const char *why, int64_t wait_us);
void rt_peer_fail(struct peer_worker *w, const char *code, const char *category, uar_str why);
void rt_peer_missing(struct peer_worker *w);
/* The run ends as the task did; its artifacts are there. */
void rt_peer_conclude(struct peer_worker *w);
void rt_peer_ask(struct peer_worker *w);
void rt_peer_ask_again(struct peer_worker *w);
/* Fills w->message with what answers the question of the peer. */
UAR_MUST_CHECK uar_err rt_peer_answer_with(struct peer_worker *w, const struct peer_answers *a);
UAR_MUST_CHECK uar_err rt_peer_headers(struct peer_worker *w, uar_str url, struct uar_error *error);

#endif
