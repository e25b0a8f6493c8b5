/* a2a_public_fuzz.c - messages of the public A2A protocol: what is accepted has its ids and
 * something to say, in either version; problems are JSON whatever they quote. */
#include <stdlib.h>

#include "json/limits.h"
#include "proto/a2a_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fine)
{
	if (!fine)
		abort();
}

static void check_input(const struct uar_a2a_input *in, struct uar_arena *arena)
{
	const struct uar_json *j;

	require(uar_str_is_id(in->message_id) && in->text.n);
	require(!in->context_id.n || uar_str_is_id(in->context_id));
	require(!in->task_id.n || uar_str_is_id(in->task_id));
	if (in->client.n)
		require(!uar_json_parse(in->client, NULL, arena, &j, NULL) &&
			j->kind == UAR_JSON_OBJECT);
}

static void check_problem(uar_str text, struct uar_arena *arena)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	const struct uar_a2a_problem p = { .which = UAR_A2A_PARAMS, .text = text, .where = text };
	const struct uar_json *j;

	uar_a2a_problem(&b, &p);
	require(b.err || !uar_json_parse(uar_buf_str(&b), NULL, arena, &j, NULL));
	uar_buf_fini(&b);
}

/* What becomes a header has no line end, and what is kept is read as it was. */
static void check_push(const struct uar_a2a_push *push, struct uar_arena *arena)
{
	const uar_str *texts[] = { &push->url, &push->token, &push->scheme, &push->credentials };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *j = NULL;
	struct uar_a2a_push kept;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < texts[i]->n; k++)
			require(texts[i]->p[k] >= ' ' && texts[i]->p[k] <= '~');
	uar_a2a_keep_push(&w, push);
	require(!uar_jw_end(&w));
	require(!uar_json_parse(uar_buf_str(&b), NULL, arena, &j, NULL));
	uar_a2a_kept_push(j, &kept);
	require(uar_str_eq(kept.url, push->url) && uar_str_eq(kept.token, push->token) &&
		uar_str_eq(kept.credentials, push->credentials) && kept.old == push->old);
	uar_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text = uar_str_n((const char *)data, size);
	const struct uar_json *j = NULL;
	struct uar_error error = { 0 };
	struct uar_a2a_input in;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(text, NULL, &arena, &j, NULL))
		for (int old = 0; old < 2; old++)
			if (!uar_a2a_read_send(j, &arena, old, &in, &error)) {
				check_input(&in, &arena);
				check_push(&in.push, &arena);
			}
	check_problem(text, &arena);
	uar_arena_fini(&arena);
	return 0;
}
