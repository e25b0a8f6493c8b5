/* route.c - chooses the models of a run. */
#include "core/route.h"

#include "core/emit.h"

const char *const uar_route_mode_names[UAR_ROUTE_MODES] = {
	[UAR_ROUTE_DIRECT] = "direct",
	[UAR_ROUTE_FALLBACK] = "fallback",
	[UAR_ROUTE_SPLIT] = "split",
	[UAR_ROUTE_ENSEMBLE] = "ensemble",
};

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static uar_str text_of(const struct uar_json *j, const char *key, const char *fallback)
{
	return uar_json_str(member(j, key), uar_str_c(fallback));
}

static bool has_text(const struct uar_json *list, uar_str text)
{
	const struct uar_json *it = uar_json_first(list);

	while (it && !uar_str_eq(uar_json_str(it, UAR_STR("")), text))
		it = it->next;
	return it != NULL;
}

static uar_str source_of(const struct uar_json *j)
{
	return j && j->kind == UAR_JSON_ARRAY ? j->text : UAR_STR("[]");
}

/* --- exclusion -------------------------------------------------------------------------- */

/* Where a word stands in an ascending list; -1: it is not in it and says nothing. */
static int rank_of(uar_str word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (uar_str_is(word, words[i]))
			return (int)i;
	return -1;
}

/* What is required and not there; NULL: nothing. */
static const char *missing_capability(const struct uar_json *needed, const struct uar_json *has)
{
	static const struct {
		const char *capability, *reason;
	} reasons[] = {
		{ "tools", "no_tools" },	 { "images", "no_images" },
		{ "files", "no_files" },	 { "structured", "no_structured_output" },
		{ "reasoning", "no_reasoning" }, { "citations", "no_citations" },
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		uar_str name = uar_str_c(reasons[i].capability);

		if (has_text(needed, name) && !has_text(has, name))
			return reasons[i].reason;
	}
	return NULL;
}

static const char *gap_of(uar_str gap)
{
	static const char *const gaps[] = { "credentials", "quota", "network" };
	int at = rank_of(gap, gaps, ARRAY_LEN(gaps));

	return at < 0 ? NULL : gaps[at];
}

/* It writes no answer, so it needs neither tools nor any other capability. */
static bool is_helper(const struct uar_route_candidate *c)
{
	return uar_str_is(c->role, "plan") || uar_str_is(c->role, "rank");
}

static const char *why_excluded(const struct uar_route *r, const struct uar_json *root,
				const struct uar_json *j, const struct uar_route_candidate *c)
{
	const struct uar_json *classes = member(j, "classes");
	double cost = (double)c->price.output / 1e9;
	const char *lacks = missing_capability(member(root, "requires"), member(j, "capabilities"));

	if (c->gap)
		return c->gap;
	if (c->context_tokens && r->context_tokens > c->context_tokens)
		return "context_too_long";
	if (is_helper(c))
		return NULL;
	if (uar_json_first(classes) && !has_text(classes, r->kind))
		return "task_class";
	if (lacks)
		return lacks;
	if (r->max_cost > 0 && cost > r->max_cost)
		return "too_expensive";
	if (r->max_latency_ms && c->latency_ms > r->max_latency_ms)
		return "too_slow";
	return NULL;
}

/* --- order -------------------------------------------------------------------------------- */

/* Above 1 for those that are made for the kind of task; then the listed order. */
static double score_of(const struct uar_route *r, const struct uar_json *j, size_t index)
{
	bool made_for = has_text(member(j, "classes"), r->kind);

	return (made_for ? 2.0 : 1.0) - (double)index / (UAR_ROUTE_CANDIDATES + 1);
}

static void insert_allowed(struct uar_route *r, size_t index)
{
	size_t at = r->allowed++;

	while (at && r->at[r->order[at - 1]].score < r->at[index].score) {
		r->order[at] = r->order[at - 1];
		at--;
	}
	r->order[at] = index;
}

/* --- reading ------------------------------------------------------------------------------- */

int64_t uar_core_nanos(double usd)
{
	const double most = 9e9; /* dollars; more does not fit */

	if (!(usd > 0))
		return 0;
	return (int64_t)((usd > most ? most : usd) * 1e9 + 0.5);
}

struct uar_price uar_price_read(const struct uar_json *j)
{
	return (struct uar_price){
		.input = uar_core_nanos(uar_json_double(member(j, "input"), 0)),
		.cached = uar_core_nanos(uar_json_double(member(j, "cached"), 0)),
		.output = uar_core_nanos(uar_json_double(member(j, "output"), 0)),
	};
}

struct uar_budget uar_budget_read(const struct uar_json *j)
{
	return (struct uar_budget){
		.nanos = uar_core_nanos(uar_json_double(member(j, "cost_usd"), 0)),
		.tokens = uar_json_int(member(j, "tokens"), 0),
		.model_calls = uar_json_int(member(j, "model_calls"), 0),
		.tool_calls = uar_json_int(member(j, "tool_calls"), 0),
		.time_us = uar_json_int(member(j, "seconds"), 0) * 1000000,
	};
}

static void read_candidate(struct uar_route *r, const struct uar_json *root,
			   const struct uar_json *j)
{
	struct uar_route_candidate *c = &r->at[r->count];

	*c = (struct uar_route_candidate){
		.provider = text_of(j, "provider", ""),
		.model = text_of(j, "model", ""),
		.role = text_of(j, "role", "execute"),
		.capabilities = source_of(member(j, "capabilities")),
		.latency_ms = uar_json_int(member(j, "latency_ms"), 0),
		.context_tokens = uar_json_int(member(j, "context_tokens"), 0),
		.price = uar_price_read(member(j, "price")),
		.gap = gap_of(text_of(j, "gap", "")),
	};
	c->excluded = why_excluded(r, root, j, c);
	c->score = score_of(r, j, r->count);
	if (!c->excluded && !is_helper(c))
		insert_allowed(r, r->count);
	else if (!c->excluded && !r->helper)
		r->helper = c;
	r->count++;
}

uar_err uar_route_choose(uar_str document, struct uar_arena *a, struct uar_route *out)
{
	const struct uar_json *root = NULL, *list, *it;
	uar_err e = uar_json_parse(document, NULL, a, &root, NULL);
	int mode;

	if (e)
		return e == UAR_ENOMEM ? e : UAR_EINVALID;
	list = member(root, "candidates");
	mode = rank_of(text_of(root, "mode", "direct"), uar_route_mode_names, UAR_ROUTE_MODES);
	if (mode < 0 || !list || list->kind != UAR_JSON_ARRAY || list->count > UAR_ROUTE_CANDIDATES)
		return UAR_EINVALID;
	*out = (struct uar_route){
		.kind = text_of(root, "kind", "chat"),
		.source = text_of(root, "source", "agent"),
		.settings_source = text_of(root, "settings_source", "server"),
		.max_latency_ms = uar_json_int(member(root, "max_latency_ms"), 0),
		.max_cost = uar_json_double(member(root, "max_cost"), 0),
		.requires_list = source_of(member(root, "requires")),
		.mode = (enum uar_route_mode)mode,
		.reasoning = has_text(member(root, "requires"), UAR_STR("reasoning")),
		.context_tokens = uar_json_int(member(root, "context_tokens"), 0),
		.budget = uar_budget_read(member(root, "budget")),
	};
	for (it = uar_json_first(list); it; it = it->next)
		read_candidate(out, root, it);
	if (out->mode >= UAR_ROUTE_SPLIT && !out->helper)
		out->allowed = 0; /* without it the pattern is not possible */
	return UAR_OK;
}

/* --- money ----------------------------------------------------------------------------------- */

void uar_price_write(struct uar_jw *w, const char *key, const struct uar_price *p)
{
	uar_jw_obj(w, key);
	uar_jw_double(w, "input", (double)p->input / 1e9);
	if (p->cached)
		uar_jw_double(w, "cached", (double)p->cached / 1e9);
	uar_jw_double(w, "output", (double)p->output / 1e9);
	uar_jw_close(w);
}

void uar_budget_write(struct uar_jw *w, const char *key, const struct uar_budget *b)
{
	uar_jw_obj(w, key);
	if (b->nanos)
		uar_jw_double(w, "cost_usd", (double)b->nanos / 1e9);
	if (b->tokens)
		uar_jw_int(w, "tokens", b->tokens);
	if (b->model_calls)
		uar_jw_int(w, "model_calls", b->model_calls);
	if (b->tool_calls)
		uar_jw_int(w, "tool_calls", b->tool_calls);
	if (b->time_us)
		uar_jw_int(w, "seconds", b->time_us / 1000000);
	uar_jw_close(w);
}

const char *uar_price_class(const struct uar_price *p)
{
	const int64_t dollar = 1000000000;

	if (!uar_price_known(p))
		return "unknown";
	return p->output < 2 * dollar ? "low" : p->output < 20 * dollar ? "medium" : "high";
}

const char *uar_latency_class(int64_t latency_ms)
{
	enum { FAST_MS = 1000, NORMAL_MS = 5000 };

	if (!latency_ms)
		return "unknown";
	return latency_ms < FAST_MS ? "fast" : latency_ms < NORMAL_MS ? "normal" : "slow";
}

/* Tokens of a call fit into 32 bits and prices into 53: the parts cannot overflow a double's
 * exact range by more than a fraction of a billionth. */
int64_t uar_price_of(const struct uar_price *p, int64_t input, int64_t cached, int64_t output)
{
	int64_t cheap = p->cached && cached > 0 ? cached < input ? cached : input : 0;
	double sum = (double)(input - cheap) * (double)p->input +
		     (double)cheap * (double)p->cached + (double)output * (double)p->output;

	return (int64_t)(sum / 1e6 + 0.5);
}
