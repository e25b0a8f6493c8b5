/* evict.c - runs that are no longer retained: their rows stay, marked, so that the
 * events in the log keep the ids that rows hold for them, and nothing finds them. Their
 * configurations of notifications hold secrets: those rows are deleted. */
#include "store/sqlite/sqlite_int.h"

#include "base/alloc.h"

static uar_err refuse(struct sq_op *op, uar_err code, uar_str run_id, const char *why)
{
	op->a->err = uar_error_set(&op->a->error, code, "the run to evict %s: %.*s", why,
				   UAR_FMT(run_id));
	return UAR_OK;
}

uar_err sq_evict_check(struct sq_apply *ap, struct sq_op *op, int64_t oid, struct uar_error *error)
{
	for (size_t i = 0; i < op->evict.n && !op->a->err; i++) {
		sqlite3_stmt *st;
		uar_err e = sq_first(ap->c, SQ_RUN, SQ_VALS(SQ_I(oid), SQ_T(op->evict.at[i])), &st,
				     error);

		if (e == UAR_ENOTFOUND)
			return refuse(op, e, op->evict.at[i], "is not there");
		if (e)
			return e;
		if (!sqlite3_column_int(st, 6))
			e = refuse(op, UAR_ESTATE, op->evict.at[i], "has not ended");
		sq_done(st);
		if (e)
			return e;
	}
	return UAR_OK;
}

/* The writer remembers runs with their state: this one is read again, if ever. */
static uar_err forget(struct sq_apply *ap, const struct sq_op *op, uar_str run_id)
{
	struct uar_arena scratch;
	uar_str key;

	uar_arena_init(&scratch, 0);
	key = uar_store_key(&scratch, &op->owner, run_id);
	if (key.p)
		sq_cache_drop(&ap->runs, key);
	uar_arena_fini(&scratch);
	return key.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err evict(struct sq_apply *ap, const struct sq_op *op, int64_t oid, uar_str run_id,
		     struct uar_error *error)
{
	sqlite3_stmt *st;
	int64_t rid, evicted;
	uint32_t sum;
	uar_err e = sq_first(ap->c, SQ_RUN, SQ_VALS(SQ_I(oid), SQ_T(run_id)), &st, error);

	if (e)
		return e;
	rid = sqlite3_column_int64(st, 0);
	evicted = sqlite3_column_int64(st, 10);
	sum = (uint32_t)sqlite3_column_int64(st, 11);
	sq_done(st);
	if (evicted)
		return UAR_OK;
	e = sq_run(ap->c, SQ_RUN_EVICT, SQ_VALS(SQ_I(rid), SQ_I(sq_sum_evicted(sum))), error);
	if (!e)
		e = sq_run(ap->c, SQ_ROWS_OF_RUN, SQ_VALS(SQ_I(oid), SQ_T(run_id)), error);
	if (e)
		return e;
	ap->head.items -= sqlite3_changes(ap->c->db);
	return forget(ap, op, run_id);
}

uar_err sq_evict_write(struct sq_apply *ap, const struct sq_op *op, int64_t oid,
		       struct uar_error *error)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < op->evict.n && !e; i++)
		e = evict(ap, op, oid, op->evict.at[i], error);
	return e;
}
