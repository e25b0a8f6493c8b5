/* control_files.c - the file parts of a turn: each names bytes that are stored, or the turn is
 * refused before anything is made of it. They are looked for one after the other. */
#include "engine/control_int.h"

static uar_err look_for_next(struct rt_control *c);

static uar_err unknown(struct rt_control *c)
{
	uar_error_where(&c->op->error, "/input/%zu/ref", c->runs.files.at->part);
	return uar_error_set(&c->op->error, UAR_EINVALID,
			     "\"ref\" names no stored bytes: upload the file first");
}

static void looked(struct uar_blob_get *look)
{
	struct rt_control *c = UAR_OWNER(look, struct rt_control, runs.files.look);
	uar_err e = look->err;

	if (e == UAR_ENOTFOUND)
		e = unknown(c);
	else if (e)
		c->op->error = look->error;
	uar_store_blob_get_fini(look);
	if (!e) {
		c->runs.files.at = c->runs.files.at->next;
		e = look_for_next(c);
	}
	if (e)
		rt_control_finish(c, e, &c->op->error);
}

static uar_err look_for_next(struct rt_control *c)
{
	struct rt_files *f = &c->runs.files;
	struct uar_store *store = c->rt->o.store;

	if (!f->at)
		return f->then(c);
	f->stage = (struct uar_stage){ c->in.owner, f->at->run_id, f->at->id };
	f->look = (struct uar_blob_get){ .stage = f->at->run_id.n ? &f->stage : NULL,
					 .done = looked };
	if (!f->look.stage)
		memcpy(f->look.sha256, f->at->id.p, sizeof f->look.sha256 - 1);
	return store->ops->blob_get(store, &f->look);
}

uar_err rt_control_check_files(struct rt_control *c, uar_str input,
			       uar_err (*then)(struct rt_control *c))
{
	uar_err e = uar_turn_files(input, &c->runs.kept, &c->runs.files.at, &c->op->error);

	c->runs.files.then = then;
	return e ? e : look_for_next(c);
}
