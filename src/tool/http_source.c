/* http_source.c - the list of HTTP tools, and the life of their calls. */
#include "tool/http_source.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/list.h"
#include "json/limits.h"
#include "loop/limits.h"
#include "tool/exchange.h"
#include "tool/http_int.h"

struct source {
	struct uar_tools base; /* first */
	struct uar_sched *sched;
	struct uar_client *client;
	const struct uar_secrets *secrets;
	bool only_granted;
	struct uar_arena arena; /* of the specs and the trees they point into */
	struct uar_http_spec *specs;
	size_t count;
	bool fetches; /* it has http.fetch alone */
	struct uar_list calls;
};

struct uar_tool_call {
	struct uar_list node;
	struct source *source;
	const struct uar_http_spec *spec;
	struct uar_tool_events events;
	struct uar_exchange *exchange;
	struct uar_http_filled filled;
	struct uar_timer timer;
	struct uar_task refused; /* tells of what went wrong before a request was made */
	uar_str category;
	struct uar_error error;
};

static struct source *source_of(struct uar_tools *t)
{
	return (struct source *)(void *)t;
}

/* --- the end of a call ------------------------------------------------------------------ */

static void forget(struct uar_tool_call *c)
{
	uar_list_remove(&c->node);
	uar_timer_stop(c->source->sched, &c->timer);
	uar_unpost(c->source->sched, &c->refused);
	uar_exchange_cancel(c->exchange);
	uar_http_filled_fini(&c->filled);
	uar_free(c);
}

/* Secrets that came back are hidden in all that is told. */
static void report(struct uar_tool_call *c, struct uar_tool_result *r)
{
	struct uar_buf output = uar_buf_make(2 * UAR_LIMIT_TOOL_OUTPUT);
	struct uar_buf message = uar_buf_make(4096);
	struct uar_tool_events events = c->events;

	size_t in_output = uar_secrets_hide(&c->filled.used, r->output, &output);
	size_t in_message = uar_secrets_hide(&c->filled.used, r->message, &message);

	r->secrets = r->ok ? in_output : in_message;
	if (output.err || message.err)
		*r = (struct uar_tool_result){ .category = UAR_STR("execution"),
					       .message = UAR_STR("the result cannot be kept") };
	else if (r->ok)
		r->output = uar_buf_str(&output);
	else
		r->message = uar_buf_str(&message);
	forget(c);
	events.done(events.ctx, r);
	uar_buf_fini(&output);
	uar_buf_fini(&message);
}

static void report_failure(struct uar_tool_call *c, const char *category, const char *text,
			   bool retryable)
{
	struct uar_tool_result r = { .category = uar_str_c(category),
				     .message = uar_str_c(text),
				     .retryable = retryable };

	report(c, &r);
}

static void on_refused(struct uar_task *t)
{
	struct uar_tool_call *c = UAR_OWNER(t, struct uar_tool_call, refused);

	/* Nothing was sent, so a retry is safe if the error is temporary. */
	report_failure(c, c->category.p, uar_error_text(&c->error),
		       uar_err_retryable(c->error.code));
}

static void on_timer(struct uar_timer *t)
{
	struct uar_tool_call *c = UAR_OWNER(t, struct uar_tool_call, timer);
	char text[120];

	snprintf(text, sizeof text, "no answer after %lld ms%s",
		 (long long)(c->spec->tool.timeout_us / 1000),
		 c->spec->tool.effect == UAR_TOOL_READ_ONLY ? "" : "; it may have taken effect");
	report_failure(c, "timeout", text, c->spec->tool.effect != UAR_TOOL_ONCE);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* No answer at all. */
static void report_unanswered(struct uar_tool_call *c, const struct uar_exchange_answer *a)
{
	const char *category = a->err == UAR_EFORBIDDEN ? "sandbox_violation"
			       : a->err == UAR_ETIMEOUT ? "timeout"
			       : a->err == UAR_ETOOBIG	? "result_too_large"
			       : a->err == UAR_EINVALID ? "value_invalid"
							: "dependency";
	bool retryable = (a->err == UAR_ENET || a->err == UAR_ETIMEOUT) &&
			 c->spec->tool.effect != UAR_TOOL_ONCE;
	char text[UAR_LIMIT_ERROR_TEXT];

	snprintf(text, sizeof text, "%s",
		 a->err == UAR_ETOOBIG ? "the answer is larger than an HTTP tool takes"
				       : a->reason);
	report_failure(c, category, text, retryable);
}

/* The service said no. */
static void report_status(struct uar_tool_call *c, const struct uar_exchange_answer *a)
{
	enum { SAID = 200 };
	bool busy = a->status == 408 || a->status == 425 || a->status == 429 || a->status >= 500;
	const char *category = busy				      ? "dependency"
			       : a->status == 401 || a->status == 403 ? "setup_missing"
			       : a->status >= 400		      ? "value_invalid"
								      : "execution";
	char text[UAR_LIMIT_ERROR_TEXT];

	snprintf(text, sizeof text, "the service answered with status %d%s%.*s", a->status,
		 a->body.n ? ": " : "", UAR_FMT(uar_str_utf8_prefix(a->body, SAID)));
	report_failure(c, category, text, busy && c->spec->tool.effect != UAR_TOOL_ONCE);
}

static bool is_json(uar_str body, struct uar_buf *out)
{
	struct uar_json_limits limits = { .foreign = true };
	struct uar_arena arena = { 0 };
	const struct uar_json *j = NULL;
	bool ok = uar_json_parse(body, &limits, &arena, &j, NULL) == UAR_OK;

	if (ok)
		uar_json_write(out, j);
	uar_arena_fini(&arena);
	return ok;
}

static void write_text(const struct uar_exchange_answer *a, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "text", a->body);
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !out->err)
		out->err = UAR_EINVALID;
}

static void report_answer(struct uar_tool_call *c, const struct uar_exchange_answer *a)
{
	struct uar_buf out = uar_buf_make(2 * UAR_LIMIT_TOOL_OUTPUT);
	struct uar_tool_part part = { .kind = uar_str_starts(a->content_type, UAR_STR("image/"))
						      ? UAR_TOOL_IMAGE
						      : UAR_TOOL_FILE,
				      .bytes = a->body,
				      .media_type = a->content_type };
	bool binary = part.kind == UAR_TOOL_IMAGE || !uar_utf8_valid(a->body);
	struct uar_tool_result r = { .ok = true };

	if (a->body.n && !binary && !is_json(a->body, &out))
		write_text(a, &out);
	r.output = uar_buf_str(&out);
	r.parts = binary && a->body.n ? &part : NULL;
	r.part_count = r.parts ? 1 : 0;
	if (out.err)
		r = (struct uar_tool_result){ .category = UAR_STR("result_too_large"),
					      .message = UAR_STR("the answer is too large") };
	report(c, &r);
	uar_buf_fini(&out);
}

/* A page that is not there is an answer, too: the model reads the status. */
static void report_fetched(struct uar_tool_call *c, const struct uar_exchange_answer *a)
{
	struct uar_buf out = uar_buf_make(2 * UAR_LIMIT_TOOL_OUTPUT);
	uar_str text = a->truncated ? uar_str_utf8_prefix(a->body, a->body.n) : a->body;
	struct uar_jw w = uar_jw_begin(&out);
	struct uar_tool_result r = { .ok = true };

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "url", a->url);
	uar_jw_int(&w, "status", a->status);
	uar_jw_str(&w, "content_type", a->content_type);
	uar_jw_str(&w, "text", uar_jw_fitting(text, UAR_LIMIT_TOOL_FETCH));
	uar_jw_bool(&w, "truncated",
		    a->truncated || uar_jw_fitting(text, UAR_LIMIT_TOOL_FETCH).n < text.n);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		r = (struct uar_tool_result){ .category = UAR_STR("result_too_large"),
					      .message = UAR_STR("the page is too large") };
	else if (!uar_utf8_valid(text))
		r = (struct uar_tool_result){ .category = UAR_STR("value_invalid"),
					      .message = UAR_STR("the page is no text in UTF-8") };
	r.output = r.ok ? uar_buf_str(&out) : UAR_STR_NONE;
	report(c, &r);
	uar_buf_fini(&out);
}

static void on_exchanged(void *ctx, const struct uar_exchange *x)
{
	struct uar_tool_call *c = ctx;
	struct uar_exchange_answer a = uar_exchange_answer(x);

	c->exchange = NULL; /* it goes by itself */
	if (a.err)
		report_unanswered(c, &a);
	else if (c->source->fetches)
		report_fetched(c, &a);
	else if (a.status < 200 || a.status > 299)
		report_status(c, &a);
	else
		report_answer(c, &a);
}

/* --- the beginning -------------------------------------------------------------------------- */

static uar_err fill(struct uar_tool_call *c, const struct uar_tool_request *r)
{
	struct uar_secrets_ask ask = { .secrets = c->source->secrets,
				       .agent = r->caller ? r->caller->agent_id : UAR_STR(""),
				       .tenant = r->caller ? r->caller->owner.tenant : UAR_STR(""),
				       .only_granted = c->source->only_granted };
	struct uar_arena arena = { 0 };
	const struct uar_json *args = NULL;
	uar_err e = uar_json_parse(r->input, NULL, &arena, &args, &c->error);

	if (!e && c->source->fetches) {
		c->filled.url = uar_buf_make(UAR_LIMIT_CLIENT_URL);
		uar_buf_add_str(&c->filled.url, uar_json_text(args, "url"));
		e = c->filled.url.err;
	} else if (!e) {
		e = uar_http_fill(c->spec, args, &ask, &c->filled, &c->error);
	}
	uar_arena_fini(&arena);
	return e;
}

static uar_err send(struct uar_tool_call *c)
{
	bool fetches = c->source->fetches;
	struct uar_exchange_options o = {
		.client = c->source->client,
		.method = c->spec->method.p,
		.url = c->filled.url.p ? c->filled.url.p : "",
		.headers = c->filled.headers,
		.body = uar_buf_str(&c->filled.body),
		.once = c->spec->tool.effect == UAR_TOOL_ONCE,
		.max_bytes = fetches ? UAR_LIMIT_TOOL_FETCH : UAR_LIMIT_TOOL_HTTP_ANSWER,
		.cut = fetches,
		.timed = true,
		.done = on_exchanged,
		.ctx = c,
	};

	return uar_exchange_begin(&o, &c->exchange, &c->error);
}

/* What cannot be sent is told like an answer. */
static void begin(struct uar_tool_call *c, const struct uar_tool_request *r)
{
	uar_err e = fill(c, r);

	if (!e)
		e = uar_timer_set(c->source->sched, &c->timer, c->spec->tool.timeout_us);
	if (!e)
		e = send(c);
	if (!e)
		return;
	c->category = e == UAR_ENOTFOUND    ? UAR_STR("setup_missing")
		      : e == UAR_EFORBIDDEN ? UAR_STR("policy_denied")
		      : e == UAR_EINVALID   ? UAR_STR("value_invalid")
					    : UAR_STR("execution");
	c->error.code = e;
	uar_post(c->source->sched, &c->refused);
}

/* --- the port ------------------------------------------------------------------------------- */

static const struct uar_tool *at(struct uar_tools *t, size_t index)
{
	return index < source_of(t)->count ? &source_of(t)->specs[index].tool : NULL;
}

static uar_err start(struct uar_tools *t, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct source *s = source_of(t);
	struct uar_tool_call *c;
	size_t i = 0;

	while (i < s->count && !uar_str_eq(s->specs[i].tool.tool_id, r->tool->tool_id))
		i++;
	if (i == s->count)
		return uar_error_set(error, UAR_ENOTFOUND, "there is no such tool");
	c = uar_zalloc(sizeof *c);
	if (!c)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	c->source = s;
	c->spec = &s->specs[i];
	c->events = *events;
	c->timer.fn = on_timer;
	c->refused.fn = on_refused;
	uar_list_add_last(&s->calls, &c->node);
	begin(c, r);
	*out = c;
	return UAR_OK;
}

static void cancel(struct uar_tools *t, struct uar_tool_call *c)
{
	(void)t;
	forget(c);
}

/* Whether a request has arrived is known to the service alone. */
static bool withdraw(struct uar_tools *t, struct uar_tool_call *c)
{
	if (c->exchange && c->spec->tool.effect != UAR_TOOL_READ_ONLY)
		return false;
	cancel(t, c);
	return true;
}

static void destroy(struct uar_tools *t)
{
	struct source *s = source_of(t);

	while (!uar_list_empty(&s->calls))
		forget(UAR_OWNER(s->calls.next, struct uar_tool_call, node));
	uar_arena_fini(&s->arena);
	uar_free(s);
}

static const struct uar_tools_ops http_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.start = start,
	.cancel = cancel,
	.withdraw = withdraw,
};

static struct source *create(struct uar_sched *sched, struct uar_client *client)
{
	struct source *s = uar_zalloc(sizeof *s);

	if (!s)
		return NULL;
	s->base.ops = &http_ops;
	s->sched = sched;
	s->client = client;
	uar_list_init(&s->calls);
	return s;
}

/* --- declarations --------------------------------------------------------------------------- */

static uar_err copy_tree(struct source *s, const struct uar_json *j, const struct uar_json **out,
			 struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e;

	uar_json_write(&b, j);
	e = b.err ? b.err : uar_json_parse_copy(uar_buf_str(&b), NULL, &s->arena, out, error);
	uar_buf_fini(&b);
	return e;
}

static void name_place(struct uar_error *error, const char *list, size_t index)
{
	struct uar_error as;

	if (!error)
		return;
	as = *error;
	uar_error_where(error, "/%s/%zu%.100s", list, index, as.where);
}

static uar_err add_specs(struct source *s, const struct uar_http_spec *more, size_t n)
{
	struct uar_http_spec *all = uar_arena_alloc(&s->arena, (s->count + n) * sizeof *all);

	if (!all)
		return UAR_ENOMEM;
	if (s->count)
		memcpy(all, s->specs, s->count * sizeof *all);
	memcpy(all + s->count, more, n * sizeof *all);
	s->specs = all;
	s->count += n;
	return UAR_OK;
}

static uar_err read_http(struct source *s, const struct uar_json *list, struct uar_error *error)
{
	size_t i = 0;
	uar_err e = UAR_OK;

	for (const struct uar_json *j = uar_json_first(list); j && !e; j = j->next, i++) {
		struct uar_http_spec spec;

		e = uar_http_spec_read(j, &s->arena, &spec, error);
		if (!e)
			e = add_specs(s, &spec, 1);
		if (e)
			name_place(error, "http", i);
	}
	return e;
}

static uar_err read_openapi(struct source *s, const struct uar_json *list, struct uar_error *error)
{
	size_t i = 0;
	uar_err e = UAR_OK;

	for (const struct uar_json *j = uar_json_first(list); j && !e; j = j->next, i++) {
		struct uar_openapi_options o = { .base_url = UAR_STR("") };
		static const struct uar_json_field fields[] = {
			{ "document", UAR_FIELD_OBJECT, true,
			  offsetof(struct uar_openapi_options, document) },
			{ "operations", UAR_FIELD_ARRAY, false,
			  offsetof(struct uar_openapi_options, only) },
			{ "headers", UAR_FIELD_OBJECT, false,
			  offsetof(struct uar_openapi_options, headers) },
			{ "base_url", UAR_FIELD_STR, false,
			  offsetof(struct uar_openapi_options, base_url) },
		};
		struct uar_http_spec *specs = NULL;
		size_t n = 0;

		e = uar_json_read(j, fields, ARRAY_LEN(fields), true, &o, error);
		if (!e)
			e = uar_openapi_read(&o, &s->arena, &specs, &n, error);
		if (!e && n)
			e = add_specs(s, specs, n);
		if (e)
			name_place(error, "openapi", i);
	}
	return e;
}

uar_err uar_http_tools_create(const struct uar_http_tools_options *o, struct uar_tools **out,
			      struct uar_error *error)
{
	struct source *s = create(o->sched, o->client);
	const struct uar_json *http = NULL, *openapi = NULL;
	uar_err e = UAR_OK;

	if (!s)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	s->secrets = o->secrets;
	s->only_granted = o->only_granted;
	if (o->http)
		e = copy_tree(s, o->http, &http, error);
	if (!e && o->openapi)
		e = copy_tree(s, o->openapi, &openapi, error);
	if (!e)
		e = read_http(s, http, error);
	if (!e)
		e = read_openapi(s, openapi, error);
	if (e) {
		destroy(&s->base);
		return e;
	}
	*out = &s->base;
	return UAR_OK;
}

uar_err uar_fetch_tool_create(struct uar_sched *sched, struct uar_client *client,
			      struct uar_tools **out)
{
	static struct uar_http_spec fetch = {
		.method = UAR_STR("GET"),
		.tool = { .tool_id = UAR_STR("internal:http.fetch"),
			  .name = UAR_STR("http.fetch"),
			  .description =
				  UAR_STR("Reads a text from the web: a page or a file behind "
					  "an http or https address that is public."),
			  .version = UAR_STR("1"),
			  .transport = UAR_STR("internal"),
			  .tags = UAR_STR("[\"web\"]"),
			  .capabilities = UAR_STR("[\"network\"]"),
			  .input_schema = UAR_STR(
				  "{\"type\":\"object\",\"required\":[\"url\"],\"properties\":{"
				  "\"url\":{\"type\":\"string\",\"pattern\":\"^https?://\","
				  "\"maxLength\":8192}},\"additionalProperties\":false}"),
			  .output_schema = UAR_STR(
				  "{\"type\":\"object\",\"required\":[\"url\",\"status\",\"text\","
				  "\"truncated\"],\"properties\":{\"url\":{\"type\":\"string\"},"
				  "\"status\":{\"type\":\"integer\"},\"content_type\":{\"type\":"
				  "\"string\"},\"text\":{\"type\":\"string\"},\"truncated\":{"
				  "\"type\":\"boolean\"}}}"),
			  .effect = UAR_TOOL_READ_ONLY,
			  .ask = true, /* an address can carry what a model knows */
			  .timeout_us = 30 * 1000 * 1000 },
	};
	struct source *s = create(sched, client);

	if (!s)
		return UAR_ENOMEM;
	s->fetches = true;
	s->specs = &fetch;
	s->count = 1;
	*out = &s->base;
	return UAR_OK;
}
