/* control_policy.c - permissions of a session or a thread, and what was asked about them. */
#include "core/control_int.h"
#include "core/permission.h"

/* The row of the session or thread, or a new one. NULL: it has to be loaded. */
static struct uar_row_policy *find_policy(struct ctl *c, uar_str thread_id)
{
	const struct uar_need need = { .kind = UAR_ROW_POLICY, .parent = c->e.s->session_id };
	const struct uar_loaded *l = ctl_load(c, &need);
	struct uar_row_policy *p;

	for (size_t i = 0; l && i < l->count; i++) {
		p = ctl_row_of(c, &l->rows[i]);
		if (p && uar_str_eq(p->thread_id, thread_id))
			return ctl_change(c, p);
	}
	p = l && !c->e.err ? ctl_new_row(c, UAR_ROW_POLICY, uar_emit_id(&c->e)) : NULL;
	if (!p)
		return NULL;
	p->row.status = UAR_STR("active");
	p->row.parent = c->e.s->session_id;
	p->thread_id = thread_id;
	p->scope = thread_id.n ? UAR_STR("thread") : UAR_STR("session");
	return p;
}

static void put_policy(struct uar_jw *w, const struct uar_row_policy *p)
{
	uar_jw_str(w, "policy_id", p->row.id);
	uar_jw_str(w, "scope", p->scope);
	uar_jw_str(w, "session_id", p->row.parent);
	if (p->thread_id.n)
		uar_jw_str(w, "thread_id", p->thread_id);
	uar_jw_str_or_null(w, "mode", p->mode);
	uar_jw_bool(w, "interactive", !p->unattended);
	uar_jw_raw(w, "rules", p->rules.n ? p->rules : UAR_STR("[]"));
	uar_jw_int(w, "version", p->version);
}

static void tell_changed(struct ctl *c, const struct uar_row_policy *p)
{
	static const char *const names[] = { "mode", "interactive", "rules" };
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_str(w, "policy_id", p->row.id);
	uar_jw_cstr(w, "scope", "session");
	uar_jw_str(w, "version", uar_arena_printf(c->e.env->arena, "%lld", (long long)p->version));
	uar_jw_arr(w, "changed");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (ctl_given(c, names[i]))
			uar_jw_cstr(w, NULL, names[i]);
	uar_jw_close(w);
	if (p->mode.n)
		uar_jw_str(w, "mode", p->mode);
	uar_jw_bool(w, "interactive", !p->unattended);
	uar_jw_raw(w, "rules", p->rules.n ? p->rules : UAR_STR("[]"));
	ctl_put_who(w, "changed_by", c->in);
	uar_jw_time(w, "effective_at", c->e.env->now_us);
	uar_emit_refs(&c->e,
		      uar_arena_printf(c->e.env->arena, "{\"policy_ref\":\"policy://%.*s@%lld\"}",
				       UAR_FMT(p->row.id), (long long)p->version));
	if (p->thread_id.n)
		uar_emit_name(&c->e, UAR_ID_THREAD, p->thread_id);
	uar_emit(&c->e, UAR_EV_POLICY_CHANGED, EMIT_SESSION);
}

static uar_err check_rules(struct ctl *c, uar_str text)
{
	const struct uar_json *rules = NULL;
	struct uar_error own = { 0 };
	uar_err e = uar_json_parse(text, NULL, c->e.env->arena, &rules, &own);

	if (!e)
		e = uar_permission_check_rules(rules, &own);
	if (e == UAR_EINVALID) {
		char where[UAR_LIMIT_ERROR_WHERE];

		snprintf(where, sizeof where, "/rules%.100s", own.where);
		ctl_refuse(c, e, where, "%s", uar_error_text(&own));
	} else if (e) {
		ctl_fail(c, e);
	}
	return e;
}

void ctl_update_permissions(struct ctl *c)
{
	const struct uar_ctl_update_permissions *in = &c->in->update_permissions;
	struct uar_row_policy *p;
	struct uar_jw *w;

	if (!ctl_given(c, "mode") && !ctl_given(c, "interactive") && !ctl_given(c, "rules")) {
		ctl_refuse(c, UAR_EINVALID, "/mode", "one of mode, interactive and rules");
		return;
	}
	if (ctl_given(c, "rules") && check_rules(c, in->rules))
		return;
	p = find_policy(c, in->thread_id);
	if (!p)
		return;
	if (ctl_given(c, "mode"))
		p->mode = in->mode;
	if (ctl_given(c, "interactive"))
		p->unattended = !in->interactive;
	if (ctl_given(c, "rules"))
		p->rules = in->rules;
	p->version++;
	tell_changed(c, p);
	w = ctl_result(c);
	uar_jw_obj(w, "policy");
	put_policy(w, p);
	uar_jw_close(w);
	ctl_result_end(c);
}

/* --- what a rule would say ------------------------------------------------------------------ */

/* What the answer of evaluate_permission always has, null where there is nothing. */
static void put_result(struct ctl *c, const struct uar_json *d, uar_str decision_id)
{
	static const char *const members[] = {
		"decision",    "decision_source",   "decision_reason",	  "rule_refs",
		"mode",	       "considered",	    "overridden",	  "destructive",
		"impact",      "rollback_advice",   "resource",		  "scope",
		"interactive", "updated_input_ref", "approval_action_id", "expires_at"
	};
	struct uar_jw *w = ctl_result(c);

	uar_jw_str(w, "decision_id", decision_id);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const struct uar_json *m = uar_json_get(d, uar_str_c(members[i]));

		if (m)
			uar_jw_tree(w, members[i], m);
		else
			uar_jw_null(w, members[i]);
	}
	ctl_result_end(c);
}

void ctl_record_permission(struct ctl *c)
{
	const struct uar_ctl_record_permission *in = &c->in->record_permission;
	const struct uar_json *d = NULL;
	struct permission p = { .decision_id = uar_emit_id(&c->e),
				.type = UAR_STR("tool"),
				.name = in->tool_name,
				.resource = in->tool_id,
				.said = in->decision };
	uar_err e = uar_json_parse(in->decision, NULL, c->e.env->arena, &d, NULL);
	uar_str turn = in->turn_id.n ? in->turn_id : c->in->active_turn_id;
	struct uar_jw *w;

	if (e) {
		ctl_fail(c, e);
		return;
	}
	w = uar_emit_begin(&c->e);
	uar_core_put_permission(&c->e, w, &p, in->agent_id);
	uar_jw_obj(w, "scope");
	uar_jw_str(w, "thread_id", in->thread_id);
	uar_jw_bool(w, "dry_run", true);
	uar_jw_close(w);
	uar_emit_name(&c->e, UAR_ID_THREAD, in->thread_id);
	uar_emit_name(&c->e, UAR_ID_TURN, turn.n ? turn : p.decision_id);
	uar_emit(&c->e, UAR_EV_PERMISSION_EVALUATED, EMIT_SESSION);
	put_result(c, d, p.decision_id);
}
