/* tool_sample.c - a model call on behalf of a tool: asked for, within the budget, on the record.
 *
 * The request is durable before the model is called and what it said before the tool hears it. No
 * text of it is an answer of the run. */
#include "work/tool_sample.h"

#include "base/sha256.h"
#include "json/limits.h"
#include "model/limits.h"
#include "model/models.h"
#include "model/policy.h"
#include "work/media.h"
#include "work/prompt.h"
#include "work/routing.h"
#include "work/spill.h"

struct sample {
	struct place *p;
	struct uar_buf about, prompt; /* of the question */
	struct uar_arena arena;	      /* of the messages, which borrow from `about` */
	struct prompt messages;
	struct aside *aside;
	struct uar_model *model;
	struct uar_model_call *call;
	struct uar_buf text; /* what the model says */
	struct uar_model_end end;
	struct uar_arena kept; /* strings of the end */
	int64_t max_tokens;
	bool requested; /* the log has it */
};

static struct live_run *run_of(const struct sample *s)
{
	return s->p->loop->o.run;
}

static void free_sample(struct sample *s)
{
	if (s->call)
		s->model->ops->cancel(s->model, s->call);
	rt_aside_cancel(s->aside);
	rt_prompt_fini(&s->messages);
	uar_arena_fini(&s->arena);
	uar_arena_fini(&s->kept);
	uar_buf_fini(&s->about);
	uar_buf_fini(&s->prompt);
	uar_buf_fini(&s->text);
	s->p->sample = NULL;
	uar_free(s);
}

static void answer_tool(struct place *p, const struct uar_tool_answer *a)
{
	struct uar_tools *registry = p->loop->set.registry;

	if (p->at_work)
		registry->ops->answer(registry, p->at_work, a);
}

static void refuse(struct sample *s, const char *why)
{
	struct uar_tool_answer a = { .verdict = UAR_VERDICT_DECLINE, .reason = uar_str_c(why) };
	struct place *p = s->p;

	free_sample(s);
	answer_tool(p, &a);
}

/* The sample of the call that a command is about; NULL: it is gone. */
static struct sample *sample_in(const struct rt_sent *sent)
{
	struct tool_loop *l = sent->run ? rt_llm_tool_loop(sent->run) : NULL;

	for (size_t i = 0; l && i < PLACES; i++)
		if (l->places[i].sample == sent->ctx)
			return sent->ctx;
	return NULL;
}

/* --- the question ----------------------------------------------------------------------------- */

static void asked(const struct rt_sent *sent)
{
	struct sample *s = sent->err ? sample_in(sent) : NULL;

	if (!s)
		return;
	s->p->question = 0;
	refuse(s, "nobody can be asked now");
}

static void send_ask(struct sample *s, uar_str blob)
{
	struct live_run *r = run_of(s);
	uar_str about = uar_buf_str(&s->about);
	struct uar_command c = { .kind = UAR_CMD_ASK };

	s->p->question = uar_run_rare(rt_state(r))->actions.count + 1;
	c.ask = (struct uar_ask){
		.number = s->p->question,
		.type = UAR_ACTION_PERMISSION,
		.kind = UAR_STR("sampling"),
		.tool_name = s->p->tool->name,
		.call_id = s->p->call->id,
		.prompt = uar_buf_str(&s->prompt),
		.input = blob.n ? rt_spill_beginning(about) : about,
		.input_bytes = (int64_t)about.n,
		.blob = blob,
		.verdict = UAR_VERDICT_ASK,
		.timeout_us = rt_work(r)->o.action_timeout_us,
		.tool_id = s->p->tool->tool_id,
	};
	if (!rt_send_asked(r, &c, asked, s))
		rt_lose(r, UAR_ENOMEM);
}

static void about_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct sample *s = ctx;

	s->aside = NULL;
	if (e)
		refuse(s, uar_err_text(e));
	else
		send_ask(s, sha256);
}

void rt_sample_ask(struct place *p, const struct uar_tool_question *q)
{
	struct sample *s = uar_zalloc(sizeof *s);
	uar_err e = UAR_OK;

	if (!s) {
		rt_lose(p->loop->o.run, UAR_ENOMEM);
		return;
	}
	s->p = p;
	p->sample = s;
	uar_arena_init(&s->arena, 0);
	uar_arena_init(&s->kept, 0);
	s->about = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	s->prompt = uar_buf_make(PROMPT);
	s->text = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT + 1);
	uar_buf_add_str(&s->about, q->about);
	uar_buf_add_str(&s->prompt, uar_str_utf8_prefix(q->prompt, PROMPT - 1));
	if (s->about.err || s->prompt.err)
		e = UAR_ENOMEM;
	else if (s->about.n > UAR_LIMIT_TOOL_INLINE)
		e = rt_aside_begin(rt_engine(run_of(s)), q->about, about_stored, s, &s->aside);
	else
		send_ask(s, UAR_STR_NONE);
	if (e)
		refuse(s, uar_err_text(e));
}

/* --- the messages ----------------------------------------------------------------------------- */

static bool add_block(struct sample *s, const struct uar_json *block)
{
	uar_str type = uar_json_text(block, "type");
	struct uar_model_part part = uar_model_text_part(uar_json_text(block, "text"));

	if (uar_str_is(type, "image")) {
		part = (struct uar_model_part){ .kind = UAR_PART_IMAGE,
						.text = uar_json_text(block, "data"),
						.media_type = uar_json_text(block, "mimeType") };
	} else if (!uar_str_is(type, "text")) {
		return false;
	}
	rt_prompt_add(&s->messages, &part);
	return true;
}

static bool add_message(struct sample *s, const struct uar_json *m)
{
	const struct uar_json *content = uar_json_get(m, UAR_STR("content"));
	uar_str role = uar_json_text(m, "role");

	if (!content || (!uar_str_is(role, "user") && !uar_str_is(role, "assistant")))
		return false;
	rt_prompt_begin(&s->messages,
			uar_str_is(role, "user") ? UAR_MODEL_USER : UAR_MODEL_ASSISTANT);
	if (content->kind != UAR_JSON_ARRAY)
		return add_block(s, content);
	for (const struct uar_json *b = content->first; b; b = b->next)
		if (!add_block(s, b))
			return false;
	return content->first != NULL;
}

/* NULL: they are understood. */
static const char *read_messages(struct sample *s)
{
	const struct uar_json *j = NULL, *list;
	uar_str system;

	if (uar_json_parse(uar_buf_str(&s->about), NULL, &s->arena, &j, NULL))
		return "the request cannot be read";
	list = uar_json_get(j, UAR_STR("messages"));
	system = uar_json_text(j, "systemPrompt");
	s->max_tokens = uar_json_int(uar_json_get(j, UAR_STR("maxTokens")), 0);
	if (uar_json_get(j, UAR_STR("tools")))
		return "tools are not offered to such calls";
	if (!list || list->kind != UAR_JSON_ARRAY || !list->first)
		return "there are no messages";
	if (system.n)
		rt_prompt_text(&s->messages, UAR_MODEL_SYSTEM, system);
	for (const struct uar_json *m = list->first; m; m = m->next)
		if (!add_message(s, m))
			return "messages may have text and images only";
	return rt_prompt_end(&s->messages) ? "the messages are too many" : NULL;
}

/* --- the call --------------------------------------------------------------------------------- */

static const char *stop_reason(uar_str said)
{
	return uar_str_is(said, "length") ? "maxTokens" : "endTurn";
}

static void tell_tool(struct sample *s)
{
	struct uar_buf out = uar_buf_make(2 * (size_t)UAR_LIMIT_MODEL_OUTPUT + 4096);
	struct uar_jw w = uar_jw_begin(&out);
	struct uar_tool_answer a = { .verdict = UAR_VERDICT_SUBMIT };
	struct place *p = s->p;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "role", "assistant");
	uar_jw_obj(&w, "content");
	uar_jw_cstr(&w, "type", "text");
	uar_jw_str(&w, "text", uar_buf_str(&s->text));
	uar_jw_close(&w);
	uar_jw_str(&w, "model",
		   s->end.actual_model.n ? s->end.actual_model
					 : uar_run_model(rt_state(run_of(s))));
	uar_jw_cstr(&w, "stopReason", stop_reason(s->end.stop_reason));
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		a = (struct uar_tool_answer){ .verdict = UAR_VERDICT_DECLINE,
					      .reason = UAR_STR("the answer is too long") };
	else
		a.values = uar_buf_str(&out);
	free_sample(s);
	answer_tool(p, &a);
	uar_buf_fini(&out);
}

/* What the model said, or that it failed, is durable. */
static void recorded(const struct rt_sent *sent)
{
	struct sample *s = sample_in(sent);
	char why[UAR_TEXT_MESSAGE];

	if (!s)
		return;
	s->requested = false;
	if (!sent->err && !s->end.category.n) {
		tell_tool(s);
		return;
	}
	snprintf(why, sizeof why, "the model could not answer: %.*s",
		 UAR_FMT(s->end.category.n ? s->end.message : uar_str_c(uar_err_text(sent->err))));
	refuse(s, why);
}

static void send_end(struct sample *s)
{
	struct uar_command c = { .kind = UAR_CMD_SAMPLED };

	c.model = s->end;
	if (!rt_send_asked(run_of(s), &c, recorded, s))
		rt_lose(run_of(s), UAR_ENOMEM);
}

static void text_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct sample *s = ctx;

	s->aside = NULL;
	if (!e)
		s->end.raw_blob = uar_arena_str(&s->kept, sha256);
	send_end(s);
}

static void on_text(void *ctx, uar_str delta)
{
	struct sample *s = ctx;

	uar_buf_add_str(&s->text, delta);
}

static void on_reasoning(void *ctx, uar_str delta)
{
	(void)ctx;
	(void)delta;
}

static void on_done(void *ctx, const struct uar_model_result *m)
{
	struct sample *s = ctx;
	bool too_long = s->text.err != UAR_OK;
	uar_str why = too_long ? UAR_STR("its answer is too long") : m->message;
	uar_err e = UAR_OK;

	s->call = NULL;
	s->end = (struct uar_model_end){
		.actual_model = uar_arena_str(&s->kept, m->actual_model),
		.stop_reason = uar_arena_str(&s->kept, m->stop_reason),
		.input_tokens = m->usage.input_tokens,
		.output_tokens = m->usage.output_tokens,
		.total_tokens = m->usage.total_tokens,
		.cached_tokens = m->usage.cached_tokens,
		.http_status = m->http_status,
		.retryable = m->retryable,
	};
	if (m->failure || too_long) {
		s->end.category = uar_str_c(
			uar_model_failure_name(m->failure ? m->failure : UAR_MODEL_FAIL_LIMIT));
		s->end.message = uar_arena_str(&s->kept, why);
		send_end(s);
		return;
	}
	if (s->text.n)
		e = rt_aside_begin(rt_engine(run_of(s)), uar_buf_str(&s->text), text_stored, s,
				   &s->aside);
	if (!s->text.n || e)
		send_end(s);
}

static void start_model(struct sample *s)
{
	struct live_run *r = run_of(s);
	const struct uar_workers_options *o = &rt_work(r)->o;
	struct uar_model_policy policy;
	struct uar_model_request request = { .model = uar_run_model(rt_state(r)),
					     .idle_timeout_us = o->patience.idle_us,
					     .max_tokens = s->max_tokens };
	struct uar_model_events events = { on_text, on_reasoning, on_done, s };
	struct uar_error error = { 0 };
	uar_err e = UAR_EPROVIDER;

	if (rt_routing_policy(r, &policy) && policy.max_tokens &&
	    (!request.max_tokens || policy.max_tokens < request.max_tokens))
		request.max_tokens = policy.max_tokens;
	if (o->models) {
		struct uar_model_row row =
			uar_models_row(o->models, uar_run_provider(rt_state(r)), request.model);

		uar_models_fit(&row, &request);
		rt_media_fit(&s->messages, row.images, row.files);
	}
	request.messages = s->messages.messages;
	request.message_count = s->messages.count;
	s->model = rt_model_of(r);
	if (s->model)
		e = s->model->ops->start(s->model, &request, &events, &s->call, &error);
	if (!e)
		return;
	error.code = e;
	s->call = NULL;
	s->end = (struct uar_model_end){ .category = UAR_STR("provider_error"),
					 .message = uar_arena_str(
						 &s->kept, uar_str_c(uar_error_text(&error))),
					 .input_tokens = -1,
					 .output_tokens = -1,
					 .total_tokens = -1 };
	send_end(s);
}

/* Durable: now the model may be called. */
static void requested(const struct rt_sent *sent)
{
	struct sample *s = sample_in(sent);

	if (!s)
		return;
	if (sent->err) {
		refuse(s, sent->err == UAR_ESTATE ? "the budget of the run is spent"
						  : uar_err_text(sent->err));
		return;
	}
	s->requested = true;
	start_model(s);
}

void rt_sample_begin(struct place *p)
{
	struct sample *s = p->sample;
	struct live_run *r = p->loop->o.run;
	const char *wrong = read_messages(s);
	struct uar_buf route = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_command c = { .kind = UAR_CMD_SAMPLE };
	struct routing_needs needs = { 0 };
	char sha256[UAR_SHA256_TEXT + 1];

	p->question = 0;
	uar_sha256_hex(uar_buf_str(&s->about), sha256);
	c.prepared.role = UAR_ROLE_SAMPLE;
	c.prepared.message_count = (int64_t)s->messages.count;
	c.prepared.prompt_sha256 = uar_str_c(sha256);
	c.prepared.prompt_bytes = (int64_t)s->about.n;
	if (!wrong && rt_routing_prepare(r, &needs, &route, &c.prepared))
		wrong = "no model can be chosen for it";
	if (!wrong && !uar_run_may_spend(rt_state(r), &c.prepared))
		wrong = "the budget of the run is spent";
	if (wrong)
		refuse(s, wrong);
	else if (!rt_send_asked(r, &c, requested, s))
		rt_lose(r, UAR_ENOMEM);
	uar_buf_fini(&route);
}

void rt_sample_drop(struct place *p, bool record)
{
	struct sample *s = p->sample;
	struct uar_command c = { .kind = UAR_CMD_SAMPLED };

	if (!s)
		return;
	c.model = (struct uar_model_end){ .code = UAR_STR("CANCELED"),
					  .category = UAR_STR("cancelled"),
					  .message =
						  UAR_STR("the tool does not wait for it any more"),
					  .input_tokens = -1,
					  .output_tokens = -1,
					  .total_tokens = -1 };
	if (record && s->requested)
		rt_send(p->loop->o.run, &c);
	free_sample(s);
}
