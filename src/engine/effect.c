/* effect.c - what follows a commit: workers begin, call, stop; deadlines. */
#include "core/limits.h"
#include "engine/engine_int.h"

static void start_entry(struct live_run *r)
{
	struct uar_error error = { 0 };
	uar_err e = UAR_OK;

	if (!r->worker) /* else it has waited for an answer, or was made before */
		e = rt_worker_start(r, &error);
	else if (r->worker->ops->begin)
		r->worker->ops->begin(r->worker);
	rt_deadline_arm(r);
	if (!e)
		return;
	error.code = e;
	rt_send_fail(r, e, "execution", uar_error_text(&error));
}

static void stop_entry(struct live_run *r)
{
	struct uar_command stopped = { .kind = UAR_CMD_STOPPED };

	if (r->worker && r->worker->ops->cancel) {
		r->worker->ops->cancel(r->worker);
		return;
	}
	rt_worker_stop(r);
	rt_send(r, &stopped);
}

static void wait_over(struct uar_timer *t)
{
	static const struct uar_command due = { .kind = UAR_CMD_DUE };

	rt_send(UAR_OWNER(t, struct live_run, due), &due);
}

/* Until the recorded time, so that a restart neither shortens nor extends it. The wall clock may
 * have been set back meanwhile: nobody waits longer than the limit. */
static void wait_until_due(struct live_run *r)
{
	struct uar_sched *sched = r->agg->rt->o.sched;
	int64_t left = r->state.call.due_us - uar_clock_wall(sched->clock);
	const int64_t longest = (int64_t)UAR_LIMIT_MODEL_WAIT_SECONDS * 1000000;

	rt_worker_stop(r);
	rt_deadline_arm(r);
	r->due.fn = wait_over;
	left = left > longest ? longest : left;
	if (uar_timer_set(sched, &r->due, left > 0 ? left : 0))
		rt_owe(r, OWED(UAR_CMD_DUE));
}

static bool begins(enum uar_effect effect)
{
	return effect == UAR_DO_START_ENTRY || effect == UAR_DO_CALL_MODEL ||
	       effect == UAR_DO_NEXT_ROUND;
}

/* Some workers hear the answer themselves. */
static bool stays(const struct worker *w)
{
	return w->ops->answer && (!w->ops->stays || w->ops->stays(w));
}

void rt_effect(struct live_run *r, enum uar_effect effect)
{
	if (begins(effect) && r->agg->rt->draining)
		return; /* the next start does it */
	switch (effect) {
	case UAR_DO_START_ENTRY: start_entry(r); break;
	case UAR_DO_NEXT_ROUND:
		rt_worker_stop(r);
		start_entry(r);
		break;
	case UAR_DO_CALL_MODEL:
		if (r->worker)
			r->worker->ops->call_model(r->worker);
		break;
	case UAR_DO_STOP_ENTRY: stop_entry(r); break;
	case UAR_DO_WAIT: wait_until_due(r); break;
	case UAR_DO_PARK:
		if (r->worker && !stays(r->worker))
			rt_worker_stop(r);
		break;
	case UAR_DO_NONE:
	case UAR_DO_COUNT: break;
	}
}

bool rt_stop_unrecorded(struct live_run *r, const struct uar_command *why)
{
	if (r->stopping)
		return false;
	r->stopping = true;
	rt_log_run(r, UAR_LOG_WARN, "run.stopped_unrecorded", uar_err_text(UAR_EDISKFULL));
	rt_send(r, why);
	return true;
}

/* What cannot be recorded now waits; only a full disk may last, and the work with it. */
static void timed_out(struct cmd *c, uar_err e, const struct uar_error *error,
		      const struct uar_run *run)
{
	struct uar_command timeout = { .kind = UAR_CMD_TIMEOUT };

	(void)error, (void)run;
	if (e == UAR_OK || e == UAR_ESTATE || !c->run)
		return;
	if (e == UAR_EDISKFULL && rt_stop_unrecorded(c->run, &timeout))
		rt_worker_stop(c->run);
	else
		rt_send(c->run, &timeout);
}

static void deadline_passed(struct uar_timer *t)
{
	struct live_run *r = UAR_OWNER(t, struct live_run, deadline);
	struct uar_command timeout = { .kind = UAR_CMD_TIMEOUT };
	struct cmd *c = rt_cmd_make(r, UAR_CMD_TIMEOUT);

	if (c)
		c->done = timed_out;
	if (c && rt_cmd_send(c) == UAR_OK)
		return;
	rt_cmd_free(c);
	rt_send(r, &timeout);
}

/* Counted from the recorded start, so that a restart does not extend it; without
 * the time in which people were asked. */
void rt_deadline_arm(struct live_run *r)
{
	struct uar_sched *sched = r->agg->rt->o.sched;
	int64_t left = r->state.at.started_us + r->state.what.timeout_us +
		       uar_run_rare(&r->state)->actions.waited_us - uar_clock_wall(sched->clock);

	if (r->state.what.timeout_us == 0)
		return;
	r->deadline.fn = deadline_passed;
	if (uar_timer_set(sched, &r->deadline, left > 0 ? left : 0))
		rt_owe(r, OWED_DEADLINE);
}
