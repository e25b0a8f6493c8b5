/* bytes.c - what the readers ask the port to blobs for, and what its answers mean for the store.
 *
 * Blobs wait for the disk like reads, so a reader does them. The port asks about runs through the
 * connection of that reader. */
#include "store/sqlite/sqlite_int.h"

/* Bytes beside the database fill the disk, and meet a full one, as its rows do. */
static void blob_written(struct sq_store *s, uar_err e, const struct uar_error *error)
{
	if (e == UAR_ESYNC)
		sq_writer_break(&s->writer, error);
	pthread_mutex_lock(&s->readers.lock);
	if (!e || e == UAR_EDISKFULL)
		s->readers.blobs_full = e == UAR_EDISKFULL;
	pthread_mutex_unlock(&s->readers.lock);
}

static uar_err check_run(void *ctx, const struct uar_owner *o, uar_str run_id,
			 struct uar_error *error)
{
	struct sq_conn *c = ctx;
	sqlite3_stmt *st;
	int64_t oid = 0;
	bool over;
	uar_err e = sq_find_owner(c, o, &oid, error);

	if (!e)
		e = sq_first(c, SQ_RUN, SQ_VALS(SQ_I(oid), SQ_T(run_id)), &st, error);
	if (e)
		return e;
	over = sqlite3_column_int(st, 6) != 0;
	sq_done(st);
	return over ? uar_error_set(error, UAR_ESTATE, "the run is over") : UAR_OK;
}

void sq_blob_put(struct sq_reader *rd, struct uar_blob_put *b)
{
	struct sq_store *s = rd->pool->store;

	b->error = (struct uar_error){ 0 };
	b->err = s->blobs->ops->put(s->blobs, b->bytes, b->sha256, &b->error);
	blob_written(s, b->err, &b->error);
}

void sq_blob_get(struct sq_reader *rd, struct uar_blob_get *b)
{
	struct sq_store *s = rd->pool->store;

	b->error = (struct uar_error){ 0 };
	b->bytes = UAR_STR_NONE;
	b->err = s->blobs->ops->get(s->blobs, b, &b->error);
}

void sq_upload_step(struct sq_reader *rd, struct uar_upload_op *op)
{
	struct sq_store *s = rd->pool->store;
	const struct uar_blob_runs runs = { .check = check_run, .ctx = &rd->conn };

	op->error = (struct uar_error){ 0 };
	op->err = s->blobs->ops->upload(s->blobs, op, &runs);
	blob_written(s, op->err, &op->error);
}

void sq_stage_clear(struct sq_reader *rd, struct sq_unstage *u)
{
	struct sq_store *s = rd->pool->store;

	s->blobs->ops->unstage(s->blobs, u->name);
}
