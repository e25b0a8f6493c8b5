/* judge.c - what the approval rules of a definition say about a question. */
#include "agent/definition.h"
#include "base/address.h"

/* '*' stands for any number of characters. Only the last one is tried again. */
bool uar_pattern_fits(uar_str pattern, uar_str s)
{
	size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;

	while (i < s.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			mark = i;
		} else if (p < pattern.n && pattern.p[p] == s.p[i]) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

enum uar_verdict uar_definition_judge(const struct uar_definition_policy *p, uar_str kind,
				      uar_str tool, int *out_rule)
{
	static const int strictness[UAR_VERDICT_COUNT] = {
		[UAR_VERDICT_ALLOW] = 1, [UAR_VERDICT_ASK] = 2, [UAR_VERDICT_DENY] = 3
	};

	*out_rule = -1;
	for (size_t i = 0; i < p->rule_count; i++) {
		const struct uar_definition_rule *r = &p->rules[i];

		if ((r->kind.n && !uar_str_eq(r->kind, kind)) ||
		    (r->tool.n && !uar_pattern_fits(r->tool, tool)))
			continue;
		if (*out_rule < 0 ||
		    strictness[r->verdict] > strictness[p->rules[*out_rule].verdict])
			*out_rule = (int)i;
	}
	return *out_rule < 0 ? p->fallback : p->rules[*out_rule].verdict;
}

/* --- what clients may be asked to do ------------------------------------------------- */

bool uar_definition_asks_forms(const struct uar_definition *d)
{
	return uar_json_bool(uar_json_pointer(d->json, UAR_STR("/ui/forms/enabled")), true);
}

/* Clients read such a target as another one than the patterns saw: they drop blanks and control
 * characters, take '\\' for '/', resolve ".." and read "//host" as another host. */
static bool is_read_otherwise(uar_str target)
{
	for (size_t i = 0; i < target.n; i++)
		if ((unsigned char)target.p[i] <= ' ' || target.p[i] == 0x7f || target.p[i] == '\\')
			return true;
	return uar_str_starts(target, UAR_STR("//")) || uar_address_climbs(target);
}

bool uar_definition_navigates(const struct uar_definition *d, uar_str target)
{
	const struct uar_json *j = uar_json_pointer(d->json, UAR_STR("/ui/navigation"));
	const struct uar_json *allow = uar_json_get(j, UAR_STR("allow"));
	bool found = !allow;

	if (is_read_otherwise(target))
		return false;
	for (const struct uar_json *a = uar_json_at(allow, 0); a; a = a->next)
		found |= uar_pattern_fits(a->text, target);
	return found && uar_json_bool(uar_json_get(j, UAR_STR("enabled")), allow != NULL);
}

bool uar_definition_makes(const struct uar_definition *d, uar_str artifact_type)
{
	const struct uar_json *j = uar_json_pointer(d->json, UAR_STR("/ui/artifacts"));
	const struct uar_json *types = uar_json_get(j, UAR_STR("preferred_types"));
	bool found = !types;

	for (const struct uar_json *t = uar_json_at(types, 0); t; t = t->next)
		found |= uar_str_eq(t->text, artifact_type);
	return found && uar_json_bool(uar_json_get(j, UAR_STR("enabled")), true);
}
