/* request_test.c - what each dialect makes of a request. */
#include "test.h"
#include "model_talk.h"

#include "model/reply_int.h"

static void check_body(const struct uar_dialect *dialect, const struct uar_model_request *r,
		       const char *want)
{
	struct uar_buf out = uar_buf_make(1 << 20);
	struct uar_jw w = uar_jw_begin(&out);

	uar_jw_obj(&w, NULL);
	dialect->write(&w, r, true);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	if (!CHECK_STR(uar_buf_str(&out), want))
		printf("  of %s\n", dialect->name);
	uar_buf_fini(&out);
}

/* --- a conversation with all kinds of parts ---------------------------------------------- */

static const struct uar_model_part seen[] = {
	{ .kind = UAR_PART_TEXT, .text = TALK_STR("Look:") },
	{ .kind = UAR_PART_IMAGE, .media_type = TALK_STR("image/png"), .text = TALK_STR("aGk=") },
	{ .kind = UAR_PART_IMAGE, .url = TALK_STR("https://x.test/a.png") },
	{ .kind = UAR_PART_FILE,
	  .media_type = TALK_STR("application/pdf"),
	  .name = TALK_STR("a.pdf"),
	  .text = TALK_STR("aGk="),
	  .cache = true },
	{ .kind = UAR_PART_FILE, .id = TALK_STR("file_1") },
};
static const struct uar_model_part answered[] = {
	{ .kind = UAR_PART_OPAQUE,
	  .name = TALK_STR("anthropic"),
	  .text = TALK_STR("{\"type\":\"thinking\",\"signature\":\"s\"}") },
	{ .kind = UAR_PART_OPAQUE,
	  .name = TALK_STR("openai_responses"),
	  .text = TALK_STR("{\"type\":\"reasoning\",\"encrypted_content\":\"e\"}") },
	{ .kind = UAR_PART_REASONING, .text = TALK_STR("hm") },
	{ .kind = UAR_PART_TEXT, .text = TALK_STR("So") },
	TALK_CALL("a", "f", "{\"x\": 1}"),
	TALK_CALL("b", "g", "oops"),
};
static const struct uar_model_part results[] = {
	TALK_RESULT("a", "one"),
	{ .kind = UAR_PART_RESULT, .id = TALK_STR("b"), .text = TALK_STR("no"), .failed = true },
};
static const struct uar_model_part rules[] = { TALK_TEXT("Be kind.") };
static const struct uar_model_part nothing[] = { TALK_TEXT("") };
static const struct uar_model_message talk[] = {
	{ UAR_MODEL_SYSTEM, rules, 1 },	      { UAR_MODEL_USER, seen, 5 },
	{ UAR_MODEL_ASSISTANT, answered, 6 }, { UAR_MODEL_TOOL, results, 1 },
	{ UAR_MODEL_TOOL, results + 1, 1 },   { UAR_MODEL_USER, nothing, 1 },
};
static const struct uar_model_request whole_talk = { .model = TALK_STR("m"),
						     .messages = talk,
						     .message_count = ARRAY_LEN(talk) };

TEST(parts_of_a_conversation_in_chat, "")
{
	check_body(
		&uar_dialect_openai_chat, &whole_talk,
		"{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"Be kind.\"},"
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Look:\"},"
		"{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,aGk=\"}},"
		"{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://x.test/a.png\"}},"
		"{\"type\":\"file\",\"file\":{\"file_data\":\"data:application/pdf;base64,aGk=\","
		"\"filename\":\"a.pdf\"}},{\"type\":\"file\",\"file\":{\"file_id\":\"file_1\"}}]},"
		"{\"role\":\"assistant\",\"content\":\"So\",\"tool_calls\":[{\"id\":\"a\","
		"\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": "
		"1}\"}},{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"g\","
		"\"arguments\":\"oops\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":"
		"\"one\"},{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"no\"},{\"role\":"
		"\"user\",\"content\":\"\"}],\"stream\":true,\"stream_options\":{"
		"\"include_usage\":true}}");
}

TEST(parts_of_a_conversation_in_responses, "")
{
	check_body(
		&uar_dialect_openai_responses, &whole_talk,
		"{\"model\":\"m\",\"instructions\":\"Be kind.\",\"input\":[{\"role\":\"user\","
		"\"content\":[{\"type\":\"input_text\",\"text\":\"Look:\"},{\"type\":"
		"\"input_image\",\"detail\":\"auto\",\"image_url\":\"data:image/png;base64,aGk=\"},"
		"{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":"
		"\"https://x.test/a.png\"},{\"type\":\"input_file\",\"file_data\":"
		"\"data:application/pdf;base64,aGk=\",\"filename\":\"a.pdf\"},{\"type\":"
		"\"input_file\",\"file_id\":\"file_1\"}]},{\"type\":\"reasoning\","
		"\"encrypted_content\":\"e\"},{\"role\":\"assistant\",\"content\":\"So\"},"
		"{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":"
		"\"{\\\"x\\\": 1}\"},{\"type\":\"function_call\",\"call_id\":\"b\",\"name\":\"g\","
		"\"arguments\":\"oops\"},{\"type\":\"function_call_output\",\"call_id\":\"a\","
		"\"output\":\"one\"},{\"type\":\"function_call_output\",\"call_id\":\"b\","
		"\"output\":\"no\"},{\"role\":\"user\",\"content\":\"\"}],\"store\":false,"
		"\"stream\":true}");
}

TEST(parts_of_a_conversation_in_anthropic, "")
{
	check_body(
		&uar_dialect_anthropic, &whole_talk,
		"{\"model\":\"m\",\"max_tokens\":8192,\"system\":[{\"type\":\"text\",\"text\":"
		"\"Be kind.\"}],\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
		"\"text\":\"Look:\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\","
		"\"media_type\":\"image/png\",\"data\":\"aGk=\"}},{\"type\":\"image\",\"source\":{"
		"\"type\":\"url\",\"url\":\"https://x.test/a.png\"}},{\"type\":\"document\","
		"\"source\":{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":"
		"\"aGk=\"},\"title\":\"a.pdf\",\"cache_control\":{\"type\":\"ephemeral\"}},"
		"{\"type\":\"document\",\"source\":{\"type\":\"file\",\"file_id\":\"file_1\"}}]},"
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"signature\":\"s\"},"
		"{\"type\":\"text\",\"text\":\"So\"},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":"
		"\"f\",\"input\":{\"x\":1}},{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"g\","
		"\"input\":{\"invalid_json\":\"oops\"}}]},{\"role\":\"user\",\"content\":[{"
		"\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"one\"},{\"type\":"
		"\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"no\",\"is_error\":true}]}],"
		"\"stream\":true}");
}

/* --- what tools bring besides text ---------------------------------------------------------- */

static const struct uar_model_part asks[] = { TALK_CALL("a", "shot", "{}"),
					      TALK_CALL("b", "g", "{}") };
static const struct uar_model_part shown[] = {
	{ .kind = UAR_PART_RESULT,
	  .id = TALK_STR("a"),
	  .name = TALK_STR("shot"),
	  .text = TALK_STR("here") },
	{ .kind = UAR_PART_IMAGE, .media_type = TALK_STR("image/png"), .text = TALK_STR("aGk=") },
	{ .kind = UAR_PART_FILE,
	  .media_type = TALK_STR("application/pdf"),
	  .name = TALK_STR("a.pdf"),
	  .text = TALK_STR("aGk="),
	  .cache = true },
};
static const struct uar_model_message shots[] = { { UAR_MODEL_ASSISTANT, asks, 2 },
						  { UAR_MODEL_TOOL, shown, 3 },
						  { UAR_MODEL_TOOL, results + 1, 1 } };
static const struct uar_model_request shot_talk = { .model = TALK_STR("m"),
						    .messages = shots,
						    .message_count = ARRAY_LEN(shots) };

static void check_has(const struct uar_dialect *dialect, const char *want)
{
	struct uar_buf out = uar_buf_make(1 << 20);
	struct uar_jw w = uar_jw_begin(&out);

	uar_jw_obj(&w, NULL);
	dialect->write(&w, &shot_talk, true);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_MSG(strstr(out.p, want) != NULL, "%s: %s", dialect->name, out.p);
	uar_buf_fini(&out);
}

TEST(images_and_files_of_tools_are_parts_in_every_dialect, "")
{
	check_has(
		&uar_dialect_openai_chat,
		"{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"here\"},"
		"{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"no\"},"
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"What the tool shot "
		"brought:\"},{\"type\":\"image_url\",\"image_url\":{\"url\":"
		"\"data:image/png;base64,aGk=\"}},{\"type\":\"file\",\"file\":{\"file_data\":"
		"\"data:application/pdf;base64,aGk=\",\"filename\":\"a.pdf\"}}]}]");
	check_has(&uar_dialect_openai_responses,
		  "{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":[{\"type\":"
		  "\"input_text\",\"text\":\"here\"},{\"type\":\"input_image\",\"detail\":\"auto\","
		  "\"image_url\":\"data:image/png;base64,aGk=\"},{\"type\":\"input_file\","
		  "\"file_data\":\"data:application/pdf;base64,aGk=\",\"filename\":\"a.pdf\"}]},"
		  "{\"type\":\"function_call_output\",\"call_id\":\"b\",\"output\":\"no\"}");
	check_has(&uar_dialect_anthropic,
		  "{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[{\"type\":\"text\","
		  "\"text\":\"here\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\","
		  "\"media_type\":\"image/png\",\"data\":\"aGk=\"}},{\"type\":\"document\","
		  "\"source\":{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":"
		  "\"aGk=\"},\"title\":\"a.pdf\"}],\"cache_control\":{\"type\":\"ephemeral\"}},"
		  "{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"no\","
		  "\"is_error\":true}");
}

/* --- wishes -------------------------------------------------------------------------------- */

#define SCHEMA "{\"type\":\"object\"}"

static const struct uar_model_part hello_part[] = { TALK_TEXT("Hi") };
static const struct uar_model_message hello[] = { { UAR_MODEL_USER, hello_part, 1 } };
static const struct uar_model_tool tools[] = { { .name = TALK_STR("f") } };
static const struct uar_model_request wishes = {
	.model = TALK_STR("m"),
	.messages = hello,
	.message_count = 1,
	.tools = tools,
	.tool_count = 1,
	.tool_choice = { UAR_CHOICE_TOOL, TALK_STR("f"), true },
	.output = { .name = TALK_STR("card"), .schema = TALK_STR(SCHEMA), .strict = true },
	.max_tokens = 99,
	.effort = UAR_EFFORT_HIGH,
	.cache_key = TALK_STR("k"),
};

TEST(wishes_in_chat, "")
{
	check_body(&uar_dialect_openai_chat, &wishes,
		   "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
		   "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":"
		   "\"\"}}],\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}},"
		   "\"parallel_tool_calls\":false,\"response_format\":{\"type\":\"json_schema\","
		   "\"json_schema\":{\"name\":\"card\",\"schema\":" SCHEMA ",\"strict\":true}},"
		   "\"max_tokens\":99,\"reasoning_effort\":\"high\",\"prompt_cache_key\":\"k\","
		   "\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
}

TEST(wishes_in_responses, "")
{
	check_body(&uar_dialect_openai_responses, &wishes,
		   "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"tools\":["
		   "{\"type\":\"function\",\"name\":\"f\",\"description\":\"\",\"parameters\":{"
		   "\"type\":\"object\",\"properties\":{}},\"strict\":false}],\"tool_choice\":{"
		   "\"type\":\"function\",\"name\":\"f\"},\"parallel_tool_calls\":false,\"text\":{"
		   "\"format\":{\"type\":\"json_schema\",\"name\":\"card\",\"schema\":" SCHEMA
		   ",\"strict\":true}},\"max_output_tokens\":99,\"reasoning\":{\"effort\":\"high\","
		   "\"summary\":\"auto\"},\"include\":[\"reasoning.encrypted_content\"],"
		   "\"prompt_cache_key\":\"k\",\"store\":false,\"stream\":true}");
}

TEST(wishes_in_anthropic, "")
{
	struct uar_model_request r = wishes;

	check_body(
		&uar_dialect_anthropic, &r,
		"{\"model\":\"m\",\"max_tokens\":99,\"messages\":[{\"role\":\"user\",\"content\":"
		"[{\"type\":\"text\",\"text\":\"Hi\"}]}],\"tools\":[{\"name\":\"f\","
		"\"input_schema\":" SCHEMA "}],\"tool_choice\":{\"type\":\"tool\",\"name\":\"f\","
		"\"disable_parallel_tool_use\":true},\"thinking\":{\"type\":\"adaptive\"},"
		"\"output_config\":{\"effort\":\"high\",\"format\":{\"type\":\"json_schema\","
		"\"schema\":" SCHEMA "}},\"stream\":true}");
	r.tool_count = 0;
	r.output.by_tool = true;
	r.thinking_tokens = 2000;
	check_body(&uar_dialect_anthropic, &r,
		   "{\"model\":\"m\",\"max_tokens\":6096,\"messages\":[{\"role\":\"user\","
		   "\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}],\"tools\":[{\"name\":"
		   "\"card\",\"description\":\"Gives the answer.\",\"input_schema\":" SCHEMA "}],"
		   "\"tool_choice\":{\"type\":\"tool\",\"name\":\"card\","
		   "\"disable_parallel_tool_use\":true},\"thinking\":{\"type\":\"enabled\","
		   "\"budget_tokens\":2000},\"stream\":true}");
}
