/* load.c - the load client of the benchmarks.
 *
 *	load runs    --clients C --runs N [--agent A --message M --fetch 0|1]
 *	             [--plugin P --entry E --sync 0|1]  instead of an agent
 *	load queue   --plugin P --entry E --runs N  creates them, waits for none
 *	load fanout  --subscribers N [--run ID] [--seconds S | --attach-only 1]
 *	load replay  --repeat N --clients C [--run ID]
 *	             runs and fanout: [--dialect ag-ui]  how the streams speak
 *	load cold    --repeat N [--path P] -- PROGRAM ARGUMENT...
 *
 * with --url U --token T and --pid P of the server. Prints "name=value" lines;
 * exits with 1 when a run did not end well, an event was missing or doubled.
 * Text of the form "t=<monotonic microseconds> " in an event is taken for the
 * moment it was made, and gives the lag. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/client.h"
#include "lib/measure.h"

enum { ID = 80, ATTACH_AT_ONCE = 512, LAG_EVERY = 8 };

extern char **environ;

struct load {
	struct bench_loop loop;
	char **argv;
	int pid;
	int64_t wall, cpu, own; /* when the measured part began */
	const struct dialect *dialect;
};

/* How a stream is asked for, and what its events are called. */
struct dialect {
	const char *name, *prefix, *start, *end, *text;
};

static const struct dialect dialects[] = {
	{ "normalized", "/api/runs/", "RunStart", "RunDone", "ChatDelta" },
	{ "ag-ui", "/api/ag-ui/runs/", "RUN_STARTED", "RUN_FINISHED", "TEXT_MESSAGE_CONTENT" },
};

static const struct dialect *dialect_of(char **argv)
{
	const char *name = bench_option(argv, "--dialect", dialects[0].name);

	for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++)
		if (strcmp(dialects[i].name, name) == 0)
			return &dialects[i];
	bench_die("no dialect %s", name);
}

static bool has_frame_ids(const struct dialect *d)
{
	return d != &dialects[0];
}

static void begin(struct load *l)
{
	l->wall = bench_now_us();
	l->cpu = bench_cpu_us(l->pid);
	l->own = bench_cpu_us(0);
}

/* Puts time and CPU since begin, per `count` things called `unit`. */
static void put_costs(const struct load *l, const char *unit, double count)
{
	double wall = (double)(bench_now_us() - l->wall);
	double cpu = l->pid ? (double)(bench_cpu_us(l->pid) - l->cpu) : 0;
	char name[64];

	count = count > 0 ? count : 1;
	bench_put("wall_s", wall / 1e6);
	snprintf(name, sizeof name, "%ss_per_s", unit);
	bench_put(name, count * 1e6 / (wall > 0 ? wall : 1));
	snprintf(name, sizeof name, "server_cpu_us_per_%s", unit);
	bench_put(name, cpu / count);
	bench_put("server_cpu_s", cpu / 1e6);
	bench_put("client_cpu_s", (double)(bench_cpu_us(0) - l->own) / 1e6);
	if (l->pid) {
		bench_put("server_rss_kb", (double)bench_rss_kb(l->pid));
		bench_put("server_peak_rss_kb", (double)bench_peak_rss_kb(l->pid));
	}
}

static void put_spread(const char *name, struct bench_samples *s)
{
	static const struct {
		const char *suffix;
		double q;
	} points[] = { { "p50", 0.5 }, { "p99", 0.99 }, { "max", 1 } };
	char full[64];

	for (size_t i = 0; i < sizeof points / sizeof points[0] && s->n; i++) {
		snprintf(full, sizeof full, "%s_%s_us", name, points[i].suffix);
		bench_put(full, (double)bench_percentile(s, points[i].q));
	}
}

/* The type of an event, to compare with; empty: none. */
struct type {
	char text[40];
};

static struct type type_of(const struct bench_event *ev)
{
	struct type t = { "" };

	bench_json_string(ev->data, ev->n, "type", t.text, sizeof t.text);
	return t;
}

static bool is(const struct type *t, const char *name)
{
	return strcmp(t->text, name) == 0;
}

static void run_body(const struct load *l, char *out, size_t cap)
{
	const char *plugin = bench_option(l->argv, "--plugin", NULL);

	if (plugin) {
		snprintf(out, cap, "{\"plugin_id\":\"%s\",\"entry_id\":\"%s\",\"args\":{}%s}",
			 plugin, bench_option(l->argv, "--entry", "nop"),
			 bench_number(l->argv, "--sync", 0) ? ",\"mode\":\"sync\"" : "");
		return;
	}
	snprintf(out, cap, "{\"agent_id\":\"%s\",\"inputs\":{\"message\":\"%s\"}}",
		 bench_option(l->argv, "--agent", "echo"),
		 bench_option(l->argv, "--message", "hi"));
}

/* --- runs: create, follow to the end, fetch ------------------------------- */

enum step { CREATE, FOLLOW, FETCH };

/* While some have not been heard yet; while all talk; once the first has ended. */
enum phase { STARTING, TALKING, ENDING, PHASES };
static const char *const phases[PHASES] = { "lag_starting", "lag_talking", "lag_ending" };

struct runs {
	struct load *load;
	char body[512];
	const char *path; /* where runs are created */
	bool fetch, sync, queue;
	int64_t wanted, begun, ended, bad, events, deltas, times, log_events;
	int64_t clients, talking; /* talking: those whose run has said something */
	struct bench_samples latency, lag;
	struct bench_samples lag_in[PHASES];
};

struct runner {
	struct bench_conn conn;
	struct runs *all;
	enum step step;
	int64_t began;
	uint64_t last;
	bool started, terminal, wrong, talks;
	char id[ID];
};

static void runner_create(struct runner *r)
{
	struct runs *a = r->all;

	if (a->begun == a->wanted)
		return;
	a->begun++;
	r->step = CREATE;
	r->began = bench_now_us();
	r->last = 0;
	r->started = r->terminal = r->wrong = false;
	bench_request(&r->conn, a->path, a->body);
}

static void runner_end(struct runner *r)
{
	struct runs *a = r->all;

	a->bad += r->wrong;
	a->log_events += (int64_t)r->last; /* the number of the last one */
	if (++a->ended == a->wanted)
		a->load->loop.stop = true;
	runner_create(r);
}

static void runner_get(struct runner *r, enum step step, const char *suffix)
{
	char path[ID + 32];

	r->step = step;
	snprintf(path, sizeof path, "%s%s%s",
		 step == FOLLOW ? r->all->load->dialect->prefix : "/api/runs/", r->id, suffix);
	bench_request(&r->conn, path, NULL);
}

static bool is_over(const struct bench_conn *c)
{
	char status[24];

	return bench_json_string(c->body.p, c->body.n, "status", status, sizeof status) &&
	       strcmp(status, "succeeded") == 0;
}

static void runner_done(struct bench_conn *c, int status)
{
	struct runner *r = c->ctx;
	struct runs *a = r->all;

	if (status < 200 || status > 299) {
		if (a->bad == 0)
			fprintf(stderr, "step %d: status %d: %.*s\n", r->step, status,
				(int)c->body.n, c->body.n ? c->body.p : "");
		r->wrong = true;
		runner_end(r);
	} else if (r->step == CREATE) {
		if (!bench_json_string(c->body.p, c->body.n, "run_id", r->id, sizeof r->id))
			bench_die("no run_id in %.*s", (int)c->body.n, c->body.p);
		if (a->sync) { /* the answer is the record of the ended run */
			bench_sample(&a->latency, bench_now_us() - r->began);
			r->wrong |= !is_over(c);
		}
		if (a->sync || a->queue)
			runner_end(r);
		else
			runner_get(r, FOLLOW, "/stream");
	} else if (r->step == FOLLOW) {
		bench_sample(&a->latency, bench_now_us() - r->began);
		r->wrong |= !r->started || !r->terminal;
		if (a->fetch)
			runner_get(r, FETCH, "");
		else
			runner_end(r);
	} else {
		runner_end(r);
	}
}

static void add_lag(void *ctx, int64_t sent_us)
{
	bench_sample(ctx, bench_now_us() - sent_us);
}

static enum phase phase_of(const struct runs *a)
{
	if (a->talking < a->clients)
		return STARTING;
	return a->ended ? ENDING : TALKING;
}

static void add_run_lag(void *ctx, int64_t sent_us)
{
	struct runs *a = ctx;
	int64_t lag = bench_now_us() - sent_us;

	bench_sample(&a->lag, lag);
	bench_sample(&a->lag_in[phase_of(a)], lag);
}

static void runner_event(struct bench_conn *c, const struct bench_event *ev)
{
	struct runner *r = c->ctx;
	struct runs *a = r->all;
	const struct dialect *d = a->load->dialect;
	struct type type = type_of(ev);
	int64_t said;

	a->events++;
	said = (int64_t)bench_times(ev->data, ev->n, add_run_lag, a);
	a->times += said;
	a->talking += said && !r->talks;
	r->talks |= said > 0;
	if (r->last == 0)
		r->started = is(&type, d->start);
	a->deltas += is(&type, d->text);
	r->wrong |= r->terminal || ev->id <= r->last || is(&type, "Error");
	r->terminal = is(&type, d->end);
	r->last = ev->id;
}

static int run_runs(struct load *l)
{
	static const struct bench_calls calls = { runner_event, runner_done };
	int64_t clients = bench_number(l->argv, "--clients", 64);
	struct runner *r = bench_alloc(NULL, (size_t)clients * sizeof *r);
	struct runs all = { .load = l,
			    .wanted = bench_number(l->argv, "--runs", 1000),
			    .path = bench_option(l->argv, "--plugin", NULL) ? "/runs" : "/api/runs",
			    .clients = clients,
			    .fetch = bench_number(l->argv, "--fetch", 1),
			    .sync = bench_number(l->argv, "--sync", 0),
			    .queue = strcmp(l->argv[1], "queue") == 0 };

	run_body(l, all.body, sizeof all.body);
	begin(l);
	for (int64_t i = 0; i < clients; i++) {
		r[i] = (struct runner){ .all = &all };
		bench_conn_init(&r[i].conn, &l->loop, &calls, &r[i]);
		runner_create(&r[i]);
	}
	bench_loop_run(&l->loop, 0);
	put_costs(l, "run", (double)all.ended);
	put_spread("latency", &all.latency);
	put_spread("lag", &all.lag);
	for (int i = 0; i < PHASES; i++)
		put_spread(phases[i], &all.lag_in[i]);
	bench_put("events", (double)all.events);
	bench_put("log_events", (double)all.log_events);
	bench_put("deltas", (double)all.deltas);
	bench_put("tokens", (double)all.times);
	bench_put("bad", (double)all.bad);
	for (int64_t i = 0; i < clients; i++)
		bench_conn_fini(&r[i].conn);
	free(r);
	bench_samples_fini(&all.latency);
	bench_samples_fini(&all.lag);
	for (int i = 0; i < PHASES; i++)
		bench_samples_fini(&all.lag_in[i]);
	return all.bad ? 1 : 0;
}

/* --- readers of one run ---------------------------------------------------- */

struct readers {
	struct load *load;
	char path[ID + 32];
	int64_t ended, wanted, asked, deliveries, bytes, gaps, cuts, attached;
	bool measuring;
	struct bench_samples lag;
	uint64_t *after; /* the id that followed id i, 0: not seen yet */
	size_t after_n;
};

struct reader {
	struct bench_conn conn;
	struct readers *all;
	uint64_t last;
	bool attached, terminal, samples;
};

/* A dialect may leave numbers out, but the same ones for everybody: whoever
 * sees a different successor than the first reader did has lost something. */
static bool follows(struct readers *a, uint64_t last, uint64_t id)
{
	if (id <= last || id > 100000000)
		return false;
	if (id >= a->after_n) {
		size_t n = 2 * (size_t)id + 64;

		a->after = bench_alloc(a->after, n * sizeof *a->after);
		memset(a->after + a->after_n, 0, (n - a->after_n) * sizeof *a->after);
		a->after_n = n;
	}
	if (a->after[last] == 0)
		a->after[last] = id;
	return a->after[last] == id;
}

static void reader_event(struct bench_conn *c, const struct bench_event *ev)
{
	struct reader *r = c->ctx;
	struct readers *a = r->all;
	struct type type = type_of(ev);

	/* What a dialect says before the first event, to a reader that comes late, has no number.
	 */
	if (ev->id) {
		a->gaps += !follows(a, r->last, ev->id) || r->terminal;
		r->last = ev->id;
	}
	r->terminal = is(&type, a->load->dialect->end) || is(&type, "Error");
	if (!r->attached) {
		r->attached = true;
		a->attached++;
		if (a->attached == a->asked && !a->measuring)
			a->load->loop.stop = true;
	}
	if (!a->measuring)
		return;
	a->deliveries++;
	a->bytes += (int64_t)ev->bytes;
	if (r->samples)
		bench_times(ev->data, ev->n, add_lag, &a->lag);
}

static void reader_ask(struct reader *r)
{
	r->conn.resume_after = r->last;
	bench_request(&r->conn, r->all->path, NULL);
}

/* A reader that was cut before the run's end comes back at its position. */
static void reader_done(struct bench_conn *c, int status)
{
	struct reader *r = c->ctx;
	struct readers *a = r->all;

	if (status >= 400)
		bench_die("stream: status %d: %.*s", status, (int)c->body.n,
			  c->body.n ? c->body.p : "");
	if (!r->terminal) {
		if (++a->cuts > 1000000)
			bench_die("the streams are cut again and again");
		reader_ask(r);
	} else if (++a->ended == a->wanted) {
		a->load->loop.stop = true;
	}
}

/* One request, one answer; the body's run_id. */
static void one_done(struct bench_conn *c, int status)
{
	if (status < 200 || status > 299 ||
	    !bench_json_string(c->body.p, c->body.n, "run_id", c->ctx, ID))
		bench_die("cannot create a run: status %d", status);
	c->loop->stop = true;
}

static void find_run(struct load *l, struct readers *a)
{
	static const struct bench_calls calls = { NULL, one_done };
	const char *given = bench_option(l->argv, "--run", NULL);
	char id[ID], body[512];
	struct bench_conn c;

	if (given) {
		snprintf(id, sizeof id, "%s", given);
	} else {
		run_body(l, body, sizeof body);
		bench_conn_init(&c, &l->loop, &calls, id);
		bench_request(&c, "/api/runs", body);
		bench_loop_run(&l->loop, 0);
		bench_conn_fini(&c);
	}
	snprintf(a->path, sizeof a->path, "%s%s/stream", l->dialect->prefix, id);
}

static struct reader *readers_make(struct readers *a, int64_t n)
{
	static const struct bench_calls calls = { reader_event, reader_done };
	struct reader *r = bench_alloc(NULL, (size_t)n * sizeof *r);

	for (int64_t i = 0; i < n; i++) {
		r[i] = (struct reader){ .all = a, .samples = i % LAG_EVERY == 0 };
		bench_conn_init(&r[i].conn, &a->load->loop, &calls, &r[i]);
		r[i].conn.frame_ids = has_frame_ids(a->load->dialect);
	}
	return r;
}

static void readers_free(struct readers *a, struct reader *r, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		bench_conn_fini(&r[i].conn);
	free(r);
	free(a->after);
	bench_samples_fini(&a->lag);
}

static void put_readers(struct readers *a)
{
	put_costs(a->load, "event", (double)a->deliveries);
	put_spread("lag", &a->lag);
	bench_put("deliveries", (double)a->deliveries);
	bench_put("bytes_per_event", a->deliveries ? (double)a->bytes / (double)a->deliveries : 0);
	bench_put("gaps", (double)a->gaps);
	bench_put("cuts", (double)a->cuts);
	bench_put("ended", (double)a->ended);
}

/* Attaches until n do, in groups, as a listen queue holds only so many. */
static void attach(struct readers *a, struct reader *r, int64_t n)
{
	for (int64_t i = a->asked; i < n;) {
		for (int k = 0; k < ATTACH_AT_ONCE && i < n; k++, i++) {
			a->asked = i + 1;
			reader_ask(&r[i]);
		}
		if (a->attached < a->asked)
			bench_loop_run(&a->load->loop, 0);
	}
}

static int run_fanout(struct load *l)
{
	struct readers all = { .load = l, .wanted = bench_number(l->argv, "--subscribers", 1000) };
	struct reader *r = readers_make(&all, all.wanted);
	int64_t before, after, seconds = bench_number(l->argv, "--seconds", 0);

	find_run(l, &all);
	/* What the first reader and the run itself cost is not the price of a stream. */
	attach(&all, r, 1);
	bench_loop_run(&l->loop, bench_now_us() + 1000000);
	before = bench_rss_kb(l->pid);
	attach(&all, r, all.wanted);
	/* Whoever came late is still catching up; that is not fan-out. */
	bench_loop_run(&l->loop, bench_now_us() + 1000000);
	after = bench_rss_kb(l->pid);
	bench_put("subscribers", (double)all.attached);
	bench_put("rss_bytes_per_stream", (double)(after - before) * 1024 / (double)all.wanted);
	if (!bench_number(l->argv, "--attach-only", 0)) {
		all.measuring = true;
		begin(l);
		if (all.ended < all.wanted)
			bench_loop_run(&l->loop, seconds ? l->wall + seconds * 1000000 : 0);
		put_readers(&all);
	}
	readers_free(&all, r, all.wanted);
	return all.gaps ? 1 : 0;
}

/* --- replay: read a stored run again and again ----------------------------- */

static void replay_done(struct bench_conn *c, int status)
{
	struct reader *r = c->ctx;
	struct readers *a = r->all;

	if (status != 200 || !r->terminal)
		bench_die("replay: status %d, %s", status, r->terminal ? "whole" : "cut");
	a->ended++;
	r->last = 0;
	r->terminal = false;
	if (a->asked < a->wanted) {
		a->asked++;
		reader_ask(r);
	} else if (a->ended == a->wanted) {
		a->load->loop.stop = true;
	}
}

static int run_replay(struct load *l)
{
	static const struct bench_calls calls = { reader_event, replay_done };
	int64_t clients = bench_number(l->argv, "--clients", 1);
	struct readers all = { .load = l, .wanted = 1 };
	struct reader *r = readers_make(&all, clients);

	find_run(l, &all);
	attach(&all, r, 1); /* the first reading waits for the run's end and is not measured */
	if (!all.ended)
		bench_loop_run(&l->loop, 0);
	all.wanted = bench_number(l->argv, "--repeat", 10);
	all.ended = all.asked = 0;
	all.measuring = true;
	begin(l);
	for (int64_t i = 0; i < clients && all.asked < all.wanted; i++) {
		r[i].conn.calls = &calls;
		r[i].last = 0;
		r[i].terminal = false;
		all.asked++;
		reader_ask(&r[i]);
	}
	bench_loop_run(&l->loop, 0);
	put_readers(&all);
	readers_free(&all, r, clients);
	return all.gaps ? 1 : 0;
}

/* --- cold: from exec to the first answer ----------------------------------- */

static void cold_done(struct bench_conn *c, int status)
{
	if (status == 0)
		bench_die("the server closed without an answer");
	if (status == 503) /* alive, not ready */
		bench_request(c, c->ctx, NULL);
	else
		c->loop->stop = true;
}

static int spawn(char **argv, int *out_fd)
{
	posix_spawn_file_actions_t actions;
	int pipes[2], pid;

	if (pipe2(pipes, O_CLOEXEC))
		bench_die("pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ))
		bench_die("cannot start %s", argv[0]);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	*out_fd = pipes[0];
	return pid;
}

/* Starts the server, waits for its line of JSON, asks once, stops it. */
static int64_t cold_once(char **argv, char *path)
{
	static const struct bench_calls calls = { NULL, cold_done };
	char line[4096], url[128], token[512];
	struct bench_loop loop;
	struct bench_conn c;
	int64_t began = bench_now_us(), took;
	size_t n = 0;
	int fd, pid = spawn(argv, &fd);

	while (!memchr(line, '\n', n)) {
		ssize_t got = read(fd, line + n, sizeof line - n);

		if (got <= 0)
			bench_die("%s ended without its line", argv[0]);
		n += (size_t)got;
	}
	if (!bench_json_string(line, n, "url", url, sizeof url) ||
	    !bench_json_string(line, n, "token", token, sizeof token))
		bench_die("no url and token in %.*s", (int)n, line);
	bench_loop_init(&loop, url, token);
	bench_conn_init(&c, &loop, &calls, path);
	bench_request(&c, path, NULL);
	bench_loop_run(&loop, 0);
	took = bench_now_us() - began;
	bench_put("idle_rss_kb", (double)bench_rss_kb(pid));
	bench_conn_fini(&c);
	bench_loop_fini(&loop);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	return took;
}

static int run_cold(char **argv)
{
	int64_t repeat = bench_number(argv, "--repeat", 10);
	struct bench_samples s = { 0 };
	char **program = argv, path[128];

	snprintf(path, sizeof path, "%s", bench_option(argv, "--path", "/health"));
	while (*program && strcmp(*program, "--") != 0)
		program++;
	if (!*program || !program[1])
		bench_die("cold: no program");
	for (int64_t i = 0; i < repeat; i++)
		bench_sample(&s, cold_once(program + 1, path));
	put_spread("cold", &s);
	bench_samples_fini(&s);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*fn)(struct load *l);
	} modes[] = { { "runs", run_runs },
		      { "queue", run_runs },
		      { "fanout", run_fanout },
		      { "replay", run_replay } };
	struct load l = { .argv = argv, .dialect = dialect_of(argv) };
	int status = 2;

	signal(SIGPIPE, SIG_IGN);
	bench_raise_files();
	if (argc > 1 && strcmp(argv[1], "cold") == 0)
		return run_cold(argv);
	l.pid = (int)bench_number(argv, "--pid", 0);
	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		bench_loop_init(&l.loop, bench_option(argv, "--url", NULL),
				bench_option(argv, "--token", NULL));
		status = modes[i].fn(&l);
		bench_loop_fini(&l.loop);
	}
	if (status == 2)
		fprintf(stderr, "usage: load runs|queue|fanout|replay|cold [--option value]...\n");
	return status;
}
