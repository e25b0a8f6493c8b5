/* run_state.c - the state of a run in memory: made, copied for a decision, freed. */
#include "core/emit.h"

#include "base/alloc.h"

const struct uar_run_rare uar_run_rare_first = {
	.progress = { -1, -1, -1, -1, "", "", "" },
};

void uar_session_init(struct uar_session *s, const struct uar_owner *owner, uar_str runtime_id,
		      uar_str session_id)
{
	*s = (struct uar_session){ .owner = *owner,
				   .runtime_id = runtime_id,
				   .session_id = session_id };
}

void uar_run_init(struct uar_run *r)
{
	memset(r, 0, sizeof *r);
	r->status = UAR_STATUS_QUEUED;
	uar_arena_init(&r->arena, 0);
}

void uar_run_fini(struct uar_run *r)
{
	uar_arena_fini(&r->arena);
	uar_run_copy_fini(r);
}

uar_err uar_run_copy(struct uar_run *to, const struct uar_run *from)
{
	struct uar_run_rare *rare = from->rare && !to->rare ? uar_alloc(sizeof *rare) : to->rare;

	if (from->rare && !rare)
		return UAR_ENOMEM;
	if (from->rare)
		*rare = *from->rare;
	else
		uar_run_copy_fini(to);
	*to = *from;
	to->rare = from->rare ? rare : NULL;
	return UAR_OK;
}

void uar_run_take(struct uar_run *to, struct uar_run *copy)
{
	struct uar_run_rare *was = to->rare;

	*to = *copy;
	copy->rare = was;
}

void uar_run_copy_fini(struct uar_run *copy)
{
	uar_free(copy->rare);
	copy->rare = NULL;
}

struct uar_run_rare *uar_core_change_rare(struct uar_run *r)
{
	if (!r->rare && (r->rare = uar_alloc(sizeof *r->rare)))
		*r->rare = uar_run_rare_first;
	return r->rare;
}
