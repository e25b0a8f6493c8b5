/* history.c - reads what a conversation's past does not know yet: events of the log,
 * then the texts that lie apart. */
#include "core/limits.h"
#include "event/limits.h"
#include "work/history.h"
#include "work/limits.h"

/* A thread that the one of the run, or one before it, was forked from. */
struct origin {
	char thread_id[UAR_LIMIT_ID_BYTES + 1];
	uint64_t forked_at; /* what it said later is not shared */
	uint64_t sequence;  /* nor are turns that began behind this one */
};

struct history_load {
	struct rt_op under_way;
	struct uar_read read;
	struct uar_blob_get get;
	struct past_message *fetching;
	struct agg *agg;      /* held: the read borrows its strings */
	struct live_run *run; /* NULL: cancelled */
	struct past *past;
	uint64_t after;
	struct uar_rows_query row; /* of a thread, while its origin is looked for */
	struct origin origins[UAR_LIMIT_FORK_DEPTH]; /* the nearest first */
	size_t origin_count;
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

/* The thread whose events count at that place of the log: the oldest origin first. */
static const char *thread_at(struct history_load *l, uint64_t sequence)
{
	while (l->origin_count && sequence > l->origins[l->origin_count - 1].forked_at)
		rt_past_roll_back(l->past, l->origins[--l->origin_count].sequence);
	return l->origin_count ? l->origins[l->origin_count - 1].thread_id : rt_thread_id(l->run);
}

static bool is_of_thread(struct history_load *l, const struct uar_event *ev)
{
	if (!ev->ids[UAR_ID_RUN].n && ev->cls != UAR_EV_HISTORY_ROLLBACK_COMPLETED)
		return false;
	return uar_str_is(ev->ids[UAR_ID_THREAD], thread_at(l, ev->sequence));
}

static uar_err take_page(struct history_load *l)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < l->read.event_count && !e; i++) {
		const struct uar_event *ev = &l->read.events[i];

		if (is_of_thread(l, ev))
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

/* --- where the thread comes from ----------------------------------------------------- */

static uar_err find_origin(struct history_load *l, uar_str thread_id);

static uar_err note_origin(struct history_load *l, const struct uar_row *row)
{
	struct uar_row_thread t;
	struct origin *o = &l->origins[l->origin_count];
	uar_err e = uar_row_unpack(row, &l->row.arena, &t, sizeof t, NULL);

	if (e || !t.forked_at || l->origin_count == UAR_LIMIT_FORK_DEPTH)
		return e;
	snprintf(o->thread_id, sizeof o->thread_id, "%.*s", UAR_FMT(row->parent));
	o->forked_at = (uint64_t)t.forked_at;
	o->sequence = (uint64_t)t.forked_sequence;
	l->origin_count++;
	return UAR_OK;
}

static void thread_ready(struct uar_rows_query *q)
{
	struct history_load *l = UAR_OWNER(q, struct history_load, row);
	size_t known = l->origin_count;
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (!l->run) {
		uar_store_rows_fini(q);
		finish(l, e, NULL);
		return;
	}
	if (!q->err)
		e = note_origin(l, &q->rows[0]);
	uar_store_rows_fini(q);
	if (!e)
		e = l->origin_count > known ? find_origin(l, uar_str_c(l->origins[known].thread_id))
					    : read_page(l);
	if (e)
		finish(l, e, NULL);
}

static uar_err find_origin(struct history_load *l, uar_str thread_id)
{
	struct uar_store *store = rt_store(rt_agg_engine(l->agg));

	l->row = (struct uar_rows_query){
		.owner = rt_agg_session(l->agg)->owner,
		.kind = UAR_ROW_THREAD,
		.id = thread_id,
		.done = thread_ready,
	};
	return store->ops->rows(store, &l->row);
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
	e = l->after ? read_page(l) : find_origin(l, uar_str_c(rt_thread_id(r)));
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
