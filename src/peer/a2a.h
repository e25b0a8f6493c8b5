/* a2a.h - agents of other runtimes over the public A2A protocol, versions 1.0 and 0.3: behind the
 * port of event/remote.h. Every address is judged by the client's guard. */
#ifndef UAR_PEER_A2A_H
#define UAR_PEER_A2A_H

#include "event/remote.h"
#include "loop/client.h"

/* quiet_us: a stream without an event for so long is left; its bytes and comments do not count. */
UAR_MUST_CHECK uar_err uar_remotes_create(struct uar_client *client, int64_t quiet_us,
					  struct uar_remotes **out);
void uar_remotes_destroy(struct uar_remotes *h); /* NULL is fine */

#endif
