/* upload.c - a blob that arrives in pieces, in memory. */
#include "base/alloc.h"
#include "base/sha256.h"
#include "store/limits.h"
#include "memory_store/memory_int.h"

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

static struct uar_upload *begin(const struct mem *m)
{
	struct upload *u = uar_zalloc(sizeof *u);

	if (!u)
		return NULL;
	u->base.drop = drop;
	u->bytes = uar_buf_make((size_t)m->base.upload_max);
	return &u->base;
}

/* --- what is staged ------------------------------------------------------------------ */

static uar_str stage_key(struct uar_arena *arena, const struct uar_stage *g)
{
	uar_str run = uar_store_key(arena, &g->owner, g->run_id);

	return run.p ? uar_arena_printf(arena, "%.*s\x1f%.*s", UAR_FMT(run), UAR_FMT(g->id))
		     : UAR_STR_NONE;
}

struct mem_staged *mem_staged_of(struct mem *m, const struct uar_stage *g)
{
	const struct mem_run *run = mem_run_of(m, &g->owner, g->run_id);
	uar_str key = stage_key(&m->scratch, g);
	struct mem_staged *x =
		key.p && run && !run->row.terminal ? uar_map_get(&m->names.staged, key) : NULL;

	uar_arena_reset(&m->scratch);
	return x;
}

static uar_err stage(struct mem *m, const struct uar_stage *g, const char sha256[65])
{
	struct mem_run *run = mem_run_of(m, &g->owner, g->run_id);
	struct mem_staged *x = mem_staged_of(m, g);
	uar_err e;

	if (!run)
		return UAR_ENOTFOUND;
	if (run->row.terminal)
		return UAR_ESTATE;
	if (x)
		return strcmp(x->sha256, sha256) == 0 ? UAR_OK : UAR_EEXISTS;
	if (run->staged >= UAR_LIMIT_RUN_STAGED)
		return UAR_ERATELIMIT;
	x = uar_arena_alloc(&m->arena, sizeof *x);
	if (!x)
		return UAR_ENOMEM;
	memcpy(x->sha256, sha256, sizeof x->sha256);
	x->key = stage_key(&m->arena, g);
	e = x->key.p ? uar_map_put(&m->names.staged, x->key, x) : UAR_ENOMEM;
	run->staged += !e;
	return e;
}

static uar_err adopt(struct mem *m, struct uar_upload_op *op)
{
	const struct mem_staged *x = mem_staged_of(m, op->stage);
	const struct mem_blob *b = x ? uar_map_get(&m->names.blobs, uar_str_c(x->sha256)) : NULL;

	if (!b)
		return UAR_ENOTFOUND;
	op->total = b->bytes.n;
	memcpy(op->sha256, x->sha256, sizeof op->sha256);
	return UAR_OK;
}

/* --- steps ----------------------------------------------------------------------------- */

static uar_err step(struct mem *m, struct uar_upload_op *op)
{
	char sha256[65];
	struct uar_buf *b;
	uar_err e;

	if (!op->upload)
		op->upload = begin(m);
	if (!op->upload)
		return UAR_ENOMEM;
	b = &upload_of(op->upload)->bytes;
	uar_buf_add_str(b, op->bytes);
	op->total = b->n;
	if (b->err || !op->finish)
		return b->err;
	uar_sha256_hex(uar_buf_str(b), sha256);
	if (op->expect.n && !uar_str_is(op->expect, sha256))
		return UAR_EINVALID;
	e = mem_keep_blob(m, uar_buf_str(b), op->sha256);
	return e || !op->stage ? e : stage(m, op->stage, op->sha256);
}

static void answer(struct uar_task *t)
{
	struct uar_upload_op *op = UAR_OWNER(t, struct uar_upload_op, task);

	op->error = (struct uar_error){ 0 };
	op->err = op->adopt ? adopt(op->internal, op) : step(op->internal, op);
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
