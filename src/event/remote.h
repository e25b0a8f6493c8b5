/* remote.h - the port to agents of other runtimes: the operations of a caller and their events.
 * work/ calls it, peer/ implements it for A2A.
 *
 * One operation at a time. Callbacks fire from the loop, never inside the call that asked; `end`
 * fires once for each operation, and never after `leave`. Strings of callbacks are borrowed. */
#ifndef UAR_EVENT_REMOTE_H
#define UAR_EVENT_REMOTE_H

#include "json/json.h"

enum uar_remote_state {
	UAR_REMOTE_UNKNOWN,
	UAR_REMOTE_SUBMITTED,
	UAR_REMOTE_WORKING,
	UAR_REMOTE_INPUT_REQUIRED,
	UAR_REMOTE_AUTH_REQUIRED,
	UAR_REMOTE_COMPLETED,
	UAR_REMOTE_FAILED,
	UAR_REMOTE_CANCELED,
	UAR_REMOTE_REJECTED,
	UAR_REMOTE_STATE_COUNT
};
static inline bool uar_remote_over(enum uar_remote_state s)
{
	return s >= UAR_REMOTE_COMPLETED;
}
static inline bool uar_remote_asks(enum uar_remote_state s)
{
	return s == UAR_REMOTE_INPUT_REQUIRED || s == UAR_REMOTE_AUTH_REQUIRED;
}

enum uar_remote_part_kind { UAR_REMOTE_TEXT, UAR_REMOTE_DATA, UAR_REMOTE_FILE, UAR_REMOTE_LINK };
/* A part of what an artifact holds; all text of one artifact is one part. */
struct uar_remote_part {
	enum uar_remote_part_kind kind;
	uar_str artifact_id, title, mime; /* title, mime: or empty */
	uar_str content;		  /* text, JSON, bytes, or the address */
};

/* The task as far as it is known. */
struct uar_remote_view {
	uar_str task_id, context_id; /* task_id empty: it answered without a task */
	enum uar_remote_state state;
	uar_str native;	    /* the peer's word for it */
	uar_str text;	    /* of the answer so far; */
	unsigned text_made; /* grows when that is not the earlier text with more behind it */
	uar_str said;	    /* what it says about its status; or empty */
	const struct uar_json *data; /* the first data part of that; NULL: none */
	bool has_history, knows;     /* GET, FIND: it remembers messages; ours is among them */
	/* Valid inside the callback, of a task that is over. */
	const struct uar_remote_part *parts;
	size_t part_count;
};

/* What its card says, as far as it concerns a caller. */
struct uar_remote_card {
	uar_str card_url, url;		 /* url: where its operations are */
	const char *version;		 /* "1.0", "0.3" */
	bool streams, lists, idempotent; /* idempotent: a message that comes twice counts once */
};

enum uar_remote_how {
	UAR_REMOTE_DONE,	/* the operation has ended as it should */
	UAR_REMOTE_CUT,		/* the connection ended while more was expected */
	UAR_REMOTE_QUIET,	/* it was left: the stream brought no event for too long */
	UAR_REMOTE_UNREACHABLE, /* the outcome is not known; it may be tried again */
	UAR_REMOTE_NOT_THERE,	/* the peer has no such task */
	UAR_REMOTE_UNSUPPORTED, /* the peer cannot do that */
	UAR_REMOTE_REFUSED,	/* the peer said no */
	UAR_REMOTE_BROKEN,	/* the answer violates the protocol, or a limit */
	UAR_REMOTE_NO_MEMORY
};
struct uar_remote_end {
	enum uar_remote_how how;
	int64_t retry_after_us; /* 0: it said nothing */
	const char *reason;	/* for people */
};

struct uar_remote_events {
	void (*opened)(void *ctx, const struct uar_remote_card *card);
	void (*update)(void *ctx, const struct uar_remote_view *view);
	void (*end)(void *ctx, const struct uar_remote_end *end);
	void *ctx;
};

struct uar_remote_message {
	uar_str message_id, text;    /* text: or empty */
	uar_str data;		     /* JSON value, or empty */
	uar_str task_id, context_id; /* or empty */
};

struct uar_remotes; /* the host */
struct uar_remote;  /* one agent, as one run sees it */

struct uar_remotes_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_remotes *h); /* everything under way ends without callbacks */
	/* Reads the card: `opened`, or `end`. hosts: JSON array of hosts besides that of the card
	 * that the card may name; NULL: none. */
	uar_err (*open)(struct uar_remotes *h, uar_str card_url, const struct uar_json *hosts,
			const struct uar_remote_events *events, struct uar_remote **out,
			struct uar_error *error);
	/* "Name: value" lines for all operations, NULL-terminated; copied. */
	uar_err (*set_headers)(struct uar_remote *r, const char *const *headers);
	/* Each of these: `update` any number of times, then `end`. */
	uar_err (*send)(struct uar_remote *r, const struct uar_remote_message *m, bool stream);
	uar_err (*get)(struct uar_remote *r, uar_str task_id, uar_str message_id);
	/* Looks for the task that a message has made: `update` when it is there, with `knows`; one
	 * without a task_id and has_history when the peer remembers and has none. */
	uar_err (*find)(struct uar_remote *r, uar_str message_id, int64_t since_us);
	uar_err (*follow)(struct uar_remote *r, uar_str task_id);
	uar_err (*cancel)(struct uar_remote *r, uar_str task_id);
	void (*pause)(struct uar_remote *r, bool paused);
	void (*leave)(struct uar_remote *r); /* the operation under way; none is fine */
	void (*close)(struct uar_remote *r);
	/* The same, and asks the peer once to cancel the task. The answer is ignored. */
	void (*abandon)(struct uar_remote *r, uar_str task_id);
};
struct uar_remotes {
	const struct uar_remotes_ops *ops;
};

#endif
