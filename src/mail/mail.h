/* mail.h - messages for agents, kept in the log until somebody reads them.
 *
 * An inbox is a session below its owner, named after the agent; a message is an event of
 * it. There is nothing beside the log: a stream of the session is the inbox. What is for
 * another runtime goes to the outbox for it, a session likewise, and from there to the
 * peer, again and again until that has answered. */
#ifndef UAR_MAIL_MAIL_H
#define UAR_MAIL_MAIL_H

#include "base/list.h"
#include "engine/engine.h"
#include "event/peer.h"

/* All inboxes and outboxes. Attached to the engine and destroyed with it. */
struct uar_mailer;
/* peers: other runtimes; pushes: receivers of notifications (mail/push.h); NULL: none */
struct uar_pushes;
UAR_MUST_CHECK uar_err uar_mailer_create(struct uar_runtime *rt, struct uar_peers *peers,
					 struct uar_pushes *pushes, struct uar_mailer **out);

/* A message for an agent. It belongs to the caller and stays in place, with its strings,
 * until `done`, by when it is durable or refused. */
struct uar_mail {
	struct uar_owner owner;
	uar_str agent_id; /* the recipient; at most UAR_LIMIT_A2A_AGENT bytes */
	uar_str peer;	  /* where it is; empty: here */
	/* Set: no message for an agent but one of a protocol's session of that id; agent_id and
	 * peer are empty, and message_id need not be the only one of its name. */
	uar_str channel;
	bool leaves; /* of such a session: this runtime says it */
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
	uint64_t sequence; /* its place in the inbox or outbox */
	enum uar_message_effect effect;
	/* The mailer's own: */
	struct uar_list node;
	bool answer; /* what became of a message that left; `content` is empty */
};
/* UAR_ENOTFOUND: there is no such peer. */
UAR_MUST_CHECK uar_err uar_mailer_deliver(struct uar_mailer *ml, struct uar_mail *m);

/* Messages of this owner that were to leave when the last process ended leave now. */
void uar_mailer_wake_outboxes(struct uar_mailer *ml, const struct uar_owner *owner);

/* What peers call this runtime; empty: nothing. */
uar_str uar_mailer_own_name(const struct uar_mailer *ml);

/* The sequence at which an inbox begins: that of no message. */
enum { UAR_INBOX_BEGIN = 1 };

/* The session that is the inbox of an agent. UAR_EINVALID: no agent has that name. */
UAR_MUST_CHECK uar_err uar_inbox_session(uar_str agent_id, char out[UAR_LIMIT_ID_BYTES + 1]);
/* The one that holds the messages of a protocol's session. */
UAR_MUST_CHECK uar_err uar_channel_session(uar_str channel, char out[UAR_LIMIT_ID_BYTES + 1]);
/* The one that is the outbox for a peer. */
UAR_MUST_CHECK uar_err uar_outbox_session(uar_str peer, char out[UAR_LIMIT_ID_BYTES + 1]);

#endif
