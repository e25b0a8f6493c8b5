/* stage.h - what tests of the runtime stand on: a pump, the store in memory, the
 * scripted model, and a runtime over them that may go and come again.
 *
 *	uar_stage_open(&w->pump, &w->store, &w->model);
 *	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .store = w->store });
 *	...
 *	uar_stage_close(&w->pump, w->store, w->rt, w->model);
 *
 * What goes wrong fails the test that is running. */
#ifndef UAR_TEST_STAGE_H
#define UAR_TEST_STAGE_H

#include "bus/bus.h"
#include "engine/part.h"
#include "mail/mail.h"
#include "model/model.h"
#include "pump.h"
#include "read/stream.h"
#include "store/store.h"
#include "work/work.h"

/* What is attached to the engine. */
struct uar_stage_parts {
	struct uar_workers *workers;
	struct uar_reader *reader;
	struct uar_mailer *mailer;
};

/* The options of the engine and of all that is attached to it. */
struct uar_stage_options {
	struct uar_sched *sched;
	struct uar_store *store;
	const struct uar_rand *rand;
	const struct uar_seal_key *seal;
	const struct uar_log *log;
	struct uar_model *scripted, *provider;
	const char *provider_model;
	struct uar_entries *entries;
	struct uar_agents *agents;
	struct uar_peers *peers;
	struct uar_pushes *pushes;
	struct uar_tools *tools;
	const char *fixtures_dir;
	int64_t model_idle_us, run_timeout_us;
	bool export_progress;
	bool park; /* sessions in which all waits leave memory */
	uint64_t keep_runs;
	void (*exhausted)(void *ctx);
	void *exhausted_ctx;
	struct uar_stage_parts *parts; /* filled; NULL: nobody asks */
};
/* On an error *out may be half-made; uar_runtime_destroy takes it. */
uar_err uar_stage_create(const struct uar_stage_options *o, struct uar_runtime **out);

/* Without `out_model` there is none. */
void uar_stage_open(struct uar_pump *p, struct uar_store **out_store, struct uar_model **out_model);

/* A runtime that has recovered; the scheduler and randomness are filled in. */
struct uar_runtime *uar_stage_rise(struct uar_pump *p, struct uar_stage_options o);

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
