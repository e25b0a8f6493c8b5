/* range_fuzz.c - no Range header means bytes that are not there. */
#include <stdlib.h>

#include "http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_http_range r = { 0, 0 };
	uint64_t total = size ? data[0] : 0;

	if (size == 0)
		return 0;
	if (uar_http_range(uar_str_n((const char *)data + 1, size - 1), total, &r) == UAR_OK &&
	    (r.count == 0 || r.first >= total || r.count > total - r.first))
		abort();
	return 0;
}
