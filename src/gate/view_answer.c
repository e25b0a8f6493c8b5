/* view_answer.c - a run in a dialect as one JSON answer: folded from its first event on.
 *
 * The answer comes when the run ends or hands something over to the client; with `until`
 * it comes when that event is folded. The run goes on if the caller leaves. */
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/limits.h"
#include "read/stream.h"

struct view_answer {
	struct call *call;
	struct uar_stream *stream;
	struct gate_view view; /* strings are the call's */
	void *state;
	uint64_t until; /* 0: until the dialect's request is complete */
	struct uar_timer bound;
	bool joined;
};

static void free_answer(struct view_answer *s)
{
	uar_timer_stop(s->call->g->o.sched, &s->bound);
	uar_stream_close(s->stream);
	if (s->state)
		s->view.dialect->end(s->state);
	uar_free(s->state);
	uar_free(s);
}

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

/* What earlier requests were told is not told again. */
static uar_err join_at(struct view_answer *s, const struct uar_event *ev, struct uar_frames *frames)
{
	bool reached = s->view.after_action.n
			       ? ev->cls == UAR_EV_ACTION_RESOLVED &&
					 uar_str_eq(ev->ids[UAR_ID_ACTION], s->view.after_action)
			       : ev->run_sequence >= s->view.cursor.run_sequence;

	if (s->joined || !reached)
		return UAR_OK;
	s->joined = true;
	frames->closed = false;
	return s->view.dialect->join(s->state, frames);
}

static uar_err fold_event(struct view_answer *s, const struct uar_event *ev)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	struct uar_frames frames = { .out = &out };
	bool last = uar_event_ends_run(ev);
	uar_err e;

	uar_arena_reset(&s->call->g->scratch);
	e = s->view.dialect->encode(s->state, ev, &s->call->g->scratch, &frames);
	if (!e && !last)
		e = join_at(s, ev, &frames);
	uar_buf_fini(&out);
	if (e || last)
		return e;
	if (s->until)
		return ev->run_sequence >= s->until ? UAR_ESKIP : UAR_OK;
	return s->joined && frames.closed ? UAR_ESKIP : UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++)
		e = fold_event(ctx, &ev[i]);
	return e;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct view_answer *s = ctx;
	struct call *c = s->call;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RUN_ANSWER_BYTES);
	int status = 200;
	uar_err e = why == UAR_ESKIP ? UAR_OK : why;

	s->stream = NULL;
	c->gone = NULL;
	c->hurry = NULL;
	if (!e)
		e = s->view.dialect->answer(s->state, &b, &status);
	free_answer(s);
	if (e)
		gate_problem(c, e, why ? error : NULL);
	else
		gate_answer(c, status, &b);
	uar_buf_fini(&b);
}

/* It has waited long enough: the run as it is now. */
static void on_bound(struct uar_timer *t)
{
	struct view_answer *s = UAR_OWNER(t, struct view_answer, bound);

	uar_stream_close(s->stream);
	on_end(s, UAR_OK, NULL);
}

static void on_gone(struct call *c)
{
	free_answer(c->op);
	gate_call_free(c);
}

static void on_hurry(struct call *c)
{
	c->gone = NULL;
	free_answer(c->op);
	gate_problem(c, UAR_EDRAINING, NULL);
}

static uar_err open_answer(struct call *c, uar_str run_id, const struct gate_view *view,
			   uint64_t until)
{
	struct uar_stream_options o = { .owner = c->owner,
					.run_id = run_id,
					.stored = view->stored };
	struct view_answer *s = uar_zalloc(sizeof *s);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	s->call = c;
	s->view = *view;
	s->until = until;
	s->joined = !view->cursor.run_sequence && !view->after_action.n;
	s->state = uar_zalloc(view->dialect->state_size);
	e = s->state ? view->dialect->begin(s->state, &s->view.options) : UAR_ENOMEM;
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, s };
	if (!e)
		e = uar_stream_open(c->g->o.reader, &o, &s->stream);
	s->bound.fn = on_bound;
	if (!e && view->wait_us)
		e = uar_timer_set(c->g->o.sched, &s->bound, view->wait_us);
	if (e) {
		free_answer(s);
		return e;
	}
	c->op = s;
	c->gone = on_gone;
	c->hurry = on_hurry;
	return UAR_OK;
}

void gate_answer_view(struct call *c, uar_str run_id, const struct gate_view *view, uint64_t until)
{
	uar_err e = c->g->draining ? UAR_EDRAINING : open_answer(c, run_id, view, until);

	if (e)
		gate_problem(c, e, NULL);
}
