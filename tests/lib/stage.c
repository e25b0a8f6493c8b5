/* stage.c - a runtime and what is below it, for tests. */
#include "stage.h"

#include "store/memory/memory.h"
#include "test.h"

void uar_stage_open(struct uar_pump *p, struct uar_store **out_store, struct uar_model **out_model)
{
	struct uar_store_options so = { .sched = &p->sched };
	struct uar_model_scripted_options mo = { .sched = &p->sched };

	uar_pump_init(p);
	CHECK_INT(uar_store_memory_create(&so, out_store, NULL), UAR_OK);
	if (out_model)
		CHECK_INT(uar_model_scripted_create(&mo, out_model), UAR_OK);
}

struct uar_runtime *uar_stage_rise(struct uar_pump *p, struct uar_runtime_options o)
{
	struct uar_error error = { 0 };
	struct uar_runtime *rt = NULL;

	o.sched = &p->sched;
	o.rand = &uar_rand_system;
	CHECK_INT(uar_runtime_create(&o, &rt), UAR_OK);
	CHECK_MSG(uar_runtime_recover(rt, &error) == UAR_OK, "%s", error.text);
	return rt;
}

void uar_stage_close(struct uar_pump *p, struct uar_store *store, struct uar_runtime *rt,
		     struct uar_model *model)
{
	uar_store_destroy(store);
	uar_runtime_destroy(rt);
	uar_model_destroy(model);
	uar_pump_fini(p);
}

void uar_stage_die(struct uar_pump *p, struct uar_store *store, struct uar_runtime *rt, size_t keep,
		   struct uar_model **model)
{
	struct uar_model_scripted_options mo = { .sched = &p->sched };

	uar_store_memory_crash(store, keep);
	uar_runtime_destroy(rt);
	uar_model_destroy(*model);
	CHECK_INT(uar_model_scripted_create(&mo, model), UAR_OK);
}

void uar_stage_settle(struct uar_pump *p)
{
	while (uar_pump_turn(p))
		;
}
