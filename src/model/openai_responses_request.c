/* openai_responses_request.c - OpenAI's Responses: the request.
 *
 * Nothing is stored at the provider (store: false): the log is the only memory. */
#include "model/openai_int.h"

static void write_content(struct uar_jw *w, const struct uar_model_part *p)
{
	uar_jw_obj(w, NULL);
	if (p->kind == UAR_PART_TEXT) {
		uar_jw_cstr(w, "type", "input_text");
		uar_jw_str(w, "text", p->text);
	} else if (p->kind == UAR_PART_IMAGE) {
		uar_jw_cstr(w, "type", "input_image");
		uar_jw_cstr(w, "detail", "auto");
		uar_reply_write_url(w, "image_url", p);
	} else {
		uar_jw_cstr(w, "type", "input_file");
		if (p->id.n)
			uar_jw_str(w, "file_id", p->id);
		else
			uar_reply_write_url(w, p->text.n ? "file_data" : "file_url", p);
		if (p->name.n && p->text.n)
			uar_jw_str(w, "filename", p->name);
	}
	uar_jw_close(w);
}

static bool is_content(const struct uar_model_part *p)
{
	return p->kind == UAR_PART_TEXT || p->kind == UAR_PART_IMAGE || p->kind == UAR_PART_FILE;
}

static void write_message(struct uar_jw *w, const char *role, const struct uar_model_message *m)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "role", role);
	uar_jw_arr(w, "content");
	for (size_t i = 0; i < m->part_count; i++)
		if (is_content(&m->parts[i]))
			write_content(w, &m->parts[i]);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void write_text(struct uar_jw *w, const char *role, uar_str text)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "role", role);
	uar_jw_str(w, "content", text);
	uar_jw_close(w);
}

static void write_call(struct uar_jw *w, const struct uar_model_part *p)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "function_call");
	uar_jw_str(w, "call_id", p->id);
	uar_jw_str(w, "name", p->name);
	uar_jw_str(w, "arguments", p->text);
	uar_jw_close(w);
}

/* With images and files its output is a list of contents. */
static void write_result(struct uar_jw *w, const struct uar_model_message *m, size_t k)
{
	const struct uar_model_part *p = &m->parts[k];
	struct uar_model_part text = uar_model_text_part(p->text);
	bool alone = k + 1 == m->part_count || !is_content(&m->parts[k + 1]);

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "function_call_output");
	uar_jw_str(w, "call_id", p->id);
	if (alone) {
		uar_jw_str(w, "output", p->text);
	} else {
		uar_jw_arr(w, "output");
		write_content(w, &text);
		for (k++; k < m->part_count && is_content(&m->parts[k]); k++)
			write_content(w, &m->parts[k]);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* An answer is an item for each part, in its order. */
static void write_answer(struct uar_jw *w, const struct uar_model_message *m)
{
	for (size_t i = 0; i < m->part_count; i++) {
		const struct uar_model_part *p = &m->parts[i];

		if (p->kind == UAR_PART_TEXT && p->text.n)
			write_text(w, "assistant", p->text);
		else if (p->kind == UAR_PART_CALL)
			write_call(w, p);
		else if (p->kind == UAR_PART_OPAQUE &&
			 uar_str_is(p->name, uar_dialect_openai_responses.name))
			uar_jw_raw(w, NULL, p->text);
	}
}

static void write_item(struct uar_jw *w, const struct uar_model_message *m)
{
	switch (m->role) {
	case UAR_MODEL_SYSTEM: write_text(w, "developer", uar_model_text_of(m)); break;
	case UAR_MODEL_ASSISTANT: write_answer(w, m); break;
	case UAR_MODEL_USER:
		if (m->part_count == 1 && m->parts[0].kind == UAR_PART_TEXT)
			write_text(w, "user", m->parts[0].text);
		else
			write_message(w, "user", m);
		break;
	case UAR_MODEL_TOOL:
		for (size_t i = 0; i < m->part_count; i++)
			if (m->parts[i].kind == UAR_PART_RESULT)
				write_result(w, m, i);
		break;
	}
}

static void write_tools(struct uar_jw *w, const struct uar_model_request *r)
{
	uar_jw_arr(w, "tools");
	for (size_t i = 0; i < r->tool_count; i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "type", "function");
		uar_jw_str(w, "name", r->tools[i].name);
		uar_jw_str(w, "description", r->tools[i].description);
		uar_jw_raw(w, "parameters",
			   r->tools[i].parameters.n
				   ? r->tools[i].parameters
				   : UAR_STR("{\"type\":\"object\",\"properties\":{}}"));
		uar_jw_bool(w, "strict", false);
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
		uar_jw_str(w, "name", c->name);
		uar_jw_close(w);
	} else if (c->kind != UAR_CHOICE_AUTO) {
		uar_jw_cstr(w, "tool_choice", words[c->kind]);
	}
	if (c->one_at_a_time)
		uar_jw_bool(w, "parallel_tool_calls", false);
}

static void write_output(struct uar_jw *w, const struct uar_model_output *o)
{
	uar_jw_obj(w, "text");
	uar_jw_obj(w, "format");
	uar_jw_cstr(w, "type", "json_schema");
	uar_jw_str(w, "name", o->name.n ? o->name : UAR_STR("answer"));
	uar_jw_raw(w, "schema", o->schema);
	if (o->strict)
		uar_jw_bool(w, "strict", true);
	uar_jw_close(w);
	uar_jw_close(w);
}

/* Models that do not reason refuse to be asked for it. */
static void write_reasoning(struct uar_jw *w, const struct uar_model_request *r)
{
	bool asked = r->effort != UAR_EFFORT_DEFAULT;

	if (!asked && !r->reasons)
		return;
	uar_jw_obj(w, "reasoning");
	if (asked)
		uar_jw_cstr(w, "effort", uar_model_effort_names[r->effort]);
	if (r->effort != UAR_EFFORT_NONE)
		uar_jw_cstr(w, "summary", "auto");
	uar_jw_close(w);
	uar_jw_arr(w, "include");
	uar_jw_cstr(w, NULL, "reasoning.encrypted_content");
	uar_jw_close(w);
}

static void write_wishes(struct uar_jw *w, const struct uar_model_request *r)
{
	if (r->output.schema.n)
		write_output(w, &r->output);
	if (r->max_tokens > 0)
		uar_jw_int(w, "max_output_tokens", r->max_tokens);
	write_reasoning(w, r);
	if (r->cache_key.n)
		uar_jw_str(w, "prompt_cache_key", r->cache_key);
}

void uar_openai_write_responses(struct uar_jw *w, const struct uar_model_request *r, bool legacy)
{
	size_t first = 0;

	(void)legacy;
	uar_jw_str(w, "model", r->model);
	if (r->message_count && r->messages[0].role == UAR_MODEL_SYSTEM)
		uar_jw_str(w, "instructions", uar_model_text_of(&r->messages[first++]));
	uar_jw_arr(w, "input");
	for (size_t i = first; i < r->message_count; i++)
		write_item(w, &r->messages[i]);
	uar_jw_close(w);
	if (r->tool_count) {
		write_tools(w, r);
		write_choice(w, &r->tool_choice);
	}
	write_wishes(w, r);
	uar_jw_bool(w, "store", false);
	uar_jw_bool(w, "stream", true);
}
