/* scripted_test.c - the model that needs no network. */
#include "test.h"
#include "model_talk.h"
#include "heard.h"

struct fixture {
	struct uar_loop *loop;
	struct uar_model *model;
};

static void tear_down(struct fixture *f)
{
	uar_model_destroy(f->model);
	uar_loop_destroy(f->loop);
}

static bool set_up(struct fixture *f, int64_t token_us)
{
	struct uar_model_scripted_options o = { .token_us = token_us };

	*f = (struct fixture){ 0 };
	if (!CHECK(uar_loop_create(&uar_clock_system, &f->loop) == UAR_OK))
		return false;
	o.sched = uar_loop_sched(f->loop);
	return CHECK(uar_model_scripted_create(&o, &f->model) == UAR_OK);
}

TEST(scripted_quotes_the_user_and_repeats_itself, "PROV-07")
{
	const struct uar_model_message talk[] = {
		SAYS(USER, "first"),
		SAYS(ASSISTANT, "yes"),
		SAYS(USER, "second \xe2\x82\xac"),
	};
	struct uar_model_request r = { .model = UAR_STR("scripted"),
				       .messages = talk,
				       .message_count = 3 };
	struct fixture f;
	struct heard s[2];

	REQUIRE(set_up(&f, 0));
	for (int i = 0; i < 2; i++) {
		heard_init(&s[i], f.model, f.loop);
		REQUIRE(heard_start(&s[i], &r) == UAR_OK);
		CHECK_INT(s[i].texts, 0);
		uar_loop_run(f.loop);
		CHECK_INT(s[i].result.failure, UAR_MODEL_FAIL_NONE);
		CHECK_STR(uar_str_c(s[i].stop), "stop");
		CHECK_STR(uar_str_c(s[i].name), "scripted");
	}
	CHECK(strstr(s[0].text.p, "\"second \xe2\x82\xac\"") != NULL);
	CHECK(strstr(s[0].text.p, "turns before this one: 1") != NULL);
	CHECK_STR(uar_buf_str(&s[1].text), s[0].text.p);
	CHECK_INT(s[0].result.usage.output_tokens, s[0].texts);
	CHECK_INT(s[0].result.usage.input_tokens, 4);
	CHECK_INT(s[0].result.usage.total_tokens, 4 + s[0].texts);
	heard_fini(&s[0]);
	heard_fini(&s[1]);
	tear_down(&f);
}

TEST(scripted_cuts_long_quotes_between_characters, "")
{
	static char euros[3 * 200 + 1];
	struct uar_model_part part = uar_model_text_part(uar_str_n(euros, 600));
	struct uar_model_message m = { UAR_MODEL_USER, &part, 1 };
	struct uar_model_request r = { .model = UAR_STR("scripted"),
				       .messages = &m,
				       .message_count = 1 };
	struct fixture f;
	struct heard s;

	for (int i = 0; i < 200; i++)
		memcpy(euros + 3 * i, "\xe2\x82\xac", 3);
	REQUIRE(set_up(&f, 0));
	heard_init(&s, f.model, f.loop);
	REQUIRE(heard_start(&s, &r) == UAR_OK);
	uar_loop_run(f.loop);
	CHECK(strstr(s.text.p, "\xe2\x82\xac...\"") != NULL);
	heard_fini(&s);
	tear_down(&f);
}

TEST(scripts_play_as_named, "")
{
	static const struct {
		const char *name;
		enum uar_model_failure failure;
		unsigned min_texts, max_texts;
		bool thinks;
	} plays[] = {
		{ "scripted", UAR_MODEL_FAIL_NONE, 20, 200, false },
		{ "scripted-reasoning", UAR_MODEL_FAIL_NONE, 20, 200, true },
		{ "scripted-fail", UAR_MODEL_FAIL_PROVIDER, 3, 3, false },
		{ "scripted-long:0", UAR_MODEL_FAIL_NONE, 0, 0, false },
		{ "scripted-long:2500", UAR_MODEL_FAIL_NONE, 2500, 2500, false },
		{ "scripted-long", UAR_MODEL_FAIL_NONE, 1000, 1000, false },
	};
	struct fixture f;

	REQUIRE(set_up(&f, 0));
	for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
		struct heard s;

		heard_init(&s, f.model, f.loop);
		if (heard_hello(&s, plays[i].name, 0))
			uar_loop_run(f.loop);
		CHECK_INT(s.dones, 1);
		CHECK_INT(s.result.failure, plays[i].failure);
		CHECK(!s.result.retryable);
		CHECK_MSG(s.texts >= plays[i].min_texts && s.texts <= plays[i].max_texts,
			  "%s: %u texts", plays[i].name, s.texts);
		CHECK_INT(s.thoughts > 0, plays[i].thinks);
		heard_fini(&s);
	}
	tear_down(&f);
}

TEST(scripted_counts_turns_in_words, "")
{
	const struct uar_model_message talk[] = {
		SAYS(USER, "a"),
		SAYS(USER, "b"),
		SAYS(USER, "c"),
	};
	static const char *const said[] = { "were 0 turns ", "was 1 turn ", "were 2 turns " };
	struct fixture f;

	REQUIRE(set_up(&f, 0));
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		struct uar_model_request r = { .model = UAR_STR("scripted-reasoning"),
					       .messages = talk,
					       .message_count = i + 1 };
		struct heard s;

		heard_init(&s, f.model, f.loop);
		REQUIRE(heard_start(&s, &r) == UAR_OK);
		uar_loop_run(f.loop);
		CHECK_MSG(strstr(s.reasoning.p, said[i]) != NULL, "%s", s.reasoning.p);
		heard_fini(&s);
	}
	tear_down(&f);
}

TEST(scripted_refuses_names_it_does_not_know, "")
{
	static const char *const names[] = { "",
					     "gpt",
					     "scripted-",
					     "scripted:3",
					     "scripted-long:",
					     "scripted-long:x",
					     "scripted-long:99999999" };
	struct fixture f;
	struct heard s;

	REQUIRE(set_up(&f, 0));
	heard_init(&s, f.model, f.loop);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct uar_model_request r = { .model = uar_str_c(names[i]) };

		CHECK(heard_start(&s, &r) == UAR_EINVALID);
	}
	tear_down(&f);
}

TEST(scripted_paces_pauses_and_cancels, "")
{
	struct fixture f;
	struct heard s, stalled, c;

	REQUIRE(set_up(&f, 100));
	heard_init(&s, f.model, f.loop);
	heard_init(&stalled, f.model, f.loop);
	heard_init(&c, f.model, f.loop);
	s.pause_on_text = c.cancel_on_text = true;
	REQUIRE(heard_hello(&stalled, "scripted-stall", 0)); /* until the model goes */
	REQUIRE(heard_hello(&s, "scripted", 0));
	heard_resume_after(&s, 20000);
	uar_loop_run(f.loop);
	CHECK_INT(s.dones, 1);
	CHECK(stalled.texts > 0);
	CHECK_INT(stalled.dones, 0);
	REQUIRE(heard_hello(&c, "scripted-slow", 0));
	uar_loop_run(f.loop);
	CHECK_INT(c.texts, 1);
	CHECK_INT(c.dones, 0);
	heard_fini(&s);
	heard_fini(&stalled);
	heard_fini(&c);
	tear_down(&f);
}
