/* openai.c - the OpenAI API: agents as models, runs as chat completions and responses. */
#include "gate/gate_int.h"
#include "event/client.h"
#include "gate/limits.h"
#include "proto/openai.h"
#include "read/stream.h"

struct openai_call;

/* The beginning of a run: whether its response may be shown, and on which thread it is. */
struct first_event {
	struct uar_stream *stream;
	uar_str run_id, thread_id;
	bool hidden;
	void (*then)(struct call *c, struct openai_call *k);
};

struct openai_call {
	struct uar_run_create op;
	struct uar_run_list known; /* of the response that is followed or asked for */
	struct uar_run_cancel_op cancel;
	struct uar_openai_input in;
	struct gate_view view;
	struct first_event first; /* of the same response */
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
	gate_answer_json(c, 200, &b, &w);
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
	gate_answer_json(c, 200, &b, &w);
}

/* --- whether a response may be shown ---------------------------------------------------------- */

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct openai_call *k = ctx;
	struct call *c = k->op.ctx;

	k->first.thread_id = uar_arena_str(&c->arena, ev[0].ids[UAR_ID_THREAD]);
	for (size_t i = 0; i < n && !k->first.hidden; i++) {
		uar_arena_reset(&c->g->scratch);
		k->first.hidden = uar_openai_hides(&ev[i], &c->g->scratch);
	}
	return k->first.thread_id.p ? UAR_ESKIP : UAR_ENOMEM;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct openai_call *k = ctx;
	struct call *c = k->op.ctx;
	struct uar_error missing = { 0 };
	uar_err e = why == UAR_ESKIP ? UAR_OK : why ? why : UAR_ENOTFOUND;

	c->gone = NULL;
	if (!e && k->first.hidden)
		e = UAR_ENOTFOUND;
	if (e == UAR_ENOTFOUND) {
		if (k->in.previous_run_id.n)
			uar_error_where(&missing, "/previous_response_id");
		(void)uar_error_set(&missing, e, "there is no such response");
		error = &missing;
	}
	if (e)
		gate_problem(c, e, error);
	else
		k->first.then(c, k);
}

static void on_gone(struct call *c)
{
	struct openai_call *k = c->op;

	uar_stream_close(k->first.stream);
	gate_call_free(c);
}

/* Goes on with `then` if the response is there and may be shown; else answers. */
static uar_err open_response(struct call *c, struct openai_call *k, uar_str run_id,
			     void (*then)(struct call *c, struct openai_call *k))
{
	struct uar_stream_options o = { .owner = c->owner,
					.run_id = run_id,
					.stored = true,
					.sink = { on_opened, on_events, on_end, k } };
	uar_err e;

	k->op.ctx = c;
	k->first = (struct first_event){ .run_id = run_id, .then = then };
	e = uar_stream_open(c->g->o.reader, &o, &k->first.stream);
	if (e)
		return e;
	c->op = k;
	c->gone = on_gone;
	return UAR_OK;
}

/* --- a run ---------------------------------------------------------------------------------- */

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
	struct gate_meaning meaning = { UAR_STR(UAR_AGENT_PLUGIN),
					k->op.agent_id,
					k->op.conversation_id,
					c->body,
					NULL,
					NULL };
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
static void follow(struct call *c, struct openai_call *k)
{
	struct uar_error error = { 0 };
	uar_err e;

	k->op.conversation_id = k->first.thread_id;
	e = start_run(c, k, &error);
	if (e)
		gate_problem(c, e, &error);
}

static uar_err begin_run(struct call *c, struct openai_call *k, struct uar_error *error)
{
	return k->in.previous_run_id.n ? open_response(c, k, k->in.previous_run_id, follow)
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
		k->view.options.previous_id = uar_json_text(c->body, "previous_response_id");
	}
	if (!e && gate_has_results(k->in.results) && !k->in.previous_run_id.n) {
		bring_results(c, k);
		return;
	}
	if (!e)
		e = gate_has_results(k->in.results)
			    ? open_response(c, k, k->in.previous_run_id, bring_results)
			    : begin_run(c, k, &error);
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

/* --- a response that is there already ------------------------------------------------------- */

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

static void look_at(struct call *c, struct openai_call *k)
{
	uar_err e = look_up(c, k, k->first.run_id, show_known);

	if (e)
		gate_problem(c, e, NULL);
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
		e = open_response(c, k, run_id, look_at);
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

static void cancel(struct call *c, struct openai_call *k)
{
	uar_err e;

	k->cancel = (struct uar_run_cancel_op){
		.owner = c->owner, .run_id = k->first.run_id, .done = cancelled, .ctx = c
	};
	c->op = &k->cancel;
	e = uar_runtime_cancel_run(c->g->o.runtime, &k->cancel);
	if (e)
		gate_problem(c, e, NULL);
}

void gate_openai_cancel(struct call *c)
{
	struct openai_call *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_str run_id = UAR_STR_NONE;
	uar_err e = k ? response_run(c, &run_id, &k->view.options.part, &error) : UAR_ENOMEM;

	if (!e)
		e = open_response(c, k, run_id, cancel);
	if (e)
		gate_problem(c, e, &error);
}
