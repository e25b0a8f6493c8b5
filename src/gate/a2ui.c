/* a2ui.c - routes for A2UI clients: surfaces of a run, and what their users do. */
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "json/limits.h"
#include "proto/a2ui.h"
#include "read/actions.h"

static uar_err read_catalog(struct call *c, uar_str *out, struct uar_error *error)
{
	uar_err e = gate_query_str(c, "catalog", out);

	if (e || !out->p || uar_a2ui_knows_catalog(*out))
		return e;
	uar_error_where(error, "?catalog");
	return uar_error_set(error, UAR_EINVALID, "the basic catalog, by one of its ids: %s",
			     UAR_A2UI_CATALOG);
}

static uar_err read_version(struct call *c, struct uar_error *error)
{
	uar_str version = UAR_STR_NONE;
	uar_err e = gate_query_str(c, "v", &version);

	if (e || !version.p || uar_str_is(version, "0.9"))
		return e;
	uar_error_where(error, "?v");
	return uar_error_set(error, UAR_EINVALID, "this server speaks A2UI 0.9");
}

static void open_stream(struct call *c, void *ctx)
{
	gate_stream_view(c, c->params[0], ctx);
}

void gate_a2ui_stream(struct call *c)
{
	struct gate_view *view = uar_arena_alloc(&c->arena, sizeof *view);
	struct uar_error error = { 0 };
	uar_err e = view ? gate_view_take_cursor(c, view, &error) : UAR_ENOMEM;

	if (!e)
		e = read_version(c, &error);
	if (!e)
		e = read_catalog(c, &view->options.catalog, &error);
	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	view->dialect = &uar_a2ui;
	gate_with_protocol(c, UAR_PROTOCOL_A2UI, open_stream, view);
}

/* --- what users do ---------------------------------------------------------------------------- */

/* The messages of one request, one after the other. */
struct a2ui_call {
	struct call *c;
	const struct uar_json *next; /* NULL: all are done */
	const struct uar_json *model;
	struct uar_a2ui_input in; /* of the message that is being answered */
	struct uar_actions_op actions;
	struct uar_run_answer_op op;
	struct uar_buf results; /* JSON objects, a comma between two */
	bool single;		/* the body is the message */
};

static void take_next(struct a2ui_call *k);

static void drop_call(struct call *c)
{
	struct a2ui_call *k = c->op;

	uar_buf_fini(&k->results);
}

/* Shows what is wrong on the form that sent it. */
static void refuse_values(struct a2ui_call *k, uar_err e, const struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_str text = uar_arena_printf(&k->c->arena, "%s: %s", error->where, error->text);

	uar_jw_arr(&w, NULL);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "version", UAR_A2UI_VERSION);
	uar_jw_obj(&w, "updateDataModel");
	uar_jw_str(&w, "surfaceId",
		   uar_arena_printf(&k->c->arena, "form-%.*s", UAR_FMT(k->in.action_id)));
	uar_jw_cstr(&w, "path", "/errors");
	uar_jw_str(&w, "value", text);
	for (int i = 0; i < 3; i++)
		uar_jw_close(&w);
	if (uar_jw_end(&w))
		gate_problem(k->c, e, error);
	else
		gate_problem_more(k->c, e, error, "messages", uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void fail_call(struct a2ui_call *k, uar_err e, struct uar_error *error)
{
	uar_buf_fini(&k->results);
	if (k->in.verb == UAR_A2UI_SUBMIT && (e == UAR_ESCHEMA || e == UAR_EINVALID))
		refuse_values(k, e, error);
	else if (e == UAR_ERESOLVED && k->op.result.n)
		gate_problem_more(k->c, e, error, "action", k->op.result);
	else
		gate_problem(k->c, e, error);
}

static void answered(struct uar_run_answer_op *op)
{
	struct a2ui_call *k = op->ctx;

	if (op->err) {
		fail_call(k, op->err, &op->error);
		return;
	}
	if (k->results.n)
		uar_buf_add_char(&k->results, ',');
	uar_buf_add_str(&k->results, op->result);
	take_next(k);
}

static void send_answer(struct a2ui_call *k, uar_str decision, const struct uar_json *values)
{
	uar_err e;

	k->op = (struct uar_run_answer_op){ .owner = k->c->owner,
					    .run_id = k->c->params[0],
					    .action_id = k->in.action_id,
					    .decision = decision,
					    .values = values,
					    .done = answered,
					    .ctx = k };
	e = gate_give_answer(k->c, &k->op);
	if (e)
		fail_call(k, e, &k->op.error);
}

static const struct uar_json *find_schema(const struct uar_json *list, uar_str action_id)
{
	const struct uar_json *actions = uar_json_get(list, UAR_STR("actions"));

	for (const struct uar_json *a = actions && actions->count ? actions->first : NULL; a;
	     a = a->next)
		if (uar_str_eq(uar_json_text(a, "action_id"), action_id))
			return uar_json_get(a, UAR_STR("schema"));
	return NULL;
}

/* The values of the form as its schema wants them. */
static uar_err coerce_values(struct a2ui_call *k, uar_str actions, const struct uar_json **out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *list = NULL;
	uar_err e = uar_json_parse_copy(actions, NULL, &k->c->arena, &list, NULL);

	if (!e) {
		uar_a2ui_coerce(find_schema(list, k->in.action_id), k->in.values, &w);
		e = uar_jw_end(&w);
	}
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&b), NULL, &k->c->arena, out, NULL);
	uar_buf_fini(&b);
	return e;
}

static void found_form(struct uar_actions_op *op)
{
	struct a2ui_call *k = op->ctx;
	const struct uar_json *values = NULL;
	uar_err e = op->err;

	if (!e)
		e = coerce_values(k, uar_buf_str(&op->json), &values);
	uar_buf_fini(&op->json);
	if (e)
		fail_call(k, e, &op->error);
	else
		send_answer(k, UAR_STR("submit"), values);
}

static void submit_form(struct a2ui_call *k)
{
	struct uar_error error = { 0 };
	uar_err e;

	k->actions = (struct uar_actions_op){ .owner = k->c->owner,
					      .run_id = k->c->params[0],
					      .status = UAR_STR("any"),
					      .limit = UAR_LIMIT_LIST_PAGE,
					      .done = found_form,
					      .ctx = k };
	e = uar_read_actions(k->c->g->o.reader, &k->actions, &error);
	if (e)
		fail_call(k, e, &error);
}

static void answer_results(struct a2ui_call *k)
{
	struct call *c = k->c;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES), results = k->results;
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "ok", true);
	uar_jw_arr(&w, "results");
	if (results.n)
		uar_jw_raw(&w, NULL, uar_buf_str(&results));
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	uar_buf_fini(&results);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

static void take_next(struct a2ui_call *k)
{
	const struct uar_json *message = k->next;
	struct uar_error error = { 0 };
	uar_err e;

	if (!message) {
		answer_results(k);
		return;
	}
	k->next = k->single ? NULL : message->next;
	e = uar_a2ui_read(message, k->model, &k->in, &error);
	if (e) {
		k->in.verb = UAR_A2UI_ERROR;
		fail_call(k, e, &error);
		return;
	}
	switch (k->in.verb) {
	case UAR_A2UI_RESOLVE: send_answer(k, k->in.decision, NULL); break;
	case UAR_A2UI_CANCEL: send_answer(k, UAR_STR("cancel"), NULL); break;
	case UAR_A2UI_SUBMIT: submit_form(k); break;
	case UAR_A2UI_ERROR:
		uar_log(k->c->g->o.log, UAR_LOG_WARN, "a2ui.client_error", { "code", k->in.code },
			{ "detail", k->in.message });
		take_next(k);
		break;
	}
}

static void take_messages(struct call *c, void *ctx)
{
	struct a2ui_call *k = uar_arena_alloc(&c->arena, sizeof *k);
	const struct uar_json *list = uar_json_get(c->body, UAR_STR("messages"));

	(void)ctx;
	if (!k) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return;
	}
	k->c = c;
	k->single = !list;
	k->next = !list						? c->body
		  : list->kind == UAR_JSON_ARRAY && list->count ? list->first
								: NULL;
	k->model = uar_json_get(uar_json_get(c->body, UAR_STR("metadata")),
				UAR_STR("a2uiClientDataModel"));
	k->results = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	c->op = k;
	c->drop = drop_call;
	take_next(k);
}

void gate_a2ui_messages(struct call *c)
{
	gate_with_protocol(c, UAR_PROTOCOL_A2UI, take_messages, NULL);
}
