/* agui.h - a run as AG-UI events, protocol 1.0 and the older 0.x.
 *
 * One run of UAR is one or more runs of AG-UI: where the run rests for an answer the
 * AG-UI run finishes with interrupts, and another one begins when it goes on. Each
 * begins with RUN_STARTED and ends with exactly one RUN_FINISHED or RUN_ERROR. The
 * data of a frame is a strict AG-UI event; its `event:` line is the short name that
 * clients of the plain chunks know. */
#ifndef UAR_PROTO_AGUI_H
#define UAR_PROTO_AGUI_H

#include "proto/dialect.h"

extern const struct uar_dialect uar_agui;

/* Writes the messages of a run that was folded with that dialect, a comma between two; `out` may
 * have some already. */
UAR_MUST_CHECK uar_err uar_agui_write_messages(void *state, struct uar_buf *out);
/* Writes frames for a thread that has no run to show: an AG-UI run with these messages. */
UAR_MUST_CHECK uar_err uar_agui_write_rest(uar_str thread_id, uar_str run_name, uar_str history,
					   struct uar_buf *out);

/* The one frame of a run that is refused: a RUN_ERROR with the code and the text of `error`. */
UAR_MUST_CHECK uar_err uar_agui_refuse(const struct uar_error *error, struct uar_frames *out);

/* The protobuf binding. */
#define UAR_AGUI_PROTO "application/vnd.ag-ui.event+proto"
/* One event, without its length. UAR_ESKIP: the binding has no such event. */
UAR_MUST_CHECK uar_err uar_agui_proto_encode(const struct uar_json *event, struct uar_buf *out);
/* Frames of the dialect in that binding: each is a length of four bytes, then the event. */
UAR_MUST_CHECK uar_err uar_agui_proto_frames(uar_str frames, struct uar_arena *scratch,
					     struct uar_buf *out);

/* The same run in plain chunks: `event:` a short name, data as small as can be. One
 * frame for an event, nothing is remembered. UAR_ESKIP: the event shows nothing. */
UAR_MUST_CHECK uar_err uar_chunk_encode(const struct uar_event *ev, uint64_t incarnation,
					struct uar_arena *scratch, struct uar_buf *out);

#endif
