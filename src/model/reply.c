/* reply.c - reads the body of an answer, streamed or whole, for all dialects.
 *
 * What it is is told by its first byte, not by its content type: proxies label
 * streams as plain text and error objects as streams. */
#include "json/limits.h"
#include "model/limits.h"
#include "model/reply_int.h"

#define REPLACEMENT UAR_STR("\xef\xbf\xbd") /* U+FFFD */

void uar_reply_scratch_init(struct uar_reply_scratch *s)
{
	uar_arena_init(&s->arena, 0); /* bounded by the reader's limits */
	s->repaired = uar_buf_make((size_t)UAR_LIMIT_JSON_BYTES * 3);
}

void uar_reply_scratch_fini(struct uar_reply_scratch *s)
{
	uar_arena_fini(&s->arena);
	uar_buf_fini(&s->repaired);
}

uar_err uar_reply_parse(struct uar_reply_scratch *s, uar_str text, struct uar_reply_halves *halves,
			const struct uar_json **out)
{
	static const struct uar_json_limits limits = { .foreign = true };
	uar_err e;

	*halves = (struct uar_reply_halves){ 0 };
	uar_arena_reset(&s->arena);
	e = uar_json_parse(text, &limits, &s->arena, out, NULL);
	if (e != UAR_EUTF8)
		return e;
	uar_buf_clear(&s->repaired);
	uar_reply_repair(text, &s->repaired, halves);
	if (s->repaired.err)
		return s->repaired.err;
	uar_arena_reset(&s->arena);
	return uar_json_parse(uar_buf_str(&s->repaired), &limits, &s->arena, out, NULL);
}

static uar_err fail(struct uar_reply *a, bool retryable, const char *message)
{
	uar_reply_fail(&a->verdict, UAR_MODEL_FAIL_PROVIDER, retryable, a->secret,
		       uar_str_c(message));
	return UAR_EPROVIDER;
}

/* --- text -------------------------------------------------------------------- */

static void emit(struct uar_reply *a, enum uar_reply_kind kind, uar_str text)
{
	if (text.n == 0 || a->verdict.failure)
		return;
	a->output += text.n;
	if (a->output > UAR_LIMIT_MODEL_OUTPUT) {
		uar_reply_fail(&a->verdict, UAR_MODEL_FAIL_LIMIT, false, a->secret,
			       UAR_STR("the answer is longer than one call may be"));
		return;
	}
	if (a->text.copy)
		uar_buf_add_str(a->text.copy, text);
	a->piece(a->ctx, kind, text);
}

static void drop_half(struct uar_reply *a)
{
	if (a->text.high)
		emit(a, a->text.high_kind, REPLACEMENT);
	a->text.high = 0;
}

void uar_reply_pair(uint32_t high, uint32_t low, char out[4])
{
	uint32_t cp = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);

	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
}

static void emit_pair(struct uar_reply *a, uint32_t high, uint32_t low)
{
	char text[4];

	uar_reply_pair(high, low, text);
	a->text.high = 0;
	emit(a, a->text.high_kind, uar_str_n(text, sizeof text));
}

/* A character whose halves came in two events becomes whole again. */
static void put_halves(struct uar_reply *a, enum uar_reply_kind kind, uar_str text)
{
	if (a->text.high && a->text.high_kind == kind && a->text.halves.low &&
	    uar_str_starts(text, REPLACEMENT)) {
		emit_pair(a, a->text.high, a->text.halves.low);
		text = uar_str_from(text, 3);
	}
	drop_half(a);
	if (a->text.halves.high && uar_str_ends(text, REPLACEMENT)) {
		a->text.high = a->text.halves.high;
		a->text.high_kind = kind;
		text.n -= 3;
	}
	emit(a, kind, text);
}

void uar_reply_say(struct uar_reply *a, enum uar_reply_kind kind, const struct uar_json *j)
{
	if (!j || j->kind != UAR_JSON_STRING || j->text.n == 0)
		return;
	a->brought.pieces++;
	a->brought.text = j->text;
	a->brought.kind = kind;
	if (a->text.high || a->text.halves.high)
		put_halves(a, kind, j->text);
	else
		emit(a, kind, j->text);
}

void uar_reply_turn(struct uar_reply *a, struct uar_buf *copy)
{
	drop_half(a);
	a->text.copy = copy;
}

/* --- what dialects share ------------------------------------------------------------ */

static size_t keep(char *to, size_t room, uar_str s)
{
	s = uar_str_utf8_prefix(s, room);
	if (s.n)
		memcpy(to, s.p, s.n);
	return s.n;
}

uar_err uar_reply_broken(struct uar_reply *a, const char *message)
{
	return fail(a, true, message);
}

void uar_reply_model(struct uar_reply *a, const struct uar_json *name)
{
	if (a->model_n == 0)
		a->model_n = keep(a->model, sizeof a->model, uar_json_str(name, UAR_STR("")));
}

void uar_reply_stop(struct uar_reply *a, uar_str reason)
{
	a->finished = true;
	a->stop_reason_n = keep(a->stop_reason, sizeof a->stop_reason, reason);
}

int64_t uar_reply_count(const struct uar_json *usage, const char *name, int64_t before)
{
	int64_t n = uar_json_int(uar_json_get(usage, uar_str_c(name)), -1);

	return n >= 0 ? n : before;
}

/* --- the bytes ------------------------------------------------------------------ */

/* Usage, name and finish are what they were when the same is said once more; calls are
 * not, nor is a character that came in halves. One with a number may be a repetition. */
static void make_mould(struct uar_reply *a, const struct uar_sse_event *ev)
{
	bool alone = a->brought.pieces == 1 && !a->sequence && !a->text.high &&
		     !a->text.halves.high && !a->text.halves.low;

	if (alone)
		uar_reply_mould_make(&a->mould, ev, a->brought.text);
	else
		a->mould.before = a->mould.after = 0;
}

static uar_err read_event(struct uar_reply *a, const struct uar_sse_event *ev)
{
	const struct uar_json *chunk;
	uar_err e;

	if (uar_str_is(uar_str_trim(ev->data), "[DONE]")) {
		a->closed = true;
		return UAR_OK;
	}
	e = uar_reply_parse(a->scratch, ev->data, &a->text.halves, &chunk);
	if (e == UAR_EDEPTH)
		return fail(a, false, "the provider sent an event that is nested too deeply");
	if (e)
		return fail(a, true, "the provider sent an event that is not JSON");
	if (uar_str_is(ev->event, "error")) {
		uar_reply_fail_json(&a->verdict, chunk, 200, a->secret);
		return UAR_EPROVIDER;
	}
	a->brought.pieces = 0;
	e = a->dialect->event(a, chunk);
	make_mould(a, ev);
	return e;
}

static uar_err on_event(void *ctx, const struct uar_sse_event *ev)
{
	struct uar_reply *a = ctx;
	uar_str text;

	if (a->closed)
		return UAR_OK;
	a->events++;
	if (!uar_reply_mould_fits(&a->mould, ev, &text))
		return read_event(a, ev);
	emit(a, a->brought.kind, text);
	return a->verdict.failure ? UAR_EPROVIDER : UAR_OK;
}

void uar_reply_init(struct uar_reply *a)
{
	uar_sse_parser_init(&a->sse, UAR_LIMIT_MODEL_LINE, on_event, a);
	a->whole = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_list_init(&a->blocks.list);
	a->usage = UAR_MODEL_USAGE_NONE;
}

void uar_reply_fini(struct uar_reply *a)
{
	uar_sse_parser_fini(&a->sse);
	uar_buf_fini(&a->whole);
	uar_reply_calls_destroy(a->calls);
	uar_reply_blocks_fini(&a->blocks);
}

static enum uar_reply_form form_of(char first)
{
	if (first == '{' || first == '[')
		return UAR_REPLY_WHOLE;
	return first == '<' ? UAR_REPLY_FOREIGN : UAR_REPLY_STREAM;
}

static uar_str skip_space(uar_str s)
{
	while (s.n && strchr(" \t\r\n", s.p[0]) && s.p[0])
		s = uar_str_from(s, 1);
	return s;
}

static uar_err feed_stream(struct uar_reply *a, uar_str bytes)
{
	uar_err e = uar_sse_parser_feed(&a->sse, bytes);

	if (e == UAR_ETOOBIG)
		return fail(a, false, "the provider sent an event larger than its limit");
	return e == UAR_ENOMEM ? fail(a, true, "out of memory") : e;
}

static uar_err feed_whole(struct uar_reply *a, uar_str bytes)
{
	uar_buf_add_str(&a->whole, bytes);
	if (a->whole.err == UAR_ETOOBIG)
		return fail(a, false, "the provider sent an answer larger than its limit");
	return a->whole.err ? fail(a, true, "out of memory") : UAR_OK;
}

uar_err uar_reply_feed(struct uar_reply *a, uar_str bytes)
{
	if (a->verdict.failure)
		return UAR_EPROVIDER;
	if (a->form == UAR_REPLY_NOTHING) {
		bytes = skip_space(bytes);
		if (bytes.n == 0)
			return UAR_OK;
		a->form = form_of(bytes.p[0]);
	}
	switch (a->form) {
	case UAR_REPLY_STREAM: return feed_stream(a, bytes);
	case UAR_REPLY_WHOLE: return feed_whole(a, bytes);
	case UAR_REPLY_NOTHING:
	case UAR_REPLY_FOREIGN: break;
	}
	return fail(a, false, "the provider answered with something that is not an event stream");
}

static void end_whole(struct uar_reply *a)
{
	const struct uar_json *answer;
	uar_err e = uar_reply_parse(a->scratch, uar_buf_str(&a->whole), &a->text.halves, &answer);

	if (e) {
		fail(a, e != UAR_EDEPTH,
		     e == UAR_EDEPTH ? "the provider sent an answer that is nested too deeply"
				     : "the provider sent an answer that is not JSON");
		return;
	}
	if (answer->kind == UAR_JSON_ARRAY || a->dialect->whole(a, answer) != UAR_OK)
		uar_reply_fail_json(&a->verdict, answer, 200, a->secret);
	else if (a->output == 0 && !a->finished)
		uar_reply_fail_json(&a->verdict, answer, 200, a->secret);
	a->finished = true;
}

static bool is_empty_answer(const struct uar_reply *a)
{
	return a->closed && !a->finished && !a->output && !a->calls && !a->blocks.keep;
}

static void complete(struct uar_reply *a)
{
	if (a->dialect->end && !a->verdict.failure)
		a->dialect->end(a);
	uar_reply_calls_end(a);
	uar_reply_blocks_end(a);
}

void uar_reply_end(struct uar_reply *a, uar_err transport, const char *reason)
{
	if (a->form == UAR_REPLY_WHOLE && !transport && !a->verdict.failure)
		end_whole(a);
	drop_half(a);
	if (is_empty_answer(a) && !a->verdict.failure)
		fail(a, true, "the provider ended its answer without a word and without a reason");
	if (a->verdict.failure || a->finished || a->closed)
		complete(a);
	else if (transport)
		uar_reply_fail_transport(&a->verdict, transport, a->secret, reason);
	else if (a->form == UAR_REPLY_STREAM && a->events == 0)
		fail(a, true, "the provider's answer holds no event");
	else
		uar_reply_fail(&a->verdict, UAR_MODEL_FAIL_NETWORK, true, a->secret,
			       UAR_STR("the stream ended before the answer was complete"));
}
