/* tool_echo.c - what a tool says about its sensitive arguments.
 *
 * What is hidden is found by comparison: the arguments beside the copy of them that is recorded. */
#include "work/tool_echo.h"

#include "core/redact.h"
#include "json/limits.h"
#include "work/tool_form.h"

/* --- which values ------------------------------------------------------------------------ */

/* As deep as the arguments, whose depth is bounded. */
static void note_all(const struct uar_json *value, struct uar_secrets_used *used)
{
	switch (value->kind) {
	case UAR_JSON_STRING:
	case UAR_JSON_INT:
	case UAR_JSON_DOUBLE: uar_secrets_note(used, value->text); break;
	case UAR_JSON_OBJECT:
	case UAR_JSON_ARRAY:
		for (const struct uar_json *m = value->first; m; m = m->next)
			note_all(m, used);
		break;
	case UAR_JSON_NULL:
	case UAR_JSON_BOOL: break;
	}
}

static void note_hidden(const struct uar_json *value, const struct uar_json *shown,
			struct uar_secrets_used *used)
{
	const struct uar_json *m, *s;

	if (shown->kind == UAR_JSON_STRING && uar_str_is(shown->text, UAR_REDACTED)) {
		note_all(value, used);
		return;
	}
	if (value->kind != shown->kind ||
	    (value->kind != UAR_JSON_OBJECT && value->kind != UAR_JSON_ARRAY))
		return;
	for (m = value->first, s = shown->first; m && s; m = m->next, s = s->next)
		note_hidden(m, s, used);
}

uar_err rt_echo_note(uar_str input_schema, uar_str args, struct uar_secrets_used *used)
{
	struct uar_buf hidden = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	const struct uar_json *value = NULL, *shown = NULL;
	struct uar_arena arena;
	uar_err e = rt_form_hides(input_schema, args, &hidden);

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_json_parse(args, NULL, &arena, &value, NULL);
	if (!e)
		e = uar_json_parse(uar_buf_str(&hidden), NULL, &arena, &shown, NULL);
	if (!e) {
		note_hidden(value, shown, used);
		e = used->values.err;
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&hidden);
	return e == UAR_ESKIP ? UAR_OK : e;
}

/* --- what is told ------------------------------------------------------------------------ */

struct hiding {
	const struct uar_secrets_used *used;
	struct uar_jw w;
	size_t count;
	uar_err err;
};

/* The text without the values; frees nothing that is shown. */
static struct uar_buf without(struct hiding *h, uar_str text)
{
	struct uar_buf b = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);

	h->count += uar_secrets_hide(h->used, text, &b);
	if (b.err)
		h->err = b.err;
	return b;
}

/* As deep as the output, whose depth is bounded. */
static void put(struct hiding *h, uar_str key, const struct uar_json *j)
{
	struct uar_buf name = { 0 }, text = { 0 };
	bool nested = j->kind == UAR_JSON_OBJECT || j->kind == UAR_JSON_ARRAY;

	if (key.n) {
		name = without(h, key);
		key = uar_buf_str(&name);
	}
	if (!nested)
		text = without(h, j->text);
	if (j->kind == UAR_JSON_OBJECT)
		uar_jw_put_obj(&h->w, key);
	else if (j->kind == UAR_JSON_ARRAY)
		uar_jw_put_arr(&h->w, key);
	else if (j->kind == UAR_JSON_NULL)
		uar_jw_put_null(&h->w, key);
	else if (j->kind == UAR_JSON_BOOL)
		uar_jw_put_bool(&h->w, key, j->b);
	else if (j->kind == UAR_JSON_STRING || !uar_str_eq(uar_buf_str(&text), j->text))
		uar_jw_put_str(&h->w, key, uar_buf_str(&text));
	else
		uar_jw_put_raw(&h->w, key, j->text);
	for (const struct uar_json *m = nested ? j->first : NULL; m; m = m->next)
		put(h, j->kind == UAR_JSON_OBJECT ? m->key : UAR_STR_NONE, m);
	if (nested)
		uar_jw_close(&h->w);
	uar_buf_fini(&name);
	uar_buf_fini(&text);
}

uar_err rt_echo_hide(const struct uar_secrets_used *used, uar_str text, struct uar_buf *out,
		     size_t *count)
{
	struct uar_json_limits limits = { .foreign = true };
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(text, &limits, &arena, &j, NULL);
	if (!e) {
		struct hiding h = { .used = used, .w = uar_jw_begin(out) };

		put(&h, UAR_STR_NONE, j);
		e = uar_jw_end(&h.w);
		e = h.err ? h.err : e;
		*count += h.count;
	} else if (e != UAR_ENOMEM) {
		*count += uar_secrets_hide(used, text, out);
		e = out->err;
	}
	uar_arena_fini(&arena);
	return e;
}
