/* content_test.c - how content is labelled, whatever a plugin says. */
#include "gate/content.h"
#include "test.h"

TEST(types_by_table, "EXP-21")
{
	static const struct {
		const char *item, *mime, *want;
	} cases[] = {
		{ "text", "", "text/plain; charset=utf-8" },
		{ "text", "text/markdown", "text/markdown; charset=utf-8" },
		{ "json", "", "application/json" },
		{ "binary", "", "application/octet-stream" },
		{ "binary_url", "image/png", "image/png" },
		{ "binary", "text/html; charset=latin1", "text/html; charset=latin1" },
		{ "binary", "text", "application/octet-stream" },
		{ "binary", "text/", "application/octet-stream" },
		{ "binary", "a/b/c", "application/octet-stream" },
		{ "binary", "a/b; c", "application/octet-stream" },
		{ "binary", "a/b\r\nX-Evil: 1", "application/octet-stream" },
		{ "binary", "a/b; c=\"d\"", "application/octet-stream" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(256);

		gate_content_type(&b, uar_str_c(cases[i].item), uar_str_c(cases[i].mime));
		CHECK_STR(uar_buf_str(&b), cases[i].want);
		uar_buf_fini(&b);
	}
}

TEST(only_the_harmless_is_shown_in_place, "EXP-21")
{
	static const struct {
		const char *type, *label, *want;
	} cases[] = {
		{ "image/png", "a.png", "inline; filename=\"a.png\"" },
		{ "IMAGE/PNG; x=y", "", "inline; filename=\"id-1\"" },
		{ "text/html", "a b\"c.html", "attachment; filename=\"a_b_c.html\"" },
		{ "image/svg+xml", "../../etc", "attachment; filename=\"_._.._etc\"" },
		{ "application/pdf", "\xc3\xa4.pdf", "attachment; filename=\"__.pdf\"" },
		{ "text/plain", "\r\nSet-Cookie: x", "inline; filename=\"__Set-Cookie__x\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(512);

		gate_content_disposition(&b, uar_str_c(cases[i].type), uar_str_c(cases[i].label),
					 UAR_STR("id-1"));
		CHECK_STR(uar_buf_str(&b), cases[i].want);
		uar_buf_fini(&b);
	}
}

TEST(tags_are_compared_whole, "EXP-21")
{
	uar_str tag = UAR_STR("\"abc\"");

	CHECK(gate_tag_matches(UAR_STR("\"abc\""), tag));
	CHECK(gate_tag_matches(UAR_STR("\"x\" , \"abc\""), tag));
	CHECK(gate_tag_matches(UAR_STR("*"), tag));
	CHECK(!gate_tag_matches(UAR_STR(""), tag));
	CHECK(!gate_tag_matches(UAR_STR("W/\"abc\""), tag));
	CHECK(!gate_tag_matches(UAR_STR("abc"), tag));
}
