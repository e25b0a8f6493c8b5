/* limits.h - the rows of limits.def as constants. */
#ifndef UAR_MCP_LIMITS_H
#define UAR_MCP_LIMITS_H

enum uar_mcp_limit {
#define L(NAME, VALUE, TEXT) UAR_LIMIT_##NAME = VALUE,
#include "mcp/limits.def"
#undef L
};

#endif
