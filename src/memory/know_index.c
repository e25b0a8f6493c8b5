/* know_index.c - documents that wait for their index, one after the other.
 *
 * What is pending is found in the files each time: a crash forgets nothing. A PDF is read by
 * pdftotext, a child under supervision; vectors of a provider come in batches and each batch is
 * kept, so that what was paid for is not asked for again. */
#include "memory/know_int.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

enum { AGAIN_US = 5 * 1000 * 1000, PDF_PATH = 4096 };
static const int64_t retry_first_us = 60 * 1000000LL, retry_last_us = 3600 * 1000000LL;

enum outcome { NOTHING_LEFT, INDEXED, WORDED, NEEDS_PROGRAM, NEEDS_VECTORS, FAILED };

struct index_job {
	struct uar_know_job job;
	struct uar_kb_after after;
	bool retry;			    /* what failed, first */
	char silent[UAR_LIMIT_KB_NAME + 1]; /* the embedder that is not asked */
	struct uar_kb_pending p;
	struct uar_kb_missing missing;
	struct uar_kb_result result;
	enum outcome outcome;
	const float *vectors;
	size_t dims;
	uar_str text, why; /* what a program said; why it failed */
	char path[PDF_PATH];
};

static void look_next(struct uar_knowledge *k);

static struct index_job *index_of(struct uar_know_job *j)
{
	return UAR_OWNER(j, struct index_job, job);
}

uar_err know_embedder(const struct uar_knowledge *k, uar_str name, struct uar_model_target *out,
		      struct uar_error *error)
{
	return uar_models_resolve(k->o.models, name, out, error);
}

/* --- on a worker ------------------------------------------------------------------------------ */

static uar_err write_pdf(struct index_job *x)
{
	const char *at = x->p.raw.p;
	size_t left = x->p.raw.n;
	int fd = open(x->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return UAR_EIO;
	while (left) {
		ssize_t n = write(fd, at, left);

		if (n <= 0) {
			close(fd);
			return UAR_EIO;
		}
		at += n;
		left -= (size_t)n;
	}
	close(fd);
	return UAR_OK;
}

static void run_look(struct uar_kb *kb, struct uar_know_job *j)
{
	struct index_job *x = index_of(j);
	bool builtin;

	if (x->retry)
		j->err = uar_kb_retry_failed(kb, &j->error);
	if (j->err)
		return;
	j->err = uar_kb_next_pending(kb, &x->after, &j->arena, &x->p, &j->error);
	if (j->err == UAR_ENOTFOUND) {
		j->err = UAR_OK;
		x->outcome = NOTHING_LEFT;
		return;
	}
	if (j->err)
		return;
	builtin = uar_str_is(x->p.embedding, UAR_KB_BUILTIN);
	if (x->p.raw.n) {
		x->outcome = NEEDS_PROGRAM;
		snprintf(x->path, sizeof x->path, "%s/reading-%lld.pdf", j->k->dir,
			 (long long)x->p.row);
		j->err = write_pdf(x);
		return;
	}
	if (x->silent[0] && uar_str_is(x->p.embedding, x->silent)) {
		x->outcome = WORDED;
		j->err = uar_kb_index_words(kb, x->p.row, &j->error);
		return;
	}
	if (!builtin)
		j->err = uar_kb_missing(kb, &x->p, &j->arena, &x->missing, &j->error);
	x->outcome = x->missing.n ? NEEDS_VECTORS : INDEXED;
	if (!j->err && x->outcome == NEEDS_VECTORS)
		j->err = uar_kb_index_words(kb, x->p.row, &j->error);
	if (!j->err && x->outcome == INDEXED)
		j->err = uar_kb_index(kb, x->p.row, &x->result, &j->error);
}

static void run_text(struct uar_kb *kb, struct uar_know_job *j)
{
	struct index_job *x = index_of(j);

	(void)unlink(x->path);
	j->err = x->why.n ? uar_kb_set_failed(kb, x->p.row, x->why, &j->error)
			  : uar_kb_set_text(kb, x->p.row, x->text, &j->error);
}

static void run_vectors(struct uar_kb *kb, struct uar_know_job *j)
{
	struct index_job *x = index_of(j);
	struct uar_error error = { 0 };
	uar_err e = UAR_OK;

	for (size_t i = 0; i < x->missing.n && !e && !x->why.n; i++) {
		struct uar_kb_vector v = { x->p.embedding, x->vectors + i * x->dims, x->dims };

		e = uar_kb_save_vector(kb, x->p.embedding, x->missing.sha256[i], &v, &error);
	}
	if (e == UAR_EINVALID) {
		x->why = uar_arena_str(&j->arena, uar_str_c(error.text));
		e = UAR_OK;
	}
	if (!e && x->why.n)
		e = uar_kb_set_failed(kb, x->p.row, x->why, &j->error);
	j->err = e;
}

/* --- on the loop ---------------------------------------------------------------------------- */

static void rest(struct uar_knowledge *k, int64_t wait_us)
{
	k->index.busy = false;
	k->index.done = k->index.total = 0;
	k->index.document[0] = 0;
	uar_free(k->index.owner);
	k->index.owner = NULL;
	if (k->index.again) {
		k->index.again = false;
		uar_know_wake(k);
	} else if (wait_us && uar_timer_set(k->sched, &k->index.timer, wait_us)) {
		k->index.again = true; /* the next document wakes it */
	}
}

/* It is asked again after a pause. */
static void rest_silent(struct uar_knowledge *k)
{
	k->index.silent[0] = 0;
	rest(k, AGAIN_US);
}

static void log_failure(struct uar_knowledge *k, const struct uar_know_job *j)
{
	uar_log(k->o.log, UAR_LOG_WARN, "kb.index_failed",
		{ "document", uar_str_c(k->index.document) },
		{ "reason", uar_str_c(uar_error_text(&j->error)) });
}

static void step_done(struct uar_know_job *j)
{
	struct index_job *x = index_of(j);
	struct uar_knowledge *k = j->k;
	uar_err e = j->err;

	k->index.held = NULL;
	if (e) {
		j->error.code = e;
		log_failure(k, j);
	}
	if (x->why.n)
		uar_log(k->o.log, UAR_LOG_WARN, "kb.document_failed", { "document", x->p.id },
			{ "reason", x->why });
	k->index.after = x->why.n ? x->p.row : x->p.row - 1;
	k->index.failed |= x->why.n && x->outcome == NEEDS_VECTORS;
	uar_know_free(j);
	if (e)
		rest(k, AGAIN_US);
	else
		look_next(k);
}

/* The job that waited goes on with what came. */
static void go_on(struct uar_knowledge *k, void (*run)(struct uar_kb *, struct uar_know_job *))
{
	struct index_job *x = k->index.held;

	x->job.run = run;
	x->job.done = step_done;
	k->index.held = NULL;
	if (uar_know_begin(&x->job))
		rest(k, AGAIN_US);
}

/* --- a program ------------------------------------------------------------------------------- */

static void on_output(void *ctx, uar_str bytes)
{
	struct uar_knowledge *k = ctx;

	uar_buf_add_str(&k->index.text, bytes);
}

static void on_errors(void *ctx, uar_str bytes)
{
	(void)ctx;
	(void)bytes;
}

static const char *judge_text(const struct uar_knowledge *k, int status)
{
	uar_str text = uar_buf_str(&k->index.text);
	bool words = false;

	if (status == 127)
		return "pdftotext is not installed; install poppler-utils, then `uar kb rebuild`";
	if (k->index.late)
		return "pdftotext took too long";
	if (status)
		return "pdftotext could not read it: it is damaged or protected";
	if (k->index.text.err)
		return "its text is too large";
	if (!uar_utf8_valid(text))
		return "its text is no UTF-8";
	for (size_t i = 0; i < text.n && !words; i++)
		words = (unsigned char)text.p[i] > ' ';
	return words ? NULL : "it holds no text; scanned pages need to be recognised first";
}

static void on_exit_of(void *ctx, int status)
{
	struct uar_knowledge *k = ctx;
	struct index_job *x = k->index.held;
	const char *why = judge_text(k, status);

	uar_timer_stop(k->sched, &k->index.timer);
	uar_child_destroy(k->index.child);
	k->index.child = NULL;
	if (why)
		x->why = uar_str_c(why);
	else
		x->text = uar_arena_str(&x->job.arena, uar_buf_str(&k->index.text));
	if (!why && !x->text.p)
		x->why = UAR_STR("out of memory");
	uar_buf_fini(&k->index.text);
	go_on(k, run_text);
}

static void on_timer(struct uar_timer *t)
{
	struct uar_knowledge *k = UAR_OWNER(t, struct uar_knowledge, index.timer);

	if (k->index.child) {
		k->index.late = true;
		uar_child_kill(k->index.child);
	} else {
		k->index.retry |= k->index.slow;
		uar_know_wake(k);
	}
}

static const char *path_of(const struct uar_knowledge *k)
{
	for (char *const *at = k->o.env; at && *at; at++)
		if (!strncmp(*at, "PATH=", 5))
			return *at;
	return "PATH=/usr/bin:/bin";
}

/* What is read may be made to attack the program: it is told no secret, and is bounded. */
static uar_err start_program(struct uar_knowledge *k, struct index_job *x)
{
	char limit[160];
	const char *argv[] = { "sh",   "-c",	limit,	 "sh", "pdftotext", "-q",
			       "-enc", "UTF-8", x->path, "-",  NULL };
	const char *env[] = { path_of(k), "LANG=C.UTF-8", NULL };
	struct uar_child_options o = {
		.argv = argv,
		.env = env,
		.output = on_output,
		.errors = on_errors,
		.exited = on_exit_of,
		.ctx = k,
	};
	uar_err e;

	snprintf(limit, sizeof limit,
		 "ulimit -c 0; ulimit -f 0; ulimit -t %d; ulimit -v %d; exec \"$@\"",
		 UAR_LIMIT_KB_PDF_SECONDS, UAR_LIMIT_KB_PDF_KB);
	e = uar_child_start(k->o.loop, &o, &k->index.child, &x->job.error);
	if (e)
		return e;
	k->index.late = false;
	k->index.text = uar_buf_make(UAR_LIMIT_KB_DOCUMENT);
	uar_child_end_input(k->index.child);
	if (uar_timer_set(k->sched, &k->index.timer, (int64_t)UAR_LIMIT_KB_PDF_SECONDS * 1000000))
		uar_child_kill(k->index.child);
	return UAR_OK;
}

/* --- a provider ----------------------------------------------------------------------------- */

/* What waits behind the document is at least found by its words. */
static void note_silence(struct uar_knowledge *k, struct index_job *x)
{
	snprintf(k->index.silent, sizeof k->index.silent, "%.*s", UAR_FMT(x->p.embedding));
	k->index.after = x->p.row;
	k->index.held = NULL;
	uar_know_free(&x->job);
	look_next(k);
}

static void on_embedded(void *ctx, const struct uar_model_embedded *r)
{
	struct uar_knowledge *k = ctx;
	struct index_job *x = k->index.held;
	size_t bytes = r->n * r->dims * sizeof *r->at;

	if (r->err && r->retryable) {
		x->job.err = uar_error_set(&x->job.error, r->err, "%s", r->reason);
		log_failure(k, &x->job);
		note_silence(k, x);
		return;
	}
	if (r->err) {
		x->why = uar_arena_str(&x->job.arena, uar_str_c(r->reason));
	} else {
		void *copy = uar_arena_room(&x->job.arena, bytes);

		if (copy)
			memcpy(copy, r->at, bytes);
		else
			x->why = UAR_STR("out of memory");
		x->vectors = copy;
		x->dims = r->dims;
	}
	go_on(k, run_vectors);
}

static uar_err ask_vectors(struct uar_knowledge *k, struct index_job *x)
{
	struct uar_model_embed ask = {
		.inputs = x->missing.text, .n = x->missing.n, .done = on_embedded, .ctx = k
	};
	struct uar_model_target to;
	uar_err e = know_embedder(k, x->p.embedding, &to, &x->job.error);

	k->index.total = x->missing.total;
	k->index.done = x->missing.total - x->missing.lacking;
	if (e)
		return e;
	ask.model = to.name;
	return uar_model_embed(to.model, &ask, &x->job.error);
}

/* --- the next one --------------------------------------------------------------------------- */

/* It waits for something else than a worker, and the document fails if that cannot be had. */
static void hold(struct uar_knowledge *k, struct index_job *x)
{
	uar_err e;

	k->index.held = x;
	e = x->outcome == NEEDS_PROGRAM ? start_program(k, x) : ask_vectors(k, x);
	if (!e)
		return;
	x->why = uar_str_c(x->job.error.text[0] ? x->job.error.text : uar_err_text(e));
	go_on(k, x->outcome == NEEDS_PROGRAM ? run_text : run_vectors);
}

/* Nothing is pending. What has no vectors is tried again, after longer and longer waits. */
static void rest_long(struct uar_knowledge *k)
{
	int64_t wait = k->index.retry_us ? 2 * k->index.retry_us : retry_first_us;

	if (!k->index.failed) {
		rest(k, 0);
		return;
	}
	k->index.retry_us = wait < retry_last_us ? wait : retry_last_us;
	k->index.slow = true;
	rest(k, k->index.retry_us);
}

static void looked(struct uar_know_job *j)
{
	struct index_job *x = index_of(j);
	struct uar_knowledge *k = j->k;

	snprintf(k->index.document, sizeof k->index.document, "%.*s", UAR_FMT(x->p.id));
	uar_free(k->index.owner);
	k->index.owner = x->p.owner.p ? uar_strdup_n(x->p.owner.p, x->p.owner.n) : NULL;
	if (j->err) {
		log_failure(k, j);
		uar_know_free(j);
		rest(k, AGAIN_US);
	} else if (x->outcome == NOTHING_LEFT) {
		uar_know_free(j);
		if (k->index.silent[0])
			rest_silent(k);
		else
			rest_long(k);
	} else if (x->outcome == INDEXED || x->outcome == WORDED) {
		k->index.after = x->p.row;
		if (x->outcome == INDEXED)
			k->index.retry_us = 0;
		uar_know_free(j);
		look_next(k);
	} else {
		hold(k, x);
	}
}

static void look_next(struct uar_knowledge *k)
{
	struct index_job *x = uar_know_job_new(k, sizeof *x);

	if (!x) {
		rest(k, AGAIN_US);
		return;
	}
	x->after = (struct uar_kb_after){ k->index.after, x->silent };
	x->retry = k->index.retry;
	memcpy(x->silent, k->index.silent, sizeof x->silent);
	k->index.failed &= !x->retry;
	k->index.retry = false;
	x->job.run = run_look;
	x->job.done = looked;
	if (uar_know_begin(&x->job))
		rest(k, AGAIN_US);
}

void uar_know_wake(struct uar_knowledge *k)
{
	k->index.timer.fn = on_timer;
	if (k->index.busy) {
		k->index.again = true;
		return;
	}
	uar_timer_stop(k->sched, &k->index.timer);
	k->index.busy = true;
	k->index.slow = false;
	k->index.after = 0;
	look_next(k);
}

void know_index_stop(struct uar_knowledge *k)
{
	uar_timer_stop(k->sched, &k->index.timer);
	uar_child_destroy(k->index.child);
	uar_buf_fini(&k->index.text);
	if (k->index.held)
		uar_know_free(&k->index.held->job);
	k->index.held = NULL;
	uar_free(k->index.owner);
	k->index.owner = NULL;
}
