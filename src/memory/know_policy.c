/* know_policy.c - what collections say about how they are searched. */
#include "json/json.h"
#include "memory/know_int.h"

static void add_words(struct uar_know_search *s, uar_str words)
{
	if (words.n)
		s->q.deny_labels = uar_arena_printf(&s->job.arena, "%.*s %.*s",
						    UAR_FMT(s->q.deny_labels), UAR_FMT(words));
}

static void apply(struct uar_know_search *s, uar_str policy)
{
	const struct uar_json *j = NULL;
	uar_str mode;

	if (!policy.n || uar_json_parse(policy, NULL, &s->job.arena, &j, NULL))
		return;
	mode = uar_json_str(uar_json_get(j, UAR_STR("mode")), UAR_STR("hybrid"));
	for (int i = 0; i < UAR_KB_MODE_COUNT; i++)
		if (!s->mode_given && uar_str_is(mode, uar_kb_mode_names[i]))
			s->q.mode = (enum uar_kb_mode)i;
	add_words(s, uar_json_text(j, "deny_labels"));
	if (!s->q.k)
		s->q.k = (size_t)uar_json_int(uar_json_get(j, UAR_STR("top_k")), 0);
	s->cite |= uar_json_bool(uar_json_get(j, UAR_STR("citation_required")), false);
	s->q.expand |= uar_json_bool(uar_json_get(j, UAR_STR("expand")), false);
}

uar_err know_apply_policy(struct uar_kb *kb, struct uar_know_search *s)
{
	enum { USUAL = 5 };
	struct uar_kb_collections all = { NULL, 0 };
	uar_err e = uar_kb_collections(kb, &s->q.owner, &s->job.arena, &all, &s->job.error);

	for (size_t i = 0; i < all.n && !e; i++)
		for (size_t k = 0; k < s->q.collection_count; k++)
			if (uar_str_eq(all.at[i].name, s->q.collections[k]))
				apply(s, all.at[i].policy);
	if (!s->q.k)
		s->q.k = USUAL;
	return e ? e : s->q.deny_labels.n && !s->q.deny_labels.p ? UAR_ENOMEM : UAR_OK;
}
