/* inbox.c - how messages for agents are kept, and what those that ask for something do.
 *
 * The messages of one inbox are taken one after the other, so that what is known about an
 * id does not change while it is looked at. A message is claimed by its id in the very
 * append that keeps it; who comes second is answered from the first one's event.
 *
 * One that cancels a run does so before it is kept. A kill in between leaves a run that
 * is being cancelled and a sender who was told nothing and sends again; there is no moment
 * at which the message is kept and its cancel could be forgotten. */
#include "event/limits.h"
#include "mail/limits.h"
#include "mail/mail_int.h"

enum { NUMBER = 24 };

/* The inbox of one agent, or the outbox for a peer, in memory while messages are on their
 * way into it. */
struct inbox {
	struct rt_op under_way;
	struct uar_mailer *ml;
	struct uar_session state;
	uar_str key;
	struct uar_arena own;  /* owner, session id and key */
	struct uar_list queue; /* of struct uar_mail; the first is at work */
	size_t waiting;
	bool known; /* its last sequence */
	/* The steps of the one at work: */
	struct uar_key_query known_id;
	struct uar_runs_query row;
	struct uar_run_cancel_op cancel;
	struct uar_blob_put blob;
	struct uar_thread_query session;
	struct uar_append append;
	struct uar_read read;
	struct uar_key_row id;
	char number[NUMBER]; /* its sequence, which its id stands for */
	unsigned tries;
	struct uar_arena arena; /* of the append */
	struct uar_buf buf;
};

static uar_err keep(struct inbox *b);

uar_err uar_inbox_session(uar_str agent_id, char out[UAR_LIMIT_ID_BYTES + 1])
{
	if (!uar_str_is_id(agent_id) || agent_id.n > UAR_LIMIT_A2A_AGENT ||
	    uar_str_find(agent_id, '@') < agent_id.n)
		return UAR_EINVALID;
	snprintf(out, UAR_LIMIT_ID_BYTES + 1, "uar.inbox:%.*s", UAR_FMT(agent_id));
	return UAR_OK;
}

uar_err uar_channel_session(uar_str channel, char out[UAR_LIMIT_ID_BYTES + 1])
{
	if (!uar_str_is_id(channel) || channel.n > UAR_LIMIT_A2A_AGENT)
		return UAR_EINVALID;
	snprintf(out, UAR_LIMIT_ID_BYTES + 1, "uar.mcp:%.*s", UAR_FMT(channel));
	return UAR_OK;
}

uar_err uar_outbox_session(uar_str peer, char out[UAR_LIMIT_ID_BYTES + 1])
{
	if (!uar_peer_name_valid(peer))
		return UAR_EINVALID;
	snprintf(out, UAR_LIMIT_ID_BYTES + 1, "uar.outbox:%.*s", UAR_FMT(peer));
	return UAR_OK;
}

static struct uar_mail *at_work(const struct inbox *b)
{
	return UAR_OWNER(b->queue.next, struct uar_mail, node);
}

/* --- life ---------------------------------------------------------------------------- */

static void free_inbox(struct inbox *b)
{
	uar_map_remove(&b->ml->in, b->key);
	uar_arena_fini(&b->own);
	uar_arena_fini(&b->arena);
	uar_buf_fini(&b->buf);
	uar_free(b);
}

static void drop(struct rt_op *under_way)
{
	free_inbox(UAR_OWNER(under_way, struct inbox, under_way));
}

static uar_err begin(struct inbox *b);

static void give_back(struct inbox *b, uar_err e, const struct uar_error *error)
{
	struct uar_mail *m = at_work(b);

	uar_list_remove(&m->node);
	b->waiting--;
	m->err = e;
	if (error && error->text[0]) /* else it is there already */
		m->error = *error;
	m->error.code = e;
	m->done(m);
}

/* The one at work is done with. Who is told may send the next. */
static void settle(struct inbox *b, uar_err e, const struct uar_error *error)
{
	give_back(b, e, error);
	while (!uar_list_empty(&b->queue)) {
		e = begin(b);
		if (!e)
			return;
		give_back(b, e, &at_work(b)->error);
	}
	rt_op_end(&b->under_way);
	free_inbox(b);
}

/* A step that could not be begun ends the message. */
static void go_on(struct inbox *b, uar_err e, const struct uar_error *error)
{
	if (e)
		settle(b, e, error);
}

/* --- one that is there already ------------------------------------------------------- */

static enum uar_message_effect effect_of(struct uar_read *r)
{
	const struct uar_json *payload = NULL;

	if (r->event_count != 1 || uar_event_payload(&r->events[0], &r->arena, &payload, NULL))
		return UAR_MESSAGE_EFFECT_NONE;
	payload = uar_json_get(payload, UAR_STR("effect"));
	return uar_message_effect_parse(uar_json_text(payload, "result"));
}

static void first_ready(struct uar_read *r)
{
	struct inbox *b = UAR_OWNER(r, struct inbox, read);
	struct uar_mail *m = at_work(b);
	struct uar_error error = r->error;
	uar_err e = r->err;

	m->existed = true;
	m->effect = e ? UAR_MESSAGE_EFFECT_NONE : effect_of(r);
	uar_store_read_fini(r);
	settle(b, e, &error);
}

static uar_err repeat(struct inbox *b, uar_str fingerprint, uar_str number)
{
	struct uar_store *store = rt_store(b->ml->rt);
	struct uar_mail *m = at_work(b);

	if (!uar_str_eq(fingerprint, m->fingerprint)) {
		uar_error_where(&m->error, "/message_id");
		return uar_error_set(&m->error, UAR_EKEYREUSED,
				     "another message for this agent has the same message_id");
	}
	if (uar_str_u64(number, &m->sequence) || !m->sequence)
		return UAR_ECORRUPT;
	b->read = (struct uar_read){
		.owner = b->state.owner,
		.session_id = b->state.session_id,
		.after = m->sequence - 1,
		.limit = 1,
		.done = first_ready,
	};
	return store->ops->read(store, &b->read);
}

/* --- kept ------------------------------------------------------------------------------ */

static void appended(struct uar_append *a)
{
	struct inbox *b = UAR_OWNER(a, struct inbox, append);
	struct uar_error error = a->error;
	uar_err e = a->err;

	if (!e) {
		const struct uar_event *last = &a->events[a->event_count - 1];

		b->state.sequence = at_work(b)->sequence = last->sequence;
		rt_publish(b->ml->rt, b->key, a);
		if (at_work(b)->peer.n && !at_work(b)->answer)
			rt_outbox_kick(b->ml, &b->state.owner, at_work(b)->peer);
		settle(b, UAR_OK, NULL);
		return;
	}
	if (e == UAR_EEXISTS) {
		e = repeat(b, a->taken.fingerprint, a->taken.made);
		go_on(b, e, &at_work(b)->error);
		return;
	}
	if (e == UAR_ECONFLICT && ++b->tries < UAR_LIMIT_A2A_TRIES) {
		b->known = false;
		e = keep(b);
	}
	go_on(b, e, &error);
}

static struct uar_message facts_of(const struct inbox *b, const struct uar_mail *m)
{
	bool inline_ = m->content.n <= UAR_LIMIT_A2A_INLINE;

	return (struct uar_message){
		.channel_id = b->state.session_id,
		.agent_id = m->peer.n ? m->peer : m->agent_id,
		.message_id = m->message_id,
		.preview = m->preview,
		.kind = m->channel.n ? "protocol"
			: m->answer  ? "status"
				     : "a2a",
		.source = m->channel.n ? "channel" : "a2a",
		.out = m->channel.n ? m->leaves : m->peer.n && !m->answer,
		.native_ids = m->native_ids,
		.content = inline_ ? m->content : UAR_STR_NONE,
		.blob = inline_ ? UAR_STR_NONE : uar_str_c(b->blob.sha256),
		.bytes = (int64_t)m->content.n,
		.effect = m->effect,
		.run_id = m->run_id,
	};
}

/* An id is one message of a recipient, of whom an outbox has many. */
static uar_err claim(struct inbox *b, const struct uar_mail *m, uint64_t sequence)
{
	uar_str scope = b->state.session_id;

	if (m->peer.n)
		scope = uar_arena_printf(&b->arena, "%.*s/%.*s", UAR_FMT(scope),
					 UAR_FMT(m->agent_id));
	snprintf(b->number, sizeof b->number, "%llu", (unsigned long long)sequence);
	b->id = (struct uar_key_row){ scope, m->message_id, m->fingerprint, uar_str_c(b->number) };
	return scope.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err append(struct inbox *b)
{
	struct uar_mail *m = at_work(b);
	struct uar_message facts = facts_of(b, m);
	struct uar_session s = b->state;
	struct uar_decision d = { 0 };
	struct uar_core_env env = {
		.now_us = uar_clock_wall(rt_sched(b->ml->rt)->clock),
		.ids = rt_ids(b->ml->rt),
		.arena = &b->arena,
		.buf = &b->buf,
	};
	uar_err e;

	uar_arena_reset(&b->arena);
	e = uar_core_message(&env, &s, &facts, &d, &m->error);
	if (e)
		return e;
	e = m->channel.n ? UAR_OK : claim(b, m, s.sequence);
	if (e)
		return e;
	b->append = (struct uar_append){
		.owner = b->state.owner,
		.session_id = b->state.session_id,
		.after = b->state.sequence,
		.events = d.events,
		.event_count = d.event_count,
		.key = m->answer || m->channel.n ? NULL : &b->id,
		.done = appended,
	};
	return rt_append(b->ml->rt, &b->append);
}

static void session_ready(struct uar_thread_query *q)
{
	struct inbox *b = UAR_OWNER(q, struct inbox, session);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (!e) {
		b->state.sequence = q->err ? 0 : q->last_sequence;
		b->known = true;
		e = append(b);
	}
	go_on(b, e, &q->error);
}

static void blob_ready(struct uar_blob_put *p)
{
	struct inbox *b = UAR_OWNER(p, struct inbox, blob);
	uar_err e = p->err ? p->err : keep(b);

	go_on(b, e, &p->error);
}

/* Its bytes, if they are many, then where the inbox ends, then the event. */
static uar_err keep(struct inbox *b)
{
	struct uar_store *store = rt_store(b->ml->rt);
	const struct uar_mail *m = at_work(b);

	if (m->content.n > UAR_LIMIT_A2A_INLINE && !b->blob.sha256[0]) {
		b->blob = (struct uar_blob_put){ .bytes = m->content, .done = blob_ready };
		return store->ops->blob_put(store, &b->blob);
	}
	if (b->known)
		return append(b);
	b->session = (struct uar_thread_query){
		.owner = b->state.owner,
		.session_id = b->state.session_id,
		.done = session_ready,
	};
	return store->ops->thread(store, &b->session);
}

/* --- one that cancels a run -------------------------------------------------------------- */

static void cancelled(struct uar_run_cancel_op *op)
{
	struct inbox *b = UAR_OWNER(op, struct inbox, cancel);
	uar_err e = op->err == UAR_ENOTFOUND ? UAR_OK : op->err; /* it has just been evicted */

	at_work(b)->effect = op->err	? UAR_MESSAGE_EFFECT_UNKNOWN
			     : op->over ? UAR_MESSAGE_EFFECT_OVER
					: UAR_MESSAGE_EFFECT_REQUESTED;
	if (!e)
		e = keep(b);
	go_on(b, e, &op->error);
}

/* Who asks for the run of another agent is told what who asks for none is told. */
static uar_err judge(struct inbox *b, uar_str agent_id, bool over)
{
	struct uar_mail *m = at_work(b);

	if (!uar_str_eq(agent_id, m->agent_id) || over) {
		m->effect = uar_str_eq(agent_id, m->agent_id) ? UAR_MESSAGE_EFFECT_OVER
							      : UAR_MESSAGE_EFFECT_UNKNOWN;
		return keep(b);
	}
	b->cancel = (struct uar_run_cancel_op){
		.owner = b->state.owner,
		.run_id = m->run_id,
		.reason = m->reason,
		.done = cancelled,
	};
	return uar_runtime_cancel_run(b->ml->rt, &b->cancel);
}

static void row_ready(struct uar_runs_query *q)
{
	struct inbox *b = UAR_OWNER(q, struct inbox, row);
	struct uar_error error = q->error;
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (!e)
		e = judge(b, q->err ? UAR_STR_NONE : q->rows[0].agent_id,
			  !q->err && q->rows[0].terminal);
	uar_store_query_fini(q);
	go_on(b, e, &error);
}

static uar_err look_at_run(struct inbox *b)
{
	struct uar_store *store = rt_store(b->ml->rt);
	const struct uar_mail *m = at_work(b);
	const struct uar_run *run = rt_live_run(b->ml->rt, &b->state.owner, m->run_id);

	if (run)
		return judge(b, run->what.agent_id, false);
	b->row = (struct uar_runs_query){
		.owner = b->state.owner, .run_id = m->run_id, .limit = 1, .done = row_ready
	};
	return store->ops->runs(store, &b->row);
}

/* What was done once is not done again, and not for an id that means something else. */
static void known_ready(struct uar_key_query *q)
{
	struct inbox *b = UAR_OWNER(q, struct inbox, known_id);
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (e == UAR_ENOTFOUND)
		e = look_at_run(b);
	else if (!e)
		e = repeat(b, uar_str_c(q->fingerprint), uar_str_c(q->made));
	if (e == UAR_EKEYREUSED)
		error = at_work(b)->error;
	go_on(b, e, &error);
}

/* --- in -------------------------------------------------------------------------------------- */

static uar_err begin(struct inbox *b)
{
	struct uar_store *store = rt_store(b->ml->rt);
	struct uar_mail *m = at_work(b);

	b->tries = 0;
	b->blob.sha256[0] = 0;
	m->existed = false;
	m->effect = UAR_MESSAGE_EFFECT_NONE;
	if (!m->run_id.n)
		return keep(b);
	b->known_id = (struct uar_key_query){
		.owner = b->state.owner,
		.scope = b->state.session_id,
		.key = m->message_id,
		.done = known_ready,
	};
	return store->ops->key(store, &b->known_id);
}

static uar_err own_identity(struct inbox *b, const struct uar_owner *owner, uar_str session_id)
{
	uar_str id = uar_arena_str(&b->own, session_id);
	struct uar_owner mine;
	struct rt_key k;

	b->key = uar_arena_str(&b->own, rt_key(&k, owner, session_id));
	if (!id.p || !b->key.p || !uar_owner_copy(&b->own, owner, &mine))
		return UAR_ENOMEM;
	uar_session_init(&b->state, &mine, uar_str_c(rt_store(b->ml->rt)->runtime_id), id);
	return uar_map_put(&b->ml->in, b->key, b);
}

static uar_err open_inbox(struct uar_mailer *ml, struct uar_mail *m, uar_str session_id)
{
	struct inbox *b = uar_zalloc(sizeof *b);
	uar_err e;

	if (!b)
		return UAR_ENOMEM;
	b->ml = ml;
	b->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_list_init(&b->queue);
	e = own_identity(b, &m->owner, session_id);
	if (!e) {
		uar_list_add_last(&b->queue, &m->node);
		b->waiting++;
		e = begin(b);
	}
	if (e)
		free_inbox(b);
	else
		rt_op_begin(ml->rt, &b->under_way, drop);
	return e;
}

uar_err uar_mailer_deliver(struct uar_mailer *ml, struct uar_mail *m)
{
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	struct inbox *b;
	struct rt_key k;
	uar_err e;

	e = rt_takes_new(ml->rt);
	if (e)
		return e;
	if (m->peer.n && !rt_peer_known(ml, m->peer))
		return UAR_ENOTFOUND;
	e = m->channel.n ? uar_channel_session(m->channel, session_id)
	    : m->peer.n	 ? uar_outbox_session(m->peer, session_id)
			 : uar_inbox_session(m->agent_id, session_id);
	if (e)
		return e;
	b = uar_map_get(&ml->in, rt_key(&k, &m->owner, uar_str_c(session_id)));
	if (!b)
		return open_inbox(ml, m, uar_str_c(session_id));
	if (b->waiting >= UAR_LIMIT_A2A_WAITING)
		return UAR_EBUSY;
	uar_list_add_last(&b->queue, &m->node);
	b->waiting++;
	return UAR_OK;
}
