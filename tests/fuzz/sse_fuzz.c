/* sse_fuzz.c - the event parser: any bytes give the same events however they are
 * cut. The first byte says how to cut. */
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
	uar_buf_fini(&whole);
	uar_buf_fini(&cut);
	return 0;
}
