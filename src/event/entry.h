/* entry.h - the port to workers outside the process: what a run asks of one, what
 * it tells back. The runtime calls it, a plugin host is behind it.
 *
 * Callbacks fire from the loop, never inside the call that asked; `done` once,
 * after which the call is gone. */
#ifndef UAR_EVENT_ENTRY_H
#define UAR_EVENT_ENTRY_H

#include "base/list.h"
#include "json/json.h"

/* How far a worker has come. Absent members: empty strings, negative numbers. */
struct uar_progress {
	double value, eta_seconds;
	int64_t step, step_total;
	int64_t coalesced; /* earlier updates that this one stands for */
	uar_str stage, message;
	uar_str metrics; /* JSON object */
};

/* An export item. Its id is given by whoever sends it to the engine, so that it
 * stays the same when the append is tried again. */
struct uar_export {
	uar_str id;
	uar_str type;	 /* text, url, binary_url, binary, json */
	uar_str role;	 /* "result": what the entry returned; else empty */
	uar_str content; /* the text; binary as base64; empty when it is in the blob */
	uar_str blob;	 /* sha256 of the stored bytes, or empty */
	uar_str upload;	 /* binary_url: the upload that holds the bytes, or empty */
	uar_str blob_id; /* binary_url: the upload over HTTP that it was, or empty */
	uar_str sha256;	 /* of the bytes that count: binary before base64 */
	int64_t bytes;	 /* with `upload`: what the two must be, empty and -1: not said */
	uar_str label, category, description, mime;
	uar_str metadata; /* JSON object, or empty */
};

/* A piece of an upload: what is too large for one message. Offset 0 begins anew. */
struct uar_piece {
	uar_str name; /* of the upload; the worker's choice */
	int64_t offset;
	uar_str bytes;
};

struct uar_entries;    /* the host */
struct uar_entry_call; /* one run at its worker; the host's */

/* What is declared about an entry. Strings live until the loop's next turn. */
struct uar_entry_info {
	uar_str plugin_id, entry_id, version, title, description;
	uar_str args_schema, result_schema; /* JSON text, or empty */
	int64_t timeout_us;		    /* 0: the runtime's default */
	bool restart_fails;		    /* cut off by a restart, a run is lost, not repeated */
	uint32_t concurrency;		    /* runs at once, over all processes */
};

/* A place at a worker, in the order in which they were asked for. Embedded in
 * its owner; zeroed before first use, but for `ready`. */
struct uar_entry_slot {
	struct uar_list node;
	void *plugin; /* the host's; NULL: not asked */
	bool granted;
	/* No worker is ready for it: the place is used by `start` before the run has begun, and
	 * the run begins when the call is ready. */
	bool cold;
	void (*ready)(struct uar_entry_slot *s); /* a place that was waited for is there */
};

struct uar_entry_request {
	uar_str run_id, root_run_id, parent_run_id, task_id, trace_id; /* may be empty but run_id */
	uar_str entry_id;
	uar_str args; /* JSON object */
	int64_t attempt;
	int64_t timeout_us; /* what is left of it; 0: none */
	bool restarted; /* it was at work when the server stopped: it may have been begun before */
};

enum uar_entry_how {
	UAR_ENTRY_HOW_FINISHED, /* with a result or without */
	UAR_ENTRY_HOW_BROKE,	/* with a failure */
	UAR_ENTRY_HOW_STOPPED,	/* it gave in to a cancel, or was killed for not doing so */
};
struct uar_entry_end {
	enum uar_entry_how how;
	uar_str result;		     /* JSON, or empty: none */
	const struct uar_json *refs; /* array of strings that name the result; NULL: not said */
	uar_str code, message;	     /* of a failure */
	uar_str details;	     /* JSON object, or empty */
	bool retryable;
};

struct uar_entry_events {
	void (*progress)(void *ctx, const struct uar_progress *p);
	/* `raw`: the bytes of a binary item. ticket 0: nobody waits for the answer. */
	void (*exported)(void *ctx, const struct uar_export *x, uar_str raw, uint64_t ticket);
	void (*done)(void *ctx, const struct uar_entry_end *end);
	void *ctx;
	/* Answered without an id. */
	void (*uploaded)(void *ctx, const struct uar_piece *p, uint64_t ticket);
	/* A worker is ready for the run, which it is not told of before `begin`. NULL: at once. */
	void (*ready)(void *ctx);
};

/* What became of the export or the piece with that ticket. */
struct uar_entry_answer {
	uint64_t ticket; /* 0: nobody waits for it */
	uar_err err;	 /* UAR_OK: it is durable, or taken */
	uar_str id;	 /* of the item; empty: it is a piece, or was refused */
	uar_str why;	 /* it was refused; empty: `err` says all */
};

struct uar_entries_ops {
	uint32_t abi, size;
	/* UAR_ENOTFOUND, and why. */
	uar_err (*find)(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
			struct uar_entry_info *out, struct uar_error *error);
	/* UAR_ESCHEMA with the pointer below "/args" in error->where. */
	uar_err (*check)(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
			 const struct uar_json *args, struct uar_error *error);
	void (*each)(struct uar_entries *h,
		     void (*fn)(void *ctx, const struct uar_entry_info *info), void *ctx);
	/* UAR_OK: granted. UAR_EBUSY: `ready` follows. Other errors: there is no place. */
	uar_err (*ask)(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
		       struct uar_entry_slot *slot);
	void (*leave)(struct uar_entries *h, struct uar_entry_slot *slot); /* any slot is fine */
	/* Takes the granted slot on success. */
	uar_err (*start)(struct uar_entries *h, struct uar_entry_slot *slot,
			 const struct uar_entry_request *r, const struct uar_entry_events *events,
			 struct uar_entry_call **out, struct uar_error *error);
	/* Asks the worker to stop; it is ended after a grace. `done` follows. */
	void (*cancel)(struct uar_entry_call *c, uar_str reason);
	/* The same, but nobody listens any more: the call is gone for the caller. */
	void (*stop)(struct uar_entry_call *c, uar_str reason);
	void (*answer)(struct uar_entry_call *c, const struct uar_entry_answer *a);
	/* Holds the worker back; calls balance. */
	void (*pause)(struct uar_entry_call *c, bool paused);
	/* After `ready`: the worker may begin. Anything but a call that waits is passed over. */
	void (*begin)(struct uar_entry_call *c);
};

struct uar_entries {
	const struct uar_entries_ops *ops;
};

#endif
