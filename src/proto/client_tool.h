/* client_tool.h - tools that clients of any dialect bring along. */
#ifndef UAR_PROTO_CLIENT_TOOL_H
#define UAR_PROTO_CLIENT_TOOL_H

#include "json/jw.h"

/* A tool with that name and those parameters (NULL: none), number `index` of its list. */
UAR_MUST_CHECK uar_err uar_client_tool_check(const struct uar_json *tool,
					     const struct uar_json *parameters, unsigned index,
					     struct uar_error *error);
/* As event/client.h has it. */
void uar_client_tool_put(struct uar_jw *w, const struct uar_json *tool);

#endif
