/* verbs_mcp.c - `uar mcp`: the server for MCP clients that speak over pipes, and servers that can
 * be tried before they are put into the settings.
 *
 * `serve` passes each line of standard input to a session of the server, and writes what the
 * session says to standard output. Nothing else is written there. */
#include <pthread.h>
#include <stdio.h>

#include "app/args.h"
#include "app/limits.h"
#include "app/remote.h"
#include "loop/client.h"
#include "loop/loop.h"
#include "mcp/settings.h"

/* --- serve ---------------------------------------------------------------------------------- */

struct bridge {
	struct uar_api api;
	struct uar_buf messages, events; /* paths */
	FILE *in, *out;
	pthread_mutex_t lock; /* of `out` */
};

static void say(struct bridge *b, uar_str line)
{
	pthread_mutex_lock(&b->lock);
	fprintf(b->out, "%.*s\n", UAR_FMT(line));
	fflush(b->out);
	pthread_mutex_unlock(&b->lock);
}

static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	if (ev->data.n && uar_str_is(ev->event, "message"))
		say(ctx, ev->data);
	return UAR_OK;
}

/* Ends with the process. */
static void *read_events(void *ctx)
{
	struct bridge *b = ctx;
	struct uar_api_request r = { .method = "GET", .path = b->events.p };
	struct uar_error error = { 0 };
	uar_err e = uar_api_stream(&b->api, &r, on_event, b, &error);

	if (e)
		fprintf(stderr, "uar: mcp: the session broke: %s\n", uar_error_text(&error));
	exit(e ? 1 : 0); /* without the session there is nothing to serve */
}

static uar_err open_session(struct bridge *b, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_api_request r = { .method = "POST",
				     .path = "/api/mcp/sessions",
				     .body = UAR_STR("{\"protocolVersion\":\"" UAR_MCP_LEGACY
						     "\"}") };
	const struct uar_json *root = NULL;
	struct uar_arena arena;
	uar_err e = uar_api_call(&b->api, &r, &text, error);

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_json_parse(uar_buf_str(&text), NULL, &arena, &root, error);
	uar_buf_add_str(&b->messages,
			uar_json_str(uar_json_get(root, UAR_STR("messages_url")), UAR_STR("")));
	uar_buf_add_str(&b->events,
			uar_json_str(uar_json_get(root, UAR_STR("events_url")), UAR_STR("")));
	uar_arena_fini(&arena);
	uar_buf_fini(&text);
	return e ? e : b->messages.n && b->events.n ? UAR_OK : UAR_EINTERNAL;
}

static bool is_accepted(uar_str answer)
{
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;
	bool message;

	uar_arena_init(&arena, 0);
	message = answer.n && !uar_mcp_message_read(answer, &arena, &m, NULL);
	uar_arena_fini(&arena);
	return !message;
}

static void refuse(struct bridge *b, uar_str line, const struct uar_error *error)
{
	struct uar_buf out = uar_buf_make(65536);
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (uar_mcp_message_read(line, &arena, &m, NULL) || m.kind == UAR_MCP_REQUEST)
		if (!uar_mcp_write_error(&out, m.id, UAR_MCP_INTERNAL_ERROR,
					 uar_str_c(uar_error_text(error)), UAR_STR_NONE))
			say(b, uar_buf_str(&out));
	uar_arena_fini(&arena);
	uar_buf_fini(&out);
}

static void pass_on(struct bridge *b, uar_str line)
{
	struct uar_api_request r = { .method = "POST", .path = b->messages.p, .body = line };
	struct uar_buf answer = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_error error = { 0 };

	if (uar_api_call(&b->api, &r, &answer, &error))
		refuse(b, line, &error);
	else if (!is_accepted(uar_buf_str(&answer)))
		say(b, uar_buf_str(&answer));
	uar_buf_fini(&answer);
}

static void pass_lines(struct bridge *b)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, b->in)) >= 0) {
		uar_str text = uar_str_n(line, (size_t)n);

		while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
			text.n--;
		if (uar_str_trim(text).n)
			pass_on(b, text);
	}
	free(line);
}

static int serve(struct uar_cli *cli)
{
	struct bridge b = { .in = cli->in, .out = cli->out, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct uar_error error = { 0 };
	pthread_t reader;
	uar_err e = uar_remote_find(cli, &b.api, &error);

	b.messages = uar_buf_make(1024);
	b.events = uar_buf_make(1024);
	if (!e)
		e = open_session(&b, &error);
	if (e)
		return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	if (pthread_create(&reader, NULL, read_events, &b))
		return uar_cli_fail_with(cli, UAR_EXIT_FAILED, UAR_ENOMEM, NULL);
	pass_lines(&b);
	exit(0); /* the client has closed its end */
}

/* --- test ----------------------------------------------------------------------------------- */

struct trial {
	struct uar_cli *cli;
	struct uar_loop *loop;
	struct uar_mcp_client *client;
	bool ok;
};

/* The first news tell whether it works. */
static void on_changed(void *ctx)
{
	struct trial *t = ctx;
	const struct uar_mcp_tool *tool;
	uar_str reason;

	t->ok = uar_mcp_client_ready(t->client, &reason);
	if (t->ok)
		fprintf(t->cli->out, "connected, revision %.*s\n",
			UAR_FMT(uar_mcp_client_version(t->client)));
	else
		fprintf(stderr, "uar: mcp: %.*s\n%.*s", UAR_FMT(reason),
			UAR_FMT(uar_mcp_client_errors(t->client)));
	for (size_t i = 0; (tool = uar_mcp_client_tool(t->client, i)); i++)
		fprintf(t->cli->out, "%.*s\t%.*s\n", UAR_FMT(tool->name),
			UAR_FMT(uar_str_utf8_prefix(tool->description, 100)));
	uar_loop_stop(t->loop);
}

static uar_err try_server(struct trial *t, const struct uar_mcp_setting *s)
{
	struct uar_client *http = NULL;
	uar_err e = uar_loop_create(&uar_clock_system, &t->loop);

	if (!e)
		e = uar_client_create(t->loop, NULL, &http);
	if (!e)
		e = uar_mcp_client_create(&(struct uar_mcp_client_options){ .loop = t->loop,
									    .http = http,
									    .server = s->server,
									    .changed = on_changed,
									    .ctx = t },
					  &t->client);
	if (!e)
		uar_loop_run(t->loop);
	uar_mcp_client_destroy(t->client);
	uar_client_destroy(http);
	if (t->loop)
		uar_loop_destroy(t->loop);
	return e;
}

static int test_server(struct uar_cli *cli, const char *name)
{
	const char *table = cli->config->value.mcp_servers;
	struct trial t = { .cli = cli };
	struct uar_mcp_settings all = { 0 };
	struct uar_error error = { 0 };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_mcp_settings_read(uar_str_c(table), cli->env, &arena, &all, &error);
	for (size_t i = 0; !e && i < all.count; i++)
		if (strcmp(all.at[i].server.name, name) == 0) {
			e = try_server(&t, &all.at[i]);
			uar_arena_fini(&arena);
			return e      ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, NULL)
			       : t.ok ? UAR_EXIT_OK
				      : UAR_EXIT_FAILED;
		}
	if (!e)
		e = uar_error_set(&error, UAR_ENOTFOUND, "mcp_servers has no \"%s\"", name);
	uar_arena_fini(&arena);
	return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
}

/* --- list ----------------------------------------------------------------------------------- */

static int list_servers(struct uar_cli *cli)
{
	struct uar_mcp_settings all = { 0 };
	struct uar_error error = { 0 };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_mcp_settings_read(uar_str_c(cli->config->value.mcp_servers), cli->env, &arena, &all,
				  &error);
	for (size_t i = 0; i < all.count; i++)
		fprintf(cli->out, "%s\t%s\t%s\n", all.at[i].server.name,
			all.at[i].server.url ? all.at[i].server.url : all.at[i].server.argv[0],
			all.at[i].disabled ? "disabled" : "");
	uar_arena_fini(&arena);
	return e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : UAR_EXIT_OK;
}

int uar_verb_mcp(struct uar_cli *cli)
{
	struct uar_error error = { 0 };
	const char *what = cli->args->word[0];

	if (strcmp(what, "serve") == 0 && cli->args->words == 1)
		return serve(cli);
	if (strcmp(what, "list") == 0 && cli->args->words == 1)
		return list_servers(cli);
	if (strcmp(what, "test") == 0 && cli->args->words == 2)
		return test_server(cli, cli->args->word[1]);
	uar_error_set(&error, UAR_EINVALID, "write mcp serve, mcp list or mcp test SERVER");
	return uar_cli_fail_with(cli, UAR_EXIT_USAGE, UAR_EINVALID, &error);
}
