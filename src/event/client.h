/* client.h - what a client adds to a run besides its message: earlier messages, tools.
 *
 * Travels as one member of the run's inputs, which the log keeps with them:
 *   {"before": [MESSAGE...], "after": [MESSAGE...], "tools": [TOOL...], "choice",
 *    "attachments": [ATTACHMENT...], "state": what the client shares with the run}
 *   MESSAGE  {"role": "system"|"user"|"assistant"|"tool", "text", "calls": [{"id", "name",
 *            "arguments"}], "call_id", "attachments"}: those before and behind the message of the
 *            user, whose own attachments stand beside them
 *   ATTACHMENT {"type": "image"|"file", "data" (base64) or "url", "media_type", "name"}
 *   TOOL     {"name", "description", "parameters"}: the client executes it
 *   choice   the tool that the model has to ask for first; "*": any; absent: as it likes
 *
 * The id of a call of such a tool names its run: "<run_id>.<12 hexadecimal digits>". */
#ifndef UAR_EVENT_CLIENT_H
#define UAR_EVENT_CLIENT_H

#include "json/json.h"

#define UAR_CLIENT_INPUT "$client"

/* What a client brings as the result of a call. */
struct uar_client_result {
	uar_str call_id;
	const struct uar_json *value; /* what came of it; NULL: nothing */
	uar_str error;		      /* why it failed, or empty */
	struct uar_client_result *next;
};
/* The run of a call that clients execute. False: it is no id of such a call. */
bool uar_client_call_run(uar_str call_id, uar_str *out_run_id);

#endif
