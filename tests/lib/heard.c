/* heard.c - the recorder of model calls. */
#include "heard.h"

#include "model_talk.h"
#include "test.h"

static void leave(struct heard *h)
{
	h->model->ops->cancel(h->model, h->call);
	uar_loop_stop(h->loop);
}

static void on_text(void *ctx, uar_str delta)
{
	struct heard *h = ctx;

	h->texts++;
	CHECK(delta.n > 0 && uar_utf8_valid(delta));
	uar_buf_add_str(&h->text, delta);
	if (h->pause_on_text)
		h->model->ops->pause(h->model, h->call, true);
	if (h->cancel_on_text)
		leave(h);
	if (h->then && uar_str_is(uar_buf_str(&h->text), h->awaited))
		uar_post(uar_loop_sched(h->loop), h->then);
}

static void on_reasoning(void *ctx, uar_str delta)
{
	struct heard *h = ctx;

	h->thoughts++;
	CHECK(delta.n > 0 && uar_utf8_valid(delta));
	uar_buf_add_str(&h->reasoning, delta);
	if (h->cancel_on_reasoning)
		leave(h);
}

static void on_done(void *ctx, const struct uar_model_result *r)
{
	struct heard *h = ctx;

	h->dones++;
	h->result = *r;
	h->result.message = h->result.stop_reason = h->result.actual_model = UAR_STR("");
	uar_buf_add_str(&h->message, r->message);
	h->result.calls = NULL;
	h->result.parts = NULL;
	h->result.request_id = UAR_STR("");
	for (size_t i = 0; i < r->part_count; i++)
		uar_buf_printf(&h->parts, "%d %.*s %.*s\n", r->parts[i].kind,
			       UAR_FMT(r->parts[i].name), UAR_FMT(r->parts[i].text));
	snprintf(h->request_id, sizeof h->request_id, "%.*s", UAR_FMT(r->request_id));
	for (size_t i = 0; i < r->call_count; i++)
		uar_buf_printf(&h->calls, "%.*s %.*s %.*s\n", UAR_FMT(r->calls[i].id),
			       UAR_FMT(r->calls[i].name), UAR_FMT(r->calls[i].arguments));
	snprintf(h->stop, sizeof h->stop, "%.*s", UAR_FMT(r->stop_reason));
	snprintf(h->name, sizeof h->name, "%.*s", UAR_FMT(r->actual_model));
	uar_loop_stop(h->loop);
}

static void on_resume(struct uar_timer *t)
{
	struct heard *h = UAR_OWNER(t, struct heard, resume);

	if (h->texts == 0) { /* a slow machine: not paused yet */
		heard_resume_after(h, 1000);
		return;
	}
	CHECK_INT(h->texts, 1);
	CHECK_INT(h->dones, 0);
	h->pause_on_text = false;
	h->model->ops->pause(h->model, h->call, false);
}

void heard_init(struct heard *h, struct uar_model *m, struct uar_loop *l)
{
	*h = (struct heard){ .model = m, .loop = l, .resume.fn = on_resume };
	h->text = uar_buf_make(1 << 23);
	h->reasoning = uar_buf_make(1 << 20);
	h->message = uar_buf_make(1 << 20);
	h->calls = uar_buf_make(1 << 20);
	h->parts = uar_buf_make(1 << 23);
}

void heard_fini(struct heard *h)
{
	uar_buf_fini(&h->text);
	uar_buf_fini(&h->reasoning);
	uar_buf_fini(&h->message);
	uar_buf_fini(&h->calls);
	uar_buf_fini(&h->parts);
}

struct uar_model_events heard_events(struct heard *h)
{
	return (struct uar_model_events){ on_text, on_reasoning, on_done, h };
}

uar_err heard_start(struct heard *h, const struct uar_model_request *r)
{
	struct uar_model_events ev = heard_events(h);
	struct uar_error error = { 0 };
	uar_err e = h->model->ops->start(h->model, r, &ev, &h->call, &error);

	CHECK_INT(h->texts + h->thoughts + h->dones, 0);
	CHECK(e == UAR_OK || error.code == e);
	return e;
}

bool heard_hello(struct heard *h, const char *model, int64_t idle_us)
{
	const struct uar_model_message hello[] = { SAYS(USER, "Hello") };
	struct uar_model_request r = { .model = uar_str_c(model),
				       .messages = hello,
				       .message_count = 1,
				       .idle_timeout_us = idle_us };
	uar_err e = heard_start(h, &r);

	return CHECK_MSG(e == UAR_OK, "%s", uar_err_name(e));
}

void heard_resume_after(struct heard *h, int64_t us)
{
	CHECK(uar_timer_set(uar_loop_sched(h->loop), &h->resume, us) == UAR_OK);
}
