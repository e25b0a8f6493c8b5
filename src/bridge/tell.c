/* tell.c - the events of libagent_api, as the runtime wants to hear them.
 *
 * Statuses are known by their fixed texts; one that is not known is shown as a
 * phase. An Error event is a warning unless the run ends with the same words. */
#include "bridge/bridge_int.h"
#include "bridge/limits.h"
#include "loop/limits.h"

static int64_t number(const struct uar_json *j, const char *key)
{
	return uar_json_int(uar_json_get(j, uar_str_c(key)), 0);
}

static const struct uar_json *data_of(struct uar_agent_call *c, const uaa_event *ev)
{
	uaa_str text = uaa_event_data_json(ev);
	const struct uar_json *j = NULL;

	if (text.ptr && uar_json_parse(bridge_str(text), NULL, &c->scratch, &j, NULL))
		return NULL;
	return j;
}

static void note(struct uar_agent_call *c, enum uar_note_kind kind, const char *code, uar_str text,
		 uar_str metadata)
{
	struct uar_note n = {
		.kind = kind, .code = uar_str_c(code), .text = text, .metadata = metadata
	};

	c->events.note(c->events.ctx, &n);
}

/* Ids of events have a form that the program need not keep to. */
static uar_str event_id(struct uar_agent_call *c, uar_str id)
{
	uar_str made;

	if (!id.n || uar_str_is_id(id))
		return id;
	made = uar_arena_printf(&c->scratch, "call-%016llx",
				(unsigned long long)uar_str_hash(id, 0));
	return made.p ? made : UAR_STR_NONE;
}

/* --- tools ------------------------------------------------------------------------ */

static bool was_denied(const struct uar_agent_call *c, uar_str call_id)
{
	for (size_t i = 0; i < ARRAY_LEN(c->denied) && call_id.n; i++)
		if (uar_str_is(call_id, c->denied[i]))
			return true;
	return false;
}

static void tell_tool(struct uar_agent_call *c, const uaa_event *ev)
{
	const struct uar_json *tool = uar_json_get(data_of(c, ev), UAR_STR("tool"));
	const struct uar_json *bytes = uar_json_get(tool, UAR_STR("bytes"));
	const struct uar_json *code = uar_json_get(tool, UAR_STR("exit_code"));
	uar_str phase = uar_json_text(tool, "phase"), id = uar_json_text(tool, "tool_use_id");
	struct uar_tool_report t = {
		.step = uar_str_is(phase, "start")	? UAR_TOOL_BEGINS
			: uar_str_is(phase, "delta")	? UAR_TOOL_GOES_ON
			: uar_str_is(phase, "complete") ? UAR_TOOL_ENDS
							: UAR_TOOL_BREAKS,
		.call_id = event_id(c, id.n ? id : uar_json_text(tool, "backend_item_id")),
		.name = uar_json_text(tool, "tool_name"),
		.kind = uar_json_text(tool, "kind"),
		.has_exit = code && code->kind == UAR_JSON_INT,
		.exit_code = uar_json_int(code, 0),
		.stdout_bytes = number(bytes, "stdout"),
		.stderr_bytes = number(bytes, "stderr"),
		.diff_bytes = number(bytes, "diff"),
		.result_bytes = number(bytes, "result"),
	};

	if (!t.call_id.n)
		return;
	t.denied = t.step == UAR_TOOL_BREAKS && was_denied(c, t.call_id);
	c->events.tool(c->events.ctx, &t);
}

/* --- approvals ---------------------------------------------------------------------- */

static void add_words(struct uar_buf *out, const struct uar_json *j)
{
	if (!j)
		return;
	if (j->kind == UAR_JSON_STRING)
		uar_buf_add_str(out, j->text);
	for (const struct uar_json *w = j->kind == UAR_JSON_ARRAY ? j->first : NULL; w;
	     w = w->next) {
		if (w->kind == UAR_JSON_STRING)
			uar_buf_add_str(out, w->text);
		if (w->next)
			uar_buf_add_char(out, ' ');
	}
}

void bridge_prompt(const struct uar_json *input, uar_str what, struct uar_buf *out)
{
	static const char *const keys[] = {
		"command", "file_path", "path", "url", "reason", "title"
	};
	const struct uar_json *detail = NULL;
	uar_str cut;

	for (size_t i = 0; i < ARRAY_LEN(keys) && !detail; i++)
		detail = uar_json_get(input, uar_str_c(keys[i]));
	if (!detail)
		detail = uar_json_get(uar_json_get(input, UAR_STR("toolCall")), UAR_STR("title"));
	uar_buf_printf(out, "%.*s%s", UAR_FMT(what), detail ? ": " : "");
	add_words(out, detail);
	cut = uar_str_utf8_prefix(uar_buf_str(out), 512);
	out->n = cut.n;
	for (size_t i = 0; i < out->n; i++)
		if ((unsigned char)out->p[i] < 0x20 || out->p[i] == 0x7f)
			out->p[i] = ' ';
}

/* What nests deeper than an event may, or is longer, is shown by its beginning. */
static const struct uar_json *fit_input(struct uar_agent_call *c, uar_str text, struct uar_ask *a)
{
	static const struct uar_json_limits limits = { .depth = 40 };
	const struct uar_json *j = NULL;
	bool whole = uar_json_parse(text, &limits, &c->scratch, &j, NULL) == UAR_OK;

	size_t most = UAR_LIMIT_AGENT_ASK_INPUT;

	if (!whole && text.n && text.n <= most)
		most = text.n - 1; /* a part, so that nobody takes it for JSON */
	a->input = uar_str_utf8_prefix(text, most);
	a->input_bytes = (int64_t)text.n;
	if (a->input.n < text.n)
		a->whole = text;
	return whole ? j : NULL;
}

static void judge(const struct uar_agent_call *c, struct uar_ask *a, char rule[24])
{
	const struct uar_definition_policy *p = &c->agent->entry->def.policy;
	int which;

	a->verdict = uar_definition_judge(p, a->kind, a->tool_name, &which);
	snprintf(rule, 24, which < 0 ? "default" : "rules/%d", which);
	a->rule = uar_str_c(rule);
	a->timeout_us = p->timeout_us;
}

static void remember_ask(struct uar_agent_call *c, const struct uar_ask *a)
{
	struct bridge_ask *r = &c->asks[c->ask_at++ % ARRAY_LEN(c->asks)];

	snprintf(r->id, sizeof r->id, "%.*s", UAR_FMT(a->id));
	snprintf(r->call_id, sizeof r->call_id, "%.*s", UAR_FMT(a->call_id));
}

static void tell_ask(struct uar_agent_call *c, const struct uar_json *approval)
{
	struct uar_ask a = {
		.id = uar_json_text(approval, "id"),
		.kind = uar_json_text(approval, "kind"),
		.tool_name = uar_json_text(approval, "tool_name"),
		.call_id = event_id(c, uar_json_text(approval, "tool_use_id")),
	};
	struct uar_buf prompt = uar_buf_make(UAR_LIMIT_AGENT_LINE);
	const struct uar_json *input;
	char rule[24], *text = NULL;
	size_t n = 0;

	if (uaa_run_approval_input(c->run, bridge_pub(a.id), &text, &n, NULL)) {
		note(c, UAR_NOTE_DENIED, "", UAR_STR("nobody could be asked"), UAR_STR_NONE);
		return; /* the library has said no already */
	}
	input = fit_input(c, uar_str_n(text, n), &a);
	bridge_prompt(input, a.tool_name.n ? a.tool_name : a.kind, &prompt);
	a.prompt = prompt.err ? a.kind : uar_buf_str(&prompt);
	judge(c, &a, rule);
	remember_ask(c, &a);
	c->events.ask(c->events.ctx, &a);
	uaa_free(text);
	uar_buf_fini(&prompt);
}

/* --- statuses --------------------------------------------------------------------------- */

static void tell_version(struct uar_agent_call *c, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "backend", c->agent->entry->def.info.kind);
	uar_jw_str(&w, "version", uar_json_text(uar_json_get(data, UAR_STR("cli")), "version"));
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		note(c, UAR_NOTE_PHASE, "backend", UAR_STR("Version of the agent"),
		     uar_buf_str(&b));
	uar_buf_fini(&b);
}

static const struct {
	const char *message;
	enum uar_note_kind kind; /* UAR_NOTE_COUNT: the facts have it already */
	const char *code, *text;
} statuses[] = {
	{ "turn started", UAR_NOTE_COUNT, "", "" },
	{ "completed", UAR_NOTE_COUNT, "", "" },
	{ "permission granted", UAR_NOTE_COUNT, "", "" },
	{ "permission denied", UAR_NOTE_DENIED, "", "the agent reports that it was not allowed" },
	{ "plan updated", UAR_NOTE_PLAN, "", "plan updated" },
	{ "context compacted", UAR_NOTE_PHASE, "compaction", "The agent condensed its context" },
	{ "retrying", UAR_NOTE_WARNING, "RETRYING", "the agent tries its provider again" },
	{ "warning", UAR_NOTE_WARNING, "BACKEND_WARNING", "the agent gave a warning" },
	{ "rate limit changed", UAR_NOTE_LIMIT, "", "a limit of the agent's provider changed" },
	{ "session id too long: not reported", UAR_NOTE_WARNING, "SESSION_NOT_KEPT",
	  "the agent's session id is too long" },
};

static void tell_known(struct uar_agent_call *c, uar_str message)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (!uar_str_is(message, statuses[i].message))
			continue;
		if (statuses[i].kind == UAR_NOTE_DENIED && c->denied_by_us) {
			c->denied_by_us--; /* the echo of our own answer */
			return;
		}
		if (statuses[i].kind != UAR_NOTE_COUNT)
			note(c, statuses[i].kind, statuses[i].code, uar_str_c(statuses[i].text),
			     UAR_STR_NONE);
		return;
	}
	if (uar_str_starts(message, UAR_STR("DANGEROUS")))
		note(c, UAR_NOTE_WARNING, "EXTERNAL_SANDBOX", message, UAR_STR_NONE);
	else
		note(c, UAR_NOTE_PHASE, "backend", uar_str_utf8_prefix(message, 200), UAR_STR_NONE);
}

static void tell_hook(struct uar_agent_call *c, uar_str message, const struct uar_json *hook)
{
	struct uar_note n = {
		.kind = uar_str_is(message, "hook started")  ? UAR_NOTE_HOOK_STARTED
			: uar_str_is(message, "hook failed") ? UAR_NOTE_HOOK_FAILED
							     : UAR_NOTE_HOOK_ENDED,
		.code = uar_json_text(hook, "point"),
		.hook = { .id = event_id(c, uar_json_text(hook, "id")),
			  .outcome = uar_json_text(hook, "outcome"),
			  .duration_ms = number(hook, "duration_ms") },
	};

	c->events.note(c->events.ctx, &n);
}

static void tell_status(struct uar_agent_call *c, const uaa_event *ev)
{
	const struct uar_json *data = data_of(c, ev);
	uar_str message = bridge_str(uaa_event_message(ev));
	uar_str session = uar_json_text(uar_json_get(data, UAR_STR("session")), "id");
	const struct uar_json *hook = uar_json_get(data, UAR_STR("hook"));
	bool thinking = uar_str_is(message, "reasoning");

	if (hook)
		tell_hook(c, message, hook);
	else if (uar_str_is(message, "approval required"))
		tell_ask(c, uar_json_get(data, UAR_STR("approval")));
	else if (session.n)
		c->events.session(c->events.ctx, session);
	else if (uar_str_is(message, "backend version"))
		tell_version(c, data);
	else if (thinking && !c->thinking)
		note(c, UAR_NOTE_PHASE, "reasoning", UAR_STR("The agent is thinking"),
		     UAR_STR_NONE);
	else if (!thinking && message.n)
		tell_known(c, message);
	c->thinking = thinking;
}

/* --- errors ------------------------------------------------------------------------------ */

/* A line that is no message is gone as a whole; "... (line_bytes=N)" says how long it was. */
static void tell_gone(struct uar_agent_call *c, uar_str text)
{
	struct uar_note n = { .kind = UAR_NOTE_TRUNCATED, .text = text };
	uar_str count = uar_str_from(text, uar_str_find(text, '=') + 1);
	uint64_t bytes = 0;

	if (uar_str_ends(count, UAR_STR(")")) &&
	    uar_str_u64(uar_str_n(count.p, count.n - 1), &bytes) == UAR_OK && bytes <= INT64_MAX)
		n.bytes = (int64_t)bytes;
	c->events.note(c->events.ctx, &n);
}

/* It was not the last word. */
static void flush_trouble(struct uar_agent_call *c)
{
	uar_str text = uar_str_c(c->trouble);

	if (!text.n)
		return;
	note(c, UAR_NOTE_WARNING, "BACKEND_ERROR", text, UAR_STR_NONE);
	if (uar_str_starts(uar_str_from(text, uar_str_find(text, ' ') + 1),
			   UAR_STR("stream parse error")))
		tell_gone(c, text);
	c->trouble[0] = 0;
}

static void keep_trouble(struct uar_agent_call *c, const uaa_event *ev)
{
	flush_trouble(c);
	snprintf(c->trouble, sizeof c->trouble, "%.*s",
		 UAR_FMT(uar_str_utf8_prefix(bridge_str(uaa_event_message(ev)),
					     sizeof c->trouble - 1)));
}

void bridge_tell(struct uar_agent_call *c, const uaa_event *ev)
{
	uaa_event_kind kind = uaa_event_get_kind(ev);

	if (kind == UAA_EV_ERROR) {
		keep_trouble(c, ev);
		return;
	}
	flush_trouble(c);
	if (kind == UAA_EV_TEXT_OUTPUT)
		c->events.text(c->events.ctx, bridge_str(uaa_event_text(ev)));
	else if (kind == UAA_EV_TOOL_CALL || kind == UAA_EV_TOOL_RESULT)
		tell_tool(c, ev);
	else if (kind == UAA_EV_STATUS)
		tell_status(c, ev);
	if (kind != UAA_EV_STATUS)
		c->thinking = false;
	uar_arena_reset(&c->scratch);
}

/* --- the end ---------------------------------------------------------------------------- */

static const struct {
	const char *code, *category;
	bool final; /* asking again does not help */
} causes[] = {
	[UAA_CAUSE_TIMEOUT] = { "TIMEOUT", "timeout", false },
	[UAA_CAUSE_AUTH] = { "PROVIDER_ERROR", "provider_error", true },
	[UAA_CAUSE_RATE] = { "RATE_LIMITED", "provider_error", false },
	[UAA_CAUSE_MODEL] = { "PROVIDER_ERROR", "provider_error", true },
	[UAA_CAUSE_CONTEXT] = { "PROVIDER_ERROR", "provider_error", true },
	[UAA_CAUSE_TURNS] = { "PROVIDER_ERROR", "provider_error", true },
	[UAA_CAUSE_PROVIDER] = { "PROVIDER_ERROR", "provider_error", false },
	[UAA_CAUSE_TURN] = { "PROVIDER_ERROR", "provider_error", false },
	[UAA_CAUSE_NO_SESSION] = { "NOT_FOUND", "execution", true },
	[UAA_CAUSE_SESSION_IN_USE] = { "CONFLICT", "execution", false },
	[UAA_CAUSE_NO_PROGRAM] = { "TRANSPORT_ERROR", "execution", true },
	[UAA_CAUSE_NO_DIRECTORY] = { "TRANSPORT_ERROR", "execution", true },
	[UAA_CAUSE_CRASH] = { "TRANSPORT_ERROR", "execution", false },
	[UAA_CAUSE_TERMINATION] = { "TRANSPORT_ERROR", "execution", false },
};

/* The library names no program; who set it up may know which one it is, but not where. */
static uar_str name_program(struct uar_agent_call *c)
{
	const struct uar_definition *def = &c->agent->entry->def;
	const char *name = bridge_program(def), *slash = strrchr(name, '/');
	uar_str text;

	if (slash)
		text = uar_arena_printf(&c->scratch,
					"the program %.200s is not where the definition says",
					slash + 1);
	else
		text = uar_arena_printf(&c->scratch,
					"the program %.200s is not in the server's PATH", name);
	return text.p ? text : UAR_STR("its program was not found");
}

static void explain(struct uar_agent_call *c, const uaa_error *error, uar_str message,
		    struct uar_agent_end *end)
{
	uaa_cause cause = uaa_error_cause(error);
	bool known = (size_t)cause < ARRAY_LEN(causes) && causes[cause].code;

	end->code = known ? uar_str_c(causes[cause].code) : UAR_STR("TRANSPORT_ERROR");
	end->category = known ? uar_str_c(causes[cause].category) : UAR_STR("execution");
	end->retryable = !known || !causes[cause].final;
	end->message = cause == UAA_CAUSE_NO_PROGRAM ? name_program(c)
		       : cause == UAA_CAUSE_NO_DIRECTORY
			       ? UAR_STR("its working directory is not there, or not for it")
			       : bridge_words(c, error, message);
	if (error && uaa_error_code(error) == UAA_E_INVALID_REQUEST) {
		end->code = UAR_STR("VALIDATION_ERROR");
		end->retryable = false;
	}
}

static void add_usage(struct uar_agent_call *c, uaa_completion *completion,
		      struct uar_agent_end *end)
{
	uaa_str text = uaa_completion_data_json(completion);
	const struct uar_json *usage = NULL, *cost;

	if (text.ptr && uar_json_parse(bridge_str(text), NULL, &c->scratch, &usage, NULL) == UAR_OK)
		usage = uar_json_get(usage, UAR_STR("usage"));
	if (!usage)
		return;
	cost = uar_json_get(usage, UAR_STR("cost_usd"));
	end->input_tokens = number(usage, "input_tokens");
	end->output_tokens = number(usage, "output_tokens");
	end->has_cost = cost != NULL;
	end->cost_usd = uar_json_double(cost, 0);
}

void bridge_tell_end(struct uar_agent_call *c, uaa_completion *completion, uaa_error *error)
{
	struct uar_agent_end end = { .how = UAR_AGENT_BROKE,
				     .input_tokens = -1,
				     .output_tokens = -1 };
	uar_str why = error ? bridge_str(uaa_error_message(error)) : UAR_STR("");

	if (!uar_str_is(why, c->trouble))
		flush_trouble(c);
	if (completion) {
		end.how = UAR_AGENT_FINISHED;
		add_usage(c, completion, &end);
	} else if (c->cancelled && uaa_error_cause(error) == UAA_CAUSE_CANCELLED) {
		end.how = UAR_AGENT_STOPPED;
	} else {
		explain(c, error, why.n ? why : UAR_STR("the agent ended without a word"), &end);
	}
	c->events.done(c->events.ctx, &end);
}
