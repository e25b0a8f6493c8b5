/* answer.c - the one way to answer what a run has asked for, for every door.
 *
 *	the action's row -> its schema -> the values are checked -> what is long or
 *	secret is put aside -> UAR_CMD_ANSWER -> the row as it is then
 *
 * The id of an action names its run. The first answer counts. The same answer again gets the
 * first outcome, another one is refused with it. */
#include "base/sha256.h"
#include "core/limits.h"
#include "core/redact.h"
#include "engine/engine_int.h"
#include "json/limits.h"
#include "json/schema.h"

struct answering {
	struct rt_op under_way;
	struct uar_run_answer_op *op;
	struct uar_runtime *rt;
	struct uar_rows_query rows;
	struct rt_waker waker;
	struct uar_blob_get get; /* the schema */
	struct uar_blob_put put;
	struct uar_row_action row;     /* its strings are those of `rows` or in the arena */
	const struct uar_json *schema; /* NULL: there is none */
	struct uar_answer answer;
	struct uar_arena arena;
	struct uar_buf real, recorded, sealed, result;
	char values_sha256[65], sealed_sha256[65], digest[UAR_SHA256_TEXT + 1];
	int64_t number;
	char run_id[UAR_LIMIT_ID_BYTES + 1], action_id[UAR_ACTION_TEXT + 1];
	bool legacy; /* asked before actions had rows */
	bool lost;   /* another answer was first */
};

static void free_answering(struct answering *a)
{
	uar_store_rows_fini(&a->rows);
	uar_store_blob_get_fini(&a->get);
	uar_arena_fini(&a->arena);
	uar_buf_fini(&a->real);
	uar_buf_fini(&a->recorded);
	uar_buf_fini(&a->sealed);
	uar_buf_fini(&a->result);
	uar_free(a);
}

static void finish(struct answering *a, uar_err e, const struct uar_error *error)
{
	struct uar_run_answer_op *op = a->op;

	op->err = e;
	if (error && error != &op->error)
		op->error = *error;
	op->error.code = e;
	op->result = uar_buf_str(&a->result);
	op->event_ids = a->row.event_ids;
	rt_op_end(&a->under_way);
	op->done(op); /* what it is shown lives in a */
	free_answering(a);
}

static void drop(struct rt_op *under_way)
{
	free_answering(UAR_OWNER(under_way, struct answering, under_way));
}

/* --- what was asked ------------------------------------------------------------------- */

static uar_err write_result(struct answering *a)
{
	struct uar_jw w;

	uar_buf_clear(&a->result);
	w = uar_jw_begin(&a->result);
	uar_jw_obj(&w, NULL);
	uar_action_record(&w, &a->row);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* It has its answer: is it this one? */
static void already(struct answering *a)
{
	bool same = a->row.answer_digest.n && uar_str_is(a->row.answer_digest, a->digest);
	uar_err e = write_result(a);

	if (!e && !same)
		e = uar_error_set(&a->op->error, UAR_ERESOLVED,
				  "the action has its answer already: %.*s, by %.*s",
				  UAR_FMT(a->row.decision), UAR_FMT(a->row.source));
	finish(a, e, &a->op->error);
}

/* The whole answer as one text: equal answers are equal bytes. Keyed, as it is shown. */
static uar_err make_digest(struct answering *a)
{
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	uar_str key =
		uar_str_n((const char *)a->rt->secret.seal.bytes, sizeof a->rt->secret.seal.bytes);
	uar_err e;

	uar_buf_printf(&text, "%s\n%.*s\n", a->action_id, UAR_FMT(a->op->decision));
	if (a->op->values)
		uar_json_write_canonical(&text, a->op->values);
	e = text.err;
	if (!e && !uar_hmac_sha256_hex(key, uar_buf_str(&text), a->digest))
		e = UAR_EINTERNAL;
	uar_buf_fini(&text);
	return e;
}

/* --- it is durable, or was refused ------------------------------------------------------ */

static uar_err look_up(struct answering *a);

/* Somebody else was first: the row says who. */
static void look_again(struct answering *a)
{
	uar_err e;

	a->lost = true;
	uar_buf_clear(&a->real);
	uar_buf_clear(&a->recorded);
	uar_buf_clear(&a->sealed);
	uar_store_rows_fini(&a->rows);
	e = look_up(a);
	if (e)
		finish(a, e, NULL);
}

static uar_err take_outcome(struct answering *a, const struct cmd *cmd)
{
	struct uar_buf ids = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&ids);
	uar_err e;

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < cmd->event_count; i++) {
		const struct uar_event *ev = &cmd->events[i];

		uar_jw_str(&w, NULL, ev->event_id);
		if (ev->cls == UAR_EV_ACTION_RESOLVED)
			uar_action_take(&a->row, ev);
	}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	a->row.event_ids = uar_arena_str(&a->arena, uar_buf_str(&ids));
	uar_buf_fini(&ids);
	a->row.payload = a->answer.values;
	return e ? e : write_result(a);
}

/* Durable: now the worker hears it. The run may be over meanwhile. */
static void answered(struct cmd *cmd, uar_err e, const struct uar_error *error,
		     const struct uar_run *run)
{
	struct answering *a = cmd->ctx;
	struct live_run *r = cmd->run;

	(void)run;
	if (!e && r && r->worker && r->worker->ops->answer)
		r->worker->ops->answer(r->worker, &a->answer);
	if (e == UAR_ESTATE && !a->legacy && !a->lost) {
		look_again(a);
		return;
	}
	if (e == UAR_ESTATE)
		e = UAR_ERESOLVED;
	else if (!e)
		e = take_outcome(a, cmd);
	finish(a, e, e ? error : NULL);
}

static void send(struct answering *a);

static void session_awake(struct rt_waker *w, uar_err e)
{
	struct answering *a = UAR_OWNER(w, struct answering, waker);

	if (e)
		finish(a, e, NULL);
	else
		send(a);
}

static void send(struct answering *a)
{
	struct live_run *r = rt_run_find(a->rt, &a->op->owner, uar_str_c(a->run_id));
	struct cmd *cmd = NULL;
	uar_err e = UAR_OK;

	a->waker.fn = session_awake;
	if ((!r || !r->committed) &&
	    rt_wake(a->rt, &a->op->owner, a->row.row.session_id, &a->waker, &e))
		return;
	if (!e && !r && !a->lost && !a->legacy) { /* it is over: another answer was first */
		look_again(a);
		return;
	}
	if (!e && (!r || !r->committed))
		e = rt_out_of_reach(a->rt, &a->op->owner, uar_str_c(a->run_id), &a->op->error);
	if (!e) {
		cmd = rt_cmd_make(r, UAR_CMD_ANSWER);
		e = cmd ? UAR_OK : UAR_ENOMEM;
	}
	if (!e) {
		cmd->c.answer = a->answer;
		cmd->done = answered;
		cmd->ctx = a;
		e = rt_cmd_send(cmd);
	}
	if (!e)
		return;
	rt_cmd_free(cmd);
	finish(a, e, &a->op->error);
}

/* --- what is put aside ------------------------------------------------------------------- */

static void keep(struct answering *a);

static void kept(struct uar_blob_put *put)
{
	struct answering *a = UAR_OWNER(put, struct answering, put);
	bool sealed = a->sealed.n && !a->answer.sealed.n;

	if (put->err) {
		finish(a, put->err, &put->error);
		return;
	}
	memcpy(sealed ? a->sealed_sha256 : a->values_sha256, put->sha256, sizeof put->sha256);
	*(sealed ? &a->answer.sealed : &a->answer.values_blob) =
		uar_str_c(sealed ? a->sealed_sha256 : a->values_sha256);
	keep(a);
}

/* What is secret, sealed; then what is long; then the answer is sent. */
static void keep(struct answering *a)
{
	struct uar_store *store = a->rt->o.store;
	uar_str recorded = uar_buf_str(&a->recorded);
	uar_err e;

	if (a->sealed.n && !a->answer.sealed.n) {
		a->put = (struct uar_blob_put){ .bytes = uar_buf_str(&a->sealed), .done = kept };
	} else if (recorded.n > UAR_LIMIT_ANSWER_INLINE && !a->answer.values_blob.n) {
		a->put = (struct uar_blob_put){ .bytes = recorded, .done = kept };
	} else {
		if (!a->answer.values_blob.n)
			a->answer.values = recorded;
		send(a);
		return;
	}
	e = store->ops->blob_put(store, &a->put);
	if (e)
		finish(a, e, &a->put.error);
}

static uar_err record_values(struct answering *a)
{
	struct uar_jw w = uar_jw_begin(&a->recorded);
	bool hides = uar_redact(&w, NULL, a->op->values, a->schema);
	uar_err e = uar_jw_end(&w);

	uar_json_write(&a->real, a->op->values);
	e = e ? e : a->real.err;
	if (!e && hides)
		e = uar_seal(&a->rt->secret.seal, a->rt->o.rand, uar_buf_str(&a->real),
			     uar_str_c(a->action_id), &a->sealed);
	a->answer.real = uar_buf_str(&a->real);
	return e;
}

/* --- is it an answer ---------------------------------------------------------------------- */

/* "allow, deny" */
static uar_str list_words(struct answering *a, const struct uar_json *words)
{
	uar_str list = UAR_STR("");

	for (const struct uar_json *at = words->first; at; at = at->next)
		list = uar_arena_printf(&a->arena, "%.*s%s%.*s", UAR_FMT(list), list.n ? ", " : "",
					UAR_FMT(uar_json_str(at, UAR_STR(""))));
	return list;
}

static uar_err check_decision(struct answering *a, enum uar_verdict v)
{
	struct uar_error *error = &a->op->error;
	const struct uar_json *offered = NULL;
	uar_err e = uar_json_parse(a->row.decisions.n ? a->row.decisions : UAR_STR("[]"), NULL,
				   &a->arena, &offered, NULL);

	if (e)
		return e;
	for (const struct uar_json *at = offered->first; at; at = at->next)
		if (uar_str_eq(uar_json_str(at, UAR_STR("")), a->op->decision) && v)
			return UAR_OK;
	uar_error_where(error, "/decision");
	return uar_error_set(error, UAR_EINVALID, "one of %.*s", UAR_FMT(list_words(a, offered)));
}

static uar_err check_values(struct answering *a, enum uar_verdict v)
{
	bool wanted = uar_verdict_info[v].values && a->schema;
	struct uar_error found = { 0 }, *error = &a->op->error;
	struct uar_schema *schema = NULL;
	uar_err e;

	if (!a->op->values && !(wanted && v == UAR_VERDICT_SUBMIT))
		return UAR_OK;
	uar_error_where(error, "/payload");
	if (!a->op->values)
		return uar_error_set(error, UAR_EINVALID,
				     "the values that the action's schema asks for");
	if (!wanted && v != UAR_VERDICT_SUBMIT)
		return uar_error_set(error, UAR_EINVALID, "%s takes no payload",
				     uar_verdict_info[v].text);
	if (!a->schema)
		return UAR_OK;
	e = uar_schema_create(a->schema, NULL, &schema, &found);
	if (!e)
		e = uar_schema_validate(schema, a->op->values, &a->arena, &found);
	uar_schema_destroy(schema);
	if (!e)
		return UAR_OK;
	uar_error_where(error, "/payload%s", found.where);
	return uar_error_set(error, e, "%s", uar_error_text(&found));
}

/* All of the question is there. */
static void judge(struct answering *a)
{
	enum uar_verdict v = uar_verdict_parse(a->op->decision);
	bool expires = a->op->permission && uar_str_is(a->op->decision, "timeout");
	uar_err e = expires ? UAR_OK : check_decision(a, v);

	if (!e && !expires)
		e = check_values(a, v);
	if (!e)
		uar_error_clear(&a->op->error);
	a->answer =
		(struct uar_answer){ .number = a->number,
				     .verdict = v,
				     .source = expires ? UAR_ANSWER_TIMEOUT : UAR_ANSWER_RESPOND,
				     .reason = a->op->reason,
				     .continues_as = a->op->continues_as,
				     .channel_id = a->op->channel_id,
				     .digest = uar_str_c(a->digest) };
	if (!e && a->op->values)
		e = record_values(a);
	if (e)
		finish(a, e, &a->op->error);
	else
		keep(a);
}

/* --- the question --------------------------------------------------------------------------- */

static void schema_ready(struct uar_blob_get *get)
{
	struct answering *a = UAR_OWNER(get, struct answering, get);
	uar_err e = get->err;

	if (!e)
		e = uar_json_parse(get->bytes, NULL, &a->arena, &a->schema, NULL);
	if (e)
		finish(a, e, get->err ? &get->error : NULL);
	else
		judge(a);
}

/* Rows are as old as actions that can carry values; older ones are permissions. */
static void answer_legacy(struct answering *a)
{
	const struct live_run *r = rt_run_find(a->rt, &a->op->owner, uar_str_c(a->run_id));
	const struct uar_open_action *open =
		r && r->committed ? uar_action_open(&uar_run_rare(&r->state)->actions, a->number)
				  : NULL;

	if (!open) {
		finish(a, uar_error_set(&a->op->error, UAR_ENOTFOUND, "no action has that id"),
		       &a->op->error);
		return;
	}
	a->legacy = true;
	a->row = (struct uar_row_action){
		.row = { .kind = UAR_ROW_ACTION,
			 .id = uar_str_c(a->action_id),
			 .parent = uar_str_c(a->run_id),
			 .tag = uar_str_c(uar_action_info[open->type].text),
			 .status = UAR_STR("pending"),
			 .open = true,
			 .created_us = open->asked_us },
		.decisions = UAR_STR("[\"allow\",\"allow_for_session\",\"deny\"]"),
		.kind = uar_str_c(open->kind),
		.tool_name = uar_str_c(open->tool_name),
		.prompt = uar_str_c(open->prompt),
	};
	judge(a);
}

static bool is_permission(uar_str type)
{
	enum uar_action_type t = uar_action_type_parse(type);

	return t < UAR_ACTION_TYPE_COUNT && !uar_action_info[t].input;
}

static void take_row(struct answering *a)
{
	struct uar_store *store = a->rt->o.store;
	uar_str ref = a->row.schema_ref, sha256 = UAR_STR_NONE;
	uar_err e = UAR_OK;

	if (a->op->permission && !is_permission(a->row.row.tag)) {
		uar_error_where(&a->op->error, "/action_id");
		finish(a,
		       uar_error_set(&a->op->error, UAR_EINVALID,
				     "it is no permission: answer it with respond_action"),
		       &a->op->error);
		return;
	}
	if (!a->row.row.open) {
		already(a);
		return;
	}
	if (a->row.schema.n)
		e = uar_json_parse(a->row.schema, NULL, &a->arena, &a->schema, NULL);
	else if (ref.n)
		sha256 = uar_str_from(ref, sizeof "blob://" - 1);
	if (!e && !ref.n) {
		judge(a);
		return;
	}
	if (!e) {
		a->get = (struct uar_blob_get){ .limit = UAR_LIMIT_JSON_BYTES,
						.done = schema_ready };
		snprintf(a->get.sha256, sizeof a->get.sha256, "%.*s", UAR_FMT(sha256));
		e = store->ops->blob_get(store, &a->get);
	}
	if (e)
		finish(a, e, NULL);
}

static void row_ready(struct uar_rows_query *q)
{
	struct answering *a = UAR_OWNER(q, struct answering, rows);
	uar_err e = q->err;

	if (!e)
		e = uar_row_unpack(&q->rows[0], &a->arena, &a->row, sizeof a->row, &q->error);
	if (e == UAR_ENOTFOUND)
		answer_legacy(a);
	else if (e)
		finish(a, e, &q->error);
	else
		take_row(a);
}

static uar_err look_up(struct answering *a)
{
	struct uar_store *store = a->rt->o.store;

	a->rows = (struct uar_rows_query){ .owner = a->op->owner,
					   .kind = UAR_ROW_ACTION,
					   .id = uar_str_c(a->action_id),
					   .limit = 1,
					   .done = row_ready };
	return store->ops->rows(store, &a->rows);
}

static uar_err begin(struct answering *a)
{
	uar_err e;

	uar_arena_init(&a->arena, 0);
	a->real = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	a->recorded = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	a->sealed = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	a->result = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	e = make_digest(a);
	return e ? e : look_up(a);
}

uar_err uar_runtime_answer(struct uar_runtime *rt, struct uar_run_answer_op *op)
{
	struct answering *a;
	uar_str run_id;
	int64_t number;
	uar_err e;

	if (!uar_action_parse(op->action_id, &run_id, &number) || run_id.n > UAR_LIMIT_ID_BYTES ||
	    op->action_id.n > UAR_ACTION_TEXT || (op->run_id.n && !uar_str_eq(op->run_id, run_id)))
		return uar_error_set(&op->error, UAR_ENOTFOUND, "no action has that id");
	a = uar_zalloc(sizeof *a);
	if (!a)
		return UAR_ENOMEM;
	snprintf(a->run_id, sizeof a->run_id, "%.*s", UAR_FMT(run_id));
	snprintf(a->action_id, sizeof a->action_id, "%.*s", UAR_FMT(op->action_id));
	a->op = op;
	a->rt = rt;
	a->number = number;
	e = begin(a);
	if (e)
		free_answering(a);
	else
		rt_op_begin(rt, &a->under_way, drop);
	return e;
}
