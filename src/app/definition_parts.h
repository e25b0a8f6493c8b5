/* definition_parts.h - what of a definition other rooms than agent/ judge. */
#ifndef UAR_APP_DEFINITION_PARTS_H
#define UAR_APP_DEFINITION_PARTS_H

#include "agent/definition.h"
#include "tool/http_source.h"

/* For uar_definition_also_check. */
UAR_MUST_CHECK uar_err uar_definition_check_parts(const struct uar_definition *d,
						  struct uar_error *error);
/* The HTTP tools of `tools_file`. The error reads "tools_file PATH, at /http/0/url: what is
 * wrong". */
UAR_MUST_CHECK uar_err uar_tools_file_read(const char *path, struct uar_http_tools_options *o,
					   struct uar_tools **out, struct uar_error *error);

#endif
