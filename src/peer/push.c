/* push.c - one notification is one POST; its answer is a status and nothing else.
 *
 * The whole of it has UAR_LIMIT_PUSH_SECONDS: the call to a receiver that hangs, or sends its
 * answer byte by byte, is cancelled then. Redirects are not followed, and the receiver's text is
 * not read. */
#include "peer/push.h"

#include "base/address.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/list.h"
#include "peer/limits.h"

struct pushes {
	struct uar_pushes base;
	struct uar_client *client;
	struct uar_list under_way; /* of struct posting */
};

struct posting {
	struct uar_list node;
	struct pushes *of;
	struct uar_push_post *post;
	struct uar_call *call;
	struct uar_timer bound;
	size_t bytes; /* of the answer */
};

static bool is_good(int status)
{
	return status >= 200 && status < 300;
}

static void free_posting(struct posting *g)
{
	uar_timer_stop(uar_client_sched(g->of->client), &g->bound);
	uar_list_remove(&g->node);
	uar_free(g);
}

static void end(struct posting *g)
{
	struct uar_push_post *post = g->post;

	free_posting(g);
	post->internal = NULL;
	post->done(post);
}

static void on_bound(struct uar_timer *t)
{
	struct posting *g = UAR_OWNER(t, struct posting, bound);

	g->post->taken = is_good(uar_call_status(g->call));
	snprintf(g->post->reason, sizeof g->post->reason, "no whole answer in %d seconds",
		 UAR_LIMIT_PUSH_SECONDS);
	uar_call_cancel(g->call);
	end(g);
}

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct posting *g = ctx;

	g->bytes += bytes.n;
	return g->bytes > UAR_LIMIT_A2A_ANSWER ? UAR_ETOOBIG : UAR_OK;
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct posting *g = ctx;
	struct uar_push_post *post = g->post;

	(void)body;
	(void)reason; /* where notifications go is a secret, and that text may name it */
	post->taken = is_good(status); /* however its text ended */
	post->retry_after_us = uar_call_retry_after_us(g->call);
	if (e && !post->taken)
		snprintf(post->reason, sizeof post->reason, "%s", uar_call_failure(g->call));
	else
		snprintf(post->reason, sizeof post->reason, "status %d", status);
	end(g);
}

static uar_err refuse(struct uar_error *error, const char *why)
{
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

/* How many bytes of it the scheme is; 0: it is none that is called. */
static size_t scheme_of(uar_str url)
{
	static const uar_str schemes[] = { UAR_STR("http://"), UAR_STR("https://") };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (url.n >= schemes[i].n &&
		    uar_str_eq_nocase(uar_str_n(url.p, schemes[i].n), schemes[i]))
			return schemes[i].n;
	return 0;
}

/* "" or ":PORT" */
static bool is_port(uar_str s)
{
	uint64_t port;

	return !s.n || (s.p[0] == ':' && !uar_str_u64(uar_str_from(s, 1), &port) && port >= 1 &&
			port <= UINT16_MAX);
}

/* NULL: it is a host, maybe with a port. */
static const char *fault_of_host(uar_str text)
{
	bool brackets = text.n && text.p[0] == '[';
	size_t end = uar_str_find(text, brackets ? ']' : ':');
	struct uar_address a;

	if (uar_str_find(text, '@') < text.n)
		return "the URL must not contain a user name";
	if (!end)
		return "the URL must contain a host";
	if (brackets && end++ == text.n)
		return "the URL has a [ without its ]";
	if (!is_port(uar_str_from(text, end)))
		return "the port must be 1 to 65535";
	if (!uar_address_read_host(text, &a) || (brackets && a.kind != UAR_ADDRESS_IPV6))
		return "the host in [] must be an IPv6 address without a zone";
	for (size_t i = 0; i < end && !brackets; i++)
		if (strchr("!\"$%&'()*+,;<=>[]^`{|}~", text.p[i]))
			return "the host must consist of letters, digits, dots and hyphens";
	return NULL;
}

static const char *fault_of(uar_str url)
{
	size_t at = scheme_of(url), end = at;

	if (!at)
		return "the URL must begin with http:// or https://";
	if (!uar_str_is_visible(url))
		return "the URL must consist of visible ASCII characters";
	if (uar_str_find(url, '#') < url.n || uar_str_find(url, '\\') < url.n)
		return "the URL must not contain # or a backslash";
	while (end < url.n && url.p[end] != '/' && url.p[end] != '?')
		end++;
	return fault_of_host(uar_str_n(url.p + at, end - at));
}

static uar_err check(struct uar_pushes *base, uar_str url, struct uar_error *error)
{
	const struct pushes *p = UAR_OWNER(base, struct pushes, base);
	const char *fault = fault_of(url);

	if (fault)
		return refuse(error, fault);
	if (uar_client_bars(p->client, url))
		return refuse(error, "the address is not public, and calls to it are not allowed "
				     "(outbound_allow)");
	return UAR_OK;
}

/* The headers of a post; their values were checked by who took them in. */
static uar_err put_headers(struct uar_arena *arena, const struct uar_push_post *post,
			   const char *out[3])
{
	out[0] = uar_arena_printf(arena, "Content-Type: %.*s", UAR_FMT(post->content_type)).p;
	out[1] = out[2] = NULL;
	if (post->authorization.n)
		out[1] =
			uar_arena_printf(arena, "Authorization: %.*s", UAR_FMT(post->authorization))
				.p;
	else if (post->token.n)
		out[1] = uar_arena_printf(arena, "X-A2A-Notification-Token: %.*s",
					  UAR_FMT(post->token))
				 .p;
	return out[0] && (out[1] || (!post->authorization.n && !post->token.n)) ? UAR_OK
										: UAR_ENOMEM;
}

static uar_err begin(struct posting *g, struct uar_push_post *post)
{
	struct uar_arena arena = { 0 };
	const char *headers[3];
	struct uar_call_options o = {
		.method = "POST",
		.headers = headers,
		.body = post->body,
		.connect_timeout_us = UAR_LIMIT_PUSH_SECONDS * 1000000LL,
		.idle_timeout_us = UAR_LIMIT_PUSH_SECONDS * 1000000LL,
		.guarded = true,
		.max_error_body = UAR_LIMIT_A2A_ANSWER,
		.data = on_data,
		.done = on_done,
		.ctx = g,
	};
	uar_err e = put_headers(&arena, post, headers);

	o.url = uar_arena_str(&arena, post->url).p;
	if (!e && !o.url)
		e = UAR_ENOMEM;
	if (!e)
		e = uar_client_call(g->of->client, &o, &g->call, NULL);
	uar_arena_fini(&arena);
	return e;
}

static uar_err post_one(struct uar_pushes *base, struct uar_push_post *post)
{
	struct pushes *p = UAR_OWNER(base, struct pushes, base);
	struct posting *g = uar_zalloc(sizeof *g);
	uar_err e;

	if (!g)
		return UAR_ENOMEM;
	g->of = p;
	g->post = post;
	g->bound.fn = on_bound;
	uar_list_add_last(&p->under_way, &g->node);
	post->taken = false;
	post->reason[0] = 0;
	post->retry_after_us = 0;
	e = begin(g, post);
	if (!e) {
		e = uar_timer_set(uar_client_sched(p->client), &g->bound,
				  UAR_LIMIT_PUSH_SECONDS * 1000000LL);
		if (e)
			uar_call_cancel(g->call);
	}
	if (e)
		free_posting(g);
	else
		post->internal = g;
	return e;
}

static void cancel(struct uar_pushes *base, struct uar_push_post *post)
{
	struct posting *g = post->internal;

	(void)base;
	if (!g)
		return;
	post->internal = NULL;
	uar_call_cancel(g->call);
	free_posting(g);
}

static void destroy(struct uar_pushes *base)
{
	struct pushes *p = UAR_OWNER(base, struct pushes, base);

	UAR_LIST_EACH (it, &p->under_way)
		cancel(base, UAR_OWNER(it, struct posting, node)->post);
	uar_free(p);
}

static const struct uar_pushes_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = destroy,
	.check = check,
	.post = post_one,
	.cancel = cancel,
};

uar_err uar_pushes_http_create(struct uar_client *client, struct uar_pushes **out)
{
	struct pushes *p = uar_zalloc(sizeof *p);

	if (!p)
		return UAR_ENOMEM;
	p->base.ops = &ops;
	p->client = client;
	uar_list_init(&p->under_way);
	*out = &p->base;
	return UAR_OK;
}

void uar_pushes_destroy(struct uar_pushes *p)
{
	if (p)
		p->ops->destroy(p);
}
