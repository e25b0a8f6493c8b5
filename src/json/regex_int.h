/* regex_int.h - the syntax tree and the program of a regular expression. */
#ifndef UAR_JSON_REGEX_INT_H
#define UAR_JSON_REGEX_INT_H

#include "base/arena.h"
#include "json/regex.h"

enum {
	REGEX_DEPTH = 200,    /* nested groups */
	REGEX_RANGES = 65536, /* ranges of one set while it is built */
	REGEX_LOOKS = 32,     /* lookaheads and lookbehinds */
	REGEX_LAST = 0x10FFFF,
};

/* --- sets of characters (regex_class.c) --- */

struct uar_regex_range {
	uint32_t lo, hi;
};

struct uar_regex_class {
	uint64_t ascii[2];
	const struct uar_regex_range *ranges; /* sorted, apart from each other */
	uint32_t count;
};

/* A set under construction; the first error sticks. */
struct uar_regex_set {
	struct uar_regex_range *r;
	size_t n, cap;
	uar_err err;
};

void uar_regex_set_fini(struct uar_regex_set *s);
void uar_regex_set_add(struct uar_regex_set *s, uint32_t lo, uint32_t hi);
void uar_regex_set_add_set(struct uar_regex_set *s, const struct uar_regex_set *other);
void uar_regex_set_normalise(struct uar_regex_set *s, bool negate);
void uar_regex_set_add_digits(struct uar_regex_set *s);
void uar_regex_set_add_words(struct uar_regex_set *s);
void uar_regex_set_add_spaces(struct uar_regex_set *s);
/* General_Category by short or long name; false when it is not known. */
bool uar_regex_set_add_property(struct uar_regex_set *s, uar_str name);
uar_err uar_regex_set_freeze(const struct uar_regex_set *s, struct uar_arena *arena,
			     const struct uar_regex_class **out);

static inline bool uar_regex_is_word(uint32_t c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* --- syntax tree (regex_parse.c) --- */

enum regex_kind {
	REGEX_EMPTY,
	REGEX_CHAR,   /* value */
	REGEX_ANY,    /* all but line ends */
	REGEX_CLASS,  /* set */
	REGEX_CAT,    /* children */
	REGEX_ALT,    /* children */
	REGEX_REPEAT, /* one child, min, max */
	REGEX_ASSERT, /* value: the instruction */
	REGEX_LOOK,   /* one child, behind, negative */
};

struct uar_regex_node {
	enum regex_kind kind;
	uint32_t value, min, max; /* max UINT32_MAX: no end */
	bool behind, negative;
	int look; /* number of its program, -1 until there is one */
	const struct uar_regex_class *set;
	struct uar_regex_node *first, *last, *next, *prev;
};

/* The tree lives in `temporary`, the sets in `kept`. */
uar_err uar_regex_parse(uar_str pattern, struct uar_arena *temporary, struct uar_arena *kept,
			struct uar_regex_node **out, struct uar_error *error);

/* --- program --- */

enum regex_op {
	REGEX_OP_CHAR, /* x: the character */
	REGEX_OP_ANY,
	REGEX_OP_CLASS, /* x: index of the set */
	REGEX_OP_SPLIT, /* x, y: both go on */
	REGEX_OP_JUMP,	/* x */
	REGEX_OP_START,
	REGEX_OP_END,
	REGEX_OP_WORD,
	REGEX_OP_NOT_WORD,
	REGEX_OP_LOOK, /* x: number of the look */
	REGEX_OP_NOT_LOOK,
	REGEX_OP_MATCH,
};

struct uar_regex_inst {
	enum regex_op op;
	uint32_t x, y;
};

struct uar_regex_look {
	uint32_t start;
	bool backward; /* a lookahead is found from the end of the text */
};

struct uar_regex {
	struct uar_arena arena;
	struct uar_regex_inst *code;
	uint32_t count, start;
	const struct uar_regex_class **classes;
	struct uar_regex_look looks[REGEX_LOOKS]; /* inner ones before outer ones */
	uint32_t look_count;
	bool anchored; /* can match at the start of the text only */
};

#endif
