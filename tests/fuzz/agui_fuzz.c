/* agui_fuzz.c - AG-UI both ways. Bytes as a RunAgentInput: what is accepted has valid ids
 * and messages that are JSON again. Bytes as lines of events: whatever they hold, each
 * frame is one JSON object, runs begin and end in order, nothing follows an end. */
#include <stdlib.h>

#include "base/alloc.h"
#include "proto/agui.h"
#include "proto/agui_input.h"
#include "json/limits.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fine)
{
	if (!fine)
		abort();
}

static void check_input(uar_str text)
{
	struct uar_arena arena = { 0 };
	struct uar_buf list = uar_buf_make(UAR_LIMIT_JSON_BYTES + 2);
	struct uar_error error = { 0 };
	const struct uar_json *j;
	struct uar_agui_input in;
	struct uar_cursor cursor;

	if (!uar_cursor_read(text, &cursor))
		require(text.n && text.p[0] >= '0' && text.p[0] <= '9');
	if (!uar_json_parse(text, NULL, &arena, &j, NULL) &&
	    !uar_agui_input_read(j, &arena, &in, &error)) {
		require(!in.run_id.n || uar_str_is_id(in.run_id));
		require(!in.thread_id.n || uar_str_is_id(in.thread_id));
		uar_buf_printf(&list, "[%.*s]", UAR_FMT(in.history));
		require(!uar_json_parse(uar_buf_str(&list), NULL, &arena, &j, NULL));
	}
	uar_buf_fini(&list);
	uar_arena_fini(&arena);
}

struct order {
	bool open;
};

static void check_frame(struct order *o, uar_str frame, struct uar_arena *arena)
{
	uar_str line, type;
	const struct uar_json *j = NULL;

	do
		line = uar_str_cut(frame, '\n', &frame);
	while (!uar_str_starts(line, UAR_STR("data: ")) && frame.n);
	require(uar_str_starts(line, UAR_STR("data: ")));
	require(!uar_json_parse(uar_str_from(line, 6), NULL, arena, &j, NULL));
	type = uar_json_str(uar_json_get(j, UAR_STR("type")), UAR_STR(""));
	if (uar_str_is(type, "RUN_STARTED")) {
		require(!o->open);
		o->open = true;
		return;
	}
	require(o->open && type.n);
	o->open = !uar_str_is(type, "RUN_FINISHED") && !uar_str_is(type, "RUN_ERROR");
}

static void check_frames(struct order *o, uar_str text, struct uar_arena *arena)
{
	while (text.n) {
		const char *end = memmem(text.p, text.n, "\n\n", 2);

		require(end);
		check_frame(o, uar_str_n(text.p, (size_t)(end - text.p)), arena);
		text = uar_str_from(text, (size_t)(end - text.p) + 2);
	}
}

/* The same frames in protobuf: lengths that lead from one to the next, to the end. */
static void check_proto(uar_str text)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	struct uar_arena scratch = { 0 };
	size_t at = 0;

	if (!uar_agui_proto_frames(text, &scratch, &out))
		while (at < out.n) {
			size_t n = 0;

			require(at + 4 <= out.n);
			for (unsigned i = 0; i < 4; i++)
				n = n << 8 | (unsigned char)out.p[at + i];
			at += 4 + n;
			require(n && at <= out.n);
		}
	uar_buf_fini(&out);
	uar_arena_fini(&scratch);
}

/* A reader who joins here gets whole runs, too. */
static void check_join(void *state, struct uar_arena *arena)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	struct uar_frames frames = { .out = &out };
	struct order o = { 0 };

	if (!uar_agui.join(state, &frames) && !uar_agui.leave(state, &frames)) {
		check_frames(&o, uar_buf_str(&out), arena);
		require(!o.open);
		check_proto(uar_buf_str(&out));
	}
	uar_buf_fini(&out);
}

static void check_events(uar_str text)
{
	struct uar_dialect_options options = { 0 };
	struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	struct uar_arena arena = { 0 };
	struct order o = { 0 };
	void *state = uar_zalloc(uar_agui.state_size);
	uint64_t n = 0;
	uar_err e = uar_agui.begin(state, &options);

	while (text.n && !e) {
		uar_str line = uar_str_cut(text, '\n', &text);
		struct uar_frames frames = { .out = &out, .run_sequence = ++n };
		const struct uar_json *j;
		struct uar_event ev;

		if (uar_json_parse(line, NULL, &arena, &j, NULL) ||
		    uar_event_read(j, NULL, &arena, &ev, NULL))
			continue;
		ev.run_sequence = n;
		uar_buf_clear(&out);
		e = uar_agui.encode(state, &ev, &arena, &frames);
		if (!e)
			check_frames(&o, uar_buf_str(&out), &arena);
	}
	if (!e)
		check_join(state, &arena);
	uar_agui.end(state);
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
