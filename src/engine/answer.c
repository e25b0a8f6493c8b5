/* answer.c - the one way to decide what a run has asked for, whoever decides.
 *
 * The id of an action names its run. The first answer counts; what comes later,
 * or after the run's end, changes nothing and is told so. */
#include "engine/engine_int.h"

struct answering {
	struct rt_op under_way;
	struct uar_run_answer_op *op;
	struct uar_runtime *rt;
	struct uar_runs_query row;
	int64_t number;
};

static void finish(struct answering *a, uar_err e, const struct uar_error *error)
{
	struct uar_run_answer_op *op = a->op;

	op->err = e;
	if (error)
		op->error = *error;
	op->error.code = e;
	rt_op_end(&a->under_way);
	uar_free(a);
	op->done(op);
}

static void drop(struct rt_op *under_way)
{
	uar_free(UAR_OWNER(under_way, struct answering, under_way));
}

static uar_err not_open(const struct answering *a, int64_t count, struct uar_error *error)
{
	if (a->number > count)
		return uar_error_set(error, UAR_ENOTFOUND, "no action has that id");
	return uar_error_set(error, UAR_ERESOLVED,
			     "the action was answered before, has expired, or ended with its run");
}

static void row_ready(struct uar_runs_query *q)
{
	struct answering *a = UAR_OWNER(q, struct answering, row);
	const struct uar_json *detail = NULL;
	struct uar_error error = q->error;
	struct uar_arena arena;
	uar_err e = q->err;

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_json_parse(q->rows[0].detail, NULL, &arena, &detail, &error);
	if (!e && !q->rows[0].terminal)
		e = rt_out_of_reach(a->rt, &a->op->owner, uar_str_c(a->op->run_id), &error);
	else if (!e)
		e = not_open(a, uar_json_int(uar_json_get(detail, UAR_STR("action_count")), 0),
			     &error);
	uar_arena_fini(&arena);
	uar_store_query_fini(q);
	finish(a, e, &error);
}

static uar_err ask_store(struct answering *a)
{
	struct uar_store *store = a->rt->o.store;

	a->row = (struct uar_runs_query){
		.owner = a->op->owner,
		.run_id = uar_str_c(a->op->run_id),
		.limit = 1,
		.done = row_ready,
	};
	return store->ops->runs(store, &a->row);
}

/* Durable: now the worker hears it. The run may be over meanwhile. */
static void answered(struct cmd *cmd, uar_err e, const struct uar_error *error,
		     const struct uar_run *run)
{
	struct answering *a = cmd->ctx;
	struct live_run *r = cmd->run;
	struct uar_error why = { 0 };

	if (!e && r && r->worker && r->worker->ops->answer)
		r->worker->ops->answer(r->worker, a->number, cmd->c.answer.verdict);
	if (e == UAR_ESTATE) {
		e = not_open(a, run ? uar_run_rare(run)->actions.count : INT64_MAX, &why);
		error = &why;
	}
	finish(a, e, e ? error : NULL);
}

/* Is the decision one of those that the action offers? */
static uar_err check(struct answering *a, const struct live_run *r)
{
	const struct uar_open_action *open =
		uar_action_open(&uar_run_rare(&r->state)->actions, a->number);

	if (a->op->verdict != UAR_VERDICT_ALLOW_SESSION || !open || !open->once)
		return UAR_OK;
	uar_error_where(&a->op->error, "/decision");
	return uar_error_set(&a->op->error, UAR_EINVALID,
			     "one of allow, deny: each call of a tool is asked for");
}

static uar_err send(struct answering *a, struct live_run *r)
{
	struct cmd *cmd;
	uar_err e = check(a, r);

	if (e)
		return e;
	cmd = rt_cmd_make(r, UAR_CMD_ANSWER);
	if (!cmd)
		return UAR_ENOMEM;
	cmd->c.answer =
		(struct uar_answer){ a->number, a->op->verdict, UAR_ANSWER_RESPOND, a->op->reason };
	cmd->done = answered;
	cmd->ctx = a;
	e = rt_cmd_send(cmd);
	if (e)
		rt_cmd_free(cmd);
	return e;
}

uar_err uar_runtime_answer(struct uar_runtime *rt, struct uar_run_answer_op *op)
{
	struct answering *a;
	struct live_run *r;
	uar_str run_id;
	int64_t number;
	uar_err e;

	if (!uar_action_parse(op->action_id, &run_id, &number) || run_id.n >= sizeof op->run_id)
		return uar_error_set(&op->error, UAR_ENOTFOUND, "no action has that id");
	a = uar_zalloc(sizeof *a);
	if (!a)
		return UAR_ENOMEM;
	snprintf(op->run_id, sizeof op->run_id, "%.*s", UAR_FMT(run_id));
	a->op = op;
	a->rt = rt;
	a->number = number;
	r = rt_run_find(rt, &op->owner, run_id);
	if (r && r->committed)
		e = send(a, r);
	else
		e = ask_store(a);
	if (e)
		uar_free(a);
	else
		rt_op_begin(rt, &a->under_way, drop);
	return e;
}
