/* codex_app.c - `codex app-server`: deltas, approvals, interrupts, typed causes. */
#include "backend/codex.h"

#include <sys/wait.h>

static struct uab_codex_app *self(struct uab_map *m)
{
	return (struct uab_codex_app *)(void *)m;
}

/* --- what is asked of the server --- */

static void hello(struct uab_map *m)
{
	struct uab_codex_app *c = self(m);

	uab_rpc_init(&c->rpc, m, false);
	c->waiting = uab_rpc_open(&c->rpc, "initialize", false);
	uar_jw_obj(&c->rpc.w, "clientInfo");
	uar_jw_cstr(&c->rpc.w, "name", "agent_api");
	uar_jw_null(&c->rpc.w, "title");
	uar_jw_cstr(&c->rpc.w, "version", UAR_VERSION);
	uar_jw_close(&c->rpc.w);
	uar_jw_null(&c->rpc.w, "capabilities");
	uab_rpc_close(&c->rpc);
}

static void ask_list(struct uab_codex_app *c)
{
	static const char *const kinds[] = { "cli", "vscode", "exec", "appServer" };
	struct uar_jw *w = &c->rpc.w;

	c->step = UAB_CX_LIST;
	c->waiting = uab_rpc_open(&c->rpc, "thread/list", false);
	uar_jw_cstr(w, "cwd", c->cwd);
	uar_jw_int(w, "limit", 1);
	uar_jw_cstr(w, "sortKey", "updated_at");
	uar_jw_arr(w, "sourceKinds");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		uar_jw_cstr(w, NULL, kinds[i]);
	uar_jw_close(w);
	uab_rpc_close(&c->rpc);
}

static void put_policy(struct uab_codex_app *c)
{
	const struct uab_options *o = c->opt;
	struct uar_jw *w = &c->rpc.w;

	if (o->non_interactive)
		uar_jw_cstr(w, "approvalPolicy", "never");
	else if (o->approval_policy.n)
		uar_jw_str(w, "approvalPolicy", o->approval_policy);
	if (o->external_sandbox)
		uar_jw_cstr(w, "sandbox", "danger-full-access");
	else
		uar_jw_str(w, "sandbox",
			   o->sandbox_mode.n ? o->sandbox_mode : UAR_STR("workspace-write"));
	if (o->model.n)
		uar_jw_str(w, "model", o->model);
	if (!o->dir_count)
		return;
	uar_jw_obj(w, "config");
	uar_jw_arr(w, "sandbox_workspace_write.writable_roots");
	for (size_t i = 0; i < o->dir_count; i++)
		uar_jw_cstr(w, NULL, o->dirs[i]);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void ask_thread(struct uab_codex_app *c)
{
	enum uab_select s = c->opt->select;
	bool fork = s == UAB_FORK_ID || s == UAB_FORK_LAST;

	c->step = UAB_CX_THREAD;
	c->waiting = uab_rpc_open(&c->rpc,
				  s == UAB_NEW ? "thread/start"
				  : fork       ? "thread/fork"
					       : "thread/resume",
				  false);
	if (s != UAB_NEW)
		uar_jw_cstr(&c->rpc.w, "threadId", c->target);
	uar_jw_cstr(&c->rpc.w, "cwd", c->cwd);
	put_policy(c);
	uab_rpc_close(&c->rpc);
}

static void ask_turn(struct uab_codex_app *c)
{
	struct uar_jw *w = &c->rpc.w;

	c->step = UAB_CX_TURN;
	c->waiting = uab_rpc_open(&c->rpc, "turn/start", false);
	uar_jw_cstr(w, "threadId", c->map.session);
	uar_jw_arr(w, "input");
	uab_rpc_text(&c->rpc, c->prompt);
	uar_jw_arr(w, "text_elements");
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_close(w);
	uab_rpc_close(&c->rpc);
}

/* Resuming needs to be the only one; a fork may share. */
static void go_on_with(struct uab_codex_app *c, uar_str id)
{
	bool resume = c->opt->select == UAB_RESUME_ID || c->opt->select == UAB_RESUME_LAST;

	uab_put(c->target, sizeof c->target, id);
	if (c->list_only)
		c->map.outcome = UAB_DONE; /* of the look-up, not of the run */
	else if (resume && c->take && !c->take(c->ctx, uar_str_c(c->target)))
		uab_failed_as(&c->map, UAA_CAUSE_SESSION_IN_USE, "session in use");
	else
		ask_thread(c);
}

static void after_hello(struct uab_codex_app *c, const struct uar_json *result)
{
	uar_str agent = uab_get_str(result, "userAgent"), version = UAR_STR_NONE;

	uar_str_cut(agent, '/', &version);
	uab_version(&c->map, uar_str_cut(version, ' ', &agent));
	uab_rpc_open(&c->rpc, "initialized", true);
	uab_rpc_close(&c->rpc);
	if (c->list_only || c->opt->select == UAB_RESUME_LAST || c->opt->select == UAB_FORK_LAST)
		ask_list(c);
	else if (c->opt->select == UAB_NEW)
		ask_thread(c);
	else
		go_on_with(c, c->opt->session_id);
}

static void after_list(struct uab_codex_app *c, const struct uar_json *result)
{
	const struct uar_json *data = uab_get(result, "data");
	uar_str id = uab_get_str(uar_json_at(data, 0), "id");

	if (!data || data->kind != UAR_JSON_ARRAY)
		uab_failed(&c->map, "%s backend error: session lookup failed", c->map.kind);
	else if (!uab_is_uuid(id))
		uab_not_found(&c->map);
	else
		go_on_with(c, id);
}

static void after_thread(struct uab_codex_app *c, const struct uar_json *result)
{
	uar_str id = uab_get_str(uab_get(result, "thread"), "id");

	uab_session(&c->map, id, "thread started");
	if (c->map.session_told)
		ask_turn(c);
	else
		uab_failed(&c->map, "%s backend error: thread without id", c->map.kind);
}

static void on_refused(struct uab_codex_app *c, const struct uar_json *error)
{
	static const char gone[] = "no rollout found for thread id";
	uar_str text = uab_get_str(error, "message");

	uab_words(&c->map, text);
	if (c->step == UAB_CX_THREAD && c->opt->select != UAB_NEW && text.n &&
	    memmem(text.p, text.n, gone, sizeof gone - 1))
		uab_not_found(&c->map);
	else
		uab_failed(&c->map, "codex app-server rpc error: code=%lld (details redacted)",
			   (long long)uar_json_int(uab_get(error, "code"), 0));
}

static void on_response(struct uab_map *m, const struct uar_json *j)
{
	struct uab_codex_app *c = self(m);
	const struct uar_json *result = uab_get(j, "result");

	if (!uab_rpc_answers(j, &c->waiting))
		return;
	if (!result || uab_get(j, "error")) {
		on_refused(c, uab_get(j, "error"));
		return;
	}
	switch (c->step) {
	case UAB_CX_HELLO: after_hello(c, result); break;
	case UAB_CX_LIST: after_list(c, result); break;
	case UAB_CX_THREAD: after_thread(c, result); break;
	case UAB_CX_TURN:
		uab_put(m->turn, sizeof m->turn, uab_get_str(uab_get(result, "turn"), "id"));
		c->turn_open = true;
		break;
	}
}

/* --- items --- */

static int64_t diff_bytes(const struct uar_json *changes)
{
	int64_t n = 0;

	for (const struct uar_json *c = changes && changes->kind == UAR_JSON_ARRAY ? changes->first
										   : NULL;
	     c; c = c->next)
		n += (int64_t)uab_get_str(c, "diff").n;
	return n;
}

static void on_tool(struct uab_map *m, const struct uar_json *item, const char *kind, bool complete)
{
	const struct uar_json *code = uab_get(item, "exitCode");
	uar_str status = uab_get_str(item, "status");
	struct uab_tool_event t = { .id = uab_get_str(item, "id"),
				    .name = uab_get_str(item, "tool"),
				    .kind = kind };

	t.stdout_bytes = (int64_t)uab_get_str(item, "aggregatedOutput").n;
	t.diff_bytes = diff_bytes(uab_get(item, "changes"));
	t.has_exit = code && code->kind == UAR_JSON_INT;
	t.exit_code = uar_json_int(code, 0);
	if (!complete)
		uab_tool_start(m, &t);
	else
		uab_tool_end(m, &t, uar_str_is(status, "failed") || uar_str_is(status, "declined"));
	if (complete && uar_str_is(status, "declined"))
		uab_status(m, "permission denied");
}

static void on_item(struct uab_map *m, const struct uar_json *params, bool complete)
{
	const struct uar_json *item = uab_get(params, "item");
	uar_str type = uab_get_str(item, "type"), id = uab_get_str(item, "id");
	const char *tool = uab_codex_tool_kind(type);

	if (tool) {
		on_tool(m, item, tool, complete);
	} else if (uar_str_is(type, "agentMessage")) {
		if (!complete)
			return;
		if (!uar_str_is(id, self(m)->delta_item))
			uab_text(m, uab_get_str(item, "text"));
		uab_final_set(m, uab_get_str(item, "text"));
	} else if (uar_str_is(type, "reasoning")) {
		if (!complete)
			uab_status(m, "reasoning");
	} else if (uar_str_is(type, "plan")) {
		uab_status(m, "plan updated");
	} else if (uar_str_is(type, "contextCompaction")) {
		uab_status(m, "context compacted");
	} else if (!uar_str_is(type, "userMessage")) {
		uab_unknown(m);
	}
}

static void on_item_started(struct uab_map *m, const struct uar_json *p)
{
	on_item(m, p, false);
}

static void on_item_completed(struct uab_map *m, const struct uar_json *p)
{
	on_item(m, p, true);
}

static void on_text_delta(struct uab_map *m, const struct uar_json *p)
{
	uab_put(self(m)->delta_item, sizeof self(m)->delta_item, uab_get_str(p, "itemId"));
	uab_text(m, uab_get_str(p, "delta"));
}

static void on_output_delta(struct uab_map *m, const struct uar_json *p)
{
	struct uab_tool_event t = { .id = uab_get_str(p, "itemId") };

	if (uab_tool_known(m, t.id))
		uab_tool_delta(m, &t);
}

/* --- the turn --- */

static void read_cause(struct uab_codex_app *c, const struct uar_json *error)
{
	static const struct {
		const char *name;
		enum uab_cause cause;
	} known[] = {
		{ "unauthorized", UAB_CAUSE_AUTH },
		{ "modelNotFound", UAB_CAUSE_MODEL },
		{ "rateLimitExceeded", UAB_CAUSE_RATE },
		{ "usageLimitExceeded", UAB_CAUSE_RATE },
		{ "contextWindowExceeded", UAB_CAUSE_CONTEXT },
		{ "internalServerError", UAB_CAUSE_SERVER },
		{ "serverOverloaded", UAB_CAUSE_SERVER },
	};
	const struct uar_json *info = uab_get(error, "codexErrorInfo");
	uar_str words = uab_get_str(error, "message");

	uab_words(&c->map, words);
	if (info && info->kind == UAR_JSON_OBJECT && info->first)
		c->http = uar_json_int(uab_get(info->first, "httpStatusCode"), c->http);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(uar_json_str(info, UAR_STR_NONE), known[i].name))
			c->cause = known[i].cause;
	if (!c->http) /* what it does not type is "other" */
		c->http = uab_codex_status(words);
}

static void on_error(struct uab_map *m, const struct uar_json *p)
{
	if (uar_json_bool(uab_get(p, "willRetry"), false))
		uab_status(m, "retrying");
	else
		read_cause(self(m), uab_get(p, "error"));
}

static void on_turn_started(struct uab_map *m, const struct uar_json *p)
{
	uab_put(m->turn, sizeof m->turn, uab_get_str(uab_get(p, "turn"), "id"));
	self(m)->turn_open = true;
	uab_status(m, "turn started");
}

static void on_turn_completed(struct uab_map *m, const struct uar_json *p)
{
	struct uab_codex_app *c = self(m);
	const struct uar_json *turn = uab_get(p, "turn");
	uar_str status = uab_get_str(turn, "status");

	c->turn_open = false;
	if (uar_str_is(status, "completed")) {
		uab_done(m);
	} else if (uar_str_is(status, "interrupted")) {
		uab_failed(m, "%s backend error: turn interrupted", m->kind);
	} else {
		read_cause(c, uab_get(turn, "error"));
		uab_failed_cause(m, c->cause, c->http);
	}
}

static void on_usage(struct uab_map *m, const struct uar_json *p)
{
	const struct uar_json *last = uab_get(uab_get(p, "tokenUsage"), "last");

	if (!last)
		return;
	m->usage.known = true; /* totals are the thread's; the parts of this turn add up */
	m->usage.input += uar_json_int(uab_get(last, "inputTokens"), 0);
	m->usage.cached += uar_json_int(uab_get(last, "cachedInputTokens"), 0);
	m->usage.output += uar_json_int(uab_get(last, "outputTokens"), 0);
	m->usage.reasoning += uar_json_int(uab_get(last, "reasoningOutputTokens"), 0);
}

/* --- what the server asks --- */

static void answer(struct uab_map *m, const struct uab_ask *a, uaa_decision d)
{
	struct uab_rpc *r = &self(m)->rpc;
	bool deny = d == UAA_DECISION_DENY, session = d == UAA_DECISION_ALLOW_FOR_SESSION;

	uab_rpc_reply(r, a->wire_id);
	if (strcmp(a->kind, "permissions") == 0) {
		uar_jw_raw(&r->w, "permissions", deny || !a->extra.n ? UAR_STR("{}") : a->extra);
		uar_jw_cstr(&r->w, "scope", session ? "session" : "turn");
	} else if (strcmp(a->kind, "input") == 0) {
		uar_jw_obj(&r->w, "answers");
		uar_jw_close(&r->w);
	} else if (strcmp(a->kind, "elicitation") == 0) {
		uar_jw_cstr(&r->w, "action", deny ? "decline" : "accept");
		uar_jw_null(&r->w, "content");
		uar_jw_null(&r->w, "_meta");
	} else {
		uar_jw_cstr(&r->w, "decision",
			    deny      ? "decline"
			    : session ? "acceptForSession"
				      : "accept");
	}
	uab_rpc_close(r);
}

static void on_request(struct uab_map *m, uar_str method, const struct uar_json *j)
{
	static const char *const kinds[][2] = {
		{ "item/commandExecution/requestApproval", "command" },
		{ "item/fileChange/requestApproval", "file_change" },
		{ "item/permissions/requestApproval", "permissions" },
		{ "item/tool/requestUserInput", "input" },
		{ "mcpServer/elicitation/request", "elicitation" },
	};
	const struct uar_json *p = uab_get(j, "params");
	struct uab_ask a = { 0 };

	if (!uab_rpc_wire_id(j, a.wire_id, sizeof a.wire_id))
		return;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (uar_str_is(method, kinds[i][0]))
			a.kind = kinds[i][1];
	if (!a.kind) {
		uab_rpc_refuse(&self(m)->rpc, a.wire_id);
		return;
	}
	snprintf(a.id, sizeof a.id, "codex-%u", ++self(m)->asks);
	uab_put(a.tool_use_id, sizeof a.tool_use_id, uab_get_str(p, "itemId"));
	uab_rpc_ask(&self(m)->rpc, &a, p, uab_get(p, "permissions"));
}

static bool interrupt(struct uab_map *m)
{
	struct uab_codex_app *c = self(m);

	if (!c->turn_open)
		return false;
	uab_rpc_open(&c->rpc, "turn/interrupt", false);
	uar_jw_cstr(&c->rpc.w, "threadId", m->session);
	uar_jw_cstr(&c->rpc.w, "turnId", m->turn);
	uab_rpc_close(&c->rpc);
	return true;
}

/* --- by method --- */

/* --- hooks --- */

static void on_hook_started(struct uab_map *m, const struct uar_json *params)
{
	const struct uar_json *run = uab_get(params, "run");

	uab_hook_started(m, uab_get_str(run, "id"), uab_get_str(run, "eventName"));
}

static void on_hook_completed(struct uab_map *m, const struct uar_json *params)
{
	const struct uar_json *run = uab_get(params, "run");
	uar_str status = uab_get_str(run, "status");
	enum uab_hook_end how = uar_str_is(status, "completed") ? UAB_HOOK_CONTINUES
				: uar_str_is(status, "blocked") ? UAB_HOOK_BLOCKS
								: UAB_HOOK_FAILS;

	uab_hook_ended(m, uab_get_str(run, "id"), how,
		       uar_json_int(uab_get(run, "durationMs"), -1));
}

static const struct uab_handler notifications[] = {
	{ UAR_STR("item/agentMessage/delta"), on_text_delta, NULL },
	{ UAR_STR("item/started"), on_item_started, NULL },
	{ UAR_STR("item/completed"), on_item_completed, NULL },
	{ UAR_STR("item/commandExecution/outputDelta"), on_output_delta, NULL },
	{ UAR_STR("item/fileChange/outputDelta"), on_output_delta, NULL },
	{ UAR_STR("item/mcpToolCall/progress"), on_output_delta, NULL },
	{ UAR_STR("item/reasoning/summaryTextDelta"), NULL, NULL },
	{ UAR_STR("item/reasoning/summaryPartAdded"), NULL, NULL },
	{ UAR_STR("item/reasoning/textDelta"), NULL, NULL },
	{ UAR_STR("turn/started"), on_turn_started, NULL },
	{ UAR_STR("turn/completed"), on_turn_completed, NULL },
	{ UAR_STR("turn/plan/updated"), NULL, "plan updated" },
	{ UAR_STR("turn/diff/updated"), NULL, NULL },
	{ UAR_STR("hook/started"), on_hook_started, NULL },
	{ UAR_STR("hook/completed"), on_hook_completed, NULL },
	{ UAR_STR("thread/started"), NULL, NULL },
	{ UAR_STR("thread/status/changed"), NULL, NULL },
	{ UAR_STR("thread/tokenUsage/updated"), on_usage, NULL },
	{ UAR_STR("thread/compacted"), NULL, "context compacted" },
	{ UAR_STR("thread/name/updated"), NULL, NULL },
	{ UAR_STR("remoteControl/status/changed"), NULL, NULL },
	{ UAR_STR("serverRequest/resolved"), NULL, NULL },
	{ UAR_STR("account/rateLimits/updated"), NULL, "rate limit changed" },
	{ UAR_STR("warning"), NULL, "warning" },
	{ UAR_STR("configWarning"), NULL, "warning" },
	{ UAR_STR("deprecationNotice"), NULL, "warning" },
	{ UAR_STR("error"), on_error, NULL },
};

/* Threads of sub-agents speak too; they are not this run's answer. */
static bool foreign(const struct uab_map *m, const struct uar_json *params)
{
	uar_str thread = uab_get_str(params, "threadId");

	return thread.n && m->session_told && !uar_str_is(thread, m->session);
}

static void message(struct uab_map *m, const struct uar_json *j)
{
	uar_str method = uab_get_str(j, "method");
	const struct uar_json *params = uab_get(j, "params");

	if (m->outcome != UAB_OPEN)
		return;
	if (!method.n) {
		on_response(m, j);
		return;
	}
	if (uab_get(j, "id")) {
		on_request(m, method, j);
		return;
	}
	if (!foreign(m, params))
		uab_dispatch(m, notifications, ARRAY_LEN(notifications), method, params);
}

/* A codex without this server: nothing was asked of it yet, so exec may try. */
static void ended(struct uab_map *m, int wait_status, uar_str errors)
{
	struct uab_codex_app *c = self(m);

	(void)errors;
	if (!c->may_fall_back || m->heard || !WIFEXITED(wait_status) || !WEXITSTATUS(wait_status))
		return;
	c->unavailable = true;
	m->outcome = UAB_DONE;
}

const struct uab_dialect uab_codex_app_dialect = {
	.name = "codex_app",
	.dialogue = true,
	.begin = hello,
	.message = message,
	.interrupt = interrupt,
	.answer = answer,
	.ended = ended,
};
