/* verbs_plugin.c - verbs for entries of plugins: plugins, trigger, retry. */
#include "app/cli.h"
#include "app/leave.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/render.h"
#include "app/text.h"
#include "gate/limits.h"
#include "http/limits.h"

static int failed(struct uar_cli *cli, uar_err e, const struct uar_error *error)
{
	return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, error);
}

static bool wants_json(const struct uar_cli *cli)
{
	return cli->args->option[UAR_OPT_JSON] != NULL;
}

static int write_and_fini(struct uar_cli *cli, struct uar_buf *text)
{
	int status = uar_cli_write(cli, text);

	uar_buf_fini(text);
	return status;
}

static int write_raw(struct uar_cli *cli, struct uar_remote_answer *a)
{
	uar_buf_add_char(&a->text, '\n');
	return uar_cli_write(cli, &a->text);
}

/* --- plugins --------------------------------------------------------------------- */

static void put_cell(struct uar_buf *out, uar_str text, size_t width)
{
	size_t before = out->n;

	uar_text_brief(out, text, width);
	while (out->n - before < width + 2 && !out->err)
		uar_buf_add_char(out, ' ');
}

static int write_entries(struct uar_cli *cli, const struct uar_json *list)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);

	if (!uar_json_at(list, 0))
		uar_buf_add_str(
			&text,
			UAR_STR("no plugins: when the server was started there was no folder with "
				"a "
				"plugin.json in `plugins` of its data directory, or where the "
				"setting plugins_dir points\n"));
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next) {
		uar_str doc = uar_json_text(j, "description");

		put_cell(&text, uar_json_text(j, "plugin_id"), 24);
		put_cell(&text, uar_json_text(j, "entry_id"), 24);
		put_cell(&text, uar_json_text(j, "version"), 10);
		uar_text_brief(&text, doc.n ? doc : uar_json_text(j, "title"), 80);
		uar_buf_add_char(&text, '\n');
	}
	return write_and_fini(cli, &text);
}

int uar_verb_plugins(struct uar_cli *cli)
{
	struct uar_api_request r = { .method = "GET", .path = "/plugins" };
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_ask(cli, &r, &a, &error);
	int status;

	if (e)
		status = failed(cli, e, &error);
	else if (wants_json(cli))
		status = write_raw(cli, &a);
	else
		status = write_entries(cli, uar_json_get(a.root, UAR_STR("entries")));
	uar_remote_answer_fini(&a);
	return status;
}

/* --- waiting for the end ------------------------------------------------------------ */

static bool show_event(void *ctx, uar_str data)
{
	struct uar_render *render = ctx;
	const struct uar_json *event;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	if (uar_json_parse(data, NULL, &a, &event, NULL) == UAR_OK &&
	    !uar_str_is(uar_json_text(event, "type"), "Artifact")) /* printed whole at the end */
		uar_render_event(render, event);
	uar_arena_fini(&a);
	return true;
}

static bool show_nothing(void *ctx, uar_str data)
{
	(void)ctx, (void)data;
	return true;
}

/* For people a line, text as it is and anything else as JSON; for programs a member of a list. */
static void put_item(const struct uar_cli *cli, struct uar_buf *out, const struct uar_json *item,
		     bool first)
{
	if (wants_json(cli)) {
		uar_buf_add_str(out, first ? UAR_STR("") : UAR_STR(","));
		uar_json_write(out, item);
		return;
	}
	uar_text_value(out, uar_json_get(item, uar_json_text(item, "type")));
	uar_buf_add_char(out, '\n');
}

/* Writes a page and leaves in `after` where the next one begins; empty: there is none. */
static uar_err write_page(struct uar_cli *cli, const char *path, struct uar_buf *after,
			  struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_remote_answer a = { .root = NULL };
	bool first = after->n == 0;
	uar_err e = uar_remote_ask(cli, &(struct uar_api_request){ .method = "GET", .path = path },
				   &a, error);

	uar_buf_clear(after);
	if (!e) {
		for (const struct uar_json *item =
			     uar_json_at(uar_json_get(a.root, UAR_STR("items")), 0);
		     item; item = item->next, first = false)
			put_item(cli, &text, item, first);
		uar_buf_add_str(after, uar_json_text(a.root, "next_after"));
		e = uar_cli_write(cli, &text) == UAR_EXIT_OK ? after->err : UAR_EIO;
	}
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	return e;
}

static uar_err write_items(struct uar_cli *cli, const char *run_id, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_buf after = uar_buf_make(UAR_LIMIT_ID_BYTES);
	uar_err e;

	do {
		uar_buf_clear(&path);
		uar_buf_printf(&path, "/runs/%s/export?limit=%d%s%.*s", run_id,
			       UAR_LIMIT_EXPORT_PAGE, after.n ? "&after=" : "",
			       UAR_FMT(uar_buf_str(&after)));
		e = path.err ? path.err : write_page(cli, path.p, &after, error);
	} while (!e && after.n);
	uar_buf_fini(&after);
	uar_buf_fini(&path);
	return e;
}

/* The record with one more member, the list of items. It is written page by page: items
 * may be more than an answer holds. */
static uar_err write_whole(struct uar_cli *cli, const char *run_id, struct uar_error *error)
{
	struct uar_remote_answer a = { .root = NULL };
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	uar_err e = uar_remote_record(cli, uar_str_c(run_id), &a, error);

	if (!e && a.root->kind != UAR_JSON_OBJECT)
		e = uar_error_set(error, UAR_ESYNTAX, "the answer is no record");
	if (!e) {
		uar_json_write(&text, a.root);
		text.n -= !text.err; /* its brace comes behind the items */
		uar_buf_add_str(&text, UAR_STR(",\"items\":["));
		e = uar_cli_write(cli, &text) == UAR_EXIT_OK ? UAR_OK : UAR_EIO;
	}
	if (!e)
		e = write_items(cli, run_id, error);
	uar_buf_clear(&text);
	uar_buf_add_str(&text, UAR_STR("]}\n"));
	if (!e && uar_cli_write(cli, &text) != UAR_EXIT_OK)
		e = UAR_EIO;
	uar_buf_fini(&text);
	uar_remote_answer_fini(&a);
	return e;
}

static int wait_for(struct uar_cli *cli, const char *run_id)
{
	struct uar_render render = { .text = cli->err,
				     .notes = cli->err,
				     .notes_colour = uar_cli_colour(cli, cli->err_tty),
				     .live = cli->err_tty };
	struct uar_remote_follow f = { .run_id = uar_str_c(run_id),
				       .to_the_end = true,
				       .patient = true,
				       .progress = cli->err_tty && !wants_json(cli),
				       .show = wants_json(cli) ? show_nothing : show_event,
				       .ctx = &render };
	struct uar_error error = { 0 };
	struct uar_leave leave;
	uar_err e;

	uar_leave_begin(&leave, cli, run_id);
	e = uar_remote_follow(cli, &f, &error);
	uar_leave_end(&leave);
	uar_render_rest(&render);
	if (!e)
		e = wants_json(cli) ? write_whole(cli, run_id, &error)
				    : write_items(cli, run_id, &error);
	if (e)
		return uar_cli_fail_as(cli, UAR_EXIT_FAILED, e, "%s; see `uar show %s`",
				       uar_error_text(&error), run_id);
	return uar_remote_exit_status(cli, run_id);
}

/* --- trigger, retry --------------------------------------------------------------------- */

static int after_start(struct uar_cli *cli, const char *run_id)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);

	if (cli->args->option[UAR_OPT_WAIT])
		return wait_for(cli, run_id);
	if (wants_json(cli)) {
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "run_id", run_id);
		uar_jw_close(&w);
		if (uar_jw_end(&w) == UAR_OK)
			uar_buf_add_char(&text, '\n');
	} else {
		uar_buf_printf(&text, "%s\n", run_id);
	}
	return write_and_fini(cli, &text);
}

static uar_err put_args(struct uar_cli *cli, struct uar_jw *w, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
	const struct uar_json *args;
	struct uar_error why = { 0 };
	struct uar_arena a;
	uar_err e = uar_cli_args_text(cli, &text, error);

	uar_arena_init(&a, 0);
	if (!e && uar_json_parse(uar_buf_str(&text), NULL, &a, &args, &why))
		e = uar_error_set(error, UAR_EINVALID, "--args takes a JSON object: %s%s%s",
				  why.where, why.where[0] ? ": " : "", uar_error_text(&why));
	else if (!e && args->kind != UAR_JSON_OBJECT)
		e = uar_error_set(error, UAR_EINVALID, "--args takes a JSON object");
	if (!e)
		uar_jw_tree(w, "args", args);
	uar_arena_fini(&a);
	uar_buf_fini(&text);
	return e;
}

static uar_err put_trigger(struct uar_cli *cli, struct uar_buf *out, struct uar_error *error)
{
	const struct uar_args *args = cli->args;
	struct uar_jw w = uar_jw_begin(out);
	double timeout = 0;
	uar_err e = uar_remote_timeout(cli, &timeout, error);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "plugin_id", args->word[0]);
	uar_jw_cstr(&w, "entry_id", args->word[1]);
	if (!e)
		e = put_args(cli, &w, error);
	uar_remote_put_key(cli, &w);
	if (args->option[UAR_OPT_TASK_ID])
		uar_jw_cstr(&w, "task_id", args->option[UAR_OPT_TASK_ID]);
	if (args->option[UAR_OPT_TRACE_ID])
		uar_jw_cstr(&w, "trace_id", args->option[UAR_OPT_TRACE_ID]);
	if (timeout > 0)
		uar_jw_double(&w, "timeout", timeout);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

int uar_verb_trigger(struct uar_cli *cli)
{
	struct uar_buf body = uar_buf_make(2 * UAR_LIMIT_CLI_MESSAGE);
	char run_id[UAR_LIMIT_ID_BYTES + 1] = "";
	struct uar_error error = { 0 };
	uar_err e = put_trigger(cli, &body, &error);
	int status;

	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_USAGE, e, &error);
	} else {
		e = uar_remote_create(cli, "/runs", uar_buf_str(&body), run_id, &error);
		status = e ? failed(cli, e, &error) : after_start(cli, run_id);
	}
	uar_buf_fini(&body);
	return status;
}

int uar_verb_retry(struct uar_cli *cli)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	char run_id[UAR_LIMIT_ID_BYTES + 1] = "";
	struct uar_jw w = uar_jw_begin(&body);
	struct uar_error error = { 0 };
	char parent[UAR_LIMIT_ID_BYTES + 1] = "";
	uar_err e = uar_remote_run_id(cli, cli->args->word[0], parent, &error);
	int status;

	uar_jw_obj(&w, NULL);
	uar_remote_put_key(cli, &w);
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	uar_remote_run_path(&path, uar_str_c(parent), "/retry");
	if (!e)
		e = path.err;
	if (!e)
		e = uar_remote_create(cli, path.p, uar_buf_str(&body), run_id, &error);
	status = e ? failed(cli, e, &error) : after_start(cli, run_id);
	uar_buf_fini(&path);
	uar_buf_fini(&body);
	return status;
}
