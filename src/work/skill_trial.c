/* skill_trial.c - the choice of a run, told instead of made. */
#include "work/skill_trial.h"

#include "work/definitions.h"
#include "work/skills.h"

struct uar_skill_book *uar_workers_skills(const struct uar_workers *w)
{
	return w->o.skills;
}

static void put_candidate(struct uar_jw *w, const struct uar_skill_candidate *c, bool active)
{
	uar_jw_obj(w, NULL);
	rt_skills_write_candidate(w, c);
	uar_jw_cstr(w, "gate", uar_skill_gate_text(c->gate));
	uar_jw_bool(w, "active", active);
	uar_jw_close(w);
}

static void put_injected(struct uar_jw *w, const struct uar_skill_matches *m)
{
	uar_jw_arr(w, "injected");
	for (size_t i = 0; i < m->active; i++) {
		const struct uar_skill *s = m->at[i].skill;

		uar_jw_obj(w, NULL);
		uar_jw_str(w, "skill_id", s->skill_id);
		uar_jw_str(w, "prompt_overlay", s->overlay);
		uar_jw_arr(w, "preferred_tools");
		for (size_t k = 0; k < s->preferred_tools.n; k++)
			uar_jw_str(w, NULL, s->preferred_tools.at[k]);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* Those that the agent has; of each whether the skills leave it. */
static void put_tools(struct uar_jw *w, const struct toolset *set,
		      const struct uar_skill_matches *m, bool left)
{
	const struct uar_tool *t;

	uar_jw_arr(w, left ? "tools" : "tools_removed");
	for (size_t i = 0; set->registry && (t = set->registry->ops->at(set->registry, i)); i++)
		if (rt_toolset_has(set, t) && rt_tool_is_ready(t) &&
		    uar_skill_allows_tool(m, t->tool_id) == left)
			uar_jw_str(w, NULL, t->tool_id);
	uar_jw_close(w);
}

static void put_trial(struct uar_jw *w, const struct toolset *set,
		      const struct uar_skill_matches *m)
{
	uar_jw_arr(w, "candidates");
	for (size_t i = 0; i < m->n; i++)
		put_candidate(w, &m->at[i], i < m->active);
	uar_jw_close(w);
	put_injected(w, m);
	put_tools(w, set, m, true);
	put_tools(w, set, m, false);
}

uar_err uar_workers_try_skills(struct uar_workers *w, const struct uar_skill_trial *t,
			       struct uar_jw *out, struct uar_error *error)
{
	static const struct uar_tool_policy everything = { .allow = "*" };
	struct definition_tools tools = { .set = { .registry = w->o.tools,
						   .policy = &everything } };
	struct uar_skill_matches *m = uar_zalloc(sizeof *m);
	const struct uar_definition *d = t->agent ? &t->agent->def : NULL;
	struct skills_match ask = {
		.w = w, .owner = t->owner, .def = d, .tools = &tools.set, .message = t->message
	};
	struct uar_arena arena;
	uar_err e = m && w->o.skills ? UAR_OK : UAR_ENOMEM;

	uar_arena_init(&arena, 0);
	if (!e && d) {
		ask.provider = d->routing.chosen.provider;
		ask.model = d->routing.chosen.model;
		e = rt_definition_tools(w, d, &tools, error);
	}
	tools.set.owner = t->owner;
	if (!e)
		e = rt_skills_match(&ask, &arena, m);
	if (!e)
		put_trial(out, &tools.set, m);
	uar_toolbox_unref(tools.set.box);
	uar_arena_fini(&arena);
	uar_free(m);
	return e;
}
