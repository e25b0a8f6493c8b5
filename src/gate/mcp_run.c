/* mcp_run.c - a call of an agent over MCP: a run, its progress, its questions, its answer.
 *
 * What the run asks people for is asked of the client, where that shows forms; else it waits
 * in the inbox, as it does while the client has not answered. In a session the call goes on
 * after a restart. Without one an answer that asks names the run, sealed, and the client calls
 * again with its answers. */
#include "gate/mcp_int.h"

/* A question that was put to the client. */
struct put {
	struct uar_list node;
	uar_str action_id;
};

struct run_work {
	struct mcp_work work;
	struct uar_arena scratch;
	struct uar_run_create op;
	uar_str run_id; /* empty: there is none yet */
	struct uar_run_cancel_op cancel;
	struct uar_run_answer_op answer;
	struct uar_list replies, asked; /* of struct mcp_reply, struct put */
	struct uar_stream *follow;
	struct uar_view view;
	struct uar_buf fresh; /* text that nothing was said of */
	uint64_t said;
	int64_t said_us;
	unsigned can;
	uar_str request;	/* what it called, for the state of an answer that asks */
	struct uar_timer grace; /* after it the answer is a task, if the client has tasks */
	struct mcp_task *task;	/* that is being looked at */
	bool has_tasks;
	bool quiet; /* after a restart: what was said before is not said again */
	bool replying, asking;
};

static struct run_work *run_of(struct mcp_work *k)
{
	return UAR_OWNER(k, struct run_work, work);
}

/* --- progress ------------------------------------------------------------------------------- */

static void note_text(struct run_work *r, uar_str text)
{
	if (r->fresh.n + text.n <= UAR_LIMIT_MCP_PROGRESS_TEXT)
		uar_buf_add_str(&r->fresh, text);
	else if (!r->fresh.n)
		uar_buf_add_str(&r->fresh, uar_str_utf8_prefix(text, UAR_LIMIT_MCP_PROGRESS_TEXT));
}

static void say_progress(struct run_work *r)
{
	struct mcp_work *k = &r->work;
	int64_t now = uar_clock_mono(k->m->g->o.sched->clock);
	struct uar_buf params = uar_buf_make(16384);
	struct uar_jw w = uar_jw_begin(&params);

	if (!k->token.n || !r->fresh.n || k->settled || r->quiet ||
	    (r->said && now - r->said_us < UAR_LIMIT_MCP_PROGRESS_MS * 1000LL))
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_raw(&w, "progressToken", k->token);
	uar_jw_u64(&w, "progress", ++r->said);
	uar_jw_str(&w, "message", uar_buf_str(&r->fresh));
	uar_jw_close(&w);
	params.err = uar_jw_end(&w);
	mcp_work_notify(k, "notifications/progress", &params);
	r->said_us = now;
	uar_buf_clear(&r->fresh);
	uar_buf_fini(&params);
}

/* --- questions ------------------------------------------------------------------------------ */

static bool was_asked(const struct run_work *r, uar_str action_id)
{
	UAR_LIST_EACH (it, &r->asked)
		if (uar_str_eq(UAR_OWNER(it, struct put, node)->action_id, action_id))
			return true;
	return false;
}

static uar_err note_asked(struct run_work *r, uar_str action_id)
{
	struct put *p = uar_arena_alloc(&r->work.arena, sizeof *p);

	if (!p)
		return UAR_ENOMEM;
	p->action_id = uar_arena_str(&r->work.arena, action_id);
	if (!p->action_id.p)
		return UAR_ENOMEM;
	uar_list_add_last(&r->asked, &p->node);
	return UAR_OK;
}

static void forget_asked(struct run_work *r, uar_str action_id)
{
	UAR_LIST_EACH (it, &r->asked)
		if (uar_str_eq(UAR_OWNER(it, struct put, node)->action_id, action_id))
			uar_list_remove(it);
}

static const struct uar_json *parse(struct run_work *r, uar_str text)
{
	const struct uar_json *j;

	return text.n && !uar_json_parse(text, NULL, &r->scratch, &j, NULL) ? j : NULL;
}

/* The questions that are open and were not asked; none leave *out empty. */
static uar_err write_questions(struct run_work *r, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	size_t n = 0;
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	for (const struct uar_view_action *a = r->view.actions; a && !e; a = a->next) {
		if (was_asked(r, a->id) || !mcp_question_fits(a, &r->scratch))
			continue;
		mcp_put_question(&w, a, &r->scratch);
		e = note_asked(r, a->id);
		n++;
	}
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	if (!n)
		uar_buf_clear(out);
	return e;
}

static void say_input_required(struct run_work *r, uar_str questions)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER), state = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "resultType", "input_required");
	uar_jw_obj(&w, "_meta");
	mcp_put_server_info(&w, UAR_MCP_META "serverInfo");
	uar_jw_close(&w);
	uar_jw_raw(&w, "inputRequests", questions);
	b.err = mcp_state_write(&r->work, r->request, r->run_id, &state);
	uar_jw_str(&w, "requestState", uar_buf_str(&state));
	uar_jw_close(&w);
	if (!b.err)
		b.err = uar_jw_end(&w);
	mcp_work_say_result(&r->work, &b); /* the stream ends by itself */
	uar_buf_fini(&state);
	uar_buf_fini(&b);
}

/* The run is a task from here on: the client asks for its result. */
static void task_looked(struct mcp_task *t)
{
	struct run_work *r = t->ctx;
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);

	r->task = NULL;
	r->work.under_way--;
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "resultType", "task");
	uar_jw_obj(&w, "_meta");
	mcp_put_server_info(&w, UAR_MCP_META "serverInfo");
	uar_jw_close(&w);
	if (!t->err)
		mcp_put_task(&w, t);
	uar_jw_close(&w);
	b.err = t->err;
	if (!b.err)
		b.err = uar_jw_end(&w);
	mcp_work_say_result(&r->work, &b);
	uar_buf_fini(&b);
	uar_stream_close(r->follow);
	r->follow = NULL;
	mcp_work_free_if_done(&r->work);
}

static uar_err answer_with_task(struct run_work *r)
{
	struct mcp_task_asked asked = { .m = r->work.m,
					.owner = &r->work.owner,
					.run_id = r->run_id,
					.brief = true,
					.done = task_looked,
					.ctx = r };
	uar_err e;

	if (r->task || r->work.settled)
		return UAR_OK;
	e = mcp_task_look(&asked, &r->task);
	if (!e)
		r->work.under_way++;
	return e;
}

static void grace_over(struct uar_timer *t)
{
	struct run_work *r = UAR_OWNER(t, struct run_work, grace);
	uar_err e = answer_with_task(r);

	if (e)
		mcp_work_say_error(&r->work, UAR_MCP_INTERNAL_ERROR, uar_err_text(e), UAR_STR_NONE);
	if (e)
		mcp_work_free_if_done(&r->work);
}

static uar_err ask_in_session(struct run_work *r, uar_str questions)
{
	const struct uar_json *tree = parse(r, questions);
	uar_err e = tree ? mcp_ask(&r->work, tree) : UAR_ENOMEM;

	r->asking = !e;
	return e;
}

static uar_err ask_if_waiting(struct run_work *r)
{
	struct uar_buf b;
	uar_err e;

	if (!r->view.waiting || r->asking || r->replying || r->work.settled)
		return UAR_OK;
	if (r->has_tasks)
		return answer_with_task(r);
	if (!(r->can & MCP_ELICITS))
		return UAR_OK;
	b = uar_buf_make(UAR_LIMIT_MCP_ANSWER / 2);
	uar_arena_reset(&r->scratch);
	e = write_questions(r, &b);
	if (!e && b.n && r->work.s)
		e = ask_in_session(r, uar_buf_str(&b));
	else if (!e && b.n)
		say_input_required(r, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e;
}

/* --- answers of the client ------------------------------------------------------------------ */

static uar_err follow_run(struct run_work *r);

static void give_next_reply(struct run_work *r);

static void reply_given(struct uar_run_answer_op *op)
{
	struct run_work *r = op->ctx;

	r->work.under_way--;
	if (op->err == UAR_EINVALID || op->err == UAR_ESCHEMA)
		forget_asked(r, op->action_id); /* it is asked again */
	give_next_reply(r);
}

static void replies_given(struct run_work *r)
{
	uar_err e = UAR_OK;

	r->replying = false;
	if (!r->work.settled && !r->follow)
		e = follow_run(r);
	else if (!r->work.settled)
		e = ask_if_waiting(r);
	if (e)
		mcp_work_say_error(&r->work, UAR_MCP_INTERNAL_ERROR, uar_err_text(e), UAR_STR_NONE);
	mcp_work_free_if_done(&r->work);
}

static void give_next_reply(struct run_work *r)
{
	struct mcp_reply *a;

	if (uar_list_empty(&r->replies)) {
		replies_given(r);
		return;
	}
	a = UAR_OWNER(r->replies.next, struct mcp_reply, node);
	uar_list_remove(&a->node);
	r->answer = (struct uar_run_answer_op){ .owner = r->work.owner,
						.run_id = r->run_id,
						.action_id = a->action_id,
						.decision = a->decision,
						.values = a->values,
						.done = reply_given,
						.ctx = r };
	if (uar_runtime_answer(r->work.m->g->o.runtime, &r->answer))
		give_next_reply(r);
	else
		r->work.under_way++;
}

static void run_answered(struct mcp_work *k, const struct uar_json *answers)
{
	struct run_work *r = run_of(k);

	r->asking = false;
	if (!answers) /* the client cannot answer: the inbox has it */
		return;
	if (mcp_replies_read(answers, &r->work.arena, &r->replies) || r->replying)
		return;
	r->replying = true;
	give_next_reply(r);
}

/* --- the run -------------------------------------------------------------------------------- */

static void say_result(struct run_work *r)
{
	struct uar_buf result = uar_buf_make(UAR_LIMIT_MCP_ANSWER);

	result.err = mcp_write_run(&r->view, r->run_id,
				   r->work.s ? UAR_MCP_ERA_LEGACY : UAR_MCP_ERA_MODERN, &result);
	mcp_work_say_result(&r->work, &result);
	uar_buf_fini(&result);
}

static uar_err on_change(void *ctx, const struct uar_view_change *change)
{
	struct run_work *r = ctx;

	if (change->kind == UAR_VIEW_MESSAGE_GREW &&
	    (change->message->kind == UAR_VIEW_TEXT || change->message->kind == UAR_VIEW_REASONING))
		note_text(r, change->text);
	else if (change->kind == UAR_VIEW_CALL_STARTED)
		note_text(r, change->call->name);
	else if (change->kind == UAR_VIEW_WAITING)
		note_text(r, UAR_STR("waiting for an answer"));
	return UAR_OK;
}

static uar_err run_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err run_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct run_work *r = ctx;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++) {
		uar_arena_reset(&r->scratch);
		e = uar_view_apply(&r->view, &ev[i], &r->scratch, on_change, r);
	}
	/* A short run may be over before its first events are seen here; it has progress, too. */
	if (!e && (r->view.end == UAR_VIEW_LIVE || !r->said))
		say_progress(r);
	if (!e && r->view.end == UAR_VIEW_LIVE)
		e = ask_if_waiting(r);
	return e ? e : r->work.settled ? UAR_ESKIP : UAR_OK;
}

static void run_ended(void *ctx, uar_err why, const struct uar_error *error)
{
	struct run_work *r = ctx;

	(void)error;
	r->follow = NULL;
	if (!why && r->view.end != UAR_VIEW_LIVE)
		say_result(r);
	else
		mcp_work_say_error(&r->work, UAR_MCP_INTERNAL_ERROR,
				   uar_err_text(why ? why : UAR_EINTERNAL), UAR_STR_NONE);
	r->work.settled = true;
	mcp_work_free_if_done(&r->work);
}

static uar_err follow_run(struct run_work *r)
{
	struct uar_stream_options o = { .owner = r->work.owner, .run_id = r->run_id };

	o.sink = (struct uar_stream_sink){ run_opened, run_events, run_ended, r };
	return uar_stream_open(r->work.m->g->o.reader, &o, &r->follow);
}

static uar_err begin_run(struct mcp_work *k)
{
	struct run_work *r = run_of(k);
	uar_err e = UAR_OK;

	if (r->has_tasks)
		e = uar_timer_set(k->m->g->o.sched, &r->grace, UAR_LIMIT_MCP_GRACE_MS * 1000LL);
	if (e || uar_list_empty(&r->replies))
		return e ? e : follow_run(r);
	r->replying = true;
	give_next_reply(r);
	return UAR_OK;
}

/* --- the end -------------------------------------------------------------------------------- */

static void cancelled(struct uar_run_cancel_op *op)
{
	struct run_work *r = op->ctx;

	r->work.under_way--;
	mcp_work_free_if_done(&r->work);
}

static void start_cancel(struct run_work *r)
{
	if (!r->run_id.n)
		return; /* it is being made: created() looks again */
	r->cancel = (struct uar_run_cancel_op){ .owner = r->work.owner,
						.run_id = r->run_id,
						.reason = UAR_STR("cancelled by the MCP client"),
						.done = cancelled,
						.ctx = r };
	if (!uar_runtime_cancel_run(r->work.m->g->o.runtime, &r->cancel))
		r->work.under_way++;
}

static void abandon_run(struct mcp_work *k, bool cancels)
{
	struct run_work *r = run_of(k);

	uar_stream_close(r->follow);
	r->follow = NULL;
	if (cancels)
		start_cancel(r);
}

static bool run_busy(const struct mcp_work *k)
{
	return UAR_OWNER(k, const struct run_work, work)->follow != NULL;
}

static void free_run(struct mcp_work *k)
{
	struct run_work *r = run_of(k);

	uar_stream_close(r->follow);
	uar_timer_stop(k->m->g->o.sched, &r->grace);
	uar_view_fini(&r->view);
	uar_buf_fini(&r->fresh);
	uar_arena_fini(&r->scratch);
	uar_free(r);
}

/* --- the beginning -------------------------------------------------------------------------- */

static const struct mcp_work_ops run_ops = { begin_run, abandon_run, run_busy, free_run,
					     run_answered };

static struct run_work *make_run(const struct mcp_work_about *about)
{
	struct run_work *r = uar_zalloc(sizeof *r);

	if (!r)
		return NULL;
	uar_list_init(&r->replies);
	uar_list_init(&r->asked);
	uar_view_init(&r->view);
	r->fresh = uar_buf_make(UAR_LIMIT_MCP_PROGRESS_TEXT);
	r->grace.fn = grace_over;
	return mcp_work_init(&r->work, &run_ops, about) ? r : NULL;
}

static void created(struct uar_run_create *op)
{
	struct run_work *r = UAR_OWNER(op, struct run_work, op);

	r->work.under_way--;
	if (op->err) {
		mcp_work_fail(&r->work, op->err, &op->error);
		return;
	}
	r->run_id = uar_str_c(op->run_id);
	if (r->work.settled)
		start_cancel(r); /* the client did not wait */
	mcp_work_begin(&r->work, r->run_id);
}

static uar_err read_call(struct mcp_exchange *x, const struct uar_agent *agent,
			 struct uar_run_create *op, struct uar_error *error)
{
	const struct uar_json *arguments = uar_json_get(x->m.params, UAR_STR("arguments"));
	const struct uar_json *inputs = uar_json_get(arguments, UAR_STR("inputs"));

	op->agent_id = uar_str_c(agent->id);
	op->message = uar_json_text(arguments, "message");
	op->conversation_id = uar_json_text(arguments, "conversation_id");
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

static uar_err start_run(struct run_work *r, const struct uar_agent *agent, struct uar_error *error)
{
	uar_err e = read_call(r->work.x, agent, &r->op, error);

	if (e)
		return e;
	r->op.owner = r->work.owner;
	r->op.done = created;
	e = uar_runtime_create_turn(r->work.m->g->o.runtime, &r->op);
	if (e)
		*error = r->op.error;
	else
		r->work.under_way++;
	return e;
}

/* The client calls again, with answers to what the run asked. */
static uar_err continue_run(struct run_work *r, uar_str run_id)
{
	const struct uar_json *given = uar_json_get(r->work.x->m.params, UAR_STR("inputResponses"));
	const struct uar_json *answers = NULL;
	uar_err e = UAR_OK;

	r->run_id = uar_arena_str(&r->work.arena, run_id);
	if (!r->run_id.p)
		return UAR_ENOMEM;
	r->quiet = true;
	if (given && given->kind == UAR_JSON_OBJECT)
		e = uar_json_parse_copy(given->text, NULL, &r->work.arena, &answers, NULL);
	if (!e)
		e = mcp_replies_read(answers, &r->work.arena, &r->replies);
	UAR_LIST_EACH (it, &r->replies)
		if (!e)
			e = note_asked(r, UAR_OWNER(it, struct mcp_reply, node)->action_id);
	return e;
}

static void begin_or_continue(struct run_work *r, struct mcp_exchange *x,
			      const struct uar_agent *agent)
{
	struct uar_error error = { 0 };
	uar_str run_id = UAR_STR_NONE;
	uar_err e = x->s ? UAR_OK : mcp_state_read(x, r->request, &run_id);

	if (e) {
		mcp_work_say_error(&r->work, UAR_MCP_INVALID_PARAMS,
				   "requestState is not of this call, or is too old", UAR_STR_NONE);
		mcp_work_free_if_done(&r->work);
		return;
	}
	e = run_id.n ? continue_run(r, run_id) : start_run(r, agent, &error);
	if (e)
		mcp_work_fail(&r->work, e, &error);
	else if (run_id.n)
		mcp_work_begin(&r->work, r->run_id);
}

void mcp_run_start(struct mcp_exchange *x, const struct uar_agent *agent)
{
	struct mcp_work_about about;
	struct run_work *r;

	if (!mcp_work_admit(x, &about))
		return;
	r = make_run(&about);
	if (!r) {
		mcp_answer_problem(x, UAR_ENOMEM, NULL);
		return;
	}
	r->can = x->s ? x->s->can : mcp_can(uar_mcp_meta(&x->m, "clientCapabilities"));
	if (!(x->c->scopes & GATE_SCOPE_ANSWER)) /* its questions wait in the inbox */
		r->can &= ~(unsigned)MCP_ELICITS;
	r->has_tasks = !x->s && mcp_has_tasks(uar_mcp_meta(&x->m, "clientCapabilities"));
	r->request = uar_arena_printf(&r->work.arena, "agent %s", agent->id);
	mcp_work_attach(&r->work, x);
	begin_or_continue(r, x, agent);
}

uar_err mcp_run_resume(struct mcp_session *s, const struct mcp_stored *stored)
{
	struct mcp_work_about about = {
		.m = s->m, .s = s, .owner = &s->owner, .id = stored->id, .token = stored->token
	};
	struct run_work *r = make_run(&about);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->quiet = true;
	r->can = s->can;
	r->work.begun = true;
	r->run_id = uar_arena_str(&r->work.arena, stored->run_id);
	snprintf(r->work.stream, sizeof r->work.stream, "%.*s", UAR_FMT(stored->stream));
	e = r->run_id.p ? follow_run(r) : UAR_ENOMEM;
	if (e)
		mcp_work_free(&r->work);
	return e;
}
