/* skills.h - the skills of a run: chosen before its first model call, then kept by revision.
 *
 * An agent whose definition has policy.skills uses them. What is chosen is recorded in
 * context.resolved; a run that goes on after a restart takes the same texts, from their blobs when
 * the book has others by then. */
#ifndef UAR_WORK_SKILLS_H
#define UAR_WORK_SKILLS_H

#include "agent/prompt.h"
#include "skill/book.h"
#include "work/prompt.h"
#include "work/toolset.h"
#include "work/work_int.h"

struct skill_set {
	size_t count;
	struct {
		struct uar_skill_entry *entry; /* ours */
		double score;
	} at[UAR_LIMIT_RUN_SKILLS];
	struct uar_buf facts;	 /* JSON array for selected_skills */
	struct uar_buf narrowed; /* JSON array of "skill:ID"; empty: they take no tool away */
	struct uar_arena arena;	 /* of the texts that prompts are made of */
};
void rt_skills_free(struct skill_set *s); /* NULL is fine */
/* A tool that is given a folder of skills sees that of an active one alone. Others are fine. */
bool rt_skills_reach(const struct skill_set *s, uar_str tool_id, uar_str input);

struct skill_load;
typedef void skills_ready_fn(void *ctx, uar_err e);
struct skills_ask {
	struct live_run *run;
	uar_str message; /* what the choice is made by */
	skills_ready_fn *ready;
	void *ctx;
	struct skill_set **out; /* set before `ready`, or the return; NULL: none is active */
};
/* Chooses; `ready` fires later when their texts have to be made durable first, unless the load is
 * cancelled. UAR_ESKIP: there is nothing to wait for. */
UAR_MUST_CHECK uar_err rt_skills_choose(const struct skills_ask *ask, struct skill_load **out);
/* The same for what the run's state names. */
UAR_MUST_CHECK uar_err rt_skills_resume(const struct skills_ask *ask, struct skill_load **out);
void rt_skills_cancel(struct skill_load *l); /* NULL is fine */

/* entry_llm.c: those of the run's worker; NULL: none. */
const struct skill_set *rt_llm_skills(const struct live_run *r);
/* Is the tool of any use? Those for files of skills are while one that has some is active. NULL
 * set: with none. */
bool rt_skills_show(const struct skill_set *s, uar_str tool_id);
/* May it be used with them? */
bool rt_skills_allow(const struct skill_set *s, uar_str tool_id);
void rt_skills_write_key(const struct skill_set *s, struct uar_buf *out);
uar_str rt_skills_narrowed(const struct skill_set *s);
/* What a prepared call says of them. */
void rt_skills_tell(const struct skill_set *s, struct uar_prepared *out);
/* Sections of the prompt, with the preferred tools that there are; how many. */
size_t rt_skills_pieces(const struct skill_set *s, const struct toolset *tools,
			struct uar_prompt_piece out[UAR_LIMIT_RUN_SKILLS]);
/* What their rules ask of an answer, for a model that has to repair one. */
void rt_skills_remind(const struct skill_set *s, struct prompt *p);
bool rt_skills_check_answers(const struct skill_set *s);
UAR_MUST_CHECK uar_err rt_skills_check_answer(const struct skill_set *s, uar_str answer,
					      struct uar_error *error);

/* skill_choose.c: matches a message for an agent as a run of it would; `prefer` and what else is
 * needed live in the arena. */
struct skills_match {
	struct uar_workers *w;
	const struct uar_owner *owner;
	const struct uar_definition *def; /* NULL: of no agent */
	const struct toolset *tools;	  /* NULL: every tool is there */
	uar_str provider, model;	  /* empty: not known */
	uar_str message;
};
UAR_MUST_CHECK uar_err rt_skills_match(const struct skills_match *ask, struct uar_arena *arena,
				       struct uar_skill_matches *out);
/* Members of one candidate of a match, in an object that is open. */
void rt_skills_write_candidate(struct uar_jw *w, const struct uar_skill_candidate *c);

#endif
