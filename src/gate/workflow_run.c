/* workflow_run.c - the graph of a run, with the state of each node: the run's events are folded,
 * and the definition that it began with is read. */
#include "agent/limits.h"
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/flow_view.h"

struct graph {
	struct call *c;
	struct uar_events_read read;
	struct uar_blob_read blob;
	struct uar_flow_view *view;
	uint64_t after;
	bool reading;
};

static void end_page(struct graph *g)
{
	if (g->reading)
		uar_events_read_fini(&g->read);
	g->reading = false;
}

/* The rest is in the memory of the call. */
static void fini_graph(struct graph *g)
{
	end_page(g);
	uar_flow_view_fini(g->view);
}

static void drop_graph(struct call *c)
{
	fini_graph(c->op);
}

static void fail(struct graph *g, uar_err e, const struct uar_error *error)
{
	struct uar_error copy = error ? *error : (struct uar_error){ 0 };

	fini_graph(g);
	gate_problem(g->c, e, &copy);
}

static void none(struct graph *g)
{
	struct uar_error error = { 0 };

	fail(g, uar_error_set(&error, UAR_ENOTFOUND, "this run is of no workflow"), &error);
}

static void answer(struct graph *g, const struct uar_json *definition)
{
	struct call *c = g->c;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "run_id", c->params[0]);
	uar_flow_view_write(g->view, definition, &w);
	uar_jw_close(&w);
	fini_graph(g);
	gate_answer_json(c, 200, &b, &w);
}

static void definition_read(struct uar_blob_read *b)
{
	struct graph *g = UAR_OWNER(b, struct graph, blob);
	const struct uar_json *j = NULL;
	uar_err e = b->err;
	struct uar_error error = b->error;

	if (!e)
		e = uar_json_parse_copy(b->bytes, NULL, &g->c->arena, &j, NULL);
	uar_blob_read_fini(b);
	if (e)
		fail(g, e, &error);
	else if (!uar_json_get(j, UAR_STR("workflow")))
		none(g);
	else
		answer(g, j);
}

static void read_definition(struct graph *g)
{
	uar_err e;

	if (g->view->revision.n != sizeof g->blob.sha256 - 1) {
		none(g);
		return;
	}
	g->blob = (struct uar_blob_read){ .owner = g->c->owner,
					  .limit = UAR_LIMIT_AGENT_DEFINITION,
					  .done = definition_read };
	memcpy(g->blob.sha256, g->view->revision.p, g->view->revision.n);
	e = uar_reader_blob(g->c->g->o.reader, &g->blob);
	if (e)
		fail(g, e, NULL);
}

static uar_err read_page(struct graph *g);

static void page_ready(struct uar_events_read *r)
{
	struct graph *g = UAR_OWNER(r, struct graph, read);
	struct uar_error error = r->error;
	bool more = r->more;
	uar_err e = r->err;

	for (size_t i = 0; i < r->event_count && !e; i++) {
		g->after = r->events[i].run_sequence;
		e = uar_flow_view_take(g->view, &r->events[i]);
	}
	end_page(g);
	if (!e && more)
		e = read_page(g);
	else if (!e) {
		read_definition(g);
		return;
	}
	if (e)
		fail(g, e, &error);
}

static uar_err read_page(struct graph *g)
{
	uar_err e;

	g->read = (struct uar_events_read){ .owner = g->c->owner,
					    .run_id = g->c->params[0],
					    .after = g->after,
					    .limit = UAR_LIMIT_READ_PAGE,
					    .done = page_ready };
	e = uar_reader_events(g->c->g->o.reader, &g->read);
	g->reading = !e;
	return e;
}

void gate_run_workflow(struct call *c)
{
	struct graph *g = uar_arena_alloc(&c->arena, sizeof *g);
	uar_err e = UAR_ENOMEM;

	if (g) {
		g->c = c;
		g->view = uar_arena_alloc(&c->arena, sizeof *g->view);
		c->op = g;
		c->drop = drop_graph;
	}
	if (g && g->view) {
		uar_flow_view_init(g->view, &c->arena);
		e = read_page(g);
	}
	if (e)
		gate_problem(c, e, NULL);
}
