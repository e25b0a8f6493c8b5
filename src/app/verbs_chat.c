/* verbs_chat.c - `uar chat`: one conversation with an agent, a line after the other. */
#include <stdlib.h>

#include "app/exec_run.h"
#include "app/exec_server.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "base/rand.h"

struct chat {
	struct uar_cli *cli;
	const char *conversation;
	char made[UAR_UUID_TEXT + 1]; /* its id when none was given */
	char *line;		      /* getline's */
	size_t room;
	bool colour;
};

static uar_err put_message(const struct chat *c, uar_str message, struct uar_buf *out,
			   struct uar_error *error)
{
	struct uar_jw w = uar_jw_begin(out);
	double timeout = 0;
	uar_err e = uar_remote_timeout(c->cli, &timeout, error);

	if (e)
		return e;
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "agent_id", c->cli->args->word[0]);
	uar_jw_obj(&w, "inputs");
	uar_jw_str(&w, "message", message);
	uar_jw_close(&w);
	uar_jw_cstr(&w, "conversation_id", c->conversation);
	uar_remote_put_key(c->cli, &w);
	if (timeout > 0)
		uar_jw_double(&w, "timeout", timeout);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static int say(struct chat *c, uar_str message)
{
	struct uar_buf body = uar_buf_make(2 * UAR_LIMIT_CLI_MESSAGE);
	char run_id[UAR_LIMIT_ID_BYTES + 1] = "";
	struct uar_error error = { 0 };
	uar_err e = put_message(c, message, &body, &error);

	if (!e)
		e = uar_exec_server(c->cli, &error);
	if (!e)
		e = uar_remote_create(c->cli, "/api/runs", uar_buf_str(&body), run_id, &error);
	uar_buf_fini(&body);
	if (e)
		return uar_cli_fail_with(c->cli, UAR_EXIT_FAILED, e, &error);
	return uar_exec_attach(c->cli, run_id);
}

/* The next line of a person; false: there is none. */
static bool read_line(struct chat *c, uar_str *out)
{
	ssize_t n;

	do {
		if (c->cli->in_tty)
			fprintf(c->cli->err, "%s>%s ", uar_text_on(UAR_STYLE_BOLD, c->colour),
				uar_text_off(UAR_STYLE_BOLD, c->colour));
		fflush(c->cli->err);
		n = getline(&c->line, &c->room, c->cli->in);
		if (n < 0)
			return false;
		if (n && c->line[n - 1] == '\n')
			n--;
		*out = uar_str_trim(uar_str_n(c->line, (size_t)n));
	} while (!out->n);
	return !uar_str_is(*out, "/quit") && !uar_str_is(*out, "/exit");
}

static int talk(struct chat *c, uar_str first)
{
	int status = first.n ? say(c, first) : UAR_EXIT_OK;
	uar_str line;

	while (read_line(c, &line)) {
		status = say(c, line);
		if (status == UAR_EXIT_FAILED && !c->cli->in_tty)
			break;
	}
	if (c->cli->err_tty)
		fprintf(c->cli->err, "%suar chat %s --conversation %s goes on with it%s\n",
			uar_text_on(UAR_STYLE_DIM, c->colour), c->cli->args->word[0],
			c->conversation, uar_text_off(UAR_STYLE_DIM, c->colour));
	return status;
}

int uar_verb_chat(struct uar_cli *cli)
{
	struct chat c = { .cli = cli, .colour = uar_cli_colour(cli, cli->err_tty) };
	struct uar_buf first = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
	struct uar_uuid ids;
	int status;

	uar_uuid_init(&ids, cli->clock, &uar_rand_system);
	uar_uuid_next(&ids, c.made);
	c.conversation = cli->args->option[UAR_OPT_CONVERSATION];
	if (!c.conversation)
		c.conversation = c.made;
	for (size_t i = 1; i < cli->args->words; i++)
		uar_buf_printf(&first, "%s%s", i > 1 ? " " : "", cli->args->word[i]);
	status = first.err ? uar_cli_fail(cli, UAR_EXIT_USAGE, "the message is too large")
			   : talk(&c, uar_buf_str(&first));
	free(c.line); /* getline's */
	uar_buf_fini(&first);
	return status;
}
