/* agui.c - routes for AG-UI clients: run an agent, attach to a run. */
#include "gate/cursor.h"
#include "gate/gate_int.h"
#include "proto/agui.h"
#include "proto/agui_input.h"
#include "proto/view.h"
#include "gate/limits.h"

struct agui_run {
	const struct uar_json *resume;		 /* answers to interrupts, or NULL */
	const struct uar_client_result *results; /* of the client's tools, or NULL */
	bool asks_after;			 /* a message of the user follows them */
	struct uar_run_create op;
	struct uar_run_list known; /* of a run that is there already */
	struct gate_view view;
};

/* --- run an agent -------------------------------------------------------------------- */

/* A client that comes again may have parts of the run: it joins at the last event, where
 * it is told all of it. */
static void stream_known(struct uar_run_list *q)
{
	struct agui_run *run = UAR_OWNER(q, struct agui_run, known);
	struct call *c = run->op.ctx;
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e)
		run->view.cursor = (struct uar_cursor){ q->rows[0].last_run_sequence, UINT32_MAX };
	uar_run_list_fini(q);
	if (e || !c->r)
		gate_problem(c, e, &error); /* of one who left: frees the call */
	else
		gate_stream_view(c, uar_str_c(run->op.run_id), &run->view);
}

static void look_up_known(struct agui_run *run)
{
	struct call *c = run->op.ctx;
	uar_err e;

	run->known = (struct uar_run_list){ .owner = c->owner,
					    .run_id = uar_str_c(run->op.run_id),
					    .limit = 1,
					    .done = stream_known };
	e = uar_reader_runs(c->g->o.reader, &run->known);
	if (e)
		gate_problem(c, e, NULL);
}

/* The thread waits for an answer: a run that never starts says so, as the protocol has it for
 * interrupts that no `resume` covers. */
static void refuse_turn(struct call *c, const struct uar_error *error, bool proto)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES), bytes = b;
	struct uar_frames frames = { .out = &b };
	uar_err e = uar_agui_refuse(error, &frames);

	if (!e && proto)
		e = uar_agui_proto_frames(uar_buf_str(&b), &c->g->scratch, &bytes);
	if (e)
		gate_problem(c, e, NULL);
	else if (proto)
		gate_answer_type(c, 200, UAR_AGUI_PROTO, uar_buf_str(&bytes));
	else
		gate_answer_type(c, 200, "text/event-stream", uar_buf_str(&b));
	uar_buf_fini(&bytes);
	uar_buf_fini(&b);
}

static void stream_created(struct uar_run_create *op)
{
	struct agui_run *run = UAR_OWNER(op, struct agui_run, op);
	struct call *c = op->ctx;

	if (op->err == UAR_EWAITING && c->r) {
		refuse_turn(c, &op->error, run->view.proto);
		return;
	}
	if (op->err || !c->r) {
		gate_problem(c, op->err, &op->error); /* of one who left: frees the call */
		return;
	}
	if (op->existed)
		look_up_known(run);
	else
		gate_stream_view(c, uar_str_c(op->run_id), &run->view);
}

/* A run that the client has named is made once: the same name attaches to it. */
static uar_err name_run(struct call *c, struct uar_run_create *op, const struct uar_agui_input *in)
{
	struct gate_meaning meaning = {
		UAR_STR(UAR_AGENT_PLUGIN), op->agent_id, in->thread_id, NULL, NULL, NULL
	};

	if (!in->run_id.n)
		return UAR_OK;
	op->idempotency_key =
		uar_arena_printf(&c->arena, UAR_VIEW_NAMED "%.*s", UAR_FMT(in->run_id));
	return op->idempotency_key.p ? gate_fingerprint(c, &meaning, &op->fingerprint) : UAR_ENOMEM;
}

static uar_err check_message(const struct call *c, const struct uar_run_create *op,
			     struct uar_error *error)
{
	const struct uar_agent *agent = uar_workers_agent(c->g->o.work, &c->owner, op->agent_id);

	if (op->message.n || !agent || agent->entry == UAR_ENTRY_FIXTURE)
		return UAR_OK;
	uar_error_where(error, "/messages");
	return uar_error_set(error, UAR_EINVALID, "no message of the user with text in it");
}

/* What only models understand is left out for other agents. */
static uar_err put_client(struct call *c, struct uar_run_create *op, uar_str client)
{
	const struct uar_agent *agent = uar_workers_agent(c->g->o.work, &c->owner, op->agent_id);
	uar_str others = op->inputs;

	if (!client.n || !agent || agent->entry != UAR_ENTRY_LLM)
		return UAR_OK;
	if (others.n) /* an object with at least one member */
		op->inputs = uar_arena_printf(&c->arena, "{\"" UAR_CLIENT_INPUT "\":%.*s,%.*s",
					      UAR_FMT(client), UAR_FMT(uar_str_from(others, 1)));
	else
		op->inputs = uar_arena_printf(&c->arena, "{\"" UAR_CLIENT_INPUT "\":%.*s}",
					      UAR_FMT(client));
	return op->inputs.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err decode_input(struct call *c, uar_str agent_id, struct agui_run *run,
			    struct uar_error *error)
{
	struct uar_agui_input in;
	struct uar_run_create *op = &run->op;
	uar_err e = uar_agui_input_read(c->body, &c->arena, &in, error);

	if (e)
		return e;
	op->owner = c->owner;
	op->agent_id = agent_id.n ? agent_id : in.agent_id;
	op->message = in.message;
	op->conversation_id = in.thread_id;
	if (!uar_str_is_id(op->agent_id)) {
		uar_error_where(error, "/forwardedProps/agent_id");
		return uar_error_set(error, UAR_EINVALID,
				     "name the agent here, or use /api/ag-ui/agents/:agent_id");
	}
	run->view.options = (struct uar_dialect_options){ .old_peer = in.old_peer,
							  .history = in.history,
							  .catalog = in.catalog,
							  .state = in.state };
	e = gate_check_protocol(c, op->agent_id, UAR_PROTOCOL_AG_UI, error);
	if (!e && in.resume) {
		run->resume = in.resume;
		run->view.options.run_name = in.run_id;
	} else if (!e && gate_has_results(in.results)) {
		run->results = in.results;
		run->asks_after = in.asks_after;
		run->view.options.run_name = in.asks_after ? UAR_STR_NONE : in.run_id;
	} else if (!e) {
		e = check_message(c, op, error);
	}
	if (!e)
		e = gate_other_inputs(c, in.inputs, &op->inputs);
	if (!e)
		e = put_client(c, op, in.client);
	return e ? e : name_run(c, op, &in);
}

static void create(struct call *c, struct agui_run *run)
{
	uar_err e;

	run->op.done = stream_created;
	run->op.ctx = c;
	c->op = &run->op;
	e = uar_runtime_create_turn(c->g->o.runtime, &run->op);
	if (e)
		gate_problem(c, e, &run->op.error);
}

static void create_instead(struct call *c, void *ctx)
{
	struct agui_run *run = ctx;
	struct uar_error error = { 0 };
	uar_err e = check_message(c, &run->op, &error);

	run->view.options.run_name = UAR_STR_NONE;
	if (e)
		gate_problem(c, e, &error);
	else
		create(c, run);
}

static void resume(struct call *c, struct agui_run *run)
{
	struct gate_resume o = { .entries = run->resume,
				 .thread_id = run->op.conversation_id,
				 .message = run->op.message,
				 .view = run->view,
				 .create = create_instead,
				 .ctx = run };

	gate_agui_resume(c, &o);
}

static void bring_results(struct call *c, struct agui_run *run)
{
	struct gate_results o = { .first = run->results,
				  .view = run->view,
				  .stream = true,
				  .create_after = run->asks_after,
				  .ag_ui = true,
				  .where = "/messages",
				  .create = create_instead,
				  .ctx = run };

	gate_bring_results(c, &o);
}

/* Creates the run that `run` describes; frees the call on an error. */
static void create_streamed(struct call *c, struct agui_run *run, uar_err e,
			    struct uar_error *error)
{
	if (!e) {
		run->view.dialect = &uar_agui;
		run->view.one_segment = true;
		run->view.proto = gate_accepts_proto(c);
	}
	if (e)
		gate_problem(c, e, error);
	else if (run->resume)
		resume(c, run);
	else if (run->results)
		bring_results(c, run);
	else
		create(c, run);
}

void gate_agui_agent(struct call *c)
{
	struct agui_run *run = uar_arena_alloc(&c->arena, sizeof *run);
	struct uar_error error = { 0 };
	uar_err e = run ? decode_input(c, c->params[0], run, &error) : UAR_ENOMEM;

	create_streamed(c, run, e, &error);
}

/* --- create a run ----------------------------------------------------------------------- */

/* Its quality is 0: it is named to be refused. */
static bool is_refused(uar_str parameters)
{
	while (parameters.n) {
		uar_str p = uar_str_trim(uar_str_cut(parameters, ';', &parameters));

		if (!uar_str_starts(p, UAR_STR("q=")) && !uar_str_starts(p, UAR_STR("Q=")))
			continue;
		for (size_t i = 2; i < p.n; i++)
			if (p.p[i] >= '1' && p.p[i] <= '9')
				return false;
		return true;
	}
	return false;
}

static bool names_proto(uar_str accepted)
{
	while (accepted.n) {
		uar_str parameters, range = uar_str_cut(accepted, ',', &accepted);
		uar_str type = uar_str_trim(uar_str_cut(range, ';', &parameters));

		if (uar_str_eq_nocase(type, UAR_STR(UAR_AGUI_PROTO)) && !is_refused(parameters))
			return true;
	}
	return false;
}

bool gate_accepts_proto(const struct call *c)
{
	for (size_t i = 0; i < c->r->header_count; i++)
		if (uar_str_eq_nocase(c->r->headers[i].name, UAR_STR("accept")) &&
		    names_proto(c->r->headers[i].value))
			return true;
	return false;
}

static bool wants_stream(const struct call *c)
{
	static const char type[] = "text/event-stream";

	if (gate_accepts_proto(c))
		return true;
	for (size_t i = 0; i < c->r->header_count; i++) {
		const struct uar_http_header *h = &c->r->headers[i];

		if (uar_str_eq_nocase(h->name, UAR_STR("accept")) &&
		    memmem(h->value.p, h->value.n, type, sizeof type - 1))
			return true;
	}
	return false;
}

static void answer_created(struct uar_run_create *op)
{
	struct call *c = op->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "run_id", op->run_id);
	uar_jw_cstr(&w, "status", op->status);
	uar_jw_str(&w, "stream_url",
		   uar_arena_printf(&c->arena, "/api/ag-ui/runs/%s/stream", op->run_id));
	gate_put_held_up(&w, c, op->run_id);
	uar_jw_close(&w);
	gate_answer_json(c, 202, &b, &w);
}

void gate_agui_create(struct call *c)
{
	struct agui_run *run = uar_arena_alloc(&c->arena, sizeof *run);
	struct uar_error error = { 0 };
	bool input = uar_agui_is_input(c->body);
	uar_err e = UAR_ENOMEM;

	if (run)
		e = input ? decode_input(c, UAR_STR_NONE, run, &error)
			  : gate_decode_create(c, &run->op, &error);
	if (!e && !input)
		e = gate_check_protocol(c, run->op.agent_id, UAR_PROTOCOL_AG_UI, &error);
	if (e || input || wants_stream(c)) {
		create_streamed(c, run, e, &error);
		return;
	}
	run->op.done = answer_created;
	run->op.ctx = c;
	c->op = &run->op;
	e = uar_runtime_create_run(c->g->o.runtime, &run->op);
	if (e)
		gate_problem(c, e, &run->op.error);
}

/* --- attach to a run --------------------------------------------------------------------- */

uar_err gate_view_cursor(struct call *c, uint64_t incarnation, struct uar_cursor *out,
			 struct uar_error *error)
{
	static const char *const names[] = { "last_event_id", "after" };
	uar_str header = c->r->fields[UAR_HTTP_LAST_EVENT_ID], text = UAR_STR_NONE;
	struct uar_cursor at = *out;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(names) && (!e || e == UAR_ERESYNC); i++) {
		uar_err bad = gate_query_str(c, names[i], &text);

		if (bad)
			return bad;
		if (text.p)
			e = gate_cursor_parse_frame(text, incarnation, &at);
	}
	if (header.n)
		e = gate_cursor_parse_frame(header, incarnation, &at);
	if (e == UAR_ECURSOR) {
		uar_error_where(error, "%s", gate_cursor_source(c->r));
		return uar_error_set(error, e, "a cursor is the id of a frame: 17.2");
	}
	if (!e)
		*out = at;
	return e;
}

uar_err gate_view_take_cursor(struct call *c, struct gate_view *view, struct uar_error *error)
{
	uar_err e = gate_view_cursor(c, gate_incarnation(c->g), &view->cursor, error);

	if (e != UAR_ERESYNC || view->proto)
		return e;
	view->cursor = (struct uar_cursor){ 0 };
	view->resync = true;
	return UAR_OK;
}

static uar_err read_choice(struct call *c, const char *name, const char *const *words,
			   struct uar_error *error)
{
	uar_str text = UAR_STR_NONE;
	uar_err e = gate_query_str(c, name, &text);

	if (e || !text.p || uar_str_is(text, words[0]))
		return e;
	if (uar_str_is(text, words[1]))
		return UAR_ESKIP;
	uar_error_where(error, "?%s", name);
	return uar_error_set(error, UAR_EINVALID, "%s is %s or %s", name, words[0], words[1]);
}

struct agui_attach {
	struct gate_view view;
	bool chunks;
};

static void attach(struct call *c, void *ctx)
{
	const struct agui_attach *k = ctx;

	if (k->chunks)
		gate_stream_chunks(c, c->params[0], &k->view);
	else
		gate_stream_view(c, c->params[0], &k->view);
}

void gate_agui_stream(struct call *c)
{
	static const char *const dialects[] = { "ag-ui", "chunks" };
	static const char *const versions[] = { "1.0", "0" };
	struct agui_attach *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = k ? UAR_OK : UAR_ENOMEM, chunks = UAR_OK;

	if (!e) {
		k->view.proto = gate_accepts_proto(c);
		e = gate_view_take_cursor(c, &k->view, &error);
	}
	if (!e)
		chunks = read_choice(c, "dialect", dialects, &error);
	if (!e && chunks && chunks != UAR_ESKIP)
		e = chunks;
	if (!e)
		e = read_choice(c, "protocol_version", versions, &error);
	if (e && e != UAR_ESKIP) {
		gate_problem(c, e, &error);
		return;
	}
	k->view.dialect = &uar_agui;
	k->view.options.old_peer = e == UAR_ESKIP;
	k->chunks = chunks == UAR_ESKIP;
	gate_with_protocol(c, UAR_PROTOCOL_AG_UI, attach, k);
}
