/* rounds_tell.c - what the model is told of rounds, within limits. */
#include "tool/limits.h"
#include "work/limits.h"
#include "work/rounds.h"

enum { NOTE = 64 }; /* bytes of what stands for something that is left out */

/* Nothing gets longer by being left out. */
static uar_err leave_out(struct rounds *s, const char *what, uar_str *text, size_t *total)
{
	uar_str note;

	if (text->n <= NOTE)
		return UAR_OK;
	note = uar_arena_printf(&s->arena, "{\"left_out\":\"%zu bytes of %s\"}", text->n, what);
	if (!note.p)
		return UAR_ENOMEM;
	*total -= text->n - note.n;
	*text = note;
	return UAR_OK;
}

/* What of the calls is longest for its worth: what they found out, then what was asked. */
static uar_err leave_out_of_calls(struct rounds *s, bool outputs, size_t *total)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < s->at[i].call_count && !e; k++) {
			struct round_call *c = &s->at[i].calls[k];

			if (*total <= UAR_LIMIT_ROUNDS_TOLD)
				return UAR_OK;
			e = outputs ? leave_out(s, "output", &c->told, total)
				    : leave_out(s, "arguments", &c->args, total);
		}
	return e;
}

/* The oldest go first; what the model wrote itself only when it is long, or last. */
uar_err rt_rounds_fit(struct rounds *s)
{
	size_t total = 0;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < s->count; i++) {
		total += s->at[i].text.n;
		for (size_t k = 0; k < s->at[i].call_count && !e; k++) {
			struct round_call *c = &s->at[i].calls[k];

			total += c->args.n + c->told.n;
			if (c->args.n > UAR_LIMIT_TOOL_TOLD)
				e = leave_out(s, "arguments", &c->args, &total);
		}
	}
	if (!e)
		e = leave_out_of_calls(s, true, &total);
	if (!e)
		e = leave_out_of_calls(s, false, &total);
	for (size_t i = 0; i < s->count && total > UAR_LIMIT_ROUNDS_TOLD && !e; i++)
		e = leave_out(s, "text", &s->at[i].text, &total);
	return e;
}

/* --- told ------------------------------------------------------------------------------- */

void rt_rounds_write_failure(struct uar_buf *out, uar_str category, uar_str message, bool retryable)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "error");
	uar_jw_str(&w, "category", category);
	uar_jw_str(&w, "message", message);
	uar_jw_bool(&w, "retryable", retryable);
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		out->err = UAR_ENOMEM;
}

void rt_rounds_write_end(struct uar_buf *out, const struct uar_event *ev, const struct uar_json *p)
{
	if (ev->cls == UAR_EV_TOOL_RESULT) {
		if (uar_json_bool(uar_json_get(p, UAR_STR("empty")), false))
			uar_buf_add_str(out, UAR_STR("(no output)"));
		else
			uar_json_write(out, uar_json_get(p, UAR_STR("preview")));
		return;
	}
	rt_rounds_write_failure(out, uar_json_text(p, "failure_category"),
				uar_json_text(p, "message"),
				uar_json_bool(uar_json_get(p, UAR_STR("retryable")), false));
}

static void tell_answer(const struct round *r, struct prompt *out)
{
	struct uar_model_part text = uar_model_text_part(r->text);

	rt_prompt_begin(out, UAR_MODEL_ASSISTANT);
	for (size_t k = 0; k < r->part_count; k++)
		rt_prompt_add(out, &r->parts[k]);
	if (r->part_count)
		return;
	if (r->text.n)
		rt_prompt_add(out, &text);
	for (size_t k = 0; k < r->call_count; k++)
		rt_prompt_add(out, &(struct uar_model_part){ .kind = UAR_PART_CALL,
							     .id = r->calls[k].provider_id,
							     .name = r->calls[k].name,
							     .text = r->calls[k].args });
}

/* Those that the round is the first to know. */
static void tell_inputs(const struct rounds *s, size_t round, struct prompt *out)
{
	for (size_t i = 0; i < s->input_count; i++)
		if (s->inputs[i].before == round)
			rt_prompt_text(out, UAR_MODEL_USER, s->inputs[i].text);
}

void rt_rounds_tell(const struct rounds *s, struct prompt *out)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct round *r = &s->at[i];

		tell_inputs(s, i, out);
		if (r->text.n || r->call_count || r->part_count)
			tell_answer(r, out);
		for (size_t k = 0; k < r->call_count; k++) {
			rt_prompt_begin(out, UAR_MODEL_TOOL);
			rt_prompt_add(out,
				      &(struct uar_model_part){ .kind = UAR_PART_RESULT,
								.id = r->calls[k].provider_id,
								.name = r->calls[k].name,
								.text = r->calls[k].told,
								.failed = r->calls[k].failed });
			for (size_t n = 0; n < r->calls[k].media.count; n++)
				rt_prompt_add(out, &r->calls[k].media.parts[n]);
		}
	}
	tell_inputs(s, s->count, out);
}
