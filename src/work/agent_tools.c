/* agent_tools.c - tools with which agents start others. Each is a command of the control plane;
 * what it makes is named after the call, so a call that is executed again after a restart does
 * nothing twice. A call that waits is still under way in the log, and looks again after a restart.
 */
#include "work/agent_tools.h"

#include "base/alloc.h"
#include "base/sha256.h"
#include "core/control.h"
#include "engine/control.h"
#include "engine/fanout.h"
#include "engine/limits.h"
#include "engine/part.h"
#include "json/json.h"
#include "store/store.h"
#include "tool/limits.h"
#include "work/limits.h"

enum { TIMEOUT_US = 60 * 60 * 1000 * 1000ll, NAMED = 32, LEAST_ANSWER = 64 };

struct source {
	struct uar_tools base; /* first: the ops get it back by a cast */
	struct uar_runtime *rt;
	struct uar_list calls;
};

struct uar_tool_call {
	struct uar_list node; /* of the source */
	struct source *s;
	struct uar_tool_events events;
	struct uar_arena arena;
	const struct uar_json *input;
	char name[UAR_SHA256_TEXT + 1]; /* of what the call makes */
	struct uar_control in;
	struct uar_control_op op;
	struct uar_subagents_wait wait;
	uar_str ids[UAR_LIMIT_WAIT_SUBAGENTS];
	struct uar_rows_query children; /* of the run, when the call names none */
	bool waits, unheard;
};

typedef uar_err agent_tool_fn(struct uar_tool_call *c, const struct uar_tool_request *r,
			      struct uar_error *error);
#define T(FN, ...) static agent_tool_fn begin_##FN;
#include "work/agent_tools.def"
#undef T

static const struct row {
	agent_tool_fn *begin;
	struct uar_tool tool;
} rows[] = {
#define JSON(...) #__VA_ARGS__
#define T(FN, NAME, EFFECT, DESCRIPTION, INPUT)                                                    \
	{ begin_##FN,                                                                              \
	  { .tool_id = UAR_STR("internal:" NAME),                                                  \
	    .name = UAR_STR(NAME),                                                                 \
	    .description = UAR_STR(DESCRIPTION),                                                   \
	    .version = UAR_STR("1"),                                                               \
	    .transport = UAR_STR("internal"),                                                      \
	    .input_schema = UAR_STR(INPUT),                                                        \
	    .output_schema = UAR_STR("{\"type\":\"object\"}"),                                     \
	    .tags = UAR_STR("[\"agents\"]"),                                                       \
	    .capabilities = UAR_STR("[\"agents\"]"),                                               \
	    .effect = UAR_TOOL_##EFFECT,                                                           \
	    .timeout_us = TIMEOUT_US } },
#include "work/agent_tools.def"
#undef T
#undef JSON
};

static struct source *source_of(struct uar_tools *t)
{
	return (struct source *)(void *)t;
}

static const struct uar_tool *at(struct uar_tools *t, size_t index)
{
	(void)t;
	return index < ARRAY_LEN(rows) ? &rows[index].tool : NULL;
}

/* --- the end of a call ----------------------------------------------------------------------- */

static void free_call(struct uar_tool_call *c)
{
	uar_list_remove(&c->node);
	uar_store_rows_fini(&c->children);
	uar_arena_fini(&c->arena);
	uar_free(c);
}

static void report(struct uar_tool_call *c, uar_err e, const struct uar_error *error,
		   uar_str output)
{
	struct uar_tool_result r = { .ok = !e, .output = output };
	struct uar_tool_events events = c->events;

	if (e) {
		r.output = UAR_STR_NONE;
		r.category = UAR_STR("execution");
		r.message = uar_str_c(uar_error_text(error));
		r.retryable = uar_err_retryable(e);
	}
	if (!c->unheard)
		events.done(events.ctx, &r);
	free_call(c);
}

static void controlled(struct uar_control_op *op)
{
	report(UAR_OWNER(op, struct uar_tool_call, op), op->err, &op->error, op->result);
}

/* What a tool says has a limit: of long answers the beginnings are told. */
static bool ask_for_less(struct uar_tool_call *c)
{
	size_t now = c->wait.answer_bytes ? c->wait.answer_bytes : UAR_LIMIT_CHILD_ANSWER;

	if (c->wait.err || c->wait.json.n <= UAR_LIMIT_TOOL_OUTPUT || now < LEAST_ANSWER)
		return false;
	uar_buf_fini(&c->wait.json);
	c->wait.answer_bytes = now / 2;
	c->wait.timeout_us = 0; /* it was waited for */
	c->wait.err = uar_runtime_wait_subagents(c->s->rt, &c->wait);
	return !c->wait.err;
}

static void waited(struct uar_subagents_wait *w)
{
	struct uar_buf json;

	if (ask_for_less(UAR_OWNER(w, struct uar_tool_call, wait)))
		return;
	json = w->json;
	report(UAR_OWNER(w, struct uar_tool_call, wait), w->err, &w->error, uar_buf_str(&json));
	uar_buf_fini(&json);
}

/* --- one function for each tool -------------------------------------------------------------- */

static uar_str member(const struct uar_tool_call *c, const char *name)
{
	return uar_json_str(uar_json_get(c->input, uar_str_c(name)), UAR_STR_NONE);
}

static uar_err send(struct uar_tool_call *c, struct uar_error *error)
{
	uar_err e;

	c->op = (struct uar_control_op){ .in = &c->in, .done = controlled };
	e = uar_runtime_control(c->s->rt, &c->op);
	if (e)
		*error = c->op.error;
	return e;
}

/* "worker", "team-*": '*' at the end stands for any text. */
static bool may_start(const struct uar_json *agents, uar_str agent_id)
{
	for (const struct uar_json *a = uar_json_first(agents); a; a = a->next) {
		bool open = a->text.n && a->text.p[a->text.n - 1] == '*';

		if (a->kind == UAR_JSON_STRING &&
		    (open ? uar_str_starts(agent_id, uar_str_n(a->text.p, a->text.n - 1))
			  : uar_str_eq(agent_id, a->text)))
			return true;
	}
	return false;
}

static uar_err begin_spawn(struct uar_tool_call *c, const struct uar_tool_request *r,
			   struct uar_error *error)
{
	const struct uar_run *run = rt_live_run(c->s->rt, &c->in.owner, r->run_id);
	struct uar_ctl_spawn_subagent *in = &c->in.spawn_subagent;
	uar_str agent_id = member(c, "agent_id");

	if (!run)
		return uar_error_set(error, UAR_EFORBIDDEN, "only a run starts agents");
	if (!may_start(r->caller->agents, agent_id))
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "policy.agents of the agent's definition does not name %.*s",
				     UAR_FMT(agent_id));
	c->in.kind = UAR_CTL_SPAWN_SUBAGENT;
	in->thread_id = uar_arena_str(&c->arena, run->id.thread_id);
	in->subagent_id = uar_str_n(c->name, NAMED);
	in->agent_id = agent_id;
	in->message = member(c, "message");
	in->role = member(c, "role");
	in->nickname = member(c, "nickname");
	in->origin_tool = UAR_STR("agent.spawn");
	return in->thread_id.p ? send(c, error) : UAR_ENOMEM;
}

static uar_err begin_send(struct uar_tool_call *c, const struct uar_tool_request *r,
			  struct uar_error *error)
{
	c->in.kind = UAR_CTL_SEND_SUBAGENT_INPUT;
	c->in.caller_run_id = uar_arena_str(&c->arena, r->run_id);
	if (!c->in.caller_run_id.p)
		return UAR_ENOMEM;
	c->in.send_subagent_input =
		(struct uar_ctl_send_subagent_input){ .subagent_id = member(c, "subagent_id"),
						      .message = member(c, "message"),
						      .input_id = uar_str_n(c->name, NAMED) };
	return send(c, error);
}

static uar_err begin_close(struct uar_tool_call *c, const struct uar_tool_request *r,
			   struct uar_error *error)
{
	(void)r;
	c->in.kind = UAR_CTL_CLOSE_SUBAGENT;
	c->in.close_subagent =
		(struct uar_ctl_close_subagent){ .subagent_id = member(c, "subagent_id"),
						 .reason = member(c, "reason") };
	return send(c, error);
}

static uar_err wait_for(struct uar_tool_call *c, struct uar_error *error)
{
	uar_err e = uar_runtime_wait_subagents(c->s->rt, &c->wait);

	c->waits = !e;
	if (e)
		*error = c->wait.error;
	return e;
}

static void children_listed(struct uar_rows_query *q)
{
	struct uar_tool_call *c = UAR_OWNER(q, struct uar_tool_call, children);
	struct uar_error error = q->error;
	uar_err e = q->err;

	for (size_t i = 0; i < q->row_count && !e && c->wait.count < ARRAY_LEN(c->ids); i++) {
		c->ids[c->wait.count] = uar_arena_str(&c->arena, q->rows[i].id);
		e = c->ids[c->wait.count++].p ? UAR_OK : UAR_ENOMEM;
	}
	if (!e && !c->wait.count)
		e = uar_error_set(&error, UAR_ESTATE, "this run has started no agent");
	if (!e && !c->unheard)
		e = wait_for(c, &error);
	error.code = e;
	if (e || c->unheard)
		report(c, e, &error, UAR_STR_NONE);
}

static uar_err list_children(struct uar_tool_call *c, uar_str run_id)
{
	struct uar_store *store = rt_store(c->s->rt);

	c->children = (struct uar_rows_query){ .owner = c->in.owner,
					       .kind = UAR_ROW_SUBAGENT,
					       .parent = uar_arena_str(&c->arena, run_id),
					       .limit = ARRAY_LEN(c->ids),
					       .done = children_listed };
	return c->children.parent.n ? store->ops->rows(store, &c->children) : UAR_ENOMEM;
}

static uar_err begin_wait(struct uar_tool_call *c, const struct uar_tool_request *r,
			  struct uar_error *error)
{
	const struct uar_json *ids = uar_json_get(c->input, UAR_STR("subagent_ids"));
	double seconds = uar_json_double(uar_json_get(c->input, UAR_STR("timeout_seconds")), 600);

	c->wait = (struct uar_subagents_wait){ .owner = c->in.owner,
					       .ids = c->ids,
					       .any = uar_str_is(member(c, "mode"), "any"),
					       .timeout_us = (int64_t)(seconds * 1e6),
					       .done = waited };
	for (const struct uar_json *j = uar_json_first(ids); j; j = j->next)
		if (c->wait.count < ARRAY_LEN(c->ids))
			c->ids[c->wait.count++] = j->text;
	if (!c->wait.count && !r->run_id.n)
		return uar_error_set(error, UAR_EINVALID, "name the agents: there is no run");
	return c->wait.count ? wait_for(c, error) : list_children(c, r->run_id);
}

/* --- the port -------------------------------------------------------------------------------- */

static const struct row *row_of(const struct uar_tool *tool)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (uar_str_eq(rows[i].tool.tool_id, tool->tool_id))
			return &rows[i];
	return NULL;
}

static uar_err begin_call(struct uar_tool_call *c, const struct uar_tool_request *r,
			  struct uar_error *error)
{
	const struct row *row = row_of(r->tool);
	uar_str input = uar_arena_str(&c->arena, r->input);
	uar_err e = input.p && uar_owner_copy(&c->arena, &r->caller->owner, &c->in.owner)
			    ? uar_json_parse(input, NULL, &c->arena, &c->input, error)
			    : UAR_ENOMEM;

	uar_sha256_hex(r->key, c->name);
	return e ? e : row ? row->begin(c, r, error) : UAR_EINTERNAL;
}

static uar_err start(struct uar_tools *t, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct source *s = source_of(t);
	struct uar_tool_call *c;
	uar_err e;

	if (!s->rt || !r->caller)
		return uar_error_set(error, UAR_EFORBIDDEN, "this call has no owner");
	c = uar_zalloc(sizeof *c);
	if (!c)
		return UAR_ENOMEM;
	c->s = s;
	c->events = *events;
	uar_arena_init(&c->arena, 0);
	uar_list_init(&c->node);
	uar_list_add_last(&s->calls, &c->node);
	e = begin_call(c, r, error);
	if (e)
		free_call(c);
	else
		*out = c;
	return e;
}

/* A command that was sent is finished, unheard. */
static void cancel(struct uar_tools *t, struct uar_tool_call *c)
{
	(void)t;
	c->unheard = true;
	if (!c->waits)
		return;
	uar_runtime_leave_subagents(&c->wait);
	free_call(c);
}

static bool withdraw(struct uar_tools *t, struct uar_tool_call *c)
{
	if (!c->waits)
		return false;
	cancel(t, c);
	return true;
}

static void destroy(struct uar_tools *t)
{
	struct source *s = source_of(t);

	while (!uar_list_empty(&s->calls)) {
		struct uar_tool_call *c = UAR_OWNER(s->calls.next, struct uar_tool_call, node);

		if (c->waits)
			uar_runtime_leave_subagents(&c->wait);
		free_call(c);
	}
	uar_free(s);
}

static const struct uar_tools_ops agent_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.start = start,
	.cancel = cancel,
	.withdraw = withdraw,
};

uar_err uar_agent_tools_create(struct uar_tools **out)
{
	struct source *s = uar_zalloc(sizeof *s);

	if (!s)
		return UAR_ENOMEM;
	s->base.ops = &agent_ops;
	uar_list_init(&s->calls);
	*out = &s->base;
	return UAR_OK;
}

void uar_agent_tools_attach(struct uar_tools *t, struct uar_runtime *rt)
{
	if (t)
		source_of(t)->rt = rt;
}
