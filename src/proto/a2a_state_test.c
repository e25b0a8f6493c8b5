/* a2a_state_test.c - states of tasks: each run is in one, and the names of both versions mean the
 * same. */
#include "proto/a2a_wire.h"

#include "test.h"

static const struct {
	const char *status, *waits;
	enum uar_a2a_state state;
} cases[] = {
	{ "queued", "", UAR_A2A_SUBMITTED },
	{ "running", "", UAR_A2A_WORKING },
	{ "cancel_requested", "", UAR_A2A_WORKING },
	{ "running", "permission", UAR_A2A_AUTH_REQUIRED },
	{ "running", "held_permission", UAR_A2A_AUTH_REQUIRED },
	{ "running", "input", UAR_A2A_INPUT_REQUIRED },
	{ "running", "held_input", UAR_A2A_INPUT_REQUIRED },
	{ "succeeded", "", UAR_A2A_COMPLETED },
	{ "failed", "", UAR_A2A_FAILED },
	{ "timeout", "", UAR_A2A_FAILED },
	{ "canceled", "", UAR_A2A_CANCELED },
};

static bool has(const char *const *words, const char *word)
{
	while (words && *words && strcmp(*words, word) != 0)
		words++;
	return words && *words;
}

TEST(each_run_is_in_one_state_and_in_the_list_of_that_alone, "")
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uar_str status = uar_str_c(cases[i].status), waits = uar_str_c(cases[i].waits);
		int in = 0;

		CHECK_INT(uar_a2a_state_of(status, waits), cases[i].state);
		for (int s = 0; s < UAR_A2A_STATE_COUNT; s++)
			in += has(uar_a2a_state_info[s].status, cases[i].status) &&
			      has(uar_a2a_state_info[s].waits, cases[i].waits);
		CHECK_INT(in, 1);
	}
}

TEST(a_state_has_a_name_in_each_version, "")
{
	for (int s = 0; s < UAR_A2A_STATE_COUNT; s++) {
		CHECK_INT(uar_a2a_state_parse(uar_str_c(uar_a2a_state_info[s].name)), s);
		CHECK_INT(uar_a2a_state_parse(uar_str_c(uar_a2a_state_info[s].old)), s);
	}
	CHECK_INT(uar_a2a_state_parse(UAR_STR("TASK_STATE_FOO")), UAR_A2A_STATE_COUNT);
}
