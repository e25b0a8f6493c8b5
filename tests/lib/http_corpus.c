/* http_corpus.c - the tables behind http_corpus.h. */
#include "http_corpus.h"

#include "base/buf.h"

struct gen {
	http_case_fn *fn;
	void *ctx;
	size_t count;
	struct uar_buf buf;
};

static void emit(struct gen *g, struct http_case c)
{
	c.bytes = uar_buf_str(&g->buf);
	g->fn(g->ctx, &c);
	g->count++;
	uar_buf_clear(&g->buf);
}

static void refused(struct gen *g, const char *name, int status)
{
	emit(g, (struct http_case){ .name = name, .status = status });
}

static void taken(struct gen *g, const char *name, const char *body)
{
	emit(g, (struct http_case){ .name = name, .status = 200, .body = uar_str_c(body) });
}

static void add(struct gen *g, const char *text)
{
	uar_buf_add_str(&g->buf, uar_str_c(text));
}

/* --- request lines ----------------------------------------------------------------- */

static const struct {
	const char *line;
	int status;
} lines[] = {
	{ "GET / HTTP/1.1", 200 },
	{ "GET /a/b?c=d&e=%20f HTTP/1.1", 200 },
	{ "GET /?? HTTP/1.1", 200 },
	{ "GET //double HTTP/1.1", 200 },
	{ "GET /../.. HTTP/1.1", 200 },
	{ "GET /{}|[]^` HTTP/1.1", 200 },
	{ "GET /http://a/ HTTP/1.1", 200 },
	{ "DELETE /x HTTP/1.1", 200 },
	{ "PUT /x HTTP/1.1", 200 },
	{ "PATCH /x HTTP/1.1", 200 },
	{ "OPTIONS /x HTTP/1.1", 200 },
	{ "OPTIONS * HTTP/1.1", 200 },
	{ "GET * HTTP/1.1", 400 },
	{ "GET  / HTTP/1.1", 400 },
	{ "GET /  HTTP/1.1", 400 },
	{ " GET / HTTP/1.1", 400 },
	{ "GET / HTTP/1.1 ", 400 },
	{ "GET /a b HTTP/1.1", 400 },
	{ "GET\t/\tHTTP/1.1", 400 },
	{ "GET\t/ HTTP/1.1", 400 },
	{ "GET /\tHTTP/1.1", 400 },
	{ "GET /a\tb HTTP/1.1", 400 },
	{ "GET", 400 },
	{ "GET /", 400 },
	{ "GET / ", 400 },
	{ "GET  HTTP/1.1", 400 },
	{ "", 400 },
	{ " ", 400 },
	{ "/", 400 },
	{ "GET / HTTP", 400 },
	{ "GET / HTTP/", 400 },
	{ "GET / HTTP/1", 400 },
	{ "GET / HTTP/1.", 400 },
	{ "GET / HTTP/11", 400 },
	{ "GET / HTTP/1.1.1", 400 },
	{ "GET / HTTP/1.10", 400 },
	{ "GET / HTTP/01.1", 400 },
	{ "GET / HTTP/1,1", 400 },
	{ "GET / HTTP /1.1", 400 },
	{ "GET / http/1.1", 400 },
	{ "GET / Http/1.1", 400 },
	{ "GET / HTTPS/1.1", 400 },
	{ "GET / ICE/1.1", 400 },
	{ "GET / HTTP/-1.1", 400 },
	{ "GET / HTTP/a.b", 400 },
	{ "GET / HTTP/1.x", 400 },
	{ "GET / HTTP/1.2", 505 },
	{ "GET / HTTP/1.9", 505 },
	{ "GET / HTTP/0.9", 505 },
	{ "GET / HTTP/2.0", 505 },
	{ "GET / HTTP/3.0", 505 },
	{ "GET / HTTP/9.9", 505 },
	{ "PRI * HTTP/2.0", 505 },
	{ "get / HTTP/1.1", 501 },
	{ "Get / HTTP/1.1", 501 },
	{ "GETT / HTTP/1.1", 501 },
	{ "GE / HTTP/1.1", 501 },
	{ "CONNECT a:443 HTTP/1.1", 501 },
	{ "TRACE / HTTP/1.1", 501 },
	{ "PROPFIND / HTTP/1.1", 501 },
	{ "M-SEARCH * HTTP/1.1", 501 },
	{ "X / HTTP/1.1", 501 },
	{ "G@T / HTTP/1.1", 400 },
	{ "G:T / HTTP/1.1", 400 },
	{ "(GET) / HTTP/1.1", 400 },
	{ "\"GET\" / HTTP/1.1", 400 },
	{ "G\xc3\x89T / HTTP/1.1", 400 },
	{ "GET http://a/ HTTP/1.1", 400 },
	{ "GET https://a/ HTTP/1.1", 400 },
	{ "GET a:80 HTTP/1.1", 400 },
	{ "GET a HTTP/1.1", 400 },
	{ "GET ?x HTTP/1.1", 400 },
	{ "GET #x HTTP/1.1", 400 },
	{ "GET /x#y HTTP/1.1", 400 },
	{ "GET \\x HTTP/1.1", 400 },
	{ "GET /x\\y HTTP/1.1", 400 },
	{ "GET /\"x\" HTTP/1.1", 400 },
	{ "GET /<x> HTTP/1.1", 400 },
	{ "GET /\xc3\xa9 HTTP/1.1", 400 },
	{ "GET /\xff HTTP/1.1", 400 },
};

static void request_lines(struct gen *g)
{
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		add(g, lines[i].line);
		add(g, "\r\nHost: a\r\n\r\n");
		if (lines[i].status == 200)
			taken(g, "request line", "");
		else
			refused(g, "request line", lines[i].status);
	}
}

/* --- header lines, at every place of the head ----------------------------------------- */

static const struct {
	const char *line;
	int status;
} headers[] = {
	{ "X: y", 200 },
	{ "X:y", 200 },
	{ "X:", 200 },
	{ "X:  \t y \t ", 200 },
	{ "X: \xc3\xa9\xff", 200 },
	{ "X: a:b:c", 200 },
	{ "!#$%&'*+-.^_`|~09AZaz: x", 200 },
	{ "Content-Length: 0", 200 },
	{ "Content-Length:0", 200 },
	{ "content-LENGTH: 000", 200 },
	{ "Connection: keep-alive", 200 },
	{ "Connection: Upgrade", 200 },
	{ "Expect: 100-continue", 200 },
	{ "Expect: 100-Continue", 200 },
	{ "Transfer_Encoding: chunked", 200 },
	{ "Content_Length: 5", 200 },
	{ "X-Transfer-Encoding: chunked", 200 },
	{ "TE: trailers", 200 },
	{ "Trailer: X", 200 },
	{ "X : y", 400 },
	{ "X\t: y", 400 },
	{ "X", 400 },
	{ ": y", 400 },
	{ ":", 400 },
	{ " X: y", 400 },
	{ "\tX: y", 400 },
	{ " ", 400 },
	{ "\t", 400 },
	{ " folded", 400 },
	{ "\tfolded", 400 },
	{ "X Y: z", 400 },
	{ "X(Y): z", 400 },
	{ "X@Y: z", 400 },
	{ "X,Y: z", 400 },
	{ "X;Y: z", 400 },
	{ "X/Y: z", 400 },
	{ "X[Y]: z", 400 },
	{ "X{Y}: z", 400 },
	{ "X=Y: z", 400 },
	{ "X?Y: z", 400 },
	{ "X\\Y: z", 400 },
	{ "\"X\": z", 400 },
	{ "<X>: z", 400 },
	{ "X\xc3\xa9: y", 400 },
	{ "\xff: y", 400 },
	{ "GET / HTTP/1.1", 400 },
	{ "Host: b", 400 },
	{ "HOST: a", 400 },
	{ "Host:", 400 },
	{ "Host : a", 400 },
	{ "Content-Length", 400 },
	{ "Content-Length:", 400 },
	{ "Content-Length: ", 400 },
	{ "Content-Length : 0", 400 },
	{ "Content-Length\t: 0", 400 },
	{ " Content-Length: 0", 400 },
	{ "Content-Length: +0", 400 },
	{ "Content-Length: -0", 400 },
	{ "Content-Length: -1", 400 },
	{ "Content-Length: 0x0", 400 },
	{ "Content-Length: 0,0", 400 },
	{ "Content-Length: 0, 0", 400 },
	{ "Content-Length: 0;", 400 },
	{ "Content-Length: 0.0", 400 },
	{ "Content-Length: 0e0", 400 },
	{ "Content-Length: 0 0", 400 },
	{ "Content-Length: \"0\"", 400 },
	{ "Content-Length: zero", 400 },
	{ "Content-Length: \xc2\xb2", 400 },
	{ "Content-Length: 0\r\nContent-Length: 0", 400 },
	{ "Content-Length: 0\r\nContent-Length: 1", 400 },
	{ "Content-Length: 0\r\nX: y\r\ncontent-length: 0", 400 },
	{ "Content-Length: 0\r\n 5", 400 },
	{ "Content-Length:\r\n 5", 400 },
	{ "Content-Length: 0\t", 400 },
	{ "Content-Length:\t0", 400 },
	{ "Transfer-Encoding: chunked\t", 400 },
	{ "Transfer-Encoding:\tchunked", 400 },
	{ "Content-Length: 1001", 413 },
	{ "Content-Length: 4294967296", 413 },
	{ "Content-Length: 4294967297", 413 },
	{ "Content-Length: 9223372036854775807", 413 },
	{ "Content-Length: 9223372036854775808", 413 },
	{ "Content-Length: 18446744073709551615", 413 },
	{ "Content-Length: 18446744073709551616", 413 },
	{ "Content-Length: 18446744073709551617", 413 },
	{ "Content-Length: 99999999999999999999999999999999999999999", 413 },
	{ "Content-Length: 00000000000000000000000000000000000000000", 413 },
	{ "Transfer-Encoding: identity", 501 },
	{ "Transfer-Encoding: gzip", 501 },
	{ "Transfer-Encoding: gzip, chunked", 501 },
	{ "Transfer-Encoding: chunked, gzip", 501 },
	{ "Transfer-Encoding: chunked, chunked", 501 },
	{ "Transfer-Encoding: chunked,", 501 },
	{ "Transfer-Encoding: ,chunked", 501 },
	{ "Transfer-Encoding: chunked;q=1", 501 },
	{ "Transfer-Encoding: xchunked", 501 },
	{ "Transfer-Encoding: chunkedx", 501 },
	{ "Transfer-Encoding: \"chunked\"", 501 },
	{ "Transfer-Encoding: 'chunked'", 501 },
	{ "Transfer-Encoding: chunked\xa0", 501 },
	{ "Transfer-Encoding: \xef\xbb\xbf"
	  "chunked",
	  501 },
	{ "Transfer-Encoding: c hunked", 501 },
	{ "Transfer-Encoding:", 501 },
	{ "Transfer-Encoding: x", 501 },
	{ "Transfer-Encoding : chunked", 400 },
	{ "Transfer-Encoding\t: chunked", 400 },
	{ " Transfer-Encoding: chunked", 400 },
	{ "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400 },
	{ "Transfer-Encoding: chunked\r\ntransfer-encoding: identity", 400 },
	{ "Transfer-Encoding:\r\n chunked", 501 },
	{ "X: y\r\n Transfer-Encoding: chunked", 400 },
	{ "Content-Length: 0\r\nTransfer-Encoding: chunked", 400 },
	{ "Transfer-Encoding: chunked\r\nContent-Length: 0", 400 },
	{ "Content-Length: 5\r\nTransfer-Encoding: CHUNKED", 400 },
	{ "Content-Length: 5\r\nX: y\r\nTransfer-Encoding: chunked", 400 },
	{ "Content-Length: 5\r\nTransfer-Encoding: identity", 501 },
	{ "Expect: 200-ok", 417 },
	{ "Expect: 100-continue, x", 417 },
	{ "Expect: 100", 417 },
	{ "Expect:", 417 },
	{ "Authorization: a\r\nAuthorization: b", 400 },
	{ "Content-Type: a/b\r\ncontent-type: c/d", 400 },
	{ "Origin: http://a\r\nOrigin: null", 400 },
};

static const struct {
	const char *before, *after;
} places[] = {
	{ "GET /x HTTP/1.1\r\n", "Host: a\r\n\r\n" },
	{ "GET /x HTTP/1.1\r\nHost: a\r\n", "\r\n" },
	{ "POST /x HTTP/1.1\r\nAccept: */*\r\nHost: a\r\n", "User-Agent: x/1\r\n\r\n" },
};

static void header_lines(struct gen *g)
{
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		for (size_t k = 0; k < ARRAY_LEN(places); k++) {
			add(g, places[k].before);
			add(g, headers[i].line);
			add(g, "\r\n");
			add(g, places[k].after);
			if (headers[i].status == 200)
				taken(g, "header line", "");
			else
				refused(g, "header line", headers[i].status);
		}
}

static const struct {
	const char *value;
	int status;
} hosts[] = {
	{ "a", 200 },	  { "a.b:80", 200 },   { "127.0.0.1", 200 }, { "[::1]:8080", 200 },
	{ "a-b_c", 200 }, { "", 400 },	       { "a b", 400 },	     { "a,b", 400 },
	{ "a/b", 400 },	  { "http://a", 400 }, { "a@b", 400 },	     { "a?b", 400 },
	{ "a#b", 400 },	  { "\xc3\xa9", 400 }, { "a\tb", 400 },	     { "<a>", 400 },
	{ "\"a\"", 400 }, { "a\\b", 400 },     { "{a}", 400 },	     { "a|b", 400 },
};

static void host_values(struct gen *g)
{
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		uar_buf_printf(&g->buf, "GET /x HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i].value);
		if (hosts[i].status == 200)
			taken(g, "host", "");
		else
			refused(g, "host", hosts[i].status);
	}
	add(g, "GET /x HTTP/1.1\r\nX: y\r\n\r\n");
	refused(g, "no host", 400);
	add(g, "GET /x HTTP/1.1\r\n\r\n");
	refused(g, "no headers", 400);
}

/* --- control characters, everywhere ---------------------------------------------------- */

static void control_characters(struct gen *g)
{
	static const struct {
		const char *before, *after;
	} spots[] = {
		{ "", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ "G", "ET /x HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ "GET /", "x HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ "GET /x HTTP/1.1", "\r\nHost: a\r\n\r\n" },
		{ "GET /x HTTP/1.1\r\nHost: a\r\nX", ": y\r\n\r\n" },
		{ "GET /x HTTP/1.1\r\nHost: a\r\nX: ", "y\r\n\r\n" },
		{ "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0", "\r\n\r\n" },
		{ "GET /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", "\r\n\r\n0\r\n\r\n" },
	};

	for (int c = 0; c < 128; c++) {
		if (c == '\t' || (c >= 32 && c < 127))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(spots); i++) {
			add(g, spots[i].before);
			uar_buf_add_char(&g->buf, (char)c);
			add(g, spots[i].after);
			if (c == '\r' && (i == 3 || i >= 6)) /* CR CR LF */
				refused(g, "doubled CR", 400);
			else
				refused(g, "control character", 400);
		}
	}
}

/* Each line end of a good request, written in each wrong way. */
static void line_ends(struct gen *g)
{
	static const char *const good[] = { "POST /x HTTP/1.1", "Host: a", "Content-Length: 2",
					    "" };
	static const char *const ends[] = { "\n", "\r", "\n\r", "\r\r\n", "\r\n\n", "\n\n", " \n" };

	for (size_t bad = 0; bad < ARRAY_LEN(good); bad++)
		for (size_t e = 0; e < ARRAY_LEN(ends); e++) {
			/* after the empty line a lone LF or CR is a byte of the body */
			if (bad == 3 && strcmp(ends[e], "\r\n\n") == 0)
				continue;
			for (size_t i = 0; i < ARRAY_LEN(good); i++) {
				add(g, good[i]);
				add(g, i == bad ? ends[e] : "\r\n");
			}
			add(g, "hi");
			refused(g, "line end", 400);
		}
}

/* --- bodies -------------------------------------------------------------------------- */

static const struct {
	const char *bytes;
	int status;
	const char *body;
} chunks[] = {
	{ "0\r\n\r\n", 200, "" },
	{ "00000000\r\n\r\n", 200, "" },
	{ "5\r\nhello\r\n0\r\n\r\n", 200, "hello" },
	{ "05\r\nhello\r\n0\r\n\r\n", 200, "hello" },
	{ "1\r\na\r\n2\r\nbc\r\n000\r\n\r\n", 200, "abc" },
	{ "a\r\n0123456789\r\n0\r\n\r\n", 200, "0123456789" },
	{ "A\r\n0123456789\r\n0\r\n\r\n", 200, "0123456789" },
	{ "4\r\n\r\n\r\n\r\n0\r\n\r\n", 200, "\r\n\r\n" },
	{ "5\r\n0\r\n\r\n\r\n0\r\n\r\n", 200, "0\r\n\r\n" },
	{ "5;x\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5;x=y\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5; x\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5;\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5 ;x\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5;x\nhello\r\n0\r\n\r\n", 400, "" },
	{ "0;x\r\n\r\n", 400, "" },
	{ "5 \r\nhello\r\n0\r\n\r\n", 400, "" },
	{ " 5\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5\t\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5\rhello\r\n0\r\n\r\n", 400, "" },
	{ "5\r\nhello\n0\r\n\r\n", 400, "" },
	{ "5\r\nhello\r0\r\n\r\n", 400, "" },
	{ "5\r\nhello0\r\n\r\n", 400, "" },
	{ "5\r\nhello!\r\n0\r\n\r\n", 400, "" },
	{ "5\r\nhell\r\n0\r\n\r\n", 400, "" },
	{ "5\r\nhello\r\n\r\n0\r\n\r\n", 400, "" },
	{ "\r\n5\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "\r\n\r\n", 400, "" },
	{ "+5\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "-5\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "-0\r\n\r\n", 400, "" },
	{ "0x5\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5h\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "g\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5.0\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5,5\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "5_0\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "\"5\"\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "\xef\xbc\x95\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "000000005\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "100000000\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "10000000000000005\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "ffffffffffffffff\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "fffffffffffffffff\r\nhello\r\n0\r\n\r\n", 400, "" },
	{ "ffffffff\r\nhello\r\n0\r\n\r\n", 413, "" },
	{ "80000000\r\nhello\r\n0\r\n\r\n", 413, "" },
	{ "3e9\r\nhello\r\n0\r\n\r\n", 413, "" },
	{ "1\r\na\r\n3e8\r\nhello\r\n0\r\n\r\n", 413, "" },
	{ "0\r\nX: y\r\n\r\n", 400, "" },
	{ "0\r\nContent-Length: 5\r\n\r\n", 400, "" },
	{ "0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "" },
	{ "0\r\nHost: b\r\n\r\n", 400, "" },
	{ "0\r\n X\r\n\r\n", 400, "" },
	{ "0\r\n\n", 400, "" },
	{ "0\n\n", 400, "" },
	{ "0\n\r\n", 400, "" },
	{ "0\r\r\n\r\n", 400, "" },
	{ "0\r\n\rX", 400, "" },
	{ "0\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", 400, "" },
	{ "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", 400, "" },
	{ "5\r\nhello\r\n0\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", 400, "" },
};

static void chunked_bodies(struct gen *g)
{
	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		add(g, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n");
		add(g, chunks[i].bytes);
		if (chunks[i].status == 200)
			taken(g, "chunks", chunks[i].body);
		else
			refused(g, "chunks", chunks[i].status);
	}
}

static void length_bodies(struct gen *g)
{
	static const char *const bodies[] = { "", "x", "hello", "0\r\n\r\n",
					      "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" };

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		uar_buf_printf(&g->buf,
			       "PUT /x HTTP/1.1\r\nContent-Length: %zu\r\nHost: a\r\n\r\n%s",
			       strlen(bodies[i]), bodies[i]);
		taken(g, "length", bodies[i]);
		uar_buf_printf(&g->buf,
			       "GET /x HTTP/1.1\r\nHost: a\r\ncontent-length: 0%zu\r\n\r\n%s",
			       strlen(bodies[i]), bodies[i]);
		taken(g, "length of a GET", bodies[i]);
	}
}

/* --- versions, connections -------------------------------------------------------------- */

static void closing(struct gen *g)
{
	static const char *const heads[] = {
		"GET /x HTTP/1.0\r\n\r\n",
		"GET /x HTTP/1.0\r\nHost: a\r\n\r\n",
		"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"GET /x HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: a\r\nConnection: x , CLOSE\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: a\r\nConnection: ,,close,,\r\n\r\n",
	};
	static const struct {
		const char *head;
		int status;
	} bad[] = {
		{ "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400 },
		{ "POST /x HTTP/1.0\r\nTransfer-Encoding: identity\r\n\r\n", 400 },
		{ "GET /x HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400 },
		{ "GET /x HTTP/1.0\r\nHost:\r\n\r\n", 400 },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505 },
		{ "\x16\x03\x01\x02\x01\xfc\x03\x03", 400 },
		{ "SSH-2.0-x\r\n\r\n", 400 },
		{ "\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	};

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		add(g, heads[i]);
		emit(g, (struct http_case){ .name = "closing",
					    .status = 200,
					    .closes = true,
					    .body = UAR_STR("") });
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		add(g, bad[i].head);
		refused(g, "other protocols", bad[i].status);
	}
}

/* --- sizes ---------------------------------------------------------------------------- */

static void fill(struct gen *g, const char *unit, size_t times)
{
	for (size_t i = 0; i < times; i++)
		add(g, unit);
}

/* A GET whose head has exactly `total` bytes. */
static void head_of(struct gen *g, size_t total)
{
	static const char frame[] = "GET /x HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";

	add(g, "GET /x HTTP/1.1\r\nHost: a\r\nX: ");
	fill(g, "y", total - (sizeof frame - 1));
	add(g, "\r\n\r\n");
}

static void sizes(struct gen *g)
{
	static const size_t heads[] = { 100, 4000, 8191, 16383, 16384 };
	static const size_t big[] = { 16385, 16386, 17000, 65535, 65536, 65537, 1000000 };
	static const size_t many[] = { 101, 102, 500, 10000 };

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		head_of(g, heads[i]);
		taken(g, "head size", "");
	}
	for (size_t i = 0; i < ARRAY_LEN(big); i++) {
		head_of(g, big[i]);
		refused(g, "head size", 431);
		add(g, "GET /");
		fill(g, "y", big[i]);
		add(g, " HTTP/1.1\r\nHost: a\r\n\r\n");
		refused(g, "target size", 414);
		fill(g, "Y", big[i]);
		add(g, " / HTTP/1.1\r\nHost: a\r\n\r\n");
		refused(g, "method size", 414);
	}
	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		add(g, "GET / HTTP/1.1\r\nHost: a\r\n");
		fill(g, "a:b\r\n", many[i] - 1);
		add(g, "\r\n");
		refused(g, "header count", 431);
	}
	add(g, "GET / HTTP/1.1\r\nHost: a\r\n");
	fill(g, "a:b\r\n", 99);
	add(g, "\r\n");
	taken(g, "header count", "");
	add(g, "GET /");
	fill(g, "y", 4095);
	add(g, " HTTP/1.1\r\nHost: a\r\n\r\n");
	taken(g, "target size", "");
	add(g, "GET /");
	fill(g, "y", 4096);
	add(g, " HTTP/1.1\r\nHost: a\r\n\r\n");
	refused(g, "target size", 414);
}

size_t uar_test_http_corpus(http_case_fn *fn, void *ctx)
{
	struct gen g = { .fn = fn, .ctx = ctx, .buf = uar_buf_make(1 << 22) };

	request_lines(&g);
	header_lines(&g);
	host_values(&g);
	control_characters(&g);
	line_ends(&g);
	chunked_bodies(&g);
	length_bodies(&g);
	closing(&g);
	sizes(&g);
	uar_buf_fini(&g.buf);
	return g.count;
}
