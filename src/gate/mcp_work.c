/* mcp_work.c - a call that takes longer, from its request to its one answer.
 *
 * In a session what is said about the call goes into the log first, and readers of the
 * session show it; the call goes on when its client leaves. Without a session (the modern
 * era) it goes to the open answer, and a client who leaves cancels. */
#include "gate/mcp_int.h"

/* --- life ----------------------------------------------------------------------------------- */

void mcp_work_free(struct mcp_work *k)
{
	struct mcp_session *s = k->s;

	uar_list_remove(&k->node);
	k->m->work_count--;
	uar_timer_stop(k->m->g->o.sched, &k->grace);
	gate_stream_forget(&k->base);
	uar_arena_fini(&k->arena);
	k->ops->fini(k);
	mcp_session_release(s);
}

void mcp_work_free_if_done(struct mcp_work *k)
{
	if (k->settled && !k->under_way && !k->ops->busy(k))
		mcp_work_free(k);
}

static void grace_over(struct uar_timer *t);

bool mcp_work_init(struct mcp_work *k, const struct mcp_work_ops *ops,
		   const struct mcp_work_about *about)
{
	struct gate_mcp *m = about->m;

	k->ops = ops;
	k->m = m;
	k->base.g = m->g;
	k->grace.fn = grace_over;
	uar_list_init(&k->base.node);
	uar_list_init(&k->questions);
	k->id = uar_arena_str(&k->arena, about->id);
	k->token = about->token.n ? uar_arena_str(&k->arena, about->token) : UAR_STR_NONE;
	uar_list_add_last(&m->works, &k->node);
	m->work_count++;
	if (!k->id.p || (about->token.n && !k->token.p) ||
	    !uar_owner_copy(&k->arena, about->owner, &k->owner)) {
		mcp_work_free(k);
		return false;
	}
	k->s = about->s;
	if (k->s)
		k->s->users++;
	return true;
}

bool mcp_work_admit(struct mcp_exchange *x, struct mcp_work_about *about)
{
	struct gate_mcp *m = x->c->g->mcp;

	*about = (struct mcp_work_about){ .m = m, .s = x->s, .owner = &x->c->owner, .id = x->m.id };
	about->token = uar_mcp_progress_token(&x->m, &x->c->arena);
	if (m->work_count < UAR_LIMIT_MCP_AT_WORK)
		return true;
	mcp_answer_problem(x, UAR_ERATELIMIT, NULL);
	return false;
}

void mcp_work_attach(struct mcp_work *k, struct mcp_exchange *x)
{
	if (k->s)
		mcp_stream_name(k->s, k->stream);
	k->x = x;
	x->c->op = k;
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

static void answer_now(struct mcp_exchange *x, int status, uar_str message)
{
	struct uar_buf b = uar_buf_make(message.n + 1);
	struct mcp_session *s = x->s;

	uar_buf_add_str(&b, message);
	gate_answer(x->c, status, &b);
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
	gate_answer_json(x->c, 202, &b, &w);
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
			{ "id", k->id }, { "reason", uar_str_c(uar_err_text(e)) });
}

static void say_in_session(struct mcp_work *k, uar_str message, bool settles)
{
	struct mcp_exchange *x = take_exchange(k);

	if (x && settles) {
		record(k, "settled", UAR_STR_NONE, true);
		answer_now(x, 200, message);
		return;
	}
	if (x)
		answer_accepted(x);
	record(k, "message", message, settles);
}

/* --- an answer without a session ------------------------------------------------------------ */

static void leave(struct mcp_work *k)
{
	k->settled = true;
	k->ops->abandon(k, !k->m->g->draining);
	mcp_work_free_if_done(k);
}

static void answer_closed(void *ctx)
{
	struct mcp_work *k = ctx;

	gate_stream_forget(&k->base);
	leave(k);
}

/* The server goes, or is gone: a run goes on. */
static void drop_answer(struct gate_stream *base)
{
	struct mcp_work *k = UAR_OWNER(base, struct mcp_work, base);

	gate_stream_forget(base);
	k->settled = true;
	k->ops->abandon(k, false);
	mcp_work_free_if_done(k);
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
	struct uar_frame *frame = mcp_frame(message);
	uar_err e = frame ? uar_http_stream_send(k->base.http, frame) : UAR_ENOMEM;

	uar_frame_unref(frame);
	return e;
}

static void say_directly(struct mcp_work *k, int status, uar_str message, bool settles)
{
	uar_err e = UAR_OK;

	if (!k->base.http && settles) {
		struct mcp_exchange *x = take_exchange(k);

		if (x)
			answer_now(x, status, message);
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

static void say_with(struct mcp_work *k, int status, uar_str message, bool settles)
{
	if (k->settled)
		return;
	k->settled = settles;
	if (k->s)
		say_in_session(k, message, settles);
	else
		say_directly(k, status, message, settles);
}

void mcp_work_say(struct mcp_work *k, uar_str message)
{
	say_with(k, 200, message, false);
}

void mcp_work_notify(struct mcp_work *k, const char *method, struct uar_buf *params)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);

	if (!params->err && !uar_mcp_write_notification(&b, uar_str_c(method), uar_buf_str(params)))
		mcp_work_say(k, uar_buf_str(&b));
	uar_buf_fini(&b);
}

void mcp_work_say_error(struct mcp_work *k, int64_t code, const char *text, uar_str data)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	int status = code == UAR_MCP_MISSING_CAPABILITY ? 400 : 200;

	if (uar_mcp_write_error(&b, k->id, (int)code, uar_str_c(text), data) == UAR_OK)
		say_with(k, status, uar_buf_str(&b), true);
	uar_buf_fini(&b);
}

void mcp_work_say_result(struct mcp_work *k, struct uar_buf *result)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	uar_err e = result->err;

	if (!e)
		e = uar_mcp_write_result(&b, k->id, uar_buf_str(result));
	if (e)
		mcp_work_say_error(k, UAR_MCP_INTERNAL_ERROR, uar_err_text(e), UAR_STR_NONE);
	else
		say_with(k, 200, uar_buf_str(&b), true);
	uar_buf_fini(&b);
}

/* --- cancel --------------------------------------------------------------------------------- */

static void cancel_work(struct mcp_work *k, bool answer)
{
	struct mcp_exchange *x;

	if (answer) {
		mcp_work_say_error(k, UAR_MCP_REQUEST_CANCELLED, "cancelled by the client",
				   UAR_STR_NONE);
	} else {
		x = k->begun ? take_exchange(k) : NULL;
		if (x) {
			mcp_answer_bare(x->c, 202);
			mcp_session_release(k->s);
		}
		record(k, "settled", UAR_STR_NONE, true);
	}
	k->settled = true;
	k->ops->abandon(k, true);
	mcp_work_free_if_done(k);
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
				 "the server stops; a run goes on after its next start",
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

void mcp_work_fail(struct mcp_work *k, uar_err e, const struct uar_error *error)
{
	struct mcp_exchange *x = take_exchange(k);

	if (k->s && k->begun && !k->settled)
		record(k, "settled", UAR_STR_NONE, true);
	k->settled = true;
	if (x && (e == UAR_EINVALID || e == UAR_ESCHEMA || e == UAR_EWAITING))
		mcp_answer_failed(
			x, uar_str_c(error && error->text[0] ? error->text : uar_err_text(e)));
	else if (x)
		mcp_answer_problem(x, e, error);
	mcp_work_free_if_done(k);
}

/* The call is in the log: its answer will be. */
static void call_recorded(void *ctx, uar_err e, uint64_t sequence)
{
	struct mcp_work *k = ctx;
	struct mcp_exchange *x = k->x;

	k->under_way--;
	k->begun = !e;
	if (!e && !k->settled)
		e = k->ops->begin(k);
	if (e) {
		mcp_work_fail(k, e, NULL);
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
	mcp_work_free_if_done(k);
}

static uar_err record_call(struct mcp_work *k, uar_str run_id)
{
	struct mcp_record r = { .kind = "request",
				.id = k->id,
				.run_id = run_id,
				.token = k->token,
				.stream = uar_str_c(k->stream),
				.done = call_recorded,
				.ctx = k };
	uar_err e = mcp_record_add(k->s, &r);

	if (!e)
		k->under_way++;
	return e;
}

void mcp_work_begin(struct mcp_work *k, uar_str run_id)
{
	struct call *c = k->x->c;
	uar_err e;

	k->under_way++;
	e = k->s ? record_call(k, run_id) : k->ops->begin(k);
	k->under_way--;
	if (!e && !k->s && k->settled) {
		mcp_work_free_if_done(k);
		return;
	}
	if (e) {
		mcp_work_fail(k, e, NULL);
		return;
	}
	if (k->s)
		return;
	k->begun = true;
	if (!c->r)
		caller_left(c);
	else
		hold_answer(k);
}

/* A call that no run answers cannot go on: whether it had an effect is not known. */
static uar_err settle_lost(struct mcp_session *s, const struct mcp_stored *r)
{
	struct uar_buf b = uar_buf_make(8192);
	struct mcp_record out = { .kind = "message", .stream = r->stream, .settles = true };
	uar_err e = uar_mcp_write_error(
		&b, r->id, UAR_MCP_INTERNAL_ERROR,
		UAR_STR("the server was restarted during the call; it is not made again"),
		UAR_STR_NONE);

	out.message = uar_buf_str(&b);
	if (!e)
		e = mcp_record_add(s, &out);
	uar_buf_fini(&b);
	return e;
}

uar_err mcp_work_resume(struct mcp_session *s, const struct mcp_stored *r)
{
	return r->run_id.n ? mcp_run_resume(s, r) : settle_lost(s, r);
}

void mcp_works_end(struct mcp_session *s)
{
	UAR_LIST_EACH (it, &s->m->works) {
		struct mcp_work *k = UAR_OWNER(it, struct mcp_work, node);

		if (k->s != s || k->settled || k->x)
			continue;
		k->settled = true;
		k->ops->abandon(k, false);
		mcp_work_free_if_done(k);
	}
}

void mcp_works_fini(struct gate_mcp *m)
{
	UAR_LIST_EACH (it, &m->works)
		mcp_work_free(UAR_OWNER(it, struct mcp_work, node));
}
