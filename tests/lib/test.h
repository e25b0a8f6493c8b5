/* test.h - the harness: a test is a function, a file is a program.
 *
 *	TEST(name, "RUN-01 RUN-02")   the ids it proves, or ""
 *	{
 *		CHECK(cond);                  goes on after a failure
 *		CHECK_STR(got, "want");
 *		REQUIRE(cond);                leaves the test
 *	}
 *
 * Each program prints one line a test: "ok NAME [IDS]", "not ok NAME [IDS]" or
 * "skipped NAME [IDS] # why", which tools/run-tests counts. With an argument it
 * runs only the tests whose name contains it. */
#ifndef UAR_TEST_H
#define UAR_TEST_H

#include <stdbool.h>
#include <stdio.h>

#include "base/str.h"

struct uar_test {
	const char *name, *ids;
	void (*fn)(void);
	struct uar_test *next;
};

void uar_test_register(struct uar_test *t);
void uar_test_fail(const char *file, int line, const char *fmt, ...) UAR_PRINTF(3, 4);
void uar_test_skip(const char *fmt, ...) UAR_PRINTF(1, 2); /* then return from the test */
bool uar_test_check_str(const char *file, int line, const char *expr, uar_str got, uar_str want);

#define TEST(NAME, IDS)                                                                            \
	static void test_##NAME(void);                                                             \
	__attribute__((constructor)) static void register_##NAME(void)                             \
	{                                                                                          \
		static struct uar_test t = { #NAME, IDS, test_##NAME, NULL };                      \
		uar_test_register(&t);                                                             \
	}                                                                                          \
	static void test_##NAME(void)

#define CHECK(COND) ((COND) ? true : (uar_test_fail(__FILE__, __LINE__, "%s", #COND), false))
#define CHECK_MSG(COND, ...)                                                                       \
	((COND) ? true : (uar_test_fail(__FILE__, __LINE__, __VA_ARGS__), false))
#define CHECK_STR(GOT, WANT) uar_test_check_str(__FILE__, __LINE__, #GOT, (GOT), uar_str_c(WANT))
#define CHECK_INT(GOT, WANT)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(GOT), want_ = (long long)(WANT);                      \
		if (got_ != want_)                                                                 \
			uar_test_fail(__FILE__, __LINE__, "%s is %lld, wanted %lld", #GOT, got_,   \
				      want_);                                                      \
	} while (0)
#define REQUIRE(COND)                                                                              \
	do {                                                                                       \
		if (!CHECK(COND))                                                                  \
			return;                                                                    \
	} while (0)

/* Is this the build of a sanitizer? gcc says it in macros, clang as features. */
#ifndef __has_feature
#define __has_feature(NAME) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UAR_TEST_SANITIZED true
#else
#define UAR_TEST_SANITIZED false
#endif

/* Makes allocation `n` (from 1) fail, once; 0 turns it off. */
void uar_test_fail_alloc(unsigned long n);
bool uar_test_alloc_failed(void); /* did that allocation happen? */

/* A new private directory below $TMPDIR, removed when the program ends. */
const char *uar_test_dir(void);
/* A program of this build, found from where the test itself is; valid for four calls. */
const char *uar_test_built(const char *name);

#endif
