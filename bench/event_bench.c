/* event_bench.c - what one event costs: the check at append, writing, reading.
 * Each figure is the best of several rounds: what the code costs, not the machine's mood. */
#include <stdio.h>

#include "event/event.h"
#include "json/limits.h"

enum { ROUNDS = 600, EACH = 500 }; /* short rounds, so that some are left alone */

static const char delta[] = "{\"message_id\":\"0190b4a0-0000-7000-8000-0000000000cc\","
			    "\"index\":117,\"kind\":\"text\",\"text\":\"and so the answer is\"}";
static const char queued[] =
	"{\"status\":\"queued\",\"reason\":\"scheduler\",\"position\":0,\"plugin_id\":\"core\","
	"\"entry_id\":\"llm.chat\",\"agent_id\":\"assistant\",\"mode\":\"async\"}";
static const char result[] =
	"{\"tool_name\":\"read_file\",\"ok\":true,\"status\":\"completed\",\"preview\":{\"lines\":"
	"12,"
	"\"text\":\"The first lines of a file that somebody wanted to read.\"},\"empty\":false,"
	"\"truncated\":false,\"output_bytes\":4711,\"duration_ms\":12,\"persistence\":\"inline\"}";

struct bench {
	struct uar_event ev;
	struct uar_arena arena;
	struct uar_buf buf;
};

static struct uar_event make(enum uar_event_class cls, uar_str payload)
{
	struct uar_event ev = { .cls = cls,
				.event_id = UAR_STR("0190b4a0-0000-7000-8000-000000000001"),
				.time_us = 1700000000123456,
				.sequence = 48213,
				.run_sequence = 117,
				.payload = payload };
	uint32_t ids = UAR_IDS_CALL | UAR_ID_BIT(UAR_ID_MODEL_REQUEST);

	for (unsigned i = 0; i < UAR_ID_COUNT; i++)
		if (ids & UAR_ID_BIT(i))
			ev.ids[i] = UAR_STR("0190b4a0-0000-7000-8000-0000000000aa");
	return ev;
}

static void check(struct bench *b)
{
	struct uar_error error;

	if (uar_event_check(&b->ev, &b->arena, &error)) {
		fprintf(stderr, "%s: %s\n", error.where, error.text);
		exit(1);
	}
}

static void write_stored(struct bench *b)
{
	struct uar_jw w;

	uar_buf_clear(&b->buf);
	w = uar_jw_begin(&b->buf);
	uar_event_write_stored(&w, &b->ev, 0);
	if (uar_jw_end(&w))
		exit(1);
}

static void write_full(struct bench *b)
{
	struct uar_jw w;

	uar_buf_clear(&b->buf);
	w = uar_jw_begin(&b->buf);
	uar_event_write(&w, NULL, &b->ev, 0);
	if (uar_jw_end(&w))
		exit(1);
}

/* What write_full left in the buffer. */
static void read_back(struct bench *b)
{
	const struct uar_json *j;
	struct uar_event ev;

	if (uar_json_parse(uar_buf_str(&b->buf), NULL, &b->arena, &j, NULL) ||
	    uar_event_read(j, NULL, &b->arena, &ev, NULL))
		exit(1);
}

static void parse_alone(struct bench *b)
{
	const struct uar_json *j;

	if (uar_json_parse(b->ev.payload, NULL, &b->arena, &j, NULL))
		exit(1);
}

static void class_of(struct bench *b)
{
	volatile enum uar_event_class cls = uar_event_class_of(uar_event_type(&b->ev));

	(void)cls;
}

static void measure(const char *what, struct bench *b, void (*fn)(struct bench *b))
{
	int64_t best = INT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t start = uar_clock_mono(&uar_clock_system), took;

		for (int i = 0; i < EACH; i++) {
			fn(b);
			uar_arena_reset(&b->arena);
		}
		took = uar_clock_mono(&uar_clock_system) - start;
		best = took < best ? took : best;
	}
	printf("%-28s %-14s %8.1f ns\n", what, uar_event_info[b->ev.cls].type,
	       (double)best * 1000 / EACH);
}

int main(void)
{
	struct bench b[] = { { .ev = make(UAR_EV_MODEL_DELTA, uar_str_c(delta)) },
			     { .ev = make(UAR_EV_TASK_QUEUED, uar_str_c(queued)) },
			     { .ev = make(UAR_EV_TOOL_RESULT, uar_str_c(result)) } };

	for (size_t i = 0; i < ARRAY_LEN(b); i++) {
		b[i].buf = uar_buf_make(UAR_LIMIT_JSON_BYTES);
		uar_arena_init(&b[i].arena, 0);
		measure("check", &b[i], check);
		measure("  of it parsing the payload", &b[i], parse_alone);
		measure("write, stored form", &b[i], write_stored);
		measure("write, full envelope", &b[i], write_full);
		measure("read, full envelope", &b[i], read_back);
		measure("class of a type", &b[i], class_of);
		uar_arena_fini(&b[i].arena);
		uar_buf_fini(&b[i].buf);
	}
	return 0;
}
