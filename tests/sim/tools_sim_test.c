/* tools_sim_test.c - one run whose model uses tools, and a process that dies after every
 * single step of it, and once more on the way. Whatever is asked is answered. */
#include "stage.h"
#include "test.h"

#include "base/alloc.h"
#include "sim/checker.h"

enum { SEEDS = 6, STEPS = 100000 };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct life {
	struct sim_world w;
	struct sim_checker k;
	struct uar_runtime *rt;
	struct uar_run_create op;
	struct uar_run_answer_op answer;
	bool created, answering;
	enum uar_verdict verdict; /* of the next answer */
	char action_id[UAR_ACTION_TEXT + 1];
};

static uint64_t happened[UAR_EV_COUNT];

static void begin(struct life *l)
{
	struct uar_stage_options o = { .sched = &l->w.sched,
				       .store = &l->w.store,
				       .rand = &l->w.rand,
				       .scripted = &l->w.model,
				       .provider = &l->w.model,
				       .provider_model = "sim",
				       .tools = &l->w.tools.base };

	CHECK_INT(uar_stage_create(&o, &l->rt), UAR_OK);
	CHECK_INT(uar_runtime_recover(l->rt, NULL), UAR_OK);
}

static void created(struct uar_run_create *op)
{
	struct life *l = UAR_OWNER(op, struct life, op);

	CHECK_INT(op->err, UAR_OK);
	l->created = true;
	sim_checker_created(&l->k, op->run_id, "");
}

static void answered(struct uar_run_answer_op *op)
{
	UAR_OWNER(op, struct life, answer)->answering = false;
}

static void choose_question(void *ctx, const struct uar_run *run)
{
	const struct uar_run_actions *a = &uar_run_rare(run)->actions;

	if (a->open_count)
		uar_action_id(run->id.run_id, a->open[0].number, ctx);
}

static void answer(struct life *l)
{
	l->action_id[0] = 0;
	uar_runtime_each_waiting(l->rt, &owner, choose_question, l->action_id);
	if (!l->action_id[0] || l->answering)
		return;
	l->answer = (struct uar_run_answer_op){ .owner = owner,
						.action_id = uar_str_c(l->action_id),
						.decision = uar_str_c(
							uar_verdict_info[l->verdict].text),
						.done = answered };
	l->verdict = l->verdict == UAR_VERDICT_ALLOW ? UAR_VERDICT_DENY : UAR_VERDICT_ALLOW;
	l->answering = uar_runtime_answer(l->rt, &l->answer) == UAR_OK;
}

static void die_and_rise(struct life *l)
{
	sim_kill(&l->w);
	while (l->answering || sim_store_pending(&l->w) || !uar_list_empty(&l->w.tasks))
		sim_step(&l->w);
	uar_runtime_destroy(l->rt);
	sim_reborn(&l->w);
	begin(l);
	sim_checker_check(&l->k, false);
}

static bool is_over(const struct life *l)
{
	struct uar_runtime_stats stats;

	uar_runtime_stats(l->rt, &stats);
	return !stats.live_runs && uar_runtime_ready(l->rt);
}

/* Dies after `step` steps and after half as many again. False: it was over by then. */
static bool live(uint64_t seed, unsigned step)
{
	struct life *l = uar_zalloc(sizeof *l);
	bool reached = true;

	sim_world_init(&l->w, seed);
	sim_checker_init(&l->k, &l->w, &owner);
	l->w.eager = true;
	l->k.happened = happened;
	l->verdict = step % 3 ? UAR_VERDICT_ALLOW : UAR_VERDICT_DENY;
	begin(l);
	l->op = (struct uar_run_create){ .owner = owner,
					 .agent_id = UAR_STR("assistant"),
					 .message = UAR_STR("use your tools"),
					 .done = created };
	CHECK_INT(uar_runtime_create_run(l->rt, &l->op), UAR_OK);
	while (!l->created)
		sim_step(&l->w);
	for (unsigned i = 1; i < STEPS && !is_over(l) && !l->k.problem[0]; i++) {
		answer(l);
		if (i == step || i == step + step / 2)
			die_and_rise(l);
		sim_step(&l->w);
		reached = i > step;
	}
	while (l->answering)
		sim_step(&l->w);
	sim_checker_check(&l->k, true);
	CHECK_MSG(!l->k.problem[0], "seed %llu, step %u: %s", (unsigned long long)seed, step,
		  l->k.problem);
	reached = reached && !l->k.problem[0];
	uar_runtime_destroy(l->rt);
	sim_checker_fini(&l->k);
	sim_world_fini(&l->w);
	uar_free(l);
	return reached;
}

TEST(a_process_may_die_at_every_step_of_a_round, "RUN-05 TOOL-14")
{
	unsigned steps = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		for (unsigned step = 1; live(seed, step); step++)
			steps++;
	CHECK_MSG(steps > 500, "%u", steps);
	CHECK(happened[UAR_EV_ACTION_REQUIRED] > steps && happened[UAR_EV_TOOL_RESULT] > steps);
	CHECK(happened[UAR_EV_TOOL_FAILED] > steps && happened[UAR_EV_TOOL_PROGRESS] > steps);
}
