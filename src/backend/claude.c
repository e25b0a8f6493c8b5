/* claude.c - what Claude Code says, as events. Decides by typed fields only: an
 * API error is a `result` with is_error, whatever its subtype claims. */
#include "backend/claude.h"
#include "backend/limits.h"
#include "loop/limits.h"

static struct uab_claude *self(struct uab_map *m)
{
	return (struct uab_claude *)(void *)m;
}

static bool is_subagent(const struct uar_json *j)
{
	return uab_get_str(j, "parent_tool_use_id").n > 0;
}

/* --- system --- */

/* Names of subtypes are shown only when they look like names. */
static bool plain_name(uar_str s)
{
	if (s.n == 0 || s.n > 40)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || s.p[i] == '_'))
			return false;
	return true;
}

/* Exit status 2 is how a hook says no. */
static enum uab_hook_end hook_end(const struct uar_json *j)
{
	if (uar_json_int(uab_get(j, "exit_code"), 0) == 2)
		return UAB_HOOK_BLOCKS;
	return uar_str_is(uab_get_str(j, "outcome"), "success") ? UAB_HOOK_CONTINUES
								: UAB_HOOK_FAILS;
}

static void on_system(struct uab_map *m, const struct uar_json *j)
{
	static const struct {
		const char *subtype, *message; /* NULL: framing, not worth an event */
	} known[] = {
		{ "status", NULL },
		{ "thinking_tokens", NULL },
		{ "api_retry", "retrying" },
		{ "permission_denied", "permission denied" },
		{ "compact_boundary", "context compacted" },
		{ "informational", "warning" },
	};
	uar_str subtype = uab_get_str(j, "subtype");
	char text[64];

	if (uar_str_is(subtype, "init")) {
		uab_session(m, uab_get_str(j, "session_id"), "system init");
		uab_version(m, uab_get_str(j, "claude_code_version"));
		return;
	}
	if (uar_str_is(subtype, "hook_started")) {
		uab_hook_started(m, uab_get_str(j, "hook_id"), uab_get_str(j, "hook_event"));
		return;
	}
	if (uar_str_is(subtype, "hook_response")) {
		uab_hook_ended(m, uab_get_str(j, "hook_id"), hook_end(j), -1);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(subtype, known[i].subtype)) {
			if (known[i].message)
				uab_status(m, known[i].message);
			return;
		}
	if (!plain_name(subtype)) {
		uab_unknown(m);
		return;
	}
	snprintf(text, sizeof text, "system %.*s", UAR_FMT(subtype));
	uab_status(m, text);
}

/* --- assistant and user --- */

static enum uab_cause cause_of(uar_str error)
{
	static const struct {
		const char *name;
		enum uab_cause cause;
	} known[] = {
		{ "authentication_failed", UAB_CAUSE_AUTH },
		{ "oauth_org_not_allowed", UAB_CAUSE_AUTH },
		{ "model_not_found", UAB_CAUSE_MODEL },
		{ "rate_limit", UAB_CAUSE_RATE },
		{ "billing_error", UAB_CAUSE_RATE },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(error, known[i].name))
			return known[i].cause;
	return UAB_CAUSE_OTHER;
}

static void on_block(struct uab_map *m, const struct uar_json *j, const struct uar_json *block)
{
	struct uab_claude *c = self(m);
	uar_str type = uab_get_str(block, "type");
	uar_str id = uab_get_str(uab_get(j, "message"), "id");
	bool streamed = c->streaming && uar_str_is(id, c->message_id);

	if (uar_str_is(type, "text")) {
		if (!is_subagent(j) && !(streamed && c->block_streamed))
			uab_text(m, uab_get_str(block, "text"));
	} else if (uar_str_is(type, "tool_use")) {
		struct uab_tool_event t = { .id = uab_get_str(block, "id"),
					    .name = uab_get_str(block, "name"),
					    .kind = "tool_use" };

		if (!uab_tool_known(m, t.id))
			uab_tool_start(m, &t);
	} else if (uar_str_is(type, "thinking") || uar_str_is(type, "redacted_thinking")) {
		if (!streamed)
			uab_status(m, "reasoning");
	} else {
		uab_unknown(m);
	}
}

static void on_assistant(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *content = uab_get(uab_get(j, "message"), "content");
	uar_str error = uab_get_str(j, "error");

	if (error.n || uar_json_bool(uab_get(j, "is_api_error_message"), false)) {
		self(m)->cause = cause_of(error); /* its text is the provider's */
		return;
	}
	for (const struct uar_json *b = content && content->kind == UAR_JSON_ARRAY ? content->first
										   : NULL;
	     b; b = b->next)
		on_block(m, j, b);
}

static int64_t text_bytes(const struct uar_json *content)
{
	int64_t n = 0;

	if (!content)
		return 0;
	if (content->kind == UAR_JSON_STRING)
		return (int64_t)content->text.n;
	if (content->kind == UAR_JSON_ARRAY)
		for (const struct uar_json *b = content->first; b; b = b->next)
			n += (int64_t)uab_get_str(b, "text").n;
	return n;
}

static void on_user(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *content = uab_get(uab_get(j, "message"), "content");
	const struct uar_json *detail = uab_get(j, "tool_use_result");

	if (!content || content->kind != UAR_JSON_ARRAY)
		return; /* an echo of what was said */
	for (const struct uar_json *b = content->first; b; b = b->next) {
		struct uab_tool_event t = { .id = uab_get_str(b, "tool_use_id"),
					    .result_bytes = text_bytes(uab_get(b, "content")) };

		if (!uar_str_is(uab_get_str(b, "type"), "tool_result"))
			continue;
		t.kind = "tool_result";
		t.stdout_bytes = (int64_t)uab_get_str(detail, "stdout").n;
		t.stderr_bytes = (int64_t)uab_get_str(detail, "stderr").n;
		uab_tool_end(m, &t, uar_json_bool(uab_get(b, "is_error"), false));
	}
}

/* --- partial messages --- */

static void on_block_start(struct uab_map *m, const struct uar_json *block)
{
	struct uab_claude *c = self(m);
	uar_str type = uab_get_str(block, "type");

	c->block_streamed = false;
	c->stream_tool[0] = 0;
	if (uar_str_is(type, "tool_use")) {
		struct uab_tool_event t = { .id = uab_get_str(block, "id"),
					    .name = uab_get_str(block, "name"),
					    .kind = "tool_use" };

		uab_put(c->stream_tool, sizeof c->stream_tool, t.id);
		if (!uab_tool_known(m, t.id))
			uab_tool_start(m, &t);
	} else if (uar_str_is(type, "thinking")) {
		uab_status(m, "reasoning");
	}
}

static void on_block_delta(struct uab_map *m, const struct uar_json *delta)
{
	struct uab_claude *c = self(m);
	uar_str type = uab_get_str(delta, "type");

	if (uar_str_is(type, "text_delta")) {
		c->block_streamed = true;
		uab_text(m, uab_get_str(delta, "text"));
	} else if (uar_str_is(type, "input_json_delta") && c->stream_tool[0]) {
		struct uab_tool_event t = { .id = uar_str_c(c->stream_tool) };

		uab_tool_delta(m, &t);
	}
}

static void on_stream(struct uab_map *m, const struct uar_json *j)
{
	struct uab_claude *c = self(m);
	const struct uar_json *event = uab_get(j, "event");
	uar_str type = uab_get_str(event, "type");

	if (is_subagent(j))
		return;
	if (uar_str_is(type, "message_start")) {
		c->streaming = true;
		c->block_streamed = false;
		uab_put(c->message_id, sizeof c->message_id,
			uab_get_str(uab_get(event, "message"), "id"));
	} else if (uar_str_is(type, "content_block_start")) {
		on_block_start(m, uab_get(event, "content_block"));
	} else if (uar_str_is(type, "content_block_delta")) {
		on_block_delta(m, uab_get(event, "delta"));
	}
}

/* --- the last word --- */

static void take_usage(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *u = uab_get(j, "usage"), *cost = uab_get(j, "total_cost_usd");

	if (u) {
		m->usage.known = true;
		m->usage.input = uar_json_int(uab_get(u, "input_tokens"), 0);
		m->usage.cached = uar_json_int(uab_get(u, "cache_read_input_tokens"), 0);
		m->usage.output = uar_json_int(uab_get(u, "output_tokens"), 0);
	}
	m->usage.has_cost = cost != NULL;
	m->usage.cost = uar_json_double(cost, 0);
}

static bool says_no_conversation(const struct uar_json *j)
{
	const struct uar_json *errors = uab_get(j, "errors");

	for (const struct uar_json *e = errors && errors->kind == UAR_JSON_ARRAY ? errors->first
										 : NULL;
	     e; e = e->next)
		if (uar_str_starts(uar_json_str(e, UAR_STR_NONE),
				   UAR_STR("No conversation found with session ID")))
			return true;
	return false;
}

/* Of an error the result is its text, or there is a list of them. */
static void take_words(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *errors = uab_get(j, "errors");

	if (!uar_json_bool(uab_get(j, "is_error"), true))
		return;
	uab_words(m, uab_get_str(j, "result"));
	if (errors && errors->kind == UAR_JSON_ARRAY && errors->first)
		uab_words(m, uar_json_str(errors->first, UAR_STR_NONE));
}

static void on_result(struct uab_map *m, const struct uar_json *j)
{
	struct uab_claude *c = self(m);
	const struct uar_json *text = uab_get(j, "result"), *error = uab_get(j, "is_error");

	take_usage(m, j);
	take_words(m, j);
	if (error && error->kind == UAR_JSON_BOOL && !error->b) {
		if (text && text->kind == UAR_JSON_STRING)
			uab_final_set(m, text->text);
		uab_done(m);
	} else if (says_no_conversation(j)) {
		uab_not_found(m);
	} else if (uar_str_is(uab_get_str(j, "subtype"), "error_max_turns")) {
		uab_failed_cause(m, UAB_CAUSE_TURNS, 0);
	} else {
		uab_failed_cause(m, c->cause, uar_json_int(uab_get(j, "api_error_status"), 0));
	}
}

/* --- the dialogue --- */

static void control_head(struct uar_jw *w, const struct uab_ask *a, const char *subtype)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "control_response");
	uar_jw_obj(w, "response");
	uar_jw_cstr(w, "subtype", subtype);
	uar_jw_raw(w, "request_id", uar_str_c(a->wire_id));
}

static void answer(struct uab_map *m, const struct uab_ask *a, uaa_decision d)
{
	struct uar_buf b = uar_buf_make(2 * UAR_LIMIT_AGENT_LINE);
	struct uar_jw w = uar_jw_begin(&b);

	control_head(&w, a, "success");
	uar_jw_obj(&w, "response");
	uar_jw_cstr(&w, "behavior", d == UAA_DECISION_DENY ? "deny" : "allow");
	if (d == UAA_DECISION_DENY)
		uar_jw_cstr(&w, "message", "denied");
	else
		uar_jw_raw(&w, "updatedInput", a->input.n ? a->input : UAR_STR("{}"));
	if (d == UAA_DECISION_ALLOW_FOR_SESSION && a->extra.n)
		uar_jw_raw(&w, "updatedPermissions", a->extra);
	uar_jw_close(&w);
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		uab_send(m, &b);
	uar_buf_fini(&b);
}

static void refuse(struct uab_map *m, const struct uab_ask *a)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	control_head(&w, a, "error");
	uar_jw_cstr(&w, "error", "not supported");
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		uab_send(m, &b);
	uar_buf_fini(&b);
}

static void on_control_request(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *r = uab_get(j, "request"), *id = uab_get(j, "request_id");
	const struct uar_json *input = uab_get(r, "input");
	const struct uar_json *hints = uab_get(r, "permission_suggestions");
	struct uar_buf in = uar_buf_make(UAR_LIMIT_AGENT_LINE), ex = in, wire = uar_buf_make(150);
	struct uab_ask a = { .kind = "tool" };

	if (id)
		uar_json_write(&wire, id);
	uab_put(a.wire_id, sizeof a.wire_id, uar_buf_str(&wire));
	snprintf(a.id, sizeof a.id, "claude-%u", ++self(m)->asks);
	uab_put(a.tool_name, sizeof a.tool_name, uab_get_str(r, "tool_name"));
	uab_put(a.tool_use_id, sizeof a.tool_use_id, uab_get_str(r, "tool_use_id"));
	if (input)
		uar_json_write(&in, input);
	if (hints)
		uar_json_write(&ex, hints);
	a.input = uar_buf_str(&in);
	a.extra = uar_buf_str(&ex);
	if (wire.n == 0 || wire.err || in.err || ex.err)
		uab_unknown(m);
	else if (uar_str_is(uab_get_str(r, "subtype"), "can_use_tool"))
		uab_ask(m, &a);
	else
		refuse(m, &a);
	uar_buf_fini(&wire);
	uar_buf_fini(&in);
	uar_buf_fini(&ex);
}

static void on_control_response(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *r = uab_get(j, "response");

	if (uar_str_is(uab_get_str(r, "request_id"), "init1") &&
	    uar_str_is(uab_get_str(r, "subtype"), "error"))
		uab_failed(m, "%s backend error: control protocol refused", m->kind);
}

static void begin_dialogue(struct uab_map *m)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_INPUT);
	struct uar_jw w = uar_jw_begin(&b);

	uar_buf_add_str(&b, UAR_STR("{\"type\":\"control_request\",\"request_id\":\"init1\","
				    "\"request\":{\"subtype\":\"initialize\",\"hooks\":null}}\n"));
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "type", "user");
	uar_jw_obj(&w, "message");
	uar_jw_cstr(&w, "role", "user");
	uar_jw_str(&w, "content", self(m)->prompt);
	uar_jw_close(&w);
	uar_jw_null(&w, "parent_tool_use_id");
	uar_jw_cstr(&w, "session_id", "");
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		uab_send(m, &b);
	else
		uab_failed(m, "%s backend error: prompt too large", m->kind);
	uar_buf_fini(&b);
}

static bool interrupt(struct uab_map *m)
{
	m->port->send(m->port->ctx,
		      UAR_STR("{\"type\":\"control_request\",\"request_id\":\"stop1\","
			      "\"request\":{\"subtype\":\"interrupt\"}}\n"));
	return true;
}

/* --- by type --- */

static void on_progress(struct uab_map *m, const struct uar_json *j)
{
	struct uab_tool_event t = { .id = uab_get_str(j, "tool_use_id") };

	if (uab_tool_known(m, t.id))
		uab_tool_delta(m, &t);
}

static void message(struct uab_map *m, const struct uar_json *j)
{
	static const struct uab_handler types[] = {
		{ UAR_STR("stream_event"), on_stream, NULL },
		{ UAR_STR("assistant"), on_assistant, NULL },
		{ UAR_STR("user"), on_user, NULL },
		{ UAR_STR("system"), on_system, NULL },
		{ UAR_STR("result"), on_result, NULL },
		{ UAR_STR("control_request"), on_control_request, NULL },
		{ UAR_STR("control_response"), on_control_response, NULL },
		{ UAR_STR("control_cancel_request"), NULL, NULL },
		{ UAR_STR("rate_limit_event"), NULL, "rate limit changed" },
		{ UAR_STR("tool_progress"), on_progress, NULL },
		{ UAR_STR("keep_alive"), NULL, NULL },
	};

	if (m->outcome == UAB_OPEN)
		uab_dispatch(m, types, ARRAY_LEN(types), uab_get_str(j, "type"), j);
}

const struct uab_dialect uab_claude_oneshot = {
	.name = "claude_code",
	.message = message,
	.answer = answer,
};

const struct uab_dialect uab_claude_dialogue = {
	.name = "claude_code",
	.dialogue = true,
	.begin = begin_dialogue,
	.message = message,
	.interrupt = interrupt,
	.answer = answer,
};
