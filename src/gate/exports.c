/* exports.c - the export items of a run, page by page, contents included.
 *
 * The run's own events are read and passed over but for its items; content that
 * is a blob is fetched before its item is written. */
#include "event/limits.h"
#include "gate/cursor.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/exports.h"

struct listing {
	struct call *c;
	struct uar_events_read read;
	struct uar_blob_read get;
	struct uar_arena scratch; /* of the event being written */
	struct uar_export_item item;
	struct uar_answer_text answer; /* of an agent */
	struct uar_buf out;
	struct uar_jw w;
	uar_str after_id; /* a cursor that names an item; empty: none, or found */
	uint64_t after;	  /* run_sequence of the last event seen */
	uint64_t cursor;  /* must be the first event that is read; 0: none */
	uint64_t last;	  /* run_sequence of the last item written */
	size_t at;	  /* in the page */
	uint64_t count, limit;
	int64_t began_us;
	bool reading;
};

static void free_listing(struct listing *l)
{
	if (l->reading)
		uar_events_read_fini(&l->read);
	uar_arena_fini(&l->scratch);
	uar_answer_text_fini(&l->answer);
	uar_buf_fini(&l->out);
}

static void fail(struct listing *l, uar_err e, const struct uar_error *error)
{
	struct uar_error why = error ? *error : (struct uar_error){ 0 };
	struct call *c = l->c;

	free_listing(l);
	gate_problem(c, e, &why);
}

static void finish(struct listing *l, bool more)
{
	struct uar_buf out;
	struct call *c = l->c;
	struct uar_buf cursor = uar_buf_make(64);

	uar_jw_close(&l->w);
	gate_cursor_put(&cursor, gate_incarnation(c->g), l->last);
	if (more)
		uar_jw_str(&l->w, "next_after", uar_buf_str(&cursor));
	else
		uar_jw_null(&l->w, "next_after");
	uar_jw_close(&l->w);
	l->out.err = cursor.err ? cursor.err : uar_jw_end(&l->w);
	uar_buf_fini(&cursor);
	gate_numbers_export(c->g->numbers, uar_clock_mono(c->g->o.sched->clock) - l->began_us);
	out = l->out;
	l->out = uar_buf_make(0);
	free_listing(l);
	gate_answer(c, 200, &out);
	uar_buf_fini(&out);
}

static void go_on(struct listing *l);

static void write_item(struct listing *l, uar_str bytes)
{
	uar_export_item_write(&l->w, NULL, &l->item, bytes);
	l->last = l->item.ev->run_sequence;
	l->count++;
	l->at++;
}

static void blob_ready(struct uar_blob_read *get)
{
	struct listing *l = UAR_OWNER(get, struct listing, get);
	struct uar_error error = get->error;
	uar_err e = get->err;

	if (!e)
		write_item(l, get->bytes);
	uar_blob_read_fini(get);
	if (e)
		fail(l, e, &error);
	else
		go_on(l);
}

static uar_err fetch(struct listing *l)
{

	l->get = (struct uar_blob_read){ .limit = UAR_LIMIT_EXPORT_BYTES * 2, .done = blob_ready };
	if (l->item.blob.n != sizeof l->get.sha256 - 1)
		return UAR_ECORRUPT;
	memcpy(l->get.sha256, l->item.blob.p, l->item.blob.n);
	return uar_reader_blob(l->c->g->o.reader, &l->get);
}

static void page_ready(struct uar_events_read *r);

static uar_err read_page(struct listing *l)
{
	uar_err e;

	l->read = (struct uar_events_read){
		.owner = l->c->owner,
		.run_id = l->c->params[0],
		.after = l->after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	l->at = 0;
	e = uar_reader_events(l->c->g->o.reader, &l->read);
	l->reading = !e;
	return e;
}

/* A cursor that no item has was never given to anybody. */
static bool behind_cursor(struct listing *l)
{
	if (l->cursor) {
		l->cursor = 0;
		return false;
	}
	if (!l->after_id.n)
		return true;
	if (uar_str_eq(l->item.id, l->after_id))
		l->after_id = UAR_STR_NONE;
	return false;
}

/* The next event of the page. UAR_EBUSY: a blob is on its way. */
static uar_err step(struct listing *l)
{
	const struct uar_event *ev = &l->read.events[l->at];
	uar_err e;

	uar_arena_reset(&l->scratch);
	l->after = ev->run_sequence;
	e = uar_answer_text_feed(&l->answer, ev, &l->scratch);
	if (!e)
		e = uar_export_item_read(ev, &l->scratch, &l->item);
	if (l->cursor && (e == UAR_ESKIP || ev->run_sequence != l->cursor))
		return UAR_ECURSOR;
	if (e && e != UAR_ESKIP)
		return e;
	if (e == UAR_ESKIP || !behind_cursor(l)) {
		l->at++;
		return UAR_OK;
	}
	if (l->item.blob.n && !l->item.upload) {
		e = fetch(l);
		return e ? e : UAR_EBUSY;
	}
	write_item(l, l->item.answer ? uar_buf_str(&l->answer.text) : UAR_STR(""));
	return UAR_OK;
}

static bool is_full(const struct listing *l)
{
	return l->count >= l->limit || l->out.n >= UAR_LIMIT_EXPORT_LIST_ENOUGH;
}

static bool page_left(const struct listing *l)
{
	return l->at < l->read.event_count;
}

/* UAR_EBUSY: another page or a blob is on its way. */
static uar_err walk(struct listing *l)
{
	uar_err e = UAR_OK;

	while (!e && page_left(l) && !is_full(l))
		e = step(l);
	if (e || page_left(l) || !l->read.more || is_full(l))
		return e;
	uar_events_read_fini(&l->read);
	l->reading = false;
	e = read_page(l);
	return e ? e : UAR_EBUSY;
}

static void go_on(struct listing *l)
{
	uar_err e = walk(l);

	if (!e && (l->cursor || l->after_id.n))
		e = UAR_ECURSOR;
	if (e && e != UAR_EBUSY)
		fail(l, e, NULL);
	else if (!e)
		finish(l, is_full(l) && (page_left(l) || l->read.more));
}

static void page_ready(struct uar_events_read *r)
{
	struct listing *l = UAR_OWNER(r, struct listing, read);

	if (r->err)
		fail(l, r->err, &r->error);
	else
		go_on(l);
}

/* next_after of a page, or the id of an item. */
static uar_err decode(struct call *c, struct listing *l, struct uar_error *error)
{
	uar_str after = UAR_STR_NONE;
	uar_err e = gate_query_u64(c, "limit", UAR_LIMIT_EXPORT_DEFAULT, &l->limit, error);

	if (!e)
		e = gate_query_str(c, "after", &after);
	if (e)
		return e;
	if (l->limit == 0 || l->limit > UAR_LIMIT_EXPORT_PAGE) {
		uar_error_where(error, "?limit");
		return uar_error_set(error, UAR_EINVALID, "limit must be 1 to %d",
				     UAR_LIMIT_EXPORT_PAGE);
	}
	if (!after.n)
		return UAR_OK;
	e = gate_cursor_parse(after, gate_incarnation(c->g), &l->cursor);
	if (e == UAR_ERESYNC)
		return e;
	if (!e && l->cursor) {
		l->after = l->cursor - 1;
		return UAR_OK;
	}
	l->cursor = 0;
	if (!uar_str_is_id(after))
		return UAR_ECURSOR;
	l->after_id = uar_arena_str(&c->arena, after);
	return l->after_id.p ? UAR_OK : UAR_ENOMEM;
}

static void drop(struct call *c)
{
	free_listing(c->op);
}

void gate_list_exports(struct call *c)
{
	struct listing *l = uar_arena_alloc(&c->arena, sizeof *l);
	struct uar_error error = { 0 };
	uar_err e = l ? decode(c, l, &error) : UAR_ENOMEM;

	if (!e) {
		l->c = c;
		l->began_us = uar_clock_mono(c->g->o.sched->clock);
		uar_arena_init(&l->scratch, 0);
		uar_answer_text_init(&l->answer);
		l->out = uar_buf_make(UAR_LIMIT_EXPORT_LIST_BYTES);
		l->w = uar_jw_begin(&l->out);
		uar_jw_obj(&l->w, NULL);
		uar_jw_arr(&l->w, "items");
		c->op = l;
		c->drop = drop;
		e = read_page(l);
		if (e)
			free_listing(l);
	}
	if (e)
		gate_problem(c, e, &error);
}
