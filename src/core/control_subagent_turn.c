/* control_subagent_turn.c - follows the turns of child agents while their runs are at work, and
 * closes them when these are over. */
#include "core/control_int.h"
#include "core/limits.h"

/* Its run waits behind another, or is about to stop: its status does not say so. */
static void emit_submitted(struct ctl *c, const struct uar_row_subagent *s)
{
	uar_emit_begin(&c->e);
	ctl_name_subagent(c, s);
	uar_emit_vendor(&c->e, "vendor.uar.subagent.submitted", EMIT_SESSION);
}

void ctl_follow_subagent(struct ctl *c)
{
	const struct uar_ctl_follow_subagent *in = &c->in->follow_subagent;
	struct uar_row_subagent *s = ctl_find_subagent(c, in->subagent_id);
	struct uar_row_subagent_turn *t = ctl_row(c, UAR_ROW_SUBAGENT_TURN, in->turn_id);
	bool queued = uar_str_is(in->status, "queued");

	if (!s || !t || c->waits || !t->row.open)
		return;
	if (uar_str_is(t->row.status, "pending") || !uar_str_eq(t->run_id, in->run_id)) {
		ctl_change(c, t);
		t->row.status = UAR_STR("submitted");
		t->run_id = in->run_id;
		if (queued || ctl_subagent_is_closed(s))
			emit_submitted(c, s);
	}
	if (queued || ctl_subagent_is_closed(s) || uar_str_eq(s->row.status, in->status))
		return;
	s->run_id = in->run_id;
	s->started_at = s->started_at ? s->started_at : c->e.env->now_us;
	ctl_change_subagent_status(c, s, uar_str_is(in->status, "waiting") ? "waiting" : "running",
				   NULL);
}

static void emit_completed(struct ctl *c, const struct uar_row_subagent *s)
{
	struct uar_jw *w = uar_emit_begin(&c->e);
	int64_t took = c->e.env->now_us - (s->started_at ? s->started_at : s->row.created_us);

	uar_jw_cstr(w, "status", "completed");
	uar_jw_str(w, "summary_preview",
		   uar_str_utf8_prefix(s->answer, UAR_LIMIT_SUBAGENT_SUMMARY));
	uar_jw_int(w, "duration_ms", took > 0 ? took / 1000 : 0);
	ctl_refer(c, "output_ref", s->last_message_ref);
	ctl_name_subagent(c, s);
	uar_emit(&c->e, UAR_EV_SUBAGENT_COMPLETED, EMIT_SESSION);
}

static void emit_failed(struct ctl *c, const struct uar_row_subagent *s,
			const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "failed");
	uar_jw_str(w, "failure_category", f->category);
	uar_emit_error(w, "error", f, UAR_STR_NONE);
	uar_jw_bool(w, "retryable", f->retryable);
	ctl_refer(c, "output_ref", s->last_message_ref);
	ctl_name_subagent(c, s);
	uar_emit(&c->e, UAR_EV_SUBAGENT_FAILED, EMIT_SESSION);
}

static void end_badly(struct ctl *c, struct uar_row_subagent *s)
{
	const struct uar_ctl_settle_subagent *in = &c->in->settle_subagent;
	struct uar_failure f = {
		.code = in->code.n ? in->code : UAR_STR("FAILED"),
		.message = in->message.n ? in->message : in->status,
		.category = uar_str_is(in->status, "failed") ? UAR_STR("execution") : in->status,
		.retryable = in->retryable || !uar_str_is(in->status, "failed"),
	};

	s->last_error = ctl_error_text(c, &f);
	s->status_reason = f.message;
	s->retryable = f.retryable;
	if (uar_str_is(in->status, "lost"))
		ctl_change_subagent_status(c, s, "lost", "restart");
	else
		s->row.status = UAR_STR("failed");
	emit_failed(c, s, &f);
}

static void end_child(struct ctl *c, struct uar_row_subagent *s)
{
	s->row.open = false;
	s->ended_at = c->e.env->now_us;
	if (ctl_subagent_is_closed(s)) {
		ctl_emit_subagent_status(c, s, UAR_STR_NONE, "released");
		return;
	}
	if (uar_str_is(c->in->settle_subagent.status, "completed")) {
		s->row.status = UAR_STR("completed");
		s->last_error = UAR_STR_NONE;
		emit_completed(c, s);
	} else {
		end_badly(c, s);
	}
}

/* It may have been settled before: then nothing is left to do. */
void ctl_settle_subagent(struct ctl *c)
{
	const struct uar_ctl_settle_subagent *in = &c->in->settle_subagent;
	struct uar_row_subagent *s = ctl_find_subagent(c, in->subagent_id);
	struct uar_row_subagent_turn *t = ctl_row(c, UAR_ROW_SUBAGENT_TURN, in->turn_id);

	if (!s || !t || c->waits || !t->row.open)
		return;
	ctl_change(c, t);
	t->row.open = false;
	t->row.status = in->status;
	t->run_id = in->run_id;
	ctl_change(c, s);
	s->open_turns--;
	s->run_id = in->run_id.n ? in->run_id : s->run_id;
	if (in->answer.n) {
		s->answer = in->answer;
		s->answer_bytes = in->answer_bytes;
		s->last_message_ref = in->output_ref;
	}
	if (s->open_turns == 0)
		end_child(c, s);
	else
		ctl_emit_subagent_status(c, s, UAR_STR_NONE, "turn ended");
}
