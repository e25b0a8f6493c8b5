// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Timestamp } from "./envelope.js";

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
