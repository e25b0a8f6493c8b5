/* sse_test.c - parsing of event streams. */
#include "test.h"

#include "base/sse.h"

/* Events as text: "[event|id|data]" each, so that a table can hold them. */
static uar_err note(void *ctx, const struct uar_sse_event *ev)
{
	uar_buf_printf(ctx, "[%.*s|%.*s|%.*s]", UAR_FMT(ev->event), UAR_FMT(ev->id),
		       UAR_FMT(ev->data));
	return UAR_OK;
}

static uar_err parse(uar_str in, size_t cut, size_t max, struct uar_buf *out)
{
	struct uar_sse_parser p;
	uar_err e = UAR_OK;

	uar_sse_parser_init(&p, max, note, out);
	for (size_t at = 0; at < in.n && !e; at += cut)
		e = uar_sse_parser_feed(&p,
					uar_str_n(in.p + at, in.n - at < cut ? in.n - at : cut));
	uar_sse_parser_fini(&p);
	return e;
}

static const struct {
	const char *in, *want;
} cases[] = {
	{ "data: a\n\n", "[||a]" },
	{ "data:a\n\n", "[||a]" },
	{ "data:  a\n\n", "[|| a]" },
	{ "data: a\r\n\r\n", "[||a]" },
	{ "data: a\r\r", "[||a]" },
	{ "data: a\r\n\rdata: b\n\r\n", "[||a][||b]" },
	{ "data: a\ndata: b\n\n", "[||a\nb]" },
	{ "data\n\n", "[||]" },
	{ "data:\ndata:\n\n", "[||\n]" },
	{ "\xef\xbb\xbf"
	  "data: a\n\n",
	  "[||a]" },
	{ "data: x\n\n\xef\xbb\xbf"
	  "data: a\n\n",
	  "[||x]" },
	{ "\xef\xbb\xbf\n", "" },
	{ "event: e\nid: 7\ndata: a\n\ndata: b\n\n", "[e|7|a][|7|b]" },
	{ "id: 7\ndata: a\n\nid\ndata: b\n\n", "[|7|a][||b]" },
	{ "event: lost\n\ndata: a\n\n", "[||a]" },
	{ ": comment\ndata: a\n: more\n\n", "[||a]" },
	{ "retry: 10\n\n", "" },
	{ "other: x\nDATA: y\ndata : z\n\n", "" },
	{ "data: never ended\n", "" },
	{ "data: {\"a\":\"b:c\"}\n\n", "[||{\"a\":\"b:c\"}]" },
	{ "\n\n\n", "" },
};

TEST(parses_the_same_however_it_is_cut, "")
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t cut = 1; cut < 20; cut++) {
			struct uar_buf out = uar_buf_make(1000);

			CHECK_INT(parse(uar_str_c(cases[i].in), cut, 100, &out), UAR_OK);
			CHECK_STR(uar_buf_str(&out), cases[i].want);
			uar_buf_fini(&out);
		}
}

TEST(ignores_an_id_with_a_nul, "")
{
	struct uar_buf out = uar_buf_make(1000);

	CHECK_INT(parse(UAR_STR("id: 1\nid: 2\0x\ndata: a\n\n"), 3, 100, &out), UAR_OK);
	CHECK_STR(uar_buf_str(&out), "[|1|a]");
	uar_buf_fini(&out);
}

TEST(bounds_lines_and_events, "")
{
	static const struct {
		const char *in;
		uar_err want;
	} rows[] = {
		{ "data: 1234\n\n", UAR_OK },
		{ "data: 12345\n\n", UAR_ETOOBIG },
		{ "data: 12345", UAR_ETOOBIG },
		{ ":234567890\n:234567890\n", UAR_OK },
		{ ":2345678901", UAR_ETOOBIG },
		{ "data:12345\ndata:6789\n\n", UAR_OK },
		{ "data:12345\ndata:67890\n\n", UAR_ETOOBIG },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t cut = 1; cut < 20; cut++) {
			struct uar_buf out = uar_buf_make(1000);

			CHECK_INT(parse(uar_str_c(rows[i].in), cut, 10, &out), rows[i].want);
			uar_buf_fini(&out);
		}
}

static uar_err refuse(void *ctx, const struct uar_sse_event *ev)
{
	(void)ev;
	++*(int *)ctx;
	return UAR_ECANCELED;
}

TEST(stops_when_the_callback_says_so, "")
{
	struct uar_sse_parser p;
	int n = 0;

	uar_sse_parser_init(&p, 100, refuse, &n);
	CHECK(uar_sse_parser_feed(&p, UAR_STR("data: a\n\ndata: b\n\n")) == UAR_ECANCELED);
	CHECK_INT(n, 1);
	uar_sse_parser_fini(&p);
}
