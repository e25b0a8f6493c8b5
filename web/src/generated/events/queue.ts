// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json } from "./envelope.js";

export interface QueueChangedPayload {
  op: "added" | "removed" | "promoted" | "reordered" | "started" | "paused" | "resumed" | "policy";
  queued_turn_id?: string;
  order: string[];
  length: number;
  policy: { [key: string]: Json };
  source?: string;
  reason?: string;
}

/** The queue of a thread changed its order, its length or its policy. */
export interface QueueChanged extends Envelope {
  type: "queue.changed";
  session_id: string;
  thread_id: string;
  payload: QueueChangedPayload;
}
