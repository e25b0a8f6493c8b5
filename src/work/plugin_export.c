/* plugin_export.c - id, hash and place of each item; then the engine, in order. */
#include "work/plugin_export.h"

#include "base/sha256.h"
#include "event/limits.h"
#include "work/limits.h"
#include "work/spill.h"

struct item {
	struct rt_op under_way;
	struct uar_list node;
	struct export_queue *q; /* NULL: nobody waits any more */
	struct uar_export x;
	struct uar_arena arena; /* its strings */
	struct uar_blob_put put;
	struct uar_stage stage;
	struct uar_upload_op adopt;
	uint64_t ticket;
	uar_err err;
	const char *why;	/* of err, if there is more to say */
	bool ready, sent, last; /* last: the end; x is the result, if it has an id */
	char id[UAR_UUID_TEXT + 1];
	char sha256[UAR_SHA256_TEXT + 1];
};

static void piece_taken(void *ctx, uint64_t ticket, uar_err e)
{
	struct export_queue *q = ctx;

	q->stored(q->ctx, &(struct uar_entry_answer){ .ticket = ticket, .err = e });
}

void rt_export_init(struct export_queue *q, struct live_run *r)
{
	q->run = r;
	rt_uploads_init(&q->uploads, rt_engine(r));
	q->uploads.taken = piece_taken;
	q->uploads.ctx = q;
	uar_list_init(&q->items);
	q->ids = uar_buf_make((size_t)UAR_LIMIT_RUN_EXPORTS * UAR_UUID_TEXT);
}

static void free_item(struct item *it)
{
	uar_list_remove(&it->node);
	rt_op_end(&it->under_way);
	uar_arena_fini(&it->arena);
	uar_free(it);
}

/* The runtime goes away, and with it whoever would have called back. */
static void drop(struct rt_op *under_way)
{
	struct item *it = UAR_OWNER(under_way, struct item, under_way);

	if (it->x.upload.n && !it->ready)
		return; /* its upload is dropped likewise, and tells it */
	uar_list_remove(&it->node);
	uar_arena_fini(&it->arena);
	uar_free(it);
}

/* Items at the store or the engine are freed when they come back. */
void rt_export_fini(struct export_queue *q)
{
	if (!q->run)
		return;
	UAR_LIST_EACH (node, &q->items) {
		struct item *it = UAR_OWNER(node, struct item, node);

		it->q = NULL;
		uar_list_remove(&it->node);
		if (it->ready && !it->sent)
			free_item(it);
	}
	rt_uploads_fini(&q->uploads);
	uar_buf_fini(&q->ids);
}

bool rt_export_has_room(const struct export_queue *q)
{
	return q->waiting < UAR_LIMIT_EXPORTS_WAITING;
}

uar_str rt_export_id(const struct export_queue *q, size_t index)
{
	size_t at = index * UAR_UUID_TEXT;

	return at < q->ids.n ? uar_str_n(q->ids.p + at, UAR_UUID_TEXT) : UAR_STR_NONE;
}

bool rt_export_known(const struct export_queue *q, uar_str id)
{
	size_t first = 0, end = q->ids.n / UAR_UUID_TEXT;

	while (first < end) { /* each id is larger than those before it */
		size_t middle = first + (end - first) / 2;
		int order = uar_str_cmp(rt_export_id(q, middle), id);

		if (order == 0)
			return true;
		if (order < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return false;
}

/* --- to the engine ------------------------------------------------------------------ */

static void committed(const struct rt_sent *s)
{
	struct item *it = s->ctx;
	struct uar_entry_answer a = { .ticket = it->ticket, .err = s->err };

	if (!s->err)
		a.id = uar_str_c(it->id);
	if (it->q)
		it->q->stored(it->q->ctx, &a);
	free_item(it);
}

static void send_item(struct item *it)
{
	struct uar_command c = { .kind = UAR_CMD_EXPORT };
	struct export_queue *q = it->q;

	it->sent = true;
	q->waiting--;
	c.export = it->x;
	if (!it->err)
		it->err = rt_send_asked(q->run, &c, committed, it) ? UAR_OK : UAR_ENOMEM;
	if (!it->err && uar_str_is(it->x.role, "progress"))
		return; /* nobody counts it */
	if (!it->err) {
		uar_buf_add(&q->ids, it->id, UAR_UUID_TEXT);
		return;
	}
	q->stored(q->ctx,
		  &(struct uar_entry_answer){ .ticket = it->ticket,
					      .err = it->err,
					      .why = it->why ? uar_str_c(it->why) : UAR_STR_NONE });
	free_item(it);
}

static void send_last(struct item *it)
{
	struct export_queue *q = it->q;

	it->sent = true;
	q->waiting--;
	q->finished(q->ctx, it->x.id.n ? &it->x : NULL, it->err);
	free_item(it);
}

/* Sends from the front as far as all is ready. */
static void advance(struct export_queue *q)
{
	UAR_LIST_EACH (node, &q->items) {
		struct item *it = UAR_OWNER(node, struct item, node);

		if (it->sent)
			continue;
		if (!it->ready)
			return;
		if (it->last)
			send_last(it);
		else
			send_item(it);
	}
}

/* --- making items ---------------------------------------------------------------------- */

uar_err rt_export_copy(struct uar_arena *a, const struct uar_export *x, struct uar_export *out)
{
	struct uar_export c = *x;
	uar_str *strings[] = { &c.id,	  &c.type,     &c.role,	      &c.content, &c.blob,
			       &c.upload, &c.blob_id,  &c.sha256,     &c.label,	  &c.category,
			       &c.mime,	  &c.metadata, &c.description };

	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		*strings[i] = uar_arena_str(a, *strings[i]);
		if (!strings[i]->p)
			return UAR_ENOMEM;
	}
	*out = c;
	return UAR_OK;
}

static void bytes_stored(struct item *it, uar_err e, const char *sha256, uint64_t bytes)
{
	it->ready = true;
	it->err = e;
	snprintf(it->sha256, sizeof it->sha256, "%s", sha256);
	it->x.sha256 = it->x.blob = uar_str_c(it->sha256);
	it->x.bytes = (int64_t)bytes;
	if (it->q)
		advance(it->q);
	else
		free_item(it);
}

static void blob_stored(struct uar_blob_put *put)
{
	struct item *it = UAR_OWNER(put, struct item, put);

	it->x.content = UAR_STR("");
	bytes_stored(it, put->err, put->sha256, put->bytes.n);
}

/* `bytes`: what counts; they are stored when the content does not fit an event. */
static uar_err place(struct item *it, uar_str bytes)
{
	struct uar_runtime *rt = rt_engine(it->q->run);

	uar_uuid_next(rt_ids(rt), it->id);
	it->x.id = uar_str_c(it->id);
	it->ready = rt_spill_beginning(it->x.content).n == it->x.content.n;
	if (it->ready) {
		uar_sha256_hex(bytes, it->sha256);
		it->x.sha256 = uar_str_c(it->sha256);
		it->x.bytes = (int64_t)bytes.n;
		return UAR_OK;
	}
	it->put = (struct uar_blob_put){ .bytes = uar_arena_str(&it->arena, bytes),
					 .done = blob_stored };
	return it->put.bytes.p ? rt_store(rt)->ops->blob_put(rt_store(rt), &it->put) : UAR_ENOMEM;
}

static void upload_stored(void *ctx, uar_err e, const char *sha256, uint64_t bytes)
{
	struct item *it = ctx;

	it->why = e == UAR_EINVALID ? "the bytes that arrived have another sha256" : NULL;
	bytes_stored(it, e, sha256, bytes);
}

/* The bytes are at the store already: they get their name. */
static uar_err place_upload(struct item *it, struct uar_error *error)
{
	uar_uuid_next(rt_ids(rt_engine(it->q->run)), it->id);
	it->x.id = uar_str_c(it->id);
	it->x.role = UAR_STR("upload");
	return rt_upload_finish(&it->q->uploads, &it->x, upload_stored, it, error);
}

static void adopted(struct uar_upload_op *op)
{
	struct item *it = UAR_OWNER(op, struct item, adopt);
	uar_err e = op->err == UAR_ENOTFOUND ? UAR_EINVALID : op->err;

	it->why = e == UAR_EINVALID ? "no upload of the run is complete at this address" : NULL;
	bytes_stored(it, e, op->sha256, op->total);
}

/* Likewise, but they came over HTTP. */
static uar_err place_staged(struct item *it, uar_str id)
{
	struct live_run *r = it->q->run;
	struct uar_store *store = rt_store(rt_engine(r));

	uar_uuid_next(rt_ids(rt_engine(r)), it->id);
	it->x.id = uar_str_c(it->id);
	it->x.role = UAR_STR("upload");
	it->x.blob_id = uar_arena_str(&it->arena, id);
	it->x.content = UAR_STR("");
	it->stage.id = it->x.blob_id;
	it->stage.run_id = uar_arena_str(&it->arena, rt_state(r)->id.run_id);
	if (!it->stage.id.p || !it->stage.run_id.p ||
	    !uar_owner_copy(&it->arena, &rt_agg_session(rt_agg(r))->owner, &it->stage.owner))
		return UAR_ENOMEM;
	it->adopt = (struct uar_upload_op){ .stage = &it->stage, .adopt = true, .done = adopted };
	return store->ops->upload(store, &it->adopt);
}

/* What names an upload of this run over HTTP, if that is the address. The host by which
 * the plugin calls the server makes no difference, nor does what was added to read it;
 * whatever else is below that path is an upload that is not there. */
static uar_str staged_id(const struct live_run *r, const struct uar_export *x)
{
	char lead[UAR_LIMIT_ID_BYTES + 32];
	size_t n = (size_t)snprintf(lead, sizeof lead, "/runs/%.*s/blobs/",
				    UAR_FMT(rt_state(r)->id.run_id));
	uar_str id, query;
	const char *at;

	if (!uar_str_is(x->type, "binary_url") || x->upload.n)
		return UAR_STR_NONE;
	at = memmem(x->content.p, x->content.n, lead, n);
	if (!at)
		return UAR_STR_NONE;
	id = uar_str_from(x->content, (size_t)(at - x->content.p) + n);
	return uar_str_cut(uar_str_cut(id, '#', &query), '?', &query);
}

static struct item *make_item(struct export_queue *q, uint64_t ticket)
{
	struct item *it = uar_zalloc(sizeof *it);

	if (!it)
		return NULL;
	it->q = q;
	it->ticket = ticket;
	uar_arena_init(&it->arena, 0);
	uar_list_init(&it->node);
	rt_op_begin(rt_engine(q->run), &it->under_way, drop);
	return it;
}

static uar_err enter(struct export_queue *q, struct item *it, uar_err e)
{
	if (e) {
		free_item(it);
		return e;
	}
	uar_list_add_last(&q->items, &it->node);
	q->waiting++;
	advance(q);
	return UAR_OK;
}

uar_err rt_export_add(struct export_queue *q, const struct uar_export *x, uar_str raw,
		      uint64_t ticket, struct uar_error *error)
{
	uar_str staged = staged_id(q->run, x);
	struct item *it;
	uar_err e;

	if (q->ids.n / UAR_UUID_TEXT + q->waiting >= UAR_LIMIT_RUN_EXPORTS)
		return uar_error_set(error, UAR_ETOOBIG, "a run has at most %d items",
				     UAR_LIMIT_RUN_EXPORTS);
	it = make_item(q, ticket);
	if (!it)
		return UAR_ENOMEM;
	e = rt_export_copy(&it->arena, x, &it->x);
	if (!e && x->upload.n)
		e = place_upload(it, error);
	else if (!e && staged.p)
		e = place_staged(it, staged);
	else if (!e)
		e = place(it, uar_str_is(x->type, "binary") ? raw : x->content);
	return enter(q, it, e);
}

uar_err rt_export_piece(struct export_queue *q, const struct uar_piece *p, uint64_t ticket,
			struct uar_error *error)
{
	return rt_upload_piece(&q->uploads, p, ticket, error);
}

uar_err rt_export_finish(struct export_queue *q, uar_str result)
{
	static const struct uar_export shape = { .type = UAR_STR("json"),
						 .role = UAR_STR("result"),
						 .label = UAR_STR("result"),
						 .category = UAR_STR("system"),
						 .mime = UAR_STR("application/json") };
	struct uar_export x = shape;
	struct item *it = make_item(q, 0);
	uar_err e = UAR_OK;

	if (!it)
		return UAR_ENOMEM;
	it->last = true;
	it->ready = true;
	if (result.n) {
		x.content = result;
		if (result.n > UAR_LIMIT_EXPORT_BYTES) /* lists of items stay small */
			x.type = UAR_STR("binary_url");
		e = rt_export_copy(&it->arena, &x, &it->x);
		if (!e)
			e = place(it, result);
	}
	return enter(q, it, e);
}
