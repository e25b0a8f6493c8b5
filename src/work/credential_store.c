/* credential_store.c - one change after the other: the fact and its row in one append. */
#include "work/credential_store.h"

#include "work/definition_store_int.h"
#include "work/registry_append.h"
#include "work/limits.h"

/* The change at work: the first of the queue. */
struct credential_writer {
	struct rt_op under_way;
	struct uar_workers *w;
	struct registry_append append;
};

static uar_err begin_credential(struct uar_workers *w);

static struct uar_credential_change *credential_at_work(const struct uar_workers *w)
{
	return UAR_OWNER(w->credentials.queue.next, struct uar_credential_change, node);
}

static void free_credential_writer(struct credential_writer *x)
{
	rt_registry_append_fini(&x->append);
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
static void credential_appended(struct registry_append *a, uar_err e)
{
	struct credential_writer *x = UAR_OWNER(a, struct credential_writer, append);
	struct uar_workers *w = x->w;

	if (e)
		credential_at_work(w)->error = a->error;
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

static uar_err decide_credential(struct registry_append *a, const struct uar_core_env *env,
				 struct uar_session *s, struct uar_decision *out)
{
	struct credential_writer *x = UAR_OWNER(a, struct credential_writer, append);
	struct uar_credential_change *op = credential_at_work(x->w);
	const struct uar_credential_change_facts facts = { op->change, &op->row };
	uar_err e;

	op->row.row.updated_us = env->now_us;
	op->row.row.fresh = strcmp(op->change, "created") == 0;
	if (op->row.row.fresh)
		op->row.row.created_us = env->now_us;
	e = uar_core_credential(env, s, &facts, out, &a->error);
	if (!e)
		e = uar_row_pack(&op->row, &a->arena, &a->error);
	a->rows = &op->row.row;
	a->row_count = 1;
	return e;
}

static uar_err begin_credential(struct uar_workers *w)
{
	struct credential_writer *x = uar_zalloc(sizeof *x);
	uar_err e;

	if (!x)
		return UAR_ENOMEM;
	x->w = w;
	rt_registry_append_init(&x->append, w->rt, &credential_at_work(w)->owner);
	x->append.decide = decide_credential;
	x->append.done = credential_appended;
	e = rt_registry_append(&x->append);
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
