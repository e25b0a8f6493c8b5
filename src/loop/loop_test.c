/* loop_test.c - turns, timers, other threads, signals, workers. */
#include "test.h"

#include <signal.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "leap.h"
#include "loop/limits.h"
#include "loop/loop.h"

static struct uar_loop *loop;

static bool open_loop(void)
{
	loop = NULL;
	return CHECK(uar_loop_create(&uar_clock_system, &loop) == UAR_OK);
}

static void close_loop(void)
{
	uar_loop_destroy(loop);
}

/* --- tasks --- */

struct step {
	struct uar_task task;
	int *order, *next;
	struct step *then;
	bool stop;
};

static void on_step(struct uar_task *t)
{
	struct step *s = UAR_OWNER(t, struct step, task);

	*s->order = (*s->next)++;
	if (s->then)
		uar_post(uar_loop_sched(loop), &s->then->task);
	if (s->stop)
		uar_loop_stop(loop);
}

TEST(tasks_run_in_order_and_never_inside_post, "")
{
	int order[3] = { -1, -1, -1 }, next = 0;
	struct step last = { .task.fn = on_step, .order = &order[2], .next = &next, .stop = true };
	struct step first = {
		.task.fn = on_step, .order = &order[0], .next = &next, .then = &last
	};
	struct step second = { .task.fn = on_step, .order = &order[1], .next = &next };

	REQUIRE(open_loop());
	uar_post(uar_loop_sched(loop), &first.task);
	uar_post(uar_loop_sched(loop), &second.task);
	uar_post(uar_loop_sched(loop), &first.task); /* stays once */
	CHECK_INT(next, 0);
	uar_loop_run(loop);
	CHECK_INT(order[0], 0);
	CHECK_INT(order[1], 1);
	CHECK_INT(order[2], 2);
	close_loop();
}

TEST(a_task_taken_back_does_not_run, "")
{
	int order[2] = { -1, -1 }, next = 0;
	struct step a = { .task.fn = on_step, .order = &order[0], .next = &next };
	struct step b = { .task.fn = on_step, .order = &order[1], .next = &next, .stop = true };

	REQUIRE(open_loop());
	uar_post(uar_loop_sched(loop), &a.task);
	uar_post(uar_loop_sched(loop), &b.task);
	uar_unpost(uar_loop_sched(loop), &a.task);
	uar_unpost(uar_loop_sched(loop), &a.task);
	uar_loop_run(loop);
	CHECK_INT(order[0], -1);
	CHECK_INT(order[1], 0);
	close_loop();
}

/* --- timers --- */

struct alarm {
	struct uar_timer timer;
	int id, again;
	int *log, *n;
	int all; /* alarms after which the loop stops; 0: not counted */
	int64_t fired_us;
};

static void on_alarm(struct uar_timer *t)
{
	struct alarm *a = UAR_OWNER(t, struct alarm, timer);

	a->fired_us = uar_clock_mono(&uar_clock_system);
	a->log[(*a->n)++] = a->id;
	if (a->again-- > 0)
		CHECK(uar_timer_set(uar_loop_sched(loop), t, 0) == UAR_OK);
	else if (a->id == 9)
		uar_loop_stop(loop);
	if (a->all && *a->n == a->all)
		uar_loop_stop(loop);
}

TEST(timers_fire_by_due_time_and_not_early, "")
{
	int log[8], n = 0;
	struct alarm late = { .timer.fn = on_alarm, .id = 8, .log = log, .n = &n, .all = 4 };
	struct alarm soon = {
		.timer.fn = on_alarm, .id = 1, .again = 2, .log = log, .n = &n, .all = 4
	};
	struct alarm never = { .timer.fn = on_alarm, .id = 7, .log = log, .n = &n };
	struct uar_sched *s;

	REQUIRE(open_loop());
	s = uar_loop_sched(loop);
	CHECK(uar_timer_set(s, &late.timer, 30000) == UAR_OK);
	CHECK(uar_timer_set(s, &never.timer, 2000) == UAR_OK);
	CHECK(uar_timer_set(s, &soon.timer, 5000) == UAR_OK);
	uar_timer_stop(s, &never.timer);
	uar_timer_stop(s, &never.timer);
	CHECK(uar_timer_set(s, &late.timer, 10000) == UAR_OK); /* restarted, earlier */
	uar_loop_run(loop);
	CHECK_INT(n, 4); /* where a slow machine puts the late one among the repeats is open */
	CHECK(log[0] == 1 && log[0] + log[1] + log[2] + log[3] == 1 + 1 + 1 + 8);
	CHECK(late.fired_us >= late.timer.due_us && soon.fired_us >= soon.timer.due_us);
	close_loop();
}

static int64_t frozen(void *ctx)
{
	return *(int64_t *)ctx;
}

TEST(a_timer_that_sets_itself_for_now_lets_the_loop_turn, "")
{
	int64_t now = 1000;
	struct uar_clock clock = { frozen, frozen, &now };
	int log[8], n = 0, order = -1, next = 0;
	struct alarm self = { .timer.fn = on_alarm, .id = 1, .again = 100, .log = log, .n = &n };
	struct step end = { .task.fn = on_step, .order = &order, .next = &next, .stop = true };

	loop = NULL;
	REQUIRE(uar_loop_create(&clock, &loop) == UAR_OK);
	CHECK(uar_timer_set(uar_loop_sched(loop), &self.timer, 0) == UAR_OK);
	uar_post(uar_loop_sched(loop), &end.task);
	uar_loop_run(loop); /* would not come back if it fired in one turn for ever */
	CHECK(n <= 2);
	close_loop();
}

/* --- other threads --- */

enum { REMOTE_THREADS = 4, REMOTE_EACH = 500 };
struct remote {
	struct uar_task task;
	unsigned *count;
};
static struct remote remotes[REMOTE_THREADS][REMOTE_EACH];

static void on_remote(struct uar_task *t)
{
	struct remote *r = UAR_OWNER(t, struct remote, task);

	if (++*r->count == REMOTE_THREADS * REMOTE_EACH)
		uar_loop_stop(loop);
}

static void post_many(void *ctx)
{
	struct remote *mine = ctx;

	for (int i = 0; i < REMOTE_EACH; i++)
		uar_post_remote(uar_loop_sched(loop), &mine[i].task);
}

TEST(tasks_from_other_threads_all_arrive, "")
{
	uv_thread_t ids[REMOTE_THREADS];
	unsigned count = 0;

	REQUIRE(open_loop());
	memset(remotes, 0, sizeof remotes);
	for (int i = 0; i < REMOTE_THREADS; i++) {
		for (int k = 0; k < REMOTE_EACH; k++)
			remotes[i][k] = (struct remote){ .task.fn = on_remote, .count = &count };
		REQUIRE(uv_thread_create(&ids[i], post_many, remotes[i]) == 0);
	}
	uar_loop_run(loop);
	for (int i = 0; i < REMOTE_THREADS; i++)
		uv_thread_join(&ids[i]);
	CHECK_INT(count, REMOTE_THREADS * REMOTE_EACH);
	close_loop();
}

static void post_one(void *ctx)
{
	uar_post_remote(uar_loop_sched(loop), ctx);
}

/* Also one that the loop has not fetched yet. */
TEST(a_task_of_another_thread_can_be_taken_back, "")
{
	int order[2] = { -1, -1 }, next = 0;
	struct step a = { .task.fn = on_step, .order = &order[0], .next = &next };
	struct step b = { .task.fn = on_step, .order = &order[1], .next = &next, .stop = true };
	uv_thread_t id;

	REQUIRE(open_loop());
	REQUIRE(uv_thread_create(&id, post_one, &a.task) == 0);
	uv_thread_join(&id);
	uar_unpost(uar_loop_sched(loop), &a.task);
	uar_post(uar_loop_sched(loop), &b.task);
	uar_loop_run(loop);
	CHECK_INT(order[0], -1);
	CHECK_INT(order[1], 0);
	close_loop();
}

/* --- workers --- */

struct sum {
	struct uar_work work;
	uv_thread_t ran_on;
	unsigned long n, total;
	unsigned *left;
};

static void add_up(struct uar_work *w)
{
	struct sum *s = UAR_OWNER(w, struct sum, work);

	for (unsigned long i = 1; i <= s->n; i++)
		s->total += i;
	s->ran_on = uv_thread_self();
}

static void added_up(struct uar_work *w)
{
	struct sum *s = UAR_OWNER(w, struct sum, work);

	if (--*s->left == 0)
		uar_loop_stop(loop);
}

struct held {
	struct uar_work work;
	uv_sem_t *go;
};

TEST(work_runs_elsewhere_and_ends_on_the_loop, "")
{
	static struct sum sums[50];
	unsigned left = ARRAY_LEN(sums);
	uv_thread_t self = uv_thread_self();

	REQUIRE(open_loop());
	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		sums[i] = (struct sum){ .work = { .work = add_up, .done = added_up },
					.n = i,
					.left = &left };
		REQUIRE(uar_work_begin(uar_loop_sched(loop), &sums[i].work) == UAR_OK);
	}
	uar_loop_run(loop);
	CHECK_INT(left, 0);
	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		CHECK_INT(sums[i].total, i * (i + 1) / 2);
		CHECK(!uv_thread_equal(&sums[i].ran_on, &self));
	}
	close_loop();
}

TEST(work_under_way_is_finished_by_destroy, "")
{
	static struct sum sums[20];
	unsigned left = ARRAY_LEN(sums) + 1; /* so that nobody stops the loop */

	REQUIRE(open_loop());
	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		sums[i] = (struct sum){ .work = { .work = add_up, .done = added_up },
					.n = 10000,
					.left = &left };
		REQUIRE(uar_work_begin(uar_loop_sched(loop), &sums[i].work) == UAR_OK);
	}
	close_loop();
	CHECK_INT(left, 1);
}

static void held(struct uar_work *w)
{
	uv_sem_wait(UAR_OWNER(w, struct held, work)->go);
}

static void let_go(struct uar_work *w)
{
	(void)w;
	uar_loop_stop(loop);
}

TEST(a_loop_knows_that_somebody_works, "")
{
	uv_sem_t go;
	struct held h[2] = { { { .work = held, .done = let_go }, &go },
			     { { .work = held, .done = let_go }, &go } };

	REQUIRE(open_loop());
	CHECK(!uar_loop_working(loop));
	REQUIRE(uv_sem_init(&go, 0) == 0);
	for (size_t i = 0; i < ARRAY_LEN(h); i++) {
		REQUIRE(uar_work_begin(uar_loop_sched(loop), &h[i].work) == UAR_OK);
		CHECK(uar_loop_working(loop));
	}
	uv_sem_post(&go);
	uar_loop_run(loop); /* one is back */
	CHECK(uar_loop_working(loop));
	uv_sem_post(&go);
	uar_loop_run(loop);
	while (uar_loop_working(loop)) {} /* it says so before it is idle */
	close_loop();
	uv_sem_destroy(&go);
}

/* --- work that hangs --- */

/* More of it, with time passing, until no more is taken. */
struct flood {
	struct uar_task task;
	struct leap leap;
	uv_sem_t go;
	size_t begun, over;
	struct held held[1000];
};

static void held_over(struct uar_work *w)
{
	struct flood *f = UAR_OWNER(UAR_OWNER(w, struct held, work)->go, struct flood, go);

	if (++f->over == f->begun)
		uar_loop_stop(loop);
}

static void hold_one_more(struct uar_task *t)
{
	struct flood *f = UAR_OWNER(t, struct flood, task);
	struct held *h = &f->held[f->begun];
	uar_err e;

	*h = (struct held){ { .work = held, .done = held_over }, &f->go };
	e = uar_work_begin(uar_loop_sched(loop), &h->work);
	f->begun += !e;
	if (e || f->begun == ARRAY_LEN(f->held)) {
		CHECK_INT(e, UAR_EBUSY);
		uar_loop_stop(loop);
		return;
	}
	leap_ahead(&f->leap, uar_loop_sched(loop), 10 * 1000 * 1000);
	uar_post(uar_loop_sched(loop), t);
}

TEST(work_that_hangs_does_not_hold_up_others, "")
{
	struct held h[UAR_LIMIT_WORK_THREADS];
	struct sum sum = { .work = { .work = add_up, .done = added_up }, .n = 10 };
	struct uar_work_stats st;
	unsigned left = 1;
	uv_sem_t go;

	REQUIRE(open_loop());
	REQUIRE(uv_sem_init(&go, 0) == 0);
	for (size_t i = 0; i < ARRAY_LEN(h); i++) {
		h[i] = (struct held){ { .work = held, .done = let_go }, &go };
		REQUIRE(uar_work_begin(uar_loop_sched(loop), &h[i].work) == UAR_OK);
	}
	sum.left = &left;
	REQUIRE(uar_work_begin(uar_loop_sched(loop), &sum.work) == UAR_OK);
	uar_loop_run(loop);
	CHECK_INT(left, 0);
	uar_loop_work_stats(loop, &st);
	CHECK(st.threads > UAR_LIMIT_WORK_THREADS);
	CHECK(st.at_work >= UAR_LIMIT_WORK_THREADS);
	for (size_t i = 0; i < ARRAY_LEN(h); i++)
		uv_sem_post(&go);
	close_loop();
	uv_sem_destroy(&go);
}

TEST(when_all_threads_hang_no_more_work_is_taken, "")
{
	static struct flood f;
	struct sum sum = { .work = { .work = add_up, .done = added_up }, .n = 10 };
	struct uar_work_stats st;
	unsigned left = 1;

	f = (struct flood){ .task = { .fn = hold_one_more } };
	leap_init(&f.leap);
	loop = NULL;
	REQUIRE(uar_loop_create(&f.leap.clock, &loop) == UAR_OK);
	REQUIRE(uv_sem_init(&f.go, 0) == 0);
	uar_post(uar_loop_sched(loop), &f.task);
	uar_loop_run(loop);
	uar_loop_work_stats(loop, &st);
	CHECK_INT(st.threads, UAR_LIMIT_WORK_THREADS_MOST);
	for (size_t i = 0; i < f.begun; i++)
		uv_sem_post(&f.go);
	uar_loop_run(loop);
	CHECK_INT(f.over, f.begun);
	sum.left = &left;
	CHECK(uar_work_begin(uar_loop_sched(loop), &sum.work) == UAR_OK); /* it has passed */
	uar_loop_run(loop);
	CHECK_INT(left, 0);
	close_loop();
	uv_sem_destroy(&f.go);
}

/* --- signals, memory --- */

static void on_usr1(void *ctx, int signum)
{
	*(int *)ctx = signum;
	uar_loop_stop(loop);
}

TEST(signals_arrive_on_the_loop, "")
{
	int got = 0;

	REQUIRE(open_loop());
	REQUIRE(uar_loop_on_signal(loop, SIGUSR1, on_usr1, &got) == UAR_OK);
	kill(getpid(), SIGUSR1);
	uar_loop_run(loop);
	CHECK_INT(got, SIGUSR1);
	CHECK(uar_loop_on_signal(loop, SIGKILL, on_usr1, &got) == UAR_EINVALID);
	close_loop();
}

TEST(no_memory_is_reported_and_leaves_nothing, "")
{
	struct uar_timer t = { 0 };

	loop = NULL;
	uar_test_fail_alloc(1);
	CHECK(uar_loop_create(&uar_clock_system, &loop) == UAR_ENOMEM);
	uar_test_fail_alloc(0);
	uar_loop_destroy(NULL);
	REQUIRE(open_loop());
	uar_test_fail_alloc(1);
	CHECK(uar_timer_set(uar_loop_sched(loop), &t, 1) == UAR_ENOMEM);
	uar_test_fail_alloc(1);
	CHECK(uar_loop_on_signal(loop, SIGUSR1, on_usr1, NULL) == UAR_ENOMEM);
	uar_test_fail_alloc(0);
	close_loop();
}
