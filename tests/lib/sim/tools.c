/* tools.c - tools as the seed wants them: they say something, end well or badly, with
 * short outputs and long ones. How often each call was executed is remembered in all
 * lives, so that one that is repeated is found out. */
#include "sim/world.h"

#include "base/alloc.h"

enum { LONG_OUTPUT = 6000 };

struct uar_tool_call {
	struct uar_tool_events events;
	size_t index; /* in w->tools.calls */
	unsigned left;
};

#define TOOL(NAME, EFFECT, ASK)                                                                    \
	{                                                                                          \
		.tool_id = UAR_STR("internal:" NAME), .name = UAR_STR(NAME),                       \
		.model_name = UAR_STR(NAME), .description = UAR_STR("A tool."),                    \
		.version = UAR_STR("1"), .transport = UAR_STR("internal"),                         \
		.input_schema = UAR_STR("{}"), .tags = UAR_STR("[]"), .effect = UAR_TOOL_##EFFECT, \
		.ask = ASK                                                                         \
	}

static const struct uar_tool rows[] = {
	TOOL("look", READ_ONLY, false), TOOL("peek", READ_ONLY, false),
	TOOL("put", IDEMPOTENT, false), TOOL("send", ONCE, false),
	TOOL("write", ONCE, true),
};

static struct sim_world *world_of(struct uar_tools *t)
{
	return UAR_OWNER(t, struct sim_world, tools.base);
}

static const struct uar_tool *at(struct uar_tools *t, size_t index)
{
	(void)t;
	return index < ARRAY_LEN(rows) ? &rows[index] : NULL;
}

static uar_err check(struct uar_tools *t, const struct uar_tool *tool, uar_str input,
		     struct uar_error *error)
{
	(void)t, (void)tool;
	return uar_str_is(input, "broken") ? uar_error_set(error, UAR_EINVALID, "not JSON")
					   : UAR_OK;
}

static void note(struct sim_tools *t, uar_str key)
{
	size_t i = 0;

	while (i < t->done_count && !uar_str_is(key, t->done[i].key))
		i++;
	if (i == SIM_KEYS)
		return;
	if (i == t->done_count)
		snprintf(t->done[t->done_count++].key, sizeof t->done[0].key, "%.*s", UAR_FMT(key));
	t->done[i].times++;
}

unsigned sim_tools_done(const struct sim_world *w, const char *run_id, uar_str call_id)
{
	char key[sizeof w->tools.done[0].key];

	snprintf(key, sizeof key, "%s/%.*s", run_id, UAR_FMT(call_id));
	for (size_t i = 0; i < w->tools.done_count; i++)
		if (strcmp(w->tools.done[i].key, key) == 0)
			return w->tools.done[i].times;
	return 0;
}

static uar_err start(struct uar_tools *t, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct sim_world *w = world_of(t);
	struct uar_tool_call *c;

	if (w->tools.call_count == SIM_CALLS || sim_below(w, 20) == 0)
		return uar_error_set(error, UAR_EBUSY, "too many calls at once");
	c = uar_zalloc(sizeof *c);
	if (!c)
		return UAR_ENOMEM;
	note(&w->tools, r->key);
	c->events = *events;
	c->left = (unsigned)sim_below(w, 4);
	c->index = w->tools.call_count;
	w->tools.calls[w->tools.call_count++] = c;
	*out = c;
	return UAR_OK;
}

static void forget(struct sim_world *w, struct uar_tool_call *c)
{
	w->tools.calls[c->index] = w->tools.calls[--w->tools.call_count];
	w->tools.calls[c->index]->index = c->index;
	uar_free(c);
}

static void cancel(struct uar_tools *t, struct uar_tool_call *call)
{
	forget(world_of(t), call);
}

/* It has begun when it is started. */
static bool withdraw(struct uar_tools *t, struct uar_tool_call *call)
{
	(void)t, (void)call;
	return false;
}

static const struct uar_tools_ops ops = { .abi = 1,
					  .size = sizeof ops,
					  .at = at,
					  .check = check,
					  .start = start,
					  .cancel = cancel,
					  .withdraw = withdraw };

static void end_call(struct sim_world *w, struct uar_tool_call *c)
{
	struct uar_tool_events events = c->events;
	struct uar_tool_result r = { .ok = sim_below(w, 5) > 0,
				     .category = UAR_STR("execution"),
				     .message = UAR_STR("the seed wants a failure") };
	static char output[LONG_OUTPUT + 8];
	uint64_t kind = sim_below(w, 6);

	if (!output[0])
		snprintf(output, sizeof output, "\"%0*d\"", LONG_OUTPUT, 7);
	if (r.ok && kind)
		r.output = kind == 1 ? uar_str_c(output) : UAR_STR("{\"n\":1}");
	forget(w, c);
	events.done(events.ctx, &r);
}

bool sim_tools_step(struct sim_world *w)
{
	struct uar_tool_call *c;

	if (!w->tools.call_count)
		return false;
	c = w->tools.calls[sim_below(w, w->tools.call_count)];
	if (c->left == 0) {
		end_call(w, c);
		return true;
	}
	c->left--;
	c->events.progress(c->events.ctx, UAR_STR("\"on the way\""));
	return true;
}

void sim_tools_init(struct sim_world *w)
{
	w->tools.base.ops = &ops;
}
