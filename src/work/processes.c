/* processes.c - processes of runs: what their calls run in, and what is told of them.
 *
 * What happens to a process is a command of its run. A run that ends takes its processes with
 * it: the end is recorded first, and then they are ended. */
#include "core/sizes.h"
#include "tool/process.h"
#include "work/definitions.h"
#include "work/tool_loop_int.h"

/* --- what a call runs in -------------------------------------------------------------------- */

static const char *category_of(uar_err e)
{
	if (e == UAR_EFORBIDDEN)
		return "policy_denied";
	return e == UAR_ENOTIMPL ? "setup_missing" : "execution";
}

static uar_err plan_process(struct place *p)
{
	struct live_run *r = p->loop->o.run;
	const struct uar_definition *d = rt_definition(r);
	struct uar_process_ask ask = {
		.tool = p->tool,
		.input = p->input,
		.policy = d ? uar_json_pointer(d->json, UAR_STR("/policy/sandbox")) : NULL,
	};
	uar_err e = uar_processes_plan(rt_work(r)->o.processes, &ask, &p->bound.plan, &p->why);

	if (e)
		return e;
	if (uar_run_rare(rt_state(r))->processes.open_count == UAR_LIMIT_OPEN_PROCESSES)
		return uar_error_set(&p->why, UAR_EBUSY,
				     "the run has %d processes: end one with process.stop",
				     UAR_LIMIT_OPEN_PROCESSES);
	uar_uuid_next(rt_ids(rt_engine(r)), p->bound.process_id);
	return UAR_OK;
}

static bool changes_files(const struct uar_tool *t)
{
	return t->state == UAR_TOOL_SANDBOXED && t->effect != UAR_TOOL_READ_ONLY &&
	       uar_str_starts(t->tool_id, UAR_STR("internal:fs."));
}

bool rt_place_bind(struct place *p)
{
	const struct uar_workers_options *o = &rt_work(p->loop->o.run)->o;
	uar_err e = UAR_OK;

	rt_place_unbind(p);
	p->bound.plan.sandbox = uar_buf_make(UAR_LIMIT_TOOL_INLINE);
	p->bound.plan.process = uar_buf_make(UAR_LIMIT_TOOL_INLINE);
	if (o->processes && uar_str_starts(p->tool->tool_id, UAR_STR("process:")))
		e = plan_process(p);
	else if (o->files_dir && changes_files(p->tool))
		e = uar_files_plan(o->files_dir, &p->bound.plan.sandbox);
	if (!e || e == UAR_ESKIP)
		return true;
	p->why.code = e;
	p->category = uar_str_c(category_of(e));
	return false;
}

void rt_place_unbind(struct place *p)
{
	uar_buf_fini(&p->bound.plan.sandbox);
	uar_buf_fini(&p->bound.plan.process);
	p->bound.process_id[0] = 0;
}

/* --- what is told of a process -------------------------------------------------------------- */

static void told(void *ctx, const struct uar_process_owner *o, const struct uar_process_news *news)
{
	struct uar_workers *w = ctx;
	struct live_run *r = rt_live_find(w->rt, o->owner, o->run_id);
	struct uar_command c = { .kind = UAR_CMD_PROCESS };

	if (!r)
		return; /* its end was told with the end of the run */
	c.process = *news;
	if (!rt_send_asked(r, &c, NULL, NULL))
		rt_lose(r, UAR_ENOMEM);
}

void rt_processes_init(struct uar_workers *w)
{
	const struct uar_process_listener l = { told, w };

	if (w->o.processes)
		uar_processes_listen(w->o.processes, &l);
}

void rt_processes_committed(struct uar_workers *w, const struct rt_commit *c)
{
	if (w->o.processes && c->row && c->row->terminal)
		uar_processes_leave(w->o.processes, &c->row->owner, c->row->run_id);
}

void rt_process_order(struct rt_workers *port, const struct rt_process_order *o)
{
	struct uar_workers *w = UAR_OWNER(port, struct uar_workers, port);
	const struct uar_process_stop stop = { o->process_id, UAR_STR("user"), UAR_STR("user"),
					       o->by };
	uar_err e;

	if (!w->o.processes)
		return;
	if (o->stop)
		e = uar_processes_stop(w->o.processes, o->owner, &stop);
	else
		e = uar_processes_write(w->o.processes, o->owner, o->process_id, o->input, o->end);
	if (e && e != UAR_ENOTFOUND) /* one that has ended tells of its end */
		uar_log(rt_log(w->rt), UAR_LOG_WARN, "process.order_lost",
			{ "process_id", o->process_id }, { "reason", uar_str_c(uar_err_text(e)) });
}
