/* agui_surface.c - interfaces that models make, as activities that clients of A2UI render.
 *
 * Each is told whole: such clients restore it from history, and replace what they have. */
#include "proto/agui_int.h"

#include "base/sizes.h"
#include "proto/a2ui.h"

#define COPILOT_CATALOG "https://a2ui.org/specification/v0_9/basic_catalog.json"

static void put_content(struct agui *a, uar_str artifact_id, const struct uar_json *messages)
{
	uar_str catalog = a->o.catalog.n ? a->o.catalog : UAR_STR(COPILOT_CATALOG);
	char surface[UAR_LIMIT_ID_BYTES + 16], id[UAR_LIMIT_ID_BYTES + 32];
	int n = snprintf(surface, sizeof surface, "artifact-%.*s",
			 UAR_FMT(uar_str_utf8_prefix(artifact_id, UAR_LIMIT_ID_BYTES)));

	snprintf(id, sizeof id, "a2ui-surface-%s", surface);
	uar_jw_cstr(&a->w, a->in_list ? "id" : "messageId", id);
	if (a->in_list)
		uar_jw_cstr(&a->w, "role", "activity");
	uar_jw_cstr(&a->w, "activityType", "a2ui-surface");
	uar_jw_obj(&a->w, "content");
	uar_jw_arr(&a->w, "a2ui_operations");
	uar_a2ui_put_made(&a->w, messages, uar_str_n(surface, (size_t)n), catalog);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
}

uar_err agui_surface(struct agui *a, const struct uar_view_message *m)
{
	const struct uar_json *artifact = NULL, *messages = NULL;
	struct uar_arena arena;
	uar_err e = UAR_OK;

	if (!uar_str_is(m->activity_type, "uar.artifact"))
		return UAR_OK;
	uar_arena_init(&arena, 0);
	if (uar_json_parse(uar_buf_str(&m->text), NULL, &arena, &artifact, NULL) ||
	    !uar_str_is(uar_json_text(artifact, "artifact_type"), UAR_A2UI_ARTIFACT) ||
	    uar_a2ui_check_text(uar_json_text(artifact, "content"), &arena, &messages, NULL)) {
		uar_arena_fini(&arena);
		return UAR_OK;
	}
	if (a->in_list) {
		uar_jw_obj(&a->w, NULL);
		put_content(a, uar_json_text(artifact, "artifact_id"), messages);
		uar_jw_close(&a->w);
	} else {
		agui_open(a, "artifact", "ACTIVITY_SNAPSHOT");
		put_content(a, uar_json_text(artifact, "artifact_id"), messages);
		e = agui_close(a);
	}
	uar_arena_fini(&arena);
	return e;
}
