/* anthropic.c - Anthropic's Messages: the answer.
 *
 * It is a row of blocks, each with a start, deltas and a stop. Thinking comes with a signature
 * and must go back unmodified while tools are in use, and so must blocks of kinds that are not
 * known here. */
#include "model/anthropic_int.h"
#include "model/limits.h"

/* What is missing of an opaque block until it stops. */
enum form {
	FORM_WHOLE,   /* nothing */
	FORM_THOUGHT, /* the members `thinking` (its text) and `signature` (its seal) */
	FORM_INPUT,   /* the member `input` (its seal) */
};

/* --- the start of a block --------------------------------------------------------------- */

static bool is_left_out(uar_str key, enum form form)
{
	if (form == FORM_INPUT)
		return uar_str_is(key, "input");
	return uar_str_is(key, "thinking") || uar_str_is(key, "signature");
}

/* All members but those that come in pieces. */
static void put_frame(struct uar_reply *a, struct uar_reply_block *b, const struct uar_json *j)
{
	struct uar_buf frame = uar_buf_make(UAR_LIMIT_MODEL_OPAQUE);
	struct uar_jw w = uar_jw_begin(&frame);

	uar_jw_obj(&w, NULL);
	for (const struct uar_json *m = j->first; m; m = m->next) {
		if (is_left_out(m->key, (enum form)b->form))
			continue;
		uar_jw_key(&w, m->key);
		uar_jw_tree(&w, NULL, m);
	}
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		(void)uar_reply_broken(a, "the provider sent a block that cannot be kept");
	else
		uar_reply_block_put(a, &b->opaque, uar_buf_str(&frame));
	uar_buf_fini(&frame);
}

static struct uar_reply_block *begin_text(struct uar_reply *a, int64_t index)
{
	struct uar_reply_block *b = uar_reply_block_add(a, UAR_PART_TEXT, index);

	if (b)
		uar_reply_turn(a, &b->text);
	return b;
}

static void begin_thought(struct uar_reply *a, int64_t index, const struct uar_json *j)
{
	struct uar_reply_block *b = uar_reply_block_add(a, UAR_PART_OPAQUE, index);

	if (!b)
		return;
	b->form = FORM_THOUGHT;
	uar_reply_turn(a, &b->text);
	put_frame(a, b, j);
	uar_reply_say(a, UAR_REPLY_REASONING, uar_json_get(j, UAR_STR("thinking")));
	uar_reply_block_put(a, &b->seal, uar_json_text(j, "signature"));
}

static void begin_call(struct uar_reply *a, int64_t index, const struct uar_json *j)
{
	const struct uar_json *input = uar_json_get(j, UAR_STR("input"));
	struct uar_reply_block *b = uar_reply_block_add(a, UAR_PART_CALL, index);
	struct uar_reply_call *call = b ? uar_reply_call_add(a, index) : NULL;

	if (!call)
		return;
	b->call = a->calls->count - 1;
	uar_reply_turn(a, NULL);
	uar_reply_call_id(call, uar_json_text(j, "id"));
	uar_reply_call_name(a, call, uar_json_text(j, "name"));
	if (input && input->kind == UAR_JSON_OBJECT && input->count)
		uar_reply_call_arguments(a, call, input);
}

/* The answer itself, asked for as the input of a tool. */
static void begin_output(struct uar_reply *a, int64_t index, const struct uar_json *j)
{
	const struct uar_json *input = uar_json_get(j, UAR_STR("input"));
	struct uar_json text = { .kind = UAR_JSON_STRING };

	if (!begin_text(a, index) || !input || input->kind != UAR_JSON_OBJECT || !input->count)
		return;
	text.text = input->text;
	uar_reply_say(a, UAR_REPLY_TEXT, &text);
}

static void begin_opaque(struct uar_reply *a, int64_t index, const struct uar_json *j)
{
	struct uar_reply_block *b = uar_reply_block_add(a, UAR_PART_OPAQUE, index);

	if (!b)
		return;
	uar_reply_turn(a, NULL);
	b->form = uar_json_get(j, UAR_STR("input")) ? FORM_INPUT : FORM_WHOLE;
	if (b->form == FORM_WHOLE)
		uar_reply_block_put(a, &b->opaque, j->text);
	else
		put_frame(a, b, j);
}

static void begin_block(struct uar_reply *a, int64_t index, const struct uar_json *j)
{
	uar_str type = uar_json_text(j, "type");
	uar_str name = uar_json_text(j, "name");

	if (index < 0 || type.n == 0 || j->kind != UAR_JSON_OBJECT) {
		(void)uar_reply_broken(a, "the provider sent a block that is none");
	} else if (uar_reply_block_find(a, index)) {
		(void)uar_reply_broken(a, "the provider begins a block of its answer twice");
	} else if (uar_str_is(type, "text")) {
		if (begin_text(a, index))
			uar_reply_say(a, UAR_REPLY_TEXT, uar_json_get(j, UAR_STR("text")));
	} else if (uar_str_is(type, "thinking")) {
		begin_thought(a, index, j);
	} else if (uar_str_is(type, "tool_use") && name.n &&
		   uar_str_eq(name, a->asked.output_tool)) {
		begin_output(a, index, j);
	} else if (uar_str_is(type, "tool_use")) {
		begin_call(a, index, j);
	} else {
		begin_opaque(a, index, j);
	}
}

/* --- its pieces and its end --------------------------------------------------------------- */

static void say_piece(struct uar_reply *a, struct uar_reply_block *b, enum uar_reply_kind kind,
		      const struct uar_json *text)
{
	if (a->text.copy != &b->text)
		uar_reply_turn(a, &b->text);
	uar_reply_say(a, kind, text);
}

static void take_input(struct uar_reply *a, struct uar_reply_block *b, const struct uar_json *piece)
{
	if (b->kind == UAR_PART_CALL)
		uar_reply_call_arguments(a, &a->calls->at[b->call], piece);
	else if (b->kind == UAR_PART_TEXT)
		say_piece(a, b, UAR_REPLY_TEXT, piece);
	else
		uar_reply_block_put(a, &b->seal, uar_json_str(piece, UAR_STR("")));
}

/* Kinds of deltas that are not known say nothing. */
static void take_delta(struct uar_reply *a, struct uar_reply_block *b, const struct uar_json *d)
{
	uar_str type = uar_json_text(d, "type");

	if (uar_str_is(type, "text_delta") && b->kind == UAR_PART_TEXT) {
		say_piece(a, b, UAR_REPLY_TEXT, uar_json_get(d, UAR_STR("text")));
	} else if (uar_str_is(type, "thinking_delta") && b->form == FORM_THOUGHT) {
		say_piece(a, b, UAR_REPLY_REASONING, uar_json_get(d, UAR_STR("thinking")));
	} else if (uar_str_is(type, "signature_delta") && b->form == FORM_THOUGHT) {
		uar_buf_clear(&b->seal); /* it comes whole */
		uar_reply_block_put(a, &b->seal, uar_json_text(d, "signature"));
	} else if (uar_str_is(type, "input_json_delta")) {
		take_input(a, b, uar_json_get(d, UAR_STR("partial_json")));
	}
}

static void seal_block(struct uar_reply *a, struct uar_reply_block *b)
{
	struct uar_buf whole = uar_buf_make(b->opaque.max);
	struct uar_jw w = uar_jw_begin(&whole);

	if (b->kind != UAR_PART_OPAQUE || b->form == FORM_WHOLE || a->verdict.failure)
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_members(&w, uar_buf_str(&b->opaque));
	if (b->form == FORM_THOUGHT) {
		uar_jw_str(&w, "thinking", uar_buf_str(&b->text));
		uar_jw_str(&w, "signature", uar_buf_str(&b->seal));
	} else {
		uar_reply_write_object(&w, "input", uar_buf_str(&b->seal));
	}
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		(void)uar_reply_broken(a, "the provider sent a block that cannot be kept");
	uar_buf_fini(&b->opaque);
	b->opaque = whole;
	b->form = FORM_WHOLE;
}

/* A stop may be missing: what there is of a block when the answer is complete is the block. */
static void end_answer(struct uar_reply *a)
{
	UAR_LIST_EACH (it, &a->blocks.list)
		seal_block(a, UAR_OWNER(it, struct uar_reply_block, node));
}

/* --- the answer as a whole ------------------------------------------------------------------ */

/* Tokens that a cache gave or took are counted apart from the other ones. */
static void take_usage(struct uar_reply *a, const struct uar_json *u)
{
	const struct uar_json *details = uar_json_get(u, UAR_STR("output_tokens_details"));
	struct uar_model_usage *to = &a->usage;
	int64_t fresh = uar_reply_count(u, "input_tokens", -1);

	to->cached_tokens = uar_reply_count(u, "cache_read_input_tokens", to->cached_tokens);
	to->cache_write_tokens =
		uar_reply_count(u, "cache_creation_input_tokens", to->cache_write_tokens);
	to->output_tokens = uar_reply_count(u, "output_tokens", to->output_tokens);
	to->reasoning_tokens = uar_reply_count(details, "thinking_tokens", to->reasoning_tokens);
	if (fresh >= 0)
		to->input_tokens = fresh + (to->cached_tokens > 0 ? to->cached_tokens : 0) +
				   (to->cache_write_tokens > 0 ? to->cache_write_tokens : 0);
	if (to->input_tokens >= 0 && to->output_tokens >= 0)
		to->total_tokens = to->input_tokens + to->output_tokens;
}

static void take_stop(struct uar_reply *a, const struct uar_json *j)
{
	static const struct {
		const char *theirs, *ours;
	} reasons[] = {
		{ "end_turn", "stop" },	      { "stop_sequence", "stop" },
		{ "max_tokens", "length" },   { "model_context_window_exceeded", "length" },
		{ "tool_use", "tool_calls" }, { "refusal", "content_filter" },
	};
	uar_str reason = uar_json_str(j, UAR_STR(""));

	if (!reason.n)
		return;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (uar_str_is(reason, reasons[i].theirs)) {
			reason = uar_str_c(reasons[i].ours);
			break;
		}
	if (uar_str_is(reason, "tool_calls") && !a->calls && a->asked.output_tool.n)
		reason = UAR_STR("stop");
	uar_reply_stop(a, reason);
}

static void take_block_event(struct uar_reply *a, const struct uar_json *j, bool starts)
{
	int64_t index = uar_json_int(uar_json_get(j, UAR_STR("index")), -1);
	const struct uar_json *delta = uar_json_get(j, UAR_STR("delta"));
	struct uar_reply_block *b;

	if (starts) {
		const struct uar_json *block = uar_json_get(j, UAR_STR("content_block"));

		begin_block(a, index, block ? block : j);
		a->brought.pieces = 0; /* the next one like it begins a block, too: it is read */
		return;
	}
	b = uar_reply_block_find(a, index);
	if (!b)
		(void)uar_reply_broken(a, "the provider goes on with a block that has not begun");
	else if (delta)
		take_delta(a, b, delta);
	else
		uar_reply_turn(a, NULL);
}

static void take_message(struct uar_reply *a, const struct uar_json *m)
{
	const struct uar_json *usage = uar_json_get(m, UAR_STR("usage"));

	uar_reply_model(a, uar_json_get(m, UAR_STR("model")));
	take_stop(a, uar_json_get(m, UAR_STR("stop_reason")));
	if (usage)
		take_usage(a, usage);
}

static void take_message_delta(struct uar_reply *a, const struct uar_json *j)
{
	const struct uar_json *delta = uar_json_get(j, UAR_STR("delta"));
	const struct uar_json *usage = uar_json_get(j, UAR_STR("usage"));

	take_stop(a, uar_json_get(delta, UAR_STR("stop_reason")));
	if (usage)
		take_usage(a, usage);
}

/* Pings and events that are not known say nothing. */
static uar_err take_event(struct uar_reply *a, const struct uar_json *j)
{
	uar_str type = uar_json_text(j, "type");

	if (uar_str_is(type, "content_block_delta") || uar_str_is(type, "content_block_stop"))
		take_block_event(a, j, false);
	else if (uar_str_is(type, "content_block_start"))
		take_block_event(a, j, true);
	else if (uar_str_is(type, "message_start"))
		take_message(a, uar_json_get(j, UAR_STR("message")));
	else if (uar_str_is(type, "message_delta"))
		take_message_delta(a, j);
	else if (uar_str_is(type, "message_stop"))
		a->closed = true;
	else if (uar_str_is(type, "error") || uar_json_get(j, UAR_STR("error")))
		uar_reply_fail_json(&a->verdict, j, 200, a->secret);
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

static void put_whole(struct uar_reply *a, struct uar_reply_block *b, const struct uar_json *j)
{
	uar_buf_clear(&b->opaque);
	b->form = FORM_WHOLE;
	uar_reply_block_put(a, &b->opaque, j->text);
}

static uar_err take_whole(struct uar_reply *a, const struct uar_json *j)
{
	const struct uar_json *content = uar_json_get(j, UAR_STR("content"));
	int64_t index = 0;

	if (!content || content->kind != UAR_JSON_ARRAY) {
		uar_reply_fail_json(&a->verdict, j, 200, a->secret);
		return UAR_EPROVIDER;
	}
	for (const struct uar_json *b = content->first; b && !a->verdict.failure; b = b->next) {
		struct uar_reply_block *last;

		begin_block(a, index, b);
		last = uar_reply_block_find(a, index++);
		if (last && last->form == FORM_INPUT) /* it came whole */
			put_whole(a, last, b);
	}
	uar_reply_turn(a, NULL);
	take_message(a, j);
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

static const char *const headers[] = { "anthropic-version: 2023-06-01", NULL };

const struct uar_dialect uar_dialect_anthropic = {
	.name = "anthropic",
	.path = "/v1/messages",
	.list_path = "/v1/models",
	.key_header = "x-api-key",
	.headers = headers,
	.write = uar_anthropic_write,
	.event = take_event,
	.whole = take_whole,
	.end = end_answer,
};
