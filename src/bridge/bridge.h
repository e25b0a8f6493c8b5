/* bridge.h - agents that are programs, from their definitions to their runs.
 *
 * Loads the definitions of a directory, drives each run through libagent_api from
 * the loop, and gives the runtime the port of event/agent.h. A definition that is
 * not right is left out and named in a note; it stops nobody. */
#ifndef UAR_BRIDGE_BRIDGE_H
#define UAR_BRIDGE_BRIDGE_H

#include "base/log.h"
#include "event/agent.h"
#include "loop/loop.h"

struct uar_bridge;

struct uar_bridge_note {
	enum uar_log_level level;
	const char *what; /* "agent.loaded", "agent.refused", "agent.removed" */
	const char *file;
	uar_str text;
};

struct uar_bridge_options {
	struct uar_loop *loop;
	const char *dir; /* of the definitions; need not exist */
	char **env;	 /* what definitions may pass on */
	/* codex, claude_code and acp:NAME are there without a definition; each run names
	 * its working directory, and every approval is asked for. */
	bool ad_hoc;
	/* Only this machine can connect: failures may be told in the agent's own words. */
	bool local;
	/* Is the id taken by an agent that is built in? */
	bool (*taken)(uar_str agent_id);
	void (*note)(void *ctx, const struct uar_bridge_note *n);
	void *ctx;
};

UAR_MUST_CHECK uar_err uar_bridge_create(const struct uar_bridge_options *o,
					 struct uar_bridge **out, struct uar_error *error);
struct uar_agents *uar_bridge_agents(struct uar_bridge *b);
/* Reads the directory again: new, changed and removed files. What runs goes on with the
 * definition it began with; of a file that is wrong now the earlier one stays, and all of
 * them when the directory cannot be read. After it
 * `changed` is called, then infos that were handed out before are gone. */
UAR_MUST_CHECK uar_err uar_bridge_reload(struct uar_bridge *b, void (*changed)(void *ctx),
					 void *ctx, struct uar_error *error);
/* Stops what still runs and waits until its processes are gone. NULL is fine. */
void uar_bridge_destroy(struct uar_bridge *b);

#endif
