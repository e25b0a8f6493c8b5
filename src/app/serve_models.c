/* serve_models.c - the providers of models that a server has.
 *
 * In order: those of OPENAI_* variables and settings, the table `providers`, those of
 * ANTHROPIC_* and OLLAMA_HOST. A name in the table takes the place of a variable's. */
#include "app/limits.h"
#include "app/providers.h"
#include "app/serve_int.h"
#include "loop/limits.h"

struct maker {
	struct server *s;
	struct uar_error *error;
	struct uar_buf said; /* "openai, ollama" */
};

static uar_err add_provider(struct maker *m, const struct uar_model_wire_options *o,
			    const struct uar_provider_setting *p)
{
	struct uar_model_wire_options all = *o;
	struct uar_model *model;
	struct server *s = m->s;
	uar_err e = UAR_OK;

	if (uar_models_find(s->models, uar_str_c(o->provider)))
		return p ? uar_error_set(m->error, UAR_ECONFIG, "there are two providers %s",
					 o->provider)
			 : UAR_OK;
	e = uar_server_need_client(s, m->error);
	if (e)
		return e;
	all.client = s->net.client;
	e = uar_model_wire_create(&all, &model, m->error);
	if (!e)
		e = uar_models_take(s->models, model, p ? p->rows : NULL, p ? p->row_count : 0,
				    m->error);
	if (!e)
		uar_buf_printf(&m->said, "%s%s", m->said.n ? ", " : "", o->provider);
	return e;
}

static uar_err add_setting(struct maker *m, const struct uar_provider_setting *p)
{
	struct uar_buf key = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	uar_err e = uar_providers_key(p, &key, m->error);
	struct uar_model_wire_options o = {
		.dialect = p->dialect,
		.provider = p->name,
		.base_url = p->base_url,
		.api_key = key.p,
		.key_header = p->key_header,
		.headers = p->headers,
	};

	if (!e)
		e = add_provider(m, &o, p);
	uar_buf_fini(&key);
	return e;
}

static bool has_setting(const struct uar_provider_settings *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->at[i].name, name) == 0)
			return true;
	return false;
}

static uar_err add_openai(struct maker *m)
{
	const struct uar_config *c = &m->s->config->value;
	struct uar_model_wire_options o = {
		.dialect = UAR_DIALECT_OPENAI_CHAT,
		.provider = "openai",
		.base_url =
			c->openai_base_url[0] ? c->openai_base_url : "https://api.openai.com/v1",
		.api_key = c->openai_api_key,
	};

	return c->openai_base_url[0] || c->openai_api_key[0] ? add_provider(m, &o, NULL) : UAR_OK;
}

static uar_err add_anthropic(struct maker *m)
{
	const struct uar_config *c = &m->s->config->value;
	struct uar_model_wire_options o = {
		.dialect = UAR_DIALECT_ANTHROPIC,
		.provider = "anthropic",
		.base_url = c->anthropic_base_url[0] ? c->anthropic_base_url
						     : "https://api.anthropic.com",
		.api_key = c->anthropic_api_key,
	};

	return c->anthropic_api_key[0] ? add_provider(m, &o, NULL) : UAR_OK;
}

static uar_err add_ollama(struct maker *m)
{
	const struct uar_config *c = &m->s->config->value;
	struct uar_buf url = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	struct uar_model_wire_options o = { .dialect = UAR_DIALECT_OPENAI_CHAT,
					    .provider = "ollama" };
	uar_err e = c->ollama_host[0] ? uar_providers_ollama(c->ollama_host, &url) : UAR_OK;

	o.base_url = url.p;
	if (!e && url.n)
		e = add_provider(m, &o, NULL);
	uar_buf_fini(&url);
	return e;
}

static uar_err add_all(struct maker *m, const struct uar_provider_settings *table)
{
	uar_err e = has_setting(table, "openai") ? UAR_OK : add_openai(m);

	for (size_t i = 0; i < table->count && !e; i++)
		e = add_setting(m, &table->at[i]);
	if (!e)
		e = add_anthropic(m);
	return e ? e : add_ollama(m);
}

static uar_err read_routing(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_price_settings prices;
	uar_err e;

	e = uar_prices_setting_read(uar_str_c(c->prices), &s->routing.arena, &prices, error);
	if (!e)
		e = uar_models_set_prices(s->models, prices.at, prices.count);
	if (!e)
		e = uar_routing_setting_read(uar_str_c(c->routing), &s->routing.arena,
					     &s->routing.policy, error);
	return e;
}

/* The first model of the policy is what agents have that name none. */
static uar_err choose_routed(struct server *s)
{
	const struct uar_model_choice *first = &s->routing.policy.at[0];
	struct uar_model *model = uar_models_find(s->models, first->provider);

	if (!model)
		return UAR_OK;
	s->routing.chosen =
		(struct uar_model_target){ .model = model,
					   .provider = uar_str_c(model->provider),
					   .name = uar_arena_str(&s->routing.arena, first->model) };
	return s->routing.chosen.name.p ? UAR_OK : UAR_ENOMEM;
}

/* A key or an address alone may be meant for other programs. */
static uar_err choose_model(struct maker *m)
{
	const struct uar_config *c = &m->s->config->value;
	struct server *s = m->s;

	if (!m->said.n) {
		if (c->model[0])
			uar_log(&s->log, UAR_LOG_WARN, "model.none",
				{ "text",
				  UAR_STR("a model but no provider: the scripted model answers; "
					  "set OPENAI_API_KEY, ANTHROPIC_API_KEY, OLLAMA_HOST or "
					  "`providers`") },
				{ "model", uar_str_c(c->model) });
		return UAR_OK;
	}
	if (!c->model[0] && s->routing.policy.count)
		return choose_routed(s);
	if (c->model[0])
		return uar_models_resolve(s->models, uar_str_c(c->model), &s->routing.chosen,
					  m->error);
	if (c->openai_base_url[0])
		return uar_error_set(m->error, UAR_ECONFIG,
				     "a provider is configured but no model: set UAR_MODEL");
	uar_log(&s->log, UAR_LOG_WARN, "model.none",
		{ "text", UAR_STR("a key but no model: set UAR_MODEL to use it") },
		{ "providers", uar_buf_str(&m->said) });
	return UAR_OK;
}

static uar_err make_scripted(struct server *s, struct uar_error *error)
{
	struct uar_model_scripted_options o = {
		.sched = uar_loop_sched(s->loop),
		.token_us = s->config->value.scripted_token_ms * 1000,
	};
	struct uar_model *scripted;
	uar_err e = uar_models_create(&s->models);

	if (!e)
		e = uar_model_scripted_create(&o, &scripted);
	return e ? e : uar_models_take(s->models, scripted, NULL, 0, error);
}

static uar_err make_providers(struct maker *m)
{
	struct server *s = m->s;
	struct uar_provider_settings table;
	struct uar_arena arena;
	uar_err e = make_scripted(s, m->error);

	uar_arena_init(&s->routing.arena, 0);
	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_providers_read(uar_str_c(s->config->value.providers), &arena, &table,
				       m->error);
	if (!e)
		e = add_all(m, &table);
	uar_arena_fini(&arena);
	return e ? e : read_routing(s, m->error);
}

uar_err uar_server_make_providers(struct server *s, struct uar_error *error)
{
	struct maker m = { .s = s, .error = error, .said = uar_buf_make(UAR_LIMIT_ERROR_TEXT) };
	uar_err e = make_providers(&m);

	uar_buf_fini(&m.said);
	return e;
}

uar_err uar_server_make_models(struct server *s, struct uar_error *error)
{
	struct maker m = { .s = s, .error = error, .said = uar_buf_make(UAR_LIMIT_ERROR_TEXT) };
	uar_err e = make_providers(&m);

	if (!e)
		e = choose_model(&m);
	if (!e && s->routing.chosen.model)
		uar_log(&s->log, UAR_LOG_INFO, "model.chosen",
			{ "provider", s->routing.chosen.provider },
			{ "model", s->routing.chosen.name }, { "providers", uar_buf_str(&m.said) });
	uar_buf_fini(&m.said);
	return e;
}
