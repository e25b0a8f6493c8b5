// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Timestamp } from "./envelope.js";

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
