/* evaluate.c - what every rule would say about a call that nobody makes. */
#include "work/definitions.h"
#include "work/permission.h"

struct evaluating {
	struct uar_evaluate_op *op;
	struct uar_workers *w;
	struct uar_thread_query where;
	struct grants_load *load;
	struct rt_op under_way;
};

static uar_err not_there(struct uar_error *error, const char *member, uar_str id)
{
	uar_error_where(error, "/%s", member);
	return uar_error_set(error, UAR_ENOTFOUND, "there is no %s %.*s", member,
			     UAR_FMT(uar_str_utf8_prefix(id, UAR_LIMIT_ID_BYTES)));
}

static const struct uar_tool *find_tool(const struct toolset *set, uar_str id)
{
	const struct uar_tool *t;

	for (size_t i = 0; set->registry && (t = set->registry->ops->at(set->registry, i)); i++)
		if (uar_tool_is_for(t, set->owner) &&
		    (uar_str_eq(t->tool_id, id) || uar_str_eq(t->name, id)))
			return t;
	return NULL;
}

/* Nobody could make the call. */
static uar_err write_unavailable(const struct permission_ask *a, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "decision",
		    a->tool->state == UAR_TOOL_DENIED || !rt_toolset_has(a->set, a->tool)
			    ? "deny"
			    : "unavailable");
	uar_jw_cstr(&w, "decision_source", "host_policy");
	uar_jw_cstr(&w, "decision_reason",
		    rt_tool_is_ready(a->tool) ? "this agent may not use it" : "it cannot be used");
	uar_jw_cstr(&w, "mode", uar_permission_mode_name(UAR_MODE_DEFAULT));
	uar_jw_arr(&w, "rule_refs");
	uar_jw_close(&w);
	uar_jw_arr(&w, "considered");
	uar_jw_close(&w);
	uar_jw_arr(&w, "overridden");
	uar_jw_close(&w);
	uar_jw_bool(&w, "destructive", a->tool->destructive);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static size_t count_none(void *ctx, const struct uar_json *patterns)
{
	(void)ctx, (void)patterns;
	return 0;
}

static uar_err judge(const struct evaluating *x, struct permission_ask *a)
{
	struct uar_evaluate_op *op = x->op;
	struct uar_grant_call call = { .agent_id = op->agent_id,
				       .thread_id = op->thread_id,
				       .tool_id = a->tool->tool_id,
				       .tool_version = a->tool->version };
	struct uar_rail_call rail = { a->tool, a->input, count_none, NULL };
	char digest[UAR_LIMIT_DIGEST + 1];
	struct uar_permission p;
	struct uar_arena arena;
	uar_err e;

	if (!rt_toolset_has(a->set, a->tool) || !rt_tool_is_ready(a->tool))
		return write_unavailable(a, &op->decision);
	rt_grants_digest(x->w->rt, a->input, digest);
	call.args_digest = uar_str_c(digest);
	if (!uar_toolbox_unpinned(a->set->box, a->tool))
		a->grant = rt_grants_find(a->stored, &call);
	a->rail_reason = UAR_STR("");
	a->rail = uar_toolbox_judge(a->set->box, &rail, &a->rail_reason);
	uar_arena_init(&arena, 0);
	e = rt_permission_decide(a, &arena, &p);
	if (!e)
		e = rt_permission_write(a, &p, &op->decision);
	uar_arena_fini(&arena);
	return e;
}

static void evaluate(const struct evaluating *x, const struct grants *stored)
{
	struct uar_evaluate_op *op = x->op;
	const struct uar_agent *agent = uar_workers_agent(x->w, &op->owner, op->agent_id);
	struct definition_tools own = { 0 };
	struct toolset set = { .registry = x->w->o.tools };
	struct permission_ask a = { .host = x->w->o.permissions,
				    .stored = stored,
				    .own = op->permit,
				    .set = &set,
				    .agent_id = op->agent_id,
				    .input = op->arguments.n ? op->arguments : UAR_STR("{}") };
	uar_err e = agent ? UAR_OK : not_there(&op->error, "agent_id", op->agent_id);

	if (!e && agent->definition) {
		a.definition = &agent->definition->def;
		e = rt_definition_tools(x->w, a.definition, &own, &op->error);
		set = own.set;
	} else if (!e) {
		set.policy = agent->tools;
	}
	set.owner = &op->owner;
	a.tool = e ? NULL : find_tool(&set, op->tool);
	if (!e && !a.tool)
		e = not_there(&op->error, "tool", op->tool);
	if (!e) {
		op->tool_id = a.tool->tool_id;
		op->tool_name = a.tool->name;
		e = judge(x, &a);
	}
	op->err = e;
	op->done(op); /* what it is shown lives in the toolbox */
	uar_toolbox_unref(own.set.box);
}

static void drop(struct rt_op *under_way)
{
	uar_free(UAR_OWNER(under_way, struct evaluating, under_way));
}

static void finish(struct evaluating *x, uar_err e)
{
	rt_op_end(&x->under_way);
	if (e) {
		x->op->err = e;
		x->op->done(x->op);
	}
	uar_free(x);
}

static void stored_ready(void *ctx, uar_err e, struct grants *g)
{
	struct evaluating *x = ctx;

	if (!e)
		evaluate(x, g);
	rt_grants_free(g);
	finish(x, e);
}

static void found(struct uar_thread_query *q)
{
	struct evaluating *x = UAR_OWNER(q, struct evaluating, where);
	struct uar_evaluate_op *op = x->op;
	struct grants_ask whose = { .rt = x->w->rt,
				    .owner = &op->owner,
				    .session_id = uar_str_c(q->found_session),
				    .thread_id = op->thread_id,
				    .agent_id = op->agent_id };
	uar_err e = q->err;

	if (e == UAR_ENOTFOUND) {
		e = not_there(&op->error, "thread_id", op->thread_id);
	} else if (!e && op->session_id.n && !uar_str_is(op->session_id, q->found_session)) {
		uar_error_where(&op->error, "/session_id");
		e = uar_error_set(&op->error, UAR_EINVALID, "the thread is of session %s",
				  q->found_session);
	}
	if (!e)
		e = rt_grants_load(&whose, stored_ready, x, &x->load);
	if (e)
		finish(x, e);
}

uar_err uar_workers_evaluate(struct uar_workers *w, struct uar_evaluate_op *op)
{
	struct uar_store *store = rt_store(w->rt);
	struct evaluating *x = uar_zalloc(sizeof *x);
	uar_err e;

	if (!x)
		return UAR_ENOMEM;
	x->op = op;
	x->w = w;
	op->decision = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	x->where = (struct uar_thread_query){
		.owner = op->owner,
		.thread_id = op->thread_id,
		.done = found,
	};
	e = store->ops->thread(store, &x->where);
	if (e)
		uar_free(x);
	else
		rt_op_begin(w->rt, &x->under_way, drop);
	return e;
}

bool uar_workers_allow_mode(const struct uar_workers *w, enum uar_permission_mode mode)
{
	return rt_permission_allows(w, mode);
}
