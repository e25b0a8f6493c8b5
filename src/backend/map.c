/* map.c - what all dialects share: lines, safe messages, facets, the one end. */
#include "backend/limits.h"
#include "backend/map.h"
#include "loop/limits.h"

#include <stdarg.h>
#include <sys/wait.h>

enum { DELTA_US = 250000 };

void uab_map_init(struct uab_map *m, const struct uab_dialect *d, const struct uab_port *port,
		  const char *kind)
{
	m->dialect = d;
	m->port = port;
	m->kind = kind;
	m->final = uar_buf_make(UAR_LIMIT_AGENT_LINE);
	m->words = uar_buf_make(UAR_LIMIT_AGENT_WORDS);
}

void uab_map_fini(struct uab_map *m)
{
	uar_buf_fini(&m->final);
	uar_buf_fini(&m->words);
}

uar_str uab_get_str(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR_NONE);
}

const struct uar_json *uab_get(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

void uab_put(char *to, size_t size, uar_str s)
{
	bool fits = s.n < size && !uab_has_nul(s);

	if (fits && s.n)
		memcpy(to, s.p, s.n);
	to[fits ? s.n : 0] = 0;
}

void uab_send(struct uab_map *m, struct uar_buf *json)
{
	uar_buf_add_char(json, '\n');
	if (json->err)
		uab_failed(m, "%s backend error: out of memory", m->kind);
	else
		m->port->send(m->port->ctx, uar_buf_str(json));
}

/* --- plain events --- */

static void emit(struct uab_map *m, uaa_event_kind kind, const char *channel, const char *message,
		 uar_str data)
{
	uaa_event_spec s = { .kind = kind,
			     .channel = uaa_str_c(channel),
			     .message = uaa_str_c(message),
			     .data_json = uab_pub(data) };

	m->port->emit(m->port->ctx, &s, false);
}

void uab_status(struct uab_map *m, const char *message)
{
	emit(m, UAA_EV_STATUS, "status", message, UAR_STR_NONE);
}

void uab_unknown(struct uab_map *m)
{
	emit(m, UAA_EV_UNKNOWN, NULL, NULL, UAR_STR_NONE);
}

void uab_dispatch(struct uab_map *m, const struct uab_handler *rows, size_t count, uar_str name,
		  const struct uar_json *j)
{
	size_t i = 0;

	while (i < count && !uar_str_eq(name, rows[i].name))
		i++;
	if (i == count)
		uab_unknown(m);
	else if (rows[i].on)
		rows[i].on(m, j);
	else if (rows[i].status)
		uab_status(m, rows[i].status);
}

void uab_text(struct uab_map *m, uar_str text)
{
	uaa_event_spec s = { .kind = UAA_EV_TEXT_OUTPUT,
			     .channel = UAB_STR("assistant"),
			     .text = uab_pub(text) };

	if (text.n)
		m->port->emit(m->port->ctx, &s, false);
}

void uab_final_clear(struct uab_map *m)
{
	m->has_final = false;
	uar_buf_clear(&m->final);
}

void uab_final_add(struct uab_map *m, uar_str text)
{
	m->has_final = true;
	uar_buf_add_str(&m->final, text);
}

void uab_final_set(struct uab_map *m, uar_str text)
{
	uab_final_clear(m);
	uab_final_add(m, text);
}

/* --- lines --- */

static void complain(struct uab_map *m, unsigned cause, const char *reason, uint64_t bytes)
{
	char text[160];

	if (m->complained & 1u << cause)
		return;
	m->complained |= 1u << cause;
	snprintf(text, sizeof text, "%s stream parse error (redacted): %s (line_bytes=%llu)",
		 m->kind, reason, (unsigned long long)bytes);
	emit(m, UAA_EV_ERROR, "error", text, UAR_STR_NONE);
}

void uab_map_too_long(struct uab_map *m, uint64_t bytes)
{
	complain(m, 0, "line too long", bytes);
}

void uab_map_line(struct uab_map *m, char *p, size_t n, struct uar_arena *scratch)
{
	static const struct uar_json_limits limits = { .bytes = UAR_LIMIT_AGENT_LINE + 1,
						       .nodes = UAR_LIMIT_AGENT_LINE_NODES,
						       .depth = 200,
						       .foreign = true };
	const struct uar_json *j;
	uar_err e;

	uab_fix_surrogates(p, n);
	e = uar_json_parse(uar_str_n(p, n), &limits, scratch, &j, NULL);
	if (e == UAR_EUTF8 || (e && !uar_utf8_valid(uar_str_n(p, n)))) {
		complain(m, 1, "not UTF-8", n);
	} else if (e) {
		complain(m, 2, "not JSON", n);
	} else if (j->kind != UAR_JSON_OBJECT) {
		complain(m, 3, "not an object", n);
	} else {
		m->heard = true;
		m->dialect->message(m, j);
	}
	uar_arena_reset(scratch);
}

/* --- session and version --- */

static void put_session(struct uar_jw *w, const struct uab_map *m)
{
	uar_jw_cstr(w, "schema", "agent_api.session.handle.v1");
	uar_jw_obj(w, "session");
	uar_jw_cstr(w, "id", m->session);
	uar_jw_close(w);
}

void uab_session(struct uab_map *m, uar_str id, const char *message)
{
	struct uar_buf data = uar_buf_make(4 * UAA_MAX_SESSION_ID);
	struct uar_jw w = uar_jw_begin(&data);

	id = uab_trim(id);
	if (m->session_told || id.n == 0 || id.n > UAA_MAX_SESSION_ID || uab_has_nul(id)) {
		uab_status(m, message);
		if (id.n > UAA_MAX_SESSION_ID && !m->session_told && !m->session_warned) {
			m->session_warned = true;
			uab_status(m, "session id too long: not reported");
		}
		return;
	}
	uab_put(m->session, sizeof m->session, id);
	m->session_told = true;
	uar_jw_obj(&w, NULL);
	put_session(&w, m);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		emit(m, UAA_EV_STATUS, "status", message, uar_buf_str(&data));
	uar_buf_fini(&data);
}

/* Versions are shown, so only what looks like one passes. */
static bool is_version(uar_str v)
{
	if (v.n == 0 || v.n > 40)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (!((v.p[i] >= '0' && v.p[i] <= '9') || (v.p[i] >= 'a' && v.p[i] <= 'z') ||
		      v.p[i] == '.' || v.p[i] == '-' || v.p[i] == '+'))
			return false;
	return v.p[0] >= '0' && v.p[0] <= '9';
}

void uab_version(struct uab_map *m, uar_str version)
{
	char data[96];

	if (m->version_told || !is_version(version))
		return;
	m->version_told = true;
	snprintf(data, sizeof data, "{\"cli\":{\"version\":\"%.*s\"}}", UAR_FMT(version));
	emit(m, UAA_EV_STATUS, "status", "backend version", uar_str_c(data));
}

/* --- tools --- */

static struct uab_tool *find_tool(const struct uab_map *m, uar_str id)
{
	for (size_t i = m->tool_count; i-- > 0;)
		if (uar_str_is(id, m->tools[i].id))
			return (struct uab_tool *)&m->tools[i];
	return NULL;
}

bool uab_tool_known(const struct uab_map *m, uar_str id)
{
	return find_tool(m, id) != NULL;
}

static struct uab_tool *remember(struct uab_map *m, const struct uab_tool_event *t)
{
	struct uab_tool *tool = find_tool(m, t->id);

	if (!tool && m->tool_count == ARRAY_LEN(m->tools)) { /* forget the oldest */
		memmove(m->tools, m->tools + 1, sizeof m->tools - sizeof m->tools[0]);
		m->tool_count--;
	}
	if (!tool)
		tool = &m->tools[m->tool_count++];
	uab_put(tool->id, sizeof tool->id, t->id);
	uab_put(tool->name, sizeof tool->name, t->name);
	tool->kind = t->kind ? t->kind : "unknown";
	tool->open = true;
	return tool;
}

static void opt_str(struct uar_jw *w, const char *key, uar_str s)
{
	if (s.n)
		uar_jw_str(w, key, s);
	else
		uar_jw_null(w, key);
}

static void put_facet(struct uar_jw *w, const struct uab_map *m, const struct uab_tool_event *t,
		      const char *phase, const char *status)
{
	const struct uab_tool *known = find_tool(m, t->id);
	uar_str name = t->name.n || !known ? t->name : uar_str_c(known->name);
	const char *kind = t->kind ? t->kind : known ? known->kind : "unknown";

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "schema", "agent_api.tools.structured.v1");
	uar_jw_obj(w, "tool");
	opt_str(w, "backend_item_id", t->item_id.n ? t->item_id : t->id);
	opt_str(w, "thread_id", uar_str_c(m->session));
	opt_str(w, "turn_id", uar_str_c(m->turn));
	uar_jw_cstr(w, "kind", kind);
	uar_jw_cstr(w, "phase", phase);
	uar_jw_cstr(w, "status", status);
	if (t->has_exit)
		uar_jw_int(w, "exit_code", t->exit_code);
	else
		uar_jw_null(w, "exit_code");
	uar_jw_obj(w, "bytes");
	uar_jw_int(w, "stdout", t->stdout_bytes);
	uar_jw_int(w, "stderr", t->stderr_bytes);
	uar_jw_int(w, "diff", t->diff_bytes);
	uar_jw_int(w, "result", t->result_bytes);
	uar_jw_close(w);
	opt_str(w, "tool_name", name);
	opt_str(w, "tool_use_id", t->id);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void emit_tool(struct uab_map *m, uaa_event_kind kind, const struct uab_tool_event *t,
		      const char *const phase_and_status[2])
{
	struct uar_buf data = uar_buf_make(UAR_LIMIT_AGENT_LINE);
	struct uar_jw w = uar_jw_begin(&data);

	put_facet(&w, m, t, phase_and_status[0], phase_and_status[1]);
	if (uar_jw_end(&w) == UAR_OK)
		emit(m, kind, "tool", NULL, uar_buf_str(&data));
	uar_buf_fini(&data);
}

void uab_tool_start(struct uab_map *m, const struct uab_tool_event *t)
{
	remember(m, t);
	m->delta_at_us = uab_now_us();
	emit_tool(m, UAA_EV_TOOL_CALL, t, (const char *[]){ "start", "running" });
}

void uab_tool_delta(struct uab_map *m, const struct uab_tool_event *t)
{
	int64_t now = uab_now_us();

	if (now - m->delta_at_us < DELTA_US)
		return;
	m->delta_at_us = now;
	emit_tool(m, UAA_EV_TOOL_CALL, t, (const char *[]){ "delta", "running" });
}

void uab_tool_end(struct uab_map *m, const struct uab_tool_event *t, bool failed)
{
	struct uab_tool *tool = find_tool(m, t->id);

	emit_tool(m, UAA_EV_TOOL_RESULT, t,
		  failed ? (const char *[]){ "fail", "failed" }
			 : (const char *[]){ "complete", "completed" });
	if (tool)
		tool->open = false;
}

/* Calls that never got their end get one now. */
static void close_tools(struct uab_map *m)
{
	for (size_t i = 0; i < m->tool_count; i++) {
		struct uab_tool *tool = &m->tools[i];
		struct uab_tool_event t = { .id = uar_str_c(tool->id) };

		if (!tool->open)
			continue;
		tool->open = false;
		emit_tool(m, UAA_EV_TOOL_RESULT, &t, (const char *[]){ "fail", "unknown" });
	}
}

/* --- approvals --- */

static void tell_ask(struct uab_map *m, const struct uab_ask *a)
{
	struct uar_buf data = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&data);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "schema", "agent_api.control.respond.v1");
	uar_jw_obj(&w, "approval");
	uar_jw_cstr(&w, "id", a->id);
	uar_jw_cstr(&w, "kind", a->kind);
	opt_str(&w, "tool_name", uar_str_c(a->tool_name));
	opt_str(&w, "tool_use_id", uar_str_c(a->tool_use_id));
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		emit(m, UAA_EV_STATUS, "status", "approval required", uar_buf_str(&data));
	uar_buf_fini(&data);
}

void uab_ask(struct uab_map *m, struct uab_ask *a)
{
	bool asked = m->interactive && m->port->ask(m->port->ctx, a);

	tell_ask(m, a);
	if (asked)
		return;
	m->dialect->answer(m, a, UAA_DECISION_DENY);
	uab_status(m, "permission denied");
}

/* --- the end --- */

void uab_done(struct uab_map *m)
{
	if (m->outcome != UAB_OPEN)
		return;
	close_tools(m);
	m->outcome = UAB_DONE;
	uab_status(m, "completed");
}

/* The first failure counts. */
static UAR_PRINTF(3, 0) void fail(struct uab_map *m, uaa_cause cause, const char *fmt, va_list ap)
{
	uaa_event_spec s = { .kind = UAA_EV_ERROR, .channel = UAB_STR("error") };

	if (m->outcome == UAB_FAILED)
		return;
	close_tools(m);
	m->outcome = UAB_FAILED;
	m->cause = cause;
	uab_final_clear(m);
	vsnprintf(m->error, sizeof m->error, fmt, ap);
	s.message = uaa_str_c(m->error);
	m->port->emit(m->port->ctx, &s, true);
}

void uab_failed(struct uab_map *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(m, UAA_CAUSE_UNKNOWN, fmt, ap);
	va_end(ap);
}

void uab_failed_as(struct uab_map *m, uaa_cause cause, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(m, cause, fmt, ap);
	va_end(ap);
}

void uab_failed_cause(struct uab_map *m, enum uab_cause cause, int64_t http)
{
	if (cause == UAB_CAUSE_OTHER && (http == 401 || http == 403))
		cause = UAB_CAUSE_AUTH;
	if (cause == UAB_CAUSE_OTHER && http == 429)
		cause = UAB_CAUSE_RATE;
	switch (cause) {
	case UAB_CAUSE_AUTH: uab_failed_as(m, UAA_CAUSE_AUTH, "authentication failed"); return;
	case UAB_CAUSE_MODEL:
		if (m->model_given)
			uab_failed_as(
				m, UAA_CAUSE_MODEL,
				"%s backend error: model rejected by runtime (details redacted)",
				m->kind);
		else
			uab_failed_as(m, UAA_CAUSE_MODEL,
				      "model rejected by runtime (details redacted)");
		return;
	case UAB_CAUSE_RATE: uab_failed_as(m, UAA_CAUSE_RATE, "rate limited"); return;
	case UAB_CAUSE_TURNS: uab_failed_as(m, UAA_CAUSE_TURNS, "max turns reached"); return;
	case UAB_CAUSE_CONTEXT:
		uab_failed_as(m, UAA_CAUSE_CONTEXT, "context window exceeded");
		return;
	case UAB_CAUSE_SERVER:
		uab_failed_as(m, UAA_CAUSE_PROVIDER, "provider error: server failure");
		return;
	case UAB_CAUSE_OTHER: break;
	}
	if (http > 0)
		uab_failed_as(m, UAA_CAUSE_PROVIDER, "provider error: http=%lld", (long long)http);
	else
		uab_failed_as(m, UAA_CAUSE_TURN, "%s backend error: turn failed (details redacted)",
			      m->kind);
}

void uab_not_found(struct uab_map *m)
{
	uab_failed_as(m, UAA_CAUSE_NO_SESSION, "%s",
		      m->resume_by_id ? "session not found" : "no session found");
}

void uab_words(struct uab_map *m, uar_str text)
{
	if (!text.n)
		return;
	uar_buf_clear(&m->words);
	uar_buf_add_str(&m->words, uar_str_utf8_prefix(text, UAR_LIMIT_AGENT_WORDS));
}

void uab_exit_failure(struct uab_map *m, int st)
{
	if (WIFEXITED(st) && WEXITSTATUS(st) == 0)
		uab_failed_as(m, UAA_CAUSE_CRASH, "stream ended without result");
	else if (WIFEXITED(st))
		uab_failed_as(m, UAA_CAUSE_CRASH, "%s exited non-zero: code=%d (output redacted)",
			      m->kind, WEXITSTATUS(st));
	else
		uab_failed_as(m, UAA_CAUSE_CRASH, "%s ended by signal: signal=%d (output redacted)",
			      m->kind, WTERMSIG(st));
}

bool uab_completion_data(const struct uab_map *m, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	if (!m->session_told && !m->usage.known)
		return false;
	uar_jw_obj(&w, NULL);
	if (m->session_told)
		put_session(&w, m);
	if (m->usage.known) {
		uar_jw_obj(&w, "usage");
		uar_jw_int(&w, "input_tokens", m->usage.input);
		uar_jw_int(&w, "cached_input_tokens", m->usage.cached);
		uar_jw_int(&w, "output_tokens", m->usage.output);
		uar_jw_int(&w, "reasoning_tokens", m->usage.reasoning);
		if (m->usage.has_cost)
			uar_jw_double(&w, "cost_usd", m->usage.cost);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	return uar_jw_end(&w) == UAR_OK;
}
