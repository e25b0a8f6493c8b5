/* match.h - which skills apply to a request: candidates, gates, rank, selection.
 *
 * Pure. Equal inputs give equal results in whatever order the skills come. */
#ifndef UAR_SKILL_MATCH_H
#define UAR_SKILL_MATCH_H

#include "skill/skill.h"

/* How near is the request to the skill, 0 to 1? Replaces the built-in embedder. */
typedef double uar_skill_similarity_fn(void *ctx, uar_str message, const struct uar_skill *s);

struct uar_skill_request {
	uar_str message;
	uar_str tenant, workspace;
	struct uar_words capabilities; /* of the model: "tools", "images", ... */
	struct uar_words prefer;       /* ids, also as "skill:ID"; the first is preferred most */
	size_t max_active;	       /* at most UAR_LIMIT_SKILL_ACTIVE */
	int64_t now_us;
	bool (*has_tool)(void *ctx, uar_str tool_id); /* NULL: every tool is there */
	uar_skill_similarity_fn *similarity;	      /* NULL: the built-in embedder */
	void *ctx;
};

/* Why a candidate was left out. */
enum uar_skill_gate {
	UAR_SKILL_PASSED,
	UAR_SKILL_GATE_DISABLED,
	UAR_SKILL_GATE_SCOPE,
	UAR_SKILL_GATE_CAPABILITY,
	UAR_SKILL_GATE_TOOL,
	UAR_SKILL_GATE_RANK, /* it passed, and others ranked before it */
};
const char *uar_skill_gate_text(enum uar_skill_gate g);

/* A skill that may be chosen, and what is known of it. */
struct uar_skill_offer {
	const struct uar_skill *skill;
	int64_t updated_us; /* 0: not known */
	int64_t successes, failures;
};

struct uar_skill_candidate {
	const struct uar_skill *skill;
	size_t offer; /* its number among the offers */
	enum uar_skill_gate gate;
	bool keyword, pattern; /* what made it a candidate, besides similarity */
	/* 0 to 1 each */
	double similarity, freshness, success, preference;
	double score;
};

struct uar_skill_matches {
	struct uar_skill_candidate at[UAR_LIMIT_SKILL_CANDIDATES]; /* the best first */
	size_t n;
	size_t active; /* the first so many are selected */
};

void uar_skill_match(const struct uar_skill_request *r, const struct uar_skill_offer *offers,
		     size_t count, struct uar_skill_matches *out);
/* Why it became a candidate: "keyword", "pattern" or "similarity". */
const char *uar_skill_method(const struct uar_skill_candidate *c);

/* May a tool be used while these skills are active? Each may only take tools away. */
bool uar_skill_allows_tool(const struct uar_skill_matches *m, uar_str tool_id);
/* The same of one of them. */
bool uar_skill_allows(const struct uar_skill *s, uar_str tool_id);

#endif
