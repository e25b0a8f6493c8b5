/* control_edge.c - relations between tasks, and tasks that wait for others.
 *
 * An edge has one row, kept with its source. "blocked_by" is "blocks" the other way round,
 * "child" is "parent", and each is stored in one form only. A cycle of blocks is refused and
 * its path is named. */
#include "core/control_int.h"
#include "core/limits.h"

enum { PATH_BYTES = 240 };

/* The one form in which the relation is stored. */
struct relation {
	uar_str from, to, kind;
};

static struct relation relation_of(uar_str from, uar_str to, uar_str kind)
{
	if (uar_str_is(kind, "blocked_by"))
		return (struct relation){ to, from, UAR_STR("blocks") };
	if (uar_str_is(kind, "child"))
		return (struct relation){ to, from, UAR_STR("parent") };
	return (struct relation){ from, to, kind };
}

void ctl_put_edge(struct uar_jw *w, const struct uar_row_edge *edge)
{
	uar_jw_str(w, "kind", edge->edge_kind);
	uar_jw_str(w, "source_id", edge->row.parent);
	uar_jw_str(w, "target_id", edge->row.tag);
	uar_jw_str(w, "status", edge->row.status);
	if (edge->reason.n)
		uar_jw_str(w, "reason", edge->reason);
	uar_jw_time(w, "created_at", edge->row.created_us);
	uar_jw_time(w, "updated_at", edge->row.updated_us);
}

static void tell_edge(struct ctl *c, const struct uar_row_edge *edge)
{
	struct uar_jw *w;

	if (c->waits || c->e.err)
		return;
	w = ctl_result(c);
	uar_jw_obj(w, "edge");
	ctl_put_edge(w, edge);
	uar_jw_close(w);
	ctl_result_end(c);
}

static void emit_edge(struct ctl *c, const char *op, const struct uar_row_edge *edge,
		      const struct uar_row_task *task)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "op", op);
	uar_jw_obj(w, "edge");
	ctl_put_edge(w, edge);
	uar_jw_close(w);
	ctl_emit_task(c, task, UAR_EV_TASK_DEPENDENCY_UPDATED);
}

static const struct uar_loaded *edges_from(struct ctl *c, uar_str id)
{
	const struct uar_need need = { .kind = UAR_ROW_EDGE, .parent = id };

	return ctl_load(c, &need);
}

static struct uar_row_edge *find_edge(struct ctl *c, const struct relation *r)
{
	const struct uar_loaded *edges = edges_from(c, r->from);

	for (size_t i = 0; edges && i < edges->count; i++) {
		struct uar_row_edge *edge = ctl_row_of(c, &edges->rows[i]);

		if (edge && uar_str_eq(edge->row.tag, r->to) &&
		    uar_str_eq(edge->edge_kind, r->kind) && uar_str_is(edge->row.status, "active"))
			return edge;
	}
	return NULL;
}

/* --- cycles ---------------------------------------------------------------------------------- */

/* Tasks that a search has come to, each once, and the one it came from. */
struct search {
	uar_str goal;
	struct {
		uar_str id;
		size_t from;
	} at[UAR_LIMIT_TASK_SEARCH];
	size_t count, next;
};

static bool was_reached(const struct search *s, uar_str id)
{
	for (size_t i = 0; i < s->count; i++)
		if (uar_str_eq(s->at[i].id, id))
			return true;
	return false;
}

static void reach(struct ctl *c, struct search *s, uar_str id, size_t from)
{
	if (was_reached(s, id))
		return;
	if (s->count == UAR_LIMIT_TASK_SEARCH) {
		ctl_refuse(c, UAR_ETOOBIG, NULL, "more than %d tasks depend on each other",
			   UAR_LIMIT_TASK_SEARCH);
		return;
	}
	s->at[s->count].id = id;
	s->at[s->count++].from = from;
}

static void reach_targets(struct ctl *c, struct search *s, size_t from)
{
	const struct uar_loaded *edges = edges_from(c, s->at[from].id);

	for (size_t i = 0; edges && i < edges->count && !c->e.err; i++) {
		const struct uar_row_edge *edge = ctl_row_of(c, &edges->rows[i]);

		if (edge && uar_str_is(edge->edge_kind, "blocks") &&
		    uar_str_is(edge->row.status, "active"))
			reach(c, s, edge->row.tag, from);
	}
}

/* "a -> b -> c", from where the search began to the task at `i`. */
static uar_str name_path(struct ctl *c, const struct search *s, size_t i)
{
	uar_str path = s->at[i].id;

	while (i && path.p) {
		i = s->at[i].from;
		path = uar_arena_printf(c->e.env->arena, "%.*s -> %.*s", UAR_FMT(s->at[i].id),
					UAR_FMT(path));
	}
	return path;
}

static void refuse_cycle(struct ctl *c, uar_str source, uar_str path)
{
	ctl_refuse(c, UAR_ESTATE, "/to", "that would be a cycle: %.*s -> %.*s", UAR_FMT(source),
		   UAR_FMT(uar_str_utf8_prefix(path, PATH_BYTES)));
}

/* Does a way lead from the target back to the source? */
static void check_blocks(struct ctl *c, const struct relation *r)
{
	struct search *s = uar_arena_alloc(c->e.env->arena, sizeof *s);

	if (!s) {
		ctl_fail(c, UAR_ENOMEM);
		return;
	}
	s->goal = r->from;
	reach(c, s, r->to, 0);
	for (; s->next < s->count && !c->e.err; s->next++) {
		if (uar_str_eq(s->at[s->next].id, s->goal))
			refuse_cycle(c, s->goal, name_path(c, s, s->next));
		else
			reach_targets(c, s, s->next);
	}
}

/* Is the child above its parent? The tree is in the rows of the tasks: create_task makes no edge.
 */
static void check_tree(struct ctl *c, const struct relation *r)
{
	uar_str id = r->from, path = r->from;

	for (int i = 0; id.n && i < UAR_LIMIT_TASK_DEPTH && !c->e.err; i++) {
		const struct uar_row_task *t = ctl_row(c, UAR_ROW_TASK, id);

		if (uar_str_eq(id, r->to))
			refuse_cycle(c, r->from, path);
		id = t ? t->row.parent : UAR_STR_NONE;
		path = ctl_print(c, uar_arena_printf(c->e.env->arena, "%.*s -> %.*s", UAR_FMT(id),
						     UAR_FMT(path)));
	}
}

static void check_cycle(struct ctl *c, const struct relation *r)
{
	if (uar_str_is(r->kind, "blocks"))
		check_blocks(c, r);
	else if (uar_str_is(r->kind, "parent"))
		check_tree(c, r);
}

/* --- blocks ---------------------------------------------------------------------------------- */

void ctl_emit_blocked(struct ctl *c, const struct uar_row_task *t, uar_str by)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "blocked");
	uar_jw_arr(w, "blockers");
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "kind", "dependency");
	if (by.n)
		uar_jw_str(w, "id", by);
	uar_jw_cstr(w, "description", "waits for another task");
	uar_jw_close(w);
	uar_jw_close(w);
	ctl_emit_task(c, t, UAR_EV_TASK_BLOCKED);
}

/* One that is over waits, too: with its next attempt. */
static void block(struct ctl *c, struct uar_row_task *t, uar_str by)
{
	ctl_change(c, t);
	t->blockers++;
	if (ctl_task_over(t))
		return;
	ctl_settle_status(t);
	if (uar_str_is(t->row.status, "blocked"))
		ctl_emit_blocked(c, t, by);
}

bool ctl_is_waited_for(const struct uar_row_task *source, const struct uar_row_edge *edge)
{
	return uar_str_is(edge->edge_kind, "blocks") && uar_str_is(edge->row.status, "active") &&
	       edge->since >= source->released;
}

void ctl_unblock(struct ctl *c, uar_str task_id)
{
	struct uar_row_task *t = ctl_row(c, UAR_ROW_TASK, task_id);
	struct uar_jw *w;

	if (!t || !t->blockers)
		return;
	ctl_change(c, t);
	if (--t->blockers || !uar_str_is(t->row.status, "blocked"))
		return; /* of a draft, one that is paused or at work it was not said */
	ctl_settle_status(t);
	w = uar_emit_begin(&c->e);
	uar_jw_cstr(w, "status", ctl_at_work(t) ? "running" : "queued");
	uar_jw_cstr(w, "resumed_from", "blocked");
	uar_jw_cstr(w, "reason", "nothing blocks the task any more");
	uar_emit_who(w, "requested_by", "runtime", UAR_STR_NONE);
	ctl_emit_task(c, t, UAR_EV_TASK_RESUMED);
	ctl_emit_standing(c, t);
}

/* --- commands -------------------------------------------------------------------------------- */

static bool is_between_tasks(uar_str kind)
{
	return uar_str_is(kind, "blocks") || uar_str_is(kind, "parent") ||
	       uar_str_is(kind, "source_task");
}

/* A source with too many edges could not be loaded again, and so never be ended. */
void ctl_check_edges(struct ctl *c, uar_str id, const char *where)
{
	const struct uar_loaded *edges = edges_from(c, id);
	size_t active = 0;

	for (size_t i = 0; edges && i < edges->count; i++)
		active += uar_str_is(edges->rows[i].status, "active");
	if (edges && (active >= UAR_LIMIT_TASK_EDGES || edges->count >= UAR_LIMIT_TASK_EDGES * 2))
		ctl_refuse(c, UAR_ETOOBIG, where, "a task may have %d edges", UAR_LIMIT_TASK_EDGES);
}

/* The task, and those below it with it, has its place in a tree. */
static void place_task(struct ctl *c, struct uar_row_task *t, uar_str root, int64_t depth)
{
	const struct uar_need need = { .kind = UAR_ROW_TASK, .parent = t->row.id };
	const struct uar_loaded *below;

	if (depth >= UAR_LIMIT_TASK_DEPTH) {
		ctl_refuse(c, UAR_ETOOBIG, "/to", "tasks may be nested %d deep",
			   UAR_LIMIT_TASK_DEPTH);
		return;
	}
	ctl_change(c, t);
	t->root_task_id = root;
	t->depth = depth;
	below = ctl_load(c, &need);
	for (size_t i = 0; below && i < below->count && !c->e.err; i++) {
		struct uar_row_task *child = ctl_row_of(c, &below->rows[i]);

		if (child)
			place_task(c, child, root, depth + 1);
	}
}

/* The tree is in the rows of the tasks; the edge is its history. */
static void set_parent(struct ctl *c, const struct uar_row_task *parent, struct uar_row_task *t)
{
	if (t->row.parent.n)
		ctl_refuse(c, UAR_ESTATE, "/to", "task %.*s has a parent: %.*s", UAR_FMT(t->row.id),
			   UAR_FMT(t->row.parent));
	if (c->e.err)
		return;
	t->row.parent = parent->row.id;
	place_task(c, t, parent->root_task_id, parent->depth + 1);
}

static void clear_parent(struct ctl *c, uar_str child_id)
{
	struct uar_row_task *t = ctl_row(c, UAR_ROW_TASK, child_id);

	if (!t)
		return;
	t->row.parent = UAR_STR_NONE;
	place_task(c, t, t->row.id, 0);
}

static void add_edge(struct ctl *c, const struct relation *r, const struct uar_row_task *task)
{
	struct uar_row_edge *edge = ctl_new_row(c, UAR_ROW_EDGE, uar_emit_id(&c->e));
	const struct uar_row_task *source =
		uar_str_is(r->kind, "blocks") ? ctl_row(c, UAR_ROW_TASK, r->from) : NULL;

	if (!edge)
		return;
	edge->row.parent = r->from;
	edge->row.tag = r->to;
	edge->row.status = UAR_STR("active");
	edge->edge_kind = r->kind;
	edge->reason = c->in->link_tasks.reason;
	edge->since = source && ctl_task_over(source) ? -1 : (int64_t)c->e.s->sequence;
	emit_edge(c, "linked", edge, task);
	tell_edge(c, edge);
}

/* What the relation does to the two tasks. */
static void apply_relation(struct ctl *c, const struct relation *r, struct uar_row_task *source,
			   struct uar_row_task *target)
{
	if (!source || !target)
		return; /* one of them is no task */
	if (uar_str_is(r->kind, "parent"))
		set_parent(c, source, target);
	else if (uar_str_is(r->kind, "blocks") && !ctl_task_over(source))
		block(c, target, r->from);
}

static void check_link(struct ctl *c, const struct relation *r, const struct uar_row_task *task,
		       const struct uar_row_task *other)
{
	if (other && !uar_str_eq(task->row.session_id, other->row.session_id))
		ctl_refuse(c, UAR_ESTATE, "/to", "the tasks are of different sessions");
	ctl_check_edges(c, r->from, "/from");
	check_cycle(c, r);
}

void ctl_link_tasks(struct ctl *c)
{
	const struct uar_ctl_link_tasks *in = &c->in->link_tasks;
	struct relation r = relation_of(in->from, in->to, in->kind);
	bool same_way = uar_str_eq(r.from, in->from);
	struct uar_row_task *task = ctl_task(c, in->from, "/from");
	struct uar_row_task *other = is_between_tasks(r.kind) ? ctl_task(c, in->to, "/to") : NULL;
	const struct uar_row_edge *known = find_edge(c, &r);

	if (c->waits || c->e.err)
		return;
	if (known) {
		tell_edge(c, known);
		return;
	}
	check_link(c, &r, task, other);
	if (c->waits || c->e.err)
		return;
	add_edge(c, &r, task);
	apply_relation(c, &r, same_way ? task : other, same_way ? other : task);
}

void ctl_unlink_tasks(struct ctl *c)
{
	const struct uar_ctl_unlink_tasks *in = &c->in->unlink_tasks;
	struct relation r = relation_of(in->from, in->to, in->kind);
	struct uar_row_task *task = ctl_task(c, in->from, "/from");
	struct uar_row_edge *edge = find_edge(c, &r);
	const struct uar_row_task *source =
		uar_str_is(r.kind, "blocks") ? ctl_row(c, UAR_ROW_TASK, r.from) : NULL;
	bool waited_for;

	if (c->waits || c->e.err)
		return;
	if (!edge) {
		ctl_refuse(c, UAR_ENOTFOUND, NULL, "there is no such edge");
		return;
	}
	waited_for = source && !ctl_task_over(source) && ctl_is_waited_for(source, edge);
	ctl_change(c, edge);
	edge->row.status = UAR_STR("removed");
	edge->reason = in->reason.n ? in->reason : edge->reason;
	emit_edge(c, "unlinked", edge, task);
	if (uar_str_is(r.kind, "parent"))
		clear_parent(c, r.to);
	if (waited_for)
		ctl_unblock(c, r.to);
	tell_edge(c, edge);
}

/* --- delegation ------------------------------------------------------------------------------ */

void ctl_delegate(struct ctl *c, const struct uar_row_task *t, const char *kind, uar_str id)
{
	struct uar_row_edge *edge = ctl_new_row(c, UAR_ROW_EDGE, uar_emit_id(&c->e));
	struct uar_jw *w;

	if (!edge)
		return;
	edge->row.status = UAR_STR("active");
	edge->row.parent = t->row.id;
	edge->row.tag = id;
	edge->edge_kind = UAR_STR("spawned_subagent");
	edge->reason = uar_str_c(kind);
	w = uar_emit_begin(&c->e);
	uar_jw_obj(w, "target");
	uar_jw_cstr(w, "kind", kind);
	uar_jw_str(w, "id", id);
	uar_jw_close(w);
	uar_jw_obj(w, "edge");
	ctl_put_edge(w, edge);
	uar_jw_close(w);
	ctl_emit_task(c, t, UAR_EV_TASK_DELEGATED);
}
