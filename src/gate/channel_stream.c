/* channel_stream.c - a session for the peer of a channel: a snapshot, then events as they come.
 *
 * When the stream ends the channel is disconnected. Questions for permissions that the stream
 * tells to a peer which takes them, and their decisions, are recorded as facts about the
 * channel: the stream itself decides nothing. */
#include "engine/control.h"
#include "gate/cursor.h"
#include "gate/gate_int.h"
#include "read/limits.h"
#include "read/sessions.h"
#include "read/stream.h"

struct channel_stream {
	struct gate_stream base;
	struct call *call;	   /* until the answer has begun */
	struct uar_stream *stream; /* NULL: not open */
	struct uar_owner owner;
	struct uar_arena arena; /* of what follows */
	uar_str channel_id, session_id, peer;
	struct uar_control in;
	struct uar_control_op attach;
	struct uar_session_op snapshot;
	int64_t epoch;
	uint64_t after, last_sent;
	bool permissions; /* the peer takes questions */
};

static void free_stream(struct channel_stream *s)
{
	uar_stream_close(s->stream);
	uar_buf_fini(&s->snapshot.json);
	uar_arena_fini(&s->arena);
	uar_free(s);
}

/* --- facts ------------------------------------------------------------------------------------ */

/* A fact about the channel on its way; nobody waits for it. */
struct fact {
	struct uar_control in;
	struct uar_control_op op;
	struct uar_arena arena;
	struct uar_gate *g;
};

static void free_fact(struct fact *f)
{
	uar_arena_fini(&f->arena);
	uar_free(f);
}

static void recorded(struct uar_control_op *op)
{
	struct fact *f = op->ctx;

	if (op->err && op->err != UAR_EDRAINING)
		uar_log(f->g->o.log, UAR_LOG_WARN, "channel.not_recorded",
			{ "detail", uar_str_c(uar_error_text(&op->error)) });
	free_fact(f);
}

static struct fact *make_fact(struct channel_stream *s, enum uar_control_kind kind)
{
	struct fact *f = uar_zalloc(sizeof *f);

	if (!f)
		return NULL;
	uar_arena_init(&f->arena, 0);
	f->g = s->base.g;
	f->in.kind = kind;
	f->op = (struct uar_control_op){ .in = &f->in, .done = recorded, .ctx = f };
	if (uar_owner_copy(&f->arena, &s->owner, &f->in.owner))
		return f;
	free_fact(f);
	return NULL;
}

static void record(struct fact *f, uar_str *const *texts, size_t n)
{
	if (!uar_arena_strs(&f->arena, texts, n) || uar_runtime_control(f->g->o.runtime, &f->op))
		free_fact(f);
}

static void tell_dropped(struct channel_stream *s)
{
	struct fact *f = make_fact(s, UAR_CTL_DROP_CHANNEL);
	struct uar_ctl_drop_channel *in;

	if (!f)
		return;
	in = &f->in.drop_channel;
	*in = (struct uar_ctl_drop_channel){ .channel_id = s->channel_id,
					     .epoch = s->epoch,
					     .last_sent = (int64_t)s->last_sent,
					     .reason_code = s->base.g->draining
								    ? UAR_STR("shutdown")
								    : UAR_STR("peer_gone") };
	record(f, (uar_str *const[]){ &in->channel_id, &in->reason_code }, 2);
}

/* --- permissions ------------------------------------------------------------------------------ */

static uar_str text_at(const struct uar_json *p, const char *pointer)
{
	return uar_json_str(uar_json_pointer(p, uar_str_c(pointer)), UAR_STR(""));
}

static bool is_permission(const struct uar_json *p)
{
	const struct uar_json *list = uar_json_get(p, UAR_STR("decisions"));

	for (const struct uar_json *d = uar_json_first(list); d; d = d->next)
		if (uar_str_is(uar_json_str(d, UAR_STR("")), "allow"))
			return true;
	return false;
}

static void forward(struct channel_stream *s, const struct uar_event *ev, const struct uar_json *p)
{
	struct fact *f = is_permission(p) ? make_fact(s, UAR_CTL_FORWARD_PERMISSION) : NULL;
	struct uar_ctl_forward_permission *in;
	uar_str tool = text_at(p, "/scope/tool_id");

	if (!f)
		return;
	in = &f->in.forward_permission;
	*in = (struct uar_ctl_forward_permission){
		.channel_id = s->channel_id,
		.action_id = ev->ids[UAR_ID_ACTION],
		.thread_id = ev->ids[UAR_ID_THREAD],
		.turn_id = ev->ids[UAR_ID_TURN],
		.requesting_peer = uar_str_c(uar_reader_runtime_id(s->base.g->o.reader)),
		.target_kind = tool.n ? UAR_STR("tool") : UAR_STR("action"),
		.target = tool.n ? tool : ev->ids[UAR_ID_ACTION],
		.timeout_at = text_at(p, "/timeout_at"),
	};
	record(f,
	       (uar_str *const[]){ &in->channel_id, &in->action_id, &in->thread_id, &in->turn_id,
				   &in->requesting_peer, &in->target_kind, &in->target,
				   &in->timeout_at },
	       8);
}

static uar_str outcome_of(uar_str result)
{
	return uar_str_is(result, "allow")     ? UAR_STR("allowed")
	       : uar_str_is(result, "timeout") ? UAR_STR("timed_out")
	       : uar_str_is(result, "cancel")  ? UAR_STR("cancelled")
					       : UAR_STR("denied");
}

/* The side of the channel that the event says has decided. */
static void give_back(struct channel_stream *s, const struct uar_event *ev,
		      const struct uar_json *p)
{
	struct fact *f = make_fact(s, UAR_CTL_RETURN_PERMISSION);
	bool remote = uar_str_is(text_at(p, "/resolved_by/type"), "channel") &&
		      uar_str_eq(text_at(p, "/resolved_by/id"), s->channel_id);
	struct uar_buf by = uar_buf_make(1024);
	struct uar_ctl_return_permission *in;
	uar_str outcome = outcome_of(text_at(p, "/result"));

	if (!f)
		return;
	uar_json_write(&by, uar_json_get(p, UAR_STR("resolved_by")));
	in = &f->in.return_permission;
	*in = (struct uar_ctl_return_permission){
		.channel_id = s->channel_id,
		.action_id = ev->ids[UAR_ID_ACTION],
		.thread_id = ev->ids[UAR_ID_THREAD],
		.turn_id = ev->ids[UAR_ID_TURN],
		.outcome = outcome,
		.decided_side = remote ? UAR_STR("remote") : UAR_STR("local"),
		.decided_by = uar_buf_str(&by),
		.source =
			uar_str_is(outcome, "timed_out") ? UAR_STR("timeout") : UAR_STR("response"),
		.channel_scoped = false,
	};
	record(f,
	       (uar_str *const[]){ &in->channel_id, &in->action_id, &in->thread_id, &in->turn_id,
				   &in->outcome, &in->decided_side, &in->decided_by, &in->source },
	       8);
	uar_buf_fini(&by);
}

static void note_permission(struct channel_stream *s, const struct uar_event *ev)
{
	const struct uar_json *p = NULL;

	if (!s->permissions ||
	    (ev->cls != UAR_EV_ACTION_REQUIRED && ev->cls != UAR_EV_ACTION_RESOLVED))
		return;
	uar_arena_reset(&s->base.g->scratch);
	if (uar_event_payload(ev, &s->base.g->scratch, &p, NULL))
		return;
	if (ev->cls == UAR_EV_ACTION_REQUIRED)
		forward(s, ev, p);
	else
		give_back(s, ev, p);
}

/* --- frames ----------------------------------------------------------------------------------- */

static void drop_stream(struct gate_stream *base)
{
	struct channel_stream *s = UAR_OWNER(base, struct channel_stream, base);

	tell_dropped(s);
	gate_stream_forget(base);
	free_stream(s);
}

static uar_err send_text(struct channel_stream *s, struct uar_buf *b)
{
	struct uar_frame *frame = b->err ? NULL : uar_frame_create(uar_buf_str(b));
	uar_err e = b->err  ? b->err
		    : frame ? uar_http_stream_send(s->base.http, frame)
			    : UAR_ENOMEM;

	uar_frame_unref(frame);
	return e;
}

static uar_err send_snapshot(struct channel_stream *s)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SESSION_BYTES);
	uar_err e;

	uar_buf_add_str(&b, UAR_STR("event: snapshot\ndata: "));
	uar_buf_add_str(&b, uar_buf_str(&s->snapshot.json));
	uar_buf_add_str(&b, UAR_STR("\n\n"));
	e = send_text(s, &b);
	uar_buf_fini(&b);
	uar_buf_fini(&s->snapshot.json);
	return e;
}

static void put_event(struct channel_stream *s, struct uar_buf *b, const struct uar_event *ev)
{
	struct uar_jw w;

	uar_buf_add_str(b, UAR_STR("event: event\nid: "));
	gate_cursor_put(b, gate_incarnation(s->base.g), ev->sequence);
	uar_buf_add_str(b, UAR_STR("\ndata: "));
	w = uar_jw_begin(b);
	uar_event_write(&w, NULL, ev, 0);
	if (uar_jw_end(&w) && !b->err)
		b->err = UAR_EINTERNAL;
	uar_buf_add_str(b, UAR_STR("\n\n"));
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct channel_stream *s = ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SESSION_BYTES);
	uar_err e;

	for (size_t i = 0; i < n; i++)
		put_event(s, &b, &ev[i]);
	e = send_text(s, &b);
	uar_buf_fini(&b);
	if (e)
		return e;
	s->base.taken = true;
	s->last_sent = ev[n - 1].sequence;
	for (size_t i = 0; i < n; i++)
		note_permission(s, &ev[i]);
	return UAR_OK;
}

static void on_writable(void *ctx)
{
	struct channel_stream *s = ctx;

	if (s->stream)
		uar_stream_resume(s->stream);
}

static void on_closed(void *ctx)
{
	struct channel_stream *s = ctx;

	drop_stream(&s->base);
}

static uar_err on_opened(void *ctx)
{
	struct channel_stream *s = ctx;
	struct uar_http_stream_events events = { on_writable, on_closed, s };
	uar_err e = gate_stream_open(&s->base, s->call, &events);

	if (!e || e == UAR_ESKIP)
		s->call = NULL;
	return e ? e : send_snapshot(s);
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct channel_stream *s = ctx;
	struct call *c = s->call;

	s->stream = NULL;
	if (c) {
		free_stream(s);
		gate_problem(c, why, error);
		return;
	}
	if (why == UAR_EEOF)
		return;
	gate_stream_finish(&s->base, why, error);
	drop_stream(&s->base);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void drop_call(struct call *c)
{
	free_stream(c->op);
}

static void refuse(struct channel_stream *s, uar_err e, const struct uar_error *error)
{
	struct call *c = s->call;
	struct uar_error copy = error ? *error : (struct uar_error){ 0 };

	c->op = NULL;
	c->drop = NULL;
	free_stream(s);
	gate_problem(c, e, &copy); /* of one who left: frees the call */
}

static void on_gone(struct call *c)
{
	free_stream(c->op);
	gate_call_free(c);
}

static void snapshot_read(struct uar_session_op *op)
{
	struct channel_stream *s = op->ctx;
	struct uar_stream_options o = { .owner = s->owner,
					.session_id = s->session_id,
					.after = s->after,
					.sink = { on_opened, on_events, on_end, s } };
	uar_err e = op->err;

	if (!e && s->call->r && s->base.g->draining)
		e = UAR_EDRAINING;
	if (!e && s->call->r)
		e = uar_stream_open(s->base.g->o.reader, &o, &s->stream);
	if (e || !s->call->r) {
		refuse(s, e, &op->error);
		return;
	}
	s->last_sent = s->after;
	s->call->drop = NULL;
	s->call->gone = on_gone;
}

static uar_err keep_channel(struct channel_stream *s, uar_str result)
{
	const struct uar_json *j = NULL;
	uar_err e = uar_json_parse_copy(result, NULL, &s->arena, &j, NULL);

	if (e)
		return e;
	s->epoch = uar_json_int(uar_json_get(j, UAR_STR("epoch")), 0);
	s->after = (uint64_t)uar_json_int(uar_json_get(j, UAR_STR("stream_from")), 0);
	s->session_id = text_at(j, "/channel/session_id");
	for (const struct uar_json *w =
		     uar_json_first(uar_json_pointer(j, UAR_STR("/channel/capabilities")));
	     w; w = w->next)
		s->permissions |= uar_str_is(uar_json_str(w, UAR_STR("")), "permissions");
	return UAR_OK;
}

static void attached(struct uar_control_op *op)
{
	struct channel_stream *s = op->ctx;
	uar_err e = op->err;

	if (!e && s->call->r)
		e = keep_channel(s, op->result);
	if (!e && s->call->r) {
		s->snapshot = (struct uar_session_op){ .owner = s->owner,
						       .session_id = s->session_id,
						       .put_cursor = gate_cursor_put,
						       .done = snapshot_read,
						       .ctx = s };
		e = uar_read_session(s->base.g->o.reader, &s->snapshot);
	}
	if (e || !s->call->r)
		refuse(s, e, &op->error);
}

void gate_stream_channel(struct call *c, uar_str channel_id)
{
	struct channel_stream *s = uar_zalloc(sizeof *s);
	uar_err e = s ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		uar_list_init(&s->base.node);
		uar_arena_init(&s->arena, 0);
		s->base.g = c->g;
		s->base.drop = drop_stream;
		s->call = c;
		s->channel_id = uar_arena_str(&s->arena, channel_id);
		e = s->channel_id.p && uar_owner_copy(&s->arena, &c->owner, &s->owner) ? UAR_OK
										       : UAR_ENOMEM;
		s->in = (struct uar_control){ .kind = UAR_CTL_ATTACH_CHANNEL, .owner = s->owner };
		s->in.attach_channel.channel_id = s->channel_id;
		s->attach = (struct uar_control_op){ .in = &s->in, .done = attached, .ctx = s };
		if (!e)
			e = uar_runtime_control(c->g->o.runtime, &s->attach);
		if (e)
			free_stream(s);
		else
			c->op = s;
	}
	if (e)
		gate_problem(c, e, NULL);
	else
		c->drop = drop_call;
}

void gate_channel_events(struct call *c)
{
	gate_stream_channel(c, c->params[0]);
}

/* --- decisions of the peer -------------------------------------------------------------------- */

struct deciding {
	struct uar_control in;
	struct uar_control_op attach;
	struct uar_run_answer_op answer;
};

static void decided(struct uar_run_answer_op *op)
{
	struct call *c = op->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SESSION_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
	} else {
		uar_jw_obj(&w, NULL);
		uar_jw_bool(&w, "ok", true);
		uar_jw_raw(&w, "result", op->result.n ? op->result : UAR_STR("{}"));
		uar_jw_close(&w);
		b.err = uar_jw_end(&w);
		gate_answer(c, 200, &b);
	}
	uar_buf_fini(&b);
}

static void may_decide(struct uar_control_op *op)
{
	struct call *c = op->ctx;
	struct deciding *d = UAR_OWNER(op, struct deciding, attach);
	struct uar_error error = op->error;
	uar_err e = op->err;

	if (!e && c->r) {
		e = gate_give_answer(c, &d->answer);
		error = d->answer.error;
	}
	if (e || !c->r)
		gate_problem(c, e, &error);
}

/* The channel has to be connected; the action is answered as through any other door. */
void gate_channel_permission(struct call *c)
{
	struct deciding *d = uar_arena_alloc(&c->arena, sizeof *d);
	struct uar_error error = { 0 };
	uar_err e = d ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		d->answer = (struct uar_run_answer_op){
			.owner = c->owner,
			.action_id = c->params[1],
			.decision = uar_json_text(c->body, "decision"),
			.reason = uar_json_text(c->body, "reason"),
			.channel_id = c->params[0],
			.done = decided,
			.ctx = c,
		};
		if (!d->answer.decision.n) {
			uar_error_where(&error, "/decision");
			e = uar_error_set(&error, UAR_EINVALID, "decision is required");
		}
	}
	if (!e) {
		d->in = (struct uar_control){ .kind = UAR_CTL_ATTACH_CHANNEL, .owner = c->owner };
		d->in.attach_channel.channel_id = c->params[0];
		d->attach = (struct uar_control_op){ .in = &d->in, .done = may_decide, .ctx = c };
		c->op = d;
		e = uar_runtime_control(c->g->o.runtime, &d->attach);
	}
	if (e)
		gate_problem(c, e, &error);
}
