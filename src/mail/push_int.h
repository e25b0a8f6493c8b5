/* push_int.h - what the files of notifications share: the book of a task, and its senders.
 *
 * In memory are tasks with an operation or a sender. Of all others with configurations the hash of
 * the run's key is kept, which its commits are compared with. */
#ifndef UAR_MAIL_PUSH_INT_H
#define UAR_MAIL_PUSH_INT_H

#include "core/push.h"
#include "event/push.h"
#include "mail/limits.h"
#include "mail/mail_int.h"
#include "mail/push.h"

/* The session of their facts is this and the id of the run. */
#define PUSH_SESSION "uar.push:"

/* The configurations of one task: one operation on them after the other. */
struct push_task {
	struct rt_op under_way; /* while there are operations */
	struct uar_mailer *ml;
	struct uar_owner owner;
	uar_str run_id, key;
	struct uar_session state; /* push_book.c: the session of their facts */
	bool known;		  /* its last sequence */
	struct uar_arena own;	  /* of those */
	struct uar_list queue;	  /* of struct uar_push_op; the first is at work */
	size_t waiting;
	bool busy;		 /* one is at work, or is being answered */
	struct uar_list senders; /* of struct push_sender */
	/* The steps of the one at work: */
	struct uar_rows_query rows;
	struct uar_thread_query session;
	struct uar_append append;
	unsigned tries;
	struct uar_arena arena;
	struct uar_buf buf;
	/* Its own operation: */
	struct uar_push_op look;
	bool looking;		/* it is in the queue */
	bool complete;		/* each active configuration has a sender */
	struct uar_timer timer; /* when that could not be found out */
};

enum push_state {
	PUSH_IDLE,    /* all is sent */
	PUSH_READY,   /* waits until it may work */
	PUSH_READING, /* works: events of the run, */
	PUSH_POSTING, /* a notification is on its way, */
	PUSH_NOTING,  /* or what became of it is being recorded */
	PUSH_WAITING, /* the receiver did not take it */
};

/* The run so far, as the receiver's version shows it. */
struct push_fold {
	void *state; /* the dialect's; NULL: nothing is folded */
	struct uar_dialect_options options;
	uint64_t last; /* run_sequence of the last event */
	bool ended;    /* that one ends the run */
	struct uar_read page;
	size_t at; /* the next event of the page */
	bool paged;
	struct uar_buf frames; /* of the last event */
	uar_str rest;	       /* of them */
	int64_t k;	       /* so many were taken from it */
	struct uar_arena scratch;
};

/* One configuration that has something to send, or had lately. */
struct push_sender {
	struct uar_list node;  /* in its task */
	struct uar_list place; /* IDLE: among those of all tasks; READY: in its lane */
	struct rt_op under_way;
	struct push_task *task;
	struct push_lane *lane; /* push_places.c */
	struct uar_arena own;
	struct uar_a2a_push to;
	uar_str authorization;
	enum push_state state;
	bool gone;	/* freed when its read or its operation returns */
	bool again;	/* something was committed since it last read */
	unsigned tries; /* in a row */
	uint64_t sequence;
	int64_t frame;	       /* so far the receiver has acknowledged; as it is stored */
	struct push_fold fold; /* while it works, and until the memory is needed */
	struct uar_push_post post;
	struct uar_push_op op;
	bool noting; /* op is in the queue of its task */
	struct uar_timer timer;
};

/* push.c: the tasks. */
void rt_push_wake(struct push_task *t); /* there may be something to send */
void rt_push_rest(struct push_task *t); /* frees it if nothing of it is at work */
bool rt_push_watch(struct push_task *t,
		   bool yes);		     /* commits of its run wake it; false: no memory */
void rt_push_scan_on(struct uar_mailer *ml); /* reads the next page, or begins a scan */
void rt_pushes_init(struct uar_mailer *ml, struct uar_pushes *port);
void rt_pushes_stop(struct uar_mailer *ml);
void rt_pushes_fini(struct uar_mailer *ml);
void rt_pushes_committed(struct uar_mailer *ml, const struct rt_commit *c);
void rt_pushes_evicted(struct uar_mailer *ml, const struct uar_owner *owner, uar_str run_id);

/* push_book.c: operations. */
UAR_MUST_CHECK uar_err rt_push_enter(struct push_task *t, struct uar_push_op *op);
UAR_MUST_CHECK uar_err rt_push_unseal(struct push_task *t, const struct uar_row_push *row,
				      struct uar_arena *arena, struct uar_a2a_push *out);

/* push_places.c. A place is what a sender needs to work; of those there are a few. */
UAR_MUST_CHECK uar_err rt_push_lane_enter(struct push_sender *s);
void rt_push_lane_leave(struct push_sender *s);
void rt_push_ready(struct push_sender *s);		 /* it waits for a place */
struct push_sender *rt_push_next(struct uar_mailer *ml); /* it has one now; NULL: none may */
void rt_push_place_free(struct push_sender *s);
void rt_push_wait(struct push_sender *s); /* it waits for its timer */
/* One that does not work, of the owner that has most of them; NULL: all of them work. */
struct push_sender *rt_push_surplus(struct uar_mailer *ml);
size_t rt_push_load(const struct uar_mailer *ml);    /* senders that have something to send */
void rt_push_taken(struct push_sender *s, bool yes); /* the receiver took a notification, or not */

/* push_send.c */
UAR_MUST_CHECK uar_err rt_push_sender(struct push_task *t, const struct uar_row_push *row);
struct push_sender *rt_push_find(const struct push_task *t, uar_str config_id);
void rt_push_poke(struct push_sender *s); /* there may be something to send */
void rt_push_kill(struct push_sender *s); /* the configuration is another one, or gone */
void rt_push_pump(struct uar_mailer *ml); /* those that wait may work */
void rt_push_halt(struct push_sender *s); /* nothing leaves any more */
void rt_push_free(struct push_sender *s);

#endif
