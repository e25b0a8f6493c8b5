/* normalized.h - log events as {"type","data"} of the normalized stream.
 *
 * Pure: an event in, bytes out. A class without a row in the map is not shown. */
#ifndef UAR_PROTO_NORMALIZED_H
#define UAR_PROTO_NORMALIZED_H

#include "event/event.h"

struct uar_normalized_options {
	bool cancel_as_done; /* a cancelled run ends with RunDone instead of Error */
	bool meta;	     /* show phases and progress as `meta` */
	/* Show also the optional variants: Cancelled (instead of Error or RunDone),
	 * RunDoneWithUsage (instead of RunDone), ToolCallApprovalRequired, ToolCallDenied,
	 * BudgetAlert and RuntimeStep; `tool` on ToolEnd, and `call_index` on events of tools
	 * that know it; SkillActivated (instead of `meta`). StatePatch is not
	 * shown: a patch depends on the state before it, and an event is shown by itself here. */
	bool full;
};

/* False: the event shows nothing here, whatever the options and its payload are. */
bool uar_normalized_shows(const struct uar_event *ev);
/* Appends the JSON of what the event shows. UAR_ESKIP: it shows nothing here.
 * `scratch` may be reset afterwards. */
UAR_MUST_CHECK uar_err uar_normalized_encode(const struct uar_event *ev,
					     const struct uar_normalized_options *o,
					     struct uar_arena *scratch, struct uar_buf *out);

#endif
