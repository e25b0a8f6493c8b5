/* from_row.c - a run whose events cannot be read any more, as its row tells of it.
 *
 * Enough to end it, and its end must not deny what the row knew: who worked at it,
 * who asked it to stop, what it had reported and used, what it had asked for. It is kept, though
 * such a run could be quarantined: runtime.error (EVT-070) and the end of its stream come of it. */
#include "core/emit.h"

static const struct {
	const char *record;
	enum uar_status status;
	enum uar_turn_state turn;
	enum uar_task_state task;
} stands[] = {
	{ "queued", UAR_STATUS_QUEUED, UAR_TURN_ACCEPTED, UAR_TASK_QUEUED },
	{ "running", UAR_STATUS_RUNNING, UAR_TURN_RUNNING, UAR_TASK_RUNNING },
	{ "cancel_requested", UAR_STATUS_CANCELLING, UAR_TURN_RUNNING, UAR_TASK_CANCELLING },
};

static const struct uar_json *at(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static uar_str text_at(const struct uar_json *j, const char *key)
{
	return uar_json_str(at(j, key), UAR_STR_NONE);
}

/* As uar_jw_seconds has written it: a double is exact to the microsecond for a
 * hundred years to come. */
static int64_t time_at(const struct uar_json *j, const char *key)
{
	return (int64_t)(uar_json_double(at(j, key), 0) * 1e6 + 0.5);
}

static uar_err take_stand(const struct uar_run_row *row, struct uar_run *r)
{
	for (size_t i = 0; i < ARRAY_LEN(stands); i++)
		if (uar_str_is(row->status, stands[i].record)) {
			r->status = stands[i].status;
			r->turn = stands[i].turn;
			r->task = stands[i].task;
			return UAR_OK;
		}
	return UAR_ECORRUPT;
}

static uar_err take_strings(const struct uar_run_row *row, const struct uar_json *detail,
			    struct uar_run *r)
{
	uar_str from[] = {
		row->run_id,
		row->thread_id,
		row->turn_id,
		row->task_id,
		row->root_run_id,
		row->parent_run_id,
		row->plugin_id,
		row->entry_id,
		row->agent_id,
		text_at(detail, "trace_id"),
		text_at(detail, "idempotency_key"),
		text_at(at(detail, "backend_session"), "kind"),
	};
	uar_str *to[] = {
		&r->id.run_id,	    &r->id.thread_id,	      &r->id.turn_id,
		&r->id.task_id,	    &r->id.root_run_id,	      &r->id.parent_run_id,
		&r->what.plugin_id, &r->what.entry_id,	      &r->what.agent_id,
		&r->id.trace_id,    &r->what.idempotency_key, &r->what.provider,
	};

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		*to[i] = from[i].n ? uar_arena_str(&r->arena, from[i]) : UAR_STR_NONE;
		if (from[i].n && !to[i]->p)
			return UAR_ENOMEM;
	}
	r->id.task_given = text_at(detail, "task_id").n > 0;
	return UAR_OK;
}

/* Rows of before it was kept do not tell. What is not a plugin's and takes longer
 * than one append is nearly always a model's. */
static enum uar_entry entry_of(const struct uar_run_row *row, const struct uar_json *detail)
{
	enum uar_entry entry = uar_entry_parse(text_at(detail, "entry"));

	if (entry != UAR_ENTRY_COUNT)
		return entry;
	return uar_str_is(row->plugin_id, UAR_AGENT_PLUGIN) ? UAR_ENTRY_LLM : UAR_ENTRY_PLUGIN;
}

static void take_cancel(const struct uar_json *detail, bool requested, struct uar_run_cancel *c)
{
	if (!requested)
		return;
	c->requested = true;
	c->at_us = time_at(detail, "cancel_requested_at");
	uar_core_keep(c->reason, sizeof c->reason, text_at(detail, "cancel_reason"));
}

static void take_progress(const struct uar_json *detail, struct uar_run_progress *p)
{
	const struct uar_json *metrics = at(detail, "metrics");

	p->value = uar_json_double(at(detail, "progress"), -1);
	p->eta_seconds = uar_json_double(at(detail, "eta_seconds"), -1);
	p->step = uar_json_int(at(detail, "step"), -1);
	p->step_total = uar_json_int(at(detail, "step_total"), -1);
	uar_core_keep(p->stage, sizeof p->stage, text_at(detail, "stage"));
	uar_core_keep(p->message, sizeof p->message, text_at(detail, "message"));
	if (metrics && metrics->kind == UAR_JSON_OBJECT && metrics->text.n < sizeof p->metrics)
		uar_core_keep(p->metrics, sizeof p->metrics, metrics->text);
}

/* How many calls there were is not told, but that there were some. */
static void take_usage(const struct uar_json *usage, struct uar_run_call *call)
{
	if (!usage)
		return;
	call->calls = 1;
	call->input_tokens = uar_json_int(at(usage, "input_tokens"), 0);
	call->output_tokens = uar_json_int(at(usage, "output_tokens"), 0);
	call->estimated = uar_json_bool(at(usage, "estimated"), false);
}

static bool take_action(const struct uar_json *j, struct uar_open_action *a)
{
	uar_str run_id;

	*a = (struct uar_open_action){ .asked_us = time_at(j, "requested_at"),
				       .until_us = time_at(j, "expires_at") };
	a->type = uar_action_type_parse(text_at(j, "action_type"));
	if (a->type == UAR_ACTION_TYPE_COUNT)
		a->type = UAR_ACTION_PERMISSION;
	a->offered = uar_action_info[a->type].offered;
	uar_core_keep(a->kind, sizeof a->kind, text_at(j, "kind"));
	uar_core_keep(a->tool_name, sizeof a->tool_name, text_at(j, "tool_name"));
	uar_core_keep(a->prompt, sizeof a->prompt, text_at(j, "prompt"));
	return uar_action_parse(text_at(j, "action_id"), &run_id, &a->number);
}

/* Questions that are open are closed with the run. */
static void take_actions(const struct uar_json *detail, struct uar_run *r,
			 struct uar_run_actions *a)
{
	const struct uar_json *open = at(detail, "actions");

	a->count = uar_json_int(at(detail, "action_count"), 0);
	for (open = open ? open->first : NULL; open && a->open_count < UAR_OPEN_ACTIONS;
	     open = open->next)
		a->open_count += take_action(open, &a->open[a->open_count]);
	if (!a->open_count)
		return;
	a->parked_us = a->open[0].asked_us;
	r->status = uar_action_info[a->open[0].type].input ? UAR_STATUS_WAITING_INPUT
							   : UAR_STATUS_WAITING_PERMISSION;
	r->task = UAR_TASK_WAITING;
}

static uar_err take_rare(const struct uar_json *detail, struct uar_run *r)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);

	if (!rare)
		return UAR_ENOMEM;
	take_cancel(detail, r->status == UAR_STATUS_CANCELLING, &rare->cancel);
	take_progress(detail, &rare->progress);
	take_actions(detail, r, &rare->actions);
	uar_core_keep(rare->agent_session, sizeof rare->agent_session,
		      text_at(at(detail, "backend_session"), "id"));
	return UAR_OK;
}

uar_err uar_core_from_row(const struct uar_run_row *row, uint64_t run_sequence,
			  struct uar_arena *scratch, struct uar_run *r)
{
	const struct uar_json *detail = NULL;
	uar_err e = uar_json_parse(row->detail, NULL, scratch, &detail, NULL);

	if (e != UAR_ENOMEM) /* without its detail a row tells less, but enough */
		e = take_strings(row, detail, r);
	if (!e)
		e = take_stand(row, r);
	if (!e)
		e = take_rare(detail, r);
	if (e)
		return e;
	take_usage(at(detail, "usage"), &r->call);
	r->call.nanos = row->listed.cost_micros * 1000;
	r->what.entry = entry_of(row, detail);
	r->what.attempt = row->attempt;
	r->at = (struct uar_run_times){ .created_us = row->created_us,
					.updated_us = row->updated_us,
					.started_us = row->started_us };
	r->run_sequence = run_sequence;
	return UAR_OK;
}
