/* verbs_answer.c - answer: the values that a run waits for; grants: what was allowed for longer.
 * Also the questions of a run that is watched on a terminal. */
#include <unistd.h>

#include "app/action.h"
#include "app/cli.h"
#include "app/form.h"
#include "app/limits.h"
#include "app/text.h"
#include "http/limits.h"

enum { WORD = 64 };

/* --- what waits -------------------------------------------------------------------------- */

static uar_err list_actions(const struct uar_cli *cli, uar_str run_id, struct uar_remote_answer *a,
			    struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	uar_err e;

	uar_buf_add_str(&path, UAR_STR("/api/actions?run_id="));
	uar_api_escape(&path, run_id);
	e = path.err ? path.err
		     : uar_remote_ask(cli,
				      &(struct uar_api_request){ .method = "GET", .path = path.p },
				      a, error);
	uar_buf_fini(&path);
	return e;
}

/* The one that is named by its number or whole, or stands alone. */
static const struct uar_json *pick(const struct uar_json *list, const char *named)
{
	const struct uar_json *first = uar_json_at(list, 0);

	for (const struct uar_json *a = first; named && a; a = a->next) {
		uar_str id = uar_json_text(a, "action_id");

		if (uar_str_is(id, named) ||
		    uar_str_is(uar_str_from(id, uar_str_find(id, '.') + 1), named))
			return a;
	}
	return !named && first && !first->next ? first : NULL;
}

/* The schema is with the action, or where it says. */
static uar_err schema_of(const struct uar_cli *cli, const struct uar_json *action,
			 struct uar_remote_answer *apart, const struct uar_json **out,
			 struct uar_error *error)
{
	char path[UAR_LIMIT_ID_BYTES + 128];
	uar_str url = uar_json_text(action, "schema_url");
	uar_err e = UAR_OK;

	*out = uar_json_get(action, UAR_STR("schema"));
	if (*out || !url.n)
		return UAR_OK;
	snprintf(path, sizeof path, "%.*s", UAR_FMT(url));
	e = uar_remote_ask(cli, &(struct uar_api_request){ .method = "GET", .path = path }, apart,
			   error);
	*out = apart->root;
	return e;
}

/* --- values ------------------------------------------------------------------------------ */

/* NAME=VALUE words behind the run and the action. */
static uar_err put_fields(const struct uar_args *args, const struct uar_json *schema,
			  struct uar_buf *out, struct uar_error *error)
{
	const struct uar_json *fields = uar_json_get(schema, UAR_STR("properties"));
	struct uar_jw w = uar_jw_begin(out);
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	for (size_t i = 1; i < args->words && !e; i++) {
		uar_str value, name = uar_str_cut(uar_str_c(args->word[i]), '=', &value);

		if (!strchr(args->word[i], '='))
			continue;
		e = uar_form_value(&w, name, uar_json_get(fields, name), value, error);
		if (e)
			uar_error_where(error, "%.*s", UAR_FMT(name));
	}
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}

static bool has_fields(const struct uar_args *args)
{
	for (size_t i = 1; i < args->words; i++)
		if (strchr(args->word[i], '='))
			return true;
	return false;
}

static bool can_ask(const struct uar_cli *cli)
{
	return cli->err_tty && isatty(STDIN_FILENO) && !cli->args->option[UAR_OPT_JSON];
}

/* Asks until the values are taken or refused for another reason than what they are. */
static uar_err ask_and_send(struct uar_cli *cli, struct uar_action_answer *x,
			    const struct uar_json *schema, struct uar_remote_answer *a,
			    struct uar_error *error)
{
	struct uar_form_io io = { stdin, cli->err };
	uar_err e = UAR_EINVALID;

	while (e == UAR_EINVALID) {
		struct uar_buf values = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);

		*error = (struct uar_error){ 0 };
		e = uar_form_fill(&io, schema, &values);
		x->values = uar_buf_str(&values);
		if (!e) {
			uar_remote_answer_fini(a);
			e = uar_action_respond(cli, x, a, error);
		}
		if (e == UAR_EINVALID)
			fprintf(cli->err, "not taken: %s; once more\n", uar_error_text(error));
		x->values = UAR_STR("");
		uar_buf_fini(&values);
	}
	return e;
}

static uar_err send_values(struct uar_cli *cli, struct uar_action_answer *x,
			   const struct uar_json *schema, struct uar_remote_answer *a,
			   struct uar_error *error)
{
	const char *given = cli->args->option[UAR_OPT_VALUES];
	struct uar_buf values = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
	uar_err e = UAR_OK;

	if (given)
		uar_buf_add_str(&values, uar_str_c(given));
	else
		e = put_fields(cli->args, schema, &values, error);
	x->values = uar_buf_str(&values);
	if (!e)
		e = values.err ? values.err : uar_action_respond(cli, x, a, error);
	x->values = UAR_STR("");
	uar_buf_fini(&values);
	return e;
}

static uar_err submit(struct uar_cli *cli, struct uar_action_answer *x,
		      const struct uar_json *action, struct uar_remote_answer *a,
		      struct uar_error *error)
{
	struct uar_remote_answer apart = { .root = NULL };
	const struct uar_json *schema = NULL;
	uar_err e = schema_of(cli, action, &apart, &schema, error);

	if (!e && (cli->args->option[UAR_OPT_VALUES] || has_fields(cli->args))) {
		e = send_values(cli, x, schema, a, error);
	} else if (!e && !can_ask(cli)) {
		e = uar_error_set(error, UAR_EINVALID,
				  "name the values: NAME=VALUE ..., or --values JSON");
	} else if (!e) {
		fprintf(cli->err, "%.*s\n", UAR_FMT(uar_json_text(action, "prompt")));
		e = ask_and_send(cli, x, schema, a, error);
	}
	uar_remote_answer_fini(&apart);
	return e;
}

/* --- answer ------------------------------------------------------------------------------ */

static int told(struct uar_cli *cli, const struct uar_action_answer *x,
		const struct uar_remote_answer *a)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	int status;

	if (cli->args->option[UAR_OPT_JSON]) {
		uar_buf_add_str(&out, uar_buf_str(&a->text));
	} else {
		uar_text_brief(&out, x->action_id, UAR_LIMIT_ID_BYTES);
		uar_buf_printf(&out, "  %s", x->decision);
	}
	uar_buf_add_char(&out, '\n');
	status = uar_cli_write(cli, &out);
	uar_buf_fini(&out);
	return status;
}

static int answer(struct uar_cli *cli, const struct uar_json *action)
{
	bool declines = cli->args->option[UAR_OPT_DENY] != NULL;
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	struct uar_action_answer x = { .action_id = uar_json_text(action, "action_id"),
				       .decision = declines ? "decline" : "submit",
				       .reason = cli->args->option[UAR_OPT_REASON] };
	uar_err e = declines ? uar_action_respond(cli, &x, &a, &error)
			     : submit(cli, &x, action, &a, &error);
	int status;

	if (e == UAR_ECANCELED)
		uar_error_set(&error, e, "nothing was answered: the run waits");
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : told(cli, &x, &a);
	uar_remote_answer_fini(&a);
	return status;
}

int uar_verb_answer(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	const char *named = args->words > 1 && !strchr(args->word[1], '=') ? args->word[1] : NULL;
	struct uar_remote_answer a = { .root = NULL };
	const struct uar_json *action = NULL;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_error error = { 0 };
	uar_err e = uar_remote_run_id(cli, args->word[0], run_id, &error);
	int status;

	if (!e)
		e = list_actions(cli, uar_str_c(run_id), &a, &error);
	if (!e)
		action = pick(uar_json_get(a.root, UAR_STR("actions")), named);
	if (e)
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	else if (!action)
		status = uar_cli_fail_as(cli, UAR_EXIT_FAILED, UAR_EINVALID, "%s",
					 named ? "the run does not wait for that"
					       : "the run does not wait for one thing alone; "
						 "`uar approve` lists what waits");
	else
		status = answer(cli, action);
	uar_remote_answer_fini(&a);
	return status;
}

/* --- grants ------------------------------------------------------------------------------ */

static void put_grant(struct uar_buf *out, const struct uar_json *g)
{
	bool agent = uar_str_is(uar_json_text(g, "scope"), "agent");

	uar_text_brief(out, uar_json_text(g, "grant_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_add_str(out, UAR_STR("  "));
	uar_text_brief(out, uar_json_text(g, "tool_id"), WORD);
	uar_buf_printf(out, "  %s arguments, %s ",
		       uar_str_is(uar_json_text(g, "arguments"), "same") ? "the same" : "any",
		       agent ? "agent" : "conversation");
	uar_text_brief(out, uar_json_text(g, agent ? "agent_id" : "conversation_id"),
		       UAR_LIMIT_ID_BYTES);
	uar_buf_add_char(out, '\n');
}

static uar_err take_back(struct uar_cli *cli, const char *grant_id, struct uar_remote_answer *a,
			 struct uar_error *error)
{
	struct uar_buf body = uar_buf_make(2 * (size_t)UAR_LIMIT_ID_BYTES + WORD);
	struct uar_jw w = uar_jw_begin(&body);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "grant_id", grant_id);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_remote_ask(cli,
				   &(struct uar_api_request){ .method = "POST",
							      .path = "/api/control/revoke_grant",
							      .body = uar_buf_str(&body) },
				   a, error);
	uar_buf_fini(&body);
	return e;
}

static void put_grants(struct uar_buf *out, const struct uar_json *list)
{
	if (!uar_json_at(list, 0))
		uar_buf_add_str(out, UAR_STR("nothing is allowed beyond a single call\n"));
	for (const struct uar_json *g = uar_json_at(list, 0); g; g = g->next)
		put_grant(out, g);
}

int uar_verb_grants(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	bool revokes = args->words == 2 && !strcmp(args->word[0], "revoke");
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e;
	int status;

	if (args->words && !revokes)
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "uar grants, or uar grants revoke GRANT");
	e = revokes ? take_back(cli, args->word[1], &a, &error)
		    : uar_remote_ask(cli,
				     &(struct uar_api_request){ .method = "GET",
								.path = "/api/grants?limit=500" },
				     &a, &error);
	if (!e && args->option[UAR_OPT_JSON])
		uar_buf_printf(&out, "%.*s\n", UAR_FMT(uar_buf_str(&a.text)));
	else if (!e && revokes)
		uar_buf_printf(&out, "%s  revoked\n", args->word[1]);
	else if (!e)
		put_grants(&out, uar_json_get(a.root, UAR_STR("grants")));
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : uar_cli_write(cli, &out);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&out);
	return status;
}

/* --- questions of a run that is watched ---------------------------------------------------- */

/* "": ask again. NULL: nobody is there. */
static const char *ask_permission(struct uar_cli *cli)
{
	static const struct {
		const char *word, *decision;
	} words[] = {
		{ "y", "allow" }, { "yes", "allow" },		{ "n", "deny" },
		{ "no", "deny" }, { "a", "allow_for_session" }, { "always", "allow_for_session" },
	};
	struct uar_form_io io = { stdin, cli->err };
	char line[WORD];

	fputs("allow it? [y]es, [n]o, [a]lways in this conversation: ", cli->err);
	fflush(cli->err);
	if (!uar_form_line(&io, false, line, sizeof line))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (uar_str_eq_nocase(uar_str_trim(uar_str_c(line)), uar_str_c(words[i].word)))
			return words[i].decision;
	return "";
}

static void send_answer(struct uar_cli *cli, const struct uar_action_answer *x)
{
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_action_respond(cli, x, &a, &error);

	if (e)
		uar_cli_fail_with(cli, 0, e, &error);
	uar_remote_answer_fini(&a);
}

static void ask_for_permission(struct uar_cli *cli, const struct uar_json *data)
{
	const struct uar_json *input =
		uar_json_get(uar_json_get(data, UAR_STR("scope")), UAR_STR("input"));
	struct uar_buf shown = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	const char *decision = "";

	if (input)
		uar_text_brief(&shown, input->text, 1000);
	fprintf(cli->err, "  %.*s\n", UAR_FMT(uar_buf_str(&shown)));
	uar_buf_fini(&shown);
	while (decision && !*decision)
		decision = ask_permission(cli);
	if (decision)
		send_answer(cli, &(struct uar_action_answer){
					 .action_id = uar_json_text(data, "action_id"),
					 .decision = decision });
}

static void ask_for_values(struct uar_cli *cli, const struct uar_json *data)
{
	const struct uar_json *schema = uar_json_get(data, UAR_STR("schema"));
	struct uar_action_answer x = { .action_id = uar_json_text(data, "form_id"),
				       .decision = "submit" };
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_str rest, run_id = uar_str_cut(x.action_id, '.', &rest);
	uar_err e = UAR_ECANCELED;

	if (schema && schema->kind == UAR_JSON_OBJECT) /* else it is long, and fetched apart */
		e = ask_and_send(cli, &x, schema, &a, &error);
	if (e == UAR_ECANCELED)
		fprintf(cli->err, "not answered: the run waits, `uar answer %.*s` answers\n",
			UAR_FMT(run_id));
	else if (e)
		uar_cli_fail_with(cli, 0, e, &error);
	uar_remote_answer_fini(&a);
}

void uar_action_inline(struct uar_cli *cli, const struct uar_json *event)
{
	const struct uar_json *data = uar_json_get(event, UAR_STR("data"));

	if (!can_ask(cli))
		return;
	if (uar_str_is(uar_json_text(event, "type"), "ui.form.request"))
		ask_for_values(cli, data);
	else if (uar_str_is(uar_json_text(data, "action_type"), "tool_permission") &&
		 uar_str_is(uar_json_text(data, "status"), "pending"))
		ask_for_permission(cli, data);
}
