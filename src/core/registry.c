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

static bool is_same(const struct uar_json *a, const struct uar_json *b)
{
	return a && b ? uar_json_equal(a, b) : a == b;
}

/* The names of the members that are other ones now; false: there are none. */
static bool put_changed(struct uar_jw *w, const struct uar_host_policy_facts *c)
{
	static const uar_str names[] = { UAR_STR("mode"), UAR_STR("allow_modes"),
					 UAR_STR("interactive"), UAR_STR("rules") };
	bool any = false;

	uar_jw_arr(w, "changed");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!is_same(uar_json_get(c->before, names[i]), uar_json_get(c->after, names[i]))) {
			uar_jw_str(w, NULL, names[i]);
			any = true;
		}
	uar_jw_close(w);
	return any;
}

uar_err uar_core_host_policy(const struct uar_core_env *env, struct uar_session *s,
			     const struct uar_host_policy_facts *c, struct uar_decision *out,
			     struct uar_error *error)
{
	const struct uar_json *mode = uar_json_get(c->after, UAR_STR("mode"));
	const struct uar_json *rules = uar_json_get(c->after, UAR_STR("rules"));
	struct uar_run none;
	struct emit e = { .env = env, .s = s, .r = &none, .d = out, .error = error };
	struct uar_jw *w;

	uar_run_init(&none);
	if (s->sequence == 0)
		registry_opened(&e);
	w = uar_emit_begin(&e);
	uar_jw_cstr(w, "policy_id", "host");
	uar_jw_cstr(w, "scope", "host");
	uar_jw_str(w, "version", c->version);
	if (!put_changed(w, c) && !e.err)
		e.err = UAR_ESKIP;
	if (mode)
		uar_jw_str(w, "mode", uar_json_str(mode, UAR_STR("default")));
	uar_jw_bool(w, "interactive",
		    uar_json_bool(uar_json_get(c->after, UAR_STR("interactive")), true));
	uar_jw_int(w, "rule_count", rules ? rules->count : 0);
	uar_emit_who(w, "changed_by", "user", s->owner.user);
	uar_jw_time(w, "effective_at", env->now_us);
	uar_emit_refs(&e, uar_arena_printf(env->arena, "{\"policy_ref\":\"policy://host@%.*s\"}",
					   UAR_FMT(c->version)));
	if (!e.err)
		uar_emit(&e, UAR_EV_POLICY_CHANGED, EMIT_SESSION);
	uar_run_fini(&none);
	return e.err;
}
