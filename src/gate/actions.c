/* actions.c - what runs ask people: the list of open questions, and the answers. */
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"

struct respond_body {
	uar_str action_id, decision, reason;
	const struct uar_json *payload;
};

static const struct uar_json_field respond_fields[] = {
	{ "action_id", UAR_FIELD_ID, true, offsetof(struct respond_body, action_id) },
	{ "decision", UAR_FIELD_STR, true, offsetof(struct respond_body, decision) },
	{ "reason", UAR_FIELD_STR, false, offsetof(struct respond_body, reason) },
	{ "payload", UAR_FIELD_ANY, false, offsetof(struct respond_body, payload) },
};

struct responding {
	struct uar_run_answer_op op;
	struct respond_body body;
};

static void answered(struct uar_run_answer_op *op)
{
	const struct responding *r = UAR_OWNER(op, struct responding, op);
	struct call *c = op->ctx;
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "action_id", r->body.action_id);
	uar_jw_cstr(&w, "run_id", op->run_id);
	uar_jw_cstr(&w, "status", "resolved");
	uar_jw_str(&w, "decision", r->body.decision);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

static uar_err decode(struct call *c, struct responding *r, struct uar_error *error)
{
	static const struct {
		const char *word;
		enum uar_verdict verdict;
	} decisions[] = {
		{ "allow", UAR_VERDICT_ALLOW },
		{ "allow_for_session", UAR_VERDICT_ALLOW_SESSION },
		{ "deny", UAR_VERDICT_DENY },
	};
	uar_err e = uar_json_read(c->body, respond_fields, ARRAY_LEN(respond_fields), true,
				  &r->body, error);

	if (e)
		return e;
	if (r->body.payload) {
		uar_error_where(error, "/payload");
		return uar_error_set(error, UAR_EINVALID, "an approval takes no payload");
	}
	for (size_t i = 0; i < ARRAY_LEN(decisions); i++)
		if (uar_str_is(r->body.decision, decisions[i].word)) {
			r->op.verdict = decisions[i].verdict;
			return UAR_OK;
		}
	uar_error_where(error, "/decision");
	return uar_error_set(error, UAR_EINVALID, "one of allow, allow_for_session, deny");
}

void gate_respond_action(struct call *c)
{
	struct responding *r = uar_arena_alloc(&c->arena, sizeof *r);
	struct uar_error error = { 0 };
	uar_err e;

	if (!r) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return;
	}
	*r = (struct responding){ .op = { .owner = c->owner, .done = answered, .ctx = c } };
	e = decode(c, r, &error);
	if (!e) {
		r->op.action_id = r->body.action_id;
		r->op.reason = r->body.reason;
		c->op = r;
		e = uar_runtime_answer(c->g->o.runtime, &r->op);
		error = r->op.error;
	}
	if (e)
		gate_problem(c, e, &error);
}

/* --- what waits -------------------------------------------------------------------- */

struct waiting {
	const struct uar_run *run;
	const struct uar_open_action *action;
};

struct questions {
	struct waiting *at; /* NULL: they are counted */
	size_t count, room;
};

static void add_questions(void *ctx, const struct uar_run *run)
{
	struct questions *q = ctx;

	for (size_t i = 0; i < uar_run_rare(run)->actions.open_count; i++) {
		if (q->at && q->count < q->room)
			q->at[q->count] =
				(struct waiting){ run, &uar_run_rare(run)->actions.open[i] };
		q->count++;
	}
}

/* Who has waited longest comes first. */
static int by_age(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->action->asked_us != y->action->asked_us)
		return x->action->asked_us < y->action->asked_us ? -1 : 1;
	return (x->action->number > y->action->number) - (x->action->number < y->action->number);
}

static void put_question(struct uar_jw *w, const struct waiting *x)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "run_id", x->run->id.run_id);
	uar_jw_str(w, "agent_id", x->run->what.agent_id);
	uar_jw_str(w, "conversation_id", x->run->id.thread_id);
	if (x->run->id.task_given)
		uar_jw_str(w, "task_id", x->run->id.task_id);
	else
		uar_jw_null(w, "task_id");
	uar_action_write(w, x->run, x->action);
	uar_jw_close(w);
}

static void answer_questions(struct call *c, const struct questions *q, size_t limit)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "actions");
	for (size_t i = 0; i < q->count && i < limit; i++)
		put_question(&w, &q->at[i]);
	uar_jw_close(&w);
	uar_jw_int(&w, "total", (int64_t)q->count);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

void gate_list_actions(struct call *c)
{
	const struct uar_runtime *rt = c->g->o.runtime;
	struct questions q = { .room = 0 };
	struct uar_error error = { 0 };
	uint64_t limit;
	uar_err e = gate_query_u64(c, "limit", UAR_LIMIT_LIST_DEFAULT, &limit, &error);

	if (!e && (limit == 0 || limit > UAR_LIMIT_LIST_PAGE)) {
		uar_error_where(&error, "?limit");
		e = uar_error_set(&error, UAR_EINVALID, "limit must be 1 to %d",
				  UAR_LIMIT_LIST_PAGE);
	}
	if (!e) {
		uar_runtime_each_waiting(rt, &c->owner, add_questions, &q);
		q.at = uar_arena_alloc(&c->arena, (q.count + 1) * sizeof *q.at);
		e = q.at ? UAR_OK : UAR_ENOMEM;
	}
	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	q.room = q.count;
	q.count = 0;
	uar_runtime_each_waiting(rt, &c->owner, add_questions, &q);
	qsort(q.at, q.count, sizeof *q.at, by_age);
	answer_questions(c, &q, limit);
}
