/* model_stream_fuzz.h - bytes of a provider's answer, cut anywhere, in any dialect.
 *
 * The first byte seeds the cuts. Fed in pieces, with every event parsed, and fed
 * whole it must say the same text and come to the same verdict, ask for the same
 * tools and keep the same blocks; text must be well-formed UTF-8, blocks JSON. */
#ifndef UAR_FUZZ_MODEL_STREAM_FUZZ_H
#define UAR_FUZZ_MODEL_STREAM_FUZZ_H

#include <stdlib.h>

#include "model/limits.h"
#include "model/reply_int.h"

struct outcome {
	struct uar_reply answer;
	struct uar_buf text[2];
};

static inline void on_piece(void *ctx, enum uar_reply_kind kind, uar_str text)
{
	struct outcome *o = ctx;

	if (text.n == 0 || !uar_utf8_valid(text))
		abort();
	uar_buf_add_str(&o->text[kind], text);
}

static const struct uar_dialect *dialect;

static inline void run(struct outcome *o, struct uar_reply_scratch *scratch, uar_str bytes,
		       uint32_t seed)
{
	size_t at = 0;
	uar_err e = UAR_OK;

	*o = (struct outcome){ .text = { uar_buf_make(1 << 24), uar_buf_make(1 << 24) } };
	o->answer.dialect = dialect;
	o->answer.scratch = scratch;
	o->answer.secret = UAR_STR("secret");
	o->answer.piece = on_piece;
	o->answer.ctx = o;
	uar_reply_init(&o->answer);
	while (!e && at < bytes.n) {
		size_t n = bytes.n - at;

		if (seed) {
			seed = seed * 1664525 + 1013904223;
			n = 1 + (seed >> 16) % (n < 20 ? n : 20);
		}
		e = uar_reply_feed(&o->answer, uar_str_n(bytes.p + at, n));
		at += n;
		if (seed) /* no event is taken for one like the last */
			o->answer.mould.before = o->answer.mould.after = 0;
	}
	uar_reply_end(&o->answer, UAR_OK, "");
	if (e && !o->answer.verdict.failure)
		abort();
}

static inline void check_message(const struct uar_reply_verdict *v)
{
	uar_str m = uar_str_n(v->message, v->message_n);

	if (!uar_utf8_valid(m))
		abort();
	for (size_t i = 0; i + 6 <= m.n; i++)
		if (memcmp(m.p + i, "secret", 6) == 0)
			abort();
}

/* What is asked for is whole: named, bounded, and no two have the same id. */
static inline void check_calls(const struct uar_reply_calls *c)
{
	size_t bytes = 0;

	for (size_t i = 0; c && i < c->count; i++) {
		const struct uar_model_tool_call *call = &c->list[i];

		bytes += call->arguments.n;
		if (call->name.n == 0 || !uar_utf8_valid(call->name) || call->arguments.n == 0 ||
		    !uar_utf8_valid(call->arguments) || !uar_str_is_id(call->id))
			abort();
		for (size_t k = 0; k < i; k++)
			if (uar_str_eq(call->id, c->list[k].id))
				abort();
	}
	if (bytes > UAR_LIMIT_MODEL_CALL_BYTES + 2 * UAR_LIMIT_MODEL_CALLS)
		abort();
}

static inline void compare_calls(const struct uar_reply_calls *a, const struct uar_reply_calls *b)
{
	if (!a != !b || (a && a->count != b->count))
		abort();
	for (size_t i = 0; a && i < a->count; i++)
		if (!uar_str_eq(a->list[i].id, b->list[i].id) ||
		    !uar_str_eq(a->list[i].name, b->list[i].name) ||
		    !uar_str_eq(a->list[i].arguments, b->list[i].arguments))
			abort();
}

static inline void check_parts(const struct uar_reply_blocks *b)
{
	for (size_t i = 0; b->parts && i < b->count; i++) {
		const struct uar_model_part *p = &b->parts[i];
		const struct uar_json *j;
		struct uar_arena arena;

		uar_arena_init(&arena, 0);
		if (p->kind == UAR_PART_OPAQUE &&
		    (uar_json_parse(p->text, &(struct uar_json_limits){ .foreign = true }, &arena,
				    &j, NULL) ||
		     j->kind != UAR_JSON_OBJECT))
			abort();
		uar_arena_fini(&arena);
	}
}

static inline void compare_parts(const struct uar_reply_blocks *a, const struct uar_reply_blocks *b)
{
	if (!a->parts != !b->parts || (a->parts && a->count != b->count))
		abort();
	for (size_t i = 0; a->parts && i < a->count; i++)
		if (a->parts[i].kind != b->parts[i].kind ||
		    !uar_str_eq(a->parts[i].text, b->parts[i].text))
			abort();
}

static inline void compare(const struct outcome *a, const struct outcome *b)
{
	for (int i = 0; i < 2; i++)
		if (!uar_str_eq(uar_buf_str(&a->text[i]), uar_buf_str(&b->text[i])))
			abort();
	if (a->answer.verdict.failure != b->answer.verdict.failure ||
	    a->answer.verdict.retryable != b->answer.verdict.retryable ||
	    a->answer.usage.total_tokens != b->answer.usage.total_tokens ||
	    a->answer.finished != b->answer.finished || a->answer.output != b->answer.output ||
	    !uar_str_eq(uar_str_n(a->answer.stop_reason, a->answer.stop_reason_n),
			uar_str_n(b->answer.stop_reason, b->answer.stop_reason_n)))
		abort();
	if (a->answer.verdict.failure == UAR_MODEL_FAIL_NONE) {
		check_calls(a->answer.calls);
		compare_calls(a->answer.calls, b->answer.calls);
		check_parts(&a->answer.blocks);
		compare_parts(&a->answer.blocks, &b->answer.blocks);
	}
}

static inline void fini(struct outcome *o)
{
	uar_reply_fini(&o->answer);
	uar_buf_fini(&o->text[0]);
	uar_buf_fini(&o->text[1]);
}

static inline int fuzz_stream(const struct uar_dialect *of, const uint8_t *data, size_t size)
{
	struct uar_reply_scratch scratch;
	struct outcome whole, cut;
	uar_str bytes = uar_str_n((const char *)data + 1, size - 1);

	if (size == 0)
		return 0;
	dialect = of;
	uar_reply_scratch_init(&scratch);
	run(&whole, &scratch, bytes, 0);
	run(&cut, &scratch, bytes, data[0] + 1u);
	compare(&whole, &cut);
	check_message(&whole.answer.verdict);
	fini(&whole);
	fini(&cut);
	uar_reply_scratch_fini(&scratch);
	return 0;
}

#endif
