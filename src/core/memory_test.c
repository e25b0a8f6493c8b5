/* memory_test.c - a run whose every allocation fails once. */
#include "base/alloc.h"
#include "story.h"
#include "test.h"

static const enum uar_command_kind life[] = {
	UAR_CMD_START,	   UAR_CMD_PREPARED,  UAR_CMD_REASONING,   UAR_CMD_TEXT,
	UAR_CMD_RECOVER,   UAR_CMD_PREPARED,  UAR_CMD_MODEL_CALLS, UAR_CMD_TOOL_BEGIN,
	UAR_CMD_TOOL_NEWS, UAR_CMD_TOOL_OVER, UAR_CMD_PREPARED,	   UAR_CMD_TEXT,
	UAR_CMD_CANCEL,	   UAR_CMD_MODEL_DONE
};

/* Tells it until it is taken: one allocation fails, the next try succeeds. */
static void insist(struct story *t, const struct uar_command *c)
{
	uar_err e = story_tell(t, c);

	CHECK_MSG(e == UAR_OK || e == UAR_ENOMEM, "%s", uar_err_name(e));
	if (e)
		CHECK_INT(story_tell(t, c), UAR_OK);
}

static bool live_with(unsigned long n)
{
	struct uar_command create = story_create(UAR_ENTRY_LLM, true);
	struct uar_run_row row;
	struct story t;
	bool failed;
	uar_err e;

	story_init(&t, 1);
	uar_test_fail_alloc(n);
	insist(&t, &create);
	for (size_t i = 0; i < ARRAY_LEN(life); i++) {
		struct uar_command c = story_command(life[i]);

		insist(&t, &c);
	}
	e = uar_core_row(&t.s, &t.r, &t.buf, &t.arena, &row);
	CHECK(e == UAR_OK || e == UAR_ENOMEM);
	failed = uar_test_alloc_failed();
	uar_test_fail_alloc(0);
	CHECK_INT(t.r.status, UAR_STATUS_CANCELLED);
	CHECK_INT(t.s.sequence, t.count);
	story_fini(&t);
	return failed;
}

TEST(every_failed_allocation_leaves_the_run_as_it_was, "")
{
	unsigned long n = 1;

	while (live_with(n))
		n++;
	CHECK(n > 5);
}
