/* process_test.c - the truth about processes: exits, cancel, time-outs, escapes,
 * stalled readers, long lines. The agent is the fake CLI.
 * time limit: 120 s, thirty times processes run into their own time-outs */
#include "backend/cli_test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "backend/child.h"

TEST(P06_completion_waits_for_the_process, "LIB-09")
{
	char go[600], script[800];
	uaa_backend *b;
	uaa_request *r = ask("hi");
	uaa_run *run = NULL;
	uaa_event *ev;

	snprintf(go, sizeof go, "%s/go", uar_test_dir());
	snprintf(script, sizeof script, "stdin\nresult\ncloseout\nwait %s", go);
	b = claude_doing(script, NULL, NULL);
	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	CHECK(uaa_run_next(run, -1, &ev) == UAA_OK); /* "completed" */
	uaa_event_unref(ev);
	uaa_run_close_events(run);
	CHECK(uaa_run_wait(run, 50, NULL, NULL) == UAA_AGAIN);
	fclose(fopen(go, "w"));
	CHECK(uaa_run_wait(run, -1, NULL, NULL) == UAA_OK);
	uaa_run_unref(run);
	uaa_backend_unref(b);
	uaa_request_unref(r);
}

TEST(P03_P04_live_events_come_before_exit, "LIB-05 LIB-06")
{
	char go[600], script[1000];
	uaa_backend *b;
	uaa_request *r = ask("hi");
	uaa_run *run = NULL;
	uaa_event *ev;

	snprintf(go, sizeof go, "%s/go", uar_test_dir());
	snprintf(script, sizeof script, "env X\nwait %s\nresult", go);
	b = claude_doing(script, NULL, NULL);
	CHECK(uaa_caps_contains(uaa_backend_caps(b), uaa_str_c("agent_api.events.live")));
	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	CHECK(uaa_run_next(run, -1, &ev) == UAA_OK);
	CHECK_STR(uab_str(uaa_event_text(ev)), "X=(unset)");
	uaa_event_unref(ev);
	fclose(fopen(go, "w"));
	seen_fini(collect(run));
	uaa_backend_unref(b);
	uaa_request_unref(r);
}

TEST(success_needs_the_terminal_record, "LIB-20 LIB-22")
{
	static const struct {
		const char *script, *error;
	} cases[] = {
		{ "env X", "stream ended without result" },
		{ "env X\nexit 3", "claude_code exited non-zero: code=3 (output redacted)" },
		{ "env X\nsignal 9", "claude_code ended by signal: signal=9 (output redacted)" },
		{ "part {\"type\":\"result\",\"is_error\":fal", "stream ended without result" },
		{ "err SECRET-LEAK-PROBE\nexit 1",
		  "claude_code exited non-zero: code=1 (output redacted)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s = claude(cases[i].script);

		check_error(s, cases[i].error);
		seen_fini(s);
	}
}

TEST(P15_success_carries_the_exit_status, "LIB-20")
{
	static const struct {
		const char *script;
		int code, sig;
	} cases[] = { { "result", 0, 0 },
		      { "result\nexit 7", 7, 0 },
		      { "result\nsignal 9", 0, 9 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s = claude(cases[i].script);
		int v = -1;

		CHECK_INT(s->status, UAA_OK);
		if (s->status == UAA_OK && cases[i].sig)
			CHECK(uaa_completion_signaled(s->completion, &v) && v == cases[i].sig);
		else if (s->status == UAA_OK)
			CHECK(uaa_completion_exited(s->completion, &v) && v == cases[i].code);
		seen_fini(s);
	}
}

TEST(a_half_line_at_the_end_counts_if_it_parses, "")
{
	struct seen *s = claude("part {\"type\":\"result\",\"is_error\":false,\"result\":\"x\"}");

	CHECK_INT(s->status, UAA_OK);
	seen_fini(s);
}

TEST(U27_spawn_failures_are_told_by_the_run, "LIB-52")
{
	uaa_claude_code_config c = { .struct_size = sizeof c,
				     .binary = uaa_str_c("/nonexistent/SECRET"),
				     .process = quick() };
	uaa_process_options nosup = *quick();
	struct seen *s = run_on(uaa_claude_code_backend_new(&c), NULL);
	uaa_request *r = ask("hi");

	check_error(s, "claude_code backend error: spawn failed: program not found");
	seen_fini(s);
	uaa_request_set_working_dir(r, uaa_str_c("/nonexistent/SECRET"));
	s = run_on(claude_doing("result", NULL, NULL), r);
	check_error(s, "claude_code backend error: spawn failed: working directory");
	seen_fini(s);
	nosup.supervisor = uaa_str_c("/nonexistent");
	s = run_on(claude_doing("result", NULL, &nosup), NULL);
	check_error(s, "claude_code backend error: spawn failed: supervisor not found");
	seen_fini(s);
}

TEST(lines_break_at_lf_only, "")
{
	struct uar_buf b = uar_buf_make(4096);
	struct seen *s =
		claude("line {\"type\":\"assistant\",\"message\":{\"id\":\"a\",\"content\":[{"
		       "\"type\":\"text\",\"text\":\"a\xE2\x80\xA8"
		       "b\"}]}}\r\nline \nline \r\nresult");

	CHECK_INT(s->status, UAA_OK);
	CHECK_STR(all_text(s, &b), "a\xE2\x80\xA8"
				   "b");
	CHECK_INT(count(s, UAA_EV_ERROR, NULL), 0);
	uar_buf_fini(&b);
	seen_fini(s);
}

TEST(a_line_of_16_mib_is_fine, "")
{
	struct seen *s = claude("bigline 16777000\nresult");
	struct uar_buf b = uar_buf_make(1 << 25);

	CHECK_INT(s->status, UAA_OK);
	CHECK_INT(all_text(s, &b).n, 16777000);
	CHECK_INT(count(s, UAA_EV_ERROR, NULL), 0);
	uar_buf_fini(&b);
	seen_fini(s);
}

TEST(a_larger_line_is_an_error_of_that_line_only, "")
{
	/* a gigabyte; less when the tests are told to be quick */
	struct seen *s =
		claude(getenv("AGENT_API_ROUNDS") ? "env A\njunkline 100000000\nenv B\nresult"
						  : "env A\njunkline 1073741824\nenv B\nresult");
	struct uar_buf b = uar_buf_make(4096);

	CHECK_INT(s->status, UAA_OK);
	CHECK_STR(all_text(s, &b), "A=(unset)B=(unset)");
	CHECK_INT(count(s, UAA_EV_ERROR, "line too long (line_bytes=1"), 1);
	uar_buf_fini(&b);
	seen_fini(s);
}

TEST(S06_U27_bad_lines_are_counted_not_shown, "LIB-52")
{
	struct seen *s = claude("line SECRET not json\nline SECRET again\npart {\"SECRET\":\"\n"
				"raw ff\nline \"}\nline [\"SECRET\"]\nenv A\nresult");

	CHECK_INT(s->status, UAA_OK);
	CHECK_INT(count(s, UAA_EV_ERROR, "not JSON"), 1);
	CHECK_INT(count(s, UAA_EV_ERROR, "not UTF-8"), 1);
	CHECK_INT(count(s, UAA_EV_ERROR, "not an object"), 1);
	CHECK_INT(count(s, UAA_EV_TEXT_OUTPUT, NULL), 1);
	seen_fini(s);
}

TEST(P08_a_stalled_reader_loses_nothing, "LIB-10 LIB-12")
{
	enum { N = 100000 };
	uaa_backend *b = claude_doing("burst 100000\nresult", NULL, NULL);
	uaa_request *r = ask("hi");
	uaa_run *run = NULL;
	uaa_event *ev;
	char want[32];
	int i = 0;

	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	wait_done(run); /* nothing is read before the agent has ended */
	while (uaa_run_next(run, -1, &ev) == UAA_OK) {
		if (uaa_event_get_kind(ev) == UAA_EV_TEXT_OUTPUT) {
			snprintf(want, sizeof want, "%d", i++);
			if (!uar_str_is(uab_str(uaa_event_text(ev)), want))
				CHECK_STR(uab_str(uaa_event_text(ev)), want);
		}
		uaa_event_unref(ev);
	}
	CHECK_INT(i, N);
	CHECK(uaa_run_wait(run, -1, NULL, NULL) == UAA_OK);
	uaa_run_unref(run);
	uaa_backend_unref(b);
	uaa_request_unref(r);
}

/* Without a reader the agent is still heard to its end. */
TEST(P07_a_reader_who_leaves_stops_nothing, "LIB-10")
{
	uaa_backend *b = claude_doing("env A\nburst 100000\nresult\nexit 7", NULL, NULL);
	uaa_request *r = ask("hi");
	uaa_completion *c = NULL;
	uaa_run *run = NULL;
	uaa_event *ev;
	int code = 0;

	CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
	CHECK(uaa_run_next(run, -1, &ev) == UAA_OK);
	uaa_event_unref(ev);
	uaa_run_close_events(run);
	CHECK(uaa_run_next(run, -1, &ev) == UAA_EOS);
	CHECK(uaa_run_wait(run, -1, &c, NULL) == UAA_OK);
	CHECK(c && uaa_completion_exited(c, &code) && code == 7);
	CHECK(c && contains(uaa_completion_final_text(c), "done"));
	uaa_completion_unref(c);
	uaa_run_unref(run);
	uaa_backend_unref(b);
	uaa_request_unref(r);
}

TEST(without_room_to_spill_the_agent_waits, "")
{
	uaa_process_options o = *quick();
	struct seen *s;

	o.queue_bytes = 4096;
	o.spill_bytes = 1; /* nothing fits */
	s = run_on(claude_doing("burst 3000\nresult", NULL, &o), NULL);
	CHECK_INT(s->status, UAA_OK);
	CHECK_INT(count(s, UAA_EV_TEXT_OUTPUT, NULL), 3000);
	seen_fini(s);
}

/* --- stopping --- */

TEST(K05_cancel_leaves_no_process, "LIB-15")
{
	static const char *const todos[] = {
		"env MARK_A\nhang",
		"ignoreterm\nenv MARK_A\nhang",
		"fork\nfork\nescape\nenv MARK_A\nhang",
		"ignoreterm\nescape\nfork\nescape\nenv MARK_A\nhang",
		"closeout\nhang",
	};

	for (size_t i = 0; i < ARRAY_LEN(todos); i++) {
		uaa_run *run = start_run(todos[i], NULL, 0);
		struct seen *s;

		if (i < 4) {
			first_event(run);
			CHECK(marked(mark()) > 0); /* else there is nothing to leave */
		}
		uab_cancel(run);
		s = collect(run);
		check_error(s, "cancelled");
		CHECK_INT(s->n, 0);
		CHECK_INT(marked(mark()), 0);
		CHECK_INT(children(), 0);
		seen_fini(s);
	}
}

TEST(leftovers_of_a_good_run_are_removed, "")
{
	struct seen *s = claude("escape\nfork\nresult");

	CHECK_INT(s->status, UAA_OK);
	CHECK_INT(marked(mark()), 0);
	seen_fini(s);
}

TEST(a_process_that_stays_after_its_result_is_stopped, "")
{
	uaa_process_options o = *quick();
	struct seen *s;
	int sig = 0;

	o.after_result_ms = 100;
	s = run_on(claude_doing("ignoreterm\nresult\nhang", NULL, &o), NULL);
	CHECK_INT(s->status, UAA_OK);
	CHECK(s->completion && uaa_completion_signaled(s->completion, &sig) && sig == SIGKILL);
	CHECK_INT(marked(mark()), 0);
	seen_fini(s);
}

TEST(U18_timeout_stops_everything, "LIB-49")
{
	struct seen *s = collect(start_run("escape\nenv A\nhang", NULL, 100));

	check_error(s, "claude_code backend error: timeout (details redacted when unsafe)");
	CHECK_INT(marked(mark()), 0);
	seen_fini(s);
}

TEST(timeouts_hold_when_nobody_reads, "")
{
	uaa_run *run = start_run("burst 100000\nhang", NULL, 100);

	wait_done(run);
	CHECK_INT(marked(mark()), 0);
	seen_fini(collect(run));
}

TEST(idle_time_is_an_option, "")
{
	uaa_process_options o = *quick();
	struct seen *s;

	o.idle_ms = 100;
	s = run_on(claude_doing("env A\nhang", NULL, &o), NULL);
	check_error(s, "claude_code backend error: idle timeout (details redacted when unsafe)");
	seen_fini(s);
}

TEST(P09_drop_at_every_state, "LIB-14 LIB-15")
{
	static const char *const todos[] = { "hang",   "env A\nhang",  "result\nhang",
					     "result", "escape\nhang", "burst 50000\nhang" };
	int fds = open_fds();

	for (size_t i = 0; i < ARRAY_LEN(todos); i++)
		for (int mode = 0; mode < 3; mode++) {
			uaa_run *run = start_run(todos[i], NULL, 0);

			if (mode == 1 && i > 0 && i != 4)
				first_event(run);
			if (mode == 2)
				uaa_run_close_events(run);
			uaa_run_unref(run);
		}
	while (marked(mark()) || children() || open_fds() > fds) /* gone in the background */
		sched_yield();
}

TEST(P10_a_tree_that_cannot_be_killed_is_reported, "LIB-16")
{
	/* a supervisor that pretends: it starts nothing and never says "empty" */
	char path[600];
	uaa_process_options o = *quick();
	FILE *f;
	struct seen *s;
	uaa_run *run;

	snprintf(path, sizeof path, "%s/stub", uar_test_dir());
	f = fopen(path, "w");
	fprintf(f,
		"#!/bin/sh\nexec 0<&- 1>&- 2>&-\ntrap '' TERM\nwhile [ -e %s ]; do sleep 0.05; "
		"done\n",
		path);
	fclose(f);
	chmod(path, 0755);
	o.supervisor = uaa_str_c(path);
	o.terminate_ms = o.kill_ms = 50;
	run = start_run("hang", &o, 0);
	while (!children())
		sched_yield();
	uab_cancel(run);
	s = collect(run);
	check_error(s, "termination failed");
	seen_fini(s);
	unlink(path);
	while (children())
		sched_yield();
}

/* Only when the next test starts it, in a process of its own. */
TEST(host_that_dies_without_a_word, "")
{
	uaa_run *run;

	if (!getenv("TEST_MARK"))
		return;
	run = start_run("ignoreterm\nescape\nfork\nenv A\nhang", NULL, 0);
	first_event(run);
	raise(SIGKILL);
}

TEST(the_death_of_the_host_kills_the_tree, "")
{
	const char *ours = mark(); /* of this process, not of the one that dies */
	pid_t host = fork();
	int status;

	if (host == 0) {
		setenv("TEST_MARK", ours + 10, 1);
		execl("/proc/self/exe", "host", "host_that_dies", (char *)NULL);
		_exit(9);
	}
	waitpid(host, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (marked(ours))
		sched_yield();
}

TEST(spawn_and_cancel_at_random, "")
{
	int n = rounds(1000), fds = open_fds();
	unsigned seed = (unsigned)time(NULL);

	printf("  seed %u\n", seed);
	for (int i = 0; i < n; i++) {
		uaa_run *run = start_run(i % 3 ? "fork\nescape\nburst 10\nhang" : "env A\nresult",
					 NULL, 0);
		struct timespec t = { 0, (long)(rand_r(&seed) % 6000) * 1000 };
		uaa_error *e = NULL;
		uaa_status st;

		nanosleep(&t, NULL); /* the random moment is the test */
		uab_cancel(run);
		st = uaa_run_collect(run, NULL, NULL, NULL, &e);
		if (st != UAA_OK && !uar_str_is(uab_str(uaa_error_message(e)), "cancelled"))
			uar_test_fail(__FILE__, __LINE__, "%s", uaa_error_message(e).ptr);
		uaa_error_unref(e);
		uaa_run_unref(run);
	}
	CHECK_INT(marked(mark()), 0);
	CHECK_INT(children(), 0);
	while (open_fds() > fds) /* the last thread may still be closing */
		sched_yield();
}

TEST(U30_the_host_is_left_alone, "LIB-55")
{
	extern char **environ;
	struct uar_buf before = uar_buf_make(1 << 20), after = uar_buf_make(1 << 20);
	char cwd[4096], cwd2[4096];
	sigset_t mask, mask2;
	struct sigaction chld, chld2, pipe_, pipe2_;

	for (char **e = environ; *e; e++)
		uar_buf_add(&before, *e, strlen(*e) + 1);
	CHECK(getcwd(cwd, sizeof cwd) != NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	sigaction(SIGCHLD, NULL, &chld);
	sigaction(SIGPIPE, NULL, &pipe_);
	seen_fini(claude("env A\nresult"));
	for (char **e = environ; *e; e++)
		uar_buf_add(&after, *e, strlen(*e) + 1);
	CHECK(getcwd(cwd2, sizeof cwd2) && strcmp(cwd, cwd2) == 0);
	CHECK(uar_str_eq(uar_buf_str(&before), uar_buf_str(&after)));
	pthread_sigmask(SIG_SETMASK, NULL, &mask2);
	for (int i = 1; i < 32; i++)
		CHECK(sigismember(&mask, i) == sigismember(&mask2, i));
	sigaction(SIGCHLD, NULL, &chld2);
	sigaction(SIGPIPE, NULL, &pipe2_);
	CHECK(chld.sa_handler == chld2.sa_handler && pipe_.sa_handler == pipe2_.sa_handler);
	uar_buf_fini(&before);
	uar_buf_fini(&after);
}

TEST(a_host_that_reaps_everything_does_no_harm, "")
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	struct seen *s;

	sigaction(SIGCHLD, &ignore, &old); /* children vanish without a wait */
	s = claude("env A\nresult\nexit 5");
	CHECK_INT(s->status, UAA_OK);
	seen_fini(s);
	sigaction(SIGCHLD, &old, NULL);
}

TEST(descriptors_of_the_host_are_not_inherited, "")
{
	int p[2];
	struct seen *s;
	char byte;
	uaa_run *run;

	CHECK(pipe(p) == 0); /* without close-on-exec, as careless hosts do */
	run = start_run("closeout\nhang", NULL, 0);
	close(p[1]);
	CHECK(read(p[0], &byte, 1) == 0); /* nobody else holds the other end */
	uab_cancel(run);
	s = collect(run);
	seen_fini(s);
	close(p[0]);
}

TEST(P14_cancel_races_the_exit_of_a_process, "LIB-19")
{
	int n = rounds(2000), ok = 0, cancelled = 0;
	uaa_backend *b = claude_doing("result", NULL, NULL);
	uaa_request *r = ask("hi");

	for (int i = 0; i < n; i++) {
		uaa_run *run = NULL;
		uaa_event *ev;
		uaa_completion *c = NULL;
		uaa_error *e = NULL;
		uaa_status first, second;

		CHECK(uaa_backend_run(b, r, &run, NULL) == UAA_OK);
		if (i % 2 && uaa_run_next(run, -1, &ev) == UAA_OK) /* near the exit */
			uaa_event_unref(ev);
		uab_cancel(run);
		first = uaa_run_collect(run, NULL, NULL, NULL, &e);
		uab_cancel(run);
		second = uaa_run_wait(run, 0, &c, NULL);
		if (first != second)
			uar_test_fail(__FILE__, __LINE__, "resolved twice");
		if (e && !uar_str_is(uab_str(uaa_error_message(e)), "cancelled"))
			uar_test_fail(__FILE__, __LINE__, "%s", uaa_error_message(e).ptr);
		ok += first == UAA_OK;
		cancelled += first == UAA_E_BACKEND;
		uaa_completion_unref(c);
		uaa_error_unref(e);
		uaa_run_unref(run);
	}
	CHECK_INT(ok + cancelled, n);
	CHECK_INT(children(), 0);
	uaa_request_unref(r);
	uaa_backend_unref(b);
}

struct one_of_many {
	uaa_backend *backend;
	int texts;
	uaa_status status;
};

static void *many(void *arg)
{
	struct one_of_many *m = arg;
	struct seen *s = run_on(uaa_backend_ref(m->backend), NULL);
	char want[32];

	for (int i = 0; i < s->n; i++)
		if (uaa_event_get_kind(s->ev[i]) == UAA_EV_TEXT_OUTPUT) {
			snprintf(want, sizeof want, "%d", m->texts++);
			if (!uar_str_is(uab_str(uaa_event_text(s->ev[i])), want))
				uar_test_fail(__FILE__, __LINE__, "out of order");
		}
	m->status = s->status;
	seen_fini(s);
	return NULL;
}

TEST(one_backend_serves_many_threads, "LIB-13 LIB-31 LIB-35")
{
	uaa_backend *b = claude_doing("burst 2000\nresult", NULL, NULL);
	struct one_of_many m[6];
	pthread_t t[6];

	for (int i = 0; i < 6; i++) {
		m[i] = (struct one_of_many){ .backend = b };
		pthread_create(&t[i], NULL, many, &m[i]);
	}
	for (int i = 0; i < 6; i++) {
		pthread_join(t[i], NULL);
		CHECK_INT(m[i].status, UAA_OK);
		CHECK_INT(m[i].texts, 2000);
	}
	uaa_backend_unref(b);
}
