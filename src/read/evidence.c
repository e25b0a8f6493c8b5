/* evidence.c - reads the log of a scope page by page into a document, which becomes a blob,
 * and lets the engine record that. */
#include "read/evidence.h"

#include "engine/control.h"
#include "event/limits.h"
#include "evidence/limits.h"
#include "read/read_int.h"

struct exporting {
	struct uar_reader *rd;
	struct uar_export_op *op;
	struct rt_op under_way;
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	uint64_t at, last; /* sequences: read so far, and where the document ends */
	/* where it is */
	struct uar_thread_query where;
	struct uar_rows_query task;
	struct uar_runs_query runs;
	/* what it says */
	struct uar_read page;
	struct uar_evidence *fold;
	struct uar_evidence_facts facts;
	struct uar_buf out, refs;
	struct uar_upload_op upload;
	bool uploading, ended;
	/* the fact */
	struct uar_control in;
	struct uar_control_op noting;
};

static void free_export(struct exporting *x)
{
	x->rd->exports--;
	if (x->upload.upload && !x->uploading)
		x->upload.upload->drop(x->upload.upload);
	uar_store_rows_fini(&x->task);
	uar_store_query_fini(&x->runs);
	uar_store_read_fini(&x->page);
	uar_evidence_destroy(x->fold);
	uar_buf_fini(&x->out);
	uar_buf_fini(&x->refs);
	uar_free(x);
}

static void drop_export(struct rt_op *op)
{
	free_export(UAR_OWNER(op, struct exporting, under_way));
}

static void finish(struct exporting *x, uar_err e, const struct uar_error *error)
{
	struct uar_export_op *op = x->op;

	op->err = e;
	if (error && error != &op->error)
		op->error = *error;
	op->error.code = e;
	rt_op_end(&x->under_way);
	op->done(op); /* its result lives in the command, which x has */
	free_export(x);
}

static uar_err not_there(struct exporting *x, const char *name, uar_str id)
{
	uar_error_where(&x->op->error, "/%s_id", name);
	return uar_error_set(&x->op->error, UAR_ENOTFOUND, "there is no %s %.*s", name,
			     UAR_FMT(id));
}

/* --- the fact -------------------------------------------------------------------------------- */

static void noted(struct uar_control_op *op)
{
	struct exporting *x = op->ctx;

	x->op->result = op->result;
	x->op->event_ids = op->event_ids;
	if (!op->err && op->event_count)
		snprintf(x->op->event_id, sizeof x->op->event_id, "%.*s",
			 UAR_FMT(op->events[0].event_id));
	finish(x, op->err, &op->error);
}

static void write_refs(struct exporting *x)
{
	struct uar_jw w = uar_jw_begin(&x->refs);
	char blob[80];

	snprintf(blob, sizeof blob, "blob://%s", x->upload.sha256);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "pack_ref", x->facts.pack);
	uar_jw_str(&w, "replay_ref", x->facts.replay);
	uar_jw_str(&w, "review_ref", x->facts.review);
	uar_jw_cstr(&w, "content_ref", blob);
	uar_jw_close(&w);
	x->refs.err = uar_jw_end(&w);
}

static void note(struct exporting *x)
{
	const struct uar_export_op *op = x->op;
	uar_err e;

	write_refs(x);
	x->in = (struct uar_control){
		.kind = UAR_CTL_RECORD_EVIDENCE,
		.owner = op->owner,
		.outcome_id = op->outcome_id,
		.fingerprint = op->fingerprint,
		.record_evidence = {
			.session_id = uar_str_c(x->session_id),
			.thread_id = x->facts.thread_id,
			.turn_id = op->turn_id,
			.task_id = op->task_id,
			.evidence_id = uar_str_c(x->facts.evidence_id),
			.evidence_kind = uar_str_c(uar_evidence_kind_name(op->kind)),
			.status = x->facts.open ? UAR_STR("partial") : UAR_STR("ready"),
			.scope = x->facts.scope,
			.sha256 = uar_str_c(x->facts.sha256),
			.chain_head = uar_str_c(x->facts.head),
			.blob = uar_str_c(x->upload.sha256),
			.bytes = (int64_t)x->upload.total,
			.events = (int64_t)x->facts.events,
			.refs = uar_buf_str(&x->refs),
			.verification_outcomes = x->facts.outcomes,
			.known_gaps = x->facts.gaps,
			.trace_ids = x->facts.trace_ids,
			.notes = x->facts.notes,
		},
	};
	x->noting = (struct uar_control_op){ .in = &x->in, .done = noted, .ctx = x };
	e = x->refs.err ? x->refs.err : uar_runtime_control(x->rd->rt, &x->noting);
	if (e)
		finish(x, e, &x->noting.error);
}

/* --- the bytes ------------------------------------------------------------------------------- */

static uar_err read_page(struct exporting *x);

static void stored(struct uar_upload_op *up)
{
	struct exporting *x = UAR_OWNER(up, struct exporting, upload);
	uar_err e = up->err;

	x->uploading = false;
	uar_buf_clear(&x->out);
	if (e)
		finish(x, e, &up->error);
	else if (x->ended)
		note(x);
	else if ((e = read_page(x)))
		finish(x, e, NULL);
}

static uar_err store_piece(struct exporting *x)
{
	struct uar_store *store = rt_store(x->rd->rt);
	uar_err e;

	x->upload = (struct uar_upload_op){
		.upload = x->upload.upload,
		.bytes = uar_buf_str(&x->out),
		.finish = x->ended,
		.done = stored,
	};
	e = store->ops->upload(store, &x->upload);
	x->uploading = !e;
	return e;
}

/* --- the events ------------------------------------------------------------------------------ */

static uar_err too_big(struct exporting *x)
{
	return uar_error_set(&x->op->error, UAR_ETOOBIG,
			     "a document holds at most %d events and %d bytes; export a thread, a "
			     "turn or a task of it instead",
			     UAR_LIMIT_EVIDENCE_EVENTS, UAR_LIMIT_EVIDENCE_BYTES);
}

static uar_err nothing_there(struct exporting *x)
{
	const struct uar_export_op *op = x->op;

	if (op->turn_id.n)
		return not_there(x, "turn", op->turn_id);
	if (op->task_id.n)
		return not_there(x, "task", op->task_id);
	if (op->thread_id.n)
		return not_there(x, "thread", op->thread_id);
	return not_there(x, "session", op->session_id);
}

static uar_err end_document(struct exporting *x)
{
	uar_err e = uar_evidence_end(x->fold, &x->out, &x->facts);

	if (e == UAR_ENOTFOUND)
		return nothing_there(x);
	if (e == UAR_ETOOBIG)
		return too_big(x);
	x->ended = true;
	return e ? e : store_piece(x);
}

static uar_err fold_page(struct exporting *x, const struct uar_read *page)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < page->event_count && x->at < x->last && !e; i++) {
		e = uar_evidence_add(x->fold, &page->events[i], &x->out);
		x->at = page->events[i].sequence;
	}
	return e == UAR_ETOOBIG ? too_big(x) : e;
}

static void page_ready(struct uar_read *page)
{
	struct exporting *x = UAR_OWNER(page, struct exporting, page);
	uar_err e = page->err ? page->err : fold_page(x, page);
	bool more = page->more && x->at < x->last;

	if (page->err)
		x->op->error = page->error;
	uar_store_read_fini(page);
	x->page = (struct uar_read){ .limit = 0 };
	if (!e && !more)
		e = end_document(x);
	else if (!e && x->out.n >= UAR_LIMIT_UPLOAD_PIECE)
		e = store_piece(x);
	else if (!e)
		e = read_page(x);
	if (e)
		finish(x, e, &x->op->error);
}

static uar_err read_page(struct exporting *x)
{
	struct uar_store *store = rt_store(x->rd->rt);

	x->page = (struct uar_read){
		.owner = x->op->owner,
		.session_id = uar_str_c(x->session_id),
		.after = x->at,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	return store->ops->read(store, &x->page);
}

/* --- where it is ----------------------------------------------------------------------------- */

static uar_err begin_document(struct exporting *x)
{
	const struct uar_export_op *op = x->op;
	const struct uar_evidence_scope scope = {
		.session_id = uar_str_c(x->session_id),
		.thread_id = op->turn_id.n || op->task_id.n ? UAR_STR_NONE : op->thread_id,
		.turn_id = op->turn_id,
		.task_id = op->task_id,
	};
	uar_err e = uar_evidence_create(op->kind, &scope, &x->fold);

	return e ? e : read_page(x);
}

static void session_found(struct uar_thread_query *q)
{
	struct exporting *x = UAR_OWNER(q, struct exporting, where);
	struct uar_export_op *op = x->op;
	uar_err e = q->err;

	if (e == UAR_ENOTFOUND) {
		e = q->thread_id.n ? not_there(x, "thread", q->thread_id)
				   : not_there(x, "session", q->session_id);
	} else if (!e && op->session_id.n && !uar_str_is(op->session_id, q->found_session)) {
		uar_error_where(&op->error, "/session_id");
		e = uar_error_set(&op->error, UAR_EINVALID, "the thread or task is of session %s",
				  q->found_session);
	}
	memcpy(x->session_id, q->found_session, sizeof x->session_id);
	x->last = q->last_sequence;
	if (!e)
		e = begin_document(x);
	if (e)
		finish(x, e, q->err && q->err != UAR_ENOTFOUND ? &q->error : &op->error);
}

static uar_err find_session(struct exporting *x, uar_str thread_id, uar_str session_id)
{
	struct uar_store *store = rt_store(x->rd->rt);

	x->where = (struct uar_thread_query){
		.owner = x->op->owner,
		.thread_id = thread_id,
		.session_id = session_id,
		.done = session_found,
	};
	return store->ops->thread(store, &x->where);
}

/* The task of a plain run has no row: its run names the session. */
static void run_found(struct uar_runs_query *q)
{
	struct exporting *x = UAR_OWNER(q, struct exporting, runs);
	uar_err e = q->err;

	if (!e && !q->row_count)
		e = not_there(x, "task", x->op->task_id);
	if (!e) {
		snprintf(x->session_id, sizeof x->session_id, "%.*s",
			 UAR_FMT(q->rows[0].session_id));
		e = find_session(x, UAR_STR_NONE, uar_str_c(x->session_id));
	}
	if (e)
		finish(x, e, q->err ? &q->error : &x->op->error);
}

static void task_found(struct uar_rows_query *q)
{
	struct exporting *x = UAR_OWNER(q, struct exporting, task);
	struct uar_store *store = rt_store(x->rd->rt);
	uar_err e = q->err;

	if (!e) {
		snprintf(x->session_id, sizeof x->session_id, "%.*s",
			 UAR_FMT(q->rows[0].session_id));
		e = find_session(x, UAR_STR_NONE, uar_str_c(x->session_id));
	} else if (e == UAR_ENOTFOUND) {
		x->runs = (struct uar_runs_query){ .owner = x->op->owner,
						   .task_id = x->op->task_id,
						   .limit = 1,
						   .done = run_found };
		e = store->ops->runs(store, &x->runs);
	}
	if (e)
		finish(x, e, &q->error);
}

static uar_err find_task(struct exporting *x)
{
	struct uar_store *store = rt_store(x->rd->rt);

	x->task = (struct uar_rows_query){
		.owner = x->op->owner,
		.kind = UAR_ROW_TASK,
		.id = x->op->task_id,
		.done = task_found,
	};
	return store->ops->rows(store, &x->task);
}

static uar_err check_scope(struct uar_export_op *op)
{
	if (op->task_id.n && (op->turn_id.n || op->thread_id.n))
		return uar_error_set(
			&op->error, UAR_EINVALID,
			"a task is a scope of its own: leave thread_id and turn_id out");
	if (op->turn_id.n && !op->thread_id.n && !op->session_id.n)
		return uar_error_set(
			&op->error, UAR_EINVALID,
			"a turn is found in its thread: give thread_id or session_id, too");
	if (!op->task_id.n && !op->thread_id.n && !op->session_id.n)
		return uar_error_set(
			&op->error, UAR_EINVALID,
			"what shall be exported? give session_id, thread_id, turn_id or "
			"task_id");
	return UAR_OK;
}

uar_err uar_read_export(struct uar_reader *rd, struct uar_export_op *op)
{
	uar_err e = check_scope(op);
	struct exporting *x;

	if (!e && rd->exports >= UAR_LIMIT_EVIDENCE_JOBS)
		e = UAR_EBUSY;
	x = e ? NULL : uar_zalloc(sizeof *x);
	if (!x)
		return e ? e : UAR_ENOMEM;
	rd->exports++;
	x->rd = rd;
	x->op = op;
	x->out = uar_buf_make(2 * (size_t)UAR_LIMIT_EVIDENCE_BYTES);
	x->refs = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	if (op->task_id.n)
		e = find_task(x);
	else
		e = find_session(x, op->thread_id, op->thread_id.n ? UAR_STR_NONE : op->session_id);
	if (e)
		free_export(x);
	else
		rt_op_begin(rd->rt, &x->under_way, drop_export);
	return e;
}

/* --- a document ------------------------------------------------------------------------------ */

struct evidence_read {
	struct uar_reader *rd;
	struct uar_evidence_op *op;
	struct rt_op under_way;
	struct uar_rows_query row;
	struct uar_blob_get blob;
};

static void free_read(struct evidence_read *r)
{
	uar_store_rows_fini(&r->row);
	uar_store_blob_get_fini(&r->blob);
	uar_free(r);
}

static void drop_read(struct rt_op *op)
{
	free_read(UAR_OWNER(op, struct evidence_read, under_way));
}

static void finish_read(struct evidence_read *r, uar_err e, const struct uar_error *error)
{
	struct uar_evidence_op *op = r->op;

	op->err = e;
	if (error)
		op->error = *error;
	op->error.code = e;
	rt_op_end(&r->under_way);
	free_read(r);
	op->done(op);
}

static void blob_read(struct uar_blob_get *b)
{
	struct evidence_read *r = UAR_OWNER(b, struct evidence_read, blob);

	if (!b->err)
		uar_buf_add_str(&r->op->json, b->bytes);
	finish_read(r, b->err ? b->err : r->op->json.err, b->err ? &b->error : NULL);
}

static void row_read(struct uar_rows_query *q)
{
	struct evidence_read *r = UAR_OWNER(q, struct evidence_read, row);
	struct uar_store *store = rt_store(r->rd->rt);
	struct uar_row_evidence row;
	uar_err e = q->err;

	if (!e)
		e = uar_row_unpack(&q->rows[0], &q->arena, &row, sizeof row, NULL);
	if (!e) {
		r->blob = (struct uar_blob_get){ .limit = UAR_LIMIT_EVIDENCE_BYTES,
						 .done = blob_read };
		snprintf(r->blob.sha256, sizeof r->blob.sha256, "%.*s", UAR_FMT(row.blob));
		e = store->ops->blob_get(store, &r->blob);
	}
	if (e)
		finish_read(r, e, q->err ? &q->error : NULL);
}

uar_err uar_read_evidence(struct uar_reader *rd, struct uar_evidence_op *op)
{
	struct uar_store *store = rt_store(rd->rt);
	struct evidence_read *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	op->json = uar_buf_make(UAR_LIMIT_EVIDENCE_BYTES);
	r->rd = rd;
	r->op = op;
	r->row = (struct uar_rows_query){
		.owner = op->owner,
		.kind = UAR_ROW_EVIDENCE,
		.id = op->evidence_id,
		.done = row_read,
	};
	e = store->ops->rows(store, &r->row);
	if (e)
		free_read(r);
	else
		rt_op_begin(rd->rt, &r->under_way, drop_read);
	return e;
}
