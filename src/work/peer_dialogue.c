/* peer_dialogue.c - what is asked of a peer, and what follows from what it says.
 *
 * A message is recorded before it is sent. A new worker (of a new run, after a wait, a restart or
 * an answer) takes the progress from the run's state, asks the peer for the state of its task, and
 * continues from there. A message that may have arrived is sent again only if the peer does not
 * have it, recognizes repeated messages, or a person decides so. While the peer does not answer the
 * run waits. */
#include "work/peer_int.h"

#include "work/input_seal.h"

enum { FIRST_POLL_US = 500000, CLOCKS_DIFFER_US = 300000000 };

static uar_str task_of(const struct peer_worker *w)
{
	return uar_str_c(w->task_id);
}

void rt_peer_give_up(struct peer_worker *w, uar_err e, const char *why)
{
	w->doing = PEER_RESTS;
	rt_send_fail(w->base.run, e, "execution", why);
}

/* --- operations -------------------------------------------------------------------------- */

static void began(struct peer_worker *w, enum peer_doing doing, uar_err e)
{
	w->doing = doing;
	w->news = false;
	w->said.made = PEER_SAID_BEFORE;
	if (e && w->leaving)
		rt_peer_stopped_here_alone(w, uar_err_text(e));
	else if (e)
		rt_peer_give_up(w, e, uar_err_text(e));
}

static void send_message(struct peer_worker *w)
{
	w->doubtful = true;
	began(w, PEER_SENDS, rt_peer_ops(w)->send(w->remote, &w->message, w->can.streams));
}

void rt_peer_look(struct peer_worker *w, enum peer_doing doing)
{
	began(w, doing, rt_peer_ops(w)->get(w->remote, task_of(w), uar_str_c(w->message_id)));
}

static void poll_later(struct peer_worker *w)
{
	w->doing = PEER_RESTS;
	w->poll_us = w->news || !w->poll_us ? FIRST_POLL_US : 2 * w->poll_us;
	if (w->poll_us > UAR_LIMIT_PEER_POLL_MS * 1000LL)
		w->poll_us = UAR_LIMIT_PEER_POLL_MS * 1000LL;
	if (uar_timer_set(rt_peer_sched(w), &w->timer, w->poll_us))
		rt_peer_give_up(w, UAR_ENOMEM, "out of memory");
}

static void name_message(struct peer_worker *w, int64_t number)
{
	w->ask.number = number;
	uar_action_id(uar_str_c(rt_run_id(w->base.run)), number, w->message_id);
	w->message.message_id = uar_str_c(w->message_id);
	w->message.task_id = number ? task_of(w) : UAR_STR("");
	if (number)
		w->message.context_id = uar_str_c(w->context_id);
}

static void announced(const struct rt_sent *s)
{
	struct peer_worker *w = rt_peer_of(s->run);

	if (!w || s->err)
		return;
	if (w->leaving)
		rt_peer_decide(w);
	else
		send_message(w);
}

/* Durable before it is sent. */
static void announce(struct peer_worker *w)
{
	struct uar_command c = { .kind = UAR_CMD_PEER };

	c.peer.step = UAR_PEER_SENDING;
	c.peer.number = w->ask.number;
	w->doing = PEER_RESTS;
	if (!rt_send_asked(w->base.run, &c, announced, NULL))
		rt_lose(w->base.run, UAR_ENOMEM);
}

static void again_decided(const struct rt_sent *s)
{
	struct peer_worker *w = rt_peer_of(s->run);

	if (w && !s->err)
		rt_peer_decide(w);
}

/* The message has not arrived: it is sent again. */
static void send_again(struct peer_worker *w, enum uar_peer_found found)
{
	struct uar_command c = { .kind = UAR_CMD_PEER };

	c.peer.step = UAR_PEER_UNSENT;
	c.peer.found = found;
	c.peer.number = w->ask.number;
	w->doing = PEER_RESTS;
	w->doubtful = false;
	if (!rt_send_asked(w->base.run, &c, again_decided, NULL))
		rt_lose(w->base.run, UAR_ENOMEM);
}

/* --- the message of the run ---------------------------------------------------------------- */

static void begin_to_send(struct peer_worker *w)
{
	if (rt_peer_state(w)->sending) /* recorded already, and the peer knows what comes twice */
		send_message(w);
	else
		announce(w);
}

static void context_found(void *ctx, uar_err e, uar_str id)
{
	struct peer_worker *w = ctx;

	w->load.find = NULL;
	if (!e)
		w->message.context_id = uar_arena_str(&w->arena, id);
	if (e || !w->message.context_id.p)
		rt_peer_give_up(w, e ? e : UAR_ENOMEM, uar_err_text(e ? e : UAR_ENOMEM));
	else
		begin_to_send(w);
}

/* All inputs but the message, as a part of their own. */
static uar_err take_inputs(struct peer_worker *w)
{
	const struct uar_runtime *rt = rt_engine(w->base.run);
	uar_str inputs = rt_state(w->base.run)->what.inputs;
	const struct uar_json *given = NULL, *real = NULL;
	struct uar_buf text = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	uar_err e;

	if (!inputs.n)
		return UAR_OK;
	e = uar_json_parse(inputs, NULL, &w->arena, &given, NULL);
	if (!e)
		e = rt_inputs_open(rt, &rt_agg_session(rt_agg(w->base.run))->owner, given,
				   &w->arena, &real);
	if (!e && uar_json_first(real)) {
		uar_json_write(&text, real);
		w->message.data =
			text.err ? UAR_STR_NONE : uar_arena_str(&w->arena, uar_buf_str(&text));
		e = w->message.data.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

static void input_ready(void *ctx, uar_err e, uar_str text)
{
	struct peer_worker *w = ctx;

	w->load.input = NULL;
	if (!e)
		w->message.text = uar_arena_str(&w->arena, text);
	if (!e)
		e = w->message.text.p ? take_inputs(w) : UAR_ENOMEM;
	if (!e && rt_is_first_of_thread(w->base.run)) {
		begin_to_send(w);
		return;
	}
	if (!e)
		e = rt_session_find(w->base.run, context_found, w, &w->load.find);
	if (e)
		rt_peer_give_up(w, e, uar_err_text(e));
}

static void send_first(struct peer_worker *w)
{
	uar_err e;

	name_message(w, 0);
	e = rt_input_load(w->base.run, input_ready, w, &w->load.input);
	if (e)
		rt_peer_give_up(w, e, uar_err_text(e));
}

/* --- what is done next ----------------------------------------------------------------------- */

bool rt_peer_is_answered(const struct peer_worker *w)
{
	return w->ask.answered && w->ask.asked > rt_peer_state(w)->told;
}

/* Has a person decided about sending again? True: the decision is carried out. */
static bool again_is_answered(struct peer_worker *w)
{
	if (!w->ask.again_answered || w->ask.again <= rt_peer_state(w)->judged)
		return false;
	if (w->ask.again_allowed)
		send_again(w, UAR_PEER_NOT_LOOKED);
	else
		rt_peer_fail(w, "PEER_UNCERTAIN", "peer",
			     UAR_STR("it is not known whether the peer has got the message"));
	return true;
}

/* The arrival of the message is uncertain: finds out, in the way that the peer supports. */
static void doubt(struct peer_worker *w)
{
	const struct uar_run_peer *p = rt_peer_state(w);
	int64_t since_us = p->sent_us - CLOCKS_DIFFER_US;

	name_message(w, p->sending - 1);
	w->doubtful = true;
	if (w->task_id[0])
		rt_peer_look(w, PEER_LOOKS);
	else if (w->can.idempotent && !w->leaving)
		send_first(w);
	else if (w->can.lists)
		began(w, PEER_SEEKS,
		      rt_peer_ops(w)->find(w->remote, uar_str_c(w->message_id),
					   since_us > 0 ? since_us : 0));
	else if (w->leaving)
		rt_peer_stopped_here_alone(w,
					   "it is not known whether the peer has got the message");
	else if (!again_is_answered(w))
		rt_peer_ask_again(w);
}

void rt_peer_decide(struct peer_worker *w)
{
	const struct uar_run_peer *p = rt_peer_state(w);

	if (w->leaving && w->task_id[0])
		began(w, PEER_CANCELS, rt_peer_ops(w)->cancel(w->remote, task_of(w)));
	else if (p->sending)
		doubt(w);
	else if (w->leaving)
		rt_peer_stopped(w);
	else if (!w->task_id[0])
		send_first(w);
	else
		rt_peer_look(w, PEER_LOOKS);
}

/* What comes after the task was seen and is not over. */
static void go_on(struct peer_worker *w)
{
	if (w->leaving) {
		rt_peer_decide(w);
	} else if (uar_remote_asks(w->seen.state) && rt_peer_is_answered(w)) {
		name_message(w, w->ask.asked);
		announce(w);
	} else if (uar_remote_asks(w->seen.state)) {
		rt_peer_ask(w);
	} else if (w->can.streams && w->cuts < UAR_LIMIT_PEER_CUTS) {
		began(w, PEER_FOLLOWS, rt_peer_ops(w)->follow(w->remote, task_of(w)));
	} else {
		poll_later(w);
	}
}

static void conclude_when_kept(struct peer_worker *w)
{
	w->doing = PEER_RESTS;
	if (w->kept)
		rt_peer_conclude(w);
}

/* --- what the peer says ----------------------------------------------------------------------- */

void rt_peer_set_held(struct peer_worker *w)
{
	bool hold = !rt_has_room(rt_agg(w->base.run));

	if (hold == w->held || !w->remote)
		return;
	w->held = hold;
	rt_peer_ops(w)->pause(w->remote, hold);
}

/* An answer was sent and the task still asks: only if the peer remembers the message has it
 * arrived, and the task asks anew. True: it has not, or the peer cannot tell. */
static bool answer_is_in_doubt(const struct peer_worker *w, const struct uar_remote_view *v)
{
	return w->doubtful && w->doing == PEER_LOOKS && uar_remote_asks(v->state) && !v->knows;
}

void rt_peer_on_update(void *ctx, const struct uar_remote_view *v)
{
	struct peer_worker *w = ctx;

	if (w->doing == PEER_RESTS)
		return; /* the run fails already */
	if (w->doing == PEER_SEEKS && !v->knows) {
		w->ask.allowed = v->has_history; /* it is not there, and would be */
		return;
	}
	if (answer_is_in_doubt(w, v)) {
		w->ask.allowed = v->has_history;
		return;
	}
	if (w->doing == PEER_CANCELS || w->doing == PEER_CONFIRMS) {
		w->seen.state = v->state;
		return;
	}
	if (w->seen.over && !uar_remote_over(v->state))
		return; /* an end is final */
	if (!rt_peer_tell(w, v))
		w->doing = PEER_RESTS;
	rt_peer_set_held(w);
}

static void end_look(struct peer_worker *w)
{
	if (w->seen.over) {
		conclude_when_kept(w);
	} else if (w->doubtful) {
		if (w->leaving)
			rt_peer_decide(w);
		else if (w->ask.allowed)
			send_again(w, UAR_PEER_WAITING);
		else if (w->can.idempotent && rt_peer_is_answered(w))
			send_message(w);
		else if (!again_is_answered(w))
			rt_peer_ask_again(w);
	} else {
		go_on(w);
	}
}

static void end_seek(struct peer_worker *w)
{
	if (w->seen.over)
		conclude_when_kept(w);
	else if (w->task_id[0])
		go_on(w);
	else if (w->leaving)
		w->ask.allowed
			? rt_peer_stopped(w)
			: rt_peer_stopped_here_alone(w, "it is not known whether the peer has got "
							"the message");
	else if (w->ask.allowed)
		send_again(w, UAR_PEER_IDLE);
	else if (!again_is_answered(w))
		rt_peer_ask_again(w);
}

/* After a stream that reported the end the task is fetched: it has everything. */
static void end_stream(struct peer_worker *w)
{
	if (w->seen.over && w->task_id[0] && w->can.streams)
		began(w, PEER_CHECKS, rt_peer_ops(w)->get(w->remote, task_of(w), UAR_STR("")));
	else if (w->seen.over)
		conclude_when_kept(w);
	else {
		if (w->doing == PEER_FOLLOWS) /* an answer that is no stream is one that was cut */
			w->cuts = w->news ? 1 : w->cuts + 1;
		go_on(w);
	}
}

static void end_well(struct peer_worker *w)
{
	switch (w->doing) {
	case PEER_SENDS:
	case PEER_FOLLOWS: end_stream(w); return;
	case PEER_LOOKS: end_look(w); return;
	case PEER_SEEKS: end_seek(w); return;
	case PEER_CHECKS: conclude_when_kept(w); return;
	case PEER_OPENS:
	case PEER_CANCELS:
	case PEER_CONFIRMS:
	case PEER_RESTS: return;
	}
}

static void end_cut(struct peer_worker *w)
{
	w->cuts = w->news ? 1 : w->cuts + 1;
	if (w->task_id[0])
		rt_peer_look(w, PEER_LOOKS);
	else
		rt_peer_lost(w, "the connection to the peer ended", 0);
}

/* The task may be at work without a word: it is asked for, and then followed again. */
static void end_quiet(struct peer_worker *w, const char *why)
{
	if (w->task_id[0])
		rt_peer_look(w, PEER_LOOKS);
	else
		rt_peer_lost(w, why, 0);
}

/* Uses another operation instead of the one that the peer does not support. */
static void end_unsupported(struct peer_worker *w, const char *why)
{
	if (w->doing == PEER_SENDS && w->can.streams) {
		w->can.streams = false;
		send_message(w);
	} else if (w->doing == PEER_FOLLOWS) {
		w->cuts = UAR_LIMIT_PEER_CUTS; /* it may be over, or has no streams */
		rt_peer_look(w, PEER_LOOKS);
	} else if (w->doing == PEER_SEEKS && w->leaving) {
		rt_peer_stopped_here_alone(w, why);
	} else if (w->doing == PEER_SEEKS) {
		if (!again_is_answered(w))
			rt_peer_ask_again(w);
	} else {
		rt_peer_fail(w, "PEER_REFUSED", "peer", uar_str_c(why));
	}
}

static void end_badly(struct peer_worker *w, const struct uar_remote_end *end)
{
	const char *code = end->how == UAR_REMOTE_BROKEN ? "PEER_INVALID" : "PEER_REFUSED";

	if (end->how == UAR_REMOTE_CUT)
		end_cut(w);
	else if (end->how == UAR_REMOTE_QUIET)
		end_quiet(w, end->reason);
	else if (end->how == UAR_REMOTE_UNREACHABLE || (w->doing == PEER_OPENS && w->task_id[0]))
		rt_peer_lost(w, end->reason, end->retry_after_us);
	else if (end->how == UAR_REMOTE_NOT_THERE)
		rt_peer_missing(w);
	else if (end->how == UAR_REMOTE_UNSUPPORTED)
		end_unsupported(w, end->reason);
	else if (end->how == UAR_REMOTE_NO_MEMORY)
		rt_peer_give_up(w, UAR_ENOMEM, end->reason);
	else
		rt_peer_fail(w, code, "peer", uar_str_c(end->reason));
}

void rt_peer_on_end(void *ctx, const struct uar_remote_end *end)
{
	struct peer_worker *w = ctx;

	w->held = false;
	if (w->doing == PEER_RESTS)
		return; /* the run has ended meanwhile */
	if (w->doing == PEER_CANCELS || w->doing == PEER_CONFIRMS)
		rt_peer_end_cancel(w, end);
	else if (end->how == UAR_REMOTE_DONE || w->doing == PEER_CHECKS)
		end_well(w); /* what the stream said counts when the task cannot be asked for */
	else if (w->leaving)
		rt_peer_stopped_here_alone(w, end->reason);
	else
		end_badly(w, end);
}
