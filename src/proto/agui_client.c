/* agui_client.c - reads what a RunAgentInput adds to the message: tools, context, results. */
#include "proto/agui_int.h"

#include "event/a2ui.h"
#include "event/sizes.h"
#include "json/limits.h"
#include "json/schema.h"
#include "proto/attachment.h"
#include "proto/client_tool.h"
#include "proto/limits.h"

static const struct uar_json *find_member(const struct uar_json *j, const char *key)
{
	const struct uar_json *m = uar_json_get(j, uar_str_c(key));

	return m && m->kind == UAR_JSON_NULL ? NULL : m;
}

static uar_str text_member(const struct uar_json *j, const char *key)
{
	return uar_json_str(find_member(j, key), UAR_STR(""));
}

static const struct uar_json *first_of(const struct uar_json *list)
{
	return list && list->kind == UAR_JSON_ARRAY ? uar_json_first(list) : NULL;
}

/* --- tools ------------------------------------------------------------------------------- */

uar_err uar_client_tool_check(const struct uar_json *tool, const struct uar_json *parameters,
			      unsigned index, struct uar_error *error)
{
	struct uar_schema *schema = NULL;
	struct uar_error found = { 0 };
	uar_str name = text_member(tool, "name");
	uar_err e = UAR_OK;

	uar_error_where(error, "/tools/%u", index);
	if (index >= UAR_LIMIT_CLIENT_TOOLS)
		return uar_error_set(error, UAR_ETOOBIG, "at most %d tools of a client",
				     UAR_LIMIT_CLIENT_TOOLS);
	if (!name.n || name.n > UAR_LIMIT_TOOL_NAME)
		return uar_error_set(error, UAR_EINVALID, "a tool has a name of 1 to %d bytes",
				     UAR_LIMIT_TOOL_NAME);
	if (parameters && parameters->kind == UAR_JSON_OBJECT)
		e = uar_schema_create(parameters, NULL, &schema, &found);
	uar_schema_destroy(schema);
	if (e)
		return uar_error_set(error, UAR_EINVALID, "the parameters are no JSON Schema: %s",
				     uar_error_text(&found));
	uar_error_clear(error);
	return UAR_OK;
}

void uar_client_tool_put(struct uar_jw *w, const struct uar_json *tool)
{
	const struct uar_json *parameters = find_member(tool, "parameters");

	uar_jw_obj(w, NULL);
	uar_jw_str(w, "name", text_member(tool, "name"));
	uar_jw_str(w, "description", text_member(tool, "description"));
	if (parameters && parameters->kind == UAR_JSON_OBJECT)
		uar_jw_tree(w, "parameters", parameters);
	uar_jw_close(w);
}

static uar_err put_tools(const struct uar_json *list, struct uar_jw *w, struct uar_error *error)
{
	unsigned n = 0;
	uar_err e = UAR_OK;

	uar_jw_arr(w, "tools");
	for (const struct uar_json *t = first_of(list); t && !e; t = t->next) {
		e = uar_client_tool_check(t, find_member(t, "parameters"), n++, error);
		if (!e)
			uar_client_tool_put(w, t);
	}
	uar_jw_close(w);
	return e;
}

/* --- what is said besides ------------------------------------------------------------------ */

static void put_said(struct uar_jw *w, uar_str text)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "role", "system");
	uar_jw_str(w, "text", text);
	uar_jw_close(w);
}

static bool is_instruction(const struct uar_json *message)
{
	uar_str role = text_member(message, "role");

	return uar_str_is(role, "system") || uar_str_is(role, "developer");
}

/* What the client calls its state, when there is anything in it. */
static const struct uar_json *find_state(const struct uar_json *body)
{
	const struct uar_json *state = find_member(body, "state");

	return state && state->kind == UAR_JSON_OBJECT && state->count ? state : NULL;
}

static uar_err put_state(const struct uar_json *state, struct uar_arena *arena, struct uar_jw *w)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_str said;

	uar_buf_add_str(&b, UAR_STR("State that you share with the user's application; the tool "
				    "state.merge changes it:\n"));
	uar_json_write(&b, state);
	said = b.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	if (said.p)
		put_said(w, said);
	return said.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err put_before(const struct uar_json *body, struct uar_arena *arena, struct uar_jw *w)
{
	uar_jw_arr(w, "before");
	for (const struct uar_json *m = first_of(find_member(body, "messages")); m; m = m->next)
		if (is_instruction(m) && text_member(m, "content").n)
			put_said(w, text_member(m, "content"));
	for (const struct uar_json *c = first_of(find_member(body, "context")); c; c = c->next) {
		uar_str said = uar_arena_printf(arena, "%.*s:\n%.*s",
						UAR_FMT(text_member(c, "description")),
						UAR_FMT(text_member(c, "value")));

		if (!said.p)
			return UAR_ENOMEM;
		put_said(w, said);
	}
	if (find_state(body) && put_state(find_state(body), arena, w))
		return UAR_ENOMEM;
	uar_jw_close(w);
	return UAR_OK;
}

/* A client that renders A2UI says with which catalog. */
static void read_catalog(const struct uar_json *body, struct uar_arena *arena,
			 struct uar_agui_input *out)
{
	for (const struct uar_json *c = first_of(find_member(body, "context")); c; c = c->next) {
		const struct uar_json *value = NULL;
		uar_str id;

		if (!uar_str_starts(text_member(c, "description"),
				    UAR_STR("A2UI Component Schema")) ||
		    uar_json_parse(text_member(c, "value"), NULL, arena, &value, NULL))
			continue;
		id = text_member(value, "catalogId");
		if (uar_a2ui_knows_catalog(id))
			out->catalog = id;
	}
}

/* --- images and files ---------------------------------------------------------------------- */

/* Sources are data, an address, or a handle of somebody else's; the last are passed over. */
static bool read_source(const struct uar_json *part, struct uar_attachment *a)
{
	const struct uar_json *source = find_member(part, "source");
	uar_str type = text_member(source, "type"), value = text_member(source, "value");

	a->media_type = text_member(source, "mimeType");
	a->name = text_member(find_member(part, "metadata"), "filename");
	if (uar_str_is(type, "url"))
		return uar_attachment_take_url(a, value);
	a->data = value;
	return uar_str_is(type, "data") && uar_attachment_is_usable(a);
}

/* Parts of before version 1.0. */
static bool read_binary(const struct uar_json *part, struct uar_attachment *a)
{
	uar_str url = text_member(part, "url");

	a->media_type = text_member(part, "mimeType");
	a->name = text_member(part, "filename");
	a->image = uar_str_starts(a->media_type, UAR_STR("image/"));
	if (url.n)
		return uar_attachment_take_url(a, url);
	a->data = text_member(part, "data");
	return uar_attachment_is_usable(a);
}

/* What no model could be given is passed over. */
static bool read_part(const struct uar_json *part, struct uar_attachment *a)
{
	uar_str type = text_member(part, "type");

	*a = (struct uar_attachment){ .image = uar_str_is(type, "image") };
	if (uar_str_is(type, "binary"))
		return read_binary(part, a);
	return (a->image || uar_str_is(type, "document")) && read_source(part, a);
}

static const struct uar_json *last_content(const struct uar_json *body)
{
	const struct uar_json *last = NULL;

	if (find_member(find_member(body, "forwardedProps"), "a2uiAction"))
		return NULL; /* that is the message */
	for (const struct uar_json *m = first_of(find_member(body, "messages")); m; m = m->next)
		if (uar_str_is(text_member(m, "role"), "user"))
			last = find_member(m, "content");
	return last;
}

static bool has_attachments(const struct uar_json *body)
{
	struct uar_attachment a;

	for (const struct uar_json *p = first_of(last_content(body)); p; p = p->next)
		if (read_part(p, &a))
			return true;
	return false;
}

static void put_attachments(const struct uar_json *body, struct uar_jw *w)
{
	struct uar_attachment a;

	uar_jw_arr(w, "attachments");
	for (const struct uar_json *p = first_of(last_content(body)); p; p = p->next)
		if (read_part(p, &a))
			uar_attachment_put(w, &a);
	uar_jw_close(w);
}

static bool says_something(const struct uar_json *body)
{
	if (first_of(find_member(body, "tools")) || first_of(find_member(body, "context")) ||
	    has_attachments(body) || find_state(body))
		return true;
	for (const struct uar_json *m = first_of(find_member(body, "messages")); m; m = m->next)
		if (is_instruction(m))
			return true;
	return false;
}

/* --- results ------------------------------------------------------------------------------- */

static const struct uar_json *last_with_calls(const struct uar_json *messages)
{
	const struct uar_json *last = NULL;

	for (const struct uar_json *m = first_of(messages); m; m = m->next)
		if (first_of(find_member(m, "toolCalls")))
			last = m;
	return last;
}

static bool has_call(const struct uar_json *message, uar_str call_id)
{
	for (const struct uar_json *c = first_of(find_member(message, "toolCalls")); c; c = c->next)
		if (uar_str_eq(text_member(c, "id"), call_id))
			return true;
	return false;
}

enum uar_agui_last uar_agui_last_message(const struct uar_json *body, uar_str call_id)
{
	const struct uar_json *last = NULL;
	bool called = false;

	for (const struct uar_json *m = first_of(find_member(body, "messages")); m; m = m->next) {
		called = called || has_call(m, call_id);
		last = m;
	}
	if (!uar_str_is(text_member(last, "role"), "user"))
		return UAR_AGUI_NOT_USER;
	return called ? UAR_AGUI_AFTER_CALL : UAR_AGUI_ALONE;
}

static struct uar_client_result *read_result(const struct uar_json *m, struct uar_arena *arena)
{
	struct uar_client_result *r = uar_arena_alloc(arena, sizeof *r);
	struct uar_json *value = uar_arena_alloc(arena, sizeof *value);
	uar_str text;

	if (!r || !value || agui_content_text(m, arena, &text))
		return NULL;
	*value = (struct uar_json){ .kind = UAR_JSON_STRING, .text = text };
	*r = (struct uar_client_result){ .call_id = text_member(m, "toolCallId"),
					 .value = value,
					 .error = text_member(m, "error") };
	return r;
}

static uar_err read_results(const struct uar_json *body, struct uar_arena *arena,
			    struct uar_agui_input *out)
{
	const struct uar_json *m = last_with_calls(find_member(body, "messages"));
	const struct uar_client_result **at = &out->results;
	struct uar_client_result *r, *last = NULL;

	bool called = m != NULL; /* a client may send the results alone */

	for (m = m ? m->next : first_of(find_member(body, "messages")); m; m = m->next) {
		uar_str role = text_member(m, "role");

		if (uar_str_is(role, "user"))
			out->asks_after = called || last;
		if (!uar_str_is(role, "tool"))
			continue;
		r = read_result(m, arena);
		if (!r)
			return UAR_ENOMEM;
		if (last)
			last->next = r;
		else
			*at = r;
		last = r;
	}
	return UAR_OK;
}

uar_err uar_agui_client_read(const struct uar_json *body, struct uar_arena *arena,
			     struct uar_agui_input *out, struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e = read_results(body, arena, out), end;

	read_catalog(body, arena, out);
	if (e || !says_something(body))
		return e;
	uar_jw_obj(&w, NULL);
	e = put_before(body, arena, &w);
	if (!e)
		e = put_tools(find_member(body, "tools"), &w, error);
	if (!e && find_state(body))
		uar_jw_tree(&w, "state", find_state(body));
	if (!e && has_attachments(body)) {
		put_attachments(body, &w);
		if (!out->message.n)
			out->message = UAR_STR(UAR_ATTACHED);
	}
	uar_jw_close(&w);
	end = uar_jw_end(&w);
	if (!e)
		e = end;
	if (!e) {
		out->client = uar_arena_str(arena, uar_buf_str(&b));
		e = out->client.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}
