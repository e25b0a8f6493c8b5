/* fanout.c - reads child agents and jobs: rows, nothing else. */
#include "read/fanout.h"

#include "core/control.h"
#include "core/limits.h"
#include "event/limits.h"
#include "read/limits.h"
#include "read/read_int.h"

/* --- the graph of child agents --------------------------------------------------------------- */

struct graph {
	struct uar_reader *rd;
	struct uar_subagents_op *op;
	struct uar_thread_query where;
	struct uar_rows_query rows;
	struct uar_jw w;
	struct uar_arena arena;
	/* Sessions whose children are to be listed, each with its level. */
	struct {
		uar_str session_id;
		int64_t level;
	} at[UAR_LIMIT_GRAPH_SESSIONS];
	size_t count, next;
	uar_str after; /* cursor */
	int64_t listed;
	bool omitted;
};

static void end_graph(struct graph *g, uar_err e, const struct uar_error *error)
{
	struct uar_subagents_op *op = g->op;

	uar_jw_close(&g->w);
	uar_jw_int(&g->w, "count", g->listed);
	uar_jw_bool(&g->w, "omitted", g->omitted);
	uar_jw_close(&g->w);
	if (!e)
		e = uar_jw_end(&g->w);
	op->err = e;
	if (error)
		op->error = *error;
	op->error.code = e;
	uar_store_rows_fini(&g->rows);
	uar_arena_fini(&g->arena);
	uar_free(g);
	op->done(op);
}

static void add_session(struct graph *g, uar_str session_id, int64_t level)
{
	uar_str own;

	if (g->op->depth && level > g->op->depth)
		return;
	own = g->count < ARRAY_LEN(g->at) ? uar_arena_str(&g->arena, session_id) : UAR_STR_NONE;
	if (!own.n) { /* a query without a session would find the children of all */
		g->omitted = true;
		return;
	}
	g->at[g->count].session_id = own;
	g->at[g->count++].level = level;
}

static uar_err put_child(struct graph *g, const struct uar_row *row)
{
	struct uar_row_subagent s;
	uar_err e = uar_row_unpack(row, &g->rows.arena, &s, sizeof s, &g->op->error);
	uar_str parent;

	if (e)
		return e;
	if (g->next == 1 && g->op->thread_id.n && !uar_str_eq(s.thread_id, g->op->thread_id))
		return UAR_OK;
	s.answer = uar_str_utf8_prefix(s.answer, UAR_LIMIT_SUBAGENT_SUMMARY);
	uar_jw_obj(&g->w, NULL);
	uar_subagent_write(&g->w, &s);
	if (uar_thread_subagent(row->session_id, &parent))
		uar_jw_str(&g->w, "parent_subagent_id", parent);
	else
		uar_jw_null(&g->w, "parent_subagent_id");
	uar_jw_close(&g->w);
	g->listed++;
	add_session(g, s.child_session_id, g->at[g->next - 1].level + 1);
	return UAR_OK;
}

static void list_next(struct graph *g);

static void children_ready(struct uar_rows_query *q)
{
	struct graph *g = UAR_OWNER(q, struct graph, rows);
	struct uar_error error = q->error;
	uar_err e = q->err;

	for (size_t i = 0; i < q->row_count && !e; i++)
		e = put_child(g, &q->rows[i]);
	g->after = !e && q->more ? uar_arena_str(&g->arena, q->next) : UAR_STR_NONE;
	uar_store_rows_fini(q);
	if (e)
		end_graph(g, e, q->err ? &error : NULL);
	else
		list_next(g);
}

static void list_next(struct graph *g)
{
	struct uar_store *store = rt_store(g->rd->rt);
	uar_err e;

	if (!g->after.n && g->next == g->count) {
		end_graph(g, UAR_OK, NULL);
		return;
	}
	g->next += !g->after.n;
	g->rows = (struct uar_rows_query){
		.owner = g->op->owner,
		.kind = UAR_ROW_SUBAGENT,
		.session_id = g->at[g->next - 1].session_id,
		.after = g->after,
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = children_ready,
	};
	e = store->ops->rows(store, &g->rows);
	if (e)
		end_graph(g, e, NULL);
}

static void session_found(struct uar_thread_query *q)
{
	struct graph *g = UAR_OWNER(q, struct graph, where);

	if (q->err) {
		uar_error_where(&q->error, "/session_id");
		end_graph(g, q->err, &q->error);
		return;
	}
	add_session(g, g->op->session_id, 1);
	list_next(g);
}

uar_err uar_read_subagents(struct uar_reader *rd, struct uar_subagents_op *op)
{
	struct uar_store *store = rt_store(rd->rt);
	struct graph *g = uar_zalloc(sizeof *g);
	uar_err e;

	if (!g)
		return UAR_ENOMEM;
	g->rd = rd;
	g->op = op;
	uar_arena_init(&g->arena, 0);
	op->json = uar_buf_make(UAR_LIMIT_TASK_LIST_BYTES);
	g->w = uar_jw_begin(&op->json);
	uar_jw_obj(&g->w, NULL);
	uar_jw_arr(&g->w, "subagents");
	g->where = (struct uar_thread_query){ .owner = op->owner,
					      .session_id = op->session_id,
					      .done = session_found };
	e = store->ops->thread(store, &g->where);
	if (e) {
		uar_arena_fini(&g->arena);
		uar_free(g);
	}
	return e;
}

/* --- jobs ------------------------------------------------------------------------------------ */

#define NEVER_STARTED "never_started."

enum { WHOLE_OUTPUTS = 64 }; /* items of a page that has them */

struct job_read {
	struct uar_reader *rd;
	struct uar_jobs_op *op;
	struct uar_rows_query jobs, items;
	struct uar_row_job job;
	struct uar_jw w;
};

static void finish(struct job_read *r, uar_err e, const struct uar_error *error)
{
	struct uar_jobs_op *op = r->op;

	op->err = e;
	if (error)
		op->error = *error;
	op->error.code = e;
	uar_store_rows_fini(&r->jobs);
	uar_store_rows_fini(&r->items);
	uar_free(r);
	op->done(op);
}

static uar_err write_list(struct job_read *r)
{
	struct uar_jw w = uar_jw_begin(&r->op->json);
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "jobs");
	for (size_t i = 0; i < r->jobs.row_count && !e; i++) {
		e = uar_row_unpack(&r->jobs.rows[i], &r->jobs.arena, &r->job, sizeof r->job,
				   &r->op->error);
		if (e)
			continue;
		uar_jw_obj(&w, NULL);
		uar_job_write(&w, &r->job);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	rd_put_next(&w, r->jobs.more, r->jobs.next);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

static uar_err put_item(struct job_read *r, const struct uar_row *row)
{
	struct uar_row_job_item i;
	uar_err e = uar_row_unpack(row, &r->items.arena, &i, sizeof i, &r->op->error);

	if (e)
		return e;
	if (r->op->limit > WHOLE_OUTPUTS)
		i.output = uar_str_utf8_prefix(i.output, UAR_LIMIT_LONG_PAGE_OUTPUT);
	uar_jw_obj(&r->w, NULL);
	uar_job_item_write(&r->w, &i);
	uar_jw_close(&r->w);
	return UAR_OK;
}

/* An item without a row: nobody has begun it. */
static void put_fresh(struct job_read *r, int64_t index)
{
	const struct uar_row_job_item none = { .row = { .status = UAR_STR("pending"),
							.rank = index } };
	struct uar_row_job_item i = none;
	char id[UAR_LIMIT_ID_BYTES + 1];

	snprintf(id, sizeof id, "%.*s.%lld", UAR_FMT(r->job.row.id), (long long)index);
	i.row.id = uar_str_c(id);
	uar_jw_obj(&r->w, NULL);
	uar_job_item_write(&r->w, &i);
	uar_jw_close(&r->w);
}

/* What is left of the page; the cursor behind it. */
static void put_pending(struct job_read *r, int64_t from, size_t room)
{
	char next[64];

	for (; room && from < r->job.item_count; room--)
		put_fresh(r, from++);
	uar_jw_close(&r->w);
	snprintf(next, sizeof next, NEVER_STARTED "%lld", (long long)from);
	rd_put_next(&r->w, from < r->job.item_count, uar_str_c(next));
}

static void end_items(struct job_read *r, uar_err e, const struct uar_error *error)
{
	uar_jw_u64(&r->w, "through_sequence", r->job.row.through);
	uar_jw_close(&r->w);
	finish(r, e ? e : uar_jw_end(&r->w), error);
}

static void items_ready(struct uar_rows_query *q)
{
	struct job_read *r = UAR_OWNER(q, struct job_read, items);
	uar_err e = q->err;

	for (size_t i = 0; i < q->row_count && !e; i++)
		e = put_item(r, &q->rows[i]);
	if (e) {
		end_items(r, e, q->err ? &q->error : NULL);
		return;
	}
	if (q->more) {
		uar_jw_close(&r->w);
		rd_put_next(&r->w, true, q->next);
	} else {
		put_pending(r, r->job.cursor, r->op->limit - q->row_count);
	}
	end_items(r, UAR_OK, NULL);
}

static uar_err ask_items(struct job_read *r)
{
	struct uar_store *store = rt_store(r->rd->rt);

	r->items = (struct uar_rows_query){
		.owner = r->op->owner,
		.kind = UAR_ROW_JOB_ITEM,
		.parent = r->op->job_id,
		.order = UAR_ROWS_RANK,
		.after = r->op->cursor,
		.limit = r->op->limit,
		.done = items_ready,
	};
	return store->ops->rows(store, &r->items);
}

static void write_job(struct job_read *r)
{
	uar_str prefix = UAR_STR(NEVER_STARTED);
	uint64_t from = 0;
	uar_err e;

	r->w = uar_jw_begin(&r->op->json);
	uar_jw_obj(&r->w, NULL);
	uar_jw_obj(&r->w, "job");
	uar_job_write(&r->w, &r->job);
	uar_jw_close(&r->w);
	uar_jw_arr(&r->w, "items");
	if (uar_str_starts(r->op->cursor, prefix)) {
		e = uar_str_u64(uar_str_from(r->op->cursor, prefix.n), &from);
		put_pending(r, (int64_t)from, e ? 0 : r->op->limit);
		end_items(r, e ? UAR_ECURSOR : UAR_OK, NULL);
		return;
	}
	e = ask_items(r);
	if (e)
		end_items(r, e, NULL);
}

static void jobs_ready(struct uar_rows_query *q)
{
	struct job_read *r = UAR_OWNER(q, struct job_read, jobs);
	uar_err e = q->err;

	if (!e && r->op->job_id.n)
		e = uar_row_unpack(&q->rows[0], &q->arena, &r->job, sizeof r->job, &r->op->error);
	if (e)
		finish(r, e, q->err ? &q->error : NULL);
	else if (r->op->job_id.n)
		write_job(r);
	else
		finish(r, write_list(r), NULL);
}

uar_err uar_read_jobs(struct uar_reader *rd, struct uar_jobs_op *op)
{
	struct uar_store *store = rt_store(rd->rt);
	struct job_read *r = uar_zalloc(sizeof *r);
	bool one = op->job_id.n > 0;
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->rd = rd;
	r->op = op;
	op->json = uar_buf_make(UAR_LIMIT_TASK_LIST_BYTES);
	r->jobs = (struct uar_rows_query){
		.owner = op->owner,
		.kind = UAR_ROW_JOB,
		.id = op->job_id,
		.session_id = op->session_id,
		.tag = op->thread_id,
		.status = op->status,
		.after = one ? UAR_STR_NONE : op->cursor,
		.limit = op->limit,
		.done = jobs_ready,
	};
	e = store->ops->rows(store, &r->jobs);
	if (e)
		uar_free(r);
	return e;
}
