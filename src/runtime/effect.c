/* effect.c - what follows a commit: workers begin, call, stop; deadlines. */
#include "runtime/runtime_int.h"

static void start_entry(struct live_run *r)
{
	struct uar_error error = { 0 };
	uar_err e = UAR_OK;

	if (!r->worker) /* else it has waited for an answer */
		e = rt_worker_start(r, &error);
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

void rt_effect(struct live_run *r, enum uar_effect effect)
{
	bool begins = effect == UAR_DO_START_ENTRY || effect == UAR_DO_CALL_MODEL;

	if (begins && r->agg->rt->draining)
		return; /* the next start does it */
	switch (effect) {
	case UAR_DO_START_ENTRY: start_entry(r); break;
	case UAR_DO_CALL_MODEL:
		if (r->worker)
			r->worker->ops->call_model(r->worker);
		break;
	case UAR_DO_STOP_ENTRY: stop_entry(r); break;
	case UAR_DO_PARK:
		if (r->worker && !r->worker->ops->answer)
			rt_worker_stop(r);
		break;
	case UAR_DO_RELEASE: /* the end of a run is batch.c's */
	case UAR_DO_NONE:
	case UAR_EFFECT_COUNT: break;
	}
}

static void deadline_passed(struct uar_timer *t)
{
	struct uar_command timeout = { .kind = UAR_CMD_TIMEOUT };

	rt_send(UAR_OWNER(t, struct live_run, deadline), &timeout);
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
