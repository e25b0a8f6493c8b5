/* http_int.h - tools that are requests over HTTP: what is declared, what is sent; for tool/ alone.
 */
#ifndef UAR_TOOL_HTTP_INT_H
#define UAR_TOOL_HTTP_INT_H

#include "json/jw.h"
#include "tool/http_source.h"
#include "tool/limits.h"
#include "tool/secret.h"
#include "tool/tool.h"

/* One tool. Templates: {name} is an argument, ${secret:NAME} a secret. All strings end with 0
 * and live in an arena of the owner. */
struct uar_http_spec {
	struct uar_tool tool;
	uar_str method, url;
	const struct uar_json *query, *headers; /* objects of templates; NULL: none */
	const struct uar_json *body;		/* a JSON template; NULL: what is left over */
};

/* Reads one object. error->where points into it. */
UAR_MUST_CHECK uar_err uar_http_spec_read(const struct uar_json *j, struct uar_arena *arena,
					  struct uar_http_spec *out, struct uar_error *error);

/* The operations of a document become tools. *out is an array in the arena. */
UAR_MUST_CHECK uar_err uar_openapi_read(const struct uar_openapi_options *o,
					struct uar_arena *arena, struct uar_http_spec **out,
					size_t *out_count, struct uar_error *error);

/* A request as it is sent. */
struct uar_http_filled {
	struct uar_arena arena;
	struct uar_buf url, body;
	const char *headers[UAR_LIMIT_HTTP_TOOL_HEADERS + 3];
	struct uar_secrets_used used;
};
/* UAR_EINVALID: an argument cannot stand where it is wanted; UAR_ENOTFOUND: a secret is missing,
 * UAR_EFORBIDDEN: not granted. The host of the request is that of the declaration.
 * Fini in any case. */
UAR_MUST_CHECK uar_err uar_http_fill(const struct uar_http_spec *s, const struct uar_json *args,
				     const struct uar_secrets_ask *ask, struct uar_http_filled *out,
				     struct uar_error *error);
void uar_http_filled_fini(struct uar_http_filled *f);

#endif
