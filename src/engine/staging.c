/* staging.c - an upload on its way to the store. */
#include "engine/staging.h"

#include "engine/engine_int.h"

struct staging {
	struct uar_upload_op op;
	struct uar_stage stage;
	struct uar_staging *to;
};

static void piece_stored(struct uar_upload_op *op)
{
	struct staging *in = UAR_OWNER(op, struct staging, op);
	struct uar_staging *s = in->to;

	s->err = op->err;
	s->error = op->error;
	memcpy(s->sha256, op->sha256, sizeof s->sha256);
	s->done(s);
}

uar_err uar_runtime_stage(struct uar_runtime *rt, struct uar_staging *s)
{
	struct uar_store *store = rt->o.store;
	struct staging *in = s->internal ? s->internal : uar_zalloc(sizeof *in);

	if (!in)
		return UAR_ENOMEM;
	s->internal = in;
	in->to = s;
	in->stage = (struct uar_stage){ s->owner, s->run_id, s->id };
	in->op = (struct uar_upload_op){
		.upload = in->op.upload,
		.bytes = s->bytes,
		.finish = s->last,
		.expect = s->expect,
		.stage = &in->stage,
		.done = piece_stored,
	};
	return store->ops->upload(store, &in->op);
}

uint64_t uar_staging_max(const struct uar_runtime *rt)
{
	return rt->o.store->upload_max;
}

void uar_staging_fini(struct uar_staging *s)
{
	struct staging *in = s->internal;

	if (in && in->op.upload)
		in->op.upload->drop(in->op.upload);
	uar_free(in);
	s->internal = NULL;
}
