/* oauth.c - the way to a token: which authorization server, what it offers, where the person goes.
 */
#include "mcp/oauth.h"

#include "base/alloc.h"
#include "mcp/oauth_int.h"

/* --- its end -------------------------------------------------------------------------------- */

void oauth_fail(struct uar_mcp_auth *a, const char *why)
{
	a->step = STEP_NONE;
	a->person = a->state = UAR_STR_NONE;
	a->o.done(a->o.ctx, false, why);
}

static void fail_now(struct uar_timer *t)
{
	struct uar_mcp_auth *a = UAR_OWNER(t, struct uar_mcp_auth, later.timer);

	oauth_fail(a, a->later.why);
}

const char uar_mcp_login_expired[] = "nobody has logged in in time";

/* The address is good no longer: who comes later gets a new one. */
static void wait_is_over(struct uar_timer *t)
{
	oauth_fail(UAR_OWNER(t, struct uar_mcp_auth, later.waits), uar_mcp_login_expired);
}

void oauth_wait_for_person(struct uar_mcp_auth *a)
{
	int64_t limit = a->o.setting.login_us;

	a->step = STEP_PERSON;
	a->later.waits.fn = wait_is_over;
	if (limit && uar_timer_set(a->o.sched, &a->later.waits,
				   limit + UAR_LIMIT_MCP_LOGIN_LATE_MS * 1000LL))
		oauth_fail(a, uar_err_text(UAR_ENOMEM));
	else
		a->o.wants(a->o.ctx, a->person.p);
}

/* From inside a call of the user: never at once. */
static void fail_later(struct uar_mcp_auth *a, const char *why)
{
	a->later.why = why;
	a->later.timer.fn = fail_now;
	if (uar_timer_set(a->o.sched, &a->later.timer, 0))
		a->step = STEP_NONE;
}

/* --- requests ------------------------------------------------------------------------------- */

static void take_document(struct uar_mcp_auth *a, const struct uar_json *j);

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct uar_mcp_auth *a = ctx;

	uar_buf_add_str(&a->body, bytes);
	return a->body.err;
}

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_mcp_auth *a = ctx;
	const struct uar_json *j = NULL;
	uar_str text;

	(void)body;
	(void)reason;
	a->call = NULL;
	a->later.passing = e || status / 100 == 5 || status == 429;
	text = !e && status / 100 == 2 ? uar_arena_str(&a->arena, uar_buf_str(&a->body))
				       : UAR_STR_NONE;
	if (e == UAR_EFORBIDDEN) {
		oauth_fail(a, "an address of the authorization is not allowed here; the setting "
			      "outbound_allow names those that are");
		return;
	}
	if (text.n && uar_json_parse(text, NULL, &a->arena, &j, NULL))
		j = NULL;
	take_document(a, j && j->kind == UAR_JSON_OBJECT ? j : NULL);
}

static uar_err request(struct uar_mcp_auth *a, const char *method, uar_str url,
		       const char *const *headers, uar_str body)
{
	/* It may be a piece of a document. */
	uar_str own = url.p && url.n <= UAR_LIMIT_MCP_OAUTH_TEXT ? uar_arena_str(&a->arena, url)
								 : UAR_STR_NONE;
	struct uar_call_options o = { .method = method,
				      .url = own.p,
				      .headers = headers,
				      .body = body,
				      .total_timeout_us = UAR_LIMIT_MCP_OAUTH_MS * 1000LL,
				      .guarded = true,
				      .data = on_data,
				      .done = on_done,
				      .ctx = a };

	uar_buf_clear(&a->body);
	return own.p ? uar_client_call(a->o.http, &o, &a->call, NULL) : UAR_EINVALID;
}

uar_err oauth_get(struct uar_mcp_auth *a, uar_str url)
{
	static const char *const headers[] = { "Accept: application/json",
					       "MCP-Protocol-Version: 2025-11-25", NULL };

	return request(a, "GET", url, headers, UAR_STR_NONE);
}

uar_err oauth_post(struct uar_mcp_auth *a, uar_str url, const char *const *headers, uar_str body)
{
	return request(a, "POST", url, headers, body);
}

/* The next address of the list that can be asked; false: there is none. */
static bool ask_next(struct uar_mcp_auth *a)
{
	while (a->url < a->url_count)
		if (!oauth_get(a, a->urls[a->url++]))
			return true;
	return false;
}

/* --- the authorization server ---------------------------------------------------------------- */

static void take_endpoints(struct uar_mcp_auth *a)
{
	const struct uar_json *m = a->server;

	a->authorize = uar_json_text(m, "authorization_endpoint");
	a->token = uar_json_text(m, "token_endpoint");
	a->registration = uar_json_text(m, "registration_endpoint");
	if (m)
		return;
	a->authorize = uar_arena_printf(&a->arena, "%.*s/authorize", UAR_FMT(a->issuer));
	a->token = uar_arena_printf(&a->arena, "%.*s/token", UAR_FMT(a->issuer));
	a->registration = uar_arena_printf(&a->arena, "%.*s/register", UAR_FMT(a->issuer));
}

static void choose_scope(struct uar_mcp_auth *a)
{
	const struct uar_json *offered = uar_json_get(a->server, UAR_STR("scopes_supported"));
	uar_str before = a->entry ? uar_buf_str(&a->entry->scope) : UAR_STR("");

	a->scope = a->challenged.n ? a->challenged : a->scopes;
	if (a->status == 403)
		a->scope = oauth_union(&a->arena, before, a->scope);
	if (a->o.setting.scope)
		a->scope = oauth_union(&a->arena, a->scope, uar_str_c(a->o.setting.scope));
	if (oauth_lists(offered, "offline_access"))
		a->scope = oauth_union(&a->arena, a->scope, UAR_STR("offline_access"));
}

/* Secrets and people go there. */
static bool is_safe(uar_str url)
{
	return !url.n || uar_str_starts(url, UAR_STR("https://")) || oauth_is_loopback(url);
}

static void know_server(struct uar_mcp_auth *a)
{
	const struct uar_json *pkce =
		uar_json_get(a->server, UAR_STR("code_challenge_methods_supported"));

	take_endpoints(a);
	if (a->server && !oauth_lists(pkce, "S256")) {
		oauth_fail(a, "the authorization server does not offer PKCE with S256");
		return;
	}
	if (!is_safe(a->authorize) || !is_safe(a->token) || !is_safe(a->registration)) {
		oauth_fail(a, "an endpoint of the authorization server is not an https address");
		return;
	}
	a->entry = oauth_entry_of(a, a->issuer);
	if (!a->entry || !a->authorize.n || !a->token.n) {
		oauth_fail(a, "the authorization server does not say where its endpoints are");
		return;
	}
	oauth_set_line(a);
	choose_scope(a);
	if (a->entry->refresh.n && a->status == 401)
		oauth_refresh(a);
	else
		oauth_find_client(a);
}

/* Without metadata of the resource the issuer is an origin, which may be written with a slash. */
static bool names_issuer(const struct uar_mcp_auth *a, uar_str named)
{
	if (!a->resource.n && named.n && named.p[named.n - 1] == '/')
		named.n--;
	return uar_str_eq(named, a->issuer);
}

static void take_server(struct uar_mcp_auth *a, const struct uar_json *j)
{
	if (!j) {
		if (ask_next(a))
			return;
		if (a->resource.n)
			oauth_fail(a, "the authorization server has no metadata");
		else
			know_server(a); /* of 2025-03-26 */
		return;
	}
	if (!names_issuer(a, uar_json_text(j, "issuer"))) {
		oauth_fail(a, "the metadata of the authorization server name another issuer");
		return;
	}
	a->server = j;
	know_server(a);
}

static void add_url(struct uar_mcp_auth *a, uar_str before, const char *between, uar_str after)
{
	a->urls[a->url_count++] =
		uar_arena_printf(&a->arena, "%.*s%s%.*s", UAR_FMT(before), between, UAR_FMT(after));
}

static void find_server(struct uar_mcp_auth *a)
{
	uar_str origin = oauth_origin(a->issuer), path = oauth_path(a->issuer);

	a->step = STEP_SERVER;
	a->url = a->url_count = 0;
	add_url(a, origin, "/.well-known/oauth-authorization-server", path);
	add_url(a, origin, "/.well-known/openid-configuration", path);
	if (path.n)
		add_url(a, uar_str_n(origin.p, origin.n + path.n),
			"/.well-known/openid-configuration", UAR_STR(""));
	if (!ask_next(a))
		oauth_fail(a, "the authorization server cannot be asked");
}

/* --- the resource ---------------------------------------------------------------------------- */

static void take_resource(struct uar_mcp_auth *a, const struct uar_json *j)
{
	const struct uar_json *servers = uar_json_get(j, UAR_STR("authorization_servers"));
	uar_str url = uar_str_c(a->o.url);

	if (!j && ask_next(a))
		return;
	a->resource = uar_json_text(j, "resource");
	if (j && !uar_mcp_resource_matches(a->resource, url)) {
		oauth_fail(a, "the metadata of the resource are those of another server");
		return;
	}
	a->scopes = oauth_join(&a->arena, uar_json_get(j, UAR_STR("scopes_supported")));
	a->issuer = uar_json_str(uar_json_at(servers, 0), UAR_STR(""));
	if (!a->issuer.n) /* 2025-03-26: the server is its own authorization server */
		a->issuer = uar_arena_str(&a->arena, oauth_origin(url));
	find_server(a);
}

static void find_resource(struct uar_mcp_auth *a, uar_str named)
{
	uar_str url = uar_str_c(a->o.url), origin = oauth_origin(url), path = oauth_path(url);

	a->step = STEP_RESOURCE;
	a->url = a->url_count = 0;
	if (named.n)
		a->urls[a->url_count++] = named;
	add_url(a, origin, "/.well-known/oauth-protected-resource", path);
	if (path.n)
		add_url(a, origin, "/.well-known/oauth-protected-resource", UAR_STR(""));
	if (!ask_next(a))
		fail_later(a, "the metadata of the server cannot be asked for");
}

static void take_document(struct uar_mcp_auth *a, const struct uar_json *j)
{
	switch (a->step) {
	case STEP_RESOURCE: take_resource(a, j); break;
	case STEP_SERVER: take_server(a, j); break;
	case STEP_REFRESH: oauth_refreshed(a, j); break;
	case STEP_REGISTER: oauth_registered(a, j); break;
	case STEP_TOKEN: oauth_got_token(a, j); break;
	case STEP_NONE:
	case STEP_PERSON: break;
	}
}

/* --- the user's side ------------------------------------------------------------------------- */

void uar_mcp_auth_begin(struct uar_mcp_auth *a, int status, uar_str challenge)
{
	if (a->step != STEP_NONE)
		return;
	uar_arena_reset(&a->arena);
	a->server = NULL;
	a->status = status;
	a->scope = a->issuer = a->resource = a->scopes = UAR_STR("");
	a->state = a->person = UAR_STR_NONE;
	a->challenged = uar_mcp_challenge_param(challenge, "scope", &a->arena);
	find_resource(a, uar_mcp_challenge_param(challenge, "resource_metadata", &a->arena));
}

const char *uar_mcp_auth_line(const struct uar_mcp_auth *a)
{
	return a->line.n ? a->line.p : NULL;
}

const char *uar_mcp_auth_url(const struct uar_mcp_auth *a)
{
	return a->step == STEP_PERSON ? a->person.p : NULL;
}

static const char *fault_of(const struct uar_mcp_auth *a, const struct uar_mcp_redirect *r)
{
	bool told = uar_json_bool(
		uar_json_get(a->server, UAR_STR("authorization_response_iss_parameter_supported")),
		false);

	if (told && !r->iss.n)
		return "the answer of the login does not name its issuer";
	if (r->iss.n && !uar_str_eq(r->iss, a->issuer))
		return "the answer of the login comes from another issuer";
	if (r->error.n)
		return "the login was refused";
	return r->code.n ? NULL : "the answer of the login has no code";
}

uar_err uar_mcp_auth_redirected(struct uar_mcp_auth *a, const struct uar_mcp_redirect *r)
{
	const char *fault;

	if (a->step != STEP_PERSON || !uar_str_eq_secret(r->state, a->state))
		return UAR_ENOTFOUND;
	uar_timer_stop(a->o.sched, &a->later.waits);
	a->step = STEP_TOKEN;
	a->state = UAR_STR_NONE;
	fault = fault_of(a, r);
	if (fault)
		fail_later(a, fault);
	else
		oauth_change_code(a, r->code);
	return fault ? UAR_EFORBIDDEN : UAR_OK;
}

uar_err uar_mcp_auth_create(const struct uar_mcp_auth_options *o, struct uar_mcp_auth **out)
{
	struct uar_mcp_auth *a = uar_zalloc(sizeof *a);

	if (!a)
		return UAR_ENOMEM;
	a->o = *o;
	uar_arena_init(&a->arena, 0);
	uar_list_init(&a->entries);
	a->line = uar_buf_make(5 * UAR_LIMIT_MCP_OAUTH_TEXT);
	a->body = uar_buf_make(UAR_LIMIT_MCP_OAUTH_BODY);
	oauth_recall(a);
	a->o.kept = UAR_STR_NONE;
	*out = a;
	return UAR_OK;
}

void uar_mcp_auth_destroy(struct uar_mcp_auth *a)
{
	if (!a)
		return;
	if (a->call)
		uar_call_cancel(a->call);
	uar_timer_stop(a->o.sched, &a->later.timer);
	uar_timer_stop(a->o.sched, &a->later.waits);
	oauth_entries_fini(a);
	uar_arena_fini(&a->arena);
	uar_buf_fini(&a->line);
	uar_buf_fini(&a->body);
	uar_free(a);
}
