/* control_fuzz.c - the first byte picks a command, the rest is its input. What is accepted
 * is what its schema describes: every member has its type, and required ones are there. */
#include "core/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_arena arena;
	const struct uar_json *input;
	struct uar_error error = { 0 };
	struct uar_control c;

	if (!size)
		return 0;
	uar_arena_init(&arena, 0);
	if (!uar_json_parse(uar_str_n((const char *)data + 1, size - 1), NULL, &arena, &input,
			    &error)) {
		enum uar_control_kind kind = data[0] % UAR_CTL_COUNT;
		uar_err e = uar_control_read(kind, input, &arena, &c, &error);
		const struct uar_fields *f = &uar_control_info[kind].fields;

		for (size_t i = 0; !e && i < f->count; i++)
			if (f->at[i].required && !(c.given >> i & 1))
				__builtin_trap();
	}
	uar_arena_fini(&arena);
	return 0;
}
