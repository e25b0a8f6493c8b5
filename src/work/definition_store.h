/* definition_store.h - agents, skills and MCP servers that owners keep in the database, with their
 * versions.
 *
 * A change is a fact of the session UAR_REGISTRY_SESSION of its owner; rows of the same append
 * say what is in force and what each version was. Changes are made one after the other. */
#ifndef UAR_WORK_DEFINITION_STORE_H
#define UAR_WORK_DEFINITION_STORE_H

#include "base/sha256.h"
#include "engine/engine.h"
#include "core/registry.h"

struct uar_workers;

enum uar_kept { UAR_KEPT_AGENT, UAR_KEPT_SKILL, UAR_KEPT_MCP, UAR_KEPT_MCP_TOOLS };

/* Operation structs belong to the caller and stay in place until `done`. */
struct uar_definition_change {
	struct uar_list node; /* the workers' */
	struct uar_owner owner;
	enum uar_kept what;
	uar_str id;   /* of the agent or skill, name of the server */
	uar_str text; /* its JSON; NULL .p: it is removed */
	void (*done)(struct uar_definition_change *op);
	void *ctx; /* the caller's */
	/* out: ENOTFOUND: there is none to remove; EEXISTS: another source has the id */
	uar_err err;
	struct uar_error error;
	bool created;	/* there was none */
	bool unchanged; /* it is in force already: nothing is recorded */
	int64_t version;
	char revision[UAR_SHA256_TEXT + 1];
};
UAR_MUST_CHECK uar_err uar_workers_change_definition(struct uar_workers *w,
						     struct uar_definition_change *op);

/* Brings what an owner keeps from the database into the registry and the book of skills, with what
 * is counted of these, later; for a start.
 * Until then uar_workers_definitions_loaded says no. */
void uar_workers_load_definitions(struct uar_workers *w, const struct uar_owner *owner);
bool uar_workers_definitions_loaded(const struct uar_workers *w);

/* The text of one version, or what versions there are. */
struct uar_definition_lookup {
	struct uar_owner owner;
	enum uar_kept what;
	uar_str id;
	int64_t version; /* 0: a list */
	void (*done)(struct uar_definition_lookup *op);
	void *ctx;
	void *internal;
	/* out, valid inside done; ENOTFOUND */
	uar_err err;
	struct uar_error error;
	uar_str text; /* of one version */
	struct uar_definition_version {
		int64_t version, created_us;
		char revision[UAR_SHA256_TEXT + 1]; /* empty: it was removed */
	} * versions;				    /* of a list, the last first */
	size_t count;
	bool more; /* there are earlier ones */
};
UAR_MUST_CHECK uar_err uar_workers_look_up_definition(struct uar_workers *w,
						      struct uar_definition_lookup *op);

#endif
