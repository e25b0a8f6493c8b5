/* choice.c - which models may be chosen for a run, and whether one of them was. */
#include "work/choice.h"

#include "agent/registry.h"
#include "model/policy.h"

struct choices {
	const struct uar_workers *w;
	struct uar_model_choice at[UAR_LIMIT_MODEL_CHOICES]; /* the default first */
	size_t count;
	bool open; /* any other model of a provider may be chosen, too */
};

/* --- what there is --------------------------------------------------------------------------- */

static void add(struct choices *c, uar_str provider, uar_str model)
{
	size_t i = 0;

	while (i < c->count &&
	       !(uar_str_eq(c->at[i].provider, provider) && uar_str_eq(c->at[i].model, model)))
		i++;
	if (i == c->count && i < ARRAY_LEN(c->at) && uar_models_find(c->w->o.models, provider))
		c->at[c->count++] =
			(struct uar_model_choice){ .provider = provider, .model = model };
}

static void add_default(struct choices *c)
{
	const struct uar_workers_options *o = &c->w->o;

	if (o->provider)
		add(c, uar_str_c(o->provider->provider), uar_str_c(o->provider_model));
	else
		add(c, UAR_STR("scripted"), UAR_STR("scripted"));
}

/* A planner and a ranker write no answers. */
static void add_policy(struct choices *c, const struct uar_model_policy *p)
{
	for (size_t i = 0; i < p->count; i++) {
		uar_str role = uar_str_c(p->at[i].role);

		if (uar_str_is(role, "plan") || uar_str_is(role, "rank"))
			continue;
		if (p->at[i].provider.n)
			add(c, p->at[i].provider, p->at[i].model);
		else
			add_default(c);
	}
}

static void add_configured(struct choices *c)
{
	const struct uar_models *models = c->w->o.models;
	const struct uar_model_row *row;
	const struct uar_model *m;

	for (size_t i = 0; (m = uar_models_at(models, i)); i++)
		for (size_t k = 0; (row = uar_models_own_row(models, i, k)); k++)
			if (row->name.n && row->name.p[row->name.n - 1] != '*')
				add(c, uar_str_c(m->provider), row->name);
}

static bool names_provider(const struct uar_model_policy *p)
{
	size_t i = 0;

	while (i < p->count && !p->at[i].provider.n)
		i++;
	return i < p->count;
}

static void collect(struct choices *c, const struct uar_agent *a)
{
	const struct uar_json *rules = a->definition ? a->definition->def.routing.rules : NULL;
	struct uar_model_policy own = { .count = 0 };

	if (a->entry != UAR_ENTRY_LLM || !c->w->o.models)
		return;
	if (a->model) {
		add(c, UAR_STR("scripted"), uar_str_c(a->model));
		return;
	}
	if (rules && uar_model_policy_read(rules, &own, NULL))
		return; /* it was read before: never */
	c->open = !names_provider(&own);
	if (own.count)
		add_policy(c, &own);
	else if (c->w->o.routing)
		add_policy(c, c->w->o.routing);
	if (!c->open)
		return;
	add_default(c);
	add_configured(c);
}

static void put_choice(struct uar_jw *w, const char *key, const struct uar_model_choice *m)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "provider", m->provider);
	uar_jw_str(w, "model", m->model);
	uar_jw_close(w);
}

void uar_workers_write_choices(const struct uar_workers *work, const struct uar_agent *a,
			       struct uar_jw *w)
{
	struct choices c = { .w = work };

	collect(&c, a);
	if (!c.count)
		return;
	uar_jw_obj(w, "models");
	put_choice(w, "default", &c.at[0]);
	uar_jw_arr(w, "choices");
	for (size_t i = 0; i < c.count; i++)
		put_choice(w, NULL, &c.at[i]);
	uar_jw_close(w);
	uar_jw_bool(w, "open", c.open);
	uar_jw_close(w);
}

/* --- the check ------------------------------------------------------------------------------- */

/* As PROVIDER/MODEL or, of the first that has it, the model alone. */
static const struct uar_model_choice *find_listed(const struct choices *c, uar_str name)
{
	for (size_t i = 0; i < c->count; i++) {
		uar_str rest, before = uar_str_cut(name, '/', &rest);
		const struct uar_model_choice *m = &c->at[i];

		if (uar_str_eq(m->model, name) ||
		    (uar_str_eq(m->provider, before) && uar_str_eq(m->model, rest)))
			return m;
	}
	return NULL;
}

static uar_err refuse(const struct choices *c, const struct uar_agent *a, struct uar_error *error)
{
	struct uar_buf names = uar_buf_make(UAR_LIMIT_ERROR_TEXT / 2);
	uar_err e;

	for (size_t i = 0; i < c->count; i++)
		uar_buf_printf(&names, "%s%.*s/%.*s", i ? ", " : "", UAR_FMT(c->at[i].provider),
			       UAR_FMT(c->at[i].model));
	if (c->count)
		e = uar_error_set(error, UAR_EINVALID, "the agent %s may use only: %.*s", a->id,
				  UAR_FMT(uar_buf_str(&names)));
	else
		e = uar_error_set(error, UAR_EINVALID,
				  "the agent %s uses no model of this server: leave options.model "
				  "out",
				  a->id);
	uar_buf_fini(&names);
	return e;
}

static uar_err refuse_provider(const struct choices *c, uar_str provider, struct uar_error *error)
{
	struct uar_buf names = uar_buf_make(UAR_LIMIT_ERROR_TEXT / 2);
	const struct uar_model *m;

	for (size_t i = 0; (m = uar_models_at(c->w->o.models, i)); i++)
		uar_buf_printf(&names, "%s%s", i ? ", " : "", m->provider);
	uar_error_set(error, UAR_ENOTFOUND,
		      "no provider is named \"%.*s\"; write PROVIDER/MODEL with one of: %.*s",
		      UAR_FMT(uar_str_utf8_prefix(provider, 60)), UAR_FMT(uar_buf_str(&names)));
	uar_buf_fini(&names);
	return UAR_ENOTFOUND;
}

static bool is_model_name(uar_str s)
{
	size_t i = 0;

	while (i < s.n && (unsigned char)s.p[i] > ' ' && (unsigned char)s.p[i] != 0x7f)
		i++;
	return s.n && i == s.n && s.n <= UAR_LIMIT_AGENT_MODEL;
}

/* A word before the slash has to be a provider: what was misspelt would go to another one. */
static uar_err find_any(const struct choices *c, uar_str name, struct uar_model_choice *out,
			struct uar_error *error)
{
	uar_str rest, before = uar_str_cut(name, '/', &rest);
	struct uar_model_target t;
	uar_err e;

	if (before.n < name.n && !uar_models_find(c->w->o.models, before))
		return refuse_provider(c, before, error);
	e = uar_models_resolve(c->w->o.models, name, &t, error);
	if (!e && !is_model_name(t.name))
		e = uar_error_set(error, UAR_EINVALID,
				  "a model's name has 1 to %d bytes and no spaces",
				  UAR_LIMIT_AGENT_MODEL);
	if (!e && uar_str_is(t.provider, "scripted"))
		e = uar_model_scripted_check(t.name, error);
	if (!e)
		*out = (struct uar_model_choice){ .provider = t.provider, .model = t.name };
	return e;
}

uar_err rt_choice_take(const struct uar_workers *w, const struct uar_agent *a, struct rt_request *q)
{
	struct choices c = { .w = w };
	uar_str name = q->op->said.model;
	const struct uar_model_choice *listed;
	struct uar_model_choice chosen = { .role = NULL };
	uar_err e = UAR_OK;

	if (!name.n)
		return UAR_OK;
	collect(&c, a);
	listed = find_listed(&c, name);
	if (listed)
		chosen = *listed;
	else
		e = c.open ? find_any(&c, name, &chosen, &q->op->error)
			   : refuse(&c, a, &q->op->error);
	if (e) {
		uar_error_where(&q->op->error, "/options/model");
		return e;
	}
	snprintf(q->provider, sizeof q->provider, "%.*s", UAR_FMT(chosen.provider));
	snprintf(q->model, sizeof q->model, "%.*s", UAR_FMT(chosen.model));
	q->what.provider = uar_str_c(q->provider);
	q->what.model = uar_str_c(q->model);
	q->what.model_chosen = true;
	return UAR_OK;
}
