/* acp.c - sessions, updates and permissions of any ACP agent, as events. Titles and
 * raw inputs of tools are the agent's payload and stay out. */
#include "backend/acp.h"

static struct uab_acp *self(struct uab_map *m)
{
	return (struct uab_acp *)(void *)m;
}

/* --- what is asked of the agent --- */

static void hello(struct uab_map *m)
{
	struct uab_acp *c = self(m);
	struct uar_jw *w = &c->rpc.w;

	uab_rpc_init(&c->rpc, m, true);
	c->waiting = uab_rpc_open(&c->rpc, "initialize", false);
	uar_jw_int(w, "protocolVersion", 1);
	uar_jw_obj(w, "clientCapabilities");
	uar_jw_obj(w, "fs");
	uar_jw_bool(w, "readTextFile", false);
	uar_jw_bool(w, "writeTextFile", false);
	uar_jw_close(w);
	uar_jw_bool(w, "terminal", false);
	uar_jw_close(w);
	uar_jw_obj(w, "clientInfo");
	uar_jw_cstr(w, "name", "agent_api");
	uar_jw_cstr(w, "version", UAR_VERSION);
	uar_jw_close(w);
	uab_rpc_close(&c->rpc);
}

static void ask_list(struct uab_acp *c)
{
	c->step = UAB_ACP_LIST;
	c->waiting = uab_rpc_open(&c->rpc, "session/list", false);
	uar_jw_cstr(&c->rpc.w, "cwd", c->cwd);
	uab_rpc_close(&c->rpc);
}

static void ask_session(struct uab_acp *c, const char *method)
{
	struct uar_jw *w = &c->rpc.w;

	c->step = UAB_ACP_SESSION;
	c->waiting = uab_rpc_open(&c->rpc, method, false);
	if (c->target[0])
		uar_jw_cstr(w, "sessionId", c->target);
	uar_jw_cstr(w, "cwd", c->cwd);
	uar_jw_arr(w, "mcpServers");
	uar_jw_close(w);
	if (c->opt->dir_count) {
		uar_jw_arr(w, "additionalDirectories");
		for (size_t i = 0; i < c->opt->dir_count; i++)
			uar_jw_cstr(w, NULL, c->opt->dirs[i]);
		uar_jw_close(w);
	}
	uab_rpc_close(&c->rpc);
}

static void ask_prompt(struct uab_acp *c)
{
	struct uar_jw *w = &c->rpc.w;

	c->step = UAB_ACP_PROMPT;
	c->waiting = uab_rpc_open(&c->rpc, "session/prompt", false);
	uar_jw_cstr(w, "sessionId", c->wire_id);
	uar_jw_arr(w, "prompt");
	uab_rpc_text(&c->rpc, c->prompt);
	uar_jw_close(w);
	uar_jw_close(w);
	uab_rpc_close(&c->rpc);
}

static void lacks(struct uab_acp *c, const char *what)
{
	uab_failed(&c->map, "%s backend error: agent does not support %s", c->map.kind, what);
}

static void open_target(struct uab_acp *c, uar_str id)
{
	bool fork = c->opt->select == UAB_FORK_ID || c->opt->select == UAB_FORK_LAST;

	uab_put(c->target, sizeof c->target, id);
	if (!c->target[0])
		uab_not_found(&c->map);
	else if (fork ? !c->can_fork : !c->can_resume && !c->can_load)
		lacks(c, fork ? "session fork" : "session resume");
	else if (!fork && c->take && !c->take(c->ctx, uar_str_c(c->target)))
		uab_failed_as(&c->map, UAA_CAUSE_SESSION_IN_USE, "session in use");
	else
		ask_session(c, fork	       ? "session/fork"
			       : c->can_resume ? "session/resume"
					       : "session/load");
}

/* --- answers --- */

static void read_capabilities(struct uab_acp *c, const struct uar_json *result)
{
	const struct uar_json *caps = uab_get(result, "agentCapabilities");
	const struct uar_json *s = uab_get(caps, "sessionCapabilities");

	c->can_load = uar_json_bool(uab_get(caps, "loadSession"), false);
	c->can_resume = uab_get(s, "resume") != NULL;
	c->can_fork = uab_get(s, "fork") != NULL;
	c->can_list = uab_get(s, "list") != NULL;
	c->can_dirs = uab_get(s, "additionalDirectories") != NULL;
}

static void after_hello(struct uab_acp *c, const struct uar_json *result)
{
	enum uab_select s = c->opt->select;

	if (uar_json_int(uab_get(result, "protocolVersion"), 0) != 1) {
		lacks(c, "protocol version 1");
		return;
	}
	read_capabilities(c, result);
	uab_version(&c->map, uab_get_str(uab_get(result, "agentInfo"), "version"));
	if (c->opt->dir_count && !c->can_dirs)
		lacks(c, "additional directories");
	else if (s == UAB_NEW)
		ask_session(c, "session/new");
	else if (s == UAB_RESUME_ID || s == UAB_FORK_ID)
		open_target(c, c->opt->session_id);
	else if (c->can_list)
		ask_list(c);
	else
		lacks(c, "session list");
}

/* The newest one; times are RFC 3339 in UTC, which order as text. */
static void after_list(struct uab_acp *c, const struct uar_json *result)
{
	const struct uar_json *list = uab_get(result, "sessions"), *best = NULL;

	if (!list || list->kind != UAR_JSON_ARRAY) {
		uab_failed(&c->map, "%s backend error: session lookup failed", c->map.kind);
		return;
	}
	for (const struct uar_json *s = list->first; s; s = s->next) {
		uar_str dir = uab_get_str(s, "cwd");

		if (dir.n && !uar_str_is(dir, c->cwd))
			continue;
		if (!best ||
		    uar_str_cmp(uab_get_str(s, "updatedAt"), uab_get_str(best, "updatedAt")) > 0)
			best = s;
	}
	open_target(c, uab_get_str(best, "sessionId"));
}

/* An id too long to be told is still the one to speak with. */
static void after_session(struct uab_acp *c, const struct uar_json *result)
{
	uar_str id = uab_get_str(result, "sessionId");

	/* resume and load answer without the id that they were given */
	if (!id.n)
		id = uar_str_c(c->target);
	uab_session(&c->map, id, "session started");
	uab_put(c->wire_id, sizeof c->wire_id, id);
	if (c->wire_id[0] && uab_trim(id).n)
		ask_prompt(c);
	else
		uab_failed(&c->map, "%s backend error: session without id", c->map.kind);
}

static void after_prompt(struct uab_acp *c, const struct uar_json *result)
{
	const struct uar_json *u = uab_get(result, "usage");
	uar_str reason = uab_get_str(result, "stopReason");

	if (u)
		c->map.usage = (struct uab_usage){
			.known = true,
			.input = uar_json_int(uab_get(u, "inputTokens"), 0),
			.cached = uar_json_int(uab_get(u, "cachedReadTokens"), 0),
			.output = uar_json_int(uab_get(u, "outputTokens"), 0),
			.reasoning = uar_json_int(uab_get(u, "thoughtTokens"), 0),
		};
	if (c->anonymous)
		uab_final_clear(&c->map);
	if (uar_str_is(reason, "end_turn"))
		uab_done(&c->map);
	else if (uar_str_is(reason, "max_turn_requests"))
		uab_failed_cause(&c->map, UAB_CAUSE_TURNS, 0);
	else if (uar_str_is(reason, "max_tokens"))
		uab_failed(&c->map, "max tokens reached");
	else if (uar_str_is(reason, "refusal"))
		uab_failed(&c->map, "refused by the model");
	else
		uab_failed(&c->map, "%s backend error: turn interrupted", c->map.kind);
}

static void on_refused(struct uab_acp *c, const struct uar_json *error)
{
	int64_t code = uar_json_int(uab_get(error, "code"), 0);
	uar_str kind = uab_get_str(uab_get(error, "data"), "errorKind");

	uab_words(&c->map, uab_get_str(error, "message"));
	if (c->step == UAB_ACP_SESSION && c->target[0] && code == -32002)
		uab_not_found(&c->map);
	else if (code == -32000 || code == 401 || uar_str_is(kind, "authentication_failed"))
		uab_failed_cause(&c->map, UAB_CAUSE_AUTH, 0);
	else if (uar_str_is(kind, "model_not_found"))
		uab_failed_cause(&c->map, UAB_CAUSE_MODEL, 0);
	else if (uar_str_is(kind, "rate_limit") || code == 429)
		uab_failed_cause(&c->map, UAB_CAUSE_RATE, 0);
	else
		uab_failed(&c->map, "%s backend error: rpc error: code=%lld (details redacted)",
			   c->map.kind, (long long)code);
}

static void on_response(struct uab_map *m, const struct uar_json *j)
{
	struct uab_acp *c = self(m);
	const struct uar_json *result = uab_get(j, "result");

	if (!uab_rpc_answers(j, &c->waiting))
		return;
	if (!result || uab_get(j, "error")) {
		on_refused(c, uab_get(j, "error"));
		return;
	}
	switch (c->step) {
	case UAB_ACP_HELLO: after_hello(c, result); break;
	case UAB_ACP_LIST: after_list(c, result); break;
	case UAB_ACP_SESSION: after_session(c, result); break;
	case UAB_ACP_PROMPT: after_prompt(c, result); break;
	}
}

/* --- updates --- */

static const char *tool_kind(uar_str kind)
{
	static const char *const kinds[] = { "read",	"edit",	 "delete", "move",	 "search",
					     "execute", "think", "fetch",  "switch_mode" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (uar_str_is(kind, kinds[i]))
			return kinds[i];
	return "other";
}

static void on_chunk(struct uab_map *m, const struct uar_json *u)
{
	struct uab_acp *c = self(m);
	uar_str text = uab_get_str(uab_get(u, "content"), "text"), id = uab_get_str(u, "messageId");

	c->thinking = false;
	if (!id.n)
		c->anonymous = true;
	else if (!uar_str_is(id, c->message_id))
		uab_final_clear(m);
	uab_put(c->message_id, sizeof c->message_id, id);
	uab_final_add(m, text);
	uab_text(m, text);
}

static void on_thought(struct uab_map *m, const struct uar_json *u)
{
	(void)u;
	if (!self(m)->thinking)
		uab_status(m, "reasoning");
	self(m)->thinking = true;
}

static int64_t content_bytes(const struct uar_json *content, const char *of)
{
	int64_t n = 0;

	for (const struct uar_json *c = content && content->kind == UAR_JSON_ARRAY ? content->first
										   : NULL;
	     c; c = c->next)
		n += (int64_t)(strcmp(of, "diff") == 0
				       ? uab_get_str(c, "newText").n
				       : uab_get_str(uab_get(c, "content"), "text").n);
	return n;
}

static uar_str tool_name(const struct uar_json *u)
{
	uar_str name = uab_get_str(u, "name");

	return name.n ? name : uab_get_str(uab_get(uab_get(u, "_meta"), "claudeCode"), "toolName");
}

static void on_tool(struct uab_map *m, const struct uar_json *u)
{
	const struct uar_json *kind = uab_get(u, "kind");
	const struct uar_json *code =
		uab_get(uab_get(uab_get(u, "_meta"), "terminal_exit"), "exit_code");
	uar_str status = uab_get_str(u, "status");
	struct uab_tool_event t = { .id = uab_get_str(u, "toolCallId"), .name = tool_name(u) };

	t.kind = kind ? tool_kind(uar_json_str(kind, UAR_STR_NONE)) : NULL;
	t.result_bytes = content_bytes(uab_get(u, "content"), "text");
	t.diff_bytes = content_bytes(uab_get(u, "content"), "diff");
	t.has_exit = code && code->kind == UAR_JSON_INT;
	t.exit_code = uar_json_int(code, 0);
	if (!uab_tool_known(m, t.id)) {
		t.kind = t.kind ? t.kind : "other";
		uab_tool_start(m, &t);
	} else if (!uar_str_is(status, "completed") && !uar_str_is(status, "failed")) {
		uab_tool_delta(m, &t);
	}
	if (uar_str_is(status, "completed") || uar_str_is(status, "failed"))
		uab_tool_end(m, &t, uar_str_is(status, "failed"));
	self(m)->thinking = false;
}

static void on_update(struct uab_map *m, const struct uar_json *params)
{
	static const struct uab_handler kinds[] = {
		{ UAR_STR("agent_message_chunk"), on_chunk, NULL },
		{ UAR_STR("agent_thought_chunk"), on_thought, NULL },
		{ UAR_STR("tool_call"), on_tool, NULL },
		{ UAR_STR("tool_call_update"), on_tool, NULL },
		{ UAR_STR("plan"), NULL, "plan updated" },
		{ UAR_STR("compaction_update"), NULL, "context compacted" },
		{ UAR_STR("usage_update"), NULL, NULL },
		{ UAR_STR("user_message_chunk"), NULL, NULL },
		{ UAR_STR("available_commands_update"), NULL, NULL },
		{ UAR_STR("session_info_update"), NULL, NULL },
		{ UAR_STR("current_mode_update"), NULL, NULL },
		{ UAR_STR("config_option_update"), NULL, NULL },
	};
	const struct uar_json *u = uab_get(params, "update");
	uar_str session = uab_get_str(params, "sessionId");

	/* before the prompt it is history, and of another session it is not ours */
	if (self(m)->step == UAB_ACP_PROMPT && uar_str_is(session, self(m)->wire_id))
		uab_dispatch(m, kinds, ARRAY_LEN(kinds), uab_get_str(u, "sessionUpdate"), u);
}

/* --- permissions --- */

static uar_str option_of(const struct uar_json *options, const char *first, const char *second)
{
	uar_str found = UAR_STR_NONE;

	for (const struct uar_json *o = options && options->kind == UAR_JSON_ARRAY ? options->first
										   : NULL;
	     o; o = o->next) {
		uar_str kind = uab_get_str(o, "kind");

		if (uar_str_is(kind, first))
			return uab_get_str(o, "optionId");
		if (uar_str_is(kind, second))
			found = uab_get_str(o, "optionId");
	}
	return found;
}

static void answer(struct uab_map *m, const struct uab_ask *a, uaa_decision d)
{
	struct uab_rpc *r = &self(m)->rpc;
	const struct uar_json *options = NULL;
	struct uar_arena arena;
	uar_str id;

	uar_arena_init(&arena, 0);
	if (uar_json_parse(a->extra, NULL, &arena, &options, NULL))
		options = NULL;
	id = d == UAA_DECISION_DENY ? option_of(options, "reject_once", "reject_always")
	     : d == UAA_DECISION_ALLOW_FOR_SESSION
		     ? option_of(options, "allow_always", "allow_once")
		     : option_of(options, "allow_once", "allow_always");
	uab_rpc_reply(r, a->wire_id);
	uar_jw_obj(&r->w, "outcome");
	uar_jw_cstr(&r->w, "outcome", id.n ? "selected" : "cancelled");
	if (id.n)
		uar_jw_str(&r->w, "optionId", id);
	uar_jw_close(&r->w);
	uab_rpc_close(r);
	uar_arena_fini(&arena);
}

static void on_permission(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *p = uab_get(j, "params"), *call = uab_get(p, "toolCall");
	struct uab_ask a = { .kind = "tool" };

	if (!uab_rpc_wire_id(j, a.wire_id, sizeof a.wire_id))
		return;
	snprintf(a.id, sizeof a.id, "acp-%u", ++self(m)->asks);
	uab_put(a.tool_use_id, sizeof a.tool_use_id, uab_get_str(call, "toolCallId"));
	uab_put(a.tool_name, sizeof a.tool_name, tool_name(call));
	uab_rpc_ask(&self(m)->rpc, &a, call, uab_get(p, "options"));
}

static bool interrupt(struct uab_map *m)
{
	struct uab_acp *c = self(m);

	if (c->step != UAB_ACP_PROMPT)
		return false;
	uab_rpc_open(&c->rpc, "session/cancel", true);
	uar_jw_cstr(&c->rpc.w, "sessionId", c->wire_id);
	uab_rpc_close(&c->rpc);
	return true;
}

static void message(struct uab_map *m, const struct uar_json *j)
{
	uar_str method = uab_get_str(j, "method");
	char wire_id[160];

	if (m->outcome != UAB_OPEN)
		return;
	if (!method.n)
		on_response(m, j);
	else if (uar_str_is(method, "session/update"))
		on_update(m, uab_get(j, "params"));
	else if (uar_str_is(method, "session/request_permission"))
		on_permission(m, j);
	else if (uab_rpc_wire_id(j, wire_id, sizeof wire_id))
		uab_rpc_refuse(&self(m)->rpc, wire_id);
	else
		uab_unknown(m);
}

const struct uab_dialect uab_acp_dialect = {
	.name = "acp",
	.dialogue = true,
	.begin = hello,
	.message = message,
	.interrupt = interrupt,
	.answer = answer,
};
