/* answer_check.c - one repair, then a warning. */
#include "work/answer_check.h"

#include "json/limits.h"
#include "work/definitions.h"
#include "work/skills.h"

static bool checks_answer(const struct llm *w)
{
	const struct uar_definition *d = rt_definition(w->base.run);

	return d && (uar_prompt_checks_answer(d) || w->recall.cite ||
		     rt_skills_check_answers(w->skills));
}

void rt_answer_feed(struct llm *w, uar_str delta)
{
	if (!checks_answer(w))
		return;
	if (!w->answer.max)
		w->answer = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_buf_add_str(&w->answer, delta);
}

bool rt_answer_is_repaired(const struct llm *w)
{
	return w->role == UAR_ROLE_EXECUTE && rt_state(w->base.run)->call.rejected;
}

static void flag_answer(struct llm *w, uar_str why)
{
	struct uar_command c = { .kind = UAR_CMD_NOTE };

	c.note = (struct uar_note){ .kind = UAR_NOTE_WARNING,
				    .code = UAR_STR(UAR_OUTPUT_INVALID),
				    .text = why };
	rt_send(w->base.run, &c);
}

/* Its form, the rules of skills, and in citation-required mode its sources. */
static bool is_wrong(const struct llm *w, struct uar_error *error)
{
	const struct uar_definition *d = rt_definition(w->base.run);
	uar_str answer = uar_buf_str(&w->answer);

	if (uar_prompt_checks_answer(d) && uar_prompt_check_answer(d, answer, error))
		return true;
	if (rt_skills_check_answer(w->skills, answer, error))
		return true;
	if (!w->recall.cite || !w->recall.count || rt_recall_is_cited(&w->recall, answer))
		return false;
	uar_error_set(error, UAR_ESCHEMA, "it names none of its sources, such as [1]");
	return true;
}

bool rt_answer_rejects(struct llm *w, struct uar_model_end *end)
{
	const struct uar_run *run = rt_state(w->base.run);
	struct uar_error error = { 0 };

	if (!checks_answer(w) || !is_wrong(w, &error))
		return false;
	snprintf(w->why, sizeof w->why, "the answer does not keep to its form: %s%s%s", error.where,
		 error.where[0] ? ": " : "", uar_error_text(&error));
	if (run->call.rejected) {
		flag_answer(w, uar_str_c(w->why));
		return false;
	}
	end->code = UAR_STR(UAR_OUTPUT_INVALID);
	end->category = UAR_STR("provider_error");
	end->message = uar_str_c(w->why);
	end->retryable = true;
	end->retries = run->call.tries + 1;
	end->backoff_us = end->retry_after_us = 0;
	return true;
}

/* The repair is one call: what it asks for is not executed, what it says is the answer. */
struct uar_model_result rt_answer_without_calls(struct llm *w, const struct uar_model_result *m)
{
	struct uar_model_result said = *m;

	if (!rt_answer_is_repaired(w) || !m->call_count)
		return said;
	flag_answer(w, UAR_STR("the model asked for tools instead of repairing its answer; they "
			       "were not executed"));
	said.call_count = said.part_count = 0;
	said.stop_reason = UAR_STR("stop");
	return said;
}

void rt_answer_flag(struct llm *w)
{
	struct uar_error error = { 0 };

	if (!checks_answer(w) || !is_wrong(w, &error))
		return;
	snprintf(w->why, sizeof w->why, "the answer does not keep to its form: %s",
		 uar_error_text(&error));
	flag_answer(w, uar_str_c(w->why));
}

/* --- artifacts ---------------------------------------------------------------------------- */

void rt_answer_filter_blocks(struct llm *w)
{
	const struct uar_definition *d = rt_definition(w->base.run);
	size_t kept = 0;

	if (!d || !w->blocks.count)
		return;
	for (size_t i = 0; i < w->blocks.count; i++) {
		struct uar_block b = w->blocks.at[i];

		if (uar_definition_makes(d, uar_str_c(uar_block_type(&b))))
			w->blocks.at[kept++] = b;
		else
			uar_buf_fini(&b.text);
	}
	memset(w->blocks.at + kept, 0, (w->blocks.count - kept) * sizeof *w->blocks.at);
	w->blocks.count = kept;
}
