/* outbox.h - what leaves for other runtimes, as the files of runtime/ see it. */
#ifndef UAR_RUNTIME_OUTBOX_H
#define UAR_RUNTIME_OUTBOX_H

#include "runtime/inbox.h"
#include "runtime/runtime_int.h"

bool rt_peer_known(const struct uar_runtime *rt, uar_str peer);
/* The outbox for that peer has another message. */
void rt_outbox_kick(struct uar_runtime *rt, const struct uar_owner *owner, uar_str peer);
/* Nothing leaves any more; what is on its way may have arrived or not. */
void rt_outboxes_stop(struct uar_runtime *rt);
void rt_outboxes_fini(struct uar_runtime *rt);

#endif
