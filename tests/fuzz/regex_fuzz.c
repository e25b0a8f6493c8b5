/* regex_fuzz.c - a pattern, a line end, a text. Whatever compiles must come to an
 * answer within its steps, and the same answer when the text is given twice. */
#include "json/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uar_str rest, pattern = uar_str_cut(uar_str_n((const char *)data, n), '\n', &rest);
	struct uar_regex *re = NULL;
	struct uar_error error = { 0 };
	uint64_t steps = 1000000, again = 1000000;
	bool one = false, two = true;
	uar_err e = uar_regex_create(pattern, &re, &error);

	if (e && !error.text[0])
		__builtin_trap();
	if (e)
		return 0;
	e = uar_regex_match(re, rest, &steps, &one);
	if (e != UAR_OK && e != UAR_ETOOBIG)
		__builtin_trap();
	if (uar_regex_match(re, rest, &again, &two) != e || (!e && one != two) || steps != again)
		__builtin_trap();
	uar_regex_destroy(re);
	return 0;
}
