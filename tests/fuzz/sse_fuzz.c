/* sse_fuzz.c - the event parser: any bytes give the same events however they are
 * cut, and what was framed is parsed back. The first byte says how to cut. */
#include "base/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 300 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

static uar_err note(void *ctx, const struct uar_sse_event *ev)
{
	must(ev->data.n <= MAX && ev->event.n <= MAX && ev->id.n <= MAX);
	uar_buf_printf(ctx, "[%zu|%zu|%zu]", ev->event.n, ev->id.n, ev->data.n);
	uar_buf_add_str(ctx, ev->event);
	uar_buf_add_str(ctx, ev->id);
	uar_buf_add_str(ctx, ev->data);
	return UAR_OK;
}

static void parse(uar_str in, size_t cut, struct uar_buf *out)
{
	struct uar_sse_parser p;
	uar_err e = UAR_OK;

	uar_sse_parser_init(&p, MAX, note, out);
	for (size_t n; in.n > 0 && !e; in = uar_str_from(in, n)) {
		n = cut && cut < in.n ? cut : in.n;
		e = uar_sse_parser_feed(&p, uar_str_n(in.p, n));
	}
	uar_buf_printf(out, "(%d)", (int)e);
	uar_sse_parser_fini(&p);
}

/* The one event, with every line end as LF. */
static uar_err is_same(void *ctx, const struct uar_sse_event *ev)
{
	struct uar_buf *want = ctx;

	must(uar_str_eq(ev->data, uar_buf_str(want)));
	uar_buf_clear(want);
	uar_buf_add_str(want, UAR_STR("seen"));
	return UAR_OK;
}

static void round_trip(uar_str data)
{
	struct uar_buf framed = uar_buf_make(1 << 26), want = uar_buf_make(1 << 26);
	struct uar_sse_parser p;

	for (size_t i = 0; i < data.n; i++) {
		bool crlf = data.p[i] == '\r' && i + 1 < data.n && data.p[i + 1] == '\n';

		if (!crlf)
			uar_buf_add_char(&want, data.p[i] == '\r' ? '\n' : data.p[i]);
	}
	uar_sse_put_comment(&framed, data);
	uar_sse_put(&framed, data, data, data);
	uar_sse_parser_init(&p, 1 << 20, is_same, &want);
	must(uar_sse_parser_feed(&p, uar_buf_str(&framed)) == UAR_OK);
	must(uar_str_is(uar_buf_str(&want), "seen"));
	uar_sse_parser_fini(&p);
	uar_buf_fini(&framed);
	uar_buf_fini(&want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_buf whole = uar_buf_make(1 << 26), cut = uar_buf_make(1 << 26);
	uar_str in;

	if (size == 0)
		return 0;
	in = uar_str_n((const char *)data + 1, size - 1);
	parse(in, 0, &whole);
	parse(in, 1 + data[0] % 17, &cut);
	must(uar_str_eq(uar_buf_str(&whole), uar_buf_str(&cut)));
	round_trip(in);
	uar_buf_fini(&whole);
	uar_buf_fini(&cut);
	return 0;
}
