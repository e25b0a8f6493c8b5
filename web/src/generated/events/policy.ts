// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Timestamp, Who } from "./envelope.js";

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
