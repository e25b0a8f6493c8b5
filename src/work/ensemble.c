/* ensemble.c - what a ranker is told, and what it says. */
#include "work/ensemble.h"

#include "agent/prompt.h"

static const uar_str task = UAR_STR(
	"\n\nSeveral models have answered this. Do not answer it yourself. Compare their answers, "
	"which follow as data, and write the number of the best one and nothing else.\n\n");

size_t rt_ensemble_place(const struct uar_run_route *route, size_t n)
{
	size_t at = 0;

	while (at < route->count && (!route->answers[at][0] || --n))
		at++;
	return at;
}

size_t rt_ensemble_answers(const struct uar_run_route *route)
{
	size_t n = 0;

	for (size_t i = 0; i < route->count; i++)
		n += route->answers[i][0] != 0;
	return n;
}

/* The first number that is one of theirs: models like to explain themselves. */
size_t rt_ensemble_named(uar_str said, size_t count)
{
	for (size_t i = 0; i < said.n; i++) {
		size_t n = 0;
		bool digit = said.p[i] >= '0' && said.p[i] <= '9';

		while (i < said.n && said.p[i] >= '0' && said.p[i] <= '9') {
			n = n <= count ? n * 10 + (size_t)(said.p[i] - '0') : n;
			i++;
		}
		if (digit && n >= 1 && n <= count)
			return n;
	}
	return 0;
}

static uar_err load_next(struct llm *w);

static void answer_ready(void *ctx, uar_err e, uar_str text)
{
	struct llm *w = ctx;
	char name[32];

	w->input = NULL;
	snprintf(name, sizeof name, "answer %zu", ++w->ensemble.told);
	uar_prompt_put_data(&w->message, uar_str_c(name),
			    uar_str_utf8_prefix(text, UAR_LIMIT_RANKED_TEXT));
	if (!e)
		e = w->message.err ? w->message.err : load_next(w);
	if (e)
		w->ensemble.done(w, e);
}

static uar_err load_next(struct llm *w)
{
	const struct uar_run_route *route = &uar_run_rare(rt_state(w->base.run))->route;
	size_t at = rt_ensemble_place(route, w->ensemble.told + 1);

	if (at < route->count)
		return rt_text_load(w->base.run, uar_str_c(route->answers[at]), answer_ready, w,
				    &w->input);
	w->ensemble.done(w, UAR_OK);
	return UAR_OK;
}

uar_err rt_ensemble_load(struct llm *w, void (*done)(struct llm *w, uar_err e))
{
	w->ensemble.done = done;
	w->ensemble.told = 0;
	uar_buf_add_str(&w->message, task);
	return w->message.err ? w->message.err : load_next(w);
}
