// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Timestamp } from "./envelope.js";

export interface QuotaBlockedPayload {
  quota_name: string;
  limit: number;
  used: number;
  unit: string;
  blocked_operation: string;
  budget_run_id?: string;
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
