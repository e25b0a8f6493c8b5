/* entry_llm.c - llm.chat: input, history, streamed model calls and tools between them.
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
#include "event/limits.h"
#include "json/limits.h"
#include "model/limits.h"
#include "model/parts.h"
#include "work/agent_prompt.h"
#include "work/artifacts.h"
#include "work/aside.h"
#include "work/definitions.h"
#include "work/history.h"
#include "work/limits.h"
#include "work/routing.h"
#include "work/tool_loop.h"

struct llm {
	struct worker base;
	struct input_load *input;
	struct history_load *load;
	struct past *past; /* NULL: nothing was said before */
	struct rounds_load *rounds_load;
	struct rounds *rounds;	  /* NULL: no tool was asked for so far */
	struct tool_loop *loop;	  /* NULL: none is at work */
	struct held_end *end;	  /* what its answer brings is being put aside */
	struct uar_blocks blocks; /* of the answer so far */
	struct uar_buf message;	  /* the user's text */
	struct uar_buf reasoning; /* the beginning of what the model reasons */
	struct uar_arena arena;	  /* of what the client has sent with it */
	struct definition_load *definition;
	struct uar_prompt_text text; /* of an agent that has a definition */
	struct uar_model *model;
	struct uar_model_call *call;
	bool paused;
	bool leaving; /* the run is being cancelled */
};

static void fail(struct llm *w, uar_err e, const char *why)
{
	rt_send_fail(w->base.run, e, "provider_error", why);
}

/* --- preparing ----------------------------------------------------------------- */

static uar_err collect_prompt(struct llm *w, struct prompt *p)
{
	struct prompt_sources from = { w->base.run, w->past, w->rounds, uar_buf_str(&w->message),
				       &w->arena };

	return rt_agent_collect(&from, &w->text, p);
}

/* Its frame is not counted as bytes of the prompt. */
static size_t write_part(const struct uar_model_part *part, struct uar_buf *all)
{
	size_t frame = 0;

	if (part->kind != UAR_PART_TEXT && part->kind != UAR_PART_RESULT) {
		uar_buf_add_char(all, 0);
		uar_buf_add_str(all, part->name);
		uar_buf_add_char(all, 0);
		frame = 2;
	}
	uar_buf_add_str(all, part->url);
	uar_buf_add_str(all, part->text);
	return frame;
}

/* All messages in a row, each with its role before and a zero behind it. */
static size_t write_prompt(const struct prompt *p, struct uar_buf *all)
{
	size_t frame = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct uar_model_message *m = &p->messages[i];

		uar_buf_add_char(all, (char)('0' + m->role));
		for (size_t k = 0; k < m->part_count; k++)
			frame += write_part(&m->parts[k], all);
		uar_buf_add_char(all, 0);
		frame += 2;
	}
	return frame;
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
	size_t frame = write_prompt(p, all);
	uar_err e = all->err;

	c.prepared.tool_count = (int64_t)rt_toolset_tell(&tools, NULL);
	if (e) {
		fail(w, e, uar_err_text(e));
		return;
	}
	if (w->past)
		rt_past_omissions(w->past, w->base.run, &omissions);
	uar_sha256_hex(uar_buf_str(all), sha256);
	c.prepared.message_count = (int64_t)p->count;
	c.prepared.prompt_sha256 = uar_str_c(sha256);
	c.prepared.prompt_bytes = (int64_t)(all->n - frame);
	c.prepared.omissions = uar_buf_str(&omissions);
	if (rt_definition(w->base.run) && !uar_prompt_write_sections(&w->text, &sections))
		c.prepared.sections = uar_buf_str(&sections);
	needs.context_tokens = (c.prepared.prompt_bytes + 3) / 4;
	needs.tools = c.prepared.tool_count > 0;
	e = rt_routing_prepare(w->base.run, &needs, &route, &c.prepared);
	if (e)
		fail(w, e, uar_err_text(e));
	else
		rt_send(w->base.run, &c);
	uar_buf_fini(&route);
	uar_buf_fini(&omissions);
	uar_buf_fini(&sections);
}

static void prepared(struct llm *w)
{
	struct uar_buf all = uar_buf_make(UAR_LIMIT_JSON_BYTES * 2);
	struct prompt p = { 0 };
	uar_err e = collect_prompt(w, &p);

	if (e)
		fail(w, e, uar_err_text(e));
	else
		send_prepared(w, &p, &all);
	uar_buf_fini(&all);
	rt_prompt_fini(&p);
}

static void past_ready(void *ctx, uar_err e, const struct uar_error *error, struct past *p)
{
	struct llm *w = ctx;

	w->load = NULL;
	w->past = p;
	if (e)
		fail(w, e, error ? uar_error_text(error) : uar_err_text(e));
	else
		prepared(w);
}

static void input_ready(void *ctx, uar_err e, uar_str text)
{
	struct llm *w = ctx;
	struct live_run *r = w->base.run;

	w->input = NULL;
	uar_buf_add_str(&w->message, text);
	if (!e)
		e = w->message.err;
	if (!e && rt_is_first_of_thread(r)) {
		prepared(w);
		return;
	}
	if (!e)
		e = rt_history_load(r, past_ready, w, &w->load);
	if (e)
		fail(w, e, uar_err_text(e));
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
		fail(w, e, uar_err_text(e));
}

static void rounds_ready(void *ctx, uar_err e, const struct uar_error *error, struct rounds *s)
{
	struct llm *w = ctx;
	struct tool_loop_options o = { w->base.run, s, tools_done, w };

	w->rounds_load = NULL;
	w->rounds = s;
	if (!e)
		e = rt_rounds_unfinished(s) ? rt_tool_loop_begin(&o, &w->loop) : load_input(w);
	if (e)
		fail(w, e, error ? uar_error_text(error) : uar_err_text(e));
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

/* Rounds of tools are told again before the message. */
static uar_err begin_work(struct llm *w, struct uar_error *error)
{
	struct live_run *r = w->base.run;

	if (!rt_is_routed(r) && !rt_model_of(r))
		return no_provider(r, error);
	return uar_run_rare(rt_state(r))->tools.rounds ? load_rounds(w) : load_input(w);
}

static void definition_ready(void *ctx, uar_err e, const struct uar_error *error)
{
	struct uar_error own = *error;
	struct llm *w = ctx;

	w->definition = NULL;
	if (!e)
		e = begin_work(w, &own);
	if (e)
		fail(w, e, own.text[0] ? own.text : uar_err_text(e));
}

static uar_err llm_start(struct worker *base, struct uar_error *error)
{
	struct llm *w = (struct llm *)base;
	uar_err e = rt_definition_pin(base->run, definition_ready, w, &w->definition);

	return e == UAR_ESKIP ? begin_work(w, error) : e;
}

/* --- the call -------------------------------------------------------------------- */

static void on_delta(struct llm *w, enum uar_command_kind kind, uar_str text)
{
	if (rt_send_text(w->base.run, kind, text) || w->paused)
		return;
	w->paused = true;
	w->model->ops->pause(w->model, w->call, true);
}

static void on_text(void *ctx, uar_str delta)
{
	struct llm *w = ctx;

	uar_blocks_feed(&w->blocks, delta);
	on_delta(w, UAR_CMD_TEXT, delta);
}

/* Its beginning is kept for a summary; without memory for it there is none. */
static void on_reasoning(void *ctx, uar_str delta)
{
	struct llm *w = ctx;
	size_t room = UAR_LIMIT_REASONING_SUMMARY - w->reasoning.n;

	if (room > 0 && !w->reasoning.err)
		uar_buf_add_str(&w->reasoning, uar_str_utf8_prefix(delta, room));
	on_delta(w, UAR_CMD_REASONING, delta);
}

static struct uar_model_end end_of(const struct llm *w, const struct uar_model_result *m)
{
	const struct uar_workers_options *o = &rt_work(w->base.run)->o;

	return (struct uar_model_end){
		.actual_model = m->actual_model,
		.stop_reason = m->stop_reason,
		.input_tokens = m->usage.input_tokens,
		.output_tokens = m->usage.output_tokens,
		.total_tokens = m->usage.total_tokens,
		.cached_tokens = m->usage.cached_tokens,
		.category = uar_str_c(uar_model_failure_name(m->failure)),
		.message = m->message,
		.retryable = m->retryable,
		.http_status = m->http_status,
		.retries = o->patience.retries,
		.backoff_us = o->patience.retry_us,
		.retry_after_us = m->retry_after_us,
		.reasoning = w->reasoning.err ? UAR_STR("") : uar_buf_str(&w->reasoning),
	};
}

static void send_end(struct llm *w, enum uar_command_kind kind, const struct uar_model_end *end)
{
	struct uar_command c = { .kind = kind };

	c.model = *end;
	rt_send(w->base.run, &c);
}

/* An end that waits until what belongs to it is kept. */
struct held_end {
	struct aside *aside;	 /* what the model asks for, or all parts of its answer */
	struct keeping *keeping; /* what its answer holds */
	struct uar_model_end end;
	struct uar_arena arena; /* of its strings */
};

static void free_end(struct held_end *end)
{
	if (!end)
		return;
	rt_aside_cancel(end->aside);
	rt_artifacts_cancel(end->keeping);
	uar_arena_fini(&end->arena);
	uar_free(end);
}

static struct held_end *hold_end(const struct uar_model_end *end)
{
	struct held_end *h = uar_zalloc(sizeof *h);

	if (!h)
		return NULL;
	uar_arena_init(&h->arena, 0);
	h->end = *end;
	h->end.actual_model = uar_arena_str(&h->arena, end->actual_model);
	h->end.stop_reason = uar_arena_str(&h->arena, end->stop_reason);
	h->end.calls = uar_arena_str(&h->arena, end->calls);
	h->end.raw_blob = uar_arena_str(&h->arena, end->raw_blob);
	h->end.reasoning = uar_arena_str(&h->arena, end->reasoning);
	h->end.catalog = uar_arena_str(&h->arena, end->catalog);
	h->end.category = h->end.message = UAR_STR("");
	if (h->end.actual_model.p && h->end.stop_reason.p && h->end.calls.p && h->end.raw_blob.p &&
	    h->end.reasoning.p && h->end.catalog.p)
		return h;
	free_end(h);
	return NULL;
}

static void calls_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct llm *w = ctx;
	struct held_end *end = w->end;

	w->end = NULL;
	end->aside = NULL;
	end->end.calls = UAR_STR("");
	end->end.calls_blob = sha256;
	if (e)
		fail(w, e, uar_err_text(e));
	else
		send_end(w, UAR_CMD_MODEL_CALLS, &end->end);
	free_end(end);
}

/* The end waits until the bytes are durable; then `stored` goes on with it. */
static uar_err put_aside(struct llm *w, const struct uar_model_end *end, uar_str bytes,
			 aside_fn *stored)
{
	struct held_end *h = hold_end(end);
	uar_err e;

	if (!h)
		return UAR_ENOMEM;
	e = rt_aside_begin(rt_engine(w->base.run), bytes, stored, w, &h->aside);
	if (e)
		free_end(h);
	else
		w->end = h;
	return e;
}

static void blocks_kept(void *ctx, uar_str json)
{
	struct llm *w = ctx;
	struct held_end *end = w->end;

	w->end = NULL;
	end->keeping = NULL;
	end->end.artifacts = json;
	send_end(w, UAR_CMD_MODEL_DONE, &end->end);
	free_end(end);
}

/* Without memory for it the answer ends all the same: it has its blocks inside. */
static void answered(struct llm *w, const struct uar_model_end *end)
{
	struct held_end *h;

	uar_blocks_end(&w->blocks);
	h = w->blocks.count ? hold_end(end) : NULL;
	if (h && rt_artifacts_keep(w->base.run, &w->blocks, blocks_kept, w, &h->keeping)) {
		free_end(h);
		h = NULL;
	}
	w->end = h;
	if (!h)
		send_end(w, UAR_CMD_MODEL_DONE, end);
}

/* Each call gets an id of ours: those of providers are not always unique. */
static uar_err write_calls(struct llm *w, const struct uar_model_result *m, struct uar_buf *out)
{
	struct uar_jw j = uar_jw_begin(out);
	char id[UAR_UUID_TEXT + 1];

	uar_jw_arr(&j, NULL);
	for (size_t i = 0; i < m->call_count; i++) {
		uar_uuid_next(rt_ids(rt_engine(w->base.run)), id);
		uar_jw_obj(&j, NULL);
		uar_jw_cstr(&j, "id", id);
		uar_jw_str(&j, "provider_id", m->calls[i].id);
		uar_jw_str(&j, "name", m->calls[i].name);
		uar_jw_str(&j, "arguments", m->calls[i].arguments);
		uar_jw_close(&j);
	}
	uar_jw_close(&j);
	return uar_jw_end(&j);
}

/* Whatever belongs to the answer is durable, but for a long list of calls. */
static void end_answer(struct llm *w, const struct uar_model_end *end)
{
	uar_err e;

	if (!end->call_count) {
		answered(w, end);
	} else if (end->calls.n <= UAR_LIMIT_TOOL_CALLS_INLINE) {
		send_end(w, UAR_CMD_MODEL_CALLS, end);
	} else {
		e = put_aside(w, end, end->calls, calls_stored);
		if (e)
			fail(w, e, uar_err_text(e));
	}
}

static void parts_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct llm *w = ctx;
	struct held_end *end = w->end;

	w->end = NULL;
	end->aside = NULL;
	end->end.raw_blob = sha256;
	if (e)
		fail(w, e, uar_err_text(e));
	else
		end_answer(w, &end->end);
	free_end(end);
}

/* A provider that wants blocks of its answer back gets them from the log (rounds.c). */
static uar_err keep_parts(struct llm *w, const struct uar_model_result *m,
			  const struct uar_model_end *end)
{
	const struct uar_run *state = rt_state(w->base.run);
	struct uar_model_said said = { .provider = uar_run_provider(state),
				       .model = uar_run_model(state),
				       .parts = m->parts,
				       .part_count = m->part_count };
	struct uar_buf json = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e = uar_model_parts_write(&said, &json);

	if (!e)
		e = put_aside(w, end, uar_buf_str(&json), parts_stored);
	uar_buf_fini(&json);
	return e;
}

/* Calls get ids of ours. */
static uar_err describe_calls(struct llm *w, const struct uar_model_result *m, struct uar_buf *list,
			      struct uar_model_end *end)
{
	struct toolset tools = rt_toolset_of(w->base.run);
	uar_err e = write_calls(w, m, list);

	end->calls = uar_buf_str(list);
	end->call_count = (int64_t)m->call_count;
	end->tool_count = (int64_t)rt_toolset_tell(&tools, NULL);
	if (e || uar_run_rare(rt_state(w->base.run))->tools.rounds)
		return e;
	return rt_toolset_catalog(rt_work(w->base.run), &tools, &end->catalog);
}

static void completed(struct llm *w, const struct uar_model_result *m)
{
	struct uar_buf list = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_model_end end = end_of(w, m);
	uar_err e = m->call_count ? describe_calls(w, m, &list, &end) : UAR_OK;

	if (!e && m->part_count)
		e = keep_parts(w, m, &end);
	else if (!e)
		end_answer(w, &end);
	if (e)
		fail(w, e, uar_err_text(e));
	uar_buf_fini(&list);
}

static void on_done(void *ctx, const struct uar_model_result *m)
{
	struct llm *w = ctx;
	struct uar_model_end end = end_of(w, m);

	w->call = NULL;
	if (m->failure) {
		send_end(w, UAR_CMD_MODEL_FAILED, &end);
	} else if (m->call_count > UAR_LIMIT_MODEL_CALLS) {
		end.category = uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_LIMIT));
		end.message = UAR_STR("the model asks for more tools at once than are executed");
		send_end(w, UAR_CMD_MODEL_FAILED, &end);
	} else {
		completed(w, m);
	}
}

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
	uar_arena_fini(&w->arena);
	uar_prompt_fini(&w->text);
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
	if (row.cache && r->tool_count && p->part_count)
		p->parts[p->part_count - 1].cache = true;
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
	struct uar_model_events events = { on_text, on_reasoning, on_done, w };
	struct uar_error error = { 0 };
	struct uar_buf schema = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct prompt p = { 0 };
	uar_err e = collect_prompt(w, &p);

	w->model = rt_model_of(base->run);
	if (!e && !w->model)
		e = no_provider(base->run, &error);
	request.output = rt_agent_output(rt_definition(base->run), &schema);
	fit_request(w, &request, &p);
	request.messages = p.messages;
	request.message_count = p.count;
	if (!e)
		e = w->model->ops->start(w->model, &request, &events, &w->call, &error);
	if (e) {
		error.code = e;
		fail(w, e, uar_error_text(&error));
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
	rt_input_cancel(w->input);
	rt_history_cancel(w->load);
	rt_rounds_cancel(w->rounds_load);
	rt_tool_loop_stop(w->loop);
	free_end(w->end);
	uar_blocks_fini(&w->blocks);
	uar_buf_fini(&w->reasoning);
	if (w->call)
		w->model->ops->cancel(w->model, w->call);
	leave_all(w);
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

static const struct worker_ops llm_ops = { "llm.chat", llm_start,  llm_call_model, llm_flow,
					   llm_stop,   llm_cancel, NULL,	   NULL };

struct tool_loop *rt_llm_tool_loop(const struct live_run *r)
{
	struct worker *w = rt_worker(r);

	return w && w->ops == &llm_ops ? ((struct llm *)w)->loop : NULL;
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
	*out = &w->base;
	return UAR_OK;
}
