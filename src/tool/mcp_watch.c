/* mcp_watch.c - a call that waits until a resource of an MCP server changes.
 *
 * The resource is read when the wait begins and whenever the server tells of a change, or may have
 * been unable to: after a connection was lost. It counts as changed when what is read is not what
 * was read before. Each change is progress of the call, the last one its result. */
#include "base/alloc.h"
#include "base/sha256.h"
#include "json/jw.h"
#include "loop/loop.h"
#include "tool/limits.h"
#include "tool/mcp_int.h"

enum { SHOWN = 1024 }; /* bytes of a text in progress */

struct mcp_watch {
	struct uar_list node; /* in mcp_tools.watches */
	struct mcp_tool_call *k;
	struct uar_timer timer;
	struct uar_mcp_call *reading; /* NULL: nothing is read now */
	struct uar_buf uri, last;     /* last: what was read, JSON */
	char digest[UAR_SHA256_TEXT + 1];
	int64_t wanted, seen;
	bool again; /* it changed while it was read */
};

/* --- its end ---------------------------------------------------------------------------------- */

void mcp_watch_end(struct mcp_tool_call *k)
{
	struct mcp_watch *w = k->watch;

	k->watch = NULL;
	if (!uar_list_empty(&w->node))
		uar_mcp_client_unwatch(k->t->client, uar_buf_str(&w->uri));
	uar_list_remove(&w->node);
	uar_timer_stop(uar_loop_sched(k->t->o.loop), &w->timer);
	if (w->reading)
		uar_mcp_call_cancel(w->reading);
	uar_buf_fini(&w->uri);
	uar_buf_fini(&w->last);
	uar_free(w);
}

static void fail(struct mcp_watch *w, const char *category, uar_str why)
{
	struct uar_tool_result r = { .category = uar_str_c(category), .message = why };

	mcp_tell(w->k, &r);
}

static void finish(struct mcp_watch *w)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw jw = uar_jw_begin(&out);
	struct uar_tool_result r = { .category = UAR_STR("execution"),
				     .message = UAR_STR("what the server said is too long") };

	uar_jw_obj(&jw, NULL);
	uar_jw_str(&jw, "uri", uar_buf_str(&w->uri));
	uar_jw_int(&jw, "changes", w->seen);
	uar_jw_bool(&jw, "timed_out", w->seen < w->wanted);
	uar_jw_raw(&jw, "resource", w->last.n ? uar_buf_str(&w->last) : UAR_STR("null"));
	uar_jw_close(&jw);
	r.ok = !uar_jw_end(&jw);
	r.output = r.ok ? uar_buf_str(&out) : UAR_STR_NONE;
	mcp_tell(w->k, &r);
	uar_buf_fini(&out);
}

static void time_is_up(struct uar_timer *t)
{
	finish(UAR_OWNER(t, struct mcp_watch, timer));
}

/* --- reading ---------------------------------------------------------------------------------- */

static void read_resource(struct mcp_watch *w);

static void put_progress(const struct mcp_watch *w, const struct uar_json *result)
{
	const struct uar_json *all = uar_json_get(result, UAR_STR("contents"));
	uar_str text =
		uar_json_str(uar_json_get(uar_json_at(all, 0), UAR_STR("text")), UAR_STR_NONE);
	struct uar_buf b = uar_buf_make(8 * SHOWN + 8 * UAR_LIMIT_MCP_URI);
	struct uar_jw jw = uar_jw_begin(&b);

	uar_jw_obj(&jw, NULL);
	uar_jw_str(&jw, "uri", uar_buf_str(&w->uri));
	uar_jw_int(&jw, "changes", w->seen);
	uar_jw_int(&jw, "bytes", (int64_t)w->last.n);
	if (text.p)
		uar_jw_str(&jw, "text", uar_str_utf8_prefix(text, SHOWN));
	uar_jw_close(&jw);
	if (!uar_jw_end(&jw) && w->k->events.progress)
		w->k->events.progress(w->k->events.ctx, uar_buf_str(&b));
	uar_buf_fini(&b);
}

/* True: it is not what it was. */
static bool take(struct mcp_watch *w, const struct uar_json *result)
{
	const struct uar_json *contents = uar_json_get(result, UAR_STR("contents"));
	char digest[UAR_SHA256_TEXT + 1];
	struct uar_buf now = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	bool first = !w->digest[0], other;

	if (contents)
		uar_json_write(&now, contents);
	uar_sha256_hex(uar_buf_str(&now), digest);
	uar_buf_fini(&now);
	other = strcmp(digest, w->digest) != 0;
	memcpy(w->digest, digest, sizeof digest);
	uar_buf_clear(&w->last);
	uar_json_write(&w->last, result);
	w->seen += other && !first;
	return other;
}

static void on_read(void *ctx, const struct uar_mcp_call_result *r)
{
	struct mcp_watch *w = ctx;

	w->reading = NULL;
	if (r->err == UAR_ECHILD)
		return; /* the connection was lost: it is read again with the next one */
	if (r->err) {
		fail(w, mcp_category_of(r),
		     r->reason.n ? r->reason : uar_str_c(uar_err_text(r->err)));
		return;
	}
	if (take(w, r->result))
		put_progress(w, r->result);
	if (w->seen >= w->wanted)
		finish(w);
	else if (w->again)
		read_resource(w);
}

static void read_resource(struct mcp_watch *w)
{
	struct uar_buf params = uar_buf_make(8 * UAR_LIMIT_MCP_URI);
	struct uar_jw jw = uar_jw_begin(&params);
	struct uar_mcp_call_events events = { .done = on_read, .ctx = w };
	struct uar_mcp_request r = { .method = "resources/read", .name = uar_buf_str(&w->uri) };
	uar_err e;

	w->again = w->reading != NULL;
	if (w->reading)
		return;
	uar_jw_obj(&jw, NULL);
	uar_jw_str(&jw, "uri", uar_buf_str(&w->uri));
	uar_jw_close(&jw);
	e = uar_jw_end(&jw);
	r.params = uar_buf_str(&params);
	if (!e)
		e = uar_mcp_client_request(w->k->t->client, &r, &events, &w->reading);
	uar_buf_fini(&params);
	w->again = e != UAR_OK; /* not connected: the next connection reads it */
}

/* --- its beginning ---------------------------------------------------------------------------- */

uar_err mcp_watch_begin(struct mcp_tool_call *k, uar_str input)
{
	struct mcp_watch *w = uar_zalloc(sizeof *w);
	const struct uar_json *j = NULL;
	struct uar_arena arena = { 0 };
	uar_str uri;
	uar_err e = w ? uar_json_parse(input, NULL, &arena, &j, NULL) : UAR_ENOMEM;

	if (!w)
		return e;
	uri = uar_json_text(j, "uri");
	*w = (struct mcp_watch){ .k = k, .timer.fn = time_is_up };
	w->wanted = uar_json_int(uar_json_get(j, UAR_STR("changes")), 1);
	w->uri = uar_buf_make(UAR_LIMIT_MCP_URI);
	w->last = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	uar_list_init(&w->node);
	uar_buf_add_str(&w->uri, uri);
	k->watch = w;
	e = e ? e : w->uri.err;
	if (!e)
		e = uar_mcp_client_watch(k->t->client, uri);
	if (!e)
		uar_list_add_last(&k->t->watches, &w->node);
	if (!e)
		e = uar_timer_set(uar_loop_sched(k->t->o.loop), &w->timer,
				  uar_json_int(uar_json_get(j, UAR_STR("seconds")), 300) * 1000000);
	uar_arena_fini(&arena);
	if (e)
		mcp_watch_end(k);
	else
		read_resource(w);
	return e;
}

/* --- what the server tells -------------------------------------------------------------------- */

void mcp_on_updated(void *ctx, uar_str uri)
{
	struct mcp_tools *t = ctx;

	UAR_LIST_EACH (it, &t->watches) {
		struct mcp_watch *w = UAR_OWNER(it, struct mcp_watch, node);

		if (uar_str_eq(uar_buf_str(&w->uri), uri))
			read_resource(w);
	}
}

void mcp_on_unwatched(void *ctx, uar_str uri, uar_str reason)
{
	struct mcp_tools *t = ctx;

	UAR_LIST_EACH (it, &t->watches) {
		struct mcp_watch *w = UAR_OWNER(it, struct mcp_watch, node);

		if (uar_str_eq(uar_buf_str(&w->uri), uri))
			fail(w, "dependency", reason);
	}
}
