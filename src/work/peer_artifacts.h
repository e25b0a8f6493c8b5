/* peer_artifacts.h - what a peer has delivered, on its way to being artifacts of a run. */
#ifndef UAR_WORK_PEER_ARTIFACTS_H
#define UAR_WORK_PEER_ARTIFACTS_H

#include "event/remote.h"
#include "tool/secret.h"
#include "work/work_int.h"

struct peer_keeping;
/* json: an array as UAR_CMD_PEER wants it. */
typedef void peer_kept_fn(void *ctx, uar_err e, uar_str json);
struct peer_delivery {
	const struct uar_remote_view *view;
	const struct uar_secrets_used *secrets; /* hidden in all of it that is text */
};
/* Copies the parts of the view. Long ones become blobs. `done` fires later, unless it is cancelled
 * first. */
UAR_MUST_CHECK uar_err rt_peer_artifacts_keep(struct live_run *r, const struct peer_delivery *d,
					      peer_kept_fn *done, void *ctx,
					      struct peer_keeping **out);
void rt_peer_artifacts_cancel(struct peer_keeping *k); /* NULL is fine */

#endif
