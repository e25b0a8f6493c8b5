/* client_news.c - what a server tells without being asked. */
#include "mcp/client_int.h"

static struct uar_mcp_call *find_token(struct uar_mcp_client *c, const char *token)
{
	UAR_LIST_EACH (it, &c->calls) {
		struct uar_mcp_call *call = UAR_OWNER(it, struct uar_mcp_call, node);

		if (strcmp(call->token, token) == 0)
			return call;
	}
	return NULL;
}

static void take_progress(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	const struct uar_json *token = uar_json_get(m->params, UAR_STR("progressToken"));
	struct uar_mcp_call *call;
	char id[24] = "";

	if (token && token->kind == UAR_JSON_INT)
		snprintf(id, sizeof id, "%lld", (long long)token->i);
	call = find_token(c, id);
	if (!call)
		return;
	client_keep_waiting(call);
	call = find_token(c, id);
	if (call && call->events.progress)
		call->events.progress(call->events.ctx, m->params);
}

/* The server does not want to know any more. */
static void take_cancelled(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	const struct uar_json *id = uar_json_get(m->params, UAR_STR("requestId"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ID);

	if (id)
		uar_json_write(&b, id);
	if (b.n && !b.err)
		client_ask_cancelled(c, uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void take_log(const struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	const struct uar_json *data = uar_json_get(m->params, UAR_STR("data"));

	if (c->o.news.logged && data)
		c->o.news.logged(
			c->o.ctx,
			uar_json_str(uar_json_get(m->params, UAR_STR("level")), UAR_STR("info")),
			uar_str_utf8_prefix(data->text, UAR_LIMIT_MCP_DESCRIPTION));
}

void client_take_notification(struct uar_mcp_client *c, const struct uar_mcp_message *m)
{
	if (uar_str_is(m->method, "notifications/progress"))
		take_progress(c, m);
	else if (uar_str_is(m->method, "notifications/tools/list_changed"))
		client_list_again(c);
	else if (uar_str_is(m->method, "notifications/cancelled"))
		take_cancelled(c, m);
	else if (uar_str_is(m->method, "notifications/message"))
		take_log(c, m);
	else if (uar_str_is(m->method, "notifications/resources/updated"))
		client_watch_updated(c, uar_json_text(m->params, "uri"));
}
