/* route.h - which models a run may use, and in which order: one pure function.
 *
 * Its input is a document, so that it can travel in a command and be checked again:
 *
 *	{"kind":"code","source":"agent","settings_source":"definition","mode":"fallback",
 *	 "max_latency_ms":800,"max_cost":10,"requires":["tools","reasoning"],"context_tokens":1200,
 *	 "budget":{"cost_usd":0.5,"tokens":0,"model_calls":0,"tool_calls":0,"seconds":0},
 *	 "candidates":[{"provider":"a","model":"m","role":"execute","classes":["code"],
 *	   "capabilities":["tools"],"context_tokens":0,"latency_ms":300,
 *	   "price":{"input":1,"cached":0.1,"output":2},"gap":""}]}
 *
 * What a candidate lacks of what is required excludes it. Those that are made for the kind of task
 * come before the others, else the listed order counts. */
#ifndef UAR_CORE_ROUTE_H
#define UAR_CORE_ROUTE_H

#include "core/core.h"

/* settings_source of a route whose model the caller of the run chose. */
#define UAR_ROUTE_BY_CALLER "caller"

enum uar_route_mode {
	UAR_ROUTE_DIRECT,
	UAR_ROUTE_FALLBACK,
	UAR_ROUTE_SPLIT,    /* one model plans, another executes */
	UAR_ROUTE_ENSEMBLE, /* several answer, another chooses */
	UAR_ROUTE_MODES
};
extern const char *const uar_route_mode_names[UAR_ROUTE_MODES];

enum { UAR_ROUTE_CANDIDATES = UAR_LIMIT_ROUTE_CANDIDATES };

struct uar_route_candidate {
	uar_str provider, model, role;
	uar_str capabilities;		    /* JSON array */
	int64_t context_tokens, latency_ms; /* 0: not known */
	struct uar_price price;
	const char *excluded; /* why; NULL: it may be used */
	const char *gap;      /* "credentials", "quota", "network" if that is why, else NULL */
	double score;
};

struct uar_route {
	uar_str kind, source, settings_source;
	int64_t max_latency_ms; /* 0: any */
	double max_cost;	/* of a million tokens of output; 0: any */
	uar_str requires_list;	/* JSON array */
	enum uar_route_mode mode;
	bool reasoning;
	int64_t context_tokens;
	struct uar_budget budget;
	struct uar_route_candidate at[UAR_ROUTE_CANDIDATES];
	size_t count; /* of all */
	size_t order[UAR_ROUTE_CANDIDATES];
	size_t allowed; /* of `order`: those that may be used, the best first */
	const struct uar_route_candidate *helper; /* that plans or ranks; NULL: none */
};

/* Reads the document and decides. Strings are the document's or in the arena. UAR_EINVALID: it is
 * none. */
UAR_MUST_CHECK uar_err uar_route_choose(uar_str document, struct uar_arena *a,
					struct uar_route *out);
/* A budget as a document has it, and an amount of money in it. */
struct uar_budget uar_budget_read(const struct uar_json *j);
void uar_budget_write(struct uar_jw *w, const char *key, const struct uar_budget *b);
struct uar_price uar_price_read(const struct uar_json *j);
void uar_price_write(struct uar_jw *w, const char *key, const struct uar_price *p);
/* "low", "medium", "high", "unknown" */
const char *uar_price_class(const struct uar_price *p);
/* "fast", "normal", "slow", "unknown" */
const char *uar_latency_class(int64_t latency_ms);
/* What tokens cost, `cached` being a part of `input`. */
int64_t uar_price_of(const struct uar_price *p, int64_t input, int64_t cached, int64_t output);

#endif
