/* agent_prompt.c - instructions, history, message and rounds of tools, in this order. */
#include "work/agent_prompt.h"

#include "event/client.h"
#include "json/limits.h"
#include "work/client_input.h"
#include "work/input_seal.h"
#include "work/definitions.h"
#include "work/past.h"
#include "work/recall.h"
#include "work/rounds.h"
#include "work/skills.h"
#include "work/toolset.h"

/* Sections from the definition, the run's inputs and the tools that it has. */
static uar_err assemble(const struct prompt_sources *from, const struct uar_json *inputs,
			struct uar_prompt_text *out)
{
	struct uar_prompt_piece skills[UAR_LIMIT_RUN_SKILLS];
	const struct live_run *r = from->run;
	struct toolset set = rt_toolset_of(r);
	struct uar_model_tool told[UAR_LIMIT_TOOLS_TOLD];
	struct uar_prompt_piece tools[UAR_LIMIT_TOOLS_TOLD];
	struct uar_prompt_inputs in = { .def = rt_definition(r),
					.values = inputs,
					.message = from->message,
					.memory = from->recall->pieces,
					.memory_count = from->recall->count,
					.cite = from->recall->cite,
					.skills = skills,
					.tools = tools,
					.tool_count = rt_toolset_tell(&set, told) };
	struct uar_error error = { 0 };

	if (from->skills)
		in.skill_count = rt_skills_pieces(from->skills, &set, skills);
	for (size_t i = 0; i < in.tool_count; i++)
		tools[i] = (struct uar_prompt_piece){ told[i].name, told[i].description };
	return uar_prompt_assemble(&in, out, &error);
}

/* The history is the messages of p after the first `before`: at most so many turns of it stay,
 * if the definition says so. */
static void name_history(const struct uar_definition *d, struct prompt *p, size_t before,
			 struct uar_prompt_text *text)
{
	struct uar_buf all = uar_buf_make(2 * UAR_LIMIT_JSON_BYTES);
	size_t most = (size_t)d->memory.max_turns * 2, part = before;

	if (most && p->count - before > most)
		rt_prompt_remove(p, before, p->count - before - most);
	for (size_t i = before; i < p->count; i++) {
		uar_buf_add_char(&all, (char)('0' + p->messages[i].role));
		for (size_t k = 0; k < p->messages[i].part_count; k++)
			uar_buf_add_str(&all, p->parts[part++].text);
		uar_buf_add_char(&all, 0);
	}
	uar_prompt_name_section(text, UAR_PROMPT_HISTORY, uar_buf_str(&all));
	uar_buf_fini(&all);
}

/* --- the whole -------------------------------------------------------------------------- */

static uar_err collect_defined(const struct prompt_sources *from, const struct uar_json *inputs,
			       struct uar_prompt_text *text, struct prompt *p)
{
	const struct uar_definition *d = rt_definition(from->run);
	uar_err e;

	uar_prompt_fini(text);
	*text = (struct uar_prompt_text){ 0 };
	e = assemble(from, inputs, text);
	if (e)
		return e;
	rt_prompt_text(p, UAR_MODEL_SYSTEM, uar_buf_str(&text->system));
	if (from->past && d->memory.conversation)
		rt_past_collect(from->past, from->run, p);
	name_history(d, p, 1, text);
	return p->err;
}

static void collect_plain(const struct prompt_sources *from, struct prompt *p)
{
	uar_str instructions = rt_state(from->run)->what.instructions;

	if (instructions.n)
		rt_prompt_text(p, UAR_MODEL_SYSTEM, instructions);
	if (from->past)
		rt_past_collect(from->past, from->run, p);
}

uar_err rt_agent_collect(const struct prompt_sources *from, struct uar_prompt_text *text,
			 struct prompt *p)
{
	const struct uar_json *inputs = rt_inputs(from->inputs, from->arena);
	const struct uar_json *client = uar_json_get(inputs, UAR_STR(UAR_CLIENT_INPUT));
	bool defined = rt_definition(from->run) != NULL;
	uar_err e = UAR_OK;

	if (defined)
		e = rt_inputs_open(rt_engine(from->run), &rt_agg_session(rt_agg(from->run))->owner,
				   inputs, from->arena, &inputs);
	if (defined && !e)
		e = collect_defined(from, inputs, text, p);
	else if (!defined)
		collect_plain(from, p);
	if (e)
		return e;
	rt_client_messages(client, "before", p);
	rt_prompt_text(p, UAR_MODEL_USER, defined ? uar_buf_str(&text->message) : from->message);
	rt_prompt_attach(inputs, p);
	rt_prompt_attach(client, p);
	rt_client_messages(client, "after", p);
	if (from->rounds)
		rt_rounds_tell(from->rounds, p);
	/* Nothing comes behind it: no tool is executed while an answer is repaired. */
	if (rt_state(from->run)->call.rejected)
		rt_prompt_text(
			p, UAR_MODEL_USER,
			UAR_STR("Your last answer was not accepted: it does not keep to the "
				"form that is required of it. Answer again and keep to it."));
	if (rt_state(from->run)->call.rejected && from->skills)
		rt_skills_remind(from->skills, p);
	return rt_prompt_end(p);
}

struct uar_model_output rt_agent_output(const struct uar_definition *d, struct uar_buf *schema)
{
	if (!d || !d->schemas.outputs || d->schemas.outputs->kind != UAR_JSON_OBJECT)
		return (struct uar_model_output){ .strict = false };
	uar_json_write(schema, d->schemas.outputs);
	return (struct uar_model_output){ .name = UAR_STR("answer"),
					  .schema = uar_buf_str(schema) };
}
