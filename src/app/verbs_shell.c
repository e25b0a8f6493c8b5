/* verbs_shell.c - `uar completion` and `uar open`: what makes a terminal comfortable. */
#include "app/limits.h"
#include "app/qr.h"
#include "app/remote.h"
#include "app/text.h"

static const char *const verbs[] = {
#define V(NAME, MIN, MAX, OPTIONS, SETTINGS, USAGE, DOC) #NAME,
#include "app/cli.def"
#undef V
};

static const char *const options[] = {
#define O(NAME, LONG, SHORT, VALUE, DOC) "--" LONG,
#include "app/cli.def"
#undef O
};

/* Verbs whose next word is an agent, and those whose next word is a run. */
#define AGENT_VERBS "run|chat|exec"
#define RUN_VERBS   "show|logs|cancel|retry|export|approve"

static void put_words(struct uar_buf *out, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		uar_buf_printf(out, "%s%s", i ? " " : "", words[i]);
}

static void put_bash(struct uar_buf *out)
{
	uar_buf_add_str(out, UAR_STR("_uar() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} list\n"
				     "\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tlist='"));
	put_words(out, verbs, ARRAY_LEN(verbs));
	uar_buf_add_str(out, UAR_STR("'\n\telif [[ $word == -* ]]; then\n\t\tlist='"));
	put_words(out, options, ARRAY_LEN(options));
	uar_buf_add_str(out, UAR_STR("'\n\telif [ \"$COMP_CWORD\" = 2 ]; then\n"
				     "\t\tcase ${COMP_WORDS[1]} in\n"
				     "\t\t" AGENT_VERBS
				     ") list=$(uar agents 2>/dev/null | cut -d' ' -f1) ;;\n"
				     "\t\t" RUN_VERBS
				     ") list=\"last $(uar runs 2>/dev/null | cut -d' ' -f1)\" ;;\n"
				     "\t\tagent) list='new check show instance openapi' ;;\n"
				     "\t\tcompletion) list='bash zsh fish' ;;\n"
				     "\t\tesac\n\tfi\n"
				     "\tCOMPREPLY=($(compgen -W \"$list\" -- \"$word\"))\n}\n"
				     "complete -o default -F _uar uar\n"));
}

/* zsh runs the functions of bash. */
static void put_zsh(struct uar_buf *out)
{
	uar_buf_add_str(out, UAR_STR("autoload -U +X compinit && compinit\n"
				     "autoload -U +X bashcompinit && bashcompinit\n"));
	put_bash(out);
}

static void put_fish(struct uar_buf *out)
{
	uar_buf_add_str(out, UAR_STR("complete -c uar -f -n __fish_use_subcommand -a '"));
	put_words(out, verbs, ARRAY_LEN(verbs));
	uar_buf_add_str(out, UAR_STR("'\n"));
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		uar_buf_printf(out, "complete -c uar -l %s\n", options[i] + 2);
	uar_buf_add_str(
		out,
		UAR_STR("complete -c uar -f -n '__fish_seen_subcommand_from run chat exec' "
			"-a '(uar agents 2>/dev/null | cut -d\" \" -f1)'\n"
			"complete -c uar -f -n '__fish_seen_subcommand_from show logs cancel retry "
			"export approve' -a 'last (uar runs 2>/dev/null | cut -d\" \" -f1)'\n"
			"complete -c uar -f -n '__fish_seen_subcommand_from agent' -a 'new check "
			"show instance openapi'\n"));
}

int uar_verb_completion(struct uar_cli *cli)
{
	static const struct {
		const char *shell;
		void (*put)(struct uar_buf *out);
	} shells[] = { { "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish } };
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	int status;

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (!strcmp(cli->args->word[0], shells[i].shell))
			shells[i].put(&text);
	status = text.n ? uar_cli_write(cli, &text)
			: uar_cli_fail(cli, UAR_EXIT_USAGE,
				       "usage: uar completion bash, zsh or fish");
	uar_buf_fini(&text);
	return status;
}

/* --- open ----------------------------------------------------------------------------- */

/* A phone asks its own loopback. */
static bool is_near(const char *url)
{
	return strstr(url, "//127.") || strstr(url, "//localhost") || strstr(url, "//[::1]") ||
	       uar_str_starts(uar_str_c(url), UAR_STR("unix:"));
}

static uar_err draw_link(struct uar_cli *cli, uar_str link, struct uar_buf *out)
{
	struct uar_qr qr;
	uar_err e = uar_qr_make(&qr, link);

	if (!e)
		uar_qr_draw(&qr, uar_cli_colour(cli, cli->out_tty), out);
	return e ? e : out->err;
}

/* What `--as` says, without a slash at its end. */
static uar_str base_of(const struct uar_cli *cli, const struct uar_api *api)
{
	const char *as = cli->args->option[UAR_OPT_AS];
	uar_str base = uar_str_c(as ? as : api->url);

	while (base.n && base.p[base.n - 1] == '/')
		base.n--;
	return base;
}

static uar_err write_link(struct uar_cli *cli, const struct uar_api *api, uar_str code,
			  struct uar_buf *text, struct uar_error *error)
{
	struct uar_buf link = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	uar_err e;

	uar_buf_add_str(&link, base_of(cli, api));
	uar_buf_add_str(&link, UAR_STR("/#code="));
	uar_text_clean(&link, code, false);
	e = link.err;
	if (!e && cli->args->option[UAR_OPT_QR]) {
		e = draw_link(cli, uar_buf_str(&link), text);
		if (e == UAR_ETOOBIG)
			e = uar_error_set(error, e, "the link is too long to be drawn");
		if (is_near(link.p))
			fputs("a phone cannot reach this address: let the server listen on the "
			      "network or behind a proxy, and name that address with --as\n",
			      cli->err);
	}
	uar_buf_add_str(text, uar_buf_str(&link));
	uar_buf_add_char(text, '\n');
	uar_buf_fini(&link);
	return e;
}

int uar_verb_open(struct uar_cli *cli)
{
	struct uar_api_request ask = { .method = "POST",
				       .path = "/api/links",
				       .body = UAR_STR("{}") };
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	struct uar_api api;
	uar_err e = uar_remote_find(cli, &api, &error);
	uar_str code;
	int status;

	if (!e)
		e = uar_remote_ask(cli, &ask, &a, &error);
	if (!e) {
		code = uar_json_text(a.root, "code");
		e = write_link(cli, &api, code, &text, &error);
	}
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : uar_cli_write(cli, &text);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	return status;
}
