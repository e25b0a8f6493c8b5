/* plugin_export.h - export items of a run on their way to the log, in order.
 *
 * Content that is too long for an event is stored as a blob first; what came
 * later waits for it. The end of the run is the last thing in the queue. */
#ifndef UAR_WORK_PLUGIN_EXPORT_H
#define UAR_WORK_PLUGIN_EXPORT_H

#include "work/plugin_upload.h"

/* Embedded in the worker. */
struct export_queue {
	struct live_run *run;
	struct upload_set uploads;
	struct uar_list items; /* of struct item: those that are not durable yet */
	size_t waiting;	       /* of them: not given to the engine yet */
	struct uar_buf ids;    /* of all items, UAR_UUID_TEXT bytes each */
	/* The item with that ticket is durable, or was refused. */
	void (*stored)(void *ctx, const struct uar_entry_answer *a);
	/* All items are given to the engine; the result (NULL: none) is ready for it. */
	void (*finished)(void *ctx, const struct uar_export *result, uar_err e);
	void *ctx;
};

void rt_export_init(struct export_queue *q, struct live_run *r);
void rt_export_fini(struct export_queue *q); /* what is under way goes on, unheard */
/* A piece of an upload that an item will name; `stored` tells, without an id. */
UAR_MUST_CHECK uar_err rt_export_piece(struct export_queue *q, const struct uar_piece *p,
				       uint64_t ticket, struct uar_error *error);
UAR_MUST_CHECK uar_err rt_export_add(struct export_queue *q, const struct uar_export *x,
				     uar_str raw, uint64_t ticket, struct uar_error *error);
/* Nothing follows but `finished`. result: JSON that the entry returned, or empty. */
UAR_MUST_CHECK uar_err rt_export_finish(struct export_queue *q, uar_str result);
bool rt_export_has_room(const struct export_queue *q);		  /* else hold the plugin back */
uar_str rt_export_id(const struct export_queue *q, size_t index); /* empty past the end */
/* The item with its strings in the arena. */
UAR_MUST_CHECK uar_err rt_export_copy(struct uar_arena *a, const struct uar_export *x,
				      struct uar_export *out);
bool rt_export_known(const struct export_queue *q, uar_str id);

#endif
