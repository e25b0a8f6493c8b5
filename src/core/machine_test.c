/* machine_test.c - every pair of state and input of every machine. */
#include "core/machine.h"

#include "run_rows.h"
#include "test.h"

static const struct row *row_of(int from, int on)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((int)rows[i].from == from && (int)rows[i].on == on)
			return &rows[i];
	return NULL;
}

TEST(every_pair_of_status_and_input_is_a_row_or_refused, "RUN-16")
{
	size_t legal = 0;

	for (int from = 0; from < UAR_STATUS_COUNT; from++)
		for (int on = 0; on < UAR_IN_COUNT; on++) {
			const struct row *row = row_of(from, on);
			struct uar_move m =
				uar_run_move((enum uar_status)from, (enum uar_run_input)on);

			legal += m.legal;
			CHECK_MSG(m.legal == (row != NULL), "%s, input %d",
				  uar_status_text((enum uar_status)from), on);
			if (row && m.legal)
				CHECK(m.to == row->to && m.effect == row->effect);
		}
	CHECK_INT(legal, ARRAY_LEN(rows)); /* no row is written twice */
}

/* What the record may show after what; R-22 adds the time limit of a cancelled run. */
static const struct {
	const char *from, *to;
} edges[] = {
	{ "queued", "running" },
	{ "queued", "canceled" },
	{ "running", "succeeded" },
	{ "running", "failed" },
	{ "running", "timeout" },
	{ "running", "cancel_requested" },
	{ "cancel_requested", "canceled" },
	{ "cancel_requested", "timeout" },
};

static bool edge(const char *from, const char *to)
{
	if (strcmp(from, to) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(edges); i++)
		if (!strcmp(edges[i].from, from) && !strcmp(edges[i].to, to))
			return true;
	return false;
}

TEST(the_record_moves_only_along_its_edges, "RUN-14 RUN-15 RUN-16")
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *from = uar_status_record(rows[i].from);
		const char *to = uar_status_record(rows[i].to);

		CHECK_MSG(edge(from, to), "%s -> %s", uar_status_text(rows[i].from),
			  uar_status_text(rows[i].to));
	}
	for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
		bool used = false;

		for (size_t k = 0; k < ARRAY_LEN(rows); k++)
			used |= !strcmp(uar_status_record(rows[k].from), edges[i].from) &&
				!strcmp(uar_status_record(rows[k].to), edges[i].to);
		CHECK_MSG(used, "%s -> %s cannot happen", edges[i].from, edges[i].to);
	}
}

TEST(nothing_moves_a_run_that_has_ended, "RUN-17 RUN-21")
{
	static const char *const ends[] = { "completed", "failed", "lost", "timed_out",
					    "cancelled" };

	for (int s = 0; s < UAR_STATUS_COUNT; s++) {
		bool end = false;

		for (size_t i = 0; i < ARRAY_LEN(ends); i++)
			end |= strcmp(uar_status_text((enum uar_status)s), ends[i]) == 0;
		CHECK(uar_status_terminal((enum uar_status)s) == end);
		for (int on = 0; on < UAR_IN_COUNT && end; on++)
			CHECK(!uar_run_move((enum uar_status)s, (enum uar_run_input)on).legal);
	}
}

TEST(every_status_leads_to_an_end_and_is_reached, "RUN-16")
{
	bool reached[UAR_STATUS_COUNT] = { [UAR_STATUS_QUEUED] = true };
	bool ends[UAR_STATUS_COUNT] = { false };

	for (int s = 0; s < UAR_STATUS_COUNT; s++)
		ends[s] = uar_status_terminal((enum uar_status)s);
	for (int round = 0; round < UAR_STATUS_COUNT; round++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			reached[rows[i].to] |= reached[rows[i].from];
			ends[rows[i].from] |= ends[rows[i].to];
		}
	for (int s = 0; s < UAR_STATUS_COUNT; s++)
		CHECK_MSG(ends[s], "%s never ends", uar_status_text((enum uar_status)s));
	CHECK(reached[UAR_STATUS_COMPLETED] && reached[UAR_STATUS_FAILED]);
	CHECK(reached[UAR_STATUS_CANCELLED] && reached[UAR_STATUS_TIMED_OUT]);
}

TEST(a_run_that_is_over_asks_for_nothing, "")
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (uar_status_terminal(rows[i].to))
			CHECK_INT(rows[i].effect, UAR_DO_NONE);
}

TEST(status_words_are_those_of_the_table, "RUN-14 RUN-15")
{
	static const struct {
		const char *text, *record;
	} words[] = {
		{ "queued", "queued" },
		{ "preparing", "running" },
		{ "running", "running" },
		{ "streaming", "running" },
		{ "retrying", "running" },
		{ "waiting_input", "running" },
		{ "waiting_permission", "running" },
		{ "waiting_resource", "running" },
		{ "blocked", "running" },
		{ "paused", "running" },
		{ "cancelling", "cancel_requested" },
		{ "completed", "succeeded" },
		{ "failed", "failed" },
		{ "lost", "failed" },
		{ "timed_out", "timeout" },
		{ "cancelled", "canceled" },
	};

	CHECK_INT(ARRAY_LEN(words), UAR_STATUS_COUNT);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		enum uar_status s = uar_status_parse(uar_str_c(words[i].text));

		REQUIRE(s < UAR_STATUS_COUNT);
		CHECK_STR(uar_str_c(uar_status_text(s)), words[i].text);
		CHECK_STR(uar_str_c(uar_status_record(s)), words[i].record);
		CHECK_STR(uar_str_c(uar_status_record_parse(uar_str_c(words[i].record))),
			  words[i].record);
	}
}

TEST(other_words_are_no_status, "RUN-14")
{
	static const char *const records[] = { "",	    "cancelled", "completed", "Running",
					       "timed_out", "running ",	 "success" };
	static const char *const texts[] = { "", "canceled", "succeeded", "timeout", "Queued" };

	for (size_t i = 0; i < ARRAY_LEN(records); i++)
		CHECK(!uar_status_record_parse(uar_str_c(records[i])));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		CHECK_INT(uar_status_parse(uar_str_c(texts[i])), UAR_STATUS_COUNT);
}

/* The small machines: a row moves, anything else is refused and changes nothing. */
struct small {
	int from, on, to;
};

static int next_of(const struct small *moves, size_t n, int from, int on)
{
	for (size_t i = 0; i < n; i++)
		if (moves[i].from == from && moves[i].on == on)
			return moves[i].to;
	return -1;
}

#define SMALL_MACHINE(NAME, UPPER, STATES, INPUTS)                                                 \
	TEST(every_pair_of_the_##NAME##_machine, "")                                               \
	{                                                                                          \
		for (int from = 0; from < (STATES); from++)                                        \
			for (int on = 0; on < (INPUTS); on++) {                                    \
				enum uar_##NAME##_state s = (enum uar_##NAME##_state)from;         \
				int to = next_of(NAME##_rows, ARRAY_LEN(NAME##_rows), from, on);   \
				bool moved = uar_##NAME##_move(&s, (enum uar_##NAME##_input)on);   \
                                                                                                   \
				CHECK_MSG(moved == (to >= 0), "%d on %d", from, on);               \
				CHECK_INT(s, to >= 0 ? to : from);                                 \
				CHECK(!moved || from != (int)UAR_##UPPER##_ENDED);                 \
			}                                                                          \
	}

static const struct small turn_rows[] = {
#define T(FROM, ON, TO) { UAR_TURN_##FROM, UAR_TURN_ON_##ON, UAR_TURN_##TO },
#include "core/turn.def"
#undef T
};
static const struct small task_rows[] = {
#define T(FROM, ON, TO) { UAR_TASK_##FROM, UAR_TASK_ON_##ON, UAR_TASK_##TO },
#include "core/task.def"
#undef T
};

SMALL_MACHINE(turn, TURN, UAR_TURN_ENDED + 1, UAR_TURN_ON_FAILED + 1)
SMALL_MACHINE(task, TASK, UAR_TASK_ENDED + 1, UAR_TASK_ON_CANCELLED + 1)

TEST(late_progress_moves_no_ended_task, "RUN-21")
{
	enum uar_task_state s = UAR_TASK_ENDED;

	CHECK(!uar_task_move(&s, UAR_TASK_ON_PROGRESS));
	CHECK_INT(s, UAR_TASK_ENDED);
}
