/* put_rows.c - writes rows of the kinds that event/row.def declares. */
#include "event/limits.h"
#include "store/sqlite/sqlite_int.h"

static uar_str kind_word(const struct uar_row *r)
{
	return uar_str_c(uar_row_info[r->kind].name);
}

uint32_t sq_sum_row(int64_t oid, int64_t sid, uar_str kind, const struct uar_row *r)
{
	const int64_t v[] = { oid,     sid,	      r->open,	     r->due_us,
			      r->rank, r->created_us, r->updated_us, (int64_t)r->through };
	const uar_str s[] = { kind, r->id, r->parent, r->tag, r->status, r->body };
	uint32_t sum = sq_sum_ints(0, v, ARRAY_LEN(v));

	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		sum = sq_sum_str(sum, s[i]);
	return sum;
}

/* *out_sid 0: there is no such row. */
static uar_err find_row(struct sq_apply *ap, int64_t oid, const struct uar_row *r, int64_t *out_sid,
			struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(ap->c, SQ_ROW_AT, SQ_VALS(SQ_I(oid), SQ_T(kind_word(r)), SQ_T(r->id)),
			     &st, error);

	*out_sid = 0;
	if (e)
		return e == UAR_ENOTFOUND ? UAR_OK : e;
	*out_sid = sqlite3_column_int64(st, 0);
	sq_done(st);
	return UAR_OK;
}

/* A configuration of notifications is deleted with its run, so none may come after that. */
static uar_err check_run(struct sq_apply *ap, struct sq_op *op, int64_t oid,
			 const struct uar_row *r, struct uar_error *error)
{
	sqlite3_stmt *st;
	bool gone = true;
	uar_err e = UAR_OK;

	if (r->kind != UAR_ROW_PUSH || r->removed)
		return UAR_OK;
	if (oid)
		e = sq_first(ap->c, SQ_RUN_PLACE, SQ_VALS(SQ_I(oid), SQ_T(r->parent)), &st, error);
	if (oid && !e) {
		gone = sqlite3_column_int(st, 4) != 0;
		sq_done(st);
	}
	if (e && e != UAR_ENOTFOUND)
		return e;
	if (gone)
		op->a->err = uar_error_set(&op->a->error, UAR_ENOTFOUND, "there is no run %.*s",
					   UAR_FMT(r->parent));
	return UAR_OK;
}

uar_err sq_rows_check(struct sq_apply *ap, struct sq_op *op, int64_t oid, int64_t sid,
		      struct uar_error *error)
{
	for (size_t i = 0; i < op->rows.n; i++) {
		const struct uar_row *r = &op->rows.at[i];
		int64_t found = 0;
		uar_err e = check_run(ap, op, oid, r, error);

		if (!e && !op->a->err && oid)
			e = find_row(ap, oid, r, &found, error);
		if (e || op->a->err)
			return e;
		if (found && (r->fresh || (found != sid && !(r->removed && r->foreign)))) {
			op->a->err = uar_error_set(&op->a->error, UAR_ECONFLICT,
						   "%s %.*s exists already%s",
						   uar_row_info[r->kind].name, UAR_FMT(r->id),
						   found == sid ? "" : ", in another session");
			return UAR_OK;
		}
	}
	return UAR_OK;
}

static uar_err drop_row(struct sq_apply *ap, int64_t oid, const struct uar_row *r,
			struct uar_error *error)
{
	uar_err e = sq_run(ap->c, SQ_ROW_DROP, SQ_VALS(SQ_I(oid), SQ_T(kind_word(r)), SQ_T(r->id)),
			   error);

	if (!e)
		ap->head.items -= sqlite3_changes(ap->c->db);
	return e;
}

static uar_err put_row(struct sq_apply *ap, int64_t oid, int64_t sid, const struct uar_row *r,
		       struct uar_error *error)
{
	uar_str kind = kind_word(r);
	int64_t found = 0;
	uar_err e = find_row(ap, oid, r, &found, error);

	if (!e)
		e = sq_run(ap->c, SQ_ROW_PUT,
			   SQ_VALS(SQ_I(oid), SQ_T(kind), SQ_T(r->id), SQ_I(sid), SQ_T(r->parent),
				   SQ_T(r->tag), SQ_T(r->status), SQ_I(r->open), SQ_I(r->due_us),
				   SQ_I(r->rank), SQ_I(r->created_us), SQ_I(r->updated_us),
				   SQ_I(r->through), SQ_T(r->body),
				   SQ_I(sq_sum_row(oid, sid, kind, r))),
			   error);
	if (!e)
		ap->head.items += !found;
	return e;
}

/* What commands came to is kept for a while, not for ever. */
static uar_err forget_outcomes(struct sq_apply *ap, int64_t oid, int64_t now_us,
			       struct uar_error *error)
{
	int64_t before = now_us - (int64_t)UAR_LIMIT_OUTCOME_SECONDS * 1000000;
	uar_err e = sq_run(ap->c, SQ_ROWS_FORGET, SQ_VALS(SQ_I(oid), SQ_I(before)), error);

	if (!e)
		ap->head.items -= sqlite3_changes(ap->c->db);
	return e;
}

uar_err sq_rows_write(struct sq_apply *ap, const struct sq_op *op, int64_t oid, int64_t sid,
		      struct uar_error *error)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < op->rows.n && !e; i++) {
		struct uar_row *r = &op->rows.at[i];

		r->through = op->after + op->event_count;
		e = r->removed ? drop_row(ap, oid, r, error) : put_row(ap, oid, sid, r, error);
		if (!e && r->kind == UAR_ROW_OUTCOME)
			e = forget_outcomes(ap, oid, op->at, error);
	}
	return e;
}
