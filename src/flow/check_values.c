/* check_values.c - where the templates and tests of a workflow lead: only to what is there. */
#include "flow/check_int.h"

struct place {
	struct check *c;
	size_t node;
	bool loop; /* it is what is done for an item */
	char pointer[UAR_LIMIT_ERROR_WHERE];
};

static void refuse_pointer(struct place *at, uar_str pointer, const char *why,
			   const char *next_step)
{
	struct uar_flow_problem *p = flow_at_node(at->c, "unknown_value", at->node, next_step);

	flow_point(p, at->pointer);
	flow_say(p, "%.*s: %s", UAR_FMT(uar_str_utf8_prefix(pointer, 100)), why);
}

static void check_node_pointer(struct place *at, uar_str pointer, uar_str rest)
{
	uar_str port, id = uar_str_cut(rest, '/', &port), more;
	size_t node = flow_node_named(at->c, id);

	port = uar_str_cut(port, '/', &more);
	if (node == at->c->f->node_count)
		refuse_pointer(at, pointer, "there is no such node",
			       "Name a node that comes before this one.");
	else if (!at->c->before[node][at->node])
		refuse_pointer(at, pointer, "that node does not come before this one",
			       "Connect the two, over others or directly.");
	else if (!uar_flow_port_type(at->c->f->inputs, &at->c->f->nodes[node], port))
		refuse_pointer(at, pointer, "that node has no such output",
			       "Write /nodes/NODE/OUTPUT.");
}

static void check_pointer(struct place *at, uar_str pointer)
{
	const struct uar_json *inputs = uar_json_get(at->c->f->inputs, UAR_STR("properties"));
	uar_str rest, name, more, first;

	if (!pointer.n || pointer.p[0] != '/') {
		refuse_pointer(at, pointer, "a pointer begins with /",
			       "Write {{/in}}, {{/inputs/NAME}} or {{/nodes/NODE/OUTPUT}}.");
		return;
	}
	first = uar_str_cut(uar_str_from(pointer, 1), '/', &rest);
	name = uar_str_cut(rest, '/', &more);
	if (uar_str_is(first, "nodes"))
		check_node_pointer(at, pointer, rest);
	else if (uar_str_is(first, "inputs") && rest.n && inputs && !uar_json_get(inputs, name))
		refuse_pointer(at, pointer, "the workflow has no such input",
			       "Add it to schemas.inputs, or name one that is there.");
	else if ((uar_str_is(first, "item") || uar_str_is(first, "index")) && !at->loop)
		refuse_pointer(at, pointer, "only what a loop does has an item",
			       "Write /in for what comes in.");
	else if (!uar_str_is(first, "in") && !uar_str_is(first, "inputs") &&
		 !uar_str_is(first, "item") && !uar_str_is(first, "index"))
		refuse_pointer(at, pointer, "there is no such value",
			       "Write {{/in}}, {{/inputs/NAME}} or {{/nodes/NODE/OUTPUT}}.");
}

static void check_template(struct place *at, const struct uar_json *t, int depth)
{
	size_t n = strlen(at->pointer), place = 0;
	uar_str before, pointer, rest;

	for (rest = t && t->kind == UAR_JSON_STRING ? t->text : UAR_STR("");
	     uar_flow_cut_pointer(rest, &before, &pointer, &rest);)
		check_pointer(at, pointer);
	for (const struct uar_json *j = depth ? uar_json_first(t) : NULL; j; j = j->next) {
		if (t->kind == UAR_JSON_OBJECT)
			snprintf(at->pointer + n, sizeof at->pointer - n, "/%.*s", UAR_FMT(j->key));
		else
			snprintf(at->pointer + n, sizeof at->pointer - n, "/%zu", place++);
		check_template(at, j, depth - 1);
		at->pointer[n] = 0;
	}
}

static void check_tests(struct place *at, const struct uar_json *config)
{
	static const char *const names[] = { "all", "any" };

	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		const struct uar_json *tests = uar_json_get(config, uar_str_c(names[k]));
		size_t i = 0;

		for (const struct uar_json *t = uar_json_first(tests); t; t = t->next, i++) {
			snprintf(at->pointer, sizeof at->pointer, "/config/%s/%zu/pointer",
				 names[k], i);
			check_pointer(at, uar_flow_setting(t, "pointer"));
		}
	}
}

void flow_check_values(struct check *c)
{
	for (size_t i = 0; i < c->f->node_count; i++) {
		const struct uar_flow_node *n = &c->f->nodes[i];
		struct place at = {
			.c = c, .node = i, .loop = n->type == UAR_FLOW_LOOP, .pointer = "/config"
		};

		if (n->type == UAR_FLOW_CONDITION)
			check_tests(&at, n->config);
		else if (n->type != UAR_FLOW_FORM)
			check_template(&at, n->config, 8);
	}
}
