/* template.c - values with "{{/pointer}}" in them, and the tests of conditions. */
#include "flow/flow_int.h"

enum { DEPTH = 16 };

bool uar_flow_cut_pointer(uar_str text, uar_str *before, uar_str *pointer, uar_str *rest)
{
	for (size_t i = 0; i + 1 < text.n; i++) {
		if (text.p[i] != '{' || text.p[i + 1] != '{')
			continue;
		for (size_t k = i + 2; k + 1 < text.n; k++)
			if (text.p[k] == '}' && text.p[k + 1] == '}') {
				*before = uar_str_n(text.p, i);
				*pointer = uar_str_trim(uar_str_n(text.p + i + 2, k - i - 2));
				*rest = uar_str_from(text, k + 2);
				return true;
			}
		break;
	}
	*before = text;
	return false;
}

/* --- where pointers lead -------------------------------------------------------------------- */

const struct uar_json *uar_flow_port_value(const struct uar_flow_scope *s, size_t node,
					   uar_str port)
{
	const struct uar_flow_state *n = &s->step->nodes[node];
	bool is_input = s->flow->nodes[node].type == UAR_FLOW_INPUT;

	if (n->status != UAR_FLOW_COMPLETED)
		return NULL;
	if (is_input)
		return uar_str_is(port, "out") ? s->inputs : uar_json_get(s->inputs, port);
	return n->took && uar_str_is(port, n->took) ? n->value : NULL;
}

static const struct uar_json *find_in_nodes(const struct uar_flow_scope *s, uar_str rest)
{
	uar_str port, more, id = uar_str_cut(rest, '/', &port);
	const struct uar_json *v = NULL;

	port = uar_str_cut(port, '/', &more);
	for (size_t i = 0; i < s->flow->node_count && !v; i++)
		if (uar_str_eq(s->flow->nodes[i].id, id))
			v = uar_flow_port_value(s, i, port);
	return v && more.n ? uar_json_pointer(v, uar_str_n(more.p - 1, more.n + 1)) : v;
}

static const struct uar_json *number(int64_t i, struct uar_arena *arena)
{
	struct uar_json *j = uar_arena_alloc(arena, sizeof *j);

	if (j) {
		j->kind = UAR_JSON_INT;
		j->text = uar_arena_printf(arena, "%lld", (long long)i);
		j->i = i;
	}
	return j && j->text.p ? j : NULL;
}

const struct uar_json *uar_flow_find(const struct uar_flow_scope *s, uar_str pointer,
				     struct uar_arena *arena)
{
	uar_str rest, first = uar_str_cut(uar_str_from(pointer, 1), '/', &rest);
	const struct uar_json *root = NULL;

	if (!pointer.n || pointer.p[0] != '/')
		return NULL;
	if (uar_str_is(first, "nodes"))
		return find_in_nodes(s, rest);
	if (uar_str_is(first, "index"))
		return s->item ? number(s->index, arena) : NULL;
	if (uar_str_is(first, "in"))
		root = s->in;
	else if (uar_str_is(first, "inputs"))
		root = s->inputs;
	else if (uar_str_is(first, "item"))
		root = s->item;
	return root && rest.n ? uar_json_pointer(root, uar_str_n(rest.p - 1, rest.n + 1)) : root;
}

/* --- filling -------------------------------------------------------------------------------- */

struct fill {
	const struct uar_flow_scope *s;
	struct uar_arena *arena;
	struct uar_jw w;
};

/* Inside of another text a text is inserted as it is, any other value as JSON. */
static void add_text(struct uar_buf *out, const struct uar_json *v)
{
	if (v && v->kind == UAR_JSON_STRING)
		uar_buf_add_str(out, v->text);
	else if (v && v->kind != UAR_JSON_NULL)
		uar_json_write(out, v);
}

static void put_value(struct fill *f, const struct uar_json *v)
{
	if (v)
		uar_jw_tree(&f->w, NULL, v);
	else
		uar_jw_null(&f->w, NULL);
}

static void put_text(struct fill *f, uar_str text)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	uar_str before, pointer, rest, trimmed = uar_str_trim(text);

	if (uar_flow_cut_pointer(trimmed, &before, &pointer, &rest) && !before.n && !rest.n) {
		put_value(f, uar_flow_find(f->s, pointer, f->arena));
		return;
	}
	while (uar_flow_cut_pointer(text, &before, &pointer, &rest)) {
		uar_buf_add_str(&out, before);
		add_text(&out, uar_flow_find(f->s, pointer, f->arena));
		text = rest;
	}
	uar_buf_add_str(&out, text);
	if (out.err && !f->w.err)
		f->w.err = out.err;
	uar_jw_str(&f->w, NULL, uar_buf_str(&out));
	uar_buf_fini(&out);
}

static void put(struct fill *f, const struct uar_json *t, int depth)
{
	bool object = t->kind == UAR_JSON_OBJECT;

	if (t->kind == UAR_JSON_STRING) {
		put_text(f, t->text);
	} else if (depth && (object || t->kind == UAR_JSON_ARRAY)) {
		if (object)
			uar_jw_obj(&f->w, NULL);
		else
			uar_jw_arr(&f->w, NULL);
		for (const struct uar_json *j = uar_json_first(t); j; j = j->next) {
			if (object)
				uar_jw_key(&f->w, j->key);
			put(f, j, depth - 1);
		}
		uar_jw_close(&f->w);
	} else {
		uar_jw_tree(&f->w, NULL, t);
	}
}

uar_err uar_flow_fill_text(const struct uar_flow_scope *s, const struct uar_json *t,
			   struct uar_arena *arena, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	struct fill f = { .s = s, .arena = arena, .w = uar_jw_begin(&b) };
	uar_err e;

	put(&f, t, DEPTH);
	e = uar_jw_end(&f.w);
	if (!e) {
		*out = uar_arena_str(arena, uar_buf_str(&b));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}

uar_err uar_flow_fill(const struct uar_flow_scope *s, const struct uar_json *t,
		      struct uar_arena *arena, const struct uar_json **out)
{
	uar_str text;
	uar_err e = uar_flow_fill_text(s, t, arena, &text);

	return e ? e : uar_json_parse(text, NULL, arena, out, NULL);
}

/* --- conditions ----------------------------------------------------------------------------- */

static bool is_empty(const struct uar_json *v)
{
	if (!v || v->kind == UAR_JSON_NULL)
		return true;
	if (v->kind == UAR_JSON_STRING)
		return !v->text.n;
	return (v->kind == UAR_JSON_ARRAY || v->kind == UAR_JSON_OBJECT) && !v->count;
}

static bool is_number(const struct uar_json *v)
{
	return v && (v->kind == UAR_JSON_INT || v->kind == UAR_JSON_DOUBLE);
}

/* Numbers by value, texts by their bytes; what cannot be compared is neither less nor greater. */
static int compare(const struct uar_json *a, const struct uar_json *b)
{
	double x = uar_json_double(a, 0), y = uar_json_double(b, 0);

	if (is_number(a) && is_number(b))
		return x < y ? -1 : x > y;
	if (a && b && a->kind == UAR_JSON_STRING && b->kind == UAR_JSON_STRING)
		return uar_str_cmp(a->text, b->text);
	return 0;
}

static bool text_has(uar_str text, uar_str part)
{
	for (size_t i = 0; i + part.n <= text.n; i++)
		if (memcmp(text.p + i, part.p ? part.p : "", part.n) == 0)
			return true;
	return false;
}

static bool contains(const struct uar_json *v, const struct uar_json *part)
{
	if (!v || !part)
		return false;
	if (v->kind == UAR_JSON_STRING)
		return part->kind == UAR_JSON_STRING && text_has(v->text, part->text);
	if (v->kind == UAR_JSON_OBJECT)
		return part->kind == UAR_JSON_STRING && uar_json_get(v, part->text);
	for (const struct uar_json *j = uar_json_first(v); j; j = j->next)
		if (uar_json_equal(j, part))
			return true;
	return false;
}

static bool passes(const struct uar_json *v, uar_str op, const struct uar_json *with)
{
	static const struct uar_json nothing = { .kind = UAR_JSON_NULL };

	if (uar_str_is(op, "exists"))
		return v && v->kind != UAR_JSON_NULL;
	if (uar_str_is(op, "missing"))
		return !v || v->kind == UAR_JSON_NULL;
	if (uar_str_is(op, "equals"))
		return uar_json_equal(v ? v : &nothing, with ? with : &nothing);
	if (uar_str_is(op, "differs"))
		return !uar_json_equal(v ? v : &nothing, with ? with : &nothing);
	if (uar_str_is(op, "less"))
		return compare(v, with) < 0;
	if (uar_str_is(op, "greater"))
		return compare(v, with) > 0;
	return uar_str_is(op, "contains") ? contains(v, with) : is_empty(v);
}

bool uar_flow_decide(const struct uar_flow_scope *s, const struct uar_json *config,
		     struct uar_arena *arena)
{
	const struct uar_json *all = uar_json_get(config, UAR_STR("all"));
	const struct uar_json *tests = all ? all : uar_json_get(config, UAR_STR("any"));

	for (const struct uar_json *t = uar_json_first(tests); t; t = t->next) {
		const struct uar_json *v = uar_flow_find(s, uar_flow_setting(t, "pointer"), arena);
		bool pass = passes(v, uar_flow_setting(t, "op"), uar_json_get(t, UAR_STR("value")));

		if (pass != (all != NULL))
			return pass;
	}
	return all != NULL;
}
