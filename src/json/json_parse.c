/* json_parse.c - the reader: one pass over the text, no recursion.
 *
 * Whatever reads takes the place where it stands and returns the place behind what it
 * has read, or NULL when the text is refused; so the place stays in a register.
 *
 * The tree under construction is its own stack: while a container is open, its
 * `next` points to its parent, and `text.n` is a filter of the keys seen so far,
 * one bit per key. A key whose bit is not yet set is new; only otherwise are the
 * keys compared. Objects with many members are checked once, when they close,
 * through a hashed set. */
#include "json/json_int.h"
#include "json/limits.h"

enum {
	COMPARED_KEYS = 32, /* beyond this the set of json_keys.c pays */
	BLOCK_NODES = 256,  /* nodes taken from the arena at a time, at most */
};

struct reader {
	const char *start, *end;
	struct uar_json *node, *node_end; /* nodes not given out yet */
	struct uar_json *top;		  /* innermost open container */
	const struct uar_json **link;	  /* where the next node hangs */
	uint32_t depth, max_depth, nodes_left;
	bool foreign;
	struct uar_arena *arena;
	struct uar_json_keys keys;
	uar_err err; /* what was wrong, where, and why */
	const char *at, *why;
};

static const char *fail(struct reader *r, const char *at, uar_err code, const char *why)
{
	r->err = code;
	r->at = at;
	r->why = why;
	return NULL;
}

static const char *syntax(struct reader *r, const char *at, const char *why)
{
	return fail(r, at, UAR_ESYNTAX, at >= r->end ? "the text ends too early" : why);
}

static inline const char *skip_space(const char *p, const char *end)
{
	/* Most of what follows anything is no space, and is seen by one comparison. */
	while (p < end && *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

/* --- nodes --- */

static const char *more_nodes(struct reader *r, const char *p)
{
	size_t n = (size_t)(r->end - p) / 16 + 4;
	struct uar_json *block;

	if (r->nodes_left == 0)
		return fail(r, p, UAR_ETOOBIG, "too many values");
	if (n > BLOCK_NODES)
		n = BLOCK_NODES;
	if (n > r->nodes_left)
		n = r->nodes_left;
	block = uar_arena_room(r->arena, n * sizeof *block);
	if (!block)
		return fail(r, p, UAR_ENOMEM, "out of memory");
	r->node = block;
	r->node_end = block + n;
	r->nodes_left -= (uint32_t)n;
	return p;
}

/* Takes a node and hangs it into the open container. */
static inline struct uar_json *add_node(struct reader *r, uar_str key)
{
	struct uar_json *node = r->node++;

	node->count = 0;
	node->key = key;
	node->next = NULL;
	*r->link = node;
	r->link = &node->next;
	if (r->top)
		r->top->count++;
	return node;
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
		int digit = uar_hex_digit(p[i]);

		if (digit < 0)
			return -1;
		v = v << 4 | digit;
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
static const char *read_unicode(struct reader *r, const char *p, char **out)
{
	int hi = hex4(p, r->end), lo;

	if (hi < 0)
		return syntax(r, p, "\\u needs four hexadecimal digits");
	if (hi == 0 && !r->foreign)
		return fail(r, p, UAR_EINVALID, "a string holds the character NUL");
	if (hi >= 0xDC00 && hi <= 0xDFFF)
		return fail(r, p, UAR_EUTF8, "a lone surrogate");
	p += 4;
	if (hi >= 0xD800 && hi <= 0xDBFF) {
		bool paired = r->end - p >= 6 && p[0] == '\\' && p[1] == 'u';

		lo = paired ? hex4(p + 2, r->end) : -1;
		if (lo < 0xDC00 || lo > 0xDFFF)
			return fail(r, p, UAR_EUTF8, "a lone surrogate");
		p += 6;
		hi = 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
	}
	*out = put_utf8(*out, hi ? (uint32_t)hi : 0xFFFD);
	return p;
}

/* At the backslash. */
static const char *read_escape(struct reader *r, const char *p, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *hit;

	if (++p >= r->end)
		return syntax(r, p, "");
	if (*p == 'u')
		return read_unicode(r, p + 1, out);
	hit = *p ? strchr(from, *p) : NULL;
	if (!hit)
		return syntax(r, p, "an unknown escape");
	*(*out)++ = to[hit - from];
	return p + 1;
}

/* Over text outside ASCII, which is checked, to the next quote or backslash. */
static const char *skip_text(struct reader *r, const char *p)
{
	p = uar_json_text_end(r->start, p, r->end);
	if (p < r->end && is_high(*p))
		return fail(r, p, UAR_EUTF8, "ill-formed UTF-8");
	if (p >= r->end || (*p != '"' && *p != '\\'))
		return syntax(r, p, "a raw control character in a string");
	return p;
}

/* Where the string that is open at p ends, without judging its contents. */
static const char *closing_quote(const struct reader *r, const char *p)
{
	while ((p = uar_json_plain_end(r->start, p, r->end)) < r->end && *p != '"')
		p += *p == '\\' && r->end - p > 1 ? 2 : 1;
	return p;
}

/* A string with escapes, the first of which is at p: the decoded text, which is never
 * longer than the source. */
static const char *read_escaped(struct reader *r, const char *start, const char *p, uar_str *out)
{
	size_t room = (size_t)(closing_quote(r, p) - start);
	char *text = uar_arena_bytes(r->arena, room), *to = text;

	if (!text)
		return fail(r, p, UAR_ENOMEM, "out of memory");
	for (;;) {
		memcpy(to, start, (size_t)(p - start));
		to += p - start;
		if (*p == '"')
			break;
		start = read_escape(r, p, &to);
		p = start ? skip_text(r, start) : NULL;
		if (!p)
			return NULL;
	}
	*out = uar_str_n(text, (size_t)(to - text));
	return p + 1;
}

/* A string that begins at start and is plain up to p, but does not end there. */
static const char *read_long_way(struct reader *r, const char *start, const char *p, uar_str *out)
{
	p = skip_text(r, p);
	if (p && *p == '\\')
		return read_escaped(r, start, p, out);
	if (!p)
		return NULL;
	*out = uar_str_n(start, (size_t)(p - start));
	return p + 1;
}

/* At the opening quote. Text without escapes is borrowed. */
static inline const char *read_string(struct reader *r, const char *p, uar_str *out)
{
	const char *start = p + 1, *end = uar_json_plain_end(r->start, start, r->end);

	if (end >= r->end || *end != '"')
		return read_long_way(r, start, end, out);
	*out = uar_str_n(start, (size_t)(end - start));
	return end + 1;
}

/* --- objects --- */

/* Of an empty key the quotes around it are looked at: one with escapes is not empty. */
static inline uint64_t key_bit(uar_str key)
{
	const char *end = key.p + key.n;
	unsigned first = (unsigned char)key.p[0], last = (unsigned char)end[-1];

	return 1ull << ((key.n + first + 8 * last) & 63);
}

/* Set when a key may be repeated; also a bit of its own, since to look once too often
 * does no harm. */
#define REPEATED_BIT (1ull << 63)

static bool has_key(const struct uar_json *object, uar_str key)
{
	for (const struct uar_json *m = object->first; m; m = m->next)
		if (uar_str_eq(m->key, key))
			return true;
	return false;
}

/* At the opening quote of a key; returns the place of its value. */
static inline const char *read_key(struct reader *r, const char *start, uar_str *key)
{
	struct uar_json *top = r->top;
	const char *p = start;
	uint64_t bit;

	if (p >= r->end || *p != '"')
		return syntax(r, p, "expected a key");
	p = read_string(r, p, key);
	if (!p)
		return NULL;
	bit = key_bit(*key);
	if (top->text.n & bit && (top->count >= COMPARED_KEYS || has_key(top, *key))) {
		if (!r->foreign && top->count < COMPARED_KEYS)
			return fail(r, start, UAR_EDUPKEY, "the same key twice in one object");
		bit |= REPEATED_BIT;
	}
	top->text.n |= bit;
	if (p >= r->end || *p != ':') /* mostly it is there at once */
		p = skip_space(p, r->end);
	if (p >= r->end || *p != ':')
		return syntax(r, p, "expected ':'");
	return skip_space(p + 1, r->end);
}

/* At the end of an object whose keys were not all compared. */
static const char *check_keys(struct reader *r, const char *p, struct uar_json *object)
{
	const struct uar_json *second;
	uar_err e = UAR_OK;

	if (!r->foreign)
		e = uar_json_keys_load(&r->keys, object, &second);
	else if (object->text.n & REPEATED_BIT)
		e = uar_json_keys_last(&r->keys, object);
	if (e == UAR_EDUPKEY)
		return fail(r, p, e, "the same key twice in one object");
	return e ? fail(r, p, e, "out of memory") : p;
}

/* --- values --- */

static inline const char *open_container(struct reader *r, const char *p, struct uar_json *node,
					 enum uar_json_kind kind)
{
	if (r->depth >= r->max_depth)
		return fail(r, p, UAR_EDEPTH, "nested too deeply");
	r->depth++;
	node->kind = kind;
	node->text = uar_str_n(p, 0);
	node->first = NULL;
	node->next = r->top;
	r->top = node;
	r->link = &node->first;
	return p + 1;
}

static inline const char *close_container(struct reader *r, const char *p)
{
	struct uar_json *top = r->top;

	if (top->kind == UAR_JSON_OBJECT && (r->foreign || top->count > COMPARED_KEYS) &&
	    !check_keys(r, p, top))
		return NULL;
	r->depth--;
	r->top = (struct uar_json *)(uintptr_t)top->next;
	top->next = NULL;
	r->link = &top->next;
	top->text.n = (size_t)(p + 1 - top->text.p);
	return p + 1;
}

static const char *read_word(struct reader *r, const char *p, uar_str word)
{
	if ((size_t)(r->end - p) < word.n || memcmp(p, word.p, word.n) != 0)
		return fail(r, p, UAR_ESYNTAX, "not a JSON value");
	return p + word.n;
}

static const char *read_bool(struct reader *r, const char *p, struct uar_json *node)
{
	node->kind = UAR_JSON_BOOL;
	node->text = UAR_STR_NONE;
	node->b = *p == 't';
	return read_word(r, p, node->b ? UAR_STR("true") : UAR_STR("false"));
}

static const char *read_null(struct reader *r, const char *p, struct uar_json *node)
{
	node->kind = UAR_JSON_NULL;
	node->text = UAR_STR_NONE;
	node->i = 0;
	return read_word(r, p, UAR_STR("null"));
}

static const char *read_number(struct reader *r, const char *p, struct uar_json *node)
{
	uar_err e = UAR_OK;
	const char *end = uar_json_number_read(p, r->end, node, &e);

	if (end)
		return end;
	return fail(r, p, e,
		    e == UAR_ENUMBER ? "a number larger than a double holds" : "not a JSON value");
}

/* One value, or the opening of one. */
static inline const char *read_value(struct reader *r, const char *p, uar_str key)
{
	struct uar_json *node;

	if (r->node == r->node_end && !more_nodes(r, p))
		return NULL;
	node = add_node(r, key);
	if (p >= r->end)
		return syntax(r, p, "");
	switch (*p) {
	case '"':
		node->kind = UAR_JSON_STRING;
		node->i = 0;
		return read_string(r, p, &node->text);
	case '{': return open_container(r, p, node, UAR_JSON_OBJECT);
	case '[': return open_container(r, p, node, UAR_JSON_ARRAY);
	case 't':
	case 'f': return read_bool(r, p, node);
	case 'n': return read_null(r, p, node);
	default: return read_number(r, p, node);
	}
}

/* Behind a value, or behind an opening bracket: closes what closes here. Then it
 * stands before the next value of the container that is open, or nothing is open. */
static inline const char *next_value(struct reader *r, const char *p, uar_str *key)
{
	struct uar_json *top;

	while ((top = r->top)) {
		bool object = top->kind == UAR_JSON_OBJECT;
		char c;

		p = skip_space(p, r->end);
		c = p < r->end ? *p : 0;
		if (c == ',' && top->count) {
			p = skip_space(p + 1, r->end);
		} else if (c == (object ? '}' : ']')) {
			p = close_container(r, p);
			if (!p)
				return NULL;
			continue;
		} else if (top->count) {
			return syntax(r, p, object ? "expected ',' or '}'" : "expected ',' or ']'");
		}
		return object ? read_key(r, p, key) : p;
	}
	return p;
}

static const char *read_document(struct reader *r, const char *p)
{
	uar_str key = UAR_STR_NONE;

	p = skip_space(p, r->end);
	do {
		p = read_value(r, p, key);
		key = UAR_STR_NONE;
		if (p)
			p = next_value(r, p, &key);
	} while (p && r->top);
	if (!p)
		return NULL;
	p = skip_space(p, r->end);
	return p < r->end ? fail(r, p, UAR_ESYNTAX, "more text behind the value") : p;
}

/* --- the door --- */

static uar_err refuse(const struct reader *r, struct uar_error *error)
{
	const char *at = r->at < r->end ? r->at : r->end, *line_start = r->start;
	size_t line = 1;

	if (!error)
		return r->err;
	for (const char *p = r->start; p < at; p++) {
		if (*p == '\n') {
			line++;
			line_start = p + 1;
		}
	}
	uar_error_where(error, "%zu:%zu", line, (size_t)(at - line_start) + 1);
	return uar_error_set(error, r->err, "%s", r->why);
}

uar_err uar_json_parse_copy(uar_str text, const struct uar_json_limits *limits,
			    struct uar_arena *arena, const struct uar_json **out,
			    struct uar_error *error)
{
	uar_str own = uar_arena_str(arena, text);

	if (!own.p)
		return uar_error_set(error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	return uar_json_parse(own, limits, arena, out, error);
}

uar_err uar_json_parse(uar_str text, const struct uar_json_limits *limits, struct uar_arena *arena,
		       const struct uar_json **out, struct uar_error *error)
{
	static const struct uar_json_limits defaults;
	const struct uar_json_limits *l = limits ? limits : &defaults;
	const char *start = text.n ? text.p : "", *p;
	struct reader r = {
		.start = start, .end = start + text.n, .arena = arena, .foreign = l->foreign
	};
	const struct uar_json *root = NULL;

	r.link = &root;
	r.max_depth = l->depth ? l->depth : UAR_LIMIT_JSON_DEPTH;
	if (r.max_depth > UAR_LIMIT_JSON_DEPTH_MAX)
		r.max_depth = UAR_LIMIT_JSON_DEPTH_MAX;
	r.nodes_left = l->nodes ? l->nodes : UAR_LIMIT_JSON_NODES;
	if (text.n > (l->bytes ? l->bytes : UAR_LIMIT_JSON_BYTES))
		p = fail(&r, start, UAR_ETOOBIG, "the text is longer than its limit");
	else
		p = read_document(&r, start);
	uar_json_keys_fini(&r.keys);
	if (!p)
		return refuse(&r, error);
	*out = root;
	return UAR_OK;
}
