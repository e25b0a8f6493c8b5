/* codex_app_fuzz.c - anything that `codex app-server` might answer. */
#include "backend_fuzz.h"

#include "backend/codex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uab_codex_app *c = calloc(1, sizeof *c);
	struct uab_options opt = { .non_interactive = size % 2,
				   .select = (enum uab_select)(size % 5),
				   .session_id = UAR_STR("01a1e071-ab40-7a80-9631-3edeb750003c") };

	c->opt = &opt;
	c->cwd = "/tmp";
	c->prompt = UAR_STR("hi");
	fuzz_run(&c->map, &uab_codex_app_dialect, data, size);
	return 0;
}
