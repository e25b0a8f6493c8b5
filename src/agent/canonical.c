/* canonical.c - the text that names a definition: members by key, numbers by value.
 *
 * Unlike the digests of json.h it reads back as the same kinds of numbers. */
#include <stdlib.h>

#include "agent/definition_int.h"
#include "json/jw.h"

static int by_key(const void *a, const void *b)
{
	const struct uar_json *const *x = a, *const *y = b;

	return uar_str_cmp((*x)->key, (*y)->key);
}

static void put_value(struct uar_jw *w, const char *key, const struct uar_json *j,
		      struct uar_arena *scratch);

static void put_members(struct uar_jw *w, const struct uar_json *j, struct uar_arena *scratch)
{
	const struct uar_json **sorted =
		uar_arena_alloc(scratch, (j->count + 1) * sizeof(const struct uar_json *));
	size_t n = 0;

	if (!sorted) {
		w->out->err = UAR_ENOMEM;
		return;
	}
	for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
		sorted[n++] = m;
	qsort(sorted, n, sizeof(const struct uar_json *), by_key);
	for (size_t i = 0; i < n; i++) {
		uar_jw_key(w, sorted[i]->key);
		put_value(w, NULL, sorted[i], scratch);
	}
}

static void put_number(struct uar_jw *w, const char *key, double d)
{
	if (d > -9e15 && d < 9e15 && d == (double)(int64_t)d)
		uar_jw_int(w, key, (int64_t)d);
	else
		uar_jw_double(w, key, d);
}

static void put_value(struct uar_jw *w, const char *key, const struct uar_json *j,
		      struct uar_arena *scratch)
{
	switch (j->kind) {
	case UAR_JSON_NULL: uar_jw_null(w, key); return;
	case UAR_JSON_BOOL: uar_jw_bool(w, key, j->b); return;
	case UAR_JSON_INT: uar_jw_int(w, key, j->i); return;
	case UAR_JSON_DOUBLE: put_number(w, key, j->d); return;
	case UAR_JSON_STRING: uar_jw_str(w, key, j->text); return;
	case UAR_JSON_ARRAY:
		uar_jw_arr(w, key);
		for (const struct uar_json *i = uar_json_first(j); i; i = i->next)
			put_value(w, NULL, i, scratch);
		break;
	case UAR_JSON_OBJECT:
		uar_jw_obj(w, key);
		put_members(w, j, scratch);
		break;
	}
	uar_jw_close(w);
}

uar_err uar_definition_canonical(const struct uar_json *j, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	put_value(&w, NULL, j, &scratch);
	e = uar_jw_end(&w);
	uar_arena_fini(&scratch);
	return e;
}
