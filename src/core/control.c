/* control.c - the table of commands, and the road from a command to its handler. */
#include "core/budget.h"
#include "core/control_int.h"
#include "core/limits.h"
#include "event/limits.h"

#define CMD(KIND, NAME, SCOPE, MODE, DOC) static const struct uar_field NAME##_fields[] = {
#define O(CMD, TYPE, NAME, MAX, DOC)                                                               \
	{ #NAME, UAR_F_##TYPE, false, offsetof(struct uar_ctl_##CMD, NAME), MAX, NULL, DOC },
#define M(CMD, TYPE, NAME, MAX, DOC)                                                               \
	{ #NAME, UAR_F_##TYPE, true, offsetof(struct uar_ctl_##CMD, NAME), MAX, NULL, DOC },
#define OW(CMD, NAME, WORDS, DOC)                                                                  \
	{ #NAME, UAR_F_WORD, false, offsetof(struct uar_ctl_##CMD, NAME), 0, WORDS, DOC },
#define MW(CMD, NAME, WORDS, DOC)                                                                  \
	{ #NAME, UAR_F_WORD, true, offsetof(struct uar_ctl_##CMD, NAME), 0, WORDS, DOC },
/* The last row is none: a command may have no members. */
#define END(KIND, NAME)                                                                            \
	{                                                                                          \
		NULL, UAR_F_STR, false, 0, 0, NULL, NULL                                           \
	}                                                                                          \
	}                                                                                          \
	;
#include "core/command.def"

const struct uar_control_info uar_control_info[UAR_CTL_COUNT] = {
#define CMD(KIND, NAME, SCOPE, MODE, DOC)                                                          \
	[UAR_CTL_##KIND] = { #NAME,                                                                \
			     UAR_CTL_SCOPE_##SCOPE,                                                \
			     UAR_CTL_MODE_##MODE,                                                  \
			     DOC,                                                                  \
			     { NAME##_fields, ARRAY_LEN(NAME##_fields) - 1 } },
#include "core/command.def"
};

enum uar_control_kind uar_control_kind_of(uar_str name)
{
	int k = 0;

	while (k < UAR_CTL_COUNT && !uar_str_is(name, uar_control_info[k].name))
		k++;
	return (enum uar_control_kind)k;
}

uar_err uar_control_read(enum uar_control_kind kind, const struct uar_json *input,
			 struct uar_arena *arena, struct uar_control *out, struct uar_error *error)
{
	memset(out, 0, sizeof *out);
	out->kind = kind;
	/* Every struct begins with `given`, which the union shares. */
	return uar_fields_read(&uar_control_info[kind].fields, input, arena, &out->given,
			       &out->given, error);
}

uar_str uar_control_str(const struct uar_control *c, const char *name)
{
	const struct uar_fields *f = &uar_control_info[c->kind].fields;

	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->at[i].name, name) && f->at[i].kind <= UAR_F_ANY)
			return *(const uar_str *)((const char *)&c->given + f->at[i].offset);
	return UAR_STR_NONE;
}

bool uar_control_given(const struct uar_control *c, const char *name)
{
	const struct uar_fields *f = &uar_control_info[c->kind].fields;

	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->at[i].name, name))
			return c->given >> i & 1;
	return false;
}

/* --- rows ------------------------------------------------------------------------------------ */

static bool same_need(const struct uar_need *a, const struct uar_need *b)
{
	return a->kind == b->kind && uar_str_eq(a->id, b->id) && uar_str_eq(a->parent, b->parent) &&
	       uar_str_eq(a->tag, b->tag) && uar_str_eq(a->session_id, b->session_id) &&
	       uar_str_eq(a->after, b->after) && a->open == b->open && a->limit == b->limit;
}

static void add_need(struct ctl *c, const struct uar_need *need)
{
	struct uar_control_update *u = c->u;

	for (size_t i = 0; i < u->need_count; i++)
		if (same_need(&u->needs[i], need))
			return;
	if (u->need_count < UAR_CONTROL_NEEDS)
		u->needs[u->need_count++] = *need;
}

const struct uar_loaded *ctl_load(struct ctl *c, const struct uar_need *need)
{
	UAR_LIST_EACH (it, c->loaded) {
		const struct uar_loaded *l = UAR_OWNER(it, struct uar_loaded, node);

		if (same_need(&l->need, need))
			return l;
	}
	add_need(c, need);
	c->waits = true;
	return NULL;
}

static struct ctl_row *find_changed(struct ctl *c, enum uar_row_kind kind, uar_str id)
{
	for (struct ctl_row *r = c->rows; r; r = r->next)
		if (r->typed->kind == kind && uar_str_eq(r->typed->id, id))
			return r;
	return NULL;
}

static void *unpack(struct ctl *c, const struct uar_row *row)
{
	size_t size = uar_row_info[row->kind].size;
	void *typed = uar_arena_alloc(c->e.env->arena, size);

	if (!typed)
		ctl_fail(c, UAR_ENOMEM);
	else if (!c->e.err)
		c->e.err = uar_row_unpack(row, c->e.env->arena, typed, size, c->e.error);
	return c->e.err ? NULL : typed;
}

static struct ctl_row *remember(struct ctl *c, struct uar_row *typed)
{
	struct ctl_row *r = uar_arena_alloc(c->e.env->arena, sizeof *r);

	if (!r) {
		ctl_fail(c, UAR_ENOMEM);
		return NULL;
	}
	*r = (struct ctl_row){ .next = c->rows, .typed = typed };
	c->rows = r;
	return r;
}

void *ctl_row(struct ctl *c, enum uar_row_kind kind, uar_str id)
{
	const struct uar_need need = { .kind = kind, .id = id };
	struct ctl_row *known = find_changed(c, kind, id);
	const struct uar_loaded *l;
	struct uar_row *typed;

	if (known)
		return known->typed;
	l = c->e.err ? NULL : ctl_load(c, &need);
	if (!l || !l->count)
		return NULL;
	typed = unpack(c, &l->rows[0]);
	return typed && remember(c, typed) ? typed : NULL;
}

void *ctl_row_of(struct ctl *c, const struct uar_row *row)
{
	struct ctl_row *known = find_changed(c, row->kind, row->id);
	struct uar_row *typed;

	if (known)
		return known->typed;
	typed = unpack(c, row);
	return typed && remember(c, typed) ? typed : NULL;
}

/* Whose budgets bear what a child is told to do. */
uar_str ctl_budgets(struct ctl *c)
{
	uar_str budgets = UAR_STR_NONE;
	uar_err e = uar_budgets_of(c->in->giver, c->e.env->arena, &budgets);

	if (e == UAR_ETOOBIG)
		ctl_refuse(c, UAR_ESTATE, NULL,
			   "%d budgets bear this run already: it starts no others", UAR_BUDGETS);
	else if (e)
		ctl_fail(c, e);
	else if (c->in->giver && c->in->giver_here)
		uar_core_open_account(&c->e, c->in->giver);
	return budgets;
}

void *ctl_new_row(struct ctl *c, enum uar_row_kind kind, uar_str id)
{
	struct uar_row *typed = uar_arena_alloc(c->e.env->arena, uar_row_info[kind].size);
	struct ctl_row *r;

	if (!typed) {
		ctl_fail(c, UAR_ENOMEM);
		return NULL;
	}
	*typed = (struct uar_row){
		.kind = kind, .id = id, .created_us = c->e.env->now_us, .fresh = true
	};
	r = remember(c, typed);
	return r ? ctl_change(c, typed) : NULL;
}

void *ctl_change(struct ctl *c, void *typed)
{
	struct uar_row *row = typed;
	struct ctl_row *r = find_changed(c, row->kind, row->id);

	if (r && r->typed == row) {
		r->changed = true;
		row->updated_us = c->e.env->now_us;
	}
	return typed;
}

static void add_row(struct ctl *c, const struct uar_row *row)
{
	struct uar_control_update *u = c->u;

	if (u->row_count == UAR_CONTROL_ROWS)
		c->e.err =
			uar_error_set(c->e.error, UAR_ETOOBIG,
				      "the command concerns more than %d rows: give it for parts "
				      "of the tree",
				      UAR_CONTROL_ROWS);
	else
		u->rows[u->row_count++] = *row;
}

/* The rows that the command changed, and those that the run it moved has changed: its
 * questions. */
static void pack_rows(struct ctl *c)
{
	const struct uar_decision *d = &c->u->d;

	for (struct ctl_row *r = c->rows; r && !c->e.err; r = r->next) {
		if (!r->changed)
			continue;
		c->e.err = uar_row_pack(r->typed, c->e.env->arena, c->e.error);
		if (!c->e.err)
			add_row(c, r->typed);
	}
	for (size_t i = 0; i < d->row_count && !c->e.err; i++)
		add_row(c, &d->rows[i]);
}

/* --- events and results ---------------------------------------------------------------- */

void ctl_fail(struct ctl *c, uar_err e)
{
	if (!c->e.err)
		c->e.err = e;
}

void ctl_refuse(struct ctl *c, uar_err e, const char *where, const char *fmt, ...)
{
	char text[UAR_LIMIT_ERROR_TEXT];
	va_list ap;

	if (c->e.err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (where)
		uar_error_where(c->e.error, "%s", where);
	c->e.err = uar_error_set(c->e.error, e, "%s", text);
}

struct uar_jw *ctl_result(struct ctl *c)
{
	uar_buf_clear(&c->result);
	c->rw = uar_jw_begin(&c->result);
	uar_jw_obj(&c->rw, NULL);
	return &c->rw;
}

void ctl_result_end(struct ctl *c)
{
	uar_err e;

	uar_jw_close(&c->rw);
	e = uar_jw_end(&c->rw);
	if (e) {
		ctl_fail(c, e);
		return;
	}
	c->u->result = uar_arena_str(c->e.env->arena, uar_buf_str(&c->result));
	if (!c->u->result.p)
		ctl_fail(c, UAR_ENOMEM);
}

/* --- from command to handler ---------------------------------------------------------------- */

typedef void control_handler(struct ctl *c);

/* NULL: the shell answers it by other means (a read model, a run). */
static control_handler *const handlers[UAR_CTL_COUNT] = {
	[UAR_CTL_REVOKE_GRANT] = ctl_revoke_grant,
	[UAR_CTL_UPDATE_PERMISSIONS] = ctl_update_permissions,
	[UAR_CTL_RECORD_PERMISSION] = ctl_record_permission,
	[UAR_CTL_WRITE_PROCESS_STDIN] = ctl_write_process_stdin,
	[UAR_CTL_TERMINATE_PROCESS] = ctl_terminate_process,
	[UAR_CTL_CREATE_TASK] = ctl_create_task,
	[UAR_CTL_UPDATE_TASK] = ctl_update_task,
	[UAR_CTL_APPEND_TASK_PROGRESS] = ctl_append_task_progress,
	[UAR_CTL_PAUSE_TASK] = ctl_pause_task,
	[UAR_CTL_RESUME_TASK] = ctl_resume_task,
	[UAR_CTL_CANCEL_TASK] = ctl_cancel_task,
	[UAR_CTL_COMPLETE_TASK] = ctl_complete_task,
	[UAR_CTL_FAIL_TASK] = ctl_fail_task,
	[UAR_CTL_LINK_TASKS] = ctl_link_tasks,
	[UAR_CTL_UNLINK_TASKS] = ctl_unlink_tasks,
	[UAR_CTL_UPDATE_SESSION] = ctl_update_session,
	[UAR_CTL_UPDATE_THREAD] = ctl_update_thread,
	[UAR_CTL_RECORD_SNAPSHOT] = ctl_record_snapshot,
	[UAR_CTL_RECORD_WINDOW] = ctl_record_window,
	[UAR_CTL_RECORD_EVIDENCE] = ctl_record_evidence,
	[UAR_CTL_CONNECT_CHANNEL] = ctl_connect_channel,
	[UAR_CTL_RECONNECT_CHANNEL] = ctl_reconnect_channel,
	[UAR_CTL_DISCONNECT_CHANNEL] = ctl_disconnect_channel,
	[UAR_CTL_ACK_EVENTS] = ctl_ack_events,
	[UAR_CTL_ATTACH_CHANNEL] = ctl_attach_channel,
	[UAR_CTL_DROP_CHANNEL] = ctl_drop_channel,
	[UAR_CTL_FORWARD_PERMISSION] = ctl_forward_permission,
	[UAR_CTL_RETURN_PERMISSION] = ctl_return_permission,
	[UAR_CTL_START_TASK] = ctl_start_task,
	[UAR_CTL_RETRY_TASK] = ctl_retry_task,
	[UAR_CTL_SETTLE_TASK] = ctl_settle_task,
	[UAR_CTL_START_ATTEMPT] = ctl_start_attempt,
	[UAR_CTL_FOLLOW_ATTEMPT] = ctl_follow_attempt,
	[UAR_CTL_RECORD_ARTIFACT_ERROR] = ctl_record_artifact_error,
	[UAR_CTL_FORK_THREAD] = ctl_fork_thread,
	[UAR_CTL_ROLLBACK_THREAD] = ctl_rollback_thread,
	[UAR_CTL_SUBMIT_TURN] = ctl_submit_turn,
	[UAR_CTL_INTERRUPT_TURN] = ctl_interrupt_turn,
	[UAR_CTL_RESUME_THREAD] = ctl_resume_thread,
	[UAR_CTL_REMOVE_QUEUED_TURN] = ctl_remove_queued_turn,
	[UAR_CTL_PROMOTE_QUEUED_TURN] = ctl_promote_queued_turn,
	[UAR_CTL_EDIT_QUEUED_TURN] = ctl_edit_queued_turn,
	[UAR_CTL_PAUSE_QUEUE] = ctl_pause_queue,
	[UAR_CTL_RESUME_QUEUE] = ctl_resume_queue,
	[UAR_CTL_SPAWN_SUBAGENT] = ctl_spawn_subagent,
	[UAR_CTL_SEND_SUBAGENT_INPUT] = ctl_send_subagent_input,
	[UAR_CTL_RESUME_SUBAGENT] = ctl_resume_subagent,
	[UAR_CTL_CLOSE_SUBAGENT] = ctl_close_subagent,
	[UAR_CTL_FOLLOW_SUBAGENT] = ctl_follow_subagent,
	[UAR_CTL_SETTLE_SUBAGENT] = ctl_settle_subagent,
	[UAR_CTL_CREATE_JOB] = ctl_create_job,
	[UAR_CTL_CANCEL_JOB] = ctl_cancel_job,
	[UAR_CTL_RETRY_JOB_ITEM] = ctl_retry_job_item,
	[UAR_CTL_SETTLE_JOB_ITEM] = ctl_settle_job_item,
	[UAR_CTL_EXPIRE_JOB] = ctl_expire_job,
};

bool uar_control_decided(enum uar_control_kind kind)
{
	return handlers[kind] != NULL;
}

static void open_session(struct ctl *c)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "source", "api");
	uar_jw_time(w, "created_at", c->e.env->now_us);
	uar_jw_obj(w, "metadata");
	uar_jw_close(w);
	uar_emit(&c->e, UAR_EV_SESSION_CREATED, EMIT_SESSION);
}

/* --- idempotency ----------------------------------------------------------------------------- */

static bool is_forgotten(const struct ctl *c, const struct uar_row_outcome *o)
{
	return o->row.updated_us + (int64_t)UAR_LIMIT_OUTCOME_SECONDS * 1000000 < c->e.env->now_us;
}

/* True: the command was there before; the first outcome is the answer. */
static bool is_repeated(struct ctl *c)
{
	const struct uar_row_outcome *o;

	if (!c->in->outcome_id.n)
		return false;
	o = ctl_row(c, UAR_ROW_OUTCOME, c->in->outcome_id);
	if (!o || is_forgotten(c, o))
		return false;
	if (!uar_str_eq(o->fingerprint, c->in->fingerprint))
		ctl_refuse(c, UAR_EKEYREUSED, "/idempotency_key", "%s",
			   uar_err_text(UAR_EKEYREUSED));
	c->u->result = o->result;
	c->u->event_ids = o->event_ids;
	return true;
}

static uar_str ids_of_events(struct ctl *c)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CONTROL_RESULT);
	struct uar_jw w = uar_jw_begin(&text);
	uar_str out = UAR_STR_NONE;

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < c->u->d.event_count; i++)
		uar_jw_str(&w, NULL, c->u->d.events[i].event_id);
	uar_jw_close(&w);
	if (!uar_jw_end(&w))
		out = uar_arena_str(c->e.env->arena, uar_buf_str(&text));
	if (!out.p)
		ctl_fail(c, UAR_ENOMEM);
	uar_buf_fini(&text);
	return out;
}

void ctl_note_command(struct ctl *c)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "command", uar_control_info[c->in->kind].name);
	uar_jw_cstr(w, "status", "no_op");
	uar_emit_vendor(&c->e, "vendor.uar.command.recorded", EMIT_SESSION);
}

static void keep_outcome(struct ctl *c)
{
	struct uar_row_outcome *o;

	if (!c->in->outcome_id.n || c->e.err || c->u->again)
		return;
	if (!c->u->d.event_count)
		ctl_note_command(c);
	o = ctl_row(c, UAR_ROW_OUTCOME, c->in->outcome_id); /* one that is forgotten makes way */
	o = o ? ctl_change(c, o) : ctl_new_row(c, UAR_ROW_OUTCOME, c->in->outcome_id);
	if (!o)
		return;
	o->row.status = UAR_STR("done");
	o->row.tag = uar_str_c(uar_control_info[c->in->kind].name);
	o->fingerprint = c->in->fingerprint;
	o->result = c->u->result;
	o->event_ids = ids_of_events(c);
}

static uar_err decide(struct ctl *c)
{
	if (is_repeated(c))
		return c->e.err;
	if (c->e.s->sequence == 0 && !c->in->fresh) /* a run opens its own */
		open_session(c);
	handlers[c->in->kind](c);
	if (c->waits)
		return UAR_ENEEDS;
	keep_outcome(c);
	if (!c->e.err)
		pack_rows(c);
	if (c->e.err == UAR_ETOOBIG && c->e.error && !c->e.error->text[0])
		uar_error_set(c->e.error, UAR_ETOOBIG,
			      "the members are together longer than the %d bytes of an event",
			      UAR_LIMIT_EVENT_BYTES);
	return c->e.err;
}

uar_err uar_core_control(const struct uar_core_env *env, struct uar_session *s,
			 const struct uar_control *in, const struct uar_list *loaded,
			 struct uar_control_update *out, struct uar_error *error)
{
	struct uar_run none; /* events of no run are folded into nothing */
	struct ctl c = { .e = { .env = env, .s = s, .r = &none, .d = &out->d, .error = error },
			 .in = in,
			 .loaded = loaded,
			 .u = out,
			 .result = uar_buf_make(UAR_LIMIT_CONTROL_RESULT) };
	uar_err e;

	out->d.event_count = out->d.row_count = 0;
	out->row_count = out->need_count = 0;
	out->moved = UAR_CONTROL_NO_RUN;
	out->again = false;
	out->result = out->event_ids = UAR_STR_NONE;
	if (!handlers[in->kind])
		return uar_error_set(error, UAR_ENOTIMPL, "%s is not available",
				     uar_control_info[in->kind].name);
	uar_run_init(&none);
	e = decide(&c);
	uar_run_fini(&none);
	uar_buf_fini(&c.result);
	return e;
}
