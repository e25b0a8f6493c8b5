/* event_row_fuzz.c - any bytes as an event: what is read is written and read again
 * as the same event, also without what its row of the log knows, and the check never
 * does worse than refuse. */
#include <stdlib.h>

#include "event/event.h"
#include "event/sizes.h"
#include "json/limits.h"

/* What stood between two tokens may have become a blank: an event is one line. */
static bool same_json(uar_str was, uar_str is)
{
	for (size_t i = 0; i < was.n && is.n == was.n; i++)
		if (was.p[i] != is.p[i] && ((unsigned char)was.p[i] >= 0x20 || is.p[i] != ' '))
			return false;
	return is.n == was.n;
}

static bool same(const struct uar_event *a, const struct uar_event *b)
{
	for (size_t i = 0; i < UAR_ID_COUNT; i++)
		if (!uar_str_eq(a->ids[i], b->ids[i]))
			return false;
	return a->cls == b->cls && uar_str_eq(a->event_id, b->event_id) &&
	       a->time_us == b->time_us && a->sequence == b->sequence &&
	       a->run_sequence == b->run_sequence && same_json(a->payload, b->payload) &&
	       same_json(a->refs, b->refs);
}

/* Times before year 0 and after 9999 can be read, through an offset, but not written. */
static bool has_text(int64_t us)
{
	return us >= -62167219200000000 && us < 253402300800000000;
}

static void write_again(const struct uar_event *ev, bool stored, struct uar_arena *arena)
{
	struct uar_buf buf = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&buf);
	const struct uar_json *j;
	const struct uar_event *base = stored ? ev : NULL;
	struct uar_event back;

	if (stored)
		uar_event_write_stored(&w, ev, UAR_OMIT_TIME | UAR_IDS_SESSION);
	else
		uar_event_write(&w, NULL, ev, 0);
	if (uar_jw_end(&w) || uar_json_parse(uar_buf_str(&buf), NULL, arena, &j, NULL) ||
	    uar_event_read(j, base, arena, &back, NULL))
		abort();
	if (stored) {
		back.sequence = ev->sequence;
		back.run_sequence = ev->run_sequence;
	}
	if (!same(ev, &back))
		abort();
	uar_buf_fini(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_arena arena;
	const struct uar_json *j;
	struct uar_event ev;
	struct uar_error error;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(uar_str_n((const char *)data, size), NULL, &arena, &j, NULL) &&
	    !uar_event_read(j, NULL, &arena, &ev, &error)) {
		uar_err e = uar_event_check(&ev, &arena, &error);

		if (e == UAR_OK && size > 64 * UAR_LIMIT_EVENT_BYTES)
			abort();
		if (has_text(ev.time_us))
			write_again(&ev, false, &arena);
		write_again(&ev, true, &arena);
	}
	uar_arena_fini(&arena);
	return 0;
}
