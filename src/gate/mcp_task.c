/* mcp_task.c - a run as a task (2026-07-28): its state, its questions, its result.
 *
 * The id of the task is the id of the run, so a task is durable before its client knows it.
 * What a task is, is read from the log each time that it is asked for. */
#include "gate/mcp_int.h"

bool mcp_has_tasks(const struct uar_json *capabilities)
{
	return uar_json_get(uar_json_get(capabilities, UAR_STR("extensions")),
			    UAR_STR(MCP_TASKS)) != NULL;
}

/* --- what a run is as a task ---------------------------------------------------------------- */

static void free_task(struct mcp_task *t)
{
	uar_list_remove(&t->node);
	t->m->work_count--;
	uar_stream_close(t->follow);
	uar_run_list_fini(&t->q);
	uar_view_fini(&t->view);
	uar_arena_fini(&t->scratch);
	uar_arena_fini(&t->arena);
	uar_free(t);
}

static void finish(struct mcp_task *t, uar_err e)
{
	t->err = e;
	t->done(t);
	free_task(t);
}

static bool is_waiting(const struct uar_run_row *row)
{
	return row->listed.waits.n > 0;
}

static bool was_cancelled(const struct uar_run_row *row)
{
	return uar_str_is(row->status, "canceled");
}

static uar_err opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err ignore(void *ctx, const struct uar_view_change *change)
{
	(void)ctx;
	(void)change;
	return UAR_OK;
}

static uar_err take_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct mcp_task *t = ctx;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++) {
		uar_arena_reset(&t->scratch);
		e = uar_view_apply(&t->view, &ev[i], &t->scratch, ignore, NULL);
	}
	return e;
}

static void all_read(void *ctx, uar_err why, const struct uar_error *error)
{
	struct mcp_task *t = ctx;

	(void)error;
	t->follow = NULL;
	finish(t, why);
}

/* The row says how it stands; what was asked and said is in the events. */
static void row_read(struct uar_run_list *q)
{
	struct mcp_task *t = UAR_OWNER(q, struct mcp_task, q);
	const struct uar_run_row *row = q->rows;
	struct uar_stream_options o = { .owner = t->owner, .run_id = q->run_id, .stored = true };
	uar_err e = q->err;

	o.sink = (struct uar_stream_sink){ opened, take_events, all_read, t };
	if (e || t->brief || (!row->terminal && !(is_waiting(row) && t->elicits)) ||
	    was_cancelled(row)) {
		finish(t, e);
		return;
	}
	e = uar_stream_open(t->m->g->o.reader, &o, &t->follow);
	if (e)
		finish(t, e);
}

uar_err mcp_task_look(const struct mcp_task_asked *asked, struct mcp_task **out)
{
	struct gate_mcp *m = asked->m;
	struct mcp_task *t;
	uar_err e = UAR_ENOMEM;

	if (m->work_count >= UAR_LIMIT_MCP_AT_WORK)
		return UAR_ERATELIMIT;
	t = uar_zalloc(sizeof *t);
	if (!t)
		return UAR_ENOMEM;
	t->m = m;
	t->elicits = asked->elicits;
	t->brief = asked->brief;
	t->done = asked->done;
	t->ctx = asked->ctx;
	uar_view_init(&t->view);
	uar_list_add_last(&m->tasks, &t->node);
	m->work_count++;
	t->q = (struct uar_run_list){ .limit = 1, .done = row_read };
	t->q.run_id = uar_arena_str(&t->arena, asked->run_id);
	if (t->q.run_id.p && uar_owner_copy(&t->arena, asked->owner, &t->owner)) {
		t->q.owner = t->owner;
		e = uar_reader_runs(m->g->o.reader, &t->q);
	}
	if (e)
		free_task(t);
	else
		*out = t;
	return e;
}

/* --- as JSON -------------------------------------------------------------------------------- */

static size_t count_questions(const struct mcp_task *t, struct uar_arena *scratch)
{
	size_t n = 0;

	if (t->view.waiting)
		for (const struct uar_view_action *a = t->view.actions; a; a = a->next)
			n += mcp_question_fits(a, scratch);
	return n;
}

static void put_questions(struct uar_jw *w, const struct mcp_task *t, struct uar_arena *scratch)
{
	uar_jw_obj(w, "inputRequests");
	for (const struct uar_view_action *a = t->view.actions; a; a = a->next)
		if (mcp_question_fits(a, scratch))
			mcp_put_question(w, a, scratch);
	uar_jw_close(w);
}

static void put_result(struct uar_jw *w, const struct mcp_task *t)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);

	if (!mcp_write_run(&t->view, t->q.run_id, UAR_MCP_ERA_MODERN, &b))
		uar_jw_raw(w, "result", uar_buf_str(&b));
	else
		uar_jw_raw(w, "result", UAR_STR("{\"content\":[],\"isError\":true}"));
	uar_buf_fini(&b);
}

enum { POLL_MS = 500 };

void mcp_put_task(struct uar_jw *w, const struct mcp_task *t)
{
	const struct uar_run_row *row = t->q.rows;
	bool over = row->terminal && !t->brief, cancelled = row->terminal && was_cancelled(row);
	struct uar_arena scratch;
	size_t questions;

	uar_arena_init(&scratch, 0);
	questions = row->terminal ? 0 : count_questions(t, &scratch);
	uar_jw_str(w, "taskId", row->run_id);
	uar_jw_cstr(w, "status",
		    cancelled	? "cancelled"
		    : over	? "completed"
		    : questions ? "input_required"
				: "working");
	if (!row->terminal)
		uar_jw_str(w, "statusMessage", row->status);
	uar_jw_time(w, "createdAt", row->created_us);
	uar_jw_time(w, "lastUpdatedAt", row->updated_us);
	uar_jw_null(w, "ttlMs");
	uar_jw_int(w, "pollIntervalMs", POLL_MS);
	if (questions)
		put_questions(w, t, &scratch);
	if (over && !cancelled)
		put_result(w, t);
	uar_arena_fini(&scratch);
}

/* --- tasks/get ------------------------------------------------------------------------------ */

static uar_str task_id(const struct mcp_exchange *x)
{
	return uar_json_text(x->m.params, "taskId");
}

/* True: the request is answered, or goes to the server whose task it is. */
static bool is_refused(struct mcp_exchange *x)
{
	const struct uar_json *caps = uar_mcp_meta(&x->m, "clientCapabilities");

	if (!mcp_has_tasks(caps)) {
		mcp_answer_error(x, 400, UAR_MCP_MISSING_CAPABILITY,
				 "declare the extension " MCP_TASKS,
				 UAR_STR("{\"requiredCapabilities\":{\"extensions\":"
					 "{\"" MCP_TASKS "\":{}}}}"));
		return true;
	}
	if (mcp_offer_request(x))
		return true;
	if (uar_str_is_id(task_id(x)))
		return false;
	mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "there is no such task", UAR_STR_NONE);
	return true;
}

static void answer_failure(struct mcp_exchange *x, uar_err e)
{
	if (e == UAR_ENOTFOUND || e == UAR_EINVALID)
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "there is no such task",
				 UAR_STR_NONE);
	else
		mcp_answer_problem(x, e, NULL);
}

static void task_looked(struct mcp_task *t)
{
	struct mcp_exchange *x = t->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w;

	if (t->err) {
		answer_failure(x, t->err);
		return;
	}
	w = mcp_result_begin(x, &b);
	mcp_put_task(&w, t);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

void mcp_get_task(struct mcp_exchange *x)
{
	const struct uar_json *caps = uar_mcp_meta(&x->m, "clientCapabilities");
	struct mcp_task_asked asked = { .m = x->c->g->mcp,
					.owner = &x->c->owner,
					.run_id = task_id(x),
					.elicits = mcp_can(caps) & MCP_ELICITS,
					.done = task_looked,
					.ctx = x };
	struct mcp_task *t;
	uar_err e;

	if (is_refused(x))
		return;
	x->c->op = x;
	e = mcp_task_look(&asked, &t);
	if (e)
		answer_failure(x, e);
}

/* --- tasks/update, tasks/cancel -------------------------------------------------------------- */

struct task_update {
	struct mcp_exchange *x;
	struct uar_list replies; /* of struct mcp_reply */
	struct uar_run_answer_op answer;
	struct uar_run_cancel_op cancel;
};

static void give_next(struct task_update *u);

static void given(struct uar_run_answer_op *op)
{
	struct task_update *u = op->ctx;

	if (op->err == UAR_EINVALID || op->err == UAR_ESCHEMA)
		mcp_answer_error(u->x, 200, UAR_MCP_INVALID_PARAMS,
				 op->error.text[0] ? op->error.text : uar_err_text(op->err),
				 UAR_STR_NONE);
	else if (op->err && op->err != UAR_ENOTFOUND && op->err != UAR_ESTATE &&
		 op->err != UAR_ERESOLVED)
		mcp_answer_problem(u->x, op->err, NULL);
	else
		give_next(u); /* what is answered already, or was not asked, is left out */
}

static void give_next(struct task_update *u)
{
	struct mcp_reply *a;
	uar_err e;

	if (uar_list_empty(&u->replies)) {
		mcp_answer_empty(u->x);
		return;
	}
	a = UAR_OWNER(u->replies.next, struct mcp_reply, node);
	uar_list_remove(&a->node);
	u->answer = (struct uar_run_answer_op){ .owner = u->x->c->owner,
						.run_id = task_id(u->x),
						.action_id = a->action_id,
						.decision = a->decision,
						.values = a->values,
						.done = given,
						.ctx = u };
	e = gate_give_answer(u->x->c, &u->answer);
	if (e)
		answer_failure(u->x, e);
}

/* The run is there: what the client answers may be given to it. */
static void update_looked(struct mcp_task *t)
{
	struct task_update *u = t->ctx;

	if (t->err)
		answer_failure(u->x, t->err);
	else
		give_next(u);
}

static struct task_update *make_update(struct mcp_exchange *x)
{
	struct task_update *u = uar_arena_alloc(&x->c->arena, sizeof *u);

	if (!u) {
		mcp_answer_problem(x, UAR_ENOMEM, NULL);
		return NULL;
	}
	*u = (struct task_update){ .x = x };
	uar_list_init(&u->replies);
	x->c->op = u;
	return u;
}

void mcp_update_task(struct mcp_exchange *x)
{
	const struct uar_json *answers = uar_json_get(x->m.params, UAR_STR("inputResponses"));
	struct mcp_task_asked asked = { .m = x->c->g->mcp,
					.owner = &x->c->owner,
					.run_id = task_id(x),
					.brief = true,
					.done = update_looked };
	struct task_update *u;
	struct mcp_task *t;
	uar_err e;

	if (is_refused(x))
		return;
	if (!answers || answers->kind != UAR_JSON_OBJECT) {
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "inputResponses is an object",
				 UAR_STR_NONE);
		return;
	}
	u = make_update(x);
	if (!u)
		return;
	asked.ctx = u;
	e = mcp_replies_read(answers, &x->c->arena, &u->replies);
	if (!e)
		e = mcp_task_look(&asked, &t);
	if (e)
		answer_failure(x, e);
}

static void cancel_done(struct uar_run_cancel_op *op)
{
	struct task_update *u = op->ctx;

	if (op->err && op->err != UAR_ESTATE)
		answer_failure(u->x, op->err);
	else
		mcp_answer_empty(u->x);
}

void mcp_cancel_task(struct mcp_exchange *x)
{
	struct task_update *u;
	uar_err e;

	if (is_refused(x))
		return;
	u = make_update(x);
	if (!u)
		return;
	u->cancel = (struct uar_run_cancel_op){ .owner = x->c->owner,
						.run_id = task_id(x),
						.reason = UAR_STR("cancelled by the MCP client"),
						.done = cancel_done,
						.ctx = u };
	e = uar_runtime_cancel_run(x->c->g->o.runtime, &u->cancel);
	if (e)
		answer_failure(x, e);
}

/* --- life ----------------------------------------------------------------------------------- */

void mcp_tasks_fini(struct gate_mcp *m)
{
	UAR_LIST_EACH (it, &m->tasks)
		free_task(UAR_OWNER(it, struct mcp_task, node));
}
