/* limit_runs.c - the commits of short plugin runs, and nothing else.
 *
 *	limit_runs DIR RUNS CLIENTS
 *
 * The events and rows of so many runs are made beforehand, by the engine itself;
 * then they are appended, two commits a run, CLIENTS of them under way. What a
 * server does beside that is its protocol. Prints name=value lines. */
#include <stdlib.h>

#include "base/alloc.h"
#include "core/core.h"
#include "event/sizes.h"
#include "lib/measure.h"
#include "loop/loop.h"
#include "store/store.h"

enum { COMMITS = 2 };

struct commit {
	struct uar_event *events;
	size_t count;
	struct uar_run_row row;
	uint64_t after;
};

struct run {
	struct uar_arena arena;
	struct uar_session s; /* while it is made */
	struct uar_run r;
	struct commit commit[COMMITS];
	uar_str session_id;
};

struct bench {
	struct uar_loop *loop;
	struct uar_store *store;
	struct uar_uuid ids;
	struct run *runs;
	size_t count, next, ended;
	struct bench_samples latency;
};

struct client {
	struct bench *b;
	struct run *run;
	size_t step;
	int64_t began;
	struct uar_append a;
};

static const struct uar_owner owner = { UAR_STR("local"), UAR_STR("default"), UAR_STR("local") };

static uar_str new_id(struct bench *b, struct uar_arena *a)
{
	char id[UAR_UUID_TEXT + 1];

	uar_uuid_next(&b->ids, id);
	return uar_arena_str(a, uar_str_c(id));
}

static void decide(struct bench *b, struct run *run, size_t step, const struct uar_command *c)
{
	struct uar_session *s = &run->s;
	struct uar_run *r = &run->r;
	struct commit *k = &run->commit[step];
	struct uar_buf buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_core_env env = { .now_us = uar_clock_wall(&uar_clock_system),
				    .ids = &b->ids,
				    .arena = &run->arena,
				    .buf = &buf };
	struct uar_decision d = { 0 };
	struct uar_error error = { 0 };

	k->after = s->sequence;
	if (uar_core_decide(&env, s, r, c, &d, &error))
		bench_die("the engine refused: %s", uar_error_text(&error));
	k->events = d.events;
	k->count = d.event_count;
	if (uar_core_row(s, r, &buf, &run->arena, &k->row))
		bench_die("no row");
	k->row.owner = owner;
	uar_buf_fini(&buf);
}

static struct uar_command create_command(struct bench *b, struct uar_arena *a)
{
	struct uar_command c = { .kind = UAR_CMD_CREATE };

	c.create = (struct uar_create){
		.run_id = new_id(b, a),
		.turn_id = new_id(b, a),
		.task_id = new_id(b, a),
		.thread_id = new_id(b, a),
		.new_session = true,
		.new_thread = true,
		.source = UAR_STR("api"),
		.what = { .entry = UAR_ENTRY_PLUGIN,
			  .agent_id = UAR_STR("short:nop"),
			  .plugin_id = UAR_STR("short"),
			  .entry_id = UAR_STR("nop"),
			  .message = UAR_STR("{}"),
			  .message_bytes = 2,
			  .timeout_us = 300000000,
			  .attempt = 1,
			  .restart = UAR_RESTART_FAIL },
	};
	return c;
}

static void prepare(struct bench *b, struct run *run)
{
	struct uar_command create, finish = { .kind = UAR_CMD_FINISH };

	uar_arena_init(&run->arena, 0);
	run->session_id = new_id(b, &run->arena);
	uar_session_init(&run->s, &owner, uar_str_c(b->store->runtime_id), run->session_id);
	uar_run_init(&run->r);
	create = create_command(b, &run->arena);
	decide(b, run, 0, &create);
	finish.export = (struct uar_export){
		.id = new_id(b, &run->arena),
		.type = UAR_STR("json"),
		.role = UAR_STR("result"),
		.label = UAR_STR("result"),
		.category = UAR_STR("system"),
		.mime = UAR_STR("application/json"),
		.content = UAR_STR("{\"ok\":true}"),
		.sha256 =
			UAR_STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
		.bytes = 11,
	};
	finish.result_refs.ids =
		uar_arena_printf(&run->arena, "[\"%.*s\"]", UAR_FMT(finish.export.id));
	decide(b, run, 1, &finish);
	/* Rows point into the run; it stays, like everything here. */
}

static void appended(struct uar_append *a);

static void next(struct client *c)
{
	struct commit *k;
	uar_err e;

	if (c->step == COMMITS) {
		bench_sample(&c->b->latency, bench_now_us() - c->began);
		c->run = NULL;
		if (++c->b->ended == c->b->count)
			uar_loop_stop(c->b->loop);
	}
	if (!c->run) {
		if (c->b->next == c->b->count)
			return;
		c->run = &c->b->runs[c->b->next++];
		c->step = 0;
		c->began = bench_now_us();
	}
	k = &c->run->commit[c->step++];
	c->a = (struct uar_append){ .owner = owner,
				    .session_id = c->run->session_id,
				    .after = k->after,
				    .events = k->events,
				    .event_count = k->count,
				    .run = &k->row,
				    .done = appended };
	e = c->b->store->ops->append(c->b->store, &c->a);
	if (e)
		bench_die("append: %s %s", uar_err_text(e), c->a.error.text);
}

static void appended(struct uar_append *a)
{
	struct client *c = UAR_OWNER(a, struct client, a);

	if (a->err)
		bench_die("append: %s", uar_error_text(&a->error));
	next(c);
}

static void drained(void *ctx)
{
	uar_loop_stop(ctx);
}

int main(int argc, char **argv)
{
	struct bench b = { .count = argc > 2 ? (size_t)atol(argv[2]) : 2000 };
	size_t clients = argc > 3 ? (size_t)atol(argv[3]) : 64;
	struct client *c = bench_alloc(NULL, clients * sizeof *c);
	struct uar_store_options o = { .dir = argc > 1 ? argv[1] : "." };
	struct uar_error error = { 0 };
	int64_t wall, cpu;

	if (uar_loop_create(&uar_clock_system, &b.loop))
		bench_die("no loop");
	o.sched = uar_loop_sched(b.loop);
	if (uar_store_sqlite_create(&o, &b.store, &error))
		bench_die("%s", error.text);
	uar_uuid_init(&b.ids, &uar_clock_system, &uar_rand_system);
	b.runs = bench_alloc(NULL, b.count * sizeof *b.runs);
	for (size_t i = 0; i < b.count; i++)
		prepare(&b, &b.runs[i]);
	wall = bench_now_us();
	cpu = bench_cpu_us(0);
	for (size_t i = 0; i < clients; i++) {
		c[i] = (struct client){ .b = &b };
		next(&c[i]);
	}
	uar_loop_run(b.loop);
	bench_put("runs_per_s", (double)b.count * 1e6 / (double)(bench_now_us() - wall));
	bench_put("cpu_us_per_run", (double)(bench_cpu_us(0) - cpu) / (double)b.count);
	bench_put("latency_p50_us", (double)bench_percentile(&b.latency, 0.5));
	bench_put("latency_p99_us", (double)bench_percentile(&b.latency, 0.99));
	b.store->ops->drain(b.store, drained, b.loop);
	uar_loop_run(b.loop);
	uar_store_destroy(b.store);
	return 0;
}
