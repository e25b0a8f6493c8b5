/* llm_answer.c - what a model answers: its text goes to the engine, its end waits until all that
 * belongs to it is durable. */
#include "base/seal.h"
#include "event/sizes.h"
#include "json/limits.h"
#include "model/limits.h"
#include "model/parts.h"
#include "work/answer_check.h"
#include "work/ensemble.h"
#include "work/llm_hooks.h"
#include "work/skills.h"
#include "work/tool_form.h"
#include "work/toolset.h"

void rt_llm_fail(struct llm *w, uar_err e, const char *why)
{
	rt_send_fail(w->base.run, e, "provider_error", why);
}

static void on_delta(struct llm *w, enum uar_command_kind kind, uar_str text)
{
	if (rt_send_text(w->base.run, kind, text) || w->paused)
		return;
	w->paused = true;
	w->model->ops->pause(w->model, w->call, true);
}

/* As much of it as there is room for. */
static void add_prefix(struct uar_buf *to, size_t most, uar_str text)
{
	if (to->n < most && !to->err)
		uar_buf_add_str(to, uar_str_utf8_prefix(text, most - to->n));
}

void rt_llm_on_text(void *ctx, uar_str delta)
{
	struct llm *w = ctx;

	if (w->role != UAR_ROLE_EXECUTE)
		add_prefix(&w->stage,
			   w->role == UAR_ROLE_CANDIDATE ? UAR_LIMIT_MODEL_OUTPUT
							 : UAR_LIMIT_SUMMARY_TEXT,
			   delta);
	if (w->role == UAR_ROLE_PLAN) { /* readers see it as what the models reason */
		add_prefix(&w->reasoning, UAR_LIMIT_REASONING_SUMMARY, delta);
		on_delta(w, UAR_CMD_REASONING, delta);
	}
	if (w->role != UAR_ROLE_EXECUTE)
		return;
	uar_blocks_feed(&w->blocks, delta);
	rt_answer_feed(w, delta);
	on_delta(w, UAR_CMD_TEXT, delta);
}

/* Its beginning is kept for a summary; without memory for it there is none. */
void rt_llm_on_reasoning(void *ctx, uar_str delta)
{
	struct llm *w = ctx;

	if (w->role != UAR_ROLE_EXECUTE)
		return;
	add_prefix(&w->reasoning, UAR_LIMIT_REASONING_SUMMARY, delta);
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
	if (!rt_llm_hooks_hold(w, &c))
		rt_send(w->base.run, &c);
}

/* An end that waits until what belongs to it is kept. */
struct held_end {
	struct aside *aside;	 /* what the model asks for, or all parts of its answer */
	struct keeping *keeping; /* what its answer holds */
	struct uar_model_end end;
	struct uar_arena arena; /* of its strings */
};

void rt_llm_free_end(struct held_end *end)
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
	h->end.compaction = uar_arena_str(&h->arena, end->compaction);
	h->end.narrowed_by = uar_arena_str(&h->arena, end->narrowed_by);
	h->end.category = h->end.message = UAR_STR("");
	if (h->end.actual_model.p && h->end.stop_reason.p && h->end.calls.p && h->end.raw_blob.p &&
	    h->end.reasoning.p && h->end.catalog.p && h->end.compaction.p && h->end.narrowed_by.p)
		return h;
	rt_llm_free_end(h);
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
		rt_llm_fail(w, e, uar_err_text(e));
	else
		send_end(w, UAR_CMD_MODEL_CALLS, &end->end);
	rt_llm_free_end(end);
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
		rt_llm_free_end(h);
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
	rt_llm_free_end(end);
}

/* Without memory for it the answer ends all the same: it has its blocks inside. */
static void answered(struct llm *w, const struct uar_model_end *end)
{
	struct held_end *h;

	uar_blocks_end(&w->blocks);
	rt_answer_filter_blocks(w);
	h = w->blocks.count ? hold_end(end) : NULL;
	if (h && rt_artifacts_keep(w->base.run, &w->blocks, blocks_kept, w, &h->keeping)) {
		rt_llm_free_end(h);
		h = NULL;
	}
	w->end = h;
	if (!h)
		send_end(w, UAR_CMD_MODEL_DONE, end);
}

/* A client that brings the result of a call names the call alone: that names the run. */
static void name_call(struct llm *w, const struct toolset *set, uar_str tool,
		      char out[UAR_LIMIT_ID_BYTES + 1])
{
	enum { TAIL = 12 };
	const struct uar_tool *t =
		set->client ? uar_tools_by_model_name(set->registry, set->owner, tool) : NULL;
	char id[UAR_UUID_TEXT + 1];

	uar_uuid_next(rt_ids(rt_engine(w->base.run)), id);
	if (t && t->by == UAR_TOOL_BY_CLIENT)
		snprintf(out, UAR_LIMIT_ID_BYTES + 1, "%s.%s", rt_run_id(w->base.run),
			 id + UAR_UUID_TEXT - TAIL);
	else
		memcpy(out, id, sizeof id);
}

/* Each call gets an id of ours: those of providers are not always unique. */
static uar_err write_calls(struct llm *w, const struct uar_model_result *m, struct uar_buf *out)
{
	struct toolset set = rt_toolset_of(w->base.run);
	struct uar_jw j = uar_jw_begin(out);
	char id[UAR_LIMIT_ID_BYTES + 1];

	uar_jw_arr(&j, NULL);
	for (size_t i = 0; i < m->call_count; i++) {
		name_call(w, &set, m->calls[i].name, id);
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

/* Has a call an argument that must not be recorded? What is not known is shown by its name alone.
 */
static bool has_secrets(struct llm *w, const struct uar_model_result *m)
{
	struct toolset set = rt_toolset_of(w->base.run);
	bool found = false;

	for (size_t i = 0; i < m->call_count && !found; i++) {
		const struct uar_tool *t =
			uar_tools_by_model_name(set.registry, set.owner, m->calls[i].name);
		struct uar_buf hidden = uar_buf_make(UAR_LIMIT_JSON_BYTES);

		found = rt_form_hides(t ? t->input_schema : UAR_STR(""), m->calls[i].arguments,
				      &hidden) != UAR_ESKIP;
		uar_buf_fini(&hidden);
	}
	return found;
}

/* In place: what only rounds.c can read from here on. */
static uar_err seal(const struct llm *w, struct uar_buf *b)
{
	struct uar_runtime *rt = rt_engine(w->base.run);
	struct uar_buf sealed = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	uar_err e = uar_seal(rt_seal(rt), rt_rand(rt), uar_buf_str(b),
			     uar_str_c(rt_run_id(w->base.run)), &sealed);

	uar_buf_fini(b);
	*b = sealed;
	return e;
}

/* A list that is sealed is no JSON: it lies beside the event. */
static bool is_inline(uar_str calls)
{
	return calls.n && calls.n <= UAR_LIMIT_TOOL_CALLS_INLINE && calls.p[0] == '[';
}

/* Whatever belongs to the answer is durable, but for a long list of calls. */
static void end_answer(struct llm *w, const struct uar_model_end *end)
{
	struct uar_model_end rejected = *end;
	uar_err e;

	if (!end->call_count && rt_answer_rejects(w, &rejected)) {
		send_end(w, UAR_CMD_MODEL_FAILED, &rejected);
	} else if (!end->call_count) {
		answered(w, end);
	} else if (is_inline(end->calls)) {
		send_end(w, UAR_CMD_MODEL_CALLS, end);
	} else {
		e = put_aside(w, end, end->calls, calls_stored);
		if (e)
			rt_llm_fail(w, e, uar_err_text(e));
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
		rt_llm_fail(w, e, uar_err_text(e));
	else
		end_answer(w, &end->end);
	rt_llm_free_end(end);
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

	if (!e && has_secrets(w, m))
		e = seal(w, &json);
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

	if (!e && has_secrets(w, m))
		e = seal(w, list);
	end->calls = uar_buf_str(list);
	end->call_count = (int64_t)m->call_count;
	end->tool_count = (int64_t)rt_toolset_tell(&tools, NULL);
	if (e || uar_run_rare(rt_state(w->base.run))->tools.rounds)
		return e;
	if (w->skills)
		end->narrowed_by = rt_skills_narrowed(w->skills);
	return rt_toolset_catalog(rt_work(w->base.run), &tools, &end->catalog);
}

static void completed(struct llm *w, const struct uar_model_result *result)
{
	struct uar_model_result said = rt_answer_without_calls(w, result), *m = &said;
	struct uar_buf list = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_model_end end = end_of(w, m);
	uar_err e = m->call_count ? describe_calls(w, m, &list, &end) : UAR_OK;

	if (!e && m->part_count)
		e = keep_parts(w, m, &end);
	else if (!e)
		end_answer(w, &end);
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
	uar_buf_fini(&list);
}

static void stage_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct llm *w = ctx;
	struct held_end *end = w->end;

	w->end = NULL;
	end->aside = NULL;
	end->end.raw_blob = sha256;
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
	else
		send_end(w, UAR_CMD_MODEL_DONE, &end->end);
	rt_llm_free_end(end);
}

/* A call that only helps: what it says is kept for the call that answers. */
static void stage_done(struct llm *w, struct uar_model_end *end)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT + UAR_LIMIT_SUMMARY_TEXT);
	struct uar_buf facts = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_str said = uar_str_trim(uar_buf_str(&w->stage));
	uar_err e = UAR_OK;

	if (w->role == UAR_ROLE_SUMMARIZE)
		e = rt_compaction_end(&w->compaction, said, &text, &facts);
	else
		uar_buf_add_str(&text, said);

	if (!said.n) {
		end->category = uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_PROVIDER));
		end->message = UAR_STR("the model said nothing");
		end->retryable = false;
		send_end(w, UAR_CMD_MODEL_FAILED, end);
	} else {
		end->compaction = uar_buf_str(&facts);
		if (!e)
			e = put_aside(w, end, uar_buf_str(&text), stage_stored);
		if (e)
			rt_llm_fail(w, e, uar_err_text(e));
	}
	uar_buf_fini(&text);
	uar_buf_fini(&facts);
}

/* The answer that was chosen becomes that of the run, all at once. */
static void chosen_ready(void *ctx, uar_err e, uar_str text)
{
	enum { PIECE = 16384 };
	struct llm *w = ctx;
	struct held_end *h = w->end;

	w->input = NULL;
	w->end = NULL;
	while (!e && text.n) {
		uar_str piece = uar_str_utf8_prefix(text, PIECE);

		uar_blocks_feed(&w->blocks, piece);
		rt_answer_feed(w, piece);
		rt_send_text(w->base.run, UAR_CMD_TEXT, piece);
		text = uar_str_from(text, piece.n);
	}
	if (e) {
		rt_llm_fail(w, e, uar_err_text(e));
	} else {
		rt_answer_flag(w);
		answered(w, &h->end);
	}
	rt_llm_free_end(h);
}

/* A ranker that names none, or fails, has not failed the run: the first answer is as good as any.
 */
static void ranked(struct llm *w, struct uar_model_end *end)
{
	const struct uar_run_route *route = &uar_run_rare(rt_state(w->base.run))->route;
	size_t n = end->ranked.failed
			   ? 0
			   : rt_ensemble_named(uar_buf_str(&w->stage), rt_ensemble_answers(route));
	uar_err e;

	end->ranked.named = n > 0;
	end->ranked.place = rt_ensemble_place(route, n ? n : 1);
	w->end = hold_end(end);
	e = w->end ? rt_text_load(w->base.run, uar_str_c(route->answers[end->ranked.place]),
				  chosen_ready, w, &w->input)
		   : UAR_ENOMEM;
	if (e)
		rt_llm_fail(w, e, uar_err_text(e));
}

void rt_llm_on_done(void *ctx, const struct uar_model_result *m)
{
	struct llm *w = ctx;
	struct uar_model_end end = end_of(w, m);

	w->call = NULL;
	if (m->failure && w->role == UAR_ROLE_RANK &&
	    !uar_run_may_repeat(rt_state(w->base.run), &end)) {
		end.ranked.failed = true;
		end.stop_reason = UAR_STR("error");
		ranked(w, &end);
	} else if (m->failure) {
		send_end(w, UAR_CMD_MODEL_FAILED, &end);
	} else if (w->role == UAR_ROLE_RANK) {
		ranked(w, &end);
	} else if (w->role != UAR_ROLE_EXECUTE) {
		stage_done(w, &end);
	} else if (m->call_count > UAR_LIMIT_MODEL_CALLS) {
		end.category = uar_str_c(uar_model_failure_name(UAR_MODEL_FAIL_LIMIT));
		end.message = UAR_STR("the model asks for more tools at once than are executed");
		send_end(w, UAR_CMD_MODEL_FAILED, &end);
	} else {
		completed(w, m);
	}
}
