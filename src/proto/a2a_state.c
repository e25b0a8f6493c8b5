/* a2a_state.c - states of tasks: which runs are in each. Lists filter by it, tasks are shown by it.
 */
#include "proto/a2a_wire.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NO_WORDS   ((const char *const[]){ NULL })

/* A word that a run may have stands in one row of a column, or its waits tell the rows apart. */
const struct uar_a2a_state_info uar_a2a_state_info[UAR_A2A_STATE_COUNT] = {
	[UAR_A2A_UNSPECIFIED] = { "TASK_STATE_UNSPECIFIED", "unknown", NULL, NULL },
	[UAR_A2A_SUBMITTED] = { "TASK_STATE_SUBMITTED", "submitted", WORDS("queued"), WORDS("") },
	[UAR_A2A_WORKING] = { "TASK_STATE_WORKING", "working", WORDS("running", "cancel_requested"),
			      WORDS("") },
	[UAR_A2A_INPUT_REQUIRED] = { "TASK_STATE_INPUT_REQUIRED", "input-required",
				     WORDS("running"),
				     WORDS(UAR_WAITS_INPUT, UAR_WAITS_HELD_INPUT) },
	[UAR_A2A_AUTH_REQUIRED] = { "TASK_STATE_AUTH_REQUIRED", "auth-required", WORDS("running"),
				    WORDS(UAR_WAITS_PERMISSION, UAR_WAITS_HELD_PERMISSION) },
	[UAR_A2A_COMPLETED] = { "TASK_STATE_COMPLETED", "completed", WORDS("succeeded"),
				WORDS("") },
	[UAR_A2A_FAILED] = { "TASK_STATE_FAILED", "failed", WORDS("failed", "timeout"), WORDS("") },
	[UAR_A2A_CANCELED] = { "TASK_STATE_CANCELED", "canceled", WORDS("canceled"), WORDS("") },
	[UAR_A2A_REJECTED] = { "TASK_STATE_REJECTED", "rejected", NO_WORDS, NO_WORDS },
};

static bool has_word(const char *const *words, uar_str word)
{
	while (words && *words && !uar_str_is(word, *words))
		words++;
	return words && *words;
}

enum uar_a2a_state uar_a2a_state_of(uar_str status, uar_str waits)
{
	int i = 0;

	while (i < UAR_A2A_STATE_COUNT && !(has_word(uar_a2a_state_info[i].status, status) &&
					    has_word(uar_a2a_state_info[i].waits, waits)))
		i++;
	return i < UAR_A2A_STATE_COUNT ? (enum uar_a2a_state)i : UAR_A2A_WORKING;
}

enum uar_a2a_state uar_a2a_state_parse(uar_str name)
{
	int i = 0;

	while (i < UAR_A2A_STATE_COUNT && !uar_str_is(name, uar_a2a_state_info[i].name) &&
	       !uar_str_is(name, uar_a2a_state_info[i].old))
		i++;
	return (enum uar_a2a_state)i;
}
