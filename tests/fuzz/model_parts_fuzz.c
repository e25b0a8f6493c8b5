/* model_parts_fuzz.c - a document of parts; what can be read is written and read the same. */
#include <stdlib.h>

#include "model/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_buf json = uar_buf_make(1 << 24);
	struct uar_model_said said, again;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (uar_model_parts_read(uar_str_n((const char *)data, size), &arena, &said) == UAR_OK) {
		if (uar_model_parts_write(&said, &json) ||
		    uar_model_parts_read(uar_buf_str(&json), &arena, &again) ||
		    again.part_count != said.part_count)
			abort();
		for (size_t i = 0; i < said.part_count; i++)
			if (again.parts[i].kind != said.parts[i].kind ||
			    (said.parts[i].kind != UAR_PART_OPAQUE &&
			     !uar_str_eq(again.parts[i].text, said.parts[i].text)))
				abort();
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&json);
	return 0;
}
