/* library_test.c - runs on threads of this process; the plugin is tests/e2e/sdk/c. */
#include "plugin/plugin.h"

#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct call {
	struct scene *scene;
	struct uar_entry_slot slot;
	struct uar_entry_call *call;
	const char *entry;
	bool ready, done, hold, started;
	uint64_t held;
	enum uar_entry_how how;
	char code[64], message[320], result[256], exported[64];
	double progress;
	unsigned exports, refs;
};

enum { CALLS = 64 };
struct scene {
	struct uar_loop *loop;
	struct uar_plugin_host *host;
	struct uar_entries *port;
	struct call calls[CALLS];
	struct uar_buf notes;
	char dir[256], gate[300];
	unsigned over;
};

static void on_note(void *ctx, const struct uar_plugin_note *n)
{
	struct scene *s = ctx;

	uar_buf_printf(&s->notes, "%s %.*s\n", n->what, UAR_FMT(n->text));
	uar_loop_stop(s->loop);
}

static void start(struct call *c);

static void on_ready(struct uar_entry_slot *slot)
{
	struct call *c = UAR_OWNER(slot, struct call, slot);

	c->ready = true;
	start(c);
}

static void on_progress(void *ctx, const struct uar_progress *p)
{
	struct call *c = ctx;

	c->progress = p->value;
	uar_loop_stop(c->scene->loop);
}

static void on_exported(void *ctx, const struct uar_export *x, uar_str raw, uint64_t ticket)
{
	struct call *c = ctx;

	(void)raw;
	c->exports++;
	snprintf(c->exported, sizeof c->exported, "%.*s", UAR_FMT(x->content));
	c->held = ticket;
	if (c->hold)
		uar_loop_stop(c->scene->loop);
	else
		c->scene->port->ops->answer(c->call, ticket, UAR_OK, UAR_STR("item"));
}

static void on_done(void *ctx, const struct uar_entry_end *end)
{
	struct call *c = ctx;

	CHECK(!c->done);
	c->done = true;
	c->call = NULL;
	c->how = end->how;
	c->refs = end->refs ? end->refs->count : 0;
	snprintf(c->code, sizeof c->code, "%.*s", UAR_FMT(end->code));
	snprintf(c->message, sizeof c->message, "%.*s", UAR_FMT(end->message));
	snprintf(c->result, sizeof c->result, "%.*s", UAR_FMT(end->result));
	c->scene->over++;
	uar_loop_stop(c->scene->loop);
}

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static bool open_scene(struct scene *s, const char *more)
{
	static int number;
	char path[400], object[4096], manifest[1024];
	const char *build = getenv("BUILD");
	struct uar_plugin_host_options o = { .note = on_note, .ctx = s };

	memset(s, 0, sizeof *s);
	s->notes = uar_buf_make(1 << 20);
	snprintf(s->dir, sizeof s->dir, "%s/%d", uar_test_dir(), ++number);
	snprintf(s->gate, sizeof s->gate, "%s/gate", s->dir);
	snprintf(manifest, sizeof manifest,
		 "{\"id\":\"p\",\"version\":\"1\",\"library\":\"l.so\"%s,\"entries\":["
		 "{\"id\":\"echo\"},{\"id\":\"items\"},{\"id\":\"gate\"},{\"id\":\"deaf\"},"
		 "{\"id\":\"burst\"},{\"id\":\"partial\"},{\"id\":\"refused\"},{\"id\":\"fails\"},"
		 "{\"id\":\"typed\",\"result_schema\":{\"type\":\"integer\"}}]}",
		 more);
	snprintf(path, sizeof path, "%s/sdk/conform.so", build ? build : "build");
	if (!CHECK_MSG(realpath(path, object) != NULL, "%s is missing", path) ||
	    mkdir(s->dir, 0700))
		return false;
	snprintf(path, sizeof path, "%s/p", s->dir);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof path, "%s/p/l.so", s->dir);
	CHECK(symlink(object, path) == 0);
	snprintf(path, sizeof path, "%s/p/plugin.json", s->dir);
	CHECK(write_file(path, manifest));
	o.dir = s->dir;
	if (!CHECK(uar_loop_create(&uar_clock_system, &s->loop) == UAR_OK))
		return false;
	o.loop = s->loop;
	if (!CHECK(uar_plugin_host_create(&o, &s->host, NULL) == UAR_OK))
		return false;
	s->port = uar_plugin_host_entries(s->host);
	return CHECK_MSG(!s->notes.n, "%s", s->notes.p);
}

static void close_scene(struct scene *s)
{
	uar_plugin_host_destroy(s->host);
	uar_loop_destroy(s->loop);
	uar_buf_fini(&s->notes);
}

static void start(struct call *c)
{
	struct uar_entry_events events = {
		.progress = on_progress, .exported = on_exported, .done = on_done, .ctx = c
	};
	struct uar_entries *port = c->scene->port;
	char args[400];
	struct uar_entry_request r = { .run_id = UAR_STR("run"),
				       .entry_id = uar_str_c(c->entry),
				       .attempt = 1 };
	struct uar_error error = { 0 };

	snprintf(args, sizeof args, "{\"say\":\"hi\",\"n\":2000,\"keep\":1,\"file\":\"%s\"}",
		 c->scene->gate);
	r.args = uar_str_c(args);
	c->progress = -1;
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

static void until_done(struct scene *s, int i)
{
	while (!s->calls[i].done)
		uar_loop_run(s->loop);
}

static void until_progress(struct scene *s, int i)
{
	while (s->calls[i].progress < 0)
		uar_loop_run(s->loop);
}

TEST(a_library_runs_an_entry, "PLUG-01")
{
	struct scene s;

	REQUIRE(open_scene(&s, ""));
	go(&s, 0, "items");
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_FINISHED);
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
	close_scene(&s);
}

TEST(a_library_fails_as_it_says, "ERR-06")
{
	struct scene s;

	REQUIRE(open_scene(&s, ""));
	go(&s, 0, "fails");
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_BROKE);
	CHECK_STR(uar_str_c(s.calls[0].code), "QUOTA");
	CHECK_STR(uar_str_c(s.calls[0].message), "no more pages");
	go(&s, 1, "typed");
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_BROKE);
	CHECK(strstr(s.calls[1].message, "schema") != NULL);
	close_scene(&s);
}

/* Every thread has something to do at once, again and again. */
TEST(many_runs_share_the_threads, "")
{
	struct uar_plugin_stats stats;
	struct scene s;
	unsigned started = CALLS;

	REQUIRE(open_scene(&s, ",\"concurrency\":4"));
	for (int i = 0; i < CALLS; i++)
		go(&s, i, i % 8 ? "echo" : "items");
	while (s.over < started) {
		uar_loop_run(s.loop);
		for (int i = 0; i < CALLS && started < 2000; i++)
			if (s.calls[i].done) {
				CHECK_INT(s.calls[i].how, UAR_ENTRY_FINISHED);
				go(&s, i, i % 8 ? "echo" : "items");
				started++;
			}
	}
	uar_plugin_host_stats(s.host, &stats);
	CHECK(stats.threads >= 1 && stats.threads <= 4);
	CHECK_INT(stats.lost, 0);
	CHECK_INT(stats.running, 0);
	close_scene(&s);
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
	CHECK_INT(s.calls[0].how, UAR_ENTRY_STOPPED);
	CHECK_INT(s.calls[0].exports, 2);
	CHECK_INT(s.calls[0].refs, 1);
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_FINISHED);
	close_scene(&s);
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
	CHECK_INT(s.calls[0].how, UAR_ENTRY_STOPPED);
	CHECK(strstr(s.notes.p, "plugin.ignored_cancel") != NULL);
	uar_plugin_host_stats(s.host, &stats);
	CHECK_INT(stats.lost, 1);
	go(&s, 1, "echo"); /* another thread takes its place */
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_FINISHED);
	CHECK(write_file(s.gate, ""));
	do { /* it returns: its words count no more, and it is not missing any more */
		s.calls[1].done = false;
		go(&s, 1, "echo");
		until_done(&s, 1);
		uar_plugin_host_stats(s.host, &stats);
	} while (stats.lost);
	CHECK_INT(s.calls[0].exports, 0);
	close_scene(&s);
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
	close_scene(&s);
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
	close_scene(&s);
	CHECK(write_file(s.gate, "")); /* the deaf one finds its way out, too */
}
