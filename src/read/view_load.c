/* view_load.c - reads the snapshot of a session and folds the events behind it. */
#include "read/view_load.h"

#include "base/sha256.h"
#include "event/limits.h"

static void read_page(struct view_load *l);

void rd_view_load_fini(struct view_load *l)
{
	uar_store_rows_fini(&l->row);
	uar_store_read_fini(&l->page);
	uar_buf_fini(&l->stored);
	uar_sview_fini(&l->view);
}

static void finish(struct view_load *l, uar_err e, const struct uar_error *error)
{
	l->err = e;
	if (error && error != &l->error)
		l->error = *error;
	l->error.code = e;
	uar_store_rows_fini(&l->row);
	uar_store_read_fini(&l->page);
	l->row.arena = (struct uar_arena){ 0 };
	l->page.arena = (struct uar_arena){ 0 };
	l->done(l);
}

/* --- events ---------------------------------------------------------------------------------- */

/* What was folded so far is all that is known. */
static void end_stale(struct view_load *l, const struct uar_error *error)
{
	l->stale = true;
	snprintf(l->stale_reason, sizeof l->stale_reason,
		 "events behind sequence %llu cannot be read: %.200s",
		 (unsigned long long)l->view.through,
		 error && error->text[0] ? error->text : uar_err_text(UAR_ECORRUPT));
	finish(l, UAR_OK, NULL);
}

/* The fold has reached the sequence of the stored snapshot. */
static uar_err compare(struct view_load *l)
{
	struct uar_buf now = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	uar_err e = uar_sview_write(&l->view, &now);

	if (!e && !uar_str_eq(uar_buf_str(&now), uar_buf_str(&l->stored)))
		l->repair = "the stored snapshot disagreed with the log";
	l->folded = 0; /* behind the snapshot */
	uar_buf_fini(&now);
	return e;
}

static uar_err fold_page(struct view_load *l, const struct uar_read *page)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < page->event_count && !e; i++) {
		e = uar_sview_fold(&l->view, &page->events[i]);
		l->folded++;
		if (!e && l->compare_at && l->view.through == l->compare_at)
			e = compare(l);
	}
	return e;
}

static void page_ready(struct uar_read *page)
{
	struct view_load *l = UAR_OWNER(page, struct view_load, page);
	bool more = page->more;
	uar_err e = page->err;

	if (e == UAR_ECORRUPT) {
		end_stale(l, &page->error);
		return;
	}
	if (!e)
		e = fold_page(l, page);
	if (e == UAR_ECORRUPT && !l->view.err) {
		end_stale(l, NULL);
		return;
	}
	if (e || !more) {
		finish(l, e, &page->error);
		return;
	}
	uar_store_read_fini(page);
	read_page(l);
}

static void read_page(struct view_load *l)
{
	struct uar_store *store = rt_store(l->rd->rt);
	uar_err e;

	l->page = (struct uar_read){
		.owner = l->owner,
		.session_id = uar_str_c(l->found_session),
		.after = l->view.through,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	e = store->ops->read(store, &l->page);
	if (e)
		finish(l, e, NULL);
}

/* --- the snapshot ---------------------------------------------------------------------------- */

static void start_from_zero(struct view_load *l)
{
	uar_sview_fini(&l->view);
	uar_sview_init(&l->view);
}

/* UAR_OK also for a snapshot that is not usable: then the log is folded from its beginning. */
static uar_err use_snapshot(struct view_load *l, const struct uar_row *row)
{
	struct uar_row_snapshot snap;
	char sha256[UAR_SHA256_TEXT + 1];
	uar_err e = uar_row_unpack(row, &l->row.arena, &snap, sizeof snap, NULL);

	if (e == UAR_ENOMEM)
		return e;
	if (!e) {
		uar_sha256_hex(snap.model, sha256);
		e = uar_str_is(snap.sha256, sha256) ? uar_sview_read(&l->view, snap.model, NULL)
						    : UAR_ECORRUPT;
	}
	if (e == UAR_ENOMEM)
		return e;
	if (e == UAR_ECORRUPT)
		l->repair = "the stored snapshot was damaged";
	else if (!e && l->view.through > l->last_sequence)
		l->repair = "the stored snapshot was ahead of the log";
	l->from_snapshot = !e && !l->repair && !l->verify;
	if (!e && l->verify && !l->repair) {
		uar_buf_add_str(&l->stored, snap.model);
		l->compare_at = l->view.through;
	}
	if (!l->from_snapshot)
		start_from_zero(l);
	return l->stored.err;
}

static void row_ready(struct uar_rows_query *q)
{
	struct view_load *l = UAR_OWNER(q, struct view_load, row);
	uar_err e = q->err;

	if (e == UAR_ECORRUPT)
		l->repair = "the row of the stored snapshot was damaged";
	if (e == UAR_ENOTFOUND || e == UAR_ECORRUPT)
		e = UAR_OK;
	else if (!e)
		e = use_snapshot(l, &q->rows[0]);
	uar_store_rows_fini(q);
	if (e)
		finish(l, e, &q->error);
	else
		read_page(l);
}

static void session_found(struct uar_thread_query *q)
{
	struct view_load *l = UAR_OWNER(q, struct view_load, where);
	struct uar_store *store = rt_store(l->rd->rt);
	uar_err e = q->err;

	if (e) {
		finish(l, e, &q->error);
		return;
	}
	memcpy(l->found_session, q->found_session, sizeof l->found_session);
	l->last_sequence = q->last_sequence;
	l->row = (struct uar_rows_query){
		.owner = l->owner,
		.kind = UAR_ROW_SNAPSHOT,
		.id = uar_str_c(l->found_session),
		.done = row_ready,
	};
	e = store->ops->rows(store, &l->row);
	if (e)
		finish(l, e, NULL);
}

uar_err rd_view_load(struct uar_reader *rd, struct view_load *l)
{
	struct uar_store *store = rt_store(rd->rt);

	l->rd = rd;
	uar_sview_init(&l->view);
	l->stored = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	l->where = (struct uar_thread_query){
		.owner = l->owner,
		.thread_id = l->thread_id,
		.session_id = l->thread_id.n ? UAR_STR_NONE : l->session_id,
		.done = session_found,
	};
	return store->ops->thread(store, &l->where);
}
