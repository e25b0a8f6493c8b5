/* control_bridge.c - permissions that cross a channel: who was asked, who has decided.
 *
 * The question itself is an action of its run. Here is recorded that it was passed on, and how
 * and on which side it was decided, each once. */
#include "core/control_int.h"

static struct uar_row_bridge *find(struct ctl *c, uar_str channel_id, uar_str action_id)
{
	uar_str id = uar_arena_printf(c->e.env->arena, "%.*s/%.*s", UAR_FMT(channel_id),
				      UAR_FMT(action_id));

	if (!id.p)
		ctl_fail(c, UAR_ENOMEM);
	return id.p ? ctl_row(c, UAR_ROW_BRIDGE, id) : NULL;
}

static void emit_about(struct ctl *c, uar_str channel_id, uar_str action_id, uar_str thread_id,
		       uar_str turn_id)
{
	uar_emit_name(&c->e, UAR_ID_CHANNEL, channel_id);
	uar_emit_name(&c->e, UAR_ID_ACTION, action_id);
	uar_emit_name(&c->e, UAR_ID_THREAD, thread_id);
	uar_emit_name(&c->e, UAR_ID_TURN, turn_id);
}

static void tell(struct ctl *c, const struct uar_row_bridge *b)
{
	struct uar_jw *w = ctl_result(c);

	if (b) {
		uar_jw_str(w, "action_id", b->action_id);
		uar_jw_str(w, "status", b->row.status);
	}
	ctl_result_end(c);
}

void ctl_forward_permission(struct ctl *c)
{
	const struct uar_ctl_forward_permission *in = &c->in->forward_permission;
	struct uar_row_bridge *b = find(c, in->channel_id, in->action_id);
	struct uar_jw *w;

	if (c->waits || c->e.err)
		return;
	if (!b) {
		b = ctl_new_row(c, UAR_ROW_BRIDGE,
				uar_arena_printf(c->e.env->arena, "%.*s/%.*s",
						 UAR_FMT(in->channel_id), UAR_FMT(in->action_id)));
		if (!b)
			return;
		b->row.status = UAR_STR("pending");
		b->row.parent = in->channel_id;
		b->action_id = in->action_id;
		w = uar_emit_begin(&c->e);
		uar_jw_str(w, "decision_id", in->action_id);
		uar_jw_str(w, "to_channel_id", in->channel_id);
		uar_jw_str(w, "requesting_peer", in->requesting_peer);
		uar_jw_obj(w, "target");
		uar_jw_str(w, "kind", in->target_kind);
		uar_jw_str(w, "id", in->target);
		uar_jw_close(w);
		if (in->timeout_at.n)
			uar_jw_str(w, "timeout_at", in->timeout_at);
		emit_about(c, in->channel_id, in->action_id, in->thread_id, in->turn_id);
		uar_emit(&c->e, UAR_EV_CHANNEL_PERMISSION_FORWARDED, EMIT_SESSION);
	}
	tell(c, b);
}

void ctl_return_permission(struct ctl *c)
{
	const struct uar_ctl_return_permission *in = &c->in->return_permission;
	struct uar_row_bridge *b = find(c, in->channel_id, in->action_id);
	struct uar_jw *w;

	if (c->waits || c->e.err)
		return;
	if (b && uar_str_is(b->row.status, "pending")) {
		ctl_change(c, b);
		b->row.status = UAR_STR("returned");
		b->outcome = in->outcome;
		b->decided_side = in->decided_side;
		w = uar_emit_begin(&c->e);
		uar_jw_str(w, "decision_id", in->action_id);
		uar_jw_str(w, "outcome", in->outcome);
		uar_jw_str(w, "decided_side", in->decided_side);
		uar_jw_raw(w, "decided_by", in->decided_by);
		uar_jw_str(w, "source", in->source);
		uar_jw_bool(w, "channel_scoped", in->channel_scoped);
		emit_about(c, in->channel_id, in->action_id, in->thread_id, in->turn_id);
		uar_emit(&c->e, UAR_EV_CHANNEL_PERMISSION_RETURNED, EMIT_SESSION);
	}
	tell(c, b);
}
