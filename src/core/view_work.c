/* view_work.c - folds what a thread waits for and does: questions, tool calls, incidents,
 * outputs. */
#include "core/view_int.h"

static void action_required(struct fold_step *s)
{
	struct uar_sview_action *a = view_named(s, UAR_SVIEW_ACTION, UAR_ID_ACTION);

	if (!a)
		return;
	view_place(s, &a->thread_id, &a->turn_id, &a->run_id);
	VIEW_KEEP(s, action, a, tool_call_id, s->ev->ids[UAR_ID_TOOL_CALL]);
	VIEW_TAKE(s, action, a, action_type);
	VIEW_TAKE(s, action, a, tool_name);
	VIEW_TAKE(s, action, a, prompt);
	VIEW_TAKE(s, action, a, timeout_at);
	VIEW_TAKE_JSON(s, action, a, decisions);
	a->asked_at = s->ev->time_us;
	a->item.open = true;
}

static void action_resolved(struct fold_step *s)
{
	struct uar_sview_action *a = view_named(s, UAR_SVIEW_ACTION, UAR_ID_ACTION);

	if (!a)
		return;
	VIEW_TAKE(s, action, a, result);
	a->resolved_at = s->ev->time_us;
	a->item.open = false;
}

static void call_changed(struct fold_step *s)
{
	struct uar_sview_call *c = view_named(s, UAR_SVIEW_CALL, UAR_ID_TOOL_CALL);

	if (!c)
		return;
	view_place(s, &c->thread_id, &c->turn_id, &c->run_id);
	VIEW_KEEP(s, call, c, step_id, s->ev->ids[UAR_ID_STEP]);
	VIEW_TAKE(s, call, c, tool_name);
	VIEW_TAKE(s, call, c, status);
	VIEW_TAKE(s, call, c, failure_category);
	c->item.open = s->ev->cls == UAR_EV_TOOL_STARTED;
	if (c->item.open) {
		c->started_at = s->ev->time_us;
		return;
	}
	c->ended_at = s->ev->time_us;
	VIEW_KEEP(s, call, c, output_ref, view_ref(s, "output_ref"));
}

static void incident(struct fold_step *s)
{
	uar_str key = uar_arena_printf(&s->v->scratch, "%llu", (unsigned long long)s->ev->sequence);
	struct uar_sview_incident *i = key.p ? view_item(s, UAR_SVIEW_INCIDENT, key) : NULL;
	uar_str code = view_str(s, "code");
	uar_str message = view_str(s, "message");
	const struct uar_json *error = uar_json_get(s->p, UAR_STR("error"));

	if (!i) {
		s->v->err = UAR_ENOMEM;
		return;
	}
	view_place(s, &i->thread_id, &i->turn_id, &i->run_id);
	VIEW_KEEP(s, incident, i, event, uar_event_type(s->ev));
	VIEW_KEEP(s, incident, i, code,
		  code.n ? code : uar_json_str(uar_json_get(error, UAR_STR("code")), UAR_STR_NONE));
	VIEW_KEEP(s, incident, i, message,
		  message.n ? message
			    : uar_json_str(uar_json_get(error, UAR_STR("message")), UAR_STR_NONE));
	i->at = s->ev->time_us;
}

static void describe_output(struct fold_step *s, struct uar_sview_output *o)
{
	const struct uar_json *owner = uar_json_get(s->p, UAR_STR("owner"));
	const struct uar_json *expiry = uar_json_get(s->p, UAR_STR("expiry"));

	VIEW_KEEP(s, output, o, owner_kind,
		  uar_json_str(uar_json_get(owner, UAR_STR("kind")), UAR_STR_NONE));
	VIEW_KEEP(s, output, o, owner_id,
		  uar_json_str(uar_json_get(owner, UAR_STR("id")), UAR_STR_NONE));
	VIEW_KEEP(s, output, o, expiry,
		  uar_json_str(uar_json_get(expiry, UAR_STR("policy")), UAR_STR_NONE));
	VIEW_TAKE(s, output, o, media_type);
	VIEW_TAKE(s, output, o, encoding);
	VIEW_TAKE(s, output, o, head);
	VIEW_TAKE(s, output, o, tail);
	VIEW_TAKE(s, output, o, expires_at);
	o->bytes = view_int(s, "total_bytes", view_int(s, "original_bytes", o->bytes));
	o->kept_bytes = view_int(s, "kept_bytes", o->bytes);
}

static void output_changed(struct fold_step *s, uar_str status)
{
	uar_str ref = view_ref(s, "output_ref");
	struct uar_sview_output *o = ref.n ? view_item(s, UAR_SVIEW_OUTPUT, ref) : NULL;

	if (!o)
		return;
	VIEW_KEEP(s, output, o, thread_id, s->ev->ids[UAR_ID_THREAD]);
	VIEW_KEEP(s, output, o, run_id, s->ev->ids[UAR_ID_RUN]);
	VIEW_KEEP(s, output, o, status, status);
	if (s->ev->cls == UAR_EV_OUTPUT_REDACTED)
		VIEW_TAKE_JSON(s, output, o, redactions);
	else if (s->ev->cls != UAR_EV_OUTPUT_EXPIRED)
		describe_output(s, o);
}

static const struct {
	enum uar_event_class cls;
	const char *status;
} output_events[] = {
	{ UAR_EV_OUTPUT_SPILLED, "spilled" },
	{ UAR_EV_OUTPUT_TRUNCATED, "truncated" },
	{ UAR_EV_OUTPUT_REDACTED, "redacted" },
	{ UAR_EV_OUTPUT_EXPIRED, "expired" },
};

static void fold_outputs(struct fold_step *s)
{
	for (size_t i = 0; i < ARRAY_LEN(output_events); i++)
		if (output_events[i].cls == s->ev->cls)
			output_changed(s, uar_str_c(output_events[i].status));
}

void view_fold_work(struct fold_step *s)
{
	switch (s->ev->cls) {
	case UAR_EV_ACTION_REQUIRED: action_required(s); break;
	case UAR_EV_ACTION_RESOLVED: action_resolved(s); break;
	case UAR_EV_TOOL_FAILED: incident(s); /* fallthrough */
	case UAR_EV_TOOL_STARTED:
	case UAR_EV_TOOL_RESULT: call_changed(s); break;
	case UAR_EV_RUNTIME_WARNING:
	case UAR_EV_RUNTIME_ERROR:
	case UAR_EV_MODEL_FAILED:
	case UAR_EV_TASK_ATTEMPT_FAILED: incident(s); break;
	default: fold_outputs(s); break;
	}
}
