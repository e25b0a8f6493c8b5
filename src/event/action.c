/* action.c - the table of actions and decisions, by name. */
#include "event/action.h"

#define V(NAME)	   UAR_VERDICT_BIT(NAME)
#define INPUT	   true
#define PERMISSION false
const struct uar_action_info uar_action_info[UAR_ACTION_TYPE_COUNT] = {
#define A(TYPE, TEXT, KIND, WAITS, OFFERED, OTHERWISE)                                             \
	[UAR_ACTION_##TYPE] = { TEXT, KIND, WAITS, OFFERED, UAR_VERDICT_##OTHERWISE },
#include "event/action.def"
};
#undef V
#undef INPUT
#undef PERMISSION

const struct uar_verdict_info uar_verdict_info[UAR_VERDICT_COUNT] = {
	[UAR_VERDICT_ASK] = { "ask", "", "", "", "", false },
#define D(NAME, TEXT, RESULT, OUTCOME, GRANT, VALUES, LABEL)                                       \
	[UAR_VERDICT_##NAME] = { TEXT, RESULT, OUTCOME, GRANT, LABEL, VALUES },
#include "event/action.def"
};

enum uar_action_type uar_action_type_parse(uar_str text)
{
	int i = 0;

	while (i < UAR_ACTION_TYPE_COUNT && !uar_str_is(text, uar_action_info[i].text))
		i++;
	return (enum uar_action_type)i;
}

bool uar_action_needs_right(enum uar_action_type t)
{
	return !uar_action_info[t].input || t == UAR_ACTION_CREDENTIAL;
}

enum uar_verdict uar_verdict_parse(uar_str text)
{
	for (int i = UAR_VERDICT_ASK + 1; i < UAR_VERDICT_COUNT; i++)
		if (uar_str_is(text, uar_verdict_info[i].text))
			return (enum uar_verdict)i;
	return UAR_VERDICT_ASK;
}
