/* entry_echo.c - echo: says what it was told; after a restart, what it has not said yet. */
#include "core/limits.h"
#include "work/limits.h"
#include "work/work_int.h"

struct echo {
	struct worker base;
	struct input_load *load;
	uar_str rest;	     /* to be said yet */
	struct uar_buf kept; /* it, while there is no room */
};

static void echo_say(struct echo *w)
{
	static const struct uar_command finish = { .kind = UAR_CMD_FINISH };

	while (w->rest.n) {
		uar_str piece = uar_str_utf8_prefix(w->rest, UAR_LIMIT_DELTA_COMMAND);

		w->rest = uar_str_from(w->rest, piece.n);
		if (!rt_send_text(w->base.run, UAR_CMD_TEXT, piece) && w->rest.n)
			return;
	}
	rt_send(w->base.run, &finish);
}

/* The text is gone after this call. */
static void echo_keep(struct echo *w)
{
	w->kept = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	uar_buf_add_str(&w->kept, w->rest);
	w->rest = uar_buf_str(&w->kept);
	if (w->kept.err)
		rt_lose(w->base.run, w->kept.err);
}

static void echo_ready(void *ctx, uar_err e, uar_str text)
{
	struct echo *w = ctx;

	w->load = NULL;
	if (e) {
		rt_send_fail(w->base.run, e, "execution", uar_err_text(e));
		return;
	}
	w->rest = uar_str_from(text, (size_t)rt_state(w->base.run)->call.chars);
	echo_say(w);
	if (w->rest.n)
		echo_keep(w);
}

static uar_err echo_start(struct worker *base, struct uar_error *error)
{
	struct echo *w = (struct echo *)base;

	(void)error;
	return rt_input_load(base->run, echo_ready, w, &w->load);
}

static void echo_call_model(struct worker *w)
{
	(void)w;
}

static void echo_flow(struct worker *base)
{
	struct echo *w = (struct echo *)base;

	if (w->rest.n)
		echo_say(w);
}

static void echo_stop(struct worker *base)
{
	struct echo *w = (struct echo *)base;

	rt_input_cancel(w->load);
	uar_buf_fini(&w->kept);
	uar_free(w);
}

static const struct worker_ops echo_ops = { "echo",    echo_start, echo_call_model,
					    echo_flow, echo_stop,  NULL,
					    NULL,      NULL,	   NULL };

uar_err rt_echo_make(struct live_run *r, struct worker **out)
{
	struct echo *w = uar_zalloc(sizeof *w);

	(void)r;
	if (!w)
		return UAR_ENOMEM;
	w->base.ops = &echo_ops;
	*out = &w->base;
	return UAR_OK;
}
