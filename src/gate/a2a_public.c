/* a2a_public.c - the public A2A protocol: operations of clients on tasks of an agent.
 *
 * Below /a2a/:agent_id both bindings are served: JSON-RPC at the address itself, HTTP+JSON behind
 * it. Each request becomes a struct a2a_call; from there on the bindings are the same. A message
 * becomes a turn of its thread, as it would through any other door. */
#include "gate/a2a_int.h"
#include "gate/cursor.h"
#include "gate/limits.h"

/* --- problems --------------------------------------------------------------------------------- */

void gate_a2a_refuse(struct call *c, uar_err e, const struct uar_error *error)
{
	struct a2a_call *k = c->a2a;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_a2a_problem p = { .which = k->refused ? k->refused_as : uar_a2a_error_of(e),
				     .text = uar_str_c(error->text[0] ? error->text
								      : uar_err_text(e)),
				     .where = uar_str_c(error->where),
				     .rpc_id = k->id,
				     .rpc = k->rpc };

	c->a2a = NULL;
	uar_a2a_problem(&b, &p);
	gate_answer(c, k->rpc ? 200 : uar_a2a_error_http(p.which), &b);
	uar_buf_fini(&b);
}

void gate_a2a_fail(struct a2a_call *k, enum uar_a2a_error which, const char *text)
{
	struct uar_error error = { .code = UAR_EINVALID };

	(void)uar_error_set(&error, UAR_EINVALID, "%s", text);
	k->refused = true;
	k->refused_as = which;
	gate_problem(k->c, UAR_EINVALID, &error);
}

/* --- tasks that are there --------------------------------------------------------------------- */

static void found(struct uar_run_list *q)
{
	struct a2a_call *k = UAR_OWNER(q, struct a2a_call, known);
	struct uar_run_list mine = *q; /* the call may go away with its answer */
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e && !uar_str_eq(mine.rows[0].agent_id, k->agent_id))
		e = UAR_ENOTFOUND; /* a task of another agent */
	if (e == UAR_ENOTFOUND)
		(void)uar_error_set(&error, e, "there is no such task");
	if (e || !k->c->r)
		gate_problem(k->c, e, &error);
	else
		k->then(k, &mine.rows[0]);
	uar_run_list_fini(&mine);
}

void gate_a2a_look_up(struct a2a_call *k,
		      void (*then)(struct a2a_call *k, const struct uar_run_row *row))
{
	uar_err e;

	k->then = then;
	k->known = (struct uar_run_list){
		.owner = k->c->owner, .run_id = k->task_id, .limit = 1, .done = found
	};
	k->c->op = k;
	e = uar_reader_runs(k->c->g->o.reader, &k->known);
	if (e)
		gate_problem(k->c, e, NULL);
}

static void set_view(struct a2a_call *k)
{
	k->view.dialect = &uar_a2a;
	k->view.options.old_peer = k->old;
	k->view.options.rpc_id = k->id;
	k->view.options.history_length = k->history_length;
	k->view.options.wrapped = k->op == UAR_A2A_SEND;
	k->view.one_segment = k->op != UAR_A2A_SUBSCRIBE;
	k->view.wait_us = k->c->g->o.sync_wait_us;
}

static void show_row(struct a2a_call *k, const struct uar_run_row *row)
{
	uint64_t until = row->last_run_sequence;

	set_view(k);
	gate_answer_view(k->c, k->task_id, &k->view, until);
}

void gate_a2a_show(struct a2a_call *k, uar_str run_id)
{
	set_view(k);
	if (k->op == UAR_A2A_STREAM) {
		gate_stream_view(k->c, run_id, &k->view);
	} else if (k->op == UAR_A2A_SEND && !k->in.blocking) {
		k->task_id = run_id;
		gate_a2a_look_up(k, show_row);
	} else {
		gate_answer_view(k->c, run_id, &k->view, k->op == UAR_A2A_CANCEL ? UINT64_MAX : 0);
	}
}

/* --- messages --------------------------------------------------------------------------------- */

static void show_made(struct a2a_call *k)
{
	gate_a2a_show(k, k->task_id);
}

static void created(struct uar_run_create *op)
{
	struct a2a_call *k = op->ctx;

	if (op->err || !k->c->r) {
		gate_problem(k->c, op->err, &op->error);
		return;
	}
	k->task_id = uar_arena_str(&k->c->arena, uar_str_c(op->run_id));
	if (!k->task_id.p)
		gate_problem(k->c, UAR_ENOMEM, NULL);
	else if (k->in.notify) /* of all that happens from the first event on */
		gate_a2a_notify(k, 0, show_made);
	else
		gate_a2a_show(k, k->task_id);
}

/* A message that is sent again gets the task that it has made. */
static uar_err put_key(struct a2a_call *k)
{
	struct gate_meaning meaning = { UAR_STR(UAR_AGENT_PLUGIN),
					k->agent_id,
					k->in.context_id,
					uar_json_get(k->params, UAR_STR("message")),
					NULL,
					NULL };
	struct uar_arena *arena = &k->c->arena;

	k->create.idempotency_key = uar_arena_printf(arena, "a2a:%.*s:%.*s", UAR_FMT(k->agent_id),
						     UAR_FMT(k->in.message_id));
	if (!k->create.idempotency_key.p)
		return UAR_ENOMEM;
	return gate_fingerprint(k->c, &meaning, &k->create.fingerprint);
}

static uar_err put_metadata(struct a2a_call *k)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "a2a");
	uar_jw_str(&w, "message_id", k->in.message_id);
	uar_jw_cstr(&w, "version", k->old ? "0.3" : "1.0");
	uar_jw_close(&w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e) {
		k->create.said.metadata = uar_arena_str(&k->c->arena, uar_buf_str(&b));
		e = k->create.said.metadata.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}

static uar_err put_inputs(struct a2a_call *k)
{
	if (!k->in.client.n)
		return UAR_OK;
	k->create.inputs = uar_arena_printf(&k->c->arena, "{\"" UAR_CLIENT_INPUT "\":%.*s}",
					    UAR_FMT(k->in.client));
	return k->create.inputs.p ? UAR_OK : UAR_ENOMEM;
}

static void begin_task(struct a2a_call *k)
{
	struct uar_error error = { 0 };
	uar_err e;

	k->create.owner = k->c->owner;
	k->create.agent_id = k->agent_id;
	k->create.message = k->in.text;
	k->create.conversation_id = k->in.context_id;
	k->create.said.source = "a2a";
	k->create.done = created;
	k->create.ctx = k;
	e = put_key(k);
	if (!e)
		e = put_metadata(k);
	if (!e)
		e = put_inputs(k);
	if (!e) {
		k->c->op = k;
		e = uar_runtime_create_turn(k->c->g->o.runtime, &k->create);
		error = k->create.error;
	}
	if (e)
		gate_problem(k->c, e, &error);
}

static void send_message(struct a2a_call *k)
{
	struct uar_error error = { 0 };
	uar_err e = uar_a2a_read_send(k->params, &k->c->arena, k->old, &k->in, &error);

	if (!e && k->in.notify) {
		e = uar_push_check(k->c->g->o.mailer, k->in.push.url, &error);
		if (e)
			uar_error_where(&error, "/configuration/%s/url",
					k->old ? "pushNotificationConfig"
					       : "taskPushNotificationConfig");
	}
	k->history_length = k->in.history_length;
	k->task_id = k->in.task_id;
	if (e)
		gate_problem(k->c, e, &error);
	else if (k->task_id.n)
		gate_a2a_look_up(k, gate_a2a_reply);
	else
		begin_task(k);
}

/* --- cancel and subscribe --------------------------------------------------------------------- */

static void cancelled(struct uar_run_cancel_op *op)
{
	struct a2a_call *k = op->ctx;

	if (op->err || !k->c->r) {
		gate_problem(k->c, op->err, &op->error);
		return;
	}
	if (op->over)
		gate_a2a_fail(k, UAR_A2A_TASK_NOT_CANCELABLE, "the task is over");
	else
		gate_a2a_show(k, k->task_id);
}

static void cancel_task(struct a2a_call *k, const struct uar_run_row *row)
{
	uar_err e;

	if (row->terminal) {
		gate_a2a_fail(k, UAR_A2A_TASK_NOT_CANCELABLE, "the task is over");
		return;
	}
	k->cancel = (struct uar_run_cancel_op){ .owner = k->c->owner,
						.run_id = k->task_id,
						.reason = UAR_STR("CancelTask"),
						.done = cancelled,
						.ctx = k };
	k->c->op = k;
	e = uar_runtime_cancel_run(k->c->g->o.runtime, &k->cancel);
	if (e)
		gate_problem(k->c, e, NULL);
}

/* The task as it stands, then what follows; with a cursor what the client has missed. */
static void subscribe(struct a2a_call *k, const struct uar_run_row *row)
{
	struct uar_error error = { 0 };
	uar_str cursor = k->c->r->fields[UAR_HTTP_LAST_EVENT_ID];
	uar_err e = UAR_OK;

	if (row->terminal) {
		gate_a2a_fail(k, UAR_A2A_UNSUPPORTED, "the task is over: ask for it instead");
		return;
	}
	k->view.cursor = (struct uar_cursor){ row->last_run_sequence, UINT32_MAX };
	if (cursor.n)
		e = gate_cursor_parse_frame(cursor, gate_incarnation(k->c->g), &k->view.cursor);
	if (e) {
		uar_error_where(&error, "Last-Event-ID");
		gate_problem(k->c, e, &error);
		return;
	}
	set_view(k);
	gate_stream_view(k->c, k->task_id, &k->view);
}

/* --- dispatch --------------------------------------------------------------------------------- */

/* The agent is the caller's, and its definition lets the protocol in. */
static bool check_agent(struct a2a_call *k)
{
	struct call *c = k->c;
	struct uar_error error = { 0 };
	uar_err e = UAR_OK;

	if (!uar_workers_agent(c->g->o.work, &c->owner, k->agent_id))
		e = uar_error_set(&error, UAR_ENOTFOUND, "there is no agent \"%.*s\"",
				  UAR_FMT(k->agent_id));
	if (!e)
		e = gate_check_protocol(c, k->agent_id, UAR_PROTOCOL_A2A, &error);
	if (e)
		gate_problem(c, e, &error);
	return !e;
}

static void begin(struct a2a_call *k)
{
	if (!check_agent(k))
		return;
	switch (k->op) {
	case UAR_A2A_SEND:
	case UAR_A2A_STREAM: send_message(k); break;
	case UAR_A2A_GET: gate_a2a_look_up(k, show_row); break;
	case UAR_A2A_CANCEL: gate_a2a_look_up(k, cancel_task); break;
	case UAR_A2A_SUBSCRIBE: gate_a2a_look_up(k, subscribe); break;
	case UAR_A2A_LIST: gate_a2a_list(k); break;
	case UAR_A2A_CARD: gate_a2a_extended_card(k); break;
	case UAR_A2A_PUSH_SET:
	case UAR_A2A_PUSH_GET:
	case UAR_A2A_PUSH_LIST:
	case UAR_A2A_PUSH_DELETE: gate_a2a_push_config(k); break;
	case UAR_A2A_OP_COUNT: gate_a2a_fail(k, UAR_A2A_METHOD, "there is no such method"); break;
	}
}

static struct a2a_call *make_call(struct call *c)
{
	struct a2a_call *k = uar_arena_alloc(&c->arena, sizeof *k);

	if (!k) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return NULL;
	}
	k->c = c;
	k->agent_id = c->params[0];
	k->history_length = -1;
	c->a2a = k;
	return k;
}

/* `fallback`: the version of a request that names none. False: it was answered. */
static bool take_version(struct a2a_call *k, bool fallback)
{
	uar_str header = uar_http_header(k->c->r, "a2a-version");

	k->old = fallback;
	if (!header.n || !uar_a2a_version(header, &k->old))
		return true;
	gate_a2a_fail(k, UAR_A2A_VERSION, "supported versions: 1.0, 0.3");
	return false;
}

/* --- JSON-RPC --------------------------------------------------------------------------------- */

/* The id goes back as it came. */
static bool take_id(struct a2a_call *k, const struct uar_json *root)
{
	const struct uar_json *id = uar_json_get(root, UAR_STR("id"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	bool good = id && (id->kind == UAR_JSON_STRING || id->kind == UAR_JSON_INT ||
			   id->kind == UAR_JSON_DOUBLE);

	if (good) {
		uar_json_write(&b, id);
		k->id = uar_arena_str(&k->c->arena, uar_buf_str(&b));
		good = !b.err && k->id.p;
	}
	if (!good)
		k->id = UAR_STR("null");
	uar_buf_fini(&b);
	return good || !id || id->kind == UAR_JSON_NULL;
}

/* "id" is the task's but in operations on configurations of 1.0, which read it themselves. */
static uar_err take_task(struct a2a_call *k, struct uar_error *error)
{
	bool pushes = k->op >= UAR_A2A_PUSH_SET && k->op <= UAR_A2A_PUSH_DELETE;
	uar_err e = pushes && !k->old ? UAR_OK
				      : uar_a2a_text(uar_json_get(k->params, UAR_STR("id")), "",
						     "id", &k->task_id, error);

	return e ? e
		 : uar_a2a_int(uar_a2a_member(k->params, "historyLength", "history_length"), "",
			       "historyLength", &k->history_length, error);
}

static const struct uar_json *parse(struct call *c, struct uar_error *error)
{
	const struct uar_json *root = NULL;

	if (uar_json_parse_copy(c->r->body, NULL, &c->arena, &root, error))
		return NULL;
	return root;
}

void gate_a2a_rpc(struct call *c)
{
	struct a2a_call *k = make_call(c);
	struct uar_error error = { 0 };
	const struct uar_json *root, *version;
	bool old = false;
	uar_str method;

	if (!k)
		return;
	k->rpc = true;
	k->id = UAR_STR("null");
	root = parse(c, &error);
	if (!root) {
		gate_a2a_fail(k, UAR_A2A_PARSE, "the body is no JSON");
		return;
	}
	version = uar_json_get(root, UAR_STR("jsonrpc"));
	method = uar_json_text(root, "method");
	if (!take_id(k, root) || !uar_str_is(uar_json_str(version, UAR_STR("")), "2.0") ||
	    !method.n) {
		gate_a2a_fail(k, UAR_A2A_REQUEST, "a request has jsonrpc \"2.0\", id and method");
		return;
	}
	k->params = uar_json_get(root, UAR_STR("params"));
	k->op = uar_a2a_op_of(method, &old);
	/* A method that only one version has says which it is, whatever the header says. */
	if (!take_version(k, old))
		return;
	if (k->op != UAR_A2A_OP_COUNT)
		k->old = old;
	if (k->params && k->params->kind != UAR_JSON_OBJECT) {
		gate_a2a_fail(k, UAR_A2A_PARAMS, "params is an object");
		return;
	}
	if (take_task(k, &error))
		gate_problem(c, UAR_EINVALID, &error);
	else
		begin(k);
}

/* --- HTTP+JSON -------------------------------------------------------------------------------- */

static void rest(struct call *c, enum uar_a2a_op op)
{
	struct a2a_call *k = make_call(c);

	if (!k)
		return;
	k->op = op;
	k->params = c->body;
	if (take_version(k, false))
		begin(k);
}

void gate_a2a_message_send(struct call *c)
{
	rest(c, UAR_A2A_SEND);
}

void gate_a2a_message_stream(struct call *c)
{
	rest(c, UAR_A2A_STREAM);
}

void gate_a2a_tasks(struct call *c)
{
	rest(c, UAR_A2A_LIST);
}

static void rest_push(struct call *c, enum uar_a2a_op op)
{
	struct a2a_call *k = make_call(c);

	if (!k)
		return;
	k->op = op;
	k->params = c->body;
	k->task_id = c->params[1];
	if (take_version(k, false))
		begin(k);
}

void gate_a2a_push_set(struct call *c)
{
	rest_push(c, UAR_A2A_PUSH_SET);
}

void gate_a2a_push_list(struct call *c)
{
	rest_push(c, UAR_A2A_PUSH_LIST);
}

void gate_a2a_push_get(struct call *c)
{
	rest_push(c, UAR_A2A_PUSH_GET);
}

void gate_a2a_push_delete(struct call *c)
{
	rest_push(c, UAR_A2A_PUSH_DELETE);
}

void gate_a2a_extended(struct call *c)
{
	rest(c, UAR_A2A_CARD);
}

/* "ID:cancel", "ID:subscribe"; an id may have a colon of its own. */
static enum uar_a2a_op cut_verb(uar_str segment, uar_str *out_id)
{
	static const struct {
		const char *suffix;
		enum uar_a2a_op op;
	} verbs[] = { { ":cancel", UAR_A2A_CANCEL }, { ":subscribe", UAR_A2A_SUBSCRIBE } };

	*out_id = segment;
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		size_t n = strlen(verbs[i].suffix);

		if (segment.n > n &&
		    uar_str_is(uar_str_from(segment, segment.n - n), verbs[i].suffix)) {
			out_id->n = segment.n - n;
			return verbs[i].op;
		}
	}
	return UAR_A2A_GET;
}

static void rest_task(struct call *c, bool post)
{
	struct a2a_call *k = make_call(c);
	struct uar_error error = { 0 };
	uint64_t history = 0;
	uar_str text = UAR_STR_NONE;
	uar_err e;

	if (!k)
		return;
	k->op = cut_verb(c->params[1], &k->task_id);
	k->params = c->body;
	if (!take_version(k, false))
		return;
	if (post ? k->op == UAR_A2A_GET : k->op == UAR_A2A_CANCEL) {
		gate_a2a_fail(k, UAR_A2A_METHOD, "there is no such operation on a task");
		return;
	}
	e = gate_query_str(c, "historyLength", &text);
	if (!e && text.p)
		e = gate_query_u64(c, "historyLength", 0, &history, &error);
	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	if (text.p)
		k->history_length = (int64_t)(history > INT32_MAX ? INT32_MAX : history);
	begin(k);
}

void gate_a2a_task(struct call *c)
{
	rest_task(c, false);
}

void gate_a2a_task_verb(struct call *c)
{
	rest_task(c, true);
}
