/* http_response_fuzz.c - the client's response reader: any bytes, any cuts.
 *
 * The first byte says where the input is cut; read whole or in pieces, the
 * outcome and the body must be the same. */
#include <stdint.h>

#include "app/http_answer.h"

struct outcome {
	struct uar_buf body;
	uar_err e;
	int status;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uar_err collect(void *ctx, uar_str bytes)
{
	struct uar_buf *b = ctx;

	uar_buf_add_str(b, bytes);
	return b->err;
}

static struct outcome read_in_pieces(uar_str bytes, size_t piece)
{
	struct outcome o = { .body = uar_buf_make(1 << 20) };
	struct uar_answer a;

	uar_answer_init(&a, collect, &o.body);
	while (bytes.n && !o.e) {
		size_t take = bytes.n < piece ? bytes.n : piece;

		o.e = uar_answer_feed(&a, uar_str_n(bytes.p, take), NULL);
		bytes = uar_str_from(bytes, take);
	}
	if (!o.e)
		o.e = uar_answer_end(&a, NULL);
	o.status = a.status;
	uar_answer_fini(&a);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uar_str bytes;
	struct outcome whole, cut;

	if (n < 2)
		return 0;
	bytes = uar_str_n((const char *)data + 1, n - 1);
	whole = read_in_pieces(bytes, bytes.n);
	cut = read_in_pieces(bytes, 1 + data[0] % 7);
	if (whole.e != cut.e || whole.status != cut.status ||
	    !uar_str_eq(uar_buf_str(&whole.body), uar_buf_str(&cut.body)))
		__builtin_trap();
	uar_buf_fini(&whole.body);
	uar_buf_fini(&cut.body);
	return 0;
}
