/* client_input.c - earlier messages that a client sends with its run become part of the prompt. */
#include "work/client_input.h"

#include "tool/client.h"
#include "tool/registry.h"
#include "work/limits.h"
#include "work/toolset.h"

const struct uar_json *rt_inputs(uar_str inputs, struct uar_arena *arena)
{
	const struct uar_json *j = NULL;

	return !inputs.n || uar_json_parse(inputs, NULL, arena, &j, NULL) ? NULL : j;
}

static enum uar_model_role role_of(const struct uar_json *message)
{
	static const char *const names[] = { [UAR_MODEL_SYSTEM] = "system",
					     [UAR_MODEL_USER] = "user",
					     [UAR_MODEL_ASSISTANT] = "assistant",
					     [UAR_MODEL_TOOL] = "tool" };
	uar_str role = uar_json_text(message, "role");

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_is(role, names[i]))
			return (enum uar_model_role)i;
	return UAR_MODEL_USER;
}

/* "image/png", perhaps with parameters behind it. */
static bool is_media_type(uar_str s)
{
	uar_str rest, kind = uar_str_cut(s, '/', &rest);

	if (!kind.n || !rest.n || s.n > UAR_LIMIT_MEDIA_TYPE)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return true;
}

static bool is_base64(uar_str s)
{
	size_t n = s.n;

	while (n && s.n - n < 2 && s.p[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i++) {
		char c = s.p[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      c == '+' || c == '/'))
			return false;
	}
	return s.n && s.n % 4 == 0;
}

static const char *wrong_content(const struct uar_json *a, const char **member)
{
	uar_str data = uar_json_text(a, "data"), url = uar_json_text(a, "url");
	uar_str ref = uar_json_text(a, "ref");

	*member = "";
	if ((data.n != 0) + (url.n != 0) + (ref.n != 0) != 1)
		return "it has either data (base64), a url, or the ref of an upload";
	*member = data.n ? "/data" : "/url"; /* a ref is judged when its bytes are read */
	if (data.n && !is_base64(data))
		return "the data is no base64 with its padding";
	if (url.n && !uar_str_starts(url, UAR_STR("https://")) &&
	    !uar_str_starts(url, UAR_STR("http://")))
		return "the address begins with http:// or https://; send what is elsewhere as "
		       "data";
	return NULL;
}

/* What is wrong with one, and with which member; NULL: nothing. */
static const char *wrong_with(const struct uar_json *a, const char **member)
{
	uar_str type = uar_json_text(a, "type"), media = uar_json_text(a, "media_type");
	bool image = uar_str_is(type, "image");

	*member = "/type";
	if (!image && !uar_str_is(type, "file"))
		return "an attachment is of the type \"image\" or \"file\"";
	*member = "/media_type";
	if ((media.n || uar_json_text(a, "data").n || uar_json_text(a, "ref").n) &&
	    !is_media_type(media))
		return "its media type is missing or none, as image/png is one";
	if (image && media.n && !uar_str_starts(media, UAR_STR("image/")))
		return "an image has a media type image/...; send anything else as a file";
	return wrong_content(a, member);
}

uar_err rt_attachments_check(const struct uar_json *inputs, const char *root,
			     struct uar_error *error)
{
	const struct uar_json *list = uar_json_get(inputs, UAR_STR("attachments"));
	const char *why = NULL, *member = "";
	size_t i = 0;

	if (!list)
		return UAR_OK;
	if (list->kind != UAR_JSON_ARRAY || list->count > UAR_LIMIT_ATTACHMENTS) {
		uar_error_where(error, "%s/attachments", root);
		return uar_error_set(error, UAR_EINVALID, "attachments are a list of at most %d",
				     UAR_LIMIT_ATTACHMENTS);
	}
	for (const struct uar_json *a = uar_json_at(list, 0); a && !why; a = a->next, i++) {
		why = a->kind == UAR_JSON_OBJECT ? wrong_with(a, &member)
						 : "an attachment is an object";
		if (why) {
			uar_error_where(error, "%s/attachments/%zu%s", root, i, member);
			return uar_error_set(error, UAR_EINVALID, "%s", why);
		}
	}
	return UAR_OK;
}

void rt_prompt_attach(const struct uar_json *inputs, struct prompt *out)
{
	const struct uar_json *list = uar_json_get(inputs, UAR_STR("attachments"));

	for (const struct uar_json *a = uar_json_at(list, 0); a; a = a->next) {
		struct uar_model_part part = {
			.kind = uar_str_is(uar_json_text(a, "type"), "image") ? UAR_PART_IMAGE
									      : UAR_PART_FILE,
			.text = uar_json_text(a, "data"),
			.url = uar_json_text(a, "url"),
			.name = uar_json_text(a, "name"),
			.media_type = uar_json_text(a, "media_type"),
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
				       .text = uar_json_text(message, "text"),
				       .id = uar_json_text(message, "call_id") };

	rt_prompt_begin(out, role);
	if (part.text.n || role == UAR_MODEL_TOOL || !calls)
		rt_prompt_add(out, &part);
	rt_prompt_attach(message, out);
	for (const struct uar_json *c = calls && calls->count ? calls->first : NULL; c;
	     c = c->next) {
		part = (struct uar_model_part){ .kind = UAR_PART_CALL,
						.id = uar_json_text(c, "id"),
						.name = uar_json_text(c, "name"),
						.text = uar_json_text(c, "arguments") };
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
	uar_str choice = uar_json_text(client, "choice");

	if (!choice.n)
		return (struct uar_model_tool_choice){ .kind = UAR_CHOICE_AUTO };
	if (uar_str_is(choice, "*"))
		return (struct uar_model_tool_choice){ .kind = UAR_CHOICE_ANY };
	return (struct uar_model_tool_choice){ .kind = UAR_CHOICE_TOOL, .name = choice };
}
