/* tools.c - what a server says about its tools, kept as it is as far as it is usable. */
#include "mcp/tools.h"

#include "base/alloc.h"
#include "mcp/param_header.h"

struct uar_mcp_toolset {
	struct uar_arena arena;
	size_t count;
	struct uar_mcp_tool at[UAR_LIMIT_MCP_TOOLS];
};

struct uar_mcp_toolset *uar_mcp_toolset_create(void)
{
	struct uar_mcp_toolset *t = uar_zalloc(sizeof *t);

	if (t)
		uar_arena_init(&t->arena, 0);
	return t;
}

void uar_mcp_toolset_destroy(struct uar_mcp_toolset *t)
{
	if (!t)
		return;
	uar_arena_fini(&t->arena);
	uar_free(t);
}

static bool is_known(const struct uar_mcp_toolset *t, uar_str name)
{
	for (size_t i = 0; i < t->count; i++)
		if (uar_str_eq(t->at[i].name, name))
			return true;
	return false;
}

/* Schemas keep every member; one that is too long or no object is none. */
static uar_str schema_of(const struct uar_json *tool, const char *member)
{
	const struct uar_json *j = uar_json_get(tool, uar_str_c(member));

	return j && j->kind == UAR_JSON_OBJECT && j->text.n <= UAR_LIMIT_MCP_SCHEMA ? j->text
										    : UAR_STR_NONE;
}

static bool is_usable(const struct uar_mcp_toolset *t, const struct uar_json *tool, bool headers)
{
	uar_str name = uar_json_text(tool, "name");

	return name.n && name.n <= UAR_LIMIT_MCP_TOOL_NAME && uar_str_is_visible(name) &&
	       schema_of(tool, "inputSchema").n && !is_known(t, name) &&
	       (!headers ||
		uar_mcp_param_headers_valid(uar_json_get(tool, UAR_STR("inputSchema"))));
}

static uar_err add(struct uar_mcp_toolset *t, const struct uar_json *j)
{
	struct uar_mcp_tool *tool = &t->at[t->count];
	const struct uar_json *hints = uar_json_get(j, UAR_STR("annotations"));
	uar_str *const all[] = { &tool->name, &tool->title, &tool->description, &tool->input_schema,
				 &tool->output_schema };

	*tool = (struct uar_mcp_tool){
		.name = uar_json_text(j, "name"),
		.title = uar_json_text(j, "title"),
		.description = uar_str_utf8_prefix(uar_json_text(j, "description"),
						   UAR_LIMIT_MCP_DESCRIPTION),
		.input_schema = schema_of(j, "inputSchema"),
		.output_schema = schema_of(j, "outputSchema"),
		.read_only_hint =
			uar_json_bool(uar_json_get(hints, UAR_STR("readOnlyHint")), false),
		.destructive_hint =
			uar_json_bool(uar_json_get(hints, UAR_STR("destructiveHint")), true),
		.idempotent_hint =
			uar_json_bool(uar_json_get(hints, UAR_STR("idempotentHint")), false),
	};
	if (!uar_arena_strs(&t->arena, all, ARRAY_LEN(all)))
		return UAR_ENOMEM;
	t->count++;
	return UAR_OK;
}

uar_err uar_mcp_toolset_add(struct uar_mcp_toolset *t, const struct uar_json *page, bool headers)
{
	uar_err e = UAR_OK;

	if (!page || page->kind != UAR_JSON_ARRAY)
		return UAR_OK;
	for (const struct uar_json *j = page->first; j && !e; j = j->next)
		if (t->count < UAR_LIMIT_MCP_TOOLS && is_usable(t, j, headers))
			e = add(t, j);
	return e;
}

const struct uar_mcp_tool *uar_mcp_toolset_find(const struct uar_mcp_toolset *t, uar_str name)
{
	for (size_t i = 0; t && i < t->count; i++)
		if (uar_str_eq(t->at[i].name, name))
			return &t->at[i];
	return NULL;
}

const struct uar_mcp_tool *uar_mcp_toolset_at(const struct uar_mcp_toolset *t, size_t index)
{
	return t && index < t->count ? &t->at[index] : NULL;
}
