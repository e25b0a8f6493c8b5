/* mcp_reader.c - what the server says in a session, as a stream that can be resumed.
 *
 * A reader is a cursor over the records of the session. It shows messages, of one stream or
 * of all, and ends where its stream is settled or the session is closed. */
#include "gate/cursor.h"
#include "gate/mcp_int.h"
#include "mail/limits.h"

struct reader {
	struct gate_stream base;
	struct call *call; /* until the answer has begun */
	struct uar_stream *stream;
	struct mcp_session *s;
	char only[MCP_STREAM]; /* empty: all */
	uint64_t passed;
	bool primed, over;
	struct uar_frame *frame; /* of a long message, once it was fetched */
	uint64_t frame_of;
	struct fetch *fetch;
};

/* A message that its event does not hold. Outlives a reader who leaves. */
struct fetch {
	struct uar_list node; /* in gate_mcp.fetches */
	struct uar_blob_read get;
	struct reader *r; /* NULL: it left */
	struct mcp_stored stored;
	char name[MCP_STREAM];
	uint64_t sequence;
};

static void free_reader(struct reader *r)
{
	uar_stream_close(r->stream);
	if (r->fetch)
		r->fetch->r = NULL;
	uar_frame_unref(r->frame);
	mcp_session_release(r->s);
	uar_free(r);
}

static void drop_reader(struct gate_stream *base)
{
	gate_stream_forget(base);
	free_reader(UAR_OWNER(base, struct reader, base));
}

/* --- frames --------------------------------------------------------------------------------- */

static struct uar_frame *make_frame(const struct uar_gate *g, uar_str stream, uint64_t sequence,
				    uar_str message)
{
	struct uar_buf b = uar_buf_make(message.n + 256);
	struct uar_frame *frame;

	uar_buf_printf(&b, "%sid: %.*s~", message.n ? "event: message\n" : "", UAR_FMT(stream));
	gate_cursor_put(&b, gate_incarnation(g), sequence);
	uar_buf_add_str(&b, UAR_STR("\ndata: "));
	uar_buf_add_str(&b, message);
	uar_buf_add_str(&b, UAR_STR("\n\n"));
	frame = b.err ? NULL : uar_frame_create(uar_buf_str(&b));
	uar_buf_fini(&b);
	return frame;
}

uar_err mcp_cursor_parse(const struct uar_gate *g, uar_str text, uar_str *stream, uint64_t *after)
{
	uar_str rest, name;

	if (uar_str_find(text, '~') == text.n) { /* of who reads all of them */
		*stream = UAR_STR_NONE;
		return gate_cursor_parse(text, gate_incarnation(g), after);
	}
	name = uar_str_cut(text, '~', &rest);
	if (!name.n || name.n >= MCP_STREAM || !uar_str_is_visible(name))
		return UAR_ECURSOR;
	*stream = name;
	return gate_cursor_parse(rest, gate_incarnation(g), after);
}

static void free_fetch(struct fetch *f)
{
	uar_list_remove(&f->node);
	uar_free(f);
}

static struct uar_frame *frame_of_blob(struct fetch *f)
{
	struct uar_frame *frame = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!mcp_stored_parse(f->get.bytes, &arena, &f->stored))
		frame = make_frame(f->r->base.g, uar_str_c(f->name), f->sequence,
				   f->stored.message);
	uar_arena_fini(&arena);
	return frame;
}

/* The stream reads again from where it was held up, and finds the frame here. */
static void fetched(struct uar_blob_read *get)
{
	struct fetch *f = UAR_OWNER(get, struct fetch, get);
	struct reader *r = f->r;

	if (r) {
		r->fetch = NULL;
		r->frame = get->err ? NULL : frame_of_blob(f);
		r->frame_of = f->sequence;
	}
	uar_blob_read_fini(get);
	free_fetch(f);
	if (r && !r->frame) {
		uar_http_stream_cut(r->base.http);
		drop_reader(&r->base);
	} else if (r && r->stream) {
		uar_stream_resume(r->stream);
	}
}

static uar_err fetch(struct reader *r, const struct mcp_stored *stored, uint64_t sequence)
{
	struct fetch *f = uar_zalloc(sizeof *f);
	uar_err e;

	if (!f)
		return UAR_ENOMEM;
	f->r = r;
	f->sequence = sequence;
	snprintf(f->name, sizeof f->name, "%.*s", UAR_FMT(stored->stream));
	f->get.limit = UAR_LIMIT_A2A_MESSAGE;
	f->get.done = fetched;
	memcpy(f->get.sha256, stored->blob.p, sizeof f->get.sha256 - 1);
	uar_list_add_last(&r->s->m->fetches, &f->node);
	e = uar_reader_blob(r->base.g->o.reader, &f->get);
	if (e) {
		free_fetch(f);
		return e;
	}
	r->fetch = f;
	return UAR_EBUSY;
}

/* --- the sink -------------------------------------------------------------------------------- */

static uar_err send_message(struct reader *r, const struct mcp_stored *stored, uint64_t sequence)
{
	struct uar_frame *frame = NULL;
	uar_err e;

	if (r->fetch)
		return UAR_EBUSY;
	if (r->frame && r->frame_of == sequence)
		frame = uar_frame_ref(r->frame);
	else if (stored->blob.n)
		return fetch(r, stored, sequence);
	else
		frame = make_frame(r->base.g, stored->stream, sequence, stored->message);
	e = frame ? uar_http_stream_send(r->base.http, frame) : UAR_ENOMEM;
	uar_frame_unref(frame);
	return e;
}

static uar_err show(struct reader *r, const struct uar_event *ev)
{
	struct uar_gate *g = r->base.g;
	struct mcp_stored stored;
	uar_err e;

	uar_arena_reset(&g->scratch);
	e = mcp_stored_read(ev, &g->scratch, &stored);
	if (e)
		return e == UAR_ESKIP ? UAR_OK : e;
	if (uar_str_is(stored.kind, "close")) {
		r->over = true;
		return UAR_OK;
	}
	if (r->only[0] && !uar_str_is(stored.stream, r->only))
		return UAR_OK;
	if (uar_str_is(stored.kind, "message"))
		e = send_message(r, &stored, ev->sequence);
	if (!e && r->only[0] && stored.settles)
		r->over = true;
	return e;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct reader *r = ctx;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e && !r->over; i++) {
		if (ev[i].sequence <= r->passed)
			continue;
		e = show(r, &ev[i]);
		if (e)
			break;
		r->passed = ev[i].sequence;
		uar_frame_unref(r->frame);
		r->frame = NULL;
	}
	return !e && r->over ? UAR_ESKIP : e; /* on_end follows */
}

static void on_writable(void *ctx)
{
	struct reader *r = ctx;

	if (r->stream)
		uar_stream_resume(r->stream);
}

static void on_closed(void *ctx)
{
	drop_reader(ctx);
}

static uar_err prime(struct reader *r)
{
	struct uar_frame *frame =
		make_frame(r->base.g, uar_str_c(r->only), r->passed, UAR_STR_NONE);
	uar_err e = frame ? uar_http_stream_send(r->base.http, frame) : UAR_ENOMEM;

	uar_frame_unref(frame);
	return e;
}

static uar_err on_opened(void *ctx)
{
	struct reader *r = ctx;
	struct uar_http_stream_events events = { on_writable, on_closed, r };
	uar_err e = gate_stream_open(&r->base, r->call, &events);

	if (!e || e == UAR_ESKIP)
		r->call = NULL;
	return e || !r->primed ? e : prime(r);
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct reader *r = ctx;
	struct call *c = r->call;

	r->stream = NULL;
	if (!c && why == UAR_EEOF)
		return; /* on_closed frees */
	if (!c)
		gate_stream_finish(&r->base, r->over ? UAR_OK : why, error);
	drop_reader(&r->base);
	if (c)
		gate_problem(c, why, error);
}

/* --- opening --------------------------------------------------------------------------------- */

static void on_gone(struct call *c)
{
	free_reader(c->op);
	gate_call_free(c);
}

void mcp_reader_open(struct call *c, struct mcp_session *s, const struct mcp_reading *from)
{
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_stream_options o = { .owner = c->owner, .after = from->after };
	struct reader *r = c->g->draining ? NULL : uar_zalloc(sizeof *r);
	uar_err e = c->g->draining ? UAR_EDRAINING : r ? UAR_OK : UAR_ENOMEM;

	if (!e)
		e = uar_channel_session(s->id, session_id);
	if (e) {
		uar_free(r);
		gate_problem(c, e, NULL);
		return;
	}
	uar_list_init(&r->base.node);
	r->base.g = c->g;
	r->base.drop = drop_reader;
	r->call = c;
	r->s = s;
	s->users++;
	r->passed = from->after;
	r->primed = from->primed;
	snprintf(r->only, sizeof r->only, "%.*s", UAR_FMT(from->stream));
	o.session_id = uar_str_c(session_id);
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, r };
	c->op = r;
	c->gone = on_gone;
	e = uar_stream_open(c->g->o.reader, &o, &r->stream);
	if (e) {
		c->gone = NULL;
		free_reader(r);
		gate_problem(c, e, NULL);
	}
}

void mcp_readers_fini(struct gate_mcp *m)
{
	UAR_LIST_EACH (it, &m->fetches)
		free_fetch(UAR_OWNER(it, struct fetch, node));
}
