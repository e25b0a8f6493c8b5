/* park.c - a session in which every run waits leaves memory: for an answer, behind a run that does,
 * or in a queue that is paused.
 *
 * What stays are numbers: the hash of its key, and of each run's. Who needs the session again wakes
 * it: its runs that are not over are listed and read as at a start, and what is asked of the
 * session waits meanwhile. Runs of programs that wait for an answer stay, as their worker does. A
 * start reads attempts at tasks that have a row, and looks after them; then they leave. */
#include "engine/engine_int.h"
#include "event/limits.h"

/* A run of a session that comes back. */
struct found_run {
	struct found_run *next; /* a newer one */
	struct uar_run_row row; /* its ids and status */
};

struct waking {
	struct rt_op under_way; /* while the runs are listed */
	struct agg *agg;	/* held */
	struct uar_list wakers; /* of struct rt_waker */
	struct uar_runs_query query;
	bool listing;
	char before[UAR_LIMIT_ID_BYTES + 1];
	struct uar_arena arena;	  /* of what was found */
	struct found_run *oldest; /* of them */
};

/* --- a set of numbers ------------------------------------------------------------------------ */

static size_t slot_of(const struct rt_numbers *s, uint64_t n)
{
	size_t i = n & (s->room - 1);

	while (s->at[i] && s->at[i] != n)
		i = (i + 1) & (s->room - 1);
	return i;
}

bool rt_numbers_have(const struct rt_numbers *s, uint64_t n)
{
	return s->count && s->at[slot_of(s, n)] == n;
}

static bool grow(struct rt_numbers *s)
{
	struct rt_numbers more = { .room = s->room ? s->room * 2 : 64 };

	more.at = uar_zalloc(more.room * sizeof *more.at);
	if (!more.at)
		return false;
	for (size_t i = 0; i < s->room; i++)
		if (s->at[i])
			more.at[slot_of(&more, s->at[i])] = s->at[i];
	more.count = s->count;
	uar_free(s->at);
	*s = more;
	return true;
}

bool rt_numbers_add(struct rt_numbers *s, uint64_t n)
{
	size_t i;

	if ((s->count + 1) * 4 > s->room * 3 && !grow(s))
		return false;
	i = slot_of(s, n);
	s->count += !s->at[i];
	s->at[i] = n;
	return true;
}

/* Those behind it move up, so that each is still found. */
void rt_numbers_remove(struct rt_numbers *s, uint64_t n)
{
	size_t i, next;

	if (!rt_numbers_have(s, n))
		return;
	i = slot_of(s, n);
	s->at[i] = 0;
	s->count--;
	for (next = (i + 1) & (s->room - 1); s->at[next]; next = (next + 1) & (s->room - 1)) {
		uint64_t moved = s->at[next];

		s->at[next] = 0;
		s->at[slot_of(s, moved)] = moved;
	}
}

void rt_numbers_free(struct rt_numbers *s)
{
	uar_free(s->at);
	*s = (struct rt_numbers){ 0 };
}

/* Never 0, which is an empty place. Kinds are apart, as ids of both may be equal. */
static uint64_t number_of(const struct uar_runtime *rt, uar_str key, uint64_t kind)
{
	uint64_t n = uar_str_hash(key, rt->secret.hash_seed + kind);

	return n ? n : 1;
}

enum { OF_SESSION = 1, OF_RUN = 2 };

uint64_t rt_session_number(const struct uar_runtime *rt, const struct uar_owner *owner,
			   uar_str session_id)
{
	struct rt_key k;

	return number_of(rt, rt_key(&k, owner, session_id), OF_SESSION);
}

static bool note_run(struct uar_runtime *rt, uar_str run_key)
{
	if (!rt_numbers_add(&rt->parked, number_of(rt, run_key, OF_RUN)))
		return false;
	rt->stats.parked++;
	return true;
}

static void forget_run(struct uar_runtime *rt, uar_str run_key)
{
	uint64_t n = number_of(rt, run_key, OF_RUN);

	if (!rt_numbers_have(&rt->parked, n))
		return;
	rt_numbers_remove(&rt->parked, n);
	rt->stats.parked--;
}

bool rt_run_is_parked(const struct uar_runtime *rt, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;

	return rt_numbers_have(&rt->parked, number_of(rt, rt_key(&k, owner, run_id), OF_RUN));
}

/* --- out of memory -------------------------------------------------------------------------- */

/* A queued run that cannot begin before something else happens to its session. */
static bool is_held_back(struct agg *a, const struct live_run *r)
{
	const struct live_run *first;

	if (r->state.status != UAR_STATUS_QUEUED || !a->threads_known)
		return false;
	if (rt_queue_paused(a, uar_str_c(r->thread_id)))
		return true;
	first = rt_thread_active(a, uar_str_c(r->thread_id));
	return first != r && uar_status_waits(first->state.status);
}

static bool may_leave(struct agg *a, const struct live_run *r)
{
	bool waits = uar_status_waits(r->state.status) && uar_run_may_leave(&r->state);

	return r->committed && !r->worker && (waits || is_held_back(a, r)) && !r->owed &&
	       !r->lost && !r->stopping && !r->load_tries;
}

static bool is_quiet(const struct agg *a)
{
	return !a->loading && !a->threads_loading && !a->waiting && !a->waking && !a->unread &&
	       uar_list_empty(&a->owing) && uar_list_empty(&a->crowd);
}

bool rt_park(struct agg *a)
{
	struct uar_runtime *rt = a->rt;

	if (!rt->o.park || rt->draining || !rt->recovery.over || !is_quiet(a))
		return false;
	UAR_LIST_EACH (it, &a->runs)
		if (!may_leave(a, UAR_OWNER(it, struct live_run, node)))
			return false;
	if (!rt_numbers_add(&rt->parked, number_of(rt, a->key, OF_SESSION)))
		return false;
	UAR_LIST_EACH (it, &a->runs)
		if (!note_run(rt, UAR_OWNER(it, struct live_run, node)->run_key))
			return false; /* it is only looked for in vain */
	return true;
}

bool rt_park_row(struct uar_runtime *rt, const struct uar_run_row *row)
{
	struct rt_key k;

	return rt_numbers_add(&rt->parked, rt_session_number(rt, &row->owner, row->session_id)) &&
	       note_run(rt, rt_key(&k, &row->owner, row->run_id));
}

/* --- back again ----------------------------------------------------------------------------- */

static void free_waking(struct waking *w)
{
	uar_store_query_fini(&w->query);
	uar_arena_fini(&w->arena);
	uar_free(w);
}

static void drop(struct rt_op *under_way)
{
	struct waking *w = UAR_OWNER(under_way, struct waking, under_way);

	w->agg->waking = NULL;
	free_waking(w);
}

static void call_wakers(struct waking *w, uar_err e)
{
	while (!uar_list_empty(&w->wakers)) {
		struct rt_waker *waker = UAR_OWNER(w->wakers.next, struct rt_waker, node);

		uar_list_remove(&waker->node);
		waker->fn(waker, e);
	}
	uar_arena_fini(&w->arena);
	uar_free(w);
}

void rt_awake(struct agg *a, uar_err e)
{
	struct waking *w = a->waking;

	if (!w || w->listing)
		return;
	a->waking = NULL;
	call_wakers(w, e);
	rt_agg_drop(a);
}

/* Nothing waits there any more, or it cannot be told: the session is not needed in memory. */
static void close_waking(struct waking *w, uar_err e)
{
	struct agg *a = w->agg;

	a->waking = NULL;
	rt_agg_drop(a);
	call_wakers(w, e);
}

/* Not all of them could be listed: those that were wait outside of memory again. */
static void put_back(struct agg *a)
{
	UAR_LIST_EACH (it, &a->runs) {
		struct live_run *r = UAR_OWNER(it, struct live_run, node);

		if (note_run(a->rt, r->run_key))
			rt_run_free(r);
	}
}

static uar_err list_runs(struct waking *w)
{
	struct uar_store *store = w->agg->rt->o.store;
	void (*done)(struct uar_runs_query * q) = w->query.done;

	w->query = (struct uar_runs_query){
		.owner = w->agg->state.owner,
		.session_id = w->agg->state.session_id,
		.live = true,
		.before = uar_str_c(w->before),
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = done,
	};
	return store->ops->runs(store, &w->query);
}

/* The newest come first. */
static uar_err keep_rows(struct waking *w)
{
	const struct uar_runs_query *q = &w->query;

	for (size_t i = 0; i < q->row_count && !q->err; i++) {
		const struct uar_run_row *row = &q->rows[i];
		struct found_run *f = uar_arena_alloc(&w->arena, sizeof *f);
		uar_str *own[] = { &f->row.run_id, &f->row.thread_id, &f->row.status };

		if (!f)
			return UAR_ENOMEM;
		f->row = (struct uar_run_row){ .owner = w->agg->state.owner,
					       .session_id = w->agg->state.session_id,
					       .run_id = row->run_id,
					       .thread_id = row->thread_id,
					       .status = row->status };
		if (!uar_arena_strs(&w->arena, own, ARRAY_LEN(own)))
			return UAR_ENOMEM;
		f->next = w->oldest;
		w->oldest = f;
		snprintf(w->before, sizeof w->before, "%.*s", UAR_FMT(row->run_id));
	}
	return q->err;
}

/* In the order in which they were made. A queue may have another one. */
static uar_err take_found(struct waking *w)
{
	struct uar_runtime *rt = w->agg->rt;
	struct rt_key k;
	bool queued = false;
	uar_err e = UAR_OK;

	for (const struct found_run *f = w->oldest; f && !e; f = f->next) {
		e = rt_recover_add(rt, &f->row, true);
		if (!e)
			forget_run(rt, rt_key(&k, &f->row.owner, f->row.run_id));
		queued |= uar_str_is(f->row.status, "queued");
	}
	if (!e && queued)
		rt_threads_need(w->agg);
	return e;
}

static void runs_listed(struct uar_runs_query *q)
{
	struct waking *w = UAR_OWNER(q, struct waking, query);
	struct agg *a = w->agg;
	struct uar_runtime *rt = a->rt;
	uar_err e = rt->draining ? UAR_EDRAINING : keep_rows(w);
	bool more = q->more;

	uar_store_query_fini(q);
	q->rows = NULL;
	if (!e && more) {
		e = list_runs(w);
		if (!e)
			return;
	}
	if (!e)
		e = take_found(w);
	w->listing = false;
	rt_op_end(&w->under_way);
	if (e)
		put_back(a);
	else
		rt_numbers_remove(&rt->parked, number_of(rt, a->key, OF_SESSION));
	if (!a->unread)
		close_waking(w, e);
	rt_recover_pump(rt);
}

static uar_err begin(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
		     struct waking **out)
{
	struct waking *w = uar_zalloc(sizeof *w);
	uar_err e = w ? rt_agg_make(rt, owner, session_id, 0, &w->agg) : UAR_ENOMEM;

	if (e) {
		uar_free(w);
		return e;
	}
	uar_list_init(&w->wakers);
	w->agg->loading = true;
	w->agg->threads_known = false;
	w->agg->waking = w;
	w->query.done = runs_listed;
	w->listing = true;
	rt_agg_hold(w->agg);
	e = list_runs(w);
	if (e) {
		w->agg->waking = NULL;
		rt_agg_drop(w->agg);
		uar_free(w);
		return e;
	}
	rt_op_begin(rt, &w->under_way, drop);
	*out = w;
	return UAR_OK;
}

bool rt_wake(struct uar_runtime *rt, const struct uar_owner *owner, uar_str session_id,
	     struct rt_waker *waker, uar_err *out)
{
	struct agg *a = rt_agg_find(rt, owner, session_id);
	struct waking *w = a ? a->waking : NULL;

	*out = UAR_OK;
	if (!w && (a || !rt_numbers_have(&rt->parked, rt_session_number(rt, owner, session_id))))
		return false;
	if (!w)
		*out = rt->draining ? UAR_EDRAINING : begin(rt, owner, session_id, &w);
	if (*out)
		return false;
	uar_list_init(&waker->node);
	uar_list_add_last(&w->wakers, &waker->node);
	return true;
}
