/* definition_int.h - what the readers of definitions share. */
#ifndef UAR_AGENT_DEFINITION_INT_H
#define UAR_AGENT_DEFINITION_INT_H

#include "agent/definition.h"

/* definition_check.c: what a schema cannot say. */
UAR_MUST_CHECK uar_err uar_definition_check(const struct uar_definition *d,
					    struct uar_error *error);
/* definition_hint.c: adds what to write instead to an error of the schema. */
void uar_definition_hint(struct uar_error *error);

/* canonical.c: the same bytes for all definitions that say the same. */
struct uar_buf;
UAR_MUST_CHECK uar_err uar_definition_canonical(const struct uar_json *j, struct uar_buf *out);

#endif
