/* event_sample.h - events for the tests of this room. */
#ifndef UAR_EVENT_EVENT_SAMPLE_H
#define UAR_EVENT_EVENT_SAMPLE_H

#include "event/event.h"

/* An event with every id there is. */
static inline struct uar_event uar_event_sample(enum uar_event_class cls, uar_str payload)
{
	struct uar_event ev = { .cls = cls,
				.event_id = UAR_STR("0190b4a0-0000-7000-8000-000000000001"),
				.time_us = 1700000000123456,
				.sequence = 7,
				.run_sequence = 3,
				.payload = payload };

	for (size_t i = 0; i < UAR_ID_COUNT; i++)
		ev.ids[i] = UAR_STR("0190b4a0-0000-7000-8000-0000000000aa");
	ev.ids[UAR_ID_TRACE] = UAR_STR("0123456789abcdef0123456789abcdef");
	ev.ids[UAR_ID_SPAN] = UAR_STR("0123456789abcdef");
	if (cls == UAR_EV_VENDOR)
		ev.type = UAR_STR("vendor.acme.benchmark.started");
	return ev;
}

#endif
