/* worker.c - the workers of runs: started, stopped, and what they may know of their run. */
#include "engine/engine_int.h"

void rt_workers_set(struct uar_runtime *rt, struct rt_workers *w)
{
	rt->workers = w;
}

struct rt_workers *rt_workers(const struct uar_runtime *rt)
{
	return rt->workers;
}

uar_err rt_worker_start(struct live_run *r, struct uar_error *error)
{
	struct rt_workers *workers = r->agg->rt->workers;
	uar_err e = workers->ops->make(workers, r, &r->worker);

	if (e)
		return e;
	r->worker->run = r;
	e = r->worker->ops->start(r->worker, error);
	if (e)
		rt_worker_stop(r);
	return e;
}

void rt_worker_stop(struct live_run *r)
{
	struct worker *w = r->worker;

	if (!w)
		return;
	r->worker = NULL;
	w->ops->stop(w);
}

bool rt_worker_may_begin(struct live_run *r, uar_str plugin_id, uar_str entry_id)
{
	struct rt_workers *workers = r->agg->rt->workers;

	return workers->ops->may_begin(workers, r, plugin_id, entry_id);
}

void rt_worker_leave(struct live_run *r)
{
	struct rt_workers *workers = r->agg->rt->workers;

	if (workers) /* else none was ever asked */
		workers->ops->leave(workers, r);
}

void rt_start_queued(struct live_run *r)
{
	rt_start_next(r->agg, uar_str_c(r->thread_id));
}

struct uar_runtime *rt_engine(const struct live_run *r)
{
	return r->agg->rt;
}

const struct uar_run *rt_state(const struct live_run *r)
{
	return &r->state;
}

const char *rt_run_id(const struct live_run *r)
{
	return r->run_id;
}

const char *rt_thread_id(const struct live_run *r)
{
	return r->thread_id;
}

uar_str rt_thread_key(const struct live_run *r)
{
	return r->thread_key;
}

bool rt_is_first_of_thread(const struct live_run *r)
{
	return r->first_of_thread;
}

bool rt_is_committed(const struct live_run *r)
{
	return r->committed;
}

bool rt_is_restarted(const struct live_run *r)
{
	return r->restarted;
}

struct worker *rt_worker(const struct live_run *r)
{
	return r->worker;
}

struct uar_entry_slot *rt_slot(struct live_run *r)
{
	return &r->slot;
}

struct live_run *rt_slot_run(struct uar_entry_slot *slot)
{
	return UAR_OWNER(slot, struct live_run, slot);
}

struct agg *rt_agg(const struct live_run *r)
{
	return r->agg;
}

struct uar_runtime *rt_agg_engine(const struct agg *a)
{
	return a->rt;
}

const struct uar_session *rt_agg_session(const struct agg *a)
{
	return &a->state;
}

void rt_session_actions(const struct live_run *r, void (*each)(void *ctx, uar_str action_id),
			void *ctx)
{
	UAR_LIST_EACH (it, &r->agg->runs) {
		const struct live_run *run = UAR_OWNER(it, struct live_run, node);
		const struct uar_run_actions *a = &uar_run_rare(&run->state)->actions;
		char id[UAR_ACTION_TEXT + 1];

		for (size_t i = 0; i < a->open_count; i++) {
			uar_action_id(uar_str_c(run->run_id), a->open[i].number, id);
			each(ctx, uar_str_c(id));
		}
	}
}
