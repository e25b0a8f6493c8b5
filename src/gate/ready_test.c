/* ready_test.c - a request that failed for want of memory, reads as well, makes the server not
 * ready. */
#include "gate/gate_int.h"

#include "stage.h"
#include "test.h"
#include "base/alloc.h"

static struct call *new_call(struct uar_gate *g)
{
	struct call *c = uar_zalloc(sizeof *c);

	CHECK(c != NULL);
	c->g = g;
	uar_list_init(&c->node);
	return c;
}

TEST(a_read_without_memory_makes_the_server_not_ready, "")
{
	static const struct {
		uar_err e;
		bool more, is_short;
	} rows[] = {
		{ UAR_ENOTFOUND, false, false },
		{ UAR_EBUSY, true, false },
		{ UAR_ENOMEM, false, true },
		{ UAR_ENOMEM, true, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct uar_gate g = { .pings_due = 0 };
		struct uar_pump pump;
		struct uar_store *store;
		struct uar_runtime *rt;

		uar_stage_open(&pump, &store, NULL);
		rt = uar_stage_rise(&pump, (struct uar_stage_options){ .store = store });
		g.o.runtime = rt;
		CHECK(!uar_runtime_short_of_memory(rt));
		if (rows[i].more)
			gate_problem_more(new_call(&g), rows[i].e, NULL, "x", UAR_STR("1"));
		else
			gate_problem(new_call(&g), rows[i].e, NULL);
		CHECK_MSG(uar_runtime_short_of_memory(rt) == rows[i].is_short, "row %zu", i);
		uar_stage_close(&pump, store, rt, NULL);
	}
}
