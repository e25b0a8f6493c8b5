/* reply_calls.c - puts together what a model asks to be done, for all dialects.
 *
 * A stream brings calls in pieces: the first names id and tool, all bring arguments. What
 * cannot be told apart for sure is a failure of the provider, never a guess. */
#include "model/reply_int.h"

#include <stdio.h>

#include "base/alloc.h"
#include "model/limits.h"

#define REPLACEMENT UAR_STR("\xef\xbf\xbd") /* U+FFFD */

static void broken(struct uar_reply *a, const char *message)
{
	uar_reply_fail(&a->verdict, UAR_MODEL_FAIL_PROVIDER, true, a->secret, uar_str_c(message));
}

static void too_much(struct uar_reply *a, const char *message)
{
	uar_reply_fail(&a->verdict, UAR_MODEL_FAIL_LIMIT, false, a->secret, uar_str_c(message));
}

struct uar_reply_call *uar_reply_call_add(struct uar_reply *a, int64_t index)
{
	struct uar_reply_calls *c = a->calls;
	struct uar_reply_call *call;

	if (!c)
		c = a->calls = uar_zalloc(sizeof *a->calls);
	if (!c) {
		broken(a, "out of memory");
		return NULL;
	}
	if (c->count == UAR_LIMIT_MODEL_CALLS) {
		too_much(a, "the answer asks for more tools at once than it may");
		return NULL;
	}
	call = &c->at[c->count++];
	call->index = index;
	call->arguments = uar_buf_make(UAR_LIMIT_MODEL_CALL_BYTES);
	return call;
}

/* --- its members ------------------------------------------------------------------------ */

void uar_reply_call_id(struct uar_reply_call *call, uar_str id)
{
	if (call->id_n || !uar_str_is_id(id))
		return;
	memcpy(call->id, id.p, id.n);
	call->id_n = id.n;
}

void uar_reply_call_name(struct uar_reply *a, struct uar_reply_call *call, uar_str name)
{
	if (name.n > sizeof call->name) {
		broken(a, "the provider asks for a tool whose name is too long");
	} else if (call->name_n == 0) {
		memcpy(call->name, name.p, name.n);
		call->name_n = name.n;
	} else if (name.n && !uar_str_eq(name, uar_str_n(call->name, call->name_n))) {
		broken(a, "the provider gives one tool call two names");
	}
}

static void add_bytes(struct uar_reply *a, struct uar_reply_call *call, uar_str text)
{
	a->output += text.n; /* it is at work */
	a->calls->bytes += text.n;
	if (a->calls->bytes > UAR_LIMIT_MODEL_CALL_BYTES)
		too_much(a, "the answer asks for tools at greater length than it may");
	else
		uar_buf_add_str(&call->arguments, text);
	if (call->arguments.err == UAR_ENOMEM)
		broken(a, "out of memory");
}

/* A character whose halves came in two events becomes whole again. */
static void add_text(struct uar_reply *a, struct uar_reply_call *call, uar_str text)
{
	char pair[4];

	if (call->high && text.n) {
		if (a->text.halves.low && uar_str_starts(text, REPLACEMENT)) {
			uar_reply_pair(call->high, a->text.halves.low, pair);
			add_bytes(a, call, uar_str_n(pair, sizeof pair));
			text = uar_str_from(text, 3);
		} else {
			add_bytes(a, call, REPLACEMENT);
		}
		call->high = 0;
	}
	if (a->text.halves.high && uar_str_ends(text, REPLACEMENT)) {
		call->high = a->text.halves.high;
		text.n -= 3;
	}
	add_bytes(a, call, text);
}

void uar_reply_call_arguments(struct uar_reply *a, struct uar_reply_call *call,
			      const struct uar_json *j)
{
	if (!j || j->kind == UAR_JSON_NULL)
		return;
	if (j->kind == UAR_JSON_STRING)
		add_text(a, call, j->text);
	else if (j->kind == UAR_JSON_OBJECT && call->arguments.n == 0)
		add_bytes(a, call, j->text); /* not as text: some servers do so */
	else
		broken(a, "the provider gives a tool call arguments that are neither text nor an "
			  "object");
}

/* --- the end ------------------------------------------------------------------------------ */

static bool is_double(const struct uar_reply_calls *c, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (uar_str_eq(c->list[i].id, uar_str_n(c->at[index].id, c->at[index].id_n)))
			return true;
	return false;
}

static void settle(struct uar_reply *a, size_t index)
{
	struct uar_reply_call *call = &a->calls->at[index];
	int n;

	if (call->name_n == 0)
		broken(a, "the provider asks for a tool without a name");
	if (call->high)
		add_bytes(a, call, REPLACEMENT);
	if (call->id_n == 0 || is_double(a->calls, index)) {
		n = snprintf(call->id, sizeof call->id, "uar_%zu_%zu", a->asked.messages,
			     index + 1);
		call->id_n = (size_t)n;
	}
	a->calls->list[index] = (struct uar_model_tool_call){
		.id = uar_str_n(call->id, call->id_n),
		.name = uar_str_n(call->name, call->name_n),
		.arguments = call->arguments.n ? uar_buf_str(&call->arguments) : UAR_STR("{}"),
	};
}

/* Calls of an answer that was cut are not what the model wanted. */
static bool is_whole(uar_str reason)
{
	static const char *const whole[] = { "", "tool_calls", "stop", "function_call" };

	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (uar_str_is(reason, whole[i]))
			return true;
	return false;
}

void uar_reply_calls_end(struct uar_reply *a)
{
	uar_str reason = uar_str_n(a->stop_reason, a->stop_reason_n);

	if (!a->calls && uar_str_is(reason, "tool_calls"))
		broken(a, "the provider says that it asks for tools, and names none");
	if (!a->calls || a->verdict.failure)
		return;
	if (uar_str_is(reason, "length"))
		too_much(a, "the answer was cut for its length while it asked for tools");
	else if (!is_whole(reason))
		broken(a, "the answer ended for another reason while it asked for tools");
	for (size_t i = 0; i < a->calls->count; i++)
		settle(a, i);
}

void uar_reply_calls_destroy(struct uar_reply_calls *c)
{
	for (size_t i = 0; c && i < c->count; i++)
		uar_buf_fini(&c->at[i].arguments);
	uar_free(c);
}
