/* verbs_mcp.h - what `uar mcp` does with the servers of a running server. */
#ifndef UAR_APP_VERBS_MCP_H
#define UAR_APP_VERBS_MCP_H

#include "app/cli.h"

int uar_mcp_add(struct uar_cli *cli);
int uar_mcp_import(struct uar_cli *cli);
int uar_mcp_login(struct uar_cli *cli);
int uar_mcp_remove(struct uar_cli *cli);
int uar_mcp_test_row(struct uar_cli *cli);
/* False: no server answers. */
bool uar_mcp_list_rows(struct uar_cli *cli, int *out_status);

#endif
