/* registry_append.h - facts of the registry session of an owner (core/registry.h): the session is
 * found, the facts are decided, appended and published.
 *
 * Several may append to it at once: who comes second decides again. */
#ifndef UAR_WORK_REGISTRY_APPEND_H
#define UAR_WORK_REGISTRY_APPEND_H

#include "core/registry.h"
#include "work/work_int.h"

struct registry_append {
	struct uar_runtime *rt;
	const struct uar_owner *owner; /* stays in place */
	/* The facts, and rows beside them; what it makes lives in env->arena. It may be asked more
	 * than once. */
	uar_err (*decide)(struct registry_append *a, const struct uar_core_env *env,
			  struct uar_session *s, struct uar_decision *out);
	/* They are durable and shown, or not. Never inside rt_registry_append. */
	void (*done)(struct registry_append *a, uar_err e);
	/* Of decide. */
	const struct uar_row *rows;
	size_t row_count;
	struct uar_error error;
	/* Its own. */
	struct uar_arena arena;
	struct uar_buf buf;
	struct uar_thread_query session;
	struct uar_append append;
	struct uar_session state;
	unsigned tries;
};
void rt_registry_append_init(struct registry_append *a, struct uar_runtime *rt,
			     const struct uar_owner *owner);
void rt_registry_append_fini(struct registry_append *a);
/* An error: `done` does not fire. */
UAR_MUST_CHECK uar_err rt_registry_append(struct registry_append *a);

#endif
