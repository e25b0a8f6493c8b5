/* view_permission.c - folds what was decided about permissions, and shows it with the questions
 * that are open and the policies that hold. */
#include "core/view_int.h"

static void evaluated(struct fold_step *s)
{
	uar_str id = view_str(s, "decision_id");
	struct uar_sview_decision *d = id.n ? view_item(s, UAR_SVIEW_DECISION, id) : NULL;
	const struct uar_json *action = uar_json_get(s->p, UAR_STR("action"));

	if (!d)
		return;
	view_place(s, &d->thread_id, &d->turn_id, &d->run_id);
	VIEW_KEEP(s, decision, d, name, uar_json_text(action, "name"));
	VIEW_TAKE(s, decision, d, resource);
	VIEW_KEEP(s, decision, d, status, view_str(s, "decision"));
	VIEW_TAKE(s, decision, d, decision);
	VIEW_TAKE(s, decision, d, decision_source);
	VIEW_TAKE(s, decision, d, decision_reason);
	VIEW_TAKE(s, decision, d, mode);
	VIEW_TAKE_JSON(s, decision, d, rule_refs);
	d->destructive = view_bool(s, "destructive");
	d->at = s->ev->time_us;
	d->item.open = uar_str_is(d->decision, "ask");
}

static void resolved(struct fold_step *s)
{
	uar_str id = view_str(s, "decision_id");
	struct uar_sview_decision *d = id.n ? view_item(s, UAR_SVIEW_DECISION, id) : NULL;

	if (!d)
		return;
	view_place(s, &d->thread_id, &d->turn_id, &d->run_id);
	VIEW_KEEP(s, decision, d, status, view_str(s, "outcome"));
	d->item.open = false;
}

static void policy_changed(struct fold_step *s)
{
	uar_str id = view_str(s, "policy_id");
	struct uar_sview_policy *p = id.n ? view_item(s, UAR_SVIEW_POLICY, id) : NULL;

	if (!p)
		return;
	VIEW_KEEP(s, policy, p, thread_id, s->ev->ids[UAR_ID_THREAD]);
	VIEW_KEEP(s, policy, p, scope,
		  s->ev->ids[UAR_ID_THREAD].n ? UAR_STR("thread") : view_str(s, "scope"));
	VIEW_TAKE(s, policy, p, version);
	VIEW_TAKE(s, policy, p, mode);
	VIEW_TAKE_JSON(s, policy, p, changed);
	VIEW_KEEP(s, policy, p, policy_ref, view_ref(s, "policy_ref"));
	p->at = s->ev->time_us;
}

void view_fold_permission(struct fold_step *s)
{
	switch (s->ev->cls) {
	case UAR_EV_PERMISSION_EVALUATED: evaluated(s); break;
	case UAR_EV_PERMISSION_RESOLVED: resolved(s); break;
	case UAR_EV_POLICY_CHANGED: policy_changed(s); break;
	default: break;
	}
}

static void write_decision(struct uar_jw *w, const struct uar_sview_decision *d)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "decision_id", d->item.key);
	uar_jw_str_or_null(w, "thread_id", d->thread_id);
	uar_jw_str_or_null(w, "run_id", d->run_id);
	uar_jw_str_or_null(w, "name", d->name);
	uar_jw_str_or_null(w, "resource", d->resource);
	uar_jw_str_or_null(w, "status", d->status);
	uar_jw_str_or_null(w, "decision", d->decision);
	uar_jw_str_or_null(w, "decision_source", d->decision_source);
	uar_jw_str_or_null(w, "decision_reason", d->decision_reason);
	uar_jw_str_or_null(w, "mode", d->mode);
	view_put_json(w, "rule_refs", d->rule_refs, "[]");
	uar_jw_bool(w, "destructive", d->destructive);
	uar_jw_time_or_null(w, "at", d->at);
	uar_jw_close(w);
}

static void write_policy(struct uar_jw *w, const struct uar_sview_policy *p)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "policy_id", p->item.key);
	uar_jw_str_or_null(w, "scope", p->scope);
	uar_jw_str_or_null(w, "thread_id", p->thread_id);
	uar_jw_str_or_null(w, "version", p->version);
	uar_jw_str_or_null(w, "mode", p->mode);
	view_put_json(w, "changed", p->changed, "[]");
	uar_jw_str_or_null(w, "policy_ref", p->policy_ref);
	uar_jw_time_or_null(w, "at", p->at);
	uar_jw_close(w);
}

static void write_pending(struct uar_jw *w, const struct uar_sview *v)
{
	uar_jw_arr(w, "pending");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_ACTION].count; i++) {
		const struct uar_sview_action *a = view_at(v, UAR_SVIEW_ACTION, i);

		if (!a->item.open ||
		    !(uar_str_is(a->action_type, "tool_permission") ||
		      uar_str_is(a->action_type, "plan") || uar_str_is(a->action_type, "policy")))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "action_id", a->item.key);
		uar_jw_str_or_null(w, "thread_id", a->thread_id);
		uar_jw_str_or_null(w, "run_id", a->run_id);
		uar_jw_str_or_null(w, "tool_name", a->tool_name);
		uar_jw_str_or_null(w, "prompt", a->prompt);
		uar_jw_time_or_null(w, "asked_at", a->asked_at);
		uar_jw_str_or_null(w, "timeout_at", a->timeout_at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_sview_write_permissions(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview *v = s->view;

	uar_jw_obj(w, key);
	uar_jw_arr(w, "decisions");
	for (size_t i = v->lists[UAR_SVIEW_DECISION].count; i > 0; i--)
		write_decision(w, view_at(v, UAR_SVIEW_DECISION, i - 1));
	uar_jw_close(w);
	write_pending(w, v);
	uar_jw_arr(w, "policies");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_POLICY].count; i++)
		write_policy(w, view_at(v, UAR_SVIEW_POLICY, i));
	uar_jw_close(w);
	uar_jw_int(w, "omitted", v->lists[UAR_SVIEW_DECISION].omitted);
	uar_sview_write_sandbox(w, "sandbox", s);
	uar_jw_close(w);
}
