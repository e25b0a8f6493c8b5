/* control_channel.c - channels: remote peers that follow a session, come and go.
 *
 * A channel is a row: whose peer it is, what it has acknowledged, whether it is connected. Its
 * facts are in the log of its session. A channel that is gone has decided nothing: whatever its
 * peer was asked stays open. */
#include "base/sha256.h"
#include "core/control_int.h"

enum { RESUME_US = 30 * 24 * 3600 };

static bool is_connected(const struct uar_row_channel *ch)
{
	return uar_str_is(ch->row.status, "connected");
}

/* NULL: it has to be loaded first, or there is none, which is refused. */
static struct uar_row_channel *find(struct ctl *c, uar_str id)
{
	struct uar_row_channel *ch = ctl_row(c, UAR_ROW_CHANNEL, id);

	if (!ch && !c->waits)
		ctl_refuse(c, UAR_ENOTFOUND, "/channel_id", "there is no such channel");
	return ch;
}

static void put_members(struct uar_jw *w, const struct uar_row_channel *ch)
{
	uar_jw_str(w, "transport", ch->transport);
	uar_jw_str(w, "peer_role", ch->peer_role);
	if (ch->peer_id.n)
		uar_jw_str(w, "peer_id", ch->peer_id);
	if (ch->row.tag.n)
		uar_jw_str(w, "native_protocol", ch->row.tag);
	if (ch->account_ref.n)
		uar_jw_str(w, "account_ref", ch->account_ref);
	uar_jw_raw(w, "capabilities", ch->capabilities.n ? ch->capabilities : UAR_STR("[]"));
}

static uar_str token_ref(struct ctl *c, const struct uar_row_channel *ch)
{
	return uar_arena_printf(c->e.env->arena, "channel-token://%.*s",
				UAR_FMT(uar_str_n(ch->token_sha256.p, 12)));
}

static void tell(struct ctl *c, const struct uar_row_channel *ch)
{
	struct uar_jw *w = ctl_result(c);

	uar_jw_obj(w, "channel");
	uar_jw_str(w, "channel_id", ch->row.id);
	uar_jw_str(w, "session_id", c->e.s->session_id);
	uar_jw_str(w, "status", ch->row.status);
	put_members(w, ch);
	uar_jw_str(w, "resume_token_ref", token_ref(c, ch));
	uar_jw_int(w, "last_ack_sequence", ch->last_ack);
	uar_jw_time(w, "last_seen_at", ch->last_seen_at);
	uar_jw_close(w);
	uar_jw_int(w, "epoch", ch->epoch);
	uar_jw_int(w, "stream_from",
		   ch->stream_from > ch->last_ack ? ch->stream_from : ch->last_ack);
	uar_jw_str(w, "events_url",
		   uar_arena_printf(c->e.env->arena, "/api/channels/%.*s/events",
				    UAR_FMT(ch->row.id)));
}

static void emit_about(struct ctl *c, const struct uar_row_channel *ch, enum uar_event_class cls)
{
	uar_emit_name(&c->e, UAR_ID_CHANNEL, ch->row.id);
	uar_emit(&c->e, cls, EMIT_SESSION);
}

static void seen(struct ctl *c, struct uar_row_channel *ch)
{
	ch->last_seen_at = c->e.env->now_us;
	ch->resume_until = c->e.env->now_us + (int64_t)RESUME_US * 1000000;
}

/* --- connect ---------------------------------------------------------------------------------- */

static void emit_connected(struct ctl *c, const struct uar_row_channel *ch)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	put_members(w, ch);
	uar_jw_bool(w, "resume_supported", true);
	uar_jw_int(w, "last_ack_sequence", ch->last_ack);
	if (ch->agent_card_ref.n) {
		struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
		struct uar_jw r = uar_jw_begin(&b);

		uar_jw_obj(&r, NULL);
		uar_jw_str(&r, "resume_token_ref", token_ref(c, ch));
		uar_jw_str(&r, "agent_card_ref", ch->agent_card_ref);
		uar_jw_close(&r);
		if (uar_jw_end(&r))
			ctl_fail(c, UAR_ENOMEM);
		else
			uar_emit_refs(&c->e, uar_arena_str(c->e.env->arena, uar_buf_str(&b)));
		uar_buf_fini(&b);
	} else {
		uar_emit_refs(&c->e, uar_emit_wrap(&c->e, UAR_STR("{\"resume_token_ref\":\""),
						   token_ref(c, ch), UAR_STR("\"}")));
	}
	emit_about(c, ch, UAR_EV_CHANNEL_CONNECTED);
}

void ctl_connect_channel(struct ctl *c)
{
	const struct uar_ctl_connect_channel *in = &c->in->connect_channel;
	uar_str id = in->channel_id.n ? in->channel_id : uar_emit_id(&c->e);
	/* A new id is another one each time that this is decided, and nobody's yet. */
	struct uar_row_channel *ch = in->channel_id.n ? ctl_row(c, UAR_ROW_CHANNEL, id) : NULL;
	char sha[UAR_SHA256_TEXT + 1];
	uar_str token;
	struct uar_jw *w;

	if (c->waits)
		return;
	if (ch) {
		ctl_refuse(c, UAR_ESTATE, "/channel_id",
			   "the channel is there already: reconnect_channel resumes it");
		return;
	}
	ch = ctl_new_row(c, UAR_ROW_CHANNEL, id);
	token = uar_arena_printf(c->e.env->arena, "%.*s.%.*s", UAR_FMT(uar_emit_id(&c->e)),
				 UAR_FMT(uar_emit_id(&c->e)));
	if (!ch || !token.p) {
		ctl_fail(c, UAR_ENOMEM);
		return;
	}
	uar_sha256_hex(token, sha);
	ch->row.status = UAR_STR("connected");
	ch->row.parent = c->e.s->session_id;
	ch->row.tag = in->native_protocol;
	ch->transport = in->transport;
	ch->peer_role = in->peer_role;
	ch->peer_id = in->peer_id;
	ch->account_ref = in->account_ref;
	ch->agent_card_ref = in->agent_card_ref;
	ch->capabilities = in->capabilities;
	ch->token_sha256 = uar_arena_str(c->e.env->arena, uar_str_c(sha));
	ch->last_ack = ch->stream_from = (int64_t)c->e.s->sequence;
	ch->epoch = 1;
	seen(c, ch);
	emit_connected(c, ch);
	tell(c, ch);
	w = &c->rw;
	uar_jw_str(w, "resume_token", token);
	ctl_result_end(c);
}

/* --- gone ----------------------------------------------------------------------------------- */

struct leaving {
	const char *reason;
	uar_str code; /* instead, when it is not empty */
	bool clean;
	int64_t last_sent;
};

static void emit_disconnected(struct ctl *c, struct uar_row_channel *ch, const struct leaving *l)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_str(w, "reason_code", l->code.n ? l->code : uar_str_c(l->reason));
	uar_jw_bool(w, "clean", l->clean);
	uar_jw_int(w, "last_sent_sequence", l->last_sent);
	uar_jw_int(w, "last_ack_sequence", ch->last_ack);
	uar_jw_bool(w, "retryable", true);
	uar_jw_time(w, "resume_until", ch->resume_until);
	emit_about(c, ch, UAR_EV_CHANNEL_DISCONNECTED);
	ch->row.status = UAR_STR("disconnected");
}

void ctl_disconnect_channel(struct ctl *c)
{
	const struct uar_ctl_disconnect_channel *in = &c->in->disconnect_channel;
	struct uar_row_channel *ch = find(c, in->channel_id);

	if (!ch)
		return;
	if (is_connected(ch)) {
		ctl_change(c, ch);
		seen(c, ch);
		emit_disconnected(c, ch,
				  &(struct leaving){ .reason = "closed",
						     .code = in->reason,
						     .clean = true,
						     .last_sent = ch->last_ack });
	}
	tell(c, ch);
	ctl_result_end(c);
}

/* One that was resumed meanwhile stays. */
void ctl_drop_channel(struct ctl *c)
{
	const struct uar_ctl_drop_channel *in = &c->in->drop_channel;
	struct uar_row_channel *ch = find(c, in->channel_id);

	if (!ch)
		return;
	if (is_connected(ch) && ch->epoch == in->epoch) {
		ctl_change(c, ch);
		seen(c, ch);
		emit_disconnected(
			c, ch,
			&(struct leaving){ .code = in->reason_code, .last_sent = in->last_sent });
	}
	tell(c, ch);
	ctl_result_end(c);
}

/* --- back again ----------------------------------------------------------------------------- */

static bool token_fits(const struct uar_row_channel *ch, uar_str token)
{
	char sha[UAR_SHA256_TEXT + 1];

	uar_sha256_hex(token, sha);
	return uar_str_eq_secret(ch->token_sha256, uar_str_c(sha));
}

/* A cursor of another history, or beyond the log, means nothing: the snapshot repairs it. */
static void emit_resumed(struct ctl *c, struct uar_row_channel *ch)
{
	int64_t to = (int64_t)c->e.s->sequence;
	int64_t from = c->in->cursor ? (int64_t)c->in->cursor : ch->last_ack;
	bool gap = c->in->cursor_lost || from > to || c->e.env->now_us > ch->resume_until;
	struct uar_jw *w = uar_emit_begin(&c->e);

	from = gap ? to : from;
	uar_jw_cstr(w, "mode", gap ? "snapshot" : "snapshot_and_replay");
	uar_jw_int(w, "from_sequence", from);
	uar_jw_int(w, "to_sequence", to);
	uar_jw_int(w, "replayed", to - from);
	uar_jw_bool(w, "gap", gap);
	uar_emit_refs(&c->e, uar_arena_printf(
				     c->e.env->arena,
				     "{\"snapshot_ref\":\"snapshot://session_snapshot/%.*s@%lld\"}",
				     UAR_FMT(c->e.s->session_id), (long long)to));
	emit_about(c, ch, UAR_EV_CHANNEL_RESUMED);
	ch->row.status = UAR_STR("connected");
	ch->stream_from = from;
	if (gap)
		ch->last_ack = to;
	ch->epoch++;
	seen(c, ch);
	tell(c, ch);
	w = &c->rw;
	uar_jw_cstr(w, "mode", gap ? "snapshot" : "snapshot_and_replay");
	uar_jw_int(w, "from_sequence", from);
	uar_jw_int(w, "to_sequence", to);
	uar_jw_bool(w, "gap", gap);
	ctl_result_end(c);
}

void ctl_reconnect_channel(struct ctl *c)
{
	const struct uar_ctl_reconnect_channel *in = &c->in->reconnect_channel;
	struct uar_row_channel *ch = find(c, in->channel_id);

	if (!ch)
		return;
	if (!token_fits(ch, in->resume_token)) {
		ctl_refuse(c, UAR_EFORBIDDEN, "/resume_token",
			   "the token is not the one of this channel");
		return;
	}
	ctl_change(c, ch);
	if (is_connected(ch)) /* nobody has noticed that it was gone */
		emit_disconnected(
			c, ch,
			&(struct leaving){ .reason = "superseded", .last_sent = ch->stream_from });
	emit_resumed(c, ch);
}

void ctl_attach_channel(struct ctl *c)
{
	struct uar_row_channel *ch = find(c, c->in->attach_channel.channel_id);

	if (!ch)
		return;
	if (!is_connected(ch)) {
		ctl_refuse(c, UAR_ESTATE, NULL,
			   "the channel is disconnected: reconnect_channel resumes it");
		return;
	}
	tell(c, ch);
	ctl_result_end(c);
}

/* --- acknowledge ---------------------------------------------------------------------------- */

static void emit_ack(struct ctl *c, const struct uar_row_channel *ch)
{
	struct uar_jw *w = uar_emit_begin(&c->e);
	char text[64];
	int n = snprintf(text, sizeof text, "acknowledged up to %lld", (long long)ch->last_ack);

	uar_jw_str(w, "message_id", uar_emit_id(&c->e));
	uar_jw_cstr(w, "direction", "in");
	uar_jw_cstr(w, "kind", "protocol");
	uar_jw_cstr(w, "preview", text);
	uar_jw_int(w, "bytes", n);
	uar_jw_obj(w, "native_ids");
	uar_jw_int(w, "ack_sequence", ch->last_ack);
	uar_jw_close(w);
	emit_about(c, ch, UAR_EV_CHANNEL_MESSAGE);
}

/* What was acknowledged stays so: an earlier cursor changes nothing. */
void ctl_ack_events(struct ctl *c)
{
	struct uar_row_channel *ch = find(c, c->in->ack_events.channel_id);

	if (!ch)
		return;
	if (c->in->cursor_lost || c->in->cursor > c->e.s->sequence) {
		ctl_refuse(c, UAR_EINVALID, "/cursor", "the session has no such event");
		return;
	}
	if ((int64_t)c->in->cursor > ch->last_ack) {
		ctl_change(c, ch);
		ch->last_ack = (int64_t)c->in->cursor;
		seen(c, ch);
		emit_ack(c, ch);
	}
	tell(c, ch);
	ctl_result_end(c);
}
