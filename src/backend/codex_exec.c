/* codex_exec.c - what `codex exec --json` prints, as events. `error` lines are not
 * the end of anything; only turn.completed and turn.failed are. */
#include "backend/codex.h"

static struct uab_codex_exec *self(struct uab_map *m)
{
	return (struct uab_codex_exec *)(void *)m;
}

const char *uab_codex_tool_kind(uar_str type)
{
	static const char *const kinds[][2] = {
		{ "command_execution", "command_execution" },
		{ "commandExecution", "command_execution" },
		{ "file_change", "file_change" },
		{ "fileChange", "file_change" },
		{ "mcp_tool_call", "mcp_tool_call" },
		{ "mcpToolCall", "mcp_tool_call" },
		{ "web_search", "web_search" },
		{ "webSearch", "web_search" },
		{ "collab_tool_call", "collab_tool_call" },
		{ "collabAgentToolCall", "collab_tool_call" },
		{ "dynamicToolCall", "dynamic_tool_call" },
		{ "imageView", "image_view" },
		{ "imageGeneration", "image_generation" },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (uar_str_is(type, kinds[i][0]))
			return kinds[i][1];
	return NULL;
}

static int64_t result_bytes(const struct uar_json *result)
{
	const struct uar_json *content = uab_get(result, "content");
	int64_t n = 0;

	for (const struct uar_json *c = content && content->kind == UAR_JSON_ARRAY ? content->first
										   : NULL;
	     c; c = c->next)
		n += (int64_t)uab_get_str(c, "text").n;
	return n;
}

static void on_tool(struct uab_map *m, uar_str phase, const struct uar_json *item, const char *kind)
{
	const struct uar_json *code = uab_get(item, "exit_code");
	uar_str status = uab_get_str(item, "status");
	struct uab_tool_event t = { .id = uab_get_str(item, "id"),
				    .name = uab_get_str(item, "tool"),
				    .kind = kind };

	t.stdout_bytes = (int64_t)uab_get_str(item, "aggregated_output").n;
	t.result_bytes = result_bytes(uab_get(item, "result"));
	t.has_exit = code && code->kind == UAR_JSON_INT;
	t.exit_code = uar_json_int(code, 0);
	if (uar_str_is(phase, "item.started"))
		uab_tool_start(m, &t);
	else if (uar_str_is(phase, "item.updated"))
		uab_tool_delta(m, &t);
	else
		uab_tool_end(m, &t,
			     uar_str_is(status, "failed") || uar_str_is(status, "declined") ||
				     uar_str_is(phase, "item.failed"));
}

static void on_item(struct uab_map *m, uar_str phase, const struct uar_json *item)
{
	uar_str type = uab_get_str(item, "type");
	const char *tool = uab_codex_tool_kind(type);
	bool complete = uar_str_is(phase, "item.completed");

	if (tool) {
		on_tool(m, phase, item, tool);
	} else if (uar_str_is(type, "agent_message")) {
		if (complete) {
			uab_text(m, uab_get_str(item, "text"));
			uab_final_set(m, uab_get_str(item, "text"));
		}
	} else if (uar_str_is(type, "reasoning")) {
		uab_status(m, "reasoning");
	} else if (uar_str_is(type, "todo_list")) {
		uab_status(m, "plan updated");
	} else if (uar_str_is(type, "error")) {
		uab_status(m, "warning"); /* a notice: it ends nothing */
	} else {
		uab_unknown(m);
	}
}

static void on_turn_completed(struct uab_map *m, const struct uar_json *j)
{
	const struct uar_json *u = uab_get(j, "usage");

	if (u && self(m)->fresh) {
		m->usage = (struct uab_usage){
			.known = true,
			.input = uar_json_int(uab_get(u, "input_tokens"), 0),
			.cached = uar_json_int(uab_get(u, "cached_input_tokens"), 0),
			.output = uar_json_int(uab_get(u, "output_tokens"), 0),
			.reasoning = uar_json_int(uab_get(u, "reasoning_output_tokens"), 0),
		};
	}
	uab_done(m);
}

/* This stream has no typed cause; but its own words before those of the provider hold the
 * status: "unexpected status 401 Unauthorized: ...", "exceeded retry limit, last status: 429 ...".
 */
int64_t uab_codex_status(uar_str text)
{
	static const char *const heads[] = { "unexpected status ",
					     "exceeded retry limit, last status: " };
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		uar_str rest;

		if (!uar_str_starts(text, uar_str_c(heads[i])))
			continue;
		rest = uar_str_from(text, strlen(heads[i]));
		if (uar_str_u64(uar_str_n(rest.p, uar_str_find(rest, ' ')), &n) == UAR_OK &&
		    n >= 100 && n <= 599)
			return (int64_t)n;
	}
	return 0;
}

static void on_turn_failed(struct uab_map *m, uar_str text)
{
	uab_words(m, text);
	uab_failed_cause(m, UAB_CAUSE_OTHER, uab_codex_status(text));
}

static void message(struct uab_map *m, const struct uar_json *j)
{
	uar_str type = uab_get_str(j, "type");

	if (m->outcome != UAB_OPEN)
		return;
	if (uar_str_starts(type, UAR_STR("item.")))
		on_item(m, type, uab_get(j, "item"));
	else if (uar_str_is(type, "thread.started"))
		uab_session(m, uab_get_str(j, "thread_id"), "thread started");
	else if (uar_str_is(type, "turn.started"))
		uab_status(m, "turn started");
	else if (uar_str_is(type, "turn.completed"))
		on_turn_completed(m, j);
	else if (uar_str_is(type, "turn.failed"))
		on_turn_failed(m, uab_get_str(uab_get(j, "error"), "message"));
	else if (uar_str_is(type, "error"))
		uab_status(m, "warning");
	else
		uab_unknown(m);
}

static void ended(struct uab_map *m, int wait_status, uar_str errors)
{
	static const char text[] = "no rollout found for thread id";

	(void)wait_status;
	if (m->resume_by_id && !m->heard && errors.n &&
	    memmem(errors.p, errors.n, text, sizeof text - 1))
		uab_not_found(m);
}

static void answer(struct uab_map *m, const struct uab_ask *a, uaa_decision d)
{
	(void)m, (void)a, (void)d; /* exec never asks */
}

const struct uab_dialect uab_codex_exec_dialect = {
	.name = "codex_exec",
	.message = message,
	.answer = answer,
	.ended = ended,
};
