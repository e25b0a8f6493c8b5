/* oauth_token.c - who this client is at the authorization server, and its tokens. */
#include "base/base64.h"
#include "mcp/oauth_int.h"

enum { LASTS_MOST = 10 * 366 * 86400 }; /* seconds; more is as good as for ever */

static void set(struct uar_buf *b, uar_str value)
{
	uar_buf_clear(b);
	uar_buf_add_str(b, value);
}

/* --- the person ------------------------------------------------------------------------------ */

static uar_str resource_of(const struct uar_mcp_auth *a)
{
	return a->resource.n ? a->resource : uar_str_c(a->o.url);
}

static void send_person(struct uar_mcp_auth *a)
{
	struct uar_buf b = uar_buf_make(4 * UAR_LIMIT_MCP_OAUTH_TEXT);

	a->verifier = oauth_random(a);
	a->state = oauth_random(a);
	uar_buf_add_str(&b, a->authorize);
	uar_buf_add_char(&b, uar_str_find(a->authorize, '?') < a->authorize.n ? '&' : '?');
	oauth_put(&b, "response_type", UAR_STR("code"));
	oauth_put(&b, "client_id", uar_buf_str(&a->entry->client_id));
	oauth_put(&b, "redirect_uri", uar_str_c(a->o.redirect_url));
	oauth_put(&b, "state", a->state);
	oauth_put(&b, "code_challenge", oauth_challenge(a, a->verifier));
	oauth_put(&b, "code_challenge_method", UAR_STR("S256"));
	oauth_put(&b, "resource", resource_of(a));
	if (a->scope.n)
		oauth_put(&b, "scope", a->scope);
	a->person = b.err ? UAR_STR_NONE : uar_arena_str(&a->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	if (!a->person.p || !a->verifier.p || !a->state.p) {
		oauth_fail(a, uar_err_text(UAR_ENOMEM));
		return;
	}
	oauth_wait_for_person(a);
}

/* --- the client ------------------------------------------------------------------------------ */

/* How it proves itself: as registered, else by what the server takes. */
static const char *choose_method(const struct uar_mcp_auth *a, bool secret)
{
	const struct uar_json *taken =
		uar_json_get(a->server, UAR_STR("token_endpoint_auth_methods_supported"));

	if (!secret)
		return "none";
	if (!taken || oauth_lists(taken, "client_secret_basic"))
		return "client_secret_basic";
	return oauth_lists(taken, "client_secret_post") ? "client_secret_post" : "none";
}

static const char *wanted_method(const struct uar_mcp_auth *a)
{
	const struct uar_json *taken =
		uar_json_get(a->server, UAR_STR("token_endpoint_auth_methods_supported"));

	return !taken || oauth_lists(taken, "none") ? "none" : choose_method(a, true);
}

static uar_err write_registration(const struct uar_mcp_auth *a, struct uar_buf *b)
{
	struct uar_jw w = uar_jw_begin(b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "client_name", "UAR");
	uar_jw_arr(&w, "redirect_uris");
	uar_jw_cstr(&w, NULL, a->o.redirect_url);
	uar_jw_close(&w);
	uar_jw_arr(&w, "grant_types");
	uar_jw_cstr(&w, NULL, "authorization_code");
	uar_jw_cstr(&w, NULL, "refresh_token");
	uar_jw_close(&w);
	uar_jw_arr(&w, "response_types");
	uar_jw_cstr(&w, NULL, "code");
	uar_jw_close(&w);
	uar_jw_cstr(&w, "token_endpoint_auth_method", wanted_method(a));
	uar_jw_cstr(&w, "application_type",
		    oauth_is_loopback(uar_str_c(a->o.redirect_url)) ? "native" : "web");
	if (a->scope.n)
		uar_jw_str(&w, "scope", a->scope);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static void register_client(struct uar_mcp_auth *a)
{
	static const char *const headers[] = { "Content-Type: application/json",
					       "Accept: application/json", NULL };
	struct uar_buf b = uar_buf_make(4 * UAR_LIMIT_MCP_OAUTH_TEXT);
	uar_err e = write_registration(a, &b);

	a->step = STEP_REGISTER;
	if (!e)
		e = oauth_post(a, a->registration, headers, uar_buf_str(&b));
	uar_buf_fini(&b);
	if (e)
		oauth_fail(a, uar_err_text(e));
}

void oauth_registered(struct uar_mcp_auth *a, const struct uar_json *j)
{
	struct oauth_entry *e = a->entry;
	uar_str method = uar_json_text(j, "token_endpoint_auth_method");

	if (!uar_json_text(j, "client_id").n) {
		oauth_fail(a, "the authorization server did not register this client");
		return;
	}
	set(&e->client_id, uar_json_text(j, "client_id"));
	set(&e->secret, uar_json_text(j, "client_secret"));
	set(&e->method, method.n ? method : uar_str_c(choose_method(a, e->secret.n > 0)));
	oauth_keep(a);
	send_person(a);
}

/* The server names the issuer: one that is not honest must not get the secret of another. */
static bool may_know_secret(const struct uar_mcp_auth *a)
{
	const char *issuer = a->o.setting.issuer;

	if (issuer)
		return uar_str_is(a->issuer, issuer);
	return uar_str_eq_nocase(oauth_origin(a->issuer), oauth_origin(uar_str_c(a->o.url))) ||
	       oauth_is_loopback(a->issuer);
}

void oauth_find_client(struct uar_mcp_auth *a)
{
	const struct uar_mcp_oauth_setting *s = &a->o.setting;
	struct oauth_entry *e = a->entry;

	if (!a->o.redirect_url) {
		oauth_fail(a, "the server wants a login, which needs a running uar serve");
		return;
	}
	if (s->client_id && s->client_secret && !may_know_secret(a)) {
		oauth_fail(a, "the authorization server is not the one that the client secret is "
			      "for: name it with oauth.issuer in the settings of the server");
		return;
	}
	if (s->client_id) {
		set(&e->client_id, uar_str_c(s->client_id));
		set(&e->secret, uar_str_c(s->client_secret ? s->client_secret : ""));
		set(&e->method, uar_str_c(choose_method(a, e->secret.n > 0)));
	} else if (s->client_metadata_url &&
		   uar_json_bool(uar_json_get(a->server,
					      UAR_STR("client_id_metadata_document_supported")),
				 false)) {
		set(&e->client_id, uar_str_c(s->client_metadata_url));
		set(&e->secret, UAR_STR(""));
		set(&e->method, UAR_STR("none"));
	}
	if (e->client_id.n)
		send_person(a);
	else if (a->registration.n)
		register_client(a);
	else
		oauth_fail(a, "the authorization server registers no clients: name one with "
			      "oauth.client_id in the settings of the server");
}

/* --- tokens ---------------------------------------------------------------------------------- */

static void put_basic(struct uar_mcp_auth *a, struct uar_buf *line)
{
	struct uar_buf pair = uar_buf_make(4 * UAR_LIMIT_MCP_OAUTH_TEXT);

	oauth_encode(&pair, uar_buf_str(&a->entry->client_id));
	uar_buf_add_char(&pair, ':');
	oauth_encode(&pair, uar_buf_str(&a->entry->secret));
	uar_buf_add_str(line, UAR_STR("Authorization: Basic "));
	uar_base64_encode(line, uar_buf_str(&pair));
	if (pair.err)
		line->err = pair.err;
	uar_buf_fini(&pair);
}

static uar_err ask_token(struct uar_mcp_auth *a, struct uar_buf *form)
{
	struct uar_buf line = uar_buf_make(8 * UAR_LIMIT_MCP_OAUTH_TEXT);
	const char *headers[] = { "Content-Type: application/x-www-form-urlencoded",
				  "Accept: application/json", NULL, NULL };
	const struct oauth_entry *e = a->entry;
	uar_err err;

	if (uar_str_is(uar_buf_str(&e->method), "client_secret_basic")) {
		put_basic(a, &line);
		headers[2] = line.p;
	} else {
		oauth_put(form, "client_id", uar_buf_str(&e->client_id));
		if (uar_str_is(uar_buf_str(&e->method), "client_secret_post"))
			oauth_put(form, "client_secret", uar_buf_str(&e->secret));
	}
	oauth_put(form, "resource", resource_of(a));
	err = form->err ? form->err : line.err;
	if (!err)
		err = oauth_post(a, a->token, headers, uar_buf_str(form));
	uar_buf_fini(&line);
	return err;
}

void oauth_change_code(struct uar_mcp_auth *a, uar_str code)
{
	struct uar_buf form = uar_buf_make(8 * UAR_LIMIT_MCP_OAUTH_TEXT);
	uar_err e;

	oauth_put(&form, "grant_type", UAR_STR("authorization_code"));
	oauth_put(&form, "code", code);
	oauth_put(&form, "redirect_uri", uar_str_c(a->o.redirect_url));
	oauth_put(&form, "code_verifier", a->verifier);
	e = ask_token(a, &form);
	uar_buf_fini(&form);
	if (e)
		oauth_fail(a, uar_err_text(e));
}

static bool take_token(struct uar_mcp_auth *a, const struct uar_json *j)
{
	struct oauth_entry *e = a->entry;
	int64_t lasts = uar_json_int(uar_json_get(j, UAR_STR("expires_in")), 0);
	uar_str refresh = uar_json_text(j, "refresh_token"), scope = uar_json_text(j, "scope");

	if (!uar_json_text(j, "access_token").n ||
	    !uar_str_eq_nocase(
		    uar_json_str(uar_json_get(j, UAR_STR("token_type")), UAR_STR("bearer")),
		    UAR_STR("bearer")) ||
	    !uar_str_is_visible(uar_json_text(j, "access_token")))
		return false;
	set(&e->access, uar_json_text(j, "access_token"));
	if (refresh.n)
		set(&e->refresh, refresh);
	set(&e->scope, a->scope.n ? a->scope : scope);
	if (lasts > LASTS_MOST)
		lasts = LASTS_MOST;
	e->expires_us = lasts > 0 ? uar_clock_wall(a->o.sched->clock) + lasts * 1000000 : 0;
	oauth_set_line(a);
	oauth_keep(a);
	a->step = STEP_NONE;
	a->person = UAR_STR_NONE;
	a->o.done(a->o.ctx, true, "");
	return true;
}

void oauth_got_token(struct uar_mcp_auth *a, const struct uar_json *j)
{
	if (j && take_token(a, j))
		return;
	/* The client may not be known there any more: the next attempt registers anew. */
	uar_buf_clear(&a->entry->client_id);
	oauth_fail(a, "the authorization server gave no token");
}

void oauth_refresh(struct uar_mcp_auth *a)
{
	struct uar_buf form = uar_buf_make(8 * UAR_LIMIT_MCP_OAUTH_TEXT);
	uar_err e;

	a->step = STEP_REFRESH;
	oauth_put(&form, "grant_type", UAR_STR("refresh_token"));
	oauth_put(&form, "refresh_token", uar_buf_str(&a->entry->refresh));
	e = ask_token(a, &form);
	uar_buf_fini(&form);
	if (e)
		oauth_fail(a, uar_err_text(e));
}

void oauth_refreshed(struct uar_mcp_auth *a, const struct uar_json *j)
{
	if (j && take_token(a, j))
		return;
	if (a->later.passing) { /* the token may be as good as before */
		oauth_fail(a, "the authorization server could not renew the token now");
		return;
	}
	uar_buf_clear(&a->entry->refresh);
	uar_buf_clear(&a->entry->access);
	oauth_find_client(a);
}
