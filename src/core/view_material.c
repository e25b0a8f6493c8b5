/* view_material.c - folds what a session works with and makes: artifacts, context, tools,
 * evidence. */
#include "core/view_int.h"

static void artifact_changed(struct fold_step *s)
{
	uar_str id = s->ev->ids[UAR_ID_ARTIFACT];
	int64_t version = view_int(s, "version", 1);
	uar_str key =
		uar_arena_printf(&s->v->scratch, "%.*s@%lld", UAR_FMT(id), (long long)version);
	struct uar_sview_artifact *a = key.p ? view_item(s, UAR_SVIEW_ARTIFACT, key) : NULL;

	if (!a) {
		s->v->err = UAR_ENOMEM;
		return;
	}
	VIEW_KEEP(s, artifact, a, artifact_id, id);
	a->version = version;
	VIEW_KEEP(s, artifact, a, thread_id, s->ev->ids[UAR_ID_THREAD]);
	VIEW_KEEP(s, artifact, a, run_id, s->ev->ids[UAR_ID_RUN]);
	VIEW_TAKE(s, artifact, a, artifact_type);
	VIEW_TAKE(s, artifact, a, title);
	VIEW_TAKE(s, artifact, a, status);
	VIEW_TAKE(s, artifact, a, mime);
	VIEW_TAKE(s, artifact, a, sha256);
	VIEW_TAKE(s, artifact, a, preview);
	a->bytes = view_int(s, "bytes", 0);
	a->issue_count = view_int(s, "issue_count", 0);
	VIEW_KEEP(s, artifact, a, read_ref, view_ref(s, "read_ref"));
	VIEW_KEEP(s, artifact, a, diff_ref, view_ref(s, "diff_ref"));
	a->at = s->ev->time_us;
}

static int64_t length_of(const struct fold_step *s, const char *name)
{
	const struct uar_json *j = uar_json_get(s->p, uar_str_c(name));

	return j && j->kind == UAR_JSON_ARRAY ? j->count : 0;
}

/* A turn may resolve its context in several steps: what a step does not name stays. */
static void take_list(struct fold_step *s, uar_str *to, int64_t *count, const char *name)
{
	int64_t n = length_of(s, name);

	if (!n)
		return;
	view_take_json(s, to, name, VIEW_MAX_context_items);
	*count = n;
}

static void forget_context(struct uar_sview_context *c)
{
	c->items = c->omissions = c->missing = c->citations = c->recalled = UAR_STR_NONE;
	c->item_count = c->omission_count = c->missing_count = 0;
	c->citation_count = c->recalled_count = 0;
	c->refs = UAR_STR_NONE;
}

static void context_resolved(struct fold_step *s)
{
	struct uar_sview_context *c = view_named(s, UAR_SVIEW_CONTEXT, UAR_ID_THREAD);

	if (!c)
		return;
	if (!uar_str_eq(c->turn_id, s->ev->ids[UAR_ID_TURN]))
		forget_context(c);
	VIEW_KEEP(s, context, c, turn_id, s->ev->ids[UAR_ID_TURN]);
	take_list(s, &c->items, &c->item_count, "items");
	take_list(s, &c->omissions, &c->omission_count, "omissions");
	take_list(s, &c->missing, &c->missing_count, "missing");
	take_list(s, &c->citations, &c->citation_count, "citations");
	take_list(s, &c->recalled, &c->recalled_count, "recalled");
	VIEW_TAKE_JSON(s, context, c, budget);
	if (s->ev->refs.n && s->ev->refs.n <= VIEW_MAX_context_refs)
		VIEW_KEEP(s, context, c, refs, s->ev->refs);
}

static void compaction(struct fold_step *s, const char *status)
{
	struct uar_sview_context *c = view_named(s, UAR_SVIEW_CONTEXT, UAR_ID_THREAD);

	if (!c)
		return;
	VIEW_KEEP(s, context, c, turn_id, s->ev->ids[UAR_ID_TURN]);
	VIEW_KEEP(s, context, c, compaction, uar_str_c(status));
	VIEW_KEEP(s, context, c, warning, UAR_STR_NONE);
	if (s->ev->cls == UAR_EV_CONTEXT_COMPACTION_COMPLETED) {
		VIEW_KEEP(s, context, c, summary, view_str(s, "summary_preview"));
		VIEW_KEEP(s, context, c, summary_ref, view_ref(s, "summary_ref"));
	} else if (s->ev->cls == UAR_EV_CONTEXT_COMPACTION_FAILED) {
		const struct uar_json *error = uar_json_get(s->p, UAR_STR("error"));

		VIEW_KEEP(s, context, c, warning,
			  uar_json_str(uar_json_get(error, UAR_STR("message")),
				       view_str(s, "message")));
	}
}

/* The ids of the tools; too many of them are counted alone. */
static void keep_tools(struct fold_step *s, struct uar_sview_inventory *i)
{
	const struct uar_json *tools = uar_json_get(s->p, UAR_STR("tools"));
	struct uar_buf text = uar_buf_make(VIEW_MAX_inventory_tools);
	struct uar_jw w = uar_jw_begin(&text);

	uar_jw_arr(&w, NULL);
	for (const struct uar_json *t = tools && tools->kind == UAR_JSON_ARRAY ? tools->first
									       : NULL;
	     t; t = t->next)
		uar_jw_str(&w, NULL,
			   uar_json_str(uar_json_get(t, UAR_STR("tool_id")), UAR_STR_NONE));
	uar_jw_close(&w);
	VIEW_KEEP(s, inventory, i, tools, uar_jw_end(&w) ? UAR_STR_NONE : uar_buf_str(&text));
	uar_buf_fini(&text);
}

static void catalog_resolved(struct fold_step *s)
{
	struct uar_sview_inventory *i = view_named(s, UAR_SVIEW_INVENTORY, UAR_ID_THREAD);

	if (!i)
		return;
	VIEW_KEEP(s, inventory, i, turn_id, s->ev->ids[UAR_ID_TURN]);
	VIEW_TAKE(s, inventory, i, inventory_id);
	VIEW_TAKE(s, inventory, i, caller);
	VIEW_TAKE(s, inventory, i, mode);
	VIEW_TAKE_JSON(s, inventory, i, excluded);
	VIEW_TAKE_JSON(s, inventory, i, narrowed_by);
	i->count = view_int(s, "count", 0);
	keep_tools(s, i);
}

static void evidence_changed(struct fold_step *s)
{
	struct uar_sview_evidence *e = view_named(s, UAR_SVIEW_EVIDENCE, UAR_ID_EVIDENCE);

	if (!e)
		return;
	VIEW_KEEP(s, evidence, e, thread_id, s->ev->ids[UAR_ID_THREAD]);
	VIEW_KEEP(s, evidence, e, evidence_kind, view_str(s, "kind"));
	VIEW_TAKE(s, evidence, e, status);
	VIEW_KEEP(s, evidence, e, refs,
		  s->ev->refs.n <= VIEW_MAX_evidence_refs ? s->ev->refs : UAR_STR_NONE);
	VIEW_TAKE_JSON(s, evidence, e, scope);
	VIEW_TAKE(s, evidence, e, sha256);
	VIEW_TAKE_JSON(s, evidence, e, verification_outcomes);
	VIEW_TAKE_JSON(s, evidence, e, known_gaps);
	VIEW_TAKE_JSON(s, evidence, e, trace_ids);
	VIEW_TAKE_JSON(s, evidence, e, notes);
}

void view_fold_material(struct fold_step *s)
{
	switch (s->ev->cls) {
	case UAR_EV_ARTIFACT_CHANGED: artifact_changed(s); break;
	case UAR_EV_CONTEXT_RESOLVED: context_resolved(s); break;
	case UAR_EV_CONTEXT_COMPACTION_STARTED: compaction(s, "started"); break;
	case UAR_EV_CONTEXT_COMPACTION_COMPLETED: compaction(s, "completed"); break;
	case UAR_EV_CONTEXT_COMPACTION_FAILED: compaction(s, "failed"); break;
	case UAR_EV_TOOL_CATALOG_RESOLVED: catalog_resolved(s); break;
	case UAR_EV_EVIDENCE_CHANGED: evidence_changed(s); break;
	default: break;
	}
}
