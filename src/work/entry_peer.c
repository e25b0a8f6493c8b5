/* entry_peer.c - peer.a2a: a run whose work an agent of another runtime (the peer) does. Its
 * worker, from the card that opens the peer to the end; what is said in between is in
 * peer_dialogue.c. */
#include "work/peer_int.h"

static const struct worker_ops peer_ops;

struct peer_worker *rt_peer_of(const struct live_run *r)
{
	struct worker *w = r ? rt_worker(r) : NULL;

	return w && w->ops == &peer_ops ? (struct peer_worker *)w : NULL;
}

const struct uar_run_peer *rt_peer_state(const struct peer_worker *w)
{
	return &uar_run_rare(rt_state(w->base.run))->peer;
}

/* --- the start -------------------------------------------------------------------------------- */

static void answers_ready(void *ctx, uar_err e, const struct peer_answers *a)
{
	struct peer_worker *w = ctx;

	w->load.answers = NULL;
	w->ask.asked = a->number;
	w->ask.answered = a->answered;
	w->ask.again = a->again_number;
	w->ask.again_answered = a->again_answered;
	w->ask.again_allowed = a->again_allowed;
	if (!e && rt_peer_is_answered(w))
		e = rt_peer_answer_with(w, a);
	if (e)
		rt_peer_give_up(w, e, "the answer to the peer's question cannot be read");
	else
		rt_peer_decide(w);
}

static void on_opened(void *ctx, const struct uar_remote_card *card)
{
	struct peer_worker *w = ctx;
	struct uar_error error = { 0 };
	uar_err e = rt_peer_headers(w, card->url, &error);

	w->doing = PEER_RESTS; /* a cancel need not wait for the card any more */
	w->can.streams = card->streams;
	w->can.lists = card->lists;
	w->can.idempotent = card->idempotent;
	if (!e && (w->leaving || !uar_run_rare(rt_state(w->base.run))->actions.count)) {
		rt_peer_decide(w);
		return;
	}
	if (!e)
		e = rt_peer_answers_load(w->base.run, answers_ready, w, &w->load.answers);
	if (e && w->leaving)
		rt_peer_stopped_here_alone(w, uar_error_text(&error));
	else if (e)
		rt_peer_fail(w, "PEER_SETUP", "setup_missing",
			     uar_str_c(error.text[0] ? error.text : uar_err_text(e)));
}

static uar_err open_card(struct peer_worker *w, struct uar_error *error)
{
	struct uar_remotes *host = rt_work(w->base.run)->o.remotes;
	const struct uar_definition *d = rt_definition(w->base.run);
	const struct uar_json *peer =
		d ? uar_json_pointer(d->json, UAR_STR("/runtime/peer")) : NULL;
	struct uar_remote_events events = { on_opened, rt_peer_on_update, rt_peer_on_end, w };

	if (!host || !peer)
		return uar_error_set(error, UAR_ENOTFOUND,
				     "agents of other runtimes cannot be "
				     "called here");
	w->doing = PEER_OPENS;
	return host->ops->open(host, uar_json_text(peer, "card_url"),
			       uar_json_get(peer, UAR_STR("hosts")), &events, &w->remote, error);
}

static void definition_ready(void *ctx, uar_err e, const struct uar_error *error)
{
	struct uar_error own = *error;
	struct peer_worker *w = ctx;

	w->load.definition = NULL;
	if (!e)
		e = open_card(w, &own);
	if (e)
		rt_peer_give_up(w, e, own.text[0] ? own.text : uar_err_text(e));
}

static uar_err arm_limit(struct peer_worker *w)
{
	return w->leaving ? uar_timer_set(rt_peer_sched(w), &w->limit,
					  UAR_LIMIT_PEER_CANCEL_SECONDS * 1000000LL)
			  : UAR_OK;
}

static uar_err peer_start(struct worker *base, struct uar_error *error)
{
	struct peer_worker *w = (struct peer_worker *)base;
	const struct uar_run *state = rt_state(base->run);
	uar_err e;

	w->leaving = state->status == UAR_STATUS_CANCELLING;
	snprintf(w->task_id, sizeof w->task_id, "%s", rt_peer_state(w)->task_id);
	snprintf(w->context_id, sizeof w->context_id, "%s", rt_peer_state(w)->context_id);
	w->said.unknown = state->call.chars > 0;
	uar_sha256_init(&w->said.hash);
	e = arm_limit(w);
	if (!e)
		e = rt_definition_pin(base->run, definition_ready, w, &w->load.definition);
	return e == UAR_ESKIP ? open_card(w, error) : e;
}

static void peer_call_model(struct worker *base)
{
	(void)base; /* it calls none */
}

static void peer_flow(struct worker *base)
{
	rt_peer_set_held((struct peer_worker *)base);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void leave_loads(struct peer_worker *w)
{
	rt_input_cancel(w->load.input);
	rt_session_cancel(w->load.find);
	rt_peer_answers_cancel(w->load.answers);
	rt_peer_artifacts_cancel(w->load.keeping);
	w->load.input = NULL;
	w->load.find = NULL;
	w->load.answers = NULL;
	w->load.keeping = NULL;
	uar_timer_stop(rt_peer_sched(w), &w->timer);
}

/* A message that is being sent is waited for until the peer has named its task. */
static void peer_cancel(struct worker *base)
{
	struct peer_worker *w = (struct peer_worker *)base;

	w->leaving = true;
	leave_loads(w);
	if (arm_limit(w)) {
		rt_peer_stopped_here_alone(w, "out of memory");
		return;
	}
	if (w->load.definition || w->doing == PEER_OPENS || !w->remote)
		return; /* the card first; without one the run fails already */
	if (w->doing == PEER_SENDS && !w->task_id[0])
		return;
	rt_peer_ops(w)->leave(w->remote);
	rt_peer_decide(w);
}

/* The run has ended before the task did: nobody wants what the peer still makes. */
static bool is_abandoned(const struct peer_worker *w)
{
	return w->task_id[0] && !w->seen.over && !w->leaving &&
	       uar_status_terminal(rt_state(w->base.run)->status);
}

static void peer_stop(struct worker *base)
{
	struct peer_worker *w = (struct peer_worker *)base;

	rt_definition_cancel(w->load.definition);
	leave_loads(w);
	uar_timer_stop(rt_peer_sched(w), &w->limit);
	if (w->remote && is_abandoned(w))
		rt_peer_ops(w)->abandon(w->remote, uar_str_c(w->task_id));
	else if (w->remote)
		rt_peer_ops(w)->close(w->remote);
	if (!w->load.definition)
		rt_definition_unpin(base->run);
	uar_secrets_used_fini(&w->used);
	uar_buf_fini(&w->made);
	uar_arena_fini(&w->seen.told);
	uar_arena_fini(&w->arena);
	uar_free(w);
}

static void on_poll(struct uar_timer *t)
{
	struct peer_worker *w = UAR_OWNER(t, struct peer_worker, timer);

	rt_peer_look(w, w->leaving ? PEER_CONFIRMS : PEER_LOOKS);
}

static const struct worker_ops peer_ops = { .name = "peer.a2a",
					    .start = peer_start,
					    .call_model = peer_call_model,
					    .flow = peer_flow,
					    .stop = peer_stop,
					    .cancel = peer_cancel };

uar_err rt_peer_make(struct live_run *r, struct worker **out)
{
	struct peer_worker *w = uar_zalloc(sizeof *w);

	(void)r;
	if (!w)
		return UAR_ENOMEM;
	w->base.ops = &peer_ops;
	w->timer.fn = on_poll;
	w->limit.fn = rt_peer_limit_passed;
	w->made = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	w->seen.question = UAR_STR("");
	w->message = (struct uar_remote_message){ UAR_STR(""), UAR_STR(""), UAR_STR(""),
						  UAR_STR(""), UAR_STR("") };
	uar_arena_init(&w->arena, 0);
	uar_arena_init(&w->seen.told, 0);
	*out = &w->base;
	return UAR_OK;
}
