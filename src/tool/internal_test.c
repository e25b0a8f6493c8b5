/* internal_test.c - the registry of internal tools, and the life of their calls. */
#include "test.h"
#include "tooled.h"

#include <dirent.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/schema.h"
#include "loop/limits.h"
#include "tool/internal_int.h"
#include "tool/limits.h"

TEST(every_entry_is_whole, "")
{
	struct tooled f;
	size_t count = 0;

	REQUIRE(tooled_init(&f, uar_test_dir()));
	for (const struct uar_tool *t; (t = f.tools->ops->at(f.tools, count)); count++) {
		struct uar_arena arena = { 0 };
		const struct uar_json *tags;

		CHECK(uar_str_starts(t->tool_id, UAR_STR("internal:")));
		CHECK(uar_str_eq(uar_str_from(t->tool_id, 9), t->name));
		CHECK(t->description.n > 0 && t->version.n > 0 && t->timeout_us > 0);
		CHECK_STR(t->transport, "internal");
		CHECK(uar_json_parse(t->tags, NULL, &arena, &tags, NULL) == UAR_OK &&
		      tags->kind == UAR_JSON_ARRAY && tags->count > 0);
		CHECK(uar_tools_find(f.tools, NULL, t->tool_id) == t);
		CHECK(uar_tools_by_model_name(f.tools, NULL, t->model_name) == t);
		CHECK(t->effect == UAR_TOOL_READ_ONLY || t->ask);
		uar_arena_fini(&arena);
	}
	CHECK(count > 0);
	tooled_fini(&f);
}

TEST(time_now_tells_the_time, "")
{
	struct tooled f;
	struct uar_arena arena = { 0 };
	const struct uar_json *j;
	int64_t before, told, shifted;

	REQUIRE(tooled_init(&f, NULL));
	before = uar_clock_wall(uar_loop_sched(f.loop)->clock);
	REQUIRE(tooled_call(&f, "internal:time.now", "{}"));
	REQUIRE(uar_json_parse(uar_buf_str(&f.output), NULL, &arena, &j, NULL) == UAR_OK);
	CHECK(uar_time_parse(uar_json_str(uar_json_get(j, UAR_STR("time")), UAR_STR("")), &told) ==
	      UAR_OK);
	CHECK(told >= before);
	CHECK_INT(uar_json_int(uar_json_get(j, UAR_STR("unix_seconds")), 0), told / 1000000);
	REQUIRE(tooled_call(&f, "internal:time.now", "{\"utc_offset\":\"-23:59\"}"));
	uar_arena_reset(&arena);
	REQUIRE(uar_json_parse(uar_buf_str(&f.output), NULL, &arena, &j, NULL) == UAR_OK);
	CHECK(uar_time_parse(uar_json_str(uar_json_get(j, UAR_STR("time")), UAR_STR("")),
			     &shifted) == UAR_OK);
	CHECK(shifted >= told); /* the same moment, told differently */
	CHECK(strstr(f.output.p, "-23:59") != NULL);
	uar_arena_fini(&arena);
	tooled_fini(&f);
}

TEST(arguments_that_the_schema_refuses_run_nothing, "TOOL-06")
{
	static const struct {
		const char *input, *where;
		uar_err e;
	} cases[] = {
		{ "", "1:1", UAR_EINVALID },
		{ "{", "1:2", UAR_EINVALID },
		{ "{}x", "1:3", UAR_EINVALID },
		{ "[]", "", UAR_ESCHEMA },
		{ "null", "", UAR_ESCHEMA },
		{ "{\"utc_offset\":2}", "/utc_offset", UAR_ESCHEMA },
		{ "{\"utc_offset\":\"2\"}", "/utc_offset", UAR_ESCHEMA },
		{ "{\"utc_offset\":\"+24:00\"}", "/utc_offset", UAR_ESCHEMA },
		{ "{\"zone\":1}", "", UAR_ESCHEMA },
		{ "{\"utc_offset\":\"+01:00\",\"utc_offset\":\"+02:00\"}", "1:24", UAR_EINVALID },
	};
	struct tooled f;

	REQUIRE(tooled_init(&f, NULL));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_tool_call *call = NULL;
		struct uar_tool_request r = { .tool = uar_tools_find(f.tools, NULL,
								     UAR_STR("internal:time.now")),
					      .input = uar_str_c(cases[i].input) };
		struct uar_tool_events events = tooled_events(&f);

		CHECK_INT(f.tools->ops->check(f.tools, r.tool, r.input, &error), cases[i].e);
		CHECK_INT(error.code, cases[i].e);
		CHECK(error.text[0] != 0);
		CHECK_STR(uar_str_c(error.where), cases[i].where);
		CHECK_INT(f.tools->ops->start(f.tools, &r, &events, &call, &error), cases[i].e);
		CHECK(!call);
	}
	CHECK_INT(f.dones, 0);
	tooled_fini(&f);
}

TEST(cancelled_calls_say_nothing, "")
{
	struct tooled f;

	REQUIRE(tooled_init(&f, NULL));
	REQUIRE(tooled_start(&f, "internal:time.now", "{}"));
	f.tools->ops->cancel(f.tools, f.call);
	REQUIRE(tooled_call(&f, "internal:time.now", "{}")); /* the loop has turned */
	CHECK_INT(f.dones, 1);
	REQUIRE(tooled_start(&f, "internal:time.now", "{}"));
	tooled_fini(&f); /* likewise with the registry */
}

/* --- workers that have something else to do -------------------------------------------- */

struct blocker {
	struct uar_work work;
	sem_t at_work, go;
	bool done;
};

static void wait_for_go(struct uar_work *w)
{
	struct blocker *b = UAR_OWNER(w, struct blocker, work);

	sem_post(&b->at_work);
	while (sem_wait(&b->go) != 0) {}
}

static void on_gone(struct uar_work *w)
{
	UAR_OWNER(w, struct blocker, work)->done = true;
}

static bool block(struct tooled *f, struct blocker *b)
{
	for (int i = 0; i < UAR_LIMIT_WORK_THREADS; i++) {
		b[i] = (struct blocker){ .work = { .work = wait_for_go, .done = on_gone } };
		if (!CHECK(sem_init(&b[i].go, 0, 0) == 0) ||
		    !CHECK(sem_init(&b[i].at_work, 0, 0) == 0) ||
		    !CHECK(uar_work_begin(uar_loop_sched(f->loop), &b[i].work) == UAR_OK))
			return false;
	}
	return true;
}

static void unblock(struct blocker *b)
{
	for (int i = 0; i < UAR_LIMIT_WORK_THREADS; i++)
		sem_post(&b[i].go);
}

static void put(const char *path)
{
	FILE *f = fopen(path, "w");

	if (CHECK(f != NULL))
		fclose(f);
}

TEST(a_tool_that_takes_its_time_holds_up_nobody, "TOOL-05")
{
	struct blocker b[UAR_LIMIT_WORK_THREADS];
	struct tooled f;

	REQUIRE(tooled_init(&f, uar_test_dir()));
	REQUIRE(block(&f, b));
	REQUIRE(tooled_start(&f, "internal:fs.list", "{}")); /* no thread is free for it */
	REQUIRE(tooled_call(&f, "internal:time.now", "{}"));
	CHECK_INT(f.dones, 1);
	unblock(b);
	uar_loop_run(f.loop);
	CHECK_INT(f.dones, 2);
	CHECK(strstr(f.output.p, "entries") != NULL);
	tooled_fini(&f);
}

TEST(a_tool_that_takes_too_long_is_told, "")
{
	struct blocker b[UAR_LIMIT_WORK_THREADS];
	struct uar_tool *tool;
	struct tooled f;
	const char *dir = uar_test_dir();
	char path[500];

	snprintf(path, sizeof path, "%s/stays", dir);
	put(path);
	REQUIRE(tooled_init(&f, dir));
	REQUIRE(block(&f, b));
	tool = (struct uar_tool *)(uintptr_t)uar_tools_find(f.tools, NULL,
							    UAR_STR("internal:fs.delete"));
	tool->timeout_us = 1000;
	CHECK(tooled_fails(&f, "internal:fs.delete", "{\"path\":\"stays\"}", "timeout",
			   "never began"));
	CHECK(f.retryable);
	unblock(b);
	tooled_fini(&f); /* what was taken is finished */
	CHECK(b[0].done && b[UAR_LIMIT_WORK_THREADS - 1].done);
	CHECK(access(path, F_OK) == 0);
}

TEST(what_is_cancelled_before_it_began_never_begins, "")
{
	struct blocker b[UAR_LIMIT_WORK_THREADS];
	struct tooled f;
	const char *dir = uar_test_dir();
	char path[500];

	snprintf(path, sizeof path, "%s/kept", dir);
	put(path);
	REQUIRE(tooled_init(&f, dir));
	REQUIRE(block(&f, b));
	REQUIRE(tooled_start(&f, "internal:fs.delete", "{\"path\":\"kept\"}"));
	f.tools->ops->cancel(f.tools, f.call);
	REQUIRE(tooled_start(&f, "internal:fs.delete", "{\"path\":\"kept\"}"));
	uar_tools_destroy(f.tools); /* the same for all */
	f.tools = NULL;
	unblock(b);
	tooled_fini(&f);
	CHECK_INT(f.dones, 0);
	CHECK(access(path, F_OK) == 0);
}

TEST(what_has_begun_is_not_withdrawn, "TOOL-14")
{
	struct blocker b[UAR_LIMIT_WORK_THREADS];
	struct tooled f;
	const char *dir = uar_test_dir();
	char path[500];

	snprintf(path, sizeof path, "%s/goes", dir);
	put(path);
	REQUIRE(tooled_init(&f, dir));
	REQUIRE(tooled_start(&f, "internal:fs.delete", "{\"path\":\"goes\"}"));
	REQUIRE(block(&f, b));
	for (int i = 0; i < UAR_LIMIT_WORK_THREADS; i++)
		while (sem_wait(&b[i].at_work) != 0) {} /* its thread is past it */
	CHECK(!f.tools->ops->withdraw(f.tools, f.call));
	unblock(b);
	uar_loop_run(f.loop);
	CHECK_INT(f.dones, 1);
	CHECK_STR(uar_buf_str(&f.message), "");
	CHECK(access(path, F_OK) != 0);
	tooled_fini(&f);
}

TEST(what_is_withdrawn_never_begins, "TOOL-14")
{
	struct blocker b[UAR_LIMIT_WORK_THREADS];
	struct tooled f;
	const char *dir = uar_test_dir();
	char path[500];

	snprintf(path, sizeof path, "%s/remains", dir);
	put(path);
	REQUIRE(tooled_init(&f, dir));
	REQUIRE(block(&f, b));
	REQUIRE(tooled_start(&f, "internal:fs.delete", "{\"path\":\"remains\"}"));
	CHECK(f.tools->ops->withdraw(f.tools, f.call));
	REQUIRE(tooled_start(&f, "internal:time.now", "{}"));
	CHECK(f.tools->ops->withdraw(f.tools, f.call));
	unblock(b);
	tooled_fini(&f);
	CHECK_INT(f.dones, 0);
	CHECK(access(path, F_OK) == 0);
}

/* --- what is given up at work ---------------------------------------------------------- */

static bool never(struct uar_tool_job *j)
{
	(void)j;
	return false;
}

TEST(what_was_given_up_changes_nothing, "TOOL-14")
{
	static const struct {
		uar_tool_fn *fn;
		const char *input;
	} cases[] = {
		{ uar_tool_fs_write, "{\"path\":\"old\",\"text\":\"new\"}" },
		{ uar_tool_fs_write, "{\"path\":\"new\",\"text\":\"new\"}" },
		{ uar_tool_fs_write, "{\"path\":\"folder/new\",\"text\":\"new\"}" },
		{ uar_tool_fs_delete, "{\"path\":\"old\"}" },
	};
	const char *dir = uar_test_dir();
	char path[500];

	snprintf(path, sizeof path, "%s/old", dir);
	put(path);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_tool_job j = { .may_change = never, .files_dir = dir };
		struct uar_arena arena = { 0 };
		struct stat st;
		DIR *d;

		j.out = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT);
		REQUIRE(uar_json_parse(uar_str_c(cases[i].input), NULL, &arena, &j.input, NULL) ==
			UAR_OK);
		cases[i].fn(&j);
		CHECK(j.category != NULL);
		CHECK(stat(path, &st) == 0 && st.st_size == 0);
		d = opendir(dir);
		REQUIRE(d != NULL);
		for (const struct dirent *at; (at = readdir(d));)
			CHECK(at->d_name[0] == '.' ? at->d_name[1] == 0 || at->d_name[1] == '.'
						   : strcmp(at->d_name, "old") == 0);
		closedir(d);
		uar_buf_fini(&j.out);
		uar_arena_fini(&arena);
	}
}

TEST(nothing_is_lost_without_memory, "")
{
	struct tooled f;
	bool made = false;

	REQUIRE(tooled_init(&f, NULL));
	for (unsigned long n = 1; !made; n++) {
		struct uar_internal_tools_options o = { .sched = uar_loop_sched(f.loop),
							.files_dir = "/nowhere" };
		struct uar_tools *t = NULL;

		uar_test_fail_alloc(n);
		made = uar_internal_tools_create(&o, &t, NULL) == UAR_OK;
		uar_test_fail_alloc(0);
		CHECK(made == (t != NULL));
		uar_tools_destroy(t);
	}
	made = false;
	for (unsigned long n = 1; !made; n++) {
		uar_test_fail_alloc(n);
		made = tooled_try(&f, "internal:time.now", "{\"utc_offset\":\"+01:00\"}") && f.ok;
		uar_test_fail_alloc(0);
	}
	tooled_fini(&f);
}

TEST(an_edit_replaces_what_is_there_once, "")
{
	struct tooled f;
	const char *dir = uar_test_dir();
	char path[500], text[64] = "";
	FILE *file;

	snprintf(path, sizeof path, "%s/poem", dir);
	file = fopen(path, "w");
	REQUIRE(file != NULL);
	fputs("a rose is a rose", file);
	fclose(file);
	REQUIRE(tooled_init(&f, dir));
	CHECK(tooled_call(&f, "internal:fs.edit",
			  "{\"path\":\"poem\",\"old\":\"a rose is\",\"new\":\"it was\"}"));
	CHECK(tooled_fails(&f, "internal:fs.edit",
			   "{\"path\":\"poem\",\"old\":\"s\",\"new\":\"z\"}", "value_invalid",
			   "2 times"));
	CHECK(tooled_fails(&f, "internal:fs.edit",
			   "{\"path\":\"poem\",\"old\":\"daisy\",\"new\":\"z\"}", "value_invalid",
			   "not in the file"));
	CHECK(tooled_call(&f, "internal:fs.edit",
			  "{\"path\":\"poem\",\"old\":\"s\",\"new\":\"z\",\"all\":true}"));
	CHECK(tooled_call(&f, "internal:fs.search", "{\"text\":\"waz\"}"));
	CHECK_STR(uar_buf_str(&f.output),
		  "{\"matches\":[{\"path\":\"poem\",\"line\":1,\"text\":\"it waz a roze\"}],"
		  "\"truncated\":false}");
	CHECK(tooled_fails(&f, "internal:fs.search", "{\"text\":\"x\",\"path\":\"..\"}",
			   "sandbox_violation", ""));
	CHECK(tooled_fails(&f, "internal:fs.edit",
			   "{\"path\":\"../poem\",\"old\":\"s\",\"new\":\"z\"}",
			   "sandbox_violation", ""));
	file = fopen(path, "r");
	REQUIRE(file != NULL && fgets(text, sizeof text, file));
	fclose(file);
	CHECK_STR(uar_str_c(text), "it waz a roze");
	tooled_fini(&f);
}
