/* permit_test.c - whether a tool can be called, over every combination of facts. */
#include "core/permit.h"

#include "test.h"

static void check_facts(struct uar_permit_facts f)
{
	enum uar_permit got = uar_core_permit(&f);
	bool passes = got == UAR_PERMIT_ALLOWED;

	CHECK_INT(got == UAR_PERMIT_UNKNOWN, !f.known);
	CHECK_INT(got == UAR_PERMIT_DENIED, f.known && (f.off || !f.surfaced));
	CHECK_INT(passes, f.known && !f.off && f.surfaced && f.ready && !f.denied);
}

TEST(what_is_missing_or_switched_off_is_never_called, "")
{
	for (unsigned bits = 0; bits < 32; bits++)
		check_facts((struct uar_permit_facts){
			.known = bits & 1,
			.off = bits & 2,
			.surfaced = bits & 4,
			.ready = bits & 8,
			.denied = bits & 16,
		});
}

TEST(a_grant_covers_its_tool_place_and_arguments, "")
{
	struct uar_row_grant g = { .row = { .kind = UAR_ROW_GRANT,
					    .parent = UAR_STR("t-1"),
					    .tag = UAR_STR("internal:fs.write"),
					    .status = UAR_STR("active") },
				   .scope = UAR_STR("thread") };
	struct uar_grant_call call = { .agent_id = UAR_STR("tools"),
				       .thread_id = UAR_STR("t-1"),
				       .tool_id = UAR_STR("internal:fs.write") };

	CHECK(uar_grant_covers(&g, &call));
	g.args_sha256 = UAR_STR("d");
	CHECK(!uar_grant_covers(&g, &call)); /* the arguments are not known */
	call.args_digest = UAR_STR("e");
	CHECK(!uar_grant_covers(&g, &call));
	call.args_digest = UAR_STR("d");
	CHECK(uar_grant_covers(&g, &call));
	g.tool_version = UAR_STR("v1");
	CHECK(!uar_grant_covers(&g, &call)); /* the tool is another one by now */
	call.tool_version = UAR_STR("v1");
	CHECK(uar_grant_covers(&g, &call));
	call.thread_id = UAR_STR("t-2");
	CHECK(!uar_grant_covers(&g, &call));
	g.scope = UAR_STR("agent");
	CHECK(!uar_grant_covers(&g, &call));
	g.row.parent = UAR_STR("tools");
	CHECK(uar_grant_covers(&g, &call));
	call.tool_id = UAR_STR("internal:fs.delete");
	CHECK(!uar_grant_covers(&g, &call));
	call.tool_id = g.row.tag;
	g.row.status = UAR_STR("revoked");
	CHECK(!uar_grant_covers(&g, &call));
}
