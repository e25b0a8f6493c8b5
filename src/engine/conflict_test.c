/* conflict_test.c - a look-up that is told late: the session has gone on, or begun,
 * since it was carried out. The request finds its conversation all the same. */
#include "engine/engine.h"

#include "memory_store.h"
#include "stage.h"
#include "test.h"

enum { LATE = 4 };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

/* The store in memory; look-ups of threads wait when `hold` says so. */
struct world {
	struct uar_pump pump;
	struct uar_store store, *disk;
	struct uar_runtime *rt;
	bool hold;
	struct late {
		struct uar_thread_query q, *asked;
		bool done;
	} late[LATE];
	size_t late_count;
};

static struct world *world_of(struct uar_store *s)
{
	return UAR_OWNER(s, struct world, store);
}

static uar_err fwd_append(struct uar_store *s, struct uar_append *a)
{
	return world_of(s)->disk->ops->append(world_of(s)->disk, a);
}

static uar_err fwd_read(struct uar_store *s, struct uar_read *r)
{
	return world_of(s)->disk->ops->read(world_of(s)->disk, r);
}

static uar_err fwd_runs(struct uar_store *s, struct uar_runs_query *q)
{
	return world_of(s)->disk->ops->runs(world_of(s)->disk, q);
}

static void carried_out(struct uar_thread_query *q)
{
	UAR_OWNER(q, struct late, q)->done = true;
}

static uar_err fwd_thread(struct uar_store *s, struct uar_thread_query *q)
{
	struct world *w = world_of(s);
	struct late *l = &w->late[w->late_count];

	if (!w->hold)
		return w->disk->ops->thread(w->disk, q);
	w->late_count++;
	*l = (struct late){ .q = *q, .asked = q };
	l->q.done = carried_out;
	return w->disk->ops->thread(w->disk, &l->q);
}

static uar_err fwd_rows(struct uar_store *s, struct uar_rows_query *q)
{
	return world_of(s)->disk->ops->rows(world_of(s)->disk, q);
}

static uar_err fwd_each_live(struct uar_store *s, void (*fn)(void *ctx, const struct uar_run_row *),
			     void *ctx, struct uar_error *error)
{
	return world_of(s)->disk->ops->each_live(world_of(s)->disk, fn, ctx, error);
}

static const struct uar_store_ops ops = { .abi = 1,
					  .size = sizeof ops,
					  .append = fwd_append,
					  .read = fwd_read,
					  .runs = fwd_runs,
					  .thread = fwd_thread,
					  .each_live = fwd_each_live,
					  .rows = fwd_rows };

static void tell_late(struct world *w)
{
	w->hold = false;
	for (size_t i = 0; i < w->late_count; i++) {
		struct uar_thread_query *q = w->late[i].asked;

		uar_pump_until(&w->pump, &w->late[i].done);
		q->err = w->late[i].q.err;
		q->last_sequence = w->late[i].q.last_sequence;
		memcpy(q->found_session, w->late[i].q.found_session, sizeof q->found_session);
		q->done(q);
	}
	w->late_count = 0;
}

static void open_world(struct world *w)
{
	struct uar_store_options so = { .sched = &w->pump.sched };
	struct uar_stage_options o = { .sched = &w->pump.sched,
				       .store = &w->store,
				       .rand = &uar_rand_system };

	*w = (struct world){ .store = { .ops = &ops } };
	uar_pump_init(&w->pump);
	CHECK_INT(uar_store_memory_create(&so, &w->disk, NULL), UAR_OK);
	memcpy(w->store.runtime_id, w->disk->runtime_id, sizeof w->store.runtime_id);
	CHECK_INT(uar_stage_create(&o, &w->rt), UAR_OK);
	CHECK_INT(uar_runtime_recover(w->rt, NULL), UAR_OK);
}

static void close_world(struct world *w)
{
	uar_store_destroy(w->disk);
	uar_runtime_destroy(w->rt);
	uar_pump_fini(&w->pump);
}

struct guest {
	struct uar_run_create op;
	bool done;
};

static void created(struct uar_run_create *op)
{
	UAR_OWNER(op, struct guest, op)->done = true;
}

static void ask(struct world *w, struct guest *g)
{
	*g = (struct guest){ .op = { .owner = owner,
				     .agent_id = UAR_STR("echo"),
				     .message = UAR_STR("hello"),
				     .conversation_id = UAR_STR("talk"),
				     .done = created } };
	CHECK_INT(uar_runtime_create_run(w->rt, &g->op), UAR_OK);
}

static void settle(struct world *w)
{
	while (uar_pump_turn(&w->pump))
		;
}

struct row {
	struct uar_runs_query q;
	bool done;
};

static void found(struct uar_runs_query *q)
{
	UAR_OWNER(q, struct row, q)->done = true;
}

/* All runs there are: each succeeded, all in one session. */
static void check_runs(struct world *w, size_t want)
{
	struct row r = { .q = { .owner = owner, .limit = 20, .done = found } };

	CHECK_INT(w->disk->ops->runs(w->disk, &r.q), UAR_OK);
	uar_pump_until(&w->pump, &r.done);
	CHECK_INT(r.q.row_count, want);
	for (size_t i = 0; i < r.q.row_count; i++) {
		CHECK_STR(r.q.rows[i].status, "succeeded");
		CHECK(uar_str_eq(r.q.rows[i].session_id, r.q.rows[0].session_id));
	}
	uar_store_query_fini(&r.q);
}

/* `before` runs exist when the look-ups are carried out, `meanwhile` more when they
 * are told to `late` requests. */
static void play(size_t before, size_t meanwhile, size_t late)
{
	struct guest g[LATE * 3];
	size_t n = 0;
	struct world w;

	open_world(&w);
	for (; n < before; n++) {
		ask(&w, &g[n]);
		settle(&w);
	}
	w.hold = true;
	for (; n < before + late; n++)
		ask(&w, &g[n]);
	settle(&w);
	w.hold = false;
	for (; n < before + late + meanwhile; n++) {
		ask(&w, &g[n]);
		settle(&w);
	}
	tell_late(&w);
	settle(&w);
	for (size_t i = 0; i < n; i++)
		CHECK_MSG(g[i].done && !g[i].op.err, "%zu of %zu, %zu, %zu: %s", i, before,
			  meanwhile, late, uar_err_name(g[i].op.err));
	check_runs(&w, n);
	close_world(&w);
}

TEST(a_conversation_that_began_meanwhile_is_joined, "")
{
	for (size_t late = 1; late <= LATE; late++)
		for (size_t meanwhile = 0; meanwhile < 3; meanwhile++)
			play(0, meanwhile, late);
}

TEST(a_conversation_that_went_on_meanwhile_is_joined_where_it_is, "")
{
	for (size_t late = 1; late <= LATE; late++)
		for (size_t meanwhile = 0; meanwhile < 3; meanwhile++)
			play(1 + meanwhile, meanwhile, late);
}
