/* skill_fuzz.c - SKILL.md and JSON of skills, and matching with whatever they say. */
#include "skill/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text = uar_str_n((const char *)data, size);
	static struct uar_skill_matches m;
	struct uar_error error = { 0 };
	struct uar_skill s;
	uar_err e = size && data[0] == '{' ? uar_skill_read(text, &s, &error)
					   : uar_skill_read_markdown(text, &s, &error);

	if (!e) {
		struct uar_skill_request r = { .message = UAR_STR("search the docs"),
					       .max_active = 4 };

		uar_skill_match(&r, &(struct uar_skill_offer){ .skill = &s }, 1, &m);
		(void)uar_skill_allows_tool(&m, UAR_STR("internal:kb.search"));
		uar_skill_fini(&s);
	}
	return 0;
}
