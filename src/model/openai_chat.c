/* openai_chat.c - OpenAI's chat completions, which many other servers speak: the answer.
 *
 * An index holds the pieces of a call together. Servers differ: whole calls without an index,
 * the same index for all, id and name again in each piece. */
#include "model/openai_int.h"

enum { NO_INDEX = -1 };

/* --- which call a piece belongs to ----------------------------------------------------- */

/* The newest with that index; a further id under it begins another call. */
static struct uar_reply_call *by_index(struct uar_reply_calls *c, int64_t index, uar_str id)
{
	for (size_t i = c->count; i-- > 0;)
		if (c->at[i].index == index)
			return id.n == 0 || c->at[i].id_n == 0 ||
					       uar_str_eq(id, uar_str_n(c->at[i].id, c->at[i].id_n))
				       ? &c->at[i]
				       : NULL;
	return NULL;
}

static struct uar_reply_call *without_index(struct uar_reply_calls *c, uar_str id, uar_str name)
{
	struct uar_reply_call *last = c->count ? &c->at[c->count - 1] : NULL;

	if (id.n)
		return last && uar_str_eq(id, uar_str_n(last->id, last->id_n)) ? last : NULL;
	return last && (name.n == 0 || last->name_n == 0) ? last : NULL;
}

static void take_call(struct uar_reply *a, const struct uar_json *j)
{
	const struct uar_json *f = uar_json_get(j, UAR_STR("function"));
	uar_str id = uar_json_text(j, "id");
	uar_str name = uar_json_text(f, "name");
	uar_str type = uar_json_text(j, "type");
	int64_t index = uar_json_int(uar_json_get(j, UAR_STR("index")), NO_INDEX);
	struct uar_reply_call *call = NULL;

	if (j->kind != UAR_JSON_OBJECT || (type.n && !uar_str_is(type, "function"))) {
		(void)uar_reply_broken(a, "the provider asks for something that is not a tool of "
					  "ours");
		return;
	}
	if (a->calls)
		call = index == NO_INDEX ? without_index(a->calls, id, name)
					 : by_index(a->calls, index, id);
	if (!call)
		call = uar_reply_call_add(a, index);
	if (!call)
		return;
	uar_reply_call_id(call, id);
	uar_reply_call_name(a, call, name);
	uar_reply_call_arguments(a, call, uar_json_get(f, UAR_STR("arguments")));
}

static void take_calls(struct uar_reply *a, const struct uar_json *calls)
{
	a->brought.pieces += calls->count;
	if (calls->kind != UAR_JSON_ARRAY)
		return;
	for (const struct uar_json *j = calls->first; j && !a->verdict.failure; j = j->next)
		take_call(a, j);
}

/* --- the fields of a chunk ------------------------------------------------------ */

static void say_content(struct uar_reply *a, enum uar_reply_kind kind, const struct uar_json *j)
{
	const struct uar_json *part = j && j->kind == UAR_JSON_ARRAY ? j->first : NULL;

	for (; part; part = part->next)
		uar_reply_say(a, kind, uar_json_get(part, UAR_STR("text")));
	uar_reply_say(a, kind, j);
}

/* Some servers (DeepSeek) name the cached tokens beside the others. */
static void take_usage(struct uar_reply *a, const struct uar_json *u)
{
	const struct uar_json *in = uar_json_get(u, UAR_STR("prompt_tokens_details"));
	const struct uar_json *out = uar_json_get(u, UAR_STR("completion_tokens_details"));
	struct uar_model_usage *to = &a->usage;

	if (u->kind != UAR_JSON_OBJECT)
		return;
	to->input_tokens = uar_reply_count(u, "prompt_tokens", to->input_tokens);
	to->output_tokens = uar_reply_count(u, "completion_tokens", to->output_tokens);
	to->total_tokens = uar_reply_count(u, "total_tokens", to->total_tokens);
	to->cached_tokens = uar_reply_count(u, "prompt_cache_hit_tokens", to->cached_tokens);
	to->cached_tokens = uar_reply_count(in, "cached_tokens", to->cached_tokens);
	to->cache_write_tokens = uar_reply_count(in, "cache_write_tokens", to->cache_write_tokens);
	to->reasoning_tokens = uar_reply_count(out, "reasoning_tokens", to->reasoning_tokens);
}

/* `delta` of a stream and `message` of a whole answer have the same members. Some
 * servers send the reasoning under both of its names. */
static void take_message(struct uar_reply *a, const struct uar_json *message)
{
	const struct uar_json *text = NULL, *refusal = NULL, *thought = NULL, *calls = NULL;

	if (!message || message->kind != UAR_JSON_OBJECT)
		return;
	for (const struct uar_json *m = message->first; m; m = m->next) {
		if (uar_str_is(m->key, "content"))
			text = m;
		else if (uar_str_is(m->key, "reasoning_content"))
			thought = m->kind == UAR_JSON_STRING ? m : thought;
		else if (uar_str_is(m->key, "reasoning"))
			thought = thought ? thought : m;
		else if (uar_str_is(m->key, "refusal"))
			refusal = m;
		else if (uar_str_is(m->key, "tool_calls"))
			calls = m;
	}
	say_content(a, UAR_REPLY_REASONING, thought);
	say_content(a, UAR_REPLY_TEXT, text);
	say_content(a, UAR_REPLY_TEXT, refusal);
	if (calls)
		take_calls(a, calls);
}

static void take_choice(struct uar_reply *a, const struct uar_json *choice)
{
	for (const struct uar_json *m = choice->first; m; m = m->next) {
		if (uar_str_is(m->key, "delta") || uar_str_is(m->key, "message")) {
			take_message(a, m);
		} else if (uar_str_is(m->key, "finish_reason") && m->kind == UAR_JSON_STRING) {
			uar_reply_stop(a, m->text);
		}
	}
}

/* We ask for one choice; another one would be a second answer mixed into it. */
static void take_choices(struct uar_reply *a, const struct uar_json *choices)
{
	const struct uar_json *c = choices->kind == UAR_JSON_ARRAY ? choices->first : NULL;

	for (; c; c = c->next)
		if (c->kind == UAR_JSON_OBJECT &&
		    uar_json_int(uar_json_get(c, UAR_STR("index")), 0) == 0)
			take_choice(a, c);
}

static bool is_error(const struct uar_json *m)
{
	return uar_str_is(m->key, "error") &&
	       (m->kind == UAR_JSON_OBJECT || m->kind == UAR_JSON_STRING);
}

static uar_err take_chunk(struct uar_reply *a, const struct uar_json *chunk)
{
	const struct uar_json *m = chunk->kind == UAR_JSON_OBJECT ? chunk->first : NULL;

	for (; m; m = m->next) {
		if (uar_str_is(m->key, "choices"))
			take_choices(a, m);
		else if (uar_str_is(m->key, "usage"))
			take_usage(a, m);
		else if (uar_str_is(m->key, "model"))
			uar_reply_model(a, m);
		else if (is_error(m))
			uar_reply_fail_json(&a->verdict, chunk, 200, a->secret);
	}
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

const struct uar_dialect uar_dialect_openai_chat = {
	.name = "openai_chat",
	.path = "/chat/completions",
	.list_path = "/models",
	.key_header = "Authorization",
	.write = uar_openai_write_chat,
	.event = take_chunk,
	.whole = take_chunk,
};
