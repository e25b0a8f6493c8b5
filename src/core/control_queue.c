/* control_queue.c - the queue of a thread: paused, resumed, reordered, a turn taken out. */
#include "core/control_int.h"

static const struct uar_queue *queue_of(const struct ctl *c)
{
	static const struct uar_queue empty;

	return c->in->queue ? c->in->queue : &empty;
}

static struct uar_row_thread *thread_row(struct ctl *c)
{
	struct uar_row_thread *t = ctl_row_or_new(c, UAR_ROW_THREAD, c->in->thread_id);

	return t ? ctl_change(c, t) : NULL;
}

/* A thread whose queue is as usual needs nobody's attention at a start. */
static void settle_open(struct uar_row_thread *t)
{
	t->row.open = t->queue_paused || t->queue_order.n;
}

static void emit_queue(struct ctl *c, const struct uar_queue *q, const struct queue_change *change)
{
	uar_emit_name(&c->e, UAR_ID_THREAD, c->in->thread_id);
	uar_core_queue_changed(&c->e, q, change);
}

static void tell_queue(struct ctl *c, const struct uar_queue *q, bool paused, const char *status)
{
	struct uar_jw *w;

	if (c->e.err || c->waits)
		return;
	w = ctl_result(c);
	if (status)
		uar_jw_cstr(w, "status", status);
	uar_jw_obj(w, "queue");
	uar_jw_str(w, "session_id", c->e.s->session_id);
	uar_jw_str(w, "thread_id", c->in->thread_id);
	uar_jw_bool(w, "paused", paused);
	uar_jw_str_or_null(w, "active_turn_id", c->in->active_turn_id);
	uar_jw_arr(w, "order");
	for (size_t i = 0; i < q->listed; i++)
		uar_jw_str(w, NULL, q->at[i].turn_id);
	uar_jw_close(w);
	uar_jw_u64(w, "length", q->length);
	uar_jw_close(w);
	ctl_result_end(c);
}

/* --- pause and resume ------------------------------------------------------------------------ */

static void set_paused(struct ctl *c, bool paused, uar_str reason)
{
	const struct uar_queue *q = queue_of(c);
	struct queue_change change = { .op = paused ? "paused" : "resumed", .paused = paused };
	struct uar_row_thread *t;

	change.reason = reason;
	if (q->paused == paused)
		return;
	t = thread_row(c);
	if (!t)
		return;
	t->queue_paused = paused;
	t->pause_reason = paused ? reason : UAR_STR_NONE;
	settle_open(t);
	emit_queue(c, q, &change);
}

void ctl_pause_queue(struct ctl *c)
{
	set_paused(c, true, c->in->pause_queue.reason);
	tell_queue(c, queue_of(c), true, NULL);
}

void ctl_resume_queue(struct ctl *c)
{
	set_paused(c, false, c->in->resume_queue.reason);
	tell_queue(c, queue_of(c), false, NULL);
}

/* --- resume_thread --------------------------------------------------------------------------- */

static void tell_blocked(struct ctl *c, const struct uar_run *r)
{
	const struct uar_run_actions *a = &uar_run_rare(r)->actions;
	struct uar_jw *w = ctl_result(c);

	uar_jw_cstr(w, "status", "blocked");
	uar_jw_str(w, "session_id", c->e.s->session_id);
	uar_jw_str(w, "thread_id", c->in->thread_id);
	uar_jw_str(w, "active_turn_id", r->id.turn_id);
	uar_jw_str(w, "run_id", r->id.run_id);
	uar_jw_arr(w, "pending");
	for (size_t i = 0; i < a->open_count; i++) {
		uar_jw_obj(w, NULL);
		uar_action_write(w, r, &a->open[i]);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	ctl_result_end(c);
}

/* A restart resumes by itself what can go on. What is left: a queue that somebody paused, and
 * turns that wait for an answer. */
void ctl_resume_thread(struct ctl *c)
{
	const struct uar_run *r = c->in->active;
	bool paused = queue_of(c)->paused;

	set_paused(c, false, UAR_STR("resume_thread"));
	if (c->waits || c->e.err)
		return;
	if (!paused && r && uar_run_rare(r)->actions.open_count)
		tell_blocked(c, r);
	else
		tell_queue(c, queue_of(c), false, paused ? "resumed" : "nothing_to_resume");
}

/* --- one turn -------------------------------------------------------------------------------- */

static uar_err refuse_turn(struct ctl *c, uar_str turn_id)
{
	if (uar_str_eq(turn_id, c->in->active_turn_id))
		ctl_refuse(c, UAR_ESTATE, "/queued_turn_id", "the turn has started");
	else
		ctl_refuse(c, UAR_ENOTFOUND, "/queued_turn_id",
			   "no such turn waits in the queue of the thread");
	return c->e.err;
}

void ctl_remove_queued_turn(struct ctl *c)
{
	struct uar_command cancel = { .kind = UAR_CMD_CANCEL,
				      .text = UAR_STR("removed from the queue") };
	struct uar_queue q = *queue_of(c);
	const struct uar_run *r = c->in->target;
	size_t i = 0;

	if (!r) {
		refuse_turn(c, c->in->remove_queued_turn.queued_turn_id);
		return;
	}
	ctl_decide_run(c, UAR_CONTROL_TARGET, &cancel);
	while (i < q.listed && !uar_str_eq(q.at[i].run_id, r->id.run_id))
		i++;
	if (i < q.listed) {
		q.listed--;
		memmove(&q.at[i], &q.at[i + 1], (q.listed - i) * sizeof q.at[0]);
	}
	q.length--;
	tell_queue(c, &q, q.paused, NULL);
}

/* Its place stays; the change is a fact of the run and one of the queue. */
void ctl_edit_queued_turn(struct ctl *c)
{
	struct uar_command edit = { .kind = UAR_CMD_EDIT, .input = c->in->message };
	struct queue_change change = { .op = "reordered", .reason = UAR_STR("edited") };
	const struct uar_queue *q = queue_of(c);
	const struct uar_run *r = c->in->target;

	if (!r) {
		refuse_turn(c, c->in->edit_queued_turn.queued_turn_id);
		return;
	}
	if (r->what.entry == UAR_ENTRY_PLUGIN || r->what.entry == UAR_ENTRY_FIXTURE) {
		ctl_refuse(c, UAR_ESTATE, "/queued_turn_id",
			   "the turn is no message: remove it and submit another one");
		return;
	}
	change.turn_id = r->id.turn_id;
	change.paused = q->paused;
	ctl_decide_run(c, UAR_CONTROL_TARGET, &edit);
	emit_queue(c, q, &change);
	tell_queue(c, q, q->paused, NULL);
}

/* The first `n` of the queue as the row keeps them. */
static uar_str order_text(struct ctl *c, const struct uar_queue *q, size_t n)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	uar_str out = UAR_STR_NONE;

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < n; i++)
		uar_jw_str(&w, NULL, q->at[i].run_id);
	uar_jw_close(&w);
	if (!uar_jw_end(&w))
		out = uar_arena_str(c->e.env->arena, uar_buf_str(&text));
	if (!out.p)
		ctl_fail(c, UAR_ENOMEM);
	uar_buf_fini(&text);
	return out;
}

static void keep_order(struct ctl *c, const struct uar_queue *q)
{
	struct uar_row_thread *t = thread_row(c);

	if (!t)
		return;
	t->queue_order = order_text(c, q, q->listed);
	settle_open(t);
}

/* Takes the entry at `from` to `to`; those between move by one. */
static void move_entry(struct uar_queue *q, size_t from, size_t to)
{
	struct uar_queued moved = q->at[from];

	if (from > to)
		memmove(&q->at[to + 1], &q->at[to], (from - to) * sizeof moved);
	else
		memmove(&q->at[from], &q->at[from + 1], (to - from) * sizeof moved);
	q->at[to] = moved;
}

/* A turn that waits behind those that are listed takes the place of the last of them. */
static size_t place_of(struct uar_queue *q, const struct uar_run *r)
{
	size_t i = 0;

	while (i < q->listed && !uar_str_eq(q->at[i].run_id, r->id.run_id))
		i++;
	if (i == q->listed)
		q->at[--i] = (struct uar_queued){ r->id.run_id, r->id.turn_id };
	return i;
}

void ctl_promote_queued_turn(struct ctl *c)
{
	const struct uar_ctl_promote_queued_turn *in = &c->in->promote_queued_turn;
	struct uar_queue q = *queue_of(c);
	const struct uar_run *r = c->in->target;
	int64_t position = ctl_given(c, "position") ? in->position : 1;
	struct queue_change change = { .paused = q.paused };
	size_t from;

	if (!r) {
		refuse_turn(c, in->queued_turn_id);
		return;
	}
	if (position < 1 || position > (int64_t)q.listed) {
		ctl_refuse(c, UAR_EINVALID, "/position", "\"position\" must be 1 to %zu", q.listed);
		return;
	}
	from = place_of(&q, r);
	if (from == (size_t)position - 1) {
		tell_queue(c, &q, q.paused, NULL);
		return;
	}
	change.op = (size_t)position - 1 < from ? "promoted" : "reordered";
	change.turn_id = r->id.turn_id;
	move_entry(&q, from, (size_t)position - 1);
	keep_order(c, &q);
	emit_queue(c, &q, &change);
	tell_queue(c, &q, q.paused, NULL);
}

void ctl_place_first(struct ctl *c, uar_str run_id)
{
	struct uar_queue q = *queue_of(c);

	if (q.listed == UAR_LIMIT_QUEUE_LISTED)
		q.listed--;
	memmove(&q.at[1], &q.at[0], q.listed * sizeof q.at[0]);
	q.at[0] = (struct uar_queued){ run_id, UAR_STR_NONE };
	q.listed++;
	keep_order(c, &q);
}
