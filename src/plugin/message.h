/* message.h - what a plugin may write: one JSON-RPC message a line. Pure. */
#ifndef UAR_PLUGIN_MESSAGE_H
#define UAR_PLUGIN_MESSAGE_H

#include "base/log.h"
#include "event/entry.h"

enum uar_message_kind {
	UAR_MESSAGE_REPLY, /* to a request of ours */
	UAR_MESSAGE_PROGRESS,
	UAR_MESSAGE_EXPORT,
	UAR_MESSAGE_UPLOAD,
	UAR_MESSAGE_RESULT,
	UAR_MESSAGE_ERROR,
	UAR_MESSAGE_LOG,
};

/* All strings borrow from the line and the arena. */
struct uar_message {
	enum uar_message_kind kind;
	const struct uar_json *id; /* NULL: a notification. Of a reply: never NULL */
	uar_str run_id;		   /* empty for replies, may be for log lines */
	struct uar_progress progress;
	struct uar_export export;
	uar_str raw;		      /* bytes of a binary export */
	struct uar_piece piece;	      /* UPLOAD */
	struct uar_entry_end end;     /* RESULT, ERROR */
	const struct uar_json *value; /* REPLY: the result, NULL for an error; RESULT: the result */
	const struct uar_json *error; /* REPLY: the error object */
	enum uar_log_level level;     /* LOG */
	uar_str text;		      /* LOG; REPLY with an error: its message */
};

/* UAR_ESYNTAX: not a message at all. UAR_EUTF8: its text is not well-formed. UAR_ENOTIMPL: an
 * unknown method. UAR_EINVALID, UAR_ETOOBIG, UAR_ESCHEMA: a message that is wrong; out->id and
 * out->run_id are set as far as they were found. */
UAR_MUST_CHECK uar_err uar_message_read(uar_str line, struct uar_arena *arena,
					struct uar_message *out, struct uar_error *error);

#endif
