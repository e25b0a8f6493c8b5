/* stdio.c - an MCP server as a child process: one message a line, both ways. */
#include "base/alloc.h"
#include "loop/child.h"
#include "mcp/link.h"

struct stdio {
	struct uar_mcp_link base; /* first */
	struct uar_mcp_link_events events;
	struct uar_child *child;
	struct uar_buf line, errors;
	bool down;
};

static struct stdio *stdio_of(struct uar_mcp_link *l)
{
	return (struct stdio *)(void *)l;
}

static void go_down(struct stdio *s, const char *reason)
{
	if (s->down)
		return;
	s->down = true;
	s->events.down(s->events.ctx, reason);
}

/* Blank lines are no messages. */
static void take_line(struct stdio *s)
{
	uar_str text = uar_str_trim(uar_buf_str(&s->line));

	if (text.n && text.p[text.n - 1] == '\r')
		text.n--;
	if (text.n)
		s->events.message(s->events.ctx, text, UAR_STR_NONE);
	uar_buf_clear(&s->line);
}

static void on_output(void *ctx, uar_str bytes)
{
	struct stdio *s = ctx;

	while (bytes.n && !s->down) {
		size_t n = uar_str_find(bytes, '\n');

		uar_buf_add_str(&s->line, uar_str_n(bytes.p, n));
		if (s->line.err) {
			uar_child_kill(s->child);
			go_down(s, "a message of the server is longer than the limit");
			return;
		}
		if (n == bytes.n)
			return;
		take_line(s);
		bytes = uar_str_from(bytes, n + 1);
	}
}

/* The last of it is kept. */
static void on_errors(void *ctx, uar_str bytes)
{
	struct stdio *s = ctx;

	if (bytes.n > UAR_LIMIT_MCP_STDERR)
		bytes = uar_str_from(bytes, bytes.n - UAR_LIMIT_MCP_STDERR);
	if (s->errors.n + bytes.n > UAR_LIMIT_MCP_STDERR)
		uar_buf_consume(&s->errors, s->errors.n + bytes.n - UAR_LIMIT_MCP_STDERR);
	uar_buf_add_str(&s->errors, bytes);
}

static void on_exited(void *ctx, int status)
{
	char reason[64];

	snprintf(reason, sizeof reason, "the server ended with status %d", status);
	go_down(ctx, reason);
}

static uar_err send_line(struct uar_mcp_link *l, const struct uar_mcp_sending *m)
{
	struct stdio *s = stdio_of(l);
	struct uar_buf b = uar_buf_make(m->text.n + 2);
	uar_err e;

	if (s->down)
		return UAR_EEOF;
	uar_buf_add_str(&b, m->text);
	uar_buf_add_char(&b, '\n');
	e = b.err ? b.err : uar_child_write(s->child, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e;
}

static void forget(struct uar_mcp_link *l, uar_str id)
{
	(void)l; /* the protocol has a notification for it */
	(void)id;
}

static void start_listening(struct uar_mcp_link *l, uar_str version)
{
	(void)l; /* whatever it says comes anyway */
	(void)version;
}

static uar_str last_errors(struct uar_mcp_link *l)
{
	return uar_buf_str(&stdio_of(l)->errors);
}

static uar_str no_challenge(struct uar_mcp_link *l)
{
	(void)l;
	return UAR_STR_NONE;
}

static void destroy(struct uar_mcp_link *l)
{
	struct stdio *s = stdio_of(l);

	uar_child_destroy(s->child);
	uar_buf_fini(&s->line);
	uar_buf_fini(&s->errors);
	uar_free(s);
}

uar_err uar_mcp_stdio_open(const struct uar_mcp_stdio_options *o, struct uar_mcp_link **out,
			   struct uar_error *error)
{
	static const struct uar_mcp_link_ops ops = { send_line,	  forget,	start_listening,
						     last_errors, no_challenge, destroy };
	struct stdio *s = uar_zalloc(sizeof *s);
	struct uar_child_options child = { .argv = o->argv,
					   .env = o->env,
					   .cwd = o->cwd,
					   .output = on_output,
					   .errors = on_errors,
					   .exited = on_exited,
					   .ctx = s };
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	s->base.ops = &ops;
	s->events = o->events;
	s->line = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	s->errors = uar_buf_make(UAR_LIMIT_MCP_STDERR + 1);
	e = uar_child_start(o->loop, &child, &s->child, error);
	if (e) {
		uar_free(s);
		return e;
	}
	*out = &s->base;
	return UAR_OK;
}
