/* stream.h - a cursor over the events of a run or a session, from any point on.
 *
 * First the store after the cursor, then the bus, joined by sequence number: no
 * gap, no duplicate. Knows no protocol and no socket. A sink that is full is
 * left alone until it says it has room, and is then fed from the store. */
#ifndef UAR_READ_STREAM_H
#define UAR_READ_STREAM_H

#include "read/read.h"

struct uar_stream;

struct uar_stream_sink {
	/* The run or session exists and the cursor is known; events follow. Once,
	 * first. An error ends the stream with it; UAR_ESKIP: nobody wants them, it
	 * ends with UAR_OK. */
	uar_err (*opened)(void *ctx);
	/* Takes all events or none. UAR_EBUSY: none were taken, uar_stream_resume
	 * follows. Any other error ends the stream with it. */
	uar_err (*events)(void *ctx, const struct uar_event *events, size_t n);
	/* Nothing more comes and the stream is gone. UAR_OK: the run is over, and what it has
	 * behind the cursor, if anything, was delivered. */
	void (*end)(void *ctx, uar_err why, const struct uar_error *error);
	void *ctx;
};

struct uar_stream_options {
	struct uar_owner owner; /* copied */
	uar_str run_id;		/* either */
	uar_str session_id;	/* or */
	uint64_t after;		/* run_sequence or sequence of the last event seen */
	bool may_be_new;	/* a session that is not there yet is waited for */
	bool stored;		/* it ends with UAR_OK when all that is stored was delivered */
	struct uar_stream_sink sink;
};
UAR_MUST_CHECK uar_err uar_stream_open(struct uar_reader *rd, const struct uar_stream_options *o,
				       struct uar_stream **out);
void uar_stream_resume(struct uar_stream *s);
void uar_stream_close(struct uar_stream *s); /* no `end` follows; NULL is fine */

#endif
