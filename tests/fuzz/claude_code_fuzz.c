/* claude_code_fuzz.c - anything that Claude Code might print. */
#include "backend_fuzz.h"

#include "backend/claude.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uab_claude *c = calloc(1, sizeof *c);

	c->prompt = UAR_STR("hi");
	fuzz_run(&c->map, size % 2 ? &uab_claude_oneshot : &uab_claude_dialogue, data, size);
	return 0;
}
