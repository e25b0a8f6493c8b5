/* bytes.c - what is asked of the store in memory about blobs, answered in a later turn. */
#include "loop/limits.h"
#include "memory_store/memory_int.h"

static uar_err check_run(void *ctx, const struct uar_owner *o, uar_str run_id,
			 struct uar_error *error)
{
	const struct mem_run *run = mem_run_of(ctx, o, run_id);

	(void)error;
	if (!run)
		return UAR_ENOTFOUND;
	return run->row.terminal ? UAR_ESTATE : UAR_OK;
}

void mem_unstage(struct mem *m, const struct uar_owner *o, uar_str run_id)
{
	char name[65];

	if (m->names.blobs->ops->run_ended(m->names.blobs, o, run_id, name))
		m->names.blobs->ops->unstage(m->names.blobs, name);
}

static void answer_put(struct uar_task *t)
{
	struct uar_blob_put *b = UAR_OWNER(t, struct uar_blob_put, task);
	struct mem *m = b->internal;

	b->error = (struct uar_error){ 0 };
	b->err = m->names.blobs->ops->put(m->names.blobs, b->bytes, b->sha256, &b->error);
	b->done(b);
}

static void answer_get(struct uar_task *t)
{
	struct uar_blob_get *b = UAR_OWNER(t, struct uar_blob_get, task);
	struct mem *m = b->internal;

	b->error = (struct uar_error){ 0 };
	b->bytes = UAR_STR_NONE;
	b->err = m->names.blobs->ops->get(m->names.blobs, b, &b->error);
	b->done(b);
}

static void answer_upload(struct uar_task *t)
{
	struct uar_upload_op *op = UAR_OWNER(t, struct uar_upload_op, task);
	struct mem *m = op->internal;
	const struct uar_blob_runs runs = { .check = check_run, .ctx = m };

	op->error = (struct uar_error){ 0 };
	op->err = m->names.blobs->ops->upload(m->names.blobs, op, &runs);
	op->done(op);
}

uar_err mem_put(struct uar_store *base, struct uar_blob_put *b)
{
	struct mem *m = mem_of(base);

	b->internal = m;
	if (b->bytes.n > UAR_LIMIT_BLOB_BYTES)
		return UAR_ETOOBIG;
	return m->stats.health == UAR_STORE_BROKEN ? UAR_ESYNC : mem_ask(m, &b->task, answer_put);
}

uar_err mem_get(struct uar_store *base, struct uar_blob_get *b)
{
	b->internal = mem_of(base);
	if (!b->stage && !uar_store_is_sha256(b->sha256))
		return UAR_EINVALID;
	return mem_ask(mem_of(base), &b->task, answer_get);
}

uar_err mem_upload(struct uar_store *base, struct uar_upload_op *op)
{
	struct mem *m = mem_of(base);

	op->internal = m;
	return m->stats.health == UAR_STORE_BROKEN ? UAR_ESYNC
						   : mem_ask(m, &op->task, answer_upload);
}
