/* a2a_push.c - where notifications of a task go: configurations of an A2A client, and those that
 * come with a message. Each is one of a task that the caller has; any other is not found. */
#include "gate/a2a_int.h"
#include "gate/limits.h"

static const struct uar_json *config_of(const struct a2a_call *k)
{
	const struct uar_json *inner =
		uar_a2a_member(k->params, "pushNotificationConfig", "push_notification_config");

	return k->old && inner ? inner : k->params;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void open_result(const struct a2a_call *k, struct uar_jw *w)
{
	if (!k->rpc)
		return;
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "jsonrpc", "2.0");
	uar_jw_raw(w, "id", k->id);
}

/* Scheme, host and port: a path or a query may hold a secret. */
static uar_str origin_of(uar_str url)
{
	size_t n = uar_str_find(url, ':') + sizeof "//";

	while (n < url.n && !strchr("/?#", url.p[n]))
		n++;
	return uar_str_n(url.p, n);
}

/* A key with the scope `read` alone does not see the secrets of the receiver. */
static void put_config(struct a2a_call *k, struct uar_jw *w, const char *key,
		       const struct uar_a2a_push *config)
{
	struct uar_a2a_push shown = *config;

	if (!(k->c->scopes & GATE_SCOPE_RUN))
		shown = (struct uar_a2a_push){ .id = config->id,
					       .url = origin_of(config->url),
					       .scheme = config->scheme };
	uar_a2a_put_push(w, key, k->task_id, k->old, &shown);
}

/* The next one in the order of ids; NULL: there is none. */
static const struct uar_a2a_push *config_after(const struct uar_push_op *op, uar_str id)
{
	const struct uar_a2a_push *next = NULL;

	for (size_t i = 0; i < op->count; i++) {
		const struct uar_a2a_push *p = &op->found[i];

		if (uar_str_cmp(p->id, id) > 0 && (!next || uar_str_cmp(p->id, next->id) < 0))
			next = p;
	}
	return next;
}

/* As many as a page has, behind the id that is the token: it may be deleted meanwhile. */
static void put_page(struct a2a_call *k, struct uar_jw *w)
{
	const struct uar_push_op *op = &k->push.op;
	const struct uar_a2a_push *p = config_after(op, k->push.after);
	uar_str last = k->push.after;

	if (!k->old) {
		uar_jw_obj(w, k->rpc ? "result" : NULL);
		uar_jw_arr(w, "configs");
	} else {
		uar_jw_arr(w, k->rpc ? "result" : NULL);
	}
	for (uint32_t left = k->push.page; p && left; left--) {
		put_config(k, w, NULL, p);
		last = p->id;
		p = config_after(op, last);
	}
	uar_jw_close(w);
	if (k->old)
		return;
	uar_jw_str(w, "nextPageToken", p ? last : UAR_STR(""));
	uar_jw_close(w);
}

static void answer(struct a2a_call *k)
{
	const struct uar_push_op *op = &k->push.op;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const char *key = k->rpc ? "result" : NULL;

	if (k->op == UAR_A2A_PUSH_DELETE && !k->rpc) {
		uar_http_respond(k->c->r, &(struct uar_http_response){ .status = 204 });
		gate_call_free(k->c);
		return;
	}
	open_result(k, &w);
	if (k->op == UAR_A2A_PUSH_LIST)
		put_page(k, &w);
	else if (k->op == UAR_A2A_PUSH_DELETE)
		uar_jw_raw(&w, key, UAR_STR("null"));
	else
		put_config(k, &w, key, &op->found[0]);
	if (k->rpc)
		uar_jw_close(&w);
	gate_answer_json(k->c, 200, &b, &w);
}

static void done(struct uar_push_op *op)
{
	struct a2a_call *k = op->ctx;

	if (op->err == UAR_ENOTFOUND)
		(void)uar_error_set(&op->error, op->err, "the task has no such configuration");
	if (op->err || !k->c->r)
		gate_problem(k->c, op->err, &op->error);
	else
		answer(k);
}

/* --- operations ------------------------------------------------------------------------------- */

static void begin(struct a2a_call *k)
{
	struct uar_push_op *op = &k->push.op;
	uar_err e;

	op->owner = k->c->owner;
	op->run_id = k->task_id;
	op->ctx = k;
	k->c->op = k;
	e = uar_push(k->c->g->o.mailer, op);
	if (e) {
		op->err = e;
		op->done(op);
	}
}

static void found(struct a2a_call *k, const struct uar_run_row *row)
{
	struct uar_push_op *op = &k->push.op;

	*op = (struct uar_push_op){ .what = k->op == UAR_A2A_PUSH_SET	   ? UAR_PUSH_SET
					    : k->op == UAR_A2A_PUSH_DELETE ? UAR_PUSH_REMOVE
									   : UAR_PUSH_READ,
				    .id = k->push.id,
				    .push = k->in.push,
				    .after = row->last_run_sequence,
				    .over = row->terminal,
				    .done = done };
	begin(k);
}

static uar_err take_page(struct a2a_call *k, struct uar_error *error)
{
	uar_err e;

	k->push.after = UAR_STR("");
	e = gate_a2a_text(k, "pageToken", "page_token", &k->push.after, error);
	k->push.page = UAR_LIMIT_LIST_DEFAULT;
	if (!e && k->push.after.n && !uar_a2a_is_push_id(k->push.after)) {
		uar_error_where(error, "/pageToken");
		return uar_error_set(error, UAR_EINVALID, "pageToken is not valid");
	}
	return e ? e : gate_a2a_page_size(k, &k->push.page, error);
}

/* 0.3 may ask for the configuration of a task without naming one: that is the one with its id. */
static uar_err take_id(struct a2a_call *k, struct uar_error *error)
{
	const char *name = k->old ? "pushNotificationConfigId" : "id";
	uar_err e = UAR_OK;

	if (k->rpc)
		e = uar_a2a_text(uar_json_get(k->params, uar_str_c(name)), "", name, &k->push.id,
				 error);
	else
		k->push.id = k->c->params[2];
	if (!k->push.id.n)
		k->push.id = k->task_id;
	return e;
}

/* In JSON-RPC of 1.0 and, besides, as "id", of 0.3. */
static uar_err take_task_id(struct a2a_call *k, struct uar_error *error)
{
	uar_err e;

	if (!k->rpc)
		return UAR_OK;
	if (!k->old)
		k->task_id = UAR_STR("");
	e = uar_a2a_text(uar_a2a_member(k->params, "taskId", "task_id"), "", "taskId", &k->task_id,
			 error);
	if (e || k->task_id.n)
		return e;
	uar_error_where(error, "/taskId");
	return uar_error_set(error, UAR_EINVALID, "taskId is required");
}

static uar_err take_config(struct a2a_call *k, struct uar_error *error)
{
	const struct uar_json *config = config_of(k);
	uar_err e = uar_a2a_read_push(config, k->old,
				      config == k->params ? "" : "/pushNotificationConfig",
				      &k->in.push, error);

	if (!e && k->old && !k->in.push.id.n)
		k->in.push.id = k->task_id;
	return e;
}

void gate_a2a_push_config(struct a2a_call *k)
{
	struct uar_error error = { 0 };
	uar_err e = take_task_id(k, &error);

	if (!e)
		e = k->op == UAR_A2A_PUSH_SET	 ? take_config(k, &error)
		    : k->op == UAR_A2A_PUSH_LIST ? take_page(k, &error)
						 : take_id(k, &error);
	if (e)
		gate_problem(k->c, e, &error);
	else
		gate_a2a_look_up(k, found);
}

/* --- with a message --------------------------------------------------------------------------- */

/* A message that comes twice makes no second configuration. */
static uar_str id_of_message(const struct a2a_call *k)
{
	return k->in.push.id.n ? k->in.push.id : k->task_id;
}

static void set_config(struct a2a_call *k, const struct uar_a2a_push *push,
		       void (*done_fn)(struct uar_push_op *op))
{
	k->push.op = (struct uar_push_op){
		.what = UAR_PUSH_SET, .push = *push, .after = k->push.sequence, .done = done_fn
	};
	k->push.op.push.id = id_of_message(k);
	begin(k);
}

static void sent_with(struct uar_push_op *op)
{
	struct a2a_call *k = op->ctx;

	if (op->err || !k->c->r)
		gate_problem(k->c, op->err, &op->error);
	else
		k->push.then(k);
}

void gate_a2a_notify(struct a2a_call *k, uint64_t after, void (*then)(struct a2a_call *k))
{
	k->push.then = then;
	k->push.sequence = after;
	set_config(k, &k->in.push, sent_with);
}

/* --- with a reply ----------------------------------------------------------------------------- */

/* The configuration is stored before the answer is given. If the process dies between the two, no
 * notification of an accepted answer is lost. */
static void set_for_reply(struct uar_push_op *op)
{
	struct a2a_call *k = op->ctx;

	if (op->err)
		gate_problem(k->c, op->err, &op->error);
	else
		k->push.then(k);
}

static bool keep_old(struct uar_arena *arena, const struct uar_a2a_push *found,
		     struct uar_a2a_push *out)
{
	*out = (struct uar_a2a_push){ .url = uar_arena_str(arena, found->url),
				      .token = uar_arena_str(arena, found->token),
				      .scheme = uar_arena_str(arena, found->scheme),
				      .credentials = uar_arena_str(arena, found->credentials),
				      .old = found->old };
	return out->url.p && out->token.p && out->scheme.p && out->credentials.p;
}

static void old_read(struct uar_push_op *op)
{
	struct a2a_call *k = op->ctx;
	struct uar_error error = op->error;
	uar_err e = op->err == UAR_ENOTFOUND ? UAR_OK : op->err;

	k->push.had = !op->err;
	if (!op->err && !keep_old(&k->c->arena, &op->found[0], &k->push.old))
		e = UAR_ENOMEM;
	if (e || !k->c->r)
		gate_problem(k->c, e, &error);
	else
		set_config(k, &k->in.push, set_for_reply);
}

void gate_a2a_notify_reply(struct a2a_call *k, uint64_t after, void (*then)(struct a2a_call *k))
{
	k->push.then = then;
	k->push.sequence = after;
	k->push.op = (struct uar_push_op){ .what = UAR_PUSH_READ,
					   .id = id_of_message(k),
					   .done = old_read };
	begin(k);
}

static void put_back(struct uar_push_op *op)
{
	struct a2a_call *k = op->ctx;

	if (op->err)
		uar_log(k->c->g->o.log, UAR_LOG_WARN, "a2a.push_not_put_back",
			{ "run_id", k->task_id }, { "reason", uar_str_c(uar_err_text(op->err)) });
	gate_problem(k->c, k->push.refused, &k->push.why);
}

void gate_a2a_unnotify(struct a2a_call *k, uar_err e, const struct uar_error *error)
{
	k->push.refused = e;
	k->push.why = *error;
	if (k->push.had) {
		set_config(k, &k->push.old, put_back);
		return;
	}
	k->push.op = (struct uar_push_op){ .what = UAR_PUSH_REMOVE,
					   .id = id_of_message(k),
					   .done = put_back };
	begin(k);
}
