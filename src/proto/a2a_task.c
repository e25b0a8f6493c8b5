/* a2a_task.c - a run as a task of the public A2A protocol: snapshots and updates.
 *
 * The answer of the agent is one artifact, `answer`, whose parts are pieces of its text; what
 * the run makes are further artifacts. What the run waits for is the message of its status. */
#include "proto/a2a_wire.h"

#include "base/base64.h"
#include "event/action.h"
#include "proto/limits.h"
#include "proto/view.h"

/* A message of the client that answered what the run asked. */
struct a2a_reply {
	uar_str id, text, data; /* text or JSON */
	struct a2a_reply *next;
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
	struct a2a_reply *replies, **last_reply;
	size_t reply_bytes;
	bool begun, working, told_text;
	bool started, cancelling;
	const char *waits; /* for a permission or an input, since it waits */
	bool grown;	   /* notices: there is text that no artifact has told */
};

/* As the row of the run has it, so that a list of tasks says the same. */
static enum uar_a2a_state state_of(const struct a2a *a)
{
	static const char *const ends[] = { [UAR_VIEW_DONE] = "succeeded",
					    [UAR_VIEW_CANCELLED] = "canceled",
					    [UAR_VIEW_FAILED] = "failed" };
	bool waits = a->view.waiting && a->view.actions && !a->cancelling;
	bool runs = a->started || a->working || waits;

	return uar_a2a_state_of(uar_str_c(a->view.end ? ends[a->view.end]
					  : runs      ? "running"
						      : "queued"),
				uar_str_c(waits && !a->view.end ? a->waits : ""));
}

/* Of several questions the first says what the run waits for, until all are answered. */
static void fold_status(struct a2a *a, const struct uar_event *ev)
{
	enum uar_action_type type;

	a->started = a->started || ev->cls == UAR_EV_TASK_ATTEMPT_STARTED;
	a->cancelling = a->cancelling || ev->cls == UAR_EV_TASK_CANCEL_REQUESTED;
	if (ev->cls != UAR_EV_TASK_WAITING || !a->view.actions)
		return;
	type = uar_action_type_parse(a->view.actions->type);
	a->waits = type < UAR_ACTION_TYPE_COUNT && !uar_action_needs_right(type)
			   ? UAR_WAITS_INPUT
			   : UAR_WAITS_PERMISSION;
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
	enum uar_a2a_state s = state_of(a);
	char id[64];

	if (s != UAR_A2A_INPUT_REQUIRED && s != UAR_A2A_AUTH_REQUIRED && s != UAR_A2A_FAILED &&
	    s != UAR_A2A_CANCELED)
		return;
	snprintf(id, sizeof id, "status-%llu", (unsigned long long)a->sequence);
	open_message(a, "message", "ROLE_AGENT", "agent", uar_str_c(id));
	if (s == UAR_A2A_FAILED || s == UAR_A2A_CANCELED) {
		uar_str why = a->view.end_message;

		put_text(a, why.n		  ? why
			    : s == UAR_A2A_FAILED ? UAR_STR("the task failed")
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
	const struct uar_a2a_state_info *info = &uar_a2a_state_info[state_of(a)];

	uar_jw_obj(&a->w, "status");
	uar_jw_cstr(&a->w, "state", a->o.old_peer ? info->old : info->name);
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

static void put_media(struct a2a *a, uar_str mime)
{
	if (mime.n && !a->o.old_peer)
		uar_jw_str(&a->w, "mediaType", mime);
}

/* Bytes or an address: flat in 1.0, in `file` in 0.3. */
static uar_err put_file(struct a2a *a, const struct uar_json *j, bool link)
{
	uar_str content = uar_json_text(j, "content"), mime = uar_json_text(j, "mime");
	struct uar_buf b64 = uar_buf_make(UAR_LIMIT_VIEW_TEXT);
	uar_err e;

	if (!link)
		uar_base64_encode(&b64, content);
	e = b64.err;
	if (a->o.old_peer) {
		uar_jw_cstr(&a->w, "kind", "file");
		uar_jw_obj(&a->w, "file");
	}
	if (link)
		uar_jw_str(&a->w, a->o.old_peer ? "uri" : "url", uar_str_trim(content));
	else
		uar_jw_str(&a->w, a->o.old_peer ? "bytes" : "raw", uar_buf_str(&b64));
	uar_jw_str(&a->w, a->o.old_peer ? "name" : "filename", uar_json_text(j, "title"));
	if (mime.n && !uar_str_is(mime, "text/uri-list"))
		uar_jw_str(&a->w, a->o.old_peer ? "mimeType" : "mediaType", mime);
	if (a->o.old_peer)
		uar_jw_close(&a->w);
	uar_buf_fini(&b64);
	return e;
}

/* By its type, as parts of other runtimes are kept: json, file and link; the rest is text, and so
 * is the beginning of a longer one. */
static uar_err put_content(struct a2a *a, const struct uar_json *j, struct uar_arena *arena)
{
	uar_str type = uar_json_text(j, "artifact_type"), content = uar_json_text(j, "content");
	bool whole = !uar_json_text(j, "url").n, link = uar_str_is(type, "link");
	const struct uar_json *data = NULL;

	if (whole && (link || uar_str_is(type, "file")))
		return put_file(a, j, link);
	if (whole && uar_str_is(type, "json") &&
	    !uar_json_parse(content, NULL, arena, &data, NULL)) {
		if (a->o.old_peer)
			uar_jw_cstr(&a->w, "kind", "data");
		uar_jw_tree(&a->w, "data", data);
		put_media(a, UAR_STR("application/json"));
		return UAR_OK;
	}
	if (a->o.old_peer)
		uar_jw_cstr(&a->w, "kind", "text");
	uar_jw_str(&a->w, "text", content);
	put_media(a, uar_json_text(j, "mime"));
	return UAR_OK;
}

static uar_err put_made(struct a2a *a, const char *key, const struct uar_view_message *m)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_str url;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(uar_buf_str(&m->text), NULL, &arena, &j, NULL);
	if (!e) {
		url = uar_json_text(j, "url");
		open_artifact(
			a, key,
			uar_json_str(uar_json_get(j, UAR_STR("artifact_id")), UAR_STR("artifact")),
			uar_json_text(j, "title"));
		uar_jw_obj(&a->w, NULL);
		e = put_content(a, j, &arena);
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

/* A value of a form that asked for one text is that text. */
static void put_reply(struct a2a *a, const struct a2a_reply *r)
{
	open_message(a, NULL, "ROLE_USER", "user", r->id);
	if (r->text.p) {
		put_text(a, r->text);
	} else {
		uar_jw_obj(&a->w, NULL);
		if (a->o.old_peer)
			uar_jw_cstr(&a->w, "kind", "data");
		uar_jw_raw(&a->w, "data", r->data);
		uar_jw_close(&a->w);
	}
	close_message(a);
}

/* The messages of the client, as many of the last as there is room for. */
static void put_history(struct a2a *a)
{
	int64_t room = a->o.history_length < 0 ? INT64_MAX : a->o.history_length, all = 0;

	if (!room)
		return;
	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		all += m->kind == UAR_VIEW_USER;
	for (const struct a2a_reply *r = a->replies; r; r = r->next)
		all++;
	uar_jw_arr(&a->w, "history");
	for (const struct uar_view_message *m = a->view.first; m; m = m->next) {
		if (m->kind != UAR_VIEW_USER || all-- > room)
			continue;
		open_message(a, NULL, "ROLE_USER", "user", a->message_id.n ? a->message_id : m->id);
		put_text(a, uar_buf_str(&m->text));
		close_message(a);
	}
	for (const struct a2a_reply *r = a->replies; r; r = r->next)
		if (all-- <= room)
			put_reply(a, r);
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
	e = a->o.without_artifacts ? UAR_OK : put_artifacts(a);
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
	if (a->o.notices && a->o.old_peer)
		return tell_task(a);
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
	a->grown = true;
	if (a->o.notices)
		return UAR_OK;
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
	a->grown = true;
	if (!a->told_text || a->o.notices)
		return UAR_OK;
	open_artifact_update(a, false);
	put_answer(a, "artifact", true);
	uar_jw_close(&a->w);
	return close_frame(a);
}

/* The text as it stands when the task rests. */
static uar_err tell_answer(struct a2a *a)
{
	bool any = a->told_text;

	for (const struct uar_view_message *m = a->view.first; m && !any; m = m->next)
		any = is_text(m);
	if (!a->grown || !any)
		return UAR_OK;
	a->grown = false;
	a->told_text = true;
	open_artifact_update(a, false);
	put_answer(a, "artifact", true);
	uar_jw_bool(&a->w, "lastChunk", true);
	uar_jw_close(&a->w);
	return close_frame(a);
}

static uar_err tell_made(struct a2a *a, const struct uar_view_message *m)
{
	uar_err e, closed;

	if (a->o.notices && a->o.old_peer)
		return tell_task(a);
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
	uar_err e = a->o.notices && !a->o.old_peer ? tell_answer(a) : UAR_OK;

	a->out->closed = true;
	return e ? e : tell_status(a);
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

/* What is recorded of an answer has no secrets. */
static uar_err find_reply(struct a2a *a, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *p = NULL, *payload, *only;
	uar_str reason, before = UAR_STR(UAR_A2A_ANSWERED);
	struct a2a_reply *r;

	if (ev->cls != UAR_EV_ACTION_RESOLVED || uar_event_payload(ev, scratch, &p, NULL))
		return UAR_OK;
	reason = uar_json_text(p, "reason");
	payload = uar_json_get(p, UAR_STR("payload"));
	if (!uar_str_starts(reason, before) || !payload || payload->kind != UAR_JSON_OBJECT ||
	    a->reply_bytes + payload->text.n > UAR_LIMIT_VIEW_TEXT)
		return UAR_OK;
	r = uar_arena_alloc(&a->view.arena, sizeof *r);
	if (!r)
		return UAR_ENOMEM;
	only = uar_json_first(payload);
	*r = (struct a2a_reply){ .id = uar_arena_str(&a->view.arena,
						     uar_str_from(reason, before.n)) };
	if (only && !only->next && only->kind == UAR_JSON_STRING)
		r->text = uar_arena_str(&a->view.arena, only->text);
	else
		r->data = uar_arena_str(&a->view.arena, payload->text);
	a->reply_bytes += payload->text.n;
	*a->last_reply = r;
	a->last_reply = &r->next;
	return r->id.p && (r->text.p || r->data.p) ? UAR_OK : UAR_ENOMEM;
}

static uar_err begin(void *state, const struct uar_dialect_options *o)
{
	struct a2a *a = state;

	*a = (struct a2a){ .o = *o, .waits = "" };
	a->last_reply = &a->replies;
	uar_view_init(&a->view);
	return UAR_OK;
}

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	struct a2a *a = state;
	uar_err e = find_message_id(a, ev, scratch);

	if (!e)
		e = find_reply(a, ev, scratch);
	if (e)
		return e;
	if (uar_view_reads(ev))
		a->now_us = ev->time_us;
	a->sequence = ev->run_sequence;
	a->out = out;
	fold_status(a, ev);
	e = uar_view_apply(&a->view, ev, scratch, on_change, a);
	a->out = NULL;
	return e;
}

/* A reader that joins gets the task as it stands. */
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
