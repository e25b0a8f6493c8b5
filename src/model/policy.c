/* policy.c - reads policies of routing. */
#include "model/policy.h"

#include <stdio.h>

const char *const uar_model_pattern_names[UAR_PATTERN_COUNT] = {
	[UAR_PATTERN_FALLBACK] = "fallback",
	[UAR_PATTERN_DIRECT] = "direct",
	[UAR_PATTERN_SPLIT] = "split",
	[UAR_PATTERN_ENSEMBLE] = "ensemble",
};

struct reader {
	struct uar_model_policy *out;
	struct uar_error *error;
};

static uar_err refuse(struct uar_error *error, const char *where, const char *why)
{
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID, "%s: %s", where[0] ? where : "/", why);
}

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

/* The members of an object are those of a list; `names` ends with NULL. */
static uar_err check_members(struct uar_error *error, const struct uar_json *j, const char *where,
			     const char *const *names)
{
	char place[UAR_LIMIT_POLICY_PLACE];

	if (j->kind != UAR_JSON_OBJECT)
		return refuse(error, where, "write an object");
	for (const struct uar_json *m = uar_json_first(j); m; m = m->next) {
		size_t i = 0;

		while (names[i] && !uar_str_is(m->key, names[i]))
			i++;
		if (names[i])
			continue;
		snprintf(place, sizeof place, "%s/%.*s", where,
			 UAR_FMT(uar_str_utf8_prefix(m->key, 40)));
		return refuse(error, place, "there is no such member");
	}
	return UAR_OK;
}

/* --- models ---------------------------------------------------------------------------------- */

static uar_err add_choice(struct reader *r, const struct uar_json *j, const char *where,
			  const char *role)
{
	static const char *const names[] = { "provider", "model", NULL };
	struct uar_model_choice c = { uar_json_text(j, "provider"), uar_json_text(j, "model"),
				      role };
	uar_err e = check_members(r->error, j, where, names);

	if (e)
		return e;
	if (!c.provider.n || c.provider.n > UAR_LIMIT_PROVIDER_NAME)
		return refuse(r->error, where, "write a member provider, the name of one");
	if (!c.model.n || c.model.n > UAR_LIMIT_MODEL_NAME)
		return refuse(r->error, where, "write a member model");
	if (r->out->count == UAR_LIMIT_POLICY_MODELS)
		return refuse(r->error, where, "these are too many models");
	r->out->at[r->out->count++] = c;
	return UAR_OK;
}

static uar_err add_list(struct reader *r, const struct uar_json *root, const char *key,
			const char *role)
{
	const struct uar_json *list = member(root, key), *j = uar_json_first(list);
	char place[UAR_LIMIT_POLICY_PLACE];
	uar_err e = UAR_OK;

	snprintf(place, sizeof place, "/%s", key);
	if (list && list->kind != UAR_JSON_ARRAY)
		return refuse(r->error, place, "write a list of models");
	for (size_t i = 0; j && !e; i++, j = j->next) {
		snprintf(place, sizeof place, "/%s/%zu", key, i);
		e = add_choice(r, j, place, role);
	}
	return e;
}

static uar_err add_one(struct reader *r, const struct uar_json *root, const char *key,
		       const char *role)
{
	char place[UAR_LIMIT_POLICY_PLACE];

	snprintf(place, sizeof place, "/%s", key);
	if (!member(root, key))
		return refuse(r->error, place, "the pattern needs this model");
	return add_choice(r, member(root, key), place, role);
}

/* The default, and what takes its place. */
static uar_err add_default(struct reader *r, const struct uar_json *root, const char *role)
{
	const struct uar_json *first = member(root, "default");
	uar_err e = UAR_OK;

	if (first)
		e = add_choice(r, first, "/default", role);
	else
		r->out->at[r->out->count++] = (struct uar_model_choice){ .role = role };
	return e ? e : add_list(r, root, "fallbacks", role);
}

static uar_err add_split(struct reader *r, const struct uar_json *root)
{
	uar_err e = add_one(r, root, "plan", "plan");

	if (!e && member(root, "execute"))
		e = add_one(r, root, "execute", "execute");
	if (!e && member(root, "execute"))
		return add_list(r, root, "fallbacks", "execute");
	return e ? e : add_default(r, root, "execute");
}

static uar_err add_ensemble(struct reader *r, const struct uar_json *root)
{
	uar_err e = member(root, "candidates") ? add_list(r, root, "candidates", "candidate")
					       : add_default(r, root, "candidate");

	return e ? e : add_one(r, root, "ranker", "rank");
}

static uar_err add_models(struct reader *r, const struct uar_json *root)
{
	switch (r->out->pattern) {
	case UAR_PATTERN_SPLIT: return add_split(r, root);
	case UAR_PATTERN_ENSEMBLE: return add_ensemble(r, root);
	case UAR_PATTERN_FALLBACK:
	case UAR_PATTERN_DIRECT:
	case UAR_PATTERN_COUNT: break;
	}
	return add_default(r, root, "execute");
}

/* --- rules ---------------------------------------------------------------------------------- */

/* *out: how many words there are, then the place of the value among them; left out: 0. */
static uar_err read_word(struct reader *r, const struct uar_json *root, const char *key,
			 const char *const *words, int *out)
{
	const struct uar_json *value = member(root, key);
	char place[UAR_LIMIT_POLICY_PLACE], why[UAR_LIMIT_POLICY_PLACE * 2] = "write one of";
	size_t n = strlen(why);

	for (int i = 0; i < *out; i++) {
		if (!value || uar_str_is(uar_json_str(value, UAR_STR("")), words[i])) {
			*out = i;
			return UAR_OK;
		}
		n += (size_t)snprintf(why + n, sizeof why - n, "%s %s", i ? "," : "", words[i]);
	}
	snprintf(place, sizeof place, "/%s", key);
	return refuse(r->error, place, why);
}

static uar_err check_numbers(struct reader *r, const struct uar_json *j, const char *where,
			     const char *const *whole, int64_t least)
{
	char place[UAR_LIMIT_POLICY_PLACE];

	for (size_t i = 0; whole[i]; i++) {
		const struct uar_json *value = member(j, whole[i]);

		if (!value || (value->kind == UAR_JSON_INT && uar_json_int(value, -1) >= least))
			continue;
		snprintf(place, sizeof place, "%s/%s", where, whole[i]);
		return refuse(
			r->error, place,
			least ? "write a whole number above 0; without the member there is no "
				"limit"
			      : "write a whole number that is not negative");
	}
	return UAR_OK;
}

static uar_err read_budget(struct reader *r, const struct uar_json *j)
{
	static const char *const names[] = { "cost_usd",   "tokens",  "model_calls",
					     "tool_calls", "seconds", NULL };
	uar_err e = j ? check_members(r->error, j, "/budget", names) : UAR_OK;

	if (!e && j)
		e = check_numbers(r, j, "/budget", names + 1, 1);
	if (!e && member(j, "cost_usd") && uar_json_double(member(j, "cost_usd"), 0) <= 0)
		e = refuse(r->error, "/budget/cost_usd", "write an amount above 0");
	r->out->budget = j;
	return e;
}

static uar_err read_rules(struct reader *r, const struct uar_json *root)
{
	static const char *const whole[] = { "max_tokens", "min_context_tokens", "max_latency_ms",
					     NULL };
	struct uar_model_policy *p = r->out;
	uar_err e = check_numbers(r, root, "", whole, 0);

	p->task_class = uar_json_text(root, "task_class");
	p->max_tokens = uar_json_int(member(root, "max_tokens"), 0);
	p->min_context_tokens = uar_json_int(member(root, "min_context_tokens"), 0);
	p->max_latency_ms = uar_json_int(member(root, "max_latency_ms"), 0);
	p->max_cost = uar_json_double(member(root, "max_cost_usd_per_mtok"), 0);
	if (!e && p->max_cost < 0)
		e = refuse(r->error, "/max_cost_usd_per_mtok", "write an amount above 0");
	return e ? e : read_budget(r, member(root, "budget"));
}

uar_err uar_model_policy_read(const struct uar_json *j, struct uar_model_policy *out,
			      struct uar_error *error)
{
	static const char *const names[] = { "default",
					     "fallbacks",
					     "pattern",
					     "plan",
					     "execute",
					     "candidates",
					     "ranker",
					     "task_class",
					     "reasoning",
					     "max_tokens",
					     "min_context_tokens",
					     "max_latency_ms",
					     "max_cost_usd_per_mtok",
					     "budget",
					     NULL };
	struct reader r = { out, error };
	int pattern = UAR_PATTERN_COUNT, effort = UAR_EFFORT_COUNT;
	uar_err e = check_members(error, j, "", names);

	*out = (struct uar_model_policy){ .count = 0 };
	if (!e)
		e = read_word(&r, j, "pattern", uar_model_pattern_names, &pattern);
	if (!e)
		e = read_word(&r, j, "reasoning", uar_model_effort_names, &effort);
	if (e)
		return e;
	out->pattern = (enum uar_model_pattern)pattern;
	out->effort = (enum uar_model_effort)effort;
	e = add_models(&r, j);
	return e ? e : read_rules(&r, j);
}
