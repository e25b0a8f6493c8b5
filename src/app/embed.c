/* embed.c - the library: a server without a port, on a thread of the host's process.
 *
 * A call is handed to the loop's thread as a task and waits there for its answer. The thread
 * ends the calls that are left when the loop has stopped, after everything that could still
 * touch them is gone. */
#include "uar/uar.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "app/limits.h"
#include "app/serve_int.h"
#include "base/alloc.h"
#include "http/limits.h"
#include "json/limits.h"
#include "read/stream.h"

extern char **environ;

/* Closing: the loop has ended and takes no call any more. */
enum embed_state { EMBED_STARTING, EMBED_OPEN, EMBED_CLOSING, EMBED_CLOSED };

struct uar {
	struct server server;
	struct uar_config_set *config;
	struct uar_config_flag flags[UAR_LIMIT_CLI_FLAGS];
	struct uar_arena arena; /* of the settings */
	struct uar_log_out log_out;
	struct uar_buf problem;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the two below, and the end of calls */
	pthread_cond_t changed;
	enum embed_state state;
	struct uar_task closing;
	int status; /* of the start */
};

/* On the stack of its caller, which waits until it is over. */
struct embed_call {
	struct uar *u;
	struct uar_task task;
	struct uar_http_request r;
	struct uar_arena arena;
	struct uar_buf answer;
	int status;
	bool over;
	struct {
		uar_str session_id;
		uint64_t after, last;
		int64_t wait_us;
		struct uar_timer timer;
		struct uar_stream *stream;
		struct uar_jw json;
		bool timing;
	} events;
};

/* --- calls ----------------------------------------------------------------------------------- */

static void end_call(struct embed_call *c)
{
	struct uar *u = c->u;

	pthread_mutex_lock(&u->lock);
	c->over = true;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

static void take_answer(struct uar_http_request *r, const struct uar_http_response *response)
{
	struct embed_call *c = UAR_OWNER(r, struct embed_call, r);

	c->status = response->status;
	uar_buf_clear(&c->answer);
	uar_buf_add_str(&c->answer, response->body);
	end_call(c);
}

static void refuse_call(struct embed_call *c, uar_err e, const struct uar_error *error)
{
	uar_http_problem(&c->r, e, error);
}

/* Waits for the answer; the caller releases the text. */
static int finish_call(struct embed_call *c, char **out_json)
{
	struct uar *u = c->u;
	bool posted;
	size_t n;

	pthread_mutex_lock(&u->lock);
	posted = u->state == EMBED_OPEN;
	if (posted)
		uar_post_remote(uar_loop_sched(u->server.loop), &c->task);
	while (posted && u->state != EMBED_CLOSED && !c->over)
		pthread_cond_wait(&u->changed, &u->lock);
	pthread_mutex_unlock(&u->lock);
	if (!c->over) /* the loop has ended, and with it all that knew the call */
		refuse_call(c, posted ? UAR_EUNKNOWN : UAR_EDRAINING, NULL);
	uar_arena_fini(&c->arena);
	if (c->answer.err)
		c->status = uar_err_http(UAR_ENOMEM);
	*out_json = c->answer.err ? NULL : uar_buf_take(&c->answer, &n);
	uar_buf_fini(&c->answer);
	return c->status;
}

static void start_call(struct embed_call *c, struct uar *u, uar_task_fn *fn)
{
	*c = (struct embed_call){ .u = u, .task.fn = fn, .r.answer = take_answer };
	uar_arena_init(&c->arena, UAR_LIMIT_HTTP_ARENA);
	c->r.arena = &c->arena;
	c->r.peer = UAR_STR("inside");
	c->answer = uar_buf_make(UAR_LIMIT_EMBED_ANSWER);
}

static void send_command(struct uar_task *t)
{
	struct embed_call *c = UAR_OWNER(t, struct embed_call, task);

	uar_gate_request(c->u->server.gate, &c->r);
}

int uar_control(struct uar *u, const char *command, const char *json, char **out_json)
{
	struct embed_call c;
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	int status;

	start_call(&c, u, send_command);
	uar_buf_printf(&path, "/api/control/%s", command);
	c.r.method = UAR_HTTP_POST;
	c.r.path = c.r.target = path.err ? UAR_STR("/api/control/-") : uar_buf_str(&path);
	c.r.body = uar_str_c(json ? json : "{}");
	status = finish_call(&c, out_json);
	uar_buf_fini(&path);
	return status;
}

/* --- events ---------------------------------------------------------------------------------- */

static void begin_page(struct embed_call *c)
{
	c->events.json = uar_jw_begin(&c->answer);
	uar_jw_obj(&c->events.json, NULL);
	uar_jw_arr(&c->events.json, "events");
}

static void end_page(struct embed_call *c, uar_err e, const struct uar_error *error)
{
	struct uar_jw *w = &c->events.json;

	if (c->events.timing)
		uar_timer_stop(uar_loop_sched(c->u->server.loop), &c->events.timer);
	if (!e) {
		uar_jw_close(w);
		uar_jw_int(w, "last", (int64_t)c->events.last);
		uar_jw_close(w);
		e = uar_jw_end(w);
	}
	if (e) {
		refuse_call(c, e, error);
		return;
	}
	c->status = 200;
	end_call(c);
}

static uar_err page_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

/* One page is an answer: the stream ends behind it. */
static uar_err take_events(void *ctx, const struct uar_event *events, size_t n)
{
	struct embed_call *c = ctx;

	for (size_t i = 0; i < n; i++)
		uar_event_write(&c->events.json, NULL, &events[i], 0);
	if (n)
		c->events.last = events[n - 1].sequence;
	return n ? UAR_ESKIP : UAR_OK;
}

static void page_ended(void *ctx, uar_err why, const struct uar_error *error)
{
	end_page(ctx, why == UAR_ESKIP ? UAR_OK : why, error);
}

static void stop_waiting(struct uar_timer *t)
{
	struct embed_call *c = UAR_OWNER(t, struct embed_call, events.timer);

	uar_stream_close(c->events.stream);
	end_page(c, UAR_OK, NULL);
}

static void read_events(struct uar_task *t)
{
	struct embed_call *c = UAR_OWNER(t, struct embed_call, task);
	struct server *s = &c->u->server;
	struct uar_stream_options o = {
		.owner = uar_server_owner(s),
		.session_id = c->events.session_id,
		.after = c->events.after,
		.stored = c->events.wait_us <= 0,
		.sink = { page_opened, take_events, page_ended, c },
	};
	uar_err e = UAR_OK;

	begin_page(c);
	if (!o.stored) {
		c->events.timer.fn = stop_waiting;
		e = uar_timer_set(uar_loop_sched(s->loop), &c->events.timer, c->events.wait_us);
		c->events.timing = !e;
	}
	if (!e)
		e = uar_stream_open(s->parts.reader, &o, &c->events.stream);
	if (e)
		end_page(c, e, NULL);
}

int uar_events(struct uar *u, const char *session_id, uint64_t after, int wait_ms, char **out_json)
{
	struct embed_call c;

	start_call(&c, u, read_events);
	c.events.session_id = uar_str_c(session_id);
	c.events.after = c.events.last = after;
	c.events.wait_us = (int64_t)wait_ms * 1000;
	return finish_call(&c, out_json);
}

void uar_release(char *text)
{
	uar_free(text);
}

/* --- the thread ------------------------------------------------------------------------------ */

static void set_state(struct uar *u, enum embed_state state)
{
	pthread_mutex_lock(&u->lock);
	u->state = state;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

static void begin_close(struct uar_task *t)
{
	uar_server_stop(&UAR_OWNER(t, struct uar, closing)->server, "closed");
}

/* A storage that could not sync leaves everything as it is: nothing may be written any more. */
static void *run_server(void *ctx)
{
	struct uar *u = ctx;
	struct server *s = &u->server;

	u->status = uar_server_make(s);
	if (!u->status) {
		set_state(u, EMBED_OPEN);
		uar_loop_run(s->loop);
		set_state(u, EMBED_CLOSING);
	}
	if (!s->broken)
		uar_server_unmake(s);
	set_state(u, EMBED_CLOSED);
	return NULL;
}

/* The host's signals stay with its own threads; a broken pipe is an error here, no signal. */
static int start_thread(struct uar *u)
{
	sigset_t all, before;
	int e;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&u->thread, NULL, run_server, u);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e)
		uar_buf_printf(&u->problem, "no thread can be started");
	return e ? UAR_EXIT_FAILED : UAR_EXIT_OK;
}

/* --- opening --------------------------------------------------------------------------------- */

static const char *find_file(struct uar *u, uar_str dir, const char *name)
{
	const char *path = uar_arena_printf(&u->arena, "%.*s/%s", UAR_FMT(dir), name).p;

	return path && access(path, X_OK) == 0 ? path : NULL;
}

/* Beside the library, where it is installed, or in PATH. */
static const char *find_program(struct uar *u)
{
	const char *path = getenv("PATH"), *found = NULL;
	uar_str rest = uar_str_c(path ? path : "");
	Dl_info here;

	if (dladdr(__extension__(void *) uar_open, &here) && strrchr(here.dli_fname, '/')) {
		uar_str dir = uar_str_n(here.dli_fname,
					(size_t)(strrchr(here.dli_fname, '/') - here.dli_fname));

		found = find_file(u, dir, "uar");
		if (!found)
			found = find_file(u, dir, "../bin/uar");
	}
	while (!found && rest.n) {
		uar_str dir = uar_str_cut(rest, ':', &rest);

		if (dir.n && dir.p[0] == '/')
			found = find_file(u, dir, "uar");
	}
	return found ? found : "/usr/bin/uar"; /* a child that needs it names it as missing */
}

static uar_err add_setting(struct uar *u, struct uar_config_input *in, const struct uar_setting *s)
{
	struct uar_config_flag *f = &u->flags[in->flag_count];

	if (in->flag_count == UAR_LIMIT_CLI_FLAGS) {
		uar_buf_printf(&u->problem, "more than %d settings", UAR_LIMIT_CLI_FLAGS);
		return UAR_EINVALID;
	}
	f->row = uar_config_find(uar_str_c(s->name), &f->in_file);
	f->value = uar_arena_str(&u->arena, uar_str_c(s->value ? s->value : "")).p;
	in->flag_count++;
	if (!f->row)
		uar_buf_printf(&u->problem, "there is no setting \"%s\"", s->name);
	else if (strcmp(f->row->key, "listen") == 0)
		u->server.by.no_port = false;
	return !f->row ? UAR_EINVALID : f->value ? UAR_OK : UAR_ENOMEM;
}

static uar_err load_settings(struct uar *u, const struct uar_setting *settings)
{
	struct uar_config_input in = { .flags = u->flags, .env = environ };
	uar_err e = UAR_OK;

	for (; settings && settings->name && !e; settings++)
		e = add_setting(u, &in, settings);
	if (!e)
		e = uar_config_load(&in, &u->config, &u->problem);
	if (!e)
		e = uar_config_check_files(u->config, &u->problem);
	if (e && !u->problem.n)
		uar_buf_add_str(&u->problem, uar_str_c(uar_err_text(e)));
	return e;
}

static void free_runtime(struct uar *u)
{
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->lock);
	uar_log_out_fini(&u->log_out);
	uar_config_destroy(u->config);
	uar_arena_fini(&u->arena);
	uar_buf_fini(&u->problem);
	uar_free(u);
}

static struct uar *make_runtime(void)
{
	struct uar *u = uar_zalloc(sizeof *u);

	if (!u)
		return NULL;
	uar_arena_init(&u->arena, 0);
	uar_log_out_init(&u->log_out, STDERR_FILENO);
	u->problem = uar_buf_make(UAR_LIMIT_EMBED_PROBLEM);
	u->closing.fn = begin_close;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->changed, NULL);
	u->server.by.problem = &u->problem;
	u->server.by.no_port = true;
	return u;
}

static void prepare_server(struct uar *u)
{
	const struct uar_config *c = &u->config->value;

	u->server.config = u->config;
	u->server.log = (struct uar_log){ &uar_clock_system, (enum uar_log_level)c->log_level,
					  c->log_json, &u->log_out };
	u->server.token = uar_buf_make(UAR_LIMIT_ID_BYTES * 4);
	u->server.idle.again = uar_buf_make(UAR_LIMIT_SERVER_FILE / 2);
}

static int start_server(struct uar *u)
{
	int status = start_thread(u);

	if (status)
		return status;
	pthread_mutex_lock(&u->lock);
	while (u->state == EMBED_STARTING)
		pthread_cond_wait(&u->changed, &u->lock);
	pthread_mutex_unlock(&u->lock);
	if (u->status)
		pthread_join(u->thread, NULL);
	return u->status;
}

static uar_err take_options(struct uar *u, const struct uar_options *o)
{
	if (o->size != sizeof *o) {
		uar_buf_printf(&u->problem,
			       "uar_options.size is %zu, this library takes %zu; set it to "
			       "sizeof(struct uar_options) and build with this version's uar.h",
			       o->size, sizeof *o);
		return UAR_EINVALID;
	}
	u->server.by.program =
		o->program ? uar_arena_str(&u->arena, uar_str_c(o->program)).p : find_program(u);
	return u->server.by.program ? UAR_OK : UAR_ENOMEM;
}

unsigned uar_abi(void)
{
	return UAR_ABI_MAJOR * 1000 + UAR_ABI_MINOR;
}

int uar_open(const struct uar_options *options, struct uar **out, char **out_problem)
{
	struct uar *u = make_runtime();
	int status = UAR_EXIT_FAILED;
	size_t n;

	*out_problem = NULL;
	if (!u)
		return status;
	if (take_options(u, options) || load_settings(u, options->settings)) {
		status = UAR_EXIT_USAGE;
	} else {
		prepare_server(u);
		status = start_server(u);
	}
	if (status) {
		*out_problem = uar_buf_take(&u->problem, &n);
		free_runtime(u);
	} else {
		*out = u;
	}
	return status;
}

void uar_close(struct uar *u)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->lock);
	if (u->state == EMBED_OPEN)
		uar_post_remote(uar_loop_sched(u->server.loop), &u->closing);
	pthread_mutex_unlock(&u->lock);
	pthread_join(u->thread, NULL);
	if (!u->server.broken && !u->server.by.left_working)
		free_runtime(u);
}
