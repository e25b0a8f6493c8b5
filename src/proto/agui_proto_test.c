/* agui_proto_test.c - AG-UI events in protobuf, byte by byte as the official package writes them.
 */
#include "base/alloc.h"
#include "proto/agui.h"
#include "test.h"

static void check_bytes(const char *json, const char *hex)
{
	struct uar_arena arena = { 0 };
	struct uar_buf b = uar_buf_make(4096), text = uar_buf_make(8192);
	const struct uar_json *event;

	CHECK_INT(uar_json_parse(uar_str_c(json), NULL, &arena, &event, NULL), UAR_OK);
	CHECK_INT(uar_agui_proto_encode(event, &b), UAR_OK);
	for (size_t i = 0; i < b.n; i++)
		uar_buf_printf(&text, "%02x", (unsigned char)b.p[i]);
	CHECK_STR(uar_buf_str(&text), hex);
	uar_buf_fini(&text);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

TEST(events_have_the_bytes_of_the_official_package, "AGUI-13")
{
	check_bytes("{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\","
		    "\"protocolVersion\":\"1.0\"}",
		    "620f0a02080b1201741a01723203312e30");
	check_bytes("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"hi\"}",
		    "120b0a02080112016d1a026869");
	check_bytes("{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{\"a\":1}}",
		    "3a180a02080612122a100a0e0a0161120911000000000000f03f");
	check_bytes("{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}",
		    "6a0a0a02080c1201741a0172");
	check_bytes("{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\"}",
		    "0a100a0012016d1a09617373697374616e74");
	check_bytes(
		"{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{"
		"\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i\",\"reason\":\"x\","
		"\"responseSchema\":{\"a\":1},\"metadata\":{\"b\":2}}]}}",
		"6a450a02080c1201741a01722a09696e74657272757074322e0a01691201782a122a100a0e0a0161"
		"120911000000000000f03f3a122a100a0e0a01621209110000000000000040");
}

TEST(frames_have_their_length_in_front, "AGUI-13")
{
	static const char sse[] = "event: meta\nid: 1.1\ndata: {\"type\":\"STEP_STARTED\","
				  "\"stepName\":\"a\"}\n\n: a comment\n\n"
				  "data: {\"type\":\"SOMETHING_ELSE\"}\n\n";
	struct uar_arena scratch = { 0 };
	struct uar_buf b = uar_buf_make(4096);

	CHECK_INT(uar_agui_proto_frames(uar_str_c(sse), &scratch, &b), UAR_OK);
	CHECK_INT(b.n, 13);
	CHECK(memcmp(b.p,
		     "\0\0\0\x09\x7a\x07\x0a\x02\x08\x0e\x12\x01"
		     "a",
		     13) == 0);
	uar_buf_fini(&b);
	uar_arena_fini(&scratch);
}
