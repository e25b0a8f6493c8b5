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

static void put_member(struct uar_jw *w, const struct uar_json *m)
{
	uar_jw_key(w, m->key);
	uar_jw_tree(w, NULL, m);
}

/* Where it comes from: a message, or a tool call with what that says about it. */
static void put_metadata(const struct emit *e, struct uar_jw *w, const struct uar_json *a,
			 uar_str call_id)
{
	const struct uar_json *more = uar_json_get(a, UAR_STR("metadata"));

	uar_jw_obj(w, "metadata");
	for (const struct uar_json *m = uar_json_first(more); m; m = m->next)
		if (!uar_str_is(m->key, "message_id") && !uar_str_is(m->key, "tool_call_id"))
			put_member(w, m);
	if (e->r->call.message_id[0])
		uar_jw_cstr(w, "message_id", e->r->call.message_id);
	if (call_id.n)
		uar_jw_str(w, "tool_call_id", call_id);
	uar_jw_close(w);
}

/* call_id: of the tool that made it; empty: it is a block of the answer. */
static void artifact(struct emit *e, const struct uar_json *a, uar_str call_id)
{
	struct uar_jw *w = uar_emit_begin(e);
	uar_str sha256 = uar_json_text(a, "sha256"), id = uar_json_text(a, "artifact_id");
	int64_t version = uar_json_int(uar_json_get(a, UAR_STR("version")), 1);

	uar_jw_cstr(w, "op", version > 1 ? "version_created" : "created");
	uar_jw_str(w, "artifact_type", uar_json_text(a, "type"));
	uar_jw_str(w, "title", uar_json_text(a, "title"));
	uar_jw_int(w, "version", version);
	uar_jw_cstr(w, "status", "ready");
	uar_jw_str(w, "language", uar_json_text(a, "language"));
	uar_jw_str(w, "mime", uar_json_text(a, "mime"));
	uar_jw_int(w, "bytes", uar_json_int(uar_json_get(a, UAR_STR("bytes")), 0));
	uar_jw_str(w, "sha256", sha256);
	uar_jw_str(w, "preview", uar_json_text(a, "preview"));
	if (uar_json_get(a, UAR_STR("interface")))
		uar_jw_tree(w, "interface", uar_json_get(a, UAR_STR("interface")));
	uar_jw_int(w, "issue_count", 0);
	put_metadata(e, w, a, call_id);
	if (uar_json_bool(uar_json_get(a, UAR_STR("is_blob")), false))
		uar_emit_refer(e, "read_ref", sha256);
	uar_emit_name(e, UAR_ID_ARTIFACT, id.n ? id : uar_emit_id(e));
	if (call_id.n) {
		uar_emit_name(e, UAR_ID_TOOL_CALL, call_id);
		uar_emit_name(e, UAR_ID_STEP,
			      uar_emit_own(e, uar_core_open_tool(e, call_id)->step_id));
	}
	uar_emit(e, UAR_EV_ARTIFACT_CHANGED, EMIT_RUN);
}

/* --- artifacts of tools ------------------------------------------------------------------ */

void uar_core_tool_made(struct emit *e, uar_str call_id, uar_str json)
{
	const struct uar_json *a = NULL;

	if (!e->err)
		e->err = uar_json_parse(json, NULL, e->env->arena, &a, e->error);
	if (!e->err)
		artifact(e, a, call_id);
}

static struct uar_made_artifact *find_made(struct uar_run_artifacts *all, uar_str id)
{
	for (size_t i = 0; i < all->count; i++)
		if (uar_str_is(id, all->at[i].id))
			return &all->at[i];
	return NULL;
}

int64_t uar_run_artifact_version(const struct uar_run *r, uar_str artifact_id)
{
	struct uar_run_artifacts all = uar_run_rare(r)->artifacts;
	const struct uar_made_artifact *made = find_made(&all, artifact_id);

	return made ? made->version : 0;
}

uar_err uar_core_fold_artifact(struct uar_run *r, const struct uar_event *ev,
			       const struct uar_json *p)
{
	struct uar_run_artifacts *all;
	struct uar_made_artifact *made;

	if (!ev->ids[UAR_ID_TOOL_CALL].n)
		return UAR_OK;
	if (!uar_core_change_rare(r))
		return UAR_ENOMEM;
	all = &r->rare->artifacts;
	made = find_made(all, ev->ids[UAR_ID_ARTIFACT]);
	if (!made && all->count < UAR_LIMIT_RUN_ARTIFACTS)
		made = &all->at[all->count++];
	if (!made)
		return UAR_OK;
	uar_core_keep(made->id, sizeof made->id, ev->ids[UAR_ID_ARTIFACT]);
	made->version = uar_json_int(uar_json_get(p, UAR_STR("version")), 1);
	return UAR_OK;
}

/* --- the end of an answer ---------------------------------------------------------------- */

void uar_core_artifacts(struct emit *e, uar_str artifacts)
{
	const struct uar_json *all = NULL;

	if (artifacts.n && !e->err)
		e->err = uar_json_parse(artifacts, NULL, e->env->arena, &all, e->error);
	for (const struct uar_json *a = all ? all->first : NULL; a && !e->err; a = a->next)
		artifact(e, a, UAR_STR_NONE);
}

void uar_core_finalize(struct emit *e, uar_str artifacts)
{
	uar_emit_status(e, "finalize", UAR_STATUS_RUNNING, "Finalizing");
	if (e->r->call.message_id[0] && e->r->call.chars)
		remember(e);
	uar_core_artifacts(e, artifacts);
}
