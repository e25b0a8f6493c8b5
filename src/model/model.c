/* model.c - what all providers share: names, and looks into messages. */
#include "model/model.h"

const char *const uar_model_effort_names[UAR_EFFORT_COUNT] = {
	[UAR_EFFORT_DEFAULT] = "default", [UAR_EFFORT_NONE] = "none",
	[UAR_EFFORT_MINIMAL] = "minimal", [UAR_EFFORT_LOW] = "low",
	[UAR_EFFORT_MEDIUM] = "medium",	  [UAR_EFFORT_HIGH] = "high",
	[UAR_EFFORT_MAX] = "max",
};

const char *const uar_model_dialect_names[UAR_DIALECT_COUNT] = {
	[UAR_DIALECT_OPENAI_CHAT] = "openai_chat",
	[UAR_DIALECT_OPENAI_RESPONSES] = "openai_responses",
	[UAR_DIALECT_ANTHROPIC] = "anthropic",
};

const struct uar_model_part *uar_model_find_part(const struct uar_model_message *m,
						 enum uar_model_part_kind kind)
{
	for (size_t i = 0; i < m->part_count; i++)
		if (m->parts[i].kind == kind)
			return &m->parts[i];
	return NULL;
}

uar_str uar_model_text_of(const struct uar_model_message *m)
{
	for (size_t i = 0; i < m->part_count; i++)
		if (m->parts[i].kind == UAR_PART_TEXT || m->parts[i].kind == UAR_PART_RESULT)
			return m->parts[i].text;
	return UAR_STR("");
}

const char *uar_model_failure_name(enum uar_model_failure f)
{
	static const char *const names[] = {
		[UAR_MODEL_FAIL_NONE] = "none",
		[UAR_MODEL_FAIL_PROVIDER] = "provider_error",
		[UAR_MODEL_FAIL_LIMIT] = "limit",
		[UAR_MODEL_FAIL_TIMEOUT] = "timeout",
		[UAR_MODEL_FAIL_NETWORK] = "network",
		[UAR_MODEL_FAIL_AUTH] = "auth",
		[UAR_MODEL_FAIL_INVALID] = "invalid_request",
	};

	return (size_t)f < ARRAY_LEN(names) ? names[f] : "provider_error";
}

void uar_model_destroy(struct uar_model *m)
{
	if (m)
		m->ops->destroy(m);
}

uar_err uar_model_embed(struct uar_model *m, const struct uar_model_embed *r,
			struct uar_error *error)
{
	if (!m->ops->embed)
		return uar_error_set(error, UAR_ENOTIMPL, "the provider %s has no embeddings",
				     m->provider);
	return m->ops->embed(m, r, error);
}
