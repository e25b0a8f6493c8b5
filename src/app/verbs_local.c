/* verbs_local.c - verbs that need no server: version, config, check. */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/check_log.h"
#include "app/check_views.h"
#include "app/cli.h"
#include "app/datadir.h"
#include "app/definition_parts.h"
#include "app/limits.h"
#include "app/text.h"
#include "app/verbs_agent.h"
#include "app/verbs_skill.h"
#include "store/store.h"

int uar_verb_version(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	int status;

	if (cli->args->option[UAR_OPT_JSON]) {
		struct uar_jw w = uar_jw_begin(&text);

		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "name", "uar");
		uar_jw_cstr(&w, "version", UAR_VERSION);
		uar_jw_close(&w);
		if (uar_jw_end(&w) == UAR_OK)
			uar_buf_add_char(&text, '\n');
	} else {
		uar_buf_printf(&text, "uar %s\n", UAR_VERSION);
	}
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

int uar_verb_config(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	int status;

	if (cli->args->option[UAR_OPT_JSON])
		uar_config_print_json(cli->config, &text);
	else
		uar_config_print(cli->config, &text);
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

/* A file that holds a secret should be its owner's alone. */
static void note_open_secrets(const struct uar_config_set *set, struct uar_buf *notes)
{
	struct stat st;

	if (!set->file || stat(set->file, &st) || !(st.st_mode & 077))
		return;
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		if (uar_config_rows[i].type == UAR_CONFIG_SECRET &&
		    set->origin[i].source == UAR_CONFIG_FROM_FILE)
			uar_buf_printf(notes, "%s holds %s and is open to other users\n", set->file,
				       uar_config_rows[i].key);
}

/* What a damaged row holds may be anything. */
static void on_damage(void *ctx, const char *what)
{
	uar_text_clean(ctx, uar_str_c(what), false);
	uar_buf_add_char(ctx, '\n');
}

/* Who holds the lock lives; what is merely announced may have died. */
static void note_server(const char *data, bool lives, struct uar_buf *notes)
{
	struct uar_server_info info = { .pid = 0 };
	struct uar_error unheard = { 0 };
	char who[sizeof info.url + 40] = "";

	if (uar_datadir_server(data, &info, &unheard) == UAR_OK)
		snprintf(who, sizeof who, " at %s (pid %lld)", info.url, (long long)info.pid);
	if (lives)
		uar_buf_printf(notes, "%s%s uses the data, which was not looked at\n",
			       *who ? "a server" : "another program", who);
	else if (*who)
		uar_buf_printf(notes, "the server%s is not running and did not leave in order\n",
			       who);
}

static bool is_there(const char *data, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof path, "%s/%s", data, name) < PATH_MAX &&
	       access(path, F_OK) == 0;
}

/* Does the lock, or that nobody holds it, tell of the server? */
static bool knows_server(uar_err e)
{
	return !e || e == UAR_ECORRUPT || e == UAR_ESTATE || e == UAR_ENOTFOUND || e == UAR_ELOCKED;
}

/* A check of rows, and with --log of rules. */
struct stored_check {
	struct uar_buf *problems;
	struct uar_log_check log;
	struct uar_view_check views;
};

static void on_bad_row(void *ctx, const char *what)
{
	on_damage(((struct stored_check *)ctx)->problems, what);
}

static uar_err on_stored_event(void *ctx, const struct uar_event *ev)
{
	return uar_validator_event(((struct stored_check *)ctx)->log.validator, ev);
}

static uar_err on_stored_run(void *ctx, const struct uar_run_row *row)
{
	uar_validator_row(((struct stored_check *)ctx)->log.validator, row);
	return UAR_OK;
}

static uar_err on_stored_row(void *ctx, const struct uar_row *row)
{
	struct stored_check *k = ctx;

	if (row->kind == UAR_ROW_ACTION)
		uar_validator_question(k->log.validator, row);
	else if (row->kind == UAR_ROW_TASK)
		uar_validator_task(k->log.validator, row);
	else if (row->kind == UAR_ROW_SNAPSHOT)
		return uar_view_check_row(&k->views, row);
	return UAR_OK;
}

static uar_err on_folded_event(void *ctx, const struct uar_event *ev)
{
	return uar_view_check_event(&((struct stored_check *)ctx)->views, ev);
}

static uar_err pass_run(void *ctx, const struct uar_run_row *row)
{
	(void)ctx;
	(void)row;
	return UAR_OK;
}

static uar_err pass_row(void *ctx, const struct uar_row *row)
{
	(void)ctx;
	(void)row;
	return UAR_OK;
}

static void pass_bad(void *ctx, const char *what)
{
	(void)ctx;
	(void)what;
}

/* The rows come behind the events, so the events come once more. */
static uar_err check_views(const char *data, struct stored_check *k, struct uar_buf *notes,
			   struct uar_error *error)
{
	struct uar_store_visitor v = { on_folded_event, pass_run, pass_row, pass_bad, k };
	uar_err e = k->views.wanted ? uar_store_sqlite_visit(data, &v, error) : UAR_OK;

	if (!e && k->views.wanted)
		uar_buf_printf(notes, "snapshots      %zu of %zu are what their events lead to\n",
			       k->views.right, k->views.wanted);
	return e;
}

static uar_err verify_with_rules(const char *data, struct uar_buf *notes, struct uar_buf *problems,
				 struct uar_error *error)
{
	struct stored_check k = { .problems = problems };
	struct uar_store_visitor v = { on_stored_event, on_stored_run, on_stored_row, on_bad_row,
				       &k };
	uar_err e = uar_log_check_init(&k.log);

	uar_view_check_init(&k.views, problems);
	if (!e)
		e = uar_store_sqlite_visit(data, &v, error);
	if (!e) /* where rows are damaged, events are missing */
		uar_log_check_report(&k.log, notes, problems);
	if (!e)
		e = check_views(data, &k, notes, error);
	uar_view_check_fini(&k.views);
	uar_log_check_fini(&k.log);
	return e;
}

/* Every row and blob, unless a server or another program is at work on them: then false. */
static bool check_stored(const char *data, bool rules, struct uar_buf *notes,
			 struct uar_buf *problems)
{
	struct uar_error error = { 0 };
	uar_err e;

	if ((!is_there(data, "uar.db") && !is_there(data, "uar.db-wal")) ||
	    uar_datadir_regular(data, &error))
		return true; /* what is wrong with it has been told */
	e = rules ? verify_with_rules(data, notes, problems, &error)
		  : uar_store_sqlite_verify(data, on_damage, problems, &error);
	if (knows_server(e))
		note_server(data, e == UAR_ELOCKED, notes);
	if (e == UAR_ESTATE)
		uar_buf_printf(notes, "%s, and what it holds was not looked at\n", error.text);
	else if (e == UAR_ENOTFOUND)
		uar_buf_printf(notes, "%s\n", error.text);
	else if (e && e != UAR_ELOCKED)
		uar_buf_printf(problems, "%s\n", uar_error_text(&error));
	return e != UAR_ELOCKED;
}

static void print_clean(FILE *to, const char *label, uar_str text)
{
	struct uar_buf clean = uar_buf_make(2 * (size_t)UAR_LIMIT_CONFIG_PROBLEMS);

	uar_text_clean(&clean, text, true);
	fprintf(to, "%s%.*s", label, UAR_FMT(uar_buf_str(&clean)));
	uar_buf_fini(&clean);
}

/* A server would not start with a file that it cannot read. */
static void check_tools_file(const struct uar_config *c, struct uar_buf *notes,
			     struct uar_buf *problems)
{
	struct uar_http_tools_options o = { .sched = NULL };
	struct uar_tools *source = NULL;
	struct uar_error error = { 0 };
	size_t count = 0;

	if (!c->tools || !c->tools_file[0])
		return;
	if (uar_tools_file_read(c->tools_file, &o, &source, &error)) {
		uar_buf_printf(problems, "%s\n", uar_error_text(&error));
		return;
	}
	while (source->ops->at(source, count))
		count++;
	uar_buf_printf(notes, "%zu tool%s in %s\n", count, count == 1 ? " is" : "s are",
		       c->tools_file);
	uar_tools_destroy(source);
}

static int check_local(struct uar_cli *cli)
{
	const struct uar_config_set *set = cli->config;
	struct uar_buf notes = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	struct uar_buf problems = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	struct uar_buf broken = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	uar_err e = uar_datadir_check(&set->value, &notes, &problems), files;
	bool looked;

	uar_agents_check(&set->value, &notes, &broken);
	uar_skills_check(&set->value, &notes, &broken);
	check_tools_file(&set->value, &notes, &problems);
	looked = check_stored(set->value.data, cli->args->option[UAR_OPT_LOG] != NULL, &notes,
			      &problems);
	files = uar_config_check_files(set, &problems);
	e = problems.n ? UAR_ECORRUPT : e ? e : files;
	note_open_secrets(set, &notes);
	print_clean(cli->out, "configuration  ", uar_str_c(set->file ? set->file : "no file"));
	print_clean(cli->out, "\ndata           ", uar_str_c(set->value.data));
	print_clean(cli->out, "\n", uar_buf_str(&notes));
	print_clean(cli->err, "", uar_buf_str(&problems));
	print_clean(cli->err, "", uar_buf_str(&broken));
	fprintf(cli->out, "%s\n",
		e	   ? "not usable"
		: broken.n ? "usable without what is broken; a server at work goes on with what it "
			     "said before"
		: uar_datadir_read_only(set->value.data) ? "ok to read, not to serve"
		: looked				 ? "ok"
			 : "configuration and files are ok; what is stored was not looked at");
	uar_buf_fini(&notes);
	e = e || !broken.n ? e : UAR_EINVALID;
	uar_buf_fini(&problems);
	uar_buf_fini(&broken);
	return e ? UAR_EXIT_FAILED : UAR_EXIT_OK;
}

int uar_verb_check(struct uar_cli *cli)
{
	return cli->args->option[UAR_OPT_URL] ? uar_log_check_server(cli) : check_local(cli);
}
