/* calc_fuzz.c - expressions for math.evaluate: a finite value or a reason, and blanks
 * around it change nothing. */
#include <math.h>
#include <stdlib.h>

#include "tool/internal_int.h"
#include "tool/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_buf spaced = uar_buf_make(size + 2);
	struct uar_error error = { 0 };
	double v = 0, again = 0;
	uar_err e = uar_calc_evaluate(uar_str_n((const char *)data, size), &v, &error), f;

	if (e ? !error.text[0] : !isfinite(v))
		abort();
	uar_buf_add_char(&spaced, ' ');
	uar_buf_add(&spaced, data, size);
	uar_buf_add_char(&spaced, '\n');
	f = uar_calc_evaluate(uar_buf_str(&spaced), &again, &error);
	if (size + 2 <= UAR_LIMIT_CALC_BYTES && (e != f || v != again))
		abort();
	uar_buf_fini(&spaced);
	return 0;
}
