/* process.c - one supervised process from start to the last reaped descendant.
 *
 * The loop never waits for anything but its poll: pipes are always drained,
 * deadlines always kept. Stopping is a ladder: a polite word, SIGTERM, the whole
 * tree; only the supervisor's "empty" ends it. */
#include "backend/drive.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_BYTES = 262144, ROUND_BYTES = 4 << 20, DRAIN_US = 1000000, GRACE_MS = 250 };

enum stage { RUNNING, ASKED, TERMINATING, KILLING, GAVE_UP };

struct loop {
	struct uab_drive *d;
	struct uab_map *m;
	char *buf; /* READ_BYTES */
	enum stage stage;
	bool stopping; /* cancelled or out of time */
	int64_t stage_at, done_at, empty_at, start_at, heard_at;
};

/* --- bytes --- */

/* After a polite word the answer to it still counts, though nobody sees events. */
static bool listening(const struct loop *l)
{
	return !l->stopping || l->stage == ASKED;
}

static void on_line(void *ctx, char *p, size_t n)
{
	struct loop *l = ctx;

	if (listening(l))
		uab_map_line(l->m, p, n, &l->d->scratch);
}

static void on_too_long(void *ctx, uint64_t bytes)
{
	struct loop *l = ctx;

	if (listening(l))
		uab_map_too_long(l->m, bytes);
}

static void read_out(struct loop *l)
{
	struct uab_child *c = &l->d->child;

	for (size_t total = 0; total < ROUND_BYTES;) {
		ssize_t n = read(c->out, l->buf, READ_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			uab_close(&c->out);
			uab_lines_end(&l->d->lines);
			return;
		}
		l->heard_at = uab_now_us();
		uab_trace(l->d, UAA_TRACE_STDOUT, uar_str_n(l->buf, (size_t)n));
		uab_run_cork(l->d->run);
		uab_lines_feed(&l->d->lines, l->buf, (size_t)n);
		uab_run_uncork(l->d->run);
		total += (size_t)n;
		if (n < READ_BYTES / 2)
			return; /* likely empty: poll says when there is more */
	}
}

/* The last bytes that fit: a program says at the end why it ends. */
static void keep_end(struct uar_buf *keep, uar_str more)
{
	size_t over;

	if (more.n > keep->max)
		more = uar_str_from(more, more.n - keep->max);
	over = keep->n + more.n > keep->max ? keep->n + more.n - keep->max : 0;
	uar_buf_consume(keep, over);
	uar_buf_add_str(keep, more);
}

static void read_err(struct loop *l)
{
	struct uab_child *c = &l->d->child;
	ssize_t n = read(c->err, l->buf, READ_BYTES);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		uab_close(&c->err);
		return;
	}
	uab_trace(l->d, UAA_TRACE_STDERR, uar_str_n(l->buf, (size_t)n));
	keep_end(&l->d->errors, uar_str_n(l->buf, (size_t)n));
}

static void write_in(struct loop *l)
{
	struct uab_drive *d = l->d;

	while (d->input.n && d->child.in >= 0) {
		ssize_t n = write(d->child.in, d->input.p, d->input.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) { /* it does not want to hear more */
			uar_buf_clear(&d->input);
			uab_close(&d->child.in);
			return;
		}
		uab_trace(d, UAA_TRACE_STDIN, uar_str_n(d->input.p, (size_t)n));
		uar_buf_consume(&d->input, (size_t)n);
	}
	if (d->close_input)
		uab_close(&d->child.in);
}

/* --- approvals --- */

/* Takes one that is answered or too late out of the table. */
static bool next_answer(struct uab_drive *d, struct uab_pending *out)
{
	int64_t now = uab_now_us();
	bool found = false;

	pthread_mutex_lock(&d->mu);
	for (size_t i = 0; i < ARRAY_LEN(d->pending) && !found; i++) {
		struct uab_pending *p = &d->pending[i];

		if (!p->used || (!p->answered && now < p->deadline_us))
			continue;
		*out = *p;
		if (!p->answered)
			out->decision = UAA_DECISION_DENY;
		p->used = false;
		found = true;
	}
	pthread_mutex_unlock(&d->mu);
	return found;
}

static void pass_answers(struct loop *l)
{
	struct uab_pending p;

	while (next_answer(l->d, &p)) {
		if (!l->stopping && l->m->outcome == UAB_OPEN) {
			l->m->dialect->answer(l->m, &p.ask, p.decision);
			uab_status(l->m, p.decision == UAA_DECISION_DENY ? "permission denied"
									 : "permission granted");
		}
		l->heard_at = uab_now_us(); /* the time of people is not its silence */
		uar_free(p.input);
		uar_free(p.extra);
	}
}

static int64_t next_approval(struct uab_drive *d)
{
	int64_t at = 0;

	pthread_mutex_lock(&d->mu);
	for (size_t i = 0; i < ARRAY_LEN(d->pending); i++)
		if (d->pending[i].used && (!at || d->pending[i].deadline_us < at))
			at = d->pending[i].deadline_us;
	pthread_mutex_unlock(&d->mu);
	return at;
}

/* --- stopping --- */

static void step(struct loop *l, enum stage stage)
{
	if (stage <= l->stage)
		return;
	l->stage = stage;
	l->stage_at = uab_now_us();
	if (stage == TERMINATING)
		uab_child_tell(&l->d->child, UAB_SUP_TERM);
	else if (stage == KILLING)
		uab_child_tell(&l->d->child, UAB_SUP_KILL);
	else if (stage == GAVE_UP)
		l->d->stuck = l->d->child.lost ? UAB_LOST : "termination failed";
}

static int64_t stage_end(const struct loop *l)
{
	const struct uab_times *t = &l->d->t;

	switch (l->stage) {
	case ASKED: return l->stage_at + t->interrupt_us;
	case TERMINATING: return l->stage_at + t->terminate_us;
	case KILLING: return l->stage_at + t->kill_us;
	case RUNNING:
	case GAVE_UP: break;
	}
	return 0;
}

/* Permission requests that are still open are denied before the end. */
static void deny_pending(struct loop *l)
{
	struct uab_drive *d = l->d;

	pthread_mutex_lock(&d->mu);
	for (size_t i = 0; i < ARRAY_LEN(d->pending); i++)
		if (d->pending[i].used && !d->pending[i].answered) {
			d->pending[i].answered = true;
			d->pending[i].decision = UAA_DECISION_DENY;
		}
	pthread_mutex_unlock(&d->mu);
	pass_answers(l);
}

static void stop(struct loop *l, bool politely)
{
	bool asked;

	deny_pending(l);
	asked = politely && l->m->heard && l->m->outcome == UAB_OPEN && l->d->child.in >= 0 &&
		l->m->dialect->interrupt && l->m->dialect->interrupt(l->m);

	l->stopping = true;
	if (!asked)
		l->d->close_input = true;
	step(l, asked ? ASKED : TERMINATING);
}

static void time_out(struct loop *l, const char *why)
{
	uab_failed_as(l->m, UAA_CAUSE_TIMEOUT,
		      "%s backend error: %s (details redacted when unsafe)", l->m->kind, why);
	stop(l, false);
}

static void check_time_outs(struct loop *l, int64_t now)
{
	const struct uab_drive *d = l->d;

	if (d->deadline_us && now >= d->deadline_us)
		time_out(l, "timeout");
	else if (l->m->dialect->dialogue && !l->m->heard && now >= l->start_at + d->t.start_us)
		time_out(l, "start timeout");
	else if (d->t.idle_us && !next_approval(l->d) && now >= l->heard_at + d->t.idle_us)
		time_out(l, "idle timeout");
}

static void check_deadlines(struct loop *l)
{
	struct uab_drive *d = l->d;
	int64_t now = uab_now_us();

	if (!l->stopping && uab_run_cancelled(d->run))
		stop(l, true);
	if (!l->stopping && l->m->outcome == UAB_OPEN)
		check_time_outs(l, now);
	if (l->m->outcome != UAB_OPEN && !l->done_at) {
		l->done_at = now;
		d->close_input = true; /* a dialogue ends at EOF */
	}
	if (l->done_at && now >= l->done_at + d->t.after_us)
		step(l, TERMINATING);
	if (l->stage != RUNNING && stage_end(l) && now >= stage_end(l))
		step(l, (enum stage)(l->stage + 1));
	if (d->child.empty && !l->empty_at)
		l->empty_at = now;
}

static int64_t earliest(int64_t a, int64_t b)
{
	return !b ? a : !a || b < a ? b : a;
}

static int poll_ms(struct loop *l)
{
	struct uab_drive *d = l->d;
	int64_t at = stage_end(l), left;

	if (!l->stopping && l->m->outcome == UAB_OPEN) {
		at = earliest(at, d->deadline_us);
		at = earliest(at, next_approval(d));
		if (l->m->dialect->dialogue && !l->m->heard)
			at = earliest(at, l->start_at + d->t.start_us);
		if (d->t.idle_us && !next_approval(d))
			at = earliest(at, l->heard_at + d->t.idle_us);
	}
	if (l->done_at && l->stage == RUNNING)
		at = earliest(at, l->done_at + d->t.after_us);
	if (l->empty_at)
		at = earliest(at, l->empty_at + DRAIN_US);
	if (!at)
		return -1;
	left = (at - uab_now_us() + 999) / 1000;
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* --- the loop --- */

static bool over(const struct loop *l)
{
	const struct uab_child *c = &l->d->child;

	if (l->stage == GAVE_UP)
		return true;
	return c->empty && ((c->out < 0 && c->err < 0) ||
			    (l->empty_at && uab_now_us() >= l->empty_at + DRAIN_US));
}

static void drain_wake(struct uab_drive *d)
{
	uint64_t v;
	ssize_t n = read(d->wake, &v, sizeof v);

	(void)n;
}

/* Without it there is no proof but that of the group. */
static void lose_supervisor(struct loop *l)
{
	struct uab_child *c = &l->d->child;

	uab_child_sweep(c, uab_now_us() + l->d->t.kill_us);
	if (!c->empty)
		step(l, GAVE_UP);
}

static void round_trip(struct loop *l)
{
	struct uab_drive *d = l->d;
	struct uab_child *c = &d->child;
	bool writing = c->in >= 0 && d->input.n;
	struct pollfd f[5] = { { .fd = c->control, .events = POLLIN },
			       { .fd = c->out, .events = POLLIN },
			       { .fd = c->err, .events = POLLIN },
			       { .fd = writing ? c->in : -1, .events = POLLOUT },
			       { .fd = d->wake, .events = POLLIN } };

	if (poll(f, 5, poll_ms(l)) < 0)
		return;
	if (f[4].revents)
		drain_wake(d);
	if (f[1].revents)
		read_out(l);
	if (f[2].revents && c->err >= 0)
		read_err(l);
	if (f[0].revents)
		uab_child_control(c);
	if (c->lost && !c->empty)
		lose_supervisor(l);
}

static void spawn_failed(struct uab_map *m, int phase, int e)
{
	if (phase == UAB_PHASE_CHDIR)
		uab_failed_as(m, UAA_CAUSE_NO_DIRECTORY,
			      "%s backend error: spawn failed: working directory", m->kind);
	else if (phase == UAB_PHASE_EXEC && e == ENOENT)
		uab_failed_as(m, UAA_CAUSE_NO_PROGRAM,
			      "%s backend error: spawn failed: program not found", m->kind);
	else
		uab_failed(m, "%s backend error: spawn failed: errno=%d", m->kind, e);
}

static void trace_end(const struct uab_drive *d)
{
	const struct uab_child *c = &d->child;
	char text[32];

	if (c->exited)
		snprintf(text, sizeof text, "%s %d", WIFEXITED(c->status) ? "exit" : "signal",
			 WIFEXITED(c->status) ? WEXITSTATUS(c->status) : WTERMSIG(c->status));
	else
		snprintf(text, sizeof text, "%s", c->failed ? "spawn failed" : "lost");
	uab_trace(d, UAA_TRACE_END, uar_str_c(text));
}

/* What the completion will say is said in the stream, too, as long as there is one. */
static void tell_loss(struct loop *l)
{
	struct uab_drive *d = l->d;
	uaa_event_spec s = { .kind = UAA_EV_ERROR, .channel = UAB_STR("error") };

	if (d->stuck && l->m->outcome == UAB_FAILED) {
		s.message = uaa_str_c(d->stuck);
		l->m->port->emit(l->m->port->ctx, &s, true);
	} else if (d->stuck) {
		uab_failed_as(l->m, UAA_CAUSE_TERMINATION, "%s", d->stuck);
	} else if (d->child.lost) {
		uab_failed_as(l->m, UAA_CAUSE_CRASH,
			      "%s backend error: the supervisor was killed; every process of the "
			      "run is ended",
			      l->m->kind);
	}
}

static void settle(struct loop *l)
{
	struct uab_drive *d = l->d;
	struct uab_child *c = &d->child;

	trace_end(d);
	tell_loss(l);
	if (c->out >= 0)
		uab_lines_end(&d->lines);
	if (c->exited) {
		d->status = c->status;
		d->has_status = true;
	}
	if (c->failed)
		spawn_failed(l->m, c->phase, c->failed_errno);
	if (l->m->outcome == UAB_OPEN && !l->stopping && c->exited) {
		if (l->m->dialect->ended)
			l->m->dialect->ended(l->m, c->status, uar_buf_str(&d->errors));
		if (l->m->outcome == UAB_OPEN)
			uab_exit_failure(l->m, c->status);
	}
	if (l->m->outcome == UAB_OPEN && !l->stopping)
		uab_failed(l->m, "%s backend error: wait failed", l->m->kind);
}

static void run_loop(struct loop *l)
{
	l->start_at = l->heard_at = uab_now_us();
	if (l->m->dialect->begin)
		l->m->dialect->begin(l->m);
	write_in(l);
	while (!over(l)) {
		round_trip(l);
		pass_answers(l);
		check_deadlines(l);
		write_in(l);
	}
	settle(l);
}

static bool prepare(struct loop *l, const struct uab_spawn *spec, uar_str input)
{
	struct uab_drive *d = l->d;
	struct uab_spawn s = *spec;
	int e;

	s.supervisor = d->supervisor;
	s.cgroup = d->cgroup;
	s.grace_ms = GRACE_MS;
	uar_buf_clear(&d->input);
	uar_buf_clear(&d->errors);
	d->has_status = false;
	d->close_input = !l->m->dialect->dialogue;
	uar_buf_add_str(&d->input, input);
	l->buf = uar_alloc(READ_BYTES);
	if (!l->buf || d->input.err) {
		d->nomem = true;
		return false;
	}
	if (!s.supervisor) {
		uab_failed(l->m, "%s backend error: spawn failed: supervisor not found",
			   l->m->kind);
		return false;
	}
	for (char *const *word = s.argv; *word; word++)
		uab_trace(d, UAA_TRACE_START, uar_str_c(*word));
	e = uab_child_spawn(&d->child, &s);
	if (e)
		spawn_failed(l->m, UAB_PHASE_FORK, e);
	return e == 0;
}

void uab_drive_process(struct uab_drive *d, const struct uab_spawn *spec, struct uab_map *map,
		       uar_str input)
{
	struct loop l = { .d = d, .m = map };

	if (uab_run_cancelled(d->run))
		return;
	uab_lines_init(&d->lines, d->t.line_bytes);
	d->lines.line = on_line;
	d->lines.too_long = on_too_long;
	d->lines.ctx = &l;
	if (prepare(&l, spec, input)) {
		run_loop(&l);
		if (!d->stuck)
			uab_child_reap(&d->child);
	}
	uab_lines_fini(&d->lines);
	uar_free(l.buf);
}
