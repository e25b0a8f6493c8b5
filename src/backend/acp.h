/* acp.h - a client of the Agent Client Protocol, version 1. */
#ifndef UAR_BACKEND_ACP_H
#define UAR_BACKEND_ACP_H

#include "backend/cli.h"
#include "backend/rpc.h"

enum uab_acp_step { UAB_ACP_HELLO, UAB_ACP_LIST, UAB_ACP_SESSION, UAB_ACP_PROMPT };

struct uab_acp {
	struct uab_map map;
	struct uab_rpc rpc;
	const struct uab_options *opt;
	const char *cwd;
	uar_str prompt;
	bool (*take)(void *ctx, uar_str id);
	void *ctx;
	enum uab_acp_step step;
	int64_t waiting;
	bool can_load, can_resume, can_fork, can_list, can_dirs;
	char wire_id[4096];		     /* the session, as the agent names it */
	char target[UAA_MAX_SESSION_ID + 1]; /* to resume or fork */
	char message_id[128];		     /* of the answer being streamed */
	bool anonymous;			     /* some of it has no id: no final text */
	bool thinking;
	unsigned asks;
};

extern const struct uab_dialect uab_acp_dialect;

#endif
