/* definitions.c - definitions by revision, counted by the runs at work with them. */
#include "work/definitions.h"

#include "agent/limits.h"
#include "model/policy.h"

struct pinned {
	struct uar_registered *entry;
	struct uar_tool_policy tools;
	struct uar_toolbox *box;
	struct uar_model_policy routing;
	unsigned pins;
};

struct definition_load {
	struct rt_op under_way;
	struct uar_blob_get get;
	struct live_run *run;
	definition_ready_fn *ready; /* NULL: cancelled */
	void *ctx;
};

void rt_definitions_init(struct uar_workers *w)
{
	uar_map_init(&w->pinned, rt_hash_seed(w->rt));
	uar_list_init(&w->changes.queue);
	uar_list_init(&w->changes.loaders);
	uar_list_init(&w->credentials.queue);
	rt_skill_tally_init(w);
}

static void free_pinned(struct uar_workers *w, struct pinned *p)
{
	uar_map_remove(&w->pinned, uar_str_c(p->entry->def.revision));
	uar_toolbox_unref(p->box);
	uar_registered_unref(p->entry);
	uar_free(p);
}

void rt_definitions_fini(struct uar_workers *w)
{
	struct pinned *p;
	size_t at = 0;

	while ((p = uar_map_next(&w->pinned, &at))) {
		uar_toolbox_unref(p->box);
		uar_registered_unref(p->entry);
		uar_free(p);
	}
	uar_map_fini(&w->pinned);
	rt_skill_tally_fini(w);
}

struct uar_registered *rt_definition_known(const struct uar_workers *w, uar_str revision)
{
	struct uar_registered *e;

	for (size_t i = 0; w->o.registry && (e = uar_registry_at(w->o.registry, i)); i++)
		if (uar_str_is(revision, e->def.revision))
			return e;
	return NULL;
}

static struct pinned *find_pinned(const struct live_run *r)
{
	uar_str revision = rt_state(r)->what.definition;

	return revision.n ? uar_map_get(&rt_work(r)->pinned, revision) : NULL;
}

const struct uar_definition *rt_definition(const struct live_run *r)
{
	const struct pinned *p = find_pinned(r);

	return p ? &p->entry->def : NULL;
}

struct toolset rt_definition_toolset(const struct live_run *r)
{
	const struct pinned *p = find_pinned(r);
	struct uar_tools *tools = rt_work(r)->o.tools;
	const struct uar_json *policy;

	if (!p)
		return (struct toolset){ .registry = tools };
	policy = uar_json_get(p->entry->def.json, UAR_STR("policy"));
	return (struct toolset){ .registry = p->box ? uar_toolbox_tools(p->box) : tools,
				 .policy = &p->tools,
				 .agents =
					 uar_json_first(uar_json_get(policy, UAR_STR("agents"))) ||
					 rt_state(r)->what.entry == UAR_ENTRY_WORKFLOW,
				 .box = p->box,
				 .revision = p->entry->def.revision };
}

/* Only a definition that says something about tools has a box. */
static uar_err make_box(struct uar_workers *w, const struct uar_definition *d, bool from_file,
			struct uar_toolbox **out, struct uar_error *error)
{
	struct uar_toolbox_options o = { .sched = rt_sched(w->rt),
					 .tools_below = w->o.tools,
					 .client = w->o.client,
					 .secrets = w->o.secrets,
					 .agent_id = d->info.agent_id,
					 .from_file = from_file,
					 .tools = uar_json_get(d->json, UAR_STR("tools")) };

	return o.tools && w->o.tools ? uar_toolbox_create(&o, out, error) : UAR_OK;
}

static struct uar_tool_policy policy_of(const struct uar_definition *d)
{
	return (struct uar_tool_policy){ d->tools.allow.p, d->tools.deny.p, d->tools.ask.p,
					 (unsigned)d->tools.max_concurrent, d->tools.linked };
}

uar_err rt_definition_tools(struct uar_workers *w, const struct uar_definition *d,
			    struct definition_tools *out, struct uar_error *error)
{
	uar_err e;

	out->policy = policy_of(d);
	out->set = (struct toolset){ .registry = w->o.tools, .policy = &out->policy };
	e = make_box(w, d, false, &out->set.box, error);
	if (!e && out->set.box)
		out->set.registry = uar_toolbox_tools(out->set.box);
	return e;
}

bool rt_definition_is_from_file(const struct live_run *r)
{
	const struct pinned *p = find_pinned(r);

	return p && p->entry->source == UAR_AGENT_FROM_FILE;
}

uar_err rt_definition_check_tools(struct uar_workers *w, const struct uar_definition *d,
				  struct uar_error *error)
{
	struct definition_tools t;
	uar_err e = rt_definition_tools(w, d, &t, error);

	if (!e && t.set.box)
		e = rt_toolset_complete(&t.set, error);
	uar_toolbox_unref(t.set.box);
	return e;
}

const struct uar_model_policy *rt_definition_routing(const struct live_run *r)
{
	const struct pinned *p = find_pinned(r);

	return p && p->routing.count ? &p->routing : NULL;
}

/* The entry is referenced. */
static uar_err pin_entry(struct uar_workers *w, struct uar_registered *entry)
{
	struct pinned *p = uar_zalloc(sizeof *p);
	uar_err e = UAR_OK;

	if (!p)
		return UAR_ENOMEM;
	p->entry = entry;
	p->pins = 1;
	p->tools = policy_of(&entry->def);
	e = make_box(w, &entry->def, entry->source == UAR_AGENT_FROM_FILE, &p->box, NULL);
	if (!e && entry->def.routing.rules)
		e = uar_model_policy_read(entry->def.routing.rules, &p->routing, NULL);
	if (!e)
		e = uar_map_put(&w->pinned, uar_str_c(entry->def.revision), p);
	if (e) {
		uar_toolbox_unref(p->box);
		uar_free(p);
	} else {
		uar_registered_ref(entry);
	}
	return e;
}

/* --- from its blob ------------------------------------------------------------------------ */

static uar_err read_blob(struct definition_load *l, struct uar_error *error)
{
	struct uar_registered *entry;
	struct uar_definition def;
	uar_err e = l->get.err ? l->get.err : uar_definition_read(l->get.bytes, &def, error);

	if (!e)
		e = uar_registered_take(&def, &entry);
	if (e)
		return e;
	entry->stored = true;
	entry->source = UAR_AGENT_FROM_DATABASE; /* no file has it now */
	e = pin_entry(rt_work(l->run), entry);
	uar_registered_unref(entry);
	return e;
}

static void blob_ready(struct uar_blob_get *get)
{
	struct definition_load *l = UAR_OWNER(get, struct definition_load, get);
	struct uar_error error = { 0 };
	struct pinned *p = l->ready ? find_pinned(l->run) : NULL;
	uar_err e = UAR_OK;

	if (p) /* another run was quicker */
		p->pins++;
	else if (l->ready)
		e = read_blob(l, &error);
	if (l->ready)
		l->ready(l->ctx, e, &error);
	uar_store_blob_get_fini(&l->get);
	rt_op_end(&l->under_way);
	uar_free(l);
}

static void drop_load(struct rt_op *op)
{
	uar_free(UAR_OWNER(op, struct definition_load, under_way));
}

static uar_err fetch_blob(struct definition_load *l, uar_str revision)
{
	struct uar_store *store = rt_store(rt_engine(l->run));

	if (revision.n != sizeof l->get.sha256 - 1)
		return UAR_ECORRUPT;
	memcpy(l->get.sha256, revision.p, revision.n);
	l->get.limit = UAR_LIMIT_AGENT_DEFINITION;
	l->get.done = blob_ready;
	return store->ops->blob_get(store, &l->get);
}

uar_err rt_definition_pin(struct live_run *r, definition_ready_fn *ready, void *ctx,
			  struct definition_load **out)
{
	uar_str revision = rt_state(r)->what.definition;
	struct pinned *p = find_pinned(r);
	struct uar_registered *entry;
	struct definition_load *l;
	uar_err e;

	if (p)
		p->pins++;
	if (p || !revision.n)
		return UAR_ESKIP;
	entry = rt_definition_known(rt_work(r), revision);
	if (entry) {
		e = pin_entry(rt_work(r), entry);
		return e ? e : UAR_ESKIP;
	}
	l = uar_zalloc(sizeof *l);
	if (!l)
		return UAR_ENOMEM;
	l->run = r;
	l->ready = ready;
	l->ctx = ctx;
	e = fetch_blob(l, revision);
	if (e) {
		uar_free(l);
		return e;
	}
	rt_op_begin(rt_engine(r), &l->under_way, drop_load);
	*out = l;
	return UAR_OK;
}

void rt_definition_cancel(struct definition_load *l)
{
	if (l)
		l->ready = NULL;
}

void rt_definition_unpin(struct live_run *r)
{
	struct pinned *p = find_pinned(r);

	if (p && --p->pins == 0)
		free_pinned(rt_work(r), p);
}
