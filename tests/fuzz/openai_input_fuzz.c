/* openai_input_fuzz.c - bytes as the body of a chat completion and of a response: what is
 * accepted names a model, and what is kept of it is JSON again. */
#include <stdlib.h>

#include "json/jw.h"
#include "proto/openai.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fine)
{
	if (!fine)
		abort();
}

static void check_kept(uar_str text, struct uar_arena *arena)
{
	const struct uar_json *j = NULL;

	require(!text.n ||
		(!uar_json_parse(text, NULL, arena, &j, NULL) && j->kind == UAR_JSON_OBJECT));
}

static void check_input(const struct uar_openai_input *in, struct uar_arena *arena)
{
	require(in->model.n > 0);
	check_kept(in->client, arena);
	check_kept(in->context, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_arena arena = { 0 };
	struct uar_error error = { 0 };
	struct uar_openai_input in;
	const struct uar_json *j;

	if (!uar_json_parse(uar_str_n((const char *)data, size), NULL, &arena, &j, NULL) &&
	    j->kind == UAR_JSON_OBJECT) {
		if (!uar_openai_chat_read(j, &arena, &in, &error))
			check_input(&in, &arena);
		if (!uar_openai_responses_read(j, &arena, &in, &error))
			check_input(&in, &arena);
	}
	uar_arena_fini(&arena);
	return 0;
}
