/* client.c - the state machine of a connection: connect, detect the era, list, serve calls. */
#include "base/alloc.h"
#include "mcp/client_int.h"

static void connect_later(struct uar_mcp_client *c, const char *reason);
static void ask_for_tools(struct uar_mcp_client *c, uar_str cursor);

/* --- out ------------------------------------------------------------------------------------ */

void client_next_id(struct uar_mcp_client *c, char out[24])
{
	snprintf(out, 24, "%llu", (unsigned long long)++c->ids);
}

void client_put_envelope(struct uar_jw *w, const struct uar_mcp_client *c, const char *progress)
{
	if (c->era != UAR_MCP_ERA_MODERN && !progress)
		return;
	uar_jw_obj(w, "_meta");
	if (c->era == UAR_MCP_ERA_MODERN) {
		uar_jw_cstr(w, UAR_MCP_META "protocolVersion", UAR_MCP_MODERN);
		uar_jw_obj(w, UAR_MCP_META "clientCapabilities");
		uar_jw_close(w);
		uar_jw_obj(w, UAR_MCP_META "clientInfo");
		uar_jw_cstr(w, "name", "uar");
		uar_jw_cstr(w, "version", UAR_VERSION);
		uar_jw_close(w);
	}
	if (progress)
		uar_jw_raw(w, "progressToken", uar_str_c(progress));
	uar_jw_close(w);
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

	return c->link->ops->send(c->link, &m);
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
		connect_later(c, uar_err_text(e));
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
	uar_jw_obj(&w, "capabilities");
	uar_jw_obj(&w, "roots");
	uar_jw_close(&w);
	uar_jw_close(&w);
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

static void on_message(void *ctx, uar_str text);
static void on_lost(void *ctx, uar_str id, uar_err e, int status, const char *reason);
static void on_down(void *ctx, const char *reason);

static uar_err open_link(struct uar_mcp_client *c, struct uar_error *error)
{
	struct uar_mcp_link_events events = { on_message, on_lost, on_down, c };

	if (c->o.server.url) {
		struct uar_mcp_http_options o = { .client = c->o.http,
						  .sched = c->sched,
						  .url = c->o.server.url,
						  .headers = c->o.server.headers,
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

static void connect_now(struct uar_mcp_client *c)
{
	enum uar_mcp_choice choice = c->o.server.era;
	struct uar_error error = { 0 };
	uar_err e;

	if (c->link)
		c->link->ops->destroy(c->link);
	c->link = NULL;
	e = open_link(c, &error);
	if (e) {
		connect_later(c, error.text[0] ? error.text : uar_err_text(e));
		return;
	}
	if (choice == UAR_MCP_CHOOSE_MODERN) {
		become_modern(c);
		ask_for_tools(c, UAR_STR_NONE);
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
		connect_now(c);
	else
		connect_later(c, "the server did not answer in time");
}

static void show_tools(struct uar_mcp_client *c, struct uar_mcp_toolset *tools)
{
	struct uar_mcp_toolset *before = c->tools;

	c->tools = tools;
	c->o.changed(c->o.ctx);
	uar_mcp_toolset_destroy(before);
}

/* What is under way fails; the link is closed when the next attempt begins, as this may be
 * called from inside it. */
static void connect_later(struct uar_mcp_client *c, const char *reason)
{
	int64_t ms = UAR_LIMIT_MCP_BACKOFF_MS;

	for (unsigned i = 0; i < c->failures && ms < UAR_LIMIT_MCP_BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > UAR_LIMIT_MCP_BACKOFF_MAX_MS)
		ms = UAR_LIMIT_MCP_BACKOFF_MAX_MS;
	c->failures++;
	c->state = STATE_WAITING;
	c->id[0] = 0;
	uar_buf_clear(&c->reason);
	uar_buf_add_str(&c->reason, uar_str_utf8_prefix(uar_str_c(reason), 400));
	uar_mcp_toolset_destroy(c->next);
	c->next = NULL;
	if (uar_timer_set(c->sched, &c->timer, ms * 1000))
		uar_buf_add_str(&c->reason, UAR_STR("; out of memory"));
	show_tools(c, NULL);
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
		connect_later(c, uar_err_text(UAR_ENOMEM));
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

static void listed(struct uar_mcp_client *c)
{
	struct uar_mcp_toolset *tools = c->next;

	c->next = NULL;
	c->id[0] = 0;
	c->state = STATE_READY;
	c->failures = 0;
	uar_buf_clear(&c->reason);
	uar_timer_stop(c->sched, &c->timer);
	show_tools(c, tools);
	if (c->list_again) {
		c->list_again = false;
		ask_for_tools(c, UAR_STR_NONE);
	}
}

static void take_page(struct uar_mcp_client *c, const struct uar_json *result)
{
	const struct uar_json *cursor = uar_json_get(result, UAR_STR("nextCursor"));
	uar_err e = uar_mcp_toolset_add(c->next, uar_json_get(result, UAR_STR("tools")));

	if (e)
		connect_later(c, uar_err_text(e));
	else if (cursor && cursor->kind == UAR_JSON_STRING && ++c->pages < UAR_LIMIT_MCP_PAGES)
		ask_for_tools(c, cursor->text);
	else
		listed(c);
}

static void tools_changed(struct uar_mcp_client *c)
{
	if (c->state == STATE_READY)
		ask_for_tools(c, UAR_STR_NONE);
	else if (c->state == STATE_LISTING)
		c->list_again = true;
}

/* --- answers -------------------------------------------------------------------------------- */

static void initialized(struct uar_mcp_client *c, const struct uar_json *result)
{
	uar_str version =
		uar_json_str(uar_json_get(result, UAR_STR("protocolVersion")), UAR_STR(""));

	if (!uar_mcp_is_legacy_version(version)) {
		connect_later(c, "the server speaks a revision that is not known here");
		return;
	}
	uar_buf_clear(&c->version);
	uar_buf_add_str(&c->version, version);
	client_notify(c, "notifications/initialized", NULL);
	c->link->ops->listen(c->link, uar_buf_str(&c->version));
	if (uar_json_get(uar_json_get(result, UAR_STR("capabilities")), UAR_STR("tools")))
		ask_for_tools(c, UAR_STR_NONE);
	else if ((c->next = uar_mcp_toolset_create()))
		listed(c);
	else
		connect_later(c, uar_err_text(UAR_ENOMEM));
}

static bool is_discovery(const struct uar_json *result)
{
	const struct uar_json *all = uar_json_get(result, UAR_STR("supportedVersions"));

	for (const struct uar_json *v = all && all->kind == UAR_JSON_ARRAY ? all->first : NULL; v;
	     v = v->next)
		if (uar_str_is(uar_json_str(v, UAR_STR("")), UAR_MCP_MODERN))
			return true;
	return false;
}

static void take_result(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	switch (c->state) {
	case STATE_PROBING:
		if (is_discovery(m->result))
			ask_for_tools(c, UAR_STR_NONE);
		else
			initialize(c);
		return;
	case STATE_INITIALIZING: initialized(c, m->result); return;
	case STATE_LISTING: take_page(c, m->result); return;
	case STATE_WAITING:
	case STATE_READY: return;
	}
}

static void take_error(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	char reason[300];

	if (c->state == STATE_PROBING) {
		initialize(c);
	} else if (c->state == STATE_INITIALIZING && !c->o.server.url &&
		   c->o.server.era == UAR_MCP_AUTO &&
		   (m->error.code == UAR_MCP_METHOD_NOT_FOUND ||
		    m->error.code == UAR_MCP_UNSUPPORTED_VERSION)) {
		become_modern(c);
		ask_for_tools(c, UAR_STR_NONE);
	} else {
		snprintf(reason, sizeof reason, "the server refused: %.*s",
			 UAR_FMT(uar_str_utf8_prefix(m->error.message, 200)));
		connect_later(c, reason);
	}
}

static void answer_call(struct uar_mcp_call *call, const struct uar_mcp_message *m)
{
	struct uar_mcp_call_result r = { .result = m->result };

	if (m->kind == UAR_MCP_ERROR) {
		r.err = UAR_EPROVIDER;
		r.code = m->error.code;
		r.reason = m->error.message;
	}
	client_finish_call(call, &r);
}

static void take_answer(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	struct uar_mcp_call *call = client_find_call(c, m->id);

	if (call)
		answer_call(call, m);
	else if (c->id[0] && uar_str_is(m->id, c->id) && m->kind == UAR_MCP_RESULT)
		take_result(c, m);
	else if (c->id[0] && uar_str_is(m->id, c->id))
		take_error(c, m);
}

/* --- what the server asks, or tells ---------------------------------------------------------- */

static void take_request(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	struct uar_buf b = uar_buf_make(4096);
	uar_err e;

	if (uar_str_is(m->method, "ping"))
		e = uar_mcp_write_result(&b, m->id, UAR_STR("{}"));
	else if (uar_str_is(m->method, "roots/list"))
		e = uar_mcp_write_result(&b, m->id, UAR_STR("{\"roots\":[]}"));
	else
		e = uar_mcp_write_error(&b, m->id, UAR_MCP_METHOD_NOT_FOUND,
					UAR_STR("this client does not offer that"), UAR_STR_NONE);
	if (!e)
		e = transmit(c, uar_buf_str(&b), UAR_STR_NONE, UAR_STR_NONE, UAR_STR_NONE);
	(void)e; /* the server will notice */
	uar_buf_fini(&b);
}

static void take_progress(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	const struct uar_json *token = uar_json_get(m->params, UAR_STR("progressToken"));
	struct uar_mcp_call *call;
	char id[24] = "";

	if (token && token->kind == UAR_JSON_INT)
		snprintf(id, sizeof id, "%lld", (long long)token->i);
	call = client_find_call(c, uar_str_c(id));
	if (!call)
		return;
	client_keep_waiting(call);
	call = client_find_call(c, uar_str_c(id));
	if (call && call->events.progress)
		call->events.progress(call->events.ctx, m->params);
}

static void take_notification(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	if (uar_str_is(m->method, "notifications/progress"))
		take_progress(c, m);
	else if (uar_str_is(m->method, "notifications/tools/list_changed"))
		tools_changed(c);
}

static void on_message(void *ctx, uar_str text)
{
	struct uar_mcp_client *c = ctx;
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;

	if (c->state == STATE_WAITING)
		return; /* it has been given up */
	uar_arena_init(&arena, 0);
	if (!uar_mcp_message_read(text, &arena, &m, NULL)) {
		switch (m.kind) {
		case UAR_MCP_REQUEST: take_request(c, &m); break;
		case UAR_MCP_NOTIFICATION: take_notification(c, &m); break;
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

static void on_lost(void *ctx, uar_str id, uar_err e, int status, const char *reason)
{
	struct uar_mcp_client *c = ctx;
	struct uar_mcp_call *call = client_find_call(c, id);
	char text[300];

	if (!status)
		snprintf(text, sizeof text, "%s", reason);
	else
		snprintf(text, sizeof text, "the server answered with HTTP status %d", status);
	if (call)
		client_fail_call(call, e, text);
	if (c->id[0] && uar_str_is(id, c->id) && c->state == STATE_PROBING && status / 100 == 4 &&
	    status != 401 && status != 403)
		initialize(c);
	else if ((c->id[0] && uar_str_is(id, c->id)) || lost_session(c, status))
		connect_later(c, text);
}

static void on_down(void *ctx, const char *reason)
{
	struct uar_mcp_client *c = ctx;

	if (c->state != STATE_WAITING)
		connect_later(c, reason);
}

/* --- life ------------------------------------------------------------------------------------ */

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
	c->timer.fn = timer_fired;
	uar_list_init(&c->calls);
	uar_buf_add_str(&c->reason, UAR_STR("it is being connected"));
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
	uar_timer_stop(c->sched, &c->timer);
	if (c->link)
		c->link->ops->destroy(c->link);
	uar_mcp_toolset_destroy(c->next);
	uar_mcp_toolset_destroy(c->tools);
	uar_buf_fini(&c->version);
	uar_buf_fini(&c->reason);
	uar_free(c);
}

const struct uar_mcp_tool *uar_mcp_client_tool(const struct uar_mcp_client *c, size_t index)
{
	return uar_mcp_toolset_at(c->tools, index);
}

bool uar_mcp_client_ready(const struct uar_mcp_client *c, uar_str *out_reason)
{
	*out_reason = uar_buf_str(&c->reason);
	return c->tools != NULL;
}

uar_str uar_mcp_client_version(const struct uar_mcp_client *c)
{
	return uar_buf_str(&c->version);
}

uar_str uar_mcp_client_errors(const struct uar_mcp_client *c)
{
	return c->link ? c->link->ops->errors(c->link) : UAR_STR_NONE;
}
