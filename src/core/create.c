/* create.c - how a run begins: the facts of a new run and of its start. */
#include "core/emit.h"

static const char *const entry_names[UAR_ENTRY_COUNT] = {
	[UAR_ENTRY_ECHO] = "echo",
	[UAR_ENTRY_FIXTURE] = "fixture",
	[UAR_ENTRY_LLM] = "llm.chat",
	[UAR_ENTRY_PLUGIN] = "plugin",
	[UAR_ENTRY_CODEX] = "backend.codex",
	[UAR_ENTRY_CLAUDE_CODE] = "backend.claude_code",
	[UAR_ENTRY_ACP] = "backend.acp",
	[UAR_ENTRY_PEER] = "peer.a2a",
	[UAR_ENTRY_WORKFLOW] = "workflow.run",
};

const char *uar_entry_name(enum uar_entry e)
{
	return entry_names[e];
}

enum uar_entry uar_entry_parse(uar_str name)
{
	int e = 0;

	while (e < UAR_ENTRY_COUNT && !uar_str_is(name, entry_names[e]))
		e++;
	return (enum uar_entry)e;
}

static const char *const cause_names[UAR_CAUSE_COUNT] = {
	[UAR_CAUSE_FIRST] = "first",	 [UAR_CAUSE_RETRY] = "retry", [UAR_CAUSE_RESUME] = "resume",
	[UAR_CAUSE_REROUTE] = "reroute", [UAR_CAUSE_RERUN] = "rerun",
};

const char *uar_cause_name(enum uar_cause cause)
{
	return cause_names[cause];
}

enum uar_cause uar_cause_parse(uar_str name)
{
	for (int i = 0; i < UAR_CAUSE_COUNT; i++)
		if (uar_str_is(name, cause_names[i]))
			return (enum uar_cause)i;
	return UAR_CAUSE_RETRY;
}

static void session_created(struct emit *e, const struct uar_create *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "source", c->source);
	uar_jw_str(w, "agent_id", c->what.agent_id);
	uar_jw_time(w, "created_at", e->env->now_us);
	uar_jw_obj(w, "metadata");
	uar_jw_close(w);
	uar_emit(e, UAR_EV_SESSION_CREATED, EMIT_SESSION);
}

static void thread_started(struct emit *e, const struct uar_create *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "origin", c->parent_thread_id.n ? "subagent" : "new");
	uar_jw_str(w, "conversation_id", c->thread_id);
	if (c->parent_thread_id.n)
		uar_jw_str(w, "parent_thread_id", c->parent_thread_id);
	uar_emit(e, UAR_EV_THREAD_STARTED, EMIT_THREAD);
}

/* Everything a restart needs to run this turn again is in its options. */
static void put_options(struct uar_jw *w, const struct uar_create *c)
{
	const struct uar_run_what *what = &c->what;

	uar_jw_obj(w, "options");
	uar_jw_cstr(w, "entry", uar_entry_name(what->entry));
	if (what->provider.n) {
		uar_jw_str(w, "provider", what->provider);
		uar_jw_str(w, "model", what->model);
	}
	if (what->model_chosen)
		uar_jw_bool(w, "model_chosen", true);
	if (what->instructions.n)
		uar_jw_str(w, "instructions", what->instructions);
	if (what->definition.n)
		uar_jw_str(w, "definition", what->definition);
	if (what->budgets.n)
		uar_jw_raw(w, "budgets", what->budgets);
	if (what->timeout_us)
		uar_jw_int(w, "timeout_ms", what->timeout_us / 1000);
	if (what->restart == UAR_RESTART_FAIL)
		uar_jw_cstr(w, "restart", "fail");
	if (what->permit.mode)
		uar_jw_cstr(w, "permission_mode", uar_permission_mode_name(what->permit.mode));
	if (what->permit.unattended)
		uar_jw_bool(w, "interactive", false);
	if (c->parent_run_id.n) {
		uar_jw_str(w, "root_run_id", c->root_run_id);
		uar_jw_str(w, "parent_run_id", c->parent_run_id);
		uar_jw_int(w, "attempt", what->attempt);
	}
	if (c->what.task_made)
		uar_jw_bool(w, "task_made", true);
	if (c->what.cause)
		uar_jw_cstr(w, "cause", uar_cause_name(c->what.cause));
	uar_emit_trace(w, c->trace_id);
	uar_jw_close(w);
}

static void put_part(struct uar_jw *w, const char *type, uar_str preview, int64_t bytes)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", type);
	uar_jw_str(w, "preview", preview);
	uar_jw_int(w, "bytes", bytes);
	uar_jw_close(w);
}

static uar_str blob_member(struct emit *e, const char *name, uar_str sha256)
{
	if (!sha256.n)
		return UAR_STR("");
	return uar_arena_printf(e->env->arena, ",\"%s\":\"blob://%.*s\"", name, UAR_FMT(sha256));
}

/* Inputs and definition are blobs that a sweep keeps as long as the run. */
static void refer_all(struct emit *e, const struct uar_create *c)
{
	bool blob = c->what.message_blob.n > 0;
	uar_str at = blob ? c->what.message_blob : c->turn_id;
	uar_str definition = blob_member(e, "definition_ref", c->what.definition);
	uar_str inputs = blob_member(e, "inputs_ref", c->what.inputs_blob);

	if (!definition.p || !inputs.p)
		e->err = e->err ? e->err : UAR_ENOMEM;
	uar_emit_refs(e, uar_arena_printf(e->env->arena, "{\"input_ref\":\"%s%.*s%s\"%.*s%.*s}",
					  blob ? "blob://" : "input://", UAR_FMT(at),
					  blob ? "" : "/0", UAR_FMT(definition), UAR_FMT(inputs)));
}

static void refer_input(struct emit *e, const struct uar_create *c)
{
	if (c->what.definition.n || c->what.inputs_blob.n)
		refer_all(e, c);
	else if (c->what.message_blob.n)
		uar_emit_refer(e, "input_ref", c->what.message_blob);
	else
		uar_emit_refs(e, uar_emit_wrap(e, UAR_STR("{\"input_ref\":\"input://"), c->turn_id,
					       UAR_STR("/0\"}")));
}

static void put_metadata(struct uar_jw *w, const struct uar_create *c)
{
	if (!c->context.n && !c->metadata.n)
		return;
	uar_jw_obj(w, "metadata");
	if (c->context.n)
		uar_jw_raw(w, "context", c->context);
	if (c->metadata.n)
		uar_jw_raw(w, "caller", c->metadata);
	uar_jw_close(w);
}

static void turn_submitted(struct emit *e, const struct uar_create *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", c->wait ? "queued" : "accepted");
	uar_jw_str(w, "source", c->source);
	uar_jw_arr(w, "input_parts");
	put_part(w, c->what.entry == UAR_ENTRY_PLUGIN ? "json" : "text", c->what.message,
		 c->what.message_bytes);
	if (c->what.inputs.n)
		put_part(w, "json", c->what.inputs,
			 c->what.inputs_blob.n ? c->what.inputs_bytes : (int64_t)c->what.inputs.n);
	uar_jw_close(w);
	put_options(w, c);
	put_metadata(w, c);
	if (c->queued)
		uar_jw_str(w, "queued_turn_id", c->turn_id);
	if (c->what.idempotency_key.n)
		uar_jw_str(w, "idempotency_key", c->what.idempotency_key);
	refer_input(e, c);
	uar_emit(e, UAR_EV_TURN_SUBMITTED, EMIT_RUN);
}

static void task_created(struct emit *e, const struct uar_create *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "objective",
		   c->what.entry == UAR_ENTRY_PLUGIN ? c->what.agent_id
						     : uar_str_utf8_prefix(c->what.message, 200));
	uar_jw_cstr(w, "visibility", "foreground");
	uar_jw_cstr(w, "status", "accepted");
	uar_emit_who(w, "requested_by", "user", e->s->owner.user);
	uar_emit_who(w, "owner", "user", e->s->owner.user);
	uar_jw_obj(w, "scope");
	uar_jw_close(w);
	uar_jw_obj(w, "constraints");
	uar_jw_close(w);
	uar_jw_arr(w, "acceptance");
	uar_jw_close(w);
	uar_jw_str(w, "root_task_id", c->task_id);
	uar_jw_bool(w, "implicit", !c->task_given);
	uar_emit(e, UAR_EV_TASK_CREATED, EMIT_RUN);
}

/* The task is there already, and over: this run is another try at it. */
static void task_retrying(struct emit *e, const struct uar_create *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "retrying");
	uar_jw_str(w, "failed_attempt_id", c->parent_run_id);
	uar_jw_int(w, "next_attempt", c->what.attempt);
	uar_jw_str(w, "reason", c->reason.n ? c->reason : UAR_STR("requested"));
	uar_jw_bool(w, "fallback", false);
	uar_jw_bool(w, "implicit", !c->task_given);
	uar_emit(e, UAR_EV_TASK_RETRYING, EMIT_RUN);
}

static void task_queued(struct emit *e, const struct uar_create *c)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "queued");
	uar_jw_cstr(w, "reason", "scheduler");
	uar_jw_str(w, "plugin_id", c->what.plugin_id);
	uar_jw_str(w, "entry_id", c->what.entry_id);
	uar_jw_str(w, "agent_id", c->what.agent_id);
	if (c->what.idempotency_key.n)
		uar_jw_str(w, "idempotency_key", c->what.idempotency_key);
	uar_jw_cstr(w, "mode", "async");
	uar_emit(e, UAR_EV_TASK_QUEUED, EMIT_RUN);
}

/* They are the run's own from its first event on, so that all of them name the same
 * strings. */
static void name_run(struct emit *e, const struct uar_create *c)
{
	struct uar_run_ids *id = &e->r->id;
	uar_str *own[] = { &id->run_id, &id->thread_id, &id->turn_id, &id->task_id, &id->trace_id };

	*id = (struct uar_run_ids){
		.run_id = c->run_id,
		.thread_id = c->thread_id,
		.turn_id = c->turn_id,
		.task_id = c->task_id,
		.trace_id = c->trace_id,
	};
	if (!uar_arena_strs(&e->r->arena, own, ARRAY_LEN(own)))
		e->err = UAR_ENOMEM;
}

void uar_core_create(struct emit *e, const struct uar_create *c)
{
	name_run(e, c);
	if (c->new_session)
		session_created(e, c);
	if (c->new_thread)
		thread_started(e, c);
	turn_submitted(e, c);
	if (c->parent_run_id.n)
		task_retrying(e, c);
	else if (!c->what.task_made)
		task_created(e, c);
	task_queued(e, c);
	if (c->queued)
		uar_core_join_queue(e, c->first);
}

void uar_emit_worker(struct uar_jw *w, const struct uar_run *r)
{
	bool plugin = r->what.entry == UAR_ENTRY_PLUGIN;

	uar_jw_obj(w, "worker");
	uar_jw_cstr(w, "kind",
		    plugin				  ? "plugin"
		    : uar_entry_is_backend(r->what.entry) ? "backend"
		    : r->what.entry == UAR_ENTRY_PEER	  ? "peer"
							  : "in_process");
	uar_jw_str(w, "id", plugin ? r->what.plugin_id : uar_str_c(uar_entry_name(r->what.entry)));
	uar_jw_close(w);
}

static void attempt_started(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "attempt", e->r->what.attempt);
	uar_jw_cstr(w, "status", "running");
	uar_emit_worker(w, e->r);
	uar_jw_str(w, "root_run_id", e->r->id.root_run_id);
	uar_jw_str_or_null(w, "parent_run_id", e->r->id.parent_run_id);
	uar_jw_cstr(w, "cause",
		    e->r->what.cause	       ? uar_cause_name(e->r->what.cause)
		    : e->r->id.parent_run_id.n ? "retry"
					       : "first");
	uar_emit(e, UAR_EV_TASK_ATTEMPT_STARTED, EMIT_RUN);
}

static void task_started(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "running");
	uar_jw_int(w, "attempt", e->r->what.attempt);
	uar_emit_worker(w, e->r);
	uar_jw_time(w, "started_at", e->env->now_us);
	uar_emit(e, UAR_EV_TASK_STARTED, EMIT_RUN);
}

static void turn_started(struct emit *e)
{
	int64_t waited = e->env->now_us - e->r->at.created_us;
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "running");
	uar_jw_str(w, "agent_id", e->r->what.agent_id);
	uar_jw_cstr(w, "entry",
		    uar_entry_is_backend(e->r->what.entry) ? "backend"
							   : uar_entry_name(e->r->what.entry));
	uar_jw_int(w, "queue_wait_ms", waited > 0 ? waited / 1000 : 0); /* clocks jump */
	uar_jw_time(w, "started_at", e->env->now_us);
	uar_emit(e, UAR_EV_TURN_STARTED, EMIT_RUN);
}

void uar_core_begin(struct emit *e)
{
	uar_core_leave_queue(e, "started");
	attempt_started(e);
	task_started(e);
	turn_started(e);
	uar_emit_thread_change(e, "status", "active_turn_id");
	uar_emit(e, UAR_EV_THREAD_UPDATED, EMIT_RUN);
}
