/* http_source.h - sources of tools that are requests over HTTP (registry.h).
 *
 * The tools of a definition: `http` declares them one by one, `openapi` takes them from documents
 * (docs/tools.md). And internal:http.fetch, which reads an address that a model names. Every
 * address is judged by the client's guard. */
#ifndef UAR_TOOL_HTTP_SOURCE_H
#define UAR_TOOL_HTTP_SOURCE_H

#include "json/json.h"
#include "loop/client.h"
#include "tool/secret.h"
#include "tool/tool.h"

struct uar_http_tools_options {
	struct uar_sched *sched;
	struct uar_client *client;
	const struct uar_secrets *secrets;     /* NULL: there are none */
	bool only_granted;		       /* as in uar_secrets_ask */
	const struct uar_json *http, *openapi; /* arrays, copied; NULL: none */
};
/* error->where is a pointer such as /http/0/url. */
UAR_MUST_CHECK uar_err uar_http_tools_create(const struct uar_http_tools_options *o,
					     struct uar_tools **out, struct uar_error *error);

/* An OpenAPI 3 document: the operations that `only` (an array of patterns of operation ids; NULL:
 * all) names. */
struct uar_openapi_options {
	const struct uar_json *document, *only, *headers;
	uar_str base_url; /* empty: the first server of the document */
};
/* Writes the entry of `openapi` for a document: what those operations need of it and no more, and
 * the address of the service. `url` is where the document was found, empty: in a file. */
UAR_MUST_CHECK uar_err uar_openapi_import(const struct uar_openapi_options *o, uar_str url,
					  struct uar_buf *out, struct uar_error *error);

UAR_MUST_CHECK uar_err uar_fetch_tool_create(struct uar_sched *sched, struct uar_client *client,
					     struct uar_tools **out);

#endif
