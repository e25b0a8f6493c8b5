/* work.c - the workers' life, and which of them executes which entry. */
#include "event/limits.h"
#include "work/definitions.h"

static uar_err (*const makers[UAR_ENTRY_COUNT])(struct live_run *r, struct worker **out) = {
	[UAR_ENTRY_ECHO] = rt_echo_make,     [UAR_ENTRY_FIXTURE] = rt_fixture_make,
	[UAR_ENTRY_LLM] = rt_llm_make,	     [UAR_ENTRY_PLUGIN] = rt_plugin_make,
	[UAR_ENTRY_CODEX] = rt_backend_make, [UAR_ENTRY_CLAUDE_CODE] = rt_backend_make,
	[UAR_ENTRY_ACP] = rt_backend_make,   [UAR_ENTRY_PEER] = rt_peer_make,
	[UAR_ENTRY_WORKFLOW] = rt_llm_make,
};

static uar_err make_worker(struct rt_workers *port, struct live_run *r, struct worker **out)
{
	(void)port;
	return makers[rt_state(r)->what.entry](r, out);
}

static const struct rt_workers_ops ops = {
	.check = rt_request_check,
	.look = rt_request_look,
	.make = make_worker,
	.may_begin = rt_plugin_may_begin,
	.leave = rt_plugin_leave,
	.process = rt_process_order,
};

static void on_commit(struct rt_part *p, const struct rt_commit *c)
{
	rt_processes_committed(UAR_OWNER(p, struct uar_workers, part), c);
}

static void release_pasts(struct rt_part *p)
{
	rt_pasts_clear(&UAR_OWNER(p, struct uar_workers, part)->pasts);
}

static void destroy_work(struct rt_part *p)
{
	struct uar_workers *w = UAR_OWNER(p, struct uar_workers, part);

	rt_agents_clear(w);
	rt_pasts_fini(&w->pasts);
	rt_catalogs_fini(w);
	rt_host_policy_fini(w);
	rt_definitions_fini(w);
	uar_free(w->defined.at);
	uar_free(w);
}

uar_err uar_workers_create(struct uar_runtime *rt, const struct uar_workers_options *o,
			   struct uar_workers **out)
{
	struct uar_workers *w = uar_zalloc(sizeof *w);
	uar_err e;

	if (!w)
		return UAR_ENOMEM;
	w->rt = rt;
	w->o = *o;
	w->port.ops = &ops;
	uar_list_init(&w->pasts.list);
	uar_map_init(&w->pasts.map, rt_hash_seed(rt));
	rt_definitions_init(w);
	e = rt_agents_init(w);
	if (e) {
		rt_definitions_fini(w);
		uar_free(w);
		return e;
	}
	rt_processes_init(w);
	w->part.committed = on_commit;
	w->part.release = release_pasts;
	w->part.destroy = destroy_work;
	rt_part_add(rt, &w->part);
	rt_workers_set(rt, &w->port);
	*out = w;
	return UAR_OK;
}

struct uar_workers *rt_work_at(const struct uar_runtime *rt)
{
	return UAR_OWNER(rt_workers(rt), struct uar_workers, port);
}

struct uar_workers *rt_work(const struct live_run *r)
{
	return rt_work_at(rt_engine(r));
}

uar_err rt_read_run(struct agg *a, struct uar_read *r)
{
	struct uar_store *store = rt_store(rt_agg_engine(a));

	r->owner = rt_agg_session(a)->owner;
	r->limit = UAR_LIMIT_READ_PAGE;
	return store->ops->read(store, r);
}

void uar_workers_reload(struct uar_workers *w, const struct uar_model_patience *p)
{
	w->o.patience = *p;
}

struct uar_entries *uar_workers_entries(const struct uar_workers *w)
{
	return w->o.entries;
}

struct uar_tools *uar_workers_tools(const struct uar_workers *w)
{
	return w->o.tools;
}
