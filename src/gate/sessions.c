/* sessions.c - sessions and threads as their read models show them, and lists of sessions. */
#include "event/limits.h"
#include "gate/control.h"
#include "gate/cursor.h"
#include "gate/limits.h"
#include "read/limits.h"
#include "read/sessions.h"
#include "work/work.h"

static void answer_command(struct call *c, const struct uar_session_op *op,
			   const struct uar_buf *json)
{
	const struct uar_control_op fact = {
		.event_ids = uar_arena_printf(&c->arena, "[\"%s\"]", op->event_id),
	};

	gate_answer_result(c, uar_buf_str(json), op->event_id[0] ? &fact : NULL);
}

static void session_read(struct uar_session_op *op)
{
	struct call *c = op->ctx;
	struct uar_buf json = op->json;

	if (op->err)
		gate_problem(c, op->err, &op->error);
	else if (c->route->body == GATE_BODY_JSON)
		answer_command(c, op, &json);
	else
		gate_answer(c, 200, &json);
	uar_buf_fini(&json);
}

static uar_err read_parts(uar_str words, unsigned *out, struct uar_error *error)
{
	static const struct {
		const char *name;
		enum uar_session_part part;
	} parts[] = { { "tasks", UAR_SESSION_TASKS },
		      { "artifacts", UAR_SESSION_ARTIFACTS },
		      { "subagents", UAR_SESSION_FANOUT },
		      { "permissions", UAR_SESSION_PERMISSIONS } };

	while (words.n) {
		uar_str word = uar_str_cut(words, ',', &words);
		size_t i = 0;

		while (i < ARRAY_LEN(parts) && !uar_str_is(word, parts[i].name))
			i++;
		if (i == ARRAY_LEN(parts)) {
			uar_error_where(error, "include");
			return uar_error_set(error, UAR_EINVALID,
					     "include takes tasks, artifacts, subagents and "
					     "permissions, with commas");
		}
		*out |= parts[i].part;
	}
	return UAR_OK;
}

static uar_err check_window(uint64_t window, struct uar_error *error)
{
	if (window <= UAR_LIMIT_SESSION_WINDOW)
		return UAR_OK;
	uar_error_where(error, "window");
	return uar_error_set(error, UAR_EINVALID, "window must be 0 to %d",
			     UAR_LIMIT_SESSION_WINDOW);
}

/* A window without a cursor holds the newest events. */
static uar_err read_cursor(struct call *c, uar_str cursor, struct uar_session_op *op,
			   struct uar_error *error)
{
	uar_err e;

	if (!cursor.n)
		return UAR_OK;
	e = gate_cursor_parse(cursor, gate_incarnation(c->g), &op->before);
	if (e == UAR_ERESYNC)
		return e;
	if (e || !op->before) {
		uar_error_where(error, "cursor");
		return uar_error_set(error, UAR_EINVALID, "cursor is not one of a window");
	}
	if (!op->window)
		op->window = UAR_LIMIT_LIST_DEFAULT;
	return UAR_OK;
}

static uar_err begin_read(struct call *c, struct uar_session_op *op)
{
	op->owner = c->owner;
	op->put_cursor = gate_cursor_put;
	op->done = session_read;
	op->ctx = c;
	c->op = op;
	return uar_read_session(c->g->o.reader, op);
}

/* --- commands -------------------------------------------------------------------------------- */

uar_err gate_read_session(struct call *c, const struct uar_ctl_get_session *in,
			  struct uar_error *error)
{
	struct uar_session_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	uar_err e = op ? check_window(in->window < 0 ? UINT64_MAX : (uint64_t)in->window, error)
		       : UAR_ENOMEM;

	if (e)
		return e;
	op->session_id = in->session_id;
	op->verify = in->verify;
	op->window = (uint32_t)in->window;
	op->note_window = true;
	e = read_parts(in->include, &op->parts, error);
	if (!e)
		e = read_cursor(c, in->cursor, op, error);
	return e ? e : begin_read(c, op);
}

uar_err gate_read_environment(struct call *c, const struct uar_ctl_get_execution_environment *in,
			      struct uar_error *error)
{
	struct uar_session_op *op = uar_arena_alloc(&c->arena, sizeof *op);

	if (!op)
		return UAR_ENOMEM;
	if (!in->session_id.n && !in->thread_id.n) {
		uar_error_where(error, "/session_id");
		return uar_error_set(error, UAR_EINVALID, "give a session_id or a thread_id");
	}
	op->session_id = in->session_id;
	op->thread_id = in->thread_id;
	op->turn_id = in->turn_id;
	op->environment = true;
	return begin_read(c, op);
}

uar_err gate_read_thread(struct call *c, const struct uar_ctl_get_thread_read *in,
			 struct uar_error *error)
{
	struct uar_session_op *op = uar_arena_alloc(&c->arena, sizeof *op);

	(void)error;
	if (!op)
		return UAR_ENOMEM;
	op->session_id = in->session_id;
	op->thread_id = in->thread_id;
	return begin_read(c, op);
}

uar_err gate_read_inventory(struct call *c, const struct uar_ctl_get_tool_inventory *in,
			    struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	const struct uar_inventory_ask ask = { .owner = &c->owner,
					       .agent_id = in->agent_id,
					       .read_only = uar_str_is(in->mode, "read_only") };
	uar_err e = UAR_OK;

	if (in->caller.n && uar_str_is(in->caller, "model") != (in->agent_id.n != 0)) {
		uar_error_where(error, "/caller");
		e = uar_error_set(error, UAR_EINVALID,
				  "the caller is model with an agent_id, and api without one");
	}
	if (!e)
		e = uar_workers_inventory(c->g->o.work, &ask, &b, error);
	if (!e)
		gate_answer_result(c, uar_buf_str(&b), NULL);
	uar_buf_fini(&b);
	return e;
}

/* --- GET /api/sessions/:session_id ----------------------------------------------------------- */

static uar_err decode_session(struct call *c, struct uar_session_op *op, struct uar_error *error)
{
	uar_str include = UAR_STR_NONE, cursor = UAR_STR_NONE;
	uint64_t window = 0;
	uar_err e = gate_query_u64(c, "window", 0, &window, error);

	if (!e)
		e = check_window(window, error);
	op->window = (uint32_t)window;
	if (!e)
		e = gate_query_str(c, "include", &include);
	if (!e)
		e = read_parts(include, &op->parts, error);
	if (!e)
		e = gate_query_flag(c, "verify", &op->verify, error);
	if (!e)
		e = gate_query_str(c, "cursor", &cursor);
	return e ? e : read_cursor(c, cursor, op, error);
}

void gate_get_session(struct call *c)
{
	struct uar_session_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error = { 0 };
	uar_err e = op ? decode_session(c, op, &error) : UAR_ENOMEM;

	if (!e) {
		op->session_id = c->params[0];
		e = begin_read(c, op);
	}
	if (e)
		gate_problem(c, e, &error);
}

void gate_get_thread(struct call *c)
{
	struct uar_session_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	uar_err e = op ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		op->session_id = c->params[0];
		op->thread_id = c->params[1];
		e = begin_read(c, op);
	}
	if (e)
		gate_problem(c, e, NULL);
}

/* --- GET /api/sessions ----------------------------------------------------------------------- */

static void sessions_read(struct uar_sessions_op *op)
{
	gate_answer_read(op->ctx, op->err, &op->error, &op->json);
}

static uar_err take_filters(struct call *c, struct uar_sessions_op *op)
{
	struct {
		const char *name;
		uar_str *to;
	} filters[] = {
		{ "status", &op->status },
		{ "agent_id", &op->agent_id },
		{ "title", &op->title },
		{ "cursor", &op->cursor },
	};
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(filters) && !e; i++) {
		e = gate_query_str(c, filters[i].name, filters[i].to);
		if (e || !filters[i].to->p)
			continue;
		*filters[i].to = uar_arena_str(&c->arena, *filters[i].to);
		e = filters[i].to->p ? UAR_OK : UAR_ENOMEM;
	}
	return e;
}

static uar_err take_kind(struct call *c, struct uar_sessions_op *op, struct uar_error *error)
{
	uar_str kind = UAR_STR_NONE;
	uar_err e = gate_query_str(c, "kind", &kind);

	op->kind = kind.n ? uar_session_kind_parse(kind) : UAR_SESSION_MAIN;
	if (e || op->kind < UAR_SESSION_KINDS)
		return e;
	uar_error_where(error, "?kind");
	return uar_error_set(error, UAR_EINVALID, "kind is main, subagent, job_item or any");
}

static uar_err decode_sessions(struct call *c, struct uar_sessions_op *op, struct uar_error *error)
{
	uint64_t limit = 0;
	uar_err e = gate_query_u64(c, "limit", UAR_LIMIT_LIST_DEFAULT, &limit, error);

	if (!e && (!limit || limit > UAR_LIMIT_LIST_PAGE)) {
		uar_error_where(error, "?limit");
		e = uar_error_set(error, UAR_EINVALID, "limit must be 1 to %d",
				  UAR_LIMIT_LIST_PAGE);
	}
	op->limit = (uint32_t)limit;
	if (!e)
		e = gate_query_flag(c, "live", &op->live, error);
	if (!e)
		e = take_kind(c, op, error);
	if (!e)
		e = take_filters(c, op);
	if (!e && op->status.n && !uar_str_is(op->status, "active") &&
	    !uar_str_is(op->status, "archived")) {
		uar_error_where(error, "?status");
		e = uar_error_set(error, UAR_EINVALID, "status is active or archived");
	}
	return e;
}

void gate_list_sessions(struct call *c)
{
	struct uar_sessions_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error = { 0 };
	uar_err e = op ? decode_sessions(c, op, &error) : UAR_ENOMEM;

	if (!e) {
		op->owner = c->owner;
		op->done = sessions_read;
		op->ctx = c;
		c->op = op;
		e = uar_read_sessions(c->g->o.reader, op);
	}
	if (e)
		gate_problem(c, e, &error);
}
