/* mcp_client.c - UAR's connection to MCP servers, as the official conformance suite calls it:
 * mcp-client URL, with the name of the scenario and its context in the environment. A "browser"
 * asks the authorization server and reads where it is sent. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "json/jw.h"
#include "loop/loop.h"
#include "mcp/client.h"
#include "mcp/elicit.h"

#define CLIENT_ID "https://conformance-test.local/client-metadata.json"

struct judged {
	struct uar_loop *loop;
	struct uar_mcp_client *client;
	const char *scenario;
	const struct uar_json *context; /* NULL: none */
	struct uar_arena arena;
	struct uar_arena answer; /* of the last list */
	size_t next;		 /* call of the plan */
	int status;
	bool started;
};

static void finish(struct judged *j, int status)
{
	j->status = status;
	uar_loop_stop(j->loop);
}

static bool is(const struct judged *j, const char *scenario)
{
	return strcmp(j->scenario, scenario) == 0;
}

static uar_str member(const struct uar_json *j, const char *name)
{
	return uar_json_str(uar_json_get(j, uar_str_c(name)), UAR_STR(""));
}

/* --- the browser ---------------------------------------------------------------------------- */

static uar_str query_of(struct judged *j, const char *url, const char *name)
{
	const char *at = strchr(url, '?');
	size_t n = strlen(name);

	while (at) {
		at++;
		if (strncmp(at, name, n) == 0 && at[n] == '=') {
			const char *value = at + n + 1;
			int length = 0;
			char *plain =
				curl_easy_unescape(NULL, value, (int)strcspn(value, "&"), &length);
			uar_str own = uar_arena_str(&j->arena, uar_str_n(plain, (size_t)length));

			curl_free(plain);
			return own;
		}
		at = strchr(at, '&');
	}
	return UAR_STR_NONE;
}

static size_t drop_bytes(char *p, size_t size, size_t n, void *ctx)
{
	(void)p, (void)ctx;
	return size * n;
}

static void browse(struct judged *j, const char *url)
{
	CURL *c = curl_easy_init();
	struct uar_mcp_redirect r;
	char *to = NULL;

	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop_bytes);
	if (curl_easy_perform(c) || curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &to) || !to) {
		fprintf(stderr, "the authorization server sends nowhere\n");
		finish(j, 1);
	} else {
		r = (struct uar_mcp_redirect){ query_of(j, to, "state"), query_of(j, to, "code"),
					       query_of(j, to, "iss"), query_of(j, to, "error") };
		if (uar_mcp_client_logged_in(j->client, &r))
			finish(j, 1);
	}
	curl_easy_cleanup(c);
}

/* --- calls ---------------------------------------------------------------------------------- */

static void go_on(struct judged *j);

static void on_done(void *ctx, const struct uar_mcp_call_result *r)
{
	struct judged *j = ctx;

	if (r->err)
		fprintf(stderr, "call %zu: %.*s\n", j->next, UAR_FMT(r->reason));
	if (r->err && strncmp(j->scenario, "auth/", 5) == 0) {
		finish(j, 1);
		return;
	}
	if (r->result) {
		struct uar_buf text = uar_buf_make(1 << 22);

		uar_json_write(&text, r->result);
		uar_arena_reset(&j->answer);
		uar_arena_str(&j->answer, uar_buf_str(&text));
		printf("%.*s\n", UAR_FMT(uar_buf_str(&text)));
		uar_buf_fini(&text);
	}
	go_on(j);
}

static void on_asked(void *ctx, struct uar_mcp_ask *ask)
{
	struct judged *j = ctx;
	struct uar_buf b = uar_buf_make(65536);

	if (ask->kind == UAR_MCP_LOGIN)
		browse(j, ask->url);
	else if (!uar_mcp_elicit_accept(ask->params, NULL, &b))
		uar_mcp_ask_answer(ask, uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void request(struct judged *j, const char *method, uar_str name, uar_str params)
{
	struct uar_mcp_call_events events = { .done = on_done, .asked = on_asked, .ctx = j };
	struct uar_mcp_request r = { .method = method, .name = name, .params = params };
	struct uar_mcp_call *call;

	if (uar_mcp_client_request(j->client, &r, &events, &call))
		finish(j, 1);
}

static void call_tool(struct judged *j, uar_str name, uar_str arguments)
{
	struct uar_mcp_call_events events = { .done = on_done, .asked = on_asked, .ctx = j };
	struct uar_mcp_call *call;

	if (uar_mcp_client_call(j->client, name, arguments, &events, &call))
		finish(j, 1);
}

/* Arguments that fit: a value of its type for each property that is required. */
static uar_str fitting(struct judged *j, uar_str schema)
{
	const struct uar_json *s = NULL, *required, *p;
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);
	uar_str own;

	uar_jw_obj(&w, NULL);
	if (!uar_json_parse(schema, NULL, &j->arena, &s, NULL)) {
		required = uar_json_get(s, UAR_STR("required"));
		for (p = uar_json_first(required); p; p = p->next) {
			uar_str type = member(
				uar_json_get(uar_json_get(s, UAR_STR("properties")), p->text),
				"type");

			if (uar_str_is(type, "number") || uar_str_is(type, "integer"))
				uar_jw_put_int(&w, p->text, 5);
			else if (uar_str_is(type, "boolean"))
				uar_jw_put_bool(&w, p->text, true);
			else
				uar_jw_put_str(&w, p->text, UAR_STR("text"));
		}
	}
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		abort();
	own = uar_arena_str(&j->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return own;
}

static void call_nth(struct judged *j, size_t n)
{
	const struct uar_mcp_tool *t = uar_mcp_client_tool(j->client, n);

	if (t)
		call_tool(j, t->name, fitting(j, t->input_schema));
	else
		finish(j, 0);
}

static void call_named(struct judged *j, const char *const *names)
{
	if (names[j->next - 1])
		call_tool(j, uar_str_c(names[j->next - 1]), UAR_STR("{}"));
	else
		finish(j, 0);
}

/* What the suite wants to be called. */
static void call_planned(struct judged *j)
{
	const struct uar_json *c =
		uar_json_at(uar_json_get(j->context, UAR_STR("toolCalls")), j->next - 1);
	const struct uar_json *args = uar_json_get(c, UAR_STR("arguments"));
	struct uar_buf b = uar_buf_make(65536);

	if (args)
		uar_json_write(&b, args);
	if (c)
		call_tool(j, member(c, "name"), args ? uar_buf_str(&b) : UAR_STR("{}"));
	else
		finish(j, 0);
	uar_buf_fini(&b);
}

static void echo_schema(struct judged *j)
{
	const struct uar_mcp_tool *t;
	struct uar_buf b = uar_buf_make(1 << 20);

	for (size_t i = 0; (t = uar_mcp_client_tool(j->client, i)); i++)
		if (!uar_str_is(t->name, "json_schema_echo"))
			break;
	if (t && j->next == 1) {
		uar_buf_printf(&b, "{\"schema\":%.*s}", UAR_FMT(t->input_schema));
		call_tool(j, UAR_STR("json_schema_echo"), uar_buf_str(&b));
	} else {
		finish(j, 0);
	}
	uar_buf_fini(&b);
}

/* A tool, then what it lists besides, and the first of each. */
static void walk(struct judged *j)
{
	switch (j->next) {
	case 1: call_nth(j, 0); break;
	case 2: request(j, "resources/list", UAR_STR(""), UAR_STR("{}")); break;
	case 3:
		request(j, "resources/read", UAR_STR("file:///path/to/file%20name.txt"),
			UAR_STR("{\"uri\":\"file:///path/to/file%20name.txt\"}"));
		break;
	case 4: request(j, "prompts/list", UAR_STR(""), UAR_STR("{}")); break;
	case 5:
		request(j, "prompts/get", UAR_STR("test_prompt"),
			UAR_STR("{\"name\":\"test_prompt\"}"));
		break;
	default: finish(j, 0);
	}
}

static void go_on(struct judged *j)
{
	static const char *const states[] = { "test_mrtr_echo_state", "test_mrtr_no_state",
					      "test_mrtr_unrelated", "test_mrtr_no_result_type",
					      NULL };

	j->next++;
	if (is(j, "initialize") || is(j, "request-metadata") || is(j, "json-schema-ref-no-deref"))
		finish(j, 0);
	else if (is(j, "http-custom-headers"))
		call_planned(j);
	else if (is(j, "http-invalid-tool-headers"))
		call_nth(j, j->next - 1);
	else if (is(j, "http-standard-headers"))
		walk(j);
	else if (is(j, "sep-2322-client-request-state"))
		call_named(j, states);
	else if (is(j, "json-schema-2020-12-preservation"))
		echo_schema(j);
	else if (j->next == 1)
		call_nth(j, 0);
	else
		finish(j, 0);
}

static void on_changed(void *ctx)
{
	struct judged *j = ctx;
	uar_str reason;

	if (uar_mcp_client_ready(j->client, &reason)) {
		if (!j->started)
			go_on(j);
		j->started = true;
	} else if (uar_mcp_client_login(j->client)) {
		browse(j, uar_mcp_client_login(j->client));
	} else if (uar_mcp_client_failed(j->client)) {
		fprintf(stderr, "%.*s\n", UAR_FMT(reason));
		finish(j, 1);
	}
}

static bool is_pinned(const struct judged *j)
{
	return strncmp(j->scenario, "http-", 5) == 0 || is(j, "sep-2322-client-request-state");
}

static const char *text_of(struct judged *j, const char *name)
{
	uar_str s = member(j->context, name);

	return s.n ? uar_arena_str(&j->arena, s).p : NULL;
}

int main(int argc, char **argv)
{
	const char *scenario = getenv("MCP_CONFORMANCE_SCENARIO");
	const char *context = getenv("MCP_CONFORMANCE_CONTEXT");
	struct judged j = { .scenario = scenario ? scenario : "initialize", .status = 1 };
	struct uar_guard *guard = NULL;
	struct uar_client *http = NULL;
	struct uar_mcp_client_options o = { .asks = true,
					    .redirect_url = "http://localhost:39999/callback",
					    .changed = on_changed,
					    .ctx = &j };
	static const char *const open[] = { "localhost", "127.0.0.0/8", "[::1]" };

	uar_arena_init(&j.arena, 0);
	uar_arena_init(&j.answer, 0);
	if (context && uar_json_parse(uar_arena_str(&j.arena, uar_str_c(context)), NULL, &j.arena,
				      &j.context, NULL))
		return 2;
	if (uar_loop_create(&uar_clock_system, &j.loop) ||
	    uar_guard_create(open, ARRAY_LEN(open), &guard, NULL) ||
	    uar_client_create(j.loop, NULL, &http))
		return 2;
	uar_client_set_guard(http, guard);
	o.loop = j.loop;
	o.http = http;
	o.server = (struct uar_mcp_server){ .name = "judge", .url = argv[argc - 1] };
	o.server.era = is_pinned(&j) ? UAR_MCP_CHOOSE_MODERN : UAR_MCP_AUTO;
	o.server.oauth =
		(struct uar_mcp_oauth_setting){ .client_id = text_of(&j, "client_id"),
						.client_secret = text_of(&j, "client_secret"),
						.client_metadata_url = CLIENT_ID };
	if (uar_mcp_client_create(&o, &j.client))
		return 2;
	uar_loop_run(j.loop);
	return j.status;
}
