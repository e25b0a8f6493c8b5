/* runtime_sim_test.c - the whole runtime in a world made from a seed.
 *
 * Clients create, cancel, watch and leave at random while commits are slow,
 * disks are full for a moment and the process is killed; after every step or
 * two the checker reads the disk. A failing seed replays exactly: run this
 * program with UAR_TEST_SEED=N. */
#include "stage.h"
#include "test.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "sim/checker.h"

enum { CREATES = 8, STREAMS = 8, STEPS = 650, FIXTURES = 4 };

/* They use the same names for their conversations and keys. */
static const struct uar_owner owners[] = {
	{ UAR_STR("t"), UAR_STR("w"), UAR_STR("u") },
	{ UAR_STR("t"), UAR_STR("w"), UAR_STR("v") },
};

struct play;

struct client_create {
	struct uar_run_create op;
	struct play *p;
	const struct uar_owner *owner;
	bool busy;
	char key[32], conversation[32], inputs[64];
};

struct client_retry {
	struct uar_run_retry_op op;
	struct play *p;
	const struct uar_owner *owner;
	bool busy;
	char run_id[UAR_LIMIT_ID_BYTES + 1], key[32];
};

struct client_cancel {
	struct uar_run_cancel_op op;
	struct play *p;
	bool busy;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

struct client_answer {
	struct uar_run_answer_op op;
	struct play *p;
	bool busy;
	char action_id[UAR_ACTION_TEXT + 1];
};

struct client_stream {
	struct play *p;
	const struct uar_owner *owner;
	struct uar_stream *stream;
	bool blocked, opened;
	uint64_t last;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

struct play {
	struct sim_world w;
	struct sim_checker k;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	struct client_create creates[CREATES];
	struct client_cancel cancel;
	struct client_retry retry;
	struct client_answer answer;
	struct client_stream streams[STREAMS];
	unsigned kills, stops;
};

static const char *folder; /* of recordings */

static void begin_life(struct play *p)
{
	struct uar_stage_options o = {
		.parts = &p->parts,
		.sched = &p->w.sched,
		.store = &p->w.store,
		.rand = &p->w.rand,
		.scripted = &p->w.model,
		.provider = &p->w.model,
		.provider_model = "sim",
		.entries = &p->w.host.base,
		.tools = &p->w.tools.base,
		.fixtures_dir = folder,
		.run_timeout_us = 60000000,
		.keep_runs = p->k.keep,
	};
	struct uar_error error = { 0 };

	if (uar_stage_create(&o, &p->rt) || uar_runtime_recover(p->rt, &error))
		sim_checker_broken(&p->k, "no life: %s", error.text);
}

/* --- clients ------------------------------------------------------------------ */

static void created(struct uar_run_create *op)
{
	struct client_create *c = UAR_OWNER(op, struct client_create, op);

	c->busy = false;
	if (c->p->w.dead)
		return;
	if (!op->err)
		sim_checker_created_by(&c->p->k, c->owner, op->run_id, c->key);
	else if (op->err == UAR_ECONFLICT)
		sim_checker_broken(&c->p->k, "a client was told of a conflict among ourselves");
}

/* A key names one kind of work, so that it always means the same request. */
static void choose_work(struct client_create *c, unsigned kind)
{
	static const char *const agents[] = { "echo", "assistant", "assistant", "fixture" };

	if (kind < 4)
		c->op.agent_id = uar_str_c(agents[kind]);
	if (kind == 3) {
		snprintf(c->inputs, sizeof c->inputs, "{\"fixture\":\"sim-%u\",\"pace\":\"%s\"}",
			 (unsigned)sim_below(&c->p->w, FIXTURES),
			 sim_below(&c->p->w, 2) ? "full" : "recorded");
		c->op.inputs = uar_str_c(c->inputs);
	}
	if (kind >= 4) {
		c->op.plugin_id = UAR_STR("sim");
		c->op.entry_id = kind == 4 ? UAR_STR("once") : UAR_STR("work");
		c->op.message = UAR_STR("{}");
	}
}

static void create(struct play *p)
{
	struct client_create *c = &p->creates[sim_below(&p->w, CREATES)];
	unsigned key = (unsigned)sim_below(&p->w, 6), kind = (unsigned)sim_below(&p->w, 7);

	if (c->busy)
		return;
	*c = (struct client_create){ .p = p, .owner = &owners[sim_below(&p->w, 2)] };
	if (sim_below(&p->w, 3) == 0) {
		snprintf(c->key, sizeof c->key, "key-%u", key);
		kind = key;
	}
	if (sim_below(&p->w, 2) == 0)
		snprintf(c->conversation, sizeof c->conversation, "talk-%u",
			 (unsigned)sim_below(&p->w, 4));
	c->op = (struct uar_run_create){
		.owner = *c->owner,
		.message = UAR_STR("say something"),
		.conversation_id = uar_str_c(c->conversation),
		.idempotency_key = uar_str_c(c->key),
		.fingerprint = uar_str_c(c->key),
		.done = created,
	};
	choose_work(c, kind);
	c->busy = uar_runtime_create_run(p->rt, &c->op) == UAR_OK;
}

static void cancelled(struct uar_run_cancel_op *op)
{
	UAR_OWNER(op, struct client_cancel, op)->busy = false;
}

static const struct sim_known *some_run(struct play *p)
{
	return p->k.known_count ? &p->k.known[sim_below(&p->w, p->k.known_count)] : NULL;
}

static void cancel(struct play *p)
{
	const struct sim_known *known = some_run(p);
	struct client_cancel *c = &p->cancel;

	if (!known || c->busy)
		return;
	memcpy(c->run_id, known->run_id, sizeof c->run_id);
	c->op = (struct uar_run_cancel_op){
		.owner = *known->owner,
		.run_id = uar_str_c(c->run_id),
		.reason = UAR_STR("the seed wants it"),
		.done = cancelled,
	};
	c->busy = uar_runtime_cancel_run(p->rt, &c->op) == UAR_OK;
}

static void answered(struct uar_run_answer_op *op)
{
	UAR_OWNER(op, struct client_answer, op)->busy = false;
}

struct question {
	struct client_answer *c;
	uint64_t left; /* so many are passed over */
	bool found;
};

static void choose_question(void *ctx, const struct uar_run *run)
{
	struct question *q = ctx;
	const struct uar_run_actions *a = &uar_run_rare(run)->actions;

	if (!a->open_count || (q->found && !q->left))
		return;
	q->left -= q->found;
	q->found = true;
	uar_action_id(run->id.run_id, a->open[0].number, q->c->action_id);
}

/* Allows or denies something that a run waits for. False: nothing waits. */
static bool answer(struct play *p)
{
	const struct uar_owner *owner = &owners[sim_below(&p->w, 2)];
	struct client_answer *c = &p->answer;
	struct question q = { .c = c, .left = sim_below(&p->w, 4) };

	if (c->busy)
		return true;
	uar_runtime_each_waiting(p->rt, owner, choose_question, &q);
	if (!q.found)
		return false;
	c->op = (struct uar_run_answer_op){
		.owner = *owner,
		.action_id = uar_str_c(c->action_id),
		.reason = UAR_STR("the seed wants it"),
		.decision = sim_below(&p->w, 3) ? UAR_STR("allow") : UAR_STR("deny"),
		.done = answered,
	};
	c->busy = uar_runtime_answer(p->rt, &c->op) == UAR_OK;
	return true;
}

static void retried(struct uar_run_retry_op *op)
{
	struct client_retry *c = UAR_OWNER(op, struct client_retry, op);

	c->busy = false;
	if (!c->p->w.dead && !op->err)
		sim_checker_created_by(&c->p->k, c->owner, op->new_run_id, c->key);
	if (!c->p->w.dead && op->err == UAR_ECONFLICT)
		sim_checker_broken(&c->p->k, "a retry was told of a conflict among ourselves");
}

static void retry(struct play *p)
{
	const struct sim_known *known = some_run(p);
	struct client_retry *c = &p->retry;

	if (!known || c->busy)
		return;
	*c = (struct client_retry){ .p = p, .owner = known->owner };
	memcpy(c->run_id, known->run_id, sizeof c->run_id);
	if (sim_below(&p->w, 2))
		snprintf(c->key, sizeof c->key, "again-%.8s", c->run_id + 28);
	c->op = (struct uar_run_retry_op){
		.owner = *known->owner,
		.run_id = uar_str_c(c->run_id),
		.idempotency_key = uar_str_c(c->key),
		.done = retried,
	};
	c->busy = uar_runtime_retry_run(p->rt, &c->op) == UAR_OK;
}

static uar_err on_opened(void *ctx)
{
	((struct client_stream *)ctx)->opened = true;
	return UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct client_stream *s = ctx;

	if (sim_below(&s->p->w, 4) == 0) {
		s->blocked = true;
		return UAR_EBUSY;
	}
	for (size_t i = 0; i < n; i++) {
		if (ev[i].run_sequence != s->last + 1)
			sim_checker_broken(&s->p->k, "stream: %llu after %llu",
					   (unsigned long long)ev[i].run_sequence,
					   (unsigned long long)s->last);
		s->last = ev[i].run_sequence;
		if (!s->p->w.dead)
			sim_checker_saw(&s->p->k, &ev[i]);
	}
	return UAR_OK;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct client_stream *s = ctx;

	(void)error;
	s->stream = NULL;
	if (why == UAR_ENOTFOUND && !s->p->w.dead && !s->p->k.keep)
		sim_checker_broken(&s->p->k, "I1: stream of %s finds nothing", s->run_id);
	if (why == UAR_ECURSOR && !s->p->w.dead)
		sim_checker_broken(&s->p->k, "stream: cursor %llu was forgotten",
				   (unsigned long long)s->last);
}

/* Watches some run, or comes back to the one it watched where it left off. */
static void watch(struct play *p)
{
	struct client_stream *s = &p->streams[sim_below(&p->w, STREAMS)];
	const struct sim_known *known = some_run(p);
	struct uar_stream_options o = { 0 };

	if (s->stream || !known)
		return;
	if (!s->run_id[0] || sim_below(&p->w, 2)) {
		s->owner = known->owner;
		memcpy(s->run_id, known->run_id, sizeof s->run_id);
		s->last = 0;
	}
	s->p = p;
	s->blocked = s->opened = false;
	o.owner = *s->owner;
	o.run_id = uar_str_c(s->run_id);
	o.after = s->last;
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, s };
	if (uar_stream_open(p->parts.reader, &o, &s->stream))
		s->stream = NULL;
}

static void disturb_stream(struct play *p)
{
	struct client_stream *s = &p->streams[sim_below(&p->w, STREAMS)];

	if (!s->stream)
		return;
	if (s->blocked) {
		s->blocked = false;
		uar_stream_resume(s->stream);
	} else if (sim_below(&p->w, 3) == 0) {
		uar_stream_close(s->stream);
		s->stream = NULL;
	}
}

static void leave_all(struct play *p)
{
	for (size_t i = 0; i < STREAMS; i++) {
		uar_stream_close(p->streams[i].stream);
		p->streams[i].stream = NULL;
	}
}

static bool clients_wait(const struct play *p)
{
	for (size_t i = 0; i < CREATES; i++)
		if (p->creates[i].busy)
			return true;
	return p->cancel.busy || p->retry.busy || p->answer.busy;
}

/* --- kills ---------------------------------------------------------------------- */

static void kill_and_restart(struct play *p)
{
	p->kills++;
	sim_kill(&p->w);
	leave_all(p);
	while (clients_wait(p) || sim_store_pending(&p->w) || !uar_list_empty(&p->w.tasks))
		sim_step(&p->w);
	uar_runtime_destroy(p->rt);
	sim_reborn(&p->w);
	begin_life(p);
}

/* --- polite stops ------------------------------------------------------------------ */

enum { STOP_STEPS = 200000 };

static void set(void *ctx)
{
	*(bool *)ctx = true;
}

/* Everybody who asked is answered before it says that it is done; then nothing is left. */
static void stop_and_restart(struct play *p)
{
	bool done = false;

	p->stops++;
	if (sim_below(&p->w, 2))
		leave_all(p);
	uar_runtime_drain(p->rt, set, &done);
	if (uar_runtime_ready(p->rt))
		sim_checker_broken(&p->k, "stop: still ready");
	for (int i = 0; !done && i < STOP_STEPS; i++)
		sim_step(&p->w);
	if (!done || clients_wait(p) || sim_store_pending(&p->w))
		sim_checker_broken(&p->k, "stop: %s", done ? "done too early" : "it never ends");
	leave_all(p);
	uar_runtime_destroy(p->rt);
	sim_reborn(&p->w);
	begin_life(p);
}

static void act(struct play *p)
{
	switch (sim_below(&p->w, 20)) {
	case 0:
	case 1: create(p); break;
	case 8: retry(p); break;
	case 2: cancel(p); break;
	case 9: answer(p); break;
	case 3:
	case 4: watch(p); break;
	case 5:
	case 6: disturb_stream(p); break;
	case 7:
		switch (sim_below(&p->w, 24)) {
		case 0:
		case 1: kill_and_restart(p); break;
		case 2: stop_and_restart(p); break;
		}
		break;
	default: sim_step(&p->w); break;
	}
}

/* Until nobody has anything left to do, and every question an answer. */
static void settle_all(struct play *p)
{
	unsigned quiet = 0;

	while (quiet < 16 && !p->k.problem[0]) {
		sim_settle(&p->w, 3600000000);
		while (clients_wait(p) && sim_step(&p->w))
			;
		quiet = answer(p) ? 0 : quiet + 1;
	}
}

static void finish(struct play *p)
{
	p->w.append_faults = 0;
	p->w.read_fault = NULL;
	for (size_t i = 0; i < STREAMS; i++)
		if (p->streams[i].stream && p->streams[i].blocked) {
			p->streams[i].blocked = false;
			uar_stream_resume(p->streams[i].stream);
		}
	leave_all(p);
	settle_all(p);
	if (p->k.keep) { /* what a full disk has put off is done after the next start */
		kill_and_restart(p);
		settle_all(p);
	}
	sim_checker_check(&p->k, true);
}

/* --- recordings ------------------------------------------------------------------- */

#define TOOL(TYPE, ID, MORE)                                                                       \
	"{\"at_ms\":5,\"type\":\"" TYPE "\",\"data\":{\"tool_call_id\":\"" ID "\"" MORE "}}\n"
#define START(ID) TOOL("ToolStart", ID, ",\"tool\":\"t\",\"input\":{\"a\":1}")
#define DELTA(ID) TOOL("ToolDelta", ID, ",\"delta\":\"some\"")
#define END(ID)	  TOOL("ToolEnd", ID, ",\"output\":\"all\",\"ok\":true")
#define LONG(ID)  TOOL("ToolEnd", ID, ",\"output\":\"%05000d\",\"ok\":true")
#define SAY	  "{\"at_ms\":9,\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"word \"}}\n"
#define KEEP                                                                                       \
	"{\"type\":\"Artifact\",\"data\":{\"artifact\":{\"artifact_id\":\"a\",\"artifact_type\":"  \
	"\"text\",\"title\":\"t\",\"content\":\"%09000d\",\"metadata\":{}}}}\n"
#define DONE "{\"at_ms\":20,\"type\":\"RunDone\",\"data\":{}}\n"
#define BAD  "{\"type\":\"ToolEnd\",\"data\":{\"tool_call_id\":\"nobody\"}}\n"

/* Tools side by side, long outputs, tools that are open at the end, a bad line. */
static const char *const recordings[FIXTURES] = {
	START("a") START("b") DELTA("b") START("c") LONG("b") DELTA("a") END("a") SAY END("c") DONE,
	SAY START("a") DELTA("a") KEEP LONG("a") START("a") END("a") SAY DONE,
	START("a") START("b") SAY DELTA("a") DONE,
	START("a") LONG("a") START("b") SAY BAD SAY END("b") DONE,
};

static void write_recordings(void)
{
	folder = uar_test_dir();
	for (unsigned i = 0; i < FIXTURES; i++) {
		char path[400];
		FILE *f;

		snprintf(path, sizeof path, "%s/sim-%u.jsonl", folder, i);
		f = fopen(path, "w");
		REQUIRE(f != NULL);
		for (const char *c = recordings[i]; *c; c++)
			if (strncmp(c, "%05000d", 7) == 0 || strncmp(c, "%09000d", 7) == 0)
				fprintf(f, "%0*d", 1000 * (c[2] - '0'), 7), c += 6;
			else
				fputc(*c, f);
		CHECK_INT(fclose(f), 0);
	}
}

static uint64_t happened[UAR_EV_COUNT], evicted;

/* Now and then a read fails, and the next one does not. */
static uar_err sometimes(struct sim_world *w, const struct uar_read *r)
{
	(void)r;
	return !w->dead && sim_below(w, 50) == 0 ? UAR_EIO : UAR_OK;
}

static bool play_seed(uint64_t seed, unsigned *out_kills, unsigned *out_stops)
{
	struct play *p = uar_zalloc(sizeof *p);
	bool good;

	sim_world_init(&p->w, seed);
	sim_checker_init(&p->k, &p->w, &owners[0]);
	p->k.happened = happened;
	p->k.keep = seed % 5 == 2 ? 1 + seed % 4 : 0;
	p->w.append_faults = (unsigned)(seed % 3) * 20;
	p->w.read_fault = seed % 4 == 1 ? sometimes : NULL;
	begin_life(p);
	for (int i = 0; i < STEPS && !p->k.problem[0]; i++) {
		act(p);
		if (i % 8 == 0)
			sim_checker_check(&p->k, false);
	}
	finish(p);
	good = !p->k.problem[0];
	if (!good)
		printf("  seed %llu: %s\n", (unsigned long long)seed, p->k.problem);
	evicted += p->k.evicted;
	*out_kills += p->kills;
	*out_stops += p->stops;
	uar_runtime_destroy(p->rt);
	sim_checker_fini(&p->k);
	sim_world_fini(&p->w);
	uar_free(p);
	return good;
}

static unsigned long number(const char *name, unsigned long fallback)
{
	const char *text = getenv(name);
	uint64_t v;

	return text && uar_str_u64(uar_str_c(text), &v) == UAR_OK ? (unsigned long)v : fallback;
}

/* What must have happened often, or the world is not the one that is meant. */
static const enum uar_event_class common[] = {
	UAR_EV_MODEL_DELTA,	      UAR_EV_TOOL_STARTED,	     UAR_EV_TOOL_FAILED,
	UAR_EV_OUTPUT_SPILLED,	      UAR_EV_TASK_PROGRESS,	     UAR_EV_ARTIFACT_CHANGED,
	UAR_EV_TASK_CANCELLED,	      UAR_EV_TASK_ATTEMPT_COMPLETED, UAR_EV_TASK_RETRYING,
	UAR_EV_TOOL_RESULT,	      UAR_EV_ACTION_REQUIRED,	     UAR_EV_ACTION_RESOLVED,
	UAR_EV_TOOL_CATALOG_RESOLVED,
};

TEST(a_thousand_seeds_keep_the_promises,
     "RUN-05 RUN-13 RUN-17 RUN-40 RUN-48 RUN-51 RUN-52 SSE-05 SSE-11 TOOL-14 VAL-01")
{
	unsigned long first = number("UAR_TEST_SEED", 1);
	unsigned long count = getenv("UAR_TEST_SEED") ? 1 : number("UAR_TEST_SEEDS", 1000);
	unsigned kills = 0, stops = 0;

	write_recordings();
	for (unsigned long seed = first; seed < first + count; seed++)
		if (!CHECK_MSG(play_seed(seed, &kills, &stops), "UAR_TEST_SEED=%lu", seed))
			return;
	printf("# %lu seeds, %u kills, %u stops\n", count, kills, stops);
	if (count < 1000)
		return;
	CHECK(kills > 1000 && stops > 500);
	CHECK_MSG(evicted > 500, "%llu", (unsigned long long)evicted);
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		CHECK_MSG(happened[common[i]] > 500, "%s: %llu", uar_event_info[common[i]].type,
			  (unsigned long long)happened[common[i]]);
}

/* One life that is asked to stop after some steps, and ends once storage has answered. */
static bool leaves_nothing_behind(unsigned steps)
{
	struct play *p = uar_zalloc(sizeof *p);
	bool empty, done = false;

	sim_world_init(&p->w, steps);
	sim_checker_init(&p->k, &p->w, &owners[0]);
	begin_life(p);
	sim_settle(&p->w, 0);
	create(p);
	for (unsigned i = 0; i < steps; i++)
		sim_step(&p->w);
	uar_runtime_drain(p->rt, set, &done);
	while (!done && sim_step(&p->w))
		;
	CHECK(done && !clients_wait(p) && !sim_store_pending(&p->w));
	uar_runtime_destroy(p->rt);
	sim_checker_fini(&p->k);
	sim_world_fini(&p->w);
	empty = uar_list_empty(&p->w.tasks);
	uar_free(p);
	return empty;
}

TEST(a_drained_runtime_leaves_nothing_posted, "")
{
	write_recordings();
	for (unsigned steps = 0; steps < 200; steps++)
		CHECK_MSG(leaves_nothing_behind(steps), "after %u steps", steps);
}
