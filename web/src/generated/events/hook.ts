// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err } from "./envelope.js";

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
