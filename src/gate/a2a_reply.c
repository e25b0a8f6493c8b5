/* a2a_reply.c - a message of an A2A client to a task that waits: the answer to what it asks.
 *
 * The first question that is open is answered. Text or data say what: a form takes data, or its
 * values as JSON text; a permission is decided by a word. */
#include "gate/a2a_int.h"

#include "event/limits.h"
#include "json/limits.h"

static bool offers(const struct uar_json *action, uar_str decision)
{
	const struct uar_json *list = uar_json_get(action, UAR_STR("decisions"));

	for (const struct uar_json *d = uar_json_first(list); d; d = d->next)
		if (uar_str_eq(uar_json_str(d, UAR_STR("")), decision))
			return true;
	return false;
}

/* {"decision": WORD}, {"approved": bool}, or a word as the text. */
static uar_str decide(const struct a2a_call *k, const struct uar_json *action)
{
	static const char *const yes[] = { "yes", "allow", "approve", "approved", "ok" };
	static const char *const no[] = { "no", "deny", "reject", "rejected" };
	const struct uar_json *approved = uar_json_get(k->in.data, UAR_STR("approved"));
	uar_str word = uar_json_text(k->in.data, "decision");

	if (word.n)
		return word;
	if (approved && approved->kind == UAR_JSON_BOOL)
		return approved->b ? UAR_STR("allow") : UAR_STR("deny");
	word = uar_str_trim(k->in.text);
	if (offers(action, word))
		return word;
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (uar_str_eq_nocase(word, uar_str_c(yes[i])))
			return UAR_STR("allow");
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (uar_str_eq_nocase(word, uar_str_c(no[i])))
			return UAR_STR("deny");
	return UAR_STR_NONE;
}

/* The one text that a form asks for; empty: it asks for something else. */
static uar_str only_text(const struct uar_json *action)
{
	const struct uar_json *schema = uar_json_get(action, UAR_STR("schema"));
	const struct uar_json *only = uar_json_first(uar_json_get(schema, UAR_STR("properties")));

	if (!only || only->next || !uar_str_is(uar_json_text(only, "type"), "string"))
		return UAR_STR_NONE;
	return only->key;
}

/* A form that asks for one text takes what was said for it. */
static const struct uar_json *said_as(struct a2a_call *k, uar_str name)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *j = NULL;
	uar_str key = uar_arena_str(&k->c->arena, name);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, key.p ? key.p : "", k->in.text);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e && key.p)
		e = uar_json_parse_copy(uar_buf_str(&b), NULL, &k->c->arena, &j, NULL);
	uar_buf_fini(&b);
	return e ? NULL : j;
}

/* The values of a form: data, text that is a JSON object, or a text that it asks for. */
static const struct uar_json *values_of(struct a2a_call *k, const struct uar_json *action)
{
	uar_str name = only_text(action);
	const struct uar_json *inner = uar_json_get(k->in.data, UAR_STR("values"));
	const struct uar_json *j = NULL;

	if (k->in.data)
		return inner && inner->kind == UAR_JSON_OBJECT ? inner : k->in.data;
	if (uar_json_parse(k->in.text, NULL, &k->c->arena, &j, NULL) || j->kind != UAR_JSON_OBJECT)
		return name.n ? said_as(k, name) : NULL;
	return j;
}

/* A message that is refused leaves no configuration. */
static void refuse(struct a2a_call *k, uar_err e, const struct uar_error *error)
{
	if (k->in.notify)
		gate_a2a_unnotify(k, e, error);
	else
		gate_problem(k->c, e, error);
}

static void answered(struct uar_run_answer_op *op)
{
	struct a2a_call *k = op->ctx;
	struct uar_error error = op->error;

	if (op->err) {
		refuse(k, op->err, &error);
	} else if (!k->c->r) {
		gate_problem(k->c, UAR_OK, NULL);
	} else {
		k->view.after_action = op->action_id;
		gate_a2a_show(k, k->task_id);
	}
}

static void give_answer(struct a2a_call *k)
{
	struct uar_error error;
	uar_err e;

	k->c->op = k;
	e = gate_give_answer(k->c, &k->answer);
	error = k->answer.error;
	if (e)
		refuse(k, e, &error);
}

static uar_err prepare_answer(struct a2a_call *k, const struct uar_json *list,
			      struct uar_error *error)
{
	const struct uar_json *action = uar_json_first(uar_json_get(list, UAR_STR("actions")));
	uar_err e = gate_check_scope(k->c, GATE_SCOPE_ANSWER, error);

	if (e)
		return e;

	if (!action) {
		k->refused = true;
		k->refused_as = UAR_A2A_UNSUPPORTED;
		return uar_error_set(error, UAR_ESTATE,
				     "the task is at work: send further messages without taskId, "
				     "or when it asks for input");
	}
	k->answer = (struct uar_run_answer_op){ .owner = k->c->owner,
						.action_id = uar_json_text(action, "action_id"),
						.run_id = k->task_id,
						.done = answered,
						.ctx = k };
	if (offers(action, UAR_STR("submit")) && !uar_json_text(k->in.data, "decision").n) {
		k->answer.decision = UAR_STR("submit");
		k->answer.values = values_of(k, action);
		k->answer.reason = uar_arena_printf(&k->c->arena, UAR_A2A_ANSWERED "%.*s",
						    UAR_FMT(k->in.message_id));
	} else {
		k->answer.decision = decide(k, action);
		k->answer.values = uar_json_get(k->in.data, UAR_STR("values"));
	}
	if (!k->answer.decision.n) {
		uar_error_where(error, "/message/parts");
		return uar_error_set(error, UAR_EINVALID,
				     "say \"allow\" or \"deny\", or send data {\"decision\": ...}");
	}
	return UAR_OK;
}

static void actions_read(struct uar_actions_op *op)
{
	struct a2a_call *k = op->ctx;
	struct uar_error error = op->error;
	const struct uar_json *list = NULL;
	uar_err e = op->err;

	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&op->json), NULL, &k->c->arena, &list, NULL);
	uar_buf_fini(&op->json);
	if (!k->c->r) {
		gate_call_free(k->c);
		return;
	}
	if (!e)
		e = prepare_answer(k, list, &error);
	if (e)
		gate_problem(k->c, e, &error);
	else if (k->in.notify)
		gate_a2a_notify_reply(k, k->push.sequence, give_answer);
	else
		give_answer(k);
}

void gate_a2a_reply(struct a2a_call *k, const struct uar_run_row *row)
{
	struct uar_error error = { 0 };
	uar_err e;

	if (row->terminal) {
		gate_a2a_fail(k, UAR_A2A_UNSUPPORTED,
			      "the task is over: send the message without taskId");
		return;
	}
	if (k->in.context_id.n && !uar_str_eq(k->in.context_id, row->thread_id)) {
		gate_a2a_fail(k, UAR_A2A_PARAMS, "the task is of another context");
		return;
	}
	k->push.sequence = row->last_run_sequence;
	k->actions = (struct uar_actions_op){ .owner = k->c->owner,
					      .run_id = k->task_id,
					      .status = UAR_STR("pending"),
					      .limit = UAR_LIMIT_LIST_PAGE,
					      .done = actions_read,
					      .ctx = k };
	k->c->op = k;
	e = uar_read_actions(k->c->g->o.reader, &k->actions, &error);
	if (e)
		gate_problem(k->c, e, &error);
}
