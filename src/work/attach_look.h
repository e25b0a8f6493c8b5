/* attach_look.h - attachments that name an upload: its bytes are part of the run's inputs before
 * the run exists, so that they are there as long as the run is. */
#ifndef UAR_WORK_ATTACH_LOOK_H
#define UAR_WORK_ATTACH_LOOK_H

#include "work/work_int.h"

/* As uar_workers_ops.look. `then` goes on with the next look, as that does. */
UAR_MUST_CHECK uar_err rt_attach_look(struct uar_workers *w, struct rt_request *q,
				      uar_err (*then)(struct uar_workers *w, struct rt_request *q));

#endif
