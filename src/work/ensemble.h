/* ensemble.h - a route of several candidates and a ranker: each candidate answers unseen, the
 * ranker is told their answers and names one, and that one is the answer of the run. */
#ifndef UAR_WORK_ENSEMBLE_H
#define UAR_WORK_ENSEMBLE_H

#include "work/llm_int.h"

/* Puts the answers of the candidates behind the message, then `done`. */
UAR_MUST_CHECK uar_err rt_ensemble_load(struct llm *w, void (*done)(struct llm *w, uar_err e));
/* Which of `count` answers a ranker names, from 1 on; 0: none. */
size_t rt_ensemble_named(uar_str said, size_t count);
/* The place in the chain of the n-th answer, from 1 on. */
size_t rt_ensemble_place(const struct uar_run_route *route, size_t n);
size_t rt_ensemble_answers(const struct uar_run_route *route);

#endif
