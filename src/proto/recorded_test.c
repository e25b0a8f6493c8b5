/* recorded_test.c - recorded runs as normalized events and in the dialects of OpenAI. */
#include "base/alloc.h"
#include "proto/normalized.h"
#include "proto/openai.h"
#include "recorded.h"
#include "test.h"

static void check_normalized(const char *name)
{
	static const struct uar_normalized_options plain = { 0 };
	struct uar_buf out = uar_buf_make(RECORDED_MOST);
	struct recorded r;
	struct uar_event ev;

	recorded_open(&r, name);
	while (recorded_next(&r, &ev)) {
		size_t before = out.n;
		uar_err e;

		uar_buf_printf(&out, "event: event\nid: %llu\ndata: ",
			       (unsigned long long)ev.run_sequence);
		e = uar_normalized_encode(&ev, &plain, &r.arena, &out);
		CHECK(e == UAR_OK || e == UAR_ESKIP);
		if (e)
			out.n = before;
		else
			uar_buf_add_str(&out, UAR_STR("\n\n"));
	}
	recorded_compare("streams", name, "sse", &out);
	recorded_close(&r);
	uar_buf_fini(&out);
}

static void check_dialect(const char *name, const struct uar_dialect *dialect, const char *ending)
{
	struct uar_dialect_options o = { .model = UAR_STR("recorded") };
	struct uar_buf out = uar_buf_make(RECORDED_MOST);
	void *state = uar_zalloc(dialect->state_size);
	struct recorded r;
	struct uar_event ev;

	recorded_open(&r, name);
	CHECK_INT(dialect->begin(state, &o), UAR_OK);
	while (recorded_next(&r, &ev)) {
		struct uar_frames frames = { .out = &out, .run_sequence = ev.run_sequence };

		CHECK_INT(dialect->encode(state, &ev, &r.arena, &frames), UAR_OK);
	}
	recorded_compare("openai", name, ending, &out);
	dialect->end(state);
	uar_free(state);
	recorded_close(&r);
	uar_buf_fini(&out);
}

TEST(recorded_runs_have_these_normalized_events, "")
{
	for (const char *const *name = recorded_names; *name; name++)
		check_normalized(*name);
}

TEST(recorded_runs_have_these_chunks_and_responses, "")
{
	for (const char *const *name = recorded_names; *name; name++) {
		check_dialect(*name, &uar_openai_chat, "chat.sse");
		check_dialect(*name, &uar_openai_responses, "responses.sse");
	}
}
