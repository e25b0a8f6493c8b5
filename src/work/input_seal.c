/* input_seal.c - the secret members of inputs, on their way into the log and out of it. */
#include "work/input_seal.h"

#include "base/base64.h"
#include "base/seal.h"
#include "core/redact.h"
#include "json/jw.h"

static uar_str about(const struct uar_owner *o, struct uar_arena *arena)
{
	return uar_arena_printf(arena, "inputs\n%.*s\n%.*s\n%.*s", UAR_FMT(o->tenant),
				UAR_FMT(o->workspace), UAR_FMT(o->user));
}

/* What clients add is ours, and read by its own rules. */
static bool is_ours(uar_str key)
{
	return uar_str_is(key, "attachments") || uar_str_starts(key, UAR_STR("$"));
}

/* --- out of the log ---------------------------------------------------------------------- */

static uar_err unseal(const struct uar_runtime *rt, const struct uar_owner *owner, uar_str text,
		      struct uar_arena *arena, const struct uar_json **out)
{
	struct uar_buf plain = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	uar_str bytes = UAR_STR_NONE, whose = about(owner, arena);
	uar_err e = whose.p ? uar_base64_decode(arena, text, &bytes) : UAR_ENOMEM;

	if (!e)
		e = uar_unseal(rt_seal(rt), bytes, whose, &plain);
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&plain), NULL, arena, out, NULL);
	uar_buf_fini(&plain);
	return e == UAR_ENOMEM || !e ? e : UAR_ECORRUPT;
}

uar_err rt_inputs_open(const struct uar_runtime *rt, const struct uar_owner *owner,
		       const struct uar_json *inputs, struct uar_arena *arena,
		       const struct uar_json **out)
{
	const struct uar_json *sealed = uar_json_get(inputs, UAR_STR(UAR_SEALED_INPUT));
	const struct uar_json *real = NULL;
	struct uar_json *all, *last = NULL;
	uar_err e;

	*out = inputs;
	if (!sealed)
		return UAR_OK;
	e = unseal(rt, owner, uar_json_str(sealed, UAR_STR("")), arena, &real);
	all = uar_arena_alloc(arena, sizeof *all);
	if (e || !all)
		return e ? e : UAR_ENOMEM;
	*all = (struct uar_json){ .kind = UAR_JSON_OBJECT };
	for (const struct uar_json *m = uar_json_first(inputs); m; m = m->next) {
		const struct uar_json *from = uar_json_get(real, m->key);
		struct uar_json *own;

		if (m == sealed)
			continue;
		own = uar_arena_alloc(arena, sizeof *own);
		if (!own)
			return UAR_ENOMEM;
		*own = from ? *from : *m;
		own->next = NULL;
		*(last ? (const struct uar_json **)&last->next
		       : (const struct uar_json **)&all->first) = own;
		last = own;
		all->count++;
	}
	*out = all;
	return UAR_OK;
}

/* --- into the log -------------------------------------------------------------------------- */

/* The member alone, as an object. */
struct alone {
	struct uar_json object, member;
};

static const struct uar_json *set_alone(struct alone *a, const struct uar_json *m)
{
	a->member = *m;
	a->member.next = NULL;
	a->object = (struct uar_json){ .kind = UAR_JSON_OBJECT, .count = 1, .first = &a->member };
	return &a->object;
}

static bool hides(const struct uar_json *m, const struct uar_json *schema)
{
	struct alone a;

	return !is_ours(m->key) && uar_redacts(set_alone(&a, m), schema);
}

static void put_redacted(struct uar_jw *w, const struct uar_json *m, const struct uar_json *schema)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	struct uar_jw one = uar_jw_begin(&text);
	struct alone a;

	uar_redact(&one, NULL, set_alone(&a, m), schema);
	if (!uar_jw_end(&one))
		uar_jw_members(w, uar_buf_str(&text));
	else
		w->out->err = w->out->err ? w->out->err : UAR_ENOMEM;
	uar_buf_fini(&text);
}

/* The real values of what is hidden, sealed, in base64. */
static uar_err write_sealed(const struct uar_runtime *rt, const struct inputs_ask *ask,
			    struct uar_buf *out)
{
	struct uar_buf real = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	struct uar_buf sealed = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	struct uar_jw w = uar_jw_begin(&real);
	struct uar_arena arena;
	uar_str whose;
	uar_err e;

	uar_arena_init(&arena, 0);
	whose = about(ask->owner, &arena);
	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = uar_json_first(ask->inputs); m; m = m->next)
		if (hides(m, ask->schema)) {
			uar_jw_key(&w, m->key);
			uar_jw_tree(&w, NULL, m);
		}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = whose.p ? uar_seal(rt_seal(rt), rt_rand(rt), uar_buf_str(&real), whose, &sealed)
			    : UAR_ENOMEM;
	if (!e) {
		uar_base64_encode(out, uar_buf_str(&sealed));
		e = out->err;
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&real);
	uar_buf_fini(&sealed);
	return e;
}

uar_err rt_inputs_seal(const struct uar_runtime *rt, const struct inputs_ask *ask,
		       struct uar_buf *out)
{
	struct uar_buf sealed = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	struct uar_jw w = uar_jw_begin(out);
	bool any = false;
	uar_err e;

	for (const struct uar_json *m = uar_json_first(ask->inputs); m && !any; m = m->next)
		any = hides(m, ask->schema);
	if (!any)
		return UAR_ESKIP;
	e = write_sealed(rt, ask, &sealed);
	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = uar_json_first(ask->inputs); m; m = m->next) {
		if (hides(m, ask->schema)) {
			put_redacted(&w, m, ask->schema);
		} else {
			uar_jw_key(&w, m->key);
			uar_jw_tree(&w, NULL, m);
		}
	}
	uar_jw_str(&w, UAR_SEALED_INPUT, uar_buf_str(&sealed));
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	uar_buf_fini(&sealed);
	return e;
}
