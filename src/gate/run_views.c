/* run_views.c - what a page shows of one run besides its streams: pages of its events, its
 * timeline, its state at an event.
 *
 * Events have numbers without a gap, so a page begins anywhere. A request that looks for
 * some of them reads a bounded number and says how far it came. */
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/state.h"
#include "proto/timeline.h"

/* --- timeline and state --------------------------------------------------------------- */

void gate_run_timeline(struct call *c)
{
	const struct gate_view view = { .dialect = &uar_timeline, .stored = true };

	gate_answer_view(c, c->params[0], &view, 0);
}

void gate_run_state(struct call *c)
{
	const struct gate_view view = { .dialect = &uar_state, .stored = true };
	struct uar_error error = { 0 };
	uint64_t at = 0;
	uar_err e = gate_query_u64(c, "at", UINT64_MAX, &at, &error);

	if (!e && !at) {
		uar_error_where(&error, "?at");
		e = uar_error_set(&error, UAR_EINVALID,
				  "at is the number of an event of the run, from 1");
	}
	if (e)
		gate_problem(c, e, &error);
	else
		gate_answer_view(c, c->params[0], &view, at);
}

/* --- events --------------------------------------------------------------------------- */

struct page {
	struct call *c;
	struct uar_events_read read;
	uint64_t after, limit, count, scanned;
	uar_str q;
	bool wants[UAR_EV_COUNT]; /* with some */
	bool some, reading;
	struct uar_buf out;
	struct uar_jw w;
};

static void free_page(struct page *p)
{
	if (p->reading)
		uar_events_read_fini(&p->read);
	uar_buf_fini(&p->out);
}

static void drop_page(struct call *c)
{
	free_page(c->op);
}

static void fail(struct page *p, uar_err e, const struct uar_error *error)
{
	struct uar_error copy = error ? *error : (struct uar_error){ 0 };
	struct call *c = p->c;

	free_page(p);
	gate_problem(c, e, &copy);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Of ASCII letters the case does not count. */
static bool holds(uar_str text, uar_str word)
{
	for (size_t i = 0; i + word.n <= text.n; i++) {
		size_t k = 0;

		while (k < word.n && lower(text.p[i + k]) == lower(word.p[k]))
			k++;
		if (k == word.n)
			return true;
	}
	return false;
}

static bool is_wanted(const struct page *p, const struct uar_event *ev)
{
	if (p->some && !p->wants[ev->cls])
		return false;
	return !p->q.n || holds(uar_event_type(ev), p->q) || holds(ev->payload, p->q) ||
	       holds(ev->ids[UAR_ID_TOOL_CALL], p->q) || holds(ev->ids[UAR_ID_ACTION], p->q);
}

static bool is_full(const struct page *p)
{
	return p->count >= p->limit || p->out.n >= UAR_LIMIT_EVENTS_ENOUGH ||
	       p->scanned >= UAR_LIMIT_EVENTS_SCANNED;
}

/* next_after is null when the events that are stored end here. */
static void finish(struct page *p, bool more)
{
	struct call *c = p->c;
	struct uar_buf out;

	uar_jw_close(&p->w);
	uar_jw_u64(&p->w, "through", p->after);
	if (more)
		uar_jw_u64(&p->w, "next_after", p->after);
	else
		uar_jw_null(&p->w, "next_after");
	uar_jw_close(&p->w);
	p->out.err = uar_jw_end(&p->w);
	out = p->out;
	p->out = uar_buf_make(0);
	free_page(p);
	gate_answer(c, 200, &out);
	uar_buf_fini(&out);
}

static uar_err read_page(struct page *p);

static void page_ready(struct uar_events_read *r)
{
	struct page *p = UAR_OWNER(r, struct page, read);
	size_t i = 0;
	bool more;
	uar_err e = r->err;

	if (e) {
		fail(p, e, &r->error);
		return;
	}
	for (; i < r->event_count && !is_full(p); i++) {
		p->after = r->events[i].run_sequence;
		p->scanned++;
		if (!is_wanted(p, &r->events[i]))
			continue;
		uar_event_write(&p->w, NULL, &r->events[i], 0);
		p->count++;
	}
	more = i < r->event_count || r->more;
	if (!more || is_full(p)) {
		finish(p, more);
		return;
	}
	uar_events_read_fini(r);
	e = read_page(p);
	if (e)
		fail(p, e, NULL);
}

static uar_err read_page(struct page *p)
{
	uint64_t most = p->some || p->q.n ? UAR_LIMIT_READ_PAGE : p->limit - p->count;
	uar_err e;

	p->read = (struct uar_events_read){
		.owner = p->c->owner,
		.run_id = p->c->params[0],
		.after = p->after,
		.limit = most < UAR_LIMIT_READ_PAGE ? (uint32_t)most : UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	e = uar_reader_events(p->c->g->o.reader, &p->read);
	p->reading = !e;
	return e;
}

static uar_err read_types(struct page *p, uar_str words, struct uar_error *error)
{
	size_t count = 0;

	while (words.n) {
		uar_str word = uar_str_cut(words, ',', &words);
		enum uar_event_class cls =
			uar_str_is(word, "vendor") ? UAR_EV_VENDOR : uar_event_class_of(word);

		if (cls == UAR_EV_COUNT || count++ >= UAR_LIMIT_EVENTS_TYPES) {
			uar_error_where(error, "?types");
			return uar_error_set(error, UAR_EINVALID,
					     "types takes names of event classes, at most %d, "
					     "with a comma",
					     UAR_LIMIT_EVENTS_TYPES);
		}
		p->wants[cls] = true;
		p->some = true;
	}
	return UAR_OK;
}

static uar_err decode(struct call *c, struct page *p, struct uar_error *error)
{
	uar_str types = UAR_STR_NONE;
	uar_err e = gate_query_u64(c, "limit", UAR_LIMIT_LIST_DEFAULT, &p->limit, error);

	if (!e && (!p->limit || p->limit > UAR_LIMIT_EVENTS_PAGE)) {
		uar_error_where(error, "?limit");
		e = uar_error_set(error, UAR_EINVALID, "limit must be 1 to %d",
				  UAR_LIMIT_EVENTS_PAGE);
	}
	if (!e)
		e = gate_query_u64(c, "after", 0, &p->after, error);
	if (!e)
		e = gate_query_str(c, "types", &types);
	if (!e)
		e = read_types(p, types, error);
	if (!e)
		e = gate_query_str(c, "q", &p->q);
	if (!e && p->q.n) {
		p->q = uar_arena_str(&c->arena, p->q);
		e = p->q.p ? UAR_OK : UAR_ENOMEM;
	}
	return e;
}

void gate_run_events(struct call *c)
{
	struct page *p = uar_arena_alloc(&c->arena, sizeof *p);
	struct uar_error error = { 0 };
	uar_err e = p ? decode(c, p, &error) : UAR_ENOMEM;

	if (!e) {
		p->c = c;
		p->out = uar_buf_make(UAR_LIMIT_EVENTS_BYTES);
		p->w = uar_jw_begin(&p->out);
		uar_jw_obj(&p->w, NULL);
		uar_jw_arr(&p->w, "events");
		c->op = p;
		c->drop = drop_page;
		e = read_page(p);
		if (e)
			free_page(p);
	}
	if (e)
		gate_problem(c, e, &error);
}
