/* history.c - turns of a thread become messages: what was said, what was answered.
 *
 * Of an answer that was begun again after a restart only the last try counts.
 * Turns may be submitted while others are at work, so an answer goes behind its
 * own question and what was asked after r's turn is not part of its past. */
#include "runtime/history.h"

struct history_load {
	struct rt_op under_way;
	struct uar_read read;
	struct uar_blob_get get;
	struct history_message *fetching;
	struct agg *agg;       /* held: the read borrows its strings */
	struct live_run *run;  /* NULL: cancelled */
	struct history *h;     /* NULL: cancelled */
	struct uar_buf answer; /* of the turn being read */
	uint64_t after;
	bool own_seen; /* r's turn was submitted: later ones do not count */
	history_ready_fn *ready;
	void *ctx;
};

static void drop_oldest(struct history *h)
{
	h->bytes -= h->messages[0].text.n;
	uar_buf_fini(&h->messages[0].text);
	h->count--;
	memmove(h->messages, h->messages + 1, h->count * sizeof h->messages[0]);
}

static bool is_of(const struct history_message *m, uar_str run_id)
{
	return uar_str_is(run_id, m->run_id);
}

/* A question goes last, an answer behind its question. */
static struct history_message *make_room(struct history *h, enum uar_model_role role,
					 uar_str run_id)
{
	size_t at = role == UAR_MODEL_USER ? h->count : 0;

	for (size_t i = 0; i < h->count && !at; i++)
		if (is_of(&h->messages[i], run_id))
			at = i + 1;
	memmove(h->messages + at + 1, h->messages + at, (h->count - at) * sizeof h->messages[0]);
	return &h->messages[at];
}

static uar_err add(struct history *h, enum uar_model_role role, uar_str text, uar_str run_id)
{
	struct history_message *m;

	if (text.n == 0 || text.n > HISTORY_BYTES)
		return UAR_OK;
	while (h->count == HISTORY_MESSAGES || h->bytes + text.n > HISTORY_BYTES)
		drop_oldest(h);
	m = make_room(h, role, run_id);
	m->role = role;
	m->blob[0] = 0;
	snprintf(m->run_id, sizeof m->run_id, "%.*s", UAR_FMT(run_id));
	m->text = uar_buf_make(HISTORY_BYTES);
	uar_buf_add_str(&m->text, text);
	h->count++;
	h->bytes += m->text.n;
	return m->text.err;
}

/* A question whose text lies apart is known by its beginning until that is read. */
static uar_err add_question(struct history *h, const struct uar_event *ev, uar_str text)
{
	uar_err e = add(h, UAR_MODEL_USER, text, ev->ids[UAR_ID_RUN]);
	struct history_message *last = e || !h->count ? NULL : &h->messages[h->count - 1];

	if (last && is_of(last, ev->ids[UAR_ID_RUN]))
		snprintf(last->blob, sizeof last->blob, "%.*s", UAR_FMT(uar_core_input_blob(ev)));
	return e;
}

static uar_str text_of(const struct uar_event *ev, struct uar_arena *arena)
{
	const struct uar_json *p;

	if (uar_json_parse(ev->payload, NULL, arena, &p, NULL))
		return UAR_STR("");
	if (ev->cls == UAR_EV_TURN_SUBMITTED)
		p = uar_json_at(uar_json_get(p, UAR_STR("input_parts")), 0);
	return uar_json_str(
		uar_json_get(p, uar_str_c(ev->cls == UAR_EV_TURN_SUBMITTED ? "preview" : "text")),
		UAR_STR(""));
}

static uar_err take_event(struct history_load *l, const struct uar_event *ev)
{
	uar_str run_id = ev->ids[UAR_ID_RUN];
	uar_err e = UAR_OK;

	switch (ev->cls) {
	case UAR_EV_TURN_SUBMITTED:
		if (!l->own_seen)
			e = add_question(l->h, ev, text_of(ev, &l->read.arena));
		break;
	case UAR_EV_MODEL_REQUESTED: uar_buf_clear(&l->answer); break;
	case UAR_EV_MODEL_DELTA: uar_buf_add_str(&l->answer, text_of(ev, &l->read.arena)); break;
	case UAR_EV_TURN_COMPLETED:
	case UAR_EV_TURN_FAILED:
		e = add(l->h, UAR_MODEL_ASSISTANT, uar_buf_str(&l->answer), run_id);
		uar_buf_clear(&l->answer);
		break;
	default: break; /* nothing that was said */
	}
	return e;
}

static void finish(struct history_load *l, uar_err e, const struct uar_error *error)
{
	struct agg *a = l->agg;

	if (l->h)
		l->ready(l->ctx, e, error);
	rt_op_end(&l->under_way);
	uar_store_read_fini(&l->read);
	uar_buf_fini(&l->answer);
	uar_free(l);
	rt_agg_drop(a);
}

static void drop(struct rt_op *under_way)
{
	struct history_load *l = UAR_OWNER(under_way, struct history_load, under_way);

	uar_buf_fini(&l->answer);
	uar_free(l);
}

/* --- texts that lie apart ---------------------------------------------------------- */

static void fetch_next(struct history_load *l);

/* One that is longer than all that may be remembered stays with its beginning. */
static void fetched(struct uar_blob_get *get)
{
	struct history_load *l = UAR_OWNER(get, struct history_load, get);
	struct history_message *m = l->fetching;
	uar_err e = get->err;

	if (l->h && !e && get->total <= HISTORY_BYTES) {
		l->h->bytes += get->bytes.n - m->text.n;
		uar_buf_clear(&m->text);
		uar_buf_add_str(&m->text, get->bytes);
		e = m->text.err;
		while (l->h->bytes > HISTORY_BYTES)
			drop_oldest(l->h);
	}
	uar_store_blob_get_fini(get);
	if (e || !l->h)
		finish(l, e, NULL);
	else
		fetch_next(l);
}

/* The newest first: they are the ones that stay. */
static void fetch_next(struct history_load *l)
{
	struct uar_store *store = l->agg->rt->o.store;
	size_t i = l->h->count;
	uar_err e;

	while (i && !l->h->messages[i - 1].blob[0])
		i--;
	if (!i) {
		finish(l, UAR_OK, NULL);
		return;
	}
	l->fetching = &l->h->messages[i - 1];
	l->get = (struct uar_blob_get){ .limit = HISTORY_BYTES, .done = fetched };
	memcpy(l->get.sha256, l->fetching->blob, sizeof l->get.sha256);
	l->fetching->blob[0] = 0;
	e = store->ops->blob_get(store, &l->get);
	if (e)
		finish(l, e, NULL);
}

/* --- the log ----------------------------------------------------------------------- */

static void page_ready(struct uar_read *r);

static uar_err read_page(struct history_load *l)
{
	const struct uar_session *s = &l->agg->state;
	struct uar_store *store = l->agg->rt->o.store;

	l->read = (struct uar_read){
		.owner = s->owner,
		.session_id = s->session_id,
		.after = l->after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	return store->ops->read(store, &l->read);
}

/* An earlier try at the same question is not something that was said before it. */
static bool is_attempt(const struct uar_run *r, uar_str run_id)
{
	return r->id.parent_run_id.n &&
	       (uar_str_eq(run_id, r->id.parent_run_id) || uar_str_eq(run_id, r->id.root_run_id));
}

/* True: r's own turn has started, the past is complete. */
static bool take_page(struct history_load *l, uar_err *out_err)
{
	for (size_t i = 0; i < l->read.event_count && !*out_err; i++) {
		const struct uar_event *ev = &l->read.events[i];

		l->after = ev->sequence;
		if (!uar_str_is(ev->ids[UAR_ID_THREAD], l->run->thread_id) ||
		    is_attempt(&l->run->state, ev->ids[UAR_ID_RUN]))
			continue;
		if (!uar_str_is(ev->ids[UAR_ID_RUN], l->run->run_id))
			*out_err = take_event(l, ev);
		else if (ev->cls == UAR_EV_TURN_STARTED)
			return true;
		else
			l->own_seen = true;
	}
	return false;
}

static void page_ready(struct uar_read *r)
{
	struct history_load *l = UAR_OWNER(r, struct history_load, read);
	uar_err e = r->err;
	bool done = true;

	if (l->h && !e)
		done = take_page(l, &e) || !r->more;
	if (!done && !e) {
		uar_store_read_fini(r);
		e = read_page(l);
		done = e;
	}
	if (e || !l->h)
		finish(l, e, &r->error);
	else if (done)
		fetch_next(l);
}

uar_err rt_history_load(struct live_run *r, struct history *h, history_ready_fn *ready, void *ctx,
			struct history_load **out)
{
	struct history_load *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (l && !h->messages)
		h->messages = uar_zalloc(HISTORY_MESSAGES * sizeof *h->messages);
	if (!l || !h->messages) {
		uar_free(l);
		return UAR_ENOMEM;
	}
	l->agg = r->agg;
	l->run = r;
	l->h = h;
	l->ready = ready;
	l->ctx = ctx;
	l->answer = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT);
	e = read_page(l);
	if (e) {
		uar_free(l);
		return e;
	}
	rt_agg_hold(r->agg);
	rt_op_begin(r->agg->rt, &l->under_way, drop);
	*out = l;
	return UAR_OK;
}

void rt_history_cancel(struct history_load *l)
{
	if (!l)
		return;
	l->h = NULL;
	l->run = NULL;
}

void rt_history_fini(struct history *h)
{
	for (size_t i = 0; i < h->count; i++)
		uar_buf_fini(&h->messages[i].text);
	uar_free(h->messages);
	*h = (struct history){ 0 };
}
