/* reply_test.c - the reader of answers alone, cut at every byte. */
#include "test.h"

#include "model/limits.h"
#include "model/reply_int.h"
#include "openai_words.h"

struct pieces {
	struct uar_buf text, reasoning;
};

static void on_piece(void *ctx, enum uar_reply_kind kind, uar_str text)
{
	struct pieces *p = ctx;

	CHECK(text.n > 0 && uar_utf8_valid(text));
	uar_buf_add_str(kind == UAR_REPLY_TEXT ? &p->text : &p->reasoning, text);
}

static void check_cut(struct uar_reply_scratch *scratch, uar_str stream, size_t at)
{
	struct pieces p = { uar_buf_make(1000), uar_buf_make(1000) };
	struct uar_reply a = { .dialect = &uar_dialect_openai_chat,
			       .scratch = scratch,
			       .piece = on_piece,
			       .ctx = &p };
	uar_err e;

	uar_reply_init(&a);
	e = uar_reply_feed(&a, uar_str_n(stream.p, at));
	if (!e)
		e = uar_reply_feed(&a, uar_str_from(stream, at));
	uar_reply_end(&a, UAR_OK, "");
	CHECK_MSG(!e && !a.verdict.failure, "cut at %zu", at);
	CHECK_STR(uar_buf_str(&p.text), "Gr\xc3\xbc\xc3\x9f dich \xf0\x9f\x98\x80!");
	CHECK_STR(uar_buf_str(&p.reasoning), "hm");
	CHECK_INT(a.usage.total_tokens, 9);
	CHECK(a.closed);
	uar_reply_fini(&a);
	uar_buf_fini(&p.text);
	uar_buf_fini(&p.reasoning);
}

TEST(stream_may_be_cut_at_every_byte, "")
{
	uar_str stream = UAR_STR(": ok\r\n\r\n" THOUGHT("hm") DELTA(
		"Gr\xc3\xbc\xc3\x9f dich ") "data: "
					    "{\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":"
					    "{\"content\":\"\\ud83d\\ude00\"}}]}\r\n\r\n" DELTA("!")
						    STOP USAGE DONE);
	struct uar_reply_scratch scratch;

	uar_reply_scratch_init(&scratch);
	for (size_t at = 0; at <= stream.n; at++)
		check_cut(&scratch, stream, at);
	uar_reply_scratch_fini(&scratch);
}

static void check_calls_cut(struct uar_reply_scratch *scratch, uar_str stream, size_t at)
{
	struct uar_reply a = { .dialect = &uar_dialect_openai_chat,
			       .scratch = scratch,
			       .piece = on_piece,
			       .asked.messages = 7 };
	uar_err e;

	uar_reply_init(&a);
	e = uar_reply_feed(&a, uar_str_n(stream.p, at));
	if (!e)
		e = uar_reply_feed(&a, uar_str_from(stream, at));
	uar_reply_end(&a, UAR_OK, "");
	if (CHECK_MSG(!e && !a.verdict.failure && a.calls && a.calls->count == 2, "cut at %zu",
		      at)) {
		CHECK_STR(a.calls->list[0].id, "call_a");
		CHECK_STR(a.calls->list[0].name, "f");
		CHECK_STR(a.calls->list[0].arguments, "{\"x\":\"\xf0\x9f\x98\x80\"}");
		CHECK_STR(a.calls->list[1].id, "uar_7_2");
		CHECK_STR(a.calls->list[1].arguments, "{}");
	}
	uar_reply_fini(&a);
}

TEST(calls_may_be_cut_at_every_byte, "")
{
	uar_str stream = UAR_STR(BEGIN("0", "call_a", "f") PIECE("0", "{\\\"x\\\":\\\"\\ud83d")
					 BEGIN("1", "", "g") PIECE("0", "\\ude00\\\"}")
						 END("tool_calls") DONE);
	struct uar_reply_scratch scratch;

	uar_reply_scratch_init(&scratch);
	for (size_t at = 0; at <= stream.n; at++)
		check_calls_cut(&scratch, stream, at);
	uar_reply_scratch_fini(&scratch);
}

/* Text and reasoning that an answer brings; `each`: with every event parsed. */
static void say(struct uar_reply_scratch *scratch, const char *const *events, size_t n, bool each,
		struct pieces *out)
{
	struct uar_reply a = { .dialect = &uar_dialect_openai_chat,
			       .scratch = scratch,
			       .piece = on_piece,
			       .ctx = out };

	*out = (struct pieces){ uar_buf_make(1000), uar_buf_make(1000) };
	uar_reply_init(&a);
	for (size_t i = 0; i < n; i++) {
		CHECK_INT(uar_reply_feed(&a, uar_str_c(events[i])), UAR_OK);
		if (each)
			a.mould.before = a.mould.after = 0;
	}
	uar_reply_end(&a, UAR_OK, "");
	CHECK(!a.verdict.failure && a.finished);
	CHECK_STR(uar_str_n(a.stop_reason, a.stop_reason_n), "stop");
	CHECK_INT(a.usage.total_tokens, 9);
	CHECK_INT(a.events, n);
	uar_reply_fini(&a);
}

/* Those that are like the one before but for their text are not parsed; whatever only
 * looks so is. */
TEST(events_alike_say_what_they_say_alone, "")
{
	static const char *const events[] = {
		THOUGHT("a"),
		THOUGHT("b"),
		DELTA("c"),
		DELTA("d\xc3\xbc"),
		DELTA(""),
		DELTA("e"),
		DELTA("\\n\\u00fc"),
		DELTA("f"),
		DELTA("g\",\"content\":\"h"),
		DELTA("i"),
		DELTA("j\"}},{\"index\":1,\"delta\":{\"content\":\"k"),
		DELTA("l"),
		DELTA("\xc3"),
		DELTA("m"),
		DELTA("\\ud83d"),
		DELTA("\\ude00"),
		DELTA("n"),
		"event: x\n" DELTA("o"),
		DELTA("p"),
		"data: {\"choices\":\ndata: [{\"index\":0,"
		"\"delta\":{\"content\":\"q\"}}]}\n\n",
		DELTA("r"),
		USAGE,
		DELTA("s"),
		STOP,
		DONE,
	};
	struct uar_reply_scratch scratch;
	struct pieces fast, each;

	uar_reply_scratch_init(&scratch);
	say(&scratch, events, ARRAY_LEN(events), false, &fast);
	say(&scratch, events, ARRAY_LEN(events), true, &each);
	CHECK_STR(uar_buf_str(&fast.text), "cd\xc3\xbc"
					   "e\n\xc3\xbc"
					   "fhijl\xef\xbf\xbdm"
					   "\xf0\x9f\x98\x80nopqrs");
	CHECK_STR(uar_buf_str(&fast.reasoning), "ab");
	CHECK(uar_str_eq(uar_buf_str(&fast.text), uar_buf_str(&each.text)));
	CHECK(uar_str_eq(uar_buf_str(&fast.reasoning), uar_buf_str(&each.reasoning)));
	uar_buf_fini(&fast.text);
	uar_buf_fini(&fast.reasoning);
	uar_buf_fini(&each.text);
	uar_buf_fini(&each.reasoning);
	uar_reply_scratch_fini(&scratch);
}

TEST(messages_are_cut_and_cleaned, "")
{
	struct uar_reply_verdict v = { 0 };
	struct uar_buf long_one = uar_buf_make(10000);

	for (int i = 0; i < 290; i++)
		uar_buf_add_char(&long_one, 'x');
	uar_buf_add_str(&long_one, UAR_STR(" " KEY " and Bearer abc.def \xe2\x82\xac"));
	uar_reply_fail(&v, UAR_MODEL_FAIL_PROVIDER, false, UAR_STR(KEY), uar_buf_str(&long_one));
	CHECK_INT(v.message_n, UAR_LIMIT_MODEL_MESSAGE);
	CHECK(uar_str_ends(uar_str_n(v.message, v.message_n), UAR_STR("x [key] and")));
	uar_buf_fini(&long_one);
}
