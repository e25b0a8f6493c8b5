/* bus_test.c - readers that come and go while events are handed out. */
#include "bus/bus.h"

#include "base/alloc.h"
#include "test.h"

enum { TRACE = 64, CROWD = 10000 };

struct reader;
typedef void act_fn(struct reader *r);

struct reader {
	struct uar_sub sub;
	struct uar_bus *bus;
	char name;
	act_fn *act; /* what it does when it is told; once */
	struct reader *other;
	size_t calls, events;
};

static char trace[TRACE]; /* who was told, in order */

static void told(void *ctx, const struct uar_event *ev, size_t n)
{
	struct reader *r = ctx;
	size_t at = strlen(trace);
	act_fn *act = r->act;

	(void)ev;
	if (at + 1 < TRACE)
		trace[at] = r->name;
	r->calls++;
	r->events += n;
	r->act = NULL;
	if (act)
		act(r);
}

static uar_err join(struct uar_bus *b, struct reader *r, char name, const char *topic)
{
	r->bus = b;
	r->name = name;
	r->sub.fn = told;
	r->sub.ctx = r;
	return uar_bus_subscribe(b, uar_str_c(topic), &r->sub);
}

static void publish(struct uar_bus *b, const char *topic, size_t n, uint64_t head)
{
	struct uar_event ev[4] = { 0 };

	memset(trace, 0, sizeof trace);
	uar_bus_publish(b, uar_str_c(topic), ev, n, head);
}

struct room {
	struct uar_bus *bus;
	struct reader r[4]; /* a, b, c on topic "t"; d joins late */
};

static void open_room(struct room *x)
{
	*x = (struct room){ 0 };
	CHECK_INT(uar_bus_create(1, &x->bus), UAR_OK);
	for (int i = 0; i < 3; i++)
		CHECK_INT(join(x->bus, &x->r[i], (char)('a' + i), "t"), UAR_OK);
}

static void close_room(struct room *x)
{
	struct uar_bus_stats stats;

	for (int i = 0; i < 4; i++)
		uar_bus_unsubscribe(x->bus, &x->r[i].sub);
	uar_bus_stats(x->bus, &stats);
	CHECK(stats.topics == 0 && stats.subscribers == 0);
	uar_bus_destroy(x->bus);
}

TEST(readers_are_told_in_order_of_joining_and_only_of_their_topic, "")
{
	struct room x;

	open_room(&x);
	CHECK_INT(join(x.bus, &x.r[3], 'd', "other"), UAR_OK);
	publish(x.bus, "t", 2, 5);
	CHECK_STR(uar_str_c(trace), "abc");
	CHECK_INT(x.r[0].events, 2);
	CHECK_INT(x.r[3].calls, 0);
	publish(x.bus, "other", 1, 1);
	CHECK_STR(uar_str_c(trace), "d");
	publish(x.bus, "nobody", 1, 1);
	publish(x.bus, "t", 0, 9);
	CHECK_STR(uar_str_c(trace), "");
	CHECK_INT(uar_sub_head(&x.r[0].sub), 5);
	CHECK_INT(uar_sub_head(&x.r[3].sub), 1);
	close_room(&x);
}

static void leave(struct reader *r)
{
	uar_bus_unsubscribe(r->bus, &r->sub);
}

static void throw_out(struct reader *r)
{
	uar_bus_unsubscribe(r->bus, &r->other->sub);
}

static void leave_both(struct reader *r)
{
	throw_out(r);
	leave(r);
}

static void bring(struct reader *r)
{
	CHECK_INT(join(r->bus, r->other, 'd', "t"), UAR_OK);
}

static void come_back(struct reader *r)
{
	leave(r);
	CHECK_INT(join(r->bus, r, r->name, "t"), UAR_OK);
}

/* Who does what to whom, who hears of this publish, who of the next. */
static const struct {
	int who, whom;
	act_fn *act;
	const char *now, *next;
} scenes[] = {
	{ 0, 0, leave, "abc", "bc" },	   { 1, 0, leave, "abc", "ac" },
	{ 2, 0, leave, "abc", "ab" },	   { 0, 1, throw_out, "ac", "ac" },
	{ 0, 2, throw_out, "ab", "ab" },   { 1, 0, throw_out, "abc", "bc" },
	{ 1, 2, throw_out, "ab", "ab" },   { 2, 0, throw_out, "abc", "bc" },
	{ 0, 1, leave_both, "ac", "c" },   { 1, 2, leave_both, "ab", "a" },
	{ 2, 1, leave_both, "abc", "a" },  { 0, 3, bring, "abc", "abcd" },
	{ 2, 3, bring, "abc", "abcd" },	   { 0, 0, come_back, "abc", "bca" },
	{ 2, 0, come_back, "abc", "abc" },
};

TEST(readers_leave_and_join_while_events_are_handed_out, "")
{
	for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
		struct room x;

		open_room(&x);
		x.r[scenes[i].who].act = scenes[i].act;
		x.r[scenes[i].who].other = &x.r[scenes[i].whom];
		publish(x.bus, "t", 1, 1);
		CHECK_STR(uar_str_c(trace), scenes[i].now);
		publish(x.bus, "t", 1, 2);
		CHECK_STR(uar_str_c(trace), scenes[i].next);
		close_room(&x);
	}
}

TEST(a_topic_whose_readers_all_leave_is_gone, "")
{
	struct uar_bus_stats stats;
	struct room x;

	open_room(&x);
	for (int i = 0; i < 3; i++)
		x.r[i].act = leave;
	publish(x.bus, "t", 1, 7);
	CHECK_STR(uar_str_c(trace), "abc");
	uar_bus_stats(x.bus, &stats);
	CHECK(stats.topics == 0 && stats.subscribers == 0);
	CHECK_INT(uar_sub_head(&x.r[0].sub), 0);
	CHECK_INT(join(x.bus, &x.r[0], 'a', "t"), UAR_OK);
	CHECK_INT(uar_sub_head(&x.r[0].sub), 0); /* a new topic has heard of nothing */
	close_room(&x);
}

TEST(the_last_one_may_leave_and_join_again, "")
{
	struct room x;

	open_room(&x);
	uar_bus_unsubscribe(x.bus, &x.r[0].sub);
	uar_bus_unsubscribe(x.bus, &x.r[0].sub); /* twice is harmless */
	uar_bus_unsubscribe(x.bus, &x.r[1].sub);
	x.r[2].act = come_back;
	publish(x.bus, "t", 1, 3);
	CHECK_STR(uar_str_c(trace), "c");
	CHECK_INT(uar_sub_head(&x.r[2].sub), 3);
	close_room(&x);
}

TEST(a_bus_that_goes_away_ends_its_subscriptions, "")
{
	struct room x;

	open_room(&x);
	CHECK_INT(join(x.bus, &x.r[3], 'd', "other"), UAR_OK);
	uar_bus_destroy(x.bus);
	for (int i = 0; i < 4; i++)
		CHECK(x.r[i].sub.topic == NULL && uar_sub_head(&x.r[i].sub) == 0);
	uar_bus_destroy(NULL);
}

TEST(ten_thousand_readers_of_a_thousand_topics, "")
{
	struct reader *crowd = uar_zalloc(CROWD * sizeof *crowd);
	struct uar_bus_stats stats;
	struct uar_bus *bus;
	char topic[32];
	size_t heard = 0;

	CHECK_INT(uar_bus_create(9, &bus), UAR_OK);
	for (size_t i = 0; i < CROWD; i++) {
		snprintf(topic, sizeof topic, "topic-%zu", i % 1000);
		CHECK_INT(join(bus, &crowd[i], '.', topic), UAR_OK);
	}
	uar_bus_stats(bus, &stats);
	CHECK(stats.topics == 1000 && stats.subscribers == CROWD);
	for (size_t i = 0; i < 1000; i++) {
		crowd[i].act = leave;
		snprintf(topic, sizeof topic, "topic-%zu", i);
		publish(bus, topic, 1, 1);
		publish(bus, topic, 1, 2);
	}
	for (size_t i = 0; i < CROWD; i++)
		heard += crowd[i].calls;
	CHECK_INT(heard, 2 * CROWD - 1000);
	for (size_t i = CROWD; i-- > 0;)
		uar_bus_unsubscribe(bus, &crowd[i].sub);
	uar_bus_stats(bus, &stats);
	CHECK(stats.topics == 0 && stats.subscribers == 0);
	uar_bus_destroy(bus);
	uar_free(crowd);
}

TEST(one_topic_with_ten_thousand_readers, "")
{
	struct reader *crowd = uar_zalloc(CROWD * sizeof *crowd);
	struct uar_bus *bus;
	size_t heard = 0;

	CHECK_INT(uar_bus_create(9, &bus), UAR_OK);
	for (size_t i = 0; i < CROWD; i++) {
		CHECK_INT(join(bus, &crowd[i], '.', "t"), UAR_OK);
		crowd[i].act = i % 3 == 0 ? leave : i % 3 == 1 ? throw_out : NULL;
		crowd[i].other = &crowd[i + 1 < CROWD ? i + 1 : i];
	}
	publish(bus, "t", 1, 1);
	for (size_t i = 0; i < CROWD; i++)
		heard += crowd[i].calls;
	CHECK_INT(heard, CROWD - CROWD / 3); /* each third one was thrown out by its neighbour */
	uar_bus_destroy(bus);
	uar_free(crowd);
}

TEST(a_failed_allocation_joins_nobody, "")
{
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct uar_bus_stats stats;
		struct uar_bus *bus = NULL;
		struct reader r = { 0 };
		uar_err e;

		uar_test_fail_alloc(n);
		e = uar_bus_create(1, &bus);
		if (!e)
			e = join(bus, &r, 'a', "t");
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(e, failed ? UAR_ENOMEM : UAR_OK);
		if (bus && failed) {
			uar_bus_stats(bus, &stats);
			CHECK(stats.topics == 0 && !r.sub.topic);
			CHECK_INT(join(bus, &r, 'a', "t"), UAR_OK);
		}
		uar_bus_destroy(bus);
	}
}
