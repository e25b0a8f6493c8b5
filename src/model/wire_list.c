/* wire_list.c - asks a provider which models it offers. */
#include "model/list.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "json/json.h"
#include "model/limits.h"
#include "model/wire_int.h"

struct listing {
	struct uar_list node; /* in wire.listings */
	struct uar_call *call;
	struct uar_buf body;
	uar_model_listed_fn *done;
	void *ctx;
};

static void free_listing(struct listing *l)
{
	uar_list_remove(&l->node);
	uar_buf_fini(&l->body);
	uar_free(l);
}

void uar_wire_end_listings(struct uar_wire *m)
{
	while (!uar_list_empty(&m->listings)) {
		struct listing *at = UAR_OWNER(m->listings.next, struct listing, node);

		uar_call_cancel(at->call);
		free_listing(at);
	}
}

static uar_err on_bytes(void *ctx, uar_str bytes)
{
	struct listing *l = ctx;

	uar_buf_add_str(&l->body, bytes);
	return l->body.err;
}

/* {"data": [{"id": "..."}, ...]} in all dialects. */
static size_t read_names(const struct uar_json *root, uar_str *names)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("data"));
	size_t n = 0;

	for (const struct uar_json *j = uar_json_at(list, 0); j && n < UAR_LIMIT_MODELS_LISTED;
	     j = j->next) {
		names[n] = uar_json_text(j, "id");
		n += names[n].n > 0;
	}
	return n;
}

static void tell_names(struct listing *l, struct uar_arena *arena)
{
	uar_str *names = uar_arena_alloc(arena, UAR_LIMIT_MODELS_LISTED * sizeof *names);
	struct uar_models_listed r = { .names = names, .status = 200 };
	const struct uar_json *root = NULL;

	r.err = names ? uar_json_parse(uar_buf_str(&l->body), NULL, arena, &root, NULL)
		      : UAR_ENOMEM;
	if (r.err) {
		r.reason = "its list of models is not JSON";
		r.err = UAR_EPROVIDER;
	} else {
		r.count = read_names(root, names);
	}
	l->done(l->ctx, &r);
}

static void on_end(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct listing *l = ctx;
	struct uar_models_listed r = { .err = e, .status = status, .reason = reason };
	struct uar_arena arena;

	(void)body;
	uar_arena_init(&arena, 0);
	if (!e && status >= 200 && status < 300) {
		tell_names(l, &arena);
	} else {
		r.err = e ? e : UAR_EPROVIDER;
		l->done(l->ctx, &r);
	}
	uar_arena_fini(&arena);
	free_listing(l);
}

bool uar_model_reached(const struct uar_model *m, const char **dialect, const char **url)
{
	const struct uar_wire *wire = (const struct uar_wire *)m;

	if (m->ops != &uar_wire_ops)
		return false;
	*dialect = wire->dialect->name;
	*url = wire->url;
	return true;
}

uar_err uar_model_list(struct uar_model *m, uar_model_listed_fn *done, void *ctx,
		       struct uar_error *error)
{
	struct uar_wire *wire = (struct uar_wire *)m;
	struct listing *l;
	struct uar_call_options o = { .method = "GET", .data = on_bytes, .done = on_end };
	uar_err e;

	if (m->ops != &uar_wire_ops)
		return UAR_ESKIP;
	l = uar_zalloc(sizeof *l);
	if (!l)
		return UAR_ENOMEM;
	*l = (struct listing){ .body = uar_buf_make(UAR_LIMIT_MODEL_LINE),
			       .done = done,
			       .ctx = ctx };
	uar_list_add_last(&wire->listings, &l->node);
	o.url = wire->list_url;
	o.headers = (const char *const *)wire->headers;
	o.ctx = l;
	e = uar_client_call(wire->client, &o, &l->call, error);
	if (e)
		free_listing(l);
	return e;
}
