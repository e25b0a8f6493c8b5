/* codex.h - the two ways in which Codex talks: exec --json, and its app-server. */
#ifndef UAR_BACKEND_CODEX_H
#define UAR_BACKEND_CODEX_H

#include "backend/cli.h"
#include "backend/rpc.h"

struct uab_codex_exec {
	struct uab_map map;
	bool fresh; /* a new thread: cumulative usage is this run's */
};

enum uab_codex_step { UAB_CX_HELLO, UAB_CX_LIST, UAB_CX_THREAD, UAB_CX_TURN };

struct uab_codex_app {
	struct uab_map map;
	struct uab_rpc rpc;
	const struct uab_options *opt;
	const char *cwd;
	uar_str prompt;
	bool may_fall_back, unavailable;     /* exec can do it instead; it has to */
	bool list_only;			     /* look for the last session, then leave */
	bool (*take)(void *ctx, uar_str id); /* one owner per session */
	void *ctx;
	enum uab_codex_step step;
	int64_t waiting; /* id of the request that was sent */
	char target[64]; /* session to resume or fork */
	char delta_item[128];
	bool turn_open;
	enum uab_cause cause;
	int64_t http;
	unsigned asks;
};

extern const struct uab_dialect uab_codex_exec_dialect, uab_codex_app_dialect;
/* The common part of both: which kind a tool item is; NULL when it is none. */
const char *uab_codex_tool_kind(uar_str type);
/* The HTTP status that begins what Codex says about a failure; 0: it begins otherwise. */
int64_t uab_codex_status(uar_str words);

#endif
