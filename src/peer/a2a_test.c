/* a2a_test.c - which interface of a card is called, what a task is after its events, and what is
 * sent.
 */
#include "peer/a2a_int.h"

#include "test.h"

/* --- cards ----------------------------------------------------------------------------------- */

#define NEW(URL, BINDING, VERSION)                                                                 \
	"{\"url\":\"" URL "\",\"protocolBinding\":\"" BINDING "\",\"protocolVersion\":\"" VERSION  \
	"\"}"

static const struct {
	const char *name, *card, *url; /* url NULL: it is refused */
	bool rest, old;
} cards[] = {
	{ "the first that we speak",
	  "{\"supportedInterfaces\":[" NEW("x:1", "GRPC", "1.0") "," NEW(
		  "https://a/r", "HTTP+JSON", "1.0") "," NEW("https://a/j", "JSONRPC", "1.0") "]}",
	  "https://a/r", true, false },
	{ "1.0 before 0.3",
	  "{\"supportedInterfaces\":[" NEW("https://a/o", "JSONRPC",
					   "0.3") "," NEW("https://a/j", "JSONRPC", "1.0") "]}",
	  "https://a/j", false, false },
	{ "only 0.3", "{\"supportedInterfaces\":[" NEW("https://a/o", "JSONRPC", "0.3") "]}",
	  "https://a/o", false, true },
	{ "a card of 0.3", "{\"url\":\"https://a/o\",\"preferredTransport\":\"JSONRPC\"}",
	  "https://a/o", false, true },
	{ "a card of 0.3 with another transport first",
	  "{\"url\":\"https://a/g\",\"preferredTransport\":\"GRPC\",\"additionalInterfaces\":[{"
	  "\"url\":\"https://a/j\",\"transport\":\"JSONRPC\"}]}",
	  "https://a/j", false, true },
	{ "a version that is not known",
	  "{\"supportedInterfaces\":[" NEW("https://a/j", "JSONRPC", "2.0") "]}", NULL, false,
	  false },
	{ "another host", "{\"supportedInterfaces\":[" NEW("https://b/j", "JSONRPC", "1.0") "]}",
	  NULL, false, false },
	{ "a host that is named",
	  "{\"supportedInterfaces\":[" NEW("https://c:8443/j", "JSONRPC", "1.0") "]}",
	  "https://c:8443/j", false, false },
	{ "less safe", "{\"supportedInterfaces\":[" NEW("http://a/j", "JSONRPC", "1.0") "]}", NULL,
	  false, false },
	{ "a name in the address",
	  "{\"supportedInterfaces\":[" NEW("https://a@b/j", "JSONRPC", "1.0") "]}", NULL, false,
	  false },
	{ "no address", "{\"supportedInterfaces\":[" NEW("", "JSONRPC", "1.0") "]}", NULL, false,
	  false },
	{ "no card", "[1]", NULL, false, false },
	{ "no JSON", "<html>", NULL, false, false },
};

TEST(a_card_leads_to_an_interface_or_nowhere, "")
{
	for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
		const struct uar_json *hosts = NULL;
		struct uar_error error = { 0 };
		struct a2a_card card = { .rest = false };
		struct uar_arena arena;
		uar_err e;

		uar_arena_init(&arena, 0);
		CHECK_INT(uar_json_parse(UAR_STR("[\"c:8443\"]"), NULL, &arena, &hosts, NULL),
			  UAR_OK);
		e = a2a_card_read(uar_str_c(cards[i].card),
				  UAR_STR("https://a/.well-known/agent-card.json"), hosts, &arena,
				  &card, &error);
		CHECK_MSG(!e == (cards[i].url != NULL), "%s: %s", cards[i].name, error.text);
		CHECK_MSG(e ? error.text[0] != 0
			    : uar_str_is(card.url, cards[i].url) && card.rest == cards[i].rest &&
					  card.old == cards[i].old,
			  "%s", cards[i].name);
		uar_arena_fini(&arena);
	}
}

/* --- tasks ----------------------------------------------------------------------------------- */

static uar_err take(struct a2a_task *t, const char *text, const char *message_id)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	CHECK_INT(uar_json_parse(uar_str_c(text), NULL, &arena, &j, NULL), UAR_OK);
	e = a2a_task_take(t, j, uar_str_c(message_id));
	uar_arena_fini(&arena);
	return e;
}

static struct uar_remote_view view_of(struct a2a_task *t)
{
	struct uar_remote_view v;

	CHECK_INT(a2a_task_view(t, &v), UAR_OK);
	return v;
}

#define PIECE(APPEND, ID, TEXT)                                                                    \
	"{\"artifactUpdate\":{\"taskId\":\"t\",\"append\":" APPEND ",\"artifact\":{"               \
	"\"artifactId\":\"" ID "\",\"parts\":[{\"text\":\"" TEXT "\"}]}}}"

TEST(pieces_become_one_text_and_a_replacement_is_told, "A2A-09")
{
	struct a2a_task t;
	unsigned made;

	a2a_task_init(&t);
	CHECK_INT(take(&t,
		       "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_"
		       "STATE_WORKING\"}}}",
		       ""),
		  UAR_OK);
	made = view_of(&t).text_made;
	CHECK_INT(take(&t, PIECE("false", "a", "one "), ""), UAR_OK);
	CHECK_INT(take(&t, PIECE("true", "a", "two"), ""), UAR_OK);
	CHECK_INT(take(&t, PIECE("false", "b", "three"), ""), UAR_OK);
	CHECK_STR(view_of(&t).text, "one two\n\nthree");
	CHECK_INT(view_of(&t).text_made, made);
	CHECK_INT(take(&t, PIECE("true", "a", "!"), ""), UAR_OK);
	CHECK_STR(view_of(&t).text, "one two!\n\nthree");
	CHECK(view_of(&t).text_made > made);
	CHECK_INT(view_of(&t).part_count, 0);
	CHECK_INT(take(&t,
		       "{\"statusUpdate\":{\"taskId\":\"t\",\"status\":{\"state\":\"TASK_STATE_"
		       "COMPLETED\"}}}",
		       ""),
		  UAR_OK);
	CHECK_INT(view_of(&t).part_count, 2);
	/* What is over stays as it is. */
	CHECK_INT(take(&t, PIECE("true", "a", "late"), ""), UAR_OK);
	CHECK_INT(take(&t,
		       "{\"statusUpdate\":{\"taskId\":\"t\",\"status\":{\"state\":\"TASK_STATE_"
		       "FAILED\"}}}",
		       ""),
		  UAR_OK);
	CHECK_INT(view_of(&t).state, UAR_REMOTE_COMPLETED);
	CHECK_STR(view_of(&t).text, "one two!\n\nthree");
	a2a_task_fini(&t);
}

TEST(a_long_text_may_come_in_each_snapshot, "A2A-09")
{
	size_t half = UAR_LIMIT_PEER_TEXT / 2 + 1;
	struct uar_buf text = uar_buf_make(2 * UAR_LIMIT_PEER_TEXT);
	struct a2a_task t;

	uar_buf_printf(&text,
		       "{\"task\":{\"id\":\"t\",\"status\":{\"state\":\"TASK_STATE_WORKING\"},"
		       "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"");
	for (size_t i = 0; i < half; i++)
		uar_buf_add_char(&text, 'x');
	uar_buf_printf(&text, "\"}]}]}}");
	CHECK_INT(text.err, UAR_OK);
	a2a_task_init(&t);
	CHECK_INT(take(&t, text.p, ""), UAR_OK);
	CHECK_INT(take(&t, text.p, ""), UAR_OK);
	CHECK_INT(view_of(&t).text.n, half);
	a2a_task_fini(&t);
	uar_buf_fini(&text);
}

TEST(events_of_another_task_and_broken_ones_change_nothing, "A2A-09")
{
	static const char *const broken[] = { "{}", "{\"task\":{\"id\":\"t\"}}", "{\"task\":7}",
					      "{\"kind\":\"message\"}",
					      "{\"statusUpdate\":{\"taskId\":\"t\"}}" };
	struct a2a_task t;

	a2a_task_init(&t);
	CHECK_INT(
		take(&t, "{\"kind\":\"task\",\"id\":\"t\",\"status\":{\"state\":\"working\"}}", ""),
		UAR_OK);
	CHECK_INT(take(&t,
		       "{\"kind\":\"status-update\",\"taskId\":\"other\",\"status\":{\"state\":"
		       "\"failed\"}}",
		       ""),
		  UAR_OK);
	CHECK_INT(view_of(&t).state, UAR_REMOTE_WORKING);
	for (size_t i = 0; i < ARRAY_LEN(broken); i++)
		CHECK_INT(take(&t, broken[i], ""), UAR_EINVALID);
	CHECK_INT(take(&t,
		       "{\"task\":{\"id\":\"other\",\"status\":{\"state\":\"TASK_STATE_FAILED\"}}}",
		       ""),
		  UAR_OK);
	CHECK_INT(view_of(&t).state, UAR_REMOTE_WORKING);
	CHECK(t.has_strays);
	a2a_task_fini(&t);
	a2a_task_init(&t);
	CHECK_INT(a2a_task_expect(&t, UAR_STR("mine")), UAR_OK);
	CHECK_INT(take(&t, "{\"kind\":\"task\",\"id\":\"t\",\"status\":{\"state\":\"completed\"}}",
		       ""),
		  UAR_OK);
	CHECK(t.has_strays && view_of(&t).state == UAR_REMOTE_UNKNOWN);
	a2a_task_fini(&t);
}

TEST(a_question_has_its_text_and_its_schema, "A2A-09")
{
	struct uar_remote_view v;
	struct a2a_task t;

	a2a_task_init(&t);
	CHECK_INT(take(&t,
		       "{\"kind\":\"task\",\"id\":\"t\",\"history\":[{\"messageId\":\"m.0\"}],"
		       "\"status\":{"
		       "\"state\":\"input-required\",\"message\":{\"parts\":[{\"kind\":\"text\","
		       "\"text\":\"Who?\"},"
		       "{\"kind\":\"data\",\"data\":{\"schema\":{\"type\":\"object\"}}}]}}}",
		       "m.0"),
		  UAR_OK);
	v = view_of(&t);
	CHECK_INT(v.state, UAR_REMOTE_INPUT_REQUIRED);
	CHECK_STR(v.said, "Who?");
	CHECK(uar_json_pointer(v.data, UAR_STR("/schema/type")) != NULL);
	CHECK(v.has_history && v.knows);
	CHECK_STR(v.native, "input-required");
	a2a_task_fini(&t);
}

TEST(more_than_is_taken_is_refused, "A2A-09")
{
	struct a2a_task t;
	uar_err e = UAR_OK;
	char text[256];

	a2a_task_init(&t);
	CHECK_INT(take(&t,
		       "{\"task\":{\"id\":\"t\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}",
		       ""),
		  UAR_OK);
	for (int i = 0; i <= UAR_LIMIT_PEER_ARTIFACTS && !e; i++) {
		snprintf(text, sizeof text,
			 "{\"artifactUpdate\":{\"taskId\":\"t\",\"artifact\":{\"artifactId\":\"a%"
			 "d\","
			 "\"parts\":[{\"text\":\"x\"}]}}}",
			 i);
		e = take(&t, text, "");
	}
	CHECK_INT(e, UAR_ETOOBIG);
	a2a_task_fini(&t);
}

/* A peer that appends to an artifact before its last one does not make each event cost as much as
 * all of the text. */
TEST(changes_before_the_last_artifact_are_joined_a_few_times, "A2A-09")
{
	enum { PIECES = 100, LONG = UAR_LIMIT_PEER_TEXT - PIECES, SIZE = LONG + 200 };
	char *piece = calloc(1, SIZE), want[PIECES + 8] = "";
	struct a2a_task t;
	unsigned made;
	uar_err e = UAR_OK;
	int n;

	a2a_task_init(&t);
	CHECK_INT(take(&t, PIECE("false", "a", "a"), ""), UAR_OK);
	CHECK_INT(take(&t, PIECE("false", "b", "b"), ""), UAR_OK);
	made = view_of(&t).text_made;
	for (int i = 0; i < PIECES; i++)
		CHECK_INT(take(&t, PIECE("true", "a", "a"), ""), UAR_OK);
	CHECK_INT(view_of(&t).text_made - made, UAR_LIMIT_PEER_JOINS);
	CHECK_INT(take(&t, PIECE("true", "b", "b"), ""), UAR_OK);
	CHECK_INT(view_of(&t).text_made - made, UAR_LIMIT_PEER_JOINS);
	CHECK_INT(take(&t,
		       "{\"statusUpdate\":{\"taskId\":\"t\",\"status\":{\"state\":\"TASK_STATE_"
		       "COMPLETED\"}}}",
		       ""),
		  UAR_OK);
	memset(want, 'a', PIECES + 1);
	snprintf(want + PIECES + 1, sizeof want - PIECES - 1, "\n\nbb");
	CHECK_STR(view_of(&t).text, want);
	a2a_task_fini(&t);

	/* The limit of the text holds all the same. */
	a2a_task_init(&t);
	n = snprintf(piece, SIZE,
		     "{\"artifactUpdate\":{\"taskId\":\"t\",\"append\":true,\"artifact\":{"
		     "\"artifactId\":\"b\",\"parts\":[{\"text\":\"");
	memset(piece + n, 'x', LONG);
	snprintf(piece + n + LONG, SIZE - (size_t)n - LONG, "\"}]}}}");
	CHECK_INT(take(&t, PIECE("false", "a", ""), ""), UAR_OK);
	CHECK_INT(take(&t, piece, ""), UAR_OK);
	for (int i = 0; i < PIECES - 2 && !e; i++)
		e = take(&t, PIECE("true", "a", "a"), "");
	CHECK_INT(e, UAR_OK);
	CHECK_INT(take(&t, PIECE("true", "a", "a"), ""), UAR_ETOOBIG);
	a2a_task_fini(&t);
	free(piece);
}

/* --- requests -------------------------------------------------------------------------------- */

TEST(requests_are_written_for_each_version_and_binding, "A2A-09")
{
	static const struct {
		bool rest, old;
		enum a2a_op op;
		const char *method, *url, *part; /* url NULL: there is no such operation */
	} cases[] = {
		{ false, false, A2A_STREAM, "POST", "https://a/x",
		  "\"method\":\"SendStreamingMessage\"" },
		{ false, true, A2A_SEND, "POST", "https://a/x", "\"blocking\":false" },
		{ false, true, A2A_LIST, "POST", NULL, "" },
		{ false, false, A2A_CANCEL, "POST", "https://a/x", "\"id\":\"t/1\"" },
		{ true, false, A2A_SEND, "POST", "https://a/x/message:send",
		  "\"returnImmediately\":true" },
		{ true, false, A2A_GET, "GET", "https://a/x/tasks/t%2F1?historyLength=50", "" },
		{ true, false, A2A_FOLLOW, "POST", "https://a/x/tasks/t%2F1:subscribe", "" },
	};
	struct uar_remote_message m = { UAR_STR("m"), UAR_STR("hi"), UAR_STR("{\"n\":1}"),
					UAR_STR(""), UAR_STR("c") };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct a2a_card card = { .url = UAR_STR("https://a/x"),
					 .tenant = UAR_STR(""),
					 .rest = cases[i].rest,
					 .old = cases[i].old };
		struct a2a_ask ask = { .op = cases[i].op,
				       .message = &m,
				       .task_id = UAR_STR("t/1") };
		struct a2a_request r;
		uar_err e = a2a_request_write(&card, &ask, &r);

		CHECK_INT(!e, cases[i].url != NULL);
		if (e)
			continue;
		CHECK_STR(uar_str_c(r.method), cases[i].method);
		CHECK_STR(uar_buf_str(&r.url), cases[i].url);
		CHECK(!cases[i].part[0] || strstr(r.body.p, cases[i].part));
		a2a_request_fini(&r);
	}
}
