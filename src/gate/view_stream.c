/* view_stream.c - a run in a dialect that remembers what it has shown.
 *
 * Such a stream reads its run from the first event on, whatever the reader has seen:
 * what lies before the cursor is folded and not sent. The reader is then told the state
 * at the cursor, and frames follow. Nothing of it is shared between readers. */
#include "gate/gate_int.h"
#include "read/stream.h"
#include "event/sizes.h"
#include "proto/agui.h"
#include "proto/limits.h"

struct view_stream {
	struct gate_stream base;
	struct call *call;	   /* until the answer has begun */
	struct uar_stream *stream; /* NULL: ended */
	struct gate_view view;
	struct uar_arena arena; /* the options */
	void *state;
	bool joined; /* the cursor is reached */
};

static void free_view(struct view_stream *s)
{
	uar_stream_close(s->stream);
	if (s->state)
		s->view.dialect->end(s->state);
	uar_free(s->state);
	uar_arena_fini(&s->arena);
	uar_free(s);
}

static void drop_view(struct gate_stream *base)
{
	struct view_stream *s = UAR_OWNER(base, struct view_stream, base);

	gate_stream_forget(base);
	free_view(s);
}

/* --- frames --------------------------------------------------------------------------- */

static uar_err encode_event(struct view_stream *s, const struct uar_event *ev,
			    struct uar_frames *out)
{
	uar_arena_reset(&s->base.g->scratch);
	return s->view.dialect->encode(s->state, ev, &s->base.g->scratch, out);
}

/* True in *out_closed: that is all that one request may show. */
static uar_err tell_state(struct view_stream *s, struct uar_buf *out, bool *out_closed)
{
	struct uar_frames frames = { .out = out };
	uar_err e = s->view.dialect->join(s->state, &frames);

	*out_closed = frames.closed;
	return e;
}

/* A reader that answers a question is shown what follows the answer. */
static uar_err join_after(struct view_stream *s, const struct uar_event *ev,
			  struct uar_frames *frames)
{
	struct uar_buf *out = frames->out;
	size_t before = out->n;
	bool last = uar_event_ends_run(ev);
	uar_err e = UAR_OK;

	s->joined = last || (ev->cls == UAR_EV_ACTION_RESOLVED &&
			     uar_str_eq(ev->ids[UAR_ID_ACTION], s->view.after_action));
	if (last)
		e = tell_state(s, out, &frames->closed);
	if (!e)
		e = encode_event(s, ev, frames);
	if (e || last)
		return e;
	out->n = before;
	frames->closed = false;
	return s->joined ? tell_state(s, out, &frames->closed) : UAR_OK;
}

/* An event before the cursor, at it, or the end of the run, which is always told. A
 * reader who has some frames of an event only gets the state before it and all of them. */
static uar_err join_at(struct view_stream *s, const struct uar_event *ev, struct uar_frames *frames)
{
	struct uar_buf *out = frames->out;
	size_t before = out->n;
	bool last = uar_event_ends_run(ev);
	uar_err e = UAR_OK;

	if (s->view.after_action.n)
		return join_after(s, ev, frames);
	s->joined = ev->run_sequence >= s->view.cursor.run_sequence || last;
	if (s->joined)
		e = tell_state(s, out, &frames->closed);
	frames->closed = false;
	if (!e)
		e = encode_event(s, ev, frames);
	if (e || last)
		return e;
	if (s->joined && frames->count > s->view.cursor.k)
		return UAR_OK;
	out->n = before;
	frames->closed = false;
	return s->joined ? tell_state(s, out, &frames->closed) : UAR_OK;
}

/* UAR_ESKIP: what one request may show is complete. */
static uar_err put_events(struct view_stream *s, const struct uar_event *ev, size_t n,
			  struct uar_buf *out)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++) {
		struct uar_frames frames = { .out = out,
					     .incarnation = gate_incarnation(s->base.g),
					     .run_sequence = ev[i].run_sequence };

		e = s->joined ? encode_event(s, &ev[i], &frames) : join_at(s, &ev[i], &frames);
		if (!e && frames.closed && s->view.one_segment)
			return UAR_ESKIP;
	}
	return e;
}

static uar_err send_bytes(struct view_stream *s, uar_str bytes)
{
	struct uar_frame *frame = uar_frame_create(bytes);
	uar_err e = frame ? uar_http_stream_send(s->base.http, frame) : UAR_ENOMEM;

	uar_frame_unref(frame);
	return e;
}

static uar_err send_frames(struct view_stream *s, const struct uar_buf *text)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	uar_err e;

	if (!text->n)
		return UAR_OK;
	if (!s->view.proto)
		return send_bytes(s, uar_buf_str(text));
	e = uar_agui_proto_frames(uar_buf_str(text), &s->base.g->scratch, &b);
	if (!e && b.n)
		e = send_bytes(s, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e;
}

/* --- the sink of the runtime's stream ---------------------------------------------------- */

static void on_writable(void *ctx)
{
	struct view_stream *s = ctx;

	if (s->stream)
		uar_stream_resume(s->stream);
}

static void on_closed(void *ctx)
{
	drop_view(ctx);
}

static uar_err on_opened(void *ctx)
{
	struct view_stream *s = ctx;
	struct uar_http_stream_events events = { on_writable, on_closed, s };
	uar_err e = gate_stream_open(&s->base, s->call, &events);

	if (!e || e == UAR_ESKIP)
		s->call = NULL;
	return e || !s->view.resync ? e : gate_stream_resync(&s->base);
}

/* Room is asked for first: what was encoded cannot be taken back. */
static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct view_stream *s = ctx;
	struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	uar_err e = uar_http_stream_room(s->base.http), sent;

	if (e)
		return e;
	e = put_events(s, ev, n, &out);
	sent = e && e != UAR_ESKIP ? UAR_OK : send_frames(s, &out);
	uar_buf_fini(&out);
	return sent ? sent : e;
}

/* Says so in the dialect: its clients take a stream that just stops for a crash. */
static void on_leave(struct gate_stream *base)
{
	struct view_stream *s = UAR_OWNER(base, struct view_stream, base);
	struct uar_buf out = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_frames frames = { .out = &out };

	if (!s->view.dialect->leave(s->state, &frames) && send_frames(s, &out))
		uar_log(base->g->o.log, UAR_LOG_DEBUG, "stream.full",
			{ "detail", UAR_STR("the reader was not told that the stream ends") });
	uar_buf_fini(&out);
}

/* The peer's end (UAR_EEOF) is told by on_closed as well; that one frees. */
static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct view_stream *s = ctx;
	struct call *c = s->call;

	s->stream = NULL;
	if (c) {
		s->call = NULL;
		free_view(s);
		gate_problem(c, why, error);
		return;
	}
	if (why == UAR_EEOF)
		return;
	if (why && why != UAR_ESKIP) {
		/* Not noted as a shortage of memory: a view has a limit of its own. */
		uar_log(s->base.g->o.log, UAR_LOG_WARN, "stream.left",
			{ "detail", uar_str_c(uar_err_text(why)) });
		on_leave(&s->base);
	}
	gate_stream_finish(&s->base, UAR_OK, error);
	drop_view(&s->base);
}

/* --- opening ------------------------------------------------------------------------------- */

static void on_gone(struct call *c)
{
	free_view(c->op);
	gate_call_free(c);
}

static uar_err copy_options(struct view_stream *s, const struct gate_view *view)
{
	struct uar_dialect_options *o = &s->view.options;
	uar_str *texts[] = { &o->history,	    &o->state,	 &o->model,
			     &o->previous_id,	    &o->catalog, &o->run_name,
			     &s->view.after_action, &o->rpc_id };

	s->view = *view;
	s->joined = !view->cursor.run_sequence && !view->after_action.n;
	if (!uar_arena_strs(&s->arena, texts, ARRAY_LEN(texts)))
		return UAR_ENOMEM;
	s->state = uar_zalloc(view->dialect->state_size);
	return s->state ? view->dialect->begin(s->state, &s->view.options) : UAR_ENOMEM;
}

static uar_err open_view(struct call *c, uar_str run_id, const struct gate_view *view)
{
	struct uar_stream_options o = { .owner = c->owner, .run_id = run_id };
	struct view_stream *s = uar_zalloc(sizeof *s);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	uar_list_init(&s->base.node);
	s->base.g = c->g;
	s->base.drop = drop_view;
	s->base.leave = on_leave;
	if (view->resync)
		gate_cursor_text(c, s->base.requested, sizeof s->base.requested);
	s->base.type = view->proto ? UAR_AGUI_PROTO : NULL;
	s->call = c;
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, s };
	e = copy_options(s, view);
	if (!e)
		e = uar_stream_open(c->g->o.reader, &o, &s->stream);
	if (e) {
		free_view(s);
		return e;
	}
	c->op = s;
	c->gone = on_gone;
	return UAR_OK;
}

void gate_stream_view(struct call *c, uar_str run_id, const struct gate_view *view)
{
	uar_err e = c->g->draining ? UAR_EDRAINING : open_view(c, run_id, view);

	if (e)
		gate_problem(c, e, NULL);
}
