/* registry.c - changes of definitions: facts of a session that has no run. */
#include "core/emit.h"
#include "core/registry.h"

static void registry_opened(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "source", "api");
	uar_jw_cstr(w, "agent_id", UAR_REGISTRY_SESSION);
	uar_jw_time(w, "created_at", e->env->now_us);
	uar_jw_obj(w, "metadata");
	uar_jw_close(w);
	uar_emit(e, UAR_EV_SESSION_CREATED, EMIT_SESSION);
}

static void registry_changed(struct emit *e, const struct uar_registry_change *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "kind", c->kind);
	uar_jw_str(w, "id", c->id);
	uar_jw_cstr(w, "change", c->removed ? "removed" : c->tools.n ? "changed" : "put");
	uar_jw_int(w, "version", c->version);
	if (c->tools.n)
		uar_jw_raw(w, "tools", c->tools);
	if (c->revision.n) {
		uar_jw_str(w, "revision", c->revision);
		uar_emit_refer(e, "definition_ref", c->revision);
	}
	uar_emit_vendor(e, "vendor.uar.registry.changed", EMIT_SESSION);
}

uar_err uar_core_registry(const struct uar_core_env *env, struct uar_session *s,
			  const struct uar_registry_change *c, struct uar_decision *out,
			  struct uar_error *error)
{
	struct uar_run none; /* the engine folds runs, too; this one stays as it is */
	struct emit e = { .env = env, .s = s, .r = &none, .d = out, .error = error };

	uar_run_init(&none);
	if (s->sequence == 0)
		registry_opened(&e);
	registry_changed(&e, c);
	uar_run_fini(&none);
	return e.err;
}

uar_err uar_core_skill_tally(const struct uar_core_env *env, struct uar_session *s,
			     const struct uar_skill_tally *t, struct uar_decision *out,
			     struct uar_error *error)
{
	struct uar_run none;
	struct emit e = { .env = env, .s = s, .r = &none, .d = out, .error = error };
	struct uar_jw *w;

	uar_run_init(&none);
	if (s->sequence == 0)
		registry_opened(&e);
	w = uar_emit_begin(&e);
	uar_jw_str(w, "skill_id", t->skill_id);
	uar_jw_str(w, "run", t->run_id);
	uar_jw_cstr(w, "outcome", t->succeeded ? "success" : "failure");
	uar_jw_int(w, "successes", t->successes);
	uar_jw_int(w, "failures", t->failures);
	uar_emit_vendor(&e, "vendor.uar.skill.counted", EMIT_SESSION);
	uar_run_fini(&none);
	return e.err;
}

uar_err uar_core_credential(const struct uar_core_env *env, struct uar_session *s,
			    const struct uar_credential_change_facts *c, struct uar_decision *out,
			    struct uar_error *error)
{
	const struct uar_row_credential *row = c->row;
	struct uar_run none;
	struct emit e = { .env = env, .s = s, .r = &none, .d = out, .error = error };
	struct uar_jw *w;

	uar_run_init(&none);
	if (s->sequence == 0)
		registry_opened(&e);
	w = uar_emit_begin(&e);
	uar_jw_str(w, "credential_id", row->row.id);
	uar_jw_cstr(w, "change", c->change);
	uar_jw_str(w, "tenant_id", row->tenant);
	uar_jw_str(w, "workspace_id", row->workspace);
	uar_jw_str(w, "user_id", row->user);
	uar_jw_str(w, "scopes", row->scopes);
	uar_jw_str(w, "label", row->label);
	if (row->expires_at)
		uar_jw_time(w, "expires_at", row->expires_at);
	uar_emit_vendor(&e, "vendor.uar.credential.changed", EMIT_SESSION);
	uar_run_fini(&none);
	return e.err;
}
