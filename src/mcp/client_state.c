/* client_state.c - what is known of a connection and of the server behind it. */
#include "mcp/client_int.h"

const struct uar_mcp_tool *uar_mcp_client_tool(const struct uar_mcp_client *c, size_t index)
{
	return uar_mcp_toolset_at(c->tools, index);
}

bool uar_mcp_client_ready(const struct uar_mcp_client *c, uar_str *out_reason)
{
	*out_reason = uar_buf_str(&c->reason);
	return c->tools != NULL;
}

bool uar_mcp_client_failed(const struct uar_mcp_client *c)
{
	return !c->tools && c->failures && c->state != STATE_AUTHORIZING;
}

uar_str uar_mcp_client_version(const struct uar_mcp_client *c)
{
	return uar_buf_str(&c->version);
}

uar_str uar_mcp_client_errors(const struct uar_mcp_client *c)
{
	return c->link ? c->link->ops->errors(c->link) : UAR_STR_NONE;
}

bool uar_mcp_client_offers(const struct uar_mcp_client *c, const char *capability)
{
	const struct uar_json *j = NULL;
	uar_str rest = uar_str_c(capability);
	struct uar_arena arena;
	bool offers;

	uar_arena_init(&arena, 0);
	if (uar_json_parse(uar_buf_str(&c->caps), NULL, &arena, &j, NULL))
		j = NULL;
	while (j && rest.n)
		j = uar_json_get(j, uar_str_cut(rest, '/', &rest));
	offers = j && uar_json_bool(j, true);
	uar_arena_fini(&arena);
	return offers;
}
