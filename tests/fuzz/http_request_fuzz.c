/* http_request_fuzz.c - the request reader: any bytes, whole and in pieces, give
 * the same requests and the same refusal. The first byte says how to cut. */
#include "../lib/http_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void compare(const struct uar_buf *whole, uar_str in, size_t first, size_t cut)
{
	struct uar_buf other = uar_buf_make(1 << 26);

	trace_run(in, first, cut, &other);
	must(uar_str_eq(uar_buf_str(whole), uar_buf_str(&other)));
	uar_buf_fini(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_buf whole = uar_buf_make(1 << 26);
	uar_str in;

	if (size == 0)
		return 0;
	in = uar_str_n((const char *)data + 1, size - 1);
	trace_run(in, 0, 0, &whole);
	compare(&whole, in, 0, 1);
	compare(&whole, in, data[0], 0);
	compare(&whole, in, data[0] % 16, 1 + data[0] / 16);
	uar_buf_fini(&whole);
	return 0;
}
