/* control_subagent.c - child agents: spawned, told more, resumed, closed. What becomes of the turns
 * that they are given is in control_subagent_turn.c.
 *
 * A child has a session of its own. Its row, in its parent's session, says who it is; a row for
 * each turn says what it is told, before it is told: the shell submits the turn to the child's
 * thread under the id of that row, so that doing it again does nothing, and settles the row when
 * the run is over. The thread's id names the child, so the end of a run finds its row without an
 * index. */
#include "core/control_int.h"
#include "core/limits.h"
#include "core/view_int.h"

bool uar_thread_subagent(uar_str thread_id, uar_str *out_subagent_id)
{
	uar_str prefix = UAR_STR(UAR_SUBAGENT_THREAD);

	if (!uar_str_starts(thread_id, prefix))
		return false;
	*out_subagent_id = uar_str_from(thread_id, prefix.n);
	return out_subagent_id->n > 0;
}

bool uar_subagent_at_rest(const struct uar_row_subagent *s)
{
	return s->open_turns == 0;
}

bool ctl_subagent_is_closed(const struct uar_row_subagent *s)
{
	return uar_str_is(s->row.status, "closed");
}

/* --- its record ------------------------------------------------------------------------------ */

/* What the child shares with its parent: nothing but the owner. Its tools, its folder and its model
 * are those of its own definition. */
static void put_rules(struct uar_jw *w, const struct uar_row_subagent *s)
{
	uar_jw_obj(w, "isolation");
	uar_jw_cstr(w, "session", "own");
	uar_jw_cstr(w, "history", "own");
	uar_jw_cstr(w, "tools", "definition");
	uar_jw_str(w, "on_parent_end", s->on_parent_end);
	uar_jw_close(w);
	uar_jw_obj(w, "model_policy");
	uar_jw_cstr(w, "source", "definition");
	uar_jw_str(w, "agent_id", s->agent_id);
	uar_jw_close(w);
}

static void put_parent(struct uar_jw *w, const struct uar_row_subagent *s, uar_str session_id)
{
	uar_jw_obj(w, "parent");
	uar_jw_str(w, "session_id", session_id);
	uar_jw_str(w, "thread_id", s->thread_id);
	uar_jw_str(w, "turn_id", s->turn_id);
	if (s->task_id.n)
		uar_jw_str(w, "task_id", s->task_id);
	if (s->row.parent.n)
		uar_jw_str(w, "run_id", s->row.parent);
	uar_jw_close(w);
}

void uar_subagent_write(struct uar_jw *w, const struct uar_row_subagent *s)
{
	uar_jw_str(w, "subagent_id", s->row.id);
	put_parent(w, s, s->row.session_id);
	uar_jw_str(w, "child_session_id", s->child_session_id);
	uar_jw_str(w, "child_thread_id", s->child_session_id);
	uar_jw_str_or_null(w, "run_id", s->run_id);
	uar_jw_str(w, "agent_id", s->agent_id);
	uar_jw_str(w, "role", s->role);
	uar_jw_str_or_null(w, "nickname", s->nickname);
	put_rules(w, s);
	uar_jw_str_or_null(w, "origin_tool", s->origin_tool);
	uar_jw_str(w, "status", s->row.status);
	uar_jw_str_or_null(w, "status_reason", s->status_reason);
	uar_jw_int(w, "depth", s->depth);
	uar_jw_str(w, "root_session_id", s->row.tag);
	uar_jw_int(w, "turns", s->turns);
	uar_jw_int(w, "open_turns", s->open_turns);
	uar_jw_str_or_null(w, "answer", s->answer);
	if (s->answer_bytes > (int64_t)s->answer.n) /* it is the beginning */
		uar_jw_int(w, "answer_bytes", s->answer_bytes);
	uar_jw_str_or_null(w, "last_message_ref", s->last_message_ref);
	uar_jw_raw(w, "last_error", s->last_error.n ? s->last_error : UAR_STR("null"));
	uar_jw_bool(w, "recoverable", uar_subagent_at_rest(s));
	uar_jw_time(w, "created_at", s->row.created_us);
	uar_jw_time(w, "updated_at", s->row.updated_us);
	uar_jw_time_or_null(w, "started_at", s->started_at);
	uar_jw_time_or_null(w, "ended_at", s->ended_at);
}

static void tell(struct ctl *c, struct uar_row_subagent *s, bool existed)
{
	struct uar_jw *w;

	if (c->waits || c->e.err)
		return;
	if (!s->row.session_id.n)
		s->row.session_id = c->e.s->session_id;
	w = ctl_result(c);
	uar_jw_obj(w, "subagent");
	uar_subagent_write(w, s);
	uar_jw_close(w);
	uar_jw_bool(w, "existed", existed);
	ctl_result_end(c);
}

/* --- facts ----------------------------------------------------------------------------------- */

void ctl_name_subagent(struct ctl *c, const struct uar_row_subagent *s)
{
	uar_emit_name(&c->e, UAR_ID_THREAD, s->thread_id);
	uar_emit_name(&c->e, UAR_ID_SUBAGENT, s->row.id);
}

uar_str ctl_print(struct ctl *c, uar_str text)
{
	if (!text.p)
		ctl_fail(c, UAR_ENOMEM);
	return text;
}

void ctl_refer(struct ctl *c, const char *name, uar_str ref)
{
	if (ref.n)
		uar_emit_refs(&c->e, uar_arena_printf(c->e.env->arena, "{\"%s\":\"%.*s\"}", name,
						      UAR_FMT(ref)));
}

void ctl_emit_subagent_status(struct ctl *c, const struct uar_row_subagent *s, uar_str before,
			      const char *reason)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_str(w, "status",
		   uar_str_is(s->row.status, "spawned") ? UAR_STR("pending") : s->row.status);
	if (before.n)
		uar_jw_str(w, "previous_status", before);
	if (reason)
		uar_jw_cstr(w, "reason", reason);
	ctl_refer(c, "last_message_ref", s->last_message_ref);
	ctl_name_subagent(c, s);
	uar_emit(&c->e, UAR_EV_SUBAGENT_STATUS, EMIT_SESSION);
}

void ctl_change_subagent_status(struct ctl *c, struct uar_row_subagent *s, const char *status,
				const char *reason)
{
	uar_str before = s->row.status;

	ctl_change(c, s);
	s->row.status = uar_str_c(status);
	ctl_emit_subagent_status(c, s, before, reason);
}

static void emit_spawned(struct ctl *c, const struct uar_row_subagent *s)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	put_parent(w, s, c->e.s->session_id);
	uar_jw_str(w, "child_session_id", s->child_session_id);
	uar_jw_str(w, "child_thread_id", s->child_session_id);
	uar_jw_str(w, "agent_id", s->agent_id);
	uar_jw_str(w, "role", s->role);
	if (s->nickname.n)
		uar_jw_str(w, "nickname", s->nickname);
	put_rules(w, s);
	if (s->origin_tool.n)
		uar_jw_str(w, "origin_tool", s->origin_tool);
	uar_jw_cstr(w, "status", "spawned");
	ctl_refer(c, "input_ref",
		  ctl_print(c, uar_arena_printf(c->e.env->arena, "input://%.*s/0",
						UAR_FMT(s->last_turn_id))));
	uar_emit_name(&c->e, UAR_ID_TURN, s->turn_id);
	ctl_name_subagent(c, s);
	uar_emit(&c->e, UAR_EV_SUBAGENT_SPAWNED, EMIT_SESSION);
}

/* --- a turn of it ---------------------------------------------------------------------------- */

/* `input_id`: the caller's name of it; or empty. */
static void give_turn(struct ctl *c, struct uar_row_subagent *s, uar_str message, uar_str input_id)
{
	struct uar_arena *arena = c->e.env->arena;
	struct uar_row_subagent_turn *t;
	uar_str id = input_id.n ? uar_arena_printf(arena, "%.*s.%.*s", UAR_FMT(s->child_session_id),
						   UAR_FMT(input_id))
				: uar_arena_printf(arena, "%.*s.%lld", UAR_FMT(s->child_session_id),
						   (long long)s->turns + 1);

	if (s->open_turns >= UAR_LIMIT_SUBAGENT_TURNS)
		ctl_refuse(c, UAR_ESTATE, "/subagent_id", "the child has %d turns to do already",
			   UAR_LIMIT_SUBAGENT_TURNS);
	if (id.n > UAR_LIMIT_ID_BYTES)
		ctl_refuse(c, UAR_EINVALID, "/input_id", "the id is too long for this child");
	t = c->e.err ? NULL : ctl_new_row(c, UAR_ROW_SUBAGENT_TURN, ctl_print(c, id));
	if (!t)
		return;
	t->row.status = UAR_STR("pending");
	t->row.parent = s->row.id;
	t->row.open = true;
	t->row.rank = s->turns + 1;
	t->agent_id = s->agent_id;
	t->thread_id = s->child_session_id;
	t->parent_thread_id = s->thread_id;
	t->message = message;
	t->input_id = input_id;
	t->budgets = ctl_budgets(c);
	ctl_change(c, s);
	s->turns++;
	s->open_turns++;
	s->row.open = true;
	s->last_turn_id = t->row.id;
}

/* --- spawn ----------------------------------------------------------------------------------- */

struct ctl_ancestry ctl_ancestry(struct ctl *c)
{
	struct ctl_ancestry a = { .root_session_id = c->e.s->session_id };
	const struct uar_row_subagent *s;
	const struct uar_row_job *j;
	int64_t index;
	uar_str id;

	if (uar_thread_subagent(c->e.s->session_id, &id)) {
		s = ctl_row(c, UAR_ROW_SUBAGENT, id);
		if (s && ctl_subagent_is_closed(s))
			ctl_refuse(c, UAR_ESTATE, NULL,
				   "the agent was closed: it starts no others");
		if (s)
			a = (struct ctl_ancestry){ s->depth, s->row.tag };
	} else if (uar_thread_job(c->e.s->session_id, &id, &index)) {
		j = ctl_row(c, UAR_ROW_JOB, id);
		if (j)
			a = (struct ctl_ancestry){ j->depth + 1, j->root_session_id };
	}
	if (a.depth >= UAR_LIMIT_SUBAGENT_DEPTH)
		ctl_refuse(c, UAR_ESTATE, NULL, "agents may be %d deep below each other",
			   UAR_LIMIT_SUBAGENT_DEPTH);
	return a;
}

static void check_count(struct ctl *c, const struct uar_need *need, size_t most, const char *where)
{
	const struct uar_loaded *open = ctl_load(c, need);

	if (open && open->count >= most)
		ctl_refuse(c, UAR_ESTATE, NULL,
			   "%zu child agents are at work %s: wait for some of them", open->count,
			   where);
}

static void check_counts(struct ctl *c, const struct ctl_ancestry *a)
{
	const struct uar_need here = { .kind = UAR_ROW_SUBAGENT,
				       .session_id = c->e.s->session_id,
				       .open = true };
	const struct uar_need tree = { .kind = UAR_ROW_SUBAGENT,
				       .tag = a->root_session_id,
				       .open = true };

	check_count(c, &here, UAR_LIMIT_SUBAGENTS_OPEN, "in the session");
	if (a->root_session_id.n)
		check_count(c, &tree, UAR_LIMIT_SUBAGENTS_TREE, "below the same root");
}

struct uar_row_task *ctl_delegating_task(struct ctl *c, uar_str task_id)
{
	struct uar_row_task *t = task_id.n ? ctl_task(c, task_id, "/task_id") : NULL;

	if (t && t->cancel_requested)
		ctl_refuse(c, UAR_ESTATE, "/task_id", "the task was cancelled: its cancel holds");
	else if (t && t->paused)
		ctl_refuse(c, UAR_ESTATE, "/task_id", "the task is paused: resume it first");
	if (t) {
		ctl_check_ancestors(c, t);
		ctl_check_edges(c, task_id, "/task_id");
	}
	return t;
}

/* One that was closed and resumed works on, whatever became of the task. */
static void check_task(struct ctl *c, const struct uar_row_subagent *s)
{
	if (s->task_id.n && !s->resumed)
		ctl_check_holds(c, s->task_id, "/subagent_id");
}

bool ctl_check_child_id(struct ctl *c, uar_str id, const char *where)
{
	if (id.n <= UAR_LIMIT_SUBAGENT_ID && uar_str_find(id, '.') == id.n)
		return true;
	ctl_refuse(c, UAR_EINVALID, where, "the id may have %d bytes and no dots",
		   UAR_LIMIT_SUBAGENT_ID);
	return false;
}

/* The turn that the child is started for; empty: the command is refused. */
static uar_str turn_of_parent(struct ctl *c)
{
	const struct uar_ctl_spawn_subagent *in = &c->in->spawn_subagent;
	const struct uar_run *active = c->in->active;

	if (active && in->turn_id.n && !uar_str_eq(in->turn_id, active->id.turn_id))
		ctl_refuse(c, UAR_ESTATE, "/turn_id", "the thread is at another turn");
	else if (active && active->status == UAR_STATUS_CANCELLING)
		ctl_refuse(c, UAR_ESTATE, "/thread_id",
			   "the turn is being cancelled: it starts no children");
	else if (active)
		return active->id.turn_id;
	else if (!c->in->turn)
		ctl_refuse(c, UAR_ENOTFOUND, "/turn_id", "the thread has no such turn");
	else if (c->in->turn->removed)
		ctl_refuse(c, UAR_ESTATE, "/turn_id", "the turn was taken back");
	else
		return c->in->turn->turn_id;
	return UAR_STR_NONE;
}

static uar_str fingerprint(struct ctl *c)
{
	const struct uar_ctl_spawn_subagent *in = &c->in->spawn_subagent;
	const uar_str parts[] = { in->agent_id, in->message, in->role, in->nickname };
	uint64_t h[2] = { 1, 2 };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		for (size_t k = 0; k < ARRAY_LEN(h); k++)
			h[k] = uar_str_hash(parts[i], h[k] + parts[i].n);
	return ctl_print(c, uar_arena_printf(c->e.env->arena, "%016llx%016llx",
					     (unsigned long long)h[0], (unsigned long long)h[1]));
}

/* Another attempt of the parent finds the child that the one before it has started with the same
 * words, finished or not. NULL: there is none, or it has to be loaded. */
static struct uar_row_subagent *find_earlier(struct ctl *c, uar_str print)
{
	const struct uar_run *active = c->in->active;
	const struct uar_need need = { .kind = UAR_ROW_SUBAGENT,
				       .parent = active ? active->id.parent_run_id : UAR_STR_NONE };
	const struct uar_loaded *l = need.parent.n ? ctl_load(c, &need) : NULL;

	for (size_t i = 0; l && i < l->count && !c->e.err; i++) {
		struct uar_row_subagent *s = ctl_row_of(c, &l->rows[i]);

		if (s && uar_str_eq(s->fingerprint, print) && !ctl_subagent_is_closed(s) &&
		    !uar_str_is(s->row.status, "failed") && !uar_str_is(s->row.status, "lost") &&
		    uar_str_eq(s->row.session_id, c->e.s->session_id))
			return s;
	}
	return NULL;
}

static void adopt(struct ctl *c, struct uar_row_subagent *s, uar_str turn_id)
{
	ctl_change(c, s);
	s->row.parent = c->in->active->id.run_id;
	s->resumed = false;
	s->turn_id = turn_id;
	ctl_emit_subagent_status(c, s, s->row.status, "adopted");
	tell(c, s, true);
}

static void make_child(struct ctl *c, uar_str id, uar_str turn_id, const struct ctl_ancestry *a)
{
	const struct uar_ctl_spawn_subagent *in = &c->in->spawn_subagent;
	const struct uar_row_task *t = ctl_delegating_task(c, in->task_id);
	struct uar_row_subagent *s = NULL;

	check_counts(c, a);
	if (!c->e.err && !c->waits)
		s = ctl_new_row(c, UAR_ROW_SUBAGENT, id);
	if (!s)
		return;
	s->row.status = UAR_STR("spawned");
	s->row.parent = c->in->active ? c->in->active->id.run_id : UAR_STR_NONE;
	s->row.tag = a->root_session_id;
	s->thread_id = in->thread_id;
	s->turn_id = turn_id;
	s->task_id = in->task_id;
	s->agent_id = in->agent_id;
	s->role = in->role.n ? in->role : UAR_STR("worker");
	s->nickname = in->nickname;
	s->on_parent_end = in->on_parent_end.n ? in->on_parent_end : UAR_STR("close");
	s->origin_tool = in->origin_tool;
	s->depth = a->depth + 1;
	s->fingerprint = fingerprint(c);
	s->child_session_id = ctl_print(
		c, uar_arena_printf(c->e.env->arena, UAR_SUBAGENT_THREAD "%.*s", UAR_FMT(id)));
	give_turn(c, s, in->message, UAR_STR_NONE);
	if (c->e.err)
		return;
	emit_spawned(c, s);
	if (t)
		ctl_delegate(c, t, "subagent", id);
	tell(c, s, false);
}

void ctl_spawn_subagent(struct ctl *c)
{
	const struct uar_ctl_spawn_subagent *in = &c->in->spawn_subagent;
	uar_str id = in->subagent_id.n ? in->subagent_id : uar_emit_id(&c->e);
	struct uar_row_subagent *there =
		in->subagent_id.n ? ctl_row(c, UAR_ROW_SUBAGENT, id) : NULL;
	struct ctl_ancestry a;
	uar_str turn_id;

	if (c->waits || !ctl_check_child_id(c, id, "/subagent_id"))
		return;
	if (there && uar_str_eq(there->thread_id, in->thread_id)) {
		tell(c, there, true);
		return;
	}
	if (there) {
		ctl_refuse(c, UAR_ESTATE, "/subagent_id", "another thread has a child of that id");
		return;
	}
	turn_id = turn_of_parent(c);
	there = turn_id.n ? find_earlier(c, fingerprint(c)) : NULL;
	if (there) {
		adopt(c, there, turn_id);
		return;
	}
	a = ctl_ancestry(c);
	if (!c->e.err)
		make_child(c, id, turn_id, &a);
}

/* --- input and resume ------------------------------------------------------------------------ */

struct uar_row_subagent *ctl_find_subagent(struct ctl *c, uar_str id)
{
	struct uar_row_subagent *s = ctl_row(c, UAR_ROW_SUBAGENT, id);

	if (!s && !c->waits)
		ctl_refuse(c, UAR_ENOTFOUND, "/subagent_id", "there is no subagent %.*s",
			   UAR_FMT(id));
	return s;
}

static void emit_input(struct ctl *c, const struct uar_row_subagent *s, uar_str message)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "kind", "text");
	uar_jw_str(w, "preview", uar_str_utf8_prefix(message, UAR_LIMIT_SUBAGENT_SUMMARY));
	ctl_put_who(w, "source", c->in);
	uar_jw_int(w, "index", s->turns - 1);
	ctl_refer(c, "input_ref",
		  ctl_print(c, uar_arena_printf(c->e.env->arena, "input://%.*s/0",
						UAR_FMT(s->last_turn_id))));
	ctl_name_subagent(c, s);
	uar_emit(&c->e, UAR_EV_SUBAGENT_INPUT, EMIT_SESSION);
}

static void begin_again(struct ctl *c, struct uar_row_subagent *s, const char *reason)
{
	if (s->open_turns > 1)
		return;
	s->ended_at = 0;
	s->status_reason = s->last_error = UAR_STR_NONE;
	ctl_change_subagent_status(c, s, "pending", reason);
}

static bool was_sent(struct ctl *c, const struct uar_row_subagent *s, uar_str input_id)
{
	uar_str id = input_id.n ? uar_arena_printf(c->e.env->arena, "%.*s.%.*s",
						   UAR_FMT(s->child_session_id), UAR_FMT(input_id))
				: UAR_STR_NONE;

	return id.n && ctl_row(c, UAR_ROW_SUBAGENT_TURN, id);
}

void ctl_send_subagent_input(struct ctl *c)
{
	const struct uar_ctl_send_subagent_input *in = &c->in->send_subagent_input;
	struct uar_row_subagent *s = ctl_find_subagent(c, in->subagent_id);

	if (!s)
		return;
	if (was_sent(c, s, in->input_id)) {
		tell(c, s, true);
		return;
	}
	if (ctl_subagent_is_closed(s))
		ctl_refuse(c, UAR_ESTATE, "/subagent_id",
			   "the child was closed: resume_subagent lets it go on");
	check_task(c, s);
	if (c->waits || c->e.err)
		return;
	give_turn(c, s, in->message, in->input_id);
	if (c->e.err)
		return;
	emit_input(c, s, in->message);
	begin_again(c, s, "input");
	tell(c, s, false);
}

void ctl_resume_subagent(struct ctl *c)
{
	const struct uar_ctl_resume_subagent *in = &c->in->resume_subagent;
	struct uar_row_subagent *s = ctl_find_subagent(c, in->subagent_id);
	const struct uar_row_subagent_turn *last;

	if (!s)
		return;
	if (!uar_subagent_at_rest(s)) {
		ctl_refuse(c, UAR_ESTATE, "/subagent_id", "the child is at work");
		return;
	}
	last = in->message.n ? NULL : ctl_row(c, UAR_ROW_SUBAGENT_TURN, s->last_turn_id);
	if (c->waits)
		return;
	give_turn(c, s, last ? last->message : in->message, UAR_STR_NONE);
	if (c->e.err)
		return;
	s->resumed |= ctl_subagent_is_closed(s);
	begin_again(c, s, "resumed");
	tell(c, s, false);
}

/* --- close ----------------------------------------------------------------------------------- */

static void emit_closed(struct ctl *c, const struct uar_row_subagent *s, uar_str reason)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "closed");
	uar_jw_str(w, "reason", reason);
	ctl_put_who(w, "closed_by", c->in);
	uar_jw_bool(w, "released", s->open_turns == 0);
	ctl_name_subagent(c, s);
	uar_emit(&c->e, UAR_EV_SUBAGENT_CLOSED, EMIT_SESSION);
}

/* The runs of its open turns are asked to stop, by the shell. */
static void cancel_turns(struct ctl *c, const struct uar_row_subagent *s)
{
	const struct uar_need need = { .kind = UAR_ROW_SUBAGENT_TURN,
				       .parent = s->row.id,
				       .open = true };
	const struct uar_loaded *turns = s->open_turns ? ctl_load(c, &need) : NULL;

	for (size_t i = 0; turns && i < turns->count && !c->e.err; i++) {
		struct uar_row_subagent_turn *t = ctl_row_of(c, &turns->rows[i]);

		if (t)
			((struct uar_row_subagent_turn *)ctl_change(c, t))->cancel = true;
	}
}

void ctl_close_subagent(struct ctl *c)
{
	const struct uar_ctl_close_subagent *in = &c->in->close_subagent;
	struct uar_row_subagent *s = ctl_find_subagent(c, in->subagent_id);

	if (!s)
		return;
	if (ctl_subagent_is_closed(s)) {
		tell(c, s, true);
		return;
	}
	cancel_turns(c, s);
	if (c->waits)
		return;
	ctl_change(c, s);
	s->row.status = UAR_STR("closed");
	s->resumed = false;
	s->status_reason = in->reason.n ? in->reason : UAR_STR("requested");
	s->row.open = s->open_turns > 0;
	s->ended_at = c->e.env->now_us;
	emit_closed(c, s, s->status_reason);
	tell(c, s, false);
}
