/* request.c - whether a request can become a run, and what that run is to do.
 *
 * Bad input never becomes a run. What takes time to be looked for, a directory or a
 * recording, is looked for by worker threads. */
#include "engine/limits.h"
#include "work/attach_look.h"
#include "work/choice.h"
#include "work/client_input.h"
#include "work/dir_look.h"
#include "work/definition_request.h"
#include "work/definition_store.h"
#include "work/fixture_file.h"
#include "work/input_seal.h"
#include "work/permission.h"
#include "work/work_int.h"

static struct uar_workers *work_of(struct rt_workers *port)
{
	return UAR_OWNER(port, struct uar_workers, port);
}

/* --- what the run is to do ----------------------------------------------------------- */

static void set_plugin(struct rt_request *q, const struct uar_entry_info *info)
{
	const struct uar_run_create *op = q->op;

	snprintf(q->agent_id, sizeof q->agent_id, "%.*s:%.*s", UAR_FMT(op->plugin_id),
		 UAR_FMT(op->entry_id));
	q->what = (struct uar_run_what){
		.entry = UAR_ENTRY_PLUGIN,
		.agent_id = uar_str_c(q->agent_id),
		.plugin_id = op->plugin_id,
		.entry_id = op->entry_id,
		.timeout_us = info->timeout_us,
		.restart = info->restart_fails ? UAR_RESTART_FAIL : UAR_RESTART_RETRY,
	};
}

/* The agent of a file may be another one before the run is there: its names are copied.
 * What may have happened is never done twice without being asked for. */
static void set_backend(struct rt_request *q, const struct uar_agent_info *info)
{
	snprintf(q->provider, sizeof q->provider, "%.*s", UAR_FMT(info->kind));
	snprintf(q->model, sizeof q->model, "%.*s", UAR_FMT(info->model));
	q->what.provider = uar_str_c(q->provider);
	q->what.model = q->model[0] ? uar_str_c(q->model) : UAR_STR("default");
	q->what.restart = UAR_RESTART_FAIL;
	q->what.timeout_us = info->timeout_us;
}

static void set_model(struct rt_request *q, const struct uar_workers *w,
		      const struct uar_agent *agent)
{
	bool scripted = agent->model || !w->o.provider;

	q->what.instructions = uar_str_c(agent->instructions);
	q->what.provider = uar_str_c(scripted ? "scripted" : w->o.provider->provider);
	q->what.model = uar_str_c(!scripted	 ? w->o.provider_model
				  : agent->model ? agent->model
						 : "scripted");
}

/* Names are copied: the registry may change before the run is there. */
static void set_defined(struct rt_request *q, const struct uar_workers *w,
			const struct uar_definition *d)
{
	const struct uar_definition_model *m = &d->routing.chosen;
	struct uar_agent none = { .instructions = "" };

	set_model(q, w, &none);
	if (m->provider.n) {
		snprintf(q->provider, sizeof q->provider, "%.*s", UAR_FMT(m->provider));
		snprintf(q->model, sizeof q->model, "%.*s", UAR_FMT(m->model));
		q->what.provider = uar_str_c(q->provider);
		q->what.model = uar_str_c(q->model);
	}
	if (uar_entry_parse(d->info.entry) == UAR_ENTRY_PEER) { /* it has models of its own */
		q->what.provider = UAR_STR("a2a");
		q->what.model = UAR_STR("peer");
	}
	if (uar_entry_parse(d->info.entry) == UAR_ENTRY_WORKFLOW) { /* its agents have models */
		q->what.provider = UAR_STR("workflow");
		q->what.model = UAR_STR("workflow");
	}
	memcpy(q->definition, d->revision, sizeof q->definition);
	q->what.definition = uar_str_c(q->definition);
	q->what.timeout_us = d->info.timeout_us;
}

static void set_agent(struct rt_request *q, const struct uar_workers *w,
		      const struct uar_agent *agent)
{
	const struct uar_run_create *op = q->op;

	q->what = (struct uar_run_what){
		.entry = agent->entry,
		.agent_id = op->agent_id,
		.plugin_id = UAR_STR(UAR_AGENT_PLUGIN),
		.entry_id = op->agent_id,
		.inputs = op->inputs,
	};
	if (agent->info)
		set_backend(q, agent->info);
	if (agent->definition)
		set_defined(q, w, &agent->definition->def);
	else if (agent->entry == UAR_ENTRY_LLM)
		set_model(q, w, agent);
}

/* --- the check -------------------------------------------------------------------------- */

static uar_err check_plugin(const struct uar_workers *w, struct rt_request *q)
{
	struct uar_entries *entries = w->o.entries;
	struct uar_run_create *op = q->op;
	struct uar_entry_info info = { .timeout_us = 0 };
	uar_err e;

	if (!entries)
		return uar_error_set(&op->error, UAR_ENOTFOUND, "no plugins are installed");
	e = entries->ops->find(entries, op->plugin_id, op->entry_id, &info, &op->error);
	if (!e && op->args)
		e = entries->ops->check(entries, op->plugin_id, op->entry_id, op->args, &op->error);
	if (!e)
		set_plugin(q, &info);
	return e;
}

static bool takes_long(const struct uar_agent *agent)
{
	return agent->entry == UAR_ENTRY_LLM || agent->entry == UAR_ENTRY_WORKFLOW;
}

/* Inputs of models may be as long as a request. */
static uar_err check_length(struct uar_run_create *op, bool any_inputs)
{
	const bool long_inputs = !any_inputs && op->inputs.n > UAR_LIMIT_PREVIEW_BYTES;

	if (!long_inputs && op->context.n <= UAR_LIMIT_PREVIEW_BYTES)
		return UAR_OK;
	uar_error_where(&op->error, "%s", long_inputs ? "/inputs" : "/context");
	return uar_error_set(&op->error, UAR_ETOOBIG, "%s may have %d bytes",
			     long_inputs ? "inputs besides message" : "context",
			     UAR_LIMIT_PREVIEW_BYTES);
}

/* Inputs that were recorded before, of this owner, are given again: checked as what they are. */
static uar_err open_inputs(struct uar_workers *w, struct uar_run_create *op,
			   struct uar_arena *arena, const struct uar_json **out)
{
	const struct uar_json *given = NULL;
	struct uar_buf text = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	uar_str copy;
	uar_err e =
		op->inputs.n ? uar_json_parse(op->inputs, NULL, arena, &given, &op->error) : UAR_OK;

	if (!e)
		e = rt_inputs_open(w->rt, &op->owner, given, arena, out);
	if (e == UAR_ECORRUPT) {
		uar_error_where(&op->error, "/inputs/" UAR_SEALED_INPUT);
		e = uar_error_set(&op->error, UAR_EINVALID,
				  "it was not sealed for you here: leave it out and give the "
				  "values themselves");
	}
	if (e || *out == given)
		return e;
	uar_json_write(&text, *out);
	copy = text.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&text));
	uar_buf_fini(&text);
	if (!copy.p)
		return UAR_ENOMEM;
	op->inputs = copy;
	return UAR_OK;
}

/* From here on the request has what may be recorded. */
static uar_err seal_inputs(struct uar_workers *w, struct rt_request *q,
			   const struct uar_agent *agent, const struct uar_json *inputs)
{
	struct uar_run_create *op = q->op;
	struct inputs_ask ask = { &op->owner, inputs,
				  agent->definition ? agent->definition->def.schemas.inputs
						    : NULL };
	uar_err e;

	q->inputs = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	e = rt_inputs_seal(w->rt, &ask, &q->inputs);
	if (e == UAR_ESKIP)
		return UAR_OK;
	if (!e)
		op->inputs = uar_buf_str(&q->inputs);
	return e ? e : check_length(op, takes_long(agent));
}

static uar_err check_known(struct uar_workers *w, struct rt_request *q,
			   const struct uar_agent *agent)
{
	struct uar_run_create *op = q->op;
	uar_err e = UAR_OK;

	if (agent->info)
		e = rt_backend_check(agent, op->inputs, &op->error);
	if (!e && agent->definition)
		e = rt_definition_check(&agent->definition->def, op);
	if (!e && agent->definition)
		e = rt_definition_check_tools(w, &agent->definition->def, &op->error);
	return e;
}

/* Places are named as in a request for a run of an agent. */
static uar_err check_agent(struct uar_workers *w, struct rt_request *q)
{
	struct uar_run_create *op = q->op;
	const struct uar_agent *agent = uar_workers_agent(w, &op->owner, op->agent_id);
	const struct uar_json *inputs = NULL;
	uar_str given = op->inputs;
	struct uar_arena arena;
	uar_err e;

	if (!op->parent && !agent && !uar_workers_definitions_loaded(w))
		return uar_error_set(&op->error, UAR_EBUSY, "definitions are being read");
	if (!op->parent && !agent) {
		uar_error_where(&op->error, "/agent_id");
		return uar_error_set(&op->error, UAR_ENOTFOUND, "no agent is named \"%.*s\"",
				     UAR_FMT(op->agent_id));
	}
	e = check_length(op, agent && takes_long(agent));
	if (e || op->parent)
		return e;
	uar_arena_init(&arena, 0);
	e = open_inputs(w, op, &arena, &inputs);
	if (!e && agent->entry == UAR_ENTRY_LLM)
		e = rt_attachments_check(inputs, "/inputs", &op->error);
	if (!e)
		e = check_known(w, q, agent);
	if (!e)
		e = seal_inputs(w, q, agent, inputs);
	if (op->inputs.p != q->inputs.p)
		op->inputs = given;
	uar_arena_fini(&arena);
	if (e)
		return e;
	set_agent(q, w, agent);
	return rt_choice_take(w, agent, q);
}

/* The operator allows what asks less. */
static uar_err check_permit(const struct uar_workers *w, struct uar_run_create *op)
{
	enum uar_permission_mode mode = op->permit.mode;

	if (rt_permission_allows(w, mode))
		return UAR_OK;
	uar_error_where(&op->error, "/permission_mode");
	return uar_error_set(&op->error, UAR_EFORBIDDEN,
			     "the operator has not allowed the mode %s: see "
			     "permissions.allow_modes",
			     uar_permission_mode_name(mode));
}

uar_err rt_request_check(struct rt_workers *port, struct rt_request *q)
{
	uar_err e = check_permit(work_of(port), q->op);

	if (e)
		return e;
	return q->op->plugin_id.n ? check_plugin(work_of(port), q) : check_agent(work_of(port), q);
}

/* --- the look: what is not there is refused, not tried ------------------------------------ */

static void fixture_looked(struct uar_fixture_job *job)
{
	struct rt_request *q = job->ctx;

	q->look = NULL;
	if (job->err) {
		uar_error_where(&job->error, "/inputs/fixture");
		q->op->error = job->error;
	}
	q->looked(q, job->err);
}

static void forget_fixture(void *look)
{
	uar_fixture_job_forget(look);
}

static uar_err look_for_fixture(const struct uar_workers *w, struct rt_request *q)
{
	const struct uar_json *inputs = NULL;
	struct uar_fixture_job *job = NULL;
	struct uar_arena arena;
	uar_str name;
	bool paced;
	uar_err e = UAR_OK;

	uar_arena_init(&arena, 0);
	if (q->op->inputs.n)
		e = uar_json_parse(q->op->inputs, NULL, &arena, &inputs, &q->op->error);
	if (!e)
		e = rt_fixture_inputs(inputs, &name, &paced, &q->op->error);
	if (!e) {
		job = uar_fixture_job_make(UAR_FIXTURE_FIND, w->o.fixtures_dir, name);
		e = job ? UAR_OK : UAR_ENOMEM;
	}
	uar_arena_fini(&arena);
	if (e)
		return e;
	job->done = fixture_looked;
	job->ctx = q;
	q->look = job;
	q->forget = forget_fixture;
	return uar_fixture_job_begin(rt_sched(w->rt), job);
}

static void dir_looked(struct dir_look *job)
{
	struct rt_request *q = job->ctx;

	q->look = NULL;
	q->looked(q, rt_backend_looked(job, &q->op->error));
}

static void forget_dir(void *look)
{
	rt_dir_look_forget(look);
}

static uar_err look_for_dir(const struct uar_workers *w, struct rt_request *q)
{
	struct dir_look *job;
	uar_err e = rt_backend_look(w->o.agents, q->op->inputs, &job);

	if (e || !job)
		return e ? e : UAR_ESKIP;
	job->done = dir_looked;
	job->ctx = q;
	q->look = job;
	q->forget = forget_dir;
	return rt_dir_look_begin(rt_sched(w->rt), job);
}

static uar_err look_on(struct uar_workers *w, struct rt_request *q)
{
	if (q->what.definition.n)
		return rt_definition_look(w, q);
	switch (q->what.entry) {
	case UAR_ENTRY_FIXTURE: return look_for_fixture(w, q);
	case UAR_ENTRY_CODEX:
	case UAR_ENTRY_CLAUDE_CODE:
	case UAR_ENTRY_ACP: return look_for_dir(w, q);
	case UAR_ENTRY_ECHO:
	case UAR_ENTRY_LLM:
	case UAR_ENTRY_PLUGIN:
	case UAR_ENTRY_PEER:
	case UAR_ENTRY_WORKFLOW:
	case UAR_ENTRY_COUNT: break;
	}
	return UAR_ESKIP;
}

uar_err rt_request_look(struct rt_workers *port, struct rt_request *q)
{
	return rt_attach_look(work_of(port), q, look_on);
}
