/* engine_test.c - the shell over the store in memory: how it drains, goes away,
 * begins again, and what it does with what cannot be appended. */
#include "engine/engine.h"

#include "base/alloc.h"
#include "engine/limits.h"
#include "event/limits.h"
#include "memory_store.h"
#include "stage.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	const char *fixtures;
	bool drained;
};

static void rise(struct world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .parts = &w->parts,
								     .store = w->store,
								     .scripted = w->model,
								     .fixtures_dir = w->fixtures });
}

static void open_world(struct world *w)
{
	*w = (struct world){ 0 };
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

static uar_err ask(struct world *w, struct guest *g, const char *agent, uar_str message)
{
	uar_str conversation = g->op.conversation_id, inputs = g->op.inputs;

	g->done = false;
	g->op = (struct uar_run_create){ .owner = owner,
					 .agent_id = uar_str_c(agent),
					 .message = message,
					 .inputs = inputs,
					 .conversation_id = conversation,
					 .done = created };
	return uar_runtime_create_run(w->rt, &g->op);
}

static void create(struct world *w, struct guest *g, const char *agent, uar_str message)
{
	CHECK_INT(ask(w, g, agent, message), UAR_OK);
	uar_pump_until(&w->pump, &g->done);
	CHECK_MSG(!g->op.err, "%s: %s", uar_err_name(g->op.err), g->op.error.text);
}

struct look {
	struct uar_read r;
	bool done;
};

static void looked(struct uar_read *r)
{
	UAR_OWNER(r, struct look, r)->done = true;
}

/* Text of the run so far; *out_end gets the class that ended it, COUNT: none has. */
static void told(struct world *w, const char *run_id, struct uar_buf *out,
		 enum uar_event_class *out_end)
{
	uint64_t after = 0;
	bool more = true;

	*out_end = UAR_EV_COUNT;
	uar_buf_clear(out);
	while (more) {
		struct look l = { .r = { .owner = owner,
					 .run_id = uar_str_c(run_id),
					 .after = after,
					 .limit = UAR_LIMIT_READ_PAGE,
					 .done = looked } };

		CHECK_INT(w->store->ops->read(w->store, &l.r), UAR_OK);
		uar_pump_until(&w->pump, &l.done);
		for (size_t i = 0; i < l.r.event_count; i++) {
			const struct uar_event *ev = &l.r.events[i];
			const struct uar_json *p;

			after = ev->run_sequence;
			if (ev->cls == UAR_EV_TASK_ATTEMPT_COMPLETED ||
			    ev->cls == UAR_EV_TASK_ATTEMPT_FAILED)
				*out_end = ev->cls;
			if (ev->cls == UAR_EV_MODEL_DELTA &&
			    !uar_json_parse(ev->payload, NULL, &l.r.arena, &p, NULL))
				uar_buf_add_str(out, uar_json_str(uar_json_get(p, UAR_STR("text")),
								  UAR_STR("")));
		}
		more = l.r.more && l.r.event_count;
		uar_store_read_fini(&l.r);
	}
}

/* Turns until the run is over. */
static enum uar_event_class finish(struct world *w, const struct guest *g, struct uar_buf *text)
{
	enum uar_event_class end = UAR_EV_COUNT;

	while (end == UAR_EV_COUNT) {
		uar_pump_turn(&w->pump);
		told(w, g->op.run_id, text, &end);
	}
	return end;
}

static void drained(void *ctx)
{
	((struct world *)ctx)->drained = true;
}

/* --- tests ---------------------------------------------------------------------------- */

TEST(agents_are_found_by_name_and_in_order, "")
{
	struct world w;
	size_t n = 0;

	open_world(&w);
	for (const struct uar_agent *a; (a = uar_workers_agent_at(w.parts.workers, n)); n++) {
		CHECK(uar_agent_find(uar_str_c(a->id)) == a);
		CHECK(a->title[0] && a->doc[0]);
		CHECK(a->entry != UAR_ENTRY_LLM || a->instructions);
	}
	CHECK_INT(n, 6);
	CHECK(!uar_agent_find(UAR_STR("")) && !uar_agent_find(UAR_STR("Echo")));
	CHECK(!uar_agent_find(UAR_STR("echo ")));
	close_world(&w);
}

TEST(requests_that_cannot_be_are_refused_at_once, "")
{
	char *big = uar_zalloc(UAR_LIMIT_PREVIEW_BYTES + 2);
	struct guest g = { 0 };
	struct world w;

	open_world(&w);
	uar_stage_settle(&w.pump); /* the start has looked for unfinished tasks */
	memset(big, ' ', UAR_LIMIT_PREVIEW_BYTES + 1);
	CHECK_INT(ask(&w, &g, "nobody", UAR_STR("x")), UAR_ENOTFOUND);
	g.op.conversation_id = UAR_STR("a b");
	CHECK_INT(ask(&w, &g, "echo", UAR_STR("x")), UAR_EINVALID);
	g.op.conversation_id = UAR_STR_NONE;
	g.op.inputs = uar_str_n(big, UAR_LIMIT_PREVIEW_BYTES + 1);
	CHECK_INT(ask(&w, &g, "echo", UAR_STR("x")), UAR_ETOOBIG);
	CHECK(!uar_pump_turn(&w.pump) && !g.done);
	close_world(&w);
	uar_free(big);
}

TEST(an_answer_longer_than_a_commit_goes_on_after_a_kill_where_it_was, "")
{
	enum { BYTES = 3000000 };
	struct uar_buf text = uar_buf_make(2 * BYTES);
	char *message = uar_alloc(BYTES);
	enum uar_event_class end = UAR_EV_COUNT;
	struct guest g = { 0 };
	struct world w;

	for (size_t i = 0; i < BYTES; i++)
		message[i] = (char)('a' + i % 23);
	open_world(&w);
	create(&w, &g, "echo", uar_str_n(message, BYTES));
	while (text.n == 0) {
		uar_pump_turn(&w.pump);
		told(&w, g.op.run_id, &text, &end);
	}
	CHECK(text.n < BYTES && end == UAR_EV_COUNT);
	die(&w, 0);
	rise(&w);
	CHECK_INT(finish(&w, &g, &text), UAR_EV_TASK_ATTEMPT_COMPLETED);
	CHECK(uar_str_eq(uar_buf_str(&text), uar_str_n(message, BYTES)));
	close_world(&w);
	uar_buf_fini(&text);
	uar_free(message);
}

/* Kills the world after every number of turns; whoever was answered is found again. */
TEST(whoever_was_answered_before_a_kill_is_answered_after_it, "")
{
	for (size_t keep = 0; keep < 2; keep++)
		for (int turns = 0; turns < 30; turns++) {
			struct uar_buf text = uar_buf_make(65536);
			struct guest g = { .op = { .conversation_id = UAR_STR("talk") } }, h = g;
			struct world w;

			open_world(&w);
			CHECK_INT(ask(&w, &g, "demo", UAR_STR("first")), UAR_OK);
			CHECK_INT(ask(&w, &h, "assistant", UAR_STR("second")), UAR_OK);
			for (int i = 0; i < turns; i++)
				uar_pump_turn(&w.pump);
			die(&w, keep);
			rise(&w);
			if (g.done)
				CHECK_INT(finish(&w, &g, &text), UAR_EV_TASK_ATTEMPT_COMPLETED);
			if (h.done)
				CHECK_INT(finish(&w, &h, &text), UAR_EV_TASK_ATTEMPT_COMPLETED);
			close_world(&w);
			uar_buf_fini(&text);
		}
}

struct tally {
	struct uar_watch watch;
	size_t commits, rebuilt, begun, cancelled;
};

static void count_commit(void *ctx, const struct uar_commit *c)
{
	struct tally *t = ctx;

	t->commits++;
	for (size_t i = 0; i < c->event_count; i++) {
		t->rebuilt += c->events[i].cls == UAR_EV_HISTORY_RECONSTRUCTED;
		t->begun += c->events[i].cls == UAR_EV_TASK_ATTEMPT_STARTED;
		t->cancelled += c->events[i].cls == UAR_EV_TASK_CANCELLED;
	}
}

static void stopped(struct uar_run_cancel_op *op)
{
	*(bool *)op->ctx = true;
}

/* Whatever waits in a conversation: a restart says once that it was rebuilt, and a cancel
 * stands behind that alone. */
TEST(those_that_wait_do_not_say_that_they_were_recovered, "")
{
	enum { WAIT = 40 };
	struct guest g[1 + WAIT];
	struct tally t = { .watch = { .fn = count_commit } };
	struct uar_buf text = uar_buf_make(65536);
	bool told_so = false;
	struct uar_run_cancel_op cancel = { .owner = owner, .done = stopped, .ctx = &told_so };
	struct world w;

	t.watch.ctx = &t;
	open_world(&w);
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		g[i] = (struct guest){ .op = { .conversation_id = UAR_STR("talk") } };
		CHECK_INT(ask(&w, &g[i], "demo", UAR_STR("hello")), UAR_OK);
	}
	while (!g[WAIT].done)
		uar_pump_turn(&w.pump);
	die(&w, 0);
	rise(&w);
	uar_runtime_watch(w.rt, &t.watch);
	while (!uar_runtime_ready(w.rt))
		uar_pump_turn(&w.pump);
	cancel.run_id = uar_str_c(g[WAIT].op.run_id);
	CHECK_INT(uar_runtime_cancel_run(w.rt, &cancel), UAR_OK);
	uar_pump_until(&w.pump, &told_so);
	CHECK_INT(cancel.err, UAR_OK);
	CHECK_INT(t.rebuilt, 1);
	CHECK_MSG(t.commits < WAIT / 2, "%zu", t.commits);
	for (size_t i = 0; i < WAIT; i++)
		CHECK_INT(finish(&w, &g[i], &text), UAR_EV_TASK_ATTEMPT_COMPLETED);
	CHECK_INT(t.rebuilt, 1);
	CHECK_INT(t.cancelled, 1);
	CHECK_MSG(t.begun >= WAIT - 1 && t.begun <= WAIT, "%zu", t.begun);
	uar_runtime_unwatch(&t.watch);
	close_world(&w);
	uar_buf_fini(&text);
}

/* Destroyed after every number of turns, with the store gone: nothing may leak. */
TEST(a_runtime_may_go_away_with_work_in_flight, "")
{
	for (int turns = 0; turns < 40; turns++) {
		char long_message[5000];
		struct guest g[4] = { { .op = { .conversation_id = UAR_STR("talk") } } };
		struct uar_run_cancel_op cancel = { .owner = owner, .run_id = UAR_STR("none") };
		struct world w;

		memset(long_message, 'x', sizeof long_message);
		open_world(&w);
		g[1] = g[0];
		CHECK_INT(ask(&w, &g[0], "demo", UAR_STR("first")), UAR_OK);
		CHECK_INT(ask(&w, &g[1], "assistant", UAR_STR("second")), UAR_OK);
		CHECK_INT(ask(&w, &g[2], "echo", uar_str_n(long_message, 5000)), UAR_OK);
		CHECK_INT(ask(&w, &g[3], "echo", UAR_STR("short")), UAR_OK);
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		cancel.done = NULL; /* never: the store is gone before it answers */
		CHECK_INT(uar_runtime_cancel_run(w.rt, &cancel), UAR_OK);
		close_world(&w);
	}
}

/* Drained after every number of turns: all that was asked is answered before `done`,
 * and what had begun goes on in the next life. */
TEST(a_drain_answers_everybody_and_loses_nothing, "")
{
	for (int turns = 0; turns < 40; turns++) {
		struct uar_buf text = uar_buf_make(65536);
		struct guest g[3] = { { .op = { .conversation_id = UAR_STR("talk") } } };
		struct world w;

		open_world(&w);
		g[1] = g[0];
		CHECK_INT(ask(&w, &g[0], "demo", UAR_STR("first")), UAR_OK);
		CHECK_INT(ask(&w, &g[1], "assistant", UAR_STR("second")), UAR_OK);
		CHECK_INT(ask(&w, &g[2], "echo", UAR_STR("short")), UAR_OK);
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		uar_runtime_drain(w.rt, drained, &w);
		CHECK(!w.drained);
		CHECK(!uar_runtime_ready(w.rt));
		uar_pump_until(&w.pump, &w.drained);
		for (int i = 0; i < 3; i++)
			CHECK_MSG(g[i].done && (!g[i].op.err || g[i].op.err == UAR_EDRAINING),
				  "turn %d: %d %s", turns, i, uar_err_name(g[i].op.err));
		CHECK_INT(ask(&w, &(struct guest){ 0 }, "echo", UAR_STR("x")), UAR_EDRAINING);
		die(&w, 0);
		rise(&w);
		for (int i = 0; i < 3; i++)
			if (!g[i].op.err)
				CHECK_INT(finish(&w, &g[i], &text), UAR_EV_TASK_ATTEMPT_COMPLETED);
		close_world(&w);
		uar_buf_fini(&text);
	}
}

static void write_fixture(const char *dir, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s.jsonl", dir, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

#define SAY(TEXT) "{\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"" TEXT "\"}}\n"

/* What a start has not read yet is left to the next one, and nothing is written for it; who
 * waited for its session is told. */
TEST(a_stop_during_recovery_writes_nothing, "")
{
	enum { RUNS = UAR_LIMIT_LOAD_AT_ONCE + 8 };
	struct uar_buf text = uar_buf_make(65536);
	char talk[RUNS][16];
	struct guest g[RUNS] = { 0 }, late = { 0 };
	struct uar_store_stats before, after;
	struct world w;

	open_world(&w);
	for (int i = 0; i < RUNS; i++) {
		snprintf(talk[i], sizeof talk[i], "talk-%d", i);
		g[i].op.conversation_id = uar_str_c(talk[i]);
		create(&w, &g[i], "demo", UAR_STR("hello"));
	}
	die(&w, 0);
	w.store->ops->stats(w.store, &before);
	rise(&w);
	late.op.conversation_id = uar_str_c(talk[RUNS - 1]);
	CHECK_INT(ask(&w, &late, "echo", UAR_STR("x")), UAR_OK);
	uar_runtime_drain(w.rt, drained, &w);
	uar_pump_until(&w.pump, &w.drained);
	CHECK(late.done);
	CHECK_INT(late.op.err, UAR_EDRAINING);
	w.store->ops->stats(w.store, &after);
	CHECK_INT(after.events, before.events);
	die(&w, 0);
	rise(&w);
	for (int i = 0; i < RUNS; i++)
		CHECK_INT(finish(&w, &g[i], &text), UAR_EV_TASK_ATTEMPT_COMPLETED);
	close_world(&w);
	uar_buf_fini(&text);
}

static uar_err cannot_look(struct uar_store *s, struct uar_thread_query *q)
{
	(void)s, (void)q;
	return UAR_ECORRUPT;
}

TEST(who_waits_for_a_session_that_cannot_be_read_is_told_of_a_stop, "")
{
	struct guest g = { .op = { .conversation_id = UAR_STR("talk") } }, late = g;
	const struct uar_store_ops *ops;
	struct uar_store_ops blind;
	struct world w;

	open_world(&w);
	create(&w, &g, "demo", UAR_STR("hello"));
	die(&w, 0);
	ops = w.store->ops;
	blind = *ops;
	blind.thread = cannot_look;
	w.store->ops = &blind;
	rise(&w);
	CHECK_INT(ask(&w, &late, "demo", UAR_STR("x")), UAR_OK);
	uar_stage_settle(&w.pump);
	CHECK(!late.done);
	uar_runtime_drain(w.rt, drained, &w);
	uar_pump_until(&w.pump, &w.drained);
	CHECK(late.done);
	CHECK_INT(late.op.err, UAR_EDRAINING);
	w.store->ops = ops;
	close_world(&w);
}

TEST(a_bad_line_takes_no_good_one_with_it, "")
{
	static const struct {
		const char *bad, *said;
	} rows[] = {
		{ "{\"type\":\"Unheard\",\"data\":{}}\n", "one two " },
		{ "{\"type\":\"Citation\",\"data\":{\"sources\":[1]}}\n", "one two " },
		{ "not json\n", "one two " },
		{ "{\"type\":\"ToolEnd\",\"data\":{\"tool_call_id\":\"c\"}}\n", "one two " },
		{ "", "one two three " },
	};
	const char *dir = uar_test_dir();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct guest g = { .op = { .inputs = UAR_STR(
						   "{\"fixture\":\"f\",\"pace\":\"full\"}") } };
		struct uar_buf text = uar_buf_make(65536);
		char all[1024];
		struct world w;

		snprintf(all, sizeof all, SAY("one ") SAY("two ") "%s" SAY("three "), rows[i].bad);
		write_fixture(dir, "f", all);
		open_world(&w);
		die(&w, 0);
		w.fixtures = dir;
		rise(&w);
		create(&w, &g, "fixture", UAR_STR(""));
		CHECK_INT(finish(&w, &g, &text), rows[i].bad[0] ? UAR_EV_TASK_ATTEMPT_FAILED
								: UAR_EV_TASK_ATTEMPT_COMPLETED);
		CHECK_STR(uar_buf_str(&text), rows[i].said);
		close_world(&w);
		uar_buf_fini(&text);
	}
}

TEST(a_full_disk_is_asked_again_later_and_nothing_is_lost, "")
{
	struct uar_buf text = uar_buf_make(65536);
	struct guest g = { 0 };
	struct world w;

	open_world(&w);
	create(&w, &g, "echo", UAR_STR("hello"));
	uar_store_memory_fail_next(w.store, UAR_EDISKFULL);
	CHECK_INT(finish(&w, &g, &text), UAR_EV_TASK_ATTEMPT_COMPLETED);
	CHECK_STR(uar_buf_str(&text), "hello");
	close_world(&w);
	uar_buf_fini(&text);
}

TEST(a_refusal_that_cannot_be_made_sure_of_is_not_told, "")
{
	struct uar_run_create op = { .owner = owner,
				     .agent_id = UAR_STR("nobody"),
				     .idempotency_key = UAR_STR("k"),
				     .done = created };
	struct world w;

	open_world(&w);
	w.store->ops->drain(w.store, drained, &w);
	CHECK_INT(uar_runtime_create_run(w.rt, &op), UAR_EDRAINING);
	CHECK_STR(uar_str_c(op.error.text), "");
	close_world(&w);
}
