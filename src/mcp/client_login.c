/* client_login.c - a server that refuses a request until there is a token for it. */
#include "mcp/client_int.h"

static bool authorize(struct uar_mcp_client *c, int status)
{
	uar_str challenge = c->link->ops->challenge(c->link);

	if (!c->auth || (status == 403 && !memmem(challenge.p ? challenge.p : "", challenge.n,
						  "insufficient_scope", 18)))
		return false;
	uar_mcp_auth_begin(c->auth, status, challenge);
	return true;
}

/* The refused request is made again with a token; a call so often, a connection without end, but
 * later each time. */
bool client_authorize_request(struct uar_mcp_client *c, struct uar_mcp_call *call, int status)
{
	if (call && (call->logins++ >= UAR_LIMIT_MCP_LOGINS || !authorize(c, status)))
		return false;
	if (call) {
		call->parked = true;
		client_rest_call(call);
		return true;
	}
	if (c->failures >= UAR_LIMIT_MCP_LOGINS || !authorize(c, status))
		return false;
	c->failures++;
	c->state = STATE_AUTHORIZING;
	c->id[0] = 0;
	uar_timer_stop(c->sched, &c->timer);
	return true;
}

static void login_wanted(void *ctx, const char *url)
{
	struct uar_mcp_client *c = ctx;

	UAR_LIST_EACH (it, &c->calls) {
		struct uar_mcp_call *call = UAR_OWNER(it, struct uar_mcp_call, node);

		if (call->parked)
			client_ask_login(call, url);
	}
	if (c->state != STATE_AUTHORIZING)
		return;
	uar_buf_clear(&c->reason);
	uar_buf_add_str(&c->reason, UAR_STR("it wants a login"));
	client_show_tools(c, NULL);
}

static void login_over(void *ctx, bool ok, const char *reason)
{
	struct uar_mcp_client *c = ctx;
	bool connects = c->state == STATE_AUTHORIZING;

	if (reason == uar_mcp_login_expired)
		c->failures = 0; /* somebody may come later: it asks anew */
	if (connects && ok)
		client_connect(c);
	else if (connects)
		client_connect_later(c, reason);
	client_login_over(c, ok, reason);
}

static void login_kept(void *ctx, uar_str text)
{
	struct uar_mcp_client *c = ctx;

	if (c->o.news.tokens)
		c->o.news.tokens(c->o.ctx, text);
}

uar_err client_make_auth(struct uar_mcp_client *c)
{
	struct uar_mcp_auth_options o = { .http = c->o.http,
					  .sched = c->sched,
					  .rand = c->o.rand ? c->o.rand : &uar_rand_system,
					  .url = c->o.server.url,
					  .redirect_url = c->o.redirect_url,
					  .setting = c->o.server.oauth,
					  .kept = c->o.tokens,
					  .wants = login_wanted,
					  .done = login_over,
					  .keep = login_kept,
					  .ctx = c };

	return c->o.server.url ? uar_mcp_auth_create(&o, &c->auth) : UAR_OK;
}

const char *uar_mcp_client_login(const struct uar_mcp_client *c)
{
	return c->auth ? uar_mcp_auth_url(c->auth) : NULL;
}

uar_err uar_mcp_client_logged_in(struct uar_mcp_client *c, const struct uar_mcp_redirect *r)
{
	return c->auth ? uar_mcp_auth_redirected(c->auth, r) : UAR_ENOTFOUND;
}
