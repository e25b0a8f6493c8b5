/* mcp_methods.c - which method is meant, and those that are answered at once. */
#include "gate/mcp_int.h"

uar_str mcp_negotiate(uar_str asked)
{
	return uar_mcp_is_legacy_version(asked) ? asked : UAR_STR(UAR_MCP_LEGACY);
}

static void put_capability(struct uar_jw *w, const char *name)
{
	uar_jw_obj(w, name);
	uar_jw_close(w);
}

static void put_capabilities(struct uar_jw *w, bool legacy)
{
	uar_jw_obj(w, "capabilities");
	put_capability(w, "tools");
	put_capability(w, "resources");
	put_capability(w, "prompts");
	put_capability(w, "completions");
	if (legacy)
		put_capability(w, "logging");
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

static void answer_empty(struct mcp_exchange *x)
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
	struct uar_jw w = mcp_result_begin(x, &b);

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

/* --- a stream of the modern era that says what changes -------------------------------------- */

struct listener {
	struct gate_stream base;
};

static void drop_listener(struct gate_stream *base)
{
	gate_stream_forget(base);
	uar_free(UAR_OWNER(base, struct listener, base));
}

static void listener_closed(void *ctx)
{
	drop_listener(ctx);
}

static uar_err write_acknowledged(const struct mcp_exchange *x, struct uar_buf *out)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "notifications"); /* lists and runs change: nothing tells of it so far */
	uar_jw_close(&w);
	uar_jw_obj(&w, "_meta");
	uar_jw_raw(&w, UAR_MCP_META "subscriptionId", x->m.id);
	uar_jw_close(&w);
	uar_jw_close(&w);
	out->err = uar_jw_end(&w);
	uar_buf_add_str(out, UAR_STR("event: message\ndata: "));
	if (!out->err)
		out->err = uar_mcp_write_notification(
			out, UAR_STR("notifications/subscriptions/acknowledged"), uar_buf_str(&b));
	uar_buf_add_str(out, UAR_STR("\n\n"));
	uar_buf_fini(&b);
	return out->err;
}

static void listen_for_changes(struct mcp_exchange *x)
{
	struct listener *l = uar_zalloc(sizeof *l);
	struct uar_http_stream_events events = { NULL, listener_closed, l };
	struct uar_buf b = uar_buf_make(16384);
	struct uar_frame *frame = NULL;
	uar_err e = l ? write_acknowledged(x, &b) : UAR_ENOMEM;

	if (!e) {
		frame = uar_frame_create(uar_buf_str(&b));
		uar_list_init(&l->base.node);
		l->base.drop = drop_listener;
		e = frame ? gate_stream_open(&l->base, x->c, &events) : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	if (e) {
		uar_free(l);
		mcp_answer_problem(x, e, NULL);
	} else if (uar_http_stream_send(l->base.http, frame)) {
		uar_http_stream_cut(l->base.http);
		drop_listener(&l->base);
	}
	uar_frame_unref(frame);
}

/* --- the table ------------------------------------------------------------------------------ */

typedef void method_fn(struct mcp_exchange *x);

static method_fn *const methods[UAR_MCP_M_COUNT] = {
	[UAR_MCP_M_INITIALIZE] = initialize_again,
	[UAR_MCP_M_PING] = answer_empty,
	[UAR_MCP_M_DISCOVER] = discover,
	[UAR_MCP_M_TOOLS_LIST] = mcp_list_tools,
	[UAR_MCP_M_TOOLS_CALL] = mcp_call_tool,
	[UAR_MCP_M_RESOURCES_LIST] = mcp_list_resources,
	[UAR_MCP_M_RESOURCES_TEMPLATES] = mcp_list_templates,
	[UAR_MCP_M_RESOURCES_READ] = mcp_read_resource,
	[UAR_MCP_M_PROMPTS_LIST] = mcp_list_prompts,
	[UAR_MCP_M_PROMPTS_GET] = mcp_get_prompt,
	[UAR_MCP_M_COMPLETE] = complete,
	[UAR_MCP_M_SET_LEVEL] = answer_empty,
	[UAR_MCP_M_LISTEN] = listen_for_changes,
};

void mcp_dispatch(struct mcp_exchange *x)
{
	if (x->v.code)
		mcp_answer_error(x, x->v.status, x->v.code, x->v.text, x->v.data);
	else
		methods[x->v.method](x);
}
