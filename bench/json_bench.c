/* json_bench.c - nanoseconds per operation of the JSON reader, writer and schemas.
 * Each figure is the best of several rounds: what the code costs, not the machine's mood. */
#include <stdio.h>

#include "base/clock.h"
#include "json/jw.h"
#include "json/schema.h"

enum { ROUNDS = 15 };

static const char event[] =
	"{\"id\":\"01936f1e-7c3a-7b2e-9d5a-3f6f0c1b2a4d\",\"type\":\"message.delta\",\"session_"
	"id\":"
	"\"01936f1e-7c3a-7b2e-9d5a-000000000001\",\"run_id\":\"01936f1e-7c3a-7b2e-9d5a-"
	"000000000002\","
	"\"sequence\":48213,\"run_sequence\":117,\"time\":\"2026-01-02T03:04:05.000006Z\","
	"\"payload\":{\"message_id\":\"m_1\",\"delta\":\"and so the answer is\",\"index\":3}}";

static struct uar_buf chat;

static void make_chat(void)
{
	struct uar_jw w;

	chat = uar_buf_make(65536);
	w = uar_jw_begin(&chat);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "model", UAR_STR("some-model-2026"));
	uar_jw_double(&w, "temperature", 0.7);
	uar_jw_int(&w, "max_tokens", 4096);
	uar_jw_bool(&w, "stream", true);
	uar_jw_arr(&w, "messages");
	for (int i = 0; i < 6; i++) {
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "role", i % 2 ? "assistant" : "user");
		uar_jw_str(
			&w, "content",
			UAR_STR("Please summarise the design document\nand say which parts are "
				"missing. The \"log\" is the product; everything else follows."));
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_arr(&w, "tools");
	for (int i = 0; i < 3; i++) {
		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "type", UAR_STR("function"));
		uar_jw_obj(&w, "function");
		uar_jw_str(&w, "name", UAR_STR("read_file"));
		uar_jw_str(&w, "description", UAR_STR("Reads a file from the workspace."));
		uar_jw_raw(&w, "parameters",
			   UAR_STR("{\"type\":\"object\",\"properties\":{\"path\":{\"type\":"
				   "\"string\"},\"limit\":{\"type\":\"integer\"}},\"required\":["
				   "\"path\"]}"));
		uar_jw_close(&w);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		abort();
}

static void parse(uar_str text, struct uar_arena *arena)
{
	const struct uar_json *j;

	if (uar_json_parse(text, NULL, arena, &j, NULL))
		abort();
	uar_arena_reset(arena);
}

static void parse_event(struct uar_arena *arena)
{
	parse(uar_str_n(event, sizeof event - 1), arena);
}

static void parse_chat(struct uar_arena *arena)
{
	parse(uar_buf_str(&chat), arena);
}

static struct uar_buf out;

static void write_event(struct uar_arena *arena)
{
	struct uar_jw w;

	(void)arena;
	uar_buf_clear(&out);
	w = uar_jw_begin(&out);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "id", UAR_STR("01936f1e-7c3a-7b2e-9d5a-3f6f0c1b2a4d"));
	uar_jw_str(&w, "type", UAR_STR("message.delta"));
	uar_jw_str(&w, "session_id", UAR_STR("01936f1e-7c3a-7b2e-9d5a-000000000001"));
	uar_jw_str(&w, "run_id", UAR_STR("01936f1e-7c3a-7b2e-9d5a-000000000002"));
	uar_jw_int(&w, "sequence", 48213);
	uar_jw_int(&w, "run_sequence", 117);
	uar_jw_time(&w, "time", 1767323045000006);
	uar_jw_obj(&w, "payload");
	uar_jw_str(&w, "message_id", UAR_STR("m_1"));
	uar_jw_str(&w, "delta", UAR_STR("and so the answer is"));
	uar_jw_int(&w, "index", 3);
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		abort();
}

/* --- a schema like those of event payloads --- */

static const char payload_schema[] =
	"{\"type\":\"object\",\"required\":[\"message_id\",\"delta\",\"index\"],\"properties\":{"
	"\"message_id\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128},"
	"\"delta\":{\"type\":\"string\"},\"index\":{\"type\":\"integer\",\"minimum\":0},"
	"\"role\":{\"enum\":[\"user\",\"assistant\",\"system\",\"tool\"]},"
	"\"final\":{\"type\":\"boolean\"},\"cost\":{\"type\":\"number\"}},"
	"\"additionalProperties\":false}";
static const char payload_text[] =
	"{\"message_id\":\"m_1\",\"delta\":\"and so the answer is\",\"index\":3,\"role\":"
	"\"assistant\",\"final\":false,\"cost\":0.25}";

static struct uar_schema *schema;
static const struct uar_json *payload;

static void make_schema(struct uar_arena *arena)
{
	const struct uar_json *document;

	if (uar_json_parse(uar_str_c(payload_schema), NULL, arena, &document, NULL) ||
	    uar_json_parse(uar_str_c(payload_text), NULL, arena, &payload, NULL) ||
	    uar_schema_create(document, NULL, &schema, NULL))
		abort();
}

static void validate(struct uar_arena *arena)
{
	if (uar_schema_validate(schema, payload, arena, NULL))
		abort();
}

static void measure(const char *name, size_t bytes, void (*fn)(struct uar_arena *))
{
	const struct uar_clock *clock = &uar_clock_system;
	struct uar_arena arena;
	double best = 1e9;
	int times = 20000;

	uar_arena_init(&arena, 0);
	for (int round = 0; round < ROUNDS; round++) {
		int64_t started = uar_clock_mono(clock);

		for (int i = 0; i < times; i++)
			fn(&arena);
		double ns = (double)(uar_clock_mono(clock) - started) * 1000 / times;

		best = ns < best ? ns : best;
	}
	uar_arena_fini(&arena);
	printf("%-28s %8zu B %9.0f ns/op\n", name, bytes, best);
}

int main(void)
{
	struct uar_arena none;

	uar_arena_init(&none, 0);
	make_chat();
	make_schema(&none);
	out = uar_buf_make(4096);
	write_event(&none);
	measure("json parse event", sizeof event - 1, parse_event);
	measure("json parse chat request", chat.n, parse_chat);
	measure("json write event", out.n, write_event);
	measure("schema, 6 properties", sizeof payload_text - 1, validate);
	uar_schema_destroy(schema);
	uar_arena_fini(&none);
	uar_buf_fini(&out);
	uar_buf_fini(&chat);
	return 0;
}
