/* openai_input.c - reads the bodies of chat completions and responses.
 *
 * Settings that belong to the agent (temperature, seed, ...) are passed over, as unknown
 * members are. What would change the meaning of the answer is refused by name. */
#include "proto/openai.h"

#include "event/client.h"
#include "json/jw.h"
#include "json/limits.h"
#include "proto/attachment.h"
#include "proto/client_tool.h"

struct reading {
	struct uar_arena *arena;
	struct uar_openai_input *out;
	struct uar_error *error;
	struct uar_buf before, after, tools; /* JSON objects, a comma between two */
	unsigned tool_count;
	uar_str choice;			/* as event/client.h has it */
	struct uar_client_result *last; /* of those that were read */
	bool asked;			/* a message of the user was read */
	const struct uar_json *content; /* of that one */
};

static const struct uar_json *find_member(const struct uar_json *j, const char *key)
{
	const struct uar_json *m = uar_json_get(j, uar_str_c(key));

	return m && m->kind == UAR_JSON_NULL ? NULL : m;
}

static uar_str text_member(const struct uar_json *j, const char *key)
{
	return uar_json_str(find_member(j, key), UAR_STR(""));
}

static uar_err refuse(struct reading *r, const char *where, const char *why)
{
	uar_error_where(r->error, "/%s", where);
	return uar_error_set(r->error, UAR_EINVALID, "%s", why);
}

static uar_err keep_buf(struct reading *r, struct uar_buf *b, uar_str *out)
{
	uar_err e = b->err;

	if (!e) {
		*out = uar_arena_str(r->arena, uar_buf_str(b));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(b);
	return e;
}

/* --- content ----------------------------------------------------------------------------- */

static bool is_text_part(const struct uar_json *part)
{
	static const char *const types[] = { "text", "input_text", "output_text", "refusal" };
	uar_str type = text_member(part, "type");

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (uar_str_is(type, types[i]))
			return true;
	return false;
}

/* Images and files, as chat completions and as responses name them. */
static bool read_attachment(const struct uar_json *part, struct uar_attachment *a)
{
	uar_str type = text_member(part, "type");
	const struct uar_json *file = part;

	*a = (struct uar_attachment){ .image = true };
	if (uar_str_is(type, "image_url"))
		return uar_attachment_take_url(a,
					       text_member(find_member(part, "image_url"), "url"));
	if (uar_str_is(type, "input_image"))
		return uar_attachment_take_url(a, text_member(part, "image_url"));
	a->image = false;
	if (uar_str_is(type, "file"))
		file = find_member(part, "file");
	else if (!uar_str_is(type, "input_file"))
		return false;
	a->name = text_member(file, "filename");
	return uar_attachment_take_url(
		a, text_member(file, text_member(file, "file_data").n ? "file_data" : "file_url"));
}

/* A string, or text parts with line ends between them; what is attached is read apart. */
static uar_err read_text(struct reading *r, const struct uar_json *content, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	*out = uar_json_str(content, UAR_STR(""));
	if (!content || content->kind == UAR_JSON_STRING)
		return UAR_OK;
	if (content->kind != UAR_JSON_ARRAY)
		return refuse(r, "messages", "content is a string or a list of parts");
	for (const struct uar_json *p = content->count ? content->first : NULL; p; p = p->next) {
		struct uar_attachment a;

		if (read_attachment(p, &a))
			continue;
		if (!is_text_part(p)) {
			uar_buf_fini(&b);
			return refuse(r, "messages",
				      "content parts are text, images and files: data in base64 or "
				      "an http address");
		}
		if (b.n)
			uar_buf_add_char(&b, '\n');
		uar_buf_add_str(&b, uar_str_is(text_member(p, "type"), "refusal")
					    ? text_member(p, "refusal")
					    : text_member(p, "text"));
	}
	return keep_buf(r, &b, out);
}

/* --- messages ------------------------------------------------------------------------------ */

/* A message on its way into the list. */
struct message {
	const char *role;
	uar_str text, call_id;
	const struct uar_json *content; /* with what is attached, or NULL */
	const struct uar_json *calls;	/* of chat completions */
	uar_str id, name, arguments;	/* of one call of responses */
};

static void put_call(struct uar_jw *w, uar_str id, uar_str name, uar_str arguments)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "id", id);
	uar_jw_str(w, "name", name);
	uar_jw_str(w, "arguments", arguments);
	uar_jw_close(w);
}

static void put_calls(struct uar_jw *w, const struct message *m)
{
	uar_jw_arr(w, "calls");
	if (m->id.n)
		put_call(w, m->id, m->name, m->arguments);
	for (const struct uar_json *c = m->calls && m->calls->count ? m->calls->first : NULL; c;
	     c = c->next) {
		const struct uar_json *function = find_member(c, "function");

		put_call(w, text_member(c, "id"), text_member(function, "name"),
			 text_member(function, "arguments"));
	}
	uar_jw_close(w);
}

static bool has_attachments(const struct uar_json *content)
{
	struct uar_attachment a;

	if (!content || content->kind != UAR_JSON_ARRAY)
		return false;
	for (const struct uar_json *p = uar_json_first(content); p; p = p->next)
		if (read_attachment(p, &a))
			return true;
	return false;
}

static void put_attachments(struct uar_jw *w, const struct uar_json *content)
{
	struct uar_attachment a;

	if (!has_attachments(content))
		return;
	uar_jw_arr(w, "attachments");
	for (const struct uar_json *p = uar_json_first(content); p; p = p->next)
		if (read_attachment(p, &a))
			uar_attachment_put(w, &a);
	uar_jw_close(w);
}

/* Calls begin anew with each message that has some; what follows them counts. */
static uar_err note_result(struct reading *r, const struct message *m)
{
	struct uar_client_result *result = uar_arena_alloc(r->arena, sizeof *result);
	struct uar_json *value = uar_arena_alloc(r->arena, sizeof *value);

	if (!result || !value)
		return UAR_ENOMEM;
	*value = (struct uar_json){ .kind = UAR_JSON_STRING, .text = m->text };
	*result = (struct uar_client_result){ .call_id = m->call_id, .value = value };
	if (r->last)
		r->last->next = result;
	else
		r->out->results = result;
	r->last = result;
	return UAR_OK;
}

static uar_err note_message(struct reading *r, const struct message *m)
{
	if (m->calls || m->id.n) {
		r->out->results = NULL;
		r->last = NULL;
		r->out->asks_after = false;
	}
	return m->call_id.n ? note_result(r, m) : UAR_OK;
}

static uar_err add_message(struct reading *r, const struct message *m)
{
	struct uar_buf *to = r->asked ? &r->after : &r->before;
	struct uar_jw w;
	uar_err e = note_message(r, m);

	if (e)
		return e;
	if (to->n)
		uar_buf_add_char(to, ',');
	w = uar_jw_begin(to);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "role", m->role);
	uar_jw_str(&w, "text", m->text);
	if (m->calls || m->id.n)
		put_calls(&w, m);
	if (m->call_id.n)
		uar_jw_str(&w, "call_id", m->call_id);
	put_attachments(&w, m->content);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* The one before was not the last after all, nor was what followed it. */
static uar_err take_question(struct reading *r, uar_str text, const struct uar_json *content)
{
	struct uar_buf after = r->after;
	uar_err e = UAR_OK;

	if (r->asked) {
		r->asked = false;
		r->after = uar_buf_make(UAR_LIMIT_JSON_BYTES);
		e = add_message(r, &(struct message){ .role = "user",
						      .text = r->out->message,
						      .content = r->content });
		if (!e && after.n) {
			uar_buf_add_char(&r->before, ',');
			uar_buf_add_str(&r->before, uar_buf_str(&after));
			e = r->before.err;
		}
		uar_buf_fini(&after);
	}
	r->out->message = text.n || !has_attachments(content) ? text : UAR_STR(UAR_ATTACHED);
	r->content = content;
	r->out->asks_after = r->last != NULL;
	r->asked = true;
	return e;
}

static uar_err read_message(struct reading *r, const struct uar_json *j)
{
	static const struct {
		const char *role, *ours;
	} roles[] = { { "system", "system" }, { "developer", "system" },
		      { "user", "user" },     { "assistant", "assistant" },
		      { "tool", "tool" },     { "function", "tool" } };
	struct message m = { .calls = find_member(j, "tool_calls"),
			     .call_id = text_member(j, "tool_call_id") };
	uar_str role = text_member(j, "role");
	uar_err e = read_text(r, find_member(j, "content"), &m.text);

	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (uar_str_is(role, roles[i].role))
			m.role = roles[i].ours;
	if (!e && !m.role)
		return refuse(
			r, "messages",
			"each message has a role: system, developer, user, assistant or tool");
	if (e)
		return e;
	m.content = find_member(j, "content");
	return strcmp(m.role, "user") == 0 ? take_question(r, m.text, m.content)
					   : add_message(r, &m);
}

static uar_err read_messages(struct reading *r, const struct uar_json *messages)
{
	uar_err e = UAR_OK;

	if (!messages || messages->kind != UAR_JSON_ARRAY || !messages->count)
		return refuse(r, "messages", "messages: a list with at least one message");
	for (const struct uar_json *m = messages->first; m && !e; m = m->next)
		e = m->kind == UAR_JSON_OBJECT
			    ? read_message(r, m)
			    : refuse(r, "messages", "each message is an object with a role");
	return e;
}

/* --- items of responses --------------------------------------------------------------------- */

static uar_err read_item(struct reading *r, const struct uar_json *j)
{
	uar_str type = text_member(j, "type");
	struct message m = { .role = "assistant" };
	uar_err e = UAR_OK;

	if (!type.n || uar_str_is(type, "message"))
		return read_message(r, j);
	if (uar_str_is(type, "function_call")) {
		m.id = text_member(j, "call_id");
		m.name = text_member(j, "name");
		m.arguments = text_member(j, "arguments");
		return add_message(r, &m);
	}
	if (uar_str_is(type, "function_call_output")) {
		m.role = "tool";
		m.call_id = text_member(j, "call_id");
		e = read_text(r, find_member(j, "output"), &m.text);
		return e ? e : add_message(r, &m);
	}
	if (uar_str_is(type, "reasoning") || uar_str_is(type, "mcp_call"))
		return UAR_OK; /* what this server has done itself */
	return refuse(r, "input",
		      "items of type message, function_call, function_call_output, reasoning");
}

static uar_err read_items(struct reading *r, const struct uar_json *input)
{
	uar_err e = UAR_OK;

	if (!input)
		return refuse(r, "input", "input: a string or a list of items");
	if (input->kind == UAR_JSON_STRING)
		return take_question(r, input->text, NULL);
	if (input->kind != UAR_JSON_ARRAY || !input->count)
		return refuse(r, "input", "input: a string or a list of items");
	for (const struct uar_json *m = input->first; m && !e; m = m->next)
		e = m->kind == UAR_JSON_OBJECT ? read_item(r, m)
					       : refuse(r, "input", "each item is an object");
	return e;
}

/* --- tools ------------------------------------------------------------------------------------ */

static uar_err put_tool(struct reading *r, const struct uar_json *function)
{
	const struct uar_json *parameters = find_member(function, "parameters");
	struct uar_jw w;

	uar_err e = uar_client_tool_check(function, parameters, r->tool_count++, r->error);

	if (e)
		return e;
	if (r->tools.n)
		uar_buf_add_char(&r->tools, ',');
	w = uar_jw_begin(&r->tools);
	uar_client_tool_put(&w, function);
	return uar_jw_end(&w);
}

static uar_err read_tools(struct reading *r, const struct uar_json *body)
{
	const struct uar_json *tools = find_member(body, "tools");
	uar_err e = UAR_OK;

	if (!tools)
		return UAR_OK;
	if (tools->kind != UAR_JSON_ARRAY)
		return refuse(r, "tools", "tools: a list");
	for (const struct uar_json *t = tools->count ? tools->first : NULL; t && !e; t = t->next) {
		const struct uar_json *function = find_member(t, "function");

		if (!uar_str_is(text_member(t, "type"), "function"))
			return refuse(r, "tools",
				      "tools of type function only: the agent has its own");
		e = put_tool(r, function ? function : t);
	}
	return e;
}

/* "auto", "none", "required", or one tool. */
static uar_err read_choice(struct reading *r, const struct uar_json *body)
{
	const struct uar_json *choice = find_member(body, "tool_choice");
	const struct uar_json *function = find_member(choice, "function");
	uar_str word = uar_json_str(choice, UAR_STR(""));

	if (uar_str_is(word, "none"))
		uar_buf_clear(&r->tools);
	else if (uar_str_is(word, "required"))
		r->choice = UAR_STR("*");
	else if (choice && choice->kind == UAR_JSON_OBJECT)
		r->choice = text_member(function ? function : choice, "name");
	return UAR_OK;
}

/* --- the whole body ------------------------------------------------------------------------- */

static void put_list(struct uar_jw *w, const char *key, const struct uar_buf *items)
{
	if (!items->n)
		return;
	uar_jw_arr(w, key);
	uar_jw_raw(w, NULL, uar_buf_str(items));
	uar_jw_close(w);
}

static uar_err keep_client(struct reading *r)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e = r->before.err ? r->before.err : r->after.err;

	if (e || (!r->before.n && !r->after.n && !r->tools.n && !has_attachments(r->content)))
		return e;
	uar_jw_obj(&w, NULL);
	put_list(&w, "before", &r->before);
	put_list(&w, "after", &r->after);
	put_list(&w, "tools", &r->tools);
	put_attachments(&w, r->content);
	if (r->choice.n && r->tools.n)
		uar_jw_str(&w, "choice", r->choice);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	return keep_buf(r, &b, &r->out->client);
}

/* Only a refusal is kept: without one a response is shown to whoever asks for it. */
static bool asks_to_hide(const struct uar_json *body)
{
	return !uar_json_bool(find_member(body, "store"), true);
}

static uar_err keep_context(struct reading *r, const struct uar_json *body)
{
	static const char *const kept[] = { "user", "metadata", "safety_identifier" };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	size_t n = 0;

	uar_jw_obj(&w, NULL);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		const struct uar_json *j = find_member(body, kept[i]);

		if (!j)
			continue;
		uar_jw_tree(&w, kept[i], j);
		n++;
	}
	if (asks_to_hide(body)) {
		uar_jw_bool(&w, "store", false);
		n++;
	}
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	if (n)
		return keep_buf(r, &b, &r->out->context);
	uar_buf_fini(&b);
	return UAR_OK;
}

/* What this server would have to leave out in silence. */
static uar_err refuse_others(struct reading *r, const struct uar_json *body)
{
	const struct uar_json *format = find_member(body, "response_format");
	const struct uar_json *text = find_member(body, "text");
	const struct uar_json *store = find_member(body, "store");
	uar_str type = text_member(format ? format : find_member(text, "format"), "type");

	if (uar_json_int(find_member(body, "n"), 1) != 1)
		return refuse(r, "n", "one choice for each request");
	if (uar_json_bool(find_member(body, "logprobs"), false))
		return refuse(r, "logprobs", "not supported");
	if (store && store->kind != UAR_JSON_BOOL && store->kind != UAR_JSON_NULL)
		return refuse(r, "store", "true or false");
	if (find_member(body, "audio"))
		return refuse(r, "audio", "answers are text");
	if (type.n && !uar_str_is(type, "text"))
		return refuse(r, format ? "response_format" : "text.format",
			      "the agent's definition says what its answers are");
	return UAR_OK;
}

static uar_err read_common(struct reading *r, const struct uar_json *body)
{
	uar_err e;

	*r->out = (struct uar_openai_input){ .model = text_member(body, "model"),
					     .stream = uar_json_bool(find_member(body, "stream"),
								     false) };
	if (!r->out->model.n)
		return refuse(r, "model", "model: the id of an agent, see GET /v1/models");
	e = refuse_others(r, body);
	if (!e)
		e = keep_context(r, body);
	if (!e)
		e = read_tools(r, body);
	return e ? e : read_choice(r, body);
}

static struct reading begin_reading(struct uar_arena *arena, struct uar_openai_input *out,
				    struct uar_error *error)
{
	return (struct reading){ .arena = arena,
				 .out = out,
				 .error = error,
				 .before = uar_buf_make(UAR_LIMIT_JSON_BYTES),
				 .after = uar_buf_make(UAR_LIMIT_JSON_BYTES),
				 .tools = uar_buf_make(UAR_LIMIT_JSON_BYTES) };
}

static void end_reading(struct reading *r)
{
	uar_buf_fini(&r->before);
	uar_buf_fini(&r->after);
	uar_buf_fini(&r->tools);
}

uar_err uar_openai_chat_read(const struct uar_json *body, struct uar_arena *arena,
			     struct uar_openai_input *out, struct uar_error *error)
{
	struct reading r = begin_reading(arena, out, error);
	uar_err e = read_common(&r, body);

	if (!e)
		e = read_messages(&r, find_member(body, "messages"));
	if (!e && !out->message.n)
		e = refuse(&r, "messages", "no message of the user with text in it");
	if (!e)
		e = keep_client(&r);
	out->usage = uar_json_bool(
		find_member(find_member(body, "stream_options"), "include_usage"), false);
	end_reading(&r);
	return e;
}

/* --- where a response goes on --------------------------------------------------------------- */

static uar_err read_thread(struct reading *r, const struct uar_json *body)
{
	const struct uar_json *conversation = find_member(body, "conversation");
	uar_str previous = text_member(body, "previous_response_id"), number;
	uar_str id = conversation && conversation->kind == UAR_JSON_OBJECT
			     ? text_member(conversation, "id")
			     : uar_json_str(conversation, UAR_STR(""));

	if (conversation && previous.n)
		return refuse(r, "previous_response_id", "either this or conversation");
	if (conversation && !uar_str_is_id(id))
		return refuse(r, "conversation", "the id of a conversation");
	if (previous.n && !uar_str_starts(previous, UAR_STR(UAR_OPENAI_RESPONSE_ID)))
		return refuse(r, "previous_response_id", "the id of a response: resp_...");
	r->out->conversation_id = id;
	if (previous.n)
		r->out->previous_run_id = uar_str_cut(
			uar_str_from(previous, strlen(UAR_OPENAI_RESPONSE_ID)), '.', &number);
	return UAR_OK;
}

uar_err uar_openai_responses_read(const struct uar_json *body, struct uar_arena *arena,
				  struct uar_openai_input *out, struct uar_error *error)
{
	struct reading r = begin_reading(arena, out, error);
	uar_err e = read_common(&r, body);
	uar_str instructions = text_member(body, "instructions");

	if (!e)
		e = read_thread(&r, body);
	if (!e && instructions.n)
		e = add_message(&r, &(struct message){ .role = "system", .text = instructions });
	if (!e)
		e = read_items(&r, find_member(body, "input"));
	if (!e && !out->message.n && !r.before.n)
		e = refuse(&r, "input", "no message of the user with text in it");
	if (!e)
		e = keep_client(&r);
	out->background = uar_json_bool(find_member(body, "background"), false);
	if (!e && out->background && asks_to_hide(body))
		e = refuse(&r, "background", "a response that is not stored cannot be asked for");
	end_reading(&r);
	return e;
}
