/* kb_text_fuzz.c - passages of any text, and the words of any HTML. */
#include <stdlib.h>

#include "memory/chunk.h"

static uar_err check_chunk(void *ctx, const struct uar_chunk *c)
{
	size_t *bytes = ctx;

	if (!c->text.n || c->text.n > UAR_LIMIT_KB_CHUNK_MAX || !c->line || !c->page)
		abort();
	*bytes += c->text.n;
	return UAR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text = uar_str_n((const char *)data, size);
	struct uar_buf words = uar_buf_make(4 * size + 64);
	size_t bytes = 0;

	uar_html_text(text, &words);
	for (int kind = UAR_CHUNK_TEXT; kind <= UAR_CHUNK_CODE && uar_utf8_valid(text); kind++) {
		bytes = 0;
		if (uar_chunk_text(text, (enum uar_chunk_kind)kind, check_chunk, &bytes) ||
		    bytes > size)
			abort();
	}
	uar_buf_fini(&words);
	return 0;
}
