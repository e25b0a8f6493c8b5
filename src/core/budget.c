/* budget.c - budgets: which calls one refuses, and the facts of it.
 *
 * A call is compared with the budget of its run and with those of the runs that started it, before
 * it is made. It counts at the least: what its prompt costs. */
#include "core/budget.h"

#include "core/emit.h"
#include "core/route.h"

enum { LOW_PART = 5 }; /* a fifth of a budget is little */

/* --- what was used --------------------------------------------------------------------------- */

struct uar_spending uar_run_spending(const struct uar_run *r)
{
	const struct uar_run_call *call = &r->call;
	struct uar_spending s = { call->nanos, call->input_tokens + call->output_tokens,
				  call->calls, uar_run_rare(r)->tools.calls };

	if (call->open) {
		s.nanos += uar_price_of(&uar_run_rare(r)->route.price, call->prompt_tokens, 0, 0);
		s.tokens += call->prompt_tokens;
		s.model_calls++;
	}
	return s;
}

bool uar_spending_eq(const struct uar_spending *a, const struct uar_spending *b)
{
	return a->nanos == b->nanos && a->tokens == b->tokens && a->model_calls == b->model_calls &&
	       a->tool_calls == b->tool_calls;
}

void uar_spending_move(struct uar_spending *sum, const struct uar_spending *add,
		       const struct uar_spending *sub)
{
	sum->nanos += add->nanos - sub->nanos;
	sum->tokens += add->tokens - sub->tokens;
	sum->model_calls += add->model_calls - sub->model_calls;
	sum->tool_calls += add->tool_calls - sub->tool_calls;
}

/* --- whose budgets bear a turn --------------------------------------------------------------- */

bool uar_run_has_budget(const struct uar_run *r)
{
	const struct uar_budget *b = &uar_run_rare(r)->route.budget;

	return b->nanos || b->tokens || b->model_calls || b->tool_calls || b->time_us;
}

uar_err uar_budgets_read(uar_str json, struct uar_arena *a, struct uar_payer out[UAR_BUDGETS],
			 size_t *out_count)
{
	const struct uar_json *list = NULL;
	uar_err e = json.n ? uar_json_parse(json, NULL, a, &list, NULL) : UAR_OK;

	*out_count = 0;
	if (e)
		return e;
	for (const struct uar_json *j = uar_json_first(list); j; j = j->next) {
		if (*out_count == UAR_BUDGETS)
			return UAR_ETOOBIG;
		out[(*out_count)++] = (struct uar_payer){
			.run_id = uar_json_text(j, "run_id"),
			.budget = uar_budget_read(uar_json_get(j, UAR_STR("budget"))),
			.started_us = uar_json_int(uar_json_get(j, UAR_STR("started_us")), 0),
		};
	}
	return UAR_OK;
}

static void put_payer(struct uar_jw *w, uar_str run_id, int64_t started_us,
		      const struct uar_budget *b)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "run_id", run_id);
	uar_jw_int(w, "started_us", started_us);
	uar_budget_write(w, "budget", b);
	uar_jw_close(w);
}

static uar_err write_payers(const struct uar_run *giver, const struct uar_payer *payers, size_t n,
			    struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < n; i++)
		put_payer(&w, payers[i].run_id, payers[i].started_us, &payers[i].budget);
	if (uar_run_has_budget(giver))
		put_payer(&w, giver->id.run_id, giver->at.started_us,
			  &uar_run_rare(giver)->route.budget);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

uar_err uar_budgets_of(const struct uar_run *giver, struct uar_arena *a, uar_str *out)
{
	struct uar_payer payers[UAR_BUDGETS];
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	size_t n = 0;
	uar_err e;

	*out = UAR_STR_NONE;
	if (!giver || (!giver->what.budgets.n && !uar_run_has_budget(giver)))
		return UAR_OK;
	e = uar_budgets_read(giver->what.budgets, a, payers, &n);
	if (!e && n == UAR_BUDGETS && uar_run_has_budget(giver))
		e = UAR_ETOOBIG;
	if (!e)
		e = write_payers(giver, payers, n, &text);
	if (!e)
		*out = uar_arena_str(a, uar_buf_str(&text));
	uar_buf_fini(&text);
	return !e && !out->p ? UAR_ENOMEM : e;
}

/* --- what a call would exceed ---------------------------------------------------------------- */

struct quota {
	const char *name, *unit;
	uar_str run_id;		  /* whose budget it is of; empty: of the run's own */
	double limit, used, next; /* next: what the call would add at the least */
};

enum { QUOTAS = 5, ALL_QUOTAS = QUOTAS * (1 + UAR_BUDGETS) };

/* A budget, and what counts against it. */
struct bill {
	uar_str run_id;
	const struct uar_budget *budget;
	struct uar_spending used, next;
	int64_t spent_us;
};

static double usd(int64_t nanos)
{
	return (double)nanos / 1e9;
}

static size_t add_quotas(const struct bill *b, struct quota *out)
{
	const struct uar_budget *most = b->budget;
	const struct uar_spending *used = &b->used, *next = &b->next;
	const struct quota all[QUOTAS] = {
		{ "run.money", "usd", b->run_id, usd(most->nanos), usd(used->nanos),
		  usd(next->nanos) },
		{ "run.tokens", "tokens", b->run_id, (double)most->tokens, (double)used->tokens,
		  (double)next->tokens },
		{ "run.model_calls", "calls", b->run_id, (double)most->model_calls,
		  (double)used->model_calls, (double)next->model_calls },
		{ "run.tool_calls", "calls", b->run_id, (double)most->tool_calls,
		  (double)used->tool_calls, (double)next->tool_calls },
		{ "run.time", "seconds", b->run_id, (double)most->time_us / 1e6,
		  (double)b->spent_us / 1e6, 0 },
	};
	size_t n = 0;

	for (size_t i = 0; i < QUOTAS; i++)
		if (all[i].limit > 0)
			out[n++] = all[i];
	return n;
}

/* The call that a command announces: of a model, or of a tool (p NULL). */
struct call {
	const struct uar_run *r;
	const struct uar_prepared *p;
	const struct uar_shared *shared; /* NULL: nothing is */
	int64_t now_us;			 /* 0: time does not count */
};

static struct call call_of(const struct uar_run *r, const struct uar_command *c)
{
	bool tool = c->kind == UAR_CMD_TOOL_BEGIN;

	return (struct call){ .r = r,
			      .p = tool ? NULL : &c->prepared,
			      .shared = c->shared,
			      .now_us = tool ? c->begin.now_us : c->prepared.now_us };
}

static struct uar_spending added_by(const struct call *c)
{
	int64_t tokens = c->p ? (c->p->prompt_bytes + 3) / 4 : 0;

	if (!c->p)
		return (struct uar_spending){ .tool_calls = 1 };
	return (struct uar_spending){
		.nanos = uar_price_of(uar_core_price_now(c->r, c->p), tokens, 0, 0),
		.tokens = tokens,
		.model_calls = 1,
	};
}

static int64_t elapsed(const struct call *c, int64_t started_us, int64_t waited_us)
{
	return started_us && c->now_us > started_us ? c->now_us - started_us - waited_us : 0;
}

static size_t own_quotas(const struct call *c, struct quota *out)
{
	const struct uar_run_route *route = &uar_run_rare(c->r)->route;
	static const struct uar_spending none;
	struct bill b = {
		.budget = c->p && !route->count ? &c->p->budget : &route->budget,
		.used = uar_run_spending(c->r),
		.next = added_by(c),
		.spent_us = elapsed(c, c->r->at.started_us, uar_run_rare(c->r)->actions.waited_us),
	};

	if (c->shared)
		uar_spending_move(&b.used, &c->shared->below, &none);
	return add_quotas(&b, out);
}

static size_t list_quotas(const struct call *c, struct quota out[ALL_QUOTAS])
{
	struct uar_spending own = uar_run_spending(c->r);
	static const struct uar_spending none;
	size_t n = own_quotas(c, out);

	for (size_t i = 0; c->shared && i < c->shared->count; i++) {
		const struct uar_payer *payer = &c->shared->at[i];
		struct bill b = {
			.run_id = payer->run_id,
			.budget = &payer->budget,
			.used = payer->spent,
			.next = added_by(c),
			.spent_us = elapsed(c, payer->started_us, payer->waited_us),
		};

		uar_spending_move(&b.used, &own, &none);
		n += add_quotas(&b, out + n);
	}
	return n;
}

/* The first one that the call would exceed; NULL: none. */
static const struct quota *exceeded(const struct quota *q, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (q[i].used + q[i].next > q[i].limit)
			return &q[i];
	return NULL;
}

bool uar_core_over_budget(const struct uar_run *r, const struct uar_command *c)
{
	struct call call = call_of(r, c);
	struct quota q[ALL_QUOTAS];

	return exceeded(q, list_quotas(&call, q)) != NULL;
}

bool uar_run_may_spend(const struct uar_run *r, const struct uar_prepared *p)
{
	struct call call = { .r = r, .p = p, .now_us = p->now_us };
	struct quota q[ALL_QUOTAS];

	return !exceeded(q, list_quotas(&call, q));
}

/* --- facts ----------------------------------------------------------------------------------- */

static uar_str why_blocked(struct emit *e, const struct quota *over)
{
	bool own = !over->run_id.n;

	return uar_arena_printf(
		e->env->arena,
		"the next call would exceed the budget of the run%s%.*s%s: %s %g of "
		"%g %s are used",
		own ? "" : " ", UAR_FMT(over->run_id), own ? "" : ", which started this one",
		over->name, over->used, over->limit, over->unit);
}

struct uar_failure uar_core_quota_blocked(struct emit *e, const struct uar_command *c)
{
	struct call call = call_of(e->r, c);
	struct quota q[ALL_QUOTAS];
	const struct quota *over = exceeded(q, list_quotas(&call, q));
	struct uar_failure f = { UAR_STR("BUDGET_EXCEEDED"),
				 UAR_STR("the budget of the run is spent"), UAR_STR("limit"),
				 false };
	struct uar_jw *w;

	if (!over)
		return f;
	w = uar_emit_begin(e);
	uar_jw_cstr(w, "quota_name", over->name);
	uar_jw_double(w, "limit", over->limit);
	uar_jw_double(w, "used", over->used);
	uar_jw_cstr(w, "unit", over->unit);
	uar_jw_cstr(w, "blocked_operation", call.p ? "model_call" : "tool_call");
	if (over->run_id.n)
		uar_jw_str(w, "budget_run_id", over->run_id);
	uar_emit(e, UAR_EV_QUOTA_BLOCKED, EMIT_RUN);
	f.message = why_blocked(e, over);
	if (!f.message.p)
		e->err = UAR_ENOMEM;
	return f;
}

void uar_core_quota_low(struct emit *e)
{
	struct call call = { .r = e->r, .shared = e->shared };
	struct quota q[QUOTAS];
	size_t n = uar_run_rare(e->r)->route.low ? 0 : own_quotas(&call, q);
	struct uar_jw *w;

	for (size_t i = 0; i < n; i++) {
		if (q[i].used < q[i].limit - q[i].limit / LOW_PART)
			continue;
		w = uar_emit_begin(e);
		uar_jw_cstr(w, "quota_name", q[i].name);
		uar_jw_double(w, "remaining", q[i].used < q[i].limit ? q[i].limit - q[i].used : 0);
		uar_jw_double(w, "limit", q[i].limit);
		uar_jw_cstr(w, "unit", q[i].unit);
		uar_jw_double(w, "threshold", q[i].limit / LOW_PART);
		uar_emit(e, UAR_EV_QUOTA_LOW, EMIT_RUN);
		return;
	}
}

struct uar_account uar_core_account_now(const struct uar_run *r)
{
	const struct uar_run_actions *asked = &uar_run_rare(r)->actions;

	return (struct uar_account){ uar_run_spending(r), asked->waited_us, asked->parked_us };
}

static bool same(const struct uar_account *a, const struct uar_account *b)
{
	return uar_spending_eq(&a->spent, &b->spent) && a->waited_us == b->waited_us &&
	       a->parked_us == b->parked_us;
}

/* `payers`: the runs whose budgets bear it. */
static void put_account(struct emit *e, const struct uar_run *r, const struct uar_payer *payers,
			size_t count)
{
	struct uar_account now = uar_core_account_now(r);
	struct uar_row_account row = {
		.row = { .kind = UAR_ROW_ACCOUNT,
			 .id = r->id.run_id,
			 .session_id = e->s->session_id,
			 .parent = count ? payers[count - 1].run_id : UAR_STR_NONE,
			 .tag = count ? payers[0].run_id : r->id.run_id,
			 .status = UAR_STR("kept"),
			 .created_us = r->at.created_us,
			 .updated_us = e->env->now_us },
		.budgets = r->what.budgets,
		.nanos = now.spent.nanos,
		.tokens = now.spent.tokens,
		.model_calls = now.spent.model_calls,
		.tool_calls = now.spent.tool_calls,
		.waited_us = now.waited_us,
		.parked_us = now.parked_us,
	};

	uar_emit_row(e, &row);
}

void uar_core_account(struct emit *e, const struct uar_account *before)
{
	const struct uar_shared *shared = e->shared;
	struct uar_account now = uar_core_account_now(e->r);

	if (!e->err && (shared->unwritten || !same(&now, before)))
		put_account(e, e->r, shared->at, shared->count);
}

void uar_core_open_account(struct emit *e, const struct uar_run *giver)
{
	struct uar_payer payers[UAR_BUDGETS];
	size_t count = 0;

	if (!giver->what.budgets.n && !uar_run_has_budget(giver))
		return;
	if (!e->err)
		e->err = uar_budgets_read(giver->what.budgets, e->env->arena, payers, &count);
	if (!e->err)
		put_account(e, giver, payers, count);
}
