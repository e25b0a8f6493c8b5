/* view_routing.c - routing_limit_summary: profile, candidates, decision, costs, quotas and rate
 * limits of the last run of a thread that has any of them. */
#include "core/view_int.h"

/* Of another run than before everything begins anew. */
static struct uar_sview_routing *routing_of(struct fold_step *s)
{
	struct uar_sview_routing *r = view_named(s, UAR_SVIEW_ROUTING, UAR_ID_THREAD);
	struct uar_sview_item item;

	if (!r)
		return NULL;
	if (!uar_str_eq(r->run_id, s->ev->ids[UAR_ID_RUN])) {
		item = r->item;
		*r = (struct uar_sview_routing){ .item = item };
	}
	VIEW_KEEP(s, routing, r, run_id, s->ev->ids[UAR_ID_RUN]);
	VIEW_KEEP(s, routing, r, turn_id, s->ev->ids[UAR_ID_TURN]);
	return r;
}

static uar_str json_of(const struct fold_step *s, const char *name)
{
	const struct uar_json *j = uar_json_get(s->p, uar_str_c(name));

	return j ? j->text : UAR_STR_NONE;
}

/* The whole payload, unless it is longer than its member may be. */
static uar_str whole(const struct fold_step *s, size_t max)
{
	return s->p->text.n <= max ? s->p->text : UAR_STR_NONE;
}

static void decided(struct fold_step *s, struct uar_sview_routing *r)
{
	VIEW_KEEP(s, routing, r, state, UAR_STR("decided"));
	VIEW_KEEP(s, routing, r, mode, view_str(s, "routing_mode"));
	VIEW_KEEP(s, routing, r, reason, view_str(s, "decision_reason"));
	VIEW_TAKE_JSON(s, routing, r, selected);
	VIEW_TAKE_JSON(s, routing, r, fallback_chain);
}

static void not_possible(struct fold_step *s, struct uar_sview_routing *r)
{
	VIEW_KEEP(s, routing, r, state, UAR_STR("not_possible"));
	VIEW_KEEP(s, routing, r, mode, view_str(s, "routing_mode"));
	VIEW_KEEP(s, routing, r, reason, view_str(s, "reason_code"));
}

static void fell_back(struct fold_step *s, struct uar_sview_routing *r)
{
	VIEW_KEEP(s, routing, r, selected, json_of(s, "to"));
	VIEW_KEEP(s, routing, r, reason, view_str(s, "reason"));
	r->fallbacks++;
}

static void quota(struct fold_step *s, struct uar_sview_routing *r, const char *state)
{
	VIEW_KEEP(s, routing, r, quota_state, uar_str_c(state));
	VIEW_KEEP(s, routing, r, quota, whole(s, VIEW_MAX_routing_quota));
}

static void fold_fact(struct fold_step *s, struct uar_sview_routing *r)
{
	switch (s->ev->cls) {
	case UAR_EV_TASK_PROFILE_RESOLVED:
		VIEW_KEEP(s, routing, r, profile, whole(s, VIEW_MAX_routing_profile));
		break;
	case UAR_EV_ROUTING_CANDIDATES_RESOLVED:
		r->candidate_count = view_int(s, "candidate_count", 0);
		VIEW_TAKE_JSON(s, routing, r, excluded);
		break;
	case UAR_EV_ROUTING_DECIDED: decided(s, r); break;
	case UAR_EV_ROUTING_NOT_POSSIBLE: not_possible(s, r); break;
	case UAR_EV_ROUTING_FALLBACK_APPLIED: fell_back(s, r); break;
	case UAR_EV_COST_ESTIMATED:
		VIEW_TAKE(s, routing, r, currency);
		VIEW_KEEP(s, routing, r, cost_class, view_str(s, "estimated_cost_class"));
		break;
	case UAR_EV_COST_RECORDED:
		VIEW_TAKE(s, routing, r, currency);
		VIEW_TAKE_JSON(s, routing, r, cumulative);
		break;
	case UAR_EV_QUOTA_LOW: quota(s, r, "low"); break;
	case UAR_EV_QUOTA_BLOCKED: quota(s, r, "blocked"); break;
	case UAR_EV_RATE_LIMIT_HIT:
		VIEW_KEEP(s, routing, r, rate_limit, whole(s, VIEW_MAX_routing_rate_limit));
		r->rate_limit_hits++;
		break;
	default: break;
	}
}

void view_fold_routing(struct fold_step *s)
{
	struct uar_sview_routing *r;

	switch (s->ev->cls) {
	case UAR_EV_TASK_PROFILE_RESOLVED:
	case UAR_EV_ROUTING_CANDIDATES_RESOLVED:
	case UAR_EV_ROUTING_DECIDED:
	case UAR_EV_ROUTING_NOT_POSSIBLE:
	case UAR_EV_ROUTING_FALLBACK_APPLIED:
	case UAR_EV_COST_ESTIMATED:
	case UAR_EV_COST_RECORDED:
	case UAR_EV_QUOTA_LOW:
	case UAR_EV_QUOTA_BLOCKED:
	case UAR_EV_RATE_LIMIT_HIT: break;
	default: return;
	}
	r = routing_of(s);
	if (r)
		fold_fact(s, r);
}

/* --- shown ---------------------------------------------------------------------------------- */

static void write_limits(struct uar_jw *w, const struct uar_sview_routing *r)
{
	uar_jw_obj(w, "cost");
	uar_jw_cstr(w, "state",
		    r->cumulative.n   ? "recorded"
		    : r->cost_class.n ? "estimated"
				      : "unknown");
	uar_jw_str_or_null(w, "currency", r->currency);
	uar_jw_str_or_null(w, "estimated_cost_class", r->cost_class);
	view_put_json(w, "cumulative", r->cumulative, "null");
	uar_jw_close(w);
	uar_jw_obj(w, "quota");
	uar_jw_str(w, "state", r->quota_state.n ? r->quota_state : UAR_STR("ok"));
	view_put_json(w, "fact", r->quota, "null");
	uar_jw_close(w);
	uar_jw_obj(w, "rate_limit");
	uar_jw_int(w, "hits", r->rate_limit_hits);
	view_put_json(w, "last", r->rate_limit, "null");
	uar_jw_close(w);
}

void uar_sview_write_routing(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			     uar_str thread_id)
{
	const struct uar_sview_routing *r = view_find(s->view, UAR_SVIEW_ROUTING, thread_id);

	uar_jw_obj(w, key);
	uar_jw_cstr(w, "state", !r ? "not_applicable" : s->stale ? "stale" : "available");
	if (!r) {
		uar_jw_cstr(w, "reason", "no run of the thread was routed, priced or limited");
		uar_jw_close(w);
		return;
	}
	uar_jw_str_or_null(w, "run_id", r->run_id);
	uar_jw_str_or_null(w, "turn_id", r->turn_id);
	view_put_json(w, "task_profile", r->profile, "null");
	uar_jw_int(w, "candidate_count", r->candidate_count);
	view_put_json(w, "excluded", r->excluded, "[]");
	uar_jw_obj(w, "decision");
	uar_jw_str(w, "state", r->state.n ? r->state : UAR_STR("not_applicable"));
	uar_jw_str_or_null(w, "routing_mode", r->mode);
	uar_jw_str_or_null(w, "reason", r->reason);
	view_put_json(w, "selected", r->selected, "null");
	view_put_json(w, "fallback_chain", r->fallback_chain, "[]");
	uar_jw_int(w, "fallbacks", r->fallbacks);
	uar_jw_close(w);
	write_limits(w, r);
	uar_jw_int(w, "sequence", r->item.sequence);
	uar_jw_close(w);
}
