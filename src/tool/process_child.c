/* process_child.c - one process: its helper, what it writes, how it ends. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "tool/process_int.h"

enum {
	FLUSH_US = 100 * 1000,
	GRACE_US = 2 * 1000 * 1000,
	HALF = UAR_LIMIT_PROCESS_KEPT / 2,
	BASE64_PIECE = UAR_LIMIT_PROCESS_PIECE / 4 * 3
};

static struct uar_sched *sched_of(const struct process *p)
{
	return uar_loop_sched(p->host->loop);
}

void uar_process_tell(struct process *p, struct uar_process_news *news)
{
	const struct uar_process_owner o = { &p->owner, p->run_id };

	news->process_id = p->id;
	if (!p->quiet && p->host->listener.told)
		p->host->listener.told(p->host->listener.ctx, &o, news);
}

/* --- output --------------------------------------------------------------------------------- */

/* So much of the bytes that a character at their end is whole. */
static size_t whole_text(uar_str bytes)
{
	for (size_t cut = 0; cut < 4 && cut < bytes.n; cut++)
		if (uar_utf8_valid(uar_str_n(bytes.p, bytes.n - cut)))
			return memchr(bytes.p, 0, bytes.n - cut) ? 0 : bytes.n - cut;
	return 0;
}

static void tell_piece(struct process *p, struct process_stream *s, uar_str bytes)
{
	struct uar_buf text = uar_buf_make(2 * UAR_LIMIT_PROCESS_PIECE);
	struct uar_process_news n = { .kind = UAR_PROCESS_OUTPUT,
				      .stream = uar_str_c(s->name),
				      .offset = s->told,
				      .bytes = (int64_t)bytes.n };

	n.base64 = whole_text(bytes) != bytes.n;
	if (n.base64)
		uar_base64_encode(&text, bytes);
	n.text = n.base64 ? uar_buf_str(&text) : bytes;
	uar_process_tell(p, &n);
	uar_buf_fini(&text);
	s->told += (int64_t)bytes.n;
	p->pieces++;
}

/* `all`: also what may be the beginning of a character. */
static void tell_stream(struct process *p, struct process_stream *s, bool all)
{
	while (s->untold.n && p->pieces < UAR_LIMIT_PROCESS_PIECES) {
		uar_str bytes = uar_buf_str(&s->untold);
		size_t text;

		if (bytes.n > UAR_LIMIT_PROCESS_PIECE)
			bytes.n = UAR_LIMIT_PROCESS_PIECE;
		text = whole_text(bytes);
		if (!text && !all && bytes.n < 4)
			return;
		if (text)
			bytes.n = text;
		else if (bytes.n > BASE64_PIECE)
			bytes.n = BASE64_PIECE;
		tell_piece(p, s, bytes);
		uar_buf_consume(&s->untold, bytes.n);
	}
	if (p->pieces >= UAR_LIMIT_PROCESS_PIECES)
		uar_buf_clear(&s->untold);
}

static void on_flush(struct uar_timer *t)
{
	struct process *p = UAR_OWNER(t, struct process, flush);

	tell_stream(p, &p->out, false);
	tell_stream(p, &p->err, false);
	uar_process_progress(p);
	uar_process_changed(p);
}

/* The beginning is kept, and of what follows the end. */
static void keep(struct process_stream *s, uar_str bytes)
{
	size_t room = s->head.n < HALF ? HALF - s->head.n : 0;

	if (room > bytes.n)
		room = bytes.n;
	uar_buf_add(&s->head, bytes.p, room);
	bytes = uar_str_from(bytes, room);
	if (bytes.n > HALF)
		bytes = uar_str_from(bytes, bytes.n - HALF);
	uar_buf_add_str(&s->tail, bytes);
	if (s->tail.n > HALF)
		uar_buf_consume(&s->tail, s->tail.n - HALF);
}

static void take_output(struct process *p, struct process_stream *s, uar_str bytes)
{
	s->total += (int64_t)bytes.n;
	keep(s, bytes);
	if (p->pieces < UAR_LIMIT_PROCESS_PIECES)
		uar_buf_add_str(&s->untold, bytes);
	if (s->untold.n >= UAR_LIMIT_PROCESS_PIECE)
		tell_stream(p, s, false);
	if (!p->flush.heap_index && uar_timer_set(sched_of(p), &p->flush, FLUSH_US))
		tell_stream(p, s, false);
}

/* What the log does not have is counted there. */
static void tell_rest(struct process *p, struct process_stream *s)
{
	struct uar_process_news n = { .kind = UAR_PROCESS_OUTPUT,
				      .stream = uar_str_c(s->name),
				      .text = UAR_STR(""),
				      .truncated = true };

	tell_stream(p, s, true);
	if (s->told == s->total)
		return;
	n.offset = s->told;
	uar_process_tell(p, &n);
}

/* --- reports of the helper -------------------------------------------------------------------- */

static const struct uar_json *parse(struct process *p, uar_str json)
{
	const struct uar_json *j = NULL;

	return uar_json_parse(json, NULL, &p->arena, &j, NULL) ? NULL : j;
}

static uar_str text_of(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR("?"));
}

static void take_failure(struct process *p, uar_str json)
{
	const struct uar_json *j = parse(p, json);

	p->end.stage = text_of(j, "stage");
	if (uar_str_is(p->end.stage, "?"))
		p->end.stage = UAR_STR("spawn");
	p->end.failure = uar_arena_printf(&p->arena, "%.*s: %.*s", UAR_FMT(text_of(j, "what")),
					  UAR_FMT(text_of(j, "error")));
}

static void take_violation(struct process *p, uar_str json)
{
	const struct uar_json *j = parse(p, json);
	struct uar_process_news n = { .kind = UAR_PROCESS_VIOLATION,
				      .violation = text_of(j, "kind"),
				      .target = text_of(j, "target"),
				      .attempted = text_of(j, "attempted") };

	if (!p->violation.n)
		p->violation = uar_arena_printf(&p->arena, "%.*s %.*s (%.*s)", UAR_FMT(n.attempted),
						UAR_FMT(uar_str_utf8_prefix(n.target, 300)),
						UAR_FMT(n.violation));
	uar_process_tell(p, &n);
}

static void take_exit(struct process *p, uar_str json)
{
	const struct uar_json *j = parse(p, json);

	p->end.exit_code = (int)uar_json_int(uar_json_get(j, UAR_STR("exit_code")), -1);
	p->end.signal = (int)uar_json_int(uar_json_get(j, UAR_STR("signal")), -1);
	p->end.known = true;
}

static void take_report(struct process *p, char what, uar_str bytes)
{
	switch (what) {
	case UAR_REPORT_APPLIED: p->applied = true; break;
	case UAR_REPORT_FAILED: take_failure(p, bytes); break;
	case UAR_REPORT_OUTPUT: take_output(p, &p->out, bytes); break;
	case UAR_REPORT_ERRORS: take_output(p, &p->err, bytes); break;
	case UAR_REPORT_VIOLATION: take_violation(p, bytes); break;
	case UAR_REPORT_EXIT: take_exit(p, bytes); break;
	default: break;
	}
}

static void on_output(void *ctx, uar_str bytes)
{
	struct process *p = ctx;
	bool was = p->applied;
	uar_str frame;
	size_t used;
	char what;

	uar_buf_add_str(&p->frames, bytes);
	while ((used = uar_frame_read(uar_buf_str(&p->frames), &what, &frame)) > 0 &&
	       used != UAR_FRAME_BROKEN) {
		take_report(p, what, frame);
		uar_buf_consume(&p->frames, used);
	}
	if (used == UAR_FRAME_BROKEN || p->frames.err)
		uar_child_kill(p->child);
	if (p->applied != was)
		uar_process_changed(p);
}

/* The helper itself says nothing there: what is to be said comes in frames. */
static void on_errors(void *ctx, uar_str bytes)
{
	(void)ctx, (void)bytes;
}

/* --- the end -------------------------------------------------------------------------------- */

static void tell_failed(struct process *p, uar_str stage, const char *code, const char *category)
{
	struct uar_process_news n = { .kind = UAR_PROCESS_FAILED,
				      .stage = stage,
				      .code = uar_str_c(code),
				      .message = uar_str_utf8_prefix(p->end.failure, 300),
				      .category = uar_str_c(category),
				      .stdout_bytes = p->out.total,
				      .stderr_bytes = p->err.total };

	uar_process_tell(p, &n);
}

static void tell_end(struct process *p)
{
	struct uar_process_news n = { .kind = UAR_PROCESS_COMPLETED,
				      .exit_code = p->end.exit_code,
				      .signal = p->end.signal,
				      .stdout_bytes = p->out.total,
				      .stderr_bytes = p->err.total };

	tell_rest(p, &p->out);
	tell_rest(p, &p->err);
	if (p->timed_out) {
		p->end.failure = UAR_STR("the command took longer than its time limit");
		tell_failed(p, UAR_STR("timeout"), "TIMEOUT", "timeout");
	} else if (p->stopping.reason.n) {
		n.kind = UAR_PROCESS_TERMINATED;
		n.reason = p->stopping.reason;
		n.by_type = p->stopping.by_type;
		n.by = p->stopping.by;
		n.signal = p->escalated ? SIGKILL : SIGTERM;
		n.escalated = p->escalated;
		uar_process_tell(p, &n);
	} else if (p->applied && p->end.known) {
		uar_process_tell(p, &n);
	} else {
		if (!p->end.stage.n)
			p->end.stage = UAR_STR("transport");
		if (!p->end.failure.n)
			p->end.failure =
				UAR_STR("the helper of the command ended without a report");
		tell_failed(p, p->end.stage, "TOOL_ERROR",
			    uar_str_is(p->end.stage, "sandbox") ? "setup_missing" : "execution");
	}
}

static void on_exited(void *ctx, int status)
{
	struct process *p = ctx;

	(void)status;
	uar_timer_stop(sched_of(p), &p->wall);
	uar_timer_stop(sched_of(p), &p->grace);
	uar_timer_stop(sched_of(p), &p->flush);
	uar_child_destroy(p->child);
	p->child = NULL;
	if (p->left) {
		uar_process_free(p);
		return;
	}
	tell_end(p);
	uar_process_changed(p);
}

static void on_grace(struct uar_timer *t)
{
	struct process *p = UAR_OWNER(t, struct process, grace);

	p->escalated = true;
	uar_child_kill(p->child);
}

static void send_signal(struct process *p, int number)
{
	struct uar_buf frame = uar_buf_make(64);
	char byte = (char)number;

	uar_frame_write(&frame, UAR_ORDER_SIGNAL, uar_str_n(&byte, 1));
	if (frame.err || uar_child_write(p->child, uar_buf_str(&frame)) ||
	    uar_timer_set(sched_of(p), &p->grace, GRACE_US)) {
		p->escalated = true;
		uar_child_kill(p->child);
	}
	uar_buf_fini(&frame);
}

static void on_wall(struct uar_timer *t)
{
	struct process *p = UAR_OWNER(t, struct process, wall);

	p->timed_out = true;
	send_signal(p, SIGTERM);
}

void uar_process_stop(struct process *p, const struct uar_process_stop *stop)
{
	if (!p->child || p->stopping.reason.n)
		return;
	p->stopping.reason = uar_arena_str(&p->arena, stop->reason);
	p->stopping.by_type = uar_arena_str(&p->arena, stop->by_type);
	p->stopping.by = uar_arena_str(&p->arena, stop->by);
	if (!p->stopping.reason.p || !p->stopping.by_type.p || !p->stopping.by.p)
		p->stopping = (struct uar_process_stop){ .reason = UAR_STR("policy"),
							 .by_type = UAR_STR("runtime") };
	send_signal(p, SIGTERM);
}

/* --- the beginning -------------------------------------------------------------------------- */

struct command {
	const char *argv[UAR_LIMIT_PROCESS_ARGS + 8];
	const char *env[8];
	char program[UAR_LIMIT_SANDBOX_PATH];
	char home[UAR_LIMIT_SANDBOX_PATH + 16], tmp[UAR_LIMIT_SANDBOX_PATH + 16];
	uar_str input;
};

static uar_err read_words(struct command *m, size_t n, const struct uar_json *argv,
			  struct uar_arena *arena)
{
	for (const struct uar_json *a = argv->first; a; a = a->next) {
		uar_str word = uar_arena_str(arena, uar_json_str(a, UAR_STR("")));

		if (!word.p)
			return UAR_ENOMEM;
		if (memchr(word.p, 0, word.n) || n == UAR_LIMIT_PROCESS_ARGS + 4)
			return UAR_EINVALID;
		m->argv[n++] = word.p;
	}
	return UAR_OK;
}

/* The helper, the profile, the command. */
static uar_err read_command(struct process *p, const struct uar_tool_request *r,
			    const struct uar_json *input, struct command *m)
{
	const struct uar_json *argv = uar_json_get(input, UAR_STR("argv"));
	uar_str line = uar_json_text(input, "command");
	uar_str profile = uar_arena_str(&p->arena, r->sandbox);

	m->argv[0] = uar_loop_supervisor(p->host->loop);
	m->argv[1] = UAR_SANDBOX_WORD;
	m->argv[2] = profile.p;
	m->input = uar_json_text(input, "input");
	if (!profile.p)
		return UAR_ENOMEM;
	if (argv)
		return read_words(m, 3, argv, &p->arena);
	line = uar_arena_str(&p->arena, line);
	if (!line.p)
		return UAR_ENOMEM;
	m->argv[3] = "/bin/sh";
	m->argv[4] = "-c";
	m->argv[5] = line.p;
	return memchr(line.p, 0, line.n) ? UAR_EINVALID : UAR_OK;
}

/* Nothing of the server's own environment, which may hold keys. */
static void set_environment(const struct process *p, struct command *m)
{
	snprintf(m->home, sizeof m->home, "HOME=%s", p->host->dir);
	snprintf(m->tmp, sizeof m->tmp, "TMPDIR=%s/.tmp", p->host->dir);
	mkdir(m->tmp + sizeof "TMPDIR=" - 1, 0700);
	m->env[0] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	m->env[1] = m->home;
	m->env[2] = m->tmp;
	m->env[3] = "LANG=C.UTF-8";
	m->env[4] = p->tty ? "TERM=xterm" : "TERM=dumb";
	m->env[5] = NULL;
}

static uar_err set_wall(struct process *p, const struct uar_json *profile)
{
	int64_t ms = uar_json_int(uar_json_pointer(profile, UAR_STR("/process_limits/wall_ms")), 0);

	return ms > 0 ? uar_timer_set(sched_of(p), &p->wall, ms * 1000) : UAR_OK;
}

static uar_err start_child(struct process *p, const struct uar_tool_request *r,
			   struct uar_error *error)
{
	struct command *m = uar_zalloc(sizeof *m);
	const struct uar_json *input = NULL, *profile = NULL;
	struct uar_child_options o = {
		.output = on_output, .errors = on_errors, .exited = on_exited, .ctx = p
	};
	uar_err e = m ? uar_json_parse(r->input, NULL, &p->arena, &input, error) : UAR_ENOMEM;

	if (!e)
		e = uar_json_parse(r->sandbox, NULL, &p->arena, &profile, error);
	if (!e)
		e = read_command(p, r, input, m);
	p->tty = uar_json_bool(uar_json_get(profile, UAR_STR("tty")), false);
	if (!e) {
		set_environment(p, m);
		o.argv = m->argv;
		o.env = m->env;
		e = uar_child_start(p->host->loop, &o, &p->child, error);
	}
	if (!e && m->input.n)
		e = uar_process_write(p, m->input, false);
	if (!e && !p->interactive)
		e = uar_process_write(p, UAR_STR(""), true);
	if (!e)
		e = set_wall(p, profile);
	uar_free(m);
	return e;
}

static void init_stream(struct process_stream *s, const char *name)
{
	s->name = name;
	s->head = uar_buf_make(HALF);
	s->tail = uar_buf_make(3 * (size_t)HALF);
	s->untold = uar_buf_make(4 * (size_t)UAR_LIMIT_SANDBOX_FRAME);
}

static struct process *make(struct uar_processes *h, const struct uar_tool_request *r)
{
	struct process *p = uar_zalloc(sizeof *p);

	if (!p)
		return NULL;
	uar_arena_init(&p->arena, 0);
	p->host = h;
	p->end.exit_code = p->end.signal = -1;
	p->flush.fn = on_flush;
	p->wall.fn = on_wall;
	p->grace.fn = on_grace;
	p->interactive = uar_str_is(r->tool->tool_id, "process:start");
	p->frames = uar_buf_make(4 * (size_t)UAR_LIMIT_SANDBOX_FRAME);
	init_stream(&p->out, "stdout");
	init_stream(&p->err, "stderr");
	p->id = uar_arena_str(&p->arena, r->process_id);
	p->run_id = uar_arena_str(&p->arena, r->run_id);
	uar_list_add_last(&h->processes, &p->node);
	h->count++;
	if (!p->id.p || !p->run_id.p || !uar_owner_copy(&p->arena, &r->caller->owner, &p->owner)) {
		uar_process_free(p);
		return NULL;
	}
	return p;
}

uar_err uar_process_start(struct uar_processes *h, const struct uar_tool_request *r,
			  struct process **out, struct uar_error *error)
{
	struct process *p;
	uar_err e;

	if (h->count >= UAR_LIMIT_PROCESSES)
		return uar_error_set(error, UAR_EBUSY,
				     "%d processes run or can still be read: end one of them, or "
				     "the run that it belongs to",
				     UAR_LIMIT_PROCESSES);
	p = make(h, r);
	e = p ? start_child(p, r, error) : UAR_ENOMEM;
	if (e && p) {
		p->end.failure = uar_str_c(uar_error_text(error));
		p->end.stage = UAR_STR("spawn");
		tell_failed(p, p->end.stage, "TOOL_ERROR", "execution");
		uar_process_free(p);
	}
	if (!e)
		*out = p;
	return e;
}

void uar_process_free(struct process *p)
{
	uar_timer_stop(sched_of(p), &p->flush);
	uar_timer_stop(sched_of(p), &p->wall);
	uar_timer_stop(sched_of(p), &p->grace);
	uar_child_destroy(p->child);
	uar_list_remove(&p->node);
	p->host->count--;
	uar_buf_fini(&p->frames);
	for (int i = 0; i < 2; i++) {
		struct process_stream *s = i ? &p->err : &p->out;

		uar_buf_fini(&s->head);
		uar_buf_fini(&s->tail);
		uar_buf_fini(&s->untold);
	}
	uar_arena_fini(&p->arena);
	uar_free(p);
}

uar_err uar_process_write(struct process *p, uar_str bytes, bool end)
{
	struct uar_buf frames = uar_buf_make(2 * (size_t)UAR_LIMIT_SANDBOX_FRAME);
	uar_err e;

	if (!p->child)
		return UAR_ENOTFOUND;
	if (bytes.n > UAR_LIMIT_PROCESS_INPUT)
		return UAR_ETOOBIG;
	if (bytes.n)
		uar_frame_write(&frames, UAR_ORDER_INPUT, bytes);
	if (end)
		uar_frame_write(&frames, UAR_ORDER_END, UAR_STR(""));
	e = frames.err ? frames.err : uar_child_write(p->child, uar_buf_str(&frames));
	uar_buf_fini(&frames);
	return e;
}

struct process *uar_process_find(struct uar_processes *h, const struct uar_owner *owner, uar_str id)
{
	UAR_LIST_EACH (it, &h->processes) {
		struct process *p = UAR_OWNER(it, struct process, node);

		if (uar_str_eq(p->id, id) && uar_owner_eq(&p->owner, owner))
			return p;
	}
	return NULL;
}

/* --- as it stands --------------------------------------------------------------------------- */

static void put_stream(struct uar_jw *w, const char *key, struct process_stream *s, bool whole)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_PROCESS_KEPT + 128);
	int64_t left = s->total - (int64_t)s->head.n - (int64_t)s->tail.n;
	uar_str out;

	uar_buf_add_str(&text, uar_buf_str(&s->head));
	if (whole && left > 0)
		uar_buf_printf(&text, "\n[%lld bytes left out]\n", (long long)left);
	uar_buf_add_str(&text, uar_buf_str(&s->tail));
	out = uar_buf_str(&text);
	for (size_t i = 0; i < out.n;) {
		uint32_t cp;
		size_t n = uar_utf8_decode(uar_str_from(out, i), &cp);

		if (!n || cp == 0)
			text.p[i] = '?';
		i += n ? n : 1;
	}
	uar_jw_str(w, key, out);
	uar_buf_fini(&text);
}

static const char *status_of(const struct process *p)
{
	if (p->child)
		return "running";
	if (p->stopping.reason.n)
		return "terminated";
	return p->applied && p->end.known && !p->timed_out ? "completed" : "failed";
}

void uar_process_put(struct uar_jw *w, struct process *p, bool whole)
{
	bool cut = p->out.total > (int64_t)(p->out.head.n + p->out.tail.n) ||
		   p->err.total > (int64_t)(p->err.head.n + p->err.tail.n);

	uar_jw_str(w, "process_id", p->id);
	uar_jw_cstr(w, "status", status_of(p));
	if (p->end.exit_code >= 0)
		uar_jw_int(w, "exit_code", p->end.exit_code);
	if (p->end.signal > 0)
		uar_jw_int(w, "signal", p->end.signal);
	put_stream(w, "stdout", &p->out, whole);
	put_stream(w, "stderr", &p->err, whole);
	uar_jw_int(w, "stdout_bytes", p->out.total);
	uar_jw_int(w, "stderr_bytes", p->err.total);
	uar_jw_bool(w, "truncated", whole && cut);
	if (p->violation.n)
		uar_jw_str(w, "sandbox_denied", p->violation);
	if (whole)
		return;
	/* It was read: what comes is kept anew. */
	uar_buf_clear(&p->out.head);
	uar_buf_clear(&p->out.tail);
	uar_buf_clear(&p->err.head);
	uar_buf_clear(&p->err.tail);
}
