/* mcp_host.h - the MCP servers that agents use, by name, wherever they were written down.
 *
 * Those of the settings stay as long as the server; those of the database and of definitions come
 * and go. A server is for everybody, or for one owner: two owners may have one of the same name,
 * and share neither its connection nor its tokens. Else a name belongs to the first who takes it.
 * Each is connected by itself and has its tools in the registry while it is there.
 *
 * Callbacks fire from the loop, never inside the call that asked for them. */
#ifndef UAR_TOOL_MCP_HOST_H
#define UAR_TOOL_MCP_HOST_H

#include "tool/tool.h"

struct uar_buf;
struct uar_client;
struct uar_json;
struct uar_jw;
struct uar_loop;
struct uar_mcp_client;
struct uar_mcp_setting;
struct uar_mcp_host;
struct uar_mcp_hosted; /* one server */

enum uar_mcp_origin { UAR_MCP_OF_SETTINGS, UAR_MCP_OF_DATABASE, UAR_MCP_OF_AGENT };

struct uar_mcp_host_options {
	struct uar_loop *loop;
	struct uar_client *http;
	struct uar_tools *registry; /* outlives it */
	char *const *env;	    /* as in mcp/settings.h */
	/* What the operator has not written may start programs and name variables, if it is for
	 * everybody or for this owner: the operator; no tenant: for any. */
	bool commands;
	struct uar_owner owner; /* strings outlive it */
	/* Tokens of a server, by a name that is fit for a file; `load` appends what `keep` was
	 * given, or nothing. */
	void (*load)(void *ctx, const char *key, struct uar_buf *out);
	void (*keep)(void *ctx, const char *key, uar_str tokens);   /* empty: they are forgotten */
	void (*changed)(void *ctx, const struct uar_mcp_hosted *h); /* its tools or its state */
	/* Tools have another description or schema than before; may be NULL. */
	void (*turned)(void *ctx, const struct uar_mcp_hosted *h,
		       const struct uar_tool *const *tools, size_t count);
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_mcp_host_create(const struct uar_mcp_host_options *o,
					   struct uar_mcp_host **out);
/* Before the registry: its sources are taken out of it. NULL is fine. */
void uar_mcp_host_destroy(struct uar_mcp_host *h);
/* Where logins come back to, from now on. Servers that wait for one begin anew. */
void uar_mcp_host_set_redirect(struct uar_mcp_host *h, const char *url);

struct uar_mcp_put {
	uar_str name;
	uar_str text; /* JSON object, one server of mcp/settings.h; copied */
	enum uar_mcp_origin origin;
	uar_str agent_id;	/* whose definition has it; else empty */
	struct uar_owner owner; /* for whom alone it is; no tenant: for everybody */
	bool from_file;		/* the operator's own file has the definition */
};
/* Can it be put? `error` says why not: UAR_EEXISTS, UAR_EFORBIDDEN, UAR_ECONFIG, UAR_ETOOBIG. */
UAR_MUST_CHECK uar_err uar_mcp_host_check(struct uar_mcp_host *h, const struct uar_mcp_put *p,
					  struct uar_error *error);
/* The same one again is left as it is; another one of the same place takes its place. */
UAR_MUST_CHECK uar_err uar_mcp_host_put(struct uar_mcp_host *h, const struct uar_mcp_put *p,
					struct uar_error *error);
void uar_mcp_host_drop(struct uar_mcp_host *h, enum uar_mcp_origin origin,
		       const struct uar_owner *owner, uar_str name);
/* Has the server, as it is written down, a value that must not be readable: one of env, headers or
 * client_secret that does not only name where it is? */
bool uar_mcp_hides(const struct uar_json *server);

const struct uar_mcp_hosted *uar_mcp_host_at(const struct uar_mcp_host *h, size_t index);
/* Among those that are there for the owner; NULL: for everybody. */
struct uar_mcp_hosted *uar_mcp_host_find(const struct uar_mcp_host *h,
					 const struct uar_owner *owner, uar_str name);
bool uar_mcp_hosted_is_for(const struct uar_mcp_hosted *s, const struct uar_owner *owner);
const struct uar_owner *uar_mcp_hosted_owner(const struct uar_mcp_hosted *s);
const char *uar_mcp_hosted_name(const struct uar_mcp_hosted *s);
enum uar_mcp_origin uar_mcp_hosted_origin(const struct uar_mcp_hosted *s);
uar_str uar_mcp_hosted_agent(const struct uar_mcp_hosted *s);
struct uar_mcp_client *uar_mcp_hosted_client(const struct uar_mcp_hosted *s); /* NULL: disabled */
const struct uar_mcp_setting *uar_mcp_hosted_setting(const struct uar_mcp_hosted *s);
/* Members of an object: name, origin, state, reason, tools, login_url, server, without secrets. */
void uar_mcp_hosted_write(struct uar_jw *w, const struct uar_mcp_hosted *s);
/* Forgets the tokens of a server and connects anew. */
void uar_mcp_hosted_log_out(struct uar_mcp_hosted *s);
struct uar_mcp_returned {
	uar_str state, code, iss, error; /* .p NULL: absent */
};
/* What a browser brought back from a login. UAR_ENOTFOUND: nobody waits for that. */
UAR_MUST_CHECK uar_err uar_mcp_host_redirected(struct uar_mcp_host *h,
					       const struct uar_mcp_returned *r,
					       const char **out_name);

#endif
