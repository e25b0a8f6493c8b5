/* shortage_test.c - while memory is short the runtime says so; it recovers or gives up. */
#include "engine/engine.h"

#include "base/alloc.h"
#include "leap.h"
#include "stage.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct leap leap;
	size_t exhausted;
	struct uar_run_create op;
	bool created;
};

static int refuse_all(void *ctx)
{
	(void)ctx;
	return 1;
}

static void on_exhausted(void *ctx)
{
	((struct world *)ctx)->exhausted++;
}

static void open_world(struct world *w)
{
	*w = (struct world){ .exhausted = 0 };
	uar_stage_open(&w->pump, &w->store, &w->model);
	leap_init(&w->leap);
	w->pump.sched.clock = &w->leap.clock;
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .store = w->store,
								     .scripted = w->model,
								     .exhausted = on_exhausted,
								     .exhausted_ctx = w });
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
}

/* Second by second, with some turns in each. */
static void pass_seconds(struct world *w, int n)
{
	for (int i = 0; i < n; i++) {
		leap_ahead(&w->leap, &w->pump.sched, 1000000);
		for (int turn = 0; turn < 20; turn++)
			uar_pump_turn(&w->pump);
	}
}

static void on_created(struct uar_run_create *op)
{
	struct world *w = UAR_OWNER(op, struct world, op);

	CHECK_INT(op->err, UAR_OK);
	w->created = true;
	uar_alloc_set_hook(refuse_all, NULL);
}

/* Memory ends with the answer, before the run has. */
static void create_run(struct world *w)
{
	static char text[12000];

	memset(text, 'x', sizeof text);
	leap_ahead(&w->leap, &w->pump.sched, 0); /* timers have their memory */
	w->op = (struct uar_run_create){ .owner = owner,
					 .agent_id = UAR_STR("echo"),
					 .message = uar_str_n(text, sizeof text),
					 .done = on_created };
	REQUIRE(uar_runtime_create_run(w->rt, &w->op) == UAR_OK);
	uar_pump_until(&w->pump, &w->created);
}

static uint64_t ended(const struct world *w)
{
	struct uar_runtime_stats st;

	uar_runtime_stats(w->rt, &st);
	return st.completed + st.failed;
}

TEST(memory_that_comes_back_ends_the_shortage, "")
{
	struct world w;

	open_world(&w);
	uar_runtime_note_failure(w.rt, UAR_EBUSY);
	CHECK(!uar_runtime_short_of_memory(w.rt));
	uar_runtime_note_failure(w.rt, UAR_ENOMEM);
	CHECK(uar_runtime_short_of_memory(w.rt));
	pass_seconds(&w, 1);
	CHECK(uar_runtime_short_of_memory(w.rt)); /* it has just failed */
	pass_seconds(&w, 4);
	CHECK(!uar_runtime_short_of_memory(w.rt));
	pass_seconds(&w, 60);
	CHECK_INT(w.exhausted, 0);
	close_world(&w);
}

TEST(failures_that_go_on_keep_the_shortage_up, "")
{
	struct world w;

	open_world(&w);
	for (int i = 0; i < 10; i++) {
		uar_runtime_note_failure(w.rt, UAR_ENOMEM);
		pass_seconds(&w, 1);
		CHECK(uar_runtime_short_of_memory(w.rt));
	}
	CHECK_INT(w.exhausted, 0);
	pass_seconds(&w, 4);
	CHECK(!uar_runtime_short_of_memory(w.rt));
	close_world(&w);
}

TEST(a_run_without_memory_goes_on_or_the_process_is_told_to_end, "")
{
	for (int comes_back = 0; comes_back < 2; comes_back++) {
		struct world w;

		open_world(&w);
		create_run(&w);
		pass_seconds(&w, 5);
		CHECK(uar_runtime_short_of_memory(w.rt));
		CHECK_INT(ended(&w), 0);
		CHECK_INT(w.exhausted, 0);
		if (comes_back)
			uar_alloc_set_hook(NULL, NULL);
		pass_seconds(&w, 15);
		CHECK_INT(w.exhausted, !comes_back);
		CHECK_INT(ended(&w), comes_back);
		uar_alloc_set_hook(NULL, NULL);
		close_world(&w);
	}
}
