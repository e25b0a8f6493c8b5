/* mcp_bridge.c - lines of an MCP client, passed to a server, and what it says, passed back.
 *
 * A client of the revisions with sessions initializes one; from then on a line is a message of
 * it, and a thread writes what it says. A request of 2026-07-28 stands for itself: a thread
 * waits for its answer, and what comes before that. Nothing else is written to standard
 * output. */
#include "app/mcp_bridge.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/args.h"
#include "app/limits.h"
#include "app/remote.h"
#include "base/alloc.h"
#include "base/list.h"
#include "mcp/era.h"

enum { FOR_EVER_MS = 86400000 };

struct bridge {
	struct uar_api api;
	struct uar_buf messages, events; /* paths; empty: there is no session yet */
	FILE *in, *out;
	pthread_mutex_t lock; /* of what follows, and of writing to `out` */
	struct uar_list calls;
	size_t call_count;
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

static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	if (ev->data.n && uar_str_is(ev->event, "message"))
		say(ctx, ev->data);
	return UAR_OK;
}

/* Ends with the process. */
static void *read_events(void *ctx)
{
	struct bridge *b = ctx;
	struct uar_api_request r = { .method = "GET", .path = b->events.p };
	struct uar_error error = { 0 };
	uar_err e = uar_api_stream(&b->api, &r, on_event, b, &error);

	if (e)
		fprintf(stderr, "uar: mcp: the session broke: %s\n", uar_error_text(&error));
	exit(e ? 1 : 0); /* without the session there is nothing to serve */
}

/* --- the session ---------------------------------------------------------------------------- */

/* `params` of initialize. `result`, unless NULL, gets what the session is. */
static uar_err open_session(struct bridge *b, uar_str params, struct uar_buf *result,
			    struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_api_request r = { .method = "POST",
				     .path = "/api/mcp/sessions",
				     .body = params };
	const struct uar_json *root = NULL;
	struct uar_arena arena;
	pthread_t reader;
	uar_err e = uar_api_call(&b->api, &r, &text, error);

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_json_parse(uar_buf_str(&text), NULL, &arena, &root, error);
	if (!e) {
		uar_buf_add_str(
			&b->messages,
			uar_json_str(uar_json_get(root, UAR_STR("messages_url")), UAR_STR("")));
		uar_buf_add_str(&b->events, uar_json_str(uar_json_get(root, UAR_STR("events_url")),
							 UAR_STR("")));
		e = b->messages.n && b->events.n ? UAR_OK : UAR_EINTERNAL;
	}
	if (!e && result)
		uar_json_write(result, uar_json_get(root, UAR_STR("result")));
	uar_arena_fini(&arena);
	uar_buf_fini(&text);
	if (!e && pthread_create(&reader, NULL, read_events, b))
		e = UAR_ENOMEM;
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

static void pass_in_session(struct bridge *b, const struct uar_mcp_message *m, uar_str line)
{
	struct uar_api_request r = { .method = "POST", .path = b->messages.p, .body = line };
	struct uar_buf answer = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_error error = { 0 };
	uar_err e = uar_api_call(&b->api, &r, &answer, &error);

	if (!e && is_message(uar_buf_str(&answer)))
		say(b, uar_buf_str(&answer));
	else if (e && m->kind == UAR_MCP_REQUEST)
		refuse(b, m->id, UAR_MCP_INTERNAL_ERROR, uar_error_text(&error));
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
	struct uar_api api = b->api;
	struct uar_api_request r = {
		.method = "POST", .path = b->messages.p, .body = c->line, .either = true
	};
	struct uar_error error = { 0 };
	uar_err e;

	api.beside = &c->beside;
	api.answer_ms = api.stream_ms = FOR_EVER_MS;
	e = uar_api_stream(&api, &r, on_event, b, &error);
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
	const struct uar_json *id = uar_json_get(m->params, UAR_STR("requestId"));
	struct uar_buf text = uar_buf_make(UAR_LIMIT_MCP_ID + 8);
	bool found = false;

	if (!uar_str_is(m->method, "notifications/cancelled") || !id)
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
	else if (!b->messages.n && begin(b, &m))
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
	struct bridge b = { .in = cli->in, .out = cli->out, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_find(cli, &b.api, &error);

	if (e)
		return uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	b.messages = uar_buf_make(1024);
	b.events = uar_buf_make(1024);
	uar_list_init(&b.calls);
	pass_lines(&b);
	exit(0); /* the client has closed its end; threads go with the process */
}
