// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, Timestamp, Who } from "./envelope.js";

export interface ActionRequiredPayload {
  action_type: "tool_permission" | "form" | "plan" | "credential" | "structured_input" | "policy" | "client_tool";
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
  reason?: string;
  /** what the client that answered calls the run from here on */
  continues_as?: string;
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
