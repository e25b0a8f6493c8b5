/* json_diff_test.c - the reader against jansson, an independent strict reader, on
 * generated documents and on damaged copies of them. They must agree on what is
 * JSON and on every value. Known differences: jansson refuses integers outside
 * int64 and allows deeper nesting. */
#include <jansson.h>

#include "base/rand.h"
#include "json/json.h"
#include "test.h"

static struct uar_rand_seeded seeded;
static struct uar_rand rand_;

static unsigned pick(unsigned n)
{
	return (unsigned)uar_rand_below(&rand_, n);
}

static const char *const texts[] = {
	"",
	"a",
	"key",
	"\\n\\t\\\"\\\\\\/",
	"\\u00e4",
	"\xC3\xA4",
	"\\ud83d\\ude00",
	"\xF0\x9F\x98\x80",
	"0123456789abcdefghijklmnop",
	"\\u0001",
	"\x7f",
	"\xEF\xBF\xBF",
	"\\uFFFF",
	"sp ace",
	"\xE2\x82\xAC\\r",
};
static const char *const atoms[] = {
	"null",
	"true",
	"false",
	"0",
	"-0",
	"1",
	"-17",
	"1.5",
	"1e3",
	"2E-2",
	"0.1",
	"1e-310",
	"123456789012",
	"9223372036854775807",
	"-9223372036854775808",
	"1.0e+10",
	"0.30000000000000004",
	"179769313486231570000000000000000000000e270",
	"5e-324",
};
static const char *const spaces[] = { "", "", "", " ", "\n", "\t ", "\r\n" };

static void generate(struct uar_buf *b, unsigned depth)
{
	unsigned kind = pick(depth > 5 ? 2 : 4), n = pick(5);

	uar_buf_add_str(b, uar_str_c(spaces[pick(ARRAY_LEN(spaces))]));
	if (kind == 0)
		uar_buf_add_str(b, uar_str_c(atoms[pick(ARRAY_LEN(atoms))]));
	else if (kind == 1)
		uar_buf_printf(b, "\"%s%s\"", texts[pick(ARRAY_LEN(texts))],
			       texts[pick(ARRAY_LEN(texts))]);
	for (unsigned i = 0; kind >= 2 && i < n; i++) {
		uar_buf_add_char(b, i ? ',' : kind == 2 ? '[' : '{');
		if (kind == 3)
			uar_buf_printf(b, "\"%s%u\" :", texts[pick(ARRAY_LEN(texts))], pick(20));
		generate(b, depth + 1);
	}
	if (kind >= 2)
		uar_buf_printf(b, "%s%s", n ? "" : kind == 2 ? "[" : "{", kind == 2 ? "]" : "}");
	uar_buf_add_str(b, uar_str_c(spaces[pick(ARRAY_LEN(spaces))]));
}

static void damage(struct uar_buf *b)
{
	static const char bytes[] = "\"\\{}[],:0123456789.eE+-ntf u\x80\xC3\xED\xF4\xFF\x1f\x7f\n";
	size_t at = b->n ? pick((unsigned)b->n) : 0;

	switch (pick(3)) {
	case 0:
		if (b->n)
			b->p[at] = bytes[pick(sizeof bytes - 1)];
		break;
	case 1:
		if (b->n) {
			memmove(b->p + at, b->p + at + 1, b->n - at - 1);
			b->n--;
		}
		break;
	default:
		uar_buf_add_char(b, bytes[pick(sizeof bytes - 1)]);
		if (b->n > 1) {
			char c = b->p[b->n - 1];

			memmove(b->p + at + 1, b->p + at, b->n - at - 1);
			b->p[at] = c;
		}
	}
}

static bool same(const struct uar_json *a, const json_t *b);

static bool same_members(const struct uar_json *a, const json_t *b)
{
	if (json_object_size(b) != a->count)
		return false;
	for (const struct uar_json *m = a->first; m; m = m->next)
		if (!same(m, json_object_getn(b, m->key.p ? m->key.p : "", m->key.n)))
			return false;
	return true;
}

static bool same_elements(const struct uar_json *a, const json_t *b)
{
	size_t i = 0;

	if (json_array_size(b) != a->count)
		return false;
	for (const struct uar_json *c = a->first; c; c = c->next)
		if (!same(c, json_array_get(b, i++)))
			return false;
	return true;
}

static bool same(const struct uar_json *a, const json_t *b)
{
	if (!b)
		return false;
	switch (a->kind) {
	case UAR_JSON_NULL: return json_is_null(b);
	case UAR_JSON_BOOL: return json_is_boolean(b) && json_is_true(b) == a->b;
	case UAR_JSON_INT: return json_is_integer(b) && json_integer_value(b) == a->i;
	case UAR_JSON_DOUBLE: return json_is_real(b) && json_real_value(b) == a->d;
	case UAR_JSON_STRING:
		return json_is_string(b) &&
		       uar_str_eq(a->text, uar_str_n(json_string_value(b), json_string_length(b)));
	case UAR_JSON_ARRAY: return json_is_array(b) && same_elements(a, b);
	case UAR_JSON_OBJECT: return json_is_object(b) && same_members(a, b);
	}
	return false;
}

static bool compare(uar_str text, struct uar_arena *arena)
{
	json_error_t error;
	json_t *theirs =
		json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	const struct uar_json *ours = NULL;
	uar_err e = uar_json_parse(text, NULL, arena, &ours, NULL);
	bool fine;

	if (!e && theirs)
		fine = same(ours, theirs);
	else if (!e)
		fine = json_error_code(&error) == json_error_numeric_overflow;
	else /* they report a too big number before other mistakes: both refuse, that is all */
		fine = !theirs || e == UAR_EDEPTH;
	json_decref(theirs);
	return fine;
}

TEST(agrees_with_an_independent_reader, "BLD-09 NEV-17")
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_arena arena;
	unsigned valid = 0, rounds = 40000;

	uar_arena_init(&arena, 0);
	rand_ = uar_rand_seed(&seeded, 20240229);
	for (unsigned i = 0; i < rounds; i++) {
		uar_buf_clear(&b);
		generate(&b, 0);
		for (unsigned hits = pick(4); hits; hits--)
			damage(&b);
		if (!CHECK_MSG(compare(uar_buf_str(&b), &arena), "round %u: %.*s", i,
			       UAR_FMT(uar_buf_str(&b))))
			break;
		uar_arena_reset(&arena);
		valid++;
	}
	CHECK_INT(valid, rounds);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}
