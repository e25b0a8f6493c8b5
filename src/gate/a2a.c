/* a2a.c - messages between agents: in, on, and out to whoever reads an inbox.
 *
 * A message is answered once it is durable. The stream of an agent is its inbox from
 * wherever the reader stands; one whose agent has no message yet waits for the first. */
#include "proto/a2a.h"

#include "gate/cursor.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "mail/limits.h"
#include "read/stream.h"

/* --- in --------------------------------------------------------------------------------- */

struct receiving {
	struct uar_mail mail;
	struct uar_a2a_message m;
	char fingerprint[UAR_SHA256_TEXT + 1];
};

static void put_answer(struct uar_jw *w, const struct receiving *r)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "message_id", r->m.message_id);
	uar_jw_str(w, "to_agent", r->m.to_agent);
	uar_jw_str(w, "conversation_id", r->m.conversation_id);
	uar_jw_cstr(w, "status", r->m.peer.n ? "queued" : "stored");
	uar_jw_u64(w, "seq", r->mail.sequence);
	if (r->mail.effect != UAR_MESSAGE_EFFECT_NONE) {
		uar_jw_obj(w, "cancel");
		uar_jw_str(w, "run_id", r->m.cancel_run);
		uar_jw_cstr(w, "result", uar_message_effect_name(r->mail.effect));
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void received(struct uar_mail *mail)
{
	static const struct uar_http_header again = { UAR_STR("Idempotent-Replayed"),
						      UAR_STR("true") };
	const struct receiving *r = UAR_OWNER(mail, struct receiving, mail);
	struct call *c = mail->ctx;
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	if (mail->err) {
		gate_problem(c, mail->err, &mail->error);
		return;
	}
	put_answer(&w, r);
	b.err = uar_jw_end(&w);
	gate_answer_headers(c, 202, &b, &again, mail->existed ? 1 : 0);
	uar_buf_fini(&b);
}

/* What b holds, for as long as the call lives; frees b. */
static uar_err keep(struct call *c, struct uar_buf *b, uar_str *out)
{
	uar_err e = b->err;

	if (!e) {
		*out = uar_arena_str(&c->arena, uar_buf_str(b));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(b);
	return e;
}

static uar_err write_content(struct call *c, struct receiving *r, const struct uar_a2a_message *m,
			     struct uar_error *error)
{
	struct uar_json_limits limits = { .depth = UAR_LIMIT_A2A_DEPTH };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_A2A_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *ignored;
	uar_err e;

	uar_a2a_write(&w, NULL, m);
	b.err = uar_jw_end(&w);
	e = keep(c, &b, &r->mail.content);
	if (e == UAR_ETOOBIG)
		return uar_error_set(error, e, "a message has at most %d bytes",
				     UAR_LIMIT_A2A_MESSAGE);
	if (!e)
		e = uar_json_parse(r->mail.content, &limits, &c->arena, &ignored, NULL);
	if (e == UAR_EDEPTH)
		uar_error_set(error, e, "a message may have %d levels", UAR_LIMIT_A2A_DEPTH);
	return e;
}

/* The message as the peer gets it: for an agent there, from one that it can answer. */
static uar_err address(struct call *c, struct receiving *r, struct uar_a2a_message *out,
		       struct uar_error *error)
{
	const struct uar_a2a_message *m = &r->m;
	uar_str own = uar_mailer_own_name(c->g->o.mailer);

	*out = *m;
	if (!m->peer.n)
		return UAR_OK;
	out->to_agent = m->agent;
	if (!own.n || uar_str_find(m->from_agent, '@') < m->from_agent.n)
		return UAR_OK;
	out->from_agent =
		uar_arena_printf(&c->arena, "%.*s@%.*s", UAR_FMT(m->from_agent), UAR_FMT(own));
	if (!out->from_agent.p)
		return UAR_ENOMEM;
	if (uar_str_is_id(out->from_agent))
		return UAR_OK;
	uar_error_where(error, "/from_agent");
	return uar_error_set(error, UAR_EINVALID, "too long with \"@%.*s\" behind it",
			     UAR_FMT(own));
}

static uar_err write_ids(struct call *c, struct receiving *r)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "from_agent", r->m.from_agent);
	uar_jw_str(&w, "to_agent", r->m.to_agent);
	uar_jw_str(&w, "conversation_id", r->m.conversation_id);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	return keep(c, &b, &r->mail.native_ids);
}

static uar_err write_preview(struct call *c, struct receiving *r)
{
	struct uar_buf b = uar_buf_make(4096);

	b.err = uar_a2a_preview(&r->m, &b);
	return keep(c, &b, &r->mail.preview);
}

/* The log and the run's record say who wanted it, and by which message. */
static uar_err write_reason(struct call *c, struct receiving *r)
{
	const struct uar_a2a_message *m = &r->m;

	if (!m->cancel_run.n || m->peer.n) /* a peer looks at it itself */
		return UAR_OK;
	r->mail.run_id = m->cancel_run;
	r->mail.reason = uar_arena_printf(
		&c->arena, "message %.*s of agent %.*s%s%.*s", UAR_FMT(m->message_id),
		UAR_FMT(m->from_agent), m->cancel_reason.n ? ": " : "", UAR_FMT(m->cancel_reason));
	return r->mail.reason.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err decode(struct call *c, struct receiving *r, struct uar_error *error)
{
	struct uar_a2a_message sent;
	uar_err e = uar_a2a_read(c->body, &r->m, error);

	if (!e)
		e = address(c, r, &sent, error);
	if (!e)
		e = write_content(c, r, &sent, error);
	if (!e)
		e = write_ids(c, r);
	if (!e)
		e = write_preview(c, r);
	if (!e)
		e = write_reason(c, r);
	if (!e)
		e = uar_a2a_fingerprint(&r->m, r->fingerprint);
	return e;
}

static uar_err deliver(struct call *c, struct receiving *r, struct uar_error *error)
{
	uar_err e;

	r->mail.owner = c->owner;
	r->mail.agent_id = r->m.agent;
	r->mail.peer = r->m.peer;
	r->mail.message_id = r->m.message_id;
	r->mail.fingerprint = uar_str_c(r->fingerprint);
	r->mail.done = received;
	r->mail.ctx = c;
	c->op = r;
	e = uar_mailer_deliver(c->g->o.mailer, &r->mail);
	if (e)
		*error = r->mail.error;
	if (e == UAR_ENOTFOUND) {
		uar_error_where(error, "/to_agent");
		uar_error_set(error, e, "no peer is called \"%.*s\"", UAR_FMT(r->m.peer));
	}
	return e;
}

static void take(struct call *c, bool leaves)
{
	struct receiving *r = uar_arena_alloc(&c->arena, sizeof *r);
	struct uar_error error = { 0 };
	uar_err e = UAR_ENOMEM;

	if (r) {
		*r = (struct receiving){ .mail = { .ctx = c } };
		e = decode(c, r, &error);
	}
	if (!e && r->m.peer.n && !leaves) {
		uar_error_where(&error, "/to_agent");
		e = uar_error_set(&error, UAR_EINVALID,
				  "an inbox is for agents of this runtime, not of \"%.*s\"",
				  UAR_FMT(r->m.peer));
	}
	if (!e && !r->m.peer.n)
		e = gate_check_protocol(c, r->m.agent, UAR_PROTOCOL_A2A, &error);
	if (!e)
		e = deliver(c, r, &error);
	if (e)
		gate_problem(c, e, &error);
}

void gate_a2a_inbox(struct call *c)
{
	take(c, false);
}

void gate_a2a_send(struct call *c)
{
	take(c, true);
}

/* --- out ---------------------------------------------------------------------------------- */

struct letters {
	struct gate_stream base;
	struct call *call;	   /* until the answer has begun */
	struct uar_stream *stream; /* NULL: ended */
	uint64_t passed;	   /* sequence of the last event that is done with */
	struct fetch *fetch;	   /* a long message on its way; NULL: none */
	struct uar_frame *frame;   /* it has come, and waits for room */
	uint64_t frame_of;	   /* its sequence */
	bool resync;		   /* the reader's cursor is of another incarnation */
};

/* A message that its event does not hold. Outlives a reader who leaves. */
struct fetch {
	struct uar_list node; /* in g->fetches */
	struct uar_blob_read get;
	struct letters *l; /* NULL: nobody waits */
	uint64_t sequence;
};

static void drop_letters(struct gate_stream *base)
{
	struct letters *l = UAR_OWNER(base, struct letters, base);

	gate_stream_forget(base);
	uar_stream_close(l->stream);
	if (l->fetch)
		l->fetch->l = NULL;
	uar_frame_unref(l->frame);
	uar_free(l);
}

static struct uar_frame *frame_of(const struct uar_gate *g, uint64_t sequence, uar_str message)
{
	struct uar_buf b = uar_buf_make(message.n + 128);
	struct uar_frame *frame = NULL;

	uar_buf_add_str(&b, UAR_STR("event: message\nid: "));
	gate_cursor_put(&b, gate_incarnation(g), sequence);
	uar_buf_add_str(&b, UAR_STR("\ndata: "));
	uar_buf_add_str(&b, message);
	uar_buf_add_str(&b, UAR_STR("\n\n"));
	if (!b.err)
		frame = uar_frame_create(uar_buf_str(&b));
	uar_buf_fini(&b);
	return frame;
}

static void free_fetch(struct fetch *f)
{
	uar_list_remove(&f->node);
	uar_free(f);
}

/* The stream reads again from where it was held up, and finds the frame here. */
static void fetched(struct uar_blob_read *get)
{
	struct fetch *f = UAR_OWNER(get, struct fetch, get);
	struct letters *l = f->l;
	uar_err e = get->err;

	if (l) {
		l->fetch = NULL;
		l->frame = e ? NULL : frame_of(l->base.g, f->sequence, get->bytes);
		l->frame_of = f->sequence;
	}
	uar_blob_read_fini(get);
	free_fetch(f);
	if (l && !l->frame) {
		uar_log(l->base.g->o.log, UAR_LOG_ERROR, "a2a.unreadable",
			{ "reason", uar_str_c(uar_err_text(e ? e : UAR_ENOMEM)) });
		uar_http_stream_cut(l->base.http);
		drop_letters(&l->base);
	} else if (l && l->stream) {
		uar_stream_resume(l->stream);
	}
}

static uar_err fetch(struct letters *l, uar_str sha256, uint64_t sequence)
{
	struct uar_gate *g = l->base.g;
	struct fetch *f = uar_zalloc(sizeof *f);
	uar_err e;

	if (!f)
		return UAR_ENOMEM;
	f->l = l;
	f->sequence = sequence;
	f->get.limit = UAR_LIMIT_A2A_MESSAGE;
	f->get.done = fetched;
	memcpy(f->get.sha256, sha256.p, sizeof f->get.sha256 - 1);
	uar_list_add_last(&g->fetches, &f->node);
	e = uar_reader_blob(g->o.reader, &f->get);
	if (e) {
		free_fetch(f);
		return e;
	}
	l->fetch = f;
	return UAR_EBUSY;
}

/* NULL with UAR_OK: nothing of it is shown. UAR_EBUSY: it is being fetched. */
static uar_err take_frame(struct letters *l, const struct uar_event *ev, struct uar_frame **out)
{
	struct uar_gate *g = l->base.g;
	struct uar_a2a_stored s;
	uar_err e;

	*out = NULL;
	if (l->fetch)
		return UAR_EBUSY;
	if (l->frame && l->frame_of == ev->sequence) {
		*out = uar_frame_ref(l->frame);
		return UAR_OK;
	}
	uar_arena_reset(&g->scratch);
	e = uar_a2a_stored_read(ev, &g->scratch, &s);
	if (e)
		return e == UAR_ESKIP ? UAR_OK : e;
	if (s.blob.n)
		return fetch(l, s.blob, ev->sequence);
	*out = frame_of(g, ev->sequence, s.message);
	return *out ? UAR_OK : UAR_ENOMEM;
}

static uar_err send_one(struct letters *l, const struct uar_event *ev)
{
	struct uar_frame *frame;
	uar_err e = take_frame(l, ev, &frame);

	if (!e && frame)
		e = uar_http_stream_send(l->base.http, frame);
	uar_frame_unref(frame);
	if (e)
		return e;
	l->passed = ev->sequence;
	uar_frame_unref(l->frame);
	l->frame = NULL;
	return UAR_OK;
}

/* The runtime gives all again when not all were taken: those before are passed. */
static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct letters *l = ctx;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++)
		if (ev[i].sequence > l->passed)
			e = send_one(l, &ev[i]);
	return e;
}

static void on_writable(void *ctx)
{
	struct letters *l = ctx;

	if (l->stream)
		uar_stream_resume(l->stream);
}

static void on_closed(void *ctx)
{
	drop_letters(ctx);
}

static uar_err on_opened(void *ctx)
{
	struct letters *l = ctx;
	struct uar_http_stream_events events = { on_writable, on_closed, l };
	uar_err e = gate_stream_open(&l->base, l->call, &events);

	if (!e || e == UAR_ESKIP)
		l->call = NULL;
	return e || !l->resync ? e : gate_stream_resync(&l->base);
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct letters *l = ctx;
	struct call *c = l->call;

	l->stream = NULL;
	if (!c && why == UAR_EEOF)
		return; /* on_closed frees */
	if (!c)
		gate_stream_finish(&l->base, why, error);
	drop_letters(&l->base);
	if (c)
		gate_problem(c, why, error);
}

static void on_gone(struct call *c)
{
	struct letters *l = c->op;

	drop_letters(&l->base);
	gate_call_free(c);
}

static uar_err open_letters(struct call *c, struct uar_error *error)
{
	struct uar_stream_options o = { .owner = c->owner, .may_be_new = true };
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	struct letters *l;
	uar_err e = gate_cursor(c, &o.after, error);
	bool resync = e == UAR_ERESYNC;

	e = resync ? UAR_OK : e;
	if (!e && uar_inbox_session(c->params[0], session_id))
		e = uar_error_set(error, UAR_ENOTFOUND, "no agent has that name");
	if (!e && o.after == UAR_INBOX_BEGIN)
		e = UAR_ECURSOR;
	if (e)
		return e;
	l = uar_zalloc(sizeof *l);
	if (!l)
		return UAR_ENOMEM;
	uar_list_init(&l->base.node);
	l->base.g = c->g;
	l->base.drop = drop_letters;
	l->call = c;
	l->resync = resync;
	gate_cursor_text(c, l->base.requested, sizeof l->base.requested);
	o.session_id = uar_str_c(session_id);
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, l };
	e = uar_stream_open(c->g->o.reader, &o, &l->stream);
	if (e) {
		uar_free(l);
		return e;
	}
	c->op = l;
	c->gone = on_gone;
	return UAR_OK;
}

void gate_a2a_stream(struct call *c)
{
	struct uar_error error = { 0 };
	uar_err e = gate_check_protocol(c, c->params[0], UAR_PROTOCOL_A2A, &error);

	if (!e)
		e = c->g->draining ? UAR_EDRAINING : open_letters(c, &error);
	if (e)
		gate_problem(c, e, &error);
}

void gate_a2a_fini(struct uar_gate *g)
{
	UAR_LIST_EACH (it, &g->fetches)
		free_fetch(UAR_OWNER(it, struct fetch, node));
}
