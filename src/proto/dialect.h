/* dialect.h - how a stream shows the events of a run: 0 to n frames for each.
 *
 * A dialect is a pure function of the events of a run, from its first one on. What it
 * needs to remember between two events is a state of its own for each reader. */
#ifndef UAR_PROTO_DIALECT_H
#define UAR_PROTO_DIALECT_H

#include "event/event.h"

/* Server-Sent Events on their way into a buffer. Frame k of an event has the id
 * "<run_sequence>.<k>", from 1, and after the first incarnation "<incarnation>-<run_sequence>.<k>";
 * frames that belong to no event have none. */
struct uar_frames {
	struct uar_buf *out;
	uint64_t incarnation;  /* 0 or 1: the first */
	uint64_t run_sequence; /* 0: of no event */
	uint32_t count;	       /* that were written */
	bool closed;	       /* the last one ends what one request may show */
};

/* Begins a frame; one JSON value and uar_frame_close follow. NULL: its event has no name. */
void uar_frame_open(struct uar_frames *f, const char *event);
UAR_MUST_CHECK uar_err uar_frame_close(struct uar_frames *f, struct uar_jw *w);
/* Takes the next frame from what was written and gives its JSON; false: that was all. */
bool uar_frame_next(uar_str *rest, uar_str *out_json);

/* Where a reader is: it has all frames of all events before `run_sequence`, and `k`
 * of that one. */
struct uar_cursor {
	uint64_t run_sequence;
	uint32_t k;
};
/* Reads "<run_sequence>.<k>", or "<run_sequence>" for one that has all of its frames. */
UAR_MUST_CHECK uar_err uar_cursor_read(uar_str text, struct uar_cursor *out);

struct uar_dialect_options {
	bool old_peer;	 /* a client of before version 1.0 of the protocol */
	uar_str history; /* messages that the reader has: JSON objects, a comma between two */
	bool earlier;	 /* AG-UI: the history is of runs before this one, whose message it lacks */
	uar_str run_name;    /* AG-UI: what the reader calls its run; empty: a name of ours */
	uar_str state;	     /* JSON: what the reader calls its state; empty: it has none */
	uar_str model;	     /* OpenAI: what the reader calls the agent */
	uar_str previous_id; /* OpenAI: the response that this one follows; or empty */
	int64_t skip;	     /* OpenAI: events of the response that the reader has */
	bool usage;	     /* OpenAI: a last chunk tells what was used */
	int64_t part;	     /* OpenAI: responses of the run before the one that is meant */
	/* OpenAI, chat: up to this event of the run the text is told in one piece, without what was
	 * taken back: a chunk cannot be. 0: piece by piece from the first one on. */
	uint64_t fold_until;
	uar_str catalog; /* A2UI: the id of its catalog of components; empty: the usual one */
	uar_str rpc_id;	 /* A2A: JSON text of the request's id; empty: the HTTP+JSON binding */
	int64_t history_length; /* A2A: messages that a task is shown with; -1: all */
	/* A2A: for a receiver of notifications. No pieces of text: what the agent has said is one
	 * artifact each time the task rests; one of before 1.0 is told the whole task instead. */
	bool notices;
	bool without_artifacts; /* A2A: a task is shown without them */
	bool wrapped;		/* A2A: an answer that may be a message says that it is a task */
};

struct uar_dialect {
	const char *name;
	size_t state_size;
	/* Options are borrowed for as long as the state lives. */
	uar_err (*begin)(void *state, const struct uar_dialect_options *o);
	/* `scratch` may be reset afterwards. */
	uar_err (*encode)(void *state, const struct uar_event *ev, struct uar_arena *scratch,
			  struct uar_frames *out);
	/* What somebody has to be told who joins after the events so far. UAR_ETOOBIG: they
	 * are too many; such a reader has to begin with the first one. */
	uar_err (*join)(void *state, struct uar_frames *out);
	/* The last frames of a stream that ends before its run does. */
	uar_err (*leave)(void *state, struct uar_frames *out);
	/* The whole run as one JSON value, for a reader that wants no stream; out_status is its
	 * HTTP status. NULL: the dialect has none. */
	uar_err (*answer)(void *state, struct uar_buf *out, int *out_status);
	void (*end)(void *state);
};

#endif
