/* tool_question.c - what a tool at work asks: a fact before anybody answers, and the answer a fact
 * before the tool hears it. The tool waits in memory; after a restart it is cut off like any other,
 * and the answer to its question means nothing more. */
#include "work/spill.h"
#include "work/tool_sample.h"

static struct place *place_asking(struct tool_loop *l, int64_t number)
{
	for (size_t i = 0; l && i < PLACES; i++)
		if (l->places[i].call && l->places[i].question == number)
			return &l->places[i];
	return NULL;
}

static void answer_tool(struct place *p, enum uar_verdict verdict, uar_str values, uar_str reason)
{
	struct uar_tools *registry = p->loop->set.registry;
	struct uar_tool_answer a = { .verdict = verdict, .values = values, .reason = reason };

	p->question = 0;
	if (p->at_work)
		registry->ops->answer(registry, p->at_work, &a);
}

/* It could not be asked. */
static void asked(const struct rt_sent *s)
{
	struct tool_loop *l = s->run ? rt_llm_tool_loop(s->run) : NULL;
	struct place *p = s->err ? place_asking(l, s->command->ask.number) : NULL;

	if (p)
		answer_tool(p, UAR_VERDICT_DECLINE, UAR_STR_NONE, UAR_STR_NONE);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a && (!b || a < b) ? a : b;
}

void rt_place_ask(void *ctx, const struct uar_tool_question *q)
{
	struct place *p = ctx;
	struct live_run *r = p->loop->o.run;
	struct uar_command c = { .kind = UAR_CMD_ASK };

	if (uar_str_is(q->kind, "sampling")) {
		rt_sample_ask(p, q);
		return;
	}
	p->question = uar_run_rare(rt_state(r))->actions.count + 1;
	c.ask = (struct uar_ask){
		.number = p->question,
		.type = q->type,
		.kind = q->kind,
		.tool_name = p->tool->name,
		.call_id = p->call->id,
		.prompt = uar_str_utf8_prefix(q->prompt, PROMPT - 1),
		.input = q->about,
		.input_bytes = (int64_t)q->about.n,
		.schema = q->schema,
		.verdict = UAR_VERDICT_ASK,
		.timeout_us = sooner(q->timeout_us, rt_work(r)->o.action_timeout_us),
		.tool_id = p->tool->tool_id,
	};
	if (!rt_send_asked(r, &c, asked, NULL))
		rt_lose(r, UAR_ENOMEM);
}

void rt_place_unask(void *ctx, bool settled)
{
	struct place *p = ctx;
	struct uar_command c = { .kind = UAR_CMD_ANSWER };

	rt_sample_drop(p, true);
	if (!p->question)
		return;
	c.answer =
		(struct uar_answer){ .number = p->question,
				     .verdict = settled ? UAR_VERDICT_SUBMIT : UAR_VERDICT_DECLINE,
				     .source =
					     settled ? UAR_ANSWER_RESPOND : UAR_ANSWER_WITHDRAWN };
	p->question = 0;
	rt_send(p->loop->o.run, &c);
}

bool rt_tool_loop_asks(const struct tool_loop *l)
{
	for (size_t i = 0; l && i < PLACES; i++)
		if (l->places[i].question)
			return true;
	return false;
}

void rt_tool_loop_answer(struct tool_loop *l, const struct uar_answer *a)
{
	struct place *p = place_asking(l, a->number);

	if (p && p->sample && a->verdict == UAR_VERDICT_ALLOW) {
		rt_sample_begin(p);
		return;
	}
	if (p)
		rt_sample_drop(p, false);
	if (p)
		answer_tool(p, a->verdict, a->real.n ? a->real : a->values,
			    a->source == UAR_ANSWER_TIMEOUT ? a->reason : UAR_STR_NONE);
}
