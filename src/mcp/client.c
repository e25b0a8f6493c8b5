/* client.c - the state machine of a connection: connect, detect the era, list, serve calls. */
#include "base/alloc.h"
#include "mcp/client_int.h"
#include "mcp/param_header.h"

static void ask_for_tools(struct uar_mcp_client *c, uar_str cursor);

/* --- out ------------------------------------------------------------------------------------ */

void client_next_id(struct uar_mcp_client *c, char out[24])
{
	snprintf(out, 24, "%llu", (unsigned long long)++c->ids);
}

/* What a server may ask this client for. */
static void put_capabilities(struct uar_jw *w, const struct uar_mcp_client *c, const char *key)
{
	bool modern = c->era == UAR_MCP_ERA_MODERN;

	uar_jw_obj(w, key);
	if (!modern || c->o.server.roots) {
		uar_jw_obj(w, "roots");
		uar_jw_close(w);
	}
	if (c->o.asks) {
		uar_jw_obj(w, "elicitation");
		uar_jw_obj(w, "form");
		uar_jw_close(w);
		uar_jw_obj(w, "url");
		uar_jw_close(w);
		uar_jw_close(w);
	}
	if (c->o.samples) {
		uar_jw_obj(w, "sampling");
		uar_jw_close(w);
	}
	if (modern) {
		uar_jw_obj(w, "extensions");
		uar_jw_obj(w, UAR_MCP_META "tasks");
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void client_put_envelope(struct uar_jw *w, const struct uar_mcp_client *c, const char *progress)
{
	if (c->era != UAR_MCP_ERA_MODERN && !progress)
		return;
	uar_jw_obj(w, "_meta");
	if (c->era == UAR_MCP_ERA_MODERN) {
		uar_jw_cstr(w, UAR_MCP_META "protocolVersion", UAR_MCP_MODERN);
		put_capabilities(w, c, UAR_MCP_META "clientCapabilities");
		uar_jw_obj(w, UAR_MCP_META "clientInfo");
		uar_jw_cstr(w, "name", "uar");
		uar_jw_cstr(w, "version", UAR_VERSION);
		uar_jw_close(w);
	}
	if (progress)
		uar_jw_raw(w, "progressToken", uar_str_c(progress));
	uar_jw_close(w);
}

/* Arguments that the tool wants as headers, too. */
static uar_err find_headers(const struct uar_mcp_client *c, struct uar_mcp_sending *m,
			    struct uar_arena *arena)
{
	const struct uar_mcp_tool *tool =
		m->modern && c->o.server.url && uar_str_is(m->method, "tools/call")
			? uar_mcp_toolset_find(c->tools, m->name)
			: NULL;
	struct uar_mcp_message read = { 0 };
	const struct uar_json *args;

	if (!tool || !memmem(tool->input_schema.p, tool->input_schema.n, "x-mcp-header", 12) ||
	    uar_mcp_message_read(m->text, arena, &read, NULL))
		return UAR_OK;
	args = uar_json_get(read.params, UAR_STR("arguments"));
	return args ? uar_mcp_param_headers(tool->input_schema, args->text, arena, &m->headers)
		    : UAR_OK;
}

static uar_err transmit(struct uar_mcp_client *c, uar_str text, uar_str id, uar_str method,
			uar_str name)
{
	struct uar_mcp_sending m = { .text = text,
				     .id = id,
				     .method = method,
				     .name = name,
				     .version = uar_buf_str(&c->version),
				     .modern = c->era == UAR_MCP_ERA_MODERN };
	struct uar_arena arena;
	uar_err e;

	if (!c->link)
		return UAR_ENET;
	uar_arena_init(&arena, 0);
	e = find_headers(c, &m, &arena);
	if (!e)
		e = c->link->ops->send(c->link, &m);
	uar_arena_fini(&arena);
	return e;
}

void client_respond(struct uar_mcp_client *c, uar_str text)
{
	uar_err e = transmit(c, text, UAR_STR_NONE, UAR_STR_NONE, UAR_STR_NONE);

	(void)e; /* the server will notice */
}

/* `params`: the members' text, as an object. */
uar_err client_request(struct uar_mcp_client *c, const char *id, const char *method,
		       struct uar_buf *params, uar_str name)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	uar_err e = params->err;

	if (!e)
		e = uar_mcp_write_request(&b, uar_str_c(id), uar_str_c(method),
					  uar_buf_str(params));
	if (!e)
		e = transmit(c, uar_buf_str(&b), uar_str_c(id), uar_str_c(method), name);
	uar_buf_fini(&b);
	return e;
}

/* What the present state waits for. */
static void ask(struct uar_mcp_client *c, const char *method, struct uar_buf *params)
{
	uar_err e;

	client_next_id(c, c->id);
	e = client_request(c, c->id, method, params, UAR_STR_NONE);
	uar_buf_fini(params);
	if (!e)
		e = uar_timer_set(c->sched, &c->timer, UAR_LIMIT_MCP_START_MS * 1000LL);
	if (e)
		client_connect_later(c, uar_err_text(e));
}

void client_notify(struct uar_mcp_client *c, const char *method, struct uar_buf *params)
{
	struct uar_buf b = uar_buf_make(65536);
	uar_err e = params ? params->err : UAR_OK;

	if (!e)
		e = uar_mcp_write_notification(&b, uar_str_c(method),
					       params ? uar_buf_str(params) : UAR_STR_NONE);
	if (!e)
		e = transmit(c, uar_buf_str(&b), UAR_STR_NONE, uar_str_c(method), UAR_STR_NONE);
	(void)e; /* nothing waits for it */
	uar_buf_fini(&b);
}

/* --- connecting ----------------------------------------------------------------------------- */

static void initialize(struct uar_mcp_client *c)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	c->era = UAR_MCP_ERA_LEGACY;
	c->state = STATE_INITIALIZING;
	uar_buf_clear(&c->version);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "protocolVersion", UAR_MCP_LEGACY);
	put_capabilities(&w, c, "capabilities");
	uar_jw_obj(&w, "clientInfo");
	uar_jw_cstr(&w, "name", "uar");
	uar_jw_cstr(&w, "version", UAR_VERSION);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	ask(c, "initialize", &b);
}

static void become_modern(struct uar_mcp_client *c)
{
	c->era = UAR_MCP_ERA_MODERN;
	uar_buf_clear(&c->version);
	uar_buf_add_str(&c->version, UAR_STR(UAR_MCP_MODERN));
}

static void probe(struct uar_mcp_client *c)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	become_modern(c);
	c->state = STATE_PROBING;
	uar_jw_obj(&w, NULL);
	client_put_envelope(&w, c, NULL);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	ask(c, "server/discover", &b);
}

static void on_message(void *ctx, uar_str text, uar_str of);
static void on_lost(void *ctx, uar_str id, uar_err e, int status, const char *reason);
static void on_down(void *ctx, const char *reason);

static const char *authorization(void *ctx)
{
	const struct uar_mcp_client *c = ctx;

	return c->auth ? uar_mcp_auth_line(c->auth) : NULL;
}

static uar_err open_link(struct uar_mcp_client *c, struct uar_error *error)
{
	struct uar_mcp_link_events events = { on_message, on_lost, on_down, c };

	if (c->o.server.url) {
		struct uar_mcp_http_options o = { .client = c->o.http,
						  .sched = c->sched,
						  .url = c->o.server.url,
						  .headers = c->o.server.headers,
						  .guarded = c->o.server.guarded,
						  .two_addresses = c->known == TWO_ADDRESSES,
						  .authorization = authorization,
						  .events = events };

		return uar_mcp_http_open(&o, &c->link);
	}
	return uar_mcp_stdio_open(&(struct uar_mcp_stdio_options){ .loop = c->o.loop,
								   .argv = c->o.server.argv,
								   .env = c->o.server.env,
								   .cwd = c->o.server.cwd,
								   .events = events },
				  &c->link, error);
}

void client_connect(struct uar_mcp_client *c)
{
	enum uar_mcp_choice choice = c->o.server.era;
	struct uar_error error = { 0 };
	uar_err e;

	if (c->link)
		c->link->ops->destroy(c->link);
	c->link = NULL;
	c->listens[0] = 0;
	client_watch_anew(c);
	c->version_again = false;
	if (c->known == ONLY_MODERN)
		c->known = NOTHING_KNOWN;
	e = open_link(c, &error);
	if (e) {
		client_connect_later(c, error.text[0] ? error.text : uar_err_text(e));
		return;
	}
	if (c->known == TWO_ADDRESSES) {
		initialize(c);
	} else if (choice == UAR_MCP_CHOOSE_MODERN) {
		c->known = ONLY_MODERN;
		probe(c);
	} else if (choice == UAR_MCP_AUTO && c->o.server.url) {
		probe(c);
	} else {
		initialize(c); /* a child may end over a request that it does not know */
	}
}

static void timer_fired(struct uar_timer *t)
{
	struct uar_mcp_client *c = UAR_OWNER(t, struct uar_mcp_client, timer);

	if (c->state == STATE_WAITING)
		client_connect(c);
	else
		client_connect_later(c, "the server did not answer in time");
}

void client_show_tools(struct uar_mcp_client *c, struct uar_mcp_toolset *tools)
{
	struct uar_mcp_toolset *before = c->tools;

	c->tools = tools;
	c->o.changed(c->o.ctx);
	uar_mcp_toolset_destroy(before);
}

/* What is under way fails; the link is closed when the next attempt begins, as this may be
 * called from inside it. */
void client_connect_later(struct uar_mcp_client *c, const char *reason)
{
	int64_t ms = UAR_LIMIT_MCP_BACKOFF_MS;

	for (unsigned i = 0; i < c->failures && ms < UAR_LIMIT_MCP_BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > UAR_LIMIT_MCP_BACKOFF_MAX_MS)
		ms = UAR_LIMIT_MCP_BACKOFF_MAX_MS;
	c->failures++;
	c->state = STATE_WAITING;
	c->known = NOTHING_KNOWN; /* it may be another server by then */
	c->id[0] = 0;
	uar_buf_clear(&c->reason);
	uar_buf_add_str(&c->reason, uar_str_utf8_prefix(uar_str_c(reason), 400));
	uar_mcp_toolset_destroy(c->next);
	c->next = NULL;
	if (uar_timer_set(c->sched, &c->timer, ms * 1000))
		uar_buf_add_str(&c->reason, UAR_STR("; out of memory"));
	client_show_tools(c, NULL);
	client_fail_calls(c, UAR_ECHILD,
			  c->o.server.url
				  ? "the connection to the server was lost during the call"
				  : "the server ended during the call; it is not made again");
}

/* --- the list ------------------------------------------------------------------------------- */

static void ask_for_tools(struct uar_mcp_client *c, uar_str cursor)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);

	c->state = STATE_LISTING;
	if (!c->next)
		c->next = uar_mcp_toolset_create();
	if (!cursor.p)
		c->pages = 0;
	if (!c->next) {
		client_connect_later(c, uar_err_text(UAR_ENOMEM));
		return;
	}
	uar_jw_obj(&w, NULL);
	if (cursor.p)
		uar_jw_str(&w, "cursor", cursor);
	client_put_envelope(&w, c, NULL);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	ask(c, "tools/list", &b);
}

static void send_relisted(struct uar_mcp_client *c)
{
	UAR_LIST_EACH (it, &c->calls) {
		struct uar_mcp_call *call = UAR_OWNER(it, struct uar_mcp_call, node);

		if (call->lists != LISTS_AGAIN)
			continue;
		call->lists = LISTED_AGAIN;
		client_call_again(call);
	}
}

static void listed(struct uar_mcp_client *c)
{
	struct uar_mcp_toolset *tools = c->next;

	c->next = NULL;
	c->id[0] = 0;
	c->state = STATE_READY;
	c->failures = 0;
	uar_buf_clear(&c->reason);
	uar_timer_stop(c->sched, &c->timer);
	client_show_tools(c, tools);
	send_relisted(c);
	if (c->list_again) {
		c->list_again = false;
		ask_for_tools(c, UAR_STR_NONE);
	} else {
		client_watch_ready(c);
	}
}

static void take_page(struct uar_mcp_client *c, const struct uar_json *result)
{
	const struct uar_json *cursor = uar_json_get(result, UAR_STR("nextCursor"));
	uar_err e = uar_mcp_toolset_add(c->next, uar_json_get(result, UAR_STR("tools")),
					c->o.server.url && c->era == UAR_MCP_ERA_MODERN);

	if (e)
		client_connect_later(c, uar_err_text(e));
	else if (cursor && cursor->kind == UAR_JSON_STRING && ++c->pages < UAR_LIMIT_MCP_PAGES)
		ask_for_tools(c, cursor->text);
	else
		listed(c);
}

void client_list_again(struct uar_mcp_client *c)
{
	if (c->state == STATE_READY)
		ask_for_tools(c, UAR_STR_NONE);
	else if (c->state == STATE_LISTING)
		c->list_again = true;
}

/* --- answers -------------------------------------------------------------------------------- */

static void keep_capabilities(struct uar_mcp_client *c, const struct uar_json *result)
{
	const struct uar_json *caps = uar_json_get(result, UAR_STR("capabilities"));

	uar_buf_clear(&c->caps);
	if (caps && caps->kind == UAR_JSON_OBJECT)
		uar_json_write(&c->caps, caps);
}

static void initialized(struct uar_mcp_client *c, const struct uar_json *result)
{
	uar_str version = uar_json_text(result, "protocolVersion");

	if (!uar_mcp_is_legacy_version(version)) {
		client_connect_later(c, "the server speaks a revision that is not known here");
		return;
	}
	uar_buf_clear(&c->version);
	uar_buf_add_str(&c->version, version);
	keep_capabilities(c, result);
	client_notify(c, "notifications/initialized", NULL);
	c->link->ops->listen(c->link, uar_buf_str(&c->version));
	if (uar_json_get(uar_json_get(result, UAR_STR("capabilities")), UAR_STR("tools")))
		ask_for_tools(c, UAR_STR_NONE);
	else if ((c->next = uar_mcp_toolset_create()))
		listed(c);
	else
		client_connect_later(c, uar_err_text(UAR_ENOMEM));
}

static bool speaks_modern(const struct uar_json *all)
{
	for (const struct uar_json *v = all && all->kind == UAR_JSON_ARRAY ? all->first : NULL; v;
	     v = v->next)
		if (uar_str_is(uar_json_str(v, UAR_STR("")), UAR_MCP_MODERN))
			return true;
	return false;
}

static bool is_discovery(const struct uar_json *result)
{
	return speaks_modern(uar_json_get(result, UAR_STR("supportedVersions")));
}

static void probe_failed(struct uar_mcp_client *c)
{
	if (c->known == ONLY_MODERN)
		ask_for_tools(c, UAR_STR_NONE); /* it does not say what it can do */
	else
		initialize(c);
}

static void take_result(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	switch (c->state) {
	case STATE_PROBING:
		if (is_discovery(m->result)) {
			keep_capabilities(c, m->result);
			ask_for_tools(c, UAR_STR_NONE);
		} else {
			probe_failed(c);
		}
		return;
	case STATE_INITIALIZING: initialized(c, m->result); return;
	case STATE_LISTING: take_page(c, m->result); return;
	case STATE_WAITING:
	case STATE_AUTHORIZING:
	case STATE_READY: return;
	}
}

static void take_error(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	char reason[300];

	if (m->error.code == UAR_MCP_UNSUPPORTED_VERSION && c->era == UAR_MCP_ERA_MODERN &&
	    !c->version_again && speaks_modern(uar_json_get(m->error.data, UAR_STR("supported")))) {
		c->version_again = true; /* it knows the revision that it has just refused */
		if (c->state == STATE_LISTING)
			ask_for_tools(c, UAR_STR_NONE);
		else
			probe(c);
	} else if (c->state == STATE_PROBING) {
		probe_failed(c);
	} else if (c->state == STATE_INITIALIZING && !c->o.server.url &&
		   c->o.server.era == UAR_MCP_AUTO &&
		   (m->error.code == UAR_MCP_METHOD_NOT_FOUND ||
		    m->error.code == UAR_MCP_UNSUPPORTED_VERSION)) {
		c->known = ONLY_MODERN;
		probe(c);
	} else {
		snprintf(reason, sizeof reason, "the server refused: %.*s",
			 UAR_FMT(uar_str_utf8_prefix(m->error.message, 200)));
		client_connect_later(c, reason);
	}
}

static void take_answer(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	struct uar_mcp_call *call = client_find_call(c, m->id);

	if (c->listens[0] && uar_str_is(m->id, c->listens))
		c->listens[0] = 0; /* the server has ended it, or has none */
	else if (call)
		client_take_answer(call, m);
	else if (c->id[0] && uar_str_is(m->id, c->id) && m->kind == UAR_MCP_RESULT)
		take_result(c, m);
	else if (c->id[0] && uar_str_is(m->id, c->id))
		take_error(c, m);
	else if (m->kind == UAR_MCP_ERROR)
		client_watch_refused(c, m->id, m->error.message);
}

/* --- the link ------------------------------------------------------------------------------- */

static void on_message(void *ctx, uar_str text, uar_str of)
{
	struct uar_mcp_client *c = ctx;
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;

	if (c->state == STATE_WAITING)
		return; /* it has been given up */
	uar_arena_init(&arena, 0);
	if (!uar_mcp_message_read(text, &arena, &m, NULL)) {
		switch (m.kind) {
		case UAR_MCP_REQUEST: client_asked(c, &m, of); break;
		case UAR_MCP_NOTIFICATION: client_take_notification(c, &m); break;
		case UAR_MCP_RESULT:
		case UAR_MCP_ERROR: take_answer(c, &m); break;
		}
	}
	uar_arena_fini(&arena);
}

/* The session is gone: the request was not looked at, and a new session is needed. */
static bool lost_session(const struct uar_mcp_client *c, int status)
{
	return c->era == UAR_MCP_ERA_LEGACY && (status == 404 || status == 400) &&
	       c->state >= STATE_LISTING;
}

static bool is_id(uar_str id, const char *mine)
{
	return mine[0] && uar_str_is(id, mine);
}

static bool wants_token(int status)
{
	return status == 401 || status == 403;
}

/* A server that is older than streamable HTTP knows no POST at its address. */
static bool may_be_older(const struct uar_mcp_client *c, int status)
{
	return c->state == STATE_INITIALIZING && c->o.server.url && !c->known &&
	       (status == 400 || status == 404 || status == 405);
}

static void connect_older(struct uar_mcp_client *c)
{
	c->known = TWO_ADDRESSES;
	c->state = STATE_WAITING;
	c->id[0] = 0;
	if (uar_timer_set(c->sched, &c->timer, 0))
		client_connect_later(c, uar_err_text(UAR_ENOMEM));
}

static void listen_later(struct uar_mcp_client *c, int status)
{
	c->listens[0] = 0;
	client_watch_anew(c);
	if (status / 100 != 4 && /* else the server has none */
	    uar_timer_set(c->sched, &c->listen_again, UAR_LIMIT_MCP_LISTEN_MS * 1000LL))
		client_connect_later(c, uar_err_text(UAR_ENOMEM));
}

/* What the state waits for does not come. */
static void step_lost(struct uar_mcp_client *c, int status, const char *text)
{
	if (c->state == STATE_PROBING && status / 100 == 4 && !wants_token(status))
		probe_failed(c);
	else if (may_be_older(c, status))
		connect_older(c);
	else
		client_connect_later(c, text);
}

static void on_lost(void *ctx, uar_str id, uar_err e, int status, const char *reason)
{
	struct uar_mcp_client *c = ctx;
	struct uar_mcp_call *call = client_find_call(c, id);
	bool mine = is_id(id, c->id);
	char text[300];

	if (!status)
		snprintf(text, sizeof text, "%s", reason);
	else
		snprintf(text, sizeof text, "the server answered with HTTP status %d", status);
	if (is_id(id, c->listens)) {
		listen_later(c, status);
		return;
	}
	if (wants_token(status) && (call || mine) && client_authorize_request(c, call, status))
		return;
	if (call)
		client_fail_call(call, e, text);
	else if (!mine)
		client_watch_refused(c, id, uar_str_c(text));
	if (mine)
		step_lost(c, status, text);
	else if (lost_session(c, status))
		client_connect_later(c, text);
}

static void on_down(void *ctx, const char *reason)
{
	struct uar_mcp_client *c = ctx;

	if (c->state != STATE_WAITING)
		client_connect_later(c, reason);
}

/* --- life ------------------------------------------------------------------------------------ */

/* What changed meanwhile nobody told: the list is read, and its end subscribes. */
static void listen_again(struct uar_timer *t)
{
	client_list_again(UAR_OWNER(t, struct uar_mcp_client, listen_again));
}

uar_err uar_mcp_client_create(const struct uar_mcp_client_options *o, struct uar_mcp_client **out)
{
	struct uar_mcp_client *c = uar_zalloc(sizeof *c);
	uar_err e;

	if (!c)
		return UAR_ENOMEM;
	c->o = *o;
	c->sched = uar_loop_sched(o->loop);
	c->version = uar_buf_make(64);
	c->reason = uar_buf_make(512);
	c->caps = uar_buf_make(65536);
	c->timer.fn = timer_fired;
	c->listen_again.fn = listen_again;
	uar_list_init(&c->calls);
	uar_list_init(&c->watched);
	uar_buf_add_str(&c->reason, UAR_STR("it is being connected"));
	e = client_make_auth(c);
	c->o.tokens = UAR_STR_NONE;
	if (!e)
		e = uar_timer_set(c->sched, &c->timer, 0);
	if (e) {
		uar_mcp_client_destroy(c);
		return e;
	}
	*out = c;
	return UAR_OK;
}

void uar_mcp_client_destroy(struct uar_mcp_client *c)
{
	if (!c)
		return;
	while (!uar_list_empty(&c->calls))
		client_free_call(UAR_OWNER(c->calls.next, struct uar_mcp_call, node));
	client_watch_fini(c);
	uar_timer_stop(c->sched, &c->timer);
	uar_timer_stop(c->sched, &c->listen_again);
	uar_mcp_auth_destroy(c->auth);
	if (c->link)
		c->link->ops->destroy(c->link);
	uar_buf_fini(&c->caps);
	uar_mcp_toolset_destroy(c->next);
	uar_mcp_toolset_destroy(c->tools);
	uar_buf_fini(&c->version);
	uar_buf_fini(&c->reason);
	uar_free(c);
}
