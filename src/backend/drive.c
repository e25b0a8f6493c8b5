/* drive.c - starting and ending a run's thread, and what it shares with callers. */
#include "backend/drive.h"
#include "backend/limits.h"
#include "loop/limits.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int64_t usec(int64_t ms, int64_t usual_ms)
{
	const int64_t years = 1000000000000;

	if (ms <= 0)
		ms = usual_ms;
	return (ms < years ? ms : years) * 1000;
}

struct uab_times uab_times_of(const uaa_process_options *o)
{
	static const uaa_process_options none;
	const uint64_t line = UAR_LIMIT_AGENT_LINE;

	if (!o)
		o = &none;
	return (struct uab_times){
		.interrupt_us = usec(o->interrupt_ms, 2000),
		.terminate_us = usec(o->terminate_ms, 3000),
		.kill_us = usec(o->kill_ms, 10000),
		.after_us = usec(o->after_result_ms, 10000),
		.start_us = usec(o->start_ms, 60000),
		.approval_us = usec(o->approval_ms, 300000),
		.idle_us = usec(o->idle_ms, 0),
		.line_bytes = o->line_bytes && o->line_bytes < line ? o->line_bytes : line,
		.queue_bytes = o->queue_bytes,
		.spill_bytes = o->spill_bytes,
	};
}

/* --- from other threads, with the run's lock held --- */

static void wake(struct uab_drive *d)
{
	uint64_t one = 1;
	ssize_t n = write(d->wake, &one, sizeof one);

	(void)n; /* full means: awake already */
}

static void on_cancel(void *ctx)
{
	wake(ctx);
}

static struct uab_pending *find_pending(struct uab_drive *d, uar_str id)
{
	for (size_t i = 0; i < ARRAY_LEN(d->pending); i++) {
		struct uab_pending *p = &d->pending[i];

		if (p->used && !p->answered && uar_str_is(id, p->ask.id))
			return p;
	}
	return NULL;
}

static uaa_status on_respond(void *ctx, uar_str id, uaa_decision decision)
{
	struct uab_drive *d = ctx;
	struct uab_pending *p;

	pthread_mutex_lock(&d->mu);
	p = find_pending(d, id);
	if (p) {
		p->answered = true;
		p->decision = decision;
	}
	pthread_mutex_unlock(&d->mu);
	if (p)
		wake(d);
	return p ? UAA_OK : UAA_E_INVALID_REQUEST;
}

static uaa_status on_approval(void *ctx, uar_str id, char **out, size_t *len)
{
	struct uab_drive *d = ctx;
	struct uab_pending *p;
	uaa_status s = UAA_E_INVALID_REQUEST;

	pthread_mutex_lock(&d->mu);
	p = find_pending(d, id);
	if (p) {
		char *copy = uar_strdup_n(p->ask.input.p, p->ask.input.n);

		s = copy ? UAA_OK : UAA_E_NOMEM;
		if (copy) {
			*out = copy;
			*len = p->ask.input.n;
		}
	}
	pthread_mutex_unlock(&d->mu);
	return s;
}

/* --- what dialects do, on the thread --- */

static void port_emit(void *ctx, const uaa_event_spec *s, bool last)
{
	struct uab_drive *d = ctx;

	if (uab_emit(d->producer, s, last) == UAA_E_NOMEM)
		d->nomem = true;
}

static void port_send(void *ctx, uar_str bytes)
{
	struct uab_drive *d = ctx;

	if (d->child.in >= 0 && !d->close_input)
		uar_buf_add_str(&d->input, bytes);
	if (d->input.err)
		d->nomem = true;
}

static bool copy_ask(struct uab_pending *p, const struct uab_ask *ask)
{
	p->input = uar_strdup_n(ask->input.p, ask->input.n);
	p->extra = uar_strdup_n(ask->extra.p, ask->extra.n);
	if (!p->input || !p->extra) {
		uar_free(p->input);
		uar_free(p->extra);
		return false;
	}
	p->ask = *ask;
	p->ask.input = uar_str_n(p->input, ask->input.n);
	p->ask.extra = uar_str_n(p->extra, ask->extra.n);
	return true;
}

static bool port_ask(void *ctx, const struct uab_ask *ask)
{
	struct uab_drive *d = ctx;
	bool ok = false;

	pthread_mutex_lock(&d->mu);
	for (size_t i = 0; i < ARRAY_LEN(d->pending) && !ok; i++) {
		struct uab_pending *p = &d->pending[i];

		if (p->used)
			continue;
		*p = (struct uab_pending){ .deadline_us = uab_now_us() + d->t.approval_us };
		ok = p->used = copy_ask(p, ask);
		break;
	}
	pthread_mutex_unlock(&d->mu);
	return ok;
}

/* --- the thread --- */

struct start {
	struct uab_drive drive;
	struct uab_job job;
};

static void free_start(struct start *s)
{
	struct uab_drive *d = &s->drive;

	for (size_t i = 0; i < ARRAY_LEN(d->pending); i++)
		if (d->pending[i].used) {
			uar_free(d->pending[i].input);
			uar_free(d->pending[i].extra);
		}
	uar_buf_fini(&d->input);
	uar_buf_fini(&d->errors);
	uar_arena_fini(&d->scratch);
	uab_close(&d->wake);
	pthread_mutex_destroy(&d->mu);
	uar_free(s);
}

void uab_trace(const struct uab_drive *d, uaa_trace_kind kind, uar_str bytes)
{
	uaa_trace t = { .struct_size = sizeof t,
			.kind = kind,
			.agent_kind = d->run->kind->id,
			.run = d->run,
			.bytes = uab_pub(bytes) };

	if (d->insight.trace)
		d->insight.trace(d->insight.trace_ctx, &t);
}

static uaa_error *error_of(const struct uab_drive *d, const struct uab_map *m, uaa_cause cause,
			   const char *message)
{
	struct uab_details more = { .has_status = d->has_status,
				    .wait_status = d->status,
				    .withheld = d->insight.withheld };

	if (d->insight.keep_words)
		more.words = m && m->words.n ? uar_buf_str(&m->words) : uar_buf_str(&d->errors);
	return uab_error_detailed(cause, uaa_str_c(message), &more);
}

/* The one place where a driven run ends. */
static void conclude(struct uab_drive *d, struct uab_map *m)
{
	struct uar_buf data = uar_buf_make(UAA_MAX_DATA);
	bool has_data;

	if (d->stuck) {
		uab_producer_fail(d->producer, error_of(d, m, UAA_CAUSE_TERMINATION, d->stuck),
				  true);
	} else if (!m || d->nomem) {
		uaa_producer_fail(d->producer, UAB_STR("out of memory"));
	} else if (m->outcome == UAB_DONE && d->has_status) {
		has_data = uab_completion_data(m, &data);
		uaa_producer_succeed(d->producer, d->status,
				     m->has_final && !m->final.err ? uab_pub(uar_buf_str(&m->final))
								   : UAB_NONE,
				     has_data ? uab_pub(uar_buf_str(&data)) : UAB_NONE);
	} else if (m->outcome == UAB_FAILED) {
		uab_producer_fail(d->producer, error_of(d, m, m->cause, m->error), false);
	} else {
		uab_producer_fail(d->producer, error_of(d, m, UAA_CAUSE_CANCELLED, "cancelled"),
				  false);
	}
	uar_buf_fini(&data);
}

static void *thread_main(void *arg)
{
	struct start *s = arg;
	struct uab_drive *d = &s->drive;
	struct uab_map *m = s->job.body(d, s->job.ctx);
	uaa_producer *producer = d->producer;

	conclude(d, m);
	uab_child_reap(&d->child); /* of a stuck tree: stays until it is gone */
	if (s->job.destroy)
		s->job.destroy(s->job.ctx);
	free_start(s);
	uaa_producer_unref(producer);
	return NULL;
}

/* Signals of the host are for the host's threads. */
static int start_thread(void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int e = pthread_attr_init(&attr);

	if (e)
		return e;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&thread, &attr, thread_main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return e;
}

static bool init_start(struct start *s, const struct uab_job *job)
{
	struct uab_drive *d = &s->drive;

	s->job = *job;
	d->t = job->t;
	d->insight = job->insight;
	d->supervisor = job->supervisor;
	d->cgroup = job->cgroup;
	d->port = (struct uab_port){ d, port_emit, port_send, port_ask };
	d->child = (struct uab_child){ .in = -1, .out = -1, .err = -1, .control = -1, .pidfd = -1 };
	d->input = uar_buf_make(UAR_LIMIT_AGENT_INPUT);
	d->errors = uar_buf_make(UAR_LIMIT_AGENT_STDERR);
	uar_arena_init(&d->scratch, 0);
	if (job->timeout_ms > 0 && job->timeout_ms < INT64_MAX / 2000)
		d->deadline_us = uab_now_us() + job->timeout_ms * 1000;
	d->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return d->wake >= 0;
}

static uaa_status start_failed(const struct uab_job *job, struct start *s, uaa_error **error)
{
	if (job->destroy)
		job->destroy(job->ctx);
	if (!s)
		return UAA_E_NOMEM;
	free_start(s);
	return uab_fail(error, UAA_E_BACKEND, UAR_STR_NONE,
			UAR_STR("run could not be started: out of threads or descriptors"));
}

uaa_status uab_drive_start(const struct uab_job *job, uaa_run **out, uaa_error **error)
{
	struct start *s = uar_zalloc(sizeof *s);
	struct uab_run_spec spec = { .kind = job->kind,
				     .hooks = { .cancel = on_cancel },
				     .queue_bytes = job->t.queue_bytes,
				     .spill_bytes = job->t.spill_bytes };
	uaa_run *run;

	if (!s)
		return start_failed(job, NULL, error);
	pthread_mutex_init(&s->drive.mu, NULL);
	if (!init_start(s, job))
		return start_failed(job, s, error);
	if (job->respond) {
		spec.hooks.respond = on_respond;
		spec.hooks.approval = on_approval;
	}
	spec.ctx = &s->drive;
	if (uab_run_new(&spec, &run, &s->drive.producer))
		return start_failed(job, s, error);
	s->drive.run = run;
	run->give_up_us = s->drive.deadline_us;
	if (start_thread(s)) {
		uaa_producer *p = s->drive.producer;
		uaa_status st = start_failed(job, s, error);

		uaa_producer_unref(p);
		uaa_run_unref(run);
		return st;
	}
	*out = run;
	return UAA_OK;
}

bool uab_drive_over(struct uab_drive *d)
{
	return uab_run_cancelled(d->run) || (d->deadline_us && uab_now_us() >= d->deadline_us);
}
