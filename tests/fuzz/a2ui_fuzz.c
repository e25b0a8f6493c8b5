/* a2ui_fuzz.c - A2UI both ways. Bytes as a message of a client and as an interface that a
 * model has made: nothing but an answer. Bytes as lines of events: each frame is one JSON
 * object with a version and one message. */
#include <stdlib.h>

#include "base/alloc.h"
#include "json/jw.h"
#include "json/limits.h"
#include "proto/a2ui.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fine)
{
	if (!fine)
		abort();
}

static void check_input(uar_str text)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&out);
	struct uar_arena arena = { 0 };
	struct uar_error error = { 0 };
	struct uar_a2ui_input in;
	const struct uar_json *j;

	if (!uar_json_parse(text, NULL, &arena, &j, NULL)) {
		if (!uar_a2ui_read(j, j, &in, &error))
			require(in.verb == UAR_A2UI_ERROR || uar_str_is_id(in.action_id));
		if (uar_a2ui_check(j, &error))
			require(error.code != UAR_OK);
		if (j->kind == UAR_JSON_OBJECT) {
			uar_a2ui_coerce(j, j, &w);
			require(!uar_jw_end(&w));
		}
	}
	uar_buf_fini(&out);
	uar_arena_fini(&arena);
}

static void check_frames(uar_str text, struct uar_arena *arena)
{
	while (text.n) {
		uar_str line = uar_str_cut(text, '\n', &text);
		const struct uar_json *j = NULL;

		if (!uar_str_starts(line, UAR_STR("data: ")))
			continue;
		require(!uar_json_parse(uar_str_from(line, 6), NULL, arena, &j, NULL));
		require(j->kind == UAR_JSON_OBJECT && j->count == 2);
	}
}

static void check_events(uar_str text)
{
	struct uar_dialect_options options = { 0 };
	struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	struct uar_arena arena = { 0 };
	void *state = uar_zalloc(uar_a2ui.state_size);
	struct uar_frames frames = { .out = &out };
	uint64_t n = 0;
	uar_err e = uar_a2ui.begin(state, &options);

	while (text.n && !e) {
		uar_str line = uar_str_cut(text, '\n', &text);
		const struct uar_json *j;
		struct uar_event ev;

		if (uar_json_parse(line, NULL, &arena, &j, NULL) ||
		    uar_event_read(j, NULL, &arena, &ev, NULL))
			continue;
		ev.run_sequence = frames.run_sequence = ++n;
		e = uar_a2ui.encode(state, &ev, &arena, &frames);
	}
	frames.run_sequence = 0;
	if (!e)
		e = uar_a2ui.join(state, &frames);
	if (!e)
		check_frames(uar_buf_str(&out), &arena);
	uar_a2ui.end(state);
	uar_free(state);
	uar_buf_fini(&out);
	uar_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text = uar_str_n((const char *)data, size);

	check_input(text);
	check_events(text);
	return 0;
}
