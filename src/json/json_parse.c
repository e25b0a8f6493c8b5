/* json_parse.c - the reader: one pass over the text, no recursion.
 *
 * The tree under construction is its own stack: while a container is open, its
 * `next` points to its parent, `text.p` to its last child, and `text.n` is a
 * filter of the keys seen so far, one bit per key. A key whose bit is not yet
 * set is new; only otherwise are the keys compared. Objects with many members
 * are checked once, when they close, through a hashed set. */
#include "json/json_int.h"

enum {
	COMPARED_KEYS = 32, /* beyond this the set of json_keys.c pays */
	BLOCK_NODES = 256,  /* nodes taken from the arena at a time, at most */
};

struct reader {
	const char *start, *p, *end;
	struct uar_json *node, *node_end; /* nodes not given out yet */
	struct uar_json *top;		  /* innermost open container */
	uint32_t depth, max_depth, nodes_left;
	const char **opened; /* where each open container begins, by depth */
	bool foreign;
	struct uar_arena *arena;
	struct uar_json_keys keys;
	const char *why;
};

static uar_err fail(struct reader *r, uar_err code, const char *why)
{
	r->why = why;
	return code;
}

static uar_err syntax(struct reader *r, const char *why)
{
	return fail(r, UAR_ESYNTAX, r->p >= r->end ? "the text ends too early" : why);
}

static inline void skip_space(struct reader *r)
{
	const char *p = r->p, *end = r->end;

	/* Most of what follows anything is no space, and is seen by one comparison. */
	while (p < end && *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	r->p = p;
}

/* --- nodes --- */

static uar_err more_nodes(struct reader *r)
{
	size_t n = (size_t)(r->end - r->p) / 16 + 4;
	char *p;

	if (r->nodes_left == 0)
		return fail(r, UAR_ETOOBIG, "too many values");
	if (n > BLOCK_NODES)
		n = BLOCK_NODES;
	if (n > r->nodes_left)
		n = r->nodes_left;
	p = uar_arena_bytes(r->arena, n * sizeof *r->node + _Alignof(struct uar_json));
	if (!p)
		return fail(r, UAR_ENOMEM, "out of memory");
	p += -(uintptr_t)p & (_Alignof(struct uar_json) - 1);
	r->node = (struct uar_json *)(void *)p;
	r->node_end = r->node + n;
	r->nodes_left -= (uint32_t)n;
	return UAR_OK;
}

static struct uar_json *last_child(const struct uar_json *container)
{
	return (struct uar_json *)(uintptr_t)container->text.p;
}

/* Takes a node and hangs it into the open container. */
static inline uar_err add_node(struct reader *r, uar_str key, struct uar_json **out)
{
	struct uar_json *node, *top = r->top;

	if (r->node == r->node_end) {
		uar_err e = more_nodes(r);

		if (e)
			return e;
	}
	node = r->node++;
	node->count = 0;
	node->key = key;
	node->next = NULL;
	if (top) {
		if (top->count++)
			last_child(top)->next = node;
		else
			top->first = node;
		top->text.p = (const char *)node;
	}
	*out = node;
	return UAR_OK;
}

/* --- strings --- */

static bool is_high(char c)
{
	return (unsigned char)c >= 0x80;
}

static int hex4(const char *p, const char *end)
{
	int v = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)p[i], low = c | 32;

		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (low - 'a' + 10);
		else
			return -1;
	}
	return v;
}

static char *put_utf8(char *out, uint32_t cp)
{
	if (cp < 0x80) {
		*out++ = (char)cp;
		return out;
	}
	if (cp < 0x800) {
		*out++ = (char)(0xC0 | cp >> 6);
	} else {
		if (cp < 0x10000) {
			*out++ = (char)(0xE0 | cp >> 12);
		} else {
			*out++ = (char)(0xF0 | cp >> 18);
			*out++ = (char)(0x80 | (cp >> 12 & 0x3F));
		}
		*out++ = (char)(0x80 | (cp >> 6 & 0x3F));
	}
	*out++ = (char)(0x80 | (cp & 0x3F));
	return out;
}

/* At the four digits after \u; a pair of surrogates becomes one character. */
static uar_err read_unicode(struct reader *r, char **out)
{
	int hi = hex4(r->p, r->end), lo;

	if (hi < 0)
		return syntax(r, "\\u needs four hexadecimal digits");
	if (hi == 0 && !r->foreign)
		return fail(r, UAR_EINVALID, "a string holds the character NUL");
	if (hi >= 0xDC00 && hi <= 0xDFFF)
		return fail(r, UAR_EUTF8, "a lone surrogate");
	r->p += 4;
	if (hi >= 0xD800 && hi <= 0xDBFF) {
		bool paired = r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u';

		lo = paired ? hex4(r->p + 2, r->end) : -1;
		if (lo < 0xDC00 || lo > 0xDFFF)
			return fail(r, UAR_EUTF8, "a lone surrogate");
		r->p += 6;
		hi = 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
	}
	*out = put_utf8(*out, hi ? (uint32_t)hi : 0xFFFD);
	return UAR_OK;
}

static uar_err read_escape(struct reader *r, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *hit;

	if (++r->p >= r->end)
		return syntax(r, "");
	if (*r->p == 'u') {
		r->p++;
		return read_unicode(r, out);
	}
	hit = *r->p ? strchr(from, *r->p) : NULL;
	if (!hit)
		return syntax(r, "an unknown escape");
	*(*out)++ = to[hit - from];
	r->p++;
	return UAR_OK;
}

/* Checks the character outside ASCII at p and steps over it. */
static uar_err skip_utf8(struct reader *r)
{
	uint32_t cp;
	size_t n = uar_utf8_decode(uar_str_n(r->p, (size_t)(r->end - r->p)), &cp);

	if (n == 0)
		return fail(r, UAR_EUTF8, "ill-formed UTF-8");
	r->p += n;
	return UAR_OK;
}

/* Where the string that is open at p ends, without judging its contents. */
static const char *closing_quote(const char *p, const char *end)
{
	while ((p = uar_json_plain_end(p, end)) < end && *p != '"')
		p += *p == '\\' && end - p > 1 ? 2 : 1;
	return p;
}

/* From the first backslash on: the decoded text, which is never longer. */
static uar_err read_escaped(struct reader *r, const char *start, uar_str *out)
{
	size_t room = (size_t)(closing_quote(r->p, r->end) - start);
	char *text = uar_arena_bytes(r->arena, room), *to = text;
	uar_err e = UAR_OK;

	if (!text)
		return fail(r, UAR_ENOMEM, "out of memory");
	while (!e) {
		const char *run = start;

		memcpy(to, run, (size_t)(r->p - run));
		to += r->p - run;
		if (*r->p == '"')
			break;
		e = read_escape(r, &to);
		start = r->p;
		while (!e && (r->p = uar_json_plain_end(r->p, r->end)) < r->end && is_high(*r->p))
			e = skip_utf8(r);
		if (!e && (r->p >= r->end || (*r->p != '"' && *r->p != '\\')))
			e = syntax(r, "a raw control character in a string");
	}
	*out = uar_str_n(text, (size_t)(to - text));
	return e;
}

/* At the opening quote. Text without escapes is borrowed. */
static inline uar_err read_string(struct reader *r, uar_str *out)
{
	const char *start = ++r->p;
	uar_err e;

	for (;;) {
		r->p = uar_json_plain_end(r->p, r->end);
		if (r->p >= r->end)
			return syntax(r, "");
		if (*r->p == '"')
			break;
		if (*r->p == '\\') {
			e = read_escaped(r, start, out);
			r->p += !e;
			return e;
		}
		if (!is_high(*r->p))
			return syntax(r, "a raw control character in a string");
		e = skip_utf8(r);
		if (e)
			return e;
	}
	*out = uar_str_n(start, (size_t)(r->p - start));
	r->p++;
	return UAR_OK;
}

/* --- objects --- */

static uint64_t key_bit(uar_str key)
{
	unsigned mix = (unsigned)key.n * 5;

	if (key.n)
		mix += (unsigned char)key.p[0] * 3u + (unsigned char)key.p[key.n - 1] * 7u +
		       (unsigned char)key.p[key.n / 2];
	return 1ull << (mix & 63);
}

/* Set when two keys share a bit, by accident or because one is repeated; also a bit of
 * its own, since to look once too often does no harm. */
#define SHARED_BIT (1ull << 63)

static bool has_key(const struct uar_json *object, uar_str key)
{
	for (const struct uar_json *m = object->first; m; m = m->next)
		if (uar_str_eq(m->key, key))
			return true;
	return false;
}

static inline uar_err read_key(struct reader *r, uar_str *key)
{
	struct uar_json *top = r->top;
	const char *start = r->p;
	uint64_t bit;
	uar_err e;

	if (r->p >= r->end || *r->p != '"')
		return syntax(r, "expected a key");
	e = read_string(r, key);
	if (e)
		return e;
	bit = key_bit(*key);
	if (!r->foreign && (top->text.n & bit) && top->count < COMPARED_KEYS &&
	    has_key(top, *key)) {
		r->p = start;
		return fail(r, UAR_EDUPKEY, "the same key twice in one object");
	}
	top->text.n |= bit | (top->text.n & bit ? SHARED_BIT : 0);
	skip_space(r);
	if (r->p >= r->end || *r->p != ':')
		return syntax(r, "expected ':'");
	r->p++;
	skip_space(r);
	return UAR_OK;
}

static uar_err keep_last(struct reader *r, struct uar_json *object)
{
	uar_err e = object->text.n & SHARED_BIT ? uar_json_keys_last(&r->keys, object) : UAR_OK;

	return e ? fail(r, e, "out of memory") : UAR_OK;
}

static uar_err check_many_keys(struct reader *r, const struct uar_json *object)
{
	const struct uar_json *second;
	uar_err e = uar_json_keys_load(&r->keys, object, &second);

	if (e == UAR_EDUPKEY)
		return fail(r, e, "the same key twice in one object");
	return e ? fail(r, e, "out of memory") : UAR_OK;
}

/* --- values --- */

static uar_err open_container(struct reader *r, struct uar_json *node, enum uar_json_kind kind)
{
	if (r->depth >= r->max_depth)
		return fail(r, UAR_EDEPTH, "nested too deeply");
	r->opened[r->depth++] = r->p;
	node->kind = kind;
	node->text = (uar_str){ NULL, 0 };
	node->first = NULL;
	node->next = r->top;
	r->top = node;
	r->p++;
	return UAR_OK;
}

static uar_err close_container(struct reader *r)
{
	struct uar_json *top = r->top;
	uar_err e = UAR_OK;

	if (top->kind == UAR_JSON_OBJECT && r->foreign)
		e = keep_last(r, top);
	else if (top->kind == UAR_JSON_OBJECT && top->count > COMPARED_KEYS)
		e = check_many_keys(r, top);
	if (e)
		return e;
	r->top = (struct uar_json *)(uintptr_t)top->next;
	top->next = NULL;
	r->p++;
	top->text.p = r->opened[--r->depth];
	top->text.n = (size_t)(r->p - top->text.p);
	return UAR_OK;
}

static uar_err read_word(struct reader *r, uar_str word)
{
	if ((size_t)(r->end - r->p) < word.n || memcmp(r->p, word.p, word.n) != 0)
		return fail(r, UAR_ESYNTAX, "not a JSON value");
	r->p += word.n;
	return UAR_OK;
}

static uar_err read_bool(struct reader *r, struct uar_json *node, bool value)
{
	node->kind = UAR_JSON_BOOL;
	node->text = UAR_STR_NONE;
	node->b = value;
	return read_word(r, value ? UAR_STR("true") : UAR_STR("false"));
}

static uar_err read_null(struct reader *r, struct uar_json *node)
{
	node->kind = UAR_JSON_NULL;
	node->text = UAR_STR_NONE;
	node->i = 0;
	return read_word(r, UAR_STR("null"));
}

static uar_err read_number(struct reader *r, struct uar_json *node)
{
	uar_err e = UAR_OK;
	const char *end = uar_json_number_read(r->p, r->end, node, &e);

	if (!end)
		return fail(r, e,
			    e == UAR_ENUMBER ? "a number larger than a double holds"
					     : "not a JSON value");
	r->p = end;
	return UAR_OK;
}

/* One value, or the opening of one. */
static inline uar_err read_value(struct reader *r, uar_str key)
{
	struct uar_json *node;
	uar_err e = add_node(r, key, &node);

	if (e)
		return e;
	if (r->p >= r->end)
		return syntax(r, "");
	switch (*r->p) {
	case '"':
		node->kind = UAR_JSON_STRING;
		node->i = 0;
		return read_string(r, &node->text);
	case '{': return open_container(r, node, UAR_JSON_OBJECT);
	case '[': return open_container(r, node, UAR_JSON_ARRAY);
	case 't': return read_bool(r, node, true);
	case 'f': return read_bool(r, node, false);
	case 'n': return read_null(r, node);
	default: return read_number(r, node);
	}
}

/* Behind a value, or behind an opening bracket: closes what closes here and
 * stands before the next value afterwards, or *done. */
static inline uar_err next_value(struct reader *r, bool opened, uar_str *key, bool *done)
{
	for (; r->top; opened = false) {
		bool object = r->top->kind == UAR_JSON_OBJECT;
		uar_err e;

		skip_space(r);
		if (r->p < r->end && *r->p == (object ? '}' : ']')) {
			e = close_container(r);
			if (e)
				return e;
			continue;
		}
		if (!opened) {
			if (r->p >= r->end || *r->p != ',')
				return syntax(r, object ? "expected ',' or '}'"
							: "expected ',' or ']'");
			r->p++;
			skip_space(r);
		}
		*key = UAR_STR_NONE;
		return object ? read_key(r, key) : UAR_OK;
	}
	*done = true;
	return UAR_OK;
}

static uar_err read_document(struct reader *r)
{
	uar_str key = UAR_STR_NONE;
	bool done = false;

	skip_space(r);
	while (!done) {
		struct uar_json *outer = r->top;
		uar_err e = read_value(r, key);

		if (!e)
			e = next_value(r, r->top != outer, &key, &done);
		if (e)
			return e;
	}
	skip_space(r);
	return r->p < r->end ? fail(r, UAR_ESYNTAX, "more text behind the value") : UAR_OK;
}

/* --- the door --- */

static uar_err refuse(const struct reader *r, uar_err code, struct uar_error *error)
{
	const char *at = r->p < r->end ? r->p : r->end, *line_start = r->start;
	size_t line = 1;

	if (!error)
		return code;
	for (const char *p = r->start; p < at; p++) {
		if (*p == '\n') {
			line++;
			line_start = p + 1;
		}
	}
	uar_error_where(error, "%zu:%zu", line, (size_t)(at - line_start) + 1);
	return uar_error_set(error, code, "%s", r->why);
}

uar_err uar_json_parse(uar_str text, const struct uar_json_limits *limits, struct uar_arena *arena,
		       const struct uar_json **out, struct uar_error *error)
{
	static const struct uar_json_limits defaults;
	const struct uar_json_limits *l = limits ? limits : &defaults;
	size_t max_bytes = l->bytes ? l->bytes : UAR_LIMIT_JSON_BYTES;
	const char *opened[UAR_LIMIT_JSON_DEPTH_MAX];
	struct reader r = { .arena = arena, .opened = opened, .foreign = l->foreign };
	const struct uar_json *root;
	uar_err e;

	r.start = r.p = text.n ? text.p : "";
	r.end = r.p + text.n;
	r.max_depth = l->depth ? l->depth : UAR_LIMIT_JSON_DEPTH;
	if (r.max_depth > UAR_LIMIT_JSON_DEPTH_MAX)
		r.max_depth = UAR_LIMIT_JSON_DEPTH_MAX;
	r.nodes_left = l->nodes ? l->nodes : UAR_LIMIT_JSON_NODES;
	if (text.n > max_bytes)
		e = fail(&r, UAR_ETOOBIG, "the text is longer than its limit");
	else
		e = more_nodes(&r);
	root = r.node;
	if (!e)
		e = read_document(&r);
	uar_json_keys_fini(&r.keys);
	if (e)
		return refuse(&r, e, error);
	*out = root;
	return UAR_OK;
}
