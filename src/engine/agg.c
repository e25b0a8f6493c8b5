/* agg.c - sessions and runs in memory: found, made, forgotten.
 *
 * A session is in memory while one of its runs is at work or somebody holds it;
 * everything else about it is in the store. */
#include "engine/engine_int.h"

/* Identifiers are visible characters, so a zero separates them. */
uar_str rt_key(struct rt_key *k, const struct uar_owner *owner, uar_str id)
{
	uar_str parts[] = { owner->tenant, owner->workspace, owner->user, id };

	k->n = 0;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].n > UAR_LIMIT_ID_BYTES)
			return UAR_STR("");
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].n)
			memcpy(k->text + k->n, parts[i].p, parts[i].n);
		k->n += parts[i].n;
		k->text[k->n++] = 0;
	}
	return uar_str_n(k->text, k->n);
}

struct agg *rt_agg_find(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id)
{
	struct rt_key k;

	return uar_map_get(&rt->sessions, rt_key(&k, owner, session_id));
}

struct live_run *rt_run_find(const struct uar_runtime *rt, const struct uar_owner *owner,
			     uar_str run_id)
{
	struct rt_key k;

	return uar_map_get(&rt->runs, rt_key(&k, owner, run_id));
}

struct live_run *rt_live_find(struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id)
{
	return rt_run_find(rt, owner, run_id);
}

static void decide_task(struct uar_task *t)
{
	struct agg *a = UAR_OWNER(t, struct agg, task);

	a->waiting = false;
	rt_pay(a);
	if (a->loading || a->threads_loading || a->budgets_unknown || a->control)
		return;
	if (uar_list_empty(&a->controls))
		rt_batch_begin(a);
	else if (!a->row.count && !a->unread)
		rt_control_begin(a);
}

static void retry_timer(struct uar_timer *t)
{
	struct agg *a = UAR_OWNER(t, struct agg, retry);

	a->waiting = false;
	rt_pay(a);
	rt_agg_kick(a);
}

void rt_agg_later(struct agg *a)
{
	a->waiting = uar_timer_set(a->rt->o.sched, &a->retry, UAR_RETRY_US) == UAR_OK;
	if (!a->waiting)
		uar_post(a->rt->o.sched, &a->task);
}

static uar_err own_identity(struct agg *a, const struct uar_owner *owner, uar_str session_id)
{
	uar_str id = uar_arena_str(&a->arena, session_id);
	struct uar_owner mine;
	struct rt_key k;

	if (!rt_key(&k, owner, session_id).n)
		return UAR_EINVALID;
	a->key = uar_arena_str(&a->arena, uar_str_n(k.text, k.n));
	if (!id.p || !a->key.p || !uar_owner_copy(&a->arena, owner, &mine))
		return UAR_ENOMEM;
	uar_session_init(&a->state, &mine, uar_str_c(a->rt->o.store->runtime_id), id);
	return UAR_OK;
}

uar_err rt_agg_make(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
		    uint64_t sequence, struct agg **out)
{
	struct agg *a = uar_zalloc(sizeof *a);
	uar_err e;

	if (!a)
		return UAR_ENOMEM;
	a->rt = rt;
	a->task.fn = decide_task;
	a->retry.fn = retry_timer;
	uar_list_init(&a->queue);
	uar_list_init(&a->runs);
	uar_list_init(&a->owing);
	uar_list_init(&a->row.batches);
	uar_list_init(&a->row.again);
	uar_list_init(&a->controls);
	uar_list_init(&a->threads);
	uar_list_init(&a->crowd);
	uar_arena_init(&a->arena, 0);
	e = own_identity(a, owner, session_id);
	if (!e)
		e = uar_map_put(&rt->sessions, a->key, a);
	if (e) {
		uar_arena_fini(&a->arena);
		uar_free(a);
		return e;
	}
	a->state.sequence = sequence;
	a->threads_known = sequence == 0;
	rt->stats.sessions++;
	*out = a;
	return UAR_OK;
}

static uint64_t *left_slot(struct uar_runtime *rt, uar_str key)
{
	return &rt->left.at[uar_str_hash(key, rt->secret.hash_seed) % UAR_LIMIT_LEFT_SLOTS];
}

uar_err rt_agg_open(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
		    const struct rt_looked *looked, struct agg **out)
{
	uar_err e = rt_agg_make(rt, owner, session_id, looked->sequence, out);

	if (e || *left_slot(rt, (*out)->key) <= looked->since)
		return e;
	(*out)->unsure = true;
	(*out)->threads_known = false;
	return UAR_OK;
}

void rt_agg_free(struct agg *a)
{
	struct uar_runtime *rt = a->rt;

	*left_slot(rt, a->key) = ++rt->left.count;

	rt_batch_drop(a);
	rt_threads_free(a);
	UAR_LIST_EACH (it, &a->runs)
		rt_run_free(UAR_OWNER(it, struct live_run, node));
	UAR_LIST_EACH (it, &a->queue)
		rt_cmd_free(UAR_OWNER(it, struct cmd, node));
	uar_unpost(rt->o.sched, &a->task);
	uar_list_remove(&a->crowd);
	uar_timer_stop(rt->o.sched, &a->retry);
	uar_map_remove(&rt->sessions, a->key);
	uar_free(a->waking);
	uar_arena_fini(&a->arena);
	uar_free(a);
	rt->stats.sessions--;
}

void rt_agg_hold(struct agg *a)
{
	a->holds++;
}

void rt_agg_drop(struct agg *a)
{
	a->holds--;
	if (a->holds || a->row.count || !uar_list_empty(&a->queue))
		return;
	if (uar_list_empty(&a->runs) || rt_park(a))
		rt_agg_free(a);
}

void rt_agg_kick(struct agg *a)
{
	bool ready =
		uar_list_empty(&a->controls) ? rt_batch_can_begin(a) : !a->row.count && !a->unread;

	if (!a->control && !a->loading && !a->threads_loading && !a->budgets_unknown &&
	    !a->waiting && ready)
		uar_post(a->rt->o.sched, &a->task);
}

static void keep_id(char out[UAR_LIMIT_ID_BYTES + 1], uar_str id)
{
	memcpy(out, id.p, id.n);
	out[id.n] = 0;
}

static struct live_run *alloc_run(struct agg *a, uar_str run_id, uar_str thread_id)
{
	struct rt_key of_run, of_thread;
	uar_str run_key = rt_key(&of_run, &a->state.owner, run_id);
	uar_str thread_key = rt_key(&of_thread, &a->state.owner, thread_id);
	struct live_run *r = uar_zalloc(sizeof *r + run_key.n + thread_key.n);

	if (!r)
		return NULL;
	memcpy(r->keys, run_key.p, run_key.n);
	memcpy(r->keys + run_key.n, thread_key.p, thread_key.n);
	r->run_key = uar_str_n(r->keys, run_key.n);
	r->thread_key = uar_str_n(r->keys + run_key.n, thread_key.n);
	keep_id(r->run_id, run_id);
	keep_id(r->thread_id, thread_id);
	r->agg = a;
	uar_run_init(&r->state);
	uar_list_init(&r->node);
	uar_list_init(&r->load_node);
	uar_list_init(&r->owed_node);
	return r;
}

uar_err rt_run_make(struct agg *a, uar_str run_id, uar_str thread_id, struct live_run **out)
{
	struct uar_runtime *rt = a->rt;
	struct live_run *r, *last;
	uar_err e;

	if (run_id.n > UAR_LIMIT_ID_BYTES || thread_id.n > UAR_LIMIT_ID_BYTES)
		return UAR_EINVALID;
	r = alloc_run(a, run_id, thread_id);
	if (!r)
		return UAR_ENOMEM;
	e = uar_map_put(&rt->runs, r->run_key, r);
	if (e) {
		uar_free(r);
		return e;
	}
	last = uar_map_get(&rt->threads, r->thread_key);
	if (last && last->agg != a)
		last = NULL; /* it will lose against the store */
	r->place.number = last ? last->place.number + 1 : 1;
	r->place.in_thread = last ? last->place.in_thread + 1 : 1;
	if (!uar_map_replace(&rt->threads, r->thread_key, r))
		e = uar_map_put(&rt->threads, r->thread_key, r);
	if (e) {
		uar_map_remove(&rt->runs, r->run_key);
		uar_free(r);
		return e;
	}
	uar_list_add_last(&a->runs, &r->node);
	rt->stats.live_runs++;
	*out = r;
	return UAR_OK;
}

/* The map of threads must never point at a run that is gone. */
static void forget_thread(struct uar_runtime *rt, struct live_run *gone)
{
	struct uar_list *runs = &gone->agg->runs;
	struct live_run *last = uar_map_get(&rt->threads, gone->thread_key), *heir = NULL;

	if (last != gone) {
		if (last && last->agg == gone->agg)
			last->place.in_thread--;
		return;
	}
	for (struct uar_list *it = runs->prev; it != runs && !heir; it = it->prev) {
		struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (r != gone && uar_str_eq(gone->thread_key, r->thread_key))
			heir = r;
	}
	if (heir) {
		heir->place.in_thread = gone->place.in_thread - 1;
		uar_map_replace(&rt->threads, heir->thread_key, heir);
	} else {
		uar_map_remove(&rt->threads, gone->thread_key);
	}
}

void rt_run_free(struct live_run *r)
{
	struct uar_runtime *rt = r->agg->rt;

	rt_worker_stop(r);
	rt_worker_leave(r);
	rt_account_leave(r);
	uar_timer_stop(rt->o.sched, &r->deadline);
	uar_timer_stop(rt->o.sched, &r->due);
	uar_timer_stop(rt->o.sched, &r->reload);
	forget_thread(rt, r);
	uar_map_remove(&rt->runs, r->run_key);
	uar_list_remove(&r->node);
	uar_list_remove(&r->load_node);
	uar_list_remove(&r->owed_node);
	r->agg->unread -= r->found.unread;
	uar_run_fini(&r->state);
	uar_free(r);
	rt->stats.live_runs--;
}

struct live_run *rt_thread_active(struct agg *a, uar_str thread_id)
{
	UAR_LIST_EACH (it, &a->runs) {
		struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (uar_str_is(thread_id, r->thread_id))
			return r;
	}
	return NULL;
}
