/* serve_int.h - what the files of `uar serve` share: the server and its parts. */
#ifndef UAR_APP_SERVE_INT_H
#define UAR_APP_SERVE_INT_H

#include "app/datadir.h"
#include "app/cli.h"
#include "bridge/bridge.h"
#include "gate/gate.h"
#include "loop/client.h"
#include "loop/loop.h"
#include "app/model_settings.h"
#include "memory/know.h"
#include "model/models.h"
#include "peer/peer.h"
#include "plugin/plugin.h"
#include "skill/book.h"
#include "store/store.h"
#include "tool/registry.h"
#include "tool/secret.h"

struct server {
	struct uar_config_set *config; /* the one in force */
	struct uar_config_set *loaded; /* by SIGHUP; owned */
	struct {
		const struct uar_cli
			*cli; /* how it was called, and where it speaks; NULL: embed.c */
		bool json;
		/* NULL: it is a server. Else part of a program: what prevents its start is written
		 * here, and it never ends the process. */
		struct uar_buf *problem;
		bool no_port;
		const char *program; /* started for children; NULL: this one */
		bool left_working;   /* a worker never came back: what it uses must stay */
	} by;
	struct uar_log log;
	struct uar_loop *loop;
	struct uar_store *store;
	struct {
		struct uar_client *client;
		struct uar_peers *peers;
		struct uar_pushes *pushes;   /* receivers of notifications */
		struct uar_remotes *remotes; /* agents of other runtimes */
		struct uar_secrets *secrets; /* of tools */
		struct server_mcp *mcp;	     /* serve_mcp.c; NULL: there are no tools */
	} net;				     /* what is called from here */
	struct uar_models *models;
	struct {
		struct uar_model_target chosen; /* by agents that name none; model NULL: scripted */
		struct uar_model_policy policy;
		struct uar_arena arena; /* of the policy's strings */
	} routing;
	struct uar_plugin_host *plugins;
	struct {
		struct uar_registry *registry;
		struct uar_bridge *bridge;
		struct uar_dir_watch *watch; /* NULL: the directory is not watched */
		struct uar_timer later;	     /* files changed: they are read when no more change */
		struct uar_buf dir, keep_dir;
		struct uar_agent_feed *feed; /* NULL: no registry is asked */
		struct uar_skill_book *skills;
		struct server_skills *skills_watch; /* serve_skills.c */
	} agents;
	struct uar_tools *tools;
	struct uar_runtime *runtime;
	struct {
		struct uar_workers *work;
		struct uar_reader *reader;
		struct uar_mailer *mailer;
		struct uar_knowledge *knowledge; /* beside it; NULL: it is switched off */
		struct uar_tools *agent_tools;	 /* of `tools`; NULL: there are none */
		struct uar_host_policy *permissions;
		struct uar_hooks *hooks;
		struct uar_processes *processes; /* one of the tools; NULL: none is run */
		char *files_dir;		 /* what the fs.* tools see; NULL: none */
	} parts;				 /* of the runtime */
	struct uar_gate *gate;
	struct uar_http *http;
	struct uar_buf token;
	struct uar_server_info info;
	struct uar_timer grace;
	struct {
		struct uar_timer timer;
		int64_t busy_us;      /* when there was last something to do */
		struct uar_buf again; /* how it is started once more, see app/again.h */
	} idle;
	int64_t rest_until_us; /* monotonic: runs that were told to stop get so long */
	struct {
		bool http, runtime;
		struct uar_timer workers; /* looks whether they are back */
	} done;				  /* drained */
	bool stopping;
	bool broken; /* storage failed, or memory: the process ends at once, with an error */
};

/* serve.c */
/* Stops workers, finishes commits, then stops the loop; the second time at once. */
void uar_server_stop(struct server *s, const char *reason);
/* serve_make.c */
/* Of all that is done for the holder of the token; borrows from the settings. */
struct uar_owner uar_server_owner(const struct server *s);
/* "uar: WHAT: why" for people, and a line of JSON for who reads that. Returns 1. */
int uar_server_explain(const struct server *s, const char *what, uar_err e,
		       const struct uar_error *error);
/* All parts, in order; 0, or what uar_server_explain returns. Recovery lists the live
 * runs before the first request is taken. */
int uar_server_make(struct server *s);
void uar_server_unmake(struct server *s); /* half-made is fine */
/* net.client is there from here on. */
UAR_MUST_CHECK uar_err uar_server_need_client(struct server *s, struct uar_error *error);
/* serve_agents.c */
UAR_MUST_CHECK uar_err uar_server_make_agents(struct server *s, struct uar_error *error);
void uar_server_reload_agents(struct server *s); /* reads the directory again */
void uar_server_unmake_agents(struct server *s);
/* serve_skills.c */
UAR_MUST_CHECK uar_err uar_server_make_skills(struct server *s, struct uar_error *error);
void uar_server_reload_skills(struct server *s); /* reads the directory again */
void uar_server_unmake_skills(struct server *s);
/* serve_tools.c */
UAR_MUST_CHECK uar_err uar_server_make_hooks(struct server *s, struct uar_error *error);
UAR_MUST_CHECK uar_err uar_server_make_tools(struct server *s, struct uar_error *error);
/* serve_kb.c: before the tools */
UAR_MUST_CHECK uar_err uar_server_make_knowledge(struct server *s, struct uar_error *error);
/* serve_mcp.c */
UAR_MUST_CHECK uar_err uar_server_make_mcp(struct server *s, struct uar_error *error);
/* It listens: logins can come back. */
void uar_server_mcp_listens(struct server *s);
struct uar_mcp_host *uar_server_mcp_host(const struct server *s); /* NULL: none */
/* The servers that are passed on to MCP clients; NULL: none. */
struct uar_mcp_relay *const *uar_server_relays(const struct server *s, size_t *out_count);
void uar_server_close_mcp(struct server *s);  /* before the tools */
void uar_server_unmake_mcp(struct server *s); /* after the tools */
/* serve_models.c */
/* The providers alone, and the policy of routing; the same without a choice. */
UAR_MUST_CHECK uar_err uar_server_make_providers(struct server *s, struct uar_error *error);
UAR_MUST_CHECK uar_err uar_server_make_models(struct server *s, struct uar_error *error);
/* Who can connect to it is on this machine. */
bool uar_server_is_local(uar_str address);

#endif
