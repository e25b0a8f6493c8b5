/* work.h - those who execute runs: models, tools, plugins, programs, recordings.
 *
 * Attached to the engine before recovery and destroyed with it. The engine decides; a
 * worker does what was decided and sends what came of it as commands. */
#ifndef UAR_WORK_WORK_H
#define UAR_WORK_WORK_H

#include "engine/engine.h"

struct uar_agents;
struct uar_hooks;
struct uar_registered;
struct uar_registry;
struct uar_remotes;
struct uar_model;
struct uar_skill_book;
struct uar_models;
struct uar_model_policy;
struct uar_client;
struct uar_knowledge;
struct uar_mcp_host;
struct uar_processes;
struct uar_secrets;
struct uar_tool;
struct uar_tools;
struct uar_workers;

/* `permissions` of the configuration: the operator's rules. error->where points into it. */
struct uar_host_policy;
UAR_MUST_CHECK uar_err uar_host_policy_read(uar_str json, struct uar_host_policy **out,
					    struct uar_error *error);
void uar_host_policy_destroy(struct uar_host_policy *h); /* NULL is fine */
/* The operator has changed it: the next call is decided by it, and policy.changed says so. Takes
 * it over. */
void uar_workers_change_policy(struct uar_workers *w, struct uar_host_policy *taken);

/* How long models are waited for. */
struct uar_model_patience {
	int64_t idle_us;  /* a call without a token for so long ends; 0: its default */
	int retries;	  /* failed calls of one model that are repeated */
	int64_t retry_us; /* the first wait before that */
};

struct uar_workers_options {
	const struct uar_models *models; /* providers by name; NULL: the next two alone */
	struct uar_model *scripted;	 /* always there */
	struct uar_model *provider;	 /* NULL: none configured */
	const char *provider_model;	 /* model name for `provider` */
	struct uar_entries *entries;	 /* plugins; NULL: none */
	struct uar_agents *agents;	 /* agents that are programs; NULL: none */
	/* Whose server it is: others may not name agents that are programs, unless they are shared.
	 */
	struct uar_owner owner; /* strings outlive it */
	bool share_programs;
	struct uar_registry *registry; /* definitions; NULL: none */
	struct uar_skill_book *skills; /* NULL: none */
	struct uar_tools *tools;       /* what models may ask for; NULL: nothing */
	struct uar_client *client;     /* for HTTP tools of definitions; NULL: none of them */
	struct uar_remotes *remotes;   /* agents of other runtimes; NULL: none */
	const struct uar_secrets *secrets;
	struct uar_processes *processes; /* that run commands; outlive the runs; NULL: none */
	const char *files_dir;		 /* what the fs.* tools see; NULL: there are none */
	struct uar_mcp_host *mcp;	 /* MCP servers; outlives the runs; NULL: none */
	struct uar_knowledge *knowledge; /* outlives the runs; NULL: none */
	const char *fixtures_dir;	 /* NULL: none */
	struct uar_model_patience patience;
	/* Which models are used when the agent's own policy does not say; NULL: `provider` */
	const struct uar_model_policy *routing;
	struct uar_hooks *hooks;		   /* outlives the runs; NULL: none */
	const struct uar_host_policy *permissions; /* outlives the runs; NULL: none */
	int64_t action_timeout_us; /* after which a question of a tool expires; 0: never */
	bool export_progress;	   /* reports of plugins are items, too */
};
UAR_MUST_CHECK uar_err uar_workers_create(struct uar_runtime *rt,
					  const struct uar_workers_options *o,
					  struct uar_workers **out);
/* For model calls that begin from now on. */
void uar_workers_reload(struct uar_workers *w, const struct uar_model_patience *p);
struct uar_entries *uar_workers_entries(const struct uar_workers *w); /* NULL: no plugins */
struct uar_tools *uar_workers_tools(const struct uar_workers *w);     /* NULL: no tools */
struct uar_mcp_host *uar_workers_mcp(const struct uar_workers *w);
/* Records in the owner's registry session that tools of a server are not what they were. */
void uar_workers_note_mcp_tools(struct uar_workers *w, const struct uar_owner *owner,
				uar_str server, const struct uar_tool *const *tools,
				size_t count); /* NULL: no MCP servers */

/* The tools that a caller may use now: those of an agent's model, or (no agent) those that may
 * be called without a run. */
struct uar_inventory_ask {
	const struct uar_owner *owner;
	uar_str agent_id;
	bool read_only; /* the mode in which nothing may be changed */
};
/* Writes a JSON object. UAR_ENOTFOUND: the owner has no such agent. */
UAR_MUST_CHECK uar_err uar_workers_inventory(struct uar_workers *w,
					     const struct uar_inventory_ask *ask,
					     struct uar_buf *out, struct uar_error *error);

/* What every rule says about a call that is not made. */
struct uar_evaluate_op {
	struct uar_owner owner; /* these stay in place until done */
	uar_str session_id;	/* or empty */
	uar_str thread_id, turn_id, agent_id;
	uar_str tool, arguments; /* an id or a name; a JSON object, or empty */
	struct uar_run_permit permit;
	void (*done)(struct uar_evaluate_op *op);
	void *ctx; /* the caller's */
	/* out; strings are valid inside done */
	uar_err err;
	struct uar_error error;
	uar_str tool_id, tool_name;
	struct uar_buf decision; /* JSON object; the caller's to free, also after an error */
};
UAR_MUST_CHECK uar_err uar_workers_evaluate(struct uar_workers *w, struct uar_evaluate_op *op);
/* May a run or a session choose the mode? */
bool uar_workers_allow_mode(const struct uar_workers *w, enum uar_permission_mode mode);

/* What a revision of an agent's definition says about tools: a toolbox that is to be given back,
 * or NULL when it says nothing. UAR_ENOTFOUND: the owner's agent is another one by now. */
struct uar_toolbox;
UAR_MUST_CHECK uar_err uar_workers_toolbox(struct uar_workers *w,
					   const struct uar_inventory_ask *ask, uar_str revision,
					   struct uar_toolbox **out, struct uar_error *error);

/* Which tools an agent may use: what `allow` names and `deny` does not. Patterns as
 * uar_tool_matches takes them, separated by spaces; NULL: none. */
struct uar_tool_policy {
	const char *allow, *deny;
	const char *ask;  /* somebody has to allow each call; those that say so themselves, too */
	unsigned at_once; /* read-only ones; 0: UAR_LIMIT_TOOLS_USUAL */
	bool linked;	  /* the failure of a call cancels the others of its answer */
};

/* An agent that runs can name. */
struct uar_agent {
	const char *id, *title, *doc;
	enum uar_entry entry;
	const char *model; /* of the scripted provider; NULL: the configured one */
	const char *instructions;
	const struct uar_agent_info *info;   /* of one that is a program; NULL: built in */
	const struct uar_tool_policy *tools; /* llm.chat; NULL: it has none */
	struct uar_registered *definition;   /* NULL: it is built in, or a program */
};
const struct uar_agent *uar_agent_find(uar_str id); /* NULL: unknown */
/* The same with those that are defined, as far as the owner can name them. */
const struct uar_agent *uar_workers_agent(const struct uar_workers *w,
					  const struct uar_owner *owner, uar_str id);
/* Those of the program first; NULL past the end. It may be another owner's. */
const struct uar_agent *uar_workers_agent_at(const struct uar_workers *w, size_t index);
/* Member "provider_policy" of an object: the models that it uses, and who says so. */
struct uar_jw;
void uar_workers_write_policy(const struct uar_workers *work, const struct uar_agent *a,
			      struct uar_jw *w);
/* Member "models" of an object: the default, those that the caller of a run may choose, and
 * whether any other may be chosen; nothing for an agent without models. */
void uar_workers_write_choices(const struct uar_workers *work, const struct uar_agent *a,
			       struct uar_jw *w);
/* Its definition says which inputs it takes; a message need not be one of them. */
bool uar_agent_has_input_schema(const struct uar_agent *agent);
/* Can runs of it begin here? Of a program: it is on this machine, else UAR_ENOTFOUND with the
 * reason. */
UAR_MUST_CHECK uar_err uar_workers_check_agent(const struct uar_workers *w,
					       const struct uar_agent *a, struct uar_error *error);
/* Can the owner name it? */
bool uar_workers_shows(const struct uar_workers *w, const struct uar_owner *owner,
		       const struct uar_agent *agent);
const struct uar_registry *uar_workers_registry(const struct uar_workers *w); /* NULL: none */
/* Call after the registry or the host's agents changed. Release references to old agents
 * before. */
void uar_workers_agents_changed(struct uar_workers *w);

#endif
