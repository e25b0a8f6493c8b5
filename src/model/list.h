/* list.h - the models that a provider offers, as it says itself. */
#ifndef UAR_MODEL_LIST_H
#define UAR_MODEL_LIST_H

#include "model/model.h"

struct uar_models_listed {
	uar_err err; /* UAR_OK: the provider has answered with a list */
	int status;  /* of its answer; 0: none came */
	const char *reason;
	const uar_str *names; /* at most UAR_LIMIT_MODELS_LISTED */
	size_t count;
};
typedef void uar_model_listed_fn(void *ctx, const struct uar_models_listed *r);

/* `done` is called once, later. UAR_ESKIP: it is no provider that is reached over a network. */
UAR_MUST_CHECK uar_err uar_model_list(struct uar_model *m, uar_model_listed_fn *done, void *ctx,
				      struct uar_error *error);

/* Its dialect and the address it is asked at, which may hold secrets of whoever set it. False: it
 * is reached over no network. */
bool uar_model_reached(const struct uar_model *m, const char **dialect, const char **url);

#endif
