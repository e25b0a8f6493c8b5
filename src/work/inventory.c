/* inventory.c - the tools that a caller may use now, and why not the others. */
#include "base/sha256.h"
#include "work/definitions.h"
#include "work/limits.h"
#include "work/toolset.h"

/* One question on its way to its answer. */
struct inventory {
	const struct uar_inventory_ask *ask;
	struct toolset set;
	struct definition_tools own; /* of a defined agent */
	bool of_model;
};

/* Why the tool is not for this caller; NULL: it is. */
static const char *excluded_by(const struct inventory *i, const struct uar_tool *t)
{
	if (t->state == UAR_TOOL_UNAVAILABLE)
		return "unavailable";
	if (t->state == UAR_TOOL_DENIED)
		return "denied_by_host";
	if (i->of_model && !rt_toolset_has(&i->set, t))
		return "denied_by_agent";
	if (!i->of_model && t->effect != UAR_TOOL_READ_ONLY)
		return "needs_a_run";
	if (i->ask->read_only && t->effect != UAR_TOOL_READ_ONLY)
		return "denied_by_mode";
	return NULL;
}

static const char *policy_of(const struct inventory *i, const struct uar_tool *t)
{
	return i->of_model ? rt_toolset_policy(&i->set, t) : "allowed";
}

static size_t write_tools(struct uar_jw *w, const struct inventory *i)
{
	const struct uar_tool *t;
	size_t n = 0;

	uar_jw_arr(w, "tools");
	for (size_t k = 0; i->set.registry && (t = i->set.registry->ops->at(i->set.registry, k));
	     k++) {
		if (!uar_tool_is_for(t, i->ask->owner) || excluded_by(i, t))
			continue;
		n++;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "tool_id", t->tool_id);
		uar_jw_str(w, "name", t->name);
		uar_jw_str(w, "model_name", t->model_name);
		uar_jw_str(w, "description", t->description);
		uar_jw_str(w, "transport", t->transport);
		uar_jw_str(w, "version", t->version);
		uar_tool_write_rules(w, t, policy_of(i, t));
		uar_jw_close(w);
	}
	uar_jw_close(w);
	return n;
}

static void write_excluded(struct uar_jw *w, const struct inventory *i)
{
	const struct uar_tool *t;

	uar_jw_arr(w, "excluded");
	for (size_t k = 0; i->set.registry && (t = i->set.registry->ops->at(i->set.registry, k));
	     k++) {
		const char *reason = uar_tool_is_for(t, i->ask->owner) ? excluded_by(i, t) : NULL;

		if (!reason)
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "tool_id", t->tool_id);
		uar_jw_cstr(w, "reason", reason);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void write_narrowed_by(struct uar_jw *w, const struct inventory *i)
{
	uar_jw_arr(w, "narrowed_by");
	uar_jw_cstr(w, NULL, "host");
	uar_jw_cstr(w, NULL, i->of_model ? "agent" : "caller");
	if (i->ask->read_only)
		uar_jw_cstr(w, NULL, "mode");
	uar_jw_close(w);
}

/* The same tools under the same rules have the same id. */
static void write_id(struct uar_jw *w, const struct inventory *i, uint64_t generation)
{
	char text[2 * UAR_LIMIT_ID_BYTES], sha256[UAR_SHA256_TEXT + 1];

	snprintf(text, sizeof text, "%llu\n%d\n%d\n%.*s", (unsigned long long)generation,
		 i->of_model, i->ask->read_only, UAR_FMT(i->ask->agent_id));
	uar_sha256_hex(uar_str_c(text), sha256);
	uar_jw_str(w, "inventory_id", uar_str_n(sha256, 32));
}

static uar_err find_policy(struct uar_workers *w, struct inventory *i, struct uar_error *error)
{
	const struct uar_agent *a;

	i->set.registry = w->o.tools;
	i->of_model = i->ask->agent_id.n != 0;
	if (!i->of_model)
		return UAR_OK;
	a = uar_workers_agent(w, i->ask->owner, i->ask->agent_id);
	if (!a) {
		uar_error_where(error, "/agent_id");
		return uar_error_set(
			error, UAR_ENOTFOUND, "no agent %.*s",
			UAR_FMT(uar_str_utf8_prefix(i->ask->agent_id, UAR_LIMIT_ID_BYTES)));
	}
	if (a->definition) {
		uar_err e = rt_definition_tools(w, &a->definition->def, &i->own, error);

		if (e) {
			uar_toolbox_unref(i->own.set.box);
			return e;
		}
		i->set = i->own.set;
	} else {
		i->set.policy = a->tools;
	}
	i->set.owner = i->ask->owner;
	return UAR_OK;
}

uar_err uar_workers_inventory(struct uar_workers *w, const struct uar_inventory_ask *ask,
			      struct uar_buf *out, struct uar_error *error)
{
	struct inventory i = { .ask = ask };
	uar_err e = find_policy(w, &i, error);
	struct uar_jw jw = uar_jw_begin(out);
	uint64_t generation;

	if (e)
		return e;
	generation = i.set.registry ? uar_tools_generation(i.set.registry) : 0;
	uar_jw_obj(&jw, NULL);
	write_id(&jw, &i, generation);
	uar_jw_cstr(&jw, "caller", i.of_model ? "model" : "api");
	if (i.of_model)
		uar_jw_str(&jw, "agent_id", ask->agent_id);
	else
		uar_jw_null(&jw, "agent_id");
	uar_jw_cstr(&jw, "mode", ask->read_only ? "read_only" : "default");
	uar_jw_u64(&jw, "generation", generation);
	uar_jw_cstr(&jw, "state", i.set.registry ? "available" : "unavailable");
	uar_jw_u64(&jw, "count", write_tools(&jw, &i));
	write_excluded(&jw, &i);
	write_narrowed_by(&jw, &i);
	uar_jw_close(&jw);
	uar_toolbox_unref(i.own.set.box);
	return uar_jw_end(&jw);
}

uar_err uar_workers_toolbox(struct uar_workers *w, const struct uar_inventory_ask *ask,
			    uar_str revision, struct uar_toolbox **out, struct uar_error *error)
{
	const struct uar_agent *a = uar_workers_agent(w, ask->owner, ask->agent_id);
	struct definition_tools t = { 0 };
	uar_err e;

	if (!a || !a->definition || !uar_str_is(revision, a->definition->def.revision)) {
		uar_error_where(error, "/revision");
		return uar_error_set(error, UAR_ENOTFOUND,
				     "the agent's definition is not this revision any more: put it "
				     "back to call its own tools");
	}
	e = rt_definition_tools(w, &a->definition->def, &t, error);
	if (e)
		uar_toolbox_unref(t.set.box);
	else
		*out = t.set.box;
	return e;
}
