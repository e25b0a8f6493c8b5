/* mcp_watch.c - what changes, for clients that want to know: lists, runs, resources of others.
 *
 * In a session a subscription is a record of it and a change is a message on its own stream. A
 * client of the modern era holds a request open that names what it wants to hear of. Changes
 * are said after a moment, several at once. */
#include "agent/registry.h"
#include "gate/mcp_int.h"
#include "tool/tool.h"

#define RUN_URI "uar://runs/"

struct subscription {
	struct uar_list node;
	bool dirty; /* it changed, and nothing has said so */
	size_t n;
	char uri[];
};

struct listener {
	struct uar_list node; /* in gate_mcp.listeners */
	struct gate_stream base;
	struct gate_mcp *m;
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str id;	      /* JSON text: of the request */
	unsigned wanted;      /* bits of lists */
	unsigned dirty;	      /* likewise, of this owner alone */
	struct uar_list uris; /* of struct subscription */
	size_t uri_count;
	struct mcp_task_watch tasks;
};

/* --- subscriptions ---------------------------------------------------------------------------- */

static struct subscription *find_uri(struct uar_list *all, uar_str uri)
{
	UAR_LIST_EACH (it, all) {
		struct subscription *s = UAR_OWNER(it, struct subscription, node);

		if (s->n == uri.n && memcmp(s->uri, uri.p, uri.n) == 0)
			return s;
	}
	return NULL;
}

static uar_err add_uri(struct gate_mcp *m, struct uar_list *all, uar_str uri)
{
	struct subscription *s;

	if (find_uri(all, uri))
		return UAR_OK;
	s = uar_zalloc(sizeof *s + uri.n + 1);
	if (!s)
		return UAR_ENOMEM;
	s->n = uri.n;
	memcpy(s->uri, uri.p, uri.n);
	uar_list_add_last(all, &s->node);
	m->watched++;
	return UAR_OK;
}

static void remove_uri(struct gate_mcp *m, struct subscription *s)
{
	uar_list_remove(&s->node);
	m->watched--;
	uar_free(s);
}

static void remove_uris(struct gate_mcp *m, struct uar_list *all)
{
	UAR_LIST_EACH (it, all)
		remove_uri(m, UAR_OWNER(it, struct subscription, node));
}

static size_t collect(struct uar_list *all, uar_str *out, size_t n, size_t room)
{
	UAR_LIST_EACH (it, all) {
		const struct subscription *s = UAR_OWNER(it, struct subscription, node);
		uar_str uri = uar_str_n(s->uri, s->n);
		size_t i = 0;

		while (i < n && !uar_str_eq(out[i], uri))
			i++;
		if (i == n && n < room && !uar_str_starts(uri, UAR_STR("uar://")))
			out[n++] = uri;
	}
	return n;
}

/* Servers of others learn of which resources somebody wants to hear. */
static void ask_relays(struct gate_mcp *m)
{
	const struct uar_gate_options *o = &m->g->o;
	uar_str uris[UAR_LIMIT_MCP_WATCHED];
	size_t n = 0;

	if (!o->relay_count)
		return;
	UAR_LIST_EACH (it, &m->sessions)
		n = collect(&UAR_OWNER(it, struct mcp_session, node)->subscriptions, uris, n,
			    ARRAY_LEN(uris));
	UAR_LIST_EACH (it, &m->listeners)
		n = collect(&UAR_OWNER(it, struct listener, node)->uris, uris, n, ARRAY_LEN(uris));
	for (size_t i = 0; i < o->relay_count; i++)
		if (uar_mcp_relay_want(o->relays[i], uris, n))
			uar_log(o->log, UAR_LOG_WARN, "mcp.not_subscribed",
				{ "server", uar_str_c(uar_mcp_relay_name(o->relays[i])) });
}

uar_err mcp_session_subscribe(struct mcp_session *s, uar_str uri)
{
	uar_err e = s->subscription_count < UAR_LIMIT_MCP_SUBSCRIPTIONS ? UAR_OK : UAR_ERATELIMIT;

	if (find_uri(&s->subscriptions, uri))
		return UAR_OK;
	if (!e)
		e = add_uri(s->m, &s->subscriptions, uri);
	if (!e) {
		s->subscription_count++;
		ask_relays(s->m);
	}
	return e;
}

void mcp_session_unsubscribe(struct mcp_session *s, uar_str uri)
{
	struct subscription *at = find_uri(&s->subscriptions, uri);

	if (!at)
		return;
	remove_uri(s->m, at);
	s->subscription_count--;
	ask_relays(s->m);
}

void mcp_session_forget_subscriptions(struct mcp_session *s)
{
	remove_uris(s->m, &s->subscriptions);
}

static void subscribed(void *ctx, uar_err e, uint64_t sequence)
{
	struct mcp_exchange *x = ctx;
	struct uar_buf b = uar_buf_make(64);

	(void)sequence;
	if (e) {
		mcp_answer_problem(x, e, NULL);
		return;
	}
	uar_buf_add_str(&b, UAR_STR("{}"));
	mcp_answer_result(x, &b);
}

/* The log has it before the client knows. */
static void record_subscription(struct mcp_exchange *x, const char *kind, uar_str uri)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_URI * 6 + 8);
	struct uar_jw w = uar_jw_begin(&b);
	struct mcp_record r = { .kind = kind, .done = subscribed, .ctx = x };
	uar_err e;

	uar_jw_str(&w, NULL, uri);
	e = uar_jw_end(&w);
	r.message = uar_buf_str(&b);
	x->c->op = x;
	if (!e)
		e = mcp_record_add(x->s, &r);
	uar_buf_fini(&b);
	if (e)
		mcp_answer_problem(x, e, NULL);
}

/* Runs and artifacts of a filter may be made later; one that is never there is never told of. */
static bool is_known(const struct mcp_exchange *x, uar_str uri)
{
	struct mcp_artifact_name name;

	if (!uri.n || uri.n > UAR_LIMIT_MCP_URI)
		return false;
	if (!uar_str_starts(uri, UAR_STR(RUN_URI)))
		return mcp_is_offered(x->c->g, uri);
	return !memmem(uri.p, uri.n, "/artifacts/", sizeof "/artifacts/" - 1) ||
	       mcp_artifact_parse(&x->c->arena, uri, &name);
}

static void subscribe(struct mcp_exchange *x, uar_str uri)
{
	uar_err e = mcp_session_subscribe(x->s, uri);

	if (e)
		mcp_answer_problem(x, e, NULL);
	else
		record_subscription(x, "subscribe", uri);
}

static void subscribe_to_artifact(struct mcp_artifact_look *k)
{
	subscribe(k->x, k->uri);
}

void mcp_subscribe(struct mcp_exchange *x)
{
	uar_str uri = uar_json_text(x->m.params, "uri");

	if (!is_known(x, uri))
		mcp_answer_missing(x, uri);
	else if (!mcp_artifact_look(x, uri, subscribe_to_artifact))
		subscribe(x, uri);
}

void mcp_unsubscribe(struct mcp_exchange *x)
{
	uar_str uri = uar_json_text(x->m.params, "uri");

	if (!uri.n || uri.n > UAR_LIMIT_MCP_URI) {
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "params.uri names the resource",
				 UAR_STR_NONE);
		return;
	}
	mcp_session_unsubscribe(x->s, uri);
	record_subscription(x, "unsubscribe", uri);
}

/* --- what is said --------------------------------------------------------------------------- */

static const char *const list_notices[UAR_MCP_LISTS] = { "notifications/tools/list_changed",
							 "notifications/prompts/list_changed",
							 "notifications/resources/list_changed",
							 NULL };

/* `id`: JSON text of the request that a listener holds open; empty: none. */
static uar_err write_notice(struct uar_buf *out, const char *method, uar_str uri, uar_str id)
{
	struct uar_buf params = uar_buf_make(UAR_LIMIT_MCP_URI * 6 + 1024);
	struct uar_jw w = uar_jw_begin(&params);
	uar_err e;

	uar_jw_obj(&w, NULL);
	if (uri.n)
		uar_jw_str(&w, "uri", uri);
	if (id.n) {
		uar_jw_obj(&w, "_meta");
		uar_jw_raw(&w, UAR_MCP_META "subscriptionId", id);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_mcp_write_notification(out, uar_str_c(method),
					       uri.n || id.n ? uar_buf_str(&params) : UAR_STR_NONE);
	uar_buf_fini(&params);
	return e;
}

static void tell_session(struct mcp_session *s, const char *method, uar_str uri)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_URI * 6 + 2048);
	struct mcp_record r = { .kind = "message", .stream = UAR_STR(MCP_STREAM_OWN) };
	uar_err e = write_notice(&b, method, uri, UAR_STR_NONE);

	r.message = uar_buf_str(&b);
	if (!e)
		e = mcp_record_add(s, &r);
	if (e)
		uar_log(s->m->g->o.log, UAR_LOG_ERROR, "mcp.message_lost", { "session", s->id },
			{ "reason", uar_str_c(uar_err_text(e)) });
	uar_buf_fini(&b);
}

static void tell_listener(struct listener *l, const char *method, uar_str uri)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_URI * 6 + 2048);
	struct uar_frame *frame = NULL;

	if (!write_notice(&b, method, uri, l->id))
		frame = mcp_frame(uar_buf_str(&b));
	uar_buf_fini(&b);
	if (frame && uar_http_stream_send(l->base.http, frame))
		uar_log(l->m->g->o.log, UAR_LOG_WARN, "mcp.listener_full", { "id", l->id });
	uar_frame_unref(frame);
}

static void flush_session(struct mcp_session *s)
{
	for (int i = 0; i < UAR_MCP_RESOURCES; i++)
		if (s->m->changed >> i & 1 && s->users)
			tell_session(s, list_notices[i], UAR_STR_NONE);
	UAR_LIST_EACH (it, &s->subscriptions) {
		struct subscription *at = UAR_OWNER(it, struct subscription, node);

		if (at->dirty)
			tell_session(s, "notifications/resources/updated",
				     uar_str_n(at->uri, at->n));
		at->dirty = false;
	}
}

static void flush_listener(struct listener *l)
{
	unsigned lists = (l->m->changed | l->dirty) & l->wanted;

	l->dirty = 0;
	for (int i = 0; i <= UAR_MCP_RESOURCES; i++)
		if (lists >> i & 1)
			tell_listener(l, list_notices[i], UAR_STR_NONE);
	UAR_LIST_EACH (it, &l->uris) {
		struct subscription *at = UAR_OWNER(it, struct subscription, node);

		if (at->dirty)
			tell_listener(l, "notifications/resources/updated",
				      uar_str_n(at->uri, at->n));
		at->dirty = false;
	}
	mcp_task_watch_flush(&l->tasks);
}

static void flush(struct uar_timer *t)
{
	struct gate_mcp *m = UAR_OWNER(t, struct gate_mcp, flush);

	UAR_LIST_EACH (it, &m->sessions) {
		struct mcp_session *s = UAR_OWNER(it, struct mcp_session, node);

		if (!s->closed)
			flush_session(s);
	}
	UAR_LIST_EACH (it, &m->listeners)
		flush_listener(UAR_OWNER(it, struct listener, node));
	m->changed = 0;
	m->flushing = false;
}

void mcp_flush_soon(struct gate_mcp *m)
{
	if (m->flushing)
		return;
	m->flushing = !uar_timer_set(m->g->o.sched, &m->flush, UAR_LIMIT_MCP_NOTICE_MS * 1000LL);
}

/* --- where changes come from ---------------------------------------------------------------- */

static void list_changed(void *ctx, enum uar_mcp_list list)
{
	struct gate_mcp *m = ctx;

	m->changed |= 1u << (list == UAR_MCP_TEMPLATES ? UAR_MCP_RESOURCES : list);
	mcp_flush_soon(m);
}

static void mark(struct gate_mcp *m, struct uar_list *all, uar_str uri)
{
	struct subscription *s = find_uri(all, uri);

	if (!s)
		return;
	s->dirty = true;
	mcp_flush_soon(m);
}

/* `owner` NULL: whoever it is. */
static void mark_all(struct gate_mcp *m, const struct uar_owner *owner, uar_str uri)
{
	UAR_LIST_EACH (it, &m->sessions) {
		struct mcp_session *s = UAR_OWNER(it, struct mcp_session, node);

		if (!owner || uar_owner_eq(owner, &s->owner))
			mark(m, &s->subscriptions, uri);
	}
	UAR_LIST_EACH (it, &m->listeners) {
		struct listener *l = UAR_OWNER(it, struct listener, node);

		if (!owner || uar_owner_eq(owner, &l->owner))
			mark(m, &l->uris, uri);
	}
}

static void resource_updated(void *ctx, uar_str uri)
{
	mark_all(ctx, NULL, uri);
}

static void artifact_changed(struct gate_mcp *m, const struct uar_commit *c,
			     const struct uar_event *ev)
{
	struct uar_buf uri = uar_buf_make(UAR_LIMIT_MCP_URI);

	mcp_artifact_uri(&uri, c->run->id.run_id, ev->ids[UAR_ID_ARTIFACT]);
	mark_all(m, c->owner, uar_buf_str(&uri));
	uar_buf_fini(&uri);
}

void mcp_session_catch_up(struct mcp_session *s)
{
	struct mcp_artifact_name name;
	struct uar_arena scratch;

	uar_arena_init(&scratch, 0);
	UAR_LIST_EACH (it, &s->subscriptions) {
		struct subscription *at = UAR_OWNER(it, struct subscription, node);

		if (mcp_artifact_parse(&scratch, uar_str_n(at->uri, at->n), &name))
			mark(s->m, &s->subscriptions, uar_str_n(at->uri, at->n));
	}
	uar_arena_fini(&scratch);
}

/* Lists of resources have a run more, or what one made. */
static void list_grew(struct gate_mcp *m, const struct uar_owner *owner)
{
	UAR_LIST_EACH (it, &m->listeners) {
		struct listener *l = UAR_OWNER(it, struct listener, node);

		if (!(l->wanted >> UAR_MCP_RESOURCES & 1) || !uar_owner_eq(&l->owner, owner))
			continue;
		l->dirty |= 1u << UAR_MCP_RESOURCES;
		mcp_flush_soon(m);
	}
}

static void on_commit(void *ctx, const struct uar_commit *c)
{
	struct gate_mcp *m = ctx;
	char uri[sizeof RUN_URI + UAR_LIMIT_ID_BYTES];

	if (m->watched && c->changed) {
		snprintf(uri, sizeof uri, RUN_URI "%.*s", UAR_FMT(c->run->id.run_id));
		mark_all(m, c->owner, uar_str_c(uri));
		UAR_LIST_EACH (it, &m->listeners)
			mcp_task_watch_mark(&UAR_OWNER(it, struct listener, node)->tasks, c->owner,
					    c->run->id.run_id);
	}
	if (uar_list_empty(&m->listeners) && !m->watched)
		return;
	for (size_t i = 0; i < c->event_count; i++) {
		if (c->events[i].cls != UAR_EV_ARTIFACT_CHANGED)
			continue;
		artifact_changed(m, c, &c->events[i]);
		list_grew(m, c->owner);
	}
	if (c->added)
		list_grew(m, c->owner);
}

static uint64_t generation_of(const struct gate_mcp *m)
{
	const struct uar_registry *agents = uar_workers_registry(m->g->o.work);
	struct uar_tools *tools = uar_workers_tools(m->g->o.work);

	return (agents ? uar_registry_generation(agents) : 0) +
	       (tools ? uar_tools_generation(tools) : 0);
}

/* Agents are tools and prompts; tools come and go with their sources. */
void gate_mcp_tick(struct gate_mcp *m)
{
	uint64_t now = generation_of(m);

	if (now == m->generation)
		return;
	m->generation = now;
	list_changed(m, UAR_MCP_TOOLS);
	list_changed(m, UAR_MCP_PROMPTS);
}

/* --- a request that is held open ------------------------------------------------------------ */

static void drop_listener(struct gate_stream *base)
{
	struct listener *l = UAR_OWNER(base, struct listener, base);
	struct gate_mcp *m = l->m;

	gate_stream_forget(base);
	uar_list_remove(&l->node);
	remove_uris(m, &l->uris);
	mcp_task_watch_fini(&l->tasks);
	uar_arena_fini(&l->arena);
	uar_free(l);
	if (!m->ending)
		ask_relays(m);
}

/* Ends the answer as the protocol asks for: with a result. */
static void end_listener(struct gate_stream *base)
{
	struct listener *l = UAR_OWNER(base, struct listener, base);
	struct uar_buf b = uar_buf_make(4096), result = uar_buf_make(2048);
	struct uar_jw w = uar_jw_begin(&result);
	struct uar_frame *frame = NULL;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "resultType", "complete");
	uar_jw_obj(&w, "_meta");
	uar_jw_raw(&w, UAR_MCP_META "subscriptionId", l->id);
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (!uar_jw_end(&w) && !uar_mcp_write_result(&b, l->id, uar_buf_str(&result)))
		frame = mcp_frame(uar_buf_str(&b));
	if (frame && uar_http_stream_send(base->http, frame))
		uar_http_stream_cut(base->http);
	uar_frame_unref(frame);
	uar_buf_fini(&result);
	uar_buf_fini(&b);
}

static void listener_closed(void *ctx)
{
	drop_listener(ctx);
}

static const char *const wanted_names[] = { "toolsListChanged", "promptsListChanged",
					    "resourcesListChanged" };

static uar_err read_filter(struct mcp_exchange *x, struct listener *l)
{
	const struct uar_json *filter = uar_json_get(x->m.params, UAR_STR("notifications"));
	const struct uar_json *uris = uar_json_get(filter, UAR_STR("resourceSubscriptions"));
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(wanted_names); i++)
		if (uar_json_bool(uar_json_get(filter, uar_str_c(wanted_names[i])), false))
			l->wanted |= 1u << i;
	for (const struct uar_json *j = uar_json_first(uris); j && !e; j = j->next) {
		uar_str uri = uar_json_str(j, UAR_STR(""));

		if (l->uri_count >= UAR_LIMIT_MCP_SUBSCRIPTIONS || !is_known(x, uri))
			continue;
		e = add_uri(l->m, &l->uris, uri);
		l->uri_count++;
	}
	return e ? e : mcp_task_watch_read(&l->tasks, x, filter);
}

static uar_err write_acknowledged(const struct listener *l, struct uar_buf *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "notifications"); /* those that will be said */
	for (size_t i = 0; i < ARRAY_LEN(wanted_names); i++)
		if (l->wanted >> i & 1)
			uar_jw_bool(&w, wanted_names[i], true);
	if (l->uri_count) {
		uar_jw_arr(&w, "resourceSubscriptions");
		UAR_LIST_EACH (it, &l->uris) {
			const struct subscription *s = UAR_OWNER(it, struct subscription, node);

			uar_jw_str(&w, NULL, uar_str_n(s->uri, s->n));
		}
		uar_jw_close(&w);
	}
	mcp_task_watch_put(&l->tasks, &w);
	uar_jw_close(&w);
	uar_jw_obj(&w, "_meta");
	uar_jw_raw(&w, UAR_MCP_META "subscriptionId", l->id);
	uar_jw_close(&w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_mcp_write_notification(
			out, UAR_STR("notifications/subscriptions/acknowledged"), uar_buf_str(&b));
	uar_buf_fini(&b);
	return e;
}

static struct listener *make_listener(struct mcp_exchange *x)
{
	struct listener *l = uar_zalloc(sizeof *l);

	if (!l)
		return NULL;
	l->m = x->c->g->mcp;
	l->base.g = x->c->g;
	l->base.drop = drop_listener;
	l->base.leave = end_listener;
	uar_list_init(&l->base.node);
	uar_list_init(&l->uris);
	mcp_task_watch_init(&l->tasks, l->m, &l->base);
	uar_list_add_last(&l->m->listeners, &l->node);
	l->id = uar_arena_str(&l->arena, x->m.id);
	if (l->id.p && uar_owner_copy(&l->arena, &x->c->owner, &l->owner)) {
		l->tasks.id = l->id;
		l->tasks.owner = &l->owner;
		return l;
	}
	drop_listener(&l->base);
	return NULL;
}

void mcp_listen(struct mcp_exchange *x)
{
	struct listener *l = make_listener(x);
	struct uar_http_stream_events events = { NULL, listener_closed, NULL };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_frame *frame = NULL;
	uar_err e = l ? read_filter(x, l) : UAR_ENOMEM;

	if (!e)
		e = write_acknowledged(l, &b);
	if (!e) {
		frame = mcp_frame(uar_buf_str(&b));
		events.ctx = &l->base;
		e = frame ? gate_stream_open(&l->base, x->c, &events) : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	if (e) {
		if (l)
			drop_listener(&l->base);
		mcp_answer_problem(x, e, NULL);
	} else if (uar_http_stream_send(l->base.http, frame)) {
		uar_http_stream_cut(l->base.http);
		drop_listener(&l->base);
	} else {
		if (l->uri_count)
			ask_relays(l->m);
		if (l->tasks.count)
			mcp_flush_soon(l->m);
	}
	uar_frame_unref(frame);
}

/* --- life ----------------------------------------------------------------------------------- */

void mcp_watch_init(struct gate_mcp *m)
{
	struct uar_mcp_relay_watcher w = { list_changed, resource_updated, m };

	uar_list_init(&m->listeners);
	m->flush.fn = flush;
	m->generation = generation_of(m);
	m->watch = (struct uar_watch){ .fn = on_commit, .ctx = m };
	uar_runtime_watch(m->g->o.runtime, &m->watch);
	for (size_t i = 0; i < m->g->o.relay_count; i++)
		uar_mcp_relay_watch(m->g->o.relays[i], &w);
}

void mcp_watch_fini(struct gate_mcp *m)
{
	m->ending = true;
	for (size_t i = 0; i < m->g->o.relay_count; i++)
		uar_mcp_relay_watch(m->g->o.relays[i], NULL);
	uar_runtime_unwatch(&m->watch);
	uar_timer_stop(m->g->o.sched, &m->flush);
	UAR_LIST_EACH (it, &m->listeners)
		drop_listener(&UAR_OWNER(it, struct listener, node)->base);
}
