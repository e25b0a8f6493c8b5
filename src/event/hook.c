/* hook.c - the names of the points. */
#include "event/hook.h"

static const char *const names[UAR_HOOK_COUNT] = {
#define P(NAME, TEXT, DOC) [UAR_HOOK_##NAME] = TEXT,
#include "event/hook.def"
};

const char *uar_hook_point_name(enum uar_hook_point p)
{
	return names[p];
}

enum uar_hook_point uar_hook_point_parse(uar_str name)
{
	int p = 0;

	while (p < UAR_HOOK_COUNT && !uar_str_is(name, names[p]))
		p++;
	return (enum uar_hook_point)p;
}
