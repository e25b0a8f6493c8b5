/* outbox.c - messages for other runtimes leave, one after the other, until each is
 * answered.
 *
 * A message is in the outbox before anybody is told that it is sent. What the peer
 * answered is a fact behind it: delivered, or refused for good. Whatever has no answer is
 * sent, again after a while if nobody knows whether it arrived, also by the next process; the
 * peer tells by the message's id that it has it. All that is known about an outbox is
 * where its first message without an answer stands, and that is found in the log. */
#include "event/limits.h"
#include "mail/limits.h"
#include "mail/mail_int.h"

static const int64_t FIRST_WAIT_US = 500000, LONGEST_WAIT_US = 60000000,
		     LONGEST_ASKED_US = 3600000000;

enum state {
	LOOKING, /* for the last answer */
	IDLE,
	READING, /* the next message */
	SENDING,
	NOTING, /* what the peer answered */
	WAITING,
};

struct outbox {
	struct rt_op under_way; /* LOOKING, READING, NOTING */
	struct uar_mailer *ml;
	struct uar_owner owner;
	uar_str peer, session_id, key;
	struct uar_arena own; /* of those */
	enum state state;
	bool found;  /* where it stands */
	bool narrow; /* a page has damage in it: one event at a time, until that is passed */
	bool more, stopped;
	uint64_t cursor; /* all up to here is answered */
	struct {
		uint64_t last, back; /* the last sequence, and how far back this look goes */
	} looking;
	uint64_t at; /* the message at work */
	unsigned tries;
	struct uar_timer timer;
	struct uar_thread_query session;
	struct uar_read read;
	struct uar_blob_get blob;
	struct uar_delivery delivery;
	struct uar_mail note;
	struct uar_arena arena; /* of the message at work */
	uar_str message, message_id;
};

static void next(struct outbox *b);

bool rt_peer_known(const struct uar_mailer *ml, uar_str peer)
{
	uar_str name;

	for (size_t i = 0; ml->peers && (name = ml->peers->ops->at(ml->peers, i)).n; i++)
		if (uar_str_eq(name, peer))
			return true;
	return false;
}

/* --- waits ------------------------------------------------------------------------------- */

static void dropped(struct rt_op *under_way)
{
	(void)under_way; /* the outbox goes with the runtime */
}

static void begin_op(struct outbox *b, enum state state)
{
	b->state = state;
	rt_op_begin(b->ml->rt, &b->under_way, dropped);
}

static void end_op(struct outbox *b)
{
	b->state = IDLE;
	rt_op_end(&b->under_way);
}

static void find(struct outbox *b);

static void waited(struct uar_timer *t)
{
	struct outbox *b = UAR_OWNER(t, struct outbox, timer);

	b->state = IDLE;
	if (b->found)
		next(b);
	else
		find(b);
}

/* Longer each time, and not all peers at one moment. */
static void wait(struct outbox *b, int64_t asked_us, const char *why)
{
	int64_t us = FIRST_WAIT_US << (b->tries < 8 ? b->tries : 8);

	if (us > LONGEST_WAIT_US)
		us = LONGEST_WAIT_US;
	us += (int64_t)(uar_rand_u64(rt_rand(b->ml->rt)) % (uint64_t)(us / 4));
	if (asked_us > LONGEST_ASKED_US)
		asked_us = LONGEST_ASKED_US;
	if (us < asked_us)
		us = asked_us;
	uar_log(rt_log(b->ml->rt), b->tries ? UAR_LOG_DEBUG : UAR_LOG_WARN, "a2a.not_delivered",
		{ "peer", b->peer }, { "message_id", b->message_id }, { "reason", uar_str_c(why) });
	b->tries++;
	b->state = WAITING;
	if (b->stopped || rt_is_draining(b->ml->rt))
		return;
	b->timer.fn = waited;
	if (uar_timer_set(rt_sched(b->ml->rt), &b->timer, us))
		b->state = IDLE; /* the next message brings it on its way */
}

/* --- the answer --------------------------------------------------------------------------- */

static void noted(struct uar_mail *m)
{
	struct outbox *b = m->ctx;

	end_op(b);
	if (m->err) {
		wait(b, 0, uar_err_text(m->err)); /* and then it is sent once more */
		return;
	}
	b->cursor = b->at;
	b->tries = 0;
	next(b);
}

static void note(struct outbox *b)
{
	bool delivered = b->delivery.how == UAR_DELIVERED;
	uar_err e = UAR_ENOMEM;

	if (!delivered)
		uar_log(rt_log(b->ml->rt), UAR_LOG_WARN, "a2a.refused", { "peer", b->peer },
			{ "message_id", b->message_id },
			{ "reason", uar_str_c(b->delivery.reason) });
	b->note = (struct uar_mail){
		.owner = b->owner,
		.peer = b->peer,
		.message_id = b->message_id,
		.preview =
			uar_arena_printf(&b->arena, "%s: %s", delivered ? "delivered" : "refused",
					 b->delivery.reason),
		.native_ids = uar_arena_printf(&b->arena, "{\"answers\":%llu}",
					       (unsigned long long)b->at),
		.answer = true,
		.done = noted,
		.ctx = b,
	};
	if (b->note.preview.p && b->note.native_ids.p)
		e = uar_mailer_deliver(b->ml, &b->note);
	if (e)
		wait(b, 0, uar_err_text(e));
	else
		begin_op(b, NOTING);
}

static void delivered(struct uar_delivery *d)
{
	struct outbox *b = UAR_OWNER(d, struct outbox, delivery);

	b->state = IDLE;
	if (d->how == UAR_DELIVERY_FAILED)
		wait(b, d->retry_after_us, d->reason);
	else
		note(b);
}

/* --- the message ---------------------------------------------------------------------------- */

static void send(struct outbox *b)
{
	struct uar_peers *peers = b->ml->peers;
	uar_err e;

	if (b->stopped || rt_is_draining(b->ml->rt))
		return;
	b->delivery =
		(struct uar_delivery){ .peer = b->peer, .message = b->message, .done = delivered };
	e = peers->ops->deliver(peers, &b->delivery);
	if (e)
		wait(b, 0, uar_err_text(e));
	else
		b->state = SENDING;
}

/* Those behind it shall not wait for ever. */
static void give_up(struct outbox *b)
{
	if (!b->message_id.n)
		b->message_id = UAR_STR("unreadable");
	b->delivery = (struct uar_delivery){ .how = UAR_DELIVERY_REFUSED };
	snprintf(b->delivery.reason, sizeof b->delivery.reason, "what is stored is damaged");
	note(b);
}

static void blob_ready(struct uar_blob_get *get)
{
	struct outbox *b = UAR_OWNER(get, struct outbox, blob);
	uar_err e = get->err;

	if (!e) {
		b->message = uar_arena_str(&b->arena, get->bytes);
		e = b->message.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_store_blob_get_fini(get);
	end_op(b);
	if (e == UAR_ECORRUPT || e == UAR_ENOTFOUND)
		give_up(b);
	else if (e)
		wait(b, 0, uar_err_text(e));
	else
		send(b);
}

static uar_err fetch(struct outbox *b, const struct uar_event *ev)
{
	struct uar_store *store = rt_store(b->ml->rt);
	uar_str sha256;
	uar_err e = uar_event_blob(ev, "content_ref", &b->arena, &sha256);

	if (!e && !sha256.n)
		e = UAR_ECORRUPT;
	if (e)
		return e;
	b->blob = (struct uar_blob_get){ .limit = UAR_LIMIT_A2A_MESSAGE, .done = blob_ready };
	memcpy(b->blob.sha256, sha256.p, sizeof b->blob.sha256 - 1);
	return store->ops->blob_get(store, &b->blob);
}

static bool has(const struct uar_json *payload, const char *key, const char *value)
{
	return uar_str_is(uar_json_text(payload, key), value);
}

/* Its text and its id outlive the page. */
static uar_err take(struct outbox *b, const struct uar_json *payload)
{
	const struct uar_json *content = uar_json_get(payload, UAR_STR("content"));

	b->message_id = uar_arena_str(&b->arena, uar_json_text(payload, "message_id"));
	b->message = content ? uar_arena_str(&b->arena, content->text) : UAR_STR_NONE;
	return b->message_id.p && (b->message.p || !content) ? UAR_OK : UAR_ENOMEM;
}

/* The first message of the page, or UAR_ESKIP. */
static uar_err first_of(struct outbox *b, struct uar_read *r, const struct uar_event **out)
{
	for (size_t i = 0; i < r->event_count; i++) {
		const struct uar_json *payload = NULL;
		uar_err e = uar_event_payload(&r->events[i], &r->arena, &payload, NULL);

		b->at = r->events[i].sequence;
		if (e)
			return e == UAR_ENOMEM ? e : UAR_ECORRUPT;
		if (has(payload, "kind", "a2a") && has(payload, "direction", "out")) {
			*out = &r->events[i];
			return take(b, payload);
		}
		b->cursor = r->events[i].sequence;
	}
	return UAR_ESKIP;
}

/* The page, or one event of it, is damaged. */
static void pass_damage(struct outbox *b)
{
	bool wide = !b->narrow;

	b->narrow = wide;
	if (wide) {
		next(b);
		return;
	}
	b->at = b->cursor + 1;
	give_up(b);
}

static void page_ready(struct uar_read *r)
{
	struct outbox *b = UAR_OWNER(r, struct outbox, read);
	const struct uar_event *ev = NULL;
	bool more = r->more, unread = r->err == UAR_ECORRUPT;
	uar_err e = r->err ? r->err : first_of(b, r, &ev);

	if (!e && !b->message.n)
		e = fetch(b, ev);
	uar_store_read_fini(r);
	if (!e && !b->message.n)
		return; /* the operation goes on with its bytes */
	end_op(b);
	b->more |= more;
	if (!e)
		send(b);
	else if (unread)
		pass_damage(b);
	else if (e == UAR_ECORRUPT)
		give_up(b);
	else if (e == UAR_ESKIP && b->more)
		next(b);
	else if (e != UAR_ESKIP && e != UAR_ENOTFOUND)
		wait(b, 0, uar_err_text(e));
}

static void next(struct outbox *b)
{
	struct uar_store *store = rt_store(b->ml->rt);
	uar_err e;

	if (!b->found || b->state != IDLE || b->stopped || rt_is_draining(b->ml->rt))
		return;
	b->more = false;
	b->message = b->message_id = UAR_STR_NONE;
	uar_arena_reset(&b->arena);
	b->read = (struct uar_read){
		.owner = b->owner,
		.session_id = b->session_id,
		.after = b->cursor,
		.limit = b->narrow ? 1 : UAR_LIMIT_A2A_PAGE,
		.done = page_ready,
	};
	e = store->ops->read(store, &b->read);
	if (e)
		wait(b, 0, uar_err_text(e));
	else
		begin_op(b, READING);
}

/* --- where it stands, after a start ----------------------------------------------------- */

static uint64_t answered(const struct uar_event *ev, struct uar_arena *arena)
{
	const struct uar_json *payload = NULL;

	if (ev->cls != UAR_EV_CHANNEL_MESSAGE || uar_event_payload(ev, arena, &payload, NULL) ||
	    !has(payload, "kind", "status"))
		return 0;
	payload = uar_json_get(payload, UAR_STR("native_ids"));
	return (uint64_t)uar_json_int(uar_json_get(payload, UAR_STR("answers")), 0);
}

static void look(struct outbox *b, uint64_t after);
static void look_back(struct outbox *b);

static void begin(struct outbox *b)
{
	b->found = true;
	b->narrow = false;
	b->tries = 0;
	next(b);
}

/* What is damaged says nothing; what is behind it may. */
static uint64_t look_past(struct outbox *b, uint64_t after)
{
	b->narrow = !b->narrow;
	return b->narrow ? after : after + 1;
}

static void look_ready(struct uar_read *r)
{
	struct outbox *b = UAR_OWNER(r, struct outbox, read);
	uar_err e = r->err;
	uint64_t last = r->event_count ? r->events[r->event_count - 1].sequence : 0;
	bool more = r->more;

	if (e == UAR_ECORRUPT && r->after < b->looking.last) {
		last = look_past(b, r->after);
		more = last < b->looking.last;
		e = UAR_OK;
	}
	for (size_t i = 0; i < r->event_count && !e; i++) {
		uint64_t seen = answered(&r->events[i], &r->arena);

		b->cursor = seen > b->cursor ? seen : b->cursor;
	}
	uar_store_read_fini(r);
	end_op(b);
	if (e)
		wait(b, 0, uar_err_text(e));
	else if (more)
		look(b, last);
	else if (b->cursor || b->looking.back >= b->looking.last)
		begin(b);
	else
		look_back(b);
}

static void look(struct outbox *b, uint64_t after)
{
	struct uar_store *store = rt_store(b->ml->rt);
	uar_err e;

	b->read = (struct uar_read){
		.owner = b->owner,
		.session_id = b->session_id,
		.after = after,
		.limit = b->narrow ? 1 : UAR_LIMIT_READ_PAGE,
		.done = look_ready,
	};
	e = store->ops->read(store, &b->read);
	if (e)
		wait(b, 0, uar_err_text(e));
	else
		begin_op(b, LOOKING);
}

/* From further back than before, to the end. */
static void look_back(struct outbox *b)
{
	if (b->stopped || rt_is_draining(b->ml->rt))
		return;
	b->looking.back = b->looking.back ? b->looking.back * 4 : UAR_LIMIT_A2A_LOOK;
	look(b, b->looking.last > b->looking.back ? b->looking.last - b->looking.back : 0);
}

static void session_ready(struct uar_thread_query *q)
{
	struct outbox *b = UAR_OWNER(q, struct outbox, session);
	uar_err e = q->err;

	end_op(b);
	b->looking.last = e ? 0 : q->last_sequence;
	b->looking.back = 0;
	if (e == UAR_ENOTFOUND)
		begin(b);
	else if (e)
		wait(b, 0, uar_err_text(e));
	else
		look_back(b);
}

static void find(struct outbox *b)
{
	struct uar_store *store = rt_store(b->ml->rt);
	uar_err e;

	if (b->stopped || rt_is_draining(b->ml->rt))
		return;
	b->session = (struct uar_thread_query){ .owner = b->owner,
						.session_id = b->session_id,
						.done = session_ready };
	e = store->ops->thread(store, &b->session);
	if (e)
		wait(b, 0, uar_err_text(e));
	else
		begin_op(b, LOOKING);
}

/* --- life ------------------------------------------------------------------------------- */

static void free_outbox(struct outbox *b)
{
	if (b->state == SENDING)
		b->ml->peers->ops->cancel(b->ml->peers, &b->delivery);
	uar_timer_stop(rt_sched(b->ml->rt), &b->timer);
	uar_map_remove(&b->ml->out, b->key);
	uar_arena_fini(&b->own);
	uar_arena_fini(&b->arena);
	uar_free(b);
}

static uar_err own_identity(struct outbox *b, const struct uar_owner *owner, uar_str peer)
{
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	uar_err e = uar_outbox_session(peer, session_id);
	struct rt_key k;

	if (e)
		return e;
	b->peer = uar_arena_str(&b->own, peer);
	b->session_id = uar_arena_str(&b->own, uar_str_c(session_id));
	b->key = uar_arena_str(&b->own, rt_key(&k, owner, uar_str_c(session_id)));
	if (!b->peer.p || !b->session_id.p || !b->key.p ||
	    !uar_owner_copy(&b->own, owner, &b->owner))
		return UAR_ENOMEM;
	return UAR_OK;
}

/* One that cannot be opened now is opened by its next message, or the next start. */
static void open_outbox(struct uar_mailer *ml, const struct uar_owner *owner, uar_str peer)
{
	struct outbox *b = uar_zalloc(sizeof *b);
	uar_err e = UAR_ENOMEM;

	if (b) {
		b->ml = ml;
		uar_list_init(&b->under_way.node);
		e = own_identity(b, owner, peer);
		if (!e)
			e = uar_map_put(&ml->out, b->key, b);
		b->state = IDLE;
		if (e)
			free_outbox(b);
		else
			find(b);
	}
	if (e)
		uar_log(rt_log(ml->rt), UAR_LOG_WARN, "a2a.outbox_not_opened", { "peer", peer },
			{ "reason", uar_str_c(uar_err_text(e)) });
}

void rt_outbox_kick(struct uar_mailer *ml, const struct uar_owner *owner, uar_str peer)
{
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	struct outbox *b = NULL;
	struct rt_key k;

	if (uar_outbox_session(peer, session_id))
		return;
	b = uar_map_get(&ml->out, rt_key(&k, owner, uar_str_c(session_id)));
	if (!b) {
		open_outbox(ml, owner, peer);
		return;
	}
	b->more = true;
	next(b);
}

void uar_mailer_wake_outboxes(struct uar_mailer *ml, const struct uar_owner *owner)
{
	uar_str name;

	for (size_t i = 0; ml->peers && (name = ml->peers->ops->at(ml->peers, i)).n; i++)
		rt_outbox_kick(ml, owner, name);
}

void rt_outboxes_stop(struct uar_mailer *ml)
{
	struct outbox *b;
	size_t at = 0;

	while ((b = uar_map_next(&ml->out, &at))) {
		b->stopped = true;
		uar_timer_stop(rt_sched(ml->rt), &b->timer);
		if (b->state != SENDING)
			continue;
		ml->peers->ops->cancel(ml->peers, &b->delivery);
		b->state = IDLE;
	}
}

void rt_outboxes_fini(struct uar_mailer *ml)
{
	struct outbox *b;
	size_t at = 0;

	while ((b = uar_map_next(&ml->out, &at)))
		free_outbox(b);
	uar_map_fini(&ml->out);
}
