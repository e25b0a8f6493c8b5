/* action_row.c - the row of an action: whole while it is open, brief when it was answered. */
#include "core/action_int.h"

#include "event/row.h"

static struct uar_row_action row_of(const struct emit *e, enum uar_action_type type,
				    int64_t asked_us)
{
	const struct uar_run *r = e->r;

	return (struct uar_row_action){
		.row = { .kind = UAR_ROW_ACTION,
			 .session_id = e->s->session_id,
			 .parent = r->id.run_id,
			 .tag = uar_str_c(uar_action_info[type].text),
			 .rank = asked_us, /* lists show the oldest question first */
			 .created_us = asked_us,
			 .updated_us = e->env->now_us },
		.thread_id = r->id.thread_id,
		.turn_id = r->id.turn_id,
		.task_id = r->id.task_given ? r->id.task_id : UAR_STR_NONE,
		.agent_id = r->what.agent_id,
	};
}

/* The source text of a member of an event's payload, or empty. */
static uar_str member(const struct uar_event *ev, const char *key)
{
	const struct uar_json *j = uar_json_get(ev->tree, uar_str_c(key));

	return j ? j->text : UAR_STR_NONE;
}

static uar_str word(const struct uar_event *ev, const char *key)
{
	return uar_json_str(uar_json_get(ev->tree, uar_str_c(key)), UAR_STR_NONE);
}

void uar_action_take(struct uar_row_action *a, const struct uar_event *resolved)
{
	a->row.status = UAR_STR("resolved");
	a->row.open = false;
	a->row.due_us = 0;
	a->decision = word(resolved, "decision");
	a->result = word(resolved, "result");
	a->source = word(resolved, "source");
	a->reason = word(resolved, "reason");
	a->resolved_by = member(resolved, "resolved_by");
	a->resolved_at = resolved->time_us;
}

static uar_str blob_uri(struct emit *e, uar_str sha256)
{
	return sha256.n ? uar_emit_wrap(e, UAR_STR("blob://"), sha256, UAR_STR_NONE) : UAR_STR_NONE;
}

void uar_core_action_asked(struct emit *e, const struct uar_ask *a)
{
	const struct uar_event *ev = &e->d->events[e->d->event_count - 1];
	struct uar_row_action row;

	if (e->err)
		return;
	row = row_of(e, a->type, ev->time_us);
	row.row.id = ev->ids[UAR_ID_ACTION];
	row.row.status = UAR_STR("pending");
	row.row.open = true;
	row.row.due_us = a->timeout_us ? ev->time_us + a->timeout_us : 0;
	row.kind = a->kind;
	row.tool_call_id = a->call_id;
	row.tool_name = a->tool_name;
	row.prompt = a->prompt;
	row.decisions = member(ev, "decisions");
	row.schema = a->schema;
	row.schema_ref = blob_uri(e, a->schema_blob);
	row.scope = member(ev, "scope");
	row.args_ref = blob_uri(e, a->blob);
	row.args_sha256 = a->args_sha256;
	uar_emit_row(e, &row);
}

static const struct uar_event *resolved_from(const struct emit *e, size_t first)
{
	while (e->d->events[first].cls != UAR_EV_ACTION_RESOLVED)
		first++;
	return &e->d->events[first];
}

static uar_str ids_from(struct emit *e, size_t first)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	uar_str ids = UAR_STR_NONE;

	uar_jw_arr(&w, NULL);
	for (size_t i = first; i < e->d->event_count; i++)
		uar_jw_str(&w, NULL, e->d->events[i].event_id);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		ids = uar_arena_str(e->env->arena, uar_buf_str(&text));
	uar_buf_fini(&text);
	if (!ids.p)
		e->err = UAR_ENOMEM;
	return ids;
}

void uar_core_action_answered(struct emit *e, const struct uar_open_action *open,
			      const struct uar_answer *a, size_t first)
{
	const struct uar_event *ev;
	struct uar_row_action row;

	if (e->err)
		return;
	ev = resolved_from(e, first);
	row = row_of(e, open->type, open->asked_us);
	row.row.id = ev->ids[UAR_ID_ACTION];
	row.kind = uar_str_c(open->kind);
	row.tool_call_id = uar_str_c(open->call_id);
	row.tool_name = uar_str_c(open->tool_name);
	row.prompt = uar_str_c(open->prompt);
	uar_action_take(&row, ev);
	row.payload = a->values;
	row.payload_ref = blob_uri(e, a->values_blob);
	row.answer_digest = a->digest;
	row.event_ids = ids_from(e, first);
	uar_emit_row(e, &row);
}

/* --- shown ----------------------------------------------------------------------------- */

static void put_raw(struct uar_jw *w, const char *key, uar_str json)
{
	if (json.n)
		uar_jw_raw(w, key, json);
}

/* Where a blob that the row names can be read. */
static void put_url(struct uar_jw *w, const char *key, const struct uar_row_action *a, uar_str ref)
{
	char url[2 * UAR_LIMIT_ID_BYTES + 128];

	if (!ref.n)
		return;
	snprintf(url, sizeof url, "/api/runs/%.*s/blobs/%.*s", UAR_FMT(a->row.parent),
		 UAR_FMT(uar_str_from(ref, sizeof "blob://" - 1)));
	uar_jw_cstr(w, key, url);
}

/* How it may be answered. The row of an answered one no longer has it, so that the first outcome
 * and every repetition of it are the same. */
static void put_question(struct uar_jw *w, const struct uar_row_action *a)
{
	put_raw(w, "decisions", a->decisions);
	put_raw(w, "schema", a->schema);
	put_url(w, "schema_url", a, a->schema_ref);
	put_raw(w, "scope", a->scope);
	if (a->row.due_us)
		uar_jw_seconds(w, "expires_at", a->row.due_us);
}

static void put_answer(struct uar_jw *w, const struct uar_row_action *a)
{
	uar_jw_str(w, "decision", a->decision);
	uar_jw_str(w, "result", a->result);
	uar_jw_str(w, "source", a->source);
	if (a->reason.n)
		uar_jw_str(w, "reason", a->reason);
	put_raw(w, "resolved_by", a->resolved_by);
	uar_jw_seconds(w, "resolved_at", a->resolved_at);
	put_raw(w, "payload", a->payload);
	put_url(w, "payload_url", a, a->payload_ref);
}

void uar_action_record(struct uar_jw *w, const struct uar_row_action *a)
{
	uar_jw_str(w, "action_id", a->row.id);
	uar_jw_str(w, "run_id", a->row.parent);
	uar_jw_str(w, "agent_id", a->agent_id);
	uar_jw_str_or_null(w, "session_id", a->row.session_id);
	uar_jw_str_or_null(w, "conversation_id", a->thread_id);
	uar_jw_str_or_null(w, "task_id", a->task_id);
	uar_jw_str(w, "action_type", a->row.tag);
	uar_jw_str(w, "kind", a->kind);
	uar_jw_str_or_null(w, "tool_name", a->tool_name);
	if (a->tool_call_id.n)
		uar_jw_str(w, "tool_call_id", a->tool_call_id);
	uar_jw_str(w, "prompt", a->prompt);
	uar_jw_seconds(w, "requested_at", a->row.created_us);
	uar_jw_str(w, "status", a->row.status);
	if (a->row.open)
		put_question(w, a);
	else
		put_answer(w, a);
}
