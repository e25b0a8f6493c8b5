/* peer.c - messages to other runtimes over HTTP, and what their answers mean.
 *
 * 2xx: it is in the inbox there. A few 4xx: the message itself is refused, and would be
 * again. Everything else (no answer, 5xx, a credential or an address that is wrong, too
 * many at once) may pass, or somebody may mend it: the caller tries again, which the peer
 * notices by the message's id. */
#include "peer/peer.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/list.h"
#include "json/json.h"
#include "peer/limits.h"

enum { CONNECT_US = 10000000, IDLE_US = 60000000 };

struct peer {
	uar_str name;
	const char *url;
	const char *headers[4]; /* the last is NULL */
};

struct peers {
	struct uar_peers base;
	struct uar_client *client;
	struct uar_arena arena;
	struct peer *at;
	size_t count;
	struct uar_list under_way; /* of struct sending */
};

struct sending {
	struct uar_list node;
	struct uar_delivery *d;
	struct uar_call *call;
	const struct uar_clock *clock;
	size_t bytes; /* of the answer */
	int64_t since_us;
};

static struct peers *of(struct uar_peers *base)
{
	return UAR_OWNER(base, struct peers, base);
}

/* --- names ------------------------------------------------------------------------------ */

bool uar_peer_address_read(uar_str text, uar_str *out_name, uar_str *out_url)
{
	uar_str url = UAR_STR_NONE, name = uar_str_cut(text, '=', &url);
	size_t scheme = uar_str_starts(url, UAR_STR("http://"))	   ? 7
			: uar_str_starts(url, UAR_STR("https://")) ? 8
								   : 0;

	while (url.n && url.p[url.n - 1] == '/')
		url.n--;
	if (!uar_peer_name_valid(name) || !scheme || url.n <= scheme || url.p[scheme] == '/' ||
	    uar_str_find(url, '?') < url.n || uar_str_find(url, '#') < url.n ||
	    uar_str_find(url, '@') < url.n || !uar_str_is_visible(url))
		return false;
	*out_name = name;
	*out_url = url;
	return true;
}

static const struct peer *find(const struct peers *p, uar_str name)
{
	for (size_t i = 0; i < p->count; i++)
		if (uar_str_eq(p->at[i].name, name))
			return &p->at[i];
	return NULL;
}

static uar_str name_at(struct uar_peers *base, size_t index)
{
	const struct peers *p = of(base);

	return index < p->count ? p->at[index].name : UAR_STR_NONE;
}

/* --- one message ---------------------------------------------------------------------------- */

static void free_sending(struct sending *s)
{
	uar_list_remove(&s->node);
	uar_free(s);
}

/* What the peer says about it, if it says it as we do. */
static void explain(struct uar_delivery *d, int status, uar_str body)
{
	struct uar_arena arena = { 0 };
	const struct uar_json *j = NULL;
	uar_str code = UAR_STR_NONE, detail = UAR_STR_NONE;

	if (!uar_json_parse(body, NULL, &arena, &j, NULL)) {
		code = uar_json_str(uar_json_get(j, UAR_STR("code")), UAR_STR_NONE);
		detail = uar_json_str(uar_json_get(j, UAR_STR("detail")), UAR_STR_NONE);
	}
	snprintf(d->reason, sizeof d->reason, "%d %.*s%s%.*s", status, UAR_FMT(code),
		 detail.n ? ": " : "", UAR_FMT(uar_str_utf8_prefix(detail, 120)));
	uar_arena_fini(&arena);
}

static bool is_good(int status)
{
	return status >= 200 && status < 300;
}

static enum uar_delivery_how how_of(int status)
{
	switch (status) {
	case 400:
	case 409:
	case 413:
	case 415:
	case 422: return UAR_DELIVERY_REFUSED;
	default: return is_good(status) ? UAR_DELIVERED : UAR_DELIVERY_FAILED;
	}
}

/* Bytes of a 2xx answer. That it is there is all we want to know: neither a long nor a
 * slow one may hold up what waits behind the message. */
static uar_err on_data(void *ctx, uar_str bytes)
{
	struct sending *s = ctx;
	int64_t now_us = uar_clock_mono(s->clock);

	if (!s->bytes)
		s->since_us = now_us;
	s->bytes += bytes.n;
	return s->bytes > UAR_LIMIT_A2A_ANSWER || now_us - s->since_us > IDLE_US ? UAR_ETOOBIG
										 : UAR_OK;
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct sending *s = ctx;
	struct uar_delivery *d = s->d;

	if (is_good(status)) /* however its text ended */
		e = UAR_OK;
	d->how = e ? UAR_DELIVERY_FAILED : how_of(status);
	d->retry_after_us = uar_call_retry_after_us(s->call);
	if (e)
		snprintf(d->reason, sizeof d->reason, "%s", reason ? reason : uar_err_text(e));
	else
		explain(d, status, body);
	free_sending(s);
	d->internal = NULL;
	d->done(d);
}

static uar_err deliver(struct uar_peers *base, struct uar_delivery *d)
{
	struct peers *p = of(base);
	const struct peer *to = find(p, d->peer);
	struct sending *s = to ? uar_zalloc(sizeof *s) : NULL;
	struct uar_call_options o = {
		.method = "POST",
		.url = to ? to->url : NULL,
		.headers = to ? to->headers : NULL,
		.body = d->message,
		.connect_timeout_us = CONNECT_US,
		.idle_timeout_us = IDLE_US,
		.max_error_body = UAR_LIMIT_A2A_ANSWER,
		.data = on_data,
		.done = on_done,
		.ctx = s,
	};
	uar_err e;

	if (!s)
		return to ? UAR_ENOMEM : UAR_ENOTFOUND;
	s->d = d;
	s->clock = uar_client_sched(p->client)->clock;
	uar_list_add_last(&p->under_way, &s->node);
	e = uar_client_call(p->client, &o, &s->call, NULL);
	if (e)
		free_sending(s);
	else
		d->internal = s;
	return e;
}

static void cancel(struct uar_peers *base, struct uar_delivery *d)
{
	struct sending *s = d->internal;

	(void)base;
	if (!s)
		return;
	d->internal = NULL;
	uar_call_cancel(s->call);
	free_sending(s);
}

/* --- life ------------------------------------------------------------------------------------- */

static void destroy(struct uar_peers *base)
{
	struct peers *p = of(base);

	UAR_LIST_EACH (it, &p->under_way)
		cancel(base, UAR_OWNER(it, struct sending, node)->d);
	uar_arena_fini(&p->arena);
	uar_free(p);
}

static const struct uar_peers_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = destroy,
	.at = name_at,
	.deliver = deliver,
	.cancel = cancel,
};

void uar_peers_destroy(struct uar_peers *p)
{
	if (p)
		p->ops->destroy(p);
}

static uar_err add_peer(struct peers *p, uar_str text, struct uar_error *error)
{
	struct peer *to = &p->at[p->count];
	uar_str name, url;

	if (!uar_peer_address_read(text, &name, &url))
		return uar_error_set(error, UAR_ECONFIG, "a peer is NAME=URL");
	if (find(p, name))
		return uar_error_set(error, UAR_ECONFIG, "two peers are called \"%.*s\"",
				     UAR_FMT(name));
	to->name = uar_arena_str(&p->arena, name);
	to->url = uar_arena_printf(&p->arena, "%.*s/api/a2a/inbox", UAR_FMT(url)).p;
	to->headers[0] = "Content-Type: application/json";
	p->count++;
	return to->name.p && to->url ? UAR_OK : UAR_ENOMEM;
}

static uar_err add_token(struct peers *p, uar_str text, struct uar_error *error)
{
	uar_str token = UAR_STR_NONE, name = uar_str_cut(text, '=', &token);
	struct peer *to = (struct peer *)find(p, name);

	if (!to && token.n) /* what looks like a name may be a token */
		return uar_error_set(error, UAR_ECONFIG,
				     "a token is for a peer that a2a_peers does not name");
	if (!to || !token.n || to->headers[1])
		return uar_error_set(error, UAR_ECONFIG,
				     "tokens of peers are NAME=TOKEN, one for each at most");
	to->headers[1] =
		uar_arena_printf(&p->arena, "Authorization: Bearer %.*s", UAR_FMT(token)).p;
	return to->headers[1] ? UAR_OK : UAR_ENOMEM;
}

static uar_err read_options(struct peers *p, const struct uar_peers_options *o,
			    struct uar_error *error)
{
	uar_str rest = uar_str_c(o->tokens);
	uar_err e = UAR_OK;

	p->at = uar_arena_alloc(&p->arena, (o->address_count + 1) * sizeof *p->at);
	p->base.own_name = uar_arena_str(&p->arena, uar_str_c(o->own_name));
	if (!p->at || !p->base.own_name.p)
		return UAR_ENOMEM;
	memset(p->at, 0, (o->address_count + 1) * sizeof *p->at);
	for (size_t i = 0; i < o->address_count && !e; i++)
		e = add_peer(p, uar_str_c(o->addresses[i]), error);
	while (!e && rest.n)
		e = add_token(p, uar_str_trim(uar_str_cut(rest, ',', &rest)), error);
	return e;
}

uar_err uar_peers_http_create(const struct uar_peers_options *o, struct uar_peers **out,
			      struct uar_error *error)
{
	struct peers *p = uar_zalloc(sizeof *p);
	uar_err e;

	if (!p)
		return UAR_ENOMEM;
	p->base.ops = &ops;
	p->client = o->client;
	uar_list_init(&p->under_way);
	e = read_options(p, o, error);
	if (e) {
		destroy(&p->base);
		return e;
	}
	*out = &p->base;
	return UAR_OK;
}
