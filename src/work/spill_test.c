/* spill_test.c - recorded values that are longer than an event: nothing is lost, and
 * what is kept apart is found where the event says. */
#include "work/spill.h"

#include "base/sha256.h"
#include "event/limits.h"
#include "memory_store.h"
#include "stage.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

enum { LONG = 20000, HUGE_BYTES = 2000000 };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_runtime *rt;
	const char *fixtures;
	struct uar_run_create op;
	bool done;
};

static void rise(struct world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .store = w->store,
								     .fixtures_dir = w->fixtures });
}

static void open_world(struct world *w)
{
	*w = (struct world){ .fixtures = uar_test_dir() };
	uar_stage_open(&w->pump, &w->store, NULL);
	rise(w);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, NULL);
}

static void settle(struct world *w)
{
	uar_stage_settle(&w->pump);
}

static void created(struct uar_run_create *op)
{
	CHECK_INT(op->err, UAR_OK);
	UAR_OWNER(op, struct world, op)->done = true;
}

static void begin(struct world *w)
{
	w->op = (struct uar_run_create){ .owner = owner,
					 .agent_id = UAR_STR("fixture"),
					 .inputs = UAR_STR(
						 "{\"fixture\":\"long\",\"pace\":\"full\"}"),
					 .done = created };
	CHECK_INT(uar_runtime_create_run(w->rt, &w->op), UAR_OK);
	uar_pump_until(&w->pump, &w->done);
}

static void put_many(FILE *f, const char *unit, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fputs(unit, f);
}

/* One of each that may be long; *out_lines says how many lines that is. */
static void write_long(const char *dir)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/long.jsonl", dir);
	f = fopen(path, "w");
	REQUIRE(f != NULL);
	fputs("{\"type\":\"ToolStart\",\"data\":{\"tool_call_id\":\"c\",\"tool\":\"t\",\"input\":{"
	      "\"text\":\"",
	      f);
	put_many(f, "i", LONG);
	fputs("\"}}}\n{\"type\":\"ToolDelta\",\"data\":{\"tool_call_id\":\"c\",\"delta\":\"", f);
	put_many(f, "\\u0001", LONG);
	fputs("\"}}\n{\"type\":\"ToolEnd\",\"data\":{\"tool_call_id\":\"c\",\"output\":[", f);
	put_many(f, "\"o\",", LONG);
	fputs("1],\"ok\":true}}\n", f);
	fputs("{\"type\":\"ToolStart\",\"data\":{\"tool_call_id\":\"d\",\"tool\":\"t\",\"input\":{}"
	      "}}\n{\"type\":\"ToolEnd\",\"data\":{\"tool_call_id\":\"d\",\"output\":\"",
	      f);
	put_many(f, "\\\"", LONG);
	fputs("\",\"ok\":false}}\n{\"type\":\"Artifact\",\"data\":{\"artifact\":{\"artifact_id\":"
	      "\"a\",\"artifact_type\":\"text\",\"title\":\"t\",\"metadata\":{\"k\":1},\"content\":"
	      "\"",
	      f);
	put_many(f, "\xc3\xa4", HUGE_BYTES / 2);
	fputs("\"}}}\n{\"type\":\"RunDone\",\"data\":{}}\n", f);
	CHECK_INT(fclose(f), 0);
}

struct fetch {
	struct uar_blob_get get;
	bool done;
};

static void fetched(struct uar_blob_get *get)
{
	UAR_OWNER(get, struct fetch, get)->done = true;
}

/* The blob that the event's ref names has that many bytes and begins so. */
static void check_blob(struct world *w, const struct uar_event *ev, size_t bytes, const char *start)
{
	size_t at = uar_str_find(ev->refs, '/') + 2; /* blob://<sha256>"} */
	struct fetch f = { .get = { .limit = HUGE_BYTES * 2, .done = fetched } };

	REQUIRE(ev->refs.n > at + 64);
	memcpy(f.get.sha256, ev->refs.p + at, 64);
	CHECK_INT(w->store->ops->blob_get(w->store, &f.get), UAR_OK);
	uar_pump_until(&w->pump, &f.done);
	CHECK_INT(f.get.err, UAR_OK);
	CHECK_INT(f.get.bytes.n, bytes);
	CHECK(uar_str_starts(f.get.bytes, uar_str_c(start)));
	uar_store_blob_get_fini(&f.get);
}

struct look {
	struct uar_read r;
	bool done;
};

static void looked(struct uar_read *r)
{
	UAR_OWNER(r, struct look, r)->done = true;
}

static const struct {
	enum uar_event_class cls;
	size_t bytes;
	const char *start, *preview; /* pointer to what the event itself holds */
} wants[] = {
	{ UAR_EV_TOOL_ARGS, LONG + 11, "{\"text\":\"iii", "/args" },
	{ UAR_EV_TOOL_PROGRESS, LONG, "\x01\x01", "/partial" },
	{ UAR_EV_TOOL_RESULT, 4 * LONG + 3, "[\"o\",\"o\"", "/preview" },
	{ UAR_EV_TOOL_FAILED, LONG, "\"\"\"", "/preview" },
	{ UAR_EV_ARTIFACT_CHANGED, HUGE_BYTES, "\xc3\xa4", "/preview" },
};

static void check_log(struct world *w)
{
	struct look l = { .r = { .owner = owner,
				 .run_id = uar_str_c(w->op.run_id),
				 .limit = UAR_LIMIT_READ_PAGE,
				 .done = looked } };
	size_t found = 0, spilled = 0, over = 0;

	CHECK_INT(w->store->ops->read(w->store, &l.r), UAR_OK);
	uar_pump_until(&w->pump, &l.done);
	for (size_t i = 0; i < l.r.event_count; i++) {
		const struct uar_event *ev = &l.r.events[i];
		const struct uar_json *p = NULL;

		spilled += ev->cls == UAR_EV_OUTPUT_SPILLED;
		over += ev->cls == UAR_EV_TASK_ATTEMPT_COMPLETED;
		for (size_t k = 0; k < ARRAY_LEN(wants); k++) {
			if (ev->cls != wants[k].cls || !ev->refs.n)
				continue;
			found++;
			check_blob(w, ev, wants[k].bytes, wants[k].start);
			CHECK_INT(uar_json_parse(ev->payload, NULL, &l.r.arena, &p, NULL), UAR_OK);
			p = uar_json_pointer(p, uar_str_c(wants[k].preview));
			CHECK(uar_json_str(p, UAR_STR("")).n > 600);
			CHECK(uar_str_starts(uar_json_str(p, UAR_STR("")),
					     uar_str_c(wants[k].start)));
		}
	}
	CHECK_INT(found, ARRAY_LEN(wants));
	CHECK_INT(spilled, ARRAY_LEN(wants));
	CHECK_INT(over, 1);
	uar_store_read_fini(&l.r);
}

TEST(long_values_of_a_recording_are_kept_apart, "STAT-14 PERF-10")
{
	struct world w;

	open_world(&w);
	write_long(w.fixtures);
	begin(&w);
	settle(&w);
	check_log(&w);
	close_world(&w);
}

/* Killed after every number of turns: each line is there once, with its blob. */
TEST(a_kill_between_blob_and_event_loses_and_doubles_nothing, "")
{
	for (int turns = 0; turns < 40; turns++) {
		struct world w;

		open_world(&w);
		write_long(w.fixtures);
		begin(&w);
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		uar_store_memory_crash(w.store, 0);
		uar_runtime_destroy(w.rt);
		rise(&w);
		settle(&w);
		check_log(&w);
		close_world(&w);
	}
}

static void check_kept(const char *line, bool kept)
{
	const struct uar_json *j;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	CHECK_INT(uar_json_parse(uar_str_c(line), NULL, &arena, &j, NULL), UAR_OK);
	CHECK((rt_spill_of(j) == NULL) == kept);
	uar_arena_fini(&arena);
}

TEST(short_values_and_other_events_stay_as_they_are, "")
{
	check_kept("{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"x\"}}", true);
	check_kept("{\"type\":\"ToolEnd\",\"data\":{}}", true);
	check_kept("{\"type\":\"ToolEnd\",\"data\":{\"output\":null}}", true);
	check_kept("{\"type\":\"ToolEnd\",\"data\":{\"output\":12}}", true);
	check_kept("{\"type\":\"ToolEnd\",\"data\":{\"output\":\"short\"}}", true);
	check_kept("{\"type\":\"Artifact\",\"data\":{\"artifact\":{\"content\":\"x\"}}}", true);
	check_kept("{\"type\":\"Artifact\",\"data\":{}}", true);
}
