/* hook_answer_test.c - every form of an answer, and what is none. */
#include "core/hook_answer.h"

#include "test.h"

static const struct {
	const char *text;
	uar_err want;
	enum uar_hook_outcome outcome;
	const char *where, *context;
} cases[] = {
	{ "", UAR_OK, UAR_HOOK_CONTINUE, "", "" },
	{ " {} \n", UAR_OK, UAR_HOOK_CONTINUE, "", "" },
	{ "{\"outcome\":\"continue\"}", UAR_OK, UAR_HOOK_CONTINUE, "", "" },
	{ "{\"outcome\":\"block\"}", UAR_OK, UAR_HOOK_BLOCK, "", "" },
	{ "{\"outcome\":\"allow\"}", UAR_OK, UAR_HOOK_ALLOW, "", "" },
	{ "{\"outcome\":\"deny\"}", UAR_OK, UAR_HOOK_DENY, "", "" },
	{ "{\"outcome\":\"ask\"}", UAR_OK, UAR_HOOK_ASK, "", "" },
	{ "{\"additional_context\":\"a\"}", UAR_OK, UAR_HOOK_CONTINUE, "", "a" },
	{ "{\"additional_context\":[\"a\",\"b\"]}", UAR_OK, UAR_HOOK_CONTINUE, "", "a\nb" },
	{ "{\"additional_context\":[1]}", UAR_EINVALID, 0, "/additional_context", "" },
	{ "{\"additional_context\":{}}", UAR_EINVALID, 0, "/additional_context", "" },
	{ "{\"outcome\":\"maybe\"}", UAR_EINVALID, 0, "/outcome", "" },
	{ "{\"outcome\":1}", UAR_EINVALID, 0, "/outcome", "" },
	{ "{\"colour\":1}", UAR_EINVALID, 0, "/colour", "" },
	{ "[]", UAR_EINVALID, 0, "", "" },
	{ "yes", UAR_EINVALID, 0, NULL, "" },
};

TEST(an_answer_is_read_or_refused_with_its_place, "")
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		struct uar_hook_answer a = { 0 };
		struct uar_arena arena;
		uar_err e;

		uar_arena_init(&arena, 0);
		e = uar_hook_answer_read(uar_str_c(cases[i].text), &arena, &a, &error);
		CHECK_MSG(e == cases[i].want, "%s: %s", cases[i].text, uar_err_name(e));
		if (!e) {
			CHECK_INT(a.outcome, cases[i].outcome);
			CHECK_STR(a.context, cases[i].context);
		} else if (cases[i].where) {
			CHECK_STR(uar_str_c(error.where), cases[i].where);
		}
		uar_arena_fini(&arena);
	}
}

TEST(a_block_is_a_deny_of_the_call, "")
{
	CHECK_INT(uar_hook_says(UAR_HOOK_BLOCK), UAR_SAYS_DENY);
	CHECK_INT(uar_hook_says(UAR_HOOK_DENY), UAR_SAYS_DENY);
	CHECK_INT(uar_hook_says(UAR_HOOK_ASK), UAR_SAYS_ASK);
	CHECK_INT(uar_hook_says(UAR_HOOK_ALLOW), UAR_SAYS_ALLOW);
	CHECK_INT(uar_hook_says(UAR_HOOK_CONTINUE), UAR_SAYS_NOTHING);
}
