/* fields.h - structs whose members a table describes.
 *
 * Rows of the store and commands of the control plane are declared in .def files. From
 * the declaration come the struct, its deep copy, its JSON text, the reader of that text
 * with precise errors, and its JSON Schema: nobody lists the members a second time.
 *
 * A member that was not given is zero: an empty string, 0, false. Where the difference
 * between "not given" and "zero" counts, the reader says which members were there. */
#ifndef UAR_EVENT_FIELDS_H
#define UAR_EVENT_FIELDS_H

#include "json/jw.h"

enum uar_field_kind {
	UAR_F_STR,  /* uar_str: text */
	UAR_F_ID,   /* uar_str: an identifier (uar_str_is_id) */
	UAR_F_WORD, /* uar_str: one of `words` */
	UAR_F_OBJ,  /* uar_str: the text of a JSON object */
	UAR_F_ARR,  /* uar_str: the text of a JSON array */
	UAR_F_ANY,  /* uar_str: the text of any JSON value */
	UAR_F_INT,  /* int64_t */
	UAR_F_TIME, /* int64_t: microseconds since 1970; RFC 3339 in JSON */
	UAR_F_NUM,  /* double */
	UAR_F_BOOL, /* bool */
};

/* The C types of members, for tables: UAR_F_C_<kind>. */
#define UAR_F_C_STR  uar_str
#define UAR_F_C_ID   uar_str
#define UAR_F_C_WORD uar_str
#define UAR_F_C_OBJ  uar_str
#define UAR_F_C_ARR  uar_str
#define UAR_F_C_ANY  uar_str
#define UAR_F_C_INT  int64_t
#define UAR_F_C_TIME int64_t
#define UAR_F_C_NUM  double
#define UAR_F_C_BOOL bool

struct uar_field {
	const char *name;
	enum uar_field_kind kind;
	bool required;	   /* a text without it is refused */
	uint32_t offset;   /* in the struct */
	uint32_t max;	   /* bytes of a string or JSON text; 0: UAR_LIMIT_FIELD_BYTES */
	const char *words; /* of a WORD: separated by spaces */
	const char *doc;   /* one sentence for people, or NULL */
};

struct uar_fields {
	const struct uar_field *at;
	size_t count; /* at most 64 */
};

/* Copies every member; strings go to the arena. False: out of memory, *to is unusable. */
UAR_MUST_CHECK bool uar_fields_copy(const struct uar_fields *f, struct uar_arena *arena,
				    const void *from, void *to);
/* UAR_ETOOBIG: a string or a JSON text is longer than its limit, so that it could not be read
 * back. */
UAR_MUST_CHECK uar_err uar_fields_fit(const struct uar_fields *f, const void *from,
				      struct uar_error *error);
/* Writes the members that are not zero into the open object. */
void uar_fields_write(struct uar_jw *w, const struct uar_fields *f, const void *from);
/* Reads an object. Unknown members are refused, null counts as absent. error->where is
 * the pointer of the first member that is wrong. Strings and JSON texts are borrowed from
 * the tree or copied to the arena. *out_given (may be NULL): bit i is set when member i was
 * there. `out` must be zeroed. */
UAR_MUST_CHECK uar_err uar_fields_read(const struct uar_fields *f, const struct uar_json *object,
				       struct uar_arena *arena, void *out, uint64_t *out_given,
				       struct uar_error *error);
/* Writes a JSON Schema of the object as the value of `key`. */
void uar_fields_schema(struct uar_jw *w, const char *key, const struct uar_fields *f);

#endif
