/* plugin_upload.h - what the worker of one run uploads: piece by piece to the store.
 *
 * A piece is taken when it follows the one before; at most UAR_LIMIT_UPLOAD_PENDING
 * bytes wait for the disk. An upload that is never finished is gone with its run. */
#ifndef UAR_WORK_PLUGIN_UPLOAD_H
#define UAR_WORK_PLUGIN_UPLOAD_H

#include "work/limits.h"
#include "work/work_int.h"

/* Embedded in the export queue. */
struct upload_set {
	struct uar_runtime *rt;
	struct uar_list uploads; /* of struct rt_upload */
	size_t count, pending;	 /* bytes that wait */
	/* The piece with that ticket was written, or was not. */
	void (*taken)(void *ctx, uint64_t ticket, uar_err e);
	void *ctx;
};

/* Fires once, also when the run is over before: then with UAR_ECANCELED. */
typedef void upload_done_fn(void *ctx, uar_err e, const char *sha256, uint64_t bytes);

void rt_uploads_init(struct upload_set *s, struct uar_runtime *rt);
void rt_uploads_fini(struct upload_set *s); /* what is under way goes on, unheard */
UAR_MUST_CHECK uar_err rt_upload_piece(struct upload_set *s, const struct uar_piece *p,
				       uint64_t ticket, struct uar_error *error);
/* The upload of that export becomes a blob; its name is free again. */
UAR_MUST_CHECK uar_err rt_upload_finish(struct upload_set *s, const struct uar_export *x,
					upload_done_fn *done, void *ctx, struct uar_error *error);

#endif
