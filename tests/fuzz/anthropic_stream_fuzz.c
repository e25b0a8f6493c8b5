/* anthropic_stream_fuzz.c - an answer of Anthropic's Messages. */
#include "model_stream_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_stream(&uar_dialect_anthropic, data, size);
}
