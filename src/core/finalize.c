/* finalize.c - what a model's answer leaves behind: the conversation's memory and
 * artifacts.
 *
 * The memory of a conversation is its log: the next turn is told what the messages say
 * that such facts name. */
#include "core/emit.h"

static void remember(struct emit *e)
{
	struct uar_jw *w = uar_emit_thread_change(e, "memory", NULL);

	uar_jw_obj(w, "memory");
	uar_jw_cstr(w, "message_id", e->r->call.message_id);
	uar_jw_int(w, "bytes", e->r->call.chars);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_THREAD_UPDATED, EMIT_RUN);
}

static uar_str text_of(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

static void artifact(struct emit *e, const struct uar_json *a)
{
	struct uar_jw *w = uar_emit_begin(e);
	uar_str sha256 = text_of(a, "sha256");

	uar_jw_cstr(w, "op", "created");
	uar_jw_str(w, "artifact_type", text_of(a, "type"));
	uar_jw_str(w, "title", text_of(a, "title"));
	uar_jw_int(w, "version", 1);
	uar_jw_cstr(w, "status", "ready");
	uar_jw_str(w, "language", text_of(a, "language"));
	uar_jw_str(w, "mime", text_of(a, "mime"));
	uar_jw_int(w, "bytes", uar_json_int(uar_json_get(a, UAR_STR("bytes")), 0));
	uar_jw_str(w, "sha256", sha256);
	uar_jw_str(w, "preview", text_of(a, "preview"));
	uar_jw_int(w, "issue_count", 0);
	uar_jw_obj(w, "metadata");
	uar_jw_cstr(w, "message_id", e->r->call.message_id);
	uar_jw_close(w);
	if (uar_json_bool(uar_json_get(a, UAR_STR("is_blob")), false))
		uar_emit_refer(e, "read_ref", sha256);
	uar_emit_name(e, UAR_ID_ARTIFACT, uar_emit_id(e));
	uar_emit(e, UAR_EV_ARTIFACT_CHANGED, EMIT_RUN);
}

void uar_core_finalize(struct emit *e, uar_str artifacts)
{
	const struct uar_json *all = NULL;

	uar_emit_status(e, "finalize", UAR_STATUS_RUNNING, "Finalizing");
	if (e->r->call.message_id[0] && e->r->call.chars)
		remember(e);
	if (artifacts.n && !e->err)
		e->err = uar_json_parse(artifacts, NULL, e->env->arena, &all, e->error);
	for (const struct uar_json *a = all ? all->first : NULL; a && !e->err; a = a->next)
		artifact(e, a);
}
