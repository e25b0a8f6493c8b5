/* tool_form.c - forms for tools, pure. */
#include "work/tool_form.h"

#include "core/redact.h"
#include "json/limits.h"
#include "event/a2ui.h"
#include "json/schema.h"

static uar_err parse(uar_str text, struct uar_arena *arena, const struct uar_json **out)
{
	uar_err e = uar_json_parse(text, NULL, arena, out, NULL);

	return e ? e : (*out)->kind == UAR_JSON_OBJECT ? UAR_OK : UAR_EINVALID;
}

/* --- what is missing ---------------------------------------------------------------------- */

static bool is_basic(uar_str type)
{
	static const char *const basic[] = { "string", "number", "integer", "boolean", "array" };

	for (size_t i = 0; i < ARRAY_LEN(basic); i++)
		if (uar_str_is(type, basic[i]))
			return true;
	return false;
}

/* A text, a number, a choice or a list of them. */
static bool can_be_given(const struct uar_json *schema)
{
	const struct uar_json *type = uar_json_get(schema, UAR_STR("type"));
	const struct uar_json *items = uar_json_get(schema, UAR_STR("items"));
	uar_str name = uar_json_str(type, UAR_STR(""));

	if (!schema || schema->kind != UAR_JSON_OBJECT)
		return false;
	if (uar_json_get(schema, UAR_STR("enum")))
		return true;
	if (uar_str_is(name, "array"))
		return items &&
		       !uar_str_is(uar_json_str(uar_json_get(items, UAR_STR("type")),
						UAR_STR("string")),
				   "array") &&
		       can_be_given(items);
	return is_basic(name);
}

struct missing {
	const struct uar_json *required, *properties, *args;
};

static const struct uar_json *property_of(const struct missing *m, const struct uar_json *name)
{
	return uar_json_get(m->properties, name->text);
}

static bool is_missing(const struct missing *m, const struct uar_json *name)
{
	return name->kind == UAR_JSON_STRING && !uar_json_get(m->args, name->text);
}

/* Those that are missing; SIZE_MAX: one of them a person cannot give. */
static size_t count_missing(const struct missing *m)
{
	size_t n = 0;

	for (const struct uar_json *at = uar_json_first(m->required); at; at = at->next) {
		if (!is_missing(m, at))
			continue;
		if (!can_be_given(property_of(m, at)))
			return SIZE_MAX;
		n++;
	}
	return n;
}

static uar_err write_missing(const struct missing *m, struct uar_buf *schema, struct uar_buf *names)
{
	struct uar_jw w = uar_jw_begin(schema);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "type", "object");
	uar_jw_obj(&w, "properties");
	for (const struct uar_json *at = uar_json_first(m->required); at; at = at->next)
		if (is_missing(m, at)) {
			uar_jw_put_raw(&w, at->text, property_of(m, at)->text);
			uar_buf_printf(names, "%s%.*s", names->n ? ", " : "", UAR_FMT(at->text));
		}
	uar_jw_close(&w);
	uar_jw_arr(&w, "required");
	for (const struct uar_json *at = uar_json_first(m->required); at; at = at->next)
		if (is_missing(m, at))
			uar_jw_str(&w, NULL, at->text);
	uar_jw_close(&w);
	uar_jw_bool(&w, "additionalProperties", false);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* On one line, as events want it. */
static uar_err straighten(struct uar_buf *json, struct uar_arena *arena)
{
	const struct uar_json *j = NULL;
	uar_err e = uar_json_parse(uar_buf_str(json), NULL, arena, &j, NULL);
	struct uar_buf line = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);

	if (!e) {
		uar_json_write(&line, j);
		e = line.err;
	}
	uar_buf_fini(json);
	*json = line;
	return e;
}

uar_err rt_form_missing(uar_str input_schema, uar_str args, struct uar_buf *schema,
			struct uar_buf *names)
{
	const struct uar_json *root = NULL;
	struct missing m = { 0 };
	struct uar_arena arena;
	size_t n = 0;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = parse(input_schema, &arena, &root);
	if (!e)
		e = parse(args, &arena, &m.args);
	m.required = uar_json_get(root, UAR_STR("required"));
	m.properties = uar_json_get(root, UAR_STR("properties"));
	if (!e && m.required && m.required->kind == UAR_JSON_ARRAY && m.properties)
		n = count_missing(&m);
	if (!e || e == UAR_EINVALID)
		e = n && n != SIZE_MAX ? write_missing(&m, schema, names) : UAR_ESKIP;
	if (!e)
		e = straighten(schema, &arena);
	uar_arena_fini(&arena);
	return e;
}

/* --- what a model asks -------------------------------------------------------------------- */

static void write_line(struct uar_buf *out, uar_str text)
{
	for (size_t i = 0; i < text.n; i++)
		uar_buf_add_char(out, (unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f
					      ? ' '
					      : text.p[i]);
}

uar_err rt_form_asked(uar_str args, struct uar_buf *schema, struct uar_buf *title,
		      struct uar_error *error)
{
	const struct uar_json *root = NULL, *form;
	struct uar_schema *compiled = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = parse(args, &arena, &root);
	form = uar_json_get(root, UAR_STR("schema"));
	if (!e && !uar_str_is(uar_json_text(form, "type"), "object"))
		e = uar_error_set(error, UAR_EINVALID, "the schema of a form has the type object");
	if (!e)
		e = uar_schema_create(form, NULL, &compiled, error);
	if (!e && uar_a2ui_has_unsafe(form))
		e = uar_error_set(error, UAR_EINVALID,
				  "no field may be called __proto__, constructor or prototype");
	if (e)
		uar_error_where(error, "/schema");
	uar_schema_destroy(compiled);
	if (!e) {
		uar_json_write(schema, form);
		write_line(title, uar_json_text(root, "title"));
		e = schema->err ? schema->err : title->err;
	}
	uar_arena_fini(&arena);
	return e;
}

/* --- arguments ---------------------------------------------------------------------------- */

static void put_member(struct uar_jw *w, const struct uar_json *at)
{
	if (at->kind == UAR_JSON_STRING)
		uar_jw_put_str(w, at->key, at->text);
	else if (at->kind == UAR_JSON_BOOL)
		uar_jw_put_bool(w, at->key, at->b);
	else if (at->kind == UAR_JSON_NULL)
		uar_jw_put_null(w, at->key);
	else
		uar_jw_put_raw(w, at->key, at->text);
}

uar_err rt_form_merge(uar_str args, uar_str values, struct uar_buf *out)
{
	const struct uar_json *a = NULL, *v = NULL;
	struct uar_jw w = uar_jw_begin(out);
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = parse(args, &arena, &a);
	if (!e)
		e = parse(values, &arena, &v);
	uar_jw_obj(&w, NULL);
	for (const struct uar_json *at = e ? NULL : uar_json_first(a); at; at = at->next)
		if (!uar_json_get(v, at->key))
			put_member(&w, at);
	for (const struct uar_json *at = e ? NULL : uar_json_first(v); at; at = at->next)
		put_member(&w, at);
	uar_jw_close(&w);
	uar_arena_fini(&arena);
	return e ? e : uar_jw_end(&w);
}

uar_err rt_form_hides(uar_str input_schema, uar_str args, struct uar_buf *out)
{
	const struct uar_json *schema = NULL, *value = NULL;
	struct uar_jw w = uar_jw_begin(out);
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	if (uar_json_parse(input_schema, NULL, &arena, &schema, NULL))
		schema = NULL;
	e = uar_json_parse(args, NULL, &arena, &value, NULL);
	if (e != UAR_ENOMEM && (e || !uar_redacts(value, schema)))
		e = UAR_ESKIP;
	if (!e) {
		(void)uar_redact(&w, NULL, value, schema);
		e = uar_jw_end(&w);
	}
	uar_arena_fini(&arena);
	return e;
}
