/* view_channel.c - folds channels: who is connected, what was acknowledged, which permissions
 * crossed them. */
#include "core/view_int.h"

static void connected(struct fold_step *s, struct uar_sview_channel *c)
{
	VIEW_KEEP(s, channel, c, status, UAR_STR("connected"));
	VIEW_TAKE(s, channel, c, transport);
	VIEW_TAKE(s, channel, c, peer_role);
	VIEW_TAKE(s, channel, c, peer_id);
	VIEW_TAKE(s, channel, c, native_protocol);
	VIEW_TAKE(s, channel, c, account_ref);
	VIEW_TAKE_JSON(s, channel, c, capabilities);
	VIEW_KEEP(s, channel, c, refs,
		  s->ev->refs.n <= VIEW_MAX_channel_refs ? s->ev->refs : UAR_STR_NONE);
	c->last_ack = view_int(s, "last_ack_sequence", 0);
	c->item.open = true;
}

static void disconnected(struct fold_step *s, struct uar_sview_channel *c)
{
	VIEW_KEEP(s, channel, c, status, UAR_STR("disconnected"));
	VIEW_KEEP(s, channel, c, reason, view_str(s, "reason_code"));
	c->last_sent = view_int(s, "last_sent_sequence", 0);
	c->item.open = false;
}

static void resumed(struct fold_step *s, struct uar_sview_channel *c)
{
	VIEW_KEEP(s, channel, c, status, UAR_STR("connected"));
	VIEW_KEEP(s, channel, c, reason, UAR_STR_NONE);
	VIEW_KEEP(s, channel, c, resumed, view_str(s, "mode"));
	c->gap = view_bool(s, "gap");
	if (c->gap)
		c->last_ack = view_int(s, "to_sequence", c->last_ack);
	c->item.open = true;
}

static void message(struct fold_step *s, struct uar_sview_channel *c)
{
	const struct uar_json *ids = uar_json_get(s->p, UAR_STR("native_ids"));

	c->messages++;
	c->last_ack = uar_json_int(uar_json_get(ids, UAR_STR("ack_sequence")), c->last_ack);
}

static void returned(struct fold_step *s, struct uar_sview_channel *c)
{
	c->pending -= c->pending > 0;
	c->returned++;
	VIEW_KEEP(s, channel, c, last_decision,
		  s->ev->payload.n <= VIEW_MAX_channel_last_decision ? s->ev->payload
								     : UAR_STR_NONE);
}

void view_fold_channel(struct fold_step *s)
{
	struct uar_sview_channel *c;

	if (!uar_str_starts(uar_event_type(s->ev), UAR_STR("channel.")))
		return;
	c = view_named(s, UAR_SVIEW_CHANNEL, UAR_ID_CHANNEL);
	if (!c)
		return;
	c->last_seen_at = s->ev->time_us;
	switch (s->ev->cls) {
	case UAR_EV_CHANNEL_CONNECTED: connected(s, c); break;
	case UAR_EV_CHANNEL_DISCONNECTED: disconnected(s, c); break;
	case UAR_EV_CHANNEL_RESUMED: resumed(s, c); break;
	case UAR_EV_CHANNEL_MESSAGE: message(s, c); break;
	case UAR_EV_CHANNEL_PERMISSION_FORWARDED: c->pending++; break;
	case UAR_EV_CHANNEL_PERMISSION_RETURNED: returned(s, c); break;
	default: break;
	}
}

static void write_bridge(struct uar_jw *w, const struct uar_sview_channel *c)
{
	uar_jw_obj(w, "permission_bridge");
	uar_jw_cstr(w, "state", c->pending ? "pending" : c->returned ? "returned" : "idle");
	uar_jw_int(w, "pending", c->pending);
	uar_jw_int(w, "returned", c->returned);
	view_put_json(w, "last_decision", c->last_decision, "null");
	uar_jw_close(w);
}

static void write_channel(struct uar_jw *w, const struct uar_sview_channel *c)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "channel_id", c->item.key);
	uar_jw_str_or_null(w, "status", c->status);
	uar_jw_str_or_null(w, "transport", c->transport);
	uar_jw_str_or_null(w, "peer_role", c->peer_role);
	uar_jw_str_or_null(w, "peer_id", c->peer_id);
	uar_jw_str_or_null(w, "native_protocol", c->native_protocol);
	uar_jw_str_or_null(w, "account_ref", c->account_ref);
	view_put_json(w, "capabilities", c->capabilities, "[]");
	view_put_json(w, "refs", c->refs, "{}");
	uar_jw_int(w, "resume_cursor", c->last_ack);
	uar_jw_int(w, "last_ack_sequence", c->last_ack);
	uar_jw_int(w, "last_sent_sequence", c->last_sent);
	uar_jw_str_or_null(w, "disconnect_reason", c->reason);
	uar_jw_str_or_null(w, "resumed_by", c->resumed);
	uar_jw_bool(w, "gap", c->gap);
	uar_jw_int(w, "messages", c->messages);
	write_bridge(w, c);
	uar_jw_time_or_null(w, "last_seen_at", c->last_seen_at);
	uar_jw_close(w);
}

void uar_sview_write_channels(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview_list *l = &s->view->lists[UAR_SVIEW_CHANNEL];

	uar_jw_obj(w, key);
	uar_jw_cstr(w, "state", !l->count ? "not_applicable" : s->stale ? "stale" : "available");
	uar_jw_arr(w, "channels");
	for (size_t i = 0; i < l->count; i++)
		write_channel(w, view_at(s->view, UAR_SVIEW_CHANNEL, i));
	uar_jw_close(w);
	uar_jw_int(w, "omitted", l->omitted);
	uar_jw_close(w);
}
