/* row_test.c - creates that are at the store together: in one conversation as many as in many,
 * at the same price, and what becomes of them when one of them fails. */
#include "engine/engine_int.h"

#include <time.h>

#include "facts.h"
#include "stage.h"
#include "engine/limits.h"
#include "memory_store.h"
#include "test.h"

enum { TOGETHER = 16, MANY = 20000, TENTH = MANY / 10 };

static const struct uar_owner ann = { UAR_STR("t"), UAR_STR("w"), UAR_STR("ann") };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
};

/* A model that takes its time keeps the first run of a conversation at work. */
static void open_world(struct world *w, int64_t token_us)
{
	struct uar_model_scripted_options mo = { .sched = &w->pump.sched, .token_us = token_us };

	*w = (struct world){ .rt = NULL };
	uar_stage_open(&w->pump, &w->store, NULL);
	CHECK_INT(uar_model_scripted_create(&mo, &w->model), UAR_OK);
	w->rt = uar_stage_rise(
		&w->pump, (struct uar_stage_options){ .store = w->store, .scripted = w->model });
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
}

struct guest {
	struct uar_run_create op;
	bool done;
};

static void created(struct uar_run_create *op)
{
	UAR_OWNER(op, struct guest, op)->done = true;
}

static void ask(struct world *w, struct guest *g, const char *talk, const char *key)
{
	*g = (struct guest){ .op = { .owner = ann,
				     .agent_id = UAR_STR("demo"),
				     .message = UAR_STR("hello"),
				     .conversation_id = uar_str_c(talk),
				     .idempotency_key = uar_str_c(key),
				     .fingerprint = uar_str_c(key),
				     .done = created } };
	CHECK_INT(uar_runtime_create_run(w->rt, &g->op), UAR_OK);
}

TEST(creates_of_one_conversation_share_a_commit, "")
{
	static struct guest g[UAR_LIMIT_SESSION_BATCHES + 1], first;
	struct world w;

	open_world(&w, 1000000000);
	ask(&w, &first, "c", "");
	uar_stage_settle(&w.pump);
	uar_store_memory_hold(w.store, true);
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		ask(&w, &g[i], "c", "");
	uar_stage_settle(&w.pump);
	CHECK_INT(uar_store_memory_waiting(w.store), UAR_LIMIT_SESSION_BATCHES);
	uar_store_memory_hold(w.store, false);
	uar_stage_settle(&w.pump);
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		CHECK(g[i].done && !g[i].op.err);
	close_world(&w);
}

/* All runs there are, newest first, but for the oldest: those of `g` without the one. */
static void check_order(struct world *w, const struct guest *g, size_t n, size_t without)
{
	struct uar_runs_query q = { .owner = ann, .limit = 100 };
	size_t row = n - 1;

	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	REQUIRE(q.row_count == n);
	for (size_t i = 0; i < n; i++)
		if (i != without)
			CHECK_STR(q.rows[--row].run_id, g[i].op.run_id);
	uar_store_query_fini(&q);
}

/* The one in the middle finds that its key is taken: those behind it were decided upon it. */
TEST(a_create_that_fails_leaves_those_behind_it_alone, "RUN-13")
{
	static struct guest g[7], taken;
	struct world w;

	open_world(&w, 0);
	ask(&w, &taken, "other", "k");
	uar_stage_settle(&w.pump);
	uar_store_memory_hold(w.store, true);
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		ask(&w, &g[i], "c", i == 3 ? "k" : "");
	uar_stage_settle(&w.pump);
	uar_store_memory_hold(w.store, false);
	uar_stage_settle(&w.pump);
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		CHECK_MSG(g[i].done && !g[i].op.err, "%zu: %s", i, uar_err_name(g[i].op.err));
	CHECK_STR(uar_str_c(g[3].op.run_id), taken.op.run_id);
	check_order(&w, g, ARRAY_LEN(g), 3);
	close_world(&w);
}

static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* What `n` creates cost; `one`: all into the same conversation. */
static int64_t cost_of(struct world *w, size_t n, bool one)
{
	static struct guest g[TOGETHER];
	int64_t start = cpu_us();

	for (size_t i = 0; i < n; i += TOGETHER) {
		for (size_t k = 0; k < TOGETHER; k++)
			ask(w, &g[k], one ? "c" : "", "");
		uar_stage_settle(&w->pump);
	}
	return cpu_us() - start;
}

TEST(the_twenty_thousandth_create_costs_what_the_first_did, "")
{
	int64_t first, last, one, many;
	struct world w;

	open_world(&w, INT64_C(3600000000));
	first = cost_of(&w, TENTH, true);
	one = first + cost_of(&w, MANY - 2 * TENTH, true);
	last = cost_of(&w, TENTH, true);
	one += last;
	close_world(&w);
	open_world(&w, INT64_C(3600000000));
	many = cost_of(&w, MANY, false);
	close_world(&w);
	printf("  first tenth %lld us, last tenth %lld us; one %lld us, many %lld us\n",
	       (long long)first, (long long)last, (long long)one, (long long)many);
	CHECK(last < 2 * first);
	CHECK(one < 2 * many); /* it also tells the queue of the conversation */
}
