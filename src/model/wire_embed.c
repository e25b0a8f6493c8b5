/* wire_embed.c - texts become vectors: POST BASE/embeddings, as OpenAI defines it. */
#include "base/alloc.h"
#include "json/json.h"
#include "json/jw.h"
#include "model/limits.h"
#include "model/wire_int.h"

struct embedding {
	struct uar_list node;
	struct uar_call *call;
	struct uar_buf body;
	size_t n;
	uar_str key; /* the provider's, which no reason may name */
	void (*done)(void *ctx, const struct uar_model_embedded *r);
	void *ctx;
};

static void free_embedding(struct embedding *m)
{
	uar_list_remove(&m->node);
	uar_buf_fini(&m->body);
	uar_free(m);
}

void uar_wire_end_embeddings(struct uar_wire *m)
{
	while (!uar_list_empty(&m->embeddings)) {
		struct embedding *at = UAR_OWNER(m->embeddings.next, struct embedding, node);

		uar_call_cancel(at->call);
		free_embedding(at);
	}
}

static uar_err on_bytes(void *ctx, uar_str bytes)
{
	struct embedding *m = ctx;

	uar_buf_add_str(&m->body, bytes);
	return m->body.err;
}

/* The square of a length must fit into a float, and no embedder goes near it. */
static const double largest = 1e15;

/* null stands where an embedder had no number (NaN): a guess would be found by what it is not. */
static bool is_component(const struct uar_json *v)
{
	bool number = v->kind == UAR_JSON_INT || v->kind == UAR_JSON_DOUBLE;
	double d = uar_json_double(v, 0);

	return number && d <= largest && d >= -largest;
}

/* One vector of the list; `index` says whose it is, else its place does. */
static uar_err read_vector(const struct uar_json *j, struct uar_model_embedded *r, float *to,
			   size_t place)
{
	const struct uar_json *list = uar_json_get(j, UAR_STR("embedding"));
	int64_t at = uar_json_int(uar_json_get(j, UAR_STR("index")), (int64_t)place);
	size_t i = 0;

	if (at < 0 || (size_t)at >= r->n || !list || list->kind != UAR_JSON_ARRAY ||
	    list->count != r->dims)
		return UAR_EPROVIDER;
	for (const struct uar_json *v = uar_json_at(list, 0); v; v = v->next) {
		if (!is_component(v))
			return UAR_EPROVIDER;
		to[(size_t)at * r->dims + i++] = (float)uar_json_double(v, 0);
	}
	return UAR_OK;
}

static uar_err read_vectors(const struct uar_json *root, struct uar_model_embedded *r,
			    struct uar_arena *arena)
{
	const struct uar_json *data = uar_json_get(root, UAR_STR("data"));
	const struct uar_json *first = uar_json_at(data, 0);
	const struct uar_json *list = uar_json_get(first, UAR_STR("embedding"));
	size_t place = 0;
	uar_err e = UAR_OK;
	float *to;

	if (!data || data->kind != UAR_JSON_ARRAY || data->count != r->n || !list ||
	    list->kind != UAR_JSON_ARRAY || !list->count ||
	    list->count > UAR_LIMIT_MODEL_DIMENSIONS)
		return UAR_EPROVIDER;
	r->dims = list->count;
	to = uar_arena_alloc(arena, r->n * r->dims * sizeof *to);
	if (!to)
		return UAR_ENOMEM;
	for (const struct uar_json *j = first; j && !e; j = j->next)
		e = read_vector(j, r, to, place++);
	r->at = to;
	return e;
}

/* What the provider says about it, as of a model: often it is what to do. */
static void explain(const struct embedding *m, int status, uar_str body, char *text, size_t size)
{
	struct uar_reply_verdict v = { .failure = UAR_MODEL_FAIL_NONE };
	const struct uar_json *j = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	snprintf(text, size, "the provider answered with status %d", status);
	if (!uar_json_parse(body, NULL, &arena, &j, NULL)) {
		uar_reply_fail_json(&v, j, status, m->key);
		snprintf(text, size, "the provider answered with status %d: %.*s", status,
			 (int)v.message_n, v.message);
	}
	uar_arena_fini(&arena);
}

static void on_end(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	static const struct uar_json_limits limits = { .bytes = UAR_LIMIT_MODEL_EMBEDDINGS };
	struct embedding *m = ctx;
	struct uar_model_embedded r = { .err = e, .reason = reason ? reason : "", .n = m->n };
	const struct uar_json *root = NULL;
	struct uar_arena arena;
	char text[64 + UAR_LIMIT_MODEL_MESSAGE];

	uar_arena_init(&arena, 0);
	if (!e && (status < 200 || status >= 300)) {
		explain(m, status, body, text, sizeof text);
		r.err = UAR_EPROVIDER;
		r.reason = text;
	} else if (!e) {
		r.err = uar_json_parse(uar_buf_str(&m->body), &limits, &arena, &root, NULL);
		if (!r.err)
			r.err = read_vectors(root, &r, &arena);
		if (r.err && r.err != UAR_ENOMEM) {
			r.err = UAR_EPROVIDER;
			r.reason = "the provider's answer is not one vector of numbers for each "
				   "text, all of one length";
		}
	}
	r.retryable = r.err && (e || status == 429 || status >= 500);
	m->call = NULL;
	m->done(m->ctx, &r);
	uar_arena_fini(&arena);
	free_embedding(m);
}

static uar_err write_request(const struct uar_model_embed *r, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "model", r->model);
	uar_jw_cstr(&w, "encoding_format", "float");
	uar_jw_arr(&w, "input");
	for (size_t i = 0; i < r->n; i++)
		uar_jw_str(&w, NULL, r->inputs[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

uar_err uar_wire_embed(struct uar_model *model, const struct uar_model_embed *r,
		       struct uar_error *error)
{
	struct uar_wire *wire = (struct uar_wire *)(void *)model;
	struct uar_call_options o = { .method = "POST", .data = on_bytes, .done = on_end };
	struct uar_buf request = uar_buf_make(UAR_LIMIT_MODEL_REQUEST);
	struct embedding *m;
	uar_err e;

	if (!wire->embed_url)
		return uar_error_set(error, UAR_ENOTIMPL, "the provider %s has no embeddings",
				     model->provider);
	if (!r->n || r->n > UAR_LIMIT_MODEL_EMBEDDED)
		return uar_error_set(error, UAR_EINVALID, "1 to %d texts are embedded at once",
				     UAR_LIMIT_MODEL_EMBEDDED);
	m = uar_zalloc(sizeof *m);
	if (!m)
		return UAR_ENOMEM;
	*m = (struct embedding){ .body = uar_buf_make(UAR_LIMIT_MODEL_EMBEDDINGS),
				 .n = r->n,
				 .key = wire->key,
				 .done = r->done,
				 .ctx = r->ctx };
	uar_list_add_last(&wire->embeddings, &m->node);
	e = write_request(r, &request);
	o.url = wire->embed_url;
	o.headers = (const char *const *)wire->headers;
	o.body = uar_buf_str(&request);
	o.ctx = m;
	if (!e)
		e = uar_client_call(wire->client, &o, &m->call, error);
	uar_buf_fini(&request);
	if (e)
		free_embedding(m);
	return e;
}
