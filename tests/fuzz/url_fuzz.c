/* url_fuzz.c - percent-decoding and query lookup of any bytes; what was decoded
 * and escaped again must decode to itself. */
#include "http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void round_trip(struct uar_arena *a, uar_str plain)
{
	struct uar_buf escaped = uar_buf_make(1 << 26);
	uar_str again;

	for (size_t i = 0; i < plain.n; i++)
		uar_buf_printf(&escaped, "%%%02X", (unsigned char)plain.p[i]);
	must(uar_http_decode(a, uar_buf_str(&escaped), &again) == UAR_OK);
	must(uar_str_eq(again, plain));
	uar_buf_fini(&escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str in = uar_str_n((const char *)data, size), out;
	struct uar_arena a;
	struct uar_http_request r = { .query = in, .arena = &a };

	uar_arena_init(&a, 0);
	if (uar_http_decode(&a, in, &out) == UAR_OK) {
		must(out.n <= in.n && uar_str_find(out, 0) == out.n);
		round_trip(&a, out);
	}
	if (uar_http_query(&r, "a", &out) == UAR_OK && out.p) {
		must(out.n < in.n && uar_str_find(out, 0) == out.n);
		round_trip(&a, out);
	}
	uar_arena_fini(&a);
	return 0;
}
