/* a2a_card.c - which of the interfaces that a card names is called, and whether it may be.
 *
 * A card is written by the peer. Credentials go where it points: that must be the host of the card,
 * or one that the definition names. */
#include "peer/a2a_int.h"

static bool flag_of(const struct uar_json *j, const char *pointer)
{
	return uar_json_bool(uar_json_pointer(j, uar_str_c(pointer)), false);
}

/* "host:port" of an address, as it is written. */
static uar_str host_of(uar_str url)
{
	uar_str rest = uar_str_from(url, uar_str_find(url, ':') + 3);
	size_t n = 0;

	while (n < rest.n && !strchr("/?#", rest.p[n]))
		n++;
	return uar_str_n(rest.p, n);
}

static bool is_web(uar_str url)
{
	bool web =
		uar_str_starts(url, UAR_STR("https://")) || uar_str_starts(url, UAR_STR("http://"));

	return web && host_of(url).n && uar_str_find(host_of(url), '@') == host_of(url).n &&
	       uar_str_is_visible(url);
}

static bool is_allowed(uar_str url, uar_str card_url, const struct uar_json *hosts)
{
	if (uar_str_starts(card_url, UAR_STR("https://")) &&
	    !uar_str_starts(url, UAR_STR("https://")))
		return false;
	if (uar_str_eq_nocase(host_of(url), host_of(card_url)))
		return true;
	for (const struct uar_json *h = uar_json_first(hosts); h; h = h->next)
		if (uar_str_eq_nocase(host_of(url), uar_json_str(h, UAR_STR(""))))
			return true;
	return false;
}

/* "1.0", "1.2": the same major version. */
static bool is_version(uar_str version, const char *major)
{
	return uar_str_starts(version, uar_str_c(major));
}

/* The first usable interface is taken, but one of 1.0 rather than one of 0.3. */
static void consider(const struct uar_json *i, bool old, struct a2a_card *out, bool *found)
{
	uar_str binding = uar_json_text(i, old ? "transport" : "protocolBinding");
	uar_str version = uar_json_text(i, "protocolVersion");
	bool rest = uar_str_is(binding, "HTTP+JSON"), rpc = uar_str_is(binding, "JSONRPC");
	bool is_old = old || is_version(version, "0.3");

	if ((!rest && !rpc) || (rest && is_old) || (!is_old && !is_version(version, "1.")))
		return;
	if (*found && (is_old || !out->old))
		return;
	*found = true;
	out->url = uar_json_text(i, "url");
	out->tenant = uar_json_text(i, "tenant");
	out->rest = rest;
	out->old = is_old;
}

static bool choose(const struct uar_json *j, struct a2a_card *out)
{
	uar_str transport = uar_json_text(j, "preferredTransport");
	const struct uar_json *list = uar_json_get(j, UAR_STR("supportedInterfaces"));
	bool found = false;

	for (const struct uar_json *i = uar_json_first(list); i; i = i->next)
		consider(i, false, out, &found);
	if (found)
		return true;
	if (uar_json_text(j, "url").n && (!transport.n || uar_str_is(transport, "JSONRPC"))) {
		*out = (struct a2a_card){ .url = uar_json_text(j, "url"), .old = true };
		return true;
	}
	list = uar_json_get(j, UAR_STR("additionalInterfaces"));
	for (const struct uar_json *i = uar_json_first(list); i; i = i->next)
		consider(i, true, out, &found);
	return found;
}

static bool is_idempotent(const struct uar_json *j)
{
	const struct uar_json *list = uar_json_pointer(j, UAR_STR("/capabilities/extensions"));

	for (const struct uar_json *e = uar_json_first(list); e; e = e->next)
		if (uar_str_is(uar_json_text(e, "uri"), UAR_A2A_IDEMPOTENT))
			return true;
	return false;
}

static bool own_strings(struct a2a_card *c, struct uar_arena *arena)
{
	while (c->url.n && c->url.p[c->url.n - 1] == '/' && c->rest)
		c->url.n--;
	c->url = uar_arena_str(arena, c->url);
	c->tenant = uar_arena_str(arena, c->tenant);
	return c->url.p && c->tenant.p;
}

uar_err a2a_card_read(uar_str text, uar_str card_url, const struct uar_json *hosts,
		      struct uar_arena *arena, struct a2a_card *out, struct uar_error *error)
{
	struct uar_json_limits limits = { .foreign = true };
	struct a2a_card card = { .old = false };
	const struct uar_json *j = NULL;
	uar_err e = uar_json_parse(text, &limits, arena, &j, NULL);

	if (e == UAR_ENOMEM)
		return e;
	if (e || j->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_EINVALID, "the card is no JSON object");
	if (!choose(j, &card))
		return uar_error_set(error, UAR_EINVALID,
				     "the card names no interface that UAR speaks: JSON-RPC of "
				     "A2A 1.0 or 0.3, or HTTP+JSON of 1.0");
	if (!is_web(card.url))
		return uar_error_set(error, UAR_EINVALID,
				     "the card names an interface without an address");
	if (!is_allowed(card.url, card_url, hosts))
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "the card leads to another host, %.*s: name it in "
				     "runtime.peer.hosts if that is meant",
				     UAR_FMT(uar_str_utf8_prefix(host_of(card.url), 100)));
	card.streams = flag_of(j, "/capabilities/streaming");
	card.idempotent = is_idempotent(j);
	if (!own_strings(&card, arena))
		return UAR_ENOMEM;
	*out = card;
	return UAR_OK;
}

uar_str a2a_card_address(uar_str url, struct uar_arena *arena)
{
	if (uar_str_ends(url, UAR_STR(".json")))
		return uar_arena_str(arena, url);
	return uar_arena_printf(arena, "%.*s%s.well-known/agent-card.json", UAR_FMT(url),
				uar_str_ends(url, UAR_STR("/")) ? "" : "/");
}
