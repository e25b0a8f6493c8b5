/* providers.c - the providers of models as people look at them, and whether one answers. */
#include "work/providers.h"

#include "json/limits.h"
#include "model/list.h"
#include "work/work_int.h"

/* Where it is asked, without what may be secret: user, password and query. */
static void put_url(struct uar_jw *w, uar_str url)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_str rest, path, user;
	uar_str scheme = uar_str_cut(url, ':', &rest);
	uar_str host = uar_str_cut(uar_str_from(rest, 2), '/', &path);
	uar_str bare = uar_str_cut(host, '@', &user);

	uar_buf_add_str(&b, scheme);
	uar_buf_add_str(&b, UAR_STR("://"));
	uar_buf_add_str(&b, user.n ? user : bare);
	uar_buf_add_char(&b, '/');
	uar_buf_add_str(&b, uar_str_cut(path, '?', &rest));
	uar_jw_str(w, "url", uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void put_provider(const struct uar_model *m, struct uar_jw *w)
{
	const char *dialect, *url;

	uar_jw_cstr(w, "provider", m->provider);
	if (uar_model_reached(m, &dialect, &url)) {
		uar_jw_cstr(w, "dialect", dialect);
		put_url(w, uar_str_c(url));
	} else {
		uar_jw_cstr(w, "dialect", "built in");
		uar_jw_null(w, "url");
	}
}

void uar_workers_write_providers(const struct uar_workers *work, struct uar_jw *w,
				 uar_provider_more_fn *more, void *ctx)
{
	const struct uar_workers_options *o = &work->o;
	struct uar_model *m;

	uar_jw_obj(w, "default");
	uar_jw_cstr(w, "provider", o->provider ? o->provider->provider : o->scripted->provider);
	uar_jw_cstr(w, "model", o->provider ? o->provider_model : "scripted");
	uar_jw_close(w);
	uar_jw_arr(w, "providers");
	for (size_t i = 0; o->models && (m = uar_models_at(o->models, i)); i++) {
		uar_jw_obj(w, NULL);
		put_provider(m, w);
		more(ctx, w, uar_str_c(m->provider));
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_workers_write_model(const struct uar_workers *work, struct uar_jw *w, uar_str provider,
			     uar_str model)
{
	struct uar_model_row row;
	struct uar_model_price price;

	if (!work->o.models)
		return;
	row = uar_models_row(work->o.models, provider, model);
	price = uar_models_price(work->o.models, provider, model);
	uar_jw_bool(w, "known", row.name.n > 0);
	uar_jw_bool(w, "tools", row.tools);
	uar_jw_bool(w, "images", row.images);
	uar_jw_bool(w, "reasoning", row.reasoning);
	uar_jw_int(w, "context_tokens", row.context_tokens);
	uar_jw_double(w, "input_usd_per_mtok", price.input);
	uar_jw_double(w, "output_usd_per_mtok", price.output);
}

/* --- whether one answers -------------------------------------------------------------------- */

static void on_listed(void *ctx, const struct uar_models_listed *r)
{
	struct uar_provider_check *op = ctx;

	op->good = r->err == UAR_OK;
	op->http_status = r->status;
	op->reason = r->reason && *r->reason ? r->reason : r->err ? uar_err_text(r->err) : NULL;
	op->names = r->names;
	op->count = r->count;
	op->done(op);
}

/* A provider that needs no network is good, and that is said later as well. */
struct good_later {
	struct rt_op under_way;
	struct uar_task task;
	struct uar_sched *sched;
	struct uar_provider_check *op;
};

static void tell_good(struct uar_task *t)
{
	struct good_later *g = UAR_OWNER(t, struct good_later, task);
	struct uar_provider_check *op = g->op;

	rt_op_end(&g->under_way);
	uar_free(g);
	op->good = true;
	op->done(op);
}

static void drop_good(struct rt_op *under_way)
{
	struct good_later *g = UAR_OWNER(under_way, struct good_later, under_way);

	uar_unpost(g->sched, &g->task);
	uar_free(g);
}

static uar_err post_good(const struct uar_workers *work, struct uar_provider_check *op)
{
	struct good_later *g = uar_zalloc(sizeof *g);

	if (!g)
		return UAR_ENOMEM;
	g->op = op;
	g->sched = rt_sched(work->rt);
	g->task.fn = tell_good;
	rt_op_begin(work->rt, &g->under_way, drop_good);
	uar_post(g->sched, &g->task);
	return UAR_OK;
}

uar_err uar_workers_check_provider(const struct uar_workers *work, struct uar_provider_check *op,
				   struct uar_error *error)
{
	struct uar_model *m = work->o.models ? uar_models_find(work->o.models, op->provider) : NULL;
	uar_err e;

	if (!m)
		return uar_error_set(error, UAR_ENOTFOUND, "no provider is named \"%.*s\"",
				     UAR_FMT(uar_str_utf8_prefix(op->provider, 64)));
	e = uar_model_list(m, on_listed, op, error);
	return e == UAR_ESKIP ? post_good(work, op) : e;
}
