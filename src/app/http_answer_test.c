/* http_answer_test.c - responses cut everywhere, and those that must be refused. */
#include "test.h"

#include "app/http_answer.h"

struct seen {
	struct uar_buf body;
	struct uar_answer answer;
	uar_err fail_with;
};

static uar_err collect(void *ctx, uar_str bytes)
{
	struct seen *s = ctx;

	uar_buf_add_str(&s->body, bytes);
	return s->fail_with;
}

static void begin(struct seen *s)
{
	*s = (struct seen){ .body = uar_buf_make(100000) };
	uar_answer_init(&s->answer, collect, s);
}

static void over(struct seen *s)
{
	uar_buf_fini(&s->body);
	uar_answer_fini(&s->answer);
}

/* Feeds in two pieces cut at `cut`, then ends the connection. */
static uar_err feed(struct seen *s, const char *text, size_t cut)
{
	struct uar_error error = { 0 };
	uar_str all = uar_str_c(text);
	uar_err e = uar_answer_feed(&s->answer, uar_str_n(text, cut), &error);

	if (!e)
		e = uar_answer_feed(&s->answer, uar_str_from(all, cut), &error);
	return e ? e : uar_answer_end(&s->answer, &error);
}

static const struct {
	const char *text, *body;
	int status;
} good[] = {
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloEXTRA", "hello", 200 },
	{ "HTTP/1.1 404\r\ncontent-length:0\r\n\r\n", "", 404 },
	{ "HTTP/1.1 204 No Content\r\n\r\n", "", 204 },
	{ "HTTP/1.0 200 OK\r\n\r\nto the end", "to the end", 200 },
	{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x", 200 },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
	  "abc0123456789", 200 },
	{ "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n1\r\n\n\r\n0\r\nT: x\r\n\r\n", "\n",
	  200 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", "ok", 200 },
};

TEST(answers_cut_anywhere_read_the_same, "")
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		for (size_t cut = 0; cut <= strlen(good[i].text); cut++) {
			struct seen s;

			begin(&s);
			CHECK_MSG(feed(&s, good[i].text, cut) == UAR_OK, "case %zu cut %zu", i,
				  cut);
			CHECK_INT(s.answer.status, good[i].status);
			CHECK_STR(uar_buf_str(&s.body), good[i].body);
			over(&s);
		}
}

TEST(answers_one_byte_at_a_time, "")
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct seen s;

		begin(&s);
		for (const char *p = good[i].text; *p; p++)
			CHECK(uar_answer_feed(&s.answer, uar_str_n(p, 1), NULL) == UAR_OK);
		CHECK(uar_answer_end(&s.answer, NULL) == UAR_OK);
		CHECK_STR(uar_buf_str(&s.body), good[i].body);
		over(&s);
	}
}

TEST(a_connection_that_ends_early_is_noticed, "")
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		const char *head_end = strstr(good[i].text, "\r\n\r\n");
		size_t n = strlen(good[i].text);

		if (i == 1 || i == 4) /* complete before its end */
			continue;
		for (size_t cut = 0; cut < n; cut++) {
			struct seen s;

			begin(&s);
			CHECK(uar_answer_feed(&s.answer, uar_str_n(good[i].text, cut), NULL) ==
			      UAR_OK);
			CHECK_MSG(uar_answer_end(&s.answer, NULL) == UAR_EEOF, "case %zu cut %zu",
				  i, cut);
			over(&s);
		}
		CHECK(head_end != NULL);
	}
}

TEST(ambiguous_and_garbled_answers_are_refused, "")
{
	static const char *const bad[] = {
		"HTTP/2 200\r\n\r\n",
		"SSH-2.0-x\r\n",
		"HTTP/1.1 20x OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1 200 OK\n\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nName : x\r\n\r\n",
		"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t cut = 0; cut <= strlen(bad[i]); cut++) {
			struct seen s;

			begin(&s);
			CHECK_MSG(feed(&s, bad[i], cut) == UAR_ESYNTAX, "taken: %s", bad[i]);
			over(&s);
		}
}

TEST(a_head_is_bounded, "")
{
	struct seen s;
	uar_err e;

	begin(&s);
	e = uar_answer_feed(&s.answer, UAR_STR("HTTP/1.1 200 OK\r\n"), NULL);
	for (int i = 0; i < 10000 && !e; i++)
		e = uar_answer_feed(&s.answer, UAR_STR("Name: value\r\n"), NULL);
	CHECK_INT(e, UAR_ESYNTAX);
	over(&s);
}

TEST(many_chunks_are_no_large_head, "")
{
	struct seen s;
	uar_err e;

	begin(&s);
	e = uar_answer_feed(&s.answer,
			    UAR_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), NULL);
	for (int i = 0; i < 20000 && !e; i++)
		e = uar_answer_feed(&s.answer, UAR_STR("1\r\nx\r\n"), NULL);
	CHECK_INT(e, UAR_OK);
	CHECK_INT(s.body.n, 20000);
	over(&s);
}

TEST(content_type_and_the_readers_error, "")
{
	struct seen s;
	struct uar_error error = { 0 };

	begin(&s);
	s.fail_with = UAR_ETOOBIG;
	CHECK_INT(uar_answer_feed(&s.answer,
				  UAR_STR("HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; "
					  "charset=utf-8\r\n\r\nx"),
				  &error),
		  UAR_ETOOBIG);
	CHECK_STR(uar_str_c(s.answer.content_type), "text/event-stream");
	over(&s);
}
