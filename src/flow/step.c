/* step.c - computes the state of each node of a run, and the calls to make next.
 *
 * Nodes are visited in topological order, so the values that lead to a node are known before it. A
 * node that needs a call looks for it in the log: the call is missing and is wanted, is under way,
 * or has ended. */
#include "flow/step_int.h"

enum { PAUSE_US = 5000000 };

static const char *const status_names[UAR_FLOW_STATUS_COUNT] = {
	"pending", "running", "waiting", "completed", "failed", "skipped"
};

const char *uar_flow_status_name(enum uar_flow_status s)
{
	return status_names[s];
}

/* --- ends of a node ------------------------------------------------------------------------- */

static void complete(struct uar_flow_state *n, const char *took, const struct uar_json *value)
{
	n->status = UAR_FLOW_COMPLETED;
	n->took = took;
	n->value = value;
}

static void fail(struct uar_flow_state *n, const char *category, uar_str message)
{
	n->status = UAR_FLOW_FAILED;
	n->category = uar_str_c(category);
	n->message = message;
}

static const struct uar_json *error_value(struct flow_run *r, const struct uar_flow_state *n)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "category", n->category);
	uar_jw_str(&w, "message", n->message);
	uar_jw_close(&w);
	return flow_take_json(r, uar_jw_end(&w), &b);
}

/* Applies on_error: the node completes although it failed. */
static void handle_failure(struct flow_run *r, size_t node)
{
	struct uar_flow_state *n = &r->step->nodes[node];
	uar_str how = uar_flow_setting(r->f->nodes[node].config, "on_error");

	if (n->status != UAR_FLOW_FAILED)
		return;
	if (uar_str_is(how, "continue"))
		complete(n, "out", &flow_null);
	else if (uar_str_is(how, "port"))
		complete(n, "error", error_value(r, n));
}

/* --- one node by itself --------------------------------------------------------------------- */

static void take_unit(struct uar_flow_state *n, const struct flow_unit *u)
{
	if (u->state == FLOW_UNIT_DONE) {
		complete(n, "out", u->value);
	} else if (u->state == FLOW_UNIT_FAILED) {
		n->status = UAR_FLOW_FAILED;
		n->category = u->category;
		n->message = u->message;
	} else {
		n->status = u->state == FLOW_UNIT_BUSY ? UAR_FLOW_RUNNING : UAR_FLOW_PENDING;
	}
}

static void step_call(struct flow_run *r, size_t node)
{
	const struct uar_flow_node *f = &r->f->nodes[node];
	struct flow_unit u = { .id = f->id, .item = -1, .type = f->type, .config = f->config };

	flow_unit_look(r, &u);
	flow_unit_begin(r, &u);
	take_unit(&r->step->nodes[node], &u);
	handle_failure(r, node);
}

static bool has_way(const struct uar_flow *f, size_t node, const char *port)
{
	for (size_t i = 0; i < f->edge_count; i++)
		if (f->edges[i].from == node && uar_str_is(f->edges[i].port, port))
			return true;
	return false;
}

static bool is_declined(const struct uar_flow_node *f, const struct flow_unit *u)
{
	if (u->state == FLOW_UNIT_FAILED)
		return uar_str_is(u->category, "rejected");
	return f->type == UAR_FLOW_APPROVAL && u->state == FLOW_UNIT_DONE &&
	       !uar_str_is(uar_flow_setting(u->value, "decision"), "approve");
}

/* Forms and approvals. */
static void step_ask(struct flow_run *r, size_t node)
{
	const struct uar_flow_node *f = &r->f->nodes[node];
	struct uar_flow_state *n = &r->step->nodes[node];
	struct flow_unit u = { .id = f->id, .item = -1, .type = f->type, .config = f->config };

	flow_unit_look(r, &u);
	flow_unit_begin(r, &u);
	take_unit(n, &u);
	if (!is_declined(f, &u)) {
		if (n->status == UAR_FLOW_COMPLETED && f->type == UAR_FLOW_APPROVAL)
			n->value = r->scope.in;
	} else if (has_way(r->f, node, "declined")) {
		complete(n, "declined", r->scope.in);
	} else {
		fail(n, "rejected", UAR_STR("a person declined"));
	}
}

static void step_wait(struct flow_run *r, size_t node)
{
	const struct uar_flow_node *f = &r->f->nodes[node];
	struct uar_flow_state *n = &r->step->nodes[node];
	double seconds = uar_json_double(uar_json_get(f->config, UAR_STR("seconds")), 0);
	uar_str key = flow_key(r, "sleep", f->id, -1);
	const struct flow_told *call = flow_find_call(r, key);
	int64_t until = r->now_us + (int64_t)(seconds * 1e6);

	if (!call &&
	    !flow_want(r, key, UAR_STR(""),
		       uar_arena_printf(r->arena, "{\"until_us\":%lld}", (long long)until)))
		return;
	if (call)
		until = uar_json_int(uar_json_get(call->json, UAR_STR("until_us")), 0);
	n->status = UAR_FLOW_WAITING;
	n->until_us = until;
	if (call && call->call->ended && until <= r->now_us)
		complete(n, "out", r->scope.in);
	else if (!r->until_us || until < r->until_us)
		r->until_us = until;
}

/* --- loops ---------------------------------------------------------------------------------- */

struct items {
	struct flow_unit *at;
	size_t count, busy, done, failed;
	const struct flow_unit *culprit; /* the first that failed */
};

static void count_items(struct items *all)
{
	all->busy = all->done = all->failed = 0;
	all->culprit = NULL;
	for (size_t i = 0; i < all->count; i++) {
		const struct flow_unit *u = &all->at[i];

		all->busy += u->state == FLOW_UNIT_BUSY;
		all->done += u->state == FLOW_UNIT_DONE;
		all->failed += u->state == FLOW_UNIT_FAILED;
		if (u->state == FLOW_UNIT_FAILED && !all->culprit)
			all->culprit = u;
	}
}

static bool make_items(struct flow_run *r, size_t node, struct items *all)
{
	const struct uar_json *config = r->f->nodes[node].config;
	const struct uar_json *item = uar_json_first(r->scope.in);

	all->count = r->scope.in->count;
	all->at = uar_arena_alloc(r->arena, (all->count + 1) * sizeof *all->at);
	for (size_t i = 0; all->at && item; item = item->next, i++) {
		all->at[i] = (struct flow_unit){
			.id = r->f->nodes[node].id,
			.item = (int)i,
			.type = uar_flow_type_parse(uar_flow_setting(config, "do")),
			.config = uar_json_get(config, UAR_STR("with")),
			.value = item,
		};
		r->scope.item = item;
		r->scope.index = (int64_t)i;
		flow_unit_look(r, &all->at[i]);
	}
	r->scope.item = NULL;
	count_items(all);
	if (!all->at)
		r->err = UAR_ENOMEM;
	return all->at != NULL;
}

/* In order, until at_once items are at work. */
static void begin_items(struct flow_run *r, size_t node, struct items *all)
{
	const struct uar_json *config = r->f->nodes[node].config;
	int64_t most = uar_json_int(uar_json_get(config, UAR_STR("at_once")), 4);

	for (size_t i = 0; i < all->count && (int64_t)all->busy < most; i++) {
		if (all->at[i].state != FLOW_UNIT_NEW)
			continue;
		r->scope.item = all->at[i].value;
		r->scope.index = (int64_t)i;
		flow_unit_begin(r, &all->at[i]);
		count_items(all);
	}
	r->scope.item = NULL;
}

static const struct uar_json *results_of(struct flow_run *r, const struct items *all)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < all->count; i++)
		uar_jw_tree(&w, NULL,
			    all->at[i].state == FLOW_UNIT_DONE ? all->at[i].value : &flow_null);
	uar_jw_close(&w);
	return flow_take_json(r, uar_jw_end(&w), &b);
}

static void end_loop(struct flow_run *r, struct uar_flow_state *n, const struct items *all,
		     bool stops)
{
	const struct flow_unit *u = all->culprit;

	if (u && stops && !all->busy) {
		fail(n, "",
		     uar_arena_printf(r->arena, "item %d: %.*s", u->item + 1,
				      UAR_FMT(uar_str_utf8_prefix(u->message, 400))));
		n->category = u->category;
	} else if (all->done + all->failed == all->count) {
		complete(n, "out", results_of(r, all));
		if (!n->value && !r->err)
			fail(n, "result_too_large", UAR_STR("the list of results is too long"));
	}
}

static void step_loop(struct flow_run *r, size_t node)
{
	struct uar_flow_state *n = &r->step->nodes[node];
	bool stops =
		!uar_str_is(uar_flow_setting(r->f->nodes[node].config, "on_error"), "continue");
	struct items all;

	n->status = UAR_FLOW_RUNNING;
	if (r->scope.in->kind != UAR_JSON_ARRAY)
		fail(n, "value_invalid", UAR_STR("what came in is not a list"));
	else if (r->scope.in->count > UAR_LIMIT_FLOW_ITEMS)
		fail(n, "limit",
		     uar_arena_printf(r->arena, "the list has %u items, %d are the most",
				      r->scope.in->count, UAR_LIMIT_FLOW_ITEMS));
	else if (make_items(r, node, &all)) {
		if (!all.culprit || !stops)
			begin_items(r, node, &all);
		n->items = all.count;
		n->completed = all.done;
		n->failed = all.failed;
		n->running = all.busy;
		end_loop(r, n, &all, stops);
	}
	handle_failure(r, node);
}

/* --- the graph ------------------------------------------------------------------------------ */

static void step_join(struct flow_run *r, size_t node)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_flow_state *n = &r->step->nodes[node];

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < r->f->edge_count; i++) {
		const struct uar_flow_edge *e = &r->f->edges[i];
		const struct uar_json *v = e->to == node ? flow_edge_value(r, e) : NULL;

		if (v)
			uar_jw_tree(&w, NULL, v);
	}
	uar_jw_close(&w);
	complete(n, "out", flow_take_json(r, uar_jw_end(&w), &b));
	if (!n->value && !r->err)
		fail(n, "result_too_large", UAR_STR("the list is too long"));
}

static void step_transform(struct flow_run *r, size_t node)
{
	struct uar_flow_state *n = &r->step->nodes[node];
	const struct uar_json *value = NULL;
	uar_err e =
		uar_flow_fill(&r->scope, uar_json_get(r->f->nodes[node].config, UAR_STR("value")),
			      r->arena, &value);

	if (!e)
		complete(n, "out", value);
	else if (e == UAR_ENOMEM)
		r->err = e;
	else
		fail(n, "result_too_large", UAR_STR("the value is too long"));
}

static void step_node(struct flow_run *r, size_t node)
{
	struct uar_flow_state *n = &r->step->nodes[node];

	switch (r->f->nodes[node].type) {
	case UAR_FLOW_INPUT: complete(n, NULL, NULL); return;
	case UAR_FLOW_MODEL:
	case UAR_FLOW_AGENT:
	case UAR_FLOW_TOOL: step_call(r, node); return;
	case UAR_FLOW_CONDITION:
		complete(n,
			 uar_flow_decide(&r->scope, r->f->nodes[node].config, r->arena) ? "yes"
											: "no",
			 r->scope.in);
		return;
	case UAR_FLOW_LOOP: step_loop(r, node); return;
	case UAR_FLOW_JOIN: step_join(r, node); return;
	case UAR_FLOW_FORM:
	case UAR_FLOW_APPROVAL: step_ask(r, node); return;
	case UAR_FLOW_WAIT: step_wait(r, node); return;
	case UAR_FLOW_TRANSFORM: step_transform(r, node); return;
	case UAR_FLOW_OUTPUT: complete(n, NULL, r->scope.in); return;
	case UAR_FLOW_TYPE_COUNT: return;
	}
}

static bool is_over(enum uar_flow_status s)
{
	return s == UAR_FLOW_COMPLETED || s == UAR_FLOW_SKIPPED;
}

/* Are all incoming edges decided? *in: the first value that came; NULL: no edge was taken. */
static bool gather(struct flow_run *r, size_t node, const struct uar_json **in)
{
	*in = NULL;
	for (size_t i = 0; i < r->f->edge_count; i++) {
		const struct uar_flow_edge *e = &r->f->edges[i];

		if (e->to != node)
			continue;
		if (!is_over(r->step->nodes[e->from].status))
			return false;
		if (!*in)
			*in = flow_edge_value(r, e);
	}
	return true;
}

static void walk(struct flow_run *r)
{
	for (size_t i = 0; i < r->f->node_count && !r->err; i++) {
		size_t node = r->f->order[i];
		bool first = r->f->nodes[node].type == UAR_FLOW_INPUT;

		if (!gather(r, node, &r->scope.in))
			continue;
		if (first || r->scope.in)
			step_node(r, node);
		else
			r->step->nodes[node].status = UAR_FLOW_SKIPPED;
	}
}

/* --- the verdict ---------------------------------------------------------------------------- */

static bool find_culprit(struct flow_run *r)
{
	for (size_t i = 0; i < r->f->node_count; i++)
		if (r->step->nodes[r->f->order[i]].status == UAR_FLOW_FAILED) {
			r->step->culprit = r->f->order[i];
			return true;
		}
	return false;
}

static void take_answer(struct flow_run *r)
{
	for (size_t i = 0; i < r->f->node_count && !r->step->answer; i++)
		if (r->f->nodes[i].type == UAR_FLOW_OUTPUT)
			r->step->answer = r->step->nodes[i].value;
}

/* After a failed agent.wait the run pauses before the next one. */
static bool wait_failed(const struct flow_run *r)
{
	const struct uar_flow_call *last = r->call_count ? r->calls[r->call_count - 1].call : NULL;

	return last && last->failed && uar_str_is(last->key, "wait");
}

static void conclude(struct flow_run *r)
{
	struct uar_flow_step *s = r->step;

	s->until_us = r->until_us;
	if (find_culprit(r)) {
		s->verdict = UAR_FLOW_BROKE;
		s->want_count = 0;
	} else if (s->want_count || r->unended) {
		s->verdict = UAR_FLOW_GOES_ON;
	} else if (r->child_count && wait_failed(r) && r->now_us < r->made_us + PAUSE_US) {
		s->verdict = UAR_FLOW_RESTS;
		s->until_us = r->made_us + PAUSE_US;
	} else if (r->child_count) {
		s->verdict = UAR_FLOW_GOES_ON;
		flow_want_children(r);
	} else if (r->until_us) {
		s->verdict = UAR_FLOW_RESTS;
	} else {
		s->verdict = UAR_FLOW_DONE;
		take_answer(r);
	}
}

uar_err uar_flow_step(const struct uar_flow_ask *ask, struct uar_arena *arena,
		      struct uar_flow_step **out)
{
	struct flow_run r = {
		.f = ask->flow, .now_us = ask->now_us, .made_us = ask->made_us, .arena = arena
	};

	r.step = uar_arena_alloc(arena, sizeof *r.step);
	if (!r.step)
		return UAR_ENOMEM;
	r.scope = (struct uar_flow_scope){ .flow = r.f, .step = r.step, .inputs = ask->inputs };
	flow_read_calls(&r, &ask->calls);
	if (!r.err)
		walk(&r);
	if (!r.err)
		conclude(&r);
	if (!r.err)
		*out = r.step;
	return r.err;
}

/* --- changes -------------------------------------------------------------------------------- */

static bool is_same(const struct uar_flow_state *a, const struct uar_flow_state *b)
{
	return a->status == b->status;
}

static void put_error(struct uar_jw *w, const struct uar_flow_state *n)
{
	if (!n->message.n)
		return;
	uar_jw_obj(w, "error");
	uar_jw_str(w, "category", n->category);
	uar_jw_str(w, "message", uar_str_utf8_prefix(n->message, UAR_LIMIT_FLOW_SHOWN));
	uar_jw_close(w);
}

/* A long value is shown by the beginning of its JSON. */
static void put_output(struct uar_jw *w, const struct uar_flow_state *n)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);

	if (!n->value || n->status != UAR_FLOW_COMPLETED)
		return;
	uar_json_write(&b, n->value);
	if (!b.err && b.n <= UAR_LIMIT_FLOW_SHOWN)
		uar_jw_raw(w, "output", uar_buf_str(&b));
	else
		uar_jw_str(w, "output", uar_str_utf8_prefix(uar_buf_str(&b), UAR_LIMIT_FLOW_SHOWN));
	if (b.n > UAR_LIMIT_FLOW_SHOWN)
		uar_jw_int(w, "output_bytes", (int64_t)b.n);
	uar_buf_fini(&b);
}

static void put_change(struct uar_jw *w, const struct uar_flow_node *f,
		       const struct uar_flow_state *n)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "id", f->id);
	uar_jw_cstr(w, "type", uar_flow_types[f->type].name);
	if (f->title.n)
		uar_jw_str(w, "title", uar_str_utf8_prefix(f->title, 120));
	uar_jw_cstr(w, "status", status_names[n->status]);
	if (n->status == UAR_FLOW_COMPLETED && n->took)
		uar_jw_cstr(w, "took", n->took);
	if (n->items)
		uar_jw_int(w, "items", (int64_t)n->items);
	if (n->status == UAR_FLOW_WAITING)
		uar_jw_time(w, "until", n->until_us);
	put_output(w, n);
	put_error(w, n);
	uar_jw_close(w);
}

uar_err uar_flow_write_changes(const struct uar_flow *f, const struct uar_flow_step *before,
			       const struct uar_flow_step *after, struct uar_buf *out,
			       size_t *out_count)
{
	static const struct uar_flow_state pending = { .status = UAR_FLOW_PENDING };
	struct uar_jw w = uar_jw_begin(out);
	size_t count = 0;

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < f->node_count; i++) {
		size_t node = f->order[i];

		if (is_same(before ? &before->nodes[node] : &pending, &after->nodes[node]))
			continue;
		put_change(&w, &f->nodes[node], &after->nodes[node]);
		count++;
	}
	uar_jw_close(&w);
	*out_count = count;
	return uar_jw_end(&w);
}
