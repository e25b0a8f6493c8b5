/* a2a_fuzz.c - messages between agents: what is accepted is complete, comes out of the
 * writer, reads back and means the same. */
#include <stdlib.h>

#include "event/limits.h"
#include "json/limits.h"
#include "proto/a2a.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fine)
{
	if (!fine)
		abort();
}

static void check_message(const struct uar_a2a_message *m)
{
	require(uar_str_is_id(m->message_id) && uar_str_is_id(m->from_agent) &&
		uar_str_is_id(m->conversation_id));
	require(m->agent.n && m->agent.n <= UAR_LIMIT_A2A_AGENT && m->peer.n <= UAR_LIMIT_A2A_PEER);
	require(m->payload->kind == UAR_JSON_OBJECT && m->type.n);
	require(uar_str_is(m->type, "cancel") == (m->cancel_run.n > 0));
	require(!m->attachments || m->attachments->count <= UAR_LIMIT_A2A_ATTACHMENTS);
}

static void check_again(const struct uar_a2a_message *m, struct uar_arena *arena)
{
	char first[UAR_SHA256_TEXT + 1], second[UAR_SHA256_TEXT + 1];
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES), preview = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_a2a_message back;
	const struct uar_json *j;

	uar_a2a_write(&w, NULL, m);
	require(!uar_jw_end(&w));
	require(!uar_json_parse(uar_buf_str(&b), NULL, arena, &j, NULL));
	require(!uar_a2a_read(j, &back, NULL));
	check_message(&back);
	require(!uar_a2a_fingerprint(m, first) && !uar_a2a_fingerprint(&back, second));
	require(strcmp(first, second) == 0);
	require(!uar_a2a_preview(m, &preview) && uar_utf8_valid(uar_buf_str(&preview)));
	uar_buf_fini(&b);
	uar_buf_fini(&preview);
}

/* The same bytes as the payload of an event. */
static void check_event(uar_str text, struct uar_arena *arena)
{
	struct uar_event ev = { .cls = UAR_EV_CHANNEL_MESSAGE, .payload = text, .refs = text };
	struct uar_a2a_stored s;

	if (!uar_a2a_stored_read(&ev, arena, &s))
		require(s.blob.n == 0 || s.blob.n == UAR_SHA256_TEXT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text = uar_str_n((const char *)data, size);
	struct uar_arena arena = { 0 };
	struct uar_error error = { 0 };
	struct uar_a2a_message m;
	const struct uar_json *j;

	if (!uar_json_parse(text, NULL, &arena, &j, NULL) && !uar_a2a_read(j, &m, &error)) {
		check_message(&m);
		check_again(&m, &arena);
	}
	check_event(text, &arena);
	uar_arena_fini(&arena);
	return 0;
}
