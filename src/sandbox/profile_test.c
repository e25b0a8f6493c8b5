/* profile_test.c - profiles as JSON, their names, what is enforced, and frames. */
#include "test.h"

#include "json/json.h"
#include "json/jw.h"
#include "sandbox/helper.h"
#include "sandbox/sandbox.h"

static struct uar_sandbox profile(void)
{
	struct uar_sandbox s = { .mode = UAR_SANDBOX_WORKSPACE_WRITE,
				 .cwd = UAR_STR("/w"),
				 .limits = { .processes = 8, .wall_ms = 1000 } };

	s.read_roots[s.read_count++] = UAR_STR("/usr");
	s.write_roots[s.write_count++] = UAR_STR("/w");
	return s;
}

TEST(a_profile_survives_its_way_to_the_helper, "")
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SANDBOX_PROFILE);
	struct uar_jw w = uar_jw_begin(&b);
	char one[UAR_SANDBOX_ID + 1], two[UAR_SANDBOX_ID + 1];
	struct uar_sandbox s = profile(), back;
	const struct uar_json *j;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	uar_jw_obj(&w, NULL);
	uar_sandbox_write(&w, &s);
	uar_jw_close(&w);
	CHECK(uar_jw_end(&w) == UAR_OK);
	CHECK(uar_json_parse(uar_buf_str(&b), NULL, &arena, &j, NULL) == UAR_OK);
	CHECK(uar_sandbox_read(j, &back, NULL) == UAR_OK);
	CHECK_INT(back.mode, s.mode);
	CHECK_INT(back.limits.processes, 8);
	CHECK(uar_sandbox_id(&s, one) == UAR_OK && uar_sandbox_id(&back, two) == UAR_OK);
	CHECK(strcmp(one, two) == 0);
	back.network = true;
	CHECK(uar_sandbox_id(&back, two) == UAR_OK && strcmp(one, two) != 0);
	uar_arena_fini(&arena);
	uar_buf_fini(&b);
}

TEST(what_cannot_be_enforced_is_refused_or_named, "")
{
	struct uar_sandbox_probe none = { 0 }, old = { 1, true, false }, full = { 7, true, true };
	struct uar_sandbox s = profile();
	struct uar_sandbox_gaps gaps;

	CHECK(uar_sandbox_check(&s, &none, &gaps, NULL) == UAR_ENOTIMPL);
	none.seccomp = true;
	CHECK(uar_sandbox_check(&s, &none, &gaps, NULL) == UAR_ENOTIMPL);
	CHECK(uar_sandbox_check(&s, &old, &gaps, NULL) == UAR_OK);
	CHECK_INT(gaps.count, 3);
	CHECK(uar_sandbox_check(&s, &full, &gaps, NULL) == UAR_OK);
	CHECK_INT(gaps.count, 0);
	s.mode = UAR_SANDBOX_FULL_ACCESS;
	CHECK(uar_sandbox_check(&s, &none, &gaps, NULL) == UAR_OK);
}

TEST(roots_cover_what_is_below_them_alone, "")
{
	const uar_str roots[] = { UAR_STR("/w"), UAR_STR("/a/b") };

	CHECK(uar_sandbox_covers(roots, 2, UAR_STR("/w")));
	CHECK(uar_sandbox_covers(roots, 2, UAR_STR("/w/x")));
	CHECK(!uar_sandbox_covers(roots, 2, UAR_STR("/wx")));
	CHECK(!uar_sandbox_covers(roots, 2, UAR_STR("/a")));
	CHECK(!uar_sandbox_covers(roots, 2, UAR_STR("/")));
}

TEST(frames_are_read_when_they_are_whole, "")
{
	struct uar_buf b = uar_buf_make(256);
	uar_str bytes;
	char what = 0;

	uar_frame_write(&b, 'o', UAR_STR("hello"));
	for (size_t n = 0; n < b.n; n++)
		CHECK_INT(uar_frame_read(uar_str_n(b.p, n), &what, &bytes), 0);
	CHECK_INT(uar_frame_read(uar_buf_str(&b), &what, &bytes), b.n);
	CHECK(what == 'o' && uar_str_is(bytes, "hello"));
	CHECK(uar_frame_read(UAR_STR("o\xff\xff\xff\xff"), &what, &bytes) == UAR_FRAME_BROKEN);
	uar_buf_fini(&b);
}
