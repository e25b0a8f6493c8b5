/* schema_fuzz.c - a schema and values for it: the input is JSON texts, one a line;
 * the first is the schema, the others are validated by it. */
#include "json/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uar_str rest = uar_str_n((const char *)data, n), line = uar_str_cut(rest, '\n', &rest);
	struct uar_schema_options options = { .check_formats = n & 1, .base_uri = "http://x/y" };
	const struct uar_json *document = NULL, *value = NULL;
	struct uar_schema *schema = NULL;
	struct uar_error error = { 0 };
	struct uar_arena arena, scratch;

	uar_arena_init(&arena, 0);
	uar_arena_init(&scratch, 0);
	if (!uar_json_parse(line, NULL, &arena, &document, NULL) &&
	    !uar_schema_create(document, &options, &schema, &error)) {
		while (rest.n) {
			uar_err e;

			line = uar_str_cut(rest, '\n', &rest);
			if (uar_json_parse(line, NULL, &arena, &value, NULL))
				continue;
			e = uar_schema_validate(schema, value, &scratch, &error);
			if (e && !error.text[0])
				__builtin_trap();
			uar_arena_reset(&scratch);
		}
		if (uar_schema_validate(schema, document, &scratch, NULL) == UAR_ENOMEM)
			__builtin_trap();
	}
	uar_schema_destroy(schema);
	uar_arena_fini(&scratch);
	uar_arena_fini(&arena);
	return 0;
}
