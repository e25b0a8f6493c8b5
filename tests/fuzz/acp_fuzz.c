/* acp_fuzz.c - anything that an ACP agent might say. */
#include "backend_fuzz.h"

#include "backend/acp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uab_acp *c = calloc(1, sizeof *c);
	struct uab_options opt = { .non_interactive = size % 2,
				   .select = (enum uab_select)(size % 5),
				   .session_id = UAR_STR("s1") };

	c->opt = &opt;
	c->cwd = "/tmp";
	c->prompt = UAR_STR("hi");
	fuzz_run(&c->map, &uab_acp_dialect, data, size);
	return 0;
}
