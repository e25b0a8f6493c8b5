/* openai.h - the OpenAI API: requests read, runs shown as chat completions and responses.
 *
 * A chat completion or a response is one run of UAR. Its id holds the id of the run:
 * "chatcmpl-RUN", "resp_RUN". Tools that UAR executes are shown as calls of an MCP server
 * named "uar" (responses) or not at all (chat completions). */
#ifndef UAR_PROTO_OPENAI_H
#define UAR_PROTO_OPENAI_H

#include "event/client.h"
#include "proto/dialect.h"

#define UAR_OPENAI_CHAT_ID     "chatcmpl-"
#define UAR_OPENAI_RESPONSE_ID "resp_"

extern const struct uar_dialect uar_openai_chat;
extern const struct uar_dialect uar_openai_responses;

/* What a request asks for. Strings are of the tree or of the arena. */
struct uar_openai_input {
	uar_str model;		 /* the agent */
	uar_str message;	 /* the text of the last message of the user */
	uar_str client;		 /* JSON for the input UAR_CLIENT_INPUT, or empty */
	uar_str conversation_id; /* or empty */
	uar_str previous_run_id; /* of previous_response_id, or empty */
	uar_str context;	 /* JSON object of `user`, `metadata`, ..., or empty */
	bool stream, usage;	 /* usage: a last chunk tells it */
	/* What the client brings for calls of its tools, behind the last message that has some. */
	const struct uar_client_result *results;
	bool asks_after; /* a message of the user follows them */
	bool background; /* answered before the run ends */
};

UAR_MUST_CHECK uar_err uar_openai_chat_read(const struct uar_json *body, struct uar_arena *arena,
					    struct uar_openai_input *out, struct uar_error *error);
UAR_MUST_CHECK uar_err uar_openai_responses_read(const struct uar_json *body,
						 struct uar_arena *arena,
						 struct uar_openai_input *out,
						 struct uar_error *error);

/* True: the event begins a run whose request said `store: false`. Its response is shown to the
 * one who asked for it, and not again. */
bool uar_openai_hides(const struct uar_event *ev, struct uar_arena *scratch);

/* {"error":{...}} as its clients read it. */
void uar_openai_error(struct uar_buf *out, int status, const char *code,
		      const struct uar_error *error);

#endif
