/* ensemble_test.c - which answer a ranker names. */
#include "test.h"
#include "work/ensemble.h"

TEST(a_ranker_names_an_answer_by_its_number, "PROV-06")
{
	static const struct {
		const char *said;
		size_t count, named;
	} cases[] = {
		{ "2", 3, 2 },
		{ "The best is answer 3.", 3, 3 },
		{ "{\"best\": 1}", 3, 1 },
		{ "4", 3, 0 },
		{ "12", 3, 0 },
		{ "0, then 10, then 2", 3, 2 },
		{ "99999999999999999999999 or 1", 3, 1 },
		{ "none", 3, 0 },
		{ "", 3, 0 },
		{ "1", 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_INT(rt_ensemble_named(uar_str_c(cases[i].said), cases[i].count),
			  cases[i].named);
}

TEST(answers_are_counted_without_candidates_that_failed, "PROV-06")
{
	struct uar_run_route route = { .count = 3 };

	snprintf(route.answers[0], sizeof route.answers[0], "a");
	snprintf(route.answers[2], sizeof route.answers[2], "c");
	CHECK_INT(rt_ensemble_answers(&route), 2);
	CHECK_INT(rt_ensemble_place(&route, 1), 0);
	CHECK_INT(rt_ensemble_place(&route, 2), 2);
	CHECK_INT(rt_ensemble_place(&route, 3), 3);
}
