/* exports_test.c - what an agent said, gathered from the events of its run. */
#include "proto/exports.h"
#include "proto/limits.h"

#include "test.h"

static struct uar_event said(enum uar_event_class cls, const char *payload)
{
	return (struct uar_event){ .cls = cls, .payload = uar_str_c(payload), .run_sequence = 1 };
}

/* A call that was made again begins again: what it had said is void. */
TEST(an_answer_is_the_last_message, "")
{
	static const char *const pieces[] = {
		"{\"message_id\":\"m1\",\"index\":0,\"kind\":\"text\",\"text\":\"cut o\"}",
		"{\"message_id\":\"m2\",\"index\":0,\"kind\":\"text\",\"text\":\"Hel\"}",
		"{\"message_id\":\"m2\",\"index\":1,\"kind\":\"text\",\"text\":\"lo\"}",
	};
	struct uar_event thought =
		said(UAR_EV_REASONING_DELTA, "{\"message_id\":\"m2\",\"index\":2,\"text\":\"hm\"}");
	struct uar_event end =
		said(UAR_EV_TASK_ATTEMPT_COMPLETED,
		     "{\"attempt\":1,\"status\":\"completed\",\"result_refs\":[\"m2\"],"
		     "\"answer\":{\"message_id\":\"m2\",\"bytes\":5}}");
	struct uar_event silent =
		said(UAR_EV_TASK_ATTEMPT_COMPLETED,
		     "{\"attempt\":1,\"status\":\"completed\",\"result_refs\":[]}");
	struct uar_answer_text a;
	struct uar_export_item x;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	uar_answer_text_init(&a);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct uar_event ev = said(UAR_EV_MODEL_DELTA, pieces[i]);

		CHECK_INT(uar_answer_text_feed(&a, &ev, &arena), UAR_OK);
		CHECK_INT(uar_export_item_read(&ev, &arena, &x), UAR_ESKIP);
	}
	CHECK_INT(uar_answer_text_feed(&a, &thought, &arena), UAR_OK);
	CHECK_STR(uar_buf_str(&a.text), "Hello");
	CHECK(!a.cut);
	CHECK_INT(uar_export_item_read(&end, &arena, &x), UAR_OK);
	CHECK(x.answer && !x.result && !x.upload);
	CHECK_STR(x.id, "m2");
	CHECK_INT(uar_export_item_read(&silent, &arena, &x), UAR_ESKIP);
	uar_answer_text_fini(&a);
	uar_arena_fini(&arena);
}

/* Longer than what is kept: cut, and never inside a character. */
TEST(a_long_answer_is_cut_between_characters, "")
{
	struct uar_buf payload = uar_buf_make(65536);
	struct uar_answer_text a;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	uar_answer_text_init(&a);
	uar_buf_add_str(&payload,
			UAR_STR("{\"message_id\":\"m\",\"index\":0,\"kind\":\"text\",\"text\":\""));
	for (int i = 0; i < 3333; i++)
		uar_buf_add_str(&payload, UAR_STR("\xe2\x82\xac"));
	uar_buf_add_str(&payload, UAR_STR("\"}"));
	for (int i = 0; i < 450; i++) {
		struct uar_event ev = { .cls = UAR_EV_MODEL_DELTA,
					.payload = uar_buf_str(&payload),
					.run_sequence = 1 };

		CHECK_INT(uar_answer_text_feed(&a, &ev, &arena), UAR_OK);
		uar_arena_reset(&arena);
	}
	CHECK(a.cut);
	CHECK_INT(a.text.n, UAR_LIMIT_ANSWER_BYTES / 3 * 3);
	uar_buf_fini(&payload);
	uar_answer_text_fini(&a);
	uar_arena_fini(&arena);
}
