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

export interface OutputExpiry {
  /** with its run, when the setting keep_runs evicts that */
  policy: "keep_runs";
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

/** An event of somebody else's vocabulary. */
export interface VendorEvent extends Envelope {
  type: `vendor.${string}.${string}`;
  payload: { [key: string]: Json };
}
