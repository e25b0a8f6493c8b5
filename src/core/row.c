/* row.c - the read model of a run: what lists and records show of it. */
#include "core/emit.h"

#include "base/sha256.h"
#include "core/sizes.h"

static void put_error(struct uar_jw *w, const struct uar_run_end *end)
{
	if (!end->code[0]) {
		uar_jw_null(w, "error");
		return;
	}
	uar_jw_obj(w, "error");
	uar_jw_cstr(w, "code", end->code);
	uar_jw_cstr(w, "message", end->message);
	uar_jw_obj(w, "details");
	uar_jw_bool(w, "retriable", end->retryable);
	if (end->details.n)
		uar_jw_raw(w, "plugin", end->details);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_cancel(struct uar_jw *w, const struct uar_run_cancel *c)
{
	uar_jw_bool(w, "cancel_requested", c->requested);
	uar_jw_str_or_null(w, "cancel_reason", uar_str_c(c->reason));
	if (c->requested)
		uar_jw_seconds(w, "cancel_requested_at", c->at_us);
	else
		uar_jw_null(w, "cancel_requested_at");
}

static void put_number(struct uar_jw *w, const char *key, double v)
{
	if (v >= 0)
		uar_jw_double(w, key, v);
	else
		uar_jw_null(w, key);
}

static void put_count(struct uar_jw *w, const char *key, int64_t v)
{
	if (v >= 0)
		uar_jw_int(w, key, v);
	else
		uar_jw_null(w, key);
}

double uar_run_progress(const struct uar_run *r)
{
	double told = uar_run_rare(r)->progress.value;

	return r->status == UAR_STATUS_COMPLETED && told >= 0 ? 1 : told;
}

uar_str uar_run_stage(const struct uar_run *r)
{
	const char *named = uar_run_rare(r)->progress.stage;

	return uar_str_c(named[0] || r->what.entry == UAR_ENTRY_PLUGIN ? named : r->phase);
}

/* What was reported last, also of a run that is over. */
static void put_progress(struct uar_jw *w, const struct uar_run *r)
{
	const struct uar_run_progress *p = &uar_run_rare(r)->progress;

	put_number(w, "progress", uar_run_progress(r));
	uar_jw_str_or_null(w, "stage", uar_run_stage(r));
	uar_jw_str_or_null(w, "message", uar_str_c(p->message));
	put_count(w, "step", p->step);
	put_count(w, "step_total", p->step_total);
	put_number(w, "eta_seconds", p->eta_seconds);
	if (p->metrics[0])
		uar_jw_raw(w, "metrics", uar_str_c(p->metrics));
	else
		uar_jw_null(w, "metrics");
}

void uar_action_write(struct uar_jw *w, const struct uar_run *r, const struct uar_open_action *a)
{
	char id[UAR_ACTION_TEXT + 1];

	uar_action_id(r->id.run_id, a->number, id);
	uar_jw_cstr(w, "action_id", id);
	uar_jw_cstr(w, "action_type", uar_action_info[a->type].text);
	uar_jw_cstr(w, "kind", a->kind);
	uar_jw_str_or_null(w, "tool_name", uar_str_c(a->tool_name));
	uar_jw_cstr(w, "prompt", a->prompt);
	uar_jw_seconds(w, "requested_at", a->asked_us);
	if (a->until_us)
		uar_jw_seconds(w, "expires_at", a->until_us);
}

/* Of agents that are programs: what waits for a person, and where their own
 * conversation goes on. */
static void put_agent(struct uar_jw *w, const struct uar_run *r)
{
	if (uar_run_rare(r)->actions.count) {
		uar_jw_arr(w, "actions");
		for (size_t i = 0; i < uar_run_rare(r)->actions.open_count; i++) {
			uar_jw_obj(w, NULL);
			uar_action_write(w, r, &uar_run_rare(r)->actions.open[i]);
			uar_jw_close(w);
		}
		uar_jw_close(w);
		uar_jw_int(w, "action_count", uar_run_rare(r)->actions.count);
	}
	if (uar_run_rare(r)->agent_session[0]) {
		uar_jw_obj(w, "backend_session");
		uar_jw_str(w, "kind", r->what.provider);
		uar_jw_cstr(w, "id", uar_run_rare(r)->agent_session);
		uar_jw_close(w);
	}
}

/* A record is bounded: of a large set it has the beginning, the count and where all are. */
static void put_results(struct uar_jw *w, const struct uar_run *r)
{
	const struct uar_result_refs *refs = &r->result_refs;
	char url[UAR_LIMIT_ID_BYTES + UAR_SHA256_TEXT + 32];

	uar_jw_raw(w, "result_refs", refs->ids.n ? refs->ids : UAR_STR("[]"));
	if (!refs->blob.n)
		return;
	snprintf(url, sizeof url, "/api/runs/%.*s/blobs/%.*s", UAR_FMT(r->id.run_id),
		 UAR_FMT(refs->blob));
	uar_jw_int(w, "result_ref_count", refs->count);
	uar_jw_cstr(w, "result_refs_url", url);
}

static void put_detail(struct uar_jw *w, const struct uar_run *r)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "entry", uar_entry_name(r->what.entry));
	uar_jw_str_or_null(w, "task_id", r->id.task_given ? r->id.task_id : UAR_STR_NONE);
	uar_jw_str_or_null(w, "trace_id", r->id.trace_id);
	uar_jw_str_or_null(w, "idempotency_key", r->what.idempotency_key);
	put_progress(w, r);
	uar_jw_cstr(w, "engine_status", uar_status_text(r->status));
	put_cancel(w, &uar_run_rare(r)->cancel);
	put_error(w, &uar_run_rare(r)->end);
	put_results(w, r);
	if (r->call.calls) {
		uar_jw_obj(w, "usage");
		uar_jw_int(w, "input_tokens", r->call.input_tokens);
		uar_jw_int(w, "output_tokens", r->call.output_tokens);
		if (r->call.estimated)
			uar_jw_bool(w, "estimated", true);
		uar_jw_close(w);
	}
	if (r->call.calls && r->status == UAR_STATUS_COMPLETED)
		uar_jw_cstr(w, "finish_reason", uar_run_finish_reason(r));
	put_agent(w, r);
	if (r->what.entry == UAR_ENTRY_PEER)
		uar_core_write_peer(w, r);
	uar_jw_close(w);
}

static uar_err detail_text(const struct uar_run *r, struct uar_buf *buf, struct uar_arena *arena,
			   uar_str *out)
{
	struct uar_jw w;
	uar_err e;

	uar_buf_clear(buf);
	w = uar_jw_begin(buf);
	put_detail(&w, r);
	e = uar_jw_end(&w);
	if (e)
		return e;
	*out = uar_arena_str(arena, uar_buf_str(buf));
	return out->p ? UAR_OK : UAR_ENOMEM;
}

/* The first line of what the user said, cut. Arguments of a plugin are no title. */
static uar_str title_of(const struct uar_run *r)
{
	uar_str line =
		r->what.entry == UAR_ENTRY_PLUGIN ? UAR_STR_NONE : uar_run_message_preview(r);
	const char *end = line.n ? memchr(line.p, '\n', line.n) : NULL;

	if (end)
		line.n = (size_t)(end - line.p);
	return uar_str_utf8_prefix(line, UAR_LIMIT_TITLE_BYTES);
}

bool uar_run_may_leave(const struct uar_run *r)
{
	return (r->what.entry == UAR_ENTRY_LLM || r->what.entry == UAR_ENTRY_PEER ||
		r->what.entry == UAR_ENTRY_WORKFLOW) &&
	       r->what.restart == UAR_RESTART_RETRY && !uar_run_rare(r)->processes.open_count;
}

bool uar_run_parks(const struct uar_run *r)
{
	return uar_run_may_leave(r) && !r->what.task_made;
}

static const char *waits_for(const struct uar_run *r)
{
	const struct uar_run_actions *a;
	bool input;

	if (!uar_status_waits(r->status))
		return "";
	a = &uar_run_rare(r)->actions;
	input = r->status == UAR_STATUS_WAITING_INPUT &&
		!(a->open_count && uar_action_needs_right(a->open[0].type));
	if (!uar_run_parks(r))
		return input ? UAR_WAITS_HELD_INPUT : UAR_WAITS_HELD_PERMISSION;
	return input ? UAR_WAITS_INPUT : UAR_WAITS_PERMISSION;
}

uar_err uar_core_row(const struct uar_session *s, const struct uar_run *r, struct uar_buf *buf,
		     struct uar_arena *arena, struct uar_run_row *out)
{
	uar_str detail;
	uar_err e = detail_text(r, buf, arena, &detail);

	if (e)
		return e;
	*out = (struct uar_run_row){
		.owner = s->owner,
		.run_id = r->id.run_id,
		.session_id = s->session_id,
		.thread_id = r->id.thread_id,
		.turn_id = r->id.turn_id,
		.task_id = r->id.task_id,
		.plugin_id = r->what.plugin_id,
		.entry_id = r->what.entry_id,
		.agent_id = r->what.agent_id,
		.root_run_id = r->id.root_run_id,
		.parent_run_id = r->id.parent_run_id,
		.status = uar_str_c(uar_status_record(r->status)),
		.terminal = uar_status_terminal(r->status),
		.attempt = r->what.attempt,
		.created_us = r->at.created_us,
		.updated_us = r->at.updated_us,
		.started_us = r->at.started_us,
		.finished_us = r->at.finished_us,
		.listed = { .title = title_of(r),
			    .error_code = uar_str_c(uar_run_rare(r)->end.code),
			    .waits = uar_str_c(waits_for(r)),
			    .cost_micros = (r->call.nanos + 500) / 1000,
			    .input_tokens = r->call.input_tokens,
			    .output_tokens = r->call.output_tokens },
		.detail = detail,
		.last_run_sequence = r->run_sequence,
	};
	return UAR_OK;
}
