/* session_list.c - the list of sessions. */
#include "core/control.h"
#include "read/limits.h"
#include "read/read_int.h"
#include "read/sessions.h"

struct listing {
	struct rt_op under_way;
	struct uar_sessions_op *op;
	struct uar_session_list query;
};

static void free_listing(struct listing *l)
{
	uar_store_session_list_fini(&l->query);
	uar_free(l);
}

static void drop_listing(struct rt_op *op)
{
	free_listing(UAR_OWNER(op, struct listing, under_way));
}

static const char *const kinds[UAR_SESSION_KINDS] = { "main", "subagent", "job_item", "any" };

enum uar_session_kind uar_session_kind_parse(uar_str name)
{
	int kind = 0;

	while (kind < UAR_SESSION_KINDS && !uar_str_is(name, kinds[kind]))
		kind++;
	return (enum uar_session_kind)kind;
}

static enum uar_session_kind kind_of(uar_str session_id)
{
	if (uar_str_starts(session_id, UAR_STR(UAR_SUBAGENT_THREAD)))
		return UAR_SESSION_SUBAGENT;
	return uar_str_starts(session_id, UAR_STR(UAR_JOB_THREAD)) ? UAR_SESSION_JOB_ITEM
								   : UAR_SESSION_MAIN;
}

static void filter_kind(struct uar_session_list *q, enum uar_session_kind kind)
{
	switch (kind) {
	case UAR_SESSION_MAIN:
		q->without[0] = UAR_STR(UAR_SUBAGENT_THREAD);
		q->without[1] = UAR_STR(UAR_JOB_THREAD);
		break;
	case UAR_SESSION_SUBAGENT: q->prefix = UAR_STR(UAR_SUBAGENT_THREAD); break;
	case UAR_SESSION_JOB_ITEM: q->prefix = UAR_STR(UAR_JOB_THREAD); break;
	case UAR_SESSION_ANY:
	case UAR_SESSION_KINDS: break;
	}
}

static void write_one(struct uar_jw *w, const struct uar_session_listed *s)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "session_id", s->session_id);
	uar_jw_cstr(w, "kind", kinds[kind_of(s->session_id)]);
	uar_jw_str_or_null(w, "title", s->title);
	uar_jw_str_or_null(w, "agent_id", s->agent_id);
	uar_jw_str(w, "status", s->status);
	uar_jw_str_or_null(w, "last_status", s->last_status);
	uar_jw_u64(w, "runs", s->runs);
	uar_jw_u64(w, "live_runs", s->live);
	uar_jw_u64(w, "waiting_runs", s->waiting);
	uar_jw_time(w, "created_at", s->created_us);
	uar_jw_time(w, "updated_at", s->updated_us);
	uar_jw_close(w);
}

static uar_err write_list(struct listing *l)
{
	struct uar_jw w = uar_jw_begin(&l->op->json);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "sessions");
	for (size_t i = 0; i < l->query.row_count; i++)
		write_one(&w, &l->query.rows[i]);
	uar_jw_close(&w);
	rd_put_next(&w, l->query.more, l->query.next);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static void listed(struct uar_session_list *q)
{
	struct listing *l = UAR_OWNER(q, struct listing, query);
	struct uar_sessions_op *op = l->op;

	op->err = q->err ? q->err : write_list(l);
	op->error = q->error;
	op->error.code = op->err;
	rt_op_end(&l->under_way);
	free_listing(l);
	op->done(op);
}

uar_err uar_read_sessions(struct uar_reader *rd, struct uar_sessions_op *op)
{
	struct uar_store *store = rt_store(rd->rt);
	struct listing *l = store->ops->session_list ? uar_zalloc(sizeof *l) : NULL;
	uar_err e;

	if (!l)
		return store->ops->session_list ? UAR_ENOMEM : UAR_ENOTIMPL;
	l->op = op;
	op->json = uar_buf_make(UAR_LIMIT_SESSION_BYTES);
	l->query = (struct uar_session_list){
		.owner = op->owner,
		.status = op->status,
		.agent_id = op->agent_id,
		.title = op->title,
		.live = op->live,
		.after = op->cursor,
		.limit = op->limit,
		.done = listed,
	};
	filter_kind(&l->query, op->kind);
	e = store->ops->session_list(store, &l->query);
	if (e)
		free_listing(l);
	else
		rt_op_begin(rd->rt, &l->under_way, drop_listing);
	return e;
}
