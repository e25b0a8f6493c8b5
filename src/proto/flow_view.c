/* flow_view.c - facts of nodes are told by the run itself (run.status); what its calls, agents and
 * questions are doing comes from their own events. */
#include "proto/flow_view.h"

enum { HASH_SEED = 0x464c }; /* the ids are of this server's making */

void uar_flow_view_init(struct uar_flow_view *v, struct uar_arena *arena)
{
	*v = (struct uar_flow_view){ .arena = arena, .status = "queued" };
	for (size_t i = 0; i < UAR_FLOW_ID_COUNT; i++)
		uar_map_init(&v->units[i], HASH_SEED);
}

void uar_flow_view_fini(struct uar_flow_view *v)
{
	for (size_t i = 0; i < UAR_FLOW_ID_COUNT; i++)
		uar_map_fini(&v->units[i]);
}

static uar_err own(struct uar_flow_view *v, uar_str *to, uar_str s)
{
	*to = uar_arena_str(v->arena, s);
	return to->p ? UAR_OK : UAR_ENOMEM;
}

static const struct uar_flow_seen *seen_of(const struct uar_flow_view *v, uar_str id)
{
	for (size_t i = 0; i < v->count; i++)
		if (uar_str_eq(v->nodes[i].id, id))
			return &v->nodes[i];
	return NULL;
}

/* Finds the node, or adds it. *out is NULL if there are already UAR_LIMIT_FLOW_NODES. */
static uar_err find_or_add_node(struct uar_flow_view *v, uar_str id, struct uar_flow_seen **out)
{
	const struct uar_flow_seen *seen = seen_of(v, id);
	struct uar_flow_seen *n = &v->nodes[seen ? (size_t)(seen - v->nodes) : v->count];
	uar_err e = UAR_OK;

	if (!seen && v->count == UAR_LIMIT_FLOW_NODES) {
		n = NULL;
	} else if (!seen) {
		*n = (struct uar_flow_seen){ .status = UAR_STR("pending") };
		n->end = &n->units;
		e = own(v, &n->id, id);
		v->count += !e;
	}
	if (!e)
		*out = n;
	return e;
}

static struct uar_flow_unit *unit_of(const struct uar_flow_view *v, enum uar_flow_id by, uar_str id)
{
	return id.n ? uar_map_get(&v->units[by], id) : NULL;
}

/* Indexes the unit under this id. An id that is already indexed keeps its first unit. */
static uar_err index_unit(struct uar_flow_view *v, enum uar_flow_id by, uar_str id,
			  struct uar_flow_unit *u)
{
	uar_err e = id.n ? uar_map_put(&v->units[by], id, u) : UAR_OK;

	return e == UAR_EEXISTS ? UAR_OK : e;
}

static void note_event(uint64_t *first, uint64_t *last, const struct uar_event *ev)
{
	if (!*first)
		*first = ev->run_sequence;
	*last = ev->run_sequence;
}

/* --- facts of nodes ------------------------------------------------------------------------- */

static bool is_end(uar_str status)
{
	return uar_str_is(status, "completed") || uar_str_is(status, "failed") ||
	       uar_str_is(status, "skipped");
}

static uar_err note_output(struct uar_flow_view *v, struct uar_flow_seen *n,
			   const struct uar_json *output)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	uar_err e;

	if (!output)
		return UAR_OK;
	uar_json_write(&b, output);
	e = b.err ? b.err : own(v, &n->output, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e;
}

static uar_err note_node(struct uar_flow_view *v, const struct uar_event *ev,
			 const struct uar_json *fact)
{
	const struct uar_json *error = uar_json_get(fact, UAR_STR("error"));
	struct uar_flow_seen *n = NULL;
	uar_err e = find_or_add_node(v, uar_json_text(fact, "id"), &n);

	if (e || !n)
		return e;
	note_event(&n->first, &n->last, ev);
	if (!n->started_us)
		n->started_us = ev->time_us;
	e = own(v, &n->status, uar_json_text(fact, "status"));
	if (!e)
		e = own(v, &n->took, uar_json_text(fact, "took"));
	if (!e)
		e = own(v, &n->category, uar_json_text(error, "category"));
	if (!e)
		e = own(v, &n->message, uar_json_text(error, "message"));
	if (!e)
		e = note_output(v, n, uar_json_get(fact, UAR_STR("output")));
	n->items = uar_json_int(uar_json_get(fact, UAR_STR("items")), n->items);
	if (is_end(n->status))
		n->ended_us = ev->time_us;
	return e;
}

static uar_err note_call(struct uar_flow_view *v, const struct uar_json *call)
{
	uar_str id = uar_json_text(call, "node");
	struct uar_flow_seen *n = NULL;
	struct uar_flow_unit *u;
	uar_err e = id.n ? find_or_add_node(v, id, &n) : UAR_OK; /* agent.wait is of no node */

	if (e || !n)
		return e;
	u = uar_arena_alloc(v->arena, sizeof *u);
	if (!u || own(v, &u->call_id, uar_json_text(call, "id")))
		return UAR_ENOMEM;
	u->item = uar_json_int(uar_json_get(call, UAR_STR("item")), -1);
	u->spawns = uar_str_is(uar_json_text(call, "stage"), "spawn");
	*n->end = u;
	n->end = &u->next;
	return index_unit(v, UAR_FLOW_CALL, u->call_id, u);
}

static uar_err take_status(struct uar_flow_view *v, const struct uar_event *ev,
			   const struct uar_json *p)
{
	const struct uar_json *more = uar_json_get(p, UAR_STR("metadata"));
	const struct uar_json *fact = uar_json_get(more, UAR_STR("workflow_node"));
	const struct uar_json *calls =
		uar_json_get(uar_json_get(more, UAR_STR("workflow")), UAR_STR("calls"));
	uar_err e = fact ? note_node(v, ev, fact) : UAR_OK;

	for (const struct uar_json *c = uar_json_first(calls); c && !e; c = c->next)
		e = note_call(v, c);
	return e;
}

/* --- calls, agents, questions --------------------------------------------------------------- */

static uar_err note_child(struct uar_flow_view *v, struct uar_flow_unit *u,
			  const struct uar_json *s)
{
	uar_err e = own(v, &u->subagent_id, uar_json_text(s, "subagent_id"));

	if (!e)
		e = index_unit(v, UAR_FLOW_CHILD, u->subagent_id, u);
	if (!e)
		e = own(v, &u->session_id, uar_json_text(s, "child_session_id"));
	return e ? e : own(v, &u->run_id, uar_json_text(s, "run_id"));
}

/* A child that has come to rest. */
static uar_err note_rest(struct uar_flow_view *v, const struct uar_json *s)
{
	struct uar_flow_unit *u = unit_of(v, UAR_FLOW_CHILD, uar_json_text(s, "subagent_id"));

	if (!u)
		return UAR_OK;
	if (uar_json_bool(uar_json_get(s, UAR_STR("recoverable")), false)) {
		u->ended = true;
		u->failed = !uar_str_is(uar_json_text(s, "status"), "completed");
	}
	return own(v, &u->run_id, uar_json_text(s, "run_id"));
}

static uar_err take_result(struct uar_flow_view *v, const struct uar_event *ev,
			   const struct uar_json *p)
{
	const struct uar_json *preview = uar_json_get(p, UAR_STR("preview"));
	const struct uar_json *child = uar_json_get(preview, UAR_STR("subagent"));
	const struct uar_json *rested = uar_json_get(preview, UAR_STR("subagents"));
	struct uar_flow_unit *u = unit_of(v, UAR_FLOW_CALL, ev->ids[UAR_ID_TOOL_CALL]);
	uar_err e = UAR_OK;

	if (u && !u->spawns)
		u->ended = true;
	else if (u && child)
		e = note_child(v, u, child);
	for (const struct uar_json *s = u ? NULL : uar_json_first(rested); s && !e; s = s->next)
		e = note_rest(v, s);
	return e;
}

static uar_err take_failure(struct uar_flow_view *v, struct uar_flow_unit *u,
			    const struct uar_json *p)
{
	uar_err e;

	if (!u)
		return UAR_OK;
	u->ended = u->failed = true;
	e = own(v, &u->category, uar_json_text(p, "failure_category"));
	return e ? e : own(v, &u->message, uar_json_text(p, "message"));
}

static uar_err take_question(struct uar_flow_view *v, const struct uar_event *ev,
			     const struct uar_json *p)
{
	uar_str call = uar_json_text(uar_json_get(p, UAR_STR("scope")), "tool_call_id");
	struct uar_flow_unit *u = unit_of(v, UAR_FLOW_CALL, call);
	uar_err e = u ? own(v, &u->action_id, ev->ids[UAR_ID_ACTION]) : UAR_OK;

	return u && !e ? index_unit(v, UAR_FLOW_QUESTION, u->action_id, u) : e;
}

static void take_answer(struct uar_flow_view *v, const struct uar_event *ev)
{
	struct uar_flow_unit *u = unit_of(v, UAR_FLOW_QUESTION, ev->ids[UAR_ID_ACTION]);

	if (u && uar_str_eq(u->action_id, ev->ids[UAR_ID_ACTION])) /* it asks nothing else by now */
		u->action_id = UAR_STR("");
}

/* --- the run -------------------------------------------------------------------------------- */

static uar_err take_run(struct uar_flow_view *v, const struct uar_event *ev,
			const struct uar_json *p)
{
	static const struct {
		enum uar_event_class cls;
		const char *status;
	} ends[] = { { UAR_EV_TASK_COMPLETED, "completed" }, { UAR_EV_TASK_FAILED, "failed" },
		     { UAR_EV_TASK_CANCELLED, "cancelled" }, { UAR_EV_TASK_TIMED_OUT, "timed_out" },
		     { UAR_EV_TASK_LOST, "lost" },	     { UAR_EV_TASK_STARTED, "running" } };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i].cls == ev->cls)
			v->status = ends[i].status;
	if (ev->cls == UAR_EV_TURN_SUBMITTED)
		return own(v, &v->revision,
			   uar_json_text(uar_json_get(p, UAR_STR("options")), "definition"));
	return ev->cls == UAR_EV_TASK_QUEUED ? own(v, &v->agent_id, uar_json_text(p, "agent_id"))
					     : UAR_OK;
}

uar_err uar_flow_view_take(struct uar_flow_view *v, const struct uar_event *ev)
{
	struct uar_flow_unit *u = unit_of(v, UAR_FLOW_CALL, ev->ids[UAR_ID_TOOL_CALL]);
	const struct uar_json *p = NULL;
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = uar_event_payload(ev, &scratch, &p, NULL);
	v->through = ev->run_sequence;
	if (u)
		note_event(&u->first, &u->last, ev);
	if (!e && ev->cls == UAR_EV_RUN_STATUS)
		e = take_status(v, ev, p);
	else if (!e && ev->cls == UAR_EV_TOOL_RESULT)
		e = take_result(v, ev, p);
	else if (!e && ev->cls == UAR_EV_TOOL_FAILED)
		e = take_failure(v, u, p);
	else if (!e && ev->cls == UAR_EV_ACTION_REQUIRED)
		e = take_question(v, ev, p);
	else if (!e && ev->cls == UAR_EV_ACTION_RESOLVED)
		take_answer(v, ev);
	else if (!e)
		e = take_run(v, ev, p);
	uar_arena_fini(&scratch);
	return e;
}

/* --- written -------------------------------------------------------------------------------- */

static bool is_over(const struct uar_flow_view *v)
{
	return strcmp(v->status, "queued") != 0 && strcmp(v->status, "running") != 0;
}

static void put_events(struct uar_jw *w, uint64_t first, uint64_t last)
{
	if (!first)
		return;
	uar_jw_obj(w, "events");
	uar_jw_u64(w, "first", first);
	uar_jw_u64(w, "last", last);
	uar_jw_close(w);
}

static void put_error(struct uar_jw *w, uar_str category, uar_str message)
{
	if (!message.n)
		return;
	uar_jw_obj(w, "error");
	uar_jw_str(w, "category", category);
	uar_jw_str(w, "message", message);
	uar_jw_close(w);
}

static void put_unit(struct uar_jw *w, const struct uar_flow_unit *u)
{
	uar_jw_str(w, "tool_call_id", u->call_id);
	if (u->action_id.n)
		uar_jw_str(w, "action_id", u->action_id);
	if (!u->subagent_id.n)
		return;
	uar_jw_obj(w, "child");
	uar_jw_str(w, "subagent_id", u->subagent_id);
	uar_jw_str(w, "session_id", u->session_id);
	uar_jw_str_or_null(w, "run_id", u->run_id);
	uar_jw_close(w);
}

static const char *status_of(const struct uar_flow_view *v, const struct uar_flow_unit *u)
{
	if (u->ended)
		return u->failed ? "failed" : "completed";
	if (is_over(v))
		return "cancelled";
	return u->action_id.n ? "waiting" : "running";
}

static void put_items(const struct uar_flow_view *v, struct uar_jw *w,
		      const struct uar_flow_seen *n)
{
	int64_t completed = 0, failed = 0, running = 0;

	for (const struct uar_flow_unit *u = n->units; u; u = u->next) {
		completed += u->ended && !u->failed;
		failed += u->ended && u->failed;
		running += !u->ended && !is_over(v);
	}
	uar_jw_obj(w, "items");
	uar_jw_int(w, "total", n->items);
	uar_jw_int(w, "completed", completed);
	uar_jw_int(w, "failed", failed);
	uar_jw_int(w, "running", running);
	uar_jw_arr(w, "list");
	for (const struct uar_flow_unit *u = n->units; u; u = u->next) {
		uar_jw_obj(w, NULL);
		uar_jw_int(w, "index", u->item);
		uar_jw_cstr(w, "status", status_of(v, u));
		put_unit(w, u);
		put_events(w, u->first, u->last);
		put_error(w, u->category, u->message);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_close(w);
}

/* What has not ended when the run has is cancelled; what asks somebody waits. */
static const char *shown_status(const struct uar_flow_view *v, const struct uar_flow_seen *n)
{
	bool open = uar_str_is(n->status, "running") || uar_str_is(n->status, "waiting");

	if (open && is_over(v))
		return "cancelled";
	for (const struct uar_flow_unit *u = n->units; u && open; u = u->next)
		if (u->action_id.n)
			return "waiting";
	return n->status.p;
}

static void put_seen(const struct uar_flow_view *v, struct uar_jw *w, const struct uar_flow_seen *n)
{
	const struct uar_flow_unit *u = n->units;

	uar_jw_cstr(w, "status", shown_status(v, n));
	if (n->took.n) {
		uar_jw_arr(w, "taken");
		uar_jw_str(w, NULL, n->took);
		uar_jw_close(w);
	}
	uar_jw_time(w, "started_at", n->started_us);
	if (n->ended_us)
		uar_jw_time(w, "ended_at", n->ended_us);
	if (n->output.n)
		uar_jw_raw(w, "output", n->output);
	put_error(w, n->category, n->message);
	if (u && u->item < 0)
		put_unit(w, u);
	else if (u || n->items)
		put_items(v, w, n);
	put_events(w, n->first, n->last);
}

static void put_nodes(const struct uar_flow_view *v, struct uar_jw *w, const struct uar_json *nodes)
{
	uar_jw_arr(w, "nodes");
	for (const struct uar_json *j = uar_json_first(nodes); j; j = j->next) {
		const struct uar_flow_seen *n = seen_of(v, uar_json_text(j, "id"));

		uar_jw_obj(w, NULL);
		uar_jw_str(w, "id", uar_json_text(j, "id"));
		uar_jw_str(w, "type", uar_json_text(j, "type"));
		if (uar_json_text(j, "title").n)
			uar_jw_str(w, "title", uar_json_text(j, "title"));
		if (n)
			put_seen(v, w, n);
		else
			uar_jw_cstr(w, "status", "pending");
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* True, false or not known yet: -1. */
static int is_taken(const struct uar_flow_view *v, const struct uar_json *from)
{
	const struct uar_flow_seen *n = seen_of(v, uar_json_text(from, "node"));
	uar_str port = uar_json_text(from, "port");

	if (!n || !is_end(n->status))
		return -1;
	if (!uar_str_is(n->status, "completed"))
		return 0;
	return !n->took.n || uar_str_eq(n->took, port.n ? port : UAR_STR("out"));
}

static void put_edges(const struct uar_flow_view *v, struct uar_jw *w, const struct uar_json *edges)
{
	int64_t index = 0;

	uar_jw_arr(w, "edges");
	for (const struct uar_json *j = uar_json_first(edges); j; j = j->next) {
		int taken = is_taken(v, uar_json_get(j, UAR_STR("from")));

		uar_jw_obj(w, NULL);
		uar_jw_int(w, "index", index++);
		if (taken < 0)
			uar_jw_null(w, "taken");
		else
			uar_jw_bool(w, "taken", taken > 0);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_flow_view_write(const struct uar_flow_view *v, const struct uar_json *definition,
			 struct uar_jw *w)
{
	const struct uar_json *workflow = uar_json_get(definition, UAR_STR("workflow"));

	uar_jw_str(w, "workflow_id", uar_json_text(definition, "id"));
	uar_jw_str(w, "revision", v->revision);
	uar_jw_cstr(w, "status", v->status);
	uar_jw_u64(w, "through", v->through);
	uar_jw_tree(w, "workflow", workflow);
	put_nodes(v, w, uar_json_get(workflow, UAR_STR("nodes")));
	put_edges(v, w, uar_json_get(workflow, UAR_STR("edges")));
}
