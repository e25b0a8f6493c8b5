/* verbs_mcp_rows.c - `uar mcp add, import, login, remove`: MCP servers of a running server. */
#include <stdio.h>
#include <unistd.h>

#include "app/args.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/verbs_mcp.h"
#include "base/file.h"
#include "mcp/limits.h"

enum { LOOK_US = 300000, LOOKS = 2000 };

static void write_path(struct uar_buf *out, uar_str name, const char *rest)
{
	uar_buf_add_str(out, UAR_STR("/api/mcp/servers/"));
	uar_api_escape(out, name);
	uar_buf_add_str(out, uar_str_c(rest));
}

static uar_err ask(struct uar_cli *cli, struct uar_api_request r, uar_str name,
		   struct uar_remote_answer *a, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(4096);
	const char *rest = r.path;
	uar_err e;

	write_path(&path, name, rest);
	r.path = path.p;
	e = path.err ? path.err : uar_remote_ask(cli, &r, a, error);
	uar_buf_fini(&path);
	return e;
}

static int say(struct uar_cli *cli, uar_err e, const struct uar_error *error,
	       const struct uar_remote_answer *a)
{
	if (e)
		return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, error);
	if (cli->args->option[UAR_OPT_JSON])
		fprintf(cli->out, "%.*s\n", UAR_FMT(uar_buf_str(&a->text)));
	return UAR_EXIT_OK;
}

static void show(struct uar_cli *cli, const struct uar_json *s)
{
	uar_str url = uar_json_text(uar_json_get(s, UAR_STR("server")), "url");
	uar_str command = uar_json_text(uar_json_get(s, UAR_STR("server")), "command");

	fprintf(cli->out, "%.*s\t%.*s\t%.*s\t%lld tools\t%.*s\n", UAR_FMT(uar_json_text(s, "name")),
		UAR_FMT(url.n ? url : command), UAR_FMT(uar_json_text(s, "state")),
		(long long)uar_json_int(uar_json_get(s, UAR_STR("tools")), 0),
		UAR_FMT(uar_json_text(s, "reason")));
}

/* --- add ------------------------------------------------------------------------------------ */

static bool is_url(const char *word)
{
	return strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0;
}

static uar_err write_server(const struct uar_args *args, struct uar_buf *out,
			    struct uar_error *error)
{
	const char *with = args->option[UAR_OPT_WITH];
	const struct uar_json *more = NULL;
	struct uar_jw w = uar_jw_begin(out);
	struct uar_arena arena = { 0 };
	uar_err e = with ? uar_json_parse(uar_str_c(with), NULL, &arena, &more, error) : UAR_OK;

	if (!e && more && more->kind != UAR_JSON_OBJECT)
		e = uar_error_set(error, UAR_EINVALID, "--with: a JSON object is wanted");
	uar_jw_obj(&w, NULL);
	if (is_url(args->word[2])) {
		uar_jw_cstr(&w, "url", args->word[2]);
	} else {
		uar_jw_cstr(&w, "command", args->word[2]);
		uar_jw_arr(&w, "args");
		for (int i = 3; i < (int)args->words; i++)
			uar_jw_cstr(&w, NULL, args->word[i]);
		uar_jw_close(&w);
	}
	for (const struct uar_json *m = e ? NULL : uar_json_first(more); m; m = m->next) {
		uar_jw_key(&w, m->key);
		uar_jw_tree(&w, NULL, m);
	}
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	uar_arena_fini(&arena);
	return e;
}

static uar_err put(struct uar_cli *cli, uar_str name, uar_str body, struct uar_remote_answer *a,
		   struct uar_error *error)
{
	return ask(cli, (struct uar_api_request){ .method = "PUT", .path = "", .body = body }, name,
		   a, error);
}

int uar_mcp_add(struct uar_cli *cli)
{
	struct uar_buf body = uar_buf_make(2 * (size_t)UAR_LIMIT_MCP_SERVER_TEXT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = write_server(cli->args, &body, &error);
	int status;

	if (!e)
		e = put(cli, uar_str_c(cli->args->word[1]), uar_buf_str(&body), &a, &error);
	if (!e && !cli->args->option[UAR_OPT_JSON])
		fprintf(cli->out, "kept; `uar mcp list` tells whether it is connected\n");
	status = say(cli, e, &error, &a);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&body);
	return status;
}

/* --- import --------------------------------------------------------------------------------- */

/* One that cannot be kept leaves the others. */
static bool import_one(struct uar_cli *cli, const struct uar_json *s)
{
	struct uar_buf body = uar_buf_make(2 * (size_t)UAR_LIMIT_MCP_SERVER_TEXT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e;

	uar_json_write(&body, s);
	e = body.err ? body.err : put(cli, s->key, uar_buf_str(&body), &a, &error);
	if (e)
		fprintf(cli->err, "uar: mcp: %.*s: %s\n", UAR_FMT(s->key),
			error.text[0] ? error.text : uar_err_text(e));
	else
		fprintf(cli->out, "%.*s\n", UAR_FMT(s->key));
	uar_remote_answer_fini(&a);
	uar_buf_fini(&body);
	return !e;
}

int uar_mcp_import(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	const struct uar_json *root = NULL, *table;
	struct uar_error error = { 0 };
	struct uar_arena arena = { 0 };
	bool ok = true;
	uar_err e = uar_file_read(cli->args->word[1], &text, &error);

	if (!e)
		e = uar_json_parse(uar_buf_str(&text), NULL, &arena, &root, &error);
	table = uar_json_get(root, UAR_STR("mcpServers"));
	table = table ? table : uar_json_get(root, UAR_STR("servers"));
	if (!e && (!table || table->kind != UAR_JSON_OBJECT))
		e = uar_error_set(&error, UAR_EINVALID, "%s has no table mcpServers",
				  cli->args->word[1]);
	for (const struct uar_json *s = e ? NULL : uar_json_first(table); s; s = s->next)
		ok &= import_one(cli, s);
	uar_arena_fini(&arena);
	uar_buf_fini(&text);
	if (e)
		return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	return ok ? UAR_EXIT_OK : UAR_EXIT_FAILED;
}

/* --- list, look, remove --------------------------------------------------------------------- */

bool uar_mcp_list_rows(struct uar_cli *cli, int *out_status)
{
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_ask(
		cli, &(struct uar_api_request){ .method = "GET", .path = "/api/mcp/servers" }, &a,
		&error);
	const struct uar_json *all = e ? NULL : uar_json_get(a.root, UAR_STR("servers"));

	if (!cli->args->option[UAR_OPT_JSON])
		for (const struct uar_json *s = uar_json_first(all); s; s = s->next)
			show(cli, s);
	if (!e)
		*out_status = say(cli, e, &error, &a);
	uar_remote_answer_fini(&a);
	return !e;
}

static uar_err look(struct uar_cli *cli, uar_str name, struct uar_remote_answer *a,
		    struct uar_error *error)
{
	return ask(cli, (struct uar_api_request){ .method = "GET", .path = "" }, name, a, error);
}

/* Waits while it is connecting. */
int uar_mcp_test_row(struct uar_cli *cli)
{
	uar_str name = uar_str_c(cli->args->word[1]), state = UAR_STR("");
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = UAR_OK;
	int status;

	for (int i = 0; i < LOOKS / 20 && !e; i++) {
		uar_remote_answer_fini(&a);
		a = (struct uar_remote_answer){ .root = NULL };
		e = look(cli, name, &a, &error);
		state = e ? UAR_STR("") : uar_json_text(a.root, "state");
		if (e || !uar_str_is(state, "connecting"))
			break;
		usleep(LOOK_US);
	}
	if (!e && !cli->args->option[UAR_OPT_JSON])
		show(cli, a.root);
	status = say(cli, e, &error, &a);
	if (!e && !uar_str_is(state, "connected"))
		status = UAR_EXIT_FAILED;
	uar_remote_answer_fini(&a);
	return status;
}

int uar_mcp_remove(struct uar_cli *cli)
{
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = ask(cli, (struct uar_api_request){ .method = "DELETE", .path = "" },
			uar_str_c(cli->args->word[1]), &a, &error);
	int status = say(cli, e, &error, &a);

	uar_remote_answer_fini(&a);
	return status;
}

/* --- login ---------------------------------------------------------------------------------- */

/* True: it is over, one way or the other. */
static bool follow_login(struct uar_cli *cli, const struct uar_json *s, bool *told, int *out)
{
	uar_str state = uar_json_text(s, "state"), url = uar_json_text(s, "login_url");

	if (uar_str_is(state, "login_required") && !*told) {
		fprintf(cli->out, "Open this address to log in:\n%.*s\n", UAR_FMT(url));
		fflush(cli->out);
		*told = true;
	}
	if (uar_str_is(state, "connected")) {
		fprintf(cli->out, "connected\n");
		*out = UAR_EXIT_OK;
		return true;
	}
	if (uar_str_is(state, "failed") && *told) {
		fprintf(cli->err, "uar: mcp: %.*s\n", UAR_FMT(uar_json_text(s, "reason")));
		return true;
	}
	return uar_str_is(state, "disabled");
}

int uar_mcp_login(struct uar_cli *cli)
{
	uar_str name = uar_str_c(cli->args->word[1]);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	int status = UAR_EXIT_FAILED;
	bool told = false;
	uar_err e = ask(cli,
			(struct uar_api_request){ .method = "POST",
						  .path = "/login",
						  .body = UAR_STR("{\"again\":true}") },
			name, &a, &error);

	for (int i = 0; i < LOOKS && !e && !follow_login(cli, a.root, &told, &status); i++) {
		usleep(LOOK_US);
		uar_remote_answer_fini(&a);
		a = (struct uar_remote_answer){ .root = NULL };
		e = look(cli, name, &a, &error);
	}
	uar_remote_answer_fini(&a);
	return e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : status;
}
