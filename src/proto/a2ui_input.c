/* a2ui_input.c - what an A2UI client says: actions, errors, and the values of forms. */
#include "proto/a2ui.h"

#include "json/jw.h"

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static uar_err refuse(struct uar_error *error, const char *where, const char *why)
{
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

/* The form's own data where the action does not carry it. */
static const struct uar_json *find_values(const struct uar_json *action,
					  const struct uar_json *model)
{
	const struct uar_json *values = member(member(action, "context"), "values");
	const struct uar_json *surface =
		uar_json_get(member(model, "surfaces"), uar_json_text(action, "surfaceId"));

	return values ? values : member(surface, "form");
}

/* Only the surface of a question offers its answers. */
static bool is_offered(const struct uar_json *action, const struct uar_a2ui_input *in)
{
	const char *kind = in->verb == UAR_A2UI_RESOLVE ? "action-" : "form-";
	uar_str surface = uar_json_text(action, "surfaceId");

	return uar_str_starts(surface, uar_str_c(kind)) &&
	       uar_str_eq(uar_str_from(surface, strlen(kind)), in->action_id);
}

static uar_err read_action(const struct uar_json *action, const struct uar_json *model,
			   struct uar_a2ui_input *out, struct uar_error *error)
{
	const struct uar_json *context = member(action, "context");
	uar_str name = uar_json_text(action, "name");

	if (uar_str_is(name, "uar.action.resolve")) {
		out->verb = UAR_A2UI_RESOLVE;
		out->action_id = uar_json_text(context, "actionId");
		out->decision = uar_json_text(context, "decision");
		if (!uar_str_is(out->decision, "allow") && !uar_str_is(out->decision, "deny"))
			return refuse(error, "/action/context/decision", "allow or deny");
	} else if (uar_str_is(name, "uar.form.submit")) {
		out->verb = UAR_A2UI_SUBMIT;
		out->action_id = uar_json_text(context, "formId");
		out->values = find_values(action, model);
		if (!out->values || out->values->kind != UAR_JSON_OBJECT)
			return refuse(error, "/action/context/values", "the values of the form");
	} else if (uar_str_is(name, "uar.form.cancel")) {
		out->verb = UAR_A2UI_CANCEL;
		out->action_id = uar_json_text(context, "formId");
	} else {
		return refuse(error, "/action/name",
			      "uar.action.resolve, uar.form.submit or uar.form.cancel");
	}
	if (!uar_str_is_id(out->action_id))
		return refuse(error, "/action/context", "the id of the action or form");
	if (!is_offered(action, out))
		return refuse(error, "/action/surfaceId",
			      "the surface that offers this: action-ACTION or form-FORM");
	if (out->values && uar_a2ui_has_unsafe(out->values))
		return refuse(error, "/action/context/values",
			      "no member may be called __proto__, constructor or prototype");
	return UAR_OK;
}

uar_err uar_a2ui_read(const struct uar_json *message, const struct uar_json *model,
		      struct uar_a2ui_input *out, struct uar_error *error)
{
	uar_str version = uar_json_text(message, "version");
	const struct uar_json *action = member(message, "action"),
			      *fault = member(message, "error");

	*out = (struct uar_a2ui_input){ 0 };
	if (!uar_str_is(version, UAR_A2UI_VERSION) && !uar_str_is(version, "v0.9.1"))
		return refuse(error, "/version", "v0.9 or v0.9.1");
	if (!action == !fault)
		return refuse(error, "", "a message is either an action or an error");
	if (action)
		return read_action(action, model, out, error);
	out->verb = UAR_A2UI_ERROR;
	out->code = uar_json_text(fault, "code");
	out->message = uar_json_text(fault, "message");
	return UAR_OK;
}

/* --- values of forms ------------------------------------------------------------------------ */

static bool is_type(const struct uar_json *schema, const char *type)
{
	return uar_str_is(uar_json_text(schema, "type"), type);
}

/* Text that is JSON of a number, a list or an object; else the text itself. */
static void put_read_text(struct uar_jw *w, uar_str text)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(text, NULL, &arena, &j, NULL) && j->kind != UAR_JSON_STRING)
		uar_jw_tree(w, NULL, j);
	else
		uar_jw_str(w, NULL, text);
	uar_arena_fini(&arena);
}

static void put_lines(struct uar_jw *w, uar_str text)
{
	uar_jw_arr(w, NULL);
	while (text.n) {
		uar_str line = uar_str_trim(uar_str_cut(text, '\n', &text));

		if (line.n)
			uar_jw_str(w, NULL, line);
	}
	uar_jw_close(w);
}

/* "2026-01-15T12:00" has no seconds and no zone. */
static void put_time(struct uar_jw *w, uar_str text)
{
	char whole[64];
	int n = snprintf(whole, sizeof whole, "%.*s:00Z", UAR_FMT(uar_str_utf8_prefix(text, 40)));

	uar_jw_str(w, NULL,
		   text.n == strlen("2026-01-15T12:00") ? uar_str_n(whole, (size_t)n) : text);
}

static void put_value(struct uar_jw *w, const struct uar_json *schema, const struct uar_json *v)
{
	if (is_type(schema, "object") && v->kind == UAR_JSON_OBJECT)
		uar_a2ui_coerce(schema, v, w);
	else if (v->kind == UAR_JSON_ARRAY && !is_type(schema, "array"))
		uar_jw_tree(w, NULL, v->first); /* one choice; an empty list was left out */
	else if (v->kind != UAR_JSON_STRING)
		uar_jw_tree(w, NULL, v);
	else if (is_type(schema, "array") && is_type(member(schema, "items"), "string"))
		put_lines(w, v->text);
	else if (is_type(schema, "string") &&
		 uar_str_is(uar_json_text(schema, "format"), "date-time"))
		put_time(w, v->text);
	else if (is_type(schema, "string") || member(schema, "enum"))
		uar_jw_str(w, NULL, v->text);
	else
		put_read_text(w, v->text);
}

static bool is_left_out(const struct uar_json *schema, const struct uar_json *v)
{
	return v->kind == UAR_JSON_NULL || (v->kind == UAR_JSON_STRING && !v->text.n) ||
	       (v->kind == UAR_JSON_ARRAY && !v->count && !is_type(schema, "array"));
}

void uar_a2ui_coerce(const struct uar_json *schema, const struct uar_json *values,
		     struct uar_jw *out)
{
	const struct uar_json *properties = member(schema, "properties");

	uar_jw_obj(out, NULL);
	for (const struct uar_json *v = values->count ? values->first : NULL; v; v = v->next) {
		const struct uar_json *s = uar_json_get(properties, v->key);

		if (is_left_out(s, v))
			continue;
		uar_jw_key(out, v->key);
		put_value(out, s, v);
	}
	uar_jw_close(out);
}
