/* artifacts.h - blocks of an answer on their way to being artifacts; for work/ alone. */
#ifndef UAR_WORK_ARTIFACTS_H
#define UAR_WORK_ARTIFACTS_H

#include "agent/blocks.h"
#include "work/work_int.h"

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
