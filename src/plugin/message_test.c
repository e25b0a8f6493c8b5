/* message_test.c - what a plugin may say, and what is refused. */
#include "plugin/message.h"

#include "test.h"

#include "base/base64.h"

struct heard {
	struct uar_arena arena;
	struct uar_message m;
	struct uar_error error;
	uar_err e;
};

static void hear(struct heard *h, uar_str line)
{
	*h = (struct heard){ .e = UAR_OK };
	uar_arena_init(&h->arena, 0);
	h->e = uar_message_read(line, &h->arena, &h->m, &h->error);
}

static uar_err verdict(const char *line)
{
	struct heard h;

	hear(&h, uar_str_c(line));
	uar_arena_fini(&h.arena);
	return h.e;
}

#define CALL(METHOD, PARAMS)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"method\":\"" METHOD "\",\"params\":{\"run_id\":\"r\"" PARAMS "}}"

TEST(bounds_of_progress, "RUN-20 RUN-47")
{
	static const struct {
		const char *line;
		uar_err want;
	} cases[] = {
		{ CALL("run.progress", ",\"progress\":0"), UAR_OK },
		{ CALL("run.progress", ",\"progress\":1.0"), UAR_OK },
		{ CALL("run.progress", ""), UAR_OK },
		{ CALL("run.progress", ",\"progress\":null"), UAR_OK },
		{ CALL("run.progress", ",\"progress\":-0.1"), UAR_EINVALID },
		{ CALL("run.progress", ",\"progress\":1.1"), UAR_EINVALID },
		{ CALL("run.progress", ",\"progress\":\"1\""), UAR_EINVALID },
		{ CALL("run.progress", ",\"progress\":NaN"), UAR_ESYNTAX },
		{ CALL("run.progress", ",\"step\":2,\"step_total\":2"), UAR_OK },
		{ CALL("run.progress", ",\"step\":3,\"step_total\":2"), UAR_EINVALID },
		{ CALL("run.progress", ",\"step\":-1"), UAR_EINVALID },
		{ CALL("run.progress", ",\"eta_seconds\":-1"), UAR_EINVALID },
		{ CALL("run.progress", ",\"metrics\":[]"), UAR_EINVALID },
		{ CALL("run.status", ",\"status\":\"s\",\"message\":\"m\""), UAR_OK },
		{ CALL("run.status", ",\"message\":\"m\""), UAR_EINVALID },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_MSG(verdict(cases[i].line) == cases[i].want, "%s", cases[i].line);
}

/* Characters, not bytes, are counted. */
TEST(lengths_of_stage_and_message, "RUN-47")
{
	static const struct {
		const char *key;
		size_t chars;
		uar_err want;
	} cases[] = { { "stage", 128, UAR_OK },
		      { "stage", 129, UAR_EINVALID },
		      { "message", 512, UAR_OK },
		      { "message", 513, UAR_EINVALID } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(8192);
		struct heard h;

		uar_buf_printf(&b,
			       "{\"jsonrpc\":\"2.0\",\"method\":\"run.progress\",\"params\":{"
			       "\"run_id\":\"r\",\"%s\":\"",
			       cases[i].key);
		for (size_t n = 0; n < cases[i].chars; n++)
			uar_buf_add_str(&b, UAR_STR("\xc3\xa4"));
		uar_buf_add_str(&b, UAR_STR("\"}}"));
		hear(&h, uar_buf_str(&b));
		CHECK_MSG(h.e == cases[i].want, "%s of %zu", cases[i].key, cases[i].chars);
		uar_arena_fini(&h.arena);
		uar_buf_fini(&b);
	}
}

static void export_of_size(struct heard *h, struct uar_buf *b, size_t bytes)
{
	struct uar_buf raw = uar_buf_make(1 << 20);

	for (size_t i = 0; i < bytes; i++)
		uar_buf_add_char(&raw, (char)i);
	*b = uar_buf_make(1 << 20);
	uar_buf_add_str(b,
			UAR_STR("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"run.export\","
				"\"params\":{\"run_id\":\"r\",\"type\":\"binary\",\"binary\":\""));
	uar_base64_encode(b, uar_buf_str(&raw));
	uar_buf_add_str(b, UAR_STR("\"}}"));
	hear(h, uar_buf_str(b));
	uar_buf_fini(&raw);
}

TEST(binary_has_a_strict_limit, "EXP-10 EXP-11 PERF-03")
{
	struct uar_buf b;
	struct heard h;

	export_of_size(&h, &b, 65536);
	CHECK(h.e == UAR_OK);
	CHECK_INT(h.m.raw.n, 65536);
	CHECK_INT((unsigned char)h.m.raw.p[65535], 255);
	uar_arena_fini(&h.arena);
	uar_buf_fini(&b);
	export_of_size(&h, &b, 65537);
	CHECK(h.e == UAR_ETOOBIG);
	CHECK(strstr(h.error.text, "binary_url") != NULL);
	uar_arena_fini(&h.arena);
	uar_buf_fini(&b);
}

TEST(exports_of_every_type, "EXP-01 EXP-16 EXP-20")
{
	static const struct {
		const char *line;
		uar_err want;
	} cases[] = {
		{ CALL("run.export", ",\"type\":\"text\",\"text\":\"hello\""), UAR_OK },
		{ CALL("run.export", ",\"type\":\"url\",\"url\":\"http://x\""), UAR_OK },
		{ CALL("run.export", ",\"type\":\"binary_url\",\"binary_url\":\"http://x\""),
		  UAR_OK },
		{ CALL("run.export", ",\"type\":\"json\",\"json\":null"), UAR_OK },
		{ CALL("run.export", ",\"type\":\"json\",\"json\":[1,2]"), UAR_OK },
		{ CALL("run.export", ",\"type\":\"binary\",\"binary\":\"Zg==\""), UAR_OK },
		{ CALL("run.export", ",\"type\":\"binary\",\"binary\":\"Zh==\""), UAR_EINVALID },
		{ CALL("run.export", ",\"type\":\"binary\",\"binary\":\"Zg\""), UAR_EINVALID },
		{ CALL("run.export", ",\"type\":\"text\",\"url\":\"http://x\""), UAR_EINVALID },
		{ CALL("run.export", ",\"type\":\"video\",\"video\":\"x\""), UAR_EINVALID },
		{ CALL("run.export", ",\"type\":\"text\",\"text\":\"x\",\"category\":\"other\""),
		  UAR_EINVALID },
		{ CALL("run.export", ",\"type\":\"text\",\"text\":\"x\",\"metadata\":1"),
		  UAR_EINVALID },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_MSG(verdict(cases[i].line) == cases[i].want, "%s", cases[i].line);
}

TEST(ends_and_errors, "ERR-04 ERR-06")
{
	struct heard h;

	hear(&h, uar_str_c(CALL("run.result", ",\"result\":{\"a\":1},\"result_refs\":[\"x\"]")));
	CHECK(h.e == UAR_OK && h.m.end.how == UAR_ENTRY_HOW_FINISHED);
	CHECK_STR(h.m.end.result, "{\"a\":1}");
	CHECK_INT(h.m.end.refs->count, 1);
	uar_arena_fini(&h.arena);
	hear(&h, uar_str_c(CALL("run.error", ",\"message\":\"no\"")));
	CHECK(h.e == UAR_OK && h.m.end.how == UAR_ENTRY_HOW_BROKE);
	CHECK_STR(h.m.end.code, "PLUGIN_ERROR");
	uar_arena_fini(&h.arena);
	hear(&h, uar_str_c(CALL("run.error", ",\"code\":\"CANCELED\"")));
	CHECK(h.e == UAR_OK && h.m.end.how == UAR_ENTRY_HOW_STOPPED);
	uar_arena_fini(&h.arena);
}

TEST(noise_is_no_message, "")
{
	static const char *const noise[] = { "hello",
					     "42",
					     "{}",
					     "[1]",
					     "{\"jsonrpc\":\"1.0\",\"method\":\"log\"}",
					     "{\"jsonrpc\":\"2.0\"}",
					     "{\"jsonrpc\":\"2.0\",\"id\":1}",
					     "{\"jsonrpc\":\"2.0\",\"result\":{}}" };

	for (size_t i = 0; i < ARRAY_LEN(noise); i++)
		CHECK_MSG(verdict(noise[i]) == UAR_ESYNTAX, "%s", noise[i]);
	CHECK(verdict("{\"jsonrpc\":\"2.0\",\"method\":\"run.dance\"}") == UAR_ENOTIMPL);
	CHECK(verdict("{\"jsonrpc\":\"2.0\",\"method\":\"run.progress\"}") == UAR_EINVALID);
	CHECK(verdict("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}") == UAR_OK);
}

/* Legal for many encoders, but no text: its sender is told, not left to wait. */
TEST(halves_of_pairs_are_refused_by_name, "")
{
	static const char *const lines[] = { CALL("log", ",\"message\":\"\\ud800\""),
					     CALL("log", ",\"message\":\"\\\\\\uDC00x\""),
					     CALL("log", ",\"message\":\"\xff\"") };
	struct heard h;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		hear(&h, uar_str_c(lines[i]));
		CHECK_INT(h.e, UAR_EUTF8);
		CHECK_MSG(h.m.run_id.n > 0, "%s", lines[i]);
		uar_arena_fini(&h.arena);
	}
	hear(&h, UAR_STR("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"run.result\",\"params\":"
			 "{\"run_id\":\"r\",\"result\":\"\\ud83d\\ud83d\"}}"));
	CHECK(h.e == UAR_EUTF8 && h.m.kind == UAR_MESSAGE_RESULT);
	CHECK(h.m.id && h.m.id->i == 7);
	uar_arena_fini(&h.arena);
	CHECK(verdict("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\\ud800\"}") == UAR_ESYNTAX);
	CHECK(verdict("\xff") == UAR_ESYNTAX);
}

/* JSON that is beyond our bounds ends its run, too; its id stays what it is. */
TEST(deep_and_huge_values_are_refused_by_name, "")
{
	static const struct {
		const char *value;
		uar_err want;
	} bad[] = {
		{ "1e999", UAR_ENUMBER },
		{ "-1E+400", UAR_ENUMBER },
		{ "[\"\\\"1e9\",2,1e999]", UAR_ENUMBER },
	};
	struct uar_buf deep = uar_buf_make(4096);
	struct heard h;

	for (size_t i = 0; i <= ARRAY_LEN(bad); i++) {
		uar_buf_clear(&deep);
		uar_buf_printf(&deep, "{\"jsonrpc\":\"2.0\",\"id\":123456789012,\"method\":"
				      "\"run.result\",\"params\":{\"run_id\":\"r\",\"result\":");
		if (i < ARRAY_LEN(bad))
			uar_buf_add_str(&deep, uar_str_c(bad[i].value));
		for (int k = 0; i == ARRAY_LEN(bad) && k < 400; k++)
			uar_buf_add_char(&deep, k < 200 ? '[' : ']');
		uar_buf_add_str(&deep, UAR_STR("}}"));
		hear(&h, uar_buf_str(&deep));
		CHECK_INT(h.e, i < ARRAY_LEN(bad) ? bad[i].want : UAR_EDEPTH);
		CHECK(h.m.kind == UAR_MESSAGE_RESULT && uar_str_is(h.m.run_id, "r"));
		CHECK(h.m.id && h.m.id->i == 123456789012);
		uar_arena_fini(&h.arena);
	}
	uar_buf_fini(&deep);
}

TEST(pieces_of_an_upload, "EXP-21 EXP-20")
{
	static const struct {
		const char *params;
		uar_err want;
	} cases[] = {
		{ "\"upload\":\"a\",\"offset\":0,\"data\":\"YWJj\"", UAR_OK },
		{ "\"upload\":\"a\",\"offset\":7,\"data\":\"\"", UAR_OK },
		{ "\"offset\":0,\"data\":\"\"", UAR_EINVALID },
		{ "\"upload\":\"\",\"offset\":0,\"data\":\"\"", UAR_EINVALID },
		{ "\"upload\":\"a b\",\"offset\":0,\"data\":\"\"", UAR_EINVALID },
		{ "\"upload\":\"a\",\"data\":\"\"", UAR_EINVALID },
		{ "\"upload\":\"a\",\"offset\":-1,\"data\":\"\"", UAR_EINVALID },
		{ "\"upload\":\"a\",\"offset\":0", UAR_EINVALID },
		{ "\"upload\":\"a\",\"offset\":0,\"data\":\"Zh==\"", UAR_EINVALID },
		{ "\"upload\":\"a\",\"offset\":0,\"data\":5", UAR_EINVALID },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(4096);
		struct heard h;

		uar_buf_printf(
			&b,
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"run.upload\",\"params\":{"
			"\"run_id\":\"r\",%s}}",
			cases[i].params);
		hear(&h, uar_buf_str(&b));
		CHECK_MSG(h.e == cases[i].want, "%s", cases[i].params);
		if (i == 0) {
			CHECK(h.m.kind == UAR_MESSAGE_UPLOAD);
			CHECK_STR(h.m.piece.bytes, "abc");
		}
		uar_arena_fini(&h.arena);
		uar_buf_fini(&b);
	}
}

TEST(an_export_may_name_an_upload, "EXP-21")
{
	struct heard h;

	hear(&h,
	     UAR_STR("{\"jsonrpc\":\"2.0\",\"method\":\"run.export\",\"params\":{\"run_id\":"
		     "\"r\",\"type\":\"binary_url\",\"upload\":\"a\",\"mime\":\"image/png\"}}"));
	CHECK(h.e == UAR_OK);
	CHECK_STR(h.m.export.upload, "a");
	CHECK(h.m.export.bytes == -1 && !h.m.export.sha256.n);
	uar_arena_fini(&h.arena);
	hear(&h, UAR_STR("{\"jsonrpc\":\"2.0\",\"method\":\"run.export\",\"params\":{\"run_id\":"
			 "\"r\",\"type\":\"text\",\"upload\":\"a\"}}"));
	CHECK(h.e == UAR_EINVALID);
	uar_arena_fini(&h.arena);
}
