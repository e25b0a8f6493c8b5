/* process.c - the tools process.run, process.start, process.write, process.read, process.stop. */
#include <stdio.h>
#include <string.h>

#include "json/schema.h"
#include "tool/process_int.h"

#define COMMAND                                                                                    \
	"\"command\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":65536,\"description\":"    \
	"\"A line for /bin/sh.\"},\"argv\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":128,"   \
	"\"items\":{\"type\":\"string\"},\"description\":\"Instead of command: a program and its " \
	"arguments, without a shell.\"},\"cwd\":{\"type\":\"string\",\"maxLength\":1000,"          \
	"\"description\":\"A folder of the workspace.\"},\"input\":{\"type\":\"string\","          \
	"\"maxLength\":65536,\"description\":\"For its standard input.\"},\"timeout_seconds\":{"   \
	"\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":3600},\"justification\":{"         \
	"\"type\":\"string\",\"maxLength\":512,\"description\":\"Why it is needed, for the "       \
	"person "                                                                                  \
	"who allows it.\"}"
#define ONE_OF		  "\"oneOf\":[{\"required\":[\"command\"]},{\"required\":[\"argv\"]}]"
#define PROCESS_ID_MEMBER "\"process_id\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64}"

static const char result_schema[] =
	"{\"type\":\"object\",\"required\":[\"process_id\",\"status\"],\"properties\":{"
	"\"process_id\":{\"type\":\"string\"},\"status\":{\"enum\":[\"running\",\"completed\","
	"\"failed\",\"terminated\"]},\"exit_code\":{\"type\":\"integer\"},\"signal\":{\"type\":"
	"\"integer\"},\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"
	"\"truncated\":{\"type\":\"boolean\"},\"sandbox_denied\":{\"type\":\"string\"}}}";

static const char *const inputs[PROCESS_TOOLS] = {
	[PROCESS_RUN] = "{\"type\":\"object\"," ONE_OF ",\"properties\":{" COMMAND
			"},\"additionalProperties\":false}",
	[PROCESS_START] = "{\"type\":\"object\"," ONE_OF ",\"properties\":{" COMMAND
			  ",\"tty\":{\"type\":\"boolean\",\"description\":\"Give it a terminal.\"}"
			  "},\"additionalProperties\":false}",
	[PROCESS_WRITE] = "{\"type\":\"object\",\"required\":[\"process_id\"],\"properties\":"
			  "{" PROCESS_ID_MEMBER
			  ",\"input\":{\"type\":\"string\",\"maxLength\":65536},\"eof\":{\"type\":"
			  "\"boolean\",\"description\":\"Its standard input ends.\"}},"
			  "\"additionalProperties\":false}",
	[PROCESS_READ] = "{\"type\":\"object\",\"required\":[\"process_id\"],\"properties\":"
			 "{" PROCESS_ID_MEMBER
			 ",\"wait_seconds\":{\"type\":\"number\",\"minimum\":0,\"maximum\":60,"
			 "\"description\":\"Wait so long for output or its end.\"}},"
			 "\"additionalProperties\":false}",
	[PROCESS_STOP] = "{\"type\":\"object\",\"required\":[\"process_id\"],\"properties\":"
			 "{" PROCESS_ID_MEMBER "},\"additionalProperties\":false}",
};

/* Their schemas are put in when the source is made. */
#define TOOL(NAME, MODEL, TEXT, EFFECT, ASK, MAY_DESTROY)                                          \
	{                                                                                          \
		.tool_id = UAR_STR("process:" NAME), .name = UAR_STR("process." NAME),             \
		.model_name = UAR_STR(MODEL), .description = UAR_STR(TEXT),                        \
		.version = UAR_STR("1"), .transport = UAR_STR("internal"),                         \
		.tags = UAR_STR("[\"process\"]"), .capabilities = UAR_STR("[\"process\"]"),        \
		.state = UAR_TOOL_SANDBOXED, .effect = UAR_TOOL_##EFFECT,                          \
		.destructive = MAY_DESTROY, .ask = ASK,                                            \
		.timeout_us = (int64_t)UAR_LIMIT_PROCESS_SECONDS * 1000000                         \
	}
static const struct uar_tool templates[PROCESS_TOOLS] = {
	[PROCESS_RUN] =
		TOOL("run", "process__run",
		     "Runs a command in a sandbox over the workspace and gives its exit code "
		     "and what it wrote.",
		     ONCE, true, true),
	[PROCESS_START] = TOOL("start", "process__start",
			       "Starts a command in a sandbox over the workspace that goes on: a "
			       "server, or a program to talk to.",
			       ONCE, true, true),
	[PROCESS_WRITE] = TOOL("write", "process__write",
			       "Writes to the standard input of a process.", ONCE, false, false),
	[PROCESS_READ] = TOOL("read", "process__read",
			      "What a process wrote since it was read last, and how it stands.",
			      READ_ONLY, false, false),
	[PROCESS_STOP] = TOOL("stop", "process__stop", "Ends a process.", IDEMPOTENT, false, false),
};

static struct uar_processes *host_of(struct uar_tools *t)
{
	return (struct uar_processes *)(void *)t;
}

static struct uar_sched *sched_of(const struct uar_processes *h)
{
	return uar_loop_sched(h->loop);
}

/* --- calls ---------------------------------------------------------------------------------- */

static void free_call(struct uar_tool_call *c)
{
	if (c->p && c->p->call == c)
		c->p->call = NULL;
	uar_timer_stop(sched_of(c->host), &c->timer);
	uar_unpost(sched_of(c->host), &c->task);
	uar_list_remove(&c->node);
	uar_buf_fini(&c->result);
	uar_free(c);
}

/* Tells the result that is ready, and the call is over. */
static void finish(struct uar_tool_call *c)
{
	struct uar_tool_events events = c->events;
	struct uar_buf result = c->result;
	char category[sizeof c->category];
	struct uar_error error = c->error;
	struct uar_tool_result r = { .ok = !c->category[0] && !result.err };

	memcpy(category, c->category, sizeof category);
	c->result = uar_buf_make(0);
	free_call(c);
	r.output = uar_buf_str(&result);
	if (!r.ok) {
		r.category = category[0] ? uar_str_c(category) : UAR_STR("execution");
		r.message = uar_str_c(uar_error_text(&error));
	}
	events.done(events.ctx, &r);
	uar_buf_fini(&result);
}

static void on_task(struct uar_task *t)
{
	finish(UAR_OWNER(t, struct uar_tool_call, task));
}

static void fail(struct uar_tool_call *c, const char *category, const char *text)
{
	snprintf(c->category, sizeof c->category, "%s", category);
	(void)uar_error_set(&c->error, UAR_ECHILD, "%s", text);
}

static void write_state(struct uar_tool_call *c, struct process *p, bool whole)
{
	struct uar_jw w = uar_jw_begin(&c->result);

	uar_jw_obj(&w, NULL);
	uar_process_put(&w, p, whole);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		fail(c, "result_too_large", "what the command wrote is too long");
}

static uar_str last_line(const struct process_stream *s)
{
	uar_str text = uar_buf_str(s->tail.n ? &s->tail : &s->head);

	while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	for (size_t i = text.n; i-- > 0;)
		if (text.p[i] == '\n') {
			text = uar_str_from(text, i + 1);
			break;
		}
	text = uar_str_utf8_prefix(text, 160);
	return uar_utf8_valid(text) ? text : UAR_STR("");
}

/* process.run: how the command ended is how the call ends. A denial of the sandbox is told apart
 * from a command that failed by itself. */
static void end_run(struct uar_tool_call *c, struct process *p)
{
	char text[UAR_LIMIT_ERROR_TEXT];

	if (p->timed_out) {
		fail(c, "timeout", "the command took longer than its time limit and was ended");
	} else if (p->stopping.reason.n) {
		fail(c, "cancelled", "the command was ended from outside");
	} else if (!p->applied || !p->end.known) {
		snprintf(text, sizeof text, "the command did not run: %.*s",
			 UAR_FMT(uar_str_utf8_prefix(p->end.failure, 200)));
		fail(c, uar_str_is(p->end.stage, "sandbox") ? "setup_missing" : "execution", text);
	} else if (p->violation.n && p->end.exit_code != 0) {
		snprintf(text, sizeof text,
			 "the sandbox denied it: %.*s. The command ended with %s %d: %.*s",
			 UAR_FMT(uar_str_utf8_prefix(p->violation, 100)),
			 p->end.signal > 0 ? "signal" : "status",
			 p->end.signal > 0 ? p->end.signal : p->end.exit_code,
			 UAR_FMT(last_line(&p->err)));
		fail(c, "sandbox_violation", text);
	} else {
		write_state(c, p, true);
	}
}

static bool is_done(const struct uar_tool_call *c, const struct process *p)
{
	switch (c->tool) {
	case PROCESS_RUN:
	case PROCESS_STOP: return !p->child;
	case PROCESS_START: return p->applied || !p->child;
	case PROCESS_READ: return !p->child || p->out.head.n || p->err.head.n;
	case PROCESS_WRITE: break;
	}
	return true;
}

void uar_process_changed(struct process *p)
{
	struct uar_tool_call *c = p->call;

	if (!c || !is_done(c, p))
		return;
	p->call = NULL;
	c->p = NULL;
	if (c->tool == PROCESS_RUN || (c->tool == PROCESS_START && !p->applied))
		end_run(c, p);
	else
		write_state(c, p, false);
	if (!p->interactive && !p->child)
		uar_process_free(p);
	uar_post(sched_of(c->host), &c->task);
}

/* How far it is; what it writes is told in events of its own. */
void uar_process_progress(struct process *p)
{
	enum { INTERVAL_US = 1000 * 1000 };
	struct uar_tool_call *c = p->call;
	struct uar_buf json = uar_buf_make(UAR_LIMIT_PROCESS_PIECE);
	struct uar_jw w = uar_jw_begin(&json);
	int64_t now = uar_clock_mono(sched_of(p->host)->clock);

	if (!c || c->tool != PROCESS_RUN || !c->events.progress ||
	    (c->progress_us && now - c->progress_us < INTERVAL_US))
		return;
	c->progress_us = now;
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "process_id", p->id);
	uar_jw_int(&w, "stdout_bytes", p->out.total);
	uar_jw_int(&w, "stderr_bytes", p->err.total);
	uar_jw_str(&w, "last_line", last_line(&p->out));
	uar_jw_close(&w);
	if (!uar_jw_end(&w))
		c->events.progress(c->events.ctx, uar_buf_str(&json));
	uar_buf_fini(&json);
}

static void on_timer(struct uar_timer *t)
{
	struct uar_tool_call *c = UAR_OWNER(t, struct uar_tool_call, timer);
	struct process *p = c->p;

	p->call = NULL;
	c->p = NULL;
	write_state(c, p, false);
	finish(c);
}

/* --- what each does ------------------------------------------------------------------------- */

static uar_err wait_for(struct uar_tool_call *c, struct process *p)
{
	if (p->call)
		return uar_error_set(&c->error, UAR_EBUSY, "another call waits for the process");
	c->p = p;
	p->call = c;
	uar_process_changed(p);
	return UAR_OK;
}

static uar_err begin_start(struct uar_tool_call *c, const struct uar_tool_request *r,
			   struct uar_error *error)
{
	struct process *p = NULL;
	uar_err e;

	if (!r->sandbox.n || !r->process_id.n || !r->caller)
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "commands are run for the runs of agents alone");
	e = uar_process_start(c->host, r, &p, error);
	if (e)
		return e;
	c->p = p;
	p->call = c;
	return UAR_OK;
}

static uar_err begin_read(struct uar_tool_call *c, struct process *p, const struct uar_json *input)
{
	double seconds = uar_json_double(uar_json_get(input, UAR_STR("wait_seconds")), 0);
	uar_err e = UAR_OK;

	if (seconds > 0 && !is_done(c, p))
		e = uar_timer_set(sched_of(c->host), &c->timer, (int64_t)(seconds * 1e6));
	if (!e && seconds > 0)
		return wait_for(c, p);
	if (!e) {
		write_state(c, p, false);
		uar_post(sched_of(c->host), &c->task);
	}
	return e;
}

static uar_err begin_write(struct uar_tool_call *c, struct process *p, const struct uar_json *input)
{
	uar_str bytes = uar_json_text(input, "input");
	bool end = uar_json_bool(uar_json_get(input, UAR_STR("eof")), false);
	struct uar_process_news n = { .kind = UAR_PROCESS_INPUT,
				      .text = uar_str_utf8_prefix(bytes, 512),
				      .bytes = (int64_t)bytes.n,
				      .end = end,
				      .by_type = UAR_STR("agent") };
	uar_err e = uar_process_write(p, bytes, end);

	if (e)
		return uar_error_set(&c->error, e, "the process does not take input: %s",
				     uar_err_text(e));
	uar_process_tell(p, &n);
	uar_buf_printf(&c->result, "{\"process_id\":\"%.*s\",\"status\":\"running\"}",
		       UAR_FMT(p->id));
	uar_post(sched_of(c->host), &c->task);
	return UAR_OK;
}

static uar_err begin_stop(struct uar_tool_call *c, struct process *p)
{
	const struct uar_process_stop stop = { p->id, UAR_STR("user"), UAR_STR("agent"),
					       UAR_STR("") };

	uar_process_stop(p, &stop);
	return wait_for(c, p);
}

static uar_err begin(struct uar_tool_call *c, const struct uar_tool_request *r,
		     struct uar_error *error)
{
	const struct uar_json *input = NULL;
	struct uar_arena arena;
	struct process *p;
	uar_str id;
	uar_err e;

	if (c->tool == PROCESS_RUN || c->tool == PROCESS_START)
		return begin_start(c, r, error);
	uar_arena_init(&arena, 0);
	e = uar_json_parse(r->input, NULL, &arena, &input, error);
	id = uar_json_text(input, "process_id");
	p = !e && r->caller ? uar_process_find(c->host, &r->caller->owner, id) : NULL;
	if (!e && (!p || !uar_str_eq(p->run_id, r->run_id))) {
		fail(c, "value_invalid",
		     "the run has no process of that id: it ended with its run "
		     "or with the server, or never was");
		uar_post(sched_of(c->host), &c->task);
	} else if (!e && c->tool == PROCESS_READ) {
		e = begin_read(c, p, input);
	} else if (!e && c->tool == PROCESS_WRITE) {
		e = begin_write(c, p, input);
	} else if (!e) {
		e = begin_stop(c, p);
	}
	if (e && c->error.text[0])
		*error = c->error;
	uar_arena_fini(&arena);
	return e;
}

/* --- the port ------------------------------------------------------------------------------- */

static int kind_of(const struct uar_tool *tool)
{
	int k = 0;

	while (k < PROCESS_TOOLS && !uar_str_eq(templates[k].tool_id, tool->tool_id))
		k++;
	return k;
}

static const struct uar_tool *at(struct uar_tools *t, size_t index)
{
	return index < PROCESS_TOOLS ? &host_of(t)->tools[index] : NULL;
}

static uar_err check(struct uar_tools *t, const struct uar_tool *tool, uar_str input,
		     struct uar_error *error)
{
	static const struct uar_json_limits limits = { .bytes = UAR_LIMIT_TOOL_INPUT };
	const struct uar_json *j;
	struct uar_arena arena;
	int k = kind_of(tool);
	uar_err e;

	if (k == PROCESS_TOOLS)
		return uar_error_set(error, UAR_ENOTFOUND, "there is no such tool");
	uar_arena_init(&arena, 0);
	e = uar_json_parse(input, &limits, &arena, &j, error);
	if (e && e != UAR_ENOMEM)
		e = UAR_EINVALID;
	else if (!e)
		e = uar_schema_check_text(host_of(t)->tools[k].input_schema, j, error);
	if (e && error)
		error->code = e;
	uar_arena_fini(&arena);
	return e;
}

static uar_err start(struct uar_tools *t, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct uar_tool_call *c = uar_zalloc(sizeof *c);
	struct uar_error unused = { 0 };
	uar_err e = c ? check(t, r->tool, r->input, error) : UAR_ENOMEM;

	if (e) {
		uar_free(c);
		return e;
	}
	c->host = host_of(t);
	c->tool = (enum process_tool)kind_of(r->tool);
	c->events = *events;
	c->task.fn = on_task;
	c->timer.fn = on_timer;
	c->result = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT);
	uar_list_add_last(&c->host->calls, &c->node);
	e = begin(c, r, error ? error : &unused);
	if (e) {
		free_call(c);
		return e;
	}
	*out = c;
	return UAR_OK;
}

static void cancel(struct uar_tools *t, struct uar_tool_call *c)
{
	static const struct uar_process_stop stop = { .reason = UAR_STR("parent_cancelled"),
						      .by_type = UAR_STR("runtime") };
	struct process *p = c->p;

	(void)t;
	free_call(c);
	if (p)
		uar_process_stop(p, &stop);
}

/* A command may have changed something from its first moment on: it is ended, and `done` tells. */
static bool withdraw(struct uar_tools *t, struct uar_tool_call *c)
{
	static const struct uar_process_stop stop = { .reason = UAR_STR("parent_cancelled"),
						      .by_type = UAR_STR("runtime") };

	if (c->tool != PROCESS_RUN && c->tool != PROCESS_START) {
		free_call(c);
		(void)t;
		return true;
	}
	if (c->p)
		uar_process_stop(c->p, &stop);
	return false;
}

static void destroy(struct uar_tools *t)
{
	struct uar_processes *h = host_of(t);

	while (!uar_list_empty(&h->calls))
		free_call(UAR_OWNER(h->calls.next, struct uar_tool_call, node));
	while (!uar_list_empty(&h->processes))
		uar_process_free(UAR_OWNER(h->processes.next, struct process, node));
	uar_free(h);
}

static const struct uar_tools_ops process_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.check = check,
	.start = start,
	.cancel = cancel,
	.withdraw = withdraw,
};

uar_err uar_processes_create(const struct uar_processes_options *o, struct uar_processes **out,
			     struct uar_error *error)
{
	struct uar_processes *h = uar_zalloc(sizeof *h);

	if (!h)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	for (int k = 0; k < PROCESS_TOOLS; k++) {
		h->tools[k] = templates[k];
		h->tools[k].input_schema = uar_str_c(inputs[k]);
		h->tools[k].output_schema = uar_str_c(result_schema);
	}
	h->base.ops = &process_ops;
	h->loop = o->loop;
	h->widest = o->widest;
	h->network = o->network;
	h->memory_bytes = o->memory_bytes;
	uar_list_init(&h->processes);
	uar_list_init(&h->calls);
	snprintf(h->dir, sizeof h->dir, "%s", o->dir);
	*out = h;
	return UAR_OK;
}

struct uar_tools *uar_processes_tools(struct uar_processes *p)
{
	return &p->base;
}

void uar_processes_listen(struct uar_processes *p, const struct uar_process_listener *l)
{
	p->listener = *l;
}

/* --- from outside of a call ----------------------------------------------------------------- */

bool uar_processes_has(struct uar_processes *h, const struct uar_owner *owner, uar_str process_id)
{
	const struct process *p = uar_process_find(h, owner, process_id);

	return p && p->child;
}

uar_err uar_processes_write(struct uar_processes *h, const struct uar_owner *owner,
			    uar_str process_id, uar_str bytes, bool end)
{
	struct process *p = uar_process_find(h, owner, process_id);

	return p ? uar_process_write(p, bytes, end) : UAR_ENOTFOUND;
}

uar_err uar_processes_stop(struct uar_processes *h, const struct uar_owner *owner,
			   const struct uar_process_stop *stop)
{
	struct process *p = uar_process_find(h, owner, stop->process_id);

	if (!p || !p->child)
		return UAR_ENOTFOUND;
	uar_process_stop(p, stop);
	return UAR_OK;
}

void uar_processes_leave(struct uar_processes *h, const struct uar_owner *owner, uar_str run_id)
{
	if (!h->count)
		return;
	UAR_LIST_EACH (it, &h->processes) {
		struct process *p = UAR_OWNER(it, struct process, node);

		if (!uar_str_eq(p->run_id, run_id) || !uar_owner_eq(&p->owner, owner) || p->call)
			continue;
		p->quiet = p->left = true;
		if (p->child)
			uar_child_kill(p->child);
		else
			uar_process_free(p);
	}
}
