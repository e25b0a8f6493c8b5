/* patch_fuzz.c - a document and a patch, one a line. The document stays as it was
 * and the result is a document like any other. */
#include <stdlib.h>

#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool fine)
{
	if (!fine)
		abort();
}

/* Counts must be right, or look-ups by index would run off the end. */
static void check_counts(const struct uar_json *j)
{
	uint32_t n = 0;

	if (j->kind != UAR_JSON_ARRAY && j->kind != UAR_JSON_OBJECT)
		return;
	for (const struct uar_json *c = j->first; c; c = c->next, n++)
		check_counts(c);
	require(n == j->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uar_str rest, line = uar_str_cut(uar_str_n((const char *)data, n), '\n', &rest);
	const struct uar_json *doc = NULL, *patch = NULL, *out = NULL, *again = NULL;
	struct uar_buf before = uar_buf_make(1 << 24), after = uar_buf_make(1 << 24);
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(line, NULL, &arena, &doc, NULL) &&
	    !uar_json_parse(rest, NULL, &arena, &patch, NULL)) {
		uar_err e;

		uar_json_write(&before, doc);
		e = uar_json_patch(doc, patch, &arena, &out, NULL);
		uar_json_write(&after, doc);
		require(uar_str_eq(uar_buf_str(&before), uar_buf_str(&after)));
		require((e == UAR_OK) == (out != NULL));
		uar_buf_clear(&after);
		if (out) {
			check_counts(out);
			uar_json_write(&after, out);
			if (!after.err) {
				require(!uar_json_parse(uar_buf_str(&after), NULL, &arena, &again,
							NULL));
				require(uar_json_equal(out, again));
			}
		}
	}
	uar_buf_fini(&before);
	uar_buf_fini(&after);
	uar_arena_fini(&arena);
	return 0;
}
