/* parts_test.c - the parts of an answer, written and read. */
#include "test.h"
#include "model_talk.h"

#include "model/parts.h"

TEST(parts_are_read_as_they_were_written, "")
{
	static const struct uar_model_part parts[] = {
		{ .kind = UAR_PART_IMAGE,
		  .media_type = UAR_STR("image/png"),
		  .name = UAR_STR(""),
		  .text = UAR_STR("aGk="),
		  .id = UAR_STR(""),
		  .url = UAR_STR("") },
		{ .kind = UAR_PART_FILE,
		  .media_type = UAR_STR("text/plain"),
		  .name = UAR_STR("a.txt"),
		  .text = UAR_STR(""),
		  .id = UAR_STR(""),
		  .url = UAR_STR("https://x.example/a") },
		{ .kind = UAR_PART_OPAQUE,
		  .name = { "anthropic", 9 },
		  .text = TALK_STR("{\"type\":\"t\",\"s\":\"RW\\u006e\", \"n\":1.50}") },
		{ .kind = UAR_PART_REASONING, .text = { "hm", 2 } },
		{ .kind = UAR_PART_TEXT, .text = { "a \"b\" \xe2\x82\xac", 9 } },
		{ .kind = UAR_PART_CALL,
		  .id = { "i", 1 },
		  .name = { "f", 1 },
		  .text = { "{oops", 5 } },
	};
	struct uar_model_said said = { UAR_STR("p"), UAR_STR("m"), parts, ARRAY_LEN(parts) }, got;
	struct uar_buf json = uar_buf_make(10000);
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	REQUIRE(uar_model_parts_write(&said, &json) == UAR_OK);
	REQUIRE(uar_model_parts_read(uar_buf_str(&json), &arena, &got) == UAR_OK);
	uar_buf_fini(&json);
	CHECK_STR(got.provider, "p");
	CHECK_STR(got.model, "m");
	REQUIRE(got.part_count == ARRAY_LEN(parts));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		CHECK_INT(got.parts[i].kind, parts[i].kind);
		CHECK(uar_str_eq(got.parts[i].text, parts[i].text));
		CHECK(uar_str_eq(got.parts[i].name, parts[i].name));
		CHECK(uar_str_eq(got.parts[i].id, parts[i].id));
		CHECK(uar_str_eq(got.parts[i].url, parts[i].url));
		CHECK(uar_str_eq(got.parts[i].media_type, parts[i].media_type));
	}
	uar_arena_fini(&arena);
}

TEST(what_is_no_list_of_parts_is_corrupt, "")
{
	static const char *const bad[] = {
		"",
		"7",
		"{}",
		"{\"parts\":7}",
		"{\"parts\":[7]}",
		"{\"parts\":[{\"type\":\"x\"}]}",
		"{\"parts\":[{\"type\":\"opaque\",\"block\":7}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct uar_model_said got;
		struct uar_arena arena;

		uar_arena_init(&arena, 0);
		CHECK_MSG(uar_model_parts_read(uar_str_c(bad[i]), &arena, &got) == UAR_ECORRUPT,
			  "%s", bad[i]);
		uar_arena_fini(&arena);
	}
}
