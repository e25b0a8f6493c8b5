/* providers.h - the providers of models as people look at them, and whether one answers. */
#ifndef UAR_WORK_PROVIDERS_H
#define UAR_WORK_PROVIDERS_H

#include "json/jw.h"

struct uar_workers;

/* Members of an object that is open: "default", the model that agents use which name none, and
 * "providers", each with its dialect and address. Called for each provider, inside its object. */
typedef void uar_provider_more_fn(void *ctx, struct uar_jw *w, uar_str provider);
void uar_workers_write_providers(const struct uar_workers *work, struct uar_jw *w,
				 uar_provider_more_fn *more, void *ctx);

/* What a provider says when it is asked for its models. Belongs to the caller and stays in place
 * until `done`, which is not called once the workers are gone. */
struct uar_provider_check {
	uar_str provider;
	void (*done)(struct uar_provider_check *op);
	void *ctx;
	/* out, valid inside done */
	bool good;
	int http_status;      /* 0: no answer came */
	const char *reason;   /* of a failure; perhaps NULL */
	const uar_str *names; /* of models */
	size_t count;
};
/* UAR_ENOTFOUND: there is no such provider. One that is part of the program is always good. */
UAR_MUST_CHECK uar_err uar_workers_check_provider(const struct uar_workers *work,
						  struct uar_provider_check *op,
						  struct uar_error *error);

/* What the program knows of a model: abilities, limits, prices; members of an open object. */
void uar_workers_write_model(const struct uar_workers *work, struct uar_jw *w, uar_str provider,
			     uar_str model);

#endif
