/* state.c - the fold of a run (view.h), written as it stands. */
#include "proto/state.h"

#include "proto/view.h"

struct state {
	struct uar_view view;
	uint64_t at;
	int64_t time_us;
};

static uar_err begin(void *state, const struct uar_dialect_options *o)
{
	struct state *s = state;

	(void)o;
	uar_view_init(&s->view);
	return UAR_OK;
}

static void end(void *state)
{
	struct state *s = state;

	uar_view_fini(&s->view);
}

static uar_err on_change(void *ctx, const struct uar_view_change *change)
{
	(void)ctx;
	(void)change;
	return UAR_OK;
}

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	struct state *s = state;

	(void)out;
	s->at = ev->run_sequence;
	s->time_us = ev->time_us;
	return uar_view_apply(&s->view, ev, scratch, on_change, s);
}

static uar_err nothing(void *state, struct uar_frames *out)
{
	(void)state;
	(void)out;
	return UAR_OK;
}

/* --- writing -------------------------------------------------------------------------- */

static void put_calls(struct uar_jw *w, const struct uar_view_call *c)
{
	uar_jw_arr(w, "calls");
	for (; c; c = c->next) {
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "id", c->id);
		uar_jw_str(w, "name", c->name);
		uar_jw_str(w, "args", uar_buf_str(&c->args));
		uar_jw_bool(w, "complete", c->complete);
		uar_jw_bool(w, "ended", c->ended);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void put_message(struct uar_jw *w, const struct uar_view_message *m)
{
	static const char *const kinds[] = {
		[UAR_VIEW_USER] = "user",	    [UAR_VIEW_TEXT] = "text",
		[UAR_VIEW_REASONING] = "reasoning", [UAR_VIEW_RESULT] = "result",
		[UAR_VIEW_ACTIVITY] = "activity",
	};

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "kind", kinds[m->kind]);
	uar_jw_str(w, "id", m->id);
	uar_jw_str(w, "text", uar_buf_str(&m->text));
	if (m->calls)
		put_calls(w, m->calls);
	if (m->call) {
		uar_jw_str(w, "call_id", m->call->id);
		uar_jw_str_or_null(w, "error", m->error);
	}
	if (m->activity_type.n)
		uar_jw_str(w, "activity_type", m->activity_type);
	uar_jw_close(w);
}

static void put_actions(struct uar_jw *w, const struct uar_view_action *a)
{
	uar_jw_arr(w, "actions");
	for (; a; a = a->next) {
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "id", a->id);
		uar_jw_str(w, "type", a->type);
		uar_jw_str(w, "prompt", a->prompt);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void put_usage(struct uar_jw *w, const struct uar_view_usage *u)
{
	uar_jw_arr(w, "usage");
	for (; u; u = u->next) {
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "provider", u->provider);
		uar_jw_str(w, "model", u->model);
		uar_jw_int(w, "input_tokens", u->input);
		uar_jw_int(w, "output_tokens", u->output);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static uar_err answer(void *state, struct uar_buf *out, int *out_status)
{
	static const char *const ends[] = {
		[UAR_VIEW_LIVE] = "live",
		[UAR_VIEW_DONE] = "done",
		[UAR_VIEW_CANCELLED] = "cancelled",
		[UAR_VIEW_FAILED] = "failed",
	};
	const struct state *s = state;
	struct uar_jw w = uar_jw_begin(out);

	*out_status = 200;
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "run_id", s->view.run_id);
	uar_jw_u64(&w, "at", s->at);
	uar_jw_seconds(&w, "time", s->time_us);
	uar_jw_cstr(&w, "end", ends[s->view.end]);
	uar_jw_str_or_null(&w, "end_code", s->view.end_code);
	uar_jw_str_or_null(&w, "end_message", s->view.end_message);
	uar_jw_str_or_null(&w, "step", s->view.step);
	uar_jw_bool(&w, "waiting", s->view.waiting);
	uar_jw_bool(&w, "cut", s->view.cut);
	uar_jw_arr(&w, "messages");
	for (const struct uar_view_message *m = s->view.first; m; m = m->next)
		put_message(&w, m);
	uar_jw_close(&w);
	put_actions(&w, s->view.actions);
	put_usage(&w, s->view.usage);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

const struct uar_dialect uar_state = {
	.name = "state",
	.state_size = sizeof(struct state),
	.begin = begin,
	.encode = encode,
	.join = nothing,
	.leave = nothing,
	.answer = answer,
	.end = end,
};
