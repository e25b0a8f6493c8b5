/* stage.c - a runtime and what is below it, for tests. */
#include "stage.h"

#include "memory_store.h"
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

uar_err uar_stage_create(const struct uar_stage_options *o, struct uar_runtime **out)
{
	struct uar_runtime_options engine = { .sched = o->sched,
					      .store = o->store,
					      .rand = o->rand,
					      .seal = o->seal,
					      .log = o->log,
					      .run_timeout_us = o->run_timeout_us,
					      .keep_runs = o->keep_runs,
					      .park = o->park,
					      .exhausted = o->exhausted,
					      .exhausted_ctx = o->exhausted_ctx };
	struct uar_workers_options work = { .scripted = o->scripted,
					    .provider = o->provider,
					    .provider_model = o->provider_model,
					    .entries = o->entries,
					    .agents = o->agents,
					    .tools = o->tools,
					    .fixtures_dir = o->fixtures_dir,
					    .patience = { .idle_us = o->model_idle_us },
					    .export_progress = o->export_progress };
	struct uar_stage_parts parts = { NULL, NULL, NULL };
	uar_err e = uar_runtime_create(&engine, out);

	if (!e)
		e = uar_workers_create(*out, &work, &parts.workers);
	if (!e)
		e = uar_reader_create(*out, &parts.reader);
	if (!e)
		e = uar_mailer_create(*out, o->peers, o->pushes, &parts.mailer);
	if (o->parts)
		*o->parts = parts;
	return e;
}

struct uar_runtime *uar_stage_rise(struct uar_pump *p, struct uar_stage_options o)
{
	struct uar_error error = { 0 };
	struct uar_runtime *rt = NULL;

	o.sched = &p->sched;
	o.rand = &uar_rand_system;
	CHECK_INT(uar_stage_create(&o, &rt), UAR_OK);
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
