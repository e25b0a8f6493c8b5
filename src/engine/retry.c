/* retry.c - another attempt at a task: the same work, in a run of its own. */
#include "engine/engine_int.h"

enum { FIRST_EVENTS = 8 }; /* of a run: all that says what it is to do */

struct retrial {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_run_retry_op *op;
	struct uar_runs_query row;
	struct uar_read read;
	struct uar_run parent;
	struct uar_run_create create;
};

static void finish(struct retrial *t, uar_err e, const struct uar_error *error)
{
	struct uar_run_retry_op *op = t->op;

	op->err = e;
	if (error)
		op->error = *error;
	op->error.code = e;
	uar_run_fini(&t->parent);
	rt_op_end(&t->under_way);
	uar_free(t);
	op->done(op);
}

static void drop(struct rt_op *under_way)
{
	struct retrial *t = UAR_OWNER(under_way, struct retrial, under_way);

	uar_run_fini(&t->parent);
	uar_free(t);
}

static void created(struct uar_run_create *create)
{
	struct retrial *t = UAR_OWNER(create, struct retrial, create);
	struct uar_error error = create->error;

	t->op->existed = create->existed;
	t->op->status = create->status;
	memcpy(t->op->new_run_id, create->run_id, sizeof t->op->new_run_id);
	finish(t, create->err, &error);
}

static uar_err create(struct retrial *t)
{
	struct uar_run_retry_op *op = t->op;
	const struct uar_run *parent = &t->parent;

	t->create = (struct uar_run_create){
		.owner = op->owner,
		.agent_id = parent->what.agent_id,
		.conversation_id = parent->id.thread_id,
		.idempotency_key = op->idempotency_key,
		.fingerprint = op->run_id, /* one key retries one run */
		.task_id = parent->id.task_id,
		.trace_id = parent->id.trace_id,
		.parent = parent,
		.done = created,
	};
	if (parent->what.entry == UAR_ENTRY_PLUGIN) {
		t->create.plugin_id = parent->what.plugin_id;
		t->create.entry_id = parent->what.entry_id;
	}
	return uar_runtime_create_run(t->rt, &t->create);
}

static uar_err fold_first(struct retrial *t, struct uar_error *error)
{
	struct uar_session s = { .owner = t->op->owner };
	uar_err e = t->read.err;

	*error = t->read.error;
	for (size_t i = 0; i < t->read.event_count && !e && !t->parent.what.plugin_id.n; i++)
		e = uar_core_fold(&s, &t->parent, &t->read.events[i], &t->read.arena, error);
	if (!e && !t->parent.what.plugin_id.n)
		e = UAR_ECORRUPT;
	return e;
}

static void events_ready(struct uar_read *read)
{
	struct retrial *t = UAR_OWNER(read, struct retrial, read);
	struct uar_error error = { 0 };
	uar_err e = fold_first(t, &error);

	uar_store_read_fini(read);
	if (!e) {
		e = create(t);
		error = t->create.error;
	}
	if (e)
		finish(t, e, &error);
}

static void row_ready(struct uar_runs_query *q)
{
	struct retrial *t = UAR_OWNER(q, struct retrial, row);
	struct uar_store *store = t->rt->o.store;
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e && !q->rows[0].terminal)
		e = uar_error_set(&error, UAR_ESTATE,
				  "the run is %.*s: only an ended one is retried",
				  UAR_FMT(q->rows[0].status));
	uar_store_query_fini(q);
	if (!e) {
		t->read = (struct uar_read){
			.owner = t->op->owner,
			.run_id = t->op->run_id,
			.limit = FIRST_EVENTS,
			.done = events_ready,
		};
		e = store->ops->read(store, &t->read);
	}
	if (e)
		finish(t, e, &error);
}

uar_err uar_runtime_retry_run(struct uar_runtime *rt, struct uar_run_retry_op *op)
{
	struct retrial *t;
	uar_err e;

	e = rt_takes_new(rt);
	if (e)
		return e;
	t = uar_zalloc(sizeof *t);
	if (!t)
		return UAR_ENOMEM;
	t->rt = rt;
	t->op = op;
	uar_run_init(&t->parent);
	t->row = (struct uar_runs_query){
		.owner = op->owner,
		.run_id = op->run_id,
		.limit = 1,
		.done = row_ready,
	};
	e = rt->o.store->ops->runs(rt->o.store, &t->row);
	if (e)
		uar_free(t);
	else
		rt_op_begin(rt, &t->under_way, drop);
	return e;
}
