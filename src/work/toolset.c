/* toolset.c - the registry, the agent's allow, and without every deny. */
#include "work/toolset.h"

#include "event/sizes.h"
#include "json/jw.h"
#include "json/limits.h"
#include "work/definitions.h"
#include "work/limits.h"
#include "work/skills.h"
#include "work/tool_loop.h"

static struct toolset toolset_of_agent(const struct live_run *r)
{
	const struct uar_workers *w = rt_work(r);
	const struct uar_agent *agent = uar_agent_find(rt_state(r)->what.agent_id);

	if (rt_state(r)->what.definition.n) {
		struct toolset set = rt_definition_toolset(r);

		set.owner = &rt_agg_session(rt_agg(r))->owner;
		set.skills = rt_llm_skills(r);
		set.rounds = rt_llm_rounds(r);
		return set;
	}
	return (struct toolset){ .registry = w->o.tools,
				 .owner = &rt_agg_session(rt_agg(r))->owner,
				 .policy = agent ? agent->tools : NULL,
				 .rounds = rt_llm_rounds(r) };
}

struct toolset rt_toolset_of(const struct live_run *r)
{
	static const struct uar_tool_policy none = { 0 };
	struct toolset set = toolset_of_agent(r);
	struct uar_tools *with_clients = rt_llm_tools(r);

	if (!with_clients)
		return set;
	set.registry = with_clients;
	set.client = true;
	set.policy = set.policy ? set.policy : &none;
	return set;
}

/* Is it named by one of the patterns, which are separated by spaces? */
static bool named(const char *patterns, const struct uar_tool *t)
{
	uar_str rest = uar_str_c(patterns);

	while (rest.n) {
		size_t n = uar_str_find(rest, ' ');

		if (n && uar_tool_matches(t, uar_str_n(rest.p, n)))
			return true;
		rest = uar_str_from(rest, n < rest.n ? n + 1 : n);
	}
	return false;
}

/* What the agent could use, were it not for what it is denied. A definition that allows nothing
 * expressly means the tools that it brings along and those of its bundles. */
static bool is_listed(const struct toolset *s, const struct uar_tool *t)
{
	if (!s->policy || !uar_tool_is_for(t, s->owner) || !rt_skills_show(s->skills, t->tool_id))
		return false;
	if (!s->agents && uar_str_starts(t->tool_id, UAR_STR("internal:agent.")))
		return false; /* it has nobody to start */
	if (t->by == UAR_TOOL_BY_CLIENT)
		return true;
	if (t->by == UAR_TOOL_BY_SEARCH)
		return rt_toolset_is_lazy(s);
	if (uar_toolbox_lacks(s->box, t))
		return true; /* it is shown, and cannot be used */
	if ((t->own_of.n && !uar_toolbox_brings(s->box, t)) || uar_toolbox_narrows(s->box, t))
		return false;
	return s->policy->allow && s->policy->allow[0] ? named(s->policy->allow, t)
						       : uar_toolbox_offers(s->box, t);
}

bool rt_toolset_has(const struct toolset *s, const struct uar_tool *t)
{
	return is_listed(s, t) && !uar_toolbox_lacks(s->box, t) && !named(s->policy->deny, t) &&
	       rt_skills_allow(s->skills, t->tool_id);
}

bool rt_tool_is_ready(const struct uar_tool *t)
{
	return t->state == UAR_TOOL_AVAILABLE || t->state == UAR_TOOL_SANDBOXED;
}

bool rt_toolset_asks_by_policy(const struct toolset *s, const struct uar_tool *t)
{
	return s->policy && named(s->policy->ask, t);
}

bool rt_toolset_asks(const struct toolset *s, const struct uar_tool *t)
{
	return t->ask || rt_toolset_asks_by_policy(s, t) || uar_toolbox_unpinned(s->box, t);
}

const char *rt_toolset_policy(const struct toolset *s, const struct uar_tool *t)
{
	if (t->state == UAR_TOOL_UNAVAILABLE || uar_toolbox_lacks(s->box, t))
		return "unavailable";
	if (t->state == UAR_TOOL_DENIED || !rt_toolset_has(s, t))
		return "denied";
	if (rt_toolset_asks(s, t))
		return "ask";
	return t->state == UAR_TOOL_SANDBOXED ? "sandboxed" : "allowed";
}

uar_err rt_toolset_check(const struct toolset *s, const struct uar_tool *t, uar_str args,
			 struct uar_error *error)
{
	uar_err e = s->registry->ops->check(s->registry, t, args, error);

	if (!e)
		e = uar_toolbox_check(s->box, t, args, error);
	if (e && error)
		error->code = e;
	return e;
}

const struct uar_tool *rt_toolset_named(const struct toolset *s, uar_str model_name)
{
	return s->registry ? uar_tools_by_model_name(s->registry, s->owner, model_name) : NULL;
}

bool rt_toolset_offers(const struct toolset *s, uar_str pattern)
{
	const struct uar_tool *t;

	for (size_t i = 0; s->registry && (t = s->registry->ops->at(s->registry, i)); i++)
		if (uar_tool_matches(t, pattern) && rt_toolset_has(s, t) && rt_tool_is_ready(t))
			return true;
	return false;
}

static bool has_one(void *ctx, uar_str pattern)
{
	return rt_toolset_offers(*(const struct toolset *const *)ctx, pattern);
}

uar_err rt_toolset_complete(const struct toolset *s, struct uar_error *error)
{
	uar_str bundle, pattern;

	if (uar_toolbox_complete(s->box, has_one, (void *)&s, &bundle, &pattern))
		return UAR_OK;
	return uar_error_set(error, UAR_ESTATE,
			     "the agent needs the tools of its bundle \"%.*s\", and there is no "
			     "%.*s that it may use",
			     UAR_FMT(bundle), UAR_FMT(pattern));
}

size_t rt_toolset_at_once(const struct toolset *s)
{
	size_t n = s->policy && s->policy->at_once ? s->policy->at_once : UAR_LIMIT_TOOLS_USUAL;

	return n < UAR_LIMIT_TOOLS_AT_ONCE ? n : UAR_LIMIT_TOOLS_AT_ONCE;
}

size_t rt_toolset_tell(const struct toolset *s, struct uar_model_tool *out)
{
	const struct uar_tool *t;
	bool lazy = rt_toolset_is_lazy(s);
	size_t n = 0;

	if (!s->registry || !s->policy)
		return 0;
	for (size_t i = 0; n < UAR_LIMIT_TOOLS_TOLD && (t = s->registry->ops->at(s->registry, i));
	     i++) {
		if (!rt_toolset_has(s, t) || !rt_tool_is_ready(t) ||
		    (lazy && rt_toolset_holds_back(s, t)))
			continue;
		if (out)
			out[n] = (struct uar_model_tool){ t->model_name,
							  uar_toolbox_description(s->box, t),
							  uar_toolbox_schema(s->box, t) };
		n++;
	}
	return n;
}

static void put_tool(struct uar_jw *w, const struct toolset *s, const struct uar_tool *t)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "tool_id", t->tool_id);
	uar_jw_str(w, "name", t->name);
	uar_jw_str(w, "description",
		   uar_str_utf8_prefix(uar_toolbox_description(s->box, t), UAR_TEXT_REASON));
	uar_jw_str(w, "transport", t->transport);
	uar_jw_str(w, "version", t->version);
	uar_tool_write_rules(w, t, rt_toolset_policy(s, t));
	uar_jw_close(w);
}

/* Those that the event has no room for are counted and not named. */
static uar_err write_catalog(const struct toolset *s, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	const struct uar_tool *t;

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; (t = s->registry->ops->at(s->registry, i)); i++)
		if (is_listed(s, t) && out->n <= UAR_LIMIT_TOOL_CATALOG)
			put_tool(&w, s, t);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static void write_key(const struct toolset *s, char out[UAR_SHA256_TEXT + 1])
{
	const struct uar_tool_policy *p = s->policy;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	uar_buf_printf(&b, "%s\n%s\n%s\n%s", s->revision ? s->revision : "",
		       p->allow ? p->allow : "", p->deny ? p->deny : "", p->ask ? p->ask : "");
	if (s->owner)
		uar_buf_printf(&b, "\n%.*s\n%.*s\n%.*s", UAR_FMT(s->owner->tenant),
			       UAR_FMT(s->owner->workspace), UAR_FMT(s->owner->user));
	if (s->skills)
		rt_skills_write_key(s->skills, &b);
	uar_sha256_hex(uar_buf_str(&b), out);
	if (b.err)
		out[0] = 0; /* it is written anew */
	uar_buf_fini(&b);
}

/* The one of that key, else the one to give up for it. */
static struct tool_catalog *place_for(struct tool_catalogs *all, const char *key)
{
	struct tool_catalog *least = all->at;

	for (size_t i = 0; i < ARRAY_LEN(all->at); i++) {
		struct tool_catalog *c = &all->at[i];

		if (c->key[0] && strcmp(c->key, key) == 0)
			return c;
		if (c->used < least->used)
			least = c;
	}
	return least;
}

/* Written once for all runs that begin with it, as long as the registry does not change. */
uar_err rt_toolset_catalog(struct uar_workers *w, const struct toolset *s, uar_str *out)
{
	uint64_t generation = uar_tools_generation(s->registry);
	char key[UAR_SHA256_TEXT + 1];
	struct tool_catalog *c;
	uar_err e = UAR_OK;

	*out = UAR_STR_NONE;
	if (!s->registry || !s->policy)
		return UAR_OK;
	write_key(s, key);
	if (s->client)
		key[0] = 0; /* another run has other ones */
	c = place_for(&w->catalogs, key);
	if (!key[0] || strcmp(c->key, key) != 0 || c->generation != generation) {
		uar_buf_fini(&c->text);
		*c = (struct tool_catalog){ .text = uar_buf_make(UAR_LIMIT_EVENT_BYTES) };
		e = write_catalog(s, &c->text);
		if (!e)
			memcpy(c->key, key, sizeof key);
		c->generation = generation;
	}
	c->used = ++w->catalogs.uses;
	if (!e)
		*out = uar_buf_str(&c->text);
	return e;
}

void rt_catalogs_fini(struct uar_workers *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->catalogs.at); i++)
		uar_buf_fini(&w->catalogs.at[i].text);
}
