/* tool_end.c - how a call of a round ends, and what it tells on the way.
 *
 * What is too long for an event is put aside first: the end that refers to it is durable after it.
 */
#include "work/tool_loop_int.h"

#include "engine/limits.h"
#include "event/sizes.h"
#include "json/limits.h"
#include "work/hooks_int.h"
#include "work/media.h"
#include "work/spill.h"
#include "work/tool_echo.h"
#include "work/tool_sample.h"

enum { INLINE_DEPTH = 40 };

bool rt_place_fits(uar_str json, bool object, size_t most, struct uar_buf *out_line)
{
	struct uar_json_limits limits = { .depth = INLINE_DEPTH };
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	bool ok = json.n <= most;

	uar_arena_init(&arena, 0);
	ok = ok && !uar_json_parse(json, &limits, &arena, &j, NULL);
	ok = ok && (!object || j->kind == UAR_JSON_OBJECT);
	ok = ok && (j->kind != UAR_JSON_STRING || json.n <= UAR_LIMIT_PREVIEW_BYTES);
	if (ok) {
		*out_line = uar_buf_make(2 * most);
		uar_json_write(out_line, j);
		ok = !out_line->err && out_line->n <= most;
	}
	uar_arena_fini(&arena);
	return ok;
}

/* What came of it is known to the loop as to one that reads it in the log; of a long output there
 * is no more than a hook may be told. */
void rt_place_ended(struct place *p, const struct uar_tool_over *over)
{
	struct tool_loop *l = p->loop;
	struct round_call *c = p->call;
	struct uar_buf told = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);

	c->ended = true;
	c->failed = !over->ok;
	c->broke = c->failed && rt_rounds_was_executed(over->category);
	c->told_bytes = over->output_bytes;
	if (rt_llm_hooks(l->o.run)) {
		uar_str output = p->output.n ? uar_buf_str(&p->output) : over->output;

		if (over->ok)
			uar_buf_add_str(&told,
					uar_str_utf8_prefix(output, UAR_LIMIT_HOOK_ARGUMENTS));
		else
			rt_rounds_write_failure(&told, over->category, over->message,
						over->retryable);
		c->told = uar_arena_str(&l->o.rounds->arena, uar_buf_str(&told));
		if (!over->ok)
			c->told_bytes = (int64_t)told.n;
	}
	uar_buf_fini(&told);
	rt_place_free(p);
	if (c->failed)
		rt_tool_loop_cancel_siblings(l);
	rt_tool_loop_advance(l);
}

static void over_stored(const struct rt_sent *s)
{
	struct tool_loop *l = s->run ? rt_llm_tool_loop(s->run) : NULL;
	struct place *p = rt_place_of(l, s->command->over.call_id);

	if (!l || !p || (s->err && !l->leaving))
		return;
	rt_place_ended(p, &s->command->over);
}

void rt_place_send_over(struct place *p, const struct uar_tool_over *over)
{
	struct uar_command c = { .kind = UAR_CMD_TOOL_OVER };

	p->ending = true;
	c.over = *over;
	c.over.call_id = p->call->id;
	c.over.parts_blob = uar_str_c(p->parts_blob);
	c.over.process_id = uar_str_c(p->bound.process_id);
	c.over.hidden = p->hidden_back;
	if (!rt_send_asked(p->loop->o.run, &c, over_stored, NULL))
		rt_lose(p->loop->o.run, UAR_ENOMEM);
}

void rt_place_send_failed(struct place *p, uar_str category, uar_str message, bool retryable)
{
	struct uar_tool_over over = { .category = category,
				      .message = uar_str_utf8_prefix(message, UAR_TEXT_MESSAGE),
				      .retryable = retryable };

	rt_place_send_over(p, &over);
}

/* It was executed: when its output cannot be kept, the beginning of it still is. */
static void output_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct place *p = ctx;
	uar_str whole = uar_buf_str(&p->output);
	struct uar_tool_over over = { .ok = true,
				      .output = rt_spill_beginning(whole),
				      .output_bytes = (int64_t)whole.n,
				      .blob = sha256,
				      .tail = rt_spill_end(whole),
				      .lost = e != UAR_OK,
				      .message = uar_str_c(e ? uar_err_text(e) : "") };

	p->aside = NULL;
	rt_place_send_over(p, &over);
}

static void put_output_aside(struct place *p, uar_str output)
{
	uar_err e;

	p->ending = true;
	p->output = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_buf_add_str(&p->output, output);
	e = p->output.err;
	if (!e)
		e = rt_aside_begin(rt_engine(p->loop->o.run), output, output_stored, p, &p->aside);
	if (e)
		output_stored(p, e, UAR_STR_NONE);
}

static void end_with(struct place *p, uar_str output)
{
	struct uar_tool_over over = { .ok = true,
				      .output = output,
				      .output_bytes = (int64_t)output.n };

	if (!output.n) {
		rt_place_send_over(p, &over);
	} else if (rt_place_fits(output, false, UAR_LIMIT_TOOL_INLINE, &p->output)) {
		over.output = uar_buf_str(&p->output);
		over.output_bytes = (int64_t)over.output.n;
		rt_place_send_over(p, &over);
	} else {
		uar_buf_fini(&p->output);
		put_output_aside(p, output);
	}
}

static void parts_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct place *p = ctx;

	p->aside = NULL;
	if (!e)
		snprintf(p->parts_blob, sizeof p->parts_blob, "%.*s", UAR_FMT(sha256));
	end_with(p, uar_buf_str(&p->held));
}

/* Images and files are durable before the end that names them. Without room for them the output
 * says what they were. */
static void put_parts_aside(struct place *p, const struct uar_tool_result *r)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_TOOL_PARTS);
	uar_err e = rt_media_write(r, &json);

	p->ending = true;
	p->held = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_buf_add_str(&p->held, r->output);
	if (!e)
		e = rt_aside_begin(rt_engine(p->loop->o.run), uar_buf_str(&json), parts_stored, p,
				   &p->aside);
	uar_buf_fini(&json);
	if (e)
		end_with(p, r->output);
}

void rt_place_done(void *ctx, const struct uar_tool_result *r)
{
	struct place *p = ctx;

	p->at_work = NULL;
	rt_place_unask(p, false);
	if (!r->ok)
		rt_place_send_failed(p, r->category, r->message, r->retryable);
	else if (r->part_count)
		put_parts_aside(p, r);
	else
		end_with(p, r->output);
}

/* Sensitive arguments that come back are hidden in all that is recorded. */
void rt_place_told(void *ctx, const struct uar_tool_result *told)
{
	struct place *p = ctx;
	struct uar_buf output = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	struct uar_buf message = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	struct uar_secrets_used used = { 0 };
	struct uar_tool_result r = *told;
	uar_err e = rt_echo_note(p->tool->input_schema, p->input, &used);

	p->hidden_back.secrets = told->secrets;
	if (!e && used.values.n) {
		e = rt_echo_hide(&used, told->output, &output, &p->hidden_back.arguments);
		if (!e)
			e = rt_echo_hide(&used, told->message, &message, &p->hidden_back.arguments);
		r.output = uar_buf_str(&output);
		r.message = uar_buf_str(&message);
	}
	if (e)
		r = (struct uar_tool_result){ .category = UAR_STR("execution"),
					      .message = UAR_STR("the result cannot be kept") };
	uar_secrets_used_fini(&used);
	rt_place_done(p, &r);
	uar_buf_fini(&output);
	uar_buf_fini(&message);
}

/* News may be dropped: the end says all. Those about sensitive arguments are. */
void rt_place_progress(void *ctx, uar_str json)
{
	struct place *p = ctx;
	struct uar_command c = { .kind = UAR_CMD_TOOL_NEWS };
	struct uar_buf line = { 0 };

	if (rt_has_room(rt_agg(p->loop->o.run)) && !p->hidden.n &&
	    rt_place_fits(json, false, UAR_LIMIT_TOOL_INLINE, &line)) {
		c.news = (struct uar_tool_news){ p->call->id, uar_buf_str(&line) };
		(void)rt_send_asked(p->loop->o.run, &c, NULL, NULL);
	}
	uar_buf_fini(&line);
}
