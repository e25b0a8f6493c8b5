/* settings.h - a table of MCP servers, as UAR's settings and other programs write it.
 *
 *	{"files": {"command": "npx", "args": ["-y", "server-filesystem", "/data"], "env": {"A":
 *"b"}}, "tracker": {"url": "https://mcp.example/mcp", "headers": {"X-Team": "a"}, "tools":
 *["search*"], "read_only": ["search*"], "ask": false}}
 *
 * Members of other programs (type, transport, disabled, description ...) are understood or
 * ignored. Values may name variables of the environment, ${NAME}, so that keys need not stand
 * there. */
#ifndef UAR_MCP_SETTINGS_H
#define UAR_MCP_SETTINGS_H

#include "mcp/client.h"

struct uar_mcp_setting {
	struct uar_mcp_server server;
	const struct uar_json *tools;	  /* patterns of those that are offered; NULL: all */
	const struct uar_json *read_only; /* of those that change nothing; NULL: none */
	bool ask;			  /* each call of the others has to be allowed */
	bool disabled;
	bool offer; /* it is passed on to clients, by relay.h, and not given to agents */
};
struct uar_mcp_settings {
	const struct uar_mcp_setting *at;
	size_t count;
};

/* `env`: where ${NAME} and what a child process inherits come from (PATH, HOME, LANG, LC_ALL, TZ,
 * TMPDIR, USER); NULL: nothing is looked up, and a command gets an empty environment. The text is a
 * table, or an object whose member "mcpServers" is one; empty text is an empty table. `error`
 * names the member by a JSON pointer. Everything lives in the arena. */
UAR_MUST_CHECK uar_err uar_mcp_settings_read(uar_str json, char *const *env, struct uar_arena *a,
					     struct uar_mcp_settings *out, struct uar_error *error);
/* Is the name one of these? A '*' at the end of a pattern stands for any text. */
bool uar_mcp_names(const struct uar_json *patterns, uar_str name);
bool uar_mcp_setting_offers(const struct uar_mcp_setting *s, uar_str tool);
bool uar_mcp_setting_is_read_only(const struct uar_mcp_setting *s, uar_str tool);

#endif
