/* regex.c - syntax tree to program, and the simulation of all its threads at once
 * (Thompson's way: a set of states per position, never a stack of choices).
 *
 * A look is a program of its own that is run over the whole text beforehand and
 * leaves one bit per position. A lookahead runs backward from the end, so that at
 * each position it knows whether some match begins there. */
#include "base/alloc.h"
#include "json/limits.h"
#include "json/regex_int.h"

/* --- compiling --- */

struct compiler {
	struct uar_regex *re;
	uint32_t cap, class_count, class_cap, visits;
	struct uar_regex_inst *code;
	const struct uar_regex_class **classes;
	uar_err err;
};

static uint32_t emit(struct compiler *c, enum regex_op op, uint32_t x, uint32_t y)
{
	struct uar_regex *re = c->re;

	if (c->err)
		return 0;
	if (!c->code || re->count == c->cap) {
		uint32_t cap = c->cap ? c->cap * 2 : 64;
		struct uar_regex_inst *code = NULL;

		if (cap <= UAR_LIMIT_REGEX_PROGRAM)
			code = uar_realloc(c->code, cap * sizeof *code);
		if (!code) {
			c->err = cap > UAR_LIMIT_REGEX_PROGRAM ? UAR_ETOOBIG : UAR_ENOMEM;
			return 0;
		}
		c->code = code;
		c->cap = cap;
	}
	c->code[re->count] = (struct uar_regex_inst){ op, x, y };
	return re->count++;
}

static uint32_t here(const struct compiler *c)
{
	return c->re->count;
}

static void patch_x(struct compiler *c, uint32_t at, uint32_t x)
{
	if (!c->err)
		c->code[at].x = x;
}

static void patch_y(struct compiler *c, uint32_t at, uint32_t y)
{
	if (!c->err)
		c->code[at].y = y;
}

static void emit_class(struct compiler *c, const struct uar_regex_class *set)
{
	if (c->class_count == c->class_cap) {
		uint32_t cap = c->class_cap ? c->class_cap * 2 : 16;
		const struct uar_regex_class **list = uar_realloc(c->classes, cap * sizeof *list);

		if (!list) {
			c->err = UAR_ENOMEM;
			return;
		}
		c->classes = list;
		c->class_cap = cap;
	}
	c->classes[c->class_count] = set;
	emit(c, REGEX_OP_CLASS, c->class_count++, 0);
}

static void emit_node(struct compiler *c, struct uar_regex_node *n, bool backward);

static void emit_alt(struct compiler *c, struct uar_regex_node *n, bool backward)
{
	uint32_t last_jump = UINT32_MAX, split;

	for (struct uar_regex_node *child = n->first; child; child = child->next) {
		split = child->next ? emit(c, REGEX_OP_SPLIT, here(c) + 1, 0) : 0;
		emit_node(c, child, backward);
		if (!child->next)
			break;
		last_jump = emit(c, REGEX_OP_JUMP, 0, last_jump); /* y chains the jumps */
		patch_y(c, split, here(c));
	}
	while (last_jump != UINT32_MAX && !c->err) {
		uint32_t before = c->code[last_jump].y;

		patch_x(c, last_jump, here(c));
		last_jump = before;
	}
}

static void emit_repeat(struct compiler *c, struct uar_regex_node *n, bool backward)
{
	uint32_t split, start;

	for (uint32_t i = 0; i < n->min && !c->err; i++)
		emit_node(c, n->first, backward);
	if (n->max == UINT32_MAX) {
		start = here(c);
		split = emit(c, REGEX_OP_SPLIT, here(c) + 1, 0);
		emit_node(c, n->first, backward);
		emit(c, REGEX_OP_JUMP, start, 0);
		patch_y(c, split, here(c));
		return;
	}
	start = UINT32_MAX; /* chain of the splits that leave early */
	for (uint32_t i = n->min; i < n->max && !c->err; i++) {
		start = emit(c, REGEX_OP_SPLIT, here(c) + 1, start);
		emit_node(c, n->first, backward);
	}
	while (start != UINT32_MAX && !c->err) {
		uint32_t before = c->code[start].y;

		patch_y(c, start, here(c));
		start = before;
	}
}

static void emit_cat(struct compiler *c, struct uar_regex_node *n, bool backward)
{
	struct uar_regex_node *child = backward ? n->last : n->first;

	for (; child && !c->err; child = backward ? child->prev : child->next)
		emit_node(c, child, backward);
}

/* A look has its program before the one that asks for it. */
static void emit_node(struct compiler *c, struct uar_regex_node *n, bool backward)
{
	/* Repetitions of nothing emit nothing; their work is bounded here. */
	if (++c->visits > 8 * UAR_LIMIT_REGEX_PROGRAM && !c->err)
		c->err = UAR_ETOOBIG;
	if (c->err)
		return;
	switch (n->kind) {
	case REGEX_EMPTY: break;
	case REGEX_CHAR: emit(c, REGEX_OP_CHAR, n->value, 0); break;
	case REGEX_ANY: emit(c, REGEX_OP_ANY, 0, 0); break;
	case REGEX_CLASS: emit_class(c, n->set); break;
	case REGEX_ASSERT: emit(c, (enum regex_op)n->value, 0, 0); break;
	case REGEX_CAT: emit_cat(c, n, backward); break;
	case REGEX_ALT: emit_alt(c, n, backward); break;
	case REGEX_REPEAT: emit_repeat(c, n, backward); break;
	case REGEX_LOOK:
		emit(c, n->negative ? REGEX_OP_NOT_LOOK : REGEX_OP_LOOK, (uint32_t)n->look, 0);
		break;
	}
}

static void compile_looks(struct compiler *c, struct uar_regex_node *n)
{
	struct uar_regex *re = c->re;

	for (struct uar_regex_node *child = n->first; child && !c->err; child = child->next)
		compile_looks(c, child);
	if (n->kind != REGEX_LOOK || c->err)
		return;
	if (re->look_count == REGEX_LOOKS) {
		c->err = UAR_ETOOBIG;
		return;
	}
	n->look = (int)re->look_count;
	re->looks[re->look_count++] = (struct uar_regex_look){ here(c), !n->behind };
	emit_cat(c, n, !n->behind);
	emit(c, REGEX_OP_MATCH, 0, 0);
}

/* True when every alternative begins with ^. */
static bool is_anchored(const struct uar_regex_node *n)
{
	switch (n->kind) {
	case REGEX_ASSERT: return n->value == REGEX_OP_START;
	case REGEX_CAT: return n->first && is_anchored(n->first);
	case REGEX_ALT:
		for (const struct uar_regex_node *child = n->first; child; child = child->next)
			if (!is_anchored(child))
				return false;
		return true;
	default: return false;
	}
}

static void compile(struct compiler *c, struct uar_regex_node *root)
{
	struct uar_regex *re = c->re;

	compile_looks(c, root);
	re->start = here(c);
	re->anchored = is_anchored(root);
	emit_node(c, root, false);
	emit(c, REGEX_OP_MATCH, 0, 0);
}

void uar_regex_destroy(struct uar_regex *re)
{
	if (!re)
		return;
	uar_free(re->code);
	uar_free(re->classes);
	uar_arena_fini(&re->arena);
	uar_free(re);
}

uar_err uar_regex_create(uar_str pattern, struct uar_regex **out, struct uar_error *error)
{
	struct uar_regex *re = uar_zalloc(sizeof *re);
	struct compiler c = { .re = re };
	struct uar_arena temporary;
	struct uar_regex_node *root;
	uar_err e;

	if (!re)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	uar_arena_init(&temporary, 0);
	uar_arena_init(&re->arena, 0);
	e = uar_regex_parse(pattern, &temporary, &re->arena, &root, error);
	if (!e) {
		compile(&c, root);
		e = c.err;
		re->code = c.code;
		re->classes = c.classes;
		if (e)
			uar_error_set(error, e, "the pattern is too large");
	}
	uar_arena_fini(&temporary);
	if (e) {
		uar_regex_destroy(re);
		return e;
	}
	*out = re;
	return UAR_OK;
}

/* --- matching --- */

enum { SMALL_PROGRAM = 256 };

/* Set of program counters with constant-time insert and clear. */
struct states {
	uint32_t *dense, *sparse, n;
};

struct run {
	const struct uar_regex *re;
	const unsigned char *text;
	size_t n;
	struct states now, next;
	uint32_t *stack;
	uint64_t *bits[REGEX_LOOKS];
	uint64_t *steps;
};

static bool has_state(const struct states *s, uint32_t pc)
{
	return s->sparse[pc] < s->n && s->dense[s->sparse[pc]] == pc;
}

static bool word_at(const struct run *r, size_t at)
{
	return at < r->n && uar_regex_is_word(r->text[at]);
}

/* Is the condition of an instruction that consumes nothing met at `at`? */
static bool holds(const struct run *r, const struct uar_regex_inst *i, size_t at)
{
	bool boundary, bit;

	switch (i->op) {
	case REGEX_OP_START: return at == 0;
	case REGEX_OP_END: return at == r->n;
	case REGEX_OP_WORD:
	case REGEX_OP_NOT_WORD:
		boundary = (at > 0 && word_at(r, at - 1)) != word_at(r, at);
		return boundary == (i->op == REGEX_OP_WORD);
	default:
		bit = r->bits[i->x][at >> 6] >> (at & 63) & 1;
		return bit == (i->op == REGEX_OP_LOOK);
	}
}

/* Adds pc and all that is reached from it without consuming; true when that
 * includes the end of the program. Each state is pushed at most twice. */
static bool add_state(struct run *r, struct states *s, uint32_t pc, size_t at)
{
	uint32_t depth = 0;
	bool found = false;

	r->stack[depth++] = pc;
	while (depth) {
		const struct uar_regex_inst *i;

		pc = r->stack[--depth];
		if (has_state(s, pc))
			continue;
		s->sparse[pc] = s->n;
		s->dense[s->n++] = pc;
		i = &r->re->code[pc];
		if (i->op == REGEX_OP_MATCH) {
			found = true;
		} else if (i->op == REGEX_OP_SPLIT) {
			r->stack[depth++] = i->y;
			r->stack[depth++] = i->x;
		} else if (i->op == REGEX_OP_JUMP) {
			r->stack[depth++] = i->x;
		} else if (i->op >= REGEX_OP_START && holds(r, i, at)) {
			r->stack[depth++] = pc + 1;
		}
	}
	return found;
}

static bool in_class(const struct uar_regex_class *c, uint32_t ch)
{
	uint32_t lo = 0, hi = c->count;

	if (ch < 128)
		return c->ascii[ch >> 6] >> (ch & 63) & 1;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (ch > c->ranges[mid].hi)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->count && ch >= c->ranges[lo].lo;
}

static bool consumes(const struct run *r, const struct uar_regex_inst *i, uint32_t ch)
{
	if (i->op == REGEX_OP_CHAR)
		return i->x == ch;
	if (i->op == REGEX_OP_CLASS)
		return in_class(r->re->classes[i->x], ch);
	return i->op == REGEX_OP_ANY && ch != '\n' && ch != '\r' && ch != 0x2028 && ch != 0x2029;
}

/* The character behind (or, backward, before) `at`, and its length; text is
 * trusted to be UTF-8, anything else counts byte by byte. */
static size_t char_at(const struct run *r, size_t at, bool backward, uint32_t *out)
{
	size_t start = at, n;

	if (backward) {
		start--;
		while (start > 0 && at - start < 4 && (r->text[start] & 0xC0) == 0x80)
			start--;
	}
	if (r->text[start] < 0x80) {
		*out = r->text[backward ? at - 1 : at];
		return 1;
	}
	n = uar_utf8_decode(uar_str_n((const char *)r->text + start, r->n - start), out);
	if (n && (!backward || start + n == at))
		return n;
	*out = 0xFFFD;
	return 1;
}

static bool spend(struct run *r, uint64_t n)
{
	if (*r->steps < n) {
		*r->steps = 0;
		return false;
	}
	*r->steps -= n;
	return true;
}

/* Moves every state over `ch` to position `at`; true when one reached the end. */
static bool advance(struct run *r, uint32_t ch, size_t at)
{
	struct states swap = r->now;
	bool hit = false;

	r->next.n = 0;
	for (uint32_t i = 0; i < r->now.n; i++) {
		uint32_t pc = r->now.dense[i];

		if (consumes(r, &r->re->code[pc], ch))
			hit |= add_state(r, &r->next, pc + 1, at);
	}
	r->now = r->next;
	r->next = swap;
	return hit;
}

/* One pass over the text. `bits` NULL: stop at the first match and say so. */
static uar_err pass(struct run *r, struct uar_regex_look prog, uint64_t *bits, bool *found)
{
	size_t at = prog.backward ? r->n : 0, stop = r->n - at;
	bool once = !bits && r->re->anchored, hit;

	r->now.n = 0;
	hit = add_state(r, &r->now, prog.start, at);
	for (;;) {
		uint32_t ch;
		size_t len;

		if (hit && bits)
			bits[at >> 6] |= 1ull << (at & 63);
		*found = hit;
		if ((hit && !bits) || at == stop || !r->now.n)
			return UAR_OK;
		if (!spend(r, r->now.n + 1))
			return UAR_ETOOBIG;
		len = char_at(r, at, prog.backward, &ch);
		at = prog.backward ? at - len : at + len;
		hit = advance(r, ch, at);
		if (!once) /* another match may begin at every place */
			hit |= add_state(r, &r->now, prog.start, at);
	}
}

static uar_err run_all(struct run *r, uint64_t *bits, bool *found)
{
	size_t words = r->n / 64 + 1;
	struct uar_regex_look whole = { r->re->start, false };

	for (uint32_t i = 0; i < r->re->look_count; i++) {
		bool ignored;
		uar_err e;

		r->bits[i] = bits + i * words;
		e = pass(r, r->re->looks[i], r->bits[i], &ignored);
		if (e)
			return e;
	}
	return pass(r, whole, NULL, found);
}

static void lay_out(struct run *r, uint32_t *memory)
{
	uint32_t count = r->re->count;

	r->now = (struct states){ memory, memory + count, 0 };
	r->next = (struct states){ memory + 2 * count, memory + 3 * count, 0 };
	r->stack = memory + 4 * count; /* 2 * count + 2: each state pushes two at most */
}

uar_err uar_regex_match(const struct uar_regex *re, uar_str text, uint64_t *steps, bool *out_found)
{
	uint32_t small[6 * SMALL_PROGRAM + 2];
	struct run r = {
		.re = re, .text = (const unsigned char *)text.p, .n = text.n, .steps = steps
	};
	size_t states = (6 * (size_t)re->count + 2) * sizeof(uint32_t);
	uint32_t *memory = small;
	uint64_t *bits = NULL;
	uar_err e = UAR_ENOMEM;

	if (states > sizeof small) {
		if (*steps < re->count) { /* to clear the sets is work, too */
			*steps = 0;
			return UAR_ETOOBIG;
		}
		*steps -= re->count;
		memory = uar_alloc(states);
	}
	if (re->look_count)
		bits = uar_zalloc((text.n / 64 + 1) * sizeof *bits * re->look_count);
	if (memory && (bits || !re->look_count)) {
		memset(memory, 0, states); /* sparse sets read what was never written */
		lay_out(&r, memory);
		e = run_all(&r, bits, out_found);
	}
	uar_free(bits);
	if (memory != small)
		uar_free(memory);
	return e;
}
