/* stage.h - what tests of the runtime stand on: a pump, the store in memory, the
 * scripted model, and a runtime over them that may go and come again.
 *
 *	uar_stage_open(&w->pump, &w->store, &w->model);
 *	w->rt = uar_stage_rise(&w->pump, (struct uar_runtime_options){ .store = w->store });
 *	...
 *	uar_stage_close(&w->pump, w->store, w->rt, w->model);
 *
 * What goes wrong fails the test that is running. */
#ifndef UAR_TEST_STAGE_H
#define UAR_TEST_STAGE_H

#include "pump.h"
#include "runtime/runtime.h"

/* Without `out_model` there is none. */
void uar_stage_open(struct uar_pump *p, struct uar_store **out_store, struct uar_model **out_model);

/* A runtime that has recovered; the scheduler and randomness are filled in. */
struct uar_runtime *uar_stage_rise(struct uar_pump *p, struct uar_runtime_options o);

/* The store first, as the server does it. */
void uar_stage_close(struct uar_pump *p, struct uar_store *store, struct uar_runtime *rt,
		     struct uar_model *model);

/* The process dies: of what waits for a commit the first `keep` are found again. The
 * model is a new one; rise again. */
void uar_stage_die(struct uar_pump *p, struct uar_store *store, struct uar_runtime *rt, size_t keep,
		   struct uar_model **model);

/* Turns until nothing is left to do. */
void uar_stage_settle(struct uar_pump *p);

#endif
