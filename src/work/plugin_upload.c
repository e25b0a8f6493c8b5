/* plugin_upload.c - each upload is a queue of steps, of which one is at the store. */
#include "work/limits.h"
#include "work/plugin_upload.h"

struct rt_upload {
	struct uar_list node;
	struct upload_set *set; /* NULL: the run is over */
	struct rt_op op;	/* while a step is at the store */
	struct uar_upload *handle;
	struct uar_list steps;
	bool busy;
	uar_err err;	 /* a step failed: what follows fails, until it begins anew */
	uint64_t offset; /* where the next piece begins */
	char name[UAR_LIMIT_ID_BYTES + 1]; /* empty: it is being finished */
};

struct step {
	struct uar_list node;
	struct rt_upload *upload;
	struct uar_upload_op op;
	struct uar_arena arena; /* its bytes */
	uint64_t ticket;
	bool begin;
	upload_done_fn *done; /* of the last step */
	void *ctx;
};

static void free_step(struct step *st)
{
	uar_list_remove(&st->node);
	uar_arena_fini(&st->arena);
	uar_free(st);
}

static void free_upload(struct rt_upload *u)
{
	if (u->handle)
		u->handle->drop(u->handle);
	if (u->set)
		u->set->count--;
	uar_list_remove(&u->node);
	uar_free(u);
}

/* --- steps -------------------------------------------------------------------------- */

static void tell(struct step *st, uar_err e)
{
	struct upload_set *set = st->upload->set;

	if (set)
		set->pending -= st->op.bytes.n;
	if (st->done)
		st->done(st->ctx, e, st->op.sha256, st->op.total);
	else if (set)
		set->taken(set->ctx, st->ticket, e);
	free_step(st);
}

static void go_on(struct rt_upload *u);

/* The runtime goes and the store will not answer: it left the handle with the step. */
static void drop_op(struct rt_op *op)
{
	struct rt_upload *u = UAR_OWNER(op, struct rt_upload, op);

	u->handle = UAR_OWNER(u->steps.next, struct step, node)->op.upload;
	u->busy = false;
	go_on(u);
}

static void step_done(struct uar_upload_op *op)
{
	struct step *st = UAR_OWNER(op, struct step, op);
	struct rt_upload *u = st->upload;
	uar_err e = op->err;

	u->busy = false;
	u->handle = op->upload;
	u->err = e;
	tell(st, u->set ? e : UAR_ECANCELED);
	rt_op_end(&u->op);
	go_on(u);
}

static uar_err perform(struct rt_upload *u, struct step *st)
{
	struct uar_runtime *rt = u->set->rt;
	uar_err e;

	if (st->begin) {
		u->err = UAR_OK;
		if (u->handle)
			u->handle->drop(u->handle);
		u->handle = NULL;
	}
	if (u->err)
		return u->err;
	st->op.upload = u->handle;
	st->op.done = step_done;
	e = rt_store(rt)->ops->upload(rt_store(rt), &st->op);
	if (e)
		return e;
	u->busy = true;
	rt_op_begin(rt, &u->op, drop_op);
	return UAR_OK;
}

/* The next step; an upload that has none left and no name is over. */
static void go_on(struct rt_upload *u)
{
	while (!u->busy && !uar_list_empty(&u->steps)) {
		struct step *st = UAR_OWNER(u->steps.next, struct step, node);
		uar_err e = u->set ? perform(u, st) : UAR_ECANCELED;

		if (e) {
			u->err = e;
			tell(st, e);
		}
	}
	if (!u->busy && (!u->set || !u->name[0]))
		free_upload(u);
}

static uar_err add_step(struct rt_upload *u, const struct step *like, uar_str bytes)
{
	struct step *st = uar_zalloc(sizeof *st);

	if (!st)
		return UAR_ENOMEM;
	*st = *like;
	st->upload = u;
	uar_arena_init(&st->arena, 0);
	st->op.bytes = uar_arena_str(&st->arena, bytes);
	if (!st->op.bytes.p) {
		uar_list_init(&st->node);
		free_step(st);
		return UAR_ENOMEM;
	}
	uar_list_add_last(&u->steps, &st->node);
	u->set->pending += bytes.n;
	return UAR_OK;
}

/* --- uploads ------------------------------------------------------------------------ */

void rt_uploads_init(struct upload_set *s, struct uar_runtime *rt)
{
	s->rt = rt;
	uar_list_init(&s->uploads);
}

void rt_uploads_fini(struct upload_set *s)
{
	if (!s->rt)
		return;
	UAR_LIST_EACH (it, &s->uploads) {
		struct rt_upload *u = UAR_OWNER(it, struct rt_upload, node);

		uar_list_remove(&u->node);
		u->set = NULL;
		go_on(u);
	}
}

static struct rt_upload *find(struct upload_set *s, uar_str name)
{
	UAR_LIST_EACH (it, &s->uploads) {
		struct rt_upload *u = UAR_OWNER(it, struct rt_upload, node);

		if (uar_str_is(name, u->name))
			return u;
	}
	return NULL;
}

static struct rt_upload *make(struct upload_set *s, uar_str name)
{
	struct rt_upload *u = uar_zalloc(sizeof *u);

	if (!u)
		return NULL;
	u->set = s;
	uar_list_init(&u->steps);
	snprintf(u->name, sizeof u->name, "%.*s", UAR_FMT(name));
	uar_list_add_last(&s->uploads, &u->node);
	s->count++;
	return u;
}

/* Does the piece follow what is there (u NULL: nothing)? */
static uar_err check_piece(const struct upload_set *s, const struct rt_upload *u,
			   const struct uar_piece *p, struct uar_error *error)
{
	uint64_t most = rt_store(s->rt)->upload_max;

	if (s->pending + p->bytes.n > UAR_LIMIT_UPLOAD_PENDING)
		return uar_error_set(error, UAR_ERATELIMIT,
				     "%zu bytes of the run wait for the disk: wait for answers",
				     s->pending);
	if (p->offset && (!u || (uint64_t)p->offset != u->offset))
		return uar_error_set(error, UAR_EINVALID,
				     "the next offset of this upload is %llu, not %lld",
				     u ? (unsigned long long)u->offset : 0, (long long)p->offset);
	if (!u && s->count >= UAR_LIMIT_RUN_UPLOADS)
		return uar_error_set(error, UAR_ERATELIMIT, "a run has at most %d open uploads",
				     UAR_LIMIT_RUN_UPLOADS);
	if ((uint64_t)p->offset + p->bytes.n > most)
		return uar_error_set(error, UAR_ETOOBIG, "an upload has at most %llu bytes",
				     (unsigned long long)most);
	return UAR_OK;
}

uar_err rt_upload_piece(struct upload_set *s, const struct uar_piece *p, uint64_t ticket,
			struct uar_error *error)
{
	struct rt_upload *u = find(s, p->name);
	struct step st = { .ticket = ticket, .begin = p->offset == 0 };
	uar_err e = check_piece(s, u, p, error);
	bool is_new = !u;

	if (e)
		return e;
	if (!u)
		u = make(s, p->name);
	e = u ? add_step(u, &st, p->bytes) : UAR_ENOMEM;
	if (e && u && is_new)
		free_upload(u);
	if (e)
		return e;
	u->offset = (uint64_t)p->offset + p->bytes.n;
	go_on(u);
	return UAR_OK;
}

uar_err rt_upload_finish(struct upload_set *s, const struct uar_export *x, upload_done_fn *done,
			 void *ctx, struct uar_error *error)
{
	struct rt_upload *u = find(s, x->upload);
	struct step st = { .done = done, .ctx = ctx };
	uar_err e;

	if (!u)
		return uar_error_set(error, UAR_EINVALID, "no upload has the name %.*s",
				     UAR_FMT(x->upload));
	if (x->bytes >= 0 && (uint64_t)x->bytes != u->offset)
		return uar_error_set(error, UAR_EINVALID, "the upload has %llu bytes, not %lld",
				     (unsigned long long)u->offset, (long long)x->bytes);
	st.op.finish = true;
	st.op.expect = x->sha256;
	e = add_step(u, &st, UAR_STR(""));
	if (e)
		return e;
	u->name[0] = 0;
	go_on(u);
	return UAR_OK;
}
