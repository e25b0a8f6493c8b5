/* registry.h - facts about what an owner has registered: definitions, skills, servers, keys. They
 * stand in a session of their own. */
#ifndef UAR_CORE_REGISTRY_H
#define UAR_CORE_REGISTRY_H

#include "core/core.h"

/* A definition of an owner's registry was put or removed, or tools of an MCP server changed. */
#define UAR_REGISTRY_SESSION "uar.registry"
struct uar_registry_change {
	const char *kind; /* "agent", "skill", "mcp_server", "mcp_tools" */
	uar_str id;
	int64_t version;
	uar_str revision; /* sha256 of its blob; empty: it was removed */
	bool removed;
	uar_str tools; /* JSON: those that changed; empty: none did */
};
/* Appends its facts to `out` and folds them into *s, which is a copy. */
UAR_MUST_CHECK uar_err uar_core_registry(const struct uar_core_env *env, struct uar_session *s,
					 const struct uar_registry_change *c,
					 struct uar_decision *out, struct uar_error *error);

/* A run that used a skill is over: what is counted of it by then. */
struct uar_skill_tally {
	uar_str skill_id, run_id;
	bool succeeded;
	int64_t successes, failures;
};
UAR_MUST_CHECK uar_err uar_core_skill_tally(const struct uar_core_env *env, struct uar_session *s,
					    const struct uar_skill_tally *t,
					    struct uar_decision *out, struct uar_error *error);

/* A key was made, used on another day, or revoked. Its digest is no part of the fact. */
struct uar_row_credential;
struct uar_credential_change_facts {
	const char *change; /* "created", "used", "revoked" */
	const struct uar_row_credential *row;
};
UAR_MUST_CHECK uar_err uar_core_credential(const struct uar_core_env *env, struct uar_session *s,
					   const struct uar_credential_change_facts *c,
					   struct uar_decision *out, struct uar_error *error);

/* `permissions` of the operator's configuration are other ones: trees of the setting before and
 * after; NULL: it was not set. */
struct uar_host_policy_facts {
	const struct uar_json *before, *after;
	uar_str version; /* digest of `after` */
};
/* UAR_ESKIP: they mean the same. */
UAR_MUST_CHECK uar_err uar_core_host_policy(const struct uar_core_env *env, struct uar_session *s,
					    const struct uar_host_policy_facts *c,
					    struct uar_decision *out, struct uar_error *error);

#endif
