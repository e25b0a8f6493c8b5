/* elicit.h - forms that a server asks for: what a person left out, pure. */
#ifndef UAR_MCP_ELICIT_H
#define UAR_MCP_ELICIT_H

#include "base/buf.h"
#include "json/json.h"

/* Writes the result {"action":"accept","content":{...}}: the values, and the defaults of the
 * requested schema for those that are not there. `values` may be NULL. */
UAR_MUST_CHECK uar_err uar_mcp_elicit_accept(const struct uar_json *params,
					     const struct uar_json *values, struct uar_buf *out);

#endif
