/* openai_answer.c - reads the body of a chat completion, streamed or whole.
 *
 * What it is is told by its first byte, not by its content type: proxies label
 * streams as plain text and error objects as streams. */
#include "model/openai_int.h"

#define REPLACEMENT UAR_STR("\xef\xbf\xbd") /* U+FFFD */

void uar_openai_scratch_init(struct uar_openai_scratch *s)
{
	uar_arena_init(&s->arena, 0); /* bounded by the reader's limits */
	s->repaired = uar_buf_make((size_t)UAR_LIMIT_JSON_BYTES * 3);
}

void uar_openai_scratch_fini(struct uar_openai_scratch *s)
{
	uar_arena_fini(&s->arena);
	uar_buf_fini(&s->repaired);
}

uar_err uar_openai_parse(struct uar_openai_scratch *s, uar_str text,
			 struct uar_openai_halves *halves, const struct uar_json **out)
{
	static const struct uar_json_limits limits = { .foreign = true };
	uar_err e;

	*halves = (struct uar_openai_halves){ 0 };
	uar_arena_reset(&s->arena);
	e = uar_json_parse(text, &limits, &s->arena, out, NULL);
	if (e != UAR_EUTF8)
		return e;
	uar_buf_clear(&s->repaired);
	uar_openai_repair(text, &s->repaired, halves);
	if (s->repaired.err)
		return s->repaired.err;
	uar_arena_reset(&s->arena);
	return uar_json_parse(uar_buf_str(&s->repaired), &limits, &s->arena, out, NULL);
}

static uar_err fail(struct uar_openai_answer *a, bool retryable, const char *message)
{
	uar_openai_fail(&a->verdict, UAR_MODEL_FAIL_PROVIDER, retryable, a->secret,
			uar_str_c(message));
	return UAR_EPROVIDER;
}

/* --- text -------------------------------------------------------------------- */

static void emit(struct uar_openai_answer *a, enum uar_openai_kind kind, uar_str text)
{
	if (text.n == 0 || a->verdict.failure)
		return;
	a->output += text.n;
	if (a->output > UAR_LIMIT_MODEL_OUTPUT) {
		uar_openai_fail(&a->verdict, UAR_MODEL_FAIL_LIMIT, false, a->secret,
				UAR_STR("the answer is longer than one call may be"));
		return;
	}
	a->piece(a->ctx, kind, text);
}

static void drop_half(struct uar_openai_answer *a)
{
	if (a->high)
		emit(a, a->high_kind, REPLACEMENT);
	a->high = 0;
}

void uar_openai_pair(uint32_t high, uint32_t low, char out[4])
{
	uint32_t cp = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);

	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
}

static void emit_pair(struct uar_openai_answer *a, uint32_t high, uint32_t low)
{
	char text[4];

	uar_openai_pair(high, low, text);
	a->high = 0;
	emit(a, a->high_kind, uar_str_n(text, sizeof text));
}

/* A character whose halves came in two events becomes whole again. */
static void put_halves(struct uar_openai_answer *a, enum uar_openai_kind kind, uar_str text)
{
	if (a->high && a->high_kind == kind && a->halves.low && uar_str_starts(text, REPLACEMENT)) {
		emit_pair(a, a->high, a->halves.low);
		text = uar_str_from(text, 3);
	}
	drop_half(a);
	if (a->halves.high && uar_str_ends(text, REPLACEMENT)) {
		a->high = a->halves.high;
		a->high_kind = kind;
		text.n -= 3;
	}
	emit(a, kind, text);
}

static void put(struct uar_openai_answer *a, enum uar_openai_kind kind, const struct uar_json *j)
{
	if (!j)
		return;
	if (j->kind == UAR_JSON_ARRAY) { /* content as parts */
		for (const struct uar_json *part = j->first; part; part = part->next)
			put(a, kind, uar_json_get(part, UAR_STR("text")));
		return;
	}
	if (j->kind != UAR_JSON_STRING || j->text.n == 0)
		return;
	a->brought.pieces++;
	a->brought.text = j->text;
	a->brought.kind = kind;
	if (a->high || a->halves.high)
		put_halves(a, kind, j->text);
	else
		emit(a, kind, j->text);
}

/* --- the fields of a chunk ------------------------------------------------------ */

static size_t keep(char *to, size_t room, uar_str s)
{
	s = uar_str_utf8_prefix(s, room);
	memcpy(to, s.p, s.n);
	return s.n;
}

static int64_t count_of(const struct uar_json *usage, const char *name, int64_t before)
{
	int64_t n = uar_json_int(uar_json_get(usage, uar_str_c(name)), -1);

	return n >= 0 ? n : before;
}

static void take_usage(struct uar_openai_answer *a, const struct uar_json *u)
{
	if (u->kind != UAR_JSON_OBJECT)
		return;
	a->usage.input_tokens = count_of(u, "prompt_tokens", a->usage.input_tokens);
	a->usage.output_tokens = count_of(u, "completion_tokens", a->usage.output_tokens);
	a->usage.total_tokens = count_of(u, "total_tokens", a->usage.total_tokens);
}

/* `delta` of a stream and `message` of a whole answer have the same members. Some
 * servers send the reasoning under both of its names. */
static void take_message(struct uar_openai_answer *a, const struct uar_json *message)
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
	put(a, UAR_OPENAI_REASONING, thought);
	put(a, UAR_OPENAI_TEXT, text);
	put(a, UAR_OPENAI_TEXT, refusal);
	if (!calls)
		return;
	a->brought.pieces += calls->count;
	uar_openai_calls_take(a, calls);
}

static void take_choice(struct uar_openai_answer *a, const struct uar_json *choice)
{
	for (const struct uar_json *m = choice->first; m; m = m->next) {
		if (uar_str_is(m->key, "delta") || uar_str_is(m->key, "message")) {
			take_message(a, m);
		} else if (uar_str_is(m->key, "finish_reason") && m->kind == UAR_JSON_STRING) {
			a->finished = true;
			a->stop_reason_n = keep(a->stop_reason, sizeof a->stop_reason, m->text);
		}
	}
}

/* We ask for one choice; another one would be a second answer mixed into it. */
static void take_choices(struct uar_openai_answer *a, const struct uar_json *choices)
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

static uar_err take_chunk(struct uar_openai_answer *a, const struct uar_json *chunk)
{
	const struct uar_json *m = chunk->kind == UAR_JSON_OBJECT ? chunk->first : NULL;

	for (; m; m = m->next) {
		if (uar_str_is(m->key, "choices"))
			take_choices(a, m);
		else if (uar_str_is(m->key, "usage"))
			take_usage(a, m);
		else if (uar_str_is(m->key, "model") && a->model_n == 0)
			a->model_n = keep(a->model, sizeof a->model, uar_json_str(m, UAR_STR("")));
		else if (is_error(m))
			uar_openai_fail_json(&a->verdict, chunk, 200, a->secret);
	}
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

/* --- the bytes ------------------------------------------------------------------ */

/* Usage, name and finish are what they were when the same is said once more; calls are
 * not, nor is a character that came in halves. */
static void make_mould(struct uar_openai_answer *a, const struct uar_sse_event *ev)
{
	bool alone = a->brought.pieces == 1 && !a->high && !a->halves.high && !a->halves.low;

	if (alone && !ev->event.n)
		uar_openai_mould_make(&a->mould, ev->data, a->brought.text);
	else
		a->mould.before = a->mould.after = 0;
}

static uar_err read_event(struct uar_openai_answer *a, const struct uar_sse_event *ev)
{
	const struct uar_json *chunk;
	uar_err e;

	if (uar_str_is(uar_str_trim(ev->data), "[DONE]")) {
		a->closed = true;
		return UAR_OK;
	}
	e = uar_openai_parse(a->scratch, ev->data, &a->halves, &chunk);
	if (e == UAR_EDEPTH)
		return fail(a, false, "the provider sent an event that is nested too deeply");
	if (e)
		return fail(a, true, "the provider sent an event that is not JSON");
	if (uar_str_is(ev->event, "error")) {
		uar_openai_fail_json(&a->verdict, chunk, 200, a->secret);
		return UAR_EPROVIDER;
	}
	a->brought.pieces = 0;
	e = take_chunk(a, chunk);
	make_mould(a, ev);
	return e;
}

static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	struct uar_openai_answer *a = ctx;
	uar_str text;

	if (a->closed)
		return UAR_OK;
	a->events++;
	if (ev->event.n || !uar_openai_mould_fits(&a->mould, ev->data, &text))
		return read_event(a, ev);
	emit(a, a->brought.kind, text);
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

void uar_openai_answer_init(struct uar_openai_answer *a)
{
	uar_sse_parser_init(&a->sse, UAR_LIMIT_MODEL_LINE, on_event, a);
	a->whole = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	a->usage = (struct uar_model_usage){ -1, -1, -1 };
}

void uar_openai_answer_fini(struct uar_openai_answer *a)
{
	uar_sse_parser_fini(&a->sse);
	uar_buf_fini(&a->whole);
	uar_openai_calls_destroy(a->calls);
}

static enum uar_openai_form form_of(char first)
{
	if (first == '{' || first == '[')
		return UAR_OPENAI_WHOLE;
	return first == '<' ? UAR_OPENAI_FOREIGN : UAR_OPENAI_STREAM;
}

static uar_str skip_space(uar_str s)
{
	while (s.n && strchr(" \t\r\n", s.p[0]) && s.p[0])
		s = uar_str_from(s, 1);
	return s;
}

static uar_err feed_stream(struct uar_openai_answer *a, uar_str bytes)
{
	uar_err e = uar_sse_parser_feed(&a->sse, bytes);

	if (e == UAR_ETOOBIG)
		return fail(a, false, "the provider sent an event larger than its limit");
	return e == UAR_ENOMEM ? fail(a, true, "out of memory") : e;
}

static uar_err feed_whole(struct uar_openai_answer *a, uar_str bytes)
{
	uar_buf_add_str(&a->whole, bytes);
	if (a->whole.err == UAR_ETOOBIG)
		return fail(a, false, "the provider sent an answer larger than its limit");
	return a->whole.err ? fail(a, true, "out of memory") : UAR_OK;
}

uar_err uar_openai_answer_feed(struct uar_openai_answer *a, uar_str bytes)
{
	if (a->verdict.failure)
		return UAR_EPROVIDER;
	if (a->form == UAR_OPENAI_NOTHING) {
		bytes = skip_space(bytes);
		if (bytes.n == 0)
			return UAR_OK;
		a->form = form_of(bytes.p[0]);
	}
	switch (a->form) {
	case UAR_OPENAI_STREAM: return feed_stream(a, bytes);
	case UAR_OPENAI_WHOLE: return feed_whole(a, bytes);
	case UAR_OPENAI_NOTHING:
	case UAR_OPENAI_FOREIGN: break;
	}
	return fail(a, false, "the provider answered with something that is not an event stream");
}

static void end_whole(struct uar_openai_answer *a)
{
	const struct uar_json *answer;
	uar_err e = uar_openai_parse(a->scratch, uar_buf_str(&a->whole), &a->halves, &answer);

	if (e) {
		fail(a, e != UAR_EDEPTH,
		     e == UAR_EDEPTH ? "the provider sent an answer that is nested too deeply"
				     : "the provider sent an answer that is not JSON");
		return;
	}
	if (answer->kind == UAR_JSON_ARRAY || take_chunk(a, answer) != UAR_OK)
		uar_openai_fail_json(&a->verdict, answer, 200, a->secret);
	else if (a->output == 0 && !a->finished)
		uar_openai_fail_json(&a->verdict, answer, 200, a->secret);
	a->finished = true;
}

void uar_openai_answer_end(struct uar_openai_answer *a, uar_err transport, const char *reason)
{
	if (a->form == UAR_OPENAI_WHOLE && !transport && !a->verdict.failure)
		end_whole(a);
	drop_half(a);
	if (a->closed && !a->finished && !a->output && !a->calls && !a->verdict.failure)
		fail(a, true, "the provider ended its answer without a word and without a reason");
	if (a->verdict.failure || a->finished || a->closed) {
		uar_openai_calls_end(a);
		return;
	}
	if (transport)
		uar_openai_fail_transport(&a->verdict, transport, a->secret, reason);
	else if (a->form == UAR_OPENAI_STREAM && a->events == 0)
		fail(a, true, "the provider's answer holds no event");
	else
		uar_openai_fail(&a->verdict, UAR_MODEL_FAIL_NETWORK, true, a->secret,
				UAR_STR("the stream ended before the answer was complete"));
}
