/* codex_exec_fuzz.c - anything that `codex exec --json` might print. */
#include "backend_fuzz.h"

#include "backend/codex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uab_codex_exec *c = calloc(1, sizeof *c);

	c->fresh = true;
	fuzz_run(&c->map, &uab_codex_exec_dialect, data, size);
	return 0;
}
