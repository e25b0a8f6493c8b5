/* streams.c - runs and sessions as Server-Sent Events.
 *
 * A stream is answered with 200 only once the runtime has found what it names.
 * What one commit brings is framed once and shared by all readers; a reader
 * that cannot take it is fed from the store when it has room again. */
#include "gate/cursor.h"
#include "gate/gate_int.h"
#include "proto/agui.h"
#include "proto/exports.h"
#include "proto/normalized.h"
#include "read/stream.h"

struct lag_look;
struct sse {
	struct gate_stream base;
	struct call *call;	   /* until the answer has begun */
	struct uar_stream *stream; /* NULL: ended */
	enum gate_dialect dialect;
	uint64_t last;			     /* number of the last event that was taken */
	char run_id[UAR_LIMIT_ID_BYTES + 1]; /* empty: of a session */
	struct lag_look *look;		     /* under way, or NULL */
	struct uar_owner owner;		     /* whose it is; strings of the gate */
	bool meta, full; /* options of normalized events; such frames are not shared */
	bool resync;	 /* the reader's cursor is of another incarnation */
};

uar_err gate_stream_open(struct gate_stream *s, struct call *c,
			 const struct uar_http_stream_events *events)
{
	const char *type = s->type ? s->type : "text/event-stream; charset=utf-8";
	uar_err e;

	if (c->g->draining) /* since it was asked for */
		return UAR_EDRAINING;
	if (c->r->method == UAR_HTTP_HEAD) {
		uar_http_stream_head(c->r, type);
		gate_call_free(c);
		return UAR_ESKIP;
	}
	e = uar_http_stream_begin(c->r, type, events, &s->http);
	if (e)
		return e;
	s->g = c->g;
	s->key = c->key;
	s->until_us = c->until_us;
	s->counted = c->counted;
	c->counted = NULL; /* the stream is counted instead */
	gate_call_free(c);
	uar_list_add_last(&s->g->streams, &s->node);
	s->g->stream_count++;
	return UAR_OK;
}

void gate_stream_forget(struct gate_stream *s)
{
	if (!s->http)
		return;
	s->http = NULL;
	if (s->counted)
		s->counted->under_way--;
	s->counted = NULL;
	uar_list_remove(&s->node);
	s->g->stream_count--;
}

/* A reader whose stream is cut knows that there is more, and asks for it again. */
void gate_stream_finish(struct gate_stream *s, uar_err why, const struct uar_error *error)
{
	const char *reason = error && error->text[0] ? error->text : uar_err_text(why);

	if (!s->http)
		return;
	if (!why || why == UAR_EDRAINING) {
		uar_http_stream_end(s->http);
		return;
	}
	uar_log(s->g->o.log, uar_err_retryable(why) ? UAR_LOG_WARN : UAR_LOG_ERROR, "stream.cut",
		{ "detail", uar_str_c(reason) });
	uar_http_stream_cut(s->http);
}

uint64_t gate_incarnation(const struct uar_gate *g)
{
	return uar_reader_incarnation(g->o.reader);
}

/* The empty id makes a browser forget its own. */
uar_err gate_stream_resync(struct gate_stream *s)
{
	struct uar_buf b = uar_buf_make(1024), used = uar_buf_make(64);
	struct uar_frame *frame;
	struct uar_jw w;
	uar_err e;

	uar_buf_add_str(&b, UAR_STR("event: resync\nid:\ndata: "));
	w = uar_jw_begin(&b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "code", "RESYNC");
	uar_jw_cstr(&w, "message",
		    "the cursor is of another history of this server; all events follow");
	uar_jw_u64(&w, "incarnation", gate_incarnation(s->g));
	uar_jw_cstr(&w, "requested", s->requested);
	gate_cursor_put(&used, gate_incarnation(s->g), 0);
	uar_jw_str(&w, "used", uar_buf_str(&used));
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_buf_fini(&used);
	uar_buf_add_str(&b, UAR_STR("\n\n"));
	if (e) {
		uar_buf_fini(&b);
		return e;
	}
	frame = b.err ? NULL : uar_frame_create(uar_buf_str(&b));
	uar_buf_fini(&b);
	e = frame ? uar_http_stream_send(s->http, frame) : UAR_ENOMEM;
	uar_frame_unref(frame);
	return e;
}

static void forget_look(struct sse *s);

static void drop_sse(struct gate_stream *base)
{
	struct sse *s = UAR_OWNER(base, struct sse, base);

	gate_stream_forget(base);
	forget_look(s);
	uar_stream_close(s->stream);
	uar_free(s);
}

/* --- framing -------------------------------------------------------------------- */

void gate_cache_clear(struct uar_gate *g)
{
	uar_frame_unref(g->cache.frame);
	g->cache = (struct frame_cache){ 0 };
}

static void put_id(struct uar_gate *g, const struct uar_event *ev, enum gate_dialect dialect)
{
	uar_buf_add_str(&g->buf, dialect == GATE_EXPORTS ? UAR_STR("event: export\nid: ")
							 : UAR_STR("event: event\nid: "));
	gate_cursor_put(&g->buf, gate_incarnation(g),
			dialect == GATE_ENVELOPE ? ev->sequence : ev->run_sequence);
	uar_buf_add_str(&g->buf, UAR_STR("\ndata: "));
}

static uar_err put_notice(struct uar_gate *g, const struct uar_event *ev)
{
	struct uar_jw w = uar_jw_begin(&g->buf);
	struct uar_export_item item;
	uar_err e = uar_export_item_read(ev, &g->scratch, &item);

	if (e)
		return e;
	uar_export_item_notice(&w, NULL, &item);
	return uar_jw_end(&w);
}

static uar_err put_body(struct uar_gate *g, const struct sse *s, const struct uar_event *ev)
{
	struct uar_normalized_options o = { g->o.cancel_as_done, s->meta, s->full };
	struct uar_jw w;

	uar_arena_reset(&g->scratch);
	switch (s->dialect) {
	case GATE_NORMALIZED: return uar_normalized_encode(ev, &o, &g->scratch, &g->buf);
	case GATE_EXPORTS: return put_notice(g, ev);
	case GATE_CHUNKS:
	case GATE_ENVELOPE: break;
	}
	w = uar_jw_begin(&g->buf);
	uar_event_write(&w, NULL, ev, 0);
	return uar_jw_end(&w);
}

static uar_err put_chunk(struct uar_gate *g, const struct uar_event *ev)
{
	uar_err e;

	uar_arena_reset(&g->scratch);
	e = uar_chunk_encode(ev, gate_incarnation(g), &g->scratch, &g->buf);
	return e == UAR_ESKIP ? UAR_OK : e;
}

/* JSON has no line ends of its own, so one data line holds it. */
static uar_err put_event(struct uar_gate *g, const struct sse *s, const struct uar_event *ev)
{
	size_t before = g->buf.n;
	uar_err e;

	if (s->dialect == GATE_CHUNKS) /* frames by itself */
		return put_chunk(g, ev);
	if (s->dialect == GATE_NORMALIZED && !uar_normalized_shows(ev))
		return UAR_OK; /* most are not */
	put_id(g, ev, s->dialect);
	e = put_body(g, s, ev);
	if (e == UAR_ESKIP && !g->buf.err) {
		g->buf.n = before;
		return UAR_OK;
	}
	uar_buf_add_str(&g->buf, UAR_STR("\n\n"));
	return e ? e : g->buf.err;
}

static bool cached(const struct uar_gate *g, const struct sse *s, const struct uar_event *ev,
		   size_t n)
{
	const struct frame_cache *c = &g->cache;

	return c->frame && !s->meta && !s->full && c->n == n && c->dialect == s->dialect &&
	       uar_str_is(ev->event_id, c->first);
}

static void remember(struct uar_gate *g, const struct sse *s, const struct uar_event *ev, size_t n,
		     struct uar_frame *frame)
{
	gate_cache_clear(g);
	if (s->meta || s->full || ev->event_id.n != UAR_UUID_TEXT)
		return;
	g->cache.frame = uar_frame_ref(frame);
	memcpy(g->cache.first, ev->event_id.p, UAR_UUID_TEXT);
	g->cache.n = n;
	g->cache.dialect = s->dialect;
}

/* NULL with *out_err UAR_OK: nothing of it is shown. The caller unrefs. */
static struct uar_frame *frame_of(struct uar_gate *g, const struct sse *s,
				  const struct uar_event *ev, size_t n, uar_err *out_err)
{
	struct uar_frame *frame;

	*out_err = UAR_OK;
	if (cached(g, s, ev, n))
		return uar_frame_ref(g->cache.frame);
	uar_buf_clear(&g->buf);
	for (size_t i = 0; i < n && !*out_err; i++)
		*out_err = put_event(g, s, &ev[i]);
	if (*out_err || g->buf.n == 0)
		return NULL;
	frame = uar_frame_create(uar_buf_str(&g->buf));
	if (!frame)
		*out_err = UAR_ENOMEM;
	else
		remember(g, s, ev, n, frame);
	return frame;
}

/* --- the sink of the runtime's stream ---------------------------------------------- */

static void on_writable(void *ctx)
{
	struct sse *s = ctx;

	if (s->stream)
		uar_stream_resume(s->stream);
}

static void on_closed(void *ctx)
{
	drop_sse(ctx);
}

static uar_err on_opened(void *ctx)
{
	struct sse *s = ctx;
	struct uar_http_stream_events events = { on_writable, on_closed, s };
	uar_err e = gate_stream_open(&s->base, s->call, &events);

	if (!e || e == UAR_ESKIP)
		s->call = NULL;
	return e || !s->resync ? e : gate_stream_resync(&s->base);
}

/* The runtime ends the stream right after these. */
static bool are_last(const struct sse *s, const struct uar_event *last)
{
	return s->dialect != GATE_ENVELOPE && uar_event_ends_run(last);
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct sse *s = ctx;
	uar_err e;
	struct uar_frame *frame = frame_of(s->base.g, s, ev, n, &e);

	if (!frame)
		return e;
	if (are_last(s, &ev[n - 1]))
		uar_http_stream_hold(s->base.http);
	e = uar_http_stream_send(s->base.http, frame);
	uar_frame_unref(frame);
	if (!e) {
		s->base.taken = true;
		s->last = s->dialect == GATE_ENVELOPE ? ev[n - 1].sequence : ev[n - 1].run_sequence;
	}
	return e;
}

/* --- readers that take nothing ------------------------------------------------------- */

/* The run's record is asked how many events follow. Outlives a reader who leaves. */
struct lag_look {
	struct uar_run_list q;
	struct sse *s; /* NULL: it left */
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

/* Everything up to the last event was delivered: the reader comes back with its id. */
static void put_lag(const struct sse *s, const uint64_t *skipped, struct uar_buf *b)
{
	struct uar_buf id = uar_buf_make(64), oldest = uar_buf_make(64);
	struct uar_jw w;

	gate_cursor_put(&id, gate_incarnation(s->base.g), s->last);
	gate_cursor_put(&oldest, gate_incarnation(s->base.g), 1);
	uar_buf_add_str(b, UAR_STR("event: lag\ndata: "));
	w = uar_jw_begin(b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "code", "LAGGED");
	uar_jw_str(&w, "lastDeliveredEventId", uar_buf_str(&id));
	if (skipped)
		uar_jw_u64(&w, "skippedEvents", *skipped);
	else
		uar_jw_null(&w, "skippedEvents");
	uar_jw_str(&w, "oldestRetainedEventId", uar_buf_str(&oldest));
	uar_jw_close(&w);
	b->err = uar_jw_end(&w);
	uar_buf_add_str(b, UAR_STR("\n\n"));
	uar_buf_fini(&id);
	uar_buf_fini(&oldest);
}

static void end_lagging(struct sse *s, const uint64_t *skipped)
{
	struct uar_buf b = uar_buf_make(1024);
	struct uar_frame *frame;

	put_lag(s, skipped, &b);
	frame = b.err ? NULL : uar_frame_create(uar_buf_str(&b));
	uar_buf_fini(&b);
	if (!frame)
		return; /* it is cut when it has stalled too long */
	uar_log(s->base.g->o.log, UAR_LOG_INFO, "stream.lagged",
		{ "run_id", uar_str_c(s->run_id) });
	uar_http_stream_end_with(s->base.http, frame);
	uar_frame_unref(frame);
	drop_sse(&s->base);
}

static void forget_look(struct sse *s)
{
	if (s->look)
		s->look->s = NULL;
}

static void lag_looked(struct uar_run_list *q)
{
	struct lag_look *k = UAR_OWNER(q, struct lag_look, q);
	struct sse *s = k->s;
	uint64_t skipped = 0;
	bool known = !q->err;

	if (known && s && q->rows[0].last_run_sequence > s->last)
		skipped = q->rows[0].last_run_sequence - s->last;
	uar_run_list_fini(q);
	uar_free(k);
	if (!s)
		return;
	s->look = NULL;
	if (s->base.full && !s->base.taken)
		end_lagging(s, known ? &skipped : NULL);
}

static void on_lag(struct gate_stream *base)
{
	struct sse *s = UAR_OWNER(base, struct sse, base);
	struct lag_look *k;

	if (s->look)
		return;
	if (!s->run_id[0]) {
		end_lagging(s, NULL);
		return;
	}
	k = uar_zalloc(sizeof *k);
	if (!k)
		return;
	k->s = s;
	memcpy(k->run_id, s->run_id, sizeof k->run_id);
	k->q = (struct uar_run_list){
		.owner = s->owner, .run_id = uar_str_c(k->run_id), .limit = 1, .done = lag_looked
	};
	s->look = k;
	if (uar_reader_runs(base->g->o.reader, &k->q)) {
		s->look = NULL;
		uar_free(k);
	}
}

/* The peer's end (UAR_EEOF) is told by on_closed as well; that one frees. */
static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct sse *s = ctx;
	struct call *c = s->call;

	s->stream = NULL;
	if (c) {
		s->call = NULL;
		uar_free(s);
		gate_problem(c, why, error);
		return;
	}
	if (why == UAR_EEOF)
		return;
	uar_runtime_note_failure(s->base.g->o.runtime, why);
	gate_stream_finish(&s->base, why, error);
	drop_sse(&s->base);
}

/* --- opening ------------------------------------------------------------------------ */

static void on_gone(struct call *c)
{
	struct sse *s = c->op;

	uar_stream_close(s->stream);
	uar_free(s);
	gate_call_free(c);
}

static uar_err read_variants(struct call *c, bool *out_full, struct uar_error *error)
{
	uar_str text = UAR_STR_NONE;
	uar_err e = gate_query_str(c, "variants", &text);

	*out_full = uar_str_is(text, "full");
	if (e || *out_full || !text.p || uar_str_is(text, "plain"))
		return e;
	uar_error_where(error, "?variants");
	return uar_error_set(error, UAR_EINVALID, "variants are plain or full");
}

struct place {
	uint64_t after;
	bool resync; /* it was of another incarnation */
};

/* `at`: NULL takes it from the request. */
static uar_err open_stream(struct call *c, uar_str run_id, enum gate_dialect dialect,
			   const struct place *at, struct uar_error *error)
{
	struct sse *s = uar_zalloc(sizeof *s);
	struct uar_stream_options o = { .owner = c->owner };
	bool meta = false, full = false;
	uar_err e = s ? UAR_OK : UAR_ENOMEM;

	if (!e && at) {
		o.after = at->after;
		e = at->resync ? UAR_ERESYNC : UAR_OK;
	} else if (!e) {
		e = gate_cursor(c, &o.after, error);
	}
	if (e == UAR_ERESYNC) {
		s->resync = true;
		gate_cursor_text(c, s->base.requested, sizeof s->base.requested);
		e = UAR_OK;
	}
	if (!e)
		e = gate_query_flag(c, "meta", &meta, error);
	if (!e)
		e = read_variants(c, &full, error);
	if (!e)
		e = gate_query_flag(c, "stored", &o.stored, error);
	if (e) {
		uar_free(s);
		return e;
	}
	uar_list_init(&s->base.node);
	s->base.g = c->g;
	s->base.drop = drop_sse;
	s->base.lag = on_lag;
	s->owner = c->owner;
	s->last = o.after;
	if (dialect != GATE_ENVELOPE)
		snprintf(s->run_id, sizeof s->run_id, "%.*s", UAR_FMT(run_id));
	s->call = c;
	s->dialect = dialect;
	s->meta = meta;
	s->full = full;
	*(dialect == GATE_ENVELOPE ? &o.session_id : &o.run_id) = run_id;
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, s };
	e = uar_stream_open(c->g->o.reader, &o, &s->stream);
	if (e) {
		uar_free(s);
		return e;
	}
	c->op = s;
	c->gone = on_gone;
	return UAR_OK;
}

void gate_stream_events(struct call *c, uar_str run_id, enum gate_dialect dialect)
{
	struct uar_error error;
	uar_err e;

	uar_error_clear(&error);
	e = c->g->draining ? UAR_EDRAINING : open_stream(c, run_id, dialect, NULL, &error);
	if (e)
		gate_problem(c, e, &error);
}

void gate_stream_exports(struct call *c, uar_str run_id, uint64_t after)
{
	struct place at = { .after = after };
	struct uar_error error = { 0 };
	uar_err e;

	e = c->g->draining ? UAR_EDRAINING : open_stream(c, run_id, GATE_EXPORTS, &at, &error);
	if (e)
		gate_problem(c, e, &error);
}

void gate_stream_chunks(struct call *c, uar_str run_id, const struct gate_view *view)
{
	struct place at = { view->cursor.run_sequence, view->resync };
	struct uar_error error = { 0 };
	uar_err e;

	e = c->g->draining ? UAR_EDRAINING : open_stream(c, run_id, GATE_CHUNKS, &at, &error);
	if (e)
		gate_problem(c, e, &error);
}

void gate_stream_run(struct call *c)
{
	gate_stream_events(c, c->params[0], GATE_NORMALIZED);
}

void gate_stream_session(struct call *c)
{
	gate_stream_events(c, c->params[0], GATE_ENVELOPE);
}

/* --- heartbeats and the end ----------------------------------------------------------- */

enum { TICK_US = 1000000 };

static void end_stream(struct gate_stream *s)
{
	if (s->leave)
		s->leave(s);
	uar_http_stream_end(s->http);
	s->drop(s);
}

/* One that was full at the last ping, too, and has taken nothing since, is behind for good. */
static void ping(struct uar_gate *g, struct gate_stream *s)
{
	bool stuck = s->full && !s->taken;

	if (s->type)
		return;
	s->taken = false;
	s->full = s->http && uar_http_stream_send(s->http, g->ping) == UAR_EBUSY;
	if (s->full && stuck && s->lag)
		s->lag(s);
}

/* Each tick pings its share, so that every stream is pinged once a heartbeat
 * without all of them at one moment. */
void gate_streams_tick(struct uar_timer *t)
{
	struct uar_gate *g = UAR_OWNER(t, struct uar_gate, tick);
	int64_t beat_us = g->o.heartbeat_us > 0 ? g->o.heartbeat_us : TICK_US;
	int64_t tick_us = beat_us < TICK_US ? beat_us : TICK_US, ticks = beat_us / tick_us;
	size_t share;

	g->pings_due += g->stream_count; /* in parts of a ping: so many are one */
	share = g->pings_due / (size_t)ticks;
	g->pings_due %= (size_t)ticks;
	while (share-- && !uar_list_empty(&g->streams)) {
		struct gate_stream *s = UAR_OWNER(g->streams.next, struct gate_stream, node);

		uar_list_remove(&s->node);
		uar_list_add_last(&g->streams, &s->node);
		if (s->until_us && s->until_us <= uar_clock_wall(g->o.sched->clock))
			end_stream(s);
		else
			ping(g, s);
	}
	gate_cache_clear(g); /* no frame outlives its moment by long */
	if (g->mcp)
		gate_mcp_tick(g->mcp);
	if (uar_timer_set(g->o.sched, &g->tick, tick_us))
		uar_log(g->o.log, UAR_LOG_ERROR, "gate.no_heartbeat",
			{ "reason", UAR_STR("out of memory") });
}

void gate_streams_cut(struct uar_gate *g, const struct gate_key *key)
{
	struct uar_list *next;

	for (struct uar_list *it = g->streams.next; it != &g->streams; it = next) {
		struct gate_stream *s = UAR_OWNER(it, struct gate_stream, node);

		next = it->next;
		if (s->key == key)
			end_stream(s);
	}
}

void gate_streams_end(struct uar_gate *g)
{
	struct uar_frame *bye = uar_frame_create(UAR_STR("retry: 1000\n: shutting down\n\n"));

	UAR_LIST_EACH (it, &g->streams) {
		struct gate_stream *s = UAR_OWNER(it, struct gate_stream, node);

		if (s->leave)
			s->leave(s);
		/* Who is far behind would hold the stop up, and can resume all the same. */
		if (bye && !s->type && uar_http_stream_send(s->http, bye) == UAR_EBUSY)
			uar_http_stream_cut(s->http);
		else
			uar_http_stream_end(s->http);
		s->drop(s);
	}
	uar_frame_unref(bye);
}
