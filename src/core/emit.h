/* emit.h - how decide makes an event: payload, ids, numbers, fold. core/ only. */
#ifndef UAR_CORE_EMIT_H
#define UAR_CORE_EMIT_H

#include "core/core.h"

struct emit {
	const struct uar_core_env *env;
	struct uar_session *s;
	struct uar_run *r;
	struct uar_decision *d;
	struct uar_error *error;
	struct uar_move move; /* of the run's table, that is being made */
	struct uar_jw w;
	uint32_t named;			 /* UAR_ID_BITs: ids of the next event beyond its scope */
	uar_str extra[UAR_ID_COUNT];	 /* those */
	uar_str refs;			 /* of the next event */
	struct uar_result_refs results;	 /* of a run that ends */
	uar_str details;		 /* of its failure; JSON object, or empty */
	const char *lost_by;		 /* why a run is lost; NULL: by a restart */
	uar_str vendor;			 /* the type of the next event of no standard class */
	int64_t line;			 /* of the fixture that is replayed; 0: none */
	const struct uar_replay *replay; /* that line */
	const struct uar_shared *shared; /* of a run that shares a budget; NULL: it does not */
	uar_err err;			 /* the first failure; nothing is emitted after it */
};

/* What a call used. */
struct uar_usage {
	int64_t input, cached, output, total;
	bool reported; /* else it is an estimate */
	uar_str provider, model;
};

enum emit_scope { EMIT_SESSION, EMIT_THREAD, EMIT_RUN };

/* Opens the payload object: write members with &e->w, then uar_emit. */
struct uar_jw *uar_emit_begin(struct emit *e);
/* The same for a thread whose turn goes on; `what` of it changes, and `more`, or NULL. */
struct uar_jw *uar_emit_thread_change(struct emit *e, const char *what, const char *more);
/* Names the next event after one more thing; an empty id is none. */
/* Begins a runtime.warning about the preview of an artifact; the caller emits it. */
struct uar_jw *uar_core_artifact_error(struct emit *e, uar_str artifact_id, uar_str message,
				       uar_str details);
void uar_emit_name(struct emit *e, enum uar_id id, uar_str text);
/* Closes it, numbers the event, adds it to the decision and folds it. */
void uar_emit(struct emit *e, enum uar_event_class cls, enum emit_scope scope);
/* The same for a class of our own: "vendor.uar.*". */
void uar_emit_vendor(struct emit *e, const char *type, enum emit_scope scope);
/* One effect for after the commit, by decide alone; UAR_DO_NONE is dropped. */
void uar_emit_effect(struct emit *e, enum uar_effect effect);
/* A row of the same append, packed: `typed` is the struct of its kind. One with the same id takes
 * its place. */
void uar_emit_row(struct emit *e, void *typed);
/* A new id in the batch's arena. */
uar_str uar_emit_id(struct emit *e);
/* An id that the run holds now, kept for the event: the run's next call or tool
 * may come in the same batch and overwrite its own. */
uar_str uar_emit_own(struct emit *e, const char *id);
/* `text` between two others, in the batch's arena. */
uar_str uar_emit_wrap(struct emit *e, uar_str before, uar_str text, uar_str after);
/* The refs of the next event, a JSON object; without memory for it nothing is emitted. */
void uar_emit_refs(struct emit *e, uar_str refs);
void uar_emit_refer(struct emit *e, const char *ref, uar_str sha256); /* one, to a blob */

/* Shapes that several payloads share. */
/* The caller's name of the trace, where it cannot stand among the ids of an event. */
void uar_emit_trace(struct uar_jw *w, uar_str trace_id);
void uar_emit_error(struct uar_jw *w, const char *key, const struct uar_failure *f,
		    uar_str details);
void uar_emit_who(struct uar_jw *w, const char *key, const char *type, uar_str id);
void uar_emit_usage(struct uar_jw *w, const struct uar_run *r);
struct uar_usage;
void uar_emit_call_usage(struct uar_jw *w, const struct uar_usage *u);
void uar_emit_worker(struct uar_jw *w, const struct uar_run *r);
void uar_emit_status(struct emit *e, const char *phase, enum uar_status status, const char *title);

/* The other files of the engine. */
/* What is rare, to be changed; NULL: no memory. */
struct uar_run_rare *uar_core_change_rare(struct uar_run *r);
/* As much of the text as the field holds, whole in UTF-8 and ended. */
void uar_core_keep(char *out, size_t size, uar_str s);
void uar_core_create(struct emit *e, const struct uar_create *c);
void uar_core_begin(struct emit *e); /* the facts of a start */
/* queue.c: queue.changed, as the queue is afterwards; turn_id may be empty. */
struct queue_change {
	const char *op;
	uar_str turn_id, reason;
	bool paused;
};
void uar_core_queue_changed(struct emit *e, const struct uar_queue *after,
			    const struct queue_change *change);
/* The run that is decided about joins the queue, or leaves it if it is in it. */
void uar_core_join_queue(struct emit *e, bool first);
/* steer.c */
bool uar_core_untold(const struct uar_run *r); /* a message that joined the turn */
bool uar_core_must_steer(const struct uar_run *r, const struct uar_prepared *p);
void uar_core_turn_input(struct emit *e, const char *op, const struct uar_message_text *in);
UAR_MUST_CHECK uar_err uar_core_fold_turn_input(struct uar_run *r, const struct uar_event *ev,
						const struct uar_json *p,
						struct uar_arena *scratch);
void uar_core_leave_queue(struct emit *e, const char *op);
/* input.c: of the run's table, what the command is. Not for CREATE. */
enum uar_run_input uar_core_input(const struct uar_run *r, const struct uar_command *c);
enum uar_run_input uar_core_replay_input(const struct uar_json *event);
/* The open call of that id; NULL: none. */
const struct uar_open_tool *uar_core_open_tool(const struct emit *e, uar_str call_id);
/* Names the next event after the call. */
void uar_core_name_tool(struct emit *e, const struct uar_open_tool *tool);
/* How long it has taken. */
int64_t uar_core_tool_ms(const struct emit *e, const struct uar_open_tool *tool);
/* The call ends without a result; `output` may be NULL. */
void uar_core_tool_failed(struct emit *e, const struct uar_open_tool *tool, const char *status,
			  const struct uar_failure *f, const struct uar_json *output);
/* No call outlives its run. */
void uar_core_close_tools(struct emit *e, const struct uar_failure *f);
/* action.c, report.c */
void uar_core_ask(struct emit *e, const struct uar_ask *a);
void uar_core_answer(struct emit *e, const struct uar_answer *a);
/* No question outlives its run. */
void uar_core_close_actions(struct emit *e);
void uar_core_tool(struct emit *e, const struct uar_tool_report *t);
/* What a policy says of something: permission.evaluated up to its scope, which the
 * caller writes before it emits. */
struct permission {
	uar_str decision_id;
	uar_str type, name; /* of what is to be done */
	uar_str resource;   /* or empty */
	const char *decision, *source, *mode;
	uar_str reason, rule; /* rule: or empty */
	bool destructive;
	uar_str said; /* JSON object of the decision (permission.h), which then says all of this
		       * but the action itself; or empty */
	uar_str changed_blob; /* sha256 of the input that a hook made; or empty */
	bool asks;	      /* its action has the decision's id */
	int64_t timeout_us;   /* of that; 0: none */
};
struct uar_jw *uar_core_permission(struct emit *e, const struct permission *p);
void uar_core_put_permission(struct emit *e, struct uar_jw *w, const struct permission *p,
			     uar_str agent_id);
/* The same for a call of a tool, whole. */
void uar_core_tool_permission(struct emit *e, struct permission p, uar_str call_id);
/* toolrun.c */
void uar_core_tool_begin(struct emit *e, const struct uar_tool_begin *t);
void uar_core_tool_news(struct emit *e, const struct uar_tool_news *t);
void uar_core_tool_over(struct emit *e, const struct uar_tool_over *t);
/* process.c: the boundary of a call that begins, and the process that it starts. */
void uar_core_sandbox_applied(struct emit *e, const struct uar_tool_begin *t);
void uar_core_process_started(struct emit *e, const struct uar_tool_begin *t, uar_str decision_id);
void uar_core_process_news(struct emit *e, const struct uar_process_news *n);
/* No process outlives its run; none outlives the server. */
void uar_core_close_processes(struct emit *e, const struct uar_failure *f);
void uar_core_lose_processes(struct emit *e);
UAR_MUST_CHECK uar_err uar_core_fold_process(struct uar_run *r, const struct uar_event *ev,
					     const struct uar_json *p);
/* plan.c */
void uar_core_plan(struct emit *e, const struct uar_plan *p);
UAR_MUST_CHECK uar_err uar_core_fold_plan(struct uar_run *r, const struct uar_json *p);
/* peer.c */
enum uar_run_input uar_core_peer_input(const struct uar_peer_news *n);
void uar_core_write_peer(struct uar_jw *w, const struct uar_run *r); /* member "peer" */
void uar_core_peer(struct emit *e, const struct uar_peer_news *n);
UAR_MUST_CHECK uar_err uar_core_fold_peer(struct uar_run *r, const struct uar_event *ev,
					  const struct uar_json *peer);
void uar_core_note(struct emit *e, const struct uar_note *n);
/* hook.c */
void uar_core_hook_started(struct emit *e, const struct uar_note *n);
void uar_core_hook_ended(struct emit *e, const struct uar_note *n);
void uar_core_hook_failed(struct emit *e, const struct uar_note *n);
void uar_core_agent_session(struct emit *e, uar_str session_id);
void uar_core_replay(struct emit *e, const struct uar_json *event);
void uar_core_prepared(struct emit *e, const struct uar_prepared *p);
/* output.c: an output that does not fit an event is in a blob. */
struct spilled {
	const char *owner; /* "tool", "artifact" */
	uar_str id;	   /* of the owner */
	const char *media_type;
	uar_str kept; /* what the event of the owner has of it: the beginning */
	uar_str tail; /* the end of it */
	uar_str blob; /* sha256 */
	int64_t bytes;
};
void uar_core_spilled(struct emit *e, const struct spilled *s);
/* A process wrote more than the log has of it. */
void uar_core_process_cut(struct emit *e, uar_str process_id, int64_t bytes, int64_t kept);
void uar_core_put_owner(struct uar_jw *w, const char *kind, uar_str id);
/* The output_ref of the next event: what the log has of the output of a process. */
void uar_core_refer_process(struct emit *e, uar_str process_id);
void uar_core_progress(struct emit *e, const struct uar_progress *p);
UAR_MUST_CHECK uar_err uar_core_fold_progress(struct uar_run *r, const struct uar_json *payload);
void uar_core_export(struct emit *e, const struct uar_export *x);
void uar_core_delta(struct emit *e, enum uar_event_class cls, uar_str text);
enum uar_call_role uar_call_role_parse(uar_str name); /* EXECUTE: it is none */
void uar_core_catalog(struct emit *e, const struct uar_model_end *m);
void uar_core_model_done(struct emit *e, const struct uar_model_end *m);
/* Phase "finalize": memory, then artifacts. */
void uar_core_artifacts(struct emit *e, uar_str artifacts);
void uar_core_finalize(struct emit *e, uar_str artifacts);
/* What a tool made: JSON as an item of those artifacts, and "artifact_id", "version",
 * "metadata". */
void uar_core_tool_made(struct emit *e, uar_str call_id, uar_str json);
uar_err uar_core_fold_artifact(struct uar_run *r, const struct uar_event *ev,
			       const struct uar_json *p);
/* The call alone, without what prepares it. */
void uar_core_model_requested(struct emit *e, const struct uar_prepared *p);
void uar_core_model_failed(struct emit *e, const struct uar_model_end *m);
/* modelfail.c: what follows it, unless it ends the run. */
enum uar_run_input uar_core_failed_input(const struct uar_run *r, const struct uar_model_end *m);
void uar_core_after_failure(struct emit *e, const struct uar_model_end *m);
void uar_core_rate_limit(struct emit *e, const struct uar_model_end *m);
void uar_core_put_superseded(struct uar_jw *w, uar_str message_id, int64_t bytes);
/* task.waiting: the run waits for something outside of it, until due_us at the latest. */
void uar_core_wait_for(struct emit *e, uar_str id, const char *description, int64_t due_us);
void uar_core_due(struct emit *e);
/* compact.c: calls that help the answer, and the condensing of older context. */
void uar_core_staged(struct emit *e, const struct uar_model_end *m);
void uar_core_compaction_started(struct emit *e, const struct uar_prepared *p);
void uar_core_compaction_failed(struct emit *e, const struct uar_failure *f);
uar_err uar_core_fold_skills(struct uar_run *r, const struct uar_json *p);
uar_err uar_core_fold_compaction(struct uar_run *r, enum uar_event_class cls,
				 const struct uar_json *p);
/* budget.c: would the call that the command announces exceed a budget? */
bool uar_core_over_budget(const struct uar_run *r, const struct uar_command *c);
/* What stops such a call: the fact, and the failure it is. */
struct uar_failure uar_core_quota_blocked(struct emit *e, const struct uar_command *c);
void uar_core_quota_low(struct emit *e); /* once, when little of the budget is left */
/* The row of what the run has used, when it changed; the run shares a budget. */
struct uar_account;
void uar_core_account(struct emit *e, const struct uar_account *before);
/* The same for a run of the session that gives work to a child: it may leave memory before the
 * child begins. */
void uar_core_open_account(struct emit *e, const struct uar_run *giver);
/* routing.c: facts of routing and costs, and what they change. */
const struct uar_price *uar_core_price_now(const struct uar_run *r, const struct uar_prepared *p);
void uar_core_route(struct emit *e, const struct uar_prepared *p);
int64_t uar_core_nanos(double usd); /* what is not positive is nothing */
void uar_core_ranked(struct emit *e, const struct uar_model_end *m);
void uar_core_cost_estimated(struct emit *e, const struct uar_prepared *p);
void uar_core_cost_recorded(struct emit *e, const struct uar_usage *u);
uar_err uar_core_fold_routing(struct uar_run *r, enum uar_event_class cls,
			      const struct uar_json *p);
/* The run ends as its move says; f is the cause when it did not complete. */
void uar_core_end_by(struct emit *e, const struct uar_failure *f);
/* Its facts: attempt, task, turn and thread, in that order, in one append. */
void uar_core_end(struct emit *e, enum uar_status status, const struct uar_failure *f);

#endif
