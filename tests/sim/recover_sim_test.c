/* recover_sim_test.c - runs that cannot be read after a start: tried again, ended as
 * lost, or left alone; never in the way of others. Time is the simulation's. */
#include "stage.h"
#include "test.h"

#include "core/view.h"
#include "event/limits.h"
#include "sim/checker.h"
#include "memory_store.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct place {
	struct sim_world w;
	struct uar_runtime *rt;
	uar_str bad;	    /* run whose reads fail */
	unsigned fails;	    /* so many times */
	uint64_t good_from; /* reads behind it succeed; 0: none does */
};

static uar_err fault(struct sim_world *w, const struct uar_read *r)
{
	struct place *p = UAR_OWNER(w, struct place, w);

	if (!p->fails || !uar_str_eq(r->run_id, p->bad) ||
	    (p->good_from && r->after >= p->good_from))
		return UAR_OK;
	p->fails--;
	return UAR_ECORRUPT;
}

static void rise(struct place *p)
{
	struct uar_stage_options o = { .sched = &p->w.sched,
				       .store = &p->w.store,
				       .rand = &p->w.rand,
				       .scripted = &p->w.model };

	CHECK_INT(uar_stage_create(&o, &p->rt), UAR_OK);
	CHECK_INT(uar_runtime_recover(p->rt, NULL), UAR_OK);
}

struct guest {
	struct uar_run_create op;
	struct uar_run_cancel_op cancel;
	bool done, cancelled;
};

static void created(struct uar_run_create *op)
{
	CHECK_INT(op->err, UAR_OK);
	UAR_OWNER(op, struct guest, op)->done = true;
}

static void cancelled(struct uar_run_cancel_op *op)
{
	UAR_OWNER(op, struct guest, cancel)->cancelled = true;
}

static void ask(struct place *p, struct guest *g)
{
	*g = (struct guest){ .op = { .owner = owner,
				     .agent_id = UAR_STR("demo"),
				     .message = UAR_STR("hello"),
				     .conversation_id = UAR_STR("talk"),
				     .done = created } };
	CHECK_INT(uar_runtime_create_run(p->rt, &g->op), UAR_OK);
	while (!g->done && sim_step(&p->w))
		;
}

static uar_err cancel(struct place *p, struct guest *g)
{
	g->cancelled = false;
	g->cancel = (struct uar_run_cancel_op){ .owner = owner,
						.run_id = uar_str_c(g->op.run_id),
						.done = cancelled };
	CHECK_INT(uar_runtime_cancel_run(p->rt, &g->cancel), UAR_OK);
	while (!g->cancelled && sim_step(&p->w))
		;
	return g->cancel.err;
}

struct row {
	struct uar_runs_query q;
	bool done;
};

static void found(struct uar_runs_query *q)
{
	UAR_OWNER(q, struct row, q)->done = true;
}

static const char *status_of(struct place *p, const struct guest *g, bool *out_lost)
{
	struct row r = { .q = { .owner = owner,
				.run_id = uar_str_c(g->op.run_id),
				.limit = 1,
				.done = found } };
	const char *status;

	CHECK_INT(p->w.disk->ops->runs(p->w.disk, &r.q), UAR_OK);
	while (!r.done && sim_run_task(&p->w))
		;
	CHECK_INT(r.q.err, UAR_OK);
	status = uar_status_record_parse(r.q.rows[0].status);
	*out_lost = strstr(r.q.rows[0].detail.p, "\"code\":\"LOST\"") != NULL;
	uar_store_query_fini(&r.q);
	return status;
}

/* Well or badly: this world's model fails now and then. */
static bool ended(struct place *p, const struct guest *g, bool *out_lost)
{
	const char *status = status_of(p, g, out_lost);

	return strcmp(status, "succeeded") == 0 || strcmp(status, "failed") == 0;
}

/* Two turns of one conversation are under way when the process dies. */
static void open_place(struct place *p, struct guest g[2])
{
	*p = (struct place){ 0 };
	sim_world_init(&p->w, 7);
	p->w.read_fault = fault;
	rise(p);
	ask(p, &g[0]);
	ask(p, &g[1]);
	sim_kill(&p->w);
	while (sim_store_pending(&p->w) || !uar_list_empty(&p->w.tasks))
		sim_step(&p->w);
	uar_runtime_destroy(p->rt);
	sim_reborn(&p->w);
	p->bad = uar_str_c(g[0].op.run_id);
}

static void close_place(struct place *p)
{
	uar_runtime_destroy(p->rt);
	sim_world_fini(&p->w);
}

enum { EVER = 1000000 };

TEST(a_run_that_could_not_be_read_for_a_while_goes_on, "")
{
	for (unsigned fails = 1; fails <= 5; fails++) {
		struct guest g[2];
		struct place p;
		bool lost;

		open_place(&p, g);
		p.fails = fails;
		rise(&p);
		sim_settle(&p.w, 3600000000);
		CHECK_INT(p.fails, 0);
		CHECK(ended(&p, &g[0], &lost) && !lost);
		CHECK(ended(&p, &g[1], &lost) && !lost);
		close_place(&p);
	}
}

struct told {
	struct uar_read r;
	bool done;
};

static void was_read(struct uar_read *r)
{
	UAR_OWNER(r, struct told, r)->done = true;
}

/* How often the log of the run has the fact, and what a read model of it then shows. */
static int count_facts(struct place *p, const struct guest *g, enum uar_event_class cls,
		       struct uar_buf *shown)
{
	struct told t = { .r = { .owner = owner,
				 .run_id = uar_str_c(g->op.run_id),
				 .limit = UAR_LIMIT_READ_PAGE,
				 .done = was_read } };
	struct uar_sview view;
	int n = 0;

	CHECK_INT(p->w.disk->ops->read(p->w.disk, &t.r), UAR_OK);
	while (!t.done && sim_run_task(&p->w))
		;
	CHECK(!t.r.err && !t.r.more);
	uar_sview_init(&view);
	for (size_t i = 0; i < t.r.event_count; i++) {
		t.r.events[i].sequence = i + 1; /* facts of the thread stand between them */
		n += t.r.events[i].cls == cls;
		CHECK_INT(uar_sview_fold(&view, &t.r.events[i]), UAR_OK);
	}
	CHECK_INT(uar_sview_write(&view, shown), UAR_OK);
	uar_buf_add_char(shown, 0);
	uar_sview_fini(&view);
	uar_store_read_fini(&t.r);
	return n;
}

TEST(a_run_whose_events_are_damaged_ends_as_lost, "EVT-070")
{
	struct uar_buf shown = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	struct guest g[2];
	struct place p;
	bool lost;

	open_place(&p, g);
	p.fails = EVER;
	p.good_from = 1;
	rise(&p);
	sim_settle(&p.w, 3600000000);
	CHECK_STR(uar_str_c(status_of(&p, &g[0], &lost)), "failed");
	CHECK(lost);
	CHECK_INT(count_facts(&p, &g[0], UAR_EV_RUNTIME_ERROR, &shown), 1);
	CHECK(shown.p && strstr(shown.p, "LOG_UNREADABLE") && strstr(shown.p, "runtime.error"));
	uar_buf_fini(&shown);
	CHECK_INT(cancel(&p, &g[0]), UAR_OK); /* it is over */
	CHECK(ended(&p, &g[1], &lost) && !lost);
	close_place(&p);
}

TEST(a_run_that_cannot_even_be_ended_is_left_alone_and_says_so, "")
{
	struct guest g[3];
	struct place p;
	bool lost;

	open_place(&p, g);
	p.fails = EVER;
	rise(&p);
	while (!uar_runtime_ready(p.rt) && sim_step(&p.w))
		;
	CHECK(uar_runtime_ready(p.rt));
	CHECK_INT(cancel(&p, &g[0]), UAR_EBUSY); /* while it is tried again */
	sim_settle(&p.w, 3600000000);
	CHECK_INT(cancel(&p, &g[0]), UAR_ECORRUPT);
	CHECK_STR(uar_str_c(status_of(&p, &g[0], &lost)), "running");
	CHECK(ended(&p, &g[1], &lost) && !lost);
	ask(&p, &g[2]);
	sim_settle(&p.w, 3600000000);
	CHECK(ended(&p, &g[2], &lost) && !lost);
	close_place(&p);
}
