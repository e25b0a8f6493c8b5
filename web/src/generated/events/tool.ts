// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Json } from "./envelope.js";

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
  /** of the JSON Schema that the arguments are checked by, as models are told it */
  schema_sha256?: string;
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
    transport: "internal" | "http" | "mcp" | "client";
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
  /** it was cut off by a restart and is executed once more from here on */
  again?: boolean;
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
  /** of a tool that UAR executes: may it be repeated after a restart? */
  effect?: "read_only" | "idempotent" | "once";
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
