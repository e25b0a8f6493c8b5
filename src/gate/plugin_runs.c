/* plugin_runs.c - the run protocol's own creators: start, trigger, retry; sync or not.
 *
 * Who waits for the end of a run follows its events like any reader and leaves
 * it alone: neither the bound of the wait nor a closed connection touches it. */
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "json/limits.h"
#include "proto/exports.h"
#include "read/stream.h"

struct start_body {
	uar_str plugin_id, entry_id, idempotency_key, task_id, trace_id, mode;
	const struct uar_json *args, *timeout;
};

static const struct uar_json_field start_fields[] = {
	{ "plugin_id", UAR_FIELD_ID, true, offsetof(struct start_body, plugin_id) },
	{ "entry_id", UAR_FIELD_ID, true, offsetof(struct start_body, entry_id) },
	{ "args", UAR_FIELD_OBJECT, true, offsetof(struct start_body, args) },
	{ "idempotency_key", UAR_FIELD_ID, false, offsetof(struct start_body, idempotency_key) },
	{ "task_id", UAR_FIELD_ID, false, offsetof(struct start_body, task_id) },
	{ "trace_id", UAR_FIELD_ID, false, offsetof(struct start_body, trace_id) },
	{ "mode", UAR_FIELD_STR, false, offsetof(struct start_body, mode) },
	{ "timeout", UAR_FIELD_ANY, false, offsetof(struct start_body, timeout) },
};

/* A request that may wait for its run's end. */
struct start {
	struct uar_run_create op;
	struct call *c;
	bool sync, envelope;
	/* while it waits */
	struct uar_stream *stream;
	struct uar_timer bound;
	struct uar_blob_read get;
	char status[UAR_LIMIT_STATUS_BYTES]; /* of the attempt: "completed" */
	uar_str error;			     /* JSON object of the failure */
	uar_str result;			     /* JSON that the entry returned, or empty */
	uar_str blob;			     /* or where it is */
	struct uar_answer_text answer;	     /* what an agent says */
};

/* --- answers ---------------------------------------------------------------------- */

/* Whoever shall only watch this run is given this and no more. */
static void put_run_token(struct uar_jw *w, const struct call *c, const char *run_id)
{
	int64_t expires = uar_clock_wall(c->g->o.sched->clock) / 1000000 + GRANT_SECONDS;
	char token[GRANT];

	if (!gate_grant(c, "run", uar_str_c(run_id), expires, token))
		return;
	uar_jw_cstr(w, "run_token", token);
	uar_jw_seconds(w, "expires_at", expires * 1000000);
}

static void answer_created(struct call *c, const char *run_id, const char *status, bool existed)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RUN_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_http_header headers[2] = { { UAR_STR("Location"), UAR_STR("") },
					      { UAR_STR("Idempotent-Replayed"), UAR_STR("true") } };
	char location[UAR_LIMIT_ID_BYTES + 32];

	snprintf(location, sizeof location, "/runs/%s", run_id);
	headers[0].value = uar_str_c(location);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "run_id", run_id);
	uar_jw_cstr(&w, "status", status);
	put_run_token(&w, c, run_id);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer_headers(c, 202, &b, headers, existed ? 2 : 1);
	uar_buf_fini(&b);
}

/* The record's word for how it ended, or for where it is. */
static uar_str status_of(const struct start *s)
{
	const struct uar_gate *g = s->c->g;
	const struct uar_run_row *row;

	if (s->status[0])
		return uar_str_c(uar_status_record(uar_status_parse(uar_str_c(s->status))));
	if (uar_reader_recent_run(g->o.reader, &s->c->owner, uar_str_c(s->op.run_id), &row))
		return row->status;
	return uar_str_c(s->op.status);
}

/* {success, data, error, run_id, status}, as callers of the old trigger know it. A run that goes
 * on when the wait is over has neither succeeded nor failed: success is null. */
static void answer_envelope(struct start *s, uar_str result)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RUN_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	bool ended = s->status[0], good = strcmp(s->status, "completed") == 0;

	uar_jw_obj(&w, NULL);
	if (ended)
		uar_jw_bool(&w, "success", good);
	else
		uar_jw_null(&w, "success");
	uar_jw_raw(&w, "data", good && result.n ? result : UAR_STR("null"));
	uar_jw_raw(&w, "error", ended && !good ? s->error : UAR_STR("null"));
	uar_jw_cstr(&w, "run_id", s->op.run_id);
	uar_jw_str(&w, "status", status_of(s));
	uar_jw_close(&w);
	gate_answer_json(s->c, ended ? 200 : 202, &b, &w);
}

static void result_ready(struct uar_blob_read *get)
{
	struct start *s = UAR_OWNER(get, struct start, get);
	struct uar_blob_read mine = *get; /* the call goes away with the answer */

	if (mine.err)
		gate_problem(s->c, mine.err, &mine.error);
	else
		answer_envelope(s, mine.bytes);
	uar_blob_read_fini(&mine);
}

static void answer_end(struct start *s)
{
	uar_err e;

	uar_timer_stop(s->c->g->o.sched, &s->bound);
	s->c->gone = s->c->hurry = NULL;
	uar_answer_text_fini(&s->answer); /* the result has its own copy */
	if (!s->envelope) {
		gate_answer_run(s->c, uar_str_c(s->op.run_id), s->status[0] ? 200 : 202);
		return;
	}
	if (!s->blob.n || !s->c->r) {
		answer_envelope(s, s->result);
		return;
	}
	s->get =
		(struct uar_blob_read){ .limit = UAR_LIMIT_RESULT_BYTES + 1, .done = result_ready };
	if (s->blob.n == sizeof s->get.sha256 - 1) {
		memcpy(s->get.sha256, s->blob.p, s->blob.n);
		e = uar_reader_blob(s->c->g->o.reader, &s->get);
	} else {
		e = UAR_ECORRUPT;
	}
	if (e)
		gate_problem(s->c, e, NULL);
}

/* --- waiting ------------------------------------------------------------------------ */

static void on_gone(struct call *c)
{
	struct start *s = c->op;

	uar_stream_close(s->stream);
	uar_timer_stop(c->g->o.sched, &s->bound);
	uar_answer_text_fini(&s->answer);
	gate_call_free(c);
}

static void on_bound(struct uar_timer *t)
{
	struct start *s = UAR_OWNER(t, struct start, bound);

	uar_stream_close(s->stream);
	s->stream = NULL;
	answer_end(s);
}

static void hurry(struct call *c)
{
	on_bound(&((struct start *)c->op)->bound);
}

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_str copy(struct start *s, uar_str text)
{
	return uar_arena_str(&s->c->arena, text);
}

/* The public part of a failure: code, message, details. */
static uar_err keep_failure(struct start *s, const struct uar_json *p)
{
	const struct uar_json *error = uar_json_get(p, UAR_STR("error"));
	const struct uar_json *details = uar_json_get(error, UAR_STR("details"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_tree(&w, "code", uar_json_get(error, UAR_STR("code")));
	uar_jw_tree(&w, "message", uar_json_get(error, UAR_STR("message")));
	uar_jw_obj(&w, "details");
	uar_jw_tree(&w, "retriable", uar_json_get(error, UAR_STR("retryable")));
	if (details)
		uar_jw_tree(&w, "plugin", details);
	uar_jw_close(&w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	s->error = e ? UAR_STR_NONE : copy(s, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e ? e : s->error.p ? UAR_OK : UAR_ENOMEM;
}

/* The data of an agent's run: its text, as JSON. */
static uar_err keep_answer(struct start *s)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RUN_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_str(&w, NULL, uar_buf_str(&s->answer.text));
	e = uar_jw_end(&w);
	if (!e) {
		s->result = copy(s, uar_buf_str(&b));
		e = s->result.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}

static uar_err take_item(struct start *s, const struct uar_export_item *item)
{
	if (item->answer)
		return keep_answer(s);
	if (!item->result)
		return UAR_OK;
	s->result = copy(s, item->content);
	s->blob = copy(s, item->blob);
	return s->result.p && s->blob.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err take_event(struct start *s, const struct uar_event *ev, struct uar_arena *scratch)
{
	struct uar_export_item item;
	const struct uar_json *p;
	uar_str status;
	uar_err e = s->envelope ? uar_answer_text_feed(&s->answer, ev, scratch) : UAR_OK;

	if (!e)
		e = uar_export_item_read(ev, scratch, &item);
	if (!e && s->envelope)
		e = take_item(s, &item);
	if (e && e != UAR_ESKIP)
		return e;
	if (!uar_event_ends_run(ev))
		return UAR_OK;
	e = uar_event_payload(ev, scratch, &p, NULL);
	if (e)
		return e;
	status = uar_json_str(uar_json_get(p, UAR_STR("status")), UAR_STR("failed"));
	snprintf(s->status, sizeof s->status, "%.*s", UAR_FMT(status));
	return ev->cls == UAR_EV_TASK_ATTEMPT_FAILED ? keep_failure(s, p) : UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct uar_arena scratch;
	uar_err e = UAR_OK;

	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < n && !e; i++) {
		e = take_event(ctx, &ev[i], &scratch);
		uar_arena_reset(&scratch);
	}
	uar_arena_fini(&scratch);
	return e;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct start *s = ctx;

	s->stream = NULL;
	if (!why) {
		answer_end(s);
		return;
	}
	uar_timer_stop(s->c->g->o.sched, &s->bound);
	s->c->gone = s->c->hurry = NULL;
	uar_answer_text_fini(&s->answer);
	gate_problem(s->c, why, error);
}

static void wait_for_end(struct start *s)
{
	struct uar_gate *g = s->c->g;
	struct uar_stream_options o = { .owner = s->c->owner,
					.run_id = uar_str_c(s->op.run_id),
					.sink = { on_opened, on_events, on_end, s } };
	uar_err e;

	s->bound.fn = on_bound;
	uar_answer_text_init(&s->answer);
	e = uar_timer_set(g->o.sched, &s->bound, g->o.sync_wait_us);
	if (!e)
		e = uar_stream_open(g->o.reader, &o, &s->stream);
	if (e) {
		uar_timer_stop(g->o.sched, &s->bound);
		gate_problem(s->c, e, NULL);
		return;
	}
	s->c->gone = on_gone;
	s->c->hurry = hurry;
	if (g->draining)
		hurry(s->c);
}

/* --- starting ------------------------------------------------------------------------- */

/* The same place as this family of routes calls it. */
static void name_place(struct uar_error *error)
{
	struct uar_error as = *error;

	if (strcmp(as.where, "/agent_id") == 0)
		uar_error_where(error, "/entry_id");
	else if (strncmp(as.where, "/inputs", 7) == 0)
		uar_error_where(error, "/args%s", as.where + 7);
}

static void created(struct uar_run_create *op)
{
	struct start *s = UAR_OWNER(op, struct start, op);
	struct uar_error error = op->error;

	name_place(&error);
	if (op->err)
		gate_problem(s->c, op->err, &error);
	else if (!s->c->r) /* the caller left: the run does not mind */
		gate_call_free(s->c);
	else if (s->sync)
		wait_for_end(s);
	else
		answer_created(s->c, op->run_id, op->status, op->existed);
}

static uar_err check_mode(struct start *s, uar_str mode, struct uar_error *error)
{
	if (mode.n && !uar_str_is(mode, "async") && !uar_str_is(mode, "sync")) {
		uar_error_where(error, "/mode");
		return uar_error_set(error, UAR_EINVALID, "mode must be async or sync");
	}
	s->sync = s->envelope || uar_str_is(mode, "sync");
	return UAR_OK;
}

/* Agents are entries of the plugin "uar.agent": both families make the same runs. */
static uar_err name_entry(struct start *s, const struct start_body *body, struct uar_error *error)
{
	struct uar_run_create *op = &s->op;
	uar_err e;

	if (!uar_str_is(body->plugin_id, UAR_AGENT_PLUGIN)) {
		op->plugin_id = body->plugin_id;
		op->entry_id = body->entry_id;
		op->args = body->args;
		return gate_text_of(s->c, body->args, &op->message);
	}
	op->agent_id = body->entry_id;
	e = gate_agent_message(s->c, body->entry_id, body->args, "args", &op->message, error);
	return e ? e : gate_other_inputs(s->c, body->args, &op->inputs);
}

static uar_err decode_start(struct start *s, struct uar_error *error)
{
	struct start_body body = { .mode = UAR_STR("") };
	struct uar_run_create *op = &s->op;
	uar_err e = uar_json_read(s->c->body, start_fields, ARRAY_LEN(start_fields), true, &body,
				  error);

	if (!e)
		e = check_mode(s, body.mode, error);
	if (!e)
		e = gate_take_key(s->c, &body.idempotency_key, error);
	if (!e)
		e = name_entry(s, &body, error);
	if (e)
		return e;
	op->owner = s->c->owner;
	op->idempotency_key = body.idempotency_key;
	op->task_id = body.task_id;
	op->trace_id = body.trace_id;
	op->timeout_us = gate_timeout_us(body.timeout);
	op->done = created;
	if (!op->idempotency_key.n)
		return UAR_OK;
	return gate_fingerprint(s->c,
				&(struct gate_meaning){ .plugin_id = body.plugin_id,
							.entry_id = body.entry_id,
							.args = body.args },
				&op->fingerprint);
}

static void start(struct call *c, bool envelope)
{
	struct start *s = uar_arena_alloc(&c->arena, sizeof *s);
	struct uar_error error = { 0 };
	uar_err e = s ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		s->c = c;
		s->envelope = envelope;
		e = decode_start(s, &error);
	}
	if (!e) {
		c->op = s;
		e = uar_runtime_create_run(c->g->o.runtime, &s->op);
		error = s->op.error;
		name_place(&error);
	}
	if (e)
		gate_problem(c, e, &error);
}

void gate_start_run(struct call *c)
{
	start(c, false);
}

void gate_trigger(struct call *c)
{
	if (c->g->o.plugin_trigger)
		start(c, true);
	else
		gate_problem(c, UAR_ENOTFOUND, NULL);
}

/* --- again ------------------------------------------------------------------------------ */

static void retried(struct uar_run_retry_op *op)
{
	struct call *c = op->ctx;
	struct uar_error error = op->error;

	if (op->err)
		gate_problem(c, op->err, &error);
	else
		answer_created(c, op->new_run_id, op->status, op->existed);
}

void gate_retry_run(struct call *c)
{
	static const struct uar_json_field fields[] = {
		{ "idempotency_key", UAR_FIELD_ID, false, 0 },
	};
	struct uar_run_retry_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error = { 0 };
	uar_str key = UAR_STR_NONE;
	uar_err e = op ? uar_json_read(c->body, fields, 1, true, &key, &error) : UAR_ENOMEM;

	if (!e)
		e = gate_take_key(c, &key, &error);
	if (!e) {
		*op = (struct uar_run_retry_op){
			.owner = c->owner,
			.run_id = c->params[0],
			.idempotency_key = key,
			.done = retried,
			.ctx = c,
		};
		c->op = op;
		e = uar_runtime_retry_run(c->g->o.runtime, op);
	}
	if (e)
		gate_problem(c, e, &error);
}

/* --- what there is ------------------------------------------------------------------------ */

static void put_schema(struct uar_jw *w, const char *key, uar_str schema)
{
	if (schema.n)
		uar_jw_raw(w, key, schema);
	else
		uar_jw_null(w, key);
}

static void put_entry(void *ctx, const struct uar_entry_info *i)
{
	struct uar_jw *w = ctx;

	uar_jw_obj(w, NULL);
	uar_jw_str(w, "plugin_id", i->plugin_id);
	uar_jw_str(w, "entry_id", i->entry_id);
	uar_jw_str(w, "version", i->version);
	uar_jw_str(w, "title", i->title);
	uar_jw_str(w, "description", i->description);
	uar_jw_cstr(w, "restart", i->restart_fails ? "fail" : "retry");
	uar_jw_int(w, "concurrency", i->concurrency);
	if (i->timeout_us)
		uar_jw_double(w, "timeout_seconds", (double)i->timeout_us / 1e6);
	else
		uar_jw_null(w, "timeout_seconds");
	put_schema(w, "args_schema", i->args_schema);
	put_schema(w, "result_schema", i->result_schema);
	uar_jw_close(w);
}

void gate_list_plugins(struct call *c)
{
	struct uar_entries *entries = uar_workers_entries(c->g->o.work);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "entries");
	if (entries)
		entries->ops->each(entries, put_entry, &w);
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}
