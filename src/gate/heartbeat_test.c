/* heartbeat_test.c - how often a stream is pinged, by a clock that the test moves. */
#include "gate/gate_int.h"

#include "pump.h"
#include "test.h"

enum { SECOND_US = 1000000, RING = 97, BEATS = 10 };

/* Whoever is pinged goes to the end of the list; nobody listens, so the order tells. */
struct world {
	struct uar_pump pump;
	struct uar_clock clock;
	int64_t now_us;
	struct uar_gate gate;
	struct gate_stream streams[RING];
	size_t head; /* who is pinged next */
};

static int64_t now(void *ctx)
{
	return ((struct world *)ctx)->now_us;
}

static void open_world(struct world *w, size_t streams, int64_t beat_us)
{
	memset(w, 0, sizeof *w);
	uar_pump_init(&w->pump);
	w->clock = (struct uar_clock){ now, now, w };
	w->pump.sched.clock = &w->clock;
	w->gate.o.sched = &w->pump.sched;
	w->gate.o.heartbeat_us = beat_us;
	w->gate.tick.fn = gate_streams_tick;
	w->gate.stream_count = streams;
	uar_list_init(&w->gate.streams);
	for (size_t i = 0; i < RING; i++)
		uar_list_add_last(&w->gate.streams, &w->streams[i].node);
	CHECK_INT(uar_timer_set(&w->pump.sched, &w->gate.tick, SECOND_US), UAR_OK);
}

/* Pings of the next `us`. */
static size_t pings(struct world *w, int64_t us)
{
	const struct gate_stream *first;
	size_t head, n;

	w->now_us += us;
	while (uar_pump_turn(&w->pump))
		;
	first = UAR_OWNER(w->gate.streams.next, struct gate_stream, node);
	head = (size_t)(first - w->streams);
	n = (head + RING - w->head) % RING;
	w->head = head;
	return n;
}

TEST(every_stream_is_pinged_once_a_heartbeat, "")
{
	static const struct {
		size_t streams;
		int64_t beat_us;
	} cases[] = { { 0, 15 * SECOND_US },  { 1, 15 * SECOND_US }, { 2, 15 * SECOND_US },
		      { 14, 15 * SECOND_US }, { 50, 5 * SECOND_US }, { 7, SECOND_US },
		      { 1, 600 * SECOND_US }, { 3, SECOND_US / 2 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = cases[i].streams, total = 0, most = 0, ticks;
		int64_t beat = cases[i].beat_us, tick = beat < SECOND_US ? beat : SECOND_US;
		struct world w;

		open_world(&w, n, beat);
		(void)pings(&w, SECOND_US); /* the first tick, whatever the heartbeat is */
		ticks = (size_t)(beat / tick) * BEATS;
		for (size_t k = 0; k < ticks; k++) {
			size_t now_pinged = pings(&w, tick);

			total += now_pinged;
			most = now_pinged > most ? now_pinged : most;
		}
		CHECK_INT(total, n * BEATS);
		CHECK_MSG(most <= n * BEATS / ticks + 1, "%zu at one moment", most);
		uar_timer_stop(&w.pump.sched, &w.gate.tick);
		uar_pump_fini(&w.pump);
	}
}
