/* mcp_session.c - sessions of the Model Context Protocol as records of the log.
 *
 * A session in memory is a copy of what its channel says. One that nobody uses may be
 * forgotten at any time: whoever names it again has it read. */
#include "gate/mcp_int.h"
#include "mail/limits.h"

/* --- records ------------------------------------------------------------------------------ */

struct record {
	struct uar_list node; /* in gate_mcp.records */
	struct uar_mail mail;
	struct mcp_session *s;
	struct uar_buf text, label; /* what it says; the part that is in the event in any case */
	char number[UAR_UUID_TEXT + 1];
	bool closes;
	void (*done)(void *ctx, uar_err e, uint64_t sequence);
	void *ctx;
};

static void free_record(struct record *r)
{
	uar_list_remove(&r->node);
	uar_buf_fini(&r->text);
	uar_buf_fini(&r->label);
	uar_free(r);
}

static void recorded(struct uar_mail *mail)
{
	struct record *r = mail->ctx;
	struct mcp_session *s = r->s;
	void (*done)(void *, uar_err, uint64_t) = r->done;
	uint64_t sequence = mail->sequence;
	void *ctx = r->ctx;
	uar_err e = mail->err;

	if (!e && sequence > s->sequence)
		s->sequence = sequence;
	if (e)
		uar_log(s->m->g->o.log, UAR_LOG_ERROR, "mcp.record_lost", { "session", s->id },
			{ "reason", uar_str_c(uar_err_text(e)) });
	free_record(r);
	if (done)
		done(ctx, e, sequence);
	mcp_session_release(s);
}

static void put_raw(struct uar_jw *w, const char *key, uar_str json)
{
	if (json.n)
		uar_jw_raw(w, key, json);
}

static uar_err write_record(const struct mcp_record *r, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "kind", r->kind);
	if (r->stream.n)
		uar_jw_str(&w, "stream", r->stream);
	put_raw(&w, "id", r->id);
	if (r->run_id.n)
		uar_jw_str(&w, "run_id", r->run_id);
	put_raw(&w, "token", r->token);
	put_raw(&w, "message", r->message);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* What a reader has to know of a record that is too long for its event. */
static uar_err write_label(const struct mcp_record *r, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "kind", r->kind);
	uar_jw_str(&w, "stream", r->stream);
	uar_jw_bool(&w, "settles", r->settles);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

uar_err mcp_record_add(struct mcp_session *s, const struct mcp_record *from)
{
	struct record *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->s = s;
	r->done = from->done;
	r->ctx = from->ctx;
	r->text = uar_buf_make(UAR_LIMIT_A2A_MESSAGE);
	r->label = uar_buf_make(256);
	uar_list_add_last(&s->m->records, &r->node);
	uar_uuid_next(&s->m->ids, r->number);
	e = write_record(from, &r->text);
	if (!e)
		e = write_label(from, &r->label);
	r->mail = (struct uar_mail){ .owner = s->owner,
				     .channel = s->id,
				     .leaves = true,
				     .message_id = uar_str_c(r->number),
				     .content = uar_buf_str(&r->text),
				     .preview = uar_str_c(from->kind),
				     .native_ids = uar_buf_str(&r->label),
				     .done = recorded,
				     .ctx = r };
	if (!e)
		e = uar_mailer_deliver(s->m->g->o.mailer, &r->mail);
	if (e)
		free_record(r);
	else
		s->users++;
	return e;
}

/* The text of a string is decoded; of an id the JSON is wanted. */
static uar_str json_of(const struct uar_json *j, struct uar_arena *arena)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ID + 8);
	uar_str out = UAR_STR_NONE;

	if (j && (j->kind == UAR_JSON_STRING || j->kind == UAR_JSON_INT)) {
		uar_json_write(&b, j);
		if (!b.err)
			out = uar_arena_str(arena, uar_buf_str(&b));
	}
	uar_buf_fini(&b);
	return out;
}

static void read_stored(const struct uar_json *j, struct uar_arena *arena, struct mcp_stored *out)
{
	const struct uar_json *message = uar_json_get(j, UAR_STR("message"));

	out->id = json_of(uar_json_get(j, UAR_STR("id")), arena);
	out->token = json_of(uar_json_get(j, UAR_STR("token")), arena);
	out->run_id = uar_json_text(j, "run_id");
	out->message = message ? message->text : UAR_STR_NONE;
}

uar_err mcp_stored_parse(uar_str text, struct uar_arena *arena, struct mcp_stored *out)
{
	const struct uar_json *j;
	uar_err e = uar_json_parse(text, NULL, arena, &j, NULL);

	if (!e)
		read_stored(j, arena, out);
	return e;
}

uar_err mcp_stored_read(const struct uar_event *ev, struct uar_arena *arena, struct mcp_stored *out)
{
	const struct uar_json *payload, *content, *label;
	uar_err e;

	*out = (struct mcp_stored){ 0 };
	if (ev->cls != UAR_EV_CHANNEL_MESSAGE)
		return UAR_ESKIP;
	e = uar_event_payload(ev, arena, &payload, NULL);
	if (e)
		return e;
	label = uar_json_get(payload, UAR_STR("native_ids"));
	out->kind = uar_json_text(label, "kind");
	out->stream = uar_json_text(label, "stream");
	out->settles = uar_json_bool(uar_json_get(label, UAR_STR("settles")), false);
	content = uar_json_get(payload, UAR_STR("content"));
	if (content)
		read_stored(content, arena, out);
	else
		e = uar_event_blob(ev, "content_ref", arena, &out->blob);
	return e ? e : content || out->blob.n ? UAR_OK : UAR_ECORRUPT;
}

/* --- in memory ---------------------------------------------------------------------------- */

static void free_session(struct mcp_session *s)
{
	mcp_session_forget_subscriptions(s);
	uar_map_remove(&s->m->by_id, s->id);
	uar_list_remove(&s->node);
	uar_arena_fini(&s->arena);
	uar_free(s);
}

/* Idle ones are forgotten, the longest unused first. */
static uar_err make_room(struct gate_mcp *m)
{
	if (m->by_id.used < UAR_LIMIT_MCP_SESSIONS)
		return UAR_OK;
	UAR_LIST_EACH (it, &m->sessions) {
		struct mcp_session *s = UAR_OWNER(it, struct mcp_session, node);

		if (s->users == 0) {
			free_session(s);
			return UAR_OK;
		}
	}
	return UAR_ERATELIMIT;
}

static struct mcp_session *make_session(struct gate_mcp *m, const struct uar_owner *owner,
					uar_str id)
{
	struct mcp_session *s = make_room(m) ? NULL : uar_zalloc(sizeof *s);

	if (!s)
		return NULL;
	s->m = m;
	uar_list_init(&s->node);
	uar_list_init(&s->subscriptions);
	uar_arena_init(&s->arena, 0);
	s->id = uar_arena_str(&s->arena, id);
	s->version = UAR_STR(UAR_MCP_LEGACY_SILENT);
	if (!s->id.p || !uar_owner_copy(&s->arena, owner, &s->owner) ||
	    uar_map_put(&m->by_id, s->id, s)) {
		uar_arena_fini(&s->arena);
		uar_free(s);
		return NULL;
	}
	uar_list_add_last(&m->sessions, &s->node);
	s->users = 1;
	return s;
}

void mcp_session_release(struct mcp_session *s)
{
	if (s && --s->users == 0 && s->closed)
		free_session(s);
}

void mcp_stream_name(struct mcp_session *s, char out[MCP_STREAM])
{
	snprintf(out, MCP_STREAM, "r%u", ++s->streams);
}

/* What the first record says; also of one that is read again. */
static uar_err take_facts(struct mcp_session *s, const struct uar_json *facts)
{
	const struct uar_json *caps = uar_json_get(facts, UAR_STR("capabilities"));
	const struct uar_json *info = uar_json_get(facts, UAR_STR("clientInfo"));

	s->version =
		uar_arena_str(&s->arena, mcp_negotiate(uar_json_text(facts, "protocolVersion")));
	s->can = mcp_can(caps);
	if (caps && caps->kind == UAR_JSON_OBJECT)
		s->caps = uar_arena_str(&s->arena, caps->text);
	if (info && info->kind == UAR_JSON_OBJECT)
		s->info = uar_arena_str(&s->arena, info->text);
	return s->version.p ? UAR_OK : UAR_ENOMEM;
}

/* --- a new one ---------------------------------------------------------------------------- */

static void opened(void *ctx, uar_err e, uint64_t sequence)
{
	struct mcp_opening *o = ctx;

	(void)sequence;
	o->err = e;
	if (e) {
		o->s->closed = true;
		mcp_session_release(o->s);
		o->s = NULL;
	}
	o->done(o);
}

enum { OPEN_FACTS = 8192 }; /* bytes of what a client says of itself that are kept */

uar_err mcp_session_open(struct mcp_opening *o)
{
	struct gate_mcp *m = o->c->g->mcp;
	struct mcp_record r = { .kind = "open", .done = opened, .ctx = o };
	char id[UAR_UUID_TEXT + 1], secret[2 * 16 + 1];
	unsigned char raw[16];
	uar_err e = UAR_OK;

	m->g->o.rand->fill(m->g->o.rand->ctx, raw, sizeof raw);
	uar_hex(raw, sizeof raw, secret);
	snprintf(id, sizeof id, "%s", secret);
	o->s = make_session(m, &o->c->owner, uar_str_c(id));
	if (!o->s)
		return UAR_ERATELIMIT;
	if (o->params) {
		if (o->params->text.n <= OPEN_FACTS)
			r.message = o->params->text;
		e = take_facts(o->s, o->params);
	}
	if (!e)
		e = mcp_record_add(o->s, &r);
	if (e) {
		o->s->closed = true;
		mcp_session_release(o->s);
		o->s = NULL;
	}
	return e;
}

/* --- one that is there -------------------------------------------------------------------- */

enum { LOAD_PAGE = 256 };

/* A call of the session whose answer the log does not have so far. */
struct unsettled {
	struct uar_list node;
	struct mcp_stored r;
};

/* A resource that the session is subscribed to. */
struct wanted {
	struct uar_list node;
	uar_str uri;
};

struct waiter {
	struct uar_list node;
	struct call *c;
	mcp_found_fn *then;
	void *ctx;
};

struct load {
	struct uar_list node; /* in gate_mcp.loads */
	struct gate_mcp *m;
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str id, session_id;
	struct uar_events_read read;
	struct uar_list open; /* of struct unsettled */
	struct uar_list uris; /* of struct wanted */
	const char *level;
	struct uar_list waiters; /* of struct waiter, in the arenas of their calls */
	size_t waiting;
	struct uar_arena facts; /* holds the first record */
	const struct uar_json *opened;
	uint64_t sequence;
	unsigned streams;
	bool closed;
};

static void free_load(struct load *l)
{
	uar_list_remove(&l->node);
	uar_arena_fini(&l->facts);
	uar_arena_fini(&l->arena);
	uar_free(l);
}

static uar_err keep_unsettled(struct load *l, const struct mcp_stored *r)
{
	struct unsettled *u = uar_arena_alloc(&l->arena, sizeof *u);
	uar_str *const all[] = { &u->r.stream, &u->r.id, &u->r.run_id, &u->r.token };
	uint64_t number = 0;

	if (!u)
		return UAR_ENOMEM;
	u->r = *r;
	if (!uar_arena_strs(&l->arena, all, ARRAY_LEN(all)))
		return UAR_ENOMEM;
	uar_list_add_last(&l->open, &u->node);
	if (!uar_str_u64(uar_str_from(r->stream, 1), &number) && number > l->streams)
		l->streams = (unsigned)number;
	return UAR_OK;
}

static void settle(struct load *l, uar_str stream)
{
	UAR_LIST_EACH (it, &l->open)
		if (uar_str_eq(UAR_OWNER(it, struct unsettled, node)->r.stream, stream))
			uar_list_remove(it);
}

static void drop_uri(struct load *l, uar_str uri)
{
	UAR_LIST_EACH (it, &l->uris)
		if (uar_str_eq(UAR_OWNER(it, struct wanted, node)->uri, uri))
			uar_list_remove(it);
}

static uar_err keep_uri(struct load *l, uar_str uri)
{
	struct wanted *at = uar_arena_alloc(&l->arena, sizeof *at);

	drop_uri(l, uri);
	if (!at)
		return UAR_ENOMEM;
	at->uri = uar_arena_str(&l->arena, uri);
	uar_list_add_last(&l->uris, &at->node);
	return at->uri.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err fold(struct load *l, const struct uar_event *ev, struct uar_arena *scratch)
{
	struct mcp_stored r;
	uar_err e = mcp_stored_read(ev, scratch, &r);

	l->sequence = ev->sequence;
	if (e)
		return e == UAR_ESKIP ? UAR_OK : e;
	if (uar_str_is(r.kind, "request"))
		return keep_unsettled(l, &r);
	if (uar_str_is(r.kind, "subscribe"))
		return keep_uri(l, r.message);
	if (uar_str_is(r.kind, "unsubscribe"))
		drop_uri(l, r.message);
	if (uar_str_is(r.kind, "level"))
		l->level = mcp_level(r.message);
	if (uar_str_is(r.kind, "close"))
		l->closed = true;
	if (uar_str_is(r.kind, "open") && r.message.n)
		return uar_json_parse_copy(r.message, NULL, &l->facts, &l->opened, NULL);
	if (r.settles)
		settle(l, r.stream);
	return UAR_OK;
}

static uar_err fold_page(struct load *l)
{
	struct uar_arena scratch;
	uar_err e = UAR_OK;

	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < l->read.event_count && !e; i++) {
		e = fold(l, &l->read.events[i], &scratch);
		uar_arena_reset(&scratch);
	}
	uar_arena_fini(&scratch);
	return e;
}

static uar_err revive(struct load *l, struct mcp_session **out)
{
	struct mcp_session *s;
	uar_err e;

	if (l->closed || !l->sequence)
		return UAR_ENOTFOUND;
	s = make_session(l->m, &l->owner, l->id);
	if (!s)
		return UAR_ERATELIMIT;
	s->sequence = l->sequence;
	s->streams = l->streams;
	s->level = l->level;
	e = l->opened ? take_facts(s, l->opened) : UAR_OK;
	UAR_LIST_EACH (it, &l->uris)
		if (!e)
			e = mcp_session_subscribe(s, UAR_OWNER(it, struct wanted, node)->uri);
	UAR_LIST_EACH (it, &l->open) {
		if (!e)
			e = mcp_work_resume(s, &UAR_OWNER(it, struct unsettled, node)->r);
	}
	if (e) {
		s->closed = true;
		mcp_session_release(s);
		return e;
	}
	mcp_session_catch_up(s);
	*out = s;
	return UAR_OK;
}

static void load_ended(struct load *l, uar_err e)
{
	struct mcp_session *s = NULL;

	if (!e)
		e = revive(l, &s);
	while (!uar_list_empty(&l->waiters)) {
		struct waiter *w = UAR_OWNER(l->waiters.next, struct waiter, node);
		struct call *c = w->c;
		mcp_found_fn *then = w->then;

		uar_list_remove(&w->node);
		c->gone = NULL;
		if (s)
			s->users++;
		then(w->ctx, s, e);
	}
	mcp_session_release(s);
	free_load(l);
}

static void page_ready(struct uar_events_read *r)
{
	struct load *l = UAR_OWNER(r, struct load, read);
	uar_err e = r->err ? r->err : fold_page(l);
	bool more = r->more;

	uar_events_read_fini(r);
	if (!e && more) {
		l->read.after = l->sequence;
		e = uar_reader_events(l->m->g->o.reader, &l->read);
		if (!e)
			return;
	}
	load_ended(l, e);
}

static struct load *find_load(struct gate_mcp *m, const struct uar_owner *owner, uar_str id)
{
	UAR_LIST_EACH (it, &m->loads) {
		struct load *l = UAR_OWNER(it, struct load, node);

		if (uar_str_eq(l->id, id) && uar_owner_eq(&l->owner, owner))
			return l;
	}
	return NULL;
}

static uar_err begin_load(struct gate_mcp *m, const struct uar_owner *owner, uar_str id,
			  struct load **out)
{
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	struct load *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->m = m;
	uar_list_init(&l->open);
	uar_list_init(&l->uris);
	uar_list_init(&l->waiters);
	uar_list_add_last(&m->loads, &l->node);
	e = uar_channel_session(id, session_id) ? UAR_ENOTFOUND : UAR_OK;
	if (!e) {
		l->id = uar_arena_str(&l->arena, id);
		l->session_id = uar_arena_str(&l->arena, uar_str_c(session_id));
		if (!l->id.p || !l->session_id.p || !uar_owner_copy(&l->arena, owner, &l->owner))
			e = UAR_ENOMEM;
	}
	l->read = (struct uar_events_read){ .owner = l->owner,
					    .session_id = l->session_id,
					    .limit = LOAD_PAGE,
					    .done = page_ready };
	if (!e)
		e = uar_reader_events(m->g->o.reader, &l->read);
	if (e)
		free_load(l);
	else
		*out = l;
	return e;
}

static void waiter_gone(struct call *c)
{
	struct waiter *w = c->op;

	uar_list_remove(&w->node);
	gate_call_free(c);
}

static uar_err wait_for(struct call *c, uar_str id, mcp_found_fn *then, void *ctx)
{
	struct waiter *w = uar_arena_alloc(&c->arena, sizeof *w);
	struct load *l = find_load(c->g->mcp, &c->owner, id);
	uar_err e = w ? UAR_OK : UAR_ENOMEM;

	if (!e && l && l->waiting >= UAR_LIMIT_MCP_WAITING)
		e = UAR_EBUSY;
	if (!e && !l)
		e = begin_load(c->g->mcp, &c->owner, id, &l);
	if (e)
		return e;
	l->waiting++;
	*w = (struct waiter){ .c = c, .then = then, .ctx = ctx };
	uar_list_add_last(&l->waiters, &w->node);
	c->op = w;
	c->gone = waiter_gone;
	return UAR_OK;
}

void mcp_session_find(struct call *c, uar_str id, mcp_found_fn *then, void *ctx)
{
	struct gate_mcp *m = c->g->mcp;
	struct mcp_session *s = uar_map_get(&m->by_id, id);
	uar_err e;

	if (s && uar_owner_eq(&s->owner, &c->owner) && !s->closed) {
		uar_list_remove(&s->node);
		uar_list_add_last(&m->sessions, &s->node);
		s->users++;
		then(ctx, s, UAR_OK);
		return;
	}
	e = s ? UAR_ENOTFOUND : wait_for(c, id, then, ctx);
	if (e)
		then(ctx, NULL, e);
}

/* --- life --------------------------------------------------------------------------------- */

struct gate_mcp *gate_mcp_create(struct uar_gate *g)
{
	struct gate_mcp *m = uar_zalloc(sizeof *m);

	if (!m)
		return NULL;
	m->g = g;
	uar_map_init(&m->by_id, uar_rand_u64(g->o.rand));
	uar_list_init(&m->sessions);
	uar_list_init(&m->works);
	uar_list_init(&m->loads);
	uar_list_init(&m->records);
	uar_list_init(&m->fetches);
	uar_list_init(&m->tasks);
	mcp_watch_init(m);
	uar_uuid_init(&m->ids, g->o.sched->clock, g->o.rand);
	return m;
}

void gate_mcp_destroy(struct gate_mcp *m)
{
	if (!m)
		return;
	mcp_watch_fini(m);
	mcp_works_fini(m);
	mcp_tasks_fini(m);
	mcp_readers_fini(m);
	UAR_LIST_EACH (it, &m->loads)
		free_load(UAR_OWNER(it, struct load, node));
	UAR_LIST_EACH (it, &m->records)
		free_record(UAR_OWNER(it, struct record, node));
	UAR_LIST_EACH (it, &m->sessions)
		free_session(UAR_OWNER(it, struct mcp_session, node));
	uar_map_fini(&m->by_id);
	uar_free(m);
}
