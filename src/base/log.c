/* log.c - one write(2) per line, so that lines of several threads stay whole.
 *
 * The loop's thread writes here, too. Whoever reads the log may stand still for as long as
 * it likes (a collector that hangs, Ctrl-S at a terminal): that must not stop a run. */
#include "base/log.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe takes so much whole or not at all. */
_Static_assert(UAR_LIMIT_LOG_LINE <= PIPE_BUF, "a line of the log is one write to a pipe");

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

/* --- where it goes ------------------------------------------------------------------ */

/* O_NONBLOCK belongs to what was opened, and a shell or a parent has the same pipe or terminal
 * open: it is opened once more. Where that is not allowed it is asked before each line: that
 * holds for a pipe unless others write to it at the same moment, and for a terminal unless it has
 * room for a part of the line only. A file does not keep us waiting,
 * and opened again it would have another position. */
void uar_log_out_init(struct uar_log_out *o, int fd)
{
	char path[40];
	struct stat st;
	int own = -1;

	*o = (struct uar_log_out){ .fd = fd };
	pthread_mutex_init(&o->lock, NULL);
	if (fstat(fd, &st))
		return;
	o->socket = S_ISSOCK(st.st_mode);
	o->asks = S_ISFIFO(st.st_mode) || isatty(fd);
	if (o->asks) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	if (own < 0)
		return;
	o->fd = own;
	o->owned = true;
	o->asks = false;
}

void uar_log_out_fini(struct uar_log_out *o)
{
	if (o->owned)
		close(o->fd);
	for (size_t i = 0; o->kept && i < UAR_LIMIT_LOG_KEPT; i++)
		uar_free(o->kept->line[i]);
	uar_free(o->kept);
	pthread_mutex_destroy(&o->lock);
}

void uar_log_out_keep(struct uar_log_out *o)
{
	o->kept = uar_zalloc(sizeof *o->kept);
}

uint64_t uar_log_out_next(struct uar_log_out *o, uint64_t after, char out[UAR_LIMIT_LOG_LINE])
{
	struct uar_log_ring *k;
	uint64_t found = 0;

	pthread_mutex_lock(&o->lock);
	k = o->kept;
	if (k && after > k->last)
		after = 0;
	if (k && after + UAR_LIMIT_LOG_KEPT < k->last)
		after = k->last - UAR_LIMIT_LOG_KEPT;
	for (uint64_t n = after + 1; k && n <= k->last && !found; n++)
		if (k->line[n % UAR_LIMIT_LOG_KEPT]) {
			snprintf(out, UAR_LIMIT_LOG_LINE, "%s", k->line[n % UAR_LIMIT_LOG_KEPT]);
			found = n;
		}
	pthread_mutex_unlock(&o->lock);
	return found;
}

static ssize_t write_now(const struct uar_log_out *o, const char *p, size_t n)
{
	struct pollfd fd = { .fd = o->fd, .events = POLLOUT };

	if (o->socket)
		return send(o->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (o->asks && poll(&fd, 1, 0) != 1)
		return -1;
	return write(o->fd, p, n);
}

/* A terminal, a socket or a full disk may take a part: what follows starts a line of its own. */
static bool put_out(struct uar_log_out *o, const struct line *l)
{
	ssize_t n;

	if (o->torn && write_now(o, "\n", 1) != 1)
		return false;
	n = write_now(o, l->p, l->n);
	o->torn = n > 0 && (size_t)n < l->n;
	return n == (ssize_t)l->n;
}

/* Without memory the line is not kept; its number is used up. */
static void keep_line(struct uar_log_out *o, const struct line *l)
{
	char **slot;

	if (!o->kept)
		return;
	slot = &o->kept->line[++o->kept->last % UAR_LIMIT_LOG_KEPT];
	uar_free(*slot);
	*slot = uar_alloc(l->n);
	if (!*slot)
		return;
	memcpy(*slot, l->p, l->n - 1);
	(*slot)[l->n - 1] = 0;
}

/* --- lines --------------------------------------------------------------------------- */

static void form(struct line *l, const struct uar_log *log, enum uar_log_level level,
		 const char *what, const struct uar_log_field *fields)
{
	char at[UAR_TIME_TEXT + 1];

	l->n = 0;
	uar_time_format(uar_clock_wall(log->clock), at);
	put_c(l, log->json ? "{\"time\":\"" : "");
	put_c(l, at);
	put_c(l, log->json ? "\",\"level\":\"" : " ");
	put_c(l, level_names[level]);
	put_c(l, log->json ? "\",\"what\":\"" : " ");
	put_c(l, what);
	put_c(l, log->json ? "\"" : "");
	if (log->json)
		put_json(l, fields);
	else
		put_text(l, fields);
	l->p[l->n++] = '\n';
}

static bool tell_lost(const struct uar_log *log)
{
	struct line l;
	char count[24];

	snprintf(count, sizeof count, "%llu", (unsigned long long)log->out->lost);
	form(&l, log, UAR_LOG_WARN, "log.lost",
	     (struct uar_log_field[]){
		     { "lines", uar_str_c(count) },
		     { "text", UAR_STR("nobody took them: they could not be written at once") },
		     { NULL, { NULL, 0 } } });
	if (!put_out(log->out, &l))
		return false;
	log->out->lost = 0;
	return true;
}

void uar_log_write(const struct uar_log *log, enum uar_log_level level, const char *what,
		   const struct uar_log_field *fields)
{
	struct line l; /* not cleared: most lines are not written */

	if (!log || level < log->level)
		return;
	form(&l, log, level, what, fields);
	pthread_mutex_lock(&log->out->lock);
	keep_line(log->out, &l);
	if ((log->out->lost && !tell_lost(log)) || !put_out(log->out, &l))
		log->out->lost++;
	pthread_mutex_unlock(&log->out->lock);
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
