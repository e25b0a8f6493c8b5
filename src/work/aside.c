/* aside.c - one blob on its way; tried again while there is no space for it. */
#include "json/limits.h"
#include "work/aside.h"

struct aside {
	struct rt_op under_way; /* while it is at the store */
	struct uar_blob_put put;
	struct uar_timer again;
	struct uar_runtime *rt;
	struct uar_buf bytes;
	aside_fn *done; /* NULL: cancelled */
	void *ctx;
	bool at_store;
};

static void free_aside(struct aside *a)
{
	uar_timer_stop(rt_sched(a->rt), &a->again);
	uar_buf_fini(&a->bytes);
	uar_free(a);
}

static void drop(struct rt_op *under_way)
{
	free_aside(UAR_OWNER(under_way, struct aside, under_way));
}

static void stored(struct uar_blob_put *put);

static uar_err put(struct aside *a)
{
	uar_err e;

	a->put = (struct uar_blob_put){ .bytes = uar_buf_str(&a->bytes), .done = stored };
	e = rt_store(a->rt)->ops->blob_put(rt_store(a->rt), &a->put);
	a->at_store = !e;
	if (!e)
		rt_op_begin(a->rt, &a->under_way, drop);
	return e;
}

static void tell(struct aside *a, uar_err e, uar_str sha256)
{
	aside_fn *done = a->done;

	a->done = NULL;
	if (done)
		done(a->ctx, e, sha256);
}

static void try_again(struct uar_timer *t);

/* False: it cannot be put off. */
static bool later(struct aside *a, uar_err e)
{
	a->again.fn = try_again;
	return a->done && rt_worth_retrying(e) &&
	       uar_timer_set(rt_sched(a->rt), &a->again, UAR_RETRY_US) == UAR_OK;
}

static void try_again(struct uar_timer *t)
{
	struct aside *a = UAR_OWNER(t, struct aside, again);
	uar_err e = put(a);

	if (!e || later(a, e))
		return;
	tell(a, e, UAR_STR_NONE);
	free_aside(a);
}

static void stored(struct uar_blob_put *p)
{
	struct aside *a = UAR_OWNER(p, struct aside, put);
	uar_err e = p->err;

	a->at_store = false;
	if (e && later(a, e)) {
		rt_op_end(&a->under_way);
		return;
	}
	tell(a, e, e ? UAR_STR_NONE : uar_str_c(p->sha256));
	rt_op_end(&a->under_way);
	free_aside(a);
}

uar_err rt_aside_begin(struct uar_runtime *rt, uar_str bytes, aside_fn *done, void *ctx,
		       struct aside **out)
{
	struct aside *a = uar_zalloc(sizeof *a);
	uar_err e;

	if (!a)
		return UAR_ENOMEM;
	a->rt = rt;
	a->done = done;
	a->ctx = ctx;
	a->bytes = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_buf_add_str(&a->bytes, bytes);
	e = a->bytes.err;
	if (!e) {
		e = put(a);
		if (e && later(a, e))
			e = UAR_OK;
	}
	if (e)
		free_aside(a);
	else
		*out = a;
	return e;
}

/* What is at the store comes back to be freed. */
void rt_aside_cancel(struct aside *a)
{
	if (!a)
		return;
	a->done = NULL;
	if (!a->at_store)
		free_aside(a);
}
