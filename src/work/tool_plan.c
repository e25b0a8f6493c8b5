/* tool_plan.c - what is to be done with a call: run, ask, refuse. */
#include "json/limits.h"
#include "core/permit.h"
#include "work/definitions.h"
#include "work/permission.h"
#include "work/tool_form.h"
#include "work/tool_loop_int.h"

static enum plan refuse(struct place *p, const char *category)
{
	p->category = uar_str_c(category);
	return REFUSE;
}

/* A call that does no harm may still be what stops the server each time. */
static bool may_repeat_unasked(const struct round_call *c)
{
	return c->effect != UAR_TOOL_ONCE && c->repeats < UAR_LIMIT_TOOL_RESTARTS;
}

static enum plan plan_of_open(struct place *p)
{
	const struct round_call *c = p->call;
	bool may = p->tool && rt_toolset_has(&p->loop->set, p->tool);

	if (rt_place_is_orphan(p))
		return rt_place_refuse_orphan(p);
	if (!may || c->denied) {
		p->category = c->denied ? UAR_STR("rejected") : UAR_STR("execution");
		(void)uar_error_set(&p->why, UAR_EINVALID,
				    "it had begun when the server stopped: it may have happened, "
				    "and was not repeated%s",
				    !p->tool ? ", as the tool is not there any more"
				    : !may   ? ", as the agent may not use the tool any more"
					     : "");
		return GIVE_UP;
	}
	if (c->form && !c->filled) {
		p->category = UAR_STR("execution");
		(void)uar_error_set(&p->why, UAR_EINVALID,
				    "it had begun when the server stopped, and the values that it "
				    "was begun with cannot be read any more: it may have happened, "
				    "and was not repeated");
		return GIVE_UP;
	}
	if (c->allowed || may_repeat_unasked(c))
		return RUN_AGAIN;
	if (!rt_place_unattended(p))
		return ASK_AGAIN;
	p->category = UAR_STR("execution");
	(void)uar_error_set(&p->why, UAR_EINVALID,
			    "it had begun when the server stopped: it may have happened, and "
			    "nobody can be asked whether to repeat it");
	return GIVE_UP;
}

static bool may_ask_forms(const struct place *p)
{
	const struct uar_definition *d = rt_definition(p->loop->o.run);

	return !rt_place_unattended(p) && (!d || uar_definition_asks_forms(d));
}

/* Does the definition allow what this member of the call names? Without one all is. */
static bool allows(const struct place *p, const char *member,
		   bool (*of)(const struct uar_definition *d, uar_str named))
{
	const struct uar_definition *d = rt_definition(p->loop->o.run);
	const struct uar_json *args = NULL;
	struct uar_arena arena;
	bool may = !d;

	uar_arena_init(&arena, 0);
	if (d && !uar_json_parse(p->input, NULL, &arena, &args, NULL))
		may = of(d, uar_json_text(args, member));
	uar_arena_fini(&arena);
	return may;
}

static enum plan refuse_ui(struct place *p, const char *member)
{
	(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "%s of the agent's definition forbids it",
			    member);
	return refuse(p, "policy_denied");
}

/* The arguments are wrong: for want of values that a person can give, or for good. */
static enum plan plan_of_wrong(struct place *p, uar_err e)
{
	struct uar_buf names = uar_buf_make(UAR_TEXT_PROMPT);
	bool form = false;

	p->why.code = e;
	if (e == UAR_ESCHEMA && !p->call->filled && p->tool->by != UAR_TOOL_BY_CLIENT &&
	    p->tool->by != UAR_TOOL_BY_ARTIFACT) {
		uar_err missing =
			rt_form_missing(p->tool->input_schema, p->input, &p->form, &names);

		form = !missing && may_ask_forms(p);
		uar_buf_printf(&p->title, "%.*s needs %.*s", UAR_FMT(p->tool->name),
			       UAR_FMT(uar_buf_str(&names)));
		e = missing == UAR_ENOMEM ? missing : e;
	}
	uar_buf_fini(&names);
	return form ? ASK_FORM : refuse(p, e == UAR_ENOMEM ? "execution" : "schema_invalid");
}

/* Somebody was asked for values, and gave none. */
static enum plan plan_of_declined(struct place *p)
{
	if (p->tool->by == UAR_TOOL_BY_CLIENT) {
		(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "%.*s",
				    UAR_FMT(p->call->reason.n
						    ? p->call->reason
						    : UAR_STR("the client did not do it")));
		return refuse(p, "rejected");
	}
	(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "the values were not given%s%.*s",
			    p->call->reason.n ? ": " : "", UAR_FMT(p->call->reason));
	return refuse(p, "rejected");
}

/* Who is asked brings the result. */
static enum plan plan_of_asking(struct place *p)
{
	uar_err e = UAR_OK;

	if (p->tool->by == UAR_TOOL_BY_NAVIGATE && !allows(p, "target", uar_definition_navigates))
		return refuse_ui(p, "ui.navigation");
	if (p->tool->by == UAR_TOOL_BY_FORM && rt_place_unattended(p)) {
		(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "nobody can be asked");
		return refuse(p, "policy_denied");
	}
	if (p->tool->by == UAR_TOOL_BY_FORM && !may_ask_forms(p))
		return refuse_ui(p, "ui.forms");
	if (p->call->filled || p->tool->by == UAR_TOOL_BY_NAVIGATE)
		return RUN;
	if (p->tool->by == UAR_TOOL_BY_FORM)
		e = rt_form_asked(p->input, &p->form, &p->title, &p->why);
	else if (p->input.n > UAR_LIMIT_CLIENT_ARGS)
		e = uar_error_set(&p->why, UAR_ETOOBIG,
				  "the client takes arguments of at most %d bytes",
				  UAR_LIMIT_CLIENT_ARGS);
	else
		uar_buf_add_str(&p->title, p->tool->name);
	if (!e)
		return ASK_FORM;
	p->why.code = e;
	return refuse(p, e == UAR_ENOMEM ? "execution" : "schema_invalid");
}

/* Else whoever is asked brings the result. */
static bool is_done_here(const struct uar_tool *t)
{
	return t && (t->by == UAR_TOOL_BY_START || t->by == UAR_TOOL_BY_ARTIFACT ||
		     t->by == UAR_TOOL_BY_SEARCH);
}

/* What is known of the call before its arguments are looked at. */
static struct uar_permit_facts facts_of(const struct place *p)
{
	const struct uar_tool *t = p->tool;

	return (struct uar_permit_facts){
		.known = t != NULL,
		.off = t && t->state == UAR_TOOL_DENIED,
		.surfaced = t && rt_toolset_has(&p->loop->set, t),
		.ready = t && rt_tool_is_ready(t),
		.denied = p->call->denied,
	};
}

/* It must not be executed. */
static enum plan plan_of_refused(struct place *p, enum uar_permit permit)
{
	const struct round_call *c = p->call;
	const struct uar_tool *t = p->tool;

	switch (permit) {
	case UAR_PERMIT_UNKNOWN:
		(void)uar_error_set(&p->why, UAR_ENOTFOUND, "there is no tool named \"%.*s\"",
				    UAR_FMT(uar_str_utf8_prefix(c->name, UAR_TEXT_CODE)));
		return refuse(p, "unknown_tool");
	case UAR_PERMIT_REJECTED:
		(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "somebody did not allow it%s%.*s",
				    c->reason.n ? ": " : "", UAR_FMT(c->reason));
		return refuse(p, "rejected");
	case UAR_PERMIT_UNAVAILABLE:
	case UAR_PERMIT_DENIED:
	case UAR_PERMIT_ALLOWED: break;
	}
	if (!rt_toolset_has(&p->loop->set, t)) {
		(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "this agent may not use %.*s",
				    UAR_FMT(t->name));
		return refuse(p, "not_surfaced");
	}
	(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "%.*s cannot be used: %.*s", UAR_FMT(t->name),
			    UAR_FMT(t->state_reason));
	return refuse(p, permit == UAR_PERMIT_DENIED ? "policy_denied" : "setup_missing");
}

static bool has_place(const struct tool_loop *l, const struct round_call *c)
{
	for (size_t i = 0; i < PLACES; i++)
		if (l->places[i].call == c)
			return true;
	return false;
}

/* For max_calls of a guardrail. */
static size_t count_begun(void *ctx, const struct uar_json *patterns)
{
	const struct place *p = ctx;
	const struct tool_loop *l = p->loop;
	size_t n = 0;

	for (size_t i = 0; i < l->o.rounds->count; i++)
		for (size_t k = 0; k < l->o.rounds->at[i].call_count; k++) {
			const struct round_call *c = &l->o.rounds->at[i].calls[k];
			const struct uar_tool *t =
				uar_tools_by_model_name(l->set.registry, l->set.owner, c->name);

			n += t && c != p->call && (c->started || c->ended || has_place(l, c)) &&
			     uar_tool_is_named(t, patterns);
		}
	return n;
}

/* Every source has its say about a call that could be made. */
static enum plan plan_of_judged(struct place *p)
{
	struct uar_rail_call call = { p->tool, p->input, count_begun, p };
	struct permission_ask ask = rt_place_permission(p);
	enum uar_permission_verdict verdict = UAR_SAYS_DENY;
	uar_err e;

	ask.rail_reason = UAR_STR("");
	ask.bare = !is_done_here(p->tool);
	if (!ask.bare)
		ask.rail = uar_toolbox_judge(p->loop->set.box, &call, &ask.rail_reason);
	e = rt_place_decide(p, &ask, &verdict);
	if (e) {
		p->why.code = e;
		return refuse(p, "execution");
	}
	if (verdict == UAR_SAYS_DENY)
		return refuse(p, p->by_hook ? "hook_blocked" : "policy_denied");
	if (ask.bare)
		return plan_of_asking(p);
	if (p->tool->by == UAR_TOOL_BY_ARTIFACT &&
	    !allows(p, "artifact_type", uar_definition_makes))
		return refuse_ui(p, "ui.artifacts");
	return verdict == UAR_SAYS_ASK ? ASK : RUN;
}

static enum plan plan_of_new(struct place *p)
{
	struct uar_permit_facts facts = facts_of(p);
	enum uar_permit permit = uar_core_permit(&facts);
	uar_err e;

	if (rt_place_is_orphan(p))
		return rt_place_refuse_orphan(p);
	if (permit == UAR_PERMIT_UNKNOWN || permit == UAR_PERMIT_DENIED ||
	    permit == UAR_PERMIT_UNAVAILABLE)
		return plan_of_refused(p, permit);
	if (p->call->declined)
		return plan_of_declined(p);
	e = rt_toolset_check(&p->loop->set, p->tool, p->input, &p->why);
	if (e)
		return plan_of_wrong(p, e);
	if (permit == UAR_PERMIT_REJECTED)
		return plan_of_refused(p, permit);
	return plan_of_judged(p);
}

/* What the model left out and somebody gave. */
static void take_values(struct place *p)
{
	const struct round_call *c = p->call;

	p->input = c->args;
	if (!c->filled || !p->tool || p->tool->by != UAR_TOOL_BY_START)
		return;
	p->merged = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	if (!rt_form_merge(c->args, c->real, &p->merged))
		p->input = uar_buf_str(&p->merged);
}

static bool runs_or_asks(const struct place *p)
{
	return p->plan == RUN || p->plan == RUN_AGAIN || p->plan == ASK || p->plan == ASK_AGAIN;
}

void rt_place_plan(struct place *p)
{
	struct tool_loop *l = p->loop;

	p->tool = uar_tools_by_model_name(l->set.registry, l->set.owner, p->call->name);
	uar_tools_hold(l->set.registry, p->tool);
	p->form = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	p->title = uar_buf_make(PROMPT);
	rt_place_take_hooks(p);
	take_values(p);
	p->plan = p->call->started ? plan_of_open(p) : plan_of_new(p);
	if (runs_or_asks(p) && !rt_place_bind(p))
		p->plan = p->call->started ? GIVE_UP : REFUSE;
}

bool rt_place_is_sociable(const struct place *p)
{
	switch (p->plan) {
	case REFUSE:
	case GIVE_UP: return true;
	case RUN:
	case RUN_AGAIN:
		return p->tool->effect == UAR_TOOL_READ_ONLY && !p->tool->may_ask &&
		       p->tool->by != UAR_TOOL_BY_ARTIFACT;
	case ASK:
	case ASK_AGAIN:
	case ASK_FORM: return false;
	}
	return false;
}
