/* a2ui_made.c - interfaces that models make: artifacts of the type "a2ui".
 *
 * The content is a list of A2UI messages. One that is fit to be shown gets the surface
 * "artifact-ID"; of another one the reason is shown, never the interface. */
#include "proto/a2ui_int.h"

bool a2ui_is_made(const struct uar_json *artifact)
{
	return uar_str_is(uar_json_text(artifact, "artifact_type"), UAR_A2UI_ARTIFACT);
}

uar_err a2ui_read_made(const struct uar_json *artifact, struct uar_arena *arena,
		       const struct uar_json **out, struct uar_error *error)
{
	return uar_a2ui_check_text(uar_json_text(artifact, "content"), arena, out, error);
}

/* Members of a message of the model; its surface has another name here. */
static void put_members(struct uar_jw *w, const struct uar_json *body, uar_str catalog)
{
	for (const struct uar_json *v = body->count ? body->first : NULL; v; v = v->next) {
		if (uar_str_is(v->key, "surfaceId"))
			continue;
		uar_jw_key(w, v->key);
		if (catalog.n && uar_str_is(v->key, "catalogId"))
			uar_jw_str(w, NULL, catalog);
		else
			uar_jw_tree(w, NULL, v);
	}
}

void uar_a2ui_put_made(struct uar_jw *w, const struct uar_json *list, uar_str surface,
		       uar_str catalog)
{
	for (const struct uar_json *m = uar_json_first(list); m; m = m->next) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "version", UAR_A2UI_VERSION);
		for (const struct uar_json *v = uar_json_first(m); v; v = v->next) {
			if (v->kind != UAR_JSON_OBJECT)
				continue; /* its version */
			uar_jw_key(w, v->key);
			uar_jw_obj(w, NULL);
			uar_jw_str(w, "surfaceId", surface);
			put_members(w, v, catalog);
			uar_jw_close(w);
		}
		uar_jw_close(w);
	}
}

/* The surface has the name of the artifact, whatever the model calls it. */
static uar_err put_message(struct a2ui *a, const struct uar_json *message, uar_str surface)
{
	for (const struct uar_json *m = message->first; m; m = m->next) {
		char key[24];

		if (m->kind != UAR_JSON_OBJECT)
			continue; /* its version */
		snprintf(key, sizeof key, "%.*s", UAR_FMT(m->key));
		a2ui_open(a, key, surface);
		put_members(&a->w, m, a->o.catalog);
	}
	return a2ui_close(a);
}

uar_err a2ui_show_made(struct a2ui *a, const struct uar_json *artifact, bool again)
{
	uar_str surface = uar_arena_printf(a->scratch, "artifact-%.*s",
					   UAR_FMT(uar_json_text(artifact, "artifact_id")));
	const struct uar_json *list = NULL;
	struct uar_error error = { 0 };
	uar_err e = surface.p ? UAR_OK : UAR_ENOMEM;

	if (!e && a2ui_read_made(artifact, a->scratch, &list, &error))
		return UAR_ESKIP;
	if (!e && (again || a->rejoined))
		e = a2ui_delete(a, surface);
	for (const struct uar_json *m = list && list->count ? list->first : NULL; m && !e;
	     m = m->next)
		e = put_message(a, m, surface);
	return e;
}
