/* control_session.c - sessions and threads: renamed, archived. Nothing is deleted. */
#include "core/control_int.h"

void *ctl_row_or_new(struct ctl *c, enum uar_row_kind kind, uar_str id)
{
	struct uar_row *row = ctl_row(c, kind, id);

	if (row || c->waits || c->e.err)
		return row;
	row = ctl_new_row(c, kind, id);
	if (row)
		row->status = UAR_STR("active");
	return row;
}

static void put_changed(struct ctl *c, struct uar_jw *w)
{
	static const char *const names[] = { "title", "archived", "metadata" };

	uar_jw_arr(w, "changed");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (ctl_given(c, names[i]))
			uar_jw_cstr(w, NULL, names[i]);
	uar_jw_close(w);
}

static void tell_session(struct ctl *c, const struct uar_row_session *s)
{
	struct uar_jw *w = ctl_result(c);

	uar_jw_obj(w, "session");
	uar_jw_str(w, "session_id", s->row.id);
	uar_jw_str_or_null(w, "title", s->title);
	uar_jw_str(w, "status", s->row.status);
	uar_jw_raw(w, "metadata", s->metadata.n ? s->metadata : UAR_STR("{}"));
	uar_jw_close(w);
	ctl_result_end(c);
}

void ctl_update_session(struct ctl *c)
{
	const struct uar_ctl_update_session *in = &c->in->update_session;
	struct uar_row_session *s = ctl_row_or_new(c, UAR_ROW_SESSION, in->session_id);
	struct uar_jw *w;

	if (!s)
		return;
	ctl_change(c, s);
	s->title = ctl_given(c, "title") ? in->title : s->title;
	s->metadata = ctl_given(c, "metadata") ? in->metadata : s->metadata;
	if (ctl_given(c, "archived"))
		s->row.status = in->archived ? UAR_STR("archived") : UAR_STR("active");
	w = uar_emit_begin(&c->e);
	put_changed(c, w);
	if (ctl_given(c, "title"))
		uar_jw_str(w, "title", s->title);
	if (ctl_given(c, "archived"))
		uar_jw_str(w, "status", s->row.status);
	if (ctl_given(c, "metadata"))
		uar_jw_raw(w, "metadata", s->metadata);
	uar_emit(&c->e, UAR_EV_SESSION_UPDATED, EMIT_SESSION);
	tell_session(c, s);
}

static void tell_thread(struct ctl *c, const struct uar_row_thread *t)
{
	struct uar_jw *w = ctl_result(c);

	uar_jw_obj(w, "thread");
	uar_jw_str(w, "thread_id", t->row.id);
	uar_jw_str(w, "session_id", c->e.s->session_id);
	uar_jw_str_or_null(w, "title", t->title);
	uar_jw_bool(w, "archived", t->archived);
	uar_jw_bool(w, "queue_paused", t->queue_paused);
	uar_jw_close(w);
	ctl_result_end(c);
}

void ctl_update_thread(struct ctl *c)
{
	const struct uar_ctl_update_thread *in = &c->in->update_thread;
	struct uar_row_thread *t = ctl_row_or_new(c, UAR_ROW_THREAD, in->thread_id);
	struct uar_jw *w;

	if (!t)
		return;
	ctl_change(c, t);
	t->title = ctl_given(c, "title") ? in->title : t->title;
	t->archived = ctl_given(c, "archived") ? in->archived : t->archived;
	w = uar_emit_begin(&c->e);
	uar_jw_cstr(w, "status", c->in->active_turn_id.n ? "running" : "idle");
	uar_jw_str_or_null(w, "active_turn_id", c->in->active_turn_id);
	put_changed(c, w);
	if (t->title.n)
		uar_jw_str(w, "title", t->title);
	uar_jw_bool(w, "archived", t->archived);
	uar_emit_name(&c->e, UAR_ID_THREAD, in->thread_id);
	uar_emit(&c->e, UAR_EV_THREAD_UPDATED, EMIT_SESSION);
	tell_thread(c, t);
}
