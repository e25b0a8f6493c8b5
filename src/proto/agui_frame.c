/* agui_frame.c - the larger AG-UI events: snapshots, the start and the end of a run. */
#include "proto/agui_int.h"
#include "base/sizes.h"
#include "proto/limits.h"

void agui_open(struct agui *a, const char *event, const char *type)
{
	uar_frame_open(a->out, event);
	a->w = uar_jw_begin(a->out->out);
	uar_jw_obj(&a->w, NULL);
	uar_jw_cstr(&a->w, "type", type);
	if (a->time_us)
		uar_jw_int(&a->w, "timestamp", a->time_us / 1000);
}

uar_err agui_close(struct agui *a)
{
	uar_jw_close(&a->w);
	return uar_frame_close(a->out, &a->w);
}

/* --- messages --------------------------------------------------------------------- */

static void put_calls(struct agui *a, const struct uar_view_message *m)
{
	if (!m->calls)
		return;
	uar_jw_arr(&a->w, "toolCalls");
	for (const struct uar_view_call *c = m->calls; c; c = c->next) {
		uar_jw_obj(&a->w, NULL);
		uar_jw_str(&a->w, "id", c->id);
		uar_jw_cstr(&a->w, "type", "function");
		uar_jw_obj(&a->w, "function");
		uar_jw_str(&a->w, "name", c->name);
		uar_jw_str(&a->w, "arguments", uar_buf_str(&c->args));
		uar_jw_close(&a->w);
		uar_jw_close(&a->w);
	}
	uar_jw_close(&a->w);
}

void agui_put_cited(struct agui *a, const struct uar_view_message *m)
{
	if (!m->cited.n)
		return;
	uar_jw_obj(&a->w, "metadata");
	uar_jw_arr(&a->w, "uar.citations");
	uar_jw_raw(&a->w, NULL, uar_buf_str(&m->cited));
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
}

void agui_put_outcome(struct agui *a, const struct uar_view_message *m)
{
	uar_jw_obj(&a->w, "metadata");
	uar_jw_obj(&a->w, "uar");
	uar_jw_str(&a->w, "toolCallName", m->call->name);
	uar_jw_bool(&a->w, "isError", m->error.n > 0);
	if (m->code.n)
		uar_jw_str(&a->w, "code", m->code);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
}

static void put_result(struct agui *a, const struct uar_view_message *m)
{
	uar_jw_str(&a->w, "toolCallId", m->call->id);
	uar_jw_str(&a->w, "content", uar_buf_str(&m->text));
	if (m->error.n)
		uar_jw_str(&a->w, "error", m->error);
	agui_put_outcome(a, m);
}

static void put_assistant(struct agui *a, const struct uar_view_message *m)
{
	if (!m->bare)
		uar_jw_str(&a->w, "content", uar_buf_str(&m->text));
	put_calls(a, m);
	if (m != a->view.open) /* an open one is told when it ends */
		agui_put_cited(a, m);
}

static void put_message(struct agui *a, const struct uar_view_message *m)
{
	static const char *const roles[] = {
		[UAR_VIEW_USER] = "user",	  [UAR_VIEW_TEXT] = "assistant",
		[UAR_VIEW_RESULT] = "tool",	  [UAR_VIEW_REASONING] = "reasoning",
		[UAR_VIEW_ACTIVITY] = "activity",
	};

	uar_jw_obj(&a->w, NULL);
	uar_jw_str(&a->w, "id", m->id);
	uar_jw_cstr(&a->w, "role", roles[m->kind]);
	switch (m->kind) {
	case UAR_VIEW_TEXT: put_assistant(a, m); break;
	case UAR_VIEW_RESULT: put_result(a, m); break;
	case UAR_VIEW_ACTIVITY:
		uar_jw_str(&a->w, "activityType", m->activity_type);
		uar_jw_raw(&a->w, "content", uar_buf_str(&m->text));
		break;
	case UAR_VIEW_USER:
	case UAR_VIEW_REASONING: uar_jw_str(&a->w, "content", uar_buf_str(&m->text)); break;
	}
	uar_jw_close(&a->w);
}

static uar_err put_with_surface(struct agui *a, const struct uar_view_message *m)
{
	uar_err e = UAR_OK;

	put_message(a, m);
	if (m->kind == UAR_VIEW_ACTIVITY) {
		a->in_list = true;
		e = agui_surface(a, m);
		a->in_list = false;
	}
	return e;
}

/* Without activities a reader keeps those that it has. */
uar_err agui_messages(struct agui *a, bool activities)
{
	uar_err e = UAR_OK;

	if (a->view.cut)
		return UAR_OK;
	agui_open(a, "meta", "MESSAGES_SNAPSHOT");
	uar_jw_arr(&a->w, "messages");
	if (a->o.history.n)
		uar_jw_raw(&a->w, NULL, a->o.history);
	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		if ((activities || m->kind != UAR_VIEW_ACTIVITY) &&
		    (m->kind != UAR_VIEW_USER || !a->o.history.n || a->o.earlier) && !e)
			e = put_with_surface(a, m);
	uar_jw_close(&a->w);
	return e ? e : agui_close(a);
}

uar_err uar_agui_write_messages(void *state, struct uar_buf *out)
{
	struct uar_buf list = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	struct agui *a = state;
	uar_err e = UAR_OK, end;

	a->w = uar_jw_begin(&list);
	uar_jw_arr(&a->w, NULL);
	for (const struct uar_view_message *m = a->view.first; m && !e; m = m->next)
		e = put_with_surface(a, m);
	uar_jw_close(&a->w);
	end = uar_jw_end(&a->w);
	e = e ? e : end;
	if (!e && list.n > 2) { /* without the brackets */
		if (out->n)
			uar_buf_add_char(out, ',');
		uar_buf_add(out, list.p + 1, list.n - 2);
		e = out->err;
	}
	uar_buf_fini(&list);
	return e;
}

uar_err uar_agui_write_rest(uar_str thread_id, uar_str run_name, uar_str history,
			    struct uar_buf *out)
{
	struct uar_frames frames = { .out = out };
	struct agui a = { .view = { .thread_id = thread_id, .run_id = run_name },
			  .o = { .history = history },
			  .out = &frames };
	uar_err e = agui_started(&a);

	if (!e && history.n)
		e = agui_messages(&a, true);
	return e ? e : agui_finished(&a);
}

uar_err agui_state(struct agui *a)
{
	agui_open(a, "meta", "STATE_SNAPSHOT");
	uar_jw_raw(&a->w, "snapshot",
		   a->view.state.n ? uar_buf_str(&a->view.state) : UAR_STR("{}"));
	return agui_close(a);
}

/* --- start and end ------------------------------------------------------------------- */

/* A name is good for one segment. */
void agui_next_segment(struct agui *a)
{
	a->running = true;
	a->segment++;
	a->segment_name = a->view.continued;
	a->view.continued = UAR_STR_NONE;
}

/* The first AG-UI run has the name of the run. Those that follow have the one that the client
 * gave with its answer, or a number behind the first. */
static void put_ids(struct agui *a)
{
	uar_str run = a->view.named.n ? a->view.named : a->view.run_id;
	char name[2 * UAR_LIMIT_ID_BYTES];
	int n;

	uar_jw_str(&a->w, "threadId", a->view.thread_id);
	n = snprintf(name, sizeof name, "%.*s.%u", UAR_FMT(run), a->segment);
	uar_jw_str(&a->w, "runId",
		   a->o.run_name.n     ? a->o.run_name
		   : a->segment_name.n ? a->segment_name
		   : a->segment > 1    ? uar_str_n(name, (size_t)n)
				       : run);
}

uar_err agui_started(struct agui *a)
{
	agui_open(a, "run.start", "RUN_STARTED");
	put_ids(a);
	if (!a->o.old_peer)
		uar_jw_cstr(&a->w, "protocolVersion", "1.0");
	if (a->view.named.n) {
		uar_jw_obj(&a->w, "metadata");
		uar_jw_obj(&a->w, "uar");
		uar_jw_str(&a->w, "runId", a->view.run_id);
		uar_jw_close(&a->w);
		uar_jw_close(&a->w);
	}
	return agui_close(a);
}

static bool has_usage(const struct uar_view_usage *u)
{
	return u->input || u->output || u->total;
}

static void put_one_usage(struct agui *a, struct uar_view_usage *u)
{
	uar_jw_obj(&a->w, NULL);
	if (u->provider.n)
		uar_jw_str(&a->w, "provider", u->provider);
	if (u->model.n)
		uar_jw_str(&a->w, "model", u->model);
	uar_jw_int(&a->w, "inputTokens", u->input);
	uar_jw_int(&a->w, "outputTokens", u->output);
	uar_jw_int(&a->w, "totalTokens", u->total);
	if (u->cached >= 0)
		uar_jw_int(&a->w, "cachedInputTokens", u->cached);
	uar_jw_close(&a->w);
	u->input = u->output = u->total = 0;
	u->cached = -1;
}

/* What was used since the last AG-UI run ended. */
static void put_usage(struct agui *a)
{
	bool open = false;

	for (struct uar_view_usage *u = a->view.usage; u; u = u->next) {
		if (!has_usage(u))
			continue;
		if (!open)
			uar_jw_arr(&a->w, "usage");
		open = true;
		put_one_usage(a, u);
	}
	if (open)
		uar_jw_close(&a->w);
}

uar_err agui_failed(struct agui *a, const char *code, uar_str message)
{
	agui_open(a, "error", "RUN_ERROR");
	uar_jw_str(&a->w, "message", message.n ? message : UAR_STR("the run failed"));
	uar_jw_cstr(&a->w, "code", code);
	put_usage(a);
	a->running = false;
	a->out->closed = true;
	return agui_close(a);
}

uar_err agui_finished(struct agui *a)
{
	bool cancelled = a->view.end == UAR_VIEW_CANCELLED;

	if (cancelled && a->o.old_peer)
		return agui_failed(a, "cancelled", a->view.end_message);
	agui_open(a, "run.done", "RUN_FINISHED");
	put_ids(a);
	if (cancelled) {
		uar_jw_obj(&a->w, "outcome");
		uar_jw_cstr(&a->w, "type", "cancelled");
		uar_jw_close(&a->w);
	}
	put_usage(a);
	if (a->view.finish_reason.n) {
		uar_jw_obj(&a->w, "metadata");
		uar_jw_obj(&a->w, "uar");
		uar_jw_str(&a->w, "finishReason", a->view.finish_reason);
		uar_jw_close(&a->w);
		uar_jw_close(&a->w);
	}
	a->running = false;
	a->out->closed = true;
	return agui_close(a);
}

/* --- interrupts ------------------------------------------------------------------------- */

static bool asks_for_input(const struct uar_view_action *action)
{
	return uar_str_is(action->type, "form") || uar_str_is(action->type, "structured_input") ||
	       uar_str_is(action->type, "credential");
}

static void put_schema(struct agui *a, const struct uar_view_action *action)
{
	static const char approval[] = "{\"type\":\"object\",\"properties\":{\"approved\":{"
				       "\"type\":\"boolean\"}},\"required\":[\"approved\"]}";

	if (action->schema.n && asks_for_input(action))
		uar_jw_raw(&a->w, "responseSchema", action->schema);
	else if (asks_for_input(action))
		uar_jw_raw(&a->w, "responseSchema", UAR_STR("{\"type\":\"object\"}"));
	else
		uar_jw_raw(&a->w, "responseSchema", uar_str_n(approval, sizeof approval - 1));
}

static void put_interrupt(struct agui *a, const struct uar_view_action *action)
{
	const char *reason = asks_for_input(action) ? "input_required"
			     : action->call_id.n    ? "tool_call"
						    : "confirmation";

	uar_jw_obj(&a->w, NULL);
	uar_jw_str(&a->w, "id", action->id);
	uar_jw_cstr(&a->w, "reason", reason);
	if (action->prompt.n)
		uar_jw_str(&a->w, "message", action->prompt);
	if (action->call_id.n)
		uar_jw_str(&a->w, "toolCallId", action->call_id);
	put_schema(a, action);
	if (action->expires_at.n)
		uar_jw_str(&a->w, "expiresAt", action->expires_at);
	if (action->decisions.n) {
		uar_jw_obj(&a->w, "metadata");
		uar_jw_raw(&a->w, "uar.decisions", action->decisions);
		uar_jw_close(&a->w);
	}
	uar_jw_close(&a->w);
}

bool agui_waits_for_client(const struct agui *a)
{
	for (const struct uar_view_action *x = a->view.actions; x; x = x->next)
		if (!uar_str_is(x->type, "client_tool"))
			return false;
	return a->view.actions != NULL;
}

/* Older clients find the calls that have no result themselves. */
static void put_pending(struct agui *a)
{
	if (a->o.old_peer)
		return;
	uar_jw_obj(&a->w, "outcome");
	uar_jw_cstr(&a->w, "type", "success");
	uar_jw_arr(&a->w, "pendingToolCallIds");
	for (const struct uar_view_action *x = a->view.actions; x; x = x->next)
		uar_jw_str(&a->w, NULL, x->call_id);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
}

static void put_interrupts(struct agui *a)
{
	uar_jw_obj(&a->w, "outcome");
	uar_jw_cstr(&a->w, "type", "interrupt");
	uar_jw_arr(&a->w, "interrupts");
	for (const struct uar_view_action *x = a->view.actions; x; x = x->next)
		if (!uar_str_is(x->type, "client_tool"))
			put_interrupt(a, x);
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
}

uar_err agui_interrupted(struct agui *a)
{
	const struct uar_view_action *first = a->view.actions;
	bool form = first && uar_str_is(first->type, "form");

	agui_open(a, form ? "ui.form.request" : "meta", "RUN_FINISHED");
	put_ids(a);
	if (agui_waits_for_client(a))
		put_pending(a);
	else
		put_interrupts(a);
	put_usage(a);
	a->running = false;
	a->out->closed = true;
	return agui_close(a);
}
