/* agui.c - changes of a run's view as AG-UI events. */
#include "proto/agui_int.h"
#include "base/sizes.h"

typedef const struct uar_view_change change_t;

/* --- one event each ------------------------------------------------------------------ */

/* An event whose only member is a string. */
static uar_err put_named(struct agui *a, const char *type, const char *key, uar_str value)
{
	agui_open(a, "meta", type);
	uar_jw_str(&a->w, key, value);
	return agui_close(a);
}

static uar_err start_text(struct agui *a, const struct uar_view_message *m)
{
	agui_open(a, "meta", "TEXT_MESSAGE_START");
	uar_jw_str(&a->w, "messageId", m->id);
	uar_jw_cstr(&a->w, "role", "assistant");
	return agui_close(a);
}

static uar_err start_reasoning(struct agui *a, const struct uar_view_message *m)
{
	uar_err e = put_named(a, "REASONING_START", "messageId", m->id);

	if (e)
		return e;
	agui_open(a, "meta", "REASONING_MESSAGE_START");
	uar_jw_str(&a->w, "messageId", m->id);
	uar_jw_cstr(&a->w, "role", "reasoning");
	return agui_close(a);
}

static uar_err on_message_started(struct agui *a, change_t *c)
{
	return c->message->kind == UAR_VIEW_TEXT ? start_text(a, c->message)
						 : start_reasoning(a, c->message);
}

static uar_err on_message_grew(struct agui *a, change_t *c)
{
	if (c->message->kind == UAR_VIEW_TEXT)
		agui_open(a, "chat.delta", "TEXT_MESSAGE_CONTENT");
	else
		agui_open(a, "thinking.delta", "REASONING_MESSAGE_CONTENT");
	uar_jw_str(&a->w, "messageId", c->message->id);
	uar_jw_str(&a->w, "delta", c->text);
	return agui_close(a);
}

static uar_err on_message_ended(struct agui *a, change_t *c)
{
	uar_err e;

	if (c->message->kind == UAR_VIEW_REASONING) {
		e = put_named(a, "REASONING_MESSAGE_END", "messageId", c->message->id);
		return e ? e : put_named(a, "REASONING_END", "messageId", c->message->id);
	}
	agui_open(a, "meta", "TEXT_MESSAGE_END");
	uar_jw_str(&a->w, "messageId", c->message->id);
	agui_put_cited(a, c->message);
	return agui_close(a);
}

static uar_err start_call(struct agui *a, const struct uar_view_message *m,
			  const struct uar_view_call *call)
{
	agui_open(a, "tool.start", "TOOL_CALL_START");
	uar_jw_str(&a->w, "toolCallId", call->id);
	uar_jw_str(&a->w, "toolCallName", call->name);
	if (!m->bare)
		uar_jw_str(&a->w, "parentMessageId", m->id);
	return agui_close(a);
}

static uar_err on_call_started(struct agui *a, change_t *c)
{
	return start_call(a, c->message, c->call);
}

static uar_err on_call_args(struct agui *a, change_t *c)
{
	agui_open(a, "meta", "TOOL_CALL_ARGS");
	uar_jw_str(&a->w, "toolCallId", c->call->id);
	uar_jw_str(&a->w, "delta", c->text);
	return agui_close(a);
}

static uar_err on_call_complete(struct agui *a, change_t *c)
{
	return put_named(a, "TOOL_CALL_END", "toolCallId", c->call->id);
}

static uar_err on_call_ended(struct agui *a, change_t *c)
{
	agui_open(a, "tool.end", "TOOL_CALL_RESULT");
	uar_jw_str(&a->w, "messageId", c->message->id);
	uar_jw_str(&a->w, "toolCallId", c->call->id);
	uar_jw_str(&a->w, "content", c->text);
	uar_jw_cstr(&a->w, "role", "tool");
	agui_put_outcome(a, c->message);
	return agui_close(a);
}

static const char *activity_name(const struct uar_view_message *m)
{
	if (uar_str_is(m->activity_type, "uar.tool"))
		return "tool.delta";
	return uar_str_is(m->activity_type, "uar.memory") ? "memory" : "artifact";
}

/* Further content replaces the one before, in place. */
static uar_err put_activity(struct agui *a, change_t *c)
{
	agui_open(a, activity_name(c->message), c->first ? "ACTIVITY_SNAPSHOT" : "ACTIVITY_DELTA");
	uar_jw_str(&a->w, "messageId", c->message->id);
	uar_jw_str(&a->w, "activityType", c->message->activity_type);
	if (c->first) {
		uar_jw_raw(&a->w, "content", c->text);
		return agui_close(a);
	}
	uar_jw_arr(&a->w, "patch");
	uar_jw_obj(&a->w, NULL);
	uar_jw_cstr(&a->w, "op", "replace");
	uar_jw_cstr(&a->w, "path", "");
	uar_jw_raw(&a->w, "value", c->text);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	return agui_close(a);
}

static uar_err on_activity(struct agui *a, change_t *c)
{
	uar_err e = put_activity(a, c);

	return e ? e : agui_surface(a, c->message);
}

static uar_err on_cited(struct agui *a, change_t *c)
{
	agui_open(a, "citation", "CUSTOM");
	uar_jw_cstr(&a->w, "name", "uar.citation");
	uar_jw_obj(&a->w, "value");
	uar_jw_tree(&a->w, "sources", c->json);
	uar_jw_close(&a->w);
	return agui_close(a);
}

/* What cannot be patched is told whole. */
static uar_err on_state(struct agui *a, change_t *c)
{
	if (c->first)
		return agui_state(a);
	agui_open(a, "meta", "STATE_DELTA");
	uar_jw_raw(&a->w, "delta", c->text);
	return agui_close(a);
}

static uar_err on_noted(struct agui *a, change_t *c)
{
	char name[64];
	int n = snprintf(name, sizeof name, "uar.%.*s", UAR_FMT(c->text));

	agui_open(a, uar_str_is(c->text, "artifact.error") ? "artifact.error" : "meta", "CUSTOM");
	uar_jw_str(&a->w, "name", uar_str_n(name, (size_t)n));
	uar_jw_tree(&a->w, "value", c->json);
	return agui_close(a);
}

static uar_err on_step_started(struct agui *a, change_t *c)
{
	a->step = true;
	return put_named(a, "STEP_STARTED", "stepName", c->text);
}

static uar_err finish_step(struct agui *a, uar_str name)
{
	if (!a->step)
		return UAR_OK;
	a->step = false;
	return put_named(a, "STEP_FINISHED", "stepName", name);
}

static uar_err on_step_finished(struct agui *a, change_t *c)
{
	return finish_step(a, c->text);
}

static uar_err on_superseded(struct agui *a, change_t *c)
{
	(void)c;
	return agui_messages(a, false);
}

/* --- AG-UI runs ------------------------------------------------------------------------- */

static uar_err begin_segment(struct agui *a)
{
	if (a->running)
		return UAR_OK;
	agui_next_segment(a);
	return agui_started(a);
}

/* A reader without messages and a state of its own is shown what was sent. */
static uar_err on_started(struct agui *a, change_t *c)
{
	uar_err e = UAR_OK;

	(void)c;
	if (a->view.state.n && !a->o.state.n)
		e = agui_state(a);
	if (!e && a->view.first && (!a->o.history.n || a->o.earlier))
		e = agui_messages(a, false);
	return e;
}

static uar_err on_waiting(struct agui *a, change_t *c)
{
	uar_err e = finish_step(a, a->view.step);

	(void)c;
	if (!e && !agui_waits_for_client(a)) {
		e = agui_state(a);
		if (!e)
			e = agui_messages(a, false);
	}
	return e ? e : agui_interrupted(a);
}

static uar_err on_resumed(struct agui *a, change_t *c)
{
	(void)a;
	(void)c;
	return UAR_OK;
}

static uar_err on_ended(struct agui *a, change_t *c)
{
	char code[UAR_LIMIT_ID_BYTES];

	(void)c;
	if (a->view.end != UAR_VIEW_FAILED)
		return agui_finished(a);
	snprintf(code, sizeof code, "%.*s", UAR_FMT(a->view.end_code));
	return agui_failed(a, code, a->view.end_message);
}

static uar_err (*const shown[])(struct agui *a, change_t *c) = {
	[UAR_VIEW_STARTED] = on_started,
	[UAR_VIEW_STEP_STARTED] = on_step_started,
	[UAR_VIEW_STEP_FINISHED] = on_step_finished,
	[UAR_VIEW_MESSAGE_STARTED] = on_message_started,
	[UAR_VIEW_MESSAGE_GREW] = on_message_grew,
	[UAR_VIEW_MESSAGE_ENDED] = on_message_ended,
	[UAR_VIEW_CALL_STARTED] = on_call_started,
	[UAR_VIEW_CALL_ARGS] = on_call_args,
	[UAR_VIEW_CALL_COMPLETE] = on_call_complete,
	[UAR_VIEW_CALL_ENDED] = on_call_ended,
	[UAR_VIEW_ACTIVITY_CHANGED] = on_activity,
	[UAR_VIEW_CITED] = on_cited,
	[UAR_VIEW_STATE_CHANGED] = on_state,
	[UAR_VIEW_SUPERSEDED] = on_superseded,
	[UAR_VIEW_WAITING] = on_waiting,
	[UAR_VIEW_RESUMED] = on_resumed,
	[UAR_VIEW_NOTED] = on_noted,
	[UAR_VIEW_ENDED] = on_ended,
};

/* Whatever is shown while no AG-UI run is open begins one. A step was finished with the
 * run that it began in, so its end shows nothing. */
static uar_err on_change(void *ctx, change_t *c)
{
	struct agui *a = ctx;
	uar_err e = UAR_OK;

	if (c->kind == UAR_VIEW_ASKED || c->kind == UAR_VIEW_ANSWERED)
		return UAR_OK; /* told when the run rests */
	if (c->kind != UAR_VIEW_STEP_FINISHED || a->step)
		e = begin_segment(a);
	return e ? e : shown[c->kind](a, c);
}

/* --- the dialect -------------------------------------------------------------------------- */

static uar_err begin(void *state, const struct uar_dialect_options *o)
{
	struct agui *a = state;

	*a = (struct agui){ .o = *o };
	uar_view_init(&a->view);
	return o->state.n ? uar_view_set_state(&a->view, o->state) : UAR_OK;
}

static void end(void *state)
{
	struct agui *a = state;

	uar_view_fini(&a->view);
}

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	struct agui *a = state;
	uar_err e;

	a->out = out;
	a->time_us = ev->time_us;
	e = uar_view_apply(&a->view, ev, scratch, on_change, a);
	a->out = NULL;
	return e;
}

/* Items that are open begin again; what follows is appended to what the snapshot has. */
static uar_err reopen(struct agui *a)
{
	const struct uar_view_message *open = a->view.open;
	uar_err e = UAR_OK;

	if (a->step)
		e = put_named(a, "STEP_STARTED", "stepName", a->view.step);
	if (!e && open)
		e = open->kind == UAR_VIEW_TEXT ? start_text(a, open) : start_reasoning(a, open);
	for (const struct uar_view_message *m = a->view.first; m && !e; m = m->next)
		for (const struct uar_view_call *c = m->calls; c && !e; c = c->next)
			if (!c->complete)
				e = start_call(a, m, c);
	return e;
}

static uar_err join(void *state, struct uar_frames *out)
{
	struct agui *a = state;
	uar_err e;

	if (!a->segment)
		return UAR_OK;
	if (a->view.cut)
		return UAR_ETOOBIG;
	a->out = out;
	a->time_us = 0;
	if (!a->running && !a->view.actions) /* all are answered, the run goes on */
		agui_next_segment(a);
	e = agui_started(a);
	if (!e)
		e = agui_state(a);
	if (!e)
		e = agui_messages(a, true);
	if (!e && a->running)
		e = reopen(a);
	else if (!e)
		e = agui_interrupted(a);
	a->out = NULL;
	return e;
}

static uar_err leave(void *state, struct uar_frames *out)
{
	struct agui *a = state;
	uar_err e;

	if (!a->running)
		return UAR_OK;
	a->out = out;
	a->time_us = 0;
	e = agui_failed(a, "unavailable",
			UAR_STR("the stream ends before the run does; attach to it again"));
	a->out = NULL;
	return e;
}

uar_err uar_agui_refuse(const struct uar_error *error, struct uar_frames *out)
{
	struct agui a = { .out = out };

	return agui_failed(&a, uar_err_token(error->code), uar_str_c(uar_error_text(error)));
}

const struct uar_dialect uar_agui = {
	.name = "ag-ui",
	.state_size = sizeof(struct agui),
	.begin = begin,
	.encode = encode,
	.join = join,
	.leave = leave,
	.end = end,
};
