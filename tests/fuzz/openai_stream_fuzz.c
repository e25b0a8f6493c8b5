/* openai_stream_fuzz.c - an answer of OpenAI's chat completions. */
#include "model_stream_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_stream(&uar_dialect_openai_chat, data, size);
}
