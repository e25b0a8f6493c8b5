/* openai_chat_request.c - OpenAI's chat completions: the request.
 *
 * Members that nobody asked for are left out: servers that do not know them refuse them. */
#include "model/openai_int.h"

static const char *const roles[] = {
	[UAR_MODEL_SYSTEM] = "system",
	[UAR_MODEL_USER] = "user",
	[UAR_MODEL_ASSISTANT] = "assistant",
	[UAR_MODEL_TOOL] = "tool",
};

static void write_text(struct uar_jw *w, uar_str text)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "text");
	uar_jw_str(w, "text", text);
	uar_jw_close(w);
}

static void write_image(struct uar_jw *w, const struct uar_model_part *p)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "image_url");
	uar_jw_obj(w, "image_url");
	uar_reply_write_url(w, "url", p);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void write_file(struct uar_jw *w, const struct uar_model_part *p)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "file");
	uar_jw_obj(w, "file");
	if (p->id.n)
		uar_jw_str(w, "file_id", p->id);
	else
		uar_reply_write_url(w, "file_data", p);
	if (p->name.n && !p->id.n)
		uar_jw_str(w, "filename", p->name);
	uar_jw_close(w);
	uar_jw_close(w);
}

static bool is_content(const struct uar_model_part *p)
{
	return p->kind == UAR_PART_TEXT || p->kind == UAR_PART_IMAGE || p->kind == UAR_PART_FILE;
}

static void put_parts(struct uar_jw *w, const struct uar_model_message *m)
{
	for (size_t i = 0; i < m->part_count; i++) {
		const struct uar_model_part *p = &m->parts[i];

		if (p->kind == UAR_PART_TEXT && p->text.n)
			write_text(w, p->text);
		else if (p->kind == UAR_PART_IMAGE)
			write_image(w, p);
		else if (p->kind == UAR_PART_FILE)
			write_file(w, p);
	}
}

static void write_parts(struct uar_jw *w, const struct uar_model_message *m)
{
	uar_jw_arr(w, "content");
	put_parts(w, m);
	uar_jw_close(w);
}

/* One text is a string: not every server takes a list. A turn that only asks has no content:
 * servers tell null from an empty answer. */
static void write_content(struct uar_jw *w, const struct uar_model_message *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->part_count; i++)
		n += is_content(&m->parts[i]) &&
		     (m->parts[i].kind != UAR_PART_TEXT || m->parts[i].text.n);
	if (n == 0 && uar_model_find_part(m, UAR_PART_CALL))
		uar_jw_null(w, "content");
	else if (n > 1 || (n && !uar_model_text_of(m).n))
		write_parts(w, m);
	else
		uar_jw_str(w, "content", uar_model_text_of(m));
}

static void write_calls(struct uar_jw *w, const struct uar_model_message *m)
{
	if (!uar_model_find_part(m, UAR_PART_CALL))
		return;
	uar_jw_arr(w, "tool_calls");
	for (size_t i = 0; i < m->part_count; i++) {
		if (m->parts[i].kind != UAR_PART_CALL)
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "id", m->parts[i].id);
		uar_jw_cstr(w, "type", "function");
		uar_jw_obj(w, "function");
		uar_jw_str(w, "name", m->parts[i].name);
		uar_jw_str(w, "arguments", m->parts[i].text);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* Each result is a message of its own. */
static void write_results(struct uar_jw *w, const struct uar_model_message *m)
{
	for (size_t i = 0; i < m->part_count; i++) {
		if (m->parts[i].kind != UAR_PART_RESULT)
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "role", "tool");
		uar_jw_str(w, "tool_call_id", m->parts[i].id);
		uar_jw_str(w, "content", m->parts[i].text);
		uar_jw_close(w);
	}
}

static bool has_media(const struct uar_model_message *m)
{
	for (size_t i = 0; i < m->part_count; i++)
		if (is_content(&m->parts[i]))
			return true;
	return false;
}

/* A result is text here. What tools brought besides follows all results of the round, as if the
 * user had sent it: nothing may stand between them. */
static void write_media(struct uar_jw *w, const struct uar_model_message *first,
			const struct uar_model_message *end)
{
	bool open = false;

	for (const struct uar_model_message *m = first; m < end; m++) {
		uar_str name = m->part_count ? m->parts[0].name : UAR_STR("");
		struct uar_buf text = uar_buf_make(256);

		if (!has_media(m))
			continue;
		if (!open) {
			uar_jw_obj(w, NULL);
			uar_jw_cstr(w, "role", "user");
			uar_jw_arr(w, "content");
		}
		open = true;
		uar_buf_printf(&text, "What the tool %.*s brought:", UAR_FMT(name));
		write_text(w, text.err ? UAR_STR("What a tool brought:") : uar_buf_str(&text));
		put_parts(w, m);
		uar_buf_fini(&text);
	}
	if (open) {
		uar_jw_close(w);
		uar_jw_close(w);
	}
}

static void write_message(struct uar_jw *w, const struct uar_model_message *m)
{
	if (m->role == UAR_MODEL_TOOL) {
		write_results(w, m);
		return;
	}
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "role", roles[m->role]);
	write_content(w, m);
	write_calls(w, m);
	uar_jw_close(w);
}

static void write_tools(struct uar_jw *w, const struct uar_model_request *r)
{
	uar_jw_arr(w, "tools");
	for (size_t i = 0; i < r->tool_count; i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "type", "function");
		uar_jw_obj(w, "function");
		uar_jw_str(w, "name", r->tools[i].name);
		uar_jw_str(w, "description", r->tools[i].description);
		if (r->tools[i].parameters.n)
			uar_jw_raw(w, "parameters", r->tools[i].parameters);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void write_choice(struct uar_jw *w, const struct uar_model_tool_choice *c)
{
	static const char *const words[] = {
		[UAR_CHOICE_NONE] = "none", [UAR_CHOICE_ANY] = "required"
	};

	if (c->kind == UAR_CHOICE_TOOL) {
		uar_jw_obj(w, "tool_choice");
		uar_jw_cstr(w, "type", "function");
		uar_jw_obj(w, "function");
		uar_jw_str(w, "name", c->name);
		uar_jw_close(w);
		uar_jw_close(w);
	} else if (c->kind != UAR_CHOICE_AUTO) {
		uar_jw_cstr(w, "tool_choice", words[c->kind]);
	}
	if (c->one_at_a_time)
		uar_jw_bool(w, "parallel_tool_calls", false);
}

static void write_output(struct uar_jw *w, const struct uar_model_output *o)
{
	uar_jw_obj(w, "response_format");
	uar_jw_cstr(w, "type", "json_schema");
	uar_jw_obj(w, "json_schema");
	uar_jw_str(w, "name", o->name.n ? o->name : UAR_STR("answer"));
	uar_jw_raw(w, "schema", o->schema);
	if (o->strict)
		uar_jw_bool(w, "strict", true);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void write_wishes(struct uar_jw *w, const struct uar_model_request *r, bool legacy)
{
	if (r->output.schema.n)
		write_output(w, &r->output);
	if (r->max_tokens > 0)
		uar_jw_int(w, legacy ? "max_tokens" : "max_completion_tokens", r->max_tokens);
	if (r->effort != UAR_EFFORT_DEFAULT)
		uar_jw_cstr(w, "reasoning_effort", uar_model_effort_names[r->effort]);
	if (r->cache_key.n)
		uar_jw_str(w, "prompt_cache_key", r->cache_key);
}

void uar_openai_write_chat(struct uar_jw *w, const struct uar_model_request *r, bool legacy)
{
	size_t round = 0; /* where its results begin */

	uar_jw_str(w, "model", r->model);
	uar_jw_arr(w, "messages");
	for (size_t i = 0; i < r->message_count; i++) {
		write_message(w, &r->messages[i]);
		if (r->messages[i].role != UAR_MODEL_TOOL)
			round = i + 1;
		else if (i + 1 == r->message_count || r->messages[i + 1].role != UAR_MODEL_TOOL)
			write_media(w, &r->messages[round], &r->messages[i + 1]);
	}
	uar_jw_close(w);
	if (r->tool_count) { /* servers refuse an empty list */
		write_tools(w, r);
		write_choice(w, &r->tool_choice);
	}
	write_wishes(w, r, legacy);
	uar_jw_bool(w, "stream", true);
	uar_jw_obj(w, "stream_options");
	uar_jw_bool(w, "include_usage", true);
	uar_jw_close(w);
}
