/* credential_store.c - one change after the other: the fact and its row in one append. */
#include "work/credential_store.h"

#include "work/definition_store_int.h"
#include "work/limits.h"
#include "core/registry.h"

/* The change at work: the first of the queue. */
struct credential_writer {
	struct rt_op under_way;
	struct uar_workers *w;
	struct uar_thread_query session;
	struct uar_append append;
	struct uar_session state;
	struct uar_arena arena;
	struct uar_buf buf;
	unsigned tries;
};

static uar_err begin_credential(struct uar_workers *w);

static struct uar_credential_change *credential_at_work(const struct uar_workers *w)
{
	return UAR_OWNER(w->credentials.queue.next, struct uar_credential_change, node);
}

static void free_credential_writer(struct credential_writer *x)
{
	uar_arena_fini(&x->arena);
	uar_buf_fini(&x->buf);
	uar_free(x);
}

static void drop_credential_writer(struct rt_op *op)
{
	free_credential_writer(UAR_OWNER(op, struct credential_writer, under_way));
}

static void answer_credential(struct uar_workers *w, uar_err e)
{
	struct uar_credential_change *op = credential_at_work(w);

	uar_list_remove(&op->node);
	w->credentials.count--;
	op->err = op->error.code = e;
	op->done(op);
}

/* The change is over; the next one begins. */
static void end_credential(struct credential_writer *x, uar_err e)
{
	struct uar_workers *w = x->w;

	rt_op_end(&x->under_way);
	free_credential_writer(x);
	answer_credential(w, e);
	while (!uar_list_empty(&w->credentials.queue)) {
		e = begin_credential(w);
		if (!e)
			return;
		answer_credential(w, e);
	}
}

static uar_err find_registry(struct credential_writer *x);

static void credential_appended(struct uar_append *a)
{
	struct credential_writer *x = UAR_OWNER(a, struct credential_writer, append);
	struct uar_credential_change *op = credential_at_work(x->w);
	uar_err e = a->err;
	struct rt_key k;

	if (e == UAR_ECONFLICT && ++x->tries < UAR_LIMIT_DEFINITION_TRIES) {
		e = find_registry(x);
		if (!e)
			return;
	}
	if (e)
		op->error = a->error;
	else
		rt_publish(x->w->rt, rt_key(&k, &op->owner, UAR_STR(UAR_REGISTRY_SESSION)), a);
	end_credential(x, e);
}

static uar_err append_credential(struct credential_writer *x, struct uar_credential_change *op)
{
	const struct uar_credential_change_facts facts = { op->change, &op->row };
	struct uar_session s = x->state;
	struct uar_decision decision = { 0 };
	struct uar_core_env env = {
		.now_us = uar_clock_wall(rt_sched(x->w->rt)->clock),
		.ids = rt_ids(x->w->rt),
		.arena = &x->arena,
		.buf = &x->buf,
	};
	uar_err e;

	uar_arena_reset(&x->arena);
	op->row.row.updated_us = env.now_us;
	op->row.row.fresh = strcmp(op->change, "created") == 0;
	if (op->row.row.fresh)
		op->row.row.created_us = env.now_us;
	e = uar_core_credential(&env, &s, &facts, &decision, &op->error);
	if (!e)
		e = uar_row_pack(&op->row, &x->arena, &op->error);
	if (e)
		return e;
	x->append = (struct uar_append){ .owner = op->owner,
					 .session_id = x->state.session_id,
					 .after = x->state.sequence,
					 .events = decision.events,
					 .event_count = decision.event_count,
					 .rows = &op->row.row,
					 .row_count = 1,
					 .done = credential_appended };
	return rt_append(x->w->rt, &x->append);
}

static void registry_found(struct uar_thread_query *q)
{
	struct credential_writer *x = UAR_OWNER(q, struct credential_writer, session);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	x->state.sequence = q->err ? 0 : q->last_sequence;
	if (!e)
		e = append_credential(x, credential_at_work(x->w));
	if (e)
		end_credential(x, e);
}

static uar_err find_registry(struct credential_writer *x)
{
	const struct uar_credential_change *op = credential_at_work(x->w);
	struct uar_store *store = rt_store(x->w->rt);

	uar_session_init(&x->state, &op->owner, uar_str_c(store->runtime_id),
			 UAR_STR(UAR_REGISTRY_SESSION));
	x->session = (struct uar_thread_query){ .owner = op->owner,
						.session_id = UAR_STR(UAR_REGISTRY_SESSION),
						.done = registry_found };
	return store->ops->thread(store, &x->session);
}

static uar_err begin_credential(struct uar_workers *w)
{
	struct credential_writer *x = uar_zalloc(sizeof *x);
	uar_err e;

	if (!x)
		return UAR_ENOMEM;
	x->w = w;
	x->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_arena_init(&x->arena, 0);
	e = find_registry(x);
	if (e)
		free_credential_writer(x);
	else
		rt_op_begin(w->rt, &x->under_way, drop_credential_writer);
	return e;
}

uar_err uar_workers_change_credential(struct uar_workers *w, struct uar_credential_change *op)
{
	uar_err e = UAR_OK;

	if (w->credentials.count == UAR_LIMIT_DEFINITION_CHANGES)
		return UAR_EBUSY;
	uar_list_add_last(&w->credentials.queue, &op->node);
	if (w->credentials.count++ == 0)
		e = begin_credential(w);
	if (e) {
		uar_list_remove(&op->node);
		w->credentials.count--;
	}
	return e;
}

/* --- lists --------------------------------------------------------------------------------- */

struct credential_pages {
	struct rt_op under_way;
	struct uar_credential_list *op;
	struct uar_rows_query rows;
	struct uar_arena arena;
};

static void free_pages(struct credential_pages *l)
{
	uar_arena_fini(&l->arena);
	uar_free(l);
}

static void drop_pages(struct rt_op *op)
{
	free_pages(UAR_OWNER(op, struct credential_pages, under_way));
}

static uar_err read_rows(struct credential_pages *l)
{
	struct uar_row_credential *out =
		uar_arena_alloc(&l->arena, (l->rows.row_count + 1) * sizeof *out);

	if (!out)
		return UAR_ENOMEM;
	for (size_t i = 0; i < l->rows.row_count; i++) {
		uar_err e = uar_row_unpack(&l->rows.rows[i], &l->arena, &out[i], sizeof out[i],
					   &l->op->error);

		if (e)
			return e;
	}
	l->op->rows = out;
	l->op->count = l->rows.row_count;
	l->op->more = l->rows.more;
	l->op->next = l->rows.next;
	return UAR_OK;
}

static void rows_ready(struct uar_rows_query *q)
{
	struct credential_pages *l = UAR_OWNER(q, struct credential_pages, rows);
	uar_err e = q->err;

	if (e)
		l->op->error = q->error;
	else
		e = read_rows(l);
	l->op->err = l->op->error.code = e;
	rt_op_end(&l->under_way);
	l->op->done(l->op);
	uar_store_rows_fini(q);
	free_pages(l);
}

uar_err uar_workers_list_credentials(struct uar_workers *w, struct uar_credential_list *op)
{
	struct uar_store *store = rt_store(w->rt);
	struct credential_pages *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->op = op;
	uar_arena_init(&l->arena, 0);
	l->rows = (struct uar_rows_query){ .owner = op->owner,
					   .kind = UAR_ROW_CREDENTIAL,
					   .id = op->id,
					   .status = op->status,
					   .after = op->after,
					   .limit = op->limit,
					   .done = rows_ready };
	e = store->ops->rows(store, &l->rows);
	if (e)
		free_pages(l);
	else
		rt_op_begin(w->rt, &l->under_way, drop_pages);
	return e;
}
