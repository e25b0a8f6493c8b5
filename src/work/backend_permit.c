/* backend_permit.c - rules of the host, the mode and `interactive`, for agents that are programs.
 *
 * Rules name what a program asks for as a tool `program:NAME`, where NAME is the program's own name
 * of its tool, or the kind of the question: command, file_change, permissions. */
#include "work/backend_permit.h"

#include "core/permission.h"
#include "tool/toolbox.h"
#include "work/definitions.h"
#include "work/permission.h"

static const uar_str PREFIX = UAR_STR("program:");

struct question {
	const struct live_run *run;
	struct uar_tool named; /* by its id alone */
};

bool rt_backend_governed(const struct live_run *r)
{
	const struct uar_host_policy *h = rt_work(r)->o.permissions;
	const struct uar_run_permit *own = &rt_state(r)->what.permit;

	return own->unattended || own->mode || (h && (h->unattended || h->mode || h->rules));
}

static bool names_program_tool(void *ctx, uar_str pattern)
{
	return uar_tool_matches(&((const struct question *)ctx)->named, pattern);
}

static bool names_program(void *ctx, uar_str pattern)
{
	const struct question *q = ctx;

	return uar_pattern_fits(pattern, rt_state(q->run)->what.agent_id);
}

static struct uar_permission_say say_of_definition(const struct uar_ask *a)
{
	return (struct uar_permission_say){
		.source = UAR_PERMIT_BY_DEFINITION,
		.verdict = a->verdict == UAR_VERDICT_ASK    ? UAR_SAYS_ASK
			   : a->verdict == UAR_VERDICT_DENY ? UAR_SAYS_DENY
							    : UAR_SAYS_ALLOW,
		.rule = a->rule,
		.reason = UAR_STR("the policy of the agent's definition"),
	};
}

/* What it wants is not known to read only. A command may be one that cannot be undone. */
static uar_err decide(const struct live_run *r, const struct uar_ask *a, struct uar_arena *arena,
		      struct uar_permission *out)
{
	const struct uar_host_policy *h = rt_work(r)->o.permissions;
	const struct uar_run_permit *own = &rt_state(r)->what.permit;
	const struct uar_permission_modes modes = { .run = own->mode,
						    .host = h ? h->mode : UAR_MODE_NONE,
						    .allowed = h ? h->allowed : 0 };
	struct uar_permission_facts f = {
		.mode = uar_permission_effective(&modes),
		.unattended = own->unattended || (h && h->unattended),
		.call = { .destructive = uar_str_is(a->kind, "command") },
	};
	const struct uar_permission_list rules = { UAR_PERMIT_BY_HOST_POLICY, h ? h->rules : NULL,
						   "host:rules" };
	struct question q = { .run = r };
	const struct uar_permission_match match = { names_program_tool, names_program, &q, f.call };
	uar_err e;

	q.named.tool_id = uar_arena_printf(arena, "%.*s%.*s", UAR_FMT(PREFIX),
					   UAR_FMT(a->tool_name.n ? a->tool_name : a->kind));
	if (!q.named.tool_id.p)
		return UAR_ENOMEM;
	uar_permission_add(&f, say_of_definition(a));
	e = uar_permission_add_rules(&f, &rules, &match, arena);
	if (!e)
		uar_permission_decide(&f, out);
	return e;
}

void rt_backend_judge(const struct live_run *r, struct uar_ask *a, struct uar_buf *text)
{
	const struct uar_permission_about about = {
		a->prompt,
		UAR_STR("The runtime cannot undo it: the agent is a program of its own.")
	};
	struct uar_jw w = uar_jw_begin(text);
	struct uar_permission p;
	struct uar_arena arena;
	uar_err e;

	if (!rt_backend_governed(r))
		return;
	uar_arena_init(&arena, 0);
	e = decide(r, a, &arena, &p);
	if (!e) {
		uar_jw_obj(&w, NULL);
		uar_permission_write(&w, &p, &about);
		uar_jw_close(&w);
		e = uar_jw_end(&w);
	}
	if (e) {
		a->verdict = UAR_VERDICT_DENY;
	} else {
		a->verdict = p.verdict == UAR_SAYS_ASK	  ? UAR_VERDICT_ASK
			     : p.verdict == UAR_SAYS_DENY ? UAR_VERDICT_DENY
							  : UAR_VERDICT_ALLOW;
		a->permission = a->verdict == UAR_VERDICT_ASK ? UAR_STR_NONE : uar_buf_str(text);
	}
	uar_arena_fini(&arena);
}
