/* mcp_tools.c - what an MCP client may call: the agents, and tools that change nothing.
 *
 * An agent is a tool whose call is a run. A tool of UAR that changes something belongs into a
 * run, where it is written down before it happens, so those are not offered by themselves. */
#include "gate/mcp_int.h"
#include "tool/tool.h"

enum { TOOL_NAME = 64 };

#define AGENT_SCHEMA                                                                               \
	"{\"type\":\"object\",\"properties\":{"                                                    \
	"\"message\":{\"type\":\"string\",\"description\":\"What the agent is to do.\"},"          \
	"\"conversation_id\":{\"type\":\"string\",\"description\":\"Continue this "                \
	"conversation; an earlier result names it.\"},"                                            \
	"\"inputs\":{\"type\":\"object\",\"description\":\"Further inputs of the agent.\"}},"      \
	"\"additionalProperties\":false}"
#define AGENT_OUTPUT                                                                               \
	"{\"type\":\"object\",\"properties\":{\"run_id\":{\"type\":\"string\"},"                   \
	"\"status\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"},"                         \
	"\"conversation_id\":{\"type\":\"string\"}},\"required\":[\"run_id\",\"status\",\"text\"]" \
	"}"

/* "agent_" and the id, of letters that every client takes. */
static void agent_tool_name(const struct uar_agent *a, char out[TOOL_NAME + 1])
{
	snprintf(out, TOOL_NAME + 1, "agent_%s", a->id);
	for (char *p = out; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		      (*p >= '0' && *p <= '9') || *p == '-' || *p == '_'))
			*p = '_';
}

/* The first agent of that name; a later one that would be called the same is not offered. */
static const struct uar_agent *find_agent(const struct mcp_exchange *x, uar_str name)
{
	const struct uar_workers *w = x->c->g->o.work;
	const struct uar_agent *a;
	char own[TOOL_NAME + 1];

	for (size_t i = 0; (a = uar_workers_agent_at(w, i)); i++) {
		agent_tool_name(a, own);
		if (uar_str_is(name, own) && uar_workers_shows(w, &x->c->owner, a))
			return a;
	}
	return NULL;
}

static const struct uar_tool *find_tool(const struct mcp_exchange *x, struct uar_tools *tools,
					uar_str name)
{
	const struct uar_tool *t =
		tools ? uar_tools_by_model_name(tools, &x->c->owner, name) : NULL;

	return t && t->effect == UAR_TOOL_READ_ONLY ? t : NULL;
}

/* --- the list ------------------------------------------------------------------------------- */

static void put_hints(struct uar_jw *w, bool read_only)
{
	uar_jw_obj(w, "annotations");
	uar_jw_bool(w, "readOnlyHint", read_only);
	uar_jw_bool(w, "destructiveHint", !read_only);
	uar_jw_bool(w, "idempotentHint", read_only);
	uar_jw_bool(w, "openWorldHint", !read_only);
	uar_jw_close(w);
}

static void put_agent(struct uar_jw *w, const struct uar_agent *a, const char *name)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "name", name);
	uar_jw_cstr(w, "title", a->title);
	uar_jw_cstr(w, "description", a->doc && a->doc[0] ? a->doc : a->title);
	uar_jw_raw(w, "inputSchema", UAR_STR(AGENT_SCHEMA));
	uar_jw_raw(w, "outputSchema", UAR_STR(AGENT_OUTPUT));
	put_hints(w, false);
	uar_jw_close(w);
}

static void put_agents(struct uar_jw *w, const struct mcp_exchange *x)
{
	const struct uar_agent *a;
	char name[TOOL_NAME + 1];

	for (size_t i = 0; (a = uar_workers_agent_at(x->c->g->o.work, i)); i++) {
		agent_tool_name(a, name);
		if (find_agent(x, uar_str_c(name)) == a)
			put_agent(w, a, name);
	}
}

static void put_tools(struct uar_jw *w, const struct mcp_exchange *x)
{
	struct uar_tools *tools = uar_workers_tools(x->c->g->o.work);
	const struct uar_tool *t;

	for (size_t i = 0; tools && (t = tools->ops->at(tools, i)); i++) {
		if (t->effect != UAR_TOOL_READ_ONLY || !uar_tool_is_for(t, &x->c->owner))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "name", t->model_name);
		uar_jw_str(w, "description", t->description);
		uar_jw_raw(w, "inputSchema", t->input_schema);
		put_hints(w, true);
		uar_jw_close(w);
	}
}

void mcp_list_tools(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	struct uar_jw w;

	if (uar_json_get(x->m.params, UAR_STR("cursor"))) {
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "there is no such page",
				 UAR_STR_NONE);
		return;
	}
	w = mcp_result_begin(x, &b);
	uar_jw_arr(&w, "tools");
	put_agents(&w, x);
	put_tools(&w, x);
	mcp_put_offered(&w, x, UAR_MCP_TOOLS);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

/* --- a call --------------------------------------------------------------------------------- */

struct tool_work {
	struct mcp_exchange *x;
	struct uar_tools *tools;
	struct uar_tool_call *at_work;
};

static void put_text(struct uar_jw *w, uar_str text)
{
	uar_jw_arr(w, "content");
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "text");
	uar_jw_str(w, "text", text);
	uar_jw_close(w);
	uar_jw_close(w);
}

/* What went wrong is for the model to read, which may call again. */
void mcp_answer_failed(struct mcp_exchange *x, uar_str text)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = mcp_result_begin(x, &b);

	put_text(&w, text);
	uar_jw_bool(&w, "isError", true);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

static void tool_done(void *ctx, const struct uar_tool_result *r)
{
	struct tool_work *k = ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	struct uar_jw w;

	if (!r->ok) {
		mcp_answer_failed(k->x, r->message);
		return;
	}
	w = mcp_result_begin(k->x, &b);
	put_text(&w, r->output);
	if (r->output.n && r->output.p[0] == '{')
		uar_jw_raw(&w, "structuredContent", r->output);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(k->x, &b);
}

static void tool_gone(struct call *c)
{
	struct tool_work *k = c->op;
	struct mcp_session *s = k->x->s;

	k->tools->ops->cancel(k->tools, k->at_work);
	gate_call_free(c);
	mcp_session_release(s);
}

static void call_internal(struct mcp_exchange *x, struct uar_tools *tools, const struct uar_tool *t)
{
	const struct uar_json *arguments = uar_json_get(x->m.params, UAR_STR("arguments"));
	struct tool_work *k = uar_arena_alloc(&x->c->arena, sizeof *k);
	struct uar_tool_caller caller = { .owner = x->c->owner };
	struct uar_tool_request r = { .tool = t, .input = UAR_STR("{}"), .caller = &caller };
	struct uar_error error = { 0 };
	uar_err e = UAR_ENOMEM;

	if (arguments)
		r.input = arguments->text;
	if (k) {
		struct uar_tool_events events = { .done = tool_done, .ctx = k };

		*k = (struct tool_work){ .x = x, .tools = tools };
		e = tools->ops->start(tools, &r, &events, &k->at_work, &error);
	}
	if (e == UAR_ESCHEMA || e == UAR_EINVALID) {
		mcp_answer_failed(x, uar_str_c(uar_error_text(&error)));
	} else if (e) {
		mcp_answer_problem(x, e, &error);
	} else {
		x->c->op = k;
		x->c->gone = tool_gone;
	}
}

void mcp_call_tool(struct mcp_exchange *x)
{
	uar_str name = uar_json_text(x->m.params, "name");
	const struct uar_json *arguments = uar_json_get(x->m.params, UAR_STR("arguments"));
	const struct uar_agent *agent = find_agent(x, name);
	struct uar_tools *tools = uar_workers_tools(x->c->g->o.work);
	const struct uar_tool *tool = find_tool(x, tools, name);

	if (arguments && arguments->kind != UAR_JSON_OBJECT)
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "arguments are an object",
				 UAR_STR_NONE);
	else if (agent)
		mcp_run_start(x, agent);
	else if (tool)
		call_internal(x, tools, tool);
	else if (!mcp_offer_request(x))
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "there is no such tool",
				 UAR_STR_NONE);
}
