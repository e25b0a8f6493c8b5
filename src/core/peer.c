/* peer.c - the facts of a run whose task another runtime (the peer) has: message sent, task known,
 * task changed, peer not reachable.
 *
 * The fold reads run.status events with metadata.peer, and nothing else. task.delegated and
 * task.progress repeat the same for read models. */
#include "core/emit.h"
#include "core/limits.h"

static const char *const found_names[UAR_PEER_FOUND_COUNT] = {
	[UAR_PEER_NOT_LOOKED] = "unknown",
	[UAR_PEER_RUNNING] = "running",
	[UAR_PEER_IDLE] = "idle",
	[UAR_PEER_WAITING] = "waiting",
	[UAR_PEER_UNDELIVERED] = "completed_undelivered",
	[UAR_PEER_MISSING] = "missing",
	[UAR_PEER_UNREACHABLE] = "unreachable",
};
static const char *const deliveries[] = {
	[UAR_PEER_POLLING] = "polling",
	[UAR_PEER_STREAMING] = "streaming",
	[UAR_PEER_SUBSCRIPTION] = "subscription",
};
static const struct {
	const char *name, *title;
} steps[UAR_PEER_STEP_COUNT] = {
	[UAR_PEER_SENDING] = { "sending", "Sending a message to the peer" },
	[UAR_PEER_UNSENT] = { "unsent", "The peer did not get the message" },
	[UAR_PEER_LINKED] = { "linked", "The peer has the task" },
	[UAR_PEER_STATUS] = { "status", "The task of the peer has changed" },
	[UAR_PEER_AGAIN] = { "again", "The peer sends its text again" },
	[UAR_PEER_LOST] = { "lost", "Waiting for the peer" },
	[UAR_PEER_MADE] = { "made", "The peer has delivered" },
	[UAR_PEER_LOOKED] = { "looked", "The peer cannot tell whether it got the message" },
};

const char *uar_peer_found_name(enum uar_peer_found f)
{
	return found_names[f];
}

static size_t place_of(const char *const *names, size_t count, uar_str name)
{
	size_t i = 0;

	while (i < count && !uar_str_is(name, names[i]))
		i++;
	return i < count ? i : 0;
}

enum uar_run_input uar_core_peer_input(const struct uar_peer_news *n)
{
	return n->step == UAR_PEER_LOST ? UAR_IN_PEER_LOST : UAR_IN_PEER;
}

/* --- events -------------------------------------------------------------------------------- */

static void put_remote(struct uar_jw *w, const struct uar_peer_news *n)
{
	uar_jw_obj(w, "remote");
	uar_jw_cstr(w, "native_protocol", "a2a");
	uar_jw_str(w, "remote_task_id", n->task_id);
	if (n->context_id.n)
		uar_jw_str(w, "remote_context_id", n->context_id);
	if (n->card_ref.n)
		uar_jw_str(w, "agent_card_ref", n->card_ref);
	uar_jw_cstr(w, "delivery_mechanism", deliveries[n->delivery]);
	if (n->status.n)
		uar_jw_str(w, "native_status", n->status);
	uar_jw_close(w);
}

static void delegated(struct emit *e, const struct uar_peer_news *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_obj(w, "target");
	uar_jw_cstr(w, "kind", "peer");
	uar_jw_str(w, "id", e->r->what.agent_id);
	uar_jw_close(w);
	uar_jw_obj(w, "edge");
	uar_jw_cstr(w, "kind", "assigned_thread");
	uar_jw_str(w, "source_id", e->r->id.task_id);
	uar_jw_str(w, "target_id", n->task_id);
	uar_jw_cstr(w, "status", "active");
	uar_jw_cstr(w, "reason", "peer");
	uar_jw_time(w, "created_at", e->env->now_us);
	uar_jw_time(w, "updated_at", e->env->now_us);
	uar_jw_close(w);
	put_remote(w, n);
	uar_emit(e, UAR_EV_TASK_DELEGATED, EMIT_RUN);
	if (n->context_id.n) /* the next run of the thread goes on there */
		uar_core_agent_session(e, n->context_id);
}

static void progressed(struct emit *e, const struct uar_peer_news *n)
{
	uar_str text = uar_str_utf8_prefix(n->text, UAR_TEXT_MESSAGE - 1);
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "phase", n->found == UAR_PEER_WAITING ? "waiting" : "working");
	if (text.n)
		uar_jw_str(w, "message", text);
	if (n->status.n)
		uar_jw_str(w, "native_status", n->status);
	uar_jw_cstr(w, "delivery_state", "pending");
	uar_jw_int(w, "coalesced", 0);
	uar_emit(e, UAR_EV_TASK_PROGRESS, EMIT_RUN);
}

static int64_t wait_ms(const struct emit *e, const struct uar_peer_news *n)
{
	static const int64_t longest = (int64_t)UAR_LIMIT_PEER_WAIT_SECONDS * 1000;
	int64_t tries = uar_run_rare(e->r)->peer.tries, wait = 500;

	while (tries-- > 0 && wait < longest)
		wait *= 2;
	if (n->wait_us / 1000 > wait)
		wait = n->wait_us / 1000;
	return wait < longest ? wait : longest;
}

static void put_news(struct uar_jw *w, const struct uar_peer_news *n)
{
	uar_str text = uar_str_utf8_prefix(n->text, UAR_TEXT_MESSAGE - 1);

	uar_jw_obj(w, UAR_PEER_METADATA);
	uar_jw_cstr(w, "step", steps[n->step].name);
	if (n->step == UAR_PEER_SENDING || n->step == UAR_PEER_UNSENT)
		uar_jw_int(w, "number", n->number);
	if (n->step == UAR_PEER_LINKED) {
		uar_jw_str(w, "remote_task_id", n->task_id);
		uar_jw_str(w, "remote_context_id", n->context_id);
		uar_jw_str(w, "agent_card_ref", n->card_ref);
	}
	if (n->step == UAR_PEER_LINKED || n->step == UAR_PEER_STATUS)
		uar_jw_cstr(w, "delivery_mechanism", deliveries[n->delivery]);
	if (n->found)
		uar_jw_cstr(w, "found", found_names[n->found]);
	if (n->status.n)
		uar_jw_str(w, "native_status", n->status);
	if (text.n)
		uar_jw_str(w, "text", text);
	uar_jw_close(w);
}

static void told(struct emit *e, const struct uar_peer_news *n, int64_t wait)
{
	const struct uar_run_call *call = &e->r->call;
	uar_str message_id = UAR_STR_NONE;
	int64_t said = call->chars;
	struct uar_jw *w;

	if (call->message_id[0])
		message_id = uar_emit_own(e, call->message_id);
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "phase", "peer");
	uar_jw_cstr(w, "status", uar_status_text(e->move.to));
	uar_jw_cstr(w, "title", steps[n->step].title);
	uar_jw_obj(w, "metadata");
	put_news(w, n);
	if (wait) {
		uar_jw_int(w, "retry", uar_run_rare(e->r)->peer.tries + 1);
		uar_jw_int(w, "wait_ms", wait);
		uar_jw_time(w, "due_at", e->env->now_us + wait * 1000);
	}
	if (n->step == UAR_PEER_AGAIN && message_id.n)
		uar_core_put_superseded(w, message_id, said);
	uar_jw_close(w);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

void uar_core_peer(struct emit *e, const struct uar_peer_news *n)
{
	int64_t wait = n->step == UAR_PEER_LOST ? wait_ms(e, n) : 0;

	if (n->step == UAR_PEER_LINKED)
		delegated(e, n);
	if (n->step == UAR_PEER_LINKED || n->step == UAR_PEER_STATUS)
		progressed(e, n);
	if (n->step == UAR_PEER_MADE)
		uar_core_artifacts(e, n->artifacts);
	if (wait)
		uar_core_wait_for(e, e->r->what.agent_id, "the peer cannot be reached",
				  e->env->now_us + wait * 1000);
	told(e, n, wait);
}

/* --- the fold ------------------------------------------------------------------------------ */

static void arrived(struct uar_run_peer *p)
{
	if (p->sending - 1 > p->told)
		p->told = p->sending - 1;
	p->sending = 0;
	p->tries = 0;
}

static void fold_linked(struct uar_run_peer *p, const struct uar_json *j)
{
	uar_core_keep(p->task_id, sizeof p->task_id, uar_json_text(j, "remote_task_id"));
	uar_core_keep(p->context_id, sizeof p->context_id, uar_json_text(j, "remote_context_id"));
	uar_core_keep(p->card_ref, sizeof p->card_ref, uar_json_text(j, "agent_card_ref"));
}

/* The text so far no longer counts. */
static void forget_text(struct uar_run_call *call)
{
	call->message_id[0] = 0;
	call->index = call->chars = call->thought = 0;
	call->first_us = 0;
}

static void fold_step(struct uar_run *r, enum uar_peer_step step, const struct uar_json *j)
{
	struct uar_run_peer *p = &r->rare->peer;

	switch (step) {
	case UAR_PEER_SENDING:
		p->sending = uar_json_int(uar_json_get(j, UAR_STR("number")), 0) + 1;
		return;
	case UAR_PEER_UNSENT:
		p->sending = 0;
		p->judged = r->rare->actions.count;
		return;
	case UAR_PEER_LINKED: fold_linked(p, j); break;
	case UAR_PEER_STATUS: break;
	case UAR_PEER_AGAIN: forget_text(&r->call); return;
	case UAR_PEER_LOST: p->tries++; return;
	case UAR_PEER_LOOKED: p->tries = 0; return;
	case UAR_PEER_MADE:
	case UAR_PEER_STEP_COUNT: return;
	}
	arrived(p);
	p->delivery = (enum uar_peer_delivery)place_of(deliveries, ARRAY_LEN(deliveries),
						       uar_json_text(j, "delivery_mechanism"));
}

uar_err uar_core_fold_peer(struct uar_run *r, const struct uar_event *ev, const struct uar_json *p)
{
	const struct uar_json *j =
		uar_json_get(uar_json_get(p, UAR_STR("metadata")), UAR_STR(UAR_PEER_METADATA));
	struct uar_run_rare *rare = j ? uar_core_change_rare(r) : NULL;
	uar_str name = uar_json_text(j, "step");
	size_t found, step = 0;

	if (!rare)
		return j ? UAR_ENOMEM : UAR_OK;
	while (step < UAR_PEER_STEP_COUNT && !uar_str_is(name, steps[step].name))
		step++;
	if (step == UAR_PEER_STEP_COUNT)
		return UAR_ECORRUPT;
	fold_step(r, (enum uar_peer_step)step, j);
	if (step == UAR_PEER_SENDING)
		rare->peer.sent_us = ev->time_us;
	found = place_of(found_names, UAR_PEER_FOUND_COUNT, uar_json_text(j, "found"));
	if (found)
		rare->peer.found = (enum uar_peer_found)found;
	if (uar_json_text(j, "native_status").n)
		uar_core_keep(rare->peer.status, sizeof rare->peer.status,
			      uar_json_text(j, "native_status"));
	rare->peer.over =
		rare->peer.found == UAR_PEER_UNDELIVERED || rare->peer.found == UAR_PEER_MISSING;
	r->row_changed = true;
	return UAR_OK;
}

void uar_core_write_peer(struct uar_jw *w, const struct uar_run *r)
{
	const struct uar_run_peer *p = &uar_run_rare(r)->peer;
	bool delivered = p->found == UAR_PEER_UNDELIVERED && uar_status_terminal(r->status);

	uar_jw_obj(w, "peer");
	uar_jw_cstr(w, "native_protocol", "a2a");
	uar_jw_cstr(w, "remote_task_id", p->task_id[0] ? p->task_id : NULL);
	uar_jw_cstr(w, "remote_context_id", p->context_id[0] ? p->context_id : NULL);
	uar_jw_cstr(w, "agent_card_ref", p->card_ref[0] ? p->card_ref : NULL);
	uar_jw_cstr(w, "delivery_mechanism", p->task_id[0] ? deliveries[p->delivery] : NULL);
	uar_jw_cstr(w, "native_status", p->status[0] ? p->status : NULL);
	uar_jw_cstr(w, "state", delivered ? "delivered" : found_names[p->found]);
	uar_jw_bool(w, "message_in_doubt", p->sending != 0);
	uar_jw_close(w);
}
