/* schemas.c - the payload schemas, put into the program as they are in schemas/.
 *
 * The assembler copies the files; the Makefile knows that this object depends
 * on them. */
#include "event/event_int.h"

#define EMBED(NAME, PATH)                                                                          \
	__asm__(".pushsection .rodata\n"                                                           \
		".globl uar_event_schema_" #NAME "\n"                                              \
		".hidden uar_event_schema_" #NAME "\n"                                             \
		"uar_event_schema_" #NAME ":\n"                                                    \
		".incbin \"src/event/schemas/" PATH ".json\"\n"                                    \
		".globl uar_event_schema_" #NAME "_end\n"                                          \
		".hidden uar_event_schema_" #NAME "_end\n"                                         \
		"uar_event_schema_" #NAME "_end:\n"                                                \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char uar_event_schema_##NAME[] __attribute__((visibility("hidden")));         \
	extern const char uar_event_schema_##NAME##_end[] __attribute__((visibility("hidden")))

#define X(NAME, TYPE, IDS, MODELS, DOC) EMBED(NAME, TYPE);
#include "event/event.def"
#undef X
EMBED(shared, "common");

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
	return uar_str_n(uar_event_schema_shared,
			 (size_t)(uar_event_schema_shared_end - uar_event_schema_shared));
}
