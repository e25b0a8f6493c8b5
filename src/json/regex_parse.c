/* regex_parse.c - pattern to syntax tree, by recursive descent of bounded depth. */
#include "json/limits.h"
#include "json/regex_int.h"

struct parser {
	uar_str s;
	size_t at;
	unsigned depth;
	struct uar_arena *temporary, *kept;
	uar_err err;
	const char *why;
};

static struct uar_regex_node *parse_alternatives(struct parser *p);

static void fail(struct parser *p, uar_err e, const char *why)
{
	if (p->err)
		return;
	p->err = e;
	p->why = why;
}

static bool more(const struct parser *p)
{
	return !p->err && p->at < p->s.n;
}

static char peek(const struct parser *p)
{
	return more(p) ? p->s.p[p->at] : 0;
}

static bool eat(struct parser *p, const char *text)
{
	uar_str rest = uar_str_from(p->s, p->at);

	if (p->err || !uar_str_starts(rest, uar_str_c(text)))
		return false;
	p->at += strlen(text);
	return true;
}

static struct uar_regex_node *node(struct parser *p, enum regex_kind kind)
{
	struct uar_regex_node *n = uar_arena_alloc(p->temporary, sizeof *n);

	if (!n) {
		fail(p, UAR_ENOMEM, "out of memory");
		return NULL;
	}
	n->kind = kind;
	n->look = -1;
	return n;
}

static void append(struct uar_regex_node *list, struct uar_regex_node *child)
{
	if (!list || !child)
		return;
	child->prev = list->last;
	if (list->last)
		list->last->next = child;
	else
		list->first = child;
	list->last = child;
}

/* --- escapes --- */

static bool hex_digits(struct parser *p, unsigned n, uint32_t *out)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < n; i++) {
		int digit = p->at + i < p->s.n ? uar_hex_digit(p->s.p[p->at + i]) : -1;

		if (digit < 0)
			return false;
		v = v << 4 | (uint32_t)digit;
	}
	p->at += n;
	*out = v;
	return true;
}

static uint32_t braced_hex(struct parser *p)
{
	uint32_t v = 0;
	bool any = false;

	while (uar_hex_digit(peek(p)) >= 0 && v <= REGEX_LAST) {
		v = v << 4 | (uint32_t)uar_hex_digit(p->s.p[p->at++]);
		any = true;
	}
	if (!any || v > REGEX_LAST || !eat(p, "}"))
		fail(p, UAR_EINVALID, "not a code point");
	return v;
}

static uint32_t unicode_escape(struct parser *p)
{
	uint32_t hi, lo;
	size_t back;

	if (eat(p, "{"))
		return braced_hex(p);
	if (!hex_digits(p, 4, &hi)) {
		fail(p, UAR_EINVALID, "\\u needs four hexadecimal digits");
		return 0;
	}
	back = p->at;
	if (hi >= 0xD800 && hi <= 0xDBFF && eat(p, "\\u") && hex_digits(p, 4, &lo) &&
	    lo >= 0xDC00 && lo <= 0xDFFF)
		return 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
	p->at = back;
	return hi;
}

static uint32_t decode(struct parser *p)
{
	uint32_t cp = 0;
	size_t n = uar_utf8_decode(uar_str_from(p->s, p->at), &cp);

	if (n == 0)
		fail(p, UAR_EINVALID, "not valid UTF-8");
	p->at += n ? n : 1;
	return cp;
}

static uint32_t hex_escape(struct parser *p)
{
	uint32_t v = 0;

	if (!hex_digits(p, 2, &v))
		fail(p, UAR_EINVALID, "\\x needs two hexadecimal digits");
	return v;
}

static bool is_letter(char c)
{
	return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* What is left: zero, punctuation that stands for itself, and mistakes. */
static uint32_t other_escape(struct parser *p, char c)
{
	if (c == '0') {
		p->at++;
		if (peek(p) >= '0' && peek(p) <= '9')
			fail(p, UAR_EINVALID, "octal escapes are not known");
		return 0;
	}
	if ((c >= '1' && c <= '9') || c == 'k')
		fail(p, UAR_ENOTIMPL,
		     "backreferences are not supported: they cannot be matched in bounded time");
	else if ((unsigned char)c < 0x21 || (unsigned char)c >= 0x7F ||
		 uar_regex_is_word((unsigned char)c))
		fail(p, UAR_EINVALID, "an unknown escape");
	return decode(p);
}

/* Behind the backslash: an escape that stands for one character. */
static uint32_t char_escape(struct parser *p)
{
	static const char from[] = "tnvfr", to[] = "\t\n\v\f\r";
	char c = peek(p);
	const char *hit = c ? strchr(from, c) : NULL;

	if (hit) {
		p->at++;
		return (uint32_t)to[hit - from];
	}
	if (eat(p, "u"))
		return unicode_escape(p);
	if (eat(p, "x"))
		return hex_escape(p);
	if (c == 'c' && p->at + 1 < p->s.n && is_letter(p->s.p[p->at + 1])) {
		p->at += 2;
		return (uint32_t)p->s.p[p->at - 1] & 31;
	}
	return other_escape(p, c);
}

static void add_property(struct parser *p, struct uar_regex_set *set)
{
	uar_str rest, name;

	if (!eat(p, "{")) {
		fail(p, UAR_EINVALID, "\\p needs a name in braces");
		return;
	}
	rest = uar_str_from(p->s, p->at);
	name = uar_str_n(rest.p, uar_str_find(rest, '}'));
	if (name.n == rest.n || !uar_regex_set_add_property(set, name))
		fail(p, UAR_EINVALID, "an unknown property");
	p->at += name.n + 1;
}

/* Behind the backslash: an escape that stands for a set; false when it is not one. */
static bool set_escape(struct parser *p, struct uar_regex_set *out)
{
	struct uar_regex_set set = { 0 };
	char c = peek(p);

	if (!c || !strchr("dDwWsSpP", c))
		return false;
	p->at++;
	switch (c | 32) {
	case 'd': uar_regex_set_add_digits(&set); break;
	case 'w': uar_regex_set_add_words(&set); break;
	case 's': uar_regex_set_add_spaces(&set); break;
	default: add_property(p, &set);
	}
	uar_regex_set_normalise(&set, c < 'a');
	uar_regex_set_add_set(out, &set);
	uar_regex_set_fini(&set);
	return true;
}

/* --- sets --- */

/* One element of [...]; *is_set when it was a set and can bound no range. */
static uint32_t class_atom(struct parser *p, struct uar_regex_set *set, bool *is_set)
{
	*is_set = false;
	if (!eat(p, "\\"))
		return decode(p);
	if (set_escape(p, set)) {
		*is_set = true;
		return 0;
	}
	if (eat(p, "b"))
		return '\b';
	return char_escape(p);
}

static void class_range(struct parser *p, struct uar_regex_set *set)
{
	bool set_lo, set_hi;
	uint32_t lo = class_atom(p, set, &set_lo), hi = lo;

	if (peek(p) == '-' && p->at + 1 < p->s.n && p->s.p[p->at + 1] != ']') {
		p->at++;
		hi = class_atom(p, set, &set_hi);
		if (set_lo || set_hi)
			fail(p, UAR_EINVALID, "a set cannot bound a range");
		else if (lo > hi)
			fail(p, UAR_EINVALID, "a range out of order");
	} else if (set_lo) {
		return;
	}
	uar_regex_set_add(set, lo, hi);
}

static struct uar_regex_node *freeze(struct parser *p, struct uar_regex_set *set, bool negate)
{
	struct uar_regex_node *n = node(p, REGEX_CLASS);
	uar_err e;

	uar_regex_set_normalise(set, negate);
	e = n ? uar_regex_set_freeze(set, p->kept, &n->set) : UAR_OK;
	if (e)
		fail(p, e, "the set is too large");
	uar_regex_set_fini(set);
	return n;
}

static struct uar_regex_node *parse_class(struct parser *p)
{
	struct uar_regex_set set = { 0 };
	bool negate = eat(p, "^");

	while (more(p) && peek(p) != ']')
		class_range(p, &set);
	if (!eat(p, "]"))
		fail(p, UAR_EINVALID, "a '[' is not closed");
	return freeze(p, &set, negate);
}

/* --- groups --- */

static void skip_name(struct parser *p)
{
	size_t start = p->at;

	while (more(p) && (uar_regex_is_word((unsigned char)peek(p)) || peek(p) == '$' ||
			   (unsigned char)peek(p) >= 0x80))
		p->at++;
	if (p->at == start || !eat(p, ">"))
		fail(p, UAR_EINVALID, "not a group name");
}

static struct uar_regex_node *look(struct parser *p, bool behind, bool negative)
{
	struct uar_regex_node *n = node(p, REGEX_LOOK);

	append(n, parse_alternatives(p));
	if (n) {
		n->behind = behind;
		n->negative = negative;
	}
	return n;
}

static struct uar_regex_node *group_body(struct parser *p)
{
	if (eat(p, "?="))
		return look(p, false, false);
	if (eat(p, "?!"))
		return look(p, false, true);
	if (eat(p, "?<="))
		return look(p, true, false);
	if (eat(p, "?<!"))
		return look(p, true, true);
	if (eat(p, "?<"))
		skip_name(p);
	else if (!eat(p, "?:") && peek(p) == '?')
		fail(p, UAR_EINVALID, "an unknown kind of group");
	return parse_alternatives(p);
}

static struct uar_regex_node *parse_group(struct parser *p)
{
	struct uar_regex_node *n = NULL;

	if (++p->depth > REGEX_DEPTH)
		fail(p, UAR_EINVALID, "groups nested too deeply");
	else
		n = group_body(p);
	p->depth--;
	if (!p->err && !eat(p, ")"))
		fail(p, UAR_EINVALID, "a '(' is not closed");
	return n;
}

/* --- terms --- */

static struct uar_regex_node *value_node(struct parser *p, enum regex_kind kind, uint32_t value)
{
	struct uar_regex_node *n = node(p, kind);

	if (n)
		n->value = value;
	return n;
}

static struct uar_regex_node *parse_escape(struct parser *p)
{
	struct uar_regex_set set = { 0 };

	if (eat(p, "b"))
		return value_node(p, REGEX_ASSERT, REGEX_OP_WORD);
	if (eat(p, "B"))
		return value_node(p, REGEX_ASSERT, REGEX_OP_NOT_WORD);
	if (set_escape(p, &set))
		return freeze(p, &set, false);
	return value_node(p, REGEX_CHAR, char_escape(p));
}

/* {2}, {2,}, {2,5}; anything else leaves the brace for a literal. */
static bool braces(struct parser *p, uint32_t *min, uint32_t *max)
{
	size_t start = p->at++;
	uint64_t v[2] = { 0, 0 };
	size_t digits[2] = { 0, 0 };
	bool comma = false;

	for (; more(p) && peek(p) != '}'; p->at++) {
		if (peek(p) == ',' && !comma) {
			comma = true;
			continue;
		}
		if (peek(p) < '0' || peek(p) > '9')
			break;
		if (v[comma] < UINT32_MAX / 16)
			v[comma] = v[comma] * 10 + (uint64_t)(peek(p) - '0');
		digits[comma]++;
	}
	if (!digits[0] || !eat(p, "}")) {
		p->at = start;
		return false;
	}
	*min = (uint32_t)v[0];
	*max = !comma ? *min : digits[1] ? (uint32_t)v[1] : UINT32_MAX;
	if (*min > *max)
		fail(p, UAR_EINVALID, "a repetition out of order");
	return true;
}

static bool quantifier(struct parser *p, uint32_t *min, uint32_t *max)
{
	*min = peek(p) == '+';
	*max = peek(p) == '?' ? 1 : UINT32_MAX;
	if (peek(p) == '{')
		return braces(p, min, max);
	if (!peek(p) || !strchr("*+?", peek(p)))
		return false;
	p->at++;
	return true;
}

static bool at_quantifier(struct parser *p)
{
	size_t start = p->at;
	uint32_t min, max;
	bool is = quantifier(p, &min, &max);

	p->at = start;
	return is;
}

static struct uar_regex_node *parse_atom(struct parser *p)
{
	if (eat(p, "("))
		return parse_group(p);
	if (eat(p, "["))
		return parse_class(p);
	if (eat(p, "."))
		return node(p, REGEX_ANY);
	if (eat(p, "^"))
		return value_node(p, REGEX_ASSERT, REGEX_OP_START);
	if (eat(p, "$"))
		return value_node(p, REGEX_ASSERT, REGEX_OP_END);
	if (eat(p, "\\"))
		return parse_escape(p);
	if (at_quantifier(p)) {
		fail(p, UAR_EINVALID, "nothing to repeat");
		return NULL;
	}
	return value_node(p, REGEX_CHAR, decode(p));
}

static struct uar_regex_node *parse_term(struct parser *p)
{
	struct uar_regex_node *atom = parse_atom(p), *n;
	uint32_t min, max;

	if (!atom || !quantifier(p, &min, &max))
		return atom;
	eat(p, "?"); /* lazy or greedy: the same texts match */
	if (atom->kind == REGEX_ASSERT || atom->kind == REGEX_LOOK) {
		fail(p, UAR_EINVALID, "nothing to repeat");
		return NULL;
	}
	n = node(p, REGEX_REPEAT);
	if (n) {
		n->min = min;
		n->max = max;
	}
	append(n, atom);
	return n;
}

static struct uar_regex_node *parse_sequence(struct parser *p)
{
	struct uar_regex_node *n = node(p, REGEX_CAT);

	while (more(p) && peek(p) != '|' && peek(p) != ')')
		append(n, parse_term(p));
	return n;
}

static struct uar_regex_node *parse_alternatives(struct parser *p)
{
	struct uar_regex_node *n = node(p, REGEX_ALT);

	append(n, parse_sequence(p));
	while (eat(p, "|"))
		append(n, parse_sequence(p));
	return n;
}

uar_err uar_regex_parse(uar_str pattern, struct uar_arena *temporary, struct uar_arena *kept,
			struct uar_regex_node **out, struct uar_error *error)
{
	struct parser p = { .s = pattern, .temporary = temporary, .kept = kept };
	struct uar_regex_node *n;

	if (pattern.n > UAR_LIMIT_REGEX_BYTES)
		return uar_error_set(error, UAR_ETOOBIG, "the pattern is too long");
	n = parse_alternatives(&p);
	if (!p.err && p.at < pattern.n)
		fail(&p, UAR_EINVALID, "a ')' without its '('");
	if (p.err) {
		uar_error_where(error, "%zu", p.at);
		return uar_error_set(error, p.err, "%s", p.why);
	}
	*out = n;
	return UAR_OK;
}
