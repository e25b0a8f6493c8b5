/* client_input.c - earlier messages that a client sends with its run become part of the prompt. */
#include "work/client_input.h"

#include "tool/client.h"
#include "tool/registry.h"
#include "work/toolset.h"

const struct uar_json *rt_inputs(uar_str inputs, struct uar_arena *arena)
{
	const struct uar_json *j = NULL;

	return !inputs.n || uar_json_parse(inputs, NULL, arena, &j, NULL) ? NULL : j;
}

static uar_str text_member(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

static enum uar_model_role role_of(const struct uar_json *message)
{
	static const char *const names[] = { [UAR_MODEL_SYSTEM] = "system",
					     [UAR_MODEL_USER] = "user",
					     [UAR_MODEL_ASSISTANT] = "assistant",
					     [UAR_MODEL_TOOL] = "tool" };
	uar_str role = text_member(message, "role");

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_is(role, names[i]))
			return (enum uar_model_role)i;
	return UAR_MODEL_USER;
}

void rt_prompt_attach(const struct uar_json *inputs, struct prompt *out)
{
	const struct uar_json *list = uar_json_get(inputs, UAR_STR("attachments"));

	for (const struct uar_json *a = uar_json_at(list, 0); a; a = a->next) {
		struct uar_model_part part = {
			.kind = uar_str_is(text_member(a, "type"), "image") ? UAR_PART_IMAGE
									    : UAR_PART_FILE,
			.text = text_member(a, "data"),
			.url = text_member(a, "url"),
			.name = text_member(a, "name"),
			.media_type = text_member(a, "media_type"),
		};

		rt_prompt_add(out, &part);
	}
}

static void add_message(const struct uar_json *message, struct prompt *out)
{
	const struct uar_json *calls = uar_json_get(message, UAR_STR("calls"));
	enum uar_model_role role = role_of(message);
	struct uar_model_part part = { .kind = role == UAR_MODEL_TOOL ? UAR_PART_RESULT
								      : UAR_PART_TEXT,
				       .text = text_member(message, "text"),
				       .id = text_member(message, "call_id") };

	rt_prompt_begin(out, role);
	if (part.text.n || role == UAR_MODEL_TOOL || !calls)
		rt_prompt_add(out, &part);
	rt_prompt_attach(message, out);
	for (const struct uar_json *c = calls && calls->count ? calls->first : NULL; c;
	     c = c->next) {
		part = (struct uar_model_part){ .kind = UAR_PART_CALL,
						.id = text_member(c, "id"),
						.name = text_member(c, "name"),
						.text = text_member(c, "arguments") };
		rt_prompt_add(out, &part);
	}
}

void rt_client_messages(const struct uar_json *client, const char *key, struct prompt *out)
{
	const struct uar_json *list = uar_json_get(client, uar_str_c(key));

	for (const struct uar_json *m = list && list->count ? list->first : NULL; m; m = m->next)
		add_message(m, out);
}

/* --- tools -------------------------------------------------------------------------------- */

uar_err rt_client_tools(const struct live_run *r, const struct uar_json *client,
			struct uar_tools **out)
{
	const struct uar_json *list = uar_json_get(client, UAR_STR("tools"));
	struct uar_tools *source = NULL, *registry = NULL;
	uar_err e;

	if (!list || list->kind != UAR_JSON_ARRAY || !list->count)
		return UAR_OK;
	e = uar_tool_registry_create(rt_sched(rt_engine(r)), rt_toolset_of(r).registry, &registry);
	if (!e)
		e = uar_client_tools_create(list, &source);
	if (!e)
		e = uar_tool_registry_add(registry, source, NULL);
	if (!e) {
		*out = registry;
		return UAR_OK;
	}
	uar_tools_destroy(source);
	uar_tools_destroy(registry);
	return e;
}

struct uar_model_tool_choice rt_client_choice(const struct uar_json *client)
{
	uar_str choice = text_member(client, "choice");

	if (!choice.n)
		return (struct uar_model_tool_choice){ .kind = UAR_CHOICE_AUTO };
	if (uar_str_is(choice, "*"))
		return (struct uar_model_tool_choice){ .kind = UAR_CHOICE_ANY };
	return (struct uar_model_tool_choice){ .kind = UAR_CHOICE_TOOL, .name = choice };
}
