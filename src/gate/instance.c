/* instance.c - what an agent is made of here and now: its definition, the models that it uses, its
 * memory, tools and skills, and the bus that its events take. */
#include "agent/registry.h"
#include "gate/gate_int.h"
#include "gate/kb_int.h"
#include "gate/limits.h"
#include "skill/book.h"
#include "work/definition_store.h"
#include "work/skill_trial.h"

struct instance {
	struct kb_call x; /* first */
	struct uar_kb_collections list;
	bool known; /* there is a knowledge base, and `list` is what it has */
};

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static void put_artifact(struct uar_jw *w, const struct uar_agent *a)
{
	uar_jw_obj(w, "artifact");
	uar_jw_cstr(w, "agent_id", a->id);
	uar_jw_cstr(w, "entry",
		    a->definition ? a->definition->def.info.entry.p : uar_entry_name(a->entry));
	uar_jw_cstr(w, "source",
		    a->definition ? uar_agent_source_names[a->definition->source]
		    : a->info	  ? "program"
				  : "built in");
	if (a->definition)
		uar_jw_cstr(w, "revision", a->definition->def.revision);
	if (a->definition && a->definition->version)
		uar_jw_int(w, "version", a->definition->version);
	uar_jw_close(w);
}

/* --- memory --------------------------------------------------------------------------------- */

static void put_conversation(struct uar_jw *w, const struct uar_json *memory)
{
	const struct uar_json *c = member(memory, "conversation");
	const struct uar_json *turns = member(c, "max_turns");

	uar_jw_obj(w, "conversation");
	uar_jw_cstr(w, "adapter", "log");
	uar_jw_bool(w, "enabled", uar_json_bool(member(c, "enabled"), true));
	if (turns)
		uar_jw_tree(w, "max_turns", turns);
	uar_jw_close(w);
}

/* What is known of a collection that the definition names. */
static void put_collection(struct uar_jw *w, const struct instance *k, uar_str name)
{
	const struct uar_kb_collection *at = NULL;

	for (size_t i = 0; i < k->list.n; i++)
		if (uar_str_eq(k->list.at[i].name, name))
			at = &k->list.at[i];
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "collection", name);
	uar_jw_bool(w, "found", at != NULL);
	uar_jw_int(w, "documents", at ? at->documents : 0);
	uar_jw_int(w, "passages", at ? at->chunks : 0);
	if (at)
		uar_jw_str(w, "embedding", at->embedding);
	uar_jw_close(w);
}

static void put_memory(struct uar_jw *w, const struct instance *k, const struct uar_json *memory)
{
	static const char *const adapters[][2] = { { "documents", "documents.db" },
						   { "vectors", "index.db" },
						   { "graph", "documents.db" } };
	const struct uar_json *kb = member(memory, "kb");
	const struct uar_json *list = member(kb, "collections");

	uar_jw_obj(w, "memory");
	put_conversation(w, memory);
	for (size_t i = 0; i < ARRAY_LEN(adapters); i++) {
		uar_jw_obj(w, adapters[i][0]);
		uar_jw_cstr(w, "adapter", k->known ? adapters[i][1] : NULL);
		uar_jw_bool(w, "enabled",
			    k->known && list && uar_json_bool(member(kb, "enabled"), true));
		uar_jw_close(w);
	}
	uar_jw_arr(w, "collections");
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next)
		put_collection(w, k, uar_json_str(j, UAR_STR("")));
	uar_jw_close(w);
	uar_jw_bool(w, "citation_required", uar_json_bool(member(kb, "citation_required"), false));
	uar_jw_close(w);
}

/* --- tools, skills, bus --------------------------------------------------------------------- */

static uar_err put_tools(struct uar_jw *w, struct call *c, const struct uar_agent *a)
{
	struct uar_inventory_ask ask = { .owner = &c->owner, .agent_id = uar_str_c(a->id) };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	uar_err e = uar_workers_inventory(c->g->o.work, &ask, &b, NULL);

	if (!e)
		uar_jw_raw(w, "tool_registry", uar_buf_str(&b));
	uar_buf_fini(&b);
	return e;
}

static void put_skills(struct uar_jw *w, struct call *c, const struct uar_json *policy)
{
	const struct uar_skill_book *book = uar_workers_skills(c->g->o.work);
	const struct uar_skill_entry *e;

	uar_jw_obj(w, "skill_registry");
	uar_jw_bool(w, "enabled", book && policy);
	if (policy)
		uar_jw_tree(w, "policy", policy);
	uar_jw_arr(w, "skills");
	for (size_t i = 0; book && (e = uar_skill_book_at(book, i)); i++) {
		if (uar_skill_book_find(book, &c->owner, e->skill.skill_id) != e)
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "skill_id", e->skill.skill_id);
		uar_jw_str(w, "version", e->skill.version);
		uar_jw_cstr(w, "origin", uar_skill_origin_text(e->skill.origin));
		uar_jw_bool(w, "enabled", e->skill.enabled);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_bus(struct uar_jw *w, struct call *c)
{
	struct uar_reader_stats s;

	uar_reader_stats(c->g->o.reader, &s);
	uar_jw_obj(w, "event_bus");
	uar_jw_cstr(w, "runtime_id", uar_reader_runtime_id(c->g->o.reader));
	uar_jw_int(w, "topics", (int64_t)s.topics);
	uar_jw_int(w, "subscribers", (int64_t)s.subscribers);
	uar_jw_u64(w, "delivered", s.delivered);
	uar_jw_u64(w, "commits", s.commits);
	uar_jw_close(w);
}

/* --- the answer ----------------------------------------------------------------------------- */

static void refuse_unknown(struct call *c)
{
	bool loaded = uar_workers_definitions_loaded(c->g->o.work);
	struct uar_error error = { 0 };

	gate_problem(c,
		     loaded ? uar_error_set(&error, UAR_ENOTFOUND, "no agent is named \"%.*s\"",
					    UAR_FMT(uar_str_utf8_prefix(c->params[0], 64)))
			    : uar_error_set(&error, UAR_EBUSY, "definitions are being read"),
		     &error);
}

static void answer(struct call *c, const struct instance *k)
{
	const struct uar_agent *a = uar_workers_agent(c->g->o.work, &c->owner, c->params[0]);
	const struct uar_json *json = a && a->definition ? a->definition->def.json : NULL;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER * 2);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	if (!a) { /* it may have gone while the worker was asked */
		refuse_unknown(c);
		return;
	}
	uar_jw_obj(&w, NULL);
	put_artifact(&w, a);
	uar_workers_write_policy(c->g->o.work, a, &w);
	put_memory(&w, k, member(json, "memory"));
	e = put_tools(&w, c, a);
	put_skills(&w, c, member(member(json, "policy"), "skills"));
	put_bus(&w, c);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	if (e)
		gate_problem(c, e, NULL);
	else
		gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

static void run_list(struct uar_kb *kb, struct uar_know_job *j)
{
	struct instance *k = (struct instance *)(void *)j;

	j->err = uar_kb_collections(kb, &k->x.place.owner, &j->arena, &k->list, &j->error);
}

static void listed(struct uar_know_job *j)
{
	struct instance *k = (struct instance *)(void *)j;
	struct call *c = k->x.c;

	if (gate_kb_failed(&k->x))
		return;
	k->known = true;
	answer(c, k);
	uar_know_free(j);
}

void gate_get_instance(struct call *c)
{
	static const struct instance none;
	struct instance *k;

	if (!uar_workers_agent(c->g->o.work, &c->owner, c->params[0])) {
		refuse_unknown(c);
		return;
	}
	if (!c->g->o.knowledge) {
		answer(c, &none);
		return;
	}
	k = (struct instance *)(void *)gate_kb_call(c, sizeof *k);
	if (!k)
		return;
	k->x.job.run = run_list;
	k->x.job.done = listed;
	gate_kb_begin(&k->x);
}
