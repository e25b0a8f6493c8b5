/* modelcall.c - the facts of a model call: request, deltas, end. */
#include "core/emit.h"
#include "core/limits.h"
#include "event/sizes.h"

enum { BYTES_PER_TOKEN = 4, SKILL_SELECTION = 1 };

static const struct {
	const char *phase, *title;
} preparation[] = {
	{ "context_assembly", "Context assembled" },
	{ "skill_selection", "Skills selected, prompt assembled" },
	{ "model_selection", "Model selected" },
	{ "stream_start", "Model called" },
};

/* Where the provider says nothing a token counts as four bytes, rounded up. */
static int64_t estimated_tokens(int64_t bytes)
{
	return (bytes + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;
}

/* The texts of skills are blobs that a sweep keeps as long as the run. */
static void refer_skills(struct emit *e, const struct uar_json *skills)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	struct uar_jw w = uar_jw_begin(&b);
	char ref[sizeof "blob://" + 64];

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "skill_refs");
	for (const struct uar_json *s = uar_json_at(skills, 0); s; s = s->next) {
		uar_str sha256 = uar_json_text(s, "revision");

		snprintf(ref, sizeof ref, "blob://%.*s", UAR_FMT(sha256));
		uar_jw_cstr(&w, NULL, ref);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		e->err = e->err ? e->err : UAR_ENOMEM;
	else
		uar_emit_refs(e, uar_arena_str(e->env->arena, uar_buf_str(&b)));
	uar_buf_fini(&b);
}

/* The model is not told all that was said: the log says what is left out. */
static void context_resolved(struct emit *e, const struct uar_prepared *p,
			     const struct uar_json *skills)
{
	static const char *const empty[] = { "items", "missing" };
	struct uar_jw *w = uar_emit_begin(e);

	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		uar_jw_arr(w, empty[i]);
		uar_jw_close(w);
	}
	uar_jw_raw(w, "prompt_sections", p->sections.n ? p->sections : UAR_STR("[]"));
	uar_jw_raw(w, "selected_skills", p->skills.n ? p->skills : UAR_STR("[]"));
	if (p->narrowed_by.n)
		uar_jw_raw(w, "narrowed_by", p->narrowed_by);
	uar_jw_raw(w, "omissions", p->omissions.n ? p->omissions : UAR_STR("[]"));
	uar_jw_obj(w, "budget");
	uar_jw_int(w, "max_tokens", estimated_tokens(UAR_LIMIT_HISTORY_BYTES));
	uar_jw_int(w, "used_tokens", estimated_tokens(p->prompt_bytes));
	uar_jw_close(w);
	if (uar_json_at(skills, 0))
		refer_skills(e, skills);
	uar_emit(e, UAR_EV_CONTEXT_RESOLVED, EMIT_RUN);
}

/* What knowledge brought, a list an event. */
static void context_list(struct emit *e, const char *key, uar_str list)
{
	static const char *const empty[] = { "items", "missing", "omissions", "selected_skills",
					     "prompt_sections" };
	struct uar_jw *w;

	if (!list.n)
		return;
	w = uar_emit_begin(e);
	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		uar_jw_arr(w, empty[i]);
		uar_jw_close(w);
	}
	uar_jw_obj(w, "budget");
	uar_jw_int(w, "max_tokens", 0);
	uar_jw_int(w, "used_tokens", 0);
	uar_jw_close(w);
	uar_jw_raw(w, key, list);
	uar_emit(e, UAR_EV_CONTEXT_RESOLVED, EMIT_RUN);
}

void uar_core_catalog(struct emit *e, const struct uar_model_end *m)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "inventory_id", uar_emit_id(e));
	uar_jw_str(w, "caller", e->r->what.agent_id);
	uar_jw_cstr(w, "mode", "default");
	uar_jw_raw(w, "tools", m->catalog);
	uar_jw_int(w, "count", m->tool_count);
	uar_jw_arr(w, "excluded");
	uar_jw_close(w);
	uar_jw_raw(w, "narrowed_by", m->narrowed_by.n ? m->narrowed_by : UAR_STR("[]"));
	uar_emit(e, UAR_EV_TOOL_CATALOG_RESOLVED, EMIT_RUN);
}

/* One fact for each, for those who watch the run. */
static void skills_activated(struct emit *e, const struct uar_json *skills)
{
	for (const struct uar_json *s = uar_json_at(skills, 0); s; s = s->next) {
		struct uar_jw *w = uar_emit_begin(e);

		uar_jw_cstr(w, "phase", "skill_selection");
		uar_jw_cstr(w, "status", uar_status_text(UAR_STATUS_PREPARING));
		uar_jw_cstr(w, "title", "Skill activated");
		uar_jw_obj(w, "metadata");
		uar_jw_tree(w, "skill", s);
		uar_jw_close(w);
		uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
	}
}

/* Of further rounds the model is called and nothing is chosen again. */
static void tell_preparation(struct emit *e, size_t from, const struct uar_json *skills)
{
	for (size_t i = from; i < ARRAY_LEN(preparation); i++) {
		uar_emit_status(e, preparation[i].phase, UAR_STATUS_PREPARING,
				preparation[i].title);
		if (i == SKILL_SELECTION)
			skills_activated(e, skills);
	}
}

void uar_core_prepared(struct emit *e, const struct uar_prepared *p)
{
	bool first = !e->r->call.resolved;
	bool program = uar_entry_is_backend(e->r->what.entry);
	size_t from = uar_run_rare(e->r)->tools.rounds ? ARRAY_LEN(preparation) - 1 : 0;
	const struct uar_json *skills = NULL;

	if (p->role == UAR_ROLE_SUMMARIZE)
		uar_core_compaction_started(e, p);
	if (p->skills.n && !e->err)
		e->err = uar_json_parse(p->skills, NULL, e->env->arena, &skills, e->error);
	if (p->omissions.n || p->sections.n || p->skills.n)
		context_resolved(e, p, skills);
	if (!from && !e->r->call.rejected) {
		context_list(e, "recalled", p->recalled);
		context_list(e, "citations", p->citations);
	}
	if (program) /* it does the rest by itself */
		uar_emit_status(e, "stream_start", UAR_STATUS_PREPARING, "Agent called");
	else
		tell_preparation(e, from, first ? skills : NULL);
	uar_core_model_requested(e, p);
}

void uar_core_model_requested(struct emit *e, const struct uar_prepared *p)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "provider", uar_run_provider(e->r));
	uar_jw_str(w, "model", uar_run_model(e->r));
	uar_jw_bool(w, "stream", true);
	uar_jw_int(w, "message_count", p->message_count);
	uar_jw_int(w, "tool_count", p->tool_count);
	uar_jw_str(w, "prompt_sha256", p->prompt_sha256);
	uar_jw_int(w, "input_tokens_estimate", estimated_tokens(p->prompt_bytes));
	uar_jw_cstr(w, "role", uar_call_role_name(p->role));
	uar_jw_cstr(w, "status", "started");
	uar_emit_name(e, UAR_ID_MODEL_REQUEST, uar_emit_id(e));
	uar_emit(e, UAR_EV_MODEL_REQUESTED, EMIT_RUN);
	if (!uar_entry_is_backend(e->r->what.entry))
		uar_core_cost_estimated(e, p);
}

static void name_request(struct emit *e)
{
	uar_emit_name(e, UAR_ID_MODEL_REQUEST, uar_emit_own(e, e->r->call.request_id));
}

/* As much of the text as surely fits into one event, escapes included. A token does
 * whatever is in it. */
static uar_str piece_of(uar_str text)
{
	enum { PIECE_BYTES = UAR_LIMIT_EVENT_BYTES / 2, LONGEST_ESCAPE = 6 };

	if (text.n <= PIECE_BYTES / LONGEST_ESCAPE)
		return text;
	return uar_jw_fitting(uar_str_utf8_prefix(text, UAR_LIMIT_DELTA_BYTES), PIECE_BYTES);
}

/* Text of one message in pieces of bounded size, each whole in UTF-8. */
void uar_core_delta(struct emit *e, enum uar_event_class cls, uar_str text)
{
	uar_str message_id = uar_str_c(e->r->call.message_id);

	if (e->r->what.entry == UAR_ENTRY_LLM && e->r->status != UAR_STATUS_STREAMING)
		uar_emit_status(e, "llm_streaming", UAR_STATUS_STREAMING, "Model is answering");
	if (!message_id.n)
		message_id = uar_emit_id(e);
	while (text.n && !e->err) {
		uar_str piece = piece_of(text);
		struct uar_jw *w = uar_emit_begin(e);

		uar_jw_str(w, "message_id", message_id);
		uar_jw_int(w, "index", e->r->call.index);
		if (cls == UAR_EV_MODEL_DELTA)
			uar_jw_cstr(w, "kind", "text");
		uar_jw_str(w, "text", piece);
		name_request(e);
		uar_emit(e, cls, EMIT_RUN);
		text = uar_str_from(text, piece.n);
	}
}

/* What a call used: as the provider reports it, else an estimate that says so. */
static struct uar_usage usage_of(const struct uar_run *r, const struct uar_model_end *m)
{
	const struct uar_run_call *call = &r->call;
	struct uar_usage u = { m->input_tokens,
			       m->cached_tokens,
			       m->output_tokens,
			       m->total_tokens,
			       m->input_tokens >= 0 && m->output_tokens >= 0,
			       uar_run_provider(r),
			       uar_run_model(r) };

	if (!u.reported) {
		u.input = call->prompt_tokens;
		u.output = estimated_tokens(call->chars + call->thought);
	}
	if (!u.reported || u.total < 0)
		u.total = u.input + u.output;
	if (!u.reported || u.cached < 0)
		u.cached = 0;
	return u;
}

void uar_emit_call_usage(struct uar_jw *w, const struct uar_usage *u)
{
	uar_jw_obj(w, "usage");
	uar_jw_int(w, "input_tokens", u->input);
	uar_jw_int(w, "output_tokens", u->output);
	uar_jw_int(w, "total_tokens", u->total);
	if (u->cached)
		uar_jw_int(w, "cached_tokens", u->cached);
	if (!u->reported)
		uar_jw_bool(w, "estimated", true);
	uar_jw_close(w);
}

static void put_usage(struct uar_jw *w, const struct uar_usage *u)
{
	uar_emit_call_usage(w, u);
	if (!u->reported)
		uar_jw_bool(w, "usage_reported", false);
}

/* A provider that refuses a request before it said a word charges nothing. */
static bool used_nothing(const struct uar_run_call *call, const struct uar_model_end *m)
{
	return m->http_status >= 300 && !call->chars && !call->thought && m->input_tokens < 0;
}

static int64_t since_ms(const struct emit *e, int64_t from)
{
	return from && e->env->now_us > from ? (e->env->now_us - from) / 1000 : 0;
}

/* What the model asks for; whoever goes on with the run reads it here. */
static void put_calls(struct uar_jw *w, const struct uar_model_end *m)
{
	if (!m->call_count)
		return;
	uar_jw_int(w, "tool_call_count", m->call_count);
	if (!m->calls_blob.n)
		uar_jw_raw(w, "tool_calls", m->calls);
}

static void put_refs(struct emit *e, const struct uar_model_end *m)
{
	if (m->raw_blob.n && m->calls_blob.n)
		uar_emit_refs(e, uar_arena_printf(e->env->arena,
						  "{\"raw_ref\":\"blob://%.*s\","
						  "\"tool_calls_ref\":\"blob://%.*s\"}",
						  UAR_FMT(m->raw_blob), UAR_FMT(m->calls_blob)));
	else if (m->raw_blob.n)
		uar_emit_refer(e, "raw_ref", m->raw_blob);
	else if (m->calls_blob.n)
		uar_emit_refer(e, "tool_calls_ref", m->calls_blob);
}

/* What the model reasoned is in the deltas before; readers who want no stream have it here. */
static void reasoning_summary(struct emit *e, const struct uar_model_end *m)
{
	uar_str text = uar_jw_fitting(m->reasoning, UAR_LIMIT_EVENT_BYTES / 2);
	struct uar_jw *w;

	if (!text.n || !e->r->call.message_id[0])
		return;
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "message_id", e->r->call.message_id);
	uar_jw_str(w, "text", text);
	uar_jw_int(w, "chars", e->r->call.thought);
	uar_jw_bool(w, "redacted", false);
	name_request(e);
	uar_emit(e, UAR_EV_REASONING_SUMMARY, EMIT_RUN);
}

void uar_core_model_done(struct emit *e, const struct uar_model_end *m)
{
	const struct uar_run_call *call = &e->r->call;
	struct uar_usage used = usage_of(e->r, m);
	struct uar_jw *w;

	reasoning_summary(e, m);
	w = uar_emit_begin(e);

	uar_jw_str(w, "provider", uar_run_provider(e->r));
	uar_jw_str(w, "model", uar_run_model(e->r));
	if (m->actual_model.n)
		uar_jw_str(w, "effective_model", m->actual_model);
	uar_jw_str(w, "stop_reason", m->stop_reason.n ? m->stop_reason : UAR_STR("stop"));
	put_usage(w, &used);
	uar_jw_int(w, "output_chars", call->chars);
	if (call->first_us)
		uar_jw_int(w, "ttft_ms",
			   call->first_us > call->requested_us
				   ? (call->first_us - call->requested_us) / 1000
				   : 0);
	uar_jw_int(w, "latency_ms", since_ms(e, call->requested_us));
	if (m->has_cost)
		uar_jw_double(w, "cost_usd", m->cost_usd);
	put_calls(w, m);
	put_refs(e, m);
	uar_jw_cstr(w, "status", "completed");
	name_request(e);
	uar_emit(e, UAR_EV_MODEL_COMPLETED, EMIT_RUN);
	uar_core_cost_recorded(e, &used);
}

void uar_core_model_failed(struct emit *e, const struct uar_model_end *m)
{
	struct uar_failure f = { m->code.n ? m->code : UAR_STR("PROVIDER_ERROR"), m->message,
				 m->category, m->retryable };
	bool nothing = used_nothing(&e->r->call, m);
	struct uar_usage used = usage_of(e->r, m);
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "provider", uar_run_provider(e->r));
	uar_jw_str(w, "model", uar_run_model(e->r));
	uar_jw_str(w, "failure_category", m->category);
	uar_jw_str(w, "message", m->message);
	uar_emit_error(w, "error", &f, UAR_STR_NONE);
	uar_jw_bool(w, "retryable", m->retryable);
	if (m->http_status)
		uar_jw_int(w, "http_status", m->http_status);
	if (!nothing)
		put_usage(w, &used);
	uar_jw_cstr(w, "status", "failed");
	name_request(e);
	uar_emit(e, UAR_EV_MODEL_FAILED, EMIT_RUN);
	if (!nothing)
		uar_core_cost_recorded(e, &used);
}
