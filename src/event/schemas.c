/* schemas.c - the payload schemas, put into the program as they are in schemas/.
 *
 * The Makefile knows that this object depends on the files. */
#include "event/event_int.h"

#include "base/embed.h"

#define X(NAME, TYPE, IDS, MODELS, DOC)                                                            \
	UAR_EMBED(uar_event_schema_##NAME, "src/event/schemas/" TYPE ".json");
#include "event/event.def"
#undef X
UAR_EMBED(uar_event_schema_shared, "src/event/schemas/common.json");

static const struct {
	const char *start, *end;
} texts[UAR_EV_VENDOR] = {
#define X(NAME, TYPE, IDS, MODELS, DOC)                                                            \
	[UAR_EV_##NAME] = { uar_event_schema_##NAME, uar_event_schema_##NAME##_end },
#include "event/event.def"
#undef X
};

uar_str uar_event_schema(enum uar_event_class cls)
{
	if (cls >= UAR_EV_VENDOR)
		return UAR_STR_NONE;
	return uar_str_n(texts[cls].start, (size_t)(texts[cls].end - texts[cls].start));
}

uar_str uar_event_schema_common(void)
{
	return UAR_EMBEDDED(uar_event_schema_shared);
}
