/* access.c - who may speak to us: names, origins, token.
 *
 * Loopback is no wall: a page in a browser reaches local ports too. So the Host
 * must be a name we go by, a foreign Origin is refused, and a token is needed.
 *
 * A page gets at us by rebinding: its own name suddenly resolves to our address, and to the
 * browser we are of its origin. The Host betrays it, for it still is that name. An address
 * is not looked up, so a Host that is one cannot have been rebound: who listens on every
 * address may be called by any, without a list of what the machine has or is forwarded. */
#include "gate/gate_int.h"

#include "base/sha256.h"

static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };

void gate_bound_read(struct gate_bound *out, uar_str address)
{
	struct uar_address a;

	*out = (struct gate_bound){ .is_ip = false };
	if (!uar_address_read_bound(address, &a) || !uar_address_is_ip(&a))
		return;
	*out = (struct gate_bound){ .is_ip = true, .any = uar_address_is_any(&a) };
	memcpy(out->ip, a.ip, sizeof out->ip);
}

static bool is_bound(const struct gate_bound *b, const struct uar_address *a)
{
	return b->is_ip && uar_address_is_ip(a) &&
	       (b->any || memcmp(a->ip, b->ip, sizeof b->ip) == 0);
}

static bool known_host(const struct uar_gate *g, uar_str host)
{
	struct uar_address a = { .host = UAR_STR_NONE };
	bool good = uar_address_read_host(host, &a);
	uar_str name = a.host;

	for (size_t i = 0; i < ARRAY_LEN(loopback); i++)
		if (uar_str_eq_nocase(name, uar_str_c(loopback[i])))
			return true;
	for (size_t i = 0; i < g->o.allowed_host_count; i++) {
		uar_str allowed = uar_str_c(g->o.allowed_hosts[i]);

		if (uar_str_eq_nocase(name, allowed) || uar_str_eq_nocase(host, allowed))
			return true;
	}
	return good && is_bound(&g->bound, &a);
}

/* Of letters, digits and what stands between them in names and addresses: fit for any text. */
static bool is_plain_name(uar_str host)
{
	for (size_t i = 0; i < host.n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_",
			    host.p[i]) ||
		    !host.p[i])
			return false;
	return host.n > 0 && host.n <= 64;
}

void gate_host_page(struct uar_buf *out, int status, const char *code,
		    const struct uar_error *error)
{
	(void)status;
	uar_buf_printf(out,
		       "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta "
		       "name=\"viewport\" content=\"width=device-width\"><title>UAR does not know "
		       "this name</title><h1>UAR does not know this name</h1><p>%s.</p><p>Then the "
		       "page opens here. If a proxy stands in front, let it pass the name on as it "
		       "came (nginx: <code>proxy_set_header Host $http_host;</code>).</p>"
		       "<p><small>403 %s</small></p></html>\n",
		       error->text[0] ? error->text : uar_err_text(UAR_EFORBIDDEN), code);
}

uar_err gate_check_host(const struct uar_gate *g, const struct uar_http_request *r,
			struct uar_error *error)
{
	uar_str host = r->fields[UAR_HTTP_HOST];

	if (!host.n || known_host(g, host))
		return UAR_OK; /* HTTP/1.0 may leave it out; browsers never do */
	uar_error_where(error, "Host");
	if (!is_plain_name(host))
		return uar_error_set(error, UAR_EFORBIDDEN,
				     "this server does not go by that name; names that it may be "
				     "called by are in the setting allowed_hosts");
	return uar_error_set(error, UAR_EFORBIDDEN,
			     "this server does not go by the name %.*s; if it is meant, add it to "
			     "the setting allowed_hosts (UAR_ALLOWED_HOSTS=%.*s) and start again",
			     UAR_FMT(host), UAR_FMT(host));
}

bool gate_allows_origin(const struct uar_gate *g, uar_str origin)
{
	for (size_t i = 0; i < g->o.allowed_origin_count; i++)
		if (uar_str_is(origin, g->o.allowed_origins[i]))
			return true;
	return false;
}

uar_err gate_check_origin(const struct uar_gate *g, const struct uar_http_request *r,
			  struct uar_error *error)
{
	uar_str origin = r->fields[UAR_HTTP_ORIGIN];
	uar_str host = r->fields[UAR_HTTP_HOST];

	if (!origin.n)
		return UAR_OK;
	if (gate_allows_origin(g, origin))
		return UAR_OK;
	if (host.n && uar_str_starts(origin, UAR_STR("http://")) &&
	    uar_str_eq_nocase(uar_str_from(origin, 7), host))
		return UAR_OK;
	if (host.n && uar_str_starts(origin, UAR_STR("https://")) &&
	    uar_str_eq_nocase(uar_str_from(origin, 8), host))
		return UAR_OK;
	uar_error_where(error, "Origin");
	return uar_error_set(error, UAR_EFORBIDDEN,
			     "pages of other origins are not served; behind a proxy Host must be "
			     "passed on as it came, else list the origin in allowed_origins");
}

static bool is_bearer(uar_str given)
{
	return given.n > 7 && uar_str_eq_nocase(uar_str_n(given.p, 7), UAR_STR("Bearer "));
}

uar_err gate_check_token(const struct uar_gate *g, const struct uar_http_request *r,
			 struct uar_error *error)
{
	uar_str given = r->fields[UAR_HTTP_AUTHORIZATION];
	bool bearer = is_bearer(given);

	if (bearer &&
	    uar_str_eq_secret(uar_str_trim(uar_str_from(given, 7)), uar_str_c(g->o.token)))
		return UAR_OK;
	return uar_error_set(error, UAR_EUNAUTHORIZED,
			     bearer ? "the token that was sent is not one of this server"
				    : "send \"Authorization: Bearer TOKEN\"");
}

/* --- the caller --------------------------------------------------------------------------- */

static void set_caller(struct call *c, const struct uar_owner *owner, unsigned scopes)
{
	c->owner = *owner;
	c->scopes = scopes;
}

void gate_identify_own(struct call *c)
{
	set_caller(c, &c->g->o.owner, GATE_SCOPE_ALL);
}

static void set_key(struct call *c, struct gate_key *k)
{
	set_caller(c, &k->user->owner, k->scopes);
	c->user = k->user;
	c->key = k;
	c->until_us = k->expires_us;
}

/* A token in the header: the server's, or a key that somebody was given. */
static uar_err identify_bearer(struct call *c, const struct uar_http_request *r,
			       struct uar_error *error)
{
	uar_str given = r->fields[UAR_HTTP_AUTHORIZATION], token;
	struct gate_key *k = NULL;
	uar_err e = gate_check_token(c->g, r, error);

	if (!e) {
		gate_identify_own(c);
		return UAR_OK;
	}
	token = is_bearer(given) ? uar_str_trim(uar_str_from(given, 7)) : UAR_STR_NONE;
	if (!c->g->own.book || !uar_str_starts(token, UAR_STR("uar_")))
		return e;
	*error = (struct uar_error){ 0 };
	e = gate_book_check(c->g->own.book, token, &k, error);
	if (!e)
		set_key(c, k);
	return e;
}

/* --- the token of one thing ------------------------------------------------------------ */

/* Hex of tenant, workspace, user and key; empty for the server's own owner with its token. */
static void write_who(const struct call *c, char out[GRANT_WHO + 1])
{
	char text[GRANT_WHO / 2 + 1];
	size_t n;

	out[0] = 0;
	if (!c->key && uar_owner_eq(&c->owner, &c->g->o.owner))
		return;
	n = (size_t)snprintf(text, sizeof text, "%.*s\n%.*s\n%.*s\n%s", UAR_FMT(c->owner.tenant),
			     UAR_FMT(c->owner.workspace), UAR_FMT(c->owner.user),
			     c->key ? c->key->id : "");
	uar_hex((const unsigned char *)text, n, out);
}

static bool sign_grant(const struct uar_gate *g, const char *what, uar_str id, uar_str signed_part,
		       char mac[UAR_SHA256_TEXT + 1])
{
	char text[UAR_LIMIT_ID_BYTES + GRANT + 64];

	snprintf(text, sizeof text, "%s %.*s until %.*s", what, UAR_FMT(id), UAR_FMT(signed_part));
	return uar_hmac_sha256_hex(uar_str_c(g->o.token), uar_str_c(text), mac);
}

bool gate_grant(const struct call *c, const char *what, uar_str id, int64_t expires,
		char out[GRANT])
{
	char who[GRANT_WHO + 1], mac[UAR_SHA256_TEXT + 1];
	size_t n;

	write_who(c, who);
	n = (size_t)snprintf(out, GRANT, "%lld%s%s", (long long)expires, who[0] ? "." : "", who);
	if (!sign_grant(c->g, what, id, uar_str_n(out, n), mac))
		return false;
	snprintf(out + n, GRANT - n, ".%s", mac);
	return true;
}

/* The call is of whoever gave the grant, unless their key is no longer in force. */
static bool set_granter(struct call *c, uar_str who)
{
	char text[GRANT_WHO / 2 + 1];
	struct uar_owner owner;
	uar_str rest;
	size_t n = who.n / 2;

	if (!who.n) {
		set_caller(c, &c->g->o.owner, 0);
		return true;
	}
	if (!c->g->own.book || who.n % 2 || n >= sizeof text)
		return false;
	for (size_t i = 0; i < n; i++)
		text[i] =
			(char)(uar_hex_digit(who.p[2 * i]) * 16 + uar_hex_digit(who.p[2 * i + 1]));
	owner.tenant = uar_str_cut(uar_str_n(text, n), '\n', &rest);
	owner.workspace = uar_str_cut(rest, '\n', &rest);
	owner.user = uar_str_cut(rest, '\n', &rest);
	c->key = rest.n ? gate_book_find(c->g->own.book, rest) : NULL;
	c->user = gate_book_user(c->g->own.book, &owner);
	if ((rest.n && !c->key) || !c->user)
		return false;
	set_caller(c, &c->user->owner, 0);
	return true;
}

/* The part that is signed ends at the last point. */
static bool split_grant(uar_str given, uar_str *out_signed, uar_str *out_mac)
{
	size_t at = given.n;

	while (at && given.p[at - 1] != '.')
		at--;
	if (!at)
		return false;
	*out_signed = uar_str_n(given.p, at - 1);
	*out_mac = uar_str_from(given, at);
	return true;
}

/* It is the path's, or the one that the query asks for. */
bool gate_check_grant(struct call *c, const struct uar_http_request *r, const char *what,
		      uar_str id)
{
	uar_str given = UAR_STR_NONE, signed_part, mac, who;
	char want[UAR_SHA256_TEXT + 1], name[32], token[32];
	uint64_t expires;

	snprintf(name, sizeof name, "%s_id", what);
	snprintf(token, sizeof token, "%s_token", what);
	if (!id.n && uar_http_query(r, name, &id))
		return false;
	if (uar_http_query(r, token, &given) || !given.n || given.n >= GRANT || !uar_str_is_id(id))
		return false;
	if (!split_grant(given, &signed_part, &mac) ||
	    uar_str_u64(uar_str_cut(signed_part, '.', &who), &expires) ||
	    expires > INT64_MAX / 1000000 ||
	    (int64_t)expires * 1000000 < uar_clock_wall(c->g->o.sched->clock))
		return false;
	if (!sign_grant(c->g, what, id, signed_part, want) ||
	    !uar_str_eq_secret(mac, uar_str_c(want)) || !set_granter(c, who))
		return false;
	c->until_us = (int64_t)expires * 1000000;
	return true;
}

static unsigned scope_of_grant(const char *what)
{
	return strcmp(what, "run") == 0 ? GATE_GRANT_RUN : GATE_GRANT_UPLOAD;
}

/* --- what it is for ----------------------------------------------------------------------- */

uar_err gate_give_answer(const struct call *c, struct uar_run_answer_op *op)
{
	uar_err e = gate_check_scope(c, GATE_SCOPE_ANSWER, &op->error);

	return e ? e : uar_runtime_answer(c->g->o.runtime, op);
}

uar_err gate_check_scope(const struct call *c, unsigned scope, struct uar_error *error)
{
	unsigned bit = 0;

	if ((c->scopes & scope) == scope)
		return UAR_OK;
	while (!(scope >> bit & 1))
		bit++;
	return uar_error_set(error, UAR_EFORBIDDEN,
			     "this credential does not have the scope \"%s\"",
			     gate_scope_word(bit));
}

/* One more request of its tenant. */
static uar_err count_request(struct call *c, struct uar_error *error)
{
	struct gate_tenant *t = c->user ? c->user->tenant : NULL;
	size_t most = c->g->o.max.tenant_requests;

	if (!t || !most)
		return UAR_OK;
	if (t->under_way >= most)
		return uar_error_set(error, UAR_EQUOTA,
				     "the tenant has %zu requests and streams under way, which is "
				     "its quota (tenant_requests)",
				     most);
	t->under_way++;
	c->counted = t;
	return UAR_OK;
}

uar_err gate_identify(struct call *c, const struct uar_http_request *r, struct uar_error *error)
{
	const char *grant = c->route ? c->route->grant : NULL;
	uar_str given = UAR_STR_NONE;
	char name[32];
	uar_err e;

	if (c->route && c->route->open)
		return UAR_OK;
	e = identify_bearer(c, r, error);
	if (!e && c->route)
		e = gate_check_scope(c, c->route->scope, error);
	if (!e)
		return count_request(c, error);
	if (c->scopes) /* somebody, who may not do this */
		return e;
	if (!grant || e == UAR_EBUSY)
		return e;
	if (gate_check_grant(c, r, grant, c->params[0])) {
		*error = (struct uar_error){ 0 };
		c->scopes = scope_of_grant(grant);
		return count_request(c, error);
	}
	snprintf(name, sizeof name, "%s_token", grant);
	if (!uar_http_query(r, name, &given) && given.n) {
		uar_error_where(error, "?%s", name);
		return uar_error_set(error, e, "the %s token is not of this %s, or has expired",
				     grant, grant);
	}
	return e;
}
