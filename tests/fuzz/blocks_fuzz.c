/* blocks_fuzz.c - an answer's blocks are the same whole and byte by byte. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "agent/blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_blocks whole, bytes;

	uar_blocks_init(&whole);
	uar_blocks_init(&bytes);
	uar_blocks_feed(&whole, uar_str_n((const char *)data, size));
	for (size_t i = 0; i < size; i++)
		uar_blocks_feed(&bytes, uar_str_n((const char *)data + i, 1));
	uar_blocks_end(&whole);
	uar_blocks_end(&bytes);
	assert(whole.count == bytes.count && whole.dropped == bytes.dropped);
	for (size_t i = 0; i < whole.count; i++) {
		assert(strcmp(whole.at[i].language, bytes.at[i].language) == 0);
		assert(strcmp(whole.at[i].title, bytes.at[i].title) == 0);
		assert(uar_str_eq(uar_buf_str(&whole.at[i].text), uar_buf_str(&bytes.at[i].text)));
	}
	uar_blocks_fini(&whole);
	uar_blocks_fini(&bytes);
	return 0;
}
