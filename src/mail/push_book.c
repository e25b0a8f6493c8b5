/* push_book.c - the configurations of a task: rows, and the facts that they follow from.
 *
 * One operation after the other: its rows are read, it is decided, and what changes is one append
 * to a session of the task's own. The run's session is not touched, so no receiver can hold it up.
 */
#include "base/base64.h"
#include "event/limits.h"
#include "mail/push_int.h"

static struct uar_push_op *book_op_current(const struct push_task *t)
{
	return UAR_OWNER(t->queue.next, struct uar_push_op, node);
}

static void book_op_dropped(struct rt_op *under_way)
{
	(void)under_way; /* the task goes with the mailer */
}

static uar_err book_op_begin(struct push_task *t);

static void book_op_answer(struct push_task *t, uar_err e)
{
	struct uar_push_op *op = book_op_current(t);

	uar_list_remove(&op->node);
	t->waiting--;
	op->err = e;
	op->error.code = e;
	op->done(op);
	uar_store_rows_fini(&t->rows);
	uar_arena_reset(&t->arena);
}

/* Ends the operation at work; its `done` may enter another one. */
static void book_op_end(struct push_task *t, uar_err e)
{
	book_op_answer(t, e);
	while (!uar_list_empty(&t->queue)) {
		e = book_op_begin(t);
		if (!e)
			return;
		book_op_answer(t, e);
	}
	t->busy = false;
	rt_op_end(&t->under_way);
	rt_push_rest(t);
}

/* --- rows ------------------------------------------------------------------------------------- */

static uar_str row_id(struct push_task *t, uar_str config_id)
{
	return uar_arena_printf(&t->arena, "%.*s/%.*s", UAR_FMT(t->run_id), UAR_FMT(config_id));
}

uar_err rt_push_unseal(struct push_task *t, const struct uar_row_push *row, struct uar_arena *arena,
		       struct uar_a2a_push *out)
{
	struct uar_buf plain = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	const struct uar_json *j = NULL;
	uar_str sealed;
	uar_err e = uar_base64_decode(arena, row->sealed, &sealed);

	if (!e)
		e = uar_unseal(rt_seal(t->ml->rt), sealed, row->row.id, &plain);
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&plain), NULL, arena, &j, NULL);
	if (!e)
		uar_a2a_kept_push(j, out);
	if (plain.n)
		explicit_bzero(plain.p, plain.n);
	uar_buf_fini(&plain);
	return e == UAR_ENOMEM || !e ? e : UAR_ECORRUPT;
}

static uar_err book_seal_row(struct push_task *t, struct uar_row_push *row,
			     const struct uar_a2a_push *push)
{
	struct uar_buf plain = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	struct uar_buf sealed = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	struct uar_jw w = uar_jw_begin(&plain);
	uar_err e;

	uar_a2a_keep_push(&w, push);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_seal(rt_seal(t->ml->rt), rt_rand(t->ml->rt), uar_buf_str(&plain),
			     row->row.id, &sealed);
	if (!e) {
		uar_base64_encode(&text, uar_buf_str(&sealed));
		e = text.err;
	}
	if (!e) {
		row->sealed = uar_arena_str(&t->arena, uar_buf_str(&text));
		e = row->sealed.p ? UAR_OK : UAR_ENOMEM;
	}
	if (plain.n)
		explicit_bzero(plain.p, plain.n);
	uar_buf_fini(&plain);
	uar_buf_fini(&sealed);
	uar_buf_fini(&text);
	return e;
}

static uar_err book_unpack_row(struct push_task *t, size_t i, struct uar_row_push *out)
{
	return uar_row_unpack(&t->rows.rows[i], &t->arena, out, sizeof *out, NULL);
}

/* ENOTFOUND: there is no such configuration. */
static uar_err find_row(struct push_task *t, uar_str config_id, struct uar_row_push *out)
{
	uar_str id = row_id(t, config_id);

	if (!id.p)
		return UAR_ENOMEM;
	for (size_t i = 0; i < t->rows.row_count; i++)
		if (uar_str_eq(t->rows.rows[i].id, id))
			return book_unpack_row(t, i, out);
	return UAR_ENOTFOUND;
}

/* --- what is only read ------------------------------------------------------------------------ */

static uar_err book_show_rows(struct push_task *t, struct uar_push_op *op)
{
	struct uar_a2a_push *found =
		uar_arena_alloc(&t->arena, (t->rows.row_count + 1) * sizeof *found);
	struct uar_row_push row;
	uar_err e = found ? UAR_OK : UAR_ENOMEM;

	op->count = 0;
	for (size_t i = 0; i < t->rows.row_count && !e; i++) {
		e = book_unpack_row(t, i, &row);
		if (e || (op->id.n && !uar_str_eq(row.config_id, op->id)))
			continue;
		e = rt_push_unseal(t, &row, &t->arena, &found[op->count]);
		op->count += !e;
	}
	op->found = found;
	return !e && op->id.n && !op->count ? UAR_ENOTFOUND : e;
}

/* Each that is active gets a sender, if it has none. */
static uar_err book_make_senders(struct push_task *t)
{
	struct uar_row_push row;
	uar_err e = UAR_OK;
	bool any = false;

	for (size_t i = 0; i < t->rows.row_count && !e; i++) {
		struct push_sender *s;

		if (!t->rows.rows[i].open)
			continue;
		any = true;
		e = book_unpack_row(t, i, &row);
		s = e ? NULL : rt_push_find(t, row.config_id);
		if (s)
			rt_push_poke(s);
		else if (!e)
			e = rt_push_sender(t, &row);
	}
	t->complete = !e;
	if (!any && !e)
		rt_push_watch(t, false);
	return e;
}

/* --- what changes ----------------------------------------------------------------------------- */

/* What an operation changes, and the fact of it. */
struct change {
	struct uar_row_push row;
	struct uar_push_fact fact;
};

static bool is_same(struct push_task *t, const struct uar_row_push *row,
		    const struct uar_a2a_push *push)
{
	struct uar_a2a_push old;

	return !rt_push_unseal(t, row, &t->arena, &old) && old.old == push->old &&
	       uar_str_eq(old.url, push->url) && uar_str_eq(old.token, push->token) &&
	       uar_str_eq(old.scheme, push->scheme) &&
	       uar_str_eq(old.credentials, push->credentials);
}

static uar_err change_set(struct push_task *t, struct uar_push_op *op, struct change *c)
{
	struct uar_row_push *row = &c->row;
	struct uar_a2a_push push = op->push;
	int64_t now_us = uar_clock_wall(rt_sched(t->ml->rt)->clock);
	uar_err e;

	if (!push.id.n) {
		uar_uuid_next(rt_ids(t->ml->rt), op->made);
		push.id = uar_str_c(op->made);
	}
	op->push.id = push.id;
	e = find_row(t, push.id, row);
	if (e && e != UAR_ENOTFOUND)
		return e;
	if (e && t->rows.row_count >= UAR_LIMIT_PUSH_CONFIGS)
		return uar_error_set(&op->error, UAR_ETOOBIG,
				     "a task has at most %d configurations of notifications",
				     UAR_LIMIT_PUSH_CONFIGS);
	if (e)
		*row = (struct uar_row_push){
			.row = { .kind = UAR_ROW_PUSH,
				 .id = row_id(t, push.id),
				 .parent = t->run_id,
				 .created_us = now_us,
				 .rank = now_us,
				 .fresh = true },
			.config_id = push.id,
			.sequence = (int64_t)op->after,
			.frame = op->after ? UINT32_MAX : 0,
		};
	if (!e && row->row.open && is_same(t, row, &push)) {
		op->found = &op->push;
		op->count = 1;
		return UAR_ESKIP; /* a repeated SET changes nothing */
	}
	/* One that was there goes on where it stood, also when the run is over: if all of it was
	 * taken, the sender finds nothing more and ends it. */
	row->row.open = !e || !op->over;
	row->row.status = row->row.open ? UAR_STR("active") : UAR_STR("ended");
	row->old = push.old;
	row->reason = UAR_STR("");
	c->fact.change = "set";
	op->found = &op->push;
	op->count = 1;
	return row->row.id.p ? book_seal_row(t, row, &push) : UAR_ENOMEM;
}

/* UAR_ESKIP: there is nothing to change. */
static uar_err change_one(struct push_task *t, struct uar_push_op *op, struct change *c)
{
	uar_err e = find_row(t, op->id, &c->row);
	struct uar_row_push *row = &c->row;

	if (op->what == UAR_PUSH_REMOVE) {
		row->row.removed = true;
		c->fact.change = "removed";
		return e == UAR_ENOTFOUND ? UAR_ESKIP : e;
	}
	if (!e && !row->row.open)
		e = UAR_ESKIP;
	if (e)
		return e;
	if (op->what == UAR_PUSH_TOLD) {
		row->sequence = (int64_t)(c->fact.sequence = op->sequence);
		row->frame = c->fact.frame = op->frame;
		c->fact.change = "acknowledged";
		return UAR_OK;
	}
	row->row.open = false;
	row->row.status = op->what == UAR_PUSH_END ? UAR_STR("ended") : UAR_STR("dropped");
	row->reason = c->fact.reason = op->reason.p ? op->reason : UAR_STR("");
	c->fact.change = op->what == UAR_PUSH_END ? "ended" : "dropped";
	return UAR_OK;
}

static uar_err book_decide_change(struct push_task *t, struct change *c)
{
	struct uar_push_op *op = book_op_current(t);
	uar_err e;

	c->fact.run_id = t->run_id;
	e = op->what == UAR_PUSH_SET ? change_set(t, op, c) : change_one(t, op, c);
	if (e)
		return e;
	c->fact.config_id = c->row.config_id;
	c->row.row.updated_us = uar_clock_wall(rt_sched(t->ml->rt)->clock);
	e = uar_row_pack(&c->row, &t->arena, &op->error);
	return e;
}

/* Has the configuration something to send after the operation? */
static bool is_opened(const struct push_task *t, const struct uar_push_op *op)
{
	return op->what == UAR_PUSH_SET && t->append.rows[0].open;
}

/* Has another configuration something to send, or this one after the operation? */
static bool is_awaited(const struct push_task *t, const struct uar_push_op *op)
{
	size_t open = 0;

	if (op->what == UAR_PUSH_TOLD || is_opened(t, op))
		return true;
	for (size_t i = 0; i < t->rows.row_count; i++)
		open += t->rows.rows[i].open &&
			!uar_str_eq(uar_str_from(t->rows.rows[i].id, t->run_id.n + 1),
				    op->what == UAR_PUSH_SET ? op->push.id : op->id);
	return open > 0;
}

/* Discards results of the old configuration. */
static void book_change_stored(struct push_task *t)
{
	const struct uar_push_op *op = book_op_current(t);
	uar_str id = op->what == UAR_PUSH_SET ? op->push.id : op->id;

	if (!is_awaited(t, op))
		rt_push_watch(t, false);
	if ((op->what == UAR_PUSH_SET || op->what == UAR_PUSH_REMOVE) && rt_push_find(t, id))
		rt_push_kill(rt_push_find(t, id));
	if (is_opened(t, op)) {
		t->complete = false;
		rt_push_watch(t, true);
		rt_push_wake(t);
	}
	rt_push_pump(t->ml); /* its place may be free */
}

static uar_err find_session(struct push_task *t);

static void book_append_done(struct uar_append *a)
{
	struct push_task *t = UAR_OWNER(a, struct push_task, append);
	struct rt_key k;
	uar_err e = a->err;

	if (e == UAR_ECONFLICT && ++t->tries < UAR_LIMIT_A2A_TRIES) {
		t->known = false;
		e = find_session(t);
		if (!e)
			return;
	} else if (!e) {
		t->state.sequence = a->events[a->event_count - 1].sequence;
		rt_publish(t->ml->rt, rt_key(&k, &t->owner, t->state.session_id), a);
		book_change_stored(t);
	} else {
		book_op_current(t)->error = a->error;
		t->known = false;
	}
	book_op_end(t, e);
}

static uar_err book_append_change(struct push_task *t)
{
	struct uar_push_op *op = book_op_current(t);
	struct change *c = uar_arena_alloc(&t->arena, sizeof *c);
	struct uar_session s = t->state;
	struct uar_decision d = { 0 };
	struct uar_core_env env = {
		.now_us = uar_clock_wall(rt_sched(t->ml->rt)->clock),
		.ids = rt_ids(t->ml->rt),
		.arena = &t->arena,
		.buf = &t->buf,
	};
	uar_err e;

	if (!c)
		return UAR_ENOMEM;
	memset(c, 0, sizeof *c);
	e = book_decide_change(t, c);
	if (!e)
		e = uar_core_push(&env, &s, &c->fact, &d, &op->error);
	if (e)
		return e;
	t->append = (struct uar_append){ .owner = t->owner,
					 .session_id = t->state.session_id,
					 .after = t->state.sequence,
					 .events = d.events,
					 .event_count = d.event_count,
					 .rows = &c->row.row,
					 .row_count = 1,
					 .done = book_append_done };
	return rt_append(t->ml->rt, &t->append);
}

static void book_session_ready(struct uar_thread_query *q)
{
	struct push_task *t = UAR_OWNER(q, struct push_task, session);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (e)
		book_op_current(t)->error = q->error;
	t->known = !e;
	t->state.sequence = q->err ? 0 : q->last_sequence;
	if (!e)
		e = book_append_change(t);
	if (e)
		book_op_end(t, e == UAR_ESKIP ? UAR_OK : e);
}

static uar_err find_session(struct push_task *t)
{
	struct uar_store *store = rt_store(t->ml->rt);

	t->session = (struct uar_thread_query){ .owner = t->owner,
						.session_id = t->state.session_id,
						.done = book_session_ready };
	return store->ops->thread(store, &t->session);
}

/* --- one operation ---------------------------------------------------------------------------- */

static void book_rows_ready(struct uar_rows_query *q)
{
	struct push_task *t = UAR_OWNER(q, struct push_task, rows);
	struct uar_push_op *op = book_op_current(t);
	bool changes = op->what != UAR_PUSH_READ && op->what != UAR_PUSH_LOOK;
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (e)
		op->error = q->error;
	else if (!changes)
		e = op->what == UAR_PUSH_READ ? book_show_rows(t, op) : book_make_senders(t);
	else
		e = t->known ? book_append_change(t) : find_session(t);
	if (e || !changes)
		book_op_end(t, e == UAR_ESKIP ? UAR_OK : e);
}

static uar_err book_op_begin(struct push_task *t)
{
	struct uar_store *store = rt_store(t->ml->rt);

	t->tries = 0;
	t->rows = (struct uar_rows_query){ .owner = t->owner,
					   .kind = UAR_ROW_PUSH,
					   .parent = t->run_id,
					   .order = UAR_ROWS_RANK,
					   .limit = UAR_LIMIT_PUSH_CONFIGS,
					   .done = book_rows_ready };
	return store->ops->rows(store, &t->rows);
}

static uar_err book_op_begin_first(struct push_task *t)
{
	char id[UAR_LIMIT_ID_BYTES + 1];
	uar_str session_id;

	if (t->state.session_id.n)
		return book_op_begin(t);
	if (t->run_id.n + sizeof PUSH_SESSION > sizeof id)
		return UAR_ENOTFOUND; /* no run has such an id */
	snprintf(id, sizeof id, PUSH_SESSION "%.*s", UAR_FMT(t->run_id));
	session_id = uar_arena_str(&t->own, uar_str_c(id));
	if (!session_id.p)
		return UAR_ENOMEM;
	uar_session_init(&t->state, &t->owner, uar_str_c(rt_store(t->ml->rt)->runtime_id),
			 session_id);
	return book_op_begin(t);
}

uar_err rt_push_enter(struct push_task *t, struct uar_push_op *op)
{
	bool first = !t->busy;
	uar_err e = t->waiting < UAR_LIMIT_PUSH_OPS ? UAR_OK : UAR_EBUSY;

	if (e)
		return e;
	uar_list_add_last(&t->queue, &op->node);
	t->waiting++;
	e = first ? book_op_begin_first(t) : UAR_OK;
	if (e) {
		uar_list_remove(&op->node);
		t->waiting--;
	} else if (first) {
		t->busy = true;
		rt_op_begin(t->ml->rt, &t->under_way, book_op_dropped);
	}
	return e;
}
