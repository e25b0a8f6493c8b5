/* control_edit.c - edit_queued_turn: the new message is stored before its session is found. */
#include "engine/control_int.h"
#include "engine/limits.h"

void rt_control_stored(struct uar_blob_put *put)
{
	struct rt_control *c = UAR_OWNER(put, struct rt_control, runs.text);
	uar_err e = put->err;

	if (!e) {
		c->in.message.blob = uar_str_c(put->sha256);
		e = rt_control_locate(c);
	}
	if (e)
		rt_control_finish(c, e, put->err ? &put->error : NULL);
}

static uar_err store_text(struct rt_control *c)
{
	struct uar_store *store = c->rt->o.store;

	return store->ops->blob_put(store, &c->runs.text);
}

uar_err rt_control_prepare_edit(struct rt_control *c)
{
	const struct uar_ctl_edit_queued_turn *in = &c->in.edit_queued_turn;
	uar_str text;
	uar_err e = uar_turn_message(in->message, in->input, &c->runs.kept, &text, &c->op->error);

	if (e)
		return e;
	c->in.message.text = uar_str_utf8_prefix(text, UAR_LIMIT_PREVIEW_BYTES);
	c->in.message.bytes = (int64_t)text.n;
	c->runs.text = (struct uar_blob_put){ .bytes = text, .done = rt_control_stored };
	return rt_control_check_files(c, in->input, store_text);
}
