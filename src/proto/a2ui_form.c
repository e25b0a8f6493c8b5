/* a2ui_form.c - a question of a run as a surface: a form from a JSON Schema, or buttons. */
#include "proto/a2ui_int.h"

/* --- surfaces ------------------------------------------------------------------------------- */

static bool is_form(const struct uar_view_action *action)
{
	return action->schema.n && !uar_str_is(action->type, "tool_permission") &&
	       !uar_str_is(action->type, "policy") && !uar_str_is(action->type, "client_tool");
}

uar_str a2ui_action_surface(struct uar_arena *arena, const struct uar_view_action *action)
{
	return uar_arena_printf(arena, "%s-%.*s", is_form(action) ? "form" : "action",
				UAR_FMT(action->id));
}

static void open_event(struct uar_jw *w, const char *name)
{
	uar_jw_obj(w, "action");
	uar_jw_obj(w, "event");
	uar_jw_cstr(w, "name", name);
	uar_jw_obj(w, "context");
}

/* The button that it belongs to, too. */
static void close_event(struct uar_jw *w)
{
	for (int i = 0; i < 4; i++)
		uar_jw_close(w);
}

static void put_decision(struct a2ui *a, const struct uar_view_action *action, const char *id,
			 const char *label, const char *decision)
{
	a2ui_button(&a->w, uar_str_c(id), label, strcmp(decision, "allow") == 0);
	open_event(&a->w, "uar.action.resolve");
	uar_jw_str(&a->w, "actionId", action->id);
	uar_jw_cstr(&a->w, "decision", decision);
	close_event(&a->w);
}

static void put_column(struct uar_jw *w, const char *id, const char *type,
		       const char *const *children)
{
	a2ui_component(w, uar_str_c(id), type);
	uar_jw_arr(w, "children");
	for (; *children; children++)
		uar_jw_cstr(w, NULL, *children);
	uar_jw_close(w);
	uar_jw_close(w);
}

static uar_err show_approval(struct a2ui *a, const struct uar_view_action *action, uar_str surface)
{
	static const char *const parts[] = { "prompt", "input", "buttons", NULL };
	static const char *const buttons[] = { "approve", "deny", NULL };

	a2ui_open_components(a, surface);
	put_column(&a->w, "root", "Column", parts);
	a2ui_text(&a->w, UAR_STR("prompt"), action->prompt.n ? action->prompt : action->type, NULL);
	a2ui_bound_text(&a->w, UAR_STR("input"), UAR_STR("/input"), "caption");
	put_column(&a->w, "buttons", "Row", buttons);
	put_decision(a, action, "approve", "Approve", "allow");
	put_decision(a, action, "deny", "Deny", "deny");
	return a2ui_close_components(a);
}

static void put_submit(struct a2ui *a, const struct uar_view_action *action,
		       const struct uar_json *schema)
{
	a2ui_button(&a->w, UAR_STR("submit"), "Submit", true);
	uar_jw_arr(&a->w, "checks");
	a2ui_put_field_checks(&a->w, schema);
	uar_jw_close(&a->w);
	open_event(&a->w, "uar.form.submit");
	uar_jw_str(&a->w, "formId", action->id);
	uar_jw_str(&a->w, "runId", a->view.run_id);
	a2ui_path(&a->w, "values", UAR_STR("/form"));
	close_event(&a->w);
	a2ui_button(&a->w, UAR_STR("cancel"), "Cancel", false);
	open_event(&a->w, "uar.form.cancel");
	uar_jw_str(&a->w, "formId", action->id);
	uar_jw_str(&a->w, "runId", a->view.run_id);
	close_event(&a->w);
}

static uar_err show_form(struct a2ui *a, const struct uar_view_action *action, uar_str surface,
			 const struct uar_json *schema)
{
	static const char *const buttons[] = { "submit", "cancel", NULL };
	uar_str title = uar_json_text(schema, "title");

	a2ui_open_components(a, surface);
	a2ui_component(&a->w, UAR_STR("root"), "Column");
	uar_jw_arr(&a->w, "children");
	uar_jw_cstr(&a->w, NULL, "prompt");
	a2ui_put_field_ids(&a->w, schema);
	uar_jw_cstr(&a->w, NULL, "errors");
	uar_jw_cstr(&a->w, NULL, "buttons");
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	a2ui_text(&a->w, UAR_STR("prompt"),
		  action->prompt.n ? action->prompt
		  : title.n	   ? title
				   : UAR_STR("Input"),
		  "h4");
	a2ui_put_fields(&a->w, schema);
	a2ui_bound_text(&a->w, UAR_STR("errors"), UAR_STR("/errors"), "caption");
	put_column(&a->w, "buttons", "Row", buttons);
	put_submit(a, action, schema);
	return a2ui_close_components(a);
}

static uar_err put_form_data(struct a2ui *a, uar_str surface, const struct uar_json *schema)
{
	a2ui_open(a, "updateDataModel", surface);
	uar_jw_cstr(&a->w, "path", "/");
	uar_jw_obj(&a->w, "value");
	uar_jw_key(&a->w, UAR_STR("form"));
	a2ui_put_field_values(&a->w, schema);
	uar_jw_cstr(&a->w, "errors", "");
	uar_jw_close(&a->w);
	return a2ui_close(a);
}

static uar_err put_approval_data(struct a2ui *a, uar_str surface,
				 const struct uar_view_action *action)
{
	a2ui_open(a, "updateDataModel", surface);
	uar_jw_cstr(&a->w, "path", "/");
	uar_jw_obj(&a->w, "value");
	uar_jw_str(&a->w, "input", action->input.n ? action->input : UAR_STR(""));
	uar_jw_close(&a->w);
	return a2ui_close(a);
}

uar_err a2ui_ask(struct a2ui *a, const struct uar_view_action *action)
{
	uar_str surface = a2ui_action_surface(a->scratch, action);
	const struct uar_json *schema = NULL;
	bool form = is_form(action);
	uar_err e = surface.p ? UAR_OK : UAR_ENOMEM;

	if (!e && form)
		e = uar_json_parse(action->schema, NULL, a->scratch, &schema, NULL);
	if (!e)
		e = a2ui_create(a, surface, form);
	if (!e)
		e = form ? put_form_data(a, surface, schema)
			 : put_approval_data(a, surface, action);
	if (e)
		return e;
	return form ? show_form(a, action, surface, schema) : show_approval(a, action, surface);
}
