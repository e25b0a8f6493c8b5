/* verbs_runs.c - verbs that ask once: health, agents, runs, show, cancel. */
#include "app/cli.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "event/limits.h"
#include "http/limits.h"

static bool wants_json(const struct uar_cli *cli)
{
	return cli->args->option[UAR_OPT_JSON] != NULL;
}

static int failed(struct uar_cli *cli, uar_err e, const struct uar_error *error)
{
	return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, error);
}

/* The answer as it came, on a line of its own. */
static int write_raw(struct uar_cli *cli, struct uar_remote_answer *a)
{
	if (a->text.n == 0 || a->text.p[a->text.n - 1] != '\n')
		uar_buf_add_char(&a->text, '\n');
	return uar_cli_write(cli, &a->text);
}

static int write_and_fini(struct uar_cli *cli, struct uar_buf *text)
{
	int status = uar_cli_write(cli, text);

	uar_buf_fini(text);
	return status;
}

/* --- health -------------------------------------------------------------------- */
enum { PROBE_MS = 5000 };

static uar_err probe(const struct uar_api *api, const char *path, struct uar_error *error)
{
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	uar_err e = uar_api_call(api, &(struct uar_api_request){ .method = "GET", .path = path },
				 &body, error);

	uar_buf_fini(&body);
	return e;
}

/* `e`: why it is not ready. */
static int say_health(struct uar_cli *cli, const struct uar_api *api, bool alive, uar_err e,
		      const struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);
	bool closed = e && error->code == UAR_EUNAUTHORIZED;
	int status;

	if (wants_json(cli)) {
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "url", api->url);
		uar_jw_bool(&w, "alive", alive);
		if (closed)
			uar_jw_null(&w, "ready"); /* it did not tell us */
		else
			uar_jw_bool(&w, "ready", !e);
		if (e) {
			uar_jw_cstr(&w, "error", uar_error_text(error));
			uar_jw_cstr(&w, "code", uar_err_token(error->code ? error->code : e));
		}
		uar_jw_close(&w);
		if (uar_jw_end(&w) == UAR_OK)
			uar_buf_add_char(&text, '\n');
	} else if (alive) {
		uar_buf_printf(&text, "%s  alive, %s\n", api->url,
			       closed ? "unauthorized"
			       : e    ? "not ready"
				      : "ready");
	}
	status = write_and_fini(cli, &text);
	return e ? UAR_EXIT_FAILED : status;
}

int uar_verb_health(struct uar_cli *cli)
{
	struct uar_error error = { 0 };
	struct uar_api api;
	uar_err alive, ready;

	alive = uar_remote_find(cli, &api, &error);
	if (alive)
		return failed(cli, alive, &error);
	api.connect_ms = api.answer_ms = PROBE_MS; /* who probes asks again soon */
	alive = probe(&api, "/health", &error);
	ready = alive ? alive : probe(&api, "/ready", &error);
	if (ready)
		uar_cli_fail_with(cli, UAR_EXIT_OK, ready, &error);
	return say_health(cli, &api, !alive, ready, &error);
}

/* --- tables and queries ------------------------------------------------------------ */
static void add_query(struct uar_buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	uar_buf_add_char(path, memchr(path->p, '?', path->n) ? '&' : '?');
	uar_buf_printf(path, "%s=", name);
	uar_api_escape(path, uar_str_c(value));
}

static void put_cell(struct uar_buf *out, uar_str text, size_t width, enum uar_text_style style,
		     bool colour)
{
	struct uar_buf clean = uar_buf_make(4096);

	uar_text_brief(&clean, text, width);
	uar_buf_printf(out, "%s%.*s%s", uar_text_on(style, colour), UAR_FMT(uar_buf_str(&clean)),
		       uar_text_off(style, colour));
	for (size_t n = clean.n; n < width + 2; n++)
		uar_buf_add_char(out, ' ');
	uar_buf_fini(&clean);
}

/* --- agents ----------------------------------------------------------------------- */
static void put_broken_agents(struct uar_buf *out, const struct uar_json *root, bool colour)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("broken"));

	for (const struct uar_json *b = uar_json_at(list, 0); b; b = b->next) {
		put_cell(out, UAR_STR("broken"), 20, UAR_STYLE_RED, colour);
		uar_text_clean(out, uar_json_text(b, "error"), false);
		if (uar_json_text(b, "agent_id").n)
			uar_buf_printf(out, "; the earlier definition of %.*s stays",
				       UAR_FMT(uar_json_text(b, "agent_id")));
		uar_buf_add_char(out, '\n');
	}
}

static int write_agents(struct uar_cli *cli, const struct uar_json *root)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	const struct uar_json *agents = uar_json_get(root, UAR_STR("agents"));
	bool colour = uar_cli_colour(cli, cli->out_tty);

	for (const struct uar_json *a = uar_json_at(agents, 0); a; a = a->next) {
		put_cell(&text, uar_json_text(a, "agent_id"), 20, UAR_STYLE_BOLD, colour);
		uar_text_clean(&text, uar_json_text(a, "description"), false);
		uar_buf_add_char(&text, '\n');
	}
	put_broken_agents(&text, root, colour);
	return write_and_fini(cli, &text);
}

int uar_verb_agents(struct uar_cli *cli)
{
	struct uar_api_request ask = { .method = "GET", .path = "/api/agents" };
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_ask(cli, &ask, &a, &error);
	int status;

	if (e)
		status = failed(cli, e, &error);
	else
		status = wants_json(cli) ? write_raw(cli, &a) : write_agents(cli, a.root);
	uar_remote_answer_fini(&a);
	return status;
}

/* --- runs ------------------------------------------------------------------------- */
/* How long it took, or takes so far; nothing before it began. */
static void put_took(struct uar_buf *out, const struct uar_json *run, double now)
{
	double started = uar_json_double(uar_json_get(run, UAR_STR("started_at")), 0);
	double finished = uar_json_double(uar_json_get(run, UAR_STR("finished_at")), 0);

	if (started > 0)
		uar_text_span(out, (finished > 0 ? finished : now) - started);
}

/* A run that waits for somebody does not move, whatever its record calls it. */
static uar_str shown_status(const struct uar_json *run)
{
	uar_str engine = uar_json_text(run, "engine_status");

	return uar_str_is(engine, "waiting_permission") || uar_str_is(engine, "waiting_input")
		       ? UAR_STR("waiting")
		       : uar_json_text(run, "status");
}

/* How many characters of the ids differ from each other on this page: at a terminal a
 * prefix is enough, because each verb that takes a RUN takes one. */
enum { ID_SHOWN = 36, ID_SHORTEST = 8 };

static size_t common_prefix(uar_str a, uar_str b)
{
	size_t n = 0;

	while (n < a.n && n < b.n && a.p[n] == b.p[n])
		n++;
	return n;
}

/* The server lists runs by age; ids made close to each other in time share their beginning,
 * so each one is compared with all. */
static size_t short_id_width(const struct uar_json *runs)
{
	size_t width = ID_SHORTEST;

	for (const struct uar_json *a = uar_json_at(runs, 0); a; a = a->next)
		for (const struct uar_json *b = a->next; b; b = b->next) {
			size_t n = common_prefix(uar_json_text(a, "run_id"),
						 uar_json_text(b, "run_id")) +
				   1;

			if (n > width)
				width = n;
		}
	return width < ID_SHOWN ? width : ID_SHOWN;
}

/* What it is about, and behind that why it stands where it stands. */
static void put_subject(struct uar_buf *out, const struct uar_json *run)
{
	const struct uar_json *error = uar_json_get(run, UAR_STR("error"));
	const struct uar_json *question = uar_json_at(uar_json_get(run, UAR_STR("actions")), 0);
	uar_str why = uar_json_text(error, "message"), title = uar_json_text(run, "title");

	if (!why.n)
		why = question ? uar_json_text(question, "prompt")
			       : uar_json_text(run, "cancel_reason");
	uar_text_brief(out, title, 48);
	if (title.n && why.n)
		uar_buf_add_str(out, UAR_STR("  "));
	uar_text_brief(out, why, 60);
}

struct run_table {
	double now;
	size_t id_width;
	bool colour;
};

static void put_run(struct uar_buf *out, const struct uar_json *run, const struct run_table *t)
{
	struct uar_buf cell = uar_buf_make(256);
	uar_str status = shown_status(run), id = uar_json_text(run, "run_id");

	if (id.n > t->id_width && t->id_width < ID_SHOWN)
		id.n = t->id_width;
	put_cell(out, id, t->id_width, UAR_STYLE_NONE, t->colour);
	put_cell(out, status, 16, uar_text_status_style(status), t->colour);
	put_cell(out, uar_json_text(run, "agent_id"), 20, UAR_STYLE_NONE, t->colour);
	uar_text_span(&cell,
		      t->now - uar_json_double(uar_json_get(run, UAR_STR("created_at")), t->now));
	uar_buf_add_str(&cell, UAR_STR(" ago"));
	put_cell(out, uar_buf_str(&cell), 9, UAR_STYLE_DIM, t->colour);
	uar_buf_clear(&cell);
	put_took(&cell, run, t->now);
	put_cell(out, uar_buf_str(&cell), 6, UAR_STYLE_NONE, t->colour);
	put_subject(out, run);
	while (out->n && out->p[out->n - 1] == ' ')
		out->n--;
	uar_buf_add_char(out, '\n');
	uar_buf_fini(&cell);
}

static void put_run_titles(struct uar_buf *out, const struct run_table *t)
{
	static const struct {
		const char *title;
		size_t width;
	} columns[] = { { "STATUS", 16 }, { "AGENT", 20 }, { "CREATED", 9 }, { "TOOK", 6 } };

	put_cell(out, UAR_STR("RUN"), t->id_width, UAR_STYLE_BOLD, t->colour);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		put_cell(out, uar_str_c(columns[i].title), columns[i].width, UAR_STYLE_BOLD,
			 t->colour);
	uar_buf_add_str(out, UAR_STR("TITLE\n"));
}

static int write_runs(struct uar_cli *cli, const struct uar_json *root)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	const struct uar_json *runs = uar_json_get(root, UAR_STR("runs"));
	uar_str next = uar_json_text(root, "next_before");
	struct run_table t = { .now = (double)uar_clock_wall(cli->clock) / 1e6,
			       .id_width = cli->out_tty ? short_id_width(runs) : ID_SHOWN,
			       .colour = uar_cli_colour(cli, cli->out_tty) };

	if (uar_json_at(runs, 0))
		put_run_titles(&text, &t);
	else
		uar_buf_add_str(&text, UAR_STR("no runs\n"));
	for (const struct uar_json *run = uar_json_at(runs, 0); run; run = run->next)
		put_run(&text, run, &t);
	if (next.n) {
		uar_buf_add_str(&text, UAR_STR("more: uar runs --before "));
		uar_text_brief(&text, next, 200);
		uar_buf_add_char(&text, '\n');
	}
	return write_and_fini(cli, &text);
}

int uar_verb_ps(struct uar_cli *cli)
{
	return uar_verb_runs(cli);
}

/* --root names a run, which may be given by the beginning of its id. */
static uar_err list_path(const struct uar_cli *cli, struct uar_buf *path, struct uar_error *error)
{
	static const struct {
		const char *name;
		enum uar_opt opt;
	} filters[] = {
		{ "limit", UAR_OPT_LIMIT },	 { "before", UAR_OPT_BEFORE },
		{ "status", UAR_OPT_STATUS },	 { "agent_id", UAR_OPT_AGENT },
		{ "plugin_id", UAR_OPT_PLUGIN }, { "entry_id", UAR_OPT_ENTRY },
		{ "task_id", UAR_OPT_TASK },
	};
	const char *root = cli->args->option[UAR_OPT_ROOT];
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	uar_err e = root ? uar_remote_run_id(cli, root, run_id, error) : UAR_OK;

	uar_buf_add_str(path, UAR_STR("/api/runs"));
	for (size_t i = 0; i < ARRAY_LEN(filters); i++)
		add_query(path, filters[i].name, cli->args->option[filters[i].opt]);
	add_query(path, "root_run_id", root && !e ? run_id : NULL);
	return e ? e : path->err;
}

int uar_verb_runs(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	const char *limit = args->option[UAR_OPT_LIMIT];
	uint64_t n;
	uar_err e;
	int status;

	if (limit && (uar_str_u64(uar_str_c(limit), &n) || n < 1 || n > UAR_LIMIT_LIST_PAGE))
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "--limit takes a number from 1 to %d",
				    UAR_LIMIT_LIST_PAGE);
	e = list_path(cli, &path, &error);
	if (!e)
		e = uar_remote_ask(cli,
				   &(struct uar_api_request){ .method = "GET", .path = path.p }, &a,
				   &error);
	if (e)
		status = failed(cli, e, &error);
	else
		status = wants_json(cli) ? write_raw(cli, &a) : write_runs(cli, a.root);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
	return status;
}

/* --- show -------------------------------------------------------------------------- */
static void put_time(struct uar_buf *out, double seconds, double now)
{
	char text[UAR_TIME_TEXT + 1];

	uar_time_format((int64_t)(seconds * 1e6), text);
	uar_buf_printf(out, "%s  (", text);
	uar_text_span(out, now - seconds);
	uar_buf_add_str(out, UAR_STR(" ago)"));
}

static void put_member(struct uar_buf *out, const struct uar_json *m, double now, bool colour)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	double seconds = uar_json_double(m, 0);

	put_cell(out, m->key, 20, UAR_STYLE_DIM, colour);
	if (uar_str_ends(m->key, UAR_STR("_at")) && seconds > 0 && seconds < 1e11) {
		put_time(out, seconds, now);
	} else if (m->kind == UAR_JSON_STRING) {
		enum uar_text_style style = uar_str_is(m->key, "status")
						    ? uar_text_status_style(m->text)
						    : UAR_STYLE_NONE;

		uar_buf_printf(out, "%s", uar_text_on(style, colour));
		uar_text_clean(out, m->text, false);
		uar_buf_printf(out, "%s", uar_text_off(style, colour));
	} else {
		uar_json_write(&json, m);
		uar_text_clean(out, uar_buf_str(&json), false);
	}
	uar_buf_add_char(out, '\n');
	uar_buf_fini(&json);
}

static int write_record(struct uar_cli *cli, const struct uar_json *record)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	bool colour = uar_cli_colour(cli, cli->out_tty);
	double now = (double)uar_clock_wall(cli->clock) / 1e6;

	if (record->kind == UAR_JSON_OBJECT)
		for (const struct uar_json *m = record->first; m; m = m->next)
			if (m->kind != UAR_JSON_NULL)
				put_member(&text, m, now, colour);
	return write_and_fini(cli, &text);
}

int uar_verb_show(struct uar_cli *cli)
{
	struct uar_remote_answer a = { .root = NULL };
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_error error = { 0 };
	uar_err e = uar_remote_run_id(cli, cli->args->word[0], run_id, &error);
	int status;

	if (!e)
		e = uar_remote_record(cli, uar_str_c(run_id), &a, &error);

	if (e)
		status = failed(cli, e, &error);
	else
		status = wants_json(cli) ? write_raw(cli, &a) : write_record(cli, a.root);
	uar_remote_answer_fini(&a);
	return status;
}

/* --- cancel ------------------------------------------------------------------------- */
static int write_status(struct uar_cli *cli, const struct uar_json *record)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	uar_str status = uar_json_text(record, "status");
	enum uar_text_style style = uar_text_status_style(status);
	bool colour = uar_cli_colour(cli, cli->out_tty);

	uar_text_brief(&text, uar_json_text(record, "run_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_printf(&text, "  %s", uar_text_on(style, colour));
	uar_text_brief(&text, status, 40);
	uar_buf_printf(&text, "%s\n", uar_text_off(style, colour));
	return write_and_fini(cli, &text);
}

int uar_verb_cancel(struct uar_cli *cli)
{
	const char *reason = cli->args->option[UAR_OPT_REASON];
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	struct uar_jw w = uar_jw_begin(&body);
	char run_id[UAR_LIMIT_ID_BYTES + 1] = "";
	uar_err e = uar_remote_run_id(cli, cli->args->word[0], run_id, &error);
	int status;

	uar_remote_run_path(&path, uar_str_c(run_id), "/cancel");
	uar_jw_obj(&w, NULL);
	if (reason)
		uar_jw_cstr(&w, "reason", reason);
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	if (!e)
		e = path.err;
	if (!e)
		e = uar_remote_ask(cli,
				   &(struct uar_api_request){ .method = "POST",
							      .path = path.p,
							      .body = uar_buf_str(&body) },
				   &a, &error);
	if (e)
		status = failed(cli, e, &error);
	else
		status = wants_json(cli) ? write_raw(cli, &a) : write_status(cli, a.root);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
	uar_buf_fini(&body);
	return status;
}
