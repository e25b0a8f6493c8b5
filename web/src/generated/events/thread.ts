// Written by tools/gen-events from src/event; do not edit.

import type { Envelope } from "./envelope.js";

export interface ThreadStartedPayload {
  origin: "new" | "fork" | "subagent" | "resume" | "import";
  conversation_id: string;
  parent_thread_id?: string;
  title?: string;
}

/** A thread begins in its session, new or derived from another one. */
export interface ThreadStarted extends Envelope {
  type: "thread.started";
  session_id: string;
  thread_id: string;
  payload: ThreadStartedPayload;
}

export interface ThreadUpdatedPayload {
  status: "idle" | "queued" | "running" | "blocked" | "completed" | "failed" | "cancelled" | "stale" | "unknown";
  previous_status?: string;
  active_turn_id: string | null;
  changed: string[];
  reason?: string;
}

/** The status, the active turn or another fact of a thread changed. */
export interface ThreadUpdated extends Envelope {
  type: "thread.updated";
  session_id: string;
  thread_id: string;
  payload: ThreadUpdatedPayload;
}
