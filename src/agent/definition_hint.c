/* definition_hint.c - what to write instead, from the schema itself. */
#include "agent/definition_int.h"
#include "json/json.h"

static const struct uar_json *resolve_ref(const struct uar_json *root, const struct uar_json *s)
{
	uar_str ref = uar_json_text(s, "$ref");

	return ref.n > 1 ? uar_json_pointer(root, uar_str_from(ref, 1)) : s;
}

/* The schema of what the pointer names; NULL: it is not known. */
static const struct uar_json *schema_at(const struct uar_json *root, uar_str pointer)
{
	const struct uar_json *s = root;
	uar_str rest = uar_str_from(pointer, 1);

	while (rest.n && s) {
		uar_str token = uar_str_cut(rest, '/', &rest);
		const struct uar_json *member =
			uar_json_get(uar_json_get(s, UAR_STR("properties")), token);

		if (!member)
			member = uar_json_get(s, UAR_STR("items"));
		if (!member)
			member = uar_json_get(s, UAR_STR("additionalProperties"));
		s = resolve_ref(root, member);
	}
	return s;
}

static void add_hint(struct uar_error *error, const char *fmt, uar_str what)
{
	size_t n = strlen(error->text);
	char hint[UAR_LIMIT_ERROR_TEXT];

	snprintf(hint, sizeof hint, "%.*s", UAR_FMT(what));
	if (n + 1 < sizeof error->text)
		snprintf(error->text + n, sizeof error->text - n, "%s%s", fmt, hint);
}

/* What the schema's check has suggested is said once. */
static void cut_suggestion(struct uar_error *error)
{
	char *said = strstr(error->text, ", did you mean ");

	if (said)
		*said = 0;
}

/* A name that is like the wrong one, or all there are. */
static void hint_names(struct uar_error *error, const struct uar_json *properties, uar_str wrong)
{
	struct uar_buf all = uar_buf_make(UAR_LIMIT_ERROR_TEXT);
	const struct uar_json *best = NULL;
	size_t least = wrong.n / 2 + 1;

	for (const struct uar_json *p = uar_json_first(properties); p; p = p->next) {
		size_t far = uar_str_distance(wrong, p->key);

		if (far < least) {
			least = far;
			best = p;
		}
		uar_buf_printf(&all, "%s%.*s", all.n ? ", " : "", UAR_FMT(p->key));
	}
	if (best) {
		cut_suggestion(error);
		add_hint(error, "; did you mean ", best->key);
	} else if (all.n) {
		add_hint(error, "; it takes ", uar_buf_str(&all));
	}
	uar_buf_fini(&all);
}

static uar_str quoted_in(const char *text)
{
	uar_str rest = uar_str_from(uar_str_c(text), uar_str_find(uar_str_c(text), '\'') + 1);

	return uar_str_n(rest.p, uar_str_find(rest, '\''));
}

static void hint_for(struct uar_error *error, const struct uar_json *schema)
{
	const struct uar_json *wanted = uar_json_get(schema, UAR_STR("const"));
	uar_str keyword = uar_str_c(error->text);
	uar_str doc = uar_json_text(schema, "description");

	if (uar_str_starts(keyword, UAR_STR("additionalProperties")))
		hint_names(error, uar_json_get(schema, UAR_STR("properties")),
			   quoted_in(error->text));
	else if (wanted && wanted->kind == UAR_JSON_STRING)
		add_hint(error, "; write \"", wanted->text), add_hint(error, "\"", UAR_STR(""));
	else if (doc.n && (uar_str_starts(keyword, UAR_STR("pattern")) ||
			   uar_str_starts(keyword, UAR_STR("type"))))
		add_hint(error, "; it is ", doc);
}

void uar_definition_hint(struct uar_error *error)
{
	const struct uar_json *root;
	struct uar_arena arena;

	if (!error)
		return;
	uar_arena_init(&arena, 0);
	if (!uar_json_parse(uar_definition_schema(), NULL, &arena, &root, NULL))
		hint_for(error, schema_at(root, uar_str_c(error->where)));
	uar_arena_fini(&arena);
}
