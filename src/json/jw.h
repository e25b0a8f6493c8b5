/* jw.h - JSON written straight into a buffer; the only way UAR makes JSON.
 *
 *	struct uar_jw w = uar_jw_begin(&buf);
 *	uar_jw_obj(&w, NULL);
 *	uar_jw_str(&w, "type", UAR_STR("x"));
 *	uar_jw_arr(&w, "list"); uar_jw_int(&w, NULL, 1); uar_jw_close(&w);
 *	uar_jw_close(&w);
 *	e = uar_jw_end(&w);      // first error of writer or buffer
 *
 * The key is a C string inside an object and NULL inside an array or at the
 * top. Strings are escaped; ill-formed UTF-8 becomes U+FFFD, so what is written
 * always parses. Commas are the writer's business. */
#ifndef UAR_JSON_JW_H
#define UAR_JSON_JW_H

#include "json/json.h"

/* What belongs next: a value without a key, one with a key, or none. */
enum uar_jw_next { UAR_JW_VALUE, UAR_JW_MEMBER, UAR_JW_NOTHING };

struct uar_jw {
	struct uar_buf *out;
	uint64_t is_object; /* one bit per open level, the innermost one lowest */
	uint32_t depth;
	enum uar_jw_next next; /* UAR_JW_NOTHING: the document is complete, or err is set */
	bool comma;	       /* the next value needs one */
	uar_err err;	       /* UAR_EDEPTH, UAR_EINVALID (a key where none belongs) */
};

struct uar_jw uar_jw_begin(struct uar_buf *out);
uar_err uar_jw_end(struct uar_jw *w) UAR_MUST_CHECK; /* UAR_EINVALID when a level is open */

/* What the calls below do with a literal key: its length is known to the compiler. */
void uar_jw_put_obj(struct uar_jw *w, uar_str key);
void uar_jw_put_arr(struct uar_jw *w, uar_str key);
void uar_jw_put_str(struct uar_jw *w, uar_str key, uar_str s);
void uar_jw_put_int(struct uar_jw *w, uar_str key, int64_t v);
void uar_jw_put_bool(struct uar_jw *w, uar_str key, bool v);
void uar_jw_put_null(struct uar_jw *w, uar_str key);
void uar_jw_put_time(struct uar_jw *w, uar_str key, int64_t wall_us);
void uar_jw_put_raw(struct uar_jw *w, uar_str key, uar_str json);
/* All members of a valid object that has some, given as its text with the braces. */
void uar_jw_members(struct uar_jw *w, uar_str object);

static inline void uar_jw_obj(struct uar_jw *w, const char *key)
{
	uar_jw_put_obj(w, uar_str_c(key));
}
static inline void uar_jw_arr(struct uar_jw *w, const char *key)
{
	uar_jw_put_arr(w, uar_str_c(key));
}
/* The innermost open level; after an error, too, so that closing all of them ends. */
void uar_jw_close(struct uar_jw *w);

static inline void uar_jw_str(struct uar_jw *w, const char *key, uar_str s)
{
	uar_jw_put_str(w, uar_str_c(key), s);
}

static inline void uar_jw_int(struct uar_jw *w, const char *key, int64_t v)
{
	uar_jw_put_int(w, uar_str_c(key), v);
}

static inline void uar_jw_bool(struct uar_jw *w, const char *key, bool v)
{
	uar_jw_put_bool(w, uar_str_c(key), v);
}

static inline void uar_jw_null(struct uar_jw *w, const char *key)
{
	uar_jw_put_null(w, uar_str_c(key));
}

/* NULL writes null. */
static inline void uar_jw_cstr(struct uar_jw *w, const char *key, const char *s)
{
	if (s)
		uar_jw_str(w, key, uar_str_c(s));
	else
		uar_jw_null(w, key);
}

/* RFC 3339. */
static inline void uar_jw_time(struct uar_jw *w, const char *key, int64_t wall_us)
{
	uar_jw_put_time(w, uar_str_c(key), wall_us);
}

/* Null for an empty string, or no time. */
static inline void uar_jw_str_or_null(struct uar_jw *w, const char *key, uar_str s)
{
	if (s.n)
		uar_jw_str(w, key, s);
	else
		uar_jw_null(w, key);
}
static inline void uar_jw_time_or_null(struct uar_jw *w, const char *key, int64_t wall_us)
{
	if (wall_us)
		uar_jw_time(w, key, wall_us);
	else
		uar_jw_null(w, key);
}

/* Trusted JSON text, spliced; blanks between its tokens become spaces: it is one line. */
static inline void uar_jw_raw(struct uar_jw *w, const char *key, uar_str json)
{
	uar_jw_put_raw(w, uar_str_c(key), json);
}

void uar_jw_u64(struct uar_jw *w, const char *key, uint64_t v);
void uar_jw_double(struct uar_jw *w, const char *key,
		   double v); /* shortest that reads back; NaN, inf: null */
void uar_jw_seconds(struct uar_jw *w, const char *key, int64_t wall_us); /* 1731700000.123456 */
void uar_jw_tree(struct uar_jw *w, const char *key, const struct uar_json *j);
/* As much of the beginning of a text, whole in UTF-8, as is written in `room` bytes. */
uar_str uar_jw_fitting(uar_str s, size_t room);
/* A member whose key is not a C string. */
void uar_jw_key(struct uar_jw *w, uar_str key); /* then one value with key NULL */

#endif
