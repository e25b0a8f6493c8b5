/* uar_plugin.c - a UAR plugin in C as a program of its own; the other half of plugin.h.
 *
 * Add this file to the program; it brings two more in, and needs libc and pthreads.
 * The main thread reads what the server says, runs are executed by threads that are
 * kept for the next run, and whoever exports waits until the server has answered. The
 * protocol is described in docs/plugins.md. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "uar_plugin_json.h"
#include "uar_plugin_run.h"

#define PROTOCOL "1"

/* --- runs --------------------------------------------------------------------------------- */

static void put_refs(struct text *t, const struct run *r)
{
	if (!r->kept_count)
		return;
	key(t, "result_refs");
	add_c(t, "[");
	add(t, r->kept.p, r->kept.n);
	add_c(t, "]");
}

static const char *tell_failure(struct run *r, const struct uarp_failure *f)
{
	struct text t = { NULL, 0, 0, false };

	begin(&t, "run.error", 0);
	put_text(&t, "run_id", r->info.run_id);
	put_text(&t, "code", f->code);
	put_text(&t, "message", f->message);
	if (f->details && !put_json(&t, "details", f->details, strlen(f->details)))
		add_c(&t, "{}");
	key(&t, "retriable");
	add_c(&t, f->retriable ? "true" : "false");
	put_refs(&t, r);
	add_c(&t, "}}");
	return send_line(r->wire, &t);
}

static const char *tell_result(struct run *r)
{
	struct text t = { NULL, 0, 0, false };

	begin(&t, "run.result", 0);
	put_text(&t, "run_id", r->info.run_id);
	key(&t, "result");
	add_c(&t, r->result ? r->result : "null");
	put_refs(&t, r);
	add_c(&t, "}}");
	return send_line(r->wire, &t);
}

static void execute(struct run *r)
{
	struct uarp_failure failed = { "PLUGIN_ERROR", "the entry failed", NULL, 0 };
	struct uarp_failure canceled = { "CANCELED", "the entry gave in to the cancel", NULL, 0 };
	struct uarp_failure large = { "PLUGIN_ERROR", "the result is too large", NULL, 0 };
	int status = r->fn(&r->base);

	if (status == UARP_CANCELED)
		tell_failure(r, &canceled);
	else if (status != UARP_OK)
		tell_failure(r, r->failure.code ? &r->failure : &failed);
	else if (tell_result(r))
		tell_failure(r, &large);
}

static void run_free(struct run *r)
{
	free(r->kept.p);
	while (r->memory) {
		struct block *next = r->memory->next;

		free(r->memory);
		r->memory = next;
	}
	pthread_cond_destroy(&r->told);
	free(r);
}

/* Under the lock. */
static void forget(struct wire *w, struct run *r)
{
	struct run **at = &w->runs;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
}

static void *thread(void *ctx)
{
	struct wire *w = ctx;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct run *r;

		for (w->idle++; !w->queue;)
			pthread_cond_wait(&w->work, &w->lock);
		w->idle--;
		r = w->queue;
		w->queue = r->behind;
		w->queued--;
		pthread_mutex_unlock(&w->lock);
		execute(r);
		pthread_mutex_lock(&w->lock);
		forget(w, r);
		run_free(r);
	}
	return NULL;
}

static bool add_thread(struct wire *w)
{
	pthread_attr_t detached;
	pthread_t id;
	bool good;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	good = pthread_create(&id, &detached, thread, w) == 0;
	pthread_attr_destroy(&detached);
	return good;
}

/* False: no thread can be had. */
static bool enqueue(struct wire *w, struct run *r)
{
	struct run **last = &w->queue;
	bool good = true;

	pthread_mutex_lock(&w->lock);
	if (w->queued >= w->idle)
		good = add_thread(w);
	if (good) {
		r->next = w->runs;
		w->runs = r;
		while (*last)
			last = &(*last)->behind;
		*last = r;
		w->queued++;
		pthread_cond_signal(&w->work);
	}
	pthread_mutex_unlock(&w->lock);
	return good;
}

static uarp_entry_fn *find_entry(const struct uarp_plugin *p, struct json id)
{
	for (const struct uarp_entry *x = p->entries; x && x->id; x++)
		if (id.p && *id.p == '"' && key_is(id, x->id, strlen(x->id)))
			return x->fn;
	return NULL;
}

static struct run *run_make(struct wire *w, struct json params)
{
	struct run *r = calloc(1, sizeof *r);
	struct json args = member(params, "args"), restarted;
	pthread_condattr_t monotonic;

	if (!r)
		return NULL;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->told, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r->base.ops = &run_ops;
	r->wire = w;
	r->fn = find_entry(w->plugin, member(params, "entry_id"));
	r->info.size = sizeof r->info;
	r->info.attempt = (int32_t)number_of(member(params, "attempt"));
	r->info.run_id = string_of(r, member(params, "run_id"));
	r->info.entry_id = string_of(r, member(params, "entry_id"));
	r->info.root_run_id = string_of(r, member(params, "root_run_id"));
	r->info.parent_run_id = string_of(r, member(params, "parent_run_id"));
	r->info.task_id = string_of(r, member(params, "task_id"));
	r->info.trace_id = string_of(r, member(params, "trace_id"));
	r->info.timeout_seconds = number_of(member(params, "timeout_seconds"));
	restarted = member(params, "restarted");
	r->info.restarted = restarted.p && *restarted.p == 't';
	r->info.args = args.p ? keep(r, args.p, (size_t)(args.end - args.p)) : "{}";
	if (!r->info.root_run_id)
		r->info.root_run_id = r->info.run_id;
	if (r->fn && r->info.run_id && r->info.args) {
		r->args = read_json(r->info.args, strlen(r->info.args));
		return r;
	}
	run_free(r);
	return NULL;
}

/* --- lines in --------------------------------------------------------------------------------- */

static void reply(struct wire *w, struct json id, const char *rest)
{
	struct text t = { NULL, 0, 0, false };

	if (!id.p)
		return;
	add_c(&t, "{\"jsonrpc\":\"2.0\",\"id\":");
	add(&t, id.p, (size_t)(id.end - id.p));
	add_c(&t, rest);
	send_line(w, &t);
}

static void on_hello(struct wire *w, struct json id, struct json params)
{
	struct text t = { NULL, 0, 0, false };
	double line = number_of(find(params, "/limits/line_bytes"));

	if (line >= 4096)
		w->line_max = (size_t)line;
	add_c(&t, ",\"result\":{\"protocol\":\"" PROTOCOL
		  "\",\"sdk\":\"c\",\"ping\":true,\"entries\":[");
	for (const struct uarp_entry *x = w->plugin->entries; x && x->id; x++) {
		if (x != w->plugin->entries)
			add_c(&t, ",");
		add_string(&t, x->id, strlen(x->id));
	}
	add_c(&t, "]}}");
	if (!t.bad)
		reply(w, id, t.p);
	free(t.p);
}

static void on_start(struct wire *w, struct json id, struct json params)
{
	struct run *r = run_make(w, params);

	if (!r) {
		reply(w, id, ",\"error\":{\"code\":-32602,\"message\":\"no such entry\"}}");
		return;
	}
	reply(w, id, ",\"result\":{}}"); /* before the run can say anything */
	if (!enqueue(w, r)) {
		static const struct uarp_failure none = { "PLUGIN_ERROR", "no thread", NULL, 1 };

		tell_failure(r, &none);
		run_free(r);
	}
}

static void cancel(struct run *r, struct json reason)
{
	if (reason.p && (size_t)(reason.end - reason.p) <= sizeof r->reason)
		decode(reason, r->reason);
	atomic_store_explicit(&r->cancelled, true, memory_order_release);
	pthread_cond_broadcast(&r->told);
}

static void on_cancel(struct wire *w, struct json params)
{
	struct json id = member(params, "run_id");

	pthread_mutex_lock(&w->lock);
	for (struct run *r = w->runs; r; r = r->next)
		if (key_is(id, r->info.run_id, strlen(r->info.run_id)) && !r->cancelled)
			cancel(r, member(params, "reason"));
	pthread_mutex_unlock(&w->lock);
}

/* Under the lock: what a run waits for is there. */
static void answer(struct run *r, struct json message)
{
	struct json item = find(message, "/result/export_item_id");
	struct json code = find(message, "/error/data/code");

	r->refused = !find(message, "/result").p;
	if (item.p && (size_t)(item.end - item.p) <= sizeof r->id)
		decode(item, r->id);
	refuse(r, "TRANSPORT_ERROR");
	if (code.p && *code.p == '"' && (size_t)(code.end - code.p) <= sizeof r->error)
		decode(code, r->error);
	r->asked = 0;
	pthread_cond_broadcast(&r->told);
}

static void on_answer(struct wire *w, struct json id, struct json message)
{
	int64_t number = id.p ? integer_of(id) : 0;

	pthread_mutex_lock(&w->lock);
	for (struct run *r = w->runs; r; r = r->next)
		if (r->asked == number && number)
			answer(r, message);
	pthread_mutex_unlock(&w->lock);
}

static void on_line(struct wire *w, const char *line, size_t n)
{
	struct json message = read_json(line, n), method = member(message, "method");
	struct json id = member(message, "id"), params = member(message, "params");

	if (!message.p)
		return;
	if (!method.p)
		on_answer(w, id, message);
	else if (key_is(method, "hello", 5))
		on_hello(w, id, params);
	else if (key_is(method, "run.start", 9))
		on_start(w, id, params);
	else if (key_is(method, "run.cancel", 10))
		on_cancel(w, params);
	else if (key_is(method, "ping", 4))
		reply(w, id, ",\"result\":{}}");
	else
		reply(w, id, ",\"error\":{\"code\":-32601,\"message\":\"no such method\"}}");
}

/* The server is gone. Handlers that do not listen must not keep the process. */
static int leave(struct wire *w)
{
	bool busy;

	pthread_mutex_lock(&w->lock);
	w->over = true;
	busy = w->runs != NULL;
	for (struct run *r = w->runs; r; r = r->next) {
		if (r->asked)
			answer(r, NOTHING);
		cancel(r, NOTHING);
	}
	pthread_mutex_unlock(&w->lock);
	fflush(NULL);
	if (busy)
		_exit(0);
	if (w->plugin->close)
		w->plugin->close();
	return 0;
}

/* Children of handlers inherit neither side of the wire: what they print is for the
 * log, and what they read is empty. The input, or NULL. */
static FILE *keep_wire(struct wire *w)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	w->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (in < 0 || w->out < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
	    dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return NULL;
	close(nothing);
	return fdopen(in, "r");
}

int uarp_main(const struct uarp_plugin *plugin)
{
	struct wire *w = calloc(1, sizeof *w); /* threads outlive this function */
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *in;

	if (!w || (plugin->open && plugin->open()))
		return 1;
	w->plugin = plugin;
	w->line_max = LINE_BYTES;
	pthread_mutex_init(&w->writing, NULL);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	in = keep_wire(w);
	if (!in)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((n = getline(&line, &room, in)) > 0)
		on_line(w, line, (size_t)n);
	free(line);
	return leave(w);
}

/* For programs that have none of their own. */
#if defined(__GNUC__) && !defined(UARP_NO_MAIN)
__attribute__((weak)) int main(void)
{
	return uarp_main(&uarp_plugin);
}
#endif
