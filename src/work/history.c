/* history.c - reads what a conversation's past does not know yet: events of the log,
 * then the texts that lie apart. */
#include "event/limits.h"
#include "work/history.h"
#include "work/limits.h"

struct history_load {
	struct rt_op under_way;
	struct uar_read read;
	struct uar_blob_get get;
	struct past_message *fetching;
	struct agg *agg;      /* held: the read borrows its strings */
	struct live_run *run; /* NULL: cancelled */
	struct past *past;
	uint64_t after;
	history_ready_fn *ready;
	void *ctx;
};

static void finish(struct history_load *l, uar_err e, const struct uar_error *error)
{
	struct agg *a = l->agg;
	struct past *p = l->past;

	if (e) {
		rt_past_free(p);
		p = NULL;
	}
	if (l->run)
		l->ready(l->ctx, e, error, p);
	else
		rt_past_keep(&rt_work_at(rt_agg_engine(a))->pasts,
			     p); /* as far as it got, it is right */
	rt_op_end(&l->under_way);
	uar_store_read_fini(&l->read);
	uar_free(l);
	rt_agg_drop(a);
}

static void drop(struct rt_op *under_way)
{
	struct history_load *l = UAR_OWNER(under_way, struct history_load, under_way);

	rt_past_free(l->past);
	uar_free(l);
}

/* --- texts that lie apart ---------------------------------------------------------- */

static void fetch_next(struct history_load *l);

static void fetched(struct uar_blob_get *get)
{
	struct history_load *l = UAR_OWNER(get, struct history_load, get);
	uar_err e = get->err;

	if (!e)
		e = rt_past_complete(l->past, l->fetching, get->bytes, get->total);
	uar_store_blob_get_fini(get);
	if (e || !l->run)
		finish(l, e, NULL);
	else
		fetch_next(l);
}

/* The newest first: they are the ones that stay. */
static void fetch_next(struct history_load *l)
{
	struct uar_store *store = rt_store(rt_agg_engine(l->agg));
	struct past_message *m = NULL;
	uar_err e;

	do
		m = rt_past_before(l->past, l->run, m);
	while (m && !m->blob[0]);
	if (!m) {
		finish(l, UAR_OK, NULL);
		return;
	}
	l->fetching = m;
	l->get = (struct uar_blob_get){ .limit = UAR_LIMIT_HISTORY_TEXT, .done = fetched };
	memcpy(l->get.sha256, m->blob, sizeof l->get.sha256);
	e = store->ops->blob_get(store, &l->get);
	if (e)
		finish(l, e, NULL);
}

/* --- the log ----------------------------------------------------------------------- */

static void page_ready(struct uar_read *r);

static uar_err read_page(struct history_load *l)
{
	const struct uar_session *s = rt_agg_session(l->agg);
	struct uar_store *store = rt_store(rt_agg_engine(l->agg));

	l->read = (struct uar_read){
		.owner = s->owner,
		.session_id = s->session_id,
		.after = l->after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	return store->ops->read(store, &l->read);
}

static uar_err take_page(struct history_load *l)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < l->read.event_count && !e; i++) {
		const struct uar_event *ev = &l->read.events[i];

		if (uar_str_is(ev->ids[UAR_ID_THREAD], rt_thread_id(l->run)) &&
		    ev->ids[UAR_ID_RUN].n)
			e = rt_past_add(l->past, ev, &l->read.arena);
		l->past->upto = l->after = ev->sequence;
	}
	return e;
}

static void page_ready(struct uar_read *r)
{
	struct history_load *l = UAR_OWNER(r, struct history_load, read);
	uar_err e = r->err;

	if (!l->run) {
		finish(l, e, NULL);
		return;
	}
	if (!e)
		e = take_page(l);
	if (e) {
		finish(l, e, &r->error);
	} else if (r->more) {
		uar_store_read_fini(r);
		e = read_page(l);
		if (e)
			finish(l, e, NULL);
	} else {
		fetch_next(l);
	}
}

uar_err rt_history_load(struct live_run *r, history_ready_fn *ready, void *ctx,
			struct history_load **out)
{
	struct history_load *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (l)
		l->past = rt_past_take(r);
	if (!l || !l->past) {
		uar_free(l);
		return UAR_ENOMEM;
	}
	l->agg = rt_agg(r);
	l->run = r;
	l->after = l->past->upto;
	l->ready = ready;
	l->ctx = ctx;
	e = read_page(l);
	if (e) {
		rt_past_keep(&rt_work(r)->pasts, l->past);
		uar_free(l);
		return e;
	}
	rt_agg_hold(rt_agg(r));
	rt_op_begin(rt_engine(r), &l->under_way, drop);
	*out = l;
	return UAR_OK;
}

void rt_history_cancel(struct history_load *l)
{
	if (l)
		l->run = NULL;
}
