/* relay.c - the connection of a relay: connect, list, hear of changes. */
#include "base/alloc.h"
#include "mcp/relay_int.h"

static void connect_later(struct uar_mcp_relay *r, const char *reason);
static void read_next(struct uar_mcp_relay *r);

static const char *const list_methods[UAR_MCP_LISTS] = { "tools/list", "prompts/list",
							 "resources/list",
							 "resources/templates/list" };
static const char *const list_members[UAR_MCP_LISTS] = { "tools", "prompts", "resources",
							 "resourceTemplates" };
enum { ALL_LISTS = (1u << UAR_MCP_LISTS) - 1 };

/* --- out ------------------------------------------------------------------------------------- */

void relay_next_id(struct uar_mcp_relay *r, char out[RELAY_ID])
{
	snprintf(out, RELAY_ID, "%llu", (unsigned long long)++r->ids);
}

static uar_err transmit(struct uar_mcp_relay *r, struct uar_mcp_sending *m)
{
	m->version = UAR_STR(UAR_MCP_MODERN);
	m->modern = true;
	return r->link ? r->link->ops->send(r->link, m) : UAR_ENET;
}

uar_err relay_send(struct uar_mcp_relay *r, const char *id, uar_str method, uar_str name,
		   struct uar_buf *params)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_mcp_sending m = { .id = uar_str_c(id), .method = method, .name = name };
	uar_err e = params->err;

	if (!e)
		e = uar_mcp_write_request(&b, m.id, method, uar_buf_str(params));
	m.text = uar_buf_str(&b);
	if (!e)
		e = transmit(r, &m);
	uar_buf_fini(&b);
	return e;
}

void relay_drop(struct uar_mcp_relay *r, const char *id, const char *why)
{
	struct uar_buf params = uar_buf_make(1024), b = uar_buf_make(2048);
	struct uar_jw w = uar_jw_begin(&params);
	struct uar_mcp_sending m = { .method = UAR_STR("notifications/cancelled") };

	if (!r->link)
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_raw(&w, "requestId", uar_str_c(id));
	uar_jw_cstr(&w, "reason", why);
	uar_jw_close(&w);
	if (!r->o.setting->server.url && !uar_jw_end(&w) &&
	    !uar_mcp_write_notification(&b, m.method, uar_buf_str(&params))) {
		m.text = uar_buf_str(&b);
		if (transmit(r, &m))
			uar_buf_clear(&b); /* nothing waits for it */
	}
	r->link->ops->forget(r->link, uar_str_c(id));
	uar_buf_fini(&b);
	uar_buf_fini(&params);
}

/* What the present state waits for. */
static void ask(struct uar_mcp_relay *r, const char *method, uar_str cursor)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	if (cursor.p)
		uar_jw_str(&w, "cursor", cursor);
	relay_put_envelope(&w, &(struct uar_mcp_passing){ 0 }, NULL);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	relay_next_id(r, r->id);
	e = relay_send(r, r->id, uar_str_c(method), UAR_STR_NONE, &b);
	uar_buf_fini(&b);
	if (!e)
		e = uar_timer_set(r->sched, &r->timer, UAR_LIMIT_MCP_START_MS * 1000LL);
	if (e)
		connect_later(r, uar_err_text(e));
}

/* --- changes --------------------------------------------------------------------------------- */

static void put_filter(struct uar_jw *w, const struct uar_mcp_relay *r)
{
	uar_jw_obj(w, "notifications");
	uar_jw_bool(w, "toolsListChanged", true);
	uar_jw_bool(w, "promptsListChanged", true);
	uar_jw_bool(w, "resourcesListChanged", true);
	if (r->uris.n)
		uar_jw_raw(w, "resourceSubscriptions", uar_buf_str(&r->uris));
	uar_jw_close(w);
}

/* A server without it is listed again when it is connected again. */
static void listen_for_changes(struct uar_mcp_relay *r)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);

	if (r->listen[0])
		relay_drop(r, r->listen, "asked anew");
	uar_jw_obj(&w, NULL);
	put_filter(&w, r);
	relay_put_envelope(&w, &(struct uar_mcp_passing){ 0 }, NULL);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	relay_next_id(r, r->listen);
	if (relay_send(r, r->listen, UAR_STR("subscriptions/listen"), UAR_STR_NONE, &b))
		r->listen[0] = 0;
	uar_buf_fini(&b);
}

uar_err uar_mcp_relay_want(struct uar_mcp_relay *r, const uar_str *uris, size_t n)
{
	struct uar_jw w;
	uar_err e = UAR_OK;

	uar_buf_clear(&r->uris);
	if (n) {
		w = uar_jw_begin(&r->uris);
		uar_jw_arr(&w, NULL);
		for (size_t i = 0; i < n; i++)
			uar_jw_str(&w, NULL, uris[i]);
		uar_jw_close(&w);
		e = uar_jw_end(&w);
	}
	if (!e && r->state == RELAY_READY)
		listen_for_changes(r);
	return e;
}

static void take_notification(struct uar_mcp_relay *r, const struct uar_mcp_message *m, uar_str of)
{
	static const char *const changes[] = { "notifications/tools/list_changed",
					       "notifications/prompts/list_changed",
					       "notifications/resources/list_changed" };

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		if (!uar_str_is(m->method, changes[i]))
			continue;
		r->wanted |= 1u << i;
		if (i == UAR_MCP_RESOURCES)
			r->wanted |= 1u << UAR_MCP_TEMPLATES;
		if (r->state == RELAY_READY)
			read_next(r);
		return;
	}
	if (uar_str_is(m->method, "notifications/resources/updated") && r->watcher.updated)
		r->watcher.updated(r->watcher.ctx, uar_json_text(m->params, "uri"));
	else if (uar_str_is(m->method, "notifications/progress") ||
		 uar_str_is(m->method, "notifications/message"))
		relay_take_notice(r, m, of);
}

/* --- lists ----------------------------------------------------------------------------------- */

static void became_ready(struct uar_mcp_relay *r)
{
	bool first = !r->has_been_ready;

	r->state = RELAY_READY;
	r->has_been_ready = true;
	r->failures = 0;
	r->id[0] = 0;
	uar_buf_clear(&r->reason);
	uar_timer_stop(r->sched, &r->timer);
	if (!first)
		return;
	listen_for_changes(r);
	if (r->o.tried)
		r->o.tried(r->o.ctx);
	for (int i = 0; r->watcher.changed && i < UAR_MCP_LISTS; i++)
		r->watcher.changed(r->watcher.ctx, (enum uar_mcp_list)i);
}

static void read_next(struct uar_mcp_relay *r)
{
	int i = 0;

	while (i < UAR_MCP_LISTS && !(r->wanted >> i & 1))
		i++;
	if (i == UAR_MCP_LISTS) {
		became_ready(r);
		return;
	}
	r->wanted &= ~(1u << i);
	r->at = (enum uar_mcp_list)i;
	r->state = RELAY_LISTING;
	r->pages = 0;
	uar_buf_clear(&r->page);
	ask(r, list_methods[i], UAR_STR_NONE);
}

static void list_done(struct uar_mcp_relay *r)
{
	struct relay_list *l = &r->lists[r->at];
	struct uar_buf text = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	enum uar_mcp_list at = r->at;
	uar_str kept;

	uar_buf_printf(&text, "[%.*s]", UAR_FMT(uar_buf_str(&r->page)));
	l->items = NULL;
	uar_arena_reset(&l->arena);
	kept = text.err ? UAR_STR_NONE : uar_arena_str(&l->arena, uar_buf_str(&text));
	uar_buf_fini(&text);
	if (!kept.p || uar_json_parse(kept, NULL, &l->arena, &l->items, NULL))
		l->items = NULL;
	if (r->has_been_ready && r->watcher.changed)
		r->watcher.changed(r->watcher.ctx, at);
	read_next(r);
}

static void take_page(struct uar_mcp_relay *r, const struct uar_json *result)
{
	const struct uar_json *cursor = uar_json_get(result, UAR_STR("nextCursor"));
	const struct uar_json *all = uar_json_get(result, uar_str_c(list_members[r->at]));

	for (const struct uar_json *j = uar_json_first(all); j; j = j->next) {
		if (j->kind != UAR_JSON_OBJECT || r->page.n + j->text.n > UAR_LIMIT_MCP_MESSAGE / 2)
			continue;
		if (r->page.n)
			uar_buf_add_char(&r->page, ',');
		uar_buf_add_str(&r->page, j->text);
	}
	if (cursor && cursor->kind == UAR_JSON_STRING && ++r->pages < UAR_LIMIT_MCP_PAGES)
		ask(r, list_methods[r->at], cursor->text);
	else
		list_done(r);
}

/* --- connecting ------------------------------------------------------------------------------ */

static bool speaks_modern(const struct uar_json *result)
{
	const struct uar_json *all = uar_json_get(result, UAR_STR("supportedVersions"));

	for (const struct uar_json *v = uar_json_first(all); v; v = v->next)
		if (uar_str_is(uar_json_str(v, UAR_STR("")), UAR_MCP_MODERN))
			return true;
	return false;
}

static void take_result(struct uar_mcp_relay *r, const struct uar_mcp_message *m)
{
	bool ok = m->kind == UAR_MCP_RESULT;

	if (r->state == RELAY_PROBING && ok && speaks_modern(m->result)) {
		r->wanted = ALL_LISTS;
		read_next(r);
	} else if (r->state == RELAY_PROBING) {
		connect_later(r, "the server does not speak " UAR_MCP_MODERN);
	} else if (ok) {
		take_page(r, m->result);
	} else {
		list_done(r); /* it has no such list */
	}
}

static void on_message(void *ctx, uar_str text, uar_str of)
{
	struct uar_mcp_relay *r = ctx;
	struct uar_mcp_message m = { 0 };
	struct uar_mcp_passage *p;
	struct uar_arena arena;

	if (r->state == RELAY_WAITING)
		return; /* it has been given up */
	uar_arena_init(&arena, 0);
	if (uar_mcp_message_read(text, &arena, &m, NULL)) {
		uar_arena_fini(&arena);
		return;
	}
	if (m.kind == UAR_MCP_NOTIFICATION) {
		take_notification(r, &m, of);
	} else if (m.kind != UAR_MCP_REQUEST) { /* that era's servers ask nothing */
		p = relay_find(r, m.id);
		if (p)
			relay_take_answer(p, &m);
		else if (r->id[0] && uar_str_is(m.id, r->id))
			take_result(r, &m);
		else if (r->listen[0] && uar_str_is(m.id, r->listen))
			r->listen[0] = 0;
	}
	uar_arena_fini(&arena);
}

/* What changed meanwhile nobody told: all is read. A new connection does both by itself. */
static void listen_again(struct uar_timer *t)
{
	struct uar_mcp_relay *r = UAR_OWNER(t, struct uar_mcp_relay, listen_again);

	if (!r->has_been_ready || r->listen[0])
		return;
	listen_for_changes(r);
	r->wanted = ALL_LISTS;
	if (r->state == RELAY_READY)
		read_next(r);
}

static void listen_later(struct uar_mcp_relay *r, int status)
{
	r->listen[0] = 0;
	if (status / 100 != 4 && /* else the server has none */
	    uar_timer_set(r->sched, &r->listen_again, UAR_LIMIT_MCP_LISTEN_MS * 1000LL))
		connect_later(r, uar_err_text(UAR_ENOMEM));
}

static void on_lost(void *ctx, uar_str id, uar_err e, int status, const char *reason)
{
	struct uar_mcp_relay *r = ctx;
	struct uar_mcp_passage *p = relay_find(r, id);
	char text[300];

	if (!status)
		snprintf(text, sizeof text, "%s", reason);
	else
		snprintf(text, sizeof text, "the server answered with HTTP status %d", status);
	if (p)
		relay_fail(p, e, text);
	else if (r->id[0] && uar_str_is(id, r->id))
		connect_later(r, text);
	else if (r->listen[0] && uar_str_is(id, r->listen))
		listen_later(r, status);
}

static void on_down(void *ctx, const char *reason)
{
	struct uar_mcp_relay *r = ctx;

	if (r->state != RELAY_WAITING)
		connect_later(r, reason);
}

static uar_err open_link(struct uar_mcp_relay *r, struct uar_error *error)
{
	const struct uar_mcp_server *s = &r->o.setting->server;
	struct uar_mcp_link_events events = { on_message, on_lost, on_down, r };

	if (s->url)
		return uar_mcp_http_open(&(struct uar_mcp_http_options){ .client = r->o.http,
									 .sched = r->sched,
									 .url = s->url,
									 .headers = s->headers,
									 .events = events },
					 &r->link);
	return uar_mcp_stdio_open(&(struct uar_mcp_stdio_options){ .loop = r->o.loop,
								   .argv = s->argv,
								   .env = s->env,
								   .cwd = s->cwd,
								   .events = events },
				  &r->link, error);
}

static void connect_now(struct uar_mcp_relay *r)
{
	struct uar_error error = { 0 };
	uar_err e;

	if (r->link)
		r->link->ops->destroy(r->link);
	r->link = NULL;
	e = open_link(r, &error);
	if (e) {
		connect_later(r, error.text[0] ? error.text : uar_err_text(e));
		return;
	}
	r->state = RELAY_PROBING;
	ask(r, "server/discover", UAR_STR_NONE);
}

static void timer_fired(struct uar_timer *t)
{
	struct uar_mcp_relay *r = UAR_OWNER(t, struct uar_mcp_relay, timer);

	if (r->state == RELAY_WAITING)
		connect_now(r);
	else
		connect_later(r, "the server did not answer in time");
}

static void clear_lists(struct uar_mcp_relay *r)
{
	for (int i = 0; i < UAR_MCP_LISTS; i++) {
		r->lists[i].items = NULL;
		uar_arena_reset(&r->lists[i].arena);
	}
}

/* The link is closed when the next attempt begins, as this may be called from inside it. */
static void connect_later(struct uar_mcp_relay *r, const char *reason)
{
	int64_t ms = UAR_LIMIT_MCP_BACKOFF_MS;

	for (unsigned i = 0; i < r->failures && ms < UAR_LIMIT_MCP_BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > UAR_LIMIT_MCP_BACKOFF_MAX_MS)
		ms = UAR_LIMIT_MCP_BACKOFF_MAX_MS;
	r->failures++;
	r->state = RELAY_WAITING;
	r->has_been_ready = false;
	r->id[0] = r->listen[0] = 0;
	uar_buf_clear(&r->reason);
	uar_buf_add_str(&r->reason, uar_str_utf8_prefix(uar_str_c(reason), 400));
	clear_lists(r);
	if (uar_timer_set(r->sched, &r->timer, ms * 1000))
		uar_buf_add_str(&r->reason, UAR_STR("; out of memory"));
	if (r->o.tried)
		r->o.tried(r->o.ctx);
	relay_fail_all(r, UAR_ECHILD, "the connection to the server was lost during the request");
}

/* --- life ------------------------------------------------------------------------------------ */

uar_err uar_mcp_relay_create(const struct uar_mcp_relay_options *o, struct uar_mcp_relay **out)
{
	struct uar_mcp_relay *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->o = *o;
	r->sched = uar_loop_sched(o->loop);
	r->reason = uar_buf_make(512);
	r->page = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	r->uris = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	r->timer.fn = timer_fired;
	r->listen_again.fn = listen_again;
	uar_list_init(&r->passages);
	for (int i = 0; i < UAR_MCP_LISTS; i++)
		uar_arena_init(&r->lists[i].arena, 0);
	uar_buf_add_str(&r->reason, UAR_STR("it is being connected"));
	e = uar_timer_set(r->sched, &r->timer, 0);
	if (e) {
		uar_mcp_relay_destroy(r);
		return e;
	}
	*out = r;
	return UAR_OK;
}

void uar_mcp_relay_destroy(struct uar_mcp_relay *r)
{
	if (!r)
		return;
	while (!uar_list_empty(&r->passages))
		relay_free_passage(UAR_OWNER(r->passages.next, struct uar_mcp_passage, node));
	uar_timer_stop(r->sched, &r->timer);
	uar_timer_stop(r->sched, &r->listen_again);
	if (r->link)
		r->link->ops->destroy(r->link);
	for (int i = 0; i < UAR_MCP_LISTS; i++)
		uar_arena_fini(&r->lists[i].arena);
	uar_buf_fini(&r->reason);
	uar_buf_fini(&r->page);
	uar_buf_fini(&r->uris);
	uar_free(r);
}

void uar_mcp_relay_watch(struct uar_mcp_relay *r, const struct uar_mcp_relay_watcher *w)
{
	r->watcher = w ? *w : (struct uar_mcp_relay_watcher){ 0 };
}

const char *uar_mcp_relay_name(const struct uar_mcp_relay *r)
{
	return r->o.setting->server.name;
}

bool uar_mcp_relay_offers(const struct uar_mcp_relay *r, uar_str tool)
{
	return uar_mcp_setting_offers(r->o.setting, tool);
}

bool uar_mcp_relay_ready(const struct uar_mcp_relay *r, uar_str *out_reason)
{
	*out_reason = uar_buf_str(&r->reason);
	return r->has_been_ready;
}

const struct uar_json *uar_mcp_relay_list(const struct uar_mcp_relay *r, enum uar_mcp_list list)
{
	return r->has_been_ready ? r->lists[list].items : NULL;
}
