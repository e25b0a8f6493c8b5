/* work_int.h - what the files of work/ share. */
#ifndef UAR_WORK_WORK_INT_H
#define UAR_WORK_WORK_INT_H

#include "work/limits.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/sha256.h"
#include "engine/worker.h"
#include "event/agent.h"
#include "model/models.h"
#include "store/store.h"
#include "tool/tool.h"
#include "work/work.h"

struct agent_list {
	struct uar_agent *at;
	size_t count;
};

/* past.c: conversations kept in memory while there is room, by the key of their thread. */
struct past_cache {
	struct uar_list list; /* of struct past, the least recently used first */
	struct uar_map map;
	size_t count, bytes;
};

/* toolset.c: the list of the tools of a policy, as it is written for each of its runs. */
struct tool_catalog {
	char key[UAR_SHA256_TEXT + 1]; /* of the policy; empty: free */
	uint64_t generation;	       /* of the registry */
	uint64_t used;		       /* when, in uses */
	struct uar_buf text;
};
struct tool_catalogs {
	struct tool_catalog at[UAR_LIMIT_TOOL_CATALOGS];
	uint64_t uses;
};

struct uar_workers {
	struct rt_workers port;
	struct rt_part part;
	struct uar_runtime *rt;
	struct uar_workers_options o;
	struct agent_list defined; /* agents of o.agents */
	struct past_cache pasts;
	struct {
		struct uar_list queue; /* of struct uar_definition_change; the first is at work */
		size_t count;
		struct uar_list loaders; /* of struct definition_loader, that wait */
		size_t loading;	  /* owners whose definitions are being read, or wait for that */
		unsigned at_work; /* that are being read */
	} changes;		  /* of definitions in the database */
	struct {
		struct uar_list queue; /* of struct uar_credential_change; the first is at work */
		size_t count;
	} credentials;
	struct {
		struct uar_watch watch;
		struct uar_list queue; /* of struct skill_tally */
		size_t count;
		struct skill_tally *writing; /* one is being written; or NULL */
	} tallies;			     /* skill_tally.c */
	struct {
		struct uar_host_policy *own; /* a later one than that of the options; or NULL */
		uint64_t asked, in_force;    /* changes of it */
	} policy;
	struct uar_map pinned; /* definitions.c: of struct pinned, by revision */
	struct tool_catalogs catalogs;
};
struct uar_workers *rt_work(const struct live_run *r);
struct uar_workers *rt_work_at(const struct uar_runtime *rt);
/* Reads a page of a run of that session: run_id, after and done are set. */
UAR_MUST_CHECK uar_err rt_read_run(struct agg *a, struct uar_read *r);

/* agents.c */
uar_err rt_agents_init(struct uar_workers *w);
void rt_agents_clear(struct uar_workers *w);
/* mcp_servers.c: connects the servers of definitions and lets go those of none. */
void rt_mcp_follow(struct uar_workers *w);
/* processes.c */
void rt_processes_init(struct uar_workers *w);
void rt_processes_committed(struct uar_workers *w, const struct rt_commit *c);
void rt_process_order(struct rt_workers *port, const struct rt_process_order *o);
/* skill_tally.c */
void rt_skill_tally_init(struct uar_workers *w);
void rt_skill_tally_fini(struct uar_workers *w);
/* past.c */
void rt_pasts_clear(struct past_cache *c);
void rt_pasts_fini(struct past_cache *c);
/* toolset.c */
void rt_catalogs_fini(struct uar_workers *w);
/* host_policy.c */
void rt_host_policy_fini(struct uar_workers *w);

/* request.c: what the engine asks about a request for a run. */
uar_err rt_request_check(struct rt_workers *port, struct rt_request *q);
uar_err rt_request_look(struct rt_workers *port, struct rt_request *q);

/* entry_*.c: the worker of each entry. */
uar_err rt_echo_make(struct live_run *r, struct worker **out);
uar_err rt_fixture_make(struct live_run *r, struct worker **out);
uar_err rt_llm_make(struct live_run *r, struct worker **out);
uar_err rt_plugin_make(struct live_run *r, struct worker **out);
uar_err rt_backend_make(struct live_run *r, struct worker **out);
uar_err rt_peer_make(struct live_run *r, struct worker **out);
/* What a fixture run is asked to replay, and whether at the recorded pace. */
uar_err rt_fixture_inputs(const struct uar_json *inputs, uar_str *out_name, bool *out_paced,
			  struct uar_error *error);
/* What a run of that agent may be told besides its message. */
uar_err rt_backend_check(const struct uar_agent *agent, uar_str inputs, struct uar_error *error);
struct dir_look;
/* *out NULL: there is no directory to look for. */
uar_err rt_backend_look(const struct uar_agents *host, uar_str inputs, struct dir_look **out);
uar_err rt_backend_looked(const struct dir_look *job, struct uar_error *error);
/* Asks for a place at the plugin. False: the run waits for it. */
bool rt_plugin_place(struct rt_workers *port, struct live_run *r, uar_str plugin_id,
		     uar_str entry_id);
/* The same for a run that is not at work yet. False: it waits for a place, or for a process to
 * be ready; then its worker is there first. Before the run is durable no worker is made. */
bool rt_plugin_may_begin(struct rt_workers *port, struct live_run *r, uar_str plugin_id,
			 uar_str entry_id);
void rt_plugin_leave(struct rt_workers *port, struct live_run *r);

/* input.c: the user's text, also when it is a blob. `ready` fires later, unless
 * the load is cancelled first. */
struct input_load;
typedef void input_ready_fn(void *ctx, uar_err e, uar_str text);
uar_err rt_input_load(struct live_run *r, input_ready_fn *ready, void *ctx,
		      struct input_load **out);
/* The same for all inputs but the message, as JSON or empty. */
uar_err rt_inputs_load(struct live_run *r, input_ready_fn *ready, void *ctx,
		       struct input_load **out);
/* The same for a text in a blob. */
uar_err rt_text_load(struct live_run *r, uar_str sha256, input_ready_fn *ready, void *ctx,
		     struct input_load **out);
void rt_input_cancel(struct input_load *l); /* NULL is fine */

#endif
