/* child_test.c - children that talk, end, are killed, and leave nothing behind. */
#include "loop/child.h"

#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/supervise.h"

/* The supervisor is this very program, as it is `uar` in the server. */
__attribute__((constructor)) static void be_supervisor(int argc, char **argv)
{
	uar_supervise(argc, argv);
}

struct scene {
	struct uar_loop *loop;
	struct uar_child *child;
	struct uar_buf out, err;
	int status;
	bool over;
	size_t stop_at; /* bytes of output after which the loop stops; 0: never */
};

static const char *const environment[] = { "PATH=/usr/bin:/bin", NULL };

static void on_output(void *ctx, uar_str bytes)
{
	struct scene *s = ctx;

	uar_buf_add_str(&s->out, bytes);
	if (s->stop_at && s->out.n >= s->stop_at)
		uar_loop_stop(s->loop);
}

static void on_errors(void *ctx, uar_str bytes)
{
	uar_buf_add_str(&((struct scene *)ctx)->err, bytes);
}

static void on_exited(void *ctx, int status)
{
	struct scene *s = ctx;

	s->status = status;
	s->over = true;
	uar_loop_stop(s->loop);
}

static bool play(struct scene *s, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct uar_child_options o = {
		argv, environment, "/", NULL, on_errors, NULL, on_exited, s
	};
	struct uar_error error = { 0 };

	*s = (struct scene){ .out = uar_buf_make(1 << 20), .err = uar_buf_make(1 << 20) };
	o.output = on_output;
	if (uar_loop_create(&uar_clock_system, &s->loop))
		return false;
	return CHECK_MSG(uar_child_start(s->loop, &o, &s->child, &error) == UAR_OK, "%s",
			 error.text);
}

static void end(struct scene *s)
{
	uar_child_destroy(s->child);
	uar_loop_destroy(s->loop);
	uar_buf_fini(&s->out);
	uar_buf_fini(&s->err);
}

/* Runs until `n` bytes of output are there or the child is over. */
static void until_output(struct scene *s, size_t n)
{
	s->stop_at = n;
	while (s->out.n < n && !s->over)
		uar_loop_run(s->loop);
	s->stop_at = 0;
}

static void until_over(struct scene *s)
{
	while (!s->over)
		uar_loop_run(s->loop);
}

TEST(a_child_talks_and_ends, "")
{
	struct scene s;

	REQUIRE(play(&s, "pwd; echo bad >&2; cat; exit 7"));
	CHECK(uar_child_write(s.child, UAR_STR("one\n")) == UAR_OK);
	CHECK(uar_child_write(s.child, UAR_STR("two\n")) == UAR_OK);
	uar_child_end_input(s.child);
	CHECK(uar_child_write(s.child, UAR_STR("late")) == UAR_EEOF);
	until_over(&s);
	CHECK_STR(uar_buf_str(&s.out), "/\none\ntwo\n");
	CHECK_STR(uar_buf_str(&s.err), "bad\n");
	CHECK_INT(s.status, 7);
	end(&s);
}

TEST(only_the_given_environment_is_there, "")
{
	struct scene s;

	setenv("UAR_TEST_SECRET", "secret", 1);
	REQUIRE(play(&s, "env | grep -c SECRET"));
	until_over(&s);
	CHECK_STR(uar_buf_str(&s.out), "0\n");
	end(&s);
}

TEST(a_command_that_is_not_there_exits_127, "")
{
	static const char *const argv[] = { "/nonexistent/command", NULL };
	struct scene s;
	struct uar_child_options o = { argv,	  environment, NULL,	  on_output,
				       on_errors, NULL,	       on_exited, &s };

	s = (struct scene){ .out = uar_buf_make(1 << 20), .err = uar_buf_make(1 << 20) };
	REQUIRE(uar_loop_create(&uar_clock_system, &s.loop) == UAR_OK);
	REQUIRE(uar_child_start(s.loop, &o, &s.child, NULL) == UAR_OK);
	until_over(&s);
	CHECK_INT(s.status, 127);
	CHECK(uar_str_starts(uar_buf_str(&s.err), UAR_STR("cannot start")));
	end(&s);
}

/* Each line of output names one process of the tree. */
static void check_all_gone(const struct scene *s, size_t want)
{
	uar_str rest = uar_buf_str(&s->out);
	size_t n = 0;

	while (rest.n) {
		uar_str line = uar_str_cut(rest, '\n', &rest);
		uint64_t pid = 0;

		if (!line.n)
			continue;
		CHECK(uar_str_u64(line, &pid) == UAR_OK && pid > 1);
		CHECK_MSG(kill((pid_t)pid, 0) && errno == ESRCH, "%llu is still there",
			  (unsigned long long)pid);
		n++;
	}
	CHECK_INT(n, want);
}

#define TREE                                                                                       \
	"echo $$; sleep 1000 & echo $!; "                                                          \
	"setsid sh -c 'echo $$; sleep 1000 & echo $!; wait' & "                                    \
	"sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 1000\" &' ; "

static size_t lines_of(const struct scene *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->out.n; i++)
		n += s->out.p[i] == '\n';
	return n;
}

static void until_lines(struct scene *s, size_t n)
{
	while (lines_of(s) < n && !s->over)
		until_output(s, s->out.n + 1);
}

TEST(killing_gets_the_whole_tree, "")
{
	struct scene s;

	REQUIRE(play(&s, TREE "wait"));
	until_lines(&s, 5);
	uar_child_kill(s.child);
	until_over(&s);
	CHECK_INT(s.status, 128 + SIGKILL);
	check_all_gone(&s, 5);
	end(&s);
}

TEST(an_exit_takes_the_tree_along, "")
{
	struct scene s;

	REQUIRE(play(&s, TREE "read line; exit 3"));
	until_lines(&s, 5);
	CHECK(uar_child_write(s.child, UAR_STR("go\n")) == UAR_OK);
	until_over(&s);
	CHECK_INT(s.status, 3);
	check_all_gone(&s, 5);
	end(&s);
}

TEST(destroying_waits_for_the_last_process, "")
{
	struct scene s;

	REQUIRE(play(&s, TREE "trap '' TERM; while :; do sleep 1000; done"));
	until_lines(&s, 5);
	uar_child_destroy(s.child);
	s.child = NULL;
	check_all_gone(&s, 5);
	end(&s);
}

TEST(a_paused_child_waits, "")
{
	struct scene s;

	REQUIRE(play(&s, "head -c 300000 /dev/zero | tr '\\0' x"));
	uar_child_pause(s.child, true);
	uar_child_pause(s.child, false);
	until_over(&s);
	CHECK_INT(s.out.n, 300000);
	end(&s);
}
