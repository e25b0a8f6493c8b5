/* ticket.h - the id of an upload says all that was agreed about it. Pure.
 *
 * Nothing is kept for it: it outlives a restart, one that was not made with this key for
 * this owner is unknown, and one that is never used leaves nothing behind. Whoever changes
 * the token of the server makes those that were given out worthless. */
#ifndef UAR_GATE_TICKET_H
#define UAR_GATE_TICKET_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/sha256.h"
#include "event/record.h"

enum { GATE_BLOB_ID = 24 };
#define GATE_TICKET_ANY ((uint64_t)0x3fffffffffff)
struct gate_ticket {
	uar_str run_id; /* of a ticket that was read: in the id */
	char blob_id[GATE_BLOB_ID + 1];
	uint64_t size;			  /* announced; GATE_TICKET_ANY: not */
	char sha256[UAR_SHA256_TEXT + 1]; /* announced; empty: not */
};
struct gate_ticket_key {
	uar_str secret;
	const struct uar_owner *owner;
};

UAR_MUST_CHECK uar_err gate_ticket_write(struct gate_ticket_key key, const struct gate_ticket *t,
					 struct uar_buf *out);
/* UAR_ENOTFOUND: it was not written with this key. */
UAR_MUST_CHECK uar_err gate_ticket_read(struct gate_ticket_key key, struct uar_arena *a, uar_str id,
					struct gate_ticket *out);
bool gate_is_sha256(uar_str s); /* 64 lower-case hex digits */

#endif
