/* verbs_action.c - approve: a person sees what runs have asked for, and decides. */
#include "app/action.h"
#include "app/cli.h"
#include "app/text.h"

static uar_str member(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

uar_err uar_action_respond(const struct uar_cli *cli, const struct uar_action_answer *x,
			   struct uar_remote_answer *a, struct uar_error *error)
{
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&body);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "action_id", x->action_id);
	uar_jw_cstr(&w, "decision", x->decision);
	if (x->reason)
		uar_jw_cstr(&w, "reason", x->reason);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_remote_ask(cli,
				   &(struct uar_api_request){ .method = "POST",
							      .path = "/api/control/respond_action",
							      .body = uar_buf_str(&body) },
				   a, error);
	uar_buf_fini(&body);
	return e;
}

static void put_action(struct uar_buf *out, const struct uar_json *action)
{
	uar_text_brief(out, member(action, "action_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_add_str(out, UAR_STR("  "));
	uar_text_brief(out, member(action, "prompt"), 200);
	uar_buf_add_char(out, '\n');
}

/* The id that was named by its number, or stands alone; empty: `text` says why not. */
static uar_str choose(const struct uar_json *actions, const char *named, struct uar_buf *text)
{
	const struct uar_json *first = uar_json_at(actions, 0);

	if (named && strchr(named, '.'))
		return uar_str_c(named);
	for (const struct uar_json *a = first; named && a; a = a->next) {
		uar_str id = member(a, "action_id");
		size_t dot = uar_str_find(id, '.');

		if (uar_str_is(uar_str_from(id, dot + 1), named))
			return id;
	}
	if (!named && first && !first->next)
		return member(first, "action_id");
	uar_buf_printf(text, "%s\n",
		       named   ? "the run does not wait for that"
		       : first ? "it waits for several, name one:"
			       : "the run waits for nothing");
	for (const struct uar_json *a = first; a; a = a->next)
		put_action(text, a);
	return UAR_STR("");
}

static int respond(struct uar_cli *cli, uar_str action_id)
{
	const struct uar_args *args = cli->args;
	struct uar_action_answer x = {
		.action_id = action_id,
		.decision = args->option[UAR_OPT_DENY]		? "deny"
			    : args->option[UAR_OPT_FOR_SESSION] ? "allow_for_session"
								: "allow",
		.reason = args->option[UAR_OPT_REASON],
	};
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_action_respond(cli, &x, &a, &error);
	int status;

	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	} else {
		if (args->option[UAR_OPT_JSON])
			uar_buf_add_str(&text, uar_buf_str(&a.text));
		else
			uar_text_brief(&text, action_id, UAR_LIMIT_ID_BYTES),
				uar_buf_printf(&text, "  %s", x.decision);
		uar_buf_add_char(&text, '\n');
		status = uar_cli_write(cli, &text);
	}
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	return status;
}

/* --- what exactly is asked --------------------------------------------------------- */

static uar_err fetch_input(const struct uar_cli *cli, uar_str action_id, struct uar_buf *out,
			   struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	uar_str number, run_id = uar_str_cut(action_id, '.', &number);
	struct uar_api api;
	uar_err e = uar_remote_find(cli, &api, error);

	uar_remote_run_path(&path, run_id, "/actions/");
	uar_api_escape(&path, number);
	uar_buf_add_str(&path, UAR_STR("/input"));
	if (!e)
		e = path.err;
	if (!e)
		e = uar_api_call(&api, &(struct uar_api_request){ .method = "GET", .path = path.p },
				 out, error);
	uar_buf_fini(&path);
	return e;
}

/* The input of a program is JSON as a rule, else its text. */
static void put_json(struct uar_buf *out, uar_str action_id, uar_str input)
{
	const struct uar_json *value = NULL;
	struct uar_jw w = uar_jw_begin(out);
	struct uar_arena a;

	uar_arena_init(&a, 0);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "action_id", action_id);
	if (uar_json_parse(input, NULL, &a, &value, NULL) == UAR_OK)
		uar_jw_tree(&w, "input", value);
	else
		uar_jw_str(&w, "input", input);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		uar_buf_add_char(out, '\n');
	uar_arena_fini(&a);
}

static int show_input(struct uar_cli *cli, uar_str action_id)
{
	struct uar_buf input = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_buf text = uar_buf_make(4 * (size_t)UAR_LIMIT_CLI_ANSWER);
	struct uar_error error = { 0 };
	uar_err e = fetch_input(cli, action_id, &input, &error);
	int status;

	if (!e && cli->args->option[UAR_OPT_JSON]) {
		put_json(&text, action_id, uar_buf_str(&input));
	} else if (!e) {
		uar_text_clean(&text, uar_buf_str(&input), true);
		uar_buf_add_char(&text, '\n');
	}
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	uar_buf_fini(&input);
	return status;
}

/* --- what waits ------------------------------------------------------------------- */

static void put_waiting(struct uar_buf *out, const struct uar_json *action, double now)
{
	double since = uar_json_double(uar_json_get(action, UAR_STR("requested_at")), now);

	uar_text_brief(out, member(action, "action_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_add_str(out, UAR_STR("  "));
	uar_text_brief(out, member(action, "agent_id"), 40);
	uar_buf_add_str(out, UAR_STR("  "));
	uar_text_span(out, now - since);
	uar_buf_add_str(out, UAR_STR(" ago  "));
	uar_text_brief(out, member(action, "prompt"), 200);
	uar_buf_add_char(out, '\n');
}

static void put_all_waiting(const struct uar_cli *cli, struct uar_buf *out,
			    const struct uar_json *root)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("actions"));
	int64_t total = uar_json_int(uar_json_get(root, UAR_STR("total")), 0);
	int64_t shown = list ? (int64_t)list->count : 0;
	double now = (double)uar_clock_wall(cli->clock) / 1e6;

	if (!uar_json_at(list, 0))
		uar_buf_add_str(out, UAR_STR("nothing waits\n"));
	for (const struct uar_json *a = uar_json_at(list, 0); a; a = a->next)
		put_waiting(out, a, now);
	if (total > shown)
		uar_buf_printf(out, "and %lld more\n", (long long)(total - shown));
}

static int list_waiting(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	char path[48];
	uar_err e;
	int status;

	snprintf(path, sizeof path, "/api/actions?limit=%d", UAR_LIMIT_LIST_PAGE);
	e = uar_remote_ask(cli, &(struct uar_api_request){ .method = "GET", .path = path }, &a,
			   &error);
	if (!e && cli->args->option[UAR_OPT_JSON])
		uar_buf_printf(&text, "%.*s\n", UAR_FMT(uar_buf_str(&a.text)));
	else if (!e)
		put_all_waiting(cli, &text, a.root);
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : uar_cli_write(cli, &text);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	return status;
}

static uar_err record_of(const struct uar_cli *cli, struct uar_remote_answer *a,
			 struct uar_error *error)
{
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	uar_err e = uar_remote_run_id(cli, cli->args->word[0], run_id, error);

	return e ? e : uar_remote_record(cli, uar_str_c(run_id), a, error);
}

/* NULL: the options go together. */
static const char *contradiction(const struct uar_args *args)
{
	bool decides = args->option[UAR_OPT_DENY] || args->option[UAR_OPT_FOR_SESSION] ||
		       args->option[UAR_OPT_REASON];

	if (args->option[UAR_OPT_DENY] && args->option[UAR_OPT_FOR_SESSION])
		return "--deny and --for-session contradict";
	if (args->option[UAR_OPT_SHOW] && decides)
		return "--show decides nothing";
	return !args->words && (decides || args->option[UAR_OPT_SHOW])
		       ? "name the run that is meant"
		       : NULL;
}

int uar_verb_approve(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	const char *wrong = contradiction(args);
	struct uar_buf why = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_str id;
	uar_err e;
	int status;

	if (wrong)
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "%s", wrong);
	if (!args->words)
		return list_waiting(cli);
	e = record_of(cli, &a, &error);
	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	} else {
		id = choose(uar_json_get(a.root, UAR_STR("actions")),
			    args->words > 1 ? args->word[1] : NULL, &why);
		if (!id.n)
			status = uar_cli_fail_as(cli, UAR_EXIT_FAILED, UAR_EINVALID, "%.*s",
						 (int)why.n - (why.n > 0), why.n ? why.p : "");
		else
			status =
				args->option[UAR_OPT_SHOW] ? show_input(cli, id) : respond(cli, id);
	}
	uar_remote_answer_fini(&a);
	uar_buf_fini(&why);
	return status;
}
