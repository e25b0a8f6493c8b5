/* form.c - a form in a terminal. What is asked comes from a model: it is shown as safe text. */
#include "app/form.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "app/limits.h"
#include "app/text.h"
#include "core/redact.h"
#include "json/schema.h"

enum { SHOWN = 400, LINE = UAR_LIMIT_CLI_FIELD };

static const struct uar_json *get(const struct uar_json *j, const char *key)
{
	return j && j->kind == UAR_JSON_OBJECT ? uar_json_get(j, uar_str_c(key)) : NULL;
}

static uar_str text(const struct uar_json *j, const char *key)
{
	return uar_json_str(get(j, key), UAR_STR(""));
}

/* --- from what is typed to JSON -------------------------------------------------------------- */

static uar_err put_json(struct uar_jw *w, uar_str key, uar_str typed, int kind,
			struct uar_error *error)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_err e;
	bool fits;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(typed, NULL, &arena, &j, NULL);
	fits = !e && (kind < 0 || (int)j->kind == kind ||
		      (kind == UAR_JSON_DOUBLE && j->kind == UAR_JSON_INT));
	if (fits)
		uar_jw_put_raw(w, key, typed);
	uar_arena_fini(&arena);
	if (fits)
		return UAR_OK;
	return uar_error_set(error, UAR_EINVALID, "%s",
			     kind == UAR_JSON_INT      ? "a whole number"
			     : kind == UAR_JSON_DOUBLE ? "a number"
						       : "JSON");
}

static uar_err put_bool(struct uar_jw *w, uar_str key, uar_str typed, struct uar_error *error)
{
	static const char *const yes[] = { "y", "yes", "true", "1", "on" };
	static const char *const no[] = { "n", "no", "false", "0", "off" };

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (uar_str_eq_nocase(typed, uar_str_c(yes[i]))) {
			uar_jw_put_bool(w, key, true);
			return UAR_OK;
		}
		if (uar_str_eq_nocase(typed, uar_str_c(no[i]))) {
			uar_jw_put_bool(w, key, false);
			return UAR_OK;
		}
	}
	return uar_error_set(error, UAR_EINVALID, "y or n");
}

static void put_choice_value(struct uar_jw *w, uar_str key, const struct uar_json *at)
{
	if (at->kind == UAR_JSON_STRING)
		uar_jw_put_str(w, key, at->text);
	else if (at->kind == UAR_JSON_BOOL)
		uar_jw_put_bool(w, key, at->b);
	else if (at->kind == UAR_JSON_NULL)
		uar_jw_put_null(w, key);
	else
		uar_jw_put_raw(w, key, at->text);
}

/* By its number in the list, or as it is written there. */
static uar_err put_choice(struct uar_jw *w, uar_str key, const struct uar_json *list, uar_str typed,
			  struct uar_error *error)
{
	const struct uar_json *found = NULL;
	uint64_t number = 0;

	for (const struct uar_json *at = list->first; at && !found; at = at->next)
		if (at->text.n && uar_str_eq(at->text, typed))
			found = at;
	if (!found && !uar_str_u64(typed, &number) && number >= 1 && number <= list->count)
		found = uar_json_at(list, (size_t)number - 1);
	if (!found)
		return uar_error_set(error, UAR_EINVALID, "one of the list, or its number");
	put_choice_value(w, key, found);
	return UAR_OK;
}

static uar_err put_list(struct uar_jw *w, uar_str key, const struct uar_json *items, uar_str typed,
			struct uar_error *error)
{
	uar_err e = UAR_OK;

	uar_jw_put_arr(w, key);
	while (typed.n && !e) {
		uar_str rest, item = uar_str_trim(uar_str_cut(typed, ',', &rest));

		if (item.n)
			e = uar_form_value(w, UAR_STR_NONE, items, item, error);
		typed = rest;
	}
	uar_jw_close(w);
	return e;
}

uar_err uar_form_value(struct uar_jw *w, uar_str key, const struct uar_json *schema, uar_str typed,
		       struct uar_error *error)
{
	const struct uar_json *choice = get(schema, "enum");
	uar_str type = text(schema, "type");

	if (choice && choice->kind == UAR_JSON_ARRAY)
		return put_choice(w, key, choice, typed, error);
	if (uar_str_is(type, "integer"))
		return put_json(w, key, typed, UAR_JSON_INT, error);
	if (uar_str_is(type, "number"))
		return put_json(w, key, typed, UAR_JSON_DOUBLE, error);
	if (uar_str_is(type, "boolean"))
		return put_bool(w, key, typed, error);
	if (uar_str_is(type, "array") && !uar_str_starts(typed, UAR_STR("[")))
		return put_list(w, key, get(schema, "items"), typed, error);
	if (uar_str_is(type, "array") || uar_str_is(type, "object"))
		return put_json(w, key, typed, -1, error);
	if (schema || put_json(w, key, typed, -1, error))
		uar_jw_put_str(w, key, typed);
	return UAR_OK;
}

/* --- asking --------------------------------------------------------------------------------- */

/* Waits for a line of the terminal. False: a signal is there, which waits until its mask is
 * the old one again. */
static bool wait_line(int fd, int signals)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
			       { .fd = signals, .events = POLLIN } };

	while (poll(p, 2, -1) < 0 || !(p[0].revents | p[1].revents))
		; /* interrupted, or stopped and continued */
	return !p[1].revents;
}

static bool read_line(FILE *in, char *line, size_t size)
{
	if (!fgets(line, (int)size, in))
		return false;
	if (!strchr(line, '\n')) /* the rest answers no other question */
		for (int c = fgetc(in); c != EOF && c != '\n';)
			c = fgetc(in);
	line[strcspn(line, "\r\n")] = 0;
	return true;
}

/* Signals wait while a terminal is asked, so that its echo is back before one of them acts. */
bool uar_form_line(const struct uar_form_io *io, bool secret, char *line, size_t size)
{
	struct signalfd_siginfo came = { 0 };
	int fd = fileno(io->in), signals;
	struct termios before, quiet;
	sigset_t set, mask;
	bool got;

	if (fd < 0 || tcgetattr(fd, &before))
		return read_line(io->in, line, size);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	pthread_sigmask(SIG_BLOCK, &set, &mask);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	quiet = before;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	if (secret)
		tcsetattr(fd, TCSANOW, &quiet);
	got = signals >= 0 && wait_line(fd, signals) && read_line(io->in, line, size);
	if (secret) {
		tcsetattr(fd, TCSANOW, &before);
		fputc('\n', io->out);
		fflush(io->out);
	}
	if (signals >= 0 && read(signals, &came, sizeof came) != sizeof came)
		came.ssi_signo = 0;
	if (signals >= 0)
		close(signals);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (came.ssi_signo) /* taken above: it acts now, and in this thread */
		raise((int)came.ssi_signo);
	return got;
}

static void put_brief(FILE *out, uar_str s)
{
	struct uar_buf b = uar_buf_make(4 * SHOWN + 64);

	uar_text_brief(&b, s, SHOWN);
	fprintf(out, "%.*s", UAR_FMT(uar_buf_str(&b)));
	uar_buf_fini(&b);
}

static bool is_required(const struct uar_json *schema, uar_str key)
{
	const struct uar_json *list = get(schema, "required");

	for (const struct uar_json *at = list && list->kind == UAR_JSON_ARRAY ? list->first : NULL;
	     at; at = at->next)
		if (uar_str_eq(uar_json_str(at, UAR_STR("")), key))
			return true;
	return false;
}

static void put_field(const struct uar_form_io *io, const struct uar_json *field, bool required)
{
	const struct uar_json *choice = get(field, "enum"), *usual = get(field, "default");
	uar_str title = text(field, "title"), about = text(field, "description");
	size_t n = 0;

	put_brief(io->out, title.n ? title : field->key);
	if (about.n) {
		fputs(" - ", io->out);
		put_brief(io->out, about);
	}
	for (const struct uar_json *at = choice && choice->kind == UAR_JSON_ARRAY ? choice->first
										  : NULL;
	     at; at = at->next) {
		fprintf(io->out, "\n  %zu ", ++n);
		put_brief(io->out, at->text);
	}
	fputs(n ? "\n" : " ", io->out);
	if (usual && usual->text.n) {
		fputc('[', io->out);
		put_brief(io->out, usual->text);
		fputc(']', io->out);
	} else if (!required) {
		fputs("(may be empty)", io->out);
	}
	fputs(": ", io->out);
	fflush(io->out);
}

static bool is_secret(const struct uar_json *field)
{
	return uar_json_bool(get(field, "writeOnly"), false) ||
	       uar_json_bool(get(field, "x-sensitive"), false) ||
	       uar_str_is(text(field, "format"), "password") || uar_is_secret_name(field->key);
}

/* What the field's own schema says. One that cannot be read alone ("$ref") is left to the server.
 */
static uar_err check_field(const struct uar_json *field, uar_str value, struct uar_error *error)
{
	struct uar_schema_options options = { .check_formats = true };
	const struct uar_json *j = NULL;
	struct uar_schema *schema = NULL;
	struct uar_error unread = { 0 };
	struct uar_arena arena;
	uar_err e = UAR_OK;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(value, NULL, &arena, &j, NULL) &&
	    !uar_schema_create(field, &options, &schema, &unread))
		e = uar_schema_validate(schema, j, &arena, error);
	uar_schema_destroy(schema);
	uar_arena_fini(&arena);
	return e;
}

/* The value as JSON. UAR_EINVALID or UAR_ESCHEMA, and why. */
static uar_err read_value(const struct uar_json *field, uar_str typed, struct uar_buf *out,
			  struct uar_error *error)
{
	struct uar_jw w = uar_jw_begin(out);
	uar_err e = uar_form_value(&w, UAR_STR_NONE, field, typed, error);

	if (!e)
		e = uar_jw_end(&w);
	return e ? e : check_field(field, uar_buf_str(out), error);
}

/* A value that the schema refuses is asked for again. */
static uar_err ask_field(const struct uar_form_io *io, const struct uar_json *schema,
			 const struct uar_json *field, struct uar_jw *w)
{
	bool required = is_required(schema, field->key);
	const struct uar_json *usual = get(field, "default");
	char line[LINE];

	for (;;) {
		struct uar_buf value = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
		struct uar_error error = { 0 };
		uar_err e = UAR_EINVALID;
		uar_str typed;

		put_field(io, field, required);
		if (!uar_form_line(io, is_secret(field), line, sizeof line))
			return UAR_ECANCELED;
		typed = uar_str_trim(uar_str_c(line));
		if (!typed.n && usual) {
			put_choice_value(w, field->key, usual);
			return UAR_OK;
		}
		if (!typed.n && !required)
			return UAR_OK;
		if (typed.n)
			e = read_value(field, typed, &value, &error);
		if (!e)
			uar_jw_put_raw(w, field->key, uar_buf_str(&value));
		else
			fprintf(io->out, "please: %s\n",
				typed.n ? uar_error_text(&error) : "a value");
		uar_buf_fini(&value);
		if (!e)
			return UAR_OK;
	}
}

uar_err uar_form_fill(const struct uar_form_io *io, const struct uar_json *schema,
		      struct uar_buf *out)
{
	const struct uar_json *fields = get(schema, "properties");
	struct uar_jw w = uar_jw_begin(out);
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	for (const struct uar_json *at = fields && fields->kind == UAR_JSON_OBJECT ? fields->first
										   : NULL;
	     at && !e; at = at->next)
		if (at->kind == UAR_JSON_OBJECT)
			e = ask_field(io, schema, at, &w);
	uar_jw_close(&w);
	return e ? e : uar_jw_end(&w);
}
