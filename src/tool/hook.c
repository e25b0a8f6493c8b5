/* hook.c - the setting of hooks, and one call of one: a child process or a request. */
#include "tool/hook.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/list.h"
#include "json/json.h"
#include "loop/child.h"
#include "loop/client.h"
#include "tool/limits.h"

enum { ENV_ROOM = UAR_LIMIT_HOOK_ENV + 3, ARGS = UAR_LIMIT_HOOK_ARGS };

struct uar_hooks {
	struct uar_arena arena;
	struct uar_hook *at;
	size_t count;
	struct uar_loop *loop;
	struct uar_client *client;
	struct uar_list calls;
};

struct uar_hook_call {
	struct uar_list node;
	struct uar_hooks *hooks;
	struct uar_child *child;
	struct uar_call *request;
	struct uar_timer timer;
	struct uar_buf output;
	uar_hook_done_fn *done; /* NULL: nobody waits any more */
	void *ctx;
};

/* --- the setting ---------------------------------------------------------------------------- */

struct written {
	const struct uar_json *points, *tools, *command, *env, *send, *timeout;
	uar_str agents, url, risk, on_failure;
	bool optional;
};
static const struct uar_json_field fields[] = {
	{ "points", UAR_FIELD_ARRAY, true, offsetof(struct written, points) },
	{ "tools", UAR_FIELD_ARRAY, false, offsetof(struct written, tools) },
	{ "agents", UAR_FIELD_STR, false, offsetof(struct written, agents) },
	{ "command", UAR_FIELD_ARRAY, false, offsetof(struct written, command) },
	{ "url", UAR_FIELD_STR, false, offsetof(struct written, url) },
	{ "env", UAR_FIELD_ARRAY, false, offsetof(struct written, env) },
	{ "send", UAR_FIELD_ARRAY, false, offsetof(struct written, send) },
	{ "timeout_seconds", UAR_FIELD_ANY, false, offsetof(struct written, timeout) },
	{ "risk", UAR_FIELD_STR, false, offsetof(struct written, risk) },
	{ "on_failure", UAR_FIELD_STR, false, offsetof(struct written, on_failure) },
	{ "optional", UAR_FIELD_BOOL, false, offsetof(struct written, optional) },
};

static uar_err refuse(struct uar_error *error, uar_str id, const char *member, const char *why)
{
	uar_error_where(error, "/%.*s%s", UAR_FMT(uar_str_utf8_prefix(id, 64)), member);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

static bool are_texts(const struct uar_json *list, size_t most)
{
	if (list && list->count > most)
		return false;
	for (const struct uar_json *t = uar_json_first(list); t; t = t->next)
		if (t->kind != UAR_JSON_STRING || !t->text.n || memchr(t->text.p, 0, t->text.n))
			return false;
	return true;
}

static uar_err read_points(const struct written *w, struct uar_hook *h, struct uar_error *error)
{
	for (const struct uar_json *p = uar_json_first(w->points); p; p = p->next) {
		enum uar_hook_point point =
			uar_hook_point_parse(p->kind == UAR_JSON_STRING ? p->text : UAR_STR(""));

		if (point == UAR_HOOK_COUNT)
			return refuse(error, h->id, "/points",
				      "some of session_start, user_prompt_submit, pre_tool_use, "
				      "permission_request, post_tool_use, post_tool_failure, "
				      "post_sampling, stop");
		h->points |= 1u << point;
	}
	return h->points ? UAR_OK : refuse(error, h->id, "/points", "at least one point");
}

static uar_err read_risk(const struct written *w, struct uar_hook *h, struct uar_error *error)
{
	h->read_only = uar_str_is(w->risk, "read_only");
	if (w->risk.n && !h->read_only && !uar_str_is(w->risk, "high"))
		return refuse(error, h->id, "/risk", "high or read_only");
	h->fail_open = h->read_only && !uar_str_is(w->on_failure, "closed");
	if (w->on_failure.n && !uar_str_is(w->on_failure, "open") &&
	    !uar_str_is(w->on_failure, "closed"))
		return refuse(error, h->id, "/on_failure", "open or closed");
	if (uar_str_is(w->on_failure, "open") && !h->read_only)
		return refuse(error, h->id, "/on_failure",
			      "a hook of high risk fails closed; say \"risk\": \"read_only\" when "
			      "it decides nothing");
	return UAR_OK;
}

/* What is called, as events show it: no arguments, and no query, which may hold secrets. */
static uar_err read_handler(const struct written *w, struct uar_hook *h, struct uar_arena *a,
			    struct uar_error *error)
{
	bool program = w->command && w->command->count;

	if (program == (w->url.n > 0))
		return refuse(error, h->id, "", "either command or url");
	if (program && !are_texts(w->command, ARGS))
		return refuse(error, h->id, "/command", "a program and its arguments, as texts");
	if (!program && !uar_str_starts(w->url, UAR_STR("https://")) &&
	    !uar_str_starts(w->url, UAR_STR("http://")))
		return refuse(error, h->id, "/url", "a URL that begins with http:// or https://");
	if (!are_texts(w->env, UAR_LIMIT_HOOK_ENV))
		return refuse(error, h->id, "/env", "names of variables");
	h->command = program ? w->command : NULL;
	h->url = w->url.n ? uar_arena_str(a, w->url) : UAR_STR("");
	h->env = w->env;
	h->handler = program ? uar_arena_printf(a, "command:%.*s", UAR_FMT(w->command->first->text))
			     : uar_arena_str(a, uar_str_n(w->url.p, uar_str_find(w->url, '?')));
	return h->handler.p && h->url.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err read_hook(const struct uar_json *j, struct uar_arena *a, struct uar_hook *h,
			 struct uar_error *error)
{
	struct written w = { .agents = UAR_STR(""),
			     .url = UAR_STR(""),
			     .risk = UAR_STR(""),
			     .on_failure = UAR_STR("") };
	struct uar_error own = { 0 };
	uar_err e = uar_json_read(j, fields, ARRAY_LEN(fields), true, &w, &own);
	double seconds;

	h->id = j->key;
	if (e)
		return refuse(error, h->id, own.where, uar_error_text(&own));
	if (!uar_str_is_id(h->id))
		return refuse(error, h->id, "", "a name of letters, digits, - and _");
	seconds = uar_json_double(w.timeout, 10);
	if (seconds <= 0 || seconds > UAR_LIMIT_HOOK_SECONDS)
		return refuse(error, h->id, "/timeout_seconds", "more than 0, and at most 600");
	if (!are_texts(w.tools, UAR_LIMIT_HOOK_ENV))
		return refuse(error, h->id, "/tools", "patterns such as internal:fs.*");
	h->timeout_us = (int64_t)(seconds * 1e6);
	h->tools = w.tools;
	h->agents = w.agents;
	h->optional = w.optional;
	for (const struct uar_json *s = uar_json_first(w.send); s; s = s->next) {
		if (s->kind != UAR_JSON_STRING || !uar_str_is(s->text, "output"))
			return refuse(error, h->id, "/send", "[\"output\"]");
		h->wants_output = true;
	}
	e = read_points(&w, h, error);
	if (!e)
		e = read_risk(&w, h, error);
	return e ? e : read_handler(&w, h, a, error);
}

uar_err uar_hooks_read(uar_str json, struct uar_hooks **out, struct uar_error *error)
{
	struct uar_hooks *h = uar_zalloc(sizeof *h);
	const struct uar_json *j = NULL;
	uar_err e;

	if (!h)
		return UAR_ENOMEM;
	uar_arena_init(&h->arena, 0);
	uar_list_init(&h->calls);
	e = uar_json_parse_copy(json.n ? json : UAR_STR("{}"), NULL, &h->arena, &j, error);
	if (!e && (j->kind != UAR_JSON_OBJECT || j->count > UAR_LIMIT_HOOKS))
		e = uar_error_set(error, UAR_EINVALID, "an object of at most %d hooks",
				  UAR_LIMIT_HOOKS);
	if (!e) {
		h->at = uar_arena_alloc(&h->arena, (j->count + 1) * sizeof *h->at);
		e = h->at ? UAR_OK : UAR_ENOMEM;
	}
	for (const struct uar_json *k = e ? NULL : j->first; k && !e; k = k->next) {
		h->at[h->count] = (struct uar_hook){ .of = h };
		e = read_hook(k, &h->arena, &h->at[h->count++], error);
	}
	if (e)
		uar_hooks_destroy(h);
	else
		*out = h;
	return e;
}

static void free_call(struct uar_hook_call *c);

void uar_hooks_destroy(struct uar_hooks *h)
{
	if (!h)
		return;
	while (!uar_list_empty(&h->calls))
		free_call(UAR_OWNER(h->calls.next, struct uar_hook_call, node));
	uar_arena_fini(&h->arena);
	uar_free(h);
}

const struct uar_hook *uar_hooks_at(const struct uar_hooks *h, size_t index)
{
	return h && index < h->count ? &h->at[index] : NULL;
}

bool uar_hooks_have(const struct uar_hooks *h, enum uar_hook_point p)
{
	for (size_t i = 0; h && i < h->count; i++)
		if (h->at[i].points & 1u << p)
			return true;
	return false;
}

bool uar_hooks_need_client(const struct uar_hooks *h)
{
	for (size_t i = 0; h && i < h->count; i++)
		if (h->at[i].url.n)
			return true;
	return false;
}

void uar_hooks_attach(struct uar_hooks *h, struct uar_loop *loop, struct uar_client *client)
{
	h->loop = loop;
	h->client = client;
}

/* --- a call --------------------------------------------------------------------------------- */

static void free_call(struct uar_hook_call *c)
{
	uar_list_remove(&c->node);
	uar_timer_stop(uar_loop_sched(c->hooks->loop), &c->timer);
	uar_child_destroy(c->child);
	if (c->request)
		uar_call_cancel(c->request);
	uar_buf_fini(&c->output);
	uar_free(c);
}

static void tell(struct uar_hook_call *c, uar_err e, const char *why)
{
	uar_hook_done_fn *done = c->done;

	c->done = NULL;
	if (done)
		done(c->ctx, e, e ? UAR_STR("") : uar_buf_str(&c->output), why);
}

static void keep(struct uar_buf *to, uar_str bytes)
{
	uar_buf_add_str(to,
			uar_str_n(bytes.p, bytes.n < to->max - to->n ? bytes.n : to->max - to->n));
}

static void on_output(void *ctx, uar_str bytes)
{
	keep(&((struct uar_hook_call *)ctx)->output, bytes);
}

/* It is for the person who wrote the hook, and not told. */
static void on_errors(void *ctx, uar_str bytes)
{
	(void)ctx, (void)bytes;
}

static void on_exited(void *ctx, int status)
{
	struct uar_hook_call *c = ctx;
	char why[64];

	snprintf(why, sizeof why, "it ended with status %d", status);
	tell(c, status ? UAR_EUNKNOWN : UAR_OK, status ? why : "");
	free_call(c);
}

static uar_err on_data(void *ctx, uar_str bytes)
{
	keep(&((struct uar_hook_call *)ctx)->output, bytes);
	return UAR_OK;
}

static void on_answered(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_hook_call *c = ctx;
	char why[64];

	(void)body;
	c->request = NULL;
	snprintf(why, sizeof why, "it answered with status %d", status);
	if (!e && (status < 200 || status > 299))
		tell(c, UAR_EUNKNOWN, why);
	else
		tell(c, e, e ? reason : "");
	free_call(c);
}

/* A child is killed with all that it started, and freed when that is gone. */
static void on_timer(struct uar_timer *t)
{
	struct uar_hook_call *c = UAR_OWNER(t, struct uar_hook_call, timer);

	if (c->child)
		uar_child_kill(c->child);
	tell(c, UAR_ETIMEOUT, "it took too long");
	if (!c->child)
		free_call(c);
}

/* Nothing of the server's environment but what makes programs run, and what the setting names. */
static uar_err make_environment(const struct uar_hook *hook, struct uar_arena *a,
				const char *env[ENV_ROOM])
{
	const char *path = getenv("PATH");
	size_t n = 0;
	uar_str line = uar_arena_printf(a, "PATH=%s", path ? path : "/usr/bin:/bin");

	env[n++] = line.p;
	env[n++] = "LANG=C.UTF-8";
	for (const struct uar_json *v = uar_json_first(hook->env); v && line.p; v = v->next) {
		uar_str name = uar_arena_str(a, v->text);
		const char *value = name.p ? getenv(name.p) : NULL;

		if (!value)
			continue;
		line = uar_arena_printf(a, "%s=%s", name.p, value);
		env[n++] = line.p;
	}
	env[n] = NULL;
	return line.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err start_child(struct uar_hook_call *c, const struct uar_hook *hook, uar_str input)
{
	const char *argv[ARGS + 1], *env[ENV_ROOM];
	struct uar_child_options o = { .argv = argv,
				       .env = env,
				       .output = on_output,
				       .errors = on_errors,
				       .exited = on_exited,
				       .ctx = c };
	struct uar_error error = { 0 };
	struct uar_arena a;
	size_t n = 0;
	uar_err e;

	uar_arena_init(&a, 0);
	e = make_environment(hook, &a, env);
	for (const struct uar_json *t = hook->command->first; t && !e; t = t->next) {
		argv[n] = uar_arena_str(&a, t->text).p;
		e = argv[n++] ? UAR_OK : UAR_ENOMEM;
	}
	argv[n] = NULL;
	if (!e)
		e = uar_child_start(c->hooks->loop, &o, &c->child, &error);
	/* One that does not read what it is told may still answer. */
	if (!e && !uar_child_write(c->child, input))
		uar_child_end_input(c->child);
	uar_arena_fini(&a);
	return e;
}

static uar_err start_request(struct uar_hook_call *c, const struct uar_hook *hook, uar_str input)
{
	static const char *const headers[] = { "Content-Type: application/json",
					       "Accept: application/json", NULL };
	struct uar_call_options o = { .method = "POST",
				      .url = hook->url.p,
				      .headers = headers,
				      .body = input,
				      .total_timeout_us = -1, /* the hook's own is set */
				      .data = on_data,
				      .done = on_answered,
				      .ctx = c };
	struct uar_error error = { 0 };

	return c->hooks->client ? uar_client_call(c->hooks->client, &o, &c->request, &error)
				: UAR_EINTERNAL;
}

uar_err uar_hook_start(const struct uar_hook *hook, uar_str input, uar_hook_done_fn *done,
		       void *ctx, struct uar_hook_call **out)
{
	struct uar_hook_call *c = uar_zalloc(sizeof *c);
	struct uar_hooks *h = hook->of;
	uar_err e;

	if (!c)
		return UAR_ENOMEM;
	c->hooks = h;
	c->done = done;
	c->ctx = ctx;
	c->timer.fn = on_timer;
	/* One byte more than an answer may have: what is cut is refused. */
	c->output = uar_buf_make(UAR_LIMIT_HOOK_OUTPUT + 1);
	uar_list_add_last(&h->calls, &c->node);
	e = hook->command ? start_child(c, hook, input) : start_request(c, hook, input);
	if (!e)
		e = uar_timer_set(uar_loop_sched(h->loop), &c->timer, hook->timeout_us);
	if (e)
		free_call(c);
	else
		*out = c;
	return e;
}

void uar_hook_cancel(struct uar_hook_call *c)
{
	if (!c)
		return;
	c->done = NULL;
	if (c->child)
		uar_child_kill(c->child);
	else
		free_call(c);
}
