/* client.h - what a client adds to a run besides its message: earlier messages, tools.
 *
 * Travels as one member of the run's inputs, which the log keeps with them:
 *   {"before": [MESSAGE...], "after": [MESSAGE...], "tools": [TOOL...]}
 *   MESSAGE  {"role": "system"|"user"|"assistant"|"tool", "text", "calls": [{"id", "name",
 *            "arguments"}], "call_id"}: those before and behind the message of the user
 *   TOOL     {"name", "description", "parameters"}: the client executes it */
#ifndef UAR_EVENT_CLIENT_H
#define UAR_EVENT_CLIENT_H

#define UAR_CLIENT_INPUT "$client"

#endif
