/* flow_fuzz.c - workflows: whatever is accepted can be stepped through without calls, and what is
 * refused is told with a place. */
#include <stdlib.h>

#include "flow/flow.h"

static void step(const struct uar_flow *f, struct uar_arena *arena)
{
	static const struct uar_json inputs = { .kind = UAR_JSON_OBJECT };
	struct uar_flow_ask ask = { .flow = f, .inputs = &inputs };
	struct uar_buf b = uar_buf_make(1 << 20);
	struct uar_flow_step *s = NULL;
	size_t count;

	if (!uar_flow_step(&ask, arena, &s)) {
		if (s->want_count > UAR_LIMIT_FLOW_CALLS + 1)
			abort();
		if (uar_flow_write_changes(f, NULL, s, &b, &count) == UAR_OK && count == 0)
			abort(); /* the input is over at once */
	}
	uar_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct uar_flow_problems problems;
	static struct uar_flow flow;
	const struct uar_json *j = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(uar_str_n((const char *)data, size), NULL, &arena, &j, NULL)) {
		uar_flow_check(j, &flow, &problems);
		for (size_t i = 0; i < problems.count; i++)
			if (!problems.at[i].message[0])
				abort();
		if (!problems.errors && !problems.no_memory)
			step(&flow, &arena);
	}
	uar_arena_fini(&arena);
	return 0;
}
