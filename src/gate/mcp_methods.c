/* mcp_methods.c - which method is meant, and those that are answered at once. */
#include "gate/mcp_int.h"

uar_str mcp_negotiate(uar_str asked)
{
	return uar_mcp_is_legacy_version(asked) ? asked : UAR_STR(UAR_MCP_LEGACY);
}

static void put_capability(struct uar_jw *w, const char *name, const char *first,
			   const char *second)
{
	uar_jw_obj(w, name);
	if (first)
		uar_jw_bool(w, first, true);
	if (second)
		uar_jw_bool(w, second, true);
	uar_jw_close(w);
}

static void put_capabilities(struct uar_jw *w, bool legacy)
{
	uar_jw_obj(w, "capabilities");
	put_capability(w, "tools", "listChanged", NULL);
	put_capability(w, "resources", "subscribe", legacy ? NULL : "listChanged");
	put_capability(w, "prompts", "listChanged", NULL);
	put_capability(w, "completions", NULL, NULL);
	put_capability(w, "logging", NULL, NULL);
	if (!legacy) {
		uar_jw_obj(w, "extensions");
		put_capability(w, MCP_TASKS, NULL, NULL);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static const char instructions[] =
	"Agents are tools whose name begins with agent_: a call is a run, which goes on when the "
	"client leaves. Its record is the resource uar://runs/RUN_ID.";

void mcp_put_initialized(struct uar_jw *w, uar_str version)
{
	uar_jw_str(w, "protocolVersion", version);
	put_capabilities(w, true);
	mcp_put_server_info(w, "serverInfo");
	uar_jw_cstr(w, "instructions", instructions);
}

/* A session that exists is told again what it is. */
static void initialize_again(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = mcp_result_begin(x, &b);

	mcp_put_initialized(&w, x->s->version);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

void mcp_answer_empty(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = mcp_result_begin(x, &b);

	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

static void discover(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = mcp_result_begin(x, &b);

	uar_jw_arr(&w, "supportedVersions");
	uar_jw_cstr(&w, NULL, UAR_MCP_MODERN);
	uar_jw_close(&w);
	put_capabilities(&w, false);
	uar_jw_cstr(&w, "instructions", instructions);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

static void complete(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w;

	if (mcp_offer_request(x))
		return;
	w = mcp_result_begin(x, &b);
	uar_jw_obj(&w, "completion");
	uar_jw_arr(&w, "values");
	uar_jw_close(&w);
	uar_jw_int(&w, "total", 0);
	uar_jw_bool(&w, "hasMore", false);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

static void level_stored(void *ctx, uar_err e, uint64_t sequence)
{
	struct mcp_exchange *x = ctx;

	(void)sequence;
	if (e)
		mcp_answer_problem(x, e, NULL);
	else
		mcp_answer_empty(x);
}

/* The log has it before the client knows. */
static void set_level(struct mcp_exchange *x)
{
	uar_str name = uar_json_text(x->m.params, "level");
	const char *level = mcp_level(name);
	char text[32];
	struct mcp_record r = { .kind = "level", .done = level_stored, .ctx = x };
	uar_err e;

	if (!level) {
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "there is no such level",
				 UAR_STR_NONE);
		return;
	}
	snprintf(text, sizeof text, "\"%s\"", level);
	r.message = uar_str_c(text);
	x->s->level = level;
	x->c->op = x;
	e = mcp_record_add(x->s, &r);
	if (e)
		mcp_answer_problem(x, e, NULL);
}

/* --- the table ------------------------------------------------------------------------------ */

typedef void method_fn(struct mcp_exchange *x);

static method_fn *const methods[UAR_MCP_M_COUNT] = {
	[UAR_MCP_M_INITIALIZE] = initialize_again,
	[UAR_MCP_M_PING] = mcp_answer_empty,
	[UAR_MCP_M_DISCOVER] = discover,
	[UAR_MCP_M_TOOLS_LIST] = mcp_list_tools,
	[UAR_MCP_M_TOOLS_CALL] = mcp_call_tool,
	[UAR_MCP_M_RESOURCES_LIST] = mcp_list_resources,
	[UAR_MCP_M_RESOURCES_TEMPLATES] = mcp_list_templates,
	[UAR_MCP_M_RESOURCES_READ] = mcp_read_resource,
	[UAR_MCP_M_PROMPTS_LIST] = mcp_list_prompts,
	[UAR_MCP_M_PROMPTS_GET] = mcp_get_prompt,
	[UAR_MCP_M_COMPLETE] = complete,
	[UAR_MCP_M_SUBSCRIBE] = mcp_subscribe,
	[UAR_MCP_M_UNSUBSCRIBE] = mcp_unsubscribe,
	[UAR_MCP_M_SET_LEVEL] = set_level,
	[UAR_MCP_M_LISTEN] = mcp_listen,
	[UAR_MCP_M_TASKS_GET] = mcp_get_task,
	[UAR_MCP_M_TASKS_UPDATE] = mcp_update_task,
	[UAR_MCP_M_TASKS_CANCEL] = mcp_cancel_task,
};

void mcp_dispatch(struct mcp_exchange *x)
{
	if (x->v.code)
		mcp_answer_error(x, x->v.status, x->v.code, x->v.text, x->v.data);
	else
		methods[x->v.method](x);
}
