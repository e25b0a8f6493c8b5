/* skill_choose.c - which skills apply to a message of an agent. */
#include "json/jw.h"
#include "model/models.h"
#include "work/skills.h"

enum { USUAL_ACTIVE = 3, CAPABILITIES = 6 };

static bool has_tool(void *ctx, uar_str tool)
{
	return rt_toolset_offers(ctx, tool);
}

/* Of a model that nothing is known of everything is expected. */
static size_t list_capabilities(const struct skills_match *ask, uar_str out[CAPABILITIES])
{
	const struct uar_models *models = ask->w->o.models;
	struct uar_model_row row = { .tools = true,
				     .images = true,
				     .files = true,
				     .reasoning = true,
				     .citations = true,
				     .structured = UAR_STRUCTURED_NATIVE };
	size_t n = 0;

	if (models && ask->model.n)
		row = uar_models_row(models, ask->provider, ask->model);
	const struct {
		const char *name;
		bool has;
	} all[CAPABILITIES] = {
		{ "tools", row.tools },		{ "images", row.images },
		{ "files", row.files },		{ "reasoning", row.reasoning },
		{ "citations", row.citations }, { "json", row.structured != 0 },
	};

	for (size_t i = 0; i < CAPABILITIES; i++)
		if (all[i].has)
			out[n++] = uar_str_c(all[i].name);
	return n;
}

static uar_err read_prefer(const struct uar_json *policy, struct uar_arena *arena,
			   struct uar_words *out)
{
	const struct uar_json *list = uar_json_get(policy, UAR_STR("prefer"));
	uar_str *at;

	if (!list || !list->count)
		return UAR_OK;
	at = uar_arena_alloc(arena, list->count * sizeof *at);
	if (!at)
		return UAR_ENOMEM;
	for (const struct uar_json *i = uar_json_at(list, 0); i; i = i->next)
		at[out->n++] = i->text;
	out->at = at;
	return UAR_OK;
}

uar_err rt_skills_match(const struct skills_match *ask, struct uar_arena *arena,
			struct uar_skill_matches *out)
{
	const struct uar_json *policy =
		ask->def ? uar_json_pointer(ask->def->json, UAR_STR("/policy/skills")) : NULL;
	int64_t most = uar_json_int(uar_json_get(policy, UAR_STR("max_active")), USUAL_ACTIVE);
	uar_str capabilities[CAPABILITIES];
	struct uar_skill_request r = {
		.message = ask->message,
		.tenant = ask->owner->tenant,
		.workspace = ask->owner->workspace,
		.capabilities = { capabilities, list_capabilities(ask, capabilities) },
		.max_active = most > 0 ? (size_t)most : 0,
		.now_us = uar_clock_wall(rt_sched(ask->w->rt)->clock),
		.has_tool = ask->tools ? has_tool : NULL,
		.ctx = (void *)ask->tools,
	};
	uar_err e = read_prefer(policy, arena, &r.prefer);

	_Static_assert((int)UAR_LIMIT_SKILL_ACTIVE == (int)UAR_LIMIT_RUN_SKILLS, "of a run");
	_Static_assert((int)UAR_LIMIT_SKILL_ID == (int)UAR_LIMIT_SKILL_NAME, "bytes of an id");
	return e ? e : uar_skill_book_match(ask->w->o.skills, ask->owner, &r, out);
}

void rt_skills_write_candidate(struct uar_jw *w, const struct uar_skill_candidate *c)
{
	const struct uar_skill *s = c->skill;

	uar_jw_str(w, "skill_id", s->skill_id);
	uar_jw_str(w, "version", s->version);
	uar_jw_double(w, "score", c->score);
	uar_jw_cstr(w, "revision", s->revision);
	uar_jw_str(w, "title", s->title);
	uar_jw_cstr(w, "selection_method", uar_skill_method(c));
	uar_jw_cstr(w, "origin", uar_skill_origin_text(s->origin));
	uar_jw_double(w, "similarity", c->similarity);
	uar_jw_double(w, "freshness", c->freshness);
	uar_jw_double(w, "success_rate", c->success);
	uar_jw_double(w, "preference", c->preference);
}
