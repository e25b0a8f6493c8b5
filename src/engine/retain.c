/* retain.c - at most so many ended runs of an owner are kept: those that ended
 * first are evicted.
 *
 * What is evicted is found in the store, never remembered: a kill between the end of a
 * run and the eviction that it calls for, or in the middle of many evictions, leaves
 * more ended runs than are kept, which the next start finds. The fact, output.expired,
 * and the marks on the rows are one append. It goes to a session of its own below the
 * owner: the sessions of conversations belong to their runs, which would have to wait
 * for it, and one append may evict runs of many of them. */
#include "engine/limits.h"
#include "event/sizes.h"
#include "store/limits.h"
#include "engine/engine_int.h"

static const char session_name[] = "uar.retention";

/* What goes on for one owner. */
struct retention {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_owner owner;
	struct uar_arena own; /* owner and key */
	uar_str key;
	struct uar_runs_query old;
	struct uar_thread_query session;
	struct uar_append append;
	struct uar_arena arena; /* of the append */
	struct uar_buf buf;
	uint64_t sequence; /* of the session */
	unsigned tries;
	bool again; /* another run has ended meanwhile */
};

static uar_err look(struct retention *t);

/* --- life --------------------------------------------------------------------------- */

static void free_retention(struct retention *t)
{
	if (t->old.rows)
		uar_store_query_fini(&t->old);
	uar_map_remove(&t->rt->retention.owners, t->key);
	t->rt->retention.count--;
	uar_arena_fini(&t->own);
	uar_arena_fini(&t->arena);
	uar_buf_fini(&t->buf);
	uar_free(t);
}

static void drop(struct rt_op *under_way)
{
	free_retention(UAR_OWNER(under_way, struct retention, under_way));
}

/* What is left undone is found again when the next run ends, or at the next start. */
static void finish(struct retention *t, uar_err e, const struct uar_error *error)
{
	if (e && e != UAR_EDRAINING)
		uar_log(t->rt->o.log, UAR_LOG_WARN, "runs.not_evicted",
			{ "detail",
			  uar_str_c(error && error->text[0] ? error->text : uar_err_text(e)) });
	rt_op_end(&t->under_way);
	free_retention(t);
}

/* --- the append ---------------------------------------------------------------------- */

/* The run's record and its items are gone; its bytes in the log are not. */
static uar_err write_payload(struct retention *t, int64_t now_us, struct uar_event *ev)
{
	struct uar_jw w;
	uar_err e;

	uar_buf_clear(&t->buf);
	w = uar_jw_begin(&t->buf);
	uar_jw_obj(&w, NULL);
	uar_jw_time(&w, "expired_at", now_us);
	uar_jw_cstr(&w, "policy", "keep_runs");
	uar_jw_int(&w, "bytes_freed", 0);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		ev->payload = uar_arena_str(&t->arena, uar_buf_str(&t->buf));
	return e ? e : ev->payload.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err write_event(struct retention *t, uint64_t sequence, uar_str run_id,
			   struct uar_event *ev)
{
	int64_t now_us = uar_clock_wall(t->rt->o.sched->clock);
	char id[UAR_UUID_TEXT + 1];

	*ev = (struct uar_event){
		.cls = UAR_EV_OUTPUT_EXPIRED,
		.type = uar_str_c(uar_event_info[UAR_EV_OUTPUT_EXPIRED].type),
		.time_us = now_us,
		.sequence = sequence,
	};
	ev->ids[UAR_ID_RUNTIME] = uar_str_c(t->rt->o.store->runtime_id);
	ev->ids[UAR_ID_TENANT] = t->owner.tenant;
	ev->ids[UAR_ID_WORKSPACE] = t->owner.workspace;
	ev->ids[UAR_ID_USER] = t->owner.user;
	ev->ids[UAR_ID_SESSION] = uar_str_c(session_name);
	uar_uuid_next(&t->rt->ids, id);
	ev->event_id = uar_arena_str(&t->arena, uar_str_c(id));
	ev->refs = uar_arena_printf(&t->arena, "{\"output_ref\":\"run://%.*s\"}", UAR_FMT(run_id));
	if (!ev->event_id.p || !ev->refs.p)
		return UAR_ENOMEM;
	return write_payload(t, now_us, ev);
}

static void tell(struct retention *t)
{
	struct uar_runtime *rt = t->rt;

	for (size_t i = 0; i < t->old.row_count; i++) {
		const struct uar_run_row *row = &t->old.rows[i];

		rt_parts_evicted(rt, &t->owner, row->run_id);
		rt->stats.evicted++;
		uar_log(rt->o.log, UAR_LOG_DEBUG, "run.evicted", { "run_id", row->run_id });
		UAR_LIST_EACH (it, &rt->watches) {
			struct uar_watch *w = UAR_OWNER(it, struct uar_watch, node);

			if (w->gone)
				w->gone(w->ctx, row);
		}
	}
}

static void publish(struct retention *t)
{
	const struct uar_append *a = &t->append;
	struct rt_key k;

	uar_bus_publish(t->rt->bus, rt_key(&k, &t->owner, uar_str_c(session_name)), a->events,
			a->event_count, a->events[a->event_count - 1].sequence);
}

static void appended(struct uar_append *a)
{
	struct retention *t = UAR_OWNER(a, struct retention, append);
	struct uar_error error = a->error;
	uar_err e = a->err;

	if (!e) {
		publish(t);
		tell(t);
		t->tries = 0;
	}
	uar_store_query_fini(&t->old);
	/* Somebody else evicted some of them, or the session went on: look again. */
	if ((e == UAR_ECONFLICT || e == UAR_ENOTFOUND) && ++t->tries < UAR_LIMIT_RETAIN_TRIES)
		e = UAR_OK;
	if (!e)
		e = look(t);
	if (e)
		finish(t, e, &error);
}

static uar_err evict(struct retention *t)
{
	size_t n = t->old.row_count;
	struct uar_event *events;
	uar_str *ids;
	uar_err e = UAR_OK;

	uar_arena_reset(&t->arena);
	events = uar_arena_alloc(&t->arena, n * sizeof *events);
	ids = uar_arena_alloc(&t->arena, n * sizeof *ids);
	if (!events || !ids)
		return UAR_ENOMEM;
	for (size_t i = 0; i < n && !e; i++) {
		ids[i] = t->old.rows[i].run_id;
		e = write_event(t, t->sequence + 1 + i, ids[i], &events[i]);
	}
	t->append = (struct uar_append){
		.owner = t->owner,
		.session_id = uar_str_c(session_name),
		.after = t->sequence,
		.events = events,
		.event_count = n,
		.evict = ids,
		.evict_count = n,
		.done = appended,
	};
	return e ? e : rt_append(t->rt, &t->append);
}

/* --- what is to go --------------------------------------------------------------------- */

static void session_ready(struct uar_thread_query *q)
{
	struct retention *t = UAR_OWNER(q, struct retention, session);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	t->sequence = q->err ? 0 : q->last_sequence;
	if (!e)
		e = evict(t);
	if (e)
		finish(t, e, q->err ? &q->error : &t->append.error);
}

static uar_err ask_session(struct retention *t)
{
	t->session = (struct uar_thread_query){
		.owner = t->owner,
		.session_id = uar_str_c(session_name),
		.done = session_ready,
	};
	return t->rt->o.store->ops->thread(t->rt->o.store, &t->session);
}

static void old_ready(struct uar_runs_query *q)
{
	struct retention *t = UAR_OWNER(q, struct retention, old);
	uar_err e = q->err;

	if (!e && q->row_count == 0) {
		bool again = t->again;

		uar_store_query_fini(q);
		if (again)
			e = look(t);
		if (e || !again)
			finish(t, e, NULL);
		return;
	}
	if (!e)
		e = ask_session(t);
	if (e) {
		struct uar_error error = q->error;

		uar_store_query_fini(q);
		finish(t, e, &error);
	}
}

static uar_err look(struct retention *t)
{
	if (t->rt->draining)
		return UAR_EDRAINING;
	t->again = false;
	t->old = (struct uar_runs_query){
		.owner = t->owner,
		.beyond = t->rt->o.keep_runs,
		.limit = UAR_LIMIT_EVICT_RUNS,
		.done = old_ready,
	};
	return t->rt->o.store->ops->runs(t->rt->o.store, &t->old);
}

static uar_err begin(struct uar_runtime *rt, const struct uar_owner *owner, uar_str key)
{
	struct retention *t = uar_zalloc(sizeof *t);
	uar_err e = UAR_ENOMEM;

	if (!t)
		return e;
	t->rt = rt;
	t->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	t->key = uar_arena_str(&t->own, key);
	if (t->key.p && uar_owner_copy(&t->own, owner, &t->owner))
		e = uar_map_put(&rt->retention.owners, t->key, t);
	if (e) {
		uar_arena_fini(&t->own);
		uar_free(t);
		return e;
	}
	rt->retention.count++;
	e = look(t);
	if (e)
		free_retention(t);
	else
		rt_op_begin(rt, &t->under_way, drop);
	return e;
}

void rt_retain(struct uar_runtime *rt, const struct uar_owner *owner)
{
	struct retention *t;
	struct rt_key k;
	uar_str key;

	if (!rt->o.keep_runs || rt->draining)
		return;
	key = rt_key(&k, owner, UAR_STR_NONE);
	t = uar_map_get(&rt->retention.owners, key);
	if (t)
		t->again = true;
	else if (rt->retention.count < UAR_LIMIT_RETAIN_OWNERS && begin(rt, owner, key))
		uar_log(rt->o.log, UAR_LOG_WARN, "runs.not_evicted",
			{ "detail", UAR_STR("the store is busy: the next end tries again") });
}

/* --- after a start ----------------------------------------------------------------------- */

static void each_owner(void *ctx, const struct uar_owner *owner)
{
	rt_retain(ctx, owner);
}

uar_err rt_retain_all(struct uar_runtime *rt, struct uar_error *error)
{
	struct uar_store *store = rt->o.store;

	if (!rt->o.keep_runs)
		return UAR_OK;
	rt_sweep(rt);
	return store->ops->each_beyond(store, rt->o.keep_runs, each_owner, rt, error);
}
