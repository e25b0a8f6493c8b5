/* push.h - notifications leave over HTTP, to addresses that the guard lets pass. */
#ifndef UAR_PEER_PUSH_H
#define UAR_PEER_PUSH_H

#include "event/push.h"
#include "loop/client.h"

/* The client outlives them. */
UAR_MUST_CHECK uar_err uar_pushes_http_create(struct uar_client *client, struct uar_pushes **out);
void uar_pushes_destroy(struct uar_pushes *p); /* NULL is fine */

#endif
