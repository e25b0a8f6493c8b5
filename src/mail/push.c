/* push.c - tasks with notifications: found by a start, woken by commits of their runs. */
#include "mail/push_int.h"

#include "event/limits.h"

/* Never 0. */
static uint64_t number_of(const struct uar_mailer *ml, uar_str key)
{
	return uar_str_hash(key, rt_hash_seed(ml->rt)) | 1;
}

/* Runs with the same number are few: being watched for nothing costs a look. */
void rt_push_watch(struct push_task *t, bool yes)
{
	if (!yes)
		rt_numbers_remove(&t->ml->push.watched, number_of(t->ml, t->key));
	else if (!rt_numbers_add(&t->ml->push.watched, number_of(t->ml, t->key)))
		uar_log(rt_log(t->ml->rt), UAR_LOG_WARN, "a2a.push_not_watched",
			{ "run_id", t->run_id });
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void free_task(struct push_task *t)
{
	UAR_LIST_EACH (it, &t->senders)
		rt_push_free(UAR_OWNER(it, struct push_sender, node));
	uar_timer_stop(rt_sched(t->ml->rt), &t->timer);
	uar_map_remove(&t->ml->push.tasks, t->key);
	uar_store_rows_fini(&t->rows);
	uar_arena_fini(&t->own);
	uar_arena_fini(&t->arena);
	uar_buf_fini(&t->buf);
	uar_free(t);
}

void rt_push_rest(struct push_task *t)
{
	if (!t->busy && uar_list_empty(&t->senders) && !t->timer.heap_index)
		free_task(t);
}

static void on_timer(struct uar_timer *timer)
{
	rt_push_wake(UAR_OWNER(timer, struct push_task, timer));
}

static uar_err own_identity(struct push_task *t, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;

	t->run_id = uar_arena_str(&t->own, run_id);
	t->key = uar_arena_str(&t->own, rt_key(&k, owner, run_id));
	if (!t->run_id.p || !t->key.p || !uar_owner_copy(&t->own, owner, &t->owner))
		return UAR_ENOMEM;
	return t->key.n ? uar_map_put(&t->ml->push.tasks, t->key, t) : UAR_ENOTFOUND;
}

static uar_err open_task(struct uar_mailer *ml, const struct uar_owner *owner, uar_str run_id,
			 struct push_task **out)
{
	struct rt_key k;
	struct push_task *t = uar_map_get(&ml->push.tasks, rt_key(&k, owner, run_id));
	uar_err e;

	if (t) {
		*out = t;
		return UAR_OK;
	}
	t = uar_zalloc(sizeof *t);
	if (!t)
		return UAR_ENOMEM;
	t->ml = ml;
	t->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	t->timer.fn = on_timer;
	uar_list_init(&t->queue);
	uar_list_init(&t->senders);
	uar_list_init(&t->under_way.node);
	e = own_identity(t, owner, run_id);
	if (e)
		free_task(t);
	else
		*out = t;
	return e;
}

/* --- waking ----------------------------------------------------------------------------------- */

/* Disk or memory are short. Without a timer, either, its next commit brings it on its way. */
static void look_later(struct push_task *t)
{
	if (!t->ml->push.stopped && uar_timer_set(rt_sched(t->ml->rt), &t->timer, UAR_RETRY_US))
		uar_log(rt_log(t->ml->rt), UAR_LOG_WARN, "a2a.push_not_looked",
			{ "run_id", t->run_id });
}

static void looked(struct uar_push_op *op)
{
	struct push_task *t = UAR_OWNER(op, struct push_task, look);

	t->looking = false;
	t->ml->push.looks--;
	if (op->err)
		look_later(t);
	rt_push_pump(t->ml);
}

void rt_push_wake(struct push_task *t)
{
	if (t->ml->push.stopped || t->looking)
		return;
	if (t->complete) {
		UAR_LIST_EACH (it, &t->senders)
			rt_push_poke(UAR_OWNER(it, struct push_sender, node));
		rt_push_pump(t->ml);
		return;
	}
	t->look = (struct uar_push_op){ .what = UAR_PUSH_LOOK, .done = looked };
	t->looking = !rt_push_enter(t, &t->look);
	t->ml->push.looks += t->looking;
	if (!t->looking)
		look_later(t);
}

void rt_pushes_committed(struct uar_mailer *ml, const struct rt_commit *c)
{
	const struct uar_event *ev = c->events;
	struct uar_owner owner = { ev->ids[UAR_ID_TENANT], ev->ids[UAR_ID_WORKSPACE],
				   ev->ids[UAR_ID_USER] };
	struct push_task *t = NULL;
	bool tells = c->row != NULL;

	if (!ml->push.watched.count || ml->push.stopped ||
	    !rt_numbers_have(&ml->push.watched, number_of(ml, c->run_key)))
		return;
	for (size_t i = 0; i < c->event_count && !tells; i++)
		tells = ev[i].cls == UAR_EV_ARTIFACT_CHANGED;
	if (tells && !open_task(ml, &owner, ev->ids[UAR_ID_RUN], &t))
		rt_push_wake(t);
}

/* The append that evicted the run has deleted its configurations. */
void rt_pushes_evicted(struct uar_mailer *ml, const struct uar_owner *owner, uar_str run_id)
{
	struct rt_key k;
	uar_str key = rt_key(&k, owner, run_id);
	struct push_task *t = uar_map_get(&ml->push.tasks, key);

	if (ml->push.stopped)
		return;
	rt_numbers_remove(&ml->push.watched, number_of(ml, key));
	if (!t)
		return;
	UAR_LIST_EACH (it, &t->senders)
		rt_push_kill(UAR_OWNER(it, struct push_sender, node));
	rt_push_rest(t);
	rt_push_pump(ml);
}

uar_err uar_push_check(const struct uar_mailer *ml, uar_str url, struct uar_error *error)
{
	struct uar_pushes *port = ml->push.port;
	uar_err e = port ? port->ops->check(port, url, error) : UAR_ENOTIMPL;

	if (e == UAR_EINVALID)
		uar_error_where(error, "/url");
	return e;
}

uar_err uar_push(struct uar_mailer *ml, struct uar_push_op *op)
{
	struct push_task *t = NULL;
	uar_err e = rt_takes_new(ml->rt);

	if (!e && op->what == UAR_PUSH_SET)
		e = uar_push_check(ml, op->push.url, &op->error);
	if (!e)
		e = open_task(ml, &op->owner, op->run_id, &t);
	if (e)
		return e;
	e = rt_push_enter(t, op);
	if (e)
		rt_push_rest(t);
	return e;
}

/* --- a start ---------------------------------------------------------------------------------- */

/* Lists the sessions in which something is open, a page at a time, and goes on when what the last
 * page has brought is at work. */
struct push_scan {
	struct rt_op under_way;
	struct uar_mailer *ml;
	struct uar_sessions_query sessions;
	struct uar_arena arena;
	uar_str after;
	bool asking;
};

static void dropped(struct rt_op *op)
{
	(void)op; /* it goes with the mailer */
}

static void free_scan(struct push_scan *x)
{
	if (x)
		uar_arena_fini(&x->arena);
	uar_free(x);
}

static void end_scan(struct push_scan *x)
{
	x->ml->push.scan = NULL;
	free_scan(x);
}

static void take_session(struct uar_mailer *ml, const struct uar_session_place *p)
{
	struct push_task *t = NULL;

	if (!uar_str_starts(p->session_id, UAR_STR(PUSH_SESSION)) ||
	    open_task(ml, &p->owner, uar_str_from(p->session_id, sizeof PUSH_SESSION - 1), &t))
		return;
	rt_push_watch(t, true);
	rt_push_wake(t);
}

static void listed(struct uar_sessions_query *q)
{
	struct push_scan *x = UAR_OWNER(q, struct push_scan, sessions);
	struct uar_mailer *ml = x->ml;
	bool more = !q->err && q->more;

	x->asking = false;
	rt_op_end(&x->under_way);
	if (q->err)
		uar_log(rt_log(ml->rt), UAR_LOG_WARN, "a2a.push_not_listed",
			{ "reason", uar_str_c(uar_err_text(q->err)) });
	for (size_t i = 0; i < q->count && !q->err && !ml->push.stopped; i++)
		take_session(ml, &q->sessions[i]);
	uar_arena_reset(&x->arena);
	x->after = more ? uar_arena_str(&x->arena, q->next) : UAR_STR_NONE;
	uar_store_sessions_fini(q);
	if (x->after.n)
		rt_push_scan_on(ml);
	else
		end_scan(x);
}

void rt_push_scan_on(struct uar_mailer *ml)
{
	struct push_scan *x = ml->push.scan;
	struct uar_store *store = rt_store(ml->rt);

	if (!x || x->asking || ml->push.stopped || ml->push.looks ||
	    !uar_list_empty(&ml->push.ready))
		return;
	x->sessions = (struct uar_sessions_query){ .which = UAR_SESSIONS_OPEN,
						   .after = x->after,
						   .limit = UAR_LIMIT_LIST_PAGE,
						   .done = listed };
	x->asking = !store->ops->sessions(store, &x->sessions);
	if (x->asking)
		rt_op_begin(ml->rt, &x->under_way, dropped);
	else
		end_scan(x);
}

void uar_push_recover(struct uar_mailer *ml)
{
	struct push_scan *x = ml->push.port && !ml->push.scan ? uar_zalloc(sizeof *x) : NULL;

	if (!x)
		return;
	x->ml = ml;
	uar_arena_init(&x->arena, 0);
	ml->push.scan = x;
	rt_push_scan_on(ml);
}

/* --- life ------------------------------------------------------------------------------------- */

void rt_pushes_init(struct uar_mailer *ml, struct uar_pushes *port)
{
	ml->push.port = port;
	uar_map_init(&ml->push.tasks, rt_hash_seed(ml->rt));
	uar_map_init(&ml->push.lanes, rt_hash_seed(ml->rt));
	uar_map_init(&ml->push.parts, rt_hash_seed(ml->rt));
	uar_list_init(&ml->push.ready);
	uar_list_init(&ml->push.idle);
}

void rt_pushes_stop(struct uar_mailer *ml)
{
	struct push_task *t;
	size_t at = 0;

	ml->push.stopped = true;
	while ((t = uar_map_next(&ml->push.tasks, &at))) {
		uar_timer_stop(rt_sched(ml->rt), &t->timer);
		UAR_LIST_EACH (it, &t->senders)
			rt_push_halt(UAR_OWNER(it, struct push_sender, node));
	}
}

void rt_pushes_fini(struct uar_mailer *ml)
{
	struct push_task *t;
	size_t at = 0;

	ml->push.stopped = true;
	free_scan(ml->push.scan);
	while ((t = uar_map_next(&ml->push.tasks, &at)))
		free_task(t);
	uar_map_fini(&ml->push.tasks);
	uar_map_fini(&ml->push.lanes);
	uar_map_fini(&ml->push.parts);
	rt_numbers_free(&ml->push.watched);
}
