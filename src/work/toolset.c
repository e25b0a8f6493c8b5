/* toolset.c - the registry, the agent's allow, and without every deny. */
#include "work/toolset.h"

#include "event/limits.h"
#include "json/jw.h"
#include "work/limits.h"

static const char *const effects[] = {
	[UAR_TOOL_READ_ONLY] = "read_only",
	[UAR_TOOL_IDEMPOTENT] = "idempotent",
	[UAR_TOOL_ONCE] = "once",
};

const char *rt_tool_effect_name(enum uar_tool_effect e)
{
	return effects[e];
}

enum uar_tool_effect rt_tool_effect_parse(uar_str name)
{
	for (size_t i = 0; i < ARRAY_LEN(effects); i++)
		if (uar_str_is(name, effects[i]))
			return (enum uar_tool_effect)i;
	return UAR_TOOL_ONCE;
}

struct toolset rt_toolset_of(const struct live_run *r)
{
	const struct uar_workers *w = rt_work(r);
	const struct uar_agent *agent = uar_workers_agent(w, rt_state(r)->what.agent_id);

	return (struct toolset){ w->o.tools, agent ? agent->tools : NULL };
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

bool rt_toolset_has(const struct toolset *s, const struct uar_tool *t)
{
	return s->policy && named(s->policy->allow, t) && !named(s->policy->deny, t);
}

bool rt_toolset_asks(const struct toolset *s, const struct uar_tool *t)
{
	return t->ask || (s->policy && named(s->policy->ask, t));
}

size_t rt_toolset_at_once(const struct toolset *s)
{
	size_t n = s->policy && s->policy->at_once ? s->policy->at_once : UAR_LIMIT_TOOLS_AT_ONCE;

	return n < UAR_LIMIT_TOOLS_AT_ONCE ? n : UAR_LIMIT_TOOLS_AT_ONCE;
}

size_t rt_toolset_tell(const struct toolset *s, struct uar_model_tool *out)
{
	const struct uar_tool *t;
	size_t n = 0;

	if (!s->registry || !s->policy)
		return 0;
	for (size_t i = 0; n < UAR_LIMIT_TOOLS_TOLD && (t = s->registry->ops->at(s->registry, i));
	     i++) {
		if (!rt_toolset_has(s, t))
			continue;
		if (out)
			out[n] = (struct uar_model_tool){ t->model_name, t->description,
							  t->input_schema };
		n++;
	}
	return n;
}

static void put_tool(struct uar_jw *w, const struct toolset *s, const struct uar_tool *t)
{
	bool read_only = t->effect == UAR_TOOL_READ_ONLY;

	uar_jw_obj(w, NULL);
	uar_jw_str(w, "tool_id", t->tool_id);
	uar_jw_str(w, "name", t->name);
	uar_jw_str(w, "description", uar_str_utf8_prefix(t->description, UAR_TEXT_REASON));
	uar_jw_str(w, "transport", t->transport);
	uar_jw_str(w, "version", t->version);
	uar_jw_cstr(w, "policy", rt_toolset_asks(s, t) ? "ask" : "allowed");
	uar_jw_cstr(w, "runtime_owner", "uar");
	uar_jw_arr(w, "capabilities");
	uar_jw_close(w);
	uar_jw_cstr(w, "effect", rt_tool_effect_name(t->effect));
	uar_jw_bool(w, "is_read_only", read_only);
	uar_jw_bool(w, "is_concurrency_safe", read_only);
	uar_jw_bool(w, "is_destructive", t->destructive);
	uar_jw_cstr(w, "interrupt_behavior", t->effect == UAR_TOOL_READ_ONLY ? "cancel" : "block");
	uar_jw_raw(w, "tags", t->tags.n ? t->tags : UAR_STR("[]"));
	uar_jw_close(w);
}

/* Those that the event has no room for are counted and not named. */
static uar_err write_catalog(const struct toolset *s, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	const struct uar_tool *t;

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; (t = s->registry->ops->at(s->registry, i)); i++)
		if (rt_toolset_has(s, t) && out->n <= UAR_LIMIT_TOOL_CATALOG)
			put_tool(&w, s, t);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* Written once for all runs that begin with it: the registry does not change. */
uar_err rt_toolset_catalog(struct uar_workers *w, const struct toolset *s, uar_str *out)
{
	struct tool_catalog *c = w->catalogs;
	uar_err e = UAR_OK;

	*out = UAR_STR_NONE;
	if (!s->registry || !s->policy)
		return UAR_OK;
	while (c->policy && c->policy != s->policy)
		if (++c == w->catalogs + UAR_LIMIT_TOOL_POLICIES)
			return UAR_EINTERNAL; /* agents are built in, and few */
	if (!c->policy) {
		c->text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
		e = write_catalog(s, &c->text);
		if (e)
			uar_buf_fini(&c->text);
		else
			c->policy = s->policy;
	}
	if (!e)
		*out = uar_buf_str(&c->text);
	return e;
}

void rt_catalogs_fini(struct uar_workers *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->catalogs); i++)
		uar_buf_fini(&w->catalogs[i].text);
}
