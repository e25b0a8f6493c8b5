/* fixture_test.c - a replay: whole, held back, at its own pace, from the middle, given up. */
#include "work/fixture.h"

#include "leap.h"
#include "pump.h"
#include "test.h"

#define LINE(AT) "{\"type\":\"T\",\"data\":{},\"at_ms\":" #AT "}\n"

static const char *folder(void)
{
	static const char *dir;

	return dir ? dir : (dir = uar_test_dir());
}

struct reader {
	struct uar_pump pump;
	struct leap leap;
	struct uar_fixture *f;
	bool opened, ended;
	size_t lines, refuse_every, refused;
	uint64_t last;
	uar_err why;
};

static uar_err on_opened(void *ctx)
{
	((struct reader *)ctx)->opened = true;
	return UAR_OK;
}

static uar_err on_line(void *ctx, uint64_t number, uar_str text, const struct uar_json *line)
{
	struct reader *r = ctx;

	CHECK(r->opened && line && text.n);
	if (r->refuse_every && ++r->refused % r->refuse_every) {
		uar_fixture_resume(r->f); /* of no use before it is refused */
		return UAR_EBUSY;
	}
	r->lines++;
	r->last = number;
	return UAR_OK;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct reader *r = ctx;

	(void)error;
	r->ended = true;
	r->why = why;
	r->f = NULL;
}

static void begin(struct reader *r, const char *name, uint64_t after, bool paced)
{
	uar_pump_init(&r->pump);
	leap_init(&r->leap);
	r->pump.sched.clock = &r->leap.clock;
	CHECK_INT(uar_fixture_open(
			  &(struct uar_fixture_options){
				  .sched = &r->pump.sched,
				  .dir = folder(),
				  .name = uar_str_c(name),
				  .after = after,
				  .paced = paced,
				  .sink = { on_opened, on_line, on_end, r },
			  },
			  &r->f),
		  UAR_OK);
	CHECK(!r->opened && !r->ended);
}

static void write_file(const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s.jsonl", folder(), name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

TEST(a_replay_begins_where_it_is_told, "API-16")
{
	write_file("three", LINE(0) "\r\n\n" LINE(1) LINE(2));
	for (uint64_t after = 0; after < 5; after++) {
		struct reader r = { 0 };

		begin(&r, "three", after, false);
		uar_pump_until(&r.pump, &r.ended);
		CHECK_INT(r.why, after > 3 ? UAR_ECURSOR : UAR_OK);
		CHECK_INT(r.lines, after > 3 ? 0 : 3 - after);
		CHECK_INT(r.opened, after <= 3);
		uar_pump_fini(&r.pump);
	}
}

TEST(what_is_not_taken_comes_again, "")
{
	struct reader r = { .refuse_every = 3 };

	write_file("three", LINE(0) LINE(0) LINE(0));
	begin(&r, "three", 0, false);
	while (!r.ended)
		if (!uar_pump_turn(&r.pump))
			uar_fixture_resume(r.f);
	CHECK_INT(r.lines, 3);
	CHECK_INT(r.refused, 9);
	uar_pump_fini(&r.pump);
}

TEST(the_pace_is_kept_and_goes_on_from_the_last_line, "API-16")
{
	struct reader r = { 0 };

	write_file("slow", LINE(0) LINE(3600000) LINE(7200000) LINE(-5));
	begin(&r, "slow", 1, true);
	while (uar_pump_turn(&r.pump))
		;
	CHECK_INT(r.lines, 0);
	leap_ahead(&r.leap, &r.pump.sched, 3600000000);
	uar_pump_count(&r.pump, &r.lines, 1);
	CHECK(!r.ended);
	leap_ahead(&r.leap, &r.pump.sched, 3600000000);
	uar_pump_until(&r.pump, &r.ended);
	CHECK_INT(r.lines, 3);
	CHECK_INT(r.last, 4);
	uar_pump_fini(&r.pump);
}

TEST(a_file_that_cannot_be_read_is_told, "ERR-08")
{
	static const struct {
		const char *name;
		uar_err why;
		size_t lines;
	} rows[] = { { "missing", UAR_ENOTFOUND, 0 }, { "../three", UAR_ENOTFOUND, 0 },
		     { "", UAR_ENOTFOUND, 0 },	      { "broken", UAR_ESYNTAX, 1 },
		     { "odd", UAR_EINVALID, 0 },      { "empty", UAR_OK, 0 } };

	write_file("broken", LINE(0) "{\"type\":\n");
	write_file("odd", "{\"type\":\"T\",\"data\":[]}\n");
	write_file("empty", "");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reader r = { 0 };

		begin(&r, rows[i].name, 0, false);
		uar_pump_until(&r.pump, &r.ended);
		CHECK_INT(r.why, rows[i].why);
		CHECK_INT(r.lines, rows[i].lines);
		uar_pump_fini(&r.pump);
	}
}

/* Closed before the file is there, and while it waits: nothing is told any more. */
TEST(a_replay_that_is_given_up_is_silent, "")
{
	write_file("slow", LINE(0) LINE(3600000));
	for (int turns = 0; turns < 4; turns++) {
		struct reader r = { 0 };
		size_t lines;

		begin(&r, "slow", 0, true);
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&r.pump);
		uar_fixture_close(r.f);
		lines = r.lines;
		uar_pump_fini(&r.pump);
		CHECK_INT(r.lines, lines);
		CHECK(!r.ended);
	}
	uar_fixture_close(NULL);
}

TEST(no_memory_is_told_and_leaves_nothing, "")
{
	struct reader r = { 0 };

	uar_pump_init(&r.pump);
	for (int n = 1; n <= 2; n++) {
		uar_test_fail_alloc(n);
		CHECK_INT(uar_fixture_open(&(struct uar_fixture_options){ .sched = &r.pump.sched,
									  .dir = "/",
									  .name = UAR_STR("x") },
					   &r.f),
			  UAR_ENOMEM);
		uar_test_fail_alloc(0);
	}
	uar_pump_fini(&r.pump);
}
