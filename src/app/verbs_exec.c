/* verbs_exec.c - exec: a coding agent from a terminal, as a run of the log.
 *
 * Text goes to standard output, everything else to the error stream. What the
 * agent wants to be allowed is asked on the terminal; without one, and without
 * --yes, the answer is no. One thread waits for the stream, the terminal and
 * signals together, so that a question ends when somebody else has answered it.
 * The first Ctrl-C cancels the run and waits for its end, the second leaves at once. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/action.h"
#include "app/cli.h"
#include "app/exec_ask.h"
#include "app/exec_run.h"
#include "app/exec_server.h"
#include "app/limits.h"
#include "app/render.h"
#include "app/text.h"
#include "base/rand.h"
#include "http/limits.h"

struct exec {
	struct uar_cli *cli;
	struct uar_render render;
	struct uar_asker asker;
	struct uar_beside beside;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	bool passing; /* its server comes back when it is started again */
	bool forms;   /* what is no permission is asked, too */
	bool interrupted, cancelled, gave_up;
	sigset_t before;
};

/* --- Ctrl-C --------------------------------------------------------------------- */

/* A run that has ended meanwhile is fine. */
static uar_err cancel(struct exec *x)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e;

	uar_remote_run_path(&path, uar_str_c(x->run_id), "/cancel");
	e = path.err ? path.err
		     : uar_remote_ask(x->cli,
				      &(struct uar_api_request){
					      .method = "POST",
					      .path = path.p,
					      .body = UAR_STR("{\"reason\":\"interrupted\"}") },
				      &a, &error);
	if (e == UAR_EDISKFULL) /* it is stopped, which its stream tells once there is space */
		uar_cli_fail_with(x->cli, 0, e, &error);
	if (e == UAR_ECONFLICT || e == UAR_EDISKFULL)
		e = UAR_OK;
	if (e)
		uar_cli_fail(x->cli, 0, "run %s could not be cancelled: %s", x->run_id,
			     error.text[0] ? error.text : uar_err_text(e));
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
	return e;
}

/* The next signal does what it always does. */
static void take_signal(struct exec *x)
{
	struct signalfd_siginfo taken;

	(void)!read(x->beside.fd[UAR_BESIDE_SIGNAL], &taken, sizeof taken);
	close(x->beside.fd[UAR_BESIDE_SIGNAL]);
	x->beside.fd[UAR_BESIDE_SIGNAL] = -1;
	pthread_sigmask(SIG_SETMASK, &x->before, NULL);
	x->interrupted = true;
}

static void begin_watch(struct exec *x)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &x->before);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	x->beside.fd[UAR_BESIDE_SIGNAL] = fd;
	if (fd < 0) /* then a signal leaves at once, which is better than not at all */
		pthread_sigmask(SIG_SETMASK, &x->before, NULL);
	x->cli->beside = &x->beside;
}

static void end_watch(struct exec *x)
{
	x->cli->beside = NULL;
	if (x->beside.fd[UAR_BESIDE_SIGNAL] >= 0)
		take_signal(x);
}

/* --- approvals -------------------------------------------------------------------- */

/* Somebody else may have been faster, which is fine. */
static void respond(struct exec *x, uar_str action_id, const char *decision)
{
	struct uar_action_answer r = { .action_id = action_id, .decision = decision };
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_action_respond(x->cli, &r, &a, &error);

	if (e)
		uar_cli_fail_with(x->cli, 0, e, &error);
	uar_remote_answer_fini(&a);
}

/* NULL: a person is asked. */
static const char *decided(struct exec *x)
{
	const struct uar_args *args = x->cli->args;

	if (args->option[UAR_OPT_YES])
		return "allow";
	if (!args->option[UAR_OPT_DENY] && x->asker.fd >= 0)
		return NULL;
	if (!args->option[UAR_OPT_DENY])
		fprintf(x->cli->err,
			"[denied] nobody to ask: there is no terminal. --yes allows everything, "
			"a policy in the agent's definition some of it\n");
	return "deny";
}

static void look_at_terminal(struct exec *x)
{
	x->beside.fd[UAR_BESIDE_TERMINAL] = x->asker.count ? x->asker.fd : -1;
}

static void question(struct exec *x, const struct uar_json *data)
{
	const char *decision = decided(x);

	uar_render_rest(&x->render);
	if (!decision && uar_asker_add(&x->asker, data) == UAR_OK)
		look_at_terminal(x);
	else
		respond(x, uar_json_text(data, "action_id"), decision ? decision : "deny");
}

/* Meanwhile only signals count. */
static void typed(struct exec *x)
{
	char id[UAR_LIMIT_ID_BYTES + 1];
	const char *decision;

	if (!x->asker.count)
		return; /* answered while a signal was served */
	decision = uar_asker_read(&x->asker);
	if (!decision)
		return;
	x->beside.fd[UAR_BESIDE_TERMINAL] = -1;
	do { /* a terminal that is gone answers them all */
		memcpy(id, x->asker.open[0].action_id, sizeof id);
		uar_asker_next(&x->asker);
		respond(x, uar_str_c(id), decision);
	} while (x->asker.fd < 0 && x->asker.count);
	look_at_terminal(x);
}

/* false: the run cannot be stopped, and there is nothing to wait for. */
static bool ready(void *ctx, enum uar_beside_fd which)
{
	struct exec *x = ctx;

	if (which == UAR_BESIDE_SIGNAL)
		take_signal(x);
	else
		typed(x);
	if (x->interrupted && !x->cancelled) {
		x->cancelled = true;
		x->gave_up = cancel(x) != UAR_OK;
	}
	return !x->gave_up;
}

/* --- the stream -------------------------------------------------------------------- */

static void write_line(FILE *out, uar_str data)
{
	for (size_t i = 0; i < data.n; i++)
		fputc(data.p[i] == '\n' || data.p[i] == '\r' ? ' ' : data.p[i], out);
	fputc('\n', out);
}

static void take_event(struct exec *x, const struct uar_json *event)
{
	const struct uar_json *data = uar_json_get(event, UAR_STR("data"));
	bool asks = uar_str_is(uar_json_text(data, "action_type"), "tool_permission") &&
		    uar_str_is(uar_json_text(data, "status"), "pending");
	unsigned lines = x->render.lines;

	if (uar_json_text(data, "decision").n) {
		uar_asker_resolved(&x->asker, data);
		look_at_terminal(x);
	}
	if (!x->cli->args->option[UAR_OPT_JSON])
		uar_render_event(&x->render, event);
	if (x->render.lines != lines)
		uar_asker_repeat(&x->asker);
	if (asks)
		question(x, data);
	else if (x->forms)
		uar_action_inline(x->cli, event); /* a signal in it is seen behind it */
}

static bool show(void *ctx, uar_str text)
{
	struct exec *x = ctx;
	const struct uar_json *event;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (x->cli->args->option[UAR_OPT_JSON])
		write_line(x->cli->out, text);
	if (uar_json_parse(text, NULL, &arena, &event, NULL) == UAR_OK)
		take_event(x, event);
	uar_arena_fini(&arena);
	return fflush(x->cli->out) == 0 && !ferror(x->cli->out);
}

/* Its runs end as LOST when it comes back, and the stream says so. */
static uar_err revive(void *ctx, struct uar_error *error)
{
	struct exec *x = ctx;
	struct uar_error why = { 0 };
	uar_err e;

	if (!x->passing)
		return UAR_OK;
	e = uar_exec_server(x->cli, &why);
	if (e && e != UAR_ECANCELED)
		uar_error_set(error, e, "the server of the run has died: %.400s",
			      uar_error_text(&why));
	return e;
}

static int follow(struct exec *x)
{
	struct uar_remote_follow f = { .run_id = uar_str_c(x->run_id),
				       .to_the_end = true,
				       .patient = true,
				       .show = show,
				       .revive = revive,
				       .ctx = x };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_follow(x->cli, &f, &error);

	uar_asker_drop(&x->asker, "no longer asked: the run has ended");
	uar_render_rest(&x->render);
	if (e == UAR_ECANCELED)
		return UAR_EXIT_FAILED; /* said already */
	if (e)
		return uar_cli_fail_as(
			x->cli, UAR_EXIT_FAILED, e,
			"%s; what became of the run, `uar show %s` says once a server "
			"is there",
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
		found = uar_str_is(uar_json_text(j, "agent_id"), name);
		*out_takes_dir =
			uar_json_bool(uar_json_get(j, UAR_STR("takes_working_dir")), false);
		if (!uar_str_starts(uar_json_text(j, "entry"), UAR_STR("backend.")))
			continue; /* not what one looks for here */
		uar_buf_printf(&names, "%s%.*s", names.n ? ", " : "",
			       UAR_FMT(uar_json_text(j, "agent_id")));
	}
	/* A directory of this machine means nothing to another one. */
	*out_takes_dir &= uar_remote_find(cli, &api, &unheard) == UAR_OK && api.local;
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

	for (int i = 0;
	     i < UAR_LIMIT_CLI_CREATE_TRIES && (e == UAR_ENET || e == UAR_EBUSY || e == UAR_EEOF);
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
	x->passing = uar_exec_server_passing(x->cli);
	begin_watch(x);
	status = follow(x);
	end_watch(x);
	return status;
}

static struct exec exec_of(struct uar_cli *cli)
{
	return (struct exec){ .cli = cli,
			      .asker = { .fd = -1 },
			      .render = { .text = cli->out,
					  .notes = cli->err,
					  .text_colour = uar_cli_colour(cli, cli->out_tty),
					  .notes_colour = uar_cli_colour(cli, cli->err_tty),
					  .clock = cli->clock } };
}

/* Tokens and cost, on a terminal. */
static void print_cost(struct uar_cli *cli, const char *run_id)
{
	struct uar_remote_answer a = { .root = NULL };
	bool colour = uar_cli_colour(cli, cli->err_tty);
	struct uar_error error = { 0 };
	double cost, tokens;

	if (cli->err_tty && !cli->args->option[UAR_OPT_JSON] &&
	    !uar_remote_record(cli, uar_str_c(run_id), &a, &error)) {
		cost = uar_json_double(uar_json_get(a.root, UAR_STR("cost")), 0);
		tokens = uar_json_double(uar_json_get(a.root, UAR_STR("tokens")), 0);
		fprintf(cli->err, "%s%.0f tokens", uar_text_on(UAR_STYLE_DIM, colour), tokens);
		if (cost > 0)
			fprintf(cli->err, ", $%.4f", cost);
		fprintf(cli->err, "%s\n", uar_text_off(UAR_STYLE_DIM, colour));
	}
	uar_remote_answer_fini(&a);
}

int uar_exec_attach(struct uar_cli *cli, const char *run_id)
{
	const struct uar_args *args = cli->args;
	struct exec x = exec_of(cli);
	int status;

	snprintf(x.run_id, sizeof x.run_id, "%s", run_id);
	x.beside = (struct uar_beside){ { -1, -1 }, ready, &x };
	x.forms = cli->in_tty && !args->option[UAR_OPT_JSON];
	if (!args->option[UAR_OPT_YES] && !args->option[UAR_OPT_DENY])
		uar_asker_open(&x.asker);
	x.render.alone = x.asker.fd < 0;
	x.passing = uar_exec_server_passing(cli);
	begin_watch(&x);
	status = follow(&x);
	end_watch(&x);
	uar_asker_fini(&x.asker);
	print_cost(cli, run_id);
	return status;
}

int uar_verb_exec(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	struct exec x = exec_of(cli);
	struct uar_buf message = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
	struct uar_error error = { 0 };
	double unused;
	uar_err e = uar_remote_timeout(cli, &unused, &error);
	int status;

	if (!e)
		e = uar_remote_message(cli, &message, &error);
	x.beside = (struct uar_beside){ { -1, -1 }, ready, &x };
	if (!e && args->option[UAR_OPT_YES] && args->option[UAR_OPT_DENY])
		e = uar_error_set(&error, UAR_EINVALID, "--yes and --deny contradict");
	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_USAGE, e, &error);
	} else {
		if (!args->option[UAR_OPT_YES] && !args->option[UAR_OPT_DENY])
			uar_asker_open(&x.asker);
		x.render.alone = x.asker.fd < 0;
		status = run(&x, uar_buf_str(&message));
		uar_asker_fini(&x.asker);
	}
	uar_buf_fini(&message);
	return status;
}
