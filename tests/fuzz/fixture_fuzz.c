/* fixture_fuzz.c - a fixture file of any bytes, replayed through the engine: each
 * line is refused or becomes events that fold to the same state, and what is
 * shown of them is JSON. */
#include <stdlib.h>

#include "proto/normalized.h"
#include "work/fixture_file.h"
#include "story.h"

static void check_shown(struct story *t)
{
	struct uar_normalized_options o = { .meta = true };
	struct uar_buf out = uar_buf_make(1 << 20);

	for (size_t i = t->last; i < t->count; i++) {
		const struct uar_json *j;

		uar_buf_clear(&out);
		if (uar_normalized_encode(&t->log[i], &o, (struct uar_arena *)&t->arena, &out) ==
			    UAR_OK &&
		    uar_json_parse(uar_buf_str(&out), NULL, &t->arena, &j, NULL))
			abort();
	}
	uar_buf_fini(&out);
}

static void check_fold(const struct story *t)
{
	struct uar_session s = { .owner = t->s.owner };
	struct uar_run r;

	uar_run_init(&r);
	for (size_t i = 0; i < t->count; i++)
		if (uar_core_fold(&s, &r, &t->log[i], (struct uar_arena *)&t->arena, NULL))
			abort();
	if (r.status != t->r.status || r.run_sequence != t->r.run_sequence ||
	    r.replayed != t->r.replayed || r.call.chars != t->r.call.chars)
		abort();
	uar_run_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str rest = uar_str_n((const char *)data, size), line;
	struct uar_arena arena;
	struct story t;
	int64_t n = 0;

	uar_arena_init(&arena, 0);
	story_init(&t, 1);
	if (story_begin(&t, UAR_ENTRY_FIXTURE, false))
		abort();
	while (uar_fixture_line(&rest, &line) && n < 64) {
		const struct uar_json *j;
		uar_err e;

		n++;
		if (uar_fixture_parse(line, &arena, &j, NULL))
			break;
		e = story_replay(&t, line, n);
		if (e == UAR_ENOMEM || e == UAR_ECORRUPT || e == UAR_EINTERNAL)
			abort();
		if (e)
			break;
		check_shown(&t);
	}
	check_fold(&t);
	story_fini(&t);
	uar_arena_fini(&arena);
	return 0;
}
