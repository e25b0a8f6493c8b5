/* model.c - what all providers share: names. */
#include "model/model.h"

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
