/* push.c - tasks with notifications: found by a start, woken by commits of their runs. */
#include "mail/push_int.h"

#include "event/limits.h"

/* Never 0. */
static uint64_t task_number(const struct uar_mailer *ml, uar_str key)
{
	return uar_str_hash(key, rt_hash_seed(ml->rt)) | 1;
}

/* Runs with the same number are few: being watched for nothing costs a look. */
bool rt_push_watch(struct push_task *t, bool yes)
{
	struct rt_numbers *watched = &t->ml->push.watched;
	bool done = true;

	if (yes)
		done = rt_numbers_add(watched, task_number(t->ml, t->key));
	else
		rt_numbers_remove(watched, task_number(t->ml, t->key));
	if (!done)
		uar_log(rt_log(t->ml->rt), UAR_LOG_WARN, "a2a.push_not_watched",
			{ "run_id", t->run_id });
	return done;
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void task_free(struct push_task *t)
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
		task_free(t);
}

static void task_look_again(struct uar_timer *timer)
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

static uar_err task_open(struct uar_mailer *ml, const struct uar_owner *owner, uar_str run_id,
			 struct push_task **out)
{
	struct rt_key k;
	struct push_task *t = uar_map_get(&ml->push.tasks, rt_key(&k, owner, run_id));
	uar_err e;

	if (t) {
		*out = t;
		return UAR_OK;
	}
	if (ml->push.tasks.used >= UAR_LIMIT_PUSH_TASKS)
		return UAR_EBUSY;
	t = uar_zalloc(sizeof *t);
	if (!t)
		return UAR_ENOMEM;
	t->ml = ml;
	t->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	t->timer.fn = task_look_again;
	uar_list_init(&t->queue);
	uar_list_init(&t->senders);
	uar_list_init(&t->under_way.node);
	e = own_identity(t, owner, run_id);
	if (e)
		task_free(t);
	else
		*out = t;
	return e;
}

/* --- waking ----------------------------------------------------------------------------------- */

/* Disk or memory are short. Without a timer, either, its next commit brings it on its way. */
static void task_look_later(struct push_task *t)
{
	if (!t->ml->push.stopped && uar_timer_set(rt_sched(t->ml->rt), &t->timer, UAR_RETRY_US))
		uar_log(rt_log(t->ml->rt), UAR_LOG_WARN, "a2a.push_lookup_failed",
			{ "run_id", t->run_id });
}

static void task_looked(struct uar_push_op *op)
{
	struct push_task *t = UAR_OWNER(op, struct push_task, look);

	t->looking = false;
	t->ml->push.looks--;
	if (op->err)
		task_look_later(t);
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
	t->look = (struct uar_push_op){ .what = UAR_PUSH_LOOK, .done = task_looked };
	t->looking = !rt_push_enter(t, &t->look);
	t->ml->push.looks += t->looking;
	if (!t->looking)
		task_look_later(t);
}

void rt_pushes_committed(struct uar_mailer *ml, const struct rt_commit *c)
{
	const struct uar_event *ev = c->events;
	struct uar_owner owner = { ev->ids[UAR_ID_TENANT], ev->ids[UAR_ID_WORKSPACE],
				   ev->ids[UAR_ID_USER] };
	struct push_task *t = NULL;
	bool tells = c->row != NULL;

	if (!ml->push.watched.count || ml->push.stopped ||
	    !rt_numbers_have(&ml->push.watched, task_number(ml, c->run_key)))
		return;
	for (size_t i = 0; i < c->event_count && !tells; i++)
		tells = ev[i].cls == UAR_EV_ARTIFACT_CHANGED;
	if (tells && task_open(ml, &owner, ev->ids[UAR_ID_RUN], &t))
		ml->push.left = true;
	else if (tells)
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
	rt_numbers_remove(&ml->push.watched, task_number(ml, key));
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
		e = task_open(ml, &op->owner, op->run_id, &t);
	if (e)
		return e;
	e = rt_push_enter(t, op);
	if (e)
		rt_push_rest(t);
	return e;
}

/* --- scans: at a start, and when there is room again ------------------------------------------ */

static void scan_dropped(struct rt_op *op)
{
	(void)op; /* it is part of the mailer */
}

static uar_err scan_take_session(struct uar_mailer *ml, const struct uar_session_place *p)
{
	struct push_task *t = NULL;
	bool watched;
	uar_err e;

	if (!uar_str_starts(p->session_id, UAR_STR(PUSH_SESSION)))
		return UAR_OK;
	e = task_open(ml, &p->owner, uar_str_from(p->session_id, sizeof PUSH_SESSION - 1), &t);
	if (e)
		return e;
	watched = rt_push_watch(t, true);
	rt_push_wake(t);
	return watched ? UAR_OK : UAR_ENOMEM;
}

static uar_err scan_keep_cursor(struct push_scan *x, uar_str next)
{
	char *text = uar_alloc(next.n);

	if (!text)
		return UAR_ENOMEM;
	memcpy(text, next.p, next.n);
	uar_free((char *)x->after.p);
	x->after = uar_str_n(text, next.n);
	return UAR_OK;
}

static void scan_forget_cursor(struct push_scan *x)
{
	uar_free((char *)x->after.p);
	x->after = UAR_STR_NONE;
}

/* The page is read again: tasks that were taken from it already are known. */
static void scan_later(struct uar_mailer *ml, uar_err e)
{
	if (ml->push.stopped)
		return;
	uar_log(rt_log(ml->rt), UAR_LOG_WARN, "a2a.push_scan_failed",
		{ "reason", uar_str_c(uar_err_text(e)) });
	/* If no timer can be set, the next operation or commit retries. */
	(void)uar_timer_set(rt_sched(ml->rt), &ml->push.scan.timer, UAR_RETRY_US);
}

static void scan_page_ready(struct uar_sessions_query *q)
{
	struct uar_mailer *ml = UAR_OWNER(q, struct uar_mailer, push.scan.sessions);
	struct push_scan *x = &ml->push.scan;
	bool more = q->more;
	uar_err e = q->err;

	rt_op_end(&x->under_way);
	for (size_t i = 0; i < q->count && !e && !ml->push.stopped; i++)
		e = scan_take_session(ml, &q->sessions[i]);
	if (!e && more)
		e = scan_keep_cursor(x, q->next);
	uar_store_sessions_fini(q);
	x->asking = false; /* not before: a task of this page may have called rt_push_scan_on() */
	x->on = e || more;
	if (!x->on)
		scan_forget_cursor(x);
	if (e)
		scan_later(ml, e);
	else
		rt_push_scan_on(ml);
}

static void scan_retry(struct uar_timer *timer)
{
	rt_push_scan_on(UAR_OWNER(timer, struct uar_mailer, push.scan.timer));
}

/* A scan ends although memory is full by then: each owner has its part of it. The next one begins
 * when a quarter is free. */
void rt_push_scan_on(struct uar_mailer *ml)
{
	struct push_scan *x = &ml->push.scan;
	struct uar_store *store = rt_store(ml->rt);
	uar_err e;

	if (!x->on && ml->push.left &&
	    rt_push_load(ml) <= UAR_LIMIT_PUSH_SENDERS - UAR_LIMIT_PUSH_SENDERS / 4) {
		x->on = true;
		ml->push.left = false;
	}
	if (!x->on || x->asking || x->timer.heap_index || ml->push.stopped || ml->push.looks ||
	    !uar_list_empty(&ml->push.ready))
		return;
	x->sessions = (struct uar_sessions_query){ .which = UAR_SESSIONS_OPEN,
						   .after = x->after,
						   .limit = UAR_LIMIT_LIST_PAGE,
						   .done = scan_page_ready };
	e = store->ops->sessions(store, &x->sessions);
	if (e) {
		scan_later(ml, e);
		return;
	}
	x->asking = true;
	rt_op_begin(ml->rt, &x->under_way, scan_dropped);
}

void uar_push_recover(struct uar_mailer *ml)
{
	ml->push.scan.on = ml->push.port != NULL;
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
	uar_list_init(&ml->push.scan.under_way.node);
	ml->push.scan.timer.fn = scan_retry;
}

void rt_pushes_stop(struct uar_mailer *ml)
{
	struct push_task *t;
	size_t at = 0;

	ml->push.stopped = true;
	uar_timer_stop(rt_sched(ml->rt), &ml->push.scan.timer);
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
	uar_timer_stop(rt_sched(ml->rt), &ml->push.scan.timer);
	scan_forget_cursor(&ml->push.scan);
	while ((t = uar_map_next(&ml->push.tasks, &at)))
		task_free(t);
	uar_map_fini(&ml->push.tasks);
	uar_map_fini(&ml->push.lanes);
	uar_map_fini(&ml->push.parts);
	rt_numbers_free(&ml->push.watched);
}
