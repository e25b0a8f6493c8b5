/* anthropic_request.c - Anthropic's Messages: the request.
 *
 * Roles alternate, so neighbours of one role become one message; what tools brought is said by
 * the user. Texts without a character are refused there and left out here. */
#include "base/base64.h"
#include "model/anthropic_int.h"

enum {
	DEFAULT_TOKENS = 8192, /* a limit must be given; no model of today has a lower one */
	ANSWER_TOKENS = 4096,  /* left for the answer when thinking has a budget */
	CACHE_MARKS = 4,       /* more are refused */
};

struct writer {
	struct uar_jw *w;
	const struct uar_model_request *r;
	int marks; /* of the cache, that are left */
	bool open; /* a message is */
	enum uar_model_role role;
};

static void close_mark(struct writer *t, bool cache)
{
	if (cache && t->marks-- > 0) {
		uar_jw_obj(t->w, "cache_control");
		uar_jw_cstr(t->w, "type", "ephemeral");
		uar_jw_close(t->w);
	}
	uar_jw_close(t->w);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void write_text(struct writer *t, const struct uar_model_part *p)
{
	uar_jw_obj(t->w, NULL);
	uar_jw_cstr(t->w, "type", "text");
	uar_jw_str(t->w, "text", p->text);
	close_mark(t, p->cache);
}

static void write_plain_text(struct writer *t, const struct uar_model_part *p)
{
	struct uar_arena scratch;
	uar_str text = UAR_STR("");

	uar_arena_init(&scratch, 0);
	if (uar_base64_decode(&scratch, p->text, &text))
		text = UAR_STR("");
	uar_jw_cstr(t->w, "type", "text");
	uar_jw_cstr(t->w, "media_type", "text/plain");
	uar_jw_str(t->w, "data", text);
	uar_arena_fini(&scratch);
}

static void write_source(struct writer *t, const struct uar_model_part *p)
{
	uar_jw_obj(t->w, "source");
	if (p->id.n) {
		uar_jw_cstr(t->w, "type", "file");
		uar_jw_str(t->w, "file_id", p->id);
	} else if (!p->text.n) {
		uar_jw_cstr(t->w, "type", "url");
		uar_jw_str(t->w, "url", p->url);
	} else if (uar_str_starts(p->media_type, UAR_STR("text/"))) {
		write_plain_text(t, p);
	} else {
		uar_jw_cstr(t->w, "type", "base64");
		uar_jw_str(t->w, "media_type", p->media_type);
		uar_jw_str(t->w, "data", p->text);
	}
	uar_jw_close(t->w);
}

static void write_media(struct writer *t, const struct uar_model_part *p)
{
	uar_jw_obj(t->w, NULL);
	uar_jw_cstr(t->w, "type", p->kind == UAR_PART_IMAGE ? "image" : "document");
	write_source(t, p);
	if (p->kind == UAR_PART_FILE && p->name.n)
		uar_jw_str(t->w, "title", p->name);
	close_mark(t, p->cache);
}

static void write_call(struct writer *t, const struct uar_model_part *p)
{
	uar_jw_obj(t->w, NULL);
	uar_jw_cstr(t->w, "type", "tool_use");
	uar_jw_str(t->w, "id", p->id);
	uar_jw_str(t->w, "name", p->name);
	uar_reply_write_object(t->w, "input", p->text);
	close_mark(t, p->cache);
}

/* What a tool brought besides its text is inside its result: nothing may stand between results. */
static void write_result(struct writer *t, const struct uar_model_part *p,
			 const struct uar_model_part *end)
{
	bool cache = p->cache;

	uar_jw_obj(t->w, NULL);
	uar_jw_cstr(t->w, "type", "tool_result");
	uar_jw_str(t->w, "tool_use_id", p->id);
	if (p + 1 == end) {
		uar_jw_str(t->w, "content", p->text);
	} else {
		uar_jw_arr(t->w, "content");
		for (const struct uar_model_part *m = p; m < end; m++) {
			struct uar_model_part one = *m;

			cache |= one.cache;
			one.cache = false;
			if (one.kind == UAR_PART_IMAGE || one.kind == UAR_PART_FILE)
				write_media(t, &one);
			else if (uar_str_trim(one.text).n)
				write_text(t, &one);
		}
		uar_jw_close(t->w);
	}
	if (p->failed)
		uar_jw_bool(t->w, "is_error", true);
	close_mark(t, cache);
}

/* Reasoning without a signature is refused, blocks of others mean nothing. */
static bool is_told(const struct uar_model_part *p)
{
	switch (p->kind) {
	case UAR_PART_TEXT: return uar_str_trim(p->text).n > 0;
	case UAR_PART_REASONING: return false;
	case UAR_PART_OPAQUE: return uar_str_is(p->name, uar_dialect_anthropic.name);
	case UAR_PART_IMAGE:
	case UAR_PART_FILE:
	case UAR_PART_CALL:
	case UAR_PART_RESULT: break;
	}
	return true;
}

static void write_part(struct writer *t, const struct uar_model_part *p)
{
	switch (p->kind) {
	case UAR_PART_TEXT: write_text(t, p); break;
	case UAR_PART_IMAGE:
	case UAR_PART_FILE: write_media(t, p); break;
	case UAR_PART_CALL: write_call(t, p); break;
	case UAR_PART_RESULT: break; /* write_results */
	case UAR_PART_OPAQUE: uar_jw_raw(t->w, NULL, p->text); break;
	case UAR_PART_REASONING: break;
	}
}

/* --- messages ------------------------------------------------------------------------------- */

static void close_message(struct writer *t)
{
	if (!t->open)
		return;
	uar_jw_close(t->w);
	uar_jw_close(t->w);
	t->open = false;
}

static void open_message(struct writer *t, enum uar_model_role role)
{
	if (role == UAR_MODEL_TOOL)
		role = UAR_MODEL_USER;
	if (t->open && t->role == role)
		return;
	close_message(t);
	t->open = true;
	t->role = role;
	uar_jw_obj(t->w, NULL);
	uar_jw_cstr(t->w, "role", role == UAR_MODEL_ASSISTANT ? "assistant" : "user");
	uar_jw_arr(t->w, "content");
}

/* The end of what belongs to a result. */
static const struct uar_model_part *end_of_result(const struct uar_model_message *m, size_t k)
{
	do
		k++;
	while (k < m->part_count && m->parts[k].kind != UAR_PART_RESULT);
	return m->parts + k;
}

static void write_results(struct writer *t, const struct uar_model_message *m)
{
	for (size_t k = 0; k < m->part_count; k++)
		if (m->parts[k].kind == UAR_PART_RESULT) {
			open_message(t, m->role);
			write_result(t, &m->parts[k], end_of_result(m, k));
		}
}

static void write_messages(struct writer *t)
{
	uar_jw_arr(t->w, "messages");
	for (size_t i = 0; i < t->r->message_count; i++) {
		const struct uar_model_message *m = &t->r->messages[i];
		size_t n = m->role == UAR_MODEL_SYSTEM || m->role == UAR_MODEL_TOOL ? 0
										    : m->part_count;

		if (m->role == UAR_MODEL_TOOL)
			write_results(t, m);
		for (size_t k = 0; k < n; k++) {
			if (!is_told(&m->parts[k]))
				continue;
			open_message(t, m->role);
			write_part(t, &m->parts[k]);
		}
	}
	close_message(t);
	uar_jw_close(t->w);
}

static void write_system(struct writer *t)
{
	bool open = false;

	for (size_t i = 0; i < t->r->message_count; i++) {
		const struct uar_model_message *m = &t->r->messages[i];

		for (size_t k = 0; k < m->part_count && m->role == UAR_MODEL_SYSTEM; k++) {
			if (m->parts[k].kind != UAR_PART_TEXT || !is_told(&m->parts[k]))
				continue;
			if (!open)
				uar_jw_arr(t->w, "system");
			open = true;
			write_text(t, &m->parts[k]);
		}
	}
	if (open)
		uar_jw_close(t->w);
}

/* --- tools and wishes ----------------------------------------------------------------------- */

static uar_str output_name(const struct uar_model_output *o)
{
	return o->name.n ? o->name : UAR_STR("answer");
}

static void write_tool(struct uar_jw *w, uar_str name, uar_str description, uar_str schema)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "name", name);
	if (description.n)
		uar_jw_str(w, "description", description);
	uar_jw_raw(w, "input_schema", schema.n ? schema : UAR_STR("{\"type\":\"object\"}"));
	uar_jw_close(w);
}

static void write_tools(struct writer *t, bool by_tool)
{
	const struct uar_model_request *r = t->r;

	if (!r->tool_count && !by_tool)
		return;
	uar_jw_arr(t->w, "tools");
	for (size_t i = 0; i < r->tool_count; i++)
		write_tool(t->w, r->tools[i].name, r->tools[i].description, r->tools[i].parameters);
	if (by_tool)
		write_tool(t->w, output_name(&r->output), UAR_STR("Gives the answer."),
			   r->output.schema);
	uar_jw_close(t->w);
}

/* The answer is the input of a tool: the only one, or one of those that the model must use. */
static void write_forced_choice(struct writer *t)
{
	bool only = !t->r->tool_count;

	uar_jw_cstr(t->w, "type", only ? "tool" : "any");
	if (only)
		uar_jw_str(t->w, "name", output_name(&t->r->output));
}

static void write_choice(struct writer *t, bool by_tool)
{
	static const char *const words[] = { "auto", "none", "any", "tool" };
	const struct uar_model_tool_choice *c = &t->r->tool_choice;
	bool wished = t->r->tool_count && (c->kind != UAR_CHOICE_AUTO || c->one_at_a_time);

	if (!by_tool && !wished)
		return;
	uar_jw_obj(t->w, "tool_choice");
	if (by_tool)
		write_forced_choice(t);
	else
		uar_jw_cstr(t->w, "type", words[c->kind]);
	if (!by_tool && c->kind == UAR_CHOICE_TOOL)
		uar_jw_str(t->w, "name", c->name);
	if (c->one_at_a_time && c->kind != UAR_CHOICE_NONE)
		uar_jw_bool(t->w, "disable_parallel_tool_use", true);
	uar_jw_close(t->w);
}

static void write_thinking(struct writer *t)
{
	const struct uar_model_request *r = t->r;

	if (r->effort == UAR_EFFORT_DEFAULT && r->thinking_tokens <= 0)
		return;
	uar_jw_obj(t->w, "thinking");
	if (r->effort == UAR_EFFORT_NONE) {
		uar_jw_cstr(t->w, "type", "disabled");
	} else if (r->thinking_tokens > 0) {
		uar_jw_cstr(t->w, "type", "enabled");
		uar_jw_int(t->w, "budget_tokens", r->thinking_tokens);
	} else {
		uar_jw_cstr(t->w, "type", "adaptive");
	}
	uar_jw_close(t->w);
}

static void write_output(struct writer *t, bool by_tool)
{
	static const char *const efforts[UAR_EFFORT_COUNT] = {
		[UAR_EFFORT_MINIMAL] = "low",	[UAR_EFFORT_LOW] = "low",
		[UAR_EFFORT_MEDIUM] = "medium", [UAR_EFFORT_HIGH] = "high",
		[UAR_EFFORT_MAX] = "max",
	};
	const struct uar_model_request *r = t->r;
	const char *effort = r->thinking_tokens > 0 ? NULL : efforts[r->effort];
	bool schema = r->output.schema.n && !by_tool;

	if (!effort && !schema)
		return;
	uar_jw_obj(t->w, "output_config");
	if (effort)
		uar_jw_cstr(t->w, "effort", effort);
	if (schema) {
		uar_jw_obj(t->w, "format");
		uar_jw_cstr(t->w, "type", "json_schema");
		uar_jw_raw(t->w, "schema", r->output.schema);
		uar_jw_close(t->w);
	}
	uar_jw_close(t->w);
}

static int64_t max_tokens_of(const struct uar_model_request *r)
{
	int64_t n = r->max_tokens > 0 ? r->max_tokens : DEFAULT_TOKENS;

	return r->thinking_tokens > 0 && n <= r->thinking_tokens
		       ? r->thinking_tokens + ANSWER_TOKENS
		       : n;
}

void uar_anthropic_write(struct uar_jw *w, const struct uar_model_request *r, bool legacy)
{
	struct writer t = { .w = w, .r = r, .marks = CACHE_MARKS };
	bool by_tool = r->output.schema.n && r->output.by_tool;

	(void)legacy;
	uar_jw_str(w, "model", r->model);
	uar_jw_int(w, "max_tokens", max_tokens_of(r));
	write_system(&t);
	write_messages(&t);
	write_tools(&t, by_tool);
	write_choice(&t, by_tool);
	write_thinking(&t);
	write_output(&t, by_tool);
	uar_jw_bool(w, "stream", true);
}
