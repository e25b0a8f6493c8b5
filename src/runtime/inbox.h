/* inbox.h - messages for agents, kept in the log until somebody reads them.
 *
 * An inbox is a session below its owner, named after the agent; a message is an event of
 * it. There is nothing beside the log: a stream of the session is the inbox. */
#ifndef UAR_RUNTIME_INBOX_H
#define UAR_RUNTIME_INBOX_H

#include "runtime/runtime.h"

/* A message for an agent of this runtime. It belongs to the caller and stays in place,
 * with its strings, until `done`, by when it is durable or refused. */
struct uar_mail {
	struct uar_owner owner;
	uar_str agent_id; /* the recipient; at most UAR_LIMIT_A2A_AGENT bytes */
	uar_str message_id;
	uar_str fingerprint; /* of what it says: the same id again must mean the same */
	uar_str content;     /* the message, a JSON object */
	uar_str preview, native_ids;
	/* Set: the message asks to cancel this run, if it is one of the agent and of the
	 * owner. That is recorded before the message is. */
	uar_str run_id, reason;
	void (*done)(struct uar_mail *m);
	void *ctx;
	/* out */
	uar_err err; /* EKEYREUSED: another message has the id */
	struct uar_error error;
	bool existed;	   /* it was there before; nothing was done */
	uint64_t sequence; /* its place in the inbox */
	enum uar_message_effect effect;
	struct uar_list node; /* the runtime's */
};
UAR_MUST_CHECK uar_err uar_runtime_deliver(struct uar_runtime *rt, struct uar_mail *m);

/* The session that is the inbox of an agent. UAR_EINVALID: no agent has that name. */
UAR_MUST_CHECK uar_err uar_inbox_session(uar_str agent_id, char out[UAR_LIMIT_ID_BYTES + 1]);

#endif
