/* compaction.c - condenses what was said before. */
#include "work/compaction.h"

#include "event/sizes.h"
#include "json/json.h"
#include "json/limits.h"
#include "model/policy.h"
#include "work/routing.h"

enum {
	FULL_PART = 80,	    /* percent of the window that a prompt may fill */
	KEEP_PART = 30,	    /* percent of it that stays as it was said */
	CONDENSE_PART = 60, /* percent of it that the model is told at once */
	BYTES_PER_TOKEN = 4,
	PREVIEW = 200,
};

static const char task[] = "Condense the conversation that follows, so that it can be continued "
			   "from your summary alone. "
			   "Keep names, numbers, decisions, what the user wants, what is open, and "
			   "the ids of artifacts. "
			   "Write only the summary.";
static const char heading[] = "Summary of the conversation so far:\n";

void rt_compaction_fini(struct compaction *c)
{
	uar_buf_fini(&c->prompt);
	uar_buf_fini(&c->facts);
}

/* --- the window ------------------------------------------------------------------------- */

int64_t rt_window_of(const struct live_run *r)
{
	const struct uar_models *models = rt_work(r)->o.models;
	const struct uar_run *state = rt_state(r);
	struct uar_model_policy policy;
	int64_t most = 0;

	if (!models)
		return 0;
	if (uar_run_rare(state)->route.count || !rt_routing_policy(r, &policy))
		return uar_models_row(models, uar_run_provider(state), uar_run_model(state))
			.context_tokens;
	for (size_t i = 0; i < policy.count; i++) {
		const struct uar_model_choice *c = &policy.at[i];
		uar_str provider = c->provider.n ? c->provider : state->what.provider;
		uar_str model = c->provider.n ? c->model : state->what.model;
		int64_t tokens = uar_models_row(models, provider, model).context_tokens;

		if (!tokens)
			return 0;
		most = tokens > most ? tokens : most;
	}
	return most;
}

/* --- begin ---------------------------------------------------------------------------------- */

static void put_action(void *ctx, uar_str action_id)
{
	uar_jw_str(ctx, NULL, action_id);
}

static void put_artifacts(struct uar_jw *w, uar_str ids)
{
	uar_jw_arr(w, "artifact_refs");
	while (ids.n) {
		char ref[UAR_LIMIT_ID_BYTES + 16];
		uar_str id = uar_str_cut(ids, '\n', &ids);

		snprintf(ref, sizeof ref, "artifact://%.*s", UAR_FMT(id));
		uar_jw_cstr(w, NULL, ref);
	}
	uar_jw_close(w);
}

/* Questions that wait, and what was made, are as they were: the log has them. */
static void put_preserved(struct uar_jw *w, const struct past *past, const struct live_run *r)
{
	uar_jw_obj(w, "preserved");
	uar_jw_arr(w, "action_ids");
	rt_session_actions(r, put_action, w);
	uar_jw_close(w);
	uar_jw_arr(w, "incident_ids");
	uar_jw_close(w);
	put_artifacts(w, uar_buf_str(&past->artifacts));
	uar_jw_arr(w, "evidence_refs");
	uar_jw_close(w);
	uar_jw_close(w);
}

static uar_err write_facts(struct compaction *c, const struct past *past, const struct live_run *r,
			   const struct past_message *cut)
{
	struct uar_jw w = uar_jw_begin(&c->facts);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "trigger", "token_limit");
	rt_past_turns(&w, "affected_turn_ids", past, cut);
	uar_jw_cstr(&w, "boundary_run_id", cut->run_id);
	uar_jw_int(&w, "tokens_before", c->tokens_before);
	put_preserved(&w, past, r);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static bool begin(struct compaction *c, const struct past *past, const struct live_run *r,
		  const struct past_message *cut)
{
	size_t most = (size_t)(rt_window_of(r) * BYTES_PER_TOKEN * CONDENSE_PART / 100);

	rt_compaction_fini(c);
	c->prompt = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	c->facts = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	c->tokens_condensed = (int64_t)rt_past_bytes(past, cut) / BYTES_PER_TOKEN;
	rt_past_write(past, cut, most, &c->prompt);
	if (past->artifacts.n)
		uar_buf_printf(&c->prompt, "Artifacts, by id:\n%.*s",
			       UAR_FMT(uar_buf_str(&past->artifacts)));
	return !c->prompt.err && !write_facts(c, past, r, cut);
}

bool rt_compaction_begin(struct compaction *c, struct past *past, const struct live_run *r,
			 int64_t tokens)
{
	const struct uar_run_compaction *done = &uar_run_rare(rt_state(r))->compaction;
	int64_t window = rt_window_of(r);
	size_t keep = (size_t)(window * BYTES_PER_TOKEN * KEEP_PART / 100);
	const struct past_message *cut;

	if (!past || !window || tokens * 100 <= window * FULL_PART)
		return false;
	cut = done->failed || done->done >= UAR_LIMIT_COMPACTIONS ? NULL
								  : rt_past_cut(past, r, keep);
	c->tokens_before = tokens;
	if (cut && begin(c, past, r, cut))
		return true;
	rt_compaction_fini(c);
	past->most = keep;
	return false;
}

void rt_compaction_collect(const struct compaction *c, struct prompt *p)
{
	rt_prompt_text(p, UAR_MODEL_SYSTEM, uar_str_c(task));
	rt_prompt_text(p, UAR_MODEL_USER, uar_buf_str(&c->prompt));
}

/* --- end -------------------------------------------------------------------------------------- */

uar_err rt_compaction_end(const struct compaction *c, uar_str summary, struct uar_buf *text,
			  struct uar_buf *facts)
{
	struct uar_jw w = uar_jw_begin(facts);
	int64_t after =
		c->tokens_before - c->tokens_condensed + (int64_t)summary.n / BYTES_PER_TOKEN;

	uar_buf_add_str(text, uar_str_c(heading));
	uar_buf_add_str(text, summary);
	uar_jw_obj(&w, NULL);
	uar_jw_members(&w, uar_buf_str(&c->facts));
	uar_jw_int(&w, "tokens_after", after > 0 ? after : 0);
	uar_jw_str(&w, "summary_preview", uar_str_utf8_prefix(summary, PREVIEW));
	uar_jw_close(&w);
	return text->err ? text->err : uar_jw_end(&w);
}
