/* hook_answer.h - what a hook answers, in one form whatever it wrote. */
#ifndef UAR_CORE_HOOK_ANSWER_H
#define UAR_CORE_HOOK_ANSWER_H

#include "core/permission.h"

enum uar_hook_outcome {
	UAR_HOOK_CONTINUE,
	UAR_HOOK_ALLOW,
	UAR_HOOK_ASK,
	UAR_HOOK_DENY,
	UAR_HOOK_BLOCK,
	UAR_HOOK_OUTCOME_COUNT
};
const char *uar_hook_outcome_name(enum uar_hook_outcome o); /* "block" */
/* UAR_HOOK_OUTCOME_COUNT: it is none. */
enum uar_hook_outcome uar_hook_outcome_parse(uar_str name);
/* What it says of a call: a block is a deny. */
enum uar_permission_verdict uar_hook_says(enum uar_hook_outcome o);

struct uar_hook_answer {
	enum uar_hook_outcome outcome;
	uar_str reason;			       /* or empty */
	bool suppress;			       /* the model is not told the output */
	const struct uar_json *input, *output; /* that take the place of those; NULL: none */
	uar_str context;		       /* that the model is told besides; or empty */
	uar_str audit;			       /* JSON text that is kept for people; or empty */
};
/* Nothing at all means: continue. UAR_EINVALID: it is no answer, with where and why. Strings are of
 * the text or live in the arena. */
UAR_MUST_CHECK uar_err uar_hook_answer_read(uar_str text, struct uar_arena *arena,
					    struct uar_hook_answer *out, struct uar_error *error);

#endif
