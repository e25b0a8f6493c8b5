/* oom_sim_test.c - a life of the runtime in which memory runs out, at every place.
 *
 * Runs of one conversation whose model uses tools, an echo, a recording with tools and
 * long values and workers outside the process are created, watched, two are cancelled,
 * questions are answered, the process is killed and started again. Allocation n, or a row of
 * them from n on, fails; whoever is told so asks again. Afterwards every run that
 * somebody was promised has ended, with a whole answer or with a reason. No run
 * has a time limit that could help out. */
#include "stage.h"
#include "test.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "sim/checker.h"

enum { RUNS = 8, TRIES = 200, CANCELS = 2 };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

/* --- memory that runs out ---------------------------------------------------------- */

static unsigned long asked, first, many;

static int refuse(void *ctx)
{
	(void)ctx;
	asked++;
	return asked >= first && asked < first + many;
}

static void run_out(unsigned long from, unsigned long n)
{
	asked = 0;
	first = from;
	many = n;
	uar_alloc_set_hook(n ? refuse : NULL, NULL);
}

/* --- the life ------------------------------------------------------------------------ */

struct life;

struct guest {
	struct uar_run_create op;
	struct life *l;
	const char *agent, *conversation, *inputs, *entry;
	char key[16];
	bool asked, known, over; /* over: the stream has delivered the end */
	struct uar_stream *stream;
	uint64_t last;
};

struct life {
	struct sim_world w;
	struct sim_checker k;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	struct guest guests[RUNS];
	struct client_cancel {
		struct uar_run_cancel_op op;
		struct life *l;
		bool busy, done;
	} cancels[CANCELS];
	struct client_answer {
		struct uar_run_answer_op op;
		struct life *l;
		bool busy;
		char action_id[UAR_ACTION_TEXT + 1];
	} answer;
};

static bool fine(struct life *l, uar_err e, const char *what)
{
	if (e && e != UAR_ENOMEM && e != UAR_EBUSY && !l->w.dead)
		sim_checker_broken(&l->k, "%s: %s", what, uar_err_name(e));
	return e == UAR_OK;
}

static const char *folder; /* of recordings */

static void begin(struct life *l)
{
	struct uar_stage_options o = { .parts = &l->parts,
				       .sched = &l->w.sched,
				       .store = &l->w.store,
				       .rand = &l->w.rand,
				       .scripted = &l->w.model,
				       .provider = &l->w.model,
				       .entries = &l->w.host.base,
				       .tools = &l->w.tools.base,
				       .fixtures_dir = folder,
				       .provider_model = "sim" };

	for (int i = 0; i < TRIES; i++) {
		struct uar_error error = { 0 };

		if (fine(l, uar_stage_create(&o, &l->rt), "create") &&
		    fine(l, uar_runtime_recover(l->rt, &error), "recover"))
			return;
		uar_runtime_destroy(l->rt);
		l->rt = NULL;
	}
	sim_checker_broken(&l->k, "no life");
}

static void created(struct uar_run_create *op)
{
	struct guest *g = UAR_OWNER(op, struct guest, op);

	g->asked = false;
	if (fine(g->l, op->err, "created") && !g->l->w.dead) {
		g->known = true;
		sim_checker_created(&g->l->k, op->run_id, g->key);
	}
}

static void ask(struct life *l, struct guest *g)
{
	char run_id[sizeof g->op.run_id];

	if (g->asked || g->known)
		return;
	memcpy(run_id, g->op.run_id, sizeof run_id);
	g->l = l;
	g->op = (struct uar_run_create){
		.owner = owner,
		.agent_id = g->entry ? UAR_STR("") : uar_str_c(g->agent),
		.plugin_id = g->entry ? UAR_STR("sim") : UAR_STR(""),
		.entry_id = uar_str_c(g->entry ? g->entry : ""),
		.inputs = uar_str_c(g->inputs ? g->inputs : ""),
		.message = UAR_STR("say something, and say it well"),
		.conversation_id = uar_str_c(g->conversation),
		.idempotency_key = uar_str_c(g->key),
		.fingerprint = uar_str_c(g->key),
		.done = created,
	};
	g->asked = fine(l, uar_runtime_create_run(l->rt, &g->op), "create_run");
}

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct guest *g = ctx;

	for (size_t i = 0; i < n; i++) {
		if (ev[i].run_sequence != g->last + 1)
			sim_checker_broken(&g->l->k, "stream: a gap");
		g->last = ev[i].run_sequence;
		if (!g->l->w.dead)
			sim_checker_saw(&g->l->k, &ev[i]);
	}
	return UAR_OK;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct guest *g = ctx;

	(void)error;
	g->stream = NULL;
	g->over = fine(g->l, why, "stream") && !g->l->w.dead;
}

static void watch(struct life *l, struct guest *g)
{
	struct uar_stream_options o = { .owner = owner,
					.run_id = uar_str_c(g->op.run_id),
					.after = g->last,
					.sink = { on_opened, on_events, on_end, g } };

	if (g->known && !g->stream && !g->over)
		fine(l, uar_stream_open(l->parts.reader, &o, &g->stream), "stream_open");
}

static void cancel_done(struct uar_run_cancel_op *op)
{
	struct client_cancel *c = UAR_OWNER(op, struct client_cancel, op);

	c->busy = false;
	c->done = fine(c->l, op->err, "cancelled") && !c->l->w.dead;
}

static void cancel(struct life *l, struct client_cancel *c, const struct guest *g)
{
	if (!g->known || c->busy || c->done)
		return;
	c->l = l;
	c->op = (struct uar_run_cancel_op){ .owner = owner,
					    .run_id = uar_str_c(g->op.run_id),
					    .reason = UAR_STR("enough"),
					    .done = cancel_done };
	c->busy = fine(l, uar_runtime_cancel_run(l->rt, &c->op), "cancel_run");
}

static void answer_done(struct uar_run_answer_op *op)
{
	struct client_answer *c = UAR_OWNER(op, struct client_answer, op);

	c->busy = false;
	if (op->err != UAR_ERESOLVED)
		(void)fine(c->l, op->err, "answered");
}

static void choose_question(void *ctx, const struct uar_run *run)
{
	const struct uar_run_actions *a = &uar_run_rare(run)->actions;

	if (a->open_count)
		uar_action_id(run->id.run_id, a->open[0].number, ctx);
}

/* Whatever a run waits for is allowed. */
static void answer(struct life *l)
{
	struct client_answer *c = &l->answer;

	if (c->busy)
		return;
	c->action_id[0] = 0;
	uar_runtime_each_waiting(l->rt, &owner, choose_question, c->action_id);
	if (!c->action_id[0])
		return;
	c->l = l;
	c->op = (struct uar_run_answer_op){ .owner = owner,
					    .action_id = uar_str_c(c->action_id),
					    .decision = UAR_STR("allow"),
					    .done = answer_done };
	c->busy = fine(l, uar_runtime_answer(l->rt, &c->op), "answer");
}

static void insist(struct life *l)
{
	for (size_t i = 0; i < RUNS; i++) {
		ask(l, &l->guests[i]);
		watch(l, &l->guests[i]);
	}
	cancel(l, &l->cancels[0], &l->guests[2]);
	cancel(l, &l->cancels[1], &l->guests[6]);
	answer(l);
}

static bool busy(const struct life *l)
{
	for (size_t i = 0; i < RUNS; i++)
		if (l->guests[i].asked)
			return true;
	return l->cancels[0].busy || l->cancels[1].busy || l->answer.busy;
}

static void die_and_rise(struct life *l)
{
	sim_kill(&l->w);
	for (size_t i = 0; i < RUNS; i++) {
		uar_stream_close(l->guests[i].stream);
		l->guests[i].stream = NULL;
	}
	while (busy(l) || sim_store_pending(&l->w) || !uar_list_empty(&l->w.tasks))
		sim_step(&l->w);
	uar_runtime_destroy(l->rt);
	l->rt = NULL;
	sim_reborn(&l->w);
	begin(l);
}

static bool all_over(const struct life *l)
{
	for (size_t i = 0; i < RUNS; i++)
		if (!l->guests[i].over)
			return false;
	return l->cancels[0].done && l->cancels[1].done;
}

/* Timers far away are no help: everything must end by what is due soon. */
static void live(struct life *l)
{
	begin(l);
	for (int i = 0; i < 60 && !l->k.problem[0]; i++) {
		insist(l);
		sim_step(&l->w);
	}
	die_and_rise(l);
	for (int i = 0; i < 60000 && !all_over(l) && !l->k.problem[0]; i++) {
		insist(l);
		sim_step(&l->w);
	}
	if (!all_over(l))
		sim_checker_broken(&l->k, "somebody still waits");
}

static uint64_t happened[UAR_EV_COUNT];

static bool live_with(uint64_t seed, unsigned long from, unsigned long n)
{
	static const struct guest guests[RUNS] = {
		{ .agent = "echo", .conversation = "" },
		{ .agent = "assistant", .conversation = "talk" },
		{ .agent = "assistant", .conversation = "talk" },
		{ .agent = "assistant", .conversation = "talk" },
		{ .agent = "fixture",
		  .conversation = "",
		  .inputs = "{\"fixture\":\"oom\",\"pace\":\"full\"}" },
		{ .entry = "work", .conversation = "" },
		{ .entry = "work", .conversation = "" },
		{ .entry = "once", .conversation = "" },
	};
	struct life *l = uar_zalloc(sizeof *l);
	bool reached;

	sim_world_init(&l->w, seed);
	sim_checker_init(&l->k, &l->w, &owner);
	l->k.happened = happened;
	for (size_t i = 0; i < RUNS; i++) {
		l->guests[i] = guests[i];
		snprintf(l->guests[i].key, sizeof l->guests[i].key, "key-%zu", i);
	}
	run_out(from, n);
	live(l);
	reached = asked >= from;
	run_out(0, 0);
	if (!l->k.problem[0])
		sim_checker_check(&l->k, true);
	CHECK_MSG(!l->k.problem[0], "seed %llu, %lu from %lu: %s", (unsigned long long)seed, n,
		  from, l->k.problem);
	for (size_t i = 0; i < RUNS; i++)
		uar_stream_close(l->guests[i].stream);
	uar_store_destroy(NULL);
	sim_store_fini(&l->w);
	uar_runtime_destroy(l->rt);
	sim_checker_fini(&l->k);
	sim_world_fini(&l->w);
	reached = reached && !l->k.problem[0];
	uar_free(l);
	return reached;
}

#define TOOL(TYPE, MORE) "{\"type\":\"" TYPE "\",\"data\":{\"tool_call_id\":\"c\"," MORE "}}\n"

static void write_recording(void)
{
	char path[400];
	FILE *f;

	folder = uar_test_dir();
	snprintf(path, sizeof path, "%s/oom.jsonl", folder);
	f = fopen(path, "w");
	REQUIRE(f != NULL);
	fputs(TOOL("ToolStart", "\"tool\":\"t\",\"input\":{}"), f);
	fprintf(f, TOOL("ToolEnd", "\"output\":\"%0*d\",\"ok\":true"), 5000, 7);
	fputs("{\"type\":\"RunDone\",\"data\":{}}\n", f);
	CHECK_INT(fclose(f), 0);
}

static void every_place(uint64_t seed, unsigned long n, unsigned long stride)
{
	unsigned long from = 1;

	write_recording();
	live_with(seed, 1, 0); /* schemas are compiled once and for all */
	while (live_with(seed, from, n))
		from += stride;
	CHECK_MSG(from > 100, "only %lu", from);
	CHECK(happened[UAR_EV_TOOL_RESULT] > from && happened[UAR_EV_ACTION_RESOLVED] > 0);
}

TEST(one_allocation_fails_at_every_place, "RUN-13 RUN-17")
{
	every_place(1, 1, 1);
	every_place(2, 1, 1);
}

TEST(no_memory_for_a_while_at_every_place, "RUN-13 RUN-17")
{
	every_place(3, 7, 3);
	every_place(4, 100, 11);
}
