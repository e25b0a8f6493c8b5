/* cursor_fuzz.c - ids of events as clients send them: what is read is written the same. */
#include "gate/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t incarnations[] = { 1, 7, 1763431200 };

	for (size_t i = 0; i < 3; i++) {
		struct uar_buf b = uar_buf_make(64);
		uar_str text = uar_str_n((const char *)data, size);
		struct uar_cursor at;
		uint64_t n, again;

		if (gate_cursor_parse(text, incarnations[i], &n) == UAR_OK) {
			gate_cursor_put(&b, incarnations[i], n);
			if (gate_cursor_parse(uar_buf_str(&b), incarnations[i], &again) ||
			    again != n)
				abort();
			if (gate_cursor_parse_frame(text, incarnations[i], &at) ||
			    at.run_sequence != n || at.k != UINT32_MAX)
				abort();
		}
		uar_buf_fini(&b);
	}
	return 0;
}
