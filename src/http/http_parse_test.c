/* http_parse_test.c - the request reader against the corpus, however it is cut. */
#include "test.h"

#include "http_corpus.h"
#include "http_trace.h"

static const char next_request[] = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";

/* What the trace of a case, followed by another request, has to be. */
static void expect(const struct http_case *c, struct uar_buf *out)
{
	size_t target = uar_str_find(c->bytes, ' ') + 1;
	uar_str rest = uar_str_from(c->bytes, target);

	if (c->status != 200)
		return;
	uar_buf_add(out, "200 ", 4);
	uar_buf_add(out, c->bytes.p, target);
	uar_buf_add(out, rest.p, uar_str_find(rest, ' '));
	uar_buf_printf(out, " %zu ", c->body.n);
	uar_buf_add_str(out, c->body);
	uar_buf_add_str(out, UAR_STR("\n"));
	if (!c->closes)
		uar_buf_add_str(out, UAR_STR("200 GET /next 0 \n"));
}

static void check_whole(void *ctx, const struct http_case *c)
{
	struct uar_buf in = uar_buf_make(1 << 22), got = uar_buf_make(1 << 22),
		       want = uar_buf_make(1 << 22);
	uar_err e;

	(void)ctx;
	uar_buf_add_str(&in, c->bytes);
	uar_buf_add_str(&in, uar_str_c(next_request));
	e = trace_run(uar_buf_str(&in), 0, 0, &got).refused;
	expect(c, &want);
	if (c->status == 200)
		CHECK_MSG(uar_str_eq(uar_buf_str(&got), uar_buf_str(&want)),
			  "%s: %.*s\n    gave %.*s", c->name, (int)(in.n < 300 ? in.n : 300), in.p,
			  UAR_FMT(uar_buf_str(&got)));
	else
		CHECK_MSG(uar_err_http(e) == c->status, "%s: %.*s\n    gave %d, wanted %d", c->name,
			  (int)(in.n < 300 ? in.n : 300), in.p, uar_err_http(e), c->status);
	CHECK_MSG(c->status == 200 || !strstr(uar_buf_str(&got).p, "/next"), "%s: served after",
		  c->name);
	uar_buf_fini(&in);
	uar_buf_fini(&got);
	uar_buf_fini(&want);
}

TEST(corpus_is_taken_or_refused_as_it_should_be, "")
{
	size_t n = uar_test_http_corpus(check_whole, NULL);

	CHECK_MSG(n >= 400, "only %zu cases", n);
	printf("  %zu cases\n", n);
}

static void check_cuts(void *ctx, const struct http_case *c)
{
	struct uar_buf in = uar_buf_make(1 << 22), whole = uar_buf_make(1 << 22),
		       cut = uar_buf_make(1 << 22);
	size_t step;

	(void)ctx;
	uar_buf_add_str(&in, c->bytes);
	uar_buf_add_str(&in, uar_str_c(next_request));
	trace_run(uar_buf_str(&in), 0, 0, &whole);
	step = in.n < 3000 ? 1 : in.n / 50;
	for (size_t first = 0; first < in.n; first += step) {
		uar_buf_clear(&cut);
		trace_run(uar_buf_str(&in), first, 0, &cut);
		if (!CHECK_MSG(uar_str_eq(uar_buf_str(&whole), uar_buf_str(&cut)),
			       "%s cut at %zu gave %.*s", c->name, first,
			       UAR_FMT(uar_buf_str(&cut))))
			break;
	}
	for (size_t every = 1; every <= 7; every += 3) {
		uar_buf_clear(&cut);
		trace_run(uar_str_n(in.p, in.n < 40000 ? in.n : 40000), 0, every, &cut);
		CHECK_MSG(in.n > 40000 || uar_str_eq(uar_buf_str(&whole), uar_buf_str(&cut)),
			  "%s in pieces of %zu gave %.*s", c->name, every,
			  UAR_FMT(uar_buf_str(&cut)));
	}
	uar_buf_fini(&in);
	uar_buf_fini(&whole);
	uar_buf_fini(&cut);
}

TEST(cuts_make_no_difference, "")
{
	CHECK(uar_test_http_corpus(check_cuts, NULL) >= 400);
}

TEST(reads_everything_of_a_head, "")
{
	static const char text[] = "POST /a/b?c=d HTTP/1.1\r\nHost: h:1\r\nX-One:  1 2\t\r\n"
				   "Expect: 100-continue\r\nContent-Length: 12\r\n\r\n";
	struct uar_http_head h;
	struct uar_error error = { 0 };
	size_t at = 0, n = 0;

	REQUIRE(uar_http_find_head(uar_str_c(text), &at, &n, &error) == UAR_OK);
	CHECK_INT(n, sizeof text - 1);
	REQUIRE(uar_http_parse_head(uar_str_c(text), &h, &error) == UAR_OK);
	CHECK(h.method == UAR_HTTP_POST && h.framing == UAR_HTTP_LENGTH && h.length == 12);
	CHECK(h.keep_alive && h.expect_continue && !h.http10);
	CHECK_STR(h.target, "/a/b?c=d");
	CHECK_STR(h.path, "/a/b");
	CHECK_STR(h.query, "c=d");
	CHECK_INT(h.header_count, 4);
	CHECK_STR(h.headers[1].name, "X-One");
	CHECK_STR(h.headers[1].value, "1 2");
	CHECK_STR(h.fields[UAR_HTTP_HOST], "h:1");
	CHECK_STR(h.fields[UAR_HTTP_EXPECT], "100-continue");
	CHECK(!h.fields[UAR_HTTP_ORIGIN].p && !h.fields[UAR_HTTP_AUTHORIZATION].p);
}

TEST(an_empty_field_is_there_and_counts_as_one, "")
{
	static const char once[] = "GET / HTTP/1.1\r\nHost: a\r\nORIGIN:\r\n"
				   "Connection: x\r\nConnection: close\r\n\r\n";
	static const char twice[] = "GET / HTTP/1.1\r\nHost: a\r\norigin:\r\n"
				    "Origin: http://a\r\n\r\n";
	struct uar_http_head h;
	struct uar_error error = { 0 };

	REQUIRE(uar_http_parse_head(uar_str_c(once), &h, &error) == UAR_OK);
	CHECK(h.fields[UAR_HTTP_ORIGIN].p && h.fields[UAR_HTTP_ORIGIN].n == 0);
	CHECK_STR(h.fields[UAR_HTTP_CONNECTION], "x");
	CHECK(!h.keep_alive);
	CHECK(uar_http_parse_head(uar_str_c(twice), &h, &error) == UAR_ESYNTAX);
	CHECK_STR(uar_str_c(error.where), "origin");
}

TEST(says_where_a_head_is_wrong, "")
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n";
	struct uar_http_head h;
	struct uar_error error = { 0 };

	CHECK(uar_http_parse_head(uar_str_c(text), &h, &error) == UAR_ESYNTAX);
	CHECK_STR(uar_str_c(error.where), "Content-Length");
	CHECK_STR(uar_str_c(error.text), "digits only");
}

TEST(methods_have_names, "")
{
	for (int m = 0; m < UAR_HTTP_METHOD_COUNT; m++)
		CHECK(uar_http_method_name((enum uar_http_method)m)[0] >= 'A');
	CHECK_STR(uar_str_c(uar_http_method_name(UAR_HTTP_METHOD_COUNT)), "?");
}
