/* control_history.c - the turns of a thread: shared with a fork of it, or taken back.
 *
 * Nothing is deleted. A fork is a thread whose row names the turn up to which it shares its
 * parent's; a rollback is a pair of events that says which turns no longer count. */
#include "core/control_int.h"
#include "core/limits.h"

static bool turn_is_usable(struct ctl *c)
{
	const struct uar_turn_facts *t = c->in->turn;

	if (!t)
		ctl_refuse(c, UAR_ENOTFOUND, "/turn_id", "the thread has no such turn");
	else if (!t->over)
		ctl_refuse(c, UAR_ESTATE, "/turn_id", "the turn is not over");
	else if (t->removed)
		ctl_refuse(c, UAR_ESTATE, "/turn_id", "the turn was taken back");
	else if (t->condensed)
		ctl_refuse(c, UAR_ESTATE, "/turn_id",
			   "the turns behind it were condensed together with older ones");
	else if (t->own_history)
		ctl_refuse(c, UAR_ESTATE, "/thread_id",
			   "the agent of the turn keeps a history of its own");
	return !c->e.err;
}

/* --- fork ------------------------------------------------------------------------------------ */

static void tell_fork(struct ctl *c, const struct uar_row_thread *t)
{
	struct uar_jw *w = ctl_result(c);

	uar_jw_obj(w, "thread");
	uar_jw_str(w, "thread_id", t->row.id);
	uar_jw_str(w, "session_id", c->e.s->session_id);
	uar_jw_str(w, "parent_thread_id", t->row.parent);
	uar_jw_str(w, "forked_turn_id", t->forked_turn_id);
	uar_jw_int(w, "forked_sequence", t->forked_sequence);
	uar_jw_str_or_null(w, "title", t->title);
	uar_jw_close(w);
	ctl_result_end(c);
}

static void emit_forked(struct ctl *c, const struct uar_row_thread *t)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "origin", "fork");
	uar_jw_str(w, "conversation_id", t->row.id);
	uar_jw_str(w, "parent_thread_id", t->row.parent);
	uar_jw_str(w, "forked_turn_id", t->forked_turn_id);
	uar_jw_int(w, "forked_sequence", t->forked_sequence);
	if (t->title.n)
		uar_jw_str(w, "title", t->title);
	uar_emit_name(&c->e, UAR_ID_THREAD, t->row.id);
	uar_emit(&c->e, UAR_EV_THREAD_STARTED, EMIT_SESSION);
}

static void fork_at_turn(struct ctl *c, uar_str id)
{
	const struct uar_ctl_fork_thread *in = &c->in->fork_thread;
	const struct uar_row_thread *parent = ctl_row(c, UAR_ROW_THREAD, in->thread_id);
	struct uar_row_thread *t;

	if (c->waits)
		return;
	if (parent && parent->fork_depth + 1 >= UAR_LIMIT_FORK_DEPTH) {
		ctl_refuse(c, UAR_ETOOBIG, "/thread_id", "forks may be %d deep",
			   UAR_LIMIT_FORK_DEPTH);
		return;
	}
	t = ctl_new_row(c, UAR_ROW_THREAD, id);
	if (!t)
		return;
	t->row.status = UAR_STR("active");
	t->row.parent = in->thread_id;
	t->title = in->title;
	t->fork_depth = parent ? parent->fork_depth + 1 : 1;
	t->forked_turn_id = c->in->turn->turn_id;
	t->forked_sequence = (int64_t)c->in->turn->sequence;
	emit_forked(c, t);
	t->forked_at = (int64_t)c->e.s->sequence;
	tell_fork(c, t);
}

void ctl_fork_thread(struct ctl *c)
{
	const struct uar_ctl_fork_thread *in = &c->in->fork_thread;
	uar_str id = in->new_thread_id.n ? in->new_thread_id : uar_emit_id(&c->e);
	struct uar_row_thread *there = in->new_thread_id.n ? ctl_row(c, UAR_ROW_THREAD, id) : NULL;

	if (c->waits)
		return;
	if (there && uar_str_eq(there->row.parent, in->thread_id)) {
		tell_fork(c, there); /* the caller's id: the fork is there already */
		return;
	}
	if (there || (c->in->turn && c->in->turn->thread_taken)) {
		ctl_refuse(c, UAR_ESTATE, "/new_thread_id", "there is a thread with that id");
		return;
	}
	if (turn_is_usable(c))
		fork_at_turn(c, id);
}

/* --- rollback -------------------------------------------------------------------------------- */

static void emit_rollback_started(struct ctl *c, uar_str rollback_id)
{
	const struct uar_turn_facts *t = c->in->turn;
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_str(w, "rollback_id", rollback_id);
	uar_jw_obj(w, "target");
	uar_jw_str(w, "turn_id", t->turn_id);
	uar_jw_u64(w, "sequence", t->sequence);
	uar_jw_close(w);
	uar_jw_raw(w, "removed_turn_ids", t->later_turns);
	uar_jw_obj(w, "affected");
	uar_jw_raw(w, "tool_call_ids", t->tool_calls);
	uar_jw_raw(w, "artifact_ids", t->artifacts);
	uar_jw_raw(w, "subagent_ids", UAR_STR("[]"));
	uar_jw_raw(w, "job_ids", UAR_STR("[]"));
	uar_jw_close(w);
	ctl_put_who(w, "requested_by", c->in);
	uar_emit_name(&c->e, UAR_ID_THREAD, c->in->thread_id);
	uar_emit(&c->e, UAR_EV_HISTORY_ROLLBACK_STARTED, EMIT_SESSION);
}

static void emit_rollback_completed(struct ctl *c, uar_str rollback_id)
{
	const struct uar_turn_facts *t = c->in->turn;
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_str(w, "rollback_id", rollback_id);
	uar_jw_cstr(w, "status", "completed");
	uar_jw_raw(w, "removed_turn_ids", t->later_turns);
	uar_jw_obj(w, "surviving_baseline");
	uar_jw_str(w, "turn_id", t->turn_id);
	uar_jw_u64(w, "sequence", t->sequence);
	uar_jw_close(w);
	uar_jw_arr(w, "read_models_repaired");
	uar_jw_cstr(w, NULL, "thread_read_model");
	uar_jw_close(w);
	uar_emit_name(&c->e, UAR_ID_THREAD, c->in->thread_id);
	uar_emit(&c->e, UAR_EV_HISTORY_ROLLBACK_COMPLETED, EMIT_SESSION);
}

static void tell_rollback(struct ctl *c, uar_str rollback_id)
{
	const struct uar_turn_facts *t = c->in->turn;
	struct uar_jw *w = ctl_result(c);

	if (rollback_id.n)
		uar_jw_str(w, "rollback_id", rollback_id);
	uar_jw_str(w, "session_id", c->e.s->session_id);
	uar_jw_str(w, "thread_id", c->in->thread_id);
	uar_jw_raw(w, "removed_turn_ids", t->later_turns);
	uar_jw_obj(w, "surviving_baseline");
	uar_jw_str(w, "turn_id", t->turn_id);
	uar_jw_u64(w, "sequence", t->sequence);
	uar_jw_close(w);
	ctl_result_end(c);
}

void ctl_rollback_thread(struct ctl *c)
{
	const struct uar_turn_facts *t = c->in->turn;
	struct uar_row_thread *row;
	uar_str id;

	if (c->in->active || (c->in->queue && c->in->queue->length)) {
		ctl_refuse(c, UAR_ESTATE, "/thread_id",
			   "the thread has a turn that is not over: interrupt it first");
		return;
	}
	if (!turn_is_usable(c))
		return;
	if (uar_str_is(t->later_turns, "[]")) {
		tell_rollback(c, UAR_STR_NONE);
		return;
	}
	row = ctl_row_or_new(c, UAR_ROW_THREAD, c->in->thread_id);
	if (!row)
		return;
	id = uar_emit_id(&c->e);
	emit_rollback_started(c, id);
	emit_rollback_completed(c, id);
	ctl_change(c, row);
	row->baseline_turn_id = t->turn_id;
	row->baseline_sequence = (int64_t)t->sequence;
	row->rolled_back_from = (int64_t)c->e.s->sequence;
	tell_rollback(c, id);
}
