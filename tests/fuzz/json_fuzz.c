/* json_fuzz.c - whatever parses must come out of the writer, parse again and be
 * equal; every node must be found by its pointer; and nothing may be read outside
 * of the input. */
#include <stdlib.h>

#include "base/alloc.h"
#include "json/json_int.h"
#include "json/jw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool fine)
{
	if (!fine)
		abort();
}

/* Walks down along last children and checks each by its pointer. */
static void check_pointers(const struct uar_json *root)
{
	struct uar_buf pointer = uar_buf_make(1 << 20);
	const struct uar_json *j = root;

	for (int depth = 0; j && depth < 100; depth++) {
		const struct uar_json *child = NULL;
		uint32_t index = 0;

		if (j->kind == UAR_JSON_ARRAY || j->kind == UAR_JSON_OBJECT)
			for (const struct uar_json *c = j->first; c; c = c->next, index++)
				child = c;
		if (child && j->kind == UAR_JSON_OBJECT)
			uar_json_pointer_add(&pointer, child->key);
		else if (child)
			uar_buf_printf(&pointer, "/%u", index - 1);
		require(!child || index == j->count);
		require(!child || uar_json_pointer(root, uar_buf_str(&pointer)) == child);
		j = child;
	}
	uar_buf_fini(&pointer);
}

/* The canonical text is JSON of an equal value, and that value's own canonical text. */
static void check_canonical(const struct uar_json *root)
{
	struct uar_buf first = uar_buf_make(1 << 22), again = uar_buf_make(1 << 22);
	const struct uar_json *j = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	uar_json_write_canonical(&first, root);
	require(!first.err);
	require(!uar_json_parse(uar_buf_str(&first), NULL, &arena, &j, NULL));
	require(uar_json_equal(root, j));
	uar_json_write_canonical(&again, j);
	require(uar_str_eq(uar_buf_str(&first), uar_buf_str(&again)));
	uar_buf_fini(&first);
	uar_buf_fini(&again);
	uar_arena_fini(&arena);
}

static void check_double(const uint8_t *data, size_t n)
{
	char text[UAR_JSON_NUMBER_TEXT];
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	double v;

	if (n < sizeof v)
		return;
	memcpy(&v, data, sizeof v);
	if (v - v != 0)
		return;
	uar_arena_init(&arena, 0);
	require(!uar_json_parse(uar_str_n(text, uar_json_double_format(v, text)), NULL, &arena, &j,
				NULL));
	require(uar_json_double(j, 0) == v);
	uar_arena_fini(&arena);
}

/* Any bytes as a string value read back as valid text. */
static void check_string(uar_str text, struct uar_arena *arena)
{
	struct uar_buf out = uar_buf_make(1 << 24);
	struct uar_jw w = uar_jw_begin(&out);
	const struct uar_json *j = NULL;

	uar_jw_str(&w, NULL, text);
	require(uar_jw_end(&w) == UAR_OK);
	require(!uar_json_parse(uar_buf_str(&out), NULL, arena, &j, NULL));
	if (uar_utf8_valid(text) && !memchr(text.p, 0, text.n))
		require(uar_str_eq(j->text, text));
	uar_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct uar_json_limits limits = { .foreign = n & 1 };
	const struct uar_json *first = NULL, *second = NULL;
	struct uar_buf out = uar_buf_make(1 << 24);
	char *copy = uar_alloc(n); /* of its exact size, so that overreads are seen */
	struct uar_error error = { 0 };
	struct uar_arena arena;

	memcpy(copy, data, n);
	uar_arena_init(&arena, 0);
	if (!uar_json_parse(uar_str_n(copy, n), &limits, &arena, &first, &error)) {
		check_pointers(first);
		check_canonical(first);
		uar_json_write(&out, first);
		require(!out.err);
		require(!uar_json_parse(uar_buf_str(&out), NULL, &arena, &second, NULL));
		require(uar_json_equal(first, second) && uar_json_equal(second, first));
	} else {
		require(error.text[0] && error.where[0] && !first);
	}
	uar_json_pointer(second, uar_str_n(copy, n));
	check_string(uar_str_n(copy, n), &arena);
	check_double(data, n);
	uar_buf_fini(&out);
	uar_arena_fini(&arena);
	uar_free(copy);
	return 0;
}
