/* tool_permit.c - whether a call of a round may be made. */
#include "work/definitions.h"
#include "core/redact.h"
#include "json/limits.h"
#include "work/hooks_int.h"
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

/* --- hooks ---------------------------------------------------------------------------------- */

/* A hook was shown values that are hidden by a mark; the mark stands for what it hides. */
static uar_err merge(uar_str args, uar_str made, struct uar_buf *out)
{
	const struct uar_json *was = NULL, *now = NULL;
	struct uar_jw w = uar_jw_begin(out);
	struct uar_arena arena;
	uar_err e, end;

	uar_arena_init(&arena, 0);
	if (uar_json_parse(args, NULL, &arena, &was, NULL))
		was = NULL;
	e = uar_json_parse(made, NULL, &arena, &now, NULL);
	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = e ? NULL : uar_json_first(now); m && !e; m = m->next) {
		const struct uar_json *o = uar_json_get(was, m->key);
		uar_str key = uar_arena_str(&arena, m->key);
		bool hidden = o && m->kind == UAR_JSON_STRING && uar_str_is(m->text, UAR_REDACTED);

		if (!key.p)
			e = UAR_ENOMEM;
		else
			uar_jw_tree(&w, key.p, hidden ? o : m);
	}
	uar_jw_close(&w);
	uar_arena_fini(&arena);
	end = uar_jw_end(&w);
	return e ? e : end;
}

void rt_place_take_hooks(struct place *p)
{
	struct round_call *c = p->call;
	struct uar_arena *arena = &p->loop->o.rounds->arena;
	const struct hooks *h = rt_llm_hooks(p->loop->o.run);
	struct uar_buf made = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	struct hook_result r = { .hook_id = UAR_STR("") };
	uar_str args;

	if (!h || c->hooked || rt_hooks_result(h, UAR_HOOK_PRE_TOOL_USE, c->id, arena, &r))
		return;
	c->hooked = true;
	if (!r.input.n || merge(c->args, r.input, &made))
		return;
	args = uar_arena_str(arena, uar_buf_str(&made));
	uar_buf_fini(&made);
	if (args.p) {
		c->args = args;
		c->changed_by = r.input_hook;
		c->changed_blob = r.input_blob;
	}
}

static void hooks_answered(void *ctx)
{
	struct tool_loop *l = ctx;

	l->hooking = false;
	if (!l->leaving)
		rt_tool_loop_advance(l);
}

bool rt_tool_loop_hooks(struct tool_loop *l, const struct round_call *c, enum uar_hook_point point)
{
	struct hooks *h = rt_llm_hooks(l->o.run);
	struct hook_ask a = { .point = point,
			      .subject = c->id,
			      .tool = rt_toolset_named(&l->set, c->name),
			      .tool_name = c->name,
			      .args = c->args };
	uar_err e;

	if (!rt_hooks_pending(h, &a))
		return false;
	l->hooking = true;
	e = rt_hooks_call(h, &a, hooks_answered, l);
	if (e)
		rt_send_fail(l->o.run, e, "execution", uar_err_text(e));
	return true;
}

/* The strictest word of hooks about the call. */
static uar_err say_of_hooks(const struct place *p, struct uar_arena *arena,
			    struct uar_permission_say *out)
{
	static const enum uar_hook_point points[] = { UAR_HOOK_PRE_TOOL_USE,
						      UAR_HOOK_PERMISSION_REQUEST };
	const struct hooks *h = rt_llm_hooks(p->loop->o.run);

	for (size_t i = 0; h && i < ARRAY_LEN(points); i++) {
		struct hook_result r;
		uar_err e = rt_hooks_result(h, points[i], p->call->id, arena, &r);
		enum uar_permission_verdict v = e ? UAR_SAYS_DENY : uar_hook_says(r.outcome);

		if (e)
			return e;
		if (v <= out->verdict)
			continue;
		out->source = UAR_PERMIT_BY_HOOK;
		out->verdict = v;
		out->rule = uar_arena_printf(arena, "hook:%.*s", UAR_FMT(r.hook_id));
		out->reason = r.reason.n ? uar_arena_printf(arena, "the hook %.*s: %.*s",
							    UAR_FMT(r.hook_id), UAR_FMT(r.reason))
					 : uar_arena_printf(arena, "the hook %.*s says %s",
							    UAR_FMT(r.hook_id),
							    uar_hook_outcome_name(r.outcome));
		if (!out->rule.p || !out->reason.p)
			return UAR_ENOMEM;
	}
	return UAR_OK;
}

/* --- the decision --------------------------------------------------------------------------- */

/* A person's answer is in the log already. */
static bool is_told_before(const struct uar_permission *d)
{
	return d->verdict == UAR_SAYS_ALLOW && d->source == UAR_PERMIT_BY_HUMAN;
}

uar_err rt_place_decide(struct place *p, const struct permission_ask *asked,
			enum uar_permission_verdict *out)
{
	struct permission_ask a = *asked;
	struct uar_permission_say hook = { .verdict = UAR_SAYS_NOTHING };
	struct uar_permission d;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	a.failed = has_failed(p);
	a.hook = &hook;
	if (!a.bare)
		a.grant = grant_of(p);
	e = say_of_hooks(p, &arena, &hook);
	if (!e)
		e = rt_permission_decide(&a, &arena, &d);
	uar_buf_fini(&p->permission);
	p->permission = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	if (!e && !is_told_before(&d) && (!a.bare || d.verdict == UAR_SAYS_DENY))
		e = rt_permission_write(&a, &d, &p->permission);
	p->by_hook = !e && d.source == UAR_PERMIT_BY_HOOK;
	if (!e && d.verdict == UAR_SAYS_DENY)
		(void)uar_error_set(&p->why, UAR_EFORBIDDEN, "%.*s", UAR_FMT(d.reason));
	if (!e)
		*out = d.verdict;
	uar_arena_fini(&arena);
	return e;
}
