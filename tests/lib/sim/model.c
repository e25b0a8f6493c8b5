/* model.c - a model that says what the seed wants: text, reasoning, ends, failures. */
#include "sim/world.h"

#include "base/alloc.h"

struct sim_call {
	struct uar_model_events events;
	size_t index; /* in w->calls */
	unsigned said, length;
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

static uar_err start(struct uar_model *m, const struct uar_model_request *r,
		     const struct uar_model_events *events, struct uar_model_call **out,
		     struct uar_error *error)
{
	struct sim_world *w = world_of(m);
	struct sim_call *c;

	(void)r;
	if (w->call_count == SIM_CALLS)
		return uar_error_set(error, UAR_EBUSY, "too many calls at once");
	c = uar_zalloc(sizeof *c);
	if (!c)
		return UAR_ENOMEM;
	c->events = *events;
	c->length = (unsigned)sim_below(w, 12);
	c->fails = sim_below(w, 10) == 0;
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

static const struct uar_model_ops ops = { 1, sizeof ops, "sim", NULL, start, cancel, pause_call };

static void end_call(struct sim_world *w, struct sim_call *c)
{
	struct uar_model_events events = c->events;
	struct uar_model_result result = {
		.failure = c->fails ? UAR_MODEL_FAIL_PROVIDER : UAR_MODEL_FAIL_NONE,
		.message = c->fails ? UAR_STR("the seed wants a failure") : UAR_STR(""),
		.stop_reason = UAR_STR("stop"),
		.usage = { 3, (int64_t)c->said, 3 + (int64_t)c->said },
	};

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
}
