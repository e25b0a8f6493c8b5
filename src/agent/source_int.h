/* source_int.h - the reader of YAML, for source.c. */
#ifndef UAR_AGENT_SOURCE_INT_H
#define UAR_AGENT_SOURCE_INT_H

#include "agent/source.h"

UAR_MUST_CHECK uar_err uar_source_yaml(uar_str text, struct uar_buf *out, struct uar_error *error);

#endif
