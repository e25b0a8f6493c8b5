/* mcp_question.c - what a run asks people for, as clients of MCP are asked, and their answers.
 *
 * A question is called by its kind and the id of its action, so that an answer can be taken
 * without what was asked. */
#include "gate/mcp_int.h"

#define ALLOW_KEY "allow:"
#define FORM_KEY  "form:"

/* --- questions ------------------------------------------------------------------------------ */

static bool is_flat(const struct uar_json *property)
{
	static const char *const types[] = { "string", "number", "integer", "boolean" };
	uar_str type = uar_json_text(property, "type");

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (uar_str_is(type, types[i]))
			return true;
	return false;
}

/* Clients show one level of simple values, and no secrets. */
static bool is_form(const struct uar_json *schema)
{
	const struct uar_json *all = uar_json_get(schema, UAR_STR("properties"));

	for (const struct uar_json *j = uar_json_first(all); j; j = j->next)
		if (!is_flat(j) || uar_json_bool(uar_json_get(j, UAR_STR("writeOnly")), false) ||
		    uar_json_bool(uar_json_get(j, UAR_STR("x-sensitive")), false))
			return false;
	return uar_json_first(all) != NULL;
}

static const struct uar_json *parse(uar_str text, struct uar_arena *scratch)
{
	const struct uar_json *j;

	return text.n && !uar_json_parse(text, NULL, scratch, &j, NULL) ? j : NULL;
}

bool mcp_question_fits(const struct uar_view_action *a, struct uar_arena *scratch)
{
	if (uar_str_is(a->type, "form"))
		return is_form(parse(a->schema, scratch));
	return uar_str_is(a->type, "tool_permission");
}

static void put_permission_schema(struct uar_jw *w)
{
	uar_jw_raw(w, "requestedSchema",
		   UAR_STR("{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\","
			   "\"title\":\"May it be done?\",\"enum\":[\"allow\",\"deny\"]}},"
			   "\"required\":[\"decision\"]}"));
}

/* type, properties and required are what clients take. */
static void put_form_schema(struct uar_jw *w, const struct uar_json *schema)
{
	const struct uar_json *required = uar_json_get(schema, UAR_STR("required"));

	uar_jw_obj(w, "requestedSchema");
	uar_jw_cstr(w, "type", "object");
	uar_jw_tree(w, "properties", uar_json_get(schema, UAR_STR("properties")));
	if (required)
		uar_jw_tree(w, "required", required);
	uar_jw_close(w);
}

void mcp_put_question(struct uar_jw *w, const struct uar_view_action *a, struct uar_arena *scratch)
{
	char key[UAR_LIMIT_ID_BYTES + sizeof ALLOW_KEY];

	snprintf(key, sizeof key, "%s%.*s", uar_str_is(a->type, "form") ? FORM_KEY : ALLOW_KEY,
		 UAR_FMT(a->id));
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "method", "elicitation/create");
	uar_jw_obj(w, "params");
	uar_jw_cstr(w, "mode", "form");
	uar_jw_str(w, "message", a->prompt.n ? a->prompt : UAR_STR("An answer is needed."));
	if (uar_str_is(a->type, "form"))
		put_form_schema(w, parse(a->schema, scratch));
	else
		put_permission_schema(w);
	uar_jw_close(w);
	uar_jw_close(w);
}

/* --- answers -------------------------------------------------------------------------------- */

/* accept, decline, cancel; who cancels leaves the question to the inbox. */
static uar_err read_reply(const struct uar_json *j, struct uar_arena *arena, struct uar_list *out)
{
	uar_str action = uar_json_text(j, "action");
	const struct uar_json *content = uar_json_get(j, UAR_STR("content"));
	uar_str decision = uar_json_str(uar_json_get(content, UAR_STR("decision")), UAR_STR_NONE);
	bool accepted = uar_str_is(action, "accept"), form;
	struct mcp_reply *a;

	form = uar_str_starts(j->key, UAR_STR(FORM_KEY));
	if ((!form && !uar_str_starts(j->key, UAR_STR(ALLOW_KEY))) ||
	    (!accepted && !uar_str_is(action, "decline")))
		return UAR_OK;
	a = uar_arena_alloc(arena, sizeof *a);
	if (!a)
		return UAR_ENOMEM;
	a->action_id = uar_arena_str(
		arena, uar_str_from(j->key, form ? sizeof FORM_KEY - 1 : sizeof ALLOW_KEY - 1));
	if (form) {
		a->decision = accepted ? UAR_STR("submit") : UAR_STR("decline");
		a->values = accepted ? content : NULL;
	} else {
		a->decision = accepted && uar_str_is(decision, "allow") ? UAR_STR("allow")
									: UAR_STR("deny");
	}
	if (!a->action_id.p)
		return UAR_ENOMEM;
	uar_list_add_last(out, &a->node);
	return UAR_OK;
}

uar_err mcp_replies_read(const struct uar_json *answers, struct uar_arena *arena,
			 struct uar_list *out)
{
	uar_err e = UAR_OK;

	for (const struct uar_json *j = uar_json_first(answers); j && !e; j = j->next)
		e = read_reply(j, arena, out);
	return e;
}
