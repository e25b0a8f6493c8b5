/* stream_test.c - the hand-over from store to bus in every order of things.
 *
 * The store here answers when the test says so: a read is carried out at one
 * moment and delivered at a later one, and commits happen in between. */
#include "read/stream.h"

#include "stage.h"
#include "test.h"

enum { EVENTS = 6, STEPS = 8 };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct world {
	struct uar_pump pump;
	struct uar_store store;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	struct uar_event log[EVENTS];
	size_t committed, published;
	struct uar_read *asked, *read; /* not yet carried out; not yet delivered */
	uar_err fail;		       /* of the next read */
	uint32_t page;		       /* events a page holds */
	/* the sink */
	struct uar_stream *stream;
	uint64_t last;			      /* number of the last event taken */
	unsigned opened, ended, calls, block; /* block: bit n refuses call n */
	uar_err why, open_error, events_error;
	bool session, blocked, broken;
};

static struct world *world_of(struct uar_store *s)
{
	return UAR_OWNER(s, struct world, store);
}

static uar_err ask(struct uar_store *s, struct uar_read *r)
{
	struct world *w = world_of(s);

	CHECK(!w->asked && !w->read); /* one page at a time */
	w->asked = r;
	return UAR_OK;
}

static const struct uar_store_ops ops = { .abi = 1, .size = sizeof ops, .read = ask };

/* --- the sink ----------------------------------------------------------------------- */

static uar_err on_opened(void *ctx)
{
	struct world *w = ctx;

	w->broken |= w->opened++ || w->calls || w->ended;
	return w->open_error;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct world *w = ctx;

	w->broken |= !w->opened || w->ended || n == 0;
	if (w->block & (1u << (w->calls++ % 32))) {
		w->blocked = true;
		return UAR_EBUSY;
	}
	if (w->events_error)
		return w->events_error;
	for (size_t i = 0; i < n; i++)
		w->broken |= (w->session ? ev[i].sequence : ev[i].run_sequence) != ++w->last;
	return UAR_OK;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct world *w = ctx;

	(void)error;
	w->broken |= w->ended++;
	w->why = why;
	w->stream = NULL;
}

/* --- what happens ------------------------------------------------------------------- */

/* A reader of the store may see them before they are published. */
static void commit(struct world *w, size_t n)
{
	w->committed += n > EVENTS - w->committed ? EVENTS - w->committed : n;
}

static void publish(struct world *w, size_t n)
{
	size_t from = w->published;
	struct rt_key k;

	commit(w, n);
	w->published = w->committed;
	if (w->published > from)
		uar_bus_publish(rt_bus(w->rt), rt_key(&k, &owner, UAR_STR("id")), w->log + from,
				w->published - from, w->published);
}

static void carry_out(struct world *w)
{
	struct uar_read *r = w->asked;
	size_t n;

	if (!r)
		return;
	w->asked = NULL;
	w->read = r;
	r->err = w->fail ? w->fail : w->committed ? UAR_OK : UAR_ENOTFOUND;
	n = r->after < w->committed && !r->err ? w->committed - r->after : 0;
	r->more = n > w->page;
	r->event_count = r->more ? w->page : n;
	r->events = w->log + (n ? r->after : 0);
}

static void deliver(struct world *w)
{
	struct uar_read *r = w->read;

	if (!r)
		return;
	w->read = NULL;
	r->done(r);
}

static void resume(struct world *w)
{
	if (!w->blocked || !w->stream)
		return;
	w->blocked = false;
	uar_stream_resume(w->stream);
}

static void step(struct world *w, unsigned what)
{
	switch (what) {
	case 0: publish(w, 1); break;
	case 1: carry_out(w); break;
	case 2: deliver(w); break;
	case 3: resume(w); break;
	case 4: publish(w, 3); break;
	case 5: commit(w, 1); break;
	}
}

static void open_world(struct world *w, bool session)
{
	struct uar_stage_options o = { .parts = &w->parts,
				       .sched = &w->pump.sched,
				       .store = &w->store,
				       .rand = &uar_rand_system };

	*w = (struct world){ .store = { .ops = &ops }, .page = 512, .session = session };
	uar_pump_init(&w->pump);
	for (size_t i = 0; i < EVENTS; i++) {
		w->log[i].cls = i + 1 < EVENTS ? UAR_EV_MODEL_DELTA : UAR_EV_TASK_ATTEMPT_COMPLETED;
		w->log[i].sequence = w->log[i].run_sequence = i + 1;
	}
	CHECK_INT(uar_stage_create(&o, &w->rt), UAR_OK);
}

static void attach(struct world *w, uint64_t after)
{
	struct uar_stream_options o = { .owner = owner,
					.after = after,
					.sink = { on_opened, on_events, on_end, w } };

	*(w->session ? &o.session_id : &o.run_id) = UAR_STR("id");
	w->last = after;
	CHECK_INT(uar_stream_open(w->parts.reader, &o, &w->stream), UAR_OK);
}

static void settle(struct world *w)
{
	for (int i = 0; i < 4 * EVENTS && (w->asked || w->read || w->blocked); i++) {
		carry_out(w);
		deliver(w);
		resume(w);
	}
}

static void close_world(struct world *w)
{
	uar_stream_close(w->stream);
	carry_out(w);
	deliver(w);
	uar_runtime_destroy(w->rt);
	uar_pump_fini(&w->pump);
}

/* --- tests ---------------------------------------------------------------------------- */

enum { STEP_KINDS = 5, STEP_KINDS_LATE = 6 }; /* the latter with commits that are published later */

/* The digits of `path` in base `kinds` are what happens. */
static bool walk(unsigned path, unsigned kinds, unsigned block, uint32_t page, bool session)
{
	struct world w;
	bool good;

	open_world(&w, session);
	w.block = block;
	w.page = page;
	publish(&w, 1); /* the run exists */
	attach(&w, 0);
	for (int i = 0; i < STEPS; i++, path /= kinds)
		step(&w, path % kinds);
	publish(&w, EVENTS);
	settle(&w);
	good = !w.broken && w.last == EVENTS && w.opened == 1;
	good = good && (session ? w.ended == 0 : w.ended == 1 && w.why == UAR_OK);
	close_world(&w);
	return good;
}

TEST(no_gap_and_no_duplicate_in_any_order_of_commits_and_pages, "SSE-05")
{
	unsigned paths = 1;

	for (int i = 0; i < STEPS - 1; i++)
		paths *= 5;
	for (unsigned path = 0; path < paths; path++)
		if (!CHECK_MSG(walk(path, STEP_KINDS, 0, 512, path % 2), "path %u", path))
			return;
}

TEST(no_gap_and_no_duplicate_when_events_are_read_before_they_are_published, "SSE-05")
{
	unsigned paths = 1;

	for (int i = 0; i < STEPS - 2; i++)
		paths *= STEP_KINDS_LATE;
	for (unsigned path = 0; path < paths; path++)
		if (!CHECK_MSG(walk(path, STEP_KINDS_LATE, 0, 1 + path % 3, path % 2), "path %u",
			       path))
			return;
}

TEST(no_gap_and_no_duplicate_when_the_sink_is_full_now_and_then, "SSE-05")
{
	static const unsigned blocks[] = { 1, 2, 3, 5, 0x15 };

	for (size_t b = 0; b < ARRAY_LEN(blocks); b++)
		for (unsigned path = 0; path < 15625; path++)
			if (!CHECK_MSG(walk(path, STEP_KINDS, blocks[b], 1 + path % 3, path % 2),
				       "path %u, block %x", path, blocks[b]))
				return;
}

TEST(a_stream_may_be_closed_at_any_moment, "")
{
	for (unsigned path = 0; path < 15625; path++) {
		unsigned rest = path, before;
		struct world w;

		open_world(&w, path % 2);
		w.block = 2;
		publish(&w, 1);
		attach(&w, 0);
		for (int i = 0; i < 6; i++, rest /= 5)
			step(&w, rest % 5);
		uar_stream_close(w.stream);
		before = w.calls + w.opened + w.ended;
		w.stream = NULL;
		w.blocked = false;
		publish(&w, EVENTS);
		settle(&w);
		CHECK_MSG(before == w.calls + w.opened + w.ended, "path %u", path);
		close_world(&w);
	}
}

TEST(every_cursor_goes_on_behind_itself, "SSE-05 SSE-07")
{
	for (int session = 0; session < 2; session++)
		for (uint64_t after = 0; after <= EVENTS; after++)
			for (size_t committed = after > 0 ? after : 1; committed <= EVENTS;
			     committed++) {
				struct world w;

				open_world(&w, session);
				publish(&w, committed);
				attach(&w, after);
				settle(&w);
				publish(&w, EVENTS);
				settle(&w);
				CHECK(!w.broken && w.opened == 1);
				CHECK_INT(w.last, EVENTS);
				CHECK_INT(w.ended, session ? 0 : 1);
				CHECK_INT(w.why, UAR_OK);
				close_world(&w);
			}
}

TEST(a_cursor_that_was_never_sent_is_an_error, "")
{
	static const uint64_t cursors[] = { 4, EVENTS + 1, 1u << 20, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_LEN(cursors); i++) {
		struct world w;

		open_world(&w, false);
		publish(&w, 3);
		attach(&w, cursors[i]);
		settle(&w);
		CHECK(w.ended == 1 && w.opened == 0 && w.calls == 0);
		CHECK_INT(w.why, UAR_ECURSOR);
		close_world(&w);
	}
}

TEST(what_goes_wrong_is_told_once_and_ends_the_stream, "")
{
	static const struct {
		uar_err read, open, events, want;
		unsigned opened;
	} rows[] = {
		{ UAR_ENOTFOUND, 0, 0, UAR_ENOTFOUND, 0 }, { UAR_EIO, 0, 0, UAR_EIO, 0 },
		{ 0, UAR_EMETHOD, 0, UAR_EMETHOD, 1 },	   { 0, 0, UAR_EEOF, UAR_EEOF, 1 },
		{ 0, 0, UAR_ENOMEM, UAR_ENOMEM, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;

		open_world(&w, i % 2);
		publish(&w, 2);
		w.fail = rows[i].read;
		w.open_error = rows[i].open;
		w.events_error = rows[i].events;
		attach(&w, 0);
		settle(&w);
		CHECK(w.ended == 1 && !w.broken);
		CHECK_INT(w.why, rows[i].want);
		CHECK_INT(w.opened, rows[i].opened);
		close_world(&w);
	}
}

TEST(a_live_sink_that_fails_is_let_go_during_dispatch, "")
{
	struct uar_bus_stats stats;
	struct world w;

	open_world(&w, false);
	publish(&w, 1);
	attach(&w, 0);
	settle(&w);
	w.events_error = UAR_EEOF;
	publish(&w, 1);
	CHECK(w.ended == 1 && w.why == UAR_EEOF);
	uar_bus_stats(rt_bus(w.rt), &stats);
	CHECK(stats.subscribers == 0 && stats.topics == 0);
	close_world(&w);
}

TEST(a_runtime_that_goes_away_leaves_no_page_behind, "")
{
	struct world w;

	open_world(&w, false);
	publish(&w, 1);
	attach(&w, 0);
	uar_stream_close(w.stream);
	w.stream = NULL;
	w.asked = NULL; /* the store is gone and will never answer */
	close_world(&w);
}

TEST(no_memory_opens_no_stream, "")
{
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct uar_stream_options o = { .owner = owner, .run_id = UAR_STR("id") };
		struct world w;
		uar_err e;

		open_world(&w, false);
		o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, &w };
		uar_test_fail_alloc(n);
		e = uar_stream_open(w.parts.reader, &o, &w.stream);
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(e, failed ? UAR_ENOMEM : UAR_OK);
		CHECK(!e || (!w.stream && !w.asked));
		close_world(&w);
	}
}
