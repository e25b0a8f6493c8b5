/* action.c - questions to people: asked, answered once, closed with their run.
 *
 * What a policy decides is one fact, permission.evaluated, and nobody waits. What
 * a person has to decide parks the run: action.required, with permission.requested when it is
 * a permission, and later exactly one action.resolved, with permission.resolved likewise. Each
 * has a row (action_row.c) in the same append. */
#include "core/action_int.h"
#include "core/limits.h"

void uar_action_id(uar_str run_id, int64_t number, char out[UAR_ACTION_TEXT + 1])
{
	snprintf(out, UAR_ACTION_TEXT + 1, "%.*s.%lld", UAR_FMT(run_id), (long long)number);
}

bool uar_action_parse(uar_str action_id, uar_str *out_run_id, int64_t *out_number)
{
	size_t dot = action_id.n;
	uint64_t number;

	while (dot > 0 && action_id.p[dot - 1] != '.')
		dot--;
	if (dot < 2 || uar_str_u64(uar_str_from(action_id, dot), &number) || number == 0 ||
	    number > INT64_MAX || action_id.p[dot] == '0')
		return false;
	*out_run_id = uar_str_n(action_id.p, dot - 1);
	*out_number = (int64_t)number;
	return true;
}

const struct uar_open_action *uar_action_open(const struct uar_run_actions *a, int64_t number)
{
	for (size_t i = 0; i < a->open_count; i++)
		if (a->open[i].number == number)
			return &a->open[i];
	return NULL;
}

static void name_action(struct emit *e, int64_t number)
{
	char id[UAR_ACTION_TEXT + 1];

	uar_action_id(e->r->id.run_id, number, id);
	uar_emit_name(e, UAR_ID_ACTION, uar_emit_own(e, id));
}

/* The decision has the action's id: one question, one decision. */
static void put_decision_id(struct emit *e, struct uar_jw *w, const char *key, int64_t number)
{
	char id[UAR_ACTION_TEXT + 1];

	uar_action_id(e->r->id.run_id, number, id);
	uar_jw_cstr(w, key, id);
}

/* The call it is about, when it has begun. */
static void name_call(struct emit *e, const struct uar_ask *a)
{
	const struct uar_open_tool *tool = uar_core_open_tool(e, a->call_id);

	if (tool)
		uar_core_name_tool(e, tool);
}

/* --- what a policy says ------------------------------------------------------- */

static void put_list(struct uar_jw *w, const char *key, uar_str only)
{
	uar_jw_arr(w, key);
	if (only.n)
		uar_jw_str(w, NULL, only);
	uar_jw_close(w);
}

static void put_decision(struct uar_jw *w, const struct permission *p)
{
	uar_jw_cstr(w, "decision", p->decision);
	uar_jw_cstr(w, "decision_source", p->source);
	uar_jw_str(w, "decision_reason", p->reason);
	uar_jw_cstr(w, "mode", p->mode);
	put_list(w, "rule_refs", p->rule);
	put_list(w, "considered", UAR_STR_NONE);
	put_list(w, "overridden", UAR_STR_NONE);
	uar_jw_bool(w, "destructive", p->destructive);
}

/* The decision as it was made, over all that had a say. */
static void put_said(struct emit *e, struct uar_jw *w, const struct permission *p)
{
	static const char *const members[] = {
		"decision",   "decision_source", "decision_reason", "mode",   "rule_refs",
		"considered", "overridden",	 "destructive",	    "impact", "rollback_advice"
	};
	const struct uar_json *said = NULL;
	uar_err err = uar_json_parse(p->said, NULL, e->env->arena, &said, NULL);

	if (err)
		e->err = e->err ? e->err : err;
	for (size_t i = 0; i < ARRAY_LEN(members) && !err; i++) {
		const struct uar_json *m = uar_json_get(said, uar_str_c(members[i]));

		if (m)
			uar_jw_tree(w, members[i], m);
	}
}

void uar_core_put_permission(struct emit *e, struct uar_jw *w, const struct permission *p,
			     uar_str agent_id)
{
	uar_jw_str(w, "decision_id", p->decision_id);
	uar_emit_who(w, "subject", "agent", agent_id);
	uar_jw_obj(w, "action");
	uar_jw_str(w, "type", p->type);
	uar_jw_str(w, "name", p->name);
	uar_jw_close(w);
	if (p->resource.n)
		uar_jw_str(w, "resource", p->resource);
	if (p->said.n)
		put_said(e, w, p);
	else
		put_decision(w, p);
	if (p->asks)
		uar_jw_str(w, "approval_action_id", p->decision_id);
	if (p->timeout_us)
		uar_jw_time(w, "expires_at", e->env->now_us + p->timeout_us);
}

struct uar_jw *uar_core_permission(struct emit *e, const struct permission *p)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_core_put_permission(e, w, p, e->r->what.agent_id);
	return w;
}

void uar_core_tool_permission(struct emit *e, struct permission p, uar_str call_id)
{
	struct uar_jw *w;

	p.type = UAR_STR("tool");
	p.source = "rule";
	p.mode = "on_request";
	w = uar_core_permission(e, &p);
	uar_jw_obj(w, "scope");
	uar_jw_str(w, "tool_call_id", call_id);
	uar_jw_close(w);
	if (p.changed_blob.n)
		uar_emit_refer(e, "updated_input_ref", p.changed_blob);
	uar_emit(e, UAR_EV_PERMISSION_EVALUATED, EMIT_RUN);
}

/* --- asking ------------------------------------------------------------------ */

/* Where the whole of it can be read. */
static void put_kept(struct emit *e, struct uar_jw *w, const struct uar_ask *a)
{
	if (!a->blob.n)
		return;
	uar_jw_str(w, "input_sha256", a->blob);
	uar_jw_str(w, "input_url",
		   uar_arena_printf(e->env->arena, "/api/runs/%.*s/actions/%lld/input",
				    UAR_FMT(e->r->id.run_id), (long long)a->number));
}

/* What a person has to know before such a call is allowed. */
static void put_danger(struct emit *e, struct uar_jw *w, const struct uar_ask *a)
{
	static const char *const members[] = { "impact", "rollback_advice" };
	const struct uar_json *said = NULL;

	if (!a->destructive || !a->permission.n ||
	    uar_json_parse(a->permission, NULL, e->env->arena, &said, NULL))
		return;
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const struct uar_json *m = uar_json_get(said, uar_str_c(members[i]));

		if (m)
			uar_jw_str(w, members[i], m->text);
	}
}

static void put_scope(struct emit *e, struct uar_jw *w, const struct uar_ask *a)
{
	uar_jw_obj(w, "scope");
	if (a->tool_id.n) {
		uar_jw_str(w, "tool_id", a->tool_id);
		uar_jw_str(w, "tool_call_id", a->call_id);
		uar_jw_bool(w, "repeat", a->repeat);
		uar_jw_bool(w, "destructive", a->destructive);
		put_danger(e, w, a);
		if (a->tool_version.n)
			uar_jw_str(w, "tool_version", a->tool_version);
		if (a->args_sha256.n)
			uar_jw_str(w, "args_digest", a->args_sha256);
	} else {
		uar_jw_str(w, "backend", e->r->what.provider);
	}
	uar_jw_str(w, "kind", a->kind);
	if (a->timeout_us)
		uar_jw_int(w, "timeout_ms", a->timeout_us / 1000);
	if (a->blob.n || a->input_bytes > (int64_t)a->input.n) {
		uar_jw_str(w, "input_preview", uar_jw_fitting(a->input, UAR_LIMIT_ASK_INPUT));
		uar_jw_bool(w, "input_truncated", true);
		put_kept(e, w, a);
	} else if (a->input.n) {
		uar_jw_raw(w, "input", a->input);
	}
	uar_jw_int(w, "input_bytes", a->input_bytes);
	uar_jw_close(w);
}

static uint32_t offered_by(const struct uar_ask *a)
{
	/* Programs remember what was allowed for their session. */
	bool program = a->type == UAR_ACTION_PERMISSION && !a->tool_id.n;

	if (a->offered)
		return a->offered;
	return uar_action_info[a->type].offered | (program ? UAR_VERDICT_BIT(ALLOW_SESSION) : 0);
}

/* A question about repeating a call says so in its answers. */
static const char *label_of(const struct uar_ask *a, enum uar_verdict v)
{
	if (a->repeat && v == UAR_VERDICT_ALLOW)
		return "Repeat it";
	if (a->repeat && v == UAR_VERDICT_DENY)
		return "Go on without repeating it";
	return uar_verdict_info[v].label;
}

static void put_decisions(struct uar_jw *w, const struct uar_ask *a)
{
	uar_jw_arr(w, "decisions");
	for (unsigned v = 0; v < UAR_VERDICT_COUNT; v++)
		if (offered_by(a) & 1u << v)
			uar_jw_cstr(w, NULL, uar_verdict_info[v].text);
	uar_jw_close(w);
}

static const char *otherwise(enum uar_action_type type)
{
	return uar_verdict_info[uar_action_info[type].otherwise].text;
}

/* The policy wants somebody to decide. */
static void must_ask(struct emit *e, const struct uar_ask *a)
{
	char id[UAR_ACTION_TEXT + 1];
	struct permission p = {
		.name = a->tool_name,
		.resource = a->tool_id,
		.decision = "ask",
		.reason = a->repeat ? UAR_STR("it may have happened already")
				    : UAR_STR("each call has to be allowed"),
		.destructive = a->destructive,
		.said = a->repeat ? UAR_STR_NONE : a->permission,
		.changed_blob = a->changed_blob,
		.asks = true,
		.timeout_us = a->timeout_us,
	};

	uar_action_id(e->r->id.run_id, a->number, id);
	p.decision_id = uar_str_c(id);
	uar_core_tool_permission(e, p, a->call_id);
}

static void permission_requested(struct emit *e, const struct uar_ask *a)
{
	struct uar_jw *w = uar_emit_begin(e);

	put_decision_id(e, w, "decision_id", a->number);
	put_decision_id(e, w, "approval_action_id", a->number);
	uar_jw_str(w, "prompt", a->prompt);
	uar_jw_arr(w, "choices");
	for (unsigned v = 0; v < UAR_VERDICT_COUNT; v++) {
		if (!(offered_by(a) & 1u << v))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "id", uar_verdict_info[v].text);
		uar_jw_cstr(w, "label", label_of(a, (enum uar_verdict)v));
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_cstr(w, "default_action", otherwise(a->type));
	uar_emit_who(w, "required_approver", "user", e->s->owner.user);
	uar_jw_bool(w, "interactive", true);
	if (a->timeout_us)
		uar_jw_time(w, "timeout_at", e->env->now_us + a->timeout_us);
	name_action(e, a->number);
	uar_emit(e, UAR_EV_PERMISSION_REQUESTED, EMIT_RUN);
}

/* The schema of the values, or where it lies. */
static void put_schema(struct emit *e, struct uar_jw *w, const struct uar_ask *a)
{
	if (uar_action_info[a->type].input)
		put_decision_id(e, w, "form_id", a->number);
	if (a->schema.n)
		uar_jw_raw(w, "schema", a->schema);
}

static void refer_ask(struct emit *e, const struct uar_ask *a)
{
	if (a->blob.n && a->schema_blob.n)
		uar_emit_refs(e, uar_arena_printf(e->env->arena,
						  "{\"input_ref\":\"blob://%.*s\","
						  "\"schema_ref\":\"blob://%.*s\"}",
						  UAR_FMT(a->blob), UAR_FMT(a->schema_blob)));
	else if (a->blob.n)
		uar_emit_refer(e, "input_ref", a->blob);
	else if (a->schema_blob.n)
		uar_emit_refer(e, "schema_ref", a->schema_blob);
}

static void action_required(struct emit *e, const struct uar_ask *a)
{
	const struct uar_action_info *info = &uar_action_info[a->type];
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "action_type", info->text);
	uar_jw_str(w, "prompt", a->prompt);
	uar_jw_cstr(w, "decision_kind", info->kind);
	put_decisions(w, a);
	uar_jw_cstr(w, "default_decision", otherwise(a->type));
	if (a->tool_name.n)
		uar_jw_str(w, "tool_name", a->tool_name);
	put_schema(e, w, a);
	put_scope(e, w, a);
	if (a->timeout_us)
		uar_jw_time(w, "timeout_at", e->env->now_us + a->timeout_us);
	uar_jw_cstr(w, "status", "pending");
	name_action(e, a->number);
	name_call(e, a);
	refer_ask(e, a);
	uar_emit(e, UAR_EV_ACTION_REQUIRED, EMIT_RUN);
	uar_core_action_asked(e, a);
}

static void task_waiting(struct emit *e, const struct uar_ask *a)
{
	bool input = uar_action_info[a->type].input;
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", input ? "waiting_input" : "waiting_permission");
	uar_jw_obj(w, "waiting_on");
	uar_jw_cstr(w, "kind", input ? "input" : "permission");
	put_decision_id(e, w, "id", a->number);
	uar_jw_str(w, "description", a->prompt);
	uar_jw_close(w);
	uar_jw_time(w, "since", e->env->now_us);
	if (a->timeout_us)
		uar_jw_time(w, "timeout_at", e->env->now_us + a->timeout_us);
	uar_emit(e, UAR_EV_TASK_WAITING, EMIT_RUN);
}

/* The definition has decided already; nobody is asked. */
static void evaluated(struct emit *e, const struct uar_ask *a)
{
	struct permission p = {
		.decision_id = uar_emit_id(e),
		.type = a->kind,
		.name = a->tool_name.n ? a->tool_name : a->kind,
		.resource = a->prompt,
		.decision = a->verdict == UAR_VERDICT_DENY ? "deny" : "allow",
		.source = "rule",
		.mode = "on_request",
		.reason = UAR_STR("the policy of the agent's definition"),
		.rule = a->rule,
	};
	struct uar_jw *w;

	if (a->permission.n)
		p.said = a->permission;
	w = uar_core_permission(e, &p);
	put_scope(e, w, a);
	name_call(e, a);
	uar_emit(e, UAR_EV_PERMISSION_EVALUATED, EMIT_RUN);
}

/* What one answer of a model leaves to its client is asked for at once. */
static void ask_more(struct emit *e, const struct uar_ask *first)
{
	const struct uar_json *list = NULL;
	struct uar_ask a = *first;
	uar_err err = uar_json_parse(first->more, NULL, e->env->arena, &list, NULL);

	if (err) {
		e->err = err;
		return;
	}
	for (const struct uar_json *m = uar_json_first(list); m && !e->err; m = m->next) {
		const struct uar_json *input = uar_json_get(m, UAR_STR("input"));

		a.number++;
		a.call_id = uar_json_text(m, "call_id");
		a.tool_id = uar_json_text(m, "tool_id");
		a.tool_name = uar_json_text(m, "tool_name");
		a.prompt = a.tool_name;
		a.input = input ? input->text : UAR_STR("{}");
		a.input_bytes = (int64_t)a.input.n;
		action_required(e, &a);
	}
}

void uar_core_ask(struct emit *e, const struct uar_ask *a)
{
	bool parked = uar_run_rare(e->r)->actions.open_count > 0;

	if (a->verdict != UAR_VERDICT_ASK) {
		evaluated(e, a);
		return;
	}
	if (a->tool_id.n && !uar_action_info[a->type].input)
		must_ask(e, a);
	if (!uar_action_info[a->type].input)
		permission_requested(e, a);
	action_required(e, a);
	if (a->more.n)
		ask_more(e, a);
	if (!parked)
		task_waiting(e, a);
}

/* --- answering --------------------------------------------------------------- */

struct outcome {
	const char *decision, *result, *outcome, *source, *grant;
	bool by_user, rule_added;
	uar_str channel_id; /* over which it came; or empty */
};

static struct outcome outcome_of(const struct uar_answer *a, enum uar_action_type type)
{
	const struct uar_verdict_info *v = &uar_verdict_info[a->verdict];
	struct outcome o = { .decision = v->text,
			     .result = v->result,
			     .outcome = v->outcome,
			     .source = "respond_action",
			     .grant = v->grant,
			     .channel_id = a->channel_id,
			     .by_user = true };

	switch (a->source) {
	case UAR_ANSWER_RESPOND: return o;
	case UAR_ANSWER_WITHDRAWN:
		o.decision = o.result = o.source = "cancel";
		o.outcome = "cancelled";
		break;
	case UAR_ANSWER_TIMEOUT:
		o.decision = otherwise(type);
		o.result = o.source = "timeout";
		o.outcome = "timed_out";
		break;
	}
	o.grant = "once";
	o.by_user = false;
	return o;
}

static void put_by(struct emit *e, struct uar_jw *w, const char *key, const struct outcome *o)
{
	if (o->channel_id.n) {
		uar_emit_who(w, key, "channel", o->channel_id);
		return;
	}
	uar_emit_who(w, key, o->by_user ? "user" : "runtime",
		     o->by_user ? e->s->owner.user : UAR_STR_NONE);
}

static void permission_resolved(struct emit *e, const struct uar_answer *a, const struct outcome *o,
				int64_t waited_ms)
{
	struct uar_jw *w = uar_emit_begin(e);

	put_decision_id(e, w, "decision_id", a->number);
	uar_jw_cstr(w, "outcome", o->outcome);
	put_by(e, w, "decided_by", o);
	uar_jw_cstr(w, "decision_source", o->source);
	uar_jw_cstr(w, "grant", o->grant);
	if (o->rule_added)
		put_decision_id(e, w, "rule_added", a->number);
	uar_jw_int(w, "waited_ms", waited_ms);
	name_action(e, a->number);
	uar_emit(e, UAR_EV_PERMISSION_RESOLVED, EMIT_RUN);
}

static void refer_values(struct emit *e, const struct uar_answer *a)
{
	if (a->values_blob.n && a->sealed.n)
		uar_emit_refs(e, uar_arena_printf(e->env->arena,
						  "{\"payload_ref\":\"blob://%.*s\","
						  "\"sealed_ref\":\"blob://%.*s\"}",
						  UAR_FMT(a->values_blob), UAR_FMT(a->sealed)));
	else if (a->values_blob.n)
		uar_emit_refer(e, "payload_ref", a->values_blob);
	else if (a->sealed.n)
		uar_emit_refer(e, "sealed_ref", a->sealed);
}

static void action_resolved(struct emit *e, const struct uar_answer *a, const struct outcome *o,
			    int64_t waited_ms)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "decision", o->decision);
	uar_jw_cstr(w, "result", o->result);
	if (a->values.n)
		uar_jw_raw(w, "payload", a->values);
	if (a->reason.n)
		uar_jw_str(w, "reason", uar_str_utf8_prefix(a->reason, UAR_TEXT_REASON));
	if (a->continues_as.n)
		uar_jw_str(w, "continues_as", a->continues_as);
	put_by(e, w, "resolved_by", o);
	uar_jw_cstr(w, "source", o->channel_id.n ? "channel" : o->source);
	uar_jw_int(w, "waited_ms", waited_ms);
	uar_jw_cstr(w, "status", "resolved");
	name_action(e, a->number);
	refer_values(e, a);
	uar_emit(e, UAR_EV_ACTION_RESOLVED, EMIT_RUN);
}

static void task_resumed(struct emit *e, enum uar_status from)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "running");
	uar_jw_cstr(w, "resumed_from", uar_status_text(from));
	uar_jw_cstr(w, "reason", "answered");
	uar_emit_who(w, "requested_by", "user", e->s->owner.user);
	uar_emit(e, UAR_EV_TASK_RESUMED, EMIT_RUN);
}

/* A grant has the action's id: one answer, one grant. */
static void give(struct emit *e, const struct uar_open_action *open, const struct uar_answer *a)
{
	char id[UAR_ACTION_TEXT + 1];

	uar_action_id(e->r->id.run_id, a->number, id);
	uar_core_grant(e, open, a, uar_emit_own(e, id));
}

static void resolve(struct emit *e, const struct uar_answer *a, bool resumes)
{
	struct uar_open_action open = *uar_action_open(&uar_run_rare(e->r)->actions, a->number);
	enum uar_status from = e->r->status;
	int64_t waited_ms = (e->env->now_us - open.asked_us) / 1000;
	struct outcome o = outcome_of(a, open.type);
	size_t first = e->d->event_count;

	waited_ms = waited_ms > 0 ? waited_ms : 0;
	o.rule_added = uar_core_grants(&open, a);
	if (!uar_action_info[open.type].input)
		permission_resolved(e, a, &o, waited_ms);
	action_resolved(e, a, &o, waited_ms);
	if (o.rule_added)
		give(e, &open, a);
	if (resumes && !e->err && !uar_run_rare(e->r)->actions.open_count)
		task_resumed(e, from);
	uar_core_action_answered(e, &open, a, first);
}

void uar_core_answer(struct emit *e, const struct uar_answer *a)
{
	resolve(e, a, true);
}

void uar_core_close_actions(struct emit *e)
{
	while (uar_run_rare(e->r)->actions.open_count && !e->err) {
		struct uar_answer a = { .number = uar_run_rare(e->r)->actions.open[0].number,
					.source = UAR_ANSWER_WITHDRAWN };

		resolve(e, &a, false);
	}
}
