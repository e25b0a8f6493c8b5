/* mcp_answer.c - answers of the MCP endpoints: results, errors, their form in each era. */
#include "gate/mcp_int.h"

enum { KEPT_MS = 1000 }; /* how long a client of the modern era may keep a list */

bool mcp_accepts(const struct uar_http_request *r, const char *type)
{
	bool named = false;

	for (size_t i = 0; i < r->header_count; i++) {
		const struct uar_http_header *h = &r->headers[i];

		if (!uar_str_eq_nocase(h->name, UAR_STR("accept")))
			continue;
		named = true;
		if (memmem(h->value.p, h->value.n, type, strlen(type)) ||
		    memmem(h->value.p, h->value.n, "*/*", 3))
			return true;
	}
	return !named && strcmp(type, "application/json") == 0;
}

void mcp_put_server_info(struct uar_jw *w, const char *key)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "name", "uar");
	uar_jw_cstr(w, "title", "Universal Agent Runtime");
	uar_jw_cstr(w, "version", UAR_VERSION);
	uar_jw_close(w);
}

struct uar_jw mcp_result_begin(const struct mcp_exchange *x, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	if (x->v.era == UAR_MCP_ERA_LEGACY)
		return w;
	uar_jw_cstr(&w, "resultType", "complete");
	uar_jw_obj(&w, "_meta");
	mcp_put_server_info(&w, UAR_MCP_META "serverInfo");
	uar_jw_close(&w);
	if (x->v.method < UAR_MCP_M_COUNT && uar_mcp_methods[x->v.method].cached) {
		uar_jw_int(&w, "ttlMs", KEPT_MS);
		uar_jw_cstr(&w, "cacheScope", "private");
	}
	return w;
}

struct uar_frame *mcp_frame(uar_str message)
{
	struct uar_buf b = uar_buf_make(message.n + 64);
	struct uar_frame *frame;

	uar_buf_add_str(&b, UAR_STR("event: message\ndata: "));
	uar_buf_add_str(&b, message);
	uar_buf_add_str(&b, UAR_STR("\n\n"));
	frame = b.err ? NULL : uar_frame_create(uar_buf_str(&b));
	uar_buf_fini(&b);
	return frame;
}

static void finish(struct mcp_exchange *x, int status, struct uar_buf *json)
{
	struct mcp_session *s = x->s;

	x->s = NULL;
	x->c->gone = NULL;
	gate_answer(x->c, status, json);
	uar_buf_fini(json);
	mcp_session_release(s);
}

void mcp_answer_error(struct mcp_exchange *x, int status, int code, const char *text, uar_str data)
{
	struct uar_buf b = uar_buf_make(65536);

	b.err = uar_mcp_write_error(&b, x->m.id, code, uar_str_c(text), data);
	finish(x, status, &b);
}

void mcp_answer_result(struct mcp_exchange *x, struct uar_buf *result)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);

	b.err = result->err;
	if (!b.err)
		b.err = uar_mcp_write_result(&b, x->m.id, uar_buf_str(result));
	uar_buf_fini(result);
	finish(x, 200, &b);
}

void mcp_answer_bare(struct call *c, int status)
{
	struct uar_http_request *r = c->r;

	c->gone = NULL;
	gate_call_free(c);
	if (r)
		uar_http_respond(r,
				 &(struct uar_http_response){ .status = status, .no_store = true });
}

static bool is_of_caller(uar_err e)
{
	int status = uar_err_http(e);

	return status >= 400 && status < 500 && status != 408 && status != 429;
}

void mcp_answer_problem(struct mcp_exchange *x, uar_err e, const struct uar_error *error)
{
	struct uar_buf data = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&data);
	const char *text = error && error->text[0] ? error->text : uar_err_text(e);

	uar_runtime_note_failure(x->c->g->o.runtime, e);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "code", uar_err_token(e));
	uar_jw_bool(&w, "retryable", uar_err_retryable(e));
	if (error && error->where[0])
		uar_jw_cstr(&w, "where", error->where);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		uar_buf_clear(&data);
	if (is_of_caller(e))
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, text, uar_buf_str(&data));
	else
		mcp_answer_error(x, uar_err_http(e), UAR_MCP_INTERNAL_ERROR, text,
				 uar_buf_str(&data));
	uar_buf_fini(&data);
}

/* --- a run as the result of a call -------------------------------------------- */

static uar_str final_text(const struct uar_view *v)
{
	uar_str text = UAR_STR("");

	for (const struct uar_view_message *m = v->first; m; m = m->next)
		if (m->kind == UAR_VIEW_TEXT && m->text.n)
			text = uar_buf_str(&m->text);
	return text;
}

static const char *status_of(const struct uar_view *v)
{
	static const char *const words[] = { [UAR_VIEW_LIVE] = "running",
					     [UAR_VIEW_DONE] = "succeeded",
					     [UAR_VIEW_CANCELLED] = "canceled",
					     [UAR_VIEW_FAILED] = "failed" };

	return words[v->end];
}

static void put_content(struct uar_jw *w, uar_str run_id, uar_str text)
{
	char uri[32 + UAR_LIMIT_ID_BYTES];

	snprintf(uri, sizeof uri, "uar://runs/%.*s", UAR_FMT(run_id));
	uar_jw_arr(w, "content");
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "text");
	uar_jw_str(w, "text", text);
	uar_jw_close(w);
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "resource_link");
	uar_jw_cstr(w, "uri", uri);
	uar_jw_str(w, "name", run_id);
	uar_jw_cstr(w, "mimeType", "application/json");
	uar_jw_close(w);
	uar_jw_close(w);
}

/* Text that is longer than an answer may be is cut: the run has all of it. */
uar_err mcp_write_run(const struct uar_view *v, uar_str run_id, enum uar_mcp_era era,
		      struct uar_buf *out)
{
	struct mcp_exchange shape = { .v = { .era = era, .method = UAR_MCP_M_TOOLS_CALL } };
	bool done = v->end == UAR_VIEW_DONE;
	uar_str text = done ? final_text(v) : v->end_message;
	struct uar_jw w = mcp_result_begin(&shape, out);

	text = uar_jw_fitting(text, UAR_LIMIT_MCP_ANSWER / 2 - 4096);
	put_content(&w, run_id, text);
	uar_jw_obj(&w, "structuredContent");
	uar_jw_str(&w, "run_id", run_id);
	uar_jw_cstr(&w, "status", status_of(v));
	uar_jw_str(&w, "text", text);
	uar_jw_str(&w, "conversation_id", v->thread_id);
	uar_jw_close(&w);
	if (!done)
		uar_jw_bool(&w, "isError", true);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}
