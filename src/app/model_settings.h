/* model_settings.h - the settings `routing` and `prices`.
 *
 *	routing: what model/policy.h reads
 *	prices: {"PROVIDER/MODEL* or MODEL*": {"input": 1.25, "cached": 0.125, "output": 10}}, in US
 *		dollars a million tokens */
#ifndef UAR_APP_MODEL_SETTINGS_H
#define UAR_APP_MODEL_SETTINGS_H

#include "base/arena.h"
#include "model/models.h"
#include "model/policy.h"

struct uar_price_settings {
	const struct uar_model_price *at;
	size_t count;
};

/* Into the arena. Empty text: nothing is set. UAR_ECONFIG with the place and what to write. */
UAR_MUST_CHECK uar_err uar_routing_setting_read(uar_str json, struct uar_arena *a,
						struct uar_model_policy *out,
						struct uar_error *error);
UAR_MUST_CHECK uar_err uar_prices_setting_read(uar_str json, struct uar_arena *a,
					       struct uar_price_settings *out,
					       struct uar_error *error);

#endif
