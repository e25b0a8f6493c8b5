/* mark_fuzz.c - uar.mark as it is found: what is read was written so, byte for byte. */
#include "store/sqlite/mark.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[SQ_MARK_TEXT + 1];
	struct sq_mark m;

	if (sq_mark_read(uar_str_n((const char *)data, size), &m) != UAR_OK)
		return 0;
	sq_mark_write(&m, text);
	if (size != SQ_MARK_TEXT || memcmp(text, data, SQ_MARK_TEXT) != 0)
		abort();
	return 0;
}
