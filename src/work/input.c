/* input.c - the user's text of a run and its other inputs: inline, or fetched from a blob. */
#include "work/limits.h"
#include "work/work_int.h"

struct input_load {
	struct rt_op under_way; /* while fetching */
	struct uar_task task;	/* inline text is delivered by the next turn, too */
	struct uar_blob_get get;
	struct live_run *run;
	uar_str text;	       /* inline */
	input_ready_fn *ready; /* NULL: cancelled */
	void *ctx;
	bool fetching;
};

static void deliver(struct input_load *l, uar_err e, uar_str text)
{
	if (l->ready)
		l->ready(l->ctx, e, text);
	if (l->fetching) {
		uar_store_blob_get_fini(&l->get);
		rt_op_end(&l->under_way);
	}
	uar_free(l);
}

static void drop(struct rt_op *under_way)
{
	uar_free(UAR_OWNER(under_way, struct input_load, under_way));
}

static void inline_ready(struct uar_task *t)
{
	struct input_load *l = UAR_OWNER(t, struct input_load, task);

	deliver(l, UAR_OK, l->text);
}

static void blob_ready(struct uar_blob_get *get)
{
	deliver(UAR_OWNER(get, struct input_load, get), get->err, get->bytes);
}

static uar_err fetch(struct input_load *l, uar_str sha256)
{
	struct uar_store *store = rt_store(rt_engine(l->run));

	if (sha256.n != sizeof l->get.sha256 - 1)
		return UAR_ECORRUPT;
	memcpy(l->get.sha256, sha256.p, sha256.n);
	l->get.limit = UAR_LIMIT_HTTP_BODY;
	l->get.done = blob_ready;
	l->fetching = true;
	return store->ops->blob_get(store, &l->get);
}

static uar_err load_text(struct input_load *made, uar_str blob, struct input_load **out)
{
	struct live_run *r = made->run;
	uar_err e = UAR_OK;
	struct input_load *l = uar_zalloc(sizeof *l);

	if (!l)
		return UAR_ENOMEM;
	*l = *made;
	l->task.fn = inline_ready;
	if (blob.n)
		e = fetch(l, blob);
	else
		uar_post(rt_sched(rt_engine(r)), &l->task);
	if (e) {
		uar_free(l);
		return e;
	}
	if (l->fetching)
		rt_op_begin(rt_engine(r), &l->under_way, drop);
	*out = l;
	return UAR_OK;
}

uar_err rt_input_load(struct live_run *r, input_ready_fn *ready, void *ctx, struct input_load **out)
{
	const struct uar_run_what *what = &rt_state(r)->what;
	struct input_load l = { .run = r, .ready = ready, .ctx = ctx, .text = what->message };

	return load_text(&l, uar_run_message_blob(rt_state(r)), out);
}

uar_err rt_inputs_load(struct live_run *r, input_ready_fn *ready, void *ctx,
		       struct input_load **out)
{
	const struct uar_run_what *what = &rt_state(r)->what;
	struct input_load l = { .run = r, .ready = ready, .ctx = ctx, .text = what->inputs };

	return load_text(&l, what->inputs_blob, out);
}

uar_err rt_text_load(struct live_run *r, uar_str sha256, input_ready_fn *ready, void *ctx,
		     struct input_load **out)
{
	struct input_load l = { .run = r, .ready = ready, .ctx = ctx };

	return sha256.n ? load_text(&l, sha256, out) : UAR_EINVALID;
}

/* A fetch comes back to be freed; the next turn may never come. */
void rt_input_cancel(struct input_load *l)
{
	if (!l)
		return;
	l->ready = NULL;
	if (l->fetching)
		return;
	uar_unpost(rt_sched(rt_engine(l->run)), &l->task);
	uar_free(l);
}
