/* tool_sibling.c - calls of an answer of which one has failed. core/sibling.h decides. */
#include "core/sibling.h"
#include "work/tool_loop_int.h"

static const uar_str why =
	UAR_STR("another call of the same answer failed, and the definition of the "
		"agent cancels the others then");

bool rt_tool_loop_broke(const struct tool_loop *l)
{
	if (!l->set.policy || !l->set.policy->linked)
		return false;
	for (size_t i = 0; i < l->round->call_count; i++)
		if (l->round->calls[i].ended && l->round->calls[i].failed)
			return true;
	return false;
}

bool rt_place_is_orphan(const struct place *p)
{
	const struct uar_sibling_facts facts = {
		.linked = p->loop->set.policy && p->loop->set.policy->linked,
		.failed = rt_tool_loop_broke(p->loop),
		.begun = p->call->started || p->at_work,
		.read_only = p->call->started ? p->call->effect == UAR_TOOL_READ_ONLY
					      : p->tool && p->tool->effect == UAR_TOOL_READ_ONLY,
	};

	return uar_core_sibling_cancelled(&facts);
}

enum plan rt_place_refuse_orphan(struct place *p)
{
	p->category = UAR_STR("sibling_cancelled");
	(void)uar_error_set(&p->why, UAR_EINVALID, "%.*s", UAR_FMT(why));
	return p->call->started ? GIVE_UP : REFUSE;
}

void rt_place_cancel_orphan(struct place *p)
{
	struct uar_tools *registry = p->loop->set.registry;

	rt_place_unask(p, false);
	if (p->at_work)
		registry->ops->cancel(registry, p->at_work);
	p->at_work = NULL;
	rt_place_send_failed(p, UAR_STR("sibling_cancelled"), why, false);
}

/* One that is announced ends when its start is durable (tool_loop.c). */
void rt_tool_loop_cancel_siblings(struct tool_loop *l)
{
	for (size_t i = 0; i < PLACES && !l->leaving; i++) {
		struct place *p = &l->places[i];

		if (p->call && p->at_work && !p->ending && rt_place_is_orphan(p))
			rt_place_cancel_orphan(p);
	}
}
