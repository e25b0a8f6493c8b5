/* bridge.h - agents that are programs, from their definitions to their runs.
 *
 * Takes the definitions of programs from the registry, drives each run through libagent_api
 * from the loop, and gives the runtime the port of event/agent.h. A definition whose program
 * this build cannot drive is left out and named in a note. */
#ifndef UAR_BRIDGE_BRIDGE_H
#define UAR_BRIDGE_BRIDGE_H

#include "agent/registry.h"
#include "event/agent.h"
#include "loop/loop.h"

struct uar_bridge;

struct uar_bridge_options {
	struct uar_loop *loop;
	const struct uar_registry *registry; /* entries of files; outlives the bridge */
	char **env;			     /* what definitions may pass on */
	/* codex, claude_code and acp:NAME are there without a definition; each run names
	 * its working directory, and every approval is asked for. */
	bool ad_hoc;
	/* Only this machine can connect: failures may be told in the agent's own words. */
	bool local;
	void (*note)(void *ctx, const struct uar_registry_note *n);
	void *ctx;
};

UAR_MUST_CHECK uar_err uar_bridge_create(const struct uar_bridge_options *o,
					 struct uar_bridge **out);
struct uar_agents *uar_bridge_agents(struct uar_bridge *b);
/* Call after the registry changed. What runs goes on with the definition it began with. After
 * it `changed` is called, then infos that were handed out before are gone. */
UAR_MUST_CHECK uar_err uar_bridge_reload(struct uar_bridge *b, void (*changed)(void *ctx),
					 void *ctx);
/* Stops what still runs and waits until its processes are gone. NULL is fine. */
void uar_bridge_destroy(struct uar_bridge *b);

#endif
