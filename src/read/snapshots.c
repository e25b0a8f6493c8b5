/* snapshots.c - stores views of sessions, in the background and never for a plain short run.
 *
 * A snapshot is worth an append when its session has grown by SNAPSHOT_EVENTS since the last
 * one, or when the stored one was wrong. One that cannot be written is left out: it is derived
 * from the log, and the next mark or reader tries again. */
#include "base/sha256.h"
#include "core/control.h"
#include "engine/control.h"
#include "engine/limits.h"
#include "event/limits.h"
#include "read/limits.h"
#include "read/view_load.h"

struct snapshot_job {
	struct view_load load;
	struct uar_reader *rd;
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str session_id;
	struct uar_buf model;
	char sha256[UAR_SHA256_TEXT + 1];
	struct uar_control in;
	struct uar_control_op op;
	struct rt_op under_way;
	bool loads;
};

static void free_job(struct snapshot_job *j)
{
	j->rd->snapshot_jobs--;
	if (j->loads)
		rd_view_load_fini(&j->load);
	uar_buf_fini(&j->model);
	uar_arena_fini(&j->arena);
	uar_free(j);
}

static void end_job(struct snapshot_job *j)
{
	rt_op_end(&j->under_way);
	free_job(j);
}

static void drop_job(struct rt_op *op)
{
	free_job(UAR_OWNER(op, struct snapshot_job, under_way));
}

static struct snapshot_job *make_job(struct uar_reader *rd, const struct uar_owner *owner,
				     uar_str session_id)
{
	struct snapshot_job *j;

	if (rd->snapshot_jobs >= UAR_LIMIT_SNAPSHOT_JOBS || rt_is_draining(rd->rt))
		return NULL;
	j = uar_zalloc(sizeof *j);
	if (!j)
		return NULL;
	rd->snapshot_jobs++;
	j->rd = rd;
	j->model = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	uar_arena_init(&j->arena, 0);
	j->session_id = uar_arena_str(&j->arena, session_id);
	if (!j->session_id.p || !uar_owner_copy(&j->arena, owner, &j->owner)) {
		free_job(j);
		return NULL;
	}
	rt_op_begin(rd->rt, &j->under_way, drop_job);
	return j;
}

static void recorded(struct uar_control_op *op)
{
	end_job(op->ctx);
}

static uar_err record(struct snapshot_job *j, const struct view_load *l)
{
	uar_err e = uar_sview_write(&l->view, &j->model);

	if (e)
		return e;
	uar_sha256_hex(uar_buf_str(&j->model), j->sha256);
	j->in = (struct uar_control){
		.kind = UAR_CTL_RECORD_SNAPSHOT,
		.owner = j->owner,
		.record_snapshot = { .session_id = j->session_id,
				     .through = (int64_t)l->view.through,
				     .sha256 = uar_str_c(j->sha256),
				     .model = uar_buf_str(&j->model),
				     .repair_reason = uar_str_c(l->repair) },
	};
	j->op = (struct uar_control_op){ .in = &j->in, .done = recorded, .ctx = j };
	return uar_runtime_control(j->rd->rt, &j->op);
}

static bool is_worth_it(const struct view_load *l)
{
	return !l->err && !l->stale && (l->repair || l->folded >= UAR_LIMIT_SNAPSHOT_EVENTS);
}

void rd_snapshot_keep(struct uar_reader *rd, const struct view_load *l)
{
	struct snapshot_job *j =
		is_worth_it(l) ? make_job(rd, &l->owner, uar_str_c(l->found_session)) : NULL;

	if (j && record(j, l))
		end_job(j);
}

static void loaded(struct view_load *l)
{
	struct snapshot_job *j = UAR_OWNER(l, struct snapshot_job, load);
	bool worth = !l->err && !l->stale && (l->repair || !l->from_snapshot || l->folded > 1);

	if (!worth || record(j, l))
		end_job(j);
}

void rd_snapshot_due(struct uar_reader *rd, const struct uar_owner *owner, uar_str session_id)
{
	struct snapshot_job *j = make_job(rd, owner, session_id);

	if (!j)
		return;
	j->load = (struct view_load){ .owner = j->owner,
				      .session_id = j->session_id,
				      .done = loaded };
	j->loads = true;
	if (rd_view_load(rd, &j->load))
		end_job(j);
}
