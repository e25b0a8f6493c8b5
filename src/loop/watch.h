/* watch.h - tells that something in a folder has changed; not what. */
#ifndef UAR_LOOP_WATCH_H
#define UAR_LOOP_WATCH_H

#include "loop/loop.h"

struct uar_dir_watch;
/* `changed` is called from the loop for each thing that is made, written, renamed or removed
 * directly in the folder. What happened before this returns is not told. A folder that is
 * removed tells no more. UAR_EIO: it cannot be watched, or too many are. */
UAR_MUST_CHECK uar_err uar_dir_watch_create(struct uar_loop *l, const char *dir,
					    void (*changed)(void *ctx), void *ctx,
					    struct uar_dir_watch **out);
void uar_dir_watch_destroy(struct uar_dir_watch *w); /* NULL is fine */

#endif
