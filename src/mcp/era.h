/* era.h - the two eras of the Model Context Protocol, told apart by a message and its headers.
 *
 * Legacy: the revisions up to 2025-11-25; a client initializes a session first. Modern:
 * 2026-07-28; each request stands for itself and says in `_meta` which revision it is of.
 * Pure. */
#ifndef UAR_MCP_ERA_H
#define UAR_MCP_ERA_H

#include "mcp/message.h"

#define UAR_MCP_MODERN	      "2026-07-28"
#define UAR_MCP_LEGACY	      "2025-11-25" /* the newest of them */
#define UAR_MCP_LEGACY_SILENT "2025-03-26" /* of a request without the header */
#define UAR_MCP_META	      "io.modelcontextprotocol/"

enum uar_mcp_era { UAR_MCP_ERA_LEGACY, UAR_MCP_ERA_MODERN };

/* Revisions of the legacy era that are spoken; NULL past the end, the newest first. */
const char *uar_mcp_legacy_version(size_t index);
bool uar_mcp_is_legacy_version(uar_str version);

enum uar_mcp_method {
#define M(NAME, METHOD, LEGACY, MODERN, NAMED, CACHED) UAR_MCP_M_##NAME,
#include "mcp/method.def"
#undef M
	UAR_MCP_M_COUNT
};
struct uar_mcp_method_info {
	const char *method;
	bool legacy, modern;
	const char *named; /* "" for none */
	bool cached;
};
extern const struct uar_mcp_method_info uar_mcp_methods[UAR_MCP_M_COUNT];
/* UAR_MCP_M_COUNT: that era has no such method. */
enum uar_mcp_method uar_mcp_method_of(enum uar_mcp_era era, uar_str method);

/* What the head of an HTTP request says; .p NULL: absent. */
struct uar_mcp_head {
	uar_str version, method, name; /* MCP-Protocol-Version, Mcp-Method, Mcp-Name */
};

/* A request as it was understood, or why it was not. */
struct uar_mcp_verdict {
	enum uar_mcp_era era;
	enum uar_mcp_method method;
	int status; /* of the HTTP answer, should it be refused */
	int code;   /* of JSON-RPC; 0: the request may go on */
	const char *text;
	uar_str data; /* JSON, or empty */
};
enum uar_mcp_era uar_mcp_era_of(const struct uar_mcp_message *m, const struct uar_mcp_head *head);
/* Judges a request or notification of the modern era, or the method of a legacy one. `head`
 * NULL: it did not come over HTTP. */
void uar_mcp_judge(const struct uar_mcp_message *m, const struct uar_mcp_head *head,
		   struct uar_arena *arena, struct uar_mcp_verdict *out);
/* The value of a header: itself, or what "=?base64?...?=" stands for. UAR_EINVALID: it is
 * none. */
UAR_MUST_CHECK uar_err uar_mcp_header_decode(uar_str value, struct uar_arena *arena, uar_str *out);
/* The value as a header may have it. .p NULL: out of memory. */
uar_str uar_mcp_header_encode(uar_str value, struct uar_arena *arena);

/* params._meta["io.modelcontextprotocol/<name>"], or NULL. */
const struct uar_json *uar_mcp_meta(const struct uar_mcp_message *m, const char *name);
/* params._meta.progressToken as JSON text; empty: none. */
uar_str uar_mcp_progress_token(const struct uar_mcp_message *m, struct uar_arena *arena);

#endif
