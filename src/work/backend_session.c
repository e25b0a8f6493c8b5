/* backend_session.c - the newest run of the agent in the thread that knew its
 * program's own conversation. The read model of runs has it, page by page. */
#include "event/limits.h"
#include "work/backend_session.h"

struct session_find {
	struct rt_op under_way;
	struct uar_runs_query query;
	struct agg *agg;      /* held: the query borrows its strings */
	struct live_run *run; /* NULL: cancelled */
	session_found_fn *found;
	void *ctx;
	/* A reader thread may look at them when the run is gone. */
	char thread_id[UAR_LIMIT_ID_BYTES + 1], agent_id[UAR_LIMIT_ID_BYTES + 1];
	char before[UAR_LIMIT_ID_BYTES + 1];
};

static uar_str session_of(const struct uar_run_row *row, struct uar_arena *arena)
{
	const struct uar_json *detail;

	if (uar_json_parse(row->detail, NULL, arena, &detail, NULL))
		return UAR_STR_NONE;
	return uar_json_str(
		uar_json_get(uar_json_get(detail, UAR_STR("backend_session")), UAR_STR("id")),
		UAR_STR_NONE);
}

static uar_str newest(const struct session_find *f, struct uar_arena *arena)
{
	const struct uar_runs_query *q = &f->query;
	uar_str id = UAR_STR_NONE;

	for (size_t i = 0; i < q->row_count && !id.n; i++)
		if (!uar_str_is(q->rows[i].run_id, rt_run_id(f->run)))
			id = session_of(&q->rows[i], arena);
	return id;
}

static void ready(struct uar_runs_query *q);

static uar_err look(struct session_find *f)
{
	struct uar_store *store = rt_store(rt_agg_engine(f->agg));

	f->query = (struct uar_runs_query){
		.owner = rt_agg_session(f->agg)->owner,
		.session_id = rt_agg_session(f->agg)->session_id,
		.thread_id = uar_str_c(f->thread_id),
		.agent_id = uar_str_c(f->agent_id),
		.before = uar_str_c(f->before),
		.evicted = true, /* the conversation remembers them */
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = ready,
	};
	return store->ops->runs(store, &f->query);
}

/* Only runs that never got so far as to have a session: further back, then. */
static bool turn_page(struct session_find *f)
{
	struct uar_runs_query *q = &f->query;
	uar_err e;

	if (!q->more || !q->row_count)
		return false;
	snprintf(f->before, sizeof f->before, "%.*s", UAR_FMT(q->rows[q->row_count - 1].run_id));
	uar_store_query_fini(q);
	e = look(f);
	if (e)
		q->err = e;
	return !e;
}

static void ready(struct uar_runs_query *q)
{
	struct session_find *f = UAR_OWNER(q, struct session_find, query);
	struct agg *a = f->agg;
	uar_str id = UAR_STR_NONE;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (f->run && !q->err)
		id = newest(f, &arena);
	if (f->run && !q->err && !id.n && turn_page(f)) {
		uar_arena_fini(&arena);
		return;
	}
	if (f->run)
		f->found(f->ctx, q->err, id);
	uar_arena_fini(&arena);
	uar_store_query_fini(q);
	rt_op_end(&f->under_way);
	uar_free(f);
	rt_agg_drop(a);
}

static void drop(struct rt_op *under_way)
{
	uar_free(UAR_OWNER(under_way, struct session_find, under_way));
}

uar_err rt_session_find(struct live_run *r, session_found_fn *found, void *ctx,
			struct session_find **out)
{
	struct session_find *f = uar_zalloc(sizeof *f);
	uar_err e;

	if (!f)
		return UAR_ENOMEM;
	f->agg = rt_agg(r);
	f->run = r;
	f->found = found;
	f->ctx = ctx;
	memcpy(f->thread_id, rt_thread_id(r), sizeof f->thread_id);
	snprintf(f->agent_id, sizeof f->agent_id, "%.*s", UAR_FMT(rt_state(r)->what.agent_id));
	e = look(f);
	if (e) {
		uar_free(f);
		return e;
	}
	rt_agg_hold(f->agg);
	rt_op_begin(rt_engine(r), &f->under_way, drop);
	*out = f;
	return UAR_OK;
}

void rt_session_cancel(struct session_find *f)
{
	if (f)
		f->run = NULL;
}
