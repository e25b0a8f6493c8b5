/* policy.h - which models may be used, and what decides between them: `policy.provider` of an
 * agent's definition and the setting `routing` of a server have this form.
 *
 *	{"default": {"provider": "openai", "model": "gpt-5"},
 *	 "fallbacks": [{"provider": "claude", "model": "claude-sonnet-4-5"}],
 *	 "pattern": "fallback", "plan": {}, "execute": {}, "candidates": [], "ranker": {},
 *	 "task_class": "code", "reasoning": "high", "max_tokens": 2000, "min_context_tokens": 1,
 *	 "max_latency_ms": 800, "max_cost_usd_per_mtok": 10,
 *	 "budget": {"cost_usd": 0.5, "tokens": 100000, "model_calls": 9, "tool_calls": 9,
 *		    "seconds": 60}}
 *
 * The reader checks everything but whether the providers exist. */
#ifndef UAR_MODEL_POLICY_H
#define UAR_MODEL_POLICY_H

#include "json/json.h"
#include "model/limits.h"
#include "model/model.h"

enum uar_model_pattern {
	UAR_PATTERN_FALLBACK, /* the first; when it fails, the next */
	UAR_PATTERN_DIRECT,   /* the first alone */
	UAR_PATTERN_SPLIT,    /* one plans, another executes */
	UAR_PATTERN_ENSEMBLE, /* several answer, one chooses */
	UAR_PATTERN_COUNT
};
extern const char *const uar_model_pattern_names[UAR_PATTERN_COUNT];

struct uar_model_choice {
	uar_str provider, model; /* both empty: the server's default model */
	const char *role;	 /* "execute", "plan", "candidate", "rank" */
};

struct uar_model_policy { /* strings are those of the JSON it was read from */
	enum uar_model_pattern pattern;
	struct uar_model_choice at[UAR_LIMIT_POLICY_MODELS];
	size_t count;
	uar_str task_class;
	enum uar_model_effort effort;
	int64_t max_tokens, min_context_tokens, max_latency_ms; /* 0: none */
	double max_cost;					/* US dollars a million tokens; 0 */
	const struct uar_json *budget;				/* NULL: none */
};

/* error->where is a pointer to the member, the text says what to write. */
UAR_MUST_CHECK uar_err uar_model_policy_read(const struct uar_json *j, struct uar_model_policy *out,
					     struct uar_error *error);

#endif
