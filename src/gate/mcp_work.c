/* mcp_work.c - a call of an agent over MCP: a run, its progress, its answer.
 *
 * In a session what is said about the call goes into the log first, and readers of the
 * session show it; the call goes on when its client leaves, and after a restart. Without a
 * session (the modern era) it goes to the open answer, and a client who leaves cancels. */
#include "gate/mcp_int.h"

struct mcp_work {
	struct uar_list node; /* in gate_mcp.works */
	struct gate_mcp *m;
	struct mcp_session *s;	 /* NULL: it has none */
	struct mcp_exchange *x;	 /* whose answer has not begun; NULL: it has */
	struct gate_stream base; /* without a session: the answer, once something was said */
	struct uar_arena arena, scratch;
	struct uar_owner owner;
	uar_str id, token; /* JSON texts */
	char stream[MCP_STREAM];
	struct uar_run_create op;
	uar_str run_id; /* empty: there is none yet */
	struct uar_run_cancel_op cancel;
	struct uar_stream *follow;
	struct uar_view view;
	struct uar_buf fresh; /* text that nothing was told of */
	uint64_t told;
	int64_t told_us;
	struct uar_timer grace;
	unsigned under_way; /* operations that will call back */
	bool settled;	    /* nothing more is said */
	bool quiet;	    /* after a restart: what was told before is not told again */
};

/* --- life ----------------------------------------------------------------------------------- */

static void free_work(struct mcp_work *k)
{
	struct mcp_session *s = k->s;

	uar_list_remove(&k->node);
	k->m->work_count--;
	uar_timer_stop(k->m->g->o.sched, &k->grace);
	uar_stream_close(k->follow);
	gate_stream_forget(&k->base);
	uar_view_fini(&k->view);
	uar_buf_fini(&k->fresh);
	uar_arena_fini(&k->scratch);
	uar_arena_fini(&k->arena);
	uar_free(k);
	mcp_session_release(s);
}

static void free_if_done(struct mcp_work *k)
{
	if (k->settled && !k->under_way && !k->follow)
		free_work(k);
}

static struct mcp_work *make_work(struct gate_mcp *m, struct mcp_session *s,
				  const struct uar_owner *owner, uar_str id, uar_str token)
{
	struct mcp_work *k = uar_zalloc(sizeof *k);

	if (!k)
		return NULL;
	k->m = m;
	k->base.g = m->g;
	uar_list_init(&k->base.node);
	uar_view_init(&k->view);
	k->fresh = uar_buf_make(UAR_LIMIT_MCP_PROGRESS_TEXT);
	k->id = uar_arena_str(&k->arena, id);
	k->token = token.n ? uar_arena_str(&k->arena, token) : UAR_STR_NONE;
	uar_list_add_last(&m->works, &k->node);
	m->work_count++;
	if (!k->id.p || (token.n && !k->token.p) || !uar_owner_copy(&k->arena, owner, &k->owner)) {
		free_work(k);
		return NULL;
	}
	k->s = s;
	if (s)
		s->users++;
	return k;
}

/* --- out ------------------------------------------------------------------------------------ */

/* The call that waits for the beginning of its answer; it waits no longer. */
static struct mcp_exchange *take_exchange(struct mcp_work *k)
{
	struct mcp_exchange *x = k->x;

	k->x = NULL;
	uar_timer_stop(k->m->g->o.sched, &k->grace);
	if (x) {
		x->c->gone = NULL;
		x->c->hurry = NULL;
	}
	return x;
}

static void answer_now(struct mcp_exchange *x, uar_str message)
{
	struct uar_buf b = uar_buf_make(message.n + 1);
	struct mcp_session *s = x->s;

	uar_buf_add_str(&b, message);
	gate_answer(x->c, 200, &b);
	uar_buf_fini(&b);
	mcp_session_release(s);
}

static void answer_accepted(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);
	struct mcp_session *s = x->s;

	uar_jw_obj(&w, NULL);
	uar_jw_bool(&w, "accepted", true);
	uar_jw_str(&w, "session_id", s->id);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(x->c, 202, &b);
	uar_buf_fini(&b);
	mcp_session_release(s);
}

static void record(struct mcp_work *k, const char *kind, uar_str message, bool settles)
{
	struct mcp_record r = {
		.kind = kind, .stream = uar_str_c(k->stream), .message = message, .settles = settles
	};
	uar_err e = mcp_record_add(k->s, &r);

	if (e)
		uar_log(k->m->g->o.log, UAR_LOG_ERROR, "mcp.message_lost", { "session", k->s->id },
			{ "run_id", k->run_id }, { "reason", uar_str_c(uar_err_text(e)) });
}

static void say_in_session(struct mcp_work *k, uar_str message, bool settles)
{
	struct mcp_exchange *x = take_exchange(k);

	if (x && settles) {
		record(k, "settled", UAR_STR_NONE, true);
		answer_now(x, message);
		return;
	}
	if (x)
		answer_accepted(x);
	record(k, "message", message, settles);
}

/* --- an answer without a session ------------------------------------------------------------ */

static void start_cancel(struct mcp_work *k);

static void leave(struct mcp_work *k)
{
	k->settled = true;
	uar_stream_close(k->follow);
	k->follow = NULL;
	if (!k->m->g->draining)
		start_cancel(k);
	free_if_done(k);
}

static void answer_closed(void *ctx)
{
	struct mcp_work *k = ctx;

	gate_stream_forget(&k->base);
	leave(k);
}

/* The server goes, or is gone: the run goes on. */
static void drop_answer(struct gate_stream *base)
{
	struct mcp_work *k = UAR_OWNER(base, struct mcp_work, base);

	gate_stream_forget(base);
	k->settled = true;
	uar_stream_close(k->follow);
	k->follow = NULL;
	free_if_done(k);
}

static uar_err begin_stream(struct mcp_work *k)
{
	struct uar_http_stream_events events = { NULL, answer_closed, k };
	struct mcp_exchange *x = k->x;
	uar_err e;

	k->base.drop = drop_answer;
	if (!x || !x->wants_stream)
		return UAR_ESKIP;
	take_exchange(k);
	e = gate_stream_open(&k->base, x->c, &events);
	if (e) {
		k->settled = true;
		mcp_answer_problem(x, e, NULL);
	}
	return e;
}

static uar_err send_frame(struct mcp_work *k, uar_str message)
{
	struct uar_buf b = uar_buf_make(message.n + 64);
	struct uar_frame *frame;
	uar_err e;

	uar_buf_add_str(&b, UAR_STR("event: message\ndata: "));
	uar_buf_add_str(&b, message);
	uar_buf_add_str(&b, UAR_STR("\n\n"));
	frame = b.err ? NULL : uar_frame_create(uar_buf_str(&b));
	uar_buf_fini(&b);
	e = frame ? uar_http_stream_send(k->base.http, frame) : UAR_ENOMEM;
	uar_frame_unref(frame);
	return e;
}

static void say_directly(struct mcp_work *k, uar_str message, bool settles)
{
	uar_err e = UAR_OK;

	if (!k->base.http && settles) {
		struct mcp_exchange *x = take_exchange(k);

		if (x)
			answer_now(x, message);
		return;
	}
	if (!k->base.http)
		e = begin_stream(k);
	if (!e)
		e = send_frame(k, message); /* progress for a full reader is left out */
	if (!settles || !k->base.http)
		return;
	if (e)
		uar_http_stream_cut(k->base.http);
	else
		uar_http_stream_end(k->base.http);
	gate_stream_forget(&k->base);
}

static void say(struct mcp_work *k, uar_str message, bool settles)
{
	if (k->settled)
		return;
	k->settled = settles;
	if (k->s)
		say_in_session(k, message, settles);
	else
		say_directly(k, message, settles);
}

/* --- what is said --------------------------------------------------------------------------- */

static void say_error(struct mcp_work *k, int code, const char *text)
{
	struct uar_buf b = uar_buf_make(8192);

	if (uar_mcp_write_error(&b, k->id, code, uar_str_c(text), UAR_STR_NONE) == UAR_OK)
		say(k, uar_buf_str(&b), true);
	uar_buf_fini(&b);
}

static void say_progress(struct mcp_work *k)
{
	int64_t now = uar_clock_mono(k->m->g->o.sched->clock);
	struct uar_buf b = uar_buf_make(16384), params = uar_buf_make(16384);
	struct uar_jw w = uar_jw_begin(&params);

	if (!k->token.n || !k->fresh.n || k->settled || k->quiet ||
	    (k->told && now - k->told_us < UAR_LIMIT_MCP_PROGRESS_MS * 1000LL))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_raw(&w, "progressToken", k->token);
	uar_jw_u64(&w, "progress", ++k->told);
	uar_jw_str(&w, "message", uar_buf_str(&k->fresh));
	uar_jw_close(&w);
	if (!uar_jw_end(&w) && !uar_mcp_write_notification(&b, UAR_STR("notifications/progress"),
							   uar_buf_str(&params)))
		say(k, uar_buf_str(&b), false);
	k->told_us = now;
	uar_buf_clear(&k->fresh);
	uar_buf_fini(&params);
	uar_buf_fini(&b);
}

static void say_result(struct mcp_work *k)
{
	struct uar_buf result = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER + 1024);
	uar_err e = mcp_write_run(&k->view, k->run_id,
				  k->s ? UAR_MCP_ERA_LEGACY : UAR_MCP_ERA_MODERN, &result);

	if (!e)
		e = uar_mcp_write_result(&b, k->id, uar_buf_str(&result));
	if (e)
		say_error(k, UAR_MCP_INTERNAL_ERROR, uar_err_text(e));
	else
		say(k, uar_buf_str(&b), true);
	uar_buf_fini(&b);
	uar_buf_fini(&result);
}

/* --- the run -------------------------------------------------------------------------------- */

static void note_text(struct mcp_work *k, uar_str text)
{
	if (k->fresh.n + text.n <= UAR_LIMIT_MCP_PROGRESS_TEXT)
		uar_buf_add_str(&k->fresh, text);
	else if (!k->fresh.n)
		uar_buf_add_str(&k->fresh, uar_str_utf8_prefix(text, UAR_LIMIT_MCP_PROGRESS_TEXT));
}

static uar_err on_change(void *ctx, const struct uar_view_change *change)
{
	struct mcp_work *k = ctx;

	if (change->kind == UAR_VIEW_MESSAGE_GREW &&
	    (change->message->kind == UAR_VIEW_TEXT || change->message->kind == UAR_VIEW_REASONING))
		note_text(k, change->text);
	else if (change->kind == UAR_VIEW_CALL_STARTED)
		note_text(k, change->call->name);
	else if (change->kind == UAR_VIEW_WAITING)
		note_text(k, UAR_STR("waiting for an answer"));
	return UAR_OK;
}

static uar_err run_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err run_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct mcp_work *k = ctx;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++) {
		uar_arena_reset(&k->scratch);
		e = uar_view_apply(&k->view, &ev[i], &k->scratch, on_change, k);
	}
	if (!e && k->view.end == UAR_VIEW_LIVE)
		say_progress(k);
	return e;
}

static void run_ended(void *ctx, uar_err why, const struct uar_error *error)
{
	struct mcp_work *k = ctx;

	(void)error;
	k->follow = NULL;
	if (!why && k->view.end != UAR_VIEW_LIVE)
		say_result(k);
	else
		say_error(k, UAR_MCP_INTERNAL_ERROR, uar_err_text(why ? why : UAR_EINTERNAL));
	k->settled = true;
	free_if_done(k);
}

static uar_err follow_run(struct mcp_work *k)
{
	struct uar_stream_options o = { .owner = k->owner, .run_id = k->run_id };

	o.sink = (struct uar_stream_sink){ run_opened, run_events, run_ended, k };
	return uar_stream_open(k->m->g->o.reader, &o, &k->follow);
}

/* --- cancel --------------------------------------------------------------------------------- */

static void cancelled(struct uar_run_cancel_op *op)
{
	struct mcp_work *k = op->ctx;

	k->under_way--;
	free_if_done(k);
}

static void start_cancel(struct mcp_work *k)
{
	if (!k->run_id.n)
		return; /* it is being made: created() looks again */
	k->cancel = (struct uar_run_cancel_op){ .owner = k->owner,
						.run_id = k->run_id,
						.reason = UAR_STR("cancelled by the MCP client"),
						.done = cancelled,
						.ctx = k };
	if (!uar_runtime_cancel_run(k->m->g->o.runtime, &k->cancel))
		k->under_way++;
}

static void cancel_work(struct mcp_work *k, bool answer)
{
	struct mcp_exchange *x;

	if (answer) {
		say_error(k, UAR_MCP_REQUEST_CANCELLED, "cancelled by the client");
	} else {
		x = k->run_id.n ? take_exchange(k) : NULL;
		if (x) {
			mcp_answer_bare(x->c, 202);
			mcp_session_release(k->s);
		}
		record(k, "settled", UAR_STR_NONE, true);
	}
	k->settled = true;
	uar_stream_close(k->follow);
	k->follow = NULL;
	start_cancel(k);
	free_if_done(k);
}

void mcp_work_cancel(struct mcp_session *s, uar_str id, bool answer)
{
	UAR_LIST_EACH (it, &s->m->works) {
		struct mcp_work *k = UAR_OWNER(it, struct mcp_work, node);

		if (k->s == s && !k->settled && uar_str_eq(k->id, id)) {
			cancel_work(k, answer);
			return;
		}
	}
}

/* --- the beginning -------------------------------------------------------------------------- */

static void caller_left(struct call *c)
{
	struct mcp_work *k = c->op;
	struct mcp_session *s = k->s;

	take_exchange(k);
	gate_call_free(c);
	if (!s) {
		leave(k);
		return;
	}
	mcp_session_release(s); /* the exchange's */
}

static void caller_hurries(struct call *c)
{
	struct mcp_work *k = c->op;
	struct mcp_exchange *x = take_exchange(k);

	if (k->s)
		answer_accepted(x);
	else
		mcp_answer_error(x, 503, UAR_MCP_INTERNAL_ERROR,
				 "the server stops; the run goes on after its next start",
				 UAR_STR_NONE);
}

static void grace_over(struct uar_timer *t)
{
	struct mcp_work *k = UAR_OWNER(t, struct mcp_work, grace);
	struct mcp_exchange *x = take_exchange(k);

	if (x)
		answer_accepted(x);
}

/* From here on the client may leave. */
static void hold_answer(struct mcp_work *k)
{
	struct call *c = k->x->c;

	c->op = k;
	c->gone = caller_left;
	c->hurry = caller_hurries;
	if (k->s && uar_timer_set(k->m->g->o.sched, &k->grace, UAR_LIMIT_MCP_GRACE_MS * 1000LL))
		grace_over(&k->grace);
}

static void begin_reading(struct mcp_work *k, uint64_t after)
{
	struct mcp_exchange *x = take_exchange(k);
	struct mcp_reading r = { .stream = uar_str_c(k->stream),
				 .after = after,
				 .primed = uar_str_cmp(k->s->version, UAR_STR("2025-11-25")) >= 0 };
	struct mcp_session *s = x->s;

	mcp_reader_open(x->c, s, &r);
	mcp_session_release(s);
}

static void fail_start(struct mcp_work *k, uar_err e, const struct uar_error *error)
{
	struct mcp_exchange *x = take_exchange(k);

	k->settled = true;
	if (x && (e == UAR_EINVALID || e == UAR_ESCHEMA))
		mcp_answer_failed(
			x, uar_str_c(error && error->text[0] ? error->text : uar_err_text(e)));
	else if (x)
		mcp_answer_problem(x, e, error);
	free_if_done(k);
}

/* The call is in the log: its answer will be. */
static void call_recorded(void *ctx, uar_err e, uint64_t sequence)
{
	struct mcp_work *k = ctx;
	struct mcp_exchange *x = k->x;

	k->under_way--;
	if (!e && !k->settled)
		e = follow_run(k);
	if (e) {
		fail_start(k, e, NULL);
		return;
	}
	if (k->settled) /* it was cancelled before its record was there */
		record(k, "settled", UAR_STR_NONE, true);
	if (x && !x->c->r) {
		x->c->op = k;
		caller_left(x->c);
	} else if (x && k->settled) {
		take_exchange(k);
		answer_accepted(x);
	} else if (x && x->wants_stream) {
		begin_reading(k, sequence);
	} else if (x) {
		hold_answer(k);
	}
	free_if_done(k);
}

static uar_err record_call(struct mcp_work *k)
{
	struct mcp_record r = { .kind = "request",
				.id = k->id,
				.run_id = k->run_id,
				.token = k->token,
				.stream = uar_str_c(k->stream),
				.done = call_recorded,
				.ctx = k };
	uar_err e = mcp_record_add(k->s, &r);

	if (!e)
		k->under_way++;
	return e;
}

static void created(struct uar_run_create *op)
{
	struct mcp_work *k = UAR_OWNER(op, struct mcp_work, op);
	struct call *c = k->x->c;
	uar_err e = op->err;

	k->under_way--;
	if (!e) {
		k->run_id = uar_str_c(op->run_id);
		if (k->settled)
			start_cancel(k); /* the client did not wait */
		e = k->s ? record_call(k) : follow_run(k);
	}
	if (e)
		fail_start(k, e, &op->error);
	else if (!k->s && !c->r)
		caller_left(c);
	else if (!k->s)
		hold_answer(k);
}

static uar_err read_call(struct mcp_exchange *x, const struct uar_agent *agent,
			 struct uar_run_create *op, struct uar_error *error)
{
	const struct uar_json *arguments = uar_json_get(x->m.params, UAR_STR("arguments"));
	const struct uar_json *inputs = uar_json_get(arguments, UAR_STR("inputs"));

	op->agent_id = uar_str_c(agent->id);
	op->message = uar_json_str(uar_json_get(arguments, UAR_STR("message")), UAR_STR(""));
	op->conversation_id =
		uar_json_str(uar_json_get(arguments, UAR_STR("conversation_id")), UAR_STR(""));
	if (!op->message.n && agent->entry != UAR_ENTRY_FIXTURE &&
	    !uar_agent_has_input_schema(agent))
		return uar_error_set(error, UAR_EINVALID,
				     "the argument \"message\" is required: a text for the agent");
	if (op->conversation_id.n && !uar_str_is_id(op->conversation_id))
		return uar_error_set(error, UAR_EINVALID, "conversation_id is no id");
	if (inputs && inputs->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_EINVALID, "inputs are an object");
	return inputs ? gate_other_inputs(x->c, inputs, &op->inputs) : UAR_OK;
}

static uar_err start_run(struct mcp_work *k, const struct uar_agent *agent, struct uar_error *error)
{
	uar_err e = read_call(k->x, agent, &k->op, error);

	if (e)
		return e;
	k->op.owner = k->owner;
	k->op.done = created;
	k->x->c->op = k;
	e = uar_runtime_create_run(k->m->g->o.runtime, &k->op);
	if (e)
		*error = k->op.error;
	else
		k->under_way++;
	return e;
}

void mcp_work_start(struct mcp_exchange *x, const struct uar_agent *agent)
{
	struct gate_mcp *m = x->c->g->mcp;
	struct uar_error error = { 0 };
	struct mcp_work *k = NULL;
	uar_err e;

	if (m->work_count < UAR_LIMIT_MCP_AT_WORK)
		k = make_work(m, x->s, &x->c->owner, x->m.id,
			      uar_mcp_progress_token(&x->m, &x->c->arena));
	if (!k) {
		mcp_answer_problem(x, UAR_ERATELIMIT, NULL);
		return;
	}
	if (k->s)
		mcp_stream_name(k->s, k->stream);
	k->x = x;
	k->grace.fn = grace_over;
	e = start_run(k, agent, &error);
	if (e)
		fail_start(k, e, &error);
}

uar_err mcp_work_resume(struct mcp_session *s, const struct mcp_stored *r)
{
	struct mcp_work *k = make_work(s->m, s, &s->owner, r->id, r->token);
	uar_err e = k ? UAR_OK : UAR_ENOMEM;

	if (e)
		return e;
	k->quiet = true;
	k->grace.fn = grace_over;
	k->run_id = uar_arena_str(&k->arena, r->run_id);
	snprintf(k->stream, sizeof k->stream, "%.*s", UAR_FMT(r->stream));
	e = k->run_id.p ? follow_run(k) : UAR_ENOMEM;
	if (e)
		free_work(k);
	return e;
}

void mcp_works_fini(struct gate_mcp *m)
{
	UAR_LIST_EACH (it, &m->works)
		free_work(UAR_OWNER(it, struct mcp_work, node));
}
