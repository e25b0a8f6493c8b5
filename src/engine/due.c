/* due.c - one timer for whatever is due next, however much waits.
 *
 * What is due is a column of rows: the store tells the earliest. When its time has come the
 * sessions concerned are looked through, and each action that has expired is answered: nobody
 * decided. A job that has expired fails. A start looks once, so that nothing depends on what a
 * process remembered. */
#include "engine/engine_int.h"
#include "event/limits.h"

enum { STUCK_US = 30000000 }; /* what is due and cannot be answered is looked at again */

struct look {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_sessions_query sessions;
	struct uar_rows_query rows; /* of one session */
	size_t at;
	bool jobs;	 /* its jobs are looked through; else its actions */
	bool found;	 /* something of it was acted upon */
	int64_t next_us; /* the earliest that is not due yet; 0: none */
	bool acted, stuck;
};

static void free_look(struct look *l)
{
	uar_store_sessions_fini(&l->sessions);
	uar_store_rows_fini(&l->rows);
	uar_free(l);
}

static void drop(struct rt_op *under_way)
{
	free_look(UAR_OWNER(under_way, struct look, under_way));
}

static void arm(struct uar_runtime *rt, int64_t due_us)
{
	int64_t left = due_us - uar_clock_wall(rt->o.sched->clock);

	rt->due.at_us = due_us;
	if (uar_timer_set(rt->o.sched, &rt->due.timer, left > 0 ? left : 0))
		rt->due.at_us = 0; /* no memory: the next one that is noted sets it */
}

void rt_due_note(struct uar_runtime *rt, int64_t due_us)
{
	if (due_us && (!rt->due.at_us || due_us < rt->due.at_us))
		arm(rt, due_us);
}

static void finish(struct look *l, uar_err e)
{
	struct uar_runtime *rt = l->rt;
	int64_t now_us = uar_clock_wall(rt->o.sched->clock);
	bool soon = e || l->acted || l->sessions.more || !uar_runtime_ready(rt);
	int64_t next_us = soon ? now_us + UAR_RETRY_US : l->stuck ? now_us + STUCK_US : 0;

	if (l->next_us && (!next_us || l->next_us < next_us))
		next_us = l->next_us;
	rt->due.looking = false;
	rt_op_end(&l->under_way);
	free_look(l);
	if (next_us && !rt->draining)
		rt_due_note(rt, next_us);
	rt_maybe_drained(rt);
}

/* --- actions ---------------------------------------------------------------------------- */

/* Durable: a worker that stayed hears it. */
static void expired(const struct rt_sent *s)
{
	if (!s->err && s->run && s->run->worker && s->run->worker->ops->answer)
		s->run->worker->ops->answer(s->run->worker, &s->command->answer);
}

/* An action that has expired while its run waits outside of memory. */
struct asleep {
	struct rt_op under_way;
	struct rt_waker waker;
	struct uar_runtime *rt;
	struct uar_arena arena;
	struct uar_row row; /* as far as expire needs it */
};

static void free_asleep(struct asleep *a)
{
	uar_arena_fini(&a->arena);
	uar_free(a);
}

static void drop_asleep(struct rt_op *under_way)
{
	free_asleep(UAR_OWNER(under_way, struct asleep, under_way));
}

static bool expire(struct uar_runtime *rt, const struct uar_row *row);

static void woken(struct rt_waker *w, uar_err e)
{
	struct asleep *a = UAR_OWNER(w, struct asleep, waker);

	if (!e)
		expire(a->rt, &a->row); /* if it cannot be, the next look finds it again */
	rt_op_end(&a->under_way);
	free_asleep(a);
}

static bool wake_run(struct uar_runtime *rt, const struct uar_row *row)
{
	struct asleep *a = uar_zalloc(sizeof *a);
	uar_err e = UAR_ENOMEM;

	if (!a)
		return false;
	a->rt = rt;
	a->waker.fn = woken;
	uar_arena_init(&a->arena, 0);
	a->row.id = uar_arena_str(&a->arena, row->id);
	a->row.tag = uar_arena_str(&a->arena, row->tag);
	if (!a->row.id.p || !a->row.tag.p ||
	    !uar_owner_copy(&a->arena, &row->owner, &a->row.owner) ||
	    !rt_wake(rt, &row->owner, row->session_id, &a->waker, &e)) {
		free_asleep(a);
		return false;
	}
	rt_op_begin(rt, &a->under_way, drop_asleep);
	return true;
}

/* False: its run is not there. */
static bool expire(struct uar_runtime *rt, const struct uar_row *row)
{
	struct uar_command c = { .kind = UAR_CMD_ANSWER };
	enum uar_action_type type = uar_action_type_parse(row->tag);
	struct live_run *r;
	uar_str run_id;

	if (type == UAR_ACTION_TYPE_COUNT || !uar_action_parse(row->id, &run_id, &c.answer.number))
		return false;
	c.answer.verdict = uar_action_info[type].otherwise;
	c.answer.source = UAR_ANSWER_TIMEOUT;
	c.answer.reason = UAR_STR("nobody answered in time");
	r = rt_run_find(rt, &row->owner, run_id);
	if (!r && rt_run_is_parked(rt, &row->owner, run_id))
		return wake_run(rt, row);
	return r && r->committed && rt_send_asked(r, &c, expired, NULL);
}

/* --- the look --------------------------------------------------------------------------- */

static void next_session(struct look *l);

static void rows_ready(struct uar_rows_query *q)
{
	struct look *l = UAR_OWNER(q, struct look, rows);
	int64_t now_us = uar_clock_wall(l->rt->o.sched->clock);
	uar_err e = q->err;
	bool acted = false;

	for (size_t i = 0; i < q->row_count && !e; i++)
		if (q->rows[i].due_us && q->rows[i].due_us <= now_us)
			acted |= l->jobs ? rt_fanout_expire(l->rt, &q->rows[i])
					 : expire(l->rt, &q->rows[i]);
	uar_store_rows_fini(q);
	l->acted |= acted;
	l->found |= acted;
	l->stuck |= l->jobs && !l->found;
	l->at += l->jobs;
	l->jobs = !l->jobs;
	if (e && e != UAR_ENOTFOUND)
		finish(l, e);
	else
		next_session(l);
}

static void next_session(struct look *l)
{
	struct uar_store *store = l->rt->o.store;
	const struct uar_session_place *s;
	uar_err e;

	if (l->at == l->sessions.count || l->rt->draining) {
		finish(l, UAR_OK);
		return;
	}
	s = &l->sessions.sessions[l->at];
	if (s->due_us > uar_clock_wall(l->rt->o.sched->clock)) {
		l->next_us = s->due_us; /* the earliest comes first */
		l->sessions.more = false;
		finish(l, UAR_OK);
		return;
	}
	l->found &= l->jobs;
	l->rows = (struct uar_rows_query){ .owner = s->owner,
					   .kind = l->jobs ? UAR_ROW_JOB : UAR_ROW_ACTION,
					   .session_id = s->session_id,
					   .open = UAR_ROWS_OPEN,
					   .limit = UAR_LIMIT_LIST_PAGE,
					   .done = rows_ready };
	e = store->ops->rows(store, &l->rows);
	if (e)
		finish(l, e);
}

static void sessions_ready(struct uar_sessions_query *q)
{
	struct look *l = UAR_OWNER(q, struct look, sessions);

	if (q->err)
		finish(l, q->err);
	else
		next_session(l);
}

static void look(struct uar_timer *t)
{
	struct uar_runtime *rt = UAR_OWNER(t, struct uar_runtime, due.timer);
	struct uar_store *store = rt->o.store;
	struct look *l = rt->due.looking || rt->draining ? NULL : uar_zalloc(sizeof *l);

	rt->due.at_us = 0;
	if (!l) {
		if (!rt->draining)
			arm(rt, uar_clock_wall(rt->o.sched->clock) + UAR_RETRY_US);
		return;
	}
	l->rt = rt;
	l->sessions = (struct uar_sessions_query){ .which = UAR_SESSIONS_DUE,
						   .limit = UAR_LIMIT_LIST_PAGE,
						   .done = sessions_ready };
	rt->due.looking = true;
	rt_op_begin(rt, &l->under_way, drop);
	if (store->ops->sessions(store, &l->sessions))
		finish(l, UAR_ENOMEM);
}

void rt_due_init(struct uar_runtime *rt)
{
	rt->due.timer.fn = look;
}

void rt_due_begin(struct uar_runtime *rt)
{
	arm(rt, uar_clock_wall(rt->o.sched->clock));
}

void rt_due_fini(struct uar_runtime *rt)
{
	uar_timer_stop(rt->o.sched, &rt->due.timer);
}
