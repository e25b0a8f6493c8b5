/* create_attempt.c - a request for a run that names a task which has a row: it is another attempt
 * at that task, which the control plane begins. */
#include "engine/control.h"
#include "engine/create_int.h"

static void attempted(struct uar_control_op *op)
{
	struct creation *c = op->ctx;
	struct uar_key_row taken = { 0 };
	struct live_run *r;

	if (op->err == UAR_EEXISTS) {
		taken.fingerprint = uar_str_c(c->known.fingerprint);
		taken.made = uar_str_c(c->known.made);
		rt_creation_resolve(c, &taken);
		return;
	}
	c->op->error = op->error;
	if (op->err) {
		if (!c->op->idempotency_key.n || rt_creation_ask_key(c, op->err))
			rt_creation_finish(c, op->err, &op->error);
		return;
	}
	memcpy(c->op->run_id, c->ids[0], sizeof c->ids[0]);
	r = rt_run_find(c->rt, &c->op->owner, uar_str_c(c->ids[0]));
	c->op->status = uar_status_record(r ? r->state.status : UAR_STATUS_QUEUED);
	rt_creation_finish(c, UAR_OK, NULL);
}

static void begin_attempt(struct creation *c, bool new_thread)
{
	uar_err e;

	c->in = (struct uar_control){ .kind = UAR_CTL_START_TASK, .owner = c->op->owner };
	c->in.start_task.task_id = c->op->task_id;
	c->attempt = (struct uar_control_op){
		.in = &c->in,
		.creation = c,
		.thread_id = c->thread_id,
		.thread_session = new_thread || !c->thread_id[0] ? "" : c->query.found_session,
		.new_thread = new_thread,
		.done = attempted,
		.ctx = c,
	};
	e = uar_runtime_control(c->rt, &c->attempt);
	if (e)
		rt_creation_finish(c, e, NULL);
}

static void thread_of_attempt(struct uar_thread_query *q)
{
	struct creation *c = UAR_OWNER(q, struct creation, query);

	if (q->err && q->err != UAR_ENOTFOUND)
		rt_creation_finish(c, q->err, &q->error);
	else
		begin_attempt(c, q->err == UAR_ENOTFOUND);
}

/* An attempt runs in the conversation that the request names, else in the thread of the task. */
static void name_thread(struct creation *c, uar_str of_task)
{
	uar_str thread_id = c->op->conversation_id.n ? c->op->conversation_id : of_task;

	if (rt_creation_stands_apart(c))
		thread_id = UAR_STR_NONE;
	snprintf(c->thread_id, sizeof c->thread_id, "%.*s", UAR_FMT(thread_id));
}

static void place_attempt(struct creation *c)
{
	struct uar_store *store = c->rt->o.store;
	uar_err e;

	if (!c->thread_id[0]) {
		begin_attempt(c, false);
		return;
	}
	c->query = (struct uar_thread_query){
		.owner = c->op->owner,
		.thread_id = uar_str_c(c->thread_id),
		.done = thread_of_attempt,
	};
	e = store->ops->thread(store, &c->query);
	if (e)
		rt_creation_finish(c, e, NULL);
}

static void task_found(struct uar_rows_query *q)
{
	struct creation *c = UAR_OWNER(q, struct creation, task);
	struct uar_error error = q->error;
	uar_err e = q->err;

	c->task_known = true;
	if (!e)
		name_thread(c, q->rows[0].tag);
	uar_store_rows_fini(q);
	if (!e)
		place_attempt(c);
	else if (e == UAR_ENOTFOUND)
		rt_creation_place(c);
	else
		rt_creation_finish(c, e, &error);
}

void rt_creation_find_task(struct creation *c)
{
	struct uar_store *store = c->rt->o.store;
	uar_err e;

	c->task = (struct uar_rows_query){
		.owner = c->op->owner,
		.kind = UAR_ROW_TASK,
		.id = c->op->task_id,
		.done = task_found,
	};
	e = store->ops->rows(store, &c->task);
	if (e)
		rt_creation_finish(c, e, NULL);
}
