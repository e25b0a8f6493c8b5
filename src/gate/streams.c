/* streams.c - runs and sessions as Server-Sent Events.
 *
 * A stream is answered with 200 only once the runtime has found what it names.
 * What one commit brings is framed once and shared by all readers; a reader
 * that cannot take it is fed from the store when it has room again. */
#include "gate/gate_int.h"
#include "base/sse.h"
#include "proto/normalized.h"
#include "runtime/stream.h"

struct sse {
	struct uar_list node; /* in g->streams once open */
	struct uar_gate *g;
	struct call *call;	      /* until the answer has begun */
	struct uar_http_stream *http; /* then */
	struct uar_stream *stream;    /* NULL: ended */
	bool whole;		      /* full envelope, else normalized */
	bool meta;
};

static void free_sse(struct sse *s)
{
	if (s->http || !uar_list_empty(&s->node)) {
		uar_list_remove(&s->node);
		s->g->stream_count--;
	}
	uar_stream_close(s->stream);
	uar_free(s);
}

/* --- framing -------------------------------------------------------------------- */

void gate_cache_clear(struct uar_gate *g)
{
	uar_frame_unref(g->cache.frame);
	g->cache = (struct frame_cache){ 0 };
}

static void put_number(struct uar_buf *out, const struct uar_event *ev, bool whole)
{
	uar_buf_add_str(out, UAR_STR("event: event\nid: "));
	uar_buf_add_u64(out, whole ? ev->sequence : ev->run_sequence);
	uar_buf_add_str(out, UAR_STR("\ndata: "));
}

/* JSON has no line ends of its own, so one data line holds it. */
static uar_err put_event(struct uar_gate *g, const struct sse *s, const struct uar_event *ev)
{
	struct uar_normalized_options o = { g->o.cancel_as_done, s->meta };
	size_t before = g->buf.n;
	struct uar_jw w;
	uar_err e;

	put_number(&g->buf, ev, s->whole);
	if (s->whole) {
		w = uar_jw_begin(&g->buf);
		uar_event_write(&w, NULL, ev, 0);
		e = uar_jw_end(&w);
	} else {
		uar_arena_reset(&g->scratch);
		e = uar_normalized_encode(ev, &o, &g->scratch, &g->buf);
	}
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

	return c->frame && !s->meta && c->n == n && c->whole == s->whole &&
	       uar_str_is(ev->event_id, c->first);
}

static void remember(struct uar_gate *g, const struct sse *s, const struct uar_event *ev, size_t n,
		     struct uar_frame *frame)
{
	gate_cache_clear(g);
	if (s->meta || ev->event_id.n != UAR_UUID_TEXT)
		return;
	g->cache.frame = uar_frame_ref(frame);
	memcpy(g->cache.first, ev->event_id.p, UAR_UUID_TEXT);
	g->cache.n = n;
	g->cache.whole = s->whole;
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
	struct sse *s = ctx;

	s->http = NULL;
	uar_list_remove(&s->node);
	s->g->stream_count--;
	uar_stream_close(s->stream);
	uar_free(s);
}

static uar_err on_opened(void *ctx)
{
	struct sse *s = ctx;
	struct uar_http_stream_events events = { on_writable, on_closed, s };
	struct call *c = s->call;
	uar_err e =
		uar_http_stream_begin(c->r, "text/event-stream; charset=utf-8", &events, &s->http);

	if (e)
		return e;
	s->call = NULL;
	gate_call_free(c);
	uar_list_add_last(&s->g->streams, &s->node);
	s->g->stream_count++;
	return UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct sse *s = ctx;
	uar_err e;
	struct uar_frame *frame = frame_of(s->g, s, ev, n, &e);

	if (!frame)
		return e;
	e = uar_http_stream_send(s->http, frame);
	uar_frame_unref(frame);
	return e;
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
	if (s->http)
		uar_http_stream_end(s->http);
	free_sse(s);
}

/* --- opening ------------------------------------------------------------------------ */

static void on_gone(struct call *c)
{
	struct sse *s = c->op;

	uar_stream_close(s->stream);
	uar_free(s);
	gate_call_free(c);
}

/* The cursor: Last-Event-ID wins, since a browser sends it on its own reconnects. */
static uar_err cursor_of(struct call *c, uint64_t *out, struct uar_error *error)
{
	uar_str header = uar_http_header(c->r, "last-event-id");
	uar_err e = gate_query_u64(c, "last_event_id", 0, out, error);

	if (!e)
		e = gate_query_u64(c, "after", *out, out, error);
	if (e || !header.n)
		return e;
	uar_error_where(error, "Last-Event-ID");
	if (uar_str_u64(header, out))
		return uar_error_set(error, UAR_ECURSOR, "%s", uar_err_text(UAR_ECURSOR));
	return UAR_OK;
}

static uar_err open_stream(struct call *c, bool of_run, struct uar_error *error)
{
	struct sse *s = uar_zalloc(sizeof *s);
	struct uar_stream_options o = { .owner = c->g->o.owner };
	uar_str meta = UAR_STR_NONE;
	uar_err e = s ? cursor_of(c, &o.after, error) : UAR_ENOMEM;

	if (!e)
		e = gate_query_str(c, "meta", &meta);
	if (e) {
		uar_free(s);
		return e;
	}
	uar_list_init(&s->node);
	s->g = c->g;
	s->call = c;
	s->whole = !of_run;
	s->meta = uar_str_is(meta, "1");
	*(of_run ? &o.run_id : &o.session_id) = c->params[0];
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, s };
	e = uar_stream_open(c->g->o.runtime, &o, &s->stream);
	if (e) {
		uar_free(s);
		return e;
	}
	c->op = s;
	c->gone = on_gone;
	return UAR_OK;
}

static void stream(struct call *c, bool of_run)
{
	struct uar_error error = { 0 };
	uar_err e;

	if (c->r->method == UAR_HTTP_HEAD) {
		gate_answer_type(c, 200, "text/event-stream; charset=utf-8", UAR_STR(""));
		return;
	}
	e = c->g->draining ? UAR_EDRAINING : open_stream(c, of_run, &error);
	if (e)
		gate_problem(c, e, &error);
}

void gate_stream_run(struct call *c)
{
	stream(c, true);
}

void gate_stream_session(struct call *c)
{
	stream(c, false);
}

/* --- heartbeats and the end ----------------------------------------------------------- */

enum { TICK_US = 1000000 };

/* Each tick pings its share, so that every stream is pinged once a heartbeat
 * without all of them at one moment. */
void gate_streams_tick(struct uar_timer *t)
{
	struct uar_gate *g = UAR_OWNER(t, struct uar_gate, tick);
	int64_t beat_us = g->o.heartbeat_us > 0 ? g->o.heartbeat_us : TICK_US;
	int64_t tick_us = beat_us < TICK_US ? beat_us : TICK_US, ticks = beat_us / tick_us;
	size_t share = (g->stream_count + (size_t)ticks - 1) / (size_t)ticks;

	while (share-- && !uar_list_empty(&g->streams)) {
		struct sse *s = UAR_OWNER(g->streams.next, struct sse, node);

		uar_list_remove(&s->node);
		uar_list_add_last(&g->streams, &s->node);
		if (s->http && uar_http_stream_send(s->http, g->ping))
			continue; /* full or gone: it will notice by itself */
	}
	gate_cache_clear(g); /* no frame outlives its moment by long */
	if (uar_timer_set(g->o.sched, &g->tick, tick_us))
		uar_log(g->o.log, UAR_LOG_ERROR, "gate.no_heartbeat",
			{ "reason", UAR_STR("out of memory") });
}

void gate_streams_end(struct uar_gate *g)
{
	struct uar_frame *bye = uar_frame_create(UAR_STR("retry: 1000\n: shutting down\n\n"));

	UAR_LIST_EACH (it, &g->streams) {
		struct sse *s = UAR_OWNER(it, struct sse, node);

		if (bye && uar_http_stream_send(s->http, bye))
			continue; /* gone already: on_closed follows */
		uar_http_stream_end(s->http);
		free_sse(s);
	}
	uar_frame_unref(bye);
}
