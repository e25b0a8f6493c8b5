/* fake_cli.c - an agent program that does what it is told, for the tests.
 *
 * FAKE_DO holds one command a line, run in order; the end of it is exit 0. It
 * replays recorded streams byte by byte and misbehaves on demand. FAKE_RECORD
 * names a directory that gets argv, env and cwd of every start. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void put(const char *p, size_t n)
{
	while (n) {
		ssize_t k = write(1, p, n);

		if (k < 0 && errno != EINTR)
			_exit(101);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
	}
}

static char *slurp(const char *path, size_t *out_n)
{
	FILE *f = fopen(path, "rb");
	char *p;
	struct stat st;

	if (!f || fstat(fileno(f), &st)) {
		fprintf(stderr, "fake: %s: %s\n", path, strerror(errno));
		exit(98);
	}
	p = malloc((size_t)st.st_size + 1);
	*out_n = fread(p, 1, (size_t)st.st_size, f);
	p[*out_n] = 0;
	fclose(f);
	return p;
}

static void record_list(const char *dir, const char *name, char **list)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "a");
	for (; f && *list; list++)
		fprintf(f, "%s\n", *list);
	if (f)
		fclose(f);
}

static void record(char **argv)
{
	const char *dir = getenv("FAKE_RECORD");
	char cwd[4096];
	char *one[2] = { cwd, NULL };

	if (!dir || !getcwd(cwd, sizeof cwd))
		return;
	record_list(dir, "cwd", one);
	record_list(dir, "env", environ);
	record_list(dir, "argv", argv);
}

static void hang(void)
{
	for (;;)
		pause();
}

/* --- stdin --- */

static int read_line(char **line, size_t *cap)
{
	ssize_t n = getline(line, cap, stdin);

	if (n < 0)
		return 0;
	if (n && (*line)[n - 1] == '\n')
		(*line)[n - 1] = 0;
	return 1;
}

static void expect(const char *what)
{
	char *line = NULL;
	size_t cap = 0;

	if (!read_line(&line, &cap) || !strstr(line, what)) {
		fprintf(stderr, "fake: wanted %s, got %s\n", what, line ? line : "(end)");
		exit(99);
	}
	free(line);
}

static void read_all(void)
{
	char buf[65536];

	while (read(0, buf, sizeof buf) > 0)
		;
}

/* Prints how many bytes of prompt came, as a text event. */
static void count_input(void)
{
	char buf[65536], line[200];
	size_t total = 0;
	ssize_t n;

	while ((n = read(0, buf, sizeof buf)) > 0)
		total += (size_t)n;
	snprintf(
		line, sizeof line,
		"{\"type\":\"assistant\",\"message\":{\"id\":\"i\",\"content\":[{\"type\":\"text\","
		"\"text\":\"%zu\"}]}}\n",
		total);
	put(line, strlen(line));
}

/* --- recorded streams --- */

static void cat(const char *path, size_t chunk, size_t limit)
{
	size_t n, at = 0;
	char *p = slurp(path, &n);

	if (limit < n)
		n = limit;
	while (at < n) {
		size_t k = chunk && chunk < n - at ? chunk : n - at;

		put(p + at, k);
		at += k;
	}
	free(p);
}

/* The word after "method" or "type", for comparing what was sent with what was recorded. */
static void verb(const char *line, char out[64])
{
	const char *at = strstr(line, "\"method\":\"");
	size_t n = 0;

	at = at ? at + 10 : strstr(line, "\"type\":\"") ? strstr(line, "\"type\":\"") + 8 : "";
	while (at[n] && at[n] != '"' && n < 63) {
		out[n] = at[n];
		n++;
	}
	out[n] = 0;
}

/* Lines {"dir":"in|out","msg":...}: waits for what came in, prints what went out. */
static void dialogue(const char *path)
{
	size_t n;
	char *text = slurp(path, &n), *at = text, *line = NULL;
	size_t cap = 0;

	while (*at) {
		char *end = strchr(at, '\n');
		char want[64], got[64];

		if (end)
			*end = 0;
		if (strncmp(at, "{\"dir\":\"in\",", 12) == 0) {
			if (!read_line(&line, &cap))
				exit(97);
			verb(at, want);
			verb(line, got);
			if (strcmp(want, got) != 0) {
				fprintf(stderr, "fake: wanted %s, got %s\n", want, line);
				exit(99);
			}
		} else {
			size_t len = strlen(at);

			put(at + 19, len - 20);
			put("\n", 1);
		}
		if (!end)
			break;
		at = end + 1;
	}
	free(line);
	free(text);
}

/* --- misbehaviour --- */

/* Starts a process that left the session, the group and its parent, and keeps the pipes. It
 * exists when this returns. */
static void escape(void)
{
	pid_t middle = fork();

	if (middle == 0) {
		setsid();
		if (fork() == 0)
			hang();
		_exit(0);
	}
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		;
}

static void burst(long count)
{
	static char block[1 << 16];
	size_t used = 0;

	for (long i = 0; i < count; i++) {
		used += (size_t)snprintf(
			block + used, sizeof block - used,
			"{\"type\":\"assistant\",\"message\":{\"id\":\"b\",\"content\":"
			"[{\"type\":\"text\",\"text\":\"%ld\"}]}}\n",
			i);
		if (used > sizeof block - 256) {
			put(block, used);
			used = 0;
		}
	}
	put(block, used);
}

static void big_line(long bytes, int quoted)
{
	static const char head[] =
		"{\"type\":\"assistant\",\"message\":{\"id\":\"g\",\"content\":[{"
		"\"type\":\"text\",\"text\":\"";
	static char block[1 << 16];

	memset(block, 'x', sizeof block);
	if (quoted)
		put(head, sizeof head - 1);
	while (bytes > 0) {
		size_t k = bytes < (long)sizeof block ? (size_t)bytes : sizeof block;

		put(block, k);
		bytes -= (long)k;
	}
	put(quoted ? "\"}]}}\n" : "\n", quoted ? 6 : 1);
}

static void wait_for(const char *path)
{
	while (access(path, F_OK))
		poll(NULL, 0, 2);
}

static void touch(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	if (fd >= 0)
		close(fd);
}

static void say_env(const char *name)
{
	char line[8192];
	const char *v = getenv(name);

	snprintf(
		line, sizeof line,
		"{\"type\":\"assistant\",\"message\":{\"id\":\"e\",\"content\":[{\"type\":\"text\","
		"\"text\":\"%s=%s\"}]}}\n",
		name, v ? v : "(unset)");
	put(line, strlen(line));
}

static void result(void)
{
	static const char line[] =
		"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
		"\"result\":\"done\"}\n";

	put(line, sizeof line - 1);
}

/* --- commands --- */

static long number(const char *arg)
{
	return strtol(arg, NULL, 10);
}

/* "FILE|N": the name is cut off, the number returned; `none` without one. */
static long split_number(char *arg, long none)
{
	char *bar = strchr(arg, '|');

	if (!bar)
		return none;
	*bar = 0;
	return number(bar + 1);
}

static void do_line(char *arg)
{
	put(arg, strlen(arg));
	put("\n", 1);
}

static void do_part(char *arg)
{
	put(arg, strlen(arg));
}

static void do_raw(char *arg) /* a byte in hex */
{
	char byte = (char)strtol(arg, NULL, 16);

	put(&byte, 1);
}

static void do_err(char *arg)
{
	fprintf(stderr, "%s\n", arg);
}

static void do_cat(char *arg)
{
	size_t chunk = (size_t)split_number(arg, 0);

	cat(arg, chunk, (size_t)-1);
}

static void do_cut(char *arg)
{
	size_t limit = (size_t)split_number(arg, 0);

	cat(arg, 0, limit);
}

static void do_dialogue(char *arg)
{
	dialogue(arg);
}

static void do_stdin(char *arg)
{
	(void)arg;
	read_all();
}

static void do_count(char *arg)
{
	(void)arg;
	count_input();
}

static void do_expect(char *arg)
{
	expect(arg);
}

static void do_wait(char *arg)
{
	wait_for(arg);
}

static void do_touch(char *arg)
{
	touch(arg);
}

static void do_exit(char *arg)
{
	exit((int)number(arg));
}

static void do_signal(char *arg)
{
	raise((int)number(arg));
}

static void do_hang(char *arg)
{
	(void)arg;
	hang();
}

static void do_ignoreterm(char *arg)
{
	(void)arg;
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
}

static void do_fork(char *arg)
{
	(void)arg;
	if (fork() == 0)
		hang();
}

static void do_escape(char *arg)
{
	(void)arg;
	escape();
}

static void do_closeout(char *arg)
{
	(void)arg;
	close(1);
	close(2);
}

static void do_burst(char *arg)
{
	burst(number(arg));
}

static void do_bigline(char *arg)
{
	big_line(number(arg), 1);
}

static void do_junkline(char *arg)
{
	big_line(number(arg), 0);
}

static void do_env(char *arg)
{
	say_env(arg);
}

static void do_result(char *arg)
{
	(void)arg;
	result();
}

static const struct {
	const char *name;
	void (*run)(char *arg);
} commands[] = {
	{ "line", do_line },	     { "part", do_part },
	{ "raw", do_raw },	     { "err", do_err },
	{ "cat", do_cat },	     { "cut", do_cut },
	{ "dialogue", do_dialogue }, { "stdin", do_stdin },
	{ "count", do_count },	     { "expect", do_expect },
	{ "wait", do_wait },	     { "touch", do_touch },
	{ "exit", do_exit },	     { "signal", do_signal },
	{ "hang", do_hang },	     { "ignoreterm", do_ignoreterm },
	{ "fork", do_fork },	     { "escape", do_escape },
	{ "closeout", do_closeout }, { "burst", do_burst },
	{ "bigline", do_bigline },   { "junkline", do_junkline },
	{ "env", do_env },	     { "result", do_result },
};

static void command(char *c)
{
	char *arg = strchr(c, ' ');

	if (arg)
		*arg++ = 0;
	else
		arg = c + strlen(c);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(c, commands[i].name) == 0) {
			commands[i].run(arg);
			return;
		}
	exit(96);
}

int main(int argc, char **argv)
{
	const char *script = getenv("FAKE_DO");
	char *copy = strdup(script ? script : ""), *todo = copy;

	(void)argc;
	record(argv);
	while (todo && *todo) {
		char *next = strchr(todo, '\n');

		if (next)
			*next++ = 0;
		command(todo);
		todo = next;
	}
	free(copy);
	return 0;
}
