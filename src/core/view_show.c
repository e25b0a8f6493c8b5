/* view_show.c - writes the session and its threads as clients are shown them. */
#include "core/view_int.h"

/* --- the shell ------------------------------------------------------------------------------- */

static void write_counts(struct uar_jw *w, const struct uar_sview_shell *shell)
{
	uar_jw_obj(w, "counts");
	uar_jw_int(w, "threads", shell->threads);
	uar_jw_int(w, "turns", shell->turns);
	uar_jw_int(w, "runs", shell->runs);
	uar_jw_int(w, "tasks", shell->tasks);
	uar_jw_int(w, "artifacts", shell->artifacts);
	uar_jw_int(w, "incidents", shell->incidents);
	uar_jw_close(w);
}

void uar_sview_write_session(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview_shell *shell;

	if (!s->view->lists[UAR_SVIEW_SHELL].count) {
		uar_jw_null(w, key);
		return;
	}
	shell = view_at(s->view, UAR_SVIEW_SHELL, 0);
	uar_jw_obj(w, key);
	uar_jw_str(w, "session_id", shell->item.key);
	uar_jw_str_or_null(w, "title", shell->title);
	uar_jw_str(w, "status", shell->status.n ? shell->status : UAR_STR("active"));
	uar_jw_str_or_null(w, "source", shell->source);
	uar_jw_str_or_null(w, "agent_id", shell->agent_id);
	view_put_json(w, "metadata", shell->metadata, "{}");
	uar_jw_time_or_null(w, "created_at", shell->created_at);
	uar_jw_time_or_null(w, "updated_at", shell->updated_at);
	write_counts(w, shell);
	uar_jw_close(w);
}

/* --- turns ----------------------------------------------------------------------------------- */

/* Usage that no event has named is not known; of a turn that never began there is none. */
static void write_usage(struct uar_jw *w, const struct uar_sview_turn *t)
{
	if (t->usage.n) {
		uar_jw_cstr(w, "usage_state", "reported");
		uar_jw_raw(w, "usage", t->usage);
		return;
	}
	uar_jw_cstr(w, "usage_state", t->started_at ? "unknown" : "not_applicable");
	uar_jw_null(w, "usage");
}

static void write_turn(struct uar_jw *w, const char *key, const struct uar_sview_turn *t)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "turn_id", t->item.key);
	uar_jw_str_or_null(w, "run_id", t->run_id);
	uar_jw_str_or_null(w, "task_id", t->task_id);
	uar_jw_str_or_null(w, "agent_id", t->agent_id);
	uar_jw_str(w, "status", t->status.n ? t->status : UAR_STR("unknown"));
	uar_jw_str_or_null(w, "source", t->source);
	uar_jw_str(w, "input_preview", t->input);
	uar_jw_str(w, "output_preview", t->output);
	uar_jw_str_or_null(w, "finish_reason", t->finish_reason);
	view_put_json(w, "error", t->error, "null");
	write_usage(w, t);
	uar_jw_bool(w, "removed", t->removed);
	uar_jw_time_or_null(w, "submitted_at", t->submitted_at);
	uar_jw_time_or_null(w, "started_at", t->started_at);
	uar_jw_time_or_null(w, "ended_at", t->ended_at);
	uar_jw_close(w);
}

static void write_turn_or_null(struct uar_jw *w, const char *key, const struct uar_sview *v,
			       uar_str turn_id)
{
	const struct uar_sview_turn *t = turn_id.n ? view_find(v, UAR_SVIEW_TURN, turn_id) : NULL;

	if (t)
		write_turn(w, key, t);
	else
		uar_jw_null(w, key);
}

/* --- the queue ------------------------------------------------------------------------------- */

/* The turn that waits behind `after`: by rank, then by age; NULL: no further one. */
static const struct uar_sview_turn *next_waiting(const struct uar_sview *v, uar_str thread_id,
						 const struct uar_sview_turn *after)
{
	const struct uar_sview_turn *best = NULL;

	for (size_t i = 0; i < v->lists[UAR_SVIEW_TURN].count; i++) {
		const struct uar_sview_turn *t = view_at(v, UAR_SVIEW_TURN, i);

		if (!t->item.open || t->started_at || !uar_str_eq(t->thread_id, thread_id) ||
		    (after && (t->rank < after->rank || (t->rank == after->rank && t <= after))))
			continue;
		if (!best || t->rank < best->rank)
			best = t;
	}
	return best;
}

/* Those that are kept, the next one first. Returns how many they are. */
static int64_t write_queued_turns(struct uar_jw *w, const struct uar_sview *v, uar_str thread_id)
{
	const struct uar_sview_turn *turn = NULL;
	int64_t position = 0;

	uar_jw_arr(w, "queued_turns");
	while ((turn = next_waiting(v, thread_id, turn))) {
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "queued_turn_id", turn->item.key);
		uar_jw_int(w, "position", ++position);
		uar_jw_str_or_null(w, "source", turn->source);
		uar_jw_str_or_null(w, "run_id", turn->run_id);
		uar_jw_str(w, "input_preview", turn->input);
		uar_jw_time_or_null(w, "submitted_at", turn->submitted_at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	return position;
}

void uar_sview_write_queue(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			   uar_str thread_id)
{
	const struct uar_sview_thread *t = uar_sview_thread(s->view, thread_id);
	int64_t listed, omitted;

	uar_jw_obj(w, key);
	uar_jw_str(w, "thread_id", thread_id);
	listed = write_queued_turns(w, s->view, thread_id);
	omitted = t && t->queue_length > listed ? t->queue_length - listed : 0;
	uar_jw_int(w, "length", listed + omitted);
	uar_jw_int(w, "omitted", omitted);
	uar_jw_cstr(w, "resume_state", t && t->queue_paused ? "paused" : "running");
	uar_jw_str_or_null(w, "pause_reason", t ? t->pause_reason : UAR_STR_NONE);
	view_put_json(w, "policy", t ? t->queue_policy : UAR_STR_NONE, "{\"mode\":\"enqueue\"}");
	uar_jw_close(w);
}

/* --- questions ------------------------------------------------------------------------------- */

static void write_action(struct uar_jw *w, const struct uar_sview_action *a)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "action_id", a->item.key);
	uar_jw_str_or_null(w, "thread_id", a->thread_id);
	uar_jw_str_or_null(w, "turn_id", a->turn_id);
	uar_jw_str_or_null(w, "run_id", a->run_id);
	uar_jw_str_or_null(w, "tool_call_id", a->tool_call_id);
	uar_jw_str_or_null(w, "action_type", a->action_type);
	uar_jw_str_or_null(w, "tool_name", a->tool_name);
	uar_jw_str(w, "prompt", a->prompt);
	view_put_json(w, "decisions", a->decisions, "[]");
	uar_jw_cstr(w, "status", a->item.open ? "pending" : "resolved");
	uar_jw_str_or_null(w, "result", a->result);
	uar_jw_time_or_null(w, "requested_at", a->asked_at);
	uar_jw_str_or_null(w, "timeout_at", a->timeout_at);
	uar_jw_time_or_null(w, "resolved_at", a->resolved_at);
	uar_jw_close(w);
}

static void write_actions(struct uar_jw *w, const char *key, const struct uar_sview *v,
			  uar_str thread_id, bool pending_only)
{
	uar_jw_arr(w, key);
	for (size_t i = 0; i < v->lists[UAR_SVIEW_ACTION].count; i++) {
		const struct uar_sview_action *a = view_at(v, UAR_SVIEW_ACTION, i);

		if ((a->item.open || !pending_only) &&
		    (!thread_id.n || uar_str_eq(a->thread_id, thread_id)))
			write_action(w, a);
	}
	uar_jw_close(w);
}

void uar_sview_write_pending(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			     uar_str thread_id)
{
	write_actions(w, key, s->view, thread_id, true);
}

/* --- what a thread did ----------------------------------------------------------------------- */

static void write_calls(struct uar_jw *w, const struct uar_sview *v, uar_str thread_id)
{
	uar_jw_arr(w, "tool_calls");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_CALL].count; i++) {
		const struct uar_sview_call *c = view_at(v, UAR_SVIEW_CALL, i);

		if (!uar_str_eq(c->thread_id, thread_id))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "tool_call_id", c->item.key);
		uar_jw_str_or_null(w, "step_id", c->step_id);
		uar_jw_str_or_null(w, "turn_id", c->turn_id);
		uar_jw_str_or_null(w, "run_id", c->run_id);
		uar_jw_str_or_null(w, "tool_name", c->tool_name);
		uar_jw_str(w, "status", c->status.n ? c->status : UAR_STR("unknown"));
		uar_jw_str_or_null(w, "failure_category", c->failure_category);
		uar_jw_str_or_null(w, "output_ref", c->output_ref);
		uar_jw_time_or_null(w, "started_at", c->started_at);
		uar_jw_time_or_null(w, "ended_at", c->ended_at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void write_incidents(struct uar_jw *w, const struct uar_sview *v, uar_str thread_id)
{
	uar_jw_arr(w, "incidents");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_INCIDENT].count; i++) {
		const struct uar_sview_incident *n = view_at(v, UAR_SVIEW_INCIDENT, i);

		if (!uar_str_eq(n->thread_id, thread_id))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_int(w, "sequence", n->item.sequence);
		uar_jw_str(w, "event", n->event);
		uar_jw_str_or_null(w, "turn_id", n->turn_id);
		uar_jw_str_or_null(w, "run_id", n->run_id);
		uar_jw_str_or_null(w, "code", n->code);
		uar_jw_str(w, "message", n->message);
		uar_jw_time_or_null(w, "at", n->at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void write_processes(struct uar_jw *w, const struct uar_sview *v, uar_str thread_id)
{
	uar_jw_arr(w, "processes");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_PROCESS].count; i++) {
		const struct uar_sview_process *p = view_at(v, UAR_SVIEW_PROCESS, i);

		if (!uar_str_eq(p->thread_id, thread_id))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "process_id", p->item.key);
		uar_jw_str_or_null(w, "run_id", p->run_id);
		uar_jw_str_or_null(w, "command", p->command);
		uar_jw_str(w, "status", p->status);
		uar_jw_time_or_null(w, "started_at", p->started_at);
		uar_jw_time_or_null(w, "ended_at", p->ended_at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void write_output(struct uar_jw *w, const struct uar_sview_output *o)
{
	uar_jw_obj(w, "owner");
	uar_jw_str_or_null(w, "kind", o->owner_kind);
	uar_jw_str_or_null(w, "id", o->owner_id);
	uar_jw_close(w);
	uar_jw_str_or_null(w, "media_type", o->media_type);
	uar_jw_str_or_null(w, "encoding", o->encoding);
	uar_jw_int(w, "bytes", o->bytes);
	uar_jw_int(w, "kept_bytes", o->kept_bytes);
	uar_jw_bool(w, "truncated", o->kept_bytes < o->bytes);
	uar_jw_obj(w, "preview");
	uar_jw_str_or_null(w, "head", o->head);
	uar_jw_str_or_null(w, "tail", o->tail);
	uar_jw_close(w);
	view_put_json(w, "redactions", o->redactions, "[]");
	uar_jw_obj(w, "expiry");
	uar_jw_str_or_null(w, "policy", o->expiry);
	uar_jw_str_or_null(w, "expires_at", o->expires_at);
	uar_jw_close(w);
}

static void write_outputs(struct uar_jw *w, const struct uar_sview *v, uar_str thread_id)
{
	uar_jw_arr(w, "outputs");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_OUTPUT].count; i++) {
		const struct uar_sview_output *o = view_at(v, UAR_SVIEW_OUTPUT, i);

		if (!uar_str_eq(o->thread_id, thread_id))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "output_ref", o->item.key);
		uar_jw_str_or_null(w, "run_id", o->run_id);
		uar_jw_str(w, "status", o->status);
		write_output(w, o);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* A reference of every document of one kind. */
static void put_evidence_refs(struct uar_jw *w, const char *key, const struct uar_sview *v,
			      const char *kind)
{
	uar_jw_arr(w, key);
	for (size_t i = 0; i < v->lists[UAR_SVIEW_EVIDENCE].count; i++) {
		const struct uar_sview_evidence *e = view_at(v, UAR_SVIEW_EVIDENCE, i);

		if (!uar_str_is(e->evidence_kind, kind))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "evidence_id", e->item.key);
		view_put_json(w, "scope", e->scope, "{}");
		view_put_json(w, "refs", e->refs, "{}");
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void write_document(struct uar_jw *w, const struct uar_sview_evidence *e)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "evidence_id", e->item.key);
	uar_jw_str_or_null(w, "kind", e->evidence_kind);
	uar_jw_str_or_null(w, "status", e->status);
	view_put_json(w, "scope", e->scope, "{}");
	uar_jw_str_or_null(w, "sha256", e->sha256);
	view_put_json(w, "refs", e->refs, "{}");
	view_put_json(w, "verification_outcomes", e->verification_outcomes, "[]");
	view_put_json(w, "known_gaps", e->known_gaps, "[]");
	view_put_json(w, "trace_ids", e->trace_ids, "[]");
	view_put_json(w, "audit_notes", e->notes, "[]");
	uar_jw_close(w);
}

void uar_sview_write_evidence(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			      uar_str thread_id)
{
	const struct uar_sview *v = s->view;
	const struct uar_sview_evidence *last = NULL;

	uar_jw_obj(w, key);
	uar_jw_arr(w, "evidence");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_EVIDENCE].count; i++) {
		const struct uar_sview_evidence *e = view_at(v, UAR_SVIEW_EVIDENCE, i);

		if (thread_id.n && !uar_str_eq(e->thread_id, thread_id))
			continue;
		write_document(w, e);
		last = e;
	}
	uar_jw_close(w);
	if (!thread_id.n) {
		put_evidence_refs(w, "replay_refs", v, "replay");
		put_evidence_refs(w, "review_refs", v, "review");
	}
	uar_jw_cstr(w, "state", last ? "available" : "not_applicable");
	uar_jw_close(w);
}

static void write_turns(struct uar_jw *w, const struct uar_sview *v, uar_str thread_id)
{
	uar_jw_arr(w, "turns");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_TURN].count; i++) {
		const struct uar_sview_turn *t = view_at(v, UAR_SVIEW_TURN, i);

		if (uar_str_eq(t->thread_id, thread_id))
			write_turn(w, NULL, t);
	}
	uar_jw_close(w);
}

/* --- threads --------------------------------------------------------------------------------- */

static void write_thread_head(struct uar_jw *w, const struct uar_sview_show *s,
			      const struct uar_sview_thread *t)
{
	uar_jw_str(w, "thread_id", t->item.key);
	uar_jw_str_or_null(w, "title", t->title);
	uar_jw_cstr(w, "status", view_thread_status(s, t));
	uar_jw_bool(w, "archived", t->archived);
	uar_jw_str(w, "origin", t->origin.n ? t->origin : UAR_STR("unknown"));
	uar_jw_str_or_null(w, "parent_thread_id", t->parent_thread_id);
	uar_jw_str_or_null(w, "forked_turn_id", t->forked_turn_id);
	uar_jw_str_or_null(w, "active_turn_id", t->active_turn_id);
	uar_jw_str_or_null(w, "baseline_turn_id", t->baseline_turn_id);
	uar_jw_int(w, "turn_count", t->turns);
	uar_jw_time_or_null(w, "created_at", t->created_at);
	uar_jw_time_or_null(w, "updated_at", t->updated_at);
}

void uar_sview_write_threads(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview_list *l = &s->view->lists[UAR_SVIEW_THREAD];

	uar_jw_obj(w, key);
	uar_jw_arr(w, "items");
	for (size_t i = l->count; i-- > 0;) { /* the newest first */
		const struct uar_sview_thread *t = view_at(s->view, UAR_SVIEW_THREAD, i);

		uar_jw_obj(w, NULL);
		write_thread_head(w, s, t);
		write_turn_or_null(w, "last_outcome", s->view, t->last_turn_id);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_int(w, "omitted", l->omitted);
	uar_jw_close(w);
}

/* What the thread cannot say, and why. */
static void write_diagnostics(struct uar_jw *w, const struct uar_sview_show *s,
			      const struct uar_sview_thread *t)
{
	const struct uar_sview_turn *last = view_find(s->view, UAR_SVIEW_TURN, t->last_turn_id);

	uar_jw_obj(w, "diagnostics");
	uar_sview_write_freshness(w, "freshness", s);
	if (last && uar_str_is(last->status, "lost"))
		uar_jw_cstr(w, "status_reason",
			    "the worker of the last turn is gone; what it "
			    "has done is not known");
	else
		uar_jw_null(w, "status_reason");
	uar_jw_int(w, "turns_omitted", s->view->lists[UAR_SVIEW_TURN].omitted);
	uar_jw_int(w, "incidents_omitted", s->view->lists[UAR_SVIEW_INCIDENT].omitted);
	uar_jw_close(w);
}

void uar_sview_write_thread(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			    uar_str thread_id)
{
	const struct uar_sview *v = s->view;
	const struct uar_sview_thread *t = uar_sview_thread(v, thread_id);

	if (!t) {
		uar_jw_null(w, key);
		return;
	}
	uar_jw_obj(w, key);
	write_thread_head(w, s, t);
	write_turn_or_null(w, "active_turn", v, t->active_turn_id);
	write_turn_or_null(w, "last_outcome", v, t->last_turn_id);
	uar_sview_write_pending(w, "pending_requests", s, thread_id);
	write_queued_turns(w, v, thread_id);
	uar_sview_write_queue(w, "queue", s, thread_id);
	write_incidents(w, v, thread_id);
	write_actions(w, "actions", v, thread_id, false);
	write_calls(w, v, thread_id);
	write_processes(w, v, thread_id);
	write_outputs(w, v, thread_id);
	uar_sview_write_evidence(w, "evidence_summary", s, thread_id);
	uar_sview_write_context(w, "context", s, thread_id);
	uar_sview_write_inventory(w, "tool_inventory", s, thread_id);
	uar_sview_write_routing(w, "routing_limits", s, thread_id);
	write_turns(w, v, thread_id);
	write_diagnostics(w, s, t);
	uar_jw_close(w);
}

/* --- the recent window ----------------------------------------------------------------------- */

void uar_sview_write_steps(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview_list *l = &s->view->lists[UAR_SVIEW_STEP];

	uar_jw_obj(w, key);
	uar_jw_arr(w, "steps");
	for (size_t i = 0; i < l->count; i++) {
		const struct uar_sview_step *step = view_at(s->view, UAR_SVIEW_STEP, i);

		uar_jw_obj(w, NULL);
		uar_jw_str(w, "kind", step->step_kind);
		uar_jw_str(w, "step_id", step->step_id.n ? step->step_id : step->item.key);
		uar_jw_str(w, "id", step->item.key);
		uar_jw_str_or_null(w, "thread_id", step->thread_id);
		uar_jw_str_or_null(w, "turn_id", step->turn_id);
		uar_jw_str_or_null(w, "run_id", step->run_id);
		uar_jw_str_or_null(w, "role", step->role);
		uar_jw_str_or_null(w, "name", step->name);
		uar_jw_str_or_null(w, "status", step->status);
		uar_jw_str(w, "text", step->text);
		uar_jw_str_or_null(w, "ref", step->ref);
		uar_jw_bool(w, "removed", step->removed);
		uar_jw_int(w, "first_sequence", step->first);
		uar_jw_int(w, "last_sequence", step->item.sequence);
		uar_jw_time_or_null(w, "at", step->at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_int(w, "omitted", l->omitted);
	uar_jw_close(w);
}
