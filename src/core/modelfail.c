/* modelfail.c - what follows a failed model call: the same call again after a wait, another
 * model, or the end of the run.
 *
 * A call that may succeed later is repeated with the same model a few times; then, or when
 * repeating cannot help, the next model of the run's route takes over. Every repetition is a new
 * request in the same attempt. */
#include "core/emit.h"
#include "core/limits.h"

static const int64_t longest_wait_us = (int64_t)UAR_LIMIT_MODEL_WAIT_SECONDS * 1000000;

static bool is_unreached(const struct uar_model_end *m)
{
	return uar_str_is(m->category, "network") || uar_str_is(m->category, "limit");
}

bool uar_run_may_repeat(const struct uar_run *r, const struct uar_model_end *m)
{
	return m->retryable && r->call.tries < m->retries && m->retry_after_us <= longest_wait_us;
}

/* Of candidates: the others are ranked without the one that failed. */
static bool has_answers(const struct uar_run_route *route)
{
	for (size_t i = 0; i < route->count; i++)
		if (route->answers[i][0])
			return true;
	return false;
}

static bool has_next(const struct uar_run *r)
{
	const struct uar_run_route *route = &uar_run_rare(r)->route;

	if (r->call.role == UAR_ROLE_CANDIDATE)
		return route->at + 1 < route->count || has_answers(route);
	return r->call.role == UAR_ROLE_EXECUTE && route->at + 1 < route->count;
}

enum uar_run_input uar_core_failed_input(const struct uar_run *r, const struct uar_model_end *m)
{
	if (r->what.entry != UAR_ENTRY_LLM || uar_str_is(m->category, "cancelled") ||
	    !uar_run_move(r->status, UAR_IN_NEXT_MODEL).legal)
		return UAR_IN_FAILED;
	if (uar_run_may_repeat(r, m))
		return is_unreached(m) ? UAR_IN_UNREACHED : UAR_IN_REPEAT;
	if (r->call.role == UAR_ROLE_SUMMARIZE)
		return UAR_IN_STAGED; /* the run goes on without the summary */
	return has_next(r) ? UAR_IN_NEXT_MODEL : UAR_IN_FAILED;
}

/* Between a half and the whole of the wait, by the id of the failed call: ids are random, and the
 * same decision comes out whenever it is made again. */
static int64_t with_jitter(int64_t wait_us, const char *request_id)
{
	uint32_t hash = 2166136261u;

	for (const char *c = request_id; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	return wait_us / 2 + (wait_us / 2) * (int64_t)(hash % 1024) / 1023;
}

/* What a provider asks for is kept to, and is the least. */
static int64_t wait_of(const struct uar_run *r, const struct uar_model_end *m)
{
	int64_t wait = m->backoff_us;

	for (int i = 0; i < r->call.tries && wait < longest_wait_us; i++)
		wait *= 2;
	wait = with_jitter(wait < longest_wait_us ? wait : longest_wait_us, r->call.request_id);
	return wait > m->retry_after_us ? wait : m->retry_after_us;
}

/* --- facts ---------------------------------------------------------------------------------- */

void uar_core_rate_limit(struct emit *e, const struct uar_model_end *m)
{
	struct uar_jw *w;

	if (!uar_str_is(m->category, "limit") || !m->http_status)
		return;
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "limit_name", m->retryable ? "requests" : "account");
	uar_jw_cstr(w, "scope", "provider");
	uar_jw_str(w, "provider", uar_run_provider(e->r));
	if (m->retry_after_us) {
		uar_jw_int(w, "retry_after_ms", m->retry_after_us / 1000);
		uar_jw_time(w, "resets_at", e->env->now_us + m->retry_after_us);
	}
	uar_jw_int(w, "http_status", m->http_status);
	uar_emit_name(e, UAR_ID_MODEL_REQUEST, uar_emit_own(e, e->r->call.request_id));
	uar_emit(e, UAR_EV_RATE_LIMIT_HIT, EMIT_RUN);
}

void uar_core_wait_for(struct emit *e, uar_str id, const char *description, int64_t due_us)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "waiting_resource");
	uar_jw_obj(w, "waiting_on");
	uar_jw_cstr(w, "kind", "resource");
	uar_jw_str(w, "id", id);
	uar_jw_cstr(w, "description", description);
	uar_jw_close(w);
	uar_jw_time(w, "since", e->env->now_us);
	uar_jw_time(w, "timeout_at", due_us);
	uar_emit(e, UAR_EV_TASK_WAITING, EMIT_RUN);
}

static void wait_for_provider(struct emit *e, const struct uar_model_end *m, int64_t due_us)
{
	uar_core_wait_for(e, uar_run_provider(e->r),
			  uar_str_is(m->category, "limit")
				  ? "the provider has no capacity for the model call"
				  : "the provider cannot be reached",
			  due_us);
}

/* Readers are told how much of the text they hold no longer counts. */
void uar_core_put_superseded(struct uar_jw *w, uar_str message_id, int64_t bytes)
{
	uar_jw_str(w, "superseded_message_id", message_id);
	uar_jw_int(w, "superseded_bytes", bytes);
}

struct said { /* by the call that failed */
	uar_str message_id;
	int64_t bytes;
};

static void put_said(struct uar_jw *w, const struct said *s)
{
	if (s->message_id.n)
		uar_core_put_superseded(w, s->message_id, s->bytes);
}

static void repeat(struct emit *e, const struct uar_model_end *m, const struct said *s)
{
	int64_t wait_ms = (wait_of(e->r, m) + 999) / 1000;
	int64_t due_us = e->env->now_us + wait_ms * 1000;
	bool unreached = e->move.to == UAR_STATUS_WAITING_RESOURCE;
	int tries = e->r->call.tries + 1;
	struct uar_jw *w;

	if (unreached)
		wait_for_provider(e, m, due_us);
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "phase", "stream_start");
	uar_jw_cstr(w, "status", uar_status_text(e->move.to));
	uar_jw_cstr(w, "title",
		    unreached ? "Waiting for the provider"
			      : "Calling the model again after a failure");
	uar_jw_obj(w, "metadata");
	uar_jw_int(w, "retry", tries);
	uar_jw_int(w, "retries", m->retries);
	uar_jw_int(w, "wait_ms", wait_ms);
	uar_jw_time(w, "due_at", due_us);
	put_said(w, s);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

static void put_model(struct uar_jw *w, const char *key, const struct uar_route_model *m)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "provider", m->provider);
	uar_jw_cstr(w, "model", m->model);
	uar_jw_close(w);
}

static void fall_back(struct emit *e, const struct uar_model_end *m, const struct said *s)
{
	const struct uar_run_route *route = &uar_run_rare(e->r)->route;
	size_t to = route->at + 1;
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "decision_id", route->decision_id);
	put_model(w, "from", &route->chain[route->at]);
	put_model(w, "to", to < route->count ? &route->chain[to] : &route->ranker);
	uar_jw_str(w, "reason", m->category);
	uar_jw_cstr(w, "failed_model_request_id", e->r->call.request_id);
	uar_jw_int(w, "chain_index", (int64_t)to);
	uar_jw_int(w, "remaining", to < route->count ? (int64_t)(route->count - to - 1) : 0);
	uar_emit_name(e, UAR_ID_MODEL_REQUEST, uar_emit_own(e, e->r->call.request_id));
	uar_emit(e, UAR_EV_ROUTING_FALLBACK_APPLIED, EMIT_RUN);
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "phase", "model_selection");
	uar_jw_cstr(w, "status", "retrying");
	uar_jw_cstr(w, "title", "Calling another model after a failure");
	uar_jw_obj(w, "metadata");
	uar_jw_int(w, "chain_index", (int64_t)to);
	put_said(w, s);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

void uar_core_after_failure(struct emit *e, const struct uar_model_end *m)
{
	struct said s = { .bytes = e->r->call.chars };

	if (e->r->call.message_id[0])
		s.message_id = uar_emit_own(e, e->r->call.message_id);
	if (e->move.to == UAR_STATUS_WAITING_RESOURCE || uar_run_may_repeat(e->r, m))
		repeat(e, m, &s);
	else
		fall_back(e, m, &s);
}

/* The wait is over; the worker begins anew and finds in the log what is to be done. */
void uar_core_due(struct emit *e)
{
	static const char *const words[][2] = {
		{ "the wait for the provider is over", "Calling the model again" },
		{ "the wait for the peer is over", "Asking the peer again" },
		{ "the wait of the workflow is over", "Going on with the workflow" },
	};
	int who = e->r->what.entry == UAR_ENTRY_PEER	   ? 1
		  : e->r->what.entry == UAR_ENTRY_WORKFLOW ? 2
							   : 0;
	struct uar_jw *w;

	if (e->r->status == UAR_STATUS_WAITING_RESOURCE) {
		w = uar_emit_begin(e);
		uar_jw_cstr(w, "status", "running");
		uar_jw_cstr(w, "resumed_from", "waiting_resource");
		uar_jw_cstr(w, "reason", words[who][0]);
		uar_emit_who(w, "requested_by", "runtime", UAR_STR_NONE);
		uar_emit(e, UAR_EV_TASK_RESUMED, EMIT_RUN);
	}
	uar_emit_status(e, "stream_start", UAR_STATUS_RETRYING, words[who][1]);
}
