/* host_test.c - plugins that behave and plugins that do not, as small shell scripts. */
#include "plugin_scene.h"

#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "loop/supervise.h"

extern char **environ;

__attribute__((constructor)) static void be_supervisor(int argc, char **argv)
{
	uar_supervise(argc, argv);
	signal(SIGPIPE, SIG_IGN); /* as the server does: a process may leave unasked */
}

/* What every script begins with: answers hello, then $line is a message and $run
 * its run. */
#define HELLO                                                                                      \
	"say() { printf '%s\\n' \"$1\"; }\n"                                                       \
	"next() { read -r line || exit 0; run=${line#*'\"run_id\":\"'}; run=${run%%'\"'*}; }\n"    \
	"tell() { say "                                                                            \
	"'{\"jsonrpc\":\"2.0\",\"method\":\"'$1'\",\"params\":{\"run_id\":\"'$run'\"'"             \
	"\"$2\"'}}'; }\n"                                                                          \
	"next; say '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocol\":\"1\"}}'\n"

static void on_ready(struct uar_entry_slot *slot)
{
	struct call *c = UAR_OWNER(slot, struct call, slot);

	c->ready = true;
	uar_loop_stop(c->scene->loop);
}

/* One plugin "p" with entry "e"; `more` are further members of its manifest. */
static bool open_scene(struct scene *s, const char *more, const char *script)
{
	char manifest[1024];

	snprintf(manifest, sizeof manifest,
		 "{\"id\":\"p\",\"version\":\"1\",\"command\":[\"sh\",\"main.sh\"]%s,"
		 "\"entries\":[{\"id\":\"e\",\"args_schema\":{\"type\":\"object\",\"properties\":"
		 "{\"n\":{\"type\":\"integer\"}}},\"result_schema\":{\"type\":\"object\"}}]}",
		 more);
	return scene_begin(s) && scene_file(s, "plugin.json", manifest) &&
	       scene_file(s, "main.sh", script) && scene_host(s, environ);
}

static uar_err ask(struct scene *s, int i)
{
	struct call *c = &s->calls[i];

	c->scene = s;
	c->slot.ready = on_ready;
	snprintf(c->run_id, sizeof c->run_id, "run-%d", i);
	return s->port->ops->ask(s->port, UAR_STR("p"), UAR_STR("e"), &c->slot);
}

static bool start(struct scene *s, int i)
{
	struct call *c = &s->calls[i];
	struct uar_entry_request r = { .run_id = uar_str_c(c->run_id),
				       .entry_id = UAR_STR("e"),
				       .args = UAR_STR("{\"n\":1}"),
				       .attempt = 1 };
	struct uar_entry_events events = scene_events(c);

	r.run_id = uar_str_c(c->run_id);
	return CHECK(s->port->ops->start(s->port, &c->slot, &r, &events, &c->call, NULL) == UAR_OK);
}

static void go(struct scene *s, int i)
{
	CHECK(ask(s, i) == UAR_OK);
	start(s, i);
}

static void until_note(struct scene *s, const char *text)
{
	while (!s->notes.n || !strstr(s->notes.p, text))
		uar_loop_run(s->loop);
}

TEST(a_run_goes_through, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "",
			   HELLO "next; tell run.progress ',\"progress\":0.5'\n"
				 "tell run.export ',\"type\":\"text\",\"text\":\"out\"'\n"
				 "tell run.result ',\"result\":{\"ok\":true}'\nnext\n"));
	go(&s, 0);
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_FINISHED);
	CHECK(s.calls[0].progress == 0.5);
	CHECK_STR(uar_str_c(s.calls[0].exported), "out");
	CHECK_STR(uar_str_c(s.calls[0].result), "{\"ok\":true}");
	scene_end(&s);
}

TEST(arguments_and_results_obey_their_schemas, "ERR-05")
{
	struct uar_error error = { 0 };
	const struct uar_json *args;
	struct uar_arena arena;
	struct scene s;

	REQUIRE(open_scene(&s, "", HELLO "next; tell run.result ',\"result\":7'\nnext\n"));
	uar_arena_init(&arena, 0);
	CHECK(uar_json_parse(UAR_STR("{\"n\":\"x\"}"), NULL, &arena, &args, NULL) == UAR_OK);
	CHECK(s.port->ops->check(s.port, UAR_STR("p"), UAR_STR("e"), args, &error) == UAR_ESCHEMA);
	CHECK_STR(uar_str_c(error.where), "/args/n");
	uar_arena_fini(&arena);
	go(&s, 0);
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_BROKE);
	CHECK_STR(uar_str_c(s.calls[0].code), "PLUGIN_ERROR");
	scene_end(&s);
}

TEST(noise_and_foreign_runs_are_passed_over, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "",
			   "echo starting...\n" HELLO
			   "next; echo noise; mine=$run; run=other; tell run.result ''\n"
			   "tell run.dance ''\nrun=$mine; tell run.result ''\nnext\n"));
	go(&s, 0);
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_FINISHED);
	CHECK(strstr(s.notes.p, "plugin.noise starting...") != NULL);
	CHECK(strstr(s.notes.p, "plugin.noise noise") != NULL);
	CHECK(strstr(s.notes.p, "plugin.foreign_run other") != NULL);
	CHECK(strstr(s.notes.p, "plugin.bad_message no method") != NULL);
	scene_end(&s);
}

TEST(a_crash_fails_its_runs_and_the_next_one_works, "ERR-07")
{
	struct scene s;

	/* The first process dies in its run, in the middle of a line; the next works. */
	REQUIRE(open_scene(&s, "",
			   HELLO "next; if [ ! -e was ]; then : > was; echo bad >&2;"
				 "printf '{\"half'; kill -9 $$; fi\n"
				 "tell run.result ''\nnext\n"));
	go(&s, 0);
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_BROKE);
	CHECK_STR(uar_str_c(s.calls[0].code), "TRANSPORT_ERROR");
	CHECK(s.calls[0].retryable);
	CHECK(strstr(s.notes.p, "plugin.half_line {\"half") != NULL);
	go(&s, 1);
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_FINISHED);
	scene_end(&s);
}

TEST(a_command_that_is_missing_fails_the_run, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "", "printf 'no such thing' >&2; exit 9\n"));
	go(&s, 0);
	until_done(&s, 0);
	CHECK_STR(uar_str_c(s.calls[0].code), "TRANSPORT_ERROR");
	CHECK_MSG(strstr(s.calls[0].message, "status 9: no such thing") != NULL, "%s",
		  s.calls[0].message);
	scene_end(&s);
}

TEST(silence_is_ended, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "", "echo here >&2; sleep 1000\n"));
	leap_hold(&s.time);
	go(&s, 0);
	until_note(&s, "plugin.stderr here");
	scene_later(&s, 10);
	until_done(&s, 0);
	CHECK_STR(uar_str_c(s.calls[0].code), "TRANSPORT_ERROR");
	CHECK(strstr(s.calls[0].message, "hello") != NULL);
	scene_end(&s);
}

/* Its neighbour, which it had begun, will not hear from it, either. */
TEST(a_start_without_an_answer_ends_the_process, "ERR-07")
{
	struct scene s;

	REQUIRE(open_scene(&s, ",\"concurrency\":2",
			   HELLO "next; tell run.progress ',\"progress\":0.5'\nnext\n"
				 "echo stopped >&2; kill -STOP $$; tell run.result ''\n"));
	leap_hold(&s.time);
	go(&s, 0);
	while (s.calls[0].progress != 0.5)
		uar_loop_run(s.loop);
	scene_later(&s, 3600); /* one that was answered may take its time */
	go(&s, 1);
	until_note(&s, "plugin.stderr stopped");
	CHECK(!s.calls[0].done && !s.calls[1].done);
	scene_later(&s, 30);
	until_done(&s, 1);
	until_done(&s, 0);
	CHECK_STR(uar_str_c(s.calls[0].code), "TRANSPORT_ERROR");
	CHECK_STR(uar_str_c(s.calls[1].code), "TRANSPORT_ERROR");
	CHECK(strstr(s.calls[1].message, "did not answer run.start") != NULL);
	scene_end(&s);
}

TEST(a_process_without_output_is_ended, "ERR-07")
{
	struct scene s;

	REQUIRE(open_scene(&s, "",
			   HELLO "next; tell run.progress ',\"progress\":0.5'\n"
				 "[ -e was ] || { : > was; exec >&-; "
				 "while :; do sleep 1000; done; }\ntell run.result ''\nnext\n"));
	leap_hold(&s.time);
	go(&s, 0);
	while (s.calls[0].progress != 0.5)
		uar_loop_run(s.loop);
	while (!s.calls[0].done) /* when its end is read is its own affair */
		scene_later(&s, 1);
	CHECK_STR(uar_str_c(s.calls[0].code), "TRANSPORT_ERROR");
	CHECK_MSG(strstr(s.calls[0].message, "closed its standard output") != NULL, "%s",
		  s.calls[0].message);
	scene_later(&s, 1);
	go(&s, 1);
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_FINISHED);
	scene_end(&s);
}

/* A process that was told to stop a run and says nothing may be dead: another run waits
 * for the next process, or is given to it as soon as it speaks. */
TEST(a_process_in_its_grace_gets_no_runs, "")
{
	struct uar_plugin_stats stats;
	struct scene s;

	REQUIRE(open_scene(&s, ",\"concurrency\":4",
			   HELLO "[ -e was ] && while next; do tell run.result ''; done\n: > was\n"
				 "next; tell run.progress ',\"progress\":0.5'\n"
				 "next; echo told >&2; while :; do sleep 1000; done\n"));
	leap_hold(&s.time);
	go(&s, 0);
	while (s.calls[0].progress != 0.5)
		uar_loop_run(s.loop);
	s.port->ops->cancel(s.calls[0].call, UAR_STR(""));
	until_note(&s, "plugin.stderr told");
	go(&s, 1);
	scene_later(&s, 4);
	CHECK(!s.calls[0].done && !s.calls[1].done);
	scene_later(&s, 1);
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_STOPPED);
	scene_later(&s, 1); /* the next process is not started at once */
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_FINISHED);
	uar_plugin_host_stats(s.host, &stats);
	CHECK_INT(stats.started, 2);
	scene_end(&s);
}

TEST(a_process_that_answers_a_ping_is_not_doubted, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, ",\"concurrency\":4",
			   "next() { read -r line || exit 0; run=${line#*'\"run_id\":\"'}; "
			   "run=${run%%'\"'*}; }\n"
			   "next; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
			   "{\"protocol\":\"1\",\"ping\":true}}'\nnext; first=$run\n"
			   "echo begun >&2; next; next; id=${line#*'\"id\":'}; id=${id%%,*}\n"
			   "echo '{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{}}'\nnext\n"
			   "echo '{\"jsonrpc\":\"2.0\",\"method\":\"run.result\","
			   "\"params\":{\"run_id\":\"'$run'\"}}'\nnext\n"));
	go(&s, 0);
	until_note(&s, "plugin.stderr begun");
	s.port->ops->cancel(s.calls[0].call, UAR_STR(""));
	go(&s, 1);
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_FINISHED);
	CHECK(!s.calls[0].done);
	CHECK(!strstr(s.notes.p, "plugin.unasked_reply"));
	scene_end(&s);
}

TEST(a_line_without_end_is_ended, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "", HELLO "next; head -c 2000000 /dev/zero | tr '\\0' x\nnext\n"));
	go(&s, 0);
	until_done(&s, 0);
	CHECK_STR(uar_str_c(s.calls[0].code), "TRANSPORT_ERROR");
	CHECK(strstr(s.calls[0].message, "line without end") != NULL);
	scene_end(&s);
}

TEST(another_protocol_is_refused, "")
{
	struct scene s;

	REQUIRE(open_scene(
		&s, "",
		"read l; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocol\":\"99\"}}'\n"
		"read l\n"));
	go(&s, 0);
	until_done(&s, 0);
	CHECK(strstr(s.calls[0].message, "another protocol") != NULL);
	scene_end(&s);
}

TEST(a_cancel_is_heard, "RUN-36 PLUG-10")
{
	struct scene s;

	REQUIRE(open_scene(&s, "",
			   HELLO "next; tell run.progress ',\"progress\":0'\nnext\n"
				 "case $line in *run.cancel*enough*) "
				 "tell run.error ',\"code\":\"CANCELED\"';; esac\nnext\n"));
	go(&s, 0);
	until_progress(&s, 0);
	s.port->ops->cancel(s.calls[0].call, UAR_STR("enough"));
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_STOPPED);
	scene_end(&s);
}

/* Its process and what that started are gone when the run is said to be over. */
TEST(a_cancel_that_is_ignored_ends_the_process, "RUN-37")
{
	struct scene s;
	uint64_t pid = 0;

	REQUIRE(open_scene(&s, ",\"cancel_grace_seconds\":0.05",
			   HELLO "next; trap '' TERM INT HUP; setsid sleep 1000 &\n"
				 "tell run.export ',\"type\":\"text\",\"text\":\"'$!'\"'\n"
				 "tell run.progress ',\"progress\":0'\n"
				 "while :; do sleep 1000; done\n"));
	go(&s, 0);
	until_progress(&s, 0);
	CHECK(uar_str_u64(uar_str_c(s.calls[0].exported), &pid) == UAR_OK && pid > 1);
	s.port->ops->cancel(s.calls[0].call, UAR_STR(""));
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_STOPPED);
	CHECK(kill((pid_t)pid, 0) && errno == ESRCH);
	scene_end(&s);
}

TEST(a_cancel_that_is_ignored_spares_the_neighbours, "")
{
	struct scene s;

	REQUIRE(open_scene(
		&s, ",\"cancel_grace_seconds\":0.05,\"concurrency\":2",
		HELLO "next; a=$run; next; say '{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":"
		      "\"run.export\",\"params\":{\"run_id\":\"'$run'\",\"type\":\"text\","
		      "\"text\":\"x\"}}'\nb=$run; next; next; run=$b; tell run.result ''; next\n"));
	s.calls[1].hold = true;
	go(&s, 0);
	go(&s, 1);
	while (!s.calls[1].held)
		uar_loop_run(s.loop);
	s.port->ops->cancel(s.calls[0].call, UAR_STR(""));
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_STOPPED);
	CHECK(!s.calls[1].done);
	s.port->ops->answer(s.calls[1].call, &(struct uar_entry_answer){ .ticket = s.calls[1].held,
									 .id = UAR_STR("item") });
	until_done(&s, 1);
	CHECK_INT(s.calls[1].how, UAR_ENTRY_HOW_FINISHED);
	until_note(&s, "plugin.process_gone");
	scene_end(&s);
}

TEST(places_are_given_in_order, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "", HELLO "while next; do tell run.result ''; done\n"));
	CHECK(ask(&s, 0) == UAR_OK);
	CHECK(ask(&s, 1) == UAR_EBUSY);
	CHECK(ask(&s, 2) == UAR_EBUSY);
	s.port->ops->leave(s.port, &s.calls[1].slot); /* changed its mind */
	start(&s, 0);
	until_done(&s, 0);
	CHECK(s.calls[2].ready && !s.calls[1].ready);
	start(&s, 2);
	until_done(&s, 2);
	CHECK_INT(s.calls[2].how, UAR_ENTRY_HOW_FINISHED);
	scene_end(&s);
}

TEST(a_pool_has_several_processes, "")
{
	struct uar_plugin_stats stats;
	struct scene s;

	REQUIRE(open_scene(&s, ",\"processes\":2",
			   HELLO "next; tell run.progress ',\"progress\":0'\nnext\n"
				 "tell run.error ',\"code\":\"CANCELED\"'; next\n"));
	go(&s, 0);
	go(&s, 1);
	until_progress(&s, 0);
	until_progress(&s, 1);
	uar_plugin_host_stats(s.host, &stats);
	CHECK_INT(stats.processes, 2);
	s.port->ops->stop(s.calls[0].call, UAR_STR("")); /* nobody listens any more */
	s.port->ops->cancel(s.calls[1].call, UAR_STR(""));
	until_done(&s, 1);
	scene_end(&s);
}

TEST(a_flood_of_lines_is_cut_and_counted, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "",
			   HELLO "next; i=0; while [ $i -lt 300 ]; do "
				 "tell log ',\"message\":\"line-'$i'\"'; i=$((i + 1)); done\n"
				 "tell run.result ''\nnext\n"));
	leap_hold(&s.time);
	go(&s, 0);
	until_done(&s, 0);
	CHECK(strstr(s.notes.p, "plugin.log line-199\n") != NULL);
	CHECK(strstr(s.notes.p, "plugin.log line-200\n") == NULL);
	scene_later(&s, 1);
	CHECK(strstr(s.notes.p, "plugin.lines_left_out 100 lines were left out") != NULL);
	scene_end(&s);
}

/* Nobody waits for the answer to a notification; the log has it once. */
TEST(refused_items_are_noted_once, "")
{
	static const char why[] = "plugin.refused an item was refused: a run has at most 2 items";
	struct scene s;
	const char *first;

	REQUIRE(open_scene(&s, "",
			   HELLO "next; tell run.export ',\"type\":\"text\",\"text\":\"x\"'\n"
				 "next\n"));
	s.calls[0].hold = true;
	go(&s, 0);
	while (!s.calls[0].exports)
		uar_loop_run(s.loop);
	for (int i = 0; i < 3; i++)
		s.port->ops->answer(
			s.calls[0].call,
			&(struct uar_entry_answer){ .err = UAR_ETOOBIG,
						    .why = UAR_STR("a run has at most 2 items") });
	first = strstr(s.notes.p, why);
	CHECK(first && !strstr(first + 1, why));
	scene_end(&s);
}

TEST(text_that_is_none_is_answered, "")
{
	struct scene s;

	REQUIRE(open_scene(&s, "",
			   HELLO "next; a=$run\n"
				 "say '{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"log\",\"params\":"
				 "{\"message\":\"\\ud800\"}}'\nnext; run=$a\n"
				 "case $line in *'\"id\":9'*-32700*) tell run.result '';; esac\n"
				 "next\n"));
	go(&s, 0);
	until_done(&s, 0);
	CHECK_INT(s.calls[0].how, UAR_ENTRY_HOW_FINISHED);
	CHECK(strstr(s.notes.p, "plugin.bad_message a lone surrogate") != NULL);
	scene_end(&s);
}
