/* openai.c - the OpenAI API: agents as models, runs as chat completions and responses. */
#include "gate/gate_int.h"
#include "event/client.h"
#include "gate/limits.h"
#include "proto/openai.h"

struct openai_call {
	struct uar_run_create op;
	struct uar_run_list known; /* of the response that is followed or asked for */
	struct uar_run_cancel_op cancel;
	struct uar_openai_input in;
	struct gate_view view;
};

/* --- models ---------------------------------------------------------------------------------- */

static void put_model(struct call *c, struct uar_jw *w, const struct uar_agent *a)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "id", a->id);
	uar_jw_cstr(w, "object", "model");
	uar_jw_int(w, "created", uar_clock_wall(c->g->o.sched->clock) / 1000000);
	uar_jw_cstr(w, "owned_by", "uar");
	uar_jw_close(w);
}

void gate_openai_models(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "object", "list");
	uar_jw_arr(&w, "data");
	for (size_t i = 0; uar_workers_agent_at(c->g->o.work, i); i++)
		if (uar_workers_shows(c->g->o.work, &c->owner,
				      uar_workers_agent_at(c->g->o.work, i)))
			put_model(c, &w, uar_workers_agent_at(c->g->o.work, i));
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

static uar_err refuse_model(uar_str model, struct uar_error *error)
{
	uar_error_where(error, "/model");
	return uar_error_set(error, UAR_ENOTFOUND,
			     "the model \"%.*s\" does not exist; see GET /v1/models",
			     UAR_FMT(model));
}

void gate_openai_model(struct call *c)
{
	const struct uar_agent *a = uar_workers_agent(c->g->o.work, &c->owner, c->params[0]);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_error error = { 0 };

	if (!a) {
		gate_problem(c, refuse_model(c->params[0], &error), &error);
		return;
	}
	put_model(c, &w, a);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

/* --- a run -------------------------------------------------------------------------------------
 */

static uar_err look_up(struct call *c, struct openai_call *k, uar_str run_id,
		       void (*done)(struct uar_run_list *q))
{
	k->op.ctx = c;
	k->known = (struct uar_run_list){
		.owner = c->owner, .run_id = run_id, .limit = 1, .done = done
	};
	c->op = k;
	return uar_reader_runs(c->g->o.reader, &k->known);
}

static void show_known(struct uar_run_list *q)
{
	struct openai_call *k = UAR_OWNER(q, struct openai_call, known);
	struct call *c = k->op.ctx;
	struct uar_error error = q->error;
	uint64_t until = 0;
	uar_str run_id = UAR_STR_NONE;
	uar_err e = q->err;

	if (!e) {
		until = q->rows[0].last_run_sequence;
		run_id = uar_arena_str(&c->arena, q->rows[0].run_id);
		k->view.options.model = uar_arena_str(&c->arena, q->rows[0].agent_id);
		e = run_id.p && k->view.options.model.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_run_list_fini(q);
	k->view.dialect = &uar_openai_responses;
	k->view.one_segment = true;
	if (e || !c->r)
		gate_problem(c, e, &error);
	else if (k->in.stream)
		gate_stream_view(c, run_id, &k->view);
	else
		gate_answer_view(c, run_id, &k->view, until);
}

/* A client that repeats its request has the text of an earlier stream no more: it is told the
 * run as it is, not what a restart took back. */
static void stream_known(struct uar_run_list *q)
{
	struct openai_call *k = UAR_OWNER(q, struct openai_call, known);
	struct call *c = k->op.ctx;
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e)
		k->view.options.fold_until = q->rows[0].last_run_sequence;
	uar_run_list_fini(q);
	if (e || !c->r)
		gate_problem(c, e, &error);
	else
		gate_stream_view(c, uar_str_c(k->op.run_id), &k->view);
}

static void show_run(struct uar_run_create *op)
{
	struct openai_call *k = UAR_OWNER(op, struct openai_call, op);
	struct call *c = op->ctx;
	uar_str run_id = uar_str_c(op->run_id);
	uar_err e = op->err;

	if (e || !c->r) {
		gate_problem(c, e, &op->error); /* of one who left: frees the call */
		return;
	}
	if (k->in.stream && !op->existed)
		gate_stream_view(c, run_id, &k->view);
	else if (!k->in.stream && !k->in.background)
		gate_answer_view(c, run_id, &k->view, 0);
	else if ((e = look_up(c, k, run_id, k->in.stream ? stream_known : show_known)))
		gate_problem(c, e, NULL);
}

static uar_err put_inputs(struct call *c, struct openai_call *k)
{
	if (!k->in.client.n)
		return UAR_OK;
	k->op.inputs = uar_arena_printf(&c->arena, "{\"" UAR_CLIENT_INPUT "\":%.*s}",
					UAR_FMT(k->in.client));
	return k->op.inputs.p ? UAR_OK : UAR_ENOMEM;
}

/* The same key with another body is another request. */
static uar_err take_key(struct call *c, struct openai_call *k, struct uar_error *error)
{
	struct gate_meaning meaning = { UAR_STR(UAR_AGENT_PLUGIN), k->op.agent_id,
					k->op.conversation_id, c->body, NULL };
	uar_err e = gate_take_key(c, &k->op.idempotency_key, error);

	if (e || !k->op.idempotency_key.n)
		return e;
	return gate_fingerprint(c, &meaning, &k->op.fingerprint);
}

static uar_err start_run(struct call *c, struct openai_call *k, struct uar_error *error)
{
	uar_err e = put_inputs(c, k);

	k->op.owner = c->owner;
	k->op.agent_id = k->in.model;
	k->op.message = k->in.message;
	k->op.context = k->in.context;
	k->op.done = show_run;
	k->op.ctx = c;
	if (!e)
		e = take_key(c, k, error);
	if (e)
		return e;
	c->op = &k->op;
	e = uar_runtime_create_turn(c->g->o.runtime, &k->op);
	if (e)
		*error = k->op.error;
	return e;
}

/* The next response is a turn of the same thread. */
static void found_previous(struct uar_run_list *q)
{
	struct openai_call *k = UAR_OWNER(q, struct openai_call, known);
	struct call *c = k->op.ctx;
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e) {
		k->op.conversation_id = uar_arena_str(&c->arena, q->rows[0].thread_id);
		e = k->op.conversation_id.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_run_list_fini(q);
	if (e == UAR_ENOTFOUND) {
		uar_error_where(&error, "/previous_response_id");
		(void)uar_error_set(&error, e, "there is no such response");
	}
	if (!e && c->r)
		e = start_run(c, k, &error);
	else if (!e)
		e = UAR_EEOF;
	if (e)
		gate_problem(c, e, &error);
}

static uar_err begin_run(struct call *c, struct openai_call *k, struct uar_error *error)
{
	return k->in.previous_run_id.n ? look_up(c, k, k->in.previous_run_id, found_previous)
				       : start_run(c, k, error);
}

static void create_instead(struct call *c, void *ctx)
{
	struct openai_call *k = ctx;
	struct uar_error error = { 0 };
	uar_err e = k->in.message.n ? begin_run(c, k, &error) : UAR_ENOTFOUND;

	if (e == UAR_ENOTFOUND && !error.text[0]) {
		uar_error_where(&error, "/input");
		(void)uar_error_set(&error, e, "no response waits for the result of such a call");
	}
	if (e)
		gate_problem(c, e, &error);
}

static void bring_results(struct call *c, struct openai_call *k)
{
	struct gate_results o = { .first = k->in.results,
				  .view = k->view,
				  .stream = k->in.stream,
				  .all = true,
				  .create_after = k->in.asks_after,
				  .where = k->view.dialect == &uar_openai_chat ? "/messages"
									       : "/input",
				  .create = create_instead,
				  .ctx = k };

	gate_bring_results(c, &o);
}

static void run_model(struct call *c, const struct uar_dialect *dialect,
		      uar_err (*read)(const struct uar_json *body, struct uar_arena *arena,
				      struct uar_openai_input *out, struct uar_error *error))
{
	struct openai_call *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = k ? read(c->body, &c->arena, &k->in, &error) : UAR_ENOMEM;

	if (!e && !uar_workers_agent(c->g->o.work, &c->owner, k->in.model))
		e = refuse_model(k->in.model, &error);
	if (!e) {
		k->op.conversation_id = k->in.conversation_id;
		k->view = (struct gate_view){
			.dialect = dialect,
			.one_segment = true,
			.options = { .model = k->in.model, .usage = k->in.usage },
		};
		k->view.options.previous_id = uar_json_str(
			uar_json_get(c->body, UAR_STR("previous_response_id")), UAR_STR(""));
	}
	if (!e && gate_has_results(k->in.results)) {
		bring_results(c, k);
		return;
	}
	if (!e)
		e = begin_run(c, k, &error);
	if (e)
		gate_problem(c, e, &error);
}

void gate_openai_chat(struct call *c)
{
	run_model(c, &uar_openai_chat, uar_openai_chat_read);
}

void gate_openai_create_response(struct call *c)
{
	run_model(c, &uar_openai_responses, uar_openai_responses_read);
}

/* --- a response that is there already
 * -------------------------------------------------------------- */

/* "resp_RUN", or "resp_RUN.2" for the second one of that run. */
static uar_err response_run(const struct call *c, uar_str *out, int64_t *out_part,
			    struct uar_error *error)
{
	uar_str id = c->params[0], number = UAR_STR_NONE;
	uint64_t n = 1;

	*out = uar_str_cut(uar_str_from(id, strlen(UAR_OPENAI_RESPONSE_ID)), '.', &number);
	if (uar_str_starts(id, UAR_STR(UAR_OPENAI_RESPONSE_ID)) && out->n &&
	    (!number.n || (!uar_str_u64(number, &n) && n > 1 && n < INT64_MAX))) {
		*out_part = (int64_t)n - 1;
		return UAR_OK;
	}
	return uar_error_set(error, UAR_ENOTFOUND, "there is no such response");
}

void gate_openai_response(struct call *c)
{
	struct openai_call *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_str run_id = UAR_STR_NONE, stream = UAR_STR_NONE, after = UAR_STR_NONE;
	uint64_t seen = 0;
	int64_t part = 0;
	uar_err e = k ? response_run(c, &run_id, &part, &error) : UAR_ENOMEM;

	if (!e)
		e = gate_query_str(c, "stream", &stream);
	if (!e)
		e = gate_query_str(c, "starting_after", &after);
	if (!e && after.p && (uar_str_u64(after, &seen) || seen >= INT64_MAX)) {
		uar_error_where(&error, "/starting_after");
		e = uar_error_set(&error, UAR_EINVALID, "the sequence_number of an event");
	}
	if (!e) {
		k->in.stream = uar_str_is(stream, "true");
		k->view.options.skip = after.p ? (int64_t)seen + 1 : 0;
		k->view.options.part = part;
	}
	if (!e)
		e = look_up(c, k, run_id, show_known);
	if (e)
		gate_problem(c, e, &error);
}

static void cancelled(struct uar_run_cancel_op *op)
{
	struct openai_call *k = UAR_OWNER(op, struct openai_call, cancel);
	struct call *c = op->ctx;
	uar_err e = op->err;

	if (!e && c->r)
		e = look_up(c, k, op->run_id, show_known);
	if (e || !c->r)
		gate_problem(c, e, &op->error);
}

void gate_openai_cancel(struct call *c)
{
	struct openai_call *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_str run_id = UAR_STR_NONE;
	uar_err e = k ? response_run(c, &run_id, &k->view.options.part, &error) : UAR_ENOMEM;

	if (!e) {
		k->cancel = (struct uar_run_cancel_op){
			.owner = c->owner, .run_id = run_id, .done = cancelled, .ctx = c
		};
		c->op = &k->cancel;
		e = uar_runtime_cancel_run(c->g->o.runtime, &k->cancel);
	}
	if (e)
		gate_problem(c, e, &error);
}
