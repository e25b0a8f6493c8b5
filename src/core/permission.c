/* permission.c - the order of those who have a say about a call. */
#include "core/limits.h"
#include "core/permission.h"

enum { REASON = 256 };

struct mode_info {
	const char *text;
	enum uar_permission_verdict read, write, network, destructive, cautious, failed;
	bool loosens;
};
static const struct mode_info modes[UAR_MODE_COUNT] = {
#define MODE(NAME, TEXT, READ, WRITE, NETWORK, DESTRUCTIVE, CAUTIOUS, FAILED, LOOSENS, DOC)        \
	[UAR_MODE_##NAME] = { TEXT,                                                                \
			      UAR_SAYS_##READ,                                                     \
			      UAR_SAYS_##WRITE,                                                    \
			      UAR_SAYS_##NETWORK,                                                  \
			      UAR_SAYS_##DESTRUCTIVE,                                              \
			      UAR_SAYS_##CAUTIOUS,                                                 \
			      UAR_SAYS_##FAILED,                                                   \
			      LOOSENS },
#include "core/permission.def"
};

static const struct {
	const char *text, *event;
	bool lifts;
} sources[UAR_PERMIT_BY_COUNT] = {
#define SOURCE(NAME, TEXT, EVENT, LIFTS, DOC) [UAR_PERMIT_BY_##NAME] = { TEXT, EVENT, LIFTS },
#include "core/permission.def"
};

static const char *const verdicts[] = {
	[UAR_SAYS_NOTHING] = "",
	[UAR_SAYS_ALLOW] = "allow",
	[UAR_SAYS_ASK] = "ask",
	[UAR_SAYS_DENY] = "deny",
};

const char *uar_permission_mode_name(enum uar_permission_mode m)
{
	return modes[m].text;
}

enum uar_permission_mode uar_permission_mode_parse(uar_str name)
{
	for (int m = UAR_MODE_NONE + 1; name.n && m < UAR_MODE_COUNT; m++)
		if (uar_str_is(name, modes[m].text))
			return (enum uar_permission_mode)m;
	return UAR_MODE_NONE;
}

bool uar_permission_mode_loosens(enum uar_permission_mode m)
{
	return modes[m].loosens;
}

const char *uar_permission_verdict_name(enum uar_permission_verdict v)
{
	return verdicts[v];
}

enum uar_permission_verdict uar_permission_verdict_parse(uar_str name)
{
	for (size_t v = UAR_SAYS_ALLOW; v < ARRAY_LEN(verdicts); v++)
		if (uar_str_is(name, verdicts[v]))
			return (enum uar_permission_verdict)v;
	return UAR_SAYS_NOTHING;
}

enum uar_permission_mode uar_permission_effective(const struct uar_permission_modes *m)
{
	const enum uar_permission_mode in_order[] = { m->run, m->thread, m->session, m->definition,
						      m->host };

	for (size_t i = 0; i < ARRAY_LEN(in_order); i++)
		if (in_order[i] && (!modes[in_order[i]].loosens || m->allowed & 1u << in_order[i]))
			return in_order[i];
	return UAR_MODE_DEFAULT;
}

uar_err uar_run_permit_read(uar_str mode, bool interactive, struct uar_run_permit *out,
			    struct uar_error *error)
{
	struct uar_run_permit p = { uar_permission_mode_parse(mode), !interactive };

	if (mode.n && !p.mode) {
		uar_error_where(error, "/permission_mode");
		return uar_error_set(error, UAR_EINVALID,
				     "one of default, untrusted, on_request, on_failure, never, "
				     "plan, bypass, auto");
	}
	*out = p;
	return UAR_OK;
}

struct uar_run_permit uar_run_permit_of(const struct uar_json *o)
{
	return (struct uar_run_permit){
		uar_permission_mode_parse(uar_json_text(o, "permission_mode")),
		!uar_json_bool(uar_json_get(o, UAR_STR("interactive")), true),
	};
}

const char *uar_permission_class(const struct uar_permission_call *call)
{
	if (call->destructive)
		return "destructive";
	if (call->network)
		return "network";
	return call->read_only ? "read" : "write";
}

/* --- the decision ---------------------------------------------------------------------------- */

static enum uar_permission_verdict stricter(enum uar_permission_verdict a,
					    enum uar_permission_verdict b)
{
	return a > b ? a : b;
}

static enum uar_permission_verdict mode_says(enum uar_permission_mode mode,
					     const struct uar_permission_call *call)
{
	const struct mode_info *m = &modes[mode];
	enum uar_permission_verdict v = call->read_only ? m->read : m->write;

	if (call->network)
		v = stricter(v, m->network);
	if (call->destructive)
		v = stricter(v, m->destructive);
	if (call->cautious)
		v = stricter(v, m->cautious);
	return call->failed ? stricter(v, m->failed) : v;
}

void uar_permission_add(struct uar_permission_facts *f, struct uar_permission_say say)
{
	/* The mode, a grant and a person have places of their own. */
	enum { ROOM = UAR_LIMIT_PERMISSION_SAYS - 3 };

	if (!say.verdict)
		return;
	if (f->count < ROOM)
		f->says[f->count++] = say;
	else if (say.verdict > f->says[ROOM - 1].verdict)
		f->says[ROOM - 1] = say;
}

/* The first of what says that; count: nobody does. The mode counts where `mode` says so. */
static size_t first_that_says(const struct uar_permission_facts *f, enum uar_permission_verdict v,
			      bool mode)
{
	size_t i = 0;

	while (i < f->count && (f->says[i].verdict != v ||
				(!mode && (f->says[i].source == UAR_PERMIT_BY_MODE ||
					   f->says[i].source == UAR_PERMIT_BY_CLASSIFIER))))
		i++;
	return i;
}

/* An allow that answers what only the mode asks; count: there is none. */
static size_t first_that_lifts(const struct uar_permission_facts *f)
{
	size_t i = 0;

	while (i < f->count &&
	       !(f->says[i].verdict == UAR_SAYS_ALLOW && sources[f->says[i].source].lifts))
		i++;
	return i;
}

static size_t add_own(struct uar_permission_facts *f, struct uar_permission_say say)
{
	f->says[f->count] = say;
	return f->count++;
}

static void settle(struct uar_permission *p, enum uar_permission_verdict v, size_t by)
{
	p->verdict = v;
	p->by = by;
	p->source = p->facts.says[by].source;
	p->reason = p->facts.says[by].reason;
}

/* Somebody has to be asked, and `by` wants it. */
static void settle_ask(struct uar_permission *p, size_t by)
{
	struct uar_permission_facts *f = &p->facts;

	if (f->allowed) {
		by = add_own(
			f, (struct uar_permission_say){ .source = UAR_PERMIT_BY_HUMAN,
							.verdict = UAR_SAYS_ALLOW,
							.reason = UAR_STR("a person allows it") });
		settle(p, UAR_SAYS_ALLOW, by);
	} else if (f->grant.n) {
		by = add_own(f,
			     (struct uar_permission_say){ .source = UAR_PERMIT_BY_GRANT,
							  .verdict = UAR_SAYS_ALLOW,
							  .rule = f->grant,
							  .reason = UAR_STR("a grant allows it") });
		settle(p, UAR_SAYS_ALLOW, by);
	} else if (f->unattended || f->mode == UAR_MODE_NEVER) {
		settle(p, UAR_SAYS_DENY, by);
		p->reason = f->unattended ? UAR_STR("it has to be allowed, and nobody can be asked")
					  : UAR_STR("it has to be allowed, and the mode is never");
	} else {
		settle(p, UAR_SAYS_ASK, by);
	}
}

static struct uar_permission_say say_of_mode(const struct uar_permission_facts *f)
{
	static const uar_str reasons[] = {
		[UAR_SAYS_NOTHING] = UAR_STR(""),
		[UAR_SAYS_ALLOW] = UAR_STR("the agent may use it without asking"),
		[UAR_SAYS_ASK] = UAR_STR("each call has to be allowed"),
		[UAR_SAYS_DENY] = UAR_STR("the mode forbids it"),
	};
	enum uar_permission_verdict v = mode_says(f->mode, &f->call);

	return (struct uar_permission_say){
		.source = f->mode == UAR_MODE_AUTO ? UAR_PERMIT_BY_CLASSIFIER : UAR_PERMIT_BY_MODE,
		.verdict = v,
		.reason = reasons[v],
	};
}

void uar_permission_decide(const struct uar_permission_facts *facts, struct uar_permission *out)
{
	struct uar_permission_facts *f;
	size_t mode, by;

	*out = (struct uar_permission){ .facts = *facts };
	f = &out->facts;
	mode = add_own(f, say_of_mode(f));
	by = first_that_says(f, UAR_SAYS_DENY, true);
	if (by < f->count) {
		settle(out, UAR_SAYS_DENY, by);
		return;
	}
	by = first_that_says(f, UAR_SAYS_ASK, false);
	if (by < f->count) {
		settle_ask(out, by);
		return;
	}
	by = first_that_lifts(f);
	if (f->says[mode].verdict == UAR_SAYS_ASK && by == f->count)
		settle_ask(out, mode);
	else
		settle(out, UAR_SAYS_ALLOW, by < f->count ? by : mode);
	if (!out->reason.n)
		out->reason = UAR_STR("a rule allows it");
}

/* --- rules ----------------------------------------------------------------------------------- */

struct rule {
	const struct uar_json *tool;
	uar_str class, agent, decision, reason;
};
static const struct uar_json_field rule_fields[] = {
	{ "tool", UAR_FIELD_ANY, false, offsetof(struct rule, tool) },
	{ "class", UAR_FIELD_STR, false, offsetof(struct rule, class) },
	{ "agent", UAR_FIELD_STR, false, offsetof(struct rule, agent) },
	{ "decision", UAR_FIELD_STR, true, offsetof(struct rule, decision) },
	{ "reason", UAR_FIELD_STR, false, offsetof(struct rule, reason) },
};

static bool is_class(uar_str class)
{
	static const char *const all[] = { "", "read", "write", "network", "destructive" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (uar_str_is(class, all[i]))
			return true;
	return false;
}

static uar_err refuse_rule(struct uar_error *error, size_t i, const char *member, const char *why)
{
	uar_error_where(error, "/%zu%s", i, member);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

/* A pattern, or a list of them. */
static bool are_patterns(const struct uar_json *tool)
{
	if (!tool || tool->kind == UAR_JSON_STRING)
		return !tool || tool->text.n;
	if (tool->kind != UAR_JSON_ARRAY || !tool->count)
		return false;
	for (const struct uar_json *t = tool->first; t; t = t->next)
		if (t->kind != UAR_JSON_STRING || !t->text.n)
			return false;
	return true;
}

static uar_err check_rule(const struct uar_json *j, size_t i, struct uar_error *error)
{
	struct rule r = { .class = UAR_STR("") };
	struct uar_error own = { 0 };
	uar_err e = uar_json_read(j, rule_fields, ARRAY_LEN(rule_fields), true, &r, &own);

	if (e) {
		uar_error_where(error, "/%zu%.100s", i, own.where);
		return uar_error_set(error, UAR_EINVALID, "%s", uar_error_text(&own));
	}
	if (!are_patterns(r.tool))
		return refuse_rule(error, i, "/tool", "a pattern such as internal:fs.*, or a list");
	if (r.class.n && !is_class(r.class))
		return refuse_rule(error, i, "/class", "one of read, write, network, destructive");
	if (!uar_permission_verdict_parse(r.decision))
		return refuse_rule(error, i, "/decision", "one of allow, ask, deny");
	return UAR_OK;
}

uar_err uar_permission_check_rules(const struct uar_json *rules, struct uar_error *error)
{
	size_t i = 0;
	uar_err e = UAR_OK;

	if (!rules)
		return UAR_OK;
	if (rules->kind != UAR_JSON_ARRAY)
		return uar_error_set(error, UAR_EINVALID, "a list of rules");
	if (rules->count > UAR_LIMIT_PERMISSION_RULES)
		return uar_error_set(error, UAR_EINVALID, "at most %d rules",
				     UAR_LIMIT_PERMISSION_RULES);
	for (const struct uar_json *r = rules->first; r && !e; r = r->next)
		e = check_rule(r, i++, error);
	return e;
}

static bool names_tool(const struct uar_json *tool, const struct uar_permission_match *m)
{
	if (!tool)
		return true;
	if (tool->kind == UAR_JSON_STRING)
		return m->tool(m->ctx, tool->text);
	for (const struct uar_json *t = uar_json_first(tool); t; t = t->next)
		if (m->tool(m->ctx, t->text))
			return true;
	return false;
}

static bool is_of_class(uar_str class, const struct uar_permission_call *call)
{
	if (!class.n)
		return true;
	if (uar_str_is(class, "read"))
		return call->read_only;
	if (uar_str_is(class, "write"))
		return !call->read_only;
	return uar_str_is(class, "network") ? call->network : call->destructive;
}

uar_err uar_permission_add_rules(struct uar_permission_facts *f,
				 const struct uar_permission_list *list,
				 const struct uar_permission_match *m, struct uar_arena *arena)
{
	size_t i = 0;

	for (const struct uar_json *j = uar_json_first(list->rules); j; j = j->next, i++) {
		struct rule r = { .class = UAR_STR(""), .agent = UAR_STR("") };
		struct uar_permission_say say = { .source = list->source };

		/* What was checked when it was set and cannot be read forbids the call. */
		say.verdict = UAR_SAYS_DENY;
		if (!uar_json_read(j, rule_fields, ARRAY_LEN(rule_fields), true, &r, NULL)) {
			if (!is_of_class(r.class, &m->call) || !names_tool(r.tool, m) ||
			    (r.agent.n && !m->agent(m->ctx, r.agent)))
				continue;
			say.verdict = uar_permission_verdict_parse(r.decision);
		}
		say.rule = uar_arena_printf(arena, "%s/%zu", list->name, i);
		say.reason = r.reason.n ? uar_str_utf8_prefix(r.reason, REASON)
					: uar_arena_printf(arena, "a rule of the %s says %s",
							   sources[list->source].text,
							   verdicts[say.verdict]);
		if (!say.rule.p || !say.reason.p)
			return UAR_ENOMEM;
		uar_permission_add(f, say);
	}
	return UAR_OK;
}

/* --- as it is told --------------------------------------------------------------------------- */

static void put_say(struct uar_jw *w, const struct uar_permission_say *s)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "source", sources[s->source].text);
	uar_jw_cstr(w, "decision", verdicts[s->verdict]);
	if (s->rule.n)
		uar_jw_str(w, "rule_ref", s->rule);
	uar_jw_close(w);
}

static void put_overridden(struct uar_jw *w, const struct uar_permission *p)
{
	uar_jw_arr(w, "overridden");
	for (size_t i = 0; i < p->facts.count; i++) {
		const struct uar_permission_say *s = &p->facts.says[i];

		if (s->verdict == p->verdict || i == p->by)
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "source", sources[s->source].text);
		uar_jw_cstr(w, "decision", verdicts[s->verdict]);
		uar_jw_cstr(w, "by", sources[p->source].text);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_permission_write(struct uar_jw *w, const struct uar_permission *p,
			  const struct uar_permission_about *about)
{
	const struct uar_permission_facts *f = &p->facts;

	uar_jw_cstr(w, "decision", verdicts[p->verdict]);
	uar_jw_cstr(w, "decision_source", sources[p->source].event);
	uar_jw_str(w, "decision_reason", p->reason);
	uar_jw_cstr(w, "mode", modes[f->mode].text);
	uar_jw_arr(w, "rule_refs");
	for (size_t i = 0; i < f->count; i++)
		if (f->says[i].rule.n && (f->says[i].verdict == p->verdict || i == p->by))
			uar_jw_str(w, NULL, f->says[i].rule);
	uar_jw_close(w);
	uar_jw_arr(w, "considered");
	for (size_t i = 0; i < f->count; i++)
		put_say(w, &f->says[i]);
	uar_jw_close(w);
	put_overridden(w, p);
	uar_jw_bool(w, "destructive", f->call.destructive);
	if (!f->call.destructive)
		return;
	uar_jw_str(w, "impact", about->impact);
	uar_jw_str(w, "rollback_advice", about->rollback_advice);
}
