// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, OutputExpiry, Timestamp } from "./envelope.js";

export interface OutputExpiredPayload {
  expired_at: Timestamp;
  policy: string;
  bytes_freed: number;
}

/** A stored output was deleted as its retention ran out. */
export interface OutputExpired extends Envelope {
  type: "output.expired";
  payload: OutputExpiredPayload;
}

export interface OutputRedactedPayload {
  owner: { [key: string]: Json };
  redactions: {
    kind: string;
    count: number;
  }[];
  reason: string;
}

/** Parts of an output were removed for safety. */
export interface OutputRedacted extends Envelope {
  type: "output.redacted";
  payload: OutputRedactedPayload;
}

export interface OutputSpilledPayload {
  owner: {
    kind: "tool" | "process" | "hook" | "model" | "artifact" | "export";
    id: string;
  };
  media_type: string;
  encoding: string;
  total_bytes: number;
  inline_bytes: number;
  sha256: string;
  head?: string;
  tail?: string;
  expiry?: OutputExpiry;
  expires_at?: Timestamp;
}

/** Output too large for an event was stored and is referenced. */
export interface OutputSpilled extends Envelope {
  type: "output.spilled";
  payload: OutputSpilledPayload;
}

export interface OutputTruncatedPayload {
  owner: { [key: string]: Json };
  media_type?: string;
  expiry?: OutputExpiry;
  original_bytes: number;
  kept_bytes: number;
  policy: "head" | "tail" | "head_tail";
  reason: string;
}

/** Output was cut; what is kept is known. */
export interface OutputTruncated extends Envelope {
  type: "output.truncated";
  payload: OutputTruncatedPayload;
}
