// Written by tools/gen-events from src/event; do not edit.

import type { Envelope } from "./envelope.js";

export interface ReasoningDeltaPayload {
  message_id: string;
  index: number;
  text: string;
}

/** A piece of a model's visible reasoning. */
export interface ReasoningDelta extends Envelope {
  type: "reasoning.delta";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ReasoningDeltaPayload;
}

export interface ReasoningSummaryPayload {
  message_id: string;
  text: string;
  chars: number;
  redacted: boolean;
}

/** What a model's reasoning came down to, once it is over. */
export interface ReasoningSummary extends Envelope {
  type: "reasoning.summary";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ReasoningSummaryPayload;
}
