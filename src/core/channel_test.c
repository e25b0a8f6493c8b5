/* channel_test.c - the facts of a message, each as the store would check it. */
#include "core/core.h"
#include "event/sizes.h"

#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct bench {
	struct uar_session s;
	struct uar_decision d;
	struct uar_rand_seeded seeded;
	struct uar_rand rand;
	struct uar_uuid ids;
	struct uar_arena arena;
	struct uar_buf buf;
};

static void tell(struct bench *b, const struct uar_message *m)
{
	struct uar_core_env env = { 1800000000000000, &b->ids, &b->arena, &b->buf, NULL, NULL };
	size_t before = b->d.event_count;
	struct uar_error error = { 0 };
	struct uar_arena scratch = { 0 };

	CHECK_INT(uar_core_message(&env, &b->s, m, &b->d, &error), UAR_OK);
	for (size_t i = before; i < b->d.event_count; i++) {
		CHECK_MSG(!uar_event_check(&b->d.events[i], &scratch, &error), "%s: %s",
			  error.where, error.text);
		CHECK_INT(b->d.events[i].sequence, i + 1);
		CHECK_INT(b->d.events[i].run_sequence, 0);
	}
	uar_arena_fini(&scratch);
}

static void open_bench(struct bench *b)
{
	*b = (struct bench){ .s = { .sequence = 0 } };
	uar_session_init(&b->s, &owner, UAR_STR("runtime"), UAR_STR("session"));
	b->rand = uar_rand_seed(&b->seeded, 7);
	uar_uuid_init(&b->ids, &uar_clock_system, &b->rand);
	b->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
}

static void close_bench(struct bench *b)
{
	uar_arena_fini(&b->arena);
	uar_buf_fini(&b->buf);
}

static struct uar_message plain(void)
{
	return (struct uar_message){
		.channel_id = UAR_STR("session"),
		.agent_id = UAR_STR("bob"),
		.message_id = UAR_STR("m"),
		.preview = UAR_STR("hi"),
		.kind = "a2a",
		.content = UAR_STR("{\"x\":1}"),
		.bytes = 7,
	};
}

TEST(the_first_message_opens_its_session, "A2A-03")
{
	struct uar_message m = plain();
	struct bench b;

	open_bench(&b);
	tell(&b, &m);
	tell(&b, &m);
	CHECK_INT(b.d.event_count, 3);
	CHECK_INT(b.s.sequence, 3);
	CHECK_INT(b.d.events[0].cls, UAR_EV_SESSION_CREATED);
	CHECK_STR(b.d.events[0].payload,
		  "{\"source\":\"a2a\",\"agent_id\":\"bob\","
		  "\"created_at\":\"2027-01-15T08:00:00.000000Z\",\"metadata\":{}}");
	for (int i = 1; i < 3; i++) {
		CHECK_INT(b.d.events[i].cls, UAR_EV_CHANNEL_MESSAGE);
		CHECK_STR(b.d.events[i].ids[UAR_ID_CHANNEL], "session");
		CHECK_STR(b.d.events[i].payload,
			  "{\"message_id\":\"m\",\"direction\":\"in\",\"kind\":\"a2a\","
			  "\"preview\":\"hi\",\"bytes\":7,\"content\":{\"x\":1}}");
		CHECK_INT(b.d.events[i].refs.n, 0);
	}
	close_bench(&b);
}

TEST(a_message_may_be_kept_elsewhere_and_have_an_effect, "A2A-06")
{
	struct uar_message m = plain();
	struct bench b;

	open_bench(&b);
	m.content = UAR_STR_NONE;
	m.blob = UAR_STR("0123456789012345678901234567890123456789012345678901234567890123");
	m.effect = UAR_MESSAGE_EFFECT_OVER;
	m.run_id = UAR_STR("r");
	m.native_ids = UAR_STR("{\"n\":\"1\"}");
	m.out = true;
	tell(&b, &m);
	CHECK_STR(b.d.events[1].payload,
		  "{\"message_id\":\"m\",\"direction\":\"out\",\"kind\":\"a2a\",\"preview\":\"hi\","
		  "\"bytes\":7,\"native_ids\":{\"n\":\"1\"},"
		  "\"effect\":{\"kind\":\"cancel\",\"run_id\":\"r\",\"result\":\"over\"}}");
	CHECK_STR(b.d.events[1].refs,
		  "{\"content_ref\":\"blob://"
		  "0123456789012345678901234567890123456789012345678901234567890123\"}");
	close_bench(&b);
}

TEST(effects_have_names, "")
{
	for (int i = UAR_MESSAGE_EFFECT_REQUESTED; i <= UAR_MESSAGE_EFFECT_UNKNOWN; i++)
		CHECK_INT(uar_message_effect_parse(
				  uar_str_c(uar_message_effect_name((enum uar_message_effect)i))),
			  i);
	CHECK_INT(uar_message_effect_parse(UAR_STR("")), UAR_MESSAGE_EFFECT_NONE);
	CHECK_INT(uar_message_effect_parse(UAR_STR("x")), UAR_MESSAGE_EFFECT_NONE);
}
