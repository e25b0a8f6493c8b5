/* control.c - the commands of the control plane: one route over core/command.def. */
#include "gate/control.h"
#include "gate/cursor.h"
#include "gate/fanout.h"
#include "gate/gate_int.h"

#include "base/sha256.h"
#include "core/control.h"
#include "engine/control.h"
#include "event/limits.h"
#include "gate/limits.h"
#include "json/limits.h"
#include "read/evidence.h"
#include "read/tasks.h"

struct controlling {
	struct uar_control in;
	struct uar_control_op op;
	struct uar_tasks_op tasks;
	struct uar_export_op export;
	char outcome_id[65], fingerprint[65];
};

/* --- GET /api/control ------------------------------------------------------------------------ */

static const char *const scope_names[] = {
	[UAR_CTL_SCOPE_OWNER] = "owner",       [UAR_CTL_SCOPE_SESSION] = "session",
	[UAR_CTL_SCOPE_THREAD] = "thread",     [UAR_CTL_SCOPE_TASK] = "task",
	[UAR_CTL_SCOPE_ACTION] = "action",     [UAR_CTL_SCOPE_EDGE] = "task",
	[UAR_CTL_SCOPE_GRANT] = "grant",       [UAR_CTL_SCOPE_CHANNEL] = "channel",
	[UAR_CTL_SCOPE_SUBAGENT] = "subagent", [UAR_CTL_SCOPE_JOB] = "job",
	[UAR_CTL_SCOPE_PROCESS] = "process",
};

static bool is_export(enum uar_control_kind kind)
{
	return kind == UAR_CTL_EXPORT_EVIDENCE || kind == UAR_CTL_EXPORT_REPLAY ||
	       kind == UAR_CTL_EXPORT_REVIEW;
}

static bool is_available(enum uar_control_kind kind)
{
	return uar_control_decided(kind) || is_export(kind) || gate_reads_fanout(kind) ||
	       kind == UAR_CTL_RESPOND_ACTION || kind == UAR_CTL_RESOLVE_PERMISSION ||
	       kind == UAR_CTL_EVALUATE_PERMISSION || kind == UAR_CTL_GET_TASK ||
	       kind == UAR_CTL_LIST_TASKS || kind == UAR_CTL_GET_SESSION ||
	       kind == UAR_CTL_GET_TOOL_INVENTORY || kind == UAR_CTL_GET_THREAD_READ ||
	       kind == UAR_CTL_GET_EXECUTION_ENVIRONMENT;
}

static void put_command(struct uar_jw *w, enum uar_control_kind kind)
{
	const struct uar_control_info *info = &uar_control_info[kind];

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "name", info->name);
	uar_jw_cstr(w, "scope", scope_names[info->scope]);
	uar_jw_bool(w, "changes", info->mode == UAR_CTL_MODE_CHANGE);
	uar_jw_bool(w, "available", is_available(kind));
	uar_jw_cstr(w, "description", info->doc);
	uar_fields_schema(w, "input_schema", &info->fields);
	uar_jw_close(w);
}

void gate_list_commands(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "commands");
	for (size_t i = 0; i < UAR_CTL_COUNT; i++)
		if (uar_control_info[i].mode != UAR_CTL_MODE_INTERNAL)
			put_command(&w, (enum uar_control_kind)i);
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* --- answers --------------------------------------------------------------------------------- */

static void put_event_ids(struct uar_jw *w, const struct uar_control_op *op)
{
	const struct uar_control_op none = { .event_count = 0 };

	op = op ? op : &none;
	if (op->event_ids.n) {
		uar_jw_raw(w, "event_ids", op->event_ids);
		return;
	}
	uar_jw_arr(w, "event_ids");
	for (size_t i = 0; i < op->event_count; i++)
		uar_jw_str(w, NULL, op->events[i].event_id);
	uar_jw_close(w);
}

void gate_answer_result(struct call *c, uar_str result, const struct uar_control_op *op)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "ok", true);
	uar_jw_raw(&w, "result", result.n ? result : UAR_STR("{}"));
	put_event_ids(&w, op);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* A peer that comes back may ask for the stream instead: the snapshot first, then events. */
static bool wants_stream(const struct call *c, const struct uar_control *in)
{
	static const char type[] = "text/event-stream";
	uar_str accept;

	if (in->kind != UAR_CTL_RECONNECT_CHANNEL || !c->r)
		return false;
	accept = uar_http_header(c->r, "accept");
	return accept.n && memmem(accept.p, accept.n, type, sizeof type - 1) != NULL;
}

static void controlled(struct uar_control_op *op)
{
	struct call *c = op->ctx;

	if (op->err)
		gate_problem(c, op->err, &op->error);
	else if (wants_stream(c, op->in))
		gate_stream_channel(c, op->in->reconnect_channel.channel_id);
	else
		gate_answer_result(c, op->result, op);
}

/* --- reads ----------------------------------------------------------------------------------- */

static void tasks_read(struct uar_tasks_op *op)
{
	struct call *c = op->ctx;
	struct uar_buf json = op->json;
	bool wrapped = c->route->body == GATE_BODY_JSON;

	if (op->err == UAR_ECURSOR)
		uar_error_where(&op->error, "%s", wrapped ? "/cursor" : "?cursor");
	if (op->err)
		gate_problem(c, op->err, &op->error);
	else if (wrapped)
		gate_answer_result(c, uar_buf_str(&json), NULL);
	else
		gate_answer(c, 200, &json);
	uar_buf_fini(&json);
}

static uar_err read_tasks(struct call *c, struct controlling *x)
{
	x->tasks.owner = c->owner;
	x->tasks.done = tasks_read;
	x->tasks.ctx = c;
	if (!x->tasks.limit)
		x->tasks.limit = UAR_LIMIT_LIST_DEFAULT;
	c->op = x;
	return uar_read_tasks(c->g->o.reader, &x->tasks);
}

static uar_err check_limit(int64_t limit, struct uar_error *error)
{
	if (limit >= 0 && limit <= UAR_LIMIT_LIST_PAGE)
		return UAR_OK;
	uar_error_where(error, "/limit");
	return uar_error_set(error, UAR_EINVALID, "limit must be 1 to %d", UAR_LIMIT_LIST_PAGE);
}

/* A word that no task has would find nothing, as if there was none. */
static uar_err check_status(uar_str status, const char *where, struct uar_error *error)
{
	static const char *const words[] = {
		"",
		"draft",
		"accepted",
		"archived",
#define S(NAME, TEXT, RECORD, TERMINAL) TEXT,
#include "core/status.def"
#undef S
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (uar_str_is(status, words[i]))
			return UAR_OK;
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID,
			     "no task has that status; one of draft, accepted, queued, running, "
			     "waiting_input, blocked, completed, failed, ..., archived");
}

static uar_err read_model(struct call *c, struct controlling *x, struct uar_error *error)
{
	const struct uar_ctl_list_tasks *list = &x->in.list_tasks;
	uar_err e;

	if (gate_reads_fanout(x->in.kind))
		return gate_read_fanout(c, &x->in, error);
	switch (x->in.kind) {
	case UAR_CTL_GET_TASK:
		x->tasks = (struct uar_tasks_op){ .task_id = x->in.get_task.task_id };
		return read_tasks(c, x);
	case UAR_CTL_LIST_TASKS:
		e = check_limit(list->limit, error);
		if (!e)
			e = check_status(list->status, "/status", error);
		x->tasks = (struct uar_tasks_op){ .session_id = list->session_id,
						  .thread_id = list->thread_id,
						  .parent_task_id = list->parent_task_id,
						  .status = list->status,
						  .cursor = list->cursor,
						  .limit = (uint32_t)list->limit };
		return e ? e : read_tasks(c, x);
	case UAR_CTL_GET_SESSION: return gate_read_session(c, &x->in.get_session, error);
	case UAR_CTL_GET_TOOL_INVENTORY:
		return gate_read_inventory(c, &x->in.get_tool_inventory, error);
	case UAR_CTL_GET_EXECUTION_ENVIRONMENT:
		return gate_read_environment(c, &x->in.get_execution_environment, error);
	case UAR_CTL_GET_THREAD_READ: return gate_read_thread(c, &x->in.get_thread_read, error);
	default: return UAR_ENOTIMPL; /* gate_control has looked */
	}
}

static uar_err decode_list(struct call *c, struct uar_tasks_op *op, struct uar_error *error)
{
	struct {
		const char *name;
		uar_str *to;
	} filters[] = {
		{ "session_id", &op->session_id },
		{ "thread_id", &op->thread_id },
		{ "parent_task_id", &op->parent_task_id },
		{ "status", &op->status },
		{ "cursor", &op->cursor },
	};
	uint64_t limit = 0;
	uar_err e = gate_query_u64(c, "limit", UAR_LIMIT_LIST_DEFAULT, &limit, error);

	for (size_t i = 0; i < ARRAY_LEN(filters) && !e; i++) {
		e = gate_query_str(c, filters[i].name, filters[i].to);
		if (!e && filters[i].to->p)
			*filters[i].to = uar_arena_str(&c->arena, *filters[i].to);
	}
	op->limit = (uint32_t)limit;
	if (!e)
		e = check_limit(limit && limit < INT32_MAX ? (int64_t)limit : -1, error);
	return e ? e : check_status(op->status, "?status", error);
}

void gate_list_tasks(struct call *c)
{
	struct controlling *x = uar_arena_alloc(&c->arena, sizeof *x);
	struct uar_error error = { 0 };
	uar_err e = x ? decode_list(c, &x->tasks, &error) : UAR_ENOMEM;

	if (!e)
		e = read_tasks(c, x);
	if (e)
		gate_problem(c, e, &error);
}

void gate_get_task(struct call *c)
{
	struct controlling *x = uar_arena_alloc(&c->arena, sizeof *x);
	uar_err e = x ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		x->tasks.task_id = c->params[0];
		e = read_tasks(c, x);
	}
	if (e)
		gate_problem(c, e, NULL);
}

/* --- GET /api/evidence/:evidence_id ---------------------------------------------------------- */

static void evidence_read(struct uar_evidence_op *op)
{
	gate_answer_read(op->ctx, op->err, &op->error, &op->json);
}

void gate_get_evidence(struct call *c)
{
	struct uar_evidence_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	uar_err e = UAR_ENOMEM;

	if (op) {
		*op = (struct uar_evidence_op){ .owner = c->owner,
						.evidence_id = c->params[0],
						.done = evidence_read,
						.ctx = c };
		c->op = op;
		e = uar_read_evidence(c->g->o.reader, op);
	}
	if (e)
		gate_problem(c, e, NULL);
}

/* --- POST /api/control/:command -------------------------------------------------------------- */

/* The body without its key, which the header may have carried as well. */
static uar_err write_input(struct call *c, struct uar_buf *out)
{
	struct uar_json input = *c->body, *copy, *last = NULL;

	input.first = NULL;
	input.count = 0;
	for (const struct uar_json *j = c->body->first; j; j = j->next) {
		if (uar_str_is(j->key, "idempotency_key"))
			continue;
		copy = uar_arena_alloc(&c->arena, sizeof *copy);
		if (!copy)
			return UAR_ENOMEM;
		*copy = *j;
		copy->next = NULL;
		if (last)
			last->next = copy;
		else
			input.first = copy;
		last = copy;
		input.count++;
	}
	uar_json_write_canonical(out, &input);
	return out->err;
}

/* The same key for the same command is the same request if its input is the same. */
static uar_err add_key(struct call *c, struct controlling *x, uar_str key)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e;

	uar_buf_printf(&text, "%s\n%.*s", uar_control_info[x->in.kind].name, UAR_FMT(key));
	uar_sha256_hex(uar_buf_str(&text), x->outcome_id);
	e = text.err;
	uar_buf_clear(&text);
	e = e ? e : write_input(c, &text);
	uar_sha256_hex(uar_buf_str(&text), x->fingerprint);
	uar_buf_fini(&text);
	x->in.outcome_id = uar_str_c(x->outcome_id);
	x->in.fingerprint = uar_str_c(x->fingerprint);
	return e;
}

static void exported(struct uar_export_op *op)
{
	struct call *c = op->ctx;
	const struct uar_control_op fact = {
		.event_ids = op->event_ids.n ? op->event_ids
			     : op->event_id[0]
				     ? uar_arena_printf(&c->arena, "[\"%s\"]", op->event_id)
				     : UAR_STR_NONE,
	};

	if (op->err)
		gate_problem(c, op->err, &op->error);
	else
		gate_answer_result(c, op->result, &fact);
}

static uar_err begin_export(struct call *c, struct controlling *x, struct uar_error *error)
{
	uar_err e;

	x->export = (struct uar_export_op){
		.owner = c->owner,
		.kind = x->in.kind == UAR_CTL_EXPORT_EVIDENCE ? UAR_EVIDENCE_PACK
			: x->in.kind == UAR_CTL_EXPORT_REPLAY ? UAR_EVIDENCE_REPLAY
							      : UAR_EVIDENCE_REVIEW,
		.session_id = uar_control_str(&x->in, "session_id"),
		.thread_id = uar_control_str(&x->in, "thread_id"),
		.turn_id = uar_control_str(&x->in, "turn_id"),
		.task_id = uar_control_str(&x->in, "task_id"),
		.outcome_id = x->in.outcome_id,
		.fingerprint = x->in.fingerprint,
		.done = exported,
		.ctx = c,
	};
	c->op = x;
	e = uar_read_export(c->g->o.reader, &x->export);
	*error = x->export.error;
	return e;
}

static uar_err begin_change(struct call *c, struct controlling *x, struct uar_error *error)
{
	uar_str key = uar_control_str(&x->in, "idempotency_key");
	uar_err e = gate_take_key(c, &key, error);

	if (!e && key.n)
		e = add_key(c, x, key);

	if (e)
		return e;
	if (is_export(x->in.kind))
		return begin_export(c, x, error);
	if (x->in.kind == UAR_CTL_EVALUATE_PERMISSION)
		return gate_evaluate_permission(c, &x->in, error);
	if (x->in.kind == UAR_CTL_UPDATE_PERMISSIONS)
		e = gate_check_mode(c, x->in.update_permissions.mode, error);
	if (e)
		return e;
	x->op = (struct uar_control_op){ .in = &x->in, .done = controlled, .ctx = c };
	c->op = x;
	e = uar_runtime_control(c->g->o.runtime, &x->op);
	*error = x->op.error;
	return e;
}

/* The runtime keeps what it notes for itself in sessions of its own. */
static uar_err check_session(uar_str session_id, struct uar_error *error)
{
	if (!uar_str_starts(session_id, UAR_STR("uar.")))
		return UAR_OK;
	uar_error_where(error, "/session_id");
	return uar_error_set(error, UAR_EINVALID,
			     "sessions whose id begins with \"uar.\" belong to the runtime: "
			     "take another id");
}

/* A cursor of another history is no mistake of a peer that comes back. */
static uar_err take_cursor(struct call *c, struct uar_control *in, struct uar_error *error)
{
	uar_str cursor = uar_control_str(in, "cursor");
	uar_err e;

	if ((in->kind != UAR_CTL_RECONNECT_CHANNEL && in->kind != UAR_CTL_ACK_EVENTS) || !cursor.n)
		return UAR_OK;
	e = gate_cursor_parse(cursor, gate_incarnation(c->g), &in->cursor);
	in->cursor_lost = e == UAR_ERESYNC;
	if (!e || in->cursor_lost)
		return UAR_OK;
	uar_error_where(error, "/cursor");
	return uar_error_set(error, UAR_EINVALID, "a cursor is the id of an event of the stream");
}

static uar_err begin_command(struct call *c, enum uar_control_kind kind, struct uar_error *error)
{
	struct controlling *x = uar_arena_alloc(&c->arena, sizeof *x);
	uar_err e = x ? uar_control_read(kind, c->body, &c->arena, &x->in, error) : UAR_ENOMEM;

	if (e)
		return e;
	x->in.owner = c->owner;
	if (uar_control_info[kind].mode == UAR_CTL_MODE_READ)
		return read_model(c, x, error);
	e = check_session(uar_control_str(&x->in, "session_id"), error);
	if (!e)
		e = take_cursor(c, &x->in, error);
	return e ? e : begin_change(c, x, error);
}

static unsigned scope_of_command(enum uar_control_kind kind)
{
	if (kind == UAR_CTL_RESPOND_ACTION || kind == UAR_CTL_RESOLVE_PERMISSION ||
	    kind == UAR_CTL_UPDATE_PERMISSIONS)
		return GATE_SCOPE_ANSWER;
	return kind == UAR_CTL_COUNT || uar_control_info[kind].mode == UAR_CTL_MODE_READ
		       ? GATE_SCOPE_READ
		       : GATE_SCOPE_RUN;
}

void gate_control(struct call *c)
{
	uar_str name = c->params[0];
	enum uar_control_kind kind = uar_control_kind_of(name);
	struct uar_error error = { 0 };
	uar_err e = gate_check_scope(c, scope_of_command(kind), &error);

	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	if (kind == UAR_CTL_RESPOND_ACTION || kind == UAR_CTL_RESOLVE_PERMISSION) {
		gate_respond_action(c, kind == UAR_CTL_RESOLVE_PERMISSION);
		return;
	}
	if (kind == UAR_CTL_COUNT || uar_control_info[kind].mode == UAR_CTL_MODE_INTERNAL)
		e = uar_error_set(&error, UAR_ENOTFOUND,
				  "there is no command \"%.*s\"; GET /api/control lists them",
				  UAR_FMT(uar_str_utf8_prefix(name, UAR_LIMIT_ID_BYTES)));
	else if (!is_available(kind))
		e = uar_error_set(&error, UAR_ENOTIMPL, "%s is not available in this version",
				  uar_control_info[kind].name);
	else
		e = begin_command(c, kind, &error);
	if (e)
		gate_problem(c, e, &error);
}
