/* openai_responses.c - OpenAI's Responses: the answer.
 *
 * It is a row of items: messages, calls, reasoning. Events carry numbers, so one that comes
 * twice is known. Reasoning goes back as the item that it came in, when it is encrypted: nothing
 * is stored at the provider. */
#include "model/openai_int.h"

/* --- items -------------------------------------------------------------------------------- */

static bool is_type(const struct uar_json *item, const char *type)
{
	return uar_str_is(uar_json_text(item, "type"), type);
}

static struct uar_reply_block *begin_call(struct uar_reply *a, int64_t index,
					  const struct uar_json *item)
{
	struct uar_reply_block *b = uar_reply_block_add(a, UAR_PART_CALL, index);
	struct uar_reply_call *call = b ? uar_reply_call_add(a, index) : NULL;

	if (!call)
		return NULL;
	b->call = a->calls->count - 1;
	uar_reply_call_id(call, uar_json_text(item, "call_id"));
	uar_reply_call_name(a, call, uar_json_text(item, "name"));
	return b;
}

/* The block of an item; items may come whole, without having begun. NULL: no failure means
 * that it is of a kind that needs none. */
static struct uar_reply_block *block_of_item(struct uar_reply *a, int64_t index,
					     const struct uar_json *item)
{
	struct uar_reply_block *b = uar_reply_block_find(a, index);

	if (b)
		return b;
	if (is_type(item, "function_call"))
		b = begin_call(a, index, item);
	else if (is_type(item, "message") || is_type(item, "reasoning"))
		b = uar_reply_block_add(
			a, is_type(item, "message") ? UAR_PART_TEXT : UAR_PART_REASONING, index);
	else if (is_type(item, "custom_tool_call"))
		(void)uar_reply_broken(a, "the provider asks for something that is not a tool of "
					  "ours");
	if (b)
		uar_reply_turn(a, b->kind == UAR_PART_TEXT ? &b->text : NULL);
	return b;
}

static void say_parts(struct uar_reply *a, enum uar_reply_kind kind, const struct uar_json *list)
{
	const struct uar_json *p = list && list->kind == UAR_JSON_ARRAY ? list->first : NULL;

	for (; p; p = p->next) {
		uar_reply_say(a, kind, uar_json_get(p, UAR_STR("text")));
		uar_reply_say(a, kind, uar_json_get(p, UAR_STR("refusal")));
	}
}

static void keep_item(struct uar_reply *a, struct uar_reply_block *b, const struct uar_json *item)
{
	if (b->kind == UAR_PART_OPAQUE)
		return;
	b->kind = UAR_PART_OPAQUE;
	a->blocks.keep = true;
	uar_reply_block_put(a, &b->opaque, item->text);
}

/* What of it was not streamed is said now. `said`: how much was before it began. */
static void end_message(struct uar_reply *a, struct uar_reply_block *b, const struct uar_json *item)
{
	if (!b->text.n)
		say_parts(a, UAR_REPLY_TEXT, uar_json_get(item, UAR_STR("content")));
	uar_reply_turn(a, NULL);
	if (uar_json_text(item, "phase").n) /* models that say so want it back */
		keep_item(a, b, item);
}

static void end_reasoning(struct uar_reply *a, struct uar_reply_block *b,
			  const struct uar_json *item)
{
	if (!b->form) { /* nothing was streamed */
		say_parts(a, UAR_REPLY_REASONING, uar_json_get(item, UAR_STR("summary")));
		say_parts(a, UAR_REPLY_REASONING, uar_json_get(item, UAR_STR("content")));
	}
	if (uar_json_text(item, "encrypted_content").n)
		keep_item(a, b, item);
}

static bool is_same_kind(const struct uar_reply_block *b, const struct uar_json *item)
{
	switch (b->kind) {
	case UAR_PART_CALL: return is_type(item, "function_call");
	case UAR_PART_TEXT: return is_type(item, "message");
	case UAR_PART_REASONING: return is_type(item, "reasoning");
	default: return false;
	}
}

static void end_item(struct uar_reply *a, int64_t index, const struct uar_json *item)
{
	struct uar_reply_block *b = block_of_item(a, index, item);

	if (!b || b->kind == UAR_PART_OPAQUE) /* or one that has ended before */
		return;
	if (!is_same_kind(b, item)) {
		(void)uar_reply_broken(a, "the provider ends an item as one of another kind");
	} else if (is_type(item, "function_call")) {
		struct uar_reply_call *call = &a->calls->at[b->call];

		if (!call->arguments.n)
			uar_reply_call_arguments(a, call, uar_json_get(item, UAR_STR("arguments")));
	} else if (is_type(item, "message")) {
		end_message(a, b, item);
	} else if (is_type(item, "reasoning")) {
		end_reasoning(a, b, item);
	}
}

/* --- the response as a whole ------------------------------------------------------------------ */

static void take_usage(struct uar_reply *a, const struct uar_json *u)
{
	const struct uar_json *in = uar_json_get(u, UAR_STR("input_tokens_details"));
	const struct uar_json *out = uar_json_get(u, UAR_STR("output_tokens_details"));
	struct uar_model_usage *to = &a->usage;

	to->input_tokens = uar_reply_count(u, "input_tokens", to->input_tokens);
	to->output_tokens = uar_reply_count(u, "output_tokens", to->output_tokens);
	to->total_tokens = uar_reply_count(u, "total_tokens", to->total_tokens);
	to->cached_tokens = uar_reply_count(in, "cached_tokens", to->cached_tokens);
	to->cache_write_tokens = uar_reply_count(in, "cache_write_tokens", to->cache_write_tokens);
	to->reasoning_tokens = uar_reply_count(out, "reasoning_tokens", to->reasoning_tokens);
}

static void take_output(struct uar_reply *a, const struct uar_json *output)
{
	const struct uar_json *item =
		output && output->kind == UAR_JSON_ARRAY ? output->first : NULL;

	for (int64_t index = 0; item && !a->verdict.failure; item = item->next)
		end_item(a, index++, item);
}

static void take_stop(struct uar_reply *a, const struct uar_json *response)
{
	const struct uar_json *details = uar_json_get(response, UAR_STR("incomplete_details"));
	uar_str reason = uar_json_text(details, "reason");

	if (uar_str_is(reason, "max_output_tokens"))
		reason = UAR_STR("length");
	else if (!reason.n)
		reason = uar_str_is(uar_json_text(response, "status"), "incomplete")
				 ? UAR_STR("length")
				 : UAR_STR("stop");
	uar_reply_stop(a, reason);
}

/* Its output is what the events said; a proxy may have left those out. */
static void end_response(struct uar_reply *a, const struct uar_json *response)
{
	const struct uar_json *usage = uar_json_get(response, UAR_STR("usage"));

	uar_reply_turn(a, NULL);
	uar_reply_model(a, uar_json_get(response, UAR_STR("model")));
	if (!a->blocks.count)
		take_output(a, uar_json_get(response, UAR_STR("output")));
	if (usage)
		take_usage(a, usage);
	take_stop(a, response);
	a->closed = true;
}

static bool is_object(const struct uar_json *j)
{
	return j && j->kind == UAR_JSON_OBJECT;
}

static void fail_response(struct uar_reply *a, const struct uar_json *response)
{
	const struct uar_json *error = uar_json_get(response, UAR_STR("error"));

	uar_reply_fail_json(&a->verdict, is_object(error) ? error : response, 200, a->secret);
}

/* --- events --------------------------------------------------------------------------------- */

enum event {
	EVENT_BEGIN, /* of the response */
	EVENT_ITEM,  /* begins */
	EVENT_ITEM_END,
	EVENT_TEXT,
	EVENT_REASONING,
	EVENT_ARGUMENTS,
	EVENT_END,
	EVENT_FAILED,
	EVENT_ERROR,
	EVENT_OTHER, /* says nothing that the others do not */
};

static enum event kind_of(uar_str type)
{
	static const struct {
		const char *type;
		enum event event;
	} kinds[] = {
		{ "response.output_text.delta", EVENT_TEXT },
		{ "response.refusal.delta", EVENT_TEXT },
		{ "response.reasoning_summary_text.delta", EVENT_REASONING },
		{ "response.reasoning_text.delta", EVENT_REASONING },
		{ "response.function_call_arguments.delta", EVENT_ARGUMENTS },
		{ "response.output_item.added", EVENT_ITEM },
		{ "response.output_item.done", EVENT_ITEM_END },
		{ "response.created", EVENT_BEGIN },
		{ "response.in_progress", EVENT_BEGIN },
		{ "response.completed", EVENT_END },
		{ "response.incomplete", EVENT_END },
		{ "response.failed", EVENT_FAILED },
		{ "error", EVENT_ERROR },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (uar_str_is(type, kinds[i].type))
			return kinds[i].event;
	return EVENT_OTHER;
}

/* Some servers give all events the same number. */
static bool is_repeated(struct uar_reply *a, const struct uar_json *j)
{
	int64_t number = uar_json_int(uar_json_get(j, UAR_STR("sequence_number")), -1);

	if (number < 0)
		return false;
	if (a->sequence > 1 && number < a->sequence)
		return true;
	a->sequence = number + 1;
	return false;
}

static void take_text(struct uar_reply *a, struct uar_reply_block *b, const struct uar_json *delta)
{
	struct uar_buf *copy = b && b->kind == UAR_PART_TEXT ? &b->text : NULL;

	if (a->text.copy != copy)
		uar_reply_turn(a, copy);
	uar_reply_say(a, UAR_REPLY_TEXT, delta);
}

static void take_reasoning(struct uar_reply *a, struct uar_reply_block *b,
			   const struct uar_json *delta)
{
	if (a->text.copy)
		uar_reply_turn(a, NULL);
	if (b)
		b->form = 1; /* some of it was streamed */
	uar_reply_say(a, UAR_REPLY_REASONING, delta);
}

static void take_piece(struct uar_reply *a, enum event event, const struct uar_json *j)
{
	int64_t index = uar_json_int(uar_json_get(j, UAR_STR("output_index")), -1);
	const struct uar_json *delta = uar_json_get(j, UAR_STR("delta"));
	struct uar_reply_block *b = uar_reply_block_find(a, index);

	if (event == EVENT_TEXT)
		take_text(a, b, delta);
	else if (event == EVENT_REASONING)
		take_reasoning(a, b, delta);
	else if (b && b->kind == UAR_PART_CALL)
		uar_reply_call_arguments(a, &a->calls->at[b->call], delta);
	else
		(void)uar_reply_broken(a, "the provider goes on with a call that has not begun");
}

static void take_item(struct uar_reply *a, const struct uar_json *j, bool ends)
{
	int64_t index = uar_json_int(uar_json_get(j, UAR_STR("output_index")), -1);
	const struct uar_json *item = uar_json_get(j, UAR_STR("item"));

	if (!is_object(item) || index < 0)
		(void)uar_reply_broken(a, "the provider sent an item that is none");
	else if (ends)
		end_item(a, index, item);
	else
		(void)block_of_item(a, index, item);
}

static void take_kind(struct uar_reply *a, enum event event, const struct uar_json *j)
{
	const struct uar_json *response = uar_json_get(j, UAR_STR("response"));

	switch (event) {
	case EVENT_TEXT:
	case EVENT_REASONING:
	case EVENT_ARGUMENTS: take_piece(a, event, j); break;
	case EVENT_ITEM:
	case EVENT_ITEM_END: take_item(a, j, event == EVENT_ITEM_END); break;
	case EVENT_BEGIN: uar_reply_model(a, uar_json_get(response, UAR_STR("model"))); break;
	case EVENT_END: end_response(a, response); break;
	case EVENT_FAILED: fail_response(a, response ? response : j); break;
	case EVENT_ERROR: uar_reply_fail_json(&a->verdict, j, 200, a->secret); break;
	case EVENT_OTHER:
		if (is_object(uar_json_get(j, UAR_STR("error"))))
			uar_reply_fail_json(&a->verdict, j, 200, a->secret);
		break;
	}
}

/* An item said twice is not the same text twice: only pieces may look like the last event. */
static uar_err take_event(struct uar_reply *a, const struct uar_json *j)
{
	enum event event = kind_of(uar_json_text(j, "type"));

	if (is_repeated(a, j))
		return UAR_OK;
	take_kind(a, event, j);
	if (event != EVENT_TEXT && event != EVENT_REASONING)
		a->brought.pieces = 0;
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

static uar_err take_whole(struct uar_reply *a, const struct uar_json *j)
{
	if (is_object(uar_json_get(j, UAR_STR("error"))) || !uar_json_get(j, UAR_STR("output")))
		fail_response(a, j);
	else
		end_response(a, j);
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

const struct uar_dialect uar_dialect_openai_responses = {
	.name = "openai_responses",
	.path = "/responses",
	.list_path = "/models",
	.key_header = "Authorization",
	.write = uar_openai_write_responses,
	.event = take_event,
	.whole = take_whole,
};
