/* json.h - JSON text parsed once into a read-only tree.
 *
 * The reader is strict (RFC 8259, UTF-8 only): duplicate keys, lone surrogates,
 * ill-formed UTF-8, raw control characters, trailing bytes, numbers that would
 * overflow a double are refused; depth, size and node count are bounded. The
 * tree lives in the caller's arena and borrows unescaped strings from the text,
 * so the text must outlive the tree. Time is linear in the text. */
#ifndef UAR_JSON_JSON_H
#define UAR_JSON_JSON_H

#include "base/arena.h"
#include "base/buf.h"

enum uar_json_kind {
	UAR_JSON_NULL,
	UAR_JSON_BOOL,
	UAR_JSON_INT,	 /* integer that fits int64: exact in .i */
	UAR_JSON_DOUBLE, /* any other number: .d nearest, .text exact */
	UAR_JSON_STRING,
	UAR_JSON_ARRAY,
	UAR_JSON_OBJECT,
};

struct uar_json {
	enum uar_json_kind kind;
	uint32_t count;		     /* children of an array or object */
	uar_str key;		     /* own key when the parent is an object */
	uar_str text;		     /* STRING: decoded; numbers, arrays, objects: the source
				      * text, empty on containers that no text was read for */
	const struct uar_json *next; /* next sibling */
	union {
		bool b;
		int64_t i;
		double d;
		const struct uar_json *first; /* first child of an array or object */
	};
};

struct uar_json_limits {
	uint32_t depth, nodes; /* 0: UAR_LIMIT_JSON_DEPTH, UAR_LIMIT_JSON_NODES */
	size_t bytes;	       /* 0: UAR_LIMIT_JSON_BYTES */
	bool foreign;	       /* text of models and tools, whose stream must not fail over
				* it: \u0000 in a string becomes U+FFFD, and of members
				* with the same key the last one counts */
};

/* `limits` may be NULL. error->where says "line:column". */
UAR_MUST_CHECK uar_err uar_json_parse(uar_str text, const struct uar_json_limits *limits,
				      struct uar_arena *arena, const struct uar_json **out,
				      struct uar_error *error);

/* The same of a text that need not stay: the tree borrows from a copy in the arena. */
UAR_MUST_CHECK uar_err uar_json_parse_copy(uar_str text, const struct uar_json_limits *limits,
					   struct uar_arena *arena, const struct uar_json **out,
					   struct uar_error *error);

/* May the text stand between quotes as it is? Then reader and writer leave it alone. */
bool uar_json_is_plain(uar_str text);

const char *uar_json_kind_name(enum uar_json_kind kind); /* "string" */

/* Member of an object, element of an array; NULL when absent or j is of another
 * kind or NULL, so look-ups chain. */
const struct uar_json *uar_json_get(const struct uar_json *j, uar_str key);
const struct uar_json *uar_json_at(const struct uar_json *j, size_t index);
/* The value, or the fallback when absent or of another kind. */
uar_str uar_json_str(const struct uar_json *j, uar_str fallback);
int64_t uar_json_int(const struct uar_json *j, int64_t fallback);
double uar_json_double(const struct uar_json *j, double fallback); /* ints too */
bool uar_json_bool(const struct uar_json *j, bool fallback);
/* The member of an object that is a string; empty when it is absent or of another kind. */
static inline uar_str uar_json_text(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

/* Deep equality as JSON Schema means it: 1 equals 1.0, member order is irrelevant. */
bool uar_json_equal(const struct uar_json *a, const struct uar_json *b);

/* A reader of one object: a table of wanted fields, filled into a struct.
 * Absent optional fields leave the target untouched. */
enum uar_json_field_type {
	UAR_FIELD_STR,	  /* uar_str, valid while tree and text live */
	UAR_FIELD_ID,	  /* uar_str that passes uar_str_is_id */
	UAR_FIELD_INT,	  /* int64_t */
	UAR_FIELD_DOUBLE, /* double */
	UAR_FIELD_BOOL,	  /* bool */
	UAR_FIELD_OBJECT, /* const struct uar_json * */
	UAR_FIELD_ARRAY,  /* const struct uar_json * */
	UAR_FIELD_ANY,	  /* const struct uar_json * */
};
struct uar_json_field {
	const char *name;
	enum uar_json_field_type type;
	bool required;
	size_t offset; /* offsetof(struct target, field) */
};
/* Unknown members are refused when `strict`. null counts as absent for an
 * optional field. The first bad member is named in error->where as a pointer. */
UAR_MUST_CHECK uar_err uar_json_read(const struct uar_json *object,
				     const struct uar_json_field *fields, size_t n, bool strict,
				     void *target, struct uar_error *error);

/* JSON Pointer (RFC 6901). NULL when nothing is there or the pointer is not well formed. */
const struct uar_json *uar_json_pointer(const struct uar_json *root, uar_str pointer);
/* JSON Patch (RFC 6902): all operations or none; the result is a new tree that
 * may share nodes with the old one. */
UAR_MUST_CHECK uar_err uar_json_patch(const struct uar_json *doc, const struct uar_json *patch,
				      struct uar_arena *arena, const struct uar_json **out,
				      struct uar_error *error);
/* Writes the tree compactly. */
/* The first child; NULL: there is none, or the value is no container. */
static inline const struct uar_json *uar_json_first(const struct uar_json *j)
{
	return j && (j->kind == UAR_JSON_ARRAY || j->kind == UAR_JSON_OBJECT) ? j->first : NULL;
}
void uar_json_write(struct uar_buf *out, const struct uar_json *j);
/* The same bytes for all values that are equal: members by key, numbers by value.
 * It is for digests: a number is written as its digits and a power of ten. */
void uar_json_write_canonical(struct uar_buf *out, const struct uar_json *j);

#endif
