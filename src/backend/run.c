/* run.c - a run: the stream, the completion that resolves once, and cancelling.
 *
 * One lock a run. `done` is the producer's last word, `ended` closes the stream,
 * `eos` is its end as received, `resolved` the completion; the last is set in
 * one place, settle(). */
#include "backend/int.h"
#include "backend/limits.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CORK_EVENTS = 512 };
static const uint64_t SPILL_BYTES = 4ull << 30;

/* --- completions --- */

static uaa_completion *completion_new(int wait_status, uaa_str final_text, uaa_str data)
{
	struct uaa_completion *c = uar_zalloc(sizeof *c);
	uaa_str bounded = UAB_NONE;
	struct uar_buf tmp = { 0 };
	bool ok;

	if (!c)
		return NULL;
	c->refs = 1;
	c->wait_status = wait_status;
	c->text_buf = uar_buf_make(UAA_MAX_TEXT);
	c->data_buf = uar_buf_make(UAA_MAX_DATA);
	if (final_text.ptr) {
		struct uar_buf clean = uar_buf_make(3 * final_text.len + 1);

		uab_lossy(uab_str(final_text), &clean);
		uab_truncate(uar_buf_str(&clean), UAA_MAX_TEXT, &c->text_buf);
		uar_buf_add(&c->text_buf, "", 0);
		ok = !clean.err && !c->text_buf.err;
		uar_buf_fini(&clean);
		c->final_text = uab_pub(uar_buf_str(&c->text_buf));
	} else {
		ok = true;
	}
	ok = ok && uab_bound_data(data, false, &tmp, &bounded);
	if (bounded.ptr) {
		uar_buf_add(&c->data_buf, bounded.ptr, bounded.len);
		c->data = uab_pub(uar_buf_str(&c->data_buf));
	}
	uar_buf_fini(&tmp);
	if (ok && !c->data_buf.err)
		return c;
	uaa_completion_unref(c);
	return NULL;
}

bool uaa_completion_exited(const uaa_completion *c, int *out_code)
{
	if (!c || c->wait_status & 0x7f)
		return false;
	if (out_code)
		*out_code = (c->wait_status >> 8) & 0xff;
	return true;
}

bool uaa_completion_signaled(const uaa_completion *c, int *out_signal)
{
	if (!c || !(c->wait_status & 0x7f))
		return false;
	if (out_signal)
		*out_signal = c->wait_status & 0x7f;
	return true;
}

uaa_str uaa_completion_final_text(const uaa_completion *c)
{
	return c ? c->final_text : UAB_NONE;
}

uaa_str uaa_completion_data_json(const uaa_completion *c)
{
	return c ? c->data : UAB_NONE;
}

uaa_completion *uaa_completion_ref(uaa_completion *c)
{
	if (c)
		atomic_fetch_add(&c->refs, 1);
	return c;
}

void uaa_completion_unref(uaa_completion *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	uar_buf_fini(&c->text_buf);
	uar_buf_fini(&c->data_buf);
	uar_free(c);
}

/* --- life --- */

static void free_taken(uaa_run *run)
{
	while (run->batch.taken) {
		struct uaa_event *ev = run->batch.taken;

		run->batch.taken = ev->next;
		uaa_event_unref(ev);
	}
	atomic_store(&run->batch.n, 0);
}

static void run_free(uaa_run *run)
{
	free_taken(run);
	uab_queue_fini(&run->q);
	uaa_completion_unref(run->completion);
	uaa_error_unref(run->error);
	uaa_kind_unref(run->kind);
	if (run->fd >= 0)
		close(run->fd);
	pthread_cond_destroy(&run->cv);
	pthread_mutex_destroy(&run->mu);
	uar_free(run);
}

static void put_ref(uaa_run *run)
{
	if (atomic_fetch_sub(&run->refs, 1) == 1)
		run_free(run);
}

static bool init_sync(uaa_run *run)
{
	pthread_condattr_t attr;
	bool ok;

	if (pthread_mutex_init(&run->mu, NULL))
		return false;
	ok = pthread_condattr_init(&attr) == 0;
	ok = ok && pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0;
	ok = ok && pthread_cond_init(&run->cv, &attr) == 0;
	if (!ok)
		pthread_mutex_destroy(&run->mu);
	return ok;
}

uaa_status uab_run_new(const struct uab_run_spec *spec, uaa_run **out, uaa_producer **out_p)
{
	uaa_run *run = uar_zalloc(sizeof *run);
	uaa_status s;

	if (!run)
		return UAA_E_NOMEM;
	s = uaa_kind_new(spec->kind, &run->kind, NULL);
	if (s || !init_sync(run)) {
		uaa_kind_unref(run->kind);
		uar_free(run);
		return s ? s : UAA_E_NOMEM;
	}
	run->refs = 2;
	run->handles = 1;
	run->fd = -1;
	run->hooks = spec->hooks;
	run->ctx = spec->ctx;
	run->producer.run = run->cancel.run = run;
	uab_queue_init(&run->q, spec->queue_bytes ? spec->queue_bytes : UAR_LIMIT_AGENT_QUEUE,
		       spec->spill_bytes ? spec->spill_bytes : SPILL_BYTES);
	*out = run;
	*out_p = &run->producer;
	return UAA_OK;
}

uaa_status uaa_run_new(uaa_str kind, const uaa_producer_hooks *hooks, void *ctx, uaa_run **out,
		       uaa_producer **out_producer)
{
	struct uab_run_spec spec = { .kind = kind, .ctx = ctx };
	uaa_producer_hooks own = { 0 };

	if (!out || !out_producer)
		return UAA_E_ARG;
	if (hooks && !uab_take_struct(&own, sizeof own, hooks, sizeof own))
		return UAA_E_ARG;
	spec.hooks.cancel = own.cancel;
	spec.hooks.closed = own.events_closed;
	return uab_run_new(&spec, out, out_producer);
}

/* --- state, all under the lock --- */

static void show_fd(uaa_run *run)
{
	bool up = !uab_queue_empty(&run->q) || (run->ended && !run->eos) || run->resolved ||
		  (atomic_load(&run->batch.n) && !atomic_load(&run->batch.drop));
	uint64_t v = 1;
	ssize_t n = 0;

	if (run->fd < 0 || up == run->fd_up)
		return;
	run->fd_up = up;
	n = up ? write(run->fd, &v, sizeof v) : read(run->fd, &v, sizeof v);
	(void)n; /* an eventfd that is below its maximum neither blocks nor fails */
}

static void wake(uaa_run *run)
{
	show_fd(run);
	if (run->waiters)
		pthread_cond_broadcast(&run->cv);
}

/* Instead of whatever the run has come to; how its program ended stays. */
static uaa_error *cancelled_error(const uaa_run *run)
{
	struct uab_details d = { 0 };

	if (run->completion) {
		d.has_status = true;
		d.wait_status = run->completion->wait_status;
	} else {
		d.has_status = uab_error_status(run->error, &d.wait_status);
	}
	return uab_error_detailed(UAA_CAUSE_CANCELLED, UAB_STR("cancelled"), &d);
}

/* The one place where a completion resolves. */
static void settle(uaa_run *run)
{
	if (!run->resolved && run->done && (run->eos || run->closed)) {
		run->resolved = true;
		if (run->cancelled && !run->termination_failed) {
			uaa_error *e = cancelled_error(run);

			uaa_completion_unref(run->completion);
			run->completion = NULL;
			uaa_error_unref(run->error);
			run->error = e;
		}
		uab_queue_clear(&run->q);
	}
	wake(run);
}

static bool wait_until(uaa_run *run, int64_t until_us)
{
	struct timespec t = { .tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000 };
	int e;

	run->waiters++;
	e = until_us < 0 ? pthread_cond_wait(&run->cv, &run->mu)
			 : pthread_cond_timedwait(&run->cv, &run->mu, &t);
	run->waiters--;
	return e != ETIMEDOUT;
}

static int64_t until(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : uab_now_us() + (int64_t)timeout_ms * 1000;
}

/* --- the consumer --- */

int uaa_run_fd(uaa_run *run)
{
	int fd;

	if (!run)
		return -1;
	pthread_mutex_lock(&run->mu);
	if (run->fd < 0)
		run->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	show_fd(run);
	fd = run->fd;
	pthread_mutex_unlock(&run->mu);
	return fd;
}

/* The next of those that were taken over. The last one goes by the locked way. */
static struct uaa_event *pop_taken(uaa_run *run)
{
	struct uaa_event *ev;

	if (atomic_load(&run->batch.drop))
		free_taken(run);
	ev = run->batch.taken;
	if (!ev)
		return NULL;
	run->batch.taken = ev->next;
	ev->next = NULL;
	atomic_fetch_sub(&run->batch.n, 1);
	return ev;
}

static uaa_event *get_locked(uaa_run *run)
{
	size_t n;
	uaa_event *ev;

	if (run->closed)
		return NULL;
	ev = pop_taken(run);
	if (ev)
		return ev;
	run->batch.taken = uab_queue_take(&run->q, &n);
	atomic_store(&run->batch.n, n);
	ev = pop_taken(run);
	return ev ? ev : uab_queue_get(&run->q, run->kind);
}

static uaa_status next_locked(uaa_run *run, uaa_event **out)
{
	uaa_event *ev = get_locked(run);

	if (run->q.broken && !run->done) /* nothing more can be read: said at the end */
		run->ended = true;
	if (ev) {
		*out = ev;
		wake(run); /* a producer may wait for room */
		return UAA_OK;
	}
	if (run->ended || run->closed) {
		run->eos = true;
		settle(run);
		return UAA_EOS;
	}
	return UAA_AGAIN;
}

static bool next_taken(uaa_run *run, uaa_event **out)
{
	uaa_event *ev;

	if (atomic_load(&run->batch.n) < 2) /* the descriptor may have to change */
		return false;
	ev = pop_taken(run);
	if (ev)
		*out = ev;
	return ev != NULL;
}

uaa_status uaa_run_next(uaa_run *run, int timeout_ms, uaa_event **out)
{
	int64_t end = timeout_ms ? until(timeout_ms) : 0;
	uaa_status s;

	if (!run || !out)
		return UAA_E_ARG;
	if (next_taken(run, out))
		return UAA_OK;
	pthread_mutex_lock(&run->mu);
	while ((s = next_locked(run, out)) == UAA_AGAIN && timeout_ms)
		if (!wait_until(run, end)) {
			s = next_locked(run, out);
			break;
		}
	show_fd(run);
	pthread_mutex_unlock(&run->mu);
	return s;
}

void uaa_run_close_events(uaa_run *run)
{
	if (!run)
		return;
	pthread_mutex_lock(&run->mu);
	if (!run->closed) {
		run->closed = true;
		atomic_store(&run->batch.drop, true);
		uab_queue_clear(&run->q);
		if (!run->done && run->hooks.closed)
			run->hooks.closed(run->ctx);
		settle(run);
	}
	pthread_mutex_unlock(&run->mu);
}

static uaa_status result_locked(uaa_run *run, uaa_completion **out, uaa_error **error)
{
	if (run->completion) {
		if (out)
			*out = uaa_completion_ref(run->completion);
		return UAA_OK;
	}
	if (!run->error)
		return UAA_E_NOMEM;
	if (error)
		*error = uaa_error_ref(run->error);
	return uaa_error_code(run->error);
}

uaa_status uaa_run_wait(uaa_run *run, int timeout_ms, uaa_completion **out, uaa_error **error)
{
	int64_t end = timeout_ms ? until(timeout_ms) : 0;
	uaa_status s = UAA_AGAIN;

	if (!run)
		return uab_wrong(error, "run is NULL");
	pthread_mutex_lock(&run->mu);
	while (!run->resolved && timeout_ms)
		if (!wait_until(run, end))
			break;
	if (run->resolved)
		s = result_locked(run, out, error);
	pthread_mutex_unlock(&run->mu);
	return s;
}

uaa_status uaa_run_collect(uaa_run *run, void (*on_event)(void *ctx, const uaa_event *event),
			   void *ctx, uaa_run_result *out, uaa_error **error)
{
	uaa_event *ev;

	while (uaa_run_next(run, -1, &ev) == UAA_OK) {
		if (on_event)
			on_event(ctx, ev);
		uaa_event_unref(ev);
	}
	return uaa_run_wait(run, -1, out ? &out->completion : NULL, error);
}

uaa_run *uaa_run_ref(uaa_run *run)
{
	if (run) {
		atomic_fetch_add(&run->handles, 1);
		atomic_fetch_add(&run->refs, 1);
	}
	return run;
}

void uaa_run_unref(uaa_run *run)
{
	if (!run)
		return;
	if (atomic_fetch_sub(&run->handles, 1) == 1) {
		uab_cancel(run);
		uaa_run_close_events(run);
	}
	put_ref(run);
}

/* --- cancel --- */

void uab_cancel(uaa_run *run)
{
	pthread_mutex_lock(&run->mu);
	if (!run->cancelled && !run->resolved) {
		run->cancelled = run->ended = true;
		atomic_store(&run->batch.drop, true);
		uab_queue_clear(&run->q);
		if (!run->done && run->hooks.cancel)
			run->hooks.cancel(run->ctx);
		settle(run);
	}
	pthread_mutex_unlock(&run->mu);
}

uaa_cancel *uab_cancel_new(uaa_run *run)
{
	atomic_fetch_add(&run->refs, 1);
	return &run->cancel;
}

void uaa_cancel_request(uaa_cancel *cancel)
{
	if (cancel)
		uab_cancel(cancel->run);
}

uaa_cancel *uaa_cancel_ref(uaa_cancel *cancel)
{
	return cancel ? uab_cancel_new(cancel->run) : NULL;
}

void uaa_cancel_unref(uaa_cancel *cancel)
{
	if (cancel)
		put_ref(cancel->run);
}

/* --- approvals --- */

static uaa_status approval_status(uaa_run *run, uaa_status s, bool asked, uaa_error **error)
{
	if (!asked)
		return uab_fail(error, UAA_E_UNSUPPORTED_CAPABILITY, uab_str(run->kind->id),
				UAR_STR("agent_api.control.respond.v1"));
	return s == UAA_E_INVALID_REQUEST ? uab_invalid(error, "unknown approval") : s;
}

uaa_status uaa_run_respond(uaa_run *run, uaa_str id, uaa_decision decision, uaa_error **error)
{
	uaa_status s = UAA_E_INVALID_REQUEST;

	if (!run || !id.ptr)
		return uab_wrong(error, !run ? "run is NULL" : "approval_id is absent");
	if (decision < UAA_DECISION_ALLOW || decision > UAA_DECISION_DENY)
		return uab_wrong(error, "decision is not known");
	pthread_mutex_lock(&run->mu);
	if (run->hooks.respond && !run->done && !run->cancelled)
		s = run->hooks.respond(run->ctx, uab_str(id), decision);
	pthread_mutex_unlock(&run->mu);
	return approval_status(run, s, run->hooks.respond != NULL, error);
}

uaa_status uaa_run_approval_input(uaa_run *run, uaa_str id, char **out_json, size_t *out_len,
				  uaa_error **error)
{
	uaa_status s = UAA_E_INVALID_REQUEST;

	if (!run || !id.ptr)
		return uab_wrong(error, !run ? "run is NULL" : "approval_id is absent");
	if (!out_json || !out_len)
		return uab_wrong(error, !out_json ? "out_json is NULL" : "out_len is NULL");
	pthread_mutex_lock(&run->mu);
	if (run->hooks.approval && !run->done && !run->cancelled)
		s = run->hooks.approval(run->ctx, uab_str(id), out_json, out_len);
	pthread_mutex_unlock(&run->mu);
	return approval_status(run, s, run->hooks.approval != NULL, error);
}

/* --- the producer --- */

struct emit {
	uaa_run *run;
	bool force, dropped, late;
};

static bool deliverable(const uaa_run *run)
{
	return !run->cancelled && !run->closed && !run->ended;
}

static bool put_event(void *ctx, struct uaa_event *ev)
{
	struct emit *e = ctx;
	uaa_run *run = e->run;

	while (deliverable(run)) {
		if (uab_queue_put(&run->q, ev)) {
			if (!run->batch.corked || ++run->batch.unheard >= CORK_EVENTS) {
				run->batch.unheard = 0;
				wake(run);
			}
			return true;
		}
		wake(run); /* before waiting for the reader */
		if (e->force) {
			uab_queue_force(&run->q, ev);
			wake(run);
			return true;
		}
		if (!wait_until(run, run->give_up_us ? run->give_up_us : -1)) {
			e->late = true;
			break;
		}
	}
	e->dropped = true;
	uaa_event_unref(ev);
	return false;
}

static uaa_status emit(uaa_producer *p, const uaa_event_spec *s, bool trusted, bool force)
{
	struct emit e = { .run = p->run, .force = force };
	bool ok = false;

	pthread_mutex_lock(&p->run->mu);
	if (deliverable(p->run))
		ok = uab_event_make(p->run->kind, s, trusted, put_event, &e);
	else
		e.dropped = true;
	pthread_mutex_unlock(&p->run->mu);
	if (ok)
		return UAA_OK;
	return e.late ? UAA_AGAIN : e.dropped ? UAA_EOS : UAA_E_NOMEM;
}

uaa_status uaa_producer_emit(uaa_producer *p, const uaa_event_spec *s)
{
	return p && s ? emit(p, s, false, false) : UAA_E_ARG;
}

uaa_status uab_emit(uaa_producer *p, const uaa_event_spec *s, bool force)
{
	return emit(p, s, true, force);
}

void uab_run_cork(uaa_run *run)
{
	pthread_mutex_lock(&run->mu);
	run->batch.corked = true;
	pthread_mutex_unlock(&run->mu);
}

void uab_run_uncork(uaa_run *run)
{
	pthread_mutex_lock(&run->mu);
	run->batch.corked = false;
	if (run->batch.unheard)
		wake(run);
	run->batch.unheard = 0;
	pthread_mutex_unlock(&run->mu);
}

bool uab_run_cancelled(uaa_run *run)
{
	bool c;

	pthread_mutex_lock(&run->mu);
	c = run->cancelled;
	pthread_mutex_unlock(&run->mu);
	return c;
}

static void finish(uaa_run *run, uaa_completion *c, uaa_error *e, bool termination_failed)
{
	pthread_mutex_lock(&run->mu);
	if (!run->done) {
		if (run->q.broken && c) {
			uaa_completion_unref(c);
			c = NULL;
			e = uaa_error_new(UAA_E_BACKEND, UAB_NONE, UAB_STR("event spill failed"));
		}
		run->completion = c;
		run->error = e;
		run->termination_failed = termination_failed;
		run->done = run->ended = true;
		c = NULL;
		e = NULL;
		settle(run);
	}
	pthread_mutex_unlock(&run->mu);
	uaa_completion_unref(c);
	uaa_error_unref(e);
}

void uaa_producer_succeed(uaa_producer *p, int wait_status, uaa_str final_text, uaa_str data_json)
{
	if (p)
		finish(p->run, completion_new(wait_status, final_text, data_json), NULL, false);
}

void uaa_producer_fail_as(uaa_producer *p, uaa_cause cause, uaa_str message)
{
	if (p)
		finish(p->run, NULL, uab_error_caused(cause, message), false);
}

void uaa_producer_fail(uaa_producer *p, uaa_str message)
{
	uaa_producer_fail_as(p, UAA_CAUSE_UNKNOWN, message);
}

void uab_producer_fail(uaa_producer *p, uaa_error *error, bool termination)
{
	finish(p->run, NULL, error, termination);
}

void uaa_producer_unref(uaa_producer *p)
{
	if (!p)
		return;
	finish(p->run, NULL,
	       uaa_error_new(UAA_E_BACKEND, UAB_NONE, UAB_STR("completion channel dropped")),
	       false);
	put_ref(p->run);
}
