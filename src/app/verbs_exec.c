/* verbs_exec.c - exec: a coding agent from a terminal, as a run of the log.
 *
 * Text goes to standard output, everything else to the error stream. What the
 * agent wants to be allowed is asked on the terminal; without one, and without
 * --yes, the answer is no. The first Ctrl-C cancels the run and waits for its
 * end, the second leaves at once. */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "app/action.h"
#include "app/cli.h"
#include "app/exec_server.h"
#include "app/render.h"
#include "app/text.h"
#include "base/rand.h"

enum { ASK_MS = 200, WATCH_MS = 50, INPUT_SHOWN = 2000, CREATE_TRIES = 3 };

struct exec {
	struct uar_cli *cli;
	struct uar_render render;
	FILE *tty; /* NULL: nobody to ask */
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	atomic_bool interrupted, over;
	pthread_t watcher;
	bool watching;
	sigset_t before;
};

static uar_str member(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

/* --- Ctrl-C --------------------------------------------------------------------- */

static void cancel(struct exec *x)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };

	uar_remote_run_path(&path, uar_str_c(x->run_id), "/cancel");
	if (!path.err && uar_remote_ask(x->cli,
					&(struct uar_api_request){
						.method = "POST",
						.path = path.p,
						.body = UAR_STR("{\"reason\":\"interrupted\"}") },
					&a, &error))
		uar_cli_fail_with(x->cli, 0, UAR_ENET, &error);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
}

static void *watch_signals(void *ctx)
{
	struct exec *x = ctx;
	struct timespec a_while = { .tv_nsec = WATCH_MS * 1000000L };
	sigset_t set;
	int signum;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	while (!atomic_load(&x->over)) {
		signum = sigtimedwait(&set, NULL, &a_while);
		if (signum > 0 && atomic_exchange(&x->interrupted, true))
			_exit(128 + signum);
		if (signum > 0)
			cancel(x);
	}
	return NULL;
}

static void begin_watch(struct exec *x)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &x->before);
	x->watching = pthread_create(&x->watcher, NULL, watch_signals, x) == 0;
}

static void end_watch(struct exec *x)
{
	atomic_store(&x->over, true);
	if (x->watching)
		pthread_join(x->watcher, NULL);
	pthread_sigmask(SIG_SETMASK, &x->before, NULL);
}

/* --- approvals -------------------------------------------------------------------- */

static void show_question(struct exec *x, const struct uar_json *data)
{
	const struct uar_json *scope = uar_json_get(data, UAR_STR("scope"));
	const struct uar_json *input = uar_json_get(scope, UAR_STR("input"));
	struct uar_buf whole = uar_buf_make(UAR_LIMIT_CLI_LINE), b = whole;

	if (input)
		uar_json_write(&whole, input);
	else
		uar_buf_add_str(&whole, member(scope, "input_preview"));
	uar_buf_add_str(&b, UAR_STR("\n"));
	uar_text_brief(&b, member(data, "title"), 400);
	uar_buf_add_str(&b, UAR_STR("\n  "));
	uar_text_brief(&b, uar_buf_str(&whole), INPUT_SHOWN);
	uar_buf_add_str(&b, UAR_STR("\nallow it? [y]es, [n]o, [a]lways in this session: "));
	fwrite(b.p, 1, b.n, x->tty);
	fflush(x->tty);
	uar_buf_fini(&whole);
	uar_buf_fini(&b);
}

/* A line of the terminal, all at once; an interruption counts as no. */
static char read_answer(struct exec *x)
{
	struct pollfd p = { .fd = fileno(x->tty), .events = POLLIN };
	char line[64];

	while (!atomic_load(&x->interrupted))
		if (poll(&p, 1, ASK_MS) == 1)
			return read(p.fd, line, sizeof line) > 0 ? line[0] : 'n';
	return 'n';
}

static const char *decide(struct exec *x, const struct uar_json *data)
{
	const struct uar_args *args = x->cli->args;
	char c;

	if (args->option[UAR_OPT_YES])
		return "allow";
	if (args->option[UAR_OPT_DENY])
		return "deny";
	if (!x->tty) {
		fprintf(x->cli->err,
			"[denied] nobody to ask: --yes allows, or answer by terminal\n");
		return "deny";
	}
	uar_render_rest(&x->render);
	tcflush(fileno(x->tty), TCIFLUSH); /* what was typed before was no answer */
	show_question(x, data);
	c = read_answer(x);
	tcflush(fileno(x->tty), TCIFLUSH);
	return c == 'y' || c == 'Y' ? "allow" : c == 'a' || c == 'A' ? "allow_for_session" : "deny";
}

/* Somebody else may have been faster, which is fine. */
static void answer(struct exec *x, const struct uar_json *data)
{
	struct uar_action_answer r = { .action_id = member(data, "action_id"),
				       .decision = decide(x, data) };
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e;

	if (atomic_load(&x->interrupted))
		return; /* cancelled: it is withdrawn */
	e = uar_action_respond(x->cli, &r, &a, &error);
	if (e)
		uar_cli_fail_with(x->cli, 0, e, &error);
	uar_remote_answer_fini(&a);
}

/* --- the stream -------------------------------------------------------------------- */

static void write_line(FILE *out, uar_str data)
{
	for (size_t i = 0; i < data.n; i++)
		fputc(data.p[i] == '\n' || data.p[i] == '\r' ? ' ' : data.p[i], out);
	fputc('\n', out);
}

static bool show(void *ctx, uar_str text)
{
	struct exec *x = ctx;
	const struct uar_json *event, *data;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (x->cli->args->option[UAR_OPT_JSON])
		write_line(x->cli->out, text);
	if (uar_json_parse(text, NULL, &arena, &event, NULL) == UAR_OK) {
		data = uar_json_get(event, UAR_STR("data"));
		if (!x->cli->args->option[UAR_OPT_JSON])
			uar_render_event(&x->render, event);
		if (uar_str_is(member(data, "action_type"), "tool_permission") &&
		    uar_str_is(member(data, "status"), "pending"))
			answer(x, data);
	}
	uar_arena_fini(&arena);
	return fflush(x->cli->out) == 0;
}

static int follow(struct exec *x)
{
	struct uar_remote_follow f = { .run_id = uar_str_c(x->run_id),
				       .to_the_end = true,
				       .patient = true,
				       .show = show,
				       .ctx = x };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_follow(x->cli, &f, &error);

	uar_render_rest(&x->render);
	if (e)
		return uar_cli_fail(x->cli, UAR_EXIT_FAILED,
				    "%s; the run goes on, see `uar logs -f %s`",
				    uar_error_text(&error), x->run_id);
	return uar_remote_exit_status(x->cli, x->run_id);
}

/* --- the request -------------------------------------------------------------------- */

/* Does it work where the caller is? UAR_ENOTFOUND names those there are. */
static uar_err look_up(struct uar_cli *cli, const char *name, bool *out_takes_dir,
		       struct uar_error *error)
{
	struct uar_api_request ask = { .method = "GET", .path = "/api/agents" };
	struct uar_buf names = uar_buf_make(UAR_LIMIT_ERROR_TEXT);
	struct uar_remote_answer a = { .root = NULL };
	uar_err e = uar_remote_ask(cli, &ask, &a, error);
	const struct uar_json *list = uar_json_get(a.root, UAR_STR("agents"));
	struct uar_error unheard = { 0 };
	struct uar_api api;
	bool found = false;

	for (const struct uar_json *j = uar_json_at(list, 0); j && !found; j = j->next) {
		if (!uar_str_starts(member(j, "entry"), UAR_STR("backend.")))
			continue;
		found = uar_str_is(member(j, "agent_id"), name);
		*out_takes_dir =
			uar_json_bool(uar_json_get(j, UAR_STR("takes_working_dir")), false);
		uar_buf_printf(&names, "%s%.*s", names.n ? ", " : "",
			       UAR_FMT(member(j, "agent_id")));
	}
	/* A directory of this machine means nothing to another one. */
	*out_takes_dir &= uar_remote_find(cli, &api, &unheard) == UAR_OK && uar_api_is_local(&api);
	if (!e && !found)
		e = uar_error_set(error, UAR_ENOTFOUND, "no agent %.60s here; there are: %.*s",
				  name, UAR_FMT(names.err ? UAR_STR("many") : uar_buf_str(&names)));
	uar_remote_answer_fini(&a);
	uar_buf_fini(&names);
	return e;
}

static void put_inputs(struct uar_jw *w, struct uar_cli *cli, uar_str message, bool takes_dir)
{
	const struct uar_args *args = cli->args;
	const char *named = args->option[UAR_OPT_CWD];
	char here[PATH_MAX];

	uar_jw_obj(w, "inputs");
	uar_jw_str(w, "message", message);
	if (named) /* what is not here may be there */
		uar_jw_cstr(w, "working_dir", realpath(named, here) ? here : named);
	else if (takes_dir && getcwd(here, sizeof here))
		uar_jw_cstr(w, "working_dir", here);
	if (args->option[UAR_OPT_FORK])
		uar_jw_cstr(w, "session", "fork");
	uar_jw_close(w);
}

static uar_err put_request(struct uar_cli *cli, uar_str message, bool takes_dir,
			   struct uar_buf *out, struct uar_error *error)
{
	const struct uar_args *args = cli->args;
	struct uar_jw w = uar_jw_begin(out);
	char key[UAR_UUID_TEXT + 1];
	struct uar_uuid ids;
	double timeout = 0;
	uar_err e = uar_remote_timeout(cli, &timeout, error);

	if (e)
		return e;
	uar_uuid_init(&ids, cli->clock, &uar_rand_system);
	uar_uuid_next(&ids, key);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "agent_id", args->word[0]);
	put_inputs(&w, cli, message, takes_dir);
	if (args->option[UAR_OPT_CONVERSATION])
		uar_jw_cstr(&w, "conversation_id", args->option[UAR_OPT_CONVERSATION]);
	uar_jw_cstr(&w, "idempotency_key", key);
	if (timeout > 0)
		uar_jw_double(&w, "timeout", timeout);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* A server that ends just now is followed by another; the key makes that safe. */
static uar_err create(struct exec *x, uar_str message, struct uar_error *error)
{
	struct uar_buf body = uar_buf_make(2 * UAR_LIMIT_CLI_MESSAGE);
	bool takes_dir = false;
	uar_err e = UAR_ENET;

	for (int i = 0; i < CREATE_TRIES && (e == UAR_ENET || e == UAR_EBUSY || e == UAR_EEOF);
	     i++) {
		e = uar_exec_server(x->cli, error);
		if (!e)
			e = look_up(x->cli, x->cli->args->word[0], &takes_dir, error);
		if (!e && !body.n)
			e = put_request(x->cli, message, takes_dir, &body, error);
		if (!e)
			e = uar_remote_create(x->cli, "/api/runs", uar_buf_str(&body), x->run_id,
					      error);
	}
	uar_buf_fini(&body);
	return e;
}

static int run(struct exec *x, uar_str message)
{
	bool colour = uar_cli_colour(x->cli, x->cli->err_tty);
	struct uar_error error = { 0 };
	uar_err e = create(x, message, &error);
	int status;

	if (e)
		return uar_cli_fail_with(x->cli, UAR_EXIT_FAILED, e, &error);
	if (x->cli->err_tty)
		fprintf(x->cli->err, "%srun %s%s\n", uar_text_on(UAR_STYLE_DIM, colour), x->run_id,
			uar_text_off(UAR_STYLE_DIM, colour));
	begin_watch(x);
	status = follow(x);
	end_watch(x);
	return status;
}

int uar_verb_exec(struct uar_cli *cli)
{
	struct exec x = { .cli = cli,
			  .render = { .text = cli->out,
				      .notes = cli->err,
				      .text_colour = uar_cli_colour(cli, cli->out_tty),
				      .notes_colour = uar_cli_colour(cli, cli->err_tty) } };
	struct uar_buf message = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
	struct uar_error error = { 0 };
	uar_err e = uar_remote_message(cli, &message, &error);
	int status;

	if (!e && cli->args->option[UAR_OPT_YES] && cli->args->option[UAR_OPT_DENY])
		e = uar_error_set(&error, UAR_EINVALID, "--yes and --deny contradict");
	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_USAGE, e, &error);
	} else {
		x.tty = fopen("/dev/tty", "r+e");
		status = run(&x, uar_buf_str(&message));
		if (x.tty)
			fclose(x.tty);
	}
	uar_buf_fini(&message);
	return status;
}
