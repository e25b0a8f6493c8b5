/* artifacts.h - blocks of an answer on their way to being artifacts; for runtime/ alone. */
#ifndef UAR_RUNTIME_ARTIFACTS_H
#define UAR_RUNTIME_ARTIFACTS_H

#include "agent/blocks.h"
#include "runtime/runtime_int.h"

struct keeping;
/* `json` is what UAR_CMD_MODEL_DONE wants to hear of them; a block that could not be kept
 * is left out: the answer has it. */
typedef void kept_fn(void *ctx, uar_str json);
/* Takes the blocks over and leaves none behind. Long ones become blobs. `done` fires later,
 * unless it is cancelled first. */
UAR_MUST_CHECK uar_err rt_artifacts_keep(struct live_run *r, struct uar_blocks *blocks,
					 kept_fn *done, void *ctx, struct keeping **out);
void rt_artifacts_cancel(struct keeping *k); /* NULL is fine */

#endif
