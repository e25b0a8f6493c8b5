/* registry_append.c - one append to the registry session of an owner. */
#include "work/registry_append.h"

#include "event/sizes.h"
#include "work/limits.h"

static void appended(struct uar_append *append)
{
	struct registry_append *a = UAR_OWNER(append, struct registry_append, append);
	uar_err e = append->err;
	struct rt_key k;

	if (e == UAR_ECONFLICT && ++a->tries < UAR_LIMIT_DEFINITION_TRIES) {
		e = rt_registry_append(a);
		if (!e)
			return;
	}
	if (e)
		a->error = append->error;
	else
		rt_publish(a->rt, rt_key(&k, a->owner, UAR_STR(UAR_REGISTRY_SESSION)), append);
	a->done(a, e);
}

static uar_err decide(struct registry_append *a)
{
	struct uar_session s = a->state;
	struct uar_decision decision = { 0 };
	struct uar_core_env env = {
		.now_us = uar_clock_wall(rt_sched(a->rt)->clock),
		.ids = rt_ids(a->rt),
		.arena = &a->arena,
		.buf = &a->buf,
	};
	uar_err e;

	uar_arena_reset(&a->arena);
	a->rows = NULL;
	a->row_count = 0;
	e = a->decide(a, &env, &s, &decision);
	if (e)
		return e;
	a->append = (struct uar_append){ .owner = *a->owner,
					 .session_id = a->state.session_id,
					 .after = a->state.sequence,
					 .events = decision.events,
					 .event_count = decision.event_count,
					 .rows = a->rows,
					 .row_count = a->row_count,
					 .done = appended };
	e = rt_append(a->rt, &a->append);
	if (e)
		a->error = a->append.error;
	return e;
}

static void found(struct uar_thread_query *q)
{
	struct registry_append *a = UAR_OWNER(q, struct registry_append, session);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	a->state.sequence = q->err ? 0 : q->last_sequence;
	if (e)
		a->error = q->error;
	else
		e = decide(a);
	if (e)
		a->done(a, e);
}

uar_err rt_registry_append(struct registry_append *a)
{
	struct uar_store *store = rt_store(a->rt);

	uar_session_init(&a->state, a->owner, uar_str_c(store->runtime_id),
			 UAR_STR(UAR_REGISTRY_SESSION));
	a->session = (struct uar_thread_query){ .owner = *a->owner,
						.session_id = UAR_STR(UAR_REGISTRY_SESSION),
						.done = found };
	return store->ops->thread(store, &a->session);
}

void rt_registry_append_init(struct registry_append *a, struct uar_runtime *rt,
			     const struct uar_owner *owner)
{
	a->rt = rt;
	a->owner = owner;
	a->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_arena_init(&a->arena, 0);
}

void rt_registry_append_fini(struct registry_append *a)
{
	uar_arena_fini(&a->arena);
	uar_buf_fini(&a->buf);
}
