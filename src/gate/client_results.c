/* client_results.c - results that a client brings for calls of its own tools.
 *
 * Such a call is an action of its run: the first result counts, whichever door it comes through,
 * and the same one again changes nothing. The run goes on when all that it waits for are there. */
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "read/actions.h"

struct bringing {
	struct call *c;
	const struct uar_client_result *next;
	const struct uar_json *actions; /* of the run */
	struct uar_actions_op read;
	struct uar_run_answer_op op;
	struct gate_results o;
	uar_str run_id;
};

static void bring_next(struct bringing *k);

static const struct uar_json *first_action(const struct bringing *k)
{
	return uar_json_first(uar_json_get(k->actions, UAR_STR("actions")));
}

static const struct uar_json *find_action(const struct bringing *k, uar_str call_id)
{
	for (const struct uar_json *a = first_action(k); a; a = a->next)
		if (uar_str_is(uar_json_text(a, "action_type"), "client_tool") &&
		    uar_str_eq(uar_json_text(a, "tool_call_id"), call_id))
			return a;
	return NULL;
}

static bool is_brought(const struct bringing *k, const struct uar_json *action)
{
	for (const struct uar_client_result *r = k->o.first; r; r = r->next)
		if (uar_str_eq(r->call_id, uar_json_text(action, "tool_call_id")))
			return true;
	return false;
}

/* --- answers ---------------------------------------------------------------------------- */

static void show_run(struct bringing *k)
{
	struct call *c = k->c;

	if (!c->r)
		gate_call_free(c);
	else if (k->o.create_after)
		k->o.create(c, k->o.ctx);
	else if (k->o.stream)
		gate_stream_view(c, k->run_id, &k->o.view);
	else
		gate_answer_view(c, k->run_id, &k->o.view, 0);
}

static void answered(struct uar_run_answer_op *op)
{
	struct bringing *k = op->ctx;

	if (op->err && op->err != UAR_ERESOLVED)
		gate_problem(k->c, op->err, &op->error);
	else
		bring_next(k);
}

/* Results of calls that are not known here are passed over. */
static void bring_next(struct bringing *k)
{
	const struct uar_client_result *r = NULL;
	const struct uar_json *action = NULL;
	uar_err e;

	while (k->next && !action) {
		r = k->next;
		k->next = r->next;
		action = find_action(k, r->call_id);
	}
	if (!action) {
		show_run(k);
		return;
	}
	k->op = (struct uar_run_answer_op){ .owner = k->c->owner,
					    .action_id = uar_json_text(action, "action_id"),
					    .decision = UAR_STR("submit"),
					    .values = r->value,
					    .continues_as = k->o.view.options.run_name,
					    .done = answered,
					    .ctx = k };
	if (r->error.n) {
		k->op.decision = UAR_STR("decline");
		k->op.values = NULL;
		k->op.reason = r->error;
	}
	k->o.view.after_action = k->op.action_id;
	e = uar_runtime_answer(k->c->g->o.runtime, &k->op);
	if (e)
		gate_problem(k->c, e, &k->op.error);
}

/* --- the run ------------------------------------------------------------------------------ */

static uar_err check_all(const struct bringing *k, struct uar_error *error)
{
	for (const struct uar_json *a = k->o.all ? first_action(k) : NULL; a; a = a->next)
		if (uar_str_is(uar_json_text(a, "status"), "pending") && !is_brought(k, a)) {
			uar_error_where(error, "%s", k->o.where);
			return uar_error_set(error, UAR_EINVALID,
					     "there is no result of the tool call %.*s",
					     UAR_FMT(uar_json_text(a, "tool_call_id")));
		}
	return UAR_OK;
}

static bool brings_any(const struct bringing *k)
{
	for (const struct uar_client_result *r = k->o.first; r; r = r->next)
		if (find_action(k, r->call_id))
			return true;
	return false;
}

static void read_done(struct uar_actions_op *op)
{
	struct bringing *k = op->ctx;
	struct uar_error error = op->error;
	uar_err e = op->err;

	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&op->json), NULL, &k->c->arena, &k->actions,
					NULL);
	uar_buf_fini(&op->json);
	if (!e && !brings_any(k)) { /* it is not ours, or not this owner's */
		if (k->c->r)
			k->o.create(k->c, k->o.ctx);
		else
			gate_call_free(k->c);
		return;
	}
	if (!e && k->o.ag_ui) /* the agent of the run counts, whatever the address names */
		e = gate_check_protocol(k->c, uar_json_text(first_action(k), "agent_id"),
					UAR_PROTOCOL_AG_UI, &error);
	if (!e)
		e = check_all(k, &error);
	if (e)
		gate_problem(k->c, e, &error);
	else
		bring_next(k);
}

bool gate_has_results(const struct uar_client_result *first)
{
	uar_str run_id;

	for (; first; first = first->next)
		if (uar_client_call_run(first->call_id, &run_id))
			return true;
	return false;
}

void gate_bring_results(struct call *c, const struct gate_results *o)
{
	struct bringing *k = uar_arena_alloc(&c->arena, sizeof *k);
	const struct uar_client_result *r = o->first;
	struct uar_error error = { 0 };
	uar_err e = k ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		*k = (struct bringing){ .c = c, .next = o->first, .o = *o };
		while (r && !uar_client_call_run(r->call_id, &k->run_id))
			r = r->next;
		k->read = (struct uar_actions_op){ .owner = c->owner,
						   .run_id = k->run_id,
						   .status = UAR_STR("any"),
						   .limit = UAR_LIMIT_LIST_PAGE,
						   .done = read_done,
						   .ctx = k };
		c->op = k;
		e = uar_read_actions(c->g->o.reader, &k->read, &error);
	}
	if (e)
		gate_problem(c, e, &error);
}
