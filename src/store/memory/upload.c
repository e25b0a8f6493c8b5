/* upload.c - a blob that arrives in pieces, in memory. */
#include "base/alloc.h"
#include "store/memory/memory_int.h"

struct upload {
	struct uar_upload base; /* first */
	struct uar_buf bytes;
};

static struct upload *upload_of(struct uar_upload *base)
{
	return (struct upload *)(void *)base;
}

static void drop(struct uar_upload *base)
{
	uar_buf_fini(&upload_of(base)->bytes);
	uar_free(base);
}

static struct uar_upload *begin(void)
{
	struct upload *u = uar_zalloc(sizeof *u);

	if (!u)
		return NULL;
	u->base.drop = drop;
	u->bytes = uar_buf_make(UAR_LIMIT_BLOB_BYTES);
	return &u->base;
}

static uar_err step(struct mem *m, struct uar_upload_op *op)
{
	char sha256[65];
	struct uar_buf *b;
	uar_err e;

	if (!op->upload)
		op->upload = begin();
	if (!op->upload)
		return UAR_ENOMEM;
	b = &upload_of(op->upload)->bytes;
	uar_buf_add_str(b, op->bytes);
	op->total = b->n;
	if (b->err || !op->finish)
		return b->err;
	e = uar_store_sha256(uar_buf_str(b), sha256);
	if (!e && op->expect.n && !uar_str_is(op->expect, sha256))
		return UAR_EINVALID;
	return e ? e : mem_keep_blob(m, uar_buf_str(b), op->sha256);
}

static void answer(struct uar_task *t)
{
	struct uar_upload_op *op = UAR_OWNER(t, struct uar_upload_op, task);

	op->error = (struct uar_error){ 0 };
	op->err = step(op->internal, op);
	if (op->err)
		uar_error_set(&op->error, op->err, "%s", uar_err_text(op->err));
	if ((op->err || op->finish) && op->upload) {
		drop(op->upload);
		op->upload = NULL;
	}
	op->done(op);
}

uar_err mem_upload(struct uar_store *base, struct uar_upload_op *op)
{
	struct mem *m = mem_of(base);

	op->internal = m;
	return m->stats.health == UAR_STORE_BROKEN ? UAR_ESYNC : mem_ask(m, &op->task, answer);
}
