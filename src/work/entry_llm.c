/* entry_llm.c - llm.chat: input, history, streamed model calls and tools between them. What
 * workflow.run does instead of calling a model is flow.c.
 *
 * The request is recorded (UAR_CMD_PREPARED) before the model is called; every
 * piece of text goes through the engine before anybody sees it. When commits
 * are slower than the model, the model's stream is held back.
 *
 * A model call that ends with tool calls ends this worker: the next one reads the
 * rounds so far from the log, executes what is not over, and calls the model with
 * the results. So a round that follows another is begun like one that follows a
 * restart or somebody's answer. */
#include "base/sha256.h"
#include "event/client.h"
#include "event/sizes.h"
#include "json/limits.h"
#include "work/answer_check.h"
#include "work/client_input.h"
#include "work/definitions.h"
#include "work/ensemble.h"
#include "work/media.h"
#include "model/policy.h"
#include "work/routing.h"
#include "work/skills.h"
#include "work/llm_hooks.h"

/* --- preparing ----------------------------------------------------------------- */

uar_str rt_llm_inputs(const struct llm *w)
{
	const struct uar_run_what *what = &rt_state(w->base.run)->what;

	return what->inputs_blob.n ? uar_buf_str(&w->inputs) : what->inputs;
}

static uar_err collect_prompt(struct llm *w, struct prompt *p)
{
	struct prompt_sources from = { w->base.run,	 w->past,
				       w->rounds,	 uar_buf_str(&w->message),
				       rt_llm_inputs(w), &w->client.arena,
				       w->skills,	 &w->recall };

	if (w->role == UAR_ROLE_SUMMARIZE) {
		rt_compaction_collect(&w->compaction, p);
		return rt_prompt_end(p);
	}
	return rt_agent_collect(&from, &w->text, p);
}

static void send_prepared(struct llm *w, const struct prompt *p, struct uar_buf *all)
{
	struct toolset tools = rt_toolset_of(w->base.run);
	struct uar_buf omissions = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	struct uar_buf route = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct routing_needs needs = { 0 };
	struct uar_buf sections = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	struct uar_command c = { .kind = UAR_CMD_PREPARED };
	char sha256[UAR_SHA256_TEXT + 1];
	size_t frame = rt_prompt_write(p, all);
	uar_err e = all->err;

	c.prepared.role = w->role;
	c.prepared.steered = w->rounds ? (int64_t)w->rounds->input_count : 0;
	if (w->role == UAR_ROLE_EXECUTE)
		c.prepared.tool_count = (int64_t)rt_toolset_tell(&tools, NULL);
	else if (w->role == UAR_ROLE_SUMMARIZE)
		c.prepared.compaction = uar_buf_str(&w->compaction.facts);
	if (e) {
		rt_llm_fail(w, e, uar_err_text(e));
		return;
	}
	if (w->past)
		rt_past_omissions(w->past, w->base.run, &omissions);
	uar_sha256_hex(uar_buf_str(all), sha256);
	c.prepared.message_count = (int64_t)p->count;
	c.prepared.prompt_sha256 = uar_str_c(sha256);
	c.prepared.prompt_bytes = (int64_t)(all->n - frame);
	c.prepared.omissions = uar_buf_str(&omissions);
	c.prepared.recalled = uar_buf_str(&w->recall.recalled);
	c.prepared.citations = uar_buf_str(&w->recall.citations);
	if (rt_definition(w->base.run) && !uar_prompt_write_sections(&w->text, &sections))
		c.prepared.sections = uar_buf_str(&sections);
	if (w->skills)
		rt_skills_tell(w->skills, &c.prepared);
	needs.context_tokens = (c.prepared.prompt_bytes + 3) / 4;
	needs.tools = rt_toolset_tell(&tools, NULL) > 0 && w->role != UAR_ROLE_CANDIDATE;
	e = rt_routing_prepare(w->base.run, &needs, &route, &c.prepared);
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
	else
		rt_send(w->base.run, &c);
	uar_buf_fini(&route);
	uar_buf_fini(&omissions);
	uar_buf_fini(&sections);
}

static int64_t prompt_tokens(const struct prompt *p)
{
	size_t bytes = 0;

	for (size_t i = 0; i < p->part_count; i++)
		bytes += p->parts[i].kind == UAR_PART_IMAGE ? 0 : p->parts[i].text.n;
	return (int64_t)(bytes + 3) / 4;
}

/* When the prompt fills the model's window, what was said before is condensed first. */
static uar_err collect_fitting(struct llm *w, struct prompt *p)
{
	uar_err e = collect_prompt(w, p);

	if (e || !w->past || w->past->most)
		return e;
	if (rt_compaction_begin(&w->compaction, w->past, w->base.run, prompt_tokens(p)))
		w->role = UAR_ROLE_SUMMARIZE;
	else if (!w->past->most)
		return UAR_OK;
	rt_prompt_fini(p);
	return collect_prompt(w, p);
}

static void prepared(struct llm *w);

static void skills_ready(void *ctx, uar_err e)
{
	struct llm *w = ctx;

	w->skill_load = NULL;
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
	else
		prepared(w);
}

/* Before the first call; what was chosen stays with the run. UAR_ESKIP: nothing is waited for. */
static uar_err choose_skills(struct llm *w)
{
	uar_str message = uar_str_n(w->message.p, w->said);
	struct skills_ask ask = { w->base.run, message.n ? message : rt_llm_inputs(w), skills_ready,
				  w, &w->skills };

	if (w->chosen || rt_state(w->base.run)->call.resolved)
		return UAR_ESKIP;
	w->chosen = true;
	return rt_skills_choose(&ask, &w->skill_load);
}

static void prepared(struct llm *w)
{
	struct uar_buf all = uar_buf_make(UAR_LIMIT_JSON_BYTES * 2);
	struct prompt p = { 0 };
	uar_err e = choose_skills(w);

	if (!e)
		return;
	if (w->past)
		w->past->most = 0;
	e = e == UAR_ESKIP ? collect_fitting(w, &p) : e;
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
	else
		send_prepared(w, &p, &all);
	uar_buf_fini(&all);
	rt_prompt_fini(&p);
}

static void recall_ready(void *ctx, uar_err e, const char *why)
{
	struct llm *w = ctx;

	if (e)
		rt_llm_fail(w, e, why);
	else
		prepared(w);
}

/* What knowledge says of the message belongs to the prompt. */
static void recall_message(struct llm *w)
{
	uar_err e = rt_recall_begin(w->base.run, uar_buf_str(&w->message), &w->recall);

	w->recall.done = recall_ready;
	w->recall.ctx = w;
	if (e == UAR_ESKIP)
		prepared(w);
	else if (e)
		rt_llm_fail(w, e, uar_err_text(e));
}

static void past_ready(void *ctx, uar_err e, const struct uar_error *error, struct past *p)
{
	struct llm *w = ctx;

	w->load = NULL;
	w->past = p;
	if (e)
		rt_llm_fail(w, e, error ? uar_error_text(error) : uar_err_text(e));
	else
		recall_message(w);
}

static void load_past(struct llm *w, uar_err e)
{
	struct live_run *r = w->base.run;

	if (!e && rt_is_first_of_thread(r)) {
		recall_message(w);
		return;
	}
	if (!e)
		e = rt_history_load(r, past_ready, w, &w->load);
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
}

static void plan_ready(void *ctx, uar_err e, uar_str text)
{
	struct llm *w = ctx;

	w->input = NULL;
	uar_buf_add_str(&w->message, UAR_STR("\n\nFollow this plan:\n"));
	uar_buf_add_str(&w->message, text);
	load_past(w, e ? e : w->message.err);
}

/* Candidates answer as if they were alone. UAR_ESKIP: the route is no ensemble. */
static uar_err load_ensemble(struct llm *w)
{
	w->role = rt_ensemble_role(w->base.run);
	if (w->role == UAR_ROLE_RANK)
		return rt_ensemble_load(w, load_past);
	if (w->role == UAR_ROLE_CANDIDATE)
		load_past(w, UAR_OK);
	return w->role == UAR_ROLE_CANDIDATE ? UAR_OK : UAR_ESKIP;
}

/* The model that executes is told the plan with the message, the one that plans its task. */
static void load_plan(struct llm *w, uar_err e)
{
	const struct uar_run *state = rt_state(w->base.run);
	uar_str blob = uar_str_c(uar_run_rare(state)->route.plan_blob);

	if (!e && state->what.entry == UAR_ENTRY_WORKFLOW) {
		rt_flow_go_on(w);
		return;
	}

	if (!e) {
		e = load_ensemble(w);
		if (!e)
			return;
		e = e == UAR_ESKIP ? UAR_OK : e;
	}
	if (!e && blob.n) {
		e = rt_text_load(w->base.run, blob, plan_ready, w, &w->input);
		if (!e)
			return;
	} else if (!e && rt_must_plan(w->base.run)) {
		w->role = UAR_ROLE_PLAN;
		uar_buf_add_str(
			&w->message,
			UAR_STR("\n\nDo not answer yet. Write a short plan of numbered steps "
				"by which another model will do this."));
		e = w->message.err;
	}
	load_past(w, e);
}

static void inputs_ready(void *ctx, uar_err e, uar_str text)
{
	struct llm *w = ctx;

	w->input = NULL;
	uar_buf_add_str(&w->inputs, text);
	load_plan(w, e ? e : w->inputs.err);
}

static void input_ready(void *ctx, uar_err e, uar_str text)
{
	struct llm *w = ctx;
	struct live_run *r = w->base.run;

	w->input = NULL;
	uar_buf_add_str(&w->message, text);
	w->said = w->message.n;
	if (!e)
		e = w->message.err;
	if (!e)
		e = rt_llm_hooks_prompt(w);
	if (!e && rt_state(r)->what.inputs_blob.n && !w->inputs.n) {
		w->inputs = uar_buf_make(UAR_LIMIT_HTTP_BODY);
		e = rt_inputs_load(r, inputs_ready, w, &w->input);
		if (!e)
			return;
	}
	load_plan(w, e);
}

static uar_err load_input(struct llm *w)
{
	return rt_input_load(w->base.run, input_ready, w, &w->input);
}

/* --- rounds ------------------------------------------------------------------------ */

static uar_err load_rounds(struct llm *w);

static void stopped(struct llm *w)
{
	static const struct uar_command stopped_command = { .kind = UAR_CMD_STOPPED };
	struct live_run *r = w->base.run;

	rt_worker_stop(r);
	rt_send(r, &stopped_command);
}

/* The results are read from the log like everything else that the model is told. */
static void tools_done(void *ctx)
{
	struct llm *w = ctx;
	uar_err e;

	if (w->leaving) {
		stopped(w);
		return;
	}
	rt_tool_loop_stop(w->loop);
	w->loop = NULL;
	rt_rounds_free(w->rounds);
	w->rounds = NULL;
	e = load_rounds(w);
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
}

/* All calls are over, and hooks have seen them. */
static void rounds_told(struct llm *w)
{
	uar_err e = rt_llm_hooks_tell(w);

	if (!e)
		e = load_input(w);
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
}

static void rounds_ready(void *ctx, uar_err e, const struct uar_error *error, struct rounds *s)
{
	struct llm *w = ctx;
	struct tool_loop_options o = { w->base.run, s, tools_done, w };

	w->rounds_load = NULL;
	w->rounds = s;
	if (!e && !rt_rounds_unfinished(s) && rt_llm_hooks_after(w, rounds_told))
		return;
	if (!e)
		e = rt_rounds_unfinished(s) ? rt_tool_loop_begin(&o, &w->loop) : load_input(w);
	if (e)
		rt_llm_fail(w, e, error ? uar_error_text(error) : uar_err_text(e));
}

static uar_err load_rounds(struct llm *w)
{
	return rt_rounds_load(w->base.run, rounds_ready, w, &w->rounds_load);
}

static uar_err no_provider(const struct live_run *r, struct uar_error *error)
{
	return uar_error_set(error, UAR_EPROVIDER, "provider %.*s is not configured",
			     UAR_FMT(uar_run_provider(rt_state(r))));
}

/* Or messages that joined the turn, which are told among them. */
static bool has_rounds(const struct live_run *r)
{
	const struct uar_run_rare *rare = uar_run_rare(rt_state(r));

	return rare->tools.rounds || rare->later.given;
}

/* Rounds of tools are told again before the message. */
static uar_err begin_rounds(struct llm *w)
{
	return has_rounds(w->base.run) ? load_rounds(w) : load_input(w);
}

static void skills_read(void *ctx, uar_err e)
{
	struct llm *w = ctx;

	w->skill_load = NULL;
	if (!e)
		e = begin_rounds(w);
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
}

static uar_err begin_skills(struct llm *w)
{
	struct skills_ask ask = { w->base.run, UAR_STR(""), skills_read, w, &w->skills };
	uar_err e = rt_skills_resume(&ask, &w->skill_load);

	return e == UAR_ESKIP ? begin_rounds(w) : e;
}

static uar_err begin_client(struct llm *w)
{
	struct live_run *r = w->base.run;
	const struct uar_json *client = uar_json_get(rt_inputs(rt_llm_inputs(w), &w->client.arena),
						     UAR_STR(UAR_CLIENT_INPUT));
	uar_err e = client ? rt_client_tools(r, client, &w->client.tools) : UAR_OK;

	return e ? e : begin_skills(w);
}

static void inputs_first(void *ctx, uar_err e, uar_str text)
{
	struct llm *w = ctx;

	w->input = NULL;
	uar_buf_add_str(&w->inputs, text);
	if (!e)
		e = w->inputs.err;
	if (!e)
		e = begin_client(w);
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
}

/* What the client has added may be tools: they are known before anything else. */
static uar_err begin_work(struct llm *w, struct uar_error *error)
{
	struct live_run *r = w->base.run;

	if (rt_state(r)->what.entry == UAR_ENTRY_LLM && !rt_is_routed(r) && !rt_model_of(r))
		return no_provider(r, error);
	if (!rt_state(r)->what.inputs_blob.n)
		return begin_client(w);
	w->inputs = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	return rt_inputs_load(r, inputs_first, w, &w->input);
}

static void begin_hooked(struct llm *w)
{
	struct uar_error error = { 0 };
	uar_err e = begin_work(w, &error);

	if (e)
		rt_llm_fail(w, e, error.text[0] ? error.text : uar_err_text(e));
}

static uar_err begin_with_hooks(struct llm *w, struct uar_error *error)
{
	uar_err e = rt_hooks_check(w->base.run, error);

	if (!e)
		e = rt_llm_hooks_begin(w, begin_hooked);
	return e == UAR_ESKIP ? begin_work(w, error) : e;
}

static void definition_ready(void *ctx, uar_err e, const struct uar_error *error)
{
	struct uar_error own = *error;
	struct llm *w = ctx;

	w->definition = NULL;
	if (!e)
		e = begin_with_hooks(w, &own);
	if (e)
		rt_llm_fail(w, e, own.text[0] ? own.text : uar_err_text(e));
}

static uar_err llm_start(struct worker *base, struct uar_error *error)
{
	struct llm *w = (struct llm *)base;
	uar_err e = rt_definition_pin(base->run, definition_ready, w, &w->definition);

	return e == UAR_ESKIP ? begin_with_hooks(w, error) : e;
}

/* --- the call -------------------------------------------------------------------- */

static void leave_past(struct llm *w)
{
	rt_past_keep(&rt_work(w->base.run)->pasts, w->past);
	w->past = NULL;
}

/* A streaming run keeps no copy of what it was told. */
static void leave_all(struct llm *w)
{
	leave_past(w);
	rt_rounds_free(w->rounds);
	w->rounds = NULL;
	uar_buf_fini(&w->message);
	uar_buf_fini(&w->inputs);
	uar_arena_fini(&w->client.arena);
	uar_prompt_fini(&w->text);
	rt_recall_release(&w->recall);
}

/* To what the model can do. Rounds of tools send what was said so far again and again. */
static void fit_request(const struct llm *w, struct uar_model_request *r, struct prompt *p)
{
	const struct uar_workers_options *o = &rt_work(w->base.run)->o;
	struct uar_model_row row;

	if (!o->models)
		return;
	row = uar_models_row(o->models, uar_run_provider(rt_state(w->base.run)), r->model);
	uar_models_fit(&row, r);
	if (!row.tools)
		r->tool_count = 0;
	rt_media_fit(p, row.images, row.files);
	if (row.cache && r->tool_count && p->part_count)
		p->parts[p->part_count - 1].cache = true;
}

static void set_policy(const struct live_run *r, struct uar_model_request *request)
{
	struct uar_model_policy policy;

	if (!rt_routing_policy(r, &policy))
		return;
	request->effort = policy.effort;
	request->max_tokens = policy.max_tokens;
}

static void llm_call_model(struct worker *base)
{
	struct llm *w = (struct llm *)base;
	struct toolset set = rt_toolset_of(base->run);
	struct uar_model_tool tools[UAR_LIMIT_TOOLS_TOLD];
	struct uar_model_request request = {
		.model = uar_run_model(rt_state(base->run)),
		.tools = tools,
		.tool_count = rt_toolset_tell(&set, tools),
		.idle_timeout_us = rt_work(base->run)->o.patience.idle_us,
	};
	struct uar_model_events events = { rt_llm_on_text, rt_llm_on_reasoning, rt_llm_on_done, w };
	struct uar_error error = { 0 };
	struct uar_buf schema = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct prompt p = { 0 };
	uar_err e = collect_prompt(w, &p);

	w->model = rt_model_of(base->run);
	if (!e && !w->model)
		e = no_provider(base->run, &error);
	if (w->role == UAR_ROLE_EXECUTE || w->role == UAR_ROLE_CANDIDATE)
		request.output = rt_agent_output(rt_definition(base->run), &schema);
	if (w->role != UAR_ROLE_EXECUTE)
		request.tool_count = 0;
	if (rt_answer_is_repaired(w))
		request.tool_choice.kind = UAR_CHOICE_NONE;
	else if (w->client.tools && !uar_run_rare(rt_state(base->run))->tools.rounds)
		request.tool_choice = rt_client_choice(uar_json_get(
			rt_inputs(rt_llm_inputs(w), &w->client.arena), UAR_STR(UAR_CLIENT_INPUT)));
	set_policy(base->run, &request);
	fit_request(w, &request, &p);
	request.messages = p.messages;
	request.message_count = p.count;
	if (!e)
		e = w->model->ops->start(w->model, &request, &events, &w->call, &error);
	if (e) {
		error.code = e;
		rt_llm_fail(w, e, uar_error_text(&error));
	}
	rt_prompt_fini(&p);
	uar_buf_fini(&schema);
	leave_all(w);
}

static void llm_flow(struct worker *base)
{
	struct llm *w = (struct llm *)base;

	if (!w->paused)
		return;
	w->paused = false;
	if (w->call)
		w->model->ops->pause(w->model, w->call, false);
}

static void llm_stop(struct worker *base)
{
	struct llm *w = (struct llm *)base;

	rt_definition_cancel(w->definition);
	rt_llm_hooks_free(w);
	rt_skills_cancel(w->skill_load);
	rt_skills_free(w->skills);
	w->skills = NULL;
	rt_input_cancel(w->input);
	rt_history_cancel(w->load);
	rt_rounds_cancel(w->rounds_load);
	rt_tool_loop_stop(w->loop);
	rt_llm_free_end(w->end);
	rt_aside_cancel(w->plan);
	uar_buf_fini(&w->plan_nodes);
	uar_buf_fini(&w->plan_index);
	uar_blocks_fini(&w->blocks);
	uar_buf_fini(&w->answer);
	uar_buf_fini(&w->reasoning);
	uar_buf_fini(&w->stage);
	rt_compaction_fini(&w->compaction);
	if (w->call)
		w->model->ops->cancel(w->model, w->call);
	leave_all(w);
	uar_tools_destroy(w->client.tools);
	if (!w->definition)
		rt_definition_unpin(base->run);
	uar_free(w);
}

/* A tool that is changing something is waited for: its time is limited, and what came of
 * it has to be known. */
static void llm_cancel(struct worker *base)
{
	struct llm *w = (struct llm *)base;

	w->leaving = true;
	if (!w->loop || !rt_tool_loop_leave(w->loop))
		stopped(w);
}

static bool llm_stays(const struct worker *base)
{
	return rt_tool_loop_asks(((const struct llm *)base)->loop);
}

static void llm_answer(struct worker *base, const struct uar_answer *answer)
{
	rt_tool_loop_answer(((struct llm *)base)->loop, answer);
}

static const struct worker_ops llm_ops = { .name = "llm.chat",
					   .start = llm_start,
					   .call_model = llm_call_model,
					   .flow = llm_flow,
					   .stop = llm_stop,
					   .cancel = llm_cancel,
					   .answer = llm_answer,
					   .stays = llm_stays };

struct llm *rt_llm_of(const struct live_run *r)
{
	struct worker *w = rt_worker(r);

	return w && w->ops == &llm_ops ? (struct llm *)w : NULL;
}

const struct skill_set *rt_llm_skills(const struct live_run *r)
{
	struct worker *w = rt_worker(r);

	return w && w->ops == &llm_ops ? ((struct llm *)w)->skills : NULL;
}

const struct rounds *rt_llm_rounds(const struct live_run *r)
{
	struct worker *w = rt_worker(r);

	return w && w->ops == &llm_ops ? ((struct llm *)w)->rounds : NULL;
}

struct tool_loop *rt_llm_tool_loop(const struct live_run *r)
{
	struct worker *w = rt_worker(r);

	return w && w->ops == &llm_ops ? ((struct llm *)w)->loop : NULL;
}

struct uar_tools *rt_llm_tools(const struct live_run *r)
{
	struct worker *w = rt_worker(r);

	return w && w->ops == &llm_ops ? ((struct llm *)w)->client.tools : NULL;
}

uar_err rt_llm_make(struct live_run *r, struct worker **out)
{
	struct llm *w = uar_zalloc(sizeof *w);

	(void)r;
	if (!w)
		return UAR_ENOMEM;
	w->base.ops = &llm_ops;
	w->message = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	w->reasoning = uar_buf_make(UAR_LIMIT_REASONING_SUMMARY + 1);
	w->stage = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT + 1);
	*out = &w->base;
	return UAR_OK;
}
