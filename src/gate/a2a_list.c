/* a2a_list.c - ListTasks: the tasks of an agent that the caller has, those that changed last first.
 *
 * They are shown as the list of runs has them: without history and artifacts. */
#include "event/limits.h"
#include "gate/a2a_int.h"
#include "gate/limits.h"

static void put_row(struct a2a_call *k, struct uar_jw *w, const struct uar_run_row *row)
{
	uar_jw_obj(w, NULL);
	if (k->old)
		uar_jw_cstr(w, "kind", "task");
	uar_jw_str(w, "id", row->run_id);
	uar_jw_str(w, "contextId", row->thread_id);
	uar_jw_obj(w, "status");
	uar_jw_cstr(
		w, "state",
		uar_a2a_state(row->status, row->listed.waits.n != 0, row->listed.waits, k->old));
	uar_jw_time(w, "timestamp", row->updated_us / 1000 * 1000);
	uar_jw_close(w);
	uar_jw_close(w);
}

/* Of a page of runs those of the context, until the page of tasks is full. */
static uar_err take_rows(struct a2a_call *k, const struct uar_run_list *q)
{
	struct a2a_page *page = &k->page;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < q->row_count && !e; i++) {
		const struct uar_run_row *row = &q->rows[i];
		struct uar_jw w = uar_jw_begin(&page->out);

		if (page->context.n && !uar_str_eq(row->thread_id, page->context))
			continue;
		if (page->taken++)
			uar_buf_add_char(&page->out, ',');
		put_row(k, &w, row);
		e = uar_jw_end(&w);
		if (page->taken < page->size)
			continue;
		if (i + 1 < q->row_count || q->more)
			page->next = uar_arena_str(&k->c->arena, row->run_id);
		break;
	}
	return e;
}

static void answer_page(struct a2a_call *k, uint64_t total)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	if (k->rpc) {
		uar_jw_cstr(&w, "jsonrpc", "2.0");
		uar_jw_raw(&w, "id", k->id);
		uar_jw_obj(&w, "result");
	}
	uar_buf_add_char(&k->page.out, ']');
	uar_jw_raw(&w, "tasks", uar_buf_str(&k->page.out));
	uar_jw_str(&w, "nextPageToken", k->page.next);
	uar_jw_int(&w, "pageSize", (int64_t)k->page.size);
	uar_jw_u64(&w, "totalSize", total);
	if (k->rpc)
		uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	uar_buf_fini(&k->page.out);
	gate_answer(k->c, 200, &b);
	uar_buf_fini(&b);
}

static void listed(struct uar_run_list *q)
{
	struct a2a_call *k = UAR_OWNER(q, struct a2a_call, known);
	struct uar_run_list mine = *q;
	struct uar_error error = q->error;
	uar_err e = mine.err ? mine.err : take_rows(k, &mine);
	bool on = !e && k->c->r && mine.more && k->page.taken < k->page.size;

	if (on) { /* others were in between */
		k->known.before = uar_arena_str(&k->c->arena, mine.rows[mine.row_count - 1].run_id);
		k->known.internal = NULL;
		e = uar_reader_runs(k->c->g->o.reader, &k->known);
	}
	if (e || !k->c->r) {
		uar_buf_fini(&k->page.out);
		gate_problem(k->c, e, &error);
	} else if (!on) {
		answer_page(k,
			    k->page.context.n ? k->page.taken + (k->page.next.n > 0) : mine.total);
	}
	uar_run_list_fini(&mine);
}

/* The word of the run's record; "waiting": those that wait. */
static bool status_word(uar_str state, uar_str *out, bool *out_waiting)
{
	static const struct {
		const char *state, *old, *status;
	} words[] = {
		{ "TASK_STATE_SUBMITTED", "submitted", "queued" },
		{ "TASK_STATE_WORKING", "working", "running" },
		{ "TASK_STATE_COMPLETED", "completed", "succeeded" },
		{ "TASK_STATE_FAILED", "failed", "failed" },
		{ "TASK_STATE_CANCELED", "canceled", "canceled" },
		{ "TASK_STATE_INPUT_REQUIRED", "input-required", "" },
		{ "TASK_STATE_AUTH_REQUIRED", "auth-required", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (uar_str_is(state, words[i].state) || uar_str_is(state, words[i].old)) {
			*out = uar_str_c(words[i].status);
			*out_waiting = !words[i].status[0];
			return true;
		}
	return false;
}

static uar_str take_text(struct a2a_call *k, const char *camel, const char *snake)
{
	uar_str text = UAR_STR_NONE;

	if (k->rpc)
		return uar_json_str(uar_a2a_member(k->params, camel, snake), UAR_STR(""));
	if (gate_query_str(k->c, camel, &text) || !text.p)
		return UAR_STR("");
	return uar_arena_str(&k->c->arena, text);
}

static uar_err take_size(struct a2a_call *k, uint32_t *out, struct uar_error *error)
{
	const struct uar_json *j = uar_a2a_member(k->params, "pageSize", "page_size");
	uint64_t n = UAR_LIMIT_LIST_DEFAULT;
	uar_err e = UAR_OK;

	if (k->rpc && j)
		n = j->kind == UAR_JSON_INT && j->i > 0 ? (uint64_t)j->i : 0;
	else if (!k->rpc)
		e = gate_query_u64(k->c, "pageSize", n, &n, error);
	if (!e && n >= 1 && n <= 100) {
		*out = (uint32_t)n;
		return UAR_OK;
	}
	uar_error_where(error, "/pageSize");
	return uar_error_set(error, UAR_EINVALID, "pageSize is 1 to 100");
}

static uar_err ask(struct a2a_call *k, struct uar_error *error)
{
	uar_str state = take_text(k, "status", "status");
	uar_err e = take_size(k, &k->known.limit, error);

	if (!e && state.n && !uar_str_is(state, "TASK_STATE_UNSPECIFIED") &&
	    !status_word(state, &k->known.status, &k->known.waiting)) {
		uar_error_where(error, "/status");
		e = uar_error_set(error, UAR_EINVALID, "there is no such state");
	}
	if (e)
		return e;
	k->known.owner = k->c->owner;
	k->known.agent_id = k->agent_id;
	k->known.before = take_text(k, "pageToken", "page_token");
	k->known.find.count = !k->page.context.n;
	k->page.size = k->known.limit;
	k->page.out = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	uar_buf_add_char(&k->page.out, '[');
	k->known.done = listed;
	k->c->op = k;
	return uar_reader_runs(k->c->g->o.reader, &k->known);
}

void gate_a2a_list(struct a2a_call *k)
{
	struct uar_error error = { 0 };
	uar_err e;

	k->page.context = take_text(k, "contextId", "context_id");
	e = ask(k, &error);
	if (e) {
		uar_buf_fini(&k->page.out);
		gate_problem(k->c, e, &error);
	}
}
