/* agents.c - the agents that runs can name, and their definitions. */
#include "agent/registry.h"
#include "gate/gate_int.h"
#include "gate/limits.h"

size_t gate_broken_agents(const struct uar_gate *g)
{
	const struct uar_registry *r = uar_workers_registry(g->o.work);
	size_t n = 0;

	while (r && uar_registry_broken_at(r, n))
		n++;
	return n;
}

static void put_source(struct uar_jw *w, const struct uar_registered *entry)
{
	const struct uar_json *metadata = uar_json_get(entry->def.json, UAR_STR("metadata"));
	const struct uar_json *tags = uar_json_get(metadata, UAR_STR("tags"));

	uar_jw_cstr(w, "source", uar_agent_source_names[entry->source]);
	uar_jw_cstr(w, "revision", entry->def.revision);
	if (entry->file[0])
		uar_jw_cstr(w, "file", entry->file);
	if (entry->version)
		uar_jw_int(w, "version", entry->version);
	if (tags)
		uar_jw_tree(w, "tags", tags);
}

static void put_agent(struct uar_jw *w, const struct uar_agent *a)
{
	uar_jw_cstr(w, "agent_id", a->id);
	uar_jw_cstr(w, "title", a->title);
	uar_jw_cstr(w, "description", a->doc);
	uar_jw_cstr(w, "entry",
		    a->definition ? a->definition->def.info.entry.p : uar_entry_name(a->entry));
	if (a->info)
		uar_jw_bool(w, "takes_working_dir", a->info->takes_working_dir);
	if (a->definition)
		put_source(w, a->definition);
}

static void put_broken(struct uar_jw *w, const struct uar_registry *r)
{
	const struct uar_registry_broken *b;

	uar_jw_arr(w, "broken");
	for (size_t i = 0; r && (b = uar_registry_broken_at(r, i)); i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "file", b->file);
		uar_jw_cstr(w, "error", b->text);
		uar_jw_cstr(w, "agent_id", b->agent_id[0] ? b->agent_id : NULL);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void gate_list_agents(struct call *c)
{
	const struct uar_workers *work = c->g->o.work;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_agent *a;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "agents");
	for (size_t i = 0; (a = uar_workers_agent_at(work, i)); i++) {
		if (!uar_workers_shows(work, &c->owner, a))
			continue;
		uar_jw_obj(&w, NULL);
		put_agent(&w, a);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	put_broken(&w, uar_workers_registry(work));
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}
