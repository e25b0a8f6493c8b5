/* sessions.c - answers about one session, from its view and a page of its log. */
#include "read/sessions.h"

#include "engine/control.h"
#include "read/limits.h"
#include "read/view_load.h"

struct session_read {
	struct view_load load;
	struct rt_op under_way;
	struct uar_session_op *op;
	/* The window of history: its events as a JSON array, and their sequences; to 0: none. */
	struct uar_read page;
	struct uar_buf events;
	struct uar_jw w;
	uint64_t from, to;
	/* The fact that it was read. */
	struct uar_control in;
	struct uar_control_op noting;
	struct uar_buf cursor, next;
};

static void free_read(struct session_read *r)
{
	uar_store_read_fini(&r->page);
	uar_buf_fini(&r->events);
	uar_buf_fini(&r->cursor);
	uar_buf_fini(&r->next);
	rd_view_load_fini(&r->load);
	uar_free(r);
}

static void drop_read(struct rt_op *op)
{
	free_read(UAR_OWNER(op, struct session_read, under_way));
}

static void finish(struct session_read *r, uar_err e, const struct uar_error *error)
{
	struct uar_session_op *op = r->op;

	op->err = e;
	if (error && error != &op->error)
		op->error = *error;
	op->error.code = e;
	rt_op_end(&r->under_way);
	free_read(r);
	op->done(op);
}

static struct uar_sview_show show_of(const struct session_read *r)
{
	return (struct uar_sview_show){
		.view = &r->load.view,
		.stale = r->load.stale,
		.stale_reason = uar_str_c(r->load.stale_reason),
		.last_sequence = r->load.last_sequence,
	};
}

static void put_cursor(struct session_read *r, struct uar_jw *w, const char *key, uint64_t sequence)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_ID_BYTES);

	r->op->put_cursor(&text, rt_store(r->load.rd->rt)->incarnation, sequence);
	uar_jw_str(w, key, uar_buf_str(&text));
	uar_buf_fini(&text);
}

/* --- a window of history --------------------------------------------------------------------- */

static void write_window(struct session_read *r, struct uar_jw *w)
{
	if (!r->op->window)
		return;
	uar_jw_obj(w, "history");
	if (r->events.n)
		uar_jw_raw(w, "events", uar_buf_str(&r->events));
	else
		uar_jw_raw(w, "events", UAR_STR("[]"));
	uar_jw_u64(w, "from_sequence", r->to ? r->from : 0);
	uar_jw_u64(w, "to_sequence", r->to);
	if (r->to && r->from > 1)
		put_cursor(r, w, "next_cursor", r->from);
	else
		uar_jw_null(w, "next_cursor");
	uar_jw_close(w);
}

/* --- answers --------------------------------------------------------------------------------- */

static void write_session(struct session_read *r, struct uar_jw *w)
{
	const struct uar_sview_show s = show_of(r);
	const struct uar_sview_thread *active = uar_sview_active(s.view);
	uar_str thread_id = active ? active->item.key : UAR_STR_NONE;

	uar_sview_write_session(w, "session", &s);
	uar_sview_write_threads(w, "threads", &s);
	uar_sview_write_steps(w, "recent", &s);
	if (active) {
		uar_sview_write_thread(w, "active_thread", &s, thread_id);
		uar_sview_write_queue(w, "queue", &s, thread_id);
	} else {
		uar_jw_null(w, "active_thread");
		uar_jw_null(w, "queue");
	}
	uar_sview_write_pending(w, "pending_requests", &s, UAR_STR_NONE);
	if (r->op->parts & UAR_SESSION_TASKS)
		uar_sview_write_tasks(w, "tasks", &s);
	if (r->op->parts & UAR_SESSION_ARTIFACTS)
		uar_sview_write_artifacts(w, "artifacts", &s);
	if (r->op->parts & UAR_SESSION_FANOUT)
		uar_sview_write_fanout(w, "subagent_job_summary", &s);
	if (r->op->parts & UAR_SESSION_PERMISSIONS)
		uar_sview_write_permissions(w, "permission_sandbox_summary", &s);
	uar_sview_write_evidence(w, "evidence_summary", &s, UAR_STR_NONE);
	uar_sview_write_channels(w, "channel_summary", &s);
	uar_sview_write_environment(w, "execution_environment", &s, UAR_STR_NONE, UAR_STR_NONE);
	uar_sview_write_states(w, "read_models", &s);
}

static uar_err write_answer(struct session_read *r)
{
	const struct uar_sview_show s = show_of(r);
	struct uar_jw w = uar_jw_begin(&r->op->json);

	uar_jw_obj(&w, NULL);
	if (r->op->environment) {
		uar_jw_cstr(&w, "session_id", r->load.found_session);
		uar_sview_write_environment(&w, "execution_environment", &s, r->op->thread_id,
					    r->op->turn_id);
	} else if (r->op->thread_id.n) {
		uar_jw_cstr(&w, "session_id", r->load.found_session);
		uar_sview_write_thread(&w, "thread", &s, r->op->thread_id);
	} else {
		write_session(r, &w);
	}
	write_window(r, &w);
	uar_sview_write_freshness(&w, "freshness", &s);
	uar_jw_u64(&w, "through_sequence", s.view->through);
	put_cursor(r, &w, "cursor", s.view->through);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* --- reading the window ---------------------------------------------------------------------- */

static uar_err ask_page(struct session_read *r, uint64_t after);

static uar_err keep_events(struct session_read *r)
{
	for (size_t i = 0; i < r->page.event_count; i++)
		uar_event_write(&r->w, NULL, &r->page.events[i], 0);
	return r->events.err;
}

static void window_noted(struct uar_control_op *op)
{
	struct session_read *r = op->ctx;

	if (!op->err && op->event_count)
		snprintf(r->op->event_id, sizeof r->op->event_id, "%.*s",
			 UAR_FMT(op->events[0].event_id));
	finish(r, UAR_OK, NULL);
}

/* The answer is written; that the window was read is appended before it is sent. A session
 * without a thread has no place for the fact, and one that cannot be appended is left out. */
static bool note_window(struct session_read *r)
{
	const struct uar_sview_thread *t = uar_sview_active(&r->load.view);
	uint64_t incarnation = rt_store(r->load.rd->rt)->incarnation;

	if (!r->op->note_window || !t || !r->to)
		return false;
	r->cursor = uar_buf_make(UAR_LIMIT_ID_BYTES);
	r->next = uar_buf_make(UAR_LIMIT_ID_BYTES);
	if (r->op->before)
		r->op->put_cursor(&r->cursor, incarnation, r->op->before);
	if (r->from > 1)
		r->op->put_cursor(&r->next, incarnation, r->from);
	r->in = (struct uar_control){
		.kind = UAR_CTL_RECORD_WINDOW,
		.owner = r->op->owner,
		.record_window = { .session_id = uar_str_c(r->load.found_session),
				   .thread_id = t->item.key,
				   .cursor = uar_buf_str(&r->cursor),
				   .next_cursor = uar_buf_str(&r->next),
				   .from_sequence = (int64_t)r->from,
				   .to_sequence = (int64_t)r->to,
				   .count = (int64_t)(r->to - r->from + 1),
				   .stale = r->load.stale },
	};
	r->noting = (struct uar_control_op){ .in = &r->in, .done = window_noted, .ctx = r };
	return !uar_runtime_control(r->load.rd->rt, &r->noting);
}

/* A page is bounded in bytes, so the window may take several. */
static void page_ready(struct uar_read *page)
{
	struct session_read *r = UAR_OWNER(page, struct session_read, page);
	uar_err e = page->err ? page->err : keep_events(r);
	uint64_t last = page->event_count ? page->events[page->event_count - 1].sequence : r->to;

	if (!e && last < r->to) {
		uar_store_read_fini(page);
		e = ask_page(r, last);
		if (!e)
			return;
	}
	if (!e) {
		uar_jw_close(&r->w);
		e = uar_jw_end(&r->w);
	}
	if (!e)
		e = write_answer(r);
	if (e || !note_window(r))
		finish(r, e, page->err ? &page->error : NULL);
}

static uar_err ask_page(struct session_read *r, uint64_t after)
{
	struct uar_store *store = rt_store(r->load.rd->rt);

	r->page = (struct uar_read){
		.owner = r->op->owner,
		.session_id = uar_str_c(r->load.found_session),
		.after = after,
		.limit = (uint32_t)(r->to - after),
		.done = page_ready,
	};
	return store->ops->read(store, &r->page);
}

static uar_err ask_window(struct session_read *r)
{
	uint64_t end = r->load.view.through + 1;

	if (r->op->before && r->op->before < end)
		end = r->op->before;
	r->to = end - 1;
	r->from = r->to > r->op->window ? r->to - r->op->window + 1 : 1;
	r->w = uar_jw_begin(&r->events);
	uar_jw_arr(&r->w, NULL);
	return ask_page(r, r->from - 1);
}

static uar_err check_session(struct session_read *r)
{
	const struct uar_session_op *op = r->op;

	if (!op->thread_id.n || !op->session_id.n ||
	    uar_str_is(op->session_id, r->load.found_session))
		return UAR_OK;
	uar_error_where(&r->op->error, "/session_id");
	return uar_error_set(&r->op->error, UAR_EINVALID, "the thread is of session %s",
			     r->load.found_session);
}

static void loaded(struct view_load *l)
{
	struct session_read *r = UAR_OWNER(l, struct session_read, load);
	uar_err e = l->err;

	if (e) {
		finish(r, e, &l->error);
		return;
	}
	rd_snapshot_keep(l->rd, l);
	e = check_session(r);
	if (!e && r->op->window && l->view.through && r->op->before != 1) {
		e = ask_window(r);
		if (!e)
			return;
	} else if (!e) {
		e = write_answer(r);
	}
	finish(r, e, &r->op->error);
}

uar_err uar_read_session(struct uar_reader *rd, struct uar_session_op *op)
{
	struct session_read *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	op->json = uar_buf_make(UAR_LIMIT_SESSION_BYTES);
	r->op = op;
	r->events = uar_buf_make(UAR_LIMIT_SESSION_BYTES);
	r->load = (struct view_load){ .owner = op->owner,
				      .session_id = op->session_id,
				      .thread_id = op->thread_id,
				      .verify = op->verify,
				      .done = loaded };
	e = rd_view_load(rd, &r->load);
	if (e)
		free_read(r);
	else
		rt_op_begin(rd->rt, &r->under_way, drop_read);
	return e;
}
