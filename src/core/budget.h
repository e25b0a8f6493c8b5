/* budget.h - what a run has used, and whose budgets bear it.
 *
 * What a run starts counts against its budget, on all levels. The turn of a child names the runs
 * whose budgets bear it, the one at the root first (`budgets` of the options of turn.submitted):
 *
 *	[{"run_id":"R","started_us":1,"budget":{"model_calls":9}}]
 *
 * Each of them writes what it has used into a row beside its log (UAR_ROW_ACCOUNT), in the append
 * of the fact. The shell adds the rows up and supplies the sums; the decision is made here. */
#ifndef UAR_CORE_BUDGET_H
#define UAR_CORE_BUDGET_H

#include "core/core.h"

enum { UAR_BUDGETS = UAR_LIMIT_BUDGETS };

/* A call that is open counts as far as it is known: its prompt. */
struct uar_spending {
	int64_t nanos, tokens, model_calls, tool_calls;
};
struct uar_spending uar_run_spending(const struct uar_run *r);
bool uar_spending_eq(const struct uar_spending *a, const struct uar_spending *b);
/* *sum += add - sub */
void uar_spending_move(struct uar_spending *sum, const struct uar_spending *add,
		       const struct uar_spending *sub);

/* What the row of a run says. */
struct uar_account {
	struct uar_spending spent;
	int64_t waited_us; /* that people were asked by it */
	int64_t parked_us; /* since when somebody is asked; 0: nobody is */
};
struct uar_account uar_core_account_now(const struct uar_run *r);

/* A run whose budget bears another one. */
struct uar_payer {
	uar_str run_id;
	struct uar_budget budget;
	int64_t started_us;
	/* Facts of the shell: */
	struct uar_spending spent; /* by it and all that it started, but the run that is decided
				    * about */
	int64_t waited_us;	   /* that people were asked by it */
};

/* What the shell knows about a run that shares a budget. */
struct uar_shared {
	struct uar_spending below; /* used by what the run has started, on all levels */
	struct uar_payer at[UAR_BUDGETS];
	size_t count;
	bool unwritten; /* its row is not what the run has used */
};

/* Does the run have a budget of its own? Known from its first model call on. */
bool uar_run_has_budget(const struct uar_run *r);
/* Reads what a turn names. Strings are in the arena. */
UAR_MUST_CHECK uar_err uar_budgets_read(uar_str json, struct uar_arena *a,
					struct uar_payer out[UAR_BUDGETS], size_t *out_count);
/* What a turn names that the run gives: whose budgets bear the run, and its own. Empty: none.
 * UAR_ETOOBIG: there would be more than UAR_BUDGETS. */
UAR_MUST_CHECK uar_err uar_budgets_of(const struct uar_run *giver, struct uar_arena *a,
				      uar_str *out);

#endif
