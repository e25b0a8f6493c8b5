/* scripted.c - a model that plays a script: no network, no chance.
 *
 * A script is a row of steps. What it says is a function of the conversation
 * and of the model's name alone, so a run repeats word for word. */
#include "model/scripted_int.h"

#include "base/alloc.h"
#include "model/limits.h"

enum {
	QUOTE_BYTES = 280,
	WORDS_DEFAULT = 1000,
	WORDS_MAX = 400000, /* stays below UAR_LIMIT_MODEL_OUTPUT */
	TURN_TOKENS = 32,   /* at full speed: before others get their turn */
	TEXT_BYTES = 2048,  /* a step's text with its quote */
	PACE_SLOW_US = 50000,
	PACE_ASKED = -1, /* token_us of the options */
};

enum op {
	OP_END, /* completes the call */
	OP_THINK,
	OP_SAY,
	OP_WORDS, /* as many as the name asks for */
	OP_CALL,  /* completes the call and asks for the tools of the plan, if any */
	OP_FAIL,
	OP_STALL,
};

struct step {
	enum op op;
	const char *text; /* {quote} the last user message, {turns} those before it as a number,
			   * {were turns} in words, {plan} what scripted_tools.c says */
	unsigned tokens;  /* stop after so many; 0: the whole text */
};

#define ANSWER                                                                                     \
	"You wrote: \"{quote}\" (turns before this one: {turns}). I am UAR's scripted model: I "   \
	"need no network and give the same answer to the same conversation every time, so you "    \
	"can try streaming, cancelling, reloading and restarting right away. To talk to a real "   \
	"model, set OPENAI_BASE_URL, OPENAI_API_KEY and UAR_MODEL and start UAR again."
#define THOUGHT                                                                                    \
	"The user wrote \"{quote}\". There {were turns} before. I will quote the message, "        \
	"say who I am and how to reach a real model."

#define TOOLS_THOUGHT "The user wrote \"{quote}\". What is to be done next follows from it. "

static const struct script {
	const char *name;
	bool counted; /* takes ":N" */
	bool plans;   /* asks for tools */
	int64_t pace_us;
	struct step steps[4];
} scripts[] = {
	{ .name = "scripted", .pace_us = PACE_ASKED, .steps = { { OP_SAY, ANSWER, 0 } } },
	{ .name = "scripted-reasoning",
	  .pace_us = PACE_ASKED,
	  .steps = { { OP_THINK, THOUGHT, 0 }, { OP_SAY, ANSWER, 0 } } },
	{ .name = "scripted-slow", .pace_us = PACE_SLOW_US, .steps = { { OP_SAY, ANSWER, 0 } } },
	{ .name = "scripted-fail",
	  .pace_us = PACE_ASKED,
	  .steps = { { OP_SAY, ANSWER, 3 },
		     { OP_FAIL, "the script says that this call fails", 0 } } },
	{ .name = "scripted-long", .counted = true, .steps = { { OP_WORDS, NULL, 0 } } },
	{ .name = "scripted-stall",
	  .pace_us = PACE_ASKED,
	  .steps = { { OP_SAY, "Give me a moment to think about it. ", 0 },
		     { OP_STALL, NULL, 0 } } },
	{ .name = "scripted-tools",
	  .plans = true,
	  .pace_us = PACE_ASKED,
	  .steps = { { OP_THINK, TOOLS_THOUGHT, 0 },
		     { OP_SAY, "{plan}", 0 },
		     { OP_CALL, NULL, 0 } } },
};

static const char *const words[] = {
	"every ", "event ", "is ",     "kept ",	   "before ", "it ",	"is ",	 "shown, ",
	"so ",	  "a ",	    "reader ", "may ",	   "leave ",  "and ",	"come ", "back ",
	"at ",	  "any ",   "time ",   "without ", "losing ", "one.\n",
};

struct scripted {
	struct uar_model base; /* first: the ops get it back by a cast */
	struct uar_sched *sched;
	int64_t token_us;
	struct uar_list calls;
};

struct uar_model_call {
	struct uar_list node;
	struct scripted *model;
	struct uar_model_events events;
	const struct script *script;
	const struct step *step;
	struct uar_scripted_plan plan;
	struct uar_buf text; /* of the step at hand */
	size_t at;	     /* in it */
	uint64_t said;	     /* tokens of the step so far */
	uint64_t wanted;     /* of OP_WORDS */
	int64_t pace_us;
	struct uar_task task;
	struct uar_timer timer;
	struct uar_model_usage usage;
	char quote[QUOTE_BYTES + 4], name[UAR_LIMIT_MODEL_NAME];
	size_t quote_n, name_n;
	unsigned turns;
	bool paused, running, dead;
};

static struct scripted *scripted_of(struct uar_model *m)
{
	return (struct scripted *)(void *)m;
}

static void call_destroy(struct uar_model_call *c)
{
	uar_list_remove(&c->node);
	uar_unpost(c->model->sched, &c->task);
	uar_timer_stop(c->model->sched, &c->timer);
	uar_buf_fini(&c->text);
	uar_scripted_plan_fini(&c->plan);
	uar_free(c);
}

/* --- playing -------------------------------------------------------------------- */

static void expand(struct uar_model_call *c, const char *text)
{
	uar_str rest = uar_str_c(text);

	uar_buf_clear(&c->text);
	c->at = c->said = 0;
	while (rest.n) {
		if (uar_str_starts(rest, UAR_STR("{quote}"))) {
			uar_buf_add(&c->text, c->quote, c->quote_n);
			rest = uar_str_from(rest, 7);
		} else if (uar_str_starts(rest, UAR_STR("{turns}"))) {
			uar_buf_add_u64(&c->text, c->turns);
			rest = uar_str_from(rest, 7);
		} else if (uar_str_starts(rest, UAR_STR("{were turns}"))) {
			uar_buf_printf(&c->text, c->turns == 1 ? "was %u turn" : "were %u turns",
				       c->turns);
			rest = uar_str_from(rest, 12);
		} else if (uar_str_starts(rest, UAR_STR("{plan}"))) {
			uar_buf_add_str(&c->text, c->plan.said);
			rest = uar_str_from(rest, 6);
		} else {
			uar_buf_add_char(&c->text, rest.p[0]);
			rest = uar_str_from(rest, 1);
		}
	}
}

/* A word with the blanks behind it; empty when the step has no more. */
static uar_str next_token(struct uar_model_call *c)
{
	uar_str rest = uar_str_from(uar_buf_str(&c->text), c->at);
	size_t n = 0;

	if (c->step->op == OP_WORDS)
		return c->said < c->wanted ? uar_str_c(words[c->said % ARRAY_LEN(words)])
					   : UAR_STR("");
	if (c->step->tokens && c->said >= c->step->tokens)
		return UAR_STR("");
	while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '\n')
		n++;
	while (n < rest.n && (rest.p[n] == ' ' || rest.p[n] == '\n'))
		n++;
	return uar_str_n(rest.p, n);
}

static void finish(struct uar_model_call *c, const char *failure)
{
	struct uar_model_result r = {
		.failure = failure ? UAR_MODEL_FAIL_PROVIDER : UAR_MODEL_FAIL_NONE,
		.message = uar_str_c(failure),
		.stop_reason = failure ? UAR_STR("") : UAR_STR("stop"),
		.actual_model = uar_str_n(c->name, c->name_n),
		.usage = c->usage,
	};

	if (c->step->op == OP_CALL && c->plan.call_count) {
		r.stop_reason = UAR_STR("tool_calls");
		r.calls = c->plan.calls;
		r.call_count = c->plan.call_count;
	}

	r.usage.total_tokens = r.usage.input_tokens + r.usage.output_tokens;
	c->events.done(c->events.ctx, &r);
	c->dead = true;
}

static void enter_step(struct uar_model_call *c, const struct step *step)
{
	c->step = step;
	expand(c, step->text ? step->text : "");
}

/* One token, or one move in the script. False: nothing to do for now. */
static bool play(struct uar_model_call *c)
{
	uar_str token;

	switch (c->step->op) {
	case OP_STALL: return false;
	case OP_FAIL: finish(c, c->step->text); return false;
	case OP_CALL:
	case OP_END: finish(c, NULL); return false;
	case OP_SAY:
	case OP_THINK:
	case OP_WORDS: break;
	}
	token = next_token(c);
	if (token.n == 0) {
		enter_step(c, c->step + 1);
		return play(c);
	}
	c->at += token.n;
	c->said++;
	c->usage.output_tokens++;
	if (c->step->op == OP_THINK)
		c->events.reasoning(c->events.ctx, token);
	else
		c->events.text(c->events.ctx, token);
	return true;
}

static void go_on(struct uar_model_call *c)
{
	struct uar_sched *s = c->model->sched;

	if (c->pace_us == 0 || uar_timer_set(s, &c->timer, c->pace_us))
		uar_post(s, &c->task);
}

static void turn(struct uar_model_call *c)
{
	int tokens = c->pace_us ? 1 : TURN_TOKENS;
	bool more = true;

	c->running = true;
	while (more && tokens-- > 0 && !c->paused && !c->dead)
		more = play(c);
	c->running = false;
	if (c->dead)
		call_destroy(c);
	else if (more && !c->paused)
		go_on(c);
}

static void on_task(struct uar_task *t)
{
	turn(UAR_OWNER(t, struct uar_model_call, task));
}

static void on_timer(struct uar_timer *t)
{
	turn(UAR_OWNER(t, struct uar_model_call, timer));
}

/* --- the port -------------------------------------------------------------------- */

static void refuse_script(uar_str name, struct uar_error *error)
{
	struct uar_buf names = uar_buf_make(UAR_LIMIT_ERROR_TEXT / 2);

	for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
		uar_buf_printf(&names, "%s%s%s", i ? ", " : "", scripts[i].name,
			       scripts[i].counted ? ":N" : "");
	uar_error_set(error, UAR_EINVALID, "there is no scripted model \"%.*s\"; there are: %.*s",
		      UAR_FMT(uar_str_utf8_prefix(name, 80)), UAR_FMT(uar_buf_str(&names)));
	uar_buf_fini(&names);
}

static const struct script *find_script(uar_str name, uint64_t *out_count, struct uar_error *error)
{
	uar_str count, base = uar_str_cut(name, ':', &count);

	*out_count = WORDS_DEFAULT;
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		if (!uar_str_is(base, scripts[i].name))
			continue;
		if (base.n == name.n)
			return &scripts[i];
		if (scripts[i].counted && uar_str_u64(count, out_count) == UAR_OK &&
		    *out_count <= WORDS_MAX)
			return &scripts[i];
	}
	refuse_script(name, error);
	return NULL;
}

uar_err uar_model_scripted_check(uar_str name, struct uar_error *error)
{
	uint64_t count;

	return find_script(name, &count, error) ? UAR_OK : UAR_EINVALID;
}

static int64_t count_words(uar_str s)
{
	int64_t n = 0;
	bool inside = false;

	for (size_t i = 0; i < s.n; i++) {
		bool blank = s.p[i] == ' ' || s.p[i] == '\n' || s.p[i] == '\t';

		n += !blank && !inside;
		inside = !blank;
	}
	return n;
}

/* Takes from the conversation what the script may quote: it is borrowed. */
static void read_conversation(struct uar_model_call *c, const struct uar_model_request *r)
{
	uar_str last = UAR_STR(""), cut;
	unsigned users = 0;

	for (size_t i = 0; i < r->message_count; i++) {
		uar_str text = uar_model_text_of(&r->messages[i]);

		c->usage.input_tokens += count_words(text);
		if (r->messages[i].role != UAR_MODEL_USER)
			continue;
		last = text;
		users++;
	}
	c->turns = users ? users - 1 : 0;
	if (!uar_utf8_valid(last))
		last = UAR_STR("?");
	cut = uar_str_utf8_prefix(last, QUOTE_BYTES);
	memcpy(c->quote, cut.p, cut.n);
	c->quote_n = cut.n;
	if (cut.n < last.n) {
		memcpy(c->quote + cut.n, "...", 3);
		c->quote_n += 3;
	}
}

/* Whatever can fail, so that no step can later. */
static bool prepare(struct uar_model_call *c, const struct uar_model_request *r)
{
	size_t bytes = TEXT_BYTES;

	if (c->script->plans && uar_scripted_plan_make(&c->plan, r))
		return false;
	bytes += c->plan.said.n;
	c->text = uar_buf_make(bytes);
	uar_buf_reserve(&c->text, bytes);
	enter_step(c, c->script->steps + (c->plan.later ? 1 : 0));
	return !c->text.err;
}

static uar_err start(struct uar_model *model, const struct uar_model_request *r,
		     const struct uar_model_events *events, struct uar_model_call **out,
		     struct uar_error *error)
{
	struct scripted *m = scripted_of(model);
	uint64_t count;
	const struct script *script = find_script(r->model, &count, error);
	struct uar_model_call *c;
	uar_str name = uar_str_utf8_prefix(r->model, sizeof c->name);

	if (!script)
		return UAR_EINVALID;
	c = uar_zalloc(sizeof *c);
	if (!c)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	c->model = m;
	c->events = *events;
	c->script = script;
	c->wanted = count;
	c->pace_us = script->pace_us == PACE_ASKED ? m->token_us : script->pace_us;
	c->task.fn = on_task;
	c->timer.fn = on_timer;
	memcpy(c->name, name.p, name.n);
	c->name_n = name.n;
	c->usage.cached_tokens = c->usage.cache_write_tokens = -1;
	c->usage.reasoning_tokens = -1;
	uar_list_add_last(&m->calls, &c->node);
	read_conversation(c, r);
	if (!prepare(c, r)) {
		call_destroy(c);
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	}
	uar_post(m->sched, &c->task);
	*out = c;
	return UAR_OK;
}

static void cancel(struct uar_model *m, struct uar_model_call *c)
{
	(void)m;
	c->dead = true;
	if (!c->running)
		call_destroy(c);
}

static void pause_call(struct uar_model *m, struct uar_model_call *c, bool paused)
{
	(void)m;
	if (c->paused == paused)
		return;
	c->paused = paused;
	if (!paused && !c->running)
		go_on(c);
	else if (paused)
		uar_timer_stop(c->model->sched, &c->timer);
}

static void destroy(struct uar_model *model)
{
	struct scripted *m = scripted_of(model);

	while (!uar_list_empty(&m->calls))
		call_destroy(UAR_OWNER(m->calls.next, struct uar_model_call, node));
	uar_free(m);
}

static const struct uar_model_ops scripted_ops = {
	.abi = 2,
	.size = sizeof(struct uar_model_ops),
	.destroy = destroy,
	.start = start,
	.cancel = cancel,
	.pause = pause_call,
};

uar_err uar_model_scripted_create(const struct uar_model_scripted_options *o,
				  struct uar_model **out)
{
	struct scripted *m = uar_zalloc(sizeof *m);

	if (!m)
		return UAR_ENOMEM;
	m->base.ops = &scripted_ops;
	m->base.provider = "scripted";
	m->sched = o->sched;
	m->token_us = o->token_us;
	uar_list_init(&m->calls);
	*out = &m->base;
	return UAR_OK;
}
