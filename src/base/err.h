/* err.h - error codes and the detail that a person reads.
 *
 * Functions return uar_err: 0 is success, negative is a row of err.def.
 * Where somebody will read the reason, a struct uar_error comes last and is
 * filled once, by the place that knew the reason. */
#ifndef UAR_BASE_ERR_H
#define UAR_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/sizes.h"

typedef enum uar_err {
	UAR_OK = 0,
	UAR_ERR_FIRST_ = -1000,
#define E(NAME, TOKEN, HTTP, RETRY, TEXT) UAR_E##NAME,
#include "base/err.def"
#undef E
	UAR_ERR_END_
} uar_err;

#define UAR_MUST_CHECK	 __attribute__((warn_unused_result))
#define UAR_PRINTF(A, B) __attribute__((format(printf, A, B)))
/* What seldom happens, called at the end of a function: kept out of it, so that the
 * usual way saves no registers. */
#define UAR_RARELY __attribute__((noinline, cold))

const char *uar_err_name(uar_err e);  /* "UAR_EINVALID" */
const char *uar_err_token(uar_err e); /* "VALIDATION_ERROR" */
const char *uar_err_text(uar_err e);  /* one sentence */
int uar_err_http(uar_err e);	      /* 400 */
bool uar_err_retryable(uar_err e);

/* Why it failed. `where` points into the input: a JSON pointer, a file:line or
 * a header name; empty when there is no such place. */
struct uar_error {
	uar_err code;
	char where[UAR_LIMIT_ERROR_WHERE];
	char text[UAR_LIMIT_ERROR_TEXT];
};

/* The same as = { 0 } to who reads it; most of its bytes stay as they are. */
static inline void uar_error_clear(struct uar_error *error)
{
	error->code = UAR_OK;
	error->where[0] = error->text[0] = 0;
}

/* Fills `error` (NULL is fine) and returns `code`, so that
 * `return uar_error_set(error, UAR_EINVALID, "...")` is the whole error path. */
uar_err uar_error_set(struct uar_error *error, uar_err code, const char *fmt, ...) UAR_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* which cannot see that it returns what it was given */
#define uar_error_set(ERROR, CODE, ...) ((uar_error_set)(ERROR, CODE, __VA_ARGS__), (CODE))
#endif
void uar_error_where(struct uar_error *error, const char *fmt, ...) UAR_PRINTF(2, 3);
/* The detail when there is one, else the sentence of the code. */
const char *uar_error_text(const struct uar_error *error);

#endif
