/* routing.c - facts of routing and costs, and what they change in a run. */
#include "core/emit.h"
#include "core/route.h"

static const struct uar_route_model *model_of_ensemble(const struct uar_run_route *route)
{
	if (route->chosen)
		return &route->chain[route->chosen - 1];
	return route->at < route->count ? &route->chain[route->at] : &route->ranker;
}

/* NULL: the run is not routed. Until there is a plan its planner is called. */
static const struct uar_route_model *model_now(const struct uar_run *r)
{
	const struct uar_run_route *route = &uar_run_rare(r)->route;

	if (!route->count)
		return NULL;
	if (uar_run_is_ensemble(r))
		return model_of_ensemble(route);
	return uar_run_must_plan(r) ? &route->planner : &route->chain[route->at];
}

bool uar_run_is_ensemble(const struct uar_run *r)
{
	return uar_run_rare(r)->route.ranker.provider[0] != 0;
}

bool uar_run_must_rank(const struct uar_run *r)
{
	const struct uar_run_route *route = &uar_run_rare(r)->route;

	return uar_run_is_ensemble(r) && !route->chosen && route->at == route->count;
}

bool uar_run_must_plan(const struct uar_run *r)
{
	const struct uar_run_route *route = &uar_run_rare(r)->route;

	return route->planner.provider[0] && !route->plan_blob[0];
}

uar_str uar_run_provider(const struct uar_run *r)
{
	const struct uar_route_model *m = model_now(r);

	return m ? uar_str_c(m->provider) : r->what.provider;
}

uar_str uar_run_model(const struct uar_run *r)
{
	const struct uar_route_model *m = model_now(r);

	return m ? uar_str_c(m->model) : r->what.model;
}

/* --- routing -------------------------------------------------------------------------------- */

static void put_model(struct uar_jw *w, const char *key, uar_str provider, uar_str model)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "provider", provider);
	uar_jw_str(w, "model", model);
	uar_jw_close(w);
}

static void put_candidate_model(struct uar_jw *w, const char *key,
				const struct uar_route_candidate *c)
{
	put_model(w, key, c->provider, c->model);
}

static uar_str latency_target(struct emit *e, const struct uar_route *r)
{
	return r->max_latency_ms ? uar_arena_printf(e->env->arena, "at most %lld ms",
						    (long long)r->max_latency_ms)
				 : UAR_STR("any");
}

static uar_str cost_target(struct emit *e, const struct uar_route *r)
{
	return r->max_cost > 0 ? uar_arena_printf(e->env->arena, "at most %g USD a million tokens",
						  r->max_cost)
			       : UAR_STR("any");
}

static void profile_resolved(struct emit *e, const struct uar_route *r)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "kind", r->kind);
	uar_jw_str(w, "source", r->source);
	uar_jw_raw(w, "required_capabilities", r->requires_list);
	uar_jw_str(w, "latency_target", latency_target(e, r));
	uar_jw_str(w, "budget_class", cost_target(e, r));
	uar_jw_cstr(w, "fallback_policy", r->mode == UAR_ROUTE_DIRECT ? "none" : "ordered");
	uar_jw_str(w, "settings_source", r->settings_source);
	uar_jw_cstr(w, "routing_mode", uar_route_mode_names[r->mode]);
	uar_jw_bool(w, "reasoning_required", r->reasoning);
	uar_jw_int(w, "context_tokens_estimate", r->context_tokens);
	uar_budget_write(w, "budget", &r->budget);
	uar_emit(e, UAR_EV_TASK_PROFILE_RESOLVED, EMIT_RUN);
}

static void put_candidate(struct uar_jw *w, const struct uar_route_candidate *c)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "provider", c->provider);
	uar_jw_str(w, "model", c->model);
	uar_jw_raw(w, "capabilities", c->capabilities);
	uar_jw_int(w, "context_tokens", c->context_tokens);
	uar_jw_cstr(w, "cost_class", uar_price_class(&c->price));
	uar_jw_cstr(w, "latency_class", uar_latency_class(c->latency_ms));
	uar_jw_double(w, "score", c->score);
	uar_jw_str(w, "role", c->role);
	if (uar_price_known(&c->price))
		uar_price_write(w, "price", &c->price);
	uar_jw_close(w);
}

static void put_gap(struct uar_jw *w, const struct uar_route *r, const char *gap)
{
	uar_jw_arr(w, gap);
	for (size_t i = 0; i < r->count; i++)
		if (r->at[i].gap && strcmp(r->at[i].gap, gap) == 0)
			uar_jw_str(w, NULL, r->at[i].provider);
	uar_jw_close(w);
}

static void put_gaps(struct uar_jw *w, const struct uar_route *r)
{
	uar_jw_obj(w, "gaps");
	put_gap(w, r, "credentials");
	put_gap(w, r, "quota");
	put_gap(w, r, "network");
	uar_jw_close(w);
}

static void put_excluded(struct uar_jw *w, const struct uar_route *r)
{
	uar_jw_arr(w, "excluded");
	for (size_t i = 0; i < r->count; i++) {
		if (!r->at[i].excluded)
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "provider", r->at[i].provider);
		uar_jw_str(w, "model", r->at[i].model);
		uar_jw_cstr(w, "reason", r->at[i].excluded);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void put_constraints(struct emit *e, struct uar_jw *w, const struct uar_route *r)
{
	struct uar_arena *a = e->env->arena;

	uar_jw_arr(w, "hard_constraints");
	if (r->max_latency_ms)
		uar_jw_str(w, NULL,
			   uar_arena_printf(a, "latency_ms<=%lld", (long long)r->max_latency_ms));
	if (r->max_cost > 0)
		uar_jw_str(w, NULL, uar_arena_printf(a, "cost_usd_per_mtok<=%g", r->max_cost));
	uar_jw_str(w, NULL,
		   uar_arena_printf(a, "context_tokens>=%lld", (long long)r->context_tokens));
	uar_jw_close(w);
	uar_jw_arr(w, "preferences");
	uar_jw_cstr(w, NULL, "task_class");
	uar_jw_cstr(w, NULL, "listed_order");
	uar_jw_close(w);
}

static const char CHOSEN[] = "the caller chose it";

static bool by_caller(const struct uar_route *r)
{
	return uar_str_is(r->settings_source, UAR_ROUTE_BY_CALLER);
}

static void candidates_resolved(struct emit *e, const struct uar_route *r)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "candidate_set_id", uar_emit_id(e));
	uar_jw_int(w, "candidate_count", (int64_t)r->allowed);
	uar_jw_arr(w, "candidates");
	for (size_t i = 0; i < r->allowed; i++)
		put_candidate(w, &r->at[r->order[i]]);
	if (r->helper)
		put_candidate(w, r->helper);
	uar_jw_close(w);
	put_excluded(w, r);
	put_constraints(e, w, r);
	put_gaps(w, r);
	uar_emit(e, UAR_EV_ROUTING_CANDIDATES_RESOLVED, EMIT_RUN);
}

static void routing_not_possible(struct emit *e, const struct uar_route *r)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "reason_code", r->count == 1 ? r->at[0].excluded : "no_candidate");
	uar_jw_cstr(w, "routing_mode", uar_route_mode_names[r->mode]);
	uar_jw_int(w, "candidate_count", 0);
	put_gaps(w, r);
	uar_jw_str(w, "decision_source", r->settings_source);
	uar_jw_cstr(w, "status", "blocked");
	uar_emit(e, UAR_EV_ROUTING_NOT_POSSIBLE, EMIT_RUN);
}

static void put_limit_state(struct emit *e, struct uar_jw *w, const char *key)
{
	uar_jw_obj(w, key);
	uar_jw_int(w, "model_calls", e->r->call.calls);
	uar_jw_int(w, "tokens", e->r->call.input_tokens + e->r->call.output_tokens);
	uar_jw_double(w, "usd", (double)e->r->call.nanos / 1e9);
	uar_jw_close(w);
}

static void single_candidate(struct emit *e, const struct uar_route *r)
{
	const struct uar_route_candidate *c = &r->at[r->order[0]];
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "task_kind", r->kind);
	uar_jw_int(w, "candidate_count", 1);
	put_candidate_model(w, "selected", c);
	uar_jw_str(w, "decision_source", r->settings_source);
	uar_jw_cstr(w, "decision_reason",
		    by_caller(r)    ? CHOSEN
		    : r->count == 1 ? "only one model is configured"
				    : "the others are excluded");
	uar_jw_arr(w, "capability_gap");
	uar_jw_close(w);
	uar_jw_obj(w, "cost_state");
	uar_jw_cstr(w, "cost_class", uar_price_class(&c->price));
	uar_jw_close(w);
	put_limit_state(e, w, "limit_state");
	uar_emit(e, UAR_EV_ROUTING_SINGLE_CANDIDATE, EMIT_RUN);
}

/* A direct route has no one to fall back to. */
static size_t chain_length(const struct uar_route *r)
{
	size_t n = r->mode == UAR_ROUTE_DIRECT && r->allowed ? 1 : r->allowed;

	return n < UAR_ROUTE_CHAIN ? n : UAR_ROUTE_CHAIN;
}

static void routing_decided(struct emit *e, const struct uar_route *r, uar_str role,
			    const struct uar_route_candidate *selected)
{
	bool answers = selected != r->helper;
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "decision_id", uar_emit_id(e));
	uar_jw_cstr(w, "routing_mode", uar_route_mode_names[r->mode]);
	uar_jw_str(w, "decision_source", r->settings_source);
	uar_jw_cstr(w, "decision_reason",
		    by_caller(r)		    ? CHOSEN
		    : !answers			    ? "the pattern names it"
		    : r->mode == UAR_ROUTE_ENSEMBLE ? "each candidate answers, this one first"
		    : selected->score > 1	    ? "it is made for this kind of task"
						    : "the first one in the listed order");
	put_candidate_model(w, "selected", selected);
	put_candidate_model(w, "requested", answers ? &r->at[0] : selected);
	uar_jw_str(w, "role", role);
	uar_jw_int(w, "candidate_count", (int64_t)r->allowed);
	uar_jw_arr(w, "fallback_chain");
	for (size_t i = 1; i < chain_length(r) && answers; i++)
		put_candidate_model(w, NULL, &r->at[r->order[i]]);
	uar_jw_close(w);
	uar_jw_arr(w, "capability_gap");
	uar_jw_close(w);
	uar_jw_bool(w, "requires_user_override", false);
	put_limit_state(e, w, "limit_state_snapshot");
	uar_emit(e, UAR_EV_ROUTING_DECIDED, EMIT_RUN);
}

void uar_core_route(struct emit *e, const struct uar_prepared *p)
{
	struct uar_route *r = uar_arena_alloc(e->env->arena, sizeof *r);

	if (!r && !e->err)
		e->err = UAR_ENOMEM;
	if (!e->err)
		e->err = uar_route_choose(p->route, e->env->arena, r);
	if (e->err)
		return;
	profile_resolved(e, r);
	candidates_resolved(e, r);
	if (!r->allowed) {
		routing_not_possible(e, r);
		return;
	}
	if (r->allowed == 1)
		single_candidate(e, r);
	if (r->helper)
		routing_decided(e, r, r->helper->role, r->helper);
	routing_decided(e, r, r->at[r->order[0]].role, &r->at[r->order[0]]);
}

/* The candidate whose answer is used. */
void uar_core_ranked(struct emit *e, const struct uar_model_end *m)
{
	const struct uar_run_route *route = &uar_run_rare(e->r)->route;
	const struct uar_route_model *chosen;
	struct uar_jw *w;

	if (e->err || m->ranked.place >= route->count)
		return;
	chosen = &route->chain[m->ranked.place];
	w = uar_emit_begin(e);
	uar_jw_str(w, "decision_id", uar_emit_id(e));
	uar_jw_cstr(w, "routing_mode", uar_route_mode_names[UAR_ROUTE_ENSEMBLE]);
	uar_jw_cstr(w, "decision_source", "ranker");
	uar_jw_cstr(w, "decision_reason",
		    m->ranked.named    ? "the ranker chose its answer"
		    : m->ranked.failed ? "the ranker failed: the first answer is used"
				       : "the ranker chose none: the first answer is used");
	put_model(w, "selected", uar_str_c(chosen->provider), uar_str_c(chosen->model));
	uar_jw_cstr(w, "role", "candidate");
	uar_jw_int(w, "chosen_index", (int64_t)m->ranked.place);
	uar_jw_int(w, "candidate_count", (int64_t)route->count);
	uar_jw_arr(w, "fallback_chain");
	uar_jw_close(w);
	uar_jw_arr(w, "capability_gap");
	uar_jw_close(w);
	uar_jw_bool(w, "requires_user_override", false);
	put_limit_state(e, w, "limit_state_snapshot");
	uar_emit(e, UAR_EV_ROUTING_DECIDED, EMIT_RUN);
}

static uar_err fold_profile(struct uar_run *r, const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);

	if (rare)
		rare->route.budget = uar_budget_read(uar_json_get(p, UAR_STR("budget")));
	return rare ? UAR_OK : UAR_ENOMEM;
}

static void keep_member(char *out, size_t size, const struct uar_json *j, const char *key)
{
	uar_core_keep(out, size, uar_json_text(j, key));
}

/* Where a candidate belongs by its role; NULL: the chain is full. */
static struct uar_route_model *place_of(struct uar_run_route *route, const struct uar_json *j)
{
	uar_str role = uar_json_text(j, "role");

	if (uar_str_is(role, "plan"))
		return &route->planner;
	if (uar_str_is(role, "rank"))
		return &route->ranker;
	return route->count < UAR_ROUTE_CHAIN ? &route->chain[route->count++] : NULL;
}

static uar_err fold_candidates(struct uar_run *r, const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);
	const struct uar_json *list = uar_json_get(p, UAR_STR("candidates"));
	const struct uar_json *j = uar_json_first(list);

	if (!rare)
		return UAR_ENOMEM;
	rare->route.count = rare->route.at = 0;
	for (; j; j = j->next) {
		struct uar_route_model *m = place_of(&rare->route, j);

		if (!m)
			continue;
		keep_member(m->provider, sizeof m->provider, j, "provider");
		keep_member(m->model, sizeof m->model, j, "model");
		m->price = uar_price_read(uar_json_get(j, UAR_STR("price")));
	}
	return UAR_OK;
}

/* Those of the set that the decision does not name are not used. */
static uar_err fold_decided(struct uar_run *r, const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);
	const struct uar_json *chain = uar_json_get(p, UAR_STR("fallback_chain"));
	size_t used = 1 + (chain ? chain->count : 0);
	uar_str role = uar_json_text(p, "role");
	int64_t chosen = uar_json_int(uar_json_get(p, UAR_STR("chosen_index")), -1);

	if (!rare)
		return UAR_ENOMEM;
	if (uar_str_is(role, "plan") || uar_str_is(role, "rank"))
		return UAR_OK;
	if (chosen >= (int64_t)rare->route.count)
		return UAR_ECORRUPT;
	if (chosen >= 0) {
		rare->route.chosen = (size_t)chosen + 1;
		return UAR_OK;
	}
	keep_member(rare->route.decision_id, sizeof rare->route.decision_id, p, "decision_id");
	if (used < rare->route.count)
		rare->route.count = used;
	return UAR_OK;
}

static uar_err fold_fallback(struct uar_run *r, const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);
	int64_t at = uar_json_int(uar_json_get(p, UAR_STR("chain_index")), -1);

	if (!rare)
		return UAR_ENOMEM;
	if (at < 0 || at >= (int64_t)rare->route.count + uar_run_is_ensemble(r))
		return UAR_ECORRUPT;
	r->call.tries = 0;
	rare->route.at = (size_t)at;
	return UAR_OK;
}

/* --- costs ---------------------------------------------------------------------------------- */

static void name_request(struct emit *e)
{
	uar_emit_name(e, UAR_ID_MODEL_REQUEST, uar_emit_own(e, e->r->call.request_id));
}

const struct uar_price *uar_core_price_now(const struct uar_run *r, const struct uar_prepared *p)
{
	const struct uar_route_model *m = model_now(r);

	return m ? &m->price : &p->price;
}

/* Of a model without a known price only a routed run says so. */
void uar_core_cost_estimated(struct emit *e, const struct uar_prepared *p)
{
	struct uar_price price = *uar_core_price_now(e->r, p);
	int64_t tokens = e->r->call.prompt_tokens;
	struct uar_jw *w;

	if (!uar_price_known(&price) && !uar_run_rare(e->r)->route.count)
		return;
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "currency", "USD");
	if (uar_price_known(&price))
		uar_jw_double(w, "amount", (double)uar_price_of(&price, tokens, 0, 0) / 1e9);
	uar_jw_cstr(w, "estimated_cost_class", uar_price_class(&price));
	uar_jw_cstr(w, "basis", "tokens of the prompt, estimated; the answer is not included");
	put_model(w, "selected", uar_run_provider(e->r), uar_run_model(e->r));
	uar_price_write(w, "price", &price);
	name_request(e);
	uar_emit(e, UAR_EV_COST_ESTIMATED, EMIT_RUN);
}

static uar_err fold_estimated(struct uar_run *r, const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);

	if (rare)
		rare->route.price = uar_price_read(uar_json_get(p, UAR_STR("price")));
	return rare ? UAR_OK : UAR_ENOMEM;
}

/* Once for each call, in the append of its end. */
void uar_core_cost_recorded(struct emit *e, const struct uar_usage *u)
{
	struct uar_price price = uar_run_rare(e->r)->route.price;
	int64_t nanos = uar_price_of(&price, u->input, u->cached, u->output);
	double sum = (double)(e->r->call.nanos + nanos) / 1e9;
	struct uar_jw *w;

	if (uar_price_known(&price) && e->r->what.entry == UAR_ENTRY_LLM) {
		w = uar_emit_begin(e);
		uar_jw_cstr(w, "currency", "USD");
		uar_jw_double(w, "amount", (double)nanos / 1e9);
		uar_emit_call_usage(w, u);
		uar_jw_obj(w, "cumulative");
		uar_jw_double(w, "run", sum);
		if (e->r->what.attempt <= 1)
			uar_jw_double(w, "task", sum);
		uar_jw_close(w);
		uar_jw_bool(w, "is_estimate", !u->reported);
		put_model(w, "selected", u->provider, u->model);
		name_request(e);
		uar_emit(e, UAR_EV_COST_RECORDED, EMIT_RUN);
	}
	uar_core_quota_low(e);
}

static uar_err fold_recorded(struct uar_run *r, const struct uar_json *p)
{
	double usd = uar_json_double(uar_json_get(p, UAR_STR("amount")), 0);

	r->call.nanos += (int64_t)(usd * 1e9 + 0.5);
	return UAR_OK;
}

static uar_err fold_quota_low(struct uar_run *r, const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);

	(void)p;
	if (rare)
		rare->route.low = true;
	return rare ? UAR_OK : UAR_ENOMEM;
}

uar_err uar_core_fold_routing(struct uar_run *r, enum uar_event_class cls, const struct uar_json *p)
{
	switch (cls) {
	case UAR_EV_TASK_PROFILE_RESOLVED: return fold_profile(r, p);
	case UAR_EV_ROUTING_CANDIDATES_RESOLVED: return fold_candidates(r, p);
	case UAR_EV_ROUTING_DECIDED: return fold_decided(r, p);
	case UAR_EV_ROUTING_FALLBACK_APPLIED: return fold_fallback(r, p);
	case UAR_EV_COST_ESTIMATED: return fold_estimated(r, p);
	case UAR_EV_COST_RECORDED: return fold_recorded(r, p);
	case UAR_EV_QUOTA_LOW: return fold_quota_low(r, p);
	default: return UAR_OK;
	}
}
