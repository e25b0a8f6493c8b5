/* process.c - one process of a plugin: start, hello, lines in, lines out, end.
 *
 * What it writes that is no message is noted and passed over; a line without end
 * breaks the wire and ends it. When it goes, every run it had goes with it. */
#include "event/limits.h"
#include "plugin/limits.h"
#include "plugin/plugin_int.h"

#include <signal.h>

enum { HELLO = 1, POLITE_US = 2000000, CLOSED_US = 250000, PROGRAM_MISSING = 127, ENV_MAX = 128 };

static struct uar_sched *sched_of(const struct process *s)
{
	return uar_loop_sched(s->plugin->host->o.loop);
}

/* --- messages out ---------------------------------------------------------------- */

struct uar_jw process_begin(struct process *s, const char *method, uint64_t id)
{
	struct uar_buf *b = &s->plugin->host->buf;
	struct uar_jw w;

	uar_buf_clear(b);
	w = uar_jw_begin(b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "jsonrpc", "2.0");
	if (id)
		uar_jw_u64(&w, "id", id);
	uar_jw_cstr(&w, "method", method);
	uar_jw_obj(&w, "params");
	return w;
}

/* Closes every open level. A child that does not read is killed. */
void process_send(struct process *s, struct uar_jw *w)
{
	struct uar_buf *b = w->out;
	uar_err e;

	while (w->depth)
		uar_jw_close(w);
	e = uar_jw_end(w);
	uar_buf_add_char(b, '\n');
	if (!e)
		e = b->err;
	if (!e && s->state != PROCESS_ENDING)
		e = uar_child_write(s->child, uar_buf_str(b));
	if (e && e != UAR_EEOF) /* its end is on the way and tells the rest */
		process_kill(s, uar_err_text(e));
}

static void put_error(struct uar_jw *w, uar_err e, const struct uar_error *error)
{
	const char *token = uar_err_token(e);
	bool unreadable = e == UAR_EUTF8 || e == UAR_EDEPTH || e == UAR_ENUMBER;
	int code = e == UAR_ENOTIMPL ? -32601 : unreadable ? -32700 : -32602;

	if (e == UAR_ESTATE)
		token = "RUN_NOT_RUNNING";
	else if (strcmp(token, "VALIDATION_ERROR") == 0 || e == UAR_ENOTIMPL)
		token = "INVALID_ARGUMENT";
	uar_jw_obj(w, "error");
	uar_jw_int(w, "code", uar_err_retryable(e) || e == UAR_EINTERNAL ? -32603 : code);
	uar_jw_cstr(w, "message", error ? uar_error_text(error) : uar_err_text(e));
	uar_jw_obj(w, "data");
	uar_jw_cstr(w, "code", token);
	if (error && error->where[0])
		uar_jw_cstr(w, "where", error->where);
	uar_jw_close(w);
}

void process_reply(struct process *s, const struct uar_json *id, uar_err e,
		   const struct uar_error *error)
{
	struct uar_buf *b = &s->plugin->host->buf;
	struct uar_jw w;

	if (!id)
		return;
	uar_buf_clear(b);
	w = uar_jw_begin(b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "jsonrpc", "2.0");
	uar_jw_tree(&w, "id", id);
	if (e)
		put_error(&w, e, error);
	else
		uar_jw_obj(&w, "result");
	process_send(s, &w);
}

/* Places in a program's stack stand indented below what happened, lines of marks beside. */
static bool is_useful(uar_str line)
{
	for (size_t i = 0; i < line.n; i++)
		if ((line.p[i] | 32) >= 'a' && (line.p[i] | 32) <= 'z')
			return line.p[0] != ' ' && line.p[0] != '\t';
	return false;
}

static void take_error_line(struct process *s)
{
	uar_str line = uar_buf_str(&s->errors);
	char *to = s->said[s->said_count % SAID_LINES];

	if (!line.n)
		return;
	if (is_useful(line)) {
		snprintf(to, sizeof s->said[0], "%.*s",
			 UAR_FMT(uar_str_utf8_prefix(uar_str_trim(line), sizeof s->said[0] - 1)));
		s->said_count++;
	}
	process_says(s, UAR_LOG_INFO, "plugin.stderr", uar_buf_str(&s->errors));
	uar_buf_clear(&s->errors);
}

/* --- the end ----------------------------------------------------------------------- */

void process_pause(struct process *s, bool paused)
{
	s->pauses += paused ? 1u : -1u;
	if (s->pauses == (paused ? 1u : 0u))
		uar_child_pause(s->child, paused);
}

void process_kill(struct process *s, const char *why)
{
	if (s->state == PROCESS_ENDING)
		return;
	s->state = PROCESS_ENDING;
	snprintf(s->why, sizeof s->why, "%s", why);
	uar_timer_stop(sched_of(s), &s->timer);
	uar_child_kill(s->child);
	if (s->pauses) /* or its end would never be read */
		uar_child_pause(s->child, false);
}

/* Ends it without violence: it sees the end of its input and leaves. */
static void dismiss(struct process *s)
{
	s->state = PROCESS_ENDING;
	uar_child_end_input(s->child);
	if (uar_timer_set(sched_of(s), &s->timer, POLITE_US))
		uar_child_kill(s->child);
}

void process_spend(struct process *s, const char *why)
{
	if (s->state >= PROCESS_CLOSED)
		return;
	s->state = PROCESS_SPENT;
	if (s->call_count == 0)
		process_kill(s, why);
}

/* The last lines it said about that call (NULL: about anything), the oldest first, as far as
 * there is room. With several runs at work it is not known whose lines they are, and the error
 * of a run must not show what another one wrote. Before its first run they are its own. */
static void put_said(const struct process *s, const struct uar_entry_call *c, struct uar_buf *out)
{
	unsigned said = s->said_count - (c && c->request ? c->said_before : 0);
	unsigned n = c && c->shared ? 0 : said < SAID_LINES ? said : SAID_LINES;
	size_t room = out->max - out->n, need = 0;
	unsigned take = 0;

	while (take < n) {
		need += strlen(s->said[(s->said_count - 1 - take) % SAID_LINES]) + 3;
		if (need > room)
			break;
		take++;
	}
	for (unsigned i = take; i > 0; i--)
		uar_buf_printf(out, "%s%s", i == take ? ": " : " | ",
			       s->said[(s->said_count - i) % SAID_LINES]);
}

/* One that was leaving by itself when it was ended has its own status to tell. */
static void tell_end(const struct process *s, const struct uar_entry_call *c, int status, char *why,
		     size_t size)
{
	bool own = s->closed && status != 128 + SIGKILL;
	struct uar_buf text = uar_buf_make(size - 1);

	if (s->why[0] && !own)
		uar_buf_printf(&text, "the plugin's process was ended: %.250s", s->why);
	else if (status > 128)
		uar_buf_printf(&text, "the plugin's process was killed by signal %d", status - 128);
	else
		uar_buf_printf(&text, "the plugin's process exited with status %d", status);
	if (!s->why[0] || own)
		put_said(s, c, &text);
	snprintf(why, size, "%.*s", UAR_FMT(uar_buf_str(&text)));
	uar_buf_fini(&text);
}

static void break_calls(struct process *s, int status)
{
	bool missing = status == PROGRAM_MISSING && !s->greeted;
	char why[UAR_LIMIT_ERROR_TEXT];

	UAR_LIST_EACH (it, &s->calls) {
		struct uar_entry_call *c = UAR_OWNER(it, struct uar_entry_call, node);
		struct uar_entry_end stopped = { .how = UAR_ENTRY_HOW_STOPPED,
						 .code = UAR_STR("CANCELED") };

		tell_end(s, c, status, why, sizeof why);
		if (c->state == CALL_CANCELLING)
			call_end(c, &stopped);
		else
			call_break(c, missing ? UAR_ENOTFOUND : UAR_ECHILD, why);
	}
}

static struct uar_entry_call *only_call(const struct process *s)
{
	return s->call_count == 1 ? UAR_OWNER(s->calls.next, struct uar_entry_call, node) : NULL;
}

static void on_exited(void *ctx, int status)
{
	struct process *s = ctx;
	struct plugin *p = s->plugin;
	char why[UAR_LIMIT_ERROR_TEXT];
	bool asked = s->state == PROCESS_ENDING && !s->why[0];

	p->host->stats.lived_us += uar_clock_mono(sched_of(s)->clock) - s->started_us;
	if (s->line.n)
		process_says(s, UAR_LOG_WARN, "plugin.half_line", uar_buf_str(&s->line));
	take_error_line(s);
	tell_end(s, only_call(s), status, why, sizeof why);
	s->state = PROCESS_ENDING;
	if (!asked)
		process_note(s, UAR_LOG_WARN, "plugin.process_gone", uar_str_c(why));
	plugin_probed(p, NULL, why);
	break_calls(s, status);
	asked = asked || s->served;
	process_free(s);
	plugin_process_over(p, asked);
}

void process_free(struct process *s)
{
	uar_timer_stop(sched_of(s), &s->timer);
	uar_child_destroy(s->child);
	uar_list_remove(&s->node);
	uar_buf_fini(&s->line);
	uar_buf_fini(&s->errors);
	s->plugin->host->stats.processes--;
	uar_free(s);
}

static void on_timer(struct uar_timer *t)
{
	struct process *s = UAR_OWNER(t, struct process, timer);

	switch (s->state) {
	case PROCESS_STARTING: process_kill(s, "it did not answer hello in time"); break;
	case PROCESS_READY: dismiss(s); break;
	case PROCESS_SPENT: break;
	case PROCESS_CLOSED: process_kill(s, "it closed its standard output"); break;
	case PROCESS_ENDING: uar_child_kill(s->child); break;
	}
}

/* --- calls ---------------------------------------------------------------------------- */

/* It has had as many runs as its manifest allows a process. */
static bool spent(const struct process *s)
{
	return s->plugin->m.runs_per_process && s->taken >= s->plugin->m.runs_per_process;
}

uint32_t process_room(const struct process *s)
{
	uint64_t most = s->plugin->m.runs_per_process;
	uint64_t room = s->plugin->m.concurrency - s->call_count;

	if (s->state != PROCESS_READY || !process_has_room(s))
		return 0;
	if (most && most - s->taken < room)
		room = most - s->taken;
	return (uint32_t)room;
}

bool process_has_room(const struct process *s)
{
	return s->state <= PROCESS_READY && !s->doubtful &&
	       s->call_count < s->plugin->m.concurrency && !spent(s);
}

void process_doubt(struct process *s)
{
	struct uar_jw w;

	s->doubtful = true;
	if (!s->answers_ping)
		return;
	s->ping = ++s->last_request;
	w = process_begin(s, "ping", s->ping);
	process_send(s, &w);
}

static void process_heard(struct process *s)
{
	if (!s->doubtful)
		return;
	s->doubtful = false;
	plugin_pump(s->plugin);
}

/* Reads what it wrote to standard error before its last message, or before a run is given to
 * it. With several runs at work a line that is not complete may be anybody's and stays. */
static void catch_up_errors(struct process *s)
{
	uar_child_read_errors(s->child);
	if (s->call_count <= 1)
		take_error_line(s);
}

void process_mark_start(struct process *s, struct uar_entry_call *c)
{
	c->said_before = s->said_count;
	UAR_LIST_EACH (it, &s->calls) {
		struct uar_entry_call *other = UAR_OWNER(it, struct uar_entry_call, node);

		if (other != c && other->request)
			other->shared = c->shared = true;
	}
}

void process_take(struct process *s, struct uar_entry_call *c)
{
	if (s->state == PROCESS_READY)
		catch_up_errors(s);
	uar_list_remove(&c->node);
	uar_list_add_last(&s->calls, &c->node);
	s->call_count++;
	s->taken++;
	c->process = s;
	if (s->state == PROCESS_READY) {
		uar_timer_stop(sched_of(s), &s->timer);
		call_ready(c);
	}
}

static void rest(struct process *s)
{
	if (s->state == PROCESS_SPENT)
		process_kill(s, "one of its runs did not stop when it was told to");
	else if (s->state == PROCESS_READY && (spent(s) || s->plugin->withdrawn))
		dismiss(s);
	else if (s->state == PROCESS_READY &&
		 uar_timer_set(sched_of(s), &s->timer, s->plugin->m.idle_us))
		dismiss(s);
}

void process_withdraw(struct process *s)
{
	if (s->call_count == 0)
		rest(s);
}

void process_leave(struct uar_entry_call *c)
{
	struct process *s = c->process;

	while (c->pauses)
		call_pause(c, false);
	uar_list_remove(&c->node);
	c->process = NULL;
	if (!s)
		return;
	if (--s->call_count == 0)
		rest(s);
}

static struct uar_entry_call *call_of(struct process *s, uar_str run_id)
{
	UAR_LIST_EACH (it, &s->calls) {
		struct uar_entry_call *c = UAR_OWNER(it, struct uar_entry_call, node);

		if (uar_str_is(run_id, c->run_id) && c->request)
			return c;
	}
	return NULL;
}

/* --- messages in ------------------------------------------------------------------------ */

static void on_hello(struct process *s, const struct uar_message *m)
{
	uar_str protocol = uar_json_str(uar_json_get(m->value, UAR_STR("protocol")), UAR_STR(""));

	if (s->state != PROCESS_STARTING)
		return;
	if (!uar_str_is(protocol, "1")) {
		process_kill(s, m->error ? "it refused hello" : "it speaks another protocol");
		return;
	}
	s->state = PROCESS_READY;
	s->greeted = true;
	s->answers_ping = uar_json_bool(uar_json_get(m->value, UAR_STR("ping")), false);
	uar_timer_stop(sched_of(s), &s->timer);
	catch_up_errors(s);
	UAR_LIST_EACH (it, &s->calls)
		call_ready(UAR_OWNER(it, struct uar_entry_call, node));
	if (s->call_count == 0)
		rest(s);
	plugin_probed(s->plugin, m->value, NULL);
	plugin_pump(s->plugin);
}

static void on_reply(struct process *s, const struct uar_message *m)
{
	uint64_t id = (uint64_t)uar_json_int(m->id, 0);

	if (id == HELLO) {
		on_hello(s, m);
		return;
	}
	if (id && id == s->ping)
		return; /* it was heard, that is all */
	UAR_LIST_EACH (it, &s->calls) {
		struct uar_entry_call *c = UAR_OWNER(it, struct uar_entry_call, node);

		if (c->request == id && id) {
			call_message(c, m);
			return;
		}
	}
	plugin_says(s->plugin, UAR_LOG_WARN, "plugin.unasked_reply", NULL,
		    m->id->kind == UAR_JSON_STRING ? m->id->text : UAR_STR("unknown id"));
}

/* A run that somebody has, but not this process. */
static bool is_foreign(const struct process *s, uar_str run_id)
{
	UAR_LIST_EACH (p, &s->plugin->host->plugins)
		UAR_LIST_EACH (it, &UAR_OWNER(p, struct plugin, node)->processes)
			if (call_of(UAR_OWNER(it, struct process, node), run_id))
				return true;
	return false;
}

static void refuse_run(struct process *s, const struct uar_message *m)
{
	uar_err e = is_foreign(s, m->run_id) ? UAR_EFORBIDDEN : UAR_ESTATE;
	struct uar_error error = { 0 };

	uar_error_set(&error, e, "no run %.*s is at work here",
		      UAR_FMT(uar_str_utf8_prefix(m->run_id, 128)));
	plugin_says(s->plugin, UAR_LOG_WARN, "plugin.foreign_run", NULL, m->run_id);
	process_reply(s, m->id, e, &error);
}

static void on_message(struct process *s, const struct uar_message *m)
{
	struct uar_entry_call *c = m->run_id.n ? call_of(s, m->run_id) : NULL;

	if (m->kind == UAR_MESSAGE_REPLY) {
		on_reply(s, m);
	} else if (m->kind == UAR_MESSAGE_LOG) {
		plugin_says(s->plugin, m->level, "plugin.log", c, m->text);
		process_reply(s, m->id, UAR_OK, NULL);
	} else if (c) {
		call_message(c, m);
	} else {
		refuse_run(s, m);
	}
}

static void on_bad_message(struct process *s, const struct uar_message *m,
			   const struct uar_error *error)
{
	struct uar_entry_call *c = m->run_id.n ? call_of(s, m->run_id) : NULL;

	plugin_says(s->plugin, UAR_LOG_WARN, "plugin.bad_message", c,
		    uar_str_c(uar_error_text(error)));
	process_reply(s, m->id, error->code, error);
	if (!c)
		return;
	call_answered(c);
	/* A run that ends in a way that cannot be understood has ended all the same. */
	if (m->kind == UAR_MESSAGE_RESULT)
		call_break(c, UAR_EINVALID, uar_error_text(error));
	else if (m->kind == UAR_MESSAGE_ERROR)
		call_fail(c, &m->end, uar_error_text(error));
}

static void take_line(struct process *s, uar_str line)
{
	struct uar_error error = { 0 };
	struct uar_arena arena;
	struct uar_message m;
	uar_err e;

	line = uar_str_trim(line);
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!line.n)
		return;
	uar_arena_init(&arena, 0);
	e = uar_message_read(line, &arena, &m, &error);
	if (e != UAR_ESYNTAX)
		process_heard(s);
	if (!e) {
		if (m.kind == UAR_MESSAGE_RESULT || m.kind == UAR_MESSAGE_ERROR)
			catch_up_errors(s);
		on_message(s, &m);
	} else if (e == UAR_ESYNTAX) {
		process_says(s, UAR_LOG_WARN, "plugin.noise",
			     uar_str_utf8_prefix(line, UAR_LIMIT_PLUGIN_LOG_LINE));
	} else {
		error.code = e;
		on_bad_message(s, &m, &error);
	}
	uar_arena_fini(&arena);
}

static void on_output(void *ctx, uar_str bytes)
{
	struct process *s = ctx;

	while (bytes.n && s->state != PROCESS_ENDING) {
		size_t at = uar_str_find(bytes, '\n');

		uar_buf_add(&s->line, bytes.p, at);
		if (s->line.err) {
			process_kill(s, "it wrote a line without end");
			uar_buf_clear(&s->line);
			return;
		}
		if (at == bytes.n)
			return;
		bytes = uar_str_from(bytes, at + 1);
		take_line(s, uar_buf_str(&s->line));
		uar_buf_clear(&s->line);
	}
}

/* Usually it is leaving and its status tells more; otherwise nothing will come of it. */
static void on_output_ended(void *ctx)
{
	struct process *s = ctx;

	if (s->state == PROCESS_ENDING)
		return;
	s->state = PROCESS_CLOSED;
	s->closed = true;
	if (uar_timer_set(sched_of(s), &s->timer, CLOSED_US))
		process_kill(s, "it closed its standard output");
}

static void on_errors(void *ctx, uar_str bytes)
{
	struct process *s = ctx;

	while (bytes.n) {
		size_t at = uar_str_find(bytes, '\n');

		/* The beginning of a long line is enough. */
		if (s->errors.n < UAR_LIMIT_PLUGIN_LOG_LINE)
			uar_buf_add_str(&s->errors, uar_str_utf8_prefix(uar_str_n(bytes.p, at),
									UAR_LIMIT_PLUGIN_LOG_LINE -
										s->errors.n));
		if (at == bytes.n)
			return;
		bytes = uar_str_from(bytes, at + 1);
		take_error_line(s);
	}
}

/* --- birth ---------------------------------------------------------------------------------- */

static const char *find_env(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
			return env[i];
	return NULL;
}

static void add_env(const char **out, size_t *n, const char *variable)
{
	if (variable && *n < ENV_MAX)
		out[(*n)++] = variable;
}

/* A process that executes one run is told which. */
static void add_run(const char **out, size_t *n, const struct uar_entry_call *c,
		    struct uar_arena *arena)
{
	add_env(out, n, uar_arena_printf(arena, "UAR_RUN_ID=%s", c->run_id).p);
	if (c->trace_id[0])
		add_env(out, n, uar_arena_printf(arena, "UAR_TRACE_ID=%s", c->trace_id).p);
}

/* A plugin gets what any program needs, what its manifest names, and nothing else. */
static const char **environment(struct plugin *p, const struct uar_entry_call *c,
				struct uar_arena *arena)
{
	static const char *const usual[] = { "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR" };
	const char **out = uar_arena_alloc(arena, (ENV_MAX + 2) * sizeof *out);
	char *const *env = p->host->o.env;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(usual) && out; i++)
		add_env(out, &n, find_env(env, usual[i]));
	for (size_t i = 0; p->m.env[i] && out; i++)
		add_env(out, &n, find_env(env, p->m.env[i]));
	if (out)
		add_env(out, &n, uar_arena_printf(arena, "UAR_PLUGIN_ID=%.*s", UAR_FMT(p->m.id)).p);
	if (out && c && p->m.runs_per_process == 1)
		add_run(out, &n, c, arena);
	return out;
}

static void say_hello(struct process *s)
{
	struct uar_jw w = process_begin(s, "hello", HELLO);

	s->last_request = HELLO;
	uar_jw_cstr(&w, "protocol", "1");
	uar_jw_str(&w, "plugin_id", s->plugin->m.id);
	uar_jw_cstr(&w, "server", "uar " UAR_VERSION);
	uar_jw_obj(&w, "limits");
	uar_jw_int(&w, "line_bytes", UAR_LIMIT_PLUGIN_LINE);
	uar_jw_int(&w, "export_bytes", UAR_LIMIT_EXPORT_BYTES);
	uar_jw_int(&w, "upload_piece_bytes", UAR_LIMIT_UPLOAD_PIECE);
	uar_jw_u64(&w, "upload_bytes", s->plugin->host->o.upload_max);
	uar_jw_int(&w, "concurrency", s->plugin->m.concurrency);
	uar_jw_close(&w);
	process_send(s, &w);
}

static uar_err spawn(struct process *s, const struct uar_entry_call *c, struct uar_error *error)
{
	struct plugin *p = s->plugin;
	struct uar_child_options o = { .argv = p->m.command,
				       .cwd = p->m.dir,
				       .output = on_output,
				       .errors = on_errors,
				       .output_ended = on_output_ended,
				       .exited = on_exited,
				       .ctx = s };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	o.env = environment(p, c, &arena);
	e = o.env ? uar_child_start(p->host->o.loop, &o, &s->child, error) : UAR_ENOMEM;
	uar_arena_fini(&arena);
	return e;
}

uar_err process_start(struct plugin *p, const struct uar_entry_call *c, struct uar_error *error)
{
	struct process *s = uar_zalloc(sizeof *s);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	s->plugin = p;
	s->timer.fn = on_timer;
	uar_list_init(&s->node);
	uar_list_init(&s->calls);
	s->line = uar_buf_make(UAR_LIMIT_PLUGIN_LINE);
	s->errors = uar_buf_make(UAR_LIMIT_PLUGIN_LOG_LINE);
	p->host->stats.processes++;
	e = spawn(s, c, error);
	if (!e)
		e = uar_timer_set(sched_of(s), &s->timer, p->m.start_timeout_us);
	if (e) {
		process_free(s);
		return e;
	}
	uar_list_add_last(&p->processes, &s->node);
	s->started_us = uar_clock_mono(sched_of(s)->clock);
	p->host->stats.started++;
	p->host->stats.restarted += p->failures > 0;
	say_hello(s);
	return UAR_OK;
}
