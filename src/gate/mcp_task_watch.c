/* mcp_task_watch.c - tasks whose changes a client wants to hear of (2026-07-28).
 *
 * How a task stands is said first, then each time that its run changes. */
#include "gate/mcp_int.h"

struct watched_task {
	struct uar_list node;
	struct mcp_task_watch *w;
	struct mcp_task *looking; /* its state is being read */
	bool dirty;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

static void task_looked(struct mcp_task *t)
{
	struct watched_task *at = t->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE),
		       params = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&params);
	struct uar_frame *frame = NULL;

	if (!at) /* the client has left */
		return;
	at->looking = NULL;
	uar_jw_obj(&w, NULL);
	if (!t->err)
		mcp_put_task(&w, t);
	uar_jw_obj(&w, "_meta");
	uar_jw_raw(&w, UAR_MCP_META "subscriptionId", at->w->id);
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (!t->err && !uar_jw_end(&w) &&
	    !uar_mcp_write_notification(&b, UAR_STR("notifications/tasks"), uar_buf_str(&params)))
		frame = mcp_frame(uar_buf_str(&b));
	uar_buf_fini(&params);
	uar_buf_fini(&b);
	if (frame && uar_http_stream_send(at->w->base->http, frame))
		uar_log(t->m->g->o.log, UAR_LOG_WARN, "mcp.listener_full", { "id", at->w->id });
	uar_frame_unref(frame);
	if (at->dirty)
		mcp_flush_soon(t->m);
}

static void flush_task(struct watched_task *at)
{
	struct mcp_task_asked asked = { .m = at->w->m,
					.owner = at->w->owner,
					.run_id = uar_str_c(at->run_id),
					.elicits = at->w->elicits,
					.done = task_looked,
					.ctx = at };

	if (!at->dirty || at->looking)
		return;
	at->dirty = mcp_task_look(&asked, &at->looking) != UAR_OK;
	if (at->dirty)
		at->looking = NULL;
}

void mcp_task_watch_fini(struct mcp_task_watch *w)
{
	UAR_LIST_EACH (it, &w->tasks) {
		struct watched_task *t = UAR_OWNER(it, struct watched_task, node);

		if (t->looking)
			t->looking->ctx = NULL;
		uar_list_remove(&t->node);
		w->m->watched--;
		uar_free(t);
	}
}

/* Whether there is such a run of the client is seen when it changes. */
static uar_err add_task(struct mcp_task_watch *w, uar_str run_id)
{
	struct watched_task *t;

	if (!uar_str_is_id(run_id) || w->count >= UAR_LIMIT_MCP_SUBSCRIPTIONS)
		return UAR_OK;
	t = uar_zalloc(sizeof *t);
	if (!t)
		return UAR_ENOMEM;
	t->w = w;
	t->dirty = true; /* how it stands is said first */
	snprintf(t->run_id, sizeof t->run_id, "%.*s", UAR_FMT(run_id));
	uar_list_add_last(&w->tasks, &t->node);
	w->count++;
	w->m->watched++;
	return UAR_OK;
}

uar_err mcp_task_watch_read(struct mcp_task_watch *w, const struct mcp_exchange *x,
			    const struct uar_json *filter)
{
	const struct uar_json *caps = uar_mcp_meta(&x->m, "clientCapabilities");
	const struct uar_json *ids = uar_json_get(filter, UAR_STR("taskIds"));
	uar_err e = UAR_OK;
	uar_str other;

	w->elicits = mcp_can(caps) & MCP_ELICITS;
	if (!mcp_has_tasks(caps))
		return UAR_OK;
	for (const struct uar_json *j = uar_json_first(ids); j && !e; j = j->next)
		if (mcp_task_id_read(x->c, uar_json_str(j, UAR_STR("")), &other))
			e = add_task(w, uar_json_str(j, UAR_STR("")));
	return e;
}

void mcp_task_watch_init(struct mcp_task_watch *w, struct gate_mcp *m, struct gate_stream *base)
{
	w->m = m;
	w->base = base;
	uar_list_init(&w->tasks);
}

void mcp_task_watch_flush(struct mcp_task_watch *w)
{
	UAR_LIST_EACH (it, &w->tasks)
		flush_task(UAR_OWNER(it, struct watched_task, node));
}

void mcp_task_watch_mark(struct mcp_task_watch *w, const struct uar_owner *owner, uar_str run_id)
{
	UAR_LIST_EACH (it, &w->tasks) {
		struct watched_task *t = UAR_OWNER(it, struct watched_task, node);

		if (!uar_str_is(run_id, t->run_id) || !uar_owner_eq(owner, w->owner))
			continue;
		t->dirty = true;
		mcp_flush_soon(w->m);
	}
}

void mcp_task_watch_put(const struct mcp_task_watch *w, struct uar_jw *out)
{
	if (!w->count)
		return;
	uar_jw_arr(out, "taskIds");
	UAR_LIST_EACH (it, &w->tasks)
		uar_jw_cstr(out, NULL, UAR_OWNER(it, struct watched_task, node)->run_id);
	uar_jw_close(out);
}
