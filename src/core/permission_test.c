/* permission_test.c - modes, sources and the strictest word, over every combination. */
#include "core/permission.h"

#include "test.h"

static const char LETTERS[] = "-AKD"; /* nothing, allow, ask, deny */

static const struct {
	enum uar_permission_mode mode;
	const char *want; /* read, write, network, destructive, cautious, failed */
} table[] = {
	{ UAR_MODE_DEFAULT, "AAAAKA" },	   { UAR_MODE_UNTRUSTED, "AKKKKK" },
	{ UAR_MODE_ON_REQUEST, "AAKKKA" }, { UAR_MODE_ON_FAILURE, "AAAKKK" },
	{ UAR_MODE_NEVER, "AAADDA" },	   { UAR_MODE_PLAN, "ADKDKA" },
	{ UAR_MODE_BYPASS, "AAAAAA" },	   { UAR_MODE_AUTO, "AAAKAA" },
};

static struct uar_permission decide(const struct uar_permission_facts *f)
{
	struct uar_permission p;

	uar_permission_decide(f, &p);
	return p;
}

static struct uar_permission_call call_of(size_t i)
{
	return (struct uar_permission_call){ .read_only = i != 1,
					     .network = i == 2,
					     .destructive = i == 3,
					     .cautious = i == 4,
					     .failed = i == 5 };
}

TEST(each_mode_says_what_its_row_says, "")
{
	CHECK_INT(ARRAY_LEN(table), UAR_MODE_COUNT - 1);
	for (size_t m = 0; m < ARRAY_LEN(table); m++)
		for (size_t i = 0; table[m].want[i]; i++) {
			struct uar_permission_facts f = { .mode = table[m].mode,
							  .call = call_of(i) };
			struct uar_permission p = decide(&f);

			CHECK_INT(LETTERS[p.verdict], table[m].want[i]);
			CHECK_INT(p.source, table[m].mode == UAR_MODE_AUTO
						    ? UAR_PERMIT_BY_CLASSIFIER
						    : UAR_PERMIT_BY_MODE);
			CHECK(p.reason.n > 0);
		}
}

/* Of two sources, whichever they are and in whatever order. */
TEST(deny_beats_ask_beats_allow_whoever_says_it, "")
{
	static const enum uar_permission_source who[] = { UAR_PERMIT_BY_HOST_POLICY,
							  UAR_PERMIT_BY_DEFINITION,
							  UAR_PERMIT_BY_SESSION,
							  UAR_PERMIT_BY_HOOK };

	for (int mode = UAR_MODE_DEFAULT; mode < UAR_MODE_COUNT; mode++)
		for (size_t i = 0; i < ARRAY_LEN(who) * ARRAY_LEN(who) * 9; i++) {
			struct uar_permission_facts f = { .mode = (enum uar_permission_mode)mode,
							  .call.read_only = true };
			enum uar_permission_verdict a = 1 + i % 3, b = 1 + i / 3 % 3;
			enum uar_permission_verdict want = a > b ? a : b;

			uar_permission_add(&f, (struct uar_permission_say){
						       .source = who[i / 9 % 4], .verdict = a });
			uar_permission_add(&f, (struct uar_permission_say){ .source = who[i / 36],
									    .verdict = b });
			if (want == UAR_SAYS_ASK && mode == UAR_MODE_NEVER)
				want = UAR_SAYS_DENY;
			CHECK_INT(decide(&f).verdict, want);
		}
}

TEST(an_ask_is_answered_by_a_person_or_a_grant_alone, "")
{
	struct uar_permission_facts f = { .mode = UAR_MODE_BYPASS };
	struct uar_permission p;

	uar_permission_add(&f, (struct uar_permission_say){ UAR_PERMIT_BY_DEFINITION, UAR_SAYS_ASK,
							    UAR_STR("r"), UAR_STR("asks") });
	uar_permission_add(&f, (struct uar_permission_say){ .source = UAR_PERMIT_BY_HOOK,
							    .verdict = UAR_SAYS_ALLOW });
	CHECK_INT(decide(&f).verdict, UAR_SAYS_ASK);
	f.unattended = true;
	p = decide(&f);
	CHECK_INT(p.verdict, UAR_SAYS_DENY);
	f.grant = UAR_STR("g");
	p = decide(&f);
	CHECK_INT(p.verdict, UAR_SAYS_ALLOW);
	CHECK_INT(p.source, UAR_PERMIT_BY_GRANT);
	f.allowed = true;
	CHECK_INT(decide(&f).source, UAR_PERMIT_BY_HUMAN);
	uar_permission_add(&f, (struct uar_permission_say){ .source = UAR_PERMIT_BY_HOST_POLICY,
							    .verdict = UAR_SAYS_DENY });
	CHECK_INT(decide(&f).verdict, UAR_SAYS_DENY);
}

TEST(what_only_the_mode_asks_is_answered_by_a_rule_but_not_of_the_definition, "")
{
	for (int s = 0; s < UAR_PERMIT_BY_COUNT; s++) {
		struct uar_permission_facts f = { .mode = UAR_MODE_UNTRUSTED };
		bool lifts = s == UAR_PERMIT_BY_HOST_POLICY || s == UAR_PERMIT_BY_SESSION ||
			     s == UAR_PERMIT_BY_HOOK || s == UAR_PERMIT_BY_GRANT ||
			     s == UAR_PERMIT_BY_HUMAN;

		uar_permission_add(
			&f, (struct uar_permission_say){ .source = (enum uar_permission_source)s,
							 .verdict = UAR_SAYS_ALLOW });
		CHECK_INT(decide(&f).verdict, lifts ? UAR_SAYS_ALLOW : UAR_SAYS_ASK);
		f.mode = UAR_MODE_PLAN; /* it denies: nothing lifts that */
		CHECK_INT(decide(&f).verdict, UAR_SAYS_DENY);
	}
}

TEST(more_rules_than_there_is_room_for_still_deny, "")
{
	struct uar_permission_facts f = { .mode = UAR_MODE_BYPASS };

	for (int i = 0; i < 2 * UAR_LIMIT_PERMISSION_SAYS; i++)
		uar_permission_add(&f,
				   (struct uar_permission_say){ .source = UAR_PERMIT_BY_HOST_POLICY,
								.verdict = UAR_SAYS_ALLOW });
	uar_permission_add(&f, (struct uar_permission_say){ .source = UAR_PERMIT_BY_HOST_POLICY,
							    .verdict = UAR_SAYS_DENY });
	CHECK_INT(decide(&f).verdict, UAR_SAYS_DENY);
}

TEST(the_nearest_mode_holds_and_loose_ones_need_the_operator, "")
{
	struct uar_permission_modes m = { .run = UAR_MODE_BYPASS,
					  .thread = UAR_MODE_PLAN,
					  .session = UAR_MODE_NEVER,
					  .host = UAR_MODE_UNTRUSTED };

	CHECK_INT(uar_permission_effective(&m), UAR_MODE_PLAN);
	m.allowed = 1u << UAR_MODE_BYPASS;
	CHECK_INT(uar_permission_effective(&m), UAR_MODE_BYPASS);
	m.run = m.thread = UAR_MODE_NONE;
	CHECK_INT(uar_permission_effective(&m), UAR_MODE_NEVER);
	m.session = UAR_MODE_NONE;
	CHECK_INT(uar_permission_effective(&m), UAR_MODE_UNTRUSTED);
	m.host = UAR_MODE_NONE;
	CHECK_INT(uar_permission_effective(&m), UAR_MODE_DEFAULT);
}

static void check_bad(const char *text, const char *where)
{
	struct uar_error error = { 0 };
	const struct uar_json *j = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	CHECK_INT(uar_json_parse(uar_str_c(text), NULL, &arena, &j, NULL), UAR_OK);
	CHECK_INT(uar_permission_check_rules(j, &error), UAR_EINVALID);
	CHECK_STR(uar_str_c(error.where), where);
	uar_arena_fini(&arena);
}

TEST(a_rule_that_is_none_is_refused_with_its_place, "")
{
	check_bad("{}", "");
	check_bad("[{\"tool\":\"a\"}]", "/0/decision");
	check_bad("[{\"decision\":\"deny\"},{\"decision\":\"maybe\"}]", "/1/decision");
	check_bad("[{\"decision\":\"deny\",\"tool\":[]}]", "/0/tool");
	check_bad("[{\"decision\":\"deny\",\"tool\":[1]}]", "/0/tool");
	check_bad("[{\"decision\":\"deny\",\"class\":\"x\"}]", "/0/class");
	check_bad("[{\"decision\":\"deny\",\"other\":1}]", "/0/other");
}
