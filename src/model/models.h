/* models.h - the providers of a server by name, and what their models can do.
 *
 * Filled while a server starts; unchanged while it runs. A model is named "PROVIDER/MODEL"; what
 * stands before the first slash is a provider only if there is one of that name, so that names
 * such as "meta-llama/llama-3" reach the default provider as they are. */
#ifndef UAR_MODEL_MODELS_H
#define UAR_MODEL_MODELS_H

#include "model/model.h"

enum uar_model_structured {
	UAR_STRUCTURED_NONE,   /* the answer can only be asked for in words */
	UAR_STRUCTURED_NATIVE, /* the provider takes a schema */
	UAR_STRUCTURED_TOOL,   /* as the input of a tool */
};

/* What a model can do. */
struct uar_model_row {
	uar_str name; /* of the model, or the beginning of names and a "*" */
	bool tools, images, files, reasoning, citations, cache;
	bool thinking_budget; /* wants tokens for its reasoning instead of an effort */
	enum uar_model_structured structured;
	int64_t context_tokens, max_output_tokens; /* 0: not known */
	int64_t latency_ms;			   /* to the first token, usually; 0: not known */
	uar_str classes; /* JSON array of the kinds of task it is made for; empty: any */
};

/* What a million tokens cost, in US dollars; all 0: not known. */
struct uar_model_price {
	uar_str name; /* as that of a row, perhaps with "PROVIDER/" before it */
	double input, cached, output;
};

struct uar_models;
UAR_MUST_CHECK uar_err uar_models_create(struct uar_models **out);
/* Destroys the providers, too. NULL is fine. */
void uar_models_destroy(struct uar_models *m);

/* Takes the provider, whose name is model->provider, also on error. `rows` (copied) come before
 * those that are part of the program. The first provider that is not "scripted" is the default.
 * UAR_ECONFLICT: the name is taken; UAR_EINVALID: it is none ([a-z0-9_-]+); UAR_ETOOBIG. */
UAR_MUST_CHECK uar_err uar_models_take(struct uar_models *m, struct uar_model *model,
				       const struct uar_model_row *rows, size_t row_count,
				       struct uar_error *error);
size_t uar_models_count(const struct uar_models *m);
/* By its place, NULL past the end; by its name, NULL when there is none. */
struct uar_model *uar_models_at(const struct uar_models *m, size_t index);
struct uar_model *uar_models_find(const struct uar_models *m, uar_str provider);
/* A row that was given with the provider at that place; NULL past the end. */
const struct uar_model_row *uar_models_own_row(const struct uar_models *m, size_t provider,
					       size_t index);
/* What the provider's model of that name can do: a row of its own, else one that is part of the
 * program, else what most can. `row.name` is empty when nothing is known of it. */
struct uar_model_row uar_models_row(const struct uar_models *m, uar_str provider, uar_str model);

/* Prices that come before those that are part of the program; copied. Once. */
UAR_MUST_CHECK uar_err uar_models_set_prices(struct uar_models *m,
					     const struct uar_model_price *prices, size_t count);
struct uar_model_price uar_models_price(const struct uar_models *m, uar_str provider,
					uar_str model);

/* A model that was asked for by name; all borrowed from the name and the providers. */
struct uar_model_target {
	struct uar_model *model;
	uar_str provider, name;
	struct uar_model_row row;
};
/* UAR_ENOTFOUND with the names that there are, UAR_EINVALID for a name without a model. */
UAR_MUST_CHECK uar_err uar_models_resolve(const struct uar_models *m, uar_str name,
					  struct uar_model_target *out, struct uar_error *error);
/* Makes a request what that model understands: its reasoning, its structured output, its limit
 * of tokens. A request that wants more than the model can is not refused here. */
void uar_models_fit(const struct uar_model_row *row, struct uar_model_request *r);

#endif
