/* uploads.c - large outputs of a run in two steps: a place for them, then their bytes.
 *
 * The first step writes nothing down: the id of an upload says all that was agreed
 * (ticket.h). The second step streams: one piece of the body is in memory, the next is
 * read from the socket once the disk has that. The bytes are staged under their run
 * (engine/staging.h) until the plugin makes an item of them or the run is over. */
#include "engine/staging.h"
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "gate/ticket.h"

static struct gate_ticket_key key_of(const struct call *c)
{
	return (struct gate_ticket_key){ uar_str_c(c->g->o.token), &c->owner };
}

/* --- the run ---------------------------------------------------------------------------- */

/* A request that needs a run at work. */
struct asked {
	struct call *c;
	struct uar_run_list q;
	uar_str run_id;
	void (*then)(struct asked *a, uar_err e, struct uar_error *error);
};

static uar_err check_row(const struct uar_run_row *row, struct uar_error *error)
{
	if (uar_str_is(row->status, "running") || uar_str_is(row->status, "cancel_requested"))
		return UAR_OK;
	return uar_error_set(error, UAR_ESTATE, "the run is %s: its status is %.*s",
			     row->terminal ? "over" : "not at work yet", UAR_FMT(row->status));
}

static void looked_up(struct uar_run_list *q)
{
	struct asked *a = UAR_OWNER(q, struct asked, q);
	struct uar_error error = q->error;
	uar_err e = q->err ? q->err : check_row(&q->rows[0], &error);

	uar_run_list_fini(q);
	a->then(a, e, &error);
}

/* Sooner or later `then` is called; it frees the call. */
static void look_up(struct asked *a)
{
	struct uar_gate *g = a->c->g;
	const struct uar_run_row *recent;
	struct uar_error error = { 0 };
	uar_err e;

	if (uar_reader_recent_run(g->o.reader, &a->c->owner, a->run_id, &recent)) {
		e = check_row(recent, &error);
		a->then(a, e, &error);
		return;
	}
	a->q = (struct uar_run_list){
		.owner = a->c->owner, .run_id = a->run_id, .limit = 1, .done = looked_up
	};
	e = uar_reader_runs(g->o.reader, &a->q);
	if (e)
		a->then(a, e, &error);
}

/* --- the first step ----------------------------------------------------------------------- */

struct creation {
	struct asked asked;
	struct gate_ticket ticket;
};

static void put_urls(struct uar_jw *w, const struct call *c, const struct gate_ticket *t,
		     const char *upload_id)
{
	int64_t expires = uar_clock_wall(c->g->o.sched->clock) / 1000000 + GRANT_SECONDS;
	char url[3 * UAR_LIMIT_ID_BYTES + GRANT + 64], token[GRANT];

	if (!gate_grant(c, "upload", uar_str_c(upload_id), expires, token)) {
		w->err = UAR_ENOMEM;
		return;
	}
	snprintf(url, sizeof url, "/uploads/%s?upload_token=%s", upload_id, token);
	uar_jw_cstr(w, "upload_url", url);
	snprintf(url, sizeof url, "/runs/%.*s/blobs/%s", UAR_FMT(t->run_id), t->blob_id);
	uar_jw_cstr(w, "blob_url", url);
	uar_jw_seconds(w, "expires_at", expires * 1000000);
}

static void answer_created(struct call *c, const struct gate_ticket *t)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RUN_ANSWER_BYTES);
	struct uar_buf id = uar_buf_make(2 * UAR_LIMIT_ID_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e = gate_ticket_write(key_of(c), t, &id);

	if (e) {
		gate_problem(c, e, NULL);
	} else {
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "upload_id", id.p);
		uar_jw_cstr(&w, "blob_id", t->blob_id);
		put_urls(&w, c, t, id.p);
		uar_jw_close(&w);
		b.err = uar_jw_end(&w);
		gate_answer(c, 201, &b);
	}
	uar_buf_fini(&id);
	uar_buf_fini(&b);
}

static void create_for(struct asked *a, uar_err e, struct uar_error *error)
{
	struct creation *n = UAR_OWNER(a, struct creation, asked);
	const struct uar_rand *rand = a->c->g->o.rand;

	if (e) {
		gate_problem(a->c, e, error);
		return;
	}
	snprintf(n->ticket.blob_id, sizeof n->ticket.blob_id, "%016llx%08llx",
		 (unsigned long long)uar_rand_u64(rand),
		 (unsigned long long)uar_rand_u64(rand) >> 32);
	answer_created(a->c, &n->ticket);
}

static uar_err decode_creation(struct creation *n, struct uar_error *error)
{
	struct {
		int64_t bytes;
		uar_str sha256;
	} body = { -1, UAR_STR_NONE };
	const struct uar_json_field fields[] = {
		{ "bytes", UAR_FIELD_INT, false, 0 },
		{ "sha256", UAR_FIELD_STR, false, offsetof(__typeof__(body), sha256) },
	};
	const struct uar_json *said = uar_json_get(n->asked.c->body, UAR_STR("bytes"));
	int64_t most = (int64_t)uar_staging_max(n->asked.c->g->o.runtime);
	uar_err e = uar_json_read(n->asked.c->body, fields, ARRAY_LEN(fields), true, &body, error);

	if (e)
		return e;
	uar_error_where(error, "/bytes");
	if (said && said->kind != UAR_JSON_NULL && body.bytes < 0)
		return uar_error_set(error, UAR_EINVALID, "must not be negative");
	if (body.bytes > most)
		return uar_error_set(error, UAR_ETOOBIG, "an upload has at most %lld bytes",
				     (long long)most);
	uar_error_where(error, "/sha256");
	if (body.sha256.n && !gate_is_sha256(body.sha256))
		return uar_error_set(error, UAR_EINVALID, "must be 64 lower-case hex digits");
	uar_error_where(error, "%s", "");
	n->ticket.run_id = n->asked.run_id = n->asked.c->params[0];
	n->ticket.size = body.bytes < 0 ? GATE_TICKET_ANY : (uint64_t)body.bytes;
	snprintf(n->ticket.sha256, sizeof n->ticket.sha256, "%.*s", UAR_FMT(body.sha256));
	return UAR_OK;
}

void gate_create_upload(struct call *c)
{
	struct creation *n = uar_arena_alloc(&c->arena, sizeof *n);
	struct uar_error error = { 0 };
	uar_err e = UAR_ENOMEM;

	if (n) {
		n->asked = (struct asked){ .c = c, .then = create_for };
		e = decode_creation(n, &error);
	}
	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	c->op = n;
	look_up(&n->asked);
}

/* --- the second step ------------------------------------------------------------------------ */

/* In turn the socket fills the piece and the store takes it. */
struct put {
	struct asked asked;
	struct gate_ticket ticket;
	struct uar_staging staging; /* at the store while c->gone is NULL */
	struct uar_buf piece;
	uint64_t total;
};

static void release(struct put *p)
{
	uar_staging_fini(&p->staging);
	uar_buf_fini(&p->piece);
	p->asked.c->g->uploads--;
}

static void end(struct put *p, uar_err e, const struct uar_error *error)
{
	struct uar_error why = error ? *error : (struct uar_error){ 0 };
	struct call *c = p->asked.c;

	release(p);
	c->gone = NULL;
	if (e == UAR_ENOTFOUND) /* of whom it is, and whether it is one, is nobody's business */
		uar_error_set(&why, e, "no such upload");
	gate_problem(c, e, &why);
}

static void put_drop(struct call *c)
{
	release(c->op);
}

static void put_gone(struct call *c)
{
	release(c->op);
	gate_call_free(c);
}

static void answer_put(struct put *p)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RUN_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	char url[UAR_LIMIT_ID_BYTES + 64];

	snprintf(url, sizeof url, "/runs/%.*s/blobs/%s", UAR_FMT(p->ticket.run_id),
		 p->ticket.blob_id);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "blob_id", p->ticket.blob_id);
	uar_jw_cstr(&w, "blob_url", url);
	uar_jw_int(&w, "bytes", (int64_t)p->total);
	uar_jw_cstr(&w, "sha256", p->staging.sha256);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	release(p);
	gate_answer(p->asked.c, 200, &b);
	uar_buf_fini(&b);
}

static void pull(struct put *p)
{
	p->asked.c->gone = put_gone;
	uar_http_body_pull(p->asked.c->r, &p->piece);
}

static void stored(struct uar_staging *s)
{
	struct put *p = UAR_OWNER(s, struct put, staging);

	if (s->err || !p->asked.c->r)
		end(p, s->err, &s->error);
	else if (s->last)
		answer_put(p);
	else
		pull(p);
}

static uar_err check_size(const struct put *p, bool last, struct uar_error *error)
{
	if (p->ticket.size == GATE_TICKET_ANY ||
	    (last ? p->total == p->ticket.size : p->total <= p->ticket.size))
		return UAR_OK;
	return uar_error_set(error, UAR_EINVALID, "the upload was announced with %llu bytes",
			     (unsigned long long)p->ticket.size);
}

void gate_upload_piece(struct call *c, bool last)
{
	struct put *p = c->op;
	struct uar_error error = { 0 };
	uar_err e;

	p->total += p->piece.n;
	e = check_size(p, last, &error);
	p->staging.bytes = uar_buf_str(&p->piece);
	p->staging.last = last;
	c->gone = NULL;
	if (!e)
		e = uar_runtime_stage(c->g->o.runtime, &p->staging);
	if (e)
		end(p, e, &error);
}

static void put_for(struct asked *a, uar_err e, struct uar_error *error)
{
	struct put *p = UAR_OWNER(a, struct put, asked);

	if (e || !a->c->r)
		end(p, e, error);
	else
		pull(p);
}

/* What is known before the first byte has come. */
static uar_err check_put(struct put *p, struct uar_error *error)
{
	struct call *c = p->asked.c;
	uar_str length = c->r->fields[UAR_HTTP_CONTENT_LENGTH];
	uar_err e = gate_ticket_read(key_of(c), &c->arena, c->params[0], &p->ticket);

	if (e)
		return e;
	if (c->g->uploads > UAR_LIMIT_HTTP_UPLOADS)
		return uar_error_set(error, UAR_ERATELIMIT, "%d uploads are under way",
				     UAR_LIMIT_HTTP_UPLOADS);
	if (!length.n && c->r->fields[UAR_HTTP_TRANSFER_ENCODING].n)
		return UAR_OK;
	if (!length.n)
		return uar_error_set(error, UAR_EINVALID, "Content-Length or chunks are needed");
	e = uar_str_u64(length, &p->total);
	if (!e)
		e = check_size(p, true, error);
	p->total = 0;
	return e;
}

void gate_put_upload(struct call *c)
{
	struct put *p = uar_arena_alloc(&c->arena, sizeof *p);
	struct uar_error error = { 0 };
	uar_err e;

	if (!p) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return;
	}
	*p = (struct put){ .asked = { .c = c, .then = put_for },
			   .piece = uar_buf_make(UAR_LIMIT_UPLOAD_PIECE) };
	c->op = p;
	c->drop = put_drop;
	c->g->uploads++;
	e = check_put(p, &error);
	if (e) {
		end(p, e, &error);
		return;
	}
	p->staging = (struct uar_staging){
		.owner = c->owner,
		.run_id = p->ticket.run_id,
		.id = uar_str_c(p->ticket.blob_id),
		.expect = uar_str_c(p->ticket.sha256),
		.done = stored,
	};
	p->asked.run_id = p->ticket.run_id;
	look_up(&p->asked);
}
