/* grants.h - what was said about the permissions of a conversation: the rules of its session and
 * thread, and the grants that may cover a call. Read when a round begins. */
#ifndef UAR_WORK_GRANTS_H
#define UAR_WORK_GRANTS_H

#include "core/permission.h"
#include "core/permit.h"
#include "work/work_int.h"

/* As update_permissions set it. */
struct stored_policy {
	enum uar_permission_mode mode; /* NONE: none */
	bool unattended;
	const struct uar_json *rules; /* NULL: none */
};

struct grants {
	struct uar_arena arena;
	struct uar_row_grant *at;
	size_t count;
	struct stored_policy session, thread;
};
void rt_grants_free(struct grants *g); /* NULL is fine */

/* Whose they are. */
struct grants_ask {
	struct uar_runtime *rt;
	const struct uar_owner *owner; /* its strings stay in place until `ready` */
	uar_str session_id, thread_id, agent_id;
	struct agg *agg;     /* held meanwhile; or NULL */
	bool policies_alone; /* grants are read only when a policy was set */
};
struct grants_load;
/* g is the receiver's; NULL with an error. */
typedef void grants_ready_fn(void *ctx, uar_err e, struct grants *g);
/* `ready` fires later, unless cancelled. */
UAR_MUST_CHECK uar_err rt_grants_load(const struct grants_ask *ask, grants_ready_fn *ready,
				      void *ctx, struct grants_load **out);
/* The same for a run. */
struct grants_ask rt_grants_of(const struct live_run *r);
void rt_grants_cancel(struct grants_load *l); /* NULL is fine */

/* The id of a grant that covers such a call; empty: there is none. */
uar_str rt_grants_find(const struct grants *g, const struct uar_grant_call *call);
/* The digest of arguments that grants compare; equal arguments have equal ones. Nobody without the
 * engine's key can guess arguments from it. Empty: they are no JSON. */
void rt_grants_digest(const struct uar_runtime *rt, uar_str args, char out[UAR_LIMIT_DIGEST + 1]);

#endif
