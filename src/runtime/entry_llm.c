/* entry_llm.c - llm.chat: input, history, one streamed model call.
 *
 * The request is recorded (UAR_CMD_PREPARED) before the model is called; every
 * piece of text goes through the engine before anybody sees it. When commits
 * are slower than the model, the model's stream is held back. */
#include "base/sha256.h"
#include "runtime/history.h"

struct llm {
	struct worker base;
	struct input_load *input;
	struct history_load *load;
	struct past *past;	/* NULL: nothing was said before */
	struct uar_buf message; /* the user's text */
	struct uar_model *model;
	struct uar_model_call *call;
	bool paused;
};

static void fail(struct llm *w, uar_err e, const char *why)
{
	rt_send_fail(w->base.run, e, "provider_error", why);
}

/* --- preparing ----------------------------------------------------------------- */

static size_t collect(const struct llm *w, struct uar_model_message *out)
{
	const struct uar_run_what *what = &w->base.run->state.what;
	size_t n = 0;

	if (what->instructions.n)
		out[n++] = (struct uar_model_message){ .role = UAR_MODEL_SYSTEM,
						       .text = what->instructions };
	if (w->past)
		n += rt_past_collect(w->past, w->base.run, out + n);
	out[n++] = (struct uar_model_message){ .role = UAR_MODEL_USER,
					       .text = uar_buf_str(&w->message) };
	return n;
}

static void prepared(struct llm *w)
{
	struct uar_model_message messages[UAR_LIMIT_HISTORY_MESSAGES + 2];
	size_t n = collect(w, messages);
	struct uar_buf all = uar_buf_make(UAR_LIMIT_JSON_BYTES * 2);
	struct uar_command c = { .kind = UAR_CMD_PREPARED };
	struct uar_buf omissions = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	char sha256[UAR_SHA256_TEXT + 1];

	if (w->past)
		rt_past_omissions(w->past, w->base.run, &omissions);
	for (size_t i = 0; i < n; i++) {
		uar_buf_add_char(&all, (char)('0' + messages[i].role));
		uar_buf_add_str(&all, messages[i].text);
		uar_buf_add_char(&all, 0);
	}
	if (all.err) {
		fail(w, all.err, uar_err_text(all.err));
	} else {
		uar_sha256_hex(uar_buf_str(&all), sha256);
		c.prepared.message_count = (int64_t)n;
		c.prepared.prompt_sha256 = uar_str_c(sha256);
		c.prepared.prompt_bytes = (int64_t)(all.n - 2 * n);
		c.prepared.omissions = uar_buf_str(&omissions);
		rt_send(w->base.run, &c);
	}
	uar_buf_fini(&all);
	uar_buf_fini(&omissions);
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
	if (!e && r->first_of_thread) {
		prepared(w);
		return;
	}
	if (!e)
		e = rt_history_load(r, past_ready, w, &w->load);
	if (e)
		fail(w, e, uar_err_text(e));
}

static uar_err llm_start(struct worker *base, struct uar_error *error)
{
	struct llm *w = (struct llm *)base;
	const struct uar_runtime_options *o = &base->run->agg->rt->o;
	uar_str provider = base->run->state.what.provider;

	if (uar_str_is(provider, "scripted"))
		w->model = o->scripted;
	else if (o->provider && uar_str_is(provider, o->provider->ops->provider))
		w->model = o->provider;
	if (!w->model)
		return uar_error_set(error, UAR_EPROVIDER, "provider %.*s is not configured",
				     UAR_FMT(provider));
	return rt_input_load(base->run, input_ready, w, &w->input);
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
	on_delta(ctx, UAR_CMD_TEXT, delta);
}

static void on_reasoning(void *ctx, uar_str delta)
{
	on_delta(ctx, UAR_CMD_REASONING, delta);
}

static void on_done(void *ctx, const struct uar_model_result *m)
{
	struct llm *w = ctx;
	struct uar_command c = { .kind = m->failure ? UAR_CMD_MODEL_FAILED : UAR_CMD_MODEL_DONE };

	w->call = NULL;
	c.model = (struct uar_model_end){
		.actual_model = m->actual_model,
		.stop_reason = m->stop_reason,
		.input_tokens = m->usage.input_tokens,
		.output_tokens = m->usage.output_tokens,
		.total_tokens = m->usage.total_tokens,
		.category = uar_str_c(uar_model_failure_name(m->failure)),
		.message = m->message,
		.retryable = m->retryable,
		.http_status = m->http_status,
	};
	rt_send(w->base.run, &c);
}

static void leave_past(struct llm *w)
{
	rt_past_keep(w->base.run->agg->rt, w->past);
	w->past = NULL;
}

static void llm_call_model(struct worker *base)
{
	struct llm *w = (struct llm *)base;
	struct uar_model_message messages[UAR_LIMIT_HISTORY_MESSAGES + 2];
	struct uar_model_request request = {
		.model = base->run->state.what.model,
		.messages = messages,
		.message_count = collect(w, messages),
		.idle_timeout_us = base->run->agg->rt->o.model_idle_us,
	};
	struct uar_model_events events = { on_text, on_reasoning, on_done, w };
	struct uar_error error = { 0 };
	uar_err e = w->model->ops->start(w->model, &request, &events, &w->call, &error);

	if (e) {
		error.code = e;
		fail(w, e, uar_error_text(&error));
	}
	leave_past(w); /* a streaming run keeps no copy of it */
	uar_buf_fini(&w->message);
}

static void llm_flow(struct worker *base, bool paused)
{
	struct llm *w = (struct llm *)base;

	if (paused || !w->paused)
		return;
	w->paused = false;
	if (w->call)
		w->model->ops->pause(w->model, w->call, false);
}

static void llm_stop(struct worker *base)
{
	struct llm *w = (struct llm *)base;

	rt_input_cancel(w->input);
	rt_history_cancel(w->load);
	if (w->call)
		w->model->ops->cancel(w->model, w->call);
	leave_past(w);
	uar_buf_fini(&w->message);
	uar_free(w);
}

static const struct worker_ops llm_ops = { "llm.chat", llm_start, llm_call_model,
					   llm_flow,   llm_stop,  NULL,
					   NULL };

uar_err rt_llm_make(struct live_run *r, struct worker **out)
{
	struct llm *w = uar_zalloc(sizeof *w);

	(void)r;
	if (!w)
		return UAR_ENOMEM;
	w->base.ops = &llm_ops;
	w->message = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	*out = &w->base;
	return UAR_OK;
}
