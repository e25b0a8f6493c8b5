/* lookup.c - reads of the store for those who must not know it.
 *
 * Each is an object of its own at the store, so that its caller sees only what it
 * asked for. It lives until the caller gives the result back, or until the reader is
 * destroyed, when the store is gone and will not call back. */
#include "read/read_int.h"

/* Common to all: first, so that one list holds them. */
struct asked {
	struct uar_list node; /* in rd->asked */
	void (*free)(struct asked *a);
};

static void free_asked(struct asked *a)
{
	if (!a)
		return;
	uar_list_remove(&a->node);
	a->free(a);
}

static void *ask(struct uar_reader *rd, size_t size, void (*free_it)(struct asked *a))
{
	struct asked *a = uar_zalloc(size);

	if (a) {
		a->free = free_it;
		uar_list_add_last(&rd->asked, &a->node);
	}
	return a;
}

void rt_lookups_fini(struct uar_reader *rd)
{
	UAR_LIST_EACH (it, &rd->asked)
		free_asked(UAR_OWNER(it, struct asked, node));
}

/* --- events --------------------------------------------------------------------- */

struct events_asked {
	struct asked base;
	struct uar_read read;
	struct uar_events_read *to;
};

static void free_events(struct asked *a)
{
	struct events_asked *e = (struct events_asked *)a;

	uar_store_read_fini(&e->read);
	uar_free(e);
}

static void events_ready(struct uar_read *read)
{
	struct events_asked *a = UAR_OWNER(read, struct events_asked, read);
	struct uar_events_read *to = a->to;

	to->err = read->err;
	to->error = read->error;
	to->events = read->events;
	to->event_count = read->event_count;
	to->more = read->more;
	to->done(to);
}

uar_err uar_reader_events(struct uar_reader *rd, struct uar_events_read *r)
{
	struct uar_store *store = rt_store(rd->rt);
	struct events_asked *a = ask(rd, sizeof *a, free_events);
	uar_err e;

	if (!a)
		return UAR_ENOMEM;
	a->to = r;
	a->read = (struct uar_read){
		.owner = r->owner,
		.run_id = r->run_id,
		.session_id = r->session_id,
		.after = r->after,
		.limit = r->limit,
		.done = events_ready,
	};
	r->internal = a;
	e = store->ops->read(store, &a->read);
	if (e)
		uar_events_read_fini(r);
	return e;
}

void uar_events_read_fini(struct uar_events_read *r)
{
	free_asked(r->internal);
	r->internal = NULL;
	r->events = NULL;
	r->event_count = 0;
}

/* --- records of runs --------------------------------------------------------------- */

struct runs_asked {
	struct asked base;
	struct uar_runs_query query;
	struct uar_run_list *to;
};

static void free_runs(struct asked *a)
{
	struct runs_asked *r = (struct runs_asked *)a;

	uar_store_query_fini(&r->query);
	uar_free(r);
}

static void runs_ready(struct uar_runs_query *q)
{
	struct runs_asked *a = UAR_OWNER(q, struct runs_asked, query);
	struct uar_run_list *to = a->to;

	to->err = q->err;
	to->error = q->error;
	to->rows = q->rows;
	to->row_count = q->row_count;
	to->more = q->more;
	to->total = q->found.total;
	to->partial = q->found.partial;
	to->done(to);
}

uar_err uar_reader_runs(struct uar_reader *rd, struct uar_run_list *l)
{
	struct uar_store *store = rt_store(rd->rt);
	struct runs_asked *a = ask(rd, sizeof *a, free_runs);
	uar_err e;

	if (!a)
		return UAR_ENOMEM;
	a->to = l;
	a->query = (struct uar_runs_query){
		.owner = l->owner,
		.run_id = l->run_id,
		.task_id = l->task_id,
		.plugin_id = l->plugin_id,
		.entry_id = l->entry_id,
		.agent_id = l->agent_id,
		.status = l->status,
		.root_run_id = l->root_run_id,
		.session_id = l->session_id,
		.thread_id = l->thread_id,
		.prefix = l->prefix,
		.waiting = l->waiting,
		.find = &l->find,
		.before = l->before,
		.limit = l->limit,
		.done = runs_ready,
	};
	l->internal = a;
	e = store->ops->runs(store, &a->query);
	if (e)
		uar_run_list_fini(l);
	return e;
}

void uar_run_list_fini(struct uar_run_list *l)
{
	free_asked(l->internal);
	l->internal = NULL;
	l->rows = NULL;
	l->row_count = 0;
}

/* --- bytes --------------------------------------------------------------------------- */

struct blob_asked {
	struct asked base;
	struct uar_blob_get get;
	struct uar_stage stage;
	struct uar_blob_read *to;
};

static void free_blob(struct asked *a)
{
	struct blob_asked *b = (struct blob_asked *)a;

	uar_store_blob_get_fini(&b->get);
	uar_free(b);
}

static void blob_ready(struct uar_blob_get *get)
{
	struct blob_asked *a = UAR_OWNER(get, struct blob_asked, get);
	struct uar_blob_read *to = a->to;

	to->err = get->err;
	to->error = get->error;
	to->bytes = get->bytes;
	to->total = get->total;
	memcpy(to->sha256, get->sha256, sizeof to->sha256);
	to->done(to);
}

uar_err uar_reader_blob(struct uar_reader *rd, struct uar_blob_read *b)
{
	struct uar_store *store = rt_store(rd->rt);
	struct blob_asked *a = ask(rd, sizeof *a, free_blob);
	uar_err e;

	if (!a)
		return UAR_ENOMEM;
	a->to = b;
	a->stage = (struct uar_stage){ b->owner, b->run_id, b->staged_id };
	a->get = (struct uar_blob_get){
		.stage = b->staged_id.n ? &a->stage : NULL,
		.offset = b->offset,
		.limit = b->limit,
		.done = blob_ready,
	};
	memcpy(a->get.sha256, b->sha256, sizeof a->get.sha256);
	b->internal = a;
	e = store->ops->blob_get(store, &a->get);
	if (e)
		uar_blob_read_fini(b);
	return e;
}

void uar_blob_read_fini(struct uar_blob_read *b)
{
	free_asked(b->internal);
	b->internal = NULL;
	b->bytes = UAR_STR_NONE;
}
