/* skill_bench.c - what a choice among many skills costs, the best of several rounds, and the memory
 * of each.
 *
 *	skill_bench [SKILLS] */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "skill/match.h"

enum { ROUNDS = 15, TIMES = 20, USUAL = 1000 };

static const char *const things[] = { "report", "invoice", "schema",  "journey",  "recipe",
				      "budget", "poem",	   "release", "contract", "garden" };
static const char *const acts[] = { "writes",	  "reviews", "sorts",	 "plans",
				    "translates", "checks",  "explains", "counts" };

static struct uar_skill make_skill(int i)
{
	const char *thing = things[i % 10], *act = acts[i / 10 % 8];
	struct uar_skill s;
	char json[600];

	snprintf(json, sizeof json,
		 "{\"skill_id\":\"s%d\",\"title\":\"%s %s\",\"description\":\"It %s a %s number "
		 "%d and says what is missing in it.\",\"triggers\":{\"keywords\":[\"%s%d\","
		 "\"thing%d\"],\"patterns\":[\"(?:%s|make) .*%s %d\"],\"semantic\":[\"a user "
		 "%s a %s\"]},\"prompt_overlay\":\"Do it.\"}",
		 i, act, thing, act, thing, i, thing, i, i, act, thing, i, act, thing);
	if (uar_skill_read(uar_str_c(json), &s, NULL))
		abort();
	return s;
}

static double match_once(const struct uar_skill_offer *offers, size_t count)
{
	static struct uar_skill_matches m;
	struct uar_skill_request r = {
		.message = UAR_STR("Please look at the invoice from last week, review the schema "
				   "behind it, and plan what thing42 still has to do."),
		.max_active = 4,
	};
	int64_t started = uar_clock_mono(&uar_clock_system);

	for (int i = 0; i < TIMES; i++)
		uar_skill_match(&r, offers, count, &m);
	if (!m.active)
		abort();
	return (double)(uar_clock_mono(&uar_clock_system) - started) / TIMES;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : USUAL;
	struct uar_skill *skills = uar_zalloc(count * sizeof *skills);
	struct uar_skill_offer *offers = uar_zalloc(count * sizeof *offers);
	size_t before = mallinfo2().uordblks;
	double best = 1e12;

	if (!skills || !offers)
		abort();
	for (size_t i = 0; i < count; i++) {
		skills[i] = make_skill((int)i);
		offers[i].skill = &skills[i];
	}
	before = mallinfo2().uordblks - before;
	for (int i = 0; i < ROUNDS; i++) {
		double us = match_once(offers, count);

		best = us < best ? us : best;
	}
	printf("match_us=%.0f\nbytes_per_skill=%zu\n", best, before / count);
	for (size_t i = 0; i < count; i++)
		uar_skill_fini(&skills[i]);
	uar_free(skills);
	uar_free(offers);
	return 0;
}
