/* exec_ask.c - lines of the terminal, which it edits itself: one read is one line. */
#include "app/exec_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include "app/limits.h"
#include "app/text.h"

enum { TITLE_SHOWN = 400, INPUT_SHOWN = 2000, LINE_BYTES = 256 };

/* Opened anew, because whoever shares it with us expects it to block. */
static int open_terminal(const char *path)
{
	return open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* A service manager or a container may give a terminal without making it the one that
 * controls us. */
static void open_standard(struct uar_asker *a)
{
	int out = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	a->out = out >= 0 ? fdopen(out, "w") : NULL;
	if (!a->out && out >= 0)
		close(out);
	if (a->out)
		a->fd = open_terminal("/proc/self/fd/0");
}

void uar_asker_open(struct uar_asker *a)
{
	a->fd = -1;
	a->out = fopen("/dev/tty", "we");
	if (a->out)
		a->fd = open_terminal("/dev/tty");
	else if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		open_standard(a);
}

static void fini_question(struct uar_question *q)
{
	uar_buf_fini(&q->text);
	uar_buf_fini(&q->whole);
}

void uar_asker_fini(struct uar_asker *a)
{
	while (a->count)
		fini_question(&a->open[--a->count]);
	if (a->fd >= 0)
		close(a->fd);
	if (a->out)
		fclose(a->out);
	a->fd = -1;
	a->out = NULL;
}

/* --- asking -------------------------------------------------------------------- */

static void prompt(struct uar_asker *a)
{
	fprintf(a->out, "allow it? [y]es, [n]o%s, [s]how: ",
		a->open[0].session ? ", [a]lways in this session" : "");
	fflush(a->out);
}

static void ask(struct uar_asker *a)
{
	tcflush(a->fd, TCIFLUSH); /* what was typed before is no answer */
	fprintf(a->out, "\n%.*s\n", UAR_FMT(uar_buf_str(&a->open[0].text)));
	prompt(a);
}

/* What is cut says so, and where the rest can be read. */
static void put_where_whole(struct uar_buf *out, const struct uar_json *data,
			    const struct uar_json *scope)
{
	uar_str id = uar_json_text(data, "action_id"), number;

	uar_str_cut(id, '.', &number);
	uar_buf_printf(out, "\n  the beginning of %lld bytes; whole: uar approve ",
		       (long long)uar_json_int(uar_json_get(scope, UAR_STR("input_bytes")), 0));
	uar_text_brief(out, uar_json_text(data, "run_id"), TITLE_SHOWN);
	uar_buf_add_char(out, ' ');
	uar_text_brief(out, number, TITLE_SHOWN);
	uar_buf_add_str(out, UAR_STR(" --show"));
}

/* Title and exact input, as far as a terminal can bear them. */
static uar_err put_text(const struct uar_json *data, struct uar_buf *out)
{
	const struct uar_json *scope = uar_json_get(data, UAR_STR("scope"));
	const struct uar_json *input = uar_json_get(scope, UAR_STR("input"));
	struct uar_buf whole = uar_buf_make(UAR_LIMIT_CLI_LINE);

	if (input)
		uar_json_write(&whole, input);
	else
		uar_buf_add_str(&whole, uar_json_text(scope, "input_preview"));
	uar_text_brief(out, uar_json_text(data, "title"), TITLE_SHOWN);
	uar_buf_add_str(out, UAR_STR("\n  "));
	uar_text_brief(out, uar_buf_str(&whole), INPUT_SHOWN);
	if (!input || whole.n > INPUT_SHOWN)
		put_where_whole(out, data, scope);
	uar_buf_fini(&whole);
	return out->err;
}

/* All of the input, for [s]how. */
static uar_err put_whole(const struct uar_json *data, struct uar_buf *out)
{
	const struct uar_json *scope = uar_json_get(data, UAR_STR("scope"));
	const struct uar_json *input = uar_json_get(scope, UAR_STR("input"));
	struct uar_buf json = uar_buf_make(UAR_LIMIT_CLI_ANSWER);

	if (input)
		uar_json_write(&json, input);
	else
		uar_buf_add_str(&json, uar_json_text(scope, "input_preview"));
	uar_text_clean(out, uar_buf_str(&json), true);
	if (!input)
		put_where_whole(out, data, scope);
	uar_buf_fini(&json);
	return out->err;
}

static bool offers_session(const struct uar_json *data)
{
	const struct uar_json *all = uar_json_get(data, UAR_STR("decisions"));

	for (const struct uar_json *d = all ? all->first : NULL; d; d = d->next)
		if (uar_str_is(uar_json_str(d, UAR_STR("")), "allow_for_session"))
			return true;
	return false;
}

uar_err uar_asker_add(struct uar_asker *a, const struct uar_json *data)
{
	struct uar_question *q = &a->open[a->count];
	uar_err e;

	if (a->count == ARRAY_LEN(a->open))
		return UAR_ETOOBIG;
	q->text = uar_buf_make(UAR_LIMIT_CLI_LINE);
	q->whole = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	e = put_text(data, &q->text);
	if (!e)
		e = put_whole(data, &q->whole);
	if (e) {
		fini_question(q);
		return e;
	}
	snprintf(q->action_id, sizeof q->action_id, "%.*s",
		 UAR_FMT(uar_json_text(data, "action_id")));
	q->session = offers_session(data);
	if (++a->count == 1)
		ask(a);
	return UAR_OK;
}

void uar_asker_repeat(struct uar_asker *a)
{
	if (a->count && a->fd >= 0)
		prompt(a);
}

/* --- the end of a question --------------------------------------------------------- */

static void forget(struct uar_asker *a, size_t i)
{
	fini_question(&a->open[i]);
	memmove(&a->open[i], &a->open[i + 1], (--a->count - i) * sizeof a->open[0]);
}

void uar_asker_next(struct uar_asker *a)
{
	forget(a, 0);
	if (a->count && a->fd >= 0)
		ask(a);
}

void uar_asker_resolved(struct uar_asker *a, const struct uar_json *data)
{
	uar_str id = uar_json_text(data, "action_id"), source = uar_json_text(data, "source");
	size_t i = 0;

	while (i < a->count && !uar_str_is(id, a->open[i].action_id))
		i++;
	if (i == a->count)
		return; /* answered here */
	if (i > 0) {
		forget(a, i);
		return;
	}
	fprintf(a->out, "\n[%s]\n",
		uar_str_is(source, "timeout")  ? "nobody answered in time"
		: uar_str_is(source, "cancel") ? "no longer asked"
					       : "answered elsewhere");
	fflush(a->out);
	uar_asker_next(a);
}

void uar_asker_drop(struct uar_asker *a, const char *why)
{
	if (a->count) {
		fprintf(a->out, "\n[%s]\n", why);
		fflush(a->out);
	}
	while (a->count)
		forget(a, a->count - 1);
}

/* --- reading ----------------------------------------------------------------------- */

static bool is_show(uar_str line)
{
	return uar_str_eq_nocase(line, UAR_STR("s")) || uar_str_eq_nocase(line, UAR_STR("show"));
}

static const char *decision_of(uar_str line, bool session)
{
	static const struct {
		const char *word, *decision;
	} words[] = {
		{ "y", "allow" }, { "yes", "allow" },		{ "n", "deny" },
		{ "no", "deny" }, { "a", "allow_for_session" }, { "always", "allow_for_session" }
	};

	for (size_t i = 0; i < ARRAY_LEN(words) - (session ? 0 : 2); i++)
		if (uar_str_eq_nocase(line, uar_str_c(words[i].word)))
			return words[i].decision;
	return NULL;
}

const char *uar_asker_read(struct uar_asker *a)
{
	const char *decision = NULL;
	char line[LINE_BYTES];
	uar_str word = UAR_STR("");
	ssize_t n = read(a->fd, line, sizeof line);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (n < 0) { /* the terminal is gone, and whoever sat there */
		close(a->fd);
		a->fd = -1;
	}
	if (n <= 0)
		return "deny";
	if (line[n - 1] == '\n')
		word = uar_str_trim(uar_str_n(line, (size_t)n - 1));
	decision = decision_of(word, a->open[0].session);
	tcflush(a->fd, TCIFLUSH); /* the rest answers no other question */
	if (is_show(word))
		fprintf(a->out, "%.*s\n", UAR_FMT(uar_buf_str(&a->open[0].whole)));
	else if (!decision)
		fputs(a->open[0].session ? "please answer y, n, a or s\n"
					 : "please answer y, n or s\n",
		      a->out);
	if (!decision)
		prompt(a);
	return decision;
}
