/* hook_answer_fuzz.c - whatever a hook writes, reading it never goes astray, and what is no answer
 * says so. */
#include <stdlib.h>

#include "core/hook_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_error error = { 0 };
	struct uar_hook_answer a;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_hook_answer_read(uar_str_n((const char *)data, size), &arena, &a, &error);
	if (!e && (a.outcome >= UAR_HOOK_OUTCOME_COUNT || a.reason.n > 256))
		abort();
	if (e && e != UAR_EINVALID && e != UAR_ENOMEM)
		abort();
	uar_arena_fini(&arena);
	return 0;
}
