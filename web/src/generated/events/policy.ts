// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, Timestamp, Who } from "./envelope.js";

export interface PolicyChangedPayload {
  policy_id: string;
  scope: "host" | "workspace" | "session" | "agent";
  version: string;
  changed: string[];
  mode?: string;
  interactive?: boolean;
  /** of a session or a thread */
  rules?: { [key: string]: Json }[];
  /** of the host */
  rule_count?: number;
  changed_by: Who;
  effective_at: Timestamp;
}

/** A policy of the host, a workspace, a session or an agent changed. */
export interface PolicyChanged extends Envelope {
  type: "policy.changed";
  payload: PolicyChangedPayload;
}
