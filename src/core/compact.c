/* compact.c - calls that help the answer: a plan, or a summary of what was said before.
 *
 * A compaction is a boundary in the log: what came before it is told to later calls of the thread
 * as its summary. Open questions, artifacts and the log itself are not touched. */
#include "core/emit.h"

static const char *const role_names[UAR_ROLE_COUNT] = {
	[UAR_ROLE_EXECUTE] = "execute",	    [UAR_ROLE_PLAN] = "plan",
	[UAR_ROLE_SUMMARIZE] = "summarize", [UAR_ROLE_CANDIDATE] = "candidate",
	[UAR_ROLE_RANK] = "rank",	    [UAR_ROLE_SAMPLE] = "sample",
};

const char *uar_call_role_name(enum uar_call_role role)
{
	return role_names[role];
}

enum uar_call_role uar_call_role_parse(uar_str name)
{
	int i = UAR_ROLE_COUNT - 1;

	while (i > 0 && !uar_str_is(name, role_names[i]))
		i--;
	return (enum uar_call_role)i;
}

/* After a restart the call is made again, and the compaction goes on. */
void uar_core_compaction_started(struct emit *e, const struct uar_prepared *p)
{
	struct uar_jw *w;

	if (uar_run_rare(e->r)->compaction.open)
		return;
	w = uar_emit_begin(e);
	uar_jw_str(w, "compaction_id", uar_emit_id(e));
	uar_jw_members(w, p->compaction);
	uar_emit(e, UAR_EV_CONTEXT_COMPACTION_STARTED, EMIT_RUN);
}

static void compaction_completed(struct emit *e, const struct uar_model_end *m)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "compaction_id", uar_run_rare(e->r)->compaction.id);
	uar_jw_cstr(w, "method", "model_summary");
	uar_jw_members(w, m->compaction);
	uar_emit_refs(e, uar_arena_printf(e->env->arena,
					  "{\"summary_ref\":\"blob://%.*s\","
					  "\"continuation_ref\":\"blob://%.*s\"}",
					  UAR_FMT(m->raw_blob), UAR_FMT(m->raw_blob)));
	uar_emit(e, UAR_EV_CONTEXT_COMPACTION_COMPLETED, EMIT_RUN);
}

void uar_core_compaction_failed(struct emit *e, const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "compaction_id", uar_run_rare(e->r)->compaction.id);
	uar_emit_error(w, "error", f, UAR_STR_NONE);
	uar_jw_cstr(w, "fallback", "truncate");
	uar_emit(e, UAR_EV_CONTEXT_COMPACTION_FAILED, EMIT_RUN);
	uar_emit_status(e, "context_assembly", UAR_STATUS_RUNNING,
			"Older context is left out: it could not be condensed");
}

void uar_core_staged(struct emit *e, const struct uar_model_end *m)
{
	bool condensed = e->r->call.role == UAR_ROLE_SUMMARIZE;

	if (condensed)
		compaction_completed(e, m);
	uar_emit_status(e, condensed ? "context_assembly" : "model_selection", UAR_STATUS_RUNNING,
			condensed			   ? "Older context was condensed"
			: e->r->call.role == UAR_ROLE_PLAN ? "The plan is written"
							   : "A candidate has answered");
}

uar_err uar_core_fold_compaction(struct uar_run *r, enum uar_event_class cls,
				 const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);
	struct uar_run_compaction *c = rare ? &rare->compaction : NULL;

	if (!c)
		return UAR_ENOMEM;
	uar_core_keep(c->id, sizeof c->id, uar_json_text(p, "compaction_id"));
	c->open = cls == UAR_EV_CONTEXT_COMPACTION_STARTED;
	c->failed |= cls == UAR_EV_CONTEXT_COMPACTION_FAILED;
	c->done += cls == UAR_EV_CONTEXT_COMPACTION_COMPLETED;
	return UAR_OK;
}

/* Which skills the run uses from here on. */
uar_err uar_core_fold_skills(struct uar_run *r, const struct uar_json *p)
{
	const struct uar_json *list = uar_json_get(p, UAR_STR("selected_skills"));
	struct uar_run_rare *rare;
	struct uar_run_skills *skills;

	r->call.resolved = true;
	if (!uar_json_at(list, 0))
		return UAR_OK;
	rare = uar_core_change_rare(r);
	if (!rare)
		return UAR_ENOMEM;
	skills = &rare->skills;
	skills->count = 0;
	for (const struct uar_json *s = uar_json_at(list, 0); s; s = s->next) {
		struct uar_run_skill *to = &skills->at[skills->count];

		if (skills->count == UAR_LIMIT_RUN_SKILLS)
			return UAR_ECORRUPT;
		uar_core_keep(to->skill_id, sizeof to->skill_id, uar_json_text(s, "skill_id"));
		uar_core_keep(to->revision, sizeof to->revision, uar_json_text(s, "revision"));
		to->score = uar_json_double(uar_json_get(s, UAR_STR("score")), 0);
		skills->count++;
	}
	return UAR_OK;
}
