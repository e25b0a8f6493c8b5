/* a2ui_parts.c - components of the run's surface, and the data that they are bound to. */
#include "proto/a2ui_int.h"

#include "event/sizes.h"

enum { TOOL_TEXT = 2000 }; /* bytes of a tool's arguments or output that are shown */

/* --- components ------------------------------------------------------------------------------ */

void a2ui_component(struct uar_jw *w, uar_str id, const char *type)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "id", id);
	uar_jw_cstr(w, "component", type);
}

void a2ui_path(struct uar_jw *w, const char *key, uar_str path)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "path", path);
	uar_jw_close(w);
}

void a2ui_text(struct uar_jw *w, uar_str id, uar_str text, const char *variant)
{
	a2ui_component(w, id, "Text");
	uar_jw_str(w, "text", text);
	if (variant)
		uar_jw_cstr(w, "variant", variant);
	uar_jw_close(w);
}

void a2ui_bound_text(struct uar_jw *w, uar_str id, uar_str path, const char *variant)
{
	a2ui_component(w, id, "Text");
	a2ui_path(w, "text", path);
	if (variant)
		uar_jw_cstr(w, "variant", variant);
	uar_jw_close(w);
}

void a2ui_button(struct uar_jw *w, uar_str id, const char *label, bool primary)
{
	char child[80];
	int n = snprintf(child, sizeof child, "%.*s_label", UAR_FMT(id));

	a2ui_text(w, uar_str_n(child, (size_t)n), uar_str_c(label), NULL);
	a2ui_component(w, id, "Button");
	uar_jw_str(w, "child", uar_str_n(child, (size_t)n));
	if (primary)
		uar_jw_cstr(w, "variant", "primary");
}

/* --- the root and its sections -------------------------------------------------------------- */

uar_str a2ui_section_id(const struct a2ui_section *s, char out[64])
{
	static const char *const names[] = {
		[A2UI_TEXT] = "answer",	    [A2UI_REASONING] = "reasoning",
		[A2UI_TOOLS] = "tools",	    [A2UI_MEMORY] = "memory",
		[A2UI_SOURCES] = "sources", [A2UI_ARTIFACT] = "artifact",
		[A2UI_FAILURE] = "failure",
	};
	int n = snprintf(out, 64, "%s%u", names[s->kind], s->number);

	return uar_str_n(out, (size_t)n);
}

void a2ui_put_root(struct a2ui *a)
{
	char id[64];

	a2ui_component(&a->w, UAR_STR("root"), "Column");
	uar_jw_arr(&a->w, "children");
	uar_jw_cstr(&a->w, NULL, "status");
	for (const struct a2ui_section *s = a->sections; s; s = s->next)
		uar_jw_str(&a->w, NULL, a2ui_section_id(s, id));
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	a2ui_bound_text(&a->w, UAR_STR("status"), UAR_STR("/status"), "caption");
}

/* "ID_SUFFIX" */
static uar_str part_id(uar_str id, const char *suffix, char out[96])
{
	int n = snprintf(out, 96, "%.*s_%s", UAR_FMT(id), suffix);

	return uar_str_n(out, (size_t)n);
}

static void put_modal(struct uar_jw *w, uar_str id, const struct a2ui_section *s)
{
	char label[96], text[96], path[32];
	int n = snprintf(path, sizeof path, "/reasoning/%u", s->number);

	a2ui_text(w, part_id(id, "label", label), UAR_STR("Reasoning"), "caption");
	a2ui_bound_text(w, part_id(id, "text", text), uar_str_n(path, (size_t)n), NULL);
	a2ui_component(w, id, "Modal");
	uar_jw_str(w, "trigger", part_id(id, "label", label));
	uar_jw_str(w, "content", part_id(id, "text", text));
	uar_jw_close(w);
}

static void put_list(struct uar_jw *w, uar_str id, uar_str item, const char *path)
{
	a2ui_component(w, id, "List");
	uar_jw_obj(w, "children");
	uar_jw_str(w, "componentId", item);
	uar_jw_cstr(w, "path", path);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_card(struct uar_jw *w, uar_str id, uar_str body, const char *const *children)
{
	a2ui_component(w, id, "Card");
	uar_jw_str(w, "child", body);
	uar_jw_close(w);
	a2ui_component(w, body, "Column");
	uar_jw_arr(w, "children");
	for (; *children; children++)
		uar_jw_cstr(w, NULL, *children);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_tools(struct uar_jw *w, uar_str id)
{
	static const char *const children[] = { "tool_name", "tool_args", "tool_output", NULL };

	put_list(w, id, UAR_STR("tool"), "/tools");
	put_card(w, UAR_STR("tool"), UAR_STR("tool_body"), children);
	a2ui_component(w, UAR_STR("tool_name"), "Text");
	uar_jw_obj(w, "text");
	uar_jw_cstr(w, "call", "formatString");
	uar_jw_obj(w, "args");
	uar_jw_cstr(w, "value", "${name} (${status})");
	uar_jw_close(w);
	uar_jw_cstr(w, "returnType", "string");
	uar_jw_close(w);
	uar_jw_close(w);
	a2ui_bound_text(w, UAR_STR("tool_args"), UAR_STR("args"), "caption");
	a2ui_bound_text(w, UAR_STR("tool_output"), UAR_STR("output"), NULL);
}

static void put_memory_list(struct uar_jw *w, uar_str id, const struct a2ui_section *s)
{
	char item[96], path[32];

	snprintf(path, sizeof path, "/memory/%u", s->number);
	put_list(w, id, part_id(id, "item", item), path);
	a2ui_bound_text(w, part_id(id, "item", item), UAR_STR("text"), "caption");
}

static void put_artifact_card(struct uar_jw *w, uar_str id, const struct a2ui_section *s)
{
	char body[96], title[96], text[96], path[64];
	const char *const children[] = { part_id(id, "title", title).p, part_id(id, "text", text).p,
					 NULL };
	int n = snprintf(path, sizeof path, "/artifacts/%u/title", s->number);

	put_card(w, id, part_id(id, "body", body), children);
	a2ui_bound_text(w, uar_str_c(title), uar_str_n(path, (size_t)n), "h4");
	n = snprintf(path, sizeof path, "/artifacts/%u/text", s->number);
	a2ui_bound_text(w, uar_str_c(text), uar_str_n(path, (size_t)n), NULL);
}

static void put_failure_row(struct uar_jw *w, uar_str id)
{
	a2ui_component(w, id, "Row");
	uar_jw_arr(w, "children");
	uar_jw_cstr(w, NULL, "failure_icon");
	uar_jw_cstr(w, NULL, "failure_text");
	uar_jw_close(w);
	uar_jw_close(w);
	a2ui_component(w, UAR_STR("failure_icon"), "Icon");
	uar_jw_cstr(w, "name", "error");
	uar_jw_close(w);
	a2ui_bound_text(w, UAR_STR("failure_text"), UAR_STR("/error"), NULL);
}

/* --- sources -------------------------------------------------------------------------------- */

static void put_source(struct uar_jw *w, uar_str id, const struct uar_json *source, unsigned k)
{
	uar_str url = uar_json_text(source, "url"), title = uar_json_text(source, "title");
	bool link =
		uar_str_starts(url, UAR_STR("https://")) || uar_str_starts(url, UAR_STR("http://"));
	char label[96], text[300];

	snprintf(text, sizeof text, "[%u] %.*s", k + 1,
		 UAR_FMT(uar_str_utf8_prefix(title.n ? title : url, 250)));
	if (!link) {
		a2ui_text(w, id, uar_str_c(text), "caption");
		return;
	}
	a2ui_text(w, part_id(id, "label", label), uar_str_c(text), "caption");
	a2ui_component(w, id, "Button");
	uar_jw_str(w, "child", uar_str_c(label));
	uar_jw_cstr(w, "variant", "borderless");
	uar_jw_obj(w, "action");
	uar_jw_obj(w, "functionCall");
	uar_jw_cstr(w, "call", "openUrl");
	uar_jw_obj(w, "args");
	uar_jw_str(w, "url", url);
	uar_jw_close(w);
	uar_jw_cstr(w, "returnType", "void");
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_close(w);
}

static uar_err put_sources(struct uar_jw *w, uar_str id, const struct a2ui_section *s)
{
	struct uar_arena arena;
	const struct uar_json *list = NULL;
	char item[96], suffix[16];
	unsigned k = 0;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(s->json, NULL, &arena, &list, NULL);
	if (!e) {
		a2ui_component(w, id, "Column");
		uar_jw_arr(w, "children");
		for (; k < list->count; k++) {
			snprintf(suffix, sizeof suffix, "%u", k);
			uar_jw_str(w, NULL, part_id(id, suffix, item));
		}
		uar_jw_close(w);
		uar_jw_close(w);
		k = 0;
		for (const struct uar_json *j = list->count ? list->first : NULL; j; j = j->next) {
			snprintf(suffix, sizeof suffix, "%u", k);
			put_source(w, part_id(id, suffix, item), j, k);
			k++;
		}
	}
	uar_arena_fini(&arena);
	return e;
}

uar_err a2ui_put_section(struct a2ui *a, const struct a2ui_section *s)
{
	char name[64], path[32];
	uar_str id = a2ui_section_id(s, name);
	struct uar_jw *w = &a->w;
	int n;

	switch (s->kind) {
	case A2UI_TEXT:
		n = snprintf(path, sizeof path, "/text/%u", s->number);
		a2ui_bound_text(w, id, uar_str_n(path, (size_t)n), NULL);
		break;
	case A2UI_REASONING: put_modal(w, id, s); break;
	case A2UI_TOOLS: put_tools(w, id); break;
	case A2UI_MEMORY: put_memory_list(w, id, s); break;
	case A2UI_SOURCES: return put_sources(w, id, s);
	case A2UI_ARTIFACT: put_artifact_card(w, id, s); break;
	case A2UI_FAILURE: put_failure_row(w, id); break;
	}
	return UAR_OK;
}

/* --- data ----------------------------------------------------------------------------------- */

static const struct uar_view_message *find_result(const struct a2ui *a,
						  const struct uar_view_call *call)
{
	const struct uar_view_message *m = a->view.first;

	while (m && (m->kind != UAR_VIEW_RESULT || m->call != call))
		m = m->next;
	return m;
}

/* What it said last while it worked, as its activity keeps it. */
static uar_str find_progress(const struct a2ui *a, const struct uar_view_call *call)
{
	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		if (m->kind == UAR_VIEW_ACTIVITY && uar_str_is(m->activity_type, "uar.tool") &&
		    uar_str_eq(uar_str_from(m->id, strlen("tool:")), call->id))
			return uar_buf_str(&m->text);
	return UAR_STR("");
}

static void put_output(struct uar_jw *w, const struct a2ui *a, const struct uar_view_call *call,
		       const struct uar_view_message *result)
{
	uar_str text = result ? uar_buf_str(&result->text) : find_progress(a, call);
	const struct uar_json *j = NULL, *delta;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!result && text.n && !uar_json_parse(text, NULL, &arena, &j, NULL)) {
		delta = uar_json_get(j, UAR_STR("delta"));
		text = delta ? delta->text : UAR_STR("");
	}
	uar_jw_str(w, "output", uar_str_utf8_prefix(text, TOOL_TEXT));
	uar_arena_fini(&arena);
}

void a2ui_put_tool(struct uar_jw *w, const char *key, const struct a2ui *a,
		   const struct uar_view_call *call)
{
	const struct uar_view_message *result = find_result(a, call);

	uar_jw_obj(w, key);
	uar_jw_str(w, "id", call->id);
	uar_jw_str(w, "name", call->name);
	uar_jw_str(w, "args", uar_str_utf8_prefix(uar_buf_str(&call->args), TOOL_TEXT));
	uar_jw_cstr(w, "status", !result ? "running" : result->error.n ? "error" : "ok");
	put_output(w, a, call, result);
	uar_jw_close(w);
}

static void put_memory_item(struct uar_jw *w, const struct uar_json *item)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_str key = uar_json_text(item, "key");
	const struct uar_json *value = uar_json_get(item, UAR_STR("value"));

	if (key.n) {
		uar_buf_add_str(&b, key);
		uar_buf_add_str(&b, UAR_STR(": "));
	}
	if (!value)
		value = uar_json_get(item, UAR_STR("text"));
	if (!value)
		value = item;
	if (value->kind == UAR_JSON_STRING)
		uar_buf_add_str(&b, value->text);
	else
		uar_json_write(&b, value);
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "text", uar_buf_str(&b));
	uar_jw_close(w);
	uar_buf_fini(&b);
}

uar_err a2ui_put_memory(struct uar_jw *w, const char *key, const struct uar_view_message *m)
{
	struct uar_arena arena;
	const struct uar_json *j = NULL, *items;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(uar_buf_str(&m->text), NULL, &arena, &j, NULL);
	items = uar_json_get(j, UAR_STR("items"));
	uar_jw_arr(w, key);
	for (const struct uar_json *i = items && items->count ? items->first : NULL; i; i = i->next)
		put_memory_item(w, i);
	uar_jw_close(w);
	uar_arena_fini(&arena);
	return e;
}

/* Code of any kind is shown as it is written, never executed. */
uar_err a2ui_put_artifact(struct uar_jw *w, const char *key, const struct uar_view_message *m)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	struct uar_arena arena;
	const struct uar_json *j = NULL, *made;
	struct uar_error error = { 0 };
	uar_str type, language;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(uar_buf_str(&m->text), NULL, &arena, &j, NULL);
	type = uar_json_text(j, "artifact_type");
	language = uar_json_text(j, "language");
	if (a2ui_is_made(j) && a2ui_read_made(j, &arena, &made, &error)) {
		uar_buf_printf(&b, "This interface is not shown: %s: %s", error.where,
			       uar_error_text(&error));
	} else if (uar_str_is(type, "markdown") || uar_str_is(type, "text")) {
		uar_buf_add_str(&b, uar_json_text(j, "content"));
	} else {
		uar_buf_add_str(&b, UAR_STR("```"));
		uar_buf_add_str(&b, language.n ? language : type);
		uar_buf_add_char(&b, '\n');
		uar_buf_add_str(&b, uar_json_text(j, "content"));
		uar_buf_add_str(&b, UAR_STR("\n```"));
	}
	uar_jw_obj(w, key);
	uar_jw_str(w, "title", uar_json_text(j, "title"));
	uar_jw_str(w, "text", uar_buf_str(&b));
	uar_jw_close(w);
	e = e ? e : b.err;
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
	return e;
}

/* The values of all sections of a kind; a message that was taken back leaves an empty one. */
static uar_err put_values(struct a2ui *a, const char *key, enum a2ui_kind kind)
{
	unsigned next = 0;
	uar_err e = UAR_OK;

	uar_jw_arr(&a->w, key);
	for (const struct a2ui_section *s = a->sections; s && !e; s = s->next) {
		if (s->kind != kind)
			continue;
		for (; next < s->number; next++)
			uar_jw_cstr(&a->w, NULL, "");
		next++;
		if (kind == A2UI_MEMORY)
			e = a2ui_put_memory(&a->w, NULL, s->message);
		else if (kind == A2UI_ARTIFACT)
			e = a2ui_put_artifact(&a->w, NULL, s->message);
		else
			uar_jw_str(&a->w, NULL, uar_buf_str(&s->message->text));
	}
	uar_jw_close(&a->w);
	return e;
}

uar_err a2ui_put_model(struct a2ui *a, const char *key)
{
	static const struct {
		const char *key;
		enum a2ui_kind kind;
	} lists[] = { { "text", A2UI_TEXT },
		      { "reasoning", A2UI_REASONING },
		      { "memory", A2UI_MEMORY },
		      { "artifacts", A2UI_ARTIFACT } };
	uar_err e = UAR_OK;

	uar_jw_obj(&a->w, key);
	uar_jw_cstr(&a->w, "status", a->status);
	for (size_t i = 0; i < ARRAY_LEN(lists) && !e; i++)
		e = put_values(a, lists[i].key, lists[i].kind);
	uar_jw_arr(&a->w, "tools");
	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		for (const struct uar_view_call *c = m->calls; c; c = c->next)
			a2ui_put_tool(&a->w, NULL, a, c);
	uar_jw_close(&a->w);
	uar_jw_str(&a->w, "error", a->view.end_message.n ? a->view.end_message : UAR_STR(""));
	uar_jw_close(&a->w);
	return e;
}
