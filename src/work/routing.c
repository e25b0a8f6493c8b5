/* routing.c - writes what a route is chosen from. */
#include "work/routing.h"

#include "model/policy.h"
#include "work/definitions.h"

/* That of the agent's definition, or the server's; NULL: there is none. */
static const struct uar_model_policy *given_policy(const struct live_run *r)
{
	const struct uar_workers *w = rt_work(r);
	const struct uar_agent *agent = uar_agent_find(rt_state(r)->what.agent_id);
	const struct uar_model_policy *own = rt_definition_routing(r);

	if (own && w->o.models)
		return own;
	if (!w->o.models || !w->o.routing || !w->o.routing->count || (agent && agent->model))
		return NULL;
	return w->o.routing;
}

bool rt_routing_policy(const struct live_run *r, struct uar_model_policy *out)
{
	const struct uar_run_what *what = &rt_state(r)->what;
	const struct uar_model_policy *given = given_policy(r);

	if (!given && !what->model_chosen)
		return false;
	*out = given ? *given : (struct uar_model_policy){ .count = 0 };
	if (what->model_chosen) {
		out->pattern = UAR_PATTERN_DIRECT;
		out->at[0] = (struct uar_model_choice){ what->provider, what->model, "execute" };
		out->count = 1;
	}
	return true;
}

bool rt_is_routed(const struct live_run *r)
{
	return uar_run_rare(rt_state(r))->route.count || rt_state(r)->what.model_chosen ||
	       given_policy(r);
}

/* One model that was chosen answers alone, whatever the policy's pattern. */
static enum uar_model_pattern pattern_of(const struct live_run *r)
{
	const struct uar_model_policy *given =
		rt_state(r)->what.model_chosen ? NULL : given_policy(r);

	return given ? given->pattern : UAR_PATTERN_DIRECT;
}

bool rt_must_plan(const struct live_run *r)
{
	if (uar_run_rare(rt_state(r))->route.count)
		return uar_run_must_plan(rt_state(r));
	return pattern_of(r) == UAR_PATTERN_SPLIT;
}

enum uar_call_role rt_ensemble_role(const struct live_run *r)
{
	const struct uar_run *state = rt_state(r);

	if (uar_run_must_rank(state))
		return UAR_ROLE_RANK;
	if (uar_run_rare(state)->route.count ? uar_run_is_ensemble(state)
					     : pattern_of(r) == UAR_PATTERN_ENSEMBLE)
		return UAR_ROLE_CANDIDATE;
	return UAR_ROLE_EXECUTE;
}

struct uar_model *rt_model_of(const struct live_run *r)
{
	const struct uar_workers_options *o = &rt_work(r)->o;
	uar_str provider = uar_run_provider(rt_state(r));

	if (o->models)
		return uar_models_find(o->models, provider);
	if (uar_str_is(provider, "scripted"))
		return o->scripted;
	return o->provider && uar_str_is(provider, o->provider->provider) ? o->provider : NULL;
}

/* --- the document -------------------------------------------------------------------------- */

struct capability {
	const char *name;
	bool has;
};

static void put_capabilities(struct uar_jw *w, const char *key, const struct capability *all,
			     size_t n)
{
	uar_jw_arr(w, key);
	for (size_t i = 0; i < n; i++)
		if (all[i].has)
			uar_jw_cstr(w, NULL, all[i].name);
	uar_jw_close(w);
}

static void put_row(struct uar_jw *w, const struct uar_model_row *row)
{
	const struct capability all[] = {
		{ "tools", row->tools },
		{ "images", row->images },
		{ "files", row->files },
		{ "structured", row->structured != UAR_STRUCTURED_NONE },
		{ "reasoning", row->reasoning },
		{ "citations", row->citations },
	};

	put_capabilities(w, "capabilities", all, ARRAY_LEN(all));
	uar_jw_int(w, "context_tokens", row->context_tokens);
	uar_jw_int(w, "latency_ms", row->latency_ms);
	uar_jw_raw(w, "classes", row->classes.n ? row->classes : UAR_STR("[]"));
}

static struct uar_price price_in_nanos(const struct uar_model_price *p)
{
	return (struct uar_price){ (int64_t)(p->input * 1e9 + 0.5),
				   (int64_t)(p->cached * 1e9 + 0.5),
				   (int64_t)(p->output * 1e9 + 0.5) };
}

/* A provider that is not configured is a gap, not an error: another one may do. */
static void put_choice(struct uar_jw *w, const struct live_run *r, const struct uar_model_choice *c)
{
	const struct uar_models *models = rt_work(r)->o.models;
	const struct uar_run_what *what = &rt_state(r)->what;
	uar_str provider = c->provider.n ? c->provider : what->provider;
	uar_str model = c->provider.n ? c->model : what->model;
	struct uar_model_row row = uar_models_row(models, provider, model);
	struct uar_model_price listed = uar_models_price(models, provider, model);
	struct uar_price price = price_in_nanos(&listed);

	if (what->model_chosen) /* also for another kind of task than it is made for */
		row.classes = UAR_STR_NONE;
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "provider", provider);
	uar_jw_str(w, "model", model);
	uar_jw_cstr(w, "role", c->role);
	put_row(w, &row);
	uar_price_write(w, "price", &price);
	if (!uar_models_find(models, provider))
		uar_jw_cstr(w, "gap", "credentials");
	uar_jw_close(w);
}

static uar_err write_document(const struct live_run *r, const struct uar_model_policy *p,
			      const struct routing_needs *needs, struct uar_buf *out)
{
	const struct capability required[] = {
		{ "tools", needs->tools },
		{ "images", needs->images },
		{ "files", needs->files },
		{ "structured", needs->structured },
		{ "reasoning", needs->reasoning || p->effort > UAR_EFFORT_NONE },
	};
	int64_t least = p->min_context_tokens;
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "kind", p->task_class.n ? p->task_class : UAR_STR("chat"));
	uar_jw_cstr(&w, "source", "agent");
	uar_jw_cstr(&w, "settings_source",
		    rt_state(r)->what.model_chosen ? UAR_ROUTE_BY_CALLER : "server");
	uar_jw_cstr(&w, "mode", uar_model_pattern_names[p->pattern]);
	uar_jw_int(&w, "max_latency_ms", p->max_latency_ms);
	uar_jw_double(&w, "max_cost", p->max_cost);
	put_capabilities(&w, "requires", required, ARRAY_LEN(required));
	uar_jw_int(&w, "context_tokens",
		   needs->context_tokens > least ? needs->context_tokens : least);
	if (p->budget)
		uar_jw_tree(&w, "budget", p->budget);
	uar_jw_arr(&w, "candidates");
	for (size_t i = 0; i < p->count; i++)
		put_choice(&w, r, &p->at[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* --- a prepared call ------------------------------------------------------------------------- */

/* The choice is made here to know whether there is one, and again where it is recorded: the same
 * function says the same both times. */
static uar_err route_first(const struct live_run *r, const struct uar_model_policy *policy,
			   const struct routing_needs *needs, struct uar_buf *document,
			   struct uar_prepared *out)
{
	struct uar_route *route = uar_zalloc(sizeof *route);
	struct uar_arena arena;
	uar_err e = route ? write_document(r, policy, needs, document) : UAR_ENOMEM;

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_route_choose(uar_buf_str(document), &arena, route);
	if (!e) {
		out->route = uar_buf_str(document);
		out->not_possible = route->allowed == 0;
		out->budget = route->budget;
		if (route->allowed)
			out->price = route->mode == UAR_ROUTE_SPLIT
					     ? route->helper->price
					     : route->at[route->order[0]].price;
	}
	uar_arena_fini(&arena);
	uar_free(route);
	return e;
}

uar_err rt_routing_prepare(const struct live_run *r, const struct routing_needs *needs,
			   struct uar_buf *document, struct uar_prepared *out)
{
	const struct uar_models *models = rt_work(r)->o.models;
	const struct uar_run *state = rt_state(r);
	struct uar_model_policy policy;
	struct uar_model_price listed;

	out->now_us = uar_clock_wall(rt_sched(rt_engine(r))->clock);
	if (uar_run_rare(state)->route.count)
		return UAR_OK;
	if (rt_routing_policy(r, &policy))
		return route_first(r, &policy, needs, document, out);
	if (models) {
		listed = uar_models_price(models, state->what.provider, state->what.model);
		out->price = price_in_nanos(&listed);
	}
	return UAR_OK;
}
