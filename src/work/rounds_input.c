/* rounds_input.c - messages that joined a turn, and where among its rounds the model is told them.
 */
#include "core/limits.h"
#include "work/rounds.h"

uar_err rt_rounds_note_input(struct rounds *s, const struct uar_event *ev,
			     struct uar_arena *scratch)
{
	const struct uar_json *p = NULL, *part;
	struct round_input *in;
	uar_str blob;
	uar_err e = uar_event_payload(ev, scratch, &p, NULL);

	if (e || !uar_str_is(uar_json_text(p, "op"), "added"))
		return e;
	if (s->input_count == UAR_LIMIT_TURN_INPUTS)
		return UAR_ECORRUPT;
	if (!s->inputs)
		s->inputs = uar_arena_alloc(&s->arena, UAR_LIMIT_TURN_INPUTS * sizeof *s->inputs);
	if (!s->inputs)
		return UAR_ENOMEM;
	in = &s->inputs[s->input_count];
	part = uar_json_at(uar_json_get(p, UAR_STR("input_parts")), 0);
	*in = (struct round_input){ .before = 0 };
	e = uar_event_blob(ev, "input_ref", scratch, &blob);
	if (e)
		return e;
	snprintf(in->blob, sizeof in->blob, "%.*s", UAR_FMT(blob));
	s->input_count++;
	return rt_rounds_complete_input(s, in, uar_json_text(part, "preview"));
}

uar_err rt_rounds_complete_input(struct rounds *s, struct round_input *in, uar_str text)
{
	in->text = uar_arena_str(&s->arena, text);
	return in->text.p ? UAR_OK : UAR_ENOMEM;
}

void rt_rounds_place_inputs(struct rounds *s, size_t rounds)
{
	while (s->inputs_placed < s->input_count)
		s->inputs[s->inputs_placed++].before = rounds;
}

bool rt_rounds_has_new_input(const struct rounds *s)
{
	return s->inputs_placed < s->input_count;
}

struct round_input *rt_rounds_cut_input(const struct rounds *s)
{
	for (size_t i = 0; i < s->input_count; i++)
		if (s->inputs[i].blob[0])
			return &s->inputs[i];
	return NULL;
}

bool rt_rounds_unfinished(const struct rounds *s)
{
	const struct round *last = s->count ? &s->at[s->count - 1] : NULL;

	for (size_t i = 0; last && i < last->call_count; i++)
		if (!last->calls[i].ended)
			return true;
	return false;
}
