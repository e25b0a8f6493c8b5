/* a2a_task.c - a run as a task of the public A2A protocol: snapshots and updates.
 *
 * The answer of the agent is one artifact, `answer`, whose parts are pieces of its text; what
 * the run makes are further artifacts. What the run waits for is the message of its status. */
#include "proto/a2a_wire.h"

#include "proto/limits.h"
#include "proto/view.h"

enum state {
	STATE_SUBMITTED,
	STATE_WORKING,
	STATE_INPUT,
	STATE_AUTH,
	STATE_COMPLETED,
	STATE_FAILED,
	STATE_CANCELED,
};
static const char *const state_names[][2] = {
	[STATE_SUBMITTED] = { "TASK_STATE_SUBMITTED", "submitted" },
	[STATE_WORKING] = { "TASK_STATE_WORKING", "working" },
	[STATE_INPUT] = { "TASK_STATE_INPUT_REQUIRED", "input-required" },
	[STATE_AUTH] = { "TASK_STATE_AUTH_REQUIRED", "auth-required" },
	[STATE_COMPLETED] = { "TASK_STATE_COMPLETED", "completed" },
	[STATE_FAILED] = { "TASK_STATE_FAILED", "failed" },
	[STATE_CANCELED] = { "TASK_STATE_CANCELED", "canceled" },
};

/* One run for one reader. */
struct a2a {
	struct uar_view view;
	struct uar_dialect_options o;
	struct uar_frames *out; /* while an event is encoded */
	struct uar_jw w;
	uar_str message_id; /* of the request; empty: it had none */
	int64_t now_us;	    /* of the last event */
	uint64_t sequence;  /* likewise */
	bool begun, working, told_text;
};

const char *uar_a2a_state(uar_str status, bool waits, uar_str waits_for, bool old)
{
	enum state s = STATE_WORKING;

	if (waits)
		s = uar_str_is(waits_for, "permission") ? STATE_AUTH : STATE_INPUT;
	else if (uar_str_is(status, "queued"))
		s = STATE_SUBMITTED;
	else if (uar_str_is(status, "succeeded"))
		s = STATE_COMPLETED;
	else if (uar_str_is(status, "canceled"))
		s = STATE_CANCELED;
	else if (uar_str_is(status, "failed") || uar_str_is(status, "timeout"))
		s = STATE_FAILED;
	return state_names[s][old];
}

static enum state state_of(const struct a2a *a)
{
	const struct uar_view_action *x = a->view.actions;

	if (a->view.end)
		return a->view.end == UAR_VIEW_DONE	   ? STATE_COMPLETED
		       : a->view.end == UAR_VIEW_CANCELLED ? STATE_CANCELED
							   : STATE_FAILED;
	if (!a->view.waiting || !x)
		return a->working ? STATE_WORKING : STATE_SUBMITTED;
	for (; x; x = x->next)
		if (!uar_str_is(x->type, "permission") && !uar_str_is(x->type, "credential"))
			return STATE_INPUT;
	return STATE_AUTH;
}

/* --- parts ------------------------------------------------------------------------------------ */

static void put_text(struct a2a *a, uar_str text)
{
	uar_jw_obj(&a->w, NULL);
	if (a->o.old_peer)
		uar_jw_cstr(&a->w, "kind", "text");
	uar_jw_str(&a->w, "text", text);
	uar_jw_close(&a->w);
}

static void put_action(struct a2a *a, const struct uar_view_action *x)
{
	uar_jw_obj(&a->w, NULL);
	if (a->o.old_peer)
		uar_jw_cstr(&a->w, "kind", "data");
	uar_jw_obj(&a->w, "data");
	uar_jw_str(&a->w, "action_id", x->id);
	uar_jw_str(&a->w, "type", x->type);
	if (x->decisions.n)
		uar_jw_raw(&a->w, "decisions", x->decisions);
	if (x->schema.n)
		uar_jw_raw(&a->w, "schema", x->schema);
	if (x->input.n)
		uar_jw_raw(&a->w, "input", x->input);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
}

static void open_message(struct a2a *a, const char *key, const char *role, const char *old_role,
			 uar_str id)
{
	uar_jw_obj(&a->w, key);
	if (a->o.old_peer)
		uar_jw_cstr(&a->w, "kind", "message");
	uar_jw_str(&a->w, "messageId", id);
	uar_jw_cstr(&a->w, "role", a->o.old_peer ? old_role : role);
	uar_jw_str(&a->w, "taskId", a->view.run_id);
	uar_jw_str(&a->w, "contextId", a->view.thread_id);
	uar_jw_arr(&a->w, "parts");
}

static void close_message(struct a2a *a)
{
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
}

/* What the run asks, or why it ended. */
static void put_status_message(struct a2a *a)
{
	enum state s = state_of(a);
	char id[64];

	if (s != STATE_INPUT && s != STATE_AUTH && s != STATE_FAILED && s != STATE_CANCELED)
		return;
	snprintf(id, sizeof id, "status-%llu", (unsigned long long)a->sequence);
	open_message(a, "message", "ROLE_AGENT", "agent", uar_str_c(id));
	if (s == STATE_FAILED || s == STATE_CANCELED) {
		uar_str why = a->view.end_message;

		put_text(a, why.n		? why
			    : s == STATE_FAILED ? UAR_STR("the task failed")
						: UAR_STR("the task was cancelled"));
		close_message(a);
		return;
	}
	for (const struct uar_view_action *x = a->view.actions; x; x = x->next) {
		put_text(a, x->prompt);
		put_action(a, x);
	}
	close_message(a);
}

static void put_status(struct a2a *a)
{
	uar_jw_obj(&a->w, "status");
	uar_jw_cstr(&a->w, "state", state_names[state_of(a)][a->o.old_peer]);
	put_status_message(a);
	uar_jw_time(&a->w, "timestamp", a->now_us / 1000 * 1000);
	uar_jw_close(&a->w);
}

/* --- artifacts -------------------------------------------------------------------------------- */

static void open_artifact(struct a2a *a, const char *key, uar_str id, uar_str name)
{
	uar_jw_obj(&a->w, key);
	uar_jw_str(&a->w, "artifactId", id);
	if (name.n)
		uar_jw_str(&a->w, "name", name);
	uar_jw_arr(&a->w, "parts");
}

static bool is_text(const struct uar_view_message *m)
{
	return m->kind == UAR_VIEW_TEXT && m->text.n;
}

static bool is_artifact(const struct uar_view_message *m)
{
	return m->kind == UAR_VIEW_ACTIVITY && uar_str_is(m->activity_type, "uar.artifact");
}

/* Each message of the agent is a part. */
static bool put_answer(struct a2a *a, const char *key, bool even_empty)
{
	bool any = false;

	for (const struct uar_view_message *m = a->view.first; m && !any; m = m->next)
		any = is_text(m);
	if (!any && !even_empty)
		return false;
	open_artifact(a, key, UAR_STR("answer"), UAR_STR("answer"));
	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		if (is_text(m))
			put_text(a, uar_buf_str(&m->text));
	if (!any)
		put_text(a, UAR_STR(""));
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	return true;
}

static uar_err put_made(struct a2a *a, const char *key, const struct uar_view_message *m)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_str url, mime;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(uar_buf_str(&m->text), NULL, &arena, &j, NULL);
	if (!e) {
		mime = uar_json_str(uar_json_get(j, UAR_STR("mime")), UAR_STR(""));
		url = uar_json_str(uar_json_get(j, UAR_STR("url")), UAR_STR(""));
		open_artifact(
			a, key,
			uar_json_str(uar_json_get(j, UAR_STR("artifact_id")), UAR_STR("artifact")),
			uar_json_str(uar_json_get(j, UAR_STR("title")), UAR_STR("")));
		uar_jw_obj(&a->w, NULL);
		if (a->o.old_peer)
			uar_jw_cstr(&a->w, "kind", "text");
		uar_jw_str(&a->w, "text",
			   uar_json_str(uar_json_get(j, UAR_STR("content")), UAR_STR("")));
		if (mime.n && !a->o.old_peer)
			uar_jw_str(&a->w, "mediaType", mime);
		uar_jw_close(&a->w);
		uar_jw_close(&a->w);
		if (url.n) { /* its text is the beginning of a longer one */
			uar_jw_obj(&a->w, "metadata");
			uar_jw_str(&a->w, "uar/content", url);
			uar_jw_close(&a->w);
		}
		uar_jw_close(&a->w);
	}
	uar_arena_fini(&arena);
	return e;
}

static uar_err put_artifacts(struct a2a *a)
{
	uar_err e = UAR_OK;
	bool any = false;

	for (const struct uar_view_message *m = a->view.first; m && !any; m = m->next)
		any = is_text(m) || is_artifact(m);
	if (!any)
		return UAR_OK;
	uar_jw_arr(&a->w, "artifacts");
	put_answer(a, NULL, false);
	for (const struct uar_view_message *m = a->view.first; m && !e; m = m->next)
		if (is_artifact(m))
			e = put_made(a, NULL, m);
	uar_jw_close(&a->w);
	return e;
}

/* --- the task --------------------------------------------------------------------------------- */

static void put_history(struct a2a *a)
{
	int64_t room = a->o.history_length < 0 ? INT64_MAX : a->o.history_length;

	if (!room)
		return;
	uar_jw_arr(&a->w, "history");
	for (const struct uar_view_message *m = a->view.first; m && room; m = m->next) {
		if (m->kind != UAR_VIEW_USER)
			continue;
		open_message(a, NULL, "ROLE_USER", "user", a->message_id.n ? a->message_id : m->id);
		put_text(a, uar_buf_str(&m->text));
		close_message(a);
		room--;
	}
	uar_jw_close(&a->w);
}

static uar_err put_task(struct a2a *a, const char *key)
{
	uar_err e;

	uar_jw_obj(&a->w, key);
	if (a->o.old_peer)
		uar_jw_cstr(&a->w, "kind", "task");
	uar_jw_str(&a->w, "id", a->view.run_id);
	uar_jw_str(&a->w, "contextId", a->view.thread_id);
	put_status(a);
	e = put_artifacts(a);
	put_history(a);
	uar_jw_obj(&a->w, "metadata");
	uar_jw_u64(&a->w, "uar/seq", a->sequence);
	if (a->view.end == UAR_VIEW_FAILED)
		uar_jw_str(&a->w, "uar/code", a->view.end_code);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	return e;
}

/* --- frames ----------------------------------------------------------------------------------- */

static void open_result(struct a2a *a)
{
	if (!a->o.rpc_id.n)
		return;
	uar_jw_obj(&a->w, NULL);
	uar_jw_cstr(&a->w, "jsonrpc", "2.0");
	uar_jw_raw(&a->w, "id", a->o.rpc_id);
}

/* The value that `member` says the kind of, in 1.0; in 0.3 it says so itself. Returns its key. */
static const char *open_member(struct a2a *a, const char *member)
{
	const char *key = a->o.rpc_id.n ? "result" : NULL;

	open_result(a);
	if (a->o.old_peer)
		return key;
	uar_jw_obj(&a->w, key);
	return member;
}

static void close_member(struct a2a *a)
{
	if (!a->o.old_peer)
		uar_jw_close(&a->w);
	if (a->o.rpc_id.n)
		uar_jw_close(&a->w);
}

static const char *open_frame(struct a2a *a, const char *member)
{
	uar_frame_open(a->out, NULL);
	a->w = uar_jw_begin(a->out->out);
	return open_member(a, member);
}

static uar_err close_frame(struct a2a *a)
{
	close_member(a);
	return uar_frame_close(a->out, &a->w);
}

static uar_err tell_task(struct a2a *a)
{
	uar_err e = put_task(a, open_frame(a, "task")), closed = close_frame(a);

	a->begun = true;
	return e ? e : closed;
}

static void put_ids(struct a2a *a, const char *kind)
{
	if (a->o.old_peer)
		uar_jw_cstr(&a->w, "kind", kind);
	uar_jw_str(&a->w, "taskId", a->view.run_id);
	uar_jw_str(&a->w, "contextId", a->view.thread_id);
}

static uar_err tell_status(struct a2a *a)
{
	uar_jw_obj(&a->w, open_frame(a, "statusUpdate"));
	put_ids(a, "status-update");
	put_status(a);
	if (a->o.old_peer)
		uar_jw_bool(&a->w, "final", a->out->closed);
	uar_jw_obj(&a->w, "metadata");
	uar_jw_u64(&a->w, "uar/seq", a->sequence);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	return close_frame(a);
}

static void open_artifact_update(struct a2a *a, bool append)
{
	uar_jw_obj(&a->w, open_frame(a, "artifactUpdate"));
	put_ids(a, "artifact-update");
	uar_jw_bool(&a->w, "append", append);
}

static uar_err tell_piece(struct a2a *a, uar_str text)
{
	open_artifact_update(a, a->told_text);
	open_artifact(a, "artifact", UAR_STR("answer"), UAR_STR("answer"));
	put_text(a, text);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	a->told_text = true;
	return close_frame(a);
}

/* The text of a model call that was cut off is taken back: what is left takes its place. */
static uar_err tell_again(struct a2a *a)
{
	if (!a->told_text)
		return UAR_OK;
	open_artifact_update(a, false);
	put_answer(a, "artifact", true);
	uar_jw_close(&a->w);
	return close_frame(a);
}

static uar_err tell_made(struct a2a *a, const struct uar_view_message *m)
{
	uar_err e, closed;

	open_artifact_update(a, false);
	e = put_made(a, "artifact", m);
	uar_jw_bool(&a->w, "lastChunk", true);
	uar_jw_close(&a->w);
	closed = close_frame(a);
	return e ? e : closed;
}

/* --- the run ---------------------------------------------------------------------------------- */

static uar_err start_working(struct a2a *a)
{
	if (a->working)
		return UAR_OK;
	a->working = true;
	return tell_status(a);
}

static uar_err rest(struct a2a *a)
{
	a->out->closed = true;
	return tell_status(a);
}

static uar_err tell_change(struct a2a *a, const struct uar_view_change *c)
{
	switch (c->kind) {
	case UAR_VIEW_STEP_STARTED:
	case UAR_VIEW_MESSAGE_STARTED:
	case UAR_VIEW_CALL_STARTED: return start_working(a);
	case UAR_VIEW_MESSAGE_GREW:
		return c->message->kind == UAR_VIEW_TEXT ? tell_piece(a, c->text) : UAR_OK;
	case UAR_VIEW_SUPERSEDED: return tell_again(a);
	case UAR_VIEW_ACTIVITY_CHANGED:
		return is_artifact(c->message) ? tell_made(a, c->message) : UAR_OK;
	case UAR_VIEW_WAITING:
	case UAR_VIEW_ENDED: return rest(a);
	case UAR_VIEW_RESUMED: return tell_status(a);
	default: return UAR_OK;
	}
}

static uar_err on_change(void *ctx, const struct uar_view_change *c)
{
	struct a2a *a = ctx;
	uar_err e = a->begun ? UAR_OK : tell_task(a);

	return e ? e : tell_change(a, c);
}

/* The id that the client gave to its message is in the metadata of the turn. */
static uar_err find_message_id(struct a2a *a, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *p = NULL;
	uar_str id;

	if (ev->cls != UAR_EV_TURN_SUBMITTED || a->message_id.n)
		return UAR_OK;
	if (uar_event_payload(ev, scratch, &p, NULL))
		return UAR_OK;
	id = uar_json_str(uar_json_pointer(p, UAR_STR("/metadata/caller/a2a/message_id")),
			  UAR_STR(""));
	if (!id.n)
		return UAR_OK;
	a->message_id = uar_arena_str(&a->view.arena, id);
	return a->message_id.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err begin(void *state, const struct uar_dialect_options *o)
{
	struct a2a *a = state;

	*a = (struct a2a){ .o = *o };
	uar_view_init(&a->view);
	return UAR_OK;
}

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	struct a2a *a = state;
	uar_err e = find_message_id(a, ev, scratch);

	if (e)
		return e;
	if (uar_view_reads(ev))
		a->now_us = ev->time_us;
	a->sequence = ev->run_sequence;
	a->out = out;
	e = uar_view_apply(&a->view, ev, scratch, on_change, a);
	a->out = NULL;
	return e;
}

/* Whoever joins is shown the task as it stands. */
static uar_err join(void *state, struct uar_frames *out)
{
	struct a2a *a = state;
	uar_err e;

	a->out = out;
	e = tell_task(a);
	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		a->told_text = a->told_text || is_text(m);
	a->out = NULL;
	return e;
}

/* A stream that ends early says nothing of the task: its client subscribes again. */
static uar_err leave(void *state, struct uar_frames *out)
{
	(void)state;
	(void)out;
	return UAR_OK;
}

static uar_err answer(void *state, struct uar_buf *out, int *out_status)
{
	struct a2a *a = state;
	uar_err e, written;

	a->w = uar_jw_begin(out);
	*out_status = 200;
	if (a->o.wrapped) {
		e = put_task(a, open_member(a, "task"));
		close_member(a);
	} else {
		open_result(a);
		e = put_task(a, a->o.rpc_id.n ? "result" : NULL);
		if (a->o.rpc_id.n)
			uar_jw_close(&a->w);
	}
	written = uar_jw_end(&a->w);
	return e ? e : written;
}

static void end(void *state)
{
	struct a2a *a = state;

	uar_view_fini(&a->view);
}

const struct uar_dialect uar_a2a = {
	.name = "a2a",
	.state_size = sizeof(struct a2a),
	.begin = begin,
	.encode = encode,
	.join = join,
	.leave = leave,
	.answer = answer,
	.end = end,
};
