/* agui_proto.c - AG-UI events in their protobuf binding (package ag_ui, proto3).
 *
 * The JSON event is the source: a table says which member becomes which field. Members that the
 * binding has no field for are left out. */
#include "proto/agui.h"

enum { WIRE_VARINT = 0, WIRE_DOUBLE = 1, WIRE_BYTES = 2 };

struct field;
typedef void put_fn(struct uar_buf *b, const struct field *f, const struct uar_json *v);

struct field {
	const char *key;
	unsigned number;
	put_fn *put;
	const struct field *of; /* fields of the message that it is, or of each; ends with NULL */
};

/* --- the wire ------------------------------------------------------------------------------- */

static void put_varint(struct uar_buf *b, uint64_t v)
{
	while (v > 0x7f) {
		uar_buf_add_char(b, (char)(v | 0x80));
		v >>= 7;
	}
	uar_buf_add_char(b, (char)v);
}

static void put_tag(struct uar_buf *b, unsigned number, unsigned wire)
{
	put_varint(b, (uint64_t)number << 3 | wire);
}

/* Begins a field of bytes; what follows until close_bytes is in it. */
static size_t open_bytes(struct uar_buf *b, unsigned number)
{
	put_tag(b, number, WIRE_BYTES);
	return b->n;
}

/* The length is known now, and moves in front. */
static void close_bytes(struct uar_buf *b, size_t start)
{
	size_t n = b->n - start, extra;
	char length[10];

	if (b->err)
		return;
	put_varint(b, n);
	extra = b->n - start - n;
	if (b->err || extra > sizeof length)
		return;
	memcpy(length, b->p + start + n, extra);
	memmove(b->p + start + extra, b->p + start, n);
	memcpy(b->p + start, length, extra);
}

static void put_bytes(struct uar_buf *b, unsigned number, uar_str s)
{
	put_tag(b, number, WIRE_BYTES);
	put_varint(b, s.n);
	uar_buf_add_str(b, s);
}

static const struct uar_json *find_member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

/* --- values ----------------------------------------------------------------------------------- */

static void put_string(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	if (v->kind == UAR_JSON_STRING)
		put_bytes(b, f->number, uar_json_str(v, UAR_STR("")));
}

static void put_int(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	put_tag(b, f->number, WIRE_VARINT);
	put_varint(b, (uint64_t)uar_json_int(v, 0));
}

static void put_bool(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	put_tag(b, f->number, WIRE_VARINT);
	put_varint(b, uar_json_bool(v, false));
}

static void put_strings(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	for (const struct uar_json *s = uar_json_first(v); s; s = s->next)
		put_string(b, f, s);
}

static void put_fields(struct uar_buf *b, const struct field *f, const struct uar_json *object)
{
	for (; f->key; f++) {
		const struct uar_json *v = find_member(object, f->key);

		if (v)
			f->put(b, f, v);
	}
}

static void put_message(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	size_t start = open_bytes(b, f->number);

	put_fields(b, f->of, v);
	close_bytes(b, start);
}

static void put_messages(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	for (const struct uar_json *m = uar_json_first(v); m; m = m->next)
		put_message(b, f, m);
}

/* --- google.protobuf.Value and Struct ------------------------------------------------------- */

static void put_value(struct uar_buf *b, const struct field *f, const struct uar_json *v);

static void put_members(struct uar_buf *b, const struct uar_json *object)
{
	static const struct field value = { .number = 2 };

	for (const struct uar_json *m = uar_json_first(object); m; m = m->next) {
		size_t entry = open_bytes(b, 1);

		put_bytes(b, 1, m->key);
		put_value(b, &value, m);
		close_bytes(b, entry);
	}
}

static void put_struct(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	size_t start;

	if (v->kind != UAR_JSON_OBJECT)
		return;
	start = open_bytes(b, f->number);
	put_members(b, v);
	close_bytes(b, start);
}

static void put_number(struct uar_buf *b, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	put_tag(b, 2, WIRE_DOUBLE);
	for (unsigned i = 0; i < 8; i++)
		uar_buf_add_char(b, (char)(bits >> 8 * i));
}

static void put_elements(struct uar_buf *b, const struct uar_json *list)
{
	static const struct field element = { .number = 1 };
	size_t start = open_bytes(b, 6);

	for (const struct uar_json *m = uar_json_first(list); m; m = m->next)
		put_value(b, &element, m);
	close_bytes(b, start);
}

static void put_value(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	static const struct field truth = { .number = 4 }, members = { .number = 5 };
	size_t start = open_bytes(b, f->number);

	switch (v->kind) {
	case UAR_JSON_NULL:
		put_tag(b, 1, WIRE_VARINT);
		put_varint(b, 0);
		break;
	case UAR_JSON_BOOL: put_bool(b, &truth, v); break;
	case UAR_JSON_STRING: put_bytes(b, 3, uar_json_str(v, UAR_STR(""))); break;
	case UAR_JSON_OBJECT: put_struct(b, &members, v); break;
	case UAR_JSON_ARRAY: put_elements(b, v); break;
	default: put_number(b, uar_json_double(v, 0)); break;
	}
	close_bytes(b, start);
}

/* --- content -------------------------------------------------------------------------------- */

static const struct field data_source[] = { { "value", 1, put_string, NULL },
					    { "mimeType", 2, put_string, NULL },
					    { 0 } };
static const struct field file_source[] = { { "value", 1, put_string, NULL },
					    { "provider", 2, put_string, NULL },
					    { "mimeType", 3, put_string, NULL },
					    { 0 } };

/* Which of several messages it is, its type says. */
static void put_chosen(struct uar_buf *b, const struct field *choices, const struct uar_json *v)
{
	uar_str type = uar_json_text(v, "type");

	for (; choices->key; choices++)
		if (uar_str_is(type, choices->key))
			put_message(b, choices, v);
}

static void put_source(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	static const struct field sources[] = { { "data", 1, NULL, data_source },
						{ "url", 2, NULL, data_source },
						{ "file", 3, NULL, file_source },
						{ 0 } };
	size_t start = open_bytes(b, f->number);

	put_chosen(b, sources, v);
	close_bytes(b, start);
}

static const struct field text_part[] = { { "text", 1, put_string, NULL },
					  { "id", 2, put_string, NULL },
					  { "metadata", 3, put_value, NULL },
					  { 0 } };
static const struct field media_part[] = { { "source", 1, put_source, NULL },
					   { "metadata", 2, put_value, NULL },
					   { "id", 3, put_string, NULL },
					   { 0 } };

static void put_parts(struct uar_buf *b, unsigned number, const struct uar_json *list)
{
	static const struct field parts[] = {
		{ "text", 1, NULL, text_part },	     { "image", 2, NULL, media_part },
		{ "audio", 3, NULL, media_part },    { "video", 4, NULL, media_part },
		{ "document", 5, NULL, media_part }, { 0 }
	};

	for (const struct uar_json *p = uar_json_first(list); p; p = p->next) {
		size_t start = open_bytes(b, number);

		put_chosen(b, parts, p);
		close_bytes(b, start);
	}
}

static void put_content(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	static const struct field activity = { .number = 13 };

	if (v->kind == UAR_JSON_OBJECT)
		put_struct(b, &activity, v);
	else if (v->kind == UAR_JSON_ARRAY)
		put_parts(b, 8, v);
	else
		put_string(b, f, v);
}

static void put_result(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	if (v->kind == UAR_JSON_ARRAY)
		put_parts(b, 7, v);
	else
		put_string(b, f, v);
}

/* --- messages of events --------------------------------------------------------------------- */

static const struct field function_fields[] = { { "name", 1, put_string, NULL },
						{ "arguments", 2, put_string, NULL },
						{ 0 } };
static const struct field call_fields[] = { { "id", 1, put_string, NULL },
					    { "type", 2, put_string, NULL },
					    { "function", 3, put_message, function_fields },
					    { "metadata", 4, put_struct, NULL },
					    { "encryptedValue", 5, put_string, NULL },
					    { 0 } };
static const struct field message_fields[] = { { "id", 1, put_string, NULL },
					       { "role", 2, put_string, NULL },
					       { "content", 3, put_content, NULL },
					       { "name", 4, put_string, NULL },
					       { "toolCalls", 5, put_messages, call_fields },
					       { "toolCallId", 6, put_string, NULL },
					       { "error", 7, put_string, NULL },
					       { "metadata", 9, put_struct, NULL },
					       { "subagentRunId", 10, put_string, NULL },
					       { "encryptedValue", 11, put_string, NULL },
					       { "activityType", 12, put_string, NULL },
					       { 0 } };
static const struct field usage_fields[] = { { "provider", 1, put_string, NULL },
					     { "model", 2, put_string, NULL },
					     { "inputTokens", 3, put_int, NULL },
					     { "outputTokens", 4, put_int, NULL },
					     { "totalTokens", 5, put_int, NULL },
					     { "reasoningTokens", 6, put_int, NULL },
					     { "cachedInputTokens", 7, put_int, NULL },
					     { "cacheWriteInputTokens", 8, put_int, NULL },
					     { 0 } };
static const struct field interrupt_fields[] = { { "id", 1, put_string, NULL },
						 { "reason", 2, put_string, NULL },
						 { "message", 3, put_string, NULL },
						 { "toolCallId", 4, put_string, NULL },
						 { "responseSchema", 5, put_value, NULL },
						 { "expiresAt", 6, put_string, NULL },
						 { "metadata", 7, put_value, NULL },
						 { "subagentRunId", 8, put_string, NULL },
						 { 0 } };

/* An outcome has no message of its own: its members are fields of the event. */
static void put_outcome(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	put_fields(b, f->of, v);
}
static const struct field outcome_fields[] = { { "type", 5, put_string, NULL },
					       { "interrupts", 6, put_messages, interrupt_fields },
					       { "pendingToolCallIds", 8, put_strings, NULL },
					       { 0 } };
static const struct field subagent_outcome[] = { { "type", 4, put_string, NULL },
						 { "interruptIds", 5, put_strings, NULL },
						 { 0 } };

static void put_operation(struct uar_buf *b, const struct field *f, const struct uar_json *v)
{
	static const char *const names[] = { "add", "remove", "replace", "move", "copy", "test" };
	unsigned i = 0;

	while (i < ARRAY_LEN(names) && !uar_str_is(uar_json_str(v, UAR_STR("")), names[i]))
		i++;
	if (!i || i == ARRAY_LEN(names))
		return; /* the first one is not written */
	put_tag(b, f->number, WIRE_VARINT);
	put_varint(b, i);
}
static const struct field patch_fields[] = { { "op", 1, put_operation, NULL },
					     { "path", 2, put_string, NULL },
					     { "from", 3, put_string, NULL },
					     { "value", 4, put_value, NULL },
					     { 0 } };

/* --- events --------------------------------------------------------------------------------- */

#define STRING(KEY, NUMBER)                                                                        \
	{                                                                                          \
		KEY, NUMBER, put_string, NULL                                                      \
	}
#define EVENT(NAME, ...) static const struct field NAME[] = { __VA_ARGS__, { 0 } }

EVENT(text_start, STRING("messageId", 2), STRING("role", 3), STRING("name", 4),
      STRING("subagentRunId", 5));
EVENT(text_content, STRING("messageId", 2), STRING("delta", 3), STRING("subagentRunId", 4));
EVENT(text_end, STRING("messageId", 2), STRING("subagentRunId", 3));
EVENT(tool_start, STRING("toolCallId", 2), STRING("toolCallName", 3), STRING("parentMessageId", 4),
      STRING("subagentRunId", 5));
EVENT(tool_args, STRING("toolCallId", 2), STRING("delta", 3), STRING("subagentRunId", 4));
EVENT(tool_end, STRING("toolCallId", 2), STRING("subagentRunId", 3));
EVENT(tool_result, STRING("subagentRunId", 2), STRING("messageId", 3), STRING("toolCallId", 4),
      { "content", 5, put_result, NULL }, STRING("role", 6));
EVENT(state_snapshot, { "snapshot", 2, put_value, NULL }, STRING("subagentRunId", 3));
EVENT(state_delta, { "delta", 2, put_messages, patch_fields }, STRING("subagentRunId", 3));
EVENT(messages_snapshot, { "messages", 2, put_messages, message_fields });
EVENT(activity_snapshot, STRING("subagentRunId", 2), STRING("messageId", 3),
      STRING("activityType", 4), { "content", 5, put_struct, NULL },
      { "replace", 6, put_bool, NULL });
EVENT(activity_delta, STRING("subagentRunId", 2), STRING("messageId", 3), STRING("activityType", 4),
      { "patch", 5, put_messages, patch_fields });
EVENT(raw, { "event", 2, put_value, NULL }, STRING("source", 3), STRING("subagentRunId", 4));
EVENT(custom, STRING("name", 2), { "value", 3, put_value, NULL }, STRING("subagentRunId", 4));
EVENT(run_started, STRING("threadId", 2), STRING("runId", 3), STRING("parentRunId", 4),
      STRING("protocolVersion", 6));
EVENT(run_finished, STRING("threadId", 2), STRING("runId", 3), { "result", 4, put_value, NULL },
      { "outcome", 0, put_outcome, outcome_fields }, { "usage", 7, put_messages, usage_fields });
EVENT(run_error, STRING("code", 2), STRING("message", 3),
      { "usage", 4, put_messages, usage_fields });
EVENT(step, STRING("stepName", 2), STRING("subagentRunId", 3));
EVENT(reasoning, STRING("subagentRunId", 2), STRING("messageId", 3), STRING("role", 4),
      STRING("delta", 4));
EVENT(encrypted, STRING("subagentRunId", 2), STRING("subtype", 3), STRING("entityId", 4),
      STRING("encryptedValue", 5));
EVENT(subagent_started, STRING("subagentRunId", 2), STRING("name", 3), STRING("description", 4),
      STRING("parentSubagentRunId", 5), STRING("parentToolCallId", 6),
      STRING("parentMessageId", 7));
EVENT(subagent_finished, STRING("subagentRunId", 2), { "result", 3, put_value, NULL },
      { "outcome", 0, put_outcome, subagent_outcome });
EVENT(subagent_error, STRING("subagentRunId", 2), STRING("message", 3), STRING("code", 4));

static const struct event {
	const char *type;
	unsigned number, value; /* of the field in Event; of the enumeration */
	const struct field *fields;
} events[] = {
	{ "TEXT_MESSAGE_START", 1, 0, text_start },
	{ "TEXT_MESSAGE_CONTENT", 2, 1, text_content },
	{ "TEXT_MESSAGE_END", 3, 2, text_end },
	{ "TOOL_CALL_START", 4, 3, tool_start },
	{ "TOOL_CALL_ARGS", 5, 4, tool_args },
	{ "TOOL_CALL_END", 6, 5, tool_end },
	{ "STATE_SNAPSHOT", 7, 6, state_snapshot },
	{ "STATE_DELTA", 8, 7, state_delta },
	{ "MESSAGES_SNAPSHOT", 9, 8, messages_snapshot },
	{ "RAW", 10, 9, raw },
	{ "CUSTOM", 11, 10, custom },
	{ "RUN_STARTED", 12, 11, run_started },
	{ "RUN_FINISHED", 13, 12, run_finished },
	{ "RUN_ERROR", 14, 13, run_error },
	{ "STEP_STARTED", 15, 14, step },
	{ "STEP_FINISHED", 16, 15, step },
	{ "SUBAGENT_STARTED", 19, 16, subagent_started },
	{ "SUBAGENT_FINISHED", 20, 17, subagent_finished },
	{ "SUBAGENT_ERROR", 21, 18, subagent_error },
	{ "TOOL_CALL_RESULT", 22, 21, tool_result },
	{ "ACTIVITY_SNAPSHOT", 23, 22, activity_snapshot },
	{ "ACTIVITY_DELTA", 24, 23, activity_delta },
	{ "REASONING_START", 25, 24, reasoning },
	{ "REASONING_MESSAGE_START", 26, 25, reasoning },
	{ "REASONING_MESSAGE_CONTENT", 27, 26, reasoning },
	{ "REASONING_MESSAGE_END", 28, 27, reasoning },
	{ "REASONING_END", 30, 29, reasoning },
	{ "REASONING_ENCRYPTED_VALUE", 31, 30, encrypted },
};

/* What every event has; it is there also when all of it is left out. */
static void put_base(struct uar_buf *b, unsigned type, const struct uar_json *event)
{
	static const struct field base[] = { { "timestamp", 2, put_int, NULL },
					     { "rawEvent", 3, put_value, NULL },
					     { "metadata", 4, put_struct, NULL },
					     { 0 } };
	size_t start = open_bytes(b, 1);

	if (type) {
		put_tag(b, 1, WIRE_VARINT);
		put_varint(b, type);
	}
	put_fields(b, base, event);
	close_bytes(b, start);
}

uar_err uar_agui_proto_encode(const struct uar_json *event, struct uar_buf *out)
{
	uar_str type = uar_json_text(event, "type");
	size_t start;
	unsigned i = 0;

	while (i < ARRAY_LEN(events) && !uar_str_is(type, events[i].type))
		i++;
	if (i == ARRAY_LEN(events))
		return UAR_ESKIP;
	start = open_bytes(out, events[i].number);
	put_base(out, events[i].value, event);
	put_fields(out, events[i].fields, event);
	close_bytes(out, start);
	return out->err;
}

/* --- frames --------------------------------------------------------------------------------- */

static uar_err add_frame(uar_str json, struct uar_arena *scratch, struct uar_buf *out)
{
	const struct uar_json *event;
	size_t start = out->n, n;
	uar_err e = uar_json_parse(json, NULL, scratch, &event, NULL);

	if (e)
		return e;
	uar_buf_add(out, "\0\0\0\0", 4);
	e = uar_agui_proto_encode(event, out);
	if (e == UAR_ESKIP) {
		out->n = start;
		return UAR_OK;
	}
	n = out->n - start - 4;
	for (unsigned i = 0; i < 4 && !e; i++)
		out->p[start + i] = (char)(n >> 8 * (3 - i));
	return e;
}

uar_err uar_agui_proto_frames(uar_str frames, struct uar_arena *scratch, struct uar_buf *out)
{
	static const char mark[] = "data: ";
	uar_err e = UAR_OK;

	while (frames.n && !e) {
		uar_str line = uar_str_cut(frames, '\n', &frames);

		if (!uar_str_starts(line, uar_str_c(mark)))
			continue;
		uar_arena_reset(scratch);
		e = add_frame(uar_str_from(line, sizeof mark - 1), scratch, out);
	}
	return e;
}
