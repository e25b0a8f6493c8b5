/* retain_test.c - ended runs beyond those that are kept go, the oldest first, however
 * often the process is killed meanwhile. */
#include "engine/engine.h"

#include "base/alloc.h"
#include "memory_store.h"
#include "stage.h"
#include "test.h"

enum { RUNS = 160 };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	struct uar_watch watch;
	const char *fixtures;
	uint64_t keep;
	char runs[RUNS][UAR_LIMIT_ID_BYTES + 1]; /* in order of creation */
	size_t count, gone;
	bool drained, short_of_memory;
};

/* Oldest first, each once. */
static void on_gone(void *ctx, const struct uar_run_row *row)
{
	struct world *w = ctx;

	CHECK(row->terminal && w->gone < w->count);
	CHECK_STR(row->run_id, w->runs[w->gone]);
	w->gone++;
}

static unsigned long asked, refused;

static int refuse(void *ctx)
{
	(void)ctx;
	return ++asked == refused;
}

/* A run has ended: from here on memory may be short. */
static void on_commit(void *ctx, const struct uar_commit *c)
{
	const struct world *w = ctx;

	if (w->short_of_memory && uar_status_terminal(c->run->status))
		uar_alloc_set_hook(refuse, NULL);
}

static void rise(struct world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .parts = &w->parts,
								     .store = w->store,
								     .scripted = w->model,
								     .fixtures_dir = w->fixtures,
								     .keep_runs = w->keep });
	w->watch = (struct uar_watch){ .fn = on_commit, .gone = on_gone, .ctx = w };
	uar_runtime_watch(w->rt, &w->watch);
}

static void open_world(struct world *w, uint64_t keep)
{
	*w = (struct world){ .keep = keep };
	uar_stage_open(&w->pump, &w->store, &w->model);
	rise(w);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
}

static void die(struct world *w, size_t keep)
{
	uar_stage_die(&w->pump, w->store, w->rt, keep, &w->model);
}

struct guest {
	struct uar_run_create op;
	bool done;
};

static void created(struct uar_run_create *op)
{
	UAR_OWNER(op, struct guest, op)->done = true;
}

static void create(struct world *w, const char *agent)
{
	struct guest g = { .op = { .owner = owner,
				   .agent_id = uar_str_c(agent),
				   .message = UAR_STR("hello"),
				   .done = created } };

	if (w->fixtures && strcmp(agent, "fixture") == 0)
		g.op.inputs = UAR_STR("{\"fixture\":\"slow\",\"pace\":\"recorded\"}");
	CHECK_INT(uar_runtime_create_run(w->rt, &g.op), UAR_OK);
	uar_pump_until(&w->pump, &g.done);
	CHECK_INT(g.op.err, UAR_OK);
	memcpy(w->runs[w->count++], g.op.run_id, sizeof g.op.run_id);
}

static void echo(struct world *w)
{
	create(w, "echo");
	uar_stage_settle(&w->pump);
}

struct look {
	struct uar_runs_query q;
	bool done;
};

static void looked(struct uar_runs_query *q)
{
	UAR_OWNER(q, struct look, q)->done = true;
}

static uar_err find(struct world *w, const char *run_id)
{
	struct look l = {
		.q = { .owner = owner, .run_id = uar_str_c(run_id), .limit = 1, .done = looked }
	};

	CHECK_INT(w->store->ops->runs(w->store, &l.q), UAR_OK);
	uar_pump_until(&w->pump, &l.done);
	uar_store_query_fini(&l.q);
	return l.q.err;
}

/* All but the newest `kept` are gone, for everybody who asks. */
static void check_kept(struct world *w, size_t kept)
{
	const struct uar_run_row *recent;

	for (size_t i = 0; i < w->count; i++) {
		bool there = i + kept >= w->count;

		CHECK_MSG(find(w, w->runs[i]) == (there ? UAR_OK : UAR_ENOTFOUND), "run %zu of %zu",
			  i, w->count);
		if (!there)
			CHECK(!uar_reader_recent_run(w->parts.reader, &owner, uar_str_c(w->runs[i]),
						     &recent));
	}
}

TEST(all_runs_are_kept_unless_somebody_says_otherwise, "RUN-48")
{
	struct world w;

	open_world(&w, 0);
	for (int i = 0; i < 20; i++)
		echo(&w);
	CHECK_INT(w.gone, 0);
	check_kept(&w, 20);
	close_world(&w);
}

TEST(the_oldest_ended_runs_beyond_the_cap_are_evicted, "RUN-48 RUN-52")
{
	struct uar_runtime_stats stats;
	struct world w;

	open_world(&w, 3);
	for (int i = 0; i < 3; i++)
		echo(&w);
	CHECK_INT(w.gone, 0);
	echo(&w);
	echo(&w);
	CHECK_INT(w.gone, 2);
	check_kept(&w, 3);
	uar_runtime_stats(w.rt, &stats);
	CHECK_INT(stats.evicted, 2);
	close_world(&w);
}

static void cancelled(struct uar_run_cancel_op *op)
{
	(void)op;
}

TEST(runs_that_end_while_the_oldest_are_looked_for_count, "RUN-48")
{
	for (int turns = 0; turns < 12; turns++) {
		struct world w;

		open_world(&w, 3);
		for (int i = 0; i < 5; i++) { /* the first looks find nothing */
			create(&w, "echo");
			for (int n = 0; n < turns; n++)
				uar_pump_turn(&w.pump);
		}
		uar_stage_settle(&w.pump);
		CHECK_INT(w.gone, 2);
		check_kept(&w, 3);
		close_world(&w);
	}
}

static void write_fixture(const char *dir)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/slow.jsonl", dir);
	f = fopen(path, "w");
	CHECK(f && fputs("{\"at_ms\":3600000,\"type\":\"ChatDelta\",\"data\":{\"text_delta\":"
			 "\"x\"}}\n",
			 f) >= 0);
	CHECK(f && fclose(f) == 0);
}

/* The first one takes an hour. */
TEST(a_run_that_goes_on_is_kept_however_old_it_is, "RUN-48")
{
	struct uar_run_cancel_op cancel = { .owner = owner, .done = cancelled };
	struct world w;

	open_world(&w, 2);
	die(&w, 0);
	w.fixtures = uar_test_dir();
	write_fixture(w.fixtures);
	rise(&w);
	create(&w, "fixture");
	w.gone = 1; /* what goes first is the second */
	for (int i = 0; i < 5; i++)
		echo(&w);
	CHECK_INT(w.gone, 4);
	CHECK_INT(find(&w, w.runs[0]), UAR_OK);
	/* Over at last, it is the one that ended last. */
	cancel.run_id = uar_str_c(w.runs[0]);
	CHECK_INT(uar_runtime_cancel_run(w.rt, &cancel), UAR_OK);
	uar_stage_settle(&w.pump);
	CHECK_INT(cancel.err, UAR_OK);
	CHECK_INT(w.gone, 5);
	CHECK_INT(find(&w, w.runs[0]), UAR_OK);
	CHECK_INT(find(&w, w.runs[4]), UAR_ENOTFOUND);
	close_world(&w);
}

TEST(a_lower_cap_is_kept_from_the_next_start_on, "RUN-48")
{
	struct world w;

	open_world(&w, 0);
	for (int i = 0; i < RUNS; i++)
		echo(&w);
	die(&w, 0);
	w.keep = 2;
	rise(&w);
	uar_stage_settle(&w.pump);
	CHECK_INT(w.gone, RUNS - 2); /* more than one append's worth */
	check_kept(&w, 2);
	close_world(&w);
}

/* Killed after every number of turns, with and without what was being committed. */
TEST(a_kill_in_the_middle_of_an_eviction_leaves_nothing_undone, "RUN-48 RUN-52")
{
	for (size_t keep = 0; keep < 2; keep++)
		for (int turns = 0; turns < 30; turns++) {
			struct world w;

			open_world(&w, 2);
			echo(&w);
			echo(&w);
			create(&w, "echo");
			for (int i = 0; i < turns; i++)
				uar_pump_turn(&w.pump);
			die(&w, keep);
			w.gone = w.gone ? 1 : find(&w, w.runs[0]) == UAR_ENOTFOUND;
			rise(&w);
			uar_stage_settle(&w.pump);
			check_kept(&w, 2);
			echo(&w);
			check_kept(&w, 2);
			close_world(&w);
		}
}

static void drained(void *ctx)
{
	((struct world *)ctx)->drained = true;
}

TEST(a_drain_or_an_end_in_the_middle_of_an_eviction_is_clean, "")
{
	for (int turns = 0; turns < 30; turns++) {
		struct world w;

		open_world(&w, 1);
		echo(&w);
		create(&w, "echo");
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		if (turns % 2) {
			uar_runtime_drain(w.rt, drained, &w);
			uar_pump_until(&w.pump, &w.drained);
		}
		close_world(&w);
	}
}

TEST(what_could_not_be_evicted_goes_with_the_next, "RUN-48")
{
	struct world w;

	open_world(&w, 2);
	echo(&w);
	echo(&w);
	create(&w, "echo");
	uar_store_memory_hold(w.store, true);
	while (uar_store_memory_waiting(w.store) == 0)
		uar_pump_turn(&w.pump);
	uar_store_memory_fail_next(w.store, UAR_EDISKFULL);
	uar_store_memory_hold(w.store, false);
	uar_stage_settle(&w.pump);
	echo(&w);
	CHECK_INT(w.gone, 2);
	check_kept(&w, 2);
	close_world(&w);
}

/* The nth allocation after the end of a run fails, for every n. */
TEST(what_memory_was_too_short_for_goes_with_the_next, "RUN-48")
{
	bool reached = true;

	for (refused = 1; reached; refused++) {
		struct world w;

		open_world(&w, 1);
		echo(&w);
		asked = 0;
		w.short_of_memory = true;
		echo(&w);
		uar_alloc_set_hook(NULL, NULL);
		w.short_of_memory = false;
		reached = asked >= refused;
		check_kept(&w, w.gone ? 1 : 2);
		echo(&w);
		check_kept(&w, 1);
		close_world(&w);
	}
	CHECK_MSG(refused > 5, "only %lu", refused);
}
