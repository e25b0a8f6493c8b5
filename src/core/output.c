/* output.c - what a worker reports on the way: progress, and items for people.
 *
 * An export item is an artifact of type export.<type> whose artifact id is the
 * item's id: one log, one store for both. */
#include "core/emit.h"
#include "core/limits.h"

/* --- where a long output is ------------------------------------------------------------------- */

void uar_core_put_owner(struct uar_jw *w, const char *kind, uar_str id)
{
	uar_jw_obj(w, "owner");
	uar_jw_cstr(w, "kind", kind);
	uar_jw_str(w, "id", id);
	uar_jw_close(w);
}

/* An output goes with its run: how long that is kept is a setting, not a time. */
static void put_expiry(struct uar_jw *w)
{
	uar_jw_obj(w, "expiry");
	uar_jw_cstr(w, "policy", "keep_runs");
	uar_jw_close(w);
}

void uar_core_spilled(struct emit *e, const struct spilled *s)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_core_put_owner(w, s->owner, s->id);
	uar_jw_cstr(w, "media_type", s->media_type);
	uar_jw_cstr(w, "encoding", "utf-8");
	uar_jw_int(w, "total_bytes", s->bytes);
	uar_jw_int(w, "inline_bytes", (int64_t)s->kept.n);
	uar_jw_str(w, "sha256", s->blob);
	uar_jw_str(w, "head", uar_str_utf8_prefix(s->kept, UAR_LIMIT_OUTPUT_HEAD));
	uar_jw_str(w, "tail", s->tail);
	put_expiry(w);
	uar_emit_refer(e, "output_ref", s->blob);
	uar_emit(e, UAR_EV_OUTPUT_SPILLED, EMIT_RUN);
}

void uar_core_refer_process(struct emit *e, uar_str process_id)
{
	uar_emit_refs(e, uar_arena_printf(e->env->arena, "{\"output_ref\":\"output://%.*s/%.*s\"}",
					  UAR_FMT(e->r->id.run_id), UAR_FMT(process_id)));
}

void uar_core_process_cut(struct emit *e, uar_str process_id, int64_t bytes, int64_t kept)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_core_put_owner(w, "process", process_id);
	uar_jw_cstr(w, "media_type", "application/octet-stream");
	uar_jw_int(w, "original_bytes", bytes);
	uar_jw_int(w, "kept_bytes", kept);
	uar_jw_cstr(w, "policy", "head");
	uar_jw_cstr(w, "reason", "it is longer than the log keeps of a process");
	put_expiry(w);
	uar_core_refer_process(e, process_id);
	uar_emit(e, UAR_EV_OUTPUT_TRUNCATED, EMIT_RUN);
}

/* --- progress and items ----------------------------------------------------------------------- */

void uar_core_progress(struct emit *e, const struct uar_progress *p)
{
	struct uar_jw *w = uar_emit_begin(e);

	if (p->value >= 0)
		uar_jw_double(w, "progress", p->value);
	if (p->stage.n)
		uar_jw_str(w, "phase", p->stage);
	if (p->message.n)
		uar_jw_str(w, "message", p->message);
	if (p->step >= 0)
		uar_jw_int(w, "step", p->step);
	if (p->step_total >= 0)
		uar_jw_int(w, "step_total", p->step_total);
	if (p->eta_seconds >= 0)
		uar_jw_double(w, "eta_seconds", p->eta_seconds);
	if (p->metrics.n)
		uar_jw_raw(w, "metrics", p->metrics);
	uar_jw_int(w, "coalesced", p->coalesced);
	uar_emit(e, UAR_EV_TASK_PROGRESS, EMIT_RUN);
}

static void put_optional(struct uar_jw *w, const char *key, uar_str s)
{
	if (s.n)
		uar_jw_str(w, key, s);
}

static void refer_export(struct emit *e, const struct uar_export *x)
{
	if (x->blob.n)
		uar_emit_refer(e, "read_ref", x->blob);
	else
		uar_emit_refs(e, uar_arena_printf(e->env->arena,
						  "{\"read_ref\":\"artifact://%.*s@1\"}",
						  UAR_FMT(x->id)));
}

void uar_core_export(struct emit *e, const struct uar_export *x)
{
	struct uar_jw *w = uar_emit_begin(e);
	uar_str type = uar_arena_printf(e->env->arena, "export.%.*s", UAR_FMT(x->type));

	uar_jw_cstr(w, "op", "exported");
	uar_jw_str(w, "artifact_type", type);
	uar_jw_str(w, "title", x->label.n ? x->label : x->description);
	uar_jw_int(w, "version", 1);
	uar_jw_cstr(w, "status", "ready");
	put_optional(w, "mime", x->mime);
	uar_jw_int(w, "bytes", x->bytes);
	uar_jw_str(w, "sha256", x->sha256);
	if (!x->blob.n)
		uar_jw_str(w, "preview", x->content);
	uar_jw_int(w, "issue_count", 0);
	uar_jw_raw(w, "metadata", x->metadata.n ? x->metadata : UAR_STR("{}"));
	put_optional(w, "label", x->label);
	put_optional(w, "category", x->category);
	put_optional(w, "description", x->description);
	put_optional(w, "role", x->role);
	put_optional(w, "blob_id", x->blob_id);
	uar_emit_trace(w, e->r->id.trace_id);
	refer_export(e, x);
	uar_emit_name(e, UAR_ID_ARTIFACT, x->id);
	if (!e->err && (!type.p || !e->refs.p))
		e->err = UAR_ENOMEM;
	uar_emit(e, UAR_EV_ARTIFACT_CHANGED, EMIT_RUN);
}

static void keep_member(char *out, size_t size, const struct uar_json *p, const char *key)
{
	uar_str text = uar_json_str(uar_json_get(p, uar_str_c(key)), UAR_STR_NONE);

	if (text.n)
		uar_core_keep(out, size, text);
}

/* What an update does not mention stays as it was. */
uar_err uar_core_fold_progress(struct uar_run *r, const struct uar_json *payload)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);
	struct uar_run_progress *p = rare ? &rare->progress : NULL;
	const struct uar_json *metrics = uar_json_get(payload, UAR_STR("metrics"));

	if (!rare)
		return UAR_ENOMEM;
	p->value = uar_json_double(uar_json_get(payload, UAR_STR("progress")), p->value);
	p->eta_seconds =
		uar_json_double(uar_json_get(payload, UAR_STR("eta_seconds")), p->eta_seconds);
	p->step = uar_json_int(uar_json_get(payload, UAR_STR("step")), p->step);
	p->step_total = uar_json_int(uar_json_get(payload, UAR_STR("step_total")), p->step_total);
	keep_member(p->stage, sizeof p->stage, payload, "phase");
	keep_member(p->message, sizeof p->message, payload, "message");
	if (metrics && metrics->text.n < sizeof p->metrics)
		uar_core_keep(p->metrics, sizeof p->metrics, metrics->text);
	r->row_changed = true;
	return UAR_OK;
}
