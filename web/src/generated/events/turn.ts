// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Json, Timestamp, Usage } from "./envelope.js";

export interface TurnCompletedPayload {
  status: "completed";
  finish_reason: string;
  final_text_preview?: string;
  usage?: Usage;
  duration_ms: number;
}

/** A turn ended well; its output, usage and duration are known. */
export interface TurnCompleted extends Envelope {
  type: "turn.completed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnCompletedPayload;
}

export interface TurnFailedPayload {
  status: "failed" | "cancelled" | "timed_out";
  failure_category: string;
  message: string;
  error: Err;
  retryable: boolean;
  duration_ms: number;
}

/** A turn ended in failure, cancellation or timeout. */
export interface TurnFailed extends Envelope {
  type: "turn.failed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnFailedPayload;
}

export interface TurnStartedPayload {
  status: "running";
  agent_id: string;
  entry: "llm.chat" | "echo" | "fixture" | "workflow.run" | "plugin" | "backend" | "peer.a2a" | "tool.call";
  queue_wait_ms: number;
  started_at: Timestamp;
}

/** Work on a submitted turn begins after its time in the queue. */
export interface TurnStarted extends Envelope {
  type: "turn.started";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnStartedPayload;
}

export interface TurnSubmittedPayload {
  status: "accepted" | "queued";
  source: string;
  input_parts: {
    type: "text" | "json" | "file" | "form";
    preview: string;
    mime?: string;
    bytes: number;
  }[];
  options?: { [key: string]: Json };
  metadata?: { [key: string]: Json };
  queued_turn_id?: string;
  idempotency_key?: string;
}

/** Input was taken in for a thread; nothing of the turn comes earlier. */
export interface TurnSubmitted extends Envelope {
  type: "turn.submitted";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: TurnSubmittedPayload;
}
