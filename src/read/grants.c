/* grants.c - rows of grants as their records. */
#include "read/grants.h"

#include "core/permit.h"
#include "read/limits.h"
#include "read/read_int.h"

struct listing {
	struct uar_grants_op *op;
	struct uar_rows_query rows;
};

static uar_err write_list(struct listing *l)
{
	struct uar_jw w = uar_jw_begin(&l->op->json);
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "grants");
	for (size_t i = 0; i < l->rows.row_count && !e; i++) {
		struct uar_row_grant g;

		e = uar_row_unpack(&l->rows.rows[i], &l->rows.arena, &g, sizeof g, &l->op->error);
		uar_jw_obj(&w, NULL);
		if (!e)
			uar_grant_write(&w, &g);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	rd_put_next(&w, l->rows.more, l->rows.next);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

static void listed(struct uar_rows_query *q)
{
	struct listing *l = UAR_OWNER(q, struct listing, rows);
	struct uar_grants_op *op = l->op;

	op->err = q->err;
	if (op->err)
		op->error = q->error;
	else
		op->err = write_list(l);
	op->error.code = op->err;
	uar_store_rows_fini(q);
	uar_free(l);
	op->done(op);
}

static uar_err check(const struct uar_grants_op *op, struct uar_error *error)
{
	static const char *const statuses[] = { "", "active", "revoked", "any" };
	bool known = false;

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		known |= uar_str_is(op->status, statuses[i]);
	if (!known) {
		uar_error_where(error, "?status");
		return uar_error_set(error, UAR_EINVALID, "one of active, revoked, any");
	}
	if (op->agent_id.n && op->conversation_id.n) {
		uar_error_where(error, "?agent_id");
		return uar_error_set(error, UAR_EINVALID, "either agent_id or conversation_id");
	}
	return UAR_OK;
}

uar_err uar_read_grants(struct uar_reader *rd, struct uar_grants_op *op, struct uar_error *error)
{
	struct uar_store *store = rt_store(rd->rt);
	bool any = uar_str_is(op->status, "any");
	struct listing *l;
	uar_err e = check(op, error);

	if (e)
		return e;
	l = uar_zalloc(sizeof *l);
	if (!l)
		return UAR_ENOMEM;
	l->op = op;
	op->json = uar_buf_make(UAR_LIMIT_TASK_LIST_BYTES);
	l->rows = (struct uar_rows_query){
		.owner = op->owner,
		.kind = UAR_ROW_GRANT,
		.parent = op->agent_id.n ? op->agent_id : op->conversation_id,
		.tag = op->tool_id,
		.status = any		 ? UAR_STR_NONE
			  : op->status.n ? op->status
					 : UAR_STR("active"),
		.after = op->cursor,
		.limit = op->limit,
		.done = listed,
	};
	e = store->ops->rows(store, &l->rows);
	if (e)
		uar_free(l);
	return e;
}
