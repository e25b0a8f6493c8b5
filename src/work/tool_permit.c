/* tool_permit.c - whether a call of a round may be made. */
#include "work/definitions.h"
#include "work/permission.h"
#include "work/tool_loop_int.h"

/* Has a call of the tool failed in this run? Calls that were refused have not been made. */
static bool has_failed(const struct place *p)
{
	const struct rounds *s = p->loop->o.rounds;

	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < s->at[i].call_count; k++) {
			const struct round_call *c = &s->at[i].calls[k];

			if (c != p->call && c->broke && uar_str_eq(c->name, p->call->name))
				return true;
		}
	return false;
}

struct permission_ask rt_place_permission(const struct place *p)
{
	const struct live_run *r = p->loop->o.run;

	return (struct permission_ask){
		.host = rt_work(r)->o.permissions,
		.definition = rt_definition(r),
		.stored = p->loop->grants,
		.own = rt_state(r)->what.permit,
		.set = &p->loop->set,
		.tool = p->tool,
		.agent_id = rt_state(r)->what.agent_id,
		.input = p->input,
		.allowed = p->call->allowed,
	};
}

bool rt_place_unattended(const struct place *p)
{
	const struct permission_ask a = rt_place_permission(p);

	return rt_permission_unattended(&a);
}

/* The grant that covers the call. Permissions were given for what the tool was. */
static uar_str grant_of(struct place *p)
{
	const struct live_run *r = p->loop->o.run;
	struct uar_grant_call call = { .agent_id = rt_state(r)->what.agent_id,
				       .thread_id = uar_str_c(rt_thread_id(r)),
				       .tool_id = p->tool->tool_id,
				       .tool_version = p->tool->version };

	rt_grants_digest(rt_engine(r), p->input, p->args_digest);
	call.args_digest = uar_str_c(p->args_digest);
	return uar_toolbox_unpinned(p->loop->set.box, p->tool)
		       ? UAR_STR_NONE
		       : rt_grants_find(p->loop->grants, &call);
}

/* A person's answer is in the log already. */
static bool is_told_before(const struct uar_permission *d)
{
	return d->verdict == UAR_SAYS_ALLOW && d->source == UAR_PERMIT_BY_HUMAN;
}

uar_err rt_place_decide(struct place *p, const struct permission_ask *asked,
			enum uar_permission_verdict *out)
{
	struct permission_ask a = *asked;
	struct uar_permission d;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	a.failed = has_failed(p);
	if (!a.bare)
		a.grant = grant_of(p);
	e = rt_permission_decide(&a, &arena, &d);
	uar_buf_fini(&p->permission);
	p->permission = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	if (!e && !is_told_before(&d) && (!a.bare || d.verdict == UAR_SAYS_DENY))
		e = rt_permission_write(&a, &d, &p->permission);
	if (!e && d.verdict == UAR_SAYS_DENY)
		(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "%.*s", UAR_FMT(d.reason));
	if (!e)
		*out = d.verdict;
	uar_arena_fini(&arena);
	return e;
}
