/* json_canonical.c - the one text that equal values share, for digests of them. */
#include "base/alloc.h"
#include "json/json_int.h"

static int by_key(const void *a, const void *b)
{
	const struct uar_json *x = *(const struct uar_json *const *)a;
	const struct uar_json *y = *(const struct uar_json *const *)b;
	size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
	int order = n ? memcmp(x->key.p, y->key.p, n) : 0;

	return order ? order : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

static void write_string(struct uar_buf *out, uar_str text)
{
	struct uar_json j = { .kind = UAR_JSON_STRING, .text = text };

	uar_json_write(out, &j);
}

static void write_members(struct uar_buf *out, const struct uar_json *j)
{
	const struct uar_json **sorted = uar_alloc((j->count + 1) * sizeof *sorted);
	size_t n = 0;

	if (!sorted) {
		out->err = out->err ? out->err : UAR_ENOMEM;
		return;
	}
	for (const struct uar_json *m = j->first; m; m = m->next)
		sorted[n++] = m;
	qsort(sorted, n, sizeof *sorted, by_key);
	for (size_t i = 0; i < n && !out->err; i++) {
		if (i)
			uar_buf_add_char(out, ',');
		write_string(out, sorted[i]->key);
		uar_buf_add_char(out, ':');
		uar_json_write_canonical(out, sorted[i]);
	}
	uar_free(sorted);
}

/* Recursion is as deep as the tree, which the reader bounds. */
void uar_json_write_canonical(struct uar_buf *out, const struct uar_json *j)
{
	if (j && j->kind == UAR_JSON_OBJECT) {
		uar_buf_add_char(out, '{');
		write_members(out, j);
		uar_buf_add_char(out, '}');
	} else if (j && j->kind == UAR_JSON_ARRAY) {
		uar_buf_add_char(out, '[');
		for (const struct uar_json *c = j->first; c && !out->err; c = c->next) {
			if (c != j->first)
				uar_buf_add_char(out, ',');
			uar_json_write_canonical(out, c);
		}
		uar_buf_add_char(out, ']');
	} else if (j && (j->kind == UAR_JSON_INT || j->kind == UAR_JSON_DOUBLE) && j->text.n) {
		uar_json_number_canonical(out, j);
	} else {
		uar_json_write(out, j);
	}
}
