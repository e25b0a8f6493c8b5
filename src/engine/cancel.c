/* cancel.c - the one way to cancel, whoever asks. Idempotent. */
#include "engine/engine_int.h"

struct cancellation {
	struct rt_op under_way;
	struct uar_run_cancel_op *op;
	struct uar_runtime *rt;
	struct uar_runs_query row;
	struct rt_waker waker;
};

static uar_err send(struct cancellation *c, struct live_run *r);

static void finish(struct cancellation *c, uar_err e, const struct uar_error *error)
{
	struct uar_run_cancel_op *op = c->op;

	op->err = e;
	if (error)
		op->error = *error;
	op->error.code = e;
	rt_op_end(&c->under_way);
	uar_free(c);
	op->done(op);
}

static void drop(struct rt_op *under_way)
{
	uar_free(UAR_OWNER(under_way, struct cancellation, under_way));
}

/* The caller is told that nothing is recorded; the request waits in front of what the
 * worker says of its end, and is recorded with it. */
static void stop_unrecorded(struct live_run *r, uar_str reason)
{
	struct uar_command cancel = { .kind = UAR_CMD_CANCEL, .text = reason };

	if (rt_stop_unrecorded(r, &cancel) && r->worker)
		rt_effect(r, UAR_DO_STOP_ENTRY);
}

/* Refused by the table: it is being cancelled, or over; both are what was asked for. */
static void cancelled(struct cmd *cmd, uar_err e, const struct uar_error *error,
		      const struct uar_run *run)
{
	struct cancellation *c = cmd->ctx;
	struct uar_error full = { 0 };

	c->op->over = e == UAR_ESTATE && (!run || uar_status_terminal(run->status));
	if (e == UAR_ESTATE)
		e = UAR_OK;
	if (e == UAR_EDISKFULL) {
		stop_unrecorded(cmd->run, cmd->c.text);
		uar_error_set(&full, e,
			      "%s: the run is stopped, which is recorded once there is space",
			      uar_err_text(e));
		error = &full;
	}
	finish(c, e, e ? error : NULL);
}

/* It may have come into memory since it was looked for. */
static void cancel_live(struct cancellation *c)
{
	struct live_run *r = rt_run_find(c->rt, &c->op->owner, c->op->run_id);
	struct uar_error error = { 0 };
	uar_err e = r && r->committed
			    ? send(c, r)
			    : rt_out_of_reach(c->rt, &c->op->owner, c->op->run_id, &error);

	if (e)
		finish(c, e, &error);
}

static void session_awake(struct rt_waker *w, uar_err e)
{
	struct cancellation *c = UAR_OWNER(w, struct cancellation, waker);

	if (e)
		finish(c, e, NULL);
	else
		cancel_live(c);
}

static void row_ready(struct uar_runs_query *q)
{
	struct cancellation *c = UAR_OWNER(q, struct cancellation, row);
	uar_err e = q->err;
	struct uar_error error = q->error;

	c->op->over = !e && q->rows[0].terminal;
	c->waker.fn = session_awake;
	if (!e && !c->op->over &&
	    rt_wake(c->rt, &c->op->owner, q->rows[0].session_id, &c->waker, &e)) {
		uar_store_query_fini(q);
		return;
	}
	uar_store_query_fini(q);
	if (!e && !c->op->over)
		cancel_live(c);
	else
		finish(c, e, &error);
}

static uar_err ask_store(struct cancellation *c)
{
	struct uar_store *store = c->rt->o.store;

	c->row = (struct uar_runs_query){
		.owner = c->op->owner,
		.run_id = c->op->run_id,
		.limit = 1,
		.done = row_ready,
	};
	return store->ops->runs(store, &c->row);
}

static uar_err send(struct cancellation *c, struct live_run *r)
{
	struct cmd *cmd = rt_cmd_make(r, UAR_CMD_CANCEL);
	uar_err e;

	if (!cmd)
		return UAR_ENOMEM;
	cmd->c.text = c->op->reason; /* stays in place until done */
	cmd->done = cancelled;
	cmd->ctx = c;
	e = rt_cmd_send(cmd);
	if (e)
		rt_cmd_free(cmd);
	return e;
}

uar_err uar_runtime_cancel_run(struct uar_runtime *rt, struct uar_run_cancel_op *op)
{
	struct live_run *r = rt_run_find(rt, &op->owner, op->run_id);
	struct cancellation *c = uar_zalloc(sizeof *c);
	uar_err e;

	if (!c)
		return UAR_ENOMEM;
	c->op = op;
	op->over = false;
	c->rt = rt;
	if (r && r->committed)
		e = send(c, r);
	else
		e = ask_store(c);
	if (e)
		uar_free(c);
	else
		rt_op_begin(rt, &c->under_way, drop);
	return e;
}

static void one_of_all(struct cmd *cmd, uar_err e, const struct uar_error *error,
		       const struct uar_run *run)
{
	(void)error, (void)run;
	if (e == UAR_EDISKFULL)
		stop_unrecorded(cmd->run, cmd->c.text);
}

/* What the table refuses is being cancelled already. */
void uar_runtime_cancel_all(struct uar_runtime *rt, uar_str reason)
{
	struct live_run *r;
	size_t at = 0;

	while ((r = uar_map_next(&rt->runs, &at))) {
		struct cmd *cmd = r->committed ? rt_cmd_make(r, UAR_CMD_CANCEL) : NULL;

		if (!cmd)
			continue;
		cmd->c.text = reason;
		cmd->done = one_of_all;
		if (rt_cmd_send(cmd))
			rt_cmd_free(cmd);
	}
}
