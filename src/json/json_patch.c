/* json_patch.c - JSON Patch (RFC 6902) on a private copy of the document.
 *
 * The copy is made once and then edited in place, and whatever an operation
 * brings in is copied too, so no two places share a node and the size of the
 * result is the number of nodes made: `copy` cannot blow it up. Every node
 * visited costs a step, and steps are bounded. */
#include "json/json_int.h"
#include "json/limits.h"

struct patcher {
	struct uar_arena *arena;
	struct uar_json *root;
	uint32_t nodes_left, steps_left;
	struct uar_error *error;
};

/* Where an operation points: a parent and the last token, or the root. */
struct place {
	struct uar_json *parent;	/* NULL: the root itself */
	uar_str token;			/* as written, escaped */
	struct uar_json *before, *node; /* previous sibling, and what is there now */
	uint32_t depth;
};

static struct uar_json *mut(const struct uar_json *j)
{
	return (struct uar_json *)(uintptr_t)j; /* every node of the copy is ours */
}

static bool spend(struct patcher *p)
{
	return p->steps_left && p->steps_left--;
}

static uar_err copy_tree(struct patcher *p, const struct uar_json *from, uint32_t depth,
			 struct uar_json **out)
{
	bool container = from->kind == UAR_JSON_ARRAY || from->kind == UAR_JSON_OBJECT;
	struct uar_json *copy;
	const struct uar_json **link;

	if (container && depth >= UAR_LIMIT_JSON_DEPTH)
		return uar_error_set(p->error, UAR_EDEPTH, "the result is nested too deeply");
	if (!p->nodes_left || !spend(p))
		return uar_error_set(p->error, UAR_ETOOBIG, "the result has too many values");
	p->nodes_left--;
	copy = uar_arena_alloc(p->arena, sizeof *copy);
	if (!copy)
		return uar_error_set(p->error, UAR_ENOMEM, "out of memory");
	*copy = *from;
	copy->next = NULL;
	*out = copy;
	if (!container)
		return UAR_OK;
	copy->text = UAR_STR_NONE; /* what it was read from may not be what it becomes */
	link = &copy->first;
	for (const struct uar_json *c = from->first; c; c = c->next) {
		struct uar_json *child;
		uar_err e = copy_tree(p, c, depth + 1, &child);

		if (e)
			return e;
		*link = child;
		link = &child->next;
	}
	return UAR_OK;
}

/* --- finding places --- */

static uar_err seek(struct patcher *p, struct place *at)
{
	bool array = at->parent->kind == UAR_JSON_ARRAY, end = uar_str_is(at->token, "-");
	uint64_t index = at->parent->count;

	at->before = at->node = NULL;
	if (array && !end && !uar_json_token_index(at->token, &index))
		return uar_error_set(p->error, UAR_EINVALID, "not an index of an array");
	if (array && index > at->parent->count)
		return uar_error_set(p->error, UAR_ENOTFOUND, "the index is behind the end");
	for (const struct uar_json *c = at->parent->first; c; c = c->next) {
		if (!spend(p))
			return uar_error_set(p->error, UAR_ETOOBIG, "the patch costs too much");
		if (array ? index-- == 0 : uar_json_token_is(at->token, c->key)) {
			at->node = mut(c);
			return UAR_OK;
		}
		at->before = mut(c);
	}
	return UAR_OK;
}

static uar_err find(struct patcher *p, uar_str pointer, struct place *at)
{
	*at = (struct place){ .node = p->root };
	if (pointer.n && pointer.p[0] != '/')
		return uar_error_set(p->error, UAR_EINVALID, "not a JSON Pointer");
	while (pointer.n) {
		uar_str rest = uar_str_from(pointer, 1);
		size_t end = uar_str_find(rest, '/');
		uar_err e;

		at->parent = at->node;
		at->token = uar_str_n(rest.p, end);
		at->depth++;
		if (!uar_json_token_valid(at->token))
			return uar_error_set(p->error, UAR_EINVALID, "not a JSON Pointer");
		if (!at->parent ||
		    (at->parent->kind != UAR_JSON_OBJECT && at->parent->kind != UAR_JSON_ARRAY))
			return uar_error_set(p->error, UAR_ENOTFOUND, "nothing is there");
		e = seek(p, at);
		if (e)
			return e;
		pointer = end < rest.n ? uar_str_from(rest, end) : UAR_STR("");
	}
	return UAR_OK;
}

static uar_err find_existing(struct patcher *p, uar_str pointer, struct place *at)
{
	uar_err e = find(p, pointer, at);

	if (!e && !at->node)
		return uar_error_set(p->error, UAR_ENOTFOUND, "nothing is there");
	return e;
}

/* --- editing --- */

static uar_err unescape(struct patcher *p, uar_str token, uar_str *out)
{
	char *text = uar_arena_bytes(p->arena, token.n + 1);
	size_t n = 0;

	if (!text)
		return uar_error_set(p->error, UAR_ENOMEM, "out of memory");
	for (size_t i = 0; i < token.n; i++) {
		char c = token.p[i];

		if (c == '~')
			c = token.p[++i] == '0' ? '~' : '/';
		text[n++] = c;
	}
	*out = uar_str_n(text, n);
	return UAR_OK;
}

/* Puts `value` behind at->before, with `next` behind it. */
static void link_in(struct place *at, struct uar_json *value, const struct uar_json *next)
{
	value->next = next;
	if (at->before)
		at->before->next = value;
	else
		at->parent->first = value;
}

static void replace_at(struct patcher *p, struct place *at, struct uar_json *value)
{
	if (!at->parent) {
		p->root = value;
		value->key = UAR_STR_NONE;
		value->next = NULL;
		return;
	}
	value->key = at->node->key;
	link_in(at, value, at->node->next);
}

static uar_err insert_at(struct patcher *p, struct place *at, struct uar_json *value)
{
	uar_err e = UAR_OK;

	if (!at->parent || (at->parent->kind == UAR_JSON_OBJECT && at->node)) {
		replace_at(p, at, value);
		return UAR_OK;
	}
	value->key = UAR_STR_NONE;
	if (at->parent->kind == UAR_JSON_OBJECT)
		e = unescape(p, at->token, &value->key);
	if (e)
		return e;
	link_in(at, value, at->node);
	at->parent->count++;
	return UAR_OK;
}

static uar_err remove_at(struct patcher *p, struct place *at)
{
	if (!at->parent)
		return uar_error_set(p->error, UAR_EINVALID,
				     "the whole document cannot be removed");
	if (at->before)
		at->before->next = at->node->next;
	else
		at->parent->first = at->node->next;
	at->parent->count--;
	at->node->next = NULL;
	return UAR_OK;
}

/* --- operations --- */

struct op {
	uar_str path, from;
	const struct uar_json *value;
};

static uar_err put_copy(struct patcher *p, uar_str path, const struct uar_json *value)
{
	struct uar_json *copy;
	struct place at;
	uar_err e = find(p, path, &at);

	if (!e)
		e = copy_tree(p, value, at.depth, &copy);
	return e ? e : insert_at(p, &at, copy);
}

static uar_err op_add(struct patcher *p, const struct op *op)
{
	return put_copy(p, op->path, op->value);
}

static uar_err op_remove(struct patcher *p, const struct op *op)
{
	struct place at;
	uar_err e = find_existing(p, op->path, &at);

	return e ? e : remove_at(p, &at);
}

static uar_err op_replace(struct patcher *p, const struct op *op)
{
	struct uar_json *copy;
	struct place at;
	uar_err e = find_existing(p, op->path, &at);

	if (!e)
		e = copy_tree(p, op->value, at.depth, &copy);
	if (e)
		return e;
	replace_at(p, &at, copy);
	return UAR_OK;
}

static uar_err op_move(struct patcher *p, const struct op *op)
{
	struct place at;
	uar_err e = find_existing(p, op->from, &at);
	struct uar_json *node = at.node;

	if (e)
		return e;
	if (uar_str_eq(op->from, op->path))
		return UAR_OK;
	if (uar_str_starts(op->path, op->from) && op->path.p[op->from.n] == '/')
		return uar_error_set(p->error, UAR_EINVALID, "a value cannot move into itself");
	e = remove_at(p, &at);
	return e ? e : put_copy(p, op->path, node); /* copied: its depth is checked there */
}

static uar_err op_copy(struct patcher *p, const struct op *op)
{
	struct place at;
	uar_err e = find_existing(p, op->from, &at);

	return e ? e : put_copy(p, op->path, at.node);
}

static uar_err op_test(struct patcher *p, const struct op *op)
{
	struct place at;
	uar_err e = find_existing(p, op->path, &at);

	if (!e && !uar_json_equal(at.node, op->value))
		return uar_error_set(p->error, UAR_ECONFLICT, "the test found another value");
	return e;
}

static const struct {
	const char *name;
	uar_err (*apply)(struct patcher *, const struct op *);
	bool needs_value, needs_from;
} ops[] = {
	{ "add", op_add, true, false },		{ "remove", op_remove, false, false },
	{ "replace", op_replace, true, false }, { "move", op_move, false, true },
	{ "copy", op_copy, false, true },	{ "test", op_test, true, false },
};

static const struct uar_json_field op_fields[] = {
	{ "path", UAR_FIELD_STR, true, offsetof(struct op, path) },
	{ "from", UAR_FIELD_STR, false, offsetof(struct op, from) },
};

static uar_err apply(struct patcher *p, const struct uar_json *j)
{
	struct op op = { .from = UAR_STR_NONE };
	uar_str name = uar_json_text(j, "op");
	uar_err e = uar_json_read(j, op_fields, ARRAY_LEN(op_fields), false, &op, p->error);

	if (e)
		return e;
	op.value = uar_json_get(j, UAR_STR("value")); /* null is a value here */
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (!uar_str_is(name, ops[i].name))
			continue;
		if ((ops[i].needs_value && !op.value) || (ops[i].needs_from && !op.from.p))
			return uar_error_set(p->error, UAR_EINVALID, "%s needs '%s'", ops[i].name,
					     ops[i].needs_from ? "from" : "value");
		return ops[i].apply(p, &op);
	}
	return uar_error_set(p->error, UAR_EINVALID, "unknown operation");
}

uar_err uar_json_patch(const struct uar_json *doc, const struct uar_json *patch,
		       struct uar_arena *arena, const struct uar_json **out,
		       struct uar_error *error)
{
	struct patcher p = { .arena = arena,
			     .nodes_left = UAR_LIMIT_JSON_NODES,
			     .steps_left = UAR_LIMIT_PATCH_STEPS,
			     .error = error };
	size_t index = 0;
	uar_err e;

	if (!patch || patch->kind != UAR_JSON_ARRAY)
		return uar_error_set(error, UAR_EINVALID, "a patch is an array of operations");
	if (patch->count > UAR_LIMIT_PATCH_OPS)
		return uar_error_set(error, UAR_ETOOBIG, "too many operations");
	e = copy_tree(&p, doc, 0, &p.root);
	for (const struct uar_json *op = patch->first; op && !e; op = op->next, index++) {
		e = apply(&p, op);
		if (e)
			uar_error_where(error, "/%zu", index);
	}
	if (e)
		return e;
	p.root->key = UAR_STR_NONE;
	*out = p.root;
	return UAR_OK;
}
