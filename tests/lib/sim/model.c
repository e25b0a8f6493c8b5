/* model.c - a model that says what the seed wants: text, reasoning, ends, failures, and
 * calls of tools, right and wrong ones. */
#include "sim/world.h"

#include "base/alloc.h"

enum { ROUNDS = 3, CALLS = 5, LONG_ARGS = 9000 };

struct sim_call {
	struct uar_model_events events;
	size_t index; /* in w->calls */
	unsigned said, length, asks;
	bool paused, fails;
};

static struct sim_world *world_of(struct uar_model *m)
{
	return UAR_OWNER(m, struct sim_world, model);
}

static void forget(struct sim_world *w, struct sim_call *c)
{
	w->calls[c->index] = w->calls[--w->call_count];
	w->calls[c->index]->index = c->index;
	uar_free(c);
}

static unsigned rounds_of(const struct uar_model_request *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->message_count; i++)
		n += uar_model_find_part(&r->messages[i], UAR_PART_CALL) != NULL;
	return n;
}

static uar_err start(struct uar_model *m, const struct uar_model_request *r,
		     const struct uar_model_events *events, struct uar_model_call **out,
		     struct uar_error *error)
{
	struct sim_world *w = world_of(m);
	struct sim_call *c;

	if (w->call_count == SIM_CALLS)
		return uar_error_set(error, UAR_EBUSY, "too many calls at once");
	c = uar_zalloc(sizeof *c);
	if (!c)
		return UAR_ENOMEM;
	c->events = *events;
	c->length = (unsigned)sim_below(w, 12);
	c->fails = sim_below(w, 10) == 0 && !w->eager;
	if (r->tool_count && rounds_of(r) < ROUNDS && (w->eager || sim_below(w, 3) == 0))
		c->asks = 1 + (unsigned)sim_below(w, CALLS);
	c->index = w->call_count;
	w->calls[w->call_count++] = c;
	*out = (struct uar_model_call *)c;
	return UAR_OK;
}

static void cancel(struct uar_model *m, struct uar_model_call *call)
{
	forget(world_of(m), (struct sim_call *)call);
}

static void pause_call(struct uar_model *m, struct uar_model_call *call, bool paused)
{
	(void)m;
	((struct sim_call *)call)->paused = paused;
}

static const struct uar_model_ops ops = { 2, sizeof ops, NULL, start, cancel, pause_call, NULL };

/* Ids are the same in every answer, as some providers have it. */
static size_t ask(struct sim_world *w, struct uar_model_tool_call *out, unsigned n)
{
	static const char *const names[] = {
		"look", "look", "peek", "put", "send", "write", "nope"
	};
	static const char *const ids[CALLS] = { "a", "b", "c", "d", "e" };
	static char long_args[LONG_ARGS + 16];

	if (!long_args[0])
		snprintf(long_args, sizeof long_args, "{\"long\":\"%0*d\"}", LONG_ARGS, 7);
	for (unsigned i = 0; i < n; i++)
		out[i] = (struct uar_model_tool_call){
			uar_str_c(ids[i]),
			uar_str_c(names[sim_below(w, ARRAY_LEN(names))]),
			sim_below(w, 8) == 0 ? UAR_STR("broken")
			: sim_below(w, 8)    ? UAR_STR("{\"n\":1}")
					     : uar_str_c(long_args),
		};
	return n;
}

/* The answer as a provider that seals a block of it wants it back. */
static size_t want_back(struct uar_model_part *out, const struct uar_model_tool_call *calls,
			size_t n)
{
	out[0] = (struct uar_model_part){ .kind = UAR_PART_OPAQUE,
					  .name = UAR_STR("sim"),
					  .text = UAR_STR("{\"sealed\":\"1\"}") };
	for (size_t i = 0; i < n; i++)
		out[i + 1] = (struct uar_model_part){ .kind = UAR_PART_CALL,
						      .id = calls[i].id,
						      .name = calls[i].name,
						      .text = calls[i].arguments };
	return n + 1;
}

static void end_call(struct sim_world *w, struct sim_call *c)
{
	struct uar_model_events events = c->events;
	struct uar_model_tool_call calls[CALLS];
	struct uar_model_part parts[CALLS + 1];
	struct uar_model_result result = {
		.failure = c->fails ? UAR_MODEL_FAIL_PROVIDER : UAR_MODEL_FAIL_NONE,
		.message = c->fails ? UAR_STR("the seed wants a failure") : UAR_STR(""),
		.stop_reason = UAR_STR("stop"),
		.usage = { 3, (int64_t)c->said, 3 + (int64_t)c->said, -1, -1, -1 },
		.calls = calls,
		.call_count = c->fails ? 0 : ask(w, calls, c->asks),
	};

	if (result.call_count && sim_below(w, 4) == 0) {
		result.parts = parts;
		result.part_count = want_back(parts, calls, result.call_count);
	}
	forget(w, c);
	events.done(events.ctx, &result);
}

bool sim_model_step(struct sim_world *w)
{
	static const char words[] = "the quick brown fox jumps over the lazy dog and goes on";
	struct sim_call *c;
	uar_str word;

	if (w->call_count == 0)
		return false;
	c = w->calls[sim_below(w, w->call_count)];
	if (c->paused)
		return false;
	if (c->said++ >= c->length) {
		end_call(w, c);
		return true;
	}
	word = uar_str_n(words, 1 + (size_t)sim_below(w, sizeof words - 1));
	if (sim_below(w, 5) == 0)
		c->events.reasoning(c->events.ctx, word);
	else
		c->events.text(c->events.ctx, word);
	return true;
}

void sim_model_init(struct sim_world *w)
{
	w->model.ops = &ops;
	w->model.provider = "sim";
}
