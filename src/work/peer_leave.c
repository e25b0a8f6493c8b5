/* peer_leave.c - the end of a run of peer.a2a that is cancelled.
 *
 * A peer may take the cancel and go on for a while, or refuse it. The task is over when the peer
 * says so: until then it is asked, and when it does not say so in time, or has refused, the run is
 * cancelled with a warning. */
#include "work/peer_int.h"

enum { CONFIRM_US = 500000 };

void rt_peer_stopped(struct peer_worker *w)
{
	struct uar_command c = { .kind = UAR_CMD_STOPPED };

	w->doing = PEER_RESTS;
	uar_timer_stop(rt_peer_sched(w), &w->timer);
	uar_timer_stop(rt_peer_sched(w), &w->limit);
	rt_send(w->base.run, &c);
}

void rt_peer_stopped_here_alone(struct peer_worker *w, const char *why)
{
	rt_peer_warn(w, "PEER_NOT_CANCELLED", why);
	rt_peer_stopped(w);
}

void rt_peer_limit_passed(struct uar_timer *t)
{
	struct peer_worker *w = UAR_OWNER(t, struct peer_worker, limit);

	if (w->remote)
		rt_peer_ops(w)->leave(w->remote);
	rt_peer_stopped_here_alone(w, "the peer did not confirm the cancel in time");
}

static void confirm_later(struct peer_worker *w)
{
	w->doing = PEER_RESTS;
	if (uar_timer_set(rt_peer_sched(w), &w->timer, w->refused ? 0 : CONFIRM_US))
		rt_peer_stopped_here_alone(w, "out of memory");
}

void rt_peer_end_cancel(struct peer_worker *w, const struct uar_remote_end *end)
{
	bool confirms = w->doing == PEER_CONFIRMS;
	bool answered = end->how == UAR_REMOTE_DONE;

	if (end->how == UAR_REMOTE_NOT_THERE || (answered && uar_remote_over(w->seen.state))) {
		rt_peer_stopped(w);
	} else if (confirms && w->refused) {
		rt_peer_stopped_here_alone(w, "the peer does not cancel its task");
	} else if (confirms || answered) {
		confirm_later(w);
	} else if (end->how == UAR_REMOTE_UNSUPPORTED) { /* it may be over already */
		w->refused = true;
		confirm_later(w);
	} else {
		rt_peer_stopped_here_alone(w, end->reason);
	}
}
