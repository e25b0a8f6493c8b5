/* verbs_stream.c - verbs that show a run as it happens: logs, run.
 *
 * At a terminal `run` is attached as chat and exec are: the first Ctrl-C cancels. Elsewhere
 * a signal only leaves: the run continues, `uar logs -f` comes back. */
#include "app/action.h"
#include "app/cli.h"
#include "app/exec_run.h"
#include "app/leave.h"
#include "app/limits.h"
#include "app/nearest.h"
#include "app/remote.h"
#include "app/render.h"
#include "app/text.h"
#include "base/rand.h"

struct shower {
	struct uar_cli *cli;
	struct uar_render render;
	bool asks; /* what the run asks is asked here */
};

/* JSON has no raw line ends except between tokens, where a space does as well. */
static bool show_json(void *ctx, uar_str data)
{
	struct shower *s = ctx;

	for (size_t i = 0; i < data.n; i++)
		fputc(data.p[i] == '\n' || data.p[i] == '\r' ? ' ' : data.p[i], s->cli->out);
	fputc('\n', s->cli->out);
	return fflush(s->cli->out) == 0;
}

static bool show_text(void *ctx, uar_str data)
{
	struct shower *s = ctx;
	struct uar_arena a;
	const struct uar_json *event = NULL;

	uar_arena_init(&a, 0);
	if (uar_json_parse(data, NULL, &a, &event, NULL) == UAR_OK)
		uar_render_event(&s->render, event);
	if (event && s->asks)
		uar_action_inline(s->cli, event);
	uar_arena_fini(&a);
	return !ferror(s->cli->out);
}

static void follow_as(struct uar_cli *cli, struct shower *s, struct uar_remote_follow *f)
{
	s->cli = cli;
	f->show = cli->args->option[UAR_OPT_JSON] ? show_json : show_text;
	f->ctx = s;
}

int uar_verb_logs(struct uar_cli *cli)
{
	const char *after = cli->args->option[UAR_OPT_AFTER];
	bool colour = uar_cli_colour(cli, cli->out_tty), follow = cli->args->option[UAR_OPT_FOLLOW];
	bool live = follow && cli->out_tty && !cli->args->option[UAR_OPT_JSON];
	struct shower s = { .render = { .text = cli->out,
					.notes = cli->out,
					.text_colour = colour,
					.notes_colour = colour,
					.live = live,
					.steps = !live,
					.frame = true } };
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_remote_follow f = { .to_the_end = follow,
				       .progress = !cli->args->option[UAR_OPT_JSON] };
	struct uar_error error = { 0 };
	uar_err e;

	if (after && uar_str_u64(uar_str_c(after), &f.after))
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "--after takes the number of an event");
	follow_as(cli, &s, &f);
	e = uar_remote_run_id(cli, cli->args->word[0], run_id, &error);
	if (!e) {
		f.run_id = uar_str_c(run_id);
		e = uar_remote_follow(cli, &f, &error);
	}
	uar_render_rest(&s.render);
	return e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : UAR_EXIT_OK;
}

/* --- run ----------------------------------------------------------------------- */
static uar_err read_input(struct uar_cli *cli, struct uar_buf *out, struct uar_error *error)
{
	size_t n;

	do {
		char *room = uar_buf_reserve(out, 4096);

		if (!room)
			return uar_error_set(error, out->err, "the message is too large");
		n = fread(room, 1, 4096, cli->in);
		out->n += n;
	} while (n > 0);
	if (out->n && out->p[out->n - 1] == '\n')
		out->n--;
	return UAR_OK;
}

/* The words after the agent, or standard input. */
uar_err uar_remote_message(struct uar_cli *cli, struct uar_buf *out, struct uar_error *error)
{
	const struct uar_args *args = cli->args;
	bool from_input = args->words == 1 || (args->words == 2 && !strcmp(args->word[1], "-"));

	if (args->words == 1 && cli->in_tty)
		return uar_error_set(
			error, UAR_EINVALID,
			"what shall %.60s do? say it behind the agent, or - to read it "
			"from standard input",
			args->word[0]);
	if (from_input)
		return read_input(cli, out, error);
	for (size_t i = 1; i < args->words; i++)
		uar_buf_printf(out, "%s%s", i > 1 ? " " : "", args->word[i]);
	return out->err;
}

uar_err uar_remote_timeout(struct uar_cli *cli, double *out, struct uar_error *error)
{
	const char *text = cli->args->option[UAR_OPT_TIMEOUT];
	int64_t us;

	if (!text)
		return UAR_OK;
	if (!uar_config_read_duration(uar_str_c(text), &us) || us <= 0)
		return uar_error_set(
			error, UAR_EINVALID,
			"--timeout takes seconds in plain digits, or such a number with "
			"ms, s, m, h or d, more than 0; \"%.40s\" is neither",
			text);
	*out = (double)us / 1e6;
	return UAR_OK;
}

void uar_remote_put_key(const struct uar_cli *cli, struct uar_jw *w)
{
	const char *key = cli->args->option[UAR_OPT_IDEMPOTENCY_KEY];
	char made[UAR_UUID_TEXT + 1];
	struct uar_uuid ids;

	uar_uuid_init(&ids, cli->clock, &uar_rand_system);
	uar_uuid_next(&ids, made);
	uar_jw_cstr(w, "idempotency_key", key ? key : made);
}

static uar_err put_request(struct uar_cli *cli, uar_str message, struct uar_buf *out,
			   struct uar_error *error)
{
	const struct uar_args *args = cli->args;
	struct uar_jw w = uar_jw_begin(out);
	double timeout = 0;
	uar_err e = uar_remote_timeout(cli, &timeout, error);

	if (e)
		return e;
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "agent_id", args->word[0]);
	uar_jw_obj(&w, "inputs");
	uar_jw_str(&w, "message", message);
	uar_jw_close(&w);
	if (args->option[UAR_OPT_CONVERSATION])
		uar_jw_cstr(&w, "conversation_id", args->option[UAR_OPT_CONVERSATION]);
	uar_remote_put_key(cli, &w);
	if (timeout > 0)
		uar_jw_double(&w, "timeout", timeout);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* A run that only begins when somebody has answered would look as if it hung. */
static void tell_waits(const struct uar_cli *cli, const struct uar_json *answer)
{
	const struct uar_json *by = uar_json_get(answer, UAR_STR("waits_behind"));
	uar_str detail = uar_json_text(by, "detail");
	struct uar_buf clean = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);

	uar_text_clean(&clean, detail, false);
	if (detail.n)
		fprintf(cli->err, "uar: %.*s (`uar approve`, `uar answer`)\n",
			UAR_FMT(uar_buf_str(&clean)));
	fflush(cli->err);
	uar_buf_fini(&clean);
}

uar_err uar_remote_create(struct uar_cli *cli, const char *path, uar_str body,
			  char run_id[UAR_LIMIT_ID_BYTES + 1], struct uar_error *error)
{
	enum { TRIES = 3 };
	struct uar_remote_answer a = { .root = NULL };
	uar_str id;
	uar_err e = UAR_EEOF;

	for (int i = 0; i < TRIES && (e == UAR_EEOF || e == UAR_ETIMEOUT); i++) {
		uar_remote_answer_fini(&a);
		e = uar_remote_ask(
			cli,
			&(struct uar_api_request){ .method = "POST", .path = path, .body = body },
			&a, error);
	}
	id = uar_json_text(a.root, "run_id");
	if (!e && !uar_str_is_id(id))
		e = uar_error_set(error, UAR_ESYNTAX, "the answer names no run");
	if (!e) {
		snprintf(run_id, UAR_LIMIT_ID_BYTES + 1, "%.*s", UAR_FMT(id));
		tell_waits(cli, a.root);
	}
	uar_remote_answer_fini(&a);
	return e;
}

int uar_remote_exit_status(struct uar_cli *cli, const char *run_id)
{
	static const struct {
		const char *status;
		int exit;
	} rows[] = { { "succeeded", UAR_EXIT_OK },
		     { "canceled", UAR_EXIT_CANCELED },
		     { "timeout", UAR_EXIT_TIMEOUT } };
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_record(cli, uar_str_c(run_id), &a, &error);
	uar_str status = uar_json_text(a.root, "status");
	int code = UAR_EXIT_FAILED;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (uar_str_is(status, rows[i].status))
			code = rows[i].exit;
	uar_remote_answer_fini(&a);
	return e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : code;
}

static bool is_at_terminal(const struct uar_cli *cli)
{
	return cli->in_tty && cli->err_tty && !cli->args->option[UAR_OPT_JSON];
}

static int watch(struct uar_cli *cli, const char *run_id)
{
	bool notes_colour = uar_cli_colour(cli, cli->err_tty);
	struct shower s = { .render = { .text = cli->out,
					.notes = cli->err,
					.text_colour = uar_cli_colour(cli, cli->out_tty),
					.notes_colour = notes_colour },
			    .asks = true };
	struct uar_remote_follow f = { .run_id = uar_str_c(run_id),
				       .to_the_end = true,
				       .patient = true };
	struct uar_error error = { 0 };
	struct uar_leave leave;
	uar_err e;

	if (is_at_terminal(cli))
		return uar_exec_attach(cli, run_id);
	if (cli->err_tty)
		fprintf(cli->err, "%srun %s (leaving does not stop it: uar cancel %s does)%s\n",
			uar_text_on(UAR_STYLE_DIM, notes_colour), run_id, run_id,
			uar_text_off(UAR_STYLE_DIM, notes_colour));
	follow_as(cli, &s, &f);
	uar_leave_begin(&leave, cli, run_id);
	e = uar_remote_follow(cli, &f, &error);
	uar_leave_end(&leave);
	uar_render_rest(&s.render);
	if (e)
		return uar_cli_fail_as(cli, UAR_EXIT_FAILED, e,
				       "%s; the run goes on, see `uar logs -f %s`",
				       uar_error_text(&error), run_id);
	return uar_remote_exit_status(cli, run_id);
}

/* Adds the agent that was meant, unless what was not found is something else. */
static void propose_agent(const struct uar_cli *cli, struct uar_error *error)
{
	struct uar_api_request ask = { .method = "GET", .path = "/api/agents" };
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error unheard = { 0 }, said = *error;
	uar_str name = uar_str_c(cli->args->word[0]);
	const struct uar_json *j = NULL;
	struct uar_nearest near;
	bool there = false;

	uar_nearest_init(&near, name);
	if (uar_remote_ask(cli, &ask, &a, &unheard) == UAR_OK)
		j = uar_json_at(uar_json_get(a.root, UAR_STR("agents")), 0);
	for (; j; j = j->next) {
		uar_str id = uar_json_text(j, "agent_id");
		uar_str copy = uar_arena_str(&a.arena, id);

		there |= uar_str_eq(id, name);
		if (copy.p)
			uar_nearest_consider(&near, copy.p);
	}
	if (near.best && !there)
		uar_error_set(error, said.code, "%s, did you mean %s?", said.text, near.best);
	uar_remote_answer_fini(&a);
}

int uar_verb_run(struct uar_cli *cli)
{
	struct uar_buf message = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
	struct uar_buf body = uar_buf_make(2 * UAR_LIMIT_CLI_MESSAGE);
	char run_id[UAR_LIMIT_ID_BYTES + 1] = "";
	struct uar_error error = { 0 };
	uar_err e = uar_remote_message(cli, &message, &error);
	int status;

	if (!e)
		e = put_request(cli, uar_buf_str(&message), &body, &error);
	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_USAGE, e, &error);
	} else {
		e = uar_remote_create(cli, "/api/runs", uar_buf_str(&body), run_id, &error);
		if (e == UAR_ENOTFOUND)
			propose_agent(cli, &error);
		status =
			e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : watch(cli, run_id);
	}
	uar_buf_fini(&message);
	uar_buf_fini(&body);
	return status;
}
