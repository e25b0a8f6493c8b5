/* plugin_refs.h - the ids that are the result of a plugin's run, few or many.
 *
 * Up to UAR_LIMIT_RESULT_REFS ids are in the event that ends the run. A larger set is stored
 * as a blob before that event names it. */
#ifndef UAR_WORK_PLUGIN_REFS_H
#define UAR_WORK_PLUGIN_REFS_H

#include "work/plugin_export.h"

/* Where the ids come from. */
struct refs_source {
	const struct export_queue *exports;
	uar_str result_id;	      /* of the returned value, or empty: comes first */
	const struct uar_json *named; /* array of ids that the plugin named; NULL: none */
	bool all;		      /* all items, if none were named */
};

/* The ids while their blob is being stored. Embedded in the worker; zero: nothing is. */
struct refs_set {
	struct refs_store *store; /* NULL: nothing is under way */
	struct uar_result_refs refs;
	struct uar_arena *arena; /* of the strings in refs */
	/* refs is complete, or the set could not be stored. Never from inside rt_refs_begin. */
	void (*done)(void *ctx, uar_err e);
	void *ctx;
};

/* UAR_OK: refs is complete. UAR_EBUSY: `done` follows, unless cancelled. */
UAR_MUST_CHECK uar_err rt_refs_begin(struct refs_set *s, const struct refs_source *from);
void rt_refs_cancel(struct refs_set *s);

#endif
