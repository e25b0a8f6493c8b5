/* tasks.c - reads tasks: their rows, the runs that are their attempts, their edges. */
#include "read/tasks.h"

#include "core/control.h"
#include "event/limits.h"
#include "read/limits.h"
#include "read/read_int.h"

enum { EDGES_FROM, EDGES_TO, EDGE_LISTS };

struct reading {
	struct uar_reader *rd;
	struct uar_tasks_op *op;
	struct uar_rows_query tasks, edges[EDGE_LISTS];
	struct uar_runs_query runs;
	size_t waiting; /* queries of one task that are under way */
	uar_err err;
	struct uar_error error;
};

static void finish(struct reading *r, uar_err e, const struct uar_error *error)
{
	struct uar_tasks_op *op = r->op;

	op->err = e;
	if (error)
		op->error = *error;
	op->error.code = e;
	uar_store_rows_fini(&r->tasks);
	uar_store_query_fini(&r->runs);
	for (size_t i = 0; i < EDGE_LISTS; i++)
		uar_store_rows_fini(&r->edges[i]);
	uar_free(r);
	op->done(op);
}

static uar_err put_task(struct reading *r, struct uar_jw *w, const struct uar_row *row)
{
	struct uar_row_task task;
	uar_err e = uar_row_unpack(row, &r->tasks.arena, &task, sizeof task, &r->op->error);

	if (!e)
		uar_task_write(w, &task);
	return e;
}

/* --- a list ---------------------------------------------------------------------------------- */

static uar_err write_list(struct reading *r)
{
	struct uar_jw w = uar_jw_begin(&r->op->json);
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "tasks");
	for (size_t i = 0; i < r->tasks.row_count && !e; i++) {
		uar_jw_obj(&w, NULL);
		e = put_task(r, &w, &r->tasks.rows[i]);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	rd_put_next(&w, r->tasks.more, r->tasks.next);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

static void listed(struct uar_rows_query *q)
{
	struct reading *r = UAR_OWNER(q, struct reading, tasks);

	if (q->err)
		finish(r, q->err, &q->error);
	else
		finish(r, write_list(r), NULL);
}

/* --- one task -------------------------------------------------------------------------------- */

/* What the record of the run shows of its end. */
static void put_attempt_end(struct reading *r, struct uar_jw *w, const struct uar_run_row *run)
{
	const struct uar_json *detail = NULL, *error = NULL, *refs = NULL;

	if (!uar_json_parse(run->detail, NULL, &r->runs.arena, &detail, NULL)) {
		error = uar_json_get(detail, UAR_STR("error"));
		refs = uar_json_get(detail, UAR_STR("result_refs"));
	}
	uar_jw_raw(w, "output_refs", refs ? refs->text : UAR_STR("[]"));
	if (error && error->kind == UAR_JSON_OBJECT)
		uar_jw_tree(w, "last_error", error);
	else
		uar_jw_null(w, "last_error");
	uar_jw_str_or_null(w, "completion_summary", run->terminal ? run->status : UAR_STR_NONE);
}

static void put_attempt(struct reading *r, struct uar_jw *w, const struct uar_run_row *run)
{
	char input[UAR_LIMIT_ID_BYTES + 16];

	snprintf(input, sizeof input, "input://%.*s/0", UAR_FMT(run->turn_id));
	uar_jw_str(w, "run_id", run->run_id);
	uar_jw_str(w, "attempt_id", run->run_id);
	uar_jw_int(w, "attempt_count", run->attempt);
	uar_jw_str(w, "status", run->status);
	uar_jw_str(w, "agent_id", run->agent_id);
	uar_jw_obj(w, "worker");
	uar_jw_str(w, "plugin_id", run->plugin_id);
	uar_jw_str(w, "entry_id", run->entry_id);
	uar_jw_close(w);
	uar_jw_str(w, "turn_id", run->turn_id);
	uar_jw_str(w, "thread_id", run->thread_id);
	uar_jw_arr(w, "input_refs");
	uar_jw_cstr(w, NULL, input);
	uar_jw_close(w);
	uar_jw_arr(w, "checkpoint_refs");
	uar_jw_close(w);
	uar_jw_obj(w, "retry_policy");
	uar_jw_cstr(w, "mode", "manual");
	uar_jw_close(w);
	uar_jw_str_or_null(w, "error_code", run->listed.error_code);
	put_attempt_end(r, w, run);
	uar_jw_time(w, "created_at", run->created_us);
	uar_jw_time_or_null(w, "started_at", run->started_us);
	uar_jw_time_or_null(w, "ended_at", run->finished_us);
}

static void put_attempts(struct reading *r, struct uar_jw *w)
{
	uar_jw_arr(w, "attempts");
	for (size_t i = r->runs.row_count; i-- > 0;) { /* the oldest first */
		uar_jw_obj(w, NULL);
		put_attempt(r, w, &r->runs.rows[i]);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static uar_err put_edge(struct reading *r, struct uar_jw *w, const struct uar_row *row)
{
	struct uar_row_edge edge;
	uar_err e = uar_row_unpack(row, &r->tasks.arena, &edge, sizeof edge, &r->op->error);

	if (e)
		return e;
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "kind", edge.edge_kind);
	uar_jw_str(w, "source_id", row->parent);
	uar_jw_str(w, "target_id", row->tag);
	uar_jw_str(w, "status", row->status);
	if (edge.reason.n)
		uar_jw_str(w, "reason", edge.reason);
	uar_jw_time(w, "created_at", row->created_us);
	uar_jw_time(w, "updated_at", row->updated_us);
	uar_jw_close(w);
	return UAR_OK;
}

static uar_err write_task(struct reading *r)
{
	struct uar_jw w = uar_jw_begin(&r->op->json);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "task");
	e = put_task(r, &w, &r->tasks.rows[0]);
	put_attempts(r, &w);
	uar_jw_arr(&w, "relationships");
	for (size_t i = 0; i < EDGE_LISTS; i++)
		for (size_t k = 0; k < r->edges[i].row_count && !e; k++)
			e = put_edge(r, &w, &r->edges[i].rows[k]);
	uar_jw_close(&w);
	uar_jw_u64(&w, "through_sequence", r->tasks.rows[0].through);
	uar_jw_close(&w);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

static void one_ready(struct reading *r, uar_err e, const struct uar_error *error)
{
	if (e && !r->err) {
		r->err = e;
		r->error = *error;
	}
	if (--r->waiting)
		return;
	if (r->err)
		finish(r, r->err, &r->error);
	else
		finish(r, write_task(r), NULL);
}

static void task_ready(struct uar_rows_query *q)
{
	one_ready(UAR_OWNER(q, struct reading, tasks), q->err, &q->error);
}

static void edges_from_ready(struct uar_rows_query *q)
{
	one_ready(UAR_OWNER(q, struct reading, edges[EDGES_FROM]), q->err, &q->error);
}

static void edges_to_ready(struct uar_rows_query *q)
{
	one_ready(UAR_OWNER(q, struct reading, edges[EDGES_TO]), q->err, &q->error);
}

static void runs_ready(struct uar_runs_query *q)
{
	one_ready(UAR_OWNER(q, struct reading, runs), q->err, &q->error);
}

static uar_err ask_edges(struct reading *r, size_t which)
{
	struct uar_store *store = rt_store(r->rd->rt);
	bool from = which == EDGES_FROM;
	uar_err e;

	r->edges[which] = (struct uar_rows_query){
		.owner = r->op->owner,
		.kind = UAR_ROW_EDGE,
		.parent = from ? r->op->task_id : UAR_STR_NONE,
		.tag = from ? UAR_STR_NONE : r->op->task_id,
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = from ? edges_from_ready : edges_to_ready,
	};
	e = store->ops->rows(store, &r->edges[which]);
	r->waiting += !e;
	return e;
}

static uar_err ask_runs(struct reading *r)
{
	struct uar_store *store = rt_store(r->rd->rt);
	uar_err e;

	r->runs = (struct uar_runs_query){
		.owner = r->op->owner,
		.task_id = r->op->task_id,
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = runs_ready,
	};
	e = store->ops->runs(store, &r->runs);
	r->waiting += !e;
	return e;
}

/* What could not be asked for is told once the rest is there. */
static void ask_more(struct reading *r)
{
	uar_err e = ask_edges(r, EDGES_FROM);

	if (!e)
		e = ask_edges(r, EDGES_TO);
	if (!e)
		e = ask_runs(r);
	r->err = e;
}

uar_err uar_read_tasks(struct uar_reader *rd, struct uar_tasks_op *op)
{
	struct uar_store *store = rt_store(rd->rt);
	struct reading *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->rd = rd;
	r->op = op;
	op->json = uar_buf_make(UAR_LIMIT_TASK_LIST_BYTES);
	r->tasks = (struct uar_rows_query){
		.owner = op->owner,
		.kind = UAR_ROW_TASK,
		.id = op->task_id,
		.session_id = op->session_id,
		.tag = op->thread_id,
		.parent = op->parent_task_id,
		.status = op->status,
		.after = op->cursor,
		.limit = op->limit,
		.done = op->task_id.n ? task_ready : listed,
	};
	r->waiting = 1;
	e = store->ops->rows(store, &r->tasks);
	if (e)
		uar_free(r);
	else if (op->task_id.n)
		ask_more(r);
	return e;
}
