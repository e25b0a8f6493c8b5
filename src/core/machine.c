/* machine.c - the .def tables as arrays. */
#include "core/machine.h"

static const struct {
	const char *text, *record;
	bool terminal;
} statuses[UAR_STATUS_COUNT] = {
#define S(NAME, TEXT, RECORD, TERMINAL) [UAR_STATUS_##NAME] = { TEXT, RECORD, TERMINAL },
#include "core/status.def"
#undef S
};

static const struct uar_move run_moves[UAR_STATUS_COUNT][UAR_IN_COUNT] = {
#define T(FROM, ON, TO, EFFECT)                                                                    \
	[UAR_STATUS_##FROM][UAR_IN_##ON] = { true, UAR_STATUS_##TO, UAR_DO_##EFFECT },
#include "core/run.def"
#undef T
};

struct small_move {
	int from, on, to;
};

static const struct small_move turn_moves[] = {
#define T(FROM, ON, TO) { UAR_TURN_##FROM, UAR_TURN_ON_##ON, UAR_TURN_##TO },
#include "core/turn.def"
#undef T
};

static const struct small_move task_moves[] = {
#define T(FROM, ON, TO) { UAR_TASK_##FROM, UAR_TASK_ON_##ON, UAR_TASK_##TO },
#include "core/task.def"
#undef T
};

const char *uar_status_text(enum uar_status s)
{
	return statuses[s].text;
}

const char *uar_status_record(enum uar_status s)
{
	return statuses[s].record;
}

bool uar_status_terminal(enum uar_status s)
{
	return statuses[s].terminal;
}

bool uar_status_waits(enum uar_status s)
{
	return s == UAR_STATUS_WAITING_INPUT || s == UAR_STATUS_WAITING_PERMISSION;
}

enum uar_status uar_status_parse(uar_str text)
{
	for (int s = 0; s < UAR_STATUS_COUNT; s++)
		if (uar_str_is(text, statuses[s].text))
			return (enum uar_status)s;
	return UAR_STATUS_COUNT;
}

const char *uar_status_record_parse(uar_str record)
{
	for (int s = 0; s < UAR_STATUS_COUNT; s++)
		if (uar_str_is(record, statuses[s].record))
			return statuses[s].record;
	return NULL;
}

struct uar_move uar_run_move(enum uar_status from, enum uar_run_input on)
{
	return run_moves[from][on];
}

/* The next state, or -1. */
static int find(const struct small_move *moves, size_t n, int from, int on)
{
	for (size_t i = 0; i < n; i++)
		if (moves[i].from == from && moves[i].on == on)
			return moves[i].to;
	return -1;
}

bool uar_turn_move(enum uar_turn_state *state, enum uar_turn_input on)
{
	int to = find(turn_moves, ARRAY_LEN(turn_moves), (int)*state, (int)on);

	if (to >= 0)
		*state = (enum uar_turn_state)to;
	return to >= 0;
}

bool uar_task_move(enum uar_task_state *state, enum uar_task_input on)
{
	int to = find(task_moves, ARRAY_LEN(task_moves), (int)*state, (int)on);

	if (to >= 0)
		*state = (enum uar_task_state)to;
	return to >= 0;
}
