/* world.h - a world from a seed: clock, scheduler, store, model and workers for the
 * runtime.
 *
 * One thing happens at a time and the seed chooses which: a posted task, a
 * storage operation that has waited long enough, a piece of a model's answer, a
 * word of a worker outside, the next timer. A crash loses everything that the store had not
 * committed. */
#ifndef UAR_SIM_WORLD_H
#define UAR_SIM_WORLD_H

#include "base/rand.h"
#include "base/sched.h"
#include "event/entry.h"
#include "model/model.h"
#include "store/store.h"
#include "tool/tool.h"

enum { SIM_CALLS = 64, SIM_ONCE = 256, SIM_ITEMS = 2048, SIM_KEYS = 1024 };

struct sim_call; /* a model call under way */

/* An item that its worker was told is durable. */
struct sim_item {
	char run_id[UAR_UUID_TEXT + 1], id[UAR_UUID_TEXT + 1];
};

/* Workers outside the process; entries.c. */
struct sim_host {
	struct uar_entries base;
	struct uar_list slots; /* that wait for a place */
	unsigned places_taken, item_number;
	struct uar_entry_call *calls[SIM_CALLS];
	size_t call_count;
	struct sim_item items[SIM_ITEMS];
	size_t item_count;
	char once[SIM_ONCE][UAR_UUID_TEXT + 1]; /* runs that may be given out only once */
	size_t once_count;
	bool started_twice; /* one of them was not */
};

/* Tools; tools.c. */
struct sim_tools {
	struct uar_tools base;
	struct uar_tool_call *calls[SIM_CALLS];
	size_t call_count;
	struct {
		char key[2 * UAR_UUID_TEXT + 2];
		unsigned times;
	} done[SIM_KEYS]; /* how often each call was executed */
	size_t done_count;
};

struct sim_world {
	struct uar_sched sched;
	struct uar_clock clock;
	struct uar_rand_seeded seeded;
	struct uar_rand rand;
	int64_t now_us;
	struct uar_list tasks;
	struct uar_timers timers;
	struct uar_store *disk;	 /* what survives */
	struct uar_store store;	 /* what the runtime sees: the disk, later */
	struct uar_list appends; /* wait their turn in order */
	struct uar_list others;	 /* reads and the like, in any order */
	struct uar_list uploads; /* at the disk */
	struct uar_model model;
	struct sim_call *calls[SIM_CALLS];
	size_t call_count;
	struct sim_host host;
	struct sim_tools tools;
	bool eager; /* the model asks for tools whenever it can, and never fails */
	bool dead;  /* storage answers nothing but errors: the process is being killed */
	struct {
		bool on;
		void (*done)(void *ctx);
		void *ctx;
		struct uar_task task;
	} drain; /* the store's, as it was asked for */
	/* What is wrong with a read; NULL: nothing ever is. */
	uar_err (*read_fault)(struct sim_world *w, const struct uar_read *r);
	unsigned append_faults; /* chance in 1000 that an append or blob finds the disk full */
};

void sim_world_init(struct sim_world *w, uint64_t seed);
void sim_world_fini(struct sim_world *w);
uint64_t sim_below(struct sim_world *w, uint64_t n);
/* Lets one thing happen; false when nothing can happen any more. */
bool sim_step(struct sim_world *w);
/* Runs the task that was posted first; false when there is none. */
bool sim_run_task(struct sim_world *w);
/* Steps until nothing is left to do but timers further away than `us`. */
void sim_settle(struct sim_world *w, int64_t us);
/* From now on nothing becomes durable; what is under way ends in errors. Step
 * until quiet, destroy the runtime, then sim_reborn. */
void sim_kill(struct sim_world *w);
/* After a kill or a drain, once the runtime is destroyed: the store takes all again. */
void sim_reborn(struct sim_world *w);

/* storage.c */
void sim_store_init(struct sim_world *w);
bool sim_store_step(struct sim_world *w);
bool sim_store_pending(const struct sim_world *w);
void sim_store_fini(struct sim_world *w);
/* model.c */
void sim_model_init(struct sim_world *w);
bool sim_model_step(struct sim_world *w); /* one call says something */
/* entries.c */
void sim_entries_init(struct sim_world *w);
bool sim_entries_step(struct sim_world *w); /* one worker does something */
bool sim_entries_idle(const struct sim_world *w);
/* tools.c */
void sim_tools_init(struct sim_world *w);
bool sim_tools_step(struct sim_world *w); /* one tool says something, or ends */
/* How often the call was executed, in all lives. */
unsigned sim_tools_done(const struct sim_world *w, const char *run_id, uar_str call_id);

#endif
