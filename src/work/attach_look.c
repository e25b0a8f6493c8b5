/* attach_look.c - the bytes of uploads, read one after the other, become `data` of attachments.
 *
 * An upload is found below its owner, so nobody shows a model what is not theirs. */
#include "work/attach_look.h"

#include "base/base64.h"
#include "core/control.h"
#include "json/jw.h"
#include "work/limits.h"

struct attach_look {
	struct rt_op under_way;
	struct uar_blob_get get;
	struct uar_stage stage;
	struct uar_workers *w;
	struct rt_request *q; /* NULL: forgotten */
	uar_err (*then)(struct uar_workers *w, struct rt_request *q);
	struct uar_arena arena;
	const struct uar_json *inputs, *at; /* at: the attachment whose turn it is */
	size_t index;			    /* of it */
	struct uar_buf list;		    /* the attachments so far */
	struct uar_jw jw;
};

static uar_str ref_of(const struct uar_json *attachment)
{
	return uar_json_text(attachment, "ref");
}

static void free_look(struct attach_look *l)
{
	uar_buf_fini(&l->list);
	uar_arena_fini(&l->arena);
	uar_free(l);
}

static void drop(struct rt_op *op)
{
	free_look(UAR_OWNER(op, struct attach_look, under_way));
}

static void forget(void *look)
{
	((struct attach_look *)look)->q = NULL;
}

static uar_err refuse(const struct attach_look *l, uar_err e, const char *why)
{
	uar_error_where(&l->q->op->error, "/inputs/attachments/%zu/ref", l->index);
	return uar_error_set(&l->q->op->error, e, "%s", why);
}

/* The inputs with the new list are what is recorded. */
static uar_err replace_inputs(struct attach_look *l)
{
	struct uar_buf all = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	struct uar_jw w = uar_jw_begin(&all);
	uar_err e;

	uar_jw_close(&l->jw);
	e = uar_jw_end(&l->jw);
	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = uar_json_first(l->inputs); m && !e; m = m->next) {
		uar_jw_key(&w, m->key);
		if (uar_str_is(m->key, "attachments"))
			uar_jw_raw(&w, NULL, uar_buf_str(&l->list));
		else
			uar_jw_tree(&w, NULL, m);
	}
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	if (e) {
		uar_buf_fini(&all);
		return e;
	}
	uar_buf_fini(&l->q->inputs);
	l->q->inputs = all;
	l->q->op->inputs = uar_buf_str(&l->q->inputs);
	return UAR_OK;
}

static void put_attachment(struct attach_look *l, uar_str bytes)
{
	struct uar_buf data = uar_buf_make(UAR_LIMIT_HTTP_BODY);

	uar_base64_encode(&data, bytes);
	uar_jw_obj(&l->jw, NULL);
	for (const struct uar_json *m = uar_json_first(l->at); m; m = m->next) {
		if (uar_str_is(m->key, "ref"))
			continue;
		uar_jw_key(&l->jw, m->key);
		uar_jw_tree(&l->jw, NULL, m);
	}
	uar_jw_str(&l->jw, "data", uar_buf_str(&data));
	uar_jw_close(&l->jw);
	if (data.err && !l->list.err)
		l->list.err = data.err;
	uar_buf_fini(&data);
}

static void looked(struct uar_blob_get *get);

/* UAR_ESKIP: all are read. */
static uar_err read_next(struct attach_look *l)
{
	struct uar_store *store = rt_store(l->w->rt);
	struct uar_turn_file file = { .part = 0 };

	for (; l->at && !ref_of(l->at).n; l->at = l->at->next, l->index++)
		uar_jw_tree(&l->jw, NULL, l->at);
	if (!l->at)
		return UAR_ESKIP;
	if (!uar_turn_ref(ref_of(l->at), &file) || !file.run_id.n)
		return refuse(l, UAR_EINVALID, "\"ref\" is the blob_url of an upload");
	l->stage = (struct uar_stage){ l->q->op->owner, file.run_id, file.id };
	l->get = (struct uar_blob_get){ .stage = &l->stage,
					.limit = UAR_LIMIT_HTTP_BODY,
					.done = looked };
	return store->ops->blob_get(store, &l->get);
}

static uar_err take(struct attach_look *l)
{
	if (l->get.err == UAR_ENOTFOUND)
		return refuse(l, UAR_EINVALID,
			      "\"ref\" names no stored bytes: upload the file first");
	if (l->get.err) {
		l->q->op->error = l->get.error;
		return l->get.err;
	}
	if (l->get.bytes.n && l->get.bytes.n == l->get.total)
		put_attachment(l, l->get.bytes);
	if (!l->get.bytes.n)
		return refuse(l, UAR_EINVALID, "\"ref\" names an upload without bytes");
	if (l->list.err || l->get.bytes.n != l->get.total)
		return refuse(l, UAR_ETOOBIG, "with it the inputs are larger than a request");
	l->at = l->at->next;
	l->index++;
	return UAR_OK;
}

static void finish(struct attach_look *l, uar_err e)
{
	struct rt_request *q = l->q;

	if (q) {
		q->look = NULL;
		if (!e)
			e = replace_inputs(l);
		if (!e)
			e = l->then(l->w, q);
		if (e == UAR_ESKIP)
			q->looked(q, UAR_OK);
		else if (e)
			q->looked(q, e);
	}
	rt_op_end(&l->under_way);
	free_look(l);
}

static void looked(struct uar_blob_get *get)
{
	struct attach_look *l = UAR_OWNER(get, struct attach_look, get);
	uar_err e = l->q ? take(l) : UAR_ESTATE;

	uar_store_blob_get_fini(get);
	if (!e)
		e = read_next(l);
	if (e)
		finish(l, e == UAR_ESKIP ? UAR_OK : e);
}

/* Most requests have none: those are not read a second time. A key may be written with \u escapes.
 */
static bool may_have_ref(uar_str inputs)
{
	return inputs.n &&
	       (memmem(inputs.p, inputs.n, "\"ref\"", 5) || memmem(inputs.p, inputs.n, "\\u", 2));
}

uar_err rt_attach_look(struct uar_workers *w, struct rt_request *q,
		       uar_err (*then)(struct uar_workers *w, struct rt_request *q))
{
	struct attach_look *l;
	uar_err e;

	if (q->what.entry != UAR_ENTRY_LLM || !may_have_ref(q->op->inputs))
		return then(w, q);
	l = uar_zalloc(sizeof *l);
	if (!l)
		return UAR_ENOMEM;
	l->w = w;
	l->q = q;
	l->then = then;
	l->list = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	l->jw = uar_jw_begin(&l->list);
	uar_arena_init(&l->arena, 0);
	e = uar_json_parse(q->op->inputs, NULL, &l->arena, &l->inputs, &q->op->error);
	l->at = uar_json_at(uar_json_get(l->inputs, UAR_STR("attachments")), 0);
	uar_jw_arr(&l->jw, NULL);
	if (!e)
		e = read_next(l);
	if (e) {
		free_look(l);
		return e == UAR_ESKIP ? then(w, q) : e;
	}
	rt_op_begin(w->rt, &l->under_way, drop);
	q->look = l;
	q->forget = forget;
	return UAR_OK;
}
