/* stream.c - the hand-over from store to bus, in one place.
 *
 * The stream listens to its topic from the beginning but delivers from the
 * store until the store has nothing beyond what it delivered. Publishing and
 * this check happen on one thread, so between "nothing beyond" and "live" no
 * event can slip through, and the cursor drops what comes twice. */
#include "read/stream.h"

#include "event/limits.h"
#include "read/limits.h"
#include "read/read_int.h"

enum state {
	READING, /* a page is on its way */
	LIVE,	 /* fed by the bus */
	BLOCKED, /* the sink is full */
};

/* Owns the strings it is read with: the stream may be closed meanwhile. */
struct page {
	struct rt_op under_way;
	struct uar_read read;
	struct uar_stream *s; /* NULL: it was */
	char text[];
};

/* What a delivery touches stands together: with ten thousand readers each line
 * of it comes from far away. */
struct uar_stream {
	struct uar_sub sub;
	enum state state;
	bool of_run, checked, opened; /* checked: the cursor was found in the log */
	bool may_be_new, stored;
	uint64_t cursor;
	struct uar_stream_sink sink;
	struct uar_reader *rd;
	struct page *page;	   /* on its way; an idle stream has none and stays small */
	struct uar_task next_turn; /* events from memory, or the end */
	uar_err failed;		   /* why it ends then */
	struct uar_owner owner;
	uar_str id;
	size_t text_bytes;
	char text[]; /* id, tenant, workspace, user */
};

static uint64_t number(const struct uar_stream *s, const struct uar_event *ev)
{
	return s->of_run ? ev->run_sequence : ev->sequence;
}

static void free_stream(struct uar_stream *s)
{
	if (s->page)
		s->page->s = NULL;
	uar_unpost(rt_sched(s->rd->rt), &s->next_turn);
	uar_bus_unsubscribe(rt_bus(s->rd->rt), &s->sub);
	uar_free(s);
}

static void end(struct uar_stream *s, uar_err why, const struct uar_error *error)
{
	struct uar_stream_sink sink = s->sink;

	free_stream(s);
	sink.end(sink.ctx, why, error);
}

/* How many events go out: all, or up to and with the run's last. */
static size_t deliverable(const struct uar_stream *s, const struct uar_event *ev, size_t n,
			  bool *out_last)
{
	*out_last = false;
	for (size_t i = 0; i < n && s->of_run; i++)
		if (uar_event_ends_run(&ev[i])) {
			*out_last = true;
			return i + 1;
		}
	return n;
}

/* False: the stream is blocked or gone. */
static bool deliver(struct uar_stream *s, const struct uar_event *ev, size_t n)
{
	bool last;
	uar_err e;

	n = deliverable(s, ev, n, &last);
	e = n ? s->sink.events(s->sink.ctx, ev, n) : UAR_OK;
	if (e == UAR_EBUSY) {
		s->state = BLOCKED;
		return false;
	}
	if (!e && n)
		s->cursor = number(s, &ev[n - 1]);
	if (e || last) {
		end(s, e, NULL);
		return false;
	}
	return true;
}

static char *append(char *at, uar_str from, uar_str *out)
{
	if (from.n)
		memcpy(at, from.p, from.n);
	*out = uar_str_n(at, from.n);
	return at + from.n;
}

static void copy_strings(char *at, uar_str id, const struct uar_owner *owner, uar_str *out_id,
			 struct uar_owner *out_owner)
{
	at = append(at, id, out_id);
	at = append(at, owner->tenant, &out_owner->tenant);
	at = append(at, owner->workspace, &out_owner->workspace);
	append(at, owner->user, &out_owner->user);
}

static void page_ready(struct uar_read *r);

static void drop_page(struct rt_op *op)
{
	struct page *p = UAR_OWNER(op, struct page, under_way);

	if (p->s)
		p->s->page = NULL;
	uar_free(p);
}

/* The first page begins at the cursor itself: if it is not there, nobody ever sent it. */
static uint64_t page_after(const struct uar_stream *s)
{
	return s->checked ? s->cursor : s->cursor - 1;
}

static uar_err read_store(struct uar_stream *s, uint64_t after)
{
	struct uar_store *store = rt_store(s->rd->rt);
	struct page *p = uar_zalloc(sizeof *p + s->text_bytes);
	uar_str id;
	uar_err e;

	if (!p)
		return UAR_ENOMEM;
	p->s = s;
	p->read = (struct uar_read){
		.after = after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	copy_strings(p->text, s->id, &s->owner, &id, &p->read.owner);
	*(s->of_run ? &p->read.run_id : &p->read.session_id) = id;
	s->page = p;
	e = store->ops->read(store, &p->read);
	if (e) {
		s->page = NULL;
		uar_free(p);
	} else {
		rt_op_begin(s->rd->rt, &p->under_way, drop_page);
	}
	return e;
}

static struct tail_place place_of(const struct uar_stream *s)
{
	return (struct tail_place){ &s->owner, s->id, page_after(s) };
}

static uar_err read_page(struct uar_stream *s)
{
	struct tail_place place = place_of(s);

	s->state = READING;
	if (s->page) /* on its way; whether it fits is seen when it comes */
		return UAR_OK;
	if (!s->of_run || !rt_tail_has(&s->rd->tails, &place))
		return read_store(s, page_after(s));
	uar_post(rt_sched(s->rd->rt), &s->next_turn);
	return UAR_OK;
}

/* The event at the cursor is dropped from a first page; a run that is over before
 * the cursor's event has nothing more to send. */
static uar_err check_cursor(struct uar_stream *s, const struct uar_event **ev, size_t *n)
{
	if (s->checked)
		return UAR_OK;
	if (*n == 0 || number(s, *ev) != s->cursor)
		return UAR_ECURSOR;
	s->checked = true;
	if (s->of_run && uar_event_ends_run(*ev)) {
		*n = 0;
		return UAR_ESKIP;
	}
	(*ev)++;
	(*n)--;
	return UAR_OK;
}

static uar_err open_sink(struct uar_stream *s)
{
	if (s->opened)
		return UAR_OK;
	s->opened = true;
	return s->sink.opened(s->sink.ctx);
}

/* Nothing more is wanted; or a run that is not in memory has ended, and events behind its end bring
 * nothing more; or it can neither go on nor be ended. */
static bool is_over(const struct uar_stream *s)
{
	return s->stored || (s->of_run && rt_run_has_ended(s->rd->rt, &s->owner, s->id));
}

static void next_page(struct uar_stream *s)
{
	uar_err e = read_page(s);

	if (e)
		end(s, e, NULL);
}

static void take_page(struct uar_stream *s, const struct uar_event *ev, size_t n, bool more)
{
	uar_err e = check_cursor(s, &ev, &n);

	if (!e && !n && more) { /* whether what follows can be read is not known yet */
		next_page(s);
		return;
	}
	if (!e || e == UAR_ESKIP) {
		uar_err refused = open_sink(s);

		e = refused ? refused : e;
	}
	if (e) {
		end(s, e == UAR_ESKIP ? UAR_OK : e, NULL);
		return;
	}
	if (!deliver(s, ev, n))
		return;
	if (!more && uar_sub_head(&s->sub) <= s->cursor) {
		s->state = LIVE;
		if (is_over(s))
			end(s, UAR_OK, NULL);
		return;
	}
	next_page(s);
}

/* What was in memory a moment ago may have been replaced by now. */
static void turn_came(struct uar_task *t)
{
	struct uar_stream *s = UAR_OWNER(t, struct uar_stream, next_turn);
	struct tail_place place = place_of(s);
	struct uar_event events[UAR_LIMIT_TAIL_EVENTS];
	uar_err e = s->failed;
	size_t n;

	if (!e && rt_tail_read(&s->rd->tails, &place, events, &n)) {
		take_page(s, events, n, false);
		return;
	}
	if (!e)
		e = read_store(s, page_after(s));
	if (e)
		end(s, e, NULL);
}

/* While this page is delivered the next one is read: a long replay keeps the
 * reader and the loop busy at once. A failure shows when the page is asked for. */
static void read_ahead(struct uar_stream *s, const struct uar_read *r)
{
	if (r->more && r->event_count)
		(void)read_store(s, number(s, &r->events[r->event_count - 1]));
}

static void store_page(struct uar_stream *s, struct uar_read *r)
{
	if (s->state != READING)
		return; /* the sink filled up meanwhile: this page is read again */
	if (r->after != page_after(s)) {
		next_page(s);
		return;
	}
	if (r->err && s->may_be_new && r->err == UAR_ENOTFOUND) {
		take_page(s, r->events, 0, false);
		return;
	}
	if (r->err) {
		end(s, r->err, &r->error);
		return;
	}
	read_ahead(s, r);
	take_page(s, r->events, r->event_count, r->more);
}

static void page_ready(struct uar_read *r)
{
	struct page *p = UAR_OWNER(r, struct page, read);
	struct uar_stream *s = p->s;

	if (s) {
		s->page = NULL;
		store_page(s, r);
	}
	uar_store_read_fini(r);
	rt_op_end(&p->under_way);
	uar_free(p);
}

static void published(void *ctx, const struct uar_event *ev, size_t n)
{
	struct uar_stream *s = ctx;

	if (s->state != LIVE)
		return; /* the topic's head tells the reader of pages */
	while (n && number(s, ev) <= s->cursor) {
		ev++;
		n--;
	}
	if (n)
		deliver(s, ev, n);
}

uar_err uar_stream_open(struct uar_reader *rd, const struct uar_stream_options *o,
			struct uar_stream **out)
{
	size_t text = o->run_id.n + o->session_id.n + o->owner.tenant.n + o->owner.workspace.n +
		      o->owner.user.n;
	struct uar_stream *s = uar_zalloc(sizeof *s + text);
	struct rt_key k;
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	s->rd = rd;
	s->sink = o->sink;
	s->of_run = o->run_id.n > 0;
	s->cursor = o->after;
	s->checked = o->after == 0;
	s->may_be_new = o->may_be_new;
	s->stored = o->stored;
	s->next_turn.fn = turn_came;
	s->sub.fn = published;
	s->sub.ctx = s;
	s->text_bytes = text;
	copy_strings(s->text, s->of_run ? o->run_id : o->session_id, &o->owner, &s->id, &s->owner);
	e = uar_bus_subscribe(rt_bus(rd->rt), rt_key(&k, &s->owner, s->id), &s->sub);
	if (!e)
		e = read_page(s);
	if (e) {
		free_stream(s);
		return e;
	}
	*out = s;
	return UAR_OK;
}

void uar_stream_resume(struct uar_stream *s)
{
	if (s->state != BLOCKED)
		return;
	s->failed = read_page(s);
	if (s->failed)
		uar_post(rt_sched(s->rd->rt), &s->next_turn);
}

void uar_stream_close(struct uar_stream *s)
{
	if (s)
		free_stream(s);
}
