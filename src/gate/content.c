/* content.c - the bytes of one export item, upload, question or reference, whole or in part.
 *
 * The item is looked up in its run's events, as its owner, like everything else;
 * large bytes are read from their blob piece by piece, as fast as the reader takes
 * them. They never change, so their hash is their tag. */
#include "gate/content.h"

#include "base/base64.h"
#include "base/sha256.h"
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/exports.h"

enum { HEADERS = 7 };

/* By the id of an item, which turns out to be an agent's answer or not, by a question's,
 * by that of an upload over HTTP, which is an item or not, or by the hash that an event names. */
enum wanted { WANTED_ITEM, WANTED_ANSWER, WANTED_INPUT, WANTED_UPLOAD, WANTED_REF };
enum bytes_are { BYTES_HELD, BYTES_IN_BLOB, BYTES_STAGED };

struct download {
	struct uar_list node; /* in g->downloads, once the body has begun */
	struct uar_gate *g;
	struct call *c;		/* NULL: the body has begun */
	struct uar_arena arena; /* what follows */
	struct uar_owner owner;
	uar_str run_id, item_id, sha256;
	uar_str bytes; /* of an item that is no blob */
	struct uar_answer_text answer;
	struct uar_buf type, disposition;
	uint64_t total;
	struct {
		struct uar_sha256 hash; /* of what was sent, */
		bool on;		/* if all of it is asked for */
	} sum;
	int64_t began_us;
	struct uar_http_range range; /* what is left to be sent */
	uint64_t after;		     /* look-up: run_sequence of the last event seen */
	struct uar_events_read read;
	struct uar_blob_read get;
	struct uar_http_stream *http; /* NULL: the reader is gone */
	struct uar_frame *frame;      /* waits for room */
	enum wanted wanted;
	enum bytes_are where;
	bool by_hint;  /* the look-up begins right before where it was found lately */
	bool fetching; /* a piece of the blob is on its way */
};

static void destroy(struct download *d)
{
	uar_list_remove(&d->node);
	uar_frame_unref(d->frame);
	uar_answer_text_fini(&d->answer);
	uar_buf_fini(&d->type);
	uar_buf_fini(&d->disposition);
	uar_arena_fini(&d->arena);
	uar_free(d);
}

static void fail(struct download *d, uar_err e, const struct uar_error *error)
{
	struct uar_error why = error ? *error : (struct uar_error){ 0 };
	struct call *c = d->c;

	destroy(d);
	gate_problem(c, e, error ? &why : NULL);
}

/* --- the body -------------------------------------------------------------------------- */

static void cut(struct download *d, const char *why)
{
	uar_log(d->g->o.log, UAR_LOG_ERROR, "export.content_cut", { "run_id", d->run_id },
		{ "export_item_id", d->item_id }, { "reason", uar_str_c(why) });
	uar_http_stream_cut(d->http);
	destroy(d);
}

static void go_on(struct download *d);

/* A blob that is sent whole is held against its hash before its last piece goes, so that nobody
 * takes damaged bytes for complete. A part of one cannot be checked. */
static uar_err check_sum(struct download *d, uar_str bytes)
{
	char found[UAR_SHA256_TEXT + 1];

	if (!d->sum.on)
		return UAR_OK;
	uar_sha256_add(&d->sum.hash, bytes);
	if (d->range.count)
		return UAR_OK;
	uar_sha256_end(&d->sum.hash, found);
	return uar_str_is(d->sha256, found) ? UAR_OK : UAR_ECORRUPT;
}

static uar_err take_bytes(struct download *d, uar_str bytes)
{
	uar_err e;

	if (bytes.n > d->range.count)
		bytes.n = (size_t)d->range.count;
	d->range.first += bytes.n;
	d->range.count -= bytes.n;
	e = bytes.n ? check_sum(d, bytes) : UAR_ECORRUPT;
	if (!e)
		d->frame = uar_frame_create(bytes);
	return e ? e : d->frame ? UAR_OK : UAR_ENOMEM;
}

static void fetched(struct uar_blob_read *get)
{
	struct download *d = UAR_OWNER(get, struct download, get);
	uar_err e = get->err;

	d->fetching = false;
	if (e == UAR_ENOTFOUND && d->where == BYTES_STAGED && d->http) {
		/* Its run is over: if it has become an item, it is there under its hash. */
		d->where = BYTES_IN_BLOB;
		uar_blob_read_fini(get);
		go_on(d);
		return;
	}
	if (!e && d->http)
		e = take_bytes(d, get->bytes);
	uar_blob_read_fini(get);
	if (!d->http)
		destroy(d);
	else if (e)
		cut(d, uar_err_text(e));
	else
		go_on(d);
}

static uar_err fetch(struct download *d)
{
	uar_err e;

	d->get = (struct uar_blob_read){ .offset = d->range.first,
					 .limit = d->range.count < UAR_LIMIT_EXPORT_PIECE
							  ? d->range.count
							  : UAR_LIMIT_EXPORT_PIECE,
					 .done = fetched };
	memcpy(d->get.sha256, d->sha256.p, sizeof d->get.sha256 - 1);
	if (d->where == BYTES_STAGED) {
		d->get.owner = d->owner;
		d->get.run_id = d->run_id;
		d->get.staged_id = d->item_id;
	}
	e = uar_reader_blob(d->g->o.reader, &d->get);
	d->fetching = !e;
	return e;
}

/* A part of what is held; one frame must not be larger than what may wait. */
static uar_err take_held(struct download *d)
{
	uar_str rest = uar_str_from(d->bytes, (size_t)d->range.first);

	if (rest.n > UAR_LIMIT_EXPORT_PIECE)
		rest.n = UAR_LIMIT_EXPORT_PIECE;
	return take_bytes(d, rest);
}

/* What is held goes out as far as it is taken; UAR_EBUSY, UAR_EEOF: on_writable or
 * on_closed follows. */
static uar_err send_held(struct download *d)
{
	uar_err e = UAR_OK;

	do {
		if (!d->frame && d->range.count && d->where == BYTES_HELD)
			e = take_held(d);
		if (!d->frame || e)
			break;
		e = uar_http_stream_send(d->http, d->frame);
		if (e == UAR_EBUSY || e == UAR_EEOF)
			return e;
		uar_frame_unref(d->frame);
		d->frame = NULL;
	} while (!e && d->range.count && d->where == BYTES_HELD);
	return e;
}

/* Sends what is there, asks for more, ends. */
static void go_on(struct download *d)
{
	uar_err e = send_held(d);

	if (e == UAR_EBUSY || e == UAR_EEOF)
		return;
	if (!e && d->range.count) {
		e = d->where == BYTES_HELD ? UAR_EINTERNAL : fetch(d);
	} else if (!e) {
		gate_numbers_export(d->g->numbers,
				    uar_clock_mono(d->g->o.sched->clock) - d->began_us);
		uar_http_stream_end(d->http);
		destroy(d);
		return;
	}
	if (e)
		cut(d, uar_err_text(e));
}

static void on_writable(void *ctx)
{
	struct download *d = ctx;

	if (!d->fetching)
		go_on(d);
}

static void on_closed(void *ctx)
{
	struct download *d = ctx;

	d->http = NULL;
	if (!d->fetching)
		destroy(d);
}

/* --- the head ---------------------------------------------------------------------------- */

static void answer_without(struct download *d, int status, const struct uar_http_header *headers,
			   size_t n)
{
	struct uar_http_request *r = d->c->r;

	gate_call_free(d->c);
	uar_http_respond(r, &(struct uar_http_response){
				    .status = status, .headers = headers, .header_count = n });
	destroy(d);
}

static void begin_body(struct download *d, int status, const struct uar_http_header *headers,
		       size_t n)
{
	struct uar_http_stream_events events = { on_writable, on_closed, d };
	struct uar_http_response head = {
		.status = status, .content_type = d->type.p, .headers = headers, .header_count = n
	};
	struct uar_gate *g = d->g;
	uar_err e = uar_http_body_begin(d->c->r, &head, d->range.count, &events, &d->http);

	if (e) {
		fail(d, e, NULL);
		return;
	}
	gate_call_free(d->c);
	d->c = NULL;
	if (!d->http) { /* HEAD */
		destroy(d);
		return;
	}
	d->sum.on = d->where != BYTES_HELD && d->range.count == d->total;
	uar_sha256_init(&d->sum.hash);
	uar_list_add_last(&g->downloads.list, &d->node);
	go_on(d);
}

/* The range that is asked for, unless it is a range of other bytes. */
static uar_err choose(struct download *d, uar_str tag)
{
	const struct uar_http_request *r = d->c->r;
	uar_str range = uar_http_header(r, "range"), only_if = uar_http_header(r, "if-range");

	d->range = (struct uar_http_range){ 0, d->total };
	if (!range.n || (only_if.n && !uar_str_eq(only_if, tag)))
		return UAR_ESKIP;
	return uar_http_range(range, d->total, &d->range);
}

static void serve(struct download *d)
{
	char tag[UAR_UUID_TEXT * 2], span[GATE_CONTENT_SPAN];
	struct uar_http_header h[HEADERS] = {
		{ UAR_STR("ETag"), UAR_STR("") },
		{ UAR_STR("Cache-Control"), UAR_STR("private, no-cache") },
		{ UAR_STR("Accept-Ranges"), UAR_STR("bytes") },
		{ UAR_STR("Content-Security-Policy"), UAR_STR("sandbox; default-src 'none'") },
		{ UAR_STR("Cross-Origin-Resource-Policy"), UAR_STR("same-origin") },
		{ UAR_STR("Content-Disposition"), uar_buf_str(&d->disposition) },
		{ UAR_STR("Content-Range"), UAR_STR("") },
	};
	uar_err e;

	snprintf(tag, sizeof tag, "\"%.*s\"", UAR_FMT(d->sha256));
	h[0].value = uar_str_c(tag);
	if (d->wanted == WANTED_REF) /* the path names the very bytes */
		h[1].value = UAR_STR("private, max-age=31536000, immutable");
	e = choose(d, uar_str_c(tag));
	gate_content_span(e ? NULL : &d->range, d->total, span);
	h[6].value = uar_str_c(span);
	if (gate_tag_matches(uar_http_header(d->c->r, "if-none-match"), uar_str_c(tag)))
		answer_without(d, 304, h, 2);
	else if (e == UAR_ERANGE)
		answer_without(d, 416, &h[6], 1);
	else
		begin_body(d, e ? 200 : 206, h, e ? HEADERS - 1 : HEADERS);
}

/* --- the look-up -------------------------------------------------------------------------- */

static uar_str keep(struct download *d, uar_str s)
{
	return uar_arena_str(&d->arena, s);
}

static uar_err inline_bytes(struct download *d, const struct uar_export_item *x)
{
	if (uar_str_is(x->type, "binary"))
		return uar_base64_decode(&d->arena, x->content, &d->bytes);
	d->bytes = keep(d, x->content);
	return d->bytes.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err take_item(struct download *d, const struct uar_export_item *x,
			 struct uar_error *error)
{
	uar_str mime = uar_json_text(x->p, "mime");
	uar_str label = uar_json_text(x->p, "label");
	bool elsewhere = uar_str_is(x->type, "url") || uar_str_is(x->type, "binary_url");

	if (elsewhere && !x->upload)
		return uar_error_set(error, UAR_ENOTFOUND, "the item is an address, not bytes");
	gate_content_type(&d->type, x->type, mime);
	gate_content_disposition(&d->disposition, uar_buf_str(&d->type), label, d->item_id);
	d->where = x->blob.n ? BYTES_IN_BLOB : BYTES_HELD;
	d->sha256 = keep(d, uar_json_text(x->p, "sha256"));
	d->total = (uint64_t)uar_json_int(uar_json_get(x->p, UAR_STR("bytes")), 0);
	if (!d->sha256.p || d->type.err || d->disposition.err)
		return UAR_ENOMEM;
	if (d->sha256.n != sizeof d->get.sha256 - 1 ||
	    (d->where == BYTES_IN_BLOB && !uar_str_eq(x->blob, d->sha256)))
		return UAR_ECORRUPT;
	return d->where == BYTES_IN_BLOB ? UAR_OK : inline_bytes(d, x);
}

/* What an agent said has no bytes of its own: they are gathered on the way. */
static uar_err take_answer(struct download *d, const struct uar_export_item *x)
{
	char sha256[UAR_SHA256_TEXT + 1];

	d->wanted = WANTED_ANSWER;
	d->bytes = keep(d, uar_buf_str(&d->answer.text));
	d->total = d->bytes.n;
	uar_sha256_hex(d->bytes, sha256);
	d->sha256 = keep(d, uar_str_c(sha256));
	gate_content_type(&d->type, x->type, UAR_STR("text/plain"));
	gate_content_disposition(&d->disposition, uar_buf_str(&d->type), UAR_STR("answer"),
				 d->item_id);
	return d->bytes.p && d->sha256.p && !d->type.err && !d->disposition.err ? UAR_OK
										: UAR_ENOMEM;
}

/* What somebody is asked to allow: beside its event, or in it. */
static uar_err take_input(struct download *d, const struct uar_event *ev, struct uar_arena *scratch,
			  struct uar_error *error)
{
	const struct uar_json *p, *scope, *input;
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	char sha256[UAR_SHA256_TEXT + 1];
	uar_err e = uar_json_parse(ev->payload, NULL, scratch, &p, NULL);

	if (e)
		return UAR_ECORRUPT;
	scope = uar_json_get(p, UAR_STR("scope"));
	input = uar_json_get(scope, UAR_STR("input"));
	d->sha256 = keep(d, uar_json_text(scope, "input_sha256"));
	d->where = d->sha256.n ? BYTES_IN_BLOB : BYTES_HELD;
	d->total = (uint64_t)uar_json_int(uar_json_get(scope, UAR_STR("input_bytes")), 0);
	if (d->where == BYTES_HELD && !input)
		return uar_error_set(error, UAR_ENOTFOUND,
				     "the question has no input that was kept");
	if (d->where == BYTES_HELD) {
		uar_json_write(&text, input);
		uar_sha256_hex(uar_buf_str(&text), sha256);
		d->bytes = keep(d, uar_buf_str(&text));
		d->sha256 = keep(d, uar_str_c(sha256));
		d->total = text.n;
	}
	gate_content_type(&d->type, UAR_STR("json"), UAR_STR("application/json"));
	gate_content_disposition(&d->disposition, uar_buf_str(&d->type), UAR_STR(""), d->item_id);
	if (text.err || d->type.err || d->disposition.err || !d->sha256.p ||
	    (d->where == BYTES_HELD && !d->bytes.p))
		e = UAR_ENOMEM;
	else if (d->sha256.n != UAR_SHA256_TEXT)
		e = UAR_ECORRUPT;
	uar_buf_fini(&text);
	return e;
}

/* Whoever may read the event may read what it refers to, as its owner. */
static uar_err take_ref(struct download *d, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *p;
	uar_str ref = uar_arena_printf(scratch, "\"blob://%.*s\"", UAR_FMT(d->item_id));
	uar_str mime;

	if (!ref.p)
		return UAR_ENOMEM;
	if (!ev->refs.n || !memmem(ev->refs.p, ev->refs.n, ref.p, ref.n))
		return UAR_ESKIP;
	if (uar_json_parse(ev->payload, NULL, scratch, &p, NULL))
		return UAR_ECORRUPT;
	mime = uar_json_str(uar_json_get(p, UAR_STR("mime")), uar_json_text(p, "media_type"));
	if (!mime.n && (ev->cls == UAR_EV_MODEL_COMPLETED || uar_event_ends_run(ev)))
		mime = UAR_STR("application/json"); /* what the model asks for; result_refs */
	d->where = BYTES_IN_BLOB;
	d->sha256 = d->item_id;
	gate_content_type(&d->type,
			  !mime.n || uar_str_starts(mime, UAR_STR("text/")) ? UAR_STR("text")
									    : UAR_STR("binary"),
			  mime);
	gate_content_disposition(&d->disposition, uar_buf_str(&d->type), UAR_STR(""), d->item_id);
	return d->type.err || d->disposition.err ? UAR_ENOMEM : UAR_OK;
}

static uar_err take_event(struct download *d, const struct uar_event *ev, struct uar_arena *scratch,
			  struct uar_error *error)
{
	struct uar_export_item x;
	uar_err e;

	if (d->wanted == WANTED_INPUT)
		return ev->cls == UAR_EV_ACTION_REQUIRED &&
				       uar_str_eq(ev->ids[UAR_ID_ACTION], d->item_id)
			       ? take_input(d, ev, scratch, error)
			       : UAR_ESKIP;
	if (d->wanted == WANTED_REF)
		return take_ref(d, ev, scratch);
	if (d->wanted == WANTED_ITEM && ev->cls == UAR_EV_ARTIFACT_CHANGED &&
	    !uar_str_eq(ev->ids[UAR_ID_ARTIFACT], d->item_id))
		return UAR_ESKIP; /* unread: others may be damaged, and are many */
	if (d->wanted == WANTED_UPLOAD &&
	    !memmem(ev->payload.p, ev->payload.n, d->item_id.p, d->item_id.n))
		return UAR_ESKIP; /* likewise */
	e = uar_answer_text_feed(&d->answer, ev, scratch);
	if (!e)
		e = uar_export_item_read(ev, scratch, &x);
	if (e)
		return e;
	if (!uar_str_eq(d->wanted == WANTED_UPLOAD ? x.blob_id : x.id, d->item_id))
		return UAR_ESKIP;
	return x.answer ? take_answer(d, &x) : take_item(d, &x, error);
}

static void remember(const struct download *d, uint64_t run_sequence)
{
	struct downloads *all = &d->g->downloads;
	struct download_hint *h = &all->hint[all->next % ARRAY_LEN(all->hint)];

	if (d->by_hint || d->item_id.n >= sizeof h->item_id || d->run_id.n >= sizeof h->run_id)
		return;
	all->next++;
	snprintf(h->run_id, sizeof h->run_id, "%.*s", UAR_FMT(d->run_id));
	snprintf(h->item_id, sizeof h->item_id, "%.*s", UAR_FMT(d->item_id));
	h->before = run_sequence - 1;
}

/* Where to begin to look. */
static void recall(struct download *d)
{
	const struct downloads *all = &d->g->downloads;

	for (size_t i = 0; i < ARRAY_LEN(all->hint); i++)
		if (uar_str_is(d->item_id, all->hint[i].item_id) &&
		    uar_str_is(d->run_id, all->hint[i].run_id)) {
			d->after = all->hint[i].before;
			d->by_hint = true;
		}
}

/* UAR_ESKIP: the item is not on this page. */
static uar_err look(struct download *d, struct uar_error *error)
{
	struct uar_arena scratch;
	uar_err e = UAR_ESKIP;

	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < d->read.event_count && e == UAR_ESKIP; i++) {
		const struct uar_event *ev = &d->read.events[i];

		d->after = ev->run_sequence;
		e = take_event(d, ev, &scratch, error);
		if (!e && d->wanted != WANTED_INPUT && d->wanted != WANTED_ANSWER)
			remember(d, ev->run_sequence);
		uar_arena_reset(&scratch);
	}
	uar_arena_fini(&scratch);
	return e;
}

static void page_ready(struct uar_events_read *r);

static uar_err read_page(struct download *d)
{

	d->read = (struct uar_events_read){ .owner = d->owner,
					    .run_id = d->run_id,
					    .after = d->after,
					    .limit = d->by_hint ? 1 : UAR_LIMIT_READ_PAGE,
					    .done = page_ready };
	return uar_reader_events(d->g->o.reader, &d->read);
}

/* Events do not always tell how long it is. */
static void measured(struct uar_blob_read *get)
{
	struct download *d = UAR_OWNER(get, struct download, get);
	struct uar_error error = get->error;
	uar_err e = get->err ? get->err : d->c->r ? UAR_OK : UAR_EEOF;

	d->total = get->total;
	uar_blob_read_fini(get);
	if (e == UAR_ENOTFOUND)
		(void)uar_error_set(&error, e, "it is not kept any more");
	if (e)
		fail(d, e, &error);
	else
		serve(d);
}

static uar_err measure(struct download *d)
{

	d->get = (struct uar_blob_read){ .done = measured };
	memcpy(d->get.sha256, d->sha256.p, sizeof d->get.sha256 - 1);
	return uar_reader_blob(d->g->o.reader, &d->get);
}

static const char *noun(enum wanted wanted)
{
	switch (wanted) {
	case WANTED_INPUT: return "question";
	case WANTED_UPLOAD: return "blob";
	case WANTED_REF: return "reference in the run's events";
	case WANTED_ITEM:
	case WANTED_ANSWER: break;
	}
	return "export item";
}

static void page_ready(struct uar_events_read *r)
{
	struct download *d = UAR_OWNER(r, struct download, read);
	struct uar_error error = r->error;
	uar_err e = r->err ? r->err : look(d, &error);
	bool more = !r->err && r->more && e == UAR_ESKIP;

	uar_events_read_fini(r);
	d->by_hint = d->by_hint && !more;
	if (more)
		e = read_page(d);
	if (!d->c->r)
		e = e ? e : more ? UAR_OK : UAR_EEOF;
	if (e == UAR_ESKIP)
		e = uar_error_set(&error, UAR_ENOTFOUND, "no such %s", noun(d->wanted));
	if (!e && !more && d->wanted == WANTED_REF) {
		e = measure(d);
		more = !e;
	}
	if (e)
		fail(d, e, &error);
	else if (!more)
		serve(d);
}

/* --- an upload that is no item yet ---------------------------------------------------------- */

static uar_err take_staged(struct download *d)
{
	d->where = BYTES_STAGED;
	d->total = d->get.total;
	d->sha256 = keep(d, uar_str_c(d->get.sha256));
	gate_content_type(&d->type, UAR_STR("binary"), UAR_STR(""));
	gate_content_disposition(&d->disposition, uar_buf_str(&d->type), UAR_STR(""), d->item_id);
	return d->sha256.p && !d->type.err && !d->disposition.err ? UAR_OK : UAR_ENOMEM;
}

static void staged_ready(struct uar_blob_read *get)
{
	struct download *d = UAR_OWNER(get, struct download, get);
	struct uar_error error = get->error;
	bool there = !get->err;
	uar_err e = there ? take_staged(d) : get->err;

	uar_blob_read_fini(get);
	if (e == UAR_ENOTFOUND) {
		error = (struct uar_error){ 0 };
		e = d->c->r ? read_page(d) : UAR_EEOF;
	} else if (!e && !d->c->r) {
		e = UAR_EEOF;
	}
	if (e)
		fail(d, e, &error);
	else if (there)
		serve(d);
}

static uar_err look_staged(struct download *d)
{

	d->get = (struct uar_blob_read){ .owner = d->owner,
					 .run_id = d->run_id,
					 .staged_id = d->item_id,
					 .done = staged_ready };
	return uar_reader_blob(d->g->o.reader, &d->get);
}

static void drop(struct call *c)
{
	destroy(c->op);
}

static void begin(struct call *c, enum wanted wanted)
{
	struct download *d = uar_zalloc(sizeof *d);
	uar_err e = UAR_ENOMEM;

	if (d) {
		d->g = c->g;
		d->began_us = uar_clock_mono(c->g->o.sched->clock);
		d->c = c;
		uar_list_init(&d->node);
		uar_arena_init(&d->arena, 0);
		uar_answer_text_init(&d->answer);
		d->type = uar_buf_make(256);
		d->disposition = uar_buf_make(512);
		d->run_id = keep(d, c->params[0]);
		d->wanted = wanted;
		d->item_id = wanted == WANTED_INPUT ? uar_arena_printf(&d->arena, "%.*s.%.*s",
								       UAR_FMT(c->params[0]),
								       UAR_FMT(c->params[1]))
						    : keep(d, c->params[1]);
		c->op = d;
		c->drop = drop;
		recall(d);
		e = !uar_owner_copy(&d->arena, &c->owner, &d->owner) || !d->run_id.p ||
				    !d->item_id.p
			    ? UAR_ENOMEM
		    : wanted == WANTED_UPLOAD ? look_staged(d)
					      : read_page(d);
	}
	if (e && d)
		fail(d, e, NULL);
	else if (e)
		gate_problem(c, e, NULL);
}

void gate_export_content(struct call *c)
{
	begin(c, WANTED_ITEM);
}

void gate_blob_content(struct call *c)
{
	begin(c, WANTED_UPLOAD);
}

void gate_run_blob(struct call *c)
{
	struct uar_error error = { 0 };

	if (c->params[1].n == UAR_SHA256_TEXT && uar_str_is_hex(c->params[1]))
		begin(c, WANTED_REF);
	else
		gate_problem(c,
			     uar_error_set(&error, UAR_ENOTFOUND,
					   "a reference is 64 hexadecimal digits"),
			     &error);
}

void gate_action_input(struct call *c)
{
	begin(c, WANTED_INPUT);
}

/* --- the end -------------------------------------------------------------------------------- */

void gate_downloads_end(struct uar_gate *g)
{
	UAR_LIST_EACH (it, &g->downloads.list) {
		struct download *d = UAR_OWNER(it, struct download, node);

		if (!d->http)
			continue;
		uar_http_stream_cut(d->http);
		on_closed(d);
	}
}

void gate_downloads_fini(struct uar_gate *g)
{
	UAR_LIST_EACH (it, &g->downloads.list)
		destroy(UAR_OWNER(it, struct download, node));
}
