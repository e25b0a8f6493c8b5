/* a2a.h - messages between agents: read from JSON, written again, and found in events.
 *
 * The message of the three own routes has seven members; docs/a2a.schema.json says the
 * same as the reader. It knows nothing of routes and keeps nothing: whoever speaks
 * another dialect about the same messages fills the same struct. */
#ifndef UAR_PROTO_A2A_H
#define UAR_PROTO_A2A_H

#include "base/sha256.h"
#include "event/event.h"

/* Borrows from the tree it was read from. */
struct uar_a2a_message {
	uar_str message_id, from_agent, to_agent, conversation_id;
	uar_str agent, peer; /* to_agent is "agent@peer", or an agent here: no peer */
	const struct uar_json *payload;
	uar_str type;			       /* of the payload */
	const struct uar_json *tools, *models; /* arrays of strings; NULL: none */
	const struct uar_json *attachments;    /* array of objects; NULL: none */
	uar_str cancel_run, cancel_reason;     /* payload of type "cancel"; else empty */
};
/* UAR_EINVALID, UAR_ETOOBIG; error->where: a pointer into the message. */
UAR_MUST_CHECK uar_err uar_a2a_read(const struct uar_json *j, struct uar_a2a_message *out,
				    struct uar_error *error);
/* All members in their order; what was not there is written as its default or left out. */
void uar_a2a_write(struct uar_jw *w, const char *key, const struct uar_a2a_message *m);
/* What two messages of one id must have in common: values, not how they are written. */
UAR_MUST_CHECK uar_err uar_a2a_fingerprint(const struct uar_a2a_message *m,
					   char out[UAR_SHA256_TEXT + 1]);
/* The beginning of what the message says, for people. */
UAR_MUST_CHECK uar_err uar_a2a_preview(const struct uar_a2a_message *m, struct uar_buf *out);

/* A message as an event has it. Borrows from the event and the arena. */
struct uar_a2a_stored {
	uar_str message; /* JSON text; empty when it is in the blob */
	uar_str blob;	 /* sha256, or empty */
};
/* UAR_ESKIP: the event is no message that an agent has received. */
UAR_MUST_CHECK uar_err uar_a2a_stored_read(const struct uar_event *ev, struct uar_arena *arena,
					   struct uar_a2a_stored *out);

#endif
