/* log.c - one write(2) per line, so that lines of several threads stay whole. */
#include "base/log.h"

#include <unistd.h>

static const char *const level_names[] = { "debug", "info", "warn", "error", "off" };

struct line {
	char p[UAR_LIMIT_LOG_LINE];
	size_t n;
};

static void put(struct line *l, const char *p, size_t n)
{
	size_t room = sizeof l->p - 1 - l->n;

	if (n > room)
		n = room;
	memcpy(l->p + l->n, p, n);
	l->n += n;
}

static void put_c(struct line *l, const char *c)
{
	put(l, c, strlen(c));
}

/* Quoted and escaped in both forms: a value can never start a second line, and a log
 * is text whatever it is given. */
static void put_quoted(struct line *l, uar_str s)
{
	static const char hex[] = "0123456789abcdef";

	put_c(l, "\"");
	for (size_t i = 0, n; i < s.n && l->n < sizeof l->p - 16; i += n) {
		unsigned char c = (unsigned char)s.p[i];
		uint32_t cp;

		n = uar_utf8_decode(uar_str_from(s, i), &cp);
		if (n == 0) {
			put_c(l, "\xef\xbf\xbd"); /* U+FFFD */
			n = 1;
		} else if (c == '"' || c == '\\') {
			put(l, "\\", 1);
			put(l, s.p + i, 1);
		} else if (c < 0x20 || c == 0x7f) {
			char u[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

			put(l, u, sizeof u);
		} else {
			put(l, s.p + i, n);
		}
	}
	put_c(l, "\"");
}

static bool needs_quotes(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= 0x20 || s.p[i] == '"' || s.p[i] == '=' ||
		    s.p[i] == '\\' || s.p[i] == 0x7f)
			return true;
	return !uar_utf8_valid(s);
}

static void put_text(struct line *l, const struct uar_log_field *f)
{
	for (; f->key; f++) {
		if (!f->value.n)
			continue;
		put_c(l, " ");
		put_c(l, f->key);
		put_c(l, "=");
		if (needs_quotes(f->value))
			put_quoted(l, f->value);
		else
			put(l, f->value.p, f->value.n);
	}
}

static void put_json(struct line *l, const struct uar_log_field *f)
{
	for (; f->key; f++) {
		if (!f->value.n)
			continue;
		put_c(l, ",\"");
		put_c(l, f->key);
		put_c(l, "\":");
		put_quoted(l, f->value);
	}
	put_c(l, "}");
}

void uar_log_write(const struct uar_log *log, enum uar_log_level level, const char *what,
		   const struct uar_log_field *fields)
{
	struct line l; /* not cleared: most lines are not written */
	char at[UAR_TIME_TEXT + 1];
	ssize_t ignored;

	if (!log || level < log->level)
		return;
	l.n = 0;
	uar_time_format(uar_clock_wall(log->clock), at);
	put_c(&l, log->json ? "{\"time\":\"" : "");
	put_c(&l, at);
	put_c(&l, log->json ? "\",\"level\":\"" : " ");
	put_c(&l, level_names[level]);
	put_c(&l, log->json ? "\",\"what\":\"" : " ");
	put_c(&l, what);
	put_c(&l, log->json ? "\"" : "");
	if (log->json)
		put_json(&l, fields);
	else
		put_text(&l, fields);
	l.p[l.n++] = '\n';
	ignored = write(log->fd, l.p, l.n); /* a log that cannot be written must not stop a run */
	(void)ignored;
}

uar_err uar_log_level_parse(uar_str s, enum uar_log_level *out)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
		if (uar_str_is(s, level_names[i])) {
			*out = (enum uar_log_level)i;
			return UAR_OK;
		}
	return UAR_EINVALID;
}
