/* models.c - providers by name. */
#include "model/models.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "model/limits.h"

struct provider {
	struct uar_model *model;
	struct uar_model_row *rows;
	size_t row_count;
};

struct uar_models {
	struct provider at[UAR_LIMIT_MODEL_PROVIDERS];
	size_t count;
	struct uar_model_price *prices;
	size_t price_count;
	struct uar_arena arena; /* of rows and prices */
};

/* What is known of models at the time of this release, by the names that their makers gave them;
 * the first row that fits counts. Servers that pass them on put a word and a slash before. */
static const struct uar_model_row known[] = {
#define M(NAME, TOOLS, IMAGES, FILES, REASONING, CACHE, BUDGET, STRUCTURED, CONTEXT, OUTPUT)       \
	{                                                                                          \
		.name = { NAME, sizeof(NAME) - 1 },                                                \
		.tools = TOOLS,                                                                    \
		.images = IMAGES,                                                                  \
		.files = FILES,                                                                    \
		.reasoning = REASONING,                                                            \
		.cache = CACHE,                                                                    \
		.thinking_budget = BUDGET,                                                         \
		.structured = UAR_STRUCTURED_##STRUCTURED,                                         \
		.context_tokens = CONTEXT,                                                         \
		.max_output_tokens = OUTPUT,                                                       \
	},
#include "model/known.def"
#undef M
};

static const struct uar_model_price list_prices[] = {
#define P(NAME, INPUT, CACHED, OUTPUT) { { NAME, sizeof(NAME) - 1 }, INPUT, CACHED, OUTPUT },
#include "model/price.def"
#undef P
};

uar_err uar_models_create(struct uar_models **out)
{
	struct uar_models *m = uar_zalloc(sizeof *m);

	if (!m)
		return UAR_ENOMEM;
	uar_arena_init(&m->arena, 0);
	*out = m;
	return UAR_OK;
}

void uar_models_destroy(struct uar_models *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		uar_model_destroy(m->at[i].model);
	uar_arena_fini(&m->arena);
	uar_free(m);
}

/* --- adding ------------------------------------------------------------------------ */

static bool is_name(uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-')
			return false;
	}
	return s.n > 0 && s.n <= UAR_LIMIT_PROVIDER_NAME;
}

static uar_err check_name(const struct uar_models *m, uar_str name, struct uar_error *error)
{
	if (!is_name(name))
		return uar_error_set(error, UAR_EINVALID,
				     "\"%.*s\" is no name of a provider: use 1 to %d of a-z, 0-9, "
				     "_ and -",
				     UAR_FMT(uar_str_utf8_prefix(name, 40)),
				     UAR_LIMIT_PROVIDER_NAME);
	if (uar_models_find(m, name))
		return uar_error_set(error, UAR_ECONFLICT, "there are two providers \"%.*s\"",
				     UAR_FMT(name));
	if (m->count == UAR_LIMIT_MODEL_PROVIDERS)
		return uar_error_set(error, UAR_ETOOBIG, "there are more than %d providers",
				     UAR_LIMIT_MODEL_PROVIDERS);
	return UAR_OK;
}

static uar_err copy_rows(struct uar_models *m, struct provider *p, const struct uar_model_row *rows,
			 size_t n)
{
	p->rows = n ? uar_arena_alloc(&m->arena, n * sizeof *p->rows) : NULL;
	if (n && !p->rows)
		return UAR_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		p->rows[i] = rows[i];
		p->rows[i].name = uar_arena_str(&m->arena, rows[i].name);
		p->rows[i].classes = uar_arena_str(&m->arena, rows[i].classes);
		if (!p->rows[i].name.p || !p->rows[i].classes.p)
			return UAR_ENOMEM;
	}
	p->row_count = n;
	return UAR_OK;
}

uar_err uar_models_take(struct uar_models *m, struct uar_model *model,
			const struct uar_model_row *rows, size_t row_count, struct uar_error *error)
{
	struct provider p = { .model = model };
	uar_err e = check_name(m, uar_str_c(model->provider), error);

	if (!e && copy_rows(m, &p, rows, row_count))
		e = uar_error_set(error, UAR_ENOMEM, "out of memory");
	if (e)
		uar_model_destroy(model);
	else
		m->at[m->count++] = p;
	return e;
}

/* --- looking ------------------------------------------------------------------------- */

size_t uar_models_count(const struct uar_models *m)
{
	return m->count;
}

struct uar_model *uar_models_at(const struct uar_models *m, size_t index)
{
	return index < m->count ? m->at[index].model : NULL;
}

const struct uar_model_row *uar_models_own_row(const struct uar_models *m, size_t provider,
					       size_t index)
{
	if (provider >= m->count || index >= m->at[provider].row_count)
		return NULL;
	return &m->at[provider].rows[index];
}

static const struct provider *find(const struct uar_models *m, uar_str name)
{
	for (size_t i = 0; i < m->count; i++)
		if (uar_str_is(name, m->at[i].model->provider))
			return &m->at[i];
	return NULL;
}

struct uar_model *uar_models_find(const struct uar_models *m, uar_str provider)
{
	const struct provider *p = find(m, provider);

	return p ? p->model : NULL;
}

static bool fits(uar_str pattern, uar_str name)
{
	if (uar_str_ends(pattern, UAR_STR("*")))
		return uar_str_starts(name, uar_str_n(pattern.p, pattern.n - 1));
	return uar_str_eq(pattern, name);
}

static const struct uar_model_row *find_row(const struct uar_model_row *rows, size_t n,
					    uar_str name)
{
	for (size_t i = 0; i < n; i++)
		if (fits(rows[i].name, name))
			return &rows[i];
	return NULL;
}

struct uar_model_row uar_models_row(const struct uar_models *m, uar_str provider, uar_str model)
{
	static const struct uar_model_row usual = { .name = { "", 0 },
						    .tools = true,
						    .structured = UAR_STRUCTURED_NATIVE };
	const struct provider *p = find(m, provider);
	const struct uar_model_row *row = p ? find_row(p->rows, p->row_count, model) : NULL;
	uar_str maker = model;

	while (!row && maker.n) { /* "anthropic/claude-x" of a router is "claude-x" */
		row = find_row(known, ARRAY_LEN(known), maker);
		maker = uar_str_from(maker, uar_str_find(maker, '/') + 1);
	}
	return row ? *row : usual;
}

/* --- prices ------------------------------------------------------------------------------ */

uar_err uar_models_set_prices(struct uar_models *m, const struct uar_model_price *prices,
			      size_t count)
{
	m->prices = uar_arena_alloc(&m->arena, (count + 1) * sizeof *m->prices);
	if (!m->prices)
		return UAR_ENOMEM;
	for (m->price_count = 0; m->price_count < count; m->price_count++) {
		struct uar_model_price *p = &m->prices[m->price_count];

		*p = prices[m->price_count];
		p->name = uar_arena_str(&m->arena, p->name);
		if (!p->name.p)
			return UAR_ENOMEM;
	}
	return UAR_OK;
}

static const struct uar_model_price *find_price(const struct uar_model_price *prices, size_t n,
						uar_str name)
{
	for (size_t i = 0; i < n; i++)
		if (fits(prices[i].name, name))
			return &prices[i];
	return NULL;
}

/* A price may be set for one provider ("claude/claude-*") or for all that have the model. */
static const struct uar_model_price *set_price(const struct uar_models *m, uar_str provider,
					       uar_str model)
{
	char full[UAR_LIMIT_PROVIDER_NAME + UAR_LIMIT_MODEL_NAME + 2];
	const struct uar_model_price *found = NULL;
	int n = snprintf(full, sizeof full, "%.*s/%.*s", UAR_FMT(provider), UAR_FMT(model));

	if (n > 0 && (size_t)n < sizeof full)
		found = find_price(m->prices, m->price_count, uar_str_c(full));
	return found ? found : find_price(m->prices, m->price_count, model);
}

struct uar_model_price uar_models_price(const struct uar_models *m, uar_str provider, uar_str model)
{
	static const struct uar_model_price unknown = { .name = { "", 0 } };
	const struct uar_model_price *found = set_price(m, provider, model);
	uar_str maker = model;

	while (!found && maker.n) {
		found = find_price(list_prices, ARRAY_LEN(list_prices), maker);
		maker = uar_str_from(maker, uar_str_find(maker, '/') + 1);
	}
	return found ? *found : unknown;
}

/* --- resolving --------------------------------------------------------------------------- */

static const struct provider *default_provider(const struct uar_models *m)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->at[i].model->provider, "scripted") != 0)
			return &m->at[i];
	return NULL;
}

static uar_err refuse(const struct uar_models *m, uar_str name, struct uar_error *error)
{
	struct uar_buf names = uar_buf_make(UAR_LIMIT_ERROR_TEXT / 2);

	for (size_t i = 0; i < m->count; i++)
		uar_buf_printf(&names, "%s%s", i ? ", " : "", m->at[i].model->provider);
	uar_error_set(error, UAR_ENOTFOUND,
		      "there is no provider for the model \"%.*s\"; write PROVIDER/MODEL with one "
		      "of: %.*s",
		      UAR_FMT(uar_str_utf8_prefix(name, 60)), UAR_FMT(uar_buf_str(&names)));
	uar_buf_fini(&names);
	return UAR_ENOTFOUND;
}

uar_err uar_models_resolve(const struct uar_models *m, uar_str name, struct uar_model_target *out,
			   struct uar_error *error)
{
	uar_str rest, before = uar_str_cut(name, '/', &rest);
	const struct provider *p = before.n < name.n ? find(m, before) : NULL;
	uar_str model = p ? rest : name;

	if (!p && uar_str_starts(name, UAR_STR("scripted")))
		p = find(m, UAR_STR("scripted"));
	if (!p)
		p = default_provider(m);
	if (!p)
		return refuse(m, name, error);
	if (!model.n)
		return uar_error_set(error, UAR_EINVALID,
				     "\"%.*s\" names no model: write PROVIDER/MODEL",
				     UAR_FMT(uar_str_utf8_prefix(name, 60)));
	*out = (struct uar_model_target){
		.model = p->model,
		.provider = uar_str_c(p->model->provider),
		.name = model,
		.row = uar_models_row(m, uar_str_c(p->model->provider), model),
	};
	return UAR_OK;
}

/* --- fitting ------------------------------------------------------------------------------- */

static int64_t budget_of(enum uar_model_effort effort)
{
	static const int64_t tokens[UAR_EFFORT_COUNT] = {
		[UAR_EFFORT_MINIMAL] = 1024, [UAR_EFFORT_LOW] = 2048,  [UAR_EFFORT_MEDIUM] = 8192,
		[UAR_EFFORT_HIGH] = 16384,   [UAR_EFFORT_MAX] = 32768,
	};

	return tokens[effort];
}

void uar_models_fit(const struct uar_model_row *row, struct uar_model_request *r)
{
	r->reasons = row->reasoning;
	if (row->thinking_budget && r->thinking_tokens == 0)
		r->thinking_tokens = budget_of(r->effort);
	if (row->structured == UAR_STRUCTURED_TOOL)
		r->output.by_tool = true;
	if (row->max_output_tokens && r->max_tokens > row->max_output_tokens)
		r->max_tokens = row->max_output_tokens;
}
