// Written by tools/gen-events from src/event; do not edit.

import type { Envelope } from "./envelope.js";

export interface EvidenceChangedPayload {
  kind: "evidence" | "replay" | "review" | "verification" | "trace";
  status: "pending" | "collecting" | "ready" | "partial" | "failed";
  scope: { [key: string]: string };
  verification_outcomes: {
    name: string;
    status: string;
  }[];
  known_gaps: {
    signal: string;
    reason: string;
  }[];
  sha256?: string;
}

/** A pack of evidence, a replay, a review or a trace changed its state. */
export interface EvidenceChanged extends Envelope {
  type: "evidence.changed";
  evidence_id: string;
  payload: EvidenceChangedPayload;
}
