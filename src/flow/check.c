/* check.c - finds the problems of a workflow and says how to fix each one. The graph is read at the
 * same time. */
#include "flow/check_int.h"

#include <stdarg.h>

#include "json/schema.h"

struct uar_flow_problem *uar_flow_problem_add(struct uar_flow_problems *all, const char *code,
					      bool warning)
{
	struct uar_flow_problem *p = NULL;

	if (all->count < UAR_LIMIT_FLOW_PROBLEMS)
		p = &all->at[all->count++];
	for (size_t i = all->count; !p && !warning && i-- > 0;)
		if (all->at[i].warning)
			p = &all->at[i];
	if (!p)
		return NULL;
	*p = (struct uar_flow_problem){
		.code = code, .warning = warning, .edge = -1, .node = UAR_STR("")
	};
	all->errors += !warning;
	return p;
}

static struct uar_flow_problem *problem(struct check *c, const char *code, const char *next_step)
{
	struct uar_flow_problem *p = uar_flow_problem_add(c->out, code, false);

	if (p)
		snprintf(p->next_step, sizeof p->next_step, "%s", next_step);
	return p;
}

void flow_say(struct uar_flow_problem *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (p)
		(void)vsnprintf(p->message, sizeof p->message, fmt, args);
	va_end(args);
}

void flow_advise(struct uar_flow_problem *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (p)
		(void)vsnprintf(p->next_step, sizeof p->next_step, fmt, args);
	va_end(args);
}

struct uar_flow_problem *flow_at_node(struct check *c, const char *code, size_t node,
				      const char *next_step)
{
	struct uar_flow_problem *p = problem(c, code, next_step);

	if (p) {
		p->node = c->f->nodes[node].id;
		snprintf(p->pointer, sizeof p->pointer, "/workflow/nodes/%zu", c->node_at[node]);
	}
	return p;
}

void flow_point(struct uar_flow_problem *p, const char *more)
{
	size_t n = p ? strlen(p->pointer) : 0;

	if (p)
		snprintf(p->pointer + n, sizeof p->pointer - n, "%s", more);
}

static void warn(struct check *c, struct uar_flow_problem *p)
{
	if (!p)
		return;
	p->warning = true;
	c->out->errors--;
}

size_t flow_node_named(const struct check *c, uar_str id)
{
	size_t i = 0;

	while (i < c->f->node_count && !uar_str_eq(c->f->nodes[i].id, id))
		i++;
	return i;
}

/* The type whose name is nearest, for a typing error; NULL: none is near. */
static const char *nearest_type(uar_str name)
{
	const char *best = NULL;
	size_t least = 3;

	for (size_t i = 0; i < UAR_FLOW_TYPE_COUNT; i++) {
		size_t d = uar_str_distance(name, uar_str_c(uar_flow_types[i].name));

		if (d < least) {
			least = d;
			best = uar_flow_types[i].name;
		}
	}
	return best;
}

/* --- nodes ---------------------------------------------------------------------------------- */

static bool is_node_id(uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char ch = s.p[i];

		if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
		      (ch >= '0' && ch <= '9') || ch == '_' || ch == '-'))
			return false;
	}
	return s.n > 0 && s.n <= UAR_LIMIT_FLOW_NODE_ID;
}

static void refuse_node(struct check *c, size_t place, const char *member, const char *code,
			const char *next_step)
{
	struct uar_flow_problem *p = problem(c, code, next_step);

	if (p)
		snprintf(p->pointer, sizeof p->pointer, "/workflow/nodes/%zu%s", place, member);
	flow_say(p, "%s",
		 uar_str_is(uar_str_c(code), "node_id") ? "this node has no valid id"
							: "another node has this id");
}

static void refuse_type(struct check *c, size_t place, uar_str id, uar_str type)
{
	const char *like = nearest_type(type);
	struct uar_flow_problem *p = problem(c, "node_type", "");

	if (p) {
		p->node = id;
		snprintf(p->pointer, sizeof p->pointer, "/workflow/nodes/%zu/type", place);
	}
	flow_say(p, "there is no node type \"%.*s\"", UAR_FMT(uar_str_utf8_prefix(type, 64)));
	if (like)
		flow_advise(p, "Did you mean %s?", like);
	else
		flow_advise(p,
			    "Write one of input, model, agent, tool, condition, loop, join, form, "
			    "approval, wait, transform, output.");
}

/* Nodes without a usable id or type are left out: no message could name them. */
static void read_node(struct check *c, const struct uar_json *j, size_t place)
{
	struct uar_flow_node n = { .id = uar_flow_setting(j, "id"),
				   .title = uar_flow_setting(j, "title"),
				   .config = uar_json_get(j, UAR_STR("config")) };
	uar_str type = uar_flow_setting(j, "type");

	n.type = uar_flow_type_parse(type);
	if (!is_node_id(n.id)) {
		refuse_node(c, place, "/id", "node_id", "Write 1 to 64 letters, digits, _ and -.");
	} else if (flow_node_named(c, n.id) < c->f->node_count) {
		refuse_node(c, place, "/id", "node_twice", "Give one of them another id.");
	} else if (n.type == UAR_FLOW_TYPE_COUNT) {
		refuse_type(c, place, n.id, type);
	} else {
		c->node_at[c->f->node_count] = place;
		c->f->nodes[c->f->node_count++] = n;
	}
}

/* `where`: of the settings below the node. */
static void check_settings(struct check *c, size_t node, enum uar_flow_type type,
			   const struct uar_json *config, const char *where)
{
	static const struct uar_json none = { .kind = UAR_JSON_OBJECT };
	struct uar_error error = { 0 };
	uar_err e = uar_schema_check_text(uar_str_c(uar_flow_types[type].config),
					  config ? config : &none, &error);
	struct uar_flow_problem *p;

	c->out->no_memory |= e == UAR_ENOMEM;
	if (!e || e == UAR_ENOMEM)
		return;
	p = flow_at_node(c, "settings", node, "");
	flow_point(p, where);
	flow_point(p, error.where);
	flow_say(p, "%s", uar_error_text(&error));
	flow_advise(p, "A node of type %s is described in GET /api/workflows-node-types.",
		    uar_flow_types[type].name);
}

static void check_loop(struct check *c, size_t node)
{
	const struct uar_json *config = c->f->nodes[node].config;
	enum uar_flow_type type = uar_flow_type_parse(uar_flow_setting(config, "do"));

	if (type != UAR_FLOW_TYPE_COUNT)
		check_settings(c, node, type, uar_json_get(config, UAR_STR("with")),
			       "/config/with");
}

static void check_form(struct check *c, size_t node)
{
	const struct uar_json *schema = uar_json_get(c->f->nodes[node].config, UAR_STR("schema"));
	struct uar_schema *s = NULL;
	struct uar_error error = { 0 };
	struct uar_flow_problem *p;
	uar_err e = schema ? uar_schema_create(schema, NULL, &s, &error) : UAR_OK;

	uar_schema_destroy(s);
	c->out->no_memory |= e == UAR_ENOMEM;
	if (e && e != UAR_ENOMEM) {
		p = flow_at_node(c, "settings", node, "Write a JSON Schema of an object.");
		flow_point(p, "/config/schema");
		flow_say(p, "%s", uar_error_text(&error));
	}
}

static void check_nodes(struct check *c)
{
	size_t place = 0;

	for (const struct uar_json *j = uar_json_first(c->nodes); j; j = j->next, place++) {
		if (place == UAR_LIMIT_FLOW_NODES) {
			struct uar_flow_problem *p =
				problem(c, "too_many",
					"Move a part into a workflow of its own, and call it with "
					"an agent node.");

			if (p)
				snprintf(p->pointer, sizeof p->pointer, "/workflow/nodes/%zu",
					 place);
			flow_say(p, "a workflow may have %d nodes", UAR_LIMIT_FLOW_NODES);
			return;
		}
		read_node(c, j, place);
	}
	for (size_t i = 0; i < c->f->node_count; i++) {
		const struct uar_flow_node *n = &c->f->nodes[i];
		size_t errors = c->out->errors;

		check_settings(c, i, n->type, n->config, "/config");
		if (errors == c->out->errors && n->type == UAR_FLOW_LOOP)
			check_loop(c, i);
		if (errors == c->out->errors && n->type == UAR_FLOW_FORM)
			check_form(c, i);
	}
}

/* A workflow has one input node, and at least one output node. */
static void check_ends(struct check *c)
{
	size_t inputs = 0, outputs = 0;
	struct uar_flow_problem *p = NULL;

	for (size_t i = 0; i < c->f->node_count; i++) {
		inputs += c->f->nodes[i].type == UAR_FLOW_INPUT;
		outputs += c->f->nodes[i].type == UAR_FLOW_OUTPUT;
		if (inputs == 2 && c->f->nodes[i].type == UAR_FLOW_INPUT) {
			p = flow_at_node(c, "input_twice", i,
					 "Remove it, and connect the other input node.");
			flow_say(p, "there is another input node");
		}
	}
	if (!inputs) {
		p = problem(c, "no_input", "Add a node of type input.");
		flow_say(p, "the workflow has no input");
	} else if (!outputs) {
		p = problem(c, "no_output", "Add a node of type output.");
		flow_say(p, "the workflow has no output");
	}
	if (p && !p->pointer[0])
		flow_point(p, "/workflow/nodes");
}

/* --- edges ---------------------------------------------------------------------------------- */

static struct uar_flow_problem *at_edge(struct check *c, const char *code, size_t place,
					const char *member, const char *next_step)
{
	struct uar_flow_problem *p = problem(c, code, next_step);

	if (p) {
		p->edge = (int)place;
		snprintf(p->pointer, sizeof p->pointer, "/workflow/edges/%zu%s", place, member);
	}
	return p;
}

/* False: there is no such node, which is added to the problems. */
static bool find_end(struct check *c, const struct uar_json *edge, size_t place, const char *end,
		     size_t *out)
{
	uar_str id = uar_flow_setting(uar_json_get(edge, uar_str_c(end)), "node");
	struct uar_flow_problem *p;
	char member[32];

	*out = flow_node_named(c, id);
	if (*out < c->f->node_count)
		return true;
	snprintf(member, sizeof member, "/%s/node", end);
	p = at_edge(c, "dangling_edge", place, member,
		    "Name a node of the workflow, or remove the edge.");
	flow_say(p, "there is no node \"%.*s\"", UAR_FMT(uar_str_utf8_prefix(id, 64)));
	return false;
}

static void list_ports(const struct check *c, size_t node, struct uar_buf *out)
{
	const struct uar_flow_type_info *t = &uar_flow_types[c->f->nodes[node].type];
	const struct uar_json *p =
		uar_json_first(uar_json_get(c->f->inputs, UAR_STR("properties")));

	for (size_t i = 0; i < ARRAY_LEN(t->out) && t->out[i].name; i++)
		uar_buf_printf(out, "%s%s", out->n ? ", " : "", t->out[i].name);
	if (t->more == UAR_FLOW_MORE_ON_ERROR)
		uar_buf_printf(out, ", error (with on_error: port)");
	for (; t->more == UAR_FLOW_MORE_INPUTS && p; p = p->next)
		uar_buf_printf(out, ", %.*s", UAR_FMT(p->key));
	if (t->more == UAR_FLOW_MORE_INPUTS && !c->f->inputs)
		uar_buf_printf(out, ", message");
}

static void refuse_port(struct check *c, size_t place, size_t node, uar_str port)
{
	struct uar_flow_problem *p = at_edge(c, "no_such_port", place, "/from/port",
					     "This node has no output: let nothing lead from it.");
	struct uar_buf ports = uar_buf_make(160);

	flow_say(p, "%.*s has no output \"%.*s\"", UAR_FMT(c->f->nodes[node].id),
		 UAR_FMT(uar_str_utf8_prefix(port, 64)));
	list_ports(c, node, &ports);
	if (ports.n)
		flow_advise(p, "Its outputs are %.*s.", (int)ports.n, ports.p);
	uar_buf_fini(&ports);
}

static const char *words(enum uar_flow_value v)
{
	static const char *const all[] = { "nothing",	"any value", "text",	 "a number",
					   "yes or no", "a list",    "an object" };

	return all[v];
}

static bool check_ports(struct check *c, const struct uar_flow_edge *e, size_t place, uar_str to)
{
	const struct uar_flow_node *from = &c->f->nodes[e->from], *into = &c->f->nodes[e->to];
	enum uar_flow_value gives = uar_flow_port_type(c->f->inputs, from, e->port);
	enum uar_flow_value takes = uar_flow_types[into->type].in;
	struct uar_flow_problem *p;

	if (!gives) {
		refuse_port(c, place, e->from, e->port);
		return false;
	}
	if (!takes || !uar_str_is(to, "in")) {
		p = at_edge(c, "no_such_port", place, "/to/port",
			    takes ? "Its input is in."
				  : "An input node begins: let nothing lead to it.");
		flow_say(p, "%.*s has no input \"%.*s\"", UAR_FMT(into->id),
			 UAR_FMT(uar_str_utf8_prefix(to, 64)));
		return false;
	}
	if (gives == UAR_FLOW_ANY || takes == UAR_FLOW_ANY || gives == takes)
		return true;
	p = at_edge(c, "wrong_type", place, "",
		    "Put a transform between them that makes what is wanted.");
	flow_say(p, "%.*s gives %s, and %.*s takes %s", UAR_FMT(from->id), words(gives),
		 UAR_FMT(into->id), words(takes));
	return true;
}

static bool is_there(const struct uar_flow *f, const struct uar_flow_edge *e)
{
	for (size_t i = 0; i < f->edge_count; i++)
		if (f->edges[i].from == e->from && f->edges[i].to == e->to &&
		    uar_str_eq(f->edges[i].port, e->port))
			return true;
	return false;
}

static uar_str port_of(const struct uar_json *edge, const char *end, const char *otherwise)
{
	uar_str port = uar_flow_setting(uar_json_get(edge, uar_str_c(end)), "port");

	return port.n ? port : uar_str_c(otherwise);
}

static void read_edge(struct check *c, const struct uar_json *j, size_t place)
{
	struct uar_flow_edge e = { .port = port_of(j, "from", "out") };
	bool good = find_end(c, j, place, "from", &e.from);

	good = find_end(c, j, place, "to", &e.to) && good;
	if (!good || !check_ports(c, &e, place, port_of(j, "to", "in")))
		return;
	if (is_there(c->f, &e)) {
		flow_say(at_edge(c, "edge_twice", place, "", "Remove it."),
			 "there is the same edge already");
		return;
	}
	c->edge_at[c->f->edge_count] = place;
	c->f->edges[c->f->edge_count++] = e;
}

static void check_edges(struct check *c)
{
	size_t place = 0;

	for (const struct uar_json *j = uar_json_first(c->edges); j; j = j->next, place++) {
		if (place == UAR_LIMIT_FLOW_EDGES) {
			flow_say(at_edge(c, "too_many", place, "", "Remove some."),
				 "a workflow may have %d edges", UAR_LIMIT_FLOW_EDGES);
			return;
		}
		read_edge(c, j, place);
	}
}

static bool has_edge(const struct uar_flow *f, size_t node, bool to)
{
	for (size_t i = 0; i < f->edge_count; i++)
		if ((to ? f->edges[i].to : f->edges[i].from) == node)
			return true;
	return false;
}

/* A node with an input needs an edge to it. */
static void check_connected(struct check *c)
{
	struct uar_flow_problem *p;

	for (size_t i = 0; i < c->f->node_count; i++) {
		const struct uar_flow_type_info *t = &uar_flow_types[c->f->nodes[i].type];

		if (t->in && !has_edge(c->f, i, true)) {
			p = flow_at_node(c, "no_edge_in", i,
					 "Connect a node that comes before it.");
			flow_say(p, "nothing leads to the input of %.*s",
				 UAR_FMT(c->f->nodes[i].id));
		} else if (t->out[0].name && !has_edge(c->f, i, false)) {
			p = flow_at_node(c, "no_edge_out", i,
					 "Connect it, or leave it if only its effect counts.");
			flow_say(p, "nothing follows %.*s: what it gives is not used",
				 UAR_FMT(c->f->nodes[i].id));
			warn(c, p);
		}
	}
}

/* --- order ---------------------------------------------------------------------------------- */

/* Names the nodes of a cycle. Each node that could not be placed has an edge from another one: the
 * first pass follows such edges until it is in a cycle, the second goes round it. */
static void tell_cycle(struct check *c, const bool *placed)
{
	struct uar_buf names = uar_buf_make(200);
	bool seen[UAR_LIMIT_FLOW_NODES] = { false };
	size_t at = 0, edge = 0;

	while (placed[at])
		at++;
	for (int pass = 0; pass < 2; pass++) {
		memset(seen, 0, sizeof seen);
		uar_buf_clear(&names);
		while (!seen[at]) {
			seen[at] = true;
			uar_buf_printf(&names, "%s%.*s", names.n ? " after " : "",
				       UAR_FMT(c->f->nodes[at].id));
			for (edge = 0; edge < c->f->edge_count; edge++)
				if (c->f->edges[edge].to == at && !placed[c->f->edges[edge].from])
					break;
			at = c->f->edges[edge].from;
		}
	}
	flow_say(at_edge(c, "cycle", c->edge_at[edge], "",
			 "Remove one of these edges. To repeat a step for each item of a list, use "
			 "a node of type loop."),
		 "the edges form a cycle: %.*s after %.*s", (int)names.n, names.p ? names.p : "",
		 UAR_FMT(c->f->nodes[at].id));
	uar_buf_fini(&names);
}

static bool is_ready(const struct check *c, size_t node, const bool *placed)
{
	for (size_t i = 0; i < c->f->edge_count; i++)
		if (c->f->edges[i].to == node && !placed[c->f->edges[i].from])
			return false;
	return !placed[node];
}

static void note_before(struct check *c, size_t node)
{
	for (size_t i = 0; i < c->f->edge_count; i++) {
		size_t from = c->f->edges[i].from;

		if (c->f->edges[i].to != node)
			continue;
		c->before[from][node] = true;
		for (size_t k = 0; k < c->f->node_count; k++)
			c->before[k][node] |= c->before[k][from];
	}
}

static bool put_in_order(struct check *c)
{
	bool placed[UAR_LIMIT_FLOW_NODES] = { false };
	size_t count = 0, before;

	do {
		before = count;
		for (size_t i = 0; i < c->f->node_count; i++) {
			if (!is_ready(c, i, placed))
				continue;
			placed[i] = true;
			note_before(c, i);
			c->f->order[count++] = i;
		}
	} while (count > before);
	if (count < c->f->node_count)
		tell_cycle(c, placed);
	return count == c->f->node_count;
}

/* --- the whole ------------------------------------------------------------------------------ */

/* Inputs are recorded, and so are the values that nodes compute from them. */
static void check_secrets(struct check *c)
{
	const struct uar_json *p =
		uar_json_first(uar_json_get(c->f->inputs, UAR_STR("properties")));
	struct uar_flow_problem *told;

	for (; p; p = p->next) {
		if (!uar_json_bool(uar_json_get(p, UAR_STR("writeOnly")), false))
			continue;
		told = problem(c, "secret_input",
			       "Leave writeOnly out, or let the tool that needs it read a stored "
			       "credential.");
		if (told)
			snprintf(told->pointer, sizeof told->pointer,
				 "/schemas/inputs/properties/%.*s",
				 UAR_FMT(uar_str_utf8_prefix(p->key, 64)));
		flow_say(told, "a workflow cannot take secrets: its inputs are recorded");
	}
}

static bool find_graph(struct check *c, const struct uar_json *definition)
{
	const struct uar_json *w = uar_json_get(definition, UAR_STR("workflow"));
	struct uar_flow_problem *p;

	c->nodes = uar_json_get(w, UAR_STR("nodes"));
	c->edges = uar_json_get(w, UAR_STR("edges"));
	c->f->inputs =
		uar_json_get(uar_json_get(definition, UAR_STR("schemas")), UAR_STR("inputs"));
	if (c->nodes && c->nodes->kind == UAR_JSON_ARRAY &&
	    (!c->edges || c->edges->kind == UAR_JSON_ARRAY))
		return true;
	p = problem(c, "no_graph",
		    "Write workflow: {\"nodes\": [...], \"edges\": [...]} into the definition.");
	flow_point(p, !w					     ? ""
		      : c->nodes && c->nodes->kind == UAR_JSON_ARRAY ? "/workflow/edges"
								     : "/workflow");
	flow_say(p, "the workflow needs lists of nodes and edges");
	return false;
}

static void check(struct check *c, const struct uar_json *definition)
{
	if (!find_graph(c, definition))
		return;
	check_nodes(c);
	check_edges(c);
	check_ends(c);
	check_secrets(c);
	if (c->f->node_count && put_in_order(c) && !c->out->errors) {
		check_connected(c); /* complete only when no node and no edge was left out */
		flow_check_values(c);
	}
}

void uar_flow_check(const struct uar_json *definition, struct uar_flow *out,
		    struct uar_flow_problems *problems)
{
	struct check c = { .out = problems };
	struct uar_arena arena;

	*problems = (struct uar_flow_problems){ .count = 0 };
	uar_arena_init(&arena, 0);
	c.f = out ? out : uar_arena_alloc(&arena, sizeof *c.f);
	problems->no_memory = !c.f;
	if (c.f) {
		*c.f = (struct uar_flow){ .node_count = 0 };
		check(&c, definition);
	}
	uar_arena_fini(&arena);
}

uar_err uar_flow_read(const struct uar_json *definition, struct uar_flow *out,
		      struct uar_error *error)
{
	struct uar_arena arena;
	struct uar_flow_problems *all;
	uar_err e = UAR_OK;

	uar_arena_init(&arena, 0);
	all = uar_arena_alloc(&arena, sizeof *all);
	if (all)
		uar_flow_check(definition, out, all);
	if (!all || all->no_memory)
		e = UAR_ENOMEM;
	for (size_t i = 0; !e && i < all->count; i++)
		if (!all->at[i].warning) {
			e = uar_error_set(error, UAR_ESCHEMA, "%s. %s", all->at[i].message,
					  all->at[i].next_step);
			if (error)
				uar_error_where(error, "%s", all->at[i].pointer);
		}
	uar_arena_fini(&arena);
	return e;
}

void uar_flow_write_problems(struct uar_jw *w, const struct uar_flow_problems *problems)
{
	uar_jw_bool(w, "good", problems->errors == 0);
	uar_jw_arr(w, "problems");
	for (size_t i = 0; i < problems->count; i++) {
		const struct uar_flow_problem *p = &problems->at[i];

		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "severity", p->warning ? "warning" : "error");
		uar_jw_cstr(w, "code", p->code);
		uar_jw_cstr(w, "pointer", p->pointer);
		if (p->node.n)
			uar_jw_str(w, "node", p->node);
		if (p->edge >= 0)
			uar_jw_int(w, "edge", p->edge);
		uar_jw_cstr(w, "message", p->message);
		if (p->next_step[0])
			uar_jw_cstr(w, "next_step", p->next_step);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_flow_write_tools(const struct uar_json *definition, struct uar_buf *out)
{
	const struct uar_json *nodes =
		uar_json_get(uar_json_get(definition, UAR_STR("workflow")), UAR_STR("nodes"));

	uar_buf_printf(out, "internal:agent.spawn internal:agent.wait internal:ui.form.request");
	for (const struct uar_json *n = uar_json_first(nodes); n; n = n->next) {
		const struct uar_json *config = uar_json_get(n, UAR_STR("config"));
		uar_str tool = uar_flow_setting(config, "tool");

		if (!tool.n)
			tool = uar_flow_setting(uar_json_get(config, UAR_STR("with")), "tool");
		if (tool.n)
			uar_buf_printf(out, " %.*s", UAR_FMT(tool));
	}
}
