/* prompt.h - the prompt of an agent, section by section, from its definition and what a run
 * brings. Pure: equal inputs give equal bytes, in whatever order tools were discovered.
 *
 * The system text is base, agent, skills, tools, memory; the message follows the history. Text
 * that comes from elsewhere stands between <data> marks, which it cannot write itself. */
#ifndef UAR_AGENT_PROMPT_H
#define UAR_AGENT_PROMPT_H

#include "agent/definition.h"
#include "base/buf.h"

/* {{NAME}} in a text. `value` is called for each; it writes to `out` and returns an error for a
 * name that it does not know. error->where is left alone. */
typedef uar_err uar_template_fn(void *ctx, uar_str name, struct uar_buf *out);
UAR_MUST_CHECK uar_err uar_template_render(uar_str text, uar_template_fn *value, void *ctx,
					   struct uar_buf *out, struct uar_error *error);

enum uar_prompt_section {
	UAR_PROMPT_BASE,
	UAR_PROMPT_AGENT,
	UAR_PROMPT_SKILLS,
	UAR_PROMPT_TOOLS,
	UAR_PROMPT_MEMORY,
	UAR_PROMPT_HISTORY,
	UAR_PROMPT_MESSAGE,
	UAR_PROMPT_SECTION_COUNT
};
extern const char *const uar_prompt_section_names[UAR_PROMPT_SECTION_COUNT]; /* "base", ... */

struct uar_prompt_piece {
	uar_str name, text; /* a tool and its description; a source and what it says */
};

struct uar_prompt_inputs {
	const struct uar_definition *def;
	const struct uar_json *values; /* inputs of the run but the message; NULL: none */
	uar_str message;
	const struct uar_prompt_piece *skills; /* in the order in which they were selected */
	const struct uar_prompt_piece *tools;  /* those that the model may ask for */
	const struct uar_prompt_piece *memory; /* the best first */
	size_t skill_count, tool_count, memory_count;
	bool cite; /* the answer has to name the memory that it uses */
};

struct uar_prompt_text {
	struct uar_buf system;	/* all sections before the history */
	struct uar_buf message; /* what the model is told of the user's message */
	struct {
		char sha256[UAR_SHA256_TEXT + 1]; /* empty: the section is */
		size_t bytes;
	} sections[UAR_PROMPT_SECTION_COUNT];
};

/* What a run lacks: a variable without a default. UAR_EINVALID with error->where
 * "/inputs/NAME". */
UAR_MUST_CHECK uar_err uar_prompt_check(const struct uar_definition *def,
					const struct uar_json *values, struct uar_error *error);
/* `out` is zeroed; fini it in any case. The history's section is the caller's. */
UAR_MUST_CHECK uar_err uar_prompt_assemble(const struct uar_prompt_inputs *in,
					   struct uar_prompt_text *out, struct uar_error *error);
/* Names a section by its bytes. */
void uar_prompt_name_section(struct uar_prompt_text *t, enum uar_prompt_section s, uar_str bytes);
/* JSON array of {name, sha256, tokens}, for prompt_sections of context.resolved. */
UAR_MUST_CHECK uar_err uar_prompt_write_sections(const struct uar_prompt_text *t,
						 struct uar_buf *out);
void uar_prompt_fini(struct uar_prompt_text *t);
/* Text that is no instruction, between marks that it cannot leave. */
void uar_prompt_put_data(struct uar_buf *out, uar_str source, uar_str text);

/* Does the final text keep to policy.output and schemas.outputs? UAR_ESCHEMA with the reason. */
UAR_MUST_CHECK uar_err uar_prompt_check_answer(const struct uar_definition *def, uar_str answer,
					       struct uar_error *error);
bool uar_prompt_checks_answer(const struct uar_definition *def);

#endif
