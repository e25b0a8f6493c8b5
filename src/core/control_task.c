/* control_task.c - tasks that were made by a command: created, changed, reported on.
 *
 * Such a task has a row; the tasks that come with plain runs have none. */
#include "core/control_int.h"
#include "core/limits.h"

/* --- what a task's record shows -------------------------------------------------------------- */

static void put_json(struct uar_jw *w, const char *key, uar_str json, const char *empty)
{
	uar_jw_raw(w, key, json.n ? json : uar_str_c(empty));
}

static void put_purpose(struct uar_jw *w, const struct uar_row_task *t)
{
	uar_jw_str_or_null(w, "title", t->title);
	uar_jw_str(w, "objective", t->objective);
	uar_jw_str_or_null(w, "task_kind", t->task_kind);
	uar_jw_str_or_null(w, "task_family", t->task_family);
	uar_jw_str(w, "visibility", t->visibility);
	uar_jw_str_or_null(w, "priority", t->priority);
	put_json(w, "requested_by", t->requested_by, "null");
	put_json(w, "owner", t->task_owner, "null");
	put_json(w, "assignee", t->assignee, "null");
	put_json(w, "scope", t->scope, "{}");
	put_json(w, "constraints", t->constraints, "{}");
	put_json(w, "task_profile", t->task_profile, "null");
	put_json(w, "acceptance", t->acceptance, "[]");
	uar_jw_str_or_null(w, "agent_id", t->agent_id);
}

static void put_state(struct uar_jw *w, const struct uar_row_task *t)
{
	uar_jw_str(w, "status", t->row.status);
	uar_jw_str_or_null(w, "status_reason", t->status_reason);
	uar_jw_str_or_null(w, "native_status", t->native_status);
	if (t->has_progress)
		uar_jw_double(w, "progress", t->progress);
	else
		uar_jw_null(w, "progress");
	uar_jw_str_or_null(w, "phase", t->phase);
	uar_jw_str_or_null(w, "message", t->message);
	uar_jw_str_or_null(w, "current_step", t->current_step);
	uar_jw_str_or_null(w, "current_run_id", t->current_run_id);
	uar_jw_int(w, "attempt_count", t->attempts);
	uar_jw_bool(w, "cancel_requested", t->cancel_requested);
	uar_jw_int(w, "blockers", t->blockers);
	uar_jw_str(w, "delivery_state", t->delivery_state);
	put_json(w, "accepted_facts", t->accepted_facts, "[]");
	put_json(w, "artifacts", t->artifact_refs, "[]");
	put_json(w, "evidence_refs", t->evidence_refs, "[]");
	put_json(w, "result_refs", t->result_refs, "[]");
	put_json(w, "last_error", t->last_error, "null");
	uar_jw_int(w, "revision", t->revision);
	uar_jw_time(w, "created_at", t->row.created_us);
	uar_jw_time(w, "updated_at", t->row.updated_us);
	uar_jw_time_or_null(w, "started_at", t->started_at);
	uar_jw_time_or_null(w, "ended_at", t->ended_at);
}

/* The commands that would change the task as its row is now. What only the command itself can
 * know (acceptance facts, tasks above and below) is not looked at. */
static void put_can(struct uar_jw *w, const struct uar_row_task *t)
{
	bool over = ctl_task_over(t), archived = uar_str_is(t->row.status, "archived");
	bool goes_on = !over && !t->cancel_requested;
	bool may_begin = !ctl_why_not_begin(t), may_end = goes_on && !t->run_live;
	const struct {
		enum uar_control_kind kind;
		bool possible;
	} all[] = {
		{ UAR_CTL_UPDATE_TASK, !archived }, /* one that is over is archived with it */
		{ UAR_CTL_START_TASK, !over && may_begin },
		{ UAR_CTL_APPEND_TASK_PROGRESS, !over },
		{ UAR_CTL_PAUSE_TASK,
		  goes_on && !t->paused && !ctl_is_draft(t) && !ctl_at_work(t) },
		{ UAR_CTL_RESUME_TASK, goes_on && t->paused },
		{ UAR_CTL_CANCEL_TASK, goes_on },
		{ UAR_CTL_RETRY_TASK, over && !archived && may_begin },
		{ UAR_CTL_COMPLETE_TASK, may_end && !t->blockers },
		{ UAR_CTL_FAIL_TASK, may_end },
	};

	uar_jw_arr(w, "can");
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].possible)
			uar_jw_cstr(w, NULL, uar_control_info[all[i].kind].name);
	uar_jw_close(w);
}

void uar_task_write(struct uar_jw *w, const struct uar_row_task *t)
{
	uar_jw_str(w, "task_id", t->row.id);
	uar_jw_str_or_null(w, "parent_task_id", t->row.parent);
	uar_jw_str(w, "root_task_id", t->root_task_id);
	uar_jw_str(w, "session_id", t->row.session_id);
	uar_jw_str_or_null(w, "thread_id", t->thread_id);
	uar_jw_str_or_null(w, "turn_id", t->turn_id);
	put_purpose(w, t);
	put_state(w, t);
	put_can(w, t);
}

void ctl_tell_task(struct ctl *c, struct uar_row_task *t)
{
	struct uar_jw *w;

	if (c->e.err || c->waits)
		return;
	if (!t->row.session_id.n) /* it is new */
		t->row.session_id = c->e.s->session_id;
	w = ctl_result(c);
	uar_jw_obj(w, "task");
	uar_task_write(w, t);
	uar_jw_close(w);
	ctl_result_end(c);
}

bool ctl_is_draft(const struct uar_row_task *t)
{
	return uar_str_is(t->base_status, "draft");
}

bool ctl_at_work(const struct uar_row_task *t)
{
	return t->run_live && !uar_str_is(t->base_status, "queued");
}

/* An attempt that has begun goes on: it waits for nobody. */
static bool is_held(const struct uar_row_task *t)
{
	return t->blockers > 0 && !ctl_is_draft(t) && !ctl_at_work(t);
}

void ctl_settle_status(struct uar_row_task *t)
{
	t->row.status = t->paused    ? UAR_STR("paused")
			: is_held(t) ? UAR_STR("blocked")
				     : t->base_status;
}

/* --- facts ----------------------------------------------------------------------------------- */

void ctl_emit_task(struct ctl *c, const struct uar_row_task *t, enum uar_event_class cls)
{
	uar_emit_name(&c->e, UAR_ID_TASK, t->row.id);
	uar_emit_name(&c->e, UAR_ID_THREAD, t->thread_id);
	uar_emit(&c->e, cls, EMIT_SESSION);
}

void ctl_put_who(struct uar_jw *w, const char *key, const struct uar_control *in)
{
	uar_emit_who(w, key, "user", in->owner.user);
}

static void emit_created(struct ctl *c, const struct uar_row_task *t, uar_str status)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	if (t->title.n)
		uar_jw_str(w, "title", t->title);
	uar_jw_str(w, "objective", t->objective);
	if (t->task_kind.n)
		uar_jw_str(w, "task_kind", t->task_kind);
	if (t->task_family.n)
		uar_jw_str(w, "task_family", t->task_family);
	uar_jw_str(w, "visibility", t->visibility);
	uar_jw_str(w, "status", status);
	if (t->priority.n)
		uar_jw_str(w, "priority", t->priority);
	uar_jw_raw(w, "requested_by", t->requested_by);
	uar_jw_raw(w, "owner", t->task_owner);
	if (t->assignee.n)
		uar_jw_raw(w, "assignee", t->assignee);
	put_json(w, "scope", t->scope, "{}");
	put_json(w, "constraints", t->constraints, "{}");
	if (t->task_profile.n)
		uar_jw_raw(w, "task_profile", t->task_profile);
	put_json(w, "acceptance", t->acceptance, "[]");
	if (t->row.parent.n)
		uar_jw_str(w, "parent_task_id", t->row.parent);
	uar_jw_str(w, "root_task_id", t->root_task_id);
	uar_jw_bool(w, "implicit", false);
	if (t->agent_id.n)
		uar_jw_str(w, "agent_id", t->agent_id);
	if (t->input.n)
		uar_jw_raw(w, "input", t->input);
	ctl_emit_task(c, t, UAR_EV_TASK_CREATED);
}

static void emit_accepted(struct ctl *c, const struct uar_row_task *t)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "accepted");
	ctl_put_who(w, "accepted_by", c->in);
	ctl_emit_task(c, t, UAR_EV_TASK_ACCEPTED);
}

void ctl_emit_standing(struct ctl *c, const struct uar_row_task *t)
{
	if (uar_str_is(t->row.status, "accepted"))
		emit_accepted(c, t);
	else if (uar_str_is(t->row.status, "blocked"))
		ctl_emit_blocked(c, t, UAR_STR_NONE);
	else if (uar_str_is(t->row.status, "waiting_input") && !t->run_live)
		ctl_emit_waiting(c, t);
}

/* --- create_task ----------------------------------------------------------------------------- */

static uar_str who_text(struct ctl *c)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	uar_str out = UAR_STR_NONE;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "type", "user");
	uar_jw_str(&w, "id", c->in->owner.user);
	uar_jw_close(&w);
	if (!uar_jw_end(&w))
		out = uar_arena_str(c->e.env->arena, uar_buf_str(&text));
	if (!out.p)
		ctl_fail(c, UAR_ENOMEM);
	uar_buf_fini(&text);
	return out;
}

/* Nothing new starts below a task that is being cancelled. */
static const struct uar_row_task *parent_of(struct ctl *c, uar_str id)
{
	const struct uar_row_task *parent = id.n ? ctl_row(c, UAR_ROW_TASK, id) : NULL;

	if (!id.n || c->waits)
		return NULL;
	if (!parent)
		ctl_refuse(c, UAR_ENOTFOUND, "/parent_task_id", "there is no task %.*s",
			   UAR_FMT(id));
	else if (!uar_str_eq(parent->row.session_id, c->e.s->session_id))
		ctl_refuse(c, UAR_ESTATE, "/session_id",
			   "a task lives in the session of its parent: %.*s",
			   UAR_FMT(parent->row.session_id));
	else if (parent->depth + 1 >= UAR_LIMIT_TASK_DEPTH)
		ctl_refuse(c, UAR_ETOOBIG, "/parent_task_id", "tasks may be nested %d deep",
			   UAR_LIMIT_TASK_DEPTH);
	else if (parent->cancel_requested)
		ctl_refuse(c, UAR_ESTATE, "/parent_task_id",
			   "the parent is being cancelled: nothing new starts below it");
	return parent;
}

static void fill_task(struct ctl *c, struct uar_row_task *t, const struct uar_row_task *parent)
{
	const struct uar_ctl_create_task *in = &c->in->create_task;

	t->row.parent = in->parent_task_id;
	t->row.tag = t->thread_id = in->thread_id;
	t->root_task_id = parent ? parent->root_task_id : t->row.id;
	t->depth = parent ? parent->depth + 1 : 0;
	t->agent_id = in->agent_id;
	t->title = in->title;
	t->objective = in->objective;
	t->task_kind = in->task_kind;
	t->task_family = in->task_family;
	t->visibility = in->visibility.n ? in->visibility : UAR_STR("foreground");
	t->priority = in->priority;
	t->requested_by = t->task_owner = who_text(c);
	t->assignee = in->assignee;
	t->scope = in->scope;
	t->constraints = in->constraints;
	t->task_profile = in->task_profile;
	t->acceptance = in->acceptance;
	t->input = in->input;
	t->delivery_state = UAR_STR("not_applicable");
}

void ctl_create_task(struct ctl *c)
{
	const struct uar_ctl_create_task *in = &c->in->create_task;
	bool draft = uar_str_is(in->status, "draft");
	uar_str id = in->task_id.n ? in->task_id : uar_emit_id(&c->e);
	struct uar_row_task *t = in->task_id.n ? ctl_row(c, UAR_ROW_TASK, id) : NULL;
	const struct uar_row_task *parent;

	if (t) { /* the caller's id: the task is there already */
		c->u->d.event_count = 0;
		ctl_tell_task(c, t);
		return;
	}
	parent = parent_of(c, in->parent_task_id);
	if (c->waits || c->e.err)
		return;
	t = ctl_new_row(c, UAR_ROW_TASK, id);
	if (!t)
		return;
	fill_task(c, t, parent);
	t->row.status = t->base_status = draft ? UAR_STR("draft") : UAR_STR("accepted");
	emit_created(c, t, t->row.status);
	if (!draft)
		emit_accepted(c, t);
	ctl_tell_task(c, t);
}

/* --- update_task ----------------------------------------------------------------------------- */

struct uar_row_task *ctl_task(struct ctl *c, uar_str id, const char *where)
{
	struct uar_row_task *t = ctl_row(c, UAR_ROW_TASK, id);

	if (!t && !c->waits)
		ctl_refuse(c, UAR_ENOTFOUND, where, "there is no task %.*s", UAR_FMT(id));
	return t;
}

bool ctl_task_over(const struct uar_row_task *t)
{
	static const char *const over[] = { "completed", "failed",    "lost",
					    "cancelled", "timed_out", "archived" };

	for (size_t i = 0; i < ARRAY_LEN(over); i++)
		if (uar_str_is(t->row.status, over[i]))
			return true;
	return false;
}

/* Members of update_task that are members of the row, by the same name. */
static const char *const plain_members[] = { "objective",    "title",	   "task_kind",
					     "task_family",  "visibility", "priority",
					     "assignee",     "scope",	   "constraints",
					     "task_profile", "acceptance", "agent_id",
					     "input" };

static const struct uar_field *field_named(const struct uar_fields *f, const char *name)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->at[i].name, name))
			return &f->at[i];
	return NULL;
}

static void put_value(struct uar_jw *w, const char *key, const struct uar_field *f, uar_str v)
{
	bool json = f->kind == UAR_F_OBJ || f->kind == UAR_F_ARR || f->kind == UAR_F_ANY;

	if (!v.n)
		uar_jw_null(w, key);
	else if (json)
		uar_jw_raw(w, key, v);
	else
		uar_jw_str(w, key, v);
}

/* Writes {from, to} and changes the member; false: it stays what it is. */
static bool change_member(struct ctl *c, struct uar_jw *w, struct uar_row_task *t, const char *name)
{
	const struct uar_fields *in = &uar_control_info[UAR_CTL_UPDATE_TASK].fields;
	const struct uar_field *from = field_named(in, name);
	const struct uar_field *to = field_named(&uar_row_info[UAR_ROW_TASK].fields, name);
	uar_str *old = (uar_str *)((char *)t + to->offset);
	uar_str now = uar_control_str(c->in, name);

	if (!(c->in->given >> (from - in->at) & 1) || uar_str_eq(*old, now))
		return false;
	uar_jw_obj(w, name);
	put_value(w, "from", to, *old);
	put_value(w, "to", to, now);
	uar_jw_close(w);
	*old = now;
	return true;
}

static void change_members(struct ctl *c, struct uar_row_task *t)
{
	struct uar_jw *w = uar_emit_begin(&c->e);
	bool any = false;

	uar_jw_obj(w, "changed");
	for (size_t i = 0; i < ARRAY_LEN(plain_members); i++)
		any |= change_member(c, w, t, plain_members[i]);
	uar_jw_close(w);
	if (!any)
		return;
	ctl_change(c, t);
	uar_jw_int(w, "revision", ++t->revision);
	ctl_emit_task(c, t, UAR_EV_TASK_UPDATED);
}

static void archive_task(struct ctl *c, struct uar_row_task *t)
{
	struct uar_jw *w;

	if (!ctl_task_over(t)) {
		ctl_refuse(c, UAR_ESTATE, "/status",
			   "the task is %.*s: end it before it is archived",
			   UAR_FMT(t->row.status));
		return;
	}
	if (uar_str_is(t->row.status, "archived"))
		return;
	w = uar_emit_begin(&c->e);
	uar_jw_cstr(w, "status", "archived");
	uar_jw_str(w, "previous_status", t->row.status);
	ctl_put_who(w, "archived_by", c->in);
	ctl_emit_task(c, t, UAR_EV_TASK_ARCHIVED);
	ctl_change(c, t);
	t->row.status = t->base_status = UAR_STR("archived");
}

static void change_status(struct ctl *c, struct uar_row_task *t, uar_str status)
{
	if (uar_str_is(status, "archived")) {
		archive_task(c, t);
	} else if (status.n && ctl_is_draft(t)) {
		emit_accepted(c, t);
		ctl_change(c, t);
		t->base_status = UAR_STR("accepted");
		ctl_settle_status(t);
		if (!uar_str_is(t->row.status, "accepted"))
			ctl_emit_standing(c, t);
	} else if (status.n) {
		ctl_refuse(c, UAR_ESTATE, "/status", "the task is %.*s, not a draft",
			   UAR_FMT(t->row.status));
	}
}

void ctl_update_task(struct ctl *c)
{
	struct uar_row_task *t = ctl_task(c, c->in->update_task.task_id, "/task_id");

	if (!t)
		return;
	if (ctl_task_over(t) && !uar_str_is(c->in->update_task.status, "archived")) {
		ctl_refuse(c, UAR_ESTATE, NULL, "the task is %.*s", UAR_FMT(t->row.status));
		return;
	}
	change_members(c, t);
	change_status(c, t, c->in->update_task.status);
	ctl_tell_task(c, t);
}

/* --- append_task_progress -------------------------------------------------------------------- */

bool ctl_given(const struct ctl *c, const char *name)
{
	const struct uar_fields *f = &uar_control_info[c->in->kind].fields;
	const struct uar_field *field = field_named(f, name);

	return field && c->in->given >> (field - f->at) & 1;
}

static void put_progress(struct ctl *c, struct uar_jw *w)
{
	const struct uar_ctl_append_task_progress *in = &c->in->append_task_progress;

	if (ctl_given(c, "progress"))
		uar_jw_double(w, "progress", in->progress);
	if (in->phase.n)
		uar_jw_str(w, "phase", in->phase);
	if (in->message.n)
		uar_jw_str(w, "message", in->message);
	if (in->current_step.n)
		uar_jw_str(w, "current_step", in->current_step);
	if (in->counters.n)
		uar_jw_raw(w, "counters", in->counters);
	if (in->delivery_state.n)
		uar_jw_str(w, "delivery_state", in->delivery_state);
	if (in->native_status.n)
		uar_jw_str(w, "native_status", in->native_status);
	uar_jw_int(w, "coalesced", 1);
	if (in->output_refs.n)
		uar_emit_refs(&c->e, uar_arena_printf(c->e.env->arena, "{\"output_refs\":%.*s}",
						      UAR_FMT(in->output_refs)));
}

static void keep_progress(struct ctl *c, struct uar_row_task *t)
{
	const struct uar_ctl_append_task_progress *in = &c->in->append_task_progress;

	ctl_change(c, t);
	if (ctl_given(c, "progress")) {
		t->has_progress = true;
		t->progress = in->progress;
	}
	t->phase = in->phase.n ? in->phase : t->phase;
	t->message = in->message.n ? in->message : t->message;
	t->current_step = in->current_step.n ? in->current_step : t->current_step;
	t->delivery_state = in->delivery_state.n ? in->delivery_state : t->delivery_state;
	t->native_status = in->native_status.n ? in->native_status : t->native_status;
}

void ctl_append_task_progress(struct ctl *c)
{
	const struct uar_ctl_append_task_progress *in = &c->in->append_task_progress;
	struct uar_row_task *t = ctl_task(c, in->task_id, "/task_id");

	if (!t)
		return;
	if (ctl_task_over(t))
		ctl_refuse(c, UAR_ESTATE, NULL, "the task is %.*s", UAR_FMT(t->row.status));
	else if (!(in->progress >= 0 && in->progress <= 1))
		ctl_refuse(c, UAR_EINVALID, "/progress", "\"progress\" must be from 0 to 1");
	if (c->e.err)
		return;
	put_progress(c, uar_emit_begin(&c->e));
	ctl_emit_task(c, t, UAR_EV_TASK_PROGRESS);
	keep_progress(c, t);
	ctl_tell_task(c, t);
}
