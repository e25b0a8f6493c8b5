/* verbs_action.c - approve: a person sees what runs have asked for, and decides. */
#include "app/action.h"
#include "app/cli.h"
#include "app/limits.h"
#include "app/text.h"
#include "event/action.h"
#include "event/limits.h"
#include "http/limits.h"

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
	if (x->values.n)
		uar_jw_raw(&w, "payload", x->values);
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
	uar_text_brief(out, uar_json_text(action, "action_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_add_str(out, UAR_STR("  "));
	uar_text_brief(out, uar_json_text(action, "prompt"), 200);
	uar_buf_add_char(out, '\n');
}

/* The id of what waits and was named, by its number or whole, or stands alone; else empty. */
static uar_str find_waiting(const struct uar_json *actions, const char *named)
{
	const struct uar_json *first = uar_json_at(actions, 0);

	for (const struct uar_json *a = first; named && a; a = a->next) {
		uar_str id = uar_json_text(a, "action_id");
		size_t dot = uar_str_find(id, '.');

		if (uar_str_is(id, named) || uar_str_is(uar_str_from(id, dot + 1), named))
			return id;
	}
	return !named && first && !first->next ? uar_json_text(first, "action_id") : UAR_STR("");
}

static int not_waiting(struct uar_cli *cli, const struct uar_json *actions, const char *named)
{
	const struct uar_json *first = uar_json_at(actions, 0);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);

	uar_buf_printf(&text, "%s\n",
		       named   ? "the run does not wait for that"
		       : first ? "it waits for several, name one:"
			       : "the run waits for nothing");
	for (const struct uar_json *a = first; a; a = a->next)
		put_action(&text, a);
	uar_cli_fail_as(cli, UAR_EXIT_FAILED, UAR_EINVALID, "%.*s", (int)text.n - (text.n > 0),
			text.n ? text.p : "");
	uar_buf_fini(&text);
	return UAR_EXIT_FAILED;
}

static int respond(struct uar_cli *cli, uar_str action_id)
{
	const struct uar_args *args = cli->args;
	struct uar_action_answer x = {
		.action_id = action_id,
		.decision = args->option[UAR_OPT_DENY]		? "deny"
			    : args->option[UAR_OPT_FOR_SESSION] ? "allow_for_session"
			    : args->option[UAR_OPT_ALWAYS]	? "allow_always"
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
static void put_json(struct uar_buf *out, uar_str action_id, uar_str input,
		     const struct uar_action_past *past)
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
	if (past && past->decision[0]) {
		uar_jw_cstr(&w, "decision", past->decision);
		uar_jw_cstr(&w, "source", past->source);
	}
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		uar_buf_add_char(out, '\n');
	uar_arena_fini(&a);
}

static void put_text(struct uar_buf *out, uar_str input, const struct uar_action_past *past)
{
	uar_text_clean(out, input, true);
	uar_buf_add_char(out, '\n');
	if (!past || !past->decision[0])
		return;
	uar_buf_add_str(out, UAR_STR("[answered] "));
	uar_text_clean(out, uar_str_c(past->decision), false);
	if (strcmp(past->source, "respond_action")) { /* that is: somebody did */
		uar_buf_add_str(out, UAR_STR(" by "));
		uar_text_clean(out, uar_str_c(past->source), false);
	}
	uar_buf_add_char(out, '\n');
}

/* `past` NULL: it waits. */
static int show_input(struct uar_cli *cli, uar_str action_id, const struct uar_action_past *past)
{
	struct uar_buf input = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_buf text = uar_buf_make(4 * (size_t)UAR_LIMIT_CLI_ANSWER);
	struct uar_error error = { 0 };
	uar_err e = fetch_input(cli, action_id, &input, &error);
	int status;

	if (!e && cli->args->option[UAR_OPT_JSON])
		put_json(&text, action_id, uar_buf_str(&input), past);
	else if (!e)
		put_text(&text, uar_buf_str(&input), past);
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	uar_buf_fini(&input);
	return status;
}

static int not_found(struct uar_cli *cli, const struct uar_action_past *past)
{
	return uar_cli_fail_as(cli, UAR_EXIT_FAILED, UAR_EINVALID, "%s%s%.*s",
			       !past->count   ? "the run has asked nothing"
			       : past->wanted ? "the run has not asked that"
					      : "it has asked several, name one:",
			       past->count ? "\n" : "", (int)past->list.n - (past->count > 0),
			       past->list.n ? past->list.p : "");
}

/* What has its answer is in the log. */
static int show_past(struct uar_cli *cli, uar_str run_id, const char *named)
{
	struct uar_action_past past = { .list = uar_buf_make(UAR_LIMIT_CLI_OUTPUT) };
	struct uar_buf id = uar_buf_make(2 * (size_t)UAR_LIMIT_ID_BYTES + 2);
	struct uar_error error = { 0 };
	uar_err e;
	int status;

	if (named && strchr(named, '.'))
		uar_buf_add_str(&id, uar_str_c(named));
	else if (named)
		uar_buf_printf(&id, "%.*s.%s", UAR_FMT(run_id), named);
	past.wanted = named ? id.p : NULL;
	e = id.err ? id.err : uar_action_past(cli, run_id, &past, &error);
	if (e)
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	else if (past.action_id[0])
		status = show_input(cli, uar_str_c(past.action_id), &past);
	else
		status = not_found(cli, &past);
	uar_buf_fini(&past.list);
	uar_buf_fini(&id);
	return status;
}

/* --- what waits ------------------------------------------------------------------- */

static void put_waiting(struct uar_buf *out, const struct uar_json *action, double now)
{
	double since = uar_json_double(uar_json_get(action, UAR_STR("requested_at")), now);

	uar_text_brief(out, uar_json_text(action, "action_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_add_str(out, UAR_STR("  "));
	uar_text_brief(out, uar_json_text(action, "agent_id"), 40);
	uar_buf_add_str(out, UAR_STR("  "));
	uar_text_span(out, now - since);
	uar_buf_add_str(out, UAR_STR(" ago  "));
	uar_text_brief(out, uar_json_text(action, "prompt"), 200);
	uar_buf_add_char(out, '\n');
}

static void put_all_waiting(const struct uar_cli *cli, struct uar_buf *out,
			    const struct uar_json *root)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("actions"));
	uar_str more = uar_json_text(root, "next_cursor");
	double now = (double)uar_clock_wall(cli->clock) / 1e6;

	if (!uar_json_at(list, 0))
		uar_buf_add_str(out, UAR_STR("nothing waits\n"));
	for (const struct uar_json *a = uar_json_at(list, 0); a; a = a->next)
		put_waiting(out, a, now);
	if (more.n)
		uar_buf_add_str(out, UAR_STR("and more\n"));
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
	int decisions = (args->option[UAR_OPT_DENY] != NULL) +
			(args->option[UAR_OPT_FOR_SESSION] != NULL) +
			(args->option[UAR_OPT_ALWAYS] != NULL);
	bool decides = decisions || args->option[UAR_OPT_REASON];

	if (decisions > 1)
		return "--deny, --for-session and --always contradict";
	if (args->option[UAR_OPT_SHOW] && decides)
		return "--show decides nothing";
	return !args->words && (decides || args->option[UAR_OPT_SHOW])
		       ? "name the run that is meant"
		       : NULL;
}

static int show(struct uar_cli *cli, const struct uar_json *record, const char *named)
{
	const struct uar_json *actions = uar_json_get(record, UAR_STR("actions"));
	uar_str id = find_waiting(actions, named);

	if (id.n)
		return show_input(cli, id, NULL);
	if (!named && uar_json_at(actions, 0))
		return not_waiting(cli, actions, named);
	return show_past(cli, uar_json_text(record, "run_id"), named);
}

/* A form or other input: allowing it says nothing. */
static bool wants_values(const struct uar_json *actions, uar_str id)
{
	for (const struct uar_json *a = uar_json_at(actions, 0); a; a = a->next) {
		enum uar_action_type type = uar_action_type_parse(uar_json_text(a, "action_type"));

		if (uar_str_eq(uar_json_text(a, "action_id"), id))
			return type < UAR_ACTION_TYPE_COUNT && uar_action_info[type].input;
	}
	return false;
}

/* Whether an id waits the server knows; its answer says more than ours could. */
static int decide(struct uar_cli *cli, const struct uar_json *record, const char *named)
{
	const struct uar_json *actions = uar_json_get(record, UAR_STR("actions"));
	uar_str id = find_waiting(actions, named);

	if (wants_values(actions, id))
		return uar_verb_answer(cli); /* the same words name it there */
	if (!id.n && named && strchr(named, '.'))
		id = uar_str_c(named);
	return id.n ? respond(cli, id) : not_waiting(cli, actions, named);
}

int uar_verb_approve(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	const char *wrong = contradiction(args), *named = args->words > 1 ? args->word[1] : NULL;
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e;
	int status;

	if (wrong)
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "%s", wrong);
	if (!args->words)
		return list_waiting(cli);
	e = record_of(cli, &a, &error);
	if (e)
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	else if (args->option[UAR_OPT_SHOW])
		status = show(cli, a.root, named);
	else
		status = decide(cli, a.root, named);
	uar_remote_answer_fini(&a);
	return status;
}
