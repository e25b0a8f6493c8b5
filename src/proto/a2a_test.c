/* a2a_test.c - messages: read, written again, told apart; as the published schema says. */
#include "proto/a2a.h"

#include "base/embed.h"
#include "json/schema.h"
#include "test.h"

UAR_EMBED(published, "docs/a2a.schema.json");

#define HEAD                                                                                       \
	"\"message_id\":\"m\",\"from_agent\":\"a\",\"to_agent\":\"b\",\"conversation_id\":\"c\","
#define TEXT "\"payload\":{\"type\":\"text\",\"text\":\"hi\"}"
#define CAPS "\"capabilities\":{\"tools\":[],\"models\":[]}"

static const struct {
	const char *text, *where; /* NULL: it is fine */
} cases[] = {
	{ "{" HEAD TEXT "," CAPS "}", NULL },
	{ "{" HEAD TEXT ",\"capabilities\":{}}", NULL },
	{ "{" HEAD TEXT ",\"capabilities\":{\"tools\":null,\"models\":[\"m\"]}}", NULL },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":null}", NULL },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{},{\"url\":\"u\",\"more\":[1]}]}", NULL },
	{ "{" HEAD "\"payload\":{\"type\":\"x\",\"run_id\":7}," CAPS "}", NULL },
	{ "{" HEAD "\"payload\":{\"type\":\"cancel\",\"run_id\":\"r\"}," CAPS "}", NULL },
	{ "[]", "" },
	{ "7", "" },
	{ "{}", "/message_id" },
	{ "{" HEAD CAPS "}", "/payload" },
	{ "{" HEAD TEXT "}", "/capabilities" },
	{ "{" HEAD TEXT "," CAPS ",\"extra\":1}", "/extra" },
	{ "{" HEAD "\"payload\":null," CAPS "}", "/payload" },
	{ "{" HEAD "\"payload\":[]," CAPS "}", "/payload" },
	{ "{" HEAD "\"payload\":{\"text\":\"x\"}," CAPS "}", "/payload/type" },
	{ "{" HEAD "\"payload\":{\"type\":\"\"}," CAPS "}", "/payload/type" },
	{ "{" HEAD "\"payload\":{\"type\":\"cancel\"}," CAPS "}", "/payload/run_id" },
	{ "{" HEAD "\"payload\":{\"type\":\"cancel\",\"run_id\":\"a b\"}," CAPS "}",
	  "/payload/run_id" },
	{ "{" HEAD TEXT ",\"capabilities\":[]}", "/capabilities" },
	{ "{" HEAD TEXT ",\"capabilities\":{\"x\":[]}}", "/capabilities/x" },
	{ "{" HEAD TEXT ",\"capabilities\":{\"tools\":{}}}", "/capabilities/tools" },
	{ "{" HEAD TEXT ",\"capabilities\":{\"tools\":[\"a\",2]}}", "/capabilities/tools/1" },
	{ "{" HEAD TEXT ",\"capabilities\":{\"models\":[\"\"]}}", "/capabilities/models/0" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":{}}", "/attachments" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[1]}", "/attachments/0" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":1}]}", "/attachments/0/data" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":\"\"},{\"data\":null}]}", NULL },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":\"aGk=\"},{\"data\":\"aA==\"}]}",
	  NULL },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":\"aGVs\"}]}", NULL },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":\"!!!\"}]}", "/attachments/0/data" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{},{\"data\":\"aGk\"}]}",
	  "/attachments/1/data" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":\"aB==\"}]}", "/attachments/0/data" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":\"aGl=\"}]}", "/attachments/0/data" },
	{ "{" HEAD TEXT "," CAPS ",\"attachments\":[{\"data\":\"aG k\"}]}", "/attachments/0/data" },
};

static const struct uar_json *parse(const char *text, struct uar_arena *arena)
{
	const struct uar_json *j = NULL;

	CHECK_MSG(!uar_json_parse(uar_str_c(text), NULL, arena, &j, NULL), "%s", text);
	return j;
}

/* The reader and the schema that others read must never disagree. */
static void judge(const char *text, const char *where)
{
	struct uar_arena arena = { 0 };
	struct uar_error error = { 0 }, ignored = { 0 };
	struct uar_a2a_message m;
	const struct uar_json *j = parse(text, &arena);
	uar_err e = uar_a2a_read(j, &m, &error);

	CHECK_MSG(!e == !where, "%s: %s", text, uar_error_text(&error));
	if (where)
		CHECK_STR(uar_str_c(error.where), where);
	CHECK_MSG(!uar_schema_check_text(uar_str_c(published), j, &ignored) == !e, "%s: %s", text,
		  ignored.text);
	uar_arena_fini(&arena);
}

TEST(the_reader_says_what_the_schema_says, "A2A-02")
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		judge(cases[i].text, cases[i].where);
}

TEST(recipients_are_here_or_at_a_peer, "A2A-02")
{
	static const struct {
		const char *to, *agent, *peer; /* agent NULL: refused */
	} names[] = {
		{ "bob", "bob", "" },
		{ "p:e/x.y", "p:e/x.y", "" },
		{ "bob@left-2", "bob", "left-2" },
		{ "@", NULL, NULL },
		{ "bob@", NULL, NULL },
		{ "@left", NULL, NULL },
		{ "a@b@c", NULL, NULL },
		{ "bob@Left", NULL, NULL },
		{ "bob@le ft", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct uar_arena arena = { 0 };
		struct uar_a2a_message m;
		char text[400];
		uar_err e;

		snprintf(text, sizeof text,
			 "{\"message_id\":\"m\",\"from_agent\":\"a\",\"to_agent\":\"%s\","
			 "\"conversation_id\":\"c\"," TEXT "," CAPS "}",
			 names[i].to);
		judge(text, names[i].agent ? NULL : "/to_agent");
		e = uar_a2a_read(parse(text, &arena), &m, NULL);
		if (names[i].agent && !e) {
			CHECK_STR(m.agent, names[i].agent);
			CHECK_STR(m.peer, names[i].peer);
		}
		uar_arena_fini(&arena);
	}
}

static void write(const struct uar_a2a_message *m, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_a2a_write(&w, NULL, m);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
}

static void print_of(const char *text, char out[UAR_SHA256_TEXT + 1])
{
	struct uar_arena arena = { 0 };
	struct uar_a2a_message m;

	CHECK_INT(uar_a2a_read(parse(text, &arena), &m, NULL), UAR_OK);
	CHECK_INT(uar_a2a_fingerprint(&m, out), UAR_OK);
	uar_arena_fini(&arena);
}

TEST(a_message_comes_out_in_its_order_and_reads_back, "A2A-02")
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_arena arena = { 0 };
	char one[UAR_SHA256_TEXT + 1], two[UAR_SHA256_TEXT + 1];
	struct uar_a2a_message m;

	CHECK_INT(uar_a2a_read(parse("{\"capabilities\":{}, \"payload\": {\"n\":1.50, "
				     "\"type\":\"t\"},\"conversation_id\":\"c\","
				     "\"to_agent\":\"b\",\"from_agent\":\"a\","
				     "\"message_id\":\"m\",\"attachments\":null}",
				     &arena),
			       &m, NULL),
		  UAR_OK);
	write(&m, &b);
	CHECK_STR(uar_buf_str(&b), "{" HEAD "\"payload\":{\"n\":1.50,\"type\":\"t\"}," CAPS "}");
	CHECK_INT(uar_a2a_fingerprint(&m, one), UAR_OK);
	print_of("{" HEAD "\"payload\":{\"type\":\"t\",\"n\":15e-1}," CAPS "}", two);
	CHECK_STR(uar_str_c(one), two);
	uar_arena_fini(&arena);
	uar_buf_fini(&b);
}

TEST(whatever_differs_makes_another_message, "A2A-02")
{
	static const char *const others[] = {
		"{" HEAD TEXT "," CAPS "}",
		"{" HEAD "\"payload\":{\"type\":\"text\",\"text\":\"ho\"}," CAPS "}",
		"{" HEAD TEXT ",\"capabilities\":{\"tools\":[\"x\"]}}",
		"{" HEAD TEXT ",\"capabilities\":{\"models\":[\"x\"]}}",
		"{" HEAD TEXT "," CAPS ",\"attachments\":[{}]}",
		"{\"message_id\":\"m\",\"from_agent\":\"ab\",\"to_agent\":\"b\","
		"\"conversation_id\":\"c\"," TEXT "," CAPS "}",
		"{\"message_id\":\"m\",\"from_agent\":\"a\",\"to_agent\":\"bb\","
		"\"conversation_id\":\"c\"," TEXT "," CAPS "}",
	};
	char prints[ARRAY_LEN(others)][UAR_SHA256_TEXT + 1];

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		print_of(others[i], prints[i]);
		for (size_t k = 0; k < i; k++)
			CHECK_MSG(strcmp(prints[i], prints[k]) != 0, "%zu and %zu", i, k);
	}
}

TEST(a_cancel_names_its_run, "A2A-06 RUN-07")
{
	struct uar_arena arena = { 0 };
	struct uar_a2a_message m;

	CHECK_INT(uar_a2a_read(parse("{" HEAD "\"payload\":{\"reason\":\"why\",\"run_id\":\"r\","
				     "\"type\":\"cancel\"}," CAPS "}",
				     &arena),
			       &m, NULL),
		  UAR_OK);
	CHECK_STR(m.cancel_run, "r");
	CHECK_STR(m.cancel_reason, "why");
	CHECK_INT(uar_a2a_read(parse("{" HEAD "\"payload\":{\"type\":\"canceled\","
				     "\"run_id\":\"r\"}," CAPS "}",
				     &arena),
			       &m, NULL),
		  UAR_OK);
	CHECK_INT(m.cancel_run.n, 0);
	uar_arena_fini(&arena);
}

TEST(a_preview_is_short_and_whole_characters, "A2A-02")
{
	struct uar_buf b = uar_buf_make(4096), text = uar_buf_make(8192);
	struct uar_arena arena = { 0 };
	struct uar_a2a_message m;

	uar_buf_add_str(&text, UAR_STR("{" HEAD CAPS ",\"payload\":{\"type\":\"t\",\"text\":\"x"));
	for (int i = 0; i < 500; i++)
		uar_buf_add_str(&text, UAR_STR("\xc3\xa9"));
	uar_buf_add_str(&text, UAR_STR("\"}}"));
	uar_buf_add_char(&text, 0);
	CHECK_INT(uar_a2a_read(parse(uar_buf_str(&text).p, &arena), &m, NULL), UAR_OK);
	CHECK_INT(uar_a2a_preview(&m, &b), UAR_OK);
	CHECK(b.n == 199 && uar_utf8_valid(uar_buf_str(&b)));
	uar_buf_clear(&b);
	CHECK_INT(
		uar_a2a_read(parse("{" HEAD CAPS ",\"payload\":{\"type\":\"t\",\"n\":1}}", &arena),
			     &m, NULL),
		UAR_OK);
	CHECK_INT(uar_a2a_preview(&m, &b), UAR_OK);
	CHECK_STR(uar_buf_str(&b), "{\"type\":\"t\",\"n\":1}");
	uar_arena_fini(&arena);
	uar_buf_fini(&b);
	uar_buf_fini(&text);
}

TEST(only_received_messages_are_shown, "A2A-04")
{
#define REST "\"message_id\":\"m\",\"preview\":\"\",\"bytes\":2"
	static const struct {
		enum uar_event_class cls;
		const char *payload, *refs, *message;
		uar_err want;
	} events[] = {
		{ UAR_EV_CHANNEL_MESSAGE,
		  "{\"kind\":\"a2a\",\"direction\":\"in\",\"content\":{\"a\":1}," REST "}", "",
		  "{\"a\":1}", UAR_OK },
		{ UAR_EV_CHANNEL_MESSAGE, "{\"kind\":\"a2a\",\"direction\":\"in\"," REST "}",
		  "{\"content_ref\":\"blob://"
		  "0123456789012345678901234567890123456789012345678901234567890123\"}",
		  "", UAR_OK },
		{ UAR_EV_CHANNEL_MESSAGE, "{\"kind\":\"a2a\",\"direction\":\"in\"," REST "}",
		  "{\"content_ref\":\"blob://short\"}", "", UAR_ECORRUPT },
		{ UAR_EV_CHANNEL_MESSAGE, "{\"kind\":\"a2a\",\"direction\":\"in\"," REST "}", "",
		  "", UAR_ECORRUPT },
		{ UAR_EV_CHANNEL_MESSAGE,
		  "{\"kind\":\"a2a\",\"direction\":\"out\",\"content\":{}," REST "}", "", "",
		  UAR_ESKIP },
		{ UAR_EV_CHANNEL_MESSAGE,
		  "{\"kind\":\"status\",\"direction\":\"in\",\"content\":{}," REST "}", "", "",
		  UAR_ESKIP },
		{ UAR_EV_SESSION_CREATED, "{}", "", "", UAR_ESKIP },
	};

	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		struct uar_event ev = { .cls = events[i].cls,
					.payload = uar_str_c(events[i].payload),
					.refs = uar_str_c(events[i].refs) };
		struct uar_a2a_stored s = { UAR_STR_NONE, UAR_STR_NONE };
		struct uar_arena arena = { 0 };

		CHECK_INT(uar_a2a_stored_read(&ev, &arena, &s), events[i].want);
		CHECK_STR(s.message, events[i].message);
		CHECK_INT(s.blob.n, !events[i].want && !events[i].message[0] ? 64 : 0);
		uar_arena_fini(&arena);
	}
}
