/* supervisor_test.c - what is left of a run whose supervisor is killed, with a control group and
 * without one.
 * time limit: 120 s, runs of it go into their own time-outs */
#include "backend/cli_test.h"

#include <errno.h>
#include <sys/stat.h>

/* Of an agent with children of which one has left its session, its group and its parent. */
static struct seen *kill_supervisor(uaa_process_options *o)
{
	uaa_run *run = start_run("ignoreterm\nescape\nfork\nenv A\nhang", o, 0);
	pid_t pid;

	first_event(run);
	pid = only_child();
	CHECK(pid > 0);
	if (pid > 0) /* 0 would be everybody of this group */
		kill(pid, SIGKILL);
	return collect(run);
}

TEST(without_a_group_a_killed_supervisor_is_told_truthfully, "")
{
	uaa_process_options o = *quick();
	struct seen *s;

	o.cgroup = uaa_str_c("");
	s = kill_supervisor(&o);
	check_error(s, "termination failed: the supervisor was killed, and processes that detached "
		       "themselves may survive");
	CHECK_INT(count(s, UAA_EV_ERROR, "themselves may survive"), 1);
	CHECK(marked(mark()) > 0); /* and that is true */
	seen_fini(s);
	until_none_is_marked(mark());
}

/* A plain directory has no control files, so no process can be in it. */
TEST(a_directory_that_is_no_group_promises_nothing, "")
{
	uaa_process_options o = *quick();
	struct seen *s;

	o.cgroup = uaa_str_c(uar_test_dir());
	s = kill_supervisor(&o);
	check_error(s, UAB_LOST);
	CHECK_INT(count(s, UAA_EV_ERROR, "themselves may survive"), 1);
	CHECK(marked(mark()) > 0);
	seen_fini(s);
	until_none_is_marked(mark());
}

/* Kills the supervisor when the run has said `before`, behind the agent's own word "A"; NULL: its
 * time was over before the agent had begun. */
static struct seen *lose_behind(const char *script, const char *before, int64_t timeout_ms)
{
	uaa_process_options o = *quick();
	bool begun = false, said = false;
	uaa_event *ev;
	uaa_run *run;
	pid_t pid;

	o.cgroup = uaa_str_c("");
	o.terminate_ms = 60000;
	run = start_run(script, &o, timeout_ms);
	while (!said && uaa_run_next(run, -1, &ev) == UAA_OK) {
		begun |= contains(uaa_event_text(ev), "A=");
		said = contains(uaa_event_message(ev), before);
		uaa_event_unref(ev);
	}
	CHECK(said);
	pid = begun ? only_child() : 0;
	if (pid > 0) {
		kill(pid, SIGKILL);
		return collect(run);
	}
	uaa_run_unref(run);
	return NULL;
}

/* Its last event says the same, not what it had come to before. */
TEST(a_supervisor_that_is_killed_while_a_run_stops_is_told_too, "")
{
	static const struct {
		const char *script, *before;
		int64_t timeout_ms;
	} cases[] = { { "ignoreterm\nescape\nenv A\nhang", "timeout", 500 },
		      { "ignoreterm\nescape\nenv A\nresult\nhang", "completed", 0 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen *s = NULL;

		for (int64_t ms = cases[i].timeout_ms; !s && ms <= 40000;
		     ms = ms ? ms * 8 : INT64_MAX)
			s = lose_behind(cases[i].script, cases[i].before, ms);
		REQUIRE(s != NULL);
		check_error(s, UAB_LOST);
		CHECK_INT(s->n, 1);
		CHECK_INT(count(s, UAA_EV_ERROR, "themselves may survive"), 1);
		CHECK(marked(mark()) > 0);
		seen_fini(s);
		until_none_is_marked(mark());
	}
}

/* A run that was cancelled has no events any more; its error says it nevertheless. */
TEST(a_supervisor_that_is_killed_during_a_cancel_is_told_in_the_error, "")
{
	uaa_process_options o = *quick();
	uaa_run *run;
	struct seen *s;
	pid_t pid;

	o.cgroup = uaa_str_c("");
	o.terminate_ms = 60000;
	run = start_run("ignoreterm\nescape\nenv A\nhang", &o, 0);
	first_event(run);
	uab_cancel(run);
	pid = only_child();
	REQUIRE(pid > 0);
	kill(pid, SIGKILL);
	s = collect(run);
	check_error(s, UAB_LOST);
	CHECK_INT(s->n, 0);
	CHECK(marked(mark()) > 0);
	seen_fini(s);
	until_none_is_marked(mark());
}

/* Of all runs of this process. */
static void check_no_group(void)
{
	char parent[UAB_CGROUP_PATH], path[UAB_CGROUP_PATH + 64];

	uab_cgroup_parent(UAB_NONE, parent);
	for (unsigned i = 0; parent[0] && i < 1000; i++) {
		snprintf(path, sizeof path, "%s/agent-api-%ld-%u", parent, (long)getpid(), i);
		CHECK_MSG(access(path, F_OK) != 0, "%s is left", path);
	}
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* A directory that is not empty stands for a group with a process that cannot be killed. */
TEST(a_group_that_was_not_empty_is_removed_later, "")
{
	char parent[UAB_CGROUP_PATH], stuck[UAB_CGROUP_PATH], at_work[UAB_CGROUP_PATH],
		other[UAB_CGROUP_PATH], third[UAB_CGROUP_PATH], stuck_too[UAB_CGROUP_PATH],
		member[UAB_CGROUP_PATH + 8];
	char path[UAB_CGROUP_PATH];
	uaa_process_options o = *quick();

	uab_cgroup_parent(uaa_str_c(uar_test_dir()), parent);
	snprintf(other, sizeof other, "%.900s/agent-api-1-0", parent); /* of another host */
	CHECK_INT(mkdir(other, 0755), 0);
	uab_cgroup_make(parent, at_work);
	uab_cgroup_make(parent, stuck);
	snprintf(member, sizeof member, "%s/member", stuck);
	CHECK_INT(mkdir(member, 0755), 0);
	snprintf(path, sizeof path, "%s", stuck);
	uab_cgroup_remove(path);
	CHECK(is_there(stuck));
	uab_cgroup_make(parent, stuck_too);
	CHECK(is_there(stuck)); /* not empty yet */
	CHECK_INT(rmdir(member), 0);
	uab_cgroup_make(parent, third);
	CHECK(!is_there(stuck));
	CHECK(is_there(at_work) && is_there(stuck_too) && is_there(third) && is_there(other));
	snprintf(member, sizeof member, "%s/member", stuck_too);
	CHECK_INT(mkdir(member, 0755), 0);
	snprintf(path, sizeof path, "%s", stuck_too);
	uab_cgroup_remove(path);
	CHECK_INT(rmdir(member), 0);
	o.cgroup = uaa_str_c("");
	seen_fini(collect(start_run("env A\nresult", &o, 0)));
	while (is_there(stuck_too)) /* until its thread has let go of the backend */
		sched_yield();
	CHECK(is_there(at_work) && is_there(third) && is_there(other));
	uab_cgroup_remove(at_work);
	uab_cgroup_remove(third);
	CHECK(!is_there(third));
	CHECK_INT(rmdir(other), 0);
}

TEST(in_a_group_nothing_survives_a_killed_supervisor, "")
{
	struct seen *s;

	if (!has_groups()) {
		uar_test_skip("control groups cannot be made here");
		return;
	}
	s = kill_supervisor(NULL);
	CHECK_INT(marked(mark()), 0);
	CHECK_INT(s->status, UAA_E_BACKEND);
	CHECK_INT(uaa_error_cause(s->error), UAA_CAUSE_CRASH);
	CHECK(contains(uaa_error_message(s->error), "every process of the run is ended"));
	CHECK_INT(count(s, UAA_EV_ERROR, "every process of the run is ended"), 1);
	check_no_group();
	seen_fini(s);
}

/* Whatever its runs do, the group goes with them. */
TEST(a_run_leaves_no_group_behind, "")
{
	seen_fini(claude("env A\nresult"));
	seen_fini(claude("env A\nescape\nexit 3"));
	check_no_group();
}
