/* agents.c - the agents that are there without any configuration. */
#include "work/definitions.h"

static const struct uar_tool_policy internal_tools = { .allow = "internal:* http:*" };

static const struct uar_agent agents[] = {
	{ .id = "echo",
	  .title = "Echo",
	  .doc = "Answers with the message it was given.",
	  .entry = UAR_ENTRY_ECHO },
	{ .id = "demo",
	  .title = "Demo",
	  .doc = "A scripted model that thinks aloud and answers; needs no key.",
	  .entry = UAR_ENTRY_LLM,
	  .model = "scripted-reasoning",
	  .instructions = "You are the demo agent of UAR.",
	  .tools = &internal_tools },
	{ .id = "tools",
	  .title = "Tools",
	  .doc = "A scripted model that uses the tools a message names, a line each: "
		 "tool NAME {\"argument\": ...}.",
	  .entry = UAR_ENTRY_LLM,
	  .model = "scripted-tools",
	  .instructions = "You are the agent of UAR that shows its tools.",
	  .tools = &internal_tools },
	{ .id = "assistant",
	  .title = "Assistant",
	  .doc = "The configured model (OPENAI_BASE_URL, OPENAI_API_KEY, UAR_MODEL), else the "
		 "scripted one.",
	  .entry = UAR_ENTRY_LLM,
	  .instructions = "You are a helpful assistant.",
	  .tools = &internal_tools },
	{ .id = "model",
	  .title = "Model",
	  .doc = "The same model without tools, which answers one question: what nodes of "
		 "workflows ask.",
	  .entry = UAR_ENTRY_LLM,
	  .instructions = "Answer what you are asked, and nothing besides." },
	{ .id = "fixture",
	  .title = "Fixture",
	  .doc = "Replays a recorded stream: inputs {\"fixture\": NAME, \"pace\": "
		 "\"recorded\"|\"full\"}.",
	  .entry = UAR_ENTRY_FIXTURE },
};

const struct uar_agent *uar_agent_find(uar_str id)
{
	for (size_t i = 0; i < ARRAY_LEN(agents); i++)
		if (uar_str_is(id, agents[i].id))
			return &agents[i];
	return NULL;
}

const struct uar_agent *uar_workers_agent_at(const struct uar_workers *w, size_t index)
{
	if (index < ARRAY_LEN(agents))
		return &agents[index];
	index -= ARRAY_LEN(agents);
	return index < w->defined.count ? &w->defined.at[index] : NULL;
}

uar_err uar_workers_check_agent(const struct uar_workers *w, const struct uar_agent *a,
				struct uar_error *error)
{
	struct uar_agents *host = w->o.agents;

	if (!a->info || !host || !host->ops->check_program)
		return UAR_OK;
	return host->ops->check_program(host, uar_str_c(a->id), error);
}

bool uar_workers_shows(const struct uar_workers *w, const struct uar_owner *owner,
		       const struct uar_agent *agent)
{
	if (agent->info && !w->o.share_programs && w->o.owner.tenant.n &&
	    !uar_owner_eq(owner, &w->o.owner))
		return false;
	return !agent->definition || uar_registry_shows(w->o.registry, owner, agent->definition);
}

const struct uar_agent *uar_workers_agent(const struct uar_workers *w,
					  const struct uar_owner *owner, uar_str id)
{
	const struct uar_agent *a = uar_agent_find(id);

	for (size_t i = 0; i < w->defined.count && !a; i++)
		if (uar_str_is(id, w->defined.at[i].id) &&
		    uar_workers_shows(w, owner, &w->defined.at[i]))
			a = &w->defined.at[i];
	return a;
}

bool uar_agent_has_input_schema(const struct uar_agent *agent)
{
	return agent->definition && agent->definition->def.schemas.inputs;
}

const struct uar_registry *uar_workers_registry(const struct uar_workers *w)
{
	return w->o.registry;
}

static struct uar_agent agent_of(const struct uar_agent_info *info)
{
	return (struct uar_agent){
		.id = info->agent_id.p,
		.title = info->title.p,
		.doc = info->description.p,
		.entry = uar_entry_parse(info->entry),
		.info = info,
	};
}

void rt_agents_clear(struct uar_workers *w)
{
	for (size_t i = 0; i < w->defined.count; i++)
		uar_registered_unref(w->defined.at[i].definition);
	w->defined.count = 0;
}

/* Programs come from the host, which knows how to start them. */
static void add_registered(struct uar_workers *w)
{
	struct uar_registered *entry;

	for (size_t i = 0; w->defined.count < UAR_LIMIT_AGENTS && w->o.registry &&
			   (entry = uar_registry_at(w->o.registry, i));
	     i++) {
		struct uar_agent a = agent_of(&entry->def.info);

		if (uar_str_starts(entry->def.info.entry, UAR_STR("backend.")))
			continue;
		a.info = NULL;
		a.definition = uar_registered_ref(entry);
		w->defined.at[w->defined.count++] = a;
	}
}

void uar_workers_agents_changed(struct uar_workers *w)
{
	struct uar_agents *host = w->o.agents;
	const struct uar_agent_info *info;

	rt_agents_clear(w);
	for (size_t n = 0;
	     host && w->defined.count < UAR_LIMIT_AGENTS && (info = host->ops->at(host, n)); n++)
		w->defined.at[w->defined.count++] = agent_of(info);
	add_registered(w);
	rt_mcp_follow(w);
}

/* There is room for all there can be, so that a change needs none. */
uar_err rt_agents_init(struct uar_workers *w)
{
	if (!w->o.agents && !w->o.registry)
		return UAR_OK;
	w->defined.at = uar_zalloc(UAR_LIMIT_AGENTS * sizeof *w->defined.at);
	if (!w->defined.at)
		return UAR_ENOMEM;
	uar_workers_agents_changed(w);
	return UAR_OK;
}
