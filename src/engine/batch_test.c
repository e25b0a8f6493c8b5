/* batch_test.c - commands that share a commit, sessions that share ids, sources that
 * share a queue: what concerns one of them leaves the others alone. */
#include "engine/engine_int.h"
#include "engine/limits.h"
#include "event/limits.h"

#include "facts.h"
#include "memory_store.h"
#include "stage.h"
#include "test.h"

static const struct uar_owner ann = { UAR_STR("t"), UAR_STR("w"), UAR_STR("ann") };
static const struct uar_owner bob = { UAR_STR("t"), UAR_STR("w"), UAR_STR("bob") };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	const char *fixtures;
	const struct uar_log *log;
};

static void rise(struct world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .parts = &w->parts,
								     .store = w->store,
								     .scripted = w->model,
								     .fixtures_dir = w->fixtures,
								     .log = w->log });
}

static void open_world(struct world *w)
{
	*w = (struct world){ .fixtures = uar_test_dir() };
	uar_stage_open(&w->pump, &w->store, &w->model);
	rise(w);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
}

static void settle(struct world *w)
{
	uar_stage_settle(&w->pump);
}

struct guest {
	struct uar_run_create op;
	struct uar_run_cancel_op cancel;
	bool done, cancelled;
};

static void created(struct uar_run_create *op)
{
	struct guest *g = UAR_OWNER(op, struct guest, op);

	CHECK_MSG(!op->err, "%s: %s", uar_err_name(op->err), op->error.text);
	g->done = true;
}

static void cancelled(struct uar_run_cancel_op *op)
{
	UAR_OWNER(op, struct guest, cancel)->cancelled = true;
}

static void ask(struct world *w, struct guest *g, const struct uar_owner *owner, const char *agent)
{
	uar_str message = g->op.message, inputs = g->op.inputs, talk = g->op.conversation_id;

	*g = (struct guest){ .op = { .owner = *owner,
				     .agent_id = uar_str_c(agent),
				     .message = message.n ? message : UAR_STR("hello"),
				     .inputs = inputs,
				     .conversation_id = talk,
				     .done = created } };
	CHECK_INT(uar_runtime_create_run(w->rt, &g->op), UAR_OK);
}

static void cancel(struct world *w, struct guest *g)
{
	g->cancel = (struct uar_run_cancel_op){ .owner = g->op.owner,
						.run_id = uar_str_c(g->op.run_id),
						.reason = UAR_STR("enough"),
						.done = cancelled };
	CHECK_INT(uar_runtime_cancel_run(w->rt, &g->cancel), UAR_OK);
}

/* A clock that somebody sets. */
static int64_t skew_us;

static int64_t skewed_wall(void *ctx)
{
	(void)ctx;
	return uar_clock_wall(&uar_clock_system) + skew_us;
}

static int64_t true_mono(void *ctx)
{
	(void)ctx;
	return uar_clock_mono(&uar_clock_system);
}

/* The record's word for the run's status; its session in `session`. */
static const char *status_of(struct world *w, const struct guest *g, char session[64])
{
	struct uar_runs_query q = { .owner = g->op.owner,
				    .run_id = uar_str_c(g->op.run_id),
				    .limit = 1 };
	const char *status = "none";

	if (!uar_facts_runs(&w->pump, w->store, &q)) {
		status = uar_status_record_parse(q.rows[0].status);
		if (session)
			snprintf(session, 64, "%.*s", UAR_FMT(q.rows[0].session_id));
	}
	uar_store_query_fini(&q);
	return status;
}

/* How many events of the class the run has. */
static size_t count_of(struct world *w, const struct guest *g, enum uar_event_class cls)
{
	struct uar_read r = { .owner = g->op.owner,
			      .run_id = uar_str_c(g->op.run_id),
			      .limit = UAR_LIMIT_READ_PAGE };
	size_t n = 0;

	(void)uar_facts_read(&w->pump, w->store, &r); /* none: there is no such run */
	for (size_t i = 0; i < r.event_count; i++)
		n += r.events[i].cls == cls;
	uar_store_read_fini(&r);
	return n;
}

static void write_fixture(const char *dir, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s.jsonl", dir, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* --- one commit -------------------------------------------------------------------------- */

#define SAY "{\"type\":\"Citation\",\"data\":{\"sources\":[]}}\n"
#define BAD "{\"type\":\"Citation\",\"data\":{\"sources\":[1]}}\n"
#define END "{\"type\":\"ToolEnd\",\"data\":{\"tool_call_id\":\"never\"}}\n"

/* The worker's lines wait behind a slow disk, and with them somebody's cancel. */
TEST(a_cancel_beside_a_bad_command_gets_its_own_answer, "RUN-51")
{
	static const struct {
		const char *lines;
		size_t good;
	} rows[] = { { SAY SAY BAD SAY, 2 }, { BAD, 0 }, { SAY END, 1 }, { SAY SAY SAY, 3 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct guest g = { .op = { .inputs = UAR_STR(
						   "{\"fixture\":\"f\",\"pace\":\"full\"}") } };
		struct world w;

		open_world(&w);
		write_fixture(w.fixtures, "f", rows[i].lines);
		ask(&w, &g, &ann, "fixture");
		uar_pump_until(&w.pump, &g.done);
		uar_store_memory_hold(w.store, true);
		settle(&w); /* the first line is at the store, the others wait */
		cancel(&w, &g);
		uar_store_memory_hold(w.store, false);
		settle(&w);
		CHECK(g.cancelled);
		CHECK_INT(g.cancel.err, UAR_OK);
		CHECK(strcmp(status_of(&w, &g, NULL), "running") != 0);
		CHECK_INT(count_of(&w, &g, UAR_EV_CONTEXT_RESOLVED), rows[i].good);
		CHECK_INT(count_of(&w, &g, UAR_EV_TASK_ATTEMPT_FAILED) +
				  count_of(&w, &g, UAR_EV_TASK_ATTEMPT_COMPLETED),
			  1);
		close_world(&w);
	}
}

/* The second loss is found before the failure for it is in the log, and the first takes with it
 * whatever the worker has said. */
TEST(a_run_that_loses_output_twice_fails_once, "RUN-51")
{
	struct guest g = { .op = { .inputs = UAR_STR("{\"fixture\":\"f\",\"pace\":\"full\"}") } };
	size_t n = 2 * UAR_LIMIT_RUN_PENDING_BYTES;
	char *lines = uar_zalloc(n + 200);
	size_t at = (size_t)snprintf(lines, 200,
				     END "{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"");
	struct world w;

	memset(lines + at, 'x', n);
	snprintf(lines + at + n, 100, "\"}}\n");
	open_world(&w);
	write_fixture(w.fixtures, "f", lines);
	ask(&w, &g, &ann, "fixture");
	uar_pump_until(&w.pump, &g.done);
	for (int i = 0; i < 100 && strcmp(status_of(&w, &g, NULL), "failed") != 0; i++)
		uar_pump_turn(&w.pump);
	CHECK_STR(uar_str_c(status_of(&w, &g, NULL)), "failed");
	CHECK_INT(count_of(&w, &g, UAR_EV_TASK_ATTEMPT_FAILED), 1);
	close_world(&w);
	uar_free(lines);
}

/* A turn that fails, or that nobody wants any more, keeps nobody. */
TEST(turns_come_in_order_whatever_became_of_the_ones_before, "RUN-13")
{
	static const char *const want[] = { "failed", "canceled", "succeeded", "failed",
					    "succeeded" };
	struct guest g[5];
	struct world w;

	open_world(&w);
	write_fixture(w.fixtures, "bad", SAY BAD);
	for (int i = 0; i < 5; i++) {
		bool bad = i % 3 == 0;

		g[i] = (struct guest){ .op = { .conversation_id = UAR_STR("talk"),
					       .inputs = bad ? UAR_STR("{\"fixture\":\"bad\"}")
							     : UAR_STR_NONE } };
		ask(&w, &g[i], &ann, bad ? "fixture" : "demo");
	}
	while (!g[1].done)
		uar_pump_turn(&w.pump);
	cancel(&w, &g[1]);
	settle(&w);
	for (int i = 0; i < 5; i++)
		CHECK_STR(uar_str_c(status_of(&w, &g[i], NULL)), want[i]);
	close_world(&w);
}

#define LATER "{\"at_ms\":3600000,\"type\":\"Citation\",\"data\":{\"sources\":[]}}\n"

/* Three turns of a conversation; the first is cancelled, the second cannot begin. */
TEST(a_turn_that_cannot_begin_fails_and_the_next_one_has_its_turn, "RUN-16")
{
	struct guest g[3] = { { .op = { .inputs = UAR_STR("{\"fixture\":\"later\"}") } } };
	struct uar_runtime_stats stats = { 0 };
	struct world w;

	open_world(&w);
	write_fixture(w.fixtures, "later", LATER);
	for (int i = 0; i < 3; i++) {
		g[i].op.conversation_id = UAR_STR("talk");
		ask(&w, &g[i], &ann, i ? "echo" : "fixture");
		settle(&w);
	}
	CHECK_STR(uar_str_c(status_of(&w, &g[0], NULL)), "running");
	CHECK_STR(uar_str_c(status_of(&w, &g[1], NULL)), "queued");
	cancel(&w, &g[0]);
	while (!stats.cancelled) {
		uar_pump_turn(&w.pump);
		uar_runtime_stats(w.rt, &stats);
	}
	uar_store_memory_fail_next(w.store, UAR_EINVALID);
	settle(&w);
	CHECK_STR(uar_str_c(status_of(&w, &g[1], NULL)), "failed");
	CHECK_INT(count_of(&w, &g[1], UAR_EV_TASK_ATTEMPT_STARTED), 1);
	CHECK_STR(uar_str_c(status_of(&w, &g[2], NULL)), "succeeded");
	close_world(&w);
}

/* --- one queue --------------------------------------------------------------------------- */

struct source {
	struct worker base;
	int resumed;
};

static void flow(struct worker *w)
{
	((struct source *)w)->resumed++;
}

static void stop(struct worker *w)
{
	(void)w;
}

/* An echo of n bytes has begun; gives back its session. */
static struct agg *begin_echo(struct world *w, struct guest *g, char *text, size_t n)
{
	size_t at = 0;

	memset(text, 'x', n);
	open_world(w);
	g->op.message = uar_str_n(text, n);
	ask(w, g, &ann, "echo");
	uar_pump_until(&w->pump, &g->done);
	return uar_map_next(&w->rt->sessions, &at);
}

/* Two runs of a session: what one of them wrote had held back the other. */
TEST(a_source_goes_on_when_another_run_of_its_session_made_room, "")
{
	enum { BYTES = 3000000 };
	static const struct worker_ops ops = { .name = "source", .flow = flow, .stop = stop };
	struct source source = { .base = { &ops, NULL } };
	struct guest g = { 0 };
	struct live_run *other;
	char *text = uar_alloc(BYTES);
	struct world w;
	struct agg *a;

	a = begin_echo(&w, &g, text, BYTES);
	REQUIRE(a != NULL);
	CHECK_INT(rt_run_make(a, UAR_STR("other"), UAR_STR("elsewhere"), &other), UAR_OK);
	other->worker = &source.base;
	while (rt_has_room(a))
		uar_pump_turn(&w.pump);
	source.resumed = 0;
	settle(&w);
	CHECK_STR(uar_str_c(status_of(&w, &g, NULL)), "succeeded");
	CHECK(source.resumed > 0);
	rt_agg_hold(a);
	rt_run_over(other, UAR_ESTATE);
	rt_agg_drop(a);
	close_world(&w);
	uar_free(text);
}

TEST(an_echo_of_much_text_waits_until_there_is_room, "")
{
	enum { BYTES = 5000000 };
	struct guest g = { 0 };
	char *text = uar_alloc(BYTES);
	struct world w;
	struct agg *a;

	a = begin_echo(&w, &g, text, BYTES);
	REQUIRE(a != NULL);
	uar_store_memory_hold(w.store, true);
	settle(&w);
	CHECK(a->queued_bytes > 0 && a->queued_bytes <= UAR_LIMIT_RUN_PENDING_BYTES);
	uar_store_memory_hold(w.store, false);
	settle(&w);
	CHECK_STR(uar_str_c(status_of(&w, &g, NULL)), "succeeded");
	close_world(&w);
	uar_free(text);
}

/* --- a store that has enough to do --------------------------------------------------------- */

struct order {
	struct uar_watch watch;
	char sessions[4][UAR_LIMIT_ID_BYTES + 1]; /* of named conversations, as they were told */
	size_t count;
};

static void note_order(void *ctx, const struct uar_commit *c)
{
	struct order *o = ctx;
	uar_str thread = c->run->id.thread_id;

	if (thread.n > 1 || o->count == ARRAY_LEN(o->sessions))
		return;
	snprintf(o->sessions[o->count++], sizeof o->sessions[0], "%.*s", UAR_FMT(thread));
}

/* More of it does not send a session back to the end of those who wait. */
TEST(who_waits_longest_for_the_store_goes_next, "")
{
	static struct guest busy[UAR_LIMIT_RUN_BATCHES];
	struct guest a = { .op = { .conversation_id = UAR_STR("a") } };
	struct guest b = { .op = { .conversation_id = UAR_STR("b") } };
	struct guest more = { .op = { .conversation_id = UAR_STR("a") } };
	struct order o = { .watch = { .fn = note_order, .ctx = &o } };
	struct world w;

	open_world(&w);
	uar_store_memory_hold(w.store, true);
	for (size_t i = 0; i < ARRAY_LEN(busy); i++)
		ask(&w, &busy[i], &ann, "echo");
	settle(&w);
	CHECK_INT(uar_store_memory_waiting(w.store), UAR_LIMIT_RUN_BATCHES);
	ask(&w, &a, &ann, "echo");
	settle(&w);
	ask(&w, &b, &ann, "echo");
	settle(&w);
	ask(&w, &more, &ann, "echo");
	settle(&w);
	CHECK_INT(uar_store_memory_waiting(w.store), UAR_LIMIT_RUN_BATCHES);
	uar_runtime_watch(w.rt, &o.watch);
	uar_store_memory_hold(w.store, false);
	settle(&w);
	CHECK(a.done && b.done && more.done);
	CHECK_STR(uar_str_c(o.sessions[0]), "a");
	CHECK_STR(uar_str_c(o.sessions[1]), "b");
	uar_runtime_unwatch(&o.watch);
	close_world(&w);
}

/* --- space ------------------------------------------------------------------------------- */

static void tried(struct uar_run_create *op)
{
	UAR_OWNER(op, struct guest, op)->done = true;
}

/* A create that ends with `err`. */
static void try_create(struct world *w, const char *key, uar_err err)
{
	struct guest g = { .op = { .owner = ann,
				   .agent_id = UAR_STR("echo"),
				   .message = UAR_STR("hello"),
				   .idempotency_key = uar_str_c(key),
				   .done = tried } };

	CHECK_INT(uar_runtime_create_run(w->rt, &g.op), UAR_OK);
	uar_pump_until(&w->pump, &g.done);
	CHECK_INT(g.op.err, err);
	settle(w);
}

static const char *logged(FILE *f, char *out, size_t size)
{
	size_t n;

	rewind(f);
	n = fread(out, 1, size - 1, f);
	out[n] = 0;
	return out;
}

/* What writes nothing knows nothing of space. */
TEST(a_refusal_does_not_say_that_there_is_space_again, "")
{
	char text[4096];
	FILE *f = tmpfile();
	struct uar_log_out out;
	struct uar_log log = { .clock = &uar_clock_system, .level = UAR_LOG_INFO, .out = &out };
	struct world w;

	REQUIRE(f != NULL);
	uar_log_out_init(&out, fileno(f));
	open_world(&w);
	uar_stage_die(&w.pump, w.store, w.rt, 0, &w.model);
	w.log = &log;
	rise(&w);
	try_create(&w, "k", UAR_OK);
	uar_store_memory_fail_next(w.store, UAR_EDISKFULL);
	try_create(&w, "other", UAR_EDISKFULL);
	CHECK(strstr(logged(f, text, sizeof text), "store.full") != NULL);
	try_create(&w, "k", UAR_OK); /* the run that is there */
	CHECK(strstr(logged(f, text, sizeof text), "store.space") == NULL);
	try_create(&w, "other", UAR_OK);
	CHECK(strstr(logged(f, text, sizeof text), "store.space") != NULL);
	close_world(&w);
	uar_log_out_fini(&out);
	fclose(f);
}

/* --- a damaged row ------------------------------------------------------------------------ */

static const struct uar_store_ops *sound;
static void (*row_asked)(struct uar_runs_query *q);

static void damage(struct uar_runs_query *q)
{
	q->err = uar_error_set(&q->error, UAR_ECORRUPT, "the row is damaged");
	row_asked(q);
}

static uar_err damaged_runs(struct uar_store *s, struct uar_runs_query *q)
{
	row_asked = q->done;
	q->done = damage;
	return sound->runs(s, q);
}

TEST(a_key_whose_run_is_damaged_says_so, "")
{
	struct uar_store_ops damaged;
	struct guest g = { 0 };
	struct world w;

	open_world(&w);
	try_create(&w, "k", UAR_OK);
	sound = w.store->ops;
	damaged = *sound;
	damaged.runs = damaged_runs;
	w.store->ops = &damaged;
	g.op = (struct uar_run_create){ .owner = ann,
					.agent_id = UAR_STR("echo"),
					.message = UAR_STR("hello"),
					.idempotency_key = UAR_STR("k"),
					.done = tried };
	CHECK_INT(uar_runtime_create_run(w.rt, &g.op), UAR_OK);
	uar_pump_until(&w.pump, &g.done);
	CHECK_INT(g.op.err, UAR_ECORRUPT);
	CHECK_STR(uar_str_c(g.op.error.text), "the row is damaged");
	w.store->ops = sound;
	close_world(&w);
}

/* --- as many runs as there may be ------------------------------------------------------------ */

/* Those that cannot be read are none of the live ones, and come on top after a start. */
TEST(runs_that_are_there_are_recovered_beyond_the_limit_for_new_ones, "")
{
	struct uar_error error = { 0 };
	struct guest g = { 0 };
	struct world w;

	open_world(&w);
	ask(&w, &g, &ann, "demo");
	uar_pump_until(&w.pump, &g.done);
	uar_stage_die(&w.pump, w.store, w.rt, 0, &w.model);
	CHECK_INT(uar_stage_create(&(struct uar_stage_options){ .store = w.store,
								.scripted = w.model,
								.sched = &w.pump.sched,
								.rand = &uar_rand_system },
				   &w.rt),
		  UAR_OK);
	w.rt->stats.live_runs += UAR_LIMIT_RUNS_LIVE;
	REQUIRE(uar_runtime_recover(w.rt, &error) == UAR_OK);
	while (!uar_runtime_ready(w.rt))
		uar_pump_turn(&w.pump);
	try_create(&w, "one more", UAR_EBUSY);
	w.rt->stats.live_runs -= UAR_LIMIT_RUNS_LIVE;
	while (strcmp(status_of(&w, &g, NULL), "succeeded") != 0)
		uar_pump_turn(&w.pump);
	close_world(&w);
}

/* --- one id, two owners ------------------------------------------------------------------ */

TEST(two_owners_may_use_the_same_conversation_at_once, "")
{
	struct guest g[4];
	char session[4][64];
	struct world w;

	open_world(&w);
	for (int i = 0; i < 4; i++) {
		g[i] = (struct guest){ .op = { .conversation_id = UAR_STR("talk") } };
		ask(&w, &g[i], i % 2 ? &bob : &ann, "demo");
	}
	settle(&w);
	for (int i = 0; i < 4; i++)
		CHECK_STR(uar_str_c(status_of(&w, &g[i], session[i])), "succeeded");
	CHECK_STR(uar_str_c(session[2]), session[0]);
	CHECK_STR(uar_str_c(session[3]), session[1]);
	CHECK(strcmp(session[0], session[1]) != 0);
	close_world(&w);
}

struct listener {
	size_t events;
	bool ended;
	uar_err why;
};

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	(void)ev;
	((struct listener *)ctx)->events += n;
	return UAR_OK;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct listener *l = ctx;

	(void)error;
	l->ended = true;
	l->why = why;
}

static void listen(struct world *w, const struct uar_owner *owner, const char *run_id,
		   struct listener *l)
{
	struct uar_stream_options o = { .owner = *owner, .run_id = uar_str_c(run_id) };
	struct uar_stream *s;

	*l = (struct listener){ 0 };
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, l };
	CHECK_INT(uar_stream_open(w->parts.reader, &o, &s), UAR_OK);
}

TEST(a_run_of_another_owner_is_neither_heard_nor_cancelled, "")
{
	struct listener hers, his;
	struct guest g = { 0 };
	struct world w;

	open_world(&w);
	ask(&w, &g, &ann, "demo");
	uar_pump_until(&w.pump, &g.done);
	listen(&w, &ann, g.op.run_id, &hers);
	listen(&w, &bob, g.op.run_id, &his);
	g.op.owner = bob;
	cancel(&w, &g);
	settle(&w);
	CHECK(g.cancelled && g.cancel.err == UAR_ENOTFOUND);
	CHECK(hers.ended && !hers.why && hers.events > 0);
	CHECK(his.ended && his.why == UAR_ENOTFOUND && his.events == 0);
	close_world(&w);
}

/* In memory, too: session, thread and run of the same names stand side by side. */
TEST(the_same_ids_of_two_owners_are_two_things, "")
{
	static const struct uar_owner odd = { UAR_STR("t"), UAR_STR("wa"), UAR_STR("nn") };
	const struct uar_owner *owners[] = { &ann, &bob, &odd };
	struct live_run *r[3];
	struct agg *a[3];
	struct world w;

	open_world(&w);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(rt_agg_make(w.rt, owners[i], UAR_STR("s"), 0, &a[i]), UAR_OK);
		CHECK_INT(rt_run_make(a[i], UAR_STR("r"), UAR_STR("t"), &r[i]), UAR_OK);
	}
	for (int i = 0; i < 3; i++) {
		CHECK(rt_agg_find(w.rt, owners[i], UAR_STR("s")) == a[i]);
		CHECK(rt_run_find(w.rt, owners[i], UAR_STR("r")) == r[i]);
		CHECK(rt_run_find(w.rt, owners[i], UAR_STR("t")) == NULL);
	}
	rt_agg_hold(a[1]);
	rt_run_over(r[1], UAR_ESTATE);
	rt_agg_drop(a[1]);
	CHECK(rt_run_find(w.rt, &bob, UAR_STR("r")) == NULL);
	CHECK(rt_run_find(w.rt, &ann, UAR_STR("r")) == r[0]);
	close_world(&w);
}

TEST(a_clock_outside_of_time_begins_nothing_and_loses_nothing, "")
{
	static const struct uar_clock skewed = { skewed_wall, true_mono, NULL };
	static const int64_t skews[] = { INT64_C(-2500000000000000), INT64_C(253402300800000000) };

	for (size_t i = 0; i < ARRAY_LEN(skews); i++) {
		struct world w;
		struct guest under_way = { 0 }, late = { 0 };
		struct uar_runtime_stats stats;

		open_world(&w);
		skew_us = 0;
		w.pump.sched.clock = &skewed;
		ask(&w, &under_way, &ann, "demo");
		uar_pump_until(&w.pump, &under_way.done);
		skew_us = skews[i];
		late.op = (struct uar_run_create){ .owner = ann,
						   .agent_id = UAR_STR("echo"),
						   .idempotency_key = UAR_STR("k"),
						   .message = UAR_STR("hello"),
						   .done = created };
		CHECK_INT(uar_runtime_create_run(w.rt, &late.op), UAR_ECLOCK);
		for (int turns = 0; turns < 1000; turns++)
			(void)uar_pump_turn(&w.pump);
		skew_us = 0;
		do { /* what was refused is tried again after a while */
			(void)uar_pump_turn(&w.pump);
			uar_runtime_stats(w.rt, &stats);
		} while (stats.live_runs);
		CHECK_STR(uar_str_c(status_of(&w, &under_way, NULL)), "succeeded");
		close_world(&w);
	}
}
