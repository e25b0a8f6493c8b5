/* exchange.c - calls, one after the other as redirects lead on. */
#include "tool/exchange.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "loop/limits.h"
#include "tool/limits.h"

struct uar_exchange {
	struct uar_exchange_options o;
	struct uar_arena arena;
	struct uar_call *call;
	struct uar_buf url, location, type, body, error_body;
	const char **headers;
	uar_str origin; /* of the first request */
	unsigned redirects;
	bool truncated;
	struct uar_exchange_answer answer;
};

/* --- addresses --------------------------------------------------------------------------- */

static size_t origin_length(uar_str url)
{
	size_t n = uar_str_find(url, ':') + 3;

	while (n < url.n && !strchr("/?#", url.p[n]))
		n++;
	return n < url.n ? n : url.n;
}

static bool has_scheme(uar_str s)
{
	size_t colon = uar_str_find(s, ':');

	return colon < s.n && colon < uar_str_find(s, '/') && colon < uar_str_find(s, '?') &&
	       colon < uar_str_find(s, '#');
}

static bool starts_nocase(uar_str s, uar_str prefix)
{
	return s.n >= prefix.n && uar_str_eq_nocase(uar_str_n(s.p, prefix.n), prefix);
}

/* The URL up to its last slash, or its query. */
static size_t stem_length(uar_str base, bool keep_name)
{
	size_t origin = origin_length(base), n = origin;

	while (n < base.n && base.p[n] != '?' && base.p[n] != '#')
		n++;
	while (!keep_name && n > origin && base.p[n - 1] != '/')
		n--;
	return n;
}

uar_err uar_url_resolve(uar_str base, uar_str location, struct uar_buf *out)
{
	static const uar_str web[] = { UAR_STR("https://"), UAR_STR("http://") };

	for (size_t i = 0; i < ARRAY_LEN(web); i++)
		if (starts_nocase(location, web[i])) {
			uar_buf_add_str(out, web[i]);
			uar_buf_add_str(out, uar_str_from(location, web[i].n));
			return out->err;
		}
	if (has_scheme(location))
		return UAR_EINVALID;
	if (uar_str_starts(location, UAR_STR("//")))
		uar_buf_add(out, base.p, uar_str_find(base, '/'));
	else if (uar_str_starts(location, UAR_STR("/")))
		uar_buf_add(out, base.p, origin_length(base));
	else
		uar_buf_add(out, base.p,
			    stem_length(base, !location.n || location.p[0] == '?' ||
						      location.p[0] == '#'));
	if (location.n && !strchr("/?#", location.p[0]) && out->n == origin_length(base))
		uar_buf_add_char(out, '/');
	uar_buf_add_str(out, location);
	return out->err;
}

/* --- the end -------------------------------------------------------------------------------- */

static void destroy(struct uar_exchange *x)
{
	uar_buf_fini(&x->url);
	uar_buf_fini(&x->location);
	uar_buf_fini(&x->type);
	uar_buf_fini(&x->body);
	uar_buf_fini(&x->error_body);
	uar_arena_fini(&x->arena);
	uar_free(x);
}

static void finish(struct uar_exchange *x, uar_err e, const char *reason)
{
	x->call = NULL;
	x->answer.err = e;
	x->answer.reason = reason;
	x->answer.truncated = x->truncated;
	x->answer.content_type = uar_buf_str(&x->type);
	x->answer.url = uar_buf_str(&x->url);
	x->answer.body = uar_buf_str(
		x->answer.status >= 200 && x->answer.status <= 299 ? &x->body : &x->error_body);
	x->o.done(x->o.ctx, x);
	destroy(x);
}

struct uar_exchange_answer uar_exchange_answer(const struct uar_exchange *x)
{
	return x->answer;
}

/* --- a request ------------------------------------------------------------------------------- */

static uar_err send(struct uar_exchange *x, struct uar_error *error);

static void on_header(void *ctx, uar_str name, uar_str value)
{
	struct uar_exchange *x = ctx;
	struct uar_buf *to = uar_str_eq_nocase(name, UAR_STR("location"))	? &x->location
			     : uar_str_eq_nocase(name, UAR_STR("content-type")) ? &x->type
										: NULL;

	if (!to)
		return;
	uar_buf_clear(to);
	uar_buf_add_str(to, value);
}

/* What is beyond the limit ends the call, which then has ended well or not. */
static uar_err on_data(void *ctx, uar_str bytes)
{
	struct uar_exchange *x = ctx;
	size_t room = x->o.max_bytes - x->body.n;

	uar_buf_add(&x->body, bytes.p, bytes.n < room ? bytes.n : room);
	if (bytes.n > room) {
		x->truncated = true;
		return UAR_ETOOBIG;
	}
	return x->body.err;
}

static bool leads_on(const struct uar_exchange *x, int status)
{
	bool reads = strcmp(x->o.method, "GET") == 0 || strcmp(x->o.method, "HEAD") == 0;

	return reads && x->location.n && !x->location.err &&
	       (status == 301 || status == 302 || status == 303 || status == 307 || status == 308);
}

static void follow(struct uar_exchange *x)
{
	struct uar_buf next = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	struct uar_error error = { 0 };
	uar_err e = uar_url_resolve(uar_buf_str(&x->url), uar_buf_str(&x->location), &next);

	if (++x->redirects > UAR_LIMIT_TOOL_REDIRECTS)
		e = uar_error_set(&error, UAR_ENET, "it leads from one address to the next");
	else if (e)
		(void)uar_error_set(&error, e,
				    "it leads to an address that is neither http nor "
				    "https");
	uar_buf_fini(&x->url);
	x->url = next;
	if (!e)
		e = send(x, &error);
	if (e)
		finish(x, e, uar_error_text(&error));
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_exchange *x = ctx;

	x->answer.status = status;
	x->answer.retry_after_us = uar_call_retry_after_us(x->call);
	if (e == UAR_ETOOBIG && x->truncated && x->o.cut)
		e = UAR_OK;
	if (!e && leads_on(x, status)) {
		follow(x);
		return;
	}
	uar_buf_clear(&x->error_body);
	uar_buf_add_str(&x->error_body, body);
	finish(x, e, reason);
}

static uar_err send(struct uar_exchange *x, struct uar_error *error)
{
	uar_str url = uar_buf_str(&x->url);
	bool same = uar_str_eq(uar_str_n(url.p, origin_length(url)), x->origin);
	struct uar_call_options o = {
		.method = x->o.method,
		.url = x->url.p,
		.headers = same ? (const char *const *)x->headers : NULL,
		.body = x->o.body,
		.total_timeout_us = x->o.timed ? -1 : 0,
		.guarded = !x->o.own,
		.once = x->o.once,
		.header = on_header,
		.data = on_data,
		.done = on_done,
		.ctx = x,
	};

	uar_buf_clear(&x->location);
	uar_buf_clear(&x->body);
	x->truncated = false;
	return uar_client_call(x->o.client, &o, &x->call, error);
}

static uar_err copy(struct uar_exchange *x, const struct uar_exchange_options *o)
{
	size_t n = 0;

	while (o->headers && o->headers[n])
		n++;
	x->headers = uar_arena_alloc(&x->arena, (n + 1) * sizeof *x->headers);
	for (size_t i = 0; x->headers && i < n; i++)
		if (!(x->headers[i] = uar_arena_str(&x->arena, uar_str_c(o->headers[i])).p))
			return UAR_ENOMEM;
	x->o.method = uar_arena_str(&x->arena, uar_str_c(o->method)).p;
	x->o.body = uar_arena_str(&x->arena, o->body);
	x->origin = uar_arena_str(&x->arena, uar_str_n(o->url, origin_length(uar_str_c(o->url))));
	uar_buf_add_str(&x->url, uar_str_c(o->url));
	return x->headers && x->o.method && x->o.body.p && x->origin.p && !x->url.err ? UAR_OK
										      : UAR_ENOMEM;
}

uar_err uar_exchange_begin(const struct uar_exchange_options *o, struct uar_exchange **out,
			   struct uar_error *error)
{
	struct uar_exchange *x = uar_zalloc(sizeof *x);
	uar_err e;

	if (!x)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	x->o = *o;
	x->url = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	x->location = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	x->type = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	x->body = uar_buf_make(o->max_bytes + 1);
	x->error_body = uar_buf_make(UAR_LIMIT_CLIENT_ERROR_BODY);
	e = copy(x, o);
	e = e ? uar_error_set(error, e, "%s", uar_err_text(e)) : send(x, error);
	if (e)
		destroy(x);
	else
		*out = x;
	return e;
}

void uar_exchange_cancel(struct uar_exchange *x)
{
	if (!x)
		return;
	uar_call_cancel(x->call);
	destroy(x);
}
