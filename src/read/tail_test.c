/* tail_test.c - events that are kept in memory come back as they were, within a bound. */
#include "read/limits.h"
#include "read/read_int.h"

#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct memory {
	struct tails tails;
	struct rt_key key;
	char id[32];
};

static void begin(struct memory *m)
{
	memset(m, 0, sizeof *m);
	rt_tails_init(&m->tails, 1);
}

static struct tail_place place(struct memory *m, int run, uint64_t after)
{
	snprintf(m->id, sizeof m->id, "run-%d", run);
	return (struct tail_place){ &owner, uar_str_c(m->id), after };
}

static struct uar_event event(const struct memory *m, uint64_t number, uar_str payload)
{
	struct uar_event ev = { .cls = UAR_EV_MODEL_DELTA,
				.event_id = UAR_STR("e"),
				.sequence = number + 10,
				.run_sequence = number,
				.time_us = 5,
				.payload = payload };

	ev.ids[UAR_ID_RUN] = uar_str_c(m->id);
	ev.ids[UAR_ID_TENANT] = owner.tenant;
	return ev;
}

static void commit(struct memory *m, int run, const struct uar_event *ev)
{
	struct tail_place p = place(m, run, 0);
	struct rt_commit c = { rt_key(&m->key, &owner, p.run_id), ev, 1, NULL };

	rt_tail_commit(&m->tails, &c);
}

static bool has(struct memory *m, int run, uint64_t after)
{
	struct tail_place p = place(m, run, after);

	return rt_tail_has(&m->tails, &p);
}

static bool equal(const struct uar_event *a, const struct uar_event *b)
{
	bool same = a->cls == b->cls && a->time_us == b->time_us && a->sequence == b->sequence &&
		    a->run_sequence == b->run_sequence &&
		    uar_str_eq(uar_event_type(a), uar_event_type(b)) &&
		    uar_str_eq(a->event_id, b->event_id) && uar_str_eq(a->payload, b->payload) &&
		    uar_str_eq(a->refs, b->refs);

	for (int i = 0; i < UAR_ID_COUNT; i++)
		same = same && uar_str_eq(a->ids[i], b->ids[i]);
	return same;
}

TEST(events_come_back_as_they_were, "")
{
	static struct uar_event got[UAR_LIMIT_TAIL_EVENTS];
	char type[] = "vendor.acme.thing", refs[] = "{\"a_ref\":\"blob://x\"}";
	struct uar_event ev[3], want[3];
	struct memory m;
	struct tail_place p;
	size_t n = 0;

	begin(&m);
	p = place(&m, 1, 0);
	for (size_t i = 0; i < ARRAY_LEN(ev); i++)
		want[i] = ev[i] = event(&m, i + 1, UAR_STR("{\"a\":1}"));
	want[1].ids[UAR_ID_STEP] = want[2].ids[UAR_ID_STEP] = UAR_STR("step");
	want[2].ids[UAR_ID_TENANT] = UAR_STR("other");
	ev[1].ids[UAR_ID_STEP] = ev[2].ids[UAR_ID_STEP] = UAR_STR("step");
	ev[2].ids[UAR_ID_TENANT] = UAR_STR("other");
	want[2].cls = ev[2].cls = UAR_EV_VENDOR;
	want[2].type = UAR_STR("vendor.acme.thing");
	want[2].refs = UAR_STR("{\"a_ref\":\"blob://x\"}");
	ev[2].type = uar_str_c(type);
	ev[2].refs = uar_str_c(refs);
	for (size_t i = 0; i < ARRAY_LEN(ev); i++)
		commit(&m, 1, &ev[i]);
	memset(type, 'x', sizeof type - 1); /* whoever gave it may change his mind */
	memset(refs, 'x', sizeof refs - 1);
	CHECK(rt_tail_read(&m.tails, &p, got, &n));
	CHECK_INT((int64_t)n, 3);
	for (size_t i = 0; i < n; i++)
		CHECK_MSG(equal(&got[i], &want[i]), "event %zu", i);
	p.after = 2;
	CHECK(rt_tail_read(&m.tails, &p, got, &n) && n == 1 && equal(&got[0], &want[2]));
	p.after = 7; /* nothing yet, but nothing missing */
	CHECK(rt_tail_read(&m.tails, &p, got, &n) && n == 0);
	rt_tails_fini(&m.tails);
}

TEST(a_run_that_is_not_known_from_its_start_is_not_kept, "")
{
	struct memory m;
	struct uar_event late;

	begin(&m);
	late = event(&m, 2, UAR_STR("{}"));
	commit(&m, 1, &late);
	CHECK(!has(&m, 1, 1));
	rt_tails_fini(&m.tails);
}

TEST(a_run_that_says_more_than_its_share_is_forgotten, "")
{
	struct memory m;

	begin(&m);
	for (uint64_t i = 1; i <= UAR_LIMIT_TAIL_EVENTS + 1; i++) {
		struct uar_event ev = event(&m, i, UAR_STR("{}"));

		commit(&m, 1, &ev);
		CHECK(has(&m, 1, 0) == (i <= UAR_LIMIT_TAIL_EVENTS));
	}
	CHECK_INT((int64_t)m.tails.bytes, 0);
	rt_tails_fini(&m.tails);
}

TEST(all_together_stay_within_their_bytes, "")
{
	enum { RUNS = 2 * UAR_LIMIT_TAIL_RUNS };
	static char payload[UAR_LIMIT_TAIL_BYTES / 2];
	struct memory m;
	int first = 0;

	begin(&m);
	memset(payload, ' ', sizeof payload);
	for (int i = 0; i < RUNS; i++) {
		struct uar_event ev = event(&m, 1, uar_str_n(payload, sizeof payload));

		commit(&m, i, &ev);
		REQUIRE(m.tails.bytes <= UAR_LIMIT_TAILS_BYTES);
		REQUIRE(m.tails.count <= UAR_LIMIT_TAIL_RUNS);
		CHECK(has(&m, i, 0));
	}
	while (first < RUNS && !has(&m, first, 0))
		first++;
	for (int i = first; i < RUNS; i++)
		CHECK_MSG(has(&m, i, 0), "the newest stay, %d is gone", i);
	CHECK(first > 0);
	rt_tails_fini(&m.tails);
	CHECK_INT((int64_t)m.tails.bytes, 0);
}
