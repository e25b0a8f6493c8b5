/* verbs_mcp.c - `uar mcp`: the server for MCP clients that speak over pipes, and servers that can
 * be tried before they are put into the settings. */
#include <stdio.h>

#include "app/args.h"
#include "app/limits.h"
#include "app/cli.h"
#include "app/mcp_bridge.h"
#include "app/verbs_mcp.h"
#include "loop/client.h"
#include "loop/loop.h"
#include "mcp/settings.h"

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
	uar_arena_fini(&arena);
	if (!e) /* it is none of the settings */
		return uar_mcp_test_row(cli);
	return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
}

/* --- list ----------------------------------------------------------------------------------- */

static int list_servers(struct uar_cli *cli)
{
	struct uar_mcp_settings all = { 0 };
	struct uar_error error = { 0 };
	struct uar_arena arena;
	uar_err e;
	int status;

	if (uar_mcp_list_rows(cli, &status))
		return status;
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

static int serve(struct uar_cli *cli)
{
	return uar_mcp_bridge(cli);
}

static int test(struct uar_cli *cli)
{
	return test_server(cli, cli->args->word[1]);
}

int uar_verb_mcp(struct uar_cli *cli)
{
	static const struct {
		const char *word;
		size_t least, most; /* words with it */
		int (*fn)(struct uar_cli *cli);
	} all[] = { { "serve", 1, 1, serve },
		    { "list", 1, 1, list_servers },
		    { "test", 2, 2, test },
		    { "add", 3, UAR_LIMIT_CLI_WORDS, uar_mcp_add },
		    { "import", 2, 2, uar_mcp_import },
		    { "login", 2, 2, uar_mcp_login },
		    { "remove", 2, 2, uar_mcp_remove } };
	struct uar_error error = { 0 };
	size_t words = (size_t)cli->args->words;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(cli->args->word[0], all[i].word) == 0 && words >= all[i].least &&
		    words <= all[i].most)
			return all[i].fn(cli);
	uar_error_set(&error, UAR_EINVALID,
		      "write mcp serve, list, test SERVER, add NAME URL, add NAME COMMAND ..., "
		      "import FILE, login SERVER or remove SERVER");
	return uar_cli_fail_with(cli, UAR_EXIT_USAGE, UAR_EINVALID, &error);
}
