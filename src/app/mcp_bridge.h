/* mcp_bridge.h - `uar mcp serve`: the server for MCP clients that speak over pipes. */
#ifndef UAR_APP_MCP_BRIDGE_H
#define UAR_APP_MCP_BRIDGE_H

struct uar_cli;

/* Returns the code to exit with, once the client has closed its end or the server is gone. */
int uar_mcp_bridge(struct uar_cli *cli);

#endif
