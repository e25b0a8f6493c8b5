/* oauth.h - how a server behind HTTP is given a token (OAuth 2.1, as MCP profiles it).
 *
 * A refusal (401, or 403 for want of scope) begins it: the metadata of the resource (RFC 9728)
 * and of its authorization server (RFC 8414, OpenID) are read, a client id is found (one that is
 * configured, the address of a metadata document, or dynamic registration), and a person is sent
 * to the authorization server, with PKCE, `state` and `resource` (RFC 8707). What comes back is
 * checked (RFC 9207) and changed for a token. A refresh token makes the person needless later.
 * Credentials are kept for each authorization server and never shown to another one. Every
 * address that a server names is judged by the guard of the HTTP client. */
#ifndef UAR_MCP_OAUTH_H
#define UAR_MCP_OAUTH_H

#include "base/arena.h"
#include "base/rand.h"
#include "loop/client.h"
#include "mcp/limits.h"

struct uar_mcp_auth;

/* NULL: not given. */
struct uar_mcp_oauth_setting {
	const char *client_id, *client_secret; /* of a client that was registered before */
	const char *issuer;		       /* who may know the secret; NULL: see docs/mcp.md */
	const char *client_metadata_url;       /* https: a document that describes this client */
	const char *scope;		       /* asked for besides */
	int64_t login_us;		       /* that a person has; 0: without an end */
};

/* What a browser brings back; .p NULL: absent. */
struct uar_mcp_redirect {
	uar_str state, code, iss, error;
};

struct uar_mcp_auth_options {
	struct uar_client *http;
	struct uar_sched *sched;
	const struct uar_rand *rand;
	const char *url;	  /* of the server; stays in place, as do all strings */
	const char *redirect_url; /* NULL: nobody can log in */
	struct uar_mcp_oauth_setting setting;
	uar_str kept; /* what `keep` was given last; copied */
	/* A person has to go there. */
	void (*wants)(void *ctx, const char *url);
	void (*done)(void *ctx, bool ok, const char *reason);
	void (*keep)(void *ctx, uar_str text); /* may be NULL */
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_mcp_auth_create(const struct uar_mcp_auth_options *o,
					   struct uar_mcp_auth **out);
void uar_mcp_auth_destroy(struct uar_mcp_auth *a); /* NULL is fine */
/* After a refusal: `wants` or `done` follow, never inside. One that is under way goes on. */
void uar_mcp_auth_begin(struct uar_mcp_auth *a, int status, uar_str challenge);
/* Why a login that nobody finished in time has failed: that text, and no copy of it. */
extern const char uar_mcp_login_expired[];
/* The header line of a request; NULL: there is no token. */
const char *uar_mcp_auth_line(const struct uar_mcp_auth *a);
/* Where a person is waited for; NULL: nowhere. */
const char *uar_mcp_auth_url(const struct uar_mcp_auth *a);
/* UAR_ENOTFOUND: the state is not the one that is waited for. It is good once. */
UAR_MUST_CHECK uar_err uar_mcp_auth_redirected(struct uar_mcp_auth *a,
					       const struct uar_mcp_redirect *r);

/* The value of a parameter of the Bearer challenge in a WWW-Authenticate header; .p NULL: it
 * has none. Pure. */
uar_str uar_mcp_challenge_param(uar_str header, const char *name, struct uar_arena *arena);
/* Is the resource of the metadata the server at that url, or above it? Pure. */
bool uar_mcp_resource_matches(uar_str resource, uar_str url);

#endif
