/* worker.c - which worker executes which entry, and the simplest of them. */
#include "runtime/runtime_int.h"

static uar_err (*const makers[UAR_ENTRY_COUNT])(struct live_run *r, struct worker **out) = {
	[UAR_ENTRY_ECHO] = rt_echo_make,     [UAR_ENTRY_FIXTURE] = rt_fixture_make,
	[UAR_ENTRY_LLM] = rt_llm_make,	     [UAR_ENTRY_PLUGIN] = rt_plugin_make,
	[UAR_ENTRY_CODEX] = rt_backend_make, [UAR_ENTRY_CLAUDE_CODE] = rt_backend_make,
	[UAR_ENTRY_ACP] = rt_backend_make,
};

uar_err rt_worker_start(struct live_run *r, struct uar_error *error)
{
	uar_err e = makers[r->state.what.entry](r, &r->worker);

	if (e)
		return e;
	r->worker->run = r;
	e = r->worker->ops->start(r->worker, error);
	if (e)
		rt_worker_stop(r);
	return e;
}

void rt_worker_stop(struct live_run *r)
{
	struct worker *w = r->worker;

	if (!w)
		return;
	r->worker = NULL;
	w->ops->stop(w);
}

/* --- echo: says what it was told; after a restart, what it has not said yet ---- */

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
	w->rest = uar_str_from(text, (size_t)w->base.run->state.call.chars);
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
					    NULL };

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
