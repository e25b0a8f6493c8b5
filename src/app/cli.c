/* cli.c - the verb table, help, and the way from argv to a verb. */
#include "app/cli.h"

#include <errno.h>
#include <stdarg.h>

#include "app/api_client.h"
#include "app/early.h"
#include "app/exec_server.h"
#include "app/limits.h"
#include "app/nearest.h"
#include "app/text.h"
#include "app/definition_parts.h"
#include "base/alloc.h"

enum { SENTENCE = 8192 };

enum {
#define O(NAME, LONG, SHORT, VALUE, DOC) NAME = UINT64_C(1) << UAR_OPT_##NAME,
#include "app/cli.def"
#undef O
};

static const struct uar_verb verbs[] = {
#define V(NAME, MIN, MAX, OPTIONS, SETTINGS, USAGE, DOC)                                           \
	{ #NAME, USAGE, DOC, uar_verb_##NAME, MIN, MAX, OPTIONS, UAR_VERB_##SETTINGS },
#include "app/cli.def"
#undef V
};

UAR_PRINTF(4, 0)
static void fail(struct uar_cli *cli, int status, uar_err e, const char *fmt, va_list ap)
{
	char raw[SENTENCE];
	struct uar_buf text = uar_buf_make(sizeof raw);
	uar_str s;

	vsnprintf(raw, sizeof raw, fmt, ap);
	uar_text_clean(&text, uar_str_c(raw), true); /* whatever names are made of */
	s = text.err ? uar_str_c(uar_err_text(e)) : uar_buf_str(&text);
	if (fflush(cli->out))
		uar_cli_output_failed(cli);
	fprintf(cli->err, "uar: %.*s\n", UAR_FMT(s));
	if (status != UAR_EXIT_OK && !cli->failure.code) { /* --json tells the first */
		s = uar_str_utf8_prefix(s, sizeof cli->failure.text - 1);
		snprintf(cli->failure.text, sizeof cli->failure.text, "%.*s", UAR_FMT(s));
		cli->failure.code = e;
	}
	uar_buf_fini(&text);
}

int uar_cli_fail_as(struct uar_cli *cli, int status, uar_err e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(cli, status, e, fmt, ap);
	va_end(ap);
	return status;
}

int uar_cli_fail(struct uar_cli *cli, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(cli, status, status == UAR_EXIT_USAGE ? UAR_EINVALID : UAR_EIO, fmt, ap);
	va_end(ap);
	return status;
}

int uar_cli_fail_with(struct uar_cli *cli, int status, uar_err e, const struct uar_error *error)
{
	/* What a server said may be finer than what became of it here. */
	return uar_cli_fail_as(cli, status, error->code ? error->code : e, "%s",
			       error->text[0] ? error->text : uar_err_text(e));
}

/* A program that asked for JSON gets some, whatever went wrong. */
static void print_failure(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "error", cli->failure.text);
	uar_jw_cstr(&w, "code", uar_err_token(cli->failure.code));
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		fprintf(cli->out, "%s\n", text.p);
	fflush(cli->out);
	uar_buf_fini(&text);
}

void uar_cli_output_failed(struct uar_cli *cli)
{
	if (ferror(cli->out) && !cli->output.number)
		cli->output.number = errno;
}

/* Who reads no more, as `head` does, is told nothing. */
static int flushed(struct uar_cli *cli)
{
	int number;
	char reason[80];

	if (fflush(cli->out))
		uar_cli_output_failed(cli);
	number = cli->output.number;
	if (!ferror(cli->out))
		return UAR_EXIT_OK;
	if (number == EPIPE || cli->output.told)
		return UAR_EXIT_FAILED;
	cli->output.told = true;
	return uar_cli_fail(cli, UAR_EXIT_FAILED, "the output cannot be written%s%s",
			    number ? ": " : "",
			    number ? strerror_r(number, reason, sizeof reason) : "");
}

int uar_cli_write(struct uar_cli *cli, const struct uar_buf *text)
{
	if (text->err)
		return uar_cli_fail_as(cli, UAR_EXIT_FAILED, text->err, "%s",
				       uar_err_text(text->err));
	if (text->n && fwrite(text->p, 1, text->n, cli->out) < text->n)
		uar_cli_output_failed(cli);
	return flushed(cli);
}

bool uar_cli_colour(const struct uar_cli *cli, bool tty)
{
	const char *term = uar_config_env(cli->env, "TERM");

	return tty && !uar_config_env(cli->env, "NO_COLOR") && term && strcmp(term, "dumb");
}

/* --- help ---------------------------------------------------------------------- */
static const struct uar_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static const struct {
	const char *title, *verbs;
} help_groups[] = {
#define G(TITLE, VERBS) { TITLE, VERBS },
#include "app/cli.def"
#undef G
};

static const struct {
	const char *verb, *line;
} help_examples[] = {
#define E(VERB, LINE) { #VERB, LINE },
#include "app/cli.def"
#undef E
};

/* One line: the first sentence of its text. */
static void help_line(const struct uar_verb *verb, struct uar_buf *out)
{
	const char *end = strstr(verb->doc, ". ");
	int n = end ? (int)(end - verb->doc) + 1 : (int)strlen(verb->doc);

	uar_buf_printf(out, "  %-10s  %.*s\n", verb->name, n, verb->doc);
}

static bool is_in_group(uar_str group, const char *name)
{
	while (group.n)
		if (uar_str_is(uar_str_cut(group, ' ', &group), name))
			return true;
	return false;
}

static bool is_in_any_group(const char *name)
{
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(help_groups) && !found; i++)
		found = is_in_group(uar_str_c(help_groups[i].verbs), name);
	return found;
}

static void help_group(uar_str group, struct uar_buf *out)
{
	char name[32];

	while (group.n) {
		uar_str word = uar_str_cut(group, ' ', &group);
		const struct uar_verb *verb;

		snprintf(name, sizeof name, "%.*s", UAR_FMT(word));
		verb = find_verb(name);
		if (verb)
			help_line(verb, out);
	}
}

static void help_all(struct uar_buf *out)
{
	uar_buf_printf(out,
		       "uar %s - runs agents and keeps everything they do\n\nusage: uar VERB "
		       "[options]\n",
		       UAR_VERSION);
	for (size_t i = 0; i < ARRAY_LEN(help_groups); i++) {
		uar_buf_printf(out, "\n%s\n", help_groups[i].title);
		help_group(uar_str_c(help_groups[i].verbs), out);
	}
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (!is_in_any_group(verbs[i].name))
			help_line(&verbs[i], out);
	uar_buf_printf(out, "\nThe first steps: uar serve; uar run demo \"hello\"; uar runs; uar "
			    "agent new poet; uar chat poet.\n"
			    "`uar help VERB` explains a verb, `uar help config` the settings.\n"
			    "Exit status: 0 fine, 1 failed, 2 wrong command line; of a run that "
			    "was waited for also\n3 canceled, 4 timeout; 130 left with Ctrl-C.\n");
}

static void help_example(const struct uar_verb *verb, struct uar_buf *out)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(help_examples); i++)
		if (!strcmp(help_examples[i].verb, verb->name)) {
			uar_buf_printf(out, "%s  %s\n", any ? "" : "\nexamples:\n",
				       help_examples[i].line);
			any = true;
		}
}

static void help_options(const struct uar_verb *verb, struct uar_buf *out)
{
	char left[60];

	for (size_t i = 0; i < UAR_OPT_COUNT; i++) {
		const struct uar_opt_row *row = &uar_opt_rows[i];

		if (!uar_verb_takes(verb, (enum uar_opt)i))
			continue;
		snprintf(left, sizeof left, "%c%c%s--%s%s%s", row->letter ? '-' : ' ',
			 row->letter ? row->letter : ' ', row->letter ? ", " : "  ", row->name,
			 *row->value ? " " : "", row->value);
		uar_buf_printf(out, "  %-26s  %s\n", left, row->doc);
	}
	if (verb->settings == UAR_VERB_CLIENT)
		uar_buf_printf(out, "      %-22s  %s\n      %-22s  %s\n", "--data DIRECTORY",
			       "Data directory of the server to talk to.", "--token TOKEN",
			       "Its token; else $UAR_TOKEN, else the one in the data directory.");
	if (verb->settings == UAR_VERB_ALL)
		uar_buf_printf(out, "\nand every setting as --key VALUE: see `uar help config`.\n");
}

static void help_verb(const struct uar_verb *verb, struct uar_buf *out)
{
	bool some = verb->options || verb->settings != UAR_VERB_NONE;

	uar_buf_printf(out, "usage: uar %s%s%s%s\n\n%s\n%s", verb->name, some ? " [options]" : "",
		       *verb->usage ? " " : "", verb->usage, verb->doc, some ? "\n" : "");
	help_options(verb, out);
	help_example(verb, out);
}

static int unknown_verb(struct uar_cli *cli, const char *name)
{
	struct uar_nearest n;

	uar_nearest_init(&n, uar_str_c(name));
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		uar_nearest_consider(&n, verbs[i].name);
	if (n.best)
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "there is no verb \"%.60s\", did you mean `uar %s`?", name,
				    n.best);
	return uar_cli_fail(cli, UAR_EXIT_USAGE,
			    "there is no verb \"%.60s\"; `uar help` lists them", name);
}

static int print_help(struct uar_cli *cli, const char *topic)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	const struct uar_verb *verb = topic ? find_verb(topic) : NULL;
	bool settings = topic && !strcmp(topic, "config");
	int status;

	if (topic && !verb && !settings)
		return unknown_verb(cli, topic);
	if (!topic)
		help_all(&text);
	if (verb)
		help_verb(verb, &text);
	if (settings) {
		uar_buf_printf(&text, "\n");
		uar_config_print_help(&text);
	}
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

int uar_verb_help(struct uar_cli *cli)
{
	return print_help(cli, cli->args->words ? cli->args->word[0] : NULL);
}

/* --- dispatch ------------------------------------------------------------------- */
static int report_problems(struct uar_cli *cli, uar_err e, const struct uar_buf *problems)
{
	uar_str rest = uar_buf_str(problems);
	int status = e == UAR_EINVALID ? UAR_EXIT_USAGE : UAR_EXIT_FAILED;

	if (e == UAR_ENOMEM || !rest.n)
		return uar_cli_fail_as(cli, UAR_EXIT_FAILED, e, "%s", uar_err_text(e));
	while (rest.n) {
		uar_str line = uar_str_cut(rest, '\n', &rest);

		uar_cli_fail_as(cli, status, e, "%.*s", UAR_FMT(line));
	}
	return status;
}

/* The log of a server tells them; see uar_verb_serve. */
static void tell_warnings(struct uar_cli *cli)
{
	uar_str rest = uar_str_c(cli->config->warnings);

	while (rest.n) {
		uar_str line = uar_str_cut(rest, '\n', &rest);

		uar_cli_fail(cli, UAR_EXIT_OK, "warning: %.*s", UAR_FMT(line));
	}
}

static int load_config(struct uar_cli *cli, const struct uar_verb *verb)
{
	struct uar_buf problems = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	struct uar_config_input in = {
		.flags = cli->args->flag,
		.flag_count = cli->args->flags,
		.env = cli->env,
		.file = cli->args->option[UAR_OPT_CONFIG],
		.client = verb->settings == UAR_VERB_CLIENT,
		.strict = cli->args->option[UAR_OPT_STRICT] != NULL,
	};
	uar_err e = uar_config_load(&in, &cli->config, &problems);
	int status;

	if (!e && verb->fn == uar_verb_serve)
		e = uar_config_check_files(cli->config, &problems);
	status = e ? report_problems(cli, e, &problems) : UAR_EXIT_OK;
	if (!e && verb->fn != uar_verb_serve)
		tell_warnings(cli);
	uar_buf_fini(&problems);
	return status;
}

/* The server that exec started has left: its runs are still there for every verb but
 * the one that asks whether a server is. */
static int wake_server(struct uar_cli *cli, const struct uar_verb *verb)
{
	struct uar_error error = { 0 };
	uar_err e = UAR_OK;

	if (verb->settings == UAR_VERB_CLIENT && verb->fn != uar_verb_health &&
	    verb->fn != uar_verb_exec)
		e = uar_exec_server_again(cli, &error);
	return e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : UAR_EXIT_OK;
}

/* What the command line says wrongly is said before anything is done. */
static int check_url(struct uar_cli *cli)
{
	const char *url = cli->args->option[UAR_OPT_URL];
	struct uar_error error = { 0 };
	struct uar_api api;
	uar_err e = url ? uar_api_init(&api, uar_str_c(url), UAR_STR(""), &error) : UAR_OK;

	return e ? uar_cli_fail_with(cli, UAR_EXIT_USAGE, e, &error) : UAR_EXIT_OK;
}

static int run_verb(struct uar_cli *cli, const struct uar_verb *verb)
{
	int status = check_url(cli);

	if (verb->fn == uar_verb_serve)
		uar_early_keep();
	if (status == UAR_EXIT_OK && verb->settings != UAR_VERB_NONE)
		status = load_config(cli, verb);
	if (status == UAR_EXIT_OK)
		status = wake_server(cli, verb);
	if (status == UAR_EXIT_OK)
		status = verb->fn(cli);
	uar_config_destroy(cli->config);
	cli->config = NULL;
	return status;
}

static int understood(struct uar_cli *cli, const struct uar_verb *verb)
{
	int status = cli->args->help ? print_help(cli, verb->name) : run_verb(cli, verb);

	int written = flushed(cli);

	return status == UAR_EXIT_OK ? written : status;
}

/* Who asks for JSON gets it also when the rest of the line makes no sense. */
static bool asks_for_json(int argc, char *const *argv)
{
	bool asks = false;

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--json") || !strncmp(argv[i], "--json=", 7))
			asks = strcmp(argv[i], "--json=false") != 0;
	return asks;
}

static int run_line(struct uar_cli *cli, int argc, char *const *argv, struct uar_args *args)
{
	const char *name = argc > 1 ? argv[1] : "help";
	const struct uar_verb *verb;
	struct uar_error error = { 0 };

	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	verb = find_verb(name);
	if (verb && !uar_args_parse(verb, argc > 2 ? argc - 2 : 0, argv + 2, args, &error))
		return understood(cli, verb);
	args->option[UAR_OPT_JSON] = asks_for_json(argc, argv) ? "" : NULL;
	return verb ? uar_cli_fail(cli, UAR_EXIT_USAGE, "%s", uar_error_text(&error))
		    : unknown_verb(cli, name);
}

int uar_cli_main(struct uar_cli *cli, int argc, char *const *argv)
{
	struct uar_args *args = uar_zalloc(sizeof *args);
	int status;

	uar_definition_also_check(uar_definition_check_parts);
	uar_error_clear(&cli->failure);
	cli->args = args;
	cli->program = argc > 0 ? argv[0] : "uar";
	if (args)
		status = run_line(cli, argc, argv, args);
	else
		status = uar_cli_fail_as(cli, UAR_EXIT_FAILED, UAR_ENOMEM, "%s",
					 uar_err_text(UAR_ENOMEM));
	if (status != UAR_EXIT_OK && cli->failure.code && args && args->option[UAR_OPT_JSON])
		print_failure(cli);
	cli->args = NULL;
	uar_free(args);
	return status;
}

uar_err uar_cli_args_text(struct uar_cli *cli, struct uar_buf *out, struct uar_error *error)
{
	const char *given = cli->args->option[UAR_OPT_ARGS];
	bool input = given && strcmp(given, "-") == 0, file = given && given[0] == '@';
	FILE *from = file ? fopen(given + 1, "re") : input ? cli->in : NULL;
	size_t n = 0;

	if (!file && !input)
		uar_buf_add_str(out, uar_str_c(given ? given : "{}"));
	else if (!from)
		return uar_error_set(error, UAR_EINVALID, "--args: %s cannot be read", given + 1);
	do {
		char *room = from ? uar_buf_reserve(out, 4096) : NULL;

		n = room ? fread(room, 1, 4096, from) : 0;
		out->n += n;
	} while (n > 0);
	if (file)
		fclose(from);
	return out->err ? uar_error_set(error, out->err, "--args are too large") : UAR_OK;
}
