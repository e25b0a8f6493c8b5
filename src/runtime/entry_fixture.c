/* entry_fixture.c - replays a recorded stream as a run.
 *
 * Deterministic: the same file gives the same events. At the recorded pace a
 * line waits for its "at_ms" since the run started; otherwise lines follow as
 * fast as they become durable. After a restart it goes on behind the last line
 * that is in the log. */
#include "runtime/fixture_file.h"
#include "runtime/spill.h"

struct fixture {
	struct worker base;
	struct uar_task next;
	struct uar_timer wait;
	uar_str text, rest;
	int64_t line; /* the last one sent */
	bool paced, held;
	int64_t origin_us;   /* monotonic moment of at_ms 0 */
	struct spill *spill; /* a line whose long value is being stored */
	uar_str retry;	     /* where that line begins */
};

/* Microseconds until the line is due; 0 when it is or the pace is full. */
static int64_t due_in(const struct fixture *f, const struct uar_json *j)
{
	struct uar_sched *sched = f->base.run->agg->rt->o.sched;
	int64_t at_us = uar_json_int(uar_json_get(j, UAR_STR("at_ms")), 0) * 1000;
	int64_t now = uar_clock_mono(sched->clock);

	if (!f->paced || f->origin_us + at_us <= now)
		return 0;
	return f->origin_us + at_us - now;
}

static void run_lines(struct fixture *f);

/* What came behind the line has waited for it. */
static void spilled(void *ctx, uar_err e, const struct uar_replay *replay, uar_str line)
{
	struct fixture *f = ctx;
	struct uar_replay r = *replay;

	f->spill = NULL;
	if (e && rt_worth_retrying(e) &&
	    uar_timer_set(f->base.run->agg->rt->o.sched, &f->wait, UAR_RETRY_US) == UAR_OK) {
		f->rest = f->retry;
		return;
	}
	if (e) {
		rt_send_fail(f->base.run, e, "execution", uar_err_text(e));
		return;
	}
	r.line = ++f->line;
	f->held = !rt_send_line(f->base.run, line, &r);
	if (!f->held)
		run_lines(f);
}

/* False: stop for now. */
static bool send(struct fixture *f, uar_str line, const struct uar_json *j, uar_str before)
{
	struct live_run *r = f->base.run;
	struct uar_replay plain = { .line = f->line + 1 };
	uar_err e;

	if (!rt_spill_of(j)) {
		f->line++;
		f->held = !rt_send_line(r, line, &plain);
		return !f->held;
	}
	f->retry = before;
	e = rt_spill_begin(r->agg->rt, j, spilled, f, &f->spill);
	if (e)
		rt_send_fail(r, e, "execution", uar_err_text(e));
	return false;
}

/* Sends one line. False: stop for now (waiting, held back, or at the end). */
static bool step(struct fixture *f)
{
	struct uar_sched *sched = f->base.run->agg->rt->o.sched;
	static const struct uar_command finish = { .kind = UAR_CMD_FINISH };
	uar_str before = f->rest, line;
	const struct uar_json *j;
	struct uar_error error = { 0 };
	struct uar_arena arena;
	int64_t wait = 0;
	bool go_on = false;
	uar_err e;

	if (!uar_fixture_line(&f->rest, &line)) {
		rt_send(f->base.run, &finish);
		return false;
	}
	uar_arena_init(&arena, 0);
	e = uar_fixture_parse(line, &arena, &j, &error);
	if (!e)
		wait = due_in(f, j);
	if (e)
		rt_send_fail(f->base.run, e, "execution", uar_error_text(&error));
	else if (wait && uar_timer_set(sched, &f->wait, wait) == UAR_OK)
		f->rest = before;
	else
		go_on = send(f, line, j, before);
	uar_arena_fini(&arena);
	return go_on;
}

static void run_lines(struct fixture *f)
{
	while (!f->spill && step(f))
		;
}

static void next_task(struct uar_task *t)
{
	run_lines(UAR_OWNER(t, struct fixture, next));
}

static void wait_over(struct uar_timer *t)
{
	run_lines(UAR_OWNER(t, struct fixture, wait));
}

static void skip_done(struct fixture *f, struct uar_arena *arena)
{
	uar_str line;
	const struct uar_json *j = NULL;
	struct uar_error error;

	while (f->line < f->base.run->state.replayed && uar_fixture_line(&f->rest, &line)) {
		f->line++;
		if (f->line == f->base.run->state.replayed &&
		    uar_fixture_parse(line, arena, &j, &error) != UAR_OK)
			j = NULL;
	}
	/* The pace goes on from the last line instead of racing to catch up. */
	f->origin_us -= uar_json_int(uar_json_get(j, UAR_STR("at_ms")), 0) * 1000;
}

static uar_err fixture_start(struct worker *w, struct uar_error *error)
{
	struct fixture *f = (struct fixture *)w;
	struct uar_runtime *rt = w->run->agg->rt;
	const struct uar_json *inputs = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(w->run->state.what.inputs, NULL, &arena, &inputs, error);
	if (!e)
		e = uar_fixture_load(
			rt->o.fixtures_dir,
			uar_json_str(uar_json_get(inputs, UAR_STR("fixture")), UAR_STR("")),
			&f->text, error);
	if (!e) {
		f->paced = !uar_str_is(
			uar_json_str(uar_json_get(inputs, UAR_STR("pace")), UAR_STR("recorded")),
			"full");
		f->rest = f->text;
		f->origin_us = uar_clock_mono(rt->o.sched->clock);
		skip_done(f, &arena);
		uar_post(rt->o.sched, &f->next);
	}
	uar_arena_fini(&arena);
	return e;
}

static void fixture_call_model(struct worker *w)
{
	(void)w;
}

static void fixture_flow(struct worker *w, bool paused)
{
	struct fixture *f = (struct fixture *)w;

	if (!paused && f->held) {
		f->held = false;
		uar_post(w->run->agg->rt->o.sched, &f->next);
	}
}

static void fixture_stop(struct worker *w)
{
	struct fixture *f = (struct fixture *)w;
	struct uar_sched *sched = w->run->agg->rt->o.sched;

	uar_unpost(sched, &f->next);
	uar_timer_stop(sched, &f->wait);
	rt_spill_cancel(f->spill);
	uar_free((char *)f->text.p);
	uar_free(f);
}

static const struct worker_ops fixture_ops = { "fixture",    fixture_start, fixture_call_model,
					       fixture_flow, fixture_stop,  NULL,
					       NULL };

uar_err rt_fixture_make(struct live_run *r, struct worker **out)
{
	struct fixture *f = uar_zalloc(sizeof *f);

	(void)r;
	if (!f)
		return UAR_ENOMEM;
	f->base.ops = &fixture_ops;
	f->next.fn = next_task;
	f->wait.fn = wait_over;
	*out = &f->base;
	return UAR_OK;
}
