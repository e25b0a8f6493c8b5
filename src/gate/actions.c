/* actions.c - what runs ask people: the list of questions, and the answers. */
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "read/actions.h"
#include "read/grants.h"

/* --- answers ------------------------------------------------------------------------ */

struct respond_body {
	uar_str action_id, decision, reason, idempotency_key;
	const struct uar_json *payload;
};

/* An answer is the same when its content is: a key adds nothing to that. */
static const struct uar_json_field respond_fields[] = {
	{ "action_id", UAR_FIELD_ID, true, offsetof(struct respond_body, action_id) },
	{ "decision", UAR_FIELD_STR, true, offsetof(struct respond_body, decision) },
	{ "reason", UAR_FIELD_STR, false, offsetof(struct respond_body, reason) },
	{ "payload", UAR_FIELD_ANY, false, offsetof(struct respond_body, payload) },
	{ "idempotency_key", UAR_FIELD_STR, false, offsetof(struct respond_body, idempotency_key) },
};

static void put_outcome(struct uar_jw *w, const struct uar_run_answer_op *op)
{
	uar_jw_raw(w, "result", op->result);
	uar_jw_raw(w, "event_ids", op->event_ids.n ? op->event_ids : UAR_STR("[]"));
}

static void answered(struct uar_run_answer_op *op)
{
	struct call *c = op->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err == UAR_ERESOLVED && op->result.n) {
		gate_problem_more(c, op->err, &op->error, "action", op->result);
		return;
	}
	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "ok", true);
	put_outcome(&w, op);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

static void begin_answer(struct call *c, struct uar_run_answer_op *op)
{
	uar_err e;

	op->owner = c->owner;
	op->ctx = c;
	c->op = op;
	e = uar_runtime_answer(c->g->o.runtime, op);
	if (e)
		gate_problem(c, e, &op->error);
}

void gate_respond_action(struct call *c, bool permission)
{
	struct uar_run_answer_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct respond_body body = { .payload = NULL };
	struct uar_error error = { 0 };
	uar_err e = op ? uar_json_read(c->body, respond_fields, ARRAY_LEN(respond_fields), true,
				       &body, &error)
		       : UAR_ENOMEM;

	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	*op = (struct uar_run_answer_op){ .action_id = body.action_id,
					  .decision = body.decision,
					  .reason = body.reason,
					  .done = answered,
					  .permission = permission,
					  .values = body.payload };
	begin_answer(c, op);
}

/* The body is the values: pointers are into it. */
static void submitted(struct uar_run_answer_op *op)
{
	static const char prefix[] = "/payload";
	char *where = op->error.where;

	if (op->err && !strncmp(where, prefix, sizeof prefix - 1))
		memmove(where, where + sizeof prefix - 1, strlen(where) - sizeof prefix + 2);
	answered(op);
}

/* The body is the values. A form is an action: its id is the form's. */
void gate_submit_form(struct call *c)
{
	struct uar_run_answer_op *op = uar_arena_alloc(&c->arena, sizeof *op);

	if (!op) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return;
	}
	*op = (struct uar_run_answer_op){ .run_id = c->params[0],
					  .action_id = c->params[1],
					  .decision = UAR_STR("submit"),
					  .done = submitted,
					  .values = c->body };
	begin_answer(c, op);
}

/* --- lists -------------------------------------------------------------------------- */

static void listed(struct uar_actions_op *op)
{
	gate_answer_read(op->ctx, op->err, &op->error, &op->json);
}

struct filter {
	const char *name;
	uar_str *to;
};

static uar_err decode_list(struct call *c, const struct filter *filters, size_t n, uint32_t *limit,
			   struct uar_error *error)
{
	uint64_t wanted = 0;
	uar_err e = gate_query_u64(c, "limit", UAR_LIMIT_LIST_DEFAULT, &wanted, error);

	for (size_t i = 0; i < n && !e; i++) {
		e = gate_query_str(c, filters[i].name, filters[i].to);
		if (!e && filters[i].to->p)
			*filters[i].to = uar_arena_str(&c->arena, *filters[i].to);
	}
	if (!e && (wanted == 0 || wanted > UAR_LIMIT_LIST_PAGE)) {
		uar_error_where(error, "?limit");
		e = uar_error_set(error, UAR_EINVALID, "limit must be 1 to %d",
				  UAR_LIMIT_LIST_PAGE);
	}
	*limit = (uint32_t)wanted;
	return e;
}

static uar_err list_actions(struct call *c, struct uar_actions_op *op, struct uar_error *error)
{
	const struct filter filters[] = {
		{ "session_id", &op->session_id }, { "run_id", &op->run_id }, { "type", &op->type },
		{ "status", &op->status },	   { "cursor", &op->cursor },
	};
	uar_err e;

	*op = (struct uar_actions_op){ .owner = c->owner, .done = listed, .ctx = c };
	e = decode_list(c, filters, ARRAY_LEN(filters), &op->limit, error);
	c->op = op;
	return e ? e : uar_read_actions(c->g->o.reader, op, error);
}

void gate_list_actions(struct call *c)
{
	struct uar_actions_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error = { 0 };
	uar_err e = op ? list_actions(c, op, &error) : UAR_ENOMEM;

	if (e)
		gate_problem(c, e, &error);
}

static void grants_listed(struct uar_grants_op *op)
{
	gate_answer_read(op->ctx, op->err, &op->error, &op->json);
}

static uar_err list_grants(struct call *c, struct uar_grants_op *op, struct uar_error *error)
{
	const struct filter filters[] = {
		{ "agent_id", &op->agent_id }, { "conversation_id", &op->conversation_id },
		{ "tool_id", &op->tool_id },   { "status", &op->status },
		{ "cursor", &op->cursor },
	};
	uar_err e;

	*op = (struct uar_grants_op){ .owner = c->owner, .done = grants_listed, .ctx = c };
	e = decode_list(c, filters, ARRAY_LEN(filters), &op->limit, error);
	c->op = op;
	return e ? e : uar_read_grants(c->g->o.reader, op, error);
}

void gate_list_grants(struct call *c)
{
	struct uar_grants_op *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error = { 0 };
	uar_err e = op ? list_grants(c, op, &error) : UAR_ENOMEM;

	if (e)
		gate_problem(c, e, &error);
}
