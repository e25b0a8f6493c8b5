/* blobs.c - the port to blobs in memory, behind the store in memory.
 *
 * Everything happens on the loop's thread. It is never swept, opened again or checked, so those
 * calls are not there. */
#include "memory_store/memory_int.h"

#include "base/alloc.h"
#include "base/sha256.h"
#include "loop/limits.h"
#include "store/limits.h"

struct blob {
	char sha256[65];
	uar_str bytes;
};

/* What a run has staged under an id; `key` is the run's name, '/' and the id. */
struct staged {
	uar_str key;
	char sha256[65];
};
struct staged_run {
	char name[65]; /* a hash of its owner and its id */
	size_t count;
};

struct blobs {
	struct uar_blobs base;
	struct uar_arena arena; /* all that is kept */
	struct uar_map blobs, staged, runs;
	uint64_t upload_max;
};

static struct blobs *blobs_of(struct uar_blobs *base)
{
	return UAR_OWNER(base, struct blobs, base);
}

static uar_err explain(uar_err e, struct uar_error *error)
{
	return e && !error->code ? uar_error_set(error, e, "%s", uar_err_text(e)) : e;
}

/* --- blobs ------------------------------------------------------------------------------- */

static uar_err put(struct uar_blobs *base, uar_str bytes, char out_sha256[65],
		   struct uar_error *error)
{
	struct blobs *b = blobs_of(base);
	struct blob *blob;
	uar_err e;

	if (bytes.n > UAR_LIMIT_BLOB_BYTES)
		return explain(UAR_ETOOBIG, error);
	uar_sha256_hex(bytes, out_sha256);
	if (uar_map_get(&b->blobs, uar_str_n(out_sha256, 64)))
		return UAR_OK;
	blob = uar_arena_alloc(&b->arena, sizeof *blob);
	if (!blob)
		return explain(UAR_ENOMEM, error);
	memcpy(blob->sha256, out_sha256, sizeof blob->sha256);
	blob->bytes = uar_arena_str(&b->arena, bytes);
	e = blob->bytes.p ? uar_map_put(&b->blobs, uar_str_n(blob->sha256, 64), blob) : UAR_ENOMEM;
	return explain(e, error);
}

static bool has(struct uar_blobs *base, const char sha256[65])
{
	return uar_map_get(&blobs_of(base)->blobs, uar_str_n(sha256, 64)) != NULL;
}

/* --- what is staged ---------------------------------------------------------------------- */

static bool name_of(struct blobs *b, const struct uar_owner *o, uar_str run_id, char out_name[65])
{
	uar_str key = uar_store_key(&b->arena, o, run_id);

	if (key.p)
		uar_sha256_hex(key, out_name);
	return key.p != NULL;
}

static struct staged *staged_of(struct blobs *b, const struct uar_stage *g)
{
	char name[65];
	uar_str key = UAR_STR_NONE;

	if (name_of(b, &g->owner, g->run_id, name))
		key = uar_arena_printf(&b->arena, "%s/%.*s", name, UAR_FMT(g->id));
	return key.p ? uar_map_get(&b->staged, key) : NULL;
}

static uar_err run_of(struct blobs *b, const struct uar_stage *g, struct staged_run **out)
{
	char name[65];
	struct staged_run *r;
	uar_err e;

	if (!name_of(b, &g->owner, g->run_id, name))
		return UAR_ENOMEM;
	*out = uar_map_get(&b->runs, uar_str_n(name, 64));
	if (*out)
		return UAR_OK;
	r = uar_arena_alloc(&b->arena, sizeof *r);
	if (!r)
		return UAR_ENOMEM;
	memcpy(r->name, name, sizeof r->name);
	e = uar_map_put(&b->runs, uar_str_n(r->name, 64), r);
	if (!e)
		*out = r;
	return e;
}

static uar_err keep_staged(struct blobs *b, const struct uar_stage *g, const char sha256[65],
			   struct staged_run *r)
{
	struct staged *x = uar_arena_alloc(&b->arena, sizeof *x);
	uar_err e;

	if (!x)
		return UAR_ENOMEM;
	memcpy(x->sha256, sha256, sizeof x->sha256);
	x->key = uar_arena_printf(&b->arena, "%s/%.*s", r->name, UAR_FMT(g->id));
	e = x->key.p ? uar_map_put(&b->staged, x->key, x) : UAR_ENOMEM;
	r->count += !e;
	return e;
}

static uar_err stage(struct blobs *b, const struct uar_stage *g, const char sha256[65],
		     const struct uar_blob_runs *runs, struct uar_error *error)
{
	const struct staged *x = staged_of(b, g);
	struct staged_run *r = NULL;
	uar_err e = runs->check(runs->ctx, &g->owner, g->run_id, error);

	if (e)
		return e;
	if (x)
		return strcmp(x->sha256, sha256) == 0 ? UAR_OK : UAR_EEXISTS;
	e = run_of(b, g, &r);
	if (!e && r->count >= UAR_LIMIT_RUN_STAGED)
		e = UAR_ERATELIMIT;
	return e ? e : keep_staged(b, g, sha256, r);
}

static bool run_ended(struct uar_blobs *base, const struct uar_owner *o, uar_str run_id,
		      char out_name[65])
{
	struct blobs *b = blobs_of(base);

	return b->runs.used && name_of(b, o, run_id, out_name) &&
	       uar_map_remove(&b->runs, uar_str_n(out_name, 64));
}

static void unstage(struct uar_blobs *base, const char name[65])
{
	struct blobs *b = blobs_of(base);
	struct staged *x;
	size_t at = 0;

	while ((x = uar_map_next(&b->staged, &at)))
		if (memcmp(x->key.p, name, 64) == 0)
			uar_map_remove(&b->staged, x->key);
}

/* --- reads ------------------------------------------------------------------------------- */

static uar_err get(struct uar_blobs *base, struct uar_blob_get *g, struct uar_error *error)
{
	struct blobs *b = blobs_of(base);
	const struct staged *x = g->stage ? staged_of(b, g->stage) : NULL;
	const struct blob *blob = NULL;
	uar_str bytes;

	if (x)
		memcpy(g->sha256, x->sha256, sizeof g->sha256);
	if (x || !g->stage)
		blob = uar_map_get(&b->blobs, uar_str_n(g->sha256, 64));
	if (!blob)
		return uar_error_set(error, UAR_ENOTFOUND, "no blob %s", g->sha256);
	g->total = blob->bytes.n;
	bytes = uar_str_from(blob->bytes, g->offset < g->total ? g->offset : g->total);
	bytes.n = bytes.n > g->limit ? g->limit : bytes.n;
	g->bytes = uar_arena_str(&g->arena, bytes);
	return g->bytes.p ? UAR_OK : explain(UAR_ENOMEM, error);
}

/* --- uploads ----------------------------------------------------------------------------- */

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

static struct uar_upload *begin(const struct blobs *b)
{
	struct upload *u = uar_zalloc(sizeof *u);

	if (!u)
		return NULL;
	u->base.drop = drop;
	u->bytes = uar_buf_make((size_t)b->upload_max);
	return &u->base;
}

static uar_err adopt(struct blobs *b, struct uar_upload_op *op)
{
	const struct staged *x = staged_of(b, op->stage);
	const struct blob *blob = x ? uar_map_get(&b->blobs, uar_str_n(x->sha256, 64)) : NULL;

	if (!blob)
		return UAR_ENOTFOUND;
	op->total = blob->bytes.n;
	memcpy(op->sha256, x->sha256, sizeof op->sha256);
	return UAR_OK;
}

static uar_err step(struct blobs *b, struct uar_upload_op *op, const struct uar_blob_runs *runs)
{
	char sha256[65];
	struct uar_buf *text;
	uar_err e;

	if (!op->upload)
		op->upload = begin(b);
	if (!op->upload)
		return UAR_ENOMEM;
	text = &upload_of(op->upload)->bytes;
	uar_buf_add_str(text, op->bytes);
	op->total = text->n;
	if (text->err || !op->finish)
		return text->err;
	uar_sha256_hex(uar_buf_str(text), sha256);
	if (op->expect.n && !uar_str_is(op->expect, sha256))
		return UAR_EINVALID;
	e = put(&b->base, uar_buf_str(text), op->sha256, &op->error);
	return e || !op->stage ? e : stage(b, op->stage, op->sha256, runs, &op->error);
}

static uar_err upload(struct uar_blobs *base, struct uar_upload_op *op,
		      const struct uar_blob_runs *runs)
{
	struct blobs *b = blobs_of(base);
	uar_err e = op->adopt ? adopt(b, op) : step(b, op, runs);

	if ((e || op->finish) && op->upload) {
		drop(op->upload);
		op->upload = NULL;
	}
	return explain(e, &op->error);
}

/* --- life -------------------------------------------------------------------------------- */

static void destroy(struct uar_blobs *base)
{
	struct blobs *b = blobs_of(base);

	uar_map_fini(&b->blobs);
	uar_map_fini(&b->staged);
	uar_map_fini(&b->runs);
	uar_arena_fini(&b->arena);
	uar_free(b);
}

static const struct uar_blobs_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = destroy,
	.put = put,
	.get = get,
	.upload = upload,
	.has = has,
	.run_ended = run_ended,
	.unstage = unstage,
};

struct uar_blobs *mem_blobs_create(uint64_t upload_max)
{
	struct blobs *b = uar_zalloc(sizeof *b);

	if (!b)
		return NULL;
	b->base.ops = &ops;
	b->upload_max = upload_max;
	uar_map_init(&b->blobs, 5);
	uar_map_init(&b->staged, 6);
	uar_map_init(&b->runs, 8);
	return &b->base;
}
