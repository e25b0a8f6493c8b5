/* model_policy_fuzz.c - policies of routing, and the documents that a route is chosen from. */
#include <stdlib.h>

#include "core/route.h"
#include "model/policy.h"

static void choose(uar_str text, struct uar_arena *arena)
{
	struct uar_route r;

	if (uar_route_choose(text, arena, &r))
		return;
	if (r.allowed > r.count || r.count > UAR_ROUTE_CANDIDATES)
		abort();
	for (size_t i = 0; i < r.allowed; i++)
		if (r.order[i] >= r.count || r.at[r.order[i]].excluded)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text = { (const char *)data, size };
	const struct uar_json *root = NULL;
	struct uar_model_policy policy;
	struct uar_error error = { 0 };
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	choose(text, &arena);
	if (!uar_json_parse(text, NULL, &arena, &root, NULL) &&
	    !uar_model_policy_read(root, &policy, &error) && !policy.count)
		abort();
	uar_arena_fini(&arena);
	return 0;
}
