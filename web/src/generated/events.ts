// Written by tools/gen-events from src/event; do not edit.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** References to large or foreign facts: `x_ref` is one URI, `x_refs` is a list. */
export interface Refs {
  [key: string]: string | string[];
}

/** What every event carries; a class asks for more of the ids. */
export interface Envelope {
  event_id: string;
  timestamp: string;
  sequence: number;
  run_sequence?: number;
  schema_version: string;
  runtime_id: string;
  tenant_id?: string;
  workspace_id?: string;
  user_id?: string;
  session_id?: string;
  thread_id?: string;
  turn_id?: string;
  task_id?: string;
  run_id?: string;
  attempt_id?: string;
  step_id?: string;
  tool_call_id?: string;
  action_id?: string;
  subagent_id?: string;
  artifact_id?: string;
  evidence_id?: string;
  process_id?: string;
  channel_id?: string;
  job_id?: string;
  job_item_id?: string;
  queue_id?: string;
  model_request_id?: string;
  request_id?: string;
  trace_id?: string;
  span_id?: string;
  causation_id?: string;
  refs?: Refs;
}

/** RFC 3339, UTC. */
export type Timestamp = string;

export interface Err {
  code: string;
  /** without secrets */
  message: string;
  failure_category: string;
  retryable: boolean;
  details?: { [key: string]: Json };
}

export interface Who {
  type: "user" | "agent" | "policy" | "runtime" | "channel" | "worker" | "workflow";
  id?: string;
  name?: string;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  cached_tokens?: number;
  /** a part of it was not reported by the provider but estimated */
  estimated?: boolean;
}

export interface Model {
  provider: string;
  model: string;
}

export interface Worker {
  kind: "in_process" | "process" | "plugin" | "backend" | "mcp" | "peer" | "subagent";
  id: string;
  pid?: number;
}

export interface Edge {
  kind: "parent" | "child" | "blocks" | "blocked_by" | "source_task" | "source_attempt" | "spawned_subagent" | "assigned_thread" | "produced_artifact" | "consumed_artifact" | "evidence";
  source_id: string;
  target_id: string;
  status: string;
  reason?: string;
  created_at: Timestamp;
  updated_at: Timestamp;
}

export interface ActionRequiredPayload {
  action_type: "tool_permission" | "form" | "plan" | "credential" | "structured_input" | "policy";
  prompt: string;
  decision_kind: "allow_or_deny" | "choice" | "form";
  decisions: string[];
  default_decision?: string;
  schema?: { [key: string]: Json } | boolean;
  /** the action_id */
  form_id?: string;
  tool_name?: string;
  scope: { [key: string]: Json };
  timeout_at?: Timestamp;
  status: "pending";
}

/** Somebody has to decide or to fill in a form before the work goes on. */
export interface ActionRequired extends Envelope {
  type: "action.required";
  session_id: string;
  thread_id: string;
  turn_id: string;
  action_id: string;
  payload: ActionRequiredPayload;
}

export interface ActionResolvedPayload {
  decision: string;
  result: "allow" | "deny" | "answer" | "edit" | "cancel" | "timeout";
  /** form values, without secrets */
  payload?: Json;
  resolved_by: Who;
  source: "respond_action" | "timeout" | "policy" | "channel" | "cancel";
  waited_ms: number;
  status: "resolved";
}

/** A required action was decided, answered, cancelled or timed out. */
export interface ActionResolved extends Envelope {
  type: "action.resolved";
  session_id: string;
  thread_id: string;
  turn_id: string;
  action_id: string;
  payload: ActionResolvedPayload;
}

export interface ArtifactChangedPayload {
  op: "created" | "updated" | "version_created" | "exported" | "failed" | "deleted";
  artifact_type: string;
  title: string;
  version: number;
  status: "planned" | "streaming" | "draft" | "ready" | "failed" | "deleted";
  language?: string;
  mime?: string;
  bytes: number;
  /** empty while there are no bytes */
  sha256: string;
  preview?: string;
  issue_count: number;
  metadata: { [key: string]: Json };
}

/** A deliverable was created, changed, exported or deleted; its bytes are referenced. */
export interface ArtifactChanged extends Envelope {
  type: "artifact.changed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  artifact_id: string;
  payload: ArtifactChangedPayload;
}

export interface ChannelConnectedPayload {
  transport: "websocket" | "sse" | "json_rpc" | "grpc" | "http_json" | "stdio" | "in_process" | (string & {});
  peer_role: "client" | "host" | "worker" | "remote_runtime" | "peer_agent" | "tool_server";
  peer_id?: string;
  native_protocol?: "a2a" | "mcp" | "json_rpc" | (string & {});
  account_ref?: string;
  capabilities: string[];
  resume_supported: boolean;
  last_ack_sequence: number;
}

/** A peer is reachable over a channel. */
export interface ChannelConnected extends Envelope {
  type: "channel.connected";
  channel_id: string;
  payload: ChannelConnectedPayload;
}

export interface ChannelDisconnectedPayload {
  reason_code: string;
  clean: boolean;
  last_sent_sequence: number;
  last_ack_sequence: number;
  retryable: boolean;
  resume_until?: Timestamp;
}

/** A channel is gone, on purpose or not. */
export interface ChannelDisconnected extends Envelope {
  type: "channel.disconnected";
  channel_id: string;
  payload: ChannelDisconnectedPayload;
}

export interface ChannelMessagePayload {
  message_id: string;
  direction: "in" | "out";
  kind: "a2a" | "notice" | "status" | "protocol";
  preview: string;
  bytes: number;
  native_ids?: { [key: string]: Json };
}

/** A message that is no turn passed over a channel. */
export interface ChannelMessage extends Envelope {
  type: "channel.message";
  channel_id: string;
  payload: ChannelMessagePayload;
}

export interface ChannelPermissionForwardedPayload {
  decision_id: string;
  to_channel_id: string;
  requesting_peer: string;
  target: {
    kind: "tool" | "process" | "action" | "peer_task";
    id: string;
  };
  timeout_at?: Timestamp;
}

/** A permission request was passed on over a channel. */
export interface ChannelPermissionForwarded extends Envelope {
  type: "channel.permission_forwarded";
  session_id: string;
  thread_id: string;
  turn_id: string;
  action_id: string;
  channel_id: string;
  payload: ChannelPermissionForwardedPayload;
}

export interface ChannelPermissionReturnedPayload {
  decision_id: string;
  outcome: "allowed" | "denied" | "timed_out" | "cancelled";
  decided_side: "local" | "remote";
  decided_by: Who;
  source: "response" | "timeout" | "policy_deny" | "auth_failure";
  channel_scoped: boolean;
}

/** The decision about a forwarded permission request came back. */
export interface ChannelPermissionReturned extends Envelope {
  type: "channel.permission_returned";
  session_id: string;
  thread_id: string;
  turn_id: string;
  action_id: string;
  channel_id: string;
  payload: ChannelPermissionReturnedPayload;
}

export interface ChannelResumedPayload {
  mode: "replay" | "snapshot" | "snapshot_and_replay";
  from_sequence: number;
  to_sequence: number;
  replayed: number;
  gap: boolean;
}

/** A peer came back and caught up from its cursor. */
export interface ChannelResumed extends Envelope {
  type: "channel.resumed";
  channel_id: string;
  payload: ChannelResumedPayload;
}

export interface ContextCompactionCompletedPayload {
  compaction_id: string;
  method: string;
  affected_turn_ids: string[];
  tokens_before: number;
  tokens_after: number;
  summary_preview: string;
  preserved: {
    action_ids: string[];
    incident_ids: string[];
    artifact_refs: string[];
    evidence_refs: string[];
  };
  loss_notes?: string[];
}

/** Older context was condensed; what had to survive is listed. */
export interface ContextCompactionCompleted extends Envelope {
  type: "context.compaction.completed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextCompactionCompletedPayload;
}

export interface ContextCompactionFailedPayload {
  compaction_id: string;
  error: Err;
  fallback: "none" | "truncate" | "block";
}

/** Condensing older context failed; the fallback is named. */
export interface ContextCompactionFailed extends Envelope {
  type: "context.compaction.failed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextCompactionFailedPayload;
}

export interface ContextCompactionStartedPayload {
  compaction_id: string;
  trigger: "token_limit" | "manual" | "policy";
  affected_turn_ids: string[];
  tokens_before: number;
}

/** Older context is about to be condensed. */
export interface ContextCompactionStarted extends Envelope {
  type: "context.compaction.started";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextCompactionStartedPayload;
}

export interface ContextResolvedPayload {
  items: {
    kind: "memory" | "knowledge" | "file" | "policy" | "instruction" | "history" | "skill" | "tool_summary";
    ref: string;
    title?: string;
    score?: number;
    tokens?: number;
  }[];
  omissions: {
    ref: string;
    reason: string;
  }[];
  missing: {
    question: string;
    severity: string;
  }[];
  budget: {
    max_tokens: number;
    used_tokens: number;
  };
  selected_skills: {
    skill_id: string;
    version: string;
    score: number;
  }[];
  prompt_sections: {
    name: string;
    sha256: string;
    tokens: number;
  }[];
  citations?: {
    title: string;
    url: string;
    snippet?: string;
  }[];
  recalled?: {
    key: string;
    value: string;
    source: string;
  }[];
}

/** What goes into the prompt of a turn is settled: items, omissions, skills, budget. */
export interface ContextResolved extends Envelope {
  type: "context.resolved";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextResolvedPayload;
}

export interface CostEstimatedPayload {
  currency: string;
  amount?: number;
  estimated_cost_class: "free" | "low" | "medium" | "high" | "unknown";
  basis: string;
  selected: Model;
}

/** What a model request is expected to cost. */
export interface CostEstimated extends Envelope {
  type: "cost.estimated";
  payload: CostEstimatedPayload;
}

export interface CostRecordedPayload {
  currency: string;
  amount: number;
  usage: Usage;
  cumulative: {
    run: number;
    task: number;
    session: number;
  };
  is_estimate: boolean;
  selected: Model;
}

/** What a model request did cost, and the sums so far. */
export interface CostRecorded extends Envelope {
  type: "cost.recorded";
  payload: CostRecordedPayload;
}

export interface EvidenceChangedPayload {
  kind: "evidence" | "replay" | "review" | "verification" | "trace";
  status: "pending" | "collecting" | "ready" | "partial" | "failed";
  scope: { [key: string]: string };
  verification_outcomes: {
    name: string;
    status: string;
  }[];
  known_gaps: {
    signal: string;
    reason: string;
  }[];
  sha256?: string;
}

/** A pack of evidence, a replay, a review or a trace changed its state. */
export interface EvidenceChanged extends Envelope {
  type: "evidence.changed";
  evidence_id: string;
  payload: EvidenceChangedPayload;
}

export interface HistoryReconstructedPayload {
  source: "log" | "snapshot" | "snapshot_and_log";
  through_sequence: number;
  turns: number;
  degraded: boolean;
  missing: string[];
  duration_ms: number;
}

/** A session or thread was rebuilt from the log after a restart. */
export interface HistoryReconstructed extends Envelope {
  type: "history.reconstructed";
  session_id: string;
  thread_id: string;
  payload: HistoryReconstructedPayload;
}

export interface HistoryRollbackCompletedPayload {
  rollback_id: string;
  status: "completed" | "failed";
  removed_turn_ids: string[];
  surviving_baseline: {
    turn_id: string;
    sequence: number;
  };
  read_models_repaired: string[];
  error?: Err;
}

/** Taking back turns ended; the point that survives is named. */
export interface HistoryRollbackCompleted extends Envelope {
  type: "history.rollback.completed";
  session_id: string;
  thread_id: string;
  payload: HistoryRollbackCompletedPayload;
}

export interface HistoryRollbackStartedPayload {
  rollback_id: string;
  target: {
    turn_id?: string;
    sequence?: number;
  };
  removed_turn_ids: string[];
  affected: {
    tool_call_ids: string[];
    artifact_ids: string[];
    subagent_ids: string[];
    job_ids: string[];
  };
  requested_by: Who;
}

/** Turns of a thread are about to be taken back. */
export interface HistoryRollbackStarted extends Envelope {
  type: "history.rollback.started";
  session_id: string;
  thread_id: string;
  payload: HistoryRollbackStartedPayload;
}

export interface HistoryWindowLoadedPayload {
  cursor?: string;
  next_cursor: string | null;
  from_sequence: number;
  to_sequence: number;
  count: number;
  truncated: boolean;
  stale: boolean;
}

/** A page of history was read for a client. */
export interface HistoryWindowLoaded extends Envelope {
  type: "history.window.loaded";
  session_id: string;
  thread_id: string;
  payload: HistoryWindowLoadedPayload;
}

export interface HookCompletedPayload {
  hook_id: string;
  hook_point: string;
  outcome: "continue" | "block" | "allow" | "deny" | "ask";
  reason?: string;
  suppress_output: boolean;
  changed_fields?: string[];
  duration_ms: number;
}

/** A hook answered; its outcome says whether the work goes on. */
export interface HookCompleted extends Envelope {
  type: "hook.completed";
  session_id: string;
  payload: HookCompletedPayload;
}

export interface HookFailedPayload {
  hook_id: string;
  hook_point: string;
  error: Err;
  failure_behavior: "fail_open" | "fail_closed";
  duration_ms: number;
}

/** A hook failed; the work went on or stopped as its failure behaviour says. */
export interface HookFailed extends Envelope {
  type: "hook.failed";
  session_id: string;
  payload: HookFailedPayload;
}

export interface HookStartedPayload {
  hook_id: string;
  hook_point: "session_start" | "user_prompt_submit" | "pre_tool_use" | "permission_request" | "post_tool_use" | "post_tool_failure" | "post_sampling" | "stop";
  handler_ref: string;
  timeout_ms: number;
  risk: "high" | "read_only";
  preview?: string;
}

/** A hook is about to be called. */
export interface HookStarted extends Envelope {
  type: "hook.started";
  session_id: string;
  payload: HookStartedPayload;
}

export interface JobCancelledPayload {
  reason: string;
  cancelled_by: Who;
  /** completed items stay completed */
  counts: { [key: string]: Json };
  status: "cancelled";
}

/** A job was stopped; finished items stay finished. */
export interface JobCancelled extends Envelope {
  type: "job.cancelled";
  session_id: string;
  job_id: string;
  payload: JobCancelledPayload;
}

export interface JobCompletedPayload {
  counts: { [key: string]: Json };
  duration_ms: number;
  status: "completed";
}

/** A job is over and has worked through its items. */
export interface JobCompleted extends Envelope {
  type: "job.completed";
  session_id: string;
  job_id: string;
  payload: JobCompletedPayload;
}

export interface JobCreatedPayload {
  job_kind: string;
  source: string;
  item_count: number;
  /** absent when the list was too long and is referenced instead */
  items?: {
    job_item_id: string;
    index: number;
  }[];
  max_runtime_ms?: number;
  status: "created";
}

/** A batch or background job exists, with its items. */
export interface JobCreated extends Envelope {
  type: "job.created";
  session_id: string;
  job_id: string;
  payload: JobCreatedPayload;
}

export interface JobFailedPayload {
  failure_category: string;
  error: Err;
  counts: { [key: string]: Json };
  status: "failed";
}

/** A job failed as a whole. */
export interface JobFailed extends Envelope {
  type: "job.failed";
  session_id: string;
  job_id: string;
  payload: JobFailedPayload;
}

export interface JobItemCompletedPayload {
  index: number;
  attempt: number;
  duration_ms: number;
  status: "completed";
}

/** One item of a job is done. */
export interface JobItemCompleted extends Envelope {
  type: "job.item.completed";
  session_id: string;
  job_id: string;
  job_item_id: string;
  payload: JobItemCompletedPayload;
}

export interface JobItemFailedPayload {
  index: number;
  attempt: number;
  failure_category: string;
  error: Err;
  retryable: boolean;
  assigned_thread_id?: string;
  status: "failed";
}

/** One item of a job failed. */
export interface JobItemFailed extends Envelope {
  type: "job.item.failed";
  session_id: string;
  job_id: string;
  job_item_id: string;
  payload: JobItemFailedPayload;
}

export interface JobItemStartedPayload {
  index: number;
  attempt: number;
  assigned_thread_id?: string;
  item_kind?: string;
  status: "running";
}

/** Work on one item of a job began. */
export interface JobItemStarted extends Envelope {
  type: "job.item.started";
  session_id: string;
  job_id: string;
  job_item_id: string;
  payload: JobItemStartedPayload;
}

export interface JobProgressPayload {
  counts: {
    pending: number;
    running: number;
    completed: number;
    failed: number;
    reported: number;
  };
  cursor?: string;
  progress: number;
}

/** The counts of a job changed. */
export interface JobProgress extends Envelope {
  type: "job.progress";
  session_id: string;
  job_id: string;
  payload: JobProgressPayload;
}

export interface JobStartedPayload {
  status: "running";
  concurrency: number;
  started_at: Timestamp;
}

/** A job began to work on its items. */
export interface JobStarted extends Envelope {
  type: "job.started";
  session_id: string;
  job_id: string;
  payload: JobStartedPayload;
}

export interface LimitChangedPayload {
  limit_kind: "cost" | "quota" | "rate" | "budget" | "policy" | "concurrency";
  name: string;
  state: "ok" | "low" | "blocked" | "unknown";
  limit?: number;
  used?: number;
  remaining?: number;
  unit: string;
  window?: string;
  resets_at?: Timestamp;
}

/** A cost, quota, rate, budget, policy or concurrency limit changed its state. */
export interface LimitChanged extends Envelope {
  type: "limit.changed";
  payload: LimitChangedPayload;
}

export interface ModelCompletedPayload {
  provider: string;
  model: string;
  /** the model that answered, when the provider says so */
  effective_model?: string;
  stop_reason: string;
  usage: Usage;
  output_chars: number;
  ttft_ms?: number;
  latency_ms: number;
  status: "completed";
}

/** A model finished its answer; usage and latency are known. */
export interface ModelCompleted extends Envelope {
  type: "model.completed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelCompletedPayload;
}

export interface ModelDeltaPayload {
  message_id: string;
  index: number;
  kind: "text" | "structured";
  /** with kind text */
  text?: string;
  /** with kind structured */
  json?: Json;
}

/** A piece of a model's answer, as text or as a structured value. */
export interface ModelDelta extends Envelope {
  type: "model.delta";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelDeltaPayload;
}

export interface ModelFailedPayload {
  provider: string;
  model: string;
  failure_category: "provider_error" | "limit" | "timeout" | "cancelled" | "network" | "auth" | "invalid_request";
  message: string;
  error: Err;
  retryable: boolean;
  http_status?: number;
  /** what the call used until then */
  usage?: Usage;
  status: "failed";
}

/** A model request failed, in a category that says whether to try again. */
export interface ModelFailed extends Envelope {
  type: "model.failed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelFailedPayload;
}

export interface ModelRequestedPayload {
  provider: string;
  model: string;
  provider_selector?: string;
  stream: boolean;
  message_count: number;
  tool_count: number;
  prompt_sha256: string;
  input_tokens_estimate?: number;
  role?: "plan" | "execute" | "candidate";
  status: "started";
}

/** A request goes out to a model provider. */
export interface ModelRequested extends Envelope {
  type: "model.requested";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelRequestedPayload;
}

export interface OutputExpiredPayload {
  expired_at: Timestamp;
  policy: string;
  bytes_freed: number;
}

/** A stored output was deleted as its retention ran out. */
export interface OutputExpired extends Envelope {
  type: "output.expired";
  payload: OutputExpiredPayload;
}

export interface OutputRedactedPayload {
  owner: { [key: string]: Json };
  redactions: {
    kind: string;
    count: number;
  }[];
  reason: string;
}

/** Parts of an output were removed for safety. */
export interface OutputRedacted extends Envelope {
  type: "output.redacted";
  payload: OutputRedactedPayload;
}

export interface OutputSpilledPayload {
  owner: {
    kind: "tool" | "process" | "hook" | "model" | "artifact" | "export";
    id: string;
  };
  media_type: string;
  encoding: string;
  total_bytes: number;
  inline_bytes: number;
  sha256: string;
  head?: string;
  tail?: string;
  expires_at?: Timestamp;
}

/** Output too large for an event was stored and is referenced. */
export interface OutputSpilled extends Envelope {
  type: "output.spilled";
  payload: OutputSpilledPayload;
}

export interface OutputTruncatedPayload {
  owner: { [key: string]: Json };
  original_bytes: number;
  kept_bytes: number;
  policy: "head" | "tail" | "head_tail";
  reason: string;
}

/** Output was cut; what is kept is known. */
export interface OutputTruncated extends Envelope {
  type: "output.truncated";
  payload: OutputTruncatedPayload;
}

export interface PermissionEvaluatedPayload {
  decision_id: string;
  subject: Who;
  action: {
    type: string;
    name: string;
  };
  resource?: string;
  decision: "allow" | "deny" | "ask" | "sandbox" | "unavailable";
  decision_source: "mode" | "rule" | "hook" | "classifier" | "human" | "host_policy";
  decision_reason: string;
  mode: "default" | "untrusted" | "on_request" | "on_failure" | "never" | "plan" | "bypass" | "auto";
  rule_refs: string[];
  considered: {
    source: string;
    decision: string;
    rule_ref?: string;
  }[];
  overridden: {
    source: string;
    decision: string;
    by: string;
  }[];
  destructive: boolean;
  impact?: string;
  rollback_advice?: string;
  scope: { [key: string]: Json };
  expires_at?: Timestamp;
}

/** Rules, mode, hooks and people led to a decision about an action. */
export interface PermissionEvaluated extends Envelope {
  type: "permission.evaluated";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: PermissionEvaluatedPayload;
}

export interface PermissionRequestedPayload {
  decision_id: string;
  approval_action_id: string;
  prompt: string;
  choices: {
    id: string;
    label: string;
  }[];
  default_action: string;
  required_approver: Who;
  interactive: boolean;
  timeout_at?: Timestamp;
}

/** A permission has to be given by a person or the host. */
export interface PermissionRequested extends Envelope {
  type: "permission.requested";
  session_id: string;
  thread_id: string;
  turn_id: string;
  action_id: string;
  payload: PermissionRequestedPayload;
}

export interface PermissionResolvedPayload {
  decision_id: string;
  outcome: "allowed" | "denied" | "timed_out" | "cancelled" | "edited";
  decided_by: Who;
  decision_source: string;
  grant: "once" | "turn" | "session" | "always";
  rule_added?: string;
  waited_ms: number;
}

/** A requested permission was granted, denied, edited, cancelled or timed out. */
export interface PermissionResolved extends Envelope {
  type: "permission.resolved";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: PermissionResolvedPayload;
}

export interface PolicyChangedPayload {
  policy_id: string;
  scope: "host" | "workspace" | "session" | "agent";
  version: string;
  changed: string[];
  mode?: string;
  changed_by: Who;
  effective_at: Timestamp;
}

/** A policy of the host, a workspace, a session or an agent changed. */
export interface PolicyChanged extends Envelope {
  type: "policy.changed";
  payload: PolicyChangedPayload;
}

export interface ProcessCompletedPayload {
  exit_code: number | null;
  signal: number | null;
  duration_ms: number;
  stdout_bytes: number;
  stderr_bytes: number;
  status: "completed";
}

/** A process ended by itself. */
export interface ProcessCompleted extends Envelope {
  type: "process.completed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessCompletedPayload;
}

export interface ProcessFailedPayload {
  stage: "spawn" | "sandbox" | "permission" | "timeout" | "transport";
  error: Err;
  exit_code?: number;
  duration_ms: number;
}

/** A process could not be started or kept running. */
export interface ProcessFailed extends Envelope {
  type: "process.failed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessFailedPayload;
}

export interface ProcessInputPayload {
  bytes: number;
  eof: boolean;
  source: Who;
  /** without secrets */
  preview?: string;
}

/** Bytes that were written to a process. */
export interface ProcessInput extends Envelope {
  type: "process.input";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessInputPayload;
}

export interface ProcessOutputPayload {
  stream: "stdout" | "stderr" | "pty";
  index: number;
  offset: number;
  bytes: number;
  encoding: "utf8" | "base64";
  text?: string;
  data?: string;
  truncated: boolean;
}

/** Bytes that a process wrote. */
export interface ProcessOutput extends Envelope {
  type: "process.output";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessOutputPayload;
}

export interface ProcessStartedPayload {
  /** without secrets */
  command_summary: string;
  subcommands: string[];
  cwd: string;
  tty: boolean;
  pid?: number;
  profile_id: string;
  network: string;
  destructive: boolean;
  decision_id?: string;
  justification?: string;
  started_at: Timestamp;
}

/** A child process was started inside its sandbox profile. */
export interface ProcessStarted extends Envelope {
  type: "process.started";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessStartedPayload;
}

export interface ProcessTerminatedPayload {
  reason: "user" | "policy" | "parent_cancelled" | "shutdown" | "timeout";
  terminated_by: Who;
  signal: number;
  /** a second, harder signal was needed */
  escalated: boolean;
  exit_code?: number;
  duration_ms: number;
}

/** A process was stopped from outside. */
export interface ProcessTerminated extends Envelope {
  type: "process.terminated";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessTerminatedPayload;
}

export interface QueueChangedPayload {
  op: "added" | "removed" | "promoted" | "reordered" | "started" | "paused" | "resumed" | "policy";
  queued_turn_id?: string;
  order: string[];
  length: number;
  policy: { [key: string]: Json };
  source?: string;
  reason?: string;
}

/** The queue of a thread changed its order, its length or its policy. */
export interface QueueChanged extends Envelope {
  type: "queue.changed";
  session_id: string;
  thread_id: string;
  payload: QueueChangedPayload;
}

export interface QuotaBlockedPayload {
  quota_name: string;
  limit: number;
  used: number;
  unit: string;
  blocked_operation: string;
  resets_at?: Timestamp;
}

/** A used-up quota stopped an operation. */
export interface QuotaBlocked extends Envelope {
  type: "quota.blocked";
  payload: QuotaBlockedPayload;
}

export interface QuotaLowPayload {
  quota_name: string;
  remaining: number;
  limit: number;
  unit: string;
  threshold: number;
}

/** A quota has fallen below its threshold. */
export interface QuotaLow extends Envelope {
  type: "quota.low";
  payload: QuotaLowPayload;
}

export interface RateLimitHitPayload {
  limit_name: string;
  scope: "provider" | "host" | "runtime";
  provider?: string;
  retry_after_ms?: number;
  resets_at?: Timestamp;
  http_status?: number;
}

/** A rate limit refused a request for now. */
export interface RateLimitHit extends Envelope {
  type: "rate_limit.hit";
  payload: RateLimitHitPayload;
}

export interface ReasoningDeltaPayload {
  message_id: string;
  index: number;
  text: string;
}

/** A piece of a model's visible reasoning. */
export interface ReasoningDelta extends Envelope {
  type: "reasoning.delta";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ReasoningDeltaPayload;
}

export interface ReasoningSummaryPayload {
  message_id: string;
  text: string;
  chars: number;
  redacted: boolean;
}

/** What a model's reasoning came down to, once it is over. */
export interface ReasoningSummary extends Envelope {
  type: "reasoning.summary";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ReasoningSummaryPayload;
}

export interface RoutingCandidatesResolvedPayload {
  candidate_set_id: string;
  candidate_count: number;
  candidates: {
    provider: string;
    model: string;
    capabilities: string[];
    context_tokens: number;
    cost_class: string;
    latency_class: string;
    score: number;
  }[];
  excluded: {
    provider: string;
    model: string;
    reason: string;
  }[];
  hard_constraints: string[];
  preferences: string[];
  gaps: {
    credentials: string[];
    quota: string[];
    network: string[];
  };
}

/** The models that may serve a request, and why others may not. */
export interface RoutingCandidatesResolved extends Envelope {
  type: "routing.candidates.resolved";
  payload: RoutingCandidatesResolvedPayload;
}

export interface RoutingDecidedPayload {
  decision_id: string;
  routing_mode: string;
  decision_source: string;
  decision_reason: string;
  selected: Model;
  requested?: Model;
  role?: string;
  candidate_count: number;
  fallback_chain: Model[];
  capability_gap: string[];
  requires_user_override: boolean;
  limit_state_snapshot: { [key: string]: Json };
}

/** A model was chosen, with the chain of fallbacks behind it. */
export interface RoutingDecided extends Envelope {
  type: "routing.decided";
  payload: RoutingDecidedPayload;
}

export interface RoutingFallbackAppliedPayload {
  decision_id: string;
  from: Model;
  to: Model;
  reason: string;
  failed_model_request_id: string;
  chain_index: number;
  remaining: number;
}

/** The next model of the chain takes over after a failure. */
export interface RoutingFallbackApplied extends Envelope {
  type: "routing.fallback.applied";
  payload: RoutingFallbackAppliedPayload;
}

export interface RoutingNotPossiblePayload {
  reason_code: string;
  routing_mode: string;
  candidate_count: 0;
  gaps: { [key: string]: Json };
  decision_source: string;
  status: "blocked";
}

/** No model can serve the request. */
export interface RoutingNotPossible extends Envelope {
  type: "routing.not_possible";
  payload: RoutingNotPossiblePayload;
}

export interface RoutingSingleCandidatePayload {
  task_kind?: string;
  candidate_count: 1;
  selected: Model;
  decision_source: string;
  decision_reason: string;
  capability_gap: string[];
  cost_state: { [key: string]: Json };
  limit_state: { [key: string]: Json };
}

/** Only one model can serve the request, so nothing was chosen. */
export interface RoutingSingleCandidate extends Envelope {
  type: "routing.single_candidate";
  payload: RoutingSingleCandidatePayload;
}

export interface RunStatusPayload {
  phase: "start" | "context_assembly" | "skill_selection" | "model_selection" | "stream_start" | "llm_streaming" | "tool_loop" | "finalize" | (string & {});
  status: "draft" | "accepted" | "queued" | "preparing" | "running" | "streaming" | "waiting_input" | "waiting_permission" | "waiting_resource" | "blocked" | "paused" | "retrying" | "cancelling" | "cancelled" | "timed_out" | "failed" | "lost" | "completed" | "archived" | "stale" | "unknown";
  title: string;
  detail?: string;
  checkpoints?: {
    id: string;
    label: string;
    at: Timestamp;
  }[];
  metadata?: { [key: string]: Json };
}

/** A run entered another phase of its execution. */
export interface RunStatus extends Envelope {
  type: "run.status";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  payload: RunStatusPayload;
}

export interface RuntimeErrorPayload {
  code: string;
  message: string;
  component: string;
  fatal: boolean;
  error: Err;
}

/** The runtime itself failed at something. */
export interface RuntimeError extends Envelope {
  type: "runtime.error";
  payload: RuntimeErrorPayload;
}

export interface RuntimeWarningPayload {
  code: string;
  message: string;
  component: string;
  dedupe_key?: string;
  details?: { [key: string]: Json };
}

/** Something is wrong that does not stop the work. */
export interface RuntimeWarning extends Envelope {
  type: "runtime.warning";
  payload: RuntimeWarningPayload;
}

export interface SandboxAppliedPayload {
  profile_id: string;
  mode: string;
  cwd: string;
  read_roots: string[];
  write_roots: string[];
  network: {
    mode: "none" | "allowlist" | "full";
    allow?: string[];
  };
  process_limits: {
    cpu_s?: number;
    memory_bytes?: number;
    files?: number;
    processes?: number;
    wall_ms?: number;
  };
  platform: string;
  enforced: boolean;
  /** limits asked for but not enforceable here */
  gaps: string[];
}

/** The boundary in which a tool or process really runs, with what could not be enforced. */
export interface SandboxApplied extends Envelope {
  type: "sandbox.applied";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: SandboxAppliedPayload;
}

export interface SandboxViolationPayload {
  violation_id: string;
  profile_id: string;
  kind: "filesystem" | "network" | "process" | "permission" | "resource";
  target: string;
  attempted: string;
  action_taken: "denied" | "killed" | "logged";
  decision_id?: string;
}

/** A tool or process hit its boundary. */
export interface SandboxViolation extends Envelope {
  type: "sandbox.violation";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: SandboxViolationPayload;
}

export interface SessionCreatedPayload {
  source: "api" | "ag_ui" | "a2a" | "agent_api" | "plugin" | "channel" | "fixture" | "import";
  title?: string;
  agent_id?: string;
  created_at: Timestamp;
  metadata: { [key: string]: Json };
}

/** A session exists from here on and can own threads. */
export interface SessionCreated extends Envelope {
  type: "session.created";
  session_id: string;
  payload: SessionCreatedPayload;
}

export interface SessionUpdatedPayload {
  changed: string[];
  title?: string;
  status?: "active" | "idle" | "archived";
  active_thread_ids?: string[];
  pinned_thread_ids?: string[];
  metadata?: { [key: string]: Json };
}

/** Title, status, thread lists or metadata of a session changed. */
export interface SessionUpdated extends Envelope {
  type: "session.updated";
  session_id: string;
  payload: SessionUpdatedPayload;
}

export interface SnapshotRepairedPayload {
  read_models: string[];
  reason: string;
  gap?: {
    from_sequence: number;
    to_sequence: number;
  };
  stale: boolean;
  repair_status: "repaired" | "partial" | "failed";
}

/** Read models that disagreed with the log were rebuilt. */
export interface SnapshotRepaired extends Envelope {
  type: "snapshot.repaired";
  payload: SnapshotRepairedPayload;
}

export interface SnapshotUpdatedPayload {
  read_models: string[];
  through_sequence: number;
  status: "updated" | "stale" | "recovered";
  source: string;
}

/** Stored read models now stand for the log up to a sequence number. */
export interface SnapshotUpdated extends Envelope {
  type: "snapshot.updated";
  payload: SnapshotUpdatedPayload;
}

export interface SubagentClosedPayload {
  status: "closed";
  reason: string;
  closed_by: Who;
  released: boolean;
}

/** A child agent was closed and, if so marked, its resources are free again. */
export interface SubagentClosed extends Envelope {
  type: "subagent.closed";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentClosedPayload;
}

export interface SubagentCompletedPayload {
  status: "completed";
  summary_preview?: string;
  duration_ms: number;
}

/** A child agent finished its work. */
export interface SubagentCompleted extends Envelope {
  type: "subagent.completed";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentCompletedPayload;
}

export interface SubagentFailedPayload {
  status: "failed";
  failure_category: string;
  error: Err;
  retryable: boolean;
}

/** A child agent failed. */
export interface SubagentFailed extends Envelope {
  type: "subagent.failed";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentFailedPayload;
}

export interface SubagentInputPayload {
  kind: "text" | "json";
  preview: string;
  source: Who;
  index: number;
}

/** Input was handed to a child agent. */
export interface SubagentInput extends Envelope {
  type: "subagent.input";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentInputPayload;
}

export interface SubagentSpawnedPayload {
  parent: {
    session_id: string;
    thread_id: string;
    turn_id: string;
    task_id?: string;
    run_id?: string;
  };
  child_session_id?: string;
  child_thread_id: string;
  child_task_id?: string;
  role: string;
  nickname?: string;
  isolation: { [key: string]: Json };
  model_policy?: { [key: string]: Json };
  origin_tool?: string;
  status: "spawned";
}

/** A child agent was started for a turn. */
export interface SubagentSpawned extends Envelope {
  type: "subagent.spawned";
  session_id: string;
  thread_id: string;
  turn_id: string;
  subagent_id: string;
  payload: SubagentSpawnedPayload;
}

export interface SubagentStatusPayload {
  status: "pending" | "running" | "waiting" | "blocked" | "completed" | "failed" | "closed" | "lost";
  previous_status?: string;
  reason?: string;
}

/** A child agent changed its status. */
export interface SubagentStatus extends Envelope {
  type: "subagent.status";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentStatusPayload;
}

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
}

/** A task was stopped before it was done; it ends here. */
export interface TaskCancelled extends Envelope {
  type: "task.cancelled";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
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
  run_id: string;
  attempt_id: string;
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
}

/** A task cannot succeed any more; it ends here. */
export interface TaskFailed extends Envelope {
  type: "task.failed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
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
  run_id: string;
  attempt_id: string;
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
  /** updates folded into this one */
  coalesced: number;
}

/** How far a running task has come; several updates may be folded into one. */
export interface TaskProgress extends Envelope {
  type: "task.progress";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
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
  run_id: string;
  attempt_id: string;
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
  run_id: string;
  attempt_id: string;
  payload: TaskStartedPayload;
}

export interface TaskTimedOutPayload {
  status: "timed_out";
  limit: "time" | "inactivity";
  limit_ms: number;
  elapsed_ms: number;
  result_refs: string[];
}

/** A task used up its time or stayed silent too long; it ends here. */
export interface TaskTimedOut extends Envelope {
  type: "task.timed_out";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
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

export interface ThreadStartedPayload {
  origin: "new" | "fork" | "subagent" | "resume" | "import";
  conversation_id: string;
  parent_thread_id?: string;
  title?: string;
}

/** A thread begins in its session, new or derived from another one. */
export interface ThreadStarted extends Envelope {
  type: "thread.started";
  session_id: string;
  thread_id: string;
  payload: ThreadStartedPayload;
}

export interface ThreadUpdatedPayload {
  status: "idle" | "queued" | "running" | "blocked" | "completed" | "failed" | "cancelled" | "stale" | "unknown";
  previous_status?: string;
  active_turn_id: string | null;
  changed: string[];
  reason?: string;
}

/** The status, the active turn or another fact of a thread changed. */
export interface ThreadUpdated extends Envelope {
  type: "thread.updated";
  session_id: string;
  thread_id: string;
  payload: ThreadUpdatedPayload;
}

export interface ToolArgsPayload {
  index: number;
  delta?: string;
  /** without secrets */
  args?: Json;
  final: boolean;
  valid?: boolean;
  violations?: {
    path: string;
    message: string;
  }[];
  changed_by_hook?: string;
}

/** Arguments of a tool call, piece by piece or final, with what validation found. */
export interface ToolArgs extends Envelope {
  type: "tool.args";
  session_id: string;
  thread_id: string;
  turn_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  step_id: string;
  tool_call_id: string;
  payload: ToolArgsPayload;
}

export interface ToolCatalogResolvedPayload {
  inventory_id: string;
  caller: string;
  mode: string;
  tools: {
    tool_id: string;
    name: string;
    description: string;
    transport: "internal" | "http" | "mcp";
    version: string;
    policy: "allowed" | "ask" | "denied" | "sandboxed" | "unavailable";
    runtime_owner: string;
    capabilities: string[];
    is_read_only: boolean;
    is_concurrency_safe: boolean;
    is_destructive: boolean;
    interrupt_behavior: "cancel" | "block";
    tags: string[];
  }[];
  count: number;
  excluded: {
    tool_id: string;
    reason: string;
  }[];
  narrowed_by: string[];
}

/** The tools a turn may use are settled, and those left out are named with a reason. */
export interface ToolCatalogResolved extends Envelope {
  type: "tool.catalog.resolved";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ToolCatalogResolvedPayload;
}

export interface ToolFailedPayload {
  tool_name: string;
  ok: false;
  status: "failed" | "cancelled" | "denied" | "timed_out";
  failure_category: "unknown_tool" | "not_surfaced" | "schema_invalid" | "value_invalid" | "hook_blocked" | "policy_denied" | "rejected" | "setup_missing" | "sandbox_violation" | "execution" | "dependency" | "sibling_cancelled" | "result_too_large" | "timeout" | "cancelled";
  message: string;
  error: Err;
  retryable: boolean;
  retry_after_ms?: number;
  duration_ms: number;
}

/** A tool call ended without a result, in a category that names the stage. */
export interface ToolFailed extends Envelope {
  type: "tool.failed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  step_id: string;
  tool_call_id: string;
  payload: ToolFailedPayload;
}

export interface ToolProgressPayload {
  index: number;
  progress?: number;
  message?: string;
  partial?: Json;
  bytes_read?: number;
  bytes_written?: number;
  current_step?: string;
}

/** News of a tool call that is still running. */
export interface ToolProgress extends Envelope {
  type: "tool.progress";
  session_id: string;
  thread_id: string;
  turn_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  step_id: string;
  tool_call_id: string;
  payload: ToolProgressPayload;
}

export interface ToolResultPayload {
  tool_name: string;
  ok: true;
  status: "completed";
  /** any value; text is kept short */
  preview: Json;
  empty: boolean;
  truncated: boolean;
  output_bytes: number;
  duration_ms: number;
  persistence: "inline" | "preview_and_persist" | "ref_only" | "redact" | "drop_with_reason" | "never_persist";
}

/** A tool call ended well. */
export interface ToolResult extends Envelope {
  type: "tool.result";
  session_id: string;
  thread_id: string;
  turn_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  step_id: string;
  tool_call_id: string;
  payload: ToolResultPayload;
}

export interface ToolStartedPayload {
  tool_id: string;
  tool_name: string;
  tool_version: string;
  transport: string;
  environment_id: string;
  call_index: number;
  safe_args: { [key: string]: Json };
  policy: string;
  decision_id?: string;
  is_read_only: boolean;
  is_destructive: boolean;
  status: "running";
}

/** A tool call is recorded and about to run; it is durable before the tool acts. */
export interface ToolStarted extends Envelope {
  type: "tool.started";
  session_id: string;
  thread_id: string;
  turn_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  step_id: string;
  tool_call_id: string;
  payload: ToolStartedPayload;
}

export interface TurnCompletedPayload {
  status: "completed";
  finish_reason: string;
  final_text_preview?: string;
  usage?: Usage;
  duration_ms: number;
}

/** A turn ended well; its output, usage and duration are known. */
export interface TurnCompleted extends Envelope {
  type: "turn.completed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnCompletedPayload;
}

export interface TurnFailedPayload {
  status: "failed" | "cancelled" | "timed_out";
  failure_category: string;
  message: string;
  error: Err;
  retryable: boolean;
  duration_ms: number;
}

/** A turn ended in failure, cancellation or timeout. */
export interface TurnFailed extends Envelope {
  type: "turn.failed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnFailedPayload;
}

export interface TurnStartedPayload {
  status: "running";
  agent_id: string;
  entry: "llm.chat" | "echo" | "fixture" | "workflow.run" | "plugin" | "backend" | "tool.call";
  queue_wait_ms: number;
  started_at: Timestamp;
}

/** Work on a submitted turn begins after its time in the queue. */
export interface TurnStarted extends Envelope {
  type: "turn.started";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnStartedPayload;
}

export interface TurnSubmittedPayload {
  status: "accepted" | "queued";
  source: string;
  input_parts: {
    type: "text" | "json" | "file" | "form";
    preview: string;
    mime?: string;
    bytes: number;
  }[];
  options?: { [key: string]: Json };
  metadata?: { [key: string]: Json };
  queued_turn_id?: string;
  idempotency_key?: string;
}

/** Input was taken in for a thread; nothing of the turn comes earlier. */
export interface TurnSubmitted extends Envelope {
  type: "turn.submitted";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnSubmittedPayload;
}

/** An event of somebody else's vocabulary. */
export interface VendorEvent extends Envelope {
  type: `vendor.${string}.${string}`;
  payload: { [key: string]: Json };
}

export type StandardEvent =
  | ActionRequired
  | ActionResolved
  | ArtifactChanged
  | ChannelConnected
  | ChannelDisconnected
  | ChannelMessage
  | ChannelPermissionForwarded
  | ChannelPermissionReturned
  | ChannelResumed
  | ContextCompactionCompleted
  | ContextCompactionFailed
  | ContextCompactionStarted
  | ContextResolved
  | CostEstimated
  | CostRecorded
  | EvidenceChanged
  | HistoryReconstructed
  | HistoryRollbackCompleted
  | HistoryRollbackStarted
  | HistoryWindowLoaded
  | HookCompleted
  | HookFailed
  | HookStarted
  | JobCancelled
  | JobCompleted
  | JobCreated
  | JobFailed
  | JobItemCompleted
  | JobItemFailed
  | JobItemStarted
  | JobProgress
  | JobStarted
  | LimitChanged
  | ModelCompleted
  | ModelDelta
  | ModelFailed
  | ModelRequested
  | OutputExpired
  | OutputRedacted
  | OutputSpilled
  | OutputTruncated
  | PermissionEvaluated
  | PermissionRequested
  | PermissionResolved
  | PolicyChanged
  | ProcessCompleted
  | ProcessFailed
  | ProcessInput
  | ProcessOutput
  | ProcessStarted
  | ProcessTerminated
  | QueueChanged
  | QuotaBlocked
  | QuotaLow
  | RateLimitHit
  | ReasoningDelta
  | ReasoningSummary
  | RoutingCandidatesResolved
  | RoutingDecided
  | RoutingFallbackApplied
  | RoutingNotPossible
  | RoutingSingleCandidate
  | RunStatus
  | RuntimeError
  | RuntimeWarning
  | SandboxApplied
  | SandboxViolation
  | SessionCreated
  | SessionUpdated
  | SnapshotRepaired
  | SnapshotUpdated
  | SubagentClosed
  | SubagentCompleted
  | SubagentFailed
  | SubagentInput
  | SubagentSpawned
  | SubagentStatus
  | TaskAccepted
  | TaskArchived
  | TaskAttemptCompleted
  | TaskAttemptFailed
  | TaskAttemptStarted
  | TaskBlocked
  | TaskCancelRequested
  | TaskCancelled
  | TaskCompleted
  | TaskCreated
  | TaskDelegated
  | TaskDependencyUpdated
  | TaskFailed
  | TaskLost
  | TaskPaused
  | TaskProfileResolved
  | TaskProgress
  | TaskQueued
  | TaskResumed
  | TaskRetrying
  | TaskStarted
  | TaskTimedOut
  | TaskUpdated
  | TaskWaiting
  | ThreadStarted
  | ThreadUpdated
  | ToolArgs
  | ToolCatalogResolved
  | ToolFailed
  | ToolProgress
  | ToolResult
  | ToolStarted
  | TurnCompleted
  | TurnFailed
  | TurnStarted
  | TurnSubmitted;

export type UarEvent = StandardEvent | VendorEvent;
export type EventType = StandardEvent["type"];
export type EventOf<T extends EventType> = Extract<StandardEvent, { type: T }>;

export const eventTypes: readonly EventType[] = [
  "action.required",
  "action.resolved",
  "artifact.changed",
  "channel.connected",
  "channel.disconnected",
  "channel.message",
  "channel.permission_forwarded",
  "channel.permission_returned",
  "channel.resumed",
  "context.compaction.completed",
  "context.compaction.failed",
  "context.compaction.started",
  "context.resolved",
  "cost.estimated",
  "cost.recorded",
  "evidence.changed",
  "history.reconstructed",
  "history.rollback.completed",
  "history.rollback.started",
  "history.window.loaded",
  "hook.completed",
  "hook.failed",
  "hook.started",
  "job.cancelled",
  "job.completed",
  "job.created",
  "job.failed",
  "job.item.completed",
  "job.item.failed",
  "job.item.started",
  "job.progress",
  "job.started",
  "limit.changed",
  "model.completed",
  "model.delta",
  "model.failed",
  "model.requested",
  "output.expired",
  "output.redacted",
  "output.spilled",
  "output.truncated",
  "permission.evaluated",
  "permission.requested",
  "permission.resolved",
  "policy.changed",
  "process.completed",
  "process.failed",
  "process.input",
  "process.output",
  "process.started",
  "process.terminated",
  "queue.changed",
  "quota.blocked",
  "quota.low",
  "rate_limit.hit",
  "reasoning.delta",
  "reasoning.summary",
  "routing.candidates.resolved",
  "routing.decided",
  "routing.fallback.applied",
  "routing.not_possible",
  "routing.single_candidate",
  "run.status",
  "runtime.error",
  "runtime.warning",
  "sandbox.applied",
  "sandbox.violation",
  "session.created",
  "session.updated",
  "snapshot.repaired",
  "snapshot.updated",
  "subagent.closed",
  "subagent.completed",
  "subagent.failed",
  "subagent.input",
  "subagent.spawned",
  "subagent.status",
  "task.accepted",
  "task.archived",
  "task.attempt.completed",
  "task.attempt.failed",
  "task.attempt.started",
  "task.blocked",
  "task.cancel_requested",
  "task.cancelled",
  "task.completed",
  "task.created",
  "task.delegated",
  "task.dependency.updated",
  "task.failed",
  "task.lost",
  "task.paused",
  "task.profile.resolved",
  "task.progress",
  "task.queued",
  "task.resumed",
  "task.retrying",
  "task.started",
  "task.timed_out",
  "task.updated",
  "task.waiting",
  "thread.started",
  "thread.updated",
  "tool.args",
  "tool.catalog.resolved",
  "tool.failed",
  "tool.progress",
  "tool.result",
  "tool.started",
  "turn.completed",
  "turn.failed",
  "turn.started",
  "turn.submitted",
];
