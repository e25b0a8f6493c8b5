/* a2a_list.c - ListTasks: the tasks of an agent that the caller has, those that changed last first.
 *
 * They are shown as the list of runs has them: without history and artifacts, unless the client
 * wants these. */
#include "gate/a2a_int.h"
#include "gate/limits.h"

static void put_row(struct a2a_call *k, struct uar_jw *w, const struct uar_run_row *row)
{
	const struct uar_a2a_state_info *state =
		&uar_a2a_state_info[uar_a2a_state_of(row->status, row->listed.waits)];

	uar_jw_obj(w, NULL);
	if (k->old)
		uar_jw_cstr(w, "kind", "task");
	uar_jw_str(w, "id", row->run_id);
	uar_jw_str(w, "contextId", row->thread_id);
	uar_jw_obj(w, "status");
	uar_jw_cstr(w, "state", k->old ? state->old : state->name);
	uar_jw_time(w, "timestamp", row->updated_us / 1000 * 1000);
	uar_jw_close(w);
	uar_jw_close(w);
}

/* Tasks that are shown whole are read afterwards, each by its id. */
static bool is_whole(const struct a2a_call *k)
{
	return k->page.artifacts || k->history_length > 0;
}

static uar_err take_rows(struct a2a_call *k, const struct uar_run_list *q)
{
	struct a2a_page *page = &k->page;
	uar_err e = UAR_OK;

	page->total = q->total;
	for (size_t i = 0; i < q->row_count && i < ARRAY_LEN(page->ids) && !e; i++) {
		const struct uar_run_row *row = &q->rows[i];
		struct uar_jw w;

		page->ids[page->count] = uar_arena_str(&k->c->arena, row->run_id);
		e = page->ids[page->count++].p ? UAR_OK : UAR_ENOMEM;
		if (is_whole(k))
			continue;
		if (i)
			uar_buf_add_char(&page->out, ',');
		w = uar_jw_begin(&page->out);
		put_row(k, &w, row);
		e = e ? e : uar_jw_end(&w);
	}
	if (q->more && page->count)
		page->next = page->ids[page->count - 1];
	return e;
}

void gate_a2a_answer_page(struct a2a_call *k)
{
	struct uar_buf b = uar_buf_make(2 * UAR_LIMIT_LIST_BYTES);
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
	uar_jw_int(&w, "pageSize", (int64_t)k->known.limit);
	uar_jw_u64(&w, "totalSize", k->page.total);
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

	uar_run_list_fini(&mine);
	k->known.internal = NULL;
	if (e || !k->c->r) {
		uar_buf_fini(&k->page.out);
		gate_problem(k->c, e, &error);
	} else if (is_whole(k)) {
		gate_a2a_list_whole(k);
	} else {
		gate_a2a_answer_page(k);
	}
}

uar_err gate_a2a_text(struct a2a_call *k, const char *camel, const char *snake, uar_str *out,
		      struct uar_error *error)
{
	uar_str text = UAR_STR_NONE;
	uar_err e;

	if (k->rpc)
		return uar_a2a_text(uar_a2a_member(k->params, camel, snake), "", camel, out, error);
	e = gate_query_str(k->c, camel, &text);
	if (e) {
		uar_error_where(error, "/%s", camel);
		return uar_error_set(error, e, "%s cannot be read", camel);
	}
	if (text.p)
		text = uar_arena_str(&k->c->arena, text);
	else
		return UAR_OK;
	if (text.p)
		*out = text;
	return text.p ? UAR_OK : UAR_ENOMEM;
}

uar_err gate_a2a_page_size(struct a2a_call *k, uint32_t *size, struct uar_error *error)
{
	const struct uar_json *j = uar_a2a_member(k->params, "pageSize", "page_size");
	uint64_t n = *size;
	uar_err e = UAR_OK;

	if (k->rpc && j && j->kind != UAR_JSON_NULL)
		n = j->kind == UAR_JSON_INT && j->i > 0 ? (uint64_t)j->i : 0;
	else if (!k->rpc)
		e = gate_query_u64(k->c, "pageSize", n, &n, error);
	if (!e && n >= 1 && n <= UAR_LIMIT_A2A_LIST_PAGE) {
		*size = (uint32_t)n;
		return UAR_OK;
	}
	uar_error_where(error, "/pageSize");
	return uar_error_set(error, UAR_EINVALID, "pageSize is 1 to %d", UAR_LIMIT_A2A_LIST_PAGE);
}

static uar_err take_artifacts(struct a2a_call *k, struct uar_error *error)
{
	uar_str flag = UAR_STR("");
	uar_err e;

	if (k->rpc)
		return uar_a2a_bool(
			uar_a2a_member(k->params, "includeArtifacts", "include_artifacts"), "",
			"includeArtifacts", &k->page.artifacts, error);
	e = gate_a2a_text(k, "includeArtifacts", "include_artifacts", &flag, error);
	k->page.artifacts = uar_str_is(flag, "true") || uar_str_is(flag, "1");
	if (e || k->page.artifacts || !flag.n || uar_str_is(flag, "false") || uar_str_is(flag, "0"))
		return e;
	uar_error_where(error, "/includeArtifacts");
	return uar_error_set(error, UAR_EINVALID, "includeArtifacts is true or false");
}

static uar_err take_history(struct a2a_call *k, struct uar_error *error)
{
	uint64_t history = 0;
	uar_err e = UAR_OK;

	if (!k->rpc) {
		e = gate_query_u64(k->c, "historyLength", 0, &history, error);
		k->history_length = (int64_t)(history > INT32_MAX ? INT32_MAX : history);
	}
	if (k->history_length < 0)
		k->history_length = 0;
	return e;
}

static uar_err take_since(struct a2a_call *k, struct uar_error *error)
{
	struct uar_run_bound *after = &k->known.find.min[UAR_RUN_COLUMN_UPDATED];
	uar_str since = UAR_STR("");
	uar_err e =
		gate_a2a_text(k, "statusTimestampAfter", "status_timestamp_after", &since, error);

	if (e || !since.n)
		return e;
	after->given = true;
	e = uar_time_parse(since, &after->value);
	if (e)
		uar_error_where(error, "/statusTimestampAfter");
	return e ? uar_error_set(error, UAR_EINVALID, "a time is RFC 3339") : UAR_OK;
}

static uar_err take_state(struct a2a_call *k, struct uar_error *error)
{
	uar_str name = UAR_STR("");
	uar_err e = gate_a2a_text(k, "status", "status", &name, error);
	enum uar_a2a_state state = name.n ? uar_a2a_state_parse(name) : UAR_A2A_UNSPECIFIED;

	if (e)
		return e;
	if (state == UAR_A2A_STATE_COUNT) {
		uar_error_where(error, "/status");
		return uar_error_set(error, UAR_EINVALID, "there is no such state");
	}
	k->known.find.status = uar_a2a_state_info[state].status;
	k->known.find.waits = uar_a2a_state_info[state].waits;
	return UAR_OK;
}

static uar_err ask(struct a2a_call *k, struct uar_error *error)
{
	uar_err e;

	k->known.limit = UAR_LIMIT_LIST_DEFAULT;
	e = gate_a2a_page_size(k, &k->known.limit, error);
	if (!e)
		e = take_state(k, error);
	if (!e)
		e = take_artifacts(k, error);
	if (!e)
		e = take_history(k, error);
	if (!e)
		e = take_since(k, error);
	if (!e)
		e = gate_a2a_text(k, "contextId", "context_id", &k->known.thread_id, error);
	if (!e)
		e = gate_a2a_text(k, "pageToken", "page_token", &k->known.before, error);
	if (e)
		return e;
	k->known.owner = k->c->owner;
	k->known.agent_id = k->agent_id;
	k->known.find.count = true;
	k->known.find.sorted = true;
	k->known.find.sort = UAR_RUN_COLUMN_UPDATED;
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

	e = ask(k, &error);
	if (e) {
		uar_buf_fini(&k->page.out);
		gate_problem(k->c, e, &error);
	}
}
