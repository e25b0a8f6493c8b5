/* verbs_control.c - ctl: a command of the control plane, as core/command.def declares it. */
#include "app/cli.h"
#include "app/limits.h"
#include "app/nearest.h"
#include "app/remote.h"
#include "core/control.h"

/* The second word, standard input for "-", or an empty object. */
static uar_err read_input(struct uar_cli *cli, struct uar_buf *out, struct uar_error *error)
{
	const char *word = cli->args->words > 1 ? cli->args->word[1] : "{}";
	size_t n = 1;

	if (strcmp(word, "-") != 0) {
		uar_buf_add_str(out, uar_str_c(word));
		return out->err;
	}
	while (n > 0 && !out->err) {
		char *room = uar_buf_reserve(out, 4096);

		n = room ? fread(room, 1, 4096, cli->in) : 0;
		out->n += n;
	}
	return out->err ? uar_error_set(error, out->err, "the input is too large") : UAR_OK;
}

/* What is wrong with the input is said before a server is asked. */
static uar_err check_input(enum uar_control_kind kind, uar_str text, struct uar_error *error)
{
	const struct uar_json *root;
	struct uar_control command;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(text, NULL, &arena, &root, error);
	if (!e)
		e = uar_control_read(kind, root, &arena, &command, error);
	uar_arena_fini(&arena);
	return e;
}

static int unknown_command(struct uar_cli *cli, const char *name)
{
	struct uar_nearest near;

	uar_nearest_init(&near, uar_str_c(name));
	for (size_t i = 0; i < UAR_CTL_COUNT; i++)
		uar_nearest_consider(&near, uar_control_info[i].name);
	return uar_cli_fail(cli, UAR_EXIT_USAGE,
			    "there is no command %.60s%s%s; uar ctl lists them all", name,
			    near.best ? ", did you mean " : "", near.best ? near.best : "");
}

static int send_command(struct uar_cli *cli, const char *name, uar_str input)
{
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	char path[128];
	uar_err e;
	int status;

	snprintf(path, sizeof path, "/api/control/%s", name);
	e = uar_remote_ask(
		cli, &(struct uar_api_request){ .method = "POST", .path = path, .body = input }, &a,
		&error);
	if (!e)
		uar_buf_add_char(&a.text, '\n');
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error)
		   : uar_cli_write(cli, &a.text);
	uar_remote_answer_fini(&a);
	return status;
}

static int list_commands(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);
	bool json = cli->args->option[UAR_OPT_JSON] != NULL;
	int status;

	if (json)
		uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < UAR_CTL_COUNT; i++) {
		if (uar_control_info[i].mode == UAR_CTL_MODE_INTERNAL)
			continue;
		if (json)
			uar_jw_cstr(&w, NULL, uar_control_info[i].name);
		else
			uar_buf_printf(&text, "%-22s %s\n", uar_control_info[i].name,
				       uar_control_info[i].doc);
	}
	if (json) {
		uar_jw_close(&w);
		if (uar_jw_end(&w) == UAR_OK)
			uar_buf_add_char(&text, '\n');
	}
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

int uar_verb_ctl(struct uar_cli *cli)
{
	struct uar_buf input = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_error error = { 0 };
	enum uar_control_kind kind;
	uar_err e;
	int status;

	if (!cli->args->words)
		return list_commands(cli);
	kind = uar_control_kind_of(uar_str_c(cli->args->word[0]));
	if (kind == UAR_CTL_COUNT)
		return unknown_command(cli, cli->args->word[0]);
	e = read_input(cli, &input, &error);
	if (!e)
		e = check_input(kind, uar_buf_str(&input), &error);
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_USAGE, e, &error)
		   : send_command(cli, uar_control_info[kind].name, uar_buf_str(&input));
	uar_buf_fini(&input);
	return status;
}
