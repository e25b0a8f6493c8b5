/* client_input.h - what the client of a run added to its message: event/client.h. */
#ifndef UAR_WORK_CLIENT_INPUT_H
#define UAR_WORK_CLIENT_INPUT_H

#include "json/json.h"
#include "work/prompt.h"

/* The part of a run's inputs (JSON text, or empty) that clients add; NULL: there is none. */
const struct uar_json *rt_client_input(uar_str inputs, struct uar_arena *arena);
/* Adds the messages of its member `key` ("before", "after"); texts stay in the arena. */
void rt_client_messages(const struct uar_json *client, const char *key, struct prompt *out);

#endif
