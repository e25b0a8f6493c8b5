/* answer_check.c - one repair, then a warning. */
#include "work/answer_check.h"

#include "json/limits.h"
#include "work/definitions.h"

void rt_answer_feed(struct llm *w, uar_str delta)
{
	const struct uar_definition *d = rt_definition(w->base.run);

	if (!d || !uar_prompt_checks_answer(d))
		return;
	if (!w->answer.max)
		w->answer = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_buf_add_str(&w->answer, delta);
}

static void flag_answer(struct llm *w, uar_str why)
{
	struct uar_command c = { .kind = UAR_CMD_NOTE };

	c.note = (struct uar_note){ .kind = UAR_NOTE_WARNING,
				    .code = UAR_STR(UAR_OUTPUT_INVALID),
				    .text = why };
	rt_send(w->base.run, &c);
}

bool rt_answer_rejects(struct llm *w, struct uar_model_end *end)
{
	const struct uar_definition *d = rt_definition(w->base.run);
	const struct uar_run *run = rt_state(w->base.run);
	struct uar_error error = { 0 };

	if (!d || !uar_prompt_checks_answer(d) ||
	    !uar_prompt_check_answer(d, uar_buf_str(&w->answer), &error))
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

/* --- artifacts ---------------------------------------------------------------------------- */

static bool is_wanted(const struct uar_json *artifacts, const char *type)
{
	const struct uar_json *types = uar_json_get(artifacts, UAR_STR("preferred_types"));
	bool found = !types;

	if (!uar_json_bool(uar_json_get(artifacts, UAR_STR("enabled")), true))
		return false;
	for (const struct uar_json *t = uar_json_at(types, 0); t; t = t->next)
		found |= uar_str_is(t->text, type);
	return found;
}

void rt_answer_filter_blocks(struct llm *w)
{
	const struct uar_definition *d = rt_definition(w->base.run);
	const struct uar_json *artifacts =
		d ? uar_json_pointer(d->json, UAR_STR("/ui/artifacts")) : NULL;
	size_t kept = 0;

	if (!artifacts || !w->blocks.count)
		return;
	for (size_t i = 0; i < w->blocks.count; i++) {
		struct uar_block b = w->blocks.at[i];

		if (is_wanted(artifacts, uar_block_type(&b)))
			w->blocks.at[kept++] = b;
		else
			uar_buf_fini(&b.text);
	}
	memset(w->blocks.at + kept, 0, (w->blocks.count - kept) * sizeof *w->blocks.at);
	w->blocks.count = kept;
}
