/* mcp_bridge.c - lines of an MCP client, passed to a server, and what it says, passed back.
 *
 * A client of the revisions with sessions initializes one; from then on a line is a message of
 * it, and a thread writes what it says. A request of 2026-07-28 stands for itself: a thread
 * waits for its answer, and what comes before that. Nothing else is written to standard
 * output.
 *
 * A server that is started again is found again: the session goes on where it was, and its calls
 * are answered when they end. A request whose answer will not come is answered with an error, and
 * what comes of it later is dropped. */
#include "app/mcp_bridge.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "app/args.h"
#include "app/limits.h"
#include "app/remote.h"
#include "base/alloc.h"
#include "base/list.h"
#include "mcp/era.h"

enum { FOR_EVER_MS = 86400000, STEP_MS = 200 };

struct bridge {
	struct uar_cli *cli;
	struct uar_buf hello; /* parameters of initialize */
	bool opened;	      /* there is a session */
	FILE *in, *out;
	pthread_mutex_t lock; /* of what follows, and of writing to `out` */
	struct uar_api api;
	struct uar_buf messages, events; /* paths of the session */
	struct uar_buf last;		 /* id of the last event of the session */
	struct uar_list calls;
	size_t call_count;
	struct uar_list requests; /* of the session, without an answer */
	size_t request_count;
};

/* A request of the session. */
struct pipe_request {
	struct uar_list node;
	bool passed;  /* the server has it */
	bool refused; /* its answer will be dropped */
	size_t n;
	char id[];
};

/* A request of 2026-07-28 that is under way, in a thread of its own. */
struct pipe_call {
	struct uar_list node;
	struct bridge *b;
	struct uar_beside beside;
	uar_str id;   /* JSON text */
	uar_str line; /* in its own memory, as the id */
};

/* --- out ------------------------------------------------------------------------------------ */

static void say(struct bridge *b, uar_str line)
{
	pthread_mutex_lock(&b->lock);
	fprintf(b->out, "%.*s\n", UAR_FMT(line));
	fflush(b->out);
	pthread_mutex_unlock(&b->lock);
}

static void refuse(struct bridge *b, uar_str id, int code, const char *text)
{
	struct uar_buf out = uar_buf_make(65536);

	if (!uar_mcp_write_error(&out, id, code, uar_str_c(text), UAR_STR_NONE))
		say(b, uar_buf_str(&out));
	uar_buf_fini(&out);
}

/* --- requests of the session ----------------------------------------------------------------- */

static struct pipe_request *find_request(struct bridge *b, uar_str id)
{
	UAR_LIST_EACH (it, &b->requests) {
		struct pipe_request *r = UAR_OWNER(it, struct pipe_request, node);

		if (uar_str_eq(uar_str_n(r->id, r->n), id))
			return r;
	}
	return NULL;
}

static void free_request(struct bridge *b, struct pipe_request *r)
{
	uar_list_remove(&r->node);
	b->request_count--;
	uar_free(r);
}

/* Beyond the limit a request is passed on all the same, and nobody knows that it waits. */
static void note_request(struct bridge *b, uar_str id)
{
	struct pipe_request *r = uar_zalloc(sizeof *r + id.n + 1);

	if (!r)
		return;
	r->n = id.n;
	memcpy(r->id, id.p, id.n);
	pthread_mutex_lock(&b->lock);
	if (b->request_count < UAR_LIMIT_MCP_PIPE_REQUESTS && !find_request(b, id)) {
		uar_list_add_last(&b->requests, &r->node);
		b->request_count++;
		r = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	uar_free(r);
}

/* The answer of a request is there. False: the client has been told that there is none. */
static bool settle_request(struct bridge *b, uar_str id)
{
	struct pipe_request *r;
	bool wanted = true;

	pthread_mutex_lock(&b->lock);
	r = find_request(b, id);
	if (r) {
		wanted = !r->refused;
		free_request(b, r);
	}
	pthread_mutex_unlock(&b->lock);
	return wanted;
}

static void request_passed(struct bridge *b, uar_str id)
{
	struct pipe_request *r;

	pthread_mutex_lock(&b->lock);
	r = find_request(b, id);
	if (r)
		r->passed = true;
	pthread_mutex_unlock(&b->lock);
}

static void refuse_request(struct bridge *b, uar_str id, const char *why)
{
	struct pipe_request *r;

	pthread_mutex_lock(&b->lock);
	r = find_request(b, id);
	if (r)
		r->refused = true;
	pthread_mutex_unlock(&b->lock);
	refuse(b, id, UAR_MCP_INTERNAL_ERROR, why);
}

static void refuse_all(struct bridge *b, const char *why)
{
	char id[UAR_LIMIT_MCP_ID + 1];
	bool more = true;

	while (more) {
		more = false;
		pthread_mutex_lock(&b->lock);
		UAR_LIST_EACH (it, &b->requests) {
			struct pipe_request *r = UAR_OWNER(it, struct pipe_request, node);

			if (more || r->refused || !r->passed)
				continue;
			more = r->refused = true;
			snprintf(id, sizeof id, "%s", r->id);
		}
		pthread_mutex_unlock(&b->lock);
		if (more)
			refuse(b, uar_str_c(id), UAR_MCP_INTERNAL_ERROR, why);
	}
}

static bool is_wanted(struct bridge *b, uar_str text)
{
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;
	bool wanted = true;

	uar_arena_init(&arena, 0);
	if (!uar_mcp_message_read(text, &arena, &m, NULL) &&
	    (m.kind == UAR_MCP_RESULT || m.kind == UAR_MCP_ERROR))
		wanted = settle_request(b, m.id);
	uar_arena_fini(&arena);
	return wanted;
}

/* Of the answer of a request that stands for itself. */
static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	if (ev->data.n && uar_str_is(ev->event, "message"))
		say(ctx, ev->data);
	return UAR_OK;
}

static uar_err on_session_event(void *ctx, const struct uar_sse_event *ev)
{
	struct bridge *b = ctx;

	if (ev->id.n) {
		pthread_mutex_lock(&b->lock);
		uar_buf_clear(&b->last);
		uar_buf_add_str(&b->last, ev->id);
		pthread_mutex_unlock(&b->lock);
	}
	if (ev->data.n && uar_str_is(ev->event, "message") && is_wanted(b, ev->data))
		say(b, ev->data);
	return UAR_OK;
}

/* --- the server ------------------------------------------------------------------------------ */

static struct uar_api api_of(struct bridge *b)
{
	struct uar_api api;

	pthread_mutex_lock(&b->lock);
	api = b->api;
	pthread_mutex_unlock(&b->lock);
	return api;
}

/* A moment later it may be back, maybe at another address. */
static void look_again(struct bridge *b)
{
	struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
	struct uar_error error = { 0 };
	struct uar_api api;

	nanosleep(&step, NULL);
	if (uar_remote_find(b->cli, &api, &error))
		return;
	pthread_mutex_lock(&b->lock);
	b->api = api;
	pthread_mutex_unlock(&b->lock);
}

/* Repeats what never reached a server. */
static uar_err call_patiently(struct bridge *b, const struct uar_api_request *r,
			      struct uar_buf *out, struct uar_error *error)
{
	uar_err e;

	for (int waited = 0;; waited += STEP_MS) {
		struct uar_api api = api_of(b);

		e = uar_api_call(&api, r, out, error);
		if (e != UAR_ENET || waited >= UAR_LIMIT_MCP_PIPE_MS)
			return e;
		look_again(b);
	}
}

static uar_err open_paths(struct bridge *b, struct uar_buf *result, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_api_request r = { .method = "POST",
				     .path = "/api/mcp/sessions",
				     .body = uar_buf_str(&b->hello) };
	const struct uar_json *root = NULL;
	struct uar_arena arena;
	uar_err e = call_patiently(b, &r, &text, error);

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_json_parse(uar_buf_str(&text), NULL, &arena, &root, error);
	if (!e) {
		pthread_mutex_lock(&b->lock);
		uar_buf_clear(&b->messages);
		uar_buf_clear(&b->events);
		uar_buf_clear(&b->last);
		uar_buf_add_str(&b->messages, uar_json_text(root, "messages_url"));
		uar_buf_add_str(&b->events, uar_json_text(root, "events_url"));
		e = b->messages.n && b->events.n ? UAR_OK : UAR_EINTERNAL;
		pthread_mutex_unlock(&b->lock);
	}
	if (!e && result)
		uar_json_write(result, uar_json_get(root, UAR_STR("result")));
	uar_arena_fini(&arena);
	uar_buf_fini(&text);
	return e;
}

/* Until it breaks off. */
static uar_err follow_session(struct bridge *b, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(1024), last = uar_buf_make(1024);
	struct uar_api_request r = { .method = "GET" };
	struct uar_api api = api_of(b);
	uar_err e;

	pthread_mutex_lock(&b->lock);
	uar_buf_add_str(&path, uar_buf_str(&b->events));
	uar_buf_add_str(&last, uar_buf_str(&b->last));
	pthread_mutex_unlock(&b->lock);
	r.path = path.p;
	r.last_event_id = uar_buf_str(&last);
	e = path.err || last.err ? UAR_ENOMEM
				 : uar_api_stream(&api, &r, on_session_event, b, error);
	uar_buf_fini(&path);
	uar_buf_fini(&last);
	return e;
}

static bool can_pass(uar_err e)
{
	return !e || e == UAR_ENET || e == UAR_EEOF || e == UAR_ETIMEOUT || e == UAR_EBUSY ||
	       e == UAR_EINTERNAL;
}

/* Ends with the process. */
static void *read_events(void *ctx)
{
	struct bridge *b = ctx;
	int waited = 0;

	for (;;) {
		struct uar_error error = { 0 };
		uar_err e = follow_session(b, &error);

		waited = e == UAR_ENET ? waited + STEP_MS : 0;
		if (e == UAR_ENOTFOUND) {
			refuse_all(b, "the server has lost the session; whether the request had an "
				      "effect is unknown");
			e = open_paths(b, NULL, &error);
		}
		if (!can_pass(e)) {
			fprintf(stderr, "uar: mcp: the session broke: %s\n",
				uar_error_text(&error));
			exit(1); /* without the session there is nothing to serve */
		}
		if (waited == STEP_MS)
			fprintf(stderr, "uar: mcp: the server is gone; waiting for it\n");
		if (waited >= UAR_LIMIT_MCP_PIPE_MS)
			refuse_all(b, "the server is gone; whether the request had an effect is "
				      "unknown");
		look_again(b);
	}
	return NULL;
}

/* --- the session ---------------------------------------------------------------------------- */

/* `params` of initialize. `result`, unless NULL, gets what the session is. */
static uar_err open_session(struct bridge *b, uar_str params, struct uar_buf *result,
			    struct uar_error *error)
{
	pthread_t reader;
	uar_err e;

	uar_buf_clear(&b->hello);
	uar_buf_add_str(&b->hello, params);
	e = b->hello.err ? b->hello.err : open_paths(b, result, error);
	if (!e && pthread_create(&reader, NULL, read_events, b))
		e = UAR_ENOMEM;
	b->opened = !e;
	return e;
}

/* The first message says which client it is: the session is opened for that one. */
static bool begin(struct bridge *b, const struct uar_mcp_message *m)
{
	struct uar_buf result = uar_buf_make(65536), out = uar_buf_make(65536);
	bool hello = m->kind == UAR_MCP_REQUEST && uar_str_is(m->method, "initialize");
	struct uar_error error = { 0 };
	uar_err e = open_session(b,
				 hello && m->params
					 ? m->params->text
					 : UAR_STR("{\"protocolVersion\":\"" UAR_MCP_LEGACY "\"}"),
				 &result, &error);

	if (!e && hello && !uar_mcp_write_result(&out, m->id, uar_buf_str(&result)))
		say(b, uar_buf_str(&out));
	if (e) {
		fprintf(stderr, "uar: mcp: %s\n", uar_error_text(&error));
		refuse(b, m->id, UAR_MCP_INTERNAL_ERROR, uar_error_text(&error));
	}
	uar_buf_fini(&out);
	uar_buf_fini(&result);
	return e || hello;
}

static bool is_message(uar_str answer)
{
	struct uar_mcp_message m = { 0 };
	struct uar_arena arena;
	bool message;

	uar_arena_init(&arena, 0);
	message = answer.n && !uar_mcp_message_read(answer, &arena, &m, NULL);
	uar_arena_fini(&arena);
	return message;
}

static uar_str copy_path(struct bridge *b, struct uar_buf *path)
{
	pthread_mutex_lock(&b->lock);
	uar_buf_add_str(path, uar_buf_str(&b->messages));
	pthread_mutex_unlock(&b->lock);
	return uar_buf_str(path);
}

/* The session may be another one by then: the reader opens it. */
static uar_err post_in_session(struct bridge *b, uar_str line, struct uar_buf *answer,
			       struct uar_error *error)
{
	uar_err e = UAR_ENOTFOUND;

	for (int waited = 0; e == UAR_ENOTFOUND && waited < UAR_LIMIT_MCP_PIPE_MS;
	     waited += STEP_MS) {
		struct uar_buf path = uar_buf_make(1024);
		struct uar_api_request r = { .method = "POST", .body = line };

		r.path = copy_path(b, &path).p;
		e = path.err ? path.err : call_patiently(b, &r, answer, error);
		uar_buf_fini(&path);
		if (e == UAR_ENOTFOUND)
			look_again(b);
	}
	return e;
}

static void pass_in_session(struct bridge *b, const struct uar_mcp_message *m, uar_str line)
{
	struct uar_buf answer = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_error error = { 0 };
	char why[sizeof error.text + 80];
	uar_err e;

	if (m->kind == UAR_MCP_REQUEST)
		note_request(b, m->id);
	e = post_in_session(b, line, &answer, &error);
	if (!e && is_message(uar_buf_str(&answer))) {
		if (is_wanted(b, uar_buf_str(&answer)))
			say(b, uar_buf_str(&answer));
	} else if (!e && m->kind == UAR_MCP_REQUEST) {
		request_passed(b, m->id);
	} else if (m->kind == UAR_MCP_REQUEST) {
		snprintf(why, sizeof why, "%s%s", uar_error_text(&error),
			 e == UAR_EEOF || e == UAR_ETIMEOUT || e == UAR_EBUSY
				 ? "; whether the request had an effect is unknown"
				 : "");
		refuse_request(b, m->id, why);
	}
	uar_buf_fini(&answer);
}

/* --- requests that stand for themselves ------------------------------------------------------ */

static bool was_cancelled(void *ctx, enum uar_beside_fd which)
{
	(void)ctx;
	(void)which;
	return false;
}

static void free_call(struct pipe_call *c)
{
	if (c->beside.fd[UAR_BESIDE_SIGNAL] >= 0)
		close(c->beside.fd[UAR_BESIDE_SIGNAL]);
	uar_free(c);
}

static void *answer_call(void *ctx)
{
	struct pipe_call *c = ctx;
	struct bridge *b = c->b;
	struct uar_buf path = uar_buf_make(1024);
	struct uar_api_request r = {
		.method = "POST", .path = copy_path(b, &path).p, .body = c->line, .either = true
	};
	struct uar_error error = { 0 };
	uar_err e = path.err ? path.err : UAR_ENET;

	for (int waited = 0; e == UAR_ENET && waited < UAR_LIMIT_MCP_PIPE_MS; waited += STEP_MS) {
		struct uar_api api = api_of(b);

		if (waited)
			look_again(b);
		api.beside = &c->beside;
		api.answer_ms = api.stream_ms = FOR_EVER_MS;
		e = uar_api_stream(&api, &r, on_event, b, &error);
	}
	uar_buf_fini(&path);
	if (e && e != UAR_ECANCELED)
		refuse(b, c->id, UAR_MCP_INTERNAL_ERROR, uar_error_text(&error));
	pthread_mutex_lock(&b->lock);
	uar_list_remove(&c->node);
	b->call_count--;
	pthread_mutex_unlock(&b->lock);
	free_call(c);
	return NULL;
}

/* NULL: there are too many. */
static struct pipe_call *make_call(struct bridge *b, uar_str id, uar_str line)
{
	struct pipe_call *c = uar_zalloc(sizeof *c + id.n + line.n);
	char *room;

	if (!c)
		return NULL;
	room = (char *)(c + 1);
	memcpy(room, id.p, id.n);
	memcpy(room + id.n, line.p, line.n);
	c->b = b;
	c->id = uar_str_n(room, id.n);
	c->line = uar_str_n(room + id.n, line.n);
	c->beside = (struct uar_beside){ .ready = was_cancelled };
	c->beside.fd[UAR_BESIDE_TERMINAL] = -1;
	c->beside.fd[UAR_BESIDE_SIGNAL] = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_lock(&b->lock);
	if (c->beside.fd[UAR_BESIDE_SIGNAL] < 0 || b->call_count >= UAR_LIMIT_MCP_PIPE_CALLS) {
		free_call(c);
		c = NULL;
	} else {
		uar_list_add_last(&b->calls, &c->node);
		b->call_count++;
	}
	pthread_mutex_unlock(&b->lock);
	return c;
}

static void start_call(struct bridge *b, uar_str id, uar_str line)
{
	struct pipe_call *c = make_call(b, id, line);
	pthread_t thread;

	if (!c) {
		refuse(b, id, UAR_MCP_INTERNAL_ERROR, "too many requests are under way");
	} else if (pthread_create(&thread, NULL, answer_call, c)) {
		pthread_mutex_lock(&b->lock);
		uar_list_remove(&c->node);
		b->call_count--;
		pthread_mutex_unlock(&b->lock);
		free_call(c);
		refuse(b, id, UAR_MCP_INTERNAL_ERROR, "there is no thread for the request");
	} else {
		pthread_detach(thread);
	}
}

/* True: the request is one of these, and its answer is not waited for any more. */
static bool cancel_call(struct bridge *b, const struct uar_mcp_message *m)
{
	bool lsp = uar_str_is(m->method, "$/cancelRequest");
	const struct uar_json *id =
		uar_json_get(m->params, lsp ? UAR_STR("id") : UAR_STR("requestId"));
	struct uar_buf text = uar_buf_make(UAR_LIMIT_MCP_ID + 8);
	bool found = false;

	if ((!lsp && !uar_str_is(m->method, "notifications/cancelled")) || !id)
		return false;
	uar_json_write(&text, id);
	pthread_mutex_lock(&b->lock);
	UAR_LIST_EACH (it, &b->calls) {
		struct pipe_call *c = UAR_OWNER(it, struct pipe_call, node);

		if (!uar_str_eq(c->id, uar_buf_str(&text)))
			continue;
		found = eventfd_write(c->beside.fd[UAR_BESIDE_SIGNAL], 1) == 0;
	}
	pthread_mutex_unlock(&b->lock);
	if (found && lsp) /* its client waits for an answer */
		refuse(b, uar_buf_str(&text), UAR_MCP_REQUEST_CANCELLED, "cancelled by the client");
	uar_buf_fini(&text);
	return found;
}

/* --- in ------------------------------------------------------------------------------------- */

static void pass_on(struct bridge *b, uar_str line)
{
	struct uar_mcp_message m = { 0 };
	struct uar_error error = { 0 };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_mcp_message_read(line, &arena, &m, &error);
	if (e)
		refuse(b, UAR_STR("null"),
		       e == UAR_EINVALID ? UAR_MCP_INVALID_REQUEST : UAR_MCP_PARSE_ERROR,
		       uar_error_text(&error));
	else if (!b->opened && begin(b, &m))
		; /* it is answered */
	else if (m.kind == UAR_MCP_REQUEST && uar_mcp_era_of(&m, NULL) == UAR_MCP_ERA_MODERN)
		start_call(b, m.id, line);
	else if (!cancel_call(b, &m))
		pass_in_session(b, &m, line);
	uar_arena_fini(&arena);
}

static void pass_lines(struct bridge *b)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, b->in)) >= 0) {
		uar_str text = uar_str_n(line, (size_t)n);

		while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
			text.n--;
		if (uar_str_trim(text).n)
			pass_on(b, text);
	}
	free(line);
}

int uar_mcp_bridge(struct uar_cli *cli)
{
	struct bridge b = {
		.cli = cli, .in = cli->in, .out = cli->out, .lock = PTHREAD_MUTEX_INITIALIZER
	};
	struct uar_error error = { 0 };
	uar_err e = uar_remote_find(cli, &b.api, &error);

	if (e)
		return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	b.hello = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	b.last = uar_buf_make(1024);
	uar_list_init(&b.requests);
	b.messages = uar_buf_make(1024);
	b.events = uar_buf_make(1024);
	uar_list_init(&b.calls);
	pass_lines(&b);
	exit(0); /* the client has closed its end; threads go with the process */
}
