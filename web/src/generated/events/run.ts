// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, Timestamp } from "./envelope.js";

export interface RunStatusPayload {
  phase: "start" | "context_assembly" | "skill_selection" | "model_selection" | "stream_start" | "llm_streaming" | "tool_loop" | "finalize" | (string & {});
  status: "draft" | "accepted" | "queued" | "preparing" | "running" | "streaming" | "waiting_input" | "waiting_permission" | "waiting_resource" | "blocked" | "paused" | "retrying" | "cancelling" | "cancelled" | "timed_out" | "failed" | "lost" | "completed" | "archived" | "stale" | "unknown";
  title: string;
  detail?: string;
  checkpoints?: {
    id: string;
    label: string;
    at: Timestamp;
  }[];
  metadata?: { [key: string]: Json };
}

/** A run entered another phase of its execution. */
export interface RunStatus extends Envelope {
  type: "run.status";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  payload: RunStatusPayload;
}
