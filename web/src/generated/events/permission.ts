// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, Timestamp, Who } from "./envelope.js";

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
