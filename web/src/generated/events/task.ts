// Written by tools/gen-events from src/event; do not edit.

import type { Edge, Envelope, Err, Json, Timestamp, Usage, Who, Worker } from "./envelope.js";

export interface TaskAcceptedPayload {
  status: "accepted";
  accepted_by: Who;
}

/** Somebody took over the responsibility for a task. */
export interface TaskAccepted extends Envelope {
  type: "task.accepted";
  session_id: string;
  task_id: string;
  payload: TaskAcceptedPayload;
}

export interface TaskArchivedPayload {
  status: "archived";
  previous_status: string;
  archived_by: Who;
  retention_until?: Timestamp;
}

/** A finished task was put away. */
export interface TaskArchived extends Envelope {
  type: "task.archived";
  session_id: string;
  task_id: string;
  payload: TaskArchivedPayload;
}

export interface TaskAttemptCompletedPayload {
  attempt: number;
  status: "completed";
  result_refs: string[];
  /** of all, when result_refs has the first of them and output_ref all */
  result_ref_count?: number;
  answer?: {
    message_id: string;
    bytes: number;
  };
  finish_reason?: string;
  usage?: Usage;
  duration_ms: number;
  completion_summary?: string;
}

/** A run ended well; it is the last event of the run's stream. */
export interface TaskAttemptCompleted extends Envelope {
  type: "task.attempt.completed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  payload: TaskAttemptCompletedPayload;
}

export interface TaskAttemptFailedPayload {
  attempt: number;
  status: "failed" | "cancelled" | "timed_out" | "lost";
  failure_category: string;
  message?: string;
  error: Err;
  retryable: boolean;
  result_refs: string[];
  /** of all, when result_refs has the first of them and output_ref all */
  result_ref_count?: number;
  /** what was used before it ended, also when it was cancelled */
  usage?: Usage;
  next_attempt_policy: "none" | "manual_or_policy_retry" | "automatic";
}

/** A run failed, was cancelled, timed out or was lost; it is the last event of the run's stream. */
export interface TaskAttemptFailed extends Envelope {
  type: "task.attempt.failed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  payload: TaskAttemptFailedPayload;
}

export interface TaskAttemptStartedPayload {
  attempt: number;
  status: "running";
  worker: Worker;
  root_run_id: string;
  parent_run_id: string | null;
  cause: "first" | "retry" | "resume" | "reroute" | "rerun";
  retry_policy?: { [key: string]: Json };
}

/** A run began on a worker. */
export interface TaskAttemptStarted extends Envelope {
  type: "task.attempt.started";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  payload: TaskAttemptStartedPayload;
}

export interface TaskBlockedPayload {
  status: "blocked";
  blockers: {
    kind: "action" | "credential" | "policy" | "context" | "dependency" | "tool" | "quota";
    id?: string;
    description: string;
  }[];
}

/** A task is stopped by the blockers it names. */
export interface TaskBlocked extends Envelope {
  type: "task.blocked";
  session_id: string;
  task_id: string;
  payload: TaskBlockedPayload;
}

export interface TaskCancelRequestedPayload {
  status: "cancelling";
  reason?: string;
  requested_by: Who;
  requested_at: Timestamp;
  propagation: "none" | "children" | "all";
  targets: {
    kind: string;
    id: string;
  }[];
}

/** Somebody asked to stop a task; it has not stopped yet. */
export interface TaskCancelRequested extends Envelope {
  type: "task.cancel_requested";
  session_id: string;
  task_id: string;
  payload: TaskCancelRequestedPayload;
}

export interface TaskCancelledPayload {
  status: "cancelled";
  cancelled_by: "user" | "policy" | "runtime" | "parent";
  reason?: string;
  result_refs: string[];
  /** of all, when result_refs has the first of them and output_ref all */
  result_ref_count?: number;
}

/** A task was stopped before it was done; it ends here. */
export interface TaskCancelled extends Envelope {
  type: "task.cancelled";
  session_id: string;
  task_id: string;
  payload: TaskCancelledPayload;
}

export interface TaskCompletedPayload {
  status: "completed";
  attempt: number;
  acceptance: {
    id: string;
    status: "met" | "unmet" | "not_applicable" | "unknown";
    evidence_ref?: string;
  }[];
  result_refs: string[];
  /** of all, when result_refs has the first of them and output_ref all */
  result_ref_count?: number;
  delivery_state: string;
  reconciled: {
    artifacts: boolean;
    evidence: boolean;
    delivery: boolean;
  };
}

/** A task is done and its durable facts agree; it ends here. */
export interface TaskCompleted extends Envelope {
  type: "task.completed";
  session_id: string;
  task_id: string;
  payload: TaskCompletedPayload;
}

export interface TaskCreatedPayload {
  title?: string;
  objective: string;
  task_kind?: string;
  task_family?: string;
  visibility: "foreground" | "background" | "internal" | "hidden";
  status: "draft" | "accepted";
  priority?: string;
  requested_by: Who;
  owner: Who;
  assignee?: Who;
  scope: { [key: string]: Json };
  constraints: { [key: string]: Json };
  task_profile?: { [key: string]: Json };
  acceptance: {
    id: string;
    text: string;
  }[];
  parent_task_id?: string;
  root_task_id: string;
  implicit: boolean;
  agent_id?: string;
  /** the input of an attempt */
  input?: { [key: string]: Json };
  idempotency_key?: string;
}

/** A task has an identity, an objective and an owner. */
export interface TaskCreated extends Envelope {
  type: "task.created";
  session_id: string;
  task_id: string;
  payload: TaskCreatedPayload;
}

export interface TaskDelegatedPayload {
  target: {
    kind: "task" | "subagent" | "job" | "worker" | "peer";
    id: string;
  };
  child_task_id?: string;
  edge: Edge;
  remote?: {
    native_protocol: string;
    remote_task_id: string;
    remote_context_id?: string;
    agent_card_ref?: string;
    delivery_mechanism: "polling" | "streaming" | "subscription" | "push";
    native_status?: string;
  };
}

/** Work was handed to a child task, a subagent, a job, a worker or a peer. */
export interface TaskDelegated extends Envelope {
  type: "task.delegated";
  session_id: string;
  task_id: string;
  payload: TaskDelegatedPayload;
}

export interface TaskDependencyUpdatedPayload {
  op: "linked" | "unlinked" | "status";
  edge: Edge;
}

/** An edge of the task graph was made, removed or changed. */
export interface TaskDependencyUpdated extends Envelope {
  type: "task.dependency.updated";
  session_id: string;
  task_id: string;
  payload: TaskDependencyUpdatedPayload;
}

export interface TaskFailedPayload {
  status: "failed";
  attempt: number;
  error: Err;
  failure_category: string;
  message: string;
  retryable: boolean;
  result_refs: string[];
  /** of all, when result_refs has the first of them and output_ref all */
  result_ref_count?: number;
}

/** A task cannot succeed any more; it ends here. */
export interface TaskFailed extends Envelope {
  type: "task.failed";
  session_id: string;
  task_id: string;
  payload: TaskFailedPayload;
}

export interface TaskLostPayload {
  status: "lost";
  worker: Worker;
  last_seen_at: Timestamp;
  cause: "heartbeat_missed" | "restart" | "process_unknown";
  recoverable: boolean;
}

/** Nobody can prove that a task's worker is still alive. */
export interface TaskLost extends Envelope {
  type: "task.lost";
  session_id: string;
  task_id: string;
  payload: TaskLostPayload;
}

export interface TaskPausedPayload {
  status: "paused";
  reason: string;
  requested_by: Who;
  propagated_to: string[];
}

/** A task was put on hold, together with the tasks it names. */
export interface TaskPaused extends Envelope {
  type: "task.paused";
  session_id: string;
  task_id: string;
  payload: TaskPausedPayload;
}

export interface TaskProfileResolvedPayload {
  kind: string;
  source: string;
  required_capabilities: string[];
  latency_target: string;
  budget_class: string;
  fallback_policy: string;
  settings_source: string;
  routing_mode: "direct" | "fallback" | "split" | "ensemble";
  reasoning_required: boolean;
  context_tokens_estimate: number;
}

/** What a task needs from a model is known, so that routing can begin. */
export interface TaskProfileResolved extends Envelope {
  type: "task.profile.resolved";
  session_id: string;
  thread_id: string;
  turn_id: string;
  task_id: string;
  payload: TaskProfileResolvedPayload;
}

export interface TaskProgressPayload {
  progress?: number;
  phase?: "planning" | "working" | "verifying" | "delivering" | "waiting" | (string & {});
  message?: string;
  current_step?: string;
  step?: number;
  step_total?: number;
  eta_seconds?: number;
  counters?: { [key: string]: number };
  delivery_state?: "pending" | "delivered" | "queued" | "failed" | "parent_missing" | "not_applicable";
  /** the word of a peer or an engine */
  native_status?: string;
  /** updates folded into this one */
  coalesced: number;
}

/** How far a running task has come; several updates may be folded into one. */
export interface TaskProgress extends Envelope {
  type: "task.progress";
  session_id: string;
  task_id: string;
  payload: TaskProgressPayload;
}

export interface TaskQueuedPayload {
  status: "queued";
  reason: "scheduler" | "dependency" | "capacity" | "policy";
  position?: number;
  plugin_id: string;
  entry_id: string;
  agent_id?: string;
  idempotency_key?: string;
  mode?: "async" | "sync";
}

/** A task waits for its turn; with a run id it opens that run's stream. */
export interface TaskQueued extends Envelope {
  type: "task.queued";
  session_id: string;
  task_id: string;
  payload: TaskQueuedPayload;
}

export interface TaskResumedPayload {
  status: "running" | "queued";
  resumed_from: string;
  reason: string;
  requested_by: Who;
}

/** A paused, waiting or blocked task goes on. */
export interface TaskResumed extends Envelope {
  type: "task.resumed";
  session_id: string;
  task_id: string;
  payload: TaskResumedPayload;
}

export interface TaskRetryingPayload {
  status: "retrying";
  failed_attempt_id?: string;
  next_attempt: number;
  reason: string;
  backoff_ms?: number;
  fallback: boolean;
  queued_turn_id?: string;
}

/** Another attempt at a task will follow a failed one. */
export interface TaskRetrying extends Envelope {
  type: "task.retrying";
  session_id: string;
  task_id: string;
  payload: TaskRetryingPayload;
}

export interface TaskStartedPayload {
  status: "running";
  attempt: number;
  worker: Worker;
  started_at: Timestamp;
}

/** A worker began to work on a task. */
export interface TaskStarted extends Envelope {
  type: "task.started";
  session_id: string;
  task_id: string;
  payload: TaskStartedPayload;
}

export interface TaskTimedOutPayload {
  status: "timed_out";
  limit: "time" | "inactivity";
  limit_ms: number;
  elapsed_ms: number;
  result_refs: string[];
  /** of all, when result_refs has the first of them and output_ref all */
  result_ref_count?: number;
}

/** A task used up its time or stayed silent too long; it ends here. */
export interface TaskTimedOut extends Envelope {
  type: "task.timed_out";
  session_id: string;
  task_id: string;
  payload: TaskTimedOutPayload;
}

export interface TaskUpdatedPayload {
  changed: { [key: string]: {
    from: Json;
    to: Json;
  } };
  revision: number;
}

/** Fields of a task changed, each given with its old and its new value. */
export interface TaskUpdated extends Envelope {
  type: "task.updated";
  session_id: string;
  task_id: string;
  payload: TaskUpdatedPayload;
}

export interface TaskWaitingPayload {
  status: "waiting_input" | "waiting_permission" | "waiting_resource";
  waiting_on: {
    kind: "input" | "permission" | "resource" | "dependency" | "worker";
    id?: string;
    description: string;
  };
  since: Timestamp;
  timeout_at?: Timestamp;
}

/** A task cannot go on until an input, a permission or a resource arrives. */
export interface TaskWaiting extends Envelope {
  type: "task.waiting";
  session_id: string;
  task_id: string;
  payload: TaskWaitingPayload;
}
