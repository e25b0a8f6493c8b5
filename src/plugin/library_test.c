/* library_test.c - runs on threads of this process; the plugin is tests/e2e/sdk/c. */
#include "plugin_scene.h"

#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "uar/plugin.h"

static void start(struct call *c);

static void on_ready(struct uar_entry_slot *slot)
{
	struct call *c = UAR_OWNER(slot, struct call, slot);

	c->ready = true;
	start(c);
}

static const char *gate_name = "gate";

/* The file that some entries wait for. */
static const char *gate_of(const struct scene *s)
{
	static char path[300];

	snprintf(path, sizeof path, "%s/p/%s", s->dir, gate_name);
	return path;
}

static bool open_scene(struct scene *s, const char *more)
{
	char path[400], object[4096], manifest[1024];
	const char *build = getenv("BUILD");

	snprintf(manifest, sizeof manifest,
		 "{\"id\":\"p\",\"version\":\"1\",\"library\":\"l.so\"%s,\"entries\":["
		 "{\"id\":\"echo\"},{\"id\":\"items\"},{\"id\":\"gate\"},{\"id\":\"deaf\"},"
		 "{\"id\":\"fifo\"},{\"id\":\"short_item\"},{\"id\":\"burst\"},{\"id\":\"partial\"}"
		 ",{\"id\":\"refused\"},{\"id\":\"fails\"},"
		 "{\"id\":\"typed\",\"result_schema\":{\"type\":\"integer\"}}]}",
		 more);
	snprintf(path, sizeof path, "%s/sdk/conform.so", build ? build : "build");
	if (!CHECK_MSG(realpath(path, object) != NULL, "%s is missing", path) || !scene_begin(s))
		return false;
	snprintf(path, sizeof path, "%s/p/l.so", s->dir);
	return CHECK(symlink(object, path) == 0) && scene_file(s, "plugin.json", manifest) &&
	       scene_host(s, NULL);
}

static void start(struct call *c)
{
	struct uar_entry_events events = scene_events(c);
	struct uar_entries *port = c->scene->port;
	char args[400];
	struct uar_entry_request r = { .run_id = UAR_STR("run"),
				       .entry_id = uar_str_c(c->entry),
				       .attempt = 1 };
	struct uar_error error = { 0 };

	snprintf(args, sizeof args, "{\"say\":\"hi\",\"n\":2000,\"keep\":1,\"file\":\"%s\"}",
		 gate_of(c->scene));
	r.args = uar_str_c(args);
	c->reports = 0;
	c->started = true;
	CHECK_MSG(port->ops->start(port, &c->slot, &r, &events, &c->call, &error) == UAR_OK, "%s",
		  error.text);
}

static void go(struct scene *s, int i, const char *entry)
{
	struct call *c = &s->calls[i];

	c->scene = s;
	c->entry = entry;
	c->slot.ready = on_ready;
	c->done = false;
	if (s->port->ops->ask(s->port, UAR_STR("p"), uar_str_c(entry), &c->slot) == UAR_OK)
		start(c);
}

TEST(a_library_runs_an_entry, "PLUG-01")
{
	struct scene s;

	REQUIRE(open_scene(&s, ""));
	go(&s, 0, "items");
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_FINISHED);
	CHECK_INT(s.calls[0].exports, 6);
	CHECK_INT(s.calls[0].refs, 1);
	CHECK_STR(uar_str_c(s.calls[0].exported), "artifact://some-artifact");
	CHECK_STR(uar_str_c(s.calls[0].result),
		  "[\"item\",\"item\",\"item\",\"item\",\"item\",\"item\"]");
	go(&s, 1, "burst");
	until_done(&s, 1);
	CHECK(s.calls[1].progress == 1);
	go(&s, 2, "refused");
	until_done(&s, 2);
	CHECK_INT(s.calls[2].exports, 0);
	scene_end(&s);
}

TEST(a_library_fails_as_it_says, "ERR-06")
{
	struct scene s;

	REQUIRE(open_scene(&s, ""));
	go(&s, 0, "fails");
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_BROKE);
	CHECK_STR(uar_str_c(s.calls[0].code), "QUOTA");
	CHECK_STR(uar_str_c(s.calls[0].message), "no more pages");
	go(&s, 1, "typed");
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_BROKE);
	CHECK(strstr(s.calls[1].message, "schema") != NULL);
	scene_end(&s);
}

/* Every thread has something to do at once, again and again. */
TEST(many_runs_share_the_threads, "")
{
	struct uar_plugin_stats stats;
	struct scene s;
	unsigned started = SCENE_CALLS;

	REQUIRE(open_scene(&s, ",\"concurrency\":4"));
	for (int i = 0; i < SCENE_CALLS; i++)
		go(&s, i, i % 8 ? "echo" : "items");
	while (s.over < started) {
		uar_loop_run(s.loop);
		for (int i = 0; i < SCENE_CALLS && started < 2000; i++)
			if (s.calls[i].done) {
				CHECK_INT(s.calls[i].how, UAR_ENTRY_HOW_FINISHED);
				go(&s, i, i % 8 ? "echo" : "items");
				started++;
			}
	}
	uar_plugin_host_stats(s.host, &stats);
	CHECK(stats.threads >= 1 && stats.threads <= 4);
	CHECK_INT(stats.lost, 0);
	CHECK_INT(stats.running, 0);
	scene_end(&s);
}

TEST(a_cancel_reaches_the_thread, "PLUG-10 RUN-36")
{
	struct scene s;

	REQUIRE(open_scene(&s, ",\"cancel_grace_seconds\":60"));
	go(&s, 0, "partial");
	go(&s, 1, "echo"); /* waits for its place */
	until_progress(&s, 0);
	CHECK(!s.calls[1].started);
	s.port->ops->cancel(s.calls[0].call, UAR_STR("enough"));
	s.port->ops->cancel(s.calls[0].call, UAR_STR("again"));
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_STOPPED);
	CHECK_INT(s.calls[0].exports, 2);
	CHECK_INT(s.calls[0].refs, 1);
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_FINISHED);
	scene_end(&s);
}

TEST(a_thread_that_ignores_a_cancel_is_written_off, "RUN-37")
{
	struct uar_plugin_stats stats;
	struct scene s;

	REQUIRE(open_scene(&s, ",\"cancel_grace_seconds\":0"));
	go(&s, 0, "deaf");
	until_progress(&s, 0);
	s.port->ops->cancel(s.calls[0].call, UAR_STR(""));
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_STOPPED);
	CHECK(strstr(s.notes.p, "plugin.ignored_cancel") != NULL);
	uar_plugin_host_stats(s.host, &stats);
	CHECK_INT(stats.lost, 1);
	go(&s, 1, "echo"); /* another thread takes its place */
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_FINISHED);
	CHECK(scene_file(&s, "gate", ""));
	do { /* it returns: its words count no more, and it is not missing any more */
		s.calls[1].done = false;
		go(&s, 1, "echo");
		until_done(&s, 1);
		uar_plugin_host_stats(s.host, &stats);
	} while (stats.lost);
	CHECK_INT(s.calls[0].exports, 0);
	scene_end(&s);
}

/* Nobody will answer the export: the thread must not wait for it. */
TEST(a_run_that_is_stopped_while_it_exports_gets_free, "")
{
	struct uar_plugin_stats stats;
	struct scene s;

	REQUIRE(open_scene(&s, ",\"cancel_grace_seconds\":60"));
	s.calls[0].hold = true;
	go(&s, 0, "items");
	while (!s.calls[0].held)
		uar_loop_run(s.loop);
	s.port->ops->stop(s.calls[0].call, UAR_STR("over"));
	go(&s, 1, "echo"); /* gets the place once the first has left it */
	until_done(&s, 1);
	CHECK(!s.calls[0].done);
	uar_plugin_host_stats(s.host, &stats);
	CHECK_INT(stats.lost, 0);
	scene_end(&s);
}

TEST(the_end_waits_for_threads_that_listen_and_for_no_others, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, ",\"concurrency\":4,\"cancel_grace_seconds\":0.05"));
	s.calls[3].hold = true;
	go(&s, 0, "gate");
	go(&s, 1, "partial");
	go(&s, 2, "deaf");
	go(&s, 3, "items");
	go(&s, 4, "echo");
	until_progress(&s, 0);
	until_progress(&s, 1);
	until_progress(&s, 2);
	while (!s.calls[3].held)
		uar_loop_run(s.loop);
	scene_end(&s);
	CHECK(scene_file(&s, "gate", "")); /* the deaf one finds its way out, too */
}

/* A thread took it after the cancel and before that was looked at again: its handler
 * gets the grace that every handler gets. */
TEST(a_job_that_is_taken_late_has_its_grace, "")
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	struct scene s;
	int first, second;

	n = n > 60 ? 60 : n; /* threads for short runs */
	REQUIRE(open_scene(&s, ",\"concurrency\":60"));
	leap_hold(&s.time); /* nobody looks after the queue: it waits for a thread */
	gate_name = "first";
	REQUIRE(mkfifo(gate_of(&s), 0600) == 0);
	first = open(gate_of(&s), O_RDWR | O_CLOEXEC);
	for (int i = 0; i < n; i++)
		go(&s, i, "fifo");
	gate_name = "second";
	REQUIRE(mkfifo(gate_of(&s), 0600) == 0);
	go(&s, (int)n, "fifo");
	s.port->ops->cancel(s.calls[n].call, UAR_STR(""));
	CHECK(write(first, "x", 1) == 1);		  /* one thread is free */
	second = open(gate_of(&s), O_WRONLY | O_CLOEXEC); /* and has taken it now */
	scene_later(&s, 0);
	CHECK(!s.calls[n].done);
	CHECK(write(second, "x", 1) == 1);
	until_done(&s, (int)n);
	CHECK_INT(s.calls[n].how, UAR_ENTRY_HOW_FINISHED);
	CHECK(!s.notes.n || !strstr(s.notes.p, "plugin.ignored_cancel"));
	for (int i = 1; i < n; i++)
		CHECK(write(first, "x", 1) == 1);
	while (s.over <= n)
		uar_loop_run(s.loop);
	gate_name = "gate";
	close(first);
	close(second);
	scene_end(&s);
}

/* One side is older than the other, and its structs are shorter. */
TEST(sizes_of_another_version_are_respected, "")
{
	struct uarp_ops older = { .abi = UARP_ABI, .size = offsetof(struct uarp_ops, upload) };
	struct uarp_run run = { &older };
	struct scene s;

	CHECK_INT(uarp_upload(&run, "u", 0, "x", 1), -1);
	REQUIRE(open_scene(&s, ""));
	go(&s, 0, "short_item");
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_FINISHED);
	CHECK_STR(uar_str_c(s.calls[0].exported), "x");
	scene_end(&s);
}
