/* models_test.c - providers by name, and what their models can do. */
#include "test.h"
#include "heard.h"

#include "base/alloc.h"
#include "model/models.h"

/* --- providers that only have a name ------------------------------------------------ */

static unsigned destroyed;

static void destroy(struct uar_model *m)
{
	destroyed++;
	uar_free(m);
}

static const struct uar_model_ops ops = { .abi = 2, .size = sizeof ops, .destroy = destroy };

static struct uar_model *make(const char *name)
{
	struct uar_model *m = uar_zalloc(sizeof *m);

	if (m)
		*m = (struct uar_model){ &ops, name };
	return m;
}

static struct uar_models *make_models(const char *const *names, size_t n)
{
	struct uar_models *m = NULL;
	struct uar_error error = { 0 };

	if (!CHECK(uar_models_create(&m) == UAR_OK))
		exit(1);
	for (size_t i = 0; i < n; i++)
		CHECK_MSG(uar_models_take(m, make(names[i]), NULL, 0, &error) == UAR_OK, "%s",
			  uar_error_text(&error));
	return m;
}

TEST(names_of_models_find_their_provider, "")
{
	static const char *const names[] = { "scripted", "openai", "claude" };
	static const struct {
		const char *name, *provider, *model;
	} cases[] = {
		{ "claude/claude-opus-5", "claude", "claude-opus-5" },
		{ "openai/gpt-5", "openai", "gpt-5" },
		{ "gpt-5", "openai", "gpt-5" },
		{ "meta-llama/llama-3", "openai", "meta-llama/llama-3" },
		{ "openai/meta-llama/llama-3", "openai", "meta-llama/llama-3" },
		{ "scripted", "scripted", "scripted" },
		{ "scripted-long:5", "scripted", "scripted-long:5" },
		{ "scripted/scripted-slow", "scripted", "scripted-slow" },
	};
	struct uar_models *m = make_models(names, ARRAY_LEN(names));
	struct uar_model_target t;
	struct uar_error error = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (!CHECK(uar_models_resolve(m, uar_str_c(cases[i].name), &t, &error) == UAR_OK))
			continue;
		CHECK_STR(t.provider, cases[i].provider);
		CHECK_STR(t.name, cases[i].model);
		CHECK_STR(uar_str_c(t.model->provider), cases[i].provider);
	}
	CHECK_INT(uar_models_resolve(m, UAR_STR("claude/"), &t, &error), UAR_EINVALID);
	CHECK_INT(uar_models_count(m), 3);
	CHECK(uar_models_at(m, 3) == NULL);
	uar_models_destroy(m);
}

TEST(without_a_provider_the_names_are_told, "")
{
	static const char *const names[] = { "scripted" };
	struct uar_models *m = make_models(names, 1);
	struct uar_model_target t;
	struct uar_error error = { 0 };

	CHECK_INT(uar_models_resolve(m, UAR_STR("gpt-5"), &t, &error), UAR_ENOTFOUND);
	CHECK(strstr(uar_error_text(&error), "one of: scripted") != NULL);
	uar_models_destroy(m);
	uar_models_destroy(NULL);
}

TEST(bad_providers_are_refused_and_freed, "")
{
	static const char *const bad[] = { "", "Open AI", "a/b", "openai",
					   "a123456789012345678901234567890123" };
	static const char *const names[] = { "openai" };
	struct uar_models *m = make_models(names, 1);
	struct uar_error error = { 0 };

	destroyed = 0;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(uar_models_take(m, make(bad[i]), NULL, 0, &error) != UAR_OK);
	CHECK_INT(destroyed, ARRAY_LEN(bad));
	uar_models_destroy(m);
	CHECK_INT(destroyed, ARRAY_LEN(bad) + 1);
}

TEST(what_a_model_can_do_is_known, "PROV-01")
{
	static const struct uar_model_row rows[] = {
		{ .name = { "mine-*", 6 }, .images = true, .context_tokens = 5000 },
		{ .name = { "gpt-5", 5 }, .tools = false },
	};
	struct uar_models *m = NULL;
	struct uar_model_row row;
	struct uar_error error = { 0 };

	REQUIRE(uar_models_create(&m) == UAR_OK);
	REQUIRE(uar_models_take(m, make("x"), rows, 2, &error) == UAR_OK);
	row = uar_models_row(m, UAR_STR("x"), UAR_STR("mine-7"));
	CHECK(row.images && !row.tools);
	CHECK_INT(row.context_tokens, 5000);
	row = uar_models_row(m, UAR_STR("x"), UAR_STR("gpt-5"));
	CHECK(!row.tools && !row.reasoning);
	row = uar_models_row(m, UAR_STR("x"), UAR_STR("gpt-5-mini"));
	CHECK(row.tools && row.reasoning && row.structured == UAR_STRUCTURED_NATIVE);
	row = uar_models_row(m, UAR_STR("x"), UAR_STR("anthropic/claude-3-7-sonnet"));
	CHECK(row.thinking_budget && row.structured == UAR_STRUCTURED_TOOL);
	row = uar_models_row(m, UAR_STR("x"), UAR_STR("who-knows"));
	CHECK(row.tools && !row.reasoning && row.name.n == 0);
	uar_models_destroy(m);
}

TEST(requests_are_made_to_fit, "")
{
	struct uar_model_row row = { .reasoning = true,
				     .thinking_budget = true,
				     .structured = UAR_STRUCTURED_TOOL,
				     .max_output_tokens = 100 };
	struct uar_model_request r = { .effort = UAR_EFFORT_LOW, .max_tokens = 500 };

	uar_models_fit(&row, &r);
	CHECK(r.reasons && r.output.by_tool);
	CHECK_INT(r.thinking_tokens, 2048);
	CHECK_INT(r.max_tokens, 100);
	r = (struct uar_model_request){ .effort = UAR_EFFORT_DEFAULT };
	uar_models_fit(&row, &r);
	CHECK_INT(r.thinking_tokens, 0);
	CHECK_INT(r.max_tokens, 0);
}
