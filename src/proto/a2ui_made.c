/* a2ui_made.c - interfaces that models make: artifacts of the type "a2ui".
 *
 * The content is a list of A2UI messages. One that is fit to be shown gets the surface
 * "artifact-ID"; of another one the reason is shown, never the interface. */
#include "proto/a2ui_int.h"

static uar_str text_member(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

bool a2ui_is_made(const struct uar_json *artifact)
{
	return uar_str_is(text_member(artifact, "artifact_type"), "a2ui");
}

uar_err a2ui_read_made(const struct uar_json *artifact, struct uar_arena *arena,
		       const struct uar_json **out, struct uar_error *error)
{
	uar_err e = uar_json_parse(text_member(artifact, "content"), NULL, arena, out, error);

	return e ? e : uar_a2ui_check(*out, error);
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
		for (const struct uar_json *v = m->count ? m->first : NULL; v; v = v->next) {
			if (uar_str_is(v->key, "surfaceId"))
				continue;
			uar_jw_key(&a->w, v->key);
			uar_jw_tree(&a->w, NULL, v);
		}
	}
	return a2ui_close(a);
}

uar_err a2ui_show_made(struct a2ui *a, const struct uar_json *artifact, bool again)
{
	uar_str surface = uar_arena_printf(a->scratch, "artifact-%.*s",
					   UAR_FMT(text_member(artifact, "artifact_id")));
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
