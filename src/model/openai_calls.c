/* openai_calls.c - puts together what a model asks to be done.
 *
 * A stream brings calls in pieces that an index holds together: the first names id and
 * tool, all bring arguments. Servers differ: whole calls without an index, the same
 * index for all, id and name again in each piece. What cannot be told apart for sure is a
 * failure of the provider, never a guess. */
#include "model/openai_int.h"

#include <stdio.h>

#include "base/alloc.h"

#define REPLACEMENT UAR_STR("\xef\xbf\xbd") /* U+FFFD */

enum { NO_INDEX = -1 };

static void broken(struct uar_openai_answer *a, const char *message)
{
	uar_openai_fail(&a->verdict, UAR_MODEL_FAIL_PROVIDER, true, a->secret, uar_str_c(message));
}

static void too_much(struct uar_openai_answer *a, const char *message)
{
	uar_openai_fail(&a->verdict, UAR_MODEL_FAIL_LIMIT, false, a->secret, uar_str_c(message));
}

/* --- which call a piece belongs to ----------------------------------------------------- */

/* The newest with that index; a further id under it begins another call. */
static struct uar_openai_call *by_index(struct uar_openai_calls *c, int64_t index, uar_str id)
{
	for (size_t i = c->count; i-- > 0;)
		if (c->at[i].index == index)
			return id.n == 0 || c->at[i].id_n == 0 ||
					       uar_str_eq(id, uar_str_n(c->at[i].id, c->at[i].id_n))
				       ? &c->at[i]
				       : NULL;
	return NULL;
}

static struct uar_openai_call *without_index(struct uar_openai_calls *c, uar_str id, uar_str name)
{
	struct uar_openai_call *last = c->count ? &c->at[c->count - 1] : NULL;

	if (id.n)
		return last && uar_str_eq(id, uar_str_n(last->id, last->id_n)) ? last : NULL;
	return last && (name.n == 0 || last->name_n == 0) ? last : NULL;
}

static struct uar_openai_call *add_call(struct uar_openai_answer *a, int64_t index)
{
	struct uar_openai_calls *c = a->calls;
	struct uar_openai_call *call;

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

/* One that is not usable as it is gets one of ours at the end. */
static void take_id(struct uar_openai_call *call, uar_str id)
{
	if (call->id_n || !uar_str_is_id(id))
		return;
	memcpy(call->id, id.p, id.n);
	call->id_n = id.n;
}

static void take_name(struct uar_openai_answer *a, struct uar_openai_call *call, uar_str name)
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

static void add_bytes(struct uar_openai_answer *a, struct uar_openai_call *call, uar_str text)
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
static void add_text(struct uar_openai_answer *a, struct uar_openai_call *call, uar_str text)
{
	char pair[4];

	if (call->high && text.n) {
		if (a->halves.low && uar_str_starts(text, REPLACEMENT)) {
			uar_openai_pair(call->high, a->halves.low, pair);
			add_bytes(a, call, uar_str_n(pair, sizeof pair));
			text = uar_str_from(text, 3);
		} else {
			add_bytes(a, call, REPLACEMENT);
		}
		call->high = 0;
	}
	if (a->halves.high && uar_str_ends(text, REPLACEMENT)) {
		call->high = a->halves.high;
		text.n -= 3;
	}
	add_bytes(a, call, text);
}

static void take_arguments(struct uar_openai_answer *a, struct uar_openai_call *call,
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

static void take_call(struct uar_openai_answer *a, const struct uar_json *j)
{
	const struct uar_json *f = uar_json_get(j, UAR_STR("function"));
	uar_str id = uar_json_str(uar_json_get(j, UAR_STR("id")), UAR_STR(""));
	uar_str name = uar_json_str(uar_json_get(f, UAR_STR("name")), UAR_STR(""));
	uar_str type = uar_json_str(uar_json_get(j, UAR_STR("type")), UAR_STR(""));
	int64_t index = uar_json_int(uar_json_get(j, UAR_STR("index")), NO_INDEX);
	struct uar_openai_call *call;

	if (j->kind != UAR_JSON_OBJECT || (type.n && !uar_str_is(type, "function"))) {
		broken(a, "the provider asks for something that is not a tool of ours");
		return;
	}
	call = index == NO_INDEX ? without_index(a->calls, id, name)
				 : by_index(a->calls, index, id);
	if (!call)
		call = add_call(a, index);
	if (!call)
		return;
	take_id(call, id);
	take_name(a, call, name);
	take_arguments(a, call, uar_json_get(f, UAR_STR("arguments")));
}

void uar_openai_calls_take(struct uar_openai_answer *a, const struct uar_json *calls)
{
	if (calls->kind != UAR_JSON_ARRAY || calls->count == 0)
		return;
	if (!a->calls)
		a->calls = uar_zalloc(sizeof *a->calls);
	if (!a->calls)
		broken(a, "out of memory");
	for (const struct uar_json *j = calls->first; j && !a->verdict.failure; j = j->next)
		take_call(a, j);
}

/* --- the end ------------------------------------------------------------------------------ */

static bool is_double(const struct uar_openai_calls *c, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (uar_str_eq(c->list[i].id, uar_str_n(c->at[index].id, c->at[index].id_n)))
			return true;
	return false;
}

static void settle(struct uar_openai_answer *a, size_t index)
{
	struct uar_openai_call *call = &a->calls->at[index];
	int n;

	if (call->name_n == 0)
		broken(a, "the provider asks for a tool without a name");
	if (call->high)
		add_bytes(a, call, REPLACEMENT);
	if (call->id_n == 0 || is_double(a->calls, index)) {
		n = snprintf(call->id, sizeof call->id, "uar_%zu_%zu", a->asked, index + 1);
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

void uar_openai_calls_end(struct uar_openai_answer *a)
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

void uar_openai_calls_destroy(struct uar_openai_calls *c)
{
	for (size_t i = 0; c && i < c->count; i++)
		uar_buf_fini(&c->at[i].arguments);
	uar_free(c);
}
