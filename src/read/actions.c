/* actions.c - rows of actions as their records. */
#include "read/actions.h"

#include "core/core.h"
#include "read/limits.h"
#include "read/read_int.h"

struct listing {
	struct uar_actions_op *op;
	struct uar_rows_query rows;
};

static uar_err write_list(struct listing *l)
{
	struct uar_jw w = uar_jw_begin(&l->op->json);
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "actions");
	for (size_t i = 0; i < l->rows.row_count && !e; i++) {
		struct uar_row_action a;

		e = uar_row_unpack(&l->rows.rows[i], &l->rows.arena, &a, sizeof a, &l->op->error);
		uar_jw_obj(&w, NULL);
		if (!e)
			uar_action_record(&w, &a);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	rd_put_next(&w, l->rows.more, l->rows.next);
	if (l->rows.count)
		uar_jw_u64(&w, "total", l->rows.total);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

static void listed(struct uar_rows_query *q)
{
	struct listing *l = UAR_OWNER(q, struct listing, rows);
	struct uar_actions_op *op = l->op;

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

static uar_err check(const struct uar_actions_op *op, struct uar_error *error)
{
	static const char *const statuses[] = { "", "pending", "resolved", "any" };
	bool known = false;

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		known |= uar_str_is(op->status, statuses[i]);
	if (!known) {
		uar_error_where(error, "?status");
		return uar_error_set(error, UAR_EINVALID, "one of pending, resolved, any");
	}
	if (op->type.n && uar_action_type_parse(op->type) == UAR_ACTION_TYPE_COUNT) {
		uar_error_where(error, "?type");
		return uar_error_set(error, UAR_EINVALID, "no action is of that type");
	}
	return UAR_OK;
}

uar_err uar_read_actions(struct uar_reader *rd, struct uar_actions_op *op, struct uar_error *error)
{
	struct uar_store *store = rt_store(rd->rt);
	bool pending = !op->status.n || uar_str_is(op->status, "pending");
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
		.kind = UAR_ROW_ACTION,
		.session_id = op->session_id,
		.parent = op->run_id,
		.tag = op->type,
		.status = pending ? UAR_STR("pending") : UAR_STR_NONE, /* an index has it */
		.open = any	  ? UAR_ROWS_ANY
			: pending ? UAR_ROWS_OPEN
				  : UAR_ROWS_CLOSED,
		.order = pending ? UAR_ROWS_RANK : UAR_ROWS_NEWEST,
		.after = op->cursor,
		.limit = op->limit,
		.count = pending,
		.done = listed,
	};
	e = store->ops->rows(store, &l->rows);
	if (e)
		uar_free(l);
	return e;
}
