/* mcp_extra.c - what a server offers besides tools, as tools: its resources and prompts are listed
 * and read by them. Their names begin with "uar.", so that policies can name them. */
#include "tool/mcp_extra.h"

#include "mcp/client.h"

#define CURSOR                                                                                     \
	"{\"type\":\"object\",\"properties\":{\"cursor\":{\"type\":\"string\",\"description\":"    \
	"\"nextCursor of the page before\"}},\"additionalProperties\":false}"

static const struct uar_mcp_extra extras[] = {
	{ "uar.list_resources", "resources", "resources/list", NULL,
	  "Lists the resources of this MCP server.", CURSOR },
	{ "uar.list_resource_templates", "resources", "resources/templates/list", NULL,
	  "Lists the templates of addresses of this MCP server's resources.", CURSOR },
	{ "uar.read_resource", "resources", "resources/read", "uri",
	  "Reads a resource of this MCP server.",
	  "{\"type\":\"object\",\"properties\":{\"uri\":{\"type\":\"string\",\"minLength\":1}},"
	  "\"required\":[\"uri\"],\"additionalProperties\":false}" },
	{ "uar.watch_resource", "resources/subscribe", NULL, NULL,
	  "Waits until a resource of this MCP server changes, and reads it then. Each change is "
	  "shown while it is waited for.",
	  "{\"type\":\"object\",\"properties\":{\"uri\":{\"type\":\"string\",\"minLength\":1},"
	  "\"changes\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":1,"
	  "\"description\":\"so many are waited for\"},"
	  "\"seconds\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":3000,\"default\":300,"
	  "\"description\":\"so long\"}},\"required\":[\"uri\"],\"additionalProperties\":false}" },
	{ "uar.list_prompts", "prompts", "prompts/list", NULL,
	  "Lists the prompts of this MCP server.", CURSOR },
	{ "uar.get_prompt", "prompts", "prompts/get", "name",
	  "Gets a prompt of this MCP server, filled with arguments.",
	  "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1},"
	  "\"arguments\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}},"
	  "\"required\":[\"name\"],\"additionalProperties\":false}" },
};

const struct uar_mcp_extra *uar_mcp_extra_at(const struct uar_mcp_client *c, size_t index)
{
	for (size_t i = 0; i < ARRAY_LEN(extras); i++)
		if (uar_mcp_client_offers(c, extras[i].capability) && !index--)
			return &extras[i];
	return NULL;
}

const struct uar_mcp_extra *uar_mcp_extra_find(uar_str name)
{
	for (size_t i = 0; i < ARRAY_LEN(extras); i++)
		if (uar_str_is(name, extras[i].name))
			return &extras[i];
	return NULL;
}
