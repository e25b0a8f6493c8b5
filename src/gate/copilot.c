/* copilot.c - the routes that clients of CopilotKit expect of its runtime.
 *
 * Runs and connections are AG-UI (agui.c, agui_connect.c). Each route also goes through one
 * address that takes {"method", "params", "body"}. */
#include "event/limits.h"
#include "gate/cursor.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/view.h"
#include "read/actions.h"
#include "read/sessions.h"

/* --- the agents ------------------------------------------------------------------------------- */

static void put_agent(struct uar_jw *w, const struct call *c, const struct uar_agent *a)
{
	uar_jw_obj(w, a->id);
	uar_jw_cstr(w, "name", a->id);
	uar_jw_cstr(w, "className", "UarAgent");
	uar_jw_cstr(w, "description", a->doc ? a->doc : "");
	gate_put_capabilities(w, "capabilities", c, a);
	uar_jw_close(w);
}

static bool is_offered(const struct call *c, const struct uar_agent *a)
{
	return uar_workers_shows(c->g->o.work, &c->owner, a) &&
	       !gate_check_protocol(c, uar_str_c(a->id), UAR_PROTOCOL_AG_UI, NULL);
}

void gate_copilot_info(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_agent *a;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "version", UAR_VERSION);
	uar_jw_cstr(&w, "mode", "sse");
	uar_jw_bool(&w, "audioFileTranscriptionEnabled", false);
	uar_jw_obj(&w, "agents");
	for (size_t i = 0; (a = uar_workers_agent_at(c->g->o.work, i)); i++)
		if (is_offered(c, a))
			put_agent(&w, c, a);
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* --- stop ----------------------------------------------------------------------------------- */

struct stopping {
	struct call *c;
	struct uar_session_op thread;
	struct uar_run_list known;
	struct uar_actions_op answers;
	struct uar_run_cancel_op cancel;
	uar_str run_id, run_name;
};

static void answer_stopped(struct call *c, bool stopped)
{
	struct uar_buf b = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "stopped", stopped);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

static void cancelled(struct uar_run_cancel_op *op)
{
	struct call *c = op->ctx;

	if (op->err)
		gate_problem(c, op->err, &op->error);
	else
		answer_stopped(c, !op->over);
}

static void cancel(struct stopping *k)
{
	uar_err e;

	k->cancel = (struct uar_run_cancel_op){ .owner = k->c->owner,
						.run_id = k->run_id,
						.reason = UAR_STR("stopped by its client"),
						.done = cancelled,
						.ctx = k->c };
	e = uar_runtime_cancel_run(k->c->g->o.runtime, &k->cancel);
	if (e)
		gate_problem(k->c, e, &k->cancel.error);
}

static bool has_name(struct stopping *k, const struct uar_run_row *row)
{
	const struct uar_json *detail = NULL;
	uar_str key;

	if (uar_json_parse(row->detail, NULL, &k->c->arena, &detail, NULL))
		return false;
	key = uar_json_text(detail, "idempotency_key");
	return uar_str_starts(key, UAR_STR(UAR_VIEW_NAMED)) &&
	       uar_str_eq(uar_str_from(key, strlen(UAR_VIEW_NAMED)), k->run_name);
}

/* A part of a run that went on after an answer has a name of its own, which its record lacks. */
static void answers_read(struct uar_actions_op *op)
{
	struct stopping *k = op->ctx;
	struct uar_error error = op->error;
	const struct uar_json *json = NULL;
	uar_err e = op->err;

	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&op->json), NULL, &k->c->arena, &json, NULL);
	uar_buf_fini(&op->json);
	if (e)
		gate_problem(k->c, e, &error);
	else if (uar_json_first(uar_json_get(json, UAR_STR("actions"))))
		cancel(k);
	else
		answer_stopped(k->c, false);
}

static void read_answers(struct stopping *k)
{
	struct uar_error error = { 0 };
	uar_err e;

	k->answers = (struct uar_actions_op){ .owner = k->c->owner,
					      .run_id = k->run_id,
					      .status = UAR_STR("resolved"),
					      .limit = 1,
					      .done = answers_read,
					      .ctx = k };
	e = uar_read_actions(k->c->g->o.reader, &k->answers, &error);
	if (e)
		gate_problem(k->c, e, &error);
}

/* The run of that name is stopped, whether it is at work, waits or is queued. */
static void found_runs(struct uar_run_list *q)
{
	struct stopping *k = UAR_OWNER(q, struct stopping, known);
	struct uar_error error = q->error;
	bool found = false, over = false;
	uar_err e = q->err;

	for (size_t i = 0; !e && i < q->row_count && !found; i++) {
		found = has_name(k, &q->rows[i]);
		if (!found)
			continue;
		over = q->rows[i].terminal;
		k->run_id = uar_arena_str(&k->c->arena, q->rows[i].run_id);
		e = k->run_id.p ? gate_check_protocol(k->c, q->rows[i].agent_id, UAR_PROTOCOL_AG_UI,
						      &error)
				: UAR_ENOMEM;
	}
	uar_run_list_fini(q);
	if (e)
		gate_problem(k->c, e, &error);
	else if (over)
		answer_stopped(k->c, false);
	else if (found)
		cancel(k);
	else
		read_answers(k);
}

static void list_runs(struct stopping *k, uar_str session_id)
{
	uar_err e;

	k->known = (struct uar_run_list){ .owner = k->c->owner,
					  .session_id = session_id,
					  .limit = UAR_LIMIT_LIST_PAGE,
					  .done = found_runs };
	e = uar_reader_runs(k->c->g->o.reader, &k->known);
	if (e)
		gate_problem(k->c, e, &k->known.error);
}

static void thread_read(struct uar_session_op *op)
{
	struct stopping *k = op->ctx;
	struct uar_error error = op->error;
	const struct uar_json *json = NULL, *active;
	uar_err e = op->err;

	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&op->json), NULL, &k->c->arena, &json, NULL);
	uar_buf_fini(&op->json);
	active = uar_json_get(uar_json_get(json, UAR_STR("thread")), UAR_STR("active_turn"));
	k->run_id = uar_json_text(active, "run_id");
	if (!e && active) /* its agent counts, whatever agent the address names */
		e = gate_check_protocol(k->c, uar_json_text(active, "agent_id"), UAR_PROTOCOL_AG_UI,
					&error);
	if (e && e != UAR_ENOTFOUND)
		gate_problem(k->c, e, &error);
	else if (!k->run_id.n)
		answer_stopped(k->c, false);
	else if (k->run_name.n)
		list_runs(k, uar_json_text(json, "session_id"));
	else
		cancel(k);
}

void gate_copilot_stop(struct call *c)
{
	struct stopping *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e =
		k ? gate_check_protocol(c, c->params[0], UAR_PROTOCOL_AG_UI, &error) : UAR_ENOMEM;

	if (!e) {
		k->c = c;
		k->run_name = uar_json_text(c->body, "runId");
		k->thread = (struct uar_session_op){ .owner = c->owner,
						     .thread_id = c->params[1],
						     .put_cursor = gate_cursor_put,
						     .done = thread_read,
						     .ctx = k };
		c->op = k;
		e = uar_read_session(c->g->o.reader, &k->thread);
	}
	if (e)
		gate_problem(c, e, &error);
}

/* --- all of it at one address --------------------------------------------------------------- */

static uar_err take_param(struct call *c, const char *name, uar_str *out, struct uar_error *error)
{
	*out = uar_json_text(uar_json_get(c->body, UAR_STR("params")), name);
	if (uar_str_is_id(*out))
		return UAR_OK;
	uar_error_where(error, "/params/%s", name);
	return uar_error_set(error, UAR_EINVALID, "%s is missing", name);
}

void gate_copilot_call(struct call *c)
{
	static const struct {
		const char *name;
		route_fn *fn;
		bool agent, thread, body;
	} methods[] = { { "info", gate_copilot_info, false, false, false },
			{ "agent/run", gate_agui_agent, true, false, true },
			{ "agent/connect", gate_agui_connect, true, false, true },
			{ "agent/stop", gate_copilot_stop, true, true, false } };
	const struct uar_json *body = uar_json_get(c->body, UAR_STR("body"));
	uar_str method = uar_json_text(c->body, "method");
	struct uar_error error = { 0 };
	uar_err e = UAR_OK;
	size_t i = 0;

	while (i < ARRAY_LEN(methods) && !uar_str_is(method, methods[i].name))
		i++;
	if (i == ARRAY_LEN(methods)) {
		uar_error_where(&error, "/method");
		e = uar_error_set(&error, UAR_EINVALID,
				  "method is info, agent/run, agent/connect or agent/stop");
	} else {
		if (methods[i].agent)
			e = take_param(c, "agentId", &c->params[0], &error);
		if (!e && methods[i].thread)
			e = take_param(c, "threadId", &c->params[1], &error);
		if (!e && methods[i].body && (!body || body->kind != UAR_JSON_OBJECT)) {
			uar_error_where(&error, "/body");
			e = uar_error_set(&error, UAR_EINVALID, "the body is a RunAgentInput");
		}
	}
	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	c->body = body;
	methods[i].fn(c);
}
