/* account.c - adds up what the runs that share a budget have used.
 *
 * A tree is a run with a budget and all that it has started, on all levels. It is in memory while
 * one of its runs is. The use of a run in memory comes from its state, including appends that are
 * on their way to the store, so that of two calls at the same time only one gets what is left. The
 * use of the other runs comes from their rows, which are read once. Until then nothing is decided
 * about a session of the tree. */
#include "core/budget.h"
#include "engine/engine_int.h"
#include "engine/limits.h"
#include "event/limits.h"

struct tree {
	struct rt_op under_way; /* while the rows are read */
	struct uar_runtime *rt;
	struct uar_arena arena; /* of all that is in it */
	struct uar_owner owner;
	uar_str root_run_id, key;
	struct uar_list payers, accounts;
	size_t live; /* accounts of runs in memory */
	bool known, loading;
	bool lost; /* the rows cannot be read: no call is borne */
	unsigned tries;
	struct uar_rows_query query;
	struct uar_timer again;
	char after[UAR_LIMIT_ROWS_CURSOR + 1];
};

/* A run whose budget bears others. */
struct payer {
	struct uar_list node;
	struct uar_payer is;
	struct uar_spending below; /* used by those others */
	struct rt_account *own;	   /* what it has used itself; NULL: not known */
};

struct rt_account {
	struct uar_list node;
	struct tree *tree;
	struct live_run *live; /* NULL: the run is not in memory */
	struct uar_account is;
	struct payer *payers[UAR_BUDGETS];
	size_t count;
	struct payer *self; /* NULL: its budget bears no others */
	bool waits;	    /* its session waits for the rows */
	bool found;	    /* by a start: it may have given something away before */
	bool unwritten;
	uar_str key;
};

static const struct uar_spending nothing;

/* --- life ------------------------------------------------------------------------------------ */

static void free_tree(struct tree *t)
{
	UAR_LIST_EACH (it, &t->accounts)
		uar_map_remove(&t->rt->budgets.accounts,
			       UAR_OWNER(it, struct rt_account, node)->key);
	uar_map_remove(&t->rt->budgets.trees, t->key);
	uar_timer_stop(t->rt->o.sched, &t->again);
	uar_arena_fini(&t->arena);
	uar_free(t);
}

static void free_if_left(struct tree *t)
{
	if (!t->live && !t->loading)
		free_tree(t);
}

static struct tree *make_tree(struct uar_runtime *rt, const struct uar_owner *owner,
			      uar_str root_run_id)
{
	struct tree *t = uar_zalloc(sizeof *t);
	struct rt_key k;

	if (!t)
		return NULL;
	t->rt = rt;
	uar_arena_init(&t->arena, 0);
	uar_list_init(&t->payers);
	uar_list_init(&t->accounts);
	t->root_run_id = uar_arena_str(&t->arena, root_run_id);
	t->key = uar_arena_str(&t->arena, rt_key(&k, owner, root_run_id));
	if (t->root_run_id.n && t->key.n && uar_owner_copy(&t->arena, owner, &t->owner) &&
	    !uar_map_put(&rt->budgets.trees, t->key, t))
		return t;
	uar_arena_fini(&t->arena);
	uar_free(t);
	return NULL;
}

static struct tree *find_tree(const struct uar_runtime *rt, const struct uar_owner *owner,
			      uar_str root_run_id)
{
	struct rt_key k;

	return uar_map_get(&rt->budgets.trees, rt_key(&k, owner, root_run_id));
}

static struct rt_account *find_account(const struct tree *t, uar_str run_id)
{
	struct rt_key k;

	return uar_map_get(&t->rt->budgets.accounts, rt_key(&k, &t->owner, run_id));
}

static struct payer *find_payer(const struct tree *t, uar_str run_id)
{
	UAR_LIST_EACH (it, &t->payers) {
		struct payer *p = UAR_OWNER(it, struct payer, node);

		if (uar_str_eq(p->is.run_id, run_id))
			return p;
	}
	return NULL;
}

static struct payer *need_payer(struct tree *t, const struct uar_payer *is)
{
	struct payer *p = find_payer(t, is->run_id);

	if (p)
		return p;
	p = uar_arena_alloc(&t->arena, sizeof *p);
	if (!p)
		return NULL;
	*p = (struct payer){ .is = *is, .own = find_account(t, is->run_id) };
	p->is.run_id = uar_arena_str(&t->arena, is->run_id);
	if (!p->is.run_id.n)
		return NULL;
	if (p->own)
		p->own->self = p;
	uar_list_init(&p->node);
	uar_list_add_last(&t->payers, &p->node);
	return p;
}

static struct rt_account *need_account(struct tree *t, uar_str run_id,
				       const struct uar_payer *payers, size_t count)
{
	struct rt_account *a = find_account(t, run_id);
	struct rt_key k;

	if (a)
		return a;
	a = uar_arena_alloc(&t->arena, sizeof *a);
	if (!a)
		return NULL;
	*a = (struct rt_account){ .tree = t, .unwritten = true };
	for (; a->count < count; a->count++) {
		a->payers[a->count] = need_payer(t, &payers[a->count]);
		if (!a->payers[a->count])
			return NULL;
	}
	a->key = uar_arena_str(&t->arena, rt_key(&k, &t->owner, run_id));
	if (!a->key.n || uar_map_put(&t->rt->budgets.accounts, a->key, a))
		return NULL;
	a->self = find_payer(t, run_id);
	if (a->self)
		a->self->own = a;
	uar_list_init(&a->node);
	uar_list_add_last(&t->accounts, &a->node);
	return a;
}

static void set_account(struct rt_account *a, const struct uar_account *now)
{
	for (size_t i = 0; i < a->count; i++)
		uar_spending_move(&a->payers[i]->below, &now->spent, &a->is.spent);
	a->is = *now;
}

/* --- what the store knows -------------------------------------------------------------------- */

static uar_err learn_row(struct tree *t, const struct uar_row *row)
{
	struct uar_payer payers[UAR_BUDGETS];
	struct uar_row_account r;
	struct rt_account *a;
	struct uar_arena arena;
	size_t count = 0;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_row_unpack(row, &arena, &r, sizeof r, NULL);
	if (!e)
		e = uar_budgets_read(r.budgets, &arena, payers, &count);
	a = e ? NULL : need_account(t, row->id, payers, count);
	if (a && !a->live)
		set_account(a, &(struct uar_account){
				       { r.nanos, r.tokens, r.model_calls, r.tool_calls },
				       r.waited_us,
				       r.parked_us });
	uar_arena_fini(&arena);
	return e ? e : a ? UAR_OK : UAR_ENOMEM;
}

static void tree_is_known(struct tree *t)
{
	t->known = true;
	t->loading = false;
	rt_op_end(&t->under_way);
	UAR_LIST_EACH (it, &t->accounts) {
		struct rt_account *a = UAR_OWNER(it, struct rt_account, node);

		if (!a->waits)
			continue;
		a->waits = false;
		a->live->agg->budgets_unknown--;
		rt_agg_kick(a->live->agg);
	}
	free_if_left(t);
}

static void drop_tree(struct rt_op *under_way)
{
	struct tree *t = UAR_OWNER(under_way, struct tree, under_way);

	t->loading = false;
	free_if_left(t);
}

static void ask_again(struct uar_timer *timer);

/* Budgets that cannot be read bear nothing. */
static void ask_later(struct tree *t, uar_err e)
{
	uar_runtime_note_failure(t->rt, e);
	t->again.fn = ask_again;
	t->lost = !rt_worth_retrying(e) || t->tries++ == UAR_LIMIT_LOAD_TRIES ||
		  uar_timer_set(t->rt->o.sched, &t->again, UAR_RETRY_US);
	if (!t->lost)
		return;
	uar_log(t->rt->o.log, UAR_LOG_ERROR, "budget.unreadable", { "run_id", t->root_run_id },
		{ "detail", uar_str_c(uar_err_text(e)) });
	tree_is_known(t);
}

static void rows_ready(struct uar_rows_query *q);

static void ask_rows(struct tree *t)
{
	struct uar_store *store = t->rt->o.store;
	uar_err e;

	t->query = (struct uar_rows_query){
		.owner = t->owner,
		.kind = UAR_ROW_ACCOUNT,
		.tag = t->root_run_id,
		.after = uar_str_c(t->after),
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = rows_ready,
	};
	e = store->ops->rows(store, &t->query);
	if (e)
		ask_later(t, e);
}

static void ask_again(struct uar_timer *timer)
{
	ask_rows(UAR_OWNER(timer, struct tree, again));
}

static void rows_ready(struct uar_rows_query *q)
{
	struct tree *t = UAR_OWNER(q, struct tree, query);
	uar_err e = q->err;
	bool more = q->more;

	for (size_t i = 0; i < q->row_count && !e; i++)
		e = learn_row(t, &q->rows[i]);
	if (!e && more)
		snprintf(t->after, sizeof t->after, "%.*s", UAR_FMT(q->next));
	uar_store_rows_fini(q);
	if (e)
		ask_later(t, e);
	else if (more)
		ask_rows(t);
	else
		tree_is_known(t);
}

/* The callbacks come from the loop: nothing is known when this returns. */
static void wait_for_rows(struct rt_account *a)
{
	struct tree *t = a->tree;

	a->waits = true;
	a->live->agg->budgets_unknown++;
	if (t->loading)
		return;
	t->loading = true;
	rt_op_begin(t->rt, &t->under_way, drop_tree);
	t->again.fn = ask_again;
	ask_rows(t);
}

/* --- runs come and go ------------------------------------------------------------------------ */

static uar_err join(struct live_run *r, struct uar_arena *arena)
{
	struct uar_runtime *rt = r->agg->rt;
	const struct uar_owner *owner = &r->agg->state.owner;
	uar_str run_id = uar_str_c(r->run_id), root;
	struct uar_payer payers[UAR_BUDGETS];
	struct uar_account now = uar_core_account_now(&r->state);
	struct rt_account *a;
	struct tree *t;
	size_t count;
	uar_err e = uar_budgets_read(r->state.what.budgets, arena, payers, &count);

	if (e)
		return e;
	root = count ? payers[0].run_id : run_id;
	t = find_tree(rt, owner, root);
	t = t ? t : make_tree(rt, owner, root);
	a = t ? need_account(t, run_id, payers, count) : NULL;
	if (!a && t)
		free_if_left(t);
	if (!a)
		return UAR_ENOMEM;
	set_account(a, &now);
	a->live = r;
	a->found = r->found.listed;
	a->unwritten = true;
	r->account = a;
	t->live++;
	if (!t->known)
		wait_for_rows(a);
	return UAR_OK;
}

void rt_account_join(struct live_run *r)
{
	struct uar_arena arena;
	uar_err e;

	if (r->account || (!r->state.what.budgets.n && !uar_run_has_budget(&r->state)))
		return;
	uar_arena_init(&arena, 0);
	e = join(r, &arena);
	uar_arena_fini(&arena);
	if (!e)
		return;
	uar_runtime_note_failure(r->agg->rt, e);
	rt_lose(r, e); /* it would spend what nobody counts */
}

void rt_account_share(struct uar_runtime *rt, const struct uar_owner *owner, uar_str budgets)
{
	struct uar_payer payers[UAR_BUDGETS];
	struct uar_arena arena;
	struct tree *t;
	size_t count = 0;

	if (!budgets.n)
		return;
	uar_arena_init(&arena, 0);
	if (uar_budgets_read(budgets, &arena, payers, &count))
		count = 0;
	for (size_t i = 0; i < count; i++) {
		struct live_run *r = rt_run_find(rt, owner, payers[i].run_id);

		if (r && r->committed)
			rt_account_join(r);
	}
	t = count ? find_tree(rt, owner, payers[0].run_id) : NULL;
	for (size_t i = 0; t && i < count; i++)
		(void)need_payer(t, &payers[i]);
	uar_arena_fini(&arena);
}

void rt_account_leave(struct live_run *r)
{
	struct rt_account *a = r->account;

	if (!a)
		return;
	r->account = NULL;
	a->live = NULL;
	r->agg->budgets_unknown -= a->waits;
	a->waits = false;
	a->tree->live--;
	free_if_left(a->tree);
}

/* --- decisions ------------------------------------------------------------------------------- */

/* A run with a budget that has started nothing keeps no row. */
static bool shares(const struct rt_account *a)
{
	return a && (a->found || !uar_list_empty(&a->tree->payers));
}

static int64_t waited_by(const struct rt_account *a, int64_t now_us)
{
	int64_t asked = a->is.parked_us;

	return a->is.waited_us + (asked && now_us > asked ? now_us - asked : 0);
}

const struct uar_shared *rt_account_facts(const struct live_run *r, int64_t now_us,
					  struct uar_shared *out)
{
	static const struct uar_spending all = { INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4,
						 INT64_MAX / 4 };
	const struct rt_account *a = r->account;

	if (!shares(a))
		return NULL;
	*out = (struct uar_shared){ .below = a->self ? a->self->below : nothing,
				    .count = a->count,
				    .unwritten = a->unwritten };
	if (a->tree->lost)
		out->below = all;
	for (size_t i = 0; i < a->count; i++) {
		const struct payer *p = a->payers[i];

		out->at[i] = p->is;
		out->at[i].spent = a->tree->lost ? all : p->below;
		uar_spending_move(&out->at[i].spent, p->own ? &p->own->is.spent : &nothing,
				  &a->is.spent);
		out->at[i].waited_us = p->own ? waited_by(p->own, now_us) : 0;
	}
	return out;
}

void rt_account_follow(struct live_run *r, const struct uar_run *state)
{
	struct uar_account now;

	if (!r->account)
		return;
	now = uar_core_account_now(state);
	set_account(r->account, &now);
}

void rt_account_written(struct live_run *r, bool durable)
{
	if (shares(r->account))
		r->account->unwritten = !durable;
}
