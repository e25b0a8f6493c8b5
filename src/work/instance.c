/* instance.c - which models an agent uses, and who says so. */
#include "model/policy.h"
#include "work/definitions.h"
#include "work/work_int.h"

static void put_model(struct uar_jw *w, const char *key, uar_str provider, uar_str model)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "provider", provider);
	uar_jw_str(w, "model", model);
	uar_jw_close(w);
}

/* The models of the server's policy, in their order. */
static void put_routing(struct uar_jw *w, const struct uar_model_policy *p)
{
	uar_jw_cstr(w, "pattern", uar_model_pattern_names[p->pattern]);
	uar_jw_arr(w, "models");
	for (size_t i = 0; i < p->count; i++) {
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "provider", p->at[i].provider);
		uar_jw_str(w, "model", p->at[i].model);
		uar_jw_cstr(w, "role", p->at[i].role);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void put_server_model(struct uar_jw *w, const struct uar_workers *work,
			     const struct uar_agent *a)
{
	bool scripted = a->model || !work->o.provider;

	put_model(w, "default", uar_str_c(scripted ? "scripted" : work->o.provider->provider),
		  uar_str_c(!scripted  ? work->o.provider_model
			    : a->model ? a->model
				       : "scripted"));
	if (!scripted && work->o.routing)
		put_routing(w, work->o.routing);
}

void uar_workers_write_policy(const struct uar_workers *work, const struct uar_agent *a,
			      struct uar_jw *w)
{
	const struct uar_json *json = a->definition ? a->definition->def.json : NULL;
	const struct uar_json *rules =
		uar_json_get(uar_json_get(json, UAR_STR("policy")), UAR_STR("provider"));

	uar_jw_obj(w, "provider_policy");
	if (a->info) {
		uar_jw_cstr(w, "from", "program");
		put_model(w, "default", a->info->kind, a->info->model);
	} else if (rules) {
		uar_jw_cstr(w, "from", "definition");
		uar_jw_tree(w, "rules", rules);
	} else if (a->entry == UAR_ENTRY_LLM || (a->definition && a->entry != UAR_ENTRY_PEER)) {
		uar_jw_cstr(w, "from", a->model ? "agent" : "server");
		put_server_model(w, work, a);
	} else {
		uar_jw_cstr(w, "from", "none");
	}
	uar_jw_close(w);
}
