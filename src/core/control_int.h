/* control_int.h - how handlers of commands look rows up, change them and tell facts. */
#ifndef UAR_CORE_CONTROL_INT_H
#define UAR_CORE_CONTROL_INT_H

#include <stdarg.h>

#include "core/control.h"
#include "core/emit.h"

/* A row that the decision has looked at; rows that are changed are written. */
struct ctl_row {
	struct ctl_row *next;
	struct uar_row *typed; /* the struct of its kind */
	bool changed;
};

struct ctl {
	struct emit e;
	const struct uar_control *in;
	const struct uar_list *loaded; /* of struct uar_loaded */
	struct uar_control_update *u;
	struct ctl_row *rows;
	struct uar_buf result;
	struct uar_jw rw;
	bool waits; /* something has to be loaded: whatever is decided now is thrown away */
};

/* NULL: it has to be loaded first. A handler goes on as far as it can, so that all it needs
 * is asked for at once, and leaves. */
const struct uar_loaded *ctl_load(struct ctl *c, const struct uar_need *need);
/* The row of that kind and id, as its struct; NULL: there is none, or it has to be loaded
 * (c->waits). The same row each time. */
void *ctl_row(struct ctl *c, enum uar_row_kind kind, uar_str id);
/* The same for a row of a list that was loaded. */
void *ctl_row_of(struct ctl *c, const struct uar_row *row);
/* A row that must not exist yet. Set status, parent, ... NULL: no memory. */
void *ctl_new_row(struct ctl *c, enum uar_row_kind kind, uar_str id);
/* Says that the row is about to be changed; returns it. */
void *ctl_change(struct ctl *c, void *typed);
void ctl_fail(struct ctl *c, uar_err e);
/* The command is refused; `where`: pointer of the member, or NULL. The first refusal counts. */
void ctl_refuse(struct ctl *c, uar_err e, const char *where, const char *fmt, ...) UAR_PRINTF(4, 5);
/* Opens the result object; write members, then end it. */
struct uar_jw *ctl_result(struct ctl *c);
void ctl_result_end(struct ctl *c);

/* control_task.c */
/* The task; NULL: it has to be loaded, or there is none and the command is refused. */
struct uar_row_task *ctl_task(struct ctl *c, uar_str id, const char *where);
bool ctl_task_over(const struct uar_row_task *t); /* no further attempt without retry_task */
bool ctl_is_draft(const struct uar_row_task *t);
bool ctl_at_work(const struct uar_row_task *t); /* an attempt has begun and is not over */
/* Why no attempt may begin, as far as its row says; NULL: one may. */
const char *ctl_why_not_begin(const struct uar_row_task *t);
/* Sets the status from what is known: paused, blocked, or its own. */
void ctl_settle_status(struct uar_row_task *t);
/* Behind task.resumed, which knows running and queued only: the fact that the task is something
 * else, so that the log leads to what the row says. */
void ctl_emit_standing(struct ctl *c, const struct uar_row_task *t);
/* Was the member of the command there? */
bool ctl_given(const struct ctl *c, const char *name);
/* Ends the payload of an event about the task. */
void ctl_emit_task(struct ctl *c, const struct uar_row_task *t, enum uar_event_class cls);
void ctl_put_who(struct uar_jw *w, const char *key, const struct uar_control *in);
/* The result: {"task": its record}. */
void ctl_tell_task(struct ctl *c, struct uar_row_task *t);
void ctl_create_task(struct ctl *c);
void ctl_update_task(struct ctl *c);
void ctl_append_task_progress(struct ctl *c);
/* control_tree.c */
/* What is done to a task, to be done to those below it. */
struct ctl_propagation {
	const char *verb;    /* of its intent */
	uar_str task_id;     /* the task at the top, which is changed already */
	uar_str propagation; /* "none", "children", "all" */
	uar_str reason;
	void (*change)(struct ctl *c, struct uar_row_task *t, uar_str reason);
	bool at_once; /* all in one append, or the command is refused */
};
void ctl_propagate(struct ctl *c, const struct ctl_propagation *p);
/* A command that changes nothing has an outcome, too: the fact that it was given. */
void ctl_note_command(struct ctl *c);
/* control_lifecycle.c */
void ctl_pause_task(struct ctl *c);
void ctl_resume_task(struct ctl *c);
void ctl_cancel_task(struct ctl *c);
void ctl_complete_task(struct ctl *c);
void ctl_fail_task(struct ctl *c);
/* Those that wait for it are told. */
void ctl_end_task(struct ctl *c, struct uar_row_task *t, const char *status);
void ctl_emit_completed(struct ctl *c, const struct uar_row_task *t);
void ctl_emit_cancelled(struct ctl *c, const struct uar_row_task *t, const char *by,
			uar_str reason);
void ctl_emit_failed(struct ctl *c, const struct uar_row_task *t, const struct uar_failure *f);
uar_str ctl_error_text(struct ctl *c, const struct uar_failure *f);
/* control_edge.c */
/* It waits for others; `by` is the one that was added, or empty. */
void ctl_emit_blocked(struct ctl *c, const struct uar_row_task *t, uar_str by);
void ctl_link_tasks(struct ctl *c);
void ctl_unlink_tasks(struct ctl *c);
/* Does the target of the edge count its source among its blockers? */
bool ctl_is_waited_for(const struct uar_row_task *source, const struct uar_row_edge *edge);
/* Refuses one more edge of a task that has as many as it may. */
void ctl_check_edges(struct ctl *c, uar_str id, const char *where);
/* Writes an edge as events and records show it. */
void ctl_put_edge(struct uar_jw *w, const struct uar_row_edge *edge);
/* One blocker less; the task goes on when there is none left. */
void ctl_unblock(struct ctl *c, uar_str task_id);
/* Work of the task is handed to somebody: the fact, and the edge to it. */
void ctl_delegate(struct ctl *c, const struct uar_row_task *t, const char *kind, uar_str id);
/* control_attempt.c */
/* Refuses what would begin below a task that is cancelled. */
void ctl_check_ancestors(struct ctl *c, const struct uar_row_task *t);
/* Refuses what would begin for a task that is cancelled, or is below one. */
void ctl_check_holds(struct ctl *c, uar_str task_id, const char *where);
/* control_subagent.c */
/* Where the session stands among agents: how many are above it, and the session at the root. */
struct ctl_ancestry {
	int64_t depth;
	uar_str root_session_id;
};
struct ctl_ancestry ctl_ancestry(struct ctl *c);
/* The task that work is delegated of; NULL: none, it has to be loaded, or it is refused. */
struct uar_row_task *ctl_delegating_task(struct ctl *c, uar_str task_id);
uar_str ctl_budgets(struct ctl *c); /* whose budgets bear what a child is told to do */
bool ctl_check_child_id(struct ctl *c, uar_str id, const char *where);
uar_str ctl_print(struct ctl *c, uar_str text); /* as it came; without memory the command fails */
void ctl_spawn_subagent(struct ctl *c);
void ctl_send_subagent_input(struct ctl *c);
void ctl_resume_subagent(struct ctl *c);
void ctl_close_subagent(struct ctl *c);
/* NULL: there is none, which is refused, or its row is waited for. */
struct uar_row_subagent *ctl_find_subagent(struct ctl *c, uar_str id);
bool ctl_subagent_is_closed(const struct uar_row_subagent *s);
/* Of the event that is being written: the child's ids; a reference, unless it is empty. */
void ctl_name_subagent(struct ctl *c, const struct uar_row_subagent *s);
void ctl_refer(struct ctl *c, const char *name, uar_str ref);
/* reason: may be NULL. */
void ctl_emit_subagent_status(struct ctl *c, const struct uar_row_subagent *s, uar_str before,
			      const char *reason);
void ctl_change_subagent_status(struct ctl *c, struct uar_row_subagent *s, const char *status,
				const char *reason);

/* control_subagent_turn.c */
void ctl_follow_subagent(struct ctl *c);
void ctl_settle_subagent(struct ctl *c);
/* control_job_write.c */
int64_t ctl_items_done(const struct uar_row_job *j);
void ctl_put_counts(struct uar_jw *w, const struct uar_row_job *j);
/* control_job.c */
void ctl_create_job(struct ctl *c);
void ctl_cancel_job(struct ctl *c);
void ctl_retry_job_item(struct ctl *c);
void ctl_settle_job_item(struct ctl *c);
void ctl_expire_job(struct ctl *c);
/* control_turn.c */
void ctl_submit_turn(struct ctl *c);
void ctl_interrupt_turn(struct ctl *c);
/* Decides a command of the run that the shell brought; its facts join this decision. */
void ctl_decide_run(struct ctl *c, int which, const struct uar_command *command);
/* control_attempt.c */
void ctl_emit_waiting(struct ctl *c, const struct uar_row_task *t);
void ctl_start_task(struct ctl *c);
void ctl_retry_task(struct ctl *c);
void ctl_settle_task(struct ctl *c);
void ctl_start_attempt(struct ctl *c);
void ctl_follow_attempt(struct ctl *c);
/* control_queue.c */
void ctl_resume_thread(struct ctl *c);
void ctl_remove_queued_turn(struct ctl *c);
void ctl_promote_queued_turn(struct ctl *c);
void ctl_edit_queued_turn(struct ctl *c);
void ctl_pause_queue(struct ctl *c);
void ctl_resume_queue(struct ctl *c);
/* The run starts before all others that wait; a row of its thread says so. */
void ctl_place_first(struct ctl *c, uar_str run_id);
/* control_history.c */
void ctl_fork_thread(struct ctl *c);
void ctl_rollback_thread(struct ctl *c);
/* control_session.c */
/* The row of the session or thread: the one that is there, or a new one. */
void *ctl_row_or_new(struct ctl *c, enum uar_row_kind kind, uar_str id);
void ctl_update_session(struct ctl *c);
void ctl_update_thread(struct ctl *c);
void ctl_revoke_grant(struct ctl *c); /* grant.c */
/* control_process.c */
void ctl_write_process_stdin(struct ctl *c);
void ctl_terminate_process(struct ctl *c);
/* control_snapshot.c */
void ctl_record_snapshot(struct ctl *c);
void ctl_record_window(struct ctl *c);
void ctl_record_artifact_error(struct ctl *c);
void ctl_record_evidence(struct ctl *c); /* control_evidence.c */
/* control_policy.c */
void ctl_update_permissions(struct ctl *c);
void ctl_record_permission(struct ctl *c);
/* control_channel.c */
void ctl_connect_channel(struct ctl *c);
void ctl_reconnect_channel(struct ctl *c);
void ctl_disconnect_channel(struct ctl *c);
void ctl_ack_events(struct ctl *c);
void ctl_attach_channel(struct ctl *c);
void ctl_drop_channel(struct ctl *c);
void ctl_forward_permission(struct ctl *c); /* control_bridge.c */
void ctl_return_permission(struct ctl *c);

#endif
