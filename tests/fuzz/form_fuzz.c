/* form_fuzz.c - a JSON Schema, a line end, and what is typed or given: what a terminal makes of it
 * is JSON, and what is recorded of a value is JSON that hides the same things twice. */
#include <stdlib.h>

#include "app/form.h"
#include "core/redact.h"

static const struct uar_json *parse(uar_str text, struct uar_arena *arena)
{
	const struct uar_json *j = NULL;

	return uar_json_parse(text, NULL, arena, &j, NULL) ? NULL : j;
}

static void typed(const struct uar_json *schema, uar_str text, struct uar_arena *arena)
{
	struct uar_buf out = uar_buf_make(1 << 20);
	struct uar_jw w = uar_jw_begin(&out);
	struct uar_error error = { 0 };

	if (uar_form_value(&w, UAR_STR_NONE, schema, text, &error)) {
		if (!error.text[0])
			abort();
	} else if (!uar_jw_end(&w) && !parse(uar_buf_str(&out), arena)) {
		abort();
	}
	uar_buf_fini(&out);
}

static void recorded(const struct uar_json *schema, const struct uar_json *value,
		     struct uar_arena *arena)
{
	struct uar_buf out = uar_buf_make(1 << 22);
	struct uar_jw w = uar_jw_begin(&out);
	bool hides = uar_redact(&w, NULL, value, schema);

	if (hides != uar_redacts(value, schema))
		abort();
	if (!uar_jw_end(&w) && !parse(uar_buf_str(&out), arena))
		abort();
	uar_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text, first = uar_str_cut(uar_str_n((const char *)data, size), '\n', &text);
	const struct uar_json *schema, *value;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	schema = parse(first, &arena);
	value = parse(text, &arena);
	typed(schema, text, &arena);
	if (value)
		recorded(schema, value, &arena);
	uar_arena_fini(&arena);
	return 0;
}
