/* client.c - the list of a client's tools. */
#include "tool/client.h"

#include "base/alloc.h"
#include "json/jw.h"
#include "json/limits.h"

struct source {
	struct uar_tools base; /* first */
	struct uar_arena arena;
	struct uar_tool *at;
	size_t count;
};

static struct source *source_of(struct uar_tools *t)
{
	return (struct source *)(void *)t;
}

static void destroy(struct uar_tools *t)
{
	struct source *s = source_of(t);

	uar_arena_fini(&s->arena);
	uar_free(s);
}

static const struct uar_tool *at(struct uar_tools *t, size_t index)
{
	const struct source *s = source_of(t);

	return index < s->count ? &s->at[index] : NULL;
}

static uar_err start(struct uar_tools *t, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	(void)t, (void)r, (void)events, (void)out;
	return uar_error_set(error, UAR_EINTERNAL, "the client executes it");
}

static void cancel(struct uar_tools *t, struct uar_tool_call *call)
{
	(void)t, (void)call;
}

static bool withdraw(struct uar_tools *t, struct uar_tool_call *call)
{
	(void)t, (void)call;
	return true;
}

static const struct uar_tools_ops client_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.start = start,
	.cancel = cancel,
	.withdraw = withdraw,
};

static uar_err add(struct source *s, const struct uar_json *j)
{
	const struct uar_json *parameters = uar_json_get(j, UAR_STR("parameters"));
	struct uar_tool *t = &s->at[s->count];
	struct uar_buf schema = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_str name = uar_json_text(j, "name");

	if (!name.n)
		return UAR_OK;
	if (parameters && parameters->kind == UAR_JSON_OBJECT)
		uar_json_write(&schema, parameters);
	else
		uar_buf_add_str(&schema, UAR_STR("{\"type\":\"object\"}"));
	*t = (struct uar_tool){
		.tool_id = uar_arena_printf(&s->arena, "client:%.*s", UAR_FMT(name)),
		.name = uar_arena_str(&s->arena, name),
		.description = uar_arena_str(&s->arena, uar_json_text(j, "description")),
		.version = UAR_STR("1"),
		.transport = UAR_STR("client"),
		.input_schema =
			schema.err ? UAR_STR_NONE : uar_arena_str(&s->arena, uar_buf_str(&schema)),
		.tags = UAR_STR("[]"),
		.runtime_owner = UAR_STR("client"),
		.effect = UAR_TOOL_READ_ONLY, /* nothing is done here, so it may be done again */
		.by = UAR_TOOL_BY_CLIENT,
	};
	uar_buf_fini(&schema);
	s->count++;
	return t->tool_id.p && t->name.p && t->description.p && t->input_schema.p ? UAR_OK
										  : UAR_ENOMEM;
}

uar_err uar_client_tools_create(const struct uar_json *list, struct uar_tools **out)
{
	struct source *s = uar_zalloc(sizeof *s);
	uar_err e = UAR_OK;

	if (!s)
		return UAR_ENOMEM;
	s->base.ops = &client_ops;
	uar_arena_init(&s->arena, 0);
	s->at = uar_arena_alloc(&s->arena, (list->count + 1) * sizeof *s->at);
	if (!s->at)
		e = UAR_ENOMEM;
	for (const struct uar_json *j = uar_json_first(list); j && !e; j = j->next)
		e = add(s, j);
	if (e) {
		destroy(&s->base);
		return e;
	}
	*out = &s->base;
	return UAR_OK;
}
