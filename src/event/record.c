/* record.c - owners and rows: compared, copied. */
#include "event/record.h"

bool uar_owner_eq(const struct uar_owner *a, const struct uar_owner *b)
{
	return uar_str_eq(a->tenant, b->tenant) && uar_str_eq(a->workspace, b->workspace) &&
	       uar_str_eq(a->user, b->user);
}

bool uar_owner_copy(struct uar_arena *arena, const struct uar_owner *in, struct uar_owner *out)
{
	uar_str *strings[] = { &out->tenant, &out->workspace, &out->user };

	*out = *in;
	return uar_arena_strs(arena, strings, ARRAY_LEN(strings));
}

bool uar_run_row_copy(struct uar_arena *arena, const struct uar_run_row *in,
		      struct uar_run_row *out)
{
	uar_str *strings[] = { &out->owner.tenant,
			       &out->owner.workspace,
			       &out->owner.user,
			       &out->run_id,
			       &out->session_id,
			       &out->thread_id,
			       &out->turn_id,
			       &out->task_id,
			       &out->plugin_id,
			       &out->entry_id,
			       &out->agent_id,
			       &out->root_run_id,
			       &out->parent_run_id,
			       &out->status,
			       &out->detail,
			       &out->listed.title,
			       &out->listed.error_code,
			       &out->listed.waits };

	*out = *in;
	return uar_arena_strs(arena, strings, ARRAY_LEN(strings));
}

const struct uar_run_column_info uar_run_column_info[UAR_RUN_COLUMN_COUNT] = {
#define C(NAME, WORD, UNIT, SQL) [UAR_RUN_COLUMN_##NAME] = { WORD, UAR_RUN_UNIT_##UNIT, SQL },
#include "event/run_column.def"
#undef C
};

bool uar_run_find_any(const struct uar_run_find *f)
{
	bool any = f->search.n || f->error_code.n || f->status || f->waits || f->sorted || f->count;

	for (int i = 0; i < UAR_RUN_COLUMN_COUNT; i++)
		any = any || f->min[i].given || f->max[i].given;
	return any;
}
