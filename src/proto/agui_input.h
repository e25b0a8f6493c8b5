/* agui_input.h - RunAgentInput: what an AG-UI client sends to have an agent run.
 *
 * Liberal as the protocol asks a server to be: null is absent, unknown members and
 * unusable parts of content are passed over. What would change the meaning of the run
 * and is not supported is refused by name. */
#ifndef UAR_PROTO_AGUI_INPUT_H
#define UAR_PROTO_AGUI_INPUT_H

#include "event/client.h"
#include "json/jw.h"

struct uar_agui_input {
	uar_str thread_id, run_id; /* or empty */
	bool old_peer;		   /* names no protocolVersion */
	uar_str message;	   /* the text of the last message of the user */
	uar_str history;	   /* all messages up to it, as in struct uar_dialect_options */
	uar_str state;		   /* JSON, or empty */
	uar_str agent_id;	   /* forwardedProps.agent_id, or empty */
	uar_str catalog;	   /* of A2UI components, that the client says it has; or empty */
	uar_str client;		   /* JSON for the input UAR_CLIENT_INPUT, or empty */
	/* Messages of tools behind the last one of the assistant that calls some, in order. */
	const struct uar_client_result *results;
	bool asks_after;	       /* a message of the user follows them */
	const struct uar_json *resume; /* answers to interrupts: a list with some, or NULL */
	const struct uar_json *inputs; /* forwardedProps.inputs: further inputs, or NULL */
};

/* Where the last message of a client is the user's: what it follows. */
enum uar_agui_last {
	UAR_AGUI_NOT_USER,   /* it is somebody else's */
	UAR_AGUI_AFTER_CALL, /* it follows the message with that tool call: it is a new one */
	UAR_AGUI_ALONE,	     /* the client does not have the call */
};
enum uar_agui_last uar_agui_last_message(const struct uar_json *body, uar_str call_id);

/* Is it a RunAgentInput at all? */
bool uar_agui_is_input(const struct uar_json *body);
/* Strings are of the tree or of `arena`. */
UAR_MUST_CHECK uar_err uar_agui_input_read(const struct uar_json *body, struct uar_arena *arena,
					   struct uar_agui_input *out, struct uar_error *error);

#endif
