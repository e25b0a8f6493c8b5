/* definition_parts.h - what of a definition other rooms than agent/ judge. */
#ifndef UAR_APP_DEFINITION_PARTS_H
#define UAR_APP_DEFINITION_PARTS_H

#include "agent/definition.h"

/* For uar_definition_also_check. */
UAR_MUST_CHECK uar_err uar_definition_check_parts(const struct uar_definition *d,
						  struct uar_error *error);

#endif
