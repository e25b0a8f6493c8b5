/* short.c - the plugin of the benchmarks: an entry that has nothing to do. */
#include <uar/plugin.h>

static int nop(struct uarp_run *run)
{
	return uarp_result(run, "{\"ok\":true}");
}

static const struct uarp_entry entries[] = { { "nop", nop }, { NULL, NULL } };
UARP_PLUGIN(entries);
