/* fanout.c - child agents and jobs over the control plane: what is read of them, and waiting. */
#include "gate/fanout.h"

#include "core/control.h"
#include "engine/fanout.h"
#include "engine/limits.h"
#include "event/limits.h"
#include "gate/control.h"
#include "gate/limits.h"
#include "read/fanout.h"

bool gate_reads_fanout(enum uar_control_kind kind)
{
	return kind == UAR_CTL_LIST_SUBAGENTS || kind == UAR_CTL_WAIT_SUBAGENTS ||
	       kind == UAR_CTL_LIST_JOBS || kind == UAR_CTL_GET_JOB;
}

static void answer(struct call *c, uar_err e, const struct uar_error *error, struct uar_buf json)
{
	if (e)
		gate_problem(c, e, error);
	else
		gate_answer_result(c, uar_buf_str(&json), NULL);
	uar_buf_fini(&json);
}

static uar_err refuse(struct uar_error *error, const char *where, const char *why)
{
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

/* --- lists ----------------------------------------------------------------------------------- */

static void subagents_read(struct uar_subagents_op *op)
{
	answer(op->ctx, op->err, &op->error, op->json);
}

static uar_err list_subagents(struct call *c, const struct uar_ctl_list_subagents *in,
			      struct uar_error *error)
{
	struct uar_subagents_op *op = uar_arena_alloc(&c->arena, sizeof *op);

	if (!op)
		return UAR_ENOMEM;
	if (in->depth < 0)
		return refuse(error, "/depth", "depth is not negative");
	*op = (struct uar_subagents_op){ .owner = c->owner,
					 .session_id = in->session_id,
					 .thread_id = in->thread_id,
					 .depth = in->depth,
					 .done = subagents_read,
					 .ctx = c };
	c->op = op;
	return uar_read_subagents(c->g->o.reader, op);
}

static void jobs_read(struct uar_jobs_op *op)
{
	if (op->err == UAR_ECURSOR)
		uar_error_where(&op->error, "/cursor");
	answer(op->ctx, op->err, &op->error, op->json);
}

static uar_err read_jobs(struct call *c, const struct uar_jobs_op *what, int64_t limit,
			 struct uar_error *error)
{
	struct uar_jobs_op *op = uar_arena_alloc(&c->arena, sizeof *op);

	if (!op)
		return UAR_ENOMEM;
	if (limit < 0 || limit > UAR_LIMIT_LIST_PAGE)
		return refuse(error, "/limit", "the limit is out of range");
	*op = *what;
	op->owner = c->owner;
	op->limit = limit ? (uint32_t)limit : UAR_LIMIT_LIST_DEFAULT;
	op->done = jobs_read;
	op->ctx = c;
	c->op = op;
	return uar_read_jobs(c->g->o.reader, op);
}

/* --- waiting --------------------------------------------------------------------------------- */

static void waited(struct uar_subagents_wait *w)
{
	answer(w->ctx, w->err, &w->error, w->json);
}

static uar_err read_ids(struct call *c, uar_str text, struct uar_subagents_wait *w,
			struct uar_error *error)
{
	uar_str *ids = uar_arena_alloc(&c->arena, UAR_LIMIT_WAIT_SUBAGENTS * sizeof *ids);
	const struct uar_json *list = NULL;
	uar_err e = ids ? uar_json_parse(text, NULL, &c->arena, &list, error) : UAR_ENOMEM;

	for (const struct uar_json *j = uar_json_first(list); j && !e; j = j->next) {
		if (j->kind != UAR_JSON_STRING || !uar_str_is_id(j->text) ||
		    w->count == UAR_LIMIT_WAIT_SUBAGENTS)
			return refuse(error, "/subagent_ids", "ids of at most 64 subagents");
		ids[w->count++] = j->text;
	}
	if (!e && !w->count)
		e = refuse(error, "/subagent_ids", "name at least one subagent");
	w->ids = ids;
	return e;
}

static uar_err wait_subagents(struct call *c, const struct uar_ctl_wait_subagents *in,
			      struct uar_error *error)
{
	struct uar_subagents_wait *w = uar_arena_alloc(&c->arena, sizeof *w);
	uar_err e;

	if (!w)
		return UAR_ENOMEM;
	if (in->timeout_ms < 0 || in->timeout_ms > UAR_LIMIT_WAIT_SUBAGENTS_MS)
		return refuse(error, "/timeout_ms", "timeout_ms is 0 to 60000");
	*w = (struct uar_subagents_wait){ .owner = c->owner,
					  .any = uar_str_is(in->mode, "any"),
					  .timeout_us = in->timeout_ms * 1000,
					  .done = waited,
					  .ctx = c };
	e = read_ids(c, in->subagent_ids, w, error);
	if (e)
		return e;
	c->op = w;
	e = uar_runtime_wait_subagents(c->g->o.runtime, w);
	if (e)
		*error = w->error;
	return e;
}

uar_err gate_read_fanout(struct call *c, const struct uar_control *in, struct uar_error *error)
{
	const struct uar_ctl_list_jobs *list = &in->list_jobs;
	const struct uar_ctl_get_job *get = &in->get_job;
	struct uar_jobs_op jobs = { .job_id = UAR_STR_NONE };

	switch (in->kind) {
	case UAR_CTL_LIST_SUBAGENTS: return list_subagents(c, &in->list_subagents, error);
	case UAR_CTL_WAIT_SUBAGENTS: return wait_subagents(c, &in->wait_subagents, error);
	case UAR_CTL_LIST_JOBS:
		jobs.session_id = list->session_id;
		jobs.thread_id = list->thread_id;
		jobs.status = list->status;
		jobs.cursor = list->cursor;
		return read_jobs(c, &jobs, list->limit, error);
	default:
		jobs.job_id = get->job_id;
		jobs.cursor = get->cursor;
		return read_jobs(c, &jobs, get->limit, error);
	}
}
