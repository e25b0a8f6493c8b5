/* know.c - jobs of the knowledge base, and searches that need a provider first. */
#include "memory/know_int.h"

#include <errno.h>
#include <sys/stat.h>

/* --- life ----------------------------------------------------------------------------------- */

static void free_all(struct uar_knowledge *k)
{
	know_watch_free(k->watcher);
	uar_kb_close(k->kb);
	uar_free(k->dir);
	uar_free(k);
}

uar_err uar_knowledge_create(const struct uar_knowledge_options *o, struct uar_knowledge **out,
			     struct uar_error *error)
{
	struct uar_knowledge *k = uar_zalloc(sizeof *k);
	uar_err e = UAR_OK;

	if (!k)
		return UAR_ENOMEM;
	k->o = *o;
	k->sched = uar_loop_sched(o->loop);
	k->dir = uar_strdup_n(o->dir, strlen(o->dir));
	if (!k->dir)
		e = UAR_ENOMEM;
	else if (mkdir(o->dir, 0700) && errno != EEXIST)
		e = uar_error_set(error, UAR_EIO, "%s: %s", o->dir, strerror(errno));
	if (!e)
		e = uar_kb_open(o->dir, o->embedding, &k->kb, error);
	if (e) {
		free_all(k);
		return e;
	}
	if (uar_kb_was_damaged(k->kb))
		uar_log(o->log, UAR_LOG_WARN, "kb.index_damaged",
			{ "text", UAR_STR("index.db was damaged; it is made anew from the "
					  "documents") });
	k->index.retry = true; /* a start tries again what failed before */
	uar_know_wake(k);
	e = know_watch_start(k);
	if (e)
		uar_knowledge_destroy(k);
	else
		*out = k;
	return e;
}

void uar_knowledge_destroy(struct uar_knowledge *k)
{
	if (!k)
		return;
	k->dead = true;
	k->jobs++; /* this call: the end of another one must not free what it still looks at */
	know_watch_stop(k);
	know_index_stop(k);
	if (!--k->jobs)
		free_all(k);
}

int64_t uar_know_now(const struct uar_knowledge *k)
{
	return uar_clock_wall(k->sched->clock);
}

/* --- jobs ----------------------------------------------------------------------------------- */

void *uar_know_job_new(struct uar_knowledge *k, size_t size)
{
	struct uar_know_job *j = k->jobs < UAR_LIMIT_KB_JOBS ? uar_zalloc(size) : NULL;

	if (!j)
		return NULL;
	j->k = k;
	uar_arena_init(&j->arena, 0);
	k->jobs++;
	return j;
}

void uar_know_free(struct uar_know_job *j)
{
	struct uar_knowledge *k = j ? j->k : NULL;

	if (!j)
		return;
	uar_arena_fini(&j->arena);
	uar_free(j);
	if (!--k->jobs && k->dead)
		free_all(k);
}

static void on_worker(struct uar_work *w)
{
	struct uar_know_job *j = UAR_OWNER(w, struct uar_know_job, work);

	j->run(j->k->kb, j);
}

bool uar_knowledge_is_broken(const struct uar_knowledge *k)
{
	return k && k->broken;
}

static void note_broken(struct uar_know_job *j)
{
	if (j->err != UAR_EUNKNOWN || j->k->broken)
		return;
	j->k->broken = true;
	uar_log(j->k->o.log, UAR_LOG_ERROR, "kb.broken",
		{ "detail", uar_str_c(uar_error_text(&j->error)) });
}

static void on_worked(struct uar_work *w)
{
	struct uar_know_job *j = UAR_OWNER(w, struct uar_know_job, work);

	j->error.code = j->err;
	note_broken(j);
	if (j->done && !j->k->dead)
		j->done(j);
	else
		uar_know_free(j);
}

/* What a caller's `done` was; ours frees the job behind it. */
static uar_err begin(struct uar_know_job *j)
{
	j->work.work = on_worker;
	j->work.done = on_worked;
	return uar_work_begin(j->k->sched, &j->work);
}

uar_err uar_know_begin(struct uar_know_job *j)
{
	uar_err e = begin(j);

	if (e)
		uar_know_free(j);
	return e;
}

void uar_know_cancel(struct uar_know_job *j)
{
	if (j)
		j->done = NULL;
}

uar_err uar_know_check_embedding(const struct uar_knowledge *k, uar_str name,
				 struct uar_error *error)
{
	uar_str model, provider = uar_str_cut(name, '/', &model);

	if (uar_str_is(name, UAR_KB_BUILTIN) || (model.n && uar_models_find(k->o.models, provider)))
		return UAR_OK;
	uar_error_where(error, "/embedding");
	return uar_error_set(error, UAR_EINVALID,
			     "it must be builtin, or PROVIDER/MODEL of a provider that is set up");
}

/* --- searches ------------------------------------------------------------------------------- */

static struct uar_know_search *search_of(struct uar_know_job *j)
{
	return UAR_OWNER(j, struct uar_know_search, job);
}

/* The rest of what a search needed is read slice by slice, so that others can search between. */
struct load_job {
	struct uar_know_job job;
	bool more;
};

static void run_load(struct uar_kb *kb, struct uar_know_job *j)
{
	j->err = uar_kb_load_more(kb, &UAR_OWNER(j, struct load_job, job)->more);
}

static void load_begin(struct uar_knowledge *k);

static void loaded(struct uar_know_job *j)
{
	struct uar_knowledge *k = j->k;
	bool more = !j->err && UAR_OWNER(j, struct load_job, job)->more;

	k->loading = false;
	if (more)
		load_begin(k);
	uar_know_free(j);
}

/* What cannot be begun now the next search begins. */
static void load_begin(struct uar_knowledge *k)
{
	struct load_job *l = k->loading ? NULL : uar_know_job_new(k, sizeof *l);

	if (!l)
		return;
	l->job.run = run_load;
	l->job.done = loaded;
	k->loading = !uar_know_begin(&l->job);
}

static void searched(struct uar_know_job *j)
{
	struct uar_know_search *s = search_of(j);

	if (!j->err && s->hits.loading)
		load_begin(j->k);
	if (!j->err && s->hits.mismatch.n)
		uar_log(j->k->o.log, UAR_LOG_WARN, "kb.vectors_not_compared",
			{ "reason", s->hits.mismatch },
			{ "text", UAR_STR("passages are found by words alone") });
	s->then(j);
}

static void run_search(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_know_search *s = search_of(j);

	s->q.vectors = s->vectors;
	s->q.vector_count = s->asked;
	j->err = uar_kb_search(kb, &s->q, &j->arena, &s->hits, &j->error);
	s->hits.partial |= s->missed;
}

/* The caller's `done` is called in its own turn, with the reason. */
static void fail_search(struct uar_kb *kb, struct uar_know_job *j)
{
	(void)kb;
	(void)j;
}

static void go_on(struct uar_know_search *s, uar_err e)
{
	struct uar_know_job *j = &s->job;

	if (!j->done || j->k->dead) {
		uar_know_free(j);
		return;
	}
	j->err = e;
	j->run = e ? fail_search : run_search;
	e = begin(j);
	if (e) {
		j->err = e;
		j->done(j);
	}
}

static void ask_next(struct uar_know_search *s);

/* Words find passages without vectors, too: a search for both goes on with them. */
static void give_up_model(struct uar_know_search *s, uar_err e)
{
	size_t left = s->model_count - s->asked - 1;

	if (s->q.mode != UAR_KB_HYBRID || e == UAR_ENOMEM) {
		go_on(s, e);
		return;
	}
	uar_log(s->job.k->o.log, UAR_LOG_WARN, "kb.query_not_embedded",
		{ "model", s->models[s->asked] }, { "reason", uar_str_c(s->job.error.text) },
		{ "text", UAR_STR("passages are found by words alone") });
	s->job.error = (struct uar_error){ 0 };
	s->missed = true;
	memmove(&s->models[s->asked], &s->models[s->asked + 1], left * sizeof s->models[0]);
	s->model_count--;
	ask_next(s);
}

static void query_embedded(void *ctx, const struct uar_model_embedded *r)
{
	struct uar_know_search *s = ctx;
	struct uar_kb_vector *v = &s->vectors[s->asked];
	float *copy = r->err ? NULL : uar_arena_room(&s->job.arena, r->dims * sizeof *copy);
	float length = 0;

	for (size_t i = 0; copy && i < r->dims; i++)
		length += r->at[i] * r->at[i];
	if (r->err || !copy || !(length > 1e-12F)) {
		uar_err e = r->err ? r->err : copy ? UAR_EPROVIDER : UAR_ENOMEM;

		uar_error_set(&s->job.error, e, "the query could not be embedded by %.*s: %s",
			      UAR_FMT(s->models[s->asked]),
			      r->err ? r->reason : "it is a vector of zeros");
		give_up_model(s, e);
		return;
	}
	length = 1 / __builtin_sqrtf(length);
	for (size_t i = 0; i < r->dims; i++)
		copy[i] = r->at[i] * length;
	*v = (struct uar_kb_vector){ s->models[s->asked++], copy, r->dims };
	ask_next(s);
}

static void ask_next(struct uar_know_search *s)
{
	struct uar_model_embed ask = {
		.inputs = &s->q.text, .n = 1, .done = query_embedded, .ctx = s
	};
	struct uar_model_target to;
	uar_err e;

	if (s->asked == s->model_count) {
		go_on(s, UAR_OK);
		return;
	}
	e = know_embedder(s->job.k, s->models[s->asked], &to, &s->job.error);
	if (!e) {
		ask.model = to.name;
		e = uar_model_embed(to.model, &ask, &s->job.error);
	}
	if (e)
		give_up_model(s, e);
}

static void run_models(struct uar_kb *kb, struct uar_know_job *j)
{
	struct uar_know_search *s = search_of(j);

	if (s->by_policy)
		j->err = know_apply_policy(kb, s);
	if (!j->err && s->q.mode != UAR_KB_KEYWORD && s->q.text.n)
		j->err = uar_kb_models(kb, &s->q, &j->arena, s->models, &s->model_count);
	if (!j->err && !s->model_count) /* all that is needed is here */
		run_search(kb, j);
}

static void first_done(struct uar_know_job *j)
{
	struct uar_know_search *s = search_of(j);

	j->done = searched;
	if (j->err || !s->model_count)
		j->done(j);
	else
		ask_next(s);
}

uar_err uar_know_search_begin(struct uar_know_search *s)
{
	s->then = s->job.done;
	s->job.run = run_models;
	s->job.done = first_done;
	return uar_know_begin(&s->job);
}

void uar_know_progress(const struct uar_knowledge *k, const struct uar_owner *owner,
		       struct uar_know_progress *out)
{
	struct uar_arena arena;
	uar_str who;

	*out = (struct uar_know_progress){ .busy = k->index.busy,
					   .done = k->index.done,
					   .total = k->index.total,
					   .damaged = uar_kb_was_damaged(k->kb) };
	uar_arena_init(&arena, 0);
	who = uar_kb_owner_text(owner, &arena);
	if (who.p && k->index.owner && uar_str_is(who, k->index.owner))
		memcpy(out->document, k->index.document, sizeof out->document);
	else
		out->done = out->total = 0;
	uar_arena_fini(&arena);
}
