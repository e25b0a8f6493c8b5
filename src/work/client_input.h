/* client_input.h - what the client of a run added to its message: event/client.h. */
#ifndef UAR_WORK_CLIENT_INPUT_H
#define UAR_WORK_CLIENT_INPUT_H

#include "json/json.h"
#include "work/prompt.h"
#include "work/work_int.h"

/* The inputs of a run besides its message (JSON text, or empty); NULL: there are none. What
 * clients add is their member UAR_CLIENT_INPUT. */
const struct uar_json *rt_inputs(uar_str inputs, struct uar_arena *arena);
/* Adds the messages of its member `key` ("before", "after"); texts stay in the arena. */
void rt_client_messages(const struct uar_json *client, const char *key, struct prompt *out);
/* Can its member `attachments` be told to a model: images and files with a media type, and either
 * bytes in base64, an http(s) address or an upload? UAR_EINVALID with the place below `root`. */
UAR_MUST_CHECK uar_err rt_attachments_check(const struct uar_json *inputs, const char *root,
					    struct uar_error *error);
/* Images and files that its member `attachments` names become parts of the last message. */
void rt_prompt_attach(const struct uar_json *inputs, struct prompt *out);
/* A registry of the client's tools above those of the run's agent. *out stays as it is: it has
 * none. */
UAR_MUST_CHECK uar_err rt_client_tools(const struct live_run *r, const struct uar_json *client,
				       struct uar_tools **out);
/* Which tool the first call of the model has to ask for. */
struct uar_model_tool_choice rt_client_choice(const struct uar_json *client);

#endif
