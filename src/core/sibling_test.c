/* sibling_test.c - which calls a failure ends, over every combination of facts. */
#include "core/sibling.h"

#include "test.h"

TEST(a_failure_ends_no_call_that_may_have_changed_something, "")
{
	for (unsigned bits = 0; bits < 16; bits++) {
		const struct uar_sibling_facts f = {
			.linked = bits & 1,
			.failed = bits & 2,
			.begun = bits & 4,
			.read_only = bits & 8,
		};
		bool got = uar_core_sibling_cancelled(&f);

		CHECK(!got || (f.linked && f.failed));
		CHECK(!(got && f.begun && !f.read_only));
		if (f.linked && f.failed && !f.begun)
			CHECK(got);
		if (f.linked && f.failed && f.read_only)
			CHECK(got);
	}
}
