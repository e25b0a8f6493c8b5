/* runs.c - create, read, list and cancel runs. */
#include "base/sha256.h"
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "json/limits.h"
#include "proto/runs.h"

/* --- create ------------------------------------------------------------------- */

struct create_body {
	uar_str agent_id, conversation_id, idempotency_key, task_id, trace_id;
	uar_str permission_mode;
	const struct uar_json *inputs, *context, *options, *timeout;
	bool interactive;
};

static const struct uar_json_field create_fields[] = {
	{ "agent_id", UAR_FIELD_ID, true, offsetof(struct create_body, agent_id) },
	{ "inputs", UAR_FIELD_OBJECT, false, offsetof(struct create_body, inputs) },
	{ "conversation_id", UAR_FIELD_ID, false, offsetof(struct create_body, conversation_id) },
	{ "context", UAR_FIELD_OBJECT, false, offsetof(struct create_body, context) },
	{ "options", UAR_FIELD_OBJECT, false, offsetof(struct create_body, options) },
	{ "idempotency_key", UAR_FIELD_ID, false, offsetof(struct create_body, idempotency_key) },
	{ "task_id", UAR_FIELD_ID, false, offsetof(struct create_body, task_id) },
	{ "trace_id", UAR_FIELD_ID, false, offsetof(struct create_body, trace_id) },
	{ "timeout", UAR_FIELD_ANY, false, offsetof(struct create_body, timeout) },
	{ "permission_mode", UAR_FIELD_STR, false, offsetof(struct create_body, permission_mode) },
	{ "interactive", UAR_FIELD_BOOL, false, offsetof(struct create_body, interactive) },
};

/* The text of b for as long as the call lives; frees b. */
static uar_err keep_text(struct call *c, struct uar_buf *b, uar_str *out)
{
	uar_err e = b->err;

	if (!e) {
		*out = uar_arena_str(&c->arena, uar_buf_str(b));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(b);
	return e;
}

uar_err gate_text_of(struct call *c, const struct uar_json *j, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	uar_json_write(&b, j);
	return keep_text(c, &b, out);
}

/* All inputs but the message, which travels as text; none leave *out empty. */
uar_err gate_other_inputs(struct call *c, const struct uar_json *inputs, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	size_t n = 0;

	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = inputs ? inputs->first : NULL; m; m = m->next) {
		if (uar_str_is(m->key, "message"))
			continue;
		uar_jw_key(&w, m->key);
		uar_jw_tree(&w, NULL, m);
		n++;
	}
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	if (n)
		return keep_text(c, &b, out);
	uar_buf_fini(&b);
	return UAR_OK;
}

/* Two requests with one key must mean the same work: what is run, with which
 * arguments, in which conversation. How it is watched, traced, named or limited
 * may differ when a client asks again. Arguments are compared as values. */
uar_err gate_fingerprint(struct call *c, const struct gate_meaning *m, uar_str *out)
{
	const uar_str names[] = { m->plugin_id, m->entry_id, m->conversation_id };
	struct uar_buf b = uar_buf_make(2 * UAR_LIMIT_JSON_BYTES);
	char hex[UAR_SHA256_TEXT + 1];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uar_buf_add_str(&b, names[i]);
		uar_buf_add_char(&b, 0);
	}
	if (m->args && m->args->count) /* none are as good as empty ones */
		uar_json_write_canonical(&b, m->args);
	uar_buf_add_char(&b, 0);
	if (m->context)
		uar_json_write_canonical(&b, m->context);
	if (m->options && m->options->count) {
		uar_buf_add_char(&b, 0);
		uar_json_write_canonical(&b, m->options);
	}
	if (!b.err) { /* of the whole text or not at all */
		uar_sha256_hex(uar_buf_str(&b), hex);
		uar_buf_clear(&b);
		uar_buf_add_str(&b, uar_str_c(hex));
	}
	return keep_text(c, &b, out);
}

/* Seconds; null, zero, negative and non-numbers mean the default. */
int64_t gate_timeout_us(const struct uar_json *j)
{
	double seconds = uar_json_double(j, 0);

	if (!(seconds > 0))
		return 0;
	return seconds > 1e9 ? (int64_t)1e15 : (int64_t)(seconds * 1e6);
}

void gate_put_held_up(struct uar_jw *w, const struct call *c, const char *run_id)
{
	struct uar_held_up by;
	char detail[UAR_LIMIT_ID_BYTES + 200];

	if (!uar_runtime_held_up(c->g->o.runtime, &c->owner, uar_str_c(run_id), &by))
		return;
	snprintf(detail, sizeof detail,
		 "run %s of this conversation waits for an answer (%zu open): answer it, or cancel "
		 "that run, and this one begins",
		 by.run_id, by.open);
	uar_jw_obj(w, "waits_behind");
	uar_jw_cstr(w, "run_id", by.run_id);
	uar_jw_cstr(w, "action_id", by.action_id);
	uar_jw_cstr(w, "detail", detail);
	uar_jw_close(w);
}

static void created(struct uar_run_create *op)
{
	struct call *c = op->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_http_header headers[2] = { { UAR_STR("Location"), UAR_STR("") },
					      { UAR_STR("Idempotent-Replayed"), UAR_STR("true") } };
	char stream[UAR_LIMIT_ID_BYTES + 32];
	int n;

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	n = snprintf(stream, sizeof stream, "/api/runs/%s/stream", op->run_id);
	headers[0].value = uar_str_n(stream, (size_t)n - strlen("/stream"));
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "run_id", op->run_id);
	uar_jw_cstr(&w, "status", op->status);
	uar_jw_str(&w, "stream_url", uar_str_n(stream, (size_t)n));
	gate_put_held_up(&w, c, op->run_id);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer_headers(c, 202, &b, headers, op->existed ? 2 : 1);
	uar_buf_fini(&b);
}

/* The key of the header counts like the one of the body; two that differ do not. */
uar_err gate_take_key(struct call *c, uar_str *key, struct uar_error *error)
{
	uar_str header = c->r->fields[UAR_HTTP_IDEMPOTENCY_KEY];

	if (!header.p)
		return UAR_OK;
	if (!uar_str_is_id(header) || (key->n && !uar_str_eq(header, *key))) {
		uar_error_where(error, "Idempotency-Key");
		return uar_error_set(error, UAR_EINVALID,
				     "not an identifier, or another one than in the body");
	}
	*key = uar_arena_str(&c->arena, header);
	return key->p ? UAR_OK : UAR_ENOMEM;
}

uar_err gate_agent_message(const struct call *c, uar_str agent_id, const struct uar_json *inputs,
			   const char *member, uar_str *out, struct uar_error *error)
{
	const struct uar_json *m = uar_json_get(inputs, UAR_STR("message"));
	const struct uar_agent *agent = uar_workers_agent(c->g->o.work, &c->owner, agent_id);
	const char *why = NULL;

	*out = uar_json_str(m, UAR_STR(""));
	if (m && m->kind != UAR_JSON_STRING)
		why = "must be a string";
	else if (out->n == 0 && agent && agent->entry != UAR_ENTRY_FIXTURE &&
		 !uar_agent_has_input_schema(agent))
		why = "is required";
	if (!why)
		return UAR_OK;
	uar_error_where(error, "/%s/message", member);
	return uar_error_set(error, UAR_EINVALID, "%s.message %s", member, why);
}

/* An event has to hold it. */
static uar_err keep_context(struct call *c, const struct uar_json *context, uar_str *out,
			    struct uar_error *error)
{
	struct uar_json_limits limits = { .depth = UAR_LIMIT_CONTEXT_DEPTH };
	const struct uar_json *ignored;
	uar_err e = gate_text_of(c, context, out);

	if (!e)
		e = uar_json_parse(*out, &limits, &c->arena, &ignored, NULL);
	if (e != UAR_EDEPTH)
		return e;
	uar_error_where(error, "/context");
	return uar_error_set(error, e, "context may have %d levels", UAR_LIMIT_CONTEXT_DEPTH);
}

struct create_options {
	uar_str model;
};

static uar_err read_options(const struct uar_json *j, uar_str *out_model, struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "model", UAR_FIELD_STR, false, offsetof(struct create_options, model) },
	};
	struct create_options o = { .model = UAR_STR_NONE };
	char where[UAR_LIMIT_ERROR_WHERE];
	uar_err e = j ? uar_json_read(j, fields, ARRAY_LEN(fields), true, &o, error) : UAR_OK;

	if (e) {
		snprintf(where, sizeof where, "/options%.140s", error->where);
		uar_error_where(error, "%s", where);
		return e;
	}
	*out_model = o.model;
	return UAR_OK;
}

uar_err gate_decode_create(struct call *c, struct uar_run_create *op, struct uar_error *error)
{
	struct create_body body = { .interactive = true };
	uar_err e =
		uar_json_read(c->body, create_fields, ARRAY_LEN(create_fields), true, &body, error);

	if (!e)
		e = gate_agent_message(c, body.agent_id, body.inputs, "inputs", &op->message,
				       error);
	if (!e)
		e = gate_take_key(c, &body.idempotency_key, error);
	if (e)
		return e;
	op->owner = c->owner;
	op->agent_id = body.agent_id;
	op->conversation_id = body.conversation_id;
	op->idempotency_key = body.idempotency_key;
	op->task_id = body.task_id;
	op->trace_id = body.trace_id;
	op->timeout_us = gate_timeout_us(body.timeout);
	e = uar_run_permit_read(body.permission_mode, body.interactive, &op->permit, error);
	if (!e)
		e = read_options(body.options, &op->said.model, error);
	if (!e)
		e = gate_other_inputs(c, body.inputs, &op->inputs);
	if (!e && body.context)
		e = keep_context(c, body.context, &op->context, error);
	if (!e && op->idempotency_key.n)
		e = gate_fingerprint(c,
				     &(struct gate_meaning){ UAR_STR(UAR_AGENT_PLUGIN),
							     body.agent_id, body.conversation_id,
							     body.inputs, body.context,
							     body.options },
				     &op->fingerprint);
	return e;
}

void gate_create_run(struct call *c)
{
	struct uar_run_create *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error;
	uar_err e;

	uar_error_clear(&error);
	e = op ? gate_decode_create(c, op, &error) : UAR_ENOMEM;
	if (!e) {
		op->done = created;
		op->ctx = c;
		c->op = op;
		e = uar_runtime_create_run(c->g->o.runtime, op);
		if (e)
			error = op->error;
	}
	if (e)
		gate_problem(c, e, &error);
}

/* --- read ------------------------------------------------------------------------ */

static void answer_record(struct call *c, const struct uar_run_row *row, int status)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_runs_write(&w, NULL, row);
	gate_answer_json(c, status, &b, &w);
}

struct lookup {
	struct uar_run_list q;
	struct call *c;
	int status;
};

/* The query lives in the call, which goes away with the answer. */
static void answer_failure(struct call *c, struct uar_run_list *q)
{
	struct uar_error error = q->error;
	uar_err e = q->err;

	uar_run_list_fini(q);
	gate_problem(c, e, &error);
}

static void looked_up(struct uar_run_list *q)
{
	struct lookup *l = UAR_OWNER(q, struct lookup, q);
	struct uar_run_list mine = *q; /* the call goes away with the answer */

	if (q->err) {
		answer_failure(l->c, q);
		return;
	}
	answer_record(l->c, &mine.rows[0], l->status);
	uar_run_list_fini(&mine);
}

void gate_answer_run(struct call *c, uar_str run_id, int status)
{
	const struct uar_run_row *recent;
	struct lookup *l;
	uar_err e;

	if (uar_reader_recent_run(c->g->o.reader, &c->owner, run_id, &recent)) {
		answer_record(c, recent, status);
		return;
	}
	l = uar_arena_alloc(&c->arena, sizeof *l);
	e = l ? UAR_OK : UAR_ENOMEM;
	if (!e) {
		l->c = c;
		l->status = status;
		l->q = (struct uar_run_list){
			.owner = c->owner,
			.run_id = run_id,
			.limit = 1,
			.done = looked_up,
		};
		c->op = l;
		e = uar_reader_runs(c->g->o.reader, &l->q);
	}
	if (e)
		gate_problem(c, e, NULL);
}

void gate_get_run(struct call *c)
{
	gate_answer_run(c, c->params[0], 200);
}

/* --- list ------------------------------------------------------------------------- */

static void listed(struct uar_run_list *q)
{
	struct call *c = UAR_OWNER(q, struct lookup, q)->c;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	if (q->err) {
		answer_failure(c, q);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "runs");
	for (size_t i = 0; i < q->row_count; i++)
		uar_runs_write(&w, NULL, &q->rows[i]);
	uar_jw_close(&w);
	if (q->more && q->row_count)
		uar_jw_str(&w, "next_before", q->rows[q->row_count - 1].run_id);
	else
		uar_jw_null(&w, "next_before");
	if (q->find.count)
		uar_jw_u64(&w, "total", q->total);
	if (q->find.search.n)
		uar_jw_cstr(&w, "search_state", q->partial ? "partial" : "complete");
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	uar_run_list_fini(q);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

/* A run that waits is `running` in its record. */
static uar_err take_status(struct uar_run_list *q, struct uar_error *error)
{
	uar_err e = gate_check_status(q->status, error);

	if (!e && uar_str_is(q->status, GATE_WAITING)) {
		q->status = uar_str_c(uar_status_record(UAR_STATUS_WAITING_INPUT));
		q->waiting = true;
	}
	return e;
}

static uar_err decode_list(struct call *c, struct uar_run_list *q, struct uar_error *error)
{
	struct {
		const char *name;
		uar_str *to;
	} filters[] = {
		{ "status", &q->status },	  { "agent_id", &q->agent_id },
		{ "plugin_id", &q->plugin_id },	  { "task_id", &q->task_id },
		{ "session_id", &q->session_id }, { "root_run_id", &q->root_run_id },
		{ "entry_id", &q->entry_id },	  { "before", &q->before },
		{ "prefix", &q->prefix },
	};
	uint64_t limit;
	uar_err e = gate_query_u64(c, "limit", UAR_LIMIT_LIST_DEFAULT, &limit, error);

	for (size_t i = 0; i < ARRAY_LEN(filters) && !e; i++) {
		e = gate_query_str(c, filters[i].name, filters[i].to);
		if (e || !filters[i].to->p)
			continue;
		*filters[i].to =
			uar_arena_str(&c->arena, *filters[i].to); /* outlives the request */
		e = filters[i].to->p ? UAR_OK : UAR_ENOMEM;
	}
	if (!e && (limit == 0 || limit > UAR_LIMIT_LIST_PAGE)) {
		uar_error_where(error, "?limit");
		e = uar_error_set(error, UAR_EINVALID, "limit must be 1 to %d",
				  UAR_LIMIT_LIST_PAGE);
	}
	if (!e)
		e = take_status(q, error);
	if (!e)
		e = gate_decode_find(c, &q->find, error);
	q->limit = (uint32_t)limit;
	return e;
}

void gate_list_runs(struct call *c)
{
	struct lookup *l = uar_arena_alloc(&c->arena, sizeof *l);
	struct uar_error error = { 0 };
	uar_err e = l ? decode_list(c, &l->q, &error) : UAR_ENOMEM;

	if (!e) {
		l->c = c;
		l->q.owner = c->owner;
		l->q.done = listed;
		c->op = l;
		e = uar_reader_runs(c->g->o.reader, &l->q);
	}
	if (e)
		gate_problem(c, e, &error);
}

/* --- cancel ------------------------------------------------------------------------- */

static void cancelled(struct uar_run_cancel_op *op)
{
	struct call *c = op->ctx;

	if (op->err)
		gate_problem(c, op->err, &op->error);
	else
		gate_answer_run(c, op->run_id, 200);
}

void gate_cancel_run(struct call *c)
{
	static const struct uar_json_field fields[] = {
		{ "reason", UAR_FIELD_STR, false, 0 },
	};
	struct uar_run_cancel_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error = { 0 };
	uar_str reason = UAR_STR("");
	uar_err e = op ? uar_json_read(c->body, fields, 1, true, &reason, &error) : UAR_ENOMEM;

	if (!e) {
		*op = (struct uar_run_cancel_op){
			.owner = c->owner,
			.run_id = c->params[0],
			.reason = reason,
			.done = cancelled,
			.ctx = c,
		};
		c->op = op;
		e = uar_runtime_cancel_run(c->g->o.runtime, op);
	}
	if (e)
		gate_problem(c, e, &error);
}
